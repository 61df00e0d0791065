"""What a user requires: the stacks that may meet it, and which of them is likeliest to be shown to."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InfeasibleError
from fairfrontier.optimize import FairStacksClassifier, Selection
from fairfrontier.search._counts import Counts
from fairfrontier.search._verdict import compare, largest_pair

# How much fairer than required the stacks are that are considered, as shares of the way to perfect fairness.
_CUSHIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65)
# So probable is any verdict taken to be: where none is likely, the promise decides.
_LEAST_POWER = 0.01


@dataclass(frozen=True, eq=False)
class SearchRequirement:
    """What a user requires, and what became of it.

    Attributes
    ----------
    min_fairness, min_ratio, confidence : float or None
        What was asked for.
    selection : Selection or None
        What `select` found; None: nothing was asked for.
    problem : str
        Why no model meets it; empty if one may.
    """

    min_fairness: float | None
    min_ratio: float | None
    confidence: float
    selection: Selection | None = None
    problem: str = ""

    @property
    def asked(self) -> bool:
        return self.min_fairness is not None or self.min_ratio is not None

    def with_cushion(self, share: float) -> dict[str, Any]:
        """Return what to ask `select` for: so much of the way from what is required to perfect fairness."""
        asked = {"min_fairness": self.min_fairness, "min_ratio": self.min_ratio}
        return {name: None if one is None else one + share * (1.0 - one) for name, one in asked.items()}


def meeting(
    stack: FairStacksClassifier, requirement: SearchRequirement
) -> tuple[SearchRequirement, list[FairStacksClassifier]]:
    """Return stacks that probably meet a requirement: the most accurate ones, just so and by growing cushions."""
    if not requirement.asked:
        return requirement, []
    constant, found, problem = None, [], ""
    for share in _CUSHIONS:
        try:
            one = stack.select(**requirement.with_cushion(share))
        except InfeasibleError as error:
            problem = problem or str(error)
            continue
        if one.selection_ is not None and one.selection_.kind != "constant":
            found.append(one)
        elif constant is None:
            constant = one
    if found:
        return requirement, found
    if constant is None:
        return replace(requirement, problem=problem), []
    return replace(requirement, problem="only the same decision for everyone is fair enough."), [constant]


def likeliest(counts: Counts, requirement: SearchRequirement, *, margin: float, n_report: int) -> int:
    """Return which candidate is the likeliest to be shown to meet a requirement and to be an alternative.

    Parameters
    ----------
    counts : Counts
        Decisions on the calibration rows.
    requirement : SearchRequirement
        What is to be shown.
    margin : float
        Of accuracy.
    n_report : int
        Rows of the tests.
    """
    level = 1.0 - requirement.confidence
    verdict = compare(counts, largest_pair(counts)).foreseen(margin, level, n_report)
    return int(np.argmax(_promise_probability(counts, requirement, n_report) * np.maximum(verdict, _LEAST_POWER)))


def _promise_probability(counts: Counts, requirement: SearchRequirement, n_report: int) -> FloatArray:
    """Return about how probable (k,) it is that other rows show what is required, given these rows."""
    # A pair of rates p, q keeps a ratio c if q - c p is positive, and a fairness f if q - p + 1 - f is.
    asked = []
    if requirement.min_ratio is not None:
        asked.append((requirement.min_ratio, 0.0))
    if requirement.min_fairness is not None:
        difference = counts.sets.compares_differences
        asked.append((1.0, 1.0 - requirement.min_fairness) if difference else (requirement.min_fairness, 0.0))
    rates, sizes = counts.rates(), counts.sizes()
    softened = (rates * sizes + 1.0) / (sizes + 2.0)
    variances = softened * (1.0 - softened) / sizes
    found, share = np.ones(len(rates)), counts.n_rows / n_report
    for slope, slack in asked:
        for i, j in (way for pair in counts.sets.pairs() for way in (pair, pair[::-1])):
            room = rates[:, j] - slope * rates[:, i] + slack
            variance = variances[:, j] + slope**2 * variances[:, i]
            hurdle = ndtri(requirement.confidence) * np.sqrt(share * variance)
            found = np.minimum(found, ndtr((room - hurdle) / np.sqrt((1.0 + share) * variance)))
    return np.asarray(found)
