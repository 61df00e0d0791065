"""Audits without labels: whom models select, group by group, and New York City's table of impact ratios."""

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfrontier._csv import to_csv
from fairfrontier._rows import Rows
from fairfrontier._version import __version__
from fairfrontier.chunks import Chunks
from fairfrontier.metrics._contrasts import build_contrasts
from fairfrontier.metrics._sums import KeyedSums, keyed_sums
from fairfrontier.report._evaluate import GroupCounts, judged_sets
from fairfrontier.report._summarise import Settings, attribute_summary
from fairfrontier.report._tables import groups_csv
from fairfrontier.report._words import overview

# Categories below this share of all rows may be left out of an impact ratio by New York City's rules.
_SMALL_SHARE = 0.02


@dataclass(frozen=True)
class _SumDecisions:
    """The function from rows, whose scores are decisions, to their sums over groups."""

    def __call__(self, rows: Rows) -> KeyedSums:
        return keyed_sums(rows, labelled=False, threshold=None)


def count_selected(
    chunks: Chunks, *, sensitive_mode: str = "separate", min_group: int = 0
) -> tuple[Any, tuple[GroupCounts, ...]]:
    """Count whom models select, group by group, in one pass.

    Parameters
    ----------
    chunks : Chunks
        Groups, and decisions 0 and 1 in place of scores; labels are not needed.
    sensitive_mode, min_group
        As in `evaluate`.

    Returns
    -------
    ndarray of shape (k,), tuple of GroupCounts
        Fairness (demographic parity) of each model, and the counts of each attribute.
    """
    keyed = chunks.sum(_SumDecisions())
    contrasts = build_contrasts("demographic_parity", keyed.keys, keyed.attributes, sensitive_mode=sensitive_mode)
    sums = keyed.in_order(contrasts.keys)
    sets = judged_sets(contrasts.sets, contrasts.membership @ keyed.rows, min_group)
    fairness = np.clip(1.0 - sets.largest_gap(contrasts.rates(sums.outcome, sums.weight)), 0.0, 1.0)
    groups = []
    for attribute in contrasts.attributes:
        member = np.stack([attribute.codes == code for code in range(len(attribute.values))]).astype(np.float64)
        rows, selected = member @ sums.weight, (member @ sums.outcome).T
        nothing = np.zeros_like(selected)
        names = tuple(str(value) for value in attribute.values)
        groups.append(GroupCounts(attribute.name, names, rows, rows * 0, nothing, selected, rows >= min_group))
    return fairness, tuple(groups)


def summarise_selections(chunks: Chunks, settings: Settings, *, rule: str) -> dict[str, Any]:
    """Return all that a report without labels shows.

    Parameters
    ----------
    chunks : Chunks
        Groups and decisions.
    settings : Settings
        What was asked.
    rule : str
        What makes a decision of a score, in words.
    """
    fairness, groups = count_selected(chunks, sensitive_mode=settings.sensitive_mode, min_group=settings.min_group)
    names = list(chunks.names)
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
            "sensitive_mode": settings.sensitive_mode,
            "rule": rule,
        },
        "regression": False,
        "notes": list(settings.notes),
        "trail": None,
        "n_rows": int(groups[0].rows.sum()),
        "n_models": len(names),
        "models": {"names": names, "fairness": fairness.tolist()},
        "attributes": [attribute_summary(counts, _fairness(counts), len(names), settings) for counts in groups],
        "subject": names.index(settings.baseline) if settings.baseline is not None else 0,
    }
    summary["overview"] = overview(summary)
    summary["groups_csv"] = groups_csv(summary)
    return summary


def _fairness(counts: GroupCounts) -> list[float]:
    """Return 1 minus the largest difference between the rates of two judged groups, for each model."""
    judged = counts.judged if counts.judged.sum() >= 2 else np.ones(len(counts.rows), dtype=bool)
    rates = counts.selection_rates()[:, judged]
    fairness: list[float] = (1.0 - (rates.max(axis=1) - rates.min(axis=1))).tolist()
    return fairness


def ll144_csv(chunks: Chunks) -> str:
    """Return the table that New York City's Local Law 144 asks for: no line of it says pass or fail.

    One line per model and category of each attribute, and of their combinations: applicants, selected (or scored above
    the median), the rate, and the impact ratio, which divides by the highest rate. Categories of less than 2 % of the
    applicants are marked.
    """
    header = ["model", "categories", "category", "applicants", "selected", "rate", "impact_ratio", "remark"]
    parts = [count_selected(chunks)[1]]
    if len(parts[0]) > 1:
        parts.append(count_selected(chunks, sensitive_mode="intersectional")[1])
    rows: list[list[Any]] = []
    for i, model in enumerate(chunks.names):
        for counts in (counts for part in parts for counts in part):
            rates, total = counts.selection_rates()[i], counts.rows.sum()
            small = counts.rows < _SMALL_SHARE * total
            highest = rates[~small].max() if (~small).any() else rates.max()
            for g, group in enumerate(counts.groups):
                ratio = rates[g] / highest if highest > 0 else None
                remark = "less than 2 % of the applicants" if small[g] else ""
                line = [model, counts.attribute, group, int(counts.rows[g]), int(counts.selected[i, g]), rates[g]]
                rows.append([*line, ratio, remark])
    return to_csv(header, rows)
