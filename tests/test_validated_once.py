"""Each raw input of a public function is validated exactly once: counted by a profiler, nothing is replaced."""

import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff

N_ROWS = 400
# The doors: where raw predictions, attributes and weights become validated ones.
DOORS = ("predictions", "_attribute_columns", "sample_weights")


@pytest.fixture(scope="module")
def problem():
    generator = np.random.default_rng(0)
    group = np.where(generator.random(N_ROWS) < 0.4, "a", "b")
    X = generator.normal(size=(N_ROWS, 3)) + (group == "a")[:, None] * [0.5, 0.0, 0.0]
    y = (X[:, 0] + X[:, 1] + generator.normal(size=N_ROWS) > 0).astype(int)
    scores = 1.0 / (1.0 + np.exp(-X))
    weight = generator.uniform(0.5, 1.5, N_ROWS)
    stack = ff.FairStacksClassifier("precomputed").fit(scores, y, sensitive_features=group)
    aware = ff.FairStacksClassifier("precomputed", attribute_aware=True).fit(scores, y, sensitive_features=group)
    models = [("lr", LogisticRegression().fit(X, y)), ("tree", DecisionTreeClassifier(max_depth=2).fit(X, y))]
    mixture = ff.RandomizedMixture(models, [0.5, 0.5], secret=b"sixteen bytes and more")
    data = {"X": X, "y": y, "scores": scores, "group": group, "weight": weight}
    return data | {"stack": stack, "aware": aware, "models": models, "mixture": mixture}


def counted(call):
    """Return how often each function that validates rows runs."""
    seen = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_globals.get("__name__") in ("fairfrontier._validation", "fairfrontier._rows"):
            seen[frame.f_code.co_qualname] += 1

    call()  # what is imported, and compiled, on first use
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def common(p):
    return {"sensitive_features": p["group"], "sample_weight": p["weight"]}


# name -> (the call, how many collections of predictions, of attributes, of weights it is given)
CALLS = {
    "tradeoff_points": (lambda p: ff.tradeoff_points(p["y"], p["scores"], **common(p)), (1, 1, 1)),
    "fauc_score": (lambda p: ff.fauc_score(p["y"], p["scores"], **common(p)), (1, 1, 1)),
    "fauc_interval": (lambda p: ff.fauc_interval(p["y"], p["scores"], n_resamples=50, **common(p)), (1, 1, 1)),
    "compare_fauc": (
        lambda p: ff.compare_fauc(p["y"], p["scores"][:, :2], p["scores"], n_resamples=50, **common(p)),
        (2, 1, 1),
    ),
    "taf_bands": (lambda p: ff.taf_bands(p["y"], p["scores"], n_resamples=50, **common(p)), (1, 1, 1)),
    "honest_taf": (lambda p: ff.honest_taf(p["y"], p["scores"], **common(p)), (1, 1, 1)),
    "audit": (lambda p: ff.audit(p["y"], p["scores"], sensitive_features=p["group"]), (1, 1, 1)),
    "TAFDisplay.from_predictions": (
        lambda p: ff.TAFDisplay.from_predictions(p["y"], p["scores"], sensitive_features=p["group"]),
        (1, 1, 1),
    ),
    "TAFDisplay.from_estimators": (
        lambda p: ff.TAFDisplay.from_estimators(p["models"], p["X"], p["y"], sensitive_features=p["group"]),
        (1, 1, 1),
    ),
    "FairStacksClassifier.fit": (
        lambda p: ff.FairStacksClassifier("precomputed").fit(p["scores"], p["y"], **common(p)),
        (0, 1, 1),
    ),
    "FairStacksClassifier.fit of models": (
        lambda p: ff.FairStacksClassifier([("lr", LogisticRegression())], group_models=None).fit(
            p["X"], p["y"], sensitive_features=p["group"]
        ),
        (0, 1, 1),
    ),
    "FairStacksRegressor.fit": (
        lambda p: ff.FairStacksRegressor("precomputed").fit(p["scores"], p["X"][:, 0], **common(p)),
        (0, 1, 1),
    ),
    "points": (lambda p: p["stack"].points(p["scores"], p["y"], **common(p)), (1, 1, 1)),
    "points of an aware stack": (lambda p: p["aware"].points(p["scores"], p["y"], **common(p)), (1, 1, 1)),
    "exact_frontier": (lambda p: p["stack"].exact_frontier(p["scores"], p["y"], **common(p)), (1, 1, 1)),
    "exact_frontier of an aware stack": (
        lambda p: p["aware"].exact_frontier(p["scores"], p["y"], **common(p)),
        (1, 1, 1),
    ),
    "predict of an aware stack": (
        lambda p: p["aware"].predict(p["scores"], sensitive_features=p["group"]),
        (0, 1, 0),
    ),
    "select": (
        lambda p: p["stack"].select(min_fairness=0.5, confidence=0.9, calibration=(p["scores"], p["y"], p["group"])),
        (1, 1, 1),
    ),
    "certify": (
        lambda p: ff.certify(p["stack"], p["scores"], p["y"], sensitive_features=p["group"]),
        (1, 1, 1),
    ),
    "score_decision_diagnostics": (
        lambda p: ff.score_decision_diagnostics(p["stack"], p["scores"], p["y"], sensitive_features=p["group"]),
        (1, 1, 1),
    ),
    "mixture.report": (
        lambda p: p["mixture"].report(p["X"], p["y"], ids=range(N_ROWS), sensitive_features=p["group"]),
        (1, 1, 1),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_raw_input_is_validated_exactly_once(name, problem):
    call, expected = CALLS[name]
    seen = counted(lambda: call(problem))
    assert tuple(seen[door] for door in DOORS) == expected
