"""Fairness and accuracy of every model: the points of the trade-off."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray, Predictions
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify.frontier import TAFCurve, signed_frontier, taf_curve
from fairfrontier.metrics.accuracy import ACCURACY_MEASURES, Accuracy, AccuracyMeasure
from fairfrontier.metrics.cells import Cells, CellSums, cell_sums
from fairfrontier.metrics.contrasts import Contrasts, Fairness, RowSets, build_contrasts

CONSTANT = "constant"


@dataclass(frozen=True, eq=False, repr=False)
class TradeoffPoints:
    """Fairness and accuracy of `k` models.

    Attributes
    ----------
    fairness : ndarray of shape (k,)
        1 − the largest absolute bias over the contrasts, not below 0.
    accuracy : ndarray of shape (k,)
        The accuracy measure, larger is better.
    names : tuple of str, length k
        The models; the constant model, if there, is last.
    rates : ndarray of shape (k, s)
        The mean decision (or score) of each model in each row set.
    sets : RowSets
        The row sets and how they are compared.
    """

    fairness: FloatArray
    accuracy: FloatArray
    names: tuple[str, ...]
    rates: FloatArray
    sets: RowSets

    @cached_property
    def bias(self) -> FloatArray:
        """Signed bias of each model on each contrast, shape (k, m): the first row set's rate minus the second's."""
        first, second = self.sets.pairs().T
        return self.rates[:, first] - self.rates[:, second]

    @cached_property
    def contrasts(self) -> tuple[str, ...]:
        """Names of the contrasts, the columns of `bias`."""
        return self.sets.contrast_names()

    @cached_property
    def attribute_fairness(self) -> dict[str, FloatArray]:
        """Fairness of each model on each sensitive attribute alone, arrays of shape (k,)."""
        worst: dict[str, FloatArray] = {}
        for name, gap in zip(self.sets.attributes, self.sets.block_gaps(self.rates), strict=True):
            worst[name] = np.maximum(worst.get(name, 0.0), gap)
        return {name: np.clip(1.0 - gap, 0.0, 1.0) for name, gap in worst.items()}

    def frontier(self, interpolate: bool | Literal["signed"] = False) -> TAFCurve:
        """Return the TAF curve of these models.

        Parameters
        ----------
        interpolate : {False, True, "signed"}
            False: the step curve TAF. True: TAFI, its concave hull. "signed": the best that any randomised mixture of
            the models attains, which is never below TAFI.

        Returns
        -------
        TAFCurve
            `support` holds indices into `names`.

        Notes
        -----
        Theorem 2 of the paper says that TAFI is the TAF of all randomised mixtures. That is so only while fairness is
        an average over mixtures, and 1 − |bias| is one only while the biases have one sign: half of a model with bias
        +b and half of one with bias −b is perfectly fair. The signed curve is the maximum of Σ pᵢ·accuracyᵢ over all
        probabilities p with |Σ pᵢ·biasᵢ| ≤ 1 − f on every contrast.

        Examples
        --------
        >>> import numpy as np
        >>> y, sex = np.array([1, 0, 1, 0]), np.array(["a", "a", "b", "b"])
        >>> scores = {"pro_a": [1, 1, 1, 0], "pro_b": [1, 0, 1, 1]}
        >>> points = tradeoff_points(y, scores, sensitive_features=sex, include_constant=False)
        >>> points.bias.ravel()
        array([ 0.5, -0.5])
        >>> points.frontier(interpolate=True)(1.0), points.frontier(interpolate="signed")(1.0)
        (0.0, 0.75)
        """
        if isinstance(interpolate, str):
            validate.one_of(interpolate, ("signed",), parameter="interpolate")
            return signed_frontier(self.rates, self.sets, self.accuracy)
        return taf_curve(self.fairness, self.accuracy, interpolate=interpolate)

    def select(self, models: Sequence[str] | IntArray | NDArray[np.bool_]) -> "TradeoffPoints":
        """Return the points of some of the models, by name, index or boolean mask."""
        chosen = list(models)
        if chosen and isinstance(chosen[0], str):
            position = {name: i for i, name in enumerate(self.names)}
            index = np.array([position[validate.one_of(n, self.names, parameter="models")] for n in chosen])
        else:
            index = np.arange(len(self.names))[np.asarray(models)]
        return TradeoffPoints(
            self.fairness[index],
            self.accuracy[index],
            tuple(self.names[i] for i in index),
            self.rates[index],
            self.sets,
        )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        best = int(np.argmax(self.accuracy))
        fairest = int(np.lexsort((self.accuracy, self.fairness))[-1])
        shown = [
            f"{title} {self.names[i]!r}: accuracy {self.accuracy[i]:.4f}, fairness {self.fairness[i]:.4f}"
            for title, i in (("most accurate", best), ("fairest", fairest))
        ]
        return f"TradeoffPoints({len(self)} models; {'; '.join(shown)})"


def tradeoff_points(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
) -> TradeoffPoints:
    """Compute fairness and accuracy of every model in one pass over the rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Two classes of any type (the second in sorted order is positive), or numbers for regression.
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores or 0/1 decisions of `k` models, by name, by column.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
        One or more sensitive attributes; groups may be anything hashable.
    fairness : str, list of (mask, mask), or callable
        ``"demographic_parity"``, ``"equal_opportunity"``, ``"predictive_equality"``, ``"equalized_odds"``; pairs of
        boolean masks of length n; or a function ``(y_true, y_pred, *, sensitive_features) -> bias``, 0 meaning fair,
        such as Fairlearn's differences. Functions are called once a model and see decisions.
    accuracy : str or callable
        ``"accuracy"``, ``"balanced_accuracy"``, ``"brier"`` (1 − Brier score), ``"r2"`` (clipped to [0, 1]),
        ``"exp_mse"`` (e to the −MSE), or a function ``(y_true, y_pred) -> float in [0, 1]``. The measures ``"r2"`` and
        ``"exp_mse"`` are those of regression: fairness is then that of the scores.
    threshold : float or None
        A score strictly above it is decision 1. None takes the scores as they are, for fairness and for accuracy: as
        the probabilities with which a randomised model decides 1.
    sensitive_mode : {"separate", "intersectional"}
        With several attributes: the contrasts of each, or of their cross product.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights.
    include_constant : bool
        Add the best constant model, named ``"constant"``, as the last one: it is perfectly fair.

    Returns
    -------
    TradeoffPoints
        One point a model.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1, 0, 1, 0, 1, 0])
    >>> sex = np.array(["f", "f", "f", "m", "m", "m"])
    >>> points = tradeoff_points(y, {"a": [0.9, 0.2, 0.8, 0.1, 0.7, 0.3]}, sensitive_features=sex)
    >>> points.names
    ('a', 'constant')
    >>> points.accuracy
    array([1. , 0.5])
    >>> points.fairness.round(4)
    array([0.6667, 1.    ])
    """
    preds = validate.predictions(y_preds)
    if include_constant and CONSTANT in preds.names:
        raise InvalidInputError(
            f"y_preds must not name a model {CONSTANT!r} while include_constant=True adds one of that name; "
            "rename it or pass include_constant=False"
        )
    rows = _Rows(y_true, preds, sensitive_features, accuracy, threshold, sample_weight)
    if callable(fairness):
        rates, sets = rows.callable_rates(fairness, sensitive_features, include_constant)
        contrasts = build_contrasts("demographic_parity", label=rows.label, attributes=rows.attributes)
        sums = rows.sums(contrasts.cells, include_constant)
    else:
        contrasts = build_contrasts(
            fairness, label=rows.label, attributes=rows.attributes, sensitive_mode=sensitive_mode
        )
        sums = rows.sums(contrasts.cells, include_constant)
        rates, sets = contrasts.rates(sums.outcome, sums.weight), contrasts.sets
    values = rows.accuracies(sums, contrasts.cells, include_constant)
    names = preds.names + ((CONSTANT,) if include_constant else ())
    return points_from_rates(rates, sets, values, names)


def points_from_rates(rates: FloatArray, sets: RowSets, accuracy: FloatArray, names: tuple[str, ...]) -> TradeoffPoints:
    """Return points from group rates (k, s) and accuracies (k,)."""
    # An accuracy is a quotient of sums; rounding may leave it a hair outside [0, 1].
    return TradeoffPoints(
        np.clip(1.0 - sets.largest_gap(rates), 0.0, 1.0), np.clip(accuracy, 0.0, 1.0), names, rates, sets
    )


class _Rows:
    """The validated rows of one call."""

    def __init__(
        self,
        y_true: Any,
        preds: Predictions,
        sensitive_features: Any,
        accuracy: Accuracy,
        threshold: float | None,
        sample_weight: Any,
    ) -> None:
        self.preds = preds
        self.measure: AccuracyMeasure | Callable[..., float] = (
            accuracy
            if callable(accuracy)
            else ACCURACY_MEASURES[validate.one_of(accuracy, ACCURACY_MEASURES, parameter="accuracy")]
        )
        self.squared_error = isinstance(self.measure, AccuracyMeasure) and self.measure.squared_error
        self.label: NDArray[np.bool_] | None = None
        if isinstance(self.measure, AccuracyMeasure) and self.measure.regression:
            self.y: FloatArray = validate.target(y_true)
            self.threshold = None
        else:
            self.label, _ = validate.labels(y_true)
            self.y = self.label.astype(np.float64)
            self.threshold = (
                None
                if threshold is None
                else validate.number(
                    threshold,
                    parameter="threshold",
                    low=0.0,
                    high=1.0,
                    advice=": scores are compared with it",
                )
            )
        validate.same_length(len(self.y), y_preds=len(preds.matrix))
        self.weight = validate.sample_weights(sample_weight, len(self.y))
        self.attributes = validate.attributes(sensitive_features, len(self.y))
        self._check_unit_scores()

    def _check_unit_scores(self) -> None:
        """Probabilities must be in [0, 1] where a measure reads them as such."""
        if self.label is None or (self.threshold is not None and not self.squared_error):
            return
        low, high = self.preds.matrix.min(), self.preds.matrix.max()
        if low >= 0 and high <= 1:
            return
        validate.finite(self.preds.matrix, parameter="y_preds", names=self.preds.names)
        reason = "accuracy='brier'" if self.threshold is not None else "threshold=None"
        raise InvalidInputError(
            f"y_preds must be in [0, 1] with {reason}, which reads scores as probabilities; got values from {low:g} to "
            f"{high:g}: clip or calibrate them, or pass a threshold"
        )

    def sums(self, cells: Cells, include_constant: bool) -> CellSums:
        """Return sums over cells; the constant candidates, if any, are the last columns."""
        sums = cell_sums(
            self.preds.matrix,
            cells,
            threshold=self.threshold,
            weight=self.weight,
            y=self.y if self.squared_error else None,
            names=self.preds.names,
        )
        if not include_constant:
            return sums
        mean = np.average(self.y, weights=self.weight)
        return sums.append(
            outcome=sums.weight[:, None] * self._best_constant(sums, cells),
            # A constant score of the mean is the best one for every squared error.
            squared_error=np.array([np.average((self.y - mean) ** 2, weights=self.weight) * sums.weight.sum()]),
        )

    def _best_constant(self, sums: CellSums, cells: Cells) -> float:
        """Return the best constant outcome: the majority decision, or the mean for regression."""
        if self.label is None:
            return float(np.average(self.y, weights=self.weight))
        if not isinstance(self.measure, AccuracyMeasure):
            return float(np.argmax(self._constant_values(self.measure)))
        return float(sums.weight[cells.label].sum() > sums.weight[~cells.label].sum())

    def accuracies(self, sums: CellSums, cells: Cells, include_constant: bool) -> FloatArray:
        """Return the accuracy of each model."""
        if isinstance(self.measure, AccuracyMeasure):
            return self.measure.value(sums, cells.label)
        values = [self._call(self.measure, column) for column in self._decisions()]
        if include_constant:
            values.append(max(self._constant_values(self.measure)))
        result = np.array(values, dtype=np.float64)
        if not np.all((result >= -1e-9) & (result <= 1 + 1e-9)):
            raise InvalidInputError(
                f"accuracy must return values in [0, 1], larger is better; got {result.min():g} to {result.max():g}"
            )
        return result

    def _constant_values(self, function: Callable[..., float]) -> list[float]:
        return [self._call(function, np.full(len(self.y), constant)) for constant in (0, 1)]

    def callable_rates(
        self, fairness: Callable[..., float], sensitive_features: Any, include_constant: bool
    ) -> tuple[FloatArray, RowSets]:
        """Return a callable's bias as the rate of one row set against a second one at zero."""
        validate.finite(self.preds.matrix, parameter="y_preds", names=self.preds.names)
        values = [self._call(fairness, column, sensitive_features=sensitive_features) for column in self._decisions()]
        if include_constant:
            values.append(0.0)
        bias = np.array(values, dtype=np.float64)
        if not np.all(np.isfinite(bias)):
            raise InvalidInputError(f"fairness must return finite biases (0: fair); got {bias[~np.isfinite(bias)][0]}")
        name = getattr(fairness, "__name__", type(fairness).__name__)
        return np.stack([bias, np.zeros_like(bias)], axis=1), RowSets((name, "parity"), ((0, 1),), (name,))

    def _decisions(self) -> list[NDArray[Any]]:
        if self.threshold is None:
            return list(self.preds.matrix.T)
        return [(column > self.threshold).astype(np.intp) for column in self.preds.matrix.T]

    def _call(self, function: Callable[..., float], predicted: NDArray[Any], **keywords: Any) -> float:
        y = self.y if self.label is None else self.label.astype(np.intp)
        if self.weight is not None:
            if "sample_weight" not in inspect.signature(function).parameters:
                name = getattr(function, "__name__", repr(function))
                raise InvalidInputError(f"sample_weight was given, but the function {name} does not take sample_weight")
            keywords["sample_weight"] = self.weight
        return float(function(y, predicted, **keywords))


def contrasts_for_fit(
    fairness: str | Sequence[tuple[Any, Any]],
    *,
    label: NDArray[np.bool_] | None,
    sensitive_features: Any,
    n_rows: int,
    sensitive_mode: str,
) -> Contrasts:
    """Return the contrasts of a fit from raw sensitive features."""
    attributes = validate.attributes(sensitive_features, n_rows)
    return build_contrasts(fairness, label=label, attributes=attributes, sensitive_mode=sensitive_mode)
