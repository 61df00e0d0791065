"""What probabilities of groups can tell of fairness, and what they cannot."""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from fairfrontier._groups import ProbableGroups
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, labels, same_length, whole_number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import tradeoff_points
from fairfrontier.metrics._contrasts import COMPARISONS, named_measure
from fairfrontier.metrics._sums import checked_threshold


@dataclass(frozen=True, eq=False)
class FairnessBounds:
    """Fairness of `k` models where groups are only probable.

    Attributes
    ----------
    low, high : ndarray of shape (k,)
        The least and the largest fairness that agree with the probabilities and the decisions.
    weighted : ndarray of shape (k,)
        The weighted estimator, under the assumption of the `ProbableGroups`.
    thresholded : ndarray of shape (k,)
        The threshold estimator: each row counts in its most probable group.
    names : tuple of str, length k
        The models.
    """

    low: FloatArray
    high: FloatArray
    weighted: FloatArray
    thresholded: FloatArray
    names: tuple[str, ...]


def fairness_bounds(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: ProbableGroups,
    fairness: str = "demographic_parity",
    threshold: float | None = 0.5,
    sample_weight: Any = None,
    n_bins: int = 20,
) -> FairnessBounds:
    """Compute the fairness that probabilities of groups identify.

    Parameters
    ----------
    y_true, y_preds, threshold, sample_weight
        As in `tradeoff_points`.
    sensitive_features : ProbableGroups
        The probabilities; they must be right on average among rows with about the same ones (calibrated), for measures
        that condition on the label also among the rows of that label.
    fairness : str
        A measure's name, without a reference group or strata.
    n_bins : int
        Rows with about the same probability of a group are put together into so many bins.

    Returns
    -------
    FairnessBounds
        Bounds and two estimators for each model.

    Notes
    -----
    Among the rows of a bin the share π of a group and the share d of selected rows are known, and their joint share is
    not: it is between max(0, π + d − 1) and min(π, d). Summed over the bins these give the lowest and the highest rate
    of each group (Kallus, Mao and Zhou 2022). With two groups both extremes are attained together, and the bounds are
    the sharp ones for the bins; with more groups they may be too wide. They are bounds for the rows at hand, without
    the error of a sample. More bins are narrower and trust the calibration in more detail.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, y = rng.random(1000), rng.integers(0, 2, 1000)
    >>> sex, scores = rng.random(1000) < p, rng.random(1000)
    >>> groups = ProbableGroups(np.column_stack([1 - p, p]), groups=["f", "m"])
    >>> bounds = fairness_bounds(y, scores + 0.2 * sex, sensitive_features=groups)
    >>> true = 1 - abs((scores + 0.2 * sex > 0.5)[sex].mean() - (scores + 0.2 * sex > 0.5)[~sex].mean())
    >>> bool(bounds.low[0] <= true <= bounds.high[0]), bool(bounds.weighted[0] > true)
    (True, True)
    """
    if not isinstance(sensitive_features, ProbableGroups):
        raise InvalidInputError(
            f"sensitive_features must be ProbableGroups; got {type(sensitive_features).__name__}: of groups that are "
            "known, tradeoff_points gives the fairness itself"
        )
    measure = named_measure(fairness)
    if measure.against or measure.within:
        raise InvalidInputError(f"fairness must be a plain measure for bounds; got {fairness!r}")
    bins = whole_number(n_bins, parameter="n_bins", low=1)
    options: dict[str, Any] = {"fairness": fairness, "threshold": threshold, "sample_weight": sample_weight}
    options["include_constant"] = False
    weighted = tradeoff_points(y_true, y_preds, sensitive_features=sensitive_features, **options)
    likely = tradeoff_points(y_true, y_preds, sensitive_features=sensitive_features.likely(), **options)
    rows = Rows.validated(y_true, y_preds, None, sample_weight=sample_weight, whole=True, needs_attributes=False)
    same_length(len(rows), sensitive_features=len(sensitive_features))
    limit = checked_threshold(threshold)
    decided = rows.scores.astype(np.float64) if limit is None else (rows.scores > limit).astype(np.float64)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    positive = labels(rows.y)[0] if measure.needs_labels else np.zeros(len(rows), dtype=bool)
    bias = COMPARISONS[measure.comparison].bias
    worst, best = np.zeros(decided.shape[1]), np.zeros(decided.shape[1])
    for condition in measure.conditions:
        inside = np.ones(len(rows), dtype=bool) if condition is None else positive == condition
        probability = sensitive_features.probabilities[inside][:, sensitive_features.compared]
        ends = [_rate_bounds(p, decided[inside], weight[inside], bins) for p in probability.T]
        for (low, high), (other_low, other_high) in permutations(ends, 2):
            worst, best = np.maximum(worst, bias(low, other_high)), np.maximum(best, bias(high, other_low))
    low, high = np.clip(1.0 - worst, 0.0, 1.0), np.clip(1.0 - best, 0.0, 1.0)
    return FairnessBounds(low, high, weighted.fairness, likely.fairness, weighted.names)


def _rate_bounds(p: FloatArray, decided: FloatArray, weight: FloatArray, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest rate (k,) of a group with probabilities p (n,)."""
    cuts = np.unique(np.quantile(p, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    code = np.searchsorted(cuts, p, side="right")
    member, total = np.bincount(code, weight * p), np.bincount(code, weight)
    indicator = np.equal.outer(np.arange(len(total)), code) * weight
    selected = indicator @ decided
    low = np.maximum(member[:, None] + selected - total[:, None], 0.0).sum(axis=0)
    high = np.minimum(member[:, None], selected).sum(axis=0)
    return low / member.sum(), high / member.sum()
