"""The best constant model: the same outcome for every row, as accurate as that can be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.metrics._accuracy import AccuracyMeasure
from fairfrontier.metrics._sums import CellSums


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
    if sums.utility is not None:
        both = sums.utility[-2:]
        return Constant(float(both[1] > both[0]), float(both.max()))
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
