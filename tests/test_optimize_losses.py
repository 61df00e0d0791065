"""Logistic and hinge stacks against cvxpy (Clarabel), and their certificates."""

import pickle
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairfrontier import FairStacksClassifier, load, save
from fairfrontier.exceptions import ConvergenceWarning, InfeasibleError, InvalidInputError
from fairfrontier.optimize._losses import LogisticSolver, ProgramSolver, solver_of

from .stacking import Stacking


def rows(seed, *, n=150, k=4, groups=2, fairness="demographic_parity", weighted=False, offset=0.0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    label = rng.random(n) < 0.3 + 0.4 * group / groups
    H = label[:, None] * rng.uniform(0.2, 0.6, k) + 0.2 * group[:, None] + rng.normal(0, 0.4, (n, k)) + offset
    weight = rng.uniform(0.1, 2.0, n) if weighted else None
    return Stacking(H, label.astype(float), group, fairness, weight)


def by_cvxpy(data, loss, alpha, scale, target, tau=None):
    k = data.H.shape[1]
    w, constant = cp.Variable(k), cp.Variable()
    mean = data.H.mean(axis=0)  # the solver wants numbers of moderate size
    eta = (data.H - mean) @ w + constant
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    sign = 2 * data.y - 1
    each = cp.logistic(eta) - cp.multiply(data.y, eta) if loss == "log" else cp.pos(1 - cp.multiply(sign, eta))
    objective = weight @ each + alpha / 2 * cp.sum_squares(cp.multiply(scale, w))
    B = data.statistics().contrast_matrix()
    limits = [] if target is None else [B.T @ w == target]
    limits += [] if tau is None else [cp.abs(B.T @ w) <= tau]
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    with warnings.catch_warnings():  # it may stop short of this; it is near enough or the comparison fails
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        cp.Problem(cp.Minimize(objective), limits).solve(solver=cp.CLARABEL, **tight)
    return w.value, float(constant.value) - mean @ w.value


def objective(data, loss, alpha, w, constant, scale=1.0):
    eta = data.H @ w + constant
    each = np.logaddexp(0, eta) - data.y * eta if loss == "log" else np.maximum(0, 1 - (2 * data.y - 1) * eta)
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    return weight @ each + alpha / 2 * np.sum((scale * w) ** 2)


def solve(data, loss, alpha, scale, shares):
    problem = data.constrained(alpha, scale)
    solver = solver_of(loss, problem)
    return solver.path(np.outer(shares, problem.bias(solver.unconstrained.beta)))


CASES = [
    pytest.param({}, id="plain"),
    pytest.param({"weighted": True}, id="weighted"),
    pytest.param({"groups": 3}, id="three dependent contrasts"),
    pytest.param({"fairness": "equalized_odds"}, id="two contrasts"),
    pytest.param({"offset": 100.0}, id="far from zero"),
]


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("options", CASES)
def test_path_is_the_solvers(loss, options):
    data = rows(10, **options)
    scale = np.array([1.0, 0.5, 2.0, 1.0])
    path = solve(data, loss, 2.0, scale, [1.0, 0.4, 0.0, -1.0])
    for i in range(len(path)):
        w, constant = by_cvxpy(data, loss, 2.0, scale, np.atleast_1d(path.target[i]))
        # The solver's exponential cones give five or six digits, and the hinge loss is flat in the constant.
        np.testing.assert_allclose(path.weights[i], w, atol=1e-5 if loss == "log" else 1e-6)
        np.testing.assert_allclose(path.intercept[i], constant, atol=1e-3 if "offset" in options else 1e-5)
        ours = objective(data, loss, 2.0, path.weights[i], path.intercept[i], scale)
        assert ours <= objective(data, loss, 2.0, w, constant, scale) * (1 + 1e-9)
    np.testing.assert_allclose(path.score_bias, path.target, atol=1e-8)
    assert path.kkt.max() < 1e-6
    free, _ = by_cvxpy(data, loss, 2.0, scale, None)
    np.testing.assert_allclose(path.weights[0], free, atol=1e-5 if loss == "log" else 1e-6)


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("options", CASES)
def test_the_box_of_equation_3_is_the_solvers(loss, options):
    data = rows(11, **options)
    scale = np.array([1.0, 0.5, 2.0, 1.0])
    problem = data.constrained(2.0, scale)
    solver = solver_of(loss, problem)
    largest = np.abs(problem.bias(solver.unconstrained.beta)).max()
    for share in (0.0, 0.1, 0.5, 0.9, 2.0):
        path = solver.within(share * largest)
        w, constant = by_cvxpy(data, loss, 2.0, scale, None, tau=share * largest)
        ours = objective(data, loss, 2.0, path.weights[0], path.intercept[0], scale)
        assert ours <= objective(data, loss, 2.0, w, constant, scale) * (1 + 1e-7)
        assert path.tau[0] <= share * largest * (1 + 1e-6) + 1e-9
        np.testing.assert_allclose(path.weights[0], w, atol=2e-4)
        assert path.kkt[0] < 1e-6


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_with_several_contrasts_the_box_beats_the_ray(loss):
    data = rows(12, groups=4, n=300)
    group = data.group
    free = FairStacksClassifier(loss=loss, alpha=2.0).fit(data.H, data.y, sensitive_features=group)
    b0 = free.path_.target[0]
    tau = 0.4 * np.abs(b0).max()
    model = FairStacksClassifier(loss=loss, alpha=2.0, tau=tau).fit(data.H, data.y, sensitive_features=group)
    assert np.abs(model.target_).max() <= tau * (1 + 1e-6)
    ray = free.at(target=0.4 * b0)
    ours, theirs = (objective(data, loss, 2.0, one.weights_, one.intercept_) for one in (model, ray))
    assert ours < theirs - 1e-3


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_at_tau_solves_the_box_after_the_fit(loss):
    data = rows(12, groups=4, n=300)
    model = FairStacksClassifier(loss=loss, alpha=2.0, n_points=5).fit(data.H, data.y, sensitive_features=data.group)
    largest = np.abs(model.path_.target[0]).max()
    for share in (0.0, 0.4, 0.8, 1.5):
        there = model.at(tau=share * largest)
        assert np.abs(there.target_).max() <= share * largest * (1 + 1e-6) + 1e-9
        w, constant = by_cvxpy(data, loss, 2.0, np.ones(4), None, tau=share * largest)
        np.testing.assert_allclose(there.weights_, w, atol=1e-4)
        np.testing.assert_allclose(there.intercept_, constant, atol=1e-4)
        fitted = FairStacksClassifier(loss=loss, alpha=2.0, n_points=2, tau=share * largest)
        fitted.fit(data.H, data.y, sensitive_features=data.group)
        np.testing.assert_array_equal(there.weights_, fitted.weights_)
        assert there.intercept_ == fitted.intercept_
    # From an operating point to another the rows are still known.
    np.testing.assert_array_equal(there.at(tau=0.4 * largest).weights_, model.at(tau=0.4 * largest).weights_)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_a_copy_without_rows_says_that_tau_needs_them(loss):
    data = rows(12, groups=4, n=300)
    options = {"loss": loss, "alpha": 2.0, "n_points": 5, "tau": 0.01}
    model = FairStacksClassifier(**options).fit(data.H, data.y, sensitive_features=data.group)
    loaded = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) < 0.5 * data.H.nbytes + 20_000
    np.testing.assert_array_equal(loaded.at(tau=0.01).weights_, model.at(tau=0.01).weights_)
    with pytest.raises(
        InvalidInputError, match=r"at\(tau=0.02\) with loss=.* needs the rows of the fit.* tau=0.02, or"
    ):
        loaded.at(tau=0.02)
    # The unconstrained stack is on the path.
    largest = np.abs(model.path_.target[0]).max()
    np.testing.assert_allclose(loaded.at(tau=2 * largest).weights_, model.at(tau=2 * largest).weights_, atol=1e-6)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_a_tau_set_after_the_fit_is_not_that_of_the_fit(loss):
    data = rows(12, groups=4, n=300)
    options = {"loss": loss, "alpha": 2.0, "n_points": 5}
    model = FairStacksClassifier(**options, tau=0.01).fit(data.H, data.y, sensitive_features=data.group)
    expected = FairStacksClassifier(**options, tau=0.1).fit(data.H, data.y, sensitive_features=data.group)
    model.set_params(tau=0.1)
    np.testing.assert_array_equal(model.at(tau=0.1).weights_, expected.weights_)
    with pytest.raises(InvalidInputError, match=r"at\(tau=0.1\)"):
        pickle.loads(pickle.dumps(model)).at(tau=0.1)


def test_files_of_earlier_versions_know_their_tau_by_the_parameter(tmp_path):
    data = rows(12, groups=4, n=300)
    options = {"loss": "log", "alpha": 2.0, "n_points": 5, "tau": 0.01}
    model = FairStacksClassifier(**options).fit(data.H, data.y, sensitive_features=data.group)
    vars(model._fitted).pop("tau")  # as these versions wrote it
    loaded = load(save(model, tmp_path / "stack.skops"))
    np.testing.assert_array_equal(loaded.at(tau=0.01).weights_, model.weights_)
    with pytest.raises(InvalidInputError, match=r"at\(tau=0.02\) with loss=.* needs the rows of the fit"):
        loaded.at(tau=0.02)


def test_unconstrained_logistic_stack_is_scikit_learns():
    data = rows(2)
    path = solve(data, "log", 0.5, np.ones(4), [1.0])
    other = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(data.H, data.y)
    np.testing.assert_allclose(path.weights[0], other.coef_[0], atol=1e-6)
    np.testing.assert_allclose(path.intercept[0], other.intercept_[0], atol=1e-6)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_degenerate_collections(loss):
    data = rows(3, n=40)
    twice = replace(data, H=np.column_stack([data.H, data.H]))
    one, two = solve(data, loss, 1.0, np.ones(4), [1.0, 0.0]), solve(twice, loss, 2.0, np.ones(8), [1.0, 0.0])
    np.testing.assert_allclose(two.weights[:, :4] + two.weights[:, 4:], one.weights, atol=1e-6)
    many = rows(4, n=30, k=60)
    assert solve(many, loss, 1.0, np.ones(60), [1.0, 0.0, -1.0]).kkt.max() < 1e-6
    unbiased = data.H.copy()
    for g in (0, 1):
        unbiased[data.group == g] -= unbiased[data.group == g].mean(axis=0)
    flat = replace(data, H=unbiased)
    path = solve(flat, loss, 1.0, np.ones(4), [1.0, 0.0])
    np.testing.assert_allclose(path.weights[0], path.weights[1], atol=1e-7)
    with pytest.raises(InfeasibleError, match="some stack of these models has"):
        flat.constrained(1.0, np.ones(4)).constraint_values(np.array([0.1]))


def test_separable_labels_without_a_ridge_stay_finite():
    data = rows(5)
    separable = replace(data, H=np.column_stack([data.H, data.y]))
    path = solve(separable, "log", 1e-6, np.ones(5), [1.0, 0.0])
    assert np.isfinite(path.weights).all()
    scores = separable.H @ path.weights[0] + path.intercept[0]
    assert np.array_equal(scores > 0, data.y > 0.5)


def test_a_huge_ridge_leaves_the_constant_model():
    """A trace of the ridge on everything would hold the constant fast: log-odds of the labels are the solution."""
    data = rows(5, weighted=True)
    path = solve(data, "log", 1e15, np.ones(4), [1.0, 0.0])
    share = np.average(data.y, weights=data.weight)
    np.testing.assert_allclose(path.intercept, np.log(share / (1 - share)), atol=1e-8)


def test_a_stopped_newton_warns_with_gap_tolerance_and_iterations():
    problem = rows(6).constrained(1.0, np.ones(4))
    solver = LogisticSolver(problem, tolerance=1e-9, max_iterations=1)
    start = solver.unconstrained = LogisticSolver(problem).unconstrained
    message = r"loss='log' stopped with a KKT residual of 0\.\d+, above the tolerance 1e-09, after 1 iterations: use"
    with pytest.warns(ConvergenceWarning, match=message):
        path = solver.path(-2.0 * problem.bias(start.beta)[None, :])
    assert path.kkt[0] > 1e-9
    with pytest.warns(ConvergenceWarning, match=message):
        path = solver.within(0.1 * np.abs(problem.bias(start.beta)).max())
    assert path.kkt[0] > 1e-9


def test_a_stopped_interior_point_method_warns_too():
    solver = ProgramSolver(rows(7).constrained(1.0, np.ones(4)), max_iterations=3)
    message = r"loss='hinge' stopped with a KKT residual of .*, above the tolerance 1e-06, after 3 iterations"
    with pytest.warns(ConvergenceWarning, match=message):
        solver.path(np.zeros((1, 1)))
    with pytest.warns(ConvergenceWarning, match=message):
        assert solver.within(0.01).kkt[0] > 1e-6


@pytest.mark.parametrize("loss", ["log", "hinge"])
class TestEstimator:
    def fit(self, loss, **options):
        data = rows(8)
        group = data.group
        model = FairStacksClassifier(loss=loss, **{"alpha": 2.0, "n_points": 9, **options})
        return model.fit(data.H, data.y, sensitive_features=group), data, group

    def test_tau_is_solved_exactly(self, loss):
        free, data, _ = self.fit(loss)
        tau = 0.37 * free.path_.tau[0]
        model, *_ = self.fit(loss, tau=tau)
        w, constant = by_cvxpy(data, loss, 2.0, np.ones(4), np.sign(free.path_.target[:1]) * tau)
        np.testing.assert_allclose(model.weights_, w, atol=1e-5)
        np.testing.assert_allclose(model.intercept_, constant, atol=1e-5)
        same, *_ = self.fit(loss, tau=10.0)
        np.testing.assert_allclose(same.weights_, free.path_.weights[0], atol=1e-6)

    def test_between_two_points_the_bias_is_exact_and_the_loss_nearly(self, loss):
        model, data, _ = self.fit(loss)
        B = data.statistics().contrast_matrix()[:, 0]
        for target in (0.61 * model.path_.target[0], -0.33 * model.path_.target[0], model.path_.target[3]):
            there = model.at(target=target)
            assert there.weights_ @ B == pytest.approx(target, abs=1e-8)
            least = objective(data, loss, 2.0, *by_cvxpy(data, loss, 2.0, np.ones(4), np.array([target])))
            assert objective(data, loss, 2.0, there.weights_, there.intercept_) <= 1.01 * least
        with pytest.raises(InfeasibleError, match=f"target must lie on the path with loss='{loss}'"):
            model.at(target=2.0 * model.path_.target[0])

    def test_scores_have_the_losses_link(self, loss):
        model, data, _ = self.fit(loss)
        eta = data.H @ model.path_.weights.T + model.path_.intercept
        expected = 1 / (1 + np.exp(-eta)) if loss == "log" else (1 + eta) / 2
        np.testing.assert_allclose(model.predict_path(data.H), expected, atol=1e-12)
        assert np.array_equal(model.predict(data.H), (data.H @ model.weights_ + model.intercept_ > 0).astype(float))

    def test_tuning_tries_every_alpha_given(self, loss):
        model, *_ = self.fit(loss, alpha="cv", alphas=[0.5, 50.0, 5000.0], n_points=4, cv=3, random_state=0)
        assert model.alpha_ in (0.5, 50.0, 5000.0)
        best = model.cv_fauc_["common"]
        for alpha in (0.5, 50.0, 5000.0):
            one, *_ = self.fit(loss, alpha="cv", alphas=[alpha], n_points=4, cv=3, random_state=0)
            assert one.cv_fauc_["common"] <= best + 1e-12

    def test_paper_path_stops_at_no_bias(self, loss):
        model, *_ = self.fit(loss, path="paper", n_points=5)
        np.testing.assert_allclose(model.path_.target / model.path_.target[0], [1, 0.75, 0.5, 0.25, 0], atol=1e-12)

    def test_exact_frontier_needs_the_squared_loss(self, loss):
        model, data, group = self.fit(loss)
        with pytest.raises(ValueError, match=f"loss must be 'squared'.*got '{loss}'"):
            model.exact_frontier(data.H, data.y, sensitive_features=group)
