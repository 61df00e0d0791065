"""The rows of a stacking problem, and how stacks are valued on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import CONSTANT, TradeoffPoints, points_from_rates
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES
from fairfrontier.metrics._cells import cell_sums
from fairfrontier.metrics._contrasts import Contrasts
from fairfrontier.optimize._statistics import StackStatistics, differences


@dataclass(frozen=True, eq=False)
class StackData:
    """Base-model predictions, target and contrasts of the same rows.

    Attributes
    ----------
    H : ndarray of shape (n, k)
        Predictions of the base models.
    y : ndarray of shape (n,)
        The target; 0 and 1 for two classes.
    contrasts : Contrasts
        Cells and row sets.
    threshold : float or None
        A score strictly above it is decision 1; None: regression.
    weight : ndarray of shape (n,) or None
        Sample weights.
    """

    H: NDArray[np.floating[Any]]
    y: FloatArray
    contrasts: Contrasts
    threshold: float | None = 0.5
    weight: FloatArray | None = None

    def rows(self, rows: IntArray) -> "StackData":
        """Return some of the rows, with the same cells and row sets."""
        cells = replace(self.contrasts.cells, codes=self.contrasts.cells.codes[rows])
        weight = None if self.weight is None else self.weight[rows]
        contrasts = replace(self.contrasts, cells=cells)
        return replace(self, H=self.H[rows], y=self.y[rows], contrasts=contrasts, weight=weight)

    def statistics(self) -> StackStatistics:
        """Return the moments of the rows."""
        return StackStatistics.from_arrays(self.H, self.y, self.contrasts, self.weight)

    def contrast_matrix(self) -> FloatArray:
        """Return B = HᵀC, the score bias of each base model on each contrast, shape (k, m)."""
        sums = cell_sums(self.H, self.contrasts.cells, threshold=None, weight=self.weight)
        rates = self.contrasts.rates(sums.outcome, sums.weight)
        return differences(rates, self.contrasts.sets, self.H.std(axis=0))

    def value_stacks(self, weights: FloatArray, intercept: FloatArray) -> TradeoffPoints:
        """Return the points of stacks with weights (p, k) and constants (p,), the best constant model last."""
        return self.value(self.H @ weights.T + intercept)

    def value(self, scores: FloatArray, names: Sequence[str] = ()) -> TradeoffPoints:
        """Return the points of stacks with scores (n, p), the best constant model last."""
        regression = self.threshold is None
        measure = ACCURACY_MEASURES["r2" if regression else "accuracy"]
        cells = self.contrasts.cells
        sums = cell_sums(scores, cells, threshold=self.threshold, weight=self.weight, y=self.y if regression else None)
        rates = self.contrasts.rates(sums.outcome, sums.weight)
        mean = float(np.average(self.y, weights=self.weight))
        flat = mean if regression else float(mean > 0.5)
        best = 0.0 if regression else max(mean, 1.0 - mean)
        return points_from_rates(
            np.vstack([rates, np.full(rates.shape[1], flat)]),
            self.contrasts.sets,
            np.append(measure.value(sums, cells.label), best),
            (*(names or (f"stack_{j}" for j in range(scores.shape[1]))), CONSTANT),
        )
