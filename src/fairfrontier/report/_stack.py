"""Fair stacks of the audited models: on rows that each stack has not seen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairfrontier._rows import Key, Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import whole
from fairfrontier.chunks._source import StreamedChunks, gathered
from fairfrontier.exceptions import GroupError, InfeasibleError, InvalidInputError
from fairfrontier.optimize._cross_validation import Folds, StackRows, hashed_folds
from fairfrontier.optimize._fitting import InUnits, fit_stacks
from fairfrontier.optimize._ridge_path import FairPath
from fairfrontier.quantify._fauc import PointWeight, Weight
from fairfrontier.report._evaluate import Evaluation, check_reference, evaluate_chunks
from fairfrontier.report._summarise import Settings, family_name

# With fewer rows, halves of them say little about a stack.
MIN_ROWS = 200
# Models, rows and scores that a trial stack is fitted to, at the most: more hardly change what it can reach.
MAX_MODELS = 500
_TRIAL_ROWS, _TRIAL_SCORES = 2**17, 2**22
# With more models than this a trial tunes one ridge for all families.
_MANY = 100
# Scores that are converted to double precision at once.
_BLOCK = 2**19
TRIAL_POINTS = 20
_FOLDS = 5


def new_stack(settings: Settings, names: Sequence[str]) -> Any:
    """Return an unfitted stack of precomputed scores."""
    from fairfrontier.optimize import FairStacksClassifier, FairStacksRegressor  # an audit does without scikit-learn

    kind = FairStacksRegressor if settings.regression else FairStacksClassifier
    return kind(
        list(names),
        fairness=settings.fairness,
        weight=_tuning_weight(settings),
        cv="precomputed",
        sensitive_mode=settings.sensitive_mode,
        threshold=settings.threshold,
        random_state=0,
    )


def _tuning_weight(settings: Settings) -> Weight | None:
    """Return the weight to tune by: a point weight looks at one level only, and on 20 points says too little."""
    return None if isinstance(settings.weight, PointWeight) else settings.weight


def deal(chunks: StreamedChunks, n_parts: int, settings: Settings, seed: int = 0) -> StreamedChunks:
    """Deal rows into parts, which they have as their fold: every combination of label and groups evenly.

    Which part a row is in depends on the rows before it and on the seed, and not on how the rows are cut into chunks
    or on the names of the groups.
    """

    def open_dealt() -> Iterator[tuple[Rows, float]]:
        dealer = _Dealer(n_parts, seed, labelled=not settings.regression)
        return ((dealer.dealt(rows), 0.0) for rows in chunks)

    return StreamedChunks(chunks.names, open_dealt)


class _Dealer:
    """Deals the rows of each cell in rounds: one row to each part, beginning with a part drawn by lot."""

    def __init__(self, n_parts: int, seed: int, *, labelled: bool) -> None:
        self._n_parts, self._seed, self._labelled = n_parts, seed, labelled
        # For each cell, its number in order of appearance and its rows so far.
        self._seen: dict[Key, tuple[int, int]] = {}

    def dealt(self, rows: Rows) -> Rows:
        """Return rows with their parts."""
        cells = rows.cells(labelled=self._labelled)
        order = np.argsort(cells.codes, kind="stable")
        counts = np.bincount(cells.codes, minlength=cells.n_cells)
        first_of_cell = order[(np.cumsum(counts) - counts)[counts > 0]]
        number, before = np.zeros(cells.n_cells, dtype=np.intp), np.zeros(cells.n_cells, dtype=np.intp)
        for code in cells.codes[np.sort(first_of_cell)]:
            key = cells.keys[code]
            number[code], before[code] = self._seen.get(key, (len(self._seen), 0))
            self._seen[key] = int(number[code]), int(before[code] + counts[code])
        position = np.empty(len(rows), dtype=np.intp)
        position[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        position += before[cells.codes]
        turn = position // self._n_parts + (number[cells.codes] << 40)
        return replace(rows, fold=(position + hashed_folds(turn, self._n_parts, self._seed)) % self._n_parts)


@dataclass(frozen=True)
class KeepParts:
    """The step that keeps the rows of some parts."""

    first: int
    stop: int

    def __call__(self, rows: Rows) -> Rows:
        fold = np.asarray(rows.fold)
        return rows.take(np.flatnonzero((fold >= self.first) & (fold < self.stop)))


@dataclass(frozen=True, eq=False)
class KeepGroups:
    """The step that keeps the rows of groups that are large enough to be judged."""

    groups: Mapping[str, frozenset[str]]

    def __call__(self, rows: Rows) -> Rows:
        keep = np.ones(len(rows), dtype=bool)
        for name, large in self.groups.items():
            values = rows.sensitive[name]
            keep &= np.fromiter((str(value) in large for value in values), dtype=bool, count=len(values))
        # Without the cells of the table, which would still have the groups that are gone.
        return replace(rows.take(np.flatnonzero(keep)), _cells={})


def large_groups(base: Evaluation) -> dict[str, frozenset[str]]:
    """Return the groups that are judged, for each attribute that has others too, and at least two of these."""
    return {
        counts.attribute: frozenset(np.array(counts.groups, dtype=object)[counts.judged])
        for counts in base.groups
        if counts.judged.sum() >= 2 and not counts.judged.all()
    }


def held(chunks: StreamedChunks, in_memory: bool) -> StreamedChunks:
    """Return chunks after all their steps, once and for all where the rows are in memory."""
    return whole(gathered(chunks)) if in_memory else chunks


@dataclass(frozen=True, eq=False)
class ScoredByStacks:
    """The step that replaces the models' scores by those of stacks; `weights` (q, k) and `intercept` (q,) of each half.

    With two halves a row is scored by the stacks that were fitted to the other half of the rows.
    """

    weights: tuple[FloatArray, ...]
    intercept: tuple[FloatArray, ...]
    models: IntArray
    names: tuple[str, ...]
    regression: bool

    def __call__(self, rows: Rows) -> Rows:
        scores = np.empty((len(rows), len(self.names)))
        n_halves = len(self.weights)
        half = np.zeros(len(rows), dtype=np.intp) if n_halves == 1 else 1 - np.asarray(rows.fold) % 2
        every_model = np.array_equal(self.models, np.arange(rows.scores.shape[1]))
        height = max(1, _BLOCK // len(self.models))
        for start in range(0, len(rows), height):
            part = slice(start, start + height)
            H = rows.scores[part] if every_model else rows.scores[part][:, self.models]
            for number in range(n_halves):
                mine = half[part] == number
                scores[part][mine] = H[mine] @ self.weights[number].T + self.intercept[number]
        return rows.with_scores(scores if self.regression else np.clip(scores, 0.0, 1.0), self.names)


def trial(
    chunks: StreamedChunks, base: Evaluation, settings: Settings, *, in_memory: bool
) -> tuple[Evaluation | None, str]:
    """Say what a fair stack of the models would reach, by cross-fitting in two halves.

    Each half is scored by a stack that was fitted on (a part of) the other, so that every row counts and none is used
    twice.
    """
    if base.n_rows < MIN_ROWS:
        return (
            None,
            f"No fair stack was tried: it takes {MIN_ROWS} rows to fit and evaluate one; here are {base.n_rows}.",
        )
    models = _spread(base.points.accuracy[:-1])
    # An even number of parts: a stack is fitted to one of them, and scores those of the other parity.
    rows_of_part = max(1, min(_TRIAL_ROWS, _TRIAL_SCORES // len(models)))
    n_parts = 2 * -(-base.n_rows // (2 * rows_of_part))
    dealt = held(deal(chunks, n_parts, settings), in_memory)
    small = large_groups(base) if settings.sensitive_mode == "separate" else {}
    large = dealt.map(KeepGroups(small)) if small else dealt
    try:
        paths = [_trial_path(large, models, settings, half) for half in (0, 1)]
    except InvalidInputError as error:
        return None, f"A fair stack could not be fitted: {_without_folds(error)}."
    family = family_name(chunks.names)
    names = tuple(f"{family}/{i + 1:02d}" for i in range(TRIAL_POINTS))
    weights, intercept = tuple(path.weights for path in paths), tuple(path.intercept for path in paths)
    scored = dealt.map(ScoredByStacks(weights, intercept, models, names, settings.regression), names)
    note = "The fair stack is cross-fitted: each half of the rows is scored by a stack fitted on the other half."
    if len(models) < len(chunks.names):
        note += f" It is made of {len(models)} of the {len(chunks.names):,} models; with `stack` it uses all."
    return evaluate_chunks(scored, include_constant=False, **settings.measures()), note


def _without_folds(error: Exception) -> str:
    """Return a message without advice about folds, which reports choose themselves."""
    reason, _, advice = str(error).rpartition(": ")
    return f"{reason}: merge small groups" if advice.startswith("use fewer folds") else str(error)


def _trial_path(dealt: StreamedChunks, models: IntArray, settings: Settings, half: int) -> FairPath:
    """Return the path of a stack that is fitted to one part of the rows, which is small enough to be held in memory."""
    names = tuple(dealt.names[i] for i in models)
    chosen = dealt.map(KeepParts(half, half + 1))
    if len(models) < len(dealt.names):
        chosen = chosen.map(lambda rows: rows.with_scores(rows.scores[:, models], names), names)
    # In double precision once, and not in every pass of the tuning.
    chosen = chosen.map(lambda rows: rows.with_scores(rows.scores.astype(np.float64, copy=False), names), names)
    folded = deal(whole(gathered(chosen)), _FOLDS, settings, seed=1)
    scales = "cv" if len(models) <= _MANY else None
    chunks = whole(gathered(folded))
    measure: dict[str, Any] = {"fairness": settings.fairness, "sensitive_mode": settings.sensitive_mode}
    units = InUnits.of(chunks, len(names), **measure) if settings.regression else None
    data = StackRows(
        chunks if units is None else chunks.map(units),
        regression=settings.regression,
        threshold=settings.threshold,
        folds=Folds(),
        **measure,
    )
    options: dict[str, Any] = {"n_points": TRIAL_POINTS, "weight": _tuning_weight(settings)}
    fitted = fit_stacks(data, names, family_scales=scales, **options)
    return fitted.path if units is None else units.undo(fitted).path


def _spread(accuracy: FloatArray) -> IntArray:
    """Return all models, or of many some good and some diverse ones: half the best, half evenly spaced."""
    if len(accuracy) <= MAX_MODELS:
        return np.arange(len(accuracy))
    order = np.argsort(-accuracy, kind="stable")
    best, rest = order[: MAX_MODELS // 2], order[MAX_MODELS // 2 :]
    spaced = rest[np.linspace(0, len(rest) - 1, MAX_MODELS - len(best)).astype(np.intp)]
    return np.sort(np.concatenate([best, spaced]))


def path_names(names: Sequence[str], path: FairPath) -> list[str]:
    """Return names for the points of a path, none of which is a model's name, with the score bias of each.

    With one contrast the bias has a sign: beyond zero the score is over-corrected, where the fairest decisions are.
    """
    bias = [f"{t:+.3f}" for t in path.target] if path.target.ndim == 1 else [f"up to {tau:.3f}" for tau in path.tau]
    family = family_name(names)
    return [f"{family}/{i + 1:02d}, score bias {one}" for i, one in enumerate(bias)]


@dataclass(frozen=True, eq=False)
class FittedStack:
    """A stack fitted on one part of the rows and evaluated on the rest."""

    model: Any  # at the chosen operating point
    held_out: StreamedChunks  # the rows that it has not seen
    # base, stack: the models, and the operating point followed by the path, on these rows
    base: Evaluation
    stack: Evaluation
    n_fit: int  # rows that it was fitted to
    n_calibration: int = 0  # rows on which it was shown to be fair


# The rows are dealt into this many parts, of which some are held out.
PARTS = 10
# Scores of calibration rows that are read into memory at the most; more rows hardly change what can be promised.
_CALIBRATION_SCORES = 2**26


def fit_on_part(
    chunks: StreamedChunks,
    settings: Settings,
    *,
    tau: float | None,
    min_fairness: float | None,
    confidence: float | None,
    test_size: float,
    seed: int,
    n_rows: int,
    in_memory: bool,
) -> FittedStack:
    """Fit a stack on one part of the rows and evaluate it on the rest, `test_size` of them to the nearest tenth.

    With a confidence, half of what is not held out is set aside to show that the stack is fair.
    """
    parts = int(np.clip(round(test_size * PARTS), 1, PARTS - 1))
    first = parts if confidence is None else parts + (PARTS - parts) // 2
    if confidence is not None and first == parts:
        raise InvalidInputError(
            f"--test-size must leave two tenths of the rows with --confidence, one to fit and one to promise on; got "
            f"{test_size:g}: take 0.8 or less"
        )
    dealt = held(deal(chunks, PARTS, settings, seed=seed), in_memory)
    test = held(dealt.map(KeepParts(0, parts)), in_memory)
    base = evaluate_chunks(test, **settings.measures())
    check_reference(settings.reference, base.groups)
    train = dealt.map(KeepParts(first, PARTS))
    # Whether a group is large enough all rows say, and not those that happen to be held out.
    separate = settings.sensitive_mode == "separate"
    small = large_groups(evaluate_chunks(dealt, **settings.measures())) if separate else {}
    train = held(deal(train.map(KeepGroups(small)) if small else train, _FOLDS, settings, seed=1), in_memory)
    try:
        model = new_stack(settings, chunks.names).fit_chunks(train)
    except GroupError as error:
        raise GroupError(_without_folds(error)) from None
    n_calibration = 0
    if tau is not None:
        model = model.at(tau=tau)
    elif confidence is not None:
        own = dealt.map(KeepParts(parts, first))
        rows = gathered(_at_most(own.map(KeepGroups(small)) if small else own, _CALIBRATION_SCORES))
        scores = dict(zip(rows.names, rows.scores.T, strict=True))
        calibration = (scores, rows.y, dict(rows.sensitive))
        n_calibration = len(rows)
        try:
            model = model.select(min_fairness, confidence=confidence, calibration=calibration)
        except InfeasibleError as error:
            raise InfeasibleError(
                f"{error}; {n_calibration:,} of the {n_rows:,} rows of the file are set aside for the promise: ask for "
                "less with --min-fairness or --confidence, or give a file with more rows"
            ) from None
    elif min_fairness is not None:
        model = model.select(min_fairness=min_fairness)
    names = (f"{family_name(chunks.names)}/chosen", *path_names(chunks.names, model.path_))
    step = ScoredByStacks(
        (np.vstack([model.weights_, model.path_.weights]),),
        (np.append(model.intercept_, model.path_.intercept),),
        np.arange(len(chunks.names)),
        names,
        settings.regression,
    )
    stack = evaluate_chunks(test.map(step, names), include_constant=False, **settings.measures())
    n_fit = sum(len(rows) for rows in train) if confidence is not None else n_rows - base.n_rows
    return FittedStack(model, test, base, stack, n_fit, n_calibration)


def _at_most(chunks: Iterable[Rows], n_scores: int) -> Iterator[Rows]:
    """Yield chunks until they have so many scores."""
    for rows in chunks:
        yield rows
        n_scores -= rows.scores.size
        if n_scores <= 0:
            return
