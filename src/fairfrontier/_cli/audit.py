"""The audit of a file of predictions: read, value, summarise, write."""

import json
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from fairfrontier._cli.interval import fauc_bounds
from fairfrontier._cli.request import Request, read, settings_of
from fairfrontier._cli.stacking import family_name, trial
from fairfrontier.report import evaluate, frontier_csv, points_csv, render_html, summarise
from fairfrontier.report._words import plain

OUTPUTS = ("report.html", "points.csv", "frontier.csv", "summary.json")


def run_audit(request: Request, *, stack: bool = True) -> dict[str, Any]:
    """Return the summary of a file of predictions.

    Parameters
    ----------
    request : Request
        What to read and how to value it.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    """
    weight = request.checked()
    data = read(request)
    base = evaluate(data.y, data.scores, sensitive_features=data.sensitive, names=data.names, **request.measures())
    with threadpool_limits(limits=1):  # many small products: threads would mostly wait for one another
        bounds = fauc_bounds(data, base, weight=weight, confidence=request.confidence, measures=request.measures())
        tried, note = trial(request, data, base, weight) if stack else (None, "")
    return summarise(
        base,
        settings_of(request, data, weight, (note,) if note else ()),
        stack=tried,
        stack_family=family_name(data.names),
        interval=bounds,
    )


def write_results(summary: dict[str, Any], folder: Path) -> None:
    """Write the report and the tables behind it."""
    (folder / "report.html").write_text(render_html(summary), encoding="utf-8", errors="replace")
    (folder / "points.csv").write_text(points_csv(summary), encoding="utf-8", errors="replace", newline="")
    (folder / "frontier.csv").write_text(frontier_csv(summary), encoding="utf-8", errors="replace", newline="")
    machine = {key: summary[key] for key in summary if key not in ("models", "attributes", "frontier")}
    machine["recommendation"], machine["rule"] = plain(summary["recommendation"]), plain(summary["rule"])
    machine["frontier"] = [
        {key: summary["models"][key][i] for key in ("names", "fairness", "accuracy")}
        for i in summary["frontier"]["step"]
    ]
    (folder / "summary.json").write_text(json.dumps(machine, indent=2, allow_nan=False) + "\n", encoding="utf-8")
