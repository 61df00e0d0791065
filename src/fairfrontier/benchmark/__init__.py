"""Benchmark: the paper's tables and figures, reproduced cell by cell."""

from fairfrontier.benchmark.records import Cell, Record, RecordStore, read_collection
from fairfrontier.benchmark.reproduce import Request, reproduce
from fairfrontier.benchmark.runner import Listener
from fairfrontier.benchmark.summary import TableSummary, summarise
from fairfrontier.benchmark.tasks import TASKS, Task

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
