"""The bootstrap of FAUC, which is a maximum over models: its replicates, extrapolated to no noise, and their errors.

`Area` is FAUC of many replicates at once; `contenders` and `gather` say which models matter to it. Where it is no
smooth function of the points, `Deviations` bound every point instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray, interpolation
from fairfrontier.identify._frontier import TAFCurve, frontier_of, taf_curve
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.quantify._bootstrap import METHODS, Block, Sample, replicates
from fairfrontier.quantify._fauc import CallableWeight, Weight, as_weight, fauc

Interpolate = bool | Literal["signed"]
# A weight that is a plain function is integrated once, up to this many levels; between them its integral is
# interpolated.
_TABLE_LEVELS = 4097
# Points are not moved if in some direction more than this share of their spread (as a standard deviation) is true.
_LARGEST_TRUE_SHARE = 0.98


class Area:
    """FAUC (or FAUCI, or the area under the signed hull) as a function of a block of replicates.

    Parameters
    ----------
    sets : RowSets
        How rates are compared.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all levels equally.
    interpolate : {False, True, "signed"}
        As in `fauc_score`. With False all replicates are computed together, the hulls one after the other.
    """

    def __init__(
        self, sets: RowSets, weight: Weight | Callable[[float], float] | None, interpolate: Interpolate
    ) -> None:
        self.sets, self.interpolate = sets, interpolation(interpolate)
        self.weight = as_weight(weight)
        # With several contrasts a signed hull takes tens of linear programs, with ratios each hull does.
        programs = interpolate == "signed" and sets.n_contrasts > 1
        of_ratios = bool(interpolate) and not sets.compares_differences
        self.slow = programs or of_ratios
        # A dominated model may have a part in a mixture that is on the hull.
        self.any_model = interpolate == "signed" or of_ratios
        levels = np.linspace(0.0, 1.0, _TABLE_LEVELS)
        mass = self.weight.normalized(levels)
        # The distance between the levels below which a quarter and three quarters of the weight lie.
        first, last = levels[np.minimum(np.searchsorted(mass, (0.25, 0.75)), _TABLE_LEVELS - 1)]
        self.spread = float(last - first)
        self._table: tuple[FloatArray, FloatArray] | None = None
        if isinstance(self.weight, CallableWeight) and not interpolate:
            self._table = levels, mass

    def __call__(self, block: Block) -> FloatArray:
        """Return the area of each replicate, shape (b,)."""
        if self.interpolate:
            return np.array([fauc(curve, self.weight) for curve in self._curves(block)])
        fairness = self.sets.fairness(block.rates)
        order = np.argsort(-fairness, axis=1)
        mass = self._normalized(np.take_along_axis(fairness, order, axis=1))
        best = np.maximum.accumulate(np.take_along_axis(block.accuracy, order, axis=1), axis=1)
        # TAF is best[i] on the levels from the fairness of model i + 1 up to that of model i.
        mass[:, :-1] -= mass[:, 1:].copy()
        return np.asarray(np.einsum("bk,bk->b", best, mass))

    def _normalized(self, fairness: FloatArray) -> FloatArray:
        if self._table is not None:
            return np.interp(fairness, *self._table)
        return np.array(self.weight.normalized(fairness.ravel())).reshape(fairness.shape)

    def _curves(self, block: Block) -> list[TAFCurve]:
        pairs = zip(block.rates, block.accuracy, strict=True)
        return [
            frontier_of(np.ascontiguousarray(rates.T), self.sets, values, self.interpolate) for rates, values in pairs
        ]


def contenders(start: Block, block: Block, sets: RowSets, stretch: float) -> NDArray[np.bool_]:
    """Tell which models would be on the frontier of a replicate if their own deviation were `stretch` times larger.

    Parameters
    ----------
    start : Block
        The data themselves: one replicate.
    block : Block
        The replicates.
    sets : RowSets
        How rates are compared.
    stretch : float
        At least 1. With a large one, models that are left out are on the frontier of hardly any other resample.

    Returns
    -------
    ndarray of shape (k,)
        True if it would be in at least one replicate.
    """
    fairness = sets.fairness(block.rates)
    far_fairness = sets.fairness(start.rates + stretch * (block.rates - start.rates))
    far_accuracy = start.accuracy + stretch * (block.accuracy - start.accuracy)
    found = np.zeros(fairness.shape[1], dtype=bool)
    for b, order in enumerate(np.argsort(-fairness, axis=1)):
        # TAF at the stretched fairness: the best of the models that are at least as fair; 0 if there is none.
        best = np.concatenate([[0.0], np.maximum.accumulate(block.accuracy[b, order])])
        at_least = np.searchsorted(-fairness[b, order], -far_fairness[b], side="right")
        found |= far_accuracy[b] >= best[at_least]
        found[order[block.accuracy[b, order] >= best[1:]]] = True
    return found


@dataclass(frozen=True, eq=False)
class Gathered:
    """Points without the spread that noise has given them.

    Attributes
    ----------
    start : Block
        One replicate: the points, moved towards their mean.
    least, most : float
        Bounds, in [0, 1], of the true share of their spread (as a standard deviation); the rest is noise.
    moved : bool
        False: the points are where they were.
    """

    start: Block
    least: float
    most: float
    moved: bool


def gather(start: Block, block: Block, *, has_constant: bool) -> Gathered:
    """Take out of a family's points the spread that noise explains.

    Parameters
    ----------
    start : Block
        The data themselves: one replicate.
    block : Block
        Replicates, which show the noise.
    has_constant : bool
        True: the last model is the constant one, which is not counted and not moved.

    Notes
    -----
    Estimated points spread more than the true ones: the covariance S of the points is that of the truth and that of the
    noise, N. In the directions v with Sv = l·Nv the distance to the mean is multiplied by √(1 − edge/l), which leaves
    the spread of the truth. The edge is the largest l that noise alone is expected to give k points in r dimensions,
    (1 + √(r/(k − 1)))². Nothing is moved if there are hardly more models than dimensions, because the spread is then
    unknown, nor if in some direction nearly all of the spread is true: such models are not equally good.
    """
    k = start.accuracy.shape[1] - int(has_constant)
    points = np.concatenate([start.rates[0], start.accuracy])[:, :k]
    noise = np.concatenate([block.rates, block.accuracy[:, None]], axis=1)[:, :, :k] - points
    total = float(np.square(noise).sum()) / len(noise)
    noise -= noise.mean(axis=2, keepdims=True)
    mean = points.mean(axis=1, keepdims=True)
    away = points - mean
    by_axis = noise.transpose(1, 0, 2).reshape(len(points), -1)
    size, axes = np.linalg.eigh(by_axis @ by_axis.T / len(noise))
    noisy = size > 1e-9 * total  # copies of one model share their noise, but for rounding
    if k - 1 <= len(points) or not noisy.any():
        return Gathered(start, 1.0, 1.0, moved=False)
    unit = axes[:, noisy] / np.sqrt(size[noisy])
    ratio, turn = np.linalg.eigh(unit.T @ away @ away.T @ unit)
    edge = (1.0 + np.sqrt(noisy.sum() / (k - 1))) ** 2
    kept = np.sqrt(np.maximum(1.0 - edge / np.maximum(ratio, 1e-30), 0.0))
    most = float(np.sqrt(max(1.0 - 1.0 / max(float(ratio[-1]), 1e-30), 0.0)))
    if kept[-1] > _LARGEST_TRUE_SHARE:
        return Gathered(start, float(kept[-1]), most, moved=False)
    taken = (axes[:, noisy] * np.sqrt(size[noisy])) @ (turn * (1.0 - kept)) @ (turn.T @ unit.T)
    moved = points - taken @ away
    rates, accuracy = start.rates.copy(), start.accuracy.copy()
    rates[0, :, :k], accuracy[0, :k] = moved[:-1], np.clip(moved[-1], 0.0, 1.0)
    return Gathered(Block(rates, accuracy), float(kept[-1]), most, moved=True)


# The bias b of a maximum is proportional to the variance v of the noise if one model leads, and to √v if all models are
# equally good. Averaged over resamples, the data have noise of variance 2 (in units of their own), and of variance 3 if
# the deviations are multiplied by √2. The ratio b(2) / (b(3) − b(2)) in the two cases:
_BIAS_RATIOS = (2.0, float(np.sqrt(2.0) / (np.sqrt(3.0) - np.sqrt(2.0))))
# Near a kink, such as a bias of 0, noise of either sign moves FAUC in the same direction, and the data do not say how
# far. An interval allows for so many standard deviations of this movement at its lower and at its upper end. They were
# chosen by simulation: several nearly fair models make FAUC too high more often than one fair model makes it too low.
# In a difference the movements of two families partly cancel, and either end may be wrong.
_KINKS = (3.0, 1.0)
_KINKS_OF_DIFFERENCE = (1.0, 1.0)
# Replicates that are kept for resamples of resamples, and the number of these per replicate; fewer if areas are slow.
_KEPT, _AGAIN = 160, 3
_KEPT_SLOW, _AGAIN_SLOW = 50, 2
# Resamples of resamples need only the models that come to a frontier if their deviation is multiplied by this.
_STRETCH_NEAR = 2.0
# Replicates for the noise of a family's points: it is an average over all models, and few replicates suffice.
_NOISE_REPLICATES = 40
# With many resamples the first ones screen the models: those that do not come to a frontier, even if their deviation is
# multiplied by the second number, are left out of the other resamples.
_SCREEN_RESAMPLES, _STRETCH_SCREEN = 100, 4.0
# The largest number of elements of the kept replicates: 128 MB of doubles.
_KEPT_ELEMENTS = 2**24


class Scheme:
    """The validated options of a resampling."""

    def __init__(self, confidence: float, n_resamples: int, method: str, stratify: bool, random_state: Any) -> None:
        self.confidence = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
        self.n_resamples = validate.whole_number(n_resamples, parameter="n_resamples", low=50, advice=": use 1000")
        self.method = validate.one_of(method, METHODS, parameter="method")
        self.stratify = bool(stratify)
        self.generator = np.random.default_rng(random_state)


@dataclass(frozen=True, eq=False)
class Resampled:
    """A statistic and its replicates; `centres`, their standard errors `errors` and `kinks` make the interval.

    `kinks` are what the lower and the upper end allow for noise whose sign does not matter, as standard deviations.
    `noise` and `accuracy_error` are the largest standard errors of a model's fairness and accuracy.
    """

    estimate: float
    corrected: float
    samples: FloatArray
    centres: tuple[float, ...]
    errors: tuple[float, ...]
    kinks: tuple[float, float]
    noise: float
    accuracy_error: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the shortest interval that holds the intervals around all centres."""
        z = float(ndtri(0.5 + confidence / 2.0))
        low = min(centre - z * float(np.hypot(error, self.kinks[0])) for centre, error in self._pairs())
        high = max(centre + z * float(np.hypot(error, self.kinks[1])) for centre, error in self._pairs())
        return low, high

    def p_value(self) -> float:
        """Return the smallest level at which the interval of a difference excludes 0."""
        if min(self.centres) <= 0.0 <= max(self.centres):
            return 1.0
        kink = self.kinks[0 if self.centres[0] > 0 else 1]
        wide = [(abs(centre), float(np.hypot(error, kink))) for centre, error in self._pairs()]
        return max(float(2.0 * ndtr(-centre / error)) if error > 0 else 0.0 for centre, error in wide)

    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.centres, self.errors, strict=True))


def resample(data: Sample, area: Area, scheme: Scheme, family: IntArray, against: IntArray | None = None) -> Resampled:
    """Resample the area of a family, or its difference to that of another."""
    run = _Run(data, area, (family,) if against is None else (family, against))
    estimate = float(run.statistic(data.observed)[0])
    rest = scheme.n_resamples
    if rest > 2 * _SCREEN_RESAMPLES and not area.any_model:
        run.add(scheme, _SCREEN_RESAMPLES)
        run.gather()
        run.screen()
        rest -= _SCREEN_RESAMPLES
    run.add(scheme, rest)
    centres, errors, kinks = _extrapolate(run, scheme.generator)
    bank, samples = run.bank(), np.concatenate(run.samples)
    movement = data.sets.movement(run.data.observed.rates, bank.rates)
    # For each model the block (an attribute, for example) with its largest gap, which determines its fairness.
    worst = data.sets.block_fairness(run.data.observed.rates)[0].argmin(axis=0)
    errors_of_fairness = np.take_along_axis(np.sqrt(np.mean(movement**2, axis=0)), worst[None], axis=0)
    noise = float(errors_of_fairness.max()), float(bank.accuracy.std(axis=0).max())
    return Resampled(estimate, sum(centres) / len(centres), samples, centres, errors, kinks, *noise)


class _Run:
    """The state of a bootstrap: the models that are still in it, the statistic's replicates, and the kept blocks."""

    def __init__(self, data: Sample, area: Area, families: tuple[IntArray, ...]) -> None:
        self.data, self.area, self.families = data, area, families
        self.samples: list[FloatArray] = []
        self.kept: list[Block] = []
        self.gathered: tuple[Gathered, ...] = ()
        self.enough, self.again = (_KEPT_SLOW, _AGAIN_SLOW) if area.slow else (_KEPT, _AGAIN)

    def statistic(self, block: Block) -> FloatArray:
        """Return the area of the family, or the difference of two, in each replicate."""
        values = [self.area(block.select(family)) for family in self.families]
        return values[0] if len(values) == 1 else values[0] - values[1]

    def add(self, scheme: Scheme, n_resamples: int) -> None:
        """Add replicates."""
        for block in replicates(
            self.data, n_resamples, method=scheme.method, stratify=scheme.stratify, generator=scheme.generator
        ):
            self.samples.append(self.statistic(block))
            held = sum(len(kept.rates) for kept in self.kept)
            if held < self.enough and sum(kept.rates.size for kept in self.kept) < _KEPT_ELEMENTS:
                self.kept.append(block)

    def bank(self) -> Block:
        """Return the replicates that were kept."""
        rates = np.concatenate([block.rates for block in self.kept])[: self.enough]
        return Block(rates, np.concatenate([block.accuracy for block in self.kept])[: self.enough])

    def gather(self) -> None:
        """Estimate how far the models of each family truly differ, before any is left out."""
        start, bank = self.data.observed, self.bank()
        bank = Block(bank.rates[:_NOISE_REPLICATES], bank.accuracy[:_NOISE_REPLICATES])
        constant = self.data.has_constant
        self.gathered = tuple(gather(start.select(f), bank.select(f), has_constant=constant) for f in self.families)

    def screen(self) -> None:
        """Leave out the models that cannot matter."""
        near = self.near(self.bank(), _STRETCH_SCREEN)
        keep = np.unique(np.concatenate([family[models] for family, models in zip(self.families, near, strict=True)]))
        if self.data.has_constant:
            keep = np.union1d(keep, [len(self.data.points) - 1]).astype(np.intp)
        stay = [np.flatnonzero(np.isin(family, keep)) for family in self.families]
        pairs = zip(self.gathered, stay, strict=True)
        self.gathered = tuple(replace(found, start=found.start.select(models)) for found, models in pairs)
        self.kept = [block.select(keep) for block in self.kept]
        self.families = tuple(np.flatnonzero(np.isin(keep, family)) for family in self.families)
        self.data = self.data.select(keep)

    def near(self, bank: Block, stretch: float) -> list[IntArray]:
        """Return the positions in each family of the models that come to a frontier if their deviation is stretched."""
        if self.area.any_model:
            return [np.arange(len(family)) for family in self.families]
        found = []
        for family, gathered in zip(self.families, self.gathered, strict=True):
            start, block = self.data.observed.select(family), bank.select(family)
            close = contenders(start, block, self.data.sets, stretch)
            if gathered.moved:
                block = _shifted(gathered.start, _deviation(start, block), 1.0)
                close |= contenders(gathered.start, block, self.data.sets, stretch)
            found.append(np.flatnonzero(close))
        return found


def _deviation(start: Block, block: Block) -> Block:
    return Block(block.rates - start.rates, block.accuracy - start.accuracy)


def _shifted(start: Block, deviation: Block, factor: float) -> Block:
    """Return the points plus `factor` times the deviations."""
    accuracy = np.clip(start.accuracy + factor * deviation.accuracy, 0.0, 1.0)
    return Block(start.rates + factor * deviation.rates, accuracy)


class _Smoothed:
    """The area of one family, averaged over resamples of the data and over resamples of resamples.

    Rates and accuracies are averages. So the deviation of a resample of a resample is, up to terms of second order, the
    sum of two independent deviations, and no row is read again.
    """

    def __init__(self, run: _Run, start: Block, found: Gathered, deviation: Block, orders: Sequence[IntArray]) -> None:
        area, root = run.area, np.sqrt(2.0)

        def both(point: Block, factor: float) -> FloatArray:
            # Each deviation and its opposite: what is linear in them cancels, and the bias remains in the mean.
            return np.stack([area(_shifted(point, deviation, sign * factor)) for sign in (1.0, -1.0)])

        self.found = found
        once, twice = both(start, 1.0), both(start, root)
        self.once, self.twice = float(once.mean()), float(twice.mean())
        # The part of the area that a deviation and its opposite have in common; constant where the area is linear.
        self.common = once.mean(axis=0)
        level = both(found.start, root) if found.moved else twice
        self.level_bias = float(level.mean() - area(found.start)[0])
        # The standard error is taken at the gathered points: at the estimated ones too few models compete.
        first = _shifted(found.start, deviation, 1.0)
        self.replicates = area(first) if found.moved else once[0]
        again = [Block(deviation.rates[order], deviation.accuracy[order]) for order in orders]
        self.replicates_once = np.array([area(_shifted(first, other, 1.0)) for other in again])
        self.replicates_twice = np.array([area(_shifted(first, other, root)) for other in again])

    def centre(self, ratio: float, true: float) -> float:
        """Return the area minus its bias: a share `true` follows `ratio`, the rest that of equally good models."""
        bias = true * ratio * (self.twice - self.once) + (1.0 - true) * self.level_bias
        return self.once - bias

    def centres(self, ratio: float, true: float) -> FloatArray:
        """Return the same, up to a constant, for each resample of each resample."""
        slope = true * ratio
        return np.asarray((1.0 + slope) * self.replicates_once - slope * self.replicates_twice)


def _extrapolate(
    run: _Run, generator: np.random.Generator
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, float]]:
    """Return the statistic minus its bias under each of the two ratios, their standard errors, and the kinks."""
    bank = run.bank()
    if not run.gathered:
        run.gather()
    orders = [generator.permutation(len(bank.accuracy)) for _ in range(run.again)]
    families = []
    for family, found, models in zip(run.families, run.gathered, run.near(bank, _STRETCH_NEAR), strict=True):
        start = run.data.observed.select(family[models])
        deviation = _deviation(start, bank.select(family[models]))
        families.append(_Smoothed(run, start, replace(found, start=found.start.select(models)), deviation, orders))
    signs = (1.0, -1.0)
    spread = sum(sign * one.replicates for sign, one in zip(signs, families, strict=False))
    common = sum(sign * one.common for sign, one in zip(signs, families, strict=False))
    kink = float(np.std(common, ddof=1))
    below, above = _KINKS if len(families) == 1 else _KINKS_OF_DIFFERENCE
    least = max(one.found.least for one in families)
    centres, errors = [], []
    for ratio, level in zip(_BIAS_RATIOS, (False, True), strict=True):
        pairs = [(sign, one, one.found.most if level else 1.0) for sign, one in zip(signs, families, strict=False)]
        centres.append(sum(sign * one.centre(ratio, true) for sign, one, true in pairs))
        values = sum(sign * one.centres(ratio, true) for sign, one, true in pairs)
        errors.append(max(_error(np.asarray(values)), max(least, 0.5) * float(np.std(spread, ddof=1))))
    return tuple(centres), tuple(errors), (below * kink, above * kink)


def _error(values: FloatArray) -> float:
    """Return the standard deviation over resamples (columns) of the mean over their resamples (rows)."""
    # The mean of a few resamples is noisy itself; that noise is subtracted.
    noise = values.var(axis=0, ddof=1).mean() / len(values)
    return float(np.sqrt(max(values.mean(axis=0).var(ddof=1) - noise, 0.0)))


# The share of the error probability for the first step, which discards models.
_FIRST_STEP_SHARE = 0.1
# Where the middle half of a weight is narrower than so many standard errors of fairness, an area is more a step than a
# slope: a model is in the region that counts, or it is not. Standard errors of the area then say nothing.
_NARROW = 1.2
# Halvings of the level at which an interval touches 0.
_HALVINGS = 12


def is_narrow(area: Area, *results: Resampled) -> bool:
    """Tell whether noise moves models across the whole region that a weight looks at, so that only bands hold."""
    return not area.any_model and area.spread < _NARROW * max(result.noise for result in results)


def area_interval(data: Sample, area: Area, scheme: Scheme, result: Resampled) -> tuple[float, float]:
    """Return the interval of an area: that of its resamples, or under a narrow weight the areas under the bands.

    An area is no larger than the best accuracy, and no smaller than that of the constant model, which is always fair.
    """
    if is_narrow(area, result):
        return Deviations(data, scheme).area(area, scheme.confidence)
    low, high = result.interval(scheme.confidence)
    accuracy, margin = data.points.accuracy, float(ndtri(1.0 - (1.0 - scheme.confidence) / 8.0)) * result.accuracy_error
    least = accuracy[-1] - margin if data.has_constant else -np.inf
    return max(low, float(least)), min(high, float(accuracy.max()) + margin)


class Deviations:
    """Deviations of every model's fairness, block by block, and accuracy in every replicate."""

    def __init__(self, data: Sample, scheme: Scheme) -> None:
        self.fairness, self.accuracy = data.sets.block_fairness(data.observed.rates)[0], data.points.accuracy
        gaps, misses = [], []
        for block in replicates(
            data, scheme.n_resamples, method=scheme.method, stratify=scheme.stratify, generator=scheme.generator
        ):
            gaps.append(data.sets.movement(data.observed.rates, block.rates))
            misses.append(np.abs(block.accuracy - self.accuracy))
        self.gap, self.miss = np.concatenate(gaps), np.concatenate(misses)
        self.fairness_error = np.sqrt(np.mean(self.gap**2, axis=0))
        self.accuracy_error = np.sqrt(np.mean(self.miss**2, axis=0))

    def area(self, area: Area, confidence: float, family: IntArray | None = None) -> tuple[float, float]:
        """Return the areas under the lower and the upper curve."""
        low, high = (fauc(curve, area.weight) for curve in self.band(confidence, bool(area.interpolate), family))
        return low, high

    def band(self, confidence: float, interpolate: bool, family: IntArray | None = None) -> tuple[TAFCurve, TAFCurve]:
        """Return the lower and the upper curve of all models or of a family."""
        error = 1.0 - confidence
        all_models = np.arange(len(self.accuracy)) if family is None else family
        first = self.quantile(all_models, 1.0 - _FIRST_STEP_SHARE * error)
        floor = self._moved(all_models, -first, interpolate)
        top_f, top_a = self._points(all_models, first)
        kept = all_models[top_a >= floor(top_f)]
        d = min(first, self.quantile(kept, 1.0 - (1.0 - _FIRST_STEP_SHARE) * error))
        return self._moved(kept, -d, interpolate), self._moved(kept, d, interpolate)

    def quantile(self, models: Any, level: float) -> float:
        """Return the quantile of the largest studentised deviation over some models."""
        # A model that never moves, such as the constant one in fairness, has no deviation to divide.
        scale_f = np.where(self.fairness_error > 0, self.fairness_error, np.inf)[:, models]
        scale_a = np.where(self.accuracy_error > 0, self.accuracy_error, np.inf)[models]
        worst_f = (self.gap[:, :, models] / scale_f).max(axis=(1, 2))
        worst_a = (self.miss[:, models] / scale_a).max(axis=1)
        return float(np.quantile(np.maximum(worst_f, worst_a), level, method="higher"))

    def _points(self, models: Any, d: float) -> tuple[FloatArray, FloatArray]:
        f = np.clip(self.fairness + d * self.fairness_error, 0.0, 1.0).min(axis=0)
        a = np.clip(self.accuracy + d * self.accuracy_error, 0.0, 1.0)
        return f[models], a[models]

    def _moved(self, models: Any, d: float, interpolate: bool) -> TAFCurve:
        return taf_curve(*self._points(models, d), interpolate=interpolate)


def difference_interval(
    area: Area, first: tuple[Deviations, IntArray | None], second: tuple[Deviations, IntArray | None], confidence: float
) -> tuple[float, float, float]:
    """Return the interval of a difference of areas from the bands of two families, and the level at which it meets 0.

    Half of the error probability goes to each family.
    """

    def limits(error: float) -> tuple[float, float]:
        (low_a, high_a), (low_b, high_b) = (
            deviations.area(area, 1.0 - error / 2.0, family) for deviations, family in (first, second)
        )
        return low_a - high_b, high_a - low_b

    rejected, not_rejected = 1.0, 0.0
    for _ in range(_HALVINGS):
        error = (rejected + not_rejected) / 2.0
        low, high = limits(error)
        rejected, not_rejected = (error, not_rejected) if low > 0.0 or high < 0.0 else (rejected, error)
    return *limits(1.0 - confidence), rejected
