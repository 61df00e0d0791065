"""Sums over cells of rows, for all models at once.

Every group-fairness measure and every accuracy measure here is a function of a few sums per cell (see `Cells`), so the
rows are read once, by matrix products, whatever the number of models. Sums are additive: those of two parts of a table
can be added, cell by cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import MOST_CELLS, Cells, Key, Rows, too_many_cells
from fairfrontier._validation import FloatArray, IntArray, finite
from fairfrontier.exceptions import InvalidInputError

# Elements of a block of predictions: small enough to stay in the processor's cache between the steps of one block.
_BLOCK, _SMALLEST_BLOCK = 2**16, 2**13
# Multiplications of a product that BLAS does in one thread. Threads gain nothing on a product that small, and on a busy
# machine each waits for the other for longer than the whole work takes.
_SERIAL_PRODUCT = 2**18
# The square of a smaller deviation would underflow.
_SMALLEST_DEVIATION = 1e-150
# Up to this many cells one matrix product per block is faster than sorting the rows by cell.
_FEW_CELLS = 48


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
    utility : ndarray of shape (k + 2,) or None
        A measure of all rows at once (`AccuracyMeasure.of_rows`) of the models, and of 0 and of 1 for everybody.
    """

    weight: FloatArray
    outcome: FloatArray
    squared_error: FloatArray | None = None
    y_sum: float = 0.0
    y_square_sum: float = 0.0
    utility: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class KeyedSums:
    """Sums over cells that know their label and groups; those of two parts of the rows can be added.

    Attributes
    ----------
    keys : tuple of tuple, length c
        The label and the groups of each cell, as in `Cells`.
    attributes : tuple of str
        The sensitive attributes, in the order of the groups.
    sums : CellSums
        Sums over the rows of each cell, in the order of `keys`.
    rows : ndarray of shape (c,)
        The number of rows of each cell.
    """

    keys: tuple[Key, ...]
    attributes: tuple[str, ...]
    sums: CellSums
    rows: IntArray

    def __add__(self, other: "KeyedSums") -> "KeyedSums":
        """Return the sums of both parts together."""
        if self.attributes != other.attributes:
            return self + other._reordered(self.attributes)
        keys = tuple(dict.fromkeys((*self.keys, *other.keys)))
        if len(keys) > MOST_CELLS:
            raise too_many_cells(len(keys))
        position = {key: i for i, key in enumerate(keys)}
        rows = np.zeros(len(keys), dtype=np.intp)
        for part in (self, other):
            rows[[position[key] for key in part.keys]] += part.rows
        return KeyedSums(keys, self.attributes, _added(self, other, position), rows)

    def _reordered(self, attributes: tuple[str, ...]) -> "KeyedSums":
        """Return the same sums with the attributes in another order."""
        if set(self.attributes) != set(attributes):
            raise InvalidInputError(
                f"every chunk must have the same sensitive_features; got {list(attributes)} and {list(self.attributes)}"
            )
        order = [0, *(1 + self.attributes.index(name) for name in attributes)]
        return KeyedSums(tuple(tuple(key[i] for i in order) for key in self.keys), attributes, self.sums, self.rows)

    def in_order(self, keys: Sequence[Key]) -> CellSums:
        """Return the sums over the cells `keys`, which may be more than these."""
        if tuple(keys) == self.keys:
            return self.sums
        position = {key: i for i, key in enumerate(keys)}
        index = [position[key] for key in self.keys]
        weight, outcome = np.zeros(len(keys)), np.zeros((len(keys), self.sums.outcome.shape[1]))
        weight[index], outcome[index] = self.sums.weight, self.sums.outcome
        return replace(self.sums, weight=weight, outcome=outcome)


def _added(first: KeyedSums, second: KeyedSums, position: Mapping[Key, int]) -> CellSums:
    a, b = first.sums, second.sums
    if a.outcome.shape[1] != b.outcome.shape[1]:
        raise InvalidInputError(
            f"every chunk must have the scores of the same models; got {a.outcome.shape[1]} and {b.outcome.shape[1]}"
        )
    if a.utility is not None or b.utility is not None:
        raise InvalidInputError(
            "accuracy must be a measure that can be summed where rows come in chunks; ranks and amounts per row need "
            "all rows at once: evaluate models in memory"
        )
    weight, outcome = np.zeros(len(position)), np.zeros((len(position), a.outcome.shape[1]))
    for part in (first, second):
        index = [position[key] for key in part.keys]
        weight[index] += part.sums.weight
        outcome[index] += part.sums.outcome
    if a.squared_error is None or b.squared_error is None:
        return CellSums(weight, outcome)
    n_a, n_b = float(a.weight.sum()), float(b.weight.sum())
    spread = a.y_square_sum + b.y_square_sum
    if n_a > 0 and n_b > 0:
        # Each part is centred at its own mean; the difference of the two means adds its share.
        spread += (b.y_sum / n_b - a.y_sum / n_a) ** 2 * n_a * n_b / (n_a + n_b)
    return CellSums(weight, outcome, a.squared_error + b.squared_error, a.y_sum + b.y_sum, spread)


def keyed_sums(
    rows: Rows, *, labelled: bool, threshold: float | None, y: FloatArray | None = None, scores: Any = None
) -> KeyedSums:
    """Sum decisions (or scores) of every model over every cell of some rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    labelled : bool
        Whether cells tell rows apart by label.
    threshold : float or None
        A score strictly above it is decision 1; None sums the scores themselves.
    y : ndarray of shape (n,), optional
        If given, squared errors against it are summed too.
    scores : ndarray of shape (n, k), optional
        Scores of other models than those of `rows`.
    """
    cells = rows.cells(labelled=labelled)
    matrix = rows.scores if scores is None else scores
    counts = np.bincount(cells.codes, minlength=cells.n_cells)
    if rows.weight is not None and not rows.weight.any():  # a mean over no weight is undefined, a sum is zero
        k = matrix.shape[1]
        nothing = CellSums(np.zeros(len(counts)), np.zeros((len(counts), k)), None if y is None else np.zeros(k))
        return KeyedSums(cells.keys, cells.attributes, nothing, counts)
    names = rows.names if scores is None else ()
    sums = cell_sums(matrix, cells, threshold=threshold, weight=rows.weight, y=y, names=names, row=rows.row)
    return KeyedSums(cells.keys, cells.attributes, sums, counts)


def cell_sums(
    matrix: NDArray[Any],
    cells: Cells,
    *,
    threshold: float | None,
    weight: FloatArray | None = None,
    y: FloatArray | None = None,
    names: Sequence[str] = (),
    row: IntArray | None = None,
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
    row : ndarray of shape (n,), optional
        Numbers of the rows in the whole table, for the same error.

    Returns
    -------
    CellSums
        Exact for decisions without weights: all counts are integers.
    """
    totals = np.bincount(cells.codes, weight, minlength=cells.n_cells).astype(np.float64)
    if matrix.shape[1] == 0:
        return CellSums(totals, np.zeros((cells.n_cells, 0)))
    add = _sums_by_products if cells.n_cells <= _FEW_CELLS else _sums_by_sorting
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found and named
        outcome = add(_Outcome(matrix, decision_threshold(matrix, threshold), names, row), cells, weight)
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


def decision_threshold(scores: NDArray[Any], threshold: float | None) -> float | None:
    """Return what scores of their own precision must be above to be above `threshold` in double precision.

    NumPy rounds a threshold to the precision of the scores, so that the same score could be decided otherwise beside a
    column of double precision. The largest number of that precision which is not above the threshold has no such fault.

    Examples
    --------
    >>> scores = np.array([0.3], dtype=np.float32)
    >>> scores > 0.3, scores > decision_threshold(scores, 0.3), scores.astype(np.float64) > 0.3
    (array([False]), array([ True]), array([ True]))
    """
    if threshold is None or scores.dtype not in (np.float16, np.float32):
        return threshold
    rounded = scores.dtype.type(threshold)
    if float(rounded) > threshold:
        rounded = np.nextafter(rounded, scores.dtype.type(-np.inf))
    return float(rounded)


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
    row: IntArray | None

    def block(self, rows: slice, models: slice, dtype: type[np.floating[Any]]) -> NDArray[Any]:
        """Return a block as floats; the check for finite values rides on the block being in cache."""
        block = self.scores[rows, models]
        # Of all ways to look at every value, einsum's sum is the cheapest; half precision would overflow in it.
        total = np.einsum("ij->", block, dtype=np.float64 if block.dtype == np.float16 else None)
        if not np.isfinite(total) and not np.isfinite(block).all():
            finite(self.scores, parameter="y_preds", names=self.names, rows=self.row)
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
    counts = np.bincount(cells.codes, minlength=cells.n_cells)
    # For an empty cell `reduceat` would give the first row of the next one.
    present = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[present]
    total = np.zeros((cells.n_cells, n_models))
    for models in _slices(n_models, max(1, 32 * _BLOCK // n_rows)):
        values = outcome.block(slice(None), models, np.float64)
        if weight is not None:
            values *= weight[:, None]
        total[present, models] = np.add.reduceat(values[order], starts, axis=0)
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
