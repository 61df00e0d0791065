"""Read AIF360's data sets: true labels, predicted labels, protected attributes and weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.adapters._query import is_a
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points


@dataclass(frozen=True, eq=False)
class AIF360Data:
    """The content of AIF360's data sets, in the form that `tradeoff_points` takes.

    Attributes
    ----------
    y_true : ndarray of shape (n,)
        1 where the true label is the favourable one.
    y_preds : dict of str to ndarray of shape (n,)
        Decisions of each model, 1 where the predicted label is the favourable one; or its scores.
    sensitive_features : dict of str to ndarray of shape (n,)
        The protected attributes.
    sample_weight : ndarray of shape (n,)
        The instance weights.
    """

    y_true: NDArray[np.intp]
    y_preds: dict[str, FloatArray]
    sensitive_features: dict[str, NDArray[Any]]
    sample_weight: FloatArray

    def points(self, **options: Any) -> TradeoffPoints:
        """Return fairness and accuracy of each model; `options` are those of `tradeoff_points`."""
        rows = {"sensitive_features": self.sensitive_features, "sample_weight": self.sample_weight}
        return tradeoff_points(self.y_true, self.y_preds, **{**rows, **options})


def read_aif360(true: Any, predicted: Any, *, scores: bool = False, privileged: bool = False) -> AIF360Data:
    """Read a data set of true labels and one or more with the labels that models predict for the same rows.

    Parameters
    ----------
    true : BinaryLabelDataset
        True labels, protected attributes, instance weights.
    predicted : BinaryLabelDataset, or dict of them by the model's name
        The same instances with predicted labels.
    scores : bool
        Take the predicted `scores` instead of the labels.
    privileged : bool
        Compare privileged with unprivileged instances, as AIF360 does, instead of all values of each attribute.

    Returns
    -------
    AIF360Data
        Arrays for `tradeoff_points`; its method `points` calls it.

    Examples
    --------
    >>> import pandas as pd
    >>> from aif360.datasets import BinaryLabelDataset
    >>> rows = pd.DataFrame({"sex": [0, 0, 1, 1], "hired": [1, 0, 1, 0]})
    >>> true = BinaryLabelDataset(df=rows, label_names=["hired"], protected_attribute_names=["sex"])
    >>> predicted = true.copy()
    >>> predicted.labels = [[1.0], [0.0], [1.0], [1.0]]
    >>> points = read_aif360(true, {"model": predicted}).points()
    >>> points.accuracy[0], points.fairness[0]
    (np.float64(0.75), np.float64(0.5))
    """
    _check_type(true, "true")
    models = dict(predicted) if isinstance(predicted, Mapping) else {"model": predicted}
    if not models:
        raise InvalidInputError("predicted must hold at least one data set; got an empty dict")
    columns = {}
    for name, dataset in models.items():
        _check_type(dataset, f"predicted[{name!r}]")
        _check_same_rows(true, dataset, f"predicted[{name!r}]")
        columns[str(name)] = np.asarray(dataset.scores, dtype=np.float64).ravel() if scores else _favourable(dataset)
    weights = np.asarray(true.instance_weights, dtype=np.float64)
    return AIF360Data(_favourable(true).astype(np.intp), columns, _attributes(true, privileged), weights)


def _favourable(dataset: Any) -> FloatArray:
    return np.asarray(np.ravel(dataset.labels) == dataset.favorable_label, dtype=np.float64)


def _attributes(dataset: Any, privileged: bool) -> dict[str, NDArray[Any]]:
    columns = dict(zip(dataset.protected_attribute_names, np.asarray(dataset.protected_attributes).T, strict=True))
    if not columns:
        raise InvalidInputError("true must have a protected attribute; got none: name one where the data set is made")
    if not privileged:
        return columns
    privileged_values = dict(zip(columns, dataset.privileged_protected_attributes, strict=True))
    return {
        name: np.where(np.isin(column, privileged_values[name]), "privileged", "unprivileged")
        for name, column in columns.items()
    }


def _check_type(dataset: Any, parameter: str) -> None:
    if not is_a(dataset, "aif360", "BinaryLabelDataset"):
        raise InvalidInputError(
            f"{parameter} must be an AIF360 BinaryLabelDataset, which has two labels; got {type(dataset).__name__}"
        )


def _check_same_rows(true: Any, predicted: Any, parameter: str) -> None:
    if list(true.instance_names) != list(predicted.instance_names):
        raise InvalidInputError(
            f"{parameter} must hold the instances of true in the same order; its instance_names differ: predict a copy "
            "of that data set"
        )
    if predicted.favorable_label != true.favorable_label:
        raise InvalidInputError(
            f"{parameter} must have the favourable label of true, {true.favorable_label!r}; got "
            f"{predicted.favorable_label!r}"
        )
    names = list(true.protected_attribute_names)
    same = names == list(predicted.protected_attribute_names)
    if not same or not np.array_equal(true.protected_attributes, predicted.protected_attributes):
        raise InvalidInputError(
            f"{parameter} must have the protected attributes of true, {names}, with the same values: fairness would "
            "otherwise compare other groups"
        )
