"""Read what has scikit-learn's interface: classifiers, searches, stacks, the families of `fairfrontier.learners`."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils.validation import check_is_fitted

from fairfrontier import _validation as validate
from fairfrontier._scores import classes_of, classifies, positive_decisions, positive_labels, positive_scores, regresses
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.adapters._libraries import Columns, ModelQuery, not_binary, not_fitted, numbered, shortened
from fairfrontier.exceptions import InvalidInputError

OUT_OF_FOLD = "cv"
_LONGEST_VALUE = 40


def check_fitted(model: Any) -> None:
    """Raise if an estimator of scikit-learn's kind has not been fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise not_fitted(model) from None


def read_classifier(model: Any, query: ModelQuery) -> Columns:
    """Return what one fitted classifier decides."""
    # Only scikit-learn's own kind says what it is and whether it is fitted; others are checked by what they predict.
    if hasattr(model, "__sklearn_tags__"):
        if not is_classifier(model):
            raise not_binary(model, "is not a classifier")
        check_fitted(model)
    check_labels(model, query.y)
    return {type(model).__name__: response(model, query.X, scores=query.scores)}


def response(model: Any, X: Any, *, scores: bool) -> FloatArray:
    """Return the decisions (n,) of a fitted classifier, or its scores where it has them."""
    ask = positive_scores if scores and classifies(model) else positive_decisions
    return ask(model, X, classes=classes_of(model), name=type(model).__name__)


def check_labels(model: Any, y: Any) -> None:
    """Raise if a classifier has not two classes, or if labels `y` are given that are none of them."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return
    if len(classes) != 2:
        raise not_binary(model, f"was fitted to {len(classes)}")
    if y is not None:
        positive_labels(y, classes, whose=f"that the {type(model).__name__} was fitted to")


def read_stack(model: Any, query: ModelQuery) -> Columns:
    """Return the decisions of every stack on a FairStacks path."""
    check_fitted(model)
    if regresses(model):
        raise not_binary(model, "is for regression, and has points of its own: model.points(X, y, ...)")
    check_labels(model, query.y)
    groups = {"sensitive_features": query.sensitive_features} if model.attribute_aware else {}
    scores = model.predict_path(query.X, **groups)
    columns = np.clip(scores, 0.0, 1.0) if query.scores else (scores > model.threshold).astype(np.float64)
    return dict(zip(numbered("stack", columns.shape[1]), columns.T, strict=True))


def read_fair_learner(model: Any, query: ModelQuery) -> Columns:
    """Return the decisions of one fair learner; of a randomised one the exact expected decisions."""
    return read_classifier(model, replace(query, scores=query.scores or model.is_randomized))


def read_family(model: Any, query: ModelQuery) -> Columns:
    """Return the decisions of every model of a fitted family."""
    if hasattr(model, "families"):
        return {name: column for part in model.families for name, column in read_family(part, query).items()}
    scores = np.asarray(model.predict_matrix(query.X), dtype=np.float64)
    columns = scores if query.scores or model.is_randomized else (scores > 0.5).astype(np.float64)
    return dict(zip(model.names, np.clip(columns, 0.0, 1.0).T, strict=True))


def read_search(search: Any, query: ModelQuery) -> Columns:
    """Return what every candidate decides: a search keeps no predictions, so the candidates are fitted again."""
    if not hasattr(search, "cv_results_"):
        raise not_fitted(search)
    if not is_classifier(search.estimator):
        raise not_binary(search, f"searches over a {type(search.estimator).__name__}, which is not a classifier")
    candidates = _candidates(search)
    if isinstance(query.train, str):
        validate.one_of(query.train, (OUT_OF_FOLD,), parameter="train")
        return _out_of_fold(search, candidates, query)
    if not (isinstance(query.train, tuple) and len(query.train) == 2):
        raise InvalidInputError(
            "train must be given for a search, which keeps no fitted candidates: train=(X_train, y_train) fits each of "
            "them on these rows, train='cv' evaluates them out of fold on X and y with the search's own splits; got "
            f"{query.train!r}"
        )
    X, y = query.train
    extra = {name: value for name, value in query.fit_params.items() if name != "groups"}
    columns = Parallel(n_jobs=_jobs(search, query))(
        delayed(_fit_predict)(search.estimator, params, (X, y, extra), query.X, query.y, query.scores)
        for params in candidates.values()
    )
    return dict(zip(candidates, columns, strict=True))


def _out_of_fold(search: Any, candidates: Mapping[str, Any], query: ModelQuery) -> Columns:
    """Return predictions by models that have not seen the row, averaged where a row is held out more than once."""
    if query.y is None:
        raise InvalidInputError("y must be given with train='cv': the candidates are fitted on parts of X and y")
    y = validate.column(query.y, parameter="y")
    splits = _splits(search, query, y)
    jobs = [(j, params, split) for j, params in enumerate(candidates.values()) for split in splits]
    parts = Parallel(n_jobs=_jobs(search, query))(
        delayed(_fit_predict)(
            search.estimator,
            params,
            (rows_of(query.X, train), y[train], _rows_of_params(query.fit_params, train, len(y))),
            rows_of(query.X, test),
            None,
            query.scores,
        )
        for _, params, (train, test) in jobs
    )
    total = np.zeros((len(candidates), len(y)))
    for (j, _, (_, test)), part in zip(jobs, parts, strict=True):
        total[j, test] += part
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(y))
    return dict(zip(candidates, total / times, strict=True))


def _splits(search: Any, query: ModelQuery, y: NDArray[Any]) -> list[tuple[IntArray, IntArray]]:
    splitter = check_cv(search.cv, y, classifier=True)
    splits = list(splitter.split(query.X, y, query.fit_params.get("groups")))
    held_out = np.zeros(len(y), dtype=bool)
    for _, test in splits:
        held_out[test] = True
    if not held_out.all():
        raise InvalidInputError(
            f"train='cv' needs splits that hold out every row; {type(splitter).__name__} leaves out "
            f"{np.sum(~held_out)} of {len(y)}: pass train=(X_train, y_train), or search with KFold"
        )
    return splits


def _rows_of_params(params: Mapping[str, Any], rows: IntArray, n_rows: int) -> dict[str, Any]:
    """Return parameters with one value per row at given rows, others as they are; `groups` is for the splits only."""
    return {
        name: rows_of(value, rows) if not isinstance(value, str) and _length(value) == n_rows else value
        for name, value in params.items()
        if name != "groups"
    }


def _length(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape:
        return int(shape[0])
    return len(value) if hasattr(value, "__len__") else -1


def _fit_predict(
    estimator: Any, params: Mapping[str, Any], train: tuple[Any, Any, dict[str, Any]], X: Any, y: Any, scores: bool
) -> FloatArray:
    X_train, y_train, extra = train
    model = clone(estimator).set_params(**clone(params, safe=False))
    model.fit(X_train, y_train, **extra)
    check_labels(model, y)
    return response(model, X, scores=scores)


def _jobs(search: Any, query: ModelQuery) -> int | None:
    return search.n_jobs if query.n_jobs is None else query.n_jobs


def _candidates(search: Any) -> dict[str, Mapping[str, Any]]:
    """Return the distinct candidates by name; successive halving lists a candidate again in each round."""
    results = search.cv_results_
    test_scores = np.stack([results[key] for key in results if key.startswith("mean_test_")])
    failed = np.logical_and.reduce(np.isnan(test_scores.astype(np.float64)))
    found: dict[str, Mapping[str, Any]] = {}
    known: set[str] = set()
    for params, has_no_score in zip(results["params"], failed, strict=True):
        identity = repr(sorted(params.items()))
        if identity in known:
            continue
        known.add(identity)
        name = _name(params)
        if has_no_score:
            warnings.warn(f"the candidate {name!r} failed in the search and is left out", UserWarning, stacklevel=2)
            continue
        found[_distinct(name, found)] = params
    if not found:
        raise InvalidInputError("model must have a candidate that could be fitted; in this search all of them failed")
    return found


def _name(params: Mapping[str, Any]) -> str:
    """Return parameters as a short name, such as ``C=0.1, penalty=l2``."""
    return ", ".join(f"{key}={shortened(value, _LONGEST_VALUE)}" for key, value in params.items()) or "default"


def _distinct(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name, with a number where it is taken already."""
    number, distinct = 2, name
    while distinct in taken:
        number, distinct = number + 1, f"{name} ({number})"
    return distinct
