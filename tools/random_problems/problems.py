"""Small problems with all that makes small problems hard: ties, constants, duplicates, empty groups, zero weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np

MEASURES = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds", "masks")
CLASSIFICATION = ("accuracy", "balanced_accuracy", "brier")
REGRESSION = ("r2", "exp_mse")
DTYPES = (np.float64, np.float64, np.float64, np.float32)


@dataclass(frozen=True, eq=False)
class Problem:
    """One problem.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Labels 0 and 1, or numbers.
    scores : ndarray of shape (n, k)
        Scores of the models.
    groups : dict of str to ndarray of shape (n,)
        The sensitive attributes.
    weight : ndarray of shape (n,) or None
        Sample weights.
    fairness : str
        A measure, or "masks" for the pairs in `masks`.
    masks : list of pairs of ndarray of shape (n,)
        Custom contrasts; empty unless asked for.
    accuracy : str
        The accuracy measure.
    threshold : float or None
        A score above it is decision 1; None: scores are probabilities of it.
    mode : str
        How several attributes are taken together.
    alpha : float
        The ridge of the stack.
    """

    y: np.ndarray
    scores: np.ndarray
    groups: dict[str, np.ndarray]
    weight: np.ndarray | None
    fairness: str
    masks: list[tuple[np.ndarray, np.ndarray]]
    accuracy: str
    threshold: float | None
    mode: str
    alpha: float

    @property
    def regression(self) -> bool:
        return self.accuracy in REGRESSION

    @property
    def row_weight(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `tradeoff_points`."""
        return {
            "sensitive_features": self.groups,
            "fairness": self.masks if self.fairness == "masks" else self.fairness,
            "accuracy": self.accuracy,
            "threshold": self.threshold,
            "sensitive_mode": self.mode,
            "sample_weight": self.weight,
        }


def random_problem(seed: int, index: int) -> Problem:
    """Return problem number `index` of a seed."""
    rng = np.random.default_rng([seed, index])
    n, k = int(rng.integers(4, 41)), int(rng.integers(1, 9))
    regression = rng.random() < 0.15
    accuracy = str(rng.choice(REGRESSION if regression else CLASSIFICATION, p=None if regression else [0.7, 0.2, 0.1]))
    threshold = None if rng.random() < 0.1 else float(rng.choice([0.5, 0.5, 0.5, 0.3, 0.0, 1.0]))
    # In the units of the target, in which the references compute.
    fairness = "mean_difference" if regression else str(rng.choice(MEASURES))
    groups = _groups(rng, n)
    if regression:
        y = rng.normal(rng.choice([0.0, 5.0]), 1.0, n).round(int(rng.integers(0, 4)))
    else:
        y = (rng.random(n) < rng.choice([0.1, 0.5, 0.5, 0.8])).astype(np.int64)
    unit = accuracy == "brier" or (threshold is None and not regression)
    return Problem(
        y=y,
        scores=_scores(rng, y, next(iter(groups.values())), k, unit),
        groups=groups,
        weight=_weights(rng, n),
        fairness=fairness,
        masks=_masks(rng, n) if fairness == "masks" else [],
        accuracy=accuracy,
        threshold=threshold,
        mode=str(rng.choice(["separate", "intersectional"])),
        alpha=float(rng.choice([0.0, 1e-3, 1.0, 1.0, 30.0, 1e4])),
    )


def _groups(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Return one or two attributes of two to four groups, of which some may be rare."""
    result = {}
    for name in ("sex", "race")[: int(rng.choice([1, 1, 2]))]:
        size = int(rng.integers(2, 5))
        share = rng.dirichlet(np.full(size, rng.choice([0.5, 5.0, 5.0])))
        result[name] = np.array(["a", "b", "c", "d"])[rng.choice(size, n, p=share)]
    return result


def _scores(rng: np.random.Generator, y: np.ndarray, group: np.ndarray, k: int, unit: bool) -> np.ndarray:
    """Return scores that know y and the group a little; some tie, some are constant, some are equal."""
    centre, spread = y.mean(), max(float(y.std()), 0.5)
    signal = (y - centre) / spread
    of_group = np.unique(group, return_inverse=True)[1] - 0.5
    mixed = rng.uniform(-0.2, 1, k) * signal[:, None] + rng.normal(0, 0.6, k) * of_group[:, None]
    scores = 0.5 + 0.3 * mixed + rng.normal(0, rng.choice([0.05, 0.3]), (len(y), k))
    kind = rng.integers(0, 5)
    if kind == 0:
        scores = scores.round(1)
    elif kind == 1:
        scores = (scores > 0.5).astype(np.float64)
    elif kind == 2 and not unit:
        scores = 10.0 ** rng.integers(-3, 4) * (scores - 0.5) + rng.choice([0.5, 0.0, 100.0])
    if unit:
        scores = np.clip(scores, 0.0, 1.0)
    if rng.random() < 0.3:
        scores[:, rng.integers(k)] = rng.choice([0.0, 0.5, 1.0])
    if rng.random() < 0.3:
        scores[:, rng.integers(k)] = scores[:, rng.integers(k)]
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    return np.asarray(scores.astype(dtype), order="F" if rng.random() < 0.5 else "C")


def _weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    kind = rng.integers(0, 6)
    if kind == 0:
        return rng.integers(0, 4, n).astype(np.float64)
    if kind == 1:
        return rng.exponential(size=n)
    return None


def _masks(rng: np.random.Generator, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return one to three pairs of row sets, which may overlap."""
    return [(rng.random(n) < 0.5, rng.random(n) < 0.5) for _ in range(int(rng.integers(1, 4)))]
