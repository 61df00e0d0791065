"""The closed form against an independent solver (cvxpy with Clarabel) on the raw rows, and against its own optimality
conditions computed from raw H, y and C."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfrontier.exceptions import GroupError, InfeasibleError, InvalidInputError
from fairfrontier.optimize import solve_stack
from fairfrontier.optimize._ridge_path import RidgeFactor, paper_penalties, signed_targets

from .stacking import Stacking

TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}


class Problem:
    """Random rows; `C` (n, m) is built by hand, as in Definition 4."""

    def __init__(self, seed, *, n=120, k=6, groups=2, fairness="demographic_parity", weighted=False, spread=0.3):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.group = np.concatenate([np.arange(groups), rng.integers(0, groups, n - groups)])
        self.label = rng.random(n) < 0.35 + 0.3 * self.group / groups
        self.label[: 2 * groups] = np.repeat([True, False], groups)
        self.group[groups : 2 * groups] = np.arange(groups)
        self.y = self.label.astype(float)
        signal = self.y[:, None] * rng.uniform(0.1, 0.6, k) + self.group[:, None] * rng.normal(0, 0.3, k)
        self.H = signal + rng.normal(0, spread, (n, k)) + rng.normal(0, 1, k)
        self.weight = rng.uniform(0.2, 3.0, n) if weighted else None
        self.fairness = fairness
        self.C = self._contrast_vectors()
        self.restat()

    def restat(self):
        self.statistics = self.stacking().statistics()
        return self

    def stacking(self, H=None, y=None, **options):
        H, y = self.H if H is None else H, self.y if y is None else y
        return Stacking(H, y, self.group, self.fairness, self.weight, **options)

    def _contrast_vectors(self):
        w = np.ones(len(self.y)) if self.weight is None else self.weight
        conditions = {
            "demographic_parity": [np.ones_like(self.label)],
            "equal_opportunity": [self.label],
            "equalized_odds": [self.label, ~self.label],
        }[self.fairness]
        columns = []
        for condition in conditions:
            for a in range(self.group.max() + 1):
                for b in range(a + 1, self.group.max() + 1):
                    first, second = condition & (self.group == a), condition & (self.group == b)
                    columns.append(w * first / w[first].sum() - w * second / w[second].sum())
        return np.stack(columns, axis=1)

    def cvxpy(self, alpha, *, tau=None, penalty=None, scale=None):
        n, k = self.H.shape
        w, constant = cp.Variable(k), cp.Variable()
        root = np.ones(n) if self.weight is None else np.sqrt(self.weight)
        D = np.ones(k) if scale is None else scale
        score_bias = (self.H.T @ self.C).T @ w  # the constant has none
        objective = cp.sum_squares(cp.multiply(root, self.y - self.H @ w - constant))
        objective += alpha / 2 * cp.sum_squares(cp.multiply(D, w))
        if penalty is not None:
            objective += penalty**2 * cp.sum_squares(score_bias)
        limits = [] if tau is None else [cp.abs(score_bias) <= tau]
        cp.Problem(cp.Minimize(objective), limits).solve(solver=cp.CLARABEL, **TIGHT)
        return w.value, float(constant.value)

    def objective(self, w, constant, alpha):
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return weight @ (self.y - self.H @ w - constant) ** 2 + alpha / 2 * w @ w


MEASURES = [
    pytest.param({"groups": 2}, 1, id="one contrast"),
    pytest.param({"groups": 2, "fairness": "equalized_odds"}, 2, id="two contrasts"),
    pytest.param({"groups": 3}, 3, id="three dependent contrasts"),
    pytest.param({"groups": 3, "fairness": "equalized_odds", "k": 9}, 6, id="six contrasts"),
    pytest.param({"groups": 5, "k": 8}, 10, id="ten contrasts"),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(("options", "m"), MEASURES)
def test_constrained_form_is_the_solvers(options, m, weighted):
    problem = Problem(m, weighted=weighted, **options)
    assert problem.C.shape[1] == m
    for alpha in (1e-3, 1.0, 100.0):
        solution = RidgeFactor(problem.statistics, np.ones(problem.H.shape[1])).at(alpha)
        largest = np.abs(solution.of_pairs(solution.b0)).max()
        for share in (0.0, 0.1, 0.5, 0.9, 1.0, 1.5):
            path = solve_stack(problem.statistics, alpha=alpha, tau=share * largest)
            w, constant = problem.cvxpy(alpha, tau=share * largest)
            np.testing.assert_allclose(path.weights[0], w, atol=1e-6)
            np.testing.assert_allclose(path.intercept[0], constant, atol=1e-6)
            assert np.abs(path.weights[0] @ problem.H.T @ problem.C).max() <= share * largest + 1e-9
            assert path.kkt[0] < 1e-9


@pytest.mark.parametrize(("options", "m"), MEASURES)
def test_penalised_form_is_the_solvers(options, m):
    problem = Problem(10 + m, **options)
    for alpha in (0.1, 10.0):
        for penalty in (0.0, 1.0, 10.0, 300.0):
            path = solve_stack(problem.statistics, alpha=alpha, penalty=penalty)
            w, constant = problem.cvxpy(alpha, penalty=penalty)
            np.testing.assert_allclose(path.weights[0], w, atol=1e-6)
            np.testing.assert_allclose(path.intercept[0], constant, atol=1e-6)


def test_family_scales_are_the_solvers():
    problem = Problem(3, k=6)
    scale = np.array([1e-3, 1e-3, 0.3, 1.0, 2.0, 30.0])
    for alpha in (0.5, 50.0):
        for tau in (0.0, 0.05, 10.0):
            path = solve_stack(problem.statistics, alpha=alpha, tau=tau, scale=scale)
            w, _ = problem.cvxpy(alpha, tau=tau, scale=scale)
            np.testing.assert_allclose(path.weights[0], w, atol=2e-6)


def test_one_model_of_three_groups_stays_in_the_box():
    """Its biases are all one number: clipping each of them for itself would leave the box."""
    problem = Problem(3, k=1, groups=3)
    for tau in (0.01, 0.03):
        path = solve_stack(problem.statistics, alpha=1.0, tau=tau)
        np.testing.assert_allclose(path.weights[0], problem.cvxpy(1.0, tau=tau)[0], atol=1e-6)
        assert np.abs(path.weights[0] @ problem.H.T @ problem.C).max() == pytest.approx(tau)


def test_both_forms_are_one_path_for_one_contrast():
    problem = Problem(4)
    solution = RidgeFactor(problem.statistics, np.ones(6)).at(2.0)
    for penalty in (0.0, 0.3, 2.0, 50.0, 1e6):
        tau = abs(solution.b0[0]) / (1 + penalty**2 * solution.S[0, 0])
        penalised = solve_stack(problem.statistics, alpha=2.0, penalty=penalty)
        constrained = solve_stack(problem.statistics, alpha=2.0, tau=tau)
        np.testing.assert_allclose(penalised.weights, constrained.weights, rtol=0, atol=1e-11)
        assert penalised.tau[0] == pytest.approx(tau, abs=1e-14)


def test_forms_differ_for_several_contrasts_and_a_common_ray_is_neither():
    problem = Problem(5, groups=3)
    solution = RidgeFactor(problem.statistics, np.ones(6)).at(2.0)
    penalised = solution.target_for_lambda(np.array([3.0]))[0]
    constrained = solution.target_for_tau(float(np.abs(penalised).max()))
    assert np.abs(penalised - constrained).max() > 1e-4


@pytest.mark.parametrize(("options", "m"), MEASURES)
def test_stack_at_a_target_meets_its_kkt_conditions(options, m):
    """Stationarity: 2Hᵀ(Hw + c − y) + αw = HᵀC·ν for some ν, 1ᵀ(Hw + c − y) = 0; feasibility: CᵀHw = t."""
    problem = Problem(20 + m, weighted=True, **options)
    alpha = 3.0
    solution = RidgeFactor(problem.statistics, np.ones(problem.H.shape[1])).at(alpha)
    for share in (1.0, 0.4, 0.0, -1.3):
        t = share * solution.of_pairs(solution.b0)
        path = solve_stack(problem.statistics, alpha=alpha, target=t)
        w, constant = path.weights[0], path.intercept[0]
        B = problem.H.T @ problem.C
        residual = problem.weight * (problem.H @ w + constant - problem.y)
        gradient = 2 * problem.H.T @ residual + alpha * w
        multiplier, *_ = np.linalg.lstsq(B, gradient, rcond=1e-10)
        np.testing.assert_allclose(B @ multiplier, gradient, atol=1e-8)
        assert abs(residual.sum()) < 1e-9
        np.testing.assert_allclose(B.T @ w, t, atol=1e-11)
        np.testing.assert_allclose(np.atleast_2d(path.score_bias).ravel(), t, atol=1e-11)


def test_kkt_residual_finds_a_stack_that_is_not_optimal():
    problem = Problem(6)
    factor = RidgeFactor(problem.statistics, np.ones(6))
    solution = factor.at(1.0)
    target = 0.5 * solution.b0[None, :]
    weights, _ = solution.stacks(target)
    assert factor.kkt(solution, weights, target)[0] < 1e-12
    away = np.linalg.svd(factor.contrasts.T)[2][-1]  # moves no bias
    assert factor.kkt(solution, weights + 0.01 * away, target)[0] > 1e-4
    assert factor.kkt(solution, weights * 1.01, target)[0] > 1e-4


def test_another_ridge_for_the_direction_is_certified_as_such():
    problem = Problem(7)
    debias = np.linspace(1.0, 40.0, 6)
    factor = RidgeFactor(problem.statistics, np.ones(6), debias)
    solution = factor.at(0.1)
    path = factor.path(solution, signed_targets(solution.b0, 5))
    assert path.kkt.max() < 1e-12
    assert np.abs(path.score_bias - path.target).max() < 1e-12
    common = RidgeFactor(problem.statistics, np.ones(6))
    np.testing.assert_allclose(solution.w0, common.at(0.1).w0, atol=1e-12)
    assert np.abs(path.weights[-1] - common.path(common.at(0.1), path.target[:, None]).weights[-1]).max() > 1e-4
    # The direction is the ridge regression of the contrast on the models.
    centred = problem.H - problem.H.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + np.diag(debias), factor.contrasts)
    np.testing.assert_allclose(solution.U, expected, atol=1e-12)


def test_equal_penalties_for_both_are_the_common_ridge():
    problem = Problem(9, groups=3)
    scale = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    common = RidgeFactor(problem.statistics, scale).at(4.0)
    own = RidgeFactor(problem.statistics, scale, 2.0 * scale**2).at(4.0)
    np.testing.assert_allclose(own.U, common.U, atol=1e-12)
    np.testing.assert_allclose(own.S, common.S, atol=1e-12)
    np.testing.assert_allclose(own.debias, common.debias)


def test_units_do_not_matter():
    """Predictions in other units and y in large ones: the bounded least-squares problem keeps its digits."""
    problem = Problem(8, groups=4, k=7)
    small = RidgeFactor(problem.statistics, np.ones(7)).at(1.0)
    tau = 0.4 * np.abs(small.b0).max()
    for unit in (1e-6, 1e7):
        large = problem.stacking(problem.H * unit, problem.y * unit, regression=True).statistics()
        solution = RidgeFactor(large, np.ones(7)).at(unit**2)
        np.testing.assert_allclose(solution.target_for_tau(tau * unit) / unit, small.target_for_tau(tau), atol=1e-9)


def test_tiny_scores_under_a_large_ridge_reach_their_bias():
    problem = Problem(8, groups=4, k=7)
    statistics = problem.stacking(problem.H * 1e-7).statistics()
    solution = RidgeFactor(statistics, np.ones(7)).at(1.0)
    assert np.linalg.eigvalsh(solution.S).max() < 1e-12
    weights, _ = solution.stacks(0.5 * solution.b0[None])
    reached = statistics.direction_matrix().T @ weights[0]
    np.testing.assert_allclose(reached, 0.5 * solution.b0, rtol=1e-6)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), groups=st.integers(2, 5), share=st.floats(0.0, 1.2), log_alpha=st.floats(-4, 6))
def test_no_feasible_stack_beats_the_constrained_one(seed, groups, share, log_alpha):
    """Eq. 3: among random stacks in the box none has a smaller objective, and tightening tau never lowers it."""
    problem = Problem(seed, groups=groups, n=60, k=4)
    alpha = 10.0**log_alpha
    solution = RidgeFactor(problem.statistics, np.ones(4)).at(alpha)
    tau = share * float(np.abs(solution.b0).max())
    path = solve_stack(problem.statistics, alpha=alpha, tau=tau)
    best = problem.objective(path.weights[0], path.intercept[0], alpha)
    B = problem.H.T @ problem.C
    assert np.abs(path.weights[0] @ B).max() <= tau + 1e-9
    rng = np.random.default_rng(seed)
    for _ in range(20):
        w = path.weights[0] + rng.normal(0, 10.0 ** rng.uniform(-4, 0), 4)
        w *= min(1.0, tau / max(np.abs(w @ B).max(), 1e-300))
        constant = (problem.y - problem.H @ w).mean()
        assert problem.objective(w, constant, alpha) >= best * (1 - 1e-10)
    looser = solve_stack(problem.statistics, alpha=alpha, tau=tau * 1.1 + 1e-6)
    assert problem.objective(looser.weights[0], looser.intercept[0], alpha) <= best * (1 + 1e-12)


def test_ridge_to_zero_is_least_squares_and_ridge_to_infinity_is_the_mean():
    problem = Problem(9)
    design = np.column_stack([problem.H, np.ones(len(problem.y))])
    plain = np.linalg.lstsq(design, problem.y, rcond=None)[0]
    for alpha, tolerance in ((0.0, 1e-10), (1e-9, 1e-8)):
        path = solve_stack(problem.statistics, alpha=alpha, tau=np.inf)
        np.testing.assert_allclose(np.append(path.weights[0], path.intercept[0]), plain, atol=tolerance)
    huge = solve_stack(problem.statistics, alpha=1e12, tau=np.inf)
    assert np.abs(huge.weights).max() < 1e-9
    assert huge.intercept[0] == pytest.approx(problem.y.mean(), abs=1e-8)


def test_paper_grid_and_signed_targets():
    np.testing.assert_allclose(paper_penalties(20)[[0, -1]], [1.0, 1e6])
    assert np.allclose(np.diff(np.log10(paper_penalties(20))), 6 / 19)
    np.testing.assert_allclose(
        signed_targets(np.array([0.2, -0.1]), 3, over=2.0), [[0.2, -0.1], [-0.1, 0.05], [-0.4, 0.2]]
    )


class TestDegenerate:
    def test_duplicated_models_predict_as_one(self):
        problem = Problem(30, k=4)
        twice = problem.stacking(np.column_stack([problem.H, problem.H])).statistics()
        for alpha in (0.0, 1.0):
            for tau in (0.0, 0.02, np.inf):
                # A pair shares its weight, so a ridge counts half for each.
                one = solve_stack(problem.statistics, alpha=alpha, tau=tau)
                two = solve_stack(twice, alpha=2 * alpha, tau=tau)
                np.testing.assert_allclose(two.weights[0, :4] + two.weights[0, 4:], one.weights[0], atol=1e-8)
                np.testing.assert_allclose(two.weights[0, :4], two.weights[0, 4:], atol=1e-8)
                assert two.kkt[0] < 1e-8

    def test_collinear_models_without_a_ridge(self):
        problem = Problem(31, k=4)
        mixed = np.column_stack([problem.H, problem.H @ [0.5, 0.5, 0, 0], problem.H @ [0, 1, 1, -1]])
        more = problem.stacking(mixed).statistics()
        for tau in (0.0, 0.05):
            one, two = (solve_stack(s, alpha=0.0, tau=tau) for s in (problem.statistics, more))
            np.testing.assert_allclose(
                mixed @ two.weights[0] + two.intercept[0], problem.H @ one.weights[0] + one.intercept[0], atol=1e-8
            )

    @pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0])
    def test_more_models_than_rows(self, alpha):
        problem = Problem(32, n=20, k=50)
        for tau in (0.0, 0.1):
            path = solve_stack(problem.statistics, alpha=alpha, tau=tau)
            assert np.abs(path.weights @ problem.H.T @ problem.C).max() <= tau + 1e-9
            assert path.kkt[0] < 1e-8
        if alpha == 0.0:  # enough models to reproduce any labels
            fitted = solve_stack(problem.statistics, alpha=0.0, tau=np.inf)
            np.testing.assert_allclose(problem.H @ fitted.weights[0] + fitted.intercept[0], problem.y, atol=1e-6)

    def test_one_model(self):
        problem = Problem(33, k=1)
        gap = (problem.H.T @ problem.C).item()
        path = solve_stack(problem.statistics, alpha=0.5, tau=0.01)
        assert path.weights[0, 0] == pytest.approx(np.sign(path.weights[0, 0]) * 0.01 / abs(gap))
        fair = solve_stack(problem.statistics, alpha=0.5, tau=0.0)
        assert fair.weights[0, 0] == pytest.approx(0.0, abs=1e-15)  # only the constant is fair
        assert fair.intercept[0] == pytest.approx(problem.y.mean())

    def test_a_model_without_bias_survives_a_bound_of_zero(self):
        problem = Problem(34, k=3)
        for g in (0, 1):
            problem.H[problem.group == g, 0] -= problem.H[problem.group == g, 0].mean()
        problem.restat()
        path = solve_stack(problem.statistics, alpha=0.1, tau=0.0)
        w, _ = problem.cvxpy(0.1, tau=0.0)
        np.testing.assert_allclose(path.weights[0], w, atol=1e-6)
        assert abs(path.weights[0, 0]) > 0.01

    @pytest.mark.parametrize("groups", [2, 3])
    def test_all_biases_zero(self, groups):
        problem = Problem(35, k=3, groups=groups)
        for g in range(groups):
            problem.H[problem.group == g] -= problem.H[problem.group == g].mean(axis=0)
        problem.restat()
        unconstrained = solve_stack(problem.statistics, alpha=0.1, tau=np.inf)
        for tau in (0.0, 0.3):
            path = solve_stack(problem.statistics, alpha=0.1, tau=tau)
            np.testing.assert_allclose(path.weights, unconstrained.weights, atol=1e-10)
        m = problem.C.shape[1]
        with pytest.raises(InfeasibleError, match=r"some stack of these models has.*same score bias"):
            solve_stack(problem.statistics, alpha=0.1, target=np.full(m, 0.2))

    def test_targets_that_contradict_each_other(self):
        problem = Problem(36, groups=3)  # contrasts 0-1, 0-2, 1-2: the second is the sum of the others
        consistent = solve_stack(problem.statistics, alpha=1.0, target=[0.1, 0.3, 0.2])
        np.testing.assert_allclose(consistent.score_bias[0], [0.1, 0.3, 0.2], atol=1e-10)
        with pytest.raises(InfeasibleError, match="contrasts depend on each other"):
            solve_stack(problem.statistics, alpha=1.0, target=[0.1, 0.3, 0.1])

    def test_constant_models_and_a_constant_target(self):
        problem = Problem(37, k=2)
        flat = problem.stacking(np.ones((120, 2))).statistics()
        path = solve_stack(flat, alpha=0.0, tau=0.0)
        assert np.all(path.weights == 0)
        assert path.intercept[0] == pytest.approx(problem.y.mean())
        same = problem.stacking(y=np.full(120, 0.3), regression=True).statistics()
        path = solve_stack(same, alpha=0.0, target=[0.1])
        assert path.score_bias[0] == pytest.approx(0.1)
        assert path.kkt[0] < 1e-9

    def test_a_free_column_is_hardly_shrunk(self):
        problem = Problem(38, k=3)
        problem.H[:, 2] = problem.group
        problem.restat()
        path = solve_stack(problem.statistics, alpha=1e4, tau=np.inf, scale=np.array([1.0, 1.0, 1e-3]))
        within = [problem.y[problem.group == g].mean() for g in (0, 1)]
        assert path.weights[0, 2] == pytest.approx(within[1] - within[0], abs=0.01)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "exactly one of tau, penalty and target; got none"),
            ({"tau": 0.1, "penalty": 1.0}, r"exactly one .*; got \['tau', 'penalty'\]"),
            ({"tau": -0.1}, r"tau must be at least 0; got -0.1; the smallest feasible tau is 0"),
            ({"tau": "a"}, "tau must be a number; got 'a'"),
            ({"penalty": -1.0}, r"penalty must be in \[0, 1e\+100\]; got -1.0"),
            ({"tau": 0.1, "alpha": -1.0}, r"alpha must be in \[0, 1e\+100\]; got -1.0"),
            ({"tau": 0.1, "alpha": np.inf}, r"alpha must be in \[0, 1e\+100\]; got inf"),
            ({"target": [0.1, 0.2]}, r"target must be 1 finite number\(s\), one per contrast"),
            ({"target": [np.nan]}, r"target must be 1 finite number\(s\), one per contrast"),
            ({"tau": 0.1, "scale": np.ones(5)}, "scale must be 6 positive numbers, one per model"),
            ({"tau": 0.1, "scale": np.array([1.0, 1, 1, 1, 1, 0])}, "scale must be 6 positive numbers"),
            ({"tau": 0.1, "scale": np.array([1.0, 1, 1, 1, 1, np.inf])}, "scale must be 6 positive numbers"),
        ],
    )
    def test_message(self, options, message):
        with pytest.raises(InvalidInputError, match=message):
            solve_stack(Problem(40).statistics, **{"alpha": 1.0, **options})

    def test_group_without_weight(self):
        problem = Problem(41)
        problem.weight = np.where(problem.group == 0, 0.0, 1.0)
        problem.restat()
        with pytest.raises(GroupError, match="leave no group empty; the row set 'sensitive_feature=0'"):
            solve_stack(problem.statistics, alpha=1.0, tau=0.0)
