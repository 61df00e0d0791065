"""The command `audit`: processor time of many models, and memory of very many rows."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ._common import Row
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
        found, imports = run("audit", path), run("imports")
        seconds, ours = found["processor_seconds"], imports["processor_seconds"]
        work = f"audit of {MANY_MODELS} models × {ITS_ROWS:,} rows × 2 attributes"
        detail = f"{ours:.1f} s of it are imports; by the clock {found['seconds']:.1f} s"
        yield Row(work, "processor time", seconds, f"≤ {MOST_SECONDS:g} s", seconds <= MOST_SECONDS, detail)
        run("write", path, MANY_ROWS, ITS_MODELS, N_RACES)
        found = run("audit", path, CHUNK_ROWS)
        peak = found["peak_bytes"]
        work = f"audit of {ITS_MODELS} models × 10⁷ rows × 2 attributes in chunks of {CHUNK_ROWS:,}"
        detail = f"peak {peak / 1e9:.2f} GB, {found['processor_seconds']:.1f} s of processor time"
        yield Row(work, "memory", peak / 1e9, "< 1 GB resident", peak < MOST_BYTES, detail)
