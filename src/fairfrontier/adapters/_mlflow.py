"""Log a trade-off to MLflow: points, curve, FAUC, weights and the report."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairfrontier._columns import family_of
from fairfrontier._extras import require
from fairfrontier._writing import FRONTIER_COLUMNS, POINT_COLUMNS, to_csv
from fairfrontier.adapters._libraries import shortened
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.quantify._fauc import Weight, as_weight, fauc

_LONGEST_PARAM = 500  # the lowest limit that tracking servers have had
_PREFIX = re.compile(r"[A-Za-z0-9_-]+")
_LEVELS = np.arange(101)


def log_mlflow(
    points: TradeoffPoints,
    *,
    weight: Weight | Callable[[float], float] | None = None,
    interpolate: bool | Literal["signed"] = False,
    model: Any = None,
    report: str | os.PathLike[str] | None = None,
    params: Mapping[str, Any] | None = None,
    run_id: str | None = None,
    prefix: str = "fairfrontier",
) -> str:
    """Log a trade-off to an MLflow run.

    Parameters
    ----------
    points : TradeoffPoints
        The models.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all equally.
    interpolate : {False, True, "signed"}
        Which curve, and so which area: FAUC, FAUCI, or the area under the signed hull.
    model : FairStacksClassifier or FairStacksRegressor, optional
        A fitted stack, whose weights and parameters are logged too.
    report : path-like or str, optional
        The file ``report.html``, or the page itself as text.
    params : dict, optional
        Further parameters.
    run_id : str, optional
        The run; None: the active one.
    prefix : str
        The first part of the names of metrics and parameters, and the folder of the artifacts: letters, digits, ``_``,
        ``-``. MLflow never changes a parameter, so a second trade-off in the same run needs another prefix.

    Returns
    -------
    str
        The run's id.

    Notes
    -----
    With the default prefix a run gets

    - the metrics ``fairfrontier.fauc``, ``.models``, ``.pareto_optimal`` (models on the curve), and ``.taf``: the
      accuracy that the curve has at 0, 1, …, 100 % fairness, with the percentage as the step, which MLflow plots;
    - the parameters ``fairfrontier.weight``, ``.interpolate``, ``.attributes``, those of `params`, and those of the
      stack as ``.stack.…``;
    - the artifacts ``points.csv``, ``frontier.csv``, ``weights.csv`` and ``report.html`` in the folder of that name.

    MLflow reports its own usage to its makers unless the environment has ``MLFLOW_DISABLE_TELEMETRY=true``. This
    function adds nothing to that, and MLflow is imported only here.

    For example::

        with mlflow.start_run():
            log_mlflow(points, weight=ff.StepWeight(0.8), model=stack, report="audit/report.html")
    """
    mlflow = require("mlflow", extra="mlflow", purpose="log_mlflow")
    if not isinstance(points, TradeoffPoints):
        raise InvalidInputError(
            f"points must be TradeoffPoints; got {type(points).__name__}: make them with tradeoff_points"
        )
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise InvalidInputError(f"prefix must be letters, digits, '_' and '-'; got {prefix!r}")
    curve = points.frontier(interpolate)
    area = fauc(curve, weight)
    # Everything is computed before anything is sent, so that an error does not leave a run with half of it.
    files = _files(points, curve, model, report)
    given = {
        "weight": as_weight(weight) if not callable(weight) or isinstance(weight, Weight) else weight,
        "interpolate": interpolate,
        "attributes": ", ".join(dict.fromkeys(points.sets.attributes)),
        **dict(params or {}),
        **_stack_params(model),
    }
    run = _run_id(mlflow, run_id)
    client = mlflow.MlflowClient()
    entities = mlflow.entities
    now = int(np.datetime64("now", "ms").astype(np.int64))
    sizes = {"fauc": area, "models": len(points), "pareto_optimal": len(curve.support)}
    metrics = [entities.Metric(f"{prefix}.{key}", float(value), now, 0) for key, value in sizes.items()]
    levels = np.asarray(curve(_LEVELS / 100))
    metrics += [entities.Metric(f"{prefix}.taf", float(a), now, int(s)) for s, a in zip(_LEVELS, levels, strict=True)]
    logged = [entities.Param(f"{prefix}.{key}", shortened(value, _LONGEST_PARAM)) for key, value in given.items()]
    client.log_batch(run, metrics=metrics, params=logged)
    for name, text in files.items():
        client.log_text(run, text, f"{prefix}/{name}")
    return run


def _run_id(mlflow: Any, run_id: str | None) -> str:
    if run_id is not None:
        return run_id
    active = mlflow.active_run()
    if active is None:
        raise InvalidInputError(
            "run_id must be given where no run is active; got None: log inside 'with mlflow.start_run():'"
        )
    return str(active.info.run_id)


def _files(points: TradeoffPoints, curve: TAFCurve, model: Any, report: Any) -> dict[str, str]:
    files = {"points.csv": _points_csv(points, curve), "frontier.csv": _frontier_csv(points, curve)}
    if model is not None:
        files["weights.csv"] = _weights_csv(model)
    if report is not None:
        is_page = isinstance(report, str) and report.lstrip()[:1] == "<"
        files["report.html"] = str(report) if is_page else _read(Path(report))
    return files


def _weights_csv(model: Any) -> str:
    if not (hasattr(model, "weights_") and hasattr(model, "names_")):
        raise InvalidInputError(f"model must be a fitted FairStacks; this {type(model).__name__} has no weights")
    # The weights of an attribute-aware stack end with those of the groups.
    groups = [f"(group {j})" for j in range(len(model.weights_) - len(model.names_))]
    named = zip([*model.names_, *groups], model.weights_, strict=True)
    return to_csv(["model", "weight"], [["(constant)", model.intercept_], *named])


def _read(path: Path) -> str:
    if not path.is_file():
        raise InvalidInputError(f"report must be the file report.html, or the page itself; there is no {str(path)!r}")
    return path.read_text(encoding="utf-8")


def _points_csv(points: TradeoffPoints, curve: TAFCurve) -> str:
    optimal = set(curve.support.tolist())
    header = [*POINT_COLUMNS, *(f"rate[{name}]" for name in points.sets.names)]
    rows = (
        [name, family_of(name), points.fairness[i], points.accuracy[i], i in optimal, *points.rates[i]]
        for i, name in enumerate(points.names)
    )
    return to_csv(header, rows)


def _frontier_csv(points: TradeoffPoints, curve: TAFCurve) -> str:
    # A knot of the signed hull is a mixture of models and has no name.
    names = [points.names[i] for i in curve.support] if curve.mixture is None else [None] * len(curve.fairness)
    kind = "signed" if curve.mixture is not None else "hull" if curve.linear else "step"
    rows = [
        [kind, f, a, name, None if name is None else family_of(name)]
        for f, a, name in zip(curve.fairness, curve.accuracy, names, strict=True)
    ]
    return to_csv(FRONTIER_COLUMNS, rows)


def _stack_params(model: Any) -> dict[str, Any]:
    if model is None:
        return {}
    known = {key: value for key, value in model.get_params(deep=False).items() if key != "estimators"}
    return {f"stack.{key}": value for key, value in {**known, "alpha_": model.alpha_, "target_": model.target_}.items()}
