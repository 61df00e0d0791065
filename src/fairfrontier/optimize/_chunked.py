"""Squared-loss stacks of rows that come in chunks: one pass for the moments, one for all trials, one for the choice."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.chunks._rows import Chunk
from fairfrontier.chunks._source import Chunks
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._chunked import points_from_sums
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES
from fairfrontier.metrics._cells import CellSums
from fairfrontier.metrics._contrasts import Contrasts
from fairfrontier.metrics._keyed import KeyedCells, KeyedSums
from fairfrontier.optimize._cross_validation import CrossValidation, Targets, Trial, scores_on
from fairfrontier.optimize._moments import ChunkMoments, FoldMoments, Folds, KeyedMoments
from fairfrontier.optimize._statistics import StackStatistics


def statistics_from_chunks(
    chunks: Chunks,
    *,
    fairness: str = "demographic_parity",
    sensitive_mode: str = "separate",
    regression: bool = False,
) -> StackStatistics:
    """Compute all that a squared-loss stack needs to know, in one pass over chunks.

    Parameters
    ----------
    chunks : Chunks
        Labels, scores, groups and weights.
    fairness, sensitive_mode : str
        As in `tradeoff_points`.
    regression : bool
        Whether the target is a number.

    Examples
    --------
    >>> from fairfrontier.chunks import array_chunks
    >>> from fairfrontier.optimize import solve_stack
    >>> rng = np.random.default_rng(0)
    >>> sex, y = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    >>> H = np.stack([0.6 * y + 0.2 * sex, 0.5 * y], axis=1) + rng.normal(0, 0.3, (400, 2))
    >>> chunks = array_chunks(y, H, sensitive_features=sex, chunk_rows=100)
    >>> path = solve_stack(statistics_from_chunks(chunks), alpha=1.0, tau=0.01)
    >>> bool(abs(path.score_bias[0]) <= 0.01 + 1e-12)
    True
    """
    return ChunkedRows(chunks, fairness=fairness, sensitive_mode=sensitive_mode, regression=regression).statistics()


class ChunkedRows:
    """The rows of a stacking problem in chunks.

    Parameters
    ----------
    chunks : Chunks
        Labels, scores, groups and weights.
    fairness, sensitive_mode : str
        As in `tradeoff_points`.
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
        fairness: str = "demographic_parity",
        sensitive_mode: str = "separate",
        regression: bool = False,
        threshold: float = 0.5,
        folds: Folds | None = None,
    ) -> None:
        self.chunks, self.folds, self.regression = chunks, folds, regression
        self.threshold = None if regression else threshold
        found: FoldMoments = chunks.sum(ChunkMoments(regression, folds))
        self.fold_numbers = sorted(found.parts)
        parts = [found.parts[fold] for fold in self.fold_numbers]
        self.keyed = reduce(add, (part.keyed for part in parts))
        self.contrasts = self.keyed.contrasts(fairness, sensitive_mode)
        if folds is not None:
            _check_folds(parts, self.fold_numbers, self.contrasts, self.keyed)
        self.parts = [part.statistics(self.contrasts, self.keyed.keys) for part in parts]

    def statistics(self) -> StackStatistics:
        """Return the moments of all rows."""
        return StackStatistics.from_chunks(self.parts)

    def value_stacks(self, weights: FloatArray, intercept: FloatArray) -> TradeoffPoints:
        """Return the points of stacks with weights (p, k) and constants (p,), the best constant model last."""
        stacks = _FoldStacks(weights.T, intercept, ())
        return self.points(_StackSums(self.regression, self.threshold, None, {0: stacks}), 1)[0]

    def validation(self) -> "ChunkedValidation":
        """Return the cross-validation of the folds."""
        return ChunkedValidation(self)

    def points(self, function: "_StackSums", n_trials: int) -> list[TradeoffPoints]:
        """Return the points of each trial from one pass over the chunks."""
        keyed = self.chunks.sum(function)
        sums = keyed.in_order(self.contrasts, self.keyed.keys)
        measure = ACCURACY_MEASURES["r2" if self.regression else "accuracy"]
        result = []
        for i, outcome in enumerate(np.hsplit(sums.outcome, n_trials)):
            p = outcome.shape[1]
            squared = None if sums.squared_error is None else sums.squared_error[i * p : (i + 1) * p]
            of_trial = replace(sums, outcome=outcome, squared_error=squared)
            names = tuple(f"stack_{j}" for j in range(p))
            result.append(points_from_sums(of_trial, self.contrasts, measure, names))
        return result


def _check_folds(parts: Sequence[KeyedMoments], numbers: Sequence[int], contrasts: Contrasts, keyed: KeyedSums) -> None:
    """Raise if there is one fold only, or a fold misses a row set."""
    if len(parts) < 2:
        raise InvalidInputError(f"cv must have at least two folds with rows; got {len(parts)}: use more rows or folds")
    for number, part in zip(numbers, parts, strict=True):
        counts = contrasts.membership @ part.keyed.in_order(contrasts, keyed.keys).weight
        for name, count in zip(contrasts.sets.names, counts, strict=True):
            if count == 0:
                raise GroupError(
                    f"cv={len(parts)} folds need a row of each group in each fold; the row set {name!r} of "
                    f"sensitive_features has none in fold {number}: use fewer folds, merge small groups, or give alpha "
                    "as a number"
                )


class ChunkedValidation(CrossValidation):
    """Cross-validation of rows in chunks: every call of `values` is one pass over them, whatever the number of trials.

    Parameters
    ----------
    rows : ChunkedRows
        The rows, with folds.
    """

    def __init__(self, rows: ChunkedRows) -> None:
        super().__init__(rows.parts)
        self._rows = rows

    def values(self, trials: Sequence[Trial], targets: Targets) -> list[TradeoffPoints]:
        stacks = {}
        for fold, number in enumerate(self._rows.fold_numbers):
            weights, constants = self.lines(trials, fold)
            solutions = [trial.solutions[fold] for trial in trials]
            multipliers = tuple(solution.multipliers(targets(solution)) for solution in solutions)
            stacks[number] = _FoldStacks(weights, constants, multipliers)
        rows = self._rows
        return rows.points(_StackSums(rows.regression, rows.threshold, rows.folds, stacks), len(trials))


@dataclass(frozen=True, eq=False)
class _FoldStacks:
    """Stacks to value on the rows of one fold.

    Attributes
    ----------
    weights, constants : ndarray of shape (k, q), (q,)
        Columns of scores, or start and directions of each trial side by side.
    multipliers : tuple of ndarray of shape (p, m)
        Those of each trial; empty: the columns are scores.
    """

    weights: FloatArray
    constants: FloatArray
    multipliers: tuple[FloatArray, ...]

    def sums(self, chunk: Chunk, *, regression: bool, threshold: float | None) -> KeyedSums:
        """Return the sums of every stack over the chunk's cells."""
        cells = KeyedCells.from_chunk(chunk, regression=regression)
        y = chunk.numbers() if regression else None
        columns = chunk.scores @ self.weights + self.constants
        if not self.multipliers:
            return cells.sums(chunk, columns, threshold=threshold, y=y)
        lines = np.hsplit(columns, len(self.multipliers))
        # One trial at a time: all scores of a chunk at once would be many times the chunk.
        return _side_by_side(
            [
                cells.sums(chunk, scores_on(line, multipliers), threshold=threshold, y=y)
                for line, multipliers in zip(lines, self.multipliers, strict=True)
            ]
        )


def _side_by_side(parts: Sequence[KeyedSums]) -> KeyedSums:
    """Return sums of several sets of models over the same cells as those of one."""
    first = parts[0].sums
    errors = [part.sums.squared_error for part in parts if part.sums.squared_error is not None]
    sums = CellSums(
        first.weight,
        np.hstack([part.sums.outcome for part in parts]),
        np.concatenate(errors) if errors else None,
        first.y_sum,
        first.y_square_sum,
    )
    return replace(parts[0], sums=sums)


@dataclass(frozen=True, eq=False)
class _StackSums:
    """The function from a chunk to the sums of stacks over its cells; it travels to the workers of a cluster."""

    regression: bool
    threshold: float | None
    folds: Folds | None
    stacks: dict[int, _FoldStacks]

    def __call__(self, chunk: Chunk) -> KeyedSums:
        if self.folds is None:
            return self._sums(0, chunk)
        fold = self.folds.of_chunk(chunk)
        return reduce(add, (self._sums(int(f), chunk.take(np.flatnonzero(fold == f))) for f in np.unique(fold)))

    def _sums(self, fold: int, chunk: Chunk) -> KeyedSums:
        return self.stacks[fold].sums(chunk, regression=self.regression, threshold=self.threshold)
