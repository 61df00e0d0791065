"""Finite-sample limits for two rates that are compared: p₁ − p₂ < d, and r·p₁ < p₂.

Both are the claim v·p₁ − p₂ < d about two independent binomial counts, with v = 1 for a difference and d = 0 for a
ratio. A claim is *shown* at a level if its denial is rejected by a test that has this level for all rates and all
sizes, however small.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln, ndtri

from fairfrontier._validation import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

# The part of the level that is spent on where the two rates may lie at all.
_SHARE_FOR_THE_RANGE = 0.02
# The rates that may be true are searched at so many points at least and at most; where few often settle it, first at
# these. Two points are about so many standard errors of the better known rate apart.
_FEW, _LEAST, _MOST, _APART = 9, 33, 513, 0.15
# Rates at which the distance between points is measured.
_FINE = 33
# A binomial count is summed this many standard deviations to either side; what is left out is added to the error.
_REACH = 5.0
# Numbers in memory at once, at most.
_CELLS_AT_ONCE = 2**21
# Rounds of the search for a limit, and how many standard errors it may give away.
_ROUNDS, _GIVEN_AWAY = 12, 0.02
# Bentkus: a sum of n independent numbers in [0, 1] exceeds a bound at most e times as often as a binomial count.
_BENTKUS = np.e


@dataclass(frozen=True, eq=False)
class Pairs:
    """Counts of positive decisions in two row sets, m pairs of them.

    Attributes
    ----------
    first, second : ndarray of shape (m,)
        The counts x₁ and x₂.
    n_first, n_second : ndarray of shape (m,)
        The numbers of rows.
    independent : bool
        No row is in both sets. If one may be, only what holds for dependent counts is used.
    fractions : bool
        The counts are sums of numbers in [0, 1]; then, too, only limits of each on its own are used.
    """

    first: FloatArray
    second: FloatArray
    n_first: FloatArray
    n_second: FloatArray
    independent: bool = True
    fractions: bool = False

    def __len__(self) -> int:
        return len(self.first)

    @property
    def binomial(self) -> bool:
        """Whether the two are independent binomial counts."""
        return self.independent and not self.fractions

    def take(self, which: BoolArray | IntArray) -> "Pairs":
        """Return some of the pairs."""
        return replace(
            self,
            first=self.first[which],
            second=self.second[which],
            n_first=self.n_first[which],
            n_second=self.n_second[which],
        )

    def range(self, error: float) -> tuple[FloatArray, FloatArray]:
        """Return an upper limit of p₁ and a lower limit of p₂ that hold together but for `error` (Clopper–Pearson)."""
        each = error / (2.0 * _BENTKUS) if self.fractions else error / 2.0
        x, y = np.ceil(self.first), np.floor(self.second)
        with np.errstate(invalid="ignore"):
            upper = betaincinv(x + 1.0, self.n_first - x, 1.0 - each)
            lower = betaincinv(y, self.n_second - y + 1.0, each)
        return np.where(x >= self.n_first, 1.0, upper), np.where(y <= 0.0, 0.0, lower)


@dataclass(frozen=True)
class Claim:
    """What is compared, as a claim that holds the more easily the larger its limit c is.

    Attributes
    ----------
    ratio : float or None
        None: the claim p₁ − p₂ < c. A number r₀: the claim (−c)·p₁ < p₂, ratios being judged by how far r₀·p₁ is
        below p₂.
    """

    ratio: float | None = None

    @property
    def weight(self) -> float:
        return 1.0 if self.ratio is None else self.ratio

    @property
    def least(self) -> float:
        """The smallest c of interest: no gap at all, or a ratio of one."""
        return 0.0 if self.ratio is None else -1.0

    def boundary(self, c: FloatArray, p2: FloatArray) -> FloatArray:
        """Return the smallest p₁ (m, g) with which the claim is false, given p₂ (m, g)."""
        return c[:, None] + p2 if self.ratio is None else p2 / np.maximum(-c[:, None], 1e-300)

    def slope(self, c: FloatArray) -> FloatArray:
        """Return how fast p₁ grows with p₂ on the boundary."""
        return np.ones_like(c) if self.ratio is None else 1.0 / np.maximum(-c, 1e-300)

    def largest_second(self, c: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the largest p₂ on the boundary, p₁ being at most `upper`."""
        return np.minimum(upper - c if self.ratio is None else -c * upper, 1.0)

    def sure_limit(self, upper: FloatArray, lower: FloatArray) -> FloatArray:
        """Return the smallest c with which the claim holds wherever p₁ ≤ upper and p₂ ≥ lower."""
        return upper - lower if self.ratio is None else -np.minimum(lower / upper, 1.0)

    def spread(self, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """Return an estimate of c and its standard error, one row of each kind added to each set."""
        first, second = _softened(pairs.first, pairs.n_first), _softened(pairs.second, pairs.n_second)
        variance = _variance(first, pairs.n_first) * self.weight**2 + _variance(second, pairs.n_second)
        if self.ratio is None:
            return first - second, np.sqrt(variance)
        return -second / first, np.sqrt(variance) / first


def shown(pairs: Pairs, c: FloatArray, level: float, comparison: Claim) -> BoolArray:
    """Tell which claims with limits c (m,) are shown at a level; see `limits` for the test."""
    return p_values(pairs, c, level, comparison, first_few=True) <= level


def p_values(pairs: Pairs, c: FloatArray, level: float, comparison: Claim, *, first_few: bool = False) -> FloatArray:
    """Return a p-value (m,) of the denial of each claim; above the level it may be far too large.

    `first_few` looks at few rates first, which is quicker where only the comparison with the level matters.

    Notes
    -----
    Let u(X) be the Wald upper limit of v·p₁ − p₂ at the level, with one row of each kind added to each set (Agresti and
    Caffo 2000), and R = {X: u(X) ≤ u(x)}. R is fixed by x alone, grows with u(x), and with each of its points holds all
    that have a smaller first or a larger second count; so P(R) falls with p₁ and grows with p₂, and under the denial is
    largest on its boundary. Hence (Buehler 1957; Berger and Boos 1994)

        p(x) = γ + sup {P(R): p on the boundary, p₁ ≤ U₁(x), p₂ ≥ L₂(x)},

    with Clopper–Pearson limits that fail with probability γ, satisfies P(p(X) ≤ level) ≤ level. It falls with c because
    R does not depend on c; so it can be inverted. The supremum is not left to a grid: between its points f = P(R)
    is at most P(R) at the smaller p₁ with the larger p₂, and at most M with M = max(f at the ends) + h²/8·√(2M)·I, as
    |f″| ≤ √(2f)·I by Cauchy and Schwarz, I = slope²·n₁/(p₁q₁) + n₂/(p₂q₂) being the information along the boundary
    (f″ = E[1_R·Q] with Q = L″/L, which has mean 0 and a variance of at most 2I², L being the likelihood).
    """
    if not pairs.binomial:
        return np.where(comparison.sure_limit(*pairs.range(level)) <= c, level, 1.0)
    spent = level * _SHARE_FOR_THE_RANGE
    upper, low = pairs.range(spent)
    high = comparison.largest_second(c, upper)
    result = np.full(len(pairs), spent)
    # Rates for which the claim is false and which may be true, if there are any.
    open_ = np.flatnonzero(low <= high)
    for few in (True, False) if first_few else (False,):
        at_most, at_least = _largest(pairs.take(open_), low[open_], high[open_], c[open_], level, comparison, few=few)
        result[open_] = spent + at_most
        open_ = open_[(result[open_] > level) & (spent + at_least <= level)]
    return np.asarray(np.minimum(result, 1.0))


def limits(pairs: Pairs, level: float, comparison: Claim) -> FloatArray:
    """Return an upper confidence limit (m,) of each c: the claims with larger limits are all shown at the level.

    Notes
    -----
    Each limit holds with probability 1 − level; see `p_values`. The search keeps a c that is shown, and is for that
    reason on the safe side wherever it ends.
    """
    sure = comparison.sure_limit(*pairs.range(level * _SHARE_FOR_THE_RANGE if pairs.binomial else level))
    good, bad = np.maximum(sure, comparison.least), np.full(len(pairs), comparison.least)
    if not pairs.binomial:
        return good
    estimate, error = comparison.spread(pairs)
    trial, open_, wanted = (
        np.clip(estimate - ndtri(level) * error, bad, good),
        np.flatnonzero(good > bad),
        -ndtri(level),
    )
    for _ in range(_ROUNDS):
        p = p_values(pairs.take(open_), trial[open_], level, comparison)
        passed = p <= level
        good[open_[passed]] = trial[open_[passed]]
        bad[open_[~passed]] = trial[open_[~passed]]
        # In normal quantiles the p-value is nearly linear in c; aim too far by half of what may be given away.
        excess = -ndtri(np.clip(p, 1e-15, 1.0 - 1e-15)) - wanted
        aimed = trial[open_] + (_GIVEN_AWAY / 2.0 - excess) * error[open_]
        a, b = bad[open_], good[open_]
        trial[open_] = np.where((aimed > a) & (aimed < b), aimed, (a + b) / 2.0)
        open_ = open_[~(passed & (excess < _GIVEN_AWAY)) & (b - a > _GIVEN_AWAY * error[open_])]
        if not len(open_):
            break
    return good


def _softened(count: FloatArray, size: FloatArray) -> FloatArray:
    return (count + 1.0) / (size + 2.0)


def _variance(rate: FloatArray, size: FloatArray) -> FloatArray:
    return np.asarray(rate * (1.0 - rate) / (size + 2.0))


def _largest(
    pairs: Pairs, low: FloatArray, high: FloatArray, c: FloatArray, level: float, comparison: Claim, *, few: bool
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of sup P(R) for p₂ in [low, high], from above and from below."""
    at_most, at_least = np.empty(len(pairs)), np.empty(len(pairs))
    # Pairs with equally wide sums go together, so that little of what is computed is padding.
    widest = np.maximum(pairs.n_first, pairs.n_second)
    order = np.argsort(widest, kind="stable")
    size = 2.0 * (2.0 * _REACH + 8.0) * (np.sqrt(widest[order]) / 2.0 + 1.0) * (_FEW if few else 2 * _LEAST)
    start = 0
    while start < len(order):
        stop = start + max(1, int(np.searchsorted(size[start:] * np.arange(1, len(order) - start + 1), _CELLS_AT_ONCE)))
        some = order[start:stop]
        p2 = _grid(pairs.take(some), low[some], high[some], c[some], comparison, _FEW if few else None)
        p1 = np.minimum(comparison.boundary(c[some], p2), 1.0)
        region = _Region(pairs.take(some), level, comparison.weight)
        f = region.probability(p1, p2)
        between = _between(f, p1, p2, pairs.take(some), comparison.slope(c[some]))
        # The other bound, which is better at rates of nearly 0 or 1, where it can decide.
        doubtful = (f.max(axis=1) <= level) & (between.max(axis=1) > level)
        if doubtful.any():
            covered = region.of(doubtful).probability(p1[doubtful, :-1], p2[doubtful, 1:])
            between[doubtful] = np.minimum(between[doubtful], covered)
        at_least[some] = f.max(axis=1)
        at_most[some] = np.maximum(at_least[some], between.max(axis=1))
        start = stop
    return at_most, at_least


def _grid(
    pairs: Pairs, low: FloatArray, high: FloatArray, c: FloatArray, comparison: Claim, points: int | None
) -> FloatArray:
    """Return rates p₂ (m, g) from `low` to `high` at which P(R) is computed; None: as many as it takes.

    Equal steps of arcsin √p are equal steps in standard errors. Here the sum of both rates' steps is equal all the way:
    so no step is long for either rate, and the mirror image of a claim, of negative decisions, is looked at in the same
    way.
    """
    ends = np.stack([np.column_stack([low, high]), comparison.boundary(c, np.column_stack([low, high]))])
    angle = _angle(ends)
    of_second, of_first = np.sin(angle[..., :1] + np.linspace(0.0, 1.0, _FINE) * np.diff(angle, axis=2)) ** 2
    trial = np.column_stack([of_second, comparison.largest_second(c[:, None], of_first)])
    trial = np.sort(np.clip(trial, low[:, None], high[:, None]), axis=1)
    length = 2.0 * np.sqrt(pairs.n_second)[:, None] * _angle(trial)
    length += 2.0 * np.sqrt(pairs.n_first)[:, None] * _angle(comparison.boundary(c, trial))
    if points is None:
        errors = length[:, -1] - length[:, 0]
        points = int(np.clip(np.ceil(errors.max(initial=0.0) / _APART), _LEAST, _MOST))
    share = np.linspace(0.0, 1.0, points)
    places = zip(length[:, :1] + share * (length[:, -1:] - length[:, :1]), length, trial, strict=True)
    return np.array([np.interp(*row) for row in places])


def _angle(rate: FloatArray) -> FloatArray:
    return np.asarray(np.arcsin(np.sqrt(np.clip(rate, 0.0, 1.0))))


def _between(f: FloatArray, p1: FloatArray, p2: FloatArray, pairs: Pairs, slope: FloatArray) -> FloatArray:
    """Return the bound M (m, g − 1) of P(R) between neighbouring points from its curvature; see `p_values`."""
    # At a rate of 0 or 1 the information is infinite; a huge number bounds P(R) by no more than 1, which it is.
    first, second = np.maximum(p1 * (1.0 - p1), 1e-100), np.maximum(p2 * (1.0 - p2), 1e-100)
    slope = np.minimum(slope, 1e50)[:, None]
    information = slope**2 * pairs.n_first[:, None] / first + pairs.n_second[:, None] / second
    # 1/(pq) is convex: it is largest at an end of each step.
    largest = np.maximum(information[:, :-1], information[:, 1:])
    ends = np.maximum(f[:, :-1], f[:, 1:])
    bend = np.sqrt(2.0) / 8.0 * np.diff(p2, axis=1) ** 2 * largest
    # √M solves M = ends + bend·√M.
    return np.asarray(((bend + np.sqrt(bend**2 + 4.0 * ends)) / 2.0) ** 2)


class _Region:
    """The outcomes R whose Wald limit is not above the observed one's, m of them."""

    def __init__(self, pairs: Pairs, level: float, weight: float) -> None:
        self._pairs, self._level = pairs, level
        self._n1, self._n2, self._weight, self._z2 = pairs.n_first, pairs.n_second, weight, ndtri(level) ** 2
        first, second = _softened(pairs.first, self._n1), _softened(pairs.second, self._n2)
        variance = weight**2 * _variance(first, self._n1) + _variance(second, self._n2)
        self._limit = weight * first - second + np.sqrt(self._z2 * variance)

    def of(self, which: BoolArray) -> "_Region":
        return _Region(self._pairs.take(which), self._level, self._weight)

    def _least_second(self, x: FloatArray) -> FloatArray:
        """Return the smallest second count that is in R with first counts x (m, w).

        With y the softened second rate: y − (v·p̃₁ − u) ≥ z·√(V₁ + y(1 − y)/(n₂ + 2)), whose square is a quadratic.
        """
        n1, n2 = self._n1[:, None], self._n2[:, None]
        first = _softened(x, n1)
        centre = self._weight * first - self._limit[:, None]
        k = self._z2 / (n2 + 2.0)
        half = centre + k / 2.0
        constant = centre**2 - self._z2 * self._weight**2 * _variance(first, n1)
        root = (half + np.sqrt(np.maximum(half**2 - (1.0 + k) * constant, 0.0))) / (1.0 + k)
        # A count that rounding alone keeps out belongs to R.
        return np.asarray(np.ceil(root * (n2 + 2.0) - 1.0 - 1e-7))

    def probability(self, p1: FloatArray, p2: FloatArray) -> FloatArray:
        """Return P(R) (m, g) at rates (m, g), counting whatever the sums leave out as in R."""
        x, missing_x = _binomial(self._n1, p1)
        y, missing_y = _binomial(self._n2, p2)
        counts, start = x.counts, y.counts[:, :1]
        above = np.zeros((*y.mass.shape[:2], y.mass.shape[2] + 1))
        np.cumsum(y.mass[:, :, ::-1], axis=2, out=above[:, :, 1:])
        # above[..., i] is the mass of the last i counts of the window.
        wanted = y.counts.shape[1] - np.clip(self._least_second(counts) - start, 0, y.counts.shape[1])
        index = np.broadcast_to(wanted.astype(np.intp)[:, None, :], x.mass.shape)
        tail = np.minimum(np.take_along_axis(above, index, axis=2) + missing_y[:, :, None], 1.0)
        return np.asarray(np.minimum(np.einsum("mgw,mgw->mg", x.mass, tail) + missing_x, 1.0))


@dataclass(frozen=True, eq=False)
class _Binomial:
    """Counts (m, w) and their probabilities (m, g, w)."""

    counts: FloatArray
    mass: FloatArray


def _binomial(n: FloatArray, p: FloatArray) -> tuple[_Binomial, FloatArray]:
    """Return the counts that matter for sizes n (m,) and rates p (m, g), and the mass (m, g) of all others."""
    reach = _REACH * np.sqrt(n * np.max(p * (1.0 - p), axis=1)) + 3.0
    start = np.maximum(np.floor(n * p.min(axis=1) - reach), 0.0)
    stop = np.minimum(np.ceil(n * p.max(axis=1) + reach), n)
    counts = start[:, None] + np.arange(int((stop - start).max()) + 1)
    rest = n[:, None] - counts
    outside = rest < 0.0
    rest = np.maximum(rest, 0.0)
    ways = gammaln(n + 1.0)[:, None] - gammaln(counts + 1.0) - gammaln(rest + 1.0)
    ways[outside] = -np.inf
    # A rate of exactly 0 or 1 has all of its mass on one count; 1e-300 does the same and keeps the logarithm.
    log_p, log_q = np.log(np.maximum(p, 1e-300)), np.log1p(-np.minimum(p, 1.0 - 1e-16))
    mass = counts[:, None, :] * (log_p - log_q)[:, :, None]
    mass += ways[:, None, :]
    mass += (n[:, None] * log_q)[:, :, None]
    np.exp(mass, out=mass)
    return _Binomial(counts, mass), np.maximum(1.0 - mass.sum(axis=2), 0.0)
