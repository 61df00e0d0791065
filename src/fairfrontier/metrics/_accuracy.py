"""Accuracy measures in [0, 1], larger is better, as functions of sums over cells."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._sums import CellSums

Accuracy = str | Callable[..., float]


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
    """

    name: str
    value: Callable[[CellSums, NDArray[np.bool_]], FloatArray]
    regression: bool = False
    squared_error: bool = False


def _accuracy(sums: CellSums, label: NDArray[np.bool_]) -> FloatArray:
    sign = np.where(label, 1.0, -1.0)
    return np.asarray((sign @ sums.outcome + sums.weight[~label].sum()) / sums.weight.sum())


def _balanced_accuracy(sums: CellSums, label: NDArray[np.bool_]) -> FloatArray:
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


def _mean_squared_error(sums: CellSums) -> FloatArray:
    if sums.squared_error is None:
        raise InvalidInputError("these sums hold no squared errors; give y to cell_sums")
    return np.asarray(sums.squared_error / sums.weight.sum())


def _brier(sums: CellSums, label: NDArray[np.bool_]) -> FloatArray:
    return 1.0 - _mean_squared_error(sums)


def _r2(sums: CellSums, label: NDArray[np.bool_]) -> FloatArray:
    total = sums.weight.sum()
    variance = sums.y_square_sum / total
    if variance <= (4 * np.finfo(np.float64).eps * sums.y_sum / total) ** 2:  # the mean of equal values is rounded
        raise InvalidInputError("accuracy='r2' is undefined: y_true has one value only; use 'exp_mse'")
    return np.asarray(np.clip(1.0 - _mean_squared_error(sums) / variance, 0.0, 1.0))


def _exp_mse(sums: CellSums, label: NDArray[np.bool_]) -> FloatArray:
    return np.asarray(np.exp(-_mean_squared_error(sums)))


ACCURACY_MEASURES: dict[str, AccuracyMeasure] = {
    measure.name: measure
    for measure in (
        AccuracyMeasure("accuracy", _accuracy),
        AccuracyMeasure("balanced_accuracy", _balanced_accuracy),
        AccuracyMeasure("brier", _brier, squared_error=True),
        AccuracyMeasure("r2", _r2, regression=True, squared_error=True),
        AccuracyMeasure("exp_mse", _exp_mse, regression=True, squared_error=True),
    )
}


@dataclass(frozen=True)
class Constant:
    """The best constant model: its `outcome` for every row, and its `accuracy`."""

    outcome: float
    accuracy: float


def best_constant(measure: AccuracyMeasure, sums: CellSums, label: NDArray[np.bool_]) -> Constant:
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
    mean = sums.y_sum / sums.weight.sum() if measure.regression else 0.0
    outcome = float(constant_outcome(measure, sums.weight, label, mean))
    # A decision is the majority's; a score is best at the mean of y, where the squared error is y's own spread.
    alone = CellSums(
        sums.weight, sums.weight[:, None] * outcome, np.array([sums.y_square_sum]), sums.y_sum, sums.y_square_sum
    )
    return Constant(outcome, float(measure.value(alone, label)[0]))


def constant_outcome(
    measure: AccuracyMeasure, weight: FloatArray, label: NDArray[np.bool_], mean: FloatArray | float
) -> FloatArray:
    """Return what the best constant model gives to every row: the mean of y, or the decision of the majority.

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
    majority: NDArray[np.bool_] = weight[..., label].sum(axis=-1) > weight[..., ~label].sum(axis=-1)
    return np.asarray(majority, dtype=np.float64)
