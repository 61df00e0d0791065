"""From a cell to its record: run the method, evaluate its points, and write down what happened."""

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
from fairfrontier.benchmark._delivered import LEVELS, Delivery, choose_mixtures, deliver
from fairfrontier.benchmark._families import SplitData
from fairfrontier.benchmark._methods import METHODS
from fairfrontier.benchmark._records import DONE, FAILED, NOT_APPLICABLE, Cell, Record
from fairfrontier.benchmark._task_data import FAUC_WEIGHT, Evaluated, Method, TaskData
from fairfrontier.benchmark._tasks import task_of
from fairfrontier.identify._points import TradeoffPoints
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
    """Return the figures of a method on one split, as fields of a record.

    Parameters
    ----------
    evaluated : Evaluated
        The method's candidates on the test rows and on the ensemble rows.
    """
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
