"""Weight functions on [0, 1]: how much each level of fairness matters.

A weight knows its own integrals W(x) = ∫₀ˣ w and M(x) = ∫₀ˣ u·w(u) du, and so the area under a curve that is constant
or linear between knots is exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

from fairfrontier._validation import FloatArray, column, finite, number
from fairfrontier.exceptions import InvalidInputError


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
        return self.cumulative(fairness) / self.cumulative(np.ones(1))


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
    """Weight 1 everywhere: each level of fairness matters alike.

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
        knots = column(self.knots, parameter="knots").astype(np.float64)
        values = column(self.values, parameter="values").astype(np.float64)
        finite(knots, parameter="knots")
        finite(values, parameter="values")
        if len(knots) < 2 or not np.all(np.diff(knots) > 0) or knots[0] < 0 or knots[-1] > 1:
            raise InvalidInputError(f"knots must be at least two ascending levels in [0, 1]; got {knots.tolist()[:6]}")
        if len(values) not in (len(knots), len(knots) - 1):
            raise InvalidInputError(
                f"values must have as many entries as knots, {len(knots)}, or one fewer; got {len(values)}"
            )
        if values.min() < 0:
            raise InvalidInputError(f"values must be non-negative; got {values.min():g}")
        left, right = (values[:-1], values[1:]) if len(values) == len(knots) else (values, values)
        slope = (right - left) / np.diff(knots)
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "values", values)
        # Between two knots w(x) = intercept + slope·x.
        object.__setattr__(self, "_lines", np.stack([left - slope * knots[:-1], slope]))
        object.__setattr__(self, "_area", np.concatenate([[0.0], np.cumsum(self._pieces(knots[1:], 0))]))
        object.__setattr__(self, "_moment", np.concatenate([[0.0], np.cumsum(self._pieces(knots[1:], 1))]))
        if self._area[-1] <= 0:
            raise InvalidInputError("values must not be all zero: the weight would integrate to zero")

    def _pieces(self, x: FloatArray, power: int, piece: Any = slice(None)) -> FloatArray:
        """Return ∫ u^power·w(u) du from the left knot of each `piece` to `x`."""
        intercept, slope = self._lines[:, piece]
        low = self.knots[:-1][piece]
        first = (x ** (power + 1) - low ** (power + 1)) / (power + 1)
        second = (x ** (power + 2) - low ** (power + 2)) / (power + 2)
        return np.asarray(intercept * first + slope * second)

    def _cumulative(self, fairness: FloatArray, power: int, start: FloatArray) -> FloatArray:
        x = np.clip(fairness, self.knots[0], self.knots[-1])
        piece = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        return np.asarray(start[piece] + self._pieces(x, power, piece))

    def __call__(self, fairness: ArrayLike) -> Any:
        x = np.asarray(fairness, dtype=np.float64)
        piece = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        value = self._lines[0, piece] + self._lines[1, piece] * x
        return np.where((x >= self.knots[0]) & (x <= self.knots[-1]), value, 0.0)[()]

    def cumulative(self, fairness: FloatArray) -> FloatArray:
        return self._cumulative(fairness, 0, self._area)

    def cumulative_moment(self, fairness: FloatArray) -> FloatArray:
        return self._cumulative(fairness, 1, self._moment)


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
        value = float(self.function(float(fairness)))
        if not value >= 0 or not np.isfinite(value):
            raise InvalidInputError(
                f"weight must be non-negative and finite on [0, 1]; got {value:g} at fairness {float(fairness):g}"
            )
        return value

    @staticmethod
    def _integrate(function: Callable[[float], float], fairness: FloatArray) -> FloatArray:
        levels, where = np.unique(np.append(np.ravel(fairness), 0.0), return_inverse=True)
        pieces = [quad(function, a, b, limit=200)[0] for a, b in pairwise(levels)]
        total = np.concatenate([[0.0], np.cumsum(pieces)])
        return np.asarray(total[where[:-1]].reshape(np.shape(fairness)))


def as_weight(weight: Weight | Callable[[float], float] | None) -> Weight:
    """Return a `Weight`: None is uniform, a plain function is integrated numerically."""
    if weight is None:
        return UniformWeight()
    if isinstance(weight, Weight):
        return weight
    if callable(weight):
        return CallableWeight(weight)
    raise InvalidInputError(f"weight must be None, a Weight or a function of fairness; got {weight!r}")


def _below_one(value: float, parameter: str) -> None:
    if not 0.0 <= number(value, parameter=parameter) < 1.0:
        raise InvalidInputError(f"{parameter} must be in [0, 1); got {value!r}: at 1 the weight integrates to zero")
