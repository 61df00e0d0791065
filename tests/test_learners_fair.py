"""The three fair learners: their knob, their grids, and what each is made of."""

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn
import torch
import xgboost
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fairfrontier import tradeoff_points
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.learners import FAGTB, AdversarialDebiasing, MinipatchTrees, ModelFamily, Reductions, kitchen_sink
from fairfrontier.learners._adversarial import Adversaries, Predictors

Data = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
QUICK: dict[type, dict[str, Any]] = {
    FAGTB: {"n_estimators": 60},
    AdversarialDebiasing: {"epochs": 20, "random_state": 0},
    Reductions: {"max_iter": 5},
}
SPANS: dict[type, list[float]] = {
    FAGTB: [0.0, 2.0, 5.0, 10.0, 20.0],
    AdversarialDebiasing: [0.0, 0.5, 1.0, 2.0, 4.0],
    Reductions: [0.3, 0.15, 0.08, 0.03, 0.005],
}
LEARNERS = list(QUICK)


def biased(n: int = 1500, seed: int = 0) -> Data:
    """Return features that carry the attribute twice, a label that depends on it, and the attribute."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    merit, proxy = rng.normal(size=n), rng.normal(size=n) + 1.5 * group
    noise = rng.normal(size=n)
    y = (merit + 0.8 * proxy + 0.7 * noise > 0.6).astype(int)
    return np.column_stack([merit, proxy, group, rng.normal(size=n)]), y, np.array(["x", "y"])[group]


@pytest.fixture(scope="module")
def data() -> Data:
    return biased()


def quick(kind: Any, **settings: Any) -> Any:
    return kind(**{**QUICK[kind], **settings})


def rates(decisions: NDArray[Any], rows: NDArray[np.bool_], group: NDArray[Any]) -> NDArray[np.float64]:
    """Return |difference of mean decisions between the two groups| among `rows`, by column."""
    return np.abs(decisions[rows & (group == "x")].mean(axis=0) - decisions[rows & (group == "y")].mean(axis=0))


def decided(grid: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    matrix = grid.predict_matrix(X)
    return np.asarray(matrix if grid.is_randomized else matrix > 0.5, dtype=np.float64)


# --------------------------------------------------------------------------------------------- what all three do


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_knob_moves_fairness_and_costs_accuracy(kind: Any, data: Data) -> None:
    X, y, group = data
    test = biased(seed=1)
    grid = quick(kind).fit_grid(X, y, sensitive_features=group, values=SPANS[kind])
    decisions = decided(grid, test[0])
    gap = rates(decisions, np.ones(len(test[1]), bool), test[2])
    accuracy = 1.0 - np.abs(decisions - test[1][:, None]).mean(axis=0)
    assert spearmanr(np.arange(len(gap)), gap).statistic < -0.85
    assert gap[0] > 0.35
    assert gap[-1] < 0.12
    assert accuracy[0] > accuracy[-1] + 0.01
    assert accuracy.min() > 0.6


@pytest.mark.parametrize("kind", [FAGTB, AdversarialDebiasing])
def test_the_values_and_settings_of_a_learner_by_default_lead_to_fairness(kind: Any, data: Data) -> None:
    X, y, group = data
    test = biased(seed=1)
    grid = kind(random_state=0).fit_grid(X, y, sensitive_features=group)
    gap = rates(decided(grid, test[0]), np.ones(len(test[1]), bool), test[2])
    assert spearmanr(np.arange(len(gap)), gap).statistic < -0.85
    assert gap[0] > 0.35
    assert gap[-1] < 0.12
    assert np.diff(gap).max() < 0.05


def test_adversarial_debiasing_ignores_a_constant_column_that_later_differs(data: Data) -> None:
    X, y, group = data
    # The mean of many 0.1 is not 0.1, so that the deviation of the column is 1e-15.
    X = np.column_stack([X, np.full(len(X), 0.1)])
    learner = quick(AdversarialDebiasing).fit(X, y, sensitive_features=group)
    later = X.copy()
    later[:, -1] = 0.11
    np.testing.assert_allclose(learner.predict_proba(later), learner.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("kind", LEARNERS)
def test_one_value_alone_is_its_column_of_the_grid(kind: Any, data: Data) -> None:
    X, y, group = data
    value = SPANS[kind][2]
    learner = quick(kind)
    grid = learner.fit_grid(X, y, sensitive_features=group, values=SPANS[kind])
    assert not hasattr(learner, "core_")
    alone = learner.set_params(**{kind.knob: value}).fit(X, y, sensitive_features=group)
    tolerance = 1e-4 if kind is AdversarialDebiasing else 0.0  # tensor operations of another width round differently
    np.testing.assert_allclose(alone.predict_proba(X)[:, 1], grid.predict_matrix(X)[:, 2], rtol=0, atol=tolerance)
    name, member = grid.estimators[2]
    assert name == f"{kind.family}/{kind.knob}={value:g}"
    assert getattr(member, kind.knob) == value
    np.testing.assert_allclose(member.predict_proba(X)[:, 1], grid.predict_matrix(X)[:, 2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", LEARNERS)
def test_grids_are_reproducible_to_the_bit_at_any_n_jobs(kind: Any) -> None:
    X, y, group = biased(400)
    # Twelve networks make two tasks; the reductions are slow and each is a task of its own.
    values = np.linspace(0.01, 0.2, 3 if kind is Reductions else 12)
    one, two = (
        quick(kind, n_jobs=n, random_state=3).fit_grid(X, y, sensitive_features=group, values=values) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_matrix(X), two.predict_matrix(X))


@pytest.mark.parametrize("kind", LEARNERS)
def test_grids_and_models_pickle(kind: Any, data: Data) -> None:
    X, y, group = data
    grid = quick(kind).fit_grid(X, y, sensitive_features=group, values=SPANS[kind][:2])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(grid)).predict_matrix(X), grid.predict_matrix(X))
    model = grid.estimators[1][1]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", LEARNERS)
def test_names_of_groups_and_classes_do_not_matter(kind: Any, data: Data) -> None:
    X, y, group = data
    plain = quick(kind).fit(X, y, sensitive_features=(group == "y").astype(int))
    named = quick(kind).fit(X, np.array(["refused", "granted"])[1 - y], sensitive_features={"sex": group})
    np.testing.assert_array_equal(named.classes_, ["granted", "refused"])
    np.testing.assert_array_equal(plain.predict_proba(X)[:, 1] > 0.5, named.predict(X) == "refused")
    framed = quick(kind).fit(X, y, sensitive_features=pl.DataFrame({"sex": group}))
    np.testing.assert_array_equal(framed.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("kind", LEARNERS)
def test_swapping_the_two_groups_changes_nothing_that_matters(kind: Any, data: Data) -> None:
    X, y, group = data
    swapped = np.where(group == "x", "y", "x")
    first, second = (quick(kind).fit(X, y, sensitive_features=s).predict_proba(X)[:, 1] for s in (group, swapped))
    assert np.mean((first > 0.5) != (second > 0.5)) < 0.02


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize(
    ("fairness", "labels"),
    [("equal_opportunity", [1]), ("predictive_equality", [0]), ("equalized_odds", [0, 1])],
)
def test_conditional_measures_close_their_own_gaps(kind: Any, fairness: str, labels: list[int], data: Data) -> None:
    X, y, group = data
    test = biased(seed=1)
    values = [SPANS[kind][0], SPANS[kind][-1]]
    more = {"n_estimators": 150} if kind is FAGTB else {}
    grid = quick(kind, fairness=fairness, **more).fit_grid(X, y, sensitive_features=group, values=values)
    decisions = decided(grid, test[0])
    for label in labels:
        before, after = rates(decisions, test[1] == label, test[2])
        assert after < 0.65 * before  # the adversaries equalise scores, of which decisions are a part


@pytest.mark.parametrize("kind", LEARNERS)
def test_three_groups_and_two_attributes(kind: Any) -> None:
    X, y, group = biased(1200)
    third = np.where(np.arange(len(y)) % 5 == 0, "z", group)
    noise = np.random.default_rng(5).integers(2, size=len(y))
    values = [SPANS[kind][0], SPANS[kind][-1]]
    for sensitive in (third, {"sex": group, "noise": noise}):
        grid = quick(kind).fit_grid(X, y, sensitive_features=sensitive, values=values)
        before, after = rates(decided(grid, X), np.ones(len(y), bool), group)
        assert after < 0.6 * before


@pytest.mark.parametrize("kind", LEARNERS)
def test_default_values_run_from_least_to_most_fair(kind: Any) -> None:
    values = kind.default_values()
    assert len(values) == 20
    assert len(kind.default_values(7)) == 7
    steps = np.diff(values)
    assert (steps < 0).all() if kind is Reductions else (steps > 0).all()
    X, y, group = biased(300)
    short = {FAGTB: {"n_estimators": 5}, AdversarialDebiasing: {"epochs": 2}, Reductions: {"max_iter": 1}}
    grid = kind(**short[kind]).fit_grid(X, y, sensitive_features=group)
    np.testing.assert_array_equal(grid.values, values)
    assert isinstance(grid, ModelFamily)


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("within", ["against x", "within region"])
def test_a_reference_group_and_strata_are_refused(kind: Any, within: str, data: Data) -> None:
    X, y, group = data
    with pytest.raises(InvalidInputError, match="must be a measure's name alone"):
        quick(kind, fairness=f"demographic_parity {within}").fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("kind", LEARNERS)
def test_what_is_wrong_is_said(kind: Any, data: Data) -> None:
    X, y, group = data
    with pytest.raises(TypeError, match="sensitive_features"):
        quick(kind).fit(X, y)
    with pytest.raises(InvalidInputError, match="sensitive_features must be given"):
        quick(kind).fit(X, y, sensitive_features=None)
    with pytest.raises(InvalidInputError, match="1500; got 7"):
        quick(kind).fit(X, y, sensitive_features=group[:7])
    with pytest.raises(GroupError, match="at least two groups; got only 'x'"):
        quick(kind).fit(X, y, sensitive_features=np.full(len(y), "x"))
    odd = np.where((np.arange(len(y)) < 50) & (y == 0), "q", group)
    with pytest.raises(GroupError, match="group 'q' has none: merge it with another"):
        quick(kind, fairness="equal_opportunity").fit(X, y, sensitive_features=odd)
    with pytest.raises(InvalidInputError, match="did you mean 'equalized_odds'"):
        quick(kind, fairness="equalised_odds").fit(X, y, sensitive_features=group)
    with pytest.raises(InvalidInputError, match=f"{kind.knob} must be at least"):
        quick(kind, **{kind.knob: -1.0}).fit(X, y, sensitive_features=group)
    with pytest.raises(InvalidInputError, match="at least one value"):
        quick(kind).fit_grid(X, y, sensitive_features=group, values=[])
    with pytest.raises(InvalidInputError, match="must be finite"):
        quick(kind).fit_grid(X, y, sensitive_features=group, values=[0.1, np.inf])
    with pytest.raises(InvalidInputError, match="differ in six digits"):
        quick(kind).fit_grid(X, y, sensitive_features=group, values=[0.1, 0.1])
    with pytest.raises(NotFittedError):
        quick(kind).predict(X)


def test_metadata_routing_carries_the_attribute_through_a_pipeline(data: Data) -> None:
    X, y, group = data
    with sklearn.config_context(enable_metadata_routing=True):
        learner = FAGTB(8.0, n_estimators=30).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(StandardScaler(), learner)
        result = cross_validate(pipeline, X, y, params={"sensitive_features": group}, cv=3)
    assert result["test_score"].min() > 0.6


def test_the_kitchen_sink_takes_grids_too(data: Data) -> None:
    X, y, group = data
    grids = [quick(k).fit_grid(X, y, sensitive_features=group, values=SPANS[k][:2]) for k in LEARNERS]
    sink = kitchen_sink(MinipatchTrees(5, random_state=0).fit(X, y), *grids)
    assert sink.predict_matrix(X).shape == (len(y), 11)
    assert [g.is_randomized for g in grids] == [False, False, True]
    assert not sink.is_randomized
    assert sink.names[-1] == "reductions/bound=0.15"


# ------------------------------------------------------------------------------------------------------- FAGTB


def test_without_adversary_fagtb_is_gradient_boosting(data: Data) -> None:
    X, y, group = data
    ours = FAGTB(0.0, n_estimators=40).fit(X, y, sensitive_features=group).predict_proba(X)
    theirs = xgboost.XGBClassifier(
        n_estimators=40, learning_rate=0.1, max_depth=3, max_bin=256, base_score=y.mean(), tree_method="hist", n_jobs=1
    ).fit(X, y)
    np.testing.assert_allclose(ours, theirs.predict_proba(X), atol=2e-5)


@pytest.mark.parametrize(("fairness", "label"), [("demographic_parity", None), ("equal_opportunity", 1)])
def test_fagtb_round_follows_the_published_gradient(data: Data, fairness: str, label: int | None) -> None:
    # Three rounds by hand, with the second derivatives and the ridge of 1 that XGBoost has.
    X, y, group = data
    X = X[:, 2:3]  # a binary feature: there is one possible split
    weight, step = 3.0, 2.0
    learner = FAGTB(weight, fairness=fairness, n_estimators=3, adversary_step=step)
    model = learner.fit(X, y, sensitive_features=group)
    s, margin = (group == "y").astype(float), np.full(len(y), np.log(y.mean() / (1 - y.mean())))
    seen = np.ones(len(y), bool) if label is None else y == label
    share_of_group = s[seen].mean()
    a, b = 0.0, np.log(share_of_group / (1 - share_of_group))
    own_step = step / (4 * share_of_group * (1 - share_of_group))
    for _ in range(3):
        p = 1 / (1 + np.exp(-margin))
        error = 1 / (1 + np.exp(-(a * p + b))) - s
        curvature = p * (1 - p)
        share = curvature[seen].sum() / curvature.sum()
        gradient = (p - y) - seen * weight / share * error * a * curvature
        a, b = a - own_step * np.mean((error * p)[seen]), b - own_step * np.mean(error[seen])
        for side in (X[:, 0] == 0, X[:, 0] == 1):
            margin[side] -= 0.1 * gradient[side].sum() / (curvature[side].sum() + 1.0)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-margin)), atol=1e-5)
    assert abs(a) > 0.01


def test_absent_zeros_give_the_trees_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((800, 6)) < 0.25).astype(float)
    group = rng.integers(2, size=800)
    y = (X @ [2, -1, 1, 0, 0, 1] + 0.5 * group + rng.normal(size=800) > 1).astype(int)
    sparse = FAGTB(1.0, n_estimators=20).fit(X, y, sensitive_features=group)
    dense = FAGTB(1.0, n_estimators=20).fit(X + 1.0, y, sensitive_features=group)
    assert sparse.core_.missing == 0.0
    assert np.isnan(dense.core_.missing)
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X + 1.0), atol=1e-6)


def test_the_weight_means_the_same_for_any_number_of_rows(data: Data) -> None:
    X, y, group = data
    once = FAGTB(8.0, n_estimators=40, min_child_weight=0.0)
    score = clone(once).fit(X, y, sensitive_features=group).predict_proba(X)[:, 1]
    twice = clone(once).fit(np.repeat(X, 8, 0), np.repeat(y, 8), sensitive_features=np.repeat(group, 8))
    assert np.abs(score - twice.predict_proba(X)[:, 1]).mean() < 0.02


def test_the_weight_means_about_the_same_for_any_number_of_rounds(data: Data) -> None:
    X, y, group = data
    gaps = []
    for rounds, rate in [(50, 0.1), (100, 0.1), (100, 0.05), (400, 0.1)]:
        learner = FAGTB(8.0, n_estimators=rounds, learning_rate=rate).fit(X, y, sensitive_features=group)
        gaps.append(rates(learner.predict(X)[:, None], np.ones(len(y), bool), group)[0])
    plain = rates(FAGTB(0.0).fit(X, y, sensitive_features=group).predict(X)[:, None], np.ones(len(y), bool), group)[0]
    assert np.ptp(gaps) < 0.2 * plain


def test_the_step_of_the_adversary(data: Data) -> None:
    X, y, group = data
    fit = {"sensitive_features": group}
    for rounds, step in [(30, 0.3), (2, 3.0)]:
        auto = FAGTB(n_estimators=rounds).fit(X, y, **fit).predict_proba(X)
        np.testing.assert_array_equal(
            auto, FAGTB(n_estimators=rounds, adversary_step=step).fit(X, y, **fit).predict_proba(X)
        )
    with pytest.raises(InvalidInputError, match="adversary_step must be a number or 'auto'; got 'fast'"):
        FAGTB(adversary_step="fast").fit(X, y, **fit)
    with pytest.raises(InvalidInputError, match="adversary_step must be at least"):
        FAGTB(adversary_step=-1.0).fit(X, y, **fit)


def test_the_weight_means_about_the_same_for_groups_of_any_size() -> None:
    X, y, group = biased(6000)
    few = (group == "y") | (np.arange(len(y)) % 12 == 0)  # one in thirteen is an x
    left = []
    for rows in (np.ones(len(y), bool), few):
        grid = quick(FAGTB).fit_grid(X[rows], y[rows], sensitive_features=group[rows], values=[0.0, 5.0])
        before, after = rates(decided(grid, X), np.ones(len(y), bool), group)
        left.append(after / before)
    assert abs(left[0] - left[1]) < 0.15


@pytest.mark.parametrize("kind", [FAGTB, AdversarialDebiasing])
def test_a_tiny_group_does_not_drown_the_labels(kind: Any) -> None:
    X, y, group = biased(3000)
    tiny = (group == "y") | (np.cumsum(group == "x") <= 6)
    learner = quick(kind, adversary_weight=SPANS[kind][-1])
    decided = learner.fit(X[tiny], y[tiny], sensitive_features=group[tiny]).predict(X[tiny])
    assert np.mean(decided == y[tiny]) > 0.8


# --------------------------------------------------------------------------------------- adversarial debiasing


@pytest.mark.parametrize(
    ("rows", "batch"), [(100, 32), (2_639, 32), (8_000, 100), (9_999, 124), (10_000, 250), (15_000, 375), (10**6, 512)]
)
def test_small_data_have_smaller_batches(rows: int, batch: int) -> None:
    assert AdversarialDebiasing()._checked(rows).batch_size == batch


def test_written_out_derivatives_are_those_of_autograd() -> None:
    rng = np.random.default_rng(0)
    v, h, d, b, q = 3, 4, 5, 7, 2
    X, y = torch.from_numpy(rng.normal(size=(b, d)).astype(np.float32)), torch.arange(b)[:, None] % 2
    indicators = torch.from_numpy(rng.integers(2, size=(b, q)).astype(np.float32))
    seen = (torch.arange(b)[:, None] != 2).float()
    inputs = torch.cat([torch.ones(b, 1), y, 1 - y], dim=1)
    shares = np.array([0.5, 0.1], np.float32)
    predictors, adversaries = Predictors(torch, d, v, h, rng), Adversaries(torch, v, q, 3, shares)
    torch.testing.assert_close(adversaries.offset[0, :, 0].sigmoid(), torch.from_numpy(shares))
    for tensor in (*predictors.tensors, *adversaries.tensors):
        tensor.copy_(torch.from_numpy(rng.normal(size=tuple(tensor.shape)).astype(np.float32)))
    logits, hidden = predictors.forward(X)
    own, against = adversaries.gradients(logits, indicators, seen, inputs)
    weight = torch.tensor([0.5, 1.0, 2.0])
    moved = predictors.backward(X, hidden, (logits.sigmoid() - y) / b - weight * against)

    W, c, u, e = (t.clone().requires_grad_() for t in predictors.tensors)
    sharp, w, offset = (t.clone().requires_grad_() for t in adversaries.tensors)
    logit = (torch.relu(X @ W + c).view(b, v, h) * u).sum(2) + e
    s = torch.sigmoid((1 + sharp.abs()) * logit[:, :, None])
    output = ((w * s[:, :, :, None] + offset) * inputs[:, None, None, :]).sum(3)
    target = indicators[:, None, :].expand_as(output)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(output, target, reduction="none")
    by_group = (loss * seen[:, :, None] / seen.sum()).sum(0)
    adversary_loss = by_group.sum(1)
    # The predictor's term of the second group is divided by 4 · 0.1 · 0.9.
    hostile_loss = by_group[:, 0] + by_group[:, 1] / 0.36
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    predictor_loss = bce(logit, y.float().expand_as(logit), reduction="none").mean(0)
    expected = torch.autograd.grad((predictor_loss - weight * hostile_loss).sum(), [W, c, u, e], retain_graph=True)
    for ours, theirs in zip(moved, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(own, torch.autograd.grad(adversary_loss.sum(), [sharp, w, offset]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_projection_leaves_nothing_along_the_adversary_in_any_network() -> None:
    rng = np.random.default_rng(1)
    v, h, d = 3, 4, 3  # d = v: a shape alone would not tell the axes apart
    predictors = Predictors(torch, d, v, h, rng)
    gradients, directions = (
        [torch.from_numpy(rng.normal(size=tuple(t.shape)).astype(np.float32)) for t in predictors.tensors]
        for _ in range(2)
    )
    projected = predictors.project_out(gradients, directions)
    for j in range(v):
        for p, g, direction in zip(projected, gradients, directions, strict=True):
            own = [_of_network(t, j, v, h) for t in (p, g, direction)]
            assert abs(float((own[0] * own[2]).sum())) < 1e-4
            torch.testing.assert_close(own[1] - own[0], (own[1] * own[2]).sum() / (own[2] ** 2).sum() * own[2])


def _of_network(tensor: Any, j: int, v: int, h: int) -> Any:
    """Return network j's part of a parameter: columns j·h … of a layer, row j of the others."""
    if tensor.shape[-1] == v * h:
        return tensor[..., j * h : (j + 1) * h]
    return tensor[j]


def test_the_projection_is_offered_and_differs(data: Data) -> None:
    X, y, group = data
    fits = [
        quick(AdversarialDebiasing, projection=p).fit(X, y, sensitive_features=group).predict_proba(X)
        for p in (False, True)
    ]
    assert not np.allclose(*fits, atol=1e-2)


def test_prediction_needs_no_torch_and_training_leaves_its_threads_alone(data: Data) -> None:
    X, y, group = data
    before = torch.get_num_threads()
    model = quick(AdversarialDebiasing).fit(X, y, sensitive_features=group)
    assert torch.get_num_threads() == before
    assert all(isinstance(value, np.ndarray) for value in vars(model.core_).values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be an int of at least 1; got 0"),
        ({"batch_size": "all"}, "batch_size must be an int or 'auto'; got 'all'"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"learning_rate": -1}, "learning_rate must be at least"),
    ],
)
def test_bad_training_settings_are_named(settings: dict[str, Any], message: str, data: Data) -> None:
    X, y, group = data
    with pytest.raises(InvalidInputError, match=message):
        AdversarialDebiasing(**settings).fit(X, y, sensitive_features=group)


# --------------------------------------------------------------------------------------------------- reductions


def test_expected_decisions_are_those_of_fairlearn(data: Data) -> None:
    X, y, group = data
    ours = Reductions(0.05, estimator=LogisticRegression()).fit(X, y, sensitive_features=group)
    theirs = ExponentiatedGradient(LogisticRegression(), DemographicParity(difference_bound=0.05))
    with pytest.warns(DeprecationWarning, match="pandas|deprecated"):  # Fairlearn's own use of pandas
        theirs.fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(ours.predict_proba(X), theirs._pmf_predict(X), atol=1e-12)
    assert ours.n_iter_ == theirs.last_iter_ + 1


@pytest.mark.parametrize(
    ("ratio", "difference"),
    [("impact_ratio", "demographic_parity"), ("equal_opportunity_ratio", "true_positive_rate_parity")],
)
def test_reductions_bound_the_difference_of_the_rates_that_a_ratio_compares(
    data: Data, ratio: str, difference: str
) -> None:
    X, y, group = data
    first, second = (
        Reductions(0.02, fairness=name, max_iter=5).fit(X, y, sensitive_features=group).predict_proba(X)
        for name in (ratio, difference)
    )
    np.testing.assert_array_equal(first, second)


def test_expected_accuracy_and_bias_are_the_average_over_draws(data: Data) -> None:
    X, y, group = data
    grid = Reductions().fit_grid(X, y, sensitive_features=group, values=[0.03, 0.08])
    points = tradeoff_points(
        y, grid.predict_matrix(X), sensitive_features=group, threshold=None, include_constant=False
    )
    for j, (_, model) in enumerate(grid.estimators):
        draws = np.column_stack([model.sample_decisions(X, random_state=seed) for seed in range(200)])
        assert draws.mean(axis=1).std() > 0.0
        assert (draws == y[:, None]).mean() == pytest.approx(points.accuracy[j], abs=0.004)
        gap = draws[group == "x"].mean() - draws[group == "y"].mean()
        assert abs(gap) == pytest.approx(1.0 - points.fairness[j], abs=0.006)
        # The guarantee is about this expectation: both groups are within the bound of the whole.
        assert abs(gap) <= 2 * model.bound + 0.02


def test_draws_are_reproducible(data: Data) -> None:
    X, y, group = data
    model = Reductions(0.02, random_state=4).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(model.sample_decisions(X), model.sample_decisions(X))
    assert not np.array_equal(model.sample_decisions(X), model.sample_decisions(X, random_state=5))


def test_any_classifier_that_takes_weights_will_do(data: Data) -> None:
    X, y, group = data
    trees = [
        Reductions(0.05, estimator=DecisionTreeClassifier(max_depth=4, splitter="random"), random_state=r, max_iter=5)
        .fit(X, y, sensitive_features=group)
        .predict_proba(X)
        for r in (0, 0, 1)
    ]
    np.testing.assert_array_equal(trees[0], trees[1])
    assert not np.array_equal(trees[0], trees[2])
