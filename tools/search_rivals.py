"""What a user would do instead of a search, on the same rows and in the same time.

    python tools/search_rivals.py FOLDER compas-race 0 1 2 [--min-ratio 0.8]

In each split 70 % of the rows are given to every method, which delivers one model with the required ratio of selection
rates; the other 30 % measure it. Other methods fit to three quarters of their rows and choose, on the last quarter, the
most accurate of their models that meets the requirement there, or else the fairest. Each of them begins no further
model once it has taken as much processor time as the search took, or 45 seconds if the search was done sooner. Records
are kept in FOLDER/rivals.jsonl, one per method; those that are there are not made again.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity, ExponentiatedGradient, GridSearch
from search_results import TASKS, write_table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import fairfrontier as ff
from fairfrontier.benchmark._post_processing import RivalRows, oxonfair, threshold_optimizer

TOLERANCES = np.linspace(0.0, 0.2, 21)
LEAST_SECONDS = 45.0
RIVALS = ("ExponentiatedGradient", "GridSearch", "ThresholdOptimizer", "OxonFair")


@dataclass(frozen=True, eq=False)
class Rows:
    """Encoded features, label and group of some rows."""

    x: np.ndarray
    y: np.ndarray
    group: np.ndarray

    def of(self, rows: np.ndarray) -> "Rows":
        """Return some of the rows."""
        return Rows(self.x[rows], self.y[rows], self.group[rows])


Decide = Callable[[Rows], np.ndarray]


def measure(decided: np.ndarray, rows: Rows) -> tuple[float, float, float]:
    """Return fairness, ratio of selection rates and accuracy; decisions may be probabilities of a yes."""
    rates = [decided[rows.group == one].mean() for one in np.unique(rows.group)]
    ratio = min(rates) / max(rates) if max(rates) > 0 else 0.0
    return 1.0 - (max(rates) - min(rates)), ratio, float(np.mean(np.where(rows.y, decided, 1.0 - decided)))


def choose(candidates: Iterator[Decide], known: Rows, min_ratio: float, seconds: float) -> tuple[Decide, int]:
    """Return the most accurate candidate that meets the requirement on known rows, else the fairest; stop in time."""
    begun, found = time.process_time(), []
    for candidate in candidates:
        found.append((candidate, measure(candidate(known), known)))
        if time.process_time() - begun > seconds:
            break
    good = [one for one in found if one[1][1] >= min_ratio]
    best = max(good, key=lambda one: one[1][2]) if good else max(found, key=lambda one: one[1][1])
    return best[0], len(found)


def boosted(rng: np.random.Generator) -> HistGradientBoostingClassifier:
    """Return boosted trees with random settings."""
    rate = float(10.0 ** rng.uniform(-1.6, -0.6))
    return HistGradientBoostingClassifier(
        learning_rate=rate,
        max_iter=int(np.clip(10.0 / rate, 40, 250)),
        max_leaf_nodes=int(rng.choice([7, 15, 31])),
        min_samples_leaf=int(rng.choice([10, 20, 50])),
        l2_regularization=float(rng.choice([0.0, 1.0, 10.0])),
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )


def best_boosted(fit: Rows, known: Rows, rng: np.random.Generator, seconds: float) -> HistGradientBoostingClassifier:
    """Return the most accurate of randomly set boosted trees: as many as the time allows, 20 at the most."""
    begun, found = time.process_time(), []
    while len(found) < 20 and (not found or time.process_time() - begun < seconds):
        model = boosted(rng).fit(fit.x, fit.y)
        found.append((model.score(known.x, known.y), len(found), model))
    return max(found)[2]


def exponentiated(fit: Rows, rng: np.random.Generator) -> Iterator[Decide]:
    """Yield models of ExponentiatedGradient on boosted trees, from loose to tight bounds."""
    for bound in (0.1, 0.05, 0.02, 0.01, 0.15, 0.075, 0.035):
        model = ExponentiatedGradient(boosted(rng), DemographicParity(difference_bound=bound), max_iter=10)
        model.fit(fit.x, fit.y.astype(int), sensitive_features=fit.group)
        yield lambda rows, model=model: model._pmf_predict(rows.x)[:, 1]


def grid(fit: Rows, rng: np.random.Generator) -> Iterator[Decide]:
    """Yield the models of GridSearch on boosted trees."""
    for size in (9, 17):
        model = GridSearch(boosted(rng), DemographicParity(), grid_size=size)
        model.fit(fit.x, fit.y.astype(int), sensitive_features=fit.group)
        for predictor in model.predictors_:
            yield lambda rows, predictor=predictor: np.asarray(predictor.predict(rows.x), dtype=float)


def post_processed(name: str, fit: Rows, known: Rows, model: HistGradientBoostingClassifier) -> Iterator[Decide]:
    """Yield one model per tolerance of ThresholdOptimizer (given the attribute) or OxonFair (inferring it)."""
    inferred, groups = name == "OxonFair", np.unique(fit.group)
    of_group = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(fit.x, fit.group == groups[1])

    def seen(rows: Rows) -> np.ndarray:
        return of_group.predict_proba(rows.x)[:, 1] if inferred else rows.group

    def score(rows: Rows) -> np.ndarray:
        return model.predict_proba(rows.x)[:, 1]

    given = RivalRows(score(known), known.y.astype(int), (known.group == groups[1]).astype(int), seen(known))
    if not inferred:
        given = RivalRows(given.score, given.label, known.group, known.group)
    method = oxonfair if inferred else threshold_optimizer
    decide = method(given, "demographic_parity", TOLERANCES, inferred)
    for j in range(len(TOLERANCES)):
        yield lambda rows, j=j: decide(score(rows), seen(rows))[:, j]


@dataclass(frozen=True, eq=False)
class Comparison:
    """One split of a task: what every method is given, and what measures it."""

    task: str
    split: int
    min_ratio: float
    raw: pd.DataFrame
    score_now: np.ndarray
    every: Rows
    inside: np.ndarray
    outside: np.ndarray

    @property
    def test(self) -> Rows:
        return self.every.of(self.outside)

    def record(self, method: str, decided: np.ndarray, seconds: float, looked: int, **more: object) -> dict:
        """Return the figures of a method."""
        fairness, ratio, accuracy = measure(np.asarray(decided, dtype=float), self.test)
        figures = {"fairness": fairness, "ratio": ratio, "accuracy": accuracy, "seconds": round(seconds, 1)}
        return {"task": self.task, "split": self.split, "method": method, "candidates": looked, **figures, **more}

    def searched(self) -> dict:
        """Return the record of the search."""
        attribute, mine = self.task.split("-")[1], self.every.of(self.inside)
        begun = time.process_time()
        search = ff.FairSearch(min_ratio=self.min_ratio, random_state=self.split)
        features = {"sensitive_features": {attribute: mine.group}, "baseline": self.score_now[self.inside]}
        search.fit(self.raw.iloc[self.inside], mine.y, **features)
        spent = time.process_time() - begun
        decided = np.asarray(search.predict(self.raw.iloc[self.outside]), dtype=float)
        more = {"verdict": search.verdict_, "promised": search.promised_ is not None}
        return self.record("search", decided, spent, len(search.candidates_), **more)

    def rivals(self, budget: float) -> Iterator[dict]:
        """Yield the records of the other methods."""
        mine = self.every.of(self.inside)
        fit_rows, known_rows = train_test_split(np.arange(len(mine.y)), test_size=0.25, random_state=self.split)
        fit, known = mine.of(fit_rows), mine.of(known_rows)
        for number, (name, make) in enumerate((("ExponentiatedGradient", exponentiated), ("GridSearch", grid))):
            begun, rng = time.process_time(), np.random.default_rng([self.split, number])
            decide, looked = choose(make(fit, rng), known, self.min_ratio, budget)
            yield self.record(name, decide(self.test), time.process_time() - begun, looked)
        begun = time.process_time()
        model = best_boosted(fit, known, np.random.default_rng([self.split, 2]), budget)
        spent = time.process_time() - begun
        for name in ("ThresholdOptimizer", "OxonFair"):
            begun = time.process_time()
            decide, looked = choose(post_processed(name, fit, known, model), known, self.min_ratio, budget)
            yield self.record(name, decide(self.test), spent + time.process_time() - begun, looked)


def prepare(task: str, file: Path, split: int, min_ratio: float) -> Comparison:
    """Split a table."""
    frame, attribute = pd.read_csv(file), task.split("-")[1]
    y, group = frame["outcome"].to_numpy() == 1, frame[attribute].astype(str).to_numpy()
    raw = frame.drop(columns=["outcome", "score_now", attribute])
    stratum = [f"{one}{two}" for one, two in zip(y, group, strict=True)]
    inside, outside = train_test_split(np.arange(len(y)), test_size=0.3, random_state=split, stratify=stratum)
    every = Rows(pd.get_dummies(raw).to_numpy(dtype=float), y, group)
    return Comparison(task, split, min_ratio, raw, frame["score_now"].to_numpy(), every, inside, outside)


def missing(comparison: Comparison, done: dict[str, dict], *, alone: bool) -> Iterator[dict]:
    """Yield the records of a split that are not there; `alone`, those of the search and the model in use."""
    if "in use" not in done:
        yield comparison.record("in use", comparison.score_now[comparison.outside] > 0.5, 0.0, 1)
    search = done.get("search") or comparison.searched()
    if "search" not in done:
        yield search
    if not alone and len(done.keys() - {"in use", "search"}) < len(RIVALS):
        yield from (
            one for one in comparison.rivals(max(search["seconds"], LEAST_SECONDS)) if one["method"] not in done
        )


def table(records: pd.DataFrame, min_ratio: float) -> Iterator[str]:
    """Yield the lines of the table of one task."""
    heads = ("task", "method", "splits", "ratio: median (least)", "missed by more than 0.02", "missed")
    yield f"| {' | '.join(heads)} | accuracy: median (least) | processor seconds: median |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for (task, method), found in records.groupby(["task", "method"], sort=False):
        ratio = found["ratio"]
        cells = [task, method, str(len(found)), f"{ratio.median():.3f} ({ratio.min():.3f})"]
        cells += [str(int((ratio < min_ratio - by).sum())) for by in (0.02, 0.0)]
        cells += [
            f"{found['accuracy'].median():.3f} ({found['accuracy'].min():.3f})",
            f"{found['seconds'].median():.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Run the splits that are missing, and print the table of all records."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("splits", nargs="*", type=int)
    parser.add_argument("--min-ratio", type=float, default=0.8)
    parser.add_argument("--alone", action="store_true", help="the search and the model in use, no other method")
    options = parser.parse_args()
    kept, file = options.folder / "rivals.jsonl", options.folder / f"{options.task}.csv"
    options.folder.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        write_table(options.task, file)
    lines = kept.read_text().splitlines() if kept.exists() else []
    records = [json.loads(line) for line in lines]
    for split in options.splits:
        done = {one["method"]: one for one in records if (one["task"], one["split"]) == (options.task, split)}
        if {"in use", "search", *(() if options.alone else RIVALS)} <= done.keys():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other libraries
            for found in missing(prepare(options.task, file, split, options.min_ratio), done, alone=options.alone):
                with kept.open("a") as stream:
                    stream.write(json.dumps(found) + "\n")
    records = pd.DataFrame(map(json.loads, kept.read_text().splitlines()))
    print("\n".join(table(records, options.min_ratio)))


if __name__ == "__main__":
    main()
