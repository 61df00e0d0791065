"""Jobs that are measured in a process of their own: ``python -m benchmarks._scale_jobs JOB FILE …`` prints JSON."""

import contextlib
import io
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LABEL, GROUP, RACE = "y", "sex", "race"
BLOCK = 100_000
ALPHA = 100.0


def write(path: str, n_rows: str, n_models: str, n_races: str = "0") -> dict[str, Any]:
    """Write labels, groups and scores in single precision, never more than a block in memory.

    With `n_races` there is a second attribute of so many groups.
    """
    rng = np.random.default_rng(0)
    k = int(n_models)
    skill, bias = rng.uniform(0.1, 0.4, k).astype(np.float32), rng.uniform(-0.1, 0.2, k).astype(np.float32)
    writer = None
    for start in range(0, int(n_rows), BLOCK):
        n = min(BLOCK, int(n_rows) - start)
        group = rng.integers(0, 2, n)
        y = (rng.random(n) < 0.3 + 0.2 * group).astype(np.int8)
        noise = rng.random((k, n), dtype=np.float32)
        scores = np.clip(0.2 + skill[:, None] * y + bias[:, None] * group + 0.4 * noise, 0.0, 1.0).astype(np.float32)
        columns = {LABEL: y, GROUP: np.where(group == 1, "m", "f")}
        if int(n_races):
            columns[RACE] = np.array([f"race {i}" for i in range(int(n_races))])[rng.integers(0, int(n_races), n)]
        table = pa.table(columns | {f"m_{j}": scores[j] for j in range(k)})
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=[GROUP])
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return {"bytes": Path(path).stat().st_size}


def as_csv(path: str, target: str) -> dict[str, Any]:
    """Write a Parquet file as CSV."""
    import pyarrow.csv

    with pq.ParquetFile(path) as source:
        pyarrow.csv.write_csv(source.read(), target)
    return {"bytes": Path(target).stat().st_size}


def read_and_gram(path: str) -> dict[str, Any]:
    """Read the file in batches and form HᵀH: what any stack has to do, and nothing else."""
    gram: Any = 0.0
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as source:
        names = [name for name in source.schema_arrow.names if name not in (LABEL, GROUP)]
        for batch in source.iter_batches(batch_size=2**22 // len(names), columns=[LABEL, GROUP, *names]):
            matrix = np.empty((len(names), batch.num_rows))
            for row, name in zip(matrix, names, strict=True):
                row[:] = batch.column(name).to_numpy(zero_copy_only=False)
            gram = gram + matrix @ matrix.T
    return {"trace": float(np.trace(gram))}


def read(path: str) -> dict[str, Any]:
    """Read the file in batches."""
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as source:
        return {"rows": sum(batch.num_rows for batch in source.iter_batches(batch_size=2**15))}


def stack(path: str) -> dict[str, Any]:
    """Solve the stack without score bias from one pass over the file."""
    from fairfrontier import StackStatistics
    from fairfrontier.chunks import file_chunks
    from fairfrontier.optimize import solve_stack

    statistics = StackStatistics.from_chunks(file_chunks(path, label=LABEL, sensitive=GROUP))
    solved = solve_stack(statistics, alpha=ALPHA, tau=0.0)
    return {"rows": statistics.weight, "score_bias": float(solved.score_bias[0]), "kkt": float(solved.kkt[0])}


def points(path: str) -> dict[str, Any]:
    """Value all models of the file."""
    from fairfrontier import points_from_chunks
    from fairfrontier.chunks import file_chunks

    found = points_from_chunks(file_chunks(path, label=LABEL, sensitive=GROUP))
    return {"fairness": found.fairness.tolist(), "accuracy": found.accuracy.tolist()}


def audit(path: str, chunk_rows: str = "") -> dict[str, Any]:
    """Run the command `audit` with two attributes, in chunks if they are asked for."""
    from fairfrontier.cli import main as command

    chunked = ["--chunk-rows", chunk_rows] if chunk_rows else []
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        columns = ["--label", LABEL, "--sensitive", GROUP, "--sensitive", RACE]
        status = command(["audit", path, *columns, *chunked, "--out", str(Path(folder, "out"))])
        summary = json.loads(Path(folder, "out", "summary.json").read_text(encoding="utf-8"))
    return {"status": status, "fauc": summary["fauc"]}


def tuned(path: str) -> dict[str, Any]:
    """Fit the tuned path of 20 stacks from the file."""
    from fairfrontier import FairStacksClassifier
    from fairfrontier.chunks import file_chunks

    model = FairStacksClassifier("precomputed", random_state=0)
    model.fit_chunks(file_chunks(path, label=LABEL, sensitive=GROUP))
    return {"alpha": model.alpha_, "weights": model.path_.weights.tolist(), "accuracy": model.points_.accuracy.tolist()}


def tuned_in_memory(path: str) -> dict[str, Any]:
    """Fit the same path with all rows in memory and the same folds."""
    from sklearn.model_selection import PredefinedSplit

    from fairfrontier import FairStacksClassifier
    from fairfrontier.optimize._cross_validation import hashed_folds

    table = pq.read_table(path)
    scores = np.column_stack([table[name].to_numpy() for name in table.column_names if name not in (LABEL, GROUP)])
    seed = int(np.random.RandomState(0).randint(2**31))
    model = FairStacksClassifier("precomputed", cv=PredefinedSplit(hashed_folds(np.arange(len(scores)), 5, seed)))
    model.fit(scores, table[LABEL].to_numpy(), sensitive_features={GROUP: table[GROUP].to_numpy()})
    return {"alpha": model.alpha_, "weights": model.path_.weights.tolist(), "accuracy": model.points_.accuracy.tolist()}


def cluster(path: str) -> dict[str, Any]:
    """Solve the stack on two worker processes; only the statistics come back."""
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    from fairfrontier import StackStatistics
    from fairfrontier.chunks import dask_chunks
    from fairfrontier.optimize import solve_stack

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0") as workers,
        Client(workers),
    ):
        frame = dd.read_parquet(path, split_row_groups=1)
        names = [name for name in frame.columns if name not in (LABEL, GROUP)]
        chunks = dask_chunks(frame[LABEL], frame[names], sensitive_features=frame[GROUP])
        start = time.perf_counter()
        solved = solve_stack(StackStatistics.from_chunks(chunks), alpha=ALPHA, tau=0.0)
        seconds = time.perf_counter() - start
    return {"weights": solved.weights[0].tolist(), "pass_seconds": seconds}


def solve(path: str) -> dict[str, Any]:
    """Solve the same stack in this process."""
    from fairfrontier import StackStatistics
    from fairfrontier.chunks import file_chunks
    from fairfrontier.optimize import solve_stack

    solved = solve_stack(
        StackStatistics.from_chunks(file_chunks(path, label=LABEL, sensitive=GROUP)), alpha=ALPHA, tau=0.0
    )
    return {"weights": solved.weights[0].tolist()}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    job.__name__: job
    for job in (write, as_csv, read, read_and_gram, stack, points, audit, tuned, tuned_in_memory, cluster, solve)
}


def main(name: str, *arguments: str) -> None:
    """Run a job and print what it found, its wall and processor seconds and its peak memory."""
    start, processor = time.perf_counter(), time.process_time()
    found = JOBS[name](*arguments)
    used = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "peak_bytes": _peak_bytes(),
    }
    print(json.dumps(found | used))


def _peak_bytes() -> int:
    """Return the largest resident memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage says of a child begins with what its parent had when it started it.
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
