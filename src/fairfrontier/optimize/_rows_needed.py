"""How many rows a promise takes, before they are collected."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError

# The exact limit is this much wider than the normal one, in standard errors and in rows of the smaller group; measured
# for groups of 40 to 7,000 rows and rates of .05 to .5.
_WIDER_BY_ERRORS, _WIDER_BY_ROWS = 0.03, 1.0
_IMAGINED_SAMPLES = 20_000


def rows_needed(
    min_fairness: float,
    *,
    confidence: float = 0.95,
    group_shares: Mapping[Any, float] | Sequence[float],
    rates: float | Sequence[float] = 0.5,
    power: float = 0.8,
) -> int:
    """Return how many calibration rows it takes to promise a fairness.

    Parameters
    ----------
    min_fairness : float
        The fairness to be promised, in (0, 1).
    confidence : float, default=0.95
        The confidence of the promise.
    group_shares : mapping or sequence of float
        The share of all rows that each group has. For equal opportunity: the share of rows that are in the group and
        have a positive label, so that the shares add up to less than one.
    rates : float or sequence of float, default=0.5
        The share of positive decisions in all groups, or in each; 0.5 takes the most rows. Rates that differ describe a
        model that is not perfectly fair; they must differ by less than 1 − min_fairness.
    power : float, default=0.8
        The probability with which the promise can then be made. (That it is kept has the probability `confidence`.)

    Returns
    -------
    int
        The number of calibration rows.

    Notes
    -----
    With n rows the rate of group i has a standard error σᵢ/√n, σᵢ² = rᵢ(1 − rᵢ)/shareᵢ, and a pair is shown to differ
    by less than d if (rᵢ − rⱼ) + (σᵢεᵢ − σⱼεⱼ)/√n + z·√(σᵢ² + σⱼ²)/√n + 1/(n·share) ≤ d, the last term being what the
    exact limit adds to the normal one. Solved for n for each of 20,000 fixed draws of ε and the worst pair, the answer
    is the quantile `power` of these n. It is an approximation; the promise itself is exact.

    Examples
    --------
    >>> rows_needed(0.9, group_shares=[0.5, 0.5])
    916
    >>> rows_needed(0.95, group_shares={"Female": 0.33, "Male": 0.67}, rates=0.2)
    2643
    """
    d = 1.0 - validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0, strict=True)
    level = 1.0 - validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    validate.number(power, parameter="power", low=0.0, high=1.0, strict=True)
    shares = _shares(group_shares)
    rate = _rates(rates, len(shares))
    if np.ptp(rate) >= d:
        raise InvalidInputError(
            f"rates must differ by less than 1 − min_fairness, {d:g}; got {np.ptp(rate):g}: no number of rows can show "
            "that such a model is fair enough"
        )
    pairs = np.stack(np.triu_indices(len(shares), k=1), axis=1)
    return rows_for_pairs(shares, rate, pairs, d, level, power)


def rows_for_pairs(shares: FloatArray, rates: FloatArray, pairs: IntArray, d: float, level: float, power: float) -> int:
    """Return the number of rows of `rows_needed` for given pairs of groups."""
    sigma = np.sqrt(rates * (1.0 - rates) / shares)
    noise = np.random.default_rng(0).standard_normal((_IMAGINED_SAMPLES, len(shares))) * sigma
    z = _WIDER_BY_ERRORS - ndtri(level)
    root = np.zeros(len(noise))
    for i, j in np.concatenate([pairs, pairs[:, ::-1]]):
        left = d - (rates[i] - rates[j])
        errors = noise[:, i] - noise[:, j] + z * np.hypot(sigma[i], sigma[j])
        rows = _WIDER_BY_ROWS / min(shares[i], shares[j])
        # left·n − errors·√n − rows = 0.
        np.maximum(root, (errors + np.sqrt(errors**2 + 4.0 * left * rows)) / (2.0 * left), out=root)
    return int(np.ceil(np.quantile(root, power) ** 2))


def _shares(group_shares: Mapping[Any, float] | Sequence[float]) -> FloatArray:
    given = list(group_shares.values()) if isinstance(group_shares, Mapping) else group_shares
    shares = np.asarray(given, dtype=np.float64)
    if shares.ndim != 1 or len(shares) < 2:
        raise GroupError(f"group_shares must name at least two groups; got {group_shares!r}")
    if not (np.all(shares > 0.0) and shares.sum() <= 1.0 + 1e-6):
        raise InvalidInputError(
            f"group_shares must be positive and add up to 1 at most; got {shares.tolist()}, which add up to "
            f"{shares.sum():g}: divide the groups' sizes by the number of all rows"
        )
    return shares


def _rates(rates: float | Sequence[float], n_groups: int) -> FloatArray:
    given = np.asarray(rates, dtype=np.float64)
    if given.shape not in ((), (n_groups,)) or not np.all((given > 0.0) & (given < 1.0)):
        raise InvalidInputError(
            f"rates must be one number in (0, 1), or {n_groups}, one per group; got {rates!r}: it is the share of rows "
            "that the model decides positively"
        )
    return np.broadcast_to(given, n_groups)
