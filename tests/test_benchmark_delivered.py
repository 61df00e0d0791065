"""The delivered frontier: methods whose delivered frontier is known, and that nothing is promised that is not."""

import numpy as np
import pytest

from fairfrontier import StepWeight, fauc, tradeoff_points
from fairfrontier.benchmark._delivered import LEVELS, Delivery, choose_mixtures, deliver, delivered_frontier
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import points_from_rates
from fairfrontier.metrics._contrasts import RowSets

SETS = RowSets(("a", "b"), ((0, 1),), ("group",))


def points(bias, accuracy):
    """Candidates with given signed biases, the constant (bias 0) last."""
    bias = np.asarray(bias, dtype=float)
    names = tuple(f"m{j}" for j in range(len(bias)))
    return points_from_rates(np.column_stack([0.5 + bias / 2, 0.5 - bias / 2]), SETS, np.asarray(accuracy), names)


def integral(fairness, accuracy, low=0.8, step=1e-5):
    """FAUC of a TAF by its definition on a fine grid: the largest accuracy among points that are fair enough."""
    grid = np.arange(low + step / 2, 1.0, step)
    values = [max((a for f, a in zip(fairness, accuracy, strict=True) if f >= g), default=0.0) for g in grid]
    return float(np.mean(values))


def test_a_method_that_keeps_its_word_has_the_step_curve_of_its_asked_levels():
    """Accuracy a(b) = .6 + b on both rows: at level f it delivers exactly f and 1.6 − f."""
    bias = np.append(np.linspace(0.3, 0.0, 31), 0.0)
    accuracy = np.append(0.6 + np.linspace(0.3, 0.0, 31), 0.5)
    both = points(bias, accuracy)
    found = delivered_frontier([deliver(choose_mixtures(both), both)] * 3)
    np.testing.assert_allclose(found.fairness, LEVELS, atol=1e-12)
    np.testing.assert_allclose(found.accuracy, 1.6 - LEVELS, atol=1e-12)
    # A step curve at 21 levels, each step at the accuracy of its right end.
    assert found.fauc() == pytest.approx(np.mean(1.6 - LEVELS[1:]), abs=1e-12)
    assert found.miss_share == 0.0
    assert found.miss_size == 0.0


def test_promises_of_the_choosing_rows_count_for_nothing():
    """On the choosing rows all candidates are fair and accurate; on the test rows they are neither."""
    chosen = points([0.0, 0.01, 0.0], [0.95, 0.99, 0.5])
    test = points([0.15, 0.3, 0.0], [0.7, 0.6, 0.5])
    found = delivered_frontier([deliver(choose_mixtures(chosen), test)])
    best_possible = integral([0.85, 0.7, 1.0], [0.7, 0.6, 0.5])
    assert found.fauc() <= best_possible + 1e-9
    assert found.miss_share == pytest.approx(1.0)
    assert found.miss_size > 0.1


def test_coins_deliver_what_a_coin_is_worth():
    """Of 200 coins the luckiest looks better than one half on the rows that chose it, and is one half on others."""
    rng = np.random.default_rng(0)
    deliveries, flattered = [], []
    for _ in range(20):
        y, group = rng.random((2, 400)) < 0.5, rng.integers(0, 2, (2, 400))
        coins = rng.random((2, 400, 200))
        chosen, test = (tradeoff_points(y[part], coins[part], sensitive_features=group[part]) for part in (0, 1))
        deliveries.append(deliver(choose_mixtures(chosen), test))
        flattered.append(fauc(test.frontier(), StepWeight(0.8)))
    found = delivered_frontier(deliveries)
    truth = max(found.constant, 0.5)
    assert np.mean(flattered) > truth + 0.02
    assert found.fauc() < truth + 0.012  # standard error of a mean over 20 · 400 rows: .0056


def test_the_measure_is_level_with_the_truth_for_a_randomised_threshold():
    """A known population: selection rates and accuracy of thresholds at each tolerance are computed in closed form.

    Scores are uniform on (0, 1), y is 1 with the score's probability in group a and in group b alike, but group b's
    scores are squeezed to (0, .5). With one threshold u in group a and none selected in b the bias is 1 − u.
    """
    rng = np.random.default_rng(1)
    thresholds = np.linspace(0.5, 1.0, 26)
    # In group a the decision score > u is right with probability ∫ max part: (1 − u²)/2 + u − u²/2 = 1/2 + u − u².
    in_a = 0.5 + thresholds - thresholds**2
    in_b = 1.0 - 0.25  # always 0, and y is 1 with mean probability 1/4
    truth_bias, truth_accuracy = 1.0 - thresholds, (in_a + in_b) / 2
    constant = (0.5 + 0.75) / 2
    deliveries = []
    for _ in range(30):
        parts = []
        for n in (2000, 2000):
            group = rng.integers(0, 2, n)
            score = rng.random(n) * np.where(group == 0, 1.0, 0.5)
            y = rng.random(n) < score
            above = (score[:, None] > thresholds) & (group[:, None] == 0)
            parts.append(tradeoff_points(y, above.astype(float), sensitive_features=group))
        deliveries.append(deliver(choose_mixtures(parts[0]), parts[1]))
    found = delivered_frontier(deliveries)
    limit = points(np.append(truth_bias, 0.0), np.append(truth_accuracy, constant))
    known = delivered_frontier([deliver(choose_mixtures(limit), limit)])
    assert found.fauc() <= known.fauc() + 0.003
    assert found.fauc() >= known.fauc() - 0.02


def test_a_level_that_nobody_reaches_gets_the_fairest_and_counts_as_missed():
    chosen = points([0.3, 0.1], [0.9, 0.8])
    shares = choose_mixtures(chosen, np.array([0.85, 0.95]))
    np.testing.assert_allclose(shares, [[0.25, 0.75], [0.0, 1.0]], atol=1e-12)
    found = delivered_frontier([deliver(shares, chosen, np.array([0.85, 0.95]))])
    np.testing.assert_allclose(found.missed, [0.0, 1.0])
    np.testing.assert_allclose(found.shortfall, [0.0, 0.05])


def test_signed_biases_of_test_rows_are_averaged_by_size():
    """Splits that miss to either side do not cancel each other."""
    asked = np.array([1.0])
    one = Delivery(asked, np.abs(np.array([0.1])), np.array([0.8]), 0.5)
    other = Delivery(asked, np.abs(np.array([-0.1])), np.array([0.8]), 0.5)
    assert delivered_frontier([one, other]).fairness[0] == pytest.approx(0.9)


def test_methods_with_a_tolerance_are_asked_in_advance():
    test = points(np.append(1.0 - LEVELS + 0.01, 0.0), np.append(1.6 - LEVELS, 0.5))
    found = delivered_frontier([deliver(np.eye(21), test)])
    np.testing.assert_allclose(found.fairness, LEVELS - 0.01, atol=1e-12)
    assert found.miss_share == 1.0
    assert found.miss_size == pytest.approx(0.01)
    assert found.fauc() == pytest.approx(integral([*(LEVELS - 0.01), 1.0], [*(1.6 - LEVELS), 0.5]), abs=1e-4)


def test_more_groups_than_two():
    rng = np.random.default_rng(2)
    y, group = rng.random(900) < 0.4, rng.integers(0, 3, 900)
    scores = 0.5 * y[:, None] + 0.1 * group[:, None] * np.array([0.0, 1.0, 2.0]) + rng.normal(0, 0.2, (900, 3))
    chosen = tradeoff_points(y, scores, sensitive_features=group)
    shares = choose_mixtures(chosen)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)
    same = deliver(shares, chosen)
    assert np.all(1.0 - same.bias >= LEVELS - 1e-6)


@pytest.mark.parametrize("rows", [np.eye(21)[:, :5], np.eye(3)])
def test_shares_must_fit(rows):
    with pytest.raises(InvalidInputError, match="shares must have"):
        deliver(rows, points([0.1, 0.0], [0.9, 0.5]))


def test_splits_must_agree_on_what_was_asked():
    one = Delivery(np.array([0.9]), np.array([0.1]), np.array([0.8]), 0.5)
    other = Delivery(np.array([0.95]), np.array([0.1]), np.array([0.8]), 0.5)
    with pytest.raises(InvalidInputError, match="same asked levels"):
        delivered_frontier([one, other])
    with pytest.raises(InvalidInputError, match="at least one"):
        delivered_frontier([])
