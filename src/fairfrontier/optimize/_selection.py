"""Operating points: moving a fitted stack along its path without fitting again."""

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.optimize._fitting import FittedPath
from fairfrontier.optimize._ridge_path import TAU_ADVICE, FairPath
from fairfrontier.quantify._weights import as_weight


class OperatingPoint:
    """The part of a fitted stack that chooses one stack of its path."""

    path_: FairPath
    points_: TradeoffPoints
    weight: Any
    tau: float | None
    loss: str
    _fitted: FittedPath

    def _keep(self, fitted: FittedPath) -> None:
        """Keep a fitted path, and go to the operating point that was asked for."""
        self._fitted = fitted
        self.path_, self.alpha_, self.scales_ = fitted.path, fitted.alpha, fitted.scale
        self.points_, self.cv_fauc_ = fitted.points, fitted.tried
        if self.tau is None:
            self._operate(self._best_position())
        else:
            self._operate_at_tau(float(self.tau))

    def _best_position(self) -> int:
        """Return the point of the path that, alone with the constant model, has the largest FAUC."""
        share = as_weight(self.weight).normalized(self.points_.fairness[:-1])
        constant = self.points_.accuracy[-1]
        return int(np.argmax((self.points_.accuracy[:-1] - constant) * share))

    def _operate(self, index: int) -> None:
        self.weights_, self.intercept_ = self.path_.weights[index].copy(), float(self.path_.intercept[index])
        self.target_ = self.path_.target[index]

    def _operate_at(self, target: FloatArray) -> None:
        solution = self._fitted.solution
        if solution is not None:
            solution.check_feasible(target[None, :])
            weights, intercept = solution.stacks(target[None, :])
            self.weights_, self.intercept_ = weights[0], float(intercept[0])
        else:
            self.weights_, self.intercept_ = self._between_points(target)
        self.target_ = float(target[0]) if len(target) == 1 else target

    def _operate_at_tau(self, tau: float) -> None:
        solution, at_tau = self._fitted.solution, self._fitted.at_tau
        if solution is not None:
            self._operate_at(solution.target_for_tau(tau))
        elif at_tau is not None and tau == self.tau:
            self.weights_, self.intercept_ = at_tau.weights[0], float(at_tau.intercept[0])
            self.target_ = at_tau.target[0]
        else:
            b0 = np.atleast_1d(self.path_.target[0])  # paths begin at the unconstrained stack
            largest = float(np.abs(b0).max())
            self._operate_at(b0 * min(1.0, tau / largest) if largest > 0 else b0)

    def _between_points(self, target: FloatArray) -> tuple[FloatArray, float]:
        """Return the mixture of two neighbours on the path with score bias `target`: the bias is linear in w."""
        b0, positions = np.atleast_1d(self.path_.target[0]), self._fitted.positions
        position = float(target @ b0 / max(float(b0 @ b0), 1e-300))
        off = np.abs(position * b0 - target).max() > 1e-8 * max(float(np.abs(b0).max()), 1.0)
        if off or not positions[-1] - 1e-9 <= position <= positions[0] + 1e-9:
            raise InfeasibleError(
                f"target must lie on the path with loss={self.loss!r}, from {b0.tolist()} to "
                f"{(positions[-1] * b0).tolist()}; got {target.tolist()}"
            )
        # np.interp wants ascending positions.
        both = np.column_stack([self.path_.weights, self.path_.intercept])[::-1]
        mixed = np.array([np.interp(position, positions[::-1], column) for column in both.T])
        return mixed[:-1], float(mixed[-1])

    def at(self, *, tau: float | None = None, target: Any = None) -> Self:
        """Return this model at another operating point.

        Parameters
        ----------
        tau : float, optional
            Largest absolute score bias (the constrained form, Eq. 3).
        target : float or array-like of shape (m,), optional
            Score bias exactly t; may have the other sign than the unconstrained stack's.

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A fitted copy; the path is shared.

        Notes
        -----
        Exact with the squared loss. Other losses have no closed form: between two points of the path the stack is their
        mixture, which has the score bias asked for and is nearly optimal; `tau` at construction is solved exactly.
        """
        check_is_fitted(self, "path_")
        if (tau is None) == (target is None):
            raise InvalidInputError(f"give exactly one of tau and target; got tau={tau!r}, target={target!r}")
        other = copy.copy(self)
        if tau is not None:
            other._operate_at_tau(validate.number(tau, parameter="tau", low=0.0, advice=TAU_ADVICE))
            return other
        wanted = np.atleast_1d(np.asarray(target, dtype=np.float64))
        m = 1 if self.path_.target.ndim == 1 else self.path_.target.shape[1]
        if wanted.shape != (m,) or not np.all(np.isfinite(wanted)):
            raise InvalidInputError(f"target must be {m} finite number(s), one a contrast; got {target!r}")
        other._operate_at(wanted)
        return other

    def select(self, *, min_fairness: float) -> Self:
        """Return this model at the most accurate point of the path that is fair enough.

        Parameters
        ----------
        min_fairness : float
            Least fairness, in [0, 1], as cross-validated in fit (on the training rows if `alpha` was given).

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A fitted copy.
        """
        check_is_fitted(self, "path_")
        validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
        fairness, accuracy = self.points_.fairness[:-1], self.points_.accuracy[:-1]
        if fairness.max() < min_fairness:
            raise InfeasibleError(
                f"min_fairness must be at most {fairness.max():.4f}, the fairness of the fairest stack on the path; "
                f"got {min_fairness!r}"
            )
        other = copy.copy(self)
        other._operate(int(np.argmax(np.where(fairness >= min_fairness, accuracy, -1.0))))
        return other
