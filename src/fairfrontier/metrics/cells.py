"""Cells of rows, and sums over them for all models at once.

A *cell* is a set of rows that agree in everything a measure looks at: the label and each sensitive attribute. Every
group-fairness measure and every accuracy measure here is a function of a few sums per cell, so the rows are read once,
by matrix products, whatever the number of models. Sums are additive: those of two parts of the data can be added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import Attribute, FloatArray, IntArray, finite

# Elements of a block of predictions: small enough to stay in the processor's cache between the steps of one block.
_BLOCK = 2**17
# Up to this many cells one matrix product per block is faster than sorting the rows by cell.
_FEW_CELLS = 48


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows partitioned by label and sensitive attributes.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The cell of each row.
    label : ndarray of shape (c,)
        The label of each cell (all False for regression).
    groups : ndarray of shape (c, a)
        The group of each cell in each of the `a` attributes, an index into `Attribute.values`.
    attributes : tuple of Attribute
        The attributes, in the order of the columns of `groups`.
    """

    codes: IntArray
    label: NDArray[np.bool_]
    groups: IntArray
    attributes: tuple[Attribute, ...]

    @property
    def n_cells(self) -> int:
        return len(self.label)

    @classmethod
    def from_rows(cls, label: NDArray[np.bool_] | None, attributes: Sequence[Attribute]) -> "Cells":
        """Partition rows by `label` (None: no labels) and `attributes`."""
        n_rows = len(attributes[0].codes)
        code = np.zeros(n_rows, dtype=np.intp) if label is None else label.astype(np.intp)
        first = np.zeros(1, dtype=np.intp)
        for attribute in attributes:
            # Renumber after every attribute, so that the product of many groups cannot overflow.
            code, first = _renumber(code * len(attribute.values) + attribute.codes)
        of_cell = np.zeros(len(first), dtype=bool) if label is None else label[first]
        groups = np.stack([attribute.codes[first] for attribute in attributes], axis=1)
        return cls(code, of_cell, groups, tuple(attributes))


def _renumber(code: IntArray) -> tuple[IntArray, IntArray]:
    """Return codes 0…c−1 in the same order, and a row of each code."""
    top = int(code.max()) + 1
    if top > 4 * len(code) + 1024:
        _, first, dense = np.unique(code, return_index=True, return_inverse=True)
        return dense.astype(np.intp, copy=False), first.astype(np.intp, copy=False)
    row_of = np.full(top, -1, dtype=np.intp)
    row_of[code[::-1]] = np.arange(len(code) - 1, -1, -1, dtype=np.intp)
    present = row_of >= 0
    return (np.cumsum(present, dtype=np.intp) - 1)[code], row_of[present]


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over the rows of each cell, for `k` models.

    Attributes
    ----------
    weight : ndarray of shape (c,)
        Total weight of each cell's rows (their number without weights).
    outcome : ndarray of shape (c, k)
        Weighted sum of the decisions, or of the scores where nothing is thresholded.
    squared_error : ndarray of shape (k,) or None
        Weighted sum of (score − y)², where a measure asks for it.
    y_sum, y_square_sum : float
        Weighted sums of y and of (y − mean y)², for the measures of regression.
    """

    weight: FloatArray
    outcome: FloatArray
    squared_error: FloatArray | None = None
    y_sum: float = 0.0
    y_square_sum: float = 0.0

    def append(self, outcome: FloatArray, squared_error: FloatArray) -> "CellSums":
        """Return sums with further models behind these."""
        squared = None if self.squared_error is None else np.concatenate([self.squared_error, squared_error])
        return replace(self, outcome=np.concatenate([self.outcome, outcome], axis=1), squared_error=squared)


def cell_sums(
    matrix: NDArray[Any],
    cells: Cells,
    *,
    threshold: float | None,
    weight: FloatArray | None = None,
    y: FloatArray | None = None,
    names: Sequence[str] = (),
) -> CellSums:
    """Sum decisions (or scores) of every model over every cell.

    Parameters
    ----------
    matrix : ndarray of shape (n, k)
        Scores of `k` models.
    cells : Cells
        The partition of the rows.
    threshold : float or None
        A score strictly above it is decision 1; None sums the scores themselves.
    weight : ndarray of shape (n,), optional
        Sample weights.
    y : ndarray of shape (n,), optional
        If given, `squared_error` against it is summed too.
    names : sequence of str, optional
        Names of the models, for the error about a value that is not finite.

    Returns
    -------
    CellSums
        Exact for decisions without weights: all counts are integers.
    """
    totals = np.bincount(cells.codes, weight, minlength=cells.n_cells).astype(np.float64)
    adder = _GemmAdder if cells.n_cells <= _FEW_CELLS else _SortAdder
    outcome = adder(matrix, cells, threshold, weight, names).sums()
    if y is None:
        return CellSums(totals, outcome)
    mean = float(np.average(y, weights=weight))
    squared = _squared_error(matrix, y, weight)
    spread = float(np.average((y - mean) ** 2, weights=weight) * totals.sum())
    return CellSums(totals, outcome, squared, mean * totals.sum(), spread)


class _GemmAdder:
    """Sum by one matrix product per block with the indicators of the cells."""

    def __init__(
        self,
        matrix: NDArray[Any],
        cells: Cells,
        threshold: float | None,
        weight: FloatArray | None,
        names: Sequence[str],
    ) -> None:
        self.matrix, self.cells, self.threshold, self.weight, self.names = (
            matrix,
            cells,
            threshold,
            weight,
            names,
        )
        # Counts below 2²⁴ are exact in single precision, and blocks are far smaller than that.
        self.dtype = np.float32 if threshold is not None and weight is None else np.float64

    def sums(self) -> FloatArray:
        n_rows, n_models = self.matrix.shape
        indicator = np.zeros((n_rows, self.cells.n_cells), dtype=self.dtype)
        indicator[np.arange(n_rows), self.cells.codes] = 1.0 if self.weight is None else self.weight
        total = np.zeros((self.cells.n_cells, n_models))
        for rows, models in _blocks(self.matrix):
            outcome = self._outcome(self.matrix[rows, models])
            total[:, models] += indicator[rows].T @ outcome
        return total

    def _outcome(self, block: NDArray[Any]) -> NDArray[Any]:
        """Return decisions or scores of a block; the check for finite values rides on the block being in cache."""
        flat = block.ravel(order="K")
        if block.dtype.kind == "f" and not np.isfinite(np.vdot(flat, flat)):
            finite(self.matrix, parameter="y_preds", names=self.names)
        outcome = block if self.threshold is None else block > self.threshold
        return outcome.astype(self.dtype)


class _SortAdder(_GemmAdder):
    """Sum by sorting the rows by cell once: for measures with very many groups."""

    def sums(self) -> FloatArray:
        order = np.argsort(self.cells.codes, kind="stable")
        starts = np.searchsorted(self.cells.codes[order], np.arange(self.cells.n_cells))
        weight = None if self.weight is None else self.weight[order]
        total = np.empty((self.cells.n_cells, self.matrix.shape[1]))
        width = max(1, 16 * _BLOCK // len(order))
        for first in range(0, self.matrix.shape[1], width):
            models = slice(first, first + width)
            outcome = self._outcome(self.matrix[:, models])[order].astype(np.float64, copy=False)
            if weight is not None:
                outcome *= weight[:, None]
            total[:, models] = np.add.reduceat(outcome, starts, axis=0)
        return total


def _blocks(matrix: NDArray[Any]) -> Iterator[tuple[slice, slice]]:
    """Yield (rows, models) slices whose block is contiguous in memory where the matrix is."""
    n_rows, n_models = matrix.shape
    rows = max(1, _BLOCK // n_models)
    models = n_models
    if abs(matrix.strides[0]) < abs(matrix.strides[1]):  # one model after the other
        rows = min(n_rows, 8 * _BLOCK)
        models = max(1, _BLOCK // rows)
    for i in range(0, n_rows, rows):
        for j in range(0, n_models, models):
            yield slice(i, i + rows), slice(j, j + models)


def _squared_error(matrix: NDArray[Any], y: FloatArray, weight: FloatArray | None) -> FloatArray:
    total = np.zeros(matrix.shape[1])
    for rows, models in _blocks(matrix):
        error = matrix[rows, models] - y[rows, None]
        scaled = error if weight is None else error * weight[rows, None]
        total[models] += np.einsum("ij,ij->j", error, scaled)
    return total
