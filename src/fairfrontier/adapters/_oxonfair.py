"""Read the frontier of an OxonFair predictor: each of its points is a model."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier.adapters._query import Columns, ModelQuery, as_decision, known_groups, not_fitted, numbered
from fairfrontier.exceptions import InvalidInputError


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
