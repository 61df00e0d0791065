"""The command `audit` without labels: whom the models of a file select, group by group."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier._cli.audit import settings_of, trail
from fairfrontier._cli.options import AuditOptions
from fairfrontier._cli.table import AuditTable, open_audit
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, one_of
from fairfrontier.chunks._files import gathered
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.report._html import render_rates
from fairfrontier.report._rates import ll144_csv, summarise_selections
from fairfrontier.report._tables import groups_csv
from fairfrontier.report._words import plain

RATES_OUTPUTS = ("report.html", "groups.csv", "summary.json")
FORMATS = ("report", "ll144")


@dataclass(frozen=True, eq=False)
class _Decided:
    """The step that puts decisions in the place of scores."""

    limits: FloatArray

    def __call__(self, rows: Rows) -> Rows:
        return replace(rows, scores=(rows.scores > self.limits).astype(np.float32))


def run_rates(options: AuditOptions, *, progress: Any = None) -> tuple[dict[str, Any], StreamedChunks]:
    """Return the summary of a file without labels, and its decisions."""
    weight = options.check()
    if options.regression or options.accuracy != "accuracy":
        raise InvalidInputError("--accuracy must not be given without --label: there is nothing to be right about")
    if options.fairness != "demographic_parity":
        raise InvalidInputError(f"--fairness {options.fairness} needs --label; without it there is demographic_parity")
    table = open_audit(options, progress)
    limits, rule = _limits(options, table)
    decided = table.chunks.map(_Decided(limits))
    summary = summarise_selections(decided, settings_of(options, table, weight), rule=rule)
    summary["trail"] = trail(options.file, table)
    return summary, decided


def _limits(options: AuditOptions, table: AuditTable) -> tuple[FloatArray, str]:
    """Return what the scores of each model are compared with, and that in words."""
    n_models = len(table.chunks.names)
    if table.decisions:
        return np.full(n_models, 0.5), "decision 1"
    if options.threshold is not None:
        return np.full(n_models, options.threshold), f"a score above {options.threshold:g}"
    if not table.in_memory:
        raise InvalidInputError("--threshold must be given with --chunk-rows: the median needs all scores in memory")
    median = np.median(gathered(table.chunks).scores.astype(np.float64), axis=0)
    return median, "a score above the median of all rows (the scoring rate)"


def rates_outputs(form: str) -> tuple[str, ...]:
    """Return the files that an audit without labels writes."""
    one_of(form, FORMATS, parameter="--format")
    return (*RATES_OUTPUTS, "ll144.csv") if form == "ll144" else RATES_OUTPUTS


def write_rates(summary: dict[str, Any], decided: StreamedChunks, folder: Path, form: str) -> None:
    """Write the page and the tables."""
    (folder / "report.html").write_text(render_rates(summary), encoding="utf-8", errors="replace")
    (folder / "groups.csv").write_text(groups_csv(summary), encoding="utf-8", errors="replace", newline="")
    machine = {key: value for key, value in summary.items() if key not in ("attributes", "groups_csv")}
    machine["overview"], machine["subject"] = plain(summary["overview"]), summary["models"]["names"][summary["subject"]]
    (folder / "summary.json").write_text(json.dumps(machine, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    if form == "ll144":
        (folder / "ll144.csv").write_text(ll144_csv(decided), encoding="utf-8", errors="replace", newline="")
