"""Fairness and accuracy of every model from rows that come in chunks."""

from dataclasses import dataclass, replace

import numpy as np

from fairfrontier import _validation as validate
from fairfrontier.chunks._rows import Chunk
from fairfrontier.chunks._source import Chunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import CONSTANT, TradeoffPoints, points_from_rates
from fairfrontier.identify._rows import best_constant
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, Accuracy, AccuracyMeasure
from fairfrontier.metrics._cells import CellSums
from fairfrontier.metrics._contrasts import Contrasts, Fairness
from fairfrontier.metrics._keyed import KeyedCells, KeyedSums


def points_from_chunks(
    chunks: Chunks,
    *,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    include_constant: bool = True,
) -> TradeoffPoints:
    """Compute fairness and accuracy of every model in one pass over chunks.

    Parameters
    ----------
    chunks : Chunks
        Labels, scores, groups and weights, from `array_chunks`, `file_chunks`, `iterable_chunks` or `dask_chunks`.
    fairness : str
        As in `tradeoff_points`; masks and functions need all rows at once.
    accuracy : str
        As in `tradeoff_points`; functions need all rows at once.
    threshold, sensitive_mode, include_constant
        As in `tradeoff_points`.

    Returns
    -------
    TradeoffPoints
        Equal to those of all rows at once.

    Examples
    --------
    >>> from fairfrontier.chunks import array_chunks
    >>> y, sex = [1, 0, 1, 0, 1, 0], ["f", "f", "f", "m", "m", "m"]
    >>> scores = np.array([[0.9, 0.2, 0.8, 0.1, 0.7, 0.3]]).T
    >>> chunks = array_chunks(y, scores, sensitive_features=sex, names=("a",), chunk_rows=2)
    >>> points_from_chunks(chunks).fairness.round(4)
    array([0.6667, 1.    ])
    """
    if include_constant and CONSTANT in chunks.names:
        raise InvalidInputError(
            f"y_preds must not name a model {CONSTANT!r} while include_constant=True adds one of that name; "
            "rename it or pass include_constant=False"
        )
    keyed = keyed_sums(chunks, accuracy=accuracy, threshold=threshold)
    contrasts = keyed.contrasts(fairness, sensitive_mode)
    sums = sums_on(keyed, contrasts, accuracy)
    return points_from_sums(sums, contrasts, _measure(accuracy), chunks.names, include_constant=include_constant)


def keyed_sums(chunks: Chunks, *, accuracy: Accuracy = "accuracy", threshold: float | None = 0.5) -> KeyedSums:
    """Return the sums over cells from which `sums_on` and `points_from_sums` make points, in one pass."""
    measure = _measure(accuracy)
    if threshold is not None:
        threshold = validate.number(threshold, parameter="threshold", low=0.0, high=1.0)
    return chunks.sum(ChunkValue(measure, None if measure.regression else threshold))


def sums_on(keyed: KeyedSums, contrasts: Contrasts, accuracy: Accuracy) -> CellSums:
    """Return the sums in the order of the cells of `contrasts`, with all that the accuracy measure needs."""
    measure, sums = _measure(accuracy), keyed.in_order(contrasts, keyed.keys)
    return _with_labels(sums, contrasts) if measure.squared_error and not measure.regression else sums


def points_from_sums(
    sums: CellSums,
    contrasts: Contrasts,
    measure: AccuracyMeasure,
    names: tuple[str, ...],
    *,
    include_constant: bool = True,
) -> TradeoffPoints:
    """Return points from the sums over the cells of `contrasts`."""
    rates, values = contrasts.rates(sums.outcome, sums.weight), measure.value(sums, contrasts.cells.label)
    if not include_constant:
        return points_from_rates(rates, contrasts.sets, values, names)
    constant = best_constant(measure, sums, contrasts.cells.label)
    rates = np.vstack([rates, np.full(rates.shape[1], constant.outcome)])
    return points_from_rates(rates, contrasts.sets, np.append(values, constant.accuracy), (*names, CONSTANT))


def _with_labels(sums: CellSums, contrasts: Contrasts) -> CellSums:
    """Return sums with the squared errors of two-class labels, which a chunk cannot know.

    Notes
    -----
    Σ(s − y)² = Σs² − 2·Σs over the positive rows + their number; a chunk has summed s² and, behind its decisions, s.
    """
    label = contrasts.cells.label
    decisions, scores = np.hsplit(sums.outcome, 2)
    positive, weight = float(sums.weight[label].sum()), float(sums.weight.sum())
    squares = np.zeros(scores.shape[1]) if sums.squared_error is None else sums.squared_error
    squared_error = squares - 2.0 * scores[label].sum(axis=0) + positive
    return CellSums(sums.weight, decisions, squared_error, positive, positive * (weight - positive) / weight)


def _measure(accuracy: Accuracy) -> AccuracyMeasure:
    if callable(accuracy):
        raise InvalidInputError(
            f"accuracy must be one of {sorted(ACCURACY_MEASURES)} where rows come in chunks; got a function, which "
            "needs all rows at once"
        )
    return ACCURACY_MEASURES[validate.one_of(accuracy, ACCURACY_MEASURES, parameter="accuracy")]


@dataclass(frozen=True)
class ChunkValue:
    """The function from a chunk to the sums that a measure needs; it travels to the workers of a cluster."""

    measure: AccuracyMeasure
    threshold: float | None

    def __call__(self, chunk: Chunk) -> KeyedSums:
        chunk.refuse_infinite(chunk.scores, parameter="y_preds")
        self._check_unit_scores(chunk)
        cells = KeyedCells.from_chunk(chunk, regression=self.measure.regression)
        if not self.measure.squared_error:
            return cells.sums(chunk, chunk.scores, threshold=self.threshold)
        if self.measure.regression:
            return cells.sums(chunk, chunk.scores, threshold=None, y=chunk.numbers())
        # Which class is positive only all chunks together know: see `_with_labels`.
        decisions = cells.sums(chunk, chunk.scores, threshold=self.threshold)
        scores = cells.sums(chunk, chunk.scores, threshold=None, y=np.zeros(len(chunk)))
        both = np.hstack([decisions.sums.outcome, scores.sums.outcome])
        return replace(scores, sums=replace(scores.sums, outcome=both))

    def _check_unit_scores(self, chunk: Chunk) -> None:
        """Probabilities must be in [0, 1] where a measure reads them as such."""
        if self.measure.regression or (self.threshold is not None and not self.measure.squared_error):
            return
        low, high = chunk.scores.min(axis=0), chunk.scores.max(axis=0)
        wrong = np.flatnonzero((low < 0) | (high > 1))
        if wrong.size:
            reason = "accuracy='brier'" if self.threshold is not None else "threshold=None"
            raise InvalidInputError(
                f"y_preds must be in [0, 1] with {reason}, which reads scores as probabilities; got values from "
                f"{low[wrong[0]]:g} to {high[wrong[0]]:g} in {chunk.names[wrong[0]]!r}: clip or calibrate them"
            )
