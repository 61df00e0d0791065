"""The bootstrap of a statistic that is a maximum: replicates, two bias corrections and their errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.quantify.areas import Area, contenders
from fairfrontier.quantify.bootstrap import METHODS, Block, Sample, replicates

# The bias of a maximum grows with the variance of its noise when one candidate leads, and with its standard deviation
# when all are level. A resample doubles the variance, and so shows the bias itself, or √2 − 1 of it.
_FACTORS = (1.0, 1.0 / (np.sqrt(2.0) - 1.0))
# Replicates kept for the second level, and how often each of them is resampled again; fewer where areas are slow.
_KEPT, _AGAIN = 160, 6
_KEPT_SLOW, _AGAIN_SLOW = 50, 3
# With many resamples the first ones screen the models: those that do not come near a frontier, even if their deviation
# is stretched so many times, are left out of the rest.
_SCREEN, _STRETCH = 100, 4.0
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
    """A statistic and its replicates; `centres` and their standard errors `errors` make the interval."""

    estimate: float
    corrected: float
    samples: FloatArray
    centres: tuple[float, ...]
    errors: tuple[float, ...]

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the shortest interval that holds the intervals around all centres."""
        z = float(norm.ppf(0.5 + confidence / 2.0))
        ends = [(centre - z * error, centre + z * error) for centre, error in self._pairs()]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def p_value(self) -> float:
        """Return the smallest level at which the interval excludes 0."""
        if min(self.centres) <= 0.0 <= max(self.centres):
            return 1.0
        return max(float(2.0 * norm.sf(abs(c) / error)) if error > 0 else 0.0 for c, error in self._pairs())

    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.centres, self.errors, strict=True))


def resample(data: Sample, area: Area, scheme: Scheme, family: IntArray, against: IntArray | None = None) -> Resampled:
    """Resample the area of a family, or its difference to that of another."""
    run = _Run(data, area, (family,) if against is None else (family, against))
    estimate = float(run.statistic(data.observed)[0])
    rest = scheme.n_resamples
    if rest > 2 * _SCREEN and area.interpolate != "signed":
        run.add(scheme, _SCREEN)
        run.screen()
        rest -= _SCREEN
    run.add(scheme, rest)
    samples = np.concatenate(run.samples)
    bias = float(samples.mean()) - estimate
    corrected = tuple(estimate - factor * bias for factor in _FACTORS)
    errors = (SecondLevel(run, scheme.generator).error(samples),) * len(corrected)
    if against is None:
        return Resampled(estimate, corrected[0], samples, corrected, errors)
    # A difference may be biased to either side, or not at all: the estimate itself counts as well. Near a kink of FAUC
    # its resamples spread too little, and the corrected ones too much.
    spread = (float(samples.std(ddof=1)) + errors[0]) / 2.0
    return Resampled(estimate, corrected[0], samples, (estimate, *corrected), (spread, *errors))


class _Run:
    """A bootstrap under way: the models that are still in it, the statistic's replicates, and some blocks to keep."""

    def __init__(self, data: Sample, area: Area, families: tuple[IntArray, ...]) -> None:
        self.data, self.area, self.families = data, area, families
        self.samples: list[FloatArray] = []
        self.kept: list[Block] = []
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
            if held < self.enough and sum(kept.rates.size for kept in self.kept) < _KEPT_SIZE:
                self.kept.append(block)

    def bank(self) -> Block:
        """Return the replicates that were kept."""
        rates = np.concatenate([block.rates for block in self.kept])[: self.enough]
        return Block(rates, np.concatenate([block.accuracy for block in self.kept])[: self.enough])

    def screen(self) -> None:
        """Go on with the models that may still matter."""
        keep = self.reach(self.bank(), _STRETCH)
        if self.data.has_constant:
            keep = np.union1d(keep, [len(self.data.points) - 1]).astype(np.intp)
        self.kept = [block.select(keep) for block in self.kept]
        self.families = tuple(np.flatnonzero(np.isin(keep, family)) for family in self.families)
        self.data = self.data.select(keep)

    def reach(self, bank: Block, stretch: float) -> IntArray:
        """Return the models that come to a frontier if their deviation is stretched."""
        if self.area.interpolate == "signed":  # a dominated model with a bias of the other sign may be on that hull
            return np.arange(len(self.data.points))
        start = self.data.observed
        found = [
            family[contenders(start.select(family), bank.select(family), self.data.sets, stretch)]
            for family in self.families
        ]
        return np.unique(np.concatenate(found))


class SecondLevel:
    """Resamples of resamples, made by adding the deviations of two replicates.

    Rates and accuracies are averages, so that the deviation of a resample of a resample is, but for terms of second
    order, the sum of two independent deviations.
    """

    def __init__(self, run: _Run, generator: np.random.Generator) -> None:
        bank = run.bank()
        keep = run.reach(bank, 2.0)
        start, bank = run.data.observed.select(keep), bank.select(keep)
        families = tuple(np.flatnonzero(np.isin(keep, family)) for family in run.families)
        small = _Run(run.data, run.area, families)
        self.once = small.statistic(bank)
        self.twice = np.empty((run.again, len(self.once)))
        for repeat in self.twice:
            order = generator.permutation(len(self.once))
            rates = bank.rates + bank.rates[order] - start.rates
            values = np.clip(bank.accuracy + bank.accuracy[order] - start.accuracy, 0.0, 1.0)
            repeat[:] = small.statistic(Block(rates, values))

    def error(self, samples: FloatArray) -> float:
        """Return the standard error of the estimate less its bootstrap bias."""
        corrected = 2.0 * self.once - self.twice.mean(axis=0)
        # The mean of a few resamples is itself noisy, which is no part of the error.
        noise = self.twice.var(axis=0, ddof=1).mean() / len(self.twice)
        return float(np.sqrt(max(corrected.var(ddof=1) - noise, 0.25 * samples.var(ddof=1))))
