"""From a fitted model to its score of the positive class.

This is the only module that asks a model for scores, so that displays, mixtures, adapters and stacks agree. The rule:

1. A classifier with `predict_proba` gives the probability of the positive class, found by its position in `classes_`.
2. A classifier without it gives its decision, 1 where `predict` answers the positive class and 0 elsewhere. A margin of
   `decision_function` is no probability and is never compared with a threshold of 0.5. Only a stack takes margins: it
   learns their scale with the weights.
3. A model that is no classifier gives what it predicts: labels are decisions, numbers are scores of the labels 0 and 1.

For regression (`classes` is None) the score is the prediction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._columns import FloatArray, column, finite, numeric
from fairfrontier._validation import check_finite, known_values
from fairfrontier.exceptions import InvalidInputError

Classes = Sequence[Any] | NDArray[Any]


def positive_scores(model: Any, X: Any, *, classes: Classes | None, name: str, for_stack: bool = False) -> FloatArray:
    """Return the score of the positive class that a fitted model gives each row.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = LinearSVC().fit(X, ["no", "no", "yes", "yes"])
    >>> positive_scores(model, X, classes=("no", "yes"), name="svc")
    array([0., 0., 1., 1.])
    """
    if classes is None:
        found = _numbers(_predicted(model, X), name)
    elif not classifies(model):
        found = _numbers(_predicted(model, X), name) if for_stack else _scores_or_labels(model, X, classes, name)
    else:
        found = _classifier_scores(model, X, classes, name, for_stack)
    if not for_stack:
        check_finite(found[:, None], [name])
    return found


def positive_decisions(model: Any, X: Any, *, classes: Classes, name: str) -> FloatArray:
    """Return 1.0 where `predict` of a fitted model answers the positive class, and 0.0 elsewhere."""
    check_own_classes(model, classes, name)
    return _decided(_predicted(model, X), classes, name)


def positive_labels(y: Any, classes: Classes, *, whose: str = "of the fit") -> NDArray[np.bool_]:
    """Return known labels as booleans, True for the second of the classes.

    Examples
    --------
    >>> positive_labels(["no", "yes"], ("no", "yes"))
    array([False,  True])
    """
    values, known = column(y, parameter="y"), _listed(classes)
    if values.size == 0:
        raise InvalidInputError("y must have at least one row; got none")
    if values.dtype.kind == "f":
        finite(values, parameter="y")
    for value in known_values(values, parameter="y")[0]:
        if value not in known:
            raise InvalidInputError(f"y must have the classes {whose}, {known}; got {value!r}: encode both alike")
    return np.asarray(values == known[1], dtype=bool)


def classifies(model: Any) -> bool:
    """Tell whether a model is a classifier: by its own word, its `classes_` or its `predict_proba`."""
    if hasattr(model, "__sklearn_tags__"):
        from sklearn.base import is_classifier  # a model that has tags has loaded scikit-learn

        if is_classifier(model):
            return True
    return getattr(model, "classes_", None) is not None or hasattr(model, "predict_proba")


def regresses(model: Any) -> bool:
    """Tell whether a model says that it is a regressor; those of other libraries may say nothing."""
    if not hasattr(model, "__sklearn_tags__"):
        return False
    from sklearn.base import is_regressor

    return bool(is_regressor(model))


def classes_of(model: Any) -> NDArray[Any]:
    """Return the classes that a model was fitted to, in sorted order; 0 and 1 for a model that does not tell.

    The second in sorted order is positive everywhere in this library, whatever the order of the model's own.
    """
    own = getattr(model, "classes_", None)
    return np.array([0, 1]) if own is None else np.sort(np.asarray(own))


def named_models(estimators: Any, *, expected: str) -> list[tuple[str, Any]]:
    """Return (name, model) pairs after checking them; a dict of models by name is taken too."""
    if isinstance(estimators, Mapping):
        estimators = list(estimators.items())
    if not isinstance(estimators, Sequence) or isinstance(estimators, str) or not estimators:
        single = hasattr(estimators, "predict") and not isinstance(estimators, type)
        hint = f": give it a name, [('model', {type(estimators).__name__}(...))]" if single else ""
        raise InvalidInputError(f"estimators must be {expected}; got {estimators!r}{hint}")
    for pair in estimators:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str)):
            raise InvalidInputError(f"estimators must be {expected}; got the element {pair!r}")
    names = [name for name, _ in estimators]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise InvalidInputError(f"estimators must have distinct names; got {sorted(repeated)[0]!r} more than once")
    return [(name, model) for name, model in estimators]


def _classifier_scores(model: Any, X: Any, classes: Classes, name: str, for_stack: bool) -> FloatArray:
    positive = check_own_classes(model, classes, name)
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(X), dtype=np.float64)
        if probability.ndim != 2 or probability.shape[1] != 2:
            raise InvalidInputError(
                f"predict_proba of the model {name!r} must have one column for each of the two classes; got shape "
                f"{probability.shape}"
            )
        return probability[:, positive]
    if for_stack and hasattr(model, "decision_function"):
        margin = np.asarray(model.decision_function(X), dtype=np.float64)
        return margin if positive == 1 else -margin
    return _decided(_predicted(model, X), classes, name)


def check_own_classes(model: Any, classes: Classes, name: str) -> int:
    """Return the position of the positive class among the model's own; they may stand in another order."""
    own, known = getattr(model, "classes_", None), _listed(classes)
    if own is None:
        return 1
    fitted_to = _listed(own)
    if len(fitted_to) != 2 or any(label not in fitted_to for label in known):
        raise InvalidInputError(f"estimators must have the classes of y, {known}; {name!r} was fitted to {fitted_to}")
    return fitted_to.index(known[1])


def _scores_or_labels(model: Any, X: Any, classes: Classes, name: str) -> FloatArray:
    """Return the predictions of a model that is no classifier: numbers are scores of the labels 0 and 1 only."""
    predicted = _predicted(model, X)
    if predicted.dtype.kind in "biuf" and _listed(classes) == [0, 1]:
        return _numbers(predicted, name)
    return _decided(predicted, classes, name)


def _decided(predicted: NDArray[Any], classes: Classes, name: str) -> FloatArray:
    """Return predicted classes as decisions 0.0 and 1.0."""
    known = _listed(classes)
    first, second = (np.asarray(predicted == label, dtype=bool) for label in known)
    other = ~(first | second)
    if other.any():
        raise InvalidInputError(
            f"the model {name!r} must predict the classes of y, {known}; got {predicted[other].tolist()[0]!r}: fit it "
            "to these classes"
        )
    return second.astype(np.float64)


def _predicted(model: Any, X: Any) -> NDArray[Any]:
    predicted = np.asarray(model.predict(X))
    return predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted


def _numbers(predicted: NDArray[Any], name: str) -> FloatArray:
    return numeric(predicted, parameter=f"predictions of {name!r}").astype(np.float64)


def _listed(classes: Classes) -> list[Any]:
    return list(np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else classes)
