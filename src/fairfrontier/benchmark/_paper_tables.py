"""The paper's tables and figures, from the averages over splits."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier._writing import write_atomically
from fairfrontier.benchmark._averages import (
    DELIVERED,
    FIGURES,
    MISS_SHARE,
    MISS_SIZE,
    Entry,
    Estimate,
    TableSummary,
    paper_figures,
)
from fairfrontier.benchmark._methods import CHAMPIONS, METHODS
from fairfrontier.benchmark._records import IN_X, TRACKS
from fairfrontier.benchmark._task_data import Method
from fairfrontier.benchmark._tasks import TASKS
from fairfrontier.identify._frontier import taf_curve

TITLES = {
    "dp": "Demographic parity (the paper's Table 1)",
    "eo": "Equality of opportunity (the paper's Table A1)",
    "multi": "Several attributes, forest trees (the paper's Table A2)",
}
LABELS = {
    DELIVERED: "Delivered FAUC: every operating point chosen without test rows",
    MISS_SHARE: "Share of asked levels below 1 that were missed",
    MISS_SIZE: "Mean size of a miss",
    "fauc": "FAUC",
    "fauci": "FAUCI",
    "fauc_signed": "Area under the signed hull",
    "fauc_honest": "Honest FAUC: frontier chosen on the ensemble split, evaluated on the test split",
    "fauc_single": "FAUC of our stacks without randomising: each candidate one stack alone",
    "fauc_exp_mse": "FAUC with exp(−MSE) as accuracy",
    "max_accuracy": "Largest accuracy",
    "accuracy_95": "Accuracy at fairness 0.95",
    "accuracy_99": "Accuracy at fairness 0.99",
    "constant_accuracy": "Accuracy of the constant model",
    "seconds": "CPU seconds without training",
}
OUT_OF_REACH, BELOW_CONSTANT = "†", "‡"
AWARE = "§"


def short(value: float) -> str:
    """Return a figure with three digits, without its leading zero.

    Examples
    --------
    >>> short(0.8634), short(-0.0021), short(1.0)
    ('.863', '-.002', '1.000')
    """
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def show(found: Estimate) -> str:
    """Return a mean with its standard error in parentheses; one split has none."""
    return short(found.mean) if found.count < 2 else f"{short(found.mean)} ({short(found.error)})"


def table_title(summary: TableSummary) -> str:
    """Return what a table is about, with its track."""
    title = TITLES[summary.table]
    if not TASKS.keys() >= set(summary.tasks):  # a user's table is not the paper's
        title = title.partition(" (")[0]
    return f"{title}, {TRACKS[summary.track]}"


def column_title(task: str) -> str:
    """Return a task as a column's title.

    Examples
    --------
    >>> column_title("compas-race")
    'COMPAS race'
    """
    data, _, attribute = task.partition("-")
    if task not in TASKS:  # a user's file
        return f"{data} {attribute}"
    return f"{'COMPAS' if data == 'compas' else data.title()} {attribute}"


def mark_of_paper(summary: TableSummary, task: str, theirs: float) -> str:
    """Return a mark where the paper's figure lies outside what the models here allow."""
    highest, lowest = summary.bound(task, "max_accuracy"), summary.bound(task, "constant_accuracy")
    if highest is not None and theirs > highest:
        return OUT_OF_REACH
    return BELOW_CONSTANT if lowest is not None and theirs < lowest else ""


def _cell(summary: TableSummary, entry: Entry, *, figure: str, bold: str) -> str:
    """Return one cell; `bold` is the mark that opens and closes bold text."""
    if not entry.applies:
        return "–"
    found = entry.estimate(figure)
    if found is None and entry.failed:
        return f"failed ({len(entry.failed)})"
    if found is None:
        return ""
    is_area = figure not in (MISS_SHARE, MISS_SIZE)
    best = is_area and summary.best(entry.task, aware=entry.method.aware, figure=figure) == entry.method.key
    text = f"{bold}{show(found)}{bold}" if best else show(found)
    if figure == "fauc" and summary.track == IN_X and entry.method.paper_row is not None:
        theirs = paper_figures().get((summary.table, entry.method.paper_row, entry.task))
        if theirs is not None:
            text += f" [{short(theirs[0])}{mark_of_paper(summary, entry.task, theirs[0])}]"
    if found.count < summary.splits(entry.task, figure):
        text += f", {found.count} split{'s' if found.count > 1 else ''}"
    return text + (f", {len(entry.failed)} failed" if entry.failed else "")


def _title(method: Method) -> str:
    return method.title + (f" {AWARE}" if method.aware else "")


def _grid(summary: TableSummary, figure: str, bold: str) -> list[list[str]]:
    """Return the cells of a table, its header first and its bounds last."""
    rows = [["Method", *(column_title(task) for task in summary.tasks)]]
    for method in summary.methods:
        cells = [_cell(summary, summary.entry(method, t), figure=figure, bold=bold) for t in summary.tasks]
        if not any(cells):
            continue
        rows.append([_title(method), *cells])
    if figure in (DELIVERED, "fauc", "fauci", "fauc_signed", "fauc_honest"):
        for title, bound in (
            ("Constant model", "constant_accuracy"),
            ("Best accuracy of any candidate", "max_accuracy"),
        ):
            values = [summary.bound(task, bound) for task in summary.tasks]
            rows.append([title, *("" if value is None else short(value) for value in values)])
    return rows


def markdown_rows(rows: Sequence[Sequence[str]]) -> str:
    """Return rows, the header first, as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    rule = "|---|" + "---:|" * (len(rows[0]) - 1)
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def markdown(summary: TableSummary, figure: str = "fauc") -> str:
    """Return a table of one figure as Markdown."""
    return markdown_rows(_grid(summary, figure, "**"))


def notes(summary: TableSummary) -> str:
    """Return, in words, how to read the table and which of the paper's figures cannot be reached."""
    splits = {len(entry.done) for entry in summary.entries.values() if entry.applies}
    count = f"{min(splits)} to {max(splits)}" if len(splits) > 1 else f"{max(splits, default=0)}"
    reading = (
        f"Mean (standard error) over splits: {count}. In brackets the paper's figure. Bold: the best row of those that "
        f"are not given the sensitive attribute at prediction, and the best of those that are ({AWARE}), where a row "
        "has as many splits as any other; rows with fewer say so and are not comparable. Weight: 80 % step. The "
        "constant model is a candidate of every method, so that no FAUC is below its accuracy; and none is above the "
        "best accuracy of any candidate."
    )
    if summary.track != IN_X:
        reading += (
            f" The features have no column that holds the attribute: it is used in fitting, never at prediction; rows "
            f"with {AWARE} are given it at prediction beside those features."
        )
    if any(task.startswith("communities") for task in summary.tasks):
        reading += (
            " Communities: accuracy is R² clipped to [0, 1]; the paper does not say which measure its column has, and "
            "its .734 cannot be R² (mean parity alone costs about .3 of it there; exp(−MSE) is in a table of its own)."
        )
    lines = [reading]
    marked = {OUT_OF_REACH: "above the best accuracy", BELOW_CONSTANT: "below the constant model's accuracy"}
    for mark, reason in marked.items() if summary.track == IN_X else ():
        found = [text for task in summary.tasks if (text := _out_of_reach(summary, task, mark))]
        if found:
            lines.append(f"{mark} The paper's figure is {reason} here: {'; '.join(found)}.")
    lines += [
        f"Failed: {_title(entry.method)} on {column_title(entry.task)}, split {record.split}: {record.reason}"
        for entry in summary.entries.values()
        for record in entry.failed
    ]
    return "\n\n".join(lines) + "\n"


def _out_of_reach(summary: TableSummary, task: str, mark: str) -> str:
    rows = dict.fromkeys(method.paper_row for method in summary.methods if method.paper_row is not None)
    theirs = {row: paper_figures().get((summary.table, row, task)) for row in rows}
    found = {
        row: figure[0]
        for row, figure in theirs.items()
        if figure is not None and mark_of_paper(summary, task, figure[0]) == mark
    }
    bound = summary.bound(task, "max_accuracy" if mark == OUT_OF_REACH else "constant_accuracy")
    if not found or bound is None:
        return ""
    listed = ", ".join(f"{row} {short(value)}" for row, value in found.items())
    return f"{column_title(task)} ({short(bound)}): {listed}"


def comparison_markdown(summary: TableSummary, figure: str = "fauc") -> str:
    """Return the paired differences of the table's champion and each rival as Markdown."""
    found = {(one.rival.key, one.task): one for one in summary.comparisons(figure)}
    rivals = [method for method in summary.methods if any(key == method.key for key, _ in found)]
    rows = [["Rival", *(column_title(task) for task in summary.tasks)]]
    for rival in rivals:
        cells = []
        for task in summary.tasks:
            one = found.get((rival.key, task))
            # The parts of a delivered figure are the jackknife's, and no split wins.
            wins = "" if one is None or figure == DELIVERED else f"; {one.wins}/{one.difference.count}"
            cells.append("" if one is None else show(one.difference) + wins)
        rows.append([_title(rival), *cells])
    return markdown_rows(rows) if rivals else ""


def table_csv(summary: TableSummary) -> str:
    """Return all figures of a table as CSV, one line per method and task."""
    buffer = io.StringIO()
    header = ["table", "task", "method", "title", "aware", "applies", "splits", "failed", "track"]
    header += [f"{figure}{suffix}" for figure in FIGURES for suffix in ("", "_se")]
    header += ["paper_row", "paper_fauc", "paper_se", "best_accuracy_of_any_model"]
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for method in summary.methods:
        for task in summary.tasks:
            entry = summary.entry(method, task)
            theirs = paper_figures().get((summary.table, method.paper_row or "", task), ("", ""))
            head = [summary.table, task, method.key, method.title, int(method.aware), int(entry.applies)]
            measured = [entry.estimate(figure) for figure in FIGURES]
            writer.writerow(
                [
                    *head,
                    len(entry.done),
                    len(entry.failed),
                    method.kind(summary.track),
                    *_flat(measured),
                    method.paper_row or "",
                    *theirs,
                    _number(summary.bound(task, "max_accuracy")),
                ]
            )
    return buffer.getvalue()


def _flat(measured: Iterable[Estimate | None]) -> list[str]:
    cells = []
    for one in measured:
        cells += ["", ""] if one is None else [_number(one.mean), _number(one.error)]
    return cells


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.6f}"


def latex(summary: TableSummary) -> str:
    """Return the FAUC table as LaTeX (needs booktabs)."""
    rows = _grid(summary, "fauc", "@")
    marks = {OUT_OF_REACH: r"$^\dagger$", BELOW_CONSTANT: r"$^\ddagger$", AWARE: r"$^\S$", "–": "--", "%": r"\%"}
    lines = [r"\begin{tabular}{l" + "c" * len(summary.tasks) + "}", r"\toprule"]
    last_blind = max((i for i, m in enumerate(summary.methods, 1) if not m.aware), default=0)
    for i, row in enumerate(rows):
        cells = []
        for cell in row:
            parts = cell.split("@")
            text = parts[0] + (rf"\textbf{{{parts[1]}}}{parts[2]}" if len(parts) == 3 else "")
            for mark, command in marks.items():
                text = text.replace(mark, command)
            cells.append(text)
        lines.append(" & ".join(cells) + r" \\")
        if i in (0, last_blind, len(summary.methods)) and i < len(rows) - 1:
            lines.append(r"\midrule")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


READING = (
    "For each of 21 asked levels of fairness, .8 to 1, the operating point of a method is chosen without any test "
    "row: of all mixtures of its candidates the one that is most accurate and fair enough on the ensemble rows. "
    "Methods that take a tolerance, and are fitted to the ensemble rows, are asked for each level in advance. "
    "Fairness and accuracy of the point are then measured on the test rows; a point of the curve is 1 − mean |bias| "
    "and mean accuracy over splits, and the figure is the area under the step curve of these points and the "
    "constant model (80 % step weight). Standard errors in parentheses, of figures and of paired differences, are "
    "the jackknife's over splits. Every method may randomise between its candidates. § marks rows that are given "
    "the attribute at prediction."
)


def delivered_page(summaries: Sequence[TableSummary]) -> str:
    """Return the delivered figures of all tables and tracks as one Markdown page."""
    parts = ["# Delivered frontiers\n", READING + "\n"]
    for summary in summaries:
        if summary.table == "multi" or not _has_delivered(summary):
            continue
        champion = METHODS[summary.table][CHAMPIONS[summary.table]].title
        parts += [f"## {table_title(summary)}\n", markdown(summary, DELIVERED)]
        paired = comparison_markdown(summary, DELIVERED)
        if paired:
            parts += [f"### {champion} minus each rival\n", paired]
        for figure in (MISS_SHARE, MISS_SIZE):
            parts += [f"### {LABELS[figure]}\n", markdown(summary, figure)]
    return "\n".join(parts)


def _has_delivered(summary: TableSummary) -> bool:
    return any(entry.estimate(DELIVERED) is not None for entry in summary.entries.values())


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
    """Draw the TAF curves of a table, of the methods that have a style, and return the matplotlib figure."""
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
