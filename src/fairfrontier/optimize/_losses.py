"""The losses: a table of all of them, and solvers for those without a closed form.

Newton's method solves the constrained problem of the logistic loss, quadratic programs those of the others.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy
from scipy import sparse
from scipy.linalg import LinAlgWarning, cholesky, lu_factor, lu_solve, solve_triangular
from scipy.special import expit, logit

from fairfrontier import exceptions
from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import FairFrontierError, InfeasibleError
from fairfrontier.optimize._ridge_path import FairPath, least_distance

# Root mean square of centred probabilities, about.
USUAL_SPREAD = 0.2
# Least share of the decrease that a Newton step promises, for the step to be taken (Armijo's rule).
_ARMIJO = 1e-4


def _identity(eta: FloatArray) -> FloatArray:
    return eta


def _half_margin(eta: FloatArray) -> FloatArray:
    """Return a margin as a score: 0 is one half, 1 and −1 are 1 and 0."""
    return np.asarray((1.0 + eta) / 2.0)


@dataclass(frozen=True)
class Loss:
    """What the stack must know of a loss beside its solver.

    Attributes
    ----------
    targets : tuple of bool
        Whether it takes classes (False) and numbers (True).
    link : callable
        From the linear predictor to the score.
    threshold : callable
        From the threshold of the score to that of the linear predictor.
    constant : callable
        From a constant decision, 0 or 1, to a linear predictor that makes it.
    parameter : float or None
        The default of its parameter; None: it has none.
    """

    targets: tuple[bool, ...]
    link: Callable[[FloatArray], FloatArray]
    threshold: Callable[[float], float]
    constant: Callable[[float], float] = float
    parameter: float | None = None


# Every loss. "squared" has a closed form (`_ridge_path`), the others a solver in this module.
LOSSES = {
    "squared": Loss((False, True), _identity, float),
    "log": Loss((False,), expit, lambda cut: float(logit(cut)), lambda decision: 20.0 * (2.0 * decision - 1.0)),
    "hinge": Loss((False,), _half_margin, lambda cut: 2.0 * cut - 1.0, lambda decision: 2.0 * decision - 1.0),
    # The parameter: standard deviations of the target, and the median.
    "huber": Loss((True,), _identity, float, parameter=1.0),
    "quantile": Loss((True,), _identity, float, parameter=0.5),
}


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution: coefficients (k + 1,) of the centred design, the constant last, its KKT residual, its iterations."""

    beta: FloatArray
    residual: float
    iterations: int


class ConstrainedProblem:
    """Coefficients (w, constant), the ridge on w, and the constraint Bᵀw = t.

    Parameters
    ----------
    H : ndarray of shape (n, k)
        Predictions of the base models.
    y : ndarray of shape (n,)
        The labels as 0 and 1, or the target of a regression.
    weight : ndarray of shape (n,) or None
        Sample weights.
    contrasts : ndarray of shape (k, m)
        B = HᵀC, the score bias of each base model on each contrast.
    alpha : float
        The ridge: (α/2)·‖Dw‖².
    scale : ndarray of shape (k,)
        D.

    Notes
    -----
    Inside, weights have mean 1 and scores about the usual spread, in which tolerances mean what they say; with the
    ridge in proportion it is the same problem. The unit of the scores is a power of two, which changes no digit.
    """

    def __init__(
        self,
        H: FloatArray,
        y: FloatArray,
        weight: FloatArray | None,
        contrasts: FloatArray,
        *,
        alpha: float,
        scale: FloatArray,
    ) -> None:
        spread, one = float(H.std(axis=0).mean()), 1.0 if weight is None else float(weight.mean())
        self.unit = 2.0 ** round(float(np.log2(spread / USUAL_SPREAD))) if spread > 0 else 1.0
        H, alpha = H / self.unit, alpha / (one * self.unit**2)
        weight = None if weight is None else weight / one
        self.y, self.contrasts = y, contrasts / self.unit
        self.row_weight = np.ones(len(y)) if weight is None else weight
        # Centred, so that a move of w leaves the level of the scores to the constant alone.
        self.mean_h = np.average(H, axis=0, weights=weight)
        self.design = np.column_stack([H - self.mean_h, np.ones(len(y))])
        self.ridge = np.append(alpha * scale**2, 0.0)

    @property
    def n_coefficients(self) -> int:
        return int(self.design.shape[1])

    def scores(self, beta: FloatArray) -> FloatArray:
        """Return the linear predictor η."""
        return np.asarray(self.design @ beta)

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray]:
        """Return (P, Q) with Bᵀw = t ⇔ Pᵀw = Qᵀt and P orthonormal: contrasts may depend on each other."""
        left, values, right = np.linalg.svd(self.contrasts, full_matrices=False)
        keep = values > 1e-12 * max(float(values[0]), 1e-300) if len(values) else np.zeros(0, dtype=bool)
        keep &= values > 1e-15
        return left[:, keep], right[keep].T / values[keep]

    @cached_property
    def constraint_rows(self) -> FloatArray:
        """The rows of the constraint, shape (r, k + 1)."""
        rows = self._basis[0].T
        return np.column_stack([rows, np.zeros(len(rows))])

    def constraint_values(self, target: FloatArray) -> FloatArray:
        """Return the right-hand side of `constraint_rows` for a target (m,)."""
        left, right = self._basis
        values = right.T @ target
        reached = self.contrasts.T @ (left @ values)
        if np.abs(reached - target).max() > 1e-8 * max(1.0, float(np.abs(target).max())):
            raise InfeasibleError(
                f"target must be a score bias that some stack of these models has; the nearest to {target.tolist()} "
                f"is {reached.tolist()}"
            )
        return np.asarray(values)

    @cached_property
    def box(self) -> FloatArray:
        """Rows (2m, k + 1) whose products with coefficients are the score biases and their negatives."""
        both = np.vstack([self.contrasts.T, -self.contrasts.T])
        return np.column_stack([both, np.zeros(len(both))])  # the constant has no bias

    def bias(self, beta: FloatArray) -> FloatArray:
        """Return the score bias Bᵀw, shape (m,)."""
        return np.asarray(self.contrasts.T @ beta[:-1])

    def path(self, solved: Sequence[Solved], targets: FloatArray | None = None) -> FairPath:
        """Return the solutions at targets (p, m), by default the biases that they have, as a path."""
        if targets is None:
            targets = np.stack([self.bias(one.beta) for one in solved])
        beta = np.stack([one.beta for one in solved])
        intercept, kkt = beta[:, -1] - beta[:, :-1] @ self.mean_h, np.array([one.residual for one in solved])
        return FairPath.of(targets, beta[:, :-1] @ self.contrasts, beta[:, :-1] / self.unit, intercept, kkt)


def warn_if_unconverged(loss: str, solved: Sequence[Solved], tolerance: float) -> None:
    """Warn of the worst solution if it misses its optimality conditions by more than the tolerance."""
    worst = max(solved, key=lambda one: one.residual)
    if worst.residual > tolerance:
        warnings.warn(
            f"loss={loss!r} stopped with a KKT residual of {worst.residual:.2g}, above the tolerance {tolerance:g}, "
            f"after {worst.iterations} iterations: use a larger alpha",
            exceptions.ConvergenceWarning,
            stacklevel=2,
        )


class LogisticSolver:
    """Minimise the binomial deviance of a stack subject to score bias t.

    Parameters
    ----------
    problem : ConstrainedProblem
        Predictions, target, contrasts, ridge and weights. The score whose bias is constrained is the linear predictor
        η, as in the paper.
    tolerance : float
        Largest KKT residual, relative to the gradient at zero, of a solution that counts as converged.
    max_iterations : int
        Newton steps per target.

    Notes
    -----
    The objective is Σ log(1 + exp(η)) − y·η + (α/2)·‖Dw‖². Each step solves the KKT system of its quadratic model and
    is halved until the objective falls enough; the start of a target is the previous solution moved to it.
    """

    def __init__(self, problem: ConstrainedProblem, tolerance: float = 1e-8, max_iterations: int = 100) -> None:
        self.problem, self.tolerance, self.max_iterations = problem, tolerance, max_iterations
        self.scale = max(float(np.abs(self._gradient(np.zeros(problem.n_coefficients))).max()), 1e-300)

    @cached_property
    def unconstrained(self) -> Solved:
        """The stack without a bias constraint."""
        none = np.empty((0, self.problem.n_coefficients))
        return self._iterate(np.zeros(self.problem.n_coefficients), none, np.empty(0))

    def path(self, targets: FloatArray) -> FairPath:
        """Return the stacks at targets (p, m), each started from the one before."""
        rows = self.problem.constraint_rows
        solved, beta = [], self.unconstrained.beta
        for target in targets:
            wanted = self.problem.constraint_values(target)
            # The shortest move to the new target (the rows are orthonormal) keeps the start near the last solution.
            solved.append(self._iterate(beta + rows.T @ (wanted - rows @ beta), rows, wanted))
            beta = solved[-1].beta
        warn_if_unconverged("log", solved, self.tolerance)
        return self.problem.path(solved, targets)

    def within(self, tau: float) -> FairPath:
        """Return the stack whose score biases are all in [−τ, τ] (Eq. 3), from the unconstrained one.

        Notes
        -----
        Each step minimises the quadratic model at β subject to the box, which is a least-distance problem: with the
        Hessian LLᵀ and z = Lᵀd + L⁻¹g, the step d has the smallest ‖z‖ such that β + d is in the box. Then it is halved
        until the objective falls enough; the box is convex, so it is not left.
        """
        start, box = self.unconstrained, self.problem.box
        if np.abs(self.problem.bias(start.beta)).max(initial=0.0) <= tau:
            return self.problem.path([start])
        if tau == 0.0:
            return self.path(np.zeros((1, self.problem.contrasts.shape[1])))
        beta = np.append(np.zeros(len(start.beta) - 1), start.beta[-1])
        for iteration in range(self.max_iterations + 1):
            residual = self._residual_within(beta, box, tau)
            if residual <= self.tolerance * 1e-2 or iteration == self.max_iterations:
                break
            gradient = self._gradient(beta)
            step = _step_within(gradient, self._hessian(beta), box, tau - box @ beta, beta)
            taken = self._line_search(beta, step, float(gradient @ step))
            if taken == 0.0:
                break
            beta = beta + taken * step
        solved = Solved(beta, residual, iteration)
        warn_if_unconverged("log", [solved], self.tolerance)
        return self.problem.path([solved])

    def _residual_within(self, beta: FloatArray, box: FloatArray, tau: float) -> float:
        """Return what is left of the gradient by non-negative multipliers of the limits that are reached."""
        gradient, room = self._gradient(beta), tau - box @ beta
        reached = box[room <= 1e-7 * max(tau, 1e-300)]
        left = float(np.abs(gradient).max())
        if len(reached):
            size = float(np.abs(reached).max())
            with warnings.catch_warnings():
                # Contrasts of several groups depend on each other: older versions of SciPy warn. The rest is measured.
                warnings.simplefilter("ignore", LinAlgWarning)
                multiplier, _ = scipy.optimize.nnls(reached.T / size, -gradient, maxiter=30 * len(box))
            left = float(np.abs(gradient + reached.T @ multiplier / size).max())
        return max(left / self.scale, float(-room.min()) / tau)

    def _iterate(self, beta: FloatArray, rows: FloatArray, wanted: FloatArray) -> Solved:
        for iteration in range(self.max_iterations + 1):
            gradient, hessian = self._gradient(beta), self._hessian(beta)
            system = np.block([[hessian, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
            solution = lu_solve(lu_factor(system), np.concatenate([-gradient, wanted - rows @ beta]))
            step, multiplier = solution[: len(beta)], solution[len(beta) :]
            stationarity = float(np.abs(gradient + rows.T @ multiplier).max()) / self.scale
            residual = max(stationarity, float(np.abs(rows @ beta - wanted).max(initial=0.0)))
            if residual <= self.tolerance * 1e-2 or iteration == self.max_iterations:
                break
            taken = self._line_search(beta, step, float(gradient @ step))
            if taken == 0.0:  # no further progress is possible in this precision
                break
            beta = beta + taken * step
        return Solved(beta, residual, iteration)

    def _line_search(self, beta: FloatArray, step: FloatArray, slope: float) -> float:
        value, length = self._objective(beta), 1.0
        # Near the optimum a step gains less than the rounding of the objective, and must not be halved for that.
        rounding = 8.0 * np.finfo(np.float64).eps * abs(value)
        while length > 1e-15:
            if self._objective(beta + length * step) <= value + _ARMIJO * length * slope + rounding:
                return length
            length /= 2.0
        return 0.0

    def _objective(self, beta: FloatArray) -> float:
        eta = self.problem.scores(beta)
        loss = np.logaddexp(0.0, eta) - self.problem.y * eta
        return float(self.problem.row_weight @ loss + 0.5 * self.problem.ridge @ beta**2)

    def _gradient(self, beta: FloatArray) -> FloatArray:
        residual = expit(self.problem.scores(beta)) - self.problem.y
        return np.asarray(self.problem.design.T @ (self.problem.row_weight * residual) + self.problem.ridge * beta)

    def _hessian(self, beta: FloatArray) -> FloatArray:
        p = expit(self.problem.scores(beta))
        curvature = self.problem.row_weight * p * (1.0 - p)
        hessian = (self.problem.design * curvature[:, None]).T @ self.problem.design + np.diag(self.problem.ridge)
        # Collinear models without a ridge leave flat directions; a trace of ridge keeps the step finite. To each its
        # own: next to the ridge of models whose scores are tiny, a common one would hold the constant fast.
        own = np.diag(hessian)
        floor = np.where(own > 0, own, max(float(own.mean()), 1e-288))
        return np.asarray(hessian + np.diag(1e-12 * floor))


def _step_within(
    gradient: FloatArray, hessian: FloatArray, box: FloatArray, room: FloatArray, beta: FloatArray
) -> FloatArray:
    """Return the minimum d of gᵀd + ½dᵀHd subject to box·d ≤ room; β with weights of zero must be inside."""
    lower = cholesky(hessian, lower=True)
    shift = solve_triangular(lower, gradient, lower=True)
    rows = solve_triangular(lower, box.T, lower=True).T
    limits = room + rows @ shift
    if limits.min() >= 0.0:  # the free minimum is inside
        return np.asarray(-solve_triangular(lower, shift, lower=True, trans="T"))
    # The way to weights of zero is allowed, so the solution is not longer; in these units numbers are moderate.
    home = -beta.copy()
    home[-1] = 0.0
    unit, size = max(float(np.linalg.norm(lower.T @ home + shift)), 1e-300), max(float(np.abs(rows).max()), 1e-300)
    z = unit * least_distance(-rows / size, -limits / (unit * size))
    return np.asarray(solve_triangular(lower, z - shift, lower=True, trans="T"))


@dataclass(frozen=True)
class ResidualLoss:
    """A loss of the residuals of a regression, in the units of the target.

    Attributes
    ----------
    name : {"huber", "quantile"}
        "huber": half the square up to `parameter`, linear beyond. "quantile": residuals above 0 count `parameter`,
        those below 0 one minus that.
    parameter : float
        Where the linear part begins, or which quantile is predicted.
    constant : float
        The best constant prediction of the rows fitted to.
    """

    name: str
    parameter: float
    constant: float = 0.0

    @classmethod
    def of_rows(cls, name: str, parameter: float, y: FloatArray, weight: FloatArray | None) -> "ResidualLoss":
        """Return the loss for a target (n,); the parameter of "huber" is in its standard deviations."""
        if name == "huber":
            mean = np.average(y, weights=weight)
            parameter = parameter * float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        loss = cls(name, parameter)
        return replace(loss, constant=loss.best_constant(y, weight))

    def __call__(self, residual: FloatArray) -> FloatArray:
        """Return the loss of each residual."""
        size = np.abs(residual)
        if self.name == "huber":
            inside = np.minimum(size, self.parameter)
            return np.asarray(inside * (size - inside / 2.0))
        return np.asarray(size * np.where(residual > 0, self.parameter, 1.0 - self.parameter))

    def best_constant(self, y: FloatArray, weight: FloatArray | None) -> float:
        """Return the constant prediction of the smallest loss."""
        weight = np.ones(len(y)) if weight is None else weight
        if self.name == "huber":
            slope = partial(self._pull, y, weight)
            low, high = float(y.min()), float(y.max())
            return float(scipy.optimize.brentq(slope, low, high, xtol=1e-13 * (high - low))) if low < high else low
        order = np.argsort(y)
        total = np.cumsum(weight[order])
        return float(y[order][np.searchsorted(total, self.parameter * total[-1] * (1.0 - 1e-12))])

    def _pull(self, y: FloatArray, weight: FloatArray, constant: float) -> float:
        return float(weight @ np.clip(y - constant, -self.parameter, self.parameter))

    def explained(self, y: FloatArray, scores: FloatArray, weight: FloatArray | None) -> FloatArray:
        """Return the share (p,) of the loss of the best constant that predictions (n, p) avoid, clipped to [0, 1]."""
        weight = np.ones(len(y)) if weight is None else weight
        flat = float(weight @ self(y - self.best_constant(y, weight)))
        return np.asarray(np.clip(1.0 - weight @ self(y[:, None] - scores) / max(flat, 1e-300), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Program:
    """A loss as a program with slacks z: min ½zᵀ·diag(quadratic)·z + linearᵀz, subject to two blocks of rows.

    Each block is (rows on the coefficients, rows on the slacks, right-hand side).

    Attributes
    ----------
    quadratic, linear : ndarray of shape (q,)
        The cost of the slacks.
    equal, below : (matrix, matrix, ndarray)
        Rows that equal their right-hand side, and rows that must not exceed it.
    """

    quadratic: FloatArray
    linear: FloatArray
    equal: tuple[Any, Any, FloatArray]
    below: tuple[Any, Any, FloatArray]


class ProgramSolver:
    """Minimise a piecewise linear or quadratic loss plus (α/2)·‖Dw‖² subject to score bias t, as a quadratic program.

    Parameters
    ----------
    problem : ConstrainedProblem
        Predictions, target, contrasts, ridge and weights.
    loss : {"hinge"} or ResidualLoss
        "hinge": Σ max(0, 1 − (2y − 1)·η), where the score is the margin η.
    tolerance : float
        Largest duality gap, relative to the objective, of a solution that counts as converged.
    max_iterations : int
        Steps of the interior-point method per target.
    """

    def __init__(
        self,
        problem: ConstrainedProblem,
        loss: str | ResidualLoss = "hinge",
        tolerance: float = 1e-6,
        max_iterations: int = 200,
    ) -> None:
        self.problem, self.tolerance, self.max_iterations = problem, tolerance, max_iterations
        self.name = loss if isinstance(loss, str) else loss.name
        self._clarabel = require("clarabel", extra="hinge", purpose=f"loss={self.name!r}")
        self._residual = None if isinstance(loss, str) else loss

    @cached_property
    def unconstrained(self) -> Solved:
        """The stack without a bias constraint."""
        return self._solve(np.empty((0, self.problem.n_coefficients)), np.empty(0))

    def path(self, targets: FloatArray) -> FairPath:
        """Return the stacks at targets (p, m)."""
        rows = self.problem.constraint_rows
        solved = [self._solve(rows, self.problem.constraint_values(target)) for target in targets]
        warn_if_unconverged(self.name, solved, self.tolerance)
        return self.problem.path(solved, targets)

    def within(self, tau: float) -> FairPath:
        """Return the stack whose score biases are all in [−τ, τ] (Eq. 3)."""
        solved = self._solve(np.empty((0, self.problem.n_coefficients)), np.empty(0), tau)
        warn_if_unconverged(self.name, [solved], self.tolerance)
        return self.problem.path([solved])

    def _solve(self, rows: FloatArray, values: FloatArray, tau: float | None = None) -> Solved:
        """Return the solution; its residual is the largest of duality gap, primal and dual residual.

        Notes
        -----
        Variables (w, constant, slacks). Clarabel's form is min ½xᵀPx + qᵀx with A·x + s = b and s in cones: equalities
        for the bias and of the loss, then the inequalities of the loss and, with a τ, box·(w, constant) ≤ τ.
        """
        problem, k = self.problem, self.problem.n_coefficients
        # Made anew for each solution: it is twice as large as the rows, and the solver is kept with a fitted stack.
        program = _hinge_program(problem) if self._residual is None else _residual_program(problem, self._residual)
        quadratic = sparse.diags(np.concatenate([problem.ridge, program.quadratic]), format="csc")
        linear = np.concatenate([np.zeros(k), program.linear])
        blocks = [(rows, None, values), program.equal, program.below]
        if tau is not None:
            blocks.append((problem.box, None, np.full(len(problem.box), tau)))
        matrix = sparse.vstack([_beside(of_beta, of_slack, len(program.linear)) for of_beta, of_slack, _ in blocks])
        limit = np.concatenate([of_block[2] for of_block in blocks])
        n_equal = len(values) + len(program.equal[2])
        cones: list[Any] = [self._clarabel.ZeroConeT(n_equal)] if n_equal else []
        cones.append(self._clarabel.NonnegativeConeT(len(limit) - n_equal))
        settings = self._clarabel.DefaultSettings()
        settings.verbose, settings.max_iter = False, self.max_iterations
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        result = self._clarabel.DefaultSolver(quadratic, linear, matrix.tocsc(), limit, cones, settings).solve()
        if not np.all(np.isfinite(result.x)):
            raise FairFrontierError(f"the quadratic program of loss={self.name!r} failed: {result.status}")
        gap = abs(result.obj_val - result.obj_val_dual) / max(1.0, abs(result.obj_val))
        return Solved(np.asarray(result.x)[:k], max(gap, result.r_prim, result.r_dual), int(result.iterations))


def _beside(of_beta: Any, of_slack: Any, n_slacks: int) -> Any:
    """Return rows on coefficients and slacks; None: the slacks do not occur."""
    left = sparse.csc_matrix(of_beta)
    return sparse.hstack([left, sparse.csc_matrix((left.shape[0], n_slacks)) if of_slack is None else of_slack])


def _hinge_program(problem: ConstrainedProblem) -> Program:
    """Return slacks ξ at the cost of the rows' weights, with 1 − (2y − 1)·η ≤ ξ and 0 ≤ ξ."""
    n, k = len(problem.y), problem.n_coefficients
    sign = 2.0 * problem.y - 1.0
    of_beta = sparse.vstack([sparse.csc_matrix(-sign[:, None] * problem.design), sparse.csc_matrix((n, k))])
    eye = sparse.identity(n)
    below = (of_beta, sparse.vstack([-eye, -eye]), np.concatenate([-np.ones(n), np.zeros(n)]))
    return Program(np.zeros(n), problem.row_weight, (np.empty((0, k)), None, np.empty(0)), below)


def _residual_program(problem: ConstrainedProblem, loss: ResidualLoss) -> Program:
    """Return the parts above and below 0 of the residuals, and for Huber's loss the part that counts by its square.

    Notes
    -----
    η + u + p − q = y with p, q ≥ 0. The quantile loss has u = 0 and the costs θ·p + (1 − θ)·q. Huber's loss is the
    smallest ½u² + δ·(p + q).
    """
    n, k, weight = len(problem.y), problem.n_coefficients, problem.row_weight
    eye, nothing = sparse.identity(n), sparse.csc_matrix((n, n))
    parts = [eye, -eye]
    costs = [loss.parameter * weight, (1.0 - loss.parameter) * weight]
    above = [[-eye, nothing], [nothing, -eye]]
    square = np.zeros(2 * n)
    if loss.name == "huber":
        parts, above = [*parts, eye], [[*row, nothing] for row in above]
        costs, square = [loss.parameter * weight, loss.parameter * weight, np.zeros(n)], np.append(square, weight)
    equal = (problem.design, sparse.hstack(parts), problem.y)
    return Program(
        square, np.concatenate(costs), equal, (sparse.csc_matrix((2 * n, k)), sparse.bmat(above), np.zeros(2 * n))
    )


Solver = LogisticSolver | ProgramSolver


def solver_of(loss: str | ResidualLoss, problem: ConstrainedProblem) -> Solver:
    """Return the solver of a loss."""
    return LogisticSolver(problem) if loss == "log" else ProgramSolver(problem, loss)
