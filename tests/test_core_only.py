"""With the core dependencies alone, identify and quantify work, and the rest says what to install."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

# Runs inside the fresh environment; what it prints is checked here.
SCRIPT = """
import json
import sys

import numpy as np

import fairfrontier as ff
from fairfrontier.exceptions import MissingExtraError

rng = np.random.default_rng(0)
y, sex = rng.integers(0, 2, 200), np.where(rng.random(200) < 0.5, "f", "m")
points = ff.tradeoff_points(y, {"a": rng.random(200), "b": 0.5 * rng.random(200) + 0.5 * y}, sensitive_features=sex)
weights = {
    "none": None,
    "uniform": ff.UniformWeight(),
    "step": ff.StepWeight(0.8),
    "power": ff.PowerWeight(2, 0.5),
    "point": ff.PointWeight(0.9),
    "table": ff.TabulatedWeight([0.0, 1.0], [0.0, 1.0]),
    "function": lambda x: 1 + x,
}
areas = {
    f"{interpolate} {name}": ff.fauc(points.frontier(interpolate), weight)
    for interpolate in (False, True, "signed")
    for name, weight in weights.items()
}
three = ff.tradeoff_points(y, rng.random((200, 4)), sensitive_features=rng.integers(0, 3, 200))
areas["several contrasts"] = ff.fauc(three.frontier("signed"))
missing = {}
for name, call in {
    "composite_fauc": lambda: ff.composite_fauc([[0.5], [1.0]], [0.9, 0.6]),
    "plot": lambda: ff.TAFDisplay.from_points(points, scores=ff.fauc).plot(),
}.items():
    try:
        call()
    except MissingExtraError as error:
        missing[name] = str(error)
print(json.dumps({"areas": areas, "missing": missing, "loaded": sorted({m.split(".")[0] for m in sys.modules})}))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """What the script says in an environment that has the project and its core dependencies only."""
    home = tmp_path_factory.mktemp("core")
    python = home / "venv" / "bin" / "python"
    # Nothing of the environment in which the tests run may shine through.
    clean = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}}
    for command in (
        [sys.executable, "-m", "venv", str(home / "venv")],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(PROJECT)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=clean, check=False)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [str(python), "-W", "error", "-c", SCRIPT], capture_output=True, text=True, env=clean, cwd=home, check=False
    )
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, text=True, env=clean, check=True
    )
    return json.loads(done.stdout) | {"installed": {p["name"].lower() for p in json.loads(listed.stdout)}}


@pytest.mark.fresh_env
@pytest.mark.slow
class TestCoreOnly:
    def test_only_the_core_is_installed(self, core):
        assert {"numpy", "scipy", "scikit-learn", "narwhals", "fairfrontier"} <= core["installed"]
        assert not {"pandas", "matplotlib", "moocore", "fairlearn", "torch", "typer"} & core["installed"]

    def test_points_frontiers_and_areas_work(self, core):
        assert len(core["areas"]) == 22
        assert all(0.0 < area <= 1.0 for area in core["areas"].values())
        for name in ("none", "step", "power", "table", "function"):
            step, hull, signed = (core["areas"][f"{i} {name}"] for i in (False, True, "signed"))
            assert step <= hull + 1e-12 <= signed + 2e-12

    def test_what_is_missing_has_the_command_that_installs_it(self, core):
        assert core["missing"].keys() == {"composite_fauc", "plot"}
        assert "pip install 'fairfrontier[composite]'" in core["missing"]["composite_fauc"]
        assert "moocore" in core["missing"]["composite_fauc"]
        assert "pip install 'fairfrontier[plot]'" in core["missing"]["plot"]
        assert "matplotlib" in core["missing"]["plot"]
