"""Operating points: moving a fitted stack along its path without fitting again."""

import copy
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import logit, ndtri
from sklearn.utils.validation import check_is_fitted

from fairfrontier import _validation as validate
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._contrasts import MEASURES, RowSets, build_contrasts
from fairfrontier.optimize._choice import Judge, Judged, Limits, Selection
from fairfrontier.optimize._fitting import FittedPath
from fairfrontier.optimize._guarantee import certified, largest_promise, promise_advice
from fairfrontier.optimize._mixture import Key, TwoStacks, secret_bytes
from fairfrontier.optimize._ridge_path import TAU_ADVICE, FairPath
from fairfrontier.optimize._tuning import interpolate
from fairfrontier.quantify._weights import as_weight

# From the threshold of a score to that of the linear predictor, for each loss.
_PREDICTOR_THRESHOLD: dict[str, Callable[[float], float]] = {
    "squared": float,
    "log": lambda threshold: float(logit(threshold)),
    "hinge": lambda threshold: 2.0 * threshold - 1.0,
}


class OperatingPoint:
    """The part of a fitted stack that chooses one stack of its path."""

    path_: FairPath
    points_: TradeoffPoints
    weight: Any
    tau: float | None
    loss: str
    fairness: Any
    threshold: float
    # None: the operating point was not selected, and does not randomise.
    selection_: Selection | None = None
    mixture_: TwoStacks | None = None
    group_sizes_: dict[str, int]
    _fitted: FittedPath
    _regression: bool
    # What the estimator has besides.
    _matrix: Callable[[Any, Any], Any]
    _target: Callable[[Any], Any]
    sensitive_mode: str

    def _keep(self, fitted: FittedPath) -> None:
        """Keep a fitted path, and go to the operating point that was asked for."""
        self._fitted = fitted
        self.path_, self.alpha_, self.scales_ = fitted.path, fitted.alpha, fitted.scale
        self.points_, self.cv_fauc_ = fitted.points, fitted.tried
        if self.tau is None:
            self._operate(self._best_position())
        else:
            self._operate_at_tau(float(self.tau))

    def _best_position(self) -> int:
        """Return the point of the path that, alone with the constant model, has the largest FAUC."""
        share = as_weight(self.weight).normalized(self.points_.fairness[:-1])
        constant = self.points_.accuracy[-1]
        return int(np.argmax((self.points_.accuracy[:-1] - constant) * share))

    def _operate(self, index: int) -> None:
        self.selection_ = self.mixture_ = None
        self.weights_, self.intercept_ = self.path_.weights[index].copy(), float(self.path_.intercept[index])
        self.target_ = self.path_.target[index]

    def _operate_at(self, target: FloatArray) -> None:
        self.selection_ = self.mixture_ = None
        self.weights_, self.intercept_ = self._stack_at(target)
        solution = self._fitted.solution
        wanted = target if solution is None else solution.of_pairs(target)
        self.target_ = float(wanted[0]) if len(wanted) == 1 else wanted

    def _stack_at(self, target: FloatArray) -> tuple[FloatArray, float]:
        """Return the weights and the constant of the stack with score bias `target`, in a solution's coordinates."""
        solution = self._fitted.solution
        if solution is None:
            return self._between_points(target)
        weights, intercept = solution.stacks(target[None, :])
        return weights[0], float(intercept[0])

    def _operate_at_tau(self, tau: float) -> None:
        solution, at_tau = self._fitted.solution, self._fitted.at_tau
        if solution is not None:
            self._operate_at(solution.target_for_tau(tau))
        elif at_tau is not None and tau == self.tau:
            self.selection_ = self.mixture_ = None
            self.weights_, self.intercept_ = at_tau.weights[0], float(at_tau.intercept[0])
            self.target_ = at_tau.target[0]
        else:
            b0 = np.atleast_1d(self.path_.target[0])  # paths begin at the unconstrained stack
            largest = float(np.abs(b0).max())
            self._operate_at(b0 * min(1.0, tau / largest) if largest > 0 else b0)

    def _between_points(self, target: FloatArray) -> tuple[FloatArray, float]:
        """Return the mixture of two neighbours on the path with score bias `target`: the bias is linear in w."""
        b0, positions = np.atleast_1d(self.path_.target[0]), self._fitted.positions
        position = float(target @ b0 / max(float(b0 @ b0), 1e-300))
        off = np.abs(position * b0 - target).max() > 1e-8 * max(float(np.abs(b0).max()), 1.0)
        if off or not positions[-1] - 1e-9 <= position <= positions[0] + 1e-9:
            raise InfeasibleError(
                f"target must lie on the path with loss={self.loss!r}, from {b0.tolist()} to "
                f"{(positions[-1] * b0).tolist()}; got {target.tolist()}"
            )
        # np.interp wants ascending positions.
        both = np.column_stack([self.path_.weights, self.path_.intercept])[::-1]
        mixed = np.array([np.interp(position, positions[::-1], column) for column in both.T])
        return mixed[:-1], float(mixed[-1])

    def at(self, *, tau: float | None = None, target: Any = None) -> Self:
        """Return this model at another operating point.

        Parameters
        ----------
        tau : float, optional
            Largest absolute score bias (the constrained form, Eq. 3).
        target : float or array-like of shape (m,), optional
            Score bias exactly t; may have the other sign than the unconstrained stack's.

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A fitted copy; the path is shared.

        Notes
        -----
        Exact with the squared loss. Other losses have no closed form: between two points of the path the stack is their
        mixture, which has the score bias asked for and is nearly optimal; `tau` at construction is solved exactly.
        """
        check_is_fitted(self, "path_")
        if (tau is None) == (target is None):
            raise InvalidInputError(f"give exactly one of tau and target; got tau={tau!r}, target={target!r}")
        other = copy.copy(self)
        if tau is not None:
            other._operate_at_tau(validate.number(tau, parameter="tau", low=0.0, advice=TAU_ADVICE))
            return other
        wanted = np.atleast_1d(np.asarray(target, dtype=np.float64))
        m = 1 if self.path_.target.ndim == 1 else self.path_.target.shape[1]
        if wanted.shape != (m,) or not np.all(np.isfinite(wanted)):
            raise InvalidInputError(f"target must be {m} finite number(s), one per contrast; got {target!r}")
        solution = self._fitted.solution
        other._operate_at(wanted if solution is None else solution.coordinates(wanted[None, :])[0])
        return other

    def select(
        self,
        min_fairness: float | None = None,
        *,
        min_ratio: float | None = None,
        max_accuracy_loss: float | None = None,
        confidence: float | None = None,
        calibration: Any = None,
        randomize: bool = False,
        secret: bytes | str | None = None,
    ) -> Self:
        """Return this model at the most accurate place of its path that is fair enough.

        Parameters
        ----------
        min_fairness : float, optional
            Least fairness, in [0, 1].
        min_ratio : float, optional
            Least quotient of the lowest and the highest rate of positive decisions, in [0, 1]; for demographic parity.
        max_accuracy_loss : float, optional
            Largest loss of accuracy against the unconstrained stack. Alone, it asks for the fairest place within it.
        confidence : float, optional
            Promise what is asked for with this confidence, in (0, 1). None: delivered in half of the cases, see Notes.
        calibration : (X, y, sensitive_features), optional
            Rows that nothing was fitted to, for a promise that is valid whatever their number; y may be None for
            demographic parity. Without them the promise rests on out-of-fold decisions, and is approximate.
        randomize : bool, default=False
            Let one of two stacks, or a stack or the constant model, decide on each record, drawn by its id: any
            fairness in between can be had. `predict_proba` then returns probabilities of acceptance.
        secret : bytes or str, optional
            The key of the draws, at least 16 bytes; None: a random one.

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A fitted copy; `selection_` says what was asked, estimated, promised and given up, and prints.

        Raises
        ------
        InfeasibleError
            If requests contradict each other, or nothing can be promised; it says what can.

        Notes
        -----
        The signed bias of the out-of-fold decisions is smoothed along the path, on which it is nearly monotone, and
        what is compared with the request is the median of the bias that new rows will show, given the standard errors
        of all rates: the largest of several noisy gaps is larger than the largest gap. Where the stack of all rows
        decides otherwise than those of the folds, beyond the error, both must be fair enough. A place between two
        points of the path has its own exact stack. Where no stack is fair enough, or none more accurate than the
        constant model, that is the answer, and `selection_` says so.
        """
        check_is_fitted(self, "path_")
        limits = self._limits(min_fairness, min_ratio, max_accuracy_loss, randomize)
        size = np.array(list(self.group_sizes_.values()), dtype=np.float64)
        judge = Judge(self._fitted.sweep, size)
        shown: dict[str, Any] = {"procedure": self._procedure()}
        if confidence is not None:
            chosen, shown = self._promise(judge, limits, confidence, calibration, randomize)
        elif calibration is not None:
            raise InvalidInputError("calibration needs a confidence: select(..., confidence=0.95, calibration=...)")
        else:
            best = judge.choose(limits, randomize=randomize)
            if best is None:
                raise InfeasibleError(_nothing(judge, limits))
            chosen = best
        other = copy.copy(self)
        other._operate_chosen(chosen, None if secret is None else secret_bytes(secret))
        other.selection_ = replace(judge.selection(chosen, limits), **shown)
        return other

    def _limits(self, min_fairness: Any, min_ratio: Any, max_accuracy_loss: Any, randomize: bool) -> Limits:
        """Return what is asked for, checked."""
        given = {"min_fairness": min_fairness, "min_ratio": min_ratio, "max_accuracy_loss": max_accuracy_loss}
        checked = {
            name: None if value is None else validate.number(value, parameter=name, low=0.0, high=1.0)
            for name, value in given.items()
        }
        if all(value is None for value in checked.values()):
            raise InvalidInputError(
                "give at least one of min_fairness, min_ratio and max_accuracy_loss; got none: "
                "select(min_fairness=0.95)"
            )
        if self._regression and (randomize or min_ratio is not None):
            name = "randomize" if randomize else "min_ratio"
            raise InvalidInputError(f"{name} is for decisions; a regression has none: ask for min_fairness alone")
        if min_ratio is not None and self.fairness not in ("demographic_parity", "impact_ratio"):
            raise InvalidInputError(
                "min_ratio compares the rates of positive decisions, so fairness must be 'demographic_parity'; got "
                f"{self.fairness!r}"
            )
        return Limits(**checked)

    def _procedure(self) -> str:
        where = "out-of-fold decisions" if self._fitted.cross_validated else "decisions on the rows fitted to"
        return f"median of what new rows will show, from {where}"

    def _stacks(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights (p, k) and constants (p,) at places of the path; NaN is the constant model."""
        weights, intercept = np.zeros((len(places), len(self.weights_))), np.empty(len(places))
        # The constant decision, far from any threshold of the linear predictor.
        intercept[:] = 1e3 * (2.0 * self.points_.rates[-1, 0] - 1.0)
        known = np.isfinite(places)
        targets = interpolate(places[known], self._fitted.sweep.target)
        solution = self._fitted.solution
        if solution is not None:
            weights[known], intercept[known] = solution.stacks(targets)
        else:
            pairs = [self._between_points(target) for target in targets]
            weights[known] = np.array([one[0] for one in pairs]).reshape(len(pairs), -1)
            intercept[known] = [one[1] for one in pairs]
        return weights, intercept

    def _operate_chosen(self, chosen: Judged, secret: bytes | None) -> None:
        """Go to the chosen stack, constant model or mixture."""
        first, second = chosen.place[0]
        self.selection_ = self.mixture_ = None
        if np.isnan(first):
            self.weights_ = np.zeros_like(self.weights_)
            self.intercept_ = float(self._constant_predictor())
            self.target_ = np.zeros_like(self.target_)
            return
        self._operate_at(interpolate(np.array([first]), self._fitted.sweep.target)[0])
        if chosen.share[0] < 1.0 and first != second:
            weights, intercept = self._stacks(chosen.place[0])
            key = Key(secrets.token_bytes(32) if secret is None else secret)
            self.mixture_ = TwoStacks(weights, intercept, float(chosen.share[0]), key)

    def _constant_predictor(self) -> float:
        """Return the linear predictor of the constant model: its decision's score."""
        flat = float(self.points_.rates[-1, 0])
        if self._regression:
            return flat
        return {"squared": flat, "log": 20.0 * (2.0 * flat - 1.0), "hinge": 2.0 * flat - 1.0}[self.loss]

    def _predictor_threshold(self) -> float:
        """Return the value of the linear predictor above which the decision is 1."""
        return _PREDICTOR_THRESHOLD[self.loss](float(self.threshold))

    def _promise(
        self, judge: Judge, limits: Limits, confidence: float, calibration: Any, randomize: bool
    ) -> tuple[Judged, dict[str, Any]]:
        """Return the most accurate candidate that is shown to be fair enough, and what `selection_` says of it."""
        level = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
        if self._regression:
            raise InvalidInputError("confidence is for decisions; a regression has none: ask for min_fairness alone")
        asked = limits.min_fairness is not None or limits.min_ratio is not None
        if asked:
            found, begin = judge.sequence(limits, randomize=randomize)
        else:
            fairest = judge.choose(limits, randomize=randomize)
            found, begin = (judge.single().take(np.arange(0)) if fairest is None else fairest), {0: 1.0}
        if len(found) == 0:
            raise InfeasibleError(_nothing(judge, limits))
        if calibration is None:
            size = np.array(list(self.group_sizes_.values()), dtype=np.float64)
            counts = [np.rint(rates * size) for rates in judge.seen_rates(found)]
            n_rows, procedure = 0, "fixed sequence of tests on out-of-fold decisions; approximate"
        else:
            positives, size, n_rows = self._counted(found, calibration)
            counts, procedure = [positives], "fixed sequence of exact tests on calibration rows"
        options = {"confidence": level, "disjoint": isinstance(self.fairness, str)}
        if randomize and asked:
            mixed = int(np.isnan(found.place[:, 1]).sum())  # these come first
            seen = [rates[: mixed + 1] for rates in judge.seen_rates(found)]
            begin = {_first_likely(seen, size, judge.sets, limits, level): 1.0}
        passed = promise(counts, size, judge.sets, n_rows or self._n_rows(), limits, begin, options)
        best = int(passed.index[np.argmax(found.accuracy[passed.index])])
        fields = {"procedure": procedure, "confidence": level, "n_calibration": n_rows, "promised": passed.fairness}
        return found.take(np.array([best])), fields

    def _n_rows(self) -> int:
        """Return how many rows the sets of the measure have in all, each row once."""
        sets = self.points_.sets
        blocks = dict.fromkeys(sets.attributes, 0)
        for name, block in zip(sets.attributes, sets.blocks, strict=True):
            blocks[name] += sum(self.group_sizes_[sets.names[i]] for i in block)
        return max(blocks.values())

    def _counted(self, found: Judged, calibration: Any) -> tuple[FloatArray, FloatArray, int]:
        """Return the positive decisions of each candidate in each row set (c, s), the sets' sizes, and all rows."""
        if not isinstance(calibration, (tuple, list)) or len(calibration) != 3:
            raise InvalidInputError(
                "calibration must be (X, y, sensitive_features); got "
                f"{type(calibration).__name__}: y may be None for demographic parity"
            )
        X, y, sensitive = calibration
        if not isinstance(self.fairness, str):
            raise InvalidInputError(
                "calibration needs a named fairness measure: masks are those of the rows fitted to, not of these"
            )
        if y is None and self.fairness != "demographic_parity":
            raise InvalidInputError(
                f"calibration must have labels for fairness={self.fairness!r}; got None: only demographic parity needs "
                "none"
            )
        H = self._matrix(X, sensitive)
        rows = Rows.validated(None if y is None else self._target(y), H, sensitive, whole=True, target="y")
        cells = rows.cells(labelled=MEASURES[self.fairness] != (None,))
        contrasts = build_contrasts(self.fairness, cells.keys, cells.attributes, sensitive_mode=self.sensitive_mode)
        if contrasts.sets.names != tuple(self.group_sizes_):
            raise InvalidInputError(
                f"calibration must have the row sets of the fit, {list(self.group_sizes_)}; got "
                f"{list(contrasts.sets.names)}: take rows of every group"
            )
        member = contrasts.membership[:, cells.codes].astype(np.float64)
        threshold = self._predictor_threshold()
        # A record's draw is the same for all candidates, as in use, and for all calls: a failed test is not repeated.
        number = Key(b"calibration rows").numbers([b"i:%d" % row for row in range(len(H))])
        positives = np.empty((len(found), len(member)))
        for start in range(0, len(found), 64):
            part = slice(start, start + 64)
            first, second = (self._stacks(found.place[part, j]) for j in range(2))
            of_first, of_second = (H @ weights.T + intercept > threshold for weights, intercept in (first, second))
            decided = np.where(number[:, None] < found.share[part], of_first, of_second)
            positives[part] = (member @ decided).T
        return positives, member.sum(axis=1), len(H)


@dataclass(frozen=True, eq=False)
class _Passed:
    """Candidates that passed (numbers), and the fairness that is promised of them; None: a quotient was asked for."""

    index: IntArray
    fairness: float | None


def promise(
    counts: list[FloatArray],
    size: FloatArray,
    sets: RowSets,
    n_rows: int,
    limits: Limits,
    begin: dict[int, float],
    options: dict[str, Any],
) -> _Passed:
    """Return the candidates that are shown to be fair enough by all `counts` (c, s).

    Parameters
    ----------
    counts : list of ndarray of shape (c, s)
        Positive decisions of the candidates.
    size : ndarray of shape (s,)
        Rows of each row set.
    sets : RowSets
        Which sets are compared.
    n_rows : int
        All rows.
    limits : Limits
        What is asked for.
    begin : dict of int to float
        The candidates with which a sequence of tests begins, and its share of the probability of an error.
    options : dict
        Confidence, and whether row sets are disjoint.

    Raises
    ------
    InfeasibleError
        If none is; it says what can be promised.
    """
    if limits.min_fairness is None and limits.min_ratio is None:
        lowest = min(float(largest_promise(one, size, sets, **options)[0]) for one in counts)
        return _Passed(np.array([0]), lowest)
    asked: dict[str, Any] = {"min_fairness": limits.min_fairness, "min_ratio": limits.min_ratio}
    passed = np.zeros(len(counts[0]), dtype=bool)
    for start, share in begin.items():
        level = options | {"confidence": 1.0 - share * (1.0 - options["confidence"])}
        order = np.arange(start, len(passed))
        shown = [certified(one, size, sets, order=order, **asked, **level).certified for one in counts]
        passed |= np.logical_and.reduce(shown)
    if passed.any():
        return _Passed(np.flatnonzero(passed), limits.min_fairness)
    wanted = " and ".join(f"{name}={value:g}" for name, value in asked.items() if value is not None)
    if limits.min_fairness is None:
        raise InfeasibleError(f"{wanted} cannot be promised with {n_rows:,} rows: ask for less, or use more rows")
    fairest = counts[-1][max(begin, key=lambda start: begin[start])]
    confidence = options["confidence"]
    advice = promise_advice(fairest, size, sets, n_rows, min_fairness=limits.min_fairness, confidence=confidence)
    raise InfeasibleError(f"{wanted} cannot be promised: {advice}")


def _first_likely(seen: list[FloatArray], size: FloatArray, sets: RowSets, limits: Limits, confidence: float) -> int:
    """Return with which of mixtures with the constant model, whose share falls, the tests begin.

    Parameters
    ----------
    seen : list of ndarray of shape (c, s)
        The rates of positive decisions as the fit saw them: what is counted in the tests plays no part.
    size, sets, limits, confidence
        The row sets of the tests, and what is asked for.

    Notes
    -----
    A mixture with much of the constant is fair but nearly useless, and each test more may fail by bad luck. So they
    begin with the last mixture that passes even if its gap comes out two standard errors larger than expected.
    """
    room = 1.0 - float(limits.min_fairness or 0.0)
    likely = np.ones(len(seen[0]), dtype=bool)
    for rates in seen:
        variance = np.sort(np.clip(rates * (1.0 - rates), 0.01, None) / size, axis=1)[:, -2:].sum(axis=1)
        likely &= sets.largest_gap(rates) + (ndtri(confidence) + 2.0) * np.sqrt(variance) <= room
    return int(np.flatnonzero(likely)[-1]) if likely.any() else 0


def _nothing(judge: Judge, limits: Limits) -> str:
    """Return a sentence that says what could be had instead of what was asked for."""
    if limits.max_accuracy_loss is not None:
        fairest = judge.choose(Limits(max_accuracy_loss=limits.max_accuracy_loss), randomize=False)
        if fairest is not None:
            return (
                f"max_accuracy_loss={limits.max_accuracy_loss:g} leaves a fairness of at most "
                f"{judge.fairness(fairest)[0]:.4f}; ask for less fairness or allow a larger loss"
            )
    return (
        "no stack of this path is more accurate than the constant model, which decides everybody alike: it is "
        "perfectly fair and needs no promise"
    )
