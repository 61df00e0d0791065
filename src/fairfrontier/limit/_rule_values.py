"""What rules reach on real labels, and how sure that is: debiased values, influence functions, simultaneous bands."""

from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.limit._program import FairRule, best_mixture
from fairfrontier.limit._task import LimitTask

_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class Values:
    """Values of several rules on the same rows.

    Attributes
    ----------
    estimate : ndarray of shape (q,)
        The value of each rule.
    influence : ndarray of shape (n, q)
        What each row adds to the error of each value; sums to 0 over the rows.
    """

    estimate: FloatArray
    influence: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the estimates, shape (q, q)."""
        return self.influence.T @ self.influence


def rule_values(task: LimitTask, rules: list[FairRule]) -> Values:
    """Return the accuracy of each rule on the labels, corrected for what it misses of its level of fairness.

    Notes
    -----
    The value is the Lagrangian at the rule's multipliers μ, with labels and row sets in place of their posteriors:
    P(ŷ = y) − Σ μ·rate + slack·Σ μ⁺. At the optimum its derivative in the rule and in μ is 0, so that errors of the
    posteriors have an effect of second order only, and its influence function is that of means and of ratios of means.
    """
    total = task.weight @ task.member
    estimate, influence = [], []
    for rule in rules:
        right = rule.decision * (2.0 * task.y - 1.0) + 1.0 - task.y
        rate = (task.weight * rule.decision) @ task.member / total
        excess = (task.member * (rule.multiplier / total)) @ np.ones(len(rate)) * rule.decision
        excess -= task.member @ (rule.multiplier / total * rate)
        estimate.append(task.weight @ right - rule.multiplier @ rate + rule.allowance)
        influence.append(task.weight * (right - task.weight @ right - excess))
    return Values(np.array(estimate), np.column_stack(influence))


def critical_value(covariance: FloatArray, confidence: float, generator: np.random.Generator) -> float:
    """Return the quantile of the largest |deviation| / standard error: a multiplier bootstrap with normal multipliers.

    Given the rows, deviations under normal multipliers are jointly normal with the covariance of the influence
    functions, so they are drawn from it directly.
    """
    error = np.sqrt(np.diag(covariance))
    moving = error > 0
    if not moving.any():
        return 0.0
    correlation = covariance[np.ix_(moving, moving)] / np.outer(error[moving], error[moving])
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = generator.standard_normal((_DRAWS, len(root))) @ root.T
    return float(np.quantile(np.abs(draws).max(axis=1), confidence, method="higher"))


def best_rule(task: LimitTask, decisions: FloatArray, fairness: float) -> FairRule:
    """Return the best mixture of rules (n, k) and the two constant decisions at a level of fairness."""
    n_rows = len(task)
    rules = np.column_stack([decisions, np.zeros(n_rows), np.ones(n_rows)])
    rates = task.rates(rules)
    rates[-2:] = np.array([[0.0], [1.0]])  # without rounding
    gain = (task.weight * (2.0 * task.y - 1.0)) @ rules
    found = best_mixture(rates, gain, task.sets.blocks, fairness, relative=task.relative)
    return FairRule(rules @ found.share, found.multiplier, found.allowance)


def short(value: float, digits: int = 3) -> str:
    """Write a number without the zero before its point, as in .812."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
