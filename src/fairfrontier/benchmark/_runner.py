"""Run the cells of the tables that have no record yet, split by split, so that the tables fill evenly."""

import ctypes
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path

from fairfrontier._processes import prepare, wanted
from fairfrontier.benchmark._families import SplitData
from fairfrontier.benchmark._methods import METHODS
from fairfrontier.benchmark._own_learner import own_methods
from fairfrontier.benchmark._records import BLIND, FAILED, IN_X, Cell, Record, RecordStore
from fairfrontier.benchmark._run_cell import run_cell
from fairfrontier.benchmark._run_settings import SETTINGS
from fairfrontier.benchmark._tasks import DATASETS, TASKS, Task, task_of
from fairfrontier.benchmark._user_table import UserTable
from fairfrontier.exceptions import ClusterError
from fairfrontier.learners._progress import silence

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
    """The files of a run, as plain paths that can be sent to worker processes.

    Attributes
    ----------
    cells, predictions : Path
        Folders of the records and of the base learners' predictions.
    collection : Path
        The compressed records.
    settings : str
        Name of the settings.
    table : UserTable or None
        The user's table that the cells are about; None: the package's data sets.
    own : tuple of str
        Learners beside the methods of the tables, ``module:Class``.
    """

    cells: Path
    predictions: Path
    collection: Path
    settings: str
    table: UserTable | None = None
    own: tuple[str, ...] = ()

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
    """Return the cells of a run in the order of work: split by split, the quickest data sets first.

    Parameters
    ----------
    tables : sequence of str
        "dp", "eo", "multi".
    splits : sequence of int
        Numbers of the splits.
    tasks, methods : sequence of str, optional
        Only these; None: all of a table. A task that is not the paper's is on a user's table.
    tracks : sequence of str
        "in-x", "blind". The table of several attributes is the paper's, with the attributes in X.
    own : sequence of str
        Keys of methods beside those of the tables.
    """
    named = [task_of(task) for task in (TASKS if tasks is None else tasks)]
    datasets = [*DATASETS, *dict.fromkeys(task.dataset for task in named if task.dataset not in DATASETS)]
    cells = []
    for split in splits:
        for dataset in datasets:
            for table, track in product(tables, tracks):
                if table == "multi" and track == BLIND:
                    continue
                keys = [key for key in (*METHODS[table], *own) if methods is None or key in methods]
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

    Parameters
    ----------
    cells : sequence of Cell
        The cells in the order of work.
    folders : RunFolders
        Where records and predictions are.
    jobs : int
        Processes; figures do not depend on it.
    listener : Listener, optional
        Called with each new record and step.
    redo : bool
        Run all cells, with or without a record.

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
