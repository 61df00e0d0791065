"""Choose the ridge, the family scales and the targets of a path by cross-validated FAUC.

Where the rows are, in memory or in chunks, only the `CrossValidation` knows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.optimize._cross_validation import CrossValidation, Targets, Trial
from fairfrontier.optimize._evidence import evidence_of_directions, evidence_scales
from fairfrontier.optimize._placement import Walker, displaced, held_out_signal, movement
from fairfrontier.optimize._ridge_path import paper_penalties
from fairfrontier.optimize._statistics import StackStatistics
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._weights import Weight, as_weight

# Positions on the ray of the signed path at which tuning looks: from the unconstrained stack to a bias that is
# over-corrected twice.
RAY = np.linspace(1.0, -2.0, 61)
# Ridge scale of columns that are not shrunk: the sensitive attributes of an attribute-aware stack.
FREE = 1e-3
# Ridges tried around that of the largest evidence, which for labels that are 0 or 1 is rather too small.
AROUND = np.array([0.3, 1.0, 3.0, 10.0, 30.0])


@dataclass(frozen=True, eq=False)
class Tuning:
    """What cross-validation chose.

    Attributes
    ----------
    alpha : float
        The ridge.
    scale : ndarray of shape (k,)
        D, the relative ridge scale of each model.
    debias : ndarray of shape (k,) or None
        The penalty of each model in the directions U; None: that of w₀.
    walker : Walker or None
        What is needed to place the signed path; None for the paper's path.
    signal : float
        How much of the differences between row sets held-out rows confirm.
    points : TradeoffPoints
        Out-of-fold points of the paper's path, or on the ray at which tuning looks, the constant model last.
    statistics : StackStatistics
        The moments of all rows.
    tried : dict of str to float
        The best cross-validated FAUC with each choice of family scales.
    """

    alpha: float
    scale: FloatArray
    debias: FloatArray | None
    walker: Walker | None
    signal: float
    points: TradeoffPoints
    statistics: StackStatistics
    tried: dict[str, float]


def tune(
    validation: CrossValidation,
    *,
    alphas: FloatArray,
    family_of: IntArray,
    family_scales: Any,
    path: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
    threshold: float | None = 0.5,
    group: IntArray | None = None,
) -> Tuning:
    """Choose alpha, scales and targets by cross-validated FAUC.

    Parameters
    ----------
    validation : CrossValidation
        The folds.
    alphas : ndarray of shape (a,)
        The ridges to try.
    family_of : ndarray of shape (k,)
        The family of each model; −1: in every candidate, hardly shrunk.
    family_scales : "cv" or ndarray of shape (k,)
        "cv" tries one common ridge and, with several families, the scales of the largest evidence; on the signed path
        the directions then have their own ridge of the largest evidence.
    path : {"signed", "paper"}
        The kind of path.
    n_points : int
        Points on it.
    weight : Weight, callable or None
        The weight of the FAUC.
    threshold : float or None
        Of the decisions; None: regression.
    group : ndarray of shape (k,), optional
        What each model of the attribute predicts, −1 for every other model: the directions of the signed path are
        shrunk towards the former.

    Returns
    -------
    Tuning
        The best choice.
    """
    candidates = _candidates(validation.full, family_of, family_scales, alphas)
    # The published path has one ridge for everything, and so has a stack whose scales are given.
    own = path == "signed" and isinstance(family_scales, str)
    of_group = group if path == "signed" else None
    debias = _debias(validation.full, family_of, of_group) if own else None
    trials = [validation.trials(scale, grid, debias, of_group) for _, scale, grid in candidates]
    # All at once: where the rows are on a disk, one pass over them values every trial.
    valued = iter(validation.values(list(chain(*trials)), _targets(path, n_points)))
    tried: dict[str, float] = {}
    best: dict[str, tuple[Trial, TradeoffPoints]] = {}
    for (name, _, _), of_name in zip(candidates, trials, strict=True):
        points = [next(valued) for _ in of_name]
        # Rounded, so that equals are equal whatever the order of the sums behind them.
        smooth = _smooth(np.array([fauc(one.frontier(), weight) for one in points])).round(12)
        i = int(np.flatnonzero(smooth == smooth.max())[-1])  # of equals the most regularised
        tried[name], best[name] = float(smooth[i]), (of_name[i], points[i])
    trial, final = best[max(tried, key=lambda name: tried[name])]
    signal = held_out_signal(validation, trial)
    found = None
    if path == "signed":

        def evaluate(multipliers: FloatArray) -> TradeoffPoints:
            return validation.values([trial], displaced(multipliers))[0]

        full = validation.full
        variance = full.y_square / full.weight if threshold is None else None
        reach = movement(validation.train[0], trial, 0, threshold)
        found = Walker(evaluate, reach, full.set_weight, variance, _largest_bias(weight))
    return Tuning(trial.alpha, trial.scale, debias, found, signal, final, validation.full, tried)


def _largest_bias(weight: Weight | Callable[[float], float] | None) -> float:
    """Return the largest bias that the weight counts."""
    levels = np.linspace(0.0, 1.0, 201)
    least = max(int(np.searchsorted(as_weight(weight).cumulative(levels), 0.0, side="right")) - 1, 0)
    return 1.0 - float(levels[least])


def _candidates(
    full: StackStatistics, family_of: IntArray, family_scales: Any, alphas: FloatArray
) -> list[tuple[str, FloatArray, FloatArray]]:
    """Return (name, scales, alphas to try) of each candidate."""
    if not isinstance(family_scales, str):
        return [("given", family_scales, alphas)]
    free = family_of < 0
    result = [("common", np.where(free, FREE, 1.0), alphas)]
    n_families = int(family_of.max()) + 1
    if n_families > 1:
        evidence = evidence_scales(full, np.where(free, n_families, family_of))
        result.append(("evidence", np.where(free, FREE, evidence.scale), evidence.alpha * AROUND))
    return result


def _debias(full: StackStatistics, family_of: IntArray, group: IntArray | None) -> FloatArray:
    """Return the penalties of the directions; columns that are in every candidate are a family of their own."""
    return evidence_of_directions(full, np.where(family_of < 0, family_of.max() + 1, family_of), group)


def _targets(path: str, n_points: int) -> Targets:
    """Return the function from a solution to the targets (p, m) at which it is tried."""
    if path == "paper":
        penalties = paper_penalties(n_points)
        return lambda solution: solution.target_for_lambda(penalties)
    return _on_ray(RAY)


def _on_ray(positions: FloatArray) -> Targets:
    """Return the function from a solution to the targets at positions (p,) on its ray."""
    return lambda solution: positions[:, None] * solution.b0


def _smooth(values: FloatArray) -> FloatArray:
    """Average each value with its neighbours: FAUC is a noisy function of alpha, its mean is a smooth one."""
    if len(values) < 3:
        return values
    padded = np.pad(values, 1, mode="edge")
    return np.asarray((padded[:-2] + 2.0 * padded[1:-1] + padded[2:]) / 4.0)
