"""The paper's theory as tools: out-of-sample bounds, and when score fairness is decision fairness."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from fairfrontier._validation import FloatArray, IntArray, number, whole_number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._fairstacks import FairStacksClassifier
from fairfrontier.optimize._losses import LOSSES
from fairfrontier.optimize._stack_input import evaluation_rows


@dataclass(frozen=True)
class GeneralizationBound:
    """Slacks of the paper's out-of-sample theorem, that of the bias corrected.

    Attributes
    ----------
    accuracy, bias : float
        With probability at least `confidence` each, the out-of-sample accuracy, and the bias, is off the training value
        by at most this much.
    confidence : float
        1 − δ, or 1 − δ − ε with a finite test set.
    vacuous : bool
        True if the slack of the bias is 1 or more: the bound then says nothing.
    needed : int
        Rows of the smaller group at which the slack of the bias would fall to `useful`.
    useful : float
        The slack that `needed` refers to.
    """

    accuracy: float
    bias: float
    confidence: float
    vacuous: bool
    needed: int
    useful: float

    def __str__(self) -> str:
        if self.vacuous:
            return (
                f"The bound says nothing here: its slack for the bias is {self.bias:.2f}, and a bias is at most 1. "
                f"It would fall to {self.useful:g} with {self.needed:,} rows in the smaller group."
            )
        return (
            f"With {self.confidence:.0%} confidence the bias out of sample is at most the training bias + "
            f"{self.bias:.3f}; likewise the accuracy is within {self.accuracy:.3f}."
        )


def generalization_bound(
    n1: int,
    n2: int,
    *,
    n_models: int,
    delta: float = 0.05,
    n1_test: int | None = None,
    n2_test: int | None = None,
    epsilon: float = 0.05,
    useful: float = 0.05,
) -> GeneralizationBound:
    """Compute how far accuracy and bias of a stack may be off their training values.

    Parameters
    ----------
    n1, n2 : int
        Training rows of the two groups.
    n_models : int
        p, the number of base models in the stack.
    delta : float
        Probability with which the bound may fail, in (0, 1).
    n1_test, n2_test : int, optional
        Rows of the two groups in a finite test set; None bounds the expectation.
    epsilon : float
        Further probability of failure for the finite test set.
    useful : float
        The slack that `needed` is computed for.

    Returns
    -------
    GeneralizationBound
        The two slacks, and the sample size at which they would be useful.

    Notes
    -----
    With n = min(n₁, n₂) and n' likewise for the test set, the slack of the accuracy is

        2·√((p + 1)·log(2n + 1) / n) + √(log(1/δ) / n)

    to which a finite test set adds √(log(1/ε) / (4n')). The slack of the bias is

        4·√(((p + 1)·log(2n + 1) + log 2) / n) + √(log(2/δ) / n)

    to which a finite test set adds √(log(2/ε) / n'). It is a worst case over all stacks and all distributions, and with
    many models and few rows it is vacuous.

    The paper gives the bias the slack of the accuracy, and √(log(1/ε) / (2n')) for the test set. That counts a pair of
    rows, one of each group, as one observation in [0, 1]; but a difference of two decisions is in [−1, 1], and the
    difference of two means of n rows moves by 1/n, not by 1/(2n), when a row changes. Nor does it count that an
    absolute bias may be missed on both sides. With a bias of 0, rates of one half and 200 test rows in each group, the
    paper's term for the test set with ε = 5 % is exceeded in 8 % of all samples, this one in 0.6 %.

    Examples
    --------
    >>> bound = generalization_bound(2_000_000, 1_000_000, n_models=10)
    >>> bound.vacuous, round(bound.bias, 4)
    (False, 0.0526)
    >>> print(generalization_bound(500, 300, n_models=100))
    The bound says nothing here: its slack for the bias is 5.98, and a bias is at most 1. It would fall to 0.05 with
    11,200,121 rows in the smaller group.
    """
    tested = {} if n1_test is None or n2_test is None else {"n1_test": n1_test, "n2_test": n2_test}
    for parameter, value in {"n1": n1, "n2": n2, "n_models": n_models, **tested}.items():
        whole_number(value, parameter=parameter, low=1)
    number(delta, parameter="delta", low=0.0, high=1.0, strict=True)
    number(epsilon, parameter="epsilon", low=0.0, high=1.0, strict=True)
    number(useful, parameter="useful", low=0.0, high=1.0, strict=True)
    if (n1_test is None) != (n2_test is None):
        raise InvalidInputError(f"give both n1_test and n2_test, or neither; got {n1_test!r} and {n2_test!r}")

    def slack(n: float) -> float:
        complexity = 4.0 * np.sqrt(((n_models + 1) * np.log(2.0 * n + 1.0) + np.log(2.0)) / n)
        return float(complexity + np.sqrt(np.log(2.0 / delta) / n))

    n, confidence = min(n1, n2), 1.0 - delta
    accuracy = float(2.0 * np.sqrt((n_models + 1) * np.log(2.0 * n + 1.0) / n) + np.sqrt(np.log(1.0 / delta) / n))
    bias = slack(n)
    if tested:
        n_test = min(tested.values())
        accuracy += float(np.sqrt(np.log(1.0 / epsilon) / (4.0 * n_test)))
        bias += float(np.sqrt(np.log(2.0 / epsilon) / n_test))
        confidence -= epsilon
    if confidence <= 0:
        raise InvalidInputError(f"delta + epsilon must be below 1; got {delta + epsilon:g}")
    needed = int(np.ceil(np.exp(brentq(lambda log_n: slack(np.exp(log_n)) - useful, 0.0, 60.0))))
    return GeneralizationBound(accuracy, bias, confidence, bias >= 1.0, needed, useful)


def _check_classifier(model: Any) -> None:
    if not isinstance(model, FairStacksClassifier):
        raise InvalidInputError(
            f"model must be a FairStacksClassifier, whose decisions are compared; got {type(model).__name__}"
        )
    check_is_fitted(model, "path_")


@dataclass(frozen=True)
class Certificate:
    """What can be said with confidence of a fitted stack on rows it has not seen.

    Attributes
    ----------
    measured_bias, measured_accuracy : float
        On the given rows.
    bias, accuracy : float
        With the stated confidence the bias is at most, and the accuracy at least, this: a test of one fixed stack on
        rows it has not seen, by Hoeffding's inequality.
    confidence : float
        The confidence of each of the two statements.
    theorem : GeneralizationBound
        The paper's bound, which needs no unseen rows.
    """

    measured_bias: float
    measured_accuracy: float
    bias: float
    accuracy: float
    confidence: float
    theorem: GeneralizationBound

    def __str__(self) -> str:
        return (
            f"With {self.confidence:.0%} confidence the bias of this stack is at most {self.bias:.3f} "
            f"(measured: {self.measured_bias:.3f}) and its accuracy at least {self.accuracy:.3f} "
            f"(measured: {self.measured_accuracy:.3f}). The bound from the training rows alone: {self.theorem}"
        )


def certify(
    model: FairStacksClassifier, X: Any, y: Any, *, sensitive_features: Any, confidence: float = 0.95
) -> Certificate:
    """Certify the operating point of a fitted stack on rows that it has not seen.

    Parameters
    ----------
    model : FairStacksClassifier
        The fitted stack.
    X, y, sensitive_features
        Rows that neither the base models nor the stack have seen.
    confidence : float
        Confidence of each statement, in (0, 1).

    Returns
    -------
    Certificate
        Upper bound of the bias, lower bound of the accuracy.

    Notes
    -----
    The rate of a group of n rows is within √(log(2s/δ) / 2n) of its expectation for all s row sets at once with
    probability 1 − δ; the bias of a pair of sets is off by at most the sum of two such terms. Of a stack that
    randomises, bias and accuracy are those over all its draws.
    """
    number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    _check_classifier(model)
    rows, codes, contrasts = evaluation_rows(model, X, y, sensitive_features)
    if not contrasts.sets.compares_differences:
        raise InvalidInputError(
            f"model must have been fitted to a measure of differences; got fairness={model.fairness!r}: a ratio is "
            "promised by select(min_fairness=..., confidence=..., calibration=...)"
        )
    label = contrasts.label[codes]
    decided = model._accepted(rows.scores)
    sizes = np.bincount(codes, minlength=contrasts.n_cells).astype(np.float64)
    positives = np.bincount(codes, decided, minlength=contrasts.n_cells).astype(np.float64)
    rates = contrasts.rates(positives[:, None], sizes)[0]
    delta = 1.0 - confidence
    counts = contrasts.membership @ sizes
    slack = np.sqrt(np.log(2.0 * len(counts) / delta) / (2.0 * counts))
    first, second = contrasts.sets.pairs().T
    gaps = np.abs(rates[first] - rates[second])
    accuracy = float(np.mean(np.where(label, decided, 1.0 - decided)))
    trained = sorted(model.group_sizes_.values())
    return Certificate(
        measured_bias=float(gaps.max()),
        measured_accuracy=accuracy,
        bias=float(min(1.0, (gaps + slack[first] + slack[second]).max())),
        accuracy=max(0.0, accuracy - float(np.sqrt(np.log(1.0 / delta) / (2.0 * len(label))))),
        confidence=confidence,
        theorem=generalization_bound(trained[0], trained[-1], n_models=len(model.weights_), delta=delta),
    )


@dataclass(frozen=True, eq=False)
class ScoreDecisionDiagnostics:
    """Theorem 3 along a path.

    Attributes
    ----------
    score_bias, decision_bias : ndarray of shape (p,)
        Signed biases on the first contrast, in the order of the path.
    covariance_ratio : ndarray of shape (p,)
        wᵀCov(G1)w / wᵀCov(G2)w, the spread of the scores in one group over that in the other.
    curvature_ratio : ndarray of shape (p,)
        Δ''(mean score of G2) / Δ''(mean score of G1) for the smoothed decision function Δ.
    violations : ndarray of shape (v,)
        Indices i for which the decision bias grows from point i to i + 1 although the score bias falls.
    """

    score_bias: FloatArray
    decision_bias: FloatArray
    covariance_ratio: FloatArray
    curvature_ratio: FloatArray
    violations: IntArray

    @property
    def monotone(self) -> bool:
        """Whether decision bias follows score bias everywhere on the path."""
        return len(self.violations) == 0


def score_decision_diagnostics(
    model: FairStacksClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    bandwidth: float = 0.1,
    curvature: Callable[[FloatArray], FloatArray] | None = None,
) -> ScoreDecisionDiagnostics:
    """Check Theorem 3 on data: does decision fairness follow score fairness?

    Parameters
    ----------
    model : FairStacksClassifier
        The fitted stack.
    X, y, sensitive_features
        The rows.
    bandwidth : float
        The decision "score above the threshold" is not differentiable; Δ is the probability of decision 1 when the
        threshold is blurred by a normal error of this standard deviation, in units of the linear predictor.
    curvature : callable, optional
        Δ'' of another decision function.

    Returns
    -------
    ScoreDecisionDiagnostics
        Ratios of the theorem's condition, and every measured violation of monotonicity.

    Notes
    -----
    Theorem 3: to second order the decision bias falls with the score bias if the covariance ratio tends to the
    curvature ratio. Both ratios near each other along the path support it; the violations are what really happened.
    The scores here are what the constraint is on: with ``loss="log"`` and ``"hinge"`` the linear predictor, not the
    probability that is made of it.
    """
    number(bandwidth, parameter="bandwidth", low=0.0, strict=True)
    _check_classifier(model)
    rows, codes, contrasts = evaluation_rows(model, X, y, sensitive_features)
    scores = rows.scores @ model.path_.weights.T + model.path_.intercept
    threshold = LOSSES[model.loss].threshold(model.threshold)
    first, second = (contrasts.membership[s][codes] for s in contrasts.sets.pairs()[0])
    of_first, of_second = scores[first], scores[second]
    bend = curvature or (lambda x: -(x - threshold) * norm.pdf(x, threshold, bandwidth) / bandwidth**2)
    score_bias = of_first.mean(axis=0) - of_second.mean(axis=0)
    decided = scores > threshold
    decision_bias = decided[first].mean(axis=0) - decided[second].mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance_ratio = of_first.var(axis=0) / of_second.var(axis=0)
        curvature_ratio = bend(of_second.mean(axis=0)) / bend(of_first.mean(axis=0))
    along = np.sign(np.diff(score_bias)) * np.diff(decision_bias)
    return ScoreDecisionDiagnostics(
        score_bias, decision_bias, covariance_ratio, curvature_ratio, np.flatnonzero(along < 0)
    )
