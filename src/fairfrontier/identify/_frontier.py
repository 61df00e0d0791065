"""The empirical Pareto frontier: TAF (Definition 2, Algorithm 1), TAFI (Theorem 2) and the signed hull."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfrontier._columns import as_array, numeric, to_frame
from fairfrontier._notebook import curve_html
from fairfrontier._validation import FloatArray, IntArray, interpolation, unit_interval_pairs
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._hull import concave_majorant, ratio_hull, signed_hull_1d, signed_hull_lp
from fairfrontier.metrics._contrasts import RowSets

# Below this many models a filter costs more than the sort that it saves.
_FILTER_FROM = 8192
# Size of the filter's sample and number of its intervals, a power of two: f·1024 is then exact.
_SAMPLE = 1024
# Levels at which mixtures are looked for where fairness is a ratio, besides those of the models on the frontier.
_RATIO_LEVELS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True, eq=False, repr=False)
class TAFCurve:
    """The best accuracy at each level of fairness.

    Attributes
    ----------
    fairness : ndarray of shape (q,)
        The knots, ascending. To the right of the last one the curve is 0: no model is as fair as that.
    accuracy : ndarray of shape (q,)
        The curve at the knots, descending.
    support : ndarray of shape (r,)
        Indices of the models that make the curve.
    linear : bool
        False: a step function, continuous from the left. True: linear between the knots (randomised mixtures).
    mixture : ndarray of shape (q, r) or None
        The probabilities of the `support` models at each knot; None: knot i is the model ``support[i]`` alone.
    library : str
        The dataframe library of `to_frame`.

    Examples
    --------
    >>> curve = taf_curve([0.7, 0.9, 1.0], [0.9, 0.8, 0.5])
    >>> curve(0.7), curve(0.8), curve(1.0)
    (0.9, 0.8, 0.5)
    """

    fairness: FloatArray
    accuracy: FloatArray
    support: IntArray
    linear: bool = False
    mixture: FloatArray | None = None
    library: str = "pandas"

    def __call__(self, fairness: ArrayLike) -> Any:
        """Evaluate the curve; a float for a float, an array for an array."""
        f = numeric(as_array(fairness, parameter="fairness"), parameter="fairness").astype(np.float64, copy=False)
        if np.isnan(f).any():
            raise InvalidInputError("fairness must have no NaN: the curve has a value at each level of fairness")
        right = np.minimum(np.searchsorted(self.fairness, f, side="left"), len(self.fairness) - 1)
        value = np.interp(f, self.fairness, self.accuracy) if self.linear else self.accuracy[right]
        result = np.where(f <= self.fairness[-1], value, 0.0)
        return float(result) if result.ndim == 0 else result

    def to_frame(self) -> Any:
        """Return the knots as a dataframe: fairness, accuracy and, where a knot is one model, its index."""
        model = {"model": self.support} if self.mixture is None else {}
        return to_frame({"fairness": self.fairness, "accuracy": self.accuracy, **model}, self.library)

    def __len__(self) -> int:
        return len(self.fairness)

    def _repr_html_(self) -> str:
        return curve_html(self.fairness, self.accuracy, linear=self.linear)

    def __repr__(self) -> str:
        kind = "linear" if self.linear else "step"
        return (
            f"TAFCurve({len(self)} knots, {kind}; accuracy {self.accuracy[0]:.4f} at fairness {self.fairness[0]:.4f} "
            f"to {self.accuracy[-1]:.4f} at {self.fairness[-1]:.4f})"
        )


def taf_curve(fairness: ArrayLike, accuracy: ArrayLike, *, interpolate: bool = False) -> TAFCurve:
    """Compute the TAF curve of a collection of models.

    Parameters
    ----------
    fairness, accuracy : array-like of shape (k,)
        One value per model, in [0, 1], larger is better.
    interpolate : bool
        False: TAF, a step function. True: TAFI, its upper concave hull.

    Returns
    -------
    TAFCurve
        `support` holds the indices of the Pareto-optimal models, ascending in fairness. Of equal models the first is
        kept.

    Notes
    -----
    TAF(f) = max {accuracy(h) : fairness(h) ≥ f} (Definition 2), found by Algorithm 1: sort by fairness, keep the
    running maximum of the accuracy. To the right of the fairest model there is no maximum and the curve is 0, also
    with ``interpolate=True``: no mixture of these models is fairer than the fairest.

    Examples
    --------
    >>> curve = taf_curve([0.9, 0.8, 1.0, 0.85], [0.8, 0.9, 0.6, 0.7])
    >>> curve.support
    array([1, 0, 2])
    >>> curve.accuracy
    array([0.9, 0.8, 0.6])
    >>> taf_curve([0.8, 0.9, 1.0], [0.9, 0.6, 0.6], interpolate=True)(0.9)
    0.75
    """
    advice = ": the signed hull needs biases, see TradeoffPoints.frontier"
    interpolate = bool(interpolation(interpolate, signed=False, advice=advice))
    f, a = unit_interval_pairs(fairness, accuracy)
    support = _pareto(f, a)
    if not interpolate:
        return TAFCurve(f[support], a[support], support)
    vertices = concave_majorant(f[support], a[support])
    support = support[vertices]
    return TAFCurve(f[support], a[support], support, linear=True)


def _pareto(f: FloatArray, a: FloatArray) -> IntArray:
    """Return the Pareto-optimal models of Algorithm 1, ascending in fairness."""
    candidates = _not_beaten_by_sample(f, a) if len(f) >= _FILTER_FROM else np.arange(len(f))
    order = candidates[np.argsort(f[candidates])]
    sorted_f, sorted_a = f[order], a[order]
    # Algorithm 1 visits models from the fairest on. Among equally fair ones the most accurate takes the place of the
    # others, and of those the first; it stays if it is more accurate than all that are fairer.
    starts = np.flatnonzero(np.concatenate([[True], sorted_f[1:] > sorted_f[:-1]]))
    best = np.maximum.reduceat(sorted_a, starts)
    best_of_fairer = np.concatenate([np.maximum.accumulate(best[::-1])[::-1][1:], [-np.inf]])
    optimal = best > best_of_fairer
    if len(starts) == len(order):
        return order[optimal]
    size = np.diff(starts, append=len(order))
    place = np.flatnonzero(np.repeat(optimal, size))  # the members of the optimal groups
    size = size[optimal]
    is_best = sorted_a[place] == np.repeat(best[optimal], size)
    return np.minimum.reduceat(np.where(is_best, order[place], len(f)), np.cumsum(size) - size)


def _not_beaten_by_sample(f: FloatArray, a: FloatArray) -> IntArray:
    """Return the models that a sample of the models does not beat: on most inputs a small rest."""
    every = len(f) // _SAMPLE
    best = _pareto(f[::every], a[::every])
    # What the sample attains at the upper end of each of many intervals of fairness is attained in all of it.
    ends = np.minimum(np.arange(1, _SAMPLE + 2) / _SAMPLE, 1.0)
    attained = TAFCurve(f[::every][best], a[::every][best], best)(ends)
    return np.flatnonzero(a >= attained[(f * _SAMPLE).astype(np.intp)])


def frontier_of(
    rates: FloatArray, sets: RowSets, accuracy: FloatArray, interpolate: bool | Literal["signed"]
) -> TAFCurve:
    """Return the TAF curve of models from their rates (k, s), or a hull of it; see `TradeoffPoints.frontier`."""
    if interpolate and not sets.compares_differences:
        return _ratio_frontier(rates, sets, accuracy)
    if interpolate == "signed":
        return signed_frontier(rates, sets, accuracy)
    return taf_curve(sets.fairness(rates), accuracy, interpolate=bool(interpolate))


def _ratio_frontier(rates: FloatArray, sets: RowSets, accuracy: FloatArray) -> TAFCurve:
    """Return what randomised mixtures attain where fairness is a ratio: steps, each a mixture that is fair enough."""
    if sets.comparison != "ratio":
        raise InvalidInputError(
            "interpolate must be False with odds ratios: mixtures have no linear program for them; use 'impact_ratio'"
        )
    alone = taf_curve(sets.fairness(rates), accuracy)
    knots = ratio_hull(rates, sets, accuracy, np.append(_RATIO_LEVELS, alone.fairness))
    used = np.flatnonzero((knots.probability > 0).any(axis=0))
    return TAFCurve(knots.fairness, knots.accuracy, knots.models[used], mixture=knots.probability[:, used])


def signed_frontier(rates: FloatArray, sets: RowSets, accuracy: FloatArray) -> TAFCurve:
    """Compute the best accuracy of any randomised mixture at each level of fairness.

    Parameters
    ----------
    rates : ndarray of shape (k, s)
        The rate of each model in each row set.
    sets : RowSets
        How the row sets are compared.
    accuracy : ndarray of shape (k,)
        Accuracy of each model.

    Returns
    -------
    TAFCurve
        Linear between its knots; `mixture` has the probabilities of the models at each knot.

    Notes
    -----
    With one contrast it is the upper hull in the plane (signed bias, accuracy), folded at zero; with several it is a
    parametric linear program.
    """
    if sets.n_contrasts == 1:
        (first, second) = sets.blocks[0]
        knots = signed_hull_1d(rates[:, first] - rates[:, second], accuracy)
    else:
        knots = signed_hull_lp(rates, sets, accuracy)
    used = np.flatnonzero((knots.probability > 0).any(axis=0))
    mixture: NDArray[np.float64] = knots.probability[:, used]
    return TAFCurve(knots.fairness, knots.accuracy, knots.models[used], linear=True, mixture=mixture)
