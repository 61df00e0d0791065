"""Hinge-loss stacks: a quadratic program through Clarabel."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import ConvergenceWarning, FairFrontierError
from fairfrontier.optimize.path import FairPath
from fairfrontier.optimize.problem import ConstrainedProblem


class HingeSolver:
    """Minimise Σ max(0, 1 − (2y − 1)·η) + (α/2)·‖Dw‖² subject to score bias t.

    Parameters
    ----------
    problem : ConstrainedProblem
        Predictions, target, contrasts, ridge and weights; the score is the margin η.
    tolerance : float
        Largest duality gap, relative to the objective, of a solution that counts as converged.
    """

    def __init__(self, problem: ConstrainedProblem, tolerance: float = 1e-6) -> None:
        self.problem, self.tolerance = problem, tolerance
        self._clarabel = require("clarabel", extra="hinge", purpose="loss='hinge'")

    def unconstrained(self) -> FloatArray:
        """Return the coefficients without a bias constraint, shape (k + 1,)."""
        return self._solve(np.empty((0, self.problem.n_coefficients)), np.empty(0))[0]

    def path(self, targets: FloatArray) -> FairPath:
        """Return the stacks at targets (p, m)."""
        rows = self.problem.constraint_rows
        solved = [self._solve(rows, self.problem.constraint_values(target)) for target in targets]
        worst = max(gap for _, gap in solved)
        if worst > self.tolerance:
            warnings.warn(
                f"loss='hinge' stopped with a duality gap of {worst:.2g}, above the tolerance {self.tolerance:g}: "
                "use a larger alpha",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self.problem.path(targets, [beta for beta, _ in solved], [gap for _, gap in solved])

    def _solve(self, rows: FloatArray, values: FloatArray) -> tuple[FloatArray, float]:
        """Return the coefficients and the relative duality gap.

        Notes
        -----
        Variables (w, constant, ξ). Clarabel's form is min ½xᵀPx + qᵀx with A·x + s = b and s in cones: equalities for
        the bias, then 1 − (2y − 1)·η ≤ ξ and 0 ≤ ξ.
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
        matrix = sparse.bmat(blocks if len(rows) else blocks[1:], format="csc")
        limit = np.concatenate([values, -np.ones(n), np.zeros(n)])
        cones: list[Any] = [self._clarabel.ZeroConeT(len(rows))] if len(rows) else []
        cones.append(self._clarabel.NonnegativeConeT(2 * n))
        settings = self._clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        result = self._clarabel.DefaultSolver(quadratic, linear, matrix, limit, cones, settings).solve()
        if not np.all(np.isfinite(result.x)):
            raise FairFrontierError(f"the quadratic program of loss='hinge' failed: {result.status}")
        gap = abs(result.obj_val - result.obj_val_dual) / max(1.0, abs(result.obj_val))
        return np.asarray(result.x)[:k], max(gap, float(result.r_prim), float(result.r_dual))
