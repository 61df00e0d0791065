"""The headline: what every method delivers, on both tracks and for both measures."""

from collections.abc import Sequence

from fairfrontier.benchmark._averages import DELIVERED, MISS_SHARE, MISS_SIZE, TableSummary
from fairfrontier.benchmark._methods import CHAMPIONS, METHODS
from fairfrontier.benchmark._paper_tables import (
    LABELS,
    comparison_markdown,
    markdown,
    table_title,
)

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
