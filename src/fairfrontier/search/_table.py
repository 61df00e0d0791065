"""From a table of any kind to typed columns, and from these to finite numbers; and what is new in another table.

Columns are numbers, categories and dates, with what is missing."""

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fairfrontier._columns import is_frame, is_missing, unique_names
from fairfrontier._validation import FloatArray
from fairfrontier.chunks._formats import NOTHING
from fairfrontier.exceptions import InvalidInputError

NUMBER, CATEGORY, DATE = "number", "category", "date"
# A number as people write it; a leading zero is a sign of a code. What a value means must not depend on other rows, so
# that a comma between thousands has three digits after it and a decimal comma one or two.
_AMOUNT = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_COMMA_AMOUNT = re.compile(r"[-+]?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:\.\d{3})+),\d{1,2}")
# Currencies and per cent before or after it: money is no category.
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|SGD|HKD|TRY"
_UNIT = re.compile(
    rf"(?P<sign>[-+]?)(?P<before>[$€£¥₹]|{_CODES})?\s*(?P<number>[-+]?[\d.].*?)\s*(?P<after>[$€£¥₹%]|{_CODES})?"
)
_DIGITS = re.compile(r"[-+]?\d+(?:\.\d*)?")
# A date of ISO 8601, perhaps with a time of day, or one whose order its marks tell: 2024/12/31, 31.12.2024; a month
# stands for its first day: 2024-12, Dec-2024.
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?")
_DATE_ORDERS = (
    re.compile(r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})"),
    re.compile(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})"),
    re.compile(r"(?P<y>(19|20)\d{2})-(?P<m>\d{2})(?P<d>)"),
    re.compile(rf"((?P<d>\d{{1,2}})[- ])?(?P<m>{_MONTHS})[a-z]*\.?[- ](?P<y>\d{{4}})", re.I),
    re.compile(rf"(?P<m>{_MONTHS})[a-z]*\.? (?P<d>\d{{1,2}}), (?P<y>\d{{4}})", re.I),
)
# Text that is longer is no amount, whatever it looks like: to look for one takes time that grows with its square.
_LONGEST_AMOUNT = 100
# Text that stands for nothing.
_NOTHING = frozenset({"", "none"} | {word.lower() for word in NOTHING})

Columns = dict[str, NDArray[Any]]
# Categories of a feature that become columns of their own: the most frequent ones with at least so many rows.
MOST_LEVELS, LEAST_ROWS = 40, 10
# Larger numbers are taken to be this one: learners compute squares, and trees in single precision.
_LARGEST = 1e30


def read_columns(
    X: Any, *, parameter: str = "X", text: Collection[str] = (), categories: Collection[str] = ()
) -> Columns:
    """Return the columns of a table by name: float64, datetime64[s], or objects that are text or None.

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
        columns = {
            str(name): _of_series(frame.get_column(name), as_text=name in text, is_category=str(name) in categories)
            for name in frame.columns
        }
    elif isinstance(X, Mapping):
        columns = {
            str(name): _typed(np.asarray(values), is_category=str(name) in categories) for name, values in X.items()
        }
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise InvalidInputError(f"{parameter} must be a table (n, p); got an array of shape {array.shape}")
        names = [f"x{j}" for j in range(array.shape[1])]
        columns = {name: _typed(array[:, j], is_category=name in categories) for j, name in enumerate(names)}
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


def as_kind(
    values: NDArray[Any], kind: str, *, name: str, levels: Sequence[str] = (), first_row: int = 0
) -> NDArray[Any]:
    """Return a column as the kind that it had when the model was fitted; numbers become the `levels` that they are.

    Raises
    ------
    InvalidInputError
        If there is text where there were numbers or dates; it says in which row.
    """
    if kind_of(values) == kind or missing_in(values).all():
        return values
    if kind == CATEGORY:
        return _texts(values, levels)
    known = ~missing_in(values)
    amounts = _amounts([str(value) for value in values[known].tolist()]) if kind == NUMBER else None
    if amounts is not None:
        return _at(known, amounts)
    read = _amount if kind == NUMBER else _iso_date
    wrong = [row for row in np.flatnonzero(known) if read(str(values[row])) is None]
    found = wrong[0] if wrong else int(np.argmax(known))
    raise InvalidInputError(
        f"column {name!r} must hold {kind}s, as when the model was fitted; got {str(values[found])[:40]!r} in row "
        f"{first_row + found}: correct the column"
    )


def day_numbers(values: NDArray[Any]) -> FloatArray:
    """Return dates as days since 1970, NaN for what is missing."""
    if values.dtype.kind != "M":  # all is missing
        return np.full(len(values), np.nan)
    days = values.astype("datetime64[s]").astype(np.int64) / 86400.0
    return np.where(np.isnat(values), np.nan, days)


def _of_series(series: Any, *, as_text: bool, is_category: bool) -> NDArray[Any]:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return _finite(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    if dtype in (nw.Date, nw.Datetime):
        if getattr(dtype, "time_zone", None):
            series = series.dt.replace_time_zone(None)
        return np.asarray(series.to_numpy()).astype("datetime64[s]")
    values = np.array(series.to_list(), dtype=object)
    if as_text:
        return np.array([None if isinstance(one, str) and not one.strip() else one for one in values], dtype=object)
    return _typed(values, is_category=is_category)


def _typed(values: NDArray[Any], *, is_category: bool) -> NDArray[Any]:
    """Return a column as numbers, dates or text, whichever all of its values are; the text of categories stays."""
    if values.ndim != 1:
        raise InvalidInputError(f"X must have columns of one value per row; got an array of shape {values.shape}")
    if values.dtype.kind in "fiub":
        return _finite(values.astype(np.float64))
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    missing = np.array(
        [is_missing(value) or str(value).strip().lower() in _NOTHING for value in values.tolist()], dtype=bool
    )
    known = [value for value, absent in zip(values.tolist(), missing.tolist(), strict=True) if not absent]
    if all(isinstance(value, (int, float, np.number, np.bool_)) for value in known):
        return _finite(_at(~missing, np.array(known, dtype=np.float64)))
    texts = [str(value) for value in known]
    # Whole numbers that are written as text may be codes; points, commas, units and words for nothing are signs of
    # amounts.
    words = any(isinstance(value, str) and value.strip() for value in values[missing].tolist())
    if not is_category and (words or any(not _DIGITS.fullmatch(text) or "." in text for text in texts)):
        amounts = _amounts(texts)
        if amounts is not None:
            return _at(~missing, amounts)
    written = [] if is_category else _read_all(texts, _iso_date)
    if written:
        try:
            dates = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[s]")
            dates[~missing] = np.array(written, dtype="datetime64[s]")
            return dates
        except ValueError:  # 2020-02-31: no date after all
            pass
    result = np.full(len(values), None, dtype=object)
    result[~missing] = texts
    return result


def _at(rows: NDArray[np.bool_], numbers: FloatArray) -> FloatArray:
    """Return numbers at some rows (n,), NaN at the others."""
    column = np.full(len(rows), np.nan)
    column[rows] = numbers
    return column


def _finite(numbers: FloatArray) -> FloatArray:
    """Return numbers, NaN for infinite ones."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _amounts(texts: list[str]) -> FloatArray | None:
    """Return numbers that are written as text; None: some are none, or they have several units or decimal marks."""
    found = _read_all(texts, _amount)
    if not found or len({unit for _, unit, _ in found}) > 1 or {mark for _, _, mark in found} >= {",", "."}:
        return None
    return _finite(np.array([number for number, _, _ in found]))


def _read_all(texts: list[str], read: Callable[[str], Any]) -> list[Any]:
    """Return what each text says, or nothing as soon as one says nothing."""
    found = []
    for text in texts:
        one = read(text)
        if one is None:
            return []
        found.append(one)
    return found


def _amount(text: str) -> tuple[float, str, str] | None:
    """Return a number that is written as text, its unit, and its decimal mark if there is no doubt about it."""
    text = text.strip()
    if len(text) > _LONGEST_AMOUNT:
        return None
    if text.startswith("(") and text.endswith(")"):  # as accountants write what is negative
        inside = _amount(text[1:-1])
        return None if inside is None or inside[0] < 0.0 else (-inside[0], *inside[1:])
    parts = _UNIT.fullmatch(text)
    if parts is None or (parts["before"] and parts["after"]):
        return None
    number, unit = parts["sign"] + parts["number"], parts["before"] or parts["after"] or ""
    if _AMOUNT.fullmatch(number):
        return float(number.replace(",", "")), unit, "." if "." in number or "," in number else ""
    if _COMMA_AMOUNT.fullmatch(number):
        return float(number.replace(".", "").replace(",", ".")), unit, ","
    return None


def _iso_date(text: str) -> str | None:
    """Return a date as ISO 8601 writes it; None: it is none, or its order is in doubt, as that of 01/02/2024."""
    if _DATE_TEXT.fullmatch(text):
        return text.replace(" ", "T")
    found = next(filter(None, (order.fullmatch(text.strip()) for order in _DATE_ORDERS)), None)
    if found is None:
        return None
    names = _MONTHS.split("|")
    month = names.index(found["m"].lower()) + 1 if found["m"].lower() in names else found["m"]
    return f"{found['y']}-{month:0>2}-{found['d'] or '1':0>2}"


def _texts(values: NDArray[Any], levels: Sequence[str]) -> NDArray[Any]:
    """Return numbers or dates as text: the level that a number is (of 1: "1", "1.0", "01" or "true"), or its digits."""
    same: dict[float, str] = {}
    for level in levels:
        number = {"true": 1.0, "false": 0.0}.get(level.lower())
        if number is None and _DIGITS.fullmatch(level):
            number = float(level)
        if number is not None:
            same.setdefault(number, level)
    result = np.full(len(values), None, dtype=object)
    for row in np.flatnonzero(~missing_in(values)):
        value = values[row]
        whole = values.dtype.kind == "f" and value == int(value)
        text = str(int(value)) if whole else str(value)
        result[row] = same.get(float(value), text) if values.dtype.kind == "f" and text not in levels else text
    return result


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes numbers."""

    # name, kind: the column, and what it holds
    name: str
    kind: str
    levels: list[str]  # the categories that have an indicator each; all others together are the absence of all of them
    typical: float  # what stands for a missing number or date: the median
    has_missing: bool  # whether an indicator says that the value is missing

    @property
    def width(self) -> int:
        """Return the number of columns that it becomes."""
        own = len(self.levels) if self.kind == CATEGORY else 3 if self.kind == DATE else 1
        return own + self.has_missing

    @classmethod
    def learned(cls, name: str, values: NDArray[Any]) -> "ColumnCode":
        """Return the code of a column of training rows."""
        missing = missing_in(values)
        kind, some = kind_of(values), bool(missing.any())
        if kind == CATEGORY:
            found, counts = np.unique(values[~missing].astype(str), return_counts=True)
            frequent = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
            kept = np.sort(frequent[counts[frequent] >= min(LEAST_ROWS, max(counts, default=0))])
            return cls(name, kind, [str(level) for level in found[kept]], 0.0, some)
        numbers = day_numbers(values) if kind == DATE else values
        return cls(name, kind, [], float(np.median(numbers[~missing])) if not missing.all() else 0.0, some)

    def encode(self, values: NDArray[Any], out: FloatArray, first_row: int = 0) -> None:
        """Write the numbers of a column into `out` (n, width); errors count rows from `first_row`."""
        column = as_kind(values, self.kind, name=self.name, levels=self.levels, first_row=first_row)
        missing = missing_in(column)
        if self.kind == CATEGORY:
            position = {level: j for j, level in enumerate(self.levels)}
            codes = np.array([position.get(value, -1) for value in column.tolist()], dtype=np.intp)
            known = codes >= 0
            out[np.flatnonzero(known), codes[known]] = 1.0
        else:
            numbers = np.where(missing, self.typical, day_numbers(column) if self.kind == DATE else column)
            out[:, 0] = np.clip(numbers, -_LARGEST, _LARGEST)
            if self.kind == DATE:
                days = np.floor(numbers).astype("datetime64[D]")
                out[:, 1] = days.astype("datetime64[M]").astype(np.int64) % 12
                out[:, 2] = (days.astype(np.int64) + 3) % 7
        if self.has_missing:
            out[:, -1] = missing


class TableEncoding(TransformerMixin, BaseEstimator):
    """Numbers from typed columns: medians and indicators for what is missing, indicators of frequent categories.

    Attributes
    ----------
    codes_ : list of ColumnCode
        One per column.
    """

    def fit(self, X: Columns, y: Any = None) -> Self:
        """Learn medians and categories from training rows."""
        self.codes_ = [ColumnCode.learned(name, values) for name, values in X.items()]
        self.codes_ = [code for code in self.codes_ if code.width]
        if not self.codes_:
            raise InvalidInputError("X must have a column that tells rows apart; got none")
        return self

    @property
    def names(self) -> list[str]:
        """Return the columns that are needed."""
        return [code.name for code in self.codes_]

    @property
    def blocks(self) -> dict[str, slice]:
        """Return the columns of the matrix that each column of the table becomes."""
        ends = np.cumsum([code.width for code in self.codes_])
        return {code.name: slice(int(end) - code.width, int(end)) for code, end in zip(self.codes_, ends, strict=True)}

    @property
    def categories(self) -> set[str]:
        """Return the columns that hold categories."""
        return {code.name for code in self.codes_ if code.kind == CATEGORY}

    def transform(self, X: Columns, first_row: int = 0) -> FloatArray:
        """Return the matrix (n, q); errors count rows from `first_row`."""
        check_is_fitted(self)
        n_rows = len(next(iter(X.values())))
        matrix = np.zeros((n_rows, sum(code.width for code in self.codes_)))
        for code, block in zip(self.codes_, self.blocks.values(), strict=True):
            code.encode(X[code.name], matrix[:, block], first_row)
        return matrix


# Categories of a column that are remembered; with more than this, new ones are nothing new.
_MOST_SEEN = 10_000


@dataclass(frozen=True, eq=False)
class News:
    """What is new in some rows; that of two parts can be added."""

    # for each column with categories that the search never saw, the rows that have one, and an example
    categories: dict[str, tuple[int, str]]
    blanks: dict[str, int]  # for each column in which the search had a value in every row, the rows without one

    def __add__(self, other: "News") -> "News":
        """Return what is new in both parts together."""
        categories = dict(other.categories)
        for name, (rows, example) in self.categories.items():
            categories[name] = rows + other.categories.get(name, (0, ""))[0], example
        names = dict.fromkeys((*self.blanks, *other.blanks))
        return News(categories, {name: self.blanks.get(name, 0) + other.blanks.get(name, 0) for name in names})

    def words(self) -> Iterator[str]:
        """Yield one line for each column that has something new."""
        for name, (rows, example) in self.categories.items():
            yield f"{name}: a category that the search never saw in {_rows(rows)}, such as {example[:40]!r}"
        for name, rows in self.blanks.items():
            yield f"{name}: no value in {_rows(rows)}; in the search every row had one"


def seen_in(columns: Columns) -> dict[str, dict[str, Any]]:
    """Return what a table has, for a model file: per column hashes of its categories, and whether values are missing.

    Hashes, because rare categories may be as telling as names; None where there are too many.
    """
    seen: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        missing = missing_in(values)
        levels: set[str] = set(values[~missing].tolist()) if kind_of(values) == CATEGORY else set()
        hashes = "".join(sorted(map(_hash, levels))) if len(levels) <= _MOST_SEEN else None
        seen[name] = {"hashes": hashes, "missing": bool(missing.any())}
    return seen


def news_of(columns: Columns, kinds: dict[str, str], seen: dict[str, dict[str, Any]]) -> News:
    """Return what is new in a table."""
    categories: dict[str, tuple[int, str]] = {}
    blanks: dict[str, int] = {}
    for name, values in columns.items():
        if name not in seen:
            continue
        missing = missing_in(values)
        if missing.any() and not seen[name]["missing"]:
            blanks[name] = int(missing.sum())
        hashes = seen[name]["hashes"]
        if kinds[name] != CATEGORY or hashes is None or missing.all():
            continue
        known = {hashes[start : start + 8] for start in range(0, len(hashes), 8)}
        found, counts = np.unique(values[~missing].astype(str), return_counts=True)
        new = [i for i, level in enumerate(found.tolist()) if _hash(level) not in known]
        if new:
            categories[name] = int(counts[new].sum()), str(found[new[int(np.argmax(counts[new]))]])
    return News(categories, blanks)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _hash(level: str) -> str:
    return f"{zlib.crc32(level.encode('utf8', 'surrogatepass')):08x}"
