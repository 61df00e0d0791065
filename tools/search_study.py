"""How often does a search certify what is no alternative, and how often does it find one that is?

Candidates are simulated by their decisions: in cells of label and group the baseline decides with given rates, and each
candidate changes some of its decisions, so that its true accuracy and disparity are where they are wanted: on the
boundary of being an alternative, or beyond it. The procedure is the real one (`fairfrontier.search._verdict.examine`).

    python tools/search_study.py [--searches 500]
"""

import argparse

import numpy as np

from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.search._counts import Counts
from fairfrontier.search._plan import PARTS, SHARES
from fairfrontier.search._verdict import ALTERNATIVE, examine

MARGIN, CONFIDENCE = 0.005, 0.95
# Cells (y, group): share of the rows, and how often the baseline decides positively; much as Adult.
SHARE = np.array([0.295, 0.465, 0.035, 0.205])
BASE_RATE = np.array([0.03, 0.12, 0.45, 0.62])
LABEL = np.array([False, False, True, True])
MEMBERSHIP = np.array([[True, False, True, False], [False, True, False, True]])
SETS = RowSets(("sex=f", "sex=m"), ((0, 1),), ("sex",))
# Share of a cell's decisions that a candidate changes in each direction without any effect on the rates.
CHURN = 0.01
# Accuracy minus the baseline's, and the gain in parity, of each kind of candidate.
WORLDS = {
    "accuracy": (-MARGIN, 0.05),
    "fairness": (0.01, 0.0),
    "both": (-MARGIN, 0.0),
    "alternative": (0.0, 0.03),
    "better": (0.01, 0.03),
}


def _changes(world: str) -> np.ndarray:
    """Return the change of the rate of positive decisions in each cell: the smallest with the wanted effects."""
    size = MEMBERSHIP @ SHARE
    of_gap = np.where(MEMBERSHIP[1], SHARE / size[1], -SHARE / size[0])
    of_accuracy = np.where(LABEL, SHARE, -SHARE)
    accuracy, gain = WORLDS[world]
    return np.linalg.lstsq(np.stack([of_accuracy, of_gap]), np.array([accuracy, -gain]), rcond=None)[0]


def truth(world: str) -> tuple[float, float]:
    """Return the true difference of accuracy and the true gain in parity."""
    after, size = BASE_RATE + _changes(world), MEMBERSHIP @ SHARE
    gap = [abs(float(np.subtract(*(MEMBERSHIP @ (SHARE * rate) / size)))) for rate in (BASE_RATE, after)]
    return float(np.where(LABEL, SHARE, -SHARE) @ (after - BASE_RATE)), gap[0] - gap[1]


def draw(world: str, n_rows: int, n_candidates: int, rng: np.random.Generator) -> Counts:
    """Return the counts of independent rows."""
    change = _changes(world)
    up = (np.maximum(change, 0.0) + CHURN * BASE_RATE) / (1.0 - BASE_RATE)
    down = (np.maximum(-change, 0.0) + CHURN * BASE_RATE) / BASE_RATE
    rows = rng.multinomial(n_rows, SHARE)
    base = rng.binomial(rows, BASE_RATE)
    shape = (len(rows), n_candidates)
    both = rng.binomial(np.broadcast_to(base[:, None], shape), 1.0 - down[:, None])
    only = rng.binomial(np.broadcast_to((rows - base)[:, None], shape), up[:, None])
    numbers = [one.astype(np.float64) for one in (rows, base, both + only, both)]
    return Counts(SETS, MEMBERSHIP, LABEL, *numbers)


def certified(world: str, *, n_candidates: int, n_searches: int, n_rows: int, seed: int = 0) -> float:
    """Return the share of searches with `n_rows` rows in all in which any candidate is certified."""
    rng, found = np.random.default_rng(seed), 0
    sizes = {part: int(n_rows * share) for part, share in zip(PARTS, SHARES, strict=True)}
    for _ in range(n_searches):
        calibrate = draw(world, sizes["calibrate"], n_candidates, rng)
        report = draw(world, sizes["report"], n_candidates, rng)
        found += ALTERNATIVE in examine(calibrate, report, margin=MARGIN, confidence=CONFIDENCE).verdicts
    return found / n_searches


def main() -> None:
    """Print the table of results/search.md."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", type=int, default=500)
    searches = parser.parse_args().searches
    print("| candidates | rows | world | accuracy − baseline | gain in parity | certified |")
    print("|---:|---:|---|---:|---:|---:|")
    for world in WORLDS:
        accuracy, gain = truth(world)
        for n_rows in (10_000, 40_000):
            for n_candidates in (1, 10, 100, 1000):
                share = certified(world, n_candidates=n_candidates, n_searches=searches, n_rows=n_rows)
                print(
                    f"| {n_candidates} | {n_rows:,} | {world} | {accuracy:+.3f} | {gain:+.3f} | {100 * share:.1f} % |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
