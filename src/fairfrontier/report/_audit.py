"""The audit of models: points, intervals, what a fair stack would reach, and the findings."""

from typing import Any

from fairfrontier.chunks._files import gathered
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.report._evaluate import Evaluation, evaluate_chunks
from fairfrontier.report._intervals import fauc_bounds
from fairfrontier.report._stack import family_name, trial
from fairfrontier.report._summarise import Settings, summarise

NO_INTERVAL = "There is no confidence interval of FAUC: resampling needs all rows in memory; these came in chunks."


def summarise_rows(
    chunks: StreamedChunks, settings: Settings, *, stack: bool = True, in_memory: bool = False
) -> dict[str, Any]:
    """Evaluate models and return all that a report shows.

    Parameters
    ----------
    chunks : StreamedChunks
        Labels, groups and scores.
    settings : Settings
        What was asked.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    in_memory : bool
        Whether the rows are one chunk in memory; else there is no interval.
    """
    base = evaluate_chunks(chunks, **settings.measures())
    bounds = bounds_in_memory(chunks, base, settings) if in_memory else None
    tried, note = trial(chunks, base, settings, in_memory=in_memory) if stack else (None, "")
    notes = [text for text in (note, "" if bounds else NO_INTERVAL) if text]
    return summarise(
        base, settings.with_notes(*notes), stack=tried, stack_family=family_name(chunks.names), interval=bounds
    )


def bounds_in_memory(chunks: StreamedChunks, base: Evaluation, settings: Settings) -> tuple[float, float]:
    """Return the confidence interval of FAUC from rows that are in memory."""
    options: dict[str, Any] = {
        "weight": settings.weight,
        "confidence": settings.confidence,
        "measures": settings.measures(),
    }
    return fauc_bounds(gathered(chunks), base, **options)
