"""Fairness and accuracy of every model: the points of the trade-off."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._html import points_html
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import dask_chunks, is_dask
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, signed_frontier, taf_curve
from fairfrontier.identify._rows import Rows
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Contrasts, Fairness, RowSets, build_contrasts

CONSTANT = "constant"


@dataclass(frozen=True, eq=False, repr=False)
class TradeoffPoints:
    """Fairness and accuracy of `k` models.

    Attributes
    ----------
    fairness : ndarray of shape (k,)
        1 − the largest absolute bias over the contrasts, not below 0.
    accuracy : ndarray of shape (k,)
        The accuracy measure, larger is better.
    names : tuple of str, length k
        The models; the constant model, if there, is last.
    rates : ndarray of shape (k, s)
        The mean decision (or score) of each model in each row set.
    sets : RowSets
        The row sets and how they are compared.
    """

    fairness: FloatArray
    accuracy: FloatArray
    names: tuple[str, ...]
    rates: FloatArray
    sets: RowSets

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
        if kind == "signed":
            return signed_frontier(self.rates, self.sets, self.accuracy)
        return taf_curve(self.fairness, self.accuracy, interpolate=kind)

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
        return TradeoffPoints(
            self.fairness[index],
            self.accuracy[index],
            tuple(self.names[i] for i in index),
            self.rates[index],
            self.sets,
        )

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
        Two classes of any type (the second in sorted order is positive), or numbers for regression.
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores or 0/1 decisions of `k` models, by name, by column.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
        One or more sensitive attributes; groups may be anything hashable. None only with masks as `fairness`.
    fairness : str, list of (mask, mask), or callable
        ``"demographic_parity"``, ``"equal_opportunity"``, ``"predictive_equality"``, ``"equalized_odds"``; pairs of
        boolean masks of length n; or a function ``(y_true, y_pred, *, sensitive_features) -> bias``, 0 meaning fair,
        such as Fairlearn's differences. Functions are called once a model and see decisions.
    accuracy : str or callable
        ``"accuracy"``, ``"balanced_accuracy"``, ``"brier"`` (1 − Brier score), ``"r2"`` (clipped to [0, 1]),
        ``"exp_mse"`` (e to the −MSE), or a function ``(y_true, y_pred) -> float in [0, 1]``. The measures ``"r2"`` and
        ``"exp_mse"`` are those of regression: fairness is then that of the scores, and `threshold` is not used.
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
        One point a model.

    Notes
    -----
    Dask arrays, series and dataframes are taken too, for the named measures: each partition is summed where it lies,
    and nothing is gathered but the sums. See `points_from_chunks` for files.

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
    if is_dask(y_true, y_preds, sensitive_features, sample_weight):
        from fairfrontier.identify._chunked import points_from_chunks  # which needs this module

        return points_from_chunks(
            dask_chunks(y_true, y_preds, sensitive_features=sensitive_features, sample_weight=sample_weight),
            fairness=fairness,
            accuracy=accuracy,
            threshold=threshold,
            sensitive_mode=sensitive_mode,
            include_constant=include_constant,
        )
    preds = validate.predictions(y_preds)
    if include_constant and CONSTANT in preds.names:
        raise InvalidInputError(
            f"y_preds must not name a model {CONSTANT!r} while include_constant=True adds one of that name; "
            "rename it or pass include_constant=False"
        )
    rows = Rows.validated(
        y_true,
        preds,
        sensitive_features,
        accuracy=accuracy,
        threshold=threshold,
        sample_weight=sample_weight,
        needs_attributes=isinstance(fairness, str) or callable(fairness),
    )
    # A function's bias is its own, but the accuracy still needs cells.
    contrasts = build_contrasts(
        "demographic_parity" if callable(fairness) else fairness,
        label=rows.label,
        attributes=rows.attributes,
        sensitive_mode=sensitive_mode,
        n_rows=len(rows.y),
    )
    sums = rows.sums(contrasts.cells)
    if callable(fairness):
        rates, sets = rows.called_bias(fairness, sensitive_features)
    else:
        rates, sets = contrasts.rates(sums.outcome, sums.weight), contrasts.sets
    values = rows.accuracies(sums, contrasts.cells.label)
    if not include_constant:
        return points_from_rates(rates, sets, values, preds.names)
    constant = rows.best_constant(sums, contrasts.cells.label)
    # One rate in every row set: perfectly fair, whatever rounding does to quotients of sums.
    rates = np.vstack([rates, np.full(rates.shape[1], 0.0 if callable(fairness) else constant.outcome)])
    return points_from_rates(rates, sets, np.append(values, constant.accuracy), (*preds.names, CONSTANT))


def points_from_rates(rates: FloatArray, sets: RowSets, accuracy: FloatArray, names: tuple[str, ...]) -> TradeoffPoints:
    """Return points from group rates (k, s) and accuracies (k,)."""
    # An accuracy is a quotient of sums; rounding may leave it a hair outside [0, 1].
    return TradeoffPoints(
        np.clip(1.0 - sets.largest_gap(rates), 0.0, 1.0), np.clip(accuracy, 0.0, 1.0), names, rates, sets
    )


def contrasts_for_fit(
    fairness: str | Sequence[tuple[Any, Any]],
    *,
    label: NDArray[np.bool_] | None,
    sensitive_features: Any,
    n_rows: int,
    sensitive_mode: str,
) -> Contrasts:
    """Return the contrasts of a fit from raw sensitive features."""
    given = isinstance(fairness, str) or sensitive_features is not None
    attributes = validate.attributes(sensitive_features, n_rows) if given else ()
    return build_contrasts(fairness, label=label, attributes=attributes, sensitive_mode=sensitive_mode, n_rows=n_rows)
