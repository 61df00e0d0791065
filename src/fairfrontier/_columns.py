"""Read columns out of lists, arrays, and the series and dataframes of any library."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fairfrontier._extras import require
from fairfrontier.exceptions import InvalidInputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
# The family of models whose names have no slash.
DEFAULT_FAMILY = "models"
# Types that no dataframe library has to be asked about: on few rows these questions are a quarter of the time.
_PLAIN = frozenset({np.ndarray, list, tuple, dict, type(None)})


def column(values: Any, *, parameter: str) -> NDArray[Any]:
    """Return a 1-D numpy array from an array, list or series of any dataframe library.

    Examples
    --------
    >>> column(["a", 1, float("nan")], parameter="y")
    array(['a', 1, nan], dtype=object)
    """
    if is_series(values):
        return np.asarray(nw.from_native(values, series_only=True).to_numpy())
    if is_frame(values):
        arrays, _ = frame_columns(values, parameter=parameter)
        if len(arrays) != 1:
            raise InvalidInputError(f"{parameter} must be one column; got a dataframe with {len(arrays)} columns")
        return arrays[0]
    array = as_array(values, parameter=parameter)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidInputError(f"{parameter} must be 1-D; got {described(values, array)}")
    return array


def is_series(values: Any) -> bool:
    """Tell whether `values` is a series of some dataframe library."""
    if type(values) in _PLAIN:
        return False
    return bool(isinstance(values, nw.Series) or nw.dependencies.is_into_series(values))


def is_frame(values: Any) -> bool:
    """Tell whether `values` is a dataframe in memory of some library."""
    return type(values) not in _PLAIN and bool(nw.dependencies.is_into_dataframe(values))


def frame_columns(frame: Any, *, parameter: str) -> tuple[list[NDArray[Any]], tuple[str, ...]]:
    """Return the columns of a dataframe and their names."""
    # pyarrow's attribute `columns` holds the data; its names are elsewhere.
    names = tuple(str(name) for name in getattr(frame, "column_names", None) or frame.columns)
    unique_names(names, parameter=parameter)
    wrapped = nw.from_native(frame, eager_only=True)
    return [wrapped.get_column(c).to_numpy() for c in wrapped.columns], names


def unique_names(names: Sequence[str], *, parameter: str) -> None:
    """Check that no name comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(f"{parameter} must have distinct names; got {name!r} twice: rename one of them")
        seen.add(name)


def as_array(values: Any, *, parameter: str, tuples_are_labels: bool = True) -> NDArray[Any]:
    """Return `np.asarray(values)`, without what numpy would do to tuples, mixed types, masks and sparse matrices."""
    refuse_masked(values, parameter=parameter)
    if issparse(values):
        return np.asarray(values.toarray())
    if not isinstance(values, (list, tuple)):
        return np.asarray(values)
    if tuples_are_labels and any(isinstance(value, tuple) for value in values):  # groups, not a second axis
        return _objects(values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidInputError(f"{parameter} must be 1-D or a table; got rows of different lengths") from None
    # In a list of several types numpy makes 1 the text '1' and NaN the text 'nan'.
    if array.dtype.kind in "US" and not _all_text(values):
        return _objects(values) if array.ndim == 1 else np.asarray(values, dtype=object)
    return array


def refuse_masked(values: Any, *, parameter: str) -> None:
    """Raise if a masked array has masked values, which `np.asarray` would take for real ones."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidInputError(f"{parameter} must have no masked value: fill or drop these rows first")


def _all_text(values: Any) -> bool:
    return all(_all_text(v) if isinstance(v, (list, np.ndarray)) else isinstance(v, (str, bytes)) for v in values)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def described(values: Any, array: NDArray[Any]) -> str:
    """Describe an input of a wrong shape."""
    if array.ndim > 0:
        return f"an array of shape {array.shape}"
    return repr(values) if values is None or isinstance(values, str | Real) else f"one {type(values).__name__}"


def numeric(values: NDArray[Any], *, parameter: str) -> NDArray[Any]:
    """Return numbers as they are (bool as uint8, objects converted); refuse text, dates and complex numbers."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind in "fiu":
        return values
    wrong = next((v for v in values.flat if not (isinstance(v, Real | Decimal | np.bool_) or is_missing(v))), None)
    if values.dtype.kind != "O" or wrong is not None:
        shown = wrong.item() if isinstance(wrong, np.generic) else wrong
        raise InvalidInputError(f"{parameter} must be numbers; got {shown!r}: convert the values to numbers first")
    return np.array([np.nan if is_missing(v) else float(v) for v in values.flat]).reshape(values.shape)


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA from real values."""
    if value is None:
        return True
    differs = value != value
    return bool(differs) if isinstance(differs, (bool, np.bool_)) else type(value).__name__ == "NAType"


def finite(
    matrix: NDArray[Any], *, parameter: str, names: Sequence[str] = (), rows: NDArray[np.intp] | None = None
) -> None:
    """Check that no value is NaN or infinite; name the first offending column, and its row in the whole table."""
    if matrix.dtype.kind not in "fc":
        return
    # Of all ways to look at every value, einsum's sum is the cheapest; it is finite unless something in it is not (or
    # it overflows). Half precision would overflow at once.
    half = np.float64 if matrix.dtype == np.float16 else None
    with np.errstate(all="ignore"):
        if np.isfinite(np.einsum("ij->" if matrix.ndim == 2 else "i->", matrix, dtype=half)):
            return
    where, *columns = np.nonzero(~np.isfinite(matrix))
    if where.size == 0:
        return
    name = f" in {names[columns[0][0]]!r}" if columns and len(names) else ""
    number = int(where[0]) if rows is None else int(rows[where[0]])
    raise InvalidInputError(
        f"{parameter} must be finite; got {matrix[where[0], *(c[0] for c in columns)]!s}{name} at row {number} "
        f"({where.size} such value{'s' if where.size > 1 else ''}): drop or impute these rows first"
    )


def same_order(**inputs: Any) -> None:
    """Check that pandas inputs with the same index labels have them in the same order.

    Inputs are put together by position. Two that carry the same labels in another order were meant to be put together
    by label, and by position every figure would be wrong without a word.
    """
    seen: tuple[str, Any] | None = None
    for parameter, value in inputs.items():
        parts = value.values() if isinstance(value, Mapping) and not issparse(value) else (value,)
        for part in parts:
            # Groups that are only probable keep the index of the table that they came from.
            name = "index" if is_series(part) or is_frame(part) else "row_index"
            index = getattr(part, name, None)
            if index is None or not hasattr(index, "equals"):
                continue
            if seen is None:
                seen = parameter, index
            elif index is not seen[1] and len(index) == len(seen[1]) and not index.equals(seen[1]):
                _refuse_permutation(seen, (parameter, index))


def same_table(first: Any, second: Any) -> bool:
    """Tell whether two tables of any kind hold the same values in the same places.

    Examples
    --------
    >>> table = np.array([[1.0, np.nan], [3.0, 4.0]])
    >>> same_table(table, table.copy()), same_table(table, table[::-1])
    (True, False)
    """
    if first is second:
        return True
    if issparse(first) or issparse(second):
        alike = issparse(first) and issparse(second) and first.shape == second.shape
        return bool(alike and (first != second).nnz == 0)
    parts = [frame_columns(one, parameter="X")[0] if is_frame(one) else [np.asarray(one)] for one in (first, second)]
    if len(parts[0]) != len(parts[1]):
        return False
    return all(
        a.shape == b.shape and bool(np.all((a == b) | ((a != a) & (b != b)))) for a, b in zip(*parts, strict=True)
    )


def _refuse_permutation(first: tuple[str, Any], second: tuple[str, Any]) -> None:
    try:
        permuted = bool(first[1].sort_values().equals(second[1].sort_values()))
    except TypeError:  # labels of several types have no order
        permuted = set(first[1]) == set(second[1])
    if permuted:
        raise InvalidInputError(
            f"{first[0]} and {second[0]} must have their rows in one order; got the same index labels in another "
            f"order: align them first (for example {second[0]}.loc[{first[0]}.index]), or pass arrays, which "
            "are matched by position"
        )


def factorize(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the sorted distinct values of an array of numbers, and each row's index among them.

    Examples
    --------
    >>> factorize(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 0, 1]))
    """
    if values.dtype.kind == "b":
        distinct, codes = factorize(values.view(np.uint8))
        return distinct.astype(bool), codes
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low <= 4 * len(values) and high <= np.iinfo(np.intp).max:  # a table of marks needs no sort
            shifted = values.astype(np.intp) - low
            present = np.zeros(high - low + 1, dtype=bool)
            present[shifted] = True
            found = np.flatnonzero(present)
            return (found + low).astype(values.dtype), (np.cumsum(present, dtype=np.intp) - 1)[shifted]
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, codes.astype(np.intp, copy=False)


def factorize_objects(values: NDArray[Any], *, parameter: str) -> tuple[list[Any], IntArray]:
    """Return the distinct objects (sorted where they can be) and each row's index among them."""
    items = values.tolist()
    try:
        distinct = list(dict.fromkeys(items))
    except TypeError as error:
        raise InvalidInputError(f"{parameter} must hold hashable values; {error}") from None
    try:
        distinct.sort()
    except TypeError:  # several types have no common order: that of their names, and of first appearance
        distinct.sort(key=lambda value: type(value).__name__)
    position = {value: index for index, value in enumerate(distinct)}
    return distinct, np.fromiter(map(position.__getitem__, items), dtype=np.intp, count=len(items))


def library_of(*inputs: Any) -> str:
    """Return the dataframe library that inputs come from, for results to be given back in: pandas where there is none.

    Examples
    --------
    >>> library_of(None, [1, 2])
    'pandas'
    """
    for values in inputs:
        parts = list(values.values()) if isinstance(values, Mapping) else [values]
        for part in parts:
            if is_frame(part) or is_series(part):
                return str(nw.get_native_namespace(part).__name__)
    return "pandas"


def to_frame(columns: Mapping[str, Any], library: str) -> Any:
    """Return columns as a dataframe of a library: "pandas", "polars" or "pyarrow"."""
    module = require(library, extra="pandas" if library == "pandas" else "all", purpose="to_frame")
    return module.table(dict(columns)) if library == "pyarrow" else module.DataFrame(dict(columns))


def plain_number(value: float) -> str:
    """Write a number with the shortest digits that give it back, as JavaScript writes it.

    Examples
    --------
    >>> plain_number(1.0), plain_number(0.1), plain_number(2.5e-05), plain_number(1.5e-07)
    ('1', '0.1', '0.000025', '1.5e-7')
    """
    if value.is_integer():
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    if not exponent:
        return digits
    if abs(value) >= 1e-6:
        return format(Decimal(repr(value)), "f")
    return f"{digits}e{int(exponent)}"


def family_of(model: str) -> str:
    """Return the family of a model: the part of its name before a slash.

    Examples
    --------
    >>> family_of("trees/17"), family_of("logistic")
    ('trees', 'models')
    """
    family, slash, _ = model.partition("/")
    return family if slash else DEFAULT_FAMILY
