"""Cells of rows, and sums over them for all models at once.

A *cell* is a set of rows that agree in everything a measure looks at: the label and each sensitive attribute. Every
group-fairness measure and every accuracy measure here is a function of a few sums per cell, so the rows are read once,
by matrix products, whatever the number of models. Sums are additive: those of two parts of the data can be added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._columns import factorize
from fairfrontier._validation import Attribute, FloatArray, IntArray, finite
from fairfrontier.exceptions import InvalidInputError

# Elements of a block of predictions: small enough to stay in the processor's cache between the steps of one block.
_BLOCK, _SMALLEST_BLOCK = 2**16, 2**13
# Multiplications of a product that BLAS does in one thread. Threads gain nothing on a product that small, and on a busy
# machine each waits for the other for longer than the whole work takes.
_SERIAL_PRODUCT = 2**18
# Below it a square is no longer a normal number.
_SMALLEST_DEVIATION = 1e-150
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
    distinct, dense = factorize(code)
    row_of = np.empty(len(distinct), dtype=np.intp)
    row_of[dense] = np.arange(len(code))
    return dense, row_of


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
    add = _sums_by_products if cells.n_cells <= _FEW_CELLS else _sums_by_sorting
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found and named
        outcome = add(_Outcome(matrix, threshold, names), cells, weight)
    if not np.isfinite(outcome).all():  # of finite scores: infinite ones were refused
        raise InvalidInputError(
            f"y_preds must be small enough to be added up; got values up to {np.abs(matrix).max():g}: divide the "
            "scores by a common number"
        )
    if y is None:
        return CellSums(totals, outcome)
    mean = float(np.average(y, weights=weight))
    squared = _squared_error(matrix, y, weight)
    return CellSums(totals, outcome, squared, mean * totals.sum(), _spread(y, mean, weight) * totals.sum())


def _spread(y: FloatArray, mean: float, weight: FloatArray | None) -> float:
    """Return the mean of (y − mean)²."""
    with np.errstate(over="ignore", under="ignore"):
        spread = float(np.average((y - mean) ** 2, weights=weight))
    far = float(np.abs(y - mean).max())
    if not np.isfinite(spread) or (0.0 < far < _SMALLEST_DEVIATION):
        raise InvalidInputError(
            f"y_true must have deviations that can be squared; got {far:g} at most: multiply y_true and y_preds by a "
            "common number"
        )
    return spread


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Decisions of the models, or their scores where there is no threshold, block by block."""

    scores: NDArray[Any]
    threshold: float | None
    names: Sequence[str]

    def block(self, rows: slice, models: slice, dtype: type[np.floating[Any]]) -> NDArray[Any]:
        """Return a block as floats; the check for finite values rides on the block being in cache."""
        block = self.scores[rows, models]
        # Of all ways to look at every value, einsum's sum is the cheapest; half precision would overflow in it.
        total = np.einsum("ij->", block, dtype=np.float64 if block.dtype == np.float16 else None)
        if not np.isfinite(total) and not np.isfinite(block).all():
            finite(self.scores, parameter="y_preds", names=self.names)
        return (block if self.threshold is None else block > self.threshold).astype(dtype)


def _sums_by_products(outcome: _Outcome, cells: Cells, weight: FloatArray | None) -> FloatArray:
    """Sum by one matrix product per block with the indicators of the cells."""
    # Counts below 2²⁴ are exact in single precision, and blocks are far smaller than that.
    dtype = np.float32 if outcome.threshold is not None and weight is None else np.float64
    total = np.zeros((cells.n_cells, outcome.scores.shape[1]))
    every_cell = np.arange(cells.n_cells)[:, None]
    height, width = _block_shape(outcome.scores, max(_SMALLEST_BLOCK, min(_BLOCK, _SERIAL_PRODUCT // cells.n_cells)))
    for rows in _slices(outcome.scores.shape[0], height):
        indicator = (cells.codes[rows] == every_cell).astype(dtype)
        if weight is not None:
            indicator *= weight[rows]
        for models in _slices(outcome.scores.shape[1], width):
            total[:, models] += indicator @ outcome.block(rows, models, dtype)
    return total


def _sums_by_sorting(outcome: _Outcome, cells: Cells, weight: FloatArray | None) -> FloatArray:
    """Sum by sorting the rows by cell once: for measures with very many groups."""
    n_rows, n_models = outcome.scores.shape
    order = np.argsort(cells.codes, kind="stable")
    starts = np.searchsorted(cells.codes[order], np.arange(cells.n_cells))
    total = np.empty((cells.n_cells, n_models))
    for models in _slices(n_models, max(1, 32 * _BLOCK // n_rows)):
        values = outcome.block(slice(None), models, np.float64)
        if weight is not None:
            values *= weight[:, None]
        total[:, models] = np.add.reduceat(values[order], starts, axis=0)
    return total


def _block_shape(matrix: NDArray[Any], size: int) -> tuple[int, int]:
    """Return rows and models of a block of about `size` elements, long in the direction in which memory runs."""
    n_rows, n_models = matrix.shape
    if abs(matrix.strides[0]) < abs(matrix.strides[1]):  # one model after the other
        height = min(n_rows, max(size // 8, size // n_models))
        return height, max(1, size // height)
    width = min(n_models, size // 16)
    return max(1, size // width), width


def _slices(length: int, step: int) -> Iterator[slice]:
    """Yield consecutive slices of `step` elements."""
    return (slice(start, start + step) for start in range(0, length, step))


def _squared_error(matrix: NDArray[Any], y: FloatArray, weight: FloatArray | None) -> FloatArray:
    total = np.zeros(matrix.shape[1])
    height, width = _block_shape(matrix, _BLOCK)
    for rows in _slices(matrix.shape[0], height):
        for models in _slices(matrix.shape[1], width):
            error = matrix[rows, models] - y[rows, None]
            scaled = error if weight is None else error * weight[rows, None]
            with np.errstate(over="ignore"):  # an error that cannot be squared is as good as infinite
                total[models] += np.einsum("ij,ij->j", error, scaled)
    return total
