"""Points of 200 models on 50,000 rows with every kind of measure, against demographic parity and against sorts."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import fairfrontier as ff

from ._common import Row, race

N_ROWS, N_MODELS = 50_000, 200
# Measures of ranks take seconds: they are raced on fewer models.
N_RANKED = 20


def rows() -> Iterator[Row]:
    """Yield the rows of both works."""
    rng = np.random.default_rng(0)
    scores, y = rng.random((N_ROWS, N_MODELS)), rng.integers(0, 2, N_ROWS)
    yield from _sums(rng, scores, y)
    yield from _ranks(rng, scores[:, :N_RANKED], y)


def _sums(rng: np.random.Generator, scores: np.ndarray, y: np.ndarray) -> Iterator[Row]:
    sex, job, p = rng.integers(0, 2, N_ROWS), rng.integers(0, 3, N_ROWS), rng.random(N_ROWS)
    points = partial(ff.tradeoff_points, y, scores)
    known = partial(points, sensitive_features=sex)
    payoff = ff.expected_payoff(true_positive=1.0, false_positive=-2.0)
    age = ff.ProbableGroups.from_numbers(rng.normal(40, 10, N_ROWS), name="age")
    runs = {
        "demographic parity": known,
        "impact ratio": partial(known, fairness="impact_ratio"),
        "ratios of equalized odds": partial(known, fairness="equalized_odds_ratio"),
        "odds ratio": partial(known, fairness="odds_ratio"),
        "impact ratio against a group": partial(known, fairness="impact_ratio against 0"),
        "parity within strata": partial(
            points, sensitive_features={"sex": sex, "job": job}, fairness="demographic_parity within job"
        ),
        "balanced accuracy": partial(known, accuracy="balanced_accuracy"),
        "F-score": partial(known, accuracy="f1"),
        "payoff of a matrix": partial(known, accuracy=payoff),
        "payoff per row": partial(known, accuracy=ff.row_payoff(rng.normal(size=N_ROWS))),
        "probable groups": partial(points, sensitive_features=ff.ProbableGroups(np.column_stack([1 - p, p]))),
        "a numeric attribute": partial(points, sensitive_features=age),
        "top_share, and points of what it selects": lambda: ff.tradeoff_points(
            y, ff.top_share(scores, 0.2), sensitive_features=sex, threshold=None
        ),
    }
    seconds = race(runs, repeats=25)
    theirs = seconds.pop("demographic parity")
    for name, ours in seconds.items():
        work = f"points of {N_MODELS} models × {N_ROWS:,} rows: {name}"
        yield Row.at_most(2.0, work=work, against="demographic parity and accuracy", ours=ours, theirs=theirs)


def _ranks(rng: np.random.Generator, scores: np.ndarray, y: np.ndarray) -> Iterator[Row]:
    sex = rng.integers(0, 2, N_ROWS)
    points = partial(ff.tradeoff_points, y, scores, sensitive_features=sex)
    runs = {"AUC": "auc", "KS": "ks", "recall at a fixed rate": ff.recall_at(0.2)}
    seconds = race(
        {name: partial(points, accuracy=measure) for name, measure in runs.items()}
        | {"sorts": lambda: [np.argsort(column) for column in scores.T], "top": partial(ff.top_share, scores, 0.2)},
        repeats=9,
    )
    theirs, top = seconds.pop("sorts"), seconds.pop("top")
    work = f"decisions of {scores.shape[1]} models × {N_ROWS:,} rows at a fixed selection rate: top_share"
    yield Row.at_most(1.0, work=work, against="one np.argsort of each model", ours=top, theirs=theirs)
    for name, ours in seconds.items():
        work = f"points of {scores.shape[1]} models × {N_ROWS:,} rows: {name}"
        yield Row.at_most(3.0, work=work, against="one np.argsort of each model", ours=ours, theirs=theirs)
