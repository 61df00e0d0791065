"""Every example runs as a user runs it: in a process of its own, and a warning is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# A full run of these takes minutes; `OUT` is a file in an empty folder.
OPTIONS = {
    "compare_paths.py": ["--splits", "1", "--trees", "20", "--markdown", "OUT"],
    "fairstacks_panels.py": ["--small", "--out", "OUT"],
    "narrow_weights.py": ["--draws", "2", "--out", "OUT"],
    "simulate_random_populations.py": ["--draws", "2", "--resamples", "60", "--cells", "0", "16", "18", "--out", "OUT"],
    "ratio_coverage.py": ["--largest", "30", "--repetitions", "40", "--out", "OUT"],
    "simulate_coverage.py": ["--draws", "3", "--no-extra", "--scenarios", "few-8-1000", "--out", "OUT"],
}
# It measures for a minute or two, and is run by hand.
MEASUREMENT = {"scaling_plot.py"}
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


def test_there_are_examples_and_no_options_for_others():
    assert len(SCRIPTS) > 3
    # What is not a page of the gallery is a study, whose full run is no test.
    assert OPTIONS.keys() | MEASUREMENT == {name for name in SCRIPTS if not name.startswith("plot_")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in MEASUREMENT])
def test_it_runs(name, tmp_path):
    out = tmp_path / ("out.png" if name == "fairstacks_panels.py" else "out.md")
    options = [str(out) if word == "OUT" else word for word in OPTIONS.get(name, [])]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "MPLCONFIGDIR": str(tmp_path / "matplotlib")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert out.is_file() == bool(options)
