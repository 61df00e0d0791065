"""From the models of a search to its candidates: single models, the path of fair stacks, the required stack."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InfeasibleError
from fairfrontier.optimize import FairStacksClassifier, Selection
from fairfrontier.quantify import StepWeight, fauc
from fairfrontier.search._counts import Counts
from fairfrontier.search._steps import ALONE

REQUIRED = "required"
_WEIGHT = StepWeight(0.8)
_N_STACKS = 25
# The probability with which a met requirement is to be shown, and shares of the cushion to try, the safest first.
_POWER = 0.8
_CUSHIONS = (1.0, 0.5, 0.0)


@dataclass(frozen=True, eq=False)
class EvaluationRows:
    """Rows of one part: base scores (n, k), labels and groups."""

    scores: FloatArray
    y: NDArray[np.bool_]
    sensitive: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Combinations:
    """Candidates as combinations of the same k base models.

    Attributes
    ----------
    names : tuple of str
        One per candidate.
    weights, intercept : ndarray of shape (c, k) and (c,)
        What a candidate's score is made of.
    expected : ndarray of shape (c, 2)
        Fairness and accuracy to expect, by cross-validation in the stacking rows; NaN for single models.
    """

    names: tuple[str, ...]
    weights: FloatArray
    intercept: FloatArray
    expected: FloatArray

    def of(self, kept: NDArray[np.bool_]) -> "Combinations":
        """Return some of the candidates."""
        names = tuple(name for name, keeps in zip(self.names, kept.tolist(), strict=True) if keeps)
        return Combinations(names, self.weights[kept], self.intercept[kept], self.expected[kept])

    def decisions(self, scores: FloatArray, threshold: float) -> NDArray[np.bool_]:
        """Return the decisions (n, c) from the base models' scores (n, k)."""
        return np.asarray(scores @ self.weights.T + self.intercept > threshold)


@dataclass(frozen=True, eq=False)
class Requirement:
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

    def with_cushion(self, cushion: float) -> dict[str, Any]:
        """Return what to ask `select` for, so much fairer than required that it can be shown afterwards."""
        fair, ratio = self.min_fairness, self.min_ratio
        return {
            "min_fairness": None if fair is None else min(fair + cushion, (1.0 + fair) / 2.0),
            "min_ratio": None if ratio is None else min(ratio + cushion, (1.0 + ratio) / 2.0),
        }


def fit_stack(rows: EvaluationRows, names: Sequence[str], settings: dict[str, Any]) -> FairStacksClassifier:
    """Fit the path of fair stacks to the stacking rows."""
    model = FairStacksClassifier("precomputed", n_points=_N_STACKS, weight=_WEIGHT, **settings)
    predictions = dict(zip(names, rows.scores.T, strict=True))
    return model.fit(predictions, rows.y, sensitive_features=rows.sensitive)


def cross_validated_fauc(stack: FairStacksClassifier) -> float:
    """Return the FAUC (fairness from 0.8 on) of a path, cross-validated in the rows that it was fitted to."""
    return float(fauc(stack.points_.frontier(), _WEIGHT))


def combine(stack: FairStacksClassifier, names: Sequence[str]) -> Combinations:
    """Return the single models that could be deployed, and the stacks of the path from the least to the most fair."""
    alone = [j for j, name in enumerate(names) if name.split("/")[0] in ALONE]
    singles = np.zeros((len(alone), len(names)))
    singles[np.arange(len(alone)), alone] = 1.0
    n_stacks = len(stack.path_.weights)
    expected = np.stack([stack.points_.fairness[:n_stacks], stack.points_.accuracy[:n_stacks]], axis=1)
    return Combinations(
        (*(names[j] for j in alone), *(f"stack {i:02d}" for i in range(n_stacks))),
        np.vstack([singles, stack.path_.weights]),
        np.append(np.zeros(len(alone)), stack.path_.intercept),
        np.vstack([np.full((len(alone), 2), np.nan), expected]),
    )


def require(
    stack: FairStacksClassifier, requirement: Requirement, cushion: float
) -> tuple[Requirement, FairStacksClassifier | None]:
    """Return the stack that probably meets a requirement by a cushion, or by as much of it as can be had."""
    if not requirement.asked:
        return requirement, None
    found, problem = None, ""
    for share in _CUSHIONS:
        try:
            found = stack.select(**requirement.with_cushion(share * cushion))
        except InfeasibleError as error:
            problem = str(error)
            continue
        if found.selection_ is not None and found.selection_.kind != "constant":
            return replace(requirement, selection=found.selection_), found
    if found is None:
        return replace(requirement, problem=problem), None
    same = "only the same decision for everyone is fair enough."
    return replace(requirement, selection=found.selection_, problem=same), found


def cushion_for(counts: Counts, requirement: Requirement, n_report: int) -> float:
    """Return by how much a stack should be fairer than required so that this is probably shown on `n_report` rows.

    Parameters
    ----------
    counts : Counts
        Of the stacking rows, from which a stack's fairness is estimated; the baseline stands for the stack.
    requirement : Requirement
        What is to be shown.
    n_report : int
        Rows of the test.
    """
    rate = float(np.clip(counts.base.sum() / counts.n_rows, 0.1, 0.9))
    pairs = counts.sets.pairs()
    inverse = 1.0 / counts.sizes()
    variance = rate * (1.0 - rate) * (inverse[pairs[:, 0]] + inverse[pairs[:, 1]]).max()
    tested = variance * counts.n_rows / n_report
    width = ndtri(requirement.confidence) * np.sqrt(tested) + ndtri(_POWER) * np.sqrt(tested + variance)
    # Of a ratio, the difference of two rates is a share of the higher one.
    return float(width if requirement.min_ratio is None and counts.sets.compares_differences else width / rate)


def with_required(combinations: Combinations, chosen: FairStacksClassifier | None) -> Combinations:
    """Return the candidates with the required stack as the last."""
    if chosen is None or chosen.selection_ is None:
        return combinations
    found = chosen.selection_
    return Combinations(
        (*combinations.names, REQUIRED),
        np.vstack([combinations.weights, chosen.weights_]),
        np.append(combinations.intercept, chosen.intercept_),
        np.vstack([combinations.expected, [found.estimated, found.accuracy]]),
    )
