"""The README's code runs as it stands, and it keeps what it promises."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairfrontier.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def names():
    rng = np.random.default_rng(0)
    sex = np.array(["f", "m"])[rng.integers(0, 2, 800)]
    y = (rng.random(800) < np.where(sex == "f", 0.3, 0.5)).astype(int)
    scores = {
        f"model {j}": np.clip(0.3 + 0.4 * y + 0.05 * j * (sex == "m") + rng.normal(0, 0.3, 800), 0, 1) for j in range(5)
    }
    half = slice(0, 400), slice(400, 800)
    return {
        "y": y[half[0]],
        "sex": sex[half[0]],
        "predictions": {name: column[half[0]] for name, column in scores.items()},
        "y_test": y[half[1]],
        "sex_test": sex[half[1]],
        "X_test": {name: column[half[1]] for name, column in scores.items()},
    }


def test_every_block_of_python_runs_in_order(names, capsys, tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)
    printed = [float(word) for word in re.findall(r"\b[01]?\.\d+\b", capsys.readouterr().out)]
    assert len(printed) >= 3
    assert all(0 < value <= 1 for value in printed)
    assert names["fair"].points_.fairness.max() >= 0.95
    matplotlib.pyplot.close("all")


def test_every_command_on_a_file_of_predictions_runs(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"hired": names["y"], "sex": names["sex"]} | names["predictions"]).to_csv(
        "predictions.csv", index=False
    )
    commands = re.findall(r"^    fairfrontier ((?:audit|stack) predictions\.csv .*)$", README, flags=re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        assert main(shlex.split(command)) == 0
    assert {"audit", "stack"} <= {path.name for path in tmp_path.iterdir()}


def test_every_file_it_points_to_is_there():
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert len(links) >= 4
    for link in links:
        assert (Path(__file__).parents[1] / link).exists(), link


def test_it_names_real_commands():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
