"""Regression with Huber's and the quantile loss against cvxpy, scikit-learn and scipy."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import d2_pinball_score

import fairfrontier as ff
from fairfrontier import FairStacksRegressor
from fairfrontier.optimize._losses import ResidualLoss

LOSSES = [("huber", 1.0), ("huber", 0.2), ("quantile", 0.5), ("quantile", 0.85)]


def task(seed, *, n=121, k=3, groups=2, weighted=False):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    y = 3.0 + 2.0 * rng.standard_t(2, n) + 1.5 * group
    H = y[:, None] * rng.uniform(0.3, 0.9, k) + group[:, None] + rng.normal(0, 1.5, (n, k))
    return H, y, group, rng.uniform(0.2, 2.0, n) if weighted else None


def spread(y, weight):
    return float(np.sqrt(np.cov(y, aweights=weight, ddof=0)))


def by_cvxpy(H, y, group, weight, loss, alpha, *, tau=None, target=None):
    """Return the predictions of the constrained stack; everything in standard deviations of the target."""
    name, parameter = loss
    weight, unit = np.ones(len(y)) if weight is None else weight, spread(y, weight)
    w, constant = cp.Variable(H.shape[1]), cp.Variable()
    eta = H / unit @ w + constant
    residual = y / unit - eta
    if name == "huber":
        each = cp.huber(residual, parameter) / 2
    else:
        each = cp.maximum(parameter * residual, (parameter - 1) * residual)
    means = [weight[group == g] @ (H[group == g] / unit) / weight[group == g].sum() for g in np.unique(group)]
    B = np.array([means[i] - means[j] for i in range(len(means)) for j in range(i)])
    limits = [] if tau is None else [cp.abs(B @ w) <= tau]
    limits += [] if target is None else [B @ w == target]
    problem = cp.Problem(cp.Minimize(weight @ each + alpha / 2 * cp.sum_squares(w)), limits)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return eta.value * unit


def loss_of(loss, residual):
    name, parameter = loss
    if name == "huber":
        return np.where(np.abs(residual) <= parameter, residual**2 / 2, parameter * (np.abs(residual) - parameter / 2))
    return np.maximum(parameter * residual, (parameter - 1) * residual)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"groups": 3}], ids=["plain", "weighted", "three groups"])
def test_the_stack_of_a_tau_is_the_solvers(loss, options):
    H, y, group, weight = task(0, **options)
    for tau in (0.0, 0.1, 10.0):
        model = FairStacksRegressor("precomputed", loss=loss, alpha=2.0, tau=tau, n_points=3)
        model.fit(H, y, sensitive_features=group, sample_weight=weight)
        expected = by_cvxpy(H, y, group, weight, loss, 2.0, tau=tau)
        np.testing.assert_allclose(model.predict(H), expected, atol=2e-4 * spread(y, weight))
        assert model.path_.kkt.max() < 1e-6


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_at_tau_is_the_solvers_too(loss):
    H, y, group, weight = task(3, groups=3, weighted=True)
    model = FairStacksRegressor("precomputed", loss=loss, alpha=2.0, n_points=3)
    model.fit(H, y, sensitive_features=group, sample_weight=weight)
    for tau in (0.0, 0.05, 0.1, 10.0):
        expected = by_cvxpy(H, y, group, weight, loss, 2.0, tau=tau)
        np.testing.assert_allclose(model.at(tau=tau).predict(H), expected, atol=2e-4 * spread(y, weight))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_path_is_the_solvers(loss):
    H, y, group, _ = task(1)
    model = FairStacksRegressor("precomputed", loss=loss, alpha=1.0, n_points=5).fit(H, y, sensitive_features=group)
    np.testing.assert_allclose(model.path_.target, model.path_.target[0] * np.linspace(1, -1, 5), atol=1e-9)
    for scores, target in zip(model.predict_path(H).T, -model.path_.target, strict=True):  # our first group is first
        expected = by_cvxpy(H, y, group, None, loss, 1.0, target=[target])
        np.testing.assert_allclose(scores, expected, atol=2e-4 * y.std())


@pytest.mark.parametrize("loss", LOSSES[1:3], ids=str)
def test_predictions_follow_the_units_of_the_target(loss):
    H, y, group, _ = task(2)
    options = {"loss": loss, "alphas": [1.0, 100.0], "n_points": 4, "cv": 3, "random_state": 0}
    plain = FairStacksRegressor("precomputed", **options).fit(H, y, sensitive_features=group)
    other = clone(plain).fit(1000 * H - 7, 1000 * y - 7, sensitive_features=group)
    assert other.alpha_ == pytest.approx(plain.alpha_)
    np.testing.assert_allclose(other.predict_path(1000 * H - 7), 1000 * plain.predict_path(H) - 7, atol=0.5)
    np.testing.assert_allclose(other.points_.fairness, plain.points_.fairness, atol=1e-4)
    np.testing.assert_allclose(other.points_.accuracy, plain.points_.accuracy, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_accuracy_is_the_share_of_the_constants_loss(loss):
    H, y, group, weight = task(3, weighted=True)
    model = FairStacksRegressor("precomputed", loss=loss, alpha=1.0, n_points=4)
    model.fit(H, y, sensitive_features=group, sample_weight=weight)
    points = model.points(H, y, sensitive_features=group, sample_weight=weight)
    in_units = (loss[0], loss[1] * spread(y, weight)) if loss[0] == "huber" else loss

    def total(prediction):
        return weight @ loss_of(in_units, y - prediction)

    best = min(minimize_scalar(total, bounds=(y.min(), y.max()), options={"xatol": 1e-10}).fun, *map(total, y))
    expected = [max(0.0, 1.0 - total(scores) / best) for scores in model.predict_path(H).T]
    np.testing.assert_allclose(points.accuracy, [*expected, 0.0], atol=1e-7)
    np.testing.assert_allclose(points.accuracy, model.points_.accuracy, atol=1e-7)
    if loss == ("quantile", 0.5):
        of_first = d2_pinball_score(y, model.predict_path(H)[:, 0], alpha=0.5, sample_weight=weight)
        assert points.accuracy[0] == pytest.approx(of_first, abs=1e-3)  # scikit-learn's quantile of weights is another


def test_the_best_constant_is_scipys():
    y, weight = np.random.default_rng(4).normal(size=31), np.random.default_rng(5).uniform(0.1, 3.0, 31)
    for name, parameter in LOSSES:
        loss = ResidualLoss.of_rows(name, parameter, y, weight)

        def total(constant, loss=loss):
            return weight @ loss(y - constant)

        others = [total(one) for one in (*y, *np.linspace(y.min(), y.max(), 1001))]
        assert total(loss.constant) <= min(others) + 1e-12


def test_an_outlier_does_not_move_the_robust_stack():
    H, y, group, _ = task(6, n=400)
    spoiled = y.copy()
    spoiled[0] += 1e4
    moved = {}
    for loss in ("squared", "quantile"):
        models = [
            FairStacksRegressor("precomputed", loss=loss, alpha=1.0, fairness="mean_difference", n_points=3)
            for _ in range(2)
        ]
        first, second = (
            model.fit(H, of_y, sensitive_features=group).predict_path(H)[:, 0]
            for model, of_y in zip(models, (y, spoiled), strict=True)
        )
        moved[loss] = np.abs(first - second)[1:].max()
    assert moved["quantile"] < 0.05 * moved["squared"]


def test_quantiles_of_groups_that_differ_are_covered_and_selected(tmp_path):
    rng = np.random.default_rng(7)
    n = 600
    sex, x = rng.choice(["f", "m"], n), rng.normal(size=n)
    X = np.column_stack([x + (sex == "m"), rng.normal(size=n)])
    y = x + 0.8 * (sex == "m") + rng.normal(size=n)
    model = FairStacksRegressor([("lr", LinearRegression())], loss=("quantile", 0.9), alphas=[0.1], n_points=5, cv=3)
    model.fit(X, y, sensitive_features=sex)
    top = model.at(target=model.path_.target[0])
    assert abs(np.mean(y <= top.predict(X)) - 0.9) < 0.03
    fair = model.select(0.9)
    gap = abs(fair.predict(X)[sex == "m"].mean() - fair.predict(X)[sex == "f"].mean()) / y.std()
    assert gap < 0.12
    ff.save(fair, tmp_path / "stack.skops")
    np.testing.assert_array_equal(ff.load(tmp_path / "stack.skops").predict(X), fair.predict(X))
    # Where nothing but the constant will do, it is the quantile.
    constant = model.select(1.0)
    if constant.selection_.kind == "constant":
        assert np.mean(y <= constant.predict(X)) == pytest.approx(0.9, abs=0.01)
