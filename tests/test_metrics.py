"""Measures of fairness and accuracy: against Fairlearn, scikit-learn and plain loops."""

from functools import partial

import numpy as np
import pytest
from fairlearn import metrics as fairlearn_metrics
from sklearn import metrics as sklearn_metrics
from sklearn.base import clone

import fairfrontier as ff
from fairfrontier._rows import Rows
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics import MEASURES
from fairfrontier.metrics._sums import cell_sums, keyed_sums

from . import reference

FAIRLEARN = {
    "demographic_parity": fairlearn_metrics.demographic_parity_difference,
    "equal_opportunity": fairlearn_metrics.equal_opportunity_difference,
    "equalized_odds": fairlearn_metrics.equalized_odds_difference,
}


def problem(n_groups, seed, n=400, k=4, weighted=False):
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, 2, n), rng.integers(0, n_groups, n)
    scores = np.clip(0.5 * rng.random((n, k)) + 0.3 * y[:, None] + 0.05 * group[:, None], 0, 1)
    return y, group, scores, rng.random(n) + 0.01 if weighted else None


class TestFairlearn:
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    @pytest.mark.parametrize("n_groups", [2, 3, 4, 5, 6])
    @pytest.mark.parametrize("measure", FAIRLEARN)
    def test_measures_agree(self, measure, n_groups, weighted):
        for seed in range(2):
            y, group, scores, weight = problem(n_groups, seed, weighted=weighted)
            points = ff.tradeoff_points(y, scores, sensitive_features=group, fairness=measure, sample_weight=weight)
            for j, fairness in enumerate(points.fairness[:-1]):
                bias = FAIRLEARN[measure](
                    y, (scores[:, j] > 0.5).astype(int), sensitive_features=group, sample_weight=weight
                )
                assert fairness == pytest.approx(1.0 - bias, abs=1e-12)

    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    @pytest.mark.parametrize("measure", FAIRLEARN)
    def test_its_functions_plug_in(self, measure, weighted):
        y, group, scores, weight = problem(3, 11, weighted=weighted)
        own, theirs = (
            ff.tradeoff_points(y, scores, sensitive_features=group, fairness=fairness, sample_weight=weight)
            for fairness in (measure, FAIRLEARN[measure])
        )
        np.testing.assert_allclose(own.fairness, theirs.fairness, atol=1e-12)
        np.testing.assert_array_equal(own.accuracy, theirs.accuracy)
        assert own.names == theirs.names

    @pytest.mark.parametrize(
        "ratio",
        [
            fairlearn_metrics.demographic_parity_ratio,
            partial(fairlearn_metrics.demographic_parity_ratio, method="between_groups"),
            fairlearn_metrics.selection_rate_ratio,
            fairlearn_metrics.make_derived_metric(metric=fairlearn_metrics.selection_rate, transform="ratio"),
        ],
        ids=["function", "partial", "generated", "derived"],
    )
    def test_its_ratios_are_one_for_a_fair_model(self, ratio):
        y, group, scores, _ = problem(3, 12)
        own, theirs = (
            ff.tradeoff_points(y, scores, sensitive_features=group, fairness=fairness)
            for fairness in ("impact_ratio", ratio)
        )
        np.testing.assert_allclose(own.fairness, theirs.fairness, atol=1e-12)

    @pytest.mark.parametrize(
        ("function", "measure"),
        [
            *((function, measure) for measure, function in FAIRLEARN.items()),
            (fairlearn_metrics.demographic_parity_ratio, "impact_ratio"),
            (fairlearn_metrics.false_positive_rate_difference, "predictive_equality"),
        ],
    )
    def test_its_functions_that_are_measures_of_ours_constrain_stacks_and_have_intervals(self, function, measure):
        y, group, scores, _ = problem(3, 13)
        stacks, intervals = zip(
            *(
                (
                    ff.FairStacksClassifier(fairness=one, random_state=0).fit(scores, y, sensitive_features=group),
                    ff.fauc_interval(y, scores, sensitive_features=group, fairness=one, random_state=0, n_resamples=50),
                )
                for one in (function, measure)
            ),
            strict=True,
        )
        np.testing.assert_array_equal(stacks[0].path_.weights, stacks[1].path_.weights)
        assert stacks[0].select(0.9).selection_.rates == stacks[1].select(0.9).selection_.rates
        np.testing.assert_array_equal(intervals[0].samples, intervals[1].samples)

    def test_of_several_attributes_its_functions_compare_the_cross_product(self, tmp_path):
        y, group, scores, _ = problem(2, 14)
        several = {"a": group, "b": np.arange(len(y)) % 2}
        options = {"fairness": fairlearn_metrics.demographic_parity_difference, "sensitive_mode": "intersectional"}
        stack = ff.FairStacksClassifier(**options, random_state=0).fit(scores, y, sensitive_features=several)
        loaded = ff.load(ff.save(stack, tmp_path / "stack.skops"))
        np.testing.assert_array_equal(loaded.predict(scores), stack.predict(scores))
        separate = clone(stack).set_params(sensitive_mode="separate")
        with pytest.raises(InvalidInputError, match="sensitive_mode must be 'intersectional' with several attributes"):
            separate.fit(scores, y, sensitive_features=several)
        with pytest.raises(InvalidInputError, match="sensitive_mode must be 'intersectional' with several attributes"):
            ff.taf_bands(y, scores, sensitive_features=several, fairness=options["fairness"])

    @pytest.mark.parametrize(
        "function",
        [
            partial(fairlearn_metrics.demographic_parity_difference, method="to_overall"),
            fairlearn_metrics.accuracy_score_difference,
        ],
        ids=["another comparison", "another rate"],
    )
    def test_its_other_functions_constrain_nothing(self, function):
        y, group, scores, _ = problem(3, 13)
        with pytest.raises(InvalidInputError, match="fairness must be a measure's name or pairs of masks"):
            ff.FairStacksClassifier(fairness=function).fit(scores, y, sensitive_features=group)

    def test_its_values_of_one_group_are_no_fairness(self):
        y, group, scores, _ = problem(3, 12)
        least = fairlearn_metrics.accuracy_score_group_min
        with pytest.raises(
            InvalidInputError, match="fairness must compare groups; got Fairlearn's accuracy_score_group"
        ):
            ff.tradeoff_points(y, scores, sensitive_features=group, fairness=least)

    def test_its_functions_see_the_threshold_and_zero_and_one(self):
        seen = []

        def bias(y_true, y_pred, *, sensitive_features):
            seen.append((set(y_true.tolist()), set(y_pred.tolist()), len(sensitive_features)))
            return 0.25

        y, group, scores, _ = problem(2, 5)
        labels = np.where(y == 1, "yes", "no")
        points = ff.tradeoff_points(labels, scores, sensitive_features=group, fairness=bias, threshold=0.3)
        assert seen == [({0, 1}, {0, 1}, 400)] * 4
        np.testing.assert_array_equal(points.fairness, [0.75] * 4 + [1.0])
        assert points.contrasts == ("bias − parity",)


class TestNamedMeasures:
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    @pytest.mark.parametrize(
        "measure", ["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
    )
    def test_against_loops(self, measure, weighted):
        y, group, scores, weight = problem(4, 2, n=120, weighted=weighted)
        points = ff.tradeoff_points(y, scores, sensitive_features=group, fairness=measure, sample_weight=weight)
        for j in range(scores.shape[1]):
            decisions = (scores[:, j] > 0.5).astype(int)
            expected = 1 - reference.bias_of(measure, y, decisions, group, weight)
            assert points.fairness[j] == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize(
        ("alias", "name"),
        [("true_positive_rate_parity", "equal_opportunity"), ("false_positive_rate_parity", "predictive_equality")],
    )
    def test_aliases(self, alias, name):
        y, group, scores, _ = problem(3, 1)
        one, other = (ff.tradeoff_points(y, scores, sensitive_features=group, fairness=m) for m in (alias, name))
        np.testing.assert_array_equal(one.rates, other.rates)

    @pytest.mark.parametrize("measure", [name for name in MEASURES if "ratio" not in name])
    def test_signed_bias_is_the_first_groups_rate_minus_the_seconds(self, measure):
        y, group, scores, _ = problem(3, 4)
        points = ff.tradeoff_points(y, scores, sensitive_features=group, fairness=measure)
        assert points.bias.shape == (5, 6 if measure == "equalized_odds" else 3)
        assert len(points.contrasts) == points.bias.shape[1]
        np.testing.assert_allclose(points.fairness, 1 - np.abs(points.bias).max(axis=1), atol=1e-15)
        if measure == "demographic_parity":
            decided = scores[:, 0] > 0.5
            assert points.bias[0, 0] == pytest.approx(decided[group == 0].mean() - decided[group == 1].mean())
            assert points.contrasts[0] == "sensitive_feature=0 − sensitive_feature=1"

    def test_custom_masks(self):
        y, group, scores, _ = problem(3, 6)
        young = np.arange(400) < 150
        masks = [(group == 0, group != 0), (young & (y == 1), ~young & (y == 1))]
        points = ff.tradeoff_points(y, scores, sensitive_features=None, fairness=masks)
        decided = scores > 0.5
        for i, (one, other) in enumerate(masks):
            np.testing.assert_allclose(points.bias[:-1, i], decided[one].mean(axis=0) - decided[other].mean(axis=0))
        assert points.sets.attributes == ("contrast 0", "contrast 1")

    def test_custom_masks_may_overlap_and_leave_rows_out(self):
        y, decisions = np.array([0, 1, 1, 0, 1]), np.array([1, 0, 1, 1, 0])
        masks = [(np.array([True, True, True, False, False]), [False, False, True, True, False])]
        points = ff.tradeoff_points(y, decisions, sensitive_features=None, fairness=masks)
        assert points.bias[0, 0] == pytest.approx(2 / 3 - 1.0)

    def test_custom_masks_equal_a_named_measure(self):
        y, group, scores, weight = problem(2, 8, weighted=True)
        named, custom = (
            ff.tradeoff_points(y, scores, sensitive_features=group, fairness=f, sample_weight=weight)
            for f in ("demographic_parity", [(group == 0, group == 1)])
        )
        np.testing.assert_allclose(named.bias, custom.bias, atol=1e-12)


class TestAttributes:
    def test_separate_takes_the_worst_and_knows_each(self):
        y, _, scores, _ = problem(2, 9)
        rng = np.random.default_rng(109)
        groups = {"sex": rng.integers(0, 2, 400), "race": rng.integers(0, 3, 400)}
        both = ff.tradeoff_points(y, scores, sensitive_features=groups, fairness="equalized_odds")
        alone = {
            name: ff.tradeoff_points(y, scores, sensitive_features=g, fairness="equalized_odds").fairness
            for name, g in groups.items()
        }
        np.testing.assert_allclose(both.fairness, np.minimum(*alone.values()), atol=1e-15)
        assert list(both.attribute_fairness) == ["sex", "race"]
        for name, fairness in alone.items():
            np.testing.assert_allclose(both.attribute_fairness[name], fairness, atol=1e-15)

    def test_intersectional_is_the_cross_product(self):
        y, _, scores, _ = problem(2, 10)
        rng = np.random.default_rng(110)
        groups = {"sex": rng.integers(0, 2, 400), "race": rng.integers(0, 3, 400)}
        crossed = ff.tradeoff_points(y, scores, sensitive_features=groups, sensitive_mode="intersectional")
        as_tuples = list(zip(groups["sex"].tolist(), groups["race"].tolist(), strict=True))
        tuples = ff.tradeoff_points(y, scores, sensitive_features=as_tuples)
        np.testing.assert_array_equal(crossed.rates, tuples.rates)
        assert crossed.sets.names[0] == "sex & race=0 & 0"
        separate = ff.tradeoff_points(y, scores, sensitive_features=groups)
        assert np.all(crossed.fairness <= separate.fairness + 1e-12)

    def test_combinations_that_do_not_occur_are_no_groups(self):
        groups = {"a": [0, 0, 1, 1], "b": ["x", "y", "y", "y"]}
        points = ff.tradeoff_points(
            [0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=groups, sensitive_mode="intersectional"
        )
        assert points.sets.names == ("a & b=0 & x", "a & b=0 & y", "a & b=1 & y")

    def test_intersectional_with_one_attribute_is_that_attribute(self):
        y, group, scores, _ = problem(3, 12)
        one, other = (
            ff.tradeoff_points(y, scores, sensitive_features=group, sensitive_mode=mode)
            for mode in ("separate", "intersectional")
        )
        np.testing.assert_array_equal(one.rates, other.rates)


class TestAccuracy:
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_classification_measures_agree_with_scikit_learn(self, weighted):
        y, group, scores, weight = problem(3, 13, weighted=weighted)
        expected = {
            "accuracy": lambda s: sklearn_metrics.accuracy_score(y, s > 0.5, sample_weight=weight),
            "balanced_accuracy": lambda s: sklearn_metrics.balanced_accuracy_score(y, s > 0.5, sample_weight=weight),
            "brier": lambda s: 1 - sklearn_metrics.brier_score_loss(y, s, sample_weight=weight),
        }
        for name, function in expected.items():
            points = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=name, sample_weight=weight)
            np.testing.assert_allclose(points.accuracy[:-1], [function(s) for s in scores.T], atol=1e-12)

    def test_targets_that_hardly_differ_are_not_one_value(self):
        y, group = 1000.0 + 1e-8 * (np.arange(200) % 2), np.arange(200) % 3
        options = {"sensitive_features": group, "fairness": "mean_difference", "accuracy": "r2", "threshold": None}
        assert ff.tradeoff_points(y, y[:, None], **options).accuracy[0] == 1.0
        with pytest.raises(ff.exceptions.InvalidInputError, match="y_true has one value only"):
            ff.tradeoff_points(np.full(200, 1000.1), y[:, None], **options)

    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_regression_measures(self, weighted):
        rng = np.random.default_rng(14)
        y, group = rng.normal(10, 3, 300), rng.integers(0, 3, 300)
        scores = y[:, None] + rng.normal(0, [0.1, 1.0, 9.0], (300, 3))
        weight = rng.random(300) if weighted else None
        for name, function in {
            "r2": lambda s: max(0.0, sklearn_metrics.r2_score(y, s, sample_weight=weight)),
            "exp_mse": lambda s: np.exp(-sklearn_metrics.mean_squared_error(y, s, sample_weight=weight)),
        }.items():
            points = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=name, sample_weight=weight)
            np.testing.assert_allclose(points.accuracy[:-1], [function(s) for s in scores.T], atol=1e-12)

    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_functions(self, weighted):
        y, group, scores, weight = problem(2, 15, weighted=weighted)
        own, theirs = (
            ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=a, sample_weight=weight)
            for a in ("accuracy", sklearn_metrics.accuracy_score)
        )
        np.testing.assert_allclose(own.accuracy, theirs.accuracy, atol=1e-12)

    def test_a_function_with_any_keywords_gets_the_weights(self):
        y, group, scores, weight = problem(2, 15, weighted=True)

        def accuracy(y_true, y_pred, **keywords):
            return np.average(y_true == y_pred, weights=keywords["sample_weight"])

        points = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=accuracy, sample_weight=weight)
        own = ff.tradeoff_points(y, scores, sensitive_features=group, sample_weight=weight)
        np.testing.assert_allclose(points.accuracy, own.accuracy, atol=1e-12)


@pytest.mark.parametrize("accuracy", ["accuracy", "balanced_accuracy", "auc", "ks", "payoff:1:-1"])
def test_where_both_decisions_are_worth_the_same_the_constant_model_decides_0(accuracy):
    points = ff.tradeoff_points([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.9], sensitive_features=list("aabb"), accuracy=accuracy)
    assert points.names[-1] == "constant"
    assert not points.rates[-1].any()


@pytest.mark.parametrize("fairness", ["demographic_parity", "masks"])
def test_a_row_set_without_weight_has_no_rate(fairness):
    group = np.array([0, 0, 1, 1])
    measure = [(group == 0, group == 1)] if fairness == "masks" else fairness
    with pytest.raises(GroupError, match="has total weight 0, so its rate is undefined"):
        ff.tradeoff_points(
            [0, 1, 0, 1], [0.2, 0.7, 0.6, 0.9], sensitive_features=group, fairness=measure, sample_weight=[0, 0, 1, 1]
        )


class TestCellSums:
    """The two ways to add, and all layouts of memory, give the same sums."""

    @pytest.mark.parametrize("threshold", [0.5, None])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("n_groups", [2, 20, 40, 500])
    def test_few_and_many_cells_against_a_loop(self, n_groups, threshold, weighted):
        y, group, scores, weight = problem(n_groups, 16, n=3000, k=30, weighted=weighted)
        rows = Rows.validated(y == 1, scores, group, sample_weight=weight)
        partition = rows.cells(labelled=True)
        sums = cell_sums(rows, partition, threshold=threshold).outcome
        outcome = scores if threshold is None else scores > threshold
        outcome = outcome * (1.0 if weight is None else weight[:, None])
        by_hand = [outcome[partition.codes == c].sum(axis=0) for c in range(partition.n_cells)]
        np.testing.assert_allclose(sums, by_hand, rtol=1e-12)

    @pytest.mark.parametrize(("n", "k"), [(1, 3), (7, 1), (100_000, 2), (20, 70_000), (3000, 100)])
    def test_any_shape_and_layout(self, n, k):
        rng = np.random.default_rng(n + k)
        scores = rng.random((n, k), dtype=np.float32)
        codes = rng.integers(0, 3, n)
        rows = Rows.validated(None, scores, codes)
        partition = rows.cells(labelled=False)
        expected = np.array([(scores[partition.codes == c] > 0.5).sum(axis=0) for c in range(partition.n_cells)])
        wide = np.empty((n, 2 * k), dtype=np.float32)
        wide[:, ::2] = scores
        tall = np.empty((2 * n, k), dtype=np.float32)
        tall[::2] = scores
        for layout in (scores, np.asfortranarray(scores), wide[:, ::2], tall[::2], scores[::-1][::-1]):
            sums = cell_sums(rows.with_scores(layout, rows.names), partition, threshold=0.5)
            np.testing.assert_array_equal(sums.outcome, expected)
            np.testing.assert_array_equal(sums.weight, np.bincount(partition.codes))

    def test_thousands_of_groups(self):
        rng = np.random.default_rng(17)
        group = np.concatenate([np.arange(3000), rng.integers(0, 3000, 6000)])
        y, scores = rng.integers(0, 2, 9000), rng.random((9000, 6))
        points = ff.tradeoff_points(y, scores, sensitive_features=group)
        decided = scores > 0.5
        totals = np.bincount(group)
        rates = np.stack([np.bincount(group, decided[:, j]) / totals for j in range(6)])
        np.testing.assert_allclose(points.rates[:-1], rates, atol=1e-15)
        np.testing.assert_allclose(points.fairness[:-1], 1 - (rates.max(axis=1) - rates.min(axis=1)), atol=1e-15)

    def test_sums_of_some_cells_in_the_order_of_all(self):
        group = np.array(["b", "c", "b"])
        part = keyed_sums(
            Rows.validated(np.array([True, False, True]), np.ones((3, 1)), group), labelled=True, threshold=0.5
        )
        keys = [(label, g) for g in "abc" for label in (True, False)]
        assert part.in_order(keys).weight.tolist() == [0, 0, 2, 0, 0, 1]
        assert part.in_order(keys).outcome[:, 0].tolist() == [0, 0, 2, 0, 0, 1]
        assert part.in_order(part.keys) is part.sums

    def test_sums_that_know_their_cells_add_up_whatever_cells_each_part_has(self):
        y, group, scores, weight = problem(4, 19, n=200, weighted=True)
        order = np.argsort(group, kind="stable")  # the parts have other groups

        def summed(rows):
            given = Rows.validated(y[rows] == 1, scores[rows], group[rows], sample_weight=weight[rows])
            return keyed_sums(given, labelled=True, threshold=0.5)

        whole, added = summed(order), summed(order[:70]) + summed(order[70:150]) + summed(order[150:])
        assert set(added.keys) == set(whole.keys)
        place = [added.keys.index(key) for key in whole.keys]
        assert added.rows[place].tolist() == whole.rows.tolist()
        np.testing.assert_allclose(added.square[place], whole.square, rtol=1e-12)
        np.testing.assert_allclose(added.in_order(whole.keys).weight, whole.sums.weight, rtol=1e-12)
        np.testing.assert_allclose(added.in_order(whole.keys).outcome, whole.sums.outcome, rtol=1e-12)

    def test_sums_of_parts_add_up(self):
        y, group, scores, weight = problem(3, 18, n=1000, weighted=True)
        rows = Rows.validated(y == 1, scores, group, sample_weight=weight)
        whole = cell_sums(rows, rows.cells(labelled=True), threshold=0.5)
        parts = 0.0
        for part in (rows.take(np.arange(300)), rows.take(np.arange(300, 1000))):
            parts = parts + cell_sums(part, part.cells(labelled=True), threshold=0.5).outcome
        np.testing.assert_allclose(parts, whole.outcome, rtol=1e-12)
