"""An honest frontier: models chosen on one part of the rows, evaluated on another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.identify._points import TradeoffPoints, points_from_rates
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import COMPARISONS, Fairness
from fairfrontier.quantify._bootstrap import Block, Sample, sample, weighted


def honest_taf(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    n_splits: int = 5,
    n_repeats: int = 4,
    random_state: Any = None,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
) -> TAFCurve:
    """Compute what a frontier chosen on data like these delivers on new rows.

    Parameters
    ----------
    y_true, y_preds, sensitive_features
        As in `tradeoff_points`.
    n_splits : int
        The number of parts of the rows; the models that all parts but one choose are evaluated on that one, in turn.
    n_repeats : int
        The number of times that the rows are split anew; the curves are averaged.
    random_state : int, numpy.random.Generator or None
        Fixes the splits.
    fairness, accuracy, threshold, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`; `fairness` and `accuracy` must not be functions.

    Returns
    -------
    TAFCurve
        A step curve, the average over all splits. `support` holds every model that was ever chosen and `mixture` the
        share of splits that chose it at each knot.

    Notes
    -----
    A frontier that is evaluated on the rows that chose it promises too much: of many models whose noise differs, those
    with lucky noise win. In the simulations of ``results/coverage.md`` the promised FAUC (80 % step weight) of 200
    models of different quality is 0.009 above what the chosen ones deliver in the population with 1,000 test rows, and
    0.001 with 12,000; of 100 equally good models 0.027 and 0.008. The honest curve's promise is off by less than a
    fifth of that in seven of eight settings; in the last one, 8 models and 12,000 rows, both are below 0.0003, which is
    too small to compare.

    What models deliver means here the area under the TAF that they have in the population. If each model is used at
    the level for which it was chosen, the result is lower, and the honest curve is too high for that use.

    The honest curve does not estimate the best frontier of the population, which cannot be chosen from finitely many
    rows; it lies a little below it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairfrontier import fauc, fauc_score
    >>> rng = np.random.default_rng(0)
    >>> y, sex = rng.random(300) < 0.5, rng.choice(["f", "m"], 300)
    >>> coins = rng.random((300, 200))  # no model is better than a coin
    >>> bool(fauc(honest_taf(y, coins, sensitive_features=sex, random_state=0)) < 0.55)
    True
    >>> fauc_score(y, coins, sensitive_features=sex) > 0.57
    True
    """
    data = sample(
        y_true,
        y_preds,
        sensitive_features=sensitive_features,
        fairness=fairness,
        accuracy=accuracy,
        threshold=threshold,
        sensitive_mode=sensitive_mode,
        sample_weight=sample_weight,
        include_constant=include_constant,
    )
    parts = validate.whole_number(n_splits, parameter="n_splits", low=2, high=data.n_rows)
    repeats = validate.whole_number(n_repeats, parameter="n_repeats", low=1)
    generator = np.random.default_rng(random_state)
    held_out = np.concatenate([_parts(data, parts, generator) for _ in range(repeats)])
    _check_sets(data, held_out, parts)
    chosen, evaluated = weighted(data, 1.0 - held_out), weighted(data, held_out)
    return _average([_choose(_points(data, chosen, j), _points(data, evaluated, j)) for j in range(len(held_out))])


def honest_curve(chosen: TradeoffPoints, evaluated: TradeoffPoints) -> TAFCurve:
    """Evaluate a frontier that was chosen on other rows.

    Parameters
    ----------
    chosen : TradeoffPoints
        The models on the rows that choose.
    evaluated : TradeoffPoints
        The same models, in the same order, on other rows.

    Returns
    -------
    TAFCurve
        The step curve through the chosen models at their values on the second rows; `support` indexes the models.

    Notes
    -----
    The models keep the order in which they were chosen, and the contrast that is worst on the choosing rows is the one
    that is measured on the others: no maximum is taken twice. The curve steps at the promised levels, moved together
    by the average shortfall of the models' fairness: moving each level by its own noise would cut off what lies above 1
    and keep what lies below. Where noise breaks the order of the accuracies, neighbours are averaged (isotonic
    regression), which keeps the area.

    Examples
    --------
    >>> from fairfrontier import tradeoff_points
    >>> y, sex = [0, 1, 0, 1], ["f", "f", "m", "m"]
    >>> first = tradeoff_points(y, {"a": [0, 1, 0, 1]}, sensitive_features=sex)
    >>> second = tradeoff_points(y, {"a": [0, 1, 0, 0]}, sensitive_features=sex)
    >>> honest_curve(first, second)
    TAFCurve(1 knots, step; accuracy 0.7500 at fairness 1.0000 to 0.7500 at 1.0000)
    """
    if chosen.names != evaluated.names:
        raise InvalidInputError("evaluated must hold the same models as chosen, in the same order; their names differ")
    return _average([_choose(chosen, evaluated)])


def honest_curve_of_bias(
    chosen_accuracy: FloatArray, chosen_bias: FloatArray, accuracy: FloatArray, bias: FloatArray
) -> TAFCurve:
    """Return the curve of `honest_curve` from arrays, for a measure with one contrast.

    Parameters
    ----------
    chosen_accuracy, chosen_bias : ndarray of shape (k,)
        Accuracy and signed bias of the models on the rows that choose.
    accuracy, bias : ndarray of shape (k,)
        The same on the rows on which the choice is evaluated.
    """
    promised = np.clip(1.0 - np.abs(chosen_bias), 0.0, 1.0)
    models = taf_curve(promised, chosen_accuracy).support
    # In the direction of the bias that the choice saw: a bias that changes its sign is no shortfall, nor is one of a
    # model that had none.
    gap = np.sign(chosen_bias[models]) * bias[models]
    return _average([_Choice(models, promised[models], 1.0 - gap, accuracy[models])])


@dataclass(frozen=True, eq=False)
class _Choice:
    """Models chosen on some rows, ascending in promised fairness, and their values on other rows; arrays (q,)."""

    models: IntArray
    promised_fairness: FloatArray
    fairness: FloatArray
    accuracy: FloatArray

    def height(self, ends: FloatArray) -> FloatArray:
        """Return the height of each step, which never rises; a step ends where `ends` says."""
        width = np.maximum(np.diff(ends, prepend=0.0), 1e-12)
        return np.asarray(scipy.optimize.isotonic_regression(self.accuracy, weights=width, increasing=False).x)

    @property
    def drop(self) -> FloatArray:
        """How much of the curve's height ends at each model."""
        height = self.height(self.promised_fairness)
        return np.asarray(height - np.append(height[1:], 0.0))


def _choose(chosen: TradeoffPoints, evaluated: TradeoffPoints) -> _Choice:
    models = chosen.frontier().support
    return _Choice(
        models,
        chosen.fairness[models],
        1.0 - _same_gap(chosen, evaluated, models),
        evaluated.accuracy[models],
    )


def _same_gap(chosen: TradeoffPoints, evaluated: TradeoffPoints, models: IntArray) -> FloatArray:
    """Return, on the second rows, the contrast that is the worst of each model on the first."""
    gaps = np.full(len(models), -1.0)
    result = np.zeros(len(models))
    every = np.arange(len(models))
    bias = COMPARISONS[chosen.sets.comparison].bias
    before, after = chosen.rates[models], evaluated.rates[models]
    for low, high in chosen.sets.extreme_pairs(before):
        gap = bias(before[every, low], before[every, high])
        result = np.where(gap > gaps, bias(after[every, low], after[every, high]), result)
        gaps = np.maximum(gaps, gap)
    return result


def _average(choices: Sequence[_Choice]) -> TAFCurve:
    """Return the average, level by level, of the step curves of all choices."""
    shift = _shortfall(choices)
    ends = [_moved(choice.promised_fairness, shift) for choice in choices]
    levels = np.unique(np.concatenate(ends))
    models = np.unique(np.concatenate([choice.models for choice in choices]))
    total, share = np.zeros(len(levels)), np.zeros((len(levels), len(models)))
    for end, choice in zip(ends, choices, strict=True):
        height = choice.height(end)
        at = np.searchsorted(end, levels, side="left")
        within = np.flatnonzero(at < len(end))
        total[within] += height[at[within]]
        share[within, np.searchsorted(models, choice.models[at[within]])] += 1.0
    return TAFCurve(levels, total / len(choices), models, mixture=share / len(choices))


def _shortfall(choices: Sequence[_Choice]) -> float:
    """Return by how much the models are fairer on the other rows than promised (as a rule less fair: negative)."""
    promised = np.concatenate([choice.promised_fairness for choice in choices])
    found = np.concatenate([choice.fairness for choice in choices])
    # The area under the curve changes by drop · shift, and a perfectly fair model has nothing to fall short of.
    weight = np.concatenate([choice.drop for choice in choices]) * (promised < 1.0)
    return float(weight @ (found - promised) / weight.sum()) if weight.sum() > 0 else 0.0


def _moved(fairness: FloatArray, shift: float) -> FloatArray:
    return np.where(fairness < 1.0, np.clip(fairness + shift, 0.0, 1.0), 1.0)


def _points(data: Sample, block: Block, part: int) -> TradeoffPoints:
    return points_from_rates(block.rates[part].T, data.sets, block.accuracy[part], data.points.names)


def _parts(data: Sample, parts: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Return 1 where a row (in cell order) is in a part, shape (parts, n); cells are spread evenly over parts."""
    if data.person is not None:
        part = generator.permutation(int(data.person.max()) + 1) % parts
        return np.asarray(np.equal.outer(np.arange(parts), part[data.person]), dtype=np.float32)
    bounds = data.bounds()
    part_of_row = np.empty(data.n_rows, dtype=np.intp)
    start = int(generator.integers(parts))
    for first, stop in pairwise(bounds):
        part_of_row[first + generator.permutation(stop - first)] = (start + np.arange(stop - first)) % parts
        start += stop - first
    held_out: NDArray[np.float32] = np.equal.outer(np.arange(parts), part_of_row).astype(np.float32)
    return held_out


def _check_sets(data: Sample, held_out: NDArray[np.float32], parts: int) -> None:
    rows = np.add.reduceat(held_out, data.bounds()[:-1], axis=1, dtype=np.float64) @ data.contrasts.membership.T
    if rows.min() < 1:
        name = data.sets.names[int(np.argmin(rows.min(axis=0)))]
        raise GroupError(
            f"n_splits={parts} leaves a part without any row of the row set {name!r}; use fewer splits, or merge small "
            "groups"
        )
