"""The public names: each is there, is imported when it is first used, and not before."""

import ast
import dataclasses
import importlib
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn.exceptions
from typer.main import get_command

import fairfrontier as ff
from fairfrontier._cli.app import app

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "narwhals", "pyarrow", "matplotlib", "joblib", "rich"}
VERBS = ("identify", "optimize", "quantify")


def run(code, *arguments, stdin=None):
    """Run code in a new process; return its exit code, output and the heavy packages that it loaded."""
    tail = "\nimport json, sys\nprint('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + tail, *arguments], capture_output=True, input=stdin, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr.decode()
    shown, _, modules = done.stdout.decode().rstrip().rpartition("\n")
    return shown, done.stderr.decode(), HEAVY & set(json.loads(modules))


COMMAND = "import sys\nfrom fairfrontier.cli import main\nprint('exit', main(sys.argv[1:]))"


def test_an_audit_with_its_trial_stack_waits_for_no_library_that_it_does_not_use(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{y},{sex},{0.5 * y + 0.4 * noise:.4f},{noise:.4f}"
        for y, sex, noise in zip(rng.integers(0, 2, 600), rng.choice(["f", "m"], 600), rng.random(600), strict=True)
    ]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["y,sex,a,b", *lines, ""]), encoding="utf-8")
    code = COMMAND + "\nprint('stats', 'scipy.stats' in sys.modules, 'optimize', 'scipy.optimize' in sys.modules)"
    options = ("--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "out"))
    shown, _, loaded = run(code, "audit", str(file), *options)
    assert "exit 0" in shown
    assert "fair stack" in shown
    assert "stats False optimize False" in shown
    assert not loaded & {"sklearn", "pandas", "matplotlib", "joblib"}


@pytest.mark.parametrize("name", ff.__all__)
def test_every_name_is_there(name):
    value = getattr(ff, name)
    assert name in dir(ff)
    if name not in ("__version__", *ff._PACKAGES):
        assert value.__name__ == name


def test_every_name_of_the_verbs_is_the_packages_own():
    for verb in VERBS:
        package = importlib.import_module(f"fairfrontier.{verb}")
        for name in package.__all__:
            assert getattr(ff, name) is getattr(package, name)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(ff.__file__).read_text(encoding="utf-8"))
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = set()
    for node in branch.body:
        for alias in node.names:
            star = importlib.import_module(node.module).__all__ if alias.name == "*" else [alias.asname]
            seen.update(star)
    assert seen == {*ff.__all__, *ff._MORE_PACKAGES} - {"__version__"}


def test_packages_are_attributes():
    shown, _, _ = run("import fairfrontier as ff\nprint(ff.metrics.MEASURES is not None, ff.report.summarise.__name__)")
    assert shown.split() == ["True", "summarise"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'fairfrontier' has no attribute 'taf_kurve'"):
        _ = ff.taf_kurve
    with pytest.raises(AttributeError, match=r"module 'fairfrontier\.exceptions' has no attribute 'NoError'"):
        _ = ff.exceptions.NoError
    with pytest.raises(ImportError):
        exec("from fairfrontier import taf_kurve")


def test_a_star_import_brings_all():
    names = {}
    exec("from fairfrontier import *", names)
    assert names.keys() - {"__builtins__"} == set(ff.__all__)
    exec("from fairfrontier.exceptions import *", names)
    assert names["ConvergenceWarning"] is sklearn.exceptions.ConvergenceWarning


def test_import_loads_no_other_package():
    shown, _, heavy = run("import fairfrontier as ff\nprint(ff.__version__, len(dir(ff)) > 50)")
    assert shown.split() == [ff.__version__, "True"]
    assert not heavy
    assert not run("from fairfrontier.exceptions import InvalidInputError")[2]


def test_a_pickle_opens_where_nothing_was_imported():
    content = pickle.dumps(ff.StepWeight(0.8))
    shown, _, _ = run("import pickle, sys\nprint(pickle.load(sys.stdin.buffer))", stdin=content)
    assert shown == "StepWeight(minimum=0.8)\n"


def test_version_and_help_load_no_other_package():
    shown, _, heavy = run(COMMAND, "--version")
    assert shown.splitlines()[:2] == [f"fairfrontier {ff.__version__}", "exit 0"]
    assert not heavy
    for arguments in (["--help"], []):
        shown, _, heavy = run(COMMAND, *arguments)
        words = {line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line.startswith("  ")}
        assert get_command(app).commands.keys() <= words
        assert len(words) >= 6
        assert not heavy


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_help_of_a_command_loads_no_other_package(command):
    shown, _, heavy = run(COMMAND, command, "--help")
    assert f"fairfrontier {command}" in shown
    assert "exit 0" in shown
    assert not heavy


@pytest.mark.parametrize("arguments", [["audit", "--colour"], ["paint"], ["audit", "file.csv"]])
def test_a_mistyped_command_is_one_line_and_loads_no_other_package(arguments):
    shown, errors, heavy = run(COMMAND, *arguments)
    assert "exit 2" in shown
    assert errors.startswith("fairfrontier: ")
    assert errors.count("\n") == 1
    assert not heavy


def public_dataclasses():
    modules = [ff, *(getattr(ff, name) for name in (*ff._PACKAGES, *ff._MORE_PACKAGES))]
    members = [getattr(module, name) for module in modules for name in module.__all__]
    kinds = {one for one in members if isinstance(one, type) and dataclasses.is_dataclass(one)}
    return sorted(kinds, key=lambda kind: (kind.__module__, kind.__name__))


@pytest.mark.parametrize("kind", public_dataclasses(), ids=lambda kind: kind.__name__)
def test_results_with_arrays_compare_by_identity(kind):
    """A comparison field by field would ask an array whether it is true, and raise."""
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    arrays = [name for name, text in types.items() if re.search("NDArray|FloatArray|IntArray|Matrix|ndarray", text)]
    held = [name for name in arrays if "Callable" not in types[name]]
    assert not held or kind.__eq__ is object.__eq__, held
