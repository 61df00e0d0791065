"""Run tests in forks of a process that has imported everything but the library itself."""

import builtins
import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

# What the tests import beside the library.
_LIBRARIES = (
    "numpy", "scipy.optimize", "scipy.stats", "scipy.sparse", "pandas", "polars", "pyarrow", "narwhals", "cvxpy",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline", "clarabel", "skops.io",
    "sklearn.utils.estimator_checks", "hypothesis.strategies", "matplotlib.pyplot", "moocore", "fairlearn.reductions",
    "statsmodels.api", "dask.array",
)  # fmt: skip
_MEMORY = 6 * 2**30
_WARNING = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is imported before pytest begins


def warm() -> None:
    """Import the libraries, of which some may be missing."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


class _Chosen:
    """Keep chosen tests, in their order, and note what happens to them."""

    def __init__(self, order: Sequence[str] | None) -> None:
        self.order = None if order is None else {name: i for i, name in enumerate(order)}
        self.found: dict[str, dict[str, Any]] = {}
        self.failed = ""

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        # An example that fails is enough; a smaller one would take most of the time.
        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order is not None:
            items[:] = sorted(
                (one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid]
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        builtins.reached.clear()
        start = time.perf_counter()
        result = yield
        found = {"seconds": time.perf_counter() - start, "reached": sorted(builtins.reached)}
        self.found.setdefault(item.nodeid, {"passed": True}).update(found)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
        if not report.passed:  # a skipped test finds nothing
            self.found.setdefault(report.nodeid, {})["passed"] = False


def run_tests(
    tree: Path, files: Sequence[str], order: Sequence[str] | None, limit: float
) -> tuple[int, _Chosen | dict]:
    """Run tests of a tree in a fork; return pytest's code (-1 after `limit` seconds), and what it said."""
    answer = tree / "answer.json"
    answer.unlink(missing_ok=True)

    def work() -> int:
        os.chdir(tree)
        os.environ["PYTHONPATH"] = f"{tree / 'src'}"
        sys.path.insert(0, str(tree / "src"))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        builtins.reached = set()
        chosen = _Chosen(order)
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", _WARNING, *(["-x"] if order else [])]
        code = int(pytest.main([*options, *files], plugins=[chosen]))
        answer.write_text(json.dumps({"failed": chosen.failed, "tests": chosen.found}), encoding="utf-8")
        return code

    code = _forked(work, limit)
    return code, json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {"failed": "", "tests": {}}


def _forked(work: Callable[[], int], limit: float) -> int:
    """Return what a function returns in a fork, -1 if it takes longer than `limit` seconds."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            code = work()
        finally:
            os._exit(code)
    end = time.monotonic() + limit
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.02)
