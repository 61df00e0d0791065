"""Operating points: which stack of a fitted path decides. Moving along the path needs no other fit."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logit

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.optimize._fitting import FittedPath
from fairfrontier.optimize._mixture import Key, TwoStacks
from fairfrontier.optimize._ridge_path import TAU_ADVICE
from fairfrontier.optimize._tuning import interpolate
from fairfrontier.quantify._weights import as_weight

# From the threshold of a score to that of the linear predictor, for each loss.
_PREDICTOR_THRESHOLD: dict[str, Callable[[float], float]] = {
    "squared": float,
    "log": lambda threshold: float(logit(threshold)),
    "hinge": lambda threshold: 2.0 * threshold - 1.0,
}


def predictor_threshold(loss: str, threshold: float) -> float:
    """Return the number above which the linear predictor of a loss means decision 1."""
    return _PREDICTOR_THRESHOLD[loss](float(threshold))


# A rate that differs by less has not moved.
_MOVED = 5e-4


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """What was asked for, and what an operating point gives.

    Attributes
    ----------
    asked : float or None
        The least fairness that was asked for.
    estimated : float
        The fairness to expect on new rows, half of the time more and half of the time less.
    promised : float or None
        The fairness that was promised; None without a confidence.
    confidence : float or None
        With which it was.
    n_calibration : int
        Rows on which the promise rests that nothing was fitted to.
    procedure : str
        How the place was chosen.
    kind : {"stack", "constant", "mixture"}
        One stack, the constant model, or one of two drawn by a record's id.
    accuracy : float
        The accuracy to expect on new rows.
    given_up : float
        The accuracy of the unconstrained stack minus that.
    rates : dict of str to float
        The rate of positive decisions (the mean prediction) in each row set.
    ratio : float
        The smallest quotient of two of them.
    changed : dict of str to int
        Rows of each row set whose decision is another than the unconstrained stack's, of the rows fitted to; empty
        where the rows were not at hand.
    asked_ratio, asked_loss, asked_rate : float or None
        The least quotient of two rates, the largest loss of accuracy and the least rate that were asked for.
    rates_before : dict of str to float
        The rates of the unconstrained stack.
    notes : tuple of str
        What else there is to know.
    """

    asked: float | None
    estimated: float
    accuracy: float
    given_up: float
    kind: str
    rates: dict[str, float]
    ratio: float
    changed: dict[str, int]
    asked_ratio: float | None = None
    asked_loss: float | None = None
    promised: float | None = None
    confidence: float | None = None
    n_calibration: int = 0
    procedure: str = ""
    notes: tuple[str, ...] = ()
    asked_rate: float | None = None
    rates_before: dict[str, float] = field(default_factory=dict)

    @property
    def levelling(self) -> str:
        """Whether groups are brought together by raising rates ("up"), by lowering them ("down"), or by "both".

        "none": no rate is another than that of the unconstrained stack.
        """
        moves = [self.rates[name] - before for name, before in self.rates_before.items()]
        up, down = any(move > _MOVED for move in moves), any(move < -_MOVED for move in moves)
        return "both" if up and down else "up" if up else "down" if down else "none"

    def __str__(self) -> str:
        asked = {"fairness": self.asked, "ratio": self.asked_ratio, "loss of accuracy": self.asked_loss}
        asked |= {"rate": self.asked_rate}
        wanted = ", ".join(f"{name} {value:g}" for name, value in asked.items() if value is not None)
        lines = [
            ("asked", wanted),
            ("estimated", f"fairness {self.estimated:.4f}, ratio {self.ratio:.3f}"),
            ("accuracy", f"{self.accuracy:.4f}, {self.given_up:.4f} below the unconstrained stack"),
            ("operates", {"stack": "one stack", "constant": "the constant model"}.get(self.kind, "one of two models")),
            ("procedure", self.procedure),
        ]
        if self.confidence is not None:
            shown = "what was asked" if self.promised is None else f"fairness {self.promised:.4g}"
            rows = f" on {self.n_calibration:,} rows" if self.n_calibration else ""
            lines.insert(2, ("promised", f"{shown} with confidence {self.confidence:g}{rows}"))
        for name, rate in self.rates.items():
            moved = f", {self.changed[name]:,} decisions change" if name in self.changed else ""
            before = f", {self.rates_before[name]:.3f} before" if name in self.rates_before else ""
            lines.append((name, f"rate {rate:.3f}{before}{moved}"))
        lines += [("note", note) for note in self.notes]
        width = max(len(title) for title, _ in lines)
        return "\n".join(f"{title:<{width}}  {text}" for title, text in lines)

    def __repr__(self) -> str:
        promised = "" if self.promised is None else f", promised={self.promised:.4g}"
        return (
            f"Selection({self.kind}, asked={self.asked}, estimated={self.estimated:.4f}{promised}, "
            f"accuracy={self.accuracy:.4f}, given_up={self.given_up:.4f})"
        )


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """The stack that decides.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Weight of each base model.
    intercept : float
        The constant.
    target : float or ndarray of shape (m,)
        Its score bias.
    mixture : TwoStacks or None
        Two stacks, one of which decides on each record; None: the stack alone does.
    selection : Selection or None
        What was asked for and what it gives; None: it was not selected.
    """

    weights: FloatArray
    intercept: float
    target: Any
    mixture: TwoStacks | None = None
    selection: Selection | None = None


@dataclass(frozen=True, eq=False)
class StackPath:
    """A fitted path, and how its stacks decide.

    Attributes
    ----------
    fitted : FittedPath
        The path.
    loss : str
        Its loss.
    threshold : float
        Score above which the decision is 1.
    regression : bool
        There are no decisions.
    tau : float or None
        The tau that the path was fitted with; without a closed form it has an exact stack.
    """

    fitted: FittedPath
    loss: str
    threshold: float
    regression: bool
    tau: float | None = None

    @property
    def predictor_threshold(self) -> float:
        """The number above which the linear predictor means decision 1."""
        return predictor_threshold(self.loss, self.threshold)

    def initial(self, weight: Any) -> OperatingPoint:
        """Return the point of `tau` or, without one, that which alone with the constant has the largest FAUC."""
        if self.tau is not None:
            return self.at_tau(float(self.tau))
        points, path = self.fitted.points, self.fitted.path
        share = as_weight(weight).normalized(points.fairness[:-1])
        best = int(np.argmax((points.accuracy[:-1] - points.accuracy[-1]) * share))
        return OperatingPoint(path.weights[best].copy(), float(path.intercept[best]), path.target[best])

    def at(self, *, tau: Any, target: Any) -> OperatingPoint:
        """Return the point at one of a largest score bias and an exact one."""
        if (tau is None) == (target is None):
            raise InvalidInputError(f"give exactly one of tau and target; got tau={tau!r}, target={target!r}")
        if tau is not None:
            return self.at_tau(validate.number(tau, parameter="tau", low=0.0, advice=TAU_ADVICE))
        wanted = np.atleast_1d(np.asarray(target, dtype=np.float64))
        m = self.fitted.path.target[0].size
        if wanted.shape != (m,) or not np.all(np.isfinite(wanted)):
            raise InvalidInputError(f"target must be {m} finite number(s), one per contrast; got {target!r}")
        solution = self.fitted.solution
        return self.at_target(wanted if solution is None else solution.coordinates(wanted[None, :])[0])

    def at_tau(self, tau: float) -> OperatingPoint:
        """Return the point with all score biases in [−τ, τ]; see `FairStacksClassifier.at` for what is exact."""
        solution, at_tau = self.fitted.solution, self.fitted.at_tau
        if solution is not None:
            return self.at_target(solution.target_for_tau(tau))
        if at_tau is not None and tau == self.tau:
            return OperatingPoint(at_tau.weights[0], float(at_tau.intercept[0]), at_tau.target[0])
        b0 = np.atleast_1d(self.fitted.path.target[0])  # paths begin at the unconstrained stack
        largest = float(np.abs(b0).max())
        return self.at_target(b0 * min(1.0, tau / largest) if largest > 0 else b0)

    def at_target(self, target: FloatArray) -> OperatingPoint:
        """Return the point with score bias `target`, in the coordinates of a solution."""
        weights, intercept = self._with_bias(target[None, :])
        wanted = target if self.fitted.solution is None else self.fitted.solution.of_pairs(target)
        return OperatingPoint(weights[0], float(intercept[0]), float(wanted[0]) if len(wanted) == 1 else wanted)

    def _with_bias(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights (p, k) and constants (p,) of the stacks with score biases `targets` (p, m)."""
        if self.fitted.solution is not None:
            return self.fitted.solution.stacks(targets)
        mixed = np.array([self._between_points(target) for target in targets])
        mixed = mixed.reshape(len(targets), self.fitted.path.weights.shape[1] + 1)
        return mixed[:, :-1], mixed[:, -1]

    def _between_points(self, target: FloatArray) -> FloatArray:
        """Return the mixture (k + 1,) of neighbours on the path with score bias `target`, which is linear in it."""
        path, positions = self.fitted.path, self.fitted.positions
        b0 = np.atleast_1d(path.target[0])
        position = float(target @ b0 / max(float(b0 @ b0), 1e-300))
        off = np.abs(position * b0 - target).max() > 1e-8 * max(float(np.abs(b0).max()), 1.0)
        if off or not positions[-1] - 1e-9 <= position <= positions[0] + 1e-9:
            raise InfeasibleError(
                f"target must lie on the path with loss={self.loss!r}, from {b0.tolist()} to "
                f"{(positions[-1] * b0).tolist()}; got {target.tolist()}"
            )
        # np.interp wants ascending positions.
        both = np.column_stack([path.weights, path.intercept])[::-1]
        return np.array([np.interp(position, positions[::-1], column) for column in both.T])

    def stacks(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights (p, k) and constants (p,) at places of the path; NaN is the constant model."""
        weights = np.zeros((len(places), self.fitted.path.weights.shape[1]))
        intercept = np.full(len(places), self._constant_predictor())
        known = np.isfinite(places)
        weights[known], intercept[known] = self._with_bias(interpolate(places[known], self.fitted.sweep.target))
        return weights, intercept

    def _constant_predictor(self) -> float:
        """Return the linear predictor of the constant model: its decision's score, or the mean of the target."""
        if self.fitted.residual is not None:
            return self.fitted.residual.constant
        if self.regression and self.fitted.solution is not None:
            return float(self.fitted.solution.mean_y)
        flat = float(self.fitted.points.rates[-1, 0])
        return {"squared": flat, "log": 20.0 * (2.0 * flat - 1.0), "hinge": 2.0 * flat - 1.0}[self.loss]

    def at_places(self, first: float, second: float, share: float, secret: bytes | None) -> OperatingPoint:
        """Return the point at a place of the path, or a mixture of two that has the first with probability `share`."""
        places = np.array([first, second])
        weights, intercept = self.stacks(places)
        mixture = None
        if share < 1.0 and not np.array_equal(first, second, equal_nan=True):
            key = Key(secrets.token_bytes(32) if secret is None else secret)
            mixture = TwoStacks(weights, intercept, share, key)
        target = np.zeros_like(self.fitted.path.target[0])
        if np.isfinite(first):
            at_first = interpolate(places[:1], self.fitted.sweep.target)[0]
            target = at_first if np.ndim(target) else float(at_first[0])
        return OperatingPoint(weights[0], float(intercept[0]), target, mixture)
