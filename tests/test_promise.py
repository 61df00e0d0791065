"""The promise: its level by enumeration of every outcome, its tightness, its sequence, and the rows that it takes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.quantify._promise import largest_promise, promise_advice, promised_candidates, rows_needed
from fairfrontier.quantify._proportions import Claim, Pairs, limits, p_values, shown

RATES = np.linspace(0.0, 1.0, 41)


def block(*sizes):
    names = tuple(f"g{i}" for i in range(len(sizes)))
    return RowSets(names, (tuple(range(len(sizes))),), ("group",))


def every_outcome(n1, n2):
    first, second = (a.ravel().astype(float) for a in np.indices((n1 + 1, n2 + 1)))
    return Pairs(first, second, np.full(len(first), float(n1)), np.full(len(first), float(n2)))


def probability(outcomes, n1, n2, p1, p2):
    """The probability of a set of outcomes, given as a boolean for each of (n1 + 1)(n2 + 1)."""
    table = outcomes.reshape(n1 + 1, n2 + 1)
    return binom.pmf(np.arange(n1 + 1), n1, p1) @ table @ binom.pmf(np.arange(n2 + 1), n2, p2)


SIZES = [(10, 15), (30, 7), (1, 40), (25, 25)]


@pytest.mark.parametrize(("n1", "n2"), SIZES)
@pytest.mark.parametrize("level", [0.05, 0.2])
@pytest.mark.parametrize("gap", [0.1, 0.4])
def test_a_difference_is_shown_by_mistake_no_more_often_than_the_level(n1, n2, level, gap):
    outcomes = every_outcome(n1, n2)
    rejected = shown(outcomes, np.full(len(outcomes), gap), level, Claim())
    wrong = [probability(rejected, n1, n2, p + gap, p) for p in np.linspace(0.0, 1.0 - gap, 201)]
    beyond = [probability(rejected, n1, n2, p, q) for p in RATES for q in RATES if p - q >= gap]
    assert max(wrong) <= level
    assert max(beyond) <= level
    # And the level is used: with sizes like these a step of the counts is coarse.
    assert max(wrong) >= 0.5 * level or not rejected.any()


@pytest.mark.parametrize(("n1", "n2"), SIZES)
def test_a_ratio_is_shown_by_mistake_no_more_often_than_the_level(n1, n2):
    outcomes = every_outcome(n1, n2)
    rejected = shown(outcomes, np.full(len(outcomes), -0.8), 0.1, Claim(0.8))
    wrong = [probability(rejected, n1, n2, p, 0.8 * p) for p in np.linspace(0.0, 1.0, 201)]
    assert max(wrong) <= 0.1
    assert max(probability(rejected, n1, n2, p, q) for p in RATES for q in RATES if q <= 0.8 * p) <= 0.1


@pytest.mark.parametrize("comparison", [Claim(), Claim(0.8)])
def test_limits_hold_with_their_confidence(comparison):
    n1, n2, level = 12, 9, 0.1
    upper = limits(every_outcome(n1, n2), level, comparison)
    missed = []
    for p, q in itertools.product(RATES[1:], RATES):
        true = p - q if comparison.ratio is None else -q / p
        if true >= comparison.least:
            missed.append(probability(upper < true - 1e-12, n1, n2, p, q))
    assert max(missed) <= level
    assert max(missed) > 0.8 * level


def test_a_p_value_is_the_largest_probability_of_outcomes_as_extreme():
    """Against an enumeration on a fine grid; the range of rates costs 2 % of the level."""
    n1, n2, level, gap = 20, 14, 0.1, 0.3
    outcomes = every_outcome(n1, n2)
    a, b = (outcomes.first + 1) / (n1 + 2), (outcomes.second + 1) / (n2 + 2)
    upper = a - b + norm.isf(level) * np.sqrt(a * (1 - a) / (n1 + 2) + b * (1 - b) / (n2 + 2))
    some = np.arange(0, len(outcomes), 11)
    ours = p_values(outcomes.take(some), np.full(len(some), gap), level, Claim())
    for index, p in zip(some, ours, strict=True):
        each = 0.02 * level / 2
        high = binomtest(int(outcomes.first[index]), n1).proportion_ci(1 - 2 * each, "exact").high
        low = binomtest(int(outcomes.second[index]), n2).proportion_ci(1 - 2 * each, "exact").low
        grid = np.linspace(low, high - gap, 200) if low <= high - gap else []
        exact = max((probability(upper <= upper[index] + 1e-9, n1, n2, q + gap, q) for q in grid), default=0.0)
        assert p >= min(1.0, exact + 2 * each) - 1e-6
        assert p <= exact + 2 * each + 0.005 or exact > 0.9 * level


@pytest.mark.parametrize(("n1", "n2", "rate"), [(300, 700, 0.5), (1000, 1000, 0.2), (3000, 7000, 0.2), (400, 400, 0.9)])
def test_limits_are_nearly_the_normal_ones_in_large_samples(n1, n2, rate):
    x, y = round(n1 * rate), round(n2 * rate)
    pair = Pairs(*(np.array([float(v)]) for v in (x, y, n1, n2)))
    normal = x / n1 - y / n2 + norm.isf(0.05) * np.sqrt(rate * (1 - rate) * (1 / n1 + 1 / n2))
    assert normal < limits(pair, 0.05, Claim())[0] < 1.06 * normal


# Sizes, counts, and the upper end of statsmodels 0.15.0's two-sided 90 % interval of the difference, by
# confint_proportions_2indep(x, n1, y, n2, method="score", compare="diff", alpha=0.1, correction=False). All draws that
# were made, but for one for which its search failed and one whose limit is negative, which ours never is.
SCORE_LIMITS = [
    (40, 60, 13, 16, 0.212045),
    (40, 60, 7, 11, 0.127765),
    (40, 60, 15, 23, 0.154505),
    (40, 60, 13, 20, 0.150652),
    (200, 300, 20, 38, 0.022467),
    (200, 300, 24, 17, 0.109800),
    (200, 300, 25, 21, 0.102918),
    (200, 300, 23, 25, 0.079498),
    (500, 1500, 113, 301, 0.061360),
    (500, 1500, 99, 271, 0.051906),
    (500, 1500, 91, 275, 0.032582),
    (500, 1500, 93, 315, 0.010561),
    (3000, 5000, 148, 213, 0.014953),
    (3000, 5000, 164, 267, 0.010048),
    (3000, 5000, 145, 242, 0.008266),
    (1000, 1000, 511, 495, 0.052729),
    (1000, 1000, 509, 512, 0.033752),
    (1000, 1000, 485, 492, 0.029753),
    (1000, 1000, 479, 514, 0.001779),
    (50, 5000, 11, 932, 0.141976),
    (50, 5000, 15, 993, 0.215001),
    (50, 5000, 10, 997, 0.107348),
]


@pytest.mark.parametrize(("n1", "n2", "x", "y", "score"), SCORE_LIMITS)
def test_exact_limits_are_little_wider_than_score_limits_which_hold_only_in_large_samples(n1, n2, x, y, score):
    pair = Pairs(*(np.array([float(v)]) for v in (x, y, n1, n2)))
    ours, estimate = limits(pair, 0.05, Claim())[0], x / n1 - y / n2
    # With 50 rows a step of the counts is coarse: the widest of these is 1.16 times as wide.
    assert 1.0 < (ours - estimate) / (score - estimate) < (1.2 if n1 < 100 else 1.05)


def test_three_groups_are_judged_at_once_without_a_correction():
    """Every outcome of three groups: the promised fairness is above the true one with probability 5 % at most."""
    sizes = (7, 9, 8)
    outcomes = np.array(list(itertools.product(*(range(n + 1) for n in sizes))))
    promised = largest_promise(outcomes, sizes, block(*sizes), confidence=0.9)
    worst = 0.0
    for rates in itertools.product(RATES[::4], repeat=3):
        chance = np.prod([binom.pmf(outcomes[:, i], n, rates[i]) for i, n in enumerate(sizes)], axis=0)
        worst = max(worst, chance[promised > 1.0 - np.ptp(rates) + 1e-9].sum())
    assert 0.05 < worst <= 0.1


def test_all_promises_hold_together():
    """Forty candidates on one path of growing unfairness: the fifth is the first that is not fair enough."""
    rng, n, wrong = np.random.default_rng(5), np.array([60, 90]), 0
    gaps = np.linspace(0.12, 0.6, 40)
    gaps[4] = 0.2 + 1e-9
    gaps[5:] = np.maximum(gaps[5:], 0.21)
    draws = 400
    for _ in range(draws):
        first, second = rng.random(n[0]), rng.random(n[1])
        positives = np.stack([(first[:, None] < 0.3 + gaps).sum(axis=0), np.full(40, (second < 0.3).sum())], axis=1)
        result = promised_candidates(positives, n, block(*n), min_fairness=0.8, confidence=0.9, order=np.arange(40))
        wrong += bool(result[gaps > 0.2].any())
    assert 0 < wrong <= draws * (0.1 + 3 * np.sqrt(0.09 / draws))


def test_the_first_failure_ends_the_sequence():
    sizes, sets = (2000, 2000), block(0, 0)
    positives = np.array([[600, 600], [900, 300], [601, 602], [600, 590]])
    result = promised_candidates(positives, sizes, sets, min_fairness=0.9, confidence=0.95, order=[0, 3, 1, 2])
    assert result.tolist() == [True, False, False, True]
    assert not promised_candidates(positives, sizes, sets, min_fairness=0.9, confidence=0.95, order=[1, 0]).any()
    assert not promised_candidates(positives, sizes, sets, min_fairness=0.9, confidence=0.95, order=[]).any()


def test_candidates_with_equal_counts_pass_or_fail_together_and_in_their_order():
    rng = np.random.default_rng(0)
    different = np.column_stack([rng.integers(70, 110, 12), rng.integers(60, 100, 12)])
    different[:3] = [[80, 80], [85, 80], [90, 88]]
    positives = different[np.r_[0, 0, 1, 0, 2, 2, 1, rng.integers(0, 12, 200)]]
    sizes, order = np.array([200, 180]), rng.permutation(len(positives))
    options = {"min_fairness": 0.8, "confidence": 0.9}
    for sequence in (np.arange(len(positives)), order):
        alone = [promised_candidates(positives, sizes, block(*sizes), order=[i], **options).sum() for i in sequence]
        n_passed = alone.index(0)
        result = promised_candidates(positives, sizes, block(*sizes), order=sequence, **options)
        assert sorted(sequence[:n_passed]) == np.flatnonzero(result).tolist()


def test_a_long_sequence_is_tested_to_its_end():
    positives = np.column_stack([np.arange(600, 700), np.full(100, 600)])
    one_by_one = largest_promise(positives, (2000, 2000), block(0, 0), confidence=0.95)
    result = promised_candidates(
        positives, (2000, 2000), block(0, 0), min_fairness=0.94, confidence=0.95, order=np.arange(100)
    )
    # Limits may give away a fiftieth of a standard error.
    assert np.all(one_by_one[result] > 0.9395)
    assert np.all(one_by_one[~result] <= 0.94)


def test_the_ratio_is_a_request_of_its_own():
    sizes, sets = (2000, 2000), block(0, 0)
    positives = np.array([[60, 40], [600, 560]])
    fair = promised_candidates(positives, sizes, sets, min_fairness=0.95, confidence=0.95, order=[0, 1])
    ratio = promised_candidates(positives, sizes, sets, min_ratio=0.8, confidence=0.95, order=[1, 0])
    both = promised_candidates(positives, sizes, sets, min_fairness=0.95, min_ratio=0.8, confidence=0.95, order=[1, 0])
    assert fair.tolist() == [True, True]
    assert ratio.tolist() == [False, True]
    assert both.tolist() == [False, True]


def test_two_blocks_are_both_judged():
    sets = RowSets(("a", "b", "c", "d"), ((0, 1), (2, 3)), ("first", "second"))
    positives = np.array([[300, 300, 300, 300], [300, 300, 300, 500]])
    result = promised_candidates(positives, [1000] * 4, sets, min_fairness=0.9, confidence=0.95, order=[0, 1])
    assert result.tolist() == [True, False]


counts = st.integers(2, 4).flatmap(
    lambda s: st.lists(st.integers(1, 400), min_size=s, max_size=s).flatmap(
        lambda n: st.tuples(st.just(n), st.tuples(*(st.integers(0, m) for m in n)), st.permutations(range(s)))
    )
)


@given(counts)
@settings(max_examples=40, deadline=None)
def test_a_promise_does_not_depend_on_names_and_grows_as_the_outer_group_comes_nearer(case):
    n, x, permutation = np.array(case[0]), np.array(case[1]), list(case[2])
    first = largest_promise([x], n, block(*n), confidence=0.9)
    np.testing.assert_allclose(largest_promise([x[permutation]], n[permutation], block(*n), confidence=0.9), first)
    # Of all negative decisions, which are as different, the same can be promised, but for rounding.
    np.testing.assert_allclose(largest_promise([n - x], n, block(*n), confidence=0.9), first, atol=1e-9)
    assert 0.0 <= first[0] <= 1.0 - np.ptp(x / n)
    assert largest_promise([x], n, block(*n), confidence=0.99)[0] <= first[0] + 1e-9


@given(st.integers(5, 300), st.integers(5, 300), st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_shown_is_shown_of_every_better_outcome(n1, n2, data):
    x, y = data.draw(st.integers(0, n1 - 1)), data.draw(st.integers(1, n2))
    gap = data.draw(st.floats(0.02, 0.9))
    given_ = Pairs(*(np.array([float(v)] * 3) for v in (x, y, n1, n2)))
    even_worse = Pairs(np.array([x + 1.0, x, x]), np.array([y, y - 1.0, y]), given_.n_first, given_.n_second)
    p = p_values(even_worse, np.array([gap, gap, gap - 0.02]), 0.1, Claim())
    # The search between the points of the grid is exact to a few thousandths only, and not above the level.
    assert np.all((p_values(given_, np.full(3, gap), 0.1, Claim()) <= p + 0.005) | (p > 0.09))


def test_probabilities_and_overlapping_sets_take_wider_limits_that_still_hold():
    sizes = (500, 600)
    exact = largest_promise([[100, 120]], sizes, block(*sizes), confidence=0.95)[0]
    overlapping = largest_promise([[100, 120]], sizes, block(*sizes), confidence=0.95, disjoint=False)[0]
    summed = largest_promise([[100.5, 120.2]], sizes, block(*sizes), confidence=0.95)[0]
    assert summed < overlapping < exact
    # Each of the two is in its own one-sided interval at half of the error.
    high = binomtest(100, 500).proportion_ci(0.95, "exact").high - binomtest(120, 600).proportion_ci(0.95, "exact").low
    low = binomtest(120, 600).proportion_ci(0.95, "exact").high - binomtest(100, 500).proportion_ci(0.95, "exact").low
    assert overlapping == pytest.approx(1.0 - max(high, low))


def test_a_group_without_rows_leaves_nothing_to_promise():
    assert largest_promise([[3, 0]], [10, 0], block(0, 0), confidence=0.95)[0] < 0.5
    result = promised_candidates([[3, 0]], [10, 0], block(0, 0), min_fairness=0.6, confidence=0.95, order=[0])
    assert not result.any()


@pytest.mark.parametrize(
    ("shares", "rate", "asked"), [((0.5, 0.5), 0.5, 0.9), ((0.3, 0.7), 0.1, 0.9), ((0.2, 0.3, 0.5), 0.3, 0.88)]
)
def test_the_rows_needed_give_the_power_that_is_asked_for(shares, rate, asked):
    n = rows_needed(asked, group_shares=shares, rates=rate)
    sizes = np.round(np.array(shares) * n).astype(int)
    draws = np.random.default_rng(1).binomial(sizes, rate, size=(600, len(shares)))
    made = np.mean(largest_promise(draws, sizes, block(*sizes), confidence=0.95) > asked - 0.0005)
    assert 0.74 < made < 0.9


def test_more_is_asked_more_rows_are_needed():
    shares = {"a": 0.2, "b": 0.8}
    usual = rows_needed(0.9, group_shares=shares, rates=0.3)
    assert rows_needed(0.95, group_shares=shares, rates=0.3) > 3 * usual
    assert rows_needed(0.9, group_shares=shares, rates=0.3, confidence=0.99) > usual
    assert rows_needed(0.9, group_shares=shares, rates=0.3, power=0.95) > usual
    assert rows_needed(0.9, group_shares=shares, rates=0.5) > usual
    assert rows_needed(0.9, group_shares=shares, rates=[0.3, 0.35]) > usual
    assert rows_needed(0.9, group_shares={"a": 0.1, "b": 0.9}, rates=0.3) > usual
    assert rows_needed(0.9, group_shares=[0.1, 0.1, 0.8], rates=0.3) > usual
    assert rows_needed(0.9, group_shares=[0.04, 0.16], rates=0.3) == pytest.approx(5 * usual, rel=0.01)


def test_the_advice_says_what_can_be_promised_and_what_the_request_takes():
    sets = block(0, 0)
    said = promise_advice([130, 260], [440, 879], sets, 1319, min_fairness=0.97, confidence=0.95)
    assert said.startswith("with 1,319 rows the largest fairness that can be promised at 95 % is 0.9")
    promised = float(said.split(" is ")[1].split(";")[0])
    assert promised <= largest_promise([[130, 260]], [440, 879], sets, confidence=0.95)[0] < promised + 0.001
    rows = int(said.split("about ")[1].replace(",", ""))
    exact = rows_needed(0.97, group_shares=[440 / 1319, 879 / 1319], rates=390 / 1319)
    assert exact <= rows <= 1.1 * exact
    # Where everybody is selected nobody knows how rates vary; one in a hundred not selected is assumed.
    nearly = promise_advice([99, 198], [100, 200], sets, 300, min_fairness=0.98, confidence=0.95)
    everybody = promise_advice([100, 200], [100, 200], sets, 300, min_fairness=0.98, confidence=0.95)
    assert everybody.split("about ")[1] == nearly.split("about ")[1]
    unfair = promise_advice([330, 260], [440, 879], sets, 1319, min_fairness=0.9, confidence=0.95)
    assert unfair.endswith("they take a fairer model")
    assert "; " not in promise_advice([130, 260], [440, 879], sets, 1319, min_fairness=0.5, confidence=0.95)
    assert "; " not in promise_advice([130, 260], [440, 879], sets, 1319, min_fairness=1.0, confidence=0.95)
    assert "; " not in promise_advice([0, 260], [0, 879], sets, 879, min_fairness=0.9, confidence=0.95)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"positives": [[1, 2, 3]]}, r"positives must have shape \(candidates, 2\)"),
        ({"positives": [[11, 2]]}, r"positives must be in \[0, size\]"),
        ({"positives": [[np.nan, 2]]}, r"positives must be in \[0, size\]"),
        ({"min_fairness": None}, "give min_fairness, min_ratio, or both"),
        ({"min_fairness": 1.5}, r"min_fairness must be in \[0, 1\]"),
        ({"min_ratio": -1}, r"min_ratio must be in \[0, 1\]"),
    ],
)
def test_wrong_counts_are_named(changed, message):
    arguments = {"positives": [[3, 2]], "confidence": 0.95, "min_fairness": 0.5, "order": [0]} | changed
    with pytest.raises(InvalidInputError, match=message):
        promised_candidates(arguments.pop("positives"), [10, 10], block(0, 0), **arguments)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"min_fairness": 1.0}, InvalidInputError, r"min_fairness must be in \(0, 1\)"),
        ({"confidence": 0.0}, InvalidInputError, "confidence must be"),
        ({"power": 2}, InvalidInputError, "power must be"),
        ({"group_shares": [1.0]}, GroupError, "at least two groups"),
        ({"group_shares": [0.8, 0.8]}, InvalidInputError, "add up to 1 at most"),
        ({"group_shares": [0.0, 0.8]}, InvalidInputError, "must be positive"),
        ({"rates": 0.0}, InvalidInputError, r"rates must be one number in \(0, 1\)"),
        ({"rates": 1.0}, InvalidInputError, r"rates must be one number in \(0, 1\)"),
        ({"rates": [0.1, 0.2, 0.3]}, InvalidInputError, "or 2, one per group"),
        ({"rates": [0.1, 0.3]}, InvalidInputError, "must differ by less than"),
    ],
)
def test_wrong_requests_are_named(changed, error, message):
    arguments = {"min_fairness": 0.9, "group_shares": [0.5, 0.5]} | changed
    with pytest.raises(error, match=message):
        rows_needed(arguments.pop("min_fairness"), **arguments)


def test_without_rates_they_are_one_half_which_takes_the_most_rows():
    shares = {"a": 0.4, "b": 0.6}
    half = rows_needed(0.9, group_shares=shares)
    assert half == rows_needed(0.9, group_shares=shares, rates=[0.5, 0.5])
    assert half > rows_needed(0.9, group_shares=shares, rates=0.3)
    assert rows_needed(0.9, group_shares=shares, rates={"a": 0.3, "b": 0.3}) == rows_needed(
        0.9, group_shares=shares, rates=0.3
    )
