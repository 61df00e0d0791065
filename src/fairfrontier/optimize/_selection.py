"""Select an operating point: the most accurate that is fair enough, as far as it is known or as it can be promised."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from scipy.special import ndtri

from fairfrontier import _validation as validate
from fairfrontier._groups import ProbableGroups
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.metrics._contrasts import RowSets, build_contrasts, named_measure
from fairfrontier.optimize._fitting import OperatingPoint, StackPath
from fairfrontier.optimize._mixture import Key, secret_bytes
from fairfrontier.optimize._selection_rule import Candidates, Limits, SelectionRule
from fairfrontier.quantify._promise import largest_promise, promise_advice, promised_candidates
from fairfrontier.quantify._proportions import BoolArray

# What `Selection.levelling` says, in words.
_LEVELLING = {
    "up": "up: no group's rate is lower than before",
    "down": "down: no group's rate is higher than before",
    "both": "both: some rates rise, others fall",
    "none": "none: the rates are those of before",
}
# A rate that differs by less has not moved.
_MOVED = 5e-4
# An accuracy that is higher by less is not worth a word.
_WORTH_SAYING = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """What was asked for, and what an operating point gives.

    Attributes
    ----------
    asked : float or None
        The least fairness that was asked for.
    estimated : float
        The fairness to expect on new rows, half of the time more and half of the time less.
    promised : float or None
        The fairness that was promised; None without a confidence.
    confidence : float or None
        With which it was.
    n_calibration : int
        Rows on which the promise rests that nothing was fitted to.
    procedure : str
        How the place was chosen.
    kind : {"stack", "constant", "mixture"}
        One stack, the constant model, or one of two drawn by a record's id.
    accuracy : float
        The accuracy to expect on new rows.
    given_up : float
        The accuracy of the unconstrained stack minus that.
    rates : dict of str to float
        The rate of positive decisions in each row set; of a regression the mean prediction, in standard deviations of
        the target.
    ratio : float
        The smallest ratio of two of them; NaN for a regression.
    changed : dict of str to int
        Rows of each row set whose decision is another than the unconstrained stack's, of the rows fitted to; empty
        where the rows were not at hand.
    asked_ratio, asked_loss, asked_rate : float or None
        The least quotient of two rates, the largest loss of accuracy and the least rate that were asked for.
    rates_before : dict of str to float
        The rates of the unconstrained stack.
    notes : tuple of str
        What else there is to know.
    """

    asked: float | None
    estimated: float
    accuracy: float
    given_up: float
    kind: str
    rates: dict[str, float]
    ratio: float
    changed: dict[str, int]
    asked_ratio: float | None = None
    asked_loss: float | None = None
    promised: float | None = None
    confidence: float | None = None
    n_calibration: int = 0
    procedure: str = ""
    notes: tuple[str, ...] = ()
    asked_rate: float | None = None
    rates_before: dict[str, float] = field(default_factory=dict)

    @property
    def levelling(self) -> str:
        """Whether groups are brought together by raising rates ("up"), by lowering them ("down"), or by "both".

        "none": no rate is another than that of the unconstrained stack.
        """
        moves = [self.rates[name] - before for name, before in self.rates_before.items()]
        up, down = any(move > _MOVED for move in moves), any(move < -_MOVED for move in moves)
        return "both" if up and down else "up" if up else "down" if down else "none"

    def __str__(self) -> str:
        asked = {"fairness": self.asked, "ratio": self.asked_ratio, "loss of accuracy": self.asked_loss}
        asked |= {"rate": self.asked_rate}
        wanted = ", ".join(f"{name} {value:g}" for name, value in asked.items() if value is not None)
        side = "below" if self.given_up >= 0.0 else "above"
        lines = [
            ("asked", wanted),
            (
                "estimated",
                f"fairness {self.estimated:.4f}" + ("" if np.isnan(self.ratio) else f", ratio {self.ratio:.3f}"),
            ),
            ("accuracy", f"{self.accuracy:.4f}, {abs(self.given_up):.4f} {side} the unconstrained stack"),
            ("operates", {"stack": "one stack", "constant": "the constant model"}.get(self.kind, "one of two models")),
            ("procedure", self.procedure),
        ]
        if not np.isnan(self.ratio):
            lines.insert(3, ("levelling", _LEVELLING[self.levelling]))
        if self.confidence is not None:
            shown = "what was asked" if self.promised is None else f"fairness {self.promised:.4g}"
            rows = f" on {self.n_calibration:,} rows" if self.n_calibration else ""
            lines.insert(2, ("promised", f"{shown} with confidence {self.confidence:g}{rows}"))
        for name, rate in self.rates.items():
            moved = f", {self.changed[name]:,} decisions change" if name in self.changed else ""
            before = f", {self.rates_before[name]:.3f} before" if name in self.rates_before else ""
            # Only a regression has no ratio. Its biases, and so its means, are in units in which fairness is 1 − bias.
            word, unit = ("mean", ", in standard deviations of y") if np.isnan(self.ratio) else ("rate", "")
            lines.append((name, f"{word} {rate:.3f}{before}{moved}{unit}"))
        lines += [("note", note) for note in self.notes]
        width = max(len(title) for title, _ in lines)
        return "\n".join(f"{title:<{width}}  {text}" for title, text in lines)

    def __repr__(self) -> str:
        promised = "" if self.promised is None else f", promised={self.promised:.4g}"
        return (
            f"Selection({self.kind}, asked={self.asked}, estimated={self.estimated:.4f}{promised}, "
            f"accuracy={self.accuracy:.4f}, given_up={self.given_up:.4f})"
        )


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Rows that nothing was fitted to.

    Attributes
    ----------
    H : ndarray of shape (n, k)
        Predictions of the base models.
    member : ndarray of shape (s, n)
        1 where a row is in a row set, 0 elsewhere.
    """

    H: FloatArray
    member: FloatArray

    @classmethod
    def of(cls, rows: Rows, group_sizes: Mapping[str, int], *, fairness: str, sensitive_mode: str) -> "CalibrationRows":
        """Return rows with the row sets of a fit, `group_sizes`."""
        cells = rows.cells(labelled=named_measure(fairness).needs_labels)
        contrasts = build_contrasts(fairness, cells.keys, cells.attributes, sensitive_mode=sensitive_mode)
        if contrasts.sets.names != tuple(group_sizes):
            raise InvalidInputError(
                f"calibration must have the row sets of the fit, {list(group_sizes)}; got "
                f"{list(contrasts.sets.names)}: take rows of every group"
            )
        return cls(rows.scores, contrasts.membership[:, cells.codes].astype(np.float64))

    def positives(self, path: StackPath, found: Candidates) -> FloatArray:
        """Return how many rows of each row set each candidate decides positively, shape (c, s)."""
        # A record's draw is the same for all candidates, as in use, and for all calls: a failed test is not repeated.
        number = Key(b"calibration rows").numbers([b"i:%d" % row for row in range(len(self.H))])
        result = np.empty((len(found), len(self.member)))
        for start in range(0, len(found), 64):
            part = slice(start, start + 64)
            stacks = [path.stacks(places) for places in found.place[part].T]
            first, second = (self.H @ weights.T + constant > path.predictor_threshold for weights, constant in stacks)
            result[part] = (self.member @ np.where(number[:, None] < found.share[part], first, second)).T
        return result


def checked_limits(stack: Any, *, randomize: bool, **asked: Any) -> Limits:
    """Return what is asked of a stack, by the names of `Limits`, checked."""
    checked = {
        name: None if value is None else validate.number(value, parameter=name, low=0.0, high=1.0)
        for name, value in asked.items()
    }
    if all(value is None for value in checked.values()):
        raise InvalidInputError(
            "give at least one of min_fairness, min_ratio, max_accuracy_loss and min_rate; got none: "
            "select(min_fairness=0.95)"
        )
    if stack._regression:
        for name, value in {"randomize": randomize or None, **asked}.items():
            if value is not None and name in ("randomize", "min_ratio", "min_rate"):
                raise InvalidInputError(f"{name} is for decisions; a regression has none: ask for min_fairness alone")
    parity = isinstance(stack._measure, str) and not named_measure(stack._measure).needs_labels
    if checked["min_ratio"] is not None and not parity:
        raise InvalidInputError(
            "min_ratio compares the rates of positive decisions, so fairness must be 'demographic_parity'; got "
            f"{stack._measure!r}"
        )
    return Limits(**checked)


@dataclass(frozen=True, eq=False)
class Confidence:
    """With which confidence to promise, and on what.

    Attributes
    ----------
    level : float
        The confidence.
    rows : CalibrationRows or None
        Rows that nothing was fitted to; None: out-of-fold decisions, which make the promise approximate.
    disjoint : bool
        Whether no row is in two row sets that are compared.
    """

    level: float
    rows: CalibrationRows | None
    disjoint: bool


def checked_confidence(stack: Any, confidence: Any, calibration: Any) -> Confidence | None:
    """Return with which confidence a fitted stack promises, and on which rows; None: nothing is promised."""
    if confidence is None:
        if calibration is not None:
            raise InvalidInputError("calibration needs a confidence: select(..., confidence=0.95, calibration=...)")
        return None
    level = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    if stack._regression:
        raise InvalidInputError("confidence is for decisions; a regression has none: ask for min_fairness alone")
    disjoint = isinstance(stack._measure, str)
    if calibration is None and not stack._fitted.cross_validated:
        raise InvalidInputError(
            f"confidence needs rows that the stack was not fitted to; with alpha={stack.alpha!r} there are none: give "
            "calibration=(X, y, sensitive_features), or fit with alpha='cv'"
        )
    if calibration is None:
        return Confidence(level, None, disjoint)
    X, y, sensitive = _calibration_parts(calibration, stack._measure)
    H, labels = stack._matrix(X, sensitive), None if y is None else stack._target(y)
    rows = Rows.validated(labels, H, sensitive, whole=True, target="y")
    if len(rows.sensitive) == len(stack._groups_) == 1:  # one attribute needs no name
        rows = replace(rows, sensitive={stack._groups_[0][0]: next(iter(rows.sensitive.values()))})
    options = {"fairness": stack._measure, "sensitive_mode": stack.sensitive_mode}
    return Confidence(level, CalibrationRows.of(rows, stack.group_sizes_, **options), disjoint)


def _calibration_parts(calibration: Any, fairness: Any) -> tuple[Any, Any, Any]:
    """Return (X, y, sensitive_features) after checking that a measure can be counted on them."""
    if not isinstance(calibration, (tuple, list)) or len(calibration) != 3:
        kind = type(calibration).__name__
        shown = f"a {kind} of {len(calibration)}" if isinstance(calibration, (tuple, list)) else kind
        raise InvalidInputError(
            f"calibration must be (X, y, sensitive_features); got {shown}: y may be None for demographic parity"
        )
    if not isinstance(fairness, str):
        raise InvalidInputError(
            "calibration needs a named fairness measure: masks are those of the rows fitted to, not of these"
        )
    X, y, sensitive = calibration
    validate.same_order(**{"X of calibration": X, "its y": y, "its sensitive_features": sensitive})
    if y is None and named_measure(fairness).needs_labels:
        raise InvalidInputError(
            f"calibration must have labels for fairness={fairness!r}; got None: only demographic parity needs none"
        )
    if isinstance(sensitive, ProbableGroups):
        raise InvalidInputError(
            "calibration must have groups that are known: what is promised is counted, and nobody is in two groups"
        )
    return X, y, sensitive


def select(
    path: StackPath,
    limits: Limits,
    group_sizes: Mapping[str, int],
    *,
    confidence: Confidence | None = None,
    randomize: bool = False,
    secret: Any = None,
) -> OperatingPoint:
    """Return the most accurate operating point within the limits; see `FairStacksClassifier.select`.

    Parameters
    ----------
    path : StackPath
        The path.
    limits : Limits
        What is asked for.
    group_sizes : dict of str to int
        Rows of each row set that the path was fitted to.
    confidence : Confidence, optional
        For a promise.
    randomize : bool, default=False
        Whether mixtures of two stacks are candidates.
    secret : bytes or str, optional
        The key of a mixture's draws.
    """
    key = None if secret is None else secret_bytes(secret)
    rule = SelectionRule(path.fitted.sweep, np.array(list(group_sizes.values()), dtype=np.float64))
    shown: dict[str, Any]
    if confidence is None:
        best = rule.choose(limits, randomize=randomize)
        if best is None:
            raise InfeasibleError(_nothing(rule, limits))
        where = "out-of-fold decisions" if path.fitted.cross_validated else "decisions on the rows fitted to"
        chosen, shown = best, {"procedure": f"median of what new rows will show, from {where}"}
    else:
        chosen, shown = _promised(path, rule, limits, confidence, randomize)
    (first, second), share = chosen.place[0].tolist(), float(chosen.share[0])
    summary = replace(_summary(rule, chosen, limits, advise=confidence is None), **shown)
    return replace(path.at_places(first, second, share, key), selection=summary)


def _promised(
    path: StackPath, rule: SelectionRule, limits: Limits, confidence: Confidence, randomize: bool
) -> tuple[Candidates, dict[str, Any]]:
    """Return the most accurate candidate that is shown to be fair enough, and what `Selection` says of it."""
    asked = limits.min_fairness is not None or limits.min_ratio is not None
    if asked:
        found, begin = rule.sequence(limits, randomize=randomize)
    else:
        fairest = rule.choose(limits, randomize=randomize)
        found, begin = (rule.single().take(np.arange(0)) if fairest is None else fairest), {0: 1.0}
    if len(found) == 0:
        constant = rule.choose(limits, randomize=False)
        if constant is None or np.isfinite(constant.place[0]).any():
            raise InfeasibleError(_nothing(rule, limits))
        needless = "no test is needed: the constant model decides alike for everybody"
        return constant, {"procedure": needless, "confidence": confidence.level, "promised": 1.0}
    if confidence.rows is None:
        size, n_rows = rule.size, 0
        # Rates that were restored from probabilities of groups may lie outside [0, 1].
        counts = [np.rint((np.clip(rates, 0.0, 1.0) * size).round(9)) for rates in rule.seen_rates(found)]
        procedure = "fixed sequence of tests on out-of-fold decisions; approximate"
    else:
        size, n_rows = confidence.rows.member.sum(axis=1), len(confidence.rows.H)
        counts, procedure = (
            [confidence.rows.positives(path, found)],
            "fixed sequence of exact tests on calibration rows",
        )
    # Mixtures with the constant model come first.
    mixed = int(np.isnan(found.place[:, 1]).sum()) if randomize and asked else None
    tests = _Tests(rule, found, counts, size, begin, confidence, mixed)
    fields = {"procedure": procedure, "confidence": confidence.level, "n_calibration": n_rows}
    if not asked:
        return found, fields | {"promised": tests.lowest()}
    passed = np.flatnonzero(tests.passed(limits))
    if len(passed) == 0:
        raise InfeasibleError(tests.advice(limits, n_rows or _n_rows(rule.sets, size)))
    best = passed[np.argmax(found.accuracy[passed].round(12))]
    return found.take(np.array([best])), fields | {"promised": limits.min_fairness}


def _n_rows(sets: RowSets, size: FloatArray) -> int:
    """Return how many rows the sets have in all, each row once."""
    blocks = dict.fromkeys(sets.attributes, 0)
    for name, block in zip(sets.attributes, sets.blocks, strict=True):
        blocks[name] += int(size[list(block)].sum())
    return max(blocks.values())


@dataclass(frozen=True, eq=False)
class _Tests:
    """Tests that show of candidates that they are fair enough.

    Attributes
    ----------
    rule : SelectionRule
        What is known of the path.
    found : Candidates
        The candidates, c of them.
    counts : list of ndarray of shape (c, s)
        Positive decisions of the candidates; all must show it.
    size : ndarray of shape (s,)
        Rows of each row set.
    begin : dict of int to float
        The candidates with which a sequence of tests begins, and its share of the probability of an error.
    confidence : Confidence
        With which they show it.
    mixed : int or None
        How many candidates, the first, are mixtures with the constant model, among which the tests find their own
        beginning; None: they keep to `begin`.
    """

    rule: SelectionRule
    found: Candidates
    counts: list[FloatArray]
    size: FloatArray
    begin: dict[int, float]
    confidence: Confidence
    mixed: int | None

    def passed(self, limits: Limits) -> BoolArray:
        """Tell which candidates (c,) are shown to be within the limits, and likely to be."""
        result = self._shown(limits)
        result[result] = self._likely(limits, self.found.take(np.flatnonzero(result)))
        return result

    def _likely(self, limits: Limits, found: Candidates) -> BoolArray:
        """Tell which candidates are expected to be within the limits; rows that nothing has seen need no such guess."""
        good = np.ones(len(found), dtype=bool)
        for name in ("min_fairness", "min_ratio"):
            asked = getattr(limits, name)
            if asked is not None and self.confidence.rows is None:
                good &= self.rule.least(found, name, self.confidence.level) >= asked - 1e-9
        return good

    def _shown(self, limits: Limits) -> BoolArray:
        """Tell which candidates (c,) pass the tests."""
        level, sets, begin = self.confidence.level, self.rule.sets, self.begin
        if self.mixed is not None:
            seen = [rates[: self.mixed + 1] for rates in self.rule.seen_rates(self.found)]
            begin = {_first_likely(seen, self.size, sets, limits, level): 1.0}
        options: dict[str, Any] = {"min_fairness": limits.min_fairness, "min_ratio": limits.min_ratio}
        options |= {"disjoint": self.confidence.disjoint}
        result = np.zeros(len(self.found), dtype=bool)
        for start, share in begin.items():
            options |= {"confidence": 1.0 - share * (1.0 - level), "order": np.arange(start, len(result))}
            shown = [promised_candidates(one, self.size, sets, **options) for one in self.counts]
            result |= np.logical_and.reduce(shown)
        return result

    def lowest(self) -> float:
        """Return the largest fairness that can be promised of the first candidate."""
        options: dict[str, Any] = {"confidence": self.confidence.level, "disjoint": self.confidence.disjoint}
        return min(float(largest_promise(one, self.size, self.rule.sets, **options)[0]) for one in self.counts)

    def advice(self, limits: Limits, n_rows: int) -> str:
        """Return a sentence that says what can be promised instead of what was asked for."""
        asked = {"min_fairness": limits.min_fairness, "min_ratio": limits.min_ratio}
        said = " and ".join(f"{name}={value:g}" for name, value in asked.items() if value is not None)
        best = 0.0 if limits.min_fairness is None else self._largest(limits, "min_fairness")
        level = self.confidence.level
        if limits.min_fairness is None or (limits.min_ratio is not None and best == 0.0):
            ratio = self._largest(replace(limits, min_fairness=None), "min_ratio")
            return (
                f"{said} cannot be promised: with {n_rows:,} rows the largest ratio that can be promised at "
                f"{level * 100.0:.4g} % is {ratio:g}: ask for less, or use more rows"
            )
        fairest = self.counts[-1][max(self.begin, key=lambda start: self.begin[start])]
        options = {"min_fairness": limits.min_fairness, "confidence": level, "best": best}
        return f"{said} cannot be promised: {promise_advice(fairest, self.size, self.rule.sets, n_rows, **options)}"

    def _largest(self, limits: Limits, name: str) -> float:
        """Return the largest request, in thousandths, that some candidate is shown to meet; 0: none."""
        # What is likely does not depend on the request that is looked for: it is computed once, not at each halving.
        allowed, least = self._likely(replace(limits, **{name: None}), self.found), np.full(len(self.found), np.inf)
        if self.confidence.rows is None:
            least = self.rule.least(self.found, name, self.confidence.level)
        low, high = 0, int(np.ceil(getattr(limits, name) * 1000.0))
        while high - low > 1:
            middle = (low + high) // 2
            good = allowed & (least >= middle / 1000.0)
            # Without one that is likely there is nothing to test.
            some = good.any() and (good & self._shown(replace(limits, **{name: middle / 1000.0}))).any()
            low, high = (middle, high) if some else (low, middle)
        return low / 1000.0


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


def _nothing(rule: SelectionRule, limits: Limits) -> str:
    """Return a sentence that says what could be had instead of what was asked for."""
    if limits.min_rate is not None and rule.choose(replace(limits, min_rate=None), randomize=False) is not None:
        return (
            f"min_rate={limits.min_rate:g} leaves no model that meets the other requests; on this path the lowest rate "
            f"of a group is {rule.highest_floor():.3f} at most: ask for less, or lower the threshold"
        )
    # Nothing else excludes the constant model, which is fair; and the unconstrained stack loses nothing.
    loss = limits.max_accuracy_loss
    fairest = cast("Candidates", rule.choose(Limits(max_accuracy_loss=loss), randomize=False))
    return (
        f"max_accuracy_loss={loss:g} leaves a fairness of at most {rule.fairness(fairest)[0]:.4f}; ask for less "
        "fairness or allow a larger loss"
    )


def _summary(rule: SelectionRule, chosen: Candidates, limits: Limits, *, advise: bool) -> Selection:
    """Return what there is to say of a candidate; `advise`: and of what another call would give."""
    first, second = chosen.place[0]
    constant, alone = bool(np.isnan(first)), first == second or chosen.share[0] == 1.0
    names = rule.sets.names
    moved, decides = rule.changed(chosen), rule.sweep.variance is None
    return Selection(
        asked=limits.min_fairness,
        asked_ratio=limits.min_ratio,
        asked_loss=limits.max_accuracy_loss,
        asked_rate=limits.min_rate,
        estimated=float(rule.fairness(chosen)[0]),
        accuracy=float(chosen.accuracy[0]),
        given_up=float(rule.accuracy[0] - chosen.accuracy[0]),
        kind="constant" if constant else "stack" if alone else "mixture",
        rates=dict(zip(names, chosen.rates[0][0].tolist(), strict=True)),
        rates_before=dict(zip(names, rule.rates[0][0].tolist(), strict=True)),
        ratio=float(rule.quotient(chosen.rates[0])[0]) if decides else float("nan"),
        changed={} if moved is None else dict(zip(names, moved.tolist(), strict=True)),
        notes=tuple(_notes(rule, chosen, limits, constant=constant, alone=alone, advise=advise and decides)),
    )


def _small_sets(rule: SelectionRule, limits: Limits) -> Iterator[str]:
    """Name the row set that is known least, if twice the error of its rate is more than the gap that was asked for."""
    least = int(np.argmax(rule.errors[0]))
    known_to = 2.0 * float(rule.errors[0, least])
    if limits.min_fairness is None or known_to <= 1.0 - limits.min_fairness:
        return
    what = "rate" if rule.sweep.variance is None else "mean"
    several = any(least in block and len(block) > 2 for block in rule.sets.blocks)
    yield (
        f"{rule.sets.names[least]} has {rule.size[least]:,.0f} rows, so that its {what} is known to ± {known_to:.2f} "
        f"only: {'merge it with another group, or ' if several else ''}use more rows"
    )


def _notes(
    rule: SelectionRule, chosen: Candidates, limits: Limits, *, constant: bool, alone: bool, advise: bool
) -> Iterator[str]:
    """Say what there is to know; `advise`: also what randomising would offer in place of the constant model."""
    if constant:
        best = rule.single().take(np.arange(len(rule.single()) - 1))
        fairness = rule.fairness(best)
        yield (
            "the constant model decides alike for everybody; the fairest stack of the path has a fairness of "
            f"{fairness.max():.4f} and an accuracy of {best.accuracy[np.argmax(fairness)]:.4f}"
        )
        if limits.min_rate is not None and rule.highest_floor() < limits.min_rate:
            yield (
                f"min_rate={limits.min_rate:g} leaves no stack: on this path the lowest rate of a group is "
                f"{rule.highest_floor():.3f} at most; ask for less, or lower the threshold"
            )
        mixed = rule.choose(limits, randomize=True) if advise else None
        if mixed is not None and mixed.accuracy[0] > chosen.accuracy[0] + _WORTH_SAYING:
            offered = f"with an accuracy of {mixed.accuracy[0]:.4f}"
            yield f"randomize=True draws one of two models within what was asked, {offered}"
        yield from _small_sets(rule, limits)
        return
    if limits.min_fairness is not None and rule.fairness(chosen)[0] < limits.min_fairness - 1e-6:
        level = f"{limits.min_fairness:g}"
        yield f"these rows are too few to show a fairness of {level}: the stack that seems the fairest was taken"
        yield from _small_sets(rule, limits)
    if alone and rule.jumps_at(float(chosen.place[0, 0])):
        yield "decisions jump here, many rows at once; randomize=True randomises between the two neighbours"
