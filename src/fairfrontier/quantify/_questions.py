"""Which two curves to show next, so that few answers say much about a weight."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.quantify._elicitation import (
    EVERYBODY,
    Answer,
    Choice,
    Elicitation,
    Requirement,
    _knots,
    fit_answers,
    fit_masses,
    levels_of,
)


@dataclass(frozen=True, eq=False)
class Question:
    """Two curves to choose from: `first` and `second`, with their names."""

    first: TAFCurve
    second: TAFCurve
    names: tuple[str, str]


class Questionnaire:
    """Ask for preferences between curves, the most telling pair first.

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
    p(1 − p)·v: the one that the fit is least sure of, in the sense that an answer will move it most.

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
        """Return the most telling pair that this person was not asked yet; None: all pairs were asked."""
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
        return fit_answers(self.answers, grid=self.knots, smoothness=self.smoothness)

    def _gain(self, person: str) -> FloatArray:
        rows = [self._row(answer) for answer in self.answers.get(person, [])]
        known = np.array(rows) if rows else np.zeros((0, len(self.knots) - 1))
        fit = fit_masses(known, self.smoothness)
        difference = self._levels[self._pairs[:, 0]] - self._levels[self._pairs[:, 1]]
        covariance = np.linalg.inv(fit.hessian)
        # How decided somebody is (the total) is no question of which levels matter: condition on it.
        total = covariance.sum(axis=1)
        covariance -= np.outer(total, total) / total.sum()
        spread = np.maximum(np.einsum("ij,ij->i", difference @ covariance, difference), 0.0)
        mean = difference @ fit.masses
        chance = expit(mean / np.sqrt(1.0 + np.pi * spread / 8.0))
        return np.asarray(chance * (1.0 - chance) * spread)

    def _row(self, answer: Answer) -> FloatArray:
        choice = answer.as_choice(self.knots) if isinstance(answer, Requirement) else answer
        first, second = (choice.preferred, choice.rejected) if isinstance(choice, Choice) else choice
        return levels_of(first, self.knots) - levels_of(second, self.knots)


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
