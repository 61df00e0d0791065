"""Run random problems and write what came of them."""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tools.random_problems.report import page
from tools.random_problems.runner import run
from tools.random_problems.tally import Tally

_CHUNK = 250


def main() -> int:
    """Run as the command line says; return 1 if anything crashed or did not match."""
    parser = argparse.ArgumentParser(prog="python -m tools.random_problems", description=__doc__)
    parser.add_argument("--problems", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other problems")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, help="run the problem with this number alone, and let a crash through")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    if options.only is not None:
        total = run(range(options.only, options.only + 1), options.seed, raises=True)
    else:
        total = Tally()
        chunks = [range(first, min(first + _CHUNK, options.problems)) for first in range(0, options.problems, _CHUNK)]
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            for part in pool.map(partial(run, seed=options.seed), chunks):
                total.add(part)
    text = page(total, seed=options.seed, jobs=options.jobs)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return int(bool(total.crashes or total.mismatches))


if __name__ == "__main__":
    # Problems this small gain nothing from threads; processes of one thread each do not wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
