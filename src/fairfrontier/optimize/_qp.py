"""Hinge-loss stacks: a quadratic program through Clarabel."""

from typing import Any

import numpy as np
from scipy import sparse

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import FairFrontierError
from fairfrontier.optimize._problem import ConstrainedProblem, Solved, warn_if_unconverged
from fairfrontier.optimize._ridge_path import FairPath


class HingeSolver:
    """Minimise Σ max(0, 1 − (2y − 1)·η) + (α/2)·‖Dw‖² subject to score bias t.

    Parameters
    ----------
    problem : ConstrainedProblem
        Predictions, target, contrasts, ridge and weights; the score is the margin η.
    tolerance : float
        Largest duality gap, relative to the objective, of a solution that counts as converged.
    max_iterations : int
        Steps of the interior-point method per target.
    """

    def __init__(self, problem: ConstrainedProblem, tolerance: float = 1e-6, max_iterations: int = 200) -> None:
        self.problem, self.tolerance, self.max_iterations = problem, tolerance, max_iterations
        self._clarabel = require("clarabel", extra="hinge", purpose="loss='hinge'")

    def unconstrained(self) -> FloatArray:
        """Return the coefficients without a bias constraint, shape (k + 1,)."""
        return self._solve(np.empty((0, self.problem.n_coefficients)), np.empty(0)).beta

    def path(self, targets: FloatArray) -> FairPath:
        """Return the stacks at targets (p, m)."""
        rows = self.problem.constraint_rows
        solved = [self._solve(rows, self.problem.constraint_values(target)) for target in targets]
        warn_if_unconverged("hinge", solved, self.tolerance)
        return self.problem.path(targets, solved)

    def within(self, tau: float) -> FairPath:
        """Return the stack whose score biases are all in [−τ, τ] (Eq. 3)."""
        box = np.vstack([self.problem.contrasts.T, -self.problem.contrasts.T])
        box = np.column_stack([box, np.zeros(len(box))])  # the constant has no bias
        none = np.empty((0, self.problem.n_coefficients))
        solved = self._solve(none, np.empty(0), box, np.full(len(box), tau))
        warn_if_unconverged("hinge", [solved], self.tolerance)
        return self.problem.path(self.problem.bias(solved.beta)[None, :], [solved])

    def _solve(
        self, rows: FloatArray, values: FloatArray, box: FloatArray | None = None, largest: FloatArray | None = None
    ) -> Solved:
        """Return the solution; its residual is the largest of duality gap, primal and dual residual.

        Notes
        -----
        Variables (w, constant, ξ). Clarabel's form is min ½xᵀPx + qᵀx with A·x + s = b and s in cones: equalities for
        the bias, then 1 − (2y − 1)·η ≤ ξ and 0 ≤ ξ, then box·(w, constant) ≤ largest if there is a box.
        """
        problem, n = self.problem, len(self.problem.y)
        k = problem.n_coefficients
        sign = 2.0 * problem.y - 1.0
        quadratic = sparse.diags(np.concatenate([problem.ridge, np.zeros(n)]), format="csc")
        linear = np.concatenate([np.zeros(k), problem.row_weight])
        eye = sparse.identity(n, format="csc")
        blocks = [
            [sparse.csc_matrix(rows), sparse.csc_matrix((len(rows), n))],
            [sparse.csc_matrix(-sign[:, None] * problem.design), -eye],
            [sparse.csc_matrix((n, k)), -eye],
        ]
        limit = [values, -np.ones(n), np.zeros(n)]
        if box is not None and largest is not None:
            blocks.append([sparse.csc_matrix(box), sparse.csc_matrix((len(box), n))])
            limit.append(largest)
        matrix = sparse.bmat(blocks if len(rows) else blocks[1:], format="csc")
        cones: list[Any] = [self._clarabel.ZeroConeT(len(rows))] if len(rows) else []
        cones.append(self._clarabel.NonnegativeConeT(matrix.shape[0] - len(rows)))
        settings = self._clarabel.DefaultSettings()
        settings.verbose, settings.max_iter = False, self.max_iterations
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        result = self._clarabel.DefaultSolver(quadratic, linear, matrix, np.concatenate(limit), cones, settings).solve()
        if not np.all(np.isfinite(result.x)):
            raise FairFrontierError(f"the quadratic program of loss='hinge' failed: {result.status}")
        gap = abs(result.obj_val - result.obj_val_dual) / max(1.0, abs(result.obj_val))
        return Solved(np.asarray(result.x)[:k], max(gap, result.r_prim, result.r_dual), int(result.iterations))
