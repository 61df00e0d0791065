"""What must not matter: the scale of weights and scores, and the names of groups and labels."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import fairfrontier as ff
from fairfrontier.optimize._statistics import RowWeights, StackStatistics

# Tuned stacks of every kind; names with a slash make families.
KINDS = {
    "signed": {},
    "paper": {"path": "paper"},
    "families": {"estimators": ["a/1", "a/2", "b/1", "b/2"], "cv": "precomputed"},
    "log": {"loss": "log", "n_points": 4},
    "hinge": {"loss": "hinge", "n_points": 3},
    "attribute aware": {"attribute_aware": True},
    "odds": {"fairness": "equalized_odds"},
}


def people(seed=0, *, n=300, groups=2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    y = (rng.random(n) < 0.3 + 0.4 * group / groups).astype(int)
    scores = 0.5 * y[:, None] + 0.2 * group[:, None] / groups + rng.normal(0, 0.4, (n, 4))
    return y, scores, group, rng.uniform(0.5, 2.0, n)


def fitted(y, scores, group, weight, **options):
    model = ff.FairStacksClassifier(**{"estimators": "precomputed", "random_state": 0} | options)
    model.fit(scores, y, sensitive_features=group, sample_weight=weight)
    return model, model.predict_path(scores, sensitive_features=group)


def assert_same_stacks(first, second, **tolerance):
    np.testing.assert_allclose(second[1], first[1], **{"rtol": 1e-6, "atol": 1e-6} | tolerance)
    np.testing.assert_allclose(second[0].points_.fairness, first[0].points_.fairness, atol=1e-9)
    np.testing.assert_allclose(second[0].points_.accuracy, first[0].points_.accuracy, atol=1e-9)


class TestScales:
    """Ridges that nobody gave are in units of the data."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("factor", [1e-6, 1 / 300, 1e6])
    def test_of_the_weights(self, kind, factor):
        y, scores, group, weight = people()
        first = fitted(y, scores, group, weight, **KINDS[kind])
        second = fitted(y, scores, group, factor * weight, **KINDS[kind])
        assert_same_stacks(first, second)
        assert second[0].alpha_ == pytest.approx(factor * first[0].alpha_, rel=1e-9)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (1e6, 5.0), (3.3, -100.0)])
    def test_of_the_scores(self, kind, factor, shift):
        y, scores, group, weight = people(1)
        first = fitted(y, scores, group, weight, **KINDS[kind])
        second = fitted(y, factor * scores + shift, group, weight, **KINDS[kind])
        assert_same_stacks(first, second)
        assert second[0].alpha_ == pytest.approx(factor**2 * first[0].alpha_, rel=1e-9)

    @settings(max_examples=15, deadline=None)
    @given(
        seed=st.integers(0, 10_000),
        groups=st.integers(2, 5),
        weights=st.floats(-6, 6),
        scores=st.floats(-6, 6),
        regression=st.booleans(),
    )
    def test_of_both(self, seed, groups, weights, scores, regression):
        y, H, group, w = people(seed, n=150, groups=groups)
        model = (ff.FairStacksRegressor if regression else ff.FairStacksClassifier)(random_state=0, cv=3)
        first = model.fit(H, y, sensitive_features=group, sample_weight=w).predict_path(H)
        other = 10.0**scores * H + 0.5
        model.fit(other, y, sensitive_features=group, sample_weight=10.0**weights * w)
        np.testing.assert_allclose(model.predict_path(other), first, rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0])
    def test_of_points_with_the_threshold_moved_alike(self, factor):
        y, scores, group, weight = people(2)
        # A power of two near the factor: a score at the threshold stays there.
        a = 2.0 ** np.round(np.log2(factor))
        first = ff.tradeoff_points(y, scores, sensitive_features=group, sample_weight=weight)
        second = ff.tradeoff_points(
            y, a * scores, sensitive_features=group, sample_weight=factor * weight, threshold=a * 0.5
        )
        np.testing.assert_allclose(second.rates, first.rates, rtol=1e-12)
        np.testing.assert_allclose(second.accuracy, first.accuracy, rtol=1e-12)

    def test_weights_that_sum_to_one_are_as_good_as_weights_of_one(self):
        y, scores, group, _ = people(3, n=2000)
        ones = fitted(y, scores, group, np.ones(2000))
        none = fitted(y, scores, group, None)
        shares = fitted(y, scores, group, np.full(2000, 1 / 2000))
        assert_same_stacks(none, ones, rtol=1e-12)
        assert_same_stacks(none, shares)

    @pytest.mark.parametrize("options", [{"alpha": 3.0}, {"alphas": [1.0, 100.0]}, {}])
    def test_a_weight_of_two_is_a_row_twice(self, options):
        y, scores, group, _ = people(4)
        times = np.random.default_rng(0).integers(0, 4, len(y))
        again = np.repeat(np.arange(len(y)), times)
        folds = np.arange(len(y)) % 3
        cv = [[(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(3)] for f in (folds, folds[again])]
        once = fitted(y, scores, group, times, cv=cv[0], **options)
        twice = fitted(y[again], scores[again], group[again], None, cv=cv[1], **options)
        np.testing.assert_allclose(once[1][again], twice[1], atol=1e-9)

    def test_the_number_of_rows_does_not_depend_on_the_scale_of_the_weights(self):
        y, scores, group, weight = people(5)
        names = np.unique(group)

        def kish(w):
            return w.sum() ** 2 / (w**2).sum()

        for weights, count in [(None, len), (weight, kish), (np.arange(300) % 3, np.sum)]:
            given = np.ones(300) if weights is None else weights
            for factor in (1e-6, 1.0, 1e6):
                scaled = None if weights is None else factor * weights
                data = StackStatistics.from_predictions(y, scores, sensitive_features=group, sample_weight=scaled)
                assert data.n_rows == pytest.approx(count(given))
                found = dict(zip(data.sets.names, data.set_rows, strict=True))
                for name in names:
                    assert found[f"sensitive_feature={name}"] == pytest.approx(count(given[group == name]))

    def test_what_is_known_of_weights_is_additive(self):
        parts = [RowWeights(3.0, 5.0, frozenset([1.0, 2.0])), RowWeights(4.0, 16.0, frozenset([4.0]))]
        both = parts[0] + parts[1]
        assert (both.total, both.square, both.of_one_row) == (7.0, 21.0, 1.0)
        assert (both + RowWeights(1.0, 0.5, None)).of_one_row == pytest.approx(21.5 / 8)


class TestNames:
    """Groups and labels may be called anything."""

    @pytest.mark.parametrize(
        ("kind", "groups"), [("log", 2), *product(["signed", "attribute aware", "odds"], [2, 3, 5])]
    )
    def test_of_groups(self, kind, groups):
        y, scores, group, _ = people(6, groups=groups)
        names = np.array(["delta", "alpha", "echo", "bravo", "charlie"])
        first = fitted(y, scores, group, None, **KINDS[kind])
        for renamed in (names[group], groups - group, names[::-1][group]):
            assert_same_stacks(first, fitted(y, scores, renamed, None, **KINDS[kind]))

    def test_of_groups_that_models_learn(self):
        y, scores, group, _ = people(7, groups=3)
        models = [("a", LogisticRegression()), ("b", LogisticRegression(C=0.01))]
        results = []
        for names in (["x", "y", "z"], ["z", "x", "y"]):
            results.append(fitted(y, scores, np.array(names)[group], None, estimators=models, cv=3))
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=0, atol=1e-9)

    @pytest.mark.parametrize("labels", [("a", "b"), (-1, 1), (False, True)])
    def test_of_labels(self, labels):
        y, scores, group, weight = people(8)
        first = fitted(y, scores, group, weight)
        second = fitted(np.array(labels)[y], scores, group, weight)
        np.testing.assert_array_equal(first[1], second[1])
        np.testing.assert_array_equal(np.array(labels)[first[0].predict(scores)], second[0].predict(scores))

    def test_of_two_attributes(self):
        y, scores, group, _ = people(9)
        other = np.random.default_rng(1).choice(["p", "q", "r"], len(y))
        swap = {"p": "z", "q": "b", "r": "a"}
        first = fitted(y, scores, {"sex": group, "race": other}, None)
        second = fitted(y, scores, {"sex": 1 - group, "race": np.array([swap[v] for v in other])}, None)
        assert_same_stacks(first, second)

    def test_of_small_groups_that_are_moved_between_folds(self):
        y, scores, group, _ = people(10, n=120)
        rare = np.repeat(["u", "v"], [114, 6])
        first = fitted(y, scores, {"sex": group, "rare": rare}, None)
        second = fitted(y, scores, {"sex": 1 - group, "rare": np.repeat(["v", "u"], [114, 6])}, None)
        assert_same_stacks(first, second)
