"""The library against the references, verb by verb."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tools.random_problems import references as ref
from tools.random_problems.problems import Problem
from tools.random_problems.tally import Tally

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError

# Sums of at most 40 numbers; a signed hull of several contrasts comes from a solver that works to 1e-7.
EXACT, ROUNDED, SOLVER = 0.0, 1e-12, 1e-6
# Between two knots that nearly coincide rounding decides which of them an area belongs to: at most √(10⁻¹⁶) of it.
LINEAR = 2e-8


def check(problem: Problem, index: int, tally: Tally) -> ff.TradeoffPoints | None:
    """Value the models of a problem, draw its curves and integrate them; return its points, None if undefined."""
    points = _points(problem, tally)
    if points is None:
        return None
    rng = np.random.default_rng(index)
    levels = np.unique(np.concatenate([rng.random(4), points.fairness, [0.0, 1.0]]))
    # With several contrasts a signed hull is some linear programs, which would take most of the time.
    kinds = (False, True, "signed") if points.bias.shape[1] == 1 or index % 2 == 0 else (False, True)
    curves = {kind: points.frontier(kind) for kind in kinds}
    _step(points, curves[False], levels, tally)
    _hull(points, curves[True], levels, tally)
    if "signed" in curves:
        _signed(points, curves, levels, tally)
    _areas(points, curves, rng, tally)
    if index % 5 == 0:
        _mixture(points, curves, rng, tally)
    if index % 3 == 0 and len(points.attribute_fairness) == 2:
        fairness = np.stack(list(points.attribute_fairness.values()), axis=1)
        expected = ref.volume(fairness, points.accuracy)
        tally.compare(
            "composite FAUC = grid sum", ff.composite_fauc(fairness, points.accuracy), expected, tolerance=ROUNDED
        )
    if index % 50 == 0:
        _interval(problem, points, tally)
    return points


def _points(problem: Problem, tally: Tally) -> ff.TradeoffPoints | None:
    """Compare the points; a problem without an answer must be refused, and only such a one."""
    try:
        expected = ref.points(problem)
    except ref.Undefined as reason:
        expected, why = None, str(reason)
    try:
        points = ff.tradeoff_points(problem.y, problem.scores, **problem.options())
    except (GroupError, InvalidInputError):
        tally.demand("refused where undefined", expected is None)
        tally.refused[why if expected is None else "wrongly"] += 1
        return None
    tally.demand("refused where undefined", expected is not None)
    if expected is None:
        return None
    size = max(1.0, float(np.abs(points.rates).max()))
    found = np.sort(points.rates[:-1].T, axis=0)
    tally.compare("rates = loop", found, np.sort(np.vstack(expected.rates), axis=0), tolerance=ROUNDED, scale=size)
    tally.compare("fairness = loop", points.fairness[:-1], expected.fairness, tolerance=ROUNDED, scale=size)
    # The squared error of scores around 100 loses digits in both.
    tolerance = ROUNDED if problem.accuracy in ("accuracy", "balanced_accuracy") else 1e-9
    tally.compare(
        f"{problem.accuracy} = loop", points.accuracy[:-1], np.clip(expected.accuracy, 0.0, 1.0), tolerance=tolerance
    )
    constant = [points.fairness[-1], points.accuracy[-1]]
    tally.compare("constant model", constant, [1.0, ref.constant_accuracy(problem)], tolerance=ROUNDED)
    return points


def _step(points: ff.TradeoffPoints, curve: ff.TAFCurve, levels: np.ndarray, tally: Tally) -> None:
    tally.compare(
        "support = Algorithm 1", curve.support, ref.algorithm_1(points.fairness, points.accuracy), tolerance=EXACT
    )
    expected = [ref.taf(points.fairness, points.accuracy, level) for level in levels]
    tally.compare("TAF = Definition 2", curve(levels), expected, tolerance=EXACT)


def _hull(points: ff.TradeoffPoints, curve: ff.TAFCurve, levels: np.ndarray, tally: Tally) -> None:
    expected = [ref.tafi(points.fairness, points.accuracy, level) for level in levels]
    tally.compare("TAFI = hull from all pairs", curve(levels), expected, tolerance=1e-11)


def _signed(points: ff.TradeoffPoints, curves: dict[Any, ff.TAFCurve], levels: np.ndarray, tally: Tally) -> None:
    curve, bias = curves["signed"], points.bias
    inside = levels[(levels > 1e-6) & (levels < 1 - 1e-6)]
    if bias.shape[1] == 1:
        expected = [ref.signed_one(bias[:, 0], points.accuracy, level) for level in inside]
        tally.compare("signed hull = all pairs", curve(inside), expected, tolerance=1e-9)
    else:
        chosen = inside[:: max(1, len(inside) // 2)]
        expected = [ref.signed_many(bias, points.accuracy, level) for level in chosen]
        tally.compare("signed hull = linear program", curve(chosen), expected, tolerance=SOLVER)
    if np.abs(bias).max() <= 1.0:  # above that fairness stops at 0 and is no longer 1 − |bias|
        shortfall = np.maximum(curves[True](inside) - curve(inside), 0.0)
        tally.compare("signed hull ≥ TAFI", shortfall, np.zeros(len(inside)), tolerance=SOLVER)


WEIGHTS: dict[str, tuple[Any, Callable[[float], float], list[float]]] = {
    "uniform": (None, lambda x: 1.0, []),
    "step": (ff.StepWeight(0.8), lambda x: float(x > 0.8), [0.8]),
    "power": (ff.PowerWeight(3, 0.25), lambda x: x**3 * (x > 0.25), [0.25]),
    "table": (
        ff.TabulatedWeight([0.1, 0.5, 1.0], [0.0, 2.0, 1.0]),
        lambda x: np.interp(x, [0.1, 0.5, 1.0], [0, 2, 1]) * (x >= 0.1),
        [0.1, 0.5],
    ),
    "function": (lambda x: 1.0 + x, lambda x: 1.0 + x, []),
}


def _areas(points: ff.TradeoffPoints, curves: dict[Any, ff.TAFCurve], rng: np.random.Generator, tally: Tally) -> None:
    fairness, values = points.fairness, points.accuracy
    name = str(rng.choice(list(WEIGHTS)))
    weight, density, breaks = WEIGHTS[name]
    # Levels that rounding tells apart would make pieces in which a quadrature finds nothing.
    at = np.concatenate([fairness, breaks])
    step = ref.area(lambda x: ref.taf(fairness, values, x), density, at)
    tally.compare(f"FAUC = quadrature ({name})", ff.fauc(curves[False], weight), step, tolerance=1e-11)
    hull = ref.area(curves[True], density, at)
    tally.compare("FAUCI = quadrature", ff.fauc(curves[True], weight), hull, tolerance=LINEAR)
    if "signed" in curves:
        signed = ref.area(curves["signed"], density, np.concatenate([curves["signed"].fairness, breaks]))
        tally.compare("signed area = quadrature", ff.fauc(curves["signed"], weight), signed, tolerance=LINEAR)
    level = float(rng.choice(fairness))
    at_level = ff.fauc(curves[False], ff.PointWeight(level))
    tally.compare("FAUC (point) = TAF", at_level, ref.taf(fairness, values, level), tolerance=ROUNDED)


def _mixture(points: ff.TradeoffPoints, curves: dict[Any, ff.TAFCurve], rng: np.random.Generator, tally: Tally) -> None:
    """The probabilities of a mixture give what its curve promises."""
    for curve in (curves[kind] for kind in curves if kind):
        level = float(rng.uniform(0, curve.fairness[-1]))
        models = [(name, None) for name in points.names]
        constants = dict.fromkeys(points.names, 0)
        mixture = ff.RandomizedMixture.from_curve(
            curve, models, min_fairness=level, secret=b"sixteen bytes and", constants=constants
        )
        index = [points.names.index(name) for name in mixture.names]
        tally.compare(
            "mixture's accuracy = curve", mixture.probabilities @ points.accuracy[index], curve(level), tolerance=SOLVER
        )
        bias = mixture.probabilities @ points.bias[index]
        if np.abs(points.bias).max() <= 1.0:
            too_much = max(float(np.abs(bias).max()) - (1.0 - level), 0.0)
            tally.compare("mixture's bias within bound", too_much, 0.0, tolerance=SOLVER)


def _interval(problem: Problem, points: ff.TradeoffPoints, tally: Tally) -> None:
    """The bootstrap's own sums: its estimate is FAUC, its replicates are areas."""
    weight = ff.StepWeight(0.5)
    found = ff.fauc_interval(
        problem.y, problem.scores, weight=weight, n_resamples=50, method="bayesian", random_state=0, **problem.options()
    )
    tally.compare("interval's estimate = FAUC", found.estimate, ff.fauc(points.frontier(), weight), tolerance=ROUNDED)
    samples = found.samples
    tally.demand("interval in order", 0.0 <= found.low <= found.high <= 1.0 and bool(np.isfinite(samples).all()))
