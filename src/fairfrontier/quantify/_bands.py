"""Confidence bands for a whole TAF curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from fairfrontier._validation import FloatArray, IntArray, column, finite, interpolation
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness
from fairfrontier.quantify._bootstrap import Sample, replicates, sample
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._resampling import Area, Resampled, Scheme

# The share of the error probability for the first step, which discards models.
_FIRST_STEP_SHARE = 0.1
# Where the middle half of a weight is narrower than so many standard errors of fairness, an area is more a step than a
# slope: a model is in the region that counts, or it is not. Standard errors of the area then say nothing.
_NARROW = 1.2
# Halvings of the level at which an interval touches 0.
_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class TAFBands:
    """A band that holds the whole TAF curve of the population.

    Attributes
    ----------
    grid : ndarray of shape (q,)
        Levels of fairness.
    low, high : ndarray of shape (q,)
        The band at these levels.
    estimate : TAFCurve
        The curve of the data.
    lower, upper : TAFCurve
        The band at every level, not only on the grid.
    confidence : float
        The nominal simultaneous coverage.
    """

    grid: FloatArray
    low: FloatArray
    high: FloatArray
    estimate: TAFCurve
    lower: TAFCurve
    upper: TAFCurve
    confidence: float

    def __repr__(self) -> str:
        width = float(np.mean(self.high - self.low))
        return f"TAFBands({len(self.grid)} levels, {self.confidence:.0%} simultaneous, mean width {width:.4f})"


def taf_bands(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    grid: ArrayLike | None = None,
    interpolate: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    method: str = "multinomial",
    stratify: bool = False,
    random_state: Any = None,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
) -> TAFBands:
    """Compute a band that covers the TAF curve at all levels of fairness at once.

    Parameters
    ----------
    y_true, y_preds, sensitive_features
        As in `tradeoff_points`.
    grid : array-like of shape (q,), optional
        Levels of fairness at which to give the band; None: 501 of them from 0 to 1.
    interpolate : bool
        False: TAF. True: TAFI.
    confidence, n_resamples, method, stratify, random_state
        As in `fauc_interval`.
    fairness, accuracy, threshold, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`; `fairness` and `accuracy` must not be functions.

    Returns
    -------
    TAFBands
        The band.

    Notes
    -----
    The curve jumps, and where it jumps is as uncertain as how high it is: no band around the curve alone can hold it.
    But TAF grows with the fairness and with the accuracy of every model. So if all models' fairness and accuracy are
    within d standard errors of their estimates, the curve lies between the TAF of all points moved down and left by d
    standard errors and that of all points moved up and right. d is the bootstrap quantile of the largest studentised
    deviation over all models, after a first step (with a tenth of the error) has set aside the models that cannot be
    on the frontier. The choice of the best models needs no correction: the band is about every model together.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, sex = rng.random(500) < 0.4, rng.choice(["f", "m"], 500)
    >>> scores = {"sharp": 0.6 * y + 0.6 * rng.random(500), "blunt": 0.3 * y + 0.6 * rng.random(500)}
    >>> bands = taf_bands(y, scores, sensitive_features=sex, random_state=0)
    >>> inside = bands.estimate(bands.grid)
    >>> bool(np.all((bands.low <= inside) & (inside <= bands.high)))
    True
    """
    advice = ": the signed hull is not monotone in the biases, use fauc_interval for its area"
    hull = bool(interpolation(interpolate, signed=False, advice=advice))
    levels = _levels(grid)
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
    if hull and not data.sets.compares_differences:
        raise InvalidInputError(
            f"interpolate must be False with fairness={fairness!r}: a ratio is no average over mixtures; use "
            "fauc_interval for the area under their curve"
        )
    scheme = Scheme(confidence, n_resamples, method, stratify, random_state)
    lower, upper = Deviations(data, scheme).band(scheme.confidence, hull)
    return TAFBands(
        levels,
        lower(levels),
        upper(levels),
        data.points.frontier(hull),
        lower,
        upper,
        scheme.confidence,
    )


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
    """Deviations of every model's fairness and accuracy in every replicate."""

    def __init__(self, data: Sample, scheme: Scheme) -> None:
        self.fairness, self.accuracy = data.points.fairness, data.points.accuracy
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
        all_models = np.arange(len(self.fairness)) if family is None else family
        first = self.quantile(all_models, 1.0 - _FIRST_STEP_SHARE * error)
        floor = self._moved(all_models, -first, interpolate)
        top_f, top_a = self._points(all_models, first)
        kept = all_models[top_a >= floor(top_f)]
        d = min(first, self.quantile(kept, 1.0 - (1.0 - _FIRST_STEP_SHARE) * error))
        return self._moved(kept, -d, interpolate), self._moved(kept, d, interpolate)

    def quantile(self, models: Any, level: float) -> float:
        """Return the quantile of the largest studentised deviation over some models."""
        # A model that never moves, such as the constant one in fairness, has no deviation to divide.
        scale_f = np.where(self.fairness_error > 0, self.fairness_error, np.inf)[models]
        scale_a = np.where(self.accuracy_error > 0, self.accuracy_error, np.inf)[models]
        worst_f = (self.gap[:, models] / scale_f).max(axis=1)
        worst_a = (self.miss[:, models] / scale_a).max(axis=1)
        return float(np.quantile(np.maximum(worst_f, worst_a), level, method="higher"))

    def _points(self, models: Any, d: float) -> tuple[FloatArray, FloatArray]:
        f = np.clip(self.fairness + d * self.fairness_error, 0.0, 1.0)
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


def _levels(grid: ArrayLike | None) -> FloatArray:
    if grid is None:
        return np.linspace(0.0, 1.0, 501)
    levels = column(grid, parameter="grid").astype(np.float64)
    finite(levels, parameter="grid")
    if levels.size == 0 or levels.min() < 0 or levels.max() > 1:
        raise InvalidInputError(f"grid must hold levels of fairness in [0, 1]; got {levels.tolist()[:5]}")
    return levels
