"""Run the study, or write its page."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tools.promise_study.cells import MEASURES, SIZES, cells, run
from tools.promise_study.constant import problems
from tools.promise_study.level import SETTINGS as SETTINGS_OF_LEVEL
from tools.promise_study.level import simulate
from tools.promise_study.page import page
from tools.promise_study.populations import NAMES
from tools.promise_study.stacks import SETTINGS as SETTINGS_OF_STACKS

# Random problems whose results are one line.
_AT_ONCE = 50


def main() -> int:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tools.promise_study", description=__doc__)
    parser.add_argument(
        "what",
        choices=("run", "level", "constant", "page"),
        help="level: simulate a promise without rows of its own; constant: random problems against the constant model",
    )
    parser.add_argument("--records", type=Path, default=Path("results/promise.jsonl"), help="one line per cell")
    parser.add_argument("--draws", type=int, default=100, help="draws of each setting")
    parser.add_argument("--problems", type=int, default=10_000, help="random problems")
    parser.add_argument("--data", nargs="+", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--measures", nargs="+", default=list(MEASURES), choices=list(MEASURES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="rows of a draw")
    parser.add_argument("--piece", default="1/1", help="such as 2/4: the second of four parts, for several processes")
    parser.add_argument("--cache", type=Path, default=Path(".promise_study"), help="keeps the base models' scores")
    parser.add_argument("--error-parity", metavar="PYTHON", help="an interpreter that has error-parity")
    parser.add_argument("--without-rivals", action="store_true", help="ask FairStacks alone")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    level = options.records.with_name("promise_level.jsonl")
    constant = options.records.with_name("promise_constant.jsonl")
    if options.what == "run":
        _run(options)
        return 0
    if options.what == "level":
        done = len(_lines(level))
        _append(level, (simulate(*setting, options.draws) for setting in SETTINGS_OF_LEVEL[done:]))
        return 0
    if options.what == "constant":
        done = sum(one["problems"] for one in _lines(constant))
        _append(constant, (problems(first, _AT_ONCE) for first in range(done, options.problems, _AT_ONCE)))
        return 0
    ratio = _read(options.records.with_name("promise_ratio.jsonl"))
    text = page(_read(options.records), _lines(level), _lines(constant), ratio)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


def _append(path: Path, results: Iterable[dict]) -> None:
    """Write each result as soon as it is there, so that a stopped run goes on."""
    with path.open("a", encoding="utf-8") as file:
        for result in results:
            file.write(json.dumps(result) + "\n")
            file.flush()


def _lines(path: Path) -> list[dict]:
    """Return the lines of a file; one that was cut off is left out."""
    result = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            result.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return result


def _run(options: argparse.Namespace) -> None:
    piece, pieces = map(int, options.piece.split("/"))
    chosen = (tuple(options.data), tuple(options.sizes), tuple(options.measures))
    wanted = cells(options.draws, *chosen)[piece - 1 :: pieces]
    known = {record["key"] for record in _read(options.records)}
    rest = (cell for cell in wanted if cell.key not in known)
    given = {"error_parity": options.error_parity, "with_rivals": not options.without_rivals}
    _append(options.records, (run(cell, options.cache, **given) for cell in rest))


def _read(path: Path) -> list[dict]:
    """Return the records of a file, and of its pieces `name-2.jsonl`; a line that was cut off is left out."""
    pieces = [path, *sorted(path.parent.glob(f"{path.stem}-[0-9]*.jsonl"))]
    records = [record for file in pieces for record in _lines(file)]
    for record in records:
        if record["settings"] != SETTINGS_OF_STACKS:
            raise SystemExit(
                f"{path} has records of other settings, {record['settings']}; they are {SETTINGS_OF_STACKS} now: "
                "move the file away, or name another with --records"
            )
    return list({record["key"]: record for record in records}.values())


if __name__ == "__main__":
    sys.exit(main())
