"""What was compared, how far apart it was, and what went wrong."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# So many problems that go wrong in one way are named; the others are counted.
_NAMED = 20


@dataclass
class Line:
    """Comparisons of one kind: their number, the largest deviation and its problem, and the problems that mismatch."""

    tolerance: float
    count: int = 0
    largest: float = 0.0
    problem: int = -1
    mismatches: int = 0
    named: list[int] = field(default_factory=list)

    def add(self, other: "Line") -> None:
        """Add the comparisons of another part of the problems."""
        self.count += other.count
        self.mismatches += other.mismatches
        self.named = sorted(self.named + other.named)[:_NAMED]
        if other.largest > self.largest:
            self.largest, self.problem = other.largest, other.problem


@dataclass
class Tally:
    """Everything that is counted, for one problem or for many."""

    lines: dict[str, Line] = field(default_factory=dict)
    crashes: list[tuple[int, str]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    problems: int = 0
    index: int = -1
    cpu_seconds: float = 0.0

    def compare(self, check: str, found: Any, expected: Any, *, tolerance: float, scale: float = 1.0) -> None:
        """Compare two numbers or arrays; the deviation is absolute, or relative to `scale`."""
        found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        deviation = (
            float(np.abs(found - expected).max(initial=0.0)) / scale if found.shape == expected.shape else np.inf
        )
        line = self.lines.setdefault(check, Line(tolerance))
        line.count += 1
        if not deviation <= line.largest:
            line.largest, line.problem = deviation, self.index
        if not deviation <= tolerance:
            line.mismatches += 1
            line.named = [*line.named, self.index][:_NAMED]

    def demand(self, check: str, holds: bool) -> None:
        """Count a statement that must hold."""
        self.compare(check, float(holds), 1.0, tolerance=0.0)

    def add(self, other: "Tally") -> None:
        """Add the counts of another part of the problems."""
        for check, line in other.lines.items():
            self.lines.setdefault(check, Line(line.tolerance)).add(line)
        self.crashes = sorted(self.crashes + other.crashes)
        self.refused.update(other.refused)
        self.problems += other.problems
        self.cpu_seconds += other.cpu_seconds

    @property
    def mismatches(self) -> int:
        return sum(line.mismatches for line in self.lines.values())


def write_record(path: Path | None, seed: int, first: int, tally: Tally) -> None:
    """Keep what came of the problems from number `first` on, as a line of JSON."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            kept = vars(tally) | {"lines": {check: asdict(line) for check, line in tally.lines.items()}}
            file.write(json.dumps({"seed": seed, "first": first, **kept}) + "\n")


def read_records(path: Path | None, seed: int) -> dict[int, Tally]:
    """Return what is kept of a seed, by the number of the first problem; a line that was cut off is left out."""
    found: dict[int, Tally] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if one.pop("seed") == seed:
            first = one.pop("first")
            lines = {check: Line(**of_check) for check, of_check in one.pop("lines").items()}
            crashes = [(index, error) for index, error in one.pop("crashes")]
            found[first] = Tally(lines, crashes, Counter(one.pop("refused")), **one)
    return found
