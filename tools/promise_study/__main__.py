"""Run the study, or write its page."""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tools.promise_study.cells import SIZES, cells, run
from tools.promise_study.level import SETTINGS as SETTINGS_OF_LEVEL
from tools.promise_study.level import simulate
from tools.promise_study.page import page
from tools.promise_study.populations import NAMES
from tools.promise_study.stacks import SETTINGS as SETTINGS_OF_STACKS


def main() -> int:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tools.promise_study", description=__doc__)
    parser.add_argument(
        "what", choices=("run", "level", "page"), help="level: simulate a promise without rows of its own"
    )
    parser.add_argument("--records", type=Path, default=Path("results/promise.jsonl"), help="one line per cell")
    parser.add_argument("--draws", type=int, default=100, help="draws of each setting")
    parser.add_argument("--data", nargs="+", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="rows of a draw")
    parser.add_argument("--piece", default="1/1", help="such as 2/4: the second of four parts, for several processes")
    parser.add_argument("--cache", type=Path, default=Path(".promise_study"), help="keeps the base models' scores")
    parser.add_argument("--error-parity", metavar="PYTHON", help="an interpreter that has error-parity")
    parser.add_argument("--without-rivals", action="store_true", help="ask FairStacks alone")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    level = options.records.with_name("promise_level.json")
    if options.what == "run":
        _run(options)
        return 0
    if options.what == "level":
        level.write_text(
            json.dumps([simulate(*setting, options.draws) for setting in SETTINGS_OF_LEVEL]), encoding="utf-8"
        )
        return 0
    text = page(_read(options.records), json.loads(level.read_text(encoding="utf-8")) if level.exists() else [])
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


def _run(options: argparse.Namespace) -> None:
    piece, pieces = map(int, options.piece.split("/"))
    wanted = cells(options.draws, tuple(options.data), tuple(options.sizes))[piece - 1 :: pieces]
    known = {record["key"] for record in _read(options.records)}
    with options.records.open("a", encoding="utf-8") as file:
        for cell in wanted:
            if cell.key not in known:
                record = run(cell, options.cache, options.error_parity, with_rivals=not options.without_rivals)
                file.write(json.dumps(record) + "\n")
                file.flush()


def _read(path: Path) -> list[dict]:
    """Return the records of a file, and of its pieces `name-2.jsonl`; a line that was cut off is left out."""
    records = []
    for file in sorted(path.parent.glob(f"{path.stem}*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    for record in records:
        if record["settings"] != SETTINGS_OF_STACKS:
            raise SystemExit(
                f"{path} has records of other settings, {record['settings']}; they are {SETTINGS_OF_STACKS} now: "
                "move the file away, or name another with --records"
            )
    return list({record["key"]: record for record in records}.values())


if __name__ == "__main__":
    sys.exit(main())
