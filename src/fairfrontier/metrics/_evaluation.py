"""From rows to the sums that a fairness and an accuracy measure need, in one pass, chunk by chunk or all at once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, Accuracy, AccuracyMeasure
from fairfrontier.metrics._contrasts import MEAN_DIFFERENCE, Contrasts, build_contrasts, named_measure, row_masks
from fairfrontier.metrics._sums import CellSums, KeyedSums, decision_threshold, keyed_sums


def named_accuracy(accuracy: Accuracy) -> AccuracyMeasure:
    """Return the accuracy measure of a name; functions need all rows at once and are no sums over cells."""
    if callable(accuracy):
        raise InvalidInputError(
            f"accuracy must be one of {sorted(ACCURACY_MEASURES)} where rows come in chunks; got a function, "
            "which needs all rows at once"
        )
    if isinstance(accuracy, AccuracyMeasure):
        return accuracy
    return ACCURACY_MEASURES[validate.one_of(accuracy, ACCURACY_MEASURES, parameter="accuracy")]


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

    def __call__(self, rows: Rows) -> KeyedSums:
        regression = self.measure.regression
        if regression or not self.measure.squared_error:
            self._check_unit_scores(rows)
            y = rows.numbers() if self.measure.squared_error else None
            threshold = None if regression else self.threshold
            found = keyed_sums(rows, labelled=not regression, threshold=threshold, y=y)
            if self.measure.of_rows is None:
                return found
            return replace(found, sums=replace(found.sums, utility=self._utility(rows)))
        # Which class is positive only all chunks together know: see `_with_labels`.
        self._check_unit_scores(rows)
        decisions = keyed_sums(rows, labelled=True, threshold=self.threshold)
        scores = keyed_sums(rows, labelled=True, threshold=None, y=np.zeros(len(rows)))
        both = np.hstack([decisions.sums.outcome, scores.sums.outcome])
        return replace(scores, sums=replace(scores.sums, outcome=both))

    def _utility(self, rows: Rows) -> FloatArray:
        """Return a measure of all rows at once for the models, and for 0 and for 1 for everybody."""
        assert self.measure.of_rows is not None
        classes, codes = validate.distinct(np.asarray(rows.y), parameter="y_true")
        validate.two_classes(classes)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        limit = decision_threshold(rows.scores, self.threshold)
        decided = rows.scores if limit is None else rows.scores > limit
        alike = np.tile([0.0, 1.0], (len(rows), 1))
        both = ((rows.scores, decided), (alike, alike))
        return np.concatenate([self.measure.of_rows(codes == 1, *one, weight) for one in both])

    def _check_unit_scores(self, rows: Rows) -> None:
        """Probabilities must be in [0, 1] where a measure reads them as such."""
        if self.measure.regression or (self.threshold is not None and not self.measure.squared_error):
            return
        low, high = rows.scores.min(axis=0), rows.scores.max(axis=0)
        if low.min() >= 0 and high.max() <= 1:
            return
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
    measure : AccuracyMeasure
        The accuracy measure that the sums are for.
    """

    sums: CellSums
    contrasts: Contrasts
    rows: NDArray[np.intp]
    measure: AccuracyMeasure

    @property
    def unit(self) -> float:
        """Return the unit in which differences between groups are measured."""
        return fairness_unit(self.sums, self.contrasts, self.measure)

    def rates(self) -> FloatArray:
        """Return the mean outcome of each model in each row set, in that unit, shape (k, s)."""
        return self.contrasts.rates(self.sums.outcome, self.sums.weight) / self.unit


def fairness_unit(sums: CellSums, contrasts: Contrasts, measure: AccuracyMeasure) -> float:
    """Return the unit of fairness: 1 for decisions, and the standard deviation of the target for regression.

    Parameters
    ----------
    sums : CellSums
        Sums over the cells.
    contrasts : Contrasts
        The measure on these cells; in the target's own units the unit is 1.
    measure : AccuracyMeasure
        Whether it is a regression.

    Notes
    -----
    Fairness is 1 − the largest difference of two groups' mean predictions. Of numbers the difference, and with it
    fairness, would depend on whether a target is in dollars or in thousands of them; in standard deviations of the
    target (Cohen's d, with the spread of all rows) it does not.
    """
    if not measure.regression or contrasts.in_target_units:
        return 1.0
    total = float(sums.weight.sum())
    deviation = float(np.sqrt(max(sums.y_square_sum, 0.0) / total))
    if deviation <= 4 * np.finfo(np.float64).eps * abs(sums.y_sum / total):  # the mean of equal values is rounded
        raise InvalidInputError(
            "y_true must have at least two values: fairness of a regression is in standard deviations of it; "
            f"fairness={MEAN_DIFFERENCE!r} is in its own units"
        )
    return deviation


def sum_rows(chunks: Any, *, fairness: Any, accuracy: Accuracy, threshold: float | None, sensitive_mode: str) -> Sums:
    """Sum over all rows what fairness and accuracy need.

    The parameters are those of `points_from_chunks`. Where `fairness` is pairs of masks, the rows must have them as
    their attributes (`Rows.with_masks`).
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
    keyed = chunks.sum(SumRows(measure, threshold))
    contrasts = build_contrasts(fairness, keyed.keys, keyed.attributes, sensitive_mode=sensitive_mode)
    return Sums(finished(keyed.sums, contrasts, measure), contrasts, keyed.rows, measure)


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
    if measure.regression or not measure.squared_error:
        return sums
    label = contrasts.label
    decisions, scores = np.hsplit(sums.outcome, 2)
    positive, weight = float(sums.weight[label].sum()), float(sums.weight.sum())
    squares = np.zeros(scores.shape[1]) if sums.squared_error is None else sums.squared_error
    squared_error = squares - 2.0 * scores[label].sum(axis=0) + positive
    return CellSums(sums.weight, decisions, squared_error, positive, positive * (weight - positive) / weight)
