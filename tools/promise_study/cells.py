"""One cell of the study: a draw, every method, every request, and what each delivers to the population."""

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.promise_study import rivals, stacks
from tools.promise_study.populations import NAMES, TRACKS, Population, population, seed_of
from tools.promise_study.stacks import RATIO, Asked, Draw, Floats

from fairfrontier.exceptions import FairFrontierError, GroupError, InfeasibleError

ASKED = (0.90, 0.95, 0.99)
SIZES = (1_000, 2_000, 5_000, 12_000)
MEASURES = ("demographic_parity", "equal_opportunity")
# Draws in which rivals are asked too, and in which, for demographic parity without the attribute, the randomised
# promises and, with so many rows at most, the slow rival: each of its answers takes as long as all others together.
_DRAWS_WITH_RIVALS, _DRAWS_WITH_EVERYTHING, _ROWS_FOR_THE_SLOW = 1, 1, 1_000
# Sizes that are in every draw; the others are in one of three.
_USUAL_SIZES = (1_000, 5_000)
# A population of 4,000 rows says nothing about draws that are larger than itself.
_LARGEST_DRAW = {"compas-gender": 2_000, "compas-race": 2_000}


@dataclass(frozen=True)
class Cell:
    """What is drawn: the data and attribute, the track, the measure, the number of rows, and which draw."""

    name: str
    track: str
    measure: str
    rows: int
    draw: int

    @property
    def key(self) -> str:
        return "/".join(map(str, (self.name, self.track, self.measure, self.rows, self.draw)))


def cells(
    draws: int,
    names: tuple[str, ...] = NAMES,
    sizes: tuple[int, ...] = SIZES,
    measures: tuple[str, ...] = MEASURES,
) -> list[Cell]:
    """Return the cells of a study, one draw of everything before the next."""
    return [
        Cell(name, track, measure, rows, draw)
        for draw in range(draws)
        for rows in sorted(sizes, key=lambda size: size not in _USUAL_SIZES)
        for name in names
        for track in TRACKS
        for measure in measures
        if rows <= _LARGEST_DRAW.get(name, rows) and (draw % 3 == 0 or rows in _USUAL_SIZES or rows not in SIZES)
    ]


def run(cell: Cell, cache: Path, error_parity: str | None = None, *, with_rivals: bool = True) -> dict[str, Any]:
    """Return the record of a cell."""
    everyone = population(cell.name, cell.track, cache)
    seed = seed_of(cell.key)
    drawn = np.random.default_rng(seed).integers(0, len(everyone.y), cell.rows)
    draw = Draw(everyone.H[drawn], everyone.y[drawn], everyone.group[drawn], cell.measure)
    truth = Truth(everyone, cell.measure)
    of_parity = cell.measure == MEASURES[0]
    record: dict[str, Any] = {"key": cell.key, **vars(cell), "settings": stacks.SETTINGS}
    record |= {"constant": truth.constant, "results": []}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = stacks.fitted(draw)
    except FairFrontierError as error:
        return record | {"refused": f"{type(error).__name__}: {error}"}
    path = stacks.along_the_path(model, everyone.H)
    fairness, accuracy = truth.of(path)
    record["hindsight"] = {f"{asked:g}": truth.best(fairness, accuracy, asked) for asked in ASKED}
    record |= {"unconstrained": round(float(fairness[0]), 6), "fairest": round(float(fairness.max()), 6)}
    if of_parity:
        ratio = truth.ratio(path)
        record["hindsight"][RATIO] = truth.best(ratio, accuracy, stacks.LEAST_RATIO)
        record["ratio"] = {"unconstrained": round(float(ratio[0]), 6), "fairest": round(float(ratio.max()), 6)}
    start = model.path_.weights[0], model.path_.intercept[0]

    def score(H: Floats) -> Floats:
        return np.clip(H @ start[0] + start[1], 0.0, 1.0)

    everything = cell.draw < _DRAWS_WITH_EVERYTHING and cell.track == "blind" and of_parity
    ways = stacks.methods(draw, model, seed)
    if not everything:
        ways = {name: way for name, way in ways.items() if name not in stacks.SELDOM}
    of_rivals: dict[str, stacks.Method] = {}
    if with_rivals and cell.draw < _DRAWS_WITH_RIVALS:
        slow = everything and cell.rows <= _ROWS_FOR_THE_SLOW and len(np.unique(draw.group)) == 2
        of_rivals = rivals.methods(draw, score, error_parity, slow=slow)
    requests = [(name, method, asked) for name, method in (ways | of_rivals).items() for asked in ASKED]
    if of_parity:  # no rival takes a ratio
        requests += [(name, method, RATIO) for name, method in ways.items()]
    record["results"] = [_answer(*request, everyone, truth, cell.rows) for request in requests]
    return record


class Truth:
    """What decisions are worth in the population.

    Draws are made from it with replacement, so that it is the distribution itself: nothing here is an estimate.
    """

    def __init__(self, everyone: Population, measure: str) -> None:
        self._y = everyone.y
        counted = np.ones(len(self._y), dtype=bool) if measure == "demographic_parity" else everyone.y == 1
        member = [(everyone.group == group) & counted for group in np.unique(everyone.group)]
        self._share = np.array([rows / rows.sum() for rows in member])
        self._size = np.array([rows.mean() for rows in member])
        positive = float(np.mean(self._y))
        self.constant = max(positive, 1.0 - positive)

    def of(self, decisions: Floats) -> tuple[Floats, Floats]:
        """Return fairness and accuracy of decisions, or of their probabilities (n, c)."""
        rates = self._share @ decisions
        right = (self._y / len(self._y)) @ decisions + ((1 - self._y) / len(self._y)) @ (1.0 - decisions)
        return 1.0 - np.ptp(rates, axis=0), right

    def ratio(self, decisions: Floats) -> Floats:
        """Return the lowest rate by the highest; rates that are all zero treat everybody alike."""
        rates = self._share @ decisions
        highest = rates.max(axis=0)
        return np.divide(rates.min(axis=0), highest, out=np.ones_like(highest), where=highest > 0)

    def error(self, decisions: Floats, asked: Asked, rows: int) -> float:
        """Return the standard error with which a sample of some rows would show what one column of decisions delivers.

        It is that of the two groups whose rates are the furthest apart, and zero where a ratio has a rate of zero.
        """
        rates = (self._share @ decisions)[:, 0]
        low, high = np.argmin(rates), np.argmax(rates)
        variance = rates * (1.0 - rates) / (rows * self._size)
        if asked != RATIO:
            return float(np.sqrt(variance[low] + variance[high]))
        if rates[low] == 0.0:
            return 0.0
        relative = variance / rates**2
        return float(rates[low] / rates[high] * np.sqrt(relative[low] + relative[high]))

    def best(self, fairness: Floats, accuracy: Floats, asked: float) -> float:
        """Return the accuracy of the most accurate that is fair enough; the constant model always is."""
        return float(np.max(accuracy[fairness >= asked], initial=self.constant))


def _answer(
    name: str, method: stacks.Method, asked: Asked, everyone: Population, truth: Truth, rows: int
) -> dict[str, Any]:
    """Return what a method delivers, or why it does not."""
    result: dict[str, Any] = {"method": name, "asked": asked}
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decide = method(asked)
            decided = _column(decide(everyone.H, everyone.group))
            fairness, accuracy = truth.of(decided)
    except (InfeasibleError, GroupError) as error:
        result |= {"status": "no promise" if isinstance(error, InfeasibleError) else "refused", "said": str(error)}
    except Exception as error:  # a rival may fail in any way: it is recorded with its reason, and shown
        result |= {"status": "failed", "said": f"{type(error).__name__}: {error}"[:500]}
    else:
        result |= {"status": "ok", "fairness": round(float(fairness[0]), 6), "accuracy": round(float(accuracy[0]), 6)}
        result["error"] = round(truth.error(decided, asked, rows), 6)
        if asked == RATIO:
            result["ratio"] = round(float(truth.ratio(decided)[0]), 6)
    return result | {"seconds": round(time.perf_counter() - start, 3)}


def _column(decisions: NDArray) -> Floats:
    values = np.asarray(decisions, dtype=np.float64)
    return values.reshape(len(values), -1)[:, :1]
