"""The confidence interval of an audit's FAUC, within a bounded time whatever the number of models."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import Rows
from fairfrontier._validation import IntArray
from fairfrontier.identify._points import points_from_rates
from fairfrontier.quantify._areas import Area
from fairfrontier.quantify._bootstrap import sample_rows
from fairfrontier.quantify._resampling import Scheme, resample
from fairfrontier.quantify._weights import Weight
from fairfrontier.report._evaluate import Evaluation, GroupCounts

# Models that are resampled at the most: the nearest to the frontier.
MAX_MODELS = 60
# Resampled rows × models, over all resamples, at the most; then there are fewer resamples.
_BUDGET = 1.5e9
# Distance from the frontier, in standard errors, that no resample bridges.
_FAR = 5.0
# Below this many rows a resample may miss a group; exponential weights never do.
_SMALL_GROUP = 50


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
