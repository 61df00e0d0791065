"""Measure how the cost of a stack grows with rows and models, fit a·n·k + b·n·k², and draw it.

Run ``python examples/scaling_plot.py results/scaling.png``; it takes a minute or two and writes the figures next to
the picture as JSON. Processor time is measured, with one thread, so that other work on the machine does not count.
"""

import itertools
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib.pyplot as plt
import numpy as np

from fairfrontier import StackStatistics
from fairfrontier.chunks import iterable_chunks

ROWS = (10**4, 10**5, 10**6, 10**7)
MODELS = (4, 12, 40, 120, 400, 1200, 4000)
FEW_MODELS, FEW_ROWS = 20, 16_000


def seconds(n_rows: int, n_models: int) -> float:
    """Return the processor seconds of one pass; the same chunk comes again and again, so that nothing is generated."""
    rng = np.random.default_rng(0)
    chunk_rows = min(n_rows, max(2**22 // n_models, 4000))
    scores = rng.random((n_models, chunk_rows), dtype=np.float32).T
    part = (rng.integers(0, 2, chunk_rows), scores, rng.integers(0, 2, chunk_rows))
    whole, rest = divmod(n_rows, chunk_rows)
    cut = [tuple(values[:rest] for values in part)] if rest else []
    chunks = iterable_chunks(lambda: itertools.chain(itertools.repeat(part, whole), cut))
    best = np.inf
    until = time.process_time() + 2.0
    while True:
        start = time.process_time()
        StackStatistics.from_chunks(chunks)
        best = min(best, time.process_time() - start)
        if time.process_time() > until:
            return best


def main(picture: Path) -> None:
    """Measure, fit, print, draw."""
    measured = [(n, FEW_MODELS, seconds(n, FEW_MODELS)) for n in ROWS]
    measured += [(FEW_ROWS, k, seconds(FEW_ROWS, k)) for k in MODELS]
    n, k, cost = np.array(measured).T
    # Relative errors count alike over all decades.
    design = np.stack([np.full_like(n, 1.0), n * k, n * k**2], axis=1) / cost[:, None]
    start, linear, quadratic = np.linalg.lstsq(design, np.ones_like(cost), rcond=None)[0]
    fitted = start + linear * n * k + quadratic * n * k**2
    for row in zip(n, k, cost, fitted, strict=True):
        print("{:>10,.0f} rows × {:>5,.0f} models: {:8.4f} s, fitted {:8.4f} s".format(*row))
    print(f"{start * 1e3:.2f} ms + {linear * 1e9:.2f} ns · n·k + {quadratic * 1e9:.4f} ns · n·k²")
    slopes = {
        "rows, 10⁵ to 10⁷": np.log10(cost[3] / cost[1]) / 2,
        "models, 400 to 4,000": np.log10(cost[-1] / cost[-3]),
    }
    print(", ".join(f"slope in {name}: {slope:.2f}" for name, slope in slopes.items()))
    picture.with_suffix(".json").write_text(
        json.dumps(
            {
                "rows": n.tolist(),
                "models": k.tolist(),
                "seconds": cost.tolist(),
                "fit": {"constant": start, "per_row_and_model": linear, "per_row_and_squared_model": quadratic},
                "slopes": slopes,
            },
            indent=2,
            ensure_ascii=False,
        )
        + "\n",
        encoding="utf-8",
    )
    draw(picture, measured, (start, linear, quadratic))


def draw(picture: Path, measured: list[tuple[float, float, float]], fit: tuple[float, float, float]) -> None:
    """Draw cost against rows and against models, with the fitted law."""
    by_rows, by_models = np.array(measured[: len(ROWS)]), np.array(measured[len(ROWS) :])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for ax, points, column, title in (
        (left, by_rows, 0, f"rows, at {FEW_MODELS} models"),
        (right, by_models, 1, f"models, at {FEW_ROWS:,} rows"),
    ):
        along = np.geomspace(points[:, column].min(), points[:, column].max(), 100)
        n, k = (along, FEW_MODELS) if column == 0 else (FEW_ROWS, along)
        ax.loglog(along, fit[0] + fit[1] * n * k + fit[2] * n * k**2, color="0.6", label="c + a·n·k + b·n·k²")
        ax.loglog(points[:, column], points[:, 2], "o", color="tab:blue", label="measured")
        ax.set(xlabel=title, ylabel="processor seconds of one pass")
        ax.grid(alpha=0.3, which="major")
        ax.legend(frameon=False)
    figure.savefig(picture, dpi=160)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "scaling.png"))
