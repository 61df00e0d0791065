"""Stacks from the command line: fitted on one part of a file, evaluated on the rest."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier.cli import main

FILES = [
    "frontier.csv",
    "groups.csv",
    "model.skops",
    "model_card.md",
    "points.csv",
    "report.html",
    "summary.json",
    "weights.csv",
]


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
    assert abs(summary["n_rows"] - 600) <= 20  # every combination of label and group is halved
    assert summary["operating"]["rows_fitted"] == 1200 - summary["n_rows"]
    assert summary["stack_fauc"] > summary["fauc"]["estimate"]
    assert summary["fauc"]["low"] < summary["fauc"]["high"]
    assert f"on {summary['n_rows']} rows that it has not seen" in summary["recommendation"]


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
    held_out, n = float(points["m/0"]["accuracy"]), summary["n_rows"]
    assert held_out * n == pytest.approx(round(held_out * n), abs=1e-6)
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


def test_a_promise_is_made_on_rows_of_its_own_and_asked_promised_and_delivered_are_said(tmp_path, capsys):
    predictions(4000).to_csv(tmp_path / "p.csv", index=False)
    options = ("--min-fairness", "0.9", "--confidence", "0.9")
    summaries = []
    for name, chunks in (("whole", ()), ("chunked", ("--chunk-rows", "700"))):
        assert run("stack", tmp_path / "p.csv", tmp_path / name, *options, *chunks) == 0
        summaries.append(json.loads((tmp_path / name / "summary.json").read_text()))
    first, second = (summary["operating"] for summary in summaries)
    assert first == pytest.approx(second)
    assert first["asked"] == first["promised"] == 0.9
    assert first["rows_fitted"] + first["rows_calibrated"] + summaries[0]["n_rows"] == 4000
    assert first["rows_calibrated"] > 700
    assert first["estimated"] > 0.9
    said = f"asked 0.900, promised 0.900 with confidence 0.9 on {first['rows_calibrated']} rows, delivered 0.9"
    assert said in summaries[0]["recommendation"]
    assert said in " ".join(capsys.readouterr().out.split())
    assert ff.load(tmp_path / "whole" / "model.skops").selection_.promised == 0.9


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
        (["--tau", "-0.1"], "--tau must be at least 0"),
        (["--min-fairness", "1.1"], "--min-fairness must be in [0, 1]"),
        (["--test-size", "1.5"], "--test-size must be in (0, 1)"),
        (["--min-fairness", "0.9", "--confidence", "0.9", "--test-size", "0.9"], "--test-size must leave two tenths"),
        (
            ["--min-fairness", "0.99", "--confidence", "0.95"],
            "the largest fairness that can be promised at 95 % is 0.8",
        ),
    ],
)
def test_bad_options(file, tmp_path, capsys, options, message):
    assert run("stack", file, tmp_path / "out", *options) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err
    assert not (tmp_path / "out").exists()


def test_three_people_do_not_decide_the_verdict(frame, tmp_path, capsys):
    """A group below the least size is shown and not judged, and the stack is not bound by it."""
    few = pd.concat([frame, frame.head(3).assign(sex="Other", **{"m/0": 0.9})])
    few.to_csv(tmp_path / "p.csv", index=False)
    assert run("stack", tmp_path / "p.csv", tmp_path / "stack") == 0
    capsys.readouterr()
    assert run("audit", tmp_path / "p.csv", tmp_path / "out", "--no-stack") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Groups of sex with fewer than 30 rows are shown and not judged: Other (3)." in text
    points = ff.tradeoff_points(frame["y"], frame[["m/0"]], sensitive_features=frame["sex"])
    found = {row["model"]: row for row in rows(tmp_path / "out" / "points.csv")}
    assert float(found["m/0"]["fairness"]) == pytest.approx(points.fairness[0], abs=1e-12)
    assert float(found["m/0"]["selection_rate[sex=Other]"]) == 1.0
    of_groups = [row for row in rows(tmp_path / "out" / "groups.csv") if row["model"] == "m/0"]
    assert {row["group"]: row["judged"] for row in of_groups} == {"Female": "true", "Male": "true", "Other": "false"}
    assert {row["compared_with"] for row in of_groups} == {"Male"}
    assert run("audit", tmp_path / "p.csv", tmp_path / "all", "--no-stack", "--min-group", "1") == 0
    whole = ff.tradeoff_points(few["y"], few[["m/0"]], sensitive_features=few["sex"])
    found = {row["model"]: row for row in rows(tmp_path / "all" / "points.csv")}
    assert float(found["m/0"]["fairness"]) == pytest.approx(whole.fairness[0], abs=1e-12)
    assert whole.fairness[0] < points.fairness[0]


def test_saved_stack_goes_by_name_and_answers_in_the_words_of_the_file(frame, tmp_path, capsys):
    names = [c for c in frame.columns if c.startswith("m/")]
    words = frame.assign(y=np.where(frame["y"] == 1, "hired", "not hired"), person=np.arange(len(frame)))
    words.to_parquet(tmp_path / "p.parquet")
    assert run("stack", tmp_path / "p.parquet", tmp_path / "out", "--scores", "m/*") == 0
    model = ff.load(tmp_path / "out" / "model.skops")
    assert model.classes_.tolist() == ["not hired", "hired"]
    order = [*reversed(names)]
    by_name = {name: frame[name].to_numpy() for name in order}
    expected = model.predict({name: frame[name].to_numpy() for name in names})
    assert (model.predict(by_name) == expected).all()
    with pytest.raises(ff.exceptions.InvalidInputError, match="m/3"):
        model.predict({name if name != "m/3" else "m/x": values for name, values in by_name.items()})
    words[["person", *order, "sex"]].to_csv(tmp_path / "new.csv", index=False)
    for chunks in ([], ["--chunk-rows", "111"]):
        out = tmp_path / f"scored{len(chunks)}.csv"
        command = ["apply", str(tmp_path / "out" / "model.skops"), str(tmp_path / "new.csv"), "--out", str(out)]
        capsys.readouterr()
        assert main([*command, "--keep", "person", *chunks]) == 0
        scored = pd.read_csv(out)
        assert scored["person"].tolist() == list(range(len(frame)))
        assert scored["decision"].tolist() == expected.tolist()
        score = frame[names].to_numpy() @ model.weights_ + model.intercept_
        np.testing.assert_allclose(scored["score"], np.clip(score, 0, 1), atol=1e-12)
        shown = capsys.readouterr().out
        for sex in ("Female", "Male"):
            rate = (expected == "hired")[frame["sex"] == sex].mean()
            assert f"{100 * rate:.1f} %" in next(line for line in shown.splitlines() if line.startswith(sex))
        assert main(command) == 2  # it is there already
    assert "already has" in capsys.readouterr().err
    words.drop(columns="m/2").to_csv(tmp_path / "less.csv", index=False)
    command = ["apply", str(tmp_path / "out" / "model.skops"), str(tmp_path / "less.csv"), "--out"]
    assert main([*command, str(tmp_path / "no.csv")]) == 2
    assert "FILE must have a column for each model of the stack; less.csv has no 'm/2'" in capsys.readouterr().err
    assert not (tmp_path / "no.csv").exists()


def test_apply_warns_of_rates_that_have_moved(frame, fitted, tmp_path, capsys):
    moved = frame.assign(**{c: np.where(frame["sex"] == "Female", 0.05, frame[c]) for c in frame if "m/" in c})
    moved.to_csv(tmp_path / "new.csv", index=False)
    command = ["apply", str(fitted / "model.skops"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "scored.csv")]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "Warning: sex=Female: 0.0 % are selected" in text
    assert "sex=Male:" not in text


def test_apply_counts_the_rows_of_a_file_from_one(frame, fitted, tmp_path, capsys):
    frame.assign(**{"m/1": np.where(frame.index == 6, np.nan, frame["m/1"])}).to_csv(tmp_path / "new.csv", index=False)
    command = ["apply", str(fitted / "model.skops"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "o.csv")]
    assert main(command) == 2
    assert "FILE must be finite; got nan in 'm/1' at row 7" in " ".join(capsys.readouterr().err.split())


def test_audit_says_what_a_stack_would_reach(file, frame, tmp_path, capsys):
    assert run("audit", file, tmp_path / "out", "--min-fairness", "0.93") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A fair stack of these models would reach accuracy" in text
    assert "is cross-fitted" in text
    points = {row["model"]: row for row in rows(tmp_path / "out" / "points.csv")}
    found = json.loads((tmp_path / "out" / "summary.json").read_text())["models"]
    said = {row["model"]: row["pareto_optimal"] for row in found}
    assert {name: points[name]["pareto_optimal"] == "true" for name in said} == said
    assert sum(said.values()) > sum(row["names"] in said for row in _frontier(tmp_path / "out"))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    names = [row["model"] for row in rows(tmp_path / "out" / "points.csv")]
    assert sum(name.startswith("fair stack/") for name in names) == 20
    expected = ff.fauc_score(frame["y"], frame[["m/0", "m/1", "m/2", "m/3"]], sensitive_features=frame["sex"])
    assert summary["fauc"]["estimate"] != expected  # that weight is uniform, this one a step
    assert summary["stack_fauc"] >= summary["fauc"]["estimate"]


def _frontier(out):
    return json.loads((out / "summary.json").read_text())["frontier"]


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


def test_regression_stack(frame, tmp_path, capsys):
    target = frame.assign(y=frame["m/0"] * 0.7 + frame["m/2"] * 0.2)
    target.to_csv(tmp_path / "p.csv", index=False)
    assert run("stack", tmp_path / "p.csv", tmp_path / "out", "--accuracy", "r2") == 0
    assert isinstance(ff.load(tmp_path / "out" / "model.skops"), ff.FairStacksRegressor)
    capsys.readouterr()
    command = ["apply", str(tmp_path / "out" / "model.skops"), str(tmp_path / "p.csv"), "--out"]
    assert main([*command, str(tmp_path / "scored.csv"), "--chunk-rows", "500"]) == 0
    shown, scored = capsys.readouterr().out, pd.read_csv(tmp_path / "scored.csv")["score"]
    assert "mean prediction" in shown
    assert "%" not in shown
    for sex in ("Female", "Male"):
        line = next(line for line in shown.splitlines() if line.startswith(sex))
        assert line.split()[-1] == f"{scored[frame['sex'] == sex].mean():.4g}"


def test_demo_runs_the_whole_job(tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "frontier.csv",
        "groups.csv",
        "model_card.md",
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
