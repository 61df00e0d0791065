"""Cross-validation of squared-loss stacks: moments of the folds, their solutions, and out-of-fold points.

One symmetric eigendecomposition per fold serves every α, and the Gram matrix without a fold is the sum of the other
folds'. The scores along a path are affine in its multipliers, so that k models shrink to 1 + m columns before anything
is evaluated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.optimize._ridge_path import RidgeFactor, RidgeSolution
from fairfrontier.optimize._stack_rows import FoldStacks, StackRows
from fairfrontier.optimize._statistics import StackStatistics

Targets = Callable[[RidgeSolution], FloatArray]


@dataclass(frozen=True, eq=False)
class Trial:
    """A ridge and scales to try, and what they give without each fold.

    Attributes
    ----------
    alpha : float
        The ridge.
    scale : ndarray of shape (k,)
        D; infinite for models that are left out.
    solutions : tuple of RidgeSolution
        Those of the other folds' rows, one per fold, of the models that are used.
    """

    alpha: float
    scale: FloatArray
    solutions: tuple[RidgeSolution, ...]

    def columns(self, fold: int) -> FloatArray:
        """Return w₀ and U of all models for the rows of a fold, shape (k, 1 + m)."""
        solution = self.solutions[fold]
        result = np.zeros((len(self.scale), 1 + solution.U.shape[1]))
        used = np.isfinite(self.scale)
        result[used, 0], result[used, 1:] = solution.w0, solution.U
        return result


class CrossValidation:
    """Stacks fitted without one fold after the other, and their points on that fold.

    Parameters
    ----------
    rows : StackRows
        The rows, with folds.
    """

    def __init__(self, rows: StackRows) -> None:
        self._rows, parts = rows, rows.moments.parts
        self.full = rows.statistics()
        # The other folds' sum: a difference from the total would lose digits.
        self.train = [StackStatistics.total(p for p in parts if p is not part) for part in parts]

    def trials(
        self,
        scale: FloatArray,
        alphas: FloatArray,
        debias: FloatArray | None = None,
        group: IntArray | None = None,
    ) -> list[Trial]:
        """Return a trial for each ridge, with the penalties of the directions if they have their own.

        `group` (k,) says what each model of the attribute predicts; the directions are shrunk towards these models.
        """
        used = np.flatnonzero(np.isfinite(scale))
        own = None if debias is None else debias[used]
        of_group = None if group is None else group[used]
        factors = [RidgeFactor(train.take(used), scale[used], own, of_group) for train in self.train]
        solutions = zip(*(factor.at_each(alphas) for factor in factors), strict=True)
        return [Trial(float(alpha), scale, of_folds) for alpha, of_folds in zip(alphas, solutions, strict=True)]

    def values(self, trials: Sequence[Trial], targets: Targets) -> list[TradeoffPoints]:
        """Return the out-of-fold points of each trial at the targets that each of its solutions gives.

        It is one pass over the rows, whatever the number of trials.
        """
        stacks = []
        for fold in range(len(self.train)):
            weights, constants = self._lines(trials, fold)
            solutions = [trial.solutions[fold] for trial in trials]
            multipliers = tuple(solution.multipliers(targets(solution)) for solution in solutions)
            stacks.append(FoldStacks(weights, constants, multipliers))
        return self._rows.evaluate_folds(stacks, len(trials))

    def _lines(self, trials: Sequence[Trial], fold: int) -> tuple[FloatArray, FloatArray]:
        """Return (W, c) such that H·W + c are the start and the directions of each trial on a fold, side by side."""
        train = self.train[fold]
        weights = np.hstack([trial.columns(fold) for trial in trials])
        constants = -train.mean_h @ weights
        constants[:: weights.shape[1] // len(trials)] += train.mean_y
        return weights, constants
