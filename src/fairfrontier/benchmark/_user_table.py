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
from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._tasks import Problem, Task
from fairfrontier.chunks._tables import TableFile, open_stream, open_table
from fairfrontier.exceptions import GroupError, InvalidInputError

# Categories of a feature that become columns of their own, the most frequent ones; groups of the attribute.
_CATEGORIES, _MOST_GROUPS = 40, 10
# Rows that a group, and each label in it, needs: a quarter of them are test rows.
_LEAST_ROWS, _LEAST_PER_LABEL = 100, 20
_ID_NAME = re.compile(r"(^|[_\W])(id|ids|uid|uuid|guid|key|index|unnamed|rownames?)($|[_\W\d])|_id$|^id$", re.I)
# Texts of which more than this share differ are names or remarks, not categories.
_MOSTLY_DISTINCT = 0.5


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
    """

    path: Path
    label: str
    sensitive: str
    positive: str | None = None

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


@lru_cache(maxsize=2)
def prepare_table(table: UserTable) -> PreparedTable:
    """Read and encode a user's table.

    Numbers stay numbers, with the median and an indicator where they are missing; categories become indicators, and
    what is missing is one of them; dates become days. Identifiers, free text, constants and copies of the label are
    left out, and, on the blind track, columns that determine the attribute.
    """
    columns = _read(open_table(table.path))
    for role, name in (("label", table.label), ("sensitive", table.sensitive)):
        if name not in columns:
            raise InvalidInputError(
                f"{role} must be a column of {table.path.name}; got {name!r}: its columns are {', '.join(columns)}"
            )
    if table.label == table.sensitive:
        raise InvalidInputError(f"label and sensitive must be different columns; both are {table.label!r}")
    known = ~_missing(columns[table.label]) & ~_missing(columns[table.sensitive])
    notes = [] if known.all() else [f"{int((~known).sum())} rows without label or attribute were left out."]
    columns = {name: values[known] for name, values in columns.items()}
    y = _label(columns.pop(table.label), table)
    group = _groups(columns[table.sensitive], y, table.sensitive)
    matrix: dict[str, FloatArray] = {}
    proxies = [table.sensitive]
    for name, values in columns.items():
        reason = "" if name == table.sensitive else _unusable(name, values, y)
        if reason:
            notes.append(f"{name} was left out: {reason}.")
            continue
        if name != table.sensitive and _determines(values, group):
            proxies.append(name)
            notes.append(f"{name} was left out on the blind track: it determines {table.sensitive}.")
        matrix[name] = _encode(_texts(values) if name == table.sensitive else values)
    blind = [block for name, block in matrix.items() if name not in proxies]
    if not blind:
        raise InvalidInputError(f"{table.path.name} must have features beside label and attribute; none is left")
    attribute = table.task.attribute
    X = np.column_stack(list(matrix.values()))
    problem = Problem(X, y, {attribute: group}, {attribute: np.column_stack(blind)}, regression=False)
    return PreparedTable(problem, tuple(notes))


def _read(table: TableFile) -> dict[str, NDArray[Any]]:
    """Return the columns: float64 with NaN, or objects that are text or None."""
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
    return {name: _values(arrow, rows.column(name)) for name in rows.column_names}


def _values(arrow: Any, column: Any) -> NDArray[Any]:
    kind = column.type
    types = arrow.types
    if types.is_date(kind) or types.is_timestamp(kind):
        days = column.cast(arrow.timestamp("s"), safe=False).cast(arrow.int64())
        return np.array([np.nan if v is None else v / 86400.0 for v in days.to_pylist()], dtype=np.float64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        numbers = np.array([np.nan if v is None else float(v) for v in column.to_pylist()], dtype=np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    texts = [None if v is None or not str(v).strip() else str(v).strip() for v in column.to_pylist()]
    return np.array(texts, dtype=object)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values.tolist()])


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as text; whole numbers have no point."""
    return np.array([f"{v:g}" if isinstance(v, float) else v for v in values.tolist()], dtype=object)


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


def _unusable(name: str, values: NDArray[Any], y: FloatArray) -> str:
    """Return why a column is no feature; empty where it is one."""
    present = values[~_missing(values)]
    distinct = len(set(present.tolist()))
    if distinct < 2 and len(present) in (0, len(values)):
        return "it is constant"
    is_text = values.dtype.kind == "O"
    all_differ = distinct == len(present) and len(present) > _CATEGORIES
    whole = not is_text and bool(np.all(present == np.round(present)))
    counted = whole and all_differ and float(np.ptp(present)) < 2.0 * len(present)
    if all_differ and (counted or ((is_text or whole) and _ID_NAME.search(name))):
        return "it is an identifier"
    if is_text and distinct > max(_MOSTLY_DISTINCT * len(present), _CATEGORIES):
        return "it is an identifier or free text"
    if distinct == 2 and len(present) == len(values):
        first = values == present[0]
        if np.array_equal(first, y == y[0]) or np.array_equal(first, y != y[0]):
            return "it is a copy of the label"
    return ""


def _determines(values: NDArray[Any], group: NDArray[Any]) -> bool:
    """Tell whether each value of a column with few values occurs in one group only."""
    texts = np.array(["" if v is None else str(v) for v in values.tolist()])
    names = np.unique(texts)
    return len(names) <= _CATEGORIES and all(len(np.unique(group[texts == name])) == 1 for name in names)


def _encode(values: NDArray[Any]) -> FloatArray:
    missing = _missing(values)
    if values.dtype.kind == "f":
        numbers = np.where(missing, np.median(values[~missing]), values)
        return np.column_stack([numbers, missing]) if missing.any() else numbers[:, None]
    texts = np.where(missing, "", values).astype(str)
    names, counts = np.unique(texts, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:_CATEGORIES])
    return np.asarray(texts[:, None] == names[kept], dtype=np.float64)
