"""Intervals and tests of an audit: of ratios of selection rates, of FAUC, and of every model against the one in use.

Those of ratios hold for small counts, and give the verdict of the four-fifths rule. The others are found by resampling
rows, in a bounded time whatever the number of models.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, ndtri

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks
from fairfrontier.identify._points import points_from_rates
from fairfrontier.metrics._sums import decision_threshold
from fairfrontier.quantify._bootstrap import replicates, sample_rows
from fairfrontier.quantify._fauc import Weight
from fairfrontier.quantify._resampling import Area, Scheme, area_interval, resample
from fairfrontier.report._evaluate import Evaluation, GroupCounts

if TYPE_CHECKING:
    from fairfrontier.report._summarise import Settings

FOUR_FIFTHS = 0.8
BELOW, ABOVE, CANNOT_TELL, NO_RATIO = "below", "above", "cannot tell", "nobody selected"
# Below this expected count the normal approximation of a test is not good enough.
_FEW = 10.0
# Chances of two tables that differ by less than this part are equal.
_TIED = 1e-9
# Halvings of the logarithm of a ratio: more than enough for double precision.
_HALVINGS = 60
# No ratio of counts in memory is farther from 1 than this.
_FARTHEST = np.log(1e12)
# Pairs of groups that are looked at closely, of those that an approximation puts first.
_PAIRS = 6
# Models that are resampled at the most: the nearest to the frontier.
MAX_MODELS = 60
# Resampled rows × models, over all resamples, at the most; then there are fewer resamples.
_BUDGET = 5e8
# Distance from the frontier, in standard errors, that no resample bridges.
_FAR = 5.0
# Below this many rows a resample may miss a group; exponential weights never do.
_SMALL_GROUP = 50
# Resamples for the difference in fairness, and models that they are made for at the most.
_RESAMPLES, _MOST_COMPARED = 400, 60


def wilson(hits: Any, n: Any, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval of shares; NaN where there are no rows.

    Examples
    --------
    >>> [float(end.round(4)) for end in wilson(8, 10, 0.95)]
    [0.4902, 0.9433]
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64))
    square = float(ndtri(0.5 + confidence / 2.0)) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = hits / n
        centre = (share + square / (2 * n)) / (1 + square / n)
        half = np.sqrt(square * share * (1 - share) / n + (square / (2 * n)) ** 2) / (1 + square / n)
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def ratio_interval(hits: Any, n: Any, other_hits: Any, other_n: Any, confidence: Any) -> tuple[FloatArray, FloatArray]:
    """Return Koopman's score interval for the ratio of two shares, (hits ÷ n) ÷ (other_hits ÷ other_n).

    Parameters
    ----------
    hits, n, other_hits, other_n : array-like
        Counts, which are broadcast against each other.
    confidence : float or array-like
        The nominal coverage.

    Returns
    -------
    (ndarray, ndarray)
        Both ends; the upper one is infinite where `other_hits` is 0, and both are NaN where all counts are 0.

    Notes
    -----
    The interval holds the ratios θ that the score test does not reject: with p₂ the most likely share of the second
    group under p₁ = θ·p₂, (x₁ − n₁p₁)² / (n₁p₁(1 − p₁)) + (x₂ − n₂p₂)² / (n₂p₂(1 − p₂)) is at most the quantile of χ².
    It needs no large counts, and is defined where a count is 0.

    Examples
    --------
    >>> [float(end.round(2)) for end in ratio_interval(36, 40, 16, 80, 0.95)]
    [2.94, 7.15]
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (hits, n, other_hits, other_n, confidence)))
    x1, n1, x2, n2, level = (np.ravel(array) for array in arrays)
    limit = 2.0 * gammaincinv(0.5, level)  # the quantile of χ² with one degree of freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.log(x1 / n1) - np.log(x2 / n2)
    start = np.clip(np.where(np.isnan(start), 0.0, start), -_FARTHEST, _FARTHEST)
    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = start.copy(), np.full_like(start, sign * _FARTHEST)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            accepted = _score(np.exp(middle), x1, n1, x2, n2) <= limit
            inside, outside = np.where(accepted, middle, inside), np.where(accepted, outside, middle)
        ends.append(np.exp((inside + outside) / 2))
    undefined = ((x1 == 0) & (x2 == 0)) | (n1 == 0) | (n2 == 0)
    low = np.where(undefined, np.nan, np.where(x1 == 0, 0.0, ends[0]))
    high = np.where(undefined, np.nan, np.where(x2 == 0, np.inf, ends[1]))
    return low.reshape(arrays[0].shape), high.reshape(arrays[0].shape)


def _score(ratio: FloatArray, x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray) -> FloatArray:
    """Return the score statistic of a ratio; it is 0 at the observed one and grows away from it."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = n1 + n2
        b = ratio * (n1 + x2) + x1 + n2
        # The smaller root, without the cancellation of b − √…
        p1 = 2 * ratio * (x1 + x2) / (b + np.sqrt(np.maximum(b * b - 4 * ratio * total * (x1 + x2), 0.0)))
        p2 = p1 / ratio
        terms = [(x - n * p) ** 2 / (n * p * (1 - p)) for x, n, p in ((x1, n1, p1), (x2, n2, p2))]
    # 0/0 where a share is 0 or 1 and so is its estimate: it fits without any error.
    return sum((np.where(np.isnan(term), 0.0, term) for term in terms), np.zeros_like(x1))


def proportion_test(hits: Any, n: Any, other_hits: Any, other_n: Any) -> FloatArray:
    """Return two-sided p-values of equal shares: Fisher's exact test where counts are small, else the pooled z-test.

    Examples
    --------
    >>> proportion_test([3, 300], [10, 1000], [7, 350], [10, 1000]).round(4).tolist()
    [0.1789, 0.017]
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (hits, n, other_hits, other_n)))
    x1, n1, x2, n2 = (np.ravel(array) for array in arrays)
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (x1 + x2) / (n1 + n2)
        error = np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
        p = 2 * ndtr(-np.abs(x1 / n1 - x2 / n2) / error)
        expected = np.minimum(n1, n2) * np.minimum(pooled, 1 - pooled)
    p = np.where(error > 0, p, 1.0)
    for i in np.flatnonzero((expected < _FEW) & (n1 > 0) & (n2 > 0)):
        p[i] = _fisher(*np.rint([x1[i], n1[i], x2[i], n2[i]]).astype(int).tolist())
    return np.where((n1 > 0) & (n2 > 0), p, np.nan).reshape(arrays[0].shape)


def _fisher(x1: int, n1: int, x2: int, n2: int) -> float:
    """Return the p-value of Fisher's exact test: the tables with these margins that are not more likely than this."""
    hits, first = x1 + x2, max(0, x1 + x2 - n2)
    x = np.arange(first, min(n1, hits) + 1, dtype=np.float64)
    steps = (n1 - x[:-1]) * (hits - x[:-1]) / ((x[:-1] + 1) * (n2 - hits + x[:-1] + 1))
    log_chance = np.cumsum(np.log(np.concatenate([[1.0], steps])))
    chance = np.exp(log_chance - log_chance.max())
    return float(chance[chance <= chance[x1 - first] * (1 + _TIED)].sum() / chance.sum())


@dataclass(frozen=True, eq=False)
class WorstRatios:
    """The ratio of the lowest to the highest selection rate of `k` models over the groups of one attribute.

    Attributes
    ----------
    lowest, highest : ndarray of shape (k,)
        The groups.
    ratio : ndarray of shape (k,)
        NaN for a model that selects nobody.
    low, high : ndarray of shape (k,)
        The confidence interval.
    verdict : list of str, length k
        "below" or "above" four fifths where the interval says so, else "cannot tell".
    """

    lowest: IntArray
    highest: IntArray
    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    verdict: list[str]


def worst_ratios(selected: FloatArray, rows: FloatArray, judged: NDArray[np.bool_], confidence: float) -> WorstRatios:
    """Compare the lowest selection rate with the highest, for every model.

    Parameters
    ----------
    selected : ndarray of shape (k, g)
        Selected rows of each group.
    rows : ndarray of shape (g,)
        Rows of each group.
    judged : ndarray of shape (g,)
        Groups that take part; with fewer than two of them no verdict is given.
    confidence : float
        The nominal coverage.

    Notes
    -----
    The groups with the lowest and the highest rate are themselves found from the data, so the interval of their ratio
    alone would be too short. Every pair of groups has an interval. The worst true ratio is not below all lower ends,
    so the least of them is a lower end for it; for the upper end the pairs share the error between them (Bonferroni).
    """
    where = np.flatnonzero(judged) if judged.sum() >= 2 else np.arange(len(rows))
    rates = selected[:, where] / rows[where]
    lowest, highest = where[np.argmin(rates, axis=1)], where[np.argmax(rates, axis=1)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = rates.min(axis=1) / rates.max(axis=1)
    n_pairs = len(where) * (len(where) - 1) // 2
    first, second = _closest_pairs(selected, rows, where)
    model = np.arange(len(selected))[:, None]
    counts = selected[model, first], rows[first], selected[model, second], rows[second]
    low = ratio_interval(*counts, confidence)[0].min(axis=1)
    high = ratio_interval(*counts, 1 - (1 - confidence) / n_pairs)[1].min(axis=1)
    high = np.minimum(high, 1.0)
    nobody = np.isnan(ratio)
    low, high = np.where(nobody, np.nan, low), np.where(nobody, np.nan, high)
    can_judge = judged.sum() >= 2
    verdicts = [_verdict(*ends, can_judge) for ends in zip(low, high, strict=True)]
    return WorstRatios(lowest, highest, ratio, low, high, verdicts)


def _verdict(low: float, high: float, can_judge: bool) -> str:
    if np.isnan(low):
        return NO_RATIO
    if can_judge and high < FOUR_FIFTHS:
        return BELOW
    return ABOVE if can_judge and low >= FOUR_FIFTHS else CANNOT_TELL


def _closest_pairs(selected: FloatArray, rows: FloatArray, where: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for each model, the ordered pairs of groups that decide its interval, by an approximation."""
    first, second = (index.ravel() for index in np.meshgrid(where, where, indexing="ij"))
    first, second = first[(different := first != second)], second[different]
    if len(first) <= 2 * _PAIRS:
        shape = len(selected), len(first)
        return np.broadcast_to(first, shape), np.broadcast_to(second, shape)
    x, n = selected + 0.5, rows + 1.0
    log_rate, variance = np.log(x / n), 1 / x - 1 / n
    ratio = log_rate[:, first] - log_rate[:, second]
    error = 2 * np.sqrt(variance[:, first] + variance[:, second])
    best = [np.argpartition(end, _PAIRS, axis=1)[:, :_PAIRS] for end in (ratio - error, ratio + error)]
    chosen = np.concatenate(best, axis=1)
    return first[chosen], second[chosen]


def fauc_bounds(
    rows: Rows, base: Evaluation, *, weight: Weight, confidence: float, measures: dict[str, Any]
) -> tuple[float, float]:
    """Return the confidence interval of FAUC.

    Parameters
    ----------
    rows : Rows
        Labels, groups and scores, all in memory.
    base : Evaluation
        Their points, the constant model last.
    weight : Weight
        How much each level of fairness matters.
    confidence : float
        The nominal coverage.
    measures : dict
        Fairness, accuracy, threshold and sensitive mode.
    """
    models = near_frontier(base)
    count = int(np.clip(_BUDGET / (base.n_rows * len(models)), 200, 1000))
    smallest = min(float(n) for counts in base.groups for n in (*counts.count, *_labelled(counts)))
    method = "multinomial" if smallest >= _SMALL_GROUP else "bayesian"
    near = rows.with_scores(rows.scores[:, models], tuple(rows.names[i] for i in models))
    data = sample_rows(near, **{key: value for key, value in measures.items() if key != "min_group"})
    # The comparison of the audit, which leaves out very small groups.
    found = points_from_rates(data.points.rates, base.points.sets, data.points.accuracy, data.points.names)
    data = replace(data, points=found)
    scheme = Scheme(confidence, count, method, False, 0)  # the same file gives the same report
    area = Area(data.sets, weight, False)
    low, high = area_interval(data, area, scheme, resample(data, area, scheme, np.arange(len(data.points))))
    return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))


def _labelled(counts: Any) -> list[float]:
    """Return the sizes of each group's two labels, which some measures compare on their own."""
    return [n for n in (*counts.scale * counts.positives, *counts.scale * (counts.rows - counts.positives)) if n > 0]


def _compared(counts: GroupCounts) -> NDArray[np.bool_]:
    """Return the groups that fairness compares."""
    return counts.judged if counts.judged.sum() >= 2 else np.ones(len(counts.rows), dtype=bool)


def near_frontier(base: Evaluation) -> IntArray:
    """Return the models that a resample of the rows may put on the frontier, without the constant one.

    A model whose accuracy and fairness are both several standard errors from the frontier is never on it, and takes
    no part in the distribution of FAUC.
    """
    points = base.points
    n_smallest = min(float(rows) for counts in base.groups for rows in (counts.rows * counts.scale)[_compared(counts)])
    fairer = np.minimum(points.fairness + _FAR * np.sqrt(0.5 / n_smallest), 1.0)
    slack = points.accuracy + _FAR * np.sqrt(0.25 / base.n_rows) - points.frontier()(fairer)
    on_frontier = np.isin(np.arange(len(points)), points.frontier().support)
    slack = np.where(on_frontier, np.inf, slack)[:-1]
    near = np.argsort(-slack, kind="stable")[:MAX_MODELS]
    near = near[slack[near] >= 0]
    return np.sort(near if len(near) else np.array([int(np.argmax(points.accuracy[:-1]))]))


@dataclass(frozen=True, eq=False)
class _Changed:
    """Rows that models decide otherwise than the one in use; those of two parts can be added.

    With d = 1 where only the other model is right, −1 where only the one in use is, and 0 elsewhere: the sums of the
    weights w, of w·d, and of w², w²·d and w²·d²; and in each group the rows that change to yes and to no.
    """

    weight: float
    better: FloatArray
    squares: FloatArray
    groups: dict[tuple[str, str], tuple[IntArray, IntArray]]

    def __add__(self, other: "_Changed") -> "_Changed":
        """Return the counts of both parts together."""
        zeros = np.zeros(len(self.better), dtype=np.intp)
        nothing = zeros, zeros
        groups = {}
        for key in dict.fromkeys((*self.groups, *other.groups)):
            pairs = zip(self.groups.get(key, nothing), other.groups.get(key, nothing), strict=True)
            yes, no = (a + b for a, b in pairs)
            groups[key] = yes, no
        return _Changed(self.weight + other.weight, self.better + other.better, self.squares + other.squares, groups)


@dataclass(frozen=True)
class _Compare:
    """The function from rows to the decisions that differ from those of the model in use."""

    baseline: int
    threshold: float

    def __call__(self, rows: Rows) -> _Changed:
        decided = rows.scores > decision_threshold(rows.scores, self.threshold)
        before, label = decided[:, self.baseline][:, None], np.asarray(rows.y)[:, None]
        to_yes, to_no = decided & ~before, before & ~decided
        d = np.where(label, to_yes, to_no).astype(np.float64) - np.where(label, to_no, to_yes)
        w = np.ones(len(rows)) if rows.weight is None else rows.weight
        squares = np.stack([np.full(d.shape[1], w @ w), (w * w) @ d, (w * w) @ (d * d)])
        groups = {}
        for name, values in rows.sensitive.items():
            for group in np.unique(values.astype(str)):
                inside = values.astype(str) == group
                groups[name, str(group)] = to_yes[inside].sum(axis=0), to_no[inside].sum(axis=0)
        return _Changed(float(w.sum()), w @ d, squares, groups)


def differences(chunks: Chunks, base: Evaluation, settings: "Settings", *, rows: Rows | None) -> list[dict[str, Any]]:
    """Compare every submitted model with the one in use on the same rows.

    Parameters
    ----------
    chunks : Chunks
        Labels (True for the positive one), groups and scores.
    base : Evaluation
        Their points, the constant model last.
    settings : Settings
        What was asked; `baseline` names the model in use.
    rows : Rows or None
        All rows, where they are in memory: the difference in fairness has an interval then.

    Returns
    -------
    list of dict
        One for each other model. The interval of the difference in accuracy is that of a mean of paired differences,
        which are 1 (only the other is right), −1 (only the one in use) or 0; that in fairness comes from resamples.
    """
    baseline = base.points.names.index(str(settings.baseline))
    found = chunks.sum(_Compare(baseline, settings.threshold))
    n_models, mean = len(base.points) - 1, found.better / found.weight
    zeroth, first, second = found.squares
    error = np.sqrt(np.maximum(second - 2 * mean * first + mean**2 * zeroth, 0.0)) / found.weight
    half = float(ndtri(0.5 + settings.confidence / 2)) * error
    low, high = _fairness_ends(rows, base, settings, baseline)
    result = []
    for i in (i for i in range(n_models) if i != baseline):
        yes_no = {key: (int(yes[i]), int(no[i])) for key, (yes, no) in found.groups.items()}
        attribute = next(iter(found.groups))[0]
        result.append(
            {
                "model": base.points.names[i],
                "accuracy": float(base.points.accuracy[i] - base.points.accuracy[baseline]),
                "accuracy_interval": [float(mean[i] - half[i]), float(mean[i] + half[i])],
                "fairness": float(base.points.fairness[i] - base.points.fairness[baseline]),
                "fairness_interval": None if low is None or high is None else [float(low[i]), float(high[i])],
                "to_yes": sum(yes for (name, _), (yes, _) in yes_no.items() if name == attribute),
                "to_no": sum(no for (name, _), (_, no) in yes_no.items() if name == attribute),
                "groups": {f"{name}={group}": list(both) for (name, group), both in yes_no.items()},
            }
        )
    return result


def _fairness_ends(
    rows: Rows | None, base: Evaluation, settings: "Settings", baseline: int
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the ends of the interval of each model's difference in fairness, by resampling."""
    if rows is None or len(rows.names) > _MOST_COMPARED:
        return None, None
    data = sample_rows(rows, **{key: value for key, value in settings.measures().items() if key != "min_group"})
    points = points_from_rates(data.points.rates, base.points.sets, data.points.accuracy, data.points.names)
    data = replace(data, points=points)
    options: dict[str, Any] = {"method": "bayesian", "stratify": False, "generator": np.random.default_rng(0)}
    blocks = [base.points.sets.fairness(block.rates) for block in replicates(data, _RESAMPLES, **options)]
    drawn = np.concatenate(blocks)
    drawn = drawn - drawn[:, [baseline]]
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high
