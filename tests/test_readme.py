"""The README's code runs as it stands, and it keeps what it promises."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from fairfrontier.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_and_gets_what_it_asked_for(capsys):
    import matplotlib

    matplotlib.use("Agg")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
    assert "asked" in capsys.readouterr().out
    selection, points = names["fair"].selection_, names["points"]
    assert selection.asked == 0.95 <= selection.estimated
    assert points.names == ("unconstrained", "fair", "constant")
    # The standard error of a difference between these groups is about .025.
    assert points.fairness[1] > max(points.fairness[0], 0.95 - 0.05)
    assert points.accuracy[1] > points.accuracy[2]
    matplotlib.pyplot.close("all")


def test_every_command_on_a_file_of_predictions_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 20_000
    sex = np.array(["f", "m"])[rng.integers(0, 2, n)]
    hired = (rng.random(n) < 0.4).astype(int)
    scores = {
        f"model_{j}": np.clip(0.3 + 0.4 * hired + 0.05 * j * (sex == "m") + rng.normal(0, 0.3, n), 0, 1)
        for j in range(3)
    }
    pd.DataFrame({"hired": hired, "sex": sex} | scores).to_csv("predictions.csv", index=False)
    commands = re.findall(r"^    fairfrontier ((?:audit|stack) +predictions\.csv .*)$", README, flags=re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        assert main(shlex.split(command, comments=True)) == 0
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
