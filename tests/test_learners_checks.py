"""scikit-learn's own checks on every estimator of `fairfrontier.learners`."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from fairfrontier.learners import (
    FAGTB,
    FCSC,
    FPIR,
    AdversarialDebiasing,
    KernelFair,
    LinearPost,
    MinipatchTrees,
    MinipatchTreesRegressor,
    Reductions,
)


class _EverySecondRow(BaseEstimator):
    """Supplies what the checks cannot know: every second row is in the other group.

    The fair learners require `sensitive_features`, and `check_estimator` calls ``fit(X, y)``. This shim is the only
    difference between the class that is checked and the class that ships.
    """

    def fit(self, X: Any, y: Any) -> Any:
        rows = 2 if y is None else max(np.size(np.asarray(y)), 1)
        group = np.arange(rows) % 2
        return super().fit(X, y, sensitive_features=group if rows > 1 else np.array([0]))


class CheckedFAGTB(_EverySecondRow, FAGTB):
    """`FAGTB`, with an attribute."""


class CheckedAdversarialDebiasing(_EverySecondRow, AdversarialDebiasing):
    """`AdversarialDebiasing`, with an attribute."""


class CheckedReductions(_EverySecondRow, Reductions):
    """`Reductions`, with an attribute."""


class CheckedLinearPost(_EverySecondRow, LinearPost):
    """`LinearPost`, with an attribute."""


class CheckedFPIR(_EverySecondRow, FPIR):
    """`FPIR`, with an attribute."""


class CheckedFCSC(_EverySecondRow, FCSC):
    """`FCSC`, with an attribute."""


class CheckedKernelFair(_EverySecondRow, KernelFair):
    """`KernelFair`, with an attribute."""


ESTIMATORS = [
    MinipatchTrees(n_estimators=20),
    MinipatchTreesRegressor(n_estimators=20, max_features=0.5),
    CheckedFAGTB(adversary_weight=0.1, n_estimators=20),
    CheckedAdversarialDebiasing(adversary_weight=0.1, epochs=20),
    CheckedReductions(bound=0.2, max_iter=2),
    CheckedLinearPost(tolerance=0.5, estimator=LogisticRegression()),
    CheckedFPIR(tolerance=0.5, estimator=LogisticRegression()),
    CheckedFCSC(multiplier=0.1, estimator=LogisticRegression()),
    CheckedKernelFair(penalty=0.1, epochs=60, learning_rate=0.01),
]


# This one skips itself unless SCIPY_ARRAY_API is set; none of these estimators claims array-API support.
NOT_APPLICABLE = {"check_array_api_input"}


def _cases() -> list[Any]:
    return [
        pytest.param(estimator, check, id=f"{type(estimator).__name__}-{_name(check)}-{i}")
        for checked in ESTIMATORS
        for i, (estimator, check) in enumerate(estimator_checks_generator(checked))
        if _name(check) not in NOT_APPLICABLE
    ]


def _name(check: Any) -> str:
    return str(check.func.__name__ if isinstance(check, partial) else check.__name__)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), _cases())
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)  # asserts by itself
