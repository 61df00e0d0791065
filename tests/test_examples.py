"""Every example runs to its end as a script, and a warning is a failure."""

import runpy
import sys
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as pyplot
import pytest
from threadpoolctl import threadpool_limits

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
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    out = tmp_path / ("out.png" if name == "fairstacks_panels.py" else "out.md")
    options = [str(out) if word == "OUT" else word for word in OPTIONS.get(name, [])]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *options])
    pyplot.switch_backend("agg")
    # Not in a process of its own, most of whose time would go into imports.
    with matplotlib.rc_context(), threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    pyplot.close("all")
    assert capsys.readouterr().err == ""
    assert out.is_file() == bool(options)
