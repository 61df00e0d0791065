"""Benchmark: the paper's tables and figures, reproduced cell by cell.

A *cell* is one method on one task, one split and one track, in one table; its *record* keeps all figures and the
points behind them. `reproduce` runs all cells that have no record yet; `run_cell` runs one. A user's table takes the
place of the paper's tasks (`UserTable`), and a user's learner is one more row (`own_methods`).
"""

from fairfrontier.benchmark._averages import TableSummary, summarise_table
from fairfrontier.benchmark._delivered import LEVELS, DeliveredFrontier, Delivery, delivered_frontier, delivery_of
from fairfrontier.benchmark._families import SETTINGS, RunSettings, SplitData
from fairfrontier.benchmark._methods import METHODS, own_methods
from fairfrontier.benchmark._records import TRACKS, Cell, Record, RecordStore, read_collection
from fairfrontier.benchmark._reproduce import Reproduction, reproduce
from fairfrontier.benchmark._run import Listener, honest_fauc, run_cell
from fairfrontier.benchmark._task_data import Evaluated, Method, TaskData
from fairfrontier.benchmark._tasks import TASKS, Problem, SplitRows, Task, UserTable, load_problem, split_rows

__all__ = [
    "Cell",
    "DeliveredFrontier",
    "Delivery",
    "Evaluated",
    "LEVELS",
    "Listener",
    "METHODS",
    "Method",
    "Problem",
    "Record",
    "RecordStore",
    "Reproduction",
    "RunSettings",
    "SETTINGS",
    "SplitData",
    "SplitRows",
    "TASKS",
    "TRACKS",
    "TableSummary",
    "Task",
    "TaskData",
    "UserTable",
    "delivered_frontier",
    "delivery_of",
    "honest_fauc",
    "load_problem",
    "own_methods",
    "read_collection",
    "reproduce",
    "run_cell",
    "split_rows",
    "summarise_table",
]
