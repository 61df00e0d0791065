"""FAUC of many replicates at once."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray, one_of
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify.frontier import TAFCurve, signed_frontier, taf_curve
from fairfrontier.metrics.contrasts import RowSets
from fairfrontier.quantify.bootstrap import Block, fairness_of
from fairfrontier.quantify.fauc import fauc
from fairfrontier.quantify.weights import CallableWeight, Weight, as_weight

Interpolate = bool | Literal["signed"]
# A plain function as weight is integrated once at so many levels; in between its integral is taken as linear.
_LEVELS = 4097


class Area:
    """FAUC (or FAUCI, or the area under the signed hull) as a function of a block of replicates.

    Parameters
    ----------
    sets : RowSets
        How rates are compared.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all alike.
    interpolate : {False, True, "signed"}
        As in `fauc_score`. False is computed for all replicates together; the hulls one after the other.
    """

    def __init__(
        self, sets: RowSets, weight: Weight | Callable[[float], float] | None, interpolate: Interpolate
    ) -> None:
        if isinstance(interpolate, str):
            one_of(interpolate, ("signed",), parameter="interpolate")
        self.sets, self.interpolate = sets, interpolate
        self.weight = as_weight(weight)
        # With several contrasts a signed hull takes tens of linear programs.
        self.slow = interpolate == "signed" and sets.n_contrasts > 1
        if not self.weight.cumulative(np.ones(1))[0] > 0:
            raise InvalidInputError("weight must have a positive integral over [0, 1]; got 0: it ignores every level")
        self._table: tuple[FloatArray, FloatArray] | None = None
        if isinstance(self.weight, CallableWeight) and not interpolate:
            levels = np.linspace(0.0, 1.0, _LEVELS)
            self._table = levels, self.weight.normalized(levels)

    def __call__(self, block: Block) -> FloatArray:
        """Return the area of each replicate, shape (b,)."""
        if self.interpolate:
            return np.array([fauc(curve, self.weight) for curve in self._curves(block)])
        fairness = fairness_of(block.rates, self.sets)
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
        if self.interpolate == "signed":
            pairs = zip(block.rates, block.accuracy, strict=True)
            return [signed_frontier(np.ascontiguousarray(rates.T), self.sets, values) for rates, values in pairs]
        pairs = zip(fairness_of(block.rates, self.sets), block.accuracy, strict=True)
        return [taf_curve(fairness, values, interpolate=True) for fairness, values in pairs]


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
        At least 1; with a large one, hardly any other resample brings another model to its frontier.

    Returns
    -------
    ndarray of shape (k,)
        True where that is so in at least one replicate.
    """
    fairness = fairness_of(block.rates, sets)
    far_fairness = fairness_of(start.rates + stretch * (block.rates - start.rates), sets)
    far_accuracy = start.accuracy + stretch * (block.accuracy - start.accuracy)
    found = np.zeros(fairness.shape[1], dtype=bool)
    for b, order in enumerate(np.argsort(-fairness, axis=1)):
        # TAF at the stretched fairness: the best of the models that are at least as fair; 0 if there is none.
        best = np.concatenate([[0.0], np.maximum.accumulate(block.accuracy[b, order])])
        at_least = np.searchsorted(-fairness[b, order], -far_fairness[b], side="right")
        found |= far_accuracy[b] >= best[at_least]
        found[order[block.accuracy[b, order] >= best[1:]]] = True
    return found
