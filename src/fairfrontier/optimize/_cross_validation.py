"""The rows of a stacking problem, in memory or in chunks, and the cross-validation of squared-loss stacks on them.

One symmetric eigendecomposition per fold serves every α, and the Gram matrix without a fold is the sum of the other
folds'. The scores along a path are affine in its multipliers, so that k models shrink to 1 + m columns before anything
is evaluated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks
from fairfrontier.identify._points import TradeoffPoints, points_from_rates, points_from_sums
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES
from fairfrontier.metrics._constant import constant_outcome
from fairfrontier.metrics._evaluation import Sums
from fairfrontier.metrics._sums import CellSums, KeyedSums, keyed_sums
from fairfrontier.optimize._folds import Folds
from fairfrontier.optimize._ridge_path import RidgeFactor, RidgeSolution
from fairfrontier.optimize._statistics import StackStatistics, moments_of_folds

# Decimals to which rates and accuracies are rounded before models are compared by them.
_DIGITS = 12
# By so little more than the threshold a score is not above it.
_AT_THRESHOLD = 1e-12


class StackRows:
    """The rows of a stacking problem with their moments; making one is a pass over the rows.

    Parameters
    ----------
    chunks : Chunks
        Labels, predictions of the base models, groups and weights; rows in memory are one chunk.
    fairness, sensitive_mode
        As in `tradeoff_points`; not a function. Where `fairness` is pairs of masks, the rows have them as attributes.
    regression : bool
        Whether the target is a number.
    threshold : float
        A score strictly above it is decision 1; not used for regression.
    folds : Folds, optional
        Folds, where the stack is to be tuned.
    """

    def __init__(
        self,
        chunks: Chunks,
        *,
        fairness: Any = "demographic_parity",
        sensitive_mode: str = "separate",
        regression: bool = False,
        threshold: float = 0.5,
        folds: Folds | None = None,
    ) -> None:
        self.folds, self.regression, self.names = folds, regression, chunks.names
        # A stack without weights gives everybody the mean of the labels. Where that is the threshold, rounding decides
        # nothing.
        self.threshold = None if regression else threshold + _AT_THRESHOLD
        options = {"fairness": fairness, "sensitive_mode": sensitive_mode, "regression": regression}
        self.moments = moments_of_folds(chunks, folds=folds, **options)
        self.contrasts = self.moments.contrasts
        self._chunks = chunks

    def statistics(self) -> StackStatistics:
        """Return the moments of all rows."""
        return StackStatistics.total(self.moments.parts)

    def evaluate(self, weights: FloatArray, intercept: FloatArray) -> TradeoffPoints:
        """Return the points of stacks with weights (p, k) and constants (p,), the best constant model last."""
        stacks = FoldStacks(weights.T, intercept, ())
        return self._points(_SumStacks(self.regression, self.threshold, None, {0: stacks}), 1)[0]

    def evaluate_folds(self, stacks: Sequence["FoldStacks"], n_trials: int) -> list[TradeoffPoints]:
        """Return the points of each trial, with stacks of its own on the rows of each fold, from one pass."""
        by_fold = dict(zip(self.moments.numbers, stacks, strict=True))
        return self._points(_SumStacks(self.regression, self.threshold, self.folds, by_fold), n_trials)

    def along(self, lines: Sequence["Line"], *, folds: bool) -> "Along":
        """Return the function from multipliers to the points on one line, or with `folds` on a line for each fold.

        Where the rows are in memory, the models' predictions are looked at once, whatever is asked of the function.
        """
        own = self.folds if folds else None
        step = _OnLines(own, dict(zip(self.moments.numbers if folds else (0,), lines, strict=True)))
        names = tuple(f"line_{j}" for j in range(lines[0][0].shape[1]))
        reduced = self._chunks.map(step, names).kept()

        def evaluate(multipliers: Sequence[FloatArray]) -> TradeoffPoints:
            stacks = {fold: FoldStacks(None, 0.0, (mine,)) for fold, mine in zip(step.lines, multipliers, strict=True)}
            function = _SumStacks(self.regression, self.threshold, None if own is None else Folds(), stacks)
            return self._points(function, 1, reduced)[0]

        return evaluate

    def points_of(self, rows: Rows, scores: FloatArray) -> TradeoffPoints:
        """Return the points of scores (n, p) of all rows in memory, the best constant model last."""
        options: dict[str, Any] = {"labelled": not self.regression, "threshold": self.threshold, "scores": scores}
        keyed = keyed_sums(rows, y=rows.numbers() if self.regression else None, **options)
        return self._points_of_sums(keyed.in_order(self.contrasts.keys))

    def decided_otherwise(self, weights: FloatArray, intercept: FloatArray) -> FloatArray | None:
        """Return the share of each row set that stacks, and the constant model, decide otherwise than the first stack.

        Parameters
        ----------
        weights, intercept : ndarray of shape (p, k), (p,)
            The stacks.

        Returns
        -------
        ndarray of shape (p + 1, s) or None
            None for regression, where there are no decisions.
        """
        if self.threshold is None:
            return None
        keyed = self._chunks.sum(_SumChanges(weights.T, intercept, self.threshold, self._constant_decision()))
        sums = keyed.in_order(self.contrasts.keys)
        return self.contrasts.rates(sums.outcome, sums.weight)

    def changed_decisions(self, rows: Rows, scores: FloatArray) -> FloatArray | None:
        """Return the same for scores (n, p) of all rows in memory."""
        if self.threshold is None:
            return None
        changed = _changes(scores, self.threshold, self._constant_decision())
        sums = keyed_sums(rows, labelled=True, threshold=None, scores=changed).in_order(self.contrasts.keys)
        return self.contrasts.rates(sums.outcome, sums.weight)

    def _constant_decision(self) -> bool:
        weight = self.moments.keyed.in_order(self.contrasts.keys).weight
        return bool(constant_outcome(ACCURACY_MEASURES["accuracy"], weight, self.contrasts.label, 0.0))

    def label(self, rows: Rows) -> FloatArray:
        """Return the two classes of rows as 0 and 1."""
        classes = self.contrasts.classes
        return np.asarray(rows.y == (classes[1] if classes is not None else None), dtype=np.float64)

    def _points(self, function: "_SumStacks", n_trials: int, chunks: Chunks | None = None) -> list[TradeoffPoints]:
        """Return the points of each trial from one pass over the rows, or over `chunks` of them."""
        sums = (chunks or self._chunks).sum(function).in_order(self.contrasts.keys)
        result = []
        for i, outcome in enumerate(np.hsplit(sums.outcome, n_trials)):
            p = outcome.shape[1]
            squared = None if sums.squared_error is None else sums.squared_error[i * p : (i + 1) * p]
            result.append(self._points_of_sums(replace(sums, outcome=outcome, squared_error=squared)))
        return result

    def _points_of_sums(self, sums: CellSums) -> TradeoffPoints:
        measure = ACCURACY_MEASURES["r2" if self.regression else "accuracy"]
        names = tuple(f"stack_{j}" for j in range(sums.outcome.shape[1]))
        points = points_from_sums(Sums(sums, self.contrasts, self.moments.keyed.rows, measure), names)
        # Choices compare them, with the constant model's for example: equals must be equal whatever the order of the
        # sums, and the scale of the weights, behind them.
        rates, accuracy = points.rates.round(_DIGITS), points.accuracy.round(_DIGITS)
        return points_from_rates(rates, points.sets, accuracy, points.names)


@dataclass(frozen=True, eq=False)
class FoldStacks:
    """Stacks to evaluate on the rows of one fold.

    Attributes
    ----------
    weights, constants : ndarray of shape (k, q), (q,)
        Columns of scores, or start and directions of each trial side by side; no weights: the rows have them already.
    multipliers : tuple of ndarray of shape (p, m)
        Those of each trial; empty: the columns are scores.
    """

    weights: FloatArray | None
    constants: FloatArray | float
    multipliers: tuple[FloatArray, ...]

    def sums(self, rows: Rows, *, regression: bool, threshold: float | None) -> KeyedSums:
        """Return the sums of every stack over the cells of some rows."""
        options: dict[str, Any] = {
            "labelled": not regression,
            "threshold": threshold,
            "y": rows.numbers() if regression else None,
        }
        columns = rows.scores if self.weights is None else rows.scores @ self.weights + self.constants
        if not self.multipliers:
            return keyed_sums(rows, scores=columns, **options)
        lines = np.hsplit(columns, len(self.multipliers))
        # One trial at a time: all scores at once would be many times the predictions.
        return _side_by_side(
            [
                keyed_sums(rows, scores=scores_on(line, multipliers), **options)
                for line, multipliers in zip(lines, self.multipliers, strict=True)
            ]
        )


def scores_on(line: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Return the scores (n, p) of lines (n, 1 + m) at multipliers (p, m)."""
    # With one contrast an outer product: as a matrix product it takes longer.
    scores = line[:, 1:] * multipliers.T if line.shape[1] == 2 else line[:, 1:] @ multipliers.T
    scores += line[:, :1]
    return np.asarray(scores)


def _side_by_side(parts: Sequence[KeyedSums]) -> KeyedSums:
    """Return sums of several sets of models over the same cells as those of one."""
    errors = [part.sums.squared_error for part in parts if part.sums.squared_error is not None]
    sums = replace(
        parts[0].sums,
        outcome=np.hstack([part.sums.outcome for part in parts]),
        squared_error=np.concatenate(errors) if errors else None,
    )
    return replace(parts[0], sums=sums)


@dataclass(frozen=True, eq=False)
class _SumStacks:
    """The function from rows to the sums of stacks over their cells; it travels to the workers of a cluster."""

    regression: bool
    threshold: float | None
    folds: Folds | None
    stacks: Mapping[int, FoldStacks]

    def __call__(self, rows: Rows) -> KeyedSums:
        parts = [(0, rows)] if self.folds is None else self.folds.parts(rows)
        options: dict[str, Any] = {"regression": self.regression, "threshold": self.threshold}
        return reduce(lambda a, b: a + b, (self.stacks[fold].sums(part, **options) for fold, part in parts))


@dataclass(frozen=True, eq=False)
class _OnLines:
    """The step that replaces predictions by start and directions of the stacks on a line, one for each fold."""

    folds: Folds | None
    lines: Mapping[int, "Line"]

    def __call__(self, rows: Rows) -> Rows:
        fold = np.zeros(len(rows), dtype=np.intp) if self.folds is None else self.folds.of_rows(rows)
        scores = np.empty((len(rows), next(iter(self.lines.values()))[0].shape[1]))
        for number in np.unique(fold):
            weights, constants = self.lines[number]
            mine = slice(None) if self.folds is None else np.flatnonzero(fold == number)
            scores[mine] = rows.scores[mine] @ weights + constants
        names = tuple(f"line_{j}" for j in range(scores.shape[1]))
        return replace(rows.with_scores(scores, names), fold=fold)


@dataclass(frozen=True, eq=False)
class _SumChanges:
    """The function from rows to the sums of decisions that differ from those of the first of some stacks."""

    weights: FloatArray
    constants: FloatArray
    threshold: float
    constant: bool

    def __call__(self, rows: Rows) -> KeyedSums:
        changed = _changes(rows.scores @ self.weights + self.constants, self.threshold, self.constant)
        return keyed_sums(rows, labelled=True, threshold=None, scores=changed)


def _changes(scores: FloatArray, threshold: float, constant: bool) -> FloatArray:
    """Return 1 where scores (n, p), and the constant model behind them, decide otherwise than the first."""
    decided = scores > threshold
    everyone = np.full((len(scores), 1), constant)
    return np.asarray(np.hstack([decided, everyone]) != decided[:, :1], dtype=np.float64)


Targets = Callable[[RidgeSolution], FloatArray]
# (W, c) such that H·W + c are the start and the directions of stacks, shapes (k, 1 + m) and (1 + m,).
Line = tuple[FloatArray, FloatArray]
# From the multipliers (p, m) of each fold to the points there.
Along = Callable[[Sequence[FloatArray]], TradeoffPoints]


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

    def along(self, trial: Trial) -> Callable[[Targets], TradeoffPoints]:
        """Return the function from targets to the out-of-fold points of one trial."""
        evaluate = self._rows.along([self._lines([trial], fold) for fold in range(len(self.train))], folds=True)
        return lambda targets: evaluate([solution.multipliers(targets(solution)) for solution in trial.solutions])

    def _lines(self, trials: Sequence[Trial], fold: int) -> tuple[FloatArray, FloatArray]:
        """Return (W, c) such that H·W + c are the start and the directions of each trial on a fold, side by side."""
        train = self.train[fold]
        weights = np.hstack([trial.columns(fold) for trial in trials])
        constants = -train.mean_h @ weights
        constants[:: weights.shape[1] // len(trials)] += train.mean_y
        return weights, constants
