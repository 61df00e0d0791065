"""Randomising between neighbours on a path: evenly spaced biases, and expected values that are exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfrontier import tradeoff_points
from fairfrontier.benchmark._stacks import evenly_spaced_candidates, points_when_choosing


@given(seed=st.integers(0, 10_000), p=st.integers(1, 30), n=st.integers(1, 25))
def test_each_candidate_randomises_between_neighbours(seed, p, n):
    bias = np.random.default_rng(seed).normal(0, 0.2, p).round(1)
    probability = evenly_spaced_candidates(bias, n, largest=0.3, margin=0.1)
    assert probability.shape == (n, p)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert probability.min() >= 0
    for row in probability:
        used = np.flatnonzero(row)
        assert used[-1] - used[0] <= 1


def test_biases_are_evenly_spaced_from_what_counts_to_beyond_zero():
    bias = -np.array([0.5, 0.31, 0.30, 0.30, 0.05, 0.04, -0.2, -0.6])
    expected = evenly_spaced_candidates(bias, 11, largest=0.25, margin=0.1) @ bias
    np.testing.assert_allclose(expected, np.linspace(-0.30, 0.2, 11), atol=1e-12)


def test_a_path_on_one_side_of_zero_is_used_to_its_end():
    bias = np.array([0.2, 0.15, 0.1])
    np.testing.assert_allclose(evenly_spaced_candidates(bias, 3, largest=0.4, margin=0.1), np.eye(3), atol=1e-12)


def test_of_equal_biases_the_least_constrained_stack_is_taken():
    candidates = evenly_spaced_candidates(np.array([0.0, 0.0, 0.0]), 2, largest=0.2, margin=0.1)
    np.testing.assert_array_equal(candidates, [[1, 0, 0], [1, 0, 0]])


def test_expected_points_are_those_of_expected_decisions():
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    decisions = rng.integers(0, 2, (200, 6)).astype(float)
    points = tradeoff_points(y, decisions, sensitive_features=group)
    candidates = evenly_spaced_candidates(points.bias[:-1, 0], 5, largest=0.5, margin=0.1)
    expected = tradeoff_points(y, decisions @ candidates.T, sensitive_features=group, threshold=None)
    found = points_when_choosing(candidates, expected, points)
    np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-12)
    np.testing.assert_array_equal(found.rates, expected.rates)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_sign_of_the_bias_does_not_matter(sign):
    bias = np.array([0.4, 0.1, -0.2])
    np.testing.assert_allclose(
        evenly_spaced_candidates(sign * bias, 4, largest=0.5, margin=0.1),
        evenly_spaced_candidates(bias, 4, largest=0.5, margin=0.1),
    )
