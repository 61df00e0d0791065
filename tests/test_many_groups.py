"""Many groups: coordinates instead of pairs, with the same stacks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier.exceptions import InfeasibleError
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.optimize._ridge_path import RidgeFactor, evidence_of_directions, least_distance

from .stacking import Stacking


def sets_of(*sizes):
    ends = np.cumsum([0, *sizes])
    blocks = tuple(tuple(range(a, b)) for a, b in itertools.pairwise(ends))
    return RowSets(tuple(f"s{i}" for i in range(ends[-1])), blocks, tuple("a" for _ in sizes))


def problem(seed=0, *, groups=5, n=400, k=3, fairness="demographic_parity"):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    y = (rng.random(n) < 0.3 + 0.4 * group / groups).astype(float)
    H = 0.5 * y[:, None] + 0.3 * group[:, None] / groups * rng.random(k) + rng.normal(0, 0.4, (n, k))
    return Stacking(H, y, group, fairness)


@given(sizes=st.lists(st.integers(2, 9), min_size=1, max_size=3), seed=st.integers(0, 1000))
def test_coordinates_have_the_differences_and_the_length_of_the_pairs(sizes, seed):
    sets = sets_of(*sizes)
    rates = np.random.default_rng(seed).random(sum(sizes))
    coordinates = sets.basis() @ rates
    first, second = sets.pairs().T
    pairs = rates[first] - rates[second]
    matrix = sets.pairs_of_basis()
    np.testing.assert_allclose(matrix @ coordinates, pairs, atol=1e-12)
    np.testing.assert_allclose(matrix.T @ pairs, coordinates, atol=1e-12)
    assert coordinates @ coordinates == pytest.approx(pairs @ pairs)
    assert len(coordinates) <= sum(sizes)


@pytest.fixture
def by_pairs(monkeypatch):
    """Let every block have its pairs as coordinates, however many."""

    def run(function):
        with monkeypatch.context() as patched:
            patched.setattr("fairfrontier.metrics._contrasts._FEW_PAIRS", 10**6)
            return function()

    return run


@pytest.mark.parametrize("fairness", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("groups", [4, 5, 7])
def test_stacks_are_those_of_all_pairs(by_pairs, groups, fairness):
    data = problem(groups=groups, fairness=fairness)

    def results():
        statistics = data.statistics()
        factor = RidgeFactor(statistics, np.ones(3))
        solution = factor.at(5.0)
        tau = 0.3 * float(np.abs(solution.of_pairs(solution.b0)).max())
        boxed = factor.path(solution, solution.target_for_tau(tau)[None, :])
        penalised = factor.path(solution, solution.target_for_lambda(np.logspace(-1, 4, 6)))
        model = ff.FairStacksClassifier(fairness=fairness, random_state=0).fit(
            data.H, data.y, sensitive_features=data.group
        )
        return boxed, penalised, evidence_of_directions(statistics, np.zeros(3, dtype=int)), model

    ours, theirs = results(), by_pairs(results)
    for path, other in zip(ours[:2], theirs[:2], strict=True):
        for name in ("target", "tau", "score_bias", "weights", "intercept"):
            np.testing.assert_allclose(getattr(path, name), getattr(other, name), atol=1e-9)
        assert path.kkt.max() < 1e-9
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-9)
    np.testing.assert_allclose(ours[3].predict_path(data.H), theirs[3].predict_path(data.H), atol=1e-6)
    assert ours[3].path_.target.shape == theirs[3].path_.target.shape


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), groups=st.integers(2, 8), share=st.floats(0.01, 0.99))
def test_the_box_is_reached_as_with_all_constraints_at_once(seed, groups, share):
    data = problem(seed, groups=groups, n=150)
    solution = RidgeFactor(data.statistics(), np.ones(3)).at(1.0)
    bias = solution.of_pairs(solution.b0)
    tau = share * float(np.abs(bias).max())
    found = solution.target_for_tau(tau)
    assert np.abs(solution.of_pairs(found)).max() <= tau * (1 + 1e-9)
    root, inverse = solution._root
    moves = solution._pairs @ root
    z = least_distance(np.vstack([-moves, moves]), np.concatenate([bias - tau, -bias - tau]))
    np.testing.assert_allclose(solution.of_pairs(found), bias + moves @ z, atol=1e-7)
    assert np.linalg.norm(inverse @ (found - solution.b0)) == pytest.approx(np.linalg.norm(z), rel=1e-6, abs=1e-9)


def test_a_target_is_given_and_returned_in_pairs():
    data = problem(groups=6)
    model = ff.FairStacksClassifier(alpha=1.0).fit(data.H, data.y, sensitive_features=data.group)
    half = model.at(target=0.5 * model.path_.target[0])
    np.testing.assert_allclose(half.target_, 0.5 * model.path_.target[0], atol=1e-9)
    means = np.array([(data.H @ half.weights_)[data.group == g].mean() for g in range(6)])
    first, second = np.triu_indices(6, k=1)
    np.testing.assert_allclose(means[first] - means[second], half.target_, atol=1e-9)
    with pytest.raises(InfeasibleError, match="the contrasts depend on each other"):
        model.at(target=np.ones(15))


def test_fifty_groups_need_no_pairs():
    data = problem(groups=50, n=2500)
    model = ff.FairStacksClassifier(random_state=0, cv=3, n_points=5)
    model.fit(data.H, data.y, sensitive_features=data.group)
    assert model._fitted.solution.S.shape == (50, 50)
    assert model.path_.target.shape == (5, 1225)
    assert np.abs(model.at(tau=0.01).target_).max() <= 0.01 + 1e-9
