"""Is a candidate an alternative? Paired tests on rows that nothing has seen, in an order that other rows fixed.

A candidate is an *alternative* to the baseline if its accuracy is lower by less than the margin **and** its disparity
is smaller. Both must be shown, so that the test of both at level α has level α (an intersection-union test; Berger
1982). The disparity is a largest gap |r_i − r_j| over pairs of row sets: it is shown to be smaller than the baseline's
by showing that the signed gap of *every* pair, in both directions, is smaller than the gap of the one pair that was the
baseline's largest on other rows. That pair's gap is never above the baseline's disparity, so again each test may have
the full level.

Candidates are tested one after the other until one fails (Maurer, Hothorn and Lehmacher 1995): the order was fixed on
other rows, so that the probability of any false certificate is at most α, however many candidates were looked at.

The test of accuracy is the score test for paired proportions with a margin (Tango 1998). Gains are tested in standard
errors with the correction for skewness of Hall (1992), which may only make the test stricter: contributions of rows
that change are skewed, and without it up to 6.6 % instead of 5 % of boundary cases passed. Both have a correction for
continuity of half a row. The levels are measured in results/search.md.

All that the tests need are counts per cell (label and groups): rows, decisions of the baseline and of each candidate,
and rows that both decide positively.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.metrics._contrasts import RowSets, build_contrasts

ALTERNATIVE, NOT, UNDECIDED, NONE = "alternative", "not", "cannot tell", "none"
# The probability with which an alternative is to be recognised, where a number of rows is named.
_POWER = 0.8


@dataclass(frozen=True, eq=False)
class Counts:
    """Decisions of a baseline and of k candidates on some rows, counted in c cells of label and groups."""

    sets: RowSets  # the s row sets that the measure compares
    membership: NDArray[np.bool_]  # (s, c): the cells of each row set
    label: NDArray[np.bool_]  # (c,): the cells of the positive label
    # rows, base (c,): rows, and those that the baseline decides positively
    rows: FloatArray
    base: FloatArray
    # chosen, both (c, k): rows that each candidate decides positively, and those that the baseline does, too
    chosen: FloatArray
    both: FloatArray

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())

    def of(self, candidates: Any) -> "Counts":
        """Return the counts of some of the candidates."""
        chosen, both = self.chosen[:, candidates], self.both[:, candidates]
        return Counts(self.sets, self.membership, self.label, self.rows, self.base, chosen, both)

    def rates(self) -> FloatArray:
        """Return the rate of positive decisions of each candidate in each row set, shape (k, s)."""
        return np.asarray((self.membership @ self.chosen / self.sizes()[:, None]).T)

    def base_rates(self) -> FloatArray:
        """Return the baseline's rates, shape (s,)."""
        return np.asarray(self.membership @ self.base / self.sizes())

    def accuracy(self) -> FloatArray:
        """Return the accuracy of each candidate, shape (k,)."""
        right = np.where(self.label[:, None], self.chosen, self.rows[:, None] - self.chosen)
        return np.asarray(right.sum(axis=0) / self.rows.sum())

    def base_accuracy(self) -> float:
        """Return the accuracy of the baseline."""
        return float(np.where(self.label, self.base, self.rows - self.base).sum() / self.rows.sum())

    def sizes(self) -> FloatArray:
        """Return the rows of each row set, shape (s,)."""
        return np.asarray(self.membership @ self.rows, dtype=np.float64)


def count(
    y: NDArray[np.bool_],
    sensitive: dict[str, NDArray[Any]],
    baseline: NDArray[np.bool_],
    decisions: NDArray[np.bool_],
    *,
    fairness: str,
    sensitive_mode: str = "separate",
) -> Counts:
    """Count decisions (n,) of a baseline and (n, k) of candidates in the cells of a measure.

    Examples
    --------
    >>> y, sex = np.array([True, False, True, False]), np.array(["f", "f", "m", "m"])
    >>> counts = count(y, {"sex": sex}, y, np.stack([y, ~y], axis=1), fairness="demographic_parity")
    >>> counts.accuracy(), counts.rates().tolist()
    (array([1., 0.]), [[0.5, 0.5], [0.5, 0.5]])
    """
    rows = Rows(y, decisions, sensitive, tuple(map(str, range(decisions.shape[1]))), np.arange(len(y)))
    cells = rows.cells(labelled=True)
    contrasts = build_contrasts(fairness, cells.keys, cells.attributes, sensitive_mode=sensitive_mode)
    n_cells = len(cells.keys)
    one_hot = cells.codes == np.arange(n_cells)[:, None]
    return Counts(
        contrasts.sets,
        contrasts.membership,
        contrasts.label,
        one_hot.sum(axis=1).astype(np.float64),
        (one_hot & baseline).sum(axis=1).astype(np.float64),
        one_hot.astype(np.float64) @ decisions,
        (one_hot & baseline).astype(np.float64) @ decisions,
    )


def mean_counts(found: Sequence[Counts]) -> Counts:
    """Return the expected counts of rules that each decide an equal part, drawn at random, of the same rows."""
    base, chosen, both = (np.mean([getattr(one, name) for one in found], axis=0) for name in ("base", "chosen", "both"))
    return replace(found[0], base=base, chosen=chosen, both=both)


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """Differences to the baseline, one per candidate, with standard errors."""

    # accuracy, accuracy_error (k,): accuracy minus the baseline's
    accuracy: FloatArray
    accuracy_error: FloatArray
    # gains, gain_errors (g, k): the baseline's largest gap minus the candidate's gap, for each pair of row sets in
    # each direction. The candidate is less disparate if all of them are positive. Where the measure compares quotients,
    # gaps are of logarithms.
    gains: FloatArray
    gain_errors: FloatArray
    # gain_skews, half_rows (g, k): skewness of the gains, and what half a row of the smallest row set is worth in them
    gain_skews: FloatArray
    half_rows: FloatArray
    changed: FloatArray  # (k,): rows that are decided otherwise
    n_rows: int  # rows that were compared

    @property
    def gain(self) -> FloatArray:
        """Return the least of the gains, shape (k,)."""
        return np.asarray(self.gains.min(axis=0))

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return one-sided limits of the least gain, each (k,)."""
        width = ndtri(1.0 - level) * self.gain_errors + self.half_rows
        return np.min(self.gains - width, axis=0), np.min(self.gains + width, axis=0)

    def accuracy_limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return one-sided limits of the difference of accuracy, each (k,)."""
        width = ndtri(1.0 - level) * self.accuracy_error + 0.5 / self.n_rows
        return self.accuracy - width, self.accuracy + width

    def _utility(self, margin: float) -> tuple[FloatArray, FloatArray]:
        """Return rows by which accuracy is above the margin (k,), and their standard error on the boundary.

        Of the rows that change, the share q that turns wrong is estimated under the condition that the difference is
        minus the margin: the root of a quadratic equation (Tango 1998).
        """
        n, gained = self.n_rows, self.n_rows * self.accuracy
        linear = -self.changed - margin * (2.0 * n - gained)
        constant = (self.changed - gained) / 2.0 * margin * (1.0 + margin)
        q = (np.sqrt(np.maximum(linear**2 - 8.0 * n * constant, 0.0)) - linear) / (4.0 * n)
        return gained + n * margin, np.sqrt(np.maximum(n * (2.0 * q - margin * (1.0 + margin)), 1.0))

    def _least(self, margin: float) -> FloatArray:
        """Return the statistic (k,) that is the hardest to get above a hurdle, in standard errors."""
        above, error = self._utility(margin)
        straight = (self.gains - self.half_rows) / self.gain_errors
        skew = self.gain_skews
        corrected = straight + skew * straight**2 / 3.0 + skew**2 * straight**3 / 27.0 + skew / 6.0
        return np.asarray(np.minimum((above - 0.5) / error, np.minimum(straight, corrected).min(axis=0)))

    def p_values(self, margin: float) -> FloatArray:
        """Return the p-values (k,) of the test that a candidate is no alternative."""
        return np.asarray(ndtr(-self._least(margin)))

    def power(self, margin: float, level: float, n_rows: int) -> FloatArray:
        """Return about how probable (k,) it is that all is shown on `n_rows` other rows, if these are the truth."""
        return np.asarray(ndtr(np.sqrt(n_rows / self.n_rows) * self._least(margin) - ndtri(1.0 - level)))

    def foreseen(self, margin: float, level: float, n_rows: int) -> FloatArray:
        """Return the same probability (k,) with the error of the present rows, too: nearer to one half."""
        share = self.n_rows / n_rows
        return np.asarray(ndtr((self._least(margin) - ndtri(1.0 - level) * np.sqrt(share)) / np.sqrt(1.0 + share)))

    def refuted(self, margin: float, level: float) -> NDArray[np.bool_]:
        """Tell which candidates (k,) are shown to be no alternatives: too inaccurate, or no less disparate."""
        # Two ways to be none share the level, and any of the gaps may be the one that is too large.
        above, error = self._utility(margin)
        too_inaccurate = above + 0.5 < -ndtri(1.0 - level / 2.0) * error
        return np.asarray(too_inaccurate | (self.limits(level / (2.0 * len(self.gains)))[1] < 0.0))

    def rows_needed(self, margin: float, level: float) -> list[int | None]:
        """Return the rows that it would take to show all with probability 80 %; None: no number, as it stands."""
        hurdle = ndtri(1.0 - level) + ndtri(_POWER)
        return [
            None if one <= 0.0 else int(np.ceil(self.n_rows * (hurdle / one) ** 2))
            for one in self._least(margin).tolist()
        ]


def largest_pair(counts: Counts) -> tuple[int, int]:
    """Return the baseline's largest gap as (set with the higher rate, set with the lower rate)."""
    rates = counts.base_rates()
    linked = _linked(rates, counts.sets, counts.sizes())[0]
    pairs = counts.sets.pairs()
    first, second = pairs[int(np.argmax(np.abs(linked[pairs[:, 0]] - linked[pairs[:, 1]])))]
    return (int(first), int(second)) if rates[first] >= rates[second] else (int(second), int(first))


def compare(counts: Counts, pair: tuple[int, int]) -> BaselineComparison:
    """Compare each candidate with the baseline."""
    n = counts.rows.sum()
    change = counts.base[:, None] + counts.chosen - 2.0 * counts.both
    sign = np.where(counts.label, 1.0, -1.0)
    difference = sign @ (counts.chosen - counts.base[:, None]) / n
    # One row more than there is that changes: without it few changes would look too certain.
    error = np.sqrt((change.sum(axis=0) + 1.0) / n - difference**2) / np.sqrt(n)
    pairs = [(int(i), int(j)) for i, j in counts.sets.pairs()]
    found = [_gap_difference(counts, pair, other) for i, j in pairs for other in ((i, j), (j, i))]
    gains, errors, skews, half_rows = np.array(found).transpose(1, 0, 2)
    return BaselineComparison(difference, error, gains, errors, skews, half_rows, change.sum(axis=0), int(n))


def _gap_difference(counts: Counts, base: tuple[int, int], other: tuple[int, int]) -> tuple[FloatArray, ...]:
    """Return the baseline's gap of one pair minus each candidate's gap of another, errors, skewness and half a row.

    A gap is a difference of two rates, or of their logarithms where the measure compares quotients. So a row of cell c
    adds about a_c·b + e_c·d, with b, d its two decisions. Around the means of the row sets, the sum of squares of these
    contributions is the variance (linearisation), and that of their cubes gives the skewness.
    """
    size = counts.sizes()
    weight = counts.membership / size[:, None]
    linked, slope = _linked(counts.base_rates(), counts.sets, size)
    all_linked, slopes = _linked(counts.rates(), counts.sets, size)
    # Weight of each decision of a cell's row in the gap, and what the sets' means take away from it.
    a = weight[base[0]] * slope[base[0]] - weight[base[1]] * slope[base[1]]
    e = np.outer(weight[other[1]], slopes[:, other[1]]) - np.outer(weight[other[0]], slopes[:, other[0]])
    rate, rates = counts.base_rates() * slope, counts.rates() * slopes
    mean = rate[base[0]] * weight[base[0]] - rate[base[1]] * weight[base[1]]
    means = (
        mean[:, None] + np.outer(weight[other[1]], rates[:, other[1]]) - np.outer(weight[other[0]], rates[:, other[0]])
    )
    a, both = a[:, None], counts.both
    alone, only = counts.base[:, None] - both, counts.chosen - both
    neither = counts.rows[:, None] - counts.base[:, None] - only
    kinds = ((both, a + e - means), (alone, a - means), (only, e - means), (neither, -means))
    variance, cubes = (sum(number * one**power for number, one in kinds).sum(axis=0) for power in (2, 3))
    # One row more than there is in each set, as in `compare`.
    steepest = np.zeros(slopes.shape)
    steepest[:, list(base)] = slope[list(base)]
    steepest[:, list(other)] = np.maximum(steepest[:, list(other)], slopes[:, list(other)])
    variance = variance + ((steepest / size) ** 2).sum(axis=1)
    gap = linked[base[0]] - linked[base[1]] - (all_linked[:, other[0]] - all_linked[:, other[1]])
    return gap, np.sqrt(variance), cubes / variance**1.5, (steepest / size).max(axis=1) / 2.0


def _linked(rates: FloatArray, sets: RowSets, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what a measure takes differences of (rates, or their logarithms) and its slope at the rates."""
    if sets.compares_differences:
        return rates, np.ones(rates.shape)
    some = np.maximum(rates, 0.5 / size)  # of a set in which nobody is selected, half a row is
    return np.log(some), 1.0 / some


def sequence(comparison: BaselineComparison, margin: float, level: float, n_rows: int, first: int | None) -> IntArray:
    """Return the order in which candidates are tested, from rows that the tests do not use."""
    power = comparison.power(margin, level, n_rows)
    order = np.argsort(-power, kind="stable")
    if first is not None and power[first] >= 0.5:
        order = np.append(first, order[order != first])
    return order.astype(np.intp)


def primary(comparison: BaselineComparison, margin: float, level: float, n_rows: int) -> int:
    """Return the candidate with the largest gain among those that will probably pass; else the likeliest to pass."""
    power = comparison.power(margin, level, n_rows)
    likely = power >= _POWER
    return int(np.argmax(np.where(likely, comparison.gain, -np.inf))) if likely.any() else int(np.argmax(power))


def verdicts(comparison: BaselineComparison, order: IntArray, margin: float, level: float) -> list[str]:
    """Return the verdict on each candidate: alternative, not, or cannot tell.

    Candidates are tested in `order` until one fails. That a candidate is none is said with the same confidence for all
    candidates together (Bonferroni).
    """
    p = comparison.p_values(margin)
    refuted = comparison.refuted(margin, level / len(p))
    found = [NOT if one else UNDECIDED for one in refuted]
    for candidate in order:
        if p[candidate] > level:
            break
        found[candidate] = ALTERNATIVE
    return found


def overall_verdict(each: list[str], chosen: int, required: int | None, promised: bool) -> str:
    """Return the verdict on a search from those on its candidates; a requirement must be shown, too."""
    if each[chosen] == ALTERNATIVE:
        return ALTERNATIVE if promised else UNDECIDED
    eligible = each if required is None else [each[required]]
    return NONE if all(one == NOT for one in eligible) else UNDECIDED


@dataclass(frozen=True, eq=False)
class Tested:
    """The tests of a search."""

    pair: tuple[int, int]  # the row sets with the baseline's largest gap on the calibration rows
    chosen: int  # the candidate that was chosen on the calibration rows
    order: IntArray  # (k,): the order of the tests
    comparison: BaselineComparison  # on the report rows
    verdicts: list[str]  # one per candidate


def examine(
    calibrate: Counts, report: Counts, *, margin: float, confidence: float, required: int | None = None
) -> Tested:
    """Choose and order the candidates on the calibration rows, then test them on the report rows."""
    level, n_rows = 1.0 - confidence, report.n_rows
    pair = largest_pair(calibrate)
    before = compare(calibrate, pair)
    chosen = primary(before, margin, level, n_rows) if required is None else required
    order = sequence(before, margin, level, n_rows, chosen)
    if required is not None:  # the verdict of the search is about it alone
        order = np.append(required, order[order != required])
    found = compare(report, pair)
    return Tested(pair, chosen, order, found, verdicts(found, order, margin, level))
