"""The seven tasks of the paper, their data, and the splits that every method shares."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import datasets
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError


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
_LOADERS: dict[str, Callable[..., Any]] = {
    "adult": datasets.load_adult,
    "bank": datasets.load_bank,
    "compas": datasets.load_compas,
    "default": datasets.load_default,
    "communities": datasets.load_communities,
}


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


def tasks_of(dataset: str) -> list[Task]:
    """Return the tasks on one data set."""
    return [task for task in TASKS.values() if task.dataset == dataset]


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
    if dataset not in _LOADERS:
        raise InvalidInputError(f"dataset must be one of {', '.join(DATASETS)}; got {dataset!r}")
    bunch = _LOADERS[dataset]()
    tasks = tasks_of(dataset)
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
