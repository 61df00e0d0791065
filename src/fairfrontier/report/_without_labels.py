"""Audits without labels: whom models select, group by group, and New York City's table of impact ratios."""

import datetime
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fairfrontier._version import __version__
from fairfrontier.chunks import Chunks
from fairfrontier.metrics import ACCURACY_MEASURES
from fairfrontier.metrics._contrasts import build_contrasts
from fairfrontier.metrics._sums import KeyedSums, Sums, keyed_sums
from fairfrontier.report._evaluate import GroupCounts, check_reference, group_counts, judged_sets, reference_notes
from fairfrontier.report._prepare import UNKNOWN
from fairfrontier.report._summarise import Settings, attribute_summary
from fairfrontier.report._words import overview

# Categories below this share of all rows may be left out of an impact ratio by New York City's rules.
_SMALL_SHARE = 0.02


def count_selected(
    keyed: KeyedSums, *, sensitive_mode: str = "separate", min_group: int = 0
) -> tuple[Any, tuple[GroupCounts, ...]]:
    """Count whom models select, group by group."""
    contrasts = build_contrasts("demographic_parity", keyed.keys, keyed.attributes, sensitive_mode=sensitive_mode)
    sums = keyed.in_order(contrasts.keys)
    sets = judged_sets(contrasts.sets, contrasts.membership @ keyed.rows, min_group)
    fairness = np.clip(1.0 - sets.largest_gap(contrasts.rates(sums.outcome, sums.weight)), 0.0, 1.0)
    found = Sums(sums, contrasts, keyed.rows, keyed.square, ACCURACY_MEASURES["accuracy"])
    return fairness, group_counts(found, sums.outcome, min_group)


def summarise_selections(chunks: Chunks, settings: Settings) -> dict[str, Any]:
    """Return all that a report without labels shows, from one pass over the rows."""
    keyed = chunks.sum(partial(keyed_sums, labelled=False, threshold=None))  # scores are decisions
    mode, names = settings.sensitive_mode, list(chunks.names)
    fairness, groups = count_selected(keyed, sensitive_mode=mode, min_group=settings.min_group)
    check_reference(settings.reference, groups)
    summary: dict[str, Any] = {
        "generator": f"fairfrontier {__version__}",
        "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "title": settings.title,
        "source": settings.source,
        "settings": {
            "confidence": settings.confidence,
            "min_group": settings.min_group,
            "reference": dict(settings.reference),
            "baseline": settings.baseline,
            "sensitive": [counts.attribute for counts in groups],
            "sensitive_mode": mode,
            "rule": settings.rule,
            "sample_weight": settings.sample_weight,
        },
        "labelled": False,
        "regression": False,
        "notes": [*settings.notes, *reference_notes(settings.reference, groups, settings.min_group)],
        "trail": None,
        "n_rows": int(keyed.rows.sum()),
        "n_models": len(names),
        "models": {"names": names, "fairness": fairness.tolist()},
        "attributes": [attribute_summary(counts, _fairness(counts), len(names), settings) for counts in groups],
        "subject": names.index(settings.baseline) if settings.baseline is not None else 0,
    }
    summary["overview"] = overview(summary)
    summary["ll144"] = ll144_rows(names, keyed) if settings.sample_weight is None else None
    return summary


def _fairness(counts: GroupCounts) -> list[float]:
    """Return 1 minus the largest difference between the rates of two judged groups, for each model."""
    judged = counts.judged if counts.judged.sum() >= 2 else np.ones(len(counts.rows), dtype=bool)
    rates = counts.selection_rates()[:, judged]
    fairness: list[float] = (1.0 - (rates.max(axis=1) - rates.min(axis=1))).tolist()
    return fairness


def ll144_rows(names: Sequence[str], keyed: KeyedSums) -> list[list[Any]]:
    """Return the table that New York City's Local Law 144 asks for: no line of it says pass or fail.

    One line per model and category of each attribute, and of their combinations: applicants, selected (or scored above
    the median), the rate, and the impact ratio, which divides by the highest rate. Categories of less than 2 % of the
    applicants are marked; applicants whose category is unknown are counted and have no ratio.
    """
    parts = list(count_selected(keyed)[1])
    if len(parts) > 1:
        parts += count_selected(keyed, sensitive_mode="intersectional")[1]
    return [row for i, model in enumerate(names) for counts in parts for row in _categories(model, i, counts)]


def _categories(model: str, position: int, counts: GroupCounts) -> Sequence[list[Any]]:
    """Return the lines of one model and one attribute, or combination of attributes."""
    rates = counts.selection_rates()[position]
    unknown = np.array([UNKNOWN in group for group in counts.groups])
    small = counts.rows < _SMALL_SHARE * counts.rows[~unknown].sum()
    large = ~small & ~unknown
    highest = rates[large].max() if large.any() else rates[~unknown].max()
    lines = []
    for g, group in enumerate(counts.groups):
        ratio = float(rates[g] / highest) if highest > 0 and not unknown[g] else None
        remark = (
            "unknown: no part of the ratios" if unknown[g] else "less than 2 % of the applicants" if small[g] else ""
        )
        line = [model, counts.attribute, group, int(counts.rows[g]), int(counts.selected[position, g]), float(rates[g])]
        lines.append([*line, ratio, remark])
    return lines
