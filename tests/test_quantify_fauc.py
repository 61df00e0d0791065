"""FAUC and FAUCI: Definition 3 and what the paper says about it, for every weight."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import fairfrontier as ff
from fairfrontier.identify._points import points_from_rates
from fairfrontier.metrics._contrasts import RowSets

from . import reference

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

WEIGHTS = {
    "none": None,
    "uniform": ff.UniformWeight(),
    "step": ff.StepWeight(0.8),
    "power": ff.PowerWeight(2.0, 0.3),
    "power below zero": ff.PowerWeight(-0.5),
    "point": ff.PointWeight(0.6),
    "point at one": ff.PointWeight(1.0),
    "table": ff.TabulatedWeight([0.1, 0.4, 0.9], [1.0, 0.0, 3.0]),
    "histogram": ff.TabulatedWeight([0.2, 0.5, 1.0], [2.0, 0.5]),
    "function": lambda x: 1.0 + x,
}
SETS = RowSets(("a", "b", "c"), ((0, 1, 2),), ("race",))


@st.composite
def models(draw, max_size=10):
    grid = draw(st.sampled_from([1, 2, 5, 20, 997]))
    k = draw(st.integers(1, max_size))
    of = st.lists(st.integers(0, grid).map(lambda i: i / grid), min_size=k, max_size=k)
    return np.array(draw(of)), np.array(draw(of))


weights = st.one_of(
    st.just(None),
    st.floats(0, 0.99).map(ff.StepWeight),
    st.builds(ff.PowerWeight, st.floats(-0.9, 20), st.floats(0, 0.99)),
    st.floats(0, 1).map(ff.PointWeight),
    st.lists(st.floats(0, 5), min_size=4, max_size=4)
    .filter(lambda v: sum(v) > 0.01)
    .map(lambda v: ff.TabulatedWeight([0.0, 0.3, 0.7, 1.0], v)),
    st.just(lambda x: 1.0 + np.sin(9 * x)),
)


def by_quadrature(curve, weight):
    """∫ TAF·w / ∫ w with nothing but the values of both."""
    breaks = sorted({0.0, 1.0, *curve.fairness, 0.1, 0.2, 0.3, 0.4, 0.5, 0.8, 0.9})
    pieces = list(itertools.pairwise(breaks))
    weigh = (lambda x: 1.0) if weight is None else weight
    top = sum(quad(lambda u: curve(u) * float(weigh(u)), a, b)[0] for a, b in pieces)
    return top / sum(quad(lambda u: float(weigh(u)), a, b)[0] for a, b in pieces)


class TestDefinition3:
    @given(models())
    def test_uniform_is_a_right_handed_riemann_sum(self, pair):
        assert ff.fauc(ff.taf_curve(*pair)) == pytest.approx(reference.fauc_by_sum(*pair), abs=1e-12)

    @pytest.mark.parametrize("interpolate", [False, True])
    @pytest.mark.parametrize("name", [n for n in WEIGHTS if "point" not in n])
    def test_against_quadrature(self, name, interpolate):
        rng = np.random.default_rng(7)
        for _ in range(5):
            f, a = np.append(rng.random(6), 1.0), np.append(rng.random(6), 0.2)
            curve = ff.taf_curve(f, a, interpolate=interpolate)
            assert ff.fauc(curve, WEIGHTS[name]) == pytest.approx(by_quadrature(curve, WEIGHTS[name]), abs=1e-8)

    @pytest.mark.parametrize("interpolate", [False, True])
    def test_functions_agree_with_closed_forms(self, interpolate):
        curve = ff.taf_curve([0.35, 0.6, 0.9, 1.0], [0.95, 0.9, 0.7, 0.4], interpolate=interpolate)
        for closed, function in (
            (ff.UniformWeight(), lambda x: 3.0),
            (ff.PowerWeight(2.5), lambda x: 7 * x**2.5),
            (ff.StepWeight(0.8), lambda x: float(x > 0.8)),
            (ff.TabulatedWeight([0.0, 1.0], [0.0, 2.0]), lambda x: x),
        ):
            assert ff.fauc(curve, function) == pytest.approx(ff.fauc(curve, closed), abs=1e-6)

    @given(models(), weights, st.booleans())
    def test_in_the_unit_interval(self, pair, weight, interpolate):
        assert -1e-12 <= ff.fauc(ff.taf_curve(*pair, interpolate=interpolate), weight) <= 1 + 1e-9

    @given(weights)
    def test_perfect_models_score_one_and_useless_ones_zero(self, weight):
        assert ff.fauc(ff.taf_curve([1.0], [1.0]), weight) == pytest.approx(1.0)
        assert ff.fauc(ff.taf_curve([1.0, 0.2], [0.0, 0.0]), weight) == 0.0

    @given(models(), weights, st.booleans())
    def test_linear_in_the_curve(self, pair, weight, interpolate):
        f, a = pair
        whole, half = (ff.fauc(ff.taf_curve(f, c * a, interpolate=interpolate), weight) for c in (1.0, 0.5))
        assert half == pytest.approx(whole / 2, abs=1e-12)

    def test_by_hand(self):
        curve = ff.taf_curve([0.8, 0.9, 1.0], [0.9, 0.8, 0.6])
        assert ff.fauc(curve) == pytest.approx(0.8 * 0.9 + 0.1 * 0.8 + 0.1 * 0.6)
        assert ff.fauc(curve, ff.StepWeight(0.8)) == pytest.approx((0.8 + 0.6) / 2)
        hull = ff.taf_curve([0.8, 1.0], [0.9, 0.6], interpolate=True)
        assert ff.fauc(hull, ff.StepWeight(0.8)) == pytest.approx(0.75)


class TestDirac:
    @given(models(), st.floats(0, 1), st.booleans())
    def test_fauc_is_the_curve_at_the_point(self, pair, level, interpolate):
        curve = ff.taf_curve(*pair, interpolate=interpolate)
        for at in (level, *curve.fairness):
            assert ff.fauc(curve, ff.PointWeight(at)) == pytest.approx(curve(at), abs=1e-9)

    @given(models())
    def test_at_zero_it_is_the_best_accuracy(self, pair):
        assert ff.fauc(ff.taf_curve(*pair), ff.PointWeight(0.0)) == pair[1].max()


class TestOrder:
    @given(models(), weights)
    def test_fauc_is_not_above_fauci(self, pair, weight):
        step, hull = (ff.fauc(ff.taf_curve(*pair, interpolate=i), weight) for i in (False, True))
        assert step <= hull + 1e-9

    @given(st.data(), weights)
    @settings(max_examples=60)
    def test_fauci_is_not_above_its_signed_form(self, data, weight):
        k = data.draw(st.integers(1, 6))
        cells = st.lists(st.integers(0, 10).map(lambda i: i / 10), min_size=4 * k, max_size=4 * k)
        drawn = np.array(data.draw(cells)).reshape(k, 4)
        points = points_from_rates(drawn[:, :3], SETS, drawn[:, 3], tuple(map(str, range(k))))
        if isinstance(weight, ff.PointWeight) and abs(weight.fairness - points.fairness.max()) < 1e-6:
            return  # where the two curves end, a solver's tolerance decides
        step, hull, signed = (ff.fauc(points.frontier(i), weight) for i in (False, True, "signed"))
        assert step <= hull + 1e-9
        assert hull <= signed + 1e-6

    @given(models(), models(max_size=1), weights, st.booleans())
    def test_another_model_never_lowers_fauc(self, pair, one, weight, interpolate):
        more = [np.concatenate(p) for p in zip(pair, one, strict=True)]
        before, after = (ff.fauc(ff.taf_curve(*p, interpolate=interpolate), weight) for p in (pair, more))
        assert before <= after + 1e-9

    @given(models(), models(), weights)
    def test_a_curve_that_is_nowhere_lower_has_no_smaller_fauc(self, one, other, weight):
        """The monotonicity that Theorem 1 asks of preferences."""
        both = [np.concatenate(p) for p in zip(one, other, strict=True)]
        upper = ff.taf_curve(*both)
        for part in (one, other):
            lower = ff.taf_curve(*part)
            assert np.all(lower(both[0]) <= upper(both[0]))
            assert ff.fauc(lower, weight) <= ff.fauc(upper, weight) + 1e-9

    @given(models(), weights, st.randoms(use_true_random=False))
    def test_order_of_models_does_not_matter(self, pair, weight, random):
        order = list(range(len(pair[0])))
        random.shuffle(order)
        assert ff.fauc(ff.taf_curve(*pair), weight) == ff.fauc(ff.taf_curve(*(p[order] for p in pair)), weight)


class TestScore:
    @pytest.mark.parametrize("interpolate", [False, True, "signed"])
    @pytest.mark.parametrize("name", WEIGHTS)
    def test_it_is_points_then_frontier_then_area(self, name, interpolate):
        rng = np.random.default_rng(3)
        y, group, scores = rng.integers(0, 2, 200), rng.integers(0, 3, 200), rng.random((200, 5))
        options = {
            "fairness": "equalized_odds",
            "accuracy": "balanced_accuracy",
            "threshold": 0.4,
            "sample_weight": rng.random(200),
            "include_constant": True,
        }
        points = ff.tradeoff_points(y, scores, sensitive_features=group, **options)
        score = ff.fauc_score(
            y, scores, sensitive_features=group, weight=WEIGHTS[name], interpolate=interpolate, **options
        )
        assert score == ff.fauc(points.frontier(interpolate), WEIGHTS[name])
        assert 0.4 < score < 1.0

    def test_intersections_and_no_constant_are_passed_on(self):
        y, scores = np.array([0, 1] * 8), np.linspace(0, 1, 16)
        groups = {"a": np.repeat([0, 1], 8), "b": np.tile(np.repeat([0, 1], 4), 2)}
        values = {
            mode: ff.fauc_score(y, scores, sensitive_features=groups, sensitive_mode=mode, include_constant=False)
            for mode in ("separate", "intersectional")
        }
        assert values["intersectional"] <= values["separate"]
