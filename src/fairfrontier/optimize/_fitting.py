"""From rows to a fitted path: what the estimators share behind their interface."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.special import expit

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.optimize._cross_validation import CrossValidation
from fairfrontier.optimize._data import StackData
from fairfrontier.optimize._folds import train_test
from fairfrontier.optimize._newton import LogisticSolver
from fairfrontier.optimize._problem import ConstrainedProblem
from fairfrontier.optimize._qp import HingeSolver
from fairfrontier.optimize._ridge_path import FairPath, RidgeFactor, RidgeSolution, paper_penalties, signed_targets
from fairfrontier.optimize._statistics import StackStatistics
from fairfrontier.optimize._tuning import Tuning, tune
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._weights import Weight


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
    at_tau : FairPath or None
        The stack at the tau that was asked for, where there is no closed form.
    """

    path: FairPath
    positions: FloatArray
    solution: RidgeSolution | None
    alpha: float
    scale: FloatArray
    points: TradeoffPoints
    cross_validated: bool
    tried: dict[str, float]
    at_tau: FairPath | None = None


class Rows(Protocol):
    """Where the rows of a squared-loss stack are: in memory or in chunks."""

    def statistics(self) -> StackStatistics:
        """Return the moments of the rows."""

    def value_stacks(self, weights: FloatArray, intercept: FloatArray) -> TradeoffPoints:
        """Return the points of stacks with weights (p, k) and constants (p,), the best constant model last."""


def fit_squared(
    data: Rows,
    validation: CrossValidation | None,
    *,
    alphas: FloatArray,
    family_of: IntArray,
    family_scales: Any,
    kind: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
    group: IntArray | None = None,
) -> FittedPath:
    """Fit the closed-form path; without `validation` at ``alphas[0]`` and given scales.

    `group` (k,) says what each model of the attribute predicts (−1: every other model); the directions of the signed
    path are shrunk towards these models.
    """
    tuning: Tuning | None = None
    if validation is not None:
        tuning = tune(
            validation,
            alphas=alphas,
            family_of=family_of,
            family_scales=family_scales,
            path=kind,
            n_points=n_points,
            weight=weight,
            group=group,
        )
    scale = tuning.scale if tuning is not None else np.asarray(family_scales, dtype=np.float64)
    alpha = tuning.alpha if tuning is not None else float(alphas[0])
    used = np.flatnonzero(np.isfinite(scale))
    statistics = tuning.statistics if tuning is not None else data.statistics()
    debias = None if tuning is None or tuning.debias is None else tuning.debias[used]
    of_group = None if group is None or kind == "paper" else group[used]
    factor = RidgeFactor(statistics.take(used), scale[used], debias, of_group)
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
    points = tuning.points if tuning is not None else data.value_stacks(path.weights, path.intercept)
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
    tau: float | None = None,
) -> FittedPath:
    """Fit a path with a solver, logistic or hinge loss, and the stack at `tau`; without `folds` at ``alphas[0]``."""
    positions = np.linspace(1.0, -1.0 if kind == "signed" else 0.0, n_points)
    alpha, points = float(alphas[0]), None
    tried: dict[str, float] = {}
    if folds is not None:
        valued = [data.value(_out_of_fold(data, folds, loss, a, scale, positions)) for a in alphas]
        values = [fauc(of_alpha.frontier(), weight) for of_alpha in valued]
        best = int(np.argmax(values))
        alpha, points, tried = float(alphas[best]), valued[best], {"common": float(values[best])}
    path, at_tau = _solve_path(data, loss, alpha, scale, positions, tau)
    if points is None:
        points = data.value(LINKS[loss](data.H @ path.weights.T + path.intercept))
    return FittedPath(path, positions, None, alpha, scale, points, folds is not None, tried, at_tau)


def _solve_path(
    data: StackData, loss: str, alpha: float, scale: FloatArray, positions: FloatArray, tau: float | None = None
) -> tuple[FairPath, FairPath | None]:
    """Return the stacks with score bias s·b₀ for each position s and, if asked for, the one with the largest s ≤ 1
    that keeps all biases in [−τ, τ]."""
    problem = ConstrainedProblem(data, alpha, scale)
    solve: Callable[[FloatArray], FairPath]
    if loss == "log":
        newton = LogisticSolver(problem)
        start = newton.unconstrained()
        b0, solve = problem.bias(start.beta), partial(newton.path, start=start)
    else:
        hinge = HingeSolver(problem)
        b0, solve = problem.bias(hinge.unconstrained()), hinge.path
    path = solve(positions[:, None] * b0)
    largest = float(np.abs(b0).max())
    if tau is None:
        return path, None
    return path, solve(b0[None, :] * (min(1.0, tau / largest) if largest > 0 else 1.0))


def _out_of_fold(
    data: StackData, folds: IntArray, loss: str, alpha: float, scale: FloatArray, positions: FloatArray
) -> FloatArray:
    scores = np.empty((len(data.y), len(positions)))
    for train, test in train_test(folds):
        path, _ = _solve_path(data.rows(train), loss, alpha, scale, positions)
        scores[test] = LINKS[loss](data.H[test] @ path.weights.T + path.intercept)
    return scores


def _widen(path: FairPath, used: IntArray, k: int) -> FairPath:
    """Return the path with zero weights for models that were left out."""
    weights = np.zeros((len(path), k))
    weights[:, used] = path.weights
    return replace(path, weights=weights)


def _widen_solution(solution: RidgeSolution, used: IntArray, k: int) -> RidgeSolution:
    w0, U, mean_h, debias = np.zeros(k), np.zeros((k, solution.U.shape[1])), np.zeros(k), np.full(k, np.inf)
    w0[used], U[used], mean_h[used], debias[used] = solution.w0, solution.U, solution.mean_h, solution.debias
    return replace(solution, w0=w0, U=U, mean_h=mean_h, debias=debias)
