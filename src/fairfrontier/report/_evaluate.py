"""Evaluate the rows of a report: points, counts per group, the interval of FAUC, models against the one in use.

Intervals are found by resampling rows, in a bounded time whatever the number of models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairfrontier._groups import NOT_COMPARED
from fairfrontier._rows import Rows
from fairfrontier._validation import Attribute, FloatArray, IntArray, one_of
from fairfrontier.chunks import Chunks, whole
from fairfrontier.chunks._source import StreamedChunks, gathered
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import (
    TradeoffPoints,
    check_constant_name,
    evaluation_rows,
    points_from_rates,
    points_from_sums,
)
from fairfrontier.metrics._association import mantel_haenszel
from fairfrontier.metrics._contrasts import RowSets, named_measure
from fairfrontier.metrics._sums import Sums, decision_threshold, sum_rows
from fairfrontier.quantify._bootstrap import Sample, replicates, sample_rows
from fairfrontier.quantify._resampling import Area, Scheme, area_interval, resample

if TYPE_CHECKING:
    from fairfrontier.report._summarise import Settings


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """What `k` models do to the `g` groups of one sensitive attribute.

    Attributes
    ----------
    attribute : str
        The attribute.
    groups : tuple of str, length g
        Its groups.
    rows, positives : ndarray of shape (g,)
        Rows of each group, and those with a positive label; with sample weights, their total weights.
    true_selected, false_selected : ndarray of shape (k, g)
        Rows with a positive, and with a negative, label that a model selects. For regression the first holds the sum
        of the scores and the second is zero.
    judged : ndarray of shape (g,)
        False for groups that are too small to be judged by: they are shown, and take no part in fairness.
    count : ndarray of shape (g,)
        The number of rows of each group, whatever their weights.
    scale : ndarray of shape (g,)
        Kish's effective number of rows, (Σw)² ÷ Σw², over the total weight: what intervals and tests multiply counts
        by. It is 1 without weights.
    """

    attribute: str
    groups: tuple[str, ...]
    rows: FloatArray
    positives: FloatArray
    true_selected: FloatArray
    false_selected: FloatArray
    judged: NDArray[np.bool_]
    count: IntArray
    scale: FloatArray

    @property
    def selected(self) -> FloatArray:
        """Rows that each model selects, shape (k, g)."""
        return self.true_selected + self.false_selected

    def selection_rates(self) -> FloatArray:
        """Return the share of each group that each model selects, shape (k, g)."""
        return self.selected / self.rows

    def append(self, other: "GroupCounts") -> "GroupCounts":
        """Return these counts with the models of `other`, on the same rows, behind them."""
        return replace(
            self,
            true_selected=np.concatenate([self.true_selected, other.true_selected]),
            false_selected=np.concatenate([self.false_selected, other.false_selected]),
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models evaluated on one set of rows: their `points` and, for each attribute, their `groups`.

    `unit` is what differences between groups are measured in: 1, or for regression the standard deviation of the label.
    """

    points: TradeoffPoints
    groups: tuple[GroupCounts, ...]
    n_rows: int
    unit: float = 1.0


def evaluate(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    fairness: str = "demographic_parity",
    accuracy: str = "accuracy",
    threshold: float = 0.5,
    sensitive_mode: str = "separate",
    include_constant: bool = True,
    names: Sequence[str] | None = None,
    min_group: int = 0,
    sample_weight: Any = None,
) -> Evaluation:
    """Evaluate models and count, group by group, whom they select.

    Parameters
    ----------
    y_true, y_preds, sensitive_features, fairness, accuracy, threshold, sensitive_mode, include_constant, sample_weight
        As in `tradeoff_points`.
    names : sequence of str, optional
        The models' names, where `y_preds` is an array: a large matrix need not be copied to carry them.
    min_group : int
        Groups with fewer rows are counted, but fairness does not compare them.

    Returns
    -------
    Evaluation
        Points and counts.

    Examples
    --------
    >>> e = evaluate([1, 0, 1, 0], {"a": [0.9, 0.6, 0.8, 0.1]}, sensitive_features=["f", "f", "m", "m"])
    >>> e.groups[0].groups
    ('f', 'm')
    >>> e.groups[0].selection_rates()
    array([[1. , 0.5],
           [0. , 0. ]])
    """
    raw = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    rows = evaluation_rows(y_true, y_preds, fairness=fairness, **raw)
    if names is not None:
        rows = replace(rows, names=tuple(names))
    return evaluate_chunks(
        whole(rows),
        fairness=fairness,
        accuracy=accuracy,
        threshold=threshold,
        sensitive_mode=sensitive_mode,
        include_constant=include_constant,
        min_group=min_group,
    )


def evaluate_chunks(
    chunks: Chunks,
    *,
    fairness: str = "demographic_parity",
    accuracy: str = "accuracy",
    threshold: float = 0.5,
    sensitive_mode: str = "separate",
    include_constant: bool = True,
    min_group: int = 0,
) -> Evaluation:
    """Evaluate models in one pass over chunks, and count, group by group, whom they select.

    Parameters
    ----------
    chunks : Chunks
        Labels, scores and groups; `whole` makes one chunk of rows in memory.
    fairness, accuracy, threshold, sensitive_mode, include_constant
        As in `tradeoff_points`.
    min_group : int
        As in `evaluate`.
    """
    check_constant_name(chunks.names, include_constant)
    found = sum_rows(chunks, fairness=fairness, accuracy=accuracy, threshold=threshold, sensitive_mode=sensitive_mode)
    points = points_from_sums(found, chunks.names, include_constant=include_constant)
    sets = judged_sets(found.contrasts.sets, found.contrasts.membership @ found.rows, min_group)
    points = points_from_rates(points.rates, sets, points.accuracy, points.names)
    outcome = found.sums.outcome
    if include_constant:
        outcome = np.concatenate([outcome, found.sums.weight[:, None] * points.rates[-1, 0] * found.unit], axis=1)
    groups = group_counts(found, outcome, min_group)
    return Evaluation(points, groups, int(found.rows.sum()), found.unit)


def group_counts(found: Sums, outcome: FloatArray, min_group: int) -> tuple[GroupCounts, ...]:
    """Return the counts of every attribute that is compared from the sums over cells (label × all attributes).

    An attribute inside whose values the others are compared is none of them.
    """
    compared = [a for a in found.contrasts.attributes if a.name in found.contrasts.sets.attributes]
    return tuple(_counts(attribute, found, outcome, min_group) for attribute in compared)


def check_reference(reference: Mapping[str, str], groups: Sequence[GroupCounts]) -> None:
    """Raise for a reference group that no attribute has which is compared, and say how such a group is written."""
    known = {counts.attribute: counts.groups for counts in groups}
    for attribute, group in reference.items():
        if attribute not in known:
            first, names = next(iter(known.items()))
            raise InvalidInputError(
                f"reference must name an attribute whose groups are compared, {' or '.join(map(repr, known))}; got "
                f"{attribute!r}: write the attribute and one of its groups, such as '{first}={names[0]}'"
            )
        one_of(group, known[attribute], parameter=f"reference {attribute}=")


def reference_notes(reference: Mapping[str, str], groups: Sequence[GroupCounts], min_group: int) -> list[str]:
    """Say of reference groups that they are too small to be judged."""
    return [
        f"The reference group {counts.attribute}={group} has fewer than {min_group} rows: ratios to it are uncertain."
        for counts in groups
        if (group := reference.get(counts.attribute)) is not None and not counts.judged[counts.groups.index(group)]
    ]


def judged_sets(sets: RowSets, sizes: IntArray, min_group: int) -> RowSets:
    """Return the comparison without sets of fewer than `min_group` rows; where fewer than two are left, with all."""
    large = [tuple(i for i in block if sizes[i] >= min_group) for block in sets.blocks]
    blocks = tuple(kept if len(kept) >= 2 else block for kept, block in zip(large, sets.blocks, strict=True))
    return replace(sets, blocks=blocks)


def _counts(attribute: Attribute, found: Sums, outcome: FloatArray, min_group: int) -> GroupCounts:
    label, weight = found.contrasts.label, found.sums.weight
    compared = [code for code, value in enumerate(attribute.values) if value != NOT_COMPARED]
    member = np.stack([attribute.codes == code for code in compared]).astype(np.float64)
    true_selected = (member[:, label] @ outcome[label]).T
    false_selected = (member[:, ~label] @ outcome[~label]).T
    if not label.any():  # regression, or no labels at all: all sums stand in the second
        true_selected, false_selected = false_selected, true_selected
    return GroupCounts(
        attribute.name,
        tuple(str(attribute.values[code]) for code in compared),
        member @ weight,
        member[:, label] @ weight[label],
        true_selected,
        false_selected,
        np.asarray(member @ found.rows >= min_group),
        (member @ found.rows).astype(np.intp),
        (member @ weight) / (member @ found.square),
    )


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


def fauc_bounds(chunks: StreamedChunks, base: Evaluation, settings: "Settings") -> tuple[float, float] | None:
    """Return the confidence interval of FAUC; None: it needs all rows in memory."""
    if not chunks.in_memory:
        return None
    models = near_frontier(base)
    count = int(np.clip(_BUDGET / (base.n_rows * len(models)), 200, 1000))
    smallest = min(float(n) for counts in base.groups for n in (*counts.count, *_labelled(counts)))
    method = "multinomial" if smallest >= _SMALL_GROUP else "bayesian"
    rows = gathered(chunks)
    data = _sample(rows.with_scores(rows.scores[:, models], tuple(rows.names[i] for i in models)), base, settings)
    scheme = Scheme(settings.confidence, count, method, False, 0)  # the same file gives the same report
    area = Area(data.sets, settings.weight, False)
    low, high = area_interval(data, area, scheme, resample(data, area, scheme, np.arange(len(data.points))))
    return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))


def _sample(rows: Rows, base: Evaluation, settings: "Settings") -> Sample:
    """Return rows to resample, with the comparison of the audit, which leaves out very small groups."""
    measures = {key: value for key, value in settings.measures().items() if key != "min_group"}
    data = sample_rows(rows, **measures)
    points = points_from_rates(data.points.rates, base.points.sets, data.points.accuracy, data.points.names)
    return replace(data, points=points)


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


def _compare(rows: Rows, baseline: int, threshold: float) -> _Changed:
    """Return the decisions that differ from those of the model in use."""
    decided = rows.scores > decision_threshold(rows.scores, threshold)
    before, label = decided[:, baseline][:, None], np.asarray(rows.y)[:, None]
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


def differences(chunks: StreamedChunks, base: Evaluation, settings: "Settings") -> list[dict[str, Any]]:
    """Compare every submitted model with the one in use on the same rows."""
    baseline = base.points.names.index(str(settings.baseline))
    found = chunks.sum(partial(_compare, baseline=baseline, threshold=settings.threshold))
    n_models, mean = len(base.points) - 1, found.better / found.weight
    zeroth, first, second = found.squares
    error = np.sqrt(np.maximum(second - 2 * mean * first + mean**2 * zeroth, 0.0)) / found.weight
    half = float(ndtri(0.5 + settings.confidence / 2)) * error
    low, high = _fairness_ends(chunks, base, settings, baseline)
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


def pooled_strata(rows: Rows, settings: "Settings") -> list[dict[str, Any]] | None:
    """Compare selection within the strata of the measure, pooled; None: it has none, or the rows count unequally."""
    measure = named_measure(settings.fairness)
    if measure.within is None or measure.needs_labels or settings.regression or rows.weight is not None:
        return None
    known: dict[str, Any] = {"threshold": settings.threshold, "confidence": settings.confidence}
    control, found = rows.sensitive[measure.within], []
    for name, groups in rows.sensitive.items():
        if name == measure.within:
            continue
        values, counts = np.unique(groups.astype(str), return_counts=True)
        asked = settings.reference.get(name) or next((one for one in measure.against if one in values), None)
        first = asked or str(values[counts.argmax()])
        # A group that shares no stratum with the reference cannot be compared with it.
        beside = np.unique(groups[np.isin(control, control[groups == first])])
        there = np.isin(groups, beside)
        if len(beside) < 2:
            continue
        scores = dict(zip(rows.names, rows.scores[there].T, strict=True))
        parts: dict[str, Any] = {"sensitive_features": groups[there], "control_features": control[there]}
        pooled = mantel_haenszel(scores, reference=first, **parts, **known)
        for model, by_group in pooled.items():
            for group, one in by_group.items():
                figures = {key: value if np.isfinite(value) else None for key, value in asdict(one).items()}
                what = {"model": model, "within": measure.within, "attribute": name, "group": group}
                found.append(what | {"reference": first} | figures)
    return found or None


def _fairness_ends(
    chunks: StreamedChunks, base: Evaluation, settings: "Settings", baseline: int
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the ends of the interval of each model's difference in fairness, by resampling."""
    if not chunks.in_memory or len(chunks.names) > _MOST_COMPARED:
        return None, None
    data = _sample(gathered(chunks), base, settings)
    options: dict[str, Any] = {"method": "bayesian", "stratify": False, "generator": np.random.default_rng(0)}
    blocks = [base.points.sets.fairness(block.rates) for block in replicates(data, _RESAMPLES, **options)]
    drawn = np.concatenate(blocks)
    drawn = drawn - drawn[:, [baseline]]
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high
