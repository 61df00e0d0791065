"""A stacking problem for losses without a closed form: design, ridge and bias constraints."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import ConvergenceWarning, InfeasibleError
from fairfrontier.optimize._ridge_path import FairPath


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
        The labels as 0 and 1.
    weight : ndarray of shape (n,) or None
        Sample weights.
    contrasts : ndarray of shape (k, m)
        B = HᵀC, the score bias of each base model on each contrast.
    alpha : float
        The ridge: (α/2)·‖Dw‖².
    scale : ndarray of shape (k,)
        D.
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
        self.y, self.contrasts = y, contrasts
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

    def bias(self, beta: FloatArray) -> FloatArray:
        """Return the score bias Bᵀw, shape (m,)."""
        return np.asarray(self.contrasts.T @ beta[:-1])

    def path(self, targets: FloatArray, solved: Sequence[Solved]) -> FairPath:
        """Return the solutions at targets (p, m) as a path."""
        beta = np.stack([one.beta for one in solved])
        bias = beta[:, :-1] @ self.contrasts
        single = targets.shape[1] == 1
        return FairPath(
            target=targets[:, 0] if single else targets,
            tau=np.abs(targets).max(axis=1),
            score_bias=bias[:, 0] if single else bias,
            weights=beta[:, :-1],
            intercept=beta[:, -1] - beta[:, :-1] @ self.mean_h,
            kkt=np.array([one.residual for one in solved]),
        )


def warn_if_unconverged(loss: str, solved: Sequence[Solved], tolerance: float) -> None:
    """Warn of the worst solution if it misses its optimality conditions by more than the tolerance."""
    worst = max(solved, key=lambda one: one.residual)
    if worst.residual > tolerance:
        warnings.warn(
            f"loss={loss!r} stopped with a KKT residual of {worst.residual:.2g}, above the tolerance {tolerance:g}, "
            f"after {worst.iterations} iterations: use a larger alpha",
            ConvergenceWarning,
            stacklevel=2,
        )
