"""What was asked on the command line, checked, and the data that it is about."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairfrontier._cli.options import parse_weight
from fairfrontier._cli.read import MAX_GROUPS, AuditData, read_data
from fairfrontier._cli.tables import open_file, shown
from fairfrontier._validation import number, one_of
from fairfrontier.exceptions import GroupError
from fairfrontier.metrics import ACCURACY_MEASURES, MEASURES
from fairfrontier.quantify._weights import Weight
from fairfrontier.report import Settings


@dataclass(frozen=True)
class Request:
    """The options of one command, as they were given; `checked` says whether they make sense."""

    file: Path
    label: str
    sensitive: tuple[str, ...]
    scores: tuple[str, ...] = ()
    positive: str | None = None
    fairness: str = "demographic_parity"
    accuracy: str = "accuracy"
    weight: str = "step:0.8"
    threshold: float = 0.5
    confidence: float = 0.95
    sensitive_mode: str = "separate"
    min_fairness: float = 0.95
    delimiter: str = ","
    title: str | None = None

    def checked(self) -> Weight:
        """Return the weight; raise for a value that no option may have, before the file is read."""
        one_of(self.fairness, MEASURES, parameter="--fairness")
        one_of(self.accuracy, ACCURACY_MEASURES, parameter="--accuracy")
        one_of(self.sensitive_mode, ("separate", "intersectional"), parameter="--sensitive-mode")
        number(self.threshold, parameter="--threshold", low=0.0, high=1.0)
        number(self.min_fairness, parameter="--min-fairness", low=0.0, high=1.0)
        number(self.confidence, parameter="--confidence", low=0.0, high=1.0, strict=True)
        return parse_weight(self.weight)

    def measures(self) -> dict[str, Any]:
        """Return the options that `tradeoff_points` and all that values models have in common."""
        return {
            "fairness": self.fairness,
            "accuracy": self.accuracy,
            "threshold": self.threshold,
            "sensitive_mode": self.sensitive_mode,
        }


def read(request: Request) -> AuditData:
    """Read the request's file."""
    data = read_data(
        open_file(request.file, delimiter=request.delimiter),
        label=request.label,
        sensitive=request.sensitive,
        scores=request.scores,
        positive=request.positive,
        accuracy=request.accuracy,
        threshold=request.threshold,
    )
    if request.sensitive_mode == "intersectional":
        combinations = len(set(zip(*data.sensitive.values(), strict=True)))
        if combinations > MAX_GROUPS:
            raise GroupError(
                f"--sensitive-mode intersectional must make at most {MAX_GROUPS} groups; got {combinations}: name "
                "fewer attributes, or put their values into bands"
            )
    return data


def settings_of(request: Request, data: AuditData, weight: Weight, notes: tuple[str, ...] = ()) -> Settings:
    """Return what was asked, for the summary."""
    if data.left_out:
        notes = (*notes, f"Numeric columns outside [0, 1] are no scores and were left out: {shown(data.left_out)}.")
    count = len(data.names)
    return Settings(
        source=request.file.name,
        label=request.label,
        positive=data.positive,
        fairness=request.fairness,
        accuracy=request.accuracy,
        sensitive_mode=request.sensitive_mode,
        threshold=request.threshold,
        weight=weight,
        min_fairness=request.min_fairness,
        confidence=request.confidence,
        title=request.title or f"Fairness and accuracy of {count:,} model{'' if count == 1 else 's'}",
        notes=notes,
    )
