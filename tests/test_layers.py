"""The architecture: each layer imports only what lies below it, and nothing optional before it is needed."""

import ast
import sys
from pathlib import Path

import pytest

import fairfrontier

ROOT = Path(fairfrontier.__file__).parent

# Layer of each top-level module or package, and the layers that it may import besides itself.
BASE = (
    "_columns",
    "_extras",
    "_forests",
    "_groups",
    "_notebook",
    "_processes",
    "_rows",
    "_scores",
    "_validation",
    "_version",
    "_writing",
    "exceptions",
)
CORE_LAYERS = ("chunks", "metrics", "identify", "quantify")
ABOVE_BASE = {
    "chunks": (),
    "metrics": (),
    "identify": ("chunks", "metrics"),
    "quantify": ("chunks", "metrics", "identify"),
    "_attribute_models": ("metrics",),
    "_quick_scores": ("metrics", "_attribute_models"),
    "optimize": (*CORE_LAYERS, "_attribute_models", "_quick_scores"),
    "datasets": CORE_LAYERS,
    "learners": (*CORE_LAYERS, "_attribute_models", "datasets"),
    "limit": (*CORE_LAYERS, "_attribute_models", "optimize", "learners"),
    "_persistence": (*CORE_LAYERS, "optimize", "learners"),
    "search": (*CORE_LAYERS, "limit", "optimize", "datasets", "learners", "_persistence"),
    "adapters": (*CORE_LAYERS, "optimize", "learners"),
    "benchmark": (*CORE_LAYERS, "optimize", "datasets", "learners", "_persistence", "search", "adapters"),
    "report": (
        *CORE_LAYERS,
        "limit",
        "optimize",
        "datasets",
        "learners",
        "_persistence",
        "adapters",
        "benchmark",
        "search",
    ),
}
COMMAND_LINE = ("cli", "_cli", "__main__")
ALLOWED = (
    {name: set(BASE) for name in BASE}
    | {name: {name, *BASE, *below} for name, below in ABOVE_BASE.items()}
    | {name: {*COMMAND_LINE, *BASE, *ABOVE_BASE} for name in COMMAND_LINE}
)
# What every installation has: the standard library and the core dependencies with what they bring.
CORE = {*sys.stdlib_module_names, "numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "narwhals", "fairfrontier"}
COMMAND_LINE_CORE = {"typer", "rich"}

FILES = sorted(ROOT.rglob("*.py"))


def layer(path, root=ROOT):
    return path.relative_to(root).parts[0].removesuffix(".py")


def imports(node, package):
    """Yield the full names of the modules that an import statement loads."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (base, node.module) if part)
        # `from fairfrontier import _validation` loads a module; other names are the package's own.
        yield from (f"{module}.{alias.name}" if module == "fairfrontier" else module for alias in node.names)


def all_imports(path, root):
    package = ["fairfrontier", *path.relative_to(root).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in imports(node, package):
            yield node.lineno, name


def imports_at_load(path, root):
    """Yield the imports that run when the module is loaded: those outside functions and `if TYPE_CHECKING`."""
    package = ["fairfrontier", *path.relative_to(root).parts[:-1]]
    waiting = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        for name in imports(node, package):
            yield node.lineno, name
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting.extend(node.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(node))


def wrong_layers(path, root=ROOT):
    allowed = ALLOWED[layer(path, root)]
    for line, name in all_imports(path, root):
        parts = name.split(".")
        if parts[0] == "fairfrontier" and (len(parts) == 1 or parts[1] not in allowed):
            yield f"{path.relative_to(root)}:{line} imports {name}"


def wrong_at_load(path, root=ROOT):
    allowed = CORE | (COMMAND_LINE_CORE if layer(path, root) in COMMAND_LINE else set())
    for line, name in imports_at_load(path, root):
        if name.split(".")[0] not in allowed:
            yield f"{path.relative_to(root)}:{line} imports {name} when it is loaded"


def test_every_module_has_a_layer():
    unknown = {layer(path) for path in FILES} - set(ALLOWED) - {"__init__"}
    assert not unknown, f"give {sorted(unknown)} a layer in tests/test_layers.py"


@pytest.mark.parametrize("name", sorted({layer(path) for path in FILES} & set(ALLOWED)))
def test_imports_go_down(name):
    assert not [problem for path in FILES if layer(path) == name for problem in wrong_layers(path)]


def test_nothing_optional_is_imported_at_load():
    assert not [problem for path in FILES for problem in wrong_at_load(path)]


@pytest.mark.parametrize(
    ("place", "code", "problems"),
    [
        ("metrics/a.py", "from fairfrontier.identify import points", 1),
        ("metrics/a.py", "def f():\n    import fairfrontier.quantify._fauc", 1),
        ("metrics/a.py", "from fairfrontier import taf_curve", 1),
        ("metrics/a.py", "from fairfrontier import _validation as validate", 0),
        ("metrics/a.py", "from ..identify import points", 1),
        ("metrics/a.py", "from .cells import Cells", 0),
        ("datasets/a.py", "from fairfrontier.optimize import path", 1),
        ("learners/a.py", "from fairfrontier.optimize import path", 1),
        ("exceptions.py", "from fairfrontier.metrics import cells", 1),
        ("quantify/a.py", "import fairfrontier as ff", 1),
        ("cli.py", "from fairfrontier.report import html", 0),
    ],
)
def test_the_walk_sees_what_it_must(place, code, problems, tmp_path):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(code)
    assert len(list(wrong_layers(path, tmp_path))) == problems


@pytest.mark.parametrize(
    ("code", "problems"),
    [
        ("import matplotlib", 1),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", 1),
        ("class A:\n    import pandas", 1),
        ("def f():\n    import pandas", 0),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas", 0),
        ("import numpy as np\nfrom sklearn.base import BaseEstimator", 0),
    ],
)
def test_the_walk_sees_what_runs_at_load(code, problems, tmp_path):
    path = tmp_path / "metrics.py"
    path.write_text(code)
    assert len(list(wrong_at_load(path, tmp_path))) == problems
