"""TAF, TAFI and the signed hull: every statement of the paper's sections 2 and 3, under its hypotheses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

import fairfrontier as ff
from fairfrontier.identify._frontier import concave_majorant
from fairfrontier.identify._points import points_from_rates
from fairfrontier.metrics._contrasts import RowSets

from . import reference

# A busy machine is no error.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

ONE_CONTRAST = RowSets(("a", "b"), ((0, 1),), ("sex",))
SEVERAL = {
    "three groups": RowSets(tuple("abc"), ((0, 1, 2),), ("race",)),
    "equalized odds": RowSets(tuple("abcd"), ((0, 1), (2, 3)), ("sex", "sex")),
    "two attributes": RowSets(tuple("abcdefg"), ((0, 1, 2), (3, 4, 5, 6)), ("race", "age")),
}
LEVELS = np.linspace(0.0, 1.0, 41)


def values(grid):
    """Numbers in [0, 1] on a coarse grid (many ties), or any at all."""
    return st.integers(0, grid).map(lambda i: i / grid) if grid else st.floats(0.0, 1.0)


@st.composite
def models(draw, min_size=1, max_size=12):
    grid = draw(st.sampled_from([1, 2, 5, 20, 0]))
    k = draw(st.integers(min_size, max_size))
    of = st.lists(values(grid), min_size=k, max_size=k)
    return np.array(draw(of)), np.array(draw(of))


@st.composite
def rated_models(draw, sets, constant=None, max_size=8):
    """Points from group rates, with or without a perfectly fair model."""
    grid = draw(st.sampled_from([2, 5, 20, 1000]))
    k, s = draw(st.integers(1, max_size)), len(sets.names)
    cells = st.lists(values(grid), min_size=k * s, max_size=k * s)
    rates = np.array(draw(cells)).reshape(k, s)
    accuracy = np.array(draw(st.lists(values(grid), min_size=k, max_size=k)))
    if draw(st.booleans()) if constant is None else constant:
        rates, accuracy = np.vstack([rates, np.zeros(s)]), np.append(accuracy, 0.5)
    return points_from_rates(rates, sets, accuracy, tuple(f"m{i}" for i in range(len(accuracy))))


def levels_of(*curves):
    """Levels at, between, just left and just right of all knots, and a grid."""
    knots = np.unique(np.concatenate([c.fairness for c in curves]))
    near = [np.nextafter(knots, 0.0), np.nextafter(knots, 1.0), (knots[1:] + knots[:-1]) / 2]
    return np.clip(np.concatenate([LEVELS, knots, *near]), 0.0, 1.0)


class TestDefinition2AndAlgorithm1:
    @pytest.mark.parametrize("grid", [1, 2, 4, 10, 50, 10**6])
    def test_against_the_definition_on_random_models(self, grid):
        rng = np.random.default_rng(grid)
        for _ in range(500):
            k = int(rng.integers(1, 30))
            f, a = rng.integers(0, grid + 1, (2, k)) / grid
            curve = ff.taf_curve(f, a)
            assert curve.support.tolist() == reference.algorithm_1(f, a)[::-1]
            for level in (*f, *rng.random(3), 0.0, 1.0):
                assert curve(level) == reference.taf(f, a, level)

    @given(models(max_size=25))
    def test_support_is_the_pareto_optimal_set(self, pair):
        f, a = pair
        optimal = reference.pareto_optimal(f, a)
        curve = ff.taf_curve(f, a)
        assert {(f[i], a[i]) for i in curve.support} == {(f[i], a[i]) for i in optimal}
        assert set(curve.support) <= set(optimal)

    @pytest.mark.parametrize("grid", [1, 30, 1024, 10**9])
    def test_many_models_take_the_same_path_as_few(self, grid):
        rng = np.random.default_rng(grid)
        for spread in (0.01, 0.1, 10.0):
            f = rng.integers(0, grid + 1, 10_000) / grid
            a = np.clip(1 - f + spread * rng.standard_normal(10_000), 0, 1)
            a = np.round(a * grid) / grid
            assert ff.taf_curve(f, a).support.tolist() == reference.algorithm_1(f, a)[::-1]

    def test_every_model_on_the_frontier(self):
        f = np.linspace(0, 1, 20_000)
        assert ff.taf_curve(f, 1 - f).support.tolist() == list(range(20_000))

    def test_of_equal_models_the_first_is_kept(self):
        assert ff.taf_curve([0.5, 0.9, 0.9, 0.9], [0.4, 0.7, 0.8, 0.8]).support.tolist() == [2]

    def test_zero_right_of_the_fairest_model_and_flat_on_the_left(self):
        curve = ff.taf_curve([0.5, 0.8], [0.9, 0.7])
        np.testing.assert_array_equal(curve([0.0, 0.5, 0.6, 0.8, 0.81, 1.0]), [0.9, 0.9, 0.7, 0.7, 0.0, 0.0])

    def test_a_float_gives_a_float_and_an_array_an_array(self):
        curve = ff.taf_curve([0.5], [0.9])
        assert isinstance(curve(0.2), float)
        assert curve(np.zeros((2, 3))).shape == (2, 3)


class TestPropositionA1:
    @given(models())
    def test_i_closed_and_continuous_but_for_finitely_many_jumps(self, pair):
        curve = ff.taf_curve(*pair)
        for knot in curve.fairness:
            # Left-continuous with values from above at a knot: the graph's upper side is closed.
            left = np.nextafter(knot, -1.0)
            assert curve(knot) == reference.taf(*pair, knot)
            if left not in curve.fairness:
                assert curve(left) == curve(knot)
        inside = (curve.fairness[1:] + curve.fairness[:-1]) / 2
        inside = inside[(inside > curve.fairness[:-1]) & (inside < curve.fairness[1:])]
        assert np.isin(curve(inside), curve.accuracy).all()
        assert 0.0 <= ff.fauc(curve) <= 1.0

    @given(models(), st.booleans())
    def test_ii_non_increasing(self, pair, interpolate):
        curve = ff.taf_curve(*pair, interpolate=interpolate)
        assert np.all(np.diff(curve(np.sort(levels_of(curve)))) <= 1e-12)

    @given(models(min_size=2), st.data())
    def test_iii_more_models_never_lower_the_curve(self, pair, data):
        f, a = pair
        size = data.draw(st.integers(1, len(f) - 1))
        for interpolate in (False, True):
            part, whole = (ff.taf_curve(f[:n], a[:n], interpolate=interpolate) for n in (size, len(f)))
            levels = levels_of(part, whole)
            assert np.all(part(levels) <= whole(levels) + 1e-12)


class TestInvariance:
    @given(models(), st.randoms(use_true_random=False))
    def test_order_of_the_models(self, pair, random):
        f, a = pair
        order = list(range(len(f)))
        random.shuffle(order)
        for interpolate in (False, True):
            one = ff.taf_curve(f, a, interpolate=interpolate)
            other = ff.taf_curve(f[order], a[order], interpolate=interpolate)
            np.testing.assert_array_equal(one.fairness, other.fairness)
            np.testing.assert_array_equal(one.accuracy, other.accuracy)

    @given(models(), st.floats(0, 1), st.floats(0, 1), st.data())
    def test_a_dominated_model_changes_nothing(self, pair, less_fair, less_accurate, data):
        f, a = pair
        worse = data.draw(st.integers(0, len(f) - 1))
        f2, a2 = np.append(f, f[worse] * less_fair), np.append(a, a[worse] * less_accurate)
        for interpolate in (False, True):
            before, after = (ff.taf_curve(*p, interpolate=interpolate) for p in ((f, a), (f2, a2)))
            np.testing.assert_array_equal(before.support, after.support)
            assert ff.fauc(before) == ff.fauc(after)

    @given(rated_models(SEVERAL["two attributes"]))
    @settings(max_examples=25)
    def test_exchanged_groups_change_no_curve(self, points):
        swap = [2, 0, 1, 6, 5, 4, 3]
        other = points_from_rates(points.rates[:, swap], points.sets, points.accuracy, points.names)
        np.testing.assert_array_equal(points.fairness, other.fairness)
        one, two = points.frontier("signed"), other.frontier("signed")
        inside = LEVELS[np.abs(LEVELS - one.fairness[-1]) > 1e-6]
        np.testing.assert_allclose(one(inside), two(inside), atol=1e-7)


class TestTheorem2:
    @given(models())
    def test_tafi_is_the_hull_of_taf(self, pair):
        f, a = pair
        curve = ff.taf_curve(f, a, interpolate=True)
        for level in {*f.tolist(), 0.0, 0.25, 0.5, 0.75, 1.0}:
            assert curve(level) == pytest.approx(reference.tafi(f, a, level), abs=1e-9)

    @given(models())
    def test_taf_is_not_above_tafi(self, pair):
        step, hull = ff.taf_curve(*pair), ff.taf_curve(*pair, interpolate=True)
        levels = levels_of(step)
        assert np.all(step(levels) <= hull(levels) + 1e-12)
        assert set(hull.support) <= set(step.support)

    @given(rated_models(ONE_CONTRAST))
    @settings(max_examples=50)
    def test_tafi_is_the_taf_of_mixtures_where_biases_have_one_sign(self, points):
        rates = np.sort(points.rates, axis=1)[:, ::-1]  # the first group is never behind
        one_sided = points_from_rates(rates, points.sets, points.accuracy, points.names)
        curve = one_sided.frontier(interpolate=True)
        for level in (*LEVELS[::8], *curve.fairness):
            best = reference.best_mixture(one_sided.bias, one_sided.accuracy, level)
            if abs(level - curve.fairness[-1]) > 1e-9:
                assert curve(level) == pytest.approx(best or 0.0, abs=1e-7)
        np.testing.assert_allclose(one_sided.frontier("signed")(curve.fairness), curve.accuracy, atol=1e-9)

    def test_the_papers_theorem_fails_where_biases_have_two_signs(self):
        rates, accuracy = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([0.8, 0.6])
        points = points_from_rates(rates, ONE_CONTRAST, accuracy, ("for", "against"))
        assert points.frontier(interpolate=True)(1.0) == 0.0
        signed = points.frontier("signed")
        assert signed(1.0) == pytest.approx(0.7)
        np.testing.assert_allclose(signed.mixture[-1], [0.5, 0.5])


class TestSignedHull:
    def assert_optimal(self, points):
        signed, hull = points.frontier("signed"), points.frontier(interpolate=True)
        end = signed.fairness[-1]
        for level in (*LEVELS[::8], *signed.fairness):
            if abs(level - end) > 1e-6:  # the solvers differ by their tolerance in where mixtures end
                best = reference.best_mixture(points.bias, points.accuracy, level)
                assert signed(level) == pytest.approx(best or 0.0, abs=1e-7)
                assert signed(level) >= hull(level) - 1e-9
        assert reference.best_mixture(points.bias, points.accuracy, end - 1e-6) is not None
        assert end == 1.0 or reference.best_mixture(points.bias, points.accuracy, end + 1e-6) is None
        assert np.all(np.diff(signed.fairness) > 0)

    @given(rated_models(ONE_CONTRAST))
    @settings(max_examples=60)
    def test_one_contrast_is_a_linear_program_over_mixtures(self, points):
        self.assert_optimal(points)

    @pytest.mark.parametrize("name", SEVERAL)
    @given(data=st.data())
    @settings(max_examples=25)
    def test_several_contrasts_are_a_linear_program_over_mixtures(self, name, data):
        self.assert_optimal(data.draw(rated_models(SEVERAL[name])))

    @pytest.mark.parametrize("sets", [ONE_CONTRAST, *SEVERAL.values()], ids=["one", *SEVERAL])
    @given(data=st.data())
    @settings(max_examples=30)
    def test_its_mixtures_attain_what_it_says(self, sets, data):
        points = data.draw(rated_models(sets))
        signed = points.frontier("signed")
        np.testing.assert_allclose(signed.mixture.sum(axis=1), 1.0, atol=1e-12)
        assert signed.mixture.min() >= 0.0
        mixed = signed.mixture @ points.rates[signed.support]
        np.testing.assert_allclose(signed.mixture @ points.accuracy[signed.support], signed.accuracy, atol=1e-9)
        assert np.all(1.0 - points.sets.largest_gap(mixed) >= signed.fairness - 1e-6)

    @pytest.mark.parametrize("sets", [ONE_CONTRAST, SEVERAL["three groups"]], ids=["one", "three"])
    def test_score_biases_that_are_all_above_one(self, sets):
        rates = np.array([[3.0, 0.0, 1.0], [5.0, 1.0, 1.0]])[:, : len(sets.names)]
        curve = points_from_rates(rates, sets, np.array([0.4, 0.6]), ("a", "b")).frontier("signed")
        assert curve.fairness.tolist() == [0.0]
        assert curve.accuracy.tolist() == [0.6]

    @pytest.mark.parametrize("sets", [ONE_CONTRAST, SEVERAL["three groups"]], ids=["one", "three"])
    def test_one_model_that_is_the_fairest_and_the_most_accurate_is_one_knot(self, sets):
        rates = np.array([[0.5, 0.6, 0.55], [0.2, 0.9, 0.5]])[:, : len(sets.names)]
        curve = points_from_rates(rates, sets, np.array([0.8, 0.7]), ("best", "other")).frontier("signed")
        np.testing.assert_allclose(curve.fairness, [0.9], atol=1e-9)
        np.testing.assert_allclose(curve.accuracy, [0.8], atol=1e-9)

    @pytest.mark.parametrize("sets", [ONE_CONTRAST, SEVERAL["three groups"]], ids=["one", "three"])
    @pytest.mark.parametrize("far", [[3.0, 0.0, 1.0], [0.0, 3.0, 1.0]], ids=["above", "below"])
    def test_score_biases_around_one(self, sets, far):
        rates = np.array([far, [0.0, 0.0, 0.0]])[:, : len(sets.names)]
        curve = points_from_rates(rates, sets, np.array([0.9, 0.3]), ("far", "constant")).frontier("signed")
        np.testing.assert_allclose(curve([0.0, 0.5, 1.0]), [0.5, 0.4, 0.3], atol=1e-9)

    def test_large_scores_do_not_hide_the_constant(self):
        """Rates of a regression, far from 0 and nearly equal: the constant is fair, and a solver must find it."""
        nearly = [100.00000868575214, 99.99996082783385, 99.99999735361311, 99.99999113022888]
        rates = np.array([nearly, [4.837250509638118] * 4])
        sets = RowSets(tuple("abcd"), ((0, 1, 2, 3),), ("race",))
        points = points_from_rates(rates, sets, np.zeros(2), ("far", "constant"))
        assert points.frontier("signed").fairness[-1] == 1.0

    def test_one_model(self):
        points = points_from_rates(np.array([[0.7, 0.4]]), ONE_CONTRAST, np.array([0.8]), ("only",))
        curve = points.frontier("signed")
        np.testing.assert_allclose([curve.fairness[-1], curve.accuracy[-1]], [0.7, 0.8])

    def test_duplicated_models(self):
        rates = np.tile([[0.7, 0.4], [0.2, 0.2]], (50, 1))
        points = points_from_rates(rates, ONE_CONTRAST, np.tile([0.8, 0.6], 50), tuple(map(str, range(100))))
        assert set(points.frontier("signed").support) == {0, 1}


@pytest.mark.parametrize("n", [3, 10, 480, 520, 2000])
def test_hull_of_few_and_of_many_points_is_that_of_isotonic_regression(n):
    rng = np.random.default_rng(n)
    x, y = np.sort(rng.random(n)), np.sort(rng.random(n).round(2))[::-1]
    blocks = isotonic_regression(np.diff(y) / np.diff(x), weights=np.diff(x), increasing=False).blocks
    assert concave_majorant(x, y).tolist() == blocks.tolist()


class TestNearlyEqualLevels:
    """Fairness values that differ in the last digit are common: quotients of sums are rounded."""

    def test_hull(self):
        f = [0.9, np.nextafter(0.9, 1.0)]
        assert ff.fauc(ff.taf_curve(f, [0.9, 0.1], interpolate=True)) == pytest.approx(0.81, abs=1e-12)

    def test_signed_hull(self):
        rates = np.array([[0.3, 0.0], [np.nextafter(0.3, 1.0), 0.0]])
        points = points_from_rates(rates, ONE_CONTRAST, np.array([0.1, 0.9]), ("low", "high"))
        curve = points.frontier("signed")
        assert curve.fairness.tolist() == points.fairness[:1].tolist()
        assert curve.accuracy.tolist() == [0.9]

    def test_denormal_levels(self):
        curve = ff.taf_curve([0.0, 5e-324, 1.0], [1.0, 0.5, 0.5], interpolate=True)
        assert curve(0.5) == pytest.approx(0.75)


def test_repr_says_what_the_curve_is():
    assert repr(ff.taf_curve([0.5, 1.0], [0.9, 0.6])) == (
        "TAFCurve(2 knots, step; accuracy 0.9000 at fairness 0.5000 to 0.6000 at 1.0000)"
    )
