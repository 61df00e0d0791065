"""Choose places, run the tests for each, and write what came of them."""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tools.mutants.mutate import Place, instrumented, mutant, places
from tools.mutants.page import page
from tools.mutants.runner import run_tests, warm

PROJECT = Path(__file__).parents[2]
PACKAGE = Path("src/fairfrontier")
# What is changed, and the tests that look at it.
PARTS = {
    "metrics": (
        sorted(p.relative_to(PROJECT) for p in (PROJECT / PACKAGE / "metrics").glob("_[a-z]*.py")),
        (
            "metrics",
            "measures",
            "many_groups",
            "utilities",
            "probable_groups",
            "identify_points",
            "silent_errors",
            "chunks",
        ),
    ),
    "identify": (
        sorted(p.relative_to(PROJECT) for p in (PROJECT / PACKAGE / "identify").glob("_[a-z]*.py")),
        (
            "identify_points",
            "identify_frontier",
            "identify_display",
            "measures",
            "probable_groups",
            "metrics",
            "utilities",
            "mixture",
            "quantify_fauc",
            "optimize_statistics",
        ),
    ),
    "ridge path": (
        [PACKAGE / "optimize/_ridge_path.py"],
        (
            "optimize_path",
            "many_groups",
            "optimize_units",
            "optimize_theory",
            "optimize_tuning",
            "optimize_fairstacks",
            "optimize_families",
            "optimize_group",
            "optimize_statistics",
            "optimize_pipeline",
        ),
    ),
    "selection": (
        [PACKAGE / f"{name}.py" for name in ("optimize/_selection_rule", "optimize/_selection", "quantify/_promise")],
        (
            "optimize_selection",
            "promise",
            "probable_groups",
            "mixture",
            "measures",
            "optimize_pipeline",
            "cli_stack",
            "many_groups",
        ),
    ),
}
# Why a survivor is the same program for whoever uses it, by the keys of the records.
SAME = Path(__file__).with_name("same.json")
# Seconds of tests for one mutant, the quickest first: what all tests reach, few of them judge.
_ENOUGH = 40.0
# Seconds that a mutant may take beside three times those of its tests; a longer one is an endless loop.
_PATIENCE = 20.0


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--each", type=int, default=60, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other places")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--records", type=Path, required=True, help="keep what is finished here, and do not repeat it")
    parser.add_argument("--again", action="store_true", help="run the survivors again, with the tests of today")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further mutant after that long")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    done = _read(options.records)
    with tempfile.TemporaryDirectory() as text:
        tree = Path(text) / "tree"
        for part in options.parts:
            chosen = _chosen(part, options.each, options.seed)
            left = [one for one in chosen if options.again and not done.get(one[0], {"killed": True})["killed"]]
            left = left or [one for one in chosen if one[0] not in done]
            if not left or time.monotonic() > end:
                continue
            if not tree.exists():
                warm()
                _copy(tree)
            tests = _baseline(part, tree, options.records.with_suffix(".tests.json"))
            for number, (key, path, place) in enumerate(left):
                if time.monotonic() > end:
                    break
                found = {"key": key, "part": part, **_judged(tree, path, place, tests, number)}
                done[key] = found | {"first": done.get(key, {"first": found["killed"]})["first"]}
                with options.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
    current = {key for part in PARTS for key, _, _ in _chosen(part, options.each, options.seed)}
    same = json.loads(SAME.read_text(encoding="utf-8"))
    found = [one for key, one in done.items() if key in current]
    text = page(found, PARTS, same, each=options.each, seed=options.seed)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


def _read(records: Path) -> dict[str, dict[str, Any]]:
    """Return what is finished; a later line about a place stands for an earlier one, which said what came first."""
    done: dict[str, dict[str, Any]] = {}
    for line in records.read_text(encoding="utf-8").splitlines() if records.exists() else ():
        one = json.loads(line)
        done[one["key"]] = one | {"first": done.get(one["key"], {"first": one["killed"]})["first"]}
    return done


def _chosen(part: str, each: int, seed: int) -> list[tuple[str, Path, Place]]:
    """Return some places of a part, chosen by their text: another place more or less does not change the others."""
    every, seen = [], Counter[str]()
    for path in PARTS[part][0]:
        source = (PROJECT / path).read_text(encoding="utf-8")
        lines = source.splitlines()
        for place in places(source):
            text = f"{lines[place.line - 1].strip()}: {place.change}"
            seen[text] += 1
            every.append((f"{text} ({seen[text]})", path, place))
    return sorted(every, key=lambda one: hashlib.sha256(f"{seed} {one[0]}".encode()).digest())[:each]


def _copy(tree: Path) -> None:
    ignored = shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__", "*.npz", "records.jsonl*")
    shutil.copytree(PROJECT, tree, ignore=ignored)


def _baseline(part: str, tree: Path, kept: Path) -> dict[str, dict[str, Any]]:
    """Return the tests of a part: their seconds, whether they pass, and the statements that they reach."""
    modules, topics = PARTS[part]
    sources = {path: (PROJECT / path).read_text(encoding="utf-8") for path in modules}
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    tests = {}
    for path, source in sources.items():
        _write(tree / path, instrumented(source, path.name), 0)
    for topic in topics:
        file = f"tests/test_{topic}.py"
        content = "".join([*sources.values(), (PROJECT / file).read_text(encoding="utf-8")])
        key = hashlib.sha256(content.encode()).hexdigest()
        if key not in known:
            known[key] = run_tests(tree, [file], None, 600.0)[1]["tests"]
            kept.write_text(json.dumps(known), encoding="utf-8")
        tests |= known[key]
    for path, source in sources.items():
        _write(tree / path, source, 1)
    return {name: one for name, one in tests.items() if one["passed"]}


def _judged(tree: Path, path: Path, place: Place, tests: dict[str, dict[str, Any]], number: int) -> dict[str, Any]:
    """Return whether the tests notice a change, and which of them does first."""
    source = (PROJECT / path).read_text(encoding="utf-8")
    reached = [path.name, place.statement]
    order = [name for name, one in tests.items() if place.statement == 0 or reached in one["reached"]]
    order.sort(key=lambda name: tests[name]["seconds"])
    enough = np.cumsum([tests[name]["seconds"] for name in order]) <= _ENOUGH
    order = [name for name, quick in zip(order, enough, strict=True) if quick] or order[:1]
    start, code, said = time.monotonic(), 0, {"failed": ""}
    if order:
        _write(tree / path, mutant(source, place.number), number + 2)
        limit = _PATIENCE + 3.0 * sum(tests[name]["seconds"] for name in order)
        code, said = run_tests(tree, sorted({name.partition("::")[0] for name in order}), order, limit)
        _write(tree / path, source, number + 3)
    by = "endless" if code == -1 else said["failed"] or ("" if code == 0 else f"exit code {code}")
    return {
        "path": str(path), "line": place.line, "change": place.change, "killed": code != 0, "by": by,
        "tests": len(order), "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def _write(path: Path, source: str, number: int) -> None:
    """Write a module; its time says to Python that what it has compiled before is something else."""
    path.write_text(source, encoding="utf-8")
    stamp = 10**9 + 10 * number + int(time.time()) % 10**8
    os.utime(path, (stamp, stamp))


if __name__ == "__main__":
    sys.exit(main())
