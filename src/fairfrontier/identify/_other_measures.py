"""Measures beyond sums of two classes over cells: the user's functions, and labels of several classes."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import as_array
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray, distinct, two_classes
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import RowSets, of_fairlearn
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
        if _is_ratio(fairness):
            bias = 1.0 - bias
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
                    "add that parameter to the function"
                )
            keywords["sample_weight"] = self.rows.weight
        return float(function(self.y, outcome, **keywords))


def _is_ratio(function: Any) -> bool:
    """Tell whether a function is one of Fairlearn's ratios, which are 1 for a fair model; its differences are 0."""
    compared, how = of_fairlearn(function)
    if how in ("group_min", "group_max"):
        raise InvalidInputError(
            f"fairness must compare groups; got Fairlearn's {compared}_{how}, which is the value of one of them: use a "
            "difference or a ratio"
        )
    return how == "ratio"


def _takes(function: Callable[..., float], parameter: str) -> bool:
    parameters = inspect.signature(function).parameters
    return parameter in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def class_decisions(y_true: Any, y_preds: Any) -> tuple[list[Any], IntArray, dict[str, IntArray]] | None:
    """Return the classes, the label and the decisions of each model as their numbers; None: no case of several classes.

    It is one if the labels have more than two classes and every prediction is one of them.
    """
    classes, codes = validate.distinct(validate.column(y_true, parameter="y_true"), parameter="y_true")
    if len(classes) < 3 or any(validate.is_missing(value) for value in classes):
        return None
    number = {value: i for i, value in enumerate(classes)}
    decided = {}
    for name, column in _columns(y_preds).items():
        found, of_row = validate.distinct(column, parameter=f"y_preds[{name!r}]")
        if len(column) != len(codes) or not all(value in number for value in found):
            return None
        decided[name] = np.array([number[value] for value in found], dtype=np.intp)[of_row]
    return classes, codes, decided


def _columns(y_preds: Any) -> dict[str, NDArray[Any]]:
    found = validate.named_columns(y_preds, parameter="y_preds")
    if found is not None:
        return dict(zip(found[1], found[0], strict=True))
    matrix = as_array(y_preds, parameter="y_preds", tuples_are_labels=False)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    return {f"model_{j}": matrix[:, j] for j in range(matrix.shape[1])}


def joined(parts: list[tuple[Any, FloatArray, RowSets]]) -> tuple[FloatArray, RowSets]:
    """Return the rates (k, s) and the row sets of all classes together; groups are compared class by class."""
    names: list[str] = []
    blocks: list[tuple[int, ...]] = []
    attributes: list[str] = []
    reference: list[int] = []
    for value, _, sets in parts:
        start = len(names)
        names += [f"{name} | decided {value}" for name in sets.names]
        blocks += [tuple(start + s for s in block) for block in sets.blocks]
        attributes += sets.attributes
        reference += [start + s for s in sets.reference]
    comparison = parts[0][2].comparison
    rates = np.hstack([part[1] for part in parts])
    return rates, RowSets(tuple(names), tuple(blocks), tuple(attributes), comparison, tuple(reference))
