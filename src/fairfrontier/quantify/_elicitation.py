"""From answers to a weight: which levels of fairness matter to the people who are asked.

Theorem 1 of the paper says that a sensible preference between TAF curves is FAUC for some weight, but not which. FAUC
is linear in the weight, so that answers of the kind "I prefer this curve to that one" give the weight by a logistic fit
without local optima. A questionnaire chooses which two curves to show next, so that few answers say much.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import expit

from fairfrontier import _validation as validate
from fairfrontier import exceptions
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.quantify._fauc import TabulatedWeight, fauc

# Differences in FAUC are some hundredths; multiplied by this they, and the coefficients of the fit, are of order one.
_SCALE = 100.0
_TOLERANCE = 1e-5
_MAX_STEPS = 200
# The share of the decrease that the gradient promises which a step must deliver.
_ARMIJO = 1e-4
# Penalties on that scale: by themselves they let neighbouring masses differ by about a tenth, and each mass be within a
# third of that of the uniform weight.
_ROUGHNESS, _RIDGE = 100.0, 10.0
EVERYBODY = "everybody"


@dataclass(frozen=True, eq=False)
class Choice:
    """An answer: this curve rather than that one."""

    preferred: TAFCurve
    rejected: TAFCurve


@dataclass(frozen=True)
class Requirement:
    """A statement: "at least this accuracy at this fairness".

    It counts as the answer of somebody who prefers a curve that just meets it, and is at `floor` beyond that fairness,
    to a perfect curve that misses it: accuracy 1 up to one step of the grid before that fairness, and the floor after.

    Parameters
    ----------
    fairness, accuracy : float
        The least accuracy at that fairness, in (0, 1].
    floor : float
        The accuracy that every model has, such as that of a coin.

    Examples
    --------
    >>> weight = elicit_weight([Requirement(0.95, 0.9)])
    >>> bool(weight(0.94) > weight(0.5))
    True
    """

    fairness: float
    accuracy: float
    floor: float = 0.5

    def __post_init__(self) -> None:
        validate.number(self.fairness, parameter="fairness", low=0.0, high=1.0)
        validate.number(self.floor, parameter="floor", low=0.0, high=1.0)
        validate.number(self.accuracy, parameter="accuracy", low=self.floor, high=1.0, advice=": above the floor")

    def as_choice(self, knots: FloatArray) -> Choice:
        """Return the statement as a choice between two curves on a grid."""
        before = float(knots[max(0, int(np.searchsorted(knots, self.fairness - 1e-9)) - 1)])
        return Choice(
            taf_curve([self.fairness, 1.0], [self.accuracy, self.floor]),
            taf_curve([before, 1.0], [1.0, self.floor]),
        )


Answer = Choice | Requirement | tuple[TAFCurve, TAFCurve]
Answers = Sequence[Answer] | Mapping[str, Sequence[Answer]]


@dataclass(frozen=True, eq=False)
class Elicitation:
    """A weight from answers, and how far it can be trusted.

    Attributes
    ----------
    weight : TabulatedWeight
        The weight of all people together: the mean of their own weights, in which each person counts once.
    people : dict of str to TabulatedWeight
        Each person's own weight.
    consistency : dict of str to float
        The share of each person's answers that their own weight reproduces.
    contradictions : dict of str to tuple of int
        The positions of the answers of each person that their own weight does not reproduce.
    consistent : dict of str to bool
        Whether any weight at all reproduces every answer of that person.
    sharpness : dict of str to float
        How decided each person is: at a difference d in FAUC they choose the better curve with probability
        1/(1 + exp(−sharpness·d)).
    kkt : float
        The largest residual of the fits' optimality conditions.
    """

    weight: TabulatedWeight
    people: dict[str, TabulatedWeight]
    consistency: dict[str, float]
    contradictions: dict[str, tuple[int, ...]]
    consistent: dict[str, bool]
    sharpness: dict[str, float]
    kkt: float


def elicit_weight(choices: Answers, *, grid: ArrayLike | None = None, smoothness: float = 1.0) -> TabulatedWeight:
    """Find the weight function behind people's preferences between TAF curves.

    Parameters
    ----------
    choices : sequence of Choice, (preferred, rejected) or Requirement; or dict of person to such a sequence
        The answers.
    grid : array-like of shape (q,), optional
        Ascending levels of fairness; the weight is constant between them. None: 0, 0.05, …, 1.
    smoothness : float
        How strongly neighbouring levels are held to similar weights, above 0.

    Returns
    -------
    TabulatedWeight
        Integrates to 1. Of several people: the mean of their own weights, see `fit_answers`.

    Notes
    -----
    Let xₐ be the means of curve a between the levels and q ≥ 0 the masses there; then FAUC is xₐᵀq / Σq. The fit
    minimises Σ log(1 + exp(−(xₐ − x_b)ᵀq)) over the answers "a, not b", plus a quadratic penalty on the differences of
    neighbouring masses and (weakly) on the distance from the uniform weight: a convex program on the cone q ≥ 0, whose
    scale Σq is how decided the answers are.

    Examples
    --------
    >>> from fairfrontier import taf_curve
    >>> fair = taf_curve([1.0], [0.8])
    >>> sharp = taf_curve([0.7, 1.0], [0.9, 0.6])
    >>> weight = elicit_weight([(fair, sharp)])
    >>> bool(weight(0.95) > weight(0.3))
    True
    """
    return fit_answers(choices, grid=grid, smoothness=smoothness).weight


def fit_answers(choices: Answers, *, grid: ArrayLike | None = None, smoothness: float = 1.0) -> Elicitation:
    """Find each person's weight and that of all of them; the parameters are those of `elicit_weight`.

    Examples
    --------
    >>> from fairfrontier import taf_curve
    >>> fair, sharp = taf_curve([1.0], [0.8]), taf_curve([0.7, 1.0], [0.9, 0.6])
    >>> both = fit_answers({"Ada": [(fair, sharp)], "Bob": [(sharp, fair)]})
    >>> bool(both.people["Ada"](0.95) > both.people["Bob"](0.95)), both.consistency
    (True, {'Ada': 1.0, 'Bob': 1.0})
    """
    validate.number(smoothness, parameter="smoothness", low=0.0, strict=True)
    return _fitted(choices if isinstance(choices, Mapping) else {EVERYBODY: choices}, _knots(grid), smoothness)


def _fitted(by_person: Mapping[str, Any], knots: FloatArray, smoothness: float) -> Elicitation:
    """Return what `fit_answers` does, for levels and a smoothness that are validated."""
    if not by_person or not all(len(answers) for answers in by_person.values()):
        raise InvalidInputError("choices must hold at least one answer of each person; got none")
    rows = {name: differences(answers, knots) for name, answers in by_person.items()}
    fits = {name: fit_masses(d, smoothness) for name, d in rows.items()}
    shares = {name: fit.masses / fit.masses.sum() for name, fit in fits.items()}
    wrong = {name: tuple(np.flatnonzero(d @ shares[name] <= 0).tolist()) for name, d in rows.items()}
    return Elicitation(
        _as_weight(np.mean(list(shares.values()), axis=0), knots),
        {name: _as_weight(share, knots) for name, share in shares.items()},
        {name: 1.0 - len(wrong[name]) / len(rows[name]) for name in rows},
        wrong,
        {name: _any_weight(d) for name, d in rows.items()},
        {name: float(fit.masses.sum()) for name, fit in fits.items()},
        max(fit.kkt for fit in fits.values()),
    )


@dataclass(frozen=True, eq=False)
class Fit:
    """Masses between the levels (m,), the Hessian (m, m) of the objective there, and its optimality residual."""

    masses: FloatArray
    hessian: FloatArray
    kkt: float


def fit_masses(differences: FloatArray, smoothness: float) -> Fit:
    """Minimise the penalised logistic loss over q ≥ 0, given xₐ − x_b of each answer, shape (answers, m)."""
    d = _SCALE * differences
    m = d.shape[1]
    start = np.full(m, 1.0 / m)
    step = np.diff(np.eye(m), axis=0)
    penalty = smoothness * _ROUGHNESS * (step.T @ step) + _RIDGE * np.eye(m)

    def objective(q: FloatArray) -> tuple[float, FloatArray]:
        margin = d @ q
        pull = penalty @ (q - start)
        value = np.logaddexp(0.0, -margin).sum() + 0.5 * (q - start) @ pull
        return float(value), pull - d.T @ expit(-margin)

    q = _projected_newton(start, objective, lambda q: _hessian(q, d, penalty))
    residual = _residual(q, objective(q)[1])
    if residual > _TOLERANCE:
        warnings.warn(
            f"elicit_weight: the optimality residual is {residual:.2g}, above {_TOLERANCE:g}; raise smoothness "
            f"(now {smoothness:g})",
            exceptions.ConvergenceWarning,
            stacklevel=3,
        )
    if not q.any():  # the answers prefer curves that are lower everywhere: no level has a positive mass
        q = start
    return Fit(_SCALE * q, _hessian(q, d, penalty) / _SCALE**2, residual)


def _projected_newton(
    q: FloatArray,
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    hessian: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Minimise a strictly convex function over q ≥ 0 by Newton steps that are cut off at 0 (Bertsekas 1982).

    A mass that is at 0, or nearly so, and that the gradient pushes down goes straight to 0 and has no part in the
    Newton step of the others. A dozen steps of one small linear system each; a quasi-Newton method needs hundreds of
    calls into LAPACK that threads make slower.
    """
    value, gradient = objective(q)
    for _ in range(_MAX_STEPS):
        residual = _residual(q, gradient)
        if residual < 1e-11:
            break
        held = (q <= min(residual, 1e-3)) & (gradient > 0)
        direction = np.where(held, q, 0.0)
        if not held.all():
            direction[~held] = np.linalg.solve(hessian(q)[np.ix_(~held, ~held)], gradient[~held])
        for halving in range(40):
            trial = np.maximum(q - 0.5**halving * direction, 0.0)
            reached, slope = objective(trial)
            enough = reached <= value - _ARMIJO * gradient @ (q - trial)
            # Close to the minimum the decrease drowns in rounding, but the residual still tells.
            if enough or (reached <= value + 1e-12 * abs(value) and _residual(trial, slope) < residual):
                break
        else:
            return q
        q, value, gradient = trial, reached, slope
    return q


def _hessian(q: FloatArray, d: FloatArray, penalty: FloatArray) -> FloatArray:
    chance = expit(d @ q)
    return np.asarray((d * (chance * (1 - chance))[:, None]).T @ d + penalty)


def _residual(q: FloatArray, gradient: FloatArray) -> float:
    """Return how far q is from a minimum over q ≥ 0: the length of a projected gradient step."""
    return float(np.abs(q - np.maximum(q - gradient, 0.0)).max())


def differences(answers: Sequence[Answer], knots: FloatArray) -> FloatArray:
    """Return the preferred curve's mean between the levels minus the rejected one's, shape (answers, m)."""
    pairs = [_choice(answer, knots) for answer in answers]
    return np.array([levels_of(pair.preferred, knots) - levels_of(pair.rejected, knots) for pair in pairs])


def levels_of(curve: TAFCurve, knots: FloatArray) -> FloatArray:
    """Return the mean of a curve between neighbouring levels, shape (m,)."""
    if not curve.linear:  # its integral is linear between its own knots
        ends = np.concatenate([[0.0], curve.fairness, [1.0]])
        area = np.append(np.cumsum(np.diff(ends[:-1]) * curve.accuracy), [0.0])
        area = np.concatenate([[0.0], area[:-1], area[-2:-1]])
        return np.asarray(np.diff(np.interp(knots, ends, area)) / np.diff(knots))
    return np.array([fauc(curve, TabulatedWeight(knots[i : i + 2], np.ones(1))) for i in range(len(knots) - 1)])


def _choice(answer: Any, knots: FloatArray) -> Choice:
    if isinstance(answer, Requirement):
        return answer.as_choice(knots)
    if isinstance(answer, Choice):
        return answer
    if isinstance(answer, Sequence) and len(answer) == 2 and all(isinstance(c, TAFCurve) for c in answer):
        return Choice(answer[0], answer[1])
    raise InvalidInputError(
        f"choices must hold Choice, Requirement or pairs (preferred TAFCurve, rejected TAFCurve); got {answer!r}"
    )


def _knots(grid: ArrayLike | None) -> FloatArray:
    if grid is None:
        return np.linspace(0.0, 1.0, 21)
    return TabulatedWeight(validate.column(grid, parameter="grid"), np.ones(np.shape(grid))).knots


def _as_weight(share: FloatArray, knots: FloatArray) -> TabulatedWeight:
    return TabulatedWeight(knots, share / np.diff(knots))


def _any_weight(d: FloatArray) -> bool:
    """Tell whether some weight reproduces every answer: a linear program for the largest least margin."""
    m = d.shape[1]
    result = scipy.optimize.linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-d, np.ones((len(d), 1))]),
        b_ub=np.zeros(len(d)),
        A_eq=np.append(np.ones(m), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, None)] * m + [(None, None)],
        method="highs",
    )
    return bool(result.status == 0 and -result.fun > 1e-12)


@dataclass(frozen=True, eq=False)
class Question:
    """Two curves to choose from: `first` and `second`, with their names."""

    first: TAFCurve
    second: TAFCurve
    names: tuple[str, str]


class Questionnaire:
    """Ask for preferences between curves, the most informative pair first.

    Parameters
    ----------
    curves : dict of str to TAFCurve, optional
        The curves to ask about, such as those of real model families; None makes 60 simple ones.
    grid, smoothness
        As in `elicit_weight`.
    random_state : int, numpy.random.Generator or None
        Fixes the simple curves.

    Notes
    -----
    After each answer the fit's curvature gives the variance v of every pair's difference in FAUC (Laplace's
    approximation), and p, the probability of one answer rather than the other. The next pair is that with the largest
    p(1 − p)·v: the pair whose answer is expected to change the fit most.

    Examples
    --------
    >>> questionnaire = Questionnaire(random_state=0)
    >>> for _ in range(5):
    ...     question = questionnaire.next_question()
    ...     questionnaire.answer(question, prefers_first=question.first(0.9) > question.second(0.9))
    >>> weight = questionnaire.fit().weight
    >>> bool(weight(0.88) > weight(0.2))
    True
    """

    def __init__(
        self,
        curves: Mapping[str, TAFCurve] | None = None,
        *,
        grid: ArrayLike | None = None,
        smoothness: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.curves = dict(curves) if curves is not None else simple_curves(60, random_state=random_state)
        if len(self.curves) < 2:
            raise InvalidInputError(f"curves must hold at least two curves; got {len(self.curves)}")
        self.knots = _knots(grid)
        self.smoothness = validate.number(smoothness, parameter="smoothness", low=0.0, strict=True)
        self.answers: dict[str, list[Answer]] = {}
        self._names = list(self.curves)
        self._levels = np.array([levels_of(curve, self.knots) for curve in self.curves.values()])
        self._pairs = np.stack(np.triu_indices(len(self._names), k=1), axis=1)
        self._asked: dict[str, set[tuple[str, str]]] = {}

    def next_question(self, person: str = EVERYBODY) -> Question | None:
        """Return the most informative pair that this person was not asked yet; None: all pairs were asked."""
        asked = self._asked.get(person, set())
        gain = self._gain(person)
        for pair in self._pairs[np.argsort(-gain, kind="stable")]:
            names = (self._names[pair[0]], self._names[pair[1]])
            if names not in asked:
                return Question(self.curves[names[0]], self.curves[names[1]], names)
        return None

    def answer(self, question: Question, *, prefers_first: bool, person: str = EVERYBODY) -> None:
        """Record an answer."""
        kept, left = (question.first, question.second) if prefers_first else (question.second, question.first)
        self.answers.setdefault(person, []).append(Choice(kept, left))
        self._asked.setdefault(person, set()).add(question.names)

    def skip(self, question: Question, *, person: str = EVERYBODY) -> None:
        """Do not ask this person about that pair again."""
        self._asked.setdefault(person, set()).add(question.names)

    def require(self, fairness: float, accuracy: float, *, person: str = EVERYBODY) -> None:
        """Record the statement "at least `accuracy` at `fairness`"."""
        self.answers.setdefault(person, []).append(Requirement(fairness, accuracy))

    def fit(self) -> Elicitation:
        """Return the weight of the answers so far."""
        return _fitted(self.answers, self.knots, self.smoothness)

    def _gain(self, person: str) -> FloatArray:
        answers = self.answers.get(person, [])
        known = differences(answers, self.knots) if answers else np.zeros((0, len(self.knots) - 1))
        fit = fit_masses(known, self.smoothness)
        covariance = np.linalg.inv(fit.hessian)
        # The total mass says how decided a person is, not which levels matter: it is held fixed.
        total = covariance.sum(axis=1)
        covariance -= np.outer(total, total) / total.sum()
        # The variance of a difference from those of the curves: the products are as small as the number of curves, not
        # of pairs.
        first, second = self._pairs.T
        gram = self._levels @ covariance @ self._levels.T
        variance = np.diagonal(gram)
        spread = np.maximum(variance[first] + variance[second] - 2.0 * gram[first, second], 0.0)
        score = self._levels @ fit.masses
        mean = score[first] - score[second]
        chance = expit(mean / np.sqrt(1.0 + np.pi * spread / 8.0))
        return np.asarray(chance * (1.0 - chance) * spread)


def simple_curves(number: int, *, random_state: Any = None) -> dict[str, TAFCurve]:
    """Return random step curves of two to four steps between fairness 0.4 and 1, easy to tell apart.

    Examples
    --------
    >>> len(simple_curves(5, random_state=0))
    5
    """
    generator = np.random.default_rng(random_state)
    curves = {}
    for index in range(validate.whole_number(number, parameter="number", low=1)):
        steps = int(generator.integers(1, 4))
        fairness = np.append(np.sort(generator.choice(np.arange(0.40, 0.99, 0.02), steps, replace=False)), 1.0)
        accuracy = np.sort(generator.uniform(0.5, 1.0, steps + 1))[::-1]
        curves[f"curve {index + 1}"] = taf_curve(fairness.round(2), accuracy.round(2))
    return curves
