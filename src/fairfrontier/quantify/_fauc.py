"""FAUC and FAUCI: the weighted area under a TAF curve (Definition 3)."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from fairfrontier._validation import interpolation
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.identify._points import tradeoff_points
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness
from fairfrontier.quantify._weights import Weight, as_weight, positive_total


def fauc(curve: TAFCurve, weight: Weight | Callable[[float], float] | None = None) -> float:
    """Compute the weighted area under a TAF curve.

    Parameters
    ----------
    curve : TAFCurve
        A step curve gives FAUC, a linear one FAUCI.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all levels equally.

    Returns
    -------
    float
        ∫ TAF·w / ∫ w, in [0, 1].

    Notes
    -----
    Between two knots l and r the curve is linear, so its part of the integral is accuracy(l)·(ΔW − R) + accuracy(r)·R
    with R = (ΔM − l·ΔW)/(r − l) and the weight's own integrals W and M: no quadrature, unless the weight is a plain
    function.

    Examples
    --------
    >>> from fairfrontier import StepWeight, taf_curve
    >>> curve = taf_curve([0.8, 0.9, 1.0], [0.9, 0.8, 0.6])
    >>> round(fauc(curve), 6)
    0.86
    >>> round(fauc(curve, StepWeight(0.8)), 6)
    0.7
    """
    if not isinstance(curve, TAFCurve):
        raise InvalidInputError(
            f"curve must be a TAFCurve; got {type(curve).__name__}: make one with taf_curve or TradeoffPoints.frontier"
        )
    w = as_weight(weight)
    levels = np.append(curve.fairness, 1.0)
    area = w.cumulative(levels)
    total = positive_total(area)
    part = np.diff(area[:-1], prepend=0.0)
    if not curve.linear:
        return float(part @ curve.accuracy / total)
    moment = np.diff(w.cumulative_moment(levels)[:-1])
    # The share of the right knot cannot leave [0, part]; rounding could, where two knots nearly coincide.
    right = np.clip((moment - curve.fairness[:-1] * part[1:]) / np.diff(curve.fairness), 0.0, part[1:])
    flat = part[0] * curve.accuracy[0]  # up to the first knot
    return float((flat + (part[1:] - right) @ curve.accuracy[:-1] + right @ curve.accuracy[1:]) / total)


def fauc_score(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    weight: Weight | Callable[[float], float] | None = None,
    interpolate: bool | Literal["signed"] = False,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
) -> float:
    """Compute FAUC from labels, predictions and sensitive features.

    Parameters
    ----------
    y_true, y_preds, sensitive_features
        As in `tradeoff_points`, as are all parameters that are not listed here.
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all levels equally.
    interpolate : {False, True, "signed"}
        FAUC, FAUCI, or the area under the signed hull.
    fairness, accuracy, threshold, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`.

    Returns
    -------
    float
        The weighted area, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> y, sex = np.array([1, 0, 1, 0]), np.array(["f", "f", "m", "m"])
    >>> fauc_score(y, {"a": [0.9, 0.1, 0.8, 0.2]}, sensitive_features=sex)
    1.0
    """
    interpolate = interpolation(interpolate)
    points = tradeoff_points(
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
    return fauc(points.frontier(interpolate), weight)
