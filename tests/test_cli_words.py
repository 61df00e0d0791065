"""The command line says what it did and why it refuses: options that contradict each other, files of earlier runs."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fairfrontier.cli import main


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["f", "m"], n), rng.integers(18, 70, n)
    y = (rng.normal(size=n) + 0.6 * (sex == "m") > 0.2).astype(int)
    frame = pd.DataFrame({"y": y, "sex": sex, "age": age})
    for name in ("m_a", "m_b"):
        frame[name] = np.clip(0.5 * y + 0.1 * (sex == "m") + 0.5 * rng.random(n), 0, 1)
    return frame.assign(m_rule=(frame["m_a"] > 0.6).astype(int))


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function that runs a command on a frame and gives the exit code and what was shown."""

    def command(verb, frame, *options, sensitive=("sex",), label="y", out=None):
        path = tmp_path / "p.csv"
        frame.to_csv(path, index=False)
        chosen = [word for one in sensitive for word in ("--sensitive", one)] + (["--label", label] if label else [])
        code = main([verb, str(path), *chosen, "--out", str(tmp_path / "out" if out is None else out), *options])
        shown = capsys.readouterr()
        return code, " ".join((shown.out + shown.err).split())

    return command


MODELS = ("--no-stack", "--scores", "m_*")


class TestFilesOfEarlierRuns:
    def test_known_files_are_removed_with_force_and_others_stay(self, run, tmp_path):
        frame, out = people(), tmp_path / "out"
        assert run("stack", frame, "--scores", "m_*", "--min-fairness", "0.8")[0] == 0
        (out / "mine.txt").write_text("mine")
        assert {"weights.csv", "model.skops"} <= {path.name for path in out.iterdir()}
        code, shown = run("audit", frame, *MODELS, "--baseline", "m_a", "--force")
        assert code == 0
        assert "Removed, of an earlier run: weights.csv, model.skops." in shown
        assert (out / "differences.csv").exists()
        assert run("audit", frame, *MODELS, "--force", label=None)[0] == 0
        left = {path.name for path in out.iterdir()}
        assert left == {"groups.csv", "mine.txt", "model_card.md", "report.html", "summary.json"}

    def test_nothing_is_removed_after_an_error(self, run, tmp_path):
        assert run("audit", people(), *MODELS, "--baseline", "m_a")[0] == 0
        assert run("audit", people(), *MODELS, "--baseline", "m_z", "--force")[0] == 2
        assert (tmp_path / "out" / "differences.csv").exists()

    def test_the_file_that_is_read_stays_whatever_it_is_called(self, tmp_path):
        people().to_csv(tmp_path / "weights.csv", index=False)
        command = ["audit", str(tmp_path / "weights.csv"), "--label", "y", "--sensitive", "sex", *MODELS, "--force"]
        assert main([*command, "--out", str(tmp_path)]) == 0
        assert len(pd.read_csv(tmp_path / "weights.csv")) == 600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*MODELS, "--reference", "sex=f", "--reference", "sex=m"), "one group of 'sex'; got 'f' and 'm'"),
        ((*MODELS, "--sensitive", "age:30,60", "--sensitive", "age:45"), "each column once; got 'age' twice"),
        ((*MODELS, "--sample-weight", "y"), "--sample-weight must name another column than --label and --sensitive"),
        ((*MODELS, "--sensitive", "age:40", "--sample-weight", "age"), "than --label and --sensitive; got 'age'"),
        (("--baseline", "m_rule"), "--baseline 'm_rule' was left out of the models because it holds only 0 and 1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(run, options, message):
    code, shown = run("audit", people(), *options)
    assert code == 2
    assert message in shown


@pytest.mark.parametrize("given", [["--out", ""], ["--out="]])
def test_an_empty_folder_is_refused(tmp_path, monkeypatch, capsys, given):
    people().to_csv(tmp_path / "p.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "p.csv", "--label", "y", "--sensitive", "sex", *MODELS, *given]) == 2
    assert "--out must name a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_a_model_that_is_the_sample_weight_is_named(run):
    code, shown = run("audit", people(), *MODELS, "--sample-weight", "m_b")
    assert code == 0
    assert "'m_b' is the sample weight and therefore no model" in shown
    assert "is the sample weight" not in run("audit", people(), *MODELS, "--sample-weight", "age", "--force")[1]


def test_a_threshold_of_columns_that_were_left_out_names_them(run):
    frame = people()
    frame[["m_a", "m_b"]] *= 100
    code, shown = run("audit", frame, "--threshold", "50", "--no-stack")
    assert code == 2
    assert "beyond [0, 1], 'm_a', 'm_b': name the models with --scores" in shown
    assert run("audit", frame, "--threshold", "50", "--no-stack", "--scores", "m_[ab]")[0] == 0


def test_a_small_reference_group_is_announced(run):
    frame = people()
    frame.loc[:9, "sex"] = "x"
    for label in ("y", None):
        code, shown = run("audit", frame, *MODELS, "--reference", "sex=x", "--force", label=label)
        assert code == 0
        assert "The reference group sex=x has fewer than 30 rows" in shown
        assert "The reference group" not in run("audit", frame, *MODELS, "--reference", "sex=f", "--force")[1]


def test_columns_and_rows_without_a_score(run):
    frame = people()
    code, shown = run("audit", frame.assign(m_none=np.nan), *MODELS, "--missing", "drop")
    assert (code, shown) == (
        2,
        "fairfrontier: scores 'm_none' must be numbers; got none in any row: leave this model out with --scores",
    )
    frame.loc[:299, "m_a"], frame.loc[300:, "m_b"] = np.nan, np.nan
    code, shown = run("audit", frame, *MODELS, "--missing", "drop")
    assert code == 2
    assert "--missing drop must leave a row" in shown
    assert "note" not in shown


def test_without_labels_it_is_said_which_models_decide_and_which_are_cut(run):
    shown = run("audit", people(), *MODELS, label=None)[1]
    assert "Selected: decision 1 of 'm_rule', which holds 0 and 1; else a score above the median of all rows" in shown
    shown = run("audit", people(), "--scores", "m_[ab]", "--force", label=None)[1]
    assert "Selected: a score above the median of all rows (the scoring rate)." in shown


class TestStacks:
    @pytest.mark.parametrize(
        ("options", "heading"),
        [
            (("--min-fairness", "0.6", "--confidence", "0.8"), "Asked, promised, delivered"),
            (("--min-fairness", "0.8"), "Asked, estimated, delivered"),
            (("--tau", "0.05"), None),
        ],
    )
    def test_the_report_says_what_promised_and_delivered_mean(self, run, tmp_path, options, heading):
        assert run("stack", people(), "--scores", "m_*", *options)[0] == 0
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert [
            h for h in ("Asked, promised, delivered", "Asked, estimated, delivered") if f"<h3>{h}</h3>" in page
        ] == ([] if heading is None else [heading])

    def test_rows_of_a_promise_are_a_part_of_the_file(self, run):
        code, shown = run("stack", people(), "--scores", "m_*", "--min-fairness", "0.95", "--confidence", "0.95")
        assert code == 2
        assert "of the 600 rows of the file are set aside for the promise: ask for less with --min-fairness" in shown

    def test_a_request_that_is_not_met_is_called_so(self, run, tmp_path):
        unmet = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            group = rng.integers(0, 2, 200)
            y = rng.normal(size=200) + 0.3 * group
            frame = pd.DataFrame({"y": y, "sex": np.where(group, "m", "f")})
            for name in ("m_a", "m_b"):
                frame[name] = y + 0.2 * group + rng.normal(size=200)
            options = ("--scores", "m_*", "--accuracy", "r2", "--force", "--min-fairness", "0.99")
            code, shown = run("stack", frame, *options)
            assert code == 0
            found = json.loads((tmp_path / "out" / "summary.json").read_text())["operating"]
            unmet.append(found["estimated"] < 0.9895)
            assert ("The request was not met" in shown) == unmet[-1]
        assert set(unmet) == {True, False}


def test_the_package_can_be_run_and_answers_without_scikit_learn():
    code = (
        "import runpy, sys; sys.argv = ['fairfrontier', '--version']\n"
        "try: runpy.run_module('fairfrontier', run_name='__main__')\n"
        "except SystemExit as end: print(end.code, 'sklearn' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("fairfrontier 0.")
    assert found.stdout.endswith("0 False\n")
