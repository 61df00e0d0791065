"""Confidence bands for a whole TAF curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairfrontier._validation import FloatArray, fairness_levels, interpolation
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness
from fairfrontier.quantify._bootstrap import sample
from fairfrontier.quantify._resampling import Deviations, Scheme


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
    levels = np.linspace(0.0, 1.0, 501) if grid is None else fairness_levels(grid)
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
