"""Points of every model, and the counts behind its group rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._groups import NOT_COMPARED
from fairfrontier._validation import Attribute, FloatArray, IntArray, one_of
from fairfrontier.chunks import Chunks, whole
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import (
    TradeoffPoints,
    check_constant_name,
    evaluation_rows,
    points_from_rates,
    points_from_sums,
)
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.metrics._sums import Sums, sum_rows


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
    rows = evaluation_rows(y_true, y_preds, fairness=fairness, accuracy=accuracy, **raw)
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

    Parameters
    ----------
    found : Sums
        The sums.
    outcome : ndarray of shape (c, k)
        Selected rows of each cell, for every model.
    min_group : int
        Groups with fewer rows are not judged.
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
