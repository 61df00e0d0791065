"""The level of a promise on out-of-fold decisions, by simulation.

Out-of-fold decisions are made by stacks that differ a little from the one that is delivered, and each row helps to fit
the stacks of the other folds: the tests of a promise are exact for rows of its own, and here an approximation. The
simulation takes a case that is hard for it: the request binds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import FairStacksClassifier
from fairfrontier.exceptions import InfeasibleError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rows, request, groups and base models. The request is what so many rows can promise.
SETTINGS = [
    (600, 0.85, 2, 8),
    (1500, 0.90, 2, 8),
    (1500, 0.90, 2, 40),
    (4000, 0.94, 2, 8),
    (600, 0.70, 4, 8),
    (1500, 0.80, 4, 8),
    (4000, 0.88, 4, 8),
]
CONFIDENCE = 0.95
_SHARES = {2: [0.35, 0.65], 4: [0.1, 0.15, 0.25, 0.5]}
_CALIBRATION_SHARE = 0.5
_NEW_ROWS = 30_000
_DRAWS_OF_A_WORLD = 10


@dataclass(frozen=True, eq=False)
class _Rows:
    H: Floats
    y: NDArray[np.bool_]
    group: Ints

    def take(self, which: NDArray) -> "_Rows":
        return _Rows(self.H[which], self.y[which], self.group[which])


class _World:
    """A distribution of scores, labels and groups, drawn at random; the models favour the last group."""

    def __init__(self, seed: list[int], groups: int, models: int) -> None:
        rng = np.random.default_rng(seed)
        self._share = np.array(_SHARES[groups])
        self._signal = rng.normal(0.8, 0.4, models)
        self._favour = np.linspace(0.0, 1.2, groups)[:, None] + rng.normal(0.0, 0.3, (groups, models))
        self._noise = np.vstack([rng.normal(0.0, 0.5, (models, models)), np.eye(models)]) * (
            0.6 + 0.8 * rng.random(models)
        )

    def rows(self, n: int, rng: np.random.Generator) -> _Rows:
        group = rng.choice(len(self._share), n, p=self._share)
        merit = rng.normal(size=n)
        y = merit + 1.6 * (group == len(self._share) - 1) + rng.normal(0.0, 0.7, n) > 0.6
        logit = (
            merit[:, None] * self._signal + self._favour[group] + rng.normal(size=(n, len(self._noise))) @ self._noise
        )
        return _Rows(1.0 / (1.0 + np.exp(-logit)), y, group)


def simulate(rows: int, asked: float, groups: int, models: int, draws: int) -> dict[str, Any]:
    """Return how often a promise was made and broken: on rows of its own, and on out-of-fold decisions."""
    made, broken = {"own rows": 0, "out of fold": 0}, {"own rows": 0, "out of fold": 0}
    for draw in range(draws):
        rng = np.random.default_rng([draw, rows, groups, models])
        world = _World([draw // _DRAWS_OF_A_WORLD, groups], groups, models)
        everything, new = world.rows(rows, rng), world.rows(_NEW_ROWS, rng)
        own = rng.random(rows) < _CALIBRATION_SHARE
        calibration = everything.take(own)
        ways = {
            "own rows": (everything.take(~own), (calibration.H, None, calibration.group)),
            "out of fold": (everything, None),
        }
        for name, (fitted_to, shown_on) in ways.items():
            model = FairStacksClassifier("precomputed", random_state=0)
            model.fit(fitted_to.H, fitted_to.y, sensitive_features=fitted_to.group)
            try:
                chosen = model.select(asked, confidence=CONFIDENCE, calibration=shown_on)
            except InfeasibleError:
                continue
            decided = chosen.predict(new.H)
            rates = np.bincount(new.group, decided) / np.bincount(new.group)
            made[name] += 1
            broken[name] += bool(np.ptp(rates) > 1.0 - asked)
    setting = {"rows": rows, "asked": asked, "groups": groups, "models": models, "draws": draws}
    return setting | {"made": made, "broken": broken}


def table(results: list[dict[str, Any]]) -> list[str]:
    """Return the results as a table in Markdown."""
    lines = [
        "| rows | asked | groups | base models | on rows of its own: made | broken | out of fold: made | broken |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        cells = [f"{one['rows']:,}", f"{one['asked']:g}", one["groups"], one["models"]]
        for name in ("own rows", "out of fold"):
            cells += [f"{one['made'][name] / one['draws']:.0%}", f"{one['broken'][name] / one['draws']:.1%}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines
