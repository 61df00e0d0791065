"""Check the achievable frontier where the truth is known: populations with closed-form posteriors.

    python tools/limit_study.py run --minutes 60 --out results/limit.jsonl     (again: goes on)
    python tools/limit_study.py table --out results/limit.jsonl
    python tools/limit_study.py growth --draws 200 --minutes 60 --out results/limit_growth.jsonl    (Adult)
    python tools/limit_study.py benchmark --tasks compas-race --out results/limit_benchmark.jsonl

Each draw takes 10,000 rows from a population, estimates its achievable frontier, and compares it with the truth: the
best rule for the true posteriors of 200,000 other rows. The error that comes from learning the posteriors is measured
more sharply, against the same estimator with the true posteriors of the same rows.
"""

import argparse
import itertools
import json
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import fairfrontier as ff
from fairfrontier.benchmark import METHODS, delivered_frontier, delivery_of, read_collection
from fairfrontier.limit._posteriors import default_ensemble

ROWS, TRUTH_ROWS = 10_000, 200_000
LEVELS = np.linspace(0.0, 1.0, 41)
SHOWN = (0.0, 0.8, 0.9, 0.95, 1.0)
RECORDS = Path(__file__).parents[1] / "results" / "records.jsonl.gz"
# The questions of the benchmark: measure, and whether methods see the attribute.
QUESTIONS = (("dp", "aware"), ("dp", "blind"), ("eo", "aware"))
MEASURES = {"dp": "demographic_parity", "eo": "equal_opportunity"}
METHODS_THAT = {"aware": "see the attribute", "blind": "do not"}
SMALL_TREES = {"max_iter": 40, "max_leaf_nodes": 8}


def logistic(t):
    return 1.0 / (1.0 + np.exp(-t))


@dataclass(frozen=True)
class Population:
    """Features, and for each row P(group) (n, g) and P(y = 1) in each group (n, g)."""

    x: np.ndarray
    group: np.ndarray
    label: np.ndarray

    def posteriors(self, track, fairness, a):
        """Return P(y = 1) and P(row set) for what the rule may look at."""
        rows = np.arange(len(self.x))
        known = np.eye(self.group.shape[1])[a] if track == "aware" else self.group
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


def three_groups(rng, n):
    x = rng.normal(size=(n, 4))
    odds = np.exp(np.column_stack([np.zeros(n), x[:, 0], 0.7 * x[:, 1] - 0.5]))
    signal = 1.2 * x[:, 0] + np.abs(x[:, 1]) - 0.8
    label = logistic(np.column_stack([signal, signal + 0.7, signal - 0.7]))
    return Population(x, odds / odds.sum(axis=1, keepdims=True), label)


POPULATIONS = (smooth, discrete, many_features, rare_group, label_noise, blind_is_harder, three_groups)
# The design: which cases, and how often each is drawn. Seeds begin where no earlier form of the estimate was tried.
FIRST_SEED = 1000
DESIGN = {(p.__name__, "blind", "demographic_parity"): 40 for p in POPULATIONS[:6]} | {
    ("discrete", "blind", "demographic_parity"): 74,
    ("three_groups", "blind", "demographic_parity"): 10,
    ("blind_is_harder", "aware", "demographic_parity"): 10,
    ("rare_group", "aware", "demographic_parity"): 10,
    ("smooth", "blind", "equal_opportunity"): 10,
    ("blind_is_harder", "blind", "equal_opportunity"): 10,
}


def draw(name, seed, n):
    """Return a population's rows with their groups and labels."""
    rng = np.random.default_rng(seed)
    rows = next(p for p in POPULATIONS if p.__name__ == name)(rng, n)
    a = (rng.random((n, 1)) > rows.group.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return rows, a, (rng.random(n) < rows.label[np.arange(n), a]).astype(int)


def truth(name, track, fairness):
    """Return the best accuracy at each level from the true posteriors of many rows."""
    rows, a, y = draw(name, 10**6, TRUTH_ROWS)
    posteriors = rows.posteriors(track, fairness, a)
    known = ff.achievable_frontier(
        None, y, sensitive_features=a, fairness=fairness, track=track, grid=LEVELS, probabilities=posteriors
    )
    return known.plugin


def run(out, minutes, known):
    """Add draws to the records until the time is over; `known`: only with the true posteriors, which is quick."""
    stop = time.monotonic() + 60 * minutes
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(r["case"], r["seed"]) for r in records}
    truths = {r["case"]: r["truth"] for r in records}
    with out.open("a") as file:
        for seed in range(FIRST_SEED, FIRST_SEED + max(DESIGN.values())):
            for case, draws in DESIGN.items():
                key = " ".join(case)
                if (key, seed) in done or seed >= FIRST_SEED + draws:
                    continue
                if time.monotonic() > stop:
                    return
                if key not in truths:
                    truths[key] = truth(*case).round(6).tolist()
                file.write(
                    json.dumps({"case": key, "seed": seed, "truth": truths[key], **one(case, seed, known)}) + "\n"
                )
                file.flush()


def one(case, seed, known):
    """Return the estimate of one draw, with learned and with true posteriors."""
    name, track, fairness = case
    rows, a, y = draw(name, seed, ROWS)
    options = {"sensitive_features": a, "fairness": fairness, "track": track, "grid": LEVELS, "random_state": seed}
    oracle = ff.achievable_frontier(None, y, probabilities=rows.posteriors(track, fairness, a), **options)
    start = time.process_time()
    found = oracle if known else ff.achievable_frontier(rows.x, y, **options)
    parts = ("accuracy", "attained", "low", "high", "unlearned")
    return {
        "seconds": round(time.process_time() - start, 2),
        "oracle": oracle.accuracy.round(6).tolist(),
        **{part: getattr(found, part).round(6).tolist() for part in parts},
    }


def table(out):
    """Print bias and coverage of each case; ± is the standard error over draws."""
    records = [json.loads(line) for line in out.read_text().splitlines()]
    names = ("population", "track", "measure", "draws", *(f"error at {f:g}" for f in SHOWN), "error of `attained`")
    print("| " + " | ".join((*names, "band holds the curve", "`low` below it", "mean width", "CPU seconds")) + " |")
    print("|---" * (len(names) + 4) + "|")
    shown = np.searchsorted(LEVELS, np.array(SHOWN) - 1e-9)
    inside = []
    for case in dict.fromkeys(r["case"] for r in records):
        of_case = [r for r in records if r["case"] == case]
        part = {
            name: np.array([r[name] for r in of_case])
            for name in ("truth", "oracle", "accuracy", "attained", "low", "high")
        }
        error = part["accuracy"] - part["oracle"]
        spread = error.std(axis=0, ddof=1) / np.sqrt(len(error)) if len(error) > 1 else np.full(len(LEVELS), np.nan)
        below = (part["low"] <= part["truth"] + 1e-6).all(axis=1)
        holds = below & (part["high"] >= part["truth"] - 1e-6).all(axis=1)
        inside += holds.tolist()
        cells = [f"{error.mean(axis=0)[i]:+.4f} ± {spread[i]:.4f}" for i in shown]
        attained = (part["attained"] - part["oracle"]).mean()
        cells += [
            f"{attained:+.4f}",
            f"{holds.mean():.0%}",
            f"{below.mean():.0%}",
            f"{(part['high'] - part['low']).mean():.4f}",
        ]
        seconds = np.mean([r["seconds"] for r in of_case])
        print("| " + " | ".join([*case.split(), str(len(of_case)), *cells, f"{seconds:.0f}"]) + " |")
    print(f"\nThe band holds the whole curve in {np.mean(inside):.1%} of {len(inside)} draws.")


def growth(out, draws, minutes):
    """Project from 2,000 rows of Adult what 24,000 reach, and compare with what they do reach."""
    stop = time.monotonic() + 60 * minutes
    data = ff.datasets.load_adult()
    X = ff.datasets.design_matrix(data, drop_sensitive="gender").values.astype(np.float64)
    y, a = np.asarray(data.target), np.asarray(data.sensitive_features["gender"])
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    members = two_members(X)
    if not records:
        rows = np.random.default_rng(10**6).permutation(len(y))[: 24_000 * 5 // 4]
        large = ff.achievable_frontier(X[rows], y[rows], sensitive_features=a[rows], grid=[0.95], estimator=members)
        records = [{"measured": float(large.attained[0])}]
        out.write_text(json.dumps(records[0]) + "\n")
    with out.open("a") as file:
        for seed in range(FIRST_SEED + len(records) - 1, FIRST_SEED + draws):
            if time.monotonic() > stop:
                break
            rows = np.random.default_rng(seed).permutation(len(y))[:2000]
            options = {"estimator": members, "n_repeats": 2, "random_state": seed}
            found = ff.learning_frontier(X[rows], y[rows], sensitive_features=a[rows], min_fairness=0.95, **options)
            records.append(asdict(found.project(24_000)))
            file.write(json.dumps(records[-1]) + "\n")
            file.flush()
    measured, ahead = records[0]["measured"], records[1:]
    holds = [r["low"] <= measured <= r["high"] for r in ahead]
    error = np.mean([r["accuracy"] - measured for r in ahead])
    gain = np.mean([r["gain"] for r in ahead])
    print(f"24,000 rows reach {measured:.4f}. From 2,000 rows: mean error of the projection {error:+.4f}, mean gain")
    print(f"{gain:.4f}; the 90 % interval holds it in {np.sum(holds)} of {len(holds)} draws.")


def two_members(X):
    """Return the first two members of the default ensemble with smaller trees, quick enough for many draws."""
    linear, boosted = default_ensemble(0, len(X), X)[:2]
    return [linear, boosted.set_params(**{f"histgradientboostingclassifier__{k}": v for k, v in SMALL_TREES.items()})]


def benchmark(out, tasks, jobs):
    """Compare the curves with the points of every benchmarked method; those in the file are not made again."""
    curves = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(c["task"], c["measure"], c["track"]) for c in curves}
    with out.open("a") as file:
        for task, question in itertools.product(tasks, QUESTIONS):
            if (task, *question) not in done:
                curves.append(curve_of(task, *question, jobs))
                file.write(json.dumps(curves[-1]) + "\n")
                file.flush()
    names = ("task", "measure", "methods", "rows", "kind of points", "points", "above the curve")
    print("| " + " | ".join((*names, "above the band", "largest excess", "attainable at .9, .95, 1")) + " |")
    print("|---" * (len(names) + 3) + "|")
    for curve in sorted(curves, key=lambda c: (c["measure"], c["track"] == "blind", c["rows"], c["task"])):
        for kind, points in method_points(curve["task"], curve["measure"], curve["track"]).items():
            best, high = (np.interp(points[:, 0], curve["grid"], curve[part]) for part in ("accuracy", "high"))
            excess, at = points[:, 1] - best, np.interp((0.9, 0.95, 1.0), curve["grid"], curve["accuracy"])
            cells = [curve["task"], MEASURES[curve["measure"]], METHODS_THAT[curve["track"]], curve["rows"]]
            cells += [kind, len(points), np.sum(excess > 0), np.sum(points[:, 1] > high)]
            cells += [f"{excess.max():+.4f}", ", ".join(f"{value:.4f}" for value in at)]
            print("| " + " | ".join(map(str, cells)) + " |")


def curve_of(task, measure, track, jobs):
    """Return the achievable curve of one data set, with the time that it takes by the clock."""
    name, attribute = task.split("-")
    data = getattr(ff.datasets, f"load_{name}")()
    X = ff.datasets.design_matrix(data, drop_sensitive=attribute).values
    groups = data.sensitive_features[attribute]
    start = time.perf_counter()
    found = ff.achievable_frontier(
        X, data.target, sensitive_features=groups, fairness=MEASURES[measure], track=track, n_jobs=jobs
    )
    parts = {part: getattr(found, part).round(6).tolist() for part in ("grid", "accuracy", "low", "high")}
    seconds = round(time.perf_counter() - start, 1)
    return {"task": task, "measure": measure, "track": track, "rows": len(X), "seconds": seconds, "jobs": jobs, **parts}


def method_points(task, measure, track):
    """Return fairness and accuracy (k, 2) of what methods that see as much reach on test rows, means over splits.

    Blind methods are those of the blind track that do without the attribute at prediction. All others see it: in X, or
    given at prediction. Two kinds of points: every candidate, and what is delivered for each asked level.
    """
    by_method = defaultdict(list)
    for record in read_collection(RECORDS):
        # A learner that is not in the table of methods was added by the user of that run, and is blind.
        method = METHODS[record.table].get(record.method)
        sees = record.track == "in-x" or (method is not None and method.aware)
        tables = ("eo",) if measure == "eo" else ("dp", "multi")
        if record.task == task and record.status == "done" and record.table in tables and sees == (track == "aware"):
            by_method[record.table, record.track, record.method].append(record)
    candidates, delivered = [], []
    for records in by_method.values():
        points = [np.array([r.points["fairness"], r.points["accuracy"]]) for r in records]
        fewest = min(p.shape[1] for p in points)
        candidates.append(np.mean([p[:, :fewest] for p in points], axis=0).T)
        deliveries = [d for d in map(delivery_of, records) if d is not None]
        if deliveries:
            mean = delivered_frontier(deliveries)
            delivered.append(np.column_stack([mean.fairness, mean.accuracy]))
    kinds = {"candidates": candidates, "delivered": delivered}
    return {kind: np.concatenate(found) for kind, found in kinds.items() if found}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table", "growth", "benchmark"))
    parser.add_argument("--draws", type=int, default=200, help="growth: the number of draws")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--out", type=Path, default=Path("results/limit.jsonl"))
    parser.add_argument("--tasks", nargs="*", default=[], help="such as adult-gender")
    parser.add_argument("--known", action="store_true", help="give the true posteriors: the band alone is checked")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "benchmark":
        benchmark(options.out, options.tasks, options.jobs)
        return
    if options.what == "growth":
        growth(options.out, options.draws, options.minutes)
        return
    if options.what == "run":
        run(options.out, options.minutes, options.known)
    table(options.out)


if __name__ == "__main__":
    main()
