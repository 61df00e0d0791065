"""The command `audit`: processor time of many models, and memory of very many rows."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ._common import Row
from ._scale_jobs import GROUP, LABEL, RACE
from .bench_scale import run

MANY_MODELS, ITS_ROWS = 300, 75_000
MANY_ROWS, ITS_MODELS, CHUNK_ROWS = 10**7, 5, 100_000
N_RACES = 5
MOST_SECONDS, MOST_BYTES = 4.0, 1e9


def rows() -> Iterator[Row]:
    """Yield the processor time and the memory, each of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "rows.parquet"))
        run("write", path, ITS_ROWS, MANY_MODELS, N_RACES)
        text = str(Path(folder, "rows.csv"))
        run("as_csv", path, text)
        for kind, file in (("Parquet", path), ("CSV", text)):
            seconds, wall = _seconds(file, str(Path(folder, kind)))
            work = f"audit of {MANY_MODELS} models × {ITS_ROWS:,} rows × 2 attributes, {kind}"
            detail = f"from the start of the process to its end; by the clock {wall:.1f} s"
            yield Row(work, "processor time", seconds, f"≤ {MOST_SECONDS:g} s", seconds <= MOST_SECONDS, detail)
        run("write", path, MANY_ROWS, ITS_MODELS, N_RACES)
        found = run("audit", path, CHUNK_ROWS)
        peak = found["peak_bytes"]
        work = f"audit of {ITS_MODELS} models × 10⁷ rows × 2 attributes in chunks of {CHUNK_ROWS:,}"
        detail = f"peak {peak / 1e9:.2f} GB, {found['processor_seconds']:.1f} s of processor time"
        yield Row(work, "memory", peak / 1e9, "< 1 GB resident", peak < MOST_BYTES, detail)


def _seconds(file: str, out: str) -> tuple[float, float]:
    """Return processor time and time by the clock of the command with its default options, on one thread of BLAS."""
    columns = ["--label", LABEL, "--sensitive", GROUP, "--sensitive", RACE]
    one = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "fairfrontier.cli", "audit", file, *columns, "--out", out]
    subprocess.run(command, check=True, capture_output=True, env=one)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), time.perf_counter() - start
