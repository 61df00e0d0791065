"""Run random problems and write what came of them."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tools.random_problems.report import page
from tools.random_problems.runner import run
from tools.random_problems.tally import Tally, read_records, write_record


def main() -> int:
    """Run as the command line says; return 1 if anything crashed or did not match."""
    parser = argparse.ArgumentParser(prog="python -m tools.random_problems", description=__doc__)
    parser.add_argument("--problems", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other problems")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, help="run the problem with this number alone, and let a crash through")
    parser.add_argument("--out", type=Path, help="write the page here")
    parser.add_argument(
        "--part", type=int, default=250, help="problems that a process takes at a time, and a record has"
    )
    parser.add_argument("--records", type=Path, help="keep what is finished here, and do not repeat it")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further problems after that long")
    options = parser.parse_args()
    if options.only is not None:
        total = run(range(options.only, options.only + 1), options.seed, raises=True)
    else:
        starts = range(0, options.problems, options.part)
        chunks = [range(first, min(first + options.part, options.problems)) for first in starts]
        total = _run_all(chunks, options)
    text = page(total, seed=options.seed, jobs=options.jobs)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return int(bool(total.crashes or total.mismatches))


def _run_all(chunks: list[range], options: argparse.Namespace) -> Tally:
    """Run the problems that no record has, as many as there is time for, and return all that is finished."""
    total, finished = Tally(), read_records(options.records, options.seed)
    for tally in finished.values():
        total.add(tally)
    left = [chunk for chunk in chunks if chunk.start not in finished]
    end = time.monotonic() + options.seconds
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        while left and time.monotonic() < end:
            some, left = left[: options.jobs], left[options.jobs :]
            for chunk, part in zip(some, pool.map(partial(run, seed=options.seed), some), strict=True):
                total.add(part)
                write_record(options.records, options.seed, chunk.start, part)
    return total


if __name__ == "__main__":
    # Problems this small gain nothing from threads; processes of one thread each do not wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
