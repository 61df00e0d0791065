"""What any rule could reach with these features, behind the models of a report or a dossier."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairfrontier._validation import number
from fairfrontier.exceptions import InvalidInputError

if TYPE_CHECKING:  # an audit that has no such curve does without the learners behind them
    from fairfrontier.limit import AchievableFrontier

# What a report is given: one curve, or one for each track.
Achievable: TypeAlias = "AchievableFrontier | Mapping[str, AchievableFrontier]"


def achievable_summary(achievable: Achievable, have: float, min_fairness: float, *, fairness: str) -> dict[str, Any]:
    """Return curves with their bands, and the sentence about them, as JSON values.

    Parameters
    ----------
    achievable : AchievableFrontier, or dict of track to AchievableFrontier
        Blind, aware, or both.
    have : float
        The accuracy of what is there at `min_fairness`.
    min_fairness : float
        The level of fairness that the sentence is about.
    fairness : str
        The measure of the report, which must be that of the curves.

    Examples
    --------
    >>> from fairfrontier import achievable_frontier
    >>> group, x = np.repeat([0, 1], 500), np.tile([0, 0, 0, 1], 250)
    >>> y = (x + np.arange(1000) % 3 > 1).astype(int)
    >>> known = np.where(x == 1, 2 / 3, 1 / 3), np.full((1000, 2), 0.5)
    >>> best = achievable_frontier(None, y, sensitive_features=group, probabilities=known)
    >>> achievable_summary(best, 0.6, 0.95, fairness="demographic_parity")["sentence"]
    'At fairness 0.95 you have 0.600; 0.666 (0.636 to 0.696) is attainable with these features.'
    """
    curves = {one.track: one for one in ([achievable] if not isinstance(achievable, Mapping) else achievable.values())}
    for curve in curves.values():
        if curve.fairness != fairness:
            raise InvalidInputError(
                f"achievable must be of the measure {fairness!r}; got a curve of {curve.fairness!r}: make it with "
                f"achievable_frontier(fairness={fairness!r})"
            )
    level = number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
    return {
        "min_fairness": level,
        "have": have,
        "curves": [_plain(curves[track]) for track in ("blind", "aware") if track in curves],
        "sentence": _sentence(curves, have, level),
    }


def _plain(curve: "AchievableFrontier") -> dict[str, Any]:
    arrays = {part: getattr(curve, part).tolist() for part in ("grid", "accuracy", "low", "high")}
    return {"track": curve.track, "confidence": curve.confidence, "n_rows": curve.n_rows, **arrays}


def _sentence(curves: "Mapping[str, AchievableFrontier]", have: float, level: float) -> str:
    """Say what there is, what is attainable, and what knowing the attribute would add."""
    blind, aware = curves.get("blind"), curves.get("aware")
    said = f"At fairness {level:g} you have {have:.3f}; "
    first = blind or aware
    assert first is not None  # there is a curve, and it has one of the two tracks
    low, high = (float(np.interp(level, first.grid, end)) for end in (first.low, first.high))
    said += f"{first(level):.3f} ({low:.3f} to {high:.3f}) is attainable with these features"
    if blind is None:
        return said + " and the attribute."
    if aware is None:
        return said + "."
    return said + f"; knowing the attribute would add {max(0.0, aware(level) - blind(level)):.3f}."
