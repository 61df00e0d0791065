"""The bootstrap of a statistic that is a maximum: replicates, two bias corrections and their errors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.quantify.areas import Area, contenders
from fairfrontier.quantify.bootstrap import METHODS, Block, Sample, fairness_of, replicates

Statistic = Callable[[Block, IntArray, IntArray | None], FloatArray]
# The bias of a maximum grows with the variance of its noise when one candidate leads, and with its standard deviation
# when all are level. A resample doubles the variance, and so shows the bias itself, or √2 − 1 of it.
_FACTORS = (1.0, 1.0 / (np.sqrt(2.0) - 1.0))
# Replicates kept for the second level, and how often each of them is resampled again; fewer where areas are slow.
_KEPT, _AGAIN = 200, 8
_KEPT_SLOW, _AGAIN_SLOW = 50, 3
# Elements of the kept replicates: 128 MB of doubles.
_KEPT_SIZE = 2**24


class Scheme:
    """The validated options of a resampling."""

    def __init__(self, confidence: float, n_resamples: int, method: str, stratify: bool, random_state: Any) -> None:
        self.confidence = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
        self.n_resamples = int(validate.number(n_resamples, parameter="n_resamples", low=50, advice=": use 1000"))
        self.method = validate.one_of(method, METHODS, parameter="method")
        self.stratify = bool(stratify)
        self.generator = np.random.default_rng(random_state)


@dataclass(frozen=True, eq=False)
class Resampled:
    """A statistic, its replicates, the values that an interval must span, and a standard error."""

    estimate: float
    corrected: float
    samples: FloatArray
    centres: tuple[float, ...]
    error: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return what is between the centres, or within z standard errors of one of them."""
        reach = float(norm.ppf(0.5 + confidence / 2.0)) * self.error
        return min(self.centres) - reach, max(self.centres) + reach

    def p_value(self) -> float:
        """Return the smallest level at which the interval excludes 0."""
        if min(self.centres) <= 0.0 <= max(self.centres):
            return 1.0
        nearest = min(abs(centre) for centre in self.centres)
        return float(2.0 * norm.sf(nearest / self.error)) if self.error > 0 else 0.0


def resample(data: Sample, area: Area, scheme: Scheme, family: IntArray, against: IntArray | None = None) -> Resampled:
    """Resample the area of a family, or its difference to that of another."""

    def statistic(block: Block, first: IntArray, second: IntArray | None) -> FloatArray:
        value = area(block.select(first))
        return value if second is None else value - area(block.select(second))

    estimate = float(statistic(data.observed, family, against)[0])
    samples: list[FloatArray] = []
    kept: list[Block] = []
    enough, again = (_KEPT_SLOW, _AGAIN_SLOW) if area.slow else (_KEPT, _AGAIN)
    for block in replicates(
        data, scheme.n_resamples, method=scheme.method, stratify=scheme.stratify, generator=scheme.generator
    ):
        samples.append(statistic(block, family, against))
        if sum(len(b.rates) for b in kept) < enough and sum(b.rates.size for b in kept) < _KEPT_SIZE:
            kept.append(block)
    values = np.concatenate(samples)
    bank = Block(np.concatenate([b.rates for b in kept])[:enough], np.concatenate([b.accuracy for b in kept])[:enough])
    keep = np.unique(np.concatenate([_reach(data, area, bank, one) for one in (family, against) if one is not None]))
    level = SecondLevel(data, bank, keep, family, against, statistic, again, scheme.generator)
    bias = float(values.mean()) - estimate
    corrected = tuple(estimate - factor * bias for factor in _FACTORS)
    error = level.error(values)
    if against is None:
        return Resampled(estimate, corrected[0], values, corrected, error)
    # A difference may be biased to either side, or not at all: the estimate itself counts as well.
    error = max(error, float(values.std(ddof=1)))
    return Resampled(estimate, corrected[0], values, (estimate, *corrected), error)


class SecondLevel:
    """Resamples of resamples, made by adding the deviations of two replicates.

    Rates and accuracies are averages, so that the deviation of a resample of a resample is, but for terms of second
    order, the sum of two independent deviations.
    """

    def __init__(
        self,
        data: Sample,
        bank: Block,
        keep: IntArray,
        family: IntArray,
        against: IntArray | None,
        statistic: Statistic,
        again: int,
        generator: np.random.Generator,
    ) -> None:
        observed = data.observed
        start, bank = observed.select(keep), bank.select(keep)
        first = np.flatnonzero(np.isin(keep, family))
        second = None if against is None else np.flatnonzero(np.isin(keep, against))
        self.once = statistic(bank, first, second)
        self.twice = np.empty((again, len(self.once)))
        for repeat in self.twice:
            order = generator.permutation(len(self.once))
            rates = bank.rates + bank.rates[order] - start.rates
            values = np.clip(bank.accuracy + bank.accuracy[order] - start.accuracy, 0.0, 1.0)
            repeat[:] = statistic(Block(rates, values), first, second)

    def error(self, samples: FloatArray) -> float:
        """Return the standard error of the estimate less its bootstrap bias."""
        corrected = 2.0 * self.once - self.twice.mean(axis=0)
        # The mean of a few resamples is itself noisy, which is no part of the error.
        noise = self.twice.var(axis=0, ddof=1).mean() / len(self.twice)
        return float(np.sqrt(max(corrected.var(ddof=1) - noise, 0.25 * samples.var(ddof=1))))


def _reach(data: Sample, area: Area, bank: Block, family: IntArray) -> IntArray:
    """Return the models of a family that a second resample may bring to the frontier."""
    if area.interpolate == "signed":  # a dominated model with a bias of the other sign may be on the signed hull
        return family
    start = data.observed
    rates = start.rates + 1.5 * (bank.rates - start.rates)
    values = start.accuracy + 1.5 * (bank.accuracy - start.accuracy)
    fairness = fairness_of(rates[:, :, family], data.sets)
    return family[contenders(fairness, values[:, family])]
