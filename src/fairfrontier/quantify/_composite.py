"""Composite FAUC: one number for several sensitive attributes at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray, unit_interval_pairs
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._weights import Weight, as_weight

WeightLike = Weight | Callable[[float], float] | None


def composite_fauc(fairness: Any, accuracy: Any, *, weights: WeightLike | Sequence[WeightLike] = None) -> float:
    """Compute the weighted volume under the TAF surface of several sensitive attributes.

    Parameters
    ----------
    fairness : array-like of shape (k, m), or dict of m arrays of shape (k,)
        Fairness of `k` models on each of `m` attributes, e.g. ``points.attribute_fairness``.
    accuracy : array-like of shape (k,)
        Accuracy of the models.
    weights : Weight or callable, or a sequence of m of them
        One weight for all attributes, or one each; None: uniform.

    Returns
    -------
    float
        ∫…∫ TAF(f₁,…,fₘ)·Πwᵢ / Π∫wᵢ, in [0, 1]; for one attribute the FAUC.

    Notes
    -----
    With uᵢ = Wᵢ(fᵢ), the normalised cumulative weight, the integral is the plain hypervolume of the points
    (u₁,…,uₘ, accuracy) above the origin, which moocore computes.

    Examples
    --------
    >>> round(composite_fauc({"sex": [1.0, 0.5], "race": [1.0, 1.0]}, [0.6, 0.8]), 9)
    0.7
    """
    levels, values = _levels(fairness, accuracy)
    m = levels.shape[1]
    each = list(weights) if isinstance(weights, Sequence) else [weights] * m
    if len(each) != m:
        raise InvalidInputError(f"weights must be one weight or one for each of the {m} attributes; got {len(each)}")
    u = np.stack([as_weight(w).normalized(levels[:, j]) for j, w in enumerate(each)], axis=1)
    moocore = require("moocore", extra="composite", purpose="composite_fauc")
    points = np.column_stack([u, values])
    return float(moocore.hypervolume(points, ref=np.zeros(m + 1), maximise=True))


def _levels(fairness: Any, accuracy: Any) -> tuple[FloatArray, FloatArray]:
    if isinstance(fairness, Mapping):
        columns = {f"fairness[{name!r}]": values for name, values in fairness.items()}
    else:
        array = np.asarray(fairness)
        if array.ndim not in (1, 2):
            raise InvalidInputError(f"fairness must be 2-D, one column an attribute; got shape {array.shape}")
        columns = {f"fairness[:, {j}]": values for j, values in enumerate(np.atleast_2d(array.T))}
    if not columns:
        raise InvalidInputError("fairness must have at least one attribute; got none: give one column an attribute")
    pairs = [unit_interval_pairs(values, accuracy, parameter=name) for name, values in columns.items()]
    return np.stack([level for level, _ in pairs], axis=1), pairs[0][1]
