"""How often does a search certify what is no alternative, and how often does it find one that is?

Candidates are simulated by their decisions: in cells of label and group the baseline decides with given rates, and each
candidate changes some of its decisions, so that its true accuracy and disparity are where they are wanted: on the
boundary of being an alternative, or beyond it. The procedure is the real one (`fairfrontier.search._verdict.examine`).

    python tools/search_study.py level      the test alone, 100,000 draws per line
    python tools/search_study.py searches   500 searches per line, none with an alternative
    python tools/search_study.py power      500 searches per line, with alternatives
    python tools/search_study.py crossfit   learned models that test each other's rows, on the boundary of either claim
"""

import argparse
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.search._plan import PARTS, split_rows
from fairfrontier.search._verdict import ALTERNATIVE, Counts, compare, count, examine

MARGIN, CONFIDENCE = 0.005, 0.95
LABEL = np.array([False, False, True, True])
MEMBERSHIP = np.array([[True, False, True, False], [False, True, False, True]])
SETS = RowSets(("sex=f", "sex=m"), ((0, 1),), ("sex",))


@dataclass(frozen=True)
class Population:
    """Cells (y, group): share of the rows, and how often the baseline decides positively."""

    share: tuple[float, ...]
    rate: tuple[float, ...]


POPULATIONS = {
    "as Adult": Population((0.295, 0.465, 0.035, 0.205), (0.03, 0.12, 0.45, 0.62)),
    "10 % in one group": Population((0.07, 0.63, 0.03, 0.27), (0.1, 0.2, 0.6, 0.7)),
    "even": Population((0.25, 0.25, 0.25, 0.25), (0.3, 0.35, 0.6, 0.7)),
}
# Accuracy minus the baseline's, and the gain in parity, of each kind of candidate.
WORLDS = {
    "accuracy": (-MARGIN, 0.05),
    "fairness": (0.01, 0.0),
    "both": (-MARGIN, 0.0),
    "alternative": (0.0, 0.03),
    "better": (0.01, 0.03),
}
# Calibration and report rows as shares of all rows: with one model, and cross-fitted.
PLANS = {"one model": (0.15, 0.25), "cross-fitted": (0.15, 0.85)}


@dataclass(frozen=True)
class World:
    """Candidates with a true difference of accuracy and gain in parity, which change a share of all decisions."""

    accuracy: float
    gain: float
    population: Population = POPULATIONS["as Adult"]
    changed: float = 0.02

    def moves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how often a candidate changes a decision to yes and to no, in each cell; both have to change some."""
        share, rate = np.array(self.population.share), np.array(self.population.rate)
        size = MEMBERSHIP @ share
        of_gap = np.where(MEMBERSHIP[1], share / size[1], -share / size[0])
        of_accuracy = np.where(LABEL, share, -share)
        wanted = np.linalg.lstsq(np.stack([of_accuracy, of_gap]), np.array([self.accuracy, -self.gain]), rcond=None)[0]
        # What changes to and fro without any effect on the rates, in proportion to the smaller side of a cell.
        room = np.minimum(rate, 1.0 - rate)
        churn = max(self.changed - float(share @ np.abs(wanted)), 0.0) / float(share @ (2.0 * room)) * room
        return (np.maximum(wanted, 0.0) + churn) / (1.0 - rate), (np.maximum(-wanted, 0.0) + churn) / rate

    def truth(self) -> tuple[float, float, float]:
        """Return the true difference of accuracy, the gain in parity, and the share of changed decisions."""
        share, rate = np.array(self.population.share), np.array(self.population.rate)
        up, down = self.moves()
        to_yes, to_no = (1.0 - rate) * up, rate * down
        after, size = rate + to_yes - to_no, MEMBERSHIP @ share
        gap = [abs(float(np.subtract(*(MEMBERSHIP @ (share * one) / size)))) for one in (rate, after)]
        difference = float(np.where(LABEL, share, -share) @ (after - rate))
        return difference, gap[0] - gap[1], float(share @ (to_yes + to_no))

    def draw(self, n_rows: int, n_candidates: int, rng: np.random.Generator) -> Counts:
        """Return the counts of independent rows."""
        up, down = self.moves()
        rows = rng.multinomial(n_rows, self.population.share)
        base = rng.binomial(rows, self.population.rate)
        shape = (len(rows), n_candidates)
        both = rng.binomial(np.broadcast_to(base[:, None], shape), 1.0 - down[:, None])
        only = rng.binomial(np.broadcast_to((rows - base)[:, None], shape), up[:, None])
        numbers = [one.astype(np.float64) for one in (rows, base, both + only, both)]
        return Counts(SETS, MEMBERSHIP, LABEL, *numbers)


def level(world: World, *, n_rows: int, draws: int = 100_000, seed: int = 0) -> float:
    """Return how often the test of one candidate passes, on `n_rows` report rows."""
    rng, at_once = np.random.default_rng(seed), 50
    passed = [
        compare(world.draw(n_rows, at_once, rng), (1, 0)).p_values(MARGIN) <= 1.0 - CONFIDENCE
        for _ in range(draws // at_once)
    ]
    return float(np.mean(passed))


def certified(
    world: World | str,
    *,
    n_candidates: int,
    n_searches: int,
    n_rows: int,
    plan: str = "cross-fitted",
    seed: int = 0,
) -> float:
    """Return the share of searches with `n_rows` rows in all in which any candidate is certified."""
    world = World(*WORLDS[world]) if isinstance(world, str) else world
    rng, found = np.random.default_rng(seed), 0
    sizes = [round(n_rows * share) for share in PLANS[plan]]
    for _ in range(n_searches):
        calibrate, report = (world.draw(size, n_candidates, rng) for size in sizes)
        found += ALTERNATIVE in examine(calibrate, report, margin=MARGIN, confidence=CONFIDENCE).verdicts
    return found / n_searches


def cross_fitted(
    kind: str, *, n_rows: int, n_searches: int, seed: int = 0, records: Path | None = None
) -> tuple[float, float]:
    """Return how often either claim is shown of two learned models that are on its boundary.

    In each search two models are learned from halves of the rows and one of several candidates is chosen; then the
    margin, or the gain, is set to what these very models truly have, so that each test should pass in 5 % of the
    searches. Searches that have a line in the file `records` are not made again.
    """
    lines = records.read_text().splitlines() if records is not None and records.exists() else []
    kept = {(one["kind"], one["rows"], one["seed"], one["search"]): one for one in map(json.loads, lines)}
    passed = np.zeros(2)
    for number in range(n_searches):
        one = kept.get((kind, n_rows, seed, number))
        if one is None:
            accuracy, gain = _boundary_search(kind, n_rows, np.random.default_rng([seed, number]), number)
            one = {"kind": kind, "rows": n_rows, "seed": seed, "search": number, "accuracy": accuracy, "gain": gain}
            if records is not None:
                with records.open("a") as stream:
                    stream.write(json.dumps(one) + "\n")
        passed += [one["accuracy"], one["gain"]]
    return float(passed[0] / n_searches), float(passed[1] / n_searches)


def _boundary_search(kind: str, n_rows: int, rng: np.random.Generator, number: int) -> tuple[bool, bool]:
    """Tell which of the two claims one search shows."""
    x, y, group = _people(n_rows, rng)
    rows, decided, models = [], [], []
    right = np.zeros(6)
    for parts in split_rows(y, _attributes(group), number, cross_fit=True):
        tested, chosen = parts == PARTS.index("report"), parts == PARTS.index("calibrate")
        learned = _learned(kind, x[~tested & ~chosen], y[~tested & ~chosen], number)
        right += [np.mean(model.predict(x[chosen]) == y[chosen]) for model in learned]
        rows.append(np.flatnonzero(tested))
        models.append(learned)
    best = int(np.argmax(right))
    decided = np.concatenate([two[best].predict(x[one]) for one, two in zip(rows, models, strict=True)])
    at = np.concatenate(rows)
    counts = count(y[at], {"sex": group[at]}, _in_use(x[at]), decided[:, None], fairness="demographic_parity")
    found = compare(counts, (1, 0))
    true = [compare(_population_counts(one[best]), (1, 0)) for one in models]
    accuracy = float(np.mean([one.accuracy[0] for one in true]))
    gains = np.mean([one.gains for one in true], axis=0)
    far = np.full_like(gains, 1.0)
    shown = replace(found, gains=far).p_values(-accuracy)[0] <= 1.0 - CONFIDENCE
    shifted = np.where(gains == gains.min(), found.gains - gains, far)
    return bool(shown), bool(replace(found, gains=shifted).p_values(1.0)[0] <= 1.0 - CONFIDENCE)


_SHARE_OF_MEN = 0.6
_SHIFT = 0.5 * np.array([1.0, 0.5, 0.0, 0.0, 0.0, 1.0])


def _people(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    man = rng.random(n) < _SHARE_OF_MEN
    x = rng.normal(size=(n, 6)) + man[:, None] * _SHIFT
    return x, rng.random(n) < _probability(x), np.where(man, "m", "f")


def _probability(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-1.5 * x[:, 0] - x[:, 1] + 0.4 * x[:, 2]))


def _in_use(x: np.ndarray) -> np.ndarray:
    return x[:, 0] + 0.5 * x[:, 1] > 0.3


@lru_cache(maxsize=1)
def _population() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, the probability of each of the four cells, and the decisions in use, of the population.

    Quasi-random points with the probabilities of their labels, in each group the same: drawn labels and groups would
    leave an error that all searches have in common, which at 4,000 rows is an eighth of their own standard error.
    """
    points = ndtri(qmc.Sobol(6, seed=0).random_base2(18))
    x = np.concatenate([points, points + _SHIFT])
    man, p = np.repeat([False, True], len(points)), _probability(x)
    of_group = np.stack([~man * (1.0 - _SHARE_OF_MEN), man * _SHARE_OF_MEN]) / len(points)
    return x, np.concatenate([of_group * (1.0 - p), of_group * p]), _in_use(x)


def _population_counts(model: Any) -> Counts:
    """Return the counts of a model in the population, as of a million rows."""
    x, cells, base = _population()
    decided = model.predict(x)
    shares = [cells.sum(axis=1), cells @ base, (cells @ decided)[:, None], (cells @ (base & decided))[:, None]]
    return Counts(SETS, MEMBERSHIP, LABEL, *(1e6 * one for one in shares))


def _attributes(group: np.ndarray) -> tuple:
    from fairfrontier._validation import attributes

    return attributes({"sex": group}, len(group))


def _learned(kind: str, x: np.ndarray, y: np.ndarray, seed: int) -> list:
    """Return six models: regressions of growing penalty, or trees of growing leaves, which are less stable."""
    if kind == "regressions":
        return [LogisticRegression(C=10.0**-power).fit(x, y) for power in range(6)]
    return [DecisionTreeClassifier(min_samples_leaf=2**i, random_state=seed).fit(x, y) for i in range(1, 7)]


def print_level(_: int) -> None:
    """Print the level of the test alone."""
    print("| population | boundary | decisions changed | rows tested | passes |\n|---|---|---:|---:|---:|")
    worst = 0.0
    for name, population in POPULATIONS.items():
        for boundary in ("accuracy", "fairness"):
            for changed in (0.0, 0.03, 0.1):
                for n_rows in (1000, 2500, 8500):
                    world = World(*WORLDS[boundary], population, changed)
                    share = level(world, n_rows=n_rows)
                    worst = max(worst, share)
                    cells = [name, boundary, f"{100 * world.truth()[2]:.1f} %", f"{n_rows:,}", f"{100 * share:.2f} %"]
                    print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nLargest: {100 * worst:.2f} %")


def print_searches(searches: int) -> None:
    """Print how often a search without any alternative certifies one."""
    print("| plan | rows | candidates | boundary | certified |\n|---|---:|---:|---|---:|")
    found = []
    for plan, n_rows in (("cross-fitted", 2_000), ("cross-fitted", 10_000), ("one model", 40_000)):
        for boundary in ("accuracy", "fairness", "both"):
            for n_candidates in (1, 10, 100, 1000):
                options = {"n_candidates": n_candidates, "n_searches": searches, "n_rows": n_rows, "plan": plan}
                found.append(certified(boundary, **options))
                cells = [plan, f"{n_rows:,}", str(n_candidates), boundary, f"{100 * found[-1]:.1f} %"]
                print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nMean {100 * np.mean(found):.2f} %, largest {100 * max(found):.1f} %")


def print_power(searches: int) -> None:
    """Print how often alternatives are found with 10,000 rows in all."""
    print("| accuracy − baseline | gain | decisions changed | one model | cross-fitted |\n|---:|---:|---:|---:|---:|")
    for accuracy in (0.0, 0.005, 0.01):
        for changed in (0.02, 0.03, 0.04, 0.06, 0.1):
            world = World(accuracy, 0.03, changed=changed)
            shares = [
                certified(world, n_candidates=10, n_searches=searches, n_rows=10_000, plan=plan)
                for plan in ("one model", "cross-fitted")
            ]
            cells = [f"{accuracy:+.3f}", "0.03", f"{100 * world.truth()[2]:.0f} %"]
            print(f"| {' | '.join([*cells, *(f'{100 * share:.0f} %' for share in shares)])} |", flush=True)


def print_crossfit(searches: int, records: Path | None = None) -> None:
    """Print how often claims about learned models on the boundary are shown."""
    print("| learners | rows | searches | accuracy | gain |\n|---|---:|---:|---:|---:|")
    for kind in ("regressions", "trees"):
        for n_rows in (1000, 4000):
            accuracy, gain = cross_fitted(kind, n_rows=n_rows, n_searches=searches, records=records)
            print(f"| {kind} | {n_rows:,} | {searches} | {100 * accuracy:.1f} % | {100 * gain:.1f} % |", flush=True)


_TABLES = {"level": print_level, "searches": print_searches, "power": print_power, "crossfit": print_crossfit}


def main() -> None:
    """Print one of the tables of results/search.md."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", choices=list(_TABLES))
    parser.add_argument("--searches", type=int, default=500)
    parser.add_argument("--records", type=Path, help="of crossfit: a file of searches that are made, to go on with")
    options = parser.parse_args()
    more = {"records": options.records} if options.table == "crossfit" else {}
    _TABLES[options.table](options.searches, **more)


if __name__ == "__main__":
    main()
