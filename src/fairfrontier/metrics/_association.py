"""Measures beside the frontier: differences of scores, selection of the top, and ratios within strata."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtri

from fairfrontier._columns import same_order
from fairfrontier._rows import Rows
from fairfrontier._validation import (
    Attribute,
    FloatArray,
    Predictions,
    attributes,
    check_finite,
    number,
    predictions,
    same_length,
    sample_weights,
)
from fairfrontier.exceptions import GroupError, InvalidInputError

# Rows that are laid out model by model at a time: what is read and written stays in the processor's cache.
_TOGETHER = 256


def top_share(y_preds: Any, selection_rate: float, *, sample_weight: Any = None) -> dict[str, FloatArray]:
    """Select the same share of all rows with every model: those with the highest scores.

    Parameters
    ----------
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores of `k` models.
    selection_rate : float
        The share of all rows (of their weight) to select, in [0, 1].
    sample_weight : array-like of shape (n,), optional
        Non-negative weights.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        1 for selected rows, 0 for the others; rows whose score is that of the cut share what is left, as probabilities.
        Give it to `tradeoff_points` and the others with ``threshold=None``.

    Notes
    -----
    With a fixed threshold a model that is moved selects more or fewer rows. With a fixed share the threshold moves with
    the model, as where there are so many places and no more.

    Examples
    --------
    >>> top_share({"a": [0.1, 0.9, 0.5, 0.5]}, 0.5)["a"]
    array([0. , 1. , 0.5, 0.5])
    """
    same_order(y_preds=y_preds, sample_weight=sample_weight)
    given = predictions(y_preds)
    rate = number(selection_rate, parameter="selection_rate", low=0.0, high=1.0)
    n_rows = len(given.matrix)
    weight = sample_weights(sample_weight, n_rows)
    room = rate * (n_rows if weight is None else weight.sum())
    by_model = _laid_out_by_model(given)
    for scores in by_model:
        cut, taken = _best_rows(scores, room) if weight is None else _best_weight(scores, room, weight)
        tied = np.flatnonzero(scores == cut) if room > taken else np.empty(0, dtype=np.intp)
        there = len(tied) if weight is None else weight[tied].sum()
        np.greater(scores, cut, out=scores)
        if len(tied):
            scores[tied] = np.clip((room - taken) / there, 0.0, 1.0)
    return dict(zip(given.names, by_model, strict=True))


def _laid_out_by_model(given: Predictions) -> FloatArray:
    """Return finite scores as floats (k, n), the rows of a model side by side."""
    matrix, by_model = given.matrix, np.empty(given.matrix.shape[::-1])
    # Blocks that run in the direction in which memory does.
    if abs(matrix.strides[0]) < abs(matrix.strides[1]):
        parts = [(slice(None), slice(j, j + 1)) for j in range(matrix.shape[1])]
    else:
        parts = [(slice(i, i + _TOGETHER), slice(None)) for i in range(0, len(matrix), _TOGETHER)]
    for rows, models in parts:
        block = matrix[rows, models]
        by_model[models, rows] = block.T
        # A sum of what is in cache costs least of all ways to look at every value.
        if not np.isfinite(np.einsum("ij->", block, dtype=np.float64, casting="same_kind")):
            check_finite(matrix, given.names)
    return by_model


def _best_rows(scores: FloatArray, room: float) -> tuple[float, int]:
    """Return the highest score that no more than `room` rows exceed, and how many do."""
    place = max(len(scores) - 1 - int(room), 0)
    # What the cut is needs no order on either side of it, and those above it are all on one side.
    parted = np.partition(scores, place)
    cut = parted[place]
    return float(cut), int(np.count_nonzero(parted[place + 1 :] > cut))


def _best_weight(scores: FloatArray, room: float, weight: FloatArray) -> tuple[float, float]:
    """Return the highest score of a row with weight that rows of a total weight `room` do not all exceed; what do."""
    there = np.flatnonzero(weight > 0.0)
    order = there[np.argsort(scores[there])[::-1]]
    passed = np.searchsorted(np.cumsum(weight[order]), room, side="right")
    cut = float(scores[order[min(int(passed), len(order) - 1)]])
    return cut, float(weight @ (scores > cut))


def standardized_mean_difference(
    y_preds: Any, *, sensitive_features: Any, reference: Any = None, sample_weight: Any = None
) -> dict[str, dict[str, float]]:
    """Compute the difference of mean scores between groups in units of their standard deviation.

    Parameters
    ----------
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores of `k` models.
    sensitive_features : array-like of shape (n,)
        One sensitive attribute.
    reference : object, optional
        The group that the others are compared with; None: the one with the most rows.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights.

    Returns
    -------
    dict of str to dict of str to float
        By model and group: (mean of the group − mean of the reference) / standard deviation of the scores of all rows.

    Notes
    -----
    Decisions play no part, so that no threshold has to be chosen. Where all scores are equal it is 0.

    Examples
    --------
    >>> found = standardized_mean_difference({"a": [0.2, 0.4, 0.6, 0.8]}, sensitive_features=["f", "f", "m", "m"])
    >>> round(found["a"]["m"], 3)
    1.789
    """
    same_order(y_preds=y_preds, sensitive_features=sensitive_features, sample_weight=sample_weight)
    given = _finite_predictions(y_preds)
    attribute, weight = _one_attribute(sensitive_features, len(given.matrix), sample_weight)
    first = _reference(attribute, reference, weight)
    totals = np.bincount(attribute.codes, weight)
    if totals.min() <= 0:
        raise GroupError(
            f"sample_weight must leave no group empty; {attribute.values[int(totals.argmin())]!r} of "
            f"{attribute.name!r} has no weight: leave its rows out"
        )
    result = {}
    for name, scores in zip(given.names, given.matrix.T.astype(np.float64), strict=True):
        means = np.bincount(attribute.codes, weight * scores) / totals
        spread = np.sqrt(np.average((scores - np.average(scores, weights=weight)) ** 2, weights=weight))
        apart = (means - means[first]) / spread if spread > 0 else np.zeros_like(means)
        result[name] = {str(g): float(apart[i]) for i, g in enumerate(attribute.values) if i != first}
    return result


@dataclass(frozen=True, eq=False)
class StratifiedRatio:
    """Two groups compared within strata (Mantel and Haenszel).

    Attributes
    ----------
    odds_ratio, risk_ratio, risk_difference : float
        Of selection, the group against the reference, pooled over the strata.
    low, high : float
        Confidence interval of the odds ratio (Robins, Breslow and Greenland).
    p_value : float
        Of the Cochran–Mantel–Haenszel test that the odds ratio is 1 in every stratum; no continuity correction.
    n_strata : int
        Strata that have rows of both groups, and so count.
    """

    odds_ratio: float
    risk_ratio: float
    risk_difference: float
    low: float
    high: float
    p_value: float
    n_strata: int


def mantel_haenszel(
    y_preds: Any,
    *,
    sensitive_features: Any,
    control_features: Any,
    reference: Any = None,
    threshold: float = 0.5,
    confidence: float = 0.95,
) -> dict[str, dict[str, StratifiedRatio]]:
    """Compare selection between groups within strata of other features, pooled over the strata.

    Parameters
    ----------
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores or decisions of `k` models.
    sensitive_features : array-like of shape (n,)
        One sensitive attribute.
    control_features : array-like of shape (n,) or (n, a), dict or dataframe
        What strata are made of: their cross product.
    reference : object, optional
        The group that the others are compared with; None: the one with the most rows.
    threshold : float
        A score strictly above it is decision 1.
    confidence : float
        Of the interval, in (0, 1).

    Returns
    -------
    dict of str to dict of str to StratifiedRatio
        By model and group.

    Notes
    -----
    With a, b the selected and other rows of the group in a stratum, c, d those of the reference, and n their sum: the
    odds ratio is Σ(ad/n) / Σ(bc/n), the risk ratio Σ(a(c + d)/n) / Σ(c(a + b)/n), and the risk difference is weighted
    by (a + b)(c + d)/n. Rates that differ between strata do not count, only those inside them. What is NaN, such as a
    ratio where nobody is selected, is undefined. Controls that are themselves results of unfair treatment hide it.

    Examples
    --------
    >>> y = [1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0]
    >>> sex, job = ["f", "f", "f", "m", "m", "m"] * 2, ["a"] * 6 + ["b"] * 6
    >>> found = mantel_haenszel({"a": y}, sensitive_features=sex, control_features=job, reference="m")
    >>> round(found["a"]["f"].odds_ratio, 3), found["a"]["f"].n_strata
    (1.0, 2)
    """
    same_order(y_preds=y_preds, sensitive_features=sensitive_features, control_features=control_features)
    given = _finite_predictions(y_preds)
    n_rows = len(given.matrix)
    attribute, _ = _one_attribute(sensitive_features, n_rows, None)
    level = number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    threshold = number(threshold, parameter="threshold")
    strata = Rows.validated(None, np.zeros((n_rows, 1)), control_features, whole=True).cells(labelled=False).codes
    first = _reference(attribute, reference, np.ones(n_rows))
    n_groups = len(attribute.values)
    cell = strata * n_groups + attribute.codes
    shape = (int(strata.max()) + 1, n_groups)
    rows = np.bincount(cell, minlength=shape[0] * n_groups).reshape(shape).astype(np.float64)
    result: dict[str, dict[str, StratifiedRatio]] = {}
    for name, scores in zip(given.names, given.matrix.T, strict=True):
        hits = np.bincount(cell, scores > threshold, minlength=shape[0] * n_groups).astype(np.float64)
        chosen = hits.reshape(shape)
        result[name] = {
            str(group): _pooled(chosen[:, g], rows[:, g], chosen[:, first], rows[:, first], level)
            for g, group in enumerate(attribute.values)
            if g != first
        }
    return result


def _pooled(a: FloatArray, n1: FloatArray, c: FloatArray, n0: FloatArray, level: float) -> StratifiedRatio:
    both = (n1 > 0) & (n0 > 0)
    if not both.any():
        raise GroupError("control_features must have a stratum with rows of both groups; got none: use fewer controls")
    a, n1, c, n0 = (part[both] for part in (a, n1, c, n0))
    b, d, n = n1 - a, n0 - c, n1 + n0
    with np.errstate(divide="ignore", invalid="ignore"):
        r, s, p, q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
        odds = r.sum() / s.sum()
        variance = (
            (p * r).sum() / (2 * r.sum() ** 2)
            + (p * s + q * r).sum() / (2 * r.sum() * s.sum())
            + (q * s).sum() / (2 * s.sum() ** 2)
        )
        half = float(ndtri(0.5 + level / 2)) * np.sqrt(variance)
        selected = a + c
        spread = (n1 * n0 * selected * (n - selected) / np.where(n > 1, n**2 * (n - 1), 1.0)).sum()
        test = (a - n1 * selected / n).sum() ** 2 / spread
        return StratifiedRatio(
            float(odds),
            float((a * n0 / n).sum() / (c * n1 / n).sum()),
            float(((a * n0 - c * n1) / n).sum() / (n1 * n0 / n).sum()),
            float(odds * np.exp(-half)),
            float(odds * np.exp(half)),
            float(chdtrc(1, test)),
            int(both.sum()),
        )


def _finite_predictions(y_preds: Any) -> Predictions:
    given = predictions(y_preds)
    check_finite(given.matrix, given.names)
    return given


def _one_attribute(sensitive_features: Any, n_rows: int, sample_weight: Any) -> tuple[Attribute, FloatArray]:
    found = attributes(sensitive_features, n_rows)
    if len(found) != 1:
        raise InvalidInputError(f"sensitive_features must be one attribute here; got {len(found)}: give one at a time")
    same_length(n_rows, "y_preds", sensitive_features=len(found[0].codes))
    weight = sample_weights(sample_weight, n_rows)
    return found[0], np.ones(n_rows) if weight is None else weight


def _reference(attribute: Attribute, reference: Any, weight: FloatArray) -> int:
    if reference is None:
        return int(np.argmax(np.bincount(attribute.codes, weight)))
    groups = [str(value) for value in attribute.values]
    if str(reference) not in groups:
        raise GroupError(f"reference must be a group of {attribute.name!r}, one of {groups[:8]}; got {reference!r}")
    return groups.index(str(reference))
