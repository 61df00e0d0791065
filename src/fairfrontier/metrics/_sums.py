"""Sums over cells of rows, for all models at once, and from them what measures of fairness and accuracy need.

Every group-fairness measure and every accuracy measure here is a function of a few sums per cell (see `Cells`), so the
rows are read once, by matrix products, whatever the number of models. Sums are additive: those of two parts of a table
can be added, cell by cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._groups import ProbableGroups
from fairfrontier._rows import MOST_CELLS, Cells, Key, Rows, too_many_cells
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._accuracy import (
    ACCURACY_MEASURES,
    Accuracy,
    AccuracyMeasure,
    measure_of_text,
    n_different,
)
from fairfrontier.metrics._contrasts import MEAN_DIFFERENCE, Contrasts, build_contrasts, named_measure, row_masks

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
    payoff : ndarray of shape (k + 3,) or None
        Of amounts per row: their sum over each model's decisions 1, the sum of the losses, the sum of the absolute
        amounts, and the number of rows.
    """

    weight: FloatArray
    outcome: FloatArray
    squared_error: FloatArray | None = None
    y_sum: float = 0.0
    y_square_sum: float = 0.0
    utility: FloatArray | None = None
    payoff: FloatArray | None = None


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
    square : ndarray of shape (c,)
        The sum of the squares of the weights of each cell.
    """

    keys: tuple[Key, ...]
    attributes: tuple[str, ...]
    sums: CellSums
    rows: IntArray
    square: FloatArray

    def __add__(self, other: "KeyedSums") -> "KeyedSums":
        """Return the sums of both parts together."""
        if self.attributes != other.attributes:
            return self + other._reordered(self.attributes)
        keys = tuple(dict.fromkeys((*self.keys, *other.keys)))
        if len(keys) > MOST_CELLS:
            raise too_many_cells(len(keys))
        position = {key: i for i, key in enumerate(keys)}
        rows, square = np.zeros(len(keys), dtype=np.intp), np.zeros(len(keys))
        for part in (self, other):
            index = [position[key] for key in part.keys]
            rows[index] += part.rows
            square[index] += part.square
        return KeyedSums(keys, self.attributes, _added(self, other, position), rows, square)

    def _reordered(self, attributes: tuple[str, ...]) -> "KeyedSums":
        """Return the same sums with the attributes in another order."""
        if set(self.attributes) != set(attributes):
            raise InvalidInputError(
                f"every chunk must have the same sensitive_features; got {list(attributes)} and {list(self.attributes)}"
            )
        order = [0, *(1 + self.attributes.index(name) for name in attributes)]
        return replace(self, keys=tuple(tuple(key[i] for i in order) for key in self.keys), attributes=attributes)

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
            "accuracy must be a measure that can be summed where rows come in chunks; ranks need all rows at once: "
            "evaluate models in memory"
        )
    weight, outcome = np.zeros(len(position)), np.zeros((len(position), a.outcome.shape[1]))
    for part in (first, second):
        index = [position[key] for key in part.keys]
        weight[index] += part.sums.weight
        outcome[index] += part.sums.outcome
    if a.squared_error is None or b.squared_error is None:
        payoff = None if a.payoff is None or b.payoff is None else a.payoff + b.payoff
        return CellSums(weight, outcome, payoff=payoff)
    n_a, n_b = float(a.weight.sum()), float(b.weight.sum())
    spread = a.y_square_sum + b.y_square_sum
    if n_a > 0 and n_b > 0:
        # Each part is centred at its own mean; the difference of the two means adds its share.
        spread += (b.y_sum / n_b - a.y_sum / n_a) ** 2 * n_a * n_b / (n_a + n_b)
    return CellSums(weight, outcome, a.squared_error + b.squared_error, a.y_sum + b.y_sum, spread)


def keyed_sums(
    rows: Rows,
    *,
    labelled: bool,
    threshold: float | None,
    y: FloatArray | None = None,
    groups: ProbableGroups | None = None,
    amounts: FloatArray | None = None,
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
    groups : ProbableGroups, optional
        Groups of rows that have no attribute: a row counts in the cell of each group by its degree.
    amounts : ndarray of shape (n,), optional
        If given, what decision 1 is worth for each row is summed too.
    """
    cells = rows.cells(labelled=labelled)
    if groups is not None:
        return _shared_sums(rows, cells, groups, threshold=threshold, y=y, amounts=amounts)
    counts = np.bincount(cells.codes, minlength=cells.n_cells)
    square = counts if rows.weight is None else np.bincount(cells.codes, rows.weight**2, minlength=cells.n_cells)
    if rows.weight is not None and not rows.weight.any():  # a mean over no weight is undefined, a sum is zero
        k = rows.scores.shape[1]
        payoff = None if amounts is None else np.append(np.zeros(k + 2), len(rows))
        error = None if y is None else np.zeros(k)
        sums = CellSums(np.zeros(len(counts)), np.zeros((len(counts), k)), error, payoff=payoff)
    else:
        sums = cell_sums(rows, cells, threshold=threshold, y=y, amounts=amounts)
    return KeyedSums(cells.keys, cells.attributes, sums, counts, square.astype(np.float64))


def _shared_sums(rows: Rows, cells: Cells, groups: ProbableGroups, **options: Any) -> KeyedSums:
    """Return the sums where a row is in several groups, without repeating its scores."""
    degrees = np.ascontiguousarray(groups.degrees(rows.weight).T)
    share = degrees if rows.weight is None else degrees * rows.weight
    plain = cell_sums(rows, cells, share=share, **options)

    def by_cell(of_group: FloatArray) -> FloatArray:
        found = [np.bincount(cells.codes, one, minlength=cells.n_cells) for one in of_group]
        return np.stack(found, axis=1).ravel().astype(np.float64)

    counts = by_cell((degrees != 0).astype(np.float64)).astype(np.intp)
    there = np.flatnonzero(counts)
    keys = [(*key, str(group)) for key in cells.keys for group in groups.groups]
    sums = replace(plain, weight=by_cell(share)[there], outcome=plain.outcome[there])
    return KeyedSums(tuple(keys[i] for i in there), (groups.name,), sums, counts[there], by_cell(share**2)[there])


def cell_sums(
    rows: Rows,
    cells: Cells,
    *,
    threshold: float | None,
    y: FloatArray | None = None,
    share: FloatArray | None = None,
    amounts: FloatArray | None = None,
) -> CellSums:
    """Sum decisions (or scores) of every model over every cell.

    Parameters
    ----------
    rows : Rows
        Scores of `k` models, and weights.
    cells : Cells
        The partition of the rows.
    threshold : float or None
        A score strictly above it is decision 1; None sums the scores themselves.
    y : ndarray of shape (n,), optional
        If given, `squared_error` against it is summed too.
    share : ndarray of shape (g, n), optional
        Weight of each row in each of `g` groups; `outcome` then has the shape (c·g, k).
    amounts : ndarray of shape (n,), optional
        What decision 1 is worth for each row, for `payoff`.

    Returns
    -------
    CellSums
        Exact for decisions without weights: all counts are integers.
    """
    matrix, weight = rows.scores, rows.weight
    totals = np.bincount(cells.codes, weight, minlength=cells.n_cells).astype(np.float64)
    if matrix.shape[1] == 0:
        return CellSums(totals, np.zeros((cells.n_cells, 0)))
    decided = _Outcome(rows, decision_threshold(matrix, threshold))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found and named
        worth = amounts if amounts is None or weight is None else amounts * weight
        if cells.n_cells <= _FEW_CELLS:
            outcome = _sums_by_products(decided, cells, share, worth)
        else:
            outcome = _sums_by_sorting(decided, cells, worth)
    if not np.isfinite(outcome).all():  # of finite scores: infinite ones were refused
        raise InvalidInputError(
            f"y_preds must be small enough to be added up; got values up to {np.abs(matrix).max():g}: divide the "
            "scores by a common number"
        )
    if amounts is not None:
        of_row = np.ones(len(amounts)) if weight is None else weight
        losses, stake = float(of_row @ np.maximum(-amounts, 0.0)), float(of_row @ np.abs(amounts))
        return CellSums(totals, outcome[:-1], payoff=np.append(outcome[-1], [losses, stake, n_different(rows.row)]))
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
            f"y_true must have deviations that can be squared; the largest from its mean is {far:g}: multiply y_true "
            "and y_preds by a common number"
        )
    return spread


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Decisions of the models, or their scores where there is no threshold, block by block."""

    rows: Rows
    threshold: float | None

    def block(self, part: slice, models: slice, dtype: type[np.floating[Any]]) -> NDArray[Any]:
        """Return a block as floats; the check for finite values rides on the block being in cache."""
        block = self.rows.scores[part, models]
        # Of all ways to look at every value, einsum's sum is the cheapest; half precision would overflow in it.
        total = np.einsum("ij->", block, dtype=np.float64 if block.dtype == np.float16 else None)
        if not np.isfinite(total) and not np.isfinite(block).all():
            self.rows.refuse_infinite(self.rows.scores, parameter="y_preds")
        return (block if self.threshold is None else block > self.threshold).astype(dtype, copy=False)


def _sums_by_products(
    outcome: _Outcome, cells: Cells, share: FloatArray | None, worth: FloatArray | None
) -> FloatArray:
    """Sum by one matrix product per block with the indicators of the cells, and with amounts of the rows at last."""
    scores, weight = outcome.rows.scores, outcome.rows.weight
    # Counts below 2²⁴ are exact in single precision, and blocks are far smaller than that.
    counted = outcome.threshold is not None and weight is None and share is None and worth is None
    dtype = np.float32 if counted else np.float64
    n_sums = cells.n_cells * (1 if share is None else len(share))
    total = np.zeros((n_sums + (worth is not None), scores.shape[1]))
    every_cell = np.arange(cells.n_cells)[:, None]
    height, width = _block_shape(scores, max(_SMALLEST_BLOCK, min(_BLOCK, _SERIAL_PRODUCT // n_sums)))
    for rows in _slices(len(scores), height):
        indicator = (cells.codes[rows] == every_cell).astype(dtype)
        if share is not None:
            indicator = (indicator[:, None] * share[:, rows]).reshape(n_sums, -1)
        elif weight is not None:
            indicator *= weight[rows]
        if worth is not None:
            indicator = np.concatenate([indicator, worth[None, rows]])
        for models in _slices(scores.shape[1], width):
            total[:, models] += indicator @ outcome.block(rows, models, dtype)
    return total


def _sums_by_sorting(outcome: _Outcome, cells: Cells, worth: FloatArray | None) -> FloatArray:
    """Sum by sorting the rows by cell once: for measures with very many groups; amounts of the rows at last."""
    (n_rows, n_models), weight = outcome.rows.scores.shape, outcome.rows.weight
    order = np.argsort(cells.codes, kind="stable")
    counts = np.bincount(cells.codes, minlength=cells.n_cells)
    # For an empty cell `reduceat` would give the first row of the next one.
    present = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[present]
    total = np.zeros((cells.n_cells + (worth is not None), n_models))
    for models in _slices(n_models, max(1, 32 * _BLOCK // n_rows)):
        values = outcome.block(slice(None), models, np.float64)
        if worth is not None:
            total[-1, models] = worth @ values
        if weight is not None:
            values = values * weight[:, None]
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


def _in_unit_interval(matrix: NDArray[Any]) -> bool:
    """Tell whether all of a matrix is in [0, 1]; NaN is not."""
    height, width = _block_shape(matrix, _BLOCK)
    blocks = (matrix[rows, j] for rows in _slices(matrix.shape[0], height) for j in _slices(matrix.shape[1], width))
    return all(block.min() >= 0 and block.max() <= 1 for block in blocks)


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


def named_accuracy(accuracy: Accuracy, *, parameter: str = "accuracy") -> AccuracyMeasure:
    """Return the accuracy measure of a name; functions need all rows at once and are no sums over cells."""
    if callable(accuracy):
        raise InvalidInputError(
            f"accuracy must be one of {sorted(ACCURACY_MEASURES)} where rows come in chunks; got a function, "
            "which needs all rows at once"
        )
    if isinstance(accuracy, AccuracyMeasure):
        return accuracy
    with_numbers = measure_of_text(accuracy, parameter=parameter) if isinstance(accuracy, str) else None
    return with_numbers or ACCURACY_MEASURES[validate.one_of(accuracy, ACCURACY_MEASURES, parameter=parameter)]


def checked_threshold(threshold: float | None) -> float | None:
    """Return a threshold of scores in [0, 1], or None for randomised decisions."""
    if threshold is None:
        return None
    advice = ": it is what scores are compared with, or None for randomised decisions"
    return validate.number(threshold, parameter="threshold", low=0.0, high=1.0, advice=advice)


@dataclass(frozen=True, eq=False)
class WithMasks:
    """The step that gives rows the masks of custom contrasts as their attributes; it travels to the workers."""

    masks: Mapping[str, NDArray[np.bool_]]

    def __call__(self, rows: Rows) -> Rows:
        n_rows = len(next(iter(self.masks.values())))
        if len(rows) and rows.row.max() >= n_rows:
            raise InvalidInputError(
                f"fairness[0][0] must have one boolean per row; got {n_rows}, and row {rows.row.max()} in the table: "
                "mask the rows of y"
            )
        return rows.with_masks(self.masks)


@dataclass(frozen=True)
class SumRows:
    """The function from rows to the sums that an accuracy measure needs; it travels to the workers of a cluster."""

    measure: AccuracyMeasure
    threshold: float | None
    groups: ProbableGroups | None = None

    def __call__(self, rows: Rows) -> KeyedSums:
        regression, groups = self.measure.regression, self.groups
        if regression or not self.measure.squared_error:
            self._check_unit_scores(rows)
            y = rows.numbers() if self.measure.squared_error else None
            threshold = None if regression else self.threshold
            amounts = self.measure.amounts_of(rows.row)
            found = keyed_sums(rows, labelled=not regression, threshold=threshold, y=y, groups=groups, amounts=amounts)
            if self.measure.of_rows is None or amounts is not None:
                return found
            return replace(found, sums=replace(found.sums, utility=self._utility(rows)))
        # Which class is positive only all chunks together know: see `_with_labels`.
        self._check_unit_scores(rows)
        decisions = keyed_sums(rows, labelled=True, threshold=self.threshold, groups=groups)
        scores = keyed_sums(rows, labelled=True, threshold=None, y=np.zeros(len(rows)), groups=groups)
        both = np.hstack([decisions.sums.outcome, scores.sums.outcome])
        return replace(scores, sums=replace(scores.sums, outcome=both))

    def _utility(self, rows: Rows) -> FloatArray:
        """Return a measure of all rows at once for the models, and for 0 and for 1 for everybody."""
        of_rows = self.measure.of_rows
        assert of_rows is not None
        classes, codes = validate.distinct(np.asarray(rows.y), parameter="y_true")
        validate.two_classes(classes)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        limit = decision_threshold(rows.scores, self.threshold)
        decided = rows.scores if limit is None else rows.scores > limit
        alike = np.tile([0.0, 1.0], (len(rows), 1))
        both = ((rows.scores, decided), (alike, alike))
        return np.concatenate([of_rows(codes == 1, *one, weight) for one in both])

    def _check_unit_scores(self, rows: Rows) -> None:
        """Probabilities must be in [0, 1] where a measure reads them as such."""
        if self.measure.regression or (self.threshold is not None and not self.measure.squared_error):
            return
        if _in_unit_interval(rows.scores):
            return
        low, high = rows.scores.min(axis=0), rows.scores.max(axis=0)
        rows.refuse_infinite(rows.scores, parameter="y_preds")
        reason, advice = ("accuracy='brier'", "use another accuracy")
        if self.threshold is None:
            reason, advice = "threshold=None", "pass a threshold"
        wrong = int(np.flatnonzero((low < 0) | (high > 1))[0])
        raise InvalidInputError(
            f"y_preds must be in [0, 1] with {reason}, which reads scores as probabilities; got values from "
            f"{low[wrong]:g} to {high[wrong]:g} in {rows.names[wrong]!r}: clip or calibrate them, or {advice}"
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """What a pass over the rows found.

    Attributes
    ----------
    sums : CellSums
        Sums over cells, in the order of `contrasts.keys`.
    contrasts : Contrasts
        The measure on these cells.
    rows : ndarray of shape (c,)
        The number of rows of each cell.
    square : ndarray of shape (c,)
        The sum of the squares of the weights of each cell.
    measure : AccuracyMeasure
        The accuracy measure that the sums are for.
    """

    sums: CellSums
    contrasts: Contrasts
    rows: NDArray[np.intp]
    square: FloatArray
    measure: AccuracyMeasure

    @property
    def unit(self) -> float:
        """Return the unit in which differences between groups are measured: 1 for decisions.

        For regression it is the standard deviation of the target, or the target's own. Fairness is 1 − the largest
        difference of two groups' mean predictions: of numbers the difference, and with it fairness, would depend on
        whether a target is in dollars or in thousands of them; in standard deviations of the target (Cohen's d, with
        the spread of all rows) it does not.
        """
        sums = self.sums
        if not self.measure.regression or self.contrasts.in_target_units:
            return 1.0
        total = float(sums.weight.sum())
        deviation = float(np.sqrt(max(sums.y_square_sum, 0.0) / total))
        if deviation <= 4 * np.finfo(np.float64).eps * abs(sums.y_sum / total):  # the mean of equal values is rounded
            raise InvalidInputError(
                "y_true must have at least two values: fairness of a regression is in standard deviations of it; "
                f"fairness={MEAN_DIFFERENCE!r} is in its own units"
            )
        return deviation

    def rates(self) -> FloatArray:
        """Return the mean outcome of each model in each row set, in that unit, shape (k, s)."""
        return self.contrasts.rates(self.sums.outcome, self.sums.weight) / self.unit


def sum_rows(
    chunks: Any,
    *,
    fairness: Any,
    accuracy: Accuracy,
    threshold: float | None,
    sensitive_mode: str,
    groups: ProbableGroups | None = None,
) -> Sums:
    """Sum over all rows what fairness and accuracy need.

    The parameters are those of `points_from_chunks`. Where `fairness` is pairs of masks, the rows must have them as
    their attributes (`Rows.with_masks`). Probable groups are for all rows at once, which then have no attribute.
    """
    measure = named_accuracy(accuracy)
    threshold = None if measure.regression else checked_threshold(threshold)
    if callable(fairness):
        raise InvalidInputError(
            "fairness must be a measure's name or pairs of masks where rows come in chunks; a function needs all rows "
            "at once"
        )
    if measure.regression and isinstance(fairness, str) and named_measure(fairness).comparison != "difference":
        raise InvalidInputError(
            f"fairness={fairness!r} compares rates of decisions, and a regression has none; use 'demographic_parity', "
            "which compares means in the unit of the label"
        )
    keyed = chunks.sum(SumRows(measure, threshold, groups))
    contrasts = build_contrasts(fairness, keyed.keys, keyed.attributes, sensitive_mode=sensitive_mode)
    return Sums(finished(keyed.sums, contrasts, measure), contrasts, keyed.rows, keyed.square, measure)


def masks_of_chunks(fairness: Any, chunks: Any) -> Any:
    """Return chunks that have pairs of masks as their attributes, if `fairness` is such pairs."""
    return chunks if isinstance(fairness, str) or callable(fairness) else chunks.map(WithMasks(row_masks(fairness)))


def check_mask_length(fairness: Any, n_rows: int) -> None:
    """Raise if masks are longer than the table that they are of."""
    if not isinstance(fairness, str) and len(fairness[0][0]) != n_rows:
        raise InvalidInputError(
            f"fairness[0][0] must have one boolean per row, {n_rows}; got {len(fairness[0][0])}: mask the rows of y"
        )


def finished(sums: CellSums, contrasts: Contrasts, measure: AccuracyMeasure) -> CellSums:
    """Return sums with the squared errors of two-class labels, which a chunk cannot know.

    Notes
    -----
    Σ(s − y)² = Σs² − 2·Σs over the positive rows + their number; a chunk has summed s² and, behind its decisions, s.
    """
    if sums.payoff is not None:
        return _with_payoff(sums, measure)
    if measure.regression or not measure.squared_error:
        return sums
    label = contrasts.label
    decisions, scores = np.hsplit(sums.outcome, 2)
    positive, weight = float(sums.weight[label].sum()), float(sums.weight.sum())
    squares = np.zeros(scores.shape[1]) if sums.squared_error is None else sums.squared_error
    squared_error = squares - 2.0 * scores[label].sum(axis=0) + positive
    return CellSums(sums.weight, decisions, squared_error, positive, positive * (weight - positive) / weight)


def _with_payoff(sums: CellSums, measure: AccuracyMeasure) -> CellSums:
    """Return sums with the share of what is at stake that each model gets, and nobody or everybody selected gets."""
    assert sums.payoff is not None
    gained, (losses, stake, n_rows) = sums.payoff[:-3], sums.payoff[-3:]
    measure.check_length(int(n_rows))
    if not stake > 0.0:
        raise InvalidInputError("gain must have an amount that is not 0 among the rows with weight; got only zeros")
    return replace(sums, utility=np.append(gained + losses, [losses, stake - losses]) / stake)
