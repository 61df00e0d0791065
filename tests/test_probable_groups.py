"""Groups that are missing, only probable, or a number."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError


def problem(seed, n=300, g=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(g), n)
    y, scores = rng.integers(0, 2, n), rng.random((n, 4))
    return y, scores, p, rng.integers(1, 4, n).astype(float)


class TestWeighted:
    @pytest.mark.parametrize("measure", ["demographic_parity", "equalized_odds", "impact_ratio"])
    def test_rates_are_weighted_means(self, measure):
        for seed in range(30):
            y, scores, p, weight = problem(seed, g=2 + seed % 4)
            points = ff.tradeoff_points(
                y, scores, sensitive_features=ff.ProbableGroups(p), fairness=measure, sample_weight=weight
            )
            for j in range(scores.shape[1]):
                worst = 1.0
                for condition in [None] if measure != "equalized_odds" else [0, 1]:
                    rows = np.ones(len(y), bool) if condition is None else y == condition
                    of_row = weight[rows, None] * p[rows]
                    rates = (scores[rows, j] > 0.5) @ of_row / of_row.sum(axis=0)
                    one = rates.min() / rates.max() if measure == "impact_ratio" else 1 - np.ptp(rates)
                    worst = min(worst, one)
                assert points.fairness[j] == pytest.approx(worst, abs=1e-12)
            plain = ff.tradeoff_points(y, scores, sensitive_features=p.argmax(axis=1), sample_weight=weight)
            np.testing.assert_allclose(points.accuracy, plain.accuracy, atol=1e-12)

    def test_what_is_independent_given_the_group_is_restored(self):
        rng = np.random.default_rng(0)
        n = 200_000
        group = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        signal = rng.normal(group, 1.0)
        density = np.exp(-((signal[:, None] - np.arange(3)) ** 2) / 2) * [0.5, 0.3, 0.2]
        p = density / density.sum(axis=1, keepdims=True)
        scores = rng.random(n) + np.array([0.0, 0.1, 0.25])[group]
        y = rng.integers(0, 2, n)
        rates = {}
        for given in ("probabilities", "group"):
            groups = ff.ProbableGroups(p, independent_given=given)
            np.testing.assert_allclose(groups.degrees().sum(axis=1), 1.0)
            points = ff.tradeoff_points(y, scores, sensitive_features=groups, include_constant=False)
            rates[given] = points.rates[0]
            assert points.accuracy[0] == pytest.approx(np.mean((scores > 0.5) == y))
        true = np.array([(scores[group == g] > 0.5).mean() for g in range(3)])
        np.testing.assert_allclose(rates["group"], true, atol=0.02)
        assert np.ptp(rates["probabilities"]) < 0.7 * np.ptp(true)

    def test_probabilities_that_tell_nothing_restore_nothing(self):
        with pytest.raises(GroupError, match="tell too little"):
            ff.ProbableGroups(np.full((10, 2), 0.5), independent_given="group").degrees()

    def test_certain_probabilities_are_plain_groups(self):
        y, scores, p, _ = problem(0)
        group = p.argmax(axis=1)
        certain = ff.ProbableGroups(np.eye(3)[group], groups=["0", "1", "2"], name="sensitive_feature")
        one, other = (ff.tradeoff_points(y, scores, sensitive_features=groups) for groups in (certain, group))
        np.testing.assert_allclose(one.rates, other.rates)
        assert one.contrasts == other.contrasts
        np.testing.assert_array_equal(certain.likely().astype(int), group)
        options = {"n_resamples": 60, "random_state": 0}
        intervals = [ff.fauc_interval(y, scores, sensitive_features=groups, **options) for groups in (certain, group)]
        assert intervals[0].low == pytest.approx(intervals[1].low)

    def test_the_rows_of_one_person_are_resampled_together(self):
        y, scores, _, _ = problem(1, n=400)
        half = ff.ProbableGroups(np.full((400, 2), 0.5))
        # Everybody is in both groups to the same degree: rates agree in every resample that keeps persons together.
        interval = ff.fauc_interval(y, scores, sensitive_features=half, n_resamples=60, random_state=0)
        alike = ff.tradeoff_points(y, scores, sensitive_features=half)
        np.testing.assert_allclose(alike.fairness, 1.0)
        assert interval.samples.min() > 0.4
        bands = ff.taf_bands(y, scores, sensitive_features=half, n_resamples=60, random_state=0)
        assert bands.lower.fairness[-1] == pytest.approx(1.0)
        honest = ff.honest_taf(y, scores, sensitive_features=half, random_state=0)
        assert honest.fairness[-1] == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("probabilities", "options", "message"),
        [
            ([[0.5, 0.6], [0.5, 0.5]], {}, "sum to 1"),
            ([0.5, 0.6], {}, "one column per group"),
            ([[0.5, 0.5], [np.nan, 1.0]], {}, "finite|NaN"),
            ([[0.5, 0.5]], {"groups": ["a", "a"]}, "each once"),
        ],
    )
    def test_errors_say_what_to_do(self, probabilities, options, message):
        with pytest.raises(InvalidInputError, match=message):
            ff.ProbableGroups(probabilities, **options)

    def test_lengths_must_agree(self):
        with pytest.raises(InvalidInputError, match="as many rows"):
            ff.tradeoff_points([0, 1], [0, 1], sensitive_features=ff.ProbableGroups([[0.5, 0.5]]))

    @pytest.mark.parametrize("measure", ["accuracy", "brier", "auc", "f1", "row_payoff", "recall_at"])
    def test_accuracy_is_that_of_rows_and_resamples_keep_their_amounts(self, measure):
        y, scores, p, weight = problem(4)
        gain = np.random.default_rng(4).normal(size=len(y))
        accuracy = {"row_payoff": ff.row_payoff(gain), "recall_at": ff.recall_at(0.2)}.get(measure, measure)
        options = {"accuracy": accuracy, "sample_weight": weight}
        groups = ff.ProbableGroups(p)
        points = ff.tradeoff_points(y, scores, sensitive_features=groups, **options)
        plain = ff.tradeoff_points(y, scores, sensitive_features=p.argmax(axis=1), **options)
        np.testing.assert_allclose(points.accuracy, plain.accuracy, atol=1e-12)
        interval = ff.fauc_interval(y, scores, sensitive_features=groups, n_resamples=60, random_state=0, **options)
        assert interval.estimate == pytest.approx(ff.fauc(points.frontier()))
        assert interval.samples.std() > 0
        honest = ff.honest_taf(y, scores, sensitive_features=groups, random_state=0, **options)
        assert honest.accuracy.max() == pytest.approx(points.accuracy.max(), abs=0.1)

    def test_amounts_are_of_rows_where_degrees_are_below_zero(self):
        y, scores, p, _ = problem(4, g=2)
        options = {"accuracy": ff.row_payoff(np.random.default_rng(4).normal(size=len(y)))}
        groups = ff.ProbableGroups(p, independent_given="group")
        assert groups.degrees().min() < 0
        points = ff.tradeoff_points(y, scores, sensitive_features=groups, **options)
        plain = ff.tradeoff_points(y, scores, sensitive_features=p.argmax(axis=1), **options)
        np.testing.assert_allclose(points.accuracy, plain.accuracy, atol=1e-12)
        bands = ff.taf_bands(y, scores, sensitive_features=groups, n_resamples=50, random_state=0, **options)
        assert bands.estimate.accuracy.max() == pytest.approx(points.accuracy.max())
        assert bands.low.max() <= points.accuracy.max() <= bands.high.max()

    def test_amounts_are_one_per_row(self):
        y, scores, p, _ = problem(4)
        for groups in (ff.ProbableGroups(p), p.argmax(axis=1)):
            for gain in (np.ones(len(y) - 1), np.ones(len(y) + 1)):
                with pytest.raises(InvalidInputError, match="one amount per row, 300"):
                    ff.tradeoff_points(y, scores, sensitive_features=groups, accuracy=ff.row_payoff(gain))


class TestBounds:
    def test_they_hold_the_truth_however_decisions_depend_on_the_group(self):
        rng = np.random.default_rng(0)
        n, held, wide = 2000, 0, []
        for _ in range(100):
            p = 1 / (1 + np.exp(-rng.normal(0, 2.5, n)))
            sex = rng.random(n) < p
            scores = rng.random((n, 2)) + rng.normal(0, 0.3) * sex[:, None] + rng.normal(0, 0.2) * p[:, None]
            y = rng.integers(0, 2, n)
            groups = ff.ProbableGroups(np.column_stack([1 - p, p]))
            bounds = ff.fairness_bounds(y, scores, sensitive_features=groups, fairness="demographic_parity")
            true = ff.tradeoff_points(y, scores, sensitive_features=sex, include_constant=False).fairness
            held += int(np.sum((bounds.low - 0.01 <= true) & (true <= bounds.high + 0.01)))
            wide.append(bounds.high - bounds.low)
        assert held >= 190
        assert np.mean(wide) < 0.8

    def test_certain_groups_leave_no_doubt(self):
        y, scores, p, weight = problem(3, g=2)
        sex = p[:, 0] > 0.5
        groups = ff.ProbableGroups(np.column_stack([sex, ~sex]).astype(float))
        for fairness in ("demographic_parity", "impact_ratio", "equalized_odds"):
            options = {"fairness": fairness, "sample_weight": weight}
            bounds = ff.fairness_bounds(y, scores, sensitive_features=groups, **options)
            true = ff.tradeoff_points(y, scores, sensitive_features=sex, include_constant=False, **options).fairness
            for found in (bounds.low, bounds.high, bounds.weighted, bounds.thresholded):
                np.testing.assert_allclose(found, true, atol=1e-12)

    @pytest.mark.parametrize("n_bins", [1, 2, 5])
    def test_against_a_loop_over_bins(self, n_bins):
        """In each bin as many members as there can be are selected, or as few; the bins hold equal shares of rows."""
        y, scores, p, weight = problem(5, g=2)
        decided = scores > 0.5

        def rates(member):
            low, high = np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
            edges = np.quantile(member, [i / n_bins for i in range(1, n_bins)])
            code = np.array([sum(one >= edge for edge in edges) for one in member])
            for b in range(n_bins):
                rows = code == b
                members, others = weight[rows] @ member[rows], weight[rows] @ (1.0 - member[rows])
                selected = weight[rows] @ decided[rows]
                low += np.maximum(selected - others, 0.0)
                high += np.minimum(selected, members)
            return low / (weight @ member), high / (weight @ member)

        (low_a, high_a), (low_b, high_b) = rates(p[:, 0]), rates(p[:, 1])
        worst = np.maximum(high_a - low_b, high_b - low_a)
        best = np.maximum(np.maximum(low_a - high_b, low_b - high_a), 0.0)
        bounds = ff.fairness_bounds(
            y, scores, sensitive_features=ff.ProbableGroups(p), sample_weight=weight, n_bins=n_bins
        )
        np.testing.assert_allclose(bounds.low, 1.0 - worst, atol=1e-12)
        np.testing.assert_allclose(bounds.high, 1.0 - best, atol=1e-12)

    def test_they_need_probabilities(self):
        with pytest.raises(InvalidInputError, match="ProbableGroups"):
            ff.fairness_bounds([0, 1], [0, 1], sensitive_features=["a", "b"])

    @pytest.mark.parametrize("measure", ["impact_ratio against a", "demographic_parity within job"])
    def test_they_are_of_plain_measures(self, measure):
        groups = ff.ProbableGroups([[0.3, 0.7], [0.6, 0.4]], groups=["a", "b"])
        with pytest.raises(InvalidInputError, match="fairness must be a plain measure for bounds"):
            ff.fairness_bounds([0, 1], [0, 1], sensitive_features=groups, fairness=measure)


class TestNumbers:
    def test_the_bias_is_the_covariance_in_units_of_the_mean_distance(self):
        for seed in range(20):
            y, scores, _, weight = problem(seed)
            age = np.random.default_rng(seed).gamma(3, 10, len(y))
            groups = ff.ProbableGroups.from_numbers(age, name="age", sample_weight=weight)
            points = ff.tradeoff_points(y, scores, sensitive_features=groups, sample_weight=weight)
            away = age - np.average(age, weights=weight)
            decided = scores > 0.5
            covariance = [np.average(away * (d - np.average(d, weights=weight)), weights=weight) for d in decided.T]
            expected = 2 * np.array(covariance) / np.average(np.abs(away), weights=weight)
            np.testing.assert_allclose(points.bias[:-1, 0], expected, atol=1e-12)

    def test_two_values_are_two_groups(self):
        y, scores, _, _ = problem(5)
        value = np.random.default_rng(0).choice([3.0, 7.0], len(y))
        one, other = (
            ff.tradeoff_points(y, scores, sensitive_features=groups)
            for groups in (ff.ProbableGroups.from_numbers(value), value)
        )
        np.testing.assert_allclose(one.fairness, other.fairness, atol=1e-12)

    def test_hundreds_of_numbers_get_advice(self):
        y, scores, _, _ = problem(6, n=500)
        income = np.random.default_rng(0).random(500)
        with pytest.raises(GroupError, match="from_numbers"):
            ff.tradeoff_points(y, scores, sensitive_features=income)
        with pytest.raises(GroupError, match="from_numbers"):
            ff.tradeoff_points(np.arange(12_000) % 2, np.zeros(12_000), sensitive_features=np.arange(12_000) / 7)
        # Whole numbers may be codes: 400 of them are 79,800 pairs of groups, and get the advice as a warning.
        with pytest.warns(UserWarning, match=r"has 400 different numbers.*from_numbers"):
            ff.tradeoff_points(y, scores, sensitive_features=np.arange(500) % 400)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ff.tradeoff_points(y, scores, sensitive_features=np.arange(500) % 30)
            ff.tradeoff_points(y, scores, sensitive_features=(np.arange(500) % 400).astype(str))
        points = ff.tradeoff_points(y, scores, sensitive_features=(10 * income).astype(int).astype(str))
        assert points.bias.shape[1] == 45

    def test_an_age_in_years_gets_advice(self):
        y, scores, _, _ = problem(6, n=500)
        age = 18 + np.arange(500) % 62
        for years in (age, age.astype(float), age / 2):
            with pytest.warns(UserWarning, match=r"has 62 different numbers.*np.digitize.*from_numbers"):
                points = ff.tradeoff_points(y, scores, sensitive_features=years)
            assert len(points.sets.names) == 62

    def test_a_matrix_of_probabilities_is_told_where_it_belongs(self):
        y, scores, p, _ = problem(4)
        with pytest.raises(GroupError, match=r"make ProbableGroups\(matrix\)"):
            ff.tradeoff_points(y, scores, sensitive_features=p)

    def test_a_regression_takes_them(self):
        rng = np.random.default_rng(0)
        age = rng.normal(size=400)
        y = age + rng.normal(size=400)
        H = np.column_stack([y + rng.normal(size=400), age])
        groups = ff.ProbableGroups.from_numbers(age, name="age")
        model = ff.FairStacksRegressor("precomputed", alpha=0.1, tau=0.0).fit(H, y, sensitive_features=groups)
        assert abs(np.cov(model.predict(H), age)[0, 1]) < 1e-9


class TestMissing:
    @pytest.mark.parametrize("missing", ["group", "ignore", "share"])
    def test_policies(self, missing):
        y, scores, _, _ = problem(7)
        known = np.random.default_rng(1).choice(["f", "m"], len(y)).astype(object)
        known[::5] = None
        groups = ff.ProbableGroups.from_labels(known, missing=missing, name="sex")
        points = ff.tradeoff_points(y, scores, sensitive_features=groups)
        decided = scores > 0.5
        rates = {g: decided[known == g].mean(axis=0) for g in ("f", "m")}
        if missing == "group":
            rates["missing"] = decided[::5].mean(axis=0)
        elif missing == "share":
            share = np.mean(known[known != None] == "f")  # noqa: E711
            part = {"f": share, "m": 1 - share}
            for g in ("f", "m"):
                own = decided[known == g]
                total = len(own) + part[g] * len(decided[::5])
                rates[g] = (own.sum(axis=0) + part[g] * decided[::5].sum(axis=0)) / total
        np.testing.assert_allclose(points.fairness[:-1], 1 - np.ptp(np.stack(list(rates.values())), axis=0))
        assert points.accuracy[0] == np.mean(decided[:, 0] == y)


class TestStacks:
    def test_probabilities_alone_give_much_of_the_fairness(self):
        rng = np.random.default_rng(0)
        n = 6000
        sex = rng.integers(0, 2, n)
        X = np.column_stack([rng.normal(0.9 * sex), rng.normal(size=(n, 3))])
        y = (X.sum(axis=1) + rng.normal(size=n) > 1).astype(int)
        proxy = 1 / (1 + np.exp(-(2.5 * rng.normal(sex, 1.0) - 1.25)))
        groups = ff.ProbableGroups(np.column_stack([1 - proxy, proxy]), groups=["0", "1"], name="sex")
        train, test = np.arange(n) < 3000, np.arange(n) >= 3000
        part = ff.ProbableGroups(groups.probabilities[train], groups=groups.groups, name="sex")
        fitted = {}
        for name, given in (("probable", part), ("known", {"sex": sex[train]})):
            model = ff.FairStacksClassifier([("lr", LogisticRegression())], random_state=0)
            model.fit(X[train], y[train], sensitive_features=given)
            points = model.points(X[test], y[test], sensitive_features=sex[test])
            fitted[name] = points.frontier()
        start = points.fairness[0]
        # The best fairness at an accuracy 3 points below the best one.
        level = points.accuracy[0] - 0.03
        best = {name: curve.fairness[curve.accuracy >= level].max() for name, curve in fitted.items()}
        assert best["probable"] - start > 0.5 * (best["known"] - start) > 0.02

    @pytest.mark.parametrize("loss", ["squared", "log"])
    def test_the_score_bias_is_that_of_the_restored_means(self, loss):
        rng = np.random.default_rng(3)
        n = 400
        y, p = rng.integers(0, 2, n), rng.beta(1.0, 2.0, n)
        H = np.clip(0.4 * y[:, None] + 0.3 * p[:, None] + rng.normal(0.2, 0.2, (n, 3)), 0, 1)
        groups = ff.ProbableGroups(np.column_stack([1 - p, p]))
        model = ff.FairStacksClassifier("precomputed", alpha=1.0, tau=0.01, loss=loss)
        model.fit(H, y, sensitive_features=groups)
        # With two groups the difference of the restored means is a slope: that of the scores on the probability.
        slope = np.cov(H.T, p, ddof=0)[:3, 3] / p.var()
        assert abs(model.weights_ @ slope) == pytest.approx(0.01, abs=1e-9)
        free = model.at(target=model.path_.target[0]).weights_ if loss == "log" else None
        if free is None:
            design = np.column_stack([H - H.mean(axis=0), np.ones(n)])
            expected = np.linalg.solve(design.T @ design + 0.5 * np.diag([1.0, 1.0, 1.0, 0.0]), design.T @ y)[:3]
            free = model.at(target=model.path_.target[0]).weights_
            np.testing.assert_allclose(free, expected, atol=1e-9)
        assert abs(free @ slope) == pytest.approx(abs(model.path_.target[0]))

    def test_a_stack_is_told_of_the_whole_difference(self):
        kept = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            n = 8000
            sex = (rng.random(n) < 0.4).astype(int)
            X = np.column_stack([rng.normal(1.2 * sex), rng.normal(size=(n, 3))])
            y = (X.sum(axis=1) + rng.normal(size=n) > 1).astype(int)
            apart = np.sqrt(2.0) * norm.ppf(0.7)
            signal = rng.normal(apart * sex)
            odds = 0.4 / 0.6 * np.exp(apart * signal - apart**2 / 2)
            p = odds / (1 + odds)
            train, test = slice(0, 5000), slice(5000, None)
            gains = []
            for given in (sex[train], ff.ProbableGroups(np.column_stack([1 - p, p])[train])):
                model = ff.FairStacksClassifier([("lr", LogisticRegression())], cv=2, random_state=0)
                model.fit(X[train], y[train], sensitive_features=given)
                options = {"sensitive_features": sex[test], "include_constant": False}
                free, fair = (
                    ff.tradeoff_points(y[test], one.predict(X[test]), **options)
                    for one in (model.at(target=model.path_.target[0]), model.select(0.97))
                )
                gains.append(fair.fairness[0] - free.fairness[0])
            kept.append(gains[1] / gains[0])
        assert np.mean(kept) > 0.7

    def test_degrees_below_zero_are_no_costs(self):
        p = np.linspace(0.1, 0.9, 60)
        groups = ff.ProbableGroups(np.column_stack([1 - p, p]), independent_given="group")
        model = ff.FairStacksClassifier("precomputed", alpha=1.0, loss="hinge")
        with pytest.raises(InvalidInputError, match="takes no negative weights"):
            model.fit(np.column_stack([p, p**2]), np.arange(60) % 2, sensitive_features=groups)

    def test_promises_need_groups_that_are_known(self):
        rng = np.random.default_rng(0)
        y, p = rng.integers(0, 2, 500), rng.random(500)
        H = np.clip(np.column_stack([y, p]) * 0.6 + 0.4 * rng.random((500, 2)), 0, 1)
        groups = ff.ProbableGroups(np.column_stack([1 - p, p]))
        model = ff.FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=groups)
        with pytest.raises(InvalidInputError, match="groups that are known"):
            model.select(0.9, confidence=0.9, calibration=(H, y, groups))
        assert model.select(0.95).selection_.estimated >= 0.95 - 1e-9


class TestWeightsOfProbableGroups:
    @pytest.mark.parametrize("given", ["probabilities", "group"])
    def test_a_weight_of_two_is_a_row_twice(self, given):
        rng = np.random.default_rng(0)
        p = rng.beta(0.6, 0.6, 800)
        p = np.column_stack([1 - p, p])
        y, scores = rng.integers(0, 2, 800), rng.random((800, 3)) + 0.2 * p[:, 1:]
        weight = np.where(p[:, 1] > 0.5, 3, rng.integers(0, 3, 800))
        again = np.repeat(np.arange(800), weight)
        one = ff.tradeoff_points(
            y, scores, sensitive_features=ff.ProbableGroups(p, independent_given=given), sample_weight=0.5 * weight
        )
        groups = ff.ProbableGroups(p[again], independent_given=given)
        other = ff.tradeoff_points(y[again], scores[again], sensitive_features=groups)
        np.testing.assert_allclose(one.rates, other.rates, atol=1e-12)
        np.testing.assert_allclose(one.fairness, other.fairness, atol=1e-12)

    def test_a_stack_of_weighted_rows_is_that_of_repeated_ones(self):
        rng = np.random.default_rng(1)
        p = rng.beta(0.6, 0.6, 600)
        p = np.column_stack([1 - p, p])
        group = rng.random(600) < p[:, 1]
        y = (rng.random(600) < 0.3 + 0.4 * group).astype(int)
        H = np.clip(0.4 * y[:, None] + 0.2 * group[:, None] + 0.3 * rng.normal(size=(600, 3)), 0, 1)
        weight = np.where(p[:, 1] > 0.5, 3, 1)
        again = np.repeat(np.arange(600), weight)
        stack = ff.FairStacksClassifier("precomputed", alpha=1.0, tau=0.0)
        one = stack.fit(H, y, sensitive_features=ff.ProbableGroups(p), sample_weight=weight)
        sizes, weights = one.group_sizes_, one.weights_.copy()
        other = stack.fit(H[again], y[again], sensitive_features=ff.ProbableGroups(p[again]))
        np.testing.assert_allclose(weights, other.weights_, atol=1e-9)
        assert sizes == other.group_sizes_

    def test_shares_of_the_missing_are_weighted(self):
        groups = ff.ProbableGroups.from_labels(
            ["f", None, "m", "m"], missing="share", sample_weight=[3.0, 1.0, 0.5, 0.5]
        )
        np.testing.assert_allclose(groups.probabilities[1], [0.75, 0.25])

    def test_a_dataframe_in_another_order_is_refused(self):
        pd = pytest.importorskip("pandas")
        y, scores, p, _ = problem(0)
        groups = ff.ProbableGroups(pd.DataFrame(p).iloc[::-1])
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.tradeoff_points(pd.Series(y), scores, sensitive_features=groups)
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.FairStacksClassifier("precomputed").fit(pd.DataFrame(scores), y, sensitive_features=groups)
        assert ff.tradeoff_points(y, scores, sensitive_features=groups).fairness.shape == (5,)


def test_an_audit_compares_only_what_is_to_be_compared():
    rng = np.random.default_rng(0)
    sex, gone, scores = rng.choice(["f", "m"], 2000), rng.random(2000) < 0.2, rng.random(2000)
    decided = np.where(gone, scores < 0.1, scores < 0.5).astype(float)
    groups = ff.ProbableGroups.from_labels(np.where(gone, None, sex), missing="ignore", name="sex")
    y = rng.integers(0, 2, 2000)
    found = ff.audit(y, {"m": decided}, sensitive_features=groups, stack=False)
    rates = {g: decided[~gone & (sex == g)].mean() for g in ("f", "m")}
    assert "not compared" not in str(found)
    assert f"ratio {min(rates.values()) / max(rates.values()):.3f}" in str(found)


@pytest.mark.parametrize("turned", [False, True])
def test_a_promise_is_made_where_a_restored_rate_is_no_share(turned):
    rng = np.random.default_rng(15)
    group = rng.integers(0, 2, 400)
    p = np.where(rng.random(400) < 0.7, np.where(group == 1, 0.7, 0.3), np.where(group == 1, 0.3, 0.7))
    u = rng.normal(size=400)
    y = (u + 1.2 * group + 0.5 * rng.normal(size=400) > 1.8).astype(int)
    H = np.column_stack(
        [
            1 / (1 + np.exp(-3 * (u + 1.2 * group - 1.8))),
            1 / (1 + np.exp(-3 * (u - 0.8))),
            0.5 + 0.4 * (p - 0.5) + 0.1 * rng.normal(size=400),
        ]
    )
    groups = ff.ProbableGroups(np.column_stack([1 - p, p]))
    stack = ff.FairStacksClassifier("precomputed", random_state=0)
    stack.fit(1 - H if turned else H, 1 - y if turned else y, sensitive_features=groups)
    rates = stack.points_.rates[:-1]
    assert rates.max() > 1.0 if turned else rates.min() < 0.0
    found = stack.select(0.8, confidence=0.8).selection_
    assert found.promised == 0.8
    assert all(count >= 0 for count in found.changed.values())
