"""The command `audit`: read a file, evaluate its models, write the report and the tables behind it."""

import json
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from fairfrontier._cli.options import AuditOptions
from fairfrontier._cli.table import AuditTable, open_audit
from fairfrontier.quantify._weights import Weight
from fairfrontier.report import Settings, frontier_csv, groups_csv, points_csv, render_html
from fairfrontier.report._audit import summarise_rows
from fairfrontier.report._tables import model_rows
from fairfrontier.report._words import plain

OUTPUTS = ("report.html", "points.csv", "frontier.csv", "groups.csv", "summary.json")


def run_audit(options: AuditOptions, *, stack: bool = True, progress: Any = None) -> dict[str, Any]:
    """Return the summary of a file of predictions.

    Parameters
    ----------
    options : AuditOptions
        What to read and how to evaluate it.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    progress : callable, optional
        Is told how much of a pass over the file is done.
    """
    weight = options.check()
    with threadpool_limits(limits=1):  # many small products: threads would mostly wait for one another
        table = open_audit(options, progress)
        return summarise_rows(table.chunks, settings_of(options, table, weight), stack=stack, in_memory=table.in_memory)


def settings_of(options: AuditOptions, table: AuditTable, weight: Weight, notes: tuple[str, ...] = ()) -> Settings:
    """Return what was asked, for the summary."""
    count = len(table.chunks.names)
    return Settings(
        source=options.file.name,
        label=options.label,
        positive=table.labels[1],
        fairness=options.fairness,
        accuracy=options.accuracy,
        sensitive_mode=options.sensitive_mode,
        threshold=options.threshold,
        weight=weight,
        min_fairness=options.min_fairness,
        confidence=options.confidence,
        title=options.title or f"Fairness and accuracy of {count:,} model{'' if count == 1 else 's'}",
        notes=(*notes, *table.notes),
    )


def write_results(summary: dict[str, Any], folder: Path) -> None:
    """Write the report and the tables behind it."""
    (folder / "report.html").write_text(render_html(summary), encoding="utf-8", errors="replace")
    (folder / "points.csv").write_text(points_csv(summary), encoding="utf-8", errors="replace", newline="")
    (folder / "frontier.csv").write_text(frontier_csv(summary), encoding="utf-8", errors="replace", newline="")
    (folder / "groups.csv").write_text(
        summary["groups_csv"] or groups_csv(summary), encoding="utf-8", errors="replace", newline=""
    )
    machine = {key: summary[key] for key in summary if key not in ("models", "attributes", "frontier", "groups_csv")}
    machine |= {key: plain(summary[key]) for key in ("recommendation", "overview", "rule")}
    machine["subject"] = summary["models"]["names"][summary["subject"]]
    machine["models"] = model_rows(summary)
    machine["frontier"] = [
        {key: summary["models"][key][i] for key in ("names", "fairness", "accuracy")}
        for i in summary["frontier"]["step"]
    ]
    (folder / "summary.json").write_text(json.dumps(machine, indent=2, allow_nan=False) + "\n", encoding="utf-8")
