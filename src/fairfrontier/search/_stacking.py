"""From the models of a search to its candidates: single models, the path of fair stacks, the required stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.optimize import FairStacksClassifier
from fairfrontier.quantify import StepWeight, fauc
from fairfrontier.search._steps import ALONE

REQUIRED = "required"
_WEIGHT = StepWeight(0.8)
_N_STACKS = 25


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
