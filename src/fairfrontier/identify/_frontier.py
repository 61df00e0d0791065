"""The empirical Pareto frontier: TAF (Definition 2, Algorithm 1), TAFI (Theorem 2) and the signed hull.

Hulls are concave: of a step curve, and of models in the space (signed biases, accuracy).
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from fairfrontier._columns import as_array, numeric, to_frame
from fairfrontier._notebook import curve_html
from fairfrontier._validation import FloatArray, IntArray, interpolation, unit_interval_pairs
from fairfrontier.exceptions import FairFrontierError, InfeasibleError, InvalidInputError
from fairfrontier.metrics._contrasts import RowSets

# Below this many models a filter costs more than the sort that it saves.
_FILTER_FROM = 8192
# Size of the filter's sample and number of its intervals, a power of two: f·1024 is then exact.
_SAMPLE = 1024
# Levels at which mixtures are looked for where fairness is a ratio, besides those of the models on the frontier.
_RATIO_LEVELS = np.linspace(0.0, 1.0, 101)
# Two slopes of the parametric program that differ by less are one line.
_SLOPE_TOLERANCE = 1e-9
# Up to so many steps a hull is found by a loop.
_FEW_STEPS = 500
# A probability below this is a zero of the solver.
_NO_PROBABILITY = 1e-12


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
    return knots.curve(linear=False)


def signed_frontier(rates: FloatArray, sets: RowSets, accuracy: FloatArray) -> TAFCurve:
    """Compute the best accuracy of any randomised mixture at each level of fairness.

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
    return knots.curve(linear=True)


@dataclass(frozen=True, eq=False)
class Knots:
    """Knots of a signed hull: `fairness`, `accuracy` (q,), `probability` (q, r) of the `models` (r,)."""

    fairness: FloatArray
    accuracy: FloatArray
    models: IntArray
    probability: FloatArray

    def curve(self, *, linear: bool) -> TAFCurve:
        """Return the curve through the knots, of the models that take part in one."""
        used = np.flatnonzero((self.probability > 0).any(axis=0))
        mixture: NDArray[np.float64] = self.probability[:, used]
        return TAFCurve(self.fairness, self.accuracy, self.models[used], linear=linear, mixture=mixture)


def concave_majorant(x: FloatArray, y: FloatArray) -> IntArray:
    """Return the vertices of the least concave majorant of points with ascending `x`.

    Notes
    -----
    The slopes of the least concave majorant are the decreasing isotonic regression of the slopes between neighbours,
    weighted by their widths; its blocks end at the vertices.

    Examples
    --------
    >>> concave_majorant(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.4, 0.0]))
    array([0, 2])
    """
    if len(x) <= 2:
        return np.arange(len(x))
    width = np.maximum(np.diff(x), 1e-200)  # two levels a denormal number apart would have an infinite slope
    slope = np.diff(y) / width
    if len(slope) > _FEW_STEPS:
        blocks = scipy.optimize.isotonic_regression(slope, weights=width, increasing=False).blocks
        return np.asarray(blocks, dtype=np.intp)
    return _pools(slope, width)


def _pools(slope: FloatArray, width: FloatArray) -> IntArray:
    """Return the first step of each pool of steps whose mean slopes descend, and the number of steps.

    `isotonic_regression` does the same, and loading it takes longer than the few steps of most curves.
    """
    means: list[float] = []
    sizes: list[float] = []
    starts: list[int] = []
    for start, (mean, size) in enumerate(zip(slope.tolist(), width.tolist(), strict=True)):
        means.append(mean)
        sizes.append(size)
        starts.append(start)
        while len(means) > 1 and means[-2] <= means[-1]:
            last, of_last = means.pop(), sizes.pop()
            starts.pop()
            means[-1] = (means[-1] * sizes[-1] + last * of_last) / (sizes[-1] + of_last)
            sizes[-1] += of_last
    return np.array([*starts, len(slope)], dtype=np.intp)


def signed_hull_1d(bias: FloatArray, accuracy: FloatArray) -> Knots:
    """Return the knots of max Σ pᵢ·accuracyᵢ subject to |Σ pᵢ·biasᵢ| ≤ 1 − f, for one contrast.

    Notes
    -----
    The best accuracy at bias exactly b is the upper hull of the models in the plane. It is concave, so that from its
    top, as the bound tightens, the best mixture walks along the hull towards bias zero.
    """
    order = np.lexsort((-accuracy, bias))
    order = order[np.concatenate([[True], np.diff(bias[order]) > 0])]  # the most accurate of each bias
    models = order[concave_majorant(bias[order], accuracy[order])]
    x, y, probability = bias[models], accuracy[models], np.eye(len(models))
    for bound in (-1.0, 0.0, 1.0):  # where the walk may start or end between two models
        x, y, probability = _with_knot(bound, x, y, probability)
    top = int(np.lexsort((np.abs(x), -y))[0])
    side = np.sign(x[top])
    walk = np.arange(top, -1, -1) if side > 0 else np.arange(top, len(x) if side < 0 else top + 1)
    walk = walk[(x[walk] * side >= 0) & (np.abs(x[walk]) <= 1.0)]
    if len(walk) == 0:
        return _most_accurate(accuracy)
    fairness = 1.0 - np.abs(x[walk])
    new = np.concatenate([[True], np.diff(fairness) > 0])  # biases that differ in the last digit are one fairness
    return Knots(fairness[new], y[walk][new], models, probability[walk][new])


def _with_knot(
    at: float, x: FloatArray, y: FloatArray, probability: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Insert a knot at bias `at`, a mixture of its two neighbours, if it lies strictly between two of them."""
    i = int(np.searchsorted(x, at))
    if i in (0, len(x)) or x[i] == at:
        return x, y, probability
    share = (at - x[i - 1]) / (x[i] - x[i - 1])
    mixed = (1 - share) * probability[i - 1] + share * probability[i]
    value = (1 - share) * y[i - 1] + share * y[i]
    return np.insert(x, i, at), np.insert(y, i, value), np.insert(probability, i, mixed, axis=0)


def signed_hull_lp(rates: FloatArray, sets: RowSets, accuracy: FloatArray) -> Knots:
    """Return the knots of the same maximum for any number of contrasts, by a parametric linear program.

    Notes
    -----
    The optimum is concave and piecewise linear in f. Each program gives a value and, from the dual of the bound 1 − f,
    a slope, hence a line above the optimum. Where the lines of two ends cross, either the optimum lies on them, and
    the interval is done, or the crossing is a new end.
    """
    program = _MixtureProgram(rates, sets, accuracy)
    fairest = program.largest_fairness()
    if fairest < 0:
        return _most_accurate(accuracy)
    left, right = program.solve(0.0), program.solve(fairest)
    ends = [left, *_between(program, left, right), right] if fairest > 0 else [right]
    if len(ends) > 1 and ends[0].value - ends[1].value <= 1e-12:
        ends = ends[1:]  # the curve is flat from 0 to its first kink, which says it all
    probability = np.stack([end.probability for end in ends])
    return Knots(np.array([e.fairness for e in ends]), probability @ accuracy, np.arange(len(accuracy)), probability)


def ratio_hull(rates: FloatArray, sets: RowSets, accuracy: FloatArray, levels: FloatArray) -> Knots:
    """Return the best accuracy of any mixture whose lowest rate is at least f times its highest, at given levels f.

    Notes
    -----
    A ratio is no average over mixtures, so that the optimum is not piecewise linear in f; for each f it is a linear
    program. Levels that no mixture attains are left out.
    """
    program = _MixtureProgram(rates, sets, accuracy)
    found: list[_Solution] = []
    for level in np.unique(levels):
        try:
            found.append(program.solve(float(level)))
        except InfeasibleError:
            break
    probability = np.stack([solution.probability for solution in found])
    value = np.maximum.accumulate((probability @ accuracy)[::-1])[::-1]  # the solver's tolerance may break the order
    last = np.append(np.diff(value) < 0.0, True)
    fairness = np.array([solution.fairness for solution in found])
    return Knots(fairness[last], value[last], np.arange(len(accuracy)), probability[last])


def _most_accurate(accuracy: FloatArray) -> Knots:
    """Return the curve at fairness 0 alone: no mixture has a score bias of 1 or less."""
    best = accuracy.argmax()
    return Knots(np.zeros(1), accuracy[[best]], np.array([best]), np.ones((1, 1)))


@dataclass(frozen=True, eq=False)
class _Solution:
    fairness: float
    value: float
    slope: float
    probability: FloatArray


class _MixtureProgram:
    """max Σ pᵢ·accuracyᵢ subject to the largest gap of the mixture's rates ≤ 1 − f.

    Where fairness is a ratio: subject to a lowest rate of at least f times the highest.

    Each block of g row sets has a lowest and a highest rate as variables, so that g sets need 2g + 1 rows and not
    g(g − 1).
    """

    def __init__(self, rates: FloatArray, sets: RowSets, accuracy: FloatArray) -> None:
        blocks = sets.pairs().tolist() if sets.reference else sets.blocks
        self.k, n_blocks, self.ratio = len(accuracy), len(blocks), not sets.compares_differences
        rows = []
        for b, block in enumerate(blocks):
            # Gaps stay the same when a model's rates are counted from one of them, and large scores lose no digits.
            origin = 0.0 if self.ratio else rates[:, block[0]]
            for s in block:
                for sign, bound in ((-1.0, 2 * b), (1.0, 2 * b + 1)):
                    row = np.zeros(self.k + 2 * n_blocks)
                    row[: self.k], row[self.k + bound] = sign * (rates[:, s] - origin), -sign
                    rows.append(row)
        gap = np.zeros((n_blocks, self.k + 2 * n_blocks))
        gap[np.arange(n_blocks), self.k + 2 * np.arange(n_blocks)] = -1.0
        gap[np.arange(n_blocks), self.k + 2 * np.arange(n_blocks) + 1] = 1.0
        self.rows, self.gap = np.array(rows), gap
        self.cost = np.concatenate([-accuracy, np.zeros(2 * n_blocks)])
        self.bounds = [(0.0, None)] * self.k + [(None, None)] * (2 * n_blocks)
        self.simplex = np.concatenate([np.ones(self.k), np.zeros(2 * n_blocks)])[None, :]

    def solve(self, fairness: float) -> _Solution:
        """Return the best mixture that is fair enough."""
        gap = np.where(self.gap > 0, fairness, self.gap) if self.ratio else self.gap
        limit = np.full(len(gap), 0.0 if self.ratio else 1.0 - fairness)
        result = self._solved(self.cost, np.vstack([self.rows, gap]), np.append(np.zeros(len(self.rows)), limit))
        slope = float(result.ineqlin.marginals[len(self.rows) :].sum())  # d(−value)/d(1 − f)
        probability = np.where(result.x[: self.k] > _NO_PROBABILITY, result.x[: self.k], 0.0)
        return _Solution(fairness, -float(result.fun), slope, probability / probability.sum())

    def largest_fairness(self) -> float:
        """Return the fairness of the fairest mixture."""
        with_gap = np.hstack([np.vstack([self.rows, self.gap]), np.zeros((len(self.rows) + len(self.gap), 1))])
        with_gap[len(self.rows) :, -1] = -1.0
        cost = np.zeros(with_gap.shape[1])
        cost[-1] = 1.0
        result = self._solved(cost, with_gap, np.zeros(len(with_gap)))
        smallest = float(result.fun)
        return 1.0 - smallest if smallest > 1e-9 else 1.0

    def _solved(self, cost: FloatArray, below: FloatArray, limit: FloatArray) -> Any:
        """Return the least cost·x with below·x ≤ limit, where x may have a variable behind those of the mixture."""
        more = len(cost) - len(self.cost)
        result = scipy.optimize.linprog(
            cost,
            A_ub=below,
            b_ub=limit,
            A_eq=np.append(self.simplex, np.zeros((1, more)), axis=1),
            b_eq=[1.0],
            bounds=self.bounds + [(0.0, None)] * more,
            method="highs",
        )
        if result.status == 2:
            raise InfeasibleError("no mixture of these models is as fair as that; add the constant model")
        if result.status != 0:
            raise FairFrontierError(f"the linear program of the signed frontier failed: {result.message}")
        return result


def _between(program: _MixtureProgram, left: _Solution, right: _Solution) -> list[_Solution]:
    """Return the kinks of the optimum strictly between two solved levels, ascending."""
    turn = left.slope - right.slope
    if right.fairness - left.fairness < 1e-9 or turn < _SLOPE_TOLERANCE:
        return []
    cross = (right.value - left.value + left.slope * left.fairness - right.slope * right.fairness) / turn
    if not left.fairness + 1e-9 < cross < right.fairness - 1e-9:
        return []
    middle = program.solve(cross)
    on_lines = left.value + left.slope * (cross - left.fairness)
    if middle.value >= on_lines - 1e-10:
        return [middle]
    return [*_between(program, left, middle), middle, *_between(program, middle, right)]
