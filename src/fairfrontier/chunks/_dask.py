"""Dask collections as chunks: one a partition, computed where the data is, and added up in a tree."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from fairfrontier import _validation as validate
from fairfrontier._extras import require
from fairfrontier._rows import Rows
from fairfrontier.chunks._source import Chunks, Step, T, add, is_dask, total
from fairfrontier.exceptions import ClusterError, InvalidInputError

_PURPOSE = "Computing on Dask collections"
# Results that are added in one task: a tree of this width has few levels, and no worker holds many Gram matrices.
_WIDTH = 8
# Where partitions do not know their length, the rows of each are numbered from a multiple of this.
_STRIDE = 2**40
# Seconds without a worker or scheduler after which a cluster counts as gone, and between two looks at it.
_PATIENCE, _POLL = 60.0, 0.05


class DaskChunks(Chunks):
    """Chunks that live on the workers of a cluster, or of Dask's local scheduler.

    Each of the partitions is a tuple of what `_run` takes after the job, delayed.
    """

    def __init__(self, names: tuple[str, ...], partitions: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(names)
        self._given = names
        self._partitions = partitions
        self._steps: tuple[Step, ...] = ()

    def sum(self, function: Callable[[Rows], T]) -> T:
        dask = require("dask", extra="dask", purpose=_PURPOSE)
        # As a node of its own the function travels to each worker once, not once a partition.
        job = dask.delayed(_Job(function, self._steps, self._given), traverse=False)
        run, add_up = dask.delayed(_run, pure=False), dask.delayed(_add_up, pure=False)
        level = [run(job, *parts) for parts in self._partitions]
        while len(level) > 1:
            level = [add_up(level[i : i + _WIDTH]) for i in range(0, len(level), _WIDTH)]
        result: T | None = _compute(dask, level[0])
        return total(result)

    def map(self, function: Step, names: tuple[str, ...] | None = None) -> "DaskChunks":
        other = DaskChunks(self.names if names is None else names, self._partitions)
        other._given, other._steps, other.progress = self._given, (*self._steps, function), self.progress
        return other


@dataclass(frozen=True, eq=False)
class _Job:
    function: Callable[[Rows], Any]
    steps: tuple[Step, ...]
    names: tuple[str, ...]


def _run(job: _Job, y: Any, scores: Any, sensitive: Any, sample_weight: Any, fold: Any, first_row: int) -> Any:
    """Return the function of one partition, None if it has no rows; runs on a worker."""
    if len(scores if not isinstance(scores, Mapping) else y) == 0:
        return None
    chunk = Rows.validated(
        y, scores, sensitive, sample_weight=sample_weight, fold=fold, names=job.names, first_row=first_row
    )
    chunk = reduce(lambda value, step: step(value), job.steps, chunk)
    return job.function(chunk) if len(chunk) else None


def _add_up(results: Sequence[Any]) -> Any:
    return reduce(add, results)


def _compute(dask: Any, result: Any) -> Any:
    """Compute on the active client, and say in plain words when the workers cannot do it.

    A cluster whose scheduler is gone, or that has had no worker for `_PATIENCE` seconds (Dask's configuration
    ``fairfrontier.workers-timeout``), is not waited for any longer.
    """
    lost: tuple[type[Exception], ...] = (MemoryError,)
    if "distributed" in sys.modules:
        lost = (*lost, sys.modules["distributed"].KilledWorker)
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    try:
        if client is None or not hasattr(client, "scheduler_info"):
            (value,) = dask.compute(result)
        else:
            value = _on_cluster(client, result, float(dask.config.get("fairfrontier.workers-timeout", _PATIENCE)))
    except lost as error:
        raise ClusterError(
            "a Dask worker died on the same partition again and again, most likely because it ran out of memory: make "
            "the partitions smaller (array.rechunk((rows, -1)) or dataframe.repartition(partition_size='64MB')) or "
            f"give each worker more memory. Dask says: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        ) from error
    return value


def _on_cluster(client: Any, result: Any, patience: float) -> Any:
    """Compute on a cluster, as long as it has a scheduler and workers."""
    if client.status != "running":
        raise _gone("the Dask client is closed")
    try:
        future = client.compute(result)
    except Exception as error:
        if client.status == "running":
            raise
        raise _gone(f"the Dask client is closed ({type(error).__name__})") from error
    seen = time.monotonic()
    while not future.done():
        time.sleep(_POLL)
        if client.status == "running" and client.scheduler_info()["workers"]:
            seen = time.monotonic()
        elif client.status == "closed":
            raise _gone("the Dask client was closed")
        elif time.monotonic() - seen > patience:
            what = "no worker" if client.status == "running" else "no scheduler"
            future.cancel()
            raise _gone(f"there has been {what} for {patience:g} seconds")
    if future.status in ("cancelled", "lost"):
        raise _gone("Dask gave up the work, most likely because its scheduler is gone")
    return future.result()


def _gone(what: str) -> ClusterError:
    return ClusterError(
        f"the Dask cluster cannot finish the work: {what}. Start a cluster with workers, connect a Client to it, make "
        "the collections anew if they were persisted, and call again; or compute without a cluster under "
        "dask.config.set(scheduler='threads')"
    )


def dask_chunks(
    y: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    fold: Any = None,
    names: Sequence[str] | None = None,
) -> DaskChunks:
    """Take the partitions of Dask arrays, series and dataframes as chunks.

    Parameters
    ----------
    y : Dask array or series
        The target. Arrays in memory are taken too, here and below, where the lengths of the partitions are known.
    scores : Dask array of shape (n, k), Dask dataframe, or dict of name to 1-D collection
        Predictions.
    sensitive_features : Dask array, series or dataframe, or dict of name to 1-D collection
        The sensitive attributes.
    sample_weight, fold : Dask array or series, optional
        Weights, and folds from 0 for tuning.
    names : sequence of str, optional
        The models, for an array.

    Notes
    -----
    Every pass computes the collections again: ``persist()`` them if they fit into the memory of the cluster. Rows are
    numbered in their order; where a collection does not know its partitions' lengths, partition after partition.

    Examples
    --------
    >>> import dask.array as da
    >>> H = da.from_array(np.eye(4), chunks=(2, 4))
    >>> chunks = dask_chunks([0, 1, 1, 0], H, sensitive_features=["a", "b", "a", "b"])
    >>> chunks.names
    ('model_0', 'model_1', 'model_2', 'model_3')
    """
    require("dask", extra="dask", purpose=_PURPOSE)
    sizes, found = _layout(scores, y)
    columns = zip(
        _parts(y, sizes, parameter="y_true"),
        _parts(scores, sizes, parameter="y_preds"),
        _parts(_named(sensitive_features), sizes, parameter="sensitive_features"),
        _parts(sample_weight, sizes, parameter="sample_weight"),
        _parts(fold, sizes, parameter="fold"),
        _first_rows(sizes),
        strict=True,
    )
    return DaskChunks(tuple(names) if names is not None else found, list(columns))


def _layout(scores: Any, y: Any) -> tuple[list[float], tuple[str, ...]]:
    """Return the rows of each partition (NaN where they are unknown) and the models' names."""
    if isinstance(scores, Mapping):
        if not scores:
            raise InvalidInputError(
                "y_preds must hold at least one model; got none: give one column of scores per model"
            )
        first = next((v for v in scores.values() if is_dask(v)), None)
        sizes, _ = _layout(y if first is None else first, y)
        return sizes, tuple(str(name) for name in scores)
    if hasattr(scores, "chunks"):
        n_models = 1 if scores.ndim == 1 else scores.shape[1]
        return list(scores.chunks[0]), tuple(f"model_{j}" for j in range(int(n_models)))
    if hasattr(scores, "npartitions"):
        columns = getattr(scores, "columns", [getattr(scores, "name", "model_0")])
        return [np.nan] * scores.npartitions, tuple(str(name) for name in columns)
    sizes, _ = _layout(y, y) if is_dask(y) else ([float(len(scores))], ())
    return sizes, validate.predictions(scores).names


def _named(sensitive_features: Any) -> Any:
    """Return a Dask series as a dict, so that it keeps its name."""
    name = getattr(sensitive_features, "name", None)
    is_series = hasattr(sensitive_features, "npartitions") and not hasattr(sensitive_features, "chunks")
    if is_series and sensitive_features.ndim == 1:
        return {str(name or "sensitive_feature"): sensitive_features}
    return sensitive_features


def _first_rows(sizes: Sequence[float]) -> list[int]:
    if np.isnan(sizes).any():
        return [index * _STRIDE for index in range(len(sizes))]
    return [0, *np.cumsum(sizes[:-1]).astype(int).tolist()]


def _parts(value: Any, sizes: Sequence[float], *, parameter: str) -> list[Any]:
    """Return the part of `value` that belongs to each partition."""
    if value is None:
        return [None] * len(sizes)
    if isinstance(value, Mapping):
        named = {str(key): _parts(v, sizes, parameter=f"{parameter}[{key!r}]") for key, v in value.items()}
        return [{key: parts[i] for key, parts in named.items()} for i in range(len(sizes))]
    known = not np.isnan(sizes).any()
    if hasattr(value, "chunks"):  # a Dask array
        if known and not np.isnan(value.chunks[0]).any():
            validate.same_length(int(sum(sizes)), **{parameter: int(value.shape[0])})
            value = value.rechunk({0: tuple(int(size) for size in sizes)})
        value = value.rechunk({1: -1}) if value.ndim == 2 else value
        return _same_number(list(value.to_delayed().ravel()), sizes, parameter)
    if hasattr(value, "to_delayed"):  # a Dask series or dataframe
        # Optimised one by one, collections of one file may come out with different partitions: Dask joins those in
        # which few columns are left. As they are, they share the tasks that read the file.
        return _same_number(list(value.to_delayed(optimize_graph=False)), sizes, parameter)
    if not known:
        raise InvalidInputError(
            f"{parameter} must be a Dask collection with the same partitions as the others, whose lengths are unknown; "
            f"got {type(value).__name__}: take it from the same dataframe, or call compute_chunk_sizes() on the arrays"
        )
    return _slices(value, [int(size) for size in sizes], parameter)


def _same_number(parts: list[Any], sizes: Sequence[float], parameter: str) -> list[Any]:
    if len(parts) != len(sizes):
        raise InvalidInputError(
            f"{parameter} must have the partitions of the scores, {len(sizes)}; got {len(parts)}: take both from one "
            "dataframe, or repartition them alike"
        )
    return parts


def _slices(value: Any, sizes: list[int], parameter: str) -> list[Any]:
    if isinstance(value, (list, tuple)):
        value = validate.column(value, parameter=parameter)
    validate.same_length(sum(sizes), **{parameter: len(value)})
    ends = np.cumsum(sizes)
    return [value[end - size : end] for end, size in zip(ends, sizes, strict=True)]
