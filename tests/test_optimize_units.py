"""A regression does not depend on the units of its target: predictions follow y → a·y + b, fairness and R² stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from fairfrontier import FairStacksRegressor
from fairfrontier.chunks import array_chunks


def problem(seed, n_rows=240):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n_rows)
    X = rng.normal(size=(n_rows, 3)) + (group == "b")[:, None] * [0.8, 0.0, 0.2]
    y = X @ [1.0, 0.5, -0.3] + rng.normal(size=n_rows)
    H = np.stack([X[:, 0], 0.8 * y + rng.normal(size=n_rows), y + 0.5 * (group == "b")], axis=1)
    return X, H, y, group


def assert_equivariant(one, other, rows, rows_other, y, group, a, b):
    """Compare a stack with that of a·y + b."""
    np.testing.assert_allclose(other.predict(rows_other), a * one.predict(rows) + b, rtol=1e-9, atol=1e-9 * abs(a))
    first = one.points(rows, y, sensitive_features=group)
    second = other.points(rows_other, a * y + b, sensitive_features=group)
    np.testing.assert_allclose(first.fairness, second.fairness, atol=1e-9)
    np.testing.assert_allclose(first.accuracy, second.accuracy, atol=1e-9)
    np.testing.assert_allclose(one.points_.fairness, other.points_.fairness, atol=1e-9)
    np.testing.assert_allclose(one.path_.tau, other.path_.tau, atol=1e-9)
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    log_scale=st.floats(-4, 6),
    negative=st.booleans(),
    shift=st.floats(-10, 10),
    options=st.sampled_from([{}, {"alpha": 3.0}, {"tau": 0.05}, {"min_fairness": 0.9}, {"path": "paper"}]),
)
def test_stacks_of_given_predictions(seed, log_scale, negative, shift, options):
    _, H, y, group = problem(seed)
    # `select` simulates errors, whose draws do not change their sign with the target.
    a = 10.0**log_scale * (-1 if negative and "min_fairness" not in options else 1)
    b = a * shift
    one, other = (
        FairStacksRegressor(random_state=0, **options).fit(scale * H + move, scale * y + move, sensitive_features=group)
        for scale, move in ((1.0, 0.0), (a, b))
    )
    assert_equivariant(one, other, H, a * H + b, y, group, a, b)


@pytest.mark.parametrize("options", [{}, {"attribute_aware": True}, {"group_models": None}])
def test_stacks_of_unfitted_models(options):
    X, _, y, group = problem(1)
    models = [("lr", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    a, b = 1024.0, 64.0  # exact in binary, so that trees split alike
    aware = {"sensitive_features": group} if "attribute_aware" in options else {}
    one, other = (
        FairStacksRegressor(models, random_state=0, **options).fit(X, scale * y + move, sensitive_features=group)
        for scale, move in ((1.0, 0.0), (a, b))
    )
    np.testing.assert_allclose(other.predict(X, **aware), a * one.predict(X, **aware) + b, atol=1e-9 * a)
    np.testing.assert_allclose(one.points_.fairness, other.points_.fairness, atol=1e-9)


def test_weights_and_constant_are_in_the_units_of_the_target():
    _, H, y, group = problem(2)
    model = FairStacksRegressor(random_state=0).fit(1000 * H, 1000 * y, sensitive_features=group)
    np.testing.assert_allclose(1000 * H @ model.weights_ + model.intercept_, model.predict(1000 * H))
    fair = model.at(tau=0.0).predict(1000 * H)
    assert abs(fair[group == "a"].mean() - fair[group == "b"].mean()) < 1e-6
    constant = model.select(min_fairness=1.0)
    assert constant.score(1000 * H, 1000 * y) > -0.01


def test_the_bias_of_a_stack_is_in_deviations_of_the_target():
    _, H, y, group = problem(3)
    y, H = 50 * y, 50 * H
    model = FairStacksRegressor(alpha=1.0, tau=0.1).fit(H, y, sensitive_features=group)
    predicted = model.predict(H)
    gap = abs(predicted[group == "a"].mean() - predicted[group == "b"].mean())
    assert gap == pytest.approx(0.1 * y.std())


def test_the_old_unit_is_an_option():
    """With a given ridge the stack of `mean_difference` is the ridge regression of the raw columns."""
    _, H, y, group = problem(4)
    model = FairStacksRegressor(alpha=10.0, tau=np.inf, fairness="mean_difference").fit(H, y, sensitive_features=group)
    ridge = Ridge(alpha=5.0).fit(H, y)
    np.testing.assert_allclose(model.predict(H), ridge.predict(H))
    fair = FairStacksRegressor(alpha=10.0, tau=0.2, fairness="mean_difference").fit(H, y, sensitive_features=group)
    predicted = fair.predict(H)
    assert abs(predicted[group == "a"].mean() - predicted[group == "b"].mean()) == pytest.approx(0.2)


def test_chunks_are_in_the_same_unit():
    _, H, y, group = problem(5)
    H, y = 100 * H, 100 * y
    whole = FairStacksRegressor(alpha=1.0).fit(H, y, sensitive_features=group)
    chunks = array_chunks(y, H, sensitive_features=group, chunk_rows=50)
    chunked = FairStacksRegressor(alpha=1.0).fit_chunks(chunks)
    np.testing.assert_allclose(chunked.path_.weights, whole.path_.weights, atol=1e-12)
    np.testing.assert_allclose(chunked.path_.intercept, whole.path_.intercept, atol=1e-8)
    np.testing.assert_allclose(chunked.points_.fairness, whole.points_.fairness, atol=1e-12)
