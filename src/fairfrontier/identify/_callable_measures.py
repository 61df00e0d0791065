"""Fairness and accuracy measures that are functions, such as those of Fairlearn and scikit-learn."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, distinct, two_classes
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._sums import checked_threshold, decision_threshold, named_accuracy


class Calls:
    """Calls of functions with the labels and the decisions of each model.

    Parameters
    ----------
    rows : Rows
        All rows.
    sensitive_features : array-like, dict or dataframe
        As the caller gave it: a function gets it unchanged.
    accuracy : str or callable
        The accuracy measure: one of regression has no decisions, and a function sees what the threshold leaves.
    threshold : float or None
        A score strictly above it is decision 1.
    """

    def __init__(self, rows: Rows, sensitive_features: Any, accuracy: Accuracy, threshold: float | None) -> None:
        regression = not callable(accuracy) and named_accuracy(accuracy).regression
        self.rows, self.sensitive_features = rows, sensitive_features
        self.threshold = None if regression else checked_threshold(threshold)
        if regression:
            self.y: NDArray[Any] = rows.numbers()
        else:
            classes, codes = distinct(np.asarray(rows.y), parameter="y_true")
            two_classes(classes)
            self.y = codes

    def biases(self, fairness: Callable[..., float], *, include_constant: bool) -> FloatArray:
        """Return a function's bias of each model, shape (k,); the constant model, if asked for, has none."""
        features = self.sensitive_features
        bias = np.array([self._call(fairness, outcome, sensitive_features=features) for outcome in self._outcomes()])
        if not np.all(np.isfinite(bias)):
            wrong = int(np.argmin(np.isfinite(bias)))
            raise InvalidInputError(
                f"fairness must return a finite bias, 0 for a fair model; got {bias[wrong]:g} for "
                f"{self.rows.names[wrong]!r}: is one of its groups empty?"
            )
        return np.append(bias, 0.0) if include_constant else bias

    def accuracies(self, accuracy: Callable[..., float], *, include_constant: bool) -> tuple[FloatArray, float]:
        """Return a function's accuracy of each model, shape (k,), and the outcome of the best constant model."""
        values = self._accuracies(accuracy, self._outcomes())
        if not include_constant:
            return values, 0.0
        both = self._accuracies(accuracy, [np.full(len(self.y), value) for value in (0, 1)])
        return np.append(values, both.max()), float(both.argmax())

    def _accuracies(self, accuracy: Callable[..., float], outcomes: Sequence[NDArray[Any]]) -> FloatArray:
        values = np.array([self._call(accuracy, outcome) for outcome in outcomes])
        if not np.all((values >= -1e-9) & (values <= 1 + 1e-9)):
            raise InvalidInputError(
                f"accuracy must return values in [0, 1], larger is better; got {values.min():g} to {values.max():g}: "
                "rescale what the function returns"
            )
        return values

    def _outcomes(self) -> list[NDArray[Any]]:
        if self.threshold is None:
            return list(self.rows.scores.T)
        limit = decision_threshold(self.rows.scores, self.threshold)
        return [(scores > limit).astype(np.intp) for scores in self.rows.scores.T]

    def _call(self, function: Callable[..., float], outcome: NDArray[Any], **keywords: Any) -> float:
        if self.rows.weight is not None:
            if not _takes(function, "sample_weight"):
                name = getattr(function, "__name__", repr(function))
                raise InvalidInputError(
                    f"sample_weight must be None with the function {name}, which takes no sample_weight; got weights: "
                    "give it that parameter"
                )
            keywords["sample_weight"] = self.rows.weight
        return float(function(self.y, outcome, **keywords))


def _takes(function: Callable[..., float], parameter: str) -> bool:
    parameters = inspect.signature(function).parameters
    return parameter in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
