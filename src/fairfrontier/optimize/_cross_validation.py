"""Cross-validation of squared-loss stacks: moments of the folds, their solutions, and out-of-fold values.

One symmetric eigendecomposition per fold serves every α, and every fold's Gram matrix is a sum of the other folds'. The
scores along a path are affine in its multipliers, so that k models shrink to 1 + m columns before anything is valued.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.optimize._data import StackData
from fairfrontier.optimize._ridge_path import RidgeFactor, RidgeSolution
from fairfrontier.optimize._statistics import StackStatistics

Targets = Callable[[RidgeSolution], FloatArray]
# Trials whose held-out scores are computed by one matrix product.
_BATCH = 32


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
        Those of the other folds' rows, one a fold, of the models that are used.
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


class CrossValidation(ABC):
    """Stacks fitted without one fold after the other, and their value on that fold.

    Parameters
    ----------
    parts : sequence of StackStatistics
        The moments of each fold.
    """

    def __init__(self, parts: Sequence[StackStatistics]) -> None:
        self.full = StackStatistics.from_chunks(parts)
        # The other folds' sum: a difference from the total would lose digits.
        self.train = [StackStatistics.from_chunks(p for p in parts if p is not part) for part in parts]

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

    @abstractmethod
    def values(self, trials: Sequence[Trial], targets: Targets) -> list[TradeoffPoints]:
        """Return the out-of-fold points of each trial at the targets that each of its solutions gives."""

    def lines(self, trials: Sequence[Trial], fold: int) -> tuple[FloatArray, FloatArray]:
        """Return (W, c) such that H·W + c are the start and the directions of each trial on a fold, side by side."""
        train = self.train[fold]
        weights = np.hstack([trial.columns(fold) for trial in trials])
        constants = -train.mean_h @ weights
        constants[:: weights.shape[1] // len(trials)] += train.mean_y
        return weights, constants


class RowsValidation(CrossValidation):
    """Cross-validation of rows in memory.

    Parameters
    ----------
    data : StackData
        The rows.
    folds : ndarray of shape (n,)
        The fold of each row.
    """

    def __init__(self, data: StackData, folds: IntArray) -> None:
        self.data = data
        self.rows = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
        super().__init__([data.rows(rows).statistics() for rows in self.rows])

    def values(self, trials: Sequence[Trial], targets: Targets) -> list[TradeoffPoints]:
        result = []
        for first in range(0, len(trials), _BATCH):
            batch = trials[first : first + _BATCH]
            of_folds = [self._held_out(batch, fold) for fold in range(len(self.rows))]
            for i, trial in enumerate(batch):
                lines = [held_out[:, i] for held_out in of_folds]
                result.append(self.data.value(self._scores(trial, lines, targets)))
        return result

    def _held_out(self, trials: Sequence[Trial], fold: int) -> FloatArray:
        """Return start and directions of the fold's rows for each trial, shape (rows, trials, 1 + m)."""
        weights, constants = self.lines(trials, fold)
        return np.asarray(self.data.H[self.rows[fold]] @ weights + constants).reshape(
            len(self.rows[fold]), len(trials), -1
        )

    def _scores(self, trial: Trial, lines: Sequence[FloatArray], targets: Targets) -> FloatArray:
        multipliers = [solution.multipliers(targets(solution)) for solution in trial.solutions]
        scores = np.empty((len(self.data.y), len(multipliers[0])))
        for rows, line, of_fold in zip(self.rows, lines, multipliers, strict=True):
            scores[rows] = scores_on(line, of_fold)
        return scores


def scores_on(line: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Return the scores (n, p) of lines (n, 1 + m) at multipliers (p, m)."""
    # With one contrast an outer product: as a matrix product it takes longer.
    scores = line[:, 1:] * multipliers.T if line.shape[1] == 2 else line[:, 1:] @ multipliers.T
    scores += line[:, :1]
    return np.asarray(scores)
