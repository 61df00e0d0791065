"""Frontier of a million models, and points of 200 models on 50,000 rows."""

from collections.abc import Iterator

import moocore
import numpy as np
from fairlearn.metrics import demographic_parity_difference
from paretoset import paretoset
from sklearn.metrics import accuracy_score

import fairfrontier as ff

from ._common import Row, median_seconds, race

N_MODELS = 10**6
N_ROWS, N_COLUMNS = 50_000, 200
# Fairlearn takes about a second a model: its loop is timed on a few models and the time multiplied.
LOOP_SAMPLE = 5


def rows() -> Iterator[Row]:
    """Yield the rows of both works."""
    rng = np.random.default_rng(0)
    fairness = rng.random(N_MODELS)
    yield from _frontier("independent values", fairness, rng.random(N_MODELS))
    along = np.clip(1.0 - fairness + 0.05 * rng.standard_normal(N_MODELS), 0.0, 1.0)
    yield from _frontier("along a trade-off", fairness, along)
    yield from _points(rng)


def _frontier(kind: str, fairness: np.ndarray, accuracy: np.ndarray) -> Iterator[Row]:
    work = f"frontier of 10⁶ models, {kind}"
    both = np.column_stack([fairness, accuracy])
    ours = ff.taf_curve(fairness, accuracy).support
    for name, mask in {
        "paretoset": paretoset(both, sense=["max", "max"]),
        "moocore": moocore.is_nondominated(both, maximise=True),
    }.items():
        if set(np.flatnonzero(mask)) != set(ours):
            raise RuntimeError(f"{name} finds another frontier, so that its time says nothing")
    seconds = race(
        {
            "taf_curve": lambda: ff.taf_curve(fairness, accuracy),
            "argsort": lambda: np.argsort(fairness),
            "paretoset": lambda: paretoset(both, sense=["max", "max"]),
            "moocore": lambda: moocore.is_nondominated(both, maximise=True),
        },
        repeats=7,
    )
    own, note = seconds["taf_curve"], f"{len(ours)} models are optimal"
    yield Row.at_most(2.5, work=work, against="np.argsort", ours=own, theirs=seconds["argsort"], note=note)
    for rival in ("paretoset", "moocore"):
        yield Row.at_least(1.0, work=work, against=rival, ours=own, theirs=seconds[rival], note=note)


def _points(rng: np.random.Generator) -> Iterator[Row]:
    work = f"points of {N_COLUMNS} models × {N_ROWS:,} rows"
    scores = rng.random((N_ROWS, N_COLUMNS))
    y, sex = rng.integers(0, 2, N_ROWS), rng.integers(0, 2, N_ROWS)
    by_model = np.asfortranarray(scores)

    def loop() -> list[tuple[float, float]]:
        decisions = (scores[:, :LOOP_SAMPLE] > 0.5).astype(int)
        return [
            (1.0 - demographic_parity_difference(y, column, sensitive_features=sex), accuracy_score(y, column))
            for column in decisions.T
        ]

    points = ff.tradeoff_points(y, scores, sensitive_features=sex)
    expected = np.array(loop())
    np.testing.assert_allclose(points.fairness[:LOOP_SAMPLE], expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(points.accuracy[:LOOP_SAMPLE], expected[:, 1], atol=1e-12)
    seconds = race(
        {
            "rows": lambda: ff.tradeoff_points(y, scores, sensitive_features=sex),
            "columns": lambda: ff.tradeoff_points(y, by_model, sensitive_features=sex),
            "pass": lambda: scores > 0.5,
        },
        repeats=25,
    )
    of_loop = median_seconds(loop, repeats=3) * N_COLUMNS / LOOP_SAMPLE
    yield Row.at_least(
        2000,
        work=work,
        against="a loop over Fairlearn + scikit-learn",
        ours=seconds["rows"],
        theirs=of_loop,
        note=f"the loop timed on {LOOP_SAMPLE} models and multiplied",
    )
    for layout, order in (("rows", "row by row"), ("columns", "model by model")):
        yield Row.at_most(
            4.0,
            work=f"{work}, stored {order}",
            against="one pass `P > 0.5`",
            ours=seconds[layout],
            theirs=seconds["pass"],
        )
