"""Each extra brings what its commands need, and what is missing is said before any work is done."""

import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Hides packages as if they were not installed, and then runs the command line.
SCRIPT = """
import json
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

hidden = set(json.loads(sys.argv[1]))


class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)


sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Installed]
from fairfrontier.cli import main

sys.exit(main(sys.argv[2:]))
"""


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(extra):
    """Return the requirements of the project with one of its extras, those of the extras inside it included."""
    found = [*PROJECT["dependencies"]]
    for text in EXTRAS[extra]:
        requirement = Requirement(text)
        inner = [requirements(name) for name in requirement.extras] if requirement.name == "fairfrontier" else [[text]]
        found += [one for part in inner for one in part]
    return found


def distributions(extra):
    """Return the names of all packages that an installation with the extra has."""
    waiting, known = requirements(extra), set()
    while waiting:
        requirement = Requirement(waiting.pop())
        applies = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": name}) for name in ("", *requirement.extras)
        )
        if not applies or plain(requirement.name) in known:
            continue
        known.add(plain(requirement.name))
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # needed on other systems only
            waiting += importlib.metadata.requires(requirement.name) or []
    return known


def others(extra):
    """Return the top-level modules that are installed here, but would not be with the extra alone."""
    wanted = {*distributions(extra), "fairfrontier"}
    by_module = importlib.metadata.packages_distributions()
    return sorted(name for name, owners in by_module.items() if not wanted & set(map(plain, owners)))


def run(extra, *arguments, without=(), stdin=""):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([*others(extra), *without]), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    y, sex = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    scores = np.clip(0.5 * y[:, None] + 0.1 * sex[:, None] + 0.4 * rng.random((300, 3)), 0, 1)
    path = tmp_path_factory.mktemp("extras") / "predictions.csv"
    rows = (f"{a},{'fm'[b]},{','.join(f'{s:.4f}' for s in row)}" for a, b, row in zip(y, sex, scores, strict=True))
    path.write_text("y,sex,a,b,c\n" + "\n".join(rows) + "\n")
    return path


def test_the_lists_are_those_of_the_extras():
    assert {"typer", "pyarrow", "jinja2", "skops", "markupsafe", "scikit-learn", "joblib"} <= distributions("cli")
    assert not {"pandas", "torch", "matplotlib", "pytest", "fairlearn", "xgboost-cpu"} & distributions("cli")
    assert {"jinja2", "matplotlib", "typer"} <= distributions("demo")
    heavy = {"torch", "sphinx", "mlflow-skinny", "playwright", "cvxpy", "pandas", "pyarrow", "xgboost-cpu", "fairlearn"}
    assert not heavy & distributions("demo")
    everything = distributions("all")
    assert all(distributions(name) <= everything for name in EXTRAS.keys() - {"docs", "dev"})
    assert {"pandas", "matplotlib", "torch"} <= set(others("cli"))
    assert not {"typer", "pyarrow", "jinja2", "skops", "sklearn", "fairfrontier"} & set(others("cli"))


@pytest.mark.parametrize("command", ["audit", "stack"])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_extra_of_the_command_line_is_enough(command, chunked, file, tmp_path):
    more = ["--chunk-rows", "100"] if chunked else []
    done = run("cli", command, file, "--label", "y", "--sensitive", "sex", "--out", tmp_path / "out", *more)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").stat().st_size > 100_000


def test_the_extra_of_the_command_line_is_enough_for_questions_and_data_sets(tmp_path):
    done = run("cli", "elicit", "--questions", "2", "--out", tmp_path / "out", stdin="1\n2\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "weight.json").exists()
    done = run("cli", "datasets")
    assert done.returncode == 0, done.stderr
    assert "adult" in done.stdout


@pytest.mark.slow
def test_the_extra_of_the_demo_is_enough(tmp_path):
    done = run("demo", "demo", "--out", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "demo").iterdir()} >= {"report.html", "taf.png"}


@pytest.mark.parametrize(
    ("extra", "arguments", "missing"),
    [
        ("cli", ["audit", "no_such_file.csv", "--label", "y", "--sensitive", "sex"], "jinja2"),
        ("cli", ["audit", "no_such_file.csv", "--label", "y", "--sensitive", "sex"], "pyarrow"),
        ("cli", ["stack", "no_such_file.csv", "--label", "y", "--sensitive", "sex"], "skops"),
        ("demo", ["demo"], "matplotlib"),
        ("demo", ["demo"], "jinja2"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_read(extra, arguments, missing, tmp_path):
    done = run(extra, *arguments, "--out", tmp_path / "out", without=[missing])
    assert done.returncode == 2
    assert done.stderr == (
        f"fairfrontier: {arguments[0]} needs the package '{missing}', which is not installed: "
        f"pip install 'fairfrontier[{extra}]'\n"
    )
    assert not done.stdout
    assert not (tmp_path / "out").exists()


def test_without_the_command_lines_packages_one_line_says_so():
    done = run("plot", "--version")
    assert done.returncode == 2
    assert done.stderr == (
        "fairfrontier: The command line needs the package 'typer', which is not installed: "
        "pip install 'fairfrontier[cli]'\n"
    )
