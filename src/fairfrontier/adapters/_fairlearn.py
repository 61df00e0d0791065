"""Read fitted models of Fairlearn: reductions and the threshold optimizer."""

from typing import Any

import numpy as np

from fairfrontier._extras import require
from fairfrontier._scores import classes_of, positive_scores
from fairfrontier._validation import FloatArray
from fairfrontier.adapters._query import (
    Columns,
    ModelQuery,
    as_decision,
    known_groups,
    not_binary,
    not_fitted,
    numbered,
)

MIXTURE = "mixture"


def read_exponentiated_gradient(model: Any, query: ModelQuery) -> Columns:
    """Return the randomised mixture's exact expected decisions, and the decisions of every inner predictor."""
    if not hasattr(model, "predictors_"):
        raise not_fitted(model)
    _check_classification(model)
    # The weights are in the order in which the optimiser found them; their index is the number of the predictor.
    probability = np.asarray(model.weights_.sort_index(), dtype=np.float64)
    decisions = [as_decision(one.predict(query.X), model) for one in model.predictors_]
    expected = np.clip(probability / probability.sum() @ np.stack(decisions), 0.0, 1.0)
    return {MIXTURE: expected} | _inner(list(model.predictors_), decisions, query)


def read_grid_search(model: Any, query: ModelQuery) -> Columns:
    """Return the decisions of every predictor of the grid."""
    if not getattr(model, "predictors_", None):
        raise not_fitted(model)
    _check_classification(model)
    decisions = [as_decision(one.predict(query.X), model) for one in model.predictors_]
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


def _check_classification(model: Any) -> None:
    moments = require("fairlearn.reductions", extra="learners", purpose=f"Reading a {type(model).__name__}")
    if not isinstance(model.constraints, moments.ClassificationMoment):
        raise not_binary(model, f"was fitted under {type(model.constraints).__name__}, which is for regression")


def _inner(predictors: list[Any], decisions: list[FloatArray], query: ModelQuery) -> Columns:
    columns = {}
    for name, one, decision in zip(numbered("predictor", len(predictors)), predictors, decisions, strict=True):
        # A predictor that was fitted to labels of one class has one column: its only score is its decision.
        scored = query.scores and hasattr(one, "predict_proba") and len(one.classes_) == 2
        columns[name] = positive_scores(one, query.X, classes=classes_of(one), name=name) if scored else decision
    return columns
