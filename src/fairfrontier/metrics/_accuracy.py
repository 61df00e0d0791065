"""Accuracy measures in [0, 1], larger is better, as functions of sums over cells, and the best constant of each."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._columns import numeric
from fairfrontier._validation import FloatArray, IntArray, column, finite, number
from fairfrontier.exceptions import InvalidInputError

if TYPE_CHECKING:
    from fairfrontier.metrics._sums import CellSums

BoolArray = NDArray[np.bool_]
# Decisions of a block: so many floats stay in the processor's cache.
_BLOCK = 2**16


def _majority(weight: FloatArray, label: BoolArray) -> BoolArray:
    return np.asarray(weight[..., label].sum(axis=-1) > weight[..., ~label].sum(axis=-1))


def _always(weight: FloatArray, label: BoolArray) -> BoolArray:
    return np.ones(weight.shape[:-1], dtype=bool)


@dataclass(frozen=True)
class AccuracyMeasure:
    """A measure and what it needs.

    Attributes
    ----------
    name : str
        Its name, the value of ``accuracy=``.
    value : callable
        ``(sums, label of each cell) -> (k,)``.
    regression : bool
        True: y is a number, and fairness is that of the scores.
    squared_error : bool
        True: needs the sum of squared errors of the scores.
    of_rows : callable or None
        ``(label (n,), scores (n, k), decisions (n, k), weight (n,)) -> (k,)`` for a measure that is no function of sums
        over cells, such as one of ranks; it then needs all rows at once.
    prefers_positive : callable
        ``(weight (..., c), label (c,)) -> bool (...)``: whether deciding 1 for everybody is better than 0.
    amounts : ndarray of shape (n,) or None
        What `of_rows` knows of each row of the caller's table.
    """

    name: str
    value: Callable[["CellSums", NDArray[np.bool_]], FloatArray]
    regression: bool = False
    squared_error: bool = False
    of_rows: Callable[[BoolArray, NDArray[Any], NDArray[Any], FloatArray], FloatArray] | None = None
    prefers_positive: Callable[[FloatArray, BoolArray], BoolArray] = _majority
    amounts: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what the measure can be made of again: its functions are no data that a file could hold."""
        return {"name": self.name, "amounts": self.amounts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name, amounts = state["name"], state["amounts"]
        known = ACCURACY_MEASURES.get(name) if amounts is None else _row_payoff(amounts)
        known = known or measure_of_text(name, parameter="accuracy")
        for field in fields(self):
            object.__setattr__(self, field.name, getattr(known, field.name))

    def at(self, row: IntArray) -> "AccuracyMeasure":
        """Return the measure for rows by their numbers (q,): a row that may be in several groups is there for each."""
        if self.amounts is None:
            return self
        self.check_length(n_different(row))
        return _row_payoff(self.amounts[row])

    def amounts_of(self, row: IntArray) -> FloatArray | None:
        """Return the amounts of some rows by their numbers (n,) in the whole table; None: the measure has none."""
        if self.amounts is None or len(row) == 0:
            return self.amounts
        if row.max() >= len(self.amounts):
            self.check_length(int(row.max()) + 1)
        return self.amounts[row]

    def check_length(self, n_rows: int) -> None:
        """Raise if there is not one amount for each of the rows."""
        if self.amounts is not None and n_rows != len(self.amounts):
            raise InvalidInputError(f"gain must have one amount per row, {n_rows}; got {len(self.amounts)}")


Accuracy = str | AccuracyMeasure | Callable[..., float]


def n_different(row: IntArray) -> int:
    """Return how many rows there are by their numbers (n,): one that may be in several groups is there for each."""
    return int(np.count_nonzero(np.bincount(row - row.min()))) if len(row) else 0


def _accuracy(sums: "CellSums", label: NDArray[np.bool_]) -> FloatArray:
    sign = np.where(label, 1.0, -1.0)
    return np.asarray((sign @ sums.outcome + sums.weight[~label].sum()) / sums.weight.sum())


def _balanced_accuracy(sums: "CellSums", label: NDArray[np.bool_]) -> FloatArray:
    positive, negative = sums.weight[label].sum(), sums.weight[~label].sum()
    if positive == 0 or negative == 0:
        raise InvalidInputError(
            "accuracy='balanced_accuracy' is undefined: sample_weight, or a resample, leaves one of the two classes "
            "without weight"
        )
    # Counts may come in single precision, in which NumPy 1 would leave the quotient.
    true_positive = sums.outcome[label].sum(axis=0, dtype=np.float64) / positive
    true_negative = 1.0 - sums.outcome[~label].sum(axis=0, dtype=np.float64) / negative
    return np.asarray((true_positive + true_negative) / 2.0)


def _mean_squared_error(sums: "CellSums") -> FloatArray:
    if sums.squared_error is None:
        raise InvalidInputError("these sums hold no squared errors; sum them with y")
    return np.asarray(sums.squared_error / sums.weight.sum())


def _brier(sums: "CellSums", label: NDArray[np.bool_]) -> FloatArray:
    return 1.0 - _mean_squared_error(sums)


def _r2(sums: "CellSums", label: NDArray[np.bool_]) -> FloatArray:
    total = sums.weight.sum()
    variance = sums.y_square_sum / total
    if variance <= (4 * np.finfo(np.float64).eps * sums.y_sum / total) ** 2:  # the mean of equal values is rounded
        raise InvalidInputError("accuracy='r2' is undefined: y_true has one value only; use 'exp_mse'")
    return np.asarray(np.clip(1.0 - _mean_squared_error(sums) / variance, 0.0, 1.0))


def _exp_mse(sums: "CellSums", label: NDArray[np.bool_]) -> FloatArray:
    return np.asarray(np.exp(-_mean_squared_error(sums)))


def _f1(sums: "CellSums", label: BoolArray) -> FloatArray:
    """Return 2·TP / (2·TP + FP + FN)."""
    selected = sums.outcome.sum(axis=0, dtype=np.float64)
    hit = sums.outcome[label].sum(axis=0, dtype=np.float64)
    return np.asarray(2.0 * hit / (selected + sums.weight[label].sum()))


def _of_utility(sums: "CellSums", label: BoolArray) -> FloatArray:
    """Return what `of_rows` has found of the models, without the two constant ones behind them."""
    if sums.utility is None:
        raise InvalidInputError("this accuracy measure needs all rows at once; evaluate models in memory")
    return sums.utility[: sums.outcome.shape[1]]


def of_models(
    one: Callable[[FloatArray, FloatArray, FloatArray], float],
) -> Callable[[BoolArray, NDArray[Any], NDArray[Any], FloatArray], FloatArray]:
    """Return a measure of many models from one of the ranking of one model.

    `one` sees a ranking: shares of all rows (q,) that each cut selects, ascending from 0 to 1, with the shares of the
    positive and of the negative rows among them. Rows with equal scores are one cut.
    """

    def measure(label: BoolArray, scores: NDArray[Any], decided: NDArray[Any], weight: FloatArray) -> FloatArray:
        positive, total = weight * label, weight.sum()
        result = np.empty(scores.shape[1])
        for j in range(scores.shape[1]):
            of_model = np.ascontiguousarray(scores[:, j])
            order = np.argsort(of_model)[::-1]
            ends = np.append(np.flatnonzero(np.diff(of_model[order])), len(order) - 1)
            selected = np.append(0.0, np.cumsum(weight[order])[ends])
            hits = np.append(0.0, np.cumsum(positive[order])[ends])
            misses = selected - hits
            result[j] = one(selected / total, hits / positive.sum(), misses / (total - positive.sum()))
        return result

    return measure


def _auc(selected: FloatArray, true: FloatArray, false: FloatArray) -> float:
    return float(np.diff(false) @ (true[1:] + true[:-1]) / 2.0)


def _ks(selected: FloatArray, true: FloatArray, false: FloatArray) -> float:
    return float(np.abs(true - false).max())


ACCURACY_MEASURES: dict[str, AccuracyMeasure] = {
    measure.name: measure
    for measure in (
        AccuracyMeasure("accuracy", _accuracy),
        AccuracyMeasure("balanced_accuracy", _balanced_accuracy),
        AccuracyMeasure("f1", _f1, prefers_positive=_always),
        AccuracyMeasure("auc", _of_utility, of_rows=of_models(_auc)),
        AccuracyMeasure("ks", _of_utility, of_rows=of_models(_ks)),
        AccuracyMeasure("brier", _brier, squared_error=True),
        AccuracyMeasure("r2", _r2, regression=True, squared_error=True),
        AccuracyMeasure("exp_mse", _exp_mse, regression=True, squared_error=True),
    )
}


def recall_at(selection_rate: float) -> AccuracyMeasure:
    """Return recall at a fixed selection rate as an accuracy measure: the share of positives that the top holds.

    Parameters
    ----------
    selection_rate : float
        The share of all rows that can be selected, in (0, 1). Rows with equal scores at the cut share what is left.

    Examples
    --------
    >>> from fairfrontier import tradeoff_points
    >>> y, sex = [1, 0, 1, 0], ["f", "f", "m", "m"]
    >>> points = tradeoff_points(y, {"a": [0.9, 0.8, 0.3, 0.1]}, sensitive_features=sex, accuracy=recall_at(0.5))
    >>> points.accuracy
    array([0.5, 0.5])
    """
    rate = number(selection_rate, parameter="selection_rate", low=0.0, high=1.0, strict=True)

    def recall(selected: FloatArray, true: FloatArray, false: FloatArray) -> float:
        return float(np.interp(rate, selected, true))

    return AccuracyMeasure(f"recall_at:{_text(rate)}", _of_utility, of_rows=of_models(recall))


def expected_payoff(
    *, true_positive: float = 0.0, false_positive: float = 0.0, false_negative: float = 0.0, true_negative: float = 0.0
) -> AccuracyMeasure:
    """Return the mean payoff of decisions as an accuracy measure; a cost is a negative payoff.

    Parameters
    ----------
    true_positive, false_positive, false_negative, true_negative : float
        What a decision is worth, by label and decision.

    Notes
    -----
    FAUC needs [0, 1]. With the best decision for each label the payoff is u₁, with the worst u₀, and the accuracy is
    (u − u₀)/(u₁ − u₀): 1 is the payoff of a perfect model. The payoff itself is u₀ + accuracy·(u₁ − u₀) with
    u₁ = p·max(true_positive, false_negative) + (1 − p)·max(true_negative, false_positive), p the share of label 1, and
    u₀ with min in place of max.

    Examples
    --------
    >>> from fairfrontier import tradeoff_points
    >>> loans = expected_payoff(true_positive=1.0, false_positive=-5.0)
    >>> y, sex = [1, 0, 1, 0], ["f", "f", "m", "m"]
    >>> points = tradeoff_points(y, {"a": [0.9, 0.8, 0.7, 0.1]}, sensitive_features=sex, accuracy=loans)
    >>> points.accuracy.round(3)
    array([0.583, 0.833])
    """
    given = {"true_positive": true_positive, "false_positive": false_positive}
    given |= {"false_negative": false_negative, "true_negative": true_negative}
    tp, fp, fn, tn = (number(value, parameter=name) for name, value in given.items())
    if not np.isfinite([tp, fp, fn, tn]).all() or (tp == fn and fp == tn):
        raise InvalidInputError(f"payoffs must be finite, and some decision must make a difference; got {given}")

    def gain(label: BoolArray) -> FloatArray:
        """Return what decision 1 is worth against decision 0."""
        return np.where(label, tp - fn, fp - tn)

    def value(sums: "CellSums", label: BoolArray) -> FloatArray:
        worth = gain(label)
        # Decision 1 where it gains, decision 0 where it loses: the share of what is at stake.
        right = worth @ sums.outcome + np.maximum(-worth, 0.0) @ sums.weight
        return np.asarray(right / (np.abs(worth) @ sums.weight))

    name = ":".join(["payoff", *map(_text, (tp, fp, fn, tn))])
    return AccuracyMeasure(name, value, prefers_positive=lambda weight, label: np.asarray(weight @ gain(label) > 0))


def _text(value: float) -> str:
    """Return the shortest text of which the same number is read again."""
    return repr(float(value)).removesuffix(".0")


def measure_of_text(text: str, *, parameter: str) -> AccuracyMeasure | None:
    """Return the measure of a text such as ``"recall_at:0.2"`` or ``"payoff:1:-5"``; None: there are no numbers in it.

    Examples
    --------
    >>> measure_of_text("recall_at:0.2", parameter="accuracy").name, measure_of_text("auc", parameter="accuracy")
    ('recall_at:0.2', None)
    """
    name, *parts = text.split(":")
    if not parts:
        return None
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if name == "recall_at" and len(numbers) == 1:
        return recall_at(numbers[0])
    if name == "payoff" and len(numbers) in (2, 4):
        names = ("true_positive", "false_positive", "false_negative", "true_negative")
        return expected_payoff(**dict(zip(names, numbers, strict=False)))
    raise InvalidInputError(
        f"{parameter} with numbers must be like 'recall_at:0.2' or 'payoff:1:-5' (of true and false positives; four "
        f"numbers: of false and true negatives too); got {text!r}"
    )


def row_payoff(gain: Any) -> AccuracyMeasure:
    """Return the payoff of decisions with an amount of its own for each row as an accuracy measure.

    Parameters
    ----------
    gain : array-like of shape (n,)
        What decision 1 is worth for each row against decision 0: the profit of a loan, negative where it is a loss.

    Notes
    -----
    Scaled to [0, 1] as in `expected_payoff`: 1 where every row with a gain, and no row with a loss, is selected. The
    payoff itself, against selecting nobody, is accuracy·Σ|gain| − Σ losses. Labels play no part but in fairness.

    Examples
    --------
    >>> from fairfrontier import tradeoff_points
    >>> y, sex = [1, 0, 1, 0], ["f", "f", "m", "m"]
    >>> points = tradeoff_points(
    ...     y, {"a": [0.9, 0.8, 0.7, 0.1]}, sensitive_features=sex, accuracy=row_payoff([10, -20, 30, -40])
    ... )
    >>> points.accuracy
    array([0.8, 0.6])
    """
    amounts = numeric(column(gain, parameter="gain"), parameter="gain").astype(np.float64)
    finite(amounts, parameter="gain")
    if not amounts.any():
        raise InvalidInputError("gain must have an amount that is not 0; got only zeros")

    return _row_payoff(amounts)


def _row_payoff(amounts: FloatArray) -> AccuracyMeasure:
    def of_rows(label: BoolArray, scores: NDArray[Any], decided: NDArray[Any], weight: FloatArray) -> FloatArray:
        worth, total = weight * amounts, np.zeros(decided.shape[1])
        losses, stake = weight @ np.maximum(-amounts, 0.0), weight @ np.abs(amounts)
        # In blocks: as floats all decisions at once would be eight times their size.
        step = max(1, _BLOCK // decided.shape[1])
        for start in range(0, len(worth), step):
            total += worth[start : start + step] @ decided[start : start + step].astype(np.float64)
        return np.asarray((total + losses) / stake)

    return AccuracyMeasure("row_payoff", _of_utility, of_rows=of_rows, amounts=amounts)


@dataclass(frozen=True)
class Constant:
    """The best constant model: its `outcome` for every row, and its `accuracy`."""

    outcome: float
    accuracy: float


def best_constant(measure: AccuracyMeasure, sums: "CellSums", label: NDArray[np.bool_]) -> Constant:
    """Return the best model that gives the same outcome to every row, from the sums over cells.

    Parameters
    ----------
    measure : AccuracyMeasure
        What it is best by.
    sums : CellSums
        Sums over the cells.
    label : ndarray of shape (c,)
        The label of each cell.
    """
    if sums.utility is not None:
        both = sums.utility[-2:]
        return Constant(float(both[1] > both[0]), float(both.max()))
    mean = sums.y_sum / sums.weight.sum() if measure.regression else 0.0
    outcome = float(constant_outcome(measure, sums.weight, label, mean))
    # A decision is the majority's; a score is best at the mean of y, where the squared error is y's own spread.
    alone = replace(sums, outcome=sums.weight[:, None] * outcome, squared_error=np.array([sums.y_square_sum]))
    return Constant(outcome, float(measure.value(alone, label)[0]))


def constant_outcome(
    measure: AccuracyMeasure, weight: FloatArray, label: NDArray[np.bool_], mean: FloatArray | float
) -> FloatArray:
    """Return what the best constant model gives to every row: the mean of y, or the better of the two decisions.

    Parameters
    ----------
    measure : AccuracyMeasure
        What it is best by.
    weight : ndarray of shape (..., c)
        Total weight of each cell.
    label : ndarray of shape (c,)
        The label of each cell.
    mean : ndarray of shape (...,)
        The mean of y, for regression.
    """
    if measure.regression:
        return np.asarray(mean)
    return np.asarray(measure.prefers_positive(weight, label), dtype=np.float64)
