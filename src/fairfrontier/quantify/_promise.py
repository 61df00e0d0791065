"""The promise of fairness: which candidates of a path are fair enough, shown on rows that none of them has seen.

Everything here works on counts: how many rows of each row set a candidate decides positively. For demographic parity
they need no labels. `rows_needed` says how many rows a promise takes, before they are collected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from fairfrontier import _validation as validate
from fairfrontier._columns import as_array, numeric
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.quantify._proportions import BoolArray, Claim, Pairs, limits, shown

# The exact limit is this much wider than the normal one, in standard errors and in rows of the smaller group; measured
# for groups of 40 to 7,000 rows and rates of .05 to .5.
_WIDER_BY_ERRORS, _WIDER_BY_ROWS = 0.03, 1.0
_IMAGINED_SAMPLES = 20_000


def rows_needed(
    min_fairness: float,
    *,
    confidence: float = 0.95,
    group_shares: Mapping[Any, float] | Sequence[float],
    rates: float | Sequence[float] = 0.5,
    power: float = 0.8,
) -> int:
    """Return how many calibration rows it takes to promise a fairness.

    Parameters
    ----------
    min_fairness : float
        The fairness to be promised, in (0, 1).
    confidence : float, default=0.95
        The confidence of the promise.
    group_shares : mapping or sequence of float
        The share of all rows that each group has. For equal opportunity: the share of rows that are in the group and
        have a positive label, so that the shares add up to less than one.
    rates : float or sequence of float, default=0.5
        The share of positive decisions in all groups, or in each; 0.5 takes the most rows. Rates that differ describe a
        model that is not perfectly fair; they must differ by less than 1 − min_fairness.
    power : float, default=0.8
        The probability with which the promise can then be made. (That it is kept has the probability `confidence`.)

    Returns
    -------
    int
        The number of calibration rows.

    Notes
    -----
    With n rows the rate of group i has a standard error σᵢ/√n, σᵢ² = rᵢ(1 − rᵢ)/shareᵢ, and a pair is shown to differ
    by less than d if (rᵢ − rⱼ) + (σᵢεᵢ − σⱼεⱼ)/√n + z·√(σᵢ² + σⱼ²)/√n + 1/(n·share) ≤ d, the last term being what the
    exact limit adds to the normal one. Solved for n for each of 20,000 fixed draws of ε and the worst pair, the answer
    is the quantile `power` of these n. It is an approximation; the promise itself is exact.

    Examples
    --------
    >>> rows_needed(0.9, group_shares=[0.5, 0.5])
    916
    >>> rows_needed(0.95, group_shares={"Female": 0.33, "Male": 0.67}, rates=0.2)
    2643
    """
    d = 1.0 - validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0, strict=True)
    level = 1.0 - validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    validate.number(power, parameter="power", low=0.0, high=1.0, strict=True)
    shares = _shares(group_shares)
    rate = _rates(rates, len(shares))
    if np.ptp(rate) >= d:
        raise InvalidInputError(
            f"rates must differ by less than 1 − min_fairness, {d:g}; got {np.ptp(rate):g}: no number of rows can show "
            "that such a model is fair enough"
        )
    pairs = np.stack(np.triu_indices(len(shares), k=1), axis=1)
    return rows_for_pairs(shares, rate, pairs, d, level, power)


def rows_for_pairs(shares: FloatArray, rates: FloatArray, pairs: IntArray, d: float, level: float, power: float) -> int:
    """Return the number of rows of `rows_needed` for given pairs of groups."""
    sigma = np.sqrt(rates * (1.0 - rates) / shares)
    noise = np.random.default_rng(0).standard_normal((_IMAGINED_SAMPLES, len(shares))) * sigma
    z = _WIDER_BY_ERRORS - ndtri(level)
    root = np.zeros(len(noise))
    for i, j in np.concatenate([pairs, pairs[:, ::-1]]):
        left = d - (rates[i] - rates[j])
        errors = noise[:, i] - noise[:, j] + z * np.hypot(sigma[i], sigma[j])
        rows = _WIDER_BY_ROWS / min(shares[i], shares[j])
        # left·n − errors·√n − rows = 0.
        np.maximum(root, (errors + np.sqrt(errors**2 + 4.0 * left * rows)) / (2.0 * left), out=root)
    return int(np.ceil(np.quantile(root, power) ** 2))


def _shares(group_shares: Mapping[Any, float] | Sequence[float]) -> FloatArray:
    given = list(group_shares.values()) if isinstance(group_shares, Mapping) else group_shares
    shares = numeric(as_array(given, parameter="group_shares"), parameter="group_shares").astype(np.float64)
    if shares.ndim != 1 or len(shares) < 2:
        raise GroupError(f"group_shares must name at least two groups; got {group_shares!r}")
    if not (np.all(shares > 0.0) and shares.sum() <= 1.0 + 1e-6):
        raise InvalidInputError(
            f"group_shares must be positive and add up to 1 at most; got {shares.tolist()}, which add up to "
            f"{shares.sum():g}: divide the groups' sizes by the number of all rows"
        )
    return shares


def _rates(rates: float | Sequence[float], n_groups: int) -> FloatArray:
    values = list(rates.values()) if isinstance(rates, Mapping) else rates
    given = numeric(as_array(values, parameter="rates"), parameter="rates").astype(np.float64)
    if given.shape not in ((), (n_groups,)) or not np.all((given > 0.0) & (given < 1.0)):
        raise InvalidInputError(
            f"rates must be one number in (0, 1), or {n_groups}, one per group; got {rates!r}: it is the share of rows "
            "that the model decides positively"
        )
    return np.broadcast_to(given, n_groups)


# Candidates are tested this many at a time: the first failure ends the sequence.
_AT_A_TIME = 32
# Halvings in the search for the largest ratio that can be promised.
_HALVINGS = 20


def promised_candidates(
    positives: ArrayLike,
    sizes: ArrayLike,
    sets: RowSets,
    *,
    min_fairness: float | None = None,
    min_ratio: float | None = None,
    confidence: float,
    order: ArrayLike,
    disjoint: bool = True,
) -> BoolArray:
    """Return the candidates that are shown to be fair enough, all at once with the given confidence.

    Parameters
    ----------
    positives : array-like of shape (p, s)
        How many rows of each row set each candidate decides positively. Of a randomised candidate: the rows that its
        draw accepts, which is as exact. Sums of acceptance probabilities are allowed, at the price of wider limits.
    sizes : array-like of shape (s,)
        The number of rows of each set.
    sets : RowSets
        Which sets are compared.
    min_fairness : float, optional
        Ask that 1 minus the largest difference of two rates be above this.
    min_ratio : float, optional
        Ask that the lowest rate be above this share of the highest. One of the two, or both.
    confidence : float
        Least probability, in (0, 1), with which every promised candidate meets the request.
    order : array-like of int
        The candidates in the order in which they are tested, the one that is most likely to pass first. It may depend
        on anything but the rows that are counted here, and need not name every candidate.
    disjoint : bool, default=True
        No row is in two sets of a block. False (custom masks may overlap) takes wider limits.

    Returns
    -------
    ndarray of bool, shape (p,)
        Which candidates are promised. What can be promised of one of them alone is `largest_promise`.

    Notes
    -----
    *One candidate.* It fails the request if some pair of sets in some block has p₁ − p₂ ≥ 1 − min_fairness (or
    p₂ ≤ min_ratio·p₁). That hypothesis is a union, so it may be rejected as soon as each of its parts is rejected at
    level α = 1 − confidence, without any correction for the number of pairs (intersection-union test, Berger 1982): if
    one part is true, all are rejected only if that one is, with probability α at most. The test of a part is valid in
    finite samples (`_proportions.p_values`): given the sizes, the counts of two disjoint sets are independent and
    binomial.

    *All candidates.* They are tested in an order fixed beforehand, each at level α, up to the first that is not
    rejected (fixed-sequence test). Let j be the first candidate in the order that truly fails the request. A wrong
    promise is made only if j is rejected: an earlier one cannot be wrong, and a later one is tested only after j
    was rejected. So the probability that any promise is broken is at most α, however many candidates there are and
    however they depend on one another; any choice among the promised ones, by accuracy on the same rows for instance,
    keeps the promise.
    """
    counts = _counts(positives, sizes, sets, disjoint)
    level, asked = 1.0 - confidence, _asked(min_fairness, min_ratio, sets)
    sequence = np.asarray(order, dtype=np.intp)
    # Neighbours on a path often decide every row alike: each set of counts is tested once, where it comes first.
    first = np.sort(np.unique(counts.positives[sequence], axis=0, return_index=True)[1])
    n_passed = len(sequence)
    for start in range(0, len(first), _AT_A_TIME):
        some = first[start : start + _AT_A_TIME]
        good = np.ones(len(some), dtype=bool)
        for comparison, c in asked:
            good &= _all_shown(counts.of(sequence[some]), np.full(len(some), c), level, comparison)
        if not good.all():
            n_passed = int(some[np.argmin(good)])
            break
    passed = np.zeros(len(counts.positives), dtype=bool)
    passed[sequence[:n_passed]] = True
    return passed


def largest_promise(
    positives: ArrayLike, sizes: ArrayLike, sets: RowSets, *, confidence: float, disjoint: bool = True
) -> FloatArray:
    """Return the largest fairness that can be promised of each candidate, taken alone.

    Parameters
    ----------
    positives : array-like of shape (p, s)
        Positive decisions by row set; of the candidate that is tested first, for what it could promise.
    sizes, sets, confidence, disjoint
        As in `promised_candidates`.

    Returns
    -------
    ndarray of shape (p,)
        Lower confidence limits of the fairness.
    """
    counts = _counts(positives, sizes, sets, disjoint)
    level = 1.0 - confidence
    _check_comparison(sets)
    if sets.compares_differences:
        return np.maximum(1.0 - _limits(counts, level, Claim()), 0.0)
    low, high = np.zeros(len(counts.positives)), np.ones(len(counts.positives))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        every = zip(np.arange(len(middle)), middle, strict=True)
        good = np.array([_all_shown(counts.of(np.array([i])), np.array([-c]), level, Claim(c))[0] for i, c in every])
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low


def promise_advice(
    positives: ArrayLike,
    sizes: ArrayLike,
    sets: RowSets,
    n_rows: int,
    *,
    min_fairness: float,
    confidence: float,
    best: float | None = None,
) -> str:
    """Return a sentence that says what can be promised with these rows, and how many rows the request would take.

    Parameters
    ----------
    positives : array-like of shape (s,)
        Positive decisions of the candidate that `promised_candidates` tests first.
    sizes, sets, confidence
        As in `promised_candidates`.
    n_rows : int
        The number of calibration rows, of which `sizes` are parts.
    min_fairness : float
        What was asked for.
    best : float, optional
        The largest fairness that can be promised; None: that of this candidate alone.
    """
    row = np.atleast_2d(np.asarray(positives, dtype=np.float64))
    best = float(largest_promise(row, sizes, sets, confidence=confidence)[0]) if best is None else best
    size = np.asarray(sizes, dtype=np.float64)
    sure = f"{confidence * 100.0:.4g} %"
    said = f"with {n_rows:,} rows the largest fairness that can be promised at {sure} is {_floor(best)}"
    if not sets.compares_differences:
        return said
    if best >= min_fairness or not size.min() > 0 or min_fairness >= 1.0:
        return said
    rates = np.empty(len(size))
    for block in map(list, sets.blocks):
        rates[block] = row[0, block].sum() / size[block].sum()
    level = 1.0 - confidence
    needed = rows_for_pairs(size / n_rows, np.clip(rates, 0.01, 0.99), sets.pairs(), 1.0 - min_fairness, level, 0.8)
    if needed <= n_rows:
        return f"{said}; so many rows are enough for {min_fairness:g}, but they take a fairer model"
    return f"{said}; {min_fairness:g} takes about {_rounded(needed):,}"


@dataclass(frozen=True, eq=False)
class _Counts:
    """Checked counts (p, s), and all pairs of sets (q, 2) in both directions."""

    positives: FloatArray
    sizes: FloatArray
    pairs: IntArray
    independent: bool
    fractions: bool

    def of(self, candidates: IntArray) -> "_Counts":
        return replace(self, positives=self.positives[candidates])

    def at(self, candidate: IntArray, pair: IntArray) -> Pairs:
        """Return the counts of given candidates in given pairs."""
        i, j = self.pairs[pair].T
        return self.compare(self.positives[candidate, i], self.positives[candidate, j], pair)

    def compare(self, first: FloatArray, second: FloatArray, pair: IntArray) -> Pairs:
        """Return other counts in given pairs."""
        i, j = self.pairs[pair].T
        return Pairs(first, second, self.sizes[i], self.sizes[j], self.independent, self.fractions)

    def everything(self) -> tuple[IntArray, IntArray]:
        """Return the candidate and the pair of each comparison, p·q of them."""
        candidate, pair = np.indices((len(self.positives), len(self.pairs))).reshape(2, -1)
        return candidate, pair


def _all_shown(counts: _Counts, c: FloatArray, level: float, comparison: Claim) -> BoolArray:
    """Tell which candidates have every pair shown to be within their limit c (p,)."""
    result = np.ones(len(c), dtype=bool)
    candidate, pair = counts.everything()
    estimate, error = comparison.spread(counts.at(candidate, pair))
    # A limit is above its estimate, so that these cannot pass: whoever fails is not looked at again.
    result[candidate[estimate - 0.5 * error > c[candidate]]] = False
    if result.any():
        kept = np.flatnonzero(result)
        result[kept] = _shown(counts.of(kept), c[kept], level, comparison).all(axis=1)
    return result


def _shown(counts: _Counts, c: FloatArray, level: float, comparison: Claim) -> BoolArray:
    """Tell which pairs of sets (p, q) are shown to be within the candidates' limits c (p,).

    Notes
    -----
    The p-value grows with the first count and falls with the second and with c. So if a pair is shown for the worst
    counts and the smallest c of several candidates, it is shown for each of them; most pairs need no other test.
    """
    first, second = counts.positives[:, counts.pairs[:, 0]], counts.positives[:, counts.pairs[:, 1]]
    worst = counts.compare(first.max(axis=0), second.min(axis=0), np.arange(len(counts.pairs)))
    result = np.tile(shown(worst, np.full(len(worst), c.min()), level, comparison), (len(c), 1))
    candidate, pair = np.nonzero(~result)
    if len(c) > 1 and len(candidate):
        rows = np.column_stack([first[candidate, pair], second[candidate, pair], c[candidate], pair])
        distinct, back = np.unique(rows, axis=0, return_inverse=True)
        some = counts.compare(distinct[:, 0], distinct[:, 1], distinct[:, 3].astype(np.intp))
        result[candidate, pair] = shown(some, distinct[:, 2], level, comparison)[np.ravel(back)]
    return result


def _limits(counts: _Counts, level: float, comparison: Claim) -> FloatArray:
    """Return the upper limit c (p,) of each candidate over all pairs."""
    distinct, back = np.unique(counts.positives, axis=0, return_inverse=True)
    if len(distinct) < len(counts.positives):
        return _limits(replace(counts, positives=distinct), level, comparison)[np.ravel(back)]
    candidate, pair = counts.everything()
    estimate, error = comparison.spread(counts.at(candidate, pair))
    # The pair that looks worst sets a limit; of the others only those that are not within it need one of their own.
    worst = np.argmax((estimate - ndtri(level) * error).reshape(len(counts.positives), -1), axis=1)
    result = limits(counts.at(np.arange(len(worst)), worst), level, comparison)
    similar = np.array_split(np.argsort(result), -(-len(result) // _AT_A_TIME))
    within = np.zeros((len(result), len(counts.pairs)), dtype=bool)
    for some in similar:
        within[some] = _shown(counts.of(some), result[some], level, comparison)
    within[np.arange(len(worst)), worst] = True
    candidate, pair = np.nonzero(~within)
    np.maximum.at(result, candidate, limits(counts.at(candidate, pair), level, comparison))
    return result


def _counts(positives: ArrayLike, sizes: ArrayLike, sets: RowSets, disjoint: bool) -> _Counts:
    x, n = np.asarray(positives, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    s = len(sets.names)
    if n.shape != (s,) or x.ndim != 2 or x.shape[1] != s:
        raise InvalidInputError(
            f"positives must have shape (candidates, {s}) and sizes ({s},), one column per row set; got {x.shape} and "
            f"{n.shape}"
        )
    if not np.all((x >= 0.0) & (x <= n)):
        raise InvalidInputError(
            f"positives must be in [0, size] for each row set; got from {x.min():g} to {x.max():g} with sizes from "
            f"{n.min():g} to {n.max():g}: count rows, without weights"
        )
    nearest = np.rint(x)
    whole = bool(np.all(np.abs(x - nearest) < 1e-9))
    pairs = sets.pairs()
    return _Counts(nearest if whole else x, n, np.concatenate([pairs, pairs[:, ::-1]]), disjoint, not whole)


def _check_comparison(sets: RowSets) -> None:
    if sets.comparison == "odds":
        raise InvalidInputError("confidence is for differences and ratios of rates; use fairness='impact_ratio'")


def _asked(min_fairness: float | None, min_ratio: float | None, sets: RowSets) -> list[tuple[Claim, float]]:
    """Return what must be shown of every pair, as comparisons with their limits."""
    _check_comparison(sets)
    if min_fairness is not None and not sets.compares_differences:
        both = [value for value in (min_fairness, min_ratio) if value is not None]
        min_fairness, min_ratio = None, max(both)
    if min_fairness is None and min_ratio is None:
        raise InvalidInputError("give min_fairness, min_ratio, or both; got neither")
    asked = []
    if min_fairness is not None:
        low = validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
        asked.append((Claim(), 1.0 - low))
    if min_ratio is not None:
        ratio = validate.number(min_ratio, parameter="min_ratio", low=0.0, high=1.0)
        asked.append((Claim(ratio), -ratio))
    return asked


def _floor(fairness: float) -> str:
    """Return a fairness with three digits, never rounded up."""
    return f"{np.floor(fairness * 1000.0) / 1000.0:g}"


def _rounded(rows: int) -> int:
    """Return a number of rows with two significant digits, rounded up."""
    step: int = 10 ** max(len(str(rows)) - 2, 0)
    return int(np.ceil(rows / step)) * step
