"""What a search found: candidates, verdicts, growth and delivered figures, as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.quantify._promise import promised_candidates
from fairfrontier.search._counts import Counts
from fairfrontier.search._verdict import UNDECIDED, Tested, examine, overall_verdict


@dataclass(frozen=True)
class Candidate:
    """One candidate against the baseline, on rows that nothing has seen.

    Attributes
    ----------
    name : str
        A single model such as ``boosting/trees_0``, a stack of the path, or ``required``.
    verdict : {"alternative", "not", "cannot tell"}
        Whether it is an alternative, with the stated confidence for all candidates together.
    fairness, ratio, accuracy : float
        On the report rows; the ratio of the lowest to the highest rate (of demographic parity: selection rates).
    accuracy_difference, accuracy_low, accuracy_high : float
        Accuracy minus the baseline's, with two one-sided limits at the stated confidence, not corrected.
    gain, gain_low, gain_high : float
        The baseline's disparity minus the candidate's, likewise.
    p_value : float
        Of the test that it is no alternative, not corrected.
    order : int
        Its place in the sequence of tests, from 1.
    rows_needed : int or None
        How many rows in all the search would take to tell; None: it has been told, or no number of rows would do.
    """

    name: str
    verdict: str
    fairness: float
    ratio: float
    accuracy: float
    accuracy_difference: float
    accuracy_low: float
    accuracy_high: float
    gain: float
    gain_low: float
    gain_high: float
    p_value: float
    order: int
    rows_needed: int | None


@dataclass(frozen=True, eq=False)
class SearchVerdict:
    """The verdict on a search.

    Attributes
    ----------
    verdict : {"alternative", "none", "cannot tell"}
        Whether the chosen candidate is an alternative; "none": no candidate that is eligible is one.
    chosen : int
        The candidate that was chosen before the report rows were looked at.
    candidates : tuple of Candidate
        All of them.
    pair : (str, str)
        The row sets with the baseline's largest gap, by which gains are measured.
    baseline : dict
        Fairness, ratio and accuracy of the baseline on the report rows.
    promised : dict or None
        What is required and shown on the report rows, with the confidence; None: nothing is.
    """

    verdict: str
    chosen: int
    candidates: tuple[Candidate, ...]
    pair: tuple[str, str]
    baseline: dict[str, float]
    promised: dict[str, float] | None


def search_verdict(
    names: Sequence[str],
    calibrate: Counts,
    report: Counts,
    *,
    margin: float,
    confidence: float,
    required: int | None = None,
    possible: bool = True,
    min_fairness: float | None = None,
    min_ratio: float | None = None,
    report_share: float = 1.0,
) -> SearchVerdict:
    """Choose on the calibration rows, then test on the report rows.

    Parameters
    ----------
    names : sequence of str
        The candidates.
    calibrate, report : Counts
        Decisions on the rows that fix the choice and the order of the tests, and on rows that nothing has seen.
    margin, confidence : float
        Of the verdict.
    required : int, optional
        The candidate that meets the user's requirement: only it can then be the search's alternative.
    possible : bool
        Whether the required candidate is more than the same decision for everyone.
    min_fairness, min_ratio : float, optional
        What is required. It is promised if an exact test on the report rows shows it.
    report_share : float
        The report rows as a share of all rows.
    """
    tested = examine(calibrate, report, margin=margin, confidence=confidence, required=required)
    pair = tested.pair
    asked = {"fairness": min_fairness, "ratio": min_ratio}
    wanted = {name: value for name, value in asked.items() if value is not None}
    kept = bool(wanted) and required is not None and possible and _shown(report.of([required]), wanted, confidence)
    return SearchVerdict(
        overall_verdict(tested.verdicts, tested.chosen, required, kept or not wanted),
        tested.chosen,
        tuple(_candidates(names, report, tested, margin, 1.0 - confidence, report_share)),
        (report.sets.names[pair[0]], report.sets.names[pair[1]]),
        {**_figures(report.base_rates()[None], report)[0], "accuracy": report.base_accuracy()},
        {**wanted, "confidence": confidence} if kept else None,
    )


def _shown(counts: Counts, wanted: dict[str, float], confidence: float) -> bool:
    """Tell whether one candidate is shown to meet a requirement."""
    asked: dict[str, Any] = {f"min_{name}": value for name, value in wanted.items()}
    positives = counts.membership @ counts.chosen
    found = promised_candidates(positives.T, counts.sizes(), counts.sets, confidence=confidence, order=[0], **asked)
    return bool(found.promised[0])


def _figures(rates: FloatArray, counts: Counts) -> list[dict[str, float]]:
    """Return fairness and ratio from rates (k, s)."""
    fair = counts.sets.fairness(rates)
    ratios = []
    for block in counts.sets.blocks:
        of_block = rates[:, list(block)]
        highest = of_block.max(axis=1)
        ratios.append(np.where(highest > 0.0, of_block.min(axis=1) / np.where(highest > 0.0, highest, 1.0), 0.0))
    lowest = np.min(ratios, axis=0)
    return [{"fairness": float(one), "ratio": float(ratio)} for one, ratio in zip(fair, lowest, strict=True)]


def _candidates(
    names: Sequence[str], report: Counts, tested: Tested, margin: float, level: float, share: float
) -> list[Candidate]:
    found, order, each = tested.comparison, tested.order, tested.verdicts
    figures, accuracy = _figures(report.rates(), report), report.accuracy()
    p, gain = found.p_values(margin), found.gain
    accuracy_low, accuracy_high = found.accuracy_limits(level)
    gain_low, gain_high = found.limits(level)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(1, len(order) + 1)
    made = []
    for i, (name, rows) in enumerate(zip(names, found.rows_needed(margin, level), strict=True)):
        made.append(
            Candidate(
                name,
                each[i],
                **figures[i],
                accuracy=float(accuracy[i]),
                accuracy_difference=float(found.accuracy[i]),
                accuracy_low=float(accuracy_low[i]),
                accuracy_high=float(accuracy_high[i]),
                gain=float(gain[i]),
                gain_low=float(gain_low[i]),
                gain_high=float(gain_high[i]),
                p_value=float(p[i]),
                order=int(place[i]),
                rows_needed=None if rows is None or each[i] != UNDECIDED else int(np.ceil(rows / share)),
            )
        )
    return made


def changes(
    y: NDArray[np.bool_],
    sensitive: dict[str, NDArray[Any]],
    baseline: NDArray[np.bool_],
    decisions: NDArray[np.bool_],
) -> list[dict[str, Any]]:
    """Return for each group how the baseline and the chosen model decide, and who is decided otherwise."""
    found = []
    for name, values in sensitive.items():
        for group in sorted({str(value) for value in values.tolist()}):
            rows = values.astype(str) == group
            old, new, label = baseline[rows], decisions[rows], y[rows]
            found.append(
                {
                    "attribute": name,
                    "group": group,
                    "rows": int(rows.sum()),
                    "rate_before": float(old.mean()),
                    "rate_after": float(new.mean()),
                    "true_positive_rate_before": _mean(old[label]),
                    "true_positive_rate_after": _mean(new[label]),
                    "false_positive_rate_before": _mean(old[~label]),
                    "false_positive_rate_after": _mean(new[~label]),
                    "newly_positive": int((new & ~old).sum()),
                    "newly_negative": int((old & ~new).sum()),
                }
            )
    return found


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None
