"""The level of a promise on out-of-fold decisions, by simulation.

Out-of-fold decisions are made by stacks that differ a little from the one that is delivered, and each row helps to fit
the stacks of the other folds: the tests of a promise are exact for rows of its own, and here an approximation. The
simulation takes the case that is hardest for it: the request binds, and of all certified stacks the least fair one is
delivered.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.optimize._guarantee import certified

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rows, request, groups and base models. The request is what so many rows can promise.
SETTINGS = [
    (rows, asked, groups, models)
    for rows, asked in ((600, 0.85), (1500, 0.90), (4000, 0.94))
    for groups, models in ((2, 8), (2, 40), (4, 8))
]
CONFIDENCE = 0.95
_SHARES = {2: [0.35, 0.65], 4: [0.1, 0.15, 0.25, 0.5]}
_PLACES = np.linspace(1.0, -0.6, 65)  # shares of the unconstrained score bias
_FOLDS, _CALIBRATION_SHARE, _RIDGE = 5, 0.4, 10.0
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


class _Path:
    """The ridge stack and its straight way to no score bias and beyond."""

    def __init__(self, rows: _Rows) -> None:
        mean, share = rows.H.mean(axis=0), rows.y.mean()
        centred = rows.H - mean
        of_group = np.stack([rows.H[rows.group == g].mean(axis=0) for g in np.unique(rows.group)])
        contrast = (of_group[:-1] - of_group[-1]).T
        gram = centred.T @ centred + _RIDGE * np.eye(len(mean))
        solved = np.linalg.solve(gram, np.column_stack([centred.T @ (rows.y - share), contrast]))
        direction = solved[:, 1:] @ np.linalg.solve(contrast.T @ solved[:, 1:], contrast.T @ solved[:, 0])
        self._weights = solved[:, 0][:, None] - (1.0 - _PLACES) * direction[:, None]
        self._intercept = share - mean @ self._weights

    def decide(self, H: Floats, places: Any = slice(None)) -> NDArray[np.bool_]:
        return H @ self._weights[:, places] + self._intercept[places] > 0.5


def simulate(rows: int, asked: float, groups: int, models: int, draws: int) -> dict[str, Any]:
    """Return how often a promise was made and broken: on rows of its own, and on out-of-fold decisions."""
    sets = RowSets(tuple(map(str, range(groups))), (tuple(range(groups)),), ("group",))
    made, broken = {"own rows": 0, "out of fold": 0}, {"own rows": 0, "out of fold": 0}
    for draw in range(draws):
        rng = np.random.default_rng([draw, rows, groups, models])
        world = _World([draw // _DRAWS_OF_A_WORLD, groups], groups, models)
        everything, new = world.rows(rows, rng), world.rows(_NEW_ROWS, rng)
        own = rng.random(rows) < _CALIBRATION_SHARE
        part, calibration = everything.take(~own), everything.take(own)
        of_part = _Path(part)
        ways = {
            "own rows": (of_part, calibration, of_part.decide(calibration.H), (part, _out_of_fold(part, rng))),
            "out of fold": (_Path(everything), everything, (out := _out_of_fold(everything, rng)), (everything, out)),
        }
        for name, (path, shown_on, decisions, (judged, judged_decisions)) in ways.items():
            start = int(np.argmin(np.ptp(_counts(judged, judged_decisions) / _sizes(judged), axis=1)))
            order = np.arange(start, -1, -1)
            options = {"min_fairness": asked, "confidence": CONFIDENCE, "order": order}
            passed = certified(_counts(shown_on, decisions), _sizes(shown_on), sets, **options).certified
            if passed.any():
                made[name] += 1
                last = [int(np.flatnonzero(passed)[0])]
                broken[name] += np.ptp(_counts(new, path.decide(new.H, last))[0] / _sizes(new)) > 1.0 - asked
    setting = {"rows": rows, "asked": asked, "groups": groups, "models": models, "draws": draws}
    return setting | {"made": made, "broken": {name: int(count) for name, count in broken.items()}}


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


def _out_of_fold(rows: _Rows, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the decisions of the stack of the other folds on each row, at every place."""
    fold = rng.permutation(len(rows.y)) % _FOLDS
    decisions = np.empty((len(rows.y), len(_PLACES)), dtype=bool)
    for number in range(_FOLDS):
        decisions[fold == number] = _Path(rows.take(fold != number)).decide(rows.H[fold == number])
    return decisions


def _counts(rows: _Rows, decisions: NDArray[np.bool_]) -> Floats:
    return np.stack([decisions[rows.group == g].sum(axis=0) for g in np.unique(rows.group)], axis=1).astype(np.float64)


def _sizes(rows: _Rows) -> Ints:
    return np.bincount(rows.group)
