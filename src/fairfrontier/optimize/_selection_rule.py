"""The rule by which `select` chooses a place on a path: the most accurate candidate that is fair enough on new rows.

Rates are known with errors, so candidates are compared by what new rows are expected to show: a maximum over seen rates
would choose what only seems fair.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.isotonic import isotonic_regression

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.optimize._tuning import Sweep, errors_of_shares, interpolate, standard_errors

# How row sets of rows with label 1 are named.
_TRUE = " | y=1"
# Places that are looked at between two neighbouring nodes of a path.
_BETWEEN = 10
# Equally likely deviations of the rates for which a largest gap is computed; their median is taken.
_DEVIATIONS = 512
# Candidates that are looked at together.
_AT_A_TIME = 64
# Probabilities with which the first of two models decides.
_SHARES = np.linspace(0.05, 1.0, 20)
# Gaps that differ by less than this many standard errors count as equal: in 180 choices on 47 tables it cost no
# fairness on new rows, and half an error did.
_SAME = 0.25
# Share of the probability of an error that a sequence of tests aside the main one has.
_ASIDE = 0.1
# A change of a rate from one node to the next is a jump if it is above this, above this many rows, and above this
# many times the usual change.
_JUMP, _JUMP_ROWS, _JUMP_TIMES = 0.02, 4.0, 4.0


@dataclass(frozen=True, eq=False)
class Limits:
    """What was asked for; None: nothing.

    Attributes
    ----------
    min_fairness : float or None
        Least fairness.
    min_ratio : float or None
        Least ratio of the lowest to the highest rate.
    max_accuracy_loss : float or None
        Largest loss of accuracy against the unconstrained stack.
    min_rate : float or None
        Least rate of every row set.
    """

    min_fairness: float | None = None
    min_ratio: float | None = None
    max_accuracy_loss: float | None = None
    min_rate: float | None = None


@dataclass(frozen=True, eq=False)
class Candidates:
    """Models on a path, or mixtures of two, and what new rows are expected to show.

    Attributes
    ----------
    place : ndarray of shape (c, 2)
        Fractional indices of the nodes that decide; NaN is the constant model.
    share : ndarray of shape (c,)
        Probability of the first.
    accuracy : ndarray of shape (c,)
    rates : tuple of ndarray of shape (c, s)
        Out of fold, and of the stacks of all rows where they are known.
    errors : ndarray of shape (c, s)
        Standard errors of the rates.
    """

    place: FloatArray
    share: FloatArray
    accuracy: FloatArray
    rates: tuple[FloatArray, ...]
    errors: FloatArray

    def take(self, index: IntArray) -> "Candidates":
        """Return some of the candidates."""
        rates = tuple(one[index] for one in self.rates)
        return Candidates(self.place[index], self.share[index], self.accuracy[index], rates, self.errors[index])

    def __len__(self) -> int:
        return len(self.share)


class SelectionRule:
    """Candidates on a path and the fairness that they can be expected to have on new rows.

    Parameters
    ----------
    sweep : Sweep
        What is known of the path.
    size : ndarray of shape (s,)
        Rows of each row set.
    """

    def __init__(self, sweep: Sweep, size: FloatArray) -> None:
        points = sweep.out_of_fold
        self.sweep, self.size = sweep, size
        self.sets: RowSets = points.sets
        self.n_nodes = len(points) - 1
        self.errors = standard_errors(points, size, sweep.variance)[:-1]
        self.rates: tuple[FloatArray, ...] = (_smooth_rates(points),)
        # The nodes at which the stacks of the folds and of all rows decide alike.
        self._settled = np.arange(self.n_nodes)
        if sweep.refitted is not None:
            # Of rows that were fitted to, a difference within the error says nothing; beyond it, the stack of all rows
            # is another than those of the folds, and both must be fair.
            apart = sweep.refitted.rates[:-1] - self.rates[0]
            beyond = np.sign(apart) * np.maximum(np.abs(apart) - self.errors, 0.0)
            self.rates = (self.rates[0], self.rates[0] + beyond)
            self._settled = np.flatnonzero((beyond == 0.0).all(axis=1))
        # The rates without the corrections for what new rows will show: tests count what was seen.
        self.seen = tuple(_smooth_rates(one) for one in (points, sweep.refitted) if one is not None)
        self._shrink(sweep.signal)
        # Away from the unconstrained stack accuracy falls; what rises is noise.
        self.accuracy = isotonic_regression(points.accuracy[:-1], increasing=False)
        self.constant_accuracy = float(points.accuracy[-1])
        self.constant_rates = points.rates[-1]
        self.jumps = np.logical_or.reduce([_jumps(one, size) for one in (points, sweep.refitted) if one is not None])
        sampler = qmc.Sobol(len(size), scramble=True, seed=0)
        deviations = ndtri(np.clip(sampler.random(_DEVIATIONS), 1e-9, 1.0 - 1e-9))
        # Each row set has the deviations of its rank by size and rates: the names of groups do not matter.
        known = [points] if sweep.refitted is None else [sweep.refitted, points]
        rank = np.argsort(np.lexsort([*(row for one in known for row in one.rates.round(9)), size]), kind="stable")
        self._deviations = deviations[:, rank]

    def _shrink(self, signal: float) -> None:
        """Shrink the rates of each block towards each other by as much as their differences may be noise.

        Notes
        -----
        Where the row sets do not differ, the gaps that are seen are noise, and to correct them would cost accuracy for
        nothing. The share of signal is that of the models' own differences on held-out rows or that of the
        unconstrained stack's decisions, whichever is larger (1 − degrees of freedom / χ²); with it each gap is
        an empirical Bayes estimate. Where anything is clearly unfair it is close to one.
        """
        n_freedom, square = 0, 0.0
        for block in map(list, self.sets.blocks):
            apart = self.rates[0][0, block] - np.average(self.rates[0][0, block], weights=self.size[block])
            square += float(np.square(apart / self.errors[0, block]).sum())
            n_freedom += len(block) - 1
        self.signal = max(signal, 1.0 - n_freedom / max(square, 1e-300), 0.0)
        self.errors = self.errors * np.sqrt(self.signal)
        for rates in self.rates:
            for block in map(list, self.sets.blocks):
                middle = np.average(rates[:, block], weights=self.size[block], axis=1)[:, None]
                rates[:, block] = middle + self.signal * (rates[:, block] - middle)

    def single(self) -> Candidates:
        """Return the stacks at all places, and the constant model last."""
        places = np.linspace(0.0, self.n_nodes - 1.0, (self.n_nodes - 1) * _BETWEEN + 1)
        at_node = np.arange(len(places)) % _BETWEEN == 0
        between = np.minimum(places.astype(np.intp), max(self.n_nodes - 2, 0))
        if len(self.jumps):
            # Inside a jump the decisions are those of either end, and nobody knows where they change.
            places = places[at_node | ~self.jumps[between]]
        return _joined(self._along(places), self._constant())

    def _along(self, places: FloatArray) -> Candidates:
        """Return the stacks at places."""
        return Candidates(
            np.column_stack([places, places]),
            np.ones(len(places)),
            interpolate(places, self.accuracy),
            tuple(interpolate(places, one) for one in self.rates),
            interpolate(places, self.errors),
        )

    def _constant(self) -> Candidates:
        """Return the constant model, of which everything is known."""
        rates, nowhere = self.constant_rates[None], np.full((1, 2), np.nan)
        return Candidates(
            nowhere, np.ones(1), np.array([self.constant_accuracy]), (rates,) * len(self.rates), np.zeros_like(rates)
        )

    def between(self, places: FloatArray) -> Candidates:
        """Return mixtures of two neighbouring nodes, which have all rates in between."""
        low = np.floor(places)
        high = np.minimum(low + 1.0, self.n_nodes - 1.0)
        return replace(self._along(places), place=np.column_stack([low, high]), share=1.0 - (places - low))

    def sequence(self, limits: Limits, *, randomize: bool) -> tuple[Candidates, dict[int, float]]:
        """Return candidates for tests one after the other towards the unconstrained stack, and where to begin.

        Returns
        -------
        Candidates
            The candidates.
        dict of int to float
            The candidates with which sequences begin, and each one's share of the probability of an error.

        Notes
        -----
        The main sequence begins at the fairest place. How far that is from fair is known with an error only, so with
        one contrast two more begin before and beyond it, each with a small share (Bonferroni).
        """
        alone = self.single()
        good = self._beats_constant(alone) & np.isfinite(alone.place[:, 0]) & self._allowed(alone, limits)
        alone = alone.take(np.flatnonzero(good)[::-1])
        if len(alone) == 0:
            return alone, {}
        # Of those that seem fairest, the one that is expected to be.
        seem = np.argsort(self._seen_gap(alone), kind="stable")[:_AT_A_TIME]
        main = int(seem[np.argmax(self.fairness(alone.take(seem)).round(12))])
        if not randomize:
            begin = {i: _ASIDE for i in self._aside(alone, main) if i != main}
            return alone, begin | {main: 1.0 - _ASIDE * len(begin)}
        fairest = float(alone.place[main, 0])
        found = self.between(np.linspace(fairest, 0.0, int(fairest * _BETWEEN) + 1))
        # Mixing with a constant "no" changes no ratio of two rates, and leaves fewer positive decisions to show it by.
        if limits.min_ratio is None and self.sets.compares_differences:
            found = _joined(self._diluted(fairest), found)
        return found.take(np.flatnonzero(self._allowed(found, limits))), {0: 1.0}

    def _allowed(self, found: Candidates, limits: Limits) -> np.ndarray:
        """Tell which candidates are accurate enough, and have no group below the least rate."""
        allowed = np.ones(len(found), dtype=bool)
        if limits.max_accuracy_loss is not None:
            allowed &= found.accuracy >= self.accuracy[0] - limits.max_accuracy_loss - 1e-12
        if limits.min_rate is not None:
            allowed &= self._floor(found) >= limits.min_rate - 1e-12
        return allowed

    def _floor(self, found: Candidates) -> FloatArray:
        """Return the lowest rate of a row set (c,); among false and true positive rates, of the true ones."""
        of_true = [name.endswith(_TRUE) or f"{_TRUE} | " in name for name in self.sets.names]
        there = np.array(of_true) if any(of_true) else np.ones(len(of_true), dtype=bool)
        return np.asarray(np.min([one[:, there].min(axis=1) for one in found.rates], axis=0))

    def highest_floor(self) -> float:
        """Return the highest that the lowest rate of a row set is on the path."""
        alone = self.single()
        return float(self._floor(alone.take(np.arange(len(alone) - 1))).max())

    def _aside(self, alone: Candidates, main: int) -> list[int]:
        """Return the candidates that seem 1.5 standard errors before and beyond the fairest, with one contrast."""
        if self.sets.n_contrasts != 1:
            return []
        first, second = self.sets.pairs()[0]
        bias = alone.rates[0][:, first] - alone.rates[0][:, second]
        error = float(np.hypot(alone.errors[main, first], alone.errors[main, second]))
        return [int(np.argmin(np.abs(bias - side * 1.5 * error).round(12))) for side in (-1.0, 1.0)]

    def _diluted(self, place: float) -> Candidates:
        """Return mixtures of a node and the constant model, the constant's share falling."""
        alone = _joined(self._along(np.array([float(round(place))])), self._constant())
        first = np.zeros(len(_SHARES) - 1, dtype=np.intp)
        return _mixtures(alone, first, first + 1, _SHARES[:-1])

    def mixed(self) -> Candidates:
        """Return the mixtures of two nodes, or of a node and the constant model, and the constant model last.

        Notes
        -----
        Inside a jump some folds have jumped and others not. Their rates are in between, which no stack's are: mixtures
        are of nodes where all agree, and have such rates by their shares.
        """
        alone = _joined(self._along(self._settled.astype(np.float64)), self._constant())
        first, second = (np.repeat(index, len(_SHARES)) for index in np.triu_indices(len(alone), k=1))
        found = _mixtures(alone, first, second, np.tile(_SHARES, len(first) // len(_SHARES)))
        return _joined(found, alone.take(np.array([len(alone) - 1])))

    def seen_rates(self, candidates: Candidates) -> list[FloatArray]:
        """Return the rates (c, s) of candidates as they are seen out of fold, and of the stacks of all rows."""
        share = candidates.share[:, None]
        result = []
        for seen in self.seen:
            first, second = (interpolate(np.nan_to_num(place), seen) for place in candidates.place.T)
            constant = np.isnan(candidates.place[:, 1])
            second[constant] = self.constant_rates
            result.append(share * first + (1.0 - share) * second)
        return result

    def changed(self, chosen: Candidates) -> IntArray | None:
        """Return the rows of each row set that a candidate decides otherwise than the unconstrained stack, (s,)."""
        changed = getattr(self.sweep, "n_changed", None)  # absent in a stack that an earlier version saved
        if changed is None:
            return None
        place = np.where(np.isnan(chosen.place[0]), len(changed) - 1.0, chosen.place[0])
        first, second = interpolate(place, changed)
        moved = chosen.share[0] * first + (1.0 - chosen.share[0]) * second
        return np.asarray(np.maximum(np.rint(moved), 0.0), dtype=np.intp)  # degrees may be below 0

    def jumps_at(self, place: float) -> bool:
        """Tell whether decisions jump next to a place."""
        return bool(self.jumps[max(int(place) - 1, 0) : int(place) + 1].any())

    def fairness(self, candidates: Candidates) -> FloatArray:
        """Return the median of the fairness that new rows will show, shape (c,): the worse of what is known."""
        worst = [self._quantile(0.5, rates, candidates.errors, self._gap) for rates in candidates.rates]
        return np.asarray(np.clip(1.0 - np.max(worst, axis=0), 0.0, 1.0))

    def ratio(self, candidates: Candidates) -> FloatArray:
        """Return the median of the quotient of lowest and highest rate that new rows will show, shape (c,)."""
        worst = [self._quantile(0.5, rates, candidates.errors, self.quotient) for rates in candidates.rates]
        return np.asarray(np.min(worst, axis=0))

    def least(self, found: Candidates, name: str, confidence: float) -> FloatArray:
        """Return the fairness or the ratio (c,) that candidates have on new rows with a probability, all sets at once.

        Parameters
        ----------
        found : Candidates
            The candidates.
        name : {"min_fairness", "min_ratio"}
            What is asked for.
        confidence : float
            The probability.

        Notes
        -----
        The stack of all rows makes the rates equal that are seen out of fold. What is left of each row set's rate is
        then an error of its own, and the largest difference of several is larger than that of a pair: a test of each
        pair at its level is too few.
        """
        result = np.full(len(found), np.inf)
        for rates in self.seen_rates(found):
            errors = errors_of_shares(rates, self.size)
            if name == "min_fairness":
                seen = 1.0 - self._quantile(confidence, rates, errors, self._gap)
            else:
                seen = self._quantile(1.0 - confidence, rates, errors, self.quotient)
            result = np.minimum(result, seen)
        return result

    def _quantile(
        self,
        level: float,
        rates: FloatArray,
        errors: FloatArray,
        measure: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        """Return a quantile (c,) of a measure on new rows, given the standard errors of the rates."""
        result = np.empty(len(rates))
        for start in range(0, len(rates), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            drawn = rates[part, None, :] + errors[part, None, :] * self._deviations
            result[part] = np.quantile(measure(drawn), level, axis=1)
        return result

    def _gap(self, rates: FloatArray) -> FloatArray:
        return self.sets.largest_gap(np.moveaxis(rates, -1, 1))

    def _seen_gap(self, found: Candidates) -> FloatArray:
        """Return the gap of each candidate (c,), the worse of what is known; the last digits of sums decide nothing."""
        return np.asarray(np.max([self._gap(one) for one in found.rates], axis=0).round(12))

    def quotient(self, rates: FloatArray) -> FloatArray:
        """Return the smallest quotient of two rates of a block; equal rates of zero treat all alike."""
        return np.asarray(1.0 - np.max(list(self.sets.block_gaps(np.moveaxis(rates, -1, 1), "ratio")), axis=0))

    def choose(self, limits: Limits, *, randomize: bool) -> Candidates | None:
        """Return the candidate that is asked for, alone; None: there is none."""
        if limits.min_fairness is None and limits.min_ratio is None:
            found = self._worth_having(self.mixed() if randomize else self.single(), limits)
            # A floor of the rates alone asks for no fairness: the constant model would be the fairest of all.
            best = self._most_accurate(found, limits) if limits.max_accuracy_loss is None else None
            return best or self._fairest(found)
        found = self._worth_having(self.single(), limits)
        alone = found.take(np.flatnonzero(self._seem(found, limits)))
        chosen = self._most_accurate(alone, limits)
        if chosen is None:
            # More is asked than so many rows can tell. What seems fair is then the best guess, or the constant model.
            stack = alone.take(np.flatnonzero(~np.isnan(alone.place[:, 0])))
            chosen = self._seems_fairest(stack) if len(stack) else self._fairest(alone)
        if not randomize:
            return chosen
        # A mixture is worth its draws only if it is more accurate.
        mixed = self._worth_having(self.mixed(), limits)
        least = -np.inf if chosen is None else float(chosen.accuracy[0]) + 1e-12
        mixed = mixed.take(np.flatnonzero(self._seem(mixed, limits) & (mixed.accuracy > least)))
        return self._most_accurate(mixed, limits) or chosen

    def _worth_having(self, found: Candidates, limits: Limits) -> Candidates:
        """Return the candidates that are allowed, and more accurate than the constant model or that model itself."""
        constant = np.isnan(found.place).all(axis=1)
        return found.take(np.flatnonzero(self._allowed(found, limits) & (constant | self._beats_constant(found))))

    def _beats_constant(self, found: Candidates) -> np.ndarray:
        """Tell which candidates are more accurate than the constant model, by more than rounding."""
        return np.asarray(found.accuracy > self.constant_accuracy + 1e-12)

    def _most_accurate(self, found: Candidates, limits: Limits) -> Candidates | None:
        """Return the most accurate stack or mixture that meets the limits; of equals the first has moved least."""
        order = np.flatnonzero(~np.isnan(found.place).all(axis=1))
        order = order[np.argsort(-found.accuracy[order].round(12), kind="stable")]
        for start in range(0, len(order), _AT_A_TIME):
            part = found.take(order[start : start + _AT_A_TIME])
            good = np.flatnonzero(self._meets(part, limits))
            if len(good):
                return part.take(good[:1])
        return None

    def _seems_fairest(self, found: Candidates) -> Candidates:
        """Return the most accurate of those whose gap is as small as any, but for a little of its error."""
        gap = self._seen_gap(found)
        best = np.flatnonzero(gap <= gap.min() + _SAME * found.errors[np.argmin(gap)].max())
        return found.take(best[np.argmax(found.accuracy[best].round(12))][None])

    def _seem(self, found: Candidates, limits: Limits) -> np.ndarray:
        """Tell which candidates meet the limits as far as their rates are taken as they are."""
        good = np.ones(len(found), dtype=bool)
        if limits.min_fairness is not None:
            good &= self._seen_gap(found) <= 1.0 - limits.min_fairness + 1e-12
        if limits.min_ratio is not None:
            good &= np.min([self.quotient(one) for one in found.rates], axis=0) >= limits.min_ratio - 1e-12
        return good

    def _meets(self, found: Candidates, limits: Limits) -> np.ndarray:
        """Tell which candidates meet the limits on half of all new rows."""
        good = np.ones(len(found), dtype=bool)
        if limits.min_fairness is not None:
            good &= self.fairness(found) >= limits.min_fairness - 1e-9
        if limits.min_ratio is not None:
            good &= self.ratio(found) >= limits.min_ratio - 1e-9
        return good

    def _fairest(self, found: Candidates) -> Candidates | None:
        if len(found) == 0:
            return None
        fairness = self.fairness(found)
        best = np.flatnonzero(fairness >= fairness.max() - 1e-9)
        return found.take(best[np.argmax(found.accuracy[best].round(12))][None])


def _smooth_rates(points: TradeoffPoints) -> FloatArray:
    """Return the rates of a path's points, with one contrast such that its bias falls or rises all the way.

    Notes
    -----
    Moving on, one group's rate rises against the other's; what goes back is noise, and both take half of it, or one
    more where the other would leave [0, 1].
    """
    rates = points.rates[:-1].copy()
    if points.sets.n_contrasts != 1:
        return rates
    first, second = points.sets.pairs()[0]
    bias = rates[:, first] - rates[:, second]
    smooth = isotonic_regression(bias, increasing=bool(bias[-1] > bias[0]))
    middle = (rates[:, first] + rates[:, second]) / 2.0
    # Rates that were restored from probabilities of groups, and means of a regression, have no such limits.
    if rates.min() >= 0.0 and rates.max() <= 1.0:
        middle = np.clip(middle, np.abs(smooth) / 2.0, 1.0 - np.abs(smooth) / 2.0)
    rates[:, first], rates[:, second] = middle + smooth / 2.0, middle - smooth / 2.0
    return rates


def _jumps(points: TradeoffPoints, size: FloatArray) -> np.ndarray:
    """Tell between which nodes decisions jump, shape (q − 1,): many rows cross the threshold at once."""
    change = np.abs(np.diff(points.rates[:-1], axis=0))
    if len(change) == 0:
        return np.zeros(0, dtype=bool)
    usual = np.maximum(_JUMP_TIMES * change.mean(axis=0), np.maximum(_JUMP, _JUMP_ROWS / size))
    return np.asarray((change > usual).any(axis=1))


def _mixtures(alone: Candidates, first: IntArray, second: IntArray, share: FloatArray) -> Candidates:
    """Return mixtures of candidates by their numbers; the first decides with probability `share`."""

    def mix(values: FloatArray) -> FloatArray:
        weight = share if values.ndim == 1 else share[:, None]
        return np.asarray(weight * values[first] + (1.0 - weight) * values[second])

    place = np.column_stack([alone.place[first, 0], alone.place[second, 0]])
    # At worst both stacks decide every row alike: then the errors add up, weighted by the shares.
    return Candidates(place, share, mix(alone.accuracy), tuple(mix(one) for one in alone.rates), mix(alone.errors))


def _joined(one: Candidates, other: Candidates) -> Candidates:
    """Return the candidates of both."""
    return Candidates(
        np.vstack([one.place, other.place]),
        np.append(one.share, other.share),
        np.append(one.accuracy, other.accuracy),
        tuple(np.vstack(pair) for pair in zip(one.rates, other.rates, strict=True)),
        np.vstack([one.errors, other.errors]),
    )
