"""The headline: what every method delivers, on both tracks and for both measures."""

from collections.abc import Mapping, Sequence

from fairfrontier.benchmark._averages import DELIVERED, MISS_SHARE, MISS_SIZE, TableSummary
from fairfrontier.benchmark._methods import CHAMPIONS, METHODS
from fairfrontier.benchmark._paper_tables import (
    LABELS,
    column_title,
    comparison_markdown,
    markdown,
    markdown_rows,
    short,
    table_title,
)
from fairfrontier.benchmark._records import TRACKS
from fairfrontier.benchmark._task_data import AWARE
from fairfrontier.benchmark._tasks import TASKS

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


def short_table(summaries: Sequence[TableSummary], rows: Mapping[str, str], table: str = "dp") -> str:
    """Return a small table of delivered figures with the track of each row, as a README shows it.

    Parameters
    ----------
    summaries : sequence of TableSummary
        Of the tracks.
    rows : dict of str to str
        From the key of a method to its name in the table.
    table : str
        "dp" or "eo".
    """
    wanted = [summary for summary in summaries if summary.table == table]
    found_tasks = dict.fromkeys(task for summary in wanted for task in summary.tasks)
    tasks = sorted(found_tasks, key=lambda task: list(TASKS).index(task) if task in TASKS else len(TASKS))
    lines = [["", "track", *(column_title(task) for task in tasks)]]
    for summary in wanted:
        for key, title in rows.items():
            method = METHODS[table][key]
            cells = []
            for task in tasks:
                found = summary.entry(method, task).estimate(DELIVERED)
                best = summary.best(task, aware=method.aware, figure=DELIVERED) == key
                shown = "–" if found is None else short(found.mean)
                if found is not None and found.count < summary.splits(task, DELIVERED):
                    shown += f" ({found.count} split{'s' if found.count > 1 else ''})"
                cells.append(f"**{shown}**" if best and found is not None else shown)
            if any(cell != "–" for cell in cells):
                track = (
                    f"aware, {TRACKS[summary.track]}" if method.kind(summary.track) == AWARE else TRACKS[summary.track]
                )
                lines.append([title, track, *cells])
    return markdown_rows(lines)
