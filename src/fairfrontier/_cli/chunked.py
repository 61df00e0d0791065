"""Files larger than memory: the same commands, in passes over chunks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fairfrontier._cli.read import AuditData, check_groups, positive_label, score_columns
from fairfrontier._cli.request import Request, settings_of
from fairfrontier._cli.stack import check_stack, stack_summary
from fairfrontier._cli.stacking import (
    MIN_ROWS,
    PARTS,
    POINTS,
    FittedStack,
    Operating,
    family_name,
    held_out_parts,
    new_stack,
    operate,
    path_names,
)
from fairfrontier._cli.survey import Survey, Surveyor
from fairfrontier._cli.tables import open_streamed
from fairfrontier._columns import factorize_objects
from fairfrontier._validation import FloatArray, number
from fairfrontier.chunks import Chunk, Chunks, file_chunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._chunked import keyed_sums
from fairfrontier.metrics import ACCURACY_MEASURES
from fairfrontier.metrics._keyed import KeyedSums
from fairfrontier.optimize._moments import hashed_folds
from fairfrontier.quantify._weights import Weight
from fairfrontier.report import Evaluation, evaluate_sums, summarise

_NO_INTERVAL = "There is no confidence interval: resampling needs all rows in memory, and the file was read in chunks."
# Splits are drawn from another stream of hashes than the folds inside them.
_SPLIT = 2**31


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The step from a chunk as it stands in the file to labels, groups as text and checked scores."""

    positive: Any
    regression: bool
    keep: NDArray[np.intp]
    names: tuple[str, ...]

    def __call__(self, chunk: Chunk) -> Chunk:
        y = chunk.numbers() if self.regression else np.asarray(chunk.y == self.positive)
        scores = chunk.scores[:, self.keep]
        # Rounding may have put a score a hair outside; the survey has refused all others.
        scores = scores if self.regression else np.clip(scores, 0.0, 1.0)
        sensitive = {name: _as_text(values) for name, values in chunk.sensitive.items()}
        return replace(chunk, y=y, scores=scores, sensitive=sensitive, names=self.names)


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    distinct, codes = factorize_objects(values, parameter="--sensitive")
    texts: NDArray[Any] = np.empty(len(distinct), dtype=object)
    texts[:] = [str(value) for value in distinct]
    return np.asarray(texts[codes])


@dataclass(frozen=True)
class _Part:
    """The step that keeps the rows of the parts from `first` up to `stop`."""

    n_parts: int
    first: int
    stop: int
    seed: int = 0

    def __call__(self, chunk: Chunk) -> Chunk:
        part = hashed_folds(chunk.row, self.n_parts, _SPLIT + self.seed)
        return chunk.take((part >= self.first) & (part < self.stop))


@dataclass(frozen=True, eq=False)
class _Scored:
    """The step that replaces the scores of the models by those of stacks."""

    weights: FloatArray
    intercept: FloatArray
    names: tuple[str, ...]
    regression: bool

    def __call__(self, chunk: Chunk) -> Chunk:
        scores = chunk.scores @ self.weights.T + self.intercept
        scores = scores if self.regression else np.clip(scores, 0.0, 1.0)
        return replace(chunk, scores=scores, names=self.names)


@dataclass(frozen=True, eq=False)
class ChunkedFile:
    """A file in chunks: `chunks` with all that an audit needs, and `about`, which is like `AuditData` without rows."""

    chunks: Chunks
    about: AuditData
    n_rows: int


def open_chunks(request: Request, chunk_rows: int, progress: Any = None) -> ChunkedFile:
    """Open the request's file and look at it once: labels, groups and the range of every column."""
    regression = ACCURACY_MEASURES[request.accuracy].regression
    number(chunk_rows, parameter="--chunk-rows", low=1)
    file = open_streamed(request.file, delimiter=request.delimiter)
    file.check(request.label, option="--label")
    sensitive = tuple(dict.fromkeys(request.sensitive))
    for name in sensitive:
        file.check(name, option="--sensitive")
        if name == request.label:
            raise InvalidInputError(f"--sensitive must name other columns than --label; got {name!r} for both")
    scores = score_columns(file, request.scores, {request.label, *sensitive})
    raw = file_chunks(
        request.file,
        label=request.label,
        sensitive=sensitive,
        scores=scores,
        chunk_rows=chunk_rows,
        delimiter=request.delimiter,
    )
    raw.progress = progress
    survey: Survey = raw.sum(Surveyor(regression))
    for name, groups in survey.groups().items():
        check_groups(groups, name)
    keep = survey.scores(raw.names, unit=not regression, named=bool(request.scores), source=request.file.name)
    positive, text = None, ""
    if not regression:
        labels = survey.labels()
        index, text = positive_label(labels, request.label, request.positive)
        positive = labels[index]
    names = tuple(raw.names[i] for i in keep)
    left_out = tuple(name for name in raw.names if name not in set(names))
    about = AuditData(np.zeros(0), text, {}, np.zeros((0, len(names))), names, left_out)
    return ChunkedFile(raw.map(_Prepared(positive, regression, keep, names), names), about, survey.n_rows)


def run_audit(request: Request, chunk_rows: int, *, stack: bool = True, progress: Any = None) -> dict[str, Any]:
    """Return the summary of a file of predictions that is read in chunks."""
    weight = request.checked()
    file = open_chunks(request, chunk_rows, progress)
    base = _evaluation(request, _sums(request, file.chunks), file.about.names)
    tried, note = _trial(request, file, weight) if stack else (None, "")
    return summarise(
        base,
        settings_of(request, file.about, weight, tuple(text for text in (note, _NO_INTERVAL) if text)),
        stack=tried,
        stack_family=family_name(file.about.names),
    )


def run_stack(
    request: Request,
    operating: Operating,
    chunk_rows: int,
    *,
    test_size: float = 0.5,
    seed: int = 0,
    progress: Any = None,
) -> tuple[dict[str, Any], FittedStack]:
    """Return the summary of a stack on rows that it has not seen, and the stack, from chunks of a file."""
    weight = check_stack(request, operating, test_size)
    file = open_chunks(request, chunk_rows, progress)
    names, parts = file.about.names, held_out_parts(test_size)
    train, test = (file.chunks.map(_Part(PARTS, *ends, seed)) for ends in ((parts, PARTS), (0, parts)))
    model = operate(new_stack(request, weight, names).fit_chunks(train), operating)
    base = _evaluation(request, _sums(request, test), names)
    path_of = [f"{family_name(names)}/chosen", *path_names(names, model.path_)]
    scored = _score(
        test,
        np.vstack([model.weights_, model.path_.weights]),
        np.append(model.intercept_, model.path_.intercept),
        tuple(path_of),
        ACCURACY_MEASURES[request.accuracy].regression,
    )
    stack = _evaluation(request, _sums(request, scored), path_of, include_constant=False)
    fitted = FittedStack(model, file.about, base, stack, file.n_rows - base.n_rows)
    return stack_summary(request, operating, fitted, weight, None, (_NO_INTERVAL,)), fitted


def _trial(request: Request, file: ChunkedFile, weight: Weight) -> tuple[Evaluation | None, str]:
    """Say what a fair stack of the models would reach, by cross-fitting in two halves."""
    if file.n_rows < MIN_ROWS:
        return None, f"No fair stack was tried: it takes {MIN_ROWS} rows to fit and value one; here are {file.n_rows}."
    names = [f"{family_name(file.about.names)}/{i + 1:02d}" for i in range(POINTS)]
    regression = ACCURACY_MEASURES[request.accuracy].regression
    try:
        sums: KeyedSums | None = None
        for half in (0, 1):
            fit, other = (file.chunks.map(_Part(2, h, h + 1)) for h in (half, 1 - half))
            path = new_stack(request, weight, file.about.names, n_points=POINTS).fit_chunks(fit).path_
            of_half = _sums(request, _score(other, path.weights, path.intercept, tuple(names), regression))
            sums = of_half if sums is None else sums + of_half
    except InvalidInputError as error:
        return None, f"A fair stack could not be fitted: {error}."
    if sums is None:
        return None, ""
    note = "The fair stack is cross-fitted: each half of the rows is scored by a stack fitted on the other half."
    return _evaluation(request, sums, names, include_constant=False), note


def _score(
    chunks: Chunks, weights: FloatArray, intercept: FloatArray, names: tuple[str, ...], regression: bool
) -> Chunks:
    return chunks.map(_Scored(weights, intercept, names, regression), names)


def _sums(request: Request, chunks: Chunks) -> KeyedSums:
    return keyed_sums(chunks, accuracy=request.accuracy, threshold=request.threshold)


def _evaluation(request: Request, sums: KeyedSums, names: Any, *, include_constant: bool = True) -> Evaluation:
    measures = {key: value for key, value in request.measures().items() if key != "threshold"}
    return evaluate_sums(sums, names, include_constant=include_constant, **measures)


@contextmanager
def progress_bar() -> Iterator[Any]:
    """Show on the terminal how far each pass over the file has come; give the function to report it to."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=hidden) as bar:
        task, state = bar.add_task("pass 1", total=1.0), {"pass": 1, "done": 0.0}

        def report(done: float) -> None:
            if done < state["done"]:
                state["pass"] += 1
            state["done"] = done
            bar.update(task, completed=done, description=f"pass {state['pass']:.0f}")

        yield report
