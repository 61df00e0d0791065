"""Confidence intervals for FAUC and for the difference of two families.

The truth that the intervals are about is the FAUC that the same fitted models have in the population from which the
rows were drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import check_constant_name
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness
from fairfrontier.quantify._bootstrap import Sample, members, sample
from fairfrontier.quantify._fauc import Weight
from fairfrontier.quantify._resampling import (
    Area,
    Deviations,
    Interpolate,
    Resampled,
    Scheme,
    area_interval,
    difference_interval,
    is_narrow,
    resample,
)


@dataclass(frozen=True, eq=False)
class FAUCInterval:
    """A confidence interval for FAUC.

    Attributes
    ----------
    estimate : float
        FAUC on the data, as `fauc_score` gives it. It is too high on average: see `fauc_interval`.
    low, high : float
        The interval.
    samples : ndarray of shape (n_resamples,)
        FAUC of each resample.
    corrected : float
        The estimate minus its bias: the middle of the two values that `fauc_interval` extrapolates.
    confidence : float
        The nominal coverage.
    """

    estimate: float
    low: float
    high: float
    samples: FloatArray
    corrected: float
    confidence: float

    def __repr__(self) -> str:
        return (
            f"FAUCInterval({self.estimate:.4f}, {self.confidence:.0%} interval [{self.low:.4f}, {self.high:.4f}], "
            f"corrected {self.corrected:.4f})"
        )


@dataclass(frozen=True, eq=False)
class FAUCComparison:
    """The difference in FAUC of two families on the same rows.

    Attributes
    ----------
    difference : float
        FAUC of the first family minus that of the second.
    low, high : float
        The confidence interval of the difference.
    p_value : float
        The smallest level at which the interval excludes 0.
    samples : ndarray of shape (n_resamples,)
        The difference in each resample.
    confidence : float
        The nominal coverage.
    """

    difference: float
    low: float
    high: float
    p_value: float
    samples: FloatArray
    confidence: float

    def __repr__(self) -> str:
        return (
            f"FAUCComparison({self.difference:+.4f}, {self.confidence:.0%} interval [{self.low:+.4f}, "
            f"{self.high:+.4f}], p = {self.p_value:.3g})"
        )


def fauc_interval(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    weight: Weight | Callable[[float], float] | None = None,
    interpolate: Interpolate = False,
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
) -> FAUCInterval:
    """Compute a confidence interval for the FAUC of a collection of models.

    Parameters
    ----------
    y_true, y_preds, sensitive_features
        As in `tradeoff_points`.
    weight, interpolate
        As in `fauc_score`.
    confidence : float
        The nominal coverage, in (0, 1).
    n_resamples : int
        The number of bootstrap replicates, at least 50.
    method : {"multinomial", "bayesian"}
        Rows drawn with replacement, or exponential weights, which leave no group empty.
    stratify : bool
        Resample within each combination of sensitive groups, for rows that were drawn with fixed group sizes.
    random_state : int, numpy.random.Generator or None
        Fixes the resamples.
    fairness, accuracy, threshold, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`; `fairness` and `accuracy` must not be functions.

    Returns
    -------
    FAUCInterval
        Not above the best accuracy, nor below that of the constant model, beyond their error. With many close models it
        may lie below `estimate` altogether.

    Notes
    -----
    FAUC is a maximum over models that were evaluated with noise, so that it is too high on average on the same data
    (the winner's curse), and a resample is too high by a second bias: plain percentile intervals contain both.

    Let g(v) be the mean FAUC of resamples whose deviations are multiplied by √v. It is smooth in the data, where FAUC
    itself is not, and it is off by the bias b(1 + v) that noise of 1 + v times the data's variance gives. If b is
    proportional to the variance (one model leads at each level), g(1) − 2·(g(2) − g(1)) has no bias; if to its square
    root (all models are level), g(1) − 4.45·(g(2) − g(1)) has none. The data hardly say which. So the interval spans
    both values, and extends z standard errors beyond each.

    The errors are those of the two values, from resamples of resamples, for which the replicates' deviations are added
    in pairs: no row is read again. They are taken at points from which the spread that noise explains has been removed.
    At the estimated points, which noise has driven apart, fewer models compete than in truth: with level models a
    difference of two families would seem a third more uncertain than it is. To the extent that a family's models look
    level, the second value is g(1) minus the bias at these points.

    Near a bias of 0, FAUC has kinks: noise of either sign lowers the fairness of a perfectly fair model, and of several
    models that are nearly fair, noise makes some look perfectly fair. Either bias depends on where exactly the true
    biases lie, which the data do not say, and does not follow a power of the variance. So the standard errors get
    another term. FAUC at a deviation and at its opposite have a mean, which is constant where FAUC is linear. Let s be
    the standard deviation of this mean over the resamples: the squared error gets (3s)² at the lower end of the
    interval and s² at the upper end, and s² at both ends of the interval of a difference; the factors were chosen
    by simulation.

    A weight that looks at a narrow range of levels makes FAUC a step: a model is fair enough to count, or it is not. If
    the middle half of the weight is narrower than 1.2 standard errors of a model's fairness, as with a point, or a step
    at 0.95 and small groups, the interval is that of the areas under the bands of `taf_bands`: it covers, and is wide
    where the rows cannot tell. Signed hulls and hulls of ratios have no bands; their intervals are then too short.

    With ``interpolate="signed"`` and several contrasts each resample is a linear program: lower `n_resamples`.

    In simulations of 500 test sets each (``examples/simulate_coverage.py``, ``results/coverage.md``) intervals of
    nominally 95 % cover the population's value in 94.0 to 97.4 % of cases, whether 8 models are far apart or 100 are
    equally good, where a percentile interval covers it in 24 to 27 %. The weight is the step at 0.8 there; the end of
    that page has steps at 0.9 and 0.95, and a point.

    With more than 200 resamples, the first 100 screen the models: those that would not come to a frontier with four
    times their deviation are left out of the others.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, sex = rng.random(500) < 0.4, rng.choice(["f", "m"], 500)
    >>> scores = {"sharp": 0.6 * y + 0.4 * rng.random(500), "blunt": 0.3 * y + 0.6 * rng.random(500)}
    >>> interval = fauc_interval(y, scores, sensitive_features=sex, random_state=0)
    >>> bool(interval.low < interval.corrected < interval.high)
    True
    """
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
    area = Area(data.sets, weight, interpolate)
    scheme = Scheme(confidence, n_resamples, method, stratify, random_state)
    result = resample(data, area, scheme, np.arange(len(data.points)))
    low, high = area_interval(data, area, scheme, result)
    return FAUCInterval(
        result.estimate,
        float(np.clip(low, 0.0, 1.0)),
        float(np.clip(high, 0.0, 1.0)),
        result.samples,
        float(np.clip(result.corrected, 0.0, 1.0)),
        scheme.confidence,
    )


def compare_fauc(
    y_true: Any,
    y_preds_a: Any,
    y_preds_b: Any,
    *,
    sensitive_features: Any,
    weight: Weight | Callable[[float], float] | None = None,
    interpolate: Interpolate = False,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    method: str = "multinomial",
    stratify: bool = False,
    random_state: Any = None,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy | Sequence[Accuracy] = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
    paired: bool = True,
) -> FAUCComparison:
    """Compare the FAUC of two families of models, on the same rows or on two sets of rows.

    Parameters
    ----------
    y_true, sensitive_features
        As in `tradeoff_points`.
    y_preds_a, y_preds_b : dict, 2-D array-like or dataframe
        The predictions of each family. A model may be in both.
    weight, interpolate, confidence, n_resamples, method, stratify, random_state
        As in `fauc_interval`.
    fairness, accuracy, threshold, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`; the constant model joins both families.
    paired : bool
        False: the families have rows of their own, such as two populations. Then `y_true`, `sensitive_features` and
        `sample_weight` (unless it is None) are pairs, of the first and of the second. So may `accuracy` be, with
        `row_payoff` of the rows of each.

    Returns
    -------
    FAUCComparison
        Positive differences favour the first family.

    Notes
    -----
    A paired comparison evaluates both families on the same resamples, and the noise that they share cancels. Unpaired,
    each has resamples of its own, and the variances add; a difference then is one of models and rows together. FAUC
    depends on how difficult rows are, so that a larger FAUC elsewhere does not make a method the better one.
    The interval is made like that of `fauc_interval`, each family with a bias of its own, so that the families need
    neither be of one size nor of one kind; under a narrow weight it is made from the bands of both families. p is the
    level at which it just touches 0: below 0.05 if and only if an interval of 95 % from the same resamples excludes 0.
    In the simulations of ``results/coverage.md`` intervals of nominally 95 % cover the true difference of two halves of
    the models in 94.2 to 97.2 % of cases; of 500 close models in 98.6 %.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, sex = rng.random(800) < 0.4, rng.choice(["f", "m"], 800)
    >>> good, bad = 0.6 * y + 0.6 * rng.random(800), rng.random(800)
    >>> comparison = compare_fauc(y, {"good": good}, {"bad": bad}, sensitive_features=sex, random_state=0)
    >>> comparison.low > 0, comparison.p_value < 0.01
    (True, True)
    """
    options: dict[str, Any] = {"fairness": fairness, "accuracy": accuracy, "threshold": threshold}
    options |= {"sensitive_mode": sensitive_mode, "include_constant": include_constant}
    scheme = Scheme(confidence, n_resamples, method, stratify, random_state)
    if not paired:
        given = {"y_true": y_true, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
        return _unpaired(given, (y_preds_a, y_preds_b), options, scheme, weight, interpolate)
    classes_of = validate.column(y_true, parameter="y_true")
    first, second = (validate.predictions(one, classes_of=classes_of) for one in (y_preds_a, y_preds_b))
    check_constant_name((*first.names, *second.names), include_constant, parameter="y_preds_a and y_preds_b")
    validate.same_length(len(first.matrix), y_preds_b=len(second.matrix))
    names_a = tuple(f"a/{name}" for name in first.names)
    names_b = tuple(f"b/{name}" for name in second.names)
    data = sample(
        y_true,
        validate.Predictions(np.concatenate([first.matrix, second.matrix], axis=1), names_a + names_b),
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        **options,
    )
    area = Area(data.sets, weight, interpolate)
    families = members(data.points.names, names_a), members(data.points.names, names_b)
    result = resample(data, area, scheme, *families)
    return _comparison(result, area, scheme, [data], families)


def _comparison(
    result: Resampled, area: Area, scheme: Scheme, rows: Sequence[Sample], families: Sequence[IntArray | None]
) -> FAUCComparison:
    """Return the interval of the resamples, or under a narrow weight that of the bands of two families."""
    (low, high), p_value = result.interval(scheme.confidence), result.p_value()
    if is_narrow(area, result):
        known = [Deviations(data, scheme) for data in rows]
        a, b = (known[0], families[0]), (known[-1], families[1])
        low, high, p_value = difference_interval(area, a, b, scheme.confidence)
    return FAUCComparison(result.estimate, float(low), float(high), p_value, result.samples, scheme.confidence)


def _unpaired(
    given: dict[str, Any],
    families: tuple[Any, Any],
    options: dict[str, Any],
    scheme: Scheme,
    weight: Any,
    interpolate: Interpolate,
) -> FAUCComparison:
    """Return the difference of two families on rows of their own, which are resampled apart."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, (tuple, list)) and len(value) == 2):
            raise InvalidInputError(f"{name} must be a pair with paired=False, one for each family; got {type(value)}")
    pair = options["accuracy"]
    if isinstance(pair, (tuple, list)) and len(pair) != 2:
        raise InvalidInputError(f"accuracy must be one measure or a pair with paired=False; got {len(pair)} of them")
    rows: list[Sample] = []
    for i, y_preds in enumerate(families):
        parts: dict[str, Any] = {name: None if value is None else value[i] for name, value in given.items()}
        accuracy = options["accuracy"][i] if isinstance(options["accuracy"], (tuple, list)) else options["accuracy"]
        rows.append(sample(parts.pop("y_true"), y_preds, **parts, **options | {"accuracy": accuracy}))
    areas = [Area(data.sets, weight, interpolate) for data in rows]
    a, b = (resample(data, area, scheme, np.arange(len(data.points))) for data, area in zip(rows, areas, strict=True))
    # Which law the bias of a family follows is not known of either: all combinations count.
    pairs = [(i, j) for i in range(len(a.centres)) for j in range(len(b.centres))]
    result = Resampled(
        a.estimate - b.estimate,
        a.corrected - b.corrected,
        a.samples - b.samples,
        tuple(a.centres[i] - b.centres[j] for i, j in pairs),
        tuple(float(np.hypot(a.errors[i], b.errors[j])) for i, j in pairs),
        (float(np.hypot(a.kinks[0], b.kinks[1])), float(np.hypot(a.kinks[1], b.kinks[0]))),
        max(a.noise, b.noise),
        max(a.accuracy_error, b.accuracy_error),
    )
    return _comparison(result, areas[0], scheme, rows, (None, None))
