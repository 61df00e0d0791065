"""Benchmark: the paper's tables and figures, reproduced cell by cell."""

from fairfrontier.benchmark._records import Cell, Record, RecordStore, read_collection
from fairfrontier.benchmark._reproduce import Request, reproduce
from fairfrontier.benchmark._runner import Listener
from fairfrontier.benchmark._summary import TableSummary, summarise
from fairfrontier.benchmark._tasks import TASKS, Task

__all__ = [
    "Cell",
    "Listener",
    "Record",
    "RecordStore",
    "Request",
    "TASKS",
    "TableSummary",
    "Task",
    "read_collection",
    "reproduce",
    "summarise",
]
