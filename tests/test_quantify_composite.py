"""Composite FAUC against a sum over the cells of a grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier.quantify._weights import as_weight

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
