"""The encoding that is saved with the model: from typed columns to one matrix of finite numbers."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.search._table import CATEGORY, DATE, Columns, as_kind, day_numbers, kind_of, missing_in

# Categories of a feature that become columns of their own: the most frequent ones with at least so many rows.
MOST_LEVELS, LEAST_ROWS = 40, 10


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes numbers.

    Attributes
    ----------
    name, kind : str
        The column, and what it holds.
    levels : list of str
        The categories that have an indicator each; all others together are the absence of all of them.
    typical : float
        What stands for a missing number or date: the median.
    has_missing : bool
        Whether an indicator says that the value is missing.
    """

    name: str
    kind: str
    levels: list[str]
    typical: float
    has_missing: bool

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

    def encode(self, values: NDArray[Any], out: FloatArray) -> None:
        """Write the numbers of a column into `out` (n, width)."""
        column = as_kind(values, self.kind, name=self.name)
        missing = missing_in(column)
        if self.kind == CATEGORY:
            position = {level: j for j, level in enumerate(self.levels)}
            codes = np.array([position.get(value, -1) for value in column.tolist()], dtype=np.intp)
            known = codes >= 0
            out[np.flatnonzero(known), codes[known]] = 1.0
        else:
            numbers = np.where(missing, self.typical, day_numbers(column) if self.kind == DATE else column)
            out[:, 0] = numbers
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

    def transform(self, X: Columns) -> FloatArray:
        """Return the matrix (n, q)."""
        check_is_fitted(self)
        n_rows = len(next(iter(X.values())))
        matrix = np.zeros((n_rows, sum(code.width for code in self.codes_)))
        for code, block in zip(self.codes_, self.blocks.values(), strict=True):
            code.encode(X[code.name], matrix[:, block])
        return matrix
