"""The achievable frontier against linear programs, closed forms and simulated populations."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression, Ridge

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.limit._posteriors import exclusive_columns

LEVELS = np.array([0.0, 0.7, 0.8, 0.9, 0.95, 1.0])
QUICK = {"estimator": LogisticRegression(), "cv": 2}


def row_sets(fairness, groups):
    """Return (group, label or None) of each row set and the blocks that are compared."""
    labels = {"demographic_parity": [None], "equal_opportunity": [1], "predictive_equality": [0]}.get(fairness, [1, 0])
    sets = [(g, label) for label in labels for g in range(groups)]
    return sets, [range(i * groups, (i + 1) * groups) for i in range(len(labels))]


def lp_value(eta, member, weight, blocks, slack):
    """Return the best accuracy by the obvious program: a probability per row, a constraint per pair of row sets."""
    load = weight[:, None] * member / (weight @ member)
    pairs = [load[:, s] - load[:, t] for block in blocks for s in block for t in block if s != t]
    found = linprog(
        -weight * (2 * eta - 1),
        A_ub=np.array(pairs),
        b_ub=np.full(len(pairs), slack),
        bounds=(0.0, 1.0),
        method="highs",
    )
    return weight @ (1 - eta) - found.fun


def cells_table(seed, groups, n=240, n_cells=6):
    """Return rows of a few cells with groups, labels and weights, every cell having all of them."""
    rng = np.random.default_rng(seed)
    cell, a = rng.integers(0, n_cells, n), rng.integers(0, groups, n)
    y = (rng.random(n) < rng.random((n_cells, groups))[cell, a]).astype(int)
    return cell, a, y, rng.integers(1, 5, n).astype(float)


def frequencies(cell, a, y, weight, fairness, groups, aware=False):
    """Return P(y = 1) and P(row set) of each row as the weighted shares in its cell (and group)."""
    known = cell * groups + a if aware else cell
    size = np.bincount(known, weight)

    def share(inside):
        return (np.bincount(known, weight * inside, minlength=len(size)) / size)[known]

    sets, _ = row_sets(fairness, groups)
    columns = [share((a == g) & ((label is None) | (y == (label or 0)))) for g, label in sets]
    return share(y == 1), np.column_stack(columns)


class TestProgram:
    @pytest.mark.parametrize("groups", [2, 3])
    @pytest.mark.parametrize("aware", [False, True])
    @pytest.mark.parametrize(
        "fairness", ["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
    )
    def test_a_few_cells_have_the_optimum_of_the_linear_program(self, fairness, groups, aware):
        cell, a, y, weight = cells_table(groups, groups)
        eta, member = frequencies(cell, a, y, weight, fairness, groups, aware)
        found = ff.achievable_frontier(
            None,
            y,
            sensitive_features=a,
            fairness=fairness,
            track="aware" if aware else "blind",
            probabilities=(eta, member),
            sample_weight=weight,
            grid=LEVELS,
        )
        _, blocks = row_sets(fairness, groups)
        expected = [lp_value(eta, member, weight / weight.sum(), blocks, 1 - f) for f in LEVELS]
        np.testing.assert_allclose(found.plugin, expected, atol=1e-6)
        # The posteriors are the shares in the cells themselves: on the labels the rules do as promised.
        np.testing.assert_allclose(found.accuracy, expected, atol=1e-6)

    @pytest.mark.parametrize("groups", [2, 3])
    def test_ratios_of_rates_have_the_optimum_of_their_program(self, groups):
        cell, a, y, weight = cells_table(7, groups)
        eta, member = frequencies(cell, a, y, weight, "demographic_parity", groups)
        found = curve(y, a, (eta, member), fairness="impact_ratio", sample_weight=weight)
        share = weight / weight.sum()
        load = share[:, None] * member / (share @ member)
        expected = []
        for f in LEVELS:
            pairs = [f * load[:, t] - load[:, s] for s in range(groups) for t in range(groups) if s != t]
            best = linprog(-share * (2 * eta - 1), A_ub=np.array(pairs), b_ub=np.zeros(len(pairs)), bounds=(0.0, 1.0))
            expected.append(share @ (1 - eta) - best.fun)
        np.testing.assert_allclose(found.plugin, expected, atol=1e-6)
        np.testing.assert_allclose(found.accuracy, expected, atol=1e-6)

    def test_two_uniform_groups_have_their_closed_form(self):
        n = 1000
        t = (np.arange(n) + 0.5) / n
        eta, a = np.concatenate([0.8 * t, 0.2 + 0.8 * t]), np.repeat([0, 1], n)
        y = np.tile([0, 1], n)
        found = ff.achievable_frontier(
            None, y, sensitive_features=a, track="aware", probabilities=(eta, np.eye(2)[a]), n_points=21
        )
        # Thresholds .4 + .4d and .6 − .4d in groups with rates that differ by d, until both are at 1/2.
        d = np.minimum(1 - found.grid, 0.25)
        first, second = 0.4 + 0.4 * d, 0.6 - 0.4 * d
        gain = (0.8**2 - first**2 - (0.8 - first)) / 0.8 + (1.0 - second**2 - (1.0 - second)) / 0.8
        expected = 0.5 + gain / 2
        np.testing.assert_allclose(found.plugin, expected, atol=1e-3)
        assert found.unconstrained == pytest.approx(0.75, abs=2e-3)

    def test_who_knows_the_attribute_does_no_worse(self):
        cell, a, y, weight = cells_table(4, 2)
        blind, aware = (
            curve(y, a, frequencies(cell, a, y, weight, "equalized_odds", 2, aware), fairness="equalized_odds",
                  sample_weight=weight).plugin
            for aware in (False, True)
        )  # fmt: skip
        assert np.all(aware >= blind - 1e-6)
        assert np.any(aware > blind + 0.01)

    def test_several_attributes_are_all_fair(self):
        rng = np.random.default_rng(1)
        n = 400
        cell, sex, race = rng.integers(0, 8, n), rng.integers(0, 2, n), rng.integers(0, 3, n)
        eta, sets = rng.random(8)[cell], np.hstack([rng.dirichlet([1, 1], 8)[cell], rng.dirichlet([1, 1, 1], 8)[cell]])
        found = ff.achievable_frontier(
            None,
            rng.integers(0, 2, n),
            sensitive_features={"sex": sex, "race": race},
            probabilities=(eta, sets),
            grid=[0.9],
        )
        expected = lp_value(eta, sets, np.full(n, 1 / n), [range(2), range(2, 5)], 0.1)
        assert found.plugin[0] == pytest.approx(expected, abs=1e-6)


def known_case(seed=0, n=500, fairness="demographic_parity"):
    cell, a, y, weight = cells_table(seed, 2, n)
    rng = np.random.default_rng(seed)
    eta, p = rng.random(6)[cell], rng.random(6)[cell]
    return y, a, weight, (eta, np.column_stack([1 - p, p]))


def curve(y, a, probabilities, **options):
    return ff.achievable_frontier(None, y, sensitive_features=a, probabilities=probabilities, grid=LEVELS, **options)


def assert_equal(first, second):
    for part in ("accuracy", "low", "high", "plugin"):
        np.testing.assert_allclose(getattr(first, part), getattr(second, part), atol=1e-6)


class TestInvariance:
    def test_order_of_rows(self):
        y, a, weight, (eta, p) = known_case()
        order = np.random.default_rng(1).permutation(len(y))
        first = curve(y, a, (eta, p), sample_weight=weight)
        assert_equal(first, curve(y[order], a[order], (eta[order], p[order]), sample_weight=weight[order]))

    def test_names_of_groups_and_classes(self):
        y, a, _, (eta, p) = known_case()
        named = curve(np.array(["no", "yes"])[y], np.array(["z", "b"])[a], (eta, p[:, ::-1]))
        assert_equal(curve(y, a, (eta, p)), named)

    def test_exchange_of_the_classes(self):
        y, a, _, (eta, p) = known_case()
        assert_equal(curve(y, a, (eta, p)), curve(1 - y, a, (1 - eta, p)))

    def test_scale_of_the_weights(self):
        y, a, weight, known = known_case()
        assert_equal(curve(y, a, known, sample_weight=weight), curve(y, a, known, sample_weight=1000 * weight))

    def test_a_weight_is_a_number_of_equal_rows(self):
        y, a, weight, (eta, p) = known_case()
        times = np.repeat(np.arange(len(y)), weight.astype(int))
        weighted, repeated = (
            curve(y, a, (eta, p), sample_weight=weight),
            curve(y[times], a[times], (eta[times], p[times])),
        )
        np.testing.assert_allclose(weighted.accuracy, repeated.accuracy, atol=1e-6)
        np.testing.assert_allclose(weighted.plugin, repeated.plugin, atol=1e-6)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    n = 800
    sex, x = rng.integers(0, 2, n), rng.normal(size=(n, 3))
    x[:, 0] += sex
    y = rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1]))
    return x, y, sex


class TestCurve:
    @pytest.mark.parametrize("fairness", ["demographic_parity", "equal_opportunity", "equalized_odds"])
    @pytest.mark.parametrize("track", ["blind", "aware"])
    def test_it_falls_and_stays_above_the_constant(self, fitted, fairness, track):
        x, y, sex = fitted
        found = ff.achievable_frontier(x, y, sensitive_features=sex, fairness=fairness, track=track, **QUICK)
        assert (found.grid[0], found.grid[-1]) == (0.0, 1.0)
        assert np.all(np.diff(found.accuracy) <= 0)
        assert np.all(found.accuracy >= found.constant)
        assert np.all((found.low <= found.accuracy) & (found.accuracy <= found.high))
        assert np.all(np.diff(found.low) <= 0)
        assert np.all(np.diff(found.high) <= 1e-12)
        assert np.all(found.unlearned >= 0)

    def test_it_is_near_the_known_posteriors(self, fitted):
        x, y, sex = fitted
        eta = 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1]))
        odds = np.exp(x[:, 0] - 0.5)
        known = eta, np.column_stack([1 / (1 + odds), odds / (1 + odds)])
        learned = ff.achievable_frontier(x, y, sensitive_features=sex, grid=LEVELS, **QUICK)
        # Both are measured on the same labels; a logistic regression is the true model of both posteriors.
        np.testing.assert_allclose(learned.attained, curve(y, sex, known).attained, atol=0.02)

    def test_the_default_ensemble_learns_what_is_not_linear(self):
        rng = np.random.default_rng(0)
        x, a = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
        y = (x[:, 0] * x[:, 1] > 0) ^ (rng.random(500) < 0.1)
        found = ff.achievable_frontier(x, y, sensitive_features=a, cv=2, grid=[0.9])
        assert 0.75 < found.accuracy[0] < 0.95

    def test_indicators_of_one_feature_are_seen_as_one(self):
        rng = np.random.default_rng(0)
        first, second = rng.integers(0, 4, 300), rng.integers(0, 3, 300)
        flags = rng.random((300, 2)) < 0.9  # mostly both: not the categories of one feature
        Z = np.column_stack([np.eye(4)[first], rng.normal(size=300), np.eye(3)[second], flags]).astype(float)
        assert [run.tolist() for run in exclusive_columns(Z)] == [[0, 1, 2, 3], [5, 6, 7]]

    def test_the_default_ensemble_takes_more_categories_than_its_trees(self):
        # 300 indicators of one feature: boosted trees take at most 255 categories.
        rng = np.random.default_rng(0)
        category, a = rng.permutation(1200) % 300, rng.integers(0, 2, 1200)
        y = (category % 2 == 0) ^ (rng.random(1200) < 0.1)
        found = ff.achievable_frontier(np.eye(300)[category], y, sensitive_features=a, cv=2, grid=[0.9])
        assert found.accuracy[0] > found.constant

    def test_numbers_and_arrays_are_evaluated(self, fitted):
        x, y, sex = fitted
        found = ff.achievable_frontier(x, y, sensitive_features=sex, n_points=11, **QUICK)
        assert found(1.0) == found.accuracy[-1]
        np.testing.assert_array_equal(found(found.grid), found.accuracy)
        with pytest.raises(InvalidInputError, match=r"fairness must be in \[0, 1\]"):
            found(1.5)

    def test_one_seed_gives_one_curve(self, fitted):
        x, y, sex = fitted
        first, second = (
            ff.achievable_frontier(x, y, sensitive_features=sex, grid=LEVELS, random_state=3, **QUICK) for _ in range(2)
        )
        np.testing.assert_array_equal(first.accuracy, second.accuracy)
        np.testing.assert_array_equal(first.high, second.high)

    def test_tables_of_categories_with_missing_numbers(self, fitted):
        pd = pytest.importorskip("pandas")
        x, y, sex = fitted
        table = pd.DataFrame({"a": np.where(x[:, 0] > 2, np.nan, x[:, 0]), "b": np.where(x[:, 1] > 0, "up", "down")})
        found = ff.achievable_frontier(table, pd.Series(y), sensitive_features=pd.Series(sex, name="sex"), **QUICK)
        assert found(0.0) > found.constant + 0.1

    def test_the_band_covers_the_truth(self):
        # A population of six cells, whose frontier is a linear program.
        rng = np.random.default_rng(3)
        share, eta, p = rng.dirichlet(np.full(6, 3.0)), rng.random(6), rng.random(6)
        member = np.column_stack([1 - p, p])
        levels = np.array([0.8, 0.9, 1.0])
        truth = np.array([lp_value(eta, member, share, [range(2)], 1 - f) for f in levels])
        inside = []
        for _ in range(60):
            cell = rng.choice(6, 800, p=share)
            a, y = rng.random(800) < p[cell], rng.random(800) < eta[cell]
            known = eta[cell], member[cell]
            band = ff.achievable_frontier(None, y, sensitive_features=a, probabilities=known, grid=levels)
            inside.append(np.all((band.low <= truth) & (truth <= band.high)))
        assert 0.88 <= np.mean(inside) < 1.0


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 1200
    sex, x = rng.integers(0, 2, n), rng.normal(size=(n, 3))
    y = rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1] - 2 * sex + 1))
    odds = {"weak": x[:, 1] - 0.3, "good": x[:, 0], "biased": x[:, 0] + 2 * sex - 1}
    return x, y, sex, {name: 1 / (1 + np.exp(-values)) for name, values in odds.items()}


@pytest.fixture(scope="module")
def gap(data):
    x, y, sex, scores = data
    return ff.frontier_gap(x, y, scores, sensitive_features=sex, model="weak", **QUICK)


class TestGap:
    def test_the_losses_add_up(self, gap):
        np.testing.assert_allclose(gap.accuracy[0] + np.cumsum(gap.loss), np.append(gap.accuracy[1:], 1.0))
        assert np.all((gap.loss_low <= gap.loss) & (gap.loss <= gap.loss_high))
        assert len(gap.rungs) == len(gap.steps) == 6

    def test_your_own_rungs_ascend(self, gap):
        assert np.all(gap.loss[:2] >= -1e-9)

    def test_fairness_costs_where_the_label_depends_on_the_attribute(self, gap):
        assert gap.loss[list(gap.steps).index("fairness")] > 0.01
        assert gap.accuracy[5] > gap.accuracy[3]

    def test_a_fair_model_is_counted_as_it_is(self, data):
        x, y, sex, scores = data
        points = ff.tradeoff_points(y, scores, sensitive_features=sex)
        level = float(points.fairness[0]) - 1e-6
        found = ff.frontier_gap(
            x, y, scores, sensitive_features=sex, model="weak", min_fairness=level, stack=None, **QUICK
        )
        assert found.accuracy[0] == pytest.approx(points.accuracy[0])
        assert found.accuracy[1] == pytest.approx(points.frontier("signed")(level), abs=1e-6)
        assert found.accuracy[2] == pytest.approx(found.accuracy[1], abs=1e-12)

    def test_an_unfair_model_is_mixed_with_the_constant(self, data):
        x, y, sex, scores = data
        points = ff.tradeoff_points(y, {"biased": scores["biased"]}, sensitive_features=sex)
        found = ff.frontier_gap(x, y, scores, sensitive_features=sex, model="biased", stack=None, **QUICK)
        share = 0.05 / (1 - points.fairness[0])
        assert found.accuracy[0] == pytest.approx(share * points.accuracy[0] + (1 - share) * points.accuracy[1])

    def test_ratios_are_taken_apart_too(self, data):
        x, y, sex, scores = data
        found = ff.frontier_gap(
            x, y, scores, sensitive_features=sex, fairness="impact_ratio", min_fairness=0.8, **QUICK
        )
        assert found.accuracy[0] + found.loss.sum() == pytest.approx(1.0)
        assert np.all(found.loss[:2] >= -1e-9)

    def test_without_a_name_the_best_model_is_yours(self, data):
        x, y, sex, scores = data
        best = ff.frontier_gap(x, y, scores, sensitive_features=sex, stack=None, **QUICK)
        each = [
            ff.frontier_gap(x, y, scores, sensitive_features=sex, model=name, stack=None, **QUICK).accuracy[0]
            for name in scores
        ]
        assert best.accuracy[0] == max(each)

    def test_it_speaks(self, gap):
        assert gap.sentence().startswith("At fairness .95 you have .")
        assert "is attainable with these features; knowing the attribute would add" in str(gap)
        assert str(gap).count("\n") == 7

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"model": "wek"}, "did you mean 'weak'"),
            ({"min_fairness": 1.2}, r"min_fairness must be in \[0, 1\]"),
            ({"stack": "yes"}, "stack must be one of 'auto'"),
            ({"stack": np.zeros((3, 2))}, "stack must have as many rows as y, 1200; got 3"),
            ({"threshold": None}, "threshold must be a number"),
        ],
    )
    def test_bad_input(self, data, changed, message):
        x, y, sex, scores = data
        with pytest.raises(InvalidInputError, match=message):
            ff.frontier_gap(x, y, scores, sensitive_features=sex, **changed, **QUICK)


class Counting(LogisticRegression):
    """A logistic regression that keeps the number of rows of each fit."""

    rows: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.rows.append(len(X))
        return super().fit(X, y, sample_weight)


class TestLearning:
    @staticmethod
    def law(a, b, c, error=1e-4):
        rows = np.array([100, 200, 400, 800, 1600])
        accuracy = a - b * rows.astype(float) ** -c
        low, high = accuracy - error, accuracy + error
        return ff.LearningCurve(rows, accuracy, low, high, error**2 * np.eye(5), 0.9)

    @pytest.mark.parametrize(("b", "c"), [(0.5, 0.5), (2.0, 0.9), (0.1, 0.3)])
    def test_a_power_law_is_found(self, b, c):
        ahead = self.law(0.85, b, c).project(20_000)
        truth = 0.85 - b * 20_000.0**-c
        assert ahead.accuracy == pytest.approx(truth, abs=0.003)
        assert ahead.low <= truth <= ahead.high
        assert ahead.gain == pytest.approx(b * 1600.0**-c - b * 20_000.0**-c, abs=0.003)

    def test_a_level_curve_stays_level(self):
        ahead = self.law(0.8, 0.0, 1.0).project(10**6)
        assert ahead.accuracy == pytest.approx(0.8, abs=1e-3)
        assert ahead.gain == pytest.approx(0.0, abs=1e-3)
        assert ahead.gain_low >= 0.0

    def test_the_interval_covers_what_noise_does_to_the_law(self):
        rng = np.random.default_rng(0)
        exact, error, inside = self.law(0.85, 0.5, 0.5), 0.003, 0
        truth = 0.85 - 0.5 * 20_000.0**-0.5
        for _ in range(100):
            accuracy = exact.accuracy + error * rng.standard_normal(5)
            seen = ff.LearningCurve(exact.rows, accuracy, accuracy, accuracy, error**2 * np.eye(5), 0.9)
            ahead = seen.project(20_000)
            inside += ahead.low <= truth <= ahead.high
        assert inside >= 85

    def test_more_rows_are_projected_from_subsamples(self):
        rng = np.random.default_rng(0)
        sex, x = rng.integers(0, 2, 1000), rng.normal(size=(1000, 8))
        y = rng.random(1000) < 1 / (1 + np.exp(-x.sum(axis=1)))
        found = ff.learning_frontier(
            x, y, sensitive_features=sex, rows=[50, 100, 400], estimators=[("lr", LogisticRegression())], **QUICK
        )
        assert found.achievable.rows.tolist() == [50, 100, 400]
        assert found.achievable.accuracy[0] < found.achievable.accuracy[-1]
        assert found.models.accuracy[-1] == pytest.approx(found.achievable.accuracy[-1], abs=0.05)
        assert "twice the data would add" in repr(found)
        assert found.project(800).gain >= 0

    def test_models_are_fitted_to_the_numbers_of_rows_that_the_curve_shows(self):
        rng = np.random.default_rng(0)
        sex, x = rng.integers(0, 2, 1000), rng.normal(size=(1000, 2))
        y = rng.random(1000) < 1 / (1 + np.exp(-x.sum(axis=1)))
        Counting.rows.clear()
        named = [("counting", Counting())]
        ff.learning_frontier(x, y, sensitive_features=sex, rows=[60, 500, 750], estimators=named, n_repeats=2,
                             estimator=LogisticRegression(), cv=5)  # fmt: skip
        # Two subsamples of 60 rows with two halves each, one of 500 with two, and two of 750 with five folds each.
        expected = [60] * 4 + [500] * 2 + [750] * 10
        np.testing.assert_allclose(Counting.rows, expected, atol=5)

    @pytest.mark.parametrize("rows", [[100, 200], [100, 200, 900], [0.1, 0.2, 0.3], [-1, 100, 200]])
    def test_bad_numbers_of_rows(self, rows):
        y, a, _, _ = known_case()
        with pytest.raises(InvalidInputError, match="rows must be at least three whole numbers up to 250"):
            ff.learning_frontier(np.zeros((500, 1)), y, sensitive_features=a, rows=rows, **QUICK)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"cv": 1}, "cv must be at least"),
            ({"n_repeats": 1}, "n_repeats must be .*two subsamples"),
            ({"track": "both"}, "track must be one of"),
            ({"estimators": []}, "estimators must be a non-empty list"),
        ],
    )
    def test_bad_options(self, changed, message):
        y, a, _, _ = known_case()
        given = {"rows": [50, 100, 200], **QUICK, **changed}
        with pytest.raises(InvalidInputError, match=message):
            ff.learning_frontier(np.zeros((500, 1)), y, sensitive_features=a, **given)


class TestBadInput:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"track": "seen"}, "track must be one of 'aware', 'blind'"),
            ({"fairness": "parity"}, "fairness must be one of"),
            ({"fairness": [([True], [False])]}, "fairness must be one of .*got list"),
            ({"confidence": 1.0}, r"confidence must be in \(0, 1\)"),
            ({"grid": [0.5, 1.1]}, r"grid must hold levels of fairness in \[0, 1\]"),
            ({"n_points": 1}, "n_points must be at least"),
            ({"cv": 1}, "cv must be at least"),
            ({"X": np.zeros(500)}, r"X must be a table of shape \(n, p\); got shape \(500,\)"),
            ({"X": np.zeros((3, 2))}, "X must have as many rows as y, 500; got 3"),
            ({"y": np.arange(500.0)}, "regression has no achievable frontier"),
            ({"y": np.zeros(500)}, "y must have two classes; got only 0"),
            ({"y": None}, "y must be given"),
            ({"estimator": Ridge()}, "estimator must be a classifier with predict_proba"),
            ({"estimator": []}, "estimator must hold at least one classifier"),
            ({"probabilities": np.ones(500)}, "probabilities must be a pair"),
            ({"probabilities": (np.ones(500), np.ones((500, 3)))}, r"shapes \(500,\) and \(500, 2\)"),
            ({"probabilities": (2 * np.ones(500), np.ones((500, 2)))}, r"probabilities\[0\] must be in \[0, 1\]"),
        ],
    )
    def test_it_is_refused(self, changed, message):
        y, a, _, _ = known_case()
        given = {"X": np.zeros((500, 1)), "y": y, "sensitive_features": a, "cv": 2, **changed}
        with pytest.raises(InvalidInputError, match=message):
            ff.achievable_frontier(given.pop("X"), given.pop("y"), **given)

    def test_a_group_without_a_label(self):
        y, a = np.tile([0, 1], 50), np.repeat([0, 1], 50)
        y[a == 1] = 0
        with pytest.raises(GroupError, match="row set"):
            ff.achievable_frontier(np.zeros((100, 1)), y, sensitive_features=a, fairness="equal_opportunity")
        y[-1] = 1
        with pytest.raises(GroupError, match="at least two rows with each label in each group"):
            ff.achievable_frontier(np.zeros((100, 1)), y, sensitive_features=a)
