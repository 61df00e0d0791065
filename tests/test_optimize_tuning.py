"""Cross-validation against the obvious loop, family scales, the placing of points, and Proposition 1."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfrontier import FairStacksClassifier, FairStacksRegressor, fauc, taf_curve, tradeoff_points
from fairfrontier.optimize import solve_stack
from fairfrontier.optimize._cross_validation import assign_folds, train_test
from fairfrontier.optimize._ridge_path import RidgeFactor, evidence_of_directions, evidence_scales, paper_penalties
from fairfrontier.optimize._tuning import SHARES_OF_BIAS, place, tune
from fairfrontier.quantify import StepWeight

from .stacking import Stacking


def rows(seed=0, *, n=240, k=6, groups=2, weighted=False, fairness="demographic_parity", regression=False):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    label = rng.random(n) < 0.3 + 0.3 * group / groups
    y = rng.random(n) * 0.3 + 0.5 * label if regression else label.astype(float)
    H = 0.5 * y[:, None] + 0.15 * group[:, None] + rng.normal(0, 0.3, (n, k))
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    return Stacking(H, y, group, fairness, weight, regression), group


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fairness", ["demographic_parity", "equalized_odds"])
def test_out_of_fold_values_are_those_of_the_obvious_loop(fairness, weighted):
    data, group = rows(fairness=fairness, weighted=weighted)
    folds = assign_folds(data.codes, data.contrasts, 4, 0)
    scale = np.array([1.0, 1.0, 0.2, 0.2, 3.0, 1.0])
    alphas, shares = np.array([0.5, 20.0]), np.array([1.0, 0.3, -0.8])
    validation = data.cross_validation(folds)
    trials = validation.trials(scale, alphas)
    found = validation.values(trials, lambda solution: shares[:, None] * solution.b0)
    for i, alpha in enumerate(alphas):
        scores = np.empty((len(data.y), len(shares)))
        for train, test in train_test(folds):
            statistics = data.rows(train).statistics()
            b0 = RidgeFactor(statistics, scale).at(alpha).b0
            for j, share in enumerate(shares):
                path = solve_stack(statistics, alpha=alpha, target=share * b0, scale=scale)
                scores[test, j] = data.H[test] @ path.weights[0] + path.intercept[0]
        expected = tradeoff_points(
            data.y, scores, sensitive_features=group, fairness=fairness, sample_weight=data.weight
        )
        np.testing.assert_allclose(found[i].fairness, expected.fairness, atol=1e-12)
        np.testing.assert_allclose(found[i].accuracy, expected.accuracy, atol=1e-12)
        np.testing.assert_allclose(found[i].rates, expected.rates, atol=1e-12)


def test_training_moments_of_every_fold_are_recomputed():
    data, _ = rows(2, weighted=True, groups=3)
    folds = assign_folds(data.codes, data.contrasts, 5, 0)
    validation = data.cross_validation(folds)
    for found, (train, _) in zip(validation.train, train_test(folds), strict=True):
        expected = data.rows(train).statistics()
        np.testing.assert_allclose(found.gram, expected.gram, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.cross, expected.cross, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.contrast_matrix(), expected.contrast_matrix(), atol=1e-12)
    np.testing.assert_allclose(validation.full.gram, data.statistics().gram, rtol=1e-10)


@pytest.mark.parametrize(("path", "own_ridge"), [("paper", False), ("signed", True), ("signed", False)])
def test_the_ridge_with_the_best_smoothed_value_is_chosen(path, own_ridge):
    data, _ = rows(3)
    folds = assign_folds(data.codes, data.contrasts, 4, 0)
    alphas = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])
    found = tune(
        data.cross_validation(folds),
        alphas=alphas,
        family_of=np.zeros(6, dtype=np.intp),
        family_scales="cv" if own_ridge or path == "paper" else np.ones(6),
        path=path,
        penalties=paper_penalties(7),
        weight=StepWeight(0.8),
    )
    debias = evidence_of_directions(data.statistics(), np.zeros(6, dtype=np.intp)) if own_ridge else None
    values = []
    for alpha in alphas:
        scores = []
        for train, test in train_test(folds):
            solution = RidgeFactor(data.rows(train).statistics(), np.ones(6), debias).at(alpha)
            targets = (
                solution.target_for_lambda(paper_penalties(7))
                if path == "paper"
                else SHARES_OF_BIAS[:, None] * solution.b0
            )
            weights, constants = solution.stacks(targets)
            scores.append((test, data.H[test] @ weights.T + constants))
        matrix = np.empty((len(data.y), scores[0][1].shape[1]))
        for test, part in scores:
            matrix[test] = part
        values.append(fauc(data.points(matrix).frontier(), StepWeight(0.8)))
    padded = np.array([values[0], *values, values[-1]])
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    assert found.alpha == alphas[np.flatnonzero(np.isclose(smooth, smooth.max(), rtol=0, atol=1e-12))[-1]]
    assert list(found.tried.values()) == pytest.approx([smooth.max()], abs=1e-12)


def test_evidence_shrinks_a_family_of_noise_and_not_one_of_signal():
    rng = np.random.default_rng(0)
    n = 2000
    data, _ = rows(4, n=n, k=3)
    H = np.column_stack([data.H, rng.normal(0.5, 0.3, (n, 40))])
    statistics = replace(data, H=H).statistics()
    family_of = np.repeat([0, 1], [3, 40])
    found = evidence_scales(statistics, family_of)
    assert found.scale[-1] > 10 * found.scale[0]
    assert np.prod(np.unique(found.scale)) == pytest.approx(1.0)  # geometric mean of the families
    # Other units of the predictions change the ridge, not what it does.
    large = Stacking(H * 1e5, data.y * 1e5, data.group, regression=True).statistics()
    other = evidence_scales(large, family_of)
    np.testing.assert_allclose(other.scale, found.scale, rtol=1e-6)
    assert other.alpha == pytest.approx(found.alpha * 1e10, rel=1e-6)


def test_evidence_of_a_perfect_or_hopeless_fit_is_finite():
    data, _ = rows(5)
    perfect = replace(data, H=np.column_stack([data.y, data.H])).statistics()
    hopeless = replace(data, H=np.ones((240, 4))).statistics()
    for statistics, family_of in ((perfect, np.array([0, 1, 1, 1, 1, 1, 1])), (hopeless, np.array([0, 0, 1, 1]))):
        found = evidence_scales(statistics, family_of)
        assert np.all(np.isfinite(found.scale))
        assert 0 < found.alpha < np.inf


def test_evidence_is_a_fixed_point_of_its_equations_with_few_rows():
    """λ = σ²·γ/‖w‖² and σ² = ‖y − Hw‖²/(n − Σγ), written out over 40 rows and 12 models of two families."""
    data, _ = rows(11, n=40, k=12, regression=True)
    family_of = np.repeat([0, 1], 6)
    found = evidence_scales(data.statistics(), family_of)
    penalty = found.alpha / 2.0 * found.scale**2
    H, y = data.H - data.H.mean(axis=0), data.y - data.y.mean()
    inverse = np.linalg.inv(H.T @ H + np.diag(penalty))
    w = inverse @ H.T @ y
    determined = np.array([6 - (penalty * np.diag(inverse))[family_of == f].sum() for f in (0, 1)])
    variance = np.square(y - H @ w).sum() / (40 - determined.sum())
    size = np.array([np.square(w[family_of == f]).sum() for f in (0, 1)])
    np.testing.assert_allclose(penalty[[0, 6]], variance * determined / size, rtol=0.06)


def test_the_directions_have_the_ridge_that_predicts_the_contrast():
    """A model that gives the group away is hardly shrunk, models that know nothing of it are; y does not matter."""
    rng = np.random.default_rng(2)
    data, group = rows(7, n=1500, k=3)
    H = np.column_stack([group + rng.normal(0, 0.05, 1500), rng.normal(0.5, 0.3, (1500, 30))])
    family_of = np.repeat([0, 1], [1, 30])
    penalty = evidence_of_directions(replace(data, H=H).statistics(), family_of)
    assert penalty[1] > 100 * penalty[0]
    other = evidence_of_directions(replace(data, H=H, y=rng.permutation(data.y)).statistics(), family_of)
    np.testing.assert_allclose(other, penalty)
    np.testing.assert_allclose(evidence_of_directions(replace(data, H=H * 1e3).statistics(), family_of), penalty * 1e6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [2, 4])
def test_the_evidence_of_the_directions_is_largest_where_it_says(groups, weighted):
    """Against the marginal likelihood itself, written out over rows, on a grid of ridges."""
    data, _ = rows(8, n=120, k=5, groups=groups, weighted=weighted)
    statistics = data.statistics()
    penalty = evidence_of_directions(statistics, np.zeros(5, dtype=np.intp))
    weight = np.ones(120) if data.weight is None else data.weight
    root = np.sqrt(weight)
    H = (data.H - np.average(data.H, axis=0, weights=weight)) * root[:, None]
    member = data.contrasts.membership[:, data.codes].astype(float)
    means = member / statistics.set_weight[:, None]
    first, second = data.contrasts.sets.pairs().T
    C = ((means[first] - means[second]) * root).T
    C /= np.linalg.norm(C, axis=0)

    def log_evidence(ridge):
        # Y ~ N(0, σ²·(I + HHᵀ/λ)) for each contrast, σ² at its best value.
        covariance = np.eye(120) + H @ H.T / ridge
        fit = np.sum(C * np.linalg.solve(covariance, C))
        return -0.5 * C.size * np.log(fit) - 0.5 * C.shape[1] * np.linalg.slogdet(covariance)[1]

    grid = penalty[0] * np.logspace(-1, 1, 41)
    best = grid[int(np.argmax([log_evidence(ridge) for ridge in grid]))]
    assert best == pytest.approx(penalty[0], rel=0.35)


def test_noise_families_do_not_drag_a_good_one_down():
    rng = np.random.default_rng(1)
    data, group = rows(6, n=800, k=3)
    noise = rng.normal(0.5, 0.4, (800, 200))
    names = [f"good/{j}" for j in range(3)] + [f"noise/{j}" for j in range(200)]
    options = {"cv": "precomputed", "random_state": 0}
    both = FairStacksClassifier(names, **options).fit(
        np.column_stack([data.H, noise]), data.y, sensitive_features=group
    )
    good = FairStacksClassifier(names[:3], **options).fit(data.H, data.y, sensitive_features=group)
    assert set(both.cv_fauc_) >= {"common", "evidence"}
    assert max(both.cv_fauc_.values()) >= max(good.cv_fauc_.values()) - 0.01


class TestPlacing:
    @settings(deadline=None, max_examples=100)
    @given(seed=st.integers(0, 10_000), n_points=st.integers(1, 30), largest=st.floats(0, 1))
    def test_places_ascend_from_the_first_node_to_the_last(self, seed, n_points, largest):
        rng = np.random.default_rng(seed)
        bias = np.linspace(0.4, rng.uniform(-0.6, 0.2), 61) + rng.normal(0, 0.01, 61)
        found = place(bias, largest, n_points)
        assert len(found) == n_points
        assert found[0] == 0.0
        if n_points > 2:
            assert found[-1] == pytest.approx(60.0)
        assert np.all(np.diff(found) > 0)

    def test_they_are_where_the_bias_counts(self):
        bias = np.linspace(0.6, -0.6, 61)
        found = place(bias, 0.2, 22)
        inner = np.interp(found[1:], np.arange(61), bias)
        assert inner.max() < 0.23
        np.testing.assert_allclose(np.diff(inner), np.diff(inner)[5], atol=0.02)

    def test_a_stack_that_happens_to_be_fair_has_a_path_beyond_the_error_of_its_bias(self):
        rng = np.random.default_rng(5)
        n = 800
        group = np.arange(n) % 2
        merit = np.repeat(rng.random(n // 2), 2)  # in pairs of one of each group: no bias in these rows at all
        label = rng.random(n) < merit
        label[1::2] = label[::2]
        H = np.column_stack([merit, 0.5 + 0.2 * (group - 0.5) + rng.normal(0, 0.1, n)])
        model = FairStacksClassifier("precomputed", random_state=0).fit(H, label, sensitive_features=group)
        bias = model.points(H, label, sensitive_features=group).bias[:-1, 0]
        assert abs(bias[0]) < 0.05
        assert np.abs(bias).max() > np.sqrt(2 * 0.25 / (n / 2))
        assert model.points_.fairness[:-1].max() > 0.97


class TestProposition1:
    """In sample, with score fairness and squared-error accuracy, no member lies above the stacks at all tau."""

    @settings(deadline=None, max_examples=40)
    @given(seed=st.integers(0, 10_000), groups=st.integers(2, 4), k=st.integers(1, 6))
    def test_stacks_dominate_their_members(self, seed, groups, k):
        data, group = rows(seed, n=80, k=k, groups=groups)
        if len(np.unique(group)) < groups:
            return
        statistics = data.statistics()
        B = statistics.contrast_matrix()
        biases = np.append(np.abs(B).max(axis=1), 0.0)  # the members and the constant
        errors = [np.mean((data.y - h) ** 2) for h in data.H.T] + [np.mean((data.y - data.y.mean()) ** 2)]
        fairness, accuracy = [], []
        for tau in biases:
            path = solve_stack(statistics, alpha=0.0, tau=tau)
            scores = data.H @ path.weights[0] + path.intercept[0]
            fairness.append(1 - np.abs(np.atleast_1d(path.score_bias[0])).max())
            accuracy.append(1 - np.mean((data.y - scores) ** 2))
        members = taf_curve(np.clip(1 - biases, 0, 1), np.clip(1 - np.array(errors), 0, 1))
        levels = np.unique(np.clip(1 - biases, 0, 1)) - 1e-9
        stacks = taf_curve(np.clip(fairness, 0, 1), accuracy)
        assert np.all(stacks(levels) >= members(levels) - 1e-9)
        for weight in (None, StepWeight(0.8)):
            assert fauc(stacks, weight) >= fauc(members, weight) - 1e-7

    def test_more_models_never_hurt(self):
        data, _ = rows(7, k=8)
        for tau in (0.0, 0.02, 0.1):
            errors = []
            for k in range(1, 9):
                path = solve_stack(replace(data, H=data.H[:, :k]).statistics(), alpha=0.0, tau=tau)
                errors.append(np.mean((data.y - data.H[:, :k] @ path.weights[0] - path.intercept[0]) ** 2))
            assert np.all(np.diff(errors) <= 1e-12)


def test_regression_is_tuned_by_r2():
    data, group = rows(8, regression=True)
    model = FairStacksRegressor(random_state=0).fit(data.H, data.y, sensitive_features=group)
    # Biases are in standard deviations of the target.
    assert 0.1 < max(model.cv_fauc_.values()) < 1.0
    assert model.points_.names[-1] == "constant"
    assert model.points_.accuracy[-1] == 0.0


def test_the_ridge_does_not_spoil_the_stack_without_a_constraint():
    """FAUC above .8 is the same for many ridges; the largest of them leaves scores on one side of the threshold."""
    rng = np.random.default_rng(7)
    group = rng.choice(4, 1500, p=[0.45, 0.3, 0.17, 0.08])
    features = rng.normal(size=(1500, 3))
    features[:, 0] += np.array([0.6, 0.0, -0.4, 0.3])[group]
    chance = 1.0 / (1.0 + np.exp(-1.2 * features[:, 0] - features[:, 1] - 0.3))
    y = (rng.random(1500) < chance).astype(int)
    score = 1.0 / (1.0 + np.exp(-features @ rng.normal([1.0, 0.8, 0.0], 0.1)))
    model = FairStacksClassifier("precomputed", random_state=0).fit(score[:, None], y, sensitive_features=group)
    alone = np.mean((score > 0.5) == y)
    assert np.mean(model.at(tau=1.0).predict(score[:, None]) == y) > alone - 0.01
