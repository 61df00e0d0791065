"""Logistic stacks: damped Newton steps under equality constraints on the score bias."""

import numpy as np
from scipy.linalg import cholesky, lu_factor, lu_solve, solve_triangular
from scipy.optimize import nnls
from scipy.special import expit

from fairfrontier._validation import FloatArray
from fairfrontier.optimize._problem import ConstrainedProblem, Solved, warn_if_unconverged
from fairfrontier.optimize._ridge_path import FairPath, least_distance

_ARMIJO = 1e-4


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

    def unconstrained(self) -> Solved:
        """Return the stack without a bias constraint."""
        none = np.empty((0, self.problem.n_coefficients))
        return self._iterate(np.zeros(self.problem.n_coefficients), none, np.empty(0))

    def path(self, targets: FloatArray, start: Solved) -> FairPath:
        """Return the stacks at targets (p, m), each started from the one before."""
        rows = self.problem.constraint_rows
        solved, beta = [], start.beta
        for target in targets:
            wanted = self.problem.constraint_values(target)
            # The shortest move to the new target (the rows are orthonormal) keeps the start near the last solution.
            solved.append(self._iterate(beta + rows.T @ (wanted - rows @ beta), rows, wanted))
            beta = solved[-1].beta
        warn_if_unconverged("log", solved, self.tolerance)
        return self.problem.path(targets, solved)

    def within(self, tau: float, start: Solved) -> FairPath:
        """Return the stack whose score biases are all in [−τ, τ] (Eq. 3), from the unconstrained one.

        Notes
        -----
        Each step minimises the quadratic model at β subject to the box, which is a least-distance problem: with the
        Hessian LLᵀ and z = Lᵀd + L⁻¹g, the step d has the smallest ‖z‖ such that β + d is in the box. Then it is halved
        until the objective falls enough; the box is convex, so it is not left.
        """
        if np.abs(self.problem.bias(start.beta)).max(initial=0.0) <= tau:
            return self.problem.path(self.problem.bias(start.beta)[None, :], [start])
        if tau == 0.0:
            return self.path(np.zeros((1, self.problem.contrasts.shape[1])), start)
        box = np.vstack([self.problem.contrasts.T, -self.problem.contrasts.T])
        box = np.column_stack([box, np.zeros(len(box))])  # the constant has no bias
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
        return self.problem.path(self.problem.bias(beta)[None, :], [solved])

    def _residual_within(self, beta: FloatArray, box: FloatArray, tau: float) -> float:
        """Return what is left of the gradient by non-negative multipliers of the limits that are reached."""
        gradient, room = self._gradient(beta), tau - box @ beta
        reached = box[room <= 1e-7 * max(tau, 1e-300)]
        left = float(np.abs(gradient).max())
        if len(reached):
            size = float(np.abs(reached).max())
            multiplier, _ = nnls(reached.T / size, -gradient, maxiter=30 * len(box))
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
        # Collinear models without a ridge leave flat directions; a trace of ridge keeps the step finite.
        floor = 1e-12 * max(float(np.trace(hessian)) / len(beta), 1e-300)
        return np.asarray(hessian + floor * np.eye(len(beta)))


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
