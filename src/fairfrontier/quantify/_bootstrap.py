"""Resampling of all models at once: rates and accuracies of every model in every replicate.

A resample of the rows is a row of weights. For the rows of one cell, the sums of all models in all replicates are one
matrix product, weights (B, rows) times decisions (rows, k); everything after it is a function of these sums, as for
the data themselves. Nothing loops over models, and replicates come in blocks of bounded memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import whole
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._points import (
    CONSTANT,
    TradeoffPoints,
    check_constant_name,
    evaluation_rows,
    points_from_sums,
)
from fairfrontier.metrics._accuracy import Accuracy, AccuracyMeasure, constant_outcome
from fairfrontier.metrics._contrasts import Contrasts, Fairness, RowSets, named_function
from fairfrontier.metrics._sums import CellSums, decision_threshold, sum_rows

METHODS = ("multinomial", "bayesian")
# Elements of the largest array of one block of replicates: 16 MB of doubles, small enough for the processor's cache.
_BLOCK_ELEMENTS = 2**21


@dataclass(frozen=True, eq=False)
class Block:
    """Replicates: `rates` (b, s, k) of each row set and `accuracy` (b, k) of each model."""

    rates: FloatArray
    accuracy: FloatArray

    def select(self, models: IntArray) -> "Block":
        """Return the same replicates for some of the models."""
        return Block(self.rates[:, :, models], self.accuracy[:, models])


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of one call, sorted by cell and ready for resampling.

    Attributes
    ----------
    points : TradeoffPoints
        The models on the data themselves.
    contrasts : Contrasts
        The measure on the cells.
    order : ndarray of shape (n,)
        The rows in the order of their cells.
    codes : ndarray of shape (n,)
        The cell of each row in that order, ascending.
    outcome : ndarray of shape (n, k)
        Decisions (as single-precision 0 and 1) or scores, without the constant model, rows sorted by cell.
    error : ndarray of shape (n, k) or None
        Squared errors, where the accuracy measure needs them.
    y : ndarray of shape (n,)
        Labels as 0 and 1, or the target of regression.
    weight : ndarray of shape (n,) or None
        Sample weights.
    measure : AccuracyMeasure
        The accuracy measure.
    unit : float
        The unit of fairness in the data; replicates have their own.
    scores : ndarray of shape (n, k) or None
        Scores, where the accuracy measure needs all rows at once.
    person : ndarray of shape (n,) or None
        Where a row is there once per probable group: which one it is, from 0. These are resampled together.
    """

    points: TradeoffPoints
    contrasts: Contrasts
    order: IntArray
    codes: IntArray
    outcome: NDArray[Any]
    error: FloatArray | None
    y: FloatArray
    weight: FloatArray | None
    measure: AccuracyMeasure
    unit: float = 1.0
    scores: NDArray[Any] | None = None
    person: IntArray | None = None

    @property
    def sets(self) -> RowSets:
        return self.points.sets

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def has_constant(self) -> bool:
        return bool(len(self.points) > self.outcome.shape[1])

    @property
    def observed(self) -> Block:
        """The data themselves as a block of one replicate."""
        return Block(self.points.rates.T[None], self.points.accuracy[None])

    def select(self, models: IntArray) -> "Sample":
        """Return the same rows for some of the models, ascending; the constant model stays."""
        columns = models[models < self.outcome.shape[1]]
        kept = np.append(columns, len(self.points) - 1) if self.has_constant else columns
        error = None if self.error is None else np.take(self.error, columns, axis=1)
        outcome = np.take(self.outcome, columns, axis=1)
        scores = None if self.scores is None else np.take(self.scores, columns, axis=1)
        return replace(self, points=self.points.select(kept), outcome=outcome, error=error, scores=scores)

    def bounds(self) -> IntArray:
        """Return the first row of each cell, and the number of rows: shape (c + 1,)."""
        counts = np.bincount(self.codes, minlength=self.contrasts.n_cells)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)


def sample(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    sample_weight: Any = None,
    **options: Any,
) -> Sample:
    """Return validated rows; the parameters are those of `tradeoff_points`."""
    given, fairness = fairness, named_function(fairness)
    if callable(fairness) or callable(accuracy):
        which = "fairness" if callable(fairness) else "accuracy"
        raise InvalidInputError(
            f"{which} must be a measure's name{' or pairs of masks' if which == 'fairness' else ''} for resampling, "
            "which needs sums over cells; got a function"
        )
    raw = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    rows = evaluation_rows(y_true, y_preds, fairness=fairness, **raw)
    named_function(given, len(rows.sensitive), options.get("sensitive_mode", "separate"))
    return sample_rows(rows, fairness=fairness, accuracy=accuracy, **options)


def sample_rows(
    rows: Rows,
    *,
    fairness: Any = "demographic_parity",
    accuracy: Any = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    include_constant: bool = True,
) -> Sample:
    """Return validated rows as a sample; the other parameters are those of `tradeoff_points`, without functions."""
    check_constant_name(rows.names, include_constant)
    options: dict[str, Any] = {"accuracy": accuracy, "threshold": threshold, "sensitive_mode": sensitive_mode}
    found = sum_rows(whole(rows), fairness=fairness, **options)
    points = points_from_sums(found, rows.names, include_constant=include_constant)
    measure, contrasts = found.measure.at(rows.row), found.contrasts
    codes = rows.cells(labelled=not measure.regression).codes
    order = np.argsort(codes, kind="stable")
    y = rows.numbers() if measure.regression else contrasts.label[codes].astype(np.float64)
    if threshold is not None and not measure.regression:
        # A product of counts with zeros and ones is exact in single precision up to 2²⁴.
        outcome: NDArray[Any] = (rows.scores > decision_threshold(rows.scores, threshold))[order].astype(np.float32)
    else:
        outcome = rows.scores[order].astype(np.float64)
    error = (rows.scores[order] - y[order, None]) ** 2 if measure.squared_error else None
    weight = None if rows.weight is None else rows.weight[order]
    scores = None if measure.of_rows is None else rows.scores[order].astype(np.float64)
    result = Sample(
        points, contrasts, order, codes[order], outcome, error, y[order], weight, measure, found.unit, scores
    )
    numbers, person = np.unique(rows.row, return_inverse=True)
    return result if len(numbers) == len(rows) else replace(result, person=np.ravel(person)[order])


def replicates(
    data: Sample, n_resamples: int, *, method: str, stratify: bool, generator: np.random.Generator
) -> Iterator[Block]:
    """Yield `n_resamples` replicates of the data in blocks.

    Parameters
    ----------
    data : Sample
        The rows.
    n_resamples : int
        The number of replicates.
    method : {"multinomial", "bayesian"}
        Rows drawn with replacement, or exponential weights (Rubin's Bayesian bootstrap).
    stratify : bool
        Keep the total weight of each combination of sensitive groups as it is in the data.
    generator : numpy.random.Generator
        The source of randomness.
    """
    if stratify and data.person is not None:
        raise InvalidInputError("stratify must be False where groups are only probable: a row is in several of them")
    strata = _strata(data) if stratify else [slice(None)]
    per_replicate = max(data.n_rows, data.contrasts.n_cells * len(data.points))
    size = max(1, _BLOCK_ELEMENTS // per_replicate)
    for first in range(0, n_resamples, size):
        n_drawn = data.n_rows if data.person is None else int(data.person.max()) + 1
        weights = _weights(n_drawn, min(size, n_resamples - first), method, strata, generator)
        yield weighted(data, weights if data.person is None else weights[:, data.person])


def _strata(data: Sample) -> list[IntArray | slice]:
    """Return the rows (in cell order) of each combination of sensitive groups."""
    groups = np.stack([attribute.codes for attribute in data.contrasts.attributes], axis=1)
    _, group = np.unique(groups, axis=0, return_inverse=True)
    of_row = np.ravel(group)[data.codes]
    return [np.flatnonzero(of_row == g) for g in range(int(of_row.max()) + 1)]


def _weights(
    n_rows: int, n_resamples: int, method: str, strata: Sequence[IntArray | slice], generator: np.random.Generator
) -> NDArray[Any]:
    """Return the resampling weights, shape (n_resamples, n_rows): counts in single precision, or exponentials."""
    if method == "bayesian":
        weights = generator.standard_exponential((n_resamples, n_rows))
        for rows in strata:
            part = weights[:, rows]
            weights[:, rows] = part * (part.shape[1] / part.sum(axis=1, keepdims=True))
        return weights
    counts = np.zeros((n_resamples, n_rows), dtype=np.float32)
    for rows in strata:
        size = n_rows if isinstance(rows, slice) else len(rows)
        for replicate in counts:
            replicate[rows] = np.bincount(generator.integers(0, size, size), minlength=size)
    return counts


def weighted(data: Sample, weights: NDArray[Any]) -> Block:
    """Return rates and accuracies under each row of `weights`, shape (b, n), rows sorted by cell."""
    if data.weight is not None:
        weights = weights * data.weight
    elif data.outcome.dtype != np.float32:
        weights = weights.astype(
            np.float64, copy=False
        )  # scores are not counts, and single precision would not be exact
    bounds = data.bounds()
    n_models = data.outcome.shape[1]
    totals = np.empty((len(weights), len(bounds) - 1))
    outcome = np.empty((len(weights), len(bounds) - 1, len(data.points)), dtype=weights.dtype)
    for cell, (start, stop) in enumerate(pairwise(bounds)):
        part = weights[:, start:stop]
        totals[:, cell] = part.sum(axis=1, dtype=np.float64)
        outcome[:, cell, :n_models] = part @ data.outcome[start:stop].astype(part.dtype, copy=False)
    if data.has_constant:
        mean = weights @ data.y / totals.sum(axis=1) if data.measure.regression else 0.0
        constant = constant_outcome(data.measure, totals, data.contrasts.label, mean)
        outcome[:, :, -1] = totals * constant[:, None]
    rates = _rates(data.contrasts, outcome, totals) / _units(data, weights, totals)
    return Block(rates, _accuracies(data, weights, outcome, totals))


def _units(data: Sample, weights: NDArray[Any], totals: FloatArray) -> FloatArray:
    """Return the unit of fairness in each replicate, shape (b, 1, 1): the standard deviation of its target, or 1."""
    if not data.measure.regression or data.contrasts.in_target_units:
        return np.ones((len(weights), 1, 1))
    centred, total = data.y - data.y.mean(), totals.sum(axis=1)
    variance = weights @ centred**2 / total - (weights @ centred / total) ** 2
    # A replicate in which all targets are equal has none of its own.
    found = np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), data.unit)
    return np.asarray(found[:, None, None])


def _rates(contrasts: Contrasts, outcome: NDArray[Any], totals: FloatArray) -> FloatArray:
    of_set = totals @ contrasts.membership.T
    if not of_set.min() > 0:
        name = contrasts.sets.names[int(np.argmin(of_set.min(axis=0)))]
        raise GroupError(
            f"n_resamples: in a resample no row of the row set {name!r} was drawn, so its rate is undefined; use "
            "method='bayesian', which gives every row some weight, or merge small groups"
        )
    return np.asarray(contrasts.membership.astype(outcome.dtype) @ outcome / of_set[:, :, None])


def _accuracies(data: Sample, weights: NDArray[Any], outcome: NDArray[Any], totals: FloatArray) -> FloatArray:
    label = data.contrasts.label
    if data.measure.name == "accuracy":  # the usual one, for all replicates together
        rejected = totals[:, ~label].sum(axis=1)[:, None] - outcome[:, ~label].sum(axis=1)
        right = outcome[:, label].sum(axis=1) + rejected
        return np.asarray(np.clip(right / totals.sum(axis=1)[:, None], 0.0, 1.0))
    if data.scores is not None:
        return _utilities(data, weights)
    spread = error = None
    if data.error is not None:
        mean = weights @ data.y / totals.sum(axis=1)
        centred = data.y - data.y.mean()
        spread = weights @ centred**2 - totals.sum(axis=1) * (mean - data.y.mean()) ** 2
        error = np.column_stack([weights @ data.error, *([spread] if data.has_constant else [])])
    values = np.empty((len(weights), len(data.points)))
    for b in range(len(weights)):
        sums = CellSums(
            totals[b],
            outcome[b],
            None if error is None else error[b],
            y_square_sum=0.0 if spread is None else float(spread[b]),
        )
        values[b] = data.measure.value(sums, label)
    return np.clip(values, 0.0, 1.0)


def _utilities(data: Sample, weights: NDArray[Any]) -> FloatArray:
    """Return a measure of all rows at once for each replicate: a loop, because no sum over cells has it."""
    assert data.measure.of_rows is not None
    assert data.scores is not None
    alike = np.tile([0.0, 1.0], (data.n_rows, 1))  # the constant models
    back = np.argsort(data.order)  # amounts are those of rows in the caller's order
    scores, decided = (np.hstack([part, alike])[back] for part in (data.scores, data.outcome))
    label, measure = data.y[back] > 0.5, data.measure.of_rows
    found = np.stack([measure(label, scores, decided, weight[back].astype(np.float64)) for weight in weights])
    best = found[:, -2:].max(axis=1, keepdims=True)
    return np.clip(np.hstack([found[:, :-2], best]) if data.has_constant else found[:, :-2], 0.0, 1.0)


def members(names: Sequence[str], family: Sequence[str]) -> IntArray:
    """Return the positions of the models of a family, and of the constant model."""
    wanted = set(family) | {CONSTANT}
    return np.array([i for i, name in enumerate(names) if name in wanted], dtype=np.intp)
