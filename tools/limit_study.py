"""Check the achievable frontier where the truth is known: six populations with closed-form posteriors.

    python tools/limit_study.py run --draws 20 --minutes 3 --out results/limit.jsonl     (again: goes on)
    python tools/limit_study.py table --out results/limit.jsonl
    python tools/limit_study.py benchmark --tasks compas-race     (against results/records.jsonl.gz)

Each draw takes 10,000 rows from a population, estimates its achievable frontier, and compares it with the truth: the
best rule for the true posteriors of 300,000 other rows.
"""

import argparse
import gzip
import json
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fairfrontier as ff

ROWS, TRUTH_ROWS = 10_000, 300_000
LEVELS = np.linspace(0.0, 1.0, 41)
SHOWN = (0.0, 0.8, 0.9, 0.95, 1.0)


def logistic(t):
    return 1.0 / (1.0 + np.exp(-t))


@dataclass(frozen=True)
class Population:
    """Features, and for each row P(group) (n, 2) and P(y = 1) in each group (n, 2)."""

    x: np.ndarray
    group: np.ndarray
    label: np.ndarray

    def posteriors(self, track, fairness, a):
        """Return P(y = 1) and P(row set) for what the rule may look at."""
        rows = np.arange(len(self.x))
        known = np.eye(2)[a] if track == "aware" else self.group
        label = self.label[rows, a] if track == "aware" else (self.group * self.label).sum(axis=1)
        return label, known if fairness == "demographic_parity" else known * self.label


def _two(p):
    return np.column_stack([1.0 - p, p])


def smooth(rng, n):
    x = rng.normal(size=(n, 3))
    label = logistic(1.5 * x[:, 0] + np.sin(2 * x[:, 1]) + 0.5 * x[:, 0] * x[:, 2])
    return Population(x, _two(logistic(x[:, 0] + 0.5 * x[:, 1] ** 2 - 0.5)), np.column_stack([label, label]))


def discrete(rng, n):
    table = np.random.default_rng(5).uniform(-2.0, 2.0, size=(3, 27))
    x = rng.integers(0, 3, size=(n, 3))
    cell = x @ [9, 3, 1]
    return Population(x, _two(logistic(table[0, cell])), logistic(table[1:, cell]).T)


def many_features(rng, n):
    x = rng.normal(size=(n, 20))
    label = logistic(x[:, :8].sum(axis=1) / 2 + 0.3 * x[:, 0] * x[:, 1])
    return Population(x, _two(logistic(x[:, 0] + 0.5 * x[:, 8])), np.column_stack([label, label]))


def rare_group(rng, n):
    x = rng.normal(size=(n, 4))
    label = logistic(np.column_stack([1.2 * x[:, 0] + x[:, 1], 1.2 * x[:, 0] + x[:, 1] - 1.0]))
    return Population(x, _two(logistic(-3.4 - x[:, 0] + 0.5 * x[:, 2])), label)


def label_noise(rng, n):
    x = rng.normal(size=(n, 5))
    label = 0.2 + 0.6 * logistic(2 * x[:, 0] + x[:, 1])
    return Population(x, _two(logistic(x[:, 0] - x[:, 2])), np.column_stack([label, label]))


def blind_is_harder(rng, n):
    x = rng.normal(size=(n, 4))
    signal = 1.5 * x[:, 0] + x[:, 1]
    return Population(x, _two(logistic(1.5 * x[:, 2])), logistic(np.column_stack([signal - 1.0, signal + 1.0])))


POPULATIONS = (smooth, discrete, many_features, rare_group, label_noise, blind_is_harder)
CASES = [(p.__name__, track, "demographic_parity") for p in POPULATIONS for track in ("blind", "aware")] + [
    (p, "blind", "equal_opportunity") for p in ("smooth", "blind_is_harder")
]


def draw(name, seed, n):
    """Return a population's rows with their groups and labels."""
    rng = np.random.default_rng(seed)
    rows = next(p for p in POPULATIONS if p.__name__ == name)(rng, n)
    a = (rng.random(n) < rows.group[:, 1]).astype(int)
    return rows, a, (rng.random(n) < rows.label[np.arange(n), a]).astype(int)


def truth(name, track, fairness):
    """Return the best accuracy at each level from the true posteriors of many rows."""
    rows, a, y = draw(name, 10**6, TRUTH_ROWS)
    posteriors = rows.posteriors(track, fairness, a)
    known = ff.achievable_frontier(
        None, y, sensitive_features=a, fairness=fairness, track=track, grid=LEVELS, probabilities=posteriors
    )
    return known.plugin


def run(out, draws, minutes):
    """Add draws to the records until the time is over."""
    stop = time.monotonic() + 60 * minutes
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(r["case"], r["seed"]) for r in records}
    truths = {r["case"]: r["truth"] for r in records}
    with out.open("a") as file:
        for seed in range(draws):
            for case in CASES:
                key = " ".join(case)
                if (key, seed) in done:
                    continue
                if time.monotonic() > stop:
                    return
                name, track, fairness = case
                if key not in truths:
                    truths[key] = truth(name, track, fairness).tolist()
                rows, a, y = draw(name, seed, ROWS)
                start = time.perf_counter()
                found = ff.achievable_frontier(
                    rows.x, y, sensitive_features=a, fairness=fairness, track=track, grid=LEVELS, random_state=seed
                )
                oracle = ff.achievable_frontier(
                    None, y, sensitive_features=a, fairness=fairness, track=track, grid=LEVELS,
                    probabilities=rows.posteriors(track, fairness, a),
                )  # fmt: skip
                record = {
                    "oracle": oracle.accuracy.round(6).tolist(),
                    "case": key,
                    "seed": seed,
                    "seconds": round(time.perf_counter() - start, 2),
                    "truth": truths[key],
                    **{
                        part: getattr(found, part).round(6).tolist()
                        for part in ("accuracy", "attained", "low", "high", "unlearned")
                    },
                }
                file.write(json.dumps(record) + "\n")
                file.flush()


def table(out):
    """Print bias and coverage of each case."""
    records = [json.loads(line) for line in out.read_text().splitlines()]
    print("| population | track | measure | draws | bias at fairness " + ", ".join(f"{f:g}" for f in SHOWN), end="")
    print(" | largest bias | band holds the curve | lower end below | mean width |")
    print("|---" * 9 + "|")
    shown = np.searchsorted(LEVELS, np.array(SHOWN) - 1e-9)
    for case in dict.fromkeys(r["case"] for r in records):
        of_case = [r for r in records if r["case"] == case]
        true = np.array(of_case[0]["truth"])
        accuracy, low, high = (np.array([r[part] for r in of_case]) for part in ("accuracy", "low", "high"))
        bias = (accuracy - true).mean(axis=0)
        below, above = (low <= true + 1e-6).all(axis=1), (high >= true - 1e-6).all(axis=1)
        print(
            "| " + " | ".join(case.split()), len(of_case), " ".join(f"{b:+.4f}" for b in bias[shown]),
            f"{bias[np.abs(bias).argmax()]:+.4f}", f"{np.mean(below & above):.0%}", f"{below.mean():.0%}",
            f"{(high - low).mean():.4f} |", sep=" | ",
        )  # fmt: skip


def benchmark(tasks, jobs):
    """Compare the achievable frontier, the attribute known, with the mean test points of every benchmarked method."""
    print("| task | rows | seconds | points | above the curve | above the band | largest excess | at .9, .95, 1 |")
    print("|---" * 8 + "|")
    for task in tasks:
        name, attribute = task.split("-")
        data = getattr(ff.datasets, f"load_{name}")()
        X = ff.datasets.design_matrix(data, drop_sensitive=attribute).values
        start = time.perf_counter()
        found = ff.achievable_frontier(
            X, data.target, sensitive_features=data.sensitive_features[attribute], track="aware", n_jobs=jobs
        )
        seconds = time.perf_counter() - start
        points = mean_points(task)
        excess = points[:, 1] - found(points[:, 0])
        outside = points[:, 1] > np.interp(points[:, 0], found.grid, found.high)
        print(
            f"| {task} | {len(X)} | {seconds:.0f} | {len(points)} | {np.sum(excess > 0)} | {outside.sum()} | "
            f"{excess.max():+.4f} | " + ", ".join(f"{found(f):.4f}" for f in (0.9, 0.95, 1.0)) + " |"
        )


def mean_points(task):
    """Return fairness and accuracy of each candidate of each method, averaged over splits, shape (k, 2)."""
    by_method = defaultdict(list)
    with gzip.open(Path(__file__).parents[1] / "results" / "records.jsonl.gz", "rt") as file:
        for record in map(json.loads, file):
            if (record["table"], record["task"], record["status"]) == ("dp", task, "done"):
                by_method[record["method"]].append([record["points"]["fairness"], record["points"]["accuracy"]])
    means = []
    for of_method in by_method.values():
        fewest = min(len(points[0]) for points in of_method)
        means.append(np.mean([[part[:fewest] for part in points] for points in of_method], axis=0).T)
    return np.concatenate(means)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table", "benchmark"))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--out", type=Path, default=Path("results/limit.jsonl"))
    parser.add_argument("--tasks", nargs="+", default=["compas-race"], help="such as adult-gender")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "benchmark":
        benchmark(options.tasks, options.jobs)
        return
    if options.what == "run":
        run(options.out, options.draws, options.minutes)
    table(options.out)


if __name__ == "__main__":
    main()
