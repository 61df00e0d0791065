"""Choose the ridge, the family scales and the targets of a path by cross-validated FAUC.

One symmetric eigendecomposition per fold serves every α, and every fold's Gram matrix is a sum of the other folds'. The
scores along a path are affine in its multipliers, so that k models shrink to 1 + m columns before anything is valued.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify.points import TradeoffPoints
from fairfrontier.optimize.data import StackData
from fairfrontier.optimize.evidence import evidence_scales
from fairfrontier.optimize.path import RidgeFactor, RidgeSolution, paper_penalties
from fairfrontier.optimize.statistics import StackStatistics
from fairfrontier.quantify.fauc import fauc
from fairfrontier.quantify.weights import Weight, as_weight

# Positions on the ray of the signed path at which tuning looks: from the unconstrained stack to a bias that is
# over-corrected twice.
RAY = np.linspace(1.0, -2.0, 61)
# Ridge scale of columns that are not shrunk: the sensitive attributes of an attribute-aware stack.
FREE = 1e-3
# Ridges tried around that of the largest evidence.
AROUND = np.array([0.1, 0.3, 1.0, 3.0, 10.0])


@dataclass(frozen=True, eq=False)
class Tuning:
    """What cross-validation chose.

    Attributes
    ----------
    alpha : float
        The ridge.
    scale : ndarray of shape (k,)
        D, the relative ridge scale of each model.
    positions : ndarray of shape (p,) or None
        Positions on the ray of the signed path; None for the paper's path.
    points : TradeoffPoints
        Out-of-fold fairness and accuracy of the chosen path, the constant model last.
    statistics : StackStatistics
        The moments of all rows.
    tried : dict of str to float
        The best cross-validated FAUC with each choice of family scales.
    """

    alpha: float
    scale: FloatArray
    positions: FloatArray | None
    points: TradeoffPoints
    statistics: StackStatistics
    tried: dict[str, float]


class CrossValidation:
    """Out-of-fold scores of stacks for any ridge and any scales.

    Parameters
    ----------
    data : StackData
        The rows.
    folds : ndarray of shape (n,)
        The fold of each row.
    """

    def __init__(self, data: StackData, folds: IntArray) -> None:
        self.data = data
        self.rows = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
        parts = [data.rows(rows).statistics() for rows in self.rows]
        self.full = StackStatistics.from_chunks(parts)
        # The other folds' sum: a difference from the total would lose digits.
        self.train = [StackStatistics.from_chunks(p for p in parts if p is not part) for part in parts]

    def lines(self, scale: FloatArray, alphas: FloatArray) -> list[list["_Lines"]]:
        """Return, for each fold and each alpha, the affine map from multipliers to held-out scores."""
        used = np.flatnonzero(np.isfinite(scale))
        result = []
        for rows, train in zip(self.rows, self.train, strict=True):
            factor = RidgeFactor(train.take(used), scale[used])
            solutions = [factor.at(alpha) for alpha in alphas]
            columns = np.zeros((len(scale), len(alphas), 1 + factor.contrasts.shape[1]))
            for i, one in enumerate(solutions):
                columns[used, i, 0], columns[used, i, 1:] = one.w0, one.U
            flat = columns.reshape(len(scale), -1)
            held_out = (self.data.H[rows] @ flat - train.mean_h @ flat).reshape(len(rows), *columns.shape[1:])
            result.append(
                [
                    _Lines(rows, held_out[:, i, 0] + train.mean_y, held_out[:, i, 1:], one)
                    for i, one in enumerate(solutions)
                ]
            )
        return result

    def scores(self, folds: Sequence["_Lines"], targets: Callable[[RidgeSolution], FloatArray]) -> FloatArray:
        """Return the out-of-fold scores (n, p) at the targets that each fold's solution gives."""
        parts = [line.scores(targets(line.solution)) for line in folds]
        result = np.empty((len(self.data.y), parts[0].shape[1]))
        for line, part in zip(folds, parts, strict=True):
            result[line.rows] = part
        return result


@dataclass(frozen=True, eq=False)
class _Lines:
    """Held-out rows of a fold: scores are start + directions·multipliers."""

    rows: IntArray
    start: FloatArray
    directions: FloatArray
    solution: RidgeSolution

    def scores(self, targets: FloatArray) -> FloatArray:
        return self.start[:, None] + self.directions @ self.solution.multipliers(targets).T


def tune(
    data: StackData,
    folds: IntArray,
    *,
    alphas: FloatArray,
    family_of: IntArray,
    family_scales: Any,
    path: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
) -> Tuning:
    """Choose alpha, scales and targets by cross-validated FAUC.

    Parameters
    ----------
    data : StackData
        The rows.
    folds : ndarray of shape (n,)
        The fold of each row.
    alphas : ndarray of shape (a,)
        The ridges to try.
    family_of : ndarray of shape (k,)
        The family of each model; −1: in every candidate, hardly shrunk.
    family_scales : "cv" or ndarray of shape (k,)
        "cv" tries one common ridge, the scales of the largest evidence, and each family alone.
    path : {"signed", "paper"}
        The kind of path.
    n_points : int
        Points on it.
    weight : Weight, callable or None
        The weight of the FAUC.

    Returns
    -------
    Tuning
        The best choice.
    """
    validation = CrossValidation(data, folds)
    candidates = _candidates(validation.full, family_of, family_scales, alphas)
    tried: dict[str, float] = {}
    best: dict[str, tuple[float, FloatArray, list[_Lines]]] = {}
    for name, scale, grid in candidates:
        lines = validation.lines(scale, grid)
        values = [_value(validation, [fold[i] for fold in lines], path, n_points, weight) for i in range(len(grid))]
        smooth = _smooth(np.array(values))
        i = int(np.flatnonzero(smooth == smooth.max())[-1])  # of equals the most regularised
        tried[name] = float(smooth[i])
        best[name] = (float(grid[i]), scale, [fold[i] for fold in lines])
    alpha, scale, chosen = best[max(tried, key=lambda name: tried[name])]
    positions = _positions(validation, chosen, n_points, weight) if path == "signed" else None
    scores = validation.scores(chosen, _targets(path, n_points, positions))
    return Tuning(alpha, scale, positions, data.value(scores), validation.full, tried)


def _candidates(
    full: StackStatistics, family_of: IntArray, family_scales: Any, alphas: FloatArray
) -> list[tuple[str, FloatArray, FloatArray]]:
    """Return (name, scales, alphas to try) of each candidate; an infinite scale leaves a family out."""
    if not isinstance(family_scales, str):
        return [("given", family_scales, alphas)]
    free = family_of < 0
    result = [("common", np.where(free, FREE, 1.0), alphas)]
    n_families = int(family_of.max()) + 1
    if n_families > 1:
        evidence = evidence_scales(full, np.where(free, n_families, family_of))
        result.append(("evidence", np.where(free, FREE, evidence.scale), evidence.alpha * AROUND))
        for family in range(n_families):
            alone = np.where(family_of == family, 1.0, np.inf)
            result.append((f"family {family}", np.where(free, FREE, alone), alphas))
    return result


def _targets(path: str, n_points: int, positions: FloatArray | None) -> Callable[[RidgeSolution], FloatArray]:
    """Return the function from a solution to its targets (p, m)."""
    if path == "paper":
        penalties = paper_penalties(n_points)
        return lambda solution: solution.target_for_lambda(penalties)
    ray = (RAY if positions is None else positions)[:, None]
    return lambda solution: ray * solution.b0


def _value(
    validation: CrossValidation,
    folds: Sequence[_Lines],
    path: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
) -> float:
    points = validation.data.value(validation.scores(folds, _targets(path, n_points, None)))
    return fauc(points.frontier(), weight)


def _smooth(values: FloatArray) -> FloatArray:
    """Average each value with its neighbours: FAUC is a noisy function of alpha, its mean is a smooth one."""
    if len(values) < 3:
        return values
    padded = np.pad(values, 1, mode="edge")
    return np.asarray((padded[:-2] + 2.0 * padded[1:-1] + padded[2:]) / 4.0)


def _positions(
    validation: CrossValidation,
    folds: Sequence[_Lines],
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
) -> FloatArray:
    """Place the points of the signed path where out-of-fold decisions change and the weight counts.

    Notes
    -----
    The ends are the unconstrained stack and a fully over-corrected one. In between, the points are equally spaced in
    the out-of-fold bias, from the largest bias that the weight counts to a little beyond the fairest position; the
    margins are two standard errors of a difference of rates.
    """
    points = validation.data.value(validation.scores(folds, _targets("signed", n_points, None)))
    bias = points.sets.largest_gap(points.rates)[:-1]
    levels = np.linspace(0.0, 1.0, 201)
    least = levels[max(int(np.searchsorted(as_weight(weight).cumulative(levels), 0.0, side="right")) - 1, 0)]
    data = validation.data
    sizes = data.contrasts.membership @ np.bincount(
        data.contrasts.cells.codes, data.weight, minlength=data.contrasts.cells.n_cells
    )
    margin = 2.0 * float(np.sqrt((0.25 / np.sort(sizes)[:2]).sum()))
    return place(bias, 1.0 - least + margin, margin, n_points)


def place(bias: FloatArray, largest: float, margin: float, n_points: int, ray: FloatArray = RAY) -> FloatArray:
    """Return `n_points` positions, descending, from 1 to −1 or beyond.

    Parameters
    ----------
    bias : ndarray of shape (len(ray),)
        The absolute bias at each position of the ray.
    largest : float
        Bias above which nothing counts.
    margin : float
        How far beyond the fairest position the bias may grow again.
    n_points : int
        How many positions.
    ray : ndarray
        Descending positions.
    """
    fairest = int(np.argmin(bias))
    # On the way to the fairest position the bias should fall; what rises there is noise.
    before = np.maximum.accumulate(bias[fairest::-1])[::-1]
    start = int(np.flatnonzero(before <= max(largest, before[-1]))[0])
    after = np.maximum.accumulate(bias[fairest:])
    stop = fairest + int(np.flatnonzero(after <= bias[fairest] + margin)[-1])
    inside = slice(start, stop + 1)
    steps = np.abs(np.diff(np.concatenate([before[:-1], -after])[inside])) + 1e-4
    length = np.concatenate([[0.0], np.cumsum(steps)])
    if n_points == 1:
        return np.array([1.0])
    first = [] if start == 0 else [1.0]
    last = [] if ray[stop] <= -1.0 else [-1.0]
    inner = np.interp(np.linspace(0.0, length[-1], n_points - len(first) - len(last)), length, ray[inside])
    return np.concatenate([first, inner, last])
