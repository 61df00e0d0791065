"""From a cell to its record: run the method, measure its points, and write down what happened."""

import importlib.metadata
import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairfrontier._version import __version__
from fairfrontier.benchmark._families import SplitData
from fairfrontier.benchmark._methods import ROWS, WEIGHT, Bench, Method, Valued
from fairfrontier.benchmark._records import DONE, FAILED, NOT_APPLICABLE, Cell, Record
from fairfrontier.benchmark._tasks import TASKS
from fairfrontier.identify._points import TradeoffPoints, points_from_rates
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._honest import honest_curve

_PACKAGES = ("numpy", "scipy", "scikit-learn", "xgboost-cpu", "torch", "fairlearn", "oxonfair")
_DIGITS = 6
_WARNINGS = 3


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


def run_cell(cell: Cell, data: SplitData) -> Record:
    """Return the record of a cell; a method that fails gives a record with its reason.

    Parameters
    ----------
    cell : Cell
        What to run.
    data : SplitData
        The cell's data set and split.
    """
    task, method = TASKS[cell.task], ROWS[cell.table][cell.method]
    common: dict[str, Any] = {
        "table": cell.table,
        "task": cell.task,
        "method": cell.method,
        "split": cell.split,
        "settings": data.settings.name,
        "versions": versions(),
    }
    if not method.applies(task):
        reason = f"{method.title} only classifies, and {task.name} is a regression task"
        return Record(**common, status=NOT_APPLICABLE, reason=reason)
    bench = Bench(task, cell.table, data)
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1):
        warnings.simplefilter("always")
        try:
            return _run(method, bench, common, caught)
        except Exception as error:
            # Whatever a rival's code raises is a result of the benchmark: it is written down, shown, and tried again
            # in the next run; the other cells go on.
            return Record(**common, status=FAILED, reason=f"{type(error).__name__}: {error}"[:500])


def _run(method: Method, bench: Bench, common: dict[str, Any], caught: list[warnings.WarningMessage]) -> Record:
    training = bench.training(method.needs(bench.task))
    start = time.process_time()
    valued = method.run(method, bench)
    seconds = time.process_time() - start
    details = valued.details | _noted(caught)
    return Record(
        **common,
        status=DONE,
        seconds=round(seconds, 2),
        training=training,
        details=details,
        **measures(valued),
    )


def _noted(caught: list[warnings.WarningMessage]) -> dict[str, Any]:
    """Return the first different warnings of a fit."""
    texts = dict.fromkeys(f"{one.category.__name__}: {one.message}"[:200] for one in caught)
    return {"warnings": list(texts)[:_WARNINGS]} if texts else {}


def measures(valued: Valued) -> dict[str, Any]:
    """Return the figures of a method on one split, as fields of a record.

    Parameters
    ----------
    valued : Valued
        The method's candidates on the test and ensemble rows.
    """
    points, chosen = valued.points, valued.chosen
    kept, kept_chosen = _compact(points), {} if chosen is None else _compact(chosen)
    curve = points.frontier()
    return {
        "fauc": fauc(curve, WEIGHT),
        "fauci": fauc(points.frontier(True), WEIGHT),
        "fauc_signed": fauc(points.frontier("signed"), WEIGHT),
        "fauc_honest": honest_fauc(kept_chosen, kept) if kept_chosen else None,
        "fauc_single": None if valued.without_lots is None else fauc(valued.without_lots.frontier(), WEIGHT),
        "fauc_exp_mse": None if valued.exp_mse is None else fauc(valued.exp_mse.frontier(), WEIGHT),
        "max_accuracy": float(points.accuracy.max()),
        "accuracy_95": curve(0.95),
        "accuracy_99": curve(0.99),
        "constant_accuracy": float(points.accuracy[-1]),
        "points": kept,
        "chosen": kept_chosen,
    }


def honest_fauc(chosen: Mapping[str, Sequence[float]], points: Mapping[str, Sequence[float]]) -> float:
    """Return the honest FAUC of candidates as a record keeps them: whoever has the record can compute it again.

    Parameters
    ----------
    chosen, points : dict of str to sequence
        The candidates' accuracy and signed bias on the ensemble rows, which choose, and on the test rows, which value.

    Examples
    --------
    >>> seen = {"accuracy": [0.9, 0.7], "bias": [0.1, 0.0]}
    >>> round(honest_fauc(seen, {"accuracy": [0.8, 0.7], "bias": [0.1, 0.0]}), 3)
    0.75
    """
    return fauc(honest_curve(_of_record(chosen), _of_record(points)), WEIGHT)


def _of_record(kept: Mapping[str, Sequence[float]]) -> TradeoffPoints:
    bias = np.asarray(kept["bias"], dtype=np.float64)
    sets = RowSets(("first", "second"), ((0, 1),), ("attribute",))
    names = tuple(str(index) for index in range(len(bias)))
    return points_from_rates(np.column_stack([bias, np.zeros_like(bias)]), sets, np.asarray(kept["accuracy"]), names)


def _compact(points: TradeoffPoints) -> dict[str, list[float]]:
    columns = {"fairness": points.fairness, "accuracy": points.accuracy, "bias": points.bias[:, 0]}
    return {name: np.round(values, _DIGITS).tolist() for name, values in columns.items()}
