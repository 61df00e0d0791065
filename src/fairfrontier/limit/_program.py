"""The most accurate rule under a bound on how far rates are apart: a linear program with very few constraints.

A *rule* gives each row a probability of the decision 1. Accuracy and rates are linear in it, so the best rule for a
given level of fairness is a linear program with one variable per row and two constraints per row set. Its dual has one
multiplier per row set, and for given multipliers the best rule is a threshold. So rules are generated one by one: a
small program over the rules found so far gives multipliers, these give the next rule, until the two values meet.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError

# The two values have met: far below any standard error of an accuracy.
_MET = 1e-7
_MOST_RULES = 2000

Blocks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class RuleMixture:
    """The best mixture of given rules.

    Attributes
    ----------
    share : ndarray of shape (k,)
        The probability of each rule.
    multiplier : ndarray of shape (s,)
        What a unit of each row set's rate costs in accuracy.
    value : float
        The gain in accuracy over the decision 0 for every row.
    allowance : float
        What the allowed difference of rates is worth at these multipliers; 0 where ratios are bounded.
    """

    share: FloatArray
    multiplier: FloatArray
    value: float
    allowance: float


@dataclass(frozen=True, eq=False)
class FairRule:
    """The best rule at one level of fairness.

    Attributes
    ----------
    decision : ndarray of shape (n,)
        The probability of decision 1 for each row; 0 or 1 except where the rule randomises.
    multiplier : ndarray of shape (s,)
        What a unit of each row set's rate costs in accuracy.
    allowance : float
        What the allowed difference of rates is worth at these multipliers; 0 where ratios are bounded.
    """

    decision: FloatArray
    multiplier: FloatArray
    allowance: float


def best_mixture(
    rates: FloatArray, gain: FloatArray, blocks: Blocks, fairness: float, *, relative: bool
) -> RuleMixture:
    """Return the mixture of rules with the largest gain that is fair enough.

    Parameters
    ----------
    rates : ndarray of shape (k, s)
        The rate of each rule in each row set; one of the rules must be constant.
    gain : ndarray of shape (k,)
        Accuracy of each rule, up to a constant.
    blocks : tuple of tuple of int
        Row sets that are compared with one another.
    fairness : float
        1 − the largest difference of two rates of a block or, if `relative`, their smallest ratio: inside a block,
        ratio·r ≤ every rate ≤ r + slack for some r.
    """
    slack, ratio = (0.0, fairness) if relative else (1.0 - fairness, 1.0)
    n_rules, n_sets = rates.shape
    # Each block has a rate of its own, a free variable, that all its rates are compared with.
    common = np.zeros((n_sets, len(blocks)))
    for j, block in enumerate(blocks):
        common[list(block), j] = 1.0
    above, below = np.hstack([rates.T, -common]), np.hstack([-rates.T, ratio * common])
    found = linprog(
        np.concatenate([-gain, np.zeros(len(blocks))]),
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([np.full(n_sets, slack), np.zeros(n_sets)]),
        A_eq=np.concatenate([np.ones(n_rules), np.zeros(len(blocks))])[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * n_rules + [(None, None)] * len(blocks),
        method="highs",
    )
    if found.status != 0:
        raise InvalidInputError(f"the linear program of the fair rule has no solution: {found.message}")
    price = -np.asarray(found.ineqlin.marginals)
    multiplier = price[:n_sets] - price[n_sets:]
    allowance = slack * float(np.maximum(multiplier, 0.0).sum())
    return RuleMixture(np.maximum(found.x[:n_rules], 0.0), multiplier, -float(found.fun), allowance)


class FairProgram:
    """The best rules for one set of rows, at any level of fairness; rules that were found serve every level.

    Parameters
    ----------
    gain : ndarray of shape (n,)
        What the decision 1 adds to the accuracy of each row: 2·P(y = 1) − 1.
    load : ndarray of shape (n, s)
        What it adds to each rate: P(row set) of the row over that of all rows.
    weight : ndarray of shape (n,)
        Weights that add up to one.
    blocks : tuple of tuple of int
        Row sets that are compared with one another.
    relative : bool
        Fairness is 1 − the largest difference between rates; True: it is the smallest ratio of two.
    """

    def __init__(
        self, gain: FloatArray, load: FloatArray, weight: FloatArray, blocks: Blocks, *, relative: bool = False
    ) -> None:
        self.gain, self.load, self.weight, self.blocks, self.relative = gain, load, weight, blocks, relative
        self._rules: list[NDArray[np.bool_]] = []
        self._rates: list[FloatArray] = []
        self._gains: list[float] = []
        for start in (np.zeros(len(gain), dtype=bool), np.ones(len(gain), dtype=bool), gain > 0):
            self._add(start)

    def _add(self, rule: NDArray[np.bool_]) -> None:
        weight = self.weight[rule]
        self._rules.append(rule)
        self._rates.append(weight @ self.load[rule])
        self._gains.append(float(weight @ self.gain[rule]))

    def unconstrained(self) -> float:
        """Return the fairness of the most accurate rule."""
        rates = [self._rates[2][list(block)] for block in self.blocks]
        if self.relative:
            return min(float(of_block.min() / of_block.max()) if of_block.max() > 0 else 1.0 for of_block in rates)
        return 1.0 - max(float(np.ptp(of_block)) for of_block in rates)

    def margin(self, rule: FairRule | RuleMixture) -> FloatArray:
        """Return what decision 1 adds for each row (n,) at a rule's multipliers."""
        return np.asarray(self.gain - self.load @ rule.multiplier)

    def solve(self, fairness: float) -> FairRule:
        """Return the best rule at a level of fairness."""
        while True:
            rates, gains = np.array(self._rates), np.array(self._gains)
            found = best_mixture(rates, gains, self.blocks, fairness, relative=self.relative)
            margin = self.margin(found)
            met = self.weight @ np.maximum(margin, 0.0) + found.allowance - found.value < _MET
            if met or len(self._rules) >= _MOST_RULES:
                return FairRule(self._mixed(found.share), found.multiplier, found.allowance)
            self._add(margin > 0)

    def _mixed(self, share: FloatArray) -> FloatArray:
        used = np.flatnonzero(share > 0)
        mixed = np.zeros(len(self.gain))
        for j in used:
            mixed += share[j] / share[used].sum() * self._rules[j]
        return np.minimum(mixed, 1.0)

    def path(self, levels: Iterable[float]) -> list[FairRule]:
        """Return the best rule for each level of fairness; where no constraint binds it is one and the same."""
        free, fairest = self._rules[2].astype(np.float64), self.unconstrained()
        no_price = np.zeros(self.load.shape[1])
        return [FairRule(free, no_price, 0.0) if level <= fairest else self.solve(level) for level in levels]
