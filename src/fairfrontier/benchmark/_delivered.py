"""The delivered frontier: what a user gets who asks a method for a level of fairness.

For each asked level the operating point is chosen without any test row: of all mixtures of the method's candidates, the
constant model among them, the one that is most accurate on the choosing rows and fair enough there. Its fairness and
accuracy are then measured on test rows. A point of the curve is the mean over splits, 1 − mean |bias| and mean
accuracy, as in the literature (mean accuracy at mean gap for each tolerance).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._records import Record
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.identify._points import TradeoffPoints, points_from_rates
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.quantify._fauc import StepWeight, Weight, fauc

LEVELS = np.linspace(0.8, 1.0, 21)
WEIGHT = StepWeight(0.8)
# A level is missed by more than rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Delivery:
    """What a method delivered on one split.

    Attributes
    ----------
    asked : ndarray of shape (l,)
        The levels of fairness that were asked for, ascending.
    bias : ndarray of shape (l,)
        The largest absolute bias of the chosen operating points on the test rows.
    accuracy : ndarray of shape (l,)
        Their accuracy on the test rows.
    constant : float
        Accuracy of the constant model on the test rows.
    """

    asked: FloatArray
    bias: FloatArray
    accuracy: FloatArray
    constant: float


@dataclass(frozen=True, eq=False)
class DeliveredFrontier:
    """The mean of a method's deliveries over splits.

    Attributes
    ----------
    asked : ndarray of shape (l,)
        The levels of fairness that were asked for, ascending.
    fairness, accuracy : ndarray of shape (l,)
        1 − mean |bias| and mean accuracy over splits at each asked level.
    constant : float
        Mean accuracy of the constant model, which is perfectly fair.
    missed : ndarray of shape (l,)
        Share of splits in which the delivered fairness was below the asked one.
    shortfall : ndarray of shape (l,)
        By how much, on average over the splits that missed; 0 where none did.
    """

    asked: FloatArray
    fairness: FloatArray
    accuracy: FloatArray
    constant: float
    missed: FloatArray
    shortfall: FloatArray

    def curve(self) -> TAFCurve:
        """Return the TAF of the mean points and the constant model, a step curve; index l is the constant model."""
        fairness = np.clip(np.append(self.fairness, 1.0), 0.0, 1.0)
        return taf_curve(fairness, np.append(self.accuracy, self.constant))

    def fauc(self, weight: Weight = WEIGHT) -> float:
        """Return the area under `curve`: the delivered FAUC."""
        return fauc(self.curve(), weight)

    @property
    def miss_share(self) -> float:
        """Share of misses over all splits and the levels below 1, which no finite sample meets exactly."""
        below = self.asked < 1.0
        return float(self.missed[below].mean()) if below.any() else 0.0

    @property
    def miss_size(self) -> float:
        """Mean shortfall of the misses at the levels below 1; 0 where there are none."""
        below = self.asked < 1.0
        total = float(self.missed[below].sum())
        return float(self.missed[below] @ self.shortfall[below]) / total if total > 0 else 0.0


def choose_mixtures(chosen: TradeoffPoints, levels: FloatArray = LEVELS) -> FloatArray:
    """Return the operating point for each level: the probabilities (l, c) of the candidates, whose rows sum to 1.

    It is the most accurate mixture with bias at most 1 − level on the choosing rows; with one contrast it randomises
    between two neighbours on the hull of the candidates. Where no mixture is fair enough, it is the fairest one.

    Examples
    --------
    >>> from fairfrontier.identify._points import points_from_rates
    >>> from fairfrontier.metrics._contrasts import RowSets
    >>> sets = RowSets(("a", "b"), ((0, 1),), ("group",))
    >>> rates = np.array([[0.5, 0.3], [0.4, 0.4]])
    >>> chosen = points_from_rates(rates, sets, np.array([0.9, 0.7]), ("free", "constant"))
    >>> choose_mixtures(chosen, np.array([0.7, 0.9, 1.0]))
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    curve = chosen.frontier("signed")
    if curve.mixture is None:
        raise InvalidInputError("chosen must have a signed frontier with mixtures; got none")
    shares = np.zeros((len(levels), len(chosen)))
    for column, model in enumerate(curve.support):
        # The best accuracy is linear between two knots, so a mixture of the knots' mixtures attains it.
        shares[:, model] = np.interp(levels, curve.fairness, curve.mixture[:, column])
    return shares


def deliver(shares: FloatArray, test: TradeoffPoints, levels: FloatArray = LEVELS) -> Delivery:
    """Measure operating points on test rows; the constant model is the last of `test`.

    `shares` (l, c) has the probabilities of the candidates at each asked level: those of `choose_mixtures`, or the
    identity for a method that was asked for each level's tolerance in advance.
    """
    extra = len(test) - shares.shape[1]
    if extra not in (0, 1) or len(shares) != len(levels):
        raise InvalidInputError(
            f"shares must have one row for each of {len(levels)} levels and one column for each of {len(test)} "
            f"candidates (the constant may be left out); got shape {shares.shape}"
        )
    rates, accuracy = test.rates[: shares.shape[1]], test.accuracy[: shares.shape[1]]
    # Expected decisions are linear in the mixture, and so are rates and accuracy.
    bias = test.sets.largest_gap(shares @ rates)
    return Delivery(np.asarray(levels, dtype=np.float64), bias, shares @ accuracy, float(test.accuracy[-1]))


def delivery_of(record: Record) -> Delivery | None:
    """Return what a record's method delivered; None where nothing could be chosen without test rows.

    Records of version 0.1 have the candidates on ensemble and test rows only; the choice follows from them.
    """
    if record.delivered:
        bias, accuracy = (np.asarray(record.delivered[name], dtype=np.float64) for name in ("bias", "accuracy"))
        return Delivery(LEVELS, bias, accuracy, float(record.points["accuracy"][-1]))
    if not record.chosen:
        return None
    chosen, test = (_one_contrast(columns) for columns in (record.chosen, record.points))
    return deliver(choose_mixtures(chosen), test)


def _one_contrast(columns: Mapping[str, Sequence[float]]) -> TradeoffPoints:
    """Return candidates with given signed biases and accuracies; the rates behind a bias do not matter."""
    bias = np.asarray(columns["bias"], dtype=np.float64)
    sets = RowSets(("first", "second"), ((0, 1),), ("attribute",))
    rates = np.column_stack([0.5 + bias / 2.0, 0.5 - bias / 2.0])
    names = tuple(f"candidate_{j:02d}" for j in range(len(bias)))
    return points_from_rates(rates, sets, np.asarray(columns["accuracy"], dtype=np.float64), names)


def delivered_frontier(deliveries: Sequence[Delivery]) -> DeliveredFrontier:
    """Return the mean over splits of what a method delivered.

    Parameters
    ----------
    deliveries : sequence of Delivery
        One a split, with the same asked levels.

    Examples
    --------
    >>> asked = np.array([0.9, 1.0])
    >>> first = Delivery(asked, np.array([0.08, 0.01]), np.array([0.8, 0.7]), 0.5)
    >>> second = Delivery(asked, np.array([0.14, 0.03]), np.array([0.8, 0.7]), 0.5)
    >>> frontier = delivered_frontier([first, second])
    >>> frontier.fairness, frontier.miss_share, round(frontier.miss_size, 2)
    (array([0.89, 0.98]), 0.5, 0.04)
    >>> round(frontier.fauc(), 3)  # .8 up to .89, .7 up to .98, then the constant
    0.725
    """
    if not deliveries:
        raise InvalidInputError("deliveries must hold at least one split; got none")
    asked = deliveries[0].asked
    if any(not np.array_equal(one.asked, asked) for one in deliveries):
        raise InvalidInputError("deliveries must have the same asked levels in every split")
    bias = np.stack([one.bias for one in deliveries])
    short = np.maximum(asked - (1.0 - bias), 0.0)
    is_miss = short > _ROUNDING
    count = is_miss.sum(axis=0)
    return DeliveredFrontier(
        asked=asked,
        fairness=1.0 - bias.mean(axis=0),
        accuracy=np.mean([one.accuracy for one in deliveries], axis=0),
        constant=float(np.mean([one.constant for one in deliveries])),
        missed=is_miss.mean(axis=0),
        shortfall=np.where(is_miss, short, 0.0).sum(axis=0) / np.maximum(count, 1),
    )
