"""Models and data of Fairlearn, OxonFair and AIF360: what we read from them."""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._extras import require
from fairfrontier._scores import classes_of, positive_scores
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points

Columns = dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class ModelQuery:
    """The rows to predict, and what else some models need."""

    X: Any  # (n, p): features
    y: Any  # (n,): labels, where they are known
    sensitive_features: Any  # the groups, for models with one threshold per group
    # True: scores where a model has them. False: decisions, or for a randomised model the probability of decision 1.
    scores: bool
    train: Any  # the rows that the candidates of a search are fitted on
    fit_params: Mapping[str, Any]  # further arguments of their `fit`, one value per row
    n_jobs: int | None  # processes in which they are fitted

    def attribute_columns(self, model: str) -> dict[str, NDArray[Any]]:
        """Return the sensitive attributes, which the model of that name needs."""
        if self.sensitive_features is None:
            raise InvalidInputError(
                f"sensitive_features must be given: a {model} has a threshold for each group; got None"
            )
        return validate.attribute_columns(self.sensitive_features)


def not_fitted(model: Any, how: str = "call fit first") -> InvalidInputError:
    """Return the error for a model that has not been fitted."""
    return InvalidInputError(f"model must be fitted; this {type(model).__name__} is not: {how}")


def not_binary(model: Any, got: str) -> InvalidInputError:
    """Return the error for a model that does not decide between two classes."""
    return InvalidInputError(
        f"model must decide between two classes; this {type(model).__name__} {got}: evaluate one class against the rest"
    )


def known_groups(values: Iterable[Any], known: Iterable[Any], model: str) -> None:
    """Raise if a group has no threshold: its library would silently take that of another group, or decide 0."""
    have = set(known)
    for value in dict.fromkeys(values):
        if value not in have:
            shown = ", ".join(sorted(map(repr, have))[:8])
            raise GroupError(
                f"sensitive_features must hold groups that the {model} was fitted on, {shown}; got {value!r}: drop "
                "these rows, or fit it again with such rows"
            )


def numbered(name: str, count: int) -> list[str]:
    """Return `count` names whose alphabetical order is that of the numbers.

    Examples
    --------
    >>> numbered("predictor", 11)[-2:]
    ['predictor 09', 'predictor 10']
    """
    width = max(2, len(str(count - 1)))
    return [f"{name} {j:0{width}d}" for j in range(count)]


def shortened(value: Any, longest: int) -> str:
    """Return a value as text on one line, with so many characters at the most."""
    text = " ".join(str(value).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def as_decision(values: Any, model: Any) -> FloatArray:
    """Return predictions as 0 and 1 floats; refuse anything else."""
    found = np.asarray(values)
    if not np.isin(found, (0, 1)).all():
        raise not_binary(model, f"predicts {np.unique(found)[:4].tolist()}")
    return found.astype(np.float64)


def is_a(model: Any, package: str, name: str) -> bool:
    """Tell whether a class of that package and name is among the types of an object, without importing it.

    Examples
    --------
    >>> is_a(np.bool_(True), "numpy", "generic"), is_a(True, "numpy", "generic")
    (True, False)
    """
    return any(package_of(kind) == package and kind.__name__ == name for kind in type(model).__mro__)


def package_of(kind: type) -> str:
    """Return the name of the package that a class comes from."""
    return kind.__module__.partition(".")[0]


MIXTURE = "mixture"


def read_exponentiated_gradient(model: Any, query: ModelQuery) -> Columns:
    """Return the randomised mixture's exact expected decisions, and the decisions of every inner predictor."""
    decisions = _inner_decisions(model, query)
    # The weights are in the order in which the optimiser found them; their index is the number of the predictor.
    probability = np.asarray(model.weights_.sort_index(), dtype=np.float64)
    expected = np.clip(probability / probability.sum() @ np.stack(decisions), 0.0, 1.0)
    return {MIXTURE: expected} | _inner(list(model.predictors_), decisions, query)


def read_grid_search(model: Any, query: ModelQuery) -> Columns:
    """Return the decisions of every predictor of the grid."""
    decisions = _inner_decisions(model, query)  # first: it says so where nothing is fitted
    return _inner(model.predictors_, decisions, query)


def read_threshold_optimizer(model: Any, query: ModelQuery) -> Columns:
    """Return the exact probabilities of decision 1, from the interpolation between two thresholds per group."""
    if not hasattr(model, "interpolated_thresholder_"):
        raise not_fitted(model)
    pandas = require("pandas", extra="learners", purpose="Reading a ThresholdOptimizer")
    groups = pandas.DataFrame(query.attribute_columns(type(model).__name__))
    # Fairlearn names a group of several attributes by its values, separated by commas.
    values = groups.iloc[:, 0] if groups.shape[1] == 1 else groups.astype(str).agg(",".join, axis=1)
    known_groups(values, model.interpolated_thresholder_.interpolation_dict, type(model).__name__)
    probability = model._pmf_predict(query.X, sensitive_features=groups)[:, 1]
    return {type(model).__name__: np.clip(np.asarray(probability, dtype=np.float64), 0.0, 1.0)}


def _inner_decisions(model: Any, query: ModelQuery) -> list[FloatArray]:
    """Return the decisions of the predictors inside a fitted reduction to classification."""
    predictors = getattr(model, "predictors_", None)
    if predictors is None or len(predictors) == 0:
        raise not_fitted(model)
    moments = require("fairlearn.reductions", extra="learners", purpose=f"Reading a {type(model).__name__}")
    if not isinstance(model.constraints, moments.ClassificationMoment):
        raise not_binary(model, f"was fitted under {type(model.constraints).__name__}, which is for regression")
    return [as_decision(one.predict(query.X), model) for one in predictors]


def _inner(predictors: list[Any], decisions: list[FloatArray], query: ModelQuery) -> Columns:
    columns = {}
    for name, one, decision in zip(numbered("predictor", len(predictors)), predictors, decisions, strict=True):
        # A predictor that was fitted to labels of one class has one column: its only score is its decision.
        scored = query.scores and hasattr(one, "predict_proba") and len(one.classes_) == 2
        columns[name] = positive_scores(one, query.X, classes=classes_of(one), name=name) if scored else decision
    return columns


def read_fair_predictor(model: Any, query: ModelQuery) -> Columns:
    """Return the decisions at every point of the frontier; the predictor itself keeps its operating point."""
    if model.frontier is None:
        raise not_fitted(model, "call fit(objective, constraint, value) first")
    if model.add_noise:
        raise InvalidInputError(
            "model must have add_noise=False: a FairPredictor with noise decides differently at each call, and its "
            f"figures could not be repeated; got add_noise={model.add_noise!r}"
        )
    at = copy.copy(model)
    # Each point has other thresholds for the same scores, so the model that gives the scores predicts once.
    at.predictor = _remembered(_probabilities(model.predictor, query.X))
    data = {"data": query.X, "target": np.zeros(len(query.X), dtype=np.intp)}
    if model.inferred_groups is not False:
        at.inferred_groups = _remembered(_probabilities(model.inferred_groups, query.X))
    elif model.groups is not False:
        data["groups"] = _groups(model, query)
        at.groups = None
    offsets = np.moveaxis(np.asarray(model.frontier[1], dtype=np.float64), -1, 0)
    columns = {}
    for name, offset in zip(numbered("frontier", len(offsets)), offsets, strict=True):
        at.offset = offset
        columns[name] = as_decision(at.predict(data), model)
    return columns


def _probabilities(predictor: Any, X: Any) -> NDArray[Any]:
    return np.asarray(predictor(X) if callable(predictor) else predictor.predict_proba(X))


def _remembered(probability: NDArray[Any]) -> Callable[[Any], NDArray[Any]]:
    def predictor(data: Any) -> NDArray[Any]:
        return probability.copy()  # OxonFair adds its offsets in place

    return predictor


def _groups(model: Any, query: ModelQuery) -> NDArray[Any]:
    """Return the groups that choose the thresholds; where the model names a column of X, that column."""
    if isinstance(model.groups, (str, int)) and query.sensitive_features is None:
        values = model.groups_to_numpy(model.groups, query.X)
    else:
        columns = query.attribute_columns(type(model).__name__)
        if len(columns) != 1:
            raise InvalidInputError(
                f"sensitive_features must be the one attribute that the FairPredictor was fitted with; got "
                f"{len(columns)}: predict with that one, and evaluate the predictions with all: "
                "tradeoff_points(y, predictions(model, X, sensitive_features=one), sensitive_features=all)"
            )
        (values,) = columns.values()
    known_groups(values.tolist(), model.group_encoder.categories_[0].tolist(), type(model).__name__)
    return np.asarray(values)


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
