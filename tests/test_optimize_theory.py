"""The out-of-sample theorem and Theorem 3 as tools."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import fairfrontier as ff
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._theory import certify, generalization_bound, score_decision_diagnostics


def slack_word_by_word(n1, n2, p, delta):
    n = min(n1, n2)
    return 4 * np.sqrt(((p + 1) * np.log(2 * n + 1) + np.log(2)) / n) + np.sqrt(np.log(2 / delta) / n)


@pytest.mark.parametrize(("n1", "n2", "p", "delta"), [(1000, 400, 3, 0.05), (10**6, 10**7, 50, 0.01), (50, 60, 1, 0.5)])
def test_the_bound_is_the_theorem(n1, n2, p, delta):
    n = min(n1, n2)
    accuracy = 2 * np.sqrt((p + 1) * np.log(2 * n + 1) / n) + np.sqrt(np.log(1 / delta) / n)
    expected = slack_word_by_word(n1, n2, p, delta)
    bound = generalization_bound(n1, n2, n_models=p, delta=delta)
    assert bound.accuracy == pytest.approx(accuracy, rel=1e-12)
    assert bound.bias == pytest.approx(expected, rel=1e-12)
    assert bound.confidence == pytest.approx(1 - delta)
    finite = generalization_bound(n1, n2, n_models=p, delta=delta, n1_test=90, n2_test=200, epsilon=0.02)
    assert finite.accuracy == pytest.approx(accuracy + np.sqrt(np.log(1 / 0.02) / (4 * 90)), rel=1e-12)
    assert finite.bias == pytest.approx(expected + np.sqrt(np.log(2 / 0.02) / 90), rel=1e-12)
    assert finite.confidence == pytest.approx(1 - delta - 0.02)


def test_a_difference_of_two_means_is_within_the_slack_of_a_test_set():
    rng = np.random.default_rng(0)
    n, epsilon = 200, 0.05
    gap = np.abs(rng.binomial(n, 0.5, 100_000) - rng.binomial(n, 0.5, 100_000)) / n
    finite, endless = (
        generalization_bound(10**6, 10**6, n_models=1, epsilon=epsilon, **test).bias
        for test in ({"n1_test": n, "n2_test": n}, {})
    )
    assert np.mean(gap > finite - endless) < epsilon
    assert np.mean(gap > np.sqrt(np.log(1 / epsilon) / (2 * n))) > epsilon  # the paper's slack


def test_it_says_when_it_says_nothing_and_what_would_help():
    bound = generalization_bound(300, 500, n_models=100, useful=0.1)
    assert bound.vacuous
    assert "says nothing" in str(bound)
    assert slack_word_by_word(bound.needed, bound.needed, 100, 0.05) <= 0.1
    assert slack_word_by_word(bound.needed - 2, bound.needed - 2, 100, 0.05) > 0.1 - 1e-9
    assert not generalization_bound(10**7, 10**7, n_models=5).vacuous


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"n1": 0, "n2": 5, "n_models": 2}, "n1"),
        ({"n1": 5, "n2": 5, "n_models": 2.5}, "n_models"),
        ({"n1": 5, "n2": 5, "n_models": 2, "delta": 0.0}, "delta"),
        ({"n1": 5, "n2": 5, "n_models": 2, "delta": 0.6, "n1_test": 5, "n2_test": 5, "epsilon": 0.6}, "epsilon"),
        ({"n1": 5, "n2": 5, "n_models": 2, "n1_test": 5}, "n2_test"),
    ],
)
def test_bad_arguments_are_named(arguments, names):
    n1, n2 = arguments.pop("n1"), arguments.pop("n2")
    with pytest.raises(InvalidInputError, match=names):
        generalization_bound(n1, n2, **arguments)


def sample(rng, n):
    sex = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.35 + 0.25 * sex).astype(int)
    noise = rng.normal(0, 0.25, (n, 3))
    return np.stack([0.5 * y + 0.3 * sex, 0.6 * y + 0.1 * sex, 0.4 * y - 0.1 * sex], axis=1) + noise, y, sex


def test_certificates_hold_more_often_than_they_promise():
    rng = np.random.default_rng(1)
    H, y, sex = sample(rng, 600)
    model = ff.FairStacksClassifier("precomputed", alpha=1.0, tau=0.02).fit(H, y, sensitive_features=sex)
    big_h, big_y, big_sex = sample(rng, 400_000)
    truth = certify(model, big_h, big_y, sensitive_features=big_sex)
    held_bias = held_accuracy = 0
    for _ in range(60):
        small_h, small_y, small_sex = sample(rng, 500)
        small = certify(model, small_h, small_y, sensitive_features=small_sex, confidence=0.8)
        held_bias += truth.measured_bias <= small.bias
        held_accuracy += truth.measured_accuracy >= small.accuracy
    assert held_bias >= 48
    assert held_accuracy >= 48
    assert truth.bias < 0.05 + truth.measured_bias
    assert "confidence the bias of this stack is at most" in str(truth)
    assert truth.theorem.vacuous == (truth.theorem.bias >= 1)


def test_diagnostics_measure_what_they_say():
    rng = np.random.default_rng(2)
    H, y, sex = sample(rng, 4000)
    model = ff.FairStacksClassifier("precomputed", alpha=1.0, n_points=9).fit(H, y, sensitive_features=sex)
    report = score_decision_diagnostics(model, H, y, sensitive_features=sex)
    scores = model.predict_path(H)
    first, second = sex == 0, sex == 1
    np.testing.assert_allclose(report.score_bias, model.path_.score_bias, atol=1e-12)
    decided = scores > 0.5
    np.testing.assert_allclose(report.decision_bias, decided[first].mean(0) - decided[second].mean(0), atol=1e-12)
    by_covariance = [
        w @ np.cov(H[first].T, bias=True) @ w / (w @ np.cov(H[second].T, bias=True) @ w) for w in model.path_.weights
    ]
    np.testing.assert_allclose(report.covariance_ratio, by_covariance, rtol=1e-10)
    steps = [
        i
        for i in range(8)
        if (report.score_bias[i + 1] - report.score_bias[i]) * (report.decision_bias[i + 1] - report.decision_bias[i])
        < 0
    ]
    assert report.violations.tolist() == steps
    assert report.monotone == (not steps)


def test_the_papers_counterexample_is_found():
    """Equal mean scores with unequal spread: perfect score fairness, decision bias one half."""
    sex = np.repeat([0, 1], 400)
    score = np.concatenate([np.full(400, 0.6), np.tile([0.4, 0.8], 200)])
    y = np.tile([0, 1], 400)
    model = ff.FairStacksClassifier("precomputed", alpha=0.0, n_points=2).fit(
        np.stack([score, y + 0.0], axis=1), y, sensitive_features=sex
    )
    model.path_.weights[:] = [1.0, 0.0]
    model.path_.intercept[:] = 0.0
    report = score_decision_diagnostics(model, np.stack([score, y + 0.0], axis=1), y, sensitive_features=sex)
    np.testing.assert_allclose(report.score_bias, 0.0, atol=1e-12)
    np.testing.assert_allclose(report.decision_bias, 0.5, atol=1e-12)
    assert np.all(report.covariance_ratio < 1e-12)


OTHER_LABELS = [
    (lambda y: np.where(y == 1, "yes", "no"), r"y must have the classes of the fit, \[0, 1\]; got 'no'"),
    (lambda y: y + 1, r"y must have the classes of the fit, \[0, 1\]; got 2"),
    (lambda y: np.where(y == 1, np.nan, 0.0), "y must be finite; got nan"),
    (lambda y: [None, *y[1:]], "y must have no missing value; got None"),
    (lambda y: None, "y must be 1-D; got None"),
    (lambda y: y[:-1], "as many rows as y_true, 199; got 200"),
]


@pytest.mark.parametrize("check", [certify, score_decision_diagnostics])
@pytest.mark.parametrize(("change", "message"), OTHER_LABELS)
def test_labels_that_the_stack_does_not_know_certify_nothing(check, change, message):
    H, y, sex = sample(np.random.default_rng(4), 200)
    model = ff.FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=sex)
    with pytest.raises(InvalidInputError, match=message):
        check(model, H, change(y), sensitive_features=sex)


@pytest.mark.parametrize("check", [certify, score_decision_diagnostics])
def test_only_a_fitted_classifier_is_certified(check):
    H, y, sex = sample(np.random.default_rng(4), 200)
    regressor = ff.FairStacksRegressor("precomputed", alpha=1.0).fit(H, y, sensitive_features=sex)
    for wrong, name in ((regressor, "FairStacksRegressor"), (None, "NoneType")):
        with pytest.raises(InvalidInputError, match=f"model must be a FairStacksClassifier, .* got {name}"):
            check(wrong, H, y, sensitive_features=sex)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        check(ff.FairStacksClassifier(), H, y, sensitive_features=sex)


def test_a_certificate_does_not_depend_on_the_names_of_the_classes():
    H, y, sex = sample(np.random.default_rng(4), 400)
    named = np.where(y == 1, "yes", "no")
    certificates = [
        certify(
            ff.FairStacksClassifier("precomputed", alpha=1.0).fit(H, labels, sensitive_features=sex),
            H,
            labels,
            sensitive_features=sex,
        )
        for labels in (y, named)
    ]
    assert certificates[0] == certificates[1]


def test_a_stack_that_randomises_is_certified_over_all_its_draws():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1500)
    y = (rng.random(1500) < 0.3 + 0.3 * group).astype(int)
    H = np.clip((0.3 + 0.3 * y + 0.1 * group)[:, None] + rng.normal(0, 0.25, (1500, 3)), 0, 1)
    fit, new = slice(0, 1000), slice(1000, None)
    stack = ff.FairStacksClassifier("precomputed", random_state=0).fit(H[fit], y[fit], sensitive_features=group[fit])
    model = stack.select(0.9, randomize=True, secret="sixteen bytes, at least")
    assert model.selection_.kind == "mixture"
    chance = model.predict_proba(H[new])[:, 1]
    found = ff.certify(model, H[new], y[new], sensitive_features=group[new])
    rates = [chance[group[new] == g].mean() for g in (0, 1)]
    assert found.measured_bias == pytest.approx(abs(rates[0] - rates[1]))
    assert found.measured_accuracy == pytest.approx(np.where(y[new] == 1, chance, 1 - chance).mean())


def test_a_measure_that_is_no_difference_is_not_certified():
    rng = np.random.default_rng(0)
    H, y, group = rng.random((300, 2)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    model = ff.FairStacksClassifier("precomputed", fairness="impact_ratio", alpha=1.0)
    model.fit(H, y, sensitive_features=group)
    with pytest.raises(InvalidInputError, match=r"measure of differences; got fairness='impact_ratio'.*select\("):
        ff.certify(model, H, y, sensitive_features=group)
