"""FAUC and FAUCI, the weighted area under a TAF curve (Definition 3), and weights: how much each level matters.

A weight knows its own integrals W(x) = ∫₀ˣ w and M(x) = ∫₀ˣ u·w(u) du, and so the area under a curve that is constant
or linear between knots is exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from fairfrontier._columns import FloatArray, IntArray, column, finite, numeric
from fairfrontier._validation import interpolation, number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.identify._points import tradeoff_points
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness


class Weight(ABC):
    """A non-negative weight function on [0, 1] with known integrals."""

    @abstractmethod
    def __call__(self, fairness: ArrayLike) -> Any:
        """Return w at `fairness`."""

    @abstractmethod
    def cumulative(self, fairness: FloatArray) -> FloatArray:
        """Return W(x) = ∫ w over [0, x], point masses at x included."""

    @abstractmethod
    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        """Return M(x) = ∫ u·w(u) du over [0, x], point masses at x included."""

    def normalized(self, fairness: FloatArray) -> FloatArray:
        """Return W(x) / W(1), which runs from 0 to 1."""
        area = self.cumulative(np.append(fairness, 1.0))
        return area[:-1] / positive_total(area)


def positive_total(area: FloatArray) -> float:
    """Return the last value of cumulative integrals, that over all of [0, 1], if it is positive."""
    if not area[-1] > 0:
        raise InvalidInputError(
            f"weight must have a positive integral over [0, 1]; got {area[-1]:g}: give some level of fairness a weight"
        )
    return float(area[-1])


@dataclass(frozen=True)
class PowerWeight(Weight):
    """Weight x^alpha above beta and 0 up to it: the paper's family.

    Parameters
    ----------
    alpha : float
        Larger values stress the fairest models; above −1.
    beta : float
        The least fairness that counts, in [0, 1).

    Examples
    --------
    >>> PowerWeight(2, 0.5)([0.5, 1.0])
    array([0., 1.])
    """

    alpha: float
    beta: float = 0.0

    def __post_init__(self) -> None:
        number(self.alpha, parameter="alpha", low=-1.0, strict=True, advice=": the weight must be integrable")
        _below_one(self.beta, "beta")

    def __call__(self, fairness: ArrayLike) -> Any:
        x = np.asarray(fairness, dtype=np.float64)
        return np.where(x > self.beta, np.maximum(x, 1e-300) ** self.alpha, 0.0)[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        return self._integral(fairness, self.alpha + 1.0)

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        return self._integral(fairness, self.alpha + 2.0)

    def _integral(self, x: FloatArray, power: float) -> FloatArray:
        return np.asarray((np.maximum(x, self.beta) ** power - self.beta**power) / power)


@dataclass(frozen=True)
class StepWeight(Weight):
    """Weight 1 above a least fairness and 0 up to it.

    Parameters
    ----------
    minimum : float
        The least fairness that counts, in [0, 1); 0.8 is the paper's choice.

    Examples
    --------
    >>> StepWeight(0.8)([0.5, 0.8, 0.9])
    array([0., 0., 1.])
    """

    minimum: float = 0.8

    def __post_init__(self) -> None:
        _below_one(self.minimum, "minimum")

    def __call__(self, fairness: ArrayLike) -> Any:
        return (np.asarray(fairness, dtype=np.float64) > self.minimum).astype(np.float64)[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        return np.maximum(fairness, self.minimum) - self.minimum

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        return (np.maximum(fairness, self.minimum) ** 2 - self.minimum**2) / 2.0


@dataclass(frozen=True)
class UniformWeight(Weight):
    """Weight 1 everywhere: all levels of fairness matter equally.

    Examples
    --------
    >>> UniformWeight()([0.3, 0.6])
    array([1., 1.])
    """

    def __call__(self, fairness: ArrayLike) -> Any:
        return np.ones_like(np.asarray(fairness, dtype=np.float64))[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        return np.asarray(fairness, dtype=np.float64)

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        return np.asarray(fairness, dtype=np.float64) ** 2 / 2.0


@dataclass(frozen=True)
class PointWeight(Weight):
    """All weight on one level of fairness (Dirac's delta): FAUC is then TAF at that level.

    Parameters
    ----------
    fairness : float
        The level, in [0, 1].

    Examples
    --------
    >>> from fairfrontier import fauc, taf_curve
    >>> fauc(taf_curve([0.7, 1.0], [0.9, 0.5]), PointWeight(0.7))
    0.9
    """

    fairness: float

    def __post_init__(self) -> None:
        number(self.fairness, parameter="fairness", low=0.0, high=1.0)

    def __call__(self, fairness: ArrayLike) -> Any:
        return np.where(np.asarray(fairness, dtype=np.float64) == self.fairness, np.inf, 0.0)[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        return (np.asarray(fairness) >= self.fairness).astype(np.float64)

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        return self.fairness * self.cumulative(fairness)


@dataclass(frozen=True, eq=False)
class TabulatedWeight(Weight):
    """A weight given by a table.

    Parameters
    ----------
    knots : array-like of shape (q,)
        Ascending levels of fairness in [0, 1].
    values : array-like of shape (q,) or (q − 1,)
        With q values: those at the knots, linear in between. With q − 1: those between the knots, a histogram. Outside
        the knots the weight is 0.

    Examples
    --------
    >>> TabulatedWeight([0.0, 0.5, 1.0], [0.0, 0.0, 2.0])([0.25, 0.75])
    array([0., 1.])
    >>> TabulatedWeight([0.0, 0.5, 1.0], [1.0, 3.0])([0.25, 0.75])
    array([1., 3.])
    """

    knots: FloatArray
    values: FloatArray
    _lines: FloatArray = field(init=False, repr=False)
    _area: FloatArray = field(init=False, repr=False)
    _moment: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        knots = numeric(column(self.knots, parameter="knots"), parameter="knots").astype(np.float64)
        values = numeric(column(self.values, parameter="values"), parameter="values").astype(np.float64)
        finite(knots, parameter="knots")
        finite(values, parameter="values")
        if len(knots) < 2 or not np.all(np.diff(knots) > 0) or knots[0] < 0 or knots[-1] > 1:
            raise InvalidInputError(f"knots must be at least two ascending levels in [0, 1]; got {knots.tolist()[:6]}")
        if len(values) not in (len(knots), len(knots) - 1):
            raise InvalidInputError(
                f"values must have as many entries as knots, {len(knots)}, or one fewer; got {len(values)}"
            )
        if values.min() < 0:
            raise InvalidInputError(
                f"values must be non-negative; got {values.min():g}: give 0 to what does not matter"
            )
        left, right = (values[:-1], values[1:]) if len(values) == len(knots) else (values, values)
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "values", values)
        # From its left knot on, a piece is left + slope·(x − knot).
        object.__setattr__(self, "_lines", np.stack([left, (right - left) / np.diff(knots)]))
        object.__setattr__(self, "_area", self._up_to_knots(moment=False))
        object.__setattr__(self, "_moment", self._up_to_knots(moment=True))
        if self._area[-1] <= 0:
            raise InvalidInputError("values must not be all zero: the weight would integrate to zero; got only zeros")

    def _up_to_knots(self, *, moment: bool) -> FloatArray:
        every_piece = np.arange(len(self.knots) - 1)
        return np.concatenate([[0.0], np.cumsum(self._pieces(self.knots[1:], every_piece, moment=moment))])

    def _pieces(self, x: FloatArray, piece: IntArray, *, moment: bool) -> FloatArray:
        """Return ∫ w, or ∫ u·w(u) du, from the left knot of each `piece` to `x`."""
        (left, slope), low = self._lines[:, piece], self.knots[piece]
        d = x - low
        area = left * d + slope * d**2 / 2
        return np.asarray(low * area + left * d**2 / 2 + slope * d**3 / 3 if moment else area)

    def _piece(self, x: FloatArray) -> IntArray:
        return np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)

    def __call__(self, fairness: ArrayLike) -> Any:
        x = np.asarray(fairness, dtype=np.float64)
        piece = self._piece(x)
        value = self._lines[0, piece] + self._lines[1, piece] * (x - self.knots[piece])
        return np.where((x >= self.knots[0]) & (x <= self.knots[-1]), value, 0.0)[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        x = np.clip(fairness, self.knots[0], self.knots[-1])
        piece = self._piece(x)
        return np.asarray(self._area[piece] + self._pieces(x, piece, moment=False))

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        x = np.clip(fairness, self.knots[0], self.knots[-1])
        piece = self._piece(x)
        return np.asarray(self._moment[piece] + self._pieces(x, piece, moment=True))


class CallableWeight(Weight):
    """Any non-negative function, integrated numerically between the levels asked for.

    Parameters
    ----------
    function : callable
        ``fairness -> weight``, for a float.

    Examples
    --------
    >>> CallableWeight(lambda x: 2 * x).cumulative(np.array([0.5, 1.0])).round(6)
    array([0.25, 1.  ])
    """

    def __init__(self, function: Callable[[float], float]) -> None:
        self.function = function

    def __call__(self, fairness: ArrayLike) -> Any:
        values = np.vectorize(self._value, otypes=[np.float64])(np.asarray(fairness, dtype=np.float64))
        return values[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        return self._integrate(self._value, fairness)

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        return self._integrate(lambda x: x * self._value(x), fairness)

    def _value(self, fairness: float) -> float:
        result = self.function(float(fairness))
        try:
            value = float(result)
        except (TypeError, ValueError):
            value = np.nan
        if not 0.0 <= value < np.inf:
            raise InvalidInputError(
                f"weight must be non-negative and finite on [0, 1]; got {result!r} at fairness {float(fairness):g}: "
                "return 0 where fairness does not matter"
            )
        return value

    @staticmethod
    def _integrate(function: Callable[[float], float], fairness: FloatArray) -> FloatArray:
        levels, where = np.unique(np.append(np.ravel(fairness), 0.0), return_inverse=True)
        pieces = [
            # A piece this narrow holds nothing, and quad's own subintervals of it would underflow.
            scipy.integrate.quad(function, a, b, limit=200)[0] if b - a > 1e-100 else (b - a) * function((a + b) / 2.0)
            for a, b in pairwise(levels)
        ]
        total = np.concatenate([[0.0], np.cumsum(pieces)])
        return np.asarray(total[where[:-1]].reshape(np.shape(fairness)))


def as_weight(weight: Weight | Callable[[float], float] | None) -> Weight:
    """Return a `Weight`: None is uniform, a plain function is integrated numerically."""
    if weight is None:
        return UniformWeight()
    if isinstance(weight, Weight):
        return weight
    if callable(weight) and not isinstance(weight, type):
        return CallableWeight(weight)
    raise InvalidInputError(
        f"weight must be None, a Weight or a function of fairness; got {weight!r}: pass e.g. StepWeight(0.8)"
    )


def _below_one(value: float, parameter: str) -> None:
    if number(value, parameter=parameter, low=0.0, high=1.0) == 1.0:
        raise InvalidInputError(f"{parameter} must be below 1; got {value!r}: at 1 the weight integrates to zero")


def fauc(curve: TAFCurve, weight: Weight | Callable[[float], float] | None = None) -> float:
    """Compute the weighted area under a TAF curve.

    Parameters
    ----------
    curve : TAFCurve
        A step curve gives FAUC, a linear one FAUCI.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all levels equally.

    Returns
    -------
    float
        ∫ TAF·w / ∫ w, in [0, 1].

    Notes
    -----
    Between two knots l and r the curve is linear, so its part of the integral is accuracy(l)·(ΔW − R) + accuracy(r)·R
    with R = (ΔM − l·ΔW)/(r − l) and the weight's own integrals W and M: no quadrature, unless the weight is a plain
    function.

    Examples
    --------
    >>> from fairfrontier import StepWeight, taf_curve
    >>> curve = taf_curve([0.8, 0.9, 1.0], [0.9, 0.8, 0.6])
    >>> round(fauc(curve), 6)
    0.86
    >>> round(fauc(curve, StepWeight(0.8)), 6)
    0.7
    """
    if not isinstance(curve, TAFCurve):
        raise InvalidInputError(
            f"curve must be a TAFCurve; got {type(curve).__name__}: make one with taf_curve or TradeoffPoints.frontier"
        )
    w = as_weight(weight)
    levels = np.append(curve.fairness, 1.0)
    area = w.cumulative(levels)
    total = positive_total(area)
    part = np.diff(area[:-1], prepend=0.0)
    if not curve.linear:
        return float(part @ curve.accuracy / total)
    moment = np.diff(w.cumulative_moment(levels)[:-1])
    # The share of the right knot cannot leave [0, part]; rounding could, where two knots nearly coincide.
    right = np.clip((moment - curve.fairness[:-1] * part[1:]) / np.diff(curve.fairness), 0.0, part[1:])
    flat = part[0] * curve.accuracy[0]  # up to the first knot
    return float((flat + (part[1:] - right) @ curve.accuracy[:-1] + right @ curve.accuracy[1:]) / total)


def fauc_score(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    weight: Weight | Callable[[float], float] | None = None,
    interpolate: bool | Literal["signed"] = False,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
) -> float:
    """Compute FAUC from labels, predictions and sensitive features.

    Parameters
    ----------
    y_true, y_preds, sensitive_features
        As in `tradeoff_points`, as are all parameters that are not listed here.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all levels equally.
    interpolate : {False, True, "signed"}
        FAUC, FAUCI, or the area under the signed hull.
    fairness, accuracy, threshold, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`.

    Returns
    -------
    float
        The weighted area, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> y, sex = np.array([1, 0, 1, 0]), np.array(["f", "f", "m", "m"])
    >>> fauc_score(y, {"a": [0.9, 0.1, 0.8, 0.2]}, sensitive_features=sex)
    1.0
    """
    interpolate = interpolation(interpolate)
    points = tradeoff_points(
        y_true,
        y_preds,
        sensitive_features=sensitive_features,
        fairness=fairness,
        accuracy=accuracy,
        threshold=threshold,
        sensitive_mode=sensitive_mode,
        sample_weight=sample_weight,
        include_constant=include_constant,
    )
    return fauc(points.frontier(interpolate), weight)
