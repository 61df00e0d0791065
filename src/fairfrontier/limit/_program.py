"""The most accurate rule under a bound on how far rates are apart: a linear program with very few constraints.

A *rule* gives each row a probability of the decision 1. Accuracy and rates are linear in it, so the best rule for a
given level of fairness is a linear program with one variable per row and two constraints per row set. Its dual has one
multiplier per row set, and for given multipliers the best rule is a threshold. So rules are generated one by one: a
small program over the rules found so far gives multipliers, these give the next rule, until the two values meet.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
    """

    share: FloatArray
    multiplier: FloatArray
    value: float


@dataclass(frozen=True, eq=False)
class FairRule:
    """The best rule at one level of fairness.

    Attributes
    ----------
    decision : ndarray of shape (n,)
        The probability of decision 1 for each row; 0 or 1 except where the rule randomises.
    multiplier : ndarray of shape (s,)
        What a unit of each row set's rate costs in accuracy.
    slack : float
        The largest difference between rates that is allowed; 0 where ratios are bounded.
    """

    decision: FloatArray
    multiplier: FloatArray
    slack: float

    @property
    def allowance(self) -> float:
        """What the allowed difference is worth at these multipliers."""
        return self.slack * float(np.maximum(self.multiplier, 0.0).sum())


@dataclass(frozen=True)
class Bounds:
    """How far rates may be apart: each is at most `slack` above the lowest of its block, which is `ratio` of the rest.

    Inside a block, `ratio`·r ≤ every rate ≤ r + `slack` for some r.
    """

    slack: float
    ratio: float

    @classmethod
    def of(cls, fairness: float, *, relative: bool) -> "Bounds":
        """Return the bounds of a fairness that is 1 − the largest difference or, if relative, the smallest ratio."""
        return cls(0.0, fairness) if relative else cls(1.0 - fairness, 1.0)


def best_mixture(rates: FloatArray, gain: FloatArray, blocks: Blocks, bounds: Bounds) -> RuleMixture:
    """Return the mixture of rules with the largest gain whose rates are within the bounds in each block.

    Parameters
    ----------
    rates : ndarray of shape (k, s)
        The rate of each rule in each row set; one of the rules must be constant.
    gain : ndarray of shape (k,)
        Accuracy of each rule, up to a constant.
    blocks : tuple of tuple of int
        Row sets that are compared with one another.
    bounds : Bounds
        How far rates may be apart.
    """
    n_rules, n_sets = rates.shape
    # Each block has a rate of its own, a free variable, that all its rates are compared with.
    common = np.zeros((n_sets, len(blocks)))
    for j, block in enumerate(blocks):
        common[list(block), j] = 1.0
    above, below = np.hstack([rates.T, -common]), np.hstack([-rates.T, bounds.ratio * common])
    found = linprog(
        np.concatenate([-gain, np.zeros(len(blocks))]),
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([np.full(n_sets, bounds.slack), np.zeros(n_sets)]),
        A_eq=np.concatenate([np.ones(n_rules), np.zeros(len(blocks))])[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * n_rules + [(None, None)] * len(blocks),
        method="highs",
    )
    if found.status != 0:
        raise InvalidInputError(f"the linear program of the fair rule has no solution: {found.message}")
    price = -np.asarray(found.ineqlin.marginals)
    return RuleMixture(np.maximum(found.x[:n_rules], 0.0), price[:n_sets] - price[n_sets:], -float(found.fun))


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

    def solve(self, fairness: float) -> FairRule:
        """Return the best rule at a level of fairness."""
        bounds = Bounds.of(fairness, relative=self.relative)
        while True:
            mixture = best_mixture(np.array(self._rates), np.array(self._gains), self.blocks, bounds)
            rule = FairRule(np.empty(0), mixture.multiplier, bounds.slack)
            margin = self.gain - self.load @ mixture.multiplier
            met = self.weight @ np.maximum(margin, 0.0) + rule.allowance - mixture.value < _MET
            if met or len(self._rules) >= _MOST_RULES:
                return replace(rule, decision=self._mixed(mixture.share))
            self._add(margin > 0)

    def _mixed(self, share: FloatArray) -> FloatArray:
        used = np.flatnonzero(share > 0)
        mixed = np.zeros(len(self.gain))
        for j in used:
            mixed += share[j] / share[used].sum() * self._rules[j]
        return np.minimum(mixed, 1.0)

    def path(self, levels: Iterable[float]) -> list[FairRule]:
        """Return the best rule for each level of fairness; where no constraint binds it is one and the same."""
        free, fairest = (
            FairRule(self._rules[2].astype(np.float64), np.zeros(self.load.shape[1]), 1.0),
            self.unconstrained(),
        )
        return [free if level <= fairest else self.solve(level) for level in levels]
