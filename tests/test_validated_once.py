"""Raw input of a public function or command is validated exactly once: counted by a profiler, nothing is replaced."""

import cProfile
import io
import pstats
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier.cli import main

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
    "points_from_chunks": (
        lambda p: ff.points_from_chunks(ff.chunks.array_chunks(p["y"], p["scores"], chunk_rows=N_ROWS, **common(p))),
        (1, 1, 1),
    ),
    "adapters.points": (lambda p: ff.adapters.points(p["models"][0][1], p["X"], p["y"], **common(p)), (1, 1, 1)),
    "make_fauc_scorer": (
        lambda p: ff.make_fauc_scorer()(p["models"][0][1], p["X"], p["y"], sensitive_features=p["group"]),
        (1, 1, 1),
    ),
    "StackStatistics.from_predictions": (
        lambda p: ff.StackStatistics.from_predictions(p["y"], p["scores"], **common(p)),
        (1, 1, 1),
    ),
    "standardized_mean_difference": (
        lambda p: ff.standardized_mean_difference(p["scores"], sensitive_features=p["group"]),
        (1, 1, 1),
    ),
    "achievable_frontier": (
        lambda p: ff.achievable_frontier(p["X"], p["y"], estimator=LogisticRegression(), cv=2, **common(p)),
        (0, 1, 1),
    ),
    "frontier_gap": (
        lambda p: ff.frontier_gap(
            p["X"], p["y"], p["scores"], stack=None, estimator=LogisticRegression(), cv=2, **common(p)
        ),
        (1, 1, 1),
    ),
    "learning_frontier": (
        lambda p: ff.learning_frontier(
            p["X"], p["y"], estimator=LogisticRegression(), cv=2, rows=[50, 100, 200], **common(p)
        ),
        (0, 1, 1),
    ),
    "learners.FCSC.fit": (
        lambda p: ff.learners.FCSC(estimator=LogisticRegression()).fit(p["X"], p["y"], sensitive_features=p["group"]),
        (0, 1, 0),
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


@pytest.mark.parametrize(("name", "most"), [("FairStacksClassifier.fit", 18), ("audit", 25)])
def test_the_walk_is_short(name, most, problem):
    """Count the modules of ours whose functions run; what is only imported does not count."""
    modules = set()

    def note(frame, event, _):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("fairfrontier") and frame.f_code.co_name != "<module>":
            modules.add(name)

    call, _ = CALLS[name]
    call(problem)
    sys.setprofile(note)
    try:
        call(problem)
    finally:
        sys.setprofile(None)
    assert len(modules) <= most, sorted(modules)


# ------------------------------------------------------------------------------------------------------- commands

N_PEOPLE = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table of features, scores and weights, and a saved stack of the scores."""
    home = tmp_path_factory.mktemp("commands")
    generator = np.random.default_rng(1)
    sex = generator.choice(["f", "m"], N_PEOPLE)
    skill, luck = generator.normal(size=(2, N_PEOPLE))
    frame = pd.DataFrame({"skill": skill, "height": generator.normal(size=N_PEOPLE) + (sex == "m"), "sex": sex})
    frame["repaid"] = (skill + 0.5 * luck > 0).astype(int)
    frame.to_csv(home / "features.csv", index=False)
    scores = {f"m_{i}": 1.0 / (1.0 + np.exp(-skill - i * frame["height"])) for i in range(3)}
    weight = generator.uniform(0.5, 1.5, N_PEOPLE)
    pd.DataFrame(scores | {"sex": sex, "repaid": frame["repaid"], "w": weight}).to_csv(home / "scores.csv", index=False)
    return home


LABELLED = ["--label", "repaid", "--sensitive", "sex"]
SCORED = ["scores.csv", *LABELLED, "--scores", "m_*"]
ROWS = {"validated": 1, "predictions": 1, "_attribute_columns": 1, "sample_weights": 1}
# name -> (the words, how often each of its doors opens). The doors of a table of features are those of `search` and
# `reproduce`; scores of their own models, which they compute, pass others.
COMMANDS = {
    "audit": (["audit", *SCORED], ROWS),
    "audit of weighted rows": (["audit", *SCORED, "--sample-weight", "w"], ROWS),
    "audit without labels": (["audit", "scores.csv", "--sensitive", "sex", "--scores", "m_*"], ROWS),
    "stack": (["stack", *SCORED], ROWS),
    "apply": (["apply", "stack/model.skops", "scores.csv"], ROWS),
    "search": (
        ["search", "features.csv", *LABELLED, "--steps", "3", "--no-cross-fit"],
        {"read_search": 1, "prepare": 1, "labels": 1},
    ),
    "reproduce": (
        ["reproduce", "--data", "features.csv", *LABELLED, "--quick", "--splits", "1", "--methods", "random-forest"],
        {"prepare_table": 1},
    ),
    # It has no file: what it is given is answers, one for each question, and the levels of its curves.
    "elicit": (["elicit", "--questions", "4"], {"_reply": 4, "_knots": 1}),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_validates_what_it_is_given_exactly_once(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n2\ns\n1\n"))
    words, expected = COMMANDS[name]
    if name == "apply" and not Path("stack").exists():
        assert main(["stack", *SCORED, "--out", "stack"]) == 0
    profile = cProfile.Profile()
    out = f"{name.replace(' ', '_')}{'.csv' if name == 'apply' else ''}"
    assert profile.runcall(main, [*words, "--out", out]) == 0
    seen = Counter()
    for (file, _, function), (_, calls, *_) in pstats.Stats(profile).stats.items():
        if Path(file).is_relative_to(Path(ff.__file__).parent):
            seen[function] += calls
    assert {door: seen[door] for door in expected} == expected
