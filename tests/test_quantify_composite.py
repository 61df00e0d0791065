"""Composite FAUC against a sum over the cells of a grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._fauc import as_weight

from . import reference

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

WEIGHTS = [
    None,
    ff.StepWeight(0.5),
    ff.PowerWeight(2.0, 0.3),
    ff.TabulatedWeight([0.1, 0.4, 0.9], [1.0, 0.0, 3.0]),
    ff.PointWeight(0.6),
    lambda x: 1.0 + x,
]


def cumulative(weight):
    known = as_weight(weight)
    return lambda x: float(known.normalized(np.array([x]))[0]) if x > 0 else 0.0


@pytest.mark.parametrize("m", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=40)
def test_against_a_grid(m, data):
    grid = data.draw(st.sampled_from([2, 5, 997]))
    k = data.draw(st.integers(1, 5))
    number = st.integers(0, grid).map(lambda i: i / grid)
    levels = np.array(data.draw(st.lists(number, min_size=k * m, max_size=k * m))).reshape(k, m)
    accuracy = np.array(data.draw(st.lists(number, min_size=k, max_size=k)))
    weights = data.draw(st.lists(st.sampled_from(WEIGHTS), min_size=m, max_size=m))
    expected = reference.composite(levels, accuracy, [cumulative(w) for w in weights])
    assert ff.composite_fauc(levels, accuracy, weights=weights) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda w: type(w).__name__)
def test_one_attribute_gives_fauc(weight):
    rng = np.random.default_rng(0)
    f, a = rng.random((2, 20))
    expected = ff.fauc(ff.taf_curve(f, a), weight)
    assert ff.composite_fauc(f, a, weights=weight) == pytest.approx(expected, abs=1e-9)
    assert ff.composite_fauc({"sex": f}, a, weights=[weight]) == pytest.approx(expected, abs=1e-9)


def test_one_weight_serves_every_attribute():
    rng = np.random.default_rng(1)
    f, a = rng.random((12, 2)), rng.random(12)
    step = ff.StepWeight(0.5)
    assert ff.composite_fauc(f, a, weights=step) == ff.composite_fauc(f, a, weights=[step, step])
    assert ff.composite_fauc(f, a, weights=step) != ff.composite_fauc(f, a, weights=[step, None])


def test_the_points_of_two_attributes():
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 2, 300), rng.random((300, 8))
    groups = {"sex": rng.integers(0, 2, 300), "race": rng.integers(0, 3, 300)}
    points = ff.tradeoff_points(y, scores, sensitive_features=groups)
    value = ff.composite_fauc(points.attribute_fairness, points.accuracy)
    levels = np.column_stack(list(points.attribute_fairness.values()))
    expected = reference.composite(levels, points.accuracy, [lambda x: x] * 2)
    assert value == pytest.approx(expected, abs=1e-12)
    # A model must be fair on both at once, so that neither attribute alone can score less.
    assert value <= min(ff.fauc(ff.taf_curve(f, points.accuracy)) for f in points.attribute_fairness.values())


def surface(k, m, seed):
    """Return fairness (k, m) and accuracy (k,) of models none of which dominates another."""
    points = np.abs(np.random.default_rng(seed).normal(size=(k, m + 1)))
    points = 0.5 + 0.5 * points / np.linalg.norm(points, axis=1, keepdims=True)
    return points[:, :m], points[:, m]


@pytest.mark.parametrize(("k", "m"), [(1, 1), (5, 2), (130, 3), (1100, 2)])
@pytest.mark.parametrize("weights", [None, ff.StepWeight(0.6)])
def test_an_approximation_is_as_near_as_it_says(k, m, weights):
    levels, accuracy = surface(k, m, seed=k)
    exact = ff.composite_fauc(levels, accuracy, weights=weights)
    near = [
        ff.composite_fauc(levels, accuracy, weights=weights, tolerance=0.01, random_state=seed) for seed in range(3)
    ]
    np.testing.assert_allclose(near, exact, atol=0.01)
    if k > 1:
        assert len(set(near)) == 3
    again = ff.composite_fauc(levels, accuracy, weights=weights, tolerance=0.01, random_state=0)
    assert again == near[0]


def test_a_smaller_tolerance_comes_nearer():
    levels, accuracy = surface(40, 3, seed=0)
    exact = ff.composite_fauc(levels, accuracy)
    errors = [
        [abs(ff.composite_fauc(levels, accuracy, tolerance=t, random_state=s) - exact) for s in range(6)]
        for t in (0.05, 0.004)
    ]
    assert max(errors[1]) <= 0.004
    assert np.mean(errors[1]) < np.mean(errors[0])


def test_too_many_models_and_attributes_are_refused_or_approximated():
    levels, accuracy = surface(200, 12, seed=0)
    with pytest.raises(InvalidInputError, match="12 attributes; got 200, which could take hours: pass tolerance="):
        ff.composite_fauc(levels, accuracy)
    value = ff.composite_fauc(levels, accuracy, tolerance=0.01)
    others = np.random.default_rng(1).random((20_000, 12))
    fair = np.all(levels[:, None, :] >= others, axis=2)  # (models, random levels)
    values = np.where(fair, accuracy[:, None], 0.0).max(axis=0)
    assert value == pytest.approx(values.mean(), abs=0.01 + 5 * values.std() / np.sqrt(len(values)))
    # Of 200 models of which one dominates the others, only one counts.
    levels[0], accuracy[0] = 1.0, 1.0
    assert ff.composite_fauc(levels, accuracy) == pytest.approx(1.0)


def test_an_impossible_tolerance_is_refused():
    levels, accuracy = surface(5, 2, seed=0)
    with pytest.raises(InvalidInputError, match=r"tolerance must be about .* got 0.0001, which takes more than"):
        ff.composite_fauc(levels, accuracy, tolerance=1e-4)
    for tolerance in (0.0, 1e-9, 2.0):
        with pytest.raises(InvalidInputError, match=r"tolerance must be in \[0.0001, 1\]"):
            ff.composite_fauc(levels, accuracy, tolerance=tolerance)
