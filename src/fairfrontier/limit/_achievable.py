"""The achievable frontier: the best accuracy of any rule from given features, at each level of fairness."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression

from fairfrontier import _validation as validate
from fairfrontier._columns import as_array, numeric
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.limit._posteriors import (
    Posteriors,
    checked_learners,
    checked_probabilities,
    cross_fitted,
    feature_matrix,
    stratified_folds,
)
from fairfrontier.limit._program import FairProgram, FairRule
from fairfrontier.limit._rule_values import critical_value, rule_values
from fairfrontier.limit._task import LimitTask, checked_task

TRACKS: tuple[Literal["blind"], Literal["aware"]] = ("blind", "aware")


@dataclass(frozen=True, eq=False, repr=False)
class AchievableFrontier:
    """The best accuracy of any rule at each level of fairness, with a band.

    Attributes
    ----------
    grid : ndarray of shape (q,)
        Levels of fairness, ascending.
    accuracy : ndarray of shape (q,)
        Estimate of the best accuracy of any rule: `attained` plus `unlearned`. Non-increasing, never below the best
        constant.
    low, high : ndarray of shape (q,)
        The simultaneous band. The lower end is that of `attained` and needs no assumption beyond independent rows; the
        upper end allows for twice what is `unlearned`.
    attained : ndarray of shape (q,)
        What rules from cross-fitted posteriors reach on the labels: attainable by known means.
    unlearned : ndarray of shape (q,)
        What random errors of the posteriors cost, from two fits to different rows; 0 where the posteriors were given.
    plugin : ndarray of shape (q,)
        The value that the posteriors promise, without any look at the labels.
    constant : float
        Accuracy of the best constant decision.
    unconstrained : float
        Fairness of the most accurate rule: the curve is level up to here.
    fairness, track : str
        The measure, and whether the rule knows the attribute.
    confidence : float
        The nominal coverage of the whole band.
    n_rows : int
        Rows behind the estimate.

    Examples
    --------
    >>> import numpy as np, fairfrontier as ff
    >>> group, x = np.repeat([0, 1], 500), np.tile([0, 0, 0, 1], 250)
    >>> y = (x + np.arange(1000) % 3 > 1).astype(int)
    >>> known = np.where(x == 1, 2 / 3, 1 / 3), np.full((1000, 2), 0.5)
    >>> best = ff.achievable_frontier(None, y, sensitive_features=group, probabilities=known)
    >>> bool(best(1.0) > best.constant), best.grid[-1]
    (True, np.float64(1.0))
    """

    grid: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    attained: FloatArray
    unlearned: FloatArray
    plugin: FloatArray
    constant: float
    unconstrained: float
    fairness: str
    track: str
    confidence: float
    n_rows: int

    def __call__(self, fairness: ArrayLike) -> Any:
        """Evaluate the curve, linear between the levels of the grid; a float for a float, an array for an array."""
        f = numeric(as_array(fairness, parameter="fairness"), parameter="fairness").astype(np.float64, copy=False)
        if not np.all((f >= 0.0) & (f <= 1.0)):
            raise InvalidInputError(f"fairness must be in [0, 1]; got {fairness!r}: it is 1 − the largest bias")
        value = np.interp(f, self.grid, self.accuracy)
        return float(value) if value.ndim == 0 else value

    def __len__(self) -> int:
        return len(self.grid)

    def __repr__(self) -> str:
        width = float(np.mean(self.high - self.low))
        return (
            f"AchievableFrontier({self.track}, {self.fairness}, {len(self)} levels; accuracy {self.accuracy[0]:.4f} at "
            f"fairness {self.grid[0]:.2f} to {self.accuracy[-1]:.4f} at {self.grid[-1]:.2f}; {self.confidence:.0%} "
            f"band of mean width {width:.4f})"
        )


def achievable_frontier(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    fairness: str = "demographic_parity",
    track: Literal["blind", "aware"] = "blind",
    confidence: float = 0.95,
    grid: ArrayLike | None = None,
    n_points: int = 101,
    estimator: Any = None,
    probabilities: Any = None,
    cv: int = 5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> AchievableFrontier:
    """Estimate the best accuracy of any classifier from these features, at each level of fairness.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, p)
        The features that a rule may look at; numbers and categories, missing values included. For the blind track leave
        the sensitive attribute out of it. None if `probabilities` are given.
    y : array-like of shape (n,)
        Two classes of any type; the second in sorted order is positive.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
        One or more sensitive attributes.
    fairness : str
        ``"demographic_parity"``, ``"equal_opportunity"``, ``"predictive_equality"``, ``"equalized_odds"``, or
        ``"impact_ratio"``: the smallest ratio of two groups' rates.
    track : {"blind", "aware"}
        "blind": the rule sees X only. "aware": it also sees the sensitive attributes.
    confidence : float
        Coverage of the band over the whole grid.
    grid : array-like of shape (q,), optional
        Levels of fairness in [0, 1]; None: `n_points` of them from 0 to 1.
    n_points : int
        The number of levels without a grid.
    estimator : classifier or list of classifiers, optional
        Members of the ensemble that learns the posteriors, with `predict_proba`; they see X as numbers, with categories
        as indicators. None: a logistic regression, boosted trees, random trees and a kernel.
    probabilities : pair of ndarray, optional
        Posteriors that you know: P(y = 1) of shape (n,), and P(row set) of shape (n, s), a column for each row set of
        the measure: each group, or each group with the label that it is compared on. Nothing is fitted.
    cv : int
        Folds: the posteriors of a row come from models that never saw it.
    sensitive_mode : {"separate", "intersectional"}
        With several attributes.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights.
    n_jobs : int, optional
        Jobs for fitting.
    random_state : int, Generator or None
        For folds, members and the band.

    Returns
    -------
    AchievableFrontier
        `grid`, `accuracy`, `low`, `high`.

    Notes
    -----
    *The rule.* Let η(x) = P(y = 1 | x), and let q_s(x) be the probability that a row belongs to the row set s, π_s its
    mean. Among all rules whose rates differ by at most 1 − f the most accurate one decides 1 where
    2η(x) − 1 > Σ_s μ_s·q_s(x)/π_s and randomises where both sides are equal [1]_, [2]_, [3]_; the multipliers μ solve a
    small convex problem. For two groups and demographic parity this is a threshold on
    η(x) − λ·(p(1|x)/π₁ − p(0|x)/π₀). Where the rule knows the attribute it is a threshold for each group. Bounds on
    ratios of rates are linear in the rule as well.

    *The estimate.* η and q come from an ensemble, fitted without the row's fold and calibrated on other folds. The
    value is the Lagrangian of the rule on the labels themselves: a one-step (debiased) estimator, as in the inference
    on values of optimal rules and of fairness frontiers [4]_, [5]_. Errors of the posteriors have a second-order effect
    on it. The band is simultaneous over the grid, by a multiplier bootstrap of the influence functions; that the true
    curve falls with f is used to narrow it.

    *What it can say.* `attained` is the value of rules that were built without the rows they are measured on: it is
    attainable, and `low` bounds from below what is possible, whatever the ensemble has missed. *What it cannot say*:
    no finite number of rows bounds from above what an unknown function of the features could do. `accuracy` adds what
    random errors of the posteriors cost: the loss of a rule from half of the rows in the eyes of one from nearly all,
    whose difference is about as large as the error of the latter. `high` assumes that systematic errors of the ensemble
    cost no more than random ones. If the ensemble is blind to a pattern at every number of rows, the truth may be
    above it.

    References
    ----------
    .. [1] Corbett-Davies, Pierson, Feller, Goel and Huq (2017). Algorithmic decision making and the cost of fairness.
    .. [2] Menon and Williamson (2018). The cost of fairness in binary classification.
    .. [3] Zeng, Dobriban and Cheng (2022). Bayes-optimal classifiers under group fairness.
    .. [4] Luedtke and van der Laan (2016). Statistical inference for the mean outcome under a possibly non-unique
       optimal treatment strategy.
    .. [5] Liu and Molinari (2024). Inference for an algorithmic fairness-accuracy frontier.

    Examples
    --------
    >>> import numpy as np, fairfrontier as ff
    >>> rng = np.random.default_rng(0)
    >>> sex, x = rng.integers(0, 2, 400), rng.normal(size=(400, 2))
    >>> x[:, 0] += sex
    >>> y = rng.random(400) < 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> best = ff.achievable_frontier(x, y, sensitive_features=sex, cv=2)
    >>> bool(np.all(np.diff(best.accuracy) <= 0)), bool(np.all(best.low <= best.accuracy))
    (True, True)
    """
    validate.one_of(track, TRACKS, parameter="track")
    confidence = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    levels = _levels(grid, n_points)
    validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    task = checked_task(y, sensitive_features, fairness, sensitive_mode, sample_weight)
    generator, half = np.random.default_rng(random_state), None
    if probabilities is None:
        posteriors, half = learn(X, task, track, estimator=estimator, cv=cv, generator=generator, n_jobs=n_jobs)
    else:
        posteriors = checked_probabilities(probabilities, task)
    program = fair_program(task, posteriors)
    rules = program.path(levels)
    values, floor = rule_values(task, rules), task.constant
    estimate, error = values.estimate, np.sqrt(np.diag(values.covariance))
    margins = [program.margin(rule) for rule in rules]
    promised = [task.weight @ (1.0 - posteriors.label + np.maximum(margin, 0.0)) for margin in margins]
    unlearned = np.zeros(len(rules)) if half is None else _unlearned(task, half, rules, margins)
    half_width = critical_value(values.covariance, confidence, generator) * error
    falling = IsotonicRegression(increasing=False)
    accuracy, attained = (
        np.clip(falling.fit_transform(levels, curve), floor, 1.0) for curve in (estimate + unlearned, estimate)
    )
    # The true curve falls: its lower bound at a fairer level holds here too, and its upper bound at a less fair one.
    low = np.maximum.accumulate((estimate - half_width)[::-1])[::-1]
    high = np.minimum.accumulate(estimate + half_width + 2.0 * unlearned)
    return AchievableFrontier(
        levels,
        accuracy,
        np.clip(low, 0.0, attained),
        np.clip(high, accuracy, 1.0),
        attained,
        unlearned,
        np.array([value + rule.allowance for value, rule in zip(promised, rules, strict=True)]),
        floor,
        program.unconstrained(),
        fairness,
        track,
        confidence,
        len(task),
    )


def _levels(grid: ArrayLike | None, n_points: int) -> FloatArray:
    """Return the levels of fairness, ascending."""
    if grid is None:
        return np.linspace(0.0, 1.0, validate.whole_number(n_points, parameter="n_points", low=2))
    return np.unique(validate.fairness_levels(grid))


def learn(
    X: Any,
    task: LimitTask,
    track: str,
    *,
    estimator: Any,
    cv: int,
    generator: np.random.Generator,
    n_jobs: int | None,
    halves: bool = True,
) -> tuple[Posteriors, Posteriors | None]:
    """Fit the posteriors with `cv` folds and, if asked, with half of the rows."""
    Z = feature_matrix(X, task, track)
    learners = checked_learners(estimator, int(generator.integers(2**31)), task, 0.5, Z)
    fold, half = stratified_folds(task.cell, cv, generator), stratified_folds(task.cell, 2, generator)
    posteriors = cross_fitted(Z, task, track, fold, learners, n_jobs=n_jobs)
    # Estimates from shares s and t of n rows that were taken independently differ with variance v/n·(1/s + 1/t − 2):
    # for s = 1/2 that is v/(tn), the variance of the other one. So their difference stands for its error.
    return posteriors, cross_fitted(Z, task, track, half, learners, n_jobs=n_jobs) if halves else None


def _unlearned(
    task: LimitTask, half: Posteriors, rules: Sequence[FairRule], margins: Sequence[FloatArray]
) -> FloatArray:
    """Return what rules from half of the rows lose, in the eyes of the posteriors from more of them."""
    pairs = zip(margins, map(fair_program(task, half).margin, rules), strict=True)
    return np.array([task.weight @ (np.abs(margin) * ((margin > 0) != (other > 0))) for margin, other in pairs])


def fair_program(task: LimitTask, posteriors: Posteriors) -> FairProgram:
    """Return the program of the best rules in the eyes of some posteriors."""
    load = posteriors.load(task.weight)
    return FairProgram(posteriors.gain, load, task.weight, task.sets.blocks, relative=task.relative)
