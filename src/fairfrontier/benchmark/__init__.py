"""Benchmark: the paper's tables and figures, reproduced cell by cell.

A *cell* is one method on one task and one split, in one table; its *record* keeps all figures and the points behind
them. `reproduce` runs all cells that have no record yet; `run_cell` runs one.
"""

from fairfrontier.benchmark._families import SplitData
from fairfrontier.benchmark._measure import honest_fauc, run_cell
from fairfrontier.benchmark._methods import METHODS, Evaluated, Method, TaskData
from fairfrontier.benchmark._records import Cell, Record, RecordStore, read_collection
from fairfrontier.benchmark._reproduce import Reproduction, reproduce
from fairfrontier.benchmark._run_settings import SETTINGS, RunSettings
from fairfrontier.benchmark._runner import Listener
from fairfrontier.benchmark._summary import TableSummary, summarise_table
from fairfrontier.benchmark._tasks import TASKS, Problem, SplitRows, Task, load_problem, split_rows

__all__ = [
    "Cell",
    "Evaluated",
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
    "TableSummary",
    "Task",
    "TaskData",
    "honest_fauc",
    "load_problem",
    "read_collection",
    "reproduce",
    "run_cell",
    "split_rows",
    "summarise_table",
]
