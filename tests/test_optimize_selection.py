"""Selecting a place on the path: what is asked for is what new rows show, and nothing is worse than the constant."""

import numpy as np
import pytest
from scipy.special import expit

from fairfrontier import FairStacksClassifier


def population(seed, n, *, shift=0.8, k=4, spread=0.6):
    """Return predictions of k models, labels and two groups that differ by `shift` in a feature."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.4).astype(int)
    X = rng.normal(size=(n, 5)) + shift * group[:, None] * [1.0, 0.2, -0.3, 0.5, 0.0]
    y = (X @ [1.0, 1.0, 0.5, 0.0, 0.0] + rng.normal(0, 1.5, n) > 0.6).astype(int)
    models = np.random.default_rng(7).normal([1.0, 1.0, 0.5, 0.0, 0.0], spread, (k, 5))
    return expit(X @ models.T), y, group


def five_groups(seed, n, k=4):
    rng = np.random.default_rng(seed)
    group = rng.choice(5, n, p=[0.45, 0.25, 0.15, 0.1, 0.05])
    X = rng.normal(size=(n, 5))
    X[:, 0] += np.array([0.0, 0.6, -0.4, 0.3, -0.8])[group]
    X[:, 3] += np.array([0.0, 0.5, -0.3, 0.2, -0.6])[group]
    y = (X @ [1.0, 1.0, 0.5, 0.0, 0.0] + rng.normal(0, 1.5, n) > 0.3).astype(int)
    models = np.random.default_rng(9).normal([1.0, 1.0, 0.5, 0.0, 0.0], 0.6, (k, 5))
    return expit(X @ models.T), y, group


def fairness(decided, group):
    rates = [decided[group == g].mean() for g in np.unique(group)]
    return 1.0 - (max(rates) - min(rates))


@pytest.fixture(scope="module")
def nearly_fair():
    """Stacks of models that are independent of the attribute, and many rows."""
    H, y, _ = population(10**6, 40_000, shift=0.0)
    result = []
    for seed in range(12):
        rows, label, group = population(seed, 2000, shift=0.0)
        result.append(FairStacksClassifier(random_state=seed).fit(rows, label, sensitive_features=group))
    return result, H, y


class TestNearlyFairModels:
    """The attribute is independent of everything: there is nothing to correct, and nothing to pay for it."""

    def test_the_path_holds_no_stack_that_is_worse_than_the_constant(self, nearly_fair):
        models, H, y = nearly_fair
        constant = max(y.mean(), 1 - y.mean())
        for model in models:
            accuracy = ((model.predict_path(H) > 0.5) == y[:, None]).mean(axis=0)
            assert accuracy.min() > constant - 0.03

    def test_no_choice_is_worse_than_the_constant(self, nearly_fair):
        models, H, y = nearly_fair
        constant = max(y.mean(), 1 - y.mean())
        accuracy = np.array([[m.select(level).score(H, y) for level in (0.9, 0.95, 0.99)] for m in models])
        assert accuracy.min() > constant - 0.01
        best = max(model.at(target=model.path_.target[0]).score(H, y) for model in models)
        assert accuracy[:, :2].mean() > best - 0.01
        assert np.median(accuracy[:, 2]) > best - 0.05


class TestCalibration:
    @pytest.mark.parametrize(("n", "tolerance"), [(1000, 0.015), (5000, 0.008)])
    def test_the_median_of_what_is_delivered_is_what_was_asked(self, n, tolerance):
        H, _, group = population(10**6, 100_000)
        delivered = {0.9: [], 0.95: []}
        for seed in range(25):
            rows, label, groups = population(seed, n)
            model = FairStacksClassifier(random_state=seed).fit(rows, label, sensitive_features=groups)
            for level, found in delivered.items():
                found.append(fairness(model.select(level).predict(H), group))
        for level, found in delivered.items():
            assert np.median(found) == pytest.approx(level, abs=tolerance)

    def test_five_groups_and_few_models(self):
        H, y, group = five_groups(10**6, 60_000)
        constant = max(y.mean(), 1 - y.mean())
        for seed in range(5):
            rows, label, groups = five_groups(seed, 4000)
            model = FairStacksClassifier(random_state=seed).fit(rows, label, sensitive_features=groups)
            for level in (0.9, 0.95):
                chosen = model.select(level)
                assert fairness(chosen.predict(H), group) > level - 0.05
                assert chosen.score(H, y) > constant - 0.01
