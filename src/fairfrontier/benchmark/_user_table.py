"""A user's table as a problem of the benchmark: features as numbers, a label of two classes, one attribute."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray, attributes
from fairfrontier.benchmark._tasks import Problem, Task
from fairfrontier.chunks._formats import TableFile, open_stream, open_table
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.search._screening import screen
from fairfrontier.search._table import Columns, TableEncoding, missing_in, read_columns

_MOST_GROUPS = 10
# Rows that a group, and each label in it, needs: a quarter of them are test rows.
_LEAST_ROWS, _LEAST_PER_LABEL = 100, 20


@dataclass(frozen=True)
class UserTable:
    """A file with one row per person, and which of its columns are what.

    Attributes
    ----------
    path : Path
        A CSV or Parquet file.
    label : str
        The column to predict, with two values.
    sensitive : str
        The column of the attribute, with 2 to 10 groups.
    positive : str or None
        The positive value of the label; None: the second in sorted order.
    drop : tuple of str
        Columns that are no features.
    """

    path: Path
    label: str
    sensitive: str
    positive: str | None = None
    drop: tuple[str, ...] = ()

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
        roles |= {"drop": ",".join(self.drop)}
        return {"file": self.path.name, "sha256": digest} | roles


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A user's table as numbers.

    Attributes
    ----------
    problem : Problem
        Features with and without the attribute, label, attribute.
    notes : tuple of str
        What was left out or changed.
    """

    problem: Problem
    notes: tuple[str, ...]


def label_values(path: Path, label: str) -> list[str]:
    """Return the values of a column as text, in sorted order; empty where the file has no such column."""
    columns = _read(open_table(path))
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
    columns = _read(open_table(table.path))
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
    reports = screen(columns, y > 0.5, given, np.arange(len(y)), drop=table.drop, use_sensitive=True)
    notes += [f"{report.name} was left out: {report.reason}." for report in reports if not report.used]
    used = {report.name: columns[report.name] for report in reports if report.used}
    blind = {name: values for name, values in used.items() if name != table.sensitive}
    if not blind:
        raise InvalidInputError(f"{table.path.name} must have features beside label and attribute; none is left")
    attribute = table.task.attribute
    problem = Problem(_matrix(used), y, {attribute: group}, {attribute: _matrix(blind)}, regression=False)
    return PreparedTable(problem, tuple(notes))


def _matrix(columns: Columns) -> FloatArray:
    return TableEncoding().fit(columns).transform(columns)


def _read(table: TableFile) -> Columns:
    """Return the typed columns of a file."""
    arrow = require("pyarrow", extra="cli", purpose="Reading a file")
    if table.csv is None:
        rows = require("pyarrow.parquet", extra="cli", purpose="Reading a file").read_table(table.path)
    else:
        csv = require("pyarrow.csv", extra="cli", purpose="Reading a file")
        try:
            with open_stream(table.path, table.csv) as (stream, _):
                rows = csv.read_csv(stream, *table.csv.options(csv), table.csv.converting(csv))
        except (arrow.ArrowException, OSError, UnicodeError) as error:
            raise table.damaged(error) from None
    return read_columns(rows, parameter=table.path.name)


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
