"""From rows to a fitted path: what the estimators share behind their interface."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify.points import TradeoffPoints
from fairfrontier.optimize.data import StackData
from fairfrontier.optimize.folds import train_test
from fairfrontier.optimize.newton import LogisticSolver
from fairfrontier.optimize.path import FairPath, RidgeFactor, RidgeSolution, paper_penalties, signed_targets
from fairfrontier.optimize.problem import ConstrainedProblem
from fairfrontier.optimize.qp import HingeSolver
from fairfrontier.optimize.tuning import Tuning, tune
from fairfrontier.quantify.fauc import fauc
from fairfrontier.quantify.weights import Weight

PAPER_ALPHAS = np.logspace(2.0, 7.0, 20)
# Solvers without a closed form pay for every alpha; this many are tried.
_FEW_ALPHAS = 5


def identity(eta: FloatArray) -> FloatArray:
    """Return the score of the squared loss: the linear predictor itself."""
    return eta


def half_margin(eta: FloatArray) -> FloatArray:
    """Return the score of the hinge loss: margin 0 is 0.5."""
    return np.asarray((1.0 + eta) / 2.0)


LINKS: dict[str, Callable[[FloatArray], FloatArray]] = {"squared": identity, "log": expit, "hinge": half_margin}


@dataclass(frozen=True, eq=False)
class FittedPath:
    """A path, how it was found, and what it is worth.

    Attributes
    ----------
    path : FairPath
        The stacks.
    positions : ndarray of shape (p,)
        The part s of the unconstrained score bias that each target keeps (NaN where targets are not on that ray).
    solution : RidgeSolution or None
        The closed form, for the squared loss.
    alpha : float
        The ridge.
    scale : ndarray of shape (k,)
        D; infinite for models that are left out.
    points : TradeoffPoints
        Value of the stacks, out of fold where cross-validation took place, the constant model last.
    cross_validated : bool
        Whether `points` is out of fold.
    tried : dict
        Cross-validated FAUC of each choice of family scales.
    """

    path: FairPath
    positions: FloatArray
    solution: RidgeSolution | None
    alpha: float
    scale: FloatArray
    points: TradeoffPoints
    cross_validated: bool
    tried: dict[str, float]


def fit_squared(
    data: StackData,
    folds: IntArray | None,
    *,
    alphas: FloatArray,
    family_of: IntArray,
    family_scales: Any,
    kind: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
) -> FittedPath:
    """Fit the closed-form path; without `folds` at ``alphas[0]`` and given scales."""
    tuning: Tuning | None = None
    if folds is not None:
        tuning = tune(
            data,
            folds,
            alphas=alphas,
            family_of=family_of,
            family_scales=family_scales,
            path=kind,
            n_points=n_points,
            weight=weight,
        )
    scale = tuning.scale if tuning is not None else np.asarray(family_scales, dtype=np.float64)
    alpha = tuning.alpha if tuning is not None else float(alphas[0])
    used = np.flatnonzero(np.isfinite(scale))
    factor = RidgeFactor(data.statistics().take(used), scale[used])
    solution = factor.at(alpha)
    if kind == "paper":
        targets = solution.target_for_lambda(paper_penalties(n_points))
        size = np.where(np.abs(solution.b0) > 0, solution.b0, 1.0)
        positions = (targets / size)[:, 0] if targets.shape[1] == 1 else np.full(n_points, np.nan)
    else:
        placed = None if tuning is None else tuning.positions
        targets = signed_targets(solution.b0, n_points) if placed is None else placed[:, None] * solution.b0
        positions = np.linspace(1.0, -1.0, n_points) if placed is None else placed
    path = _widen(factor.path(solution, targets), used, len(scale))
    points = tuning.points if tuning is not None else data.value(data.H @ path.weights.T + path.intercept)
    tried = {} if tuning is None else tuning.tried
    return FittedPath(
        path, positions, _widen_solution(solution, used, len(scale)), alpha, scale, points, tuning is not None, tried
    )


def fit_iterative(
    data: StackData,
    folds: IntArray | None,
    *,
    loss: str,
    alphas: FloatArray,
    scale: FloatArray,
    kind: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
) -> FittedPath:
    """Fit a path with a solver: logistic or hinge loss."""
    positions = np.linspace(1.0, -1.0, n_points) if kind == "signed" else np.linspace(1.0, 0.0, n_points)
    alpha, held_out = float(alphas[0]), None
    tried: dict[str, float] = {}
    if folds is not None:
        few = alphas[np.unique(np.linspace(0, len(alphas) - 1, _FEW_ALPHAS).astype(int))]
        valued = [data.value(_out_of_fold(data, folds, loss, a, scale, positions)) for a in few]
        values = [fauc(points.frontier(), weight) for points in valued]
        best = int(np.argmax(values))
        alpha, held_out, tried = float(few[best]), valued[best], {"common": float(values[best])}
    path = _solve_path(data, loss, alpha, scale, positions)
    link = LINKS[loss]
    points = held_out or data.value(link(data.H @ path.weights.T + path.intercept))
    return FittedPath(path, positions, None, alpha, scale, points, held_out is not None, tried)


def _solve_path(data: StackData, loss: str, alpha: float, scale: FloatArray, positions: FloatArray) -> FairPath:
    problem = ConstrainedProblem(data, alpha, scale)
    if loss == "log":
        solver = LogisticSolver(problem)
        start = solver.unconstrained()
        return solver.path(positions[:, None] * problem.bias(start.beta), start)
    hinge = HingeSolver(problem)
    return hinge.path(positions[:, None] * problem.bias(hinge.unconstrained()))


def _out_of_fold(
    data: StackData, folds: IntArray, loss: str, alpha: float, scale: FloatArray, positions: FloatArray
) -> FloatArray:
    scores = np.empty((len(data.y), len(positions)))
    for train, test in train_test(folds):
        path = _solve_path(data.rows(train), loss, alpha, scale, positions)
        scores[test] = LINKS[loss](data.H[test] @ path.weights.T + path.intercept)
    return scores


def _widen(path: FairPath, used: IntArray, k: int) -> FairPath:
    """Return the path with zero weights for models that were left out."""
    if len(used) == k:
        return path
    weights = np.zeros((len(path), k))
    weights[:, used] = path.weights
    return FairPath(path.target, path.tau, path.score_bias, weights, path.intercept, path.kkt)


def _widen_solution(solution: RidgeSolution, used: IntArray, k: int) -> RidgeSolution:
    if len(used) == k:
        return solution
    w0, U, mean_h = np.zeros(k), np.zeros((k, solution.U.shape[1])), np.zeros(k)
    w0[used], U[used], mean_h[used] = solution.w0, solution.U, solution.mean_h
    return RidgeSolution(
        solution.alpha,
        solution.debias_alpha,
        w0,
        U,
        solution.S,
        solution.b0,
        mean_h,
        solution.mean_y,
        solution.negligible,
    )
