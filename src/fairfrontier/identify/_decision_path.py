"""The exact decision path: accuracy and decision rates at every position of a line of stacks.

Scores are affine along a line, η(s) = base + s·slope, so that each row changes its decision at most once as s moves.
Sorting the crossing points gives the decisions everywhere: a continuum of models, not a grid.
"""

from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints, points_from_rates
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, best_constant
from fairfrontier.metrics._contrasts import Contrasts, RowSets
from fairfrontier.metrics._sums import CellSums


@dataclass(frozen=True, eq=False)
class DecisionPath:
    """All decisions that occur between two positions of a line of stacks.

    Attributes
    ----------
    position : ndarray of shape (q,)
        A position s at which each state is attained, ascending.
    accuracy : ndarray of shape (q,)
        Accuracy of the decisions there.
    rates : ndarray of shape (q, s)
        Rate of decision 1 in each row set.
    sets : RowSets
        The row sets and how they are compared.
    constant_accuracy : float
        Accuracy of the best constant model on these rows.
    """

    position: FloatArray
    accuracy: FloatArray
    rates: FloatArray
    sets: RowSets
    constant_accuracy: float

    def points(self) -> TradeoffPoints:
        """Return every state as a model, named by its position."""
        names = tuple(f"s={position:.6g}" for position in self.position)
        return points_from_rates(self.rates, self.sets, self.accuracy, names)

    def __len__(self) -> int:
        return len(self.position)


def decision_path(
    base: FloatArray,
    slope: FloatArray,
    codes: IntArray,
    contrasts: Contrasts,
    *,
    low: float,
    high: float,
    threshold: float = 0.5,
    sample_weight: FloatArray | None = None,
) -> DecisionPath:
    """Compute every decision state of scores base + s·slope for s in [low, high].

    Notes
    -----
    A row with a rising score decides 1 just after its crossing point, one with a falling score decides 0 from it on.
    Where several rows cross together, the falling ones come first: the state in between is that of the point itself.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (threshold - base) / slope
    rising = slope > 0
    start = np.where(slope == 0, base > threshold, np.where(rising, low > crossing, low < crossing))
    before_end = np.where(rising, crossing < high, crossing <= high)
    moving = np.flatnonzero((slope != 0) & (crossing >= low) & before_end & (start != rising))
    moving = moving[_event_order(crossing[moving], rising[moving])]
    at, up = crossing[moving], rising[moving]
    ends = _state_ends(at, up)
    weight = np.ones(len(base)) if sample_weight is None else sample_weight
    signed = np.where(up, weight[moving], -weight[moving])
    cell_of, label = codes[moving], contrasts.label
    totals = np.bincount(codes, weight, minlength=contrasts.n_cells).astype(np.float64)
    begin = np.bincount(codes, weight * start, minlength=contrasts.n_cells)

    def along(of_cell: FloatArray) -> FloatArray:
        """Return Σ of_cell·(weight that decides 1) in every state."""
        change = np.cumsum(of_cell[cell_of] * signed)[ends]
        return np.concatenate([[0.0], change]) + of_cell @ begin

    sign = np.where(label, 1.0, -1.0)
    accuracy = (along(sign) + totals[~label].sum()) / totals.sum()
    constant = best_constant(ACCURACY_MEASURES["accuracy"], CellSums(totals, totals[:, None]), label).accuracy
    member = contrasts.membership.astype(np.float64)
    rates = np.stack([along(of_set) / (of_set @ totals) for of_set in member], axis=1)
    return DecisionPath(_positions(at, ends, low, high), accuracy, rates, contrasts.sets, constant)


def _event_order(at: FloatArray, up: np.ndarray) -> IntArray:
    """Return the order of the events: by position, falling before rising where positions are equal."""
    order = np.argsort(at)
    equal = np.diff(at[order]) == 0
    if equal.any():
        tied = np.zeros(len(order), dtype=bool)
        tied[1:] |= equal
        tied[:-1] |= equal
        among = order[tied]
        order[tied] = among[np.lexsort((up[among], at[among]))]
    return order


def _state_ends(at: FloatArray, up: np.ndarray) -> IntArray:
    """Return the last event of each group that happens at once."""
    if len(at) == 0:
        return np.empty(0, dtype=np.intp)
    changes = (np.diff(at) != 0) | (up[1:] != up[:-1])
    return np.append(np.flatnonzero(changes), len(at) - 1)


def _positions(at: FloatArray, ends: IntArray, low: float, high: float) -> FloatArray:
    """Return a position inside each state: the middle to the next one.

    Notes
    -----
    A falling row decides 0 at its crossing already, but there rounding may turn a score either way. Only a state
    between falling and rising rows that cross together has no other position.
    """
    here = at[ends]
    first = low if len(at) == 0 or at[0] > low else at[0]
    return np.concatenate([[first], (here + np.append(here[1:], high)) / 2.0])
