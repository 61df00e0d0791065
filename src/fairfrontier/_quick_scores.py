"""Boosted trees asked as a sum over trees, which takes a fraction of the time of their own `predict_proba`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from fairfrontier._attribute_models import GroupProbability
from fairfrontier._columns import FloatArray
from fairfrontier._forests import LeafSum, tree_of_nodes, with_values

# From rows to the probability of the model's second class, or its prediction; None: only the model itself can tell.
# The second argument says whether rows that take like ways through trees still have to be brought together.
Quick = Callable[[Any, bool], FloatArray | None]


def quick_scores(model: Any) -> Quick | None:
    """Return a quicker way to what a fitted model says; None: there is none.

    Notes
    -----
    The trees are those of the model, and so are the scores but for the order of a sum. Of scikit-learn's histogram
    boosting, without categories; of AdaBoost of decision trees; and of pipelines that end in one of these.
    """
    from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = type(model)
    if kind is GroupProbability:
        both = model.column == 1 and np.array_equal(model.classifier_.classes_, [0, 1])
        return quick_scores(model.classifier_) if both else None
    if kind is Pipeline:
        steps = [step for _, step in model.steps]
        kernel = _kernel_logistic(*steps[-2:]) if len(steps) > 2 else None
        last, before = (kernel, model[:-2]) if kernel else (quick_scores(steps[-1]), model[:-1])
        return None if last is None else lambda X, sort: last(before.transform(X), sort)
    if kind in (HistGradientBoostingClassifier, HistGradientBoostingRegressor):
        return _histogram_boosting(model)
    if kind is AdaBoostClassifier:
        return _adaboost(model)
    return None


def _kernel_logistic(features: Any, last: Any) -> Quick | None:
    """Return a logistic regression on Nyström's features as one of the kernel's values: one product less."""
    if type(features) is not Nystroem or type(last) is not LogisticRegression or len(last.classes_) != 2:
        return None
    if features.kernel != "rbf" or features.gamma is None:
        return None
    coefficients = features.normalization_.T @ last.coef_[0]

    def scores(X: Any, sort: bool) -> FloatArray | None:
        kernel = rbf_kernel(X, features.components_, gamma=features.gamma)
        return np.asarray(expit(kernel @ coefficients + last.intercept_[0]))

    return scores


def _histogram_boosting(model: Any) -> Quick | None:
    if model.is_categorical_ is not None or model.n_trees_per_iteration_ != 1:
        return None
    leaves = LeafSum([tree_of_nodes(trees[0].nodes, model.n_features_in_) for trees in model._predictors])
    first, link = float(model._baseline_prediction.ravel()[0]), model._loss.link

    def scores(X: Any, sort: bool) -> FloatArray | None:
        rows = _exact_rows(model, X)
        return None if rows is None else np.asarray(link.inverse(first + leaves(rows, sort=sort)))

    return scores


def _adaboost(model: Any) -> Quick | None:
    if len(model.classes_) != 2 or not all(hasattr(tree, "tree_") for tree in model.estimators_):
        return None
    shares = model.estimator_weights_[: len(model.estimators_)] / model.estimator_weights_.sum()
    trees = []
    for tree, share in zip(model.estimators_, shares, strict=True):
        second = tree.classes_.take(np.argmax(tree.tree_.value[:, 0, :], axis=1)) == model.classes_[1]
        trees.append(with_values(tree.tree_, np.where(second, share, -share), None, model.n_features_in_))
    leaves = LeafSum(trees)

    def scores(X: Any, sort: bool) -> FloatArray | None:
        rows = _finite_rows(model, X)
        return None if rows is None else expit(2.0 * leaves(rows.astype(np.float32), sort=sort))

    return scores


def _finite_rows(model: Any, X: Any) -> FloatArray | None:
    """Return X as an array, checked as the model itself does; None: it has missing or infinite values."""
    if sparse.issparse(X):
        return None
    rows = validate_data(model, X, reset=False, dtype=np.float64, order="C", ensure_all_finite=False)
    largest = float(np.abs(rows).max(initial=0.0))
    return rows if largest < np.finfo(np.float32).max else None


def _exact_rows(model: Any, X: Any) -> NDArray[np.float32] | None:
    """Return X in single precision, if that changes no number: a rounded one might fall on a threshold's other side."""
    rows = _finite_rows(model, X)
    if rows is None:
        return None
    single: NDArray[np.float32] = rows.astype(np.float32)
    return single if np.array_equal(rows, single) else None
