"""Run recorded cells of the benchmark again, and compare every figure with the committed records.

Run it from the root of the repository::

    python tools/rerun_cells.py --cells 30
    python tools/rerun_cells.py --cells 30 --methods random-forest reductions mp-paper

A cell is one method on one task and one split. The sample is drawn without replacement from the finished cells of the
chosen data sets, methods and split, and is the same for the same seed. Name methods where others have become better
since they were recorded. Base learners are trained again unless ``--cache`` names the folder of an earlier run. Figures
must agree to 1e-9. Records of version 0.1 keep points with six digits, and their
honest FAUC was computed from those: new points are rounded in the same way before they are compared. The exit code is 0
if all cells agree, and 1 if some differ.

The records name the versions of the libraries that made them; under other versions models differ, and so do figures.
A processor with AVX-512 instructions adds in another order, and then a few networks and stacks decide a row or two
otherwise than recorded; with AVX2 most of these are the same::

    ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell python tools/rerun_cells.py
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fairfrontier.benchmark import SETTINGS, TASKS, Record, SplitData, honest_fauc, read_collection, run_cell

RECORDS = Path(__file__).resolve().parents[1] / "results" / "records.jsonl.gz"
TOLERANCE = 1e-9
DIGITS_OF_VERSION_0_1 = 6
FIGURES = (
    "fauc",
    "fauci",
    "fauc_signed",
    "fauc_single",
    "fauc_exp_mse",
    "max_accuracy",
    "accuracy_95",
    "accuracy_99",
    "constant_accuracy",
)
Columns = Mapping[str, Sequence[float]]


def main() -> int:
    """Run the sample and print one line per cell."""
    options = _options()
    finished = [record for record in read_collection(options.records) if record.status == "done"]
    if options.methods is not None:
        finished = [record for record in finished if record.method in options.methods]
    sample = choose(finished, options.cells, tuple(options.datasets), options.split, options.seed)
    if not sample:
        sys.exit("no finished cell of these data sets, methods and this split is in the records")
    splits: dict[str, SplitData] = {}
    n_different, largest = 0, 0.0
    for kept in sample:
        dataset = TASKS[kept.task].dataset
        if dataset not in splits:
            splits[dataset] = SplitData(dataset, kept.split, SETTINGS[kept.settings], options.cache)
        start = time.monotonic()
        again = run_cell(kept.cell, splits[dataset])
        problems = list(differences(kept, again))
        n_different += bool(problems)
        largest = max(largest, deviation(kept, again))
        verdict = "; ".join(problems) or "the same"
        print(f"{kept.table} {kept.task} {kept.method}: {verdict} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{len(sample)} cells run again, {n_different} differ by more than {TOLERANCE:g}")
    print(f"largest deviation of a figure: {largest:.2g}")
    return int(n_different > 0)


def choose(records: Sequence[Record], count: int, datasets: tuple[str, ...], split: int, seed: int) -> list[Record]:
    """Return at most `count` records of the data sets and the split, in the order of the collection."""
    known = [record for record in records if TASKS[record.task].dataset in datasets and record.split == split]
    picked = np.random.default_rng(seed).permutation(len(known))[:count]
    return [known[index] for index in sorted(picked.tolist())]


def differences(kept: Record, again: Record) -> Iterator[str]:
    """Yield a line for each figure of a new record that is not that of the kept one."""
    if again.status != kept.status:
        yield f"status {again.status} ({again.reason}), was {kept.status}"
        return
    for name in FIGURES:
        yield from _difference(name, getattr(kept, name), getattr(again, name))
    points, chosen = _digits_of(kept.points, again.points), _digits_of(kept.chosen, again.chosen)
    honest = honest_fauc(chosen, points) if chosen else None
    yield from _difference("fauc_honest", kept.fauc_honest, honest)
    if again.chosen:
        exact = honest_fauc(again.chosen, again.points)
        yield from _difference("fauc_honest from its own points", exact, again.fauc_honest)
    for part, before, after in (("points", kept.points, points), ("chosen", kept.chosen, chosen)):
        for name in before:
            if len(before[name]) != len(after[name]):
                yield f"{part} has {len(after[name])} candidates, had {len(before[name])}"
                return
            # A number in the middle between two of six digits may be rounded either way.
            step = 10.0**-DIGITS_OF_VERSION_0_1 if _is_rounded(before) else 0.0
            apart = float(np.max(np.abs(np.subtract(after[name], before[name])), initial=0.0))
            if apart > step + TOLERANCE:
                yield f"{name} of {part} differs by {apart:.3g}"


def deviation(kept: Record, again: Record) -> float:
    """Return the largest deviation of a figure that both records have."""
    pairs = [(getattr(kept, name), getattr(again, name)) for name in FIGURES]
    return max((abs(after - before) for before, after in pairs if before is not None and after is not None), default=0)


def _difference(name: str, before: float | None, after: float | None) -> Iterator[str]:
    if (before is None) != (after is None):
        yield f"{name} is {after}, was {before}"
    elif before is not None and after is not None and not abs(after - before) <= TOLERANCE:
        yield f"{name} is {after!r}, was {before!r}"


def _digits_of(before: Columns, after: Columns) -> Columns:
    """Return new columns with as many digits as the kept ones have."""
    if not _is_rounded(before):
        return after
    return {name: np.round(values, DIGITS_OF_VERSION_0_1).tolist() for name, values in after.items()}


def _is_rounded(columns: Columns) -> bool:
    return all(round(value, DIGITS_OF_VERSION_0_1) == value for values in columns.values() for value in values)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run recorded cells of the benchmark again and compare them.")
    parser.add_argument("--cells", type=int, default=30, help="how many cells (default: 30)")
    parser.add_argument(
        "--datasets", nargs="+", default=["compas", "communities"], help="data sets (default: the two quickest)"
    )
    parser.add_argument("--methods", nargs="+", default=None, help="methods (default: all)")
    parser.add_argument("--split", type=int, default=0, help="number of the split (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--records", type=Path, default=RECORDS, help="the collection of records")
    parser.add_argument("--cache", type=Path, default=None, help="folder in which predictions are kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
