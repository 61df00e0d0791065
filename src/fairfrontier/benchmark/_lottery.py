"""Lots between neighbours on a path, so that its candidates have evenly spaced biases.

Where many people have the same features, a path of stacks moves all of them across the threshold at once, and its
decisions jump from one bias to another. A lottery between the stacks before and after a jump has every bias in between:
it is what reductions and threshold optimisers do as well. `RandomizedMixture` deploys it, with draws that replay.
"""

from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.identify._points import TradeoffPoints, points_from_rates


@dataclass(frozen=True, eq=False)
class Lottery:
    """Candidates that draw lots between neighbours on a path.

    Attributes
    ----------
    shares : ndarray of shape (c, p)
        The probability of each stack of the path in each candidate: at most two neighbours, which sum to 1.
    """

    shares: FloatArray

    def decide(self, decisions: FloatArray) -> FloatArray:
        """Return the expected decisions (n, c) of the candidates from those of the stacks (n, p)."""
        return np.asarray(decisions @ self.shares.T)

    def value(self, decided: TradeoffPoints, out_of_fold: TradeoffPoints) -> TradeoffPoints:
        """Return the points of the candidates on the rows that they were fitted to.

        Parameters
        ----------
        decided : TradeoffPoints
            The candidates' own expected decisions on those rows, the constant model last: few numbers were fitted for
            their biases, and other folds' stacks jump elsewhere.
        out_of_fold : TradeoffPoints
            The stacks of the path out of fold, the constant model last: accuracy on rows fitted to would be flattered.
        """
        shares = np.zeros((len(self.shares) + 1, len(out_of_fold.names)))
        shares[:-1, :-1], shares[-1, -1] = self.shares, 1.0
        return points_from_rates(decided.rates, decided.sets, shares @ out_of_fold.accuracy, decided.names)

    def without_lots(self) -> "Lottery":
        """Return the candidates with the likelier stack of each alone."""
        return Lottery(np.eye(self.shares.shape[1])[np.argmax(self.shares, axis=1)])


def spread(bias: FloatArray, n_candidates: int, *, largest: float, margin: float) -> Lottery:
    """Return candidates whose biases are evenly spaced along a path.

    Parameters
    ----------
    bias : ndarray of shape (p,)
        Signed bias of the decisions of each stack, the unconstrained one first.
    n_candidates : int
        How many candidates.
    largest : float
        Bias above which nothing counts.
    margin : float
        How far to go beyond no bias at all: the bias on other rows differs.

    Examples
    --------
    >>> spread(np.array([0.4, 0.2, -0.2, -0.5]), 3, largest=0.2, margin=0.1).shares.round(2)
    array([[0. , 1. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 1. , 0. ]])
    """
    towards = bias * (np.sign(bias[0]) or 1.0)
    fairest = int(np.argmin(np.abs(bias)))
    above, below = np.flatnonzero(towards[: fairest + 1] >= largest), np.flatnonzero(towards[fairest:] <= -margin)
    start = int(above[-1]) if len(above) else 0
    stop = fairest + int(below[0]) if len(below) else len(bias) - 1
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(bias[start : stop + 1])))])
    shares = np.zeros((n_candidates, len(bias)))
    for row, at in zip(shares, np.linspace(0.0, way[-1], n_candidates), strict=True):
        # Of stacks with the same bias the first is the least constrained, and so the most accurate.
        after = int(np.searchsorted(way, at))
        if after == 0 or way[after] == at:
            row[start + after] = 1.0
        else:
            share = (at - way[after - 1]) / (way[after] - way[after - 1])
            row[start + after - 1 : start + after + 1] = 1.0 - share, share
    return Lottery(shares)
