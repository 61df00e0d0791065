"""The decisions on which all verdicts rest, saved so that anybody can check them, and the verdict of a search."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier._writing import write_atomically
from fairfrontier.exceptions import DataFileError
from fairfrontier.quantify._promise import promised_candidates
from fairfrontier.search._verdict import UNDECIDED, Counts, Tested, count, examine, overall_verdict

_PARTS = ("calibrate", "report")
# What the verdict depends on beside the counts.
_TESTED_WITH = ("margin", "confidence", "required", "possible", "min_fairness", "min_ratio", "report_share")


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
    """The verdict on a search."""

    verdict: str  # whether the chosen candidate is an alternative; "none": no candidate that is eligible is one
    chosen: int  # the candidate that was chosen before the report rows were looked at
    candidates: tuple[Candidate, ...]  # all of them
    pair: tuple[str, str]  # the row sets with the baseline's largest gap, by which gains are measured
    baseline: dict[str, float]  # fairness, ratio and accuracy of the baseline on the report rows
    # what is required and shown on the report rows, with the confidence; None: nothing is
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
    """Choose on the calibration rows, then test on the report rows, which are a share `report_share` of all rows.

    If something is required, only the candidate number `required` can be the search's alternative; it is `possible`
    that it meets it unless it is the same decision for everyone.
    """
    tested = examine(calibrate, report, margin=margin, confidence=confidence, required=required)
    pair = tested.pair
    asked = {"fairness": min_fairness, "ratio": min_ratio}
    wanted = {name: value for name, value in asked.items() if value is not None}
    kept = bool(wanted) and required is not None and possible and _shown(report.of([required]), wanted, confidence)
    base = _figures(report.base_rates()[None], report)
    return SearchVerdict(
        overall_verdict(tested.verdicts, tested.chosen, required, kept or not wanted),
        tested.chosen,
        tuple(_candidates(names, report, tested, margin, 1.0 - confidence, report_share)),
        (report.sets.names[pair[0]], report.sets.names[pair[1]]),
        {key: float(value[0]) for key, value in base.items()} | {"accuracy": report.base_accuracy()},
        {**wanted, "confidence": confidence} if kept else None,
    )


def _shown(counts: Counts, wanted: dict[str, float], confidence: float) -> bool:
    """Tell whether one candidate is shown to meet a requirement."""
    asked: dict[str, Any] = {f"min_{name}": value for name, value in wanted.items()}
    positives = counts.membership @ counts.chosen
    found = promised_candidates(positives.T, counts.sizes(), counts.sets, confidence=confidence, order=[0], **asked)
    return bool(found[0])


def _figures(rates: FloatArray, counts: Counts) -> dict[str, FloatArray]:
    """Return fairness (k,) and ratio (k,) from rates (k, s)."""
    ratios = []
    for block in counts.sets.blocks:
        of_block = rates[:, list(block)]
        highest = of_block.max(axis=1)
        ratios.append(np.where(highest > 0.0, of_block.min(axis=1) / np.where(highest > 0.0, highest, 1.0), 0.0))
    return {"fairness": counts.sets.fairness(rates), "ratio": np.min(ratios, axis=0)}


def _candidates(
    names: Sequence[str], report: Counts, tested: Tested, margin: float, level: float, share: float
) -> list[Candidate]:
    found, each = tested.comparison, tested.verdicts
    columns = _figures(report.rates(), report) | {"accuracy": report.accuracy(), "gain": found.gain}
    columns |= {"accuracy_difference": found.accuracy, "p_value": found.p_values(margin)}
    columns["accuracy_low"], columns["accuracy_high"] = found.accuracy_limits(level)
    columns["gain_low"], columns["gain_high"] = found.limits(level)
    order = np.argsort(tested.order) + 1
    made = []
    for i, (name, rows) in enumerate(zip(names, found.rows_needed(margin, level), strict=True)):
        needed = None if rows is None or each[i] != UNDECIDED else int(np.ceil(rows / share))
        figures = {key: float(values[i]) for key, values in columns.items()}
        made.append(Candidate(name, each[i], **figures, order=int(order[i]), rows_needed=needed))
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


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels, groups and decisions on the calibration and the report rows."""

    plan: str  # hash of the plan
    names: tuple[str, ...]  # the candidates
    # y, baseline (n,): labels and the baseline's decisions in each of the two parts
    y: Mapping[str, NDArray[np.bool_]]
    sensitive: Mapping[str, dict[str, NDArray[Any]]]  # the groups in each part
    baseline: Mapping[str, NDArray[np.bool_]]
    decisions: Mapping[str, NDArray[np.bool_]]  # (n, k): the candidates' decisions in each part
    # measure, margin, confidence, what is required, which candidate is to meet it, and the share of report rows
    settings: dict[str, Any]

    @property
    def n_report(self) -> int:
        """Return the number of report rows."""
        return len(self.y["report"])

    def counts(self, part: str) -> Counts:
        """Return the counts of one part."""
        return count(
            self.y[part],
            self.sensitive[part],
            self.baseline[part],
            self.decisions[part],
            fairness=self.settings["fairness"],
            sensitive_mode=self.settings["sensitive_mode"],
        )

    def verdict(self) -> SearchVerdict:
        """Choose, test, and return the verdicts."""
        return search_verdict(
            self.names,
            self.counts("calibrate"),
            self.counts("report"),
            **{name: self.settings[name] for name in _TESTED_WITH},
        )

    def save(self, path: Path) -> None:
        """Write everything into one file of arrays, without anything that could be run."""
        arrays: dict[str, Any] = {}
        groups: dict[str, list[str]] = {}
        for part in _PARTS:
            arrays[f"{part}_y"] = self.y[part]
            arrays[f"{part}_baseline"] = self.baseline[part]
            arrays[f"{part}_decisions"] = np.packbits(self.decisions[part], axis=0)
            for i, (name, values) in enumerate(self.sensitive[part].items()):
                groups.setdefault(name, sorted({str(v) for one in self.sensitive.values() for v in one[name].tolist()}))
                position = {group: j for j, group in enumerate(groups[name])}
                arrays[f"{part}_group_{i}"] = np.array([position[str(v)] for v in values.tolist()], dtype=np.int32)
        about = {"plan": self.plan, "names": list(self.names), "groups": groups, "settings": self.settings}
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_atomically(path, content.getvalue())

    @classmethod
    def load(cls, path: Path) -> "Evidence":
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as found:
                arrays = dict(found)
            about = json.loads(arrays["about"].tobytes())
            groups: dict[str, list[str]] = about["groups"]
            sensitive = {
                part: {
                    name: np.array(values, dtype=object)[arrays[f"{part}_group_{i}"]]
                    for i, (name, values) in enumerate(groups.items())
                }
                for part in _PARTS
            }
            y = {part: arrays[f"{part}_y"].astype(bool) for part in _PARTS}
            decisions = {
                part: np.unpackbits(arrays[f"{part}_decisions"], axis=0, count=len(y[part])).astype(bool)
                for part in _PARTS
            }
            baseline = {part: arrays[f"{part}_baseline"].astype(bool) for part in _PARTS}
            return cls(about["plan"], tuple(about["names"]), y, sensitive, baseline, decisions, about["settings"])
        except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError) as error:
            raise DataFileError(f"{path.name} must be the evidence of a search; it cannot be read: {error}") from None
