"""Concave hulls: of a step curve, and of models in the space (signed biases, accuracy)."""

from dataclasses import dataclass

import numpy as np
import scipy

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import FairFrontierError, InfeasibleError
from fairfrontier.metrics._contrasts import RowSets

# Two slopes of the parametric program that differ by less are one line.
_SLOPE_TOLERANCE = 1e-9
# Up to so many steps a hull is found by a loop.
_FEW_STEPS = 500
# A probability below this is a zero of the solver.
_NO_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class Knots:
    """Knots of a signed hull: `fairness`, `accuracy` (q,), `probability` (q, r) of the `models` (r,)."""

    fairness: FloatArray
    accuracy: FloatArray
    models: IntArray
    probability: FloatArray


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
        result = scipy.optimize.linprog(
            self.cost,
            A_ub=np.vstack([self.rows, gap]),
            b_ub=np.concatenate([np.zeros(len(self.rows)), limit]),
            A_eq=self.simplex,
            b_eq=[1.0],
            bounds=self.bounds,
            method="highs",
        )
        self._check(result)
        slope = float(result.ineqlin.marginals[len(self.rows) :].sum())  # d(−value)/d(1 − f)
        probability = np.where(result.x[: self.k] > _NO_PROBABILITY, result.x[: self.k], 0.0)
        return _Solution(fairness, -float(result.fun), slope, probability / probability.sum())

    def largest_fairness(self) -> float:
        """Return the fairness of the fairest mixture."""
        with_gap = np.hstack([np.vstack([self.rows, self.gap]), np.zeros((len(self.rows) + len(self.gap), 1))])
        with_gap[len(self.rows) :, -1] = -1.0
        cost = np.zeros(with_gap.shape[1])
        cost[-1] = 1.0
        result = scipy.optimize.linprog(
            cost,
            A_ub=with_gap,
            b_ub=np.zeros(len(with_gap)),
            A_eq=np.append(self.simplex, [[0.0]], axis=1),
            b_eq=[1.0],
            bounds=[*self.bounds, (0.0, None)],
            method="highs",
        )
        self._check(result)
        smallest = float(result.fun)
        return 1.0 - smallest if smallest > 1e-9 else 1.0

    @staticmethod
    def _check(result: object) -> None:
        if getattr(result, "status", 1) == 2:
            raise InfeasibleError("no mixture of these models is as fair as that; add the constant model")
        if getattr(result, "status", 1) != 0:
            raise FairFrontierError(
                f"the linear program of the signed frontier failed: {getattr(result, 'message', '')}"
            )


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
