"""Choose the ridge, the family scales and the targets of a path by cross-validated FAUC.

Where the rows are, in memory or in chunks, only the `CrossValidation` knows.

A path of stacks goes from the unconstrained stack to one whose out-of-fold decisions are past fair.

A stack is w₀ + U·λ. Its multipliers λ are given per unit of row weight, so that the same ones mean the same correction
for the stacks of the folds and for the stack of all rows. How far to go is told by out-of-fold decisions and their
standard errors, and the steps are measured in what changes decisions: the movement of the scores relative to their
distance from the threshold. A stack that is nearly fair has a tiny score bias; multiples of it would say nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.optimize._cross_validation import CrossValidation, Targets, Trial
from fairfrontier.optimize._ridge_path import RidgeSolution, evidence_of_directions, evidence_scales
from fairfrontier.optimize._statistics import StackStatistics
from fairfrontier.quantify._fauc import Weight, as_weight, fauc

Evaluate = Callable[[FloatArray], TradeoffPoints]
# Movements of the scores, relative to their distance from the threshold, at which the first scan looks on each side.
_SCAN = np.geomspace(0.01, 4.0, 36)
# Positions between the two ends at which the path is known in detail.
_NODES = 61
# Standard errors of a bias beyond which it counts as past fair: it is compared with that of other rows, which errs too.
_PAST = 2.5
# Rounds of corrections of several contrasts, and how far the path goes beyond the correction found.
_ROUNDS, _BEYOND = 12, 1.25
# Movement of the scores, relative to their distance from the threshold, over which a response is measured.
_DIFFERENCE = 0.15
# Weights of the squared movement of the scores against squared errors of the rates, and lengths of a step.
_RIDGES, _LENGTHS = np.array([1e-5, 1e-4, 1e-3, 1e-2]), np.array([1.0, 0.5, 0.2])
# Movements of the scores by plain steps, in proportion to the wanted change of the rates.
_MOVES = np.geomspace(0.02, 0.64, 6)
# Gap that a gain of accuracy is worth while several contrasts are corrected.
_EXCHANGE = 0.3


@dataclass(frozen=True, eq=False)
class Sweep:
    """What is known of a path between its ends.

    Attributes
    ----------
    target : ndarray of shape (q, m)
        Score biases of the stack of all rows, the unconstrained one first.
    out_of_fold : TradeoffPoints
        Out-of-fold points at each of them (those of the rows fitted to, without cross-validation), the constant last.
    refitted : TradeoffPoints or None
        Points of the stacks of all rows on those rows, the constant last.
    n_changed : ndarray of shape (q + 1, s) or None
        Rows of each row set on which these decide otherwise than the first of them, the constant last.
    variance : ndarray of shape (q + 1,) or None
        Those of the predictions of a regression; None: decisions.
    signal : float
        The share of the models' differences between row sets that rows not fitted to confirm; the rest is noise.
    """

    target: FloatArray
    out_of_fold: TradeoffPoints
    refitted: TradeoffPoints | None = None
    n_changed: FloatArray | None = None
    variance: FloatArray | None = None
    signal: float = 1.0


@dataclass(frozen=True, eq=False)
class Walk:
    """The nodes of a path, and the points of it that are kept.

    Attributes
    ----------
    multipliers : ndarray of shape (q, m)
        Of the nodes, per unit of row weight, the unconstrained stack's first.
    points, refitted : TradeoffPoints
        Out-of-fold points of the nodes, and those of the stacks of all rows on these rows, the constant last.
    placed : ndarray of shape (p, m)
        Multipliers of points along the path.
    """

    multipliers: FloatArray
    points: TradeoffPoints
    refitted: TradeoffPoints
    placed: FloatArray


def walk(
    evaluate: Evaluate,
    refitted: Evaluate,
    reach: FloatArray,
    size: FloatArray,
    *,
    variance: float | None,
    largest: float,
    n_points: int,
) -> Walk:
    """Return a path from the unconstrained stack to decisions that are past fair.

    Parameters
    ----------
    evaluate, refitted : callable
        From multipliers (q, m) to out-of-fold points, and to those of the stacks of all rows on these rows.
    reach : ndarray of shape (m, m)
        Q of `movement`.
    size : ndarray of shape (s,)
        Rows of each row set.
    variance : float or None
        That of the target for regression; None: decisions.
    largest : float
        The largest bias that counts; above it no point is needed but the unconstrained stack.
    n_points : int
        Points to keep.
    """
    origin = evaluate(np.zeros((1, len(reach))))
    errors = np.sort(standard_errors(origin, size, variance)[0])
    margin = _PAST * float(np.sqrt(np.square(errors[-2:]).sum()))
    multipliers = (
        _line(evaluate, reach, margin) if len(reach) == 1 else _corrected(evaluate, refitted, reach, size, origin)
    )
    points, of_all = evaluate(multipliers), refitted(multipliers)
    # Up to where a stack, of the folds or of all rows, is worse than the constant.
    good = np.ones(len(multipliers), dtype=bool)
    for found in (points, of_all):
        good[1:] &= found.accuracy[1:-1] >= found.accuracy[-1]
    end = len(good) if good.all() else int(np.argmin(good))
    kept = np.append(np.arange(end), len(good))
    multipliers, points, of_all = multipliers[:end], points.select(kept), of_all.select(kept)
    # A ratio's error is that of a rate in units of the rate.
    slack = margin if origin.sets.compares_differences else margin / max(float(origin.rates[0].max()), margin)
    places = place(towards_fair(points), largest + slack, n_points)
    return Walk(multipliers, points, of_all, interpolate(places, multipliers))


def movement(statistics: StackStatistics, solution: RidgeSolution, threshold: float | None) -> FloatArray:
    """Return Q (m, m): multipliers μ move scores by √(μᵀQμ) times their distance from the threshold, in mean squares.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the rows that the solution was fitted to, of the models that it uses.
    solution : RidgeSolution
        The solution.
    threshold : float or None
        Of the decisions; None: regression, where the distance is that from the mean.
    """
    gram = statistics.gram
    spread = float(solution.w0 @ gram @ solution.w0) / statistics.weight
    offset = 0.0 if threshold is None else statistics.mean_y - threshold
    distance = max(spread + offset**2, 1e-300)
    return np.asarray(statistics.weight * (solution.U.T @ gram @ solution.U) / distance)


def held_out_signal(validation: CrossValidation, trial: Trial) -> float:
    """Return how much of the movement of score bias along the directions is confirmed by rows not fitted to, in [0, 1].

    Notes
    -----
    S = BᵀU is that movement on the rows fitted to; with the contrasts of the held-out rows instead it has mean zero if
    the models' predictions do not depend on the row set at all, like a cross-validated R².
    """
    basis = validation.full.sets.basis()
    fitted = held_out = 0.0
    for part, solution in zip(validation.held_out, trial, strict=True):
        means = part.set_h / part.set_weight[:, None]
        fitted += float(np.trace(solution.S))
        held_out += float(np.sum((basis @ means).T * solution.U))
    return float(np.clip(held_out / fitted, 0.0, 1.0)) if fitted > 0 else 1.0


def standard_errors(points: TradeoffPoints, size: FloatArray, variance: Any) -> FloatArray:
    """Return the standard error of each rate, shape (k, s).

    Parameters
    ----------
    points : TradeoffPoints
        The rates.
    size : ndarray of shape (s,)
        Rows of each row set.
    variance : float, ndarray of shape (p,) or None
        That of the predictions of a regression, of all points or of each; None: rates are shares.
    """
    if variance is not None:
        return np.broadcast_to(np.sqrt(np.reshape(variance, (-1, 1)) / size), points.rates.shape)
    return errors_of_shares(points.rates, size)


def errors_of_shares(rates: FloatArray, size: FloatArray) -> FloatArray:
    """Return the standard errors of shares of `size` rows."""
    # A share of none or all is not known without error: two rows more, one of each kind.
    # Rates that were restored from probabilities of groups may lie outside [0, 1].
    share = (np.clip(rates, 0.0, 1.0) * size + 1.0) / (size + 2.0)
    return np.asarray(np.sqrt(share * (1.0 - share) / size))


def _line(evaluate: Evaluate, reach: FloatArray, margin: float) -> FloatArray:
    """Return nodes (q, 1) along the line of one contrast, in the direction in which the decisions become fair."""
    unit = 1.0 / np.sqrt(reach[0, 0]) if reach[0, 0] > 0 else 0.0
    positions = unit * np.concatenate([-_SCAN[::-1], [0.0], _SCAN])
    points = evaluate(positions[:, None])
    start = len(_SCAN)
    bias = points.bias[:-1, 0]
    # Where the start has no bias at all, the side is that of all others: names of groups must not decide it.
    sign = np.sign(bias[start]) or np.sign(bias.sum()) or 1.0
    ends = []
    # A positive multiplier raises the score bias, and nearly always the bias of the decisions with it.
    for side in (-sign, sign):
        way = np.arange(start, -1, -1) if side < 0 else np.arange(start, len(positions))
        ends.append(way[: _end(bias[way] * sign, points.accuracy[way], margin, float(points.accuracy[-1])) + 1])
    inside, other = ends
    if np.abs(bias[other]).min() < np.abs(bias[inside]).min() - margin:
        inside = other
    return _nodes(positions[inside], bias[inside] * sign)[:, None]


def _end(towards: FloatArray, accuracy: FloatArray, margin: float, floor: float) -> int:
    """Return the index at which a walk ends: past fair beyond the error, or at the first stack worse than the constant.

    Notes
    -----
    The scan is coarse: between its last stack worth having and the first that is not there may be fairer ones.
    `walk` cuts the nodes exactly.
    """
    past = np.flatnonzero(towards <= -margin)
    end = int(past[0]) if len(past) else len(towards) - 1
    worse = np.flatnonzero(accuracy[1:] < floor) + 1
    return min(end, int(worse[0])) if len(worse) else end


def _nodes(positions: FloatArray, towards: FloatArray) -> FloatArray:
    """Return positions between the ends, half of their density where the bias changes, half evenly."""
    if len(positions) == 1:
        return positions
    change = -np.diff(np.minimum.accumulate(towards))
    even = np.abs(np.diff(positions))
    density = even / max(float(even.sum()), 1e-300) + change / max(float(change.sum()), 1e-300)
    length = np.concatenate([[0.0], np.cumsum(density)])
    return np.interp(np.linspace(0.0, length[-1], _NODES), length, positions)


def place(gap: FloatArray, largest: float, n_points: int) -> FloatArray:
    """Return `n_points` places on a path, ascending, as fractional indices of its nodes.

    Parameters
    ----------
    gap : ndarray of shape (q,)
        The bias at each node, counted towards fair: positive at the first, negative beyond fair.
    largest : float
        Bias above which nothing counts.
    n_points : int
        How many places.

    Notes
    -----
    The first is the unconstrained stack. The others are equally spaced in the bias, from the largest that counts to the
    end.
    """
    index = np.arange(len(gap), dtype=np.float64)
    if n_points == 1 or len(gap) == 1:
        return np.zeros(n_points)
    # On the way the bias should fall; what rises there is noise.
    falling = np.minimum.accumulate(gap)
    start = int(np.clip(np.searchsorted(-falling, -largest) - 1, 0, len(gap) - 2))
    length = np.concatenate([[0.0], np.cumsum(-np.diff(falling[start:]) + 1e-4)])
    first = [0.0] if start > 0 else []
    inner = np.interp(np.linspace(0.0, length[-1], n_points - len(first)), length, index[start:])
    return np.concatenate([first, inner])


def interpolate(places: FloatArray, values: FloatArray) -> FloatArray:
    """Return rows of `values` (q, …) at fractional indices."""
    low = np.clip(np.floor(places).astype(np.intp), 0, len(values) - 1)
    high = np.minimum(low + 1, len(values) - 1)
    share = (places - low).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray((1.0 - share) * values[low] + share * values[high])


def towards_fair(points: TradeoffPoints) -> FloatArray:
    """Return the bias (q,) of a path's points, the constant left out: signed with one contrast, else the largest."""
    gap = points.sets.largest_gap(points.rates[:-1])
    if points.sets.n_contrasts == 1:
        sign = np.sign(points.bias[:-1, 0])
        # A path that begins without bias goes beyond fair: names of groups must not decide which side that is.
        some = sign[sign != 0]
        first = sign[0] or (-some[-1] if len(some) else 1.0)
        return np.asarray(gap * sign * first)
    return gap


def _corrected(
    evaluate: Evaluate, refitted: Evaluate, reach: FloatArray, size: FloatArray, origin: TradeoffPoints
) -> FloatArray:
    """Return nodes (q, m) on the way to decisions fair on all contrasts, each row set corrected as far as it needs.

    Notes
    -----
    Pairs of g row sets have g(g − 1)/2 multipliers but only g − 1 directions. So each row set has a bonus ν instead,
    and the multiplier of a pair is (νᵢ − νⱼ)/g (`RowSets.basis` has other coordinates for many sets). The response J of
    the rates to the bonuses is measured around the unconstrained stack. Regularised least-squares steps with it towards
    equal rates are repeated from the best bonuses so far, with J corrected by what each step did (Broyden). What is
    best is judged out of fold and by the stack of all rows, by the worse of the two.

    Where few rows are near the threshold, J is measured on hardly any decisions, and its steps may lead nowhere or end
    too early. So the search goes on from there with plain steps beside them. The path leads straight to where the
    first search ended, on to where the second did, and a little beyond.
    """
    sets, floor = origin.sets, float(origin.accuracy[-1])
    spread = _bonus_to_multipliers(sets)

    def judged(bonus: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean rates (c, s) and the merit of bonuses (c, s)."""
        both = [one(bonus @ spread.T) for one in (evaluate, refitted)]
        gap = np.max([sets.largest_gap(one.rates[:-1]) for one in both], axis=0)
        accuracy = both[0].accuracy[:-1]
        merit = np.where(accuracy >= floor, gap - _EXCHANGE * accuracy, np.inf)
        return (both[0].rates[:-1] + both[1].rates[:-1]) / 2.0, merit

    quadratic = spread.T @ reach @ spread
    response = _response(evaluate, spread, quadratic)
    knots = [np.zeros(len(size))]
    for moves in (np.zeros(0), _MOVES):
        knots.append(_best_bonus(judged, knots[-1], response, quadratic, sets, size, moves))
    return _through(np.stack([*knots, _BEYOND * knots[-1]]), quadratic) @ spread.T


def _best_bonus(
    judged: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    best: FloatArray,
    response: FloatArray,
    quadratic: FloatArray,
    sets: RowSets,
    size: FloatArray,
    moves: FloatArray,
) -> FloatArray:
    """Return the best bonuses (s,) found from `best` on, by steps with the response and plain ones of given lengths."""
    # Bonuses that move nothing (those of a whole block; with one model all but one direction) are left out: their
    # rounding would grow from round to round.
    values, vectors = np.linalg.eigh(quadratic)
    moving = vectors[:, values > 1e-9 * max(float(values[-1]), 1e-300)]
    penalty = moving.T @ quadratic @ moving
    rates, merit = (value[0] for value in judged(best[None]))
    for _ in range(_ROUNDS):
        change = _equal(rates, size, sets) - rates
        steps = np.stack([moving @ _step(response @ moving, ridge * penalty, size, change) for ridge in _RIDGES])
        towards = moving @ (moving.T @ change)
        unit = towards / max(_length(towards, quadratic), 1e-300)
        tried = best + np.vstack([(_LENGTHS[:, None, None] * steps).reshape(-1, len(size)), moves[:, None] * unit])
        found, merits = judged(tried)
        i = int(np.argmin(merits))
        move = tried[i] - best
        response = response + np.outer(found[i] - rates - response @ move, move) / max(float(move @ move), 1e-300)
        if merits[i] >= merit - 1e-4:
            break
        best, rates, merit = tried[i], found[i], merits[i]
    return best


def _length(bonus: FloatArray, quadratic: FloatArray) -> float:
    """Return how far bonuses (s,) move the scores."""
    return float(np.sqrt(max(float(bonus @ quadratic @ bonus), 0.0)))


def _through(knots: FloatArray, quadratic: FloatArray) -> FloatArray:
    """Return bonuses (q, s) at even distances on the straight lines from knot to knot."""
    along = np.append(0.0, np.cumsum([_length(step, quadratic) for step in np.diff(knots, axis=0)]))
    places = np.linspace(0.0, along[-1], _NODES)
    return np.column_stack([np.interp(places, along, column) for column in knots.T])


def _bonus_to_multipliers(sets: RowSets) -> FloatArray:
    """Return the matrix (q, s) from a bonus of each row set to the multipliers of the directions.

    Where all are compared with a reference, the multiplier of a set is its bonus minus the mean of its block: the net
    effect on each set is the same.
    """
    size, level = np.empty(len(sets.names)), np.zeros((len(sets.names), len(sets.names)))
    for block in map(list, sets.blocks):
        size[block] = len(block)
        level[np.ix_(block, block)] = 1.0 / len(block)
    if sets.reference:
        return np.asarray((np.eye(len(size)) - level)[sets.pairs()[:, 0]])
    return sets.basis() / size


def _response(evaluate: Evaluate, spread: FloatArray, quadratic: FloatArray) -> FloatArray:
    """Return J (s, s): the change of each rate with the bonus of each row set, by central differences."""
    size = np.sqrt(np.maximum(np.diag(quadratic), 1e-300))
    step = np.diag(np.where(size > 1e-100, _DIFFERENCE / size, 0.0))
    found = evaluate(np.vstack([step, -step]) @ spread.T).rates[:-1]
    up, down = found[: len(step)], found[len(step) :]
    width = 2.0 * np.diag(step)
    return np.asarray(np.divide(up - down, width[:, None], out=np.zeros_like(up), where=width[:, None] > 0).T)


def _step(response: FloatArray, ridge: FloatArray, size: FloatArray, change: FloatArray) -> FloatArray:
    """Return the step (r,) that brings a wanted change of the rates with little movement; small sets count less."""
    weighted = response.T * (size / size.mean())
    normal = weighted @ response + ridge
    normal[np.diag_indices_from(normal)] += 1e-9 * max(float(np.trace(normal)), 1e-300)
    return np.asarray(np.linalg.solve(normal, weighted @ change))


def _equal(rates: FloatArray, size: FloatArray, sets: RowSets) -> FloatArray:
    """Return the rates (s,) with those of each block at their mean."""
    wanted = rates.copy()
    for block in map(list, sets.blocks):
        wanted[block] = np.average(rates[block], axis=0, weights=size[block])
    return wanted


# Targets of the signed path at which tuning looks, as shares of the unconstrained score bias: from that stack to twice
# its bias on the other side.
SHARES_OF_BIAS = np.linspace(1.0, -2.0, 61)
# Ridge scale of columns that are not shrunk: the sensitive attributes of an attribute-aware stack.
FREE = 1e-3
# What the accuracy without a constraint counts beside FAUC where a ridge is chosen. FAUC hardly depends on the ridge,
# and a weight that only counts fair models would let the first stack of the path be anything.
_ACCURATE = 0.1
# Ridges that are tried, as multiples of the one of the largest evidence, which for labels 0 and 1 is rather too small.
EVIDENCE_FACTORS = np.array([0.3, 1.0, 3.0, 10.0, 30.0])


@dataclass(frozen=True, eq=False)
class Tuning:
    """What cross-validation chose.

    Attributes
    ----------
    alpha : float
        The ridge.
    scale : ndarray of shape (k,)
        D, the relative ridge scale of each model.
    debias : ndarray of shape (k,) or None
        The penalty of each model in the directions U; None: that of w₀.
    statistics : StackStatistics
        The moments of all rows.
    signal : float
        How much of the differences between row sets held-out rows confirm.
    points : TradeoffPoints or None
        Out-of-fold points of the paper's path, or on the ray at which tuning looks, the constant model last; None: the
        rows have no folds.
    evaluate : callable or None
        From multipliers to out-of-fold points on the signed path.
    reach : ndarray of shape (m, m) or None
        Q of `movement` on the signed path.
    tried : dict of str to float
        The best cross-validated FAUC with each choice of family scales.
    """

    alpha: float
    scale: FloatArray
    debias: FloatArray | None
    statistics: StackStatistics
    signal: float = 1.0
    points: TradeoffPoints | None = None
    evaluate: Evaluate | None = None
    reach: FloatArray | None = None
    tried: dict[str, float] = field(default_factory=dict)


def tune(
    validation: CrossValidation,
    *,
    alphas: FloatArray,
    family_of: IntArray,
    family_scales: Any,
    path: str,
    penalties: FloatArray,
    weight: Weight | Callable[[float], float] | None,
    threshold: float | None = 0.5,
    group: IntArray | None = None,
    free: float = FREE,
) -> Tuning:
    """Choose alpha, scales and targets by cross-validated FAUC.

    Parameters
    ----------
    validation : CrossValidation
        The folds.
    alphas : ndarray of shape (a,)
        The ridges to try.
    family_of : ndarray of shape (k,)
        The family of each model; −1: in every candidate, hardly shrunk.
    family_scales : "cv" or ndarray of shape (k,)
        "cv" tries one common ridge and, with several families, the scales of the largest evidence; on the signed path
        the directions then have their own ridge of the largest evidence.
    path : {"signed", "paper"}
        The kind of path.
    penalties : ndarray of shape (p,)
        The penalties λ of the paper's path.
    weight : Weight, callable or None
        The weight of the FAUC.
    threshold : float or None
        Of the decisions; None: regression.
    group : ndarray of shape (k,), optional
        What each model of the attribute predicts, −1 for every other model: the directions of the signed path are
        shrunk towards the former.
    free : float
        Ridge scale of columns that are hardly shrunk.

    Returns
    -------
    Tuning
        The best choice.
    """
    full, signed, tuned = validation.full, path == "signed", isinstance(family_scales, str)
    # Columns that are in every candidate are a family of their own.
    n_families, free_columns = int(family_of.max()) + 1, family_of < 0
    numbered = np.where(free_columns, n_families, family_of)
    candidates = [("given", family_scales, alphas)]
    if tuned:
        candidates = [("common", np.where(free_columns, free, 1.0), alphas)]
    if tuned and n_families > 1:
        evidence = evidence_scales(full, numbered, n_families)
        scale = np.where(free_columns, free, evidence.scale)
        candidates.append(("evidence", scale, evidence.alpha * EVIDENCE_FACTORS))
    # The published path has one ridge for everything, and so has a stack whose scales are given.
    of_group = group if signed else None
    debias = evidence_of_directions(full, numbered, of_group, n_families) if signed and tuned else None
    trials = [validation.trials(scale, grid, debias, of_group) for _, scale, grid in candidates]
    # All at once: where the rows are on a disk, one pass over them evaluates every trial.
    evaluated = iter(validation.values(list(chain(*trials)), _targets(path, penalties)))
    tried: dict[str, float] = {}
    best: dict[float, tuple[Trial, FloatArray, TradeoffPoints]] = {}
    for (name, scale, _), of_name in zip(candidates, trials, strict=True):
        points = [next(evaluated) for _ in of_name]
        curves = [one.frontier() for one in points]
        smooth = _smooth(np.array([fauc(curve, weight) for curve in curves]))
        accurate = _smooth(np.array([curve.accuracy[0] for curve in curves]))
        # Rounded, so that equals are equal whatever the order of the sums behind them.
        merit = (smooth + (_ACCURATE if signed else 0.0) * accurate).round(12)
        i = int(np.flatnonzero(merit == merit.max())[-1])  # of equals the most regularised
        tried[name] = float(smooth[i].round(12))
        best.setdefault(float(merit[i]), (of_name[i], scale, points[i]))  # of equals the simplest
    trial, scale, final = best[max(best)]
    found = Tuning(trial[0].alpha, scale, debias, full, points=final, tried=tried)
    found = replace(found, signal=held_out_signal(validation, trial))
    if not signed:
        return found
    evaluate = validation.rows.along(trial, folds=True)
    return replace(found, evaluate=evaluate, reach=movement(validation.train[0], trial[0], threshold))


def _targets(path: str, penalties: FloatArray) -> Targets:
    """Return the function from a solution to the targets (p, m) at which it is tried."""
    if path == "paper":
        return lambda solution: solution.target_for_lambda(penalties)
    return lambda solution: SHARES_OF_BIAS[:, None] * solution.b0


def target_variance(statistics: StackStatistics, threshold: float | None) -> float | None:
    """Return the variance of the target of a regression; None: there is a threshold, and decisions."""
    return statistics.y_square / statistics.weight if threshold is None else None


def largest_bias(weight: Weight | Callable[[float], float] | None) -> float:
    """Return the largest bias that the weight counts."""
    levels = np.linspace(0.0, 1.0, 201)
    least = max(int(np.searchsorted(as_weight(weight).cumulative(levels), 0.0, side="right")) - 1, 0)
    return 1.0 - float(levels[least])


def _smooth(values: FloatArray) -> FloatArray:
    """Average each value with its neighbours: FAUC is a noisy function of alpha, its mean is a smooth one."""
    if len(values) < 3:
        return values
    padded = np.pad(values, 1, mode="edge")
    return np.asarray((padded[:-2] + 2.0 * padded[1:-1] + padded[2:]) / 4.0)
