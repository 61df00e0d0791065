"""The command line on files that are read in chunks: the same figures, less memory, and clear refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import PredefinedSplit

from fairfrontier import FairStacksClassifier, StepWeight, tradeoff_points
from fairfrontier.chunks import Rows, array_chunks, whole
from fairfrontier.chunks._source import gathered
from fairfrontier.cli import main
from fairfrontier.report import Settings
from fairfrontier.report._stack import deal

SCORES = [f"m_{j}" for j in range(6)]


@pytest.fixture(scope="module", params=["csv", "parquet"])
def people(request, tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 3000
    sex, age = np.array(["f", "m"])[rng.integers(0, 2, n)], rng.integers(0, 2, n)
    y = rng.random(n) < np.where(sex == "m", 0.6, 0.3)
    scores = np.clip(0.35 * y[:, None] + 0.15 * (sex == "m")[:, None] + 0.6 * rng.random((n, 6)), 0, 1)
    frame = pd.DataFrame(scores, columns=SCORES).assign(
        hired=np.where(y, "yes", "no"), sex=sex, old=age, income=rng.random(n) * 1000, target=y + rng.normal(0, 0.3, n)
    )
    path = tmp_path_factory.mktemp("people") / f"people.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=400)
    return path, frame


def run(command, path, out, *options, label="hired"):
    arguments = [command, str(path), "--label", label, "--sensitive", "sex", "--out", str(out), *options]
    return main(arguments)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--sensitive", "old", "--sensitive-mode", "intersectional", "--fairness", "equalized_odds"),
        ("--accuracy", "brier", "--positive", "no", "--threshold", "0.4"),
        ("--scores", "m_[0-2]"),
    ],
)
def test_audit_has_the_figures_of_all_rows_at_once(people, tmp_path, options, capsys):
    path, _ = people
    assert run("audit", path, tmp_path / "whole", "--no-stack", *options) == 0
    assert run("audit", path, tmp_path / "chunks", "--no-stack", "--chunk-rows", "700", *options) == 0
    assert capsys.readouterr().err == ""  # a progress bar is for terminals
    for name in ("points.csv", "frontier.csv"):
        whole, chunks = (pd.read_csv(tmp_path / folder / name) for folder in ("whole", "chunks"))
        pd.testing.assert_frame_equal(chunks, whole, rtol=1e-12)
    whole, chunks = (json.loads((tmp_path / folder / "summary.json").read_text()) for folder in ("whole", "chunks"))
    assert chunks["fauc"]["estimate"] == pytest.approx(whole["fauc"]["estimate"], abs=1e-12)
    assert chunks["fauc"]["low"] is None
    assert any("no confidence interval" in note for note in chunks["notes"])
    assert chunks["settings"]["positive"] == whole["settings"]["positive"]
    assert (tmp_path / "chunks" / "report.html").stat().st_size > 10_000


def test_audit_of_a_number(people, tmp_path):
    path, _ = people
    options = ("--accuracy", "r2", "--scores", "m_*", "--no-stack")
    assert run("audit", path, tmp_path / "whole", *options, label="target") == 0
    assert run("audit", path, tmp_path / "chunks", "--chunk-rows", "512", *options, label="target") == 0
    whole, chunks = (pd.read_csv(tmp_path / folder / "points.csv") for folder in ("whole", "chunks"))
    pd.testing.assert_frame_equal(chunks, whole, rtol=1e-9)


def test_audit_tries_a_stack(people, tmp_path):
    path, _ = people
    assert run("audit", path, tmp_path, "--chunk-rows", "1000") == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["stack_fauc"] >= summary["fauc"]["estimate"]
    assert any("cross-fitted" in note for note in summary["notes"])
    points = pd.read_csv(tmp_path / "points.csv")
    assert points.iloc[:, 0].str.startswith("fair stack/").sum() == 20


def test_stack_is_valued_on_rows_that_it_has_not_seen(people, tmp_path):
    path, frame = people
    options = ("--chunk-rows", "800", "--scores", "m_*", "--tau", "0.01", "--test-size", "0.3")
    assert run("stack", path, tmp_path, *options) == 0
    weights = pd.read_csv(tmp_path / "weights.csv", index_col=0)["weight"]
    assert list(weights.index) == ["(constant)", *SCORES]
    summary = json.loads((tmp_path / "summary.json").read_text())
    rows_fitted, rows_valued = summary["operating"]["rows_fitted"], summary["n_rows"]
    assert rows_fitted + rows_valued == len(frame)
    assert rows_valued == pytest.approx(0.3 * len(frame), rel=0.1)
    assert (tmp_path / "model.skops").exists()
    # The held-out rows are those whose figures the table has: the weights give them again.
    rows = Rows.validated(frame["hired"], frame[SCORES], frame[["sex"]])
    settings = Settings(source="people")
    test = gathered(deal(whole(rows), 10, settings)).fold < 3
    assert test.sum() == rows_valued
    score = frame.loc[test, SCORES].to_numpy() @ weights[SCORES].to_numpy() + weights["(constant)"]
    expected = tradeoff_points(frame.loc[test, "hired"], {"s": score}, sensitive_features=frame.loc[test, ["sex"]])
    assert summary["operating"]["accuracy"] == pytest.approx(expected.accuracy[0], abs=1e-9)
    assert summary["operating"]["fairness"] == pytest.approx(expected.fairness[0], abs=1e-9)
    # And the weights are those of the other rows, all at once, with the same folds.
    folds = gathered(deal(whole(rows.take(~test)), 5, settings, seed=1)).fold
    model = FairStacksClassifier("precomputed", cv=PredefinedSplit(folds), weight=StepWeight(0.8))
    model.fit(frame.loc[~test, SCORES], frame.loc[~test, "hired"], sensitive_features=frame.loc[~test, ["sex"]])
    np.testing.assert_allclose(weights[SCORES], model.at(tau=0.01).weights_, atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        ("--sensitive", "old"),
        ("--accuracy", "r2", "--scores", "m_*"),
        ("--fairness", "equalized_odds", "--accuracy", "balanced_accuracy"),
    ],
)
@pytest.mark.parametrize("command", ["audit", "stack"])
def test_the_number_of_rows_of_a_chunk_changes_nothing_but_the_interval(people, tmp_path, command, options):
    path, _ = people
    label = "target" if "r2" in options else "hired"
    if command == "audit":  # the places of a tuned path follow rounding, which depends on how rows are summed
        options = (*options, "--no-stack")
    for name, more in (("whole", ()), ("chunks", ("--chunk-rows", "437"))):
        assert run(command, path, tmp_path / name, *options, *more, label=label) == 0
    for name in ("points.csv", "frontier.csv", *(["weights.csv"] if command == "stack" else [])):
        whole, chunks = (pd.read_csv(tmp_path / folder / name) for folder in ("whole", "chunks"))
        pd.testing.assert_frame_equal(chunks, whole, rtol=1e-8, atol=1e-10)
    whole, chunks = (json.loads((tmp_path / folder / "summary.json").read_text()) for folder in ("whole", "chunks"))
    assert chunks["recommendation"] == whole["recommendation"]
    assert chunks["stack_fauc"] == pytest.approx(whole["stack_fauc"], abs=1e-9)
    assert whole["fauc"]["low"] <= whole["fauc"]["high"]


@pytest.mark.parametrize("n_parts", [2, 5, 10])
def test_rows_are_dealt_evenly_and_however_they_are_cut(n_parts):
    rng = np.random.default_rng(3)
    y, sex = rng.integers(0, 2, 997), rng.choice(["a", "b", "c"], 997, p=[0.9, 0.08, 0.02])
    settings = Settings(source="x")
    parts = {}
    for groups, step in ((sex, 997), (sex, 100), (sex, 1), (np.char.add("z", sex[::1]), 50)):
        chunks = array_chunks(y, rng.random((997, 1)), sensitive_features=groups, chunk_rows=step)
        parts[len(parts)] = gathered(deal(chunks, n_parts, settings)).fold
    assert all((one == parts[0]).all() for one in parts.values())
    for label in (0, 1):
        for group in "abc":
            counts = np.bincount(parts[0][(y == label) & (sex == group)], minlength=n_parts)
            assert counts.max() - counts.min() <= 1
    assert (gathered(deal(chunks, n_parts, settings, seed=1)).fold != parts[0]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--chunk-rows", "0"), "--chunk-rows must be in [1"),
        (("--chunk-rows", "99", "--sensitive", "sez"), "did you mean 'sex'?"),
        (("--chunk-rows", "99", "--sensitive", "income"), "at most 50 groups"),
        (("--chunk-rows", "99", "--scores", "income"), "scores 'income' must be in [0, 1]"),
        (("--chunk-rows", "99", "--scores", "nothing*"), "must match a column"),
        (("--chunk-rows", "99", "--positive", "maybe"), "--positive must be one of 'no' and 'yes'; got 'maybe'"),
        (("--chunk-rows", "99", "--fairness", "parity"), "--fairness must be one of"),
        (("--chunk-rows", "99", "--sensitive", "hired"), "other columns than --label"),
    ],
)
def test_refusals_are_one_line(people, tmp_path, capsys, options, message):
    path, _ = people
    assert run("audit", path, tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()


def test_bad_values_deep_in_the_file(tmp_path, capsys):
    frame = pd.DataFrame({"y": [0, 1] * 100, "sex": ["f", "m", "m", "f"] * 50, "a": 0.5, "b": 0.25})
    frame.loc[150, "b"] = np.nan
    frame.to_csv(tmp_path / "gap.csv", index=False)
    assert run("audit", tmp_path / "gap.csv", tmp_path / "out", "--chunk-rows", "60", label="y") == 2
    assert "scores 'b' must have no missing or infinite value; row 151 has one" in capsys.readouterr().err
    frame["b"], frame.loc[170, "sex"] = 0.25, None
    frame.to_csv(tmp_path / "gap.csv", index=False)
    assert run("audit", tmp_path / "gap.csv", tmp_path / "out", "--chunk-rows", "60", label="y") == 2
    assert "missing value" in capsys.readouterr().err
    (tmp_path / "empty.csv").write_text("")
    assert run("audit", tmp_path / "empty.csv", tmp_path / "out", "--chunk-rows", "60", label="y") == 2
    assert "is empty" in capsys.readouterr().err
