"""scikit-learn's own checks on the stacks, in every mode."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import _num_samples

from fairfrontier import FairStacksClassifier, FairStacksRegressor
from fairfrontier.learners import MinipatchTrees


def attribute(X):
    """A sensitive attribute that a row has whatever its place: repeating or dropping rows must not change it."""
    n = _num_samples(X)
    values = np.asarray(X.toarray() if sparse.issparse(X) else X)
    if values.dtype.kind in "fiu" and values.size and np.isfinite(values).all():
        group = (np.floor(np.abs(values.reshape(n, -1).sum(axis=1)) * 1e4) % 2).astype(int)
        if np.bincount(group, minlength=2).min() >= 5:
            return group
    return np.arange(n) % 2


class _WithAttribute:
    """Supplies what the checks cannot know; the only difference to the class that ships."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sensitive_features=attribute(X), sample_weight=sample_weight)


class CheckedClassifier(_WithAttribute, FairStacksClassifier):
    """The classifier, with an attribute."""


class CheckedRegressor(_WithAttribute, FairStacksRegressor):
    """The regressor, with an attribute."""


CLASSIFIERS = [("a/logistic", LogisticRegression()), ("b/tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
REGRESSORS = [("a/ridge", Ridge()), ("b/tree", DecisionTreeRegressor(max_depth=2, random_state=0))]

FAMILIES = [
    ("logistic", LogisticRegression()),
    ("forest", RandomForestClassifier(6, max_depth=2, random_state=0)),
    ("mini", MinipatchTrees(6, random_state=0)),
    ("list", [("one/tree", DecisionTreeClassifier(max_depth=2, random_state=0))]),
]

ESTIMATORS = {
    "precomputed": CheckedClassifier(alpha=1.0),
    "precomputed, tuned": CheckedClassifier(),
    "precomputed, log": CheckedClassifier(alpha=1.0, loss="log", n_points=3),
    "precomputed, hinge": CheckedClassifier(alpha=1.0, loss="hinge", n_points=3),
    "base models": CheckedClassifier(CLASSIFIERS, alphas=[1.0, 100.0], group_models=None),
    "families and a requirement": CheckedClassifier(
        FAMILIES, alphas=[1.0, 100.0], group_models=None, min_fairness=0.8, random_state=0
    ),
    "with features": CheckedClassifier(CLASSIFIERS, alpha=1.0, group_models=None, passthrough=True),
    "regression, precomputed": CheckedRegressor(alpha=1.0),
    "regression, huber": CheckedRegressor(alpha=1.0, loss="huber", n_points=3),
    "regression, base models": CheckedRegressor(REGRESSORS, alphas=[1.0, 100.0], group_models=None),
}

# This one skips itself unless SCIPY_ARRAY_API is set; the stacks do not claim array-API support.
NOT_APPLICABLE = {"check_array_api_input"}
# Bootstrap samples and minipatches are drawn among rows, so that a row twice is not a row of weight two.
NOT_FOR_FAMILIES = {"check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"}


def _name(check):
    return check.func.__name__ if isinstance(check, partial) else check.__name__


def _cases():
    return [
        pytest.param(estimator, check, id=f"{mode}-{_name(check)}-{i}")
        for mode, checked in ESTIMATORS.items()
        for i, (estimator, check) in enumerate(estimator_checks_generator(checked))
        if _name(check) not in NOT_APPLICABLE | (NOT_FOR_FAMILIES if mode.startswith("families") else set())
    ]


@pytest.mark.filterwarnings("ignore:sample_weight was given, but the base models:UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), _cases())
def test_scikit_learn_check(estimator, check):
    check(estimator)  # asserts by itself
