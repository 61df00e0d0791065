"""How the achievable accuracy grows with rows: measured on subsamples, projected by a power law."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from fairfrontier import _validation as validate
from fairfrontier._scores import named_models, positive_scores
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.limit._achievable import TRACKS, fair_program
from fairfrontier.limit._posteriors import checked_learners, cross_fitted, feature_matrix, stratified_folds
from fairfrontier.limit._program import FairRule
from fairfrontier.limit._rule_values import best_rule, rule_values, short
from fairfrontier.limit._task import LimitTask, checked_task

# Exponents of the power law that are tried, all equally likely beforehand: what is left to learn of a rule falls like
# the squared error of its posteriors, between 1/rows for few parameters and much more slowly for rough functions.
_EXPONENTS = np.linspace(0.2, 1.2, 11)
# Shares of all rows that the subsamples have, and how often each is drawn.
_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_FEWEST_ROWS = 100
# No learning curve is a power law exactly: at each size it is trusted to this share of the way to the largest size.
_TRUST = 0.2


@dataclass(frozen=True)
class Projection:
    """What a number of rows would reach: `accuracy` with its interval, and what it adds to all present rows."""

    rows: int
    accuracy: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float

    def __str__(self) -> str:
        return (
            f"{self.rows} rows would reach {short(self.accuracy)} [{short(self.low)}, {short(self.high)}], and add "
            f"{short(self.gain)} [{short(self.gain_low)}, {short(self.gain_high)}]"
        )


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Accuracy at one level of fairness by the number of rows.

    Attributes
    ----------
    rows : ndarray of shape (k,)
        Rows that models were fitted to, ascending.
    accuracy, low, high : ndarray of shape (k,)
        The accuracy on all rows, out of sample, and its interval.
    covariance : ndarray of shape (k, k)
        Covariance of the accuracies.
    confidence : float
        Coverage of each interval.
    """

    rows: IntArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    confidence: float

    def project(self, rows: int) -> Projection:
        """Return what a number of rows would reach.

        Notes
        -----
        For each exponent c the law a − b·rows^(−c), b ≥ 0, is fitted by generalised least squares, in which small sizes
        count less: the law is an approximation. The projection is the average over exponents, weighted by how well each
        fits, and its interval that of the mixture.
        """
        wanted = validate.whole_number(rows, parameter="rows", low=1)
        level = _law(self, lambda c: np.array([1.0, -(float(wanted) ** -c)]), self.confidence)
        last = float(self.rows[-1])
        more = _law(self, lambda c: np.array([0.0, last**-c - float(wanted) ** -c]), self.confidence)
        low, high = (float(np.clip(value, 0.0, 1.0)) for value in level[1:])
        # b ≥ 0: more rows do no harm, and fewer no good.
        least, most = (0.0, np.inf) if wanted >= last else (-np.inf, 0.0)
        return Projection(wanted, level[0], low, high, *(float(np.clip(value, least, most)) for value in more))


@dataclass(frozen=True, eq=False, repr=False)
class LearningFrontier:
    """How the achievable accuracy, and that of your models, grow with rows at one level of fairness.

    Attributes
    ----------
    min_fairness : float
        The level of fairness.
    achievable : LearningCurve
        The best rule from the features.
    models : LearningCurve or None
        The frontier of your estimators, if there are any.
    """

    min_fairness: float
    achievable: LearningCurve
    models: LearningCurve | None

    def project(self, rows: int) -> Projection:
        """Return what a number of rows would reach of the achievable accuracy; see `LearningCurve.project`."""
        return self.achievable.project(rows)

    def sentence(self) -> str:
        """Return what twice the rows would add, in one sentence."""
        last = int(self.achievable.rows[-1])
        now, twice = self.project(last), self.project(2 * last)
        return (
            f"At fairness {short(self.min_fairness, 2)} twice the data would add {short(twice.gain)} "
            f"({short(twice.gain_low)} to {short(twice.gain_high)}) to the {short(now.accuracy)} that "
            "is attainable now."
        )

    def __repr__(self) -> str:
        rows = self.achievable.rows
        return f"LearningFrontier(fairness {self.min_fairness:g}, {rows[0]} to {rows[-1]} rows: {self.sentence()})"


def learning_frontier(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    min_fairness: float = 0.95,
    fairness: str = "demographic_parity",
    track: Literal["blind", "aware"] = "blind",
    estimators: Sequence[tuple[str, Any]] | None = None,
    rows: ArrayLike | None = None,
    n_repeats: int = 3,
    confidence: float = 0.9,
    estimator: Any = None,
    cv: int = 5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> LearningFrontier:
    """Measure how the achievable accuracy grows with rows, to project what more data would add.

    Parameters
    ----------
    X, y, sensitive_features, fairness, track
        As in `achievable_frontier`.
    min_fairness : float
        The level of fairness.
    estimators : list of (name, estimator), optional
        Your models, unfitted: the frontier of their randomised mixtures is measured too.
    rows : array-like of int, optional
        Numbers of rows to fit to, at least three; None: a sixteenth of the rows that a fold leaves, an eighth, a
        quarter, half, and all.
    n_repeats : int
        Subsamples of each size, at least two.
    confidence : float
        Coverage of each interval.
    estimator, cv, sensitive_mode, sample_weight, n_jobs, random_state
        As in `achievable_frontier`.

    Returns
    -------
    LearningFrontier
        `achievable` and `models`, each with `project(rows)`.

    Notes
    -----
    Every subsample's rule is measured on all rows, out of fold, so that the sampling error of the measurement is common
    to all sizes and cancels in what more rows add. A projection beyond the data rests on the law: an ensemble that
    would find a new kind of pattern with many more rows is not foreseen.

    Examples
    --------
    >>> import numpy as np, fairfrontier as ff
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> sex, x = rng.integers(0, 2, 1000), rng.normal(size=(1000, 2))
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-2 * x[:, 0] - sex))
    >>> grown = ff.learning_frontier(
    ...     x, y, sensitive_features=sex, estimator=LogisticRegression(), rows=[100, 200, 400], cv=2
    ... )
    >>> ahead = grown.project(2000)
    >>> bool(ahead.low <= ahead.accuracy <= ahead.high)
    True
    """
    validate.one_of(track, TRACKS, parameter="track")
    level = validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
    confidence = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    advice = ": two subsamples of each size show how far one can be off"
    repeats = validate.whole_number(n_repeats, parameter="n_repeats", low=2, advice=advice)
    cv = validate.whole_number(cv, parameter="cv", low=2)
    validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    task = checked_task(y, sensitive_features, fairness, sensitive_mode, sample_weight)
    generator = np.random.default_rng(random_state)
    sizes = _sizes(rows, len(task), cv)
    Z = feature_matrix(X, task, track)
    learners = checked_learners(estimator, int(generator.integers(2**31)), task, sizes[0] / len(task), Z)

    def best(sample: Subsample) -> FairRule:
        posteriors = cross_fitted(Z, task, track, sample.fold, learners, n_jobs=n_jobs, rows=sample.usable)
        return fair_program(task, posteriors).path([level])[0]

    subsamples = _subsamples(task.cell, sizes, cv, repeats, generator)
    models = None
    if estimators is not None:
        named = named_models(estimators, expected="a non-empty list of (name, estimator) pairs")
        frontier = [[_models_rule(X, task, sample, named, level) for sample in of_size] for of_size in subsamples]
        models = _curve(task, frontier, sizes, confidence)
    rules = [[best(sample) for sample in of_size] for of_size in subsamples]
    return LearningFrontier(level, _curve(task, rules, sizes, confidence), models)


def _sizes(rows: ArrayLike | None, n_rows: int, cv: int) -> IntArray:
    """Return the numbers of rows to fit to, ascending."""
    most = n_rows - int(np.ceil(n_rows / cv))
    if rows is None:
        sizes = np.unique([max(_FEWEST_ROWS, int(share * most)) for share in _SHARES])
    else:
        sizes = np.unique(validate.column(rows, parameter="rows"))
    if len(sizes) < 3 or sizes[0] < 1 or sizes[-1] > most or sizes.dtype.kind not in "iu":
        raise InvalidInputError(
            f"rows must be at least three whole numbers up to {most}, the rows that {cv} folds leave to fit to; got "
            f"{sizes.tolist()}: pass fewer rows to fit to, or a longer table"
        )
    return sizes.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Subsample:
    """The rows that may be fitted to, and the fold of each row: each fold leaves the wanted number of them."""

    usable: NDArray[np.bool_]
    fold: IntArray


def _subsamples(
    cell: IntArray, sizes: IntArray, cv: int, repeats: int, generator: np.random.Generator
) -> list[list[Subsample]]:
    """Return `repeats` subsamples for each size; every cell has its share of each.

    A size that half of the rows hold needs two fits, each measured on the other half; a larger one needs `cv` of them.
    """
    n_rows, result = len(cell), []
    for size in sizes:
        folds = 2 if size <= n_rows // 2 else cv
        share = min(1.0, size * folds / ((folds - 1) * n_rows))
        of_size = []
        for _ in range(repeats if share < 1.0 else 1):
            order = np.lexsort((generator.random(n_rows), cell))
            taken = np.zeros(n_rows, dtype=bool)
            # Rows sorted by cell, and of these one after every 1/share: each cell has its share.
            taken[order] = np.diff(np.floor(np.arange(n_rows + 1) * share + generator.random())) > 0
            of_size.append(Subsample(taken, stratified_folds(cell, folds, generator, taken)))
        result.append(of_size)
    return result


def _models_rule(X: Any, task: LimitTask, sample: Subsample, named: Any, level: float) -> FairRule:
    """Return the best mixture of estimators fitted to some rows, cross-fitted."""
    y, classes = task.y.astype(np.intp), (0, 1)
    decisions = np.zeros((len(task), len(named)))
    for number in np.unique(sample.fold):
        train, test = np.flatnonzero(sample.usable & (sample.fold != number)), np.flatnonzero(sample.fold == number)
        for j, (name, model) in enumerate(named):
            fitted = clone(model).fit(_safe_indexing(X, train), y[train])
            decisions[test, j] = positive_scores(fitted, _safe_indexing(X, test), classes=classes, name=name) > 0.5
    return best_rule(task, decisions, level)


def _curve(task: LimitTask, rules: list[list[FairRule]], sizes: IntArray, confidence: float) -> LearningCurve:
    """Return the mean over repeats at each size, and the covariance of sampling and of subsampling."""
    values = [rule_values(task, of_size) for of_size in rules]
    accuracy = np.array([float(found.estimate.mean()) for found in values])
    influence = np.column_stack([found.influence.mean(axis=1) for found in values])
    covariance = influence.T @ influence
    # The spread between subsamples falls with their size; it is measured where there are several, and pooled.
    spread = [
        float(np.var(v.estimate, ddof=1)) * size for v, size in zip(values, sizes, strict=True) if len(v.estimate) > 1
    ]
    repeats = np.array([len(found.estimate) for found in values])
    covariance += np.diag((float(np.mean(spread)) if spread else 0.0) / (sizes * repeats) + 1e-12)
    error = float(ndtri(0.5 + confidence / 2.0)) * np.sqrt(np.diag(covariance))
    return LearningCurve(sizes, accuracy, accuracy - error, accuracy + error, covariance, confidence)


def _law(curve: LearningCurve, target: Any, confidence: float) -> tuple[float, float, float]:
    """Return mean and interval of `target(c)`ᵀ(a, b) over the laws a − b·rows^(−c)."""
    distance = curve.accuracy[-1] - curve.accuracy
    inverse = np.linalg.inv(curve.covariance + np.diag((_TRUST * distance) ** 2))
    means, errors, misfits = [], [], []
    for c in _EXPONENTS:
        design = np.column_stack([np.ones(len(curve.rows)), -(curve.rows.astype(np.float64) ** -c)])
        variance = np.linalg.inv(design.T @ inverse @ design)
        fitted = variance @ (design.T @ inverse @ curve.accuracy)
        if fitted[1] < 0.0:  # more rows do no harm: the curve is level
            variance = np.array([[1.0 / inverse.sum(), 0.0], [0.0, variance[1, 1]]])
            fitted = np.array([inverse.sum(axis=0) @ curve.accuracy / inverse.sum(), 0.0])
        residual = curve.accuracy - design @ fitted
        row = target(c)
        means.append(float(row @ fitted))
        errors.append(float(np.sqrt(row @ variance @ row)))
        misfits.append(float(residual @ inverse @ residual))
    mean, error = np.array(means), np.maximum(np.array(errors), 1e-9)
    share = np.exp(-0.5 * (np.array(misfits) - min(misfits)))
    share /= share.sum()
    low, high = (mean - 8 * error).min(), (mean + 8 * error).max()

    def quantile(level: float) -> float:
        return float(brentq(lambda v: share @ ndtr((v - mean) / error) - level, low, high))

    return float(share @ mean), quantile(0.5 - confidence / 2.0), quantile(0.5 + confidence / 2.0)
