"""Methods of other libraries that post-process one classifier: OxonFair, and Fairlearn's ThresholdOptimizer.

Each adapter is fitted on the ensemble rows at a grid of tolerances of the bias, and returns a function from scores and
groups to decisions (n, p), one column per tolerance. The tolerances run from 0 to 0.2: above, the weight of the FAUC is
0.
"""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray, IntArray

Decide = Callable[[FloatArray, NDArray[Any]], FloatArray]
_LARGEST_TOLERANCE = 0.2
_CERTAIN = 2.0 / 3.0  # OxonFair's default


@dataclass(frozen=True, eq=False)
class RivalRows:
    """The rows that a method of another library is fitted on.

    Attributes
    ----------
    score, label, group : ndarray of shape (n,)
        Scores of the classifier, labels 0 and 1, and the sensitive attribute.
    seen : ndarray of shape (n,)
        What will be known of the attribute at prediction: itself, or the probability of its second value.
    """

    score: FloatArray
    label: IntArray
    group: NDArray[Any]
    seen: NDArray[Any]


class _ScoreAsFeature(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only feature is its own score."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> "_ScoreAsFeature":
        """Return the classifier as it is: there is nothing to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the scores (n, 2) of both classes."""
        score = np.asarray(X, dtype=np.float64)[:, 0]
        return np.column_stack([1.0 - score, score])


def threshold_optimizer(rows: RivalRows, fairness: str, values: int, inferred: bool = False) -> Decide:
    """Fit Fairlearn's ThresholdOptimizer at a grid of tolerances.

    Parameters
    ----------
    rows : RivalRows
        The ensemble rows.
    fairness : str
        "demographic_parity" or "equal_opportunity".
    values : int
        Number of tolerances.
    inferred : bool
        Ignored: the method needs the attribute itself.

    Returns
    -------
    callable
        From scores (n,) and groups (n,) to the *probabilities* (n, values) of decision 1: the method randomises.
    """
    post = require("fairlearn.postprocessing", extra="learners", purpose="ThresholdOptimizer")
    constraint = "true_positive_rate_parity" if fairness == "equal_opportunity" else fairness
    fitted = []
    for tolerance in np.linspace(0.0, _LARGEST_TOLERANCE, values):
        model = post.ThresholdOptimizer(
            estimator=_ScoreAsFeature(),
            constraints=constraint,
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
            tol=float(tolerance) or None,
        )
        fitted.append(model.fit(rows.score[:, None], rows.label, sensitive_features=rows.group))

    def decide(score: FloatArray, group: NDArray[Any]) -> FloatArray:
        columns = [model._pmf_predict(score[:, None], sensitive_features=group)[:, 1] for model in fitted]
        return np.column_stack(columns)

    return decide


def oxonfair(rows: RivalRows, fairness: str, values: int, inferred: bool = False) -> Decide:
    """Fit OxonFair's thresholds at a grid of tolerances.

    Parameters
    ----------
    rows : RivalRows
        The ensemble rows.
    fairness : str
        "demographic_parity" or "equal_opportunity".
    values : int
        Number of tolerances.
    inferred : bool
        Whether thresholds depend on an inferred attribute, so that the attribute is not needed at prediction.

    Returns
    -------
    callable
        From scores (n,) and groups (n,), or the inferred probabilities, to decisions (n, values).
    """
    package = require("oxonfair", extra="benchmark", purpose="The OxonFair row of the benchmark")
    metrics = package.group_metrics
    constraint = metrics.equal_opportunity if fairness == "equal_opportunity" else metrics.demographic_parity
    data = {"data": _columns(rows.score, rows.seen, inferred), "target": rows.label, "groups": rows.group}
    options = {"inferred_groups": _groups_of, "threshold": _certainty(rows.seen)} if inferred else {}
    model = package.FairPredictor(_scores_of, data, **options)
    offsets = []
    # OxonFair prints a line wherever no threshold meets a tolerance and it takes the nearest.
    with contextlib.redirect_stdout(io.StringIO()):
        for j, tolerance in enumerate(np.linspace(0.0, _LARGEST_TOLERANCE, values)):
            model.fit(metrics.accuracy, constraint, float(tolerance), recompute=j == 0)
            offsets.append(np.array(model.offset))

    def decide(score: FloatArray, group: NDArray[Any]) -> FloatArray:
        new = {"data": _columns(score, group, inferred), "groups": group, "target": np.zeros(len(score), dtype=int)}
        columns = []
        for offset in offsets:
            model.offset = offset
            columns.append(np.asarray(model.predict(new), dtype=np.float64))
        return np.column_stack(columns)

    return decide


def _certainty(probability: FloatArray) -> float:
    """Return OxonFair's threshold of certainty about a group.

    Its default makes three groups: the two, and the uncertain. Where one of them is empty OxonFair stops with an error,
    and 0 makes two groups: each row belongs to its more probable one.
    """
    certain = np.maximum(probability, 1.0 - probability) >= _CERTAIN
    three = [~certain, certain & (probability > 0.5), certain & (probability <= 0.5)]
    return _CERTAIN if all(part.any() for part in three) else 0.0


def _columns(score: FloatArray, seen: NDArray[Any], inferred: bool) -> FloatArray:
    both = np.column_stack([1.0 - score, score])
    return np.column_stack([both, 1.0 - seen, seen]) if inferred else both


def _scores_of(data: FloatArray) -> FloatArray:
    return data[:, :2].copy()


def _groups_of(data: FloatArray) -> FloatArray:
    return data[:, 2:]
