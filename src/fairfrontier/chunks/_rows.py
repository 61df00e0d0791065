"""Some rows of a larger table: labels, scores, groups, weights and folds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import numeric
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a larger table.

    Attributes
    ----------
    y : ndarray of shape (n,)
        The target, as it stands in the table: two classes of any type, or numbers.
    scores : ndarray of shape (n, k)
        Predictions of `k` models.
    sensitive : dict of str to ndarray of shape (n,)
        The sensitive attributes, by name.
    names : tuple of str, length k
        The models.
    row : ndarray of shape (n,)
        The number of each row in the whole table, from 0: folds are drawn from it.
    weight : ndarray of shape (n,) or None
        Sample weights.
    fold : ndarray of shape (n,) or None
        The fold of each row, where the table has a column of them.
    """

    y: NDArray[Any]
    scores: NDArray[Any]
    sensitive: Mapping[str, NDArray[Any]]
    names: tuple[str, ...]
    row: IntArray
    weight: FloatArray | None = None
    fold: IntArray | None = None

    @classmethod
    def validated(
        cls,
        y: Any,
        scores: Any,
        sensitive_features: Any,
        *,
        sample_weight: Any = None,
        fold: Any = None,
        names: tuple[str, ...] | None = None,
        first_row: int = 0,
    ) -> "Chunk":
        """Check what a caller gave for some rows; `first_row` is the number of the first of them."""
        preds = validate.predictions(scores)
        n_rows = len(preds.matrix)
        target = validate.column(y, parameter="y_true")
        attributes = validate.attribute_columns(sensitive_features)
        validate.same_length(len(target), y_preds=n_rows)
        for name, values in attributes.items():
            validate.same_length(n_rows, **{f"sensitive_features[{name!r}]": len(values)})
        if names is not None and len(names) != preds.matrix.shape[1]:
            raise InvalidInputError(
                f"every chunk must have the scores of the same {len(names)} models; got {preds.matrix.shape[1]} "
                f"columns in the chunk that begins at row {first_row}"
            )
        return cls(
            target,
            preds.matrix,
            attributes,
            preds.names if names is None else names,
            np.arange(first_row, first_row + n_rows),
            None if sample_weight is None else _weights(sample_weight, n_rows, first_row),
            None if fold is None else _folds(fold, n_rows, first_row),
        )

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: IntArray | NDArray[np.bool_]) -> "Chunk":
        """Return some of the rows, by index or mask."""
        return replace(
            self,
            y=self.y[rows],
            scores=self.scores[rows],
            sensitive={name: values[rows] for name, values in self.sensitive.items()},
            row=self.row[rows],
            weight=None if self.weight is None else self.weight[rows],
            fold=None if self.fold is None else self.fold[rows],
        )

    def numbers(self) -> FloatArray:
        """Return a regression target as finite floats."""
        values = numeric(self.y, parameter="y_true").astype(np.float64, copy=False)
        self.refuse_infinite(values, parameter="y_true")
        return values

    def refuse_infinite(self, values: NDArray[Any], *, parameter: str) -> None:
        """Raise if a value is NaN or infinite, and say in which row of the whole table."""
        # Of all ways to look at every value, einsum's sum is the cheapest; it is finite unless something in it is not.
        with np.errstate(all="ignore"):
            if values.dtype.kind != "f" or np.isfinite(np.einsum("ij->" if values.ndim == 2 else "i->", values)):
                return
        rows, *columns = np.nonzero(~np.isfinite(values))
        if rows.size == 0:
            return
        where = f" in {self.names[columns[0][0]]!r}" if columns else ""
        raise InvalidInputError(
            f"{parameter} must be finite; got {values[rows[0], *(c[0] for c in columns)]!s}{where} at row "
            f"{self.row[rows[0]]}: drop or impute these rows first"
        )


def _weights(sample_weight: Any, n_rows: int, first_row: int) -> FloatArray:
    """Return non-negative finite weights; in one chunk they may all be zero."""
    values = numeric(validate.column(sample_weight, parameter="sample_weight"), parameter="sample_weight")
    values = values.astype(np.float64, copy=False)
    validate.same_length(n_rows, sample_weight=len(values))
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        raise InvalidInputError(
            f"sample_weight must be finite and non-negative; got {values[wrong[0]]:g} at row {first_row + wrong[0]}: "
            "give 0 to rows that must not count"
        )
    return values


def _folds(fold: Any, n_rows: int, first_row: int) -> IntArray:
    values = validate.column(fold, parameter="fold")
    validate.same_length(n_rows, fold=len(values))
    if values.dtype.kind not in "iu" or (values.size and values.min() < 0):
        raise InvalidInputError(
            f"fold must be integers from 0, one a row; got type {values.dtype} with {values[:1].tolist()} at row "
            f"{first_row}"
        )
    return values.astype(np.intp, copy=False)
