"""Where chunks come from, and the one thing that is done with them: adding up what a function makes of each."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import unique_names
from fairfrontier._rows import Rows
from fairfrontier.exceptions import InvalidInputError

# Scores in a chunk: large enough for fast matrix products, small enough for several copies in double precision.
_CHUNK = 2**22
Step = Callable[[Rows], Rows]


class Additive(Protocol):
    """What a function of a chunk returns: two of them can be added."""

    def __add__(self, other: Self, /) -> Self: ...


T = TypeVar("T", bound=Additive)


class Chunks(ABC):
    """A table in chunks.

    Parameters
    ----------
    names : tuple of str
        The models, the columns of every chunk's scores.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        unique_names(names, parameter="y_preds")
        self.names = names
        self.progress: Callable[[float], None] | None = None

    @abstractmethod
    def sum(self, function: Callable[[Rows], T]) -> T:
        """Return the sum of ``function(chunk)`` over all chunks that have rows.

        Raises
        ------
        InvalidInputError
            If no chunk has a row.
        """

    @abstractmethod
    def map(self, function: Step, names: tuple[str, ...] | None = None) -> "Chunks":
        """Return these chunks after `function`, which may drop rows or, with new `names`, replace the scores."""

    def kept(self) -> "Chunks":
        """Return these chunks after all functions, once and for all where the rows are one chunk in memory."""
        return self


def add(first: T | None, second: T | None) -> T | None:
    """Add two results, of which a chunk without rows has none."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


def total(result: T | None) -> T:
    """Return a result, or say that there was not one row."""
    if result is None:
        raise InvalidInputError("chunks must hold at least one row; got none")
    return result


class StreamedChunks(Chunks):
    """Chunks that are read one after the other in this process.

    Parameters
    ----------
    names : tuple of str
        The models.
    open_chunks : callable
        Returns a new iterator of (chunk, share of the table that is done after it).
    """

    def __init__(self, names: tuple[str, ...], open_chunks: Callable[[], Iterator[tuple[Rows, float]]]) -> None:
        super().__init__(names)
        self._open = open_chunks
        self._steps: tuple[Step, ...] = ()
        self.in_memory = False  # whether they are one chunk that is in memory

    def __iter__(self) -> Iterator[Rows]:
        for chunk, done in self._open():
            result = reduce(lambda value, step: step(value), self._steps, chunk)
            if len(result):
                yield result
            if self.progress is not None:
                self.progress(done)

    def sum(self, function: Callable[[Rows], T]) -> T:
        result: T | None = None
        for chunk in self:
            result = add(result, function(chunk))
        return total(result)

    def map(self, function: Step, names: tuple[str, ...] | None = None) -> "StreamedChunks":
        other = StreamedChunks(self.names if names is None else names, self._open)
        other._steps, other.progress, other.in_memory = (*self._steps, function), self.progress, self.in_memory
        return other

    def kept(self) -> "StreamedChunks":
        return whole(gathered(self)) if self.in_memory else self


def is_dask(*values: Any) -> bool:
    """Tell whether one of the values, or of the values of a dict, is a Dask collection."""
    flat = [v for value in values for v in (value.values() if isinstance(value, Mapping) else (value,))]
    return any(hasattr(type(value), "__dask_graph__") for value in flat)


def whole(rows: Rows) -> StreamedChunks:
    """Take rows that are all in memory as one chunk."""
    chunks = StreamedChunks(rows.names, lambda: iter([(rows, 1.0)]))
    chunks.in_memory = True
    return chunks


def rows_of_chunk(chunk_rows: int | None, n_models: int) -> int:
    """Return the number of rows of a chunk: what the caller asks for, or about 32 MB in double precision."""
    if chunk_rows is None:
        return max(1, _CHUNK // n_models)
    return validate.whole_number(chunk_rows, parameter="chunk_rows", low=1, advice="; give None for a default")


def array_chunks(
    y: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    fold: Any = None,
    names: tuple[str, ...] | None = None,
    chunk_rows: int | None = None,
) -> StreamedChunks:
    """Cut arrays into chunks; only `scores` may be larger than memory.

    Parameters
    ----------
    y : array-like of shape (n,)
        The target.
    scores : array of shape (n, k)
        Predictions: a `numpy.memmap`, or anything else with a shape that gives rows by slices.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
        The sensitive attributes.
    sample_weight, fold : array-like of shape (n,), optional
        Weights, and folds from 0 for tuning.
    names : tuple of str, optional
        The models; None: ``model_0``, …
    chunk_rows : int, optional
        Rows in a chunk; None: about 32 MB.

    Examples
    --------
    >>> chunks = array_chunks([0, 1, 1], np.eye(3), sensitive_features=["a", "b", "a"], chunk_rows=2)
    >>> [len(chunk) for chunk in chunks]
    [2, 1]
    """
    shape: tuple[int, ...] = tuple(getattr(scores, "shape", ()))
    if len(shape) != 2 or 0 in shape:
        raise InvalidInputError(f"scores must be an array of shape (rows, models); got shape {shape}")
    validate.same_order(y_true=y, sensitive_features=sensitive_features, sample_weight=sample_weight, fold=fold)
    validate.refuse_masked(scores, parameter="y_preds")
    target = validate.column(y, parameter="y_true")
    attributes = validate.attribute_columns(sensitive_features)
    of_rows = {"sample_weight": sample_weight, "fold": fold}
    optional: dict[str, Any] = {
        key: validate.column(value, parameter=key) for key, value in of_rows.items() if value is not None
    }
    validate.same_length(len(target), y_preds=shape[0], **{key: len(value) for key, value in optional.items()})
    for name, values in attributes.items():
        validate.same_length(len(target), **{f"sensitive_features[{name!r}]": len(values)})
    known = names or tuple(f"model_{j}" for j in range(shape[1]))
    step = rows_of_chunk(chunk_rows, shape[1])

    def open_chunks() -> Iterator[tuple[Rows, float]]:
        for start in range(0, shape[0], step):
            rows = slice(start, start + step)
            part = Rows.validated(
                target[rows],
                np.asarray(scores[rows]),
                validate.AttributeColumns({name: values[rows] for name, values in attributes.items()}),
                names=known,
                first_row=start,
                **{key: value[rows] for key, value in optional.items()},
            )
            yield part, min(start + step, shape[0]) / shape[0]

    return StreamedChunks(known, open_chunks)


def iterable_chunks(parts: Iterable[Any] | Callable[[], Iterable[Any]]) -> StreamedChunks:
    """Take chunks from an iterable of tuples (y, scores, sensitive_features) or (…, sample_weight).

    Parameters
    ----------
    parts : iterable, or callable that returns one
        Scores may be a 2-D array, a dict or a dataframe. An iterator can be read once, which is enough for points and
        for a stack with a given ridge; tuning reads the rows three times and needs a list or a callable.

    Examples
    --------
    >>> parts = [([0, 1], {"a": [0.1, 0.9]}, {"sex": ["f", "m"]}), ([1], {"a": [0.7]}, {"sex": ["f"]})]
    >>> chunks = iterable_chunks(parts)
    >>> chunks.names, [chunk.row.tolist() for chunk in chunks]
    (('a',), [[0, 1], [2]])
    """
    open_parts = _Reopened(parts)
    first = next(iter(open_parts()), None)
    if first is None:
        raise InvalidInputError("chunks must hold at least one part; got none")
    open_parts.put_back(first)
    names = validate.predictions(first[1]).names

    def open_chunks() -> Iterator[tuple[Rows, float]]:
        start = 0
        for y, scores, sensitive, *weight in open_parts():
            sample_weight = weight[0] if weight else None
            rows = Rows.validated(y, scores, sensitive, sample_weight=sample_weight, names=names, first_row=start)
            start += len(rows)
            yield rows, 0.0

    return StreamedChunks(names, open_chunks)


class _Reopened:
    """An iterable that is opened again for every pass; what has one pass only says so at the second.

    Parameters
    ----------
    parts : iterable, or callable that returns one
        A callable must return a new iterable at each call.
    """

    def __init__(self, parts: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._open = parts if callable(parts) else lambda: parts
        self._last: Iterable[Any] | None = None
        self._waiting: list[Any] = []

    def put_back(self, part: Any) -> None:
        """Undo the look at the first part: an iterator cannot be opened again."""
        if self._last is not None and iter(self._last) is self._last:
            self._waiting = [part]
        else:
            self._last = None

    def __call__(self) -> Iterator[Any]:
        if self._waiting:
            first, self._waiting = self._waiting, []
            return chain(first, self._last or ())
        opened = self._open()
        if opened is self._last and iter(opened) is opened:
            raise InvalidInputError(
                "chunks must be readable more than once to tune a stack; got an iterator, which is exhausted: pass a "
                "list, a function that opens the chunks anew at each call, or alpha as a number"
            )
        self._last = opened
        return iter(opened)


def gathered(
    chunks: Iterable[Rows], *, n_rows: int | None = None, threshold: float | None = None, most_double: int | None = None
) -> Rows:
    """Return all rows of chunks as one object in memory.

    Parameters
    ----------
    chunks : iterable of Rows
        The rows, at least one.
    n_rows : int, optional
        How many rows there are, if that is known: the scores are then written where they stay.
    threshold : float, optional
        What decisions compare scores with.
    most_double : int, optional
        With more scores than this they are kept in single precision, on their side of the threshold.
    """
    parts: list[Rows] = []
    scores: NDArray[Any] | None = None
    n_scores, filled, single = 0, 0, False
    for rows in chunks:
        n_scores += rows.scores.size
        expected = n_scores if n_rows is None else n_rows * rows.scores.shape[1]
        if not single and most_double is not None and expected > most_double:
            single = True
            parts = [_in_single(part, threshold) for part in parts]
        part = _in_single(rows, threshold) if single else rows
        if n_rows is not None and len(rows) < n_rows:
            if scores is None:
                # One model after the other in memory: what is summed over rows is then read in one go.
                scores = np.empty((part.scores.shape[1], n_rows), dtype=part.scores.dtype)
            scores[:, filled : filled + len(part)] = part.scores.T
            part = replace(part, scores=part.scores[:, :0])
        filled += len(part)
        parts.append(part)
    if not parts:
        raise InvalidInputError("chunks must hold at least one row; got none")
    return parts[0] if len(parts) == 1 else _joined(parts, scores)


def _joined(parts: Sequence[Rows], scores: NDArray[Any] | None) -> Rows:
    """Return parts as one, with their scores (k, n) if these are together already."""
    first = parts[0]
    if scores is None:
        dtype = np.result_type(*(part.scores.dtype for part in parts))
        scores = np.empty((len(first.names), sum(len(part) for part in parts)), dtype=dtype)
        start = 0
        for part in parts:
            scores[:, start : start + len(part)] = part.scores.T
            start += len(part)

    def joined(values: list[Any]) -> Any:
        return None if values[0] is None else np.concatenate(values)

    return Rows(
        y=joined([part.y for part in parts]),
        scores=scores.T,
        sensitive={name: joined([part.sensitive[name] for part in parts]) for name in first.sensitive},
        names=first.names,
        row=joined([part.row for part in parts]),
        weight=joined([part.weight for part in parts]),
        fold=joined([part.fold for part in parts]),
    )


def _in_single(rows: Rows, threshold: float | None) -> Rows:
    return rows if rows.scores.dtype == np.float32 else replace(rows, scores=single_precision(rows.scores, threshold))


def single_precision(numbers: NDArray[Any], threshold: float | None) -> NDArray[np.float32]:
    """Return scores in single precision that are above `threshold` exactly where they were in double precision.

    Examples
    --------
    >>> scores = np.array([0.5, 0.5 + 1e-12])
    >>> scores.astype(np.float32) > 0.5, single_precision(scores, 0.5) > 0.5
    (array([False, False]), array([False,  True]))
    """
    result = numbers.astype(np.float32, copy=False)
    if threshold is None or np.can_cast(numbers.dtype, np.float32):  # as precise as it was: on the same side
        return result
    # As a double: compared with a plain float, single precision would round the threshold.
    threshold = np.float64(threshold)
    # One column after the other, which stays in the processor's cache.
    for new, old in [(result, numbers)] if numbers.ndim == 1 else zip(result.T, numbers.T, strict=True):
        for row in np.flatnonzero((new > threshold) != (old > threshold)):
            toward = np.float32(np.inf if old[row] > threshold else -np.inf)
            while (new[row] > threshold) != (old[row] > threshold):
                new[row] = np.nextafter(new[row], toward)
    return result
