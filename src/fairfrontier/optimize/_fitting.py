"""From rows to a fitted path: what the estimators share behind their interface."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import expit

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._cells import cell_sums
from fairfrontier.optimize._cross_validation import CrossValidation
from fairfrontier.optimize._data import StackData
from fairfrontier.optimize._folds import train_test
from fairfrontier.optimize._newton import LogisticSolver
from fairfrontier.optimize._placement import Sweep, displaced
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
    sweep : Sweep
        What is known of the path between its ends.
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
    sweep: Sweep
    at_tau: FairPath | None = None


class Rows(Protocol):
    """Where the rows of a squared-loss stack are: in memory or in chunks."""

    @property
    def threshold(self) -> float | None:
        """A score strictly above it is decision 1; None: regression."""

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
) -> FittedPath:
    """Fit the closed-form path; without `validation` at ``alphas[0]`` and given scales."""
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
            threshold=data.threshold,
        )
    scale = tuning.scale if tuning is not None else np.asarray(family_scales, dtype=np.float64)
    alpha = tuning.alpha if tuning is not None else float(alphas[0])
    used = np.flatnonzero(np.isfinite(scale))
    statistics = tuning.statistics if tuning is not None else data.statistics()
    debias = None if tuning is None or tuning.debias is None else tuning.debias[used]
    if validation is not None and kind == "signed":
        # Losses are sums over rows: what was good without a fold must grow with the rows to mean the same stack.
        growth = statistics.weight / float(np.mean([train.weight for train in validation.train]))
        alpha, debias = growth * alpha, None if debias is None else growth * debias
    factor = RidgeFactor(statistics.take(used), scale[used], debias)
    solution = factor.at(alpha)
    full = _widen_solution(solution, used, len(scale))
    if kind == "paper":
        targets = solution.target_for_lambda(paper_penalties(n_points))
    else:
        targets = signed_targets(solution.b0, n_points)
    if tuning is None:
        points = data.value_stacks(*full.stacks(targets))
        sweep = Sweep(targets, points)
    elif tuning.walker is None:
        points = tuning.points
        sweep = Sweep(targets, points, data.value_stacks(*full.stacks(targets)))
    else:
        walk = tuning.walker.walk(lambda multipliers: data.value_stacks(*full.stacks(displaced(multipliers)(full))))
        placed = walk.placed(n_points)
        targets, points = displaced(placed)(full), tuning.walker.evaluate(placed)
        sweep = Sweep(displaced(walk.multipliers)(full), walk.points, walk.refitted)
    sweep = replace(
        sweep,
        changed=_changed(data, full, sweep.target),
        variance=statistics.y_square / statistics.weight if data.threshold is None else None,
        signal=1.0 if tuning is None else tuning.signal,
    )
    path = _widen(factor.path(solution, targets), used, len(scale))
    tried = {} if tuning is None else tuning.tried
    return FittedPath(path, _shares(targets, solution.b0), full, alpha, scale, points, tuning is not None, tried, sweep)


def _changed(data: Rows, solution: RidgeSolution, targets: FloatArray) -> FloatArray | None:
    """Return the share of each row set that stacks decide otherwise than the first; None: rows are not in memory."""
    if not isinstance(data, StackData):
        return None
    weights, intercept = solution.stacks(targets)
    return _decided_otherwise(data, data.H @ weights.T + intercept)


def _decided_otherwise(data: StackData, scores: FloatArray) -> FloatArray | None:
    """Return the share of each row set that scores (n, q), and the constant model, decide otherwise than the first."""
    if data.threshold is None:
        return None
    decided = scores > data.threshold
    constant = np.full(len(scores), np.average(data.y, weights=data.weight) > 0.5)
    other = np.column_stack([decided, constant]) != decided[:, :1]
    sums = cell_sums(other.astype(np.float64), data.contrasts.cells, threshold=None, weight=data.weight)
    return data.contrasts.rates(sums.outcome, sums.weight)


def _shares(targets: FloatArray, b0: FloatArray) -> FloatArray:
    """Return the part of b₀ that each target (p, m) keeps; NaN where there is none, or targets are not on its ray."""
    square = float(b0 @ b0)
    shares = np.asarray(targets @ b0 / square) if square > 0 else np.full(len(targets), np.nan)
    off = np.abs(shares[:, None] * b0 - targets).max(initial=0.0) > 1e-8 * max(float(np.abs(b0).max()), 1e-300)
    return np.full(len(targets), np.nan) if off else shares


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
    scores = LINKS[loss](data.H @ path.weights.T + path.intercept)
    own = data.value(scores)
    points = own if points is None else points
    targets = path.target.reshape(n_points, -1)
    sweep = Sweep(targets, points, None if folds is None else own, _decided_otherwise(data, scores))
    return FittedPath(path, positions, None, alpha, scale, points, folds is not None, tried, sweep, at_tau)


def _solve_path(
    data: StackData, loss: str, alpha: float, scale: FloatArray, positions: FloatArray, tau: float | None = None
) -> tuple[FairPath, FairPath | None]:
    """Return the stacks with score bias s·b₀ for each position s and, if asked for, that with all in [−τ, τ]."""
    problem = ConstrainedProblem(data, alpha, scale)
    if loss == "log":
        newton = LogisticSolver(problem)
        start = newton.unconstrained()
        path = newton.path(positions[:, None] * problem.bias(start.beta), start)
        return path, None if tau is None else newton.within(tau, start)
    hinge = HingeSolver(problem)
    path = hinge.path(positions[:, None] * problem.bias(hinge.unconstrained()))
    return path, None if tau is None else hinge.within(tau)


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
