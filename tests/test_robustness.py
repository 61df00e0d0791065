"""Whatever form the numbers come in, however large, small or many they are: the same figures come out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError

from .representations import LABELS, MATRICES, SPARSE, WEIGHTS

SEEDS = st.integers(0, 2**32 - 1)


def problem(seed, n=24, k=3):
    """Return labels, scores, groups and weights in the plainest form; each group has rows of both labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) // 2 % 2)
    group = np.arange(n) % 2
    y[:4] = (0, 0, 1, 1)
    # Sixty-fourths are numbers of every dtype.
    scores = np.clip(rng.integers(0, 40, (n, k)) + 24 * y[:, None], 0, 64) / 64
    return y, scores, group, rng.integers(1, 5, n)


def figures(y, scores, group, weight):
    """Return what every function of labels, scores and groups finds, with one seed."""
    rows = {"sensitive_features": group, "sample_weight": weight}
    seeded = {**rows, "random_state": 0, "include_constant": True}
    points = ff.tradeoff_points(y, scores, **rows)
    interval = ff.fauc_interval(y, scores, n_resamples=50, method="bayesian", **seeded)
    bands = ff.taf_bands(y, scores, n_resamples=50, method="bayesian", grid=[0.2, 0.7, 0.95], **seeded)
    comparison = ff.compare_fauc(y, scores, scores, n_resamples=50, method="bayesian", **seeded)
    honest = ff.honest_taf(y, scores, n_splits=2, n_repeats=1, **seeded)
    return [
        points.fairness,
        points.accuracy,
        ff.fauc_score(y, scores, interpolate="signed", **rows),
        interval.samples,
        [interval.low, interval.high],
        bands.low,
        bands.high,
        comparison.difference,
        honest(np.linspace(0, 1, 9)),
    ]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


class TestForms:
    @settings(max_examples=60, deadline=None)
    @given(
        SEEDS,
        st.sampled_from(sorted(MATRICES | SPARSE)),
        st.sampled_from(sorted(LABELS)),
        st.sampled_from(sorted(LABELS)),
        st.sampled_from(sorted(WEIGHTS)),
    )
    def test_of_everything_in_every_function(self, seed, matrix, label, group_form, weight_form):
        y, scores, group, weight = problem(seed)
        given_forms = (
            LABELS[label](y),
            (MATRICES | SPARSE)[matrix](scores),
            LABELS[group_form](group),
            WEIGHTS[weight_form](weight),
        )
        assert_same(figures(*given_forms), figures(y, scores, group, weight))

    @pytest.mark.parametrize("form", MATRICES)
    def test_of_precomputed_predictions(self, form):
        y, scores, group, weight = problem(1, n=60)
        plain = ff.FairStacksClassifier(random_state=0).fit(scores, y, sensitive_features=group, sample_weight=weight)
        given_form = MATRICES[form](scores)
        model = ff.FairStacksClassifier(random_state=0)
        model.fit(given_form, y, sensitive_features=group, sample_weight=weight)
        assert model.alpha_ == plain.alpha_
        # Single precision is kept, and its sums are rounded where they are multiplied.
        np.testing.assert_allclose(model.path_.weights, plain.path_.weights, rtol=0, atol=1e-6)
        np.testing.assert_allclose(model.predict_path(given_form), plain.predict_path(scores), rtol=0, atol=1e-6)
        np.testing.assert_array_equal(model.predict(given_form), plain.predict(scores))

    @settings(max_examples=30, deadline=None)
    @given(SEEDS, st.sampled_from(sorted(LABELS)), st.sampled_from(sorted(LABELS)), st.sampled_from(sorted(WEIGHTS)))
    def test_of_the_rows_of_a_stack(self, seed, label, group_form, weight_form):
        y, scores, group, weight = problem(seed)
        plain = ff.FairStacksClassifier(alpha=0.5).fit(scores, y, sensitive_features=group, sample_weight=weight)
        model = ff.FairStacksClassifier(alpha=0.5).fit(
            scores,
            LABELS[label](y),
            sensitive_features=LABELS[group_form](group),
            sample_weight=WEIGHTS[weight_form](weight),
        )
        np.testing.assert_allclose(model.path_.weights, plain.path_.weights, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(model.predict(scores) == model.classes_[1], plain.predict(scores) == 1)

    @pytest.mark.parametrize("form", [*MATRICES, *SPARSE])
    def test_of_levels_of_fairness(self, form):
        levels = np.array([[1, 0.5], [0.75, 0.75], [0.25, 1.0]])
        accuracy = [0.5, 0.625, 0.75]
        expected = ff.composite_fauc(levels, accuracy)
        for column in range(2):
            one = (MATRICES | SPARSE)[form](levels[:, [column]])
            if form.startswith("dict"):
                one = next(iter(one.values()))
            assert_same([ff.taf_curve(one, accuracy).fairness], [ff.taf_curve(levels[:, column], accuracy).fairness])
        if form not in SPARSE and not form.startswith(("polars", "pyarrow", "pandas")):
            assert_same([ff.composite_fauc(MATRICES[form](levels), accuracy)], [expected])

    @pytest.mark.parametrize("parameter", ["y_preds", "sensitive_features"])
    def test_a_column_name_twice_is_refused_everywhere(self, parameter):
        y, scores, group, _ = problem(0)
        twice = pd.DataFrame(np.column_stack([group, group]), columns=["sex", "sex"])
        rows = (y, twice if parameter == "y_preds" else scores)
        groups = twice if parameter == "sensitive_features" else group
        for function in (ff.tradeoff_points, ff.fauc_score, ff.fauc_interval, ff.taf_bands, ff.honest_taf):
            with pytest.raises(InvalidInputError, match=rf"{parameter} must have distinct names; got 'sex' twice"):
                function(*rows, sensitive_features=groups)


class TestSizes:
    def test_one_row_a_group(self):
        y, scores, _, _ = problem(2)
        points = ff.tradeoff_points(y, scores, sensitive_features=np.arange(len(y)))
        decided = scores > 0.5
        np.testing.assert_array_equal(points.fairness[:-1], 1.0 - (decided.any(axis=0) & ~decided.all(axis=0)))
        model = ff.FairStacksClassifier(alpha=1.0).fit(scores, y, sensitive_features=np.arange(len(y)))
        spread = np.ptp(model.at(tau=0.0).decision_function(scores))
        assert spread < 1e-9  # no bias between any two rows: one score for all

    def test_thousands_of_groups(self):
        rng = np.random.default_rng(0)
        group = np.repeat(np.arange(2000), 4)
        y, scores = np.tile([0, 1, 0, 1], 2000), rng.random((8000, 3))
        points = ff.tradeoff_points(y, scores, sensitive_features=group, fairness="equalized_odds")
        decided = (scores > 0.5).reshape(2000, 2, 2, 3).transpose(2, 0, 1, 3)  # label, group, row, model
        rates = decided.mean(axis=2)
        np.testing.assert_allclose(points.fairness[:-1], 1 - np.ptp(rates, axis=1).max(axis=0), atol=1e-12)
        assert 0.0 < ff.fauc(points.frontier(True)) <= 1.0

    def test_thousands_of_duplicated_models(self):
        y, scores, group, weight = problem(3, n=48)
        many = np.tile(scores, (1, 2000))
        options = {"sensitive_features": group, "sample_weight": weight}
        one, all_of_them = (ff.tradeoff_points(y, matrix, **options) for matrix in (scores, many))
        for kind in (False, True, "signed"):
            first, second = one.frontier(kind), all_of_them.frontier(kind)
            np.testing.assert_array_equal(first.fairness, second.fairness)
            np.testing.assert_array_equal(first.accuracy, second.accuracy)
        np.testing.assert_array_equal(all_of_them.frontier().support < 3, one.frontier().support < 3)
        assert ff.composite_fauc(all_of_them.fairness, all_of_them.accuracy) == pytest.approx(ff.fauc(one.frontier()))
        interval = ff.fauc_interval(y, many, n_resamples=50, method="bayesian", random_state=0, **options)
        expected = ff.fauc_interval(y, scores, n_resamples=50, method="bayesian", random_state=0, **options)
        np.testing.assert_allclose(interval.samples, expected.samples, atol=1e-12)

    @settings(max_examples=20, deadline=None)
    @given(SEEDS, st.integers(2, 300), st.sampled_from([0.01, 1.0, 100.0]))
    def test_copies_of_a_model_share_its_weight(self, seed, copies, alpha):
        """‖w‖² of a weight in c equal parts is a c-th, so that c copies with c times the ridge are the model itself."""
        y, scores, group, _ = problem(seed)
        one = ff.FairStacksClassifier(alpha=alpha).fit(scores, y, sensitive_features=group)
        many = np.repeat(scores, copies, axis=1)
        model = ff.FairStacksClassifier(alpha=alpha * copies).fit(many, y, sensitive_features=group)
        np.testing.assert_allclose(model.predict_path(many), one.predict_path(scores), atol=1e-9)

    def test_the_smallest_problem(self):
        points = ff.tradeoff_points([0, 1], [[0.2], [0.7]], sensitive_features=["a", "b"])
        np.testing.assert_array_equal(points.fairness, [0.0, 1.0])
        model = ff.FairStacksClassifier(alpha=1.0).fit([[0.2], [0.7]], [0, 1], sensitive_features=["a", "b"])
        assert model.at(tau=0.0).weights_ == pytest.approx([0.0])

    def test_no_ridge_and_more_models_than_rows(self):
        """A perfect fit has a bias that is rounding; any tau must still find its point."""
        rng = np.random.default_rng(11)
        scores, y = rng.random((5, 6)), np.array([1, 1, 1, 0, 1])
        model = ff.FairStacksClassifier(alpha=0.0, fairness="equal_opportunity", n_points=3)
        model.fit(scores, y, sensitive_features=["a", "b", "c", "a", "b"])
        largest = float(np.abs(model.path_.target).max())
        for share in (0.0, 0.1, 0.5, 0.9, 2.0):
            there = model.at(tau=share * largest)
            assert np.isfinite(there.weights_).all()
            np.testing.assert_allclose(there.decision_function(scores) + 0.5, y, atol=1e-9)

    def test_a_constant_model_hides_no_bias_of_the_others(self):
        """A direction without curvature but for a small ridge, beside contrasts of very different sizes."""
        rng = np.random.default_rng(0)
        group, y = np.repeat(np.arange(4), 9), rng.normal(size=36)
        scores = rng.normal(0, 400, (36, 3))
        for g in range(4):
            scores[group == g, 2] += 1.0 - scores[group == g, 2].mean()  # nearly the same mean in every group
        scores[group == 3, 2] += 0.05
        scores = np.column_stack([scores, np.full(36, 0.5)])
        path = ff.FairStacksRegressor(alpha=2e-4, n_points=5).fit(scores, y, sensitive_features=group).path_
        np.testing.assert_allclose(path.score_bias, path.target, atol=1e-9)
        assert path.kkt.max() < 1e-9

    def test_a_stack_of_constant_models_is_certified(self):
        """What centring leaves of them is rounding, which is no reason to doubt the stack."""
        for seed in range(40):
            rng, value = np.random.default_rng(seed), (0.5, 1.0, 0.1)[seed % 3]
            model = ff.FairStacksClassifier(alpha=0.0).fit(
                np.full((17, 2), value),
                np.arange(17) % 2,
                sensitive_features=np.arange(17) // 2 % 2,
                sample_weight=rng.exponential(size=17),
            )
            assert model.path_.kkt.max() == 0.0
            assert np.abs(model.predict_path(np.full((1, 2), value))).max() <= 1.0

    @pytest.mark.parametrize("seed", [58, 81, 113])
    def test_the_logistic_loss_converges_where_its_objective_stops_to_change(self, seed):
        """Found by chance: the last steps were halved for the rounding of the objective until there were none left."""
        y, scores, group, weight = problem(seed, n=40)
        weight = np.where(np.random.default_rng(seed).random(40) < 0.4, 0, weight)
        weight[:4] = 1
        kept = weight > 0
        model = ff.FairStacksClassifier(alpha=1.0, loss="log", n_points=3)
        model.fit(scores[kept], y[kept], sensitive_features=group[kept], sample_weight=weight[kept])
        assert model.path_.kkt.max() < 1e-10


class TestMagnitudes:
    @settings(max_examples=60, deadline=None)
    @given(SEEDS, st.integers(-1000, 1000))
    def test_decisions_do_not_depend_on_the_unit_of_scores(self, seed, power):
        y, scores, group, weight = problem(seed)
        centred = np.ldexp(scores - 0.5, power)  # 2⁻¹⁰⁰⁰ to 2¹⁰⁰⁰, around a threshold of 0
        options = {"sensitive_features": group, "sample_weight": weight}
        found = ff.tradeoff_points(y, centred, threshold=0.0, **options)
        expected = ff.tradeoff_points(y, scores, **options)
        np.testing.assert_array_equal(found.fairness, expected.fairness)
        np.testing.assert_array_equal(found.accuracy, expected.accuracy)

    def test_denormal_scores_are_above_zero(self):
        y, scores, group, _ = problem(0)
        tiny = np.where(scores > 0.5, 5e-324, -5e-324)
        found = ff.tradeoff_points(y, tiny, sensitive_features=group, threshold=0.0)
        np.testing.assert_array_equal(found.accuracy, ff.tradeoff_points(y, scores, sensitive_features=group).accuracy)

    @settings(max_examples=40, deadline=None)
    @given(SEEDS, st.integers(-300, 300))
    def test_regression_does_not_depend_on_the_unit(self, seed, power):
        """R² has no unit, and the weights of a stack without ridge have none."""
        rng = np.random.default_rng(seed)
        _, scores, group, weight = problem(seed)
        y = scores @ [0.5, 0.3, 0.1] + rng.random(len(scores))
        options = {"sensitive_features": group, "sample_weight": weight}
        r2 = [
            ff.tradeoff_points(np.ldexp(y, p), np.ldexp(scores, p), accuracy="r2", **options).accuracy
            for p in (0, power)
        ]
        np.testing.assert_allclose(*r2, rtol=1e-12)
        one, other = (
            ff.FairStacksRegressor(alpha=0.0).fit(np.ldexp(scores, p), np.ldexp(y, p), **options).path_
            for p in (0, power)
        )
        np.testing.assert_allclose(other.weights, one.weights, atol=1e-9)

    @settings(max_examples=40, deadline=None)
    @given(SEEDS, st.floats(-90, 90))
    def test_points_do_not_depend_on_the_unit_of_weights(self, seed, exponent):
        y, scores, group, weight = problem(seed)
        scaled = weight * 10.0**exponent
        for accuracy in ("accuracy", "balanced_accuracy", "brier"):
            options = {"sensitive_features": group, "accuracy": accuracy}
            found = ff.tradeoff_points(y, scores, sample_weight=scaled, **options)
            expected = ff.tradeoff_points(y, scores, sample_weight=weight, **options)
            np.testing.assert_allclose(found.fairness, expected.fairness, atol=1e-12)
            np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-12)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
    def test_any_levels_make_a_curve_and_an_area(self, pairs):
        """Levels may be denormal, or differ in their last bit; areas stay between those of the worst and the best."""
        fairness, accuracy = np.array(pairs).T
        for interpolate in (False, True):
            curve = ff.taf_curve(fairness, accuracy, interpolate=interpolate)
            for weight in (None, ff.StepWeight(0.3), ff.PowerWeight(2.0), lambda x: 1.0 + x):
                area = ff.fauc(curve, weight)
                assert -1e-12 <= area <= accuracy.max() + 1e-12


class TestWeights:
    @settings(max_examples=40, deadline=None)
    @given(SEEDS)
    def test_a_weight_of_zero_is_a_row_that_is_not_there(self, seed):
        y, scores, group, weight = problem(seed, n=40)
        weight = np.where(np.random.default_rng(seed).random(40) < 0.4, 0, weight)
        weight[:4] = 1
        kept = weight > 0
        whole = {"sensitive_features": group, "sample_weight": weight}
        part = {"sensitive_features": group[kept], "sample_weight": weight[kept]}
        for measure in ("demographic_parity", "equalized_odds"):
            found = ff.tradeoff_points(y, scores, fairness=measure, **whole)
            expected = ff.tradeoff_points(y[kept], scores[kept], fairness=measure, **part)
            np.testing.assert_allclose(found.fairness, expected.fairness, atol=1e-12)
            np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-12)
        model = ff.FairStacksClassifier(alpha=1.0, n_points=3)
        weights = [
            model.fit(scores[rows], y[rows], **options).path_.weights
            for rows, options in ((slice(None), whole), (kept, part))
        ]
        np.testing.assert_allclose(*weights, atol=1e-9)

    def test_a_group_of_zero_weights_is_an_empty_group(self):
        y, scores, group, weight = problem(0)
        nothing = np.where(group == 1, 0, weight)
        options = {"sensitive_features": group, "sample_weight": nothing}
        for function in (ff.tradeoff_points, ff.fauc_interval, ff.taf_bands, ff.honest_taf):
            with pytest.raises(GroupError, match="sensitive_feature=1"):
                function(y, scores, **options)
        with pytest.raises(GroupError, match="sensitive_feature=1"):
            ff.FairStacksClassifier(alpha=1.0).fit(scores, y, **options)

    def test_one_weight_may_be_larger_than_all_others_together(self):
        y, scores, group, _ = problem(0)
        heavy = np.ones(len(y))
        heavy[:2] = 1e60  # one row of each group
        found = ff.tradeoff_points(y, scores, sensitive_features=group, sample_weight=heavy)
        alone = scores[:2] > 0.5
        np.testing.assert_allclose(found.fairness[:-1], 1.0 - np.abs(alone[0] * 1.0 - alone[1]), atol=1e-12)
        np.testing.assert_allclose(found.accuracy[:-1], (alone == y[:2, None]).mean(axis=0), atol=1e-12)


class TestMixtures:
    @settings(max_examples=40, deadline=None)
    @given(SEEDS, st.floats(0, 1), st.sampled_from([True, "signed"]))
    def test_a_mixture_keeps_what_its_curve_promises(self, seed, share, kind):
        """Over all models, duplicated and constant ones included, and any level, the end of the curve included."""
        y, scores, group, weight = problem(seed)
        scores = np.column_stack([scores, scores[:, 0], np.zeros(len(y))])
        points = ff.tradeoff_points(y, scores, sensitive_features=group, sample_weight=weight)
        curve = points.frontier(kind)
        level = share * curve.fairness[-1]
        models = [(name, None) for name in points.names]
        mixture = ff.RandomizedMixture.from_curve(
            curve, models, min_fairness=level, secret=b"0123456789abcdef", constants=dict.fromkeys(points.names, 1)
        )
        index = [points.names.index(name) for name in mixture.names]
        assert mixture.probabilities @ points.accuracy[index] == pytest.approx(curve(level), abs=1e-9)
        assert np.abs(mixture.probabilities @ points.bias[index]).max() <= 1.0 - level + 1e-9
        ids = [f"person {i}" for i in range(50)]
        np.testing.assert_array_equal(mixture.draw(ids), [mixture.draw([one])[0] for one in ids])
