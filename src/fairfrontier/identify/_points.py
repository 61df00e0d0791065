"""Fairness and accuracy of every model: the points of the trade-off."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import library_of, to_frame
from fairfrontier._groups import ProbableGroups
from fairfrontier._notebook import points_html
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks, dask_chunks, is_dask, whole
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, frontier_of, taf_curve
from fairfrontier.identify._other_measures import Calls, class_decisions, joined
from fairfrontier.metrics._accuracy import Accuracy, best_constant
from fairfrontier.metrics._contrasts import Fairness, RowSets, row_masks
from fairfrontier.metrics._sums import Sums, check_mask_length, masks_of_chunks, sum_rows

CONSTANT = "constant"
_NO_LABELS = "y_true must be given: one label per row; got None"


@dataclass(frozen=True, eq=False, repr=False)
class TradeoffPoints:
    """Fairness and accuracy of `k` models.

    Attributes
    ----------
    fairness : ndarray of shape (k,)
        1 − the largest absolute bias over the contrasts, not below 0; or the smallest ratio of two rates.
    accuracy : ndarray of shape (k,)
        The accuracy measure, larger is better.
    names : tuple of str, length k
        The models; the constant model, if there, is last.
    rates : ndarray of shape (k, s)
        The mean decision (or score) of each model in each row set; for regression in the unit of fairness.
    sets : RowSets
        The row sets and how they are compared.
    library : str
        The dataframe library of `to_frame`: that of the predictions, pandas where they were arrays.
    """

    fairness: FloatArray
    accuracy: FloatArray
    names: tuple[str, ...]
    rates: FloatArray
    sets: RowSets
    library: str = "pandas"

    @cached_property
    def bias(self) -> FloatArray:
        """Signed bias of each model on each contrast, shape (k, m): the first row set's rate minus the second's."""
        first, second = self.sets.pairs().T
        return self.rates[:, first] - self.rates[:, second]

    @cached_property
    def contrasts(self) -> tuple[str, ...]:
        """Names of the contrasts, the columns of `bias`."""
        return self.sets.contrast_names()

    @cached_property
    def attribute_fairness(self) -> dict[str, FloatArray]:
        """Fairness of each model on each sensitive attribute alone, arrays of shape (k,)."""
        worst: dict[str, FloatArray] = {}
        for name, gap in zip(self.sets.attributes, self.sets.block_gaps(self.rates), strict=True):
            worst[name] = np.maximum(worst.get(name, 0.0), gap)
        return {name: np.clip(1.0 - gap, 0.0, 1.0) for name, gap in worst.items()}

    def frontier(self, interpolate: bool | Literal["signed"] = False) -> TAFCurve:
        """Return the TAF curve of these models.

        Parameters
        ----------
        interpolate : {False, True, "signed"}
            False: the step curve TAF. True: TAFI, its concave hull. "signed": the best that any randomised mixture of
            the models attains, which is never below TAFI.

        Returns
        -------
        TAFCurve
            `support` holds indices into `names`.

        Notes
        -----
        Theorem 2 of the paper says that TAFI is the TAF of all randomised mixtures. That is so only while fairness is
        an average over mixtures, and 1 − |bias| is one only while the biases have one sign: half of a model with bias
        +b and half of one with bias −b is perfectly fair. The signed curve is the maximum of Σ pᵢ·accuracyᵢ over all
        probabilities p with |Σ pᵢ·biasᵢ| ≤ 1 − f on every contrast. (Where scores, not decisions, have a bias above 1,
        fairness stops at 0 and is no longer 1 − |bias|; mixtures may then fall short of TAFI too.)

        A ratio is no average over mixtures at all. With such a measure both hulls are the same step curve: the best
        mixture, by a linear program, at each hundredth and at the fairness of each model on the frontier.

        The accuracy of a mixture is the average of accuracies for decisions drawn model by model. ``"exp_mse"`` and
        ``"r2"`` of averaged *predictions* are another matter: there a mean of two models is better than a draw.

        Examples
        --------
        >>> import numpy as np
        >>> y, sex = np.array([1, 0, 1, 0]), np.array(["a", "a", "b", "b"])
        >>> scores = {"pro_a": [1, 1, 1, 0], "pro_b": [1, 0, 1, 1]}
        >>> points = tradeoff_points(y, scores, sensitive_features=sex, include_constant=False)
        >>> points.bias.ravel()
        array([ 0.5, -0.5])
        >>> points.frontier(interpolate=True)(1.0), points.frontier(interpolate="signed")(1.0)
        (0.0, 0.75)
        """
        kind = validate.interpolation(interpolate)
        if kind == "signed" or (kind and not self.sets.compares_differences):
            curve = frontier_of(self.rates, self.sets, self.accuracy, kind)
        else:
            curve = taf_curve(self.fairness, self.accuracy, interpolate=bool(kind))
        return replace(curve, library=self.library)

    def to_frame(self) -> Any:
        """Return the points as a dataframe: one row per model, with its rate in each row set."""
        optimal = np.zeros(len(self), dtype=bool)
        optimal[self.frontier().support] = True
        rates = {f"rate[{name}]": column for name, column in zip(self.sets.names, self.rates.T, strict=True)}
        known = {"model": list(self.names), "fairness": self.fairness, "accuracy": self.accuracy}
        return to_frame({**known, "pareto_optimal": optimal, **rates}, self.library)

    def select(self, models: Sequence[str] | IntArray | NDArray[np.bool_]) -> "TradeoffPoints":
        """Return the points of some of the models, by name, index or boolean mask."""
        position = {name: i for i, name in enumerate(self.names)}
        chosen = list(models)
        for name in chosen:
            if isinstance(name, str) and name not in position:
                validate.one_of(name, self.names, parameter="models")
        try:
            index = np.arange(len(self))[[position[m] if isinstance(m, str) else m for m in chosen]]
        except IndexError as error:
            raise InvalidInputError(
                f"models must be names, indices below {len(self)} or a mask of that length; got {chosen!r}: {error}"
            ) from None
        if len(index) == 0:
            raise InvalidInputError("models must select at least one model; got none: name one of the models")
        names, kept = tuple(self.names[i] for i in index), (self.fairness[index], self.accuracy[index])
        return TradeoffPoints(*kept, names, self.rates[index], self.sets, self.library)

    def __len__(self) -> int:
        return len(self.names)

    def _repr_html_(self) -> str:
        return points_html(self.names, self.fairness, self.accuracy, self.frontier().support)

    def __repr__(self) -> str:
        best = int(np.argmax(self.accuracy))
        fairest = int(np.lexsort((self.accuracy, self.fairness))[-1])
        shown = [
            f"{title} {self.names[i]!r}: accuracy {self.accuracy[i]:.4f}, fairness {self.fairness[i]:.4f}"
            for title, i in (("most accurate", best), ("fairest", fairest))
        ]
        return f"TradeoffPoints({len(self)} models; {'; '.join(shown)})"


def tradeoff_points(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
) -> TradeoffPoints:
    """Compute fairness and accuracy of every model in one pass over the rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Two classes of any type (the second in sorted order is positive), more classes, or numbers for regression.
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores or 0/1 decisions of `k` models, by name, by column; of more than two classes the decided class.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
        One or more sensitive attributes; groups may be anything hashable. None only with masks as `fairness`.
    fairness : str, list of (mask, mask), or callable
        ``"demographic_parity"``, ``"equal_opportunity"``, ``"predictive_equality"``, ``"equalized_odds"``,
        ``"mean_difference"``: 1 − the largest difference of rates. ``"impact_ratio"`` (of selection rates),
        ``"equal_opportunity_ratio"``, ``"predictive_equality_ratio"``, ``"equalized_odds_ratio"``: the lowest rate
        divided by the highest; where all rates are 0 everybody is treated alike, and it is 1. ``"odds_ratio"``: the
        same for the odds of selection.
        Any of them may be followed by ``" against GROUP"`` (groups are compared with that one only) and ``" within
        ATTRIBUTE"`` (groups are compared inside each value of that attribute, which is a control and no group).
        Or pairs of boolean masks of length n; or a function ``(y_true, y_pred, *, sensitive_features) -> bias``, 0
        meaning fair, such as Fairlearn's differences; of Fairlearn's ratios, 1 is fair. Functions are called once per
        model and see decisions.
    accuracy : str or callable
        ``"accuracy"``, ``"balanced_accuracy"``, ``"f1"``, ``"auc"``, ``"ks"``, ``"brier"`` (1 − Brier score),
        ``"recall_at:0.2"`` (`recall_at`), ``"payoff:1:-5"`` (`expected_payoff`), `row_payoff`, ``"r2"`` (clipped to
        [0, 1]), ``"exp_mse"`` (e to the −MSE), or a function ``(y_true, y_pred) -> float in [0, 1]``. The
        measures ``"r2"`` and ``"exp_mse"`` are those of regression: fairness is then that of the scores, and
        `threshold` is not used. A difference of mean scores is measured in standard deviations of `y_true`, so that
        fairness does not depend on its units; ``fairness="mean_difference"`` takes it as it is.
    threshold : float or None
        A score strictly above it is decision 1. None takes the scores as they are, for fairness and for accuracy: as
        the probabilities with which a randomised model decides 1.
    sensitive_mode : {"separate", "intersectional"}
        With several attributes: the contrasts of each, or of their cross product.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights.
    include_constant : bool
        Add the best constant model, named ``"constant"``, as the last one: it is perfectly fair.

    Returns
    -------
    TradeoffPoints
        One point per model.

    Notes
    -----
    Dask arrays, series and dataframes are taken too, for the named measures: each partition is summed where it lies,
    and nothing is gathered but the sums. See `points_from_chunks` for files.

    With more than two classes each is taken against the rest: the rates of deciding for it (with measures that
    condition, among rows that have that label, or have not) are compared between groups, and fairness is that of the
    worst class. Accuracy is the share of right decisions.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1, 0, 1, 0, 1, 0])
    >>> sex = np.array(["f", "f", "f", "m", "m", "m"])
    >>> points = tradeoff_points(y, {"a": [0.9, 0.2, 0.8, 0.1, 0.7, 0.3]}, sensitive_features=sex)
    >>> points.names
    ('a', 'constant')
    >>> points.accuracy
    array([1. , 0.5])
    >>> points.fairness.round(4)
    array([0.6667, 1.    ])
    """
    parts = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    options: dict[str, Any] = {
        "fairness": fairness,
        "accuracy": accuracy,
        "threshold": threshold,
        "sensitive_mode": sensitive_mode,
        "include_constant": include_constant,
    }
    if is_dask(y_true, y_preds, sensitive_features, sample_weight):
        return points_from_chunks(dask_chunks(y_true, y_preds, **parts), **options)
    if isinstance(accuracy, str) and accuracy == "accuracy" and y_true is not None and not callable(fairness):
        several = class_decisions(y_true, y_preds)
        if several is not None:
            return _points_of_classes(*several, parts, options)
    library = library_of(y_preds, y_true, sensitive_features)
    probable = isinstance(sensitive_features, ProbableGroups) and isinstance(fairness, str) and not callable(accuracy)
    rows = evaluation_rows(y_true, y_preds, fairness=fairness, spread=not probable, **parts)
    if callable(fairness) or callable(accuracy):
        return replace(called_points(rows, sensitive_features, **options), library=library)
    check_constant_name(rows.names, include_constant)
    options.pop("include_constant")
    found = sum_rows(whole(rows), groups=sensitive_features if probable else None, **options)
    return replace(points_from_sums(found, rows.names, include_constant=include_constant), library=library)


def _points_of_classes(
    classes: list[Any], label: IntArray, decided: dict[str, IntArray], parts: dict[str, Any], options: dict[str, Any]
) -> TradeoffPoints:
    """Return points where there are more than two classes: one against the rest, for each."""
    include_constant, names = options["include_constant"], tuple(decided)
    check_constant_name(names, include_constant)
    binary = options | {"include_constant": False, "threshold": 0.5}
    found = []
    for i, value in enumerate(classes):
        chosen = {name: (codes == i).astype(np.uint8) for name, codes in decided.items()}
        points = tradeoff_points((label == i).astype(np.uint8), chosen, **parts, **binary)
        found.append((value, points.rates, points.sets))
    rates, sets = joined(found)
    weight = validate.sample_weights(parts["sample_weight"], len(label))
    right = np.array([np.average(codes == label, weights=weight) for codes in decided.values()])
    if not include_constant:
        return points_from_rates(rates, sets, right, names)
    shares = np.bincount(label, weight, minlength=len(classes)) / (len(label) if weight is None else weight.sum())
    # The constant model decides for the most frequent class, whatever the group.
    constant = np.concatenate([np.full(part.shape[1], i == shares.argmax()) for i, (_, part, _) in enumerate(found)])
    return points_from_rates(np.vstack([rates, constant]), sets, np.append(right, shares.max()), (*names, CONSTANT))


def points_from_chunks(
    chunks: Chunks,
    *,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    threshold: float | None = 0.5,
    sensitive_mode: str = "separate",
    include_constant: bool = True,
) -> TradeoffPoints:
    """Compute fairness and accuracy of every model in one pass over chunks.

    Parameters
    ----------
    chunks : Chunks
        Labels, scores, groups and weights, from `array_chunks`, `file_chunks`, `iterable_chunks` or `dask_chunks`.
    fairness : str or list of (mask, mask)
        As in `tradeoff_points`; functions need all rows at once.
    accuracy : str
        As in `tradeoff_points`; functions need all rows at once.
    threshold, sensitive_mode, include_constant
        As in `tradeoff_points`.

    Returns
    -------
    TradeoffPoints
        Equal to those of all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> from fairfrontier.chunks import array_chunks
    >>> y, sex = [1, 0, 1, 0, 1, 0], ["f", "f", "f", "m", "m", "m"]
    >>> scores = np.array([[0.9, 0.2, 0.8, 0.1, 0.7, 0.3]]).T
    >>> chunks = array_chunks(y, scores, sensitive_features=sex, names=("a",), chunk_rows=2)
    >>> points_from_chunks(chunks).fairness.round(4)
    array([0.6667, 1.    ])
    """
    check_constant_name(chunks.names, include_constant)
    masked = masks_of_chunks(fairness, chunks)
    found = sum_rows(masked, fairness=fairness, accuracy=accuracy, threshold=threshold, sensitive_mode=sensitive_mode)
    check_mask_length(fairness, int(found.rows.sum()))
    return points_from_sums(found, chunks.names, include_constant=include_constant)


def evaluation_rows(
    y_true: Any, y_preds: Any, *, sensitive_features: Any, sample_weight: Any, fairness: Any, spread: bool = True
) -> Rows:
    """Return the validated rows of a call; the parameters are those of `tradeoff_points`.

    Where `fairness` is pairs of masks, these are the attributes of the rows.
    """
    if y_true is None:
        raise InvalidInputError(_NO_LABELS)
    named = isinstance(fairness, str) or callable(fairness)
    options: dict[str, Any] = {"sample_weight": sample_weight, "whole": True, "needs_attributes": named}
    rows = Rows.validated(y_true, y_preds, sensitive_features, spread=spread, **options)
    return rows if named else rows.with_masks(row_masks(fairness, len(rows)))


def check_constant_name(names: Sequence[str], include_constant: bool, *, parameter: str = "y_preds") -> None:
    """Raise if a model has the name of the constant model that is to be added."""
    if include_constant and CONSTANT in names:
        raise InvalidInputError(
            f"{parameter} must not name a model {CONSTANT!r} while include_constant=True adds one of that name; "
            "rename it or pass include_constant=False"
        )


def points_from_sums(found: Sums, names: tuple[str, ...], *, include_constant: bool = True) -> TradeoffPoints:
    """Return points from the sums over cells, the best constant model last if it is asked for."""
    sums, contrasts = found.sums, found.contrasts
    values, rates = found.measure.value(sums, contrasts.label), found.rates()
    if not include_constant:
        return points_from_rates(rates, contrasts.sets, values, names)
    constant = best_constant(found.measure, sums, contrasts.label)
    # One rate in every row set: perfectly fair, whatever rounding does to quotients of sums.
    rates = np.vstack([rates, np.full(rates.shape[1], constant.outcome / found.unit)])
    return points_from_rates(rates, contrasts.sets, np.append(values, constant.accuracy), (*names, CONSTANT))


def points_from_rates(rates: FloatArray, sets: RowSets, accuracy: FloatArray, names: tuple[str, ...]) -> TradeoffPoints:
    """Return points from group rates (k, s) and accuracies (k,)."""
    # An accuracy is a quotient of sums; rounding may leave it a hair outside [0, 1].
    return TradeoffPoints(sets.fairness(rates), np.clip(accuracy, 0.0, 1.0), names, rates, sets)


def called_points(
    rows: Rows,
    sensitive_features: Any,
    *,
    fairness: Fairness,
    accuracy: Accuracy,
    include_constant: bool,
    **options: Any,
) -> TradeoffPoints:
    """Return points where fairness or accuracy is a function, which is called once per model."""
    check_constant_name(rows.names, include_constant)
    # A function's bias is its own, but the accuracy still needs cells; and the other way round.
    named = Calls(rows, sensitive_features, accuracy, options["threshold"])
    found = sum_rows(
        whole(rows),
        fairness="demographic_parity" if callable(fairness) else fairness,
        accuracy="accuracy" if callable(accuracy) else accuracy,
        **options,
    )
    points = points_from_sums(found, rows.names, include_constant=include_constant)
    rates, sets, values = points.rates, points.sets, points.accuracy
    if callable(fairness):
        bias = named.biases(fairness, include_constant=include_constant)
        name = getattr(fairness, "__name__", type(fairness).__name__)
        rates, sets = np.stack([bias, np.zeros_like(bias)], axis=1), RowSets((name, "parity"), ((0, 1),), (name,))
    if callable(accuracy):
        values, outcome = named.accuracies(accuracy, include_constant=include_constant)
        if include_constant and not callable(fairness):
            rates = np.vstack([rates[:-1], np.full(rates.shape[1], outcome)])
    return points_from_rates(rates, sets, values, points.names)
