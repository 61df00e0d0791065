"""Run damaged files through `audit` and `load`, and write what came of them."""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.fuzz_files.runner import Reader

# Files that one process reads, and that a record has.
_PART = 100


def main() -> int:
    """Run as the command line says; return 1 if a file broke a rule."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_files", description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other files")
    parser.add_argument("--records", type=Path, help="keep what is finished here, and do not repeat it")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further part after that long")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    kept = options.records.read_text().splitlines() if options.records and options.records.exists() else []
    done = {one["first"]: one for one in map(json.loads, kept) if one["seed"] == options.seed}
    left = [first for first in range(0, options.files, _PART) if first not in done]
    if left:
        _read(left, options, done)
    text = page(list(done.values()), options.seed)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return int(any(part["faults"] for part in done.values()))


def _read(left: list[int], options: argparse.Namespace, done: dict[int, dict[str, Any]]) -> None:
    """Read the parts that no record has, as many as there is time for."""
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as text:
        reader = Reader(Path(text), options.seed)
        for first in left:
            if time.monotonic() > end:
                break
            last = min(first + _PART, options.files)
            done[first] = reader.part(first, last)
            if options.records:
                with options.records.open("a") as file:
                    file.write(json.dumps(done[first]) + "\n")


def page(parts: list[dict[str, Any]], seed: int) -> str:
    """Return the results as Markdown."""
    total = sum((Counter(part["counts"]) for part in parts), Counter[str]())
    faults = [fault for part in parts for fault in part["faults"]]
    n = sum(part["n"] for part in parts)
    lines = [
        "# Damaged files",
        "",
        f"{n:,} damaged files (seed {seed}): bytes flipped, pieces cut out or put in, words replaced, schemas",
        "rewritten, nested or blown up, cells and types of columns exchanged. Tables went through `audit`, in memory",
        "and in chunks, saved models through `load`.",
        f"**{len(faults)} broke a rule**: an answer or one line of error, in 2 s of CPU time and 1 GB of memory.",
        "",
        *(f"- {what}: {count:,}" for what, count in sorted(total.items())),
        f"- slowest: {max((part['slowest'] for part in parts), default=0.0):.2f} s",
        f"- most memory: {max((part['bytes'] for part in parts), default=0) / 2**20:.0f} MB, libraries included",
        *(f"- file {index}: `{what}`" for index, what in faults[:30]),
        "",
        f"    python -m tools.fuzz_files --files {n} --seed {seed}",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
