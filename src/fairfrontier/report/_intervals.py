"""Intervals of an audit that rows have to be resampled for: of FAUC, and of every model against the one in use.

Both take a bounded time, whatever the number of models.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks
from fairfrontier.identify._points import points_from_rates
from fairfrontier.metrics._sums import decision_threshold
from fairfrontier.quantify._bootstrap import replicates, sample_rows
from fairfrontier.quantify._resampling import Area, Scheme, resample
from fairfrontier.quantify._weights import Weight
from fairfrontier.report._evaluate import Evaluation, GroupCounts
from fairfrontier.report._summarise import Settings

# Models that are resampled at the most: the nearest to the frontier.
MAX_MODELS = 60
# Resampled rows × models, over all resamples, at the most; then there are fewer resamples.
_BUDGET = 1.5e9
# Distance from the frontier, in standard errors, that no resample bridges.
_FAR = 5.0
# Below this many rows a resample may miss a group; exponential weights never do.
_SMALL_GROUP = 50
# Resamples for the difference in fairness, and models that they are made for at the most.
_RESAMPLES, _MOST_COMPARED = 400, 60


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
    result = resample(data, Area(data.sets, weight, False), scheme, np.arange(len(data.points)))
    low, high = result.interval(scheme.confidence)
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


def differences(chunks: Chunks, base: Evaluation, settings: Settings, *, rows: Rows | None) -> list[dict[str, Any]]:
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
    rows: Rows | None, base: Evaluation, settings: Settings, baseline: int
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
