"""Run the cells of a benchmark: each becomes a record, one after the other or in worker processes."""

import ctypes
import importlib.metadata
import multiprocessing
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairfrontier._processes import prepare, wanted
from fairfrontier._version import __version__
from fairfrontier.benchmark._delivered import LEVELS, Delivery, choose_mixtures, deliver
from fairfrontier.benchmark._families import SETTINGS, SplitData
from fairfrontier.benchmark._methods import METHODS, own_methods
from fairfrontier.benchmark._records import BLIND, DONE, FAILED, IN_X, NOT_APPLICABLE, Cell, Record, RecordStore
from fairfrontier.benchmark._task_data import FAUC_WEIGHT, Evaluated, Method, TaskData
from fairfrontier.benchmark._tasks import DATASETS, TASKS, Task, UserTable, task_of
from fairfrontier.exceptions import ClusterError
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.learners._family import silence
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._honest import honest_curve_of_bias

_PACKAGES = ("numpy", "scipy", "scikit-learn", "xgboost-cpu", "torch", "fairlearn", "oxonfair")
_MOST_WARNINGS = 3


@cache
def versions() -> dict[str, str]:
    """Return the versions of what the figures depend on, and the kind of machine."""
    found = {"fairfrontier": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found


def run_cell(cell: Cell, split: SplitData, own: Mapping[str, Method] | None = None) -> Record:
    """Return the record of a cell; a method that fails gives a record with its reason.

    Parameters
    ----------
    cell : Cell
        What to run.
    split : SplitData
        The cell's data set and split.
    own : dict of str to Method, optional
        Methods beside those of the tables, by key (`own_methods`).
    """
    task, method = task_of(cell.task), (METHODS[cell.table] | dict(own or {}))[cell.method]
    common: dict[str, Any] = {
        "table": cell.table,
        "task": cell.task,
        "method": cell.method,
        "split": cell.split,
        "settings": split.settings.name,
        "versions": versions(),
        "track": cell.track,
    }
    data = TaskData(task, cell.table, split, cell.track)
    reason = method.unfit(task, data.n_groups)
    if reason:
        return Record(**common, status=NOT_APPLICABLE, reason=reason)
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1):
        warnings.simplefilter("always")
        try:
            return _run(method, data, common, caught)
        except Exception as error:
            # Whatever the code of a method raises is a result of the benchmark: it is written down, shown, and tried
            # again in the next run; the other cells go on.
            return Record(**common, status=FAILED, reason=f"{type(error).__name__}: {error}"[:500])


def _run(method: Method, data: TaskData, common: dict[str, Any], caught: list[warnings.WarningMessage]) -> Record:
    training = data.training(method.needs(data.task))
    start = time.process_time()
    evaluated = method.run(method, data)
    seconds = time.process_time() - start
    return Record(
        **common,
        status=DONE,
        seconds=round(seconds, 2),
        training=training,
        details=evaluated.details | _noted(caught),
        **figures(evaluated),
    )


def _noted(caught: list[warnings.WarningMessage]) -> dict[str, Any]:
    """Return the first different warnings of a fit."""
    texts = dict.fromkeys(f"{one.category.__name__}: {one.message}"[:200] for one in caught)
    return {"warnings": list(texts)[:_MOST_WARNINGS]} if texts else {}


def figures(evaluated: Evaluated) -> dict[str, Any]:
    """Return the figures of a method on one split, as fields of a record."""
    points, chosen, single = evaluated.points, evaluated.chosen, evaluated.without_randomising
    kept, kept_chosen = _columns(points), {} if chosen is None else _columns(chosen)
    curve = points.frontier()
    return {
        "fauc": fauc(curve, FAUC_WEIGHT),
        "fauci": fauc(points.frontier(True), FAUC_WEIGHT),
        "fauc_signed": fauc(points.frontier("signed"), FAUC_WEIGHT),
        "fauc_honest": honest_fauc(kept_chosen, kept) if kept_chosen else None,
        "fauc_single": None if single is None else fauc(single.frontier(), FAUC_WEIGHT),
        "fauc_exp_mse": None if evaluated.exp_mse is None else fauc(evaluated.exp_mse.frontier(), FAUC_WEIGHT),
        "max_accuracy": float(points.accuracy.max()),
        "accuracy_95": curve(0.95),
        "accuracy_99": curve(0.99),
        "constant_accuracy": float(points.accuracy[-1]),
        "points": kept,
        "chosen": kept_chosen,
        "delivered": _delivered(evaluated),
    }


def _delivered(evaluated: Evaluated) -> dict[str, list[float]]:
    """Return what the method delivers at each asked level, as a record keeps it."""
    if evaluated.asked is not None:
        found: Delivery = deliver(np.eye(len(LEVELS)), evaluated.asked)
    elif evaluated.chosen is not None:
        found = deliver(choose_mixtures(evaluated.chosen), evaluated.points)
    else:
        return {}
    return {"bias": found.bias.tolist(), "accuracy": found.accuracy.tolist()}


def honest_fauc(chosen: Mapping[str, Sequence[float]], points: Mapping[str, Sequence[float]]) -> float:
    """Return the honest FAUC of candidates as a record keeps them: whoever has the record can compute it again.

    Parameters
    ----------
    chosen, points : dict of str to sequence
        The candidates' accuracy and signed bias on the ensemble rows, which choose the frontier, and on the test rows,
        on which it is evaluated.

    Examples
    --------
    >>> seen = {"accuracy": [0.9, 0.7], "bias": [0.1, 0.0]}
    >>> round(honest_fauc(seen, {"accuracy": [0.8, 0.7], "bias": [0.1, 0.0]}), 3)
    0.75
    """
    both = [np.asarray(kept[name], dtype=np.float64) for kept in (chosen, points) for name in ("accuracy", "bias")]
    return fauc(honest_curve_of_bias(*both), FAUC_WEIGHT)


def _columns(points: TradeoffPoints) -> dict[str, list[float]]:
    """Return the points as a record keeps them, to the last digit; the bias is signed where there is one contrast."""
    bias = points.bias[:, 0] if points.bias.shape[1] == 1 else 1.0 - points.fairness
    columns = {"fairness": points.fairness, "accuracy": points.accuracy, "bias": bias}
    return {name: values.tolist() for name, values in columns.items()}


MULTI_TASKS = ("adult-gender", "adult-race", "compas-gender", "compas-race")
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Listener:
    """Functions that are called while a run goes on, in the process that started it.

    Attributes
    ----------
    on_record : callable
        Called with each new Record.
    on_step : callable
        Called with a text that says what is done now.
    """

    on_record: Callable[[Record], None] = lambda record: None
    on_step: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class RunFolders:
    """The files of a run, as plain paths that can be sent to worker processes."""

    # cells, predictions: folders of the records and of the base learners' predictions
    cells: Path
    predictions: Path
    collection: Path  # the compressed records
    settings: str  # name of the settings
    table: UserTable | None = None  # the user's table that the cells are about; None: the package's data sets
    own: tuple[str, ...] = ()  # learners beside the methods of the tables, ``module:Class``

    def store(self) -> RecordStore:
        """Return the records."""
        return RecordStore(self.cells, self.collection, self.settings)


def tasks_of_table(table: str) -> tuple[str, ...]:
    """Return the paper's tasks of a table: equal opportunity needs classes, two constraints need two attributes.

    Examples
    --------
    >>> len(tasks_of_table("dp")), len(tasks_of_table("eo")), len(tasks_of_table("multi"))
    (7, 6, 4)
    """
    if table == "multi":
        return MULTI_TASKS
    return tuple(name for name, task in TASKS.items() if table == "dp" or not task.regression)


def plan_cells(
    tables: Sequence[str],
    splits: Sequence[int],
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    *,
    tracks: Sequence[str] = (IN_X,),
    own: Sequence[str] = (),
) -> list[Cell]:
    """Return the cells of a run in the order of work: split by split, the quickest data sets first."""
    named = [task_of(task) for task in (TASKS if tasks is None else tasks)]
    datasets = [*DATASETS, *dict.fromkeys(task.dataset for task in named if task.dataset not in DATASETS)]
    cells = []
    for split in splits:
        for dataset in datasets:
            for table, track in product(tables, tracks):
                if table == "multi" and track == BLIND:
                    continue
                keys = [*(key for key in METHODS[table] if methods is None or key in methods), *own]
                for task in named:
                    if task.dataset == dataset and (task.name in tasks_of_table(table) or _is_users(task, table)):
                        cells += [Cell(table, task.name, key, split, track) for key in keys]
    return cells


def _is_users(task: Task, table: str) -> bool:
    return task.name not in TASKS and table != "multi"


def run(
    cells: Sequence[Cell], folders: RunFolders, *, jobs: int = 1, listener: Listener | None = None, redo: bool = False
) -> None:
    """Run the cells without a record; those that failed are tried again.

    Raises
    ------
    ClusterError
        If one of several processes was killed.
    """
    listener = listener or Listener()
    todo = list(cells) if redo else unfinished(cells, folders)
    units = [list(unit) for _, unit in groupby(todo, key=lambda cell: (cell.split, task_of(cell.task).dataset))]
    if jobs == 1:
        for unit in units:
            for record in _work(unit, folders, listener.on_step):
                listener.on_record(record)
        return
    _run_in_processes(units, folders, jobs, listener)


def unfinished(cells: Sequence[Cell], folders: RunFolders) -> list[Cell]:
    """Return the cells without a record and those that failed."""
    known = folders.store().load()
    return [cell for cell in cells if cell not in known or known[cell].status == FAILED]


def _work(unit: Sequence[Cell], folders: RunFolders, on_step: Callable[[str], None]) -> Iterator[Record]:
    """Run cells of one data set and split, and yield each record after it is on disk."""
    store = folders.store()
    first = unit[0]
    settings = SETTINGS[folders.settings]
    own = own_methods(folders.own)
    data = SplitData(task_of(first.task).dataset, first.split, settings, folders.predictions, on_step, folders.table)
    for cell in unit:
        on_step(f"{cell.task} split {cell.split} {cell.table} {cell.track}: {cell.method}")
        with silence():
            record = run_cell(cell, data, own)
        store.add(record)
        yield record


def _work_alone(unit: Sequence[Cell], folders: RunFolders) -> None:
    """Run a unit in a worker process, and stop after the current cell if the main process wants no more."""
    cells = _work(unit, folders, lambda text: None)
    while wanted() and next(cells, None) is not None:
        pass


def _run_in_processes(units: Sequence[Sequence[Cell]], folders: RunFolders, jobs: int, listener: Listener) -> None:
    store = folders.store()
    waiting = {cell: store.stamp(cell) for unit in units for cell in unit}
    # A fresh interpreter: threads of numerical libraries do not survive a fork.
    context = multiprocessing.get_context("spawn")
    # Without a lock: a worker that is killed could hold it for ever.
    stop = context.RawValue(ctypes.c_bool, False)
    executor = ProcessPoolExecutor(jobs, context, initializer=prepare, initargs=(stop,))
    try:
        futures: set[Future[None]] = {executor.submit(_work_alone, unit, folders) for unit in units}
        started = time.monotonic()
        while futures:
            done, futures = wait(futures, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            _announce_new(waiting, store, listener)
            listener.on_step(f"{jobs} processes, {time.monotonic() - started:.0f} s")
            for future in done:
                future.result()
    except BrokenProcessPool as error:
        raise ClusterError(
            "a worker process was ended, probably for lack of memory: use fewer jobs and start again; finished cells "
            "are kept"
        ) from error
    finally:
        # Units that have started cannot be cancelled.
        stop.value = True
        executor.shutdown(wait=True, cancel_futures=True)


def _announce_new(waiting: dict[Cell, int], store: RecordStore, listener: Listener) -> None:
    """Call the listener with the records that are new on disk."""
    for cell, before in list(waiting.items()):
        if store.stamp(cell) != before:
            del waiting[cell]
            listener.on_record(store.get(cell))
