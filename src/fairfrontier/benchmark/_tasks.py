"""The tasks: the paper's seven and a user's own table as matrices, and the splits that every method shares."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import datasets
from fairfrontier._validation import FloatArray, IntArray, attributes
from fairfrontier.chunks._files import read_table
from fairfrontier.chunks._formats import open_table
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.search._screening import AS_ASKED, TELLS_THE_GROUP, screen
from fairfrontier.search._table import Columns, TableEncoding, missing_in, read_columns


@dataclass(frozen=True)
class Task:
    """One data set with one sensitive attribute.

    Attributes
    ----------
    name : str
        ``dataset-attribute``, as in the paper's tables.
    dataset, attribute : str
        The two parts.
    regression : bool
        Whether the target is a number.
    """

    name: str
    dataset: str
    attribute: str
    regression: bool = False


# The order of the paper's columns.
TASKS = {
    f"{data}-{attribute}": Task(f"{data}-{attribute}", data, attribute, regression=data == "communities")
    for data, attribute in (
        ("adult", "gender"),
        ("adult", "race"),
        ("bank", "age"),
        ("compas", "gender"),
        ("compas", "race"),
        ("default", "gender"),
        ("communities", "race"),
    )
}
# The quickest first: an interrupted run then has as many cells as possible.
DATASETS = ("compas", "communities", "default", "bank", "adult")


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set as matrices, ready for the learners.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The design matrix, sensitive features included, as in the paper.
    y : ndarray of shape (n,)
        Labels 0 and 1, or numbers.
    attributes : dict of str to ndarray of shape (n,)
        The binary attributes of the tasks.
    X_without : dict of str to ndarray of shape (n, d')
        For each attribute, the design matrix without the features that hold it.
    regression : bool
        Whether `y` is a number.
    """

    X: FloatArray
    y: FloatArray
    attributes: dict[str, NDArray[Any]]
    X_without: dict[str, FloatArray]
    regression: bool


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Row indices of one split: 50 % to train base learners, 25 % to stack, 25 % to test."""

    train: IntArray
    ensemble: IntArray
    test: IntArray


def seed_of(*parts: Any) -> int:
    """Return a seed that depends on the parts alone: the same in every process, run and order of work.

    Examples
    --------
    >>> seed_of("adult", 0, "forest") == seed_of("adult", 0, "forest") != seed_of("adult", 1, "forest")
    True
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") >> 1


def task_of(name: str) -> Task:
    """Return a task by its name ``dataset-attribute``: one of the paper's, or a classification on a user's table."""
    if name in TASKS:
        return TASKS[name]
    dataset, _, attribute = name.partition("-")
    return Task(name, dataset, attribute)


@lru_cache(maxsize=2)
def load_problem(dataset: str, max_rows: int | None = None) -> Problem:
    """Load a data set as matrices.

    Parameters
    ----------
    dataset : str
        One of `DATASETS`.
    max_rows : int, optional
        Keep about this many rows, with every group and label in proportion.

    Examples
    --------
    >>> problem = load_problem("compas")
    >>> problem.X.shape, sorted(problem.attributes)
    ((5278, 13), ['gender', 'race'])
    """
    if dataset not in DATASETS:
        raise InvalidInputError(f"dataset must be one of {', '.join(DATASETS)}; got {dataset!r}")
    bunch = getattr(datasets, f"load_{dataset}")()
    tasks = [task for task in TASKS.values() if task.dataset == dataset]
    regression = tasks[0].regression
    y = np.asarray(bunch.target, dtype=np.float64)
    attributes = {task.attribute: np.asarray(bunch.sensitive_features[task.attribute], dtype=str) for task in tasks}
    X = datasets.design_matrix(bunch).values
    without = {name: datasets.design_matrix(bunch, drop_sensitive=name).values for name in attributes}
    return subset(Problem(X, y, attributes, without, regression), dataset, max_rows)


def subset(problem: Problem, dataset: str, max_rows: int | None) -> Problem:
    """Return about `max_rows` rows of a problem, with every group and label in proportion; None: all of them."""
    n_rows = len(problem.y)
    if max_rows is None or max_rows >= n_rows:
        return problem
    kept = np.sort(_stratified_order(problem, seed_of(dataset, "rows"))[:: int(np.ceil(n_rows / max_rows))])
    return Problem(
        problem.X[kept],
        problem.y[kept],
        {name: values[kept] for name, values in problem.attributes.items()},
        {name: values[kept] for name, values in problem.X_without.items()},
        problem.regression,
    )


def split_rows(problem: Problem, dataset: str, split: int) -> SplitRows:
    """Return the rows of a split, each part with every label and group in proportion.

    Parameters
    ----------
    problem : Problem
        The data.
    dataset : str
        Its name, a part of the seed.
    split : int
        Number of the split, from 0.

    Examples
    --------
    >>> split = split_rows(load_problem("compas"), "compas", 0)
    >>> len(split.train), len(split.ensemble), len(split.test)
    (2639, 1319, 1320)
    """
    order = _stratified_order(problem, seed_of(dataset, split, "split"))
    turn = np.arange(len(order)) % 4
    return SplitRows(*(np.sort(order[np.isin(turn, places)]) for places in ((0, 2), (3,), (1,))))


def _stratified_order(problem: Problem, seed: int) -> IntArray:
    """Return the rows in an order in which every n-th row is a stratified sample: by label and attributes together."""
    y = problem.y
    level = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y) if problem.regression else y
    noise = np.random.default_rng(seed).random(len(y))
    return np.lexsort((noise, level, *problem.attributes.values()))


_MOST_GROUPS = 10
# Rows that a group, and each label in it, needs: a quarter of them are test rows.
_LEAST_ROWS, _LEAST_PER_LABEL = 100, 20


@dataclass(frozen=True)
class UserTable:
    """A file with one row per person, and which of its columns are what.

    Attributes
    ----------
    path : Path
        A CSV, Parquet or Excel file.
    label : str
        The column to predict, with two values.
    sensitive : str
        The column of the attribute, with 2 to 10 groups.
    positive : str or None
        The positive value of the label; None: the second in sorted order.
    drop, keep : tuple of str
        Columns that are no features; columns that are features even where they reveal the label or copy the attribute.
    """

    path: Path
    label: str
    sensitive: str
    positive: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    @property
    def task(self) -> Task:
        """Return the task, named after file and column."""
        dataset, attribute = (
            re.sub(r"\W+", "_", text).strip("_") or "table" for text in (self.path.stem, self.sensitive)
        )
        return Task(f"{dataset}-{attribute}", dataset, attribute)

    def identity(self) -> dict[str, str]:
        """Return what makes figures of this table comparable: the content of the file and the roles of its columns."""
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()
        roles = {"label": self.label, "sensitive": self.sensitive, "positive": self.positive or ""}
        roles |= {"drop": ",".join(self.drop)} | ({"keep": ",".join(self.keep)} if self.keep else {})
        return {"file": self.path.name, "sha256": digest} | roles


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A user's table as numbers."""

    problem: Problem  # features with and without the attribute, label, attribute
    notes: tuple[str, ...]  # what was left out or changed


def label_values(path: Path, label: str) -> list[str]:
    """Return the values of a column as text, in sorted order; empty where the file has no such column."""
    columns = _read(path)
    if label not in columns:
        return []
    values = columns[label]
    return sorted(set(_texts(values[~missing_in(values)]).tolist()))


@lru_cache(maxsize=2)
def prepare_table(table: UserTable) -> PreparedTable:
    """Read and encode a user's table.

    Numbers stay numbers, with the median and an indicator where they are missing; categories become indicators; dates
    become days, months and weekdays. Identifiers, constants and copies of the attribute are left out; a column that
    gives the label away is refused.
    """
    columns = _read(table.path)
    for role, name in (("label", table.label), ("sensitive", table.sensitive)):
        if name not in columns:
            raise InvalidInputError(
                f"{role} must be a column of {table.path.name}; got {name!r}: its columns are {', '.join(columns)}"
            )
    if table.label == table.sensitive:
        raise InvalidInputError(f"label and sensitive must be different columns; both are {table.label!r}")
    known = ~missing_in(columns[table.label]) & ~missing_in(columns[table.sensitive])
    notes = [] if known.all() else [f"{int((~known).sum())} rows without label or attribute were left out."]
    columns = {name: values[known] for name, values in columns.items()}
    y = _label(columns.pop(table.label), table)
    columns[table.sensitive] = _texts(columns[table.sensitive])
    group = _groups(columns[table.sensitive], y, table.sensitive)
    given = attributes({table.sensitive: group}, len(y))
    reports = screen(columns, y > 0.5, given, np.arange(len(y)), drop=table.drop, keep=table.keep, use_sensitive=True)
    for report in reports:
        if not report.used:
            because = report.reason if report.reason == AS_ASKED else f"left out: {report.reason}"
            notes.append(f"{report.name} was {because}.")
        elif report.reason.startswith(TELLS_THE_GROUP):
            notes.append(f"{report.name} {report.reason}")
    used = {report.name: columns[report.name] for report in reports if report.used}
    blind = {name: values for name, values in used.items() if name != table.sensitive}
    if not blind:
        raise InvalidInputError(f"{table.path.name} must have features beside label and attribute; none is left")
    attribute = table.task.attribute
    problem = Problem(_matrix(used), y, {attribute: group}, {attribute: _matrix(blind)}, regression=False)
    return PreparedTable(problem, tuple(notes))


def _matrix(columns: Columns) -> FloatArray:
    return TableEncoding().fit(columns).transform(columns)


def _read(path: Path) -> Columns:
    """Return the typed columns of a file."""
    return read_columns(read_table(open_table(path)), parameter=path.name)


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as text; whole numbers have no point."""
    return np.array([f"{v:g}" if isinstance(v, float) else str(v) for v in values.tolist()], dtype=object)


def _label(values: NDArray[Any], table: UserTable) -> FloatArray:
    found = sorted(set(values.tolist()))
    texts = _texts(np.array(found, dtype=values.dtype)).tolist()
    if len(found) != 2:
        shown = ", ".join(map(repr, texts[:5]))
        raise InvalidInputError(f"label {table.label!r} must have two values; got {len(found)} ({shown})")
    positive = texts[1] if table.positive is None else table.positive
    if positive not in texts:
        raise InvalidInputError(f"positive must be one of {texts[0]!r} and {texts[1]!r}; got {positive!r}")
    return np.asarray(values == found[texts.index(positive)], dtype=np.float64)


def _groups(values: NDArray[Any], y: FloatArray, name: str) -> NDArray[Any]:
    group = _texts(values).astype(str)
    names, counts = np.unique(group, return_counts=True)
    if not 2 <= len(names) <= _MOST_GROUPS:
        raise GroupError(
            f"sensitive {name!r} must have 2 to {_MOST_GROUPS} groups; got {len(names)}: make a column of groups, such "
            "as age bands"
        )
    for one, count in zip(names.tolist(), counts.tolist(), strict=True):
        positive = int(y[group == one].sum())
        if count < _LEAST_ROWS or min(positive, count - positive) < _LEAST_PER_LABEL:
            raise GroupError(
                f"sensitive {name!r} must have at least {_LEAST_ROWS} rows in each group and {_LEAST_PER_LABEL} of "
                f"each label; group {one!r} has {count} and {min(positive, count - positive)}: merge it with another"
            )
    return group
