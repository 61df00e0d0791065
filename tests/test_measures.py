"""Ratios, odds, reference groups and strata: against Fairlearn and plain loops, everywhere a measure is named."""

import warnings
from itertools import combinations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn_metrics
from tools.measure_agreement import CONDITIONS, compare

import fairfrontier as ff
from fairfrontier.chunks import array_chunks
from fairfrontier.exceptions import GroupError, InfeasibleError, InvalidInputError
from fairfrontier.metrics._contrasts import RowSets, build_contrasts

FAIRLEARN = {
    "impact_ratio": fairlearn_metrics.demographic_parity_ratio,
    "equal_opportunity_ratio": fairlearn_metrics.equal_opportunity_ratio,
    "equalized_odds_ratio": fairlearn_metrics.equalized_odds_ratio,
}
RATIOS = (*FAIRLEARN, "predictive_equality_ratio", "odds_ratio")


def problem(seed, n=None, n_groups=None):
    """Return y, groups, scores with many ties, and weights; every group has both labels."""
    rng = np.random.default_rng(seed)
    n, n_groups = n or int(rng.integers(20, 200)), n_groups or int(rng.integers(2, 9))
    every = np.arange(2 * n_groups)
    group = np.concatenate([every // 2, rng.integers(0, n_groups, n)])
    y = np.concatenate([every % 2, rng.integers(0, 2, n)])
    scores = np.clip(rng.integers(0, 6, (len(y), 3)) / 5 + rng.choice([0, -0.4, 0.4], 3), 0, 1)
    return y, group, scores, rng.integers(1, 4, len(y)).astype(float)


def obvious(measure, y, decided, group, weight):
    """Return the fairness of one model by a loop over pairs of groups."""
    conditions = {"impact_ratio": [None], "odds_ratio": [None], "equal_opportunity_ratio": [1]}
    worst = 1.0
    for condition in conditions.get(measure, [0] if measure.startswith("predictive") else [1, 0]):
        rows = np.ones(len(y), bool) if condition is None else y == condition
        rates = [np.average(decided[rows & (group == g)], weights=weight[rows & (group == g)]) for g in set(group)]
        for one, other in combinations(rates, 2):
            low, high = sorted([one, other])
            if measure == "odds_ratio":
                low, high = low * (1 - high), high * (1 - low)
            if not np.isclose(one, other, atol=1e-14):
                worst = min(worst, low / high)
    return worst


def test_every_measure_agrees_with_an_independent_one():
    """A few of the cases that ``tools/measure_agreement.py`` makes by the thousand; it raises where two disagree."""
    counts = compare(range(10))
    assert counts["plain, fractions"] == 10 * 3 * len(CONDITIONS)
    assert min(counts[what] for what in ("Fairlearn", "Dask", "chunks", "Mantel–Haenszel test", "ks, SciPy")) > 0


class TestRatios:
    @pytest.mark.parametrize("measure", RATIOS)
    def test_random_cases_against_fairlearn_and_a_loop(self, measure):
        for seed in range(150):
            y, group, scores, weight = problem(seed)
            weight = weight if seed % 2 else np.ones(len(y))
            options = {"sensitive_features": group, "sample_weight": weight, "include_constant": False}
            points = ff.tradeoff_points(y, scores, fairness=measure, **options)
            for j, fairness in enumerate(points.fairness):
                decided = (scores[:, j] > 0.5).astype(int)
                assert fairness == pytest.approx(obvious(measure, y, decided, group, weight), abs=1e-12)
                if seed < 6 and measure in FAIRLEARN and decided.any():  # it takes 50 ms a call
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # Fairlearn divides 0 by 0
                        theirs = FAIRLEARN[measure](y, decided, sensitive_features=group, sample_weight=weight)
                    assert np.isnan(theirs) or fairness == pytest.approx(theirs, abs=1e-12)

    @pytest.mark.parametrize("measure", RATIOS)
    def test_names_and_order_of_rows_do_not_matter(self, measure):
        y, group, scores, weight = problem(5, n=200, n_groups=4)
        order = np.random.default_rng(0).permutation(len(y))
        names = np.array(["zoe", "b", "x", "a"])[group]
        one = ff.tradeoff_points(y, scores, sensitive_features=group, fairness=measure, sample_weight=weight)
        other = ff.tradeoff_points(
            y[order], scores[order], sensitive_features=names[order], fairness=measure, sample_weight=weight[order]
        )
        np.testing.assert_allclose(one.fairness, other.fairness, atol=1e-12)

    @pytest.mark.parametrize("measure", RATIOS)
    def test_chunks_and_dask_give_the_same(self, measure):
        y, group, scores, weight = problem(6, n=300, n_groups=3)
        whole = ff.tradeoff_points(y, scores, sensitive_features=group, fairness=measure, sample_weight=weight)
        chunks = array_chunks(y, scores, sensitive_features=group, sample_weight=weight, chunk_rows=50)
        np.testing.assert_allclose(ff.points_from_chunks(chunks, fairness=measure).fairness, whole.fairness, atol=1e-12)
        lazy = [da.from_array(part, chunks=(70, *part.shape[1:])) for part in (y, scores, group, weight)]
        points = ff.tradeoff_points(
            lazy[0], lazy[1], sensitive_features=lazy[2], fairness=measure, sample_weight=lazy[3]
        )
        np.testing.assert_allclose(points.fairness, whole.fairness, atol=1e-12)

    def test_nobody_selected_is_alike_and_somebody_in_one_group_only_is_not(self):
        y, group = [0, 1, 0, 1], ["a", "a", "b", "b"]
        scores = {"nobody": [0, 0, 0, 0], "one": [1, 0, 0, 0], "all": [1, 1, 1, 1]}
        for measure in ("impact_ratio", "odds_ratio"):
            points = ff.tradeoff_points(y, scores, sensitive_features=group, fairness=measure)
            np.testing.assert_array_equal(points.fairness, [1, 0, 1, 1])

    def test_equal_rates_have_no_gap_beside_others_that_have_one(self):
        sets = RowSets(tuple("abcd"), ((0, 1), (2, 3)), ("sex", "race"))
        for comparison, gap in (("ratio", 0.5), ("odds", 2 / 3)):
            equal, other = sets.block_gaps(np.array([[0.3, 0.3, 0.5, 0.25], [0.0, 0.0, 0.2, 0.2]]), comparison)
            np.testing.assert_array_equal(equal, [0.0, 0.0])
            np.testing.assert_allclose(other, [gap, 0.0], atol=1e-15)

    def test_four_fifths_is_four_fifths(self):
        group, decided = np.repeat(["a", "b"], 10), np.r_[[1] * 5, [0] * 5, [1] * 4, [0] * 6]
        points = ff.tradeoff_points(np.tile([0, 1], 10), decided, sensitive_features=group, fairness="impact_ratio")
        assert points.fairness[0] >= 0.8

    def test_several_attributes(self):
        y, group, scores, _ = problem(7, n=200, n_groups=3)
        other = np.random.default_rng(1).integers(0, 2, len(y))
        both = {"g": group, "o": other}
        separate = ff.tradeoff_points(y, scores, sensitive_features=both, fairness="impact_ratio")
        alone = [
            ff.tradeoff_points(y, scores, sensitive_features=one, fairness="impact_ratio") for one in both.values()
        ]
        np.testing.assert_allclose(separate.fairness, np.minimum(*(one.fairness for one in alone)))
        np.testing.assert_allclose(separate.attribute_fairness["o"], alone[1].fairness)
        crossed = ff.tradeoff_points(
            y, scores, sensitive_features=both, fairness="impact_ratio", sensitive_mode="intersectional"
        )
        product = ff.tradeoff_points(y, scores, sensitive_features=group * 2 + other, fairness="impact_ratio")
        np.testing.assert_allclose(crossed.fairness, product.fairness)

    def test_a_regression_has_no_rates(self):
        with pytest.raises(InvalidInputError, match="regression has none"):
            ff.tradeoff_points(
                [0.1, 0.5, 0.3], [1.0, 2.0, 3.0], sensitive_features=[0, 1, 1], fairness="impact_ratio", accuracy="r2"
            )


class TestReferenceAndStrata:
    def test_a_reference_group_against_a_loop(self):
        for seed in range(50):
            y, group, scores, _ = problem(seed, n_groups=5)
            rates = np.array([(scores > 0.5)[group == g].mean(axis=0) for g in range(5)])
            points = ff.tradeoff_points(
                y, scores, sensitive_features=group, fairness="demographic_parity against 2", include_constant=False
            )
            np.testing.assert_allclose(points.fairness, 1 - np.abs(rates - rates[2]).max(axis=0), atol=1e-12)
            assert points.bias.shape == (3, 4)
            ratio = ff.tradeoff_points(
                y, scores, sensitive_features=group, fairness="impact_ratio against 2", include_constant=False
            )
            low, high = np.minimum(rates, rates[2]), np.maximum(rates, rates[2])
            quotient = np.divide(low, high, out=np.ones_like(low), where=high > 0)
            np.testing.assert_allclose(ratio.fairness, quotient.min(axis=0), atol=1e-12)

    def test_strata_against_a_loop(self):
        y, group, scores, _ = problem(3, n=400, n_groups=3)
        job = np.random.default_rng(0).choice(["x", "y", "z"], len(y))
        points = ff.tradeoff_points(
            y,
            scores,
            sensitive_features={"group": group, "job": job},
            fairness="demographic_parity within job",
            include_constant=False,
        )
        rates = np.array([[(scores > 0.5)[(group == g) & (job == j)].mean(axis=0) for g in range(3)] for j in "xyz"])
        np.testing.assert_allclose(points.fairness, 1 - np.ptp(rates, axis=1).max(axis=0))
        assert "group=0 | job=x − group=1 | job=x" in points.contrasts

    def test_a_stratum_of_one_group_compares_nothing(self):
        y, scores = [0, 1, 0, 1, 0, 1], [1, 0, 1, 1, 0, 0]
        groups = {"g": ["a", "b", "a", "b", "a", "a"], "job": [0, 0, 0, 0, 1, 1]}
        points = ff.tradeoff_points(y, scores, sensitive_features=groups, fairness="demographic_parity within job")
        assert points.contrasts == ("g=a | job=0 − g=b | job=0",)
        groups["g"] = ["a", "a", "a", "a", "b", "b"]
        with pytest.raises(GroupError, match="one group in each"):
            ff.tradeoff_points(y, scores, sensitive_features=groups, fairness="demographic_parity within job")

    @pytest.mark.parametrize(
        ("fairness", "message"),
        [
            ("impact_ratio against nobody", "must name one group"),
            ("impact_ratio within job", "must be one of"),
            ("impact_ratoi", "did you mean 'impact_ratio'"),
            ("impact_ratio within sensitive_feature", "that one alone"),
        ],
    )
    def test_errors_say_what_to_do(self, fairness, message):
        with pytest.raises(InvalidInputError, match=message):
            ff.tradeoff_points([0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=list("abab"), fairness=fairness)


class TestRowSets:
    @pytest.mark.parametrize("measure", ["demographic_parity", "impact_ratio", "odds_ratio"])
    def test_fairness_moves_with_its_largest_contrast(self, measure):
        sets = build_contrasts(measure, [(None, g) for g in range(5)], ("g",)).sets
        rng = np.random.default_rng(0)
        before, after = rng.uniform(0.2, 0.8, (1, 5, 3)), rng.uniform(0.2, 0.8, (40, 5, 3))
        link = {"demographic_parity": lambda p: p, "impact_ratio": np.log, "odds_ratio": lambda p: np.log(p / (1 - p))}
        change = link[measure](after) - link[measure](before)
        expected = np.max([np.abs(change[:, i] - change[:, j]) for i, j in combinations(range(5), 2)], axis=0)
        if measure != "demographic_parity":  # their fairness is e to the minus difference of links
            expected = np.minimum(sets.fairness(before) * expected, 1.0)
        np.testing.assert_allclose(sets.movement(before, after)[:, 0], expected, rtol=1e-12)

    @pytest.mark.parametrize("n_groups", [2, 3, 4, 7])
    @pytest.mark.parametrize("against", ["", " against 1"])
    def test_coordinates_have_the_lengths_of_the_pairs(self, n_groups, against):
        keys = [(label, g) for label in (False, True) for g in range(n_groups)]
        sets = build_contrasts(f"equalized_odds{against}", keys, ("g",)).sets
        of_pairs = np.zeros((sets.n_contrasts, len(sets.names)))
        for row, (first, second) in zip(of_pairs, sets.pairs(), strict=True):
            row[first], row[second] = 1.0, -1.0
        np.testing.assert_allclose(sets.pairs_of_basis() @ sets.basis(), of_pairs, atol=1e-14)
        np.testing.assert_allclose(sets.basis().T @ sets.basis(), of_pairs.T @ of_pairs, atol=1e-13)


class TestCurves:
    def test_mixtures_attain_what_the_hull_says(self):
        rng = np.random.default_rng(0)
        y, group = rng.integers(0, 2, 400), rng.choice(list("abc"), 400)
        scores = np.clip(rng.random((400, 8)) + 0.2 * y[:, None] + rng.normal(0, 0.3, 8), 0, 1)
        points = ff.tradeoff_points(y, scores, sensitive_features=group, fairness="impact_ratio")
        curve, steps = points.frontier("signed"), points.frontier()
        levels = np.linspace(0, 1, 57)
        assert np.all(curve(levels) >= steps(levels) - 1e-9)
        assert ff.fauc(curve) > ff.fauc(steps) + 1e-3
        rates = curve.mixture @ points.rates[curve.support]
        assert np.all(points.sets.fairness(rates) >= curve.fairness - 1e-7)
        np.testing.assert_allclose(curve.mixture @ points.accuracy[curve.support], curve.accuracy, atol=1e-9)
        # No mixture of two models is better.
        for _ in range(2000):
            i, j = rng.integers(0, len(points), 2)
            share = rng.random()
            mixed = share * points.rates[i] + (1 - share) * points.rates[j]
            ratio = float(points.sets.fairness(mixed[None])[0])
            below = np.floor(ratio * 100) / 100  # the curve has knots at hundredths
            assert share * points.accuracy[i] + (1 - share) * points.accuracy[j] <= curve(below) + 1e-7

    def test_odds_have_no_hull(self):
        points = ff.tradeoff_points([0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=list("aabb"), fairness="odds_ratio")
        with pytest.raises(InvalidInputError, match="odds ratios"):
            points.frontier(True)


def population(n, seed):
    rng = np.random.default_rng(seed)
    y, group = rng.random(n) < 0.4, rng.choice(["f", "m"], n)
    noise = rng.random((n, 6))
    scores = 0.45 * y[:, None] + 0.55 * noise + np.linspace(0, 0.2, 6) * (group == "m")[:, None]
    return y.astype(int), scores, group


class TestInference:
    def test_intervals_and_bands_cover_what_the_population_has(self):
        y, scores, group = population(200_000, 0)
        options = {"fairness": "impact_ratio", "weight": ff.StepWeight(0.6)}
        truth = ff.fauc_score(y, scores, sensitive_features=group, **options)
        curve = ff.tradeoff_points(y, scores, sensitive_features=group, fairness="impact_ratio").frontier()
        held, inside = 0, 0
        for seed in range(40):
            y, scores, group = population(800, 100 + seed)
            interval = ff.fauc_interval(y, scores, sensitive_features=group, n_resamples=60, random_state=0, **options)
            held += interval.low <= truth <= interval.high
            bands = ff.taf_bands(
                y, scores, sensitive_features=group, n_resamples=60, random_state=0, fairness="impact_ratio"
            )
            there = curve(bands.grid)
            inside += bool(np.all((bands.low <= there + 1e-9) & (there <= bands.high + 1e-9)))
        assert held >= 35
        assert inside >= 35

    def test_comparisons_and_honest_curves(self):
        y, scores, group = population(900, 1)
        result = ff.compare_fauc(
            y,
            scores[:, :3],
            1 - scores[:, :3],
            sensitive_features=group,
            fairness="impact_ratio",
            n_resamples=100,
            random_state=0,
        )
        assert result.low > 0
        honest = ff.honest_taf(y, scores, sensitive_features=group, fairness="impact_ratio", random_state=0)
        promised = ff.tradeoff_points(y, scores, sensitive_features=group, fairness="impact_ratio").frontier()
        assert abs(ff.fauc(honest) - ff.fauc(promised)) < 0.05

    def test_bands_have_no_hull_of_ratios(self):
        y, scores, group = population(300, 2)
        with pytest.raises(InvalidInputError, match="average over mixtures"):
            ff.taf_bands(y, scores, sensitive_features=group, fairness="impact_ratio", interpolate=True)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 6000
    group, z = rng.choice(["a", "b", "c"], n), rng.normal(size=(n, 4))
    shift = np.select([group == "a", group == "b"], [0.7, 0.3], 0.0)
    y = (z.sum(axis=1) + shift + rng.normal(size=n) > 1.6).astype(int)
    H = np.stack([1 / (1 + np.exp(1 - z @ rng.random(4) - 0.7 * shift)) for _ in range(8)], axis=1)
    return H, y, group


class TestStacks:
    @pytest.mark.parametrize("fairness", ["impact_ratio", "impact_ratio against a"])
    def test_selected_at_a_ratio_they_deliver_it(self, rows, fairness):
        H, y, group = rows
        model = ff.FairStacksClassifier("precomputed", fairness=fairness, random_state=0)
        model.fit(H[:3000], y[:3000], sensitive_features=group[:3000])
        assert model.points_.fairness[0] < 0.8  # so that there is something to ask for
        chosen = model.select(0.8)
        assert chosen.selection_.estimated >= 0.8 - 1e-9
        points = ff.tradeoff_points(
            y[3000:], chosen.predict(H[3000:]), sensitive_features=group[3000:], fairness=fairness
        )
        assert points.fairness[0] > 0.7
        assert points.accuracy[0] > points.accuracy[-1] + 0.05

    def test_the_same_paths_are_walked(self, rows):
        H, y, group = rows
        two = group != "c"
        paths = [
            ff.FairStacksClassifier("precomputed", fairness=fairness, alpha=1.0, path="paper")
            .fit(H[two], y[two], sensitive_features=group[two])
            .path_
            for fairness in ("demographic_parity", "impact_ratio")
        ]
        np.testing.assert_allclose(paths[0].weights, paths[1].weights)

    def test_a_promised_ratio_is_that_of_the_same_tests_for_min_ratio(self, rows):
        H, y, group = rows
        chosen = []
        for fairness, asked in (("impact_ratio", {"min_fairness": 0.8}), ("demographic_parity", {"min_ratio": 0.8})):
            model = ff.FairStacksClassifier("precomputed", fairness=fairness, alpha=1.0)
            model.fit(H[:3000], y[:3000], sensitive_features=group[:3000])
            calibration = (H[3000:], None, group[3000:])
            chosen.append(model.select(**asked, confidence=0.9, calibration=calibration))
            with pytest.raises(InfeasibleError, match="cannot be promised"):
                model.select(**dict.fromkeys(asked, 0.999), confidence=0.9, calibration=calibration)
        assert chosen[0].selection_.promised == 0.8
        for model in chosen:
            rates = [model.predict(H[group == g]).mean() for g in "abc"]
            assert min(rates) / max(rates) > 0.8

    def test_no_group_is_levelled_below_a_rate(self, rows):
        H, y, group = rows
        model = ff.FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=group)
        free = model.select(0.95).selection_
        before = [(model.at(target=model.path_.target[0]).predict(H[group == g])).mean() for g in "abc"]
        assert list(free.rates_before.values()) == pytest.approx(before, abs=0.03)
        assert free.levelling == "both"
        assert model.select(0.0).selection_.levelling == "none"
        floor = min(free.rates.values()) + 0.01
        chosen = model.select(0.9, min_rate=floor)
        assert min(chosen.selection_.rates.values()) >= floor - 1e-9
        assert f"rate {floor:g}" in str(chosen.selection_)
        assert "before" in str(chosen.selection_)
        assert "levelling  " in str(free)
        assert "both: some rates rise, others fall" in str(free)
        with pytest.raises(InfeasibleError, match="min_rate"):
            model.select(0.9, min_rate=0.9)

    def test_the_floor_is_of_true_positive_rates_where_errors_of_both_kinds_count(self, rows):
        H, y, group = rows
        model = ff.FairStacksClassifier("precomputed", fairness="equalized_odds", alpha=1.0)
        model.fit(H, y, sensitive_features=group)
        true = min(value for name, value in model.select(0.9).selection_.rates.items() if name.endswith("y=1"))
        chosen = model.select(0.9, min_rate=true - 0.01).selection_
        assert chosen.kind == "stack"
        assert min(chosen.rates.values()) < true - 0.01  # false positive rates have no floor

    def test_the_largest_promise_is_where_the_tests_begin_to_fail(self, rows):
        H, y, group = rows
        model = ff.FairStacksClassifier("precomputed", fairness="impact_ratio", alpha=1.0)
        model.fit(H[:3000], y[:3000], sensitive_features=group[:3000])
        options = {"confidence": 0.9, "calibration": (H[3000:], None, group[3000:])}
        promised = model.select(max_accuracy_loss=0.02, **options).selection_.promised
        assert 0.7 < promised < 1.0
        assert model.select(promised - 0.01, **options).selection_.promised == pytest.approx(promised - 0.01)


class TestSeveralClasses:
    def test_against_a_loop(self):
        for seed in range(30):
            rng = np.random.default_rng(seed)
            n, names = 300, np.array(["no", "wait", "yes"])
            y, group, weight = rng.choice(names, n), rng.integers(0, 3, n), rng.integers(1, 4, n).astype(float)
            decided = {"a": np.where(rng.random(n) < 0.6, y, rng.choice(names, n)), "b": rng.choice(names, n)}
            for fairness, condition in (("demographic_parity", False), ("equal_opportunity", True)):
                points = ff.tradeoff_points(
                    y, decided, sensitive_features=group, fairness=fairness, sample_weight=weight
                )
                for j, found in enumerate(decided.values()):
                    worst, gaps = 0.0, []
                    for name in names:
                        rows = y == name if condition else np.ones(n, bool)
                        rates = [
                            np.average(found[rows & (group == g)] == name, weights=weight[rows & (group == g)])
                            for g in range(3)
                        ]
                        worst = max(worst, np.ptp(rates))
                        gaps += [rates[a] - rates[b] for a, b in combinations(range(3), 2)]
                    np.testing.assert_allclose(points.bias[j], gaps, atol=1e-12)
                    assert points.fairness[j] == pytest.approx(1 - worst, abs=1e-12)
                    assert points.accuracy[j] == pytest.approx(np.average(found == y, weights=weight))
                assert points.fairness[-1] == 1.0
                share = max(weight[y == name].sum() for name in names) / weight.sum()
                assert points.accuracy[-1] == pytest.approx(share)

    def test_numbers_ratios_and_fauc(self):
        rng = np.random.default_rng(0)
        y, group = rng.integers(0, 4, 400), rng.choice(["f", "m"], 400)
        decided = np.column_stack([np.where(rng.random(400) < share, y, 0) for share in (0.5, 0.9)])
        points = ff.tradeoff_points(y, decided, sensitive_features=group, fairness="impact_ratio")
        rates = [[(decided[group == g, 1] == c).mean() for g in "fm"] for c in range(4)]
        assert points.fairness[1] == pytest.approx(min(min(r) / max(r) for r in rates))
        assert "sensitive_feature=f | decided 0 − sensitive_feature=m | decided 0" in points.contrasts
        assert ff.fauc_score(y, decided, sensitive_features=group) > 0.8

    def test_names_of_a_dataframe_are_kept(self):
        y = ["a", "b", "c", "a", "b", "c"]
        frame = pd.DataFrame({"one": y, "other": y[::-1]})
        points = ff.tradeoff_points(y, frame, sensitive_features=list("fmfmfm"))
        assert points.names[:2] == ("one", "other")
        assert points.accuracy[:2].tolist() == [1.0, pytest.approx(1 / 3)]

    def test_scores_are_no_classes(self):
        with pytest.raises(InvalidInputError, match="two classes"):
            ff.tradeoff_points([0, 1, 2, 1], [0.1, 0.5, 0.7, 0.9], sensitive_features=list("abab"))


class TestUnpaired:
    def test_two_populations(self):
        one, other = population(700, 0), population(900, 1)
        options = {"fairness": "demographic_parity", "n_resamples": 200, "random_state": 0, "paired": False}
        y, groups = (one[0], other[0]), (one[2], other[2])
        same = ff.compare_fauc(y, one[1], other[1], sensitive_features=groups, **options)
        apart = [
            ff.fauc_score(part[0], part[1], sensitive_features=part[2], fairness="demographic_parity")
            for part in (one, other)
        ]
        assert same.difference == pytest.approx(apart[0] - apart[1])
        assert same.low < 0 < same.high
        assert same.p_value > 0.05
        worse = ff.compare_fauc(y, one[1], np.roll(other[1], 1, axis=0), sensitive_features=groups, **options)
        assert worse.low > 0
        assert worse.p_value < 0.01
        intervals = [
            ff.fauc_interval(part[0], part[1], sensitive_features=part[2], n_resamples=200, random_state=0)
            for part in (one, other)
        ]
        assert same.high - same.low < sum(interval.high - interval.low for interval in intervals) * 1.2

    def test_each_population_has_amounts_of_its_own(self):
        y, scores, group = population(600, 3)
        gain = np.random.default_rng(3).normal(0.2, 1.0, 600) + y
        parts, known = (slice(None, 200), slice(200, None)), {"n_resamples": 60, "random_state": 0}
        measures = [ff.row_payoff(gain[part]) for part in parts]
        result = ff.compare_fauc(
            [y[part] for part in parts],
            *(scores[part] for part in parts),
            sensitive_features=[group[part] for part in parts],
            accuracy=measures,
            paired=False,
            **known,
        )
        areas = [
            ff.fauc_score(y[part], scores[part], sensitive_features=group[part], accuracy=measure)
            for part, measure in zip(parts, measures, strict=True)
        ]
        assert result.difference == pytest.approx(areas[0] - areas[1])
        with pytest.raises(InvalidInputError, match="one measure or a pair"):
            ff.compare_fauc(
                (y, y), scores, scores, sensitive_features=(group, group), accuracy=["f1"] * 3, paired=False, **known
            )

    def test_pairs_must_be_pairs(self):
        y, scores, group = population(100, 0)
        with pytest.raises(InvalidInputError, match="must be a pair"):
            ff.compare_fauc(y, scores, scores, sensitive_features=(group, group), paired=False)


class TestScoresBesideTheFrontier:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_what_is_no_number_is_refused(self, value):
        group, control = np.array(["f", "m"] * 20), np.array(["x"] * 20 + ["y"] * 20)
        scores = np.where(np.arange(40) == 7, value, 0.4)
        for call in (
            lambda: ff.standardized_mean_difference({"a": scores}, sensitive_features=group),
            lambda: ff.mantel_haenszel({"a": scores}, sensitive_features=group, control_features=control),
            lambda: ff.top_share({"a": scores}, 0.2),
        ):
            with pytest.raises(InvalidInputError, match="of model 'a' at row 7"):
                call()

    def test_a_group_without_weight_is_named(self):
        weight = np.array([1.0, 0.0] * 20)
        with pytest.raises(GroupError, match="'m' of 'sensitive_feature' has no weight"):
            ff.standardized_mean_difference(
                {"a": np.arange(40) / 40}, sensitive_features=["f", "m"] * 20, sample_weight=weight
            )

    def test_rows_in_another_order_are_refused(self):
        scores, group = pd.DataFrame({"a": np.arange(40) / 40}), pd.Series(["f", "m"] * 20)
        back = group.iloc[::-1]
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.standardized_mean_difference(scores, sensitive_features=back)
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.mantel_haenszel(scores, sensitive_features=group, control_features=back)
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.top_share(scores, 0.2, sample_weight=pd.Series(np.ones(40)).iloc[::-1])


class TestStrataInTheReport:
    def test_groups_are_compared_inside_strata_and_pooled(self, tmp_path):
        y, group, scores, _ = problem(3, n=500, n_groups=3)
        scores[group == 0, 0] += 0.2  # a difference beyond doubt
        job = np.random.default_rng(0).choice(["x", "y", "z"], len(y))
        job[group == 2] = "alone"  # shares no stratum with the others
        groups = np.array(["b", "f", "m"])[group]
        options = {"sensitive_features": {"sex": groups, "job": job}, "stack": False}
        result = ff.audit(y, scores, fairness="impact_ratio within job", reference={"sex": "b"}, **options)
        there = group < 2
        expected = ff.mantel_haenszel(
            scores[there], sensitive_features=groups[there], control_features=job[there], reference="b"
        )
        table = result.strata()
        assert table["group"].tolist() == ["f"] * 3
        for model, row in table.set_index("model").iterrows():
            for name in ("odds_ratio", "low", "high", "risk_ratio", "p_value", "n_strata"):
                assert row[name] == pytest.approx(getattr(expected[model]["f"], name))
        _, _, section = result.to_html().partition("inside each job")
        for value in table["p_value"]:
            assert ("&lt; 0.001" if value < 0.001 else f">{value:.3f}<") in section.partition("</section>")[0]
        result.save(tmp_path)
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "strata.csv"), table, check_dtype=False)

    @pytest.mark.parametrize("more", [{"fairness": "impact_ratio"}, {"fairness": "equal_opportunity within job"}])
    def test_without_strata_of_all_rows_there_is_no_such_table(self, more):
        y, group, scores, _ = problem(3, n=200, n_groups=2)
        job = np.random.default_rng(0).choice(["x", "y"], len(y))
        result = ff.audit(y, scores, sensitive_features={"sex": group, "job": job}, stack=False, **more)
        with pytest.raises(InvalidInputError, match="within job"):
            result.strata()
        assert "Mantel" not in result.to_html()
