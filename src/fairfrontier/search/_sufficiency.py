"""Was the search sufficient? How the frontier grew, what more search could gain, and when to stop."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Two checkpoints in a row that gain less than this end the search.
ENOUGH = 0.0005
# Gains are taken to shrink by a factor of at most this from one checkpoint to the next.
_SLOWEST = 0.9


@dataclass(frozen=True)
class Checkpoint:
    """The frontier after some steps.

    Attributes
    ----------
    steps, models : int
        Steps done and base models trained.
    fauc : float
        Area under the cross-validated frontier of fair stacks, over fairness from 0.8 to 1.
    """

    steps: int
    models: int
    fauc: float


@dataclass(frozen=True)
class Sufficiency:
    """What more search could gain.

    Attributes
    ----------
    last_gain : float
        What the last checkpoint gained: mean accuracy over the levels of fairness.
    expected : float
        What all further search would gain if gains kept shrinking as they did.
    bound : float
        The same if they shrank as slowly as seems possible, from the larger of the last two gains.
    enough : bool
        Whether the rule to stop holds: two checkpoints in a row gained less than `ENOUGH`.
    """

    last_gain: float
    expected: float
    bound: float
    enough: bool


def sufficiency(checkpoints: Sequence[Checkpoint]) -> Sufficiency | None:
    """Return what more search could gain; None: there are fewer than three checkpoints.

    Examples
    --------
    >>> found = sufficiency([Checkpoint(2, 3, 0.80), Checkpoint(5, 110, 0.84), Checkpoint(9, 220, 0.85)])
    >>> round(found.last_gain, 3), round(found.expected, 4), round(found.bound, 3), found.enough
    (0.01, 0.0033, 0.36, False)
    """
    if len(checkpoints) < 3:
        return None
    # What was reached at any time is not lost: the search keeps all of its models.
    best = np.maximum.accumulate([one.fauc for one in checkpoints])
    gains = np.diff(best)
    ratios = gains[1:][gains[:-1] > 0] / gains[:-1][gains[:-1] > 0]
    factor = float(np.clip(np.median(ratios) if len(ratios) else 0.0, 0.0, _SLOWEST))
    last = float(gains[-1])
    slow = float(max(gains[-2:]))
    return Sufficiency(
        last, last * factor / (1.0 - factor), slow * _SLOWEST / (1.0 - _SLOWEST), bool((gains[-2:] < ENOUGH).all())
    )
