"""A tuned path of stacks of 1,000 models on 12,000 rows, and the exact decision path of a million rows."""

import time
from collections.abc import Iterator

import cvxpy as cp
import numpy as np

import fairfrontier as ff
from fairfrontier._rows import Rows
from fairfrontier.identify._decision_path import decision_path
from fairfrontier.metrics._contrasts import build_contrasts

from ._common import Row, duration, race

N_ROWS, N_MODELS = 12_000, 1_000
FOLDS, ALPHAS, TARGETS = 5, 20, 20
N_DECISIONS = 10**6


def rows() -> Iterator[Row]:
    """Yield the rows of both works."""
    rng = np.random.default_rng(0)
    yield from _tuned_path(rng)
    yield _decision_path(rng)


def _tuned_path(rng: np.random.Generator) -> Iterator[Row]:
    sex = rng.integers(0, 2, N_ROWS)
    y = (rng.random(N_ROWS) < 0.25 + 0.2 * sex).astype(int)
    H = np.clip(0.3 * y[:, None] + 0.1 * sex[:, None] + 0.4 * rng.random((N_ROWS, N_MODELS)), 0.0, 1.0)
    alphas = np.logspace(2, 7, ALPHAS)

    def tuned() -> ff.FairStacksClassifier:
        model = ff.FairStacksClassifier(alphas=alphas, family_scales=None, cv=FOLDS, n_points=TARGETS, random_state=0)
        return model.fit(H, y, sensitive_features=sex)

    def gram_and_eigh() -> None:
        np.linalg.eigh(H.T @ H)

    work = f"tuned path ({FOLDS} folds × {ALPHAS} alphas × {TARGETS} targets), n = {N_ROWS:,}, k = {N_MODELS:,}"
    seconds = race({"ours": tuned, "parts": gram_and_eigh}, repeats=3)
    yield Row.at_most(
        2.0, work=work, against="6 × (one Gram + one eigh)", ours=seconds["ours"], theirs=6 * seconds["parts"]
    )
    solve = _one_cvxpy_solve(H, y, sex)
    yield Row.at_least(
        5000,
        work=work,
        against="cvxpy + Clarabel on the raw data",
        ours=seconds["ours"],
        theirs=solve * FOLDS * ALPHAS * TARGETS,
        note=f"one solve took {duration(solve)}; times {FOLDS * ALPHAS * TARGETS:,}",
    )


def _one_cvxpy_solve(H: np.ndarray, y: np.ndarray, sex: np.ndarray) -> float:
    """Return the seconds of one problem as a user would write it; its solution must be ours."""
    alpha, tau = 100.0, 0.02
    start = time.perf_counter()
    w, constant = cp.Variable(H.shape[1]), cp.Variable()
    gap = H[sex == 0].mean(axis=0) - H[sex == 1].mean(axis=0)
    loss = cp.sum_squares(y - H @ w - constant) + alpha / 2 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss), [cp.abs(gap @ w) <= tau]).solve(solver=cp.CLARABEL)
    seconds = time.perf_counter() - start
    ours = ff.FairStacksClassifier(alpha=alpha, tau=tau).fit(H, y, sensitive_features=sex)
    np.testing.assert_allclose(ours.weights_, w.value, atol=1e-4)
    return seconds


def _decision_path(rng: np.random.Generator) -> Row:
    sex, label = rng.integers(0, 2, N_DECISIONS), rng.random(N_DECISIONS) < 0.3
    cells = Rows.validated(label, np.empty((N_DECISIONS, 1)), sex).cells(labelled=True)
    measure = cells.codes, build_contrasts("demographic_parity", cells.keys, cells.attributes)
    base, slope = rng.normal(0.4, 0.2, N_DECISIONS), rng.normal(0.0, 0.3, N_DECISIONS)
    crossing = (0.5 - base) / slope
    states = decision_path(base, slope, *measure, low=-1.0, high=1.0)
    seconds = race(
        {
            "ours": lambda: decision_path(base, slope, *measure, low=-1.0, high=1.0),
            "argsort": lambda: np.argsort(crossing),
        },
        repeats=9,
    )
    return Row.at_most(
        5.0,
        work="exact decision path, n = 10⁶",
        against="np.argsort of n",
        ours=seconds["ours"],
        theirs=seconds["argsort"],
        note=f"{len(states):,} states",
    )
