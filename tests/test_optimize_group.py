"""Debiasing directions that shrink towards models of the attribute, against least squares on augmented rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairfrontier import FairStacksClassifier, FairStacksRegressor, StepWeight, fauc, tradeoff_points
from fairfrontier.chunks import array_chunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import fit_group_models
from fairfrontier.optimize._base_models import FitOptions, fit_group_columns
from fairfrontier.optimize._ridge_path import (
    RidgeFactor,
    evidence_of_directions,
    evidence_scales,
    plug_in_directions,
    signed_targets,
)
from fairfrontier.optimize._stack_input import group_columns, wants_group_models

from .stacking import Stacking, measured

# Of the last three models two are learners of the same thing.
GROUP = np.array([-1] * 5 + [0, 1, 0])


class Rows:
    """Five models of y and three of the attribute; contrasts (n, m) by hand."""

    def __init__(self, seed, *, groups=2, fairness="demographic_parity", n=300):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, groups, n)
        label = rng.random(n) < 0.3 + 0.3 * group / groups
        of_y = 0.4 * label[:, None] + 0.2 * group[:, None] * rng.random(5) + rng.normal(0, 0.3, (n, 5))
        cell = group if fairness == "demographic_parity" else group * label
        of_group = 0.3 * cell[:, None] ** np.array([1, 2, 1]) + rng.normal(0, 0.3, (n, 3))
        self.H, self.y = np.column_stack([of_y, of_group]), label.astype(float)
        self.stacking = Stacking(self.H, self.y, group, fairness)
        self.statistics = self.stacking.statistics()
        member = self.stacking.contrasts.membership[:, self.stacking.codes].astype(float)
        mean = member / member.sum(axis=1, keepdims=True)
        self.C = np.stack([mean[i] - mean[j] for i, j in self.stacking.contrasts.sets.pairs()], axis=1)

    @property
    def centred(self):
        return self.H - self.H.mean(axis=0)


MEASURES = [
    {"groups": 2},
    {"groups": 3},
    {"groups": 2, "fairness": "equal_opportunity"},
    {"groups": 3, "fairness": "equalized_odds"},
]


def augmented(rows, penalty, plug_in):
    """Ridge towards P as least squares: below the rows, one row √λ for each model with the target √λ·P."""
    design = np.vstack([rows.centred, np.diag(np.sqrt(penalty))])
    return np.linalg.lstsq(design, np.vstack([rows.C, np.sqrt(penalty)[:, None] * plug_in]), rcond=None)[0]


def test_plug_in_directions_are_a_regression_on_the_models_of_the_attribute_alone():
    rows = Rows(0, groups=3)
    found = plug_in_directions(rows.statistics, GROUP)
    assert found.shape == (8, 3)
    assert not found[:5].any()
    means = np.column_stack([rows.H[:, [5, 7]].mean(axis=1), rows.H[:, 6]])
    alone = replace(rows.stacking, H=means).statistics()
    penalty = evidence_of_directions(alone, np.zeros(2, dtype=int))
    design = np.vstack([means - means.mean(axis=0), np.diag(np.sqrt(penalty))])
    expected = np.linalg.lstsq(design, np.vstack([rows.C, np.zeros((2, 3))]), rcond=None)[0]
    np.testing.assert_allclose(found[5:], [expected[0] / 2, expected[1], expected[0] / 2], atol=1e-12)
    assert plug_in_directions(rows.statistics, None) is None
    assert plug_in_directions(rows.statistics, np.full(8, -1)) is None


@pytest.mark.parametrize("options", MEASURES)
def test_the_evidence_is_that_of_all_pairs_whatever_the_order_of_the_groups(options):
    """What the models of the attribute leave of each pair's contrast counts in units of itself."""
    rows, n_groups = Rows(3, **options), options["groups"]
    family = np.repeat([0, 1], [5, 3])
    penalty = evidence_of_directions(rows.statistics, family, GROUP)
    turned = replace(rows.stacking, group=n_groups - 1 - rows.stacking.group).statistics()
    np.testing.assert_allclose(evidence_of_directions(turned, family, GROUP), penalty, rtol=1e-9)
    assert np.isfinite(penalty).all()


def test_the_evidence_is_that_of_a_target_which_is_what_the_models_of_the_attribute_leave():
    rows, family = Rows(2), np.repeat([0, 1], [5, 3])
    left = rows.C[:, 0] - rows.centred @ plug_in_directions(rows.statistics, GROUP)[:, 0]
    assert 0.1 < np.square(left).sum() / np.square(rows.C).sum() < 0.9
    found = evidence_scales(Stacking(rows.H, left, rows.stacking.group, regression=True).statistics(), family)
    # Contrasts ask for three times what a label asks for.
    expected = 3.0 * found.alpha / 2.0 * found.scale**2
    np.testing.assert_allclose(evidence_of_directions(rows.statistics, family, GROUP), expected, rtol=1e-9)


def test_where_the_attribute_is_known_the_ridge_has_the_unit_of_the_weights():
    """Its models leave nothing of the contrasts but rounding, and a floor must not depend on what a row weighs."""
    rows = Rows(4)
    H = np.column_stack([rows.H[:, :5], *[rows.stacking.group.astype(float)] * 3])

    def penalty(weight):
        statistics = replace(rows.stacking, H=H, weight=np.full(len(H), weight)).statistics()
        return evidence_of_directions(statistics, np.repeat([0, 1], [5, 3]), GROUP)

    for weight in (1e-4, 1e3):
        np.testing.assert_allclose(penalty(weight) / weight, penalty(1.0), rtol=1e-6)


@pytest.mark.parametrize("options", MEASURES)
@pytest.mark.parametrize("own", [True, False])
def test_stacks_move_along_the_ridge_regression_towards_the_plug_in_rule(options, own):
    rows = Rows(1, **options)
    scale = np.linspace(0.5, 2.0, 8)
    penalty = np.linspace(1.0, 30.0, 8) if own else 7.0 * scale**2
    factor = RidgeFactor(rows.statistics, scale, penalty if own else None, GROUP)
    solution = factor.at(14.0)
    V = augmented(rows, penalty, plug_in_directions(rows.statistics, GROUP))
    targets = signed_targets(solution.b0, 4)
    path = factor.path(solution, targets)
    assert path.kkt.max() < 1e-10
    moves = path.weights - solution.w0
    inside = np.linalg.lstsq(V, moves.T, rcond=1e-10)[0]
    np.testing.assert_allclose(V @ inside, moves.T, atol=1e-10)
    np.testing.assert_allclose(path.weights @ (rows.H.T @ rows.C), targets, atol=1e-11)
    np.testing.assert_allclose(solution.S, solution.S.T, atol=1e-14)
    # Of all such moves with the same bias the path has the cheapest, in the metric of the ridge regression.
    metric = rows.centred.T @ rows.centred + np.diag(penalty)
    null = np.linalg.svd(rows.C.T @ rows.centred @ V)[2][np.linalg.matrix_rank(rows.C.T @ rows.centred @ V, 1e-9) :]
    for move in moves:
        for direction in null:
            away = V @ direction
            assert move @ metric @ away == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("options", MEASURES)
def test_the_two_limits_of_the_ridge(options):
    """An infinite ridge is the plug-in rule, no ridge is the regression on all models."""
    rows = Rows(2, **options)
    plug_in = plug_in_directions(rows.statistics, GROUP)
    stiff = RidgeFactor(rows.statistics, np.ones(8), np.full(8, 1e12), GROUP)
    targets = signed_targets(stiff.at(3.0).b0, 3)
    moves = stiff.at(3.0).stacks(targets)[0] - stiff.at(3.0).w0
    np.testing.assert_allclose(moves[:, :5], 0.0, atol=1e-7)
    inside = np.linalg.lstsq(plug_in, moves.T, rcond=1e-10)[0]
    np.testing.assert_allclose(plug_in @ inside, moves.T, atol=1e-7)
    loose = np.full(8, 1e-9)
    towards = RidgeFactor(rows.statistics, np.ones(8), loose, GROUP).at(3.0).stacks(targets)[0]
    np.testing.assert_allclose(
        towards, RidgeFactor(rows.statistics, np.ones(8), loose).at(3.0).stacks(targets)[0], atol=1e-7
    )


def test_no_model_of_the_attribute_changes_nothing():
    rows = Rows(3, groups=3)
    plain = RidgeFactor(rows.statistics, np.ones(8)).at(2.0)
    nobody = RidgeFactor(rows.statistics, np.ones(8), None, np.full(8, -1)).at(2.0)
    np.testing.assert_array_equal(nobody.U, plain.U)
    np.testing.assert_array_equal(nobody.S, plain.S)
    assert group_columns(["forest/1", "groups", "zoo/group/1"]) is None


def test_the_certificate_finds_a_stack_that_left_the_directions():
    rows = Rows(4)
    factor = RidgeFactor(rows.statistics, np.ones(8), np.full(8, 20.0), GROUP)
    solution = factor.at(1.0)
    target = 0.2 * solution.b0[None, :]
    weights, _ = solution.stacks(target)
    assert factor.kkt(solution, weights, target)[0] < 1e-12
    away = np.linalg.svd(factor.contrasts.T)[2][-1]  # moves no bias
    assert factor.kkt(solution, weights + 0.01 * away, target)[0] > 1e-4
    # What would be right without models of the attribute is not right with them.
    plain = RidgeFactor(rows.statistics, np.ones(8), np.full(8, 20.0))
    assert factor.kkt(solution, plain.at(1.0).stacks(target)[0], target)[0] > 1e-4


def test_evidence_shrinks_to_the_plug_in_rule_what_is_noise():
    """Models that say nothing of the contrast beyond those of the attribute are penalised out of the directions."""
    rng = np.random.default_rng(5)
    n = 400
    group = rng.integers(0, 2, n)
    of_group = 0.5 + 0.3 * (group[:, None] - 0.5) + rng.normal(0, 0.1, (n, 2))
    H = np.column_stack([rng.normal(0, 1, (n, 40)), of_group])
    statistics = Stacking(H, rng.normal(size=n), group, regression=True).statistics()
    family = (np.arange(42) >= 40).astype(int)
    what = family - 1
    penalty = evidence_of_directions(statistics, family, what)
    U = RidgeFactor(statistics, np.ones(42), penalty, what).at(1.0).U[:, 0]
    noise, signal = H[:, :40] @ U[:40], of_group @ U[40:]
    assert noise.std() < 0.15 * signal.std()


def blind_task(seed, n):
    """The attribute is not a feature, but some features tell of it; models of y hold a part of that only."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    proxy, skill = group + rng.normal(0, 0.7, n), rng.normal(0, 1, n)
    y = (skill + 0.9 * group + rng.normal(0, 0.6, n) > 0.45).astype(int)
    score = 1.0 / (1.0 + np.exp(-(1.6 * skill + 1.2 * proxy - 1.2)))
    of_y = score[:, None] + rng.normal(0, 0.1, (n, 6))
    of_group = 1.0 / (1.0 + np.exp(-(2.0 * proxy - 1.0)))[:, None] + rng.normal(0, 0.02, (n, 2))
    return np.column_stack([of_y, of_group]), y, group


NAMES = [f"zoo/{j}" for j in range(6)] + ["group/sex=1/logistic", "group/sex=1/trees"]


def test_models_of_the_attribute_raise_the_frontier_of_a_blind_stack():
    H, y, group = blind_task(0, 1500)
    new, y_new, group_new = blind_task(1, 20000)
    found = {}
    for name, k in (("with", 8), ("without", 6)):
        model = FairStacksClassifier(NAMES[:k], cv="precomputed", random_state=0)
        model.fit(H[:, :k], y, sensitive_features=group)
        assert model.path_.kkt.max() < 1e-8
        points = tradeoff_points(y_new, model.predict_path(new[:, :k]), sensitive_features=group_new)
        found[name] = fauc(points.frontier(), StepWeight(0.8))
    assert found["with"] > found["without"] + 0.01


@pytest.mark.parametrize("kind", [FairStacksClassifier, FairStacksRegressor])
@pytest.mark.parametrize("alpha", ["cv", 20.0])
def test_rows_in_chunks_are_the_same_stack(kind, alpha):
    H, y, group = blind_task(2, 900)
    fold = np.arange(900) % 5
    chunks = array_chunks(y, H, sensitive_features={"sex": group}, names=NAMES, fold=fold, chunk_rows=200)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
    ours = kind(NAMES, cv="precomputed", alpha=alpha).fit_chunks(chunks)
    whole = kind("precomputed", cv=splits, alpha=alpha).fit(
        dict(zip(NAMES, H.T, strict=True)), y, sensitive_features={"sex": group}
    )
    np.testing.assert_allclose(ours.path_.weights, whole.path_.weights, atol=1e-8)
    assert ours.path_.kkt.max() < 1e-8


def test_the_published_path_does_not_know_models_of_the_attribute():
    H, y, group = blind_task(3, 600)
    options = {"cv": "precomputed", "path": "paper", "family_scales": None, "alpha": 5.0}
    named = FairStacksClassifier(NAMES, **options).fit(H, y, sensitive_features=group)
    anonymous = FairStacksClassifier([f"zoo/{j}" for j in range(8)], **options).fit(H, y, sensitive_features=group)
    np.testing.assert_array_equal(named.path_.weights, anonymous.path_.weights)


def test_a_stack_that_is_given_the_attribute_does_not_shrink_towards_its_models():
    H, y, group = blind_task(4, 600)
    options = {"cv": "precomputed", "attribute_aware": True, "alpha": 5.0}
    named = FairStacksClassifier(NAMES, **options).fit(H, y, sensitive_features=group)
    anonymous = FairStacksClassifier([f"zoo/{j}" for j in range(8)], **options).fit(H, y, sensitive_features=group)
    np.testing.assert_array_equal(named.path_.weights, anonymous.path_.weights)


def test_columns_of_a_fold_come_from_models_that_have_not_seen_it():
    rng = np.random.default_rng(7)
    n = 240
    group, X = rng.choice(["a", "b", "c"], n), rng.normal(size=(n, 3))
    X[:, 0] += 2.0 * (group == "b")
    cells = measured(rng.random(n) < 0.5, {"g": group})
    folds = np.arange(n) % 4
    found = fit_group_columns(X, *cells, folds, FitOptions(classes=None), fairness="demographic_parity")
    assert [name for name, _ in found.estimators] == [
        # The largest group, b, is the one that the others are compared with.
        "group/g=c/logistic",
        "group/g=a/logistic",
        "group/g=c/hist_boosting",
        "group/g=a/hist_boosting",
    ]
    rest, fold = np.flatnonzero(folds != 2), np.flatnonzero(folds == 2)
    alone = fit_group_models(X[rest], {"g": group[rest]})
    assert alone.names[1] == "group/g=c/logistic"
    np.testing.assert_allclose(found.matrix[fold, 0], alone.predict_matrix(X[fold])[:, 1], atol=1e-10)
    everything = fit_group_models(X, {"g": group}).predict_matrix(X)
    np.testing.assert_allclose(found.estimators[0][1].predict(X), everything[:, 1], atol=1e-10)


def test_weights_reach_the_models_of_the_attribute():
    rng = np.random.default_rng(8)
    group, X = rng.integers(0, 2, 200), rng.normal(size=(200, 2))
    cells = measured(np.arange(200) % 2 == 0, group, "equal_opportunity")
    plain, weighted = (
        fit_group_columns(
            X, *cells, np.arange(200) % 3, FitOptions(None, sample_weight=w), fairness="equal_opportunity"
        )
        for w in (None, 1.0 + 9.0 * group)
    )
    assert plain.matrix.shape == (200, 4)
    assert weighted.matrix[:, 1].mean() > plain.matrix[:, 1].mean() + 0.1


@pytest.mark.parametrize(
    ("given", "options", "wanted"),
    [
        ("auto", {}, True),
        (True, {"loss": "log"}, True),
        (None, {}, False),
        (False, {}, False),
        ("auto", {"path": "paper"}, False),
        ("auto", {"loss": "log"}, False),
        ("auto", {"names": ["group/sex=m/mine"]}, False),
        ("auto", {"fairness": [(np.ones(3, dtype=bool), np.ones(3, dtype=bool))]}, False),
    ],
)
def test_when_models_of_the_attribute_are_added(given, options, wanted):
    parameters = {"names": ["lr"], "fairness": "equalized_odds"} | options
    names = parameters.pop("names")
    assert wants_group_models(FairStacksClassifier(group_models=given, **parameters), names) is wanted


@pytest.mark.parametrize(("given", "fairness"), [("yes", "demographic_parity"), (True, [])])
def test_what_group_models_may_be(given, fairness):
    with pytest.raises(InvalidInputError, match="group_models"):
        wants_group_models(FairStacksClassifier(group_models=given, fairness=fairness), [])


class TestFittedModels:
    """One fitted model whose score follows a proxy of the group."""

    @pytest.fixture
    def people(self):
        rng = np.random.default_rng(11)
        group = rng.integers(0, 2, 3000)
        skill, proxy = rng.normal(size=3000), group + rng.normal(0, 0.5, 3000)
        X = np.column_stack([skill, proxy])
        y = (skill + group + rng.normal(0, 0.7, 3000) > 0.5).astype(int)
        return X, y, group

    def fitted(self, people, **options):
        X, y, group = (one[1000:2000] for one in people)
        models = [("lr", LogisticRegression().fit(people[0][:1000], people[1][:1000]))]
        return FairStacksClassifier(models, cv="prefit", random_state=0, **options).fit(X, y, sensitive_features=group)

    def test_models_of_the_attribute_join_when_asked(self, people):
        plain, joined = self.fitted(people), self.fitted(people, group_models=True)
        assert plain.names_ == ("lr",)
        assert [name.split("/")[0] for name in joined.names_] == ["lr", "group", "group"]
        X, y, group = (one[2000:] for one in people)
        found = {name: one.select(0.95).predict(X) for name, one in {"plain": plain, "joined": joined}.items()}
        points = tradeoff_points(y, found, sensitive_features=group)
        # The only model mixes skill and proxy; the model of the group takes them apart.
        assert points.accuracy[1] > points.accuracy[0] + 0.03
        assert points.fairness[1] > 0.9

    def test_the_models_are_those_that_unfitted_estimators_get(self, people):
        X, y, group = (one[1000:2000] for one in people)
        unfitted = FairStacksClassifier([("lr", LogisticRegression())], random_state=0)
        unfitted.fit(X, y, sensitive_features=group)
        joined = self.fitted(people, group_models=True)
        assert joined.names_ == unfitted.names_
        for (_, one), (_, other) in zip(joined.estimators_[1:], unfitted.estimators_[1:], strict=True):
            np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-12)

    def test_a_costly_selection_without_them_says_so(self, people):
        advice = "no model of the attribute is in the stack"
        assert any(note.startswith(advice) for note in self.fitted(people).select(0.95).selection_.notes)
        joined = self.fitted(people, group_models=True).select(0.95)
        assert not any(note.startswith(advice) for note in joined.selection_.notes)
        aware = self.fitted(people, attribute_aware=True).select(0.95)
        assert not any(note.startswith(advice) for note in aware.selection_.notes)

    def test_predictions_alone_cannot_have_them(self, people):
        with pytest.raises(InvalidInputError, match=r"group_models must be .* with precomputed predictions"):
            FairStacksClassifier(group_models=True).fit(people[0], people[1], sensitive_features=people[2])
