"""Take the steps of a search within its time, look at the frontier now and then, and stop when more cannot help.

Was the search sufficient? That is told by how the frontier grew, and by what more search could gain.
"""

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.optimize import FairStacksClassifier
from fairfrontier.quantify import StepWeight, fauc
from fairfrontier.search._plan import PARTS, SearchProblem
from fairfrontier.search._steps import Step, StepResult, StepStore, Training, column_names, estimate, schedule, train
from fairfrontier.search._table import TableEncoding

# A search takes no fewer steps: the stack needs accurate models and models of the attribute.
LEAST_STEPS = 3
# The share of the time that training may take; the rest is for stacks, tests and the dossier.
TRAINING_SHARE = 0.7
# Steps after which the frontier is looked at.
_CHECKPOINTS = (2, 3, 5)
# A whole search takes about so many times what its steps take.
_LONGER = 1.8
_CHECK_EVERY = 4
# Two checkpoints in a row that gain less than this end the search.
ENOUGH = 0.0005
# Gains are taken to shrink by a factor of at most this from one checkpoint to the next.
_SLOWEST = 0.9
# The curve of a search is judged over fairness from 0.8 on; its path has so many stacks.
_WEIGHT, _N_STACKS = StepWeight(0.8), 25

# Is told what is done, and which share of all is.
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class EvaluationRows:
    """Rows of one part: base scores (n, k), labels and groups."""

    scores: FloatArray
    y: NDArray[np.bool_]
    sensitive: dict[str, NDArray[Any]]


def fit_stack(rows: EvaluationRows, names: Sequence[str], settings: dict[str, Any]) -> FairStacksClassifier:
    """Fit the path of fair stacks to the stacking rows."""
    model = FairStacksClassifier("precomputed", n_points=_N_STACKS, weight=_WEIGHT, **settings)
    predictions = dict(zip(names, rows.scores.T, strict=True))
    return model.fit(predictions, rows.y, sensitive_features=rows.sensitive)


@dataclass(frozen=True, eq=False)
class Features:
    """Encoded rows."""

    encoding: TableEncoding  # learned from the training rows
    training: Training  # what the steps learn from
    others: FloatArray  # (m, q): the encoded rows of all other parts, in the order of the table


@dataclass(frozen=True)
class Checkpoint:
    """The frontier after some steps."""

    # steps, models: steps done and base models trained
    steps: int
    models: int
    fauc: float  # area under the cross-validated frontier of fair stacks, over fairness from 0.8 to 1


@dataclass(frozen=True, eq=False)
class Trained:
    """The steps that were taken."""

    done: tuple[Step, ...]  # the steps
    names: tuple[str, ...]  # all base models
    parts: dict[str, EvaluationRows]  # their scores on the rows of each part but the training rows
    stack: FairStacksClassifier  # the path of fair stacks of all of them
    checkpoints: tuple[Checkpoint, ...]  # how the frontier grew
    stopped: str  # why no further step was taken


def encode(
    problem: SearchProblem, used: dict[str, NDArray[Any]], *, fairness: str, sensitive_mode: str, n_jobs: int | None
) -> Features:
    """Learn the encoding of the used columns from the training rows, and encode all rows."""
    rows = problem.rows("train")
    encoding = TableEncoding().fit({name: values[rows] for name, values in used.items()})
    needed = {name: used[name] for name in encoding.names}
    others = np.flatnonzero(problem.parts != PARTS.index("train"))
    training = Training(
        encoding.transform({name: values[rows] for name, values in needed.items()}),
        problem.y[rows],
        problem.groups_of(rows),
        fairness,
        sensitive_mode,
        n_jobs,
    )
    return Features(encoding, training, encoding.transform({name: values[others] for name, values in needed.items()}))


def take_steps(
    steps: Sequence[Step],
    problem: SearchProblem,
    features: Features,
    store: StepStore,
    stacking: dict[str, Any],
    *,
    budget: float | None,
    say: Callable[[str, float], None],
    may_stop: bool = True,
    times: int = 1,
) -> Trained:
    """Take the steps one after the other; those in the store are not taken again."""
    done: list[Step] = []
    checkpoints: list[Checkpoint] = []
    stopped, shape = "all steps done", features.training.matrix.shape
    stack: FairStacksClassifier | None = None
    needed = times * _LONGER * estimate(steps, *shape)
    allowed = np.inf if budget is None else times * budget / TRAINING_SHARE
    ends = f"; the time ends it after about {max(allowed, 0.0):.0f}" if allowed < needed else ""
    say(f"up to {len(steps)} steps, about {needed:.0f} seconds{ends}", 0.0)
    try:
        for step in steps:
            spent = sum(store.seconds(one) for one in done)
            pace = max(1.0, spent / estimate(done, *shape)) if done else 1.0
            late = budget is not None and spent + pace * step.seconds(*shape) > budget
            if late and len(done) >= LEAST_STEPS:
                stopped = "the time is over"
                break
            say(f"training {step.name}", len(done) / (len(steps) + 2))
            if store.get(step) is None:
                _take(step, features, store)
            done.append(step)
            if may_stop and _is_checkpoint(len(done)):
                stack, looked = _look(done, problem, store, stacking)
                checkpoints.append(looked)
                found = sufficiency(checkpoints)
                if found is not None and found.enough:
                    stopped = "more search gains too little"
                    break
    except KeyboardInterrupt:
        if len(done) < LEAST_STEPS:
            raise
        stopped = "interrupted"
    say("stacking", len(steps) / (len(steps) + 2))
    if stack is None or checkpoints[-1].steps != len(done):
        stack, looked = _look(done, problem, store, stacking)
        checkpoints.append(looked)
    names, scores = _gathered(done, store)
    parts = {part: _part(problem, scores, part) for part in PARTS[1:]}
    return Trained(tuple(done), names, parts, stack, tuple(checkpoints), stopped)


def _is_checkpoint(n_done: int) -> bool:
    last = _CHECKPOINTS[-1]
    return n_done in _CHECKPOINTS or (n_done > last and (n_done - last) % _CHECK_EVERY == 0)


def _take(step: Step, features: Features, store: StepStore) -> None:
    begun = clock.monotonic()
    family = train(step, features.training)
    scores = np.asarray(family.predict_matrix(features.others), dtype=np.float32)
    store.put(step, family, StepResult(column_names(step, family), scores, clock.monotonic() - begun))


def _look(
    done: Sequence[Step], problem: SearchProblem, store: StepStore, stacking: dict[str, Any]
) -> tuple[FairStacksClassifier, Checkpoint]:
    """Stack the models of the finished steps."""
    names, scores = _gathered(done, store)
    stack = fit_stack(_part(problem, scores, "stack"), names, stacking)
    return stack, Checkpoint(len(done), len(names), float(fauc(stack.points_.frontier(), _WEIGHT)))


def _part(problem: SearchProblem, scores: FloatArray, part: str) -> EvaluationRows:
    others = np.flatnonzero(problem.parts != PARTS.index("train"))
    inside = problem.parts[others] == PARTS.index(part)
    rows = others[inside]
    return EvaluationRows(scores[inside], problem.y[rows], problem.groups_of(rows))


def _gathered(done: Sequence[Step], store: StepStore) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names and the scores of all models of finished steps."""
    results = [result for step in done if (result := store.get(step)) is not None]
    names = tuple(name for result in results for name in result.names)
    return names, np.column_stack([result.scores for result in results]).astype(np.float64)


@dataclass(frozen=True)
class Sufficiency:
    """What more search could gain."""

    last_gain: float  # what the last checkpoint gained: mean accuracy over the levels of fairness
    expected: float  # what all further search would gain if gains kept shrinking as they did
    bound: float  # the same if they shrank as slowly as seems possible, from the larger of the last two gains
    enough: bool  # whether the rule to stop holds: two checkpoints in a row gained less than `ENOUGH`


def sufficiency(checkpoints: Sequence[Checkpoint]) -> Sufficiency | None:
    """Return what more search could gain; None: there are fewer than three checkpoints.

    Examples
    --------
    >>> found = sufficiency([Checkpoint(2, 3, 0.80), Checkpoint(5, 110, 0.84), Checkpoint(9, 220, 0.85)])
    >>> round(found.last_gain, 3), round(found.expected, 4), round(found.bound, 3), found.enough
    (0.01, 0.0033, 0.36, False)
    """
    if len(checkpoints) < 3:
        return None
    # What was reached at any time is not lost: the search keeps all of its models.
    best = np.maximum.accumulate([one.fauc for one in checkpoints])
    gains = np.diff(best)
    ratios = gains[1:][gains[:-1] > 0] / gains[:-1][gains[:-1] > 0]
    factor = float(np.clip(np.median(ratios) if len(ratios) else 0.0, 0.0, _SLOWEST))
    last = float(gains[-1])
    slow = float(max(gains[-2:]))
    return Sufficiency(
        last, last * factor / (1.0 - factor), slow * _SLOWEST / (1.0 - _SLOWEST), bool((gains[-2:] < ENOUGH).all())
    )


@dataclass(frozen=True, eq=False)
class Run:
    """The training of one model: its rows, features, steps, and where they are kept."""

    problem: SearchProblem
    features: Features
    trained: Trained
    store: StepStore


def train_runs(
    problem: SearchProblem,
    used: dict[str, NDArray[Any]],
    stacking: dict[str, Any],
    *,
    n_steps: int,
    seconds: float | None,
    n_jobs: int | None,
    folder: Path | None,
    say: Progress,
) -> list[Run]:
    """Train the models of a search: one, or two that learn from different halves of the rows."""
    views, begun = problem.views(), clock.monotonic()
    steps: Sequence[Any] = schedule(n_steps, int(stacking["random_state"]))
    runs: list[Run] = []
    for i, view in enumerate(views):
        features = encode(
            view, used, fairness=stacking["fairness"], sensitive_mode=stacking["sensitive_mode"], n_jobs=n_jobs
        )
        kept = None if folder is None else folder / "steps" / ("" if i == 0 else "second")
        store = StepStore(kept, problem.plan.hash)
        # The second takes the steps of the first, whatever its own frontier says: candidates must have counterparts.
        budget = None
        if seconds is not None and i == 0:
            budget = (TRAINING_SHARE * seconds - (clock.monotonic() - begun)) / len(views)
        trained = take_steps(
            steps,
            view,
            features,
            store,
            stacking,
            budget=budget,
            may_stop=i == 0,
            say=_naming(say, i, len(views)),
            times=len(views) - i,
        )
        steps = trained.done
        runs.append(Run(view, features, trained, store))
    return runs


def _naming(say: Progress, number: int, of: int) -> Progress:
    """Return a progress display that says which of the models is meant."""

    def named(what: str, share: float) -> None:
        about_all = what.startswith("up to ")
        if about_all and number > 0:
            return
        say(what if of == 1 or about_all else f"{what} (model {number + 1} of {of})", (number + share) / of)

    return named
