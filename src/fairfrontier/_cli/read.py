"""From columns of a file to labels, groups and one matrix of scores."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.tables import ColumnFile, shown
from fairfrontier._extras import require
from fairfrontier._validation import one_of
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics import ACCURACY_MEASURES

# Columns read at once: enough to keep the reader's threads busy, few enough not to hold the file twice.
_COLUMNS = 32
# A column with more values than this is a measurement, such as an age, and not a set of groups.
MAX_GROUPS = 50
# Up to this many scores are kept in double precision; more are kept in single, on their side of the threshold.
_DOUBLE = 2**24
# Scores that rounding has put a hair outside [0, 1].
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class AuditData:
    """Labels, groups and scores of one file.

    Attributes
    ----------
    y : ndarray of shape (n,)
        True for the positive label; numbers for regression.
    positive : str
        The positive label as it stands in the file.
    sensitive : dict of str to ndarray of shape (n,)
        The groups of each sensitive attribute, as text.
    scores : ndarray of shape (n, k)
        One column a model.
    names : tuple of str
        The models.
    left_out : tuple of str
        Numeric columns that were not named and cannot be scores.
    """

    y: NDArray[Any]
    positive: str
    sensitive: dict[str, NDArray[Any]]
    scores: NDArray[Any]
    names: tuple[str, ...]
    left_out: tuple[str, ...]


def read_data(
    file: ColumnFile,
    *,
    label: str,
    sensitive: Sequence[str],
    scores: Sequence[str] = (),
    positive: str | None = None,
    accuracy: str = "accuracy",
    threshold: float = 0.5,
) -> AuditData:
    """Read what an audit needs.

    Parameters
    ----------
    file : ColumnFile
        The open file.
    label, sensitive : str, sequence of str
        Columns.
    scores : sequence of str
        Names or patterns of columns; empty: all numeric columns that are neither and lie in [0, 1].
    positive : str, optional
        The positive label; None: the second of the two in sorted order.
    accuracy : str
        The accuracy measure: one of regression takes any numbers.
    threshold : float
        What decisions compare scores with.
    """
    regression = ACCURACY_MEASURES[one_of(accuracy, ACCURACY_MEASURES, parameter="--accuracy")].regression
    file.check(label, option="--label")
    for name in sensitive:
        file.check(name, option="--sensitive")
        if name == label:
            raise InvalidInputError(f"--sensitive must name other columns than --label; got {name!r} for both")
    names = score_columns(file, scores, {label, *sensitive})
    y, shown_positive = _target(file, label) if regression else _label(file, label, positive)
    groups = {name: _groups(file, name) for name in dict.fromkeys(sensitive)}
    matrix, kept = _matrix(file, names, threshold=None if regression else threshold, named=bool(scores))
    return AuditData(y, shown_positive, groups, matrix, kept, tuple(n for n in names if n not in set(kept)))


def score_columns(file: ColumnFile, patterns: Sequence[str], taken: set[str]) -> list[str]:
    types = require("pyarrow", extra="cli", purpose="Reading a file").types
    others = [name for name in file.types if name not in taken]
    if not patterns:
        numeric = [n for n in others if _is_number(types, file.types[n]) and not types.is_boolean(file.types[n])]
        if not numeric:
            texts = f"; these columns hold text: {shown(others)}" if others else ""
            raise InvalidInputError(f"{file.path.name} must have numeric columns of scores besides the others{texts}")
        return numeric
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matches = [pattern] if pattern in others else fnmatch.filter(others, pattern)
        if not matches:
            if not any(character in pattern for character in "*?["):
                file.check(pattern, option="--scores")
            raise InvalidInputError(f"--scores {pattern!r} must match a column; the others are {shown(others)}")
        chosen.update(dict.fromkeys(matches))
    return list(chosen)


def _is_number(types: Any, dtype: Any) -> bool:
    return bool(
        types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype) or types.is_boolean(dtype)
    )


def _column(file: ColumnFile, name: str) -> Any:
    column = file.read([name]).column(name).combine_chunks()
    types = require("pyarrow", extra="cli", purpose="Reading a file").types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        raise InvalidInputError(f"column {name!r} must be UTF-8 text; convert the file to UTF-8 first")
    return column


def _first_missing(column: Any) -> int | None:
    """Return the first row (from 1) that is null, NaN or blank; None: every row has a value."""
    compute = require("pyarrow.compute", extra="cli", purpose="Reading a file")
    types = require("pyarrow", extra="cli", purpose="Reading a file").types
    missing = compute.is_null(column, nan_is_null=True)
    if types.is_string(column.type) or types.is_large_string(column.type):
        missing = compute.or_(missing, compute.fill_null(compute.equal(compute.utf8_trim_whitespace(column), ""), True))
    where = compute.index(missing, True).as_py()
    return None if where < 0 else where + 1


def _values(file: ColumnFile, name: str, *, option: str) -> tuple[list[Any], NDArray[Any]]:
    """Return the distinct values of a column, in sorted order, and each row's index among them."""
    column = _column(file, name)
    row = _first_missing(column)
    if row is not None:
        raise GroupError(
            f"{option} {name!r} must have no missing value; row {row} has none: drop these rows, or "
            "make 'unknown' a value of its own"
        )
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=lambda i: values[i])
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values))
    return [values[i] for i in order], rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _label(file: ColumnFile, name: str, positive: str | None) -> tuple[NDArray[np.bool_], str]:
    values, codes = _values(file, name, option="--label")
    index, text = positive_label(values, name, positive)
    return codes == index, text


def positive_label(values: Sequence[Any], name: str, positive: str | None) -> tuple[int, str]:
    """Return which of a label's sorted values is the positive one, and how it reads."""
    if len(values) != 2:
        advice = "for a numeric target pass --accuracy r2" if len(values) > 2 else "both must occur"
        raise InvalidInputError(
            f"--label {name!r} must have two values; got {len(values)} ({shown([str(v) for v in values], 5)}): {advice}"
        )
    texts = [_as_text(value) for value in values]
    if positive is None:
        return 1, texts[1]
    if _as_text(positive) not in texts:
        raise InvalidInputError(f"--positive must be one of {texts[0]!r} and {texts[1]!r}; got {positive!r}")
    return texts.index(_as_text(positive)), _as_text(positive)


def _as_text(value: Any) -> str:
    """Write a label value so that 1, 1.0 and "1" are one, and True and "true" too."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:g}"


def _target(file: ColumnFile, name: str) -> tuple[NDArray[np.float64], str]:
    column = _numbers(file, name, option="--label")
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column))) + 1
        raise InvalidInputError(f"--label {name!r} must have no missing value; row {row} has none: drop these rows")
    return column.astype(np.float64), ""


def _numbers(file: ColumnFile, name: str, *, option: str) -> NDArray[Any]:
    return _as_numbers(_column(file, name), name, option=option)


def _as_numbers(column: Any, name: str, *, option: str) -> NDArray[Any]:
    """Return a column of numbers as numpy; missing values become NaN."""
    arrow = require("pyarrow", extra="cli", purpose="Reading a file")
    if not _is_number(arrow.types, column.type):
        first = next((v for v in column.to_pylist() if v is not None), None)
        raise InvalidInputError(f"{option} {name!r} must be numbers; got text such as {str(first)[:40]!r}")
    if arrow.types.is_boolean(column.type):
        column = column.cast(arrow.uint8())
    if arrow.types.is_decimal(column.type):
        column = column.cast(arrow.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _groups(file: ColumnFile, name: str) -> NDArray[Any]:
    values, codes = _values(file, name, option="--sensitive")
    check_groups(values, name)
    texts: NDArray[Any] = np.empty(len(values), dtype=object)
    texts[:] = [str(value) for value in values]
    return np.asarray(texts[codes])


def check_groups(values: Sequence[Any], name: str) -> None:
    """Refuse an attribute with one group only, or with so many that it is a measurement."""
    if len(values) > MAX_GROUPS:
        raise GroupError(
            f"--sensitive {name!r} must have at most {MAX_GROUPS} groups; got {len(values)} different values: "
            "put them into bands first, such as ages into 'under 40' and '40 or more'"
        )
    if len(values) < 2:
        raise GroupError(f"--sensitive {name!r} must have at least two groups; got only {str(values[0])!r}")


def _matrix(
    file: ColumnFile, names: Sequence[str], *, threshold: float | None, named: bool
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return the scores (n, k), one model after the other in memory, and the models' names."""
    dtype = np.float64 if file.n_rows * len(names) <= _DOUBLE else np.float32
    matrix = np.empty((file.n_rows, len(names)), dtype=dtype, order="F")
    kept: list[str] = []
    for start in range(0, len(names), _COLUMNS):
        table = file.read(names[start : start + _COLUMNS])
        for name in table.column_names:
            numbers = _as_numbers(table.column(name), name, option="--scores" if named else "column")
            if threshold is not None and not named and not _may_be_scores(numbers):
                continue
            numbers = _checked(numbers, name, unit=threshold is not None)
            matrix[:, len(kept)] = numbers if dtype is np.float64 else single_precision(numbers, threshold)
            kept.append(name)
    if not kept:
        raise InvalidInputError(f"no numeric column of {file.path.name} lies in [0, 1]: name the scores with --scores")
    return matrix[:, : len(kept)], tuple(kept)


def single_precision(numbers: NDArray[Any], threshold: float | None) -> NDArray[np.float32]:
    """Return scores in single precision that are above `threshold` exactly where they were in double precision.

    Examples
    --------
    >>> scores = np.array([0.5, 0.5 + 1e-12])
    >>> scores.astype(np.float32) > 0.5, single_precision(scores, 0.5) > 0.5
    (array([False, False]), array([False,  True]))
    """
    result = numbers.astype(np.float32)
    if threshold is None:
        return result
    moved = np.flatnonzero((result > threshold) != (numbers > threshold))
    for row in moved:
        toward = np.float32(np.inf if numbers[row] > threshold else -np.inf)
        while (result[row] > threshold) != (numbers[row] > threshold):
            result[row] = np.nextafter(result[row], toward)
    return result


def _may_be_scores(numbers: NDArray[Any]) -> bool:
    """Tell scores from other numbers, such as ages, in columns that nobody named."""
    known = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    return bool(known.size and known.min() >= -SLACK and known.max() <= 1 + SLACK)


def _checked(numbers: NDArray[Any], name: str, *, unit: bool) -> NDArray[Any]:
    low, high = numbers.min(), numbers.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        row = int(np.argmin(np.isfinite(numbers))) + 1
        raise InvalidInputError(
            f"scores {name!r} must have no missing or infinite value; row {row} has one: drop these rows, or leave "
            "this model out with --scores"
        )
    if unit and (low < -SLACK or high > 1 + SLACK):
        raise InvalidInputError(
            f"scores {name!r} must be in [0, 1]; got {low:g} to {high:g}: turn them into probabilities first"
        )
    return np.clip(numbers, 0.0, 1.0) if unit and (low < 0 or high > 1) else numbers
