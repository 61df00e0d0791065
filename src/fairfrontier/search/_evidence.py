"""The decisions on which all verdicts rest, saved so that anybody can compute the verdicts again."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._writing import write_atomically
from fairfrontier.exceptions import DataFileError
from fairfrontier.search._counts import Counts, count
from fairfrontier.search._result import SearchVerdict, search_verdict

_PARTS = ("calibrate", "report")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels, groups and decisions on the calibration and the report rows.

    Attributes
    ----------
    plan : str
        Hash of the plan.
    names : tuple of str
        The candidates.
    y, baseline : dict of str to ndarray of shape (n,), bool
        Labels and the baseline's decisions in each of the two parts.
    sensitive : dict of str to dict of str to ndarray of str
        The groups in each part.
    decisions : dict of str to ndarray of shape (n, k), bool
        The candidates' decisions in each part.
    settings : dict
        Measure, margin, confidence, what is required, which candidate is to meet it, and the share of report rows.
    """

    plan: str
    names: tuple[str, ...]
    y: Mapping[str, NDArray[np.bool_]]
    sensitive: Mapping[str, dict[str, NDArray[Any]]]
    baseline: Mapping[str, NDArray[np.bool_]]
    decisions: Mapping[str, NDArray[np.bool_]]
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
            margin=self.settings["margin"],
            confidence=self.settings["confidence"],
            required=self.settings["required"],
            possible=self.settings["possible"],
            min_fairness=self.settings["min_fairness"],
            min_ratio=self.settings["min_ratio"],
            report_share=self.settings["report_share"],
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
