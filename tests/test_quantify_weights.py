"""Weights: closed forms against quadrature, and what is no weight."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import fairfrontier as ff
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._fauc import CallableWeight, as_weight

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

SMOOTH = {
    "uniform": (ff.UniformWeight(), []),
    "step": (ff.StepWeight(0.8), [0.8]),
    "step at zero": (ff.StepWeight(0.0), []),
    "power": (ff.PowerWeight(2.0, 0.3), [0.3]),
    "power without a bound": (ff.PowerWeight(3.0), []),
    "power zero": (ff.PowerWeight(0.0, 0.5), [0.5]),
    "power below zero": (ff.PowerWeight(-0.5, 0.1), [0.1]),
    "table of values": (ff.TabulatedWeight([0.1, 0.4, 0.9], [1.0, 0.0, 3.0]), [0.1, 0.4, 0.9]),
    "table over all": (ff.TabulatedWeight([0.0, 0.5, 1.0], [0.5, 2.0, 1.0]), [0.5]),
    "histogram": (ff.TabulatedWeight([0.2, 0.5, 1.0], [2.0, 0.5]), [0.2, 0.5]),
    "function": (CallableWeight(lambda x: np.exp(x)), []),
}


def integral(weight, breaks, x, power):
    edges = sorted({0.0, x, *(b for b in breaks if b < x)})
    return sum(quad(lambda u: u**power * float(weight(u)), a, b)[0] for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize("name", SMOOTH)
def test_integrals_agree_with_quadrature(name):
    weight, breaks = SMOOTH[name]
    for x in (0.0, 0.05, 0.1, 0.35, 0.4, 0.65, 0.8, 0.95, 1.0):
        at = np.array([x])
        assert weight.cumulative(at)[0] == pytest.approx(integral(weight, breaks, x, 0), abs=1e-9)
        assert weight.cumulative_moment(at)[0] == pytest.approx(integral(weight, breaks, x, 1), abs=1e-9)


@pytest.mark.parametrize("name", SMOOTH)
def test_normalized_runs_from_zero_to_one(name):
    weight, _ = SMOOTH[name]
    share = weight.normalized(np.linspace(0, 1, 101))
    assert share[-1] == pytest.approx(1.0, abs=1e-12)
    assert share[0] == 0.0
    assert np.all(np.diff(share) >= -1e-15)


def test_values_of_the_papers_family():
    np.testing.assert_allclose(ff.PowerWeight(2, 0.5)([0.4, 0.5, 0.6, 1.0]), [0.0, 0.0, 0.36, 1.0])
    np.testing.assert_allclose(ff.PowerWeight(0, 0.8)([0.8, 0.9]), ff.StepWeight(0.8)([0.8, 0.9]))
    assert ff.PowerWeight(-0.5)(0.0) == 0.0


@given(st.floats(0.01, 8), st.floats(0, 0.99), st.floats(0, 1))
def test_power_weight_without_power_is_the_step_weight(alpha, beta, x):
    at = np.array([x, 1.0])
    np.testing.assert_array_equal(ff.PowerWeight(0.0, beta).cumulative(at), ff.StepWeight(beta).cumulative(at))
    by_function = as_weight(lambda u: u**alpha)
    np.testing.assert_allclose(ff.PowerWeight(alpha).cumulative(at), by_function.cumulative(at), atol=1e-8)


def test_a_point_weight_jumps_at_its_level():
    weight = ff.PointWeight(0.7)
    np.testing.assert_array_equal(weight.cumulative(np.array([0.69, 0.7, 1.0])), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(weight.cumulative_moment(np.array([0.69, 0.7])), [0.0, 0.7])
    np.testing.assert_array_equal(weight([0.69, 0.7]), [0.0, np.inf])


def test_a_table_is_zero_outside_its_knots():
    weight = ff.TabulatedWeight([0.2, 0.6], [1.0, 3.0])
    np.testing.assert_allclose(weight([0.1, 0.2, 0.4, 0.6, 0.7]), [0.0, 1.0, 2.0, 3.0, 0.0])
    np.testing.assert_allclose(weight.cumulative(np.array([0.1, 0.6, 1.0])), [0.0, 0.8, 0.8])


def test_knots_that_nearly_coincide():
    weight = ff.TabulatedWeight([0.0, 0.5, np.nextafter(0.5, 1.0), 1.0], [1.0, 1.0, 3.0, 3.0])
    assert weight.cumulative(np.ones(1))[0] == pytest.approx(2.0, abs=1e-12)
    assert weight.cumulative_moment(np.ones(1))[0] == pytest.approx(0.125 + 3 * 0.375, abs=1e-12)


def test_none_is_uniform_and_a_weight_is_itself():
    step = ff.StepWeight(0.5)
    assert as_weight(step) is step
    assert isinstance(as_weight(None), ff.UniformWeight)


def test_a_function_is_called_with_floats():
    seen = []
    as_weight(lambda x: seen.append(type(x)) or 1.0).cumulative(np.array([0.5, 1.0]))
    assert set(seen) == {float}


def test_weights_compare_by_value_and_do_not_change():
    assert ff.StepWeight(0.8) == ff.StepWeight(0.8)
    with pytest.raises(AttributeError):
        ff.StepWeight(0.8).minimum = 0.5


def test_a_weight_of_ones_own():
    class Late(ff.Weight):
        def __call__(self, fairness):
            return 2.0 * np.asarray(fairness)

        def cumulative(self, fairness):
            return np.asarray(fairness) ** 2

        def cumulative_moment(self, fairness):
            return 2.0 * np.asarray(fairness) ** 3 / 3.0

    for interpolate in (False, True):
        curve = ff.taf_curve([0.5, 0.8, 1.0], [0.9, 0.7, 0.6], interpolate=interpolate)
        assert ff.fauc(curve, Late()) == pytest.approx(ff.fauc(curve, ff.PowerWeight(1.0)), abs=1e-12)


def test_zero_function_has_no_normalised_form():
    with pytest.raises(InvalidInputError, match="weight must have a positive integral"):
        as_weight(lambda x: 0.0).normalized(np.array([0.5]))
