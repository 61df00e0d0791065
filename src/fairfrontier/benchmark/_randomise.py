"""Randomise between neighbours on a path of stacks, so that the candidates have evenly spaced biases.

Where many people have the same features, a path of stacks moves all of them across the threshold at once, and its
decisions jump from one bias to another. A random choice between the stack before a jump and the one after it has every
bias in between. Reductions and threshold optimisers randomise as well. `RandomizedMixture` deploys such a candidate,
with draws that can be replayed.
"""

from dataclasses import dataclass

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.identify._points import TradeoffPoints, points_from_rates


@dataclass(frozen=True, eq=False)
class RandomisedCandidates:
    """Candidates that randomise between neighbours on a path.

    Attributes
    ----------
    probability : ndarray of shape (c, p)
        The probability of each stack of the path in each candidate: of at most two neighbours, with the sum 1.
    """

    probability: FloatArray

    def expected_decisions(self, decisions: FloatArray) -> FloatArray:
        """Return the expected decisions (n, c) of the candidates from the decisions (n, p) of the stacks."""
        return np.asarray(decisions @ self.probability.T)

    def points_when_choosing(self, decided: TradeoffPoints, out_of_fold: TradeoffPoints) -> TradeoffPoints:
        """Return the points of the candidates on the rows that they were fitted to.

        Parameters
        ----------
        decided : TradeoffPoints
            The candidates' own expected decisions on those rows, the constant model last. Their biases are used: few
            numbers were fitted for them, and the stacks of other folds jump elsewhere.
        out_of_fold : TradeoffPoints
            The stacks of the path out of fold, the constant model last. Their accuracies are used: those on rows that
            were fitted to would be too good.
        """
        probability = np.zeros((len(self.probability) + 1, len(out_of_fold.names)))
        probability[:-1, :-1], probability[-1, -1] = self.probability, 1.0
        return points_from_rates(decided.rates, decided.sets, probability @ out_of_fold.accuracy, decided.names)

    def without_randomising(self) -> "RandomisedCandidates":
        """Return the candidates as single stacks, of each the more probable one."""
        return RandomisedCandidates(np.eye(self.probability.shape[1])[np.argmax(self.probability, axis=1)])


def evenly_spaced_candidates(
    bias: FloatArray, n_candidates: int, *, largest: float, margin: float
) -> RandomisedCandidates:
    """Return candidates whose biases are evenly spaced along a path.

    Parameters
    ----------
    bias : ndarray of shape (p,)
        Signed bias of the decisions of each stack, the unconstrained one first.
    n_candidates : int
        Number of candidates.
    largest : float
        Absolute bias from which on the weight of the FAUC is 0.
    margin : float
        How far to go beyond bias 0 to the other sign: the bias on other rows differs.

    Examples
    --------
    >>> bias = np.array([0.4, 0.2, -0.2, -0.5])
    >>> evenly_spaced_candidates(bias, 3, largest=0.2, margin=0.1).probability.round(2)
    array([[0. , 1. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 1. , 0. ]])
    """
    towards_first = bias * (np.sign(bias[0]) or 1.0)
    fairest = int(np.argmin(np.abs(bias)))
    too_large = np.flatnonzero(towards_first[: fairest + 1] >= largest)
    beyond = np.flatnonzero(towards_first[fairest:] <= -margin)
    start = int(too_large[-1]) if len(too_large) else 0
    stop = fairest + int(beyond[0]) if len(beyond) else len(bias) - 1
    travelled = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(bias[start : stop + 1])))])
    probability = np.zeros((n_candidates, len(bias)))
    for row, at in zip(probability, np.linspace(0.0, travelled[-1], n_candidates), strict=True):
        # Of stacks with the same bias the first is the least constrained, and so the most accurate.
        after = int(np.searchsorted(travelled, at))
        if after == 0 or travelled[after] == at:
            row[start + after] = 1.0
        else:
            share = (at - travelled[after - 1]) / (travelled[after] - travelled[after - 1])
            row[start + after - 1 : start + after + 1] = 1.0 - share, share
    return RandomisedCandidates(probability)
