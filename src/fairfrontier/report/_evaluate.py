"""Points of every model, and the counts behind its group rates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._chunked import points_from_sums, sums_on
from fairfrontier.identify._points import CONSTANT, TradeoffPoints, tradeoff_points
from fairfrontier.metrics import ACCURACY_MEASURES, Cells, build_contrasts, cell_sums
from fairfrontier.metrics._keyed import KeyedSums


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
        Rows of each group, and those with a positive label.
    true_selected, false_selected : ndarray of shape (k, g)
        Rows with a positive, and with a negative, label that a model selects. For regression the first holds the sum
        of the scores and the second is zero.
    """

    attribute: str
    groups: tuple[str, ...]
    rows: FloatArray
    positives: FloatArray
    true_selected: FloatArray
    false_selected: FloatArray

    def selection_rates(self) -> FloatArray:
        """Return the share of each group that each model selects, shape (k, g)."""
        return (self.true_selected + self.false_selected) / self.rows

    def append(self, other: "GroupCounts") -> "GroupCounts":
        """Return these counts with the models of `other`, on the same rows, behind them."""
        return GroupCounts(
            self.attribute,
            self.groups,
            self.rows,
            self.positives,
            np.concatenate([self.true_selected, other.true_selected]),
            np.concatenate([self.false_selected, other.false_selected]),
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models valued on one set of rows: their `points` and, for each attribute, their `groups`."""

    points: TradeoffPoints
    groups: tuple[GroupCounts, ...]
    n_rows: int


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
) -> Evaluation:
    """Value models and count, group by group, whom they select.

    Parameters
    ----------
    y_true, y_preds, sensitive_features, fairness, accuracy, threshold, sensitive_mode, include_constant
        As in `tradeoff_points`.
    names : sequence of str, optional
        The models' names, where `y_preds` is an array: a large matrix need not be copied to carry them.

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
    points = tradeoff_points(
        y_true,
        y_preds,
        sensitive_features=sensitive_features,
        fairness=fairness,
        accuracy=accuracy,
        threshold=threshold,
        sensitive_mode=sensitive_mode,
        include_constant=include_constant,
    )
    regression = ACCURACY_MEASURES[accuracy].regression
    label = None if regression else validate.labels(y_true)[0]
    preds = validate.predictions(y_preds)
    attributes = validate.attributes(sensitive_features, len(preds.matrix))
    cells = build_contrasts(
        "demographic_parity", label=label, attributes=attributes, sensitive_mode=sensitive_mode
    ).cells
    sums = cell_sums(preds.matrix, cells, threshold=None if regression else threshold, names=preds.names)
    outcome = sums.outcome
    if include_constant:
        outcome = np.concatenate([outcome, sums.weight[:, None] * points.rates[-1, 0]], axis=1)
    if names is not None:
        points = _renamed(points, names, include_constant)
    groups = tuple(_counts(cells, column, sums.weight, outcome) for column in range(len(cells.attributes)))
    return Evaluation(points, groups, len(preds.matrix))


def evaluate_sums(
    keyed: KeyedSums,
    names: Sequence[str],
    *,
    fairness: str = "demographic_parity",
    accuracy: str = "accuracy",
    sensitive_mode: str = "separate",
    include_constant: bool = True,
) -> Evaluation:
    """Value models from sums over cells, for rows that came in chunks.

    Parameters
    ----------
    keyed : KeyedSums
        What `keyed_sums` found with the same accuracy and threshold.
    names : sequence of str
        The models.
    fairness, accuracy, sensitive_mode, include_constant
        As in `tradeoff_points`.
    """
    contrasts = keyed.contrasts(fairness, sensitive_mode)
    sums = sums_on(keyed, contrasts, accuracy)
    measure = ACCURACY_MEASURES[accuracy]
    points = points_from_sums(sums, contrasts, measure, tuple(names), include_constant=include_constant)
    outcome, cells = sums.outcome, contrasts.cells
    if include_constant:
        outcome = np.concatenate([outcome, sums.weight[:, None] * points.rates[-1, 0]], axis=1)
    groups = tuple(_counts(cells, column, sums.weight, outcome) for column in range(len(cells.attributes)))
    return Evaluation(_renamed(points, names, include_constant), groups, int(keyed.rows.sum()))


def _renamed(points: TradeoffPoints, names: Sequence[str], include_constant: bool) -> TradeoffPoints:
    if include_constant and CONSTANT in names:
        raise InvalidInputError(f"no model may be named {CONSTANT!r}, the name of the constant decision: rename it")
    return replace(points, names=(*names, CONSTANT) if include_constant else tuple(names))


def _counts(cells: Cells, column: int, weight: FloatArray, outcome: FloatArray) -> GroupCounts:
    """Return the counts of one attribute from the sums over cells (label × all attributes)."""
    attribute = cells.attributes[column]
    member = np.stack([cells.groups[:, column] == code for code in range(len(attribute.values))]).astype(np.float64)
    positive: NDArray[np.bool_] = cells.label
    true_selected = (member[:, positive] @ outcome[positive]).T
    false_selected = (member[:, ~positive] @ outcome[~positive]).T
    if not positive.any():  # regression: no label, so that all sums stand in the second
        true_selected, false_selected = false_selected, true_selected
    return GroupCounts(
        attribute.name,
        tuple(str(value) for value in attribute.values),
        member @ weight,
        member[:, positive] @ weight[positive],
        true_selected,
        false_selected,
    )
