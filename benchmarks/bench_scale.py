"""A stack of 10⁷ rows × 100 models from a file: memory, time, and the same results as in memory and on a cluster."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ._common import Row

ROOT = Path(__file__).parents[1]
N_ROWS, N_MODELS = 10**7, 100
# The tuned path is held against all rows in memory on a smaller file.
N_TUNED, K_TUNED = 200_000, 40
MOST_BYTES = 2e9


def rows() -> Iterator[Row]:
    """Yield memory, time and agreement."""
    with tempfile.TemporaryDirectory() as folder:
        large, small = str(Path(folder, "large.parquet")), str(Path(folder, "small.parquet"))
        run("write", large, N_ROWS, N_MODELS)
        yield from _from_file(large)
        Path(large).unlink()
        run("write", small, N_TUNED, K_TUNED)
        yield from _agreement(small)


def run(job: str, *arguments: Any) -> dict[str, Any]:
    """Run a job in a process of its own, with one thread for BLAS: what it used is then its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._scale_jobs", job, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _from_file(path: str) -> Iterator[Row]:
    work = f"stacking 10⁷ rows × {N_MODELS} models from a Parquet file"
    plain, ours = run("read_and_gram", path), run("stack", path)
    peak = ours["peak_bytes"]
    yield Row(
        work, "memory", peak / 1e9, "< 2 GB resident", peak < MOST_BYTES, f"peak {peak / 1e9:.2f} GB, file 4.05 GB"
    )
    yield Row.at_most(
        2.0,
        work=f"{work} (processor time)",
        against="reading and one Gram",
        ours=ours["processor_seconds"],
        theirs=plain["processor_seconds"],
        note=f"by the clock {ours['seconds']:.1f} s against {plain['seconds']:.1f} s",
    )
    points = run("points", path)
    peak = points["peak_bytes"]
    detail = f"peak {peak / 1e9:.2f} GB, {points['processor_seconds']:.1f} s of processor time"
    work = f"points of {N_MODELS} models × 10⁷ rows from the file"
    yield Row(work, "memory", peak / 1e9, "< 2 GB resident", peak < MOST_BYTES, detail)


def _agreement(path: str) -> Iterator[Row]:
    chunked, whole = run("tuned", path), run("tuned_in_memory", path)
    gap = float(np.abs(np.array(chunked["weights"]) - np.array(whole["weights"])).max())
    of_accuracy = float(np.abs(np.array(chunked["accuracy"]) - np.array(whole["accuracy"])).max())
    work = f"tuned path from chunks, {N_TUNED:,} rows × {K_TUNED} models"
    detail = (
        f"largest difference of a weight {gap:.1e}, of an accuracy {of_accuracy:.1e}; "
        f"{chunked['processor_seconds']:.1f} s and "
        f"{chunked['peak_bytes'] / 1e9:.2f} GB against {whole['processor_seconds']:.1f} s and "
        f"{whole['peak_bytes'] / 1e9:.2f} GB"
    )
    yield Row(work, "all rows in memory", max(gap, of_accuracy), "≤ 1e-8 apart", max(gap, of_accuracy) <= 1e-8, detail)
    away, here = run("cluster", path), run("solve", path)
    gap = float(np.abs(np.array(away["weights"]) - np.array(here["weights"])).max())
    detail = f"largest difference of a weight {gap:.1e}; one pass on two worker processes {away['pass_seconds']:.1f} s"
    yield Row("stack on a Dask LocalCluster", "this process", gap, "≤ 1e-8 apart", gap <= 1e-8, detail)
