"""The command line from the outside: a file goes in; tables, a report and a sentence come out."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier.cli import main

FILES = ("frontier.csv", "groups.csv", "model_card.md", "points.csv", "report.html", "summary.json")


def predictions(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Return a file's content: label, two attributes, four models in two families."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], n)
    race = rng.choice(["A", "B", "C"], n)
    merit = rng.normal(size=n) + 0.8 * (sex == "Male")
    frame = pd.DataFrame({"y": (merit + rng.normal(size=n) > 0.4).astype(int), "sex": sex, "race": race})
    for name, shift in (("linear/a", 0.0), ("linear/b", 0.5), ("trees/c", 0.9), ("trees/d", 1.3)):
        margin = merit - shift * (sex == "Male") + rng.normal(scale=0.3 + shift / 2, size=n) - 0.4 + shift / 2
        frame[name] = 1 / (1 + np.exp(-margin))
    return frame


@pytest.fixture
def frame() -> pd.DataFrame:
    return predictions()


@pytest.fixture
def file(frame, tmp_path) -> Path:
    path = tmp_path / "predictions.csv"
    frame.to_csv(path, index=False)
    return path


def scores_of(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[c for c in frame.columns if "/" in c]]


def audit(file, out, *options: str) -> int:
    return main(["audit", str(file), "--label", "y", "--sensitive", "sex", "--out", str(out), "--no-stack", *options])


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_audit_writes_the_numbers_of_the_library(frame, file, tmp_path, capsys):
    assert audit(file, tmp_path / "out", "--sensitive", "race") == 0
    points = ff.tradeoff_points(frame["y"], scores_of(frame), sensitive_features=frame[["sex", "race"]])
    rows = read_csv(tmp_path / "out" / "points.csv")
    assert [row["model"] for row in rows] == list(points.names)
    assert [float(row["fairness"]) for row in rows] == points.fairness.tolist()
    assert [float(row["accuracy"]) for row in rows] == points.accuracy.tolist()
    assert [float(row["fairness[race]"]) for row in rows] == points.attribute_fairness["race"].tolist()
    curve = points.frontier()
    optimal = [points.names[i] for i in curve.support]
    assert [row["model"] for row in rows if row["pareto_optimal"] == "true"] == sorted(optimal, key=points.names.index)
    knots = [row for row in read_csv(tmp_path / "out" / "frontier.csv") if row["curve"] == "step"]
    assert [row["model"] for row in knots] == optimal
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["fauc"]["estimate"] == ff.fauc(curve, ff.StepWeight(0.8))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == list(FILES)
    assert "FAUC (weight step:0.8) " + f"{summary['fauc']['estimate']:.4f}" in capsys.readouterr().out


def test_group_rates_are_those_of_the_rows(frame, file, tmp_path):
    audit(file, tmp_path / "out")
    rows = {row["model"]: row for row in read_csv(tmp_path / "out" / "points.csv")}
    women = frame[frame["sex"] == "Female"]
    decided = women["trees/d"] > 0.5
    row = rows["trees/d"]
    assert float(row["selection_rate[sex=Female]"]) == pytest.approx(decided.mean(), abs=1e-15)
    assert float(row["true_positive_rate[sex=Female]"]) == pytest.approx(decided[women["y"] == 1].mean(), abs=1e-15)
    assert float(row["false_positive_rate[sex=Female]"]) == pytest.approx(decided[women["y"] == 0].mean(), abs=1e-15)


def test_parquet_and_csv_say_the_same(frame, file, tmp_path):
    parquet = tmp_path / "predictions.parquet"
    frame.astype({"sex": "category"}).to_parquet(parquet)
    assert audit(file, tmp_path / "a") == 0
    assert audit(parquet, tmp_path / "b") == 0
    for name in ("points.csv", "frontier.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_terminal_recommends_and_gives_the_four_fifths_rule(frame, file, tmp_path, capsys):
    assert audit(file, tmp_path / "out", "--min-fairness", "0.9") == 0
    text = " ".join(capsys.readouterr().out.split())
    points = ff.tradeoff_points(frame["y"], scores_of(frame), sensitive_features=frame["sex"])
    fair = [i for i in range(len(points)) if points.fairness[i] >= 0.9]
    best = max(fair, key=lambda i: points.accuracy[i])
    assert f"Where fairness must be at least 0.9, the best of 4 models is {points.names[best]}: accuracy" in text
    rates = [(frame[points.names[best]] > 0.5)[frame["sex"] == sex].mean() for sex in ("Female", "Male")]
    ratio = min(rates) / max(rates)
    assert f"the ratio {ratio:.3f} (95 % interval " in text
    assert "The positive label is 1; a score above 0.5 selects." in text
    assert "is a ratio of selection rates; fairness is 1 minus the largest difference between two" in text


def test_where_no_model_is_fair_enough_it_says_so(file, tmp_path, capsys):
    assert audit(file, tmp_path / "out", "--min-fairness", "0.9999") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "None of the 4 models reaches fairness 0.9999. The fairest is " in text
    assert "The same decision for everyone would have accuracy " in text
    assert "The most accurate model, " in text


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("uniform", ff.UniformWeight()),
        ("step:0.7", ff.StepWeight(0.7)),
        ("power:2:0.6", ff.PowerWeight(2, 0.6)),
        ("power:3", ff.PowerWeight(3)),
        ("point:0.9", ff.PointWeight(0.9)),
    ],
)
def test_weights(frame, file, tmp_path, text, weight):
    assert audit(file, tmp_path / "out", "--weight", text) == 0
    expected = ff.fauc_score(frame["y"], scores_of(frame), sensitive_features=frame["sex"], weight=weight)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["fauc"]["estimate"] == expected


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (["--fairness", "equalized_odds"], {"fairness": "equalized_odds"}),
        (
            ["--fairness", "equal_opportunity", "--threshold", "0.3"],
            {"fairness": "equal_opportunity", "threshold": 0.3},
        ),
        (["--accuracy", "balanced_accuracy"], {"accuracy": "balanced_accuracy"}),
        (["--accuracy", "brier"], {"accuracy": "brier"}),
        (["--sensitive", "race", "--sensitive-mode", "intersectional"], {"sensitive_mode": "intersectional"}),
    ],
)
def test_measures(frame, file, tmp_path, options, keywords):
    assert audit(file, tmp_path / "out", *options) == 0
    attributes = frame[["sex", "race"]] if "--sensitive" in options else frame["sex"]
    points = ff.tradeoff_points(frame["y"], scores_of(frame), sensitive_features=attributes, **keywords)
    rows = read_csv(tmp_path / "out" / "points.csv")
    assert [float(row["fairness"]) for row in rows] == pytest.approx(points.fairness.tolist(), abs=1e-12)
    assert [float(row["accuracy"]) for row in rows] == pytest.approx(points.accuracy.tolist(), abs=1e-12)


def test_regression(frame, tmp_path):
    frame["y"] = frame["linear/a"] * 0.8 + 0.1
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert audit(tmp_path / "p.csv", tmp_path / "out", "--accuracy", "r2", "--scores", "*/*") == 0
    points = ff.tradeoff_points(frame["y"], scores_of(frame), sensitive_features=frame["sex"], accuracy="r2")
    rows = read_csv(tmp_path / "out" / "points.csv")
    assert [float(row["accuracy"]) for row in rows] == pytest.approx(points.accuracy.tolist(), abs=1e-12)
    means = [frame["trees/c"][frame["sex"] == "Male"].mean()]
    assert [float(row["mean_score[sex=Male]"]) for row in rows if row["model"] == "trees/c"] == pytest.approx(means)


@pytest.mark.parametrize(("positive", "expected"), [(None, "yes"), ("no", "no"), ("yes", "yes")])
def test_text_labels_and_the_positive_value(frame, tmp_path, positive, expected):
    frame["y"] = np.where(frame["y"] == 1, "yes", "no")
    frame.to_csv(tmp_path / "p.csv", index=False)
    options = [] if positive is None else ["--positive", positive]
    assert audit(tmp_path / "p.csv", tmp_path / "out", *options) == 0
    points = ff.tradeoff_points(frame["y"] == expected, scores_of(frame), sensitive_features=frame["sex"])
    assert [float(r["accuracy"]) for r in read_csv(tmp_path / "out" / "points.csv")] == points.accuracy.tolist()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["settings"]["positive"] == expected


@pytest.mark.parametrize(("positive", "value"), [("1", 1.0), ("true", True), ("0", 0)])
def test_numbers_and_booleans_are_named_as_people_name_them(frame, tmp_path, positive, value):
    frame["y"] = (frame["y"] == 1) if value is True else frame["y"].astype(float)
    frame.to_parquet(tmp_path / "p.parquet")
    assert audit(tmp_path / "p.parquet", tmp_path / "out", "--positive", positive) == 0
    points = ff.tradeoff_points(frame["y"] == value, scores_of(frame), sensitive_features=frame["sex"])
    assert [float(r["accuracy"]) for r in read_csv(tmp_path / "out" / "points.csv")] == points.accuracy.tolist()


def test_scores_are_chosen_by_pattern_and_by_name(file, tmp_path):
    assert audit(file, tmp_path / "out", "--scores", "trees/*", "--scores", "linear/b") == 0
    names = [row["model"] for row in read_csv(tmp_path / "out" / "points.csv")]
    assert names == ["trees/c", "trees/d", "linear/b", "constant"]


def test_every_column_that_is_no_model_is_named_with_the_reason(frame, tmp_path, capsys):
    n = len(frame)
    more = {"age": np.arange(n), "income": np.linspace(0, 9, n), "over40": np.arange(n) % 2, "p_sampling": 0.5}
    more |= {"flag": np.arange(n) % 2, "outcome": frame["y"], "word": "x", "person_id": np.linspace(0, 1, n)}
    frame.assign(**more).to_csv(tmp_path / "p.csv", index=False)
    assert audit(tmp_path / "p.csv", tmp_path / "out") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "taken as models: 'linear/a', 'linear/b', 'trees/c', 'trees/d'." in text
    for name, reason in {
        "income": "lies outside [0, 1]",
        "over40": "looks like an attribute of persons",
        "p_sampling": "looks like a sampling weight",
        "flag": "holds only 0 and 1 where the other columns hold scores",
        "outcome": "agrees with the label in every row",
        "word": "holds text",
        "person_id": "looks like an identifier",
    }.items():
        assert re.search(rf"'{name}'[^()]* \({re.escape(reason)}\)", text), name
    names = [row["model"] for row in read_csv(tmp_path / "out" / "points.csv")]
    assert names == [*scores_of(frame).columns, "constant"]
    assert audit(tmp_path / "p.csv", tmp_path / "named", "--scores", "flag", "--scores", "person_id") == 0
    assert [row["model"] for row in read_csv(tmp_path / "named" / "points.csv")] == ["flag", "person_id", "constant"]


def test_a_column_that_is_nearly_all_numbers_is_asked_about(frame, tmp_path, capsys):
    frame = frame.astype({"linear/a": object})
    frame.loc[7, "linear/a"] = "not yet"
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert audit(tmp_path / "p.csv", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "column 'linear/a' of p.csv holds numbers and also words, such as 'not yet' in row 8: leave" in error
    assert audit(tmp_path / "p.csv", tmp_path / "out", "--scores", "trees/*") == 0


def test_single_precision_keeps_every_decision(tmp_path, monkeypatch):
    monkeypatch.setattr("fairfrontier._cli.table.MOST_DOUBLE", 1)
    rng = np.random.default_rng(1)
    frame = predictions(400)
    close = 0.3 + rng.choice([-1e-12, 0.0, 1e-12, 1e-9], len(frame))
    frame["linear/a"] = close
    frame.to_parquet(tmp_path / "p.parquet")
    assert audit(tmp_path / "p.parquet", tmp_path / "out", "--threshold", "0.3") == 0
    points = ff.tradeoff_points(frame["y"], scores_of(frame), sensitive_features=frame["sex"], threshold=0.3)
    assert [float(r["accuracy"]) for r in read_csv(tmp_path / "out" / "points.csv")] == points.accuracy.tolist()


def test_cells_that_a_spreadsheet_would_run_are_text(frame, tmp_path):
    names = ["=1+1", "+cmd", "-2", "@sum"]
    frame.columns = [*frame.columns[:3], *names]
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert audit(tmp_path / "p.csv", tmp_path / "out") == 0
    shown = [row["model"] for row in read_csv(tmp_path / "out" / "points.csv")]
    assert shown == ["'=1+1", "'+cmd", "'-2", "'@sum", "constant"]


def test_names_cannot_steer_the_terminal(frame, tmp_path, capsys):
    frame = frame.rename(columns={"linear/a": "[bold]\x1b[31ma\u202eb[/bold]"})
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert audit(tmp_path / "p.csv", tmp_path / "out", "--min-fairness", "0.5") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    # Nor in the words for thresholds of single models, which an audit without labels shows.
    options = ["--scores", "*/*", "--threshold", next(n for n in frame if "\x1b" in n) + "=0.5"]
    command = ["audit", str(tmp_path / "p.csv"), "--sensitive", "sex", "--out", str(tmp_path / "rates"), *options]
    assert main(command) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert "\u202e" not in out
    assert "[bold]�[31ma�b[/bold]" in out


def test_datasets_lists_the_seven_tasks(capsys):
    assert main(["datasets"]) == 0
    out = capsys.readouterr().out
    for task in ff.datasets.describe_all():
        line = next(line for line in out.splitlines() if line.startswith(task.task))
        assert f"{task.rows:,}" in line
        assert line.rstrip().endswith(f"{task.gap:.3f}")


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"fairfrontier {ff.__version__}"
    assert main(["--help"]) == 0
    assert "audit" in capsys.readouterr().out


def test_the_process_itself_exits_with_two_and_one_line(tmp_path):
    options = ["--label", "y", "--sensitive", "s", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "fairfrontier.cli", "audit", str(tmp_path / "no.csv"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("fairfrontier: FILE must exist")
