"""What every benchmark needs: a fair clock, and a row of the table of results."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    work : str
        What is done.
    against : str
        What it is compared with.
    ratio : float
        The figure: a quotient of two times, or whatever `target` is about.
    target : str
        What the figure must be, in words, e.g. ``"≤ 2.5 ×"``.
    met : bool
        Whether it is.
    detail : str
        The measurements behind the figure.
    """

    work: str
    against: str
    ratio: float
    target: str
    met: bool
    detail: str

    @classmethod
    def at_most(cls, limit: float, *, work: str, against: str, ours: float, theirs: float, note: str = "") -> "Row":
        """Return the row of a work that may take at most `limit` times as long as another."""
        ratio = ours / theirs
        return cls(work, against, ratio, f"≤ {limit:g} ×", ratio <= limit, _times(ours, theirs, note))

    @classmethod
    def at_least(cls, factor: float, *, work: str, against: str, ours: float, theirs: float, note: str = "") -> "Row":
        """Return the row of a work that must be at least `factor` times faster than another."""
        ratio = theirs / ours
        return cls(work, against, ratio, f"≥ {factor:,g} × faster", ratio >= factor, _times(ours, theirs, note))


def _times(ours: float, theirs: float, note: str) -> str:
    return f"{duration(ours)} against {duration(theirs)}" + (f"; {note}" if note else "")


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it.

    Examples
    --------
    >>> duration(0.0042), duration(12.3)
    ('4.20 ms', '12.3 s')
    """
    return f"{1e3 * seconds:.2f} ms" if seconds < 1.0 else f"{seconds:.1f} s"


def race(rivals: dict[str, Callable[[], Any]], *, repeats: int = 9) -> dict[str, float]:
    """Return the median seconds of each rival, after one warm-up of each.

    The rivals take turns, so that whatever else the machine does falls on all of them alike.
    """
    for run in rivals.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(repeats):
        for name, run in rivals.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(of_rival) for name, of_rival in times.items()}


def median_seconds(run: Callable[[], Any], *, repeats: int = 9) -> float:
    """Return the median seconds of `run`, after one warm-up."""
    return race({"it": run}, repeats=repeats)["it"]
