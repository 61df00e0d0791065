"""What may come in, and how we say no.

Every public function passes its input through here once; the code behind it then trusts its arrays.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfrontier.exceptions import GroupError, InvalidInputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Predictions:
    """Scores of `k` models for `n` rows: `matrix` (n, k), `names` (k,)."""

    matrix: NDArray[Any]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute: `codes` (n,) index into `values`, the groups in sorted order."""

    name: str
    codes: IntArray
    values: tuple[Any, ...]


def one_of(value: str, options: Iterable[str], *, parameter: str) -> str:
    """Return `value` if it is one of `options`, else name the nearest option."""
    options = sorted(options)
    if isinstance(value, str) and value in options:
        return value
    near = difflib.get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InvalidInputError(f"{parameter} must be one of {', '.join(map(repr, options))}; got {value!r}{hint}")


def number(
    value: Any,
    *,
    parameter: str,
    low: float = -np.inf,
    high: float = np.inf,
    strict: bool = False,
    advice: str = "",
) -> float:
    """Return `value` as a float inside [low, high] (inside (low, high) when `strict`)."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{parameter} must be a number; got {value!r}{advice}") from None
    inside = low < result < high if strict else low <= result <= high
    if not inside or np.isnan(result):
        left, right = "()" if strict else "[]"
        raise InvalidInputError(f"{parameter} must be in {left}{low:g}, {high:g}{right}; got {value!r}{advice}")
    return result


def column(values: Any, *, parameter: str) -> NDArray[Any]:
    """Return a 1-D numpy array from an array, list or series of any dataframe library."""
    if isinstance(values, nw.Series) or nw.dependencies.is_into_series(values):
        return np.asarray(nw.from_native(values, series_only=True).to_numpy())
    if nw.dependencies.is_into_dataframe(values):
        frame = nw.from_native(values, eager_only=True)
        if frame.shape[1] != 1:
            raise InvalidInputError(f"{parameter} must be one column; got a dataframe with {frame.shape[1]} columns")
        return np.asarray(frame.get_column(frame.columns[0]).to_numpy())
    array = np.asarray(values) if not _is_ragged(values) else np.asarray(values, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidInputError(f"{parameter} must be 1-D; got an array of shape {array.shape}")
    return array


def _is_ragged(values: Any) -> bool:
    """Tell whether a sequence holds tuples (group labels), which numpy would turn into a second axis."""
    return isinstance(values, Sequence) and not isinstance(values, str) and any(isinstance(v, tuple) for v in values)


def same_length(n_rows: int, **others: int) -> None:
    """Check that every named length equals `n_rows`, that of y_true."""
    for name, length in others.items():
        if length != n_rows:
            raise InvalidInputError(
                f"{name} must have as many rows as y_true, {n_rows}; got {length}: pass rows that belong together"
            )


def finite(matrix: NDArray[Any], *, parameter: str, names: Sequence[str] = ()) -> None:
    """Check that no value is NaN or infinite; name the first offending column."""
    # A sum is one read and no temporary; it is finite unless something in it is not (or it overflows).
    with np.errstate(all="ignore"):
        if np.isfinite(matrix.sum(dtype=np.float64)):
            return
    rows, *columns = np.nonzero(~np.isfinite(matrix))
    if rows.size == 0:
        return
    where = f" in {names[columns[0][0]]!r}" if columns and names else ""
    raise InvalidInputError(
        f"{parameter} must be finite; got {matrix[rows[0], *(c[0] for c in columns)]!s}{where} at row {rows[0]} "
        f"({rows.size} such values): drop or impute these rows first"
    )


def predictions(y_preds: Any) -> Predictions:
    """Return predictions from a dict, a 2-D or 1-D array, or a dataframe of any library."""
    if isinstance(y_preds, Mapping):
        columns = [column(values, parameter=f"y_preds[{name!r}]") for name, values in y_preds.items()]
        names = tuple(str(name) for name in y_preds)
    elif nw.dependencies.is_into_dataframe(y_preds):
        columns, names = _frame_columns(y_preds, parameter="y_preds")
    else:
        return _predictions_from_array(y_preds)
    if not columns:
        raise InvalidInputError("y_preds must hold at least one model; got none")
    lengths = {name: len(values) for name, values in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"y_preds must have equally long columns; got lengths {lengths}")
    _unique(names, parameter="y_preds")
    matrix = np.empty((len(columns[0]), len(columns)), dtype=np.result_type(np.float32, *_kinds(columns)), order="F")
    for j, (name, values) in enumerate(zip(names, columns, strict=True)):
        matrix[:, j] = _numeric(values, parameter=f"y_preds[{name!r}]")
    return Predictions(matrix, names)


def _predictions_from_array(y_preds: Any) -> Predictions:
    matrix = column(y_preds, parameter="y_preds") if nw.dependencies.is_into_series(y_preds) else np.asarray(y_preds)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise InvalidInputError(f"y_preds must be a dict, a dataframe or a 2-D array; got shape {matrix.shape}")
    if matrix.shape[1] == 0:
        raise InvalidInputError("y_preds must hold at least one model; got none")
    return Predictions(_numeric(matrix, parameter="y_preds"), tuple(f"model_{j}" for j in range(matrix.shape[1])))


def _frame_columns(frame: Any, *, parameter: str) -> tuple[list[NDArray[Any]], tuple[str, ...]]:
    names = tuple(str(name) for name in getattr(frame, "columns", ()))
    if hasattr(frame, "column_names"):  # pyarrow keeps its names elsewhere
        names = tuple(frame.column_names)
    _unique(names, parameter=parameter)
    wrapped = nw.from_native(frame, eager_only=True)
    return [wrapped.get_column(c).to_numpy() for c in wrapped.columns], names


def _unique(names: Sequence[str], *, parameter: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(f"{parameter} must have distinct names; got {name!r} twice: rename one of them")
        seen.add(name)


def _kinds(columns: Sequence[NDArray[Any]]) -> list[np.dtype[Any]]:
    return [c.dtype if c.dtype.kind in "fiub" else np.dtype(np.float64) for c in columns]


def _numeric(values: NDArray[Any], *, parameter: str) -> NDArray[Any]:
    """Return numbers as they are (bool as uint8, objects converted); refuse text."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind in "fiu":
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{parameter} must be numbers (scores or 0/1 decisions); got values like {values.flat[0]!r}: "
            "convert the model's class labels to 0/1 first"
        ) from None


def labels(y_true: Any) -> tuple[NDArray[np.bool_], tuple[Any, Any]]:
    """Return y as booleans (True: the second class in sorted order) and the two classes."""
    values = column(y_true, parameter="y_true")
    if values.size == 0:
        raise InvalidInputError("y_true must have at least one row; got none")
    if values.dtype.kind == "b":
        classes: NDArray[Any] = np.unique(values)
    else:
        if values.dtype.kind == "f":
            finite(values, parameter="y_true")
        classes = _sorted_unique(values, parameter="y_true")
    if len(classes) != 2:
        shown = ", ".join(repr(c) for c in classes[:5].tolist()) + (", …" if len(classes) > 5 else "")
        advice = (
            "for regression use accuracy='r2' or 'exp_mse'"
            if len(classes) > 2
            else "both classes must occur: value the models on more rows"
        )
        raise InvalidInputError(f"y_true must have two classes; got {len(classes)} ({shown}): {advice}")
    return np.asarray(values == classes[1]), (classes[0], classes[1])


def _sorted_unique(values: NDArray[Any], *, parameter: str) -> NDArray[Any]:
    if values.dtype.kind != "O":
        return np.unique(values)
    distinct, _ = _factorize_objects(values, parameter=parameter)
    for value in distinct:
        if _is_missing(value):
            raise InvalidInputError(f"{parameter} must have no missing value; got {value!r}: drop these rows first")
    result = np.empty(len(distinct), dtype=object)
    result[:] = distinct
    return result


def target(y_true: Any) -> FloatArray:
    """Return a regression target as floats."""
    values = _numeric(column(y_true, parameter="y_true"), parameter="y_true").astype(np.float64, copy=False)
    if values.size == 0:
        raise InvalidInputError("y_true must have at least one row; got none")
    finite(values, parameter="y_true")
    return values


def sample_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Return non-negative finite weights with a positive sum, or None."""
    if sample_weight is None:
        return None
    weights = _numeric(column(sample_weight, parameter="sample_weight"), parameter="sample_weight")
    weights = weights.astype(np.float64, copy=False)
    same_length(n_rows, sample_weight=len(weights))
    finite(weights, parameter="sample_weight")
    if weights.min() < 0:
        raise InvalidInputError(f"sample_weight must be non-negative; got {weights.min():g} at row {weights.argmin()}")
    if weights.sum() == 0:
        raise InvalidInputError("sample_weight must have a positive sum; got only zeros")
    return weights


def attributes(sensitive_features: Any, n_rows: int) -> tuple[Attribute, ...]:
    """Return each sensitive attribute as integer codes with its sorted groups."""
    if sensitive_features is None:
        raise InvalidInputError("sensitive_features must be given: one value a row, e.g. data['sex']; got None")
    columns = _attribute_columns(sensitive_features)
    if not columns:
        raise InvalidInputError("sensitive_features must hold at least one attribute; got none")
    for name, values in columns.items():
        same_length(n_rows, **{f"sensitive_features[{name!r}]": len(values)})
    return tuple(_attribute(name, values) for name, values in columns.items())


def _attribute_columns(sensitive_features: Any) -> dict[str, NDArray[Any]]:
    if isinstance(sensitive_features, Mapping):
        return {
            str(name): column(values, parameter=f"sensitive_features[{name!r}]")
            for name, values in sensitive_features.items()
        }
    if nw.dependencies.is_into_dataframe(sensitive_features):
        arrays, names = _frame_columns(sensitive_features, parameter="sensitive_features")
        return dict(zip(names, arrays, strict=True))
    if nw.dependencies.is_into_series(sensitive_features):
        name = getattr(sensitive_features, "name", None)
        return {str(name or "sensitive_feature"): column(sensitive_features, parameter="sensitive_features")}
    array = np.asarray(sensitive_features) if not _is_ragged(sensitive_features) else None
    if array is not None and array.ndim == 2 and array.shape[1] > 1:
        return {f"sensitive_feature_{j}": array[:, j] for j in range(array.shape[1])}
    return {"sensitive_feature": column(sensitive_features, parameter="sensitive_features")}


def _attribute(name: str, values: NDArray[Any]) -> Attribute:
    if values.dtype.kind in "biuSU":
        distinct, codes = np.unique(values, return_inverse=True)
        groups: list[Any] = distinct.tolist()
    elif values.dtype.kind in "fmM":
        if np.isnan(values).any():
            raise _missing_group(name, int(np.isnan(values).argmax()), "NaN")
        distinct, codes = np.unique(values, return_inverse=True)
        groups = distinct.tolist()
    else:
        groups, codes = _factorize_objects(values, parameter=f"sensitive_features[{name!r}]")
        for code, group in enumerate(groups):
            if _is_missing(group):
                raise _missing_group(name, int((codes == code).argmax()), repr(group))
    if len(groups) < 2:
        shown = repr(groups[0]) if groups else "no row at all"
        raise GroupError(
            f"sensitive_features[{name!r}] must have at least two groups; got only {shown}: "
            "fairness compares groups, so use rows in which more than one occurs"
        )
    return Attribute(name, codes.astype(np.intp, copy=False), tuple(groups))


def _missing_group(name: str, row: int, shown: str) -> GroupError:
    return GroupError(
        f"sensitive_features[{name!r}] must have no missing value; got {shown} at row {row}: drop these rows, or "
        "make 'unknown' a group of its own"
    )


def _factorize_objects(values: NDArray[Any], *, parameter: str) -> tuple[list[Any], IntArray]:
    """Return the distinct objects (sorted where they can be) and each row's index among them."""
    index: dict[Any, int] = {}
    try:
        codes = np.fromiter((index.setdefault(v, len(index)) for v in values), dtype=np.intp, count=len(values))
    except TypeError as error:
        raise InvalidInputError(f"{parameter} must hold hashable values; {error}") from None
    distinct = list(index)
    try:
        order = sorted(range(len(distinct)), key=lambda i: distinct[i])
    except TypeError:  # groups of several types have no common order: keep that of first appearance
        return distinct, codes
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return [distinct[i] for i in order], rank[codes]


def _is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA from real values."""
    if value is None:
        return True
    differs = value != value
    return bool(differs) if isinstance(differs, (bool, np.bool_)) else type(value).__name__ == "NAType"


def unit_interval_pairs(fairness: ArrayLike, accuracy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return two equally long 1-D float arrays inside [0, 1]."""
    pair = []
    for parameter, values in (("fairness", fairness), ("accuracy", accuracy)):
        array = _numeric(column(values, parameter=parameter), parameter=parameter).astype(np.float64, copy=False)
        if array.size == 0:
            raise InvalidInputError(f"{parameter} must hold at least one model; got none")
        low, high = array.min(), array.max()
        if not (low >= 0.0 and high <= 1.0):
            finite(array, parameter=parameter)
            if low < -1e-9 or high > 1 + 1e-9:
                raise InvalidInputError(
                    f"{parameter} must be in [0, 1]; got values from {low:g} to {high:g}: "
                    "rescale the measure so that 1 is best"
                )
            array = np.clip(array, 0.0, 1.0)  # rounding of a measure that is 0 or 1
        pair.append(array)
    if len(pair[0]) != len(pair[1]):
        raise InvalidInputError(
            f"fairness and accuracy must be equally long; got {len(pair[0])} and {len(pair[1])} values"
        )
    return pair[0], pair[1]
