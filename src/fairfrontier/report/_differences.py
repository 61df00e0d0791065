"""Every model against the one in use: paired differences, and who would be decided otherwise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks
from fairfrontier.identify._points import points_from_rates
from fairfrontier.metrics._sums import decision_threshold
from fairfrontier.quantify._bootstrap import replicates, sample_rows
from fairfrontier.report._evaluate import Evaluation
from fairfrontier.report._summarise import Settings

# Resamples for the difference in fairness, and models that they are made for at the most.
_RESAMPLES, _MOST_MODELS = 400, 60


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
    half = float(norm.ppf(0.5 + settings.confidence / 2)) * error
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
    if rows is None or len(rows.names) > _MOST_MODELS:
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
