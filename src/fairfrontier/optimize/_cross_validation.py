"""Cross-validation: the folds of rows in memory or in chunks, and squared-loss stacks fitted without each of them.

Every fold holds every group and every label.
One symmetric eigendecomposition per fold serves every α, and the Gram matrix without a fold is the sum of the other
folds'. The scores along a path are affine in its multipliers, so that k models shrink to 1 + m columns before anything
is evaluated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._points import TradeoffPoints, points_from_rates, points_from_sums
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, AccuracyMeasure, constant_outcome
from fairfrontier.metrics._contrasts import Contrasts
from fairfrontier.metrics._sums import CellSums, KeyedSums, Sums, keyed_sums
from fairfrontier.optimize._ridge_path import RidgeFactor, RidgeSolution
from fairfrontier.optimize._statistics import StackStatistics, moments_of_folds

# Decimals to which rates and accuracies are rounded before models are compared by them.
_DIGITS = 12
# Folds of a stack whose base models are fitted already.
N_FOLDS = 5
# A score that exceeds the threshold by no more than this does not count as above it: it is rounding.
_AT_THRESHOLD = 1e-12
# Scores of all trials are made at once up to this many, beyond it trial by trial.
_SCORES_AT_ONCE = 2**17


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each row is in: its own, given numbers, or a hash of the row's number.

    Attributes
    ----------
    n_folds : int
        How many folds the hash has.
    seed : int
        Of the hash.
    given : ndarray of shape (n,) or None
        The fold of each row of the whole table.
    """

    n_folds: int = 0
    seed: int = 0
    given: IntArray | None = None

    def of_rows(self, rows: Rows) -> IntArray:
        """Return the fold of each of some rows."""
        if self.given is not None:
            if len(rows) and rows.row.max() >= len(self.given):
                raise InvalidInputError(
                    f"cv must give a fold for every row; got folds for {len(self.given)} rows, and row "
                    f"{rows.row.max()} in the chunks"
                )
            return self.given[rows.row]
        if rows.fold is not None:
            return rows.fold
        return hashed_folds(rows.row, self.n_folds, self.seed)

    def parts(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield each fold that some rows are in, with its rows."""
        fold = self.of_rows(rows)
        return ((int(number), rows.take(np.flatnonzero(fold == number))) for number in np.unique(fold))


def chunk_folds(cv: Any, random_state: Any) -> Folds:
    """Return the folds of rows that come in chunks."""
    from sklearn.utils import check_random_state

    if hasattr(cv, "test_fold"):  # a PredefinedSplit
        given = np.asarray(cv.test_fold)
        if given.min() < 0:
            raise InvalidInputError("cv must give each row a fold; got a PredefinedSplit with rows in none (-1)")
        return Folds(given=given.astype(np.intp))
    n_folds = _number_of_folds(cv, "at least 2 folds or a PredefinedSplit where rows come in chunks")
    return Folds(n_folds, seed=int(check_random_state(random_state).randint(2**31)))


def hashed_folds(row: IntArray, n_folds: int, seed: int = 0) -> IntArray:
    """Return a fold for each row number: at random, and the same however the rows are cut into chunks.

    Notes
    -----
    The finalizer of SplitMix64: every bit of the row number moves every bit of the hash.

    Examples
    --------
    >>> np.bincount(hashed_folds(np.arange(100_000), 5)) // 1000
    array([20, 20, 20, 19, 19])
    """
    with np.errstate(over="ignore"):
        x = row.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x % np.uint64(n_folds)).astype(np.intp)


def assign_folds(codes: IntArray, contrasts: Contrasts, cv: Any, random_state: Any = None) -> IntArray:
    """Return the fold of each row of a table in memory.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The cell of each row.
    contrasts : Contrasts
        The measure on these cells.
    cv : int, splitter, list of (train, test), "prefit" or "precomputed"
        A number of folds, or splits that have each row exactly once as test row.
    random_state : int, RandomState or None
        Seed of the shuffling inside the cells.

    Returns
    -------
    ndarray of shape (n,)
        Fold numbers from 0.

    Notes
    -----
    Rows are ordered by group, by label and at random inside, and dealt out in turn: with one attribute, a row set with
    at least as many rows as there are folds is then in every fold. With several, rows are moved where that is not yet
    so. Groups are ordered by their size and by their first row, so that their names do not matter.
    """
    from sklearn.utils import check_random_state

    n_rows = len(codes)
    if hasattr(cv, "split") and not isinstance(cv, str):
        folds = _from_splits(cv.split(np.zeros((n_rows, 1)), codes), n_rows, type(cv).__name__)
    elif isinstance(cv, (list, tuple)):
        folds = _from_splits(cv, n_rows, "the list")
    else:
        n_folds = _number_of_folds(cv, "at least 2 folds, a splitter, 'prefit' or 'precomputed'")
        if n_rows < n_folds:
            raise InvalidInputError(
                f"cv must not be larger than the number of rows; got cv={n_folds} for {n_rows} rows"
            )
        noise = check_random_state(random_state).random_sample(n_rows)
        groups = [replace(one, codes=one.codes[codes]).by_size().codes for one in contrasts.attributes]
        keys = (noise, contrasts.label[codes], *groups)
        folds = np.empty(n_rows, dtype=np.intp)
        folds[np.lexsort(keys)] = np.arange(n_rows) % n_folds
        _fill_gaps(folds, codes, contrasts, n_folds)
    _check_groups(folds, codes, contrasts)
    return folds


def _count(folds: IntArray, codes: IntArray, contrasts: Contrasts, n_folds: int) -> IntArray:
    """Return the number of rows of each row set in each fold, shape (folds, s)."""
    n_cells = contrasts.n_cells
    of_cell = np.bincount(folds * n_cells + codes, minlength=n_folds * n_cells)
    return np.asarray(of_cell.reshape(n_folds, n_cells) @ contrasts.membership.T.astype(np.intp))


def _fill_gaps(folds: IntArray, codes: IntArray, contrasts: Contrasts, n_folds: int) -> None:
    """Move single rows into folds that miss a row set, from folds that can spare them."""
    counts = _count(folds, codes, contrasts, n_folds)
    first = [int(np.argmax(member[codes])) for member in contrasts.membership]
    for s in np.lexsort((first, counts.sum(axis=0))):
        for fold in np.flatnonzero(counts[:, s] == 0):
            for row in np.flatnonzero(contrasts.membership[s, codes]):
                of_row = contrasts.membership[:, codes[row]]
                if np.all(counts[folds[row], of_row] > 1):
                    counts[folds[row], of_row] -= 1
                    counts[fold, of_row] += 1
                    folds[row] = fold
                    break


def _number_of_folds(cv: Any, expected: str) -> int:
    """Return a number of folds; where models are fitted already `cv` says so, and has none of its own."""
    n_folds = N_FOLDS if isinstance(cv, str) else cv
    if isinstance(n_folds, bool) or not isinstance(n_folds, (int, np.integer)) or n_folds < 2:
        raise InvalidInputError(f"cv must be {expected}; got {cv!r}")
    return int(n_folds)


def _from_splits(splits: Iterable[tuple[IntArray, IntArray]], n_rows: int, given: str) -> IntArray:
    folds = np.full(n_rows, -1, dtype=np.intp)
    for fold, (_, test) in enumerate(splits):
        if np.any(folds[test] >= 0):
            raise InvalidInputError(f"cv must give each row once as test row; {given} gives some twice: use a KFold")
        folds[test] = fold
    if np.any(folds < 0):
        raise InvalidInputError(f"cv must give each row once as test row; {given} leaves some out: use a KFold")
    return folds


def _check_groups(folds: IntArray, codes: IntArray, contrasts: Contrasts) -> None:
    """Raise if a fold misses a row set, and name the set."""
    n_folds = int(folds.max()) + 1
    counts = _count(folds, codes, contrasts, n_folds)
    for s, name in enumerate(contrasts.sets.names):
        missing = np.flatnonzero(counts[:, s] == 0)
        if len(missing):
            raise GroupError(
                f"cv={n_folds} folds need a row of each group in each fold; the row set {name!r} of sensitive_features "
                f"has {counts[:, s].sum()} row(s) in all and none in fold {missing[0]}: use fewer folds, merge small "
                "groups, or give predictions ('precomputed' or 'prefit') and alpha as a number"
            )


def check_classes(folds: IntArray, codes: IntArray, contrasts: Contrasts) -> None:
    """Raise if a class occurs in one fold only: a model could not learn it from the others."""
    label = contrasts.label[codes]
    for value in np.unique(label):
        if len(np.unique(folds[label == value])) < 2:
            raise InvalidInputError(
                f"y must have each class in at least two folds; the {'second' if value else 'first'} of the sorted "
                f"classes has {(label == value).sum()} row(s): use more rows of it"
            )


def train_test(folds: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (train rows, test rows) of each fold."""
    for fold in range(int(folds.max()) + 1):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


@dataclass(frozen=True, eq=False)
class FoldColumns:
    """Columns of trees, which are others in each fold: no tree of one forest is one of another.

    Attributes
    ----------
    place : ndarray of shape (q,)
        Which columns of the stack they are.
    blocks : tuple of ndarray of shape (n, q)
        For each fold the predictions of trees grown without it: for its rows of all, for the others out of bag.

    Notes
    -----
    A stack of trees is fitted to what the trees say of rows that they have not seen. Judged by the same predictions,
    groups differ less than on new rows, and the more trees, the less. Trees grown without a fold know nothing of it.
    """

    place: IntArray
    blocks: tuple[NDArray[np.float32], ...]

    def without(self, fold: int, rows: Rows) -> Rows:
        """Return rows with the columns of the trees that were grown without a fold."""
        scores = rows.scores.copy()
        scores[:, self.place] = self.blocks[fold][rows.row]
        return replace(rows, scores=scores)

    def held_out(self, rows: Rows) -> Rows:
        """Return rows with the columns of the trees that were grown without each row's own fold."""
        scores = rows.scores.copy()
        for fold, block in enumerate(self.blocks):
            mine = np.flatnonzero(rows.fold == fold)
            scores[np.ix_(mine, self.place)] = block[rows.row[mine]]
        return replace(rows, scores=scores)

    @classmethod
    def joined(cls, parts: Sequence["FoldColumns"]) -> "FoldColumns":
        """Return all columns of the same stack."""
        of_fold = zip(*(part.blocks for part in parts), strict=True)
        return cls(np.concatenate([part.place for part in parts]), tuple(np.hstack(blocks) for blocks in of_fold))

    def moved(self, by: int) -> "FoldColumns":
        """Return the columns behind `by` others."""
        return replace(self, place=self.place + by)

    def in_units(self, of_column: FloatArray) -> "FoldColumns":
        """Return the columns in the units (k,) of all columns of a stack."""
        units = of_column[self.place].astype(np.float32)
        return FoldColumns(self.place, tuple(block / units for block in self.blocks))


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
    accuracy : AccuracyMeasure, optional
        By which stacks are compared: a function of sums over cells; None: the share of right decisions, or R².
    folds : Folds, optional
        Folds, where the stack is to be tuned.
    own : FoldColumns, optional
        Columns that are others in each fold, where the rows are in memory.
    """

    def __init__(
        self,
        chunks: Chunks,
        *,
        fairness: Any = "demographic_parity",
        sensitive_mode: str = "separate",
        regression: bool = False,
        threshold: float = 0.5,
        accuracy: AccuracyMeasure | None = None,
        folds: Folds | None = None,
        own: FoldColumns | None = None,
    ) -> None:
        self.folds, self.regression, self.names = folds, regression, chunks.names
        self.measure = accuracy or ACCURACY_MEASURES["r2" if regression else "accuracy"]
        # A stack without weights gives everybody the mean of the labels. Where that is the threshold, rounding decides
        # nothing.
        self.threshold = None if regression else threshold + _AT_THRESHOLD
        options = {"fairness": fairness, "sensitive_mode": sensitive_mode, "regression": regression, "folds": folds}
        self.moments = moments_of_folds(chunks, **options)
        self.contrasts = self.moments.contrasts
        self._chunks, self._own, self._options = chunks, own, options
        self._held_out = chunks if own is None else chunks.map(own.held_out).kept()

    def statistics(self) -> StackStatistics:
        """Return the moments of all rows."""
        return StackStatistics.total(self.moments.parts)

    def group_sizes(self) -> dict[str, int]:
        """Return the number of rows of each row set, of weighted rows the effective one."""
        sizes = np.maximum(np.rint(self.statistics().set_rows), 1.0).astype(int).tolist()
        return dict(zip(self.contrasts.sets.names, sizes, strict=True))

    def splits(self) -> Iterator[tuple[StackStatistics, StackStatistics]]:
        """Yield the moments of the rows outside and inside each fold, by the columns that were fitted without it."""
        parts = self.moments.parts
        for i in range(len(parts)):
            if self._own is not None:
                parts = moments_of_folds(self._chunks.map(partial(self._own.without, i)), **self._options).parts
            # The other folds' sum: a difference from the total would lose digits.
            yield StackStatistics.total(part for part in parts if part is not parts[i]), parts[i]

    def without(self, fold: int, rows: Rows) -> Rows:
        """Return rows in memory with the columns that were fitted without a fold."""
        return rows if self._own is None else self._own.without(fold, rows)

    def stacked(self, weights: FloatArray, intercept: FloatArray) -> Chunks:
        """Return the rows with the scores of stacks with weights (p, k) and constants (p,) in place of predictions."""
        names = tuple(f"stack_{j}" for j in range(len(weights)))
        return self._chunks.map(_OnLines(None, {0: (weights.T, intercept)}), names)

    def evaluate(self, stacked: Chunks) -> TradeoffPoints:
        """Return the points of stacks whose scores all rows have, the best constant model last."""
        stacks = FoldStacks(None, 0.0, ())
        return self._points(_SumStacks(self.regression, self.threshold, None, {0: stacks}), 1, stacked)[0]

    def evaluate_folds(self, stacks: Sequence["FoldStacks"], n_trials: int) -> list[TradeoffPoints]:
        """Return the points of each trial, with stacks of its own on the rows of each fold, from one pass."""
        by_fold = dict(zip(self.moments.numbers, stacks, strict=True))
        return self._points(_SumStacks(self.regression, self.threshold, self.folds, by_fold), n_trials, self._held_out)

    def along(self, solutions: Sequence[RidgeSolution], *, folds: bool) -> Callable[[FloatArray], TradeoffPoints]:
        """Return the function from multipliers (p, m) to the points of one solution, or with `folds` of one per fold.

        Where the rows are in memory, the models' predictions are looked at once, whatever is asked of the function.
        """
        own = self.folds if folds else None
        numbers = self.moments.numbers if folds else (0,)
        step = _OnLines(own, {i: solution.line() for i, solution in zip(numbers, solutions, strict=True)})
        names = tuple(f"line_{j}" for j in range(1 + len(solutions[0].b0)))
        reduced = (self._held_out if folds else self._chunks).map(step, names).kept()

        def evaluate(multipliers: FloatArray) -> TradeoffPoints:
            each = [solution.multipliers(solution.displaced(multipliers)) for solution in solutions]
            stacks = {fold: FoldStacks(None, 0.0, (mine,)) for fold, mine in zip(numbers, each, strict=True)}
            function = _SumStacks(self.regression, self.threshold, None if own is None else Folds(), stacks)
            return self._points(function, 1, reduced)[0]

        return evaluate

    def decided_otherwise(self, stacked: Chunks) -> FloatArray | None:
        """Return the rows of each row set that stacks, and the constant model, decide otherwise than the first stack.

        Parameters
        ----------
        stacked : Chunks
            The rows with the scores of p stacks.

        Returns
        -------
        ndarray of shape (p + 1, s) or None
            None for regression, where there are no decisions.
        """
        if self.threshold is None:
            return None
        weight = self.moments.keyed.in_order(self.contrasts.keys).weight
        constant = bool(constant_outcome(self.measure, weight, self.contrasts.label, 0.0))
        keyed = stacked.sum(_SumChanges(self.threshold, constant))
        return np.asarray((self.contrasts.membership @ keyed.in_order(self.contrasts.keys).outcome).T)

    def label(self, rows: Rows) -> FloatArray:
        """Return the two classes of rows as 0 and 1."""
        classes = self.contrasts.classes
        return np.asarray(rows.y == (classes[1] if classes is not None else None), dtype=np.float64)

    def _points(self, function: "_SumStacks", n_trials: int, chunks: Chunks) -> list[TradeoffPoints]:
        """Return the points of each trial from one pass over the rows."""
        sums = chunks.sum(function).in_order(self.contrasts.keys)
        result = []
        for i, outcome in enumerate(np.hsplit(sums.outcome, n_trials)):
            p = outcome.shape[1]
            squared = None if sums.squared_error is None else sums.squared_error[i * p : (i + 1) * p]
            result.append(self._points_of_sums(replace(sums, outcome=outcome, squared_error=squared)))
        return result

    def _points_of_sums(self, sums: CellSums) -> TradeoffPoints:
        names = tuple(f"stack_{j}" for j in range(sums.outcome.shape[1]))
        keyed = self.moments.keyed
        points = points_from_sums(Sums(sums, self.contrasts, keyed.rows, keyed.square, self.measure), names)
        # Stacks are compared by these figures, with the constant model too. Rounded, figures that are equal but for the
        # order of a sum or the scale of the weights are equal.
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
            return keyed_sums(rows.with_scores(columns, ()), **options)
        lines = zip(np.hsplit(columns, len(self.multipliers)), self.multipliers, strict=True)
        scores = (scores_on(line, multipliers) for line, multipliers in lines)
        if len(rows) * sum(map(len, self.multipliers)) <= _SCORES_AT_ONCE:
            return keyed_sums(rows.with_scores(np.hstack(list(scores)), ()), **options)
        # One trial at a time: all scores at once would be many times the predictions.
        return _side_by_side([keyed_sums(rows.with_scores(one, ()), **options) for one in scores])


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
        rows.cells(labelled=not self.regression)  # made once, and kept by the parts
        parts = [(0, rows)] if self.folds is None else self.folds.parts(rows)
        options: dict[str, Any] = {"regression": self.regression, "threshold": self.threshold}
        return reduce(lambda a, b: a + b, (self.stacks[fold].sums(part, **options) for fold, part in parts))


@dataclass(frozen=True, eq=False)
class _OnLines:
    """The step that replaces predictions by start and directions of the stacks on a line, one for each fold."""

    folds: Folds | None
    lines: Mapping[int, "Line"]

    def __call__(self, rows: Rows) -> Rows:
        if self.folds is None:
            weights, constants = self.lines[0]
            scores, fold = rows.scores @ weights + constants, rows.fold
        else:
            fold = self.folds.of_rows(rows)
            scores = np.empty((len(rows), next(iter(self.lines.values()))[0].shape[1]))
            for number in np.unique(fold):
                weights, constants = self.lines[number]
                mine = np.flatnonzero(fold == number)
                scores[mine] = rows.scores[mine] @ weights + constants
        names = tuple(f"line_{j}" for j in range(scores.shape[1]))
        return replace(rows.with_scores(scores, names), fold=fold)


@dataclass(frozen=True)
class _SumChanges:
    """The function from rows to the sums of decisions, the constant model last, that differ from the first stack."""

    threshold: float
    constant: bool

    def __call__(self, rows: Rows) -> KeyedSums:
        decided = np.column_stack([rows.scores > self.threshold, np.full(len(rows), self.constant)])
        changed = np.asarray(decided != decided[:, :1], dtype=np.float64)
        return keyed_sums(_counted(rows).with_scores(changed, ()), labelled=True, threshold=None)


def _counted(rows: Rows) -> Rows:
    """Return rows that count once each, where they have weight; those of groups that are only probable by degrees."""
    if rows.weight is None or len(np.unique(rows.row)) < len(rows):
        return rows
    return replace(rows, weight=(rows.weight > 0).astype(np.float64))


Targets = Callable[[RidgeSolution], FloatArray]
# (W, c) such that H·W + c are the start and the directions of stacks, shapes (k, 1 + m) and (1 + m,).
Line = tuple[FloatArray, FloatArray]


# A ridge and scales to try: the solutions of the other folds' rows, one per fold.
Trial = tuple[RidgeSolution, ...]


class CrossValidation:
    """Stacks fitted without one fold after the other, and their points on that fold.

    Parameters
    ----------
    rows : StackRows
        The rows, with folds.
    """

    def __init__(self, rows: StackRows) -> None:
        self.rows, self.full = rows, rows.statistics()
        self.train, self.held_out = zip(*rows.splits(), strict=True)

    @property
    def growth(self) -> float:
        """Return how many times the weight of all rows but a fold the weight of all rows is."""
        return self.full.weight / float(np.mean([train.weight for train in self.train]))

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
        factors = [RidgeFactor(train, scale, debias, group) for train in self.train]
        return list(zip(*(factor.at_each(alphas) for factor in factors), strict=True))

    def values(self, trials: Sequence[Trial], targets: Targets) -> list[TradeoffPoints]:
        """Return the out-of-fold points of each trial at the targets that each of its solutions gives.

        It is one pass over the rows, whatever the number of trials.
        """
        stacks = []
        for solutions in zip(*trials, strict=True):
            weights, constants = zip(*(solution.line() for solution in solutions), strict=True)
            multipliers = tuple(solution.multipliers(targets(solution)) for solution in solutions)
            stacks.append(FoldStacks(np.hstack(weights), np.concatenate(constants), multipliers))
        return self.rows.evaluate_folds(stacks, len(trials))
