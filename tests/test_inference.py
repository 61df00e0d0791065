"""Intervals, comparisons, bands and honest curves: against brute force, at limits, and by simulation."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.quantify._bands import taf_bands
from fairfrontier.quantify._bootstrap import Block, replicates, sample, weighted
from fairfrontier.quantify._fauc import CallableWeight
from fairfrontier.quantify._honest import honest_curve, honest_curve_of_bias, honest_taf
from fairfrontier.quantify._inference import compare_fauc, fauc_interval
from fairfrontier.quantify._resampling import Area, contenders, gather


def rows(n=300, k=12, seed=0, groups=("a", "b")):
    generator = np.random.default_rng(seed)
    sex = generator.choice(groups, n)
    y = generator.random(n) < np.where(sex == groups[0], 0.5, 0.3)
    quality = generator.uniform(0.0, 0.6, k)
    lift = generator.uniform(0.0, 0.3, k) * (sex == groups[0])[:, None]
    scores = np.clip(quality * y[:, None] + lift + generator.random((n, k)) * (1 - quality), 0, 1)
    return y, scores, sex


MEASURES = ["demographic_parity", "equal_opportunity", "equalized_odds"]


@pytest.mark.parametrize("accuracy", ["accuracy", "balanced_accuracy", "brier"])
@pytest.mark.parametrize("fairness", MEASURES)
@pytest.mark.parametrize("groups", [("a", "b"), ("a", "b", "c")])
@pytest.mark.parametrize("weights", [None, "some"])
def test_weights_of_a_resample_give_the_points_of_the_resample(accuracy, fairness, groups, weights):
    y, scores, sex = rows(groups=groups)
    generator = np.random.default_rng(1)
    given = None if weights is None else generator.uniform(0.5, 2.0, len(y))
    data = sample(y, scores, sensitive_features=sex, fairness=fairness, accuracy=accuracy, sample_weight=given)
    drawn = generator.integers(0, len(y), (5, len(y)))
    counts = np.stack([np.bincount(one, minlength=len(y)) for one in drawn]).astype(np.float32)
    block = weighted(data, counts[:, data.order])
    for b, index in enumerate(drawn):
        expected = ff.tradeoff_points(
            y[index],
            scores[index],
            sensitive_features=sex[index],
            fairness=fairness,
            accuracy=accuracy,
            sample_weight=None if given is None else given[index],
        )
        np.testing.assert_allclose(block.rates[b].T, expected.rates, atol=1e-12)
        np.testing.assert_allclose(block.accuracy[b], expected.accuracy, atol=1e-12)


@pytest.mark.parametrize("accuracy", ["r2", "exp_mse"])
def test_regression_resamples_agree_with_the_points(accuracy):
    generator = np.random.default_rng(0)
    y, sex = generator.random(200), generator.choice(["a", "b"], 200)
    scores = 0.7 * y[:, None] + 0.3 * generator.random((200, 4))
    data = sample(y, scores, sensitive_features=sex, accuracy=accuracy)
    index = generator.integers(0, 200, 200)
    counts = np.bincount(index, minlength=200)[None].astype(np.float32)
    block = weighted(data, counts[:, data.order])
    expected = ff.tradeoff_points(y[index], scores[index], sensitive_features=sex[index], accuracy=accuracy)
    np.testing.assert_allclose(block.rates[0].T, expected.rates, atol=1e-9)
    np.testing.assert_allclose(block.accuracy[0], expected.accuracy, atol=1e-9)


@pytest.mark.parametrize("interpolate", [False, True, "signed"])
@pytest.mark.parametrize(
    "weight",
    [None, ff.StepWeight(0.8), ff.PowerWeight(3, 0.5), ff.PointWeight(0.9), ff.TabulatedWeight([0, 0.6, 1], [1, 2, 5])],
)
def test_area_of_many_replicates_is_fauc_of_each(interpolate, weight):
    y, scores, sex = rows()
    data = sample(y, scores, sensitive_features=sex)
    (block,) = replicates(data, 6, method="multinomial", stratify=False, generator=np.random.default_rng(0))
    areas = Area(data.sets, weight, interpolate)(block)
    for b, area in enumerate(areas):
        points = ff.TradeoffPoints(
            1 - np.abs(block.rates[b, 0] - block.rates[b, 1]),
            block.accuracy[b],
            data.points.names,
            block.rates[b].T,
            data.sets,
        )
        assert area == pytest.approx(ff.fauc(points.frontier(interpolate), weight), abs=1e-12)


def test_area_of_a_plain_function_is_near_its_quadrature():
    y, scores, sex = rows()
    data = sample(y, scores, sensitive_features=sex)

    def weight(x):
        return np.exp(3 * x)

    exact = ff.fauc(data.points.frontier(), CallableWeight(weight))
    assert Area(data.sets, weight, False)(data.observed)[0] == pytest.approx(exact, abs=1e-7)


def test_contenders_are_the_models_that_can_reach_a_frontier():
    sets = sample(*rows()[:2], sensitive_features=rows()[2]).sets
    fairness, accuracy = np.array([[0.9, 0.8, 0.7, 0.6]]), np.array([[0.6, 0.7, 0.5, 0.71]])

    def block(move):
        return Block(np.stack([1 - fairness, 0 * fairness], axis=1), accuracy + move * np.array([[0, 0, 0.06, -0.1]]))

    # The third model is 0.2 short of the second. It gains 0.06 in the replicate: too little, but for a stretch of 4.
    assert contenders(block(0), block(1), sets, 1.0).tolist() == [True, True, False, False]
    assert contenders(block(0), block(1), sets, 4.0).tolist() == [True, True, True, False]


def crowd(spread, k=60, seed=0):
    """Points of k models with noise of unit size and a true spread of so many times that, and replicates of them."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(0, 0.01, (201, 3, k))
    points = 0.6 + noise[0] + spread * generator.normal(0, 0.01, (3, k))
    return Block(points[None, :2], points[None, 2]), Block(points[:2] + noise[1:, :2], points[2] + noise[1:, 2])


def test_points_that_differ_by_noise_alone_are_gathered():
    start, replicas = crowd(0.0)
    found = gather(start, replicas, has_constant=False)
    assert found.moved
    assert found.start.accuracy.std() < 0.25 * start.accuracy.std()
    assert found.start.accuracy.mean() == pytest.approx(start.accuracy.mean())


@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_gathered_points_spread_as_the_truth(spread):
    ratios = []
    for seed in range(20):
        start, replicas = crowd(spread, k=300, seed=seed)
        found = gather(start, replicas, has_constant=False)
        assert found.least < np.sqrt(1 - 1 / (1 + spread**2)) * 1.15
        assert found.least < found.most
        ratios.append(found.start.accuracy.std() / (0.01 * spread))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)


def test_points_that_really_differ_stay_and_the_constant_model_does():
    start, replicas = crowd(50.0)
    assert gather(start, replicas, has_constant=False).start is start
    start, replicas = crowd(0.0)
    found = gather(start, replicas, has_constant=True)
    assert found.start.accuracy[0, -1] == start.accuracy[0, -1]
    assert found.start.accuracy[0, :-1].std() < 0.25 * start.accuracy[0, :-1].std()


def test_nothing_is_gathered_of_copies_or_of_few_models():
    start, replicas = crowd(0.0, k=3)
    assert not gather(start, replicas, has_constant=False).moved
    copies = np.zeros(30, dtype=int)
    found = gather(start.select(copies), replicas.select(copies), has_constant=False)
    assert not found.moved
    assert found.least == found.most == 1.0


@pytest.mark.parametrize("method", ["multinomial", "bayesian"])
def test_stratified_resamples_keep_the_size_of_each_group(method):
    _, _, sex = rows()
    # With the group as label, a model that always decides 0 is right on the share of the other group.
    data = sample(sex == "a", np.zeros((len(sex), 1)), sensitive_features=sex)
    spread = {}
    for stratify in (False, True):
        generator = np.random.default_rng(0)
        (block,) = replicates(data, 50, method=method, stratify=stratify, generator=generator)
        spread[stratify] = block.accuracy[:, 0].std()
    assert spread[True] < 1e-12
    assert spread[False] > 0.01


def test_interval_is_reproducible_and_ordered():
    y, scores, sex = rows(600)
    one, two = (fauc_interval(y, scores, sensitive_features=sex, n_resamples=100, random_state=3) for _ in range(2))
    assert (one.low, one.high) == (two.low, two.high)
    np.testing.assert_array_equal(one.samples, two.samples)
    assert 0 <= one.low <= one.corrected <= one.high <= 1
    assert one.estimate == pytest.approx(ff.fauc_score(y, scores, sensitive_features=sex), abs=1e-12)
    assert len(one.samples) == 100
    wide = fauc_interval(y, scores, sensitive_features=sex, n_resamples=100, random_state=3, confidence=0.99)
    assert wide.low <= one.low
    assert wide.high >= one.high


def test_replicates_in_several_blocks_are_the_resamples_that_were_drawn():
    y, scores, sex = rows(30_000, k=3)
    data = sample(y, scores, sensitive_features=sex)
    blocks = list(replicates(data, 150, method="multinomial", stratify=False, generator=np.random.default_rng(0)))
    assert len(blocks) > 1
    accuracy = np.concatenate([block.accuracy for block in blocks])
    generator = np.random.default_rng(0)
    drawn = [data.order[generator.integers(0, len(y), len(y))] for _ in range(150)]
    for b in (0, 90, 149):
        index = drawn[b]
        expected = ff.tradeoff_points(y[index], scores[index], sensitive_features=sex[index])
        np.testing.assert_allclose(accuracy[b], expected.accuracy, atol=1e-12)


@pytest.mark.parametrize("include_constant", [True, False])
@pytest.mark.parametrize("interpolate", [False, True])
def test_screening_out_models_does_not_change_the_resamples(include_constant, interpolate):
    y, scores, sex = rows(500, k=60, seed=2)
    options = {"sensitive_features": sex, "include_constant": include_constant}
    interval = fauc_interval(y, scores, interpolate=interpolate, n_resamples=300, random_state=0, **options)
    data = sample(y, scores, **options)
    (block,) = replicates(data, 300, method="multinomial", stratify=False, generator=np.random.default_rng(0))
    np.testing.assert_allclose(interval.samples, Area(data.sets, None, interpolate)(block), atol=1e-12)


def test_bayesian_and_multinomial_resamples_spread_alike():
    y, scores, sex = rows(1000)
    spread = [
        fauc_interval(y, scores, sensitive_features=sex, n_resamples=400, method=m, random_state=0).samples.std()
        for m in ("multinomial", "bayesian")
    ]
    assert spread[0] == pytest.approx(spread[1], rel=0.2)


def test_a_family_does_not_differ_from_itself():
    y, scores, sex = rows()
    same = compare_fauc(y, scores, scores, sensitive_features=sex, n_resamples=60, random_state=0)
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_comparison_is_antisymmetric_and_paired():
    y, scores, sex = rows(800)
    options = {"sensitive_features": sex, "n_resamples": 200, "random_state": 5}
    forth = compare_fauc(y, scores[:, :6], scores[:, 6:], **options)
    back = compare_fauc(y, scores[:, 6:], scores[:, :6], **options)
    assert forth.difference == pytest.approx(-back.difference)
    assert forth.low == pytest.approx(-back.high, abs=2e-3)
    alone = [fauc_interval(y, part, **options).samples.std() for part in (scores[:, :6], scores[:, 6:])]
    assert forth.samples.std() < np.hypot(*alone)


@pytest.mark.parametrize("seed", [5, 7, 10])
def test_p_value_is_the_level_at_which_the_interval_touches_zero(seed):
    y, scores, sex = rows(250, k=12, seed=seed)
    options = {"sensitive_features": sex, "n_resamples": 999, "random_state": 5}
    families = scores[:, ::2], scores[:, 1::2]
    p = compare_fauc(y, *families, **options).p_value
    assert 0.01 < p < 0.99
    wider = compare_fauc(y, *families, confidence=1 - 0.9 * p, **options)
    assert wider.low <= 0 <= wider.high
    tighter = compare_fauc(y, *families, confidence=1 - min(1.1 * p, 0.999), **options)
    assert tighter.low > 0 or tighter.high < 0


@pytest.mark.parametrize("seed", range(8))
def test_p_value_is_small_exactly_if_the_interval_excludes_zero(seed):
    y, scores, sex = rows(300, k=8, seed=seed)
    result = compare_fauc(y, scores[:, :4], scores[:, 4:], sensitive_features=sex, n_resamples=100, random_state=0)
    assert (result.p_value < 0.05) == (result.low > 0 or result.high < 0)


def test_comparison_of_level_families_is_not_wider_than_its_resamples_spread():
    population = _simulation().Population("level", 60)
    ratios = []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        y, group, decisions = population.draw(2000, generator)
        options = {"sensitive_features": group, "weight": ff.StepWeight(0.8), "n_resamples": 200}
        result = compare_fauc(y, decisions[:, :30], decisions[:, 30:], random_state=generator, **options)
        ratios.append((result.high - result.low) / (2 * 1.96 * result.samples.std()))
    # At the estimated points, which noise has driven apart, it would be a third wider.
    assert np.mean(ratios) < 1.05


def one_model(gap, n=2000):
    """Labels, decisions and groups in which one model accepts 60 % of a group and so much less of the other."""
    group, index = np.repeat([0, 1], n // 2), np.arange(n) % (n // 2)
    decisions = index < n // 2 * np.where(group == 0, 0.6, 0.6 - gap)
    return np.arange(n) // 3 % 2, decisions[:, None].astype(float), group


def test_interval_is_the_usual_one_where_fauc_is_nearly_linear():
    y, decisions, group = one_model(0.3)
    options = {"sensitive_features": group, "include_constant": False, "weight": ff.StepWeight(0.5)}
    interval = fauc_interval(y, decisions, n_resamples=400, random_state=0, **options)
    assert (interval.high - interval.low) / (2 * 1.96 * interval.samples.std()) == pytest.approx(1.0, abs=0.06)


def test_interval_allows_for_the_bias_at_a_perfectly_fair_model():
    y, decisions, group = one_model(0.0)
    options = {"sensitive_features": group, "include_constant": False, "weight": ff.StepWeight(0.5)}
    interval = fauc_interval(y, decisions, n_resamples=400, random_state=0, **options)
    # The model looks perfectly fair. FAUC is accuracy·(1 − 2·|bias|), and a bias of the size of its error costs, on
    # average, accuracy·2·√(2/π)·error.
    error = np.sqrt(0.6 * 0.4 * (1 / 1000 + 1 / 1000))
    cost = np.mean(decisions[:, 0] == y) * 2.0 * np.sqrt(2.0 / np.pi) * error
    assert interval.estimate - interval.low > 1.96 * np.hypot(cost, interval.samples.std())


@pytest.mark.parametrize("weight", [ff.StepWeight(0.9), ff.StepWeight(0.95), ff.PointWeight(0.95)])
def test_a_narrow_weight_gets_the_areas_under_the_bands(weight):
    """A fair model, four groups, the smallest of 60 rows: it looks far from fair, and the truth is its accuracy."""
    held = []
    for seed in range(12):
        generator = np.random.default_rng(10_000 + seed)
        group = generator.choice(list("abcd"), 1500, p=[0.37, 0.44, 0.15, 0.04])
        y = generator.integers(0, 2, 1500)
        decision = np.where(generator.random(1500) < 0.73, y, 1 - y)
        options = {"sensitive_features": group, "weight": weight, "n_resamples": 100, "random_state": 0}
        interval = fauc_interval(y, {"m": decision}, **options)
        held.append(interval.low <= 0.73 <= interval.high)
        assert interval.low > 0.4
        assert interval.high < 0.83
        comparison = compare_fauc(y, {"m": decision}, {"nobody": np.zeros(1500)}, **options)
        assert comparison.low <= 0.23 <= comparison.high
        assert (comparison.p_value < 0.05) == (comparison.low > 0 or comparison.high < 0)
        pairs = {"sensitive_features": (group, group[::-1]), "paired": False}
        apart = compare_fauc((y, y[::-1]), {"m": decision}, {"m": decision[::-1]}, **options | pairs)
        assert apart.low <= 0.0 <= apart.high
    assert np.mean(held) > 0.9
    # The same replicates as `taf_bands` draws after those of the interval.
    options.pop("weight")
    bands = taf_bands(y, {"m": decision}, **options)
    assert abs(ff.fauc(bands.lower, weight) - interval.low) < 0.03
    assert abs(ff.fauc(bands.upper, weight) - interval.high) < 0.03


def test_a_tiny_group_of_another_attribute_hides_no_large_gap():
    """A well-known gap of .4 in one attribute: no weight above fairness .8 sees the model, whatever the other has."""
    generator = np.random.default_rng(0)
    sex, race = generator.integers(0, 2, 3000), np.where(np.arange(3000) < 30, "rare", "common")
    y = generator.random(3000) < 0.4
    decision = generator.random(3000) < 0.3 + 0.4 * sex
    sensitive = {"sex": sex, "race": race}
    bands = taf_bands(y, {"m": decision}, sensitive_features=sensitive, random_state=0)
    for weight in (ff.StepWeight(0.8), ff.PointWeight(0.9)):
        interval = fauc_interval(y, {"m": decision}, sensitive_features=sensitive, weight=weight, random_state=0)
        assert interval.high < max(np.mean(y), 1 - np.mean(y)) + 0.03
        assert ff.fauc(bands.upper, weight) < max(np.mean(y), 1 - np.mean(y)) + 0.05


def test_an_interval_holds_nothing_impossible():
    """41 rows in the smallest group: not above the best accuracy, not below that of the constant, beyond noise."""
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [359, 200, 41])
    y = generator.integers(0, 2, 600)
    decision = np.where(generator.random(600) < 0.73, y, 1 - y)
    interval = fauc_interval(y, {"m": decision}, sensitive_features=group, random_state=0)
    best = max(np.mean(decision == y), np.mean(y), 1 - np.mean(y))
    assert interval.high <= best + 2.6 * 0.5 / np.sqrt(600)
    assert interval.low >= 0.5 - 2.6 * 0.5 / np.sqrt(600)


def test_bands_hold_the_estimate_and_narrow_with_the_rows():
    narrow = []
    for n in (300, 4800):
        y, scores, sex = rows(n)
        bands = taf_bands(y, scores, sensitive_features=sex, n_resamples=200, random_state=0)
        curve = bands.estimate(bands.grid)
        assert np.all(bands.low <= curve + 1e-12)
        assert np.all(curve <= bands.high + 1e-12)
        narrow.append(np.mean(bands.high - bands.low))
    assert narrow[1] < 0.5 * narrow[0]


def test_bands_of_the_hull_and_on_a_grid():
    y, scores, sex = rows(500)
    bands = taf_bands(
        y, scores, sensitive_features=sex, grid=[0.5, 0.9], interpolate=True, n_resamples=60, random_state=0
    )
    assert bands.low.shape == (2,)
    assert bands.estimate.linear
    with pytest.raises(InvalidInputError, match="signed hull"):
        taf_bands(y, scores, sensitive_features=sex, interpolate="signed")
    with pytest.raises(InvalidInputError, match="grid must hold levels"):
        taf_bands(y, scores, sensitive_features=sex, grid=[0.5, 1.5])


@pytest.mark.parametrize("seed", range(5))
def test_the_honest_curve_of_one_contrast_follows_from_biases(seed):
    rng = np.random.default_rng(seed)
    y, sex = rng.integers(0, 2, (2, 400)), rng.choice(["f", "m"], (2, 400))
    scores = rng.random((400, 12)) + 0.4 * y[0][:, None] * rng.random(12)
    chosen, other = (ff.tradeoff_points(y[i], np.clip(scores - 0.2, 0, 1), sensitive_features=sex[i]) for i in range(2))
    expected = honest_curve(chosen, other)
    found = honest_curve_of_bias(chosen.accuracy, chosen.bias[:, 0], other.accuracy, other.bias[:, 0])
    np.testing.assert_array_equal(found.support, expected.support)
    np.testing.assert_allclose(found.fairness, expected.fairness, atol=1e-12)
    np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-12)


def test_honest_curve_without_noise_is_the_curve():
    y, scores, sex = rows()
    points = ff.tradeoff_points(y, scores, sensitive_features=sex)
    curve, honest = points.frontier(), honest_curve(points, points)
    np.testing.assert_allclose(honest.fairness, curve.fairness, atol=1e-12)
    np.testing.assert_allclose(honest.accuracy, curve.accuracy, atol=1e-12)


def test_honest_taf_of_one_dominant_model_is_that_model():
    generator = np.random.default_rng(0)
    y, sex = np.tile([0, 1], 200), np.repeat(["a", "b"], 200)
    scores = np.column_stack([y, generator.random((400, 5))])
    honest = honest_taf(y, scores, sensitive_features=sex, random_state=0)
    assert ff.fauc(honest) == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(honest.mixture.sum(axis=1), 1.0)


def test_honest_taf_is_descending_and_reproducible():
    y, scores, sex = rows(400)
    one, two = (honest_taf(y, scores, sensitive_features=sex, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(one.accuracy, two.accuracy)
    assert np.all(np.diff(one.fairness) > 0)
    assert np.all(np.diff(one.accuracy) <= 1e-12)
    assert one.fairness[-1] == 1.0


def test_errors_say_what_to_do():
    y, scores, sex = rows(60)
    with pytest.raises(InvalidInputError, match="got a function"):
        fauc_interval(y, scores, sensitive_features=sex, accuracy=lambda a, b: 1.0)
    with pytest.raises(InvalidInputError, match="confidence must be in"):
        fauc_interval(y, scores, sensitive_features=sex, confidence=95)
    with pytest.raises(InvalidInputError, match="n_resamples must be at least"):
        fauc_interval(y, scores, sensitive_features=sex, n_resamples=3)
    with pytest.raises(InvalidInputError, match="did you mean 'bayesian'"):
        fauc_interval(y, scores, sensitive_features=sex, method="bayes")
    with pytest.raises(InvalidInputError, match="must not name a model 'constant'"):
        compare_fauc(y, {"constant": scores[:, 0]}, scores, sensitive_features=sex)
    with pytest.raises(InvalidInputError, match="y_preds_b must have as many rows"):
        compare_fauc(y, scores, scores[:5], sensitive_features=sex)
    lonely = np.where(np.arange(60) == 7, "c", sex)
    with pytest.raises(GroupError, match="method='bayesian'"):
        fauc_interval(y, scores, sensitive_features=lonely, random_state=0)
    assert fauc_interval(y, scores, sensitive_features=lonely, method="bayesian", random_state=0).low >= 0
    with pytest.raises(GroupError, match="n_splits=5 leaves a part without any row"):
        honest_taf(y, scores, sensitive_features=lonely)


def _simulation():
    path = Path(__file__).parents[1] / "examples" / "simulate_coverage.py"
    spec = importlib.util.spec_from_file_location("simulate_coverage", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["few", "level"])
def test_small_coverage_simulation(kind):
    # With 40 draws, coverage of 95 % gives 34 or more hits but in one case of a thousand.
    result = _simulation().simulate(kind, {"few": 8, "level": 40}[kind], 500, 40, n_resamples=100)
    assert result.interval >= 34 / 40
    assert result.comparison >= 34 / 40
    assert result.bands >= 34 / 40
    if kind == "level":
        assert result.percentile < 0.8
        assert result.naive_bias > 0.01
        assert abs(result.honest_bias) < 0.25 * result.naive_bias + 2 * result.honest_error


def test_simulated_population_has_the_stated_rates():
    module = _simulation()
    population = module.Population("wild", 20)
    y, group, decisions = population.draw(200_000, np.random.default_rng(0))
    points = ff.tradeoff_points(y, decisions, sensitive_features=group)
    truth = population.points(points.names, points.sets)
    np.testing.assert_allclose(points.accuracy, truth.accuracy, atol=0.005)
    np.testing.assert_allclose(points.fairness, truth.fairness, atol=0.01)


def test_block_selects_models():
    block = Block(np.zeros((2, 2, 3)), np.arange(6.0).reshape(2, 3))
    assert block.select(np.array([2])).accuracy.tolist() == [[2.0], [5.0]]
