"""TAF curves of every task: one panel per task, one colour and line per method."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier._writing import write_atomically
from fairfrontier.benchmark._averages import Entry, TableSummary
from fairfrontier.benchmark._paper_tables import column_title
from fairfrontier.benchmark._records import IN_X
from fairfrontier.identify._frontier import taf_curve

# Okabe and Ito's palette, which colour-blind people can tell apart; dashes tell the methods apart in black and white.
_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_BLUE, _RED, _PINK, _GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
_DOTS, _DASHES, _MIXED = (0, (1, 1.2)), (0, (5, 2)), (0, (6, 1.5, 1, 1.5))
STYLES: dict[str, tuple[str, Any, float]] = {
    "random-forest": (_GREY, _DOTS, 1.6),
    "adversarial": (_ORANGE, _DASHES, 1.4),
    "fagtb": (_GREEN, _DASHES, 1.4),
    "reductions": (_PINK, _DASHES, 1.4),
    "oxonfair-inferred": (_SKY, _MIXED, 1.4),
    "mp-ours": (_ORANGE, "-", 1.4),
    "rf-ours": (_GREEN, "-", 1.4),
    "zoo-ours": (_SKY, "-", 1.4),
    "sink-paper": (_BLUE, _DASHES, 1.8),
    "sink-ours": (_BLUE, "-", 2.6),
    "oxonfair": (_BLACK, _MIXED, 1.2),
    "threshold-optimizer": (_RED, _MIXED, 1.4),
    "sink-aware": (_BLACK, "-", 1.6),
    "none": (_GREY, _DOTS, 1.6),
    "rf-gender-paper": (_ORANGE, _DASHES, 1.4),
    "rf-gender-ours": (_ORANGE, "-", 2.0),
    "rf-race-paper": (_GREEN, _DASHES, 1.4),
    "rf-race-ours": (_GREEN, "-", 2.0),
    "rf-both-paper": (_BLUE, _DASHES, 1.4),
    "rf-both-ours": (_BLUE, "-", 2.6),
}
_LEVELS = np.linspace(0.8, 1.0, 401)
_COLUMNS = 4


def mean_curve(entry: Entry, levels: FloatArray = _LEVELS) -> FloatArray:
    """Return the TAF curve of a method, averaged over splits, at given levels of fairness."""
    curves = [taf_curve(record.points["fairness"], record.points["accuracy"])(levels) for record in entry.done]
    return np.asarray(np.mean(curves, axis=0))


def draw(summary: TableSummary) -> Any:
    """Draw the TAF curves of a table and return the matplotlib figure.

    Parameters
    ----------
    summary : TableSummary
        The entries; methods without a style of their own (the paper's forms of the smaller stacks) are not drawn.
    """
    figure_module = require("matplotlib.figure", extra="plot", purpose="The benchmark's figures")
    rows = -(-len(summary.tasks) // _COLUMNS)
    columns = -(-len(summary.tasks) // rows)  # six panels are two rows of three
    figure = figure_module.Figure(figsize=(3.6 * columns, 3.1 * rows + 1.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    lines: dict[str, Any] = {}
    for ax, task in zip(axes, summary.tasks, strict=False):
        lines |= _panel(ax, summary, task)
    for ax in axes[len(summary.tasks) :]:
        ax.set_axis_off()
    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=min(columns, 4), frameon=False, fontsize=8.5
    )
    return figure


def _panel(ax: Any, summary: TableSummary, task: str) -> dict[str, Any]:
    lines = {}
    lowest, highest = [], []
    for method in summary.methods:
        entry = summary.entry(method, task)
        if method.key not in STYLES or not entry.done:
            continue
        colour, line, width = STYLES[method.key]
        curve = mean_curve(entry)
        top = 5 if method.key == "sink-ours" else 3
        title = method.title + (" (needs attribute)" if method.aware and "aware" not in method.title else "")
        (lines[title],) = ax.plot(_LEVELS, curve, color=colour, linestyle=line, linewidth=width, zorder=top)
        lowest.append(curve.min())
        highest.append(curve.max())
    if highest:
        margin = 0.04 * (max(highest) - min(lowest)) + 1e-3
        ax.set_ylim(min(lowest) - margin, max(highest) + margin)
    ax.set_xlim(_LEVELS[0], _LEVELS[-1])
    ax.set_title(column_title(task), fontsize=10)
    ax.set_xlabel("fairness at least", fontsize=9)
    ax.set_ylabel("best R²" if task.startswith("communities") else "best accuracy", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(color="#DDDDDD", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return lines


def save_figures(summaries: Sequence[TableSummary], folder: Path) -> list[Path]:
    """Draw the figure of each table into a folder, as PNG and PDF, and return the files."""
    written = []
    for summary in summaries:
        figure = draw(summary)
        for suffix, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
            track = "" if summary.track == IN_X else f"_{summary.track}"
            path = folder / f"taf_{summary.table}{track}.{suffix}"
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix, dpi=130, metadata=metadata)
            write_atomically(path, buffer.getvalue())
            written.append(path)
    return written
