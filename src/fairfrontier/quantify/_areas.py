"""FAUC of many replicates at once, and which models matter to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray, interpolation
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, frontier_of
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.quantify._bootstrap import Block
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._weights import CallableWeight, Weight, as_weight

Interpolate = bool | Literal["signed"]
# A weight that is a plain function is integrated once, up to this many levels; between them its integral is
# interpolated.
_TABLE_LEVELS = 4097
# Points are not moved if in some direction more than this share of their spread (as a standard deviation) is true.
_LARGEST_TRUE_SHARE = 0.98


class Area:
    """FAUC (or FAUCI, or the area under the signed hull) as a function of a block of replicates.

    Parameters
    ----------
    sets : RowSets
        How rates are compared.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all levels equally.
    interpolate : {False, True, "signed"}
        As in `fauc_score`. With False all replicates are computed together, the hulls one after the other.
    """

    def __init__(
        self, sets: RowSets, weight: Weight | Callable[[float], float] | None, interpolate: Interpolate
    ) -> None:
        self.sets, self.interpolate = sets, interpolation(interpolate)
        self.weight = as_weight(weight)
        # With several contrasts a signed hull takes tens of linear programs, with ratios each hull does.
        programs = interpolate == "signed" and sets.n_contrasts > 1
        of_ratios = bool(interpolate) and not sets.compares_differences
        self.slow = programs or of_ratios
        # A dominated model may have a part in a mixture that is on the hull.
        self.any_model = interpolate == "signed" or of_ratios
        if not self.weight.cumulative(np.ones(1))[0] > 0:
            raise InvalidInputError("weight must have a positive integral over [0, 1]; got 0: it ignores every level")
        self._table: tuple[FloatArray, FloatArray] | None = None
        if isinstance(self.weight, CallableWeight) and not interpolate:
            levels = np.linspace(0.0, 1.0, _TABLE_LEVELS)
            self._table = levels, self.weight.normalized(levels)

    def __call__(self, block: Block) -> FloatArray:
        """Return the area of each replicate, shape (b,)."""
        if self.interpolate:
            return np.array([fauc(curve, self.weight) for curve in self._curves(block)])
        fairness = self.sets.fairness(block.rates)
        order = np.argsort(-fairness, axis=1)
        mass = self._normalized(np.take_along_axis(fairness, order, axis=1))
        best = np.maximum.accumulate(np.take_along_axis(block.accuracy, order, axis=1), axis=1)
        # TAF is best[i] on the levels from the fairness of model i + 1 up to that of model i.
        mass[:, :-1] -= mass[:, 1:].copy()
        return np.asarray(np.einsum("bk,bk->b", best, mass))

    def _normalized(self, fairness: FloatArray) -> FloatArray:
        if self._table is not None:
            return np.interp(fairness, *self._table)
        return np.array(self.weight.normalized(fairness.ravel())).reshape(fairness.shape)

    def _curves(self, block: Block) -> list[TAFCurve]:
        pairs = zip(block.rates, block.accuracy, strict=True)
        return [
            frontier_of(np.ascontiguousarray(rates.T), self.sets, values, self.interpolate) for rates, values in pairs
        ]


def contenders(start: Block, block: Block, sets: RowSets, stretch: float) -> NDArray[np.bool_]:
    """Tell which models would be on the frontier of a replicate if their own deviation were `stretch` times larger.

    Parameters
    ----------
    start : Block
        The data themselves: one replicate.
    block : Block
        The replicates.
    sets : RowSets
        How rates are compared.
    stretch : float
        At least 1. With a large one, models that are left out are on the frontier of hardly any other resample.

    Returns
    -------
    ndarray of shape (k,)
        True if it would be in at least one replicate.
    """
    fairness = sets.fairness(block.rates)
    far_fairness = sets.fairness(start.rates + stretch * (block.rates - start.rates))
    far_accuracy = start.accuracy + stretch * (block.accuracy - start.accuracy)
    found = np.zeros(fairness.shape[1], dtype=bool)
    for b, order in enumerate(np.argsort(-fairness, axis=1)):
        # TAF at the stretched fairness: the best of the models that are at least as fair; 0 if there is none.
        best = np.concatenate([[0.0], np.maximum.accumulate(block.accuracy[b, order])])
        at_least = np.searchsorted(-fairness[b, order], -far_fairness[b], side="right")
        found |= far_accuracy[b] >= best[at_least]
        found[order[block.accuracy[b, order] >= best[1:]]] = True
    return found


@dataclass(frozen=True, eq=False)
class Gathered:
    """Points without the spread that noise has given them.

    Attributes
    ----------
    start : Block
        One replicate: the points, moved towards their mean.
    least, most : float
        Bounds, in [0, 1], of the true share of their spread (as a standard deviation); the rest is noise.
    moved : bool
        False: the points are where they were.
    """

    start: Block
    least: float
    most: float
    moved: bool


def gather(start: Block, block: Block, *, has_constant: bool) -> Gathered:
    """Take out of a family's points the spread that noise explains.

    Parameters
    ----------
    start : Block
        The data themselves: one replicate.
    block : Block
        Replicates, which show the noise.
    has_constant : bool
        True: the last model is the constant one, which is not counted and not moved.

    Notes
    -----
    Estimated points spread more than the true ones: the covariance S of the points is that of the truth and that of the
    noise, N. In the directions v with Sv = l·Nv the distance to the mean is multiplied by √(1 − edge/l), which leaves
    the spread of the truth. The edge is the largest l that noise alone is expected to give k points in r dimensions,
    (1 + √(r/(k − 1)))². Nothing is moved if there are hardly more models than dimensions, because the spread is then
    unknown, nor if in some direction nearly all of the spread is true: such models are not equally good.
    """
    k = start.accuracy.shape[1] - int(has_constant)
    points = np.concatenate([start.rates[0], start.accuracy])[:, :k]
    noise = np.concatenate([block.rates, block.accuracy[:, None]], axis=1)[:, :, :k] - points
    total = float(np.square(noise).sum()) / len(noise)
    noise -= noise.mean(axis=2, keepdims=True)
    mean = points.mean(axis=1, keepdims=True)
    away = points - mean
    by_axis = noise.transpose(1, 0, 2).reshape(len(points), -1)
    size, axes = np.linalg.eigh(by_axis @ by_axis.T / len(noise))
    noisy = size > 1e-9 * total  # copies of one model share their noise, but for rounding
    if k - 1 <= len(points) or not noisy.any():
        return Gathered(start, 1.0, 1.0, moved=False)
    unit = axes[:, noisy] / np.sqrt(size[noisy])
    ratio, turn = np.linalg.eigh(unit.T @ away @ away.T @ unit)
    edge = (1.0 + np.sqrt(noisy.sum() / (k - 1))) ** 2
    kept = np.sqrt(np.maximum(1.0 - edge / np.maximum(ratio, 1e-30), 0.0))
    most = float(np.sqrt(max(1.0 - 1.0 / max(float(ratio[-1]), 1e-30), 0.0)))
    if kept[-1] > _LARGEST_TRUE_SHARE:
        return Gathered(start, float(kept[-1]), most, moved=False)
    taken = (axes[:, noisy] * np.sqrt(size[noisy])) @ (turn * (1.0 - kept)) @ (turn.T @ unit.T)
    moved = points - taken @ away
    rates, accuracy = start.rates.copy(), start.accuracy.copy()
    rates[0, :, :k], accuracy[0, :k] = moved[:-1], np.clip(moved[-1], 0.0, 1.0)
    return Gathered(Block(rates, accuracy), float(kept[-1]), most, moved=True)
