"""Moments are sums over rows; the exact decision path is what a loop over targets finds; folds hold every group."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, ShuffleSplit

from fairfrontier import taf_curve
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._decision_path import decision_path
from fairfrontier.optimize import StackStatistics
from fairfrontier.optimize._cross_validation import assign_folds, train_test

from .stacking import Stacking, measured


def rows(seed, *, n=200, k=5, groups=3, fairness="equalized_odds", weighted=True, offset=50.0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    label = rng.random(n) < 0.4
    weight = rng.uniform(0.0, 2.0, n) if weighted else None
    H = rng.normal(offset, 1.0, (n, k)) + label[:, None] + 0.3 * group[:, None]
    return Stacking(H, label.astype(float), group, fairness, weight), group


def assert_same(a, b, rtol=1e-10):
    for name in ("weight", "mean_h", "mean_y", "gram", "cross", "y_square", "set_weight", "set_h"):
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * max(1.0, np.abs(y).max()), err_msg=name)


class TestStatistics:
    def test_they_are_what_they_say(self):
        data, _ = rows(0)
        found = data.statistics()
        w, H, y = data.weight, data.H, data.y
        mean = w @ H / w.sum()
        centred = H - mean
        assert found.weight == pytest.approx(w.sum())
        np.testing.assert_allclose(found.mean_h, mean)
        np.testing.assert_allclose(found.gram, (centred * w[:, None]).T @ centred)
        np.testing.assert_allclose(found.cross, centred.T @ (w * (y - w @ y / w.sum())))
        assert found.y_square == pytest.approx(w @ (y - w @ y / w.sum()) ** 2)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("fairness", ["demographic_parity", "equal_opportunity", "equalized_odds"])
    def test_contrast_matrix_is_the_difference_of_means(self, fairness, weighted):
        data, group = rows(1, fairness=fairness, weighted=weighted)
        w = np.ones(len(group)) if data.weight is None else data.weight
        found = data.statistics().contrast_matrix()
        conditions = {
            "demographic_parity": [data.y >= 0],
            "equal_opportunity": [data.y == 1],
            "equalized_odds": [data.y == 1, data.y == 0],
        }[fairness]
        expected = []
        for condition in conditions:
            means = [
                np.average(data.H[condition & (group == g)], axis=0, weights=w[condition & (group == g)])
                for g in range(3)
            ]
            expected += [means[0] - means[1], means[0] - means[2], means[1] - means[2]]
        np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-12)
        np.testing.assert_allclose(data.contrast_matrix(), found, atol=1e-12)

    @settings(deadline=None, max_examples=30)
    @given(
        seed=st.integers(0, 1000), cuts=st.lists(st.integers(1, 199), max_size=6, unique=True), shuffle=st.booleans()
    )
    def test_chunks_in_any_order_add_up(self, seed, cuts, shuffle):
        data, _ = rows(seed)
        order = np.random.default_rng(seed).permutation(200) if shuffle else np.arange(200)
        parts = [data.rows(part).statistics() for part in np.split(order, sorted(cuts))]
        whole = data.statistics()
        assert_same(StackStatistics.total(parts), whole)
        assert_same(StackStatistics.total(reversed(parts)), whole)
        tree = reduce(lambda a, b: b + a, parts)
        assert_same(tree, whole)

    def test_weights_are_repetitions(self):
        data, _ = rows(2, weighted=False)
        times = np.random.default_rng(0).integers(0, 4, 200)
        weighted = replace(data, weight=times.astype(float))
        assert_same(weighted.statistics(), data.rows(np.repeat(np.arange(200), times)).statistics())

    def test_far_from_zero_no_digits_are_lost(self):
        data, _ = rows(3, offset=1e6, weighted=False)
        near = replace(data, H=data.H - 1e6)
        parts = [data.rows(part).statistics() for part in np.array_split(np.arange(200), 7)]
        for found in (data.statistics(), StackStatistics.total(parts)):
            np.testing.assert_allclose(found.gram, near.statistics().gram, rtol=1e-7)
            np.testing.assert_allclose(found.cross, near.statistics().cross, rtol=1e-6)

    def test_more_rows_than_a_block(self):
        data, _ = rows(4, n=900_000)
        found = data.statistics()
        parts = [data.rows(part).statistics() for part in np.split(np.arange(900_000), 3)]
        assert_same(StackStatistics.total(parts), found)
        np.testing.assert_allclose(found.gram / found.weight, np.cov(data.H.T, aweights=data.weight, ddof=0), rtol=1e-9)

    def test_single_precision_is_summed_in_double(self):
        data, _ = rows(5, offset=0.0)
        single = replace(data, H=data.H.astype(np.float32))
        double = replace(data, H=single.H.astype(np.float64))
        assert_same(single.statistics(), double.statistics(), rtol=1e-12)
        assert single.statistics().gram.dtype == np.float64

    def test_what_does_not_belong_together_is_refused(self):
        (data, _), (other, _) = rows(7), rows(7, fairness="demographic_parity")
        with pytest.raises(InvalidInputError, match="same row sets in the same order"):
            data.statistics() + other.statistics()
        with pytest.raises(InvalidInputError, match="those of the same models; got 5 and 2 models"):
            data.statistics() + replace(data, H=data.H[:, :2]).statistics()
        with pytest.raises(InvalidInputError, match="parts must hold at least one part; got none"):
            StackStatistics.total([])


def brute_force(base, slope, codes, contrasts, positions, weight, threshold=0.5):
    """Accuracy and rates of the decisions at each position, by their definition."""
    label = contrasts.label[codes]
    members = contrasts.membership[:, codes] * weight
    accuracy, rates = [], []
    for s in positions:
        decided = base + s * slope > threshold
        accuracy.append(weight @ (decided == label) / weight.sum())
        rates.append(members @ decided / members.sum(axis=1))
    return np.array(accuracy), np.array(rates)


class TestDecisionPath:
    """States are compared at 10,000 positions: the state of a position is the last one that begins before it."""

    def setup_rows(self, seed, kind, groups=2, n=300):
        rng = np.random.default_rng(seed)
        group, label = rng.integers(0, groups, n), rng.random(n) < 0.4
        cells = measured(label, group)
        if kind == "heavy ties":  # exact in binary, so that a loop meets the crossings themselves
            return (
                rng.choice([-0.5, 0.0, 0.25, 0.5, 1.0, 1.5], n),
                rng.choice([-1.0, -0.5, 0.0, 0.5, 2.0], n),
                *cells,
            )
        return rng.normal(0.5, 0.3, n), rng.normal(0.0, 0.4, n), *cells

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("kind", ["continuous", "heavy ties"])
    def test_equals_brute_force_at_ten_thousand_targets(self, kind, weighted):
        base, slope, *cells = self.setup_rows(0, kind)
        rng = np.random.default_rng(1)
        weight = rng.uniform(0.1, 2.0, len(base)) if weighted else np.ones(len(base))
        path = decision_path(base, slope, *cells, low=-2.0, high=1.0, sample_weight=weight if weighted else None)
        grid = np.sort(rng.uniform(-2.0, 1.0, 10_000))
        if kind == "heavy ties":
            grid = np.sort(np.concatenate([rng.integers(-128, 65, 9_000) / 64, grid[:1_000]]))
        accuracy, rates = brute_force(base, slope, *cells, grid, weight)
        # Every decision vector of the grid is a state of the path, in the same order.
        seen = np.column_stack([accuracy, rates])
        states = np.column_stack([path.accuracy, path.rates])
        at = 0
        for row in seen:
            while at < len(states) and np.abs(states[at] - row).max() > 1e-9:
                at += 1
            assert at < len(states), "a decision of the grid is no state of the path"
        # And every state is attained where it says.
        accuracy, rates = brute_force(base, slope, *cells, path.position, weight)
        np.testing.assert_allclose(path.accuracy, accuracy, atol=1e-10)
        np.testing.assert_allclose(path.rates, rates, atol=1e-10)
        assert np.all(np.diff(path.position) >= 0)
        assert path.position[0] >= -2.0
        assert path.position[-1] <= 1.0

    @settings(deadline=None, max_examples=60)
    @given(seed=st.integers(0, 10_000), groups=st.integers(2, 4), n=st.integers(8, 40))
    def test_tied_rows_of_few_values(self, seed, groups, n):
        rng = np.random.default_rng(seed)
        group = np.concatenate([np.arange(groups), rng.integers(0, groups, n - groups)])
        label = rng.random(n) < 0.5
        label[:2] = False, True  # both classes must occur
        cells = measured(label, group)
        base, slope = rng.integers(-2, 5, n) / 4, rng.integers(-2, 3, n) / 2
        path = decision_path(base, slope, *cells, low=-1.0, high=1.0)
        grid = np.arange(-64, 65) / 64
        accuracy, rates = brute_force(base, slope, *cells, grid, np.ones(n))
        states = {tuple(row.round(9)) for row in np.column_stack([path.accuracy, path.rates])}
        assert {tuple(row.round(9)) for row in np.column_stack([accuracy, rates])} <= states
        accuracy, rates = brute_force(base, slope, *cells, path.position, np.ones(n))
        np.testing.assert_allclose(path.accuracy, accuracy, atol=1e-12)
        np.testing.assert_allclose(path.rates, rates, atol=1e-12)

    @pytest.mark.parametrize("groups", [2, 4])
    def test_its_frontier_dominates_that_of_any_grid(self, groups):
        for seed in range(5):
            base, slope, *cells = self.setup_rows(seed, "continuous", groups=groups)
            points = decision_path(base, slope, *cells, low=-1.0, high=1.0).points()
            exact = points.frontier()
            for size in (20, 1000):
                accuracy, rates = brute_force(base, slope, *cells, np.linspace(-1, 1, size), np.ones(len(base)))
                gap = rates.max(axis=1) - rates.min(axis=1)
                grid = taf_curve(1 - gap, accuracy)
                levels = np.concatenate([grid.fairness, exact.fairness, np.linspace(0, 1, 101)])
                assert np.all(exact(levels) >= grid(levels) - 1e-12)
            assert len(points) > 100
            assert points.names[0].startswith("s=")

    def test_no_row_moves(self):
        base, _, *cells = self.setup_rows(0, "continuous")
        path = decision_path(base, np.zeros(len(base)), *cells, low=-1.0, high=1.0)
        assert len(path) == 1
        assert path.position.tolist() == [-1.0]

    def test_a_score_on_the_threshold_is_decision_zero(self):
        label, group = np.array([True, False, True, False]), np.array([0, 0, 1, 1])
        cells = measured(label, group)
        base = np.full(4, 0.5)
        path = decision_path(base, np.array([1.0, -1.0, 0.0, 1.0]), *cells, low=-1.0, high=1.0)
        # Below 0 only the falling row decides 1, at 0 none, above 0 the rising ones.
        assert path.rates.tolist() == [[0.5, 0.0], [0.0, 0.0], [0.5, 0.5]]
        assert path.position.tolist() == [-1.0, 0.0, 0.5]
        assert path.accuracy.tolist() == [0.25, 0.5, 0.5]


class TestFolds:
    @settings(deadline=None, max_examples=50)
    @given(seed=st.integers(0, 10_000), folds=st.integers(2, 6))
    def test_every_fold_holds_every_set_that_is_large_enough(self, seed, folds):
        rng = np.random.default_rng(seed)
        group = np.repeat(["a", "b", "c"], [folds, folds + 3, 40])
        label = np.concatenate([np.arange(len(group)) % 2 == 0])
        order = rng.permutation(len(group))
        contrasts = measured(label[order], group[order])
        found = assign_folds(*contrasts, folds, seed)
        assert np.bincount(found).min() >= len(group) // folds
        for g in "abc":
            assert set(found[group[order] == g]) == set(range(folds))
        assert np.array_equal(found, assign_folds(*contrasts, folds, seed))

    @settings(deadline=None, max_examples=80)
    @given(seed=st.integers(0, 10_000))
    def test_several_attributes(self, seed):
        """A group of one attribute is spread over those of another; still no fold may miss it."""
        rng = np.random.default_rng(seed)
        n = 60
        sex = np.where(rng.permutation(n) < 6, "f", "m")
        race = rng.choice(["a", "b", "c"], n)
        race[rng.permutation(n)[:18]] = np.repeat(["a", "b", "c"], 6)
        contrasts = measured(rng.random(n) < 0.5, {"sex": sex, "race": race})
        found = assign_folds(*contrasts, 5, seed)
        for values in (sex, race):
            for g in np.unique(values):
                if (values == g).sum() >= 5:
                    assert set(found[values == g]) == set(range(5)), g

    def test_labels_are_balanced(self):
        rng = np.random.default_rng(0)
        group, label = rng.integers(0, 2, 1000), rng.random(1000) < 0.1
        found = assign_folds(*measured(label, group), 5, 0)
        counts = [np.bincount(found[(group == g) & label], minlength=5) for g in (0, 1)]
        assert max(np.ptp(count) for count in counts) <= 1

    def test_train_and_test_are_complements(self):
        folds = np.array([0, 1, 2, 0, 1])
        for fold, (train, test) in enumerate(train_test(folds)):
            assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(5))
            assert np.all(folds[test] == fold)

    def test_splitters_and_lists_of_splits(self):
        group, label = np.arange(20) % 2, np.arange(20) % 3 == 0
        contrasts = measured(label, group)
        splitter = KFold(4)
        expected = np.repeat(np.arange(4), 5)
        assert np.array_equal(assign_folds(*contrasts, splitter), expected)
        assert np.array_equal(assign_folds(*contrasts, list(splitter.split(group))), expected)

    @pytest.mark.parametrize(
        ("cv", "error", "message"),
        [
            (1, InvalidInputError, "cv must be at least 2 folds, a splitter, 'prefit' or 'precomputed'; got 1"),
            (True, InvalidInputError, "cv must be at least 2 folds"),
            (2.5, InvalidInputError, "cv must be at least 2 folds"),
            (None, InvalidInputError, "cv must be at least 2 folds"),
            (21, InvalidInputError, "cv must not be larger than the number of rows; got cv=21 for 20 rows"),
            (
                ShuffleSplit(3, random_state=0),
                InvalidInputError,
                "each row once as test row; ShuffleSplit gives some tw",
            ),
            (
                [(np.arange(10, 20), np.arange(10))],
                InvalidInputError,
                "each row once as test row; the list leaves some",
            ),
            (
                10,
                GroupError,
                r"10 folds need .* the row set 'sensitive_feature=1' .* has 3 row\(s\) in all and none in f",
            ),
            (
                KFold(5),
                GroupError,
                "the row set 'sensitive_feature=1' .* none in fold 1: use fewer folds, merge small gr",
            ),
        ],
    )
    def test_bad_input(self, cv, error, message):
        group = (np.arange(20) < 3).astype(int)
        contrasts = measured(np.arange(20) % 2 == 0, group)
        with pytest.raises(error, match=message):
            assign_folds(*contrasts, cv, 0)

    def test_fewer_rows_than_the_folds_of_fitted_models(self):
        with pytest.raises(InvalidInputError, match="number of rows; got cv=5 for 4 rows"):
            assign_folds(*measured(np.arange(4) % 2 == 0, np.arange(4) // 2), "prefit", 0)
