"""Read classifiers of scikit-learn's kind, stacks, and the families of `fairfrontier.learners`."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.adapters._request import Columns, Request, as_decision, not_binary, not_fitted, numbered
from fairfrontier.exceptions import InvalidInputError


def check_fitted(model: Any) -> None:
    """Raise if an estimator of scikit-learn's kind has not been fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise not_fitted(model) from None


def regresses(model: Any) -> bool:
    """Tell whether a model says of itself that it is a regressor; those of other libraries may say nothing."""
    return hasattr(model, "__sklearn_tags__") and bool(is_regressor(model))


def read_classifier(model: Any, request: Request) -> Columns:
    """Return what one fitted classifier decides."""
    # Only scikit-learn's own kind says what it is and whether it is fitted; others are judged by what they predict.
    if hasattr(model, "__sklearn_tags__"):
        if not is_classifier(model):
            raise not_binary(model, "is no classifier")
        check_fitted(model)
    check_classes(model, request.y)
    return {type(model).__name__: response(model, request.X, scores=request.scores)}


def response(model: Any, X: Any, *, scores: bool) -> FloatArray:
    """Return the decisions (n,) of a fitted classifier, or its scores where it has them."""
    if scores and hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
    predicted = np.asarray(model.predict(X))
    classes = getattr(model, "classes_", None)
    return as_decision(predicted if classes is None else predicted == classes[1], model)


def check_classes(model: Any, y: Any) -> None:
    """Raise if a classifier has not two classes, or others than the labels."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return
    if len(classes) != 2:
        raise not_binary(model, f"was fitted to {len(classes)}")
    if y is None:
        return
    for value in np.unique(validate.column(y, parameter="y")).tolist():
        if value not in classes:
            raise InvalidInputError(
                f"y must have the classes that the {type(model).__name__} was fitted to, {classes.tolist()}; got "
                f"{value!r}: encode both alike"
            )


def read_stack(model: Any, request: Request) -> Columns:
    """Return the decisions of every stack on a FairStacks path."""
    check_fitted(model)
    if regresses(model):
        raise not_binary(model, "is for regression, and has points of its own: model.points(X, y, ...)")
    check_classes(model, request.y)
    groups = {"sensitive_features": request.sensitive_features} if model.attribute_aware else {}
    scores = model.predict_path(request.X, **groups)
    columns = np.clip(scores, 0.0, 1.0) if request.scores else (scores > model.threshold).astype(np.float64)
    return dict(zip(numbered("stack", columns.shape[1]), columns.T, strict=True))


def read_fair_learner(model: Any, request: Request) -> Columns:
    """Return the decisions of one fair learner; of a randomised one the exact expected decisions."""
    return read_classifier(model, replace(request, scores=request.scores or model.is_randomized))


def read_family(model: Any, request: Request) -> Columns:
    """Return the decisions of every model of a fitted family."""
    if hasattr(model, "families"):
        return {name: column for part in model.families for name, column in read_family(part, request).items()}
    matrix = np.asarray(model.predict_matrix(request.X), dtype=np.float64)
    if not (request.scores or model.is_randomized):
        matrix = (matrix > 0.5).astype(np.float64)
    return dict(zip(model.names, np.clip(matrix, 0.0, 1.0).T, strict=True))
