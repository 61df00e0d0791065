"""1,000 bootstrap replicates of FAUC against a Python loop of `fauc_score` on resamples."""

from collections.abc import Iterator

import numpy as np

from fairfrontier import StepWeight, fauc_score
from fairfrontier.quantify._inference import fauc_interval

from ._common import Row, race

N_ROWS, N_MODELS, N_RESAMPLES = 12_000, 1_000, 1_000
# The loop takes minutes: so many of its rounds are timed and multiplied up.
ROUNDS = 5


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    generator = np.random.default_rng(0)
    sex = generator.integers(0, 2, N_ROWS)
    y = generator.random(N_ROWS) < 0.3
    noise = generator.normal(0.0, 0.4, (N_ROWS, N_MODELS)) * generator.uniform(0.5, 1.5, N_MODELS)
    scores = np.clip(0.5 * y[:, None] + noise + 0.1 * sex[:, None] * generator.random(N_MODELS), 0.0, 1.0)
    weight = StepWeight(0.8)

    def ours() -> None:
        fauc_interval(y, scores, sensitive_features=sex, weight=weight, n_resamples=N_RESAMPLES, random_state=0)

    def loop() -> None:
        for _ in range(ROUNDS):
            drawn = generator.integers(0, N_ROWS, N_ROWS)
            fauc_score(y[drawn], scores[drawn], sensitive_features=sex[drawn], weight=weight)

    times = race({"ours": ours, "loop": loop}, repeats=3)
    yield Row.at_least(
        100,
        work="1,000 bootstrap replicates of FAUC, with an interval; 1,000 models × 12,000 rows",
        against="a Python loop of fauc_score on resamples",
        ours=times["ours"],
        theirs=times["loop"] * N_RESAMPLES / ROUNDS,
        note=f"the loop is {ROUNDS} timed rounds times {N_RESAMPLES // ROUNDS}",
    )
