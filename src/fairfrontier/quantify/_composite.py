"""Composite FAUC: one number for several sensitive attributes at once."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray, number, unit_interval_pairs
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._fauc import Weight, as_weight

WeightLike = Weight | Callable[[float], float] | None

# The exact volume takes about ten seconds with so many undominated models, for 1, 2, … attributes; more attributes than
# these allow as many models as the last entry.
_LARGEST_EXACT = (10**7, 10**6, 10**5, 15_000, 1_000, 300, 150, 80, 60, 40, 30, 22)
# The probability that an approximation is further away than the tolerance.
_FAILURE = 1e-4
# Random levels evaluated together, those of the first round, and the largest number of rounds; each doubles the number.
_LEVELS_TOGETHER, _FIRST_ROUND, _MAX_ROUNDS = 2**15, 2**15, 11
_SMALLEST_TOLERANCE = 1e-4
# Models whose bits are looked up together: tables of a megabyte or two.
_MODELS_TOGETHER = 1024


def composite_fauc(
    fairness: Any,
    accuracy: Any,
    *,
    weights: WeightLike | Sequence[WeightLike] = None,
    tolerance: float | None = None,
    random_state: Any = 0,
) -> float:
    """Compute the weighted volume under the TAF surface of several sensitive attributes.

    Parameters
    ----------
    fairness : array-like of shape (k, m), or dict of m arrays of shape (k,)
        Fairness of `k` models on each of `m` attributes, e.g. ``points.attribute_fairness``.
    accuracy : array-like of shape (k,)
        Accuracy of the models.
    weights : Weight or callable, or a sequence of m of them
        One weight for all attributes, or one for each; None: uniform.
    tolerance : float, optional
        None: exact, and refused where that would take longer than about ten seconds. A number of at least 0.0001:
        approximate, and within this distance of the exact value with a probability of 0.9999 or more.
    random_state : int, numpy.random.Generator or None
        Fixes the random levels of an approximation.

    Returns
    -------
    float
        ∫…∫ TAF(f₁,…,fₘ)·Πwᵢ / Π∫wᵢ, in [0, 1]; for one attribute the FAUC.

    Notes
    -----
    With uᵢ = Wᵢ(fᵢ), the normalised cumulative weight, the integral is the plain hypervolume of the points
    (u₁,…,uₘ, accuracy) above the origin, which moocore computes. The time grows exponentially with m: 200 models that
    do not dominate each other take a second with six attributes and hours with twelve.

    It is also the mean of TAF over independent and uniform u₁,…,uₘ. With a tolerance, TAF is averaged over random
    levels, twice as many in each round, until the empirical Bernstein bound √(2·V·L/n) + 7·L·R/(3·(n − 1)) is below the
    tolerance: V is the variance of the n values, R their range, and L = ln(2·r·(r + 1)/10⁻⁴) in round r, so that the
    rounds together fail with a probability of at most 10⁻⁴.

    Examples
    --------
    >>> round(composite_fauc({"sex": [1.0, 0.5], "race": [1.0, 1.0]}, [0.6, 0.8]), 9)
    0.7
    >>> near = composite_fauc({"sex": [1.0, 0.5], "race": [1.0, 1.0]}, [0.6, 0.8], tolerance=0.002)
    >>> abs(near - 0.7) < 0.002
    True
    """
    levels, values = _levels(fairness, accuracy)
    m = levels.shape[1]
    each = list(weights) if isinstance(weights, Sequence) else [weights] * m
    if len(each) != m:
        raise InvalidInputError(f"weights must be one weight or one for each of the {m} attributes; got {len(each)}")
    u = np.stack([as_weight(w).normalized(levels[:, j]) for j, w in enumerate(each)], axis=1)
    if tolerance is not None:
        bound = number(tolerance, parameter="tolerance", low=_SMALLEST_TOLERANCE, high=1.0)
        return _mean_over_levels(u, values, bound, np.random.default_rng(random_state))
    return _hypervolume(np.column_stack([u, values]))


def _hypervolume(points: FloatArray) -> float:
    moocore = require("moocore", extra="composite", purpose="composite_fauc")
    best = points[moocore.is_nondominated(points, maximise=True)]
    attributes = points.shape[1] - 1
    largest = _LARGEST_EXACT[min(attributes, len(_LARGEST_EXACT)) - 1]
    if len(best) > largest:
        raise InvalidInputError(
            f"fairness must have at most {largest} models that no other dominates for an exact volume over "
            f"{attributes} attributes; got {len(best)}, which could take hours: pass tolerance=0.002 to approximate it"
        )
    return float(moocore.hypervolume(best, ref=np.zeros(attributes + 1), maximise=True))


def _mean_over_levels(u: FloatArray, accuracy: FloatArray, tolerance: float, generator: np.random.Generator) -> float:
    """Return the mean of TAF over uniform levels, within `tolerance` but for a probability of `_FAILURE`."""
    surface = _Surface(u, accuracy)
    # TAF is 0 where some level is above that of every model: levels are drawn below these.
    top = u.max(axis=0)
    share, spread = float(np.prod(top)), float(accuracy.max())
    if share * spread == 0.0:
        return 0.0
    total = square = 0.0
    n, reachable = 0, np.inf
    for round_number in range(1, _MAX_ROUNDS + 1):
        for _ in range((_FIRST_ROUND * 2 ** (round_number - 1) - n) // _LEVELS_TOGETHER):
            value = surface(top * generator.random((_LEVELS_TOGETHER, len(top))))
            total, square, n = total + float(value.sum()), square + float(value @ value), n + len(value)
        variance = max(square - total**2 / n, 0.0) / (n - 1)
        log = np.log(2.0 * round_number * (round_number + 1) / _FAILURE)
        bound = share * (np.sqrt(2.0 * variance * log / n) + 7.0 * spread * log / (3.0 * (n - 1)))
        if bound <= tolerance:
            return share * total / n
        # Each round that is left divides the bound by √2.
        reachable = bound * 2.0 ** ((round_number - _MAX_ROUNDS) / 2.0)
        if reachable > 1.5 * tolerance:
            break
    raise InvalidInputError(
        f"tolerance must be about {2.0 * reachable:.1g} or more for these models; got {tolerance:g}, which takes more "
        f"than {_FIRST_ROUND * 2 ** (_MAX_ROUNDS - 1):,} random levels"
    )


class _Surface:
    """TAF over several attributes, for many levels at once: models that are fair enough are bits of whole numbers."""

    def __init__(self, u: FloatArray, accuracy: FloatArray) -> None:
        order = np.argsort(-accuracy, kind="stable")
        blocks = np.array_split(order, -(-len(order) // _MODELS_TOGETHER))
        self._blocks = [(accuracy[models], [_bits_by_level(column) for column in u[models].T]) for models in blocks]

    def __call__(self, levels: FloatArray) -> FloatArray:
        """Return the best accuracy of a model that is at least as fair as each row of `levels`; 0 if there is none."""
        best = np.zeros(len(levels))
        waiting: NDArray[np.intp] = np.arange(len(levels))
        for accuracy, tables in self._blocks:  # the most accurate models first
            pairs = zip(levels.T, tables, strict=True)
            fair = reduce(np.bitwise_and, (bits[np.searchsorted(steps, column)] for column, (steps, bits) in pairs))
            word = (fair != 0).argmax(axis=1)
            found = np.take_along_axis(fair, word[:, None], axis=1)[:, 0]
            hit = found != 0
            # The lowest bit that is set is the most accurate model.
            bit = np.log2((found & (~found + np.uint64(1)))[hit].astype(np.float64)).astype(np.intp)
            best[waiting[hit]] = accuracy[64 * word[hit] + bit]
            waiting, levels = waiting[~hit], levels[~hit]
            if not len(waiting):
                break
        return best


def _bits_by_level(fairness: FloatArray) -> tuple[FloatArray, NDArray[np.uint64]]:
    """Return the distinct levels of some models, ascending, and which models are at least as fair as each, as bits."""
    steps = np.unique(fairness)
    fair = np.vstack([fairness >= steps[:, None], np.zeros((1, len(fairness)), dtype=bool)])
    padded = np.pad(fair, ((0, 0), (0, -len(fairness) % 64)))
    return steps, np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _levels(fairness: Any, accuracy: Any) -> tuple[FloatArray, FloatArray]:
    if isinstance(fairness, Mapping):
        columns = {f"fairness[{name!r}]": values for name, values in fairness.items()}
    else:
        array = np.asarray(fairness)
        if array.ndim not in (1, 2):
            raise InvalidInputError(f"fairness must be 2-D, one column per attribute; got shape {array.shape}")
        columns = {f"fairness[:, {j}]": values for j, values in enumerate(np.atleast_2d(array.T))}
    if not columns:
        raise InvalidInputError("fairness must have at least one attribute; got none: give one column per attribute")
    pairs = [unit_interval_pairs(values, accuracy, parameter=name) for name, values in columns.items()]
    return np.stack([level for level, _ in pairs], axis=1), pairs[0][1]
