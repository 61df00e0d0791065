"""Stacks from the command line: fitted on one part of a file, valued on the rest."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier.cli import main

FILES = ["frontier.csv", "model.skops", "points.csv", "report.html", "summary.json", "weights.csv"]


def predictions(n: int = 1200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], n)
    merit = rng.normal(size=n) + 0.9 * (sex == "Male")
    frame = pd.DataFrame({"y": (merit + rng.normal(size=n) > 0.4).astype(int), "sex": sex})
    for j, shift in enumerate((0.0, 0.4, 0.9, 1.4)):
        margin = merit - shift * (sex == "Male") + rng.normal(scale=0.8, size=n) - 0.4 + shift / 2
        frame[f"m/{j}"] = 1 / (1 + np.exp(-margin))
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return predictions()


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("stack") / "p.parquet"
    frame.to_parquet(path)
    return path


def run(command: str, file: Path, out: Path, *options: str) -> int:
    return main([command, str(file), "--label", "y", "--sensitive", "sex", "--out", str(out), *options])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def fitted(file, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "out"
    assert run("stack", file, out, "--min-fairness", "0.9") == 0
    return out


def test_stack_writes_its_files_and_beats_the_models(fitted):
    assert sorted(path.name for path in fitted.iterdir()) == FILES
    summary = json.loads((fitted / "summary.json").read_text())
    assert summary["n_rows"] == 600
    assert summary["operating"]["rows_fitted"] == 600
    assert summary["stack_fauc"] > summary["fauc"]["estimate"]
    assert summary["fauc"]["low"] < summary["fauc"]["high"]
    assert "on 600 rows that it has not seen" in summary["recommendation"]


def test_saved_model_is_the_one_whose_weights_are_written(fitted, frame):
    model = ff.load(fitted / "model.skops")
    written = {row["model"]: float(row["weight"]) for row in rows(fitted / "weights.csv")}
    names = [c for c in frame.columns if c.startswith("m/")]
    assert list(written) == ["(constant)", *names]
    assert [written[name] for name in names] == model.weights_.tolist()
    score = frame[names].to_numpy() @ np.array([written[name] for name in names]) + written["(constant)"]
    assert model.decision_function(frame[names].to_numpy()) == pytest.approx(score - 0.5, abs=1e-12)


def test_figures_are_for_rows_that_the_stack_has_not_seen(fitted, frame):
    """The base models' figures on the held-out half differ from those on all rows, and both add up."""
    points = {row["model"]: row for row in rows(fitted / "points.csv")}
    summary = json.loads((fitted / "summary.json").read_text())
    whole = ff.tradeoff_points(frame["y"], frame[["m/0"]], sensitive_features=frame["sex"]).accuracy[0]
    held_out = float(points["m/0"]["accuracy"])
    assert held_out * 600 == pytest.approx(round(held_out * 600), abs=1e-6)
    assert held_out != whole
    assert float(points["fair stack/chosen"]["accuracy"]) == summary["operating"]["accuracy"]


def test_tau_bounds_the_score_bias_where_the_stack_was_fitted(file, frame, tmp_path):
    assert run("stack", file, tmp_path / "out", "--tau", "0.01", "--test-size", "0.1") == 0
    model = ff.load(tmp_path / "out" / "model.skops")
    assert abs(model.target_) <= 0.01 + 1e-12
    names = [c for c in frame.columns if c.startswith("m/")]
    score = pd.Series(frame[names].to_numpy() @ model.weights_)
    means = score.groupby(frame["sex"]).mean()
    assert abs(means["Male"] - means["Female"]) < 0.05


def test_same_seed_same_weights_other_seed_other_rows(file, tmp_path):
    texts = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run("stack", file, tmp_path / name, "--seed", seed) == 0
        texts.append((tmp_path / name / "weights.csv").read_text())
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tau", "0.1", "--min-fairness", "0.9"], "--tau and --min-fairness both choose"),
        (["--tau", "-0.1"], "--tau must be in [0, inf]"),
        (["--min-fairness", "0.99999999"], "min_fairness must be at most"),
        (["--test-size", "1.5"], "--test-size must be in (0, 1)"),
    ],
)
def test_bad_options(file, tmp_path, capsys, options, message):
    assert run("stack", file, tmp_path / "out", *options) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err
    assert not (tmp_path / "out").exists()


def test_a_group_too_small_to_split(frame, tmp_path, capsys):
    few = pd.concat([frame, frame.head(3).assign(sex="Other")])
    few.to_csv(tmp_path / "p.csv", index=False)
    assert run("stack", tmp_path / "p.csv", tmp_path / "out") == 2
    assert "'sex=Other'" in capsys.readouterr().err
    assert run("audit", tmp_path / "p.csv", tmp_path / "out") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A fair stack could not be fitted" in text


def test_audit_says_what_a_stack_would_reach(file, frame, tmp_path, capsys):
    assert run("audit", file, tmp_path / "out", "--min-fairness", "0.93") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A fair stack of these models would reach accuracy" in text
    assert "is cross-fitted" in text
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    names = [row["model"] for row in rows(tmp_path / "out" / "points.csv")]
    assert sum(name.startswith("fair stack/") for name in names) == 20
    expected = ff.fauc_score(frame["y"], frame[["m/0", "m/1", "m/2", "m/3"]], sensitive_features=frame["sex"])
    assert summary["fauc"]["estimate"] != expected  # that weight is uniform, this one a step
    assert summary["stack_fauc"] >= summary["fauc"]["estimate"]


def test_audit_of_few_rows_tries_no_stack(frame, tmp_path, capsys):
    frame.head(100).to_csv(tmp_path / "p.csv", index=False)
    assert run("audit", tmp_path / "p.csv", tmp_path / "out") == 0
    assert "No fair stack was tried" in " ".join(capsys.readouterr().out.split())


def test_a_family_named_like_the_stack_is_told_apart(frame, tmp_path):
    frame.rename(columns={"m/0": "fair stack/01"}).to_csv(tmp_path / "p.csv", index=False)
    assert run("audit", tmp_path / "p.csv", tmp_path / "out") == 0
    names = [row["model"] for row in rows(tmp_path / "out" / "points.csv")]
    assert len(names) == len(set(names))
    assert "fair stack*/01" in names


def test_regression_stack(frame, tmp_path):
    target = frame.assign(y=frame["m/0"] * 0.7 + frame["m/2"] * 0.2)
    target.to_csv(tmp_path / "p.csv", index=False)
    assert run("stack", tmp_path / "p.csv", tmp_path / "out", "--accuracy", "r2") == 0
    assert isinstance(ff.load(tmp_path / "out" / "model.skops"), ff.FairStacksRegressor)


def test_demo_runs_the_whole_job(tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "frontier.csv",
        "points.csv",
        "report.html",
        "summary.json",
        "taf.png",
    ]
    assert (out / "taf.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["stack_fauc"] > summary["fauc"]["high"]
    assert "A fair stack of these models would reach accuracy" in " ".join(capsys.readouterr().out.split())
    assert main(["demo", "--out", str(out)]) == 2
