"""The rows on which models are valued: labels, scores, groups and weights of one call, checked."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._validation import Attribute, FloatArray, Predictions
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, Accuracy, AccuracyMeasure
from fairfrontier.metrics._cells import Cells, CellSums, cell_sums
from fairfrontier.metrics._contrasts import RowSets


@dataclass(frozen=True)
class Constant:
    """The best constant model: its `outcome` for every row, and its `accuracy`."""

    outcome: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Rows:
    """The validated rows of one call.

    Attributes
    ----------
    preds : Predictions
        Scores of the models.
    y : ndarray of shape (n,)
        The target; 0 and 1 for two classes.
    label : ndarray of shape (n,) or None
        True for the positive class; None for regression.
    attributes : tuple of Attribute
        The sensitive attributes.
    measure : AccuracyMeasure or callable
        The accuracy measure.
    threshold : float or None
        A score strictly above it is decision 1; None: scores are taken as they are.
    weight : ndarray of shape (n,) or None
        Sample weights.
    """

    preds: Predictions
    y: FloatArray
    label: NDArray[np.bool_] | None
    attributes: tuple[Attribute, ...]
    measure: AccuracyMeasure | Callable[..., float]
    threshold: float | None
    weight: FloatArray | None

    @classmethod
    def validated(
        cls,
        y_true: Any,
        preds: Predictions,
        sensitive_features: Any,
        *,
        accuracy: Accuracy,
        threshold: float | None,
        sample_weight: Any,
        needs_attributes: bool = True,
    ) -> "Rows":
        """Check what a caller gave; the parameters are those of `tradeoff_points`."""
        measure = accuracy if callable(accuracy) else _named_measure(accuracy)
        label: NDArray[np.bool_] | None = None
        if isinstance(measure, AccuracyMeasure) and measure.regression:
            y, threshold = validate.target(y_true), None
        else:
            label, _ = validate.labels(y_true)
            y = label.astype(np.float64)
            if threshold is not None:
                advice = ": it is what scores are compared with, or None for randomised decisions"
                threshold = validate.number(threshold, parameter="threshold", low=0.0, high=1.0, advice=advice)
        validate.same_length(len(y), y_preds=len(preds.matrix))
        weight = validate.sample_weights(sample_weight, len(y))
        given = needs_attributes or sensitive_features is not None
        attributes = validate.attributes(sensitive_features, len(y)) if given else ()
        rows = cls(preds, y, label, attributes, measure, threshold, weight)
        rows._check_unit_scores()
        return rows

    @property
    def needs_squared_error(self) -> bool:
        return isinstance(self.measure, AccuracyMeasure) and self.measure.squared_error

    def _check_unit_scores(self) -> None:
        """Probabilities must be in [0, 1] where a measure reads them as such."""
        if self.label is None or (self.threshold is not None and not self.needs_squared_error):
            return
        low, high = self.preds.matrix.min(), self.preds.matrix.max()
        if low >= 0 and high <= 1:
            return
        validate.finite(self.preds.matrix, parameter="y_preds", names=self.preds.names)
        worst = self.preds.matrix.min(axis=0) < 0 if low < 0 else self.preds.matrix.max(axis=0) > 1
        reason = "accuracy='brier'" if self.threshold is not None else "threshold=None"
        advice = "use another accuracy" if self.threshold is not None else "pass a threshold"
        raise InvalidInputError(
            f"y_preds must be in [0, 1] with {reason}, which reads scores as probabilities; got values from {low:g} to "
            f"{high:g}, e.g. in {self.preds.names[int(worst.argmax())]!r}: clip or calibrate them, or {advice}"
        )

    def sums(self, cells: Cells) -> CellSums:
        """Return the sums over cells that fairness and accuracy need."""
        return cell_sums(
            self.preds.matrix,
            cells,
            threshold=self.threshold,
            weight=self.weight,
            y=self.y if self.needs_squared_error else None,
            names=self.preds.names,
        )

    def accuracies(self, sums: CellSums, label_of_cell: NDArray[np.bool_]) -> FloatArray:
        """Return the accuracy of each model, shape (k,)."""
        if isinstance(self.measure, AccuracyMeasure):
            return self.measure.value(sums, label_of_cell)
        return self._called_accuracies(self.measure, self._outcomes())

    def best_constant(self, sums: CellSums, label_of_cell: NDArray[np.bool_]) -> Constant:
        """Return the best model that says the same for every row."""
        if not isinstance(self.measure, AccuracyMeasure):
            both = self._called_accuracies(self.measure, [np.full(len(self.y), value) for value in (0, 1)])
            return Constant(float(both.argmax()), float(both.max()))
        return best_constant(self.measure, sums, label_of_cell)

    def called_bias(self, fairness: Callable[..., float], sensitive_features: Any) -> tuple[FloatArray, RowSets]:
        """Return a function's bias of each model, as the rate of one row set against a second one at zero."""
        bias = np.array([self._call(fairness, o, sensitive_features=sensitive_features) for o in self._outcomes()])
        if not np.all(np.isfinite(bias)):
            wrong = int(np.argmin(np.isfinite(bias)))
            raise InvalidInputError(
                f"fairness must return a finite bias, 0 for a fair model; got {bias[wrong]:g} for "
                f"{self.preds.names[wrong]!r}: is one of its groups empty?"
            )
        name = getattr(fairness, "__name__", type(fairness).__name__)
        return np.stack([bias, np.zeros_like(bias)], axis=1), RowSets((name, "parity"), ((0, 1),), (name,))

    def _called_accuracies(self, function: Callable[..., float], outcomes: list[NDArray[Any]]) -> FloatArray:
        values = np.array([self._call(function, outcome) for outcome in outcomes])
        if not np.all((values >= -1e-9) & (values <= 1 + 1e-9)):
            raise InvalidInputError(
                f"accuracy must return values in [0, 1], larger is better; got {values.min():g} to {values.max():g}: "
                "rescale what the function returns"
            )
        return values

    def _outcomes(self) -> list[NDArray[Any]]:
        if self.threshold is None:
            return list(self.preds.matrix.T)
        return [(scores > self.threshold).astype(np.intp) for scores in self.preds.matrix.T]

    def _call(self, function: Callable[..., float], outcome: NDArray[Any], **keywords: Any) -> float:
        y = self.y if self.label is None else self.label.astype(np.intp)
        if self.weight is not None:
            if not _takes(function, "sample_weight"):
                name = getattr(function, "__name__", repr(function))
                raise InvalidInputError(
                    f"sample_weight must be None with the function {name}, which takes no sample_weight; got weights: "
                    "give it that parameter"
                )
            keywords["sample_weight"] = self.weight
        return float(function(y, outcome, **keywords))


def best_constant(measure: AccuracyMeasure, sums: CellSums, label_of_cell: NDArray[np.bool_]) -> Constant:
    """Return the best model that says the same for every row, from the sums over cells."""
    if measure.regression:
        outcome = float(sums.y_sum / sums.weight.sum())
    else:
        outcome = float(sums.weight[label_of_cell].sum() > sums.weight[~label_of_cell].sum())
    # A decision is the majority's; a score is best at the mean of y, where the squared error is y's own spread.
    alone = CellSums(
        sums.weight, sums.weight[:, None] * outcome, np.array([sums.y_square_sum]), sums.y_sum, sums.y_square_sum
    )
    return Constant(outcome, float(measure.value(alone, label_of_cell)[0]))


def _named_measure(accuracy: Any) -> AccuracyMeasure:
    return ACCURACY_MEASURES[validate.one_of(accuracy, ACCURACY_MEASURES, parameter="accuracy")]


def _takes(function: Callable[..., float], parameter: str) -> bool:
    parameters = inspect.signature(function).parameters
    return parameter in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
