"""From a table of any kind to typed columns: numbers, categories and dates, with what is missing."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fairfrontier._columns import is_frame, is_missing, unique_names
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError

NUMBER, CATEGORY, DATE = "number", "category", "date"
# A date or a time of day of ISO 8601, as files write it.
# A number as people write it; a leading zero is a sign of a code.
_AMOUNT = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_DATE_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?")
# Text that stands for nothing.
_NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none"})

Columns = dict[str, NDArray[Any]]


def read_columns(X: Any, *, parameter: str = "X", text: Collection[str] = ()) -> Columns:
    """Return the columns of a table by name: float64, datetime64[s], or objects that are text or None.

    Parameters
    ----------
    X : dataframe, dict of columns, or array-like of shape (n, p)
        The table; the columns of an array are called x0, x1, ….
    parameter : str
        What errors call the table.
    text : collection of str
        Columns that stay text even if all of it looks like dates.

    Examples
    --------
    >>> columns = read_columns({"age": [30, None], "job": ["clerk", None], "since": ["2020-01-31", "2021-02-28"]})
    >>> [values.dtype.kind for values in columns.values()]
    ['f', 'O', 'M']
    """
    if issparse(X):
        raise InvalidInputError(f"{parameter} must be a table with a value in each cell; got a sparse matrix")
    if is_frame(X):
        unique_names([str(name) for name in getattr(X, "column_names", None) or X.columns], parameter=parameter)
        frame = nw.from_native(X, eager_only=True)
        columns = {str(name): _of_series(frame.get_column(name), as_text=name in text) for name in frame.columns}
    elif isinstance(X, Mapping):
        columns = {str(name): _typed(np.asarray(values)) for name, values in X.items()}
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise InvalidInputError(f"{parameter} must be a table (n, p); got an array of shape {array.shape}")
        columns = {f"x{j}": _typed(array[:, j]) for j in range(array.shape[1])}
    if not columns or len(next(iter(columns.values()))) == 0:
        raise InvalidInputError(f"{parameter} must have at least one column and one row; got none")
    return columns


def kind_of(values: NDArray[Any]) -> str:
    """Return what a column of `read_columns` holds."""
    return {"f": NUMBER, "M": DATE}.get(values.dtype.kind, CATEGORY)


def missing_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which values of a column of `read_columns` are missing."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "M":
        return np.asarray(np.isnat(values))
    return np.array([value is None for value in values.tolist()], dtype=bool)


def as_kind(values: NDArray[Any], kind: str, *, name: str) -> NDArray[Any]:
    """Return a column as the kind that it had when the model was fitted.

    Raises
    ------
    InvalidInputError
        If there is text where there were numbers or dates; it says in which row.
    """
    if kind_of(values) == kind or missing_in(values).all():
        return values
    if kind == CATEGORY:
        return _texts(values)
    known = ~missing_in(values)
    amounts = _amounts([str(value) for value in values[known].tolist()]) if kind == NUMBER else None
    if amounts is not None:
        numbers = np.full(len(values), np.nan)
        numbers[known] = amounts
        return numbers
    found = np.flatnonzero(~missing_in(values))[0]
    raise InvalidInputError(
        f"column {name!r} must hold {kind}s, as when the model was fitted; got {str(values[found])[:40]!r} in row "
        f"{found}: mend the column"
    )


def day_numbers(values: NDArray[Any]) -> FloatArray:
    """Return dates as days since 1970, NaN for what is missing."""
    if values.dtype.kind != "M":  # all is missing
        return np.full(len(values), np.nan)
    days = values.astype("datetime64[s]").astype(np.int64) / 86400.0
    return np.where(np.isnat(values), np.nan, days)


def _of_series(series: Any, *, as_text: bool = False) -> NDArray[Any]:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        numbers = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if dtype in (nw.Date, nw.Datetime):
        if getattr(dtype, "time_zone", None):
            series = series.dt.replace_time_zone(None)
        return np.asarray(series.to_numpy()).astype("datetime64[s]")
    values = np.array(series.to_list(), dtype=object)
    return values if as_text else _typed(values)


def _typed(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of an array as numbers, dates or text, whichever all of its values are."""
    if values.ndim != 1:
        raise InvalidInputError(f"X must have columns of one value per row; got an array of shape {values.shape}")
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    missing = np.array([is_missing(value) or str(value).strip().lower() in _NOTHING for value in values.tolist()])
    known = [value for value, absent in zip(values.tolist(), missing.tolist(), strict=True) if not absent]
    if all(isinstance(value, (int, float, np.number, np.bool_)) for value in known):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = np.array(known, dtype=np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    texts = [str(value) for value in known]
    # Whole numbers that are written as text may be codes; points, commas and words for nothing are signs of amounts.
    words = any(isinstance(value, str) and value.strip() for value in values[missing].tolist())
    if words or any("." in text or "," in text for text in texts):
        amounts = _amounts(texts)
        if amounts is not None:
            numbers = np.full(len(values), np.nan)
            numbers[~missing] = amounts
            return numbers
    if texts and all(_DATE_TEXT.fullmatch(text) for text in texts):
        try:
            dates = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[s]")
            dates[~missing] = np.array([text.replace(" ", "T") for text in texts], dtype="datetime64[s]")
            return dates
        except ValueError:  # 2020-02-31: no date after all
            pass
    result = np.full(len(values), None, dtype=object)
    result[~missing] = texts
    return result


def _amounts(texts: list[str]) -> FloatArray | None:
    """Return numbers that are written as text, with or without commas between thousands; None: some are none."""
    if not texts or not all(_AMOUNT.fullmatch(text.strip()) for text in texts):
        return None
    return np.array([float(text.strip().replace(",", "")) for text in texts])


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers or dates as the text that a file would have; a whole number has no point."""
    result = np.full(len(values), None, dtype=object)
    for row in np.flatnonzero(~missing_in(values)):
        value = values[row]
        whole = values.dtype.kind == "f" and value == int(value)
        result[row] = str(int(value)) if whole else str(value)
    return result
