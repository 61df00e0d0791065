"""Elicitation: a known weight comes back, the fit is optimal, answers that contradict are named."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

import fairfrontier as ff
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._elicitation import (
    _RIDGE,
    _ROUGHNESS,
    _SCALE,
    Choice,
    Questionnaire,
    Requirement,
    differences,
    elicit_weight,
    fit_answers,
    fit_masses,
    levels_of,
    simple_curves,
)

FAIR = ff.taf_curve([1.0], [0.8])
SHARP = ff.taf_curve([0.7, 1.0], [0.9, 0.6])
KNOTS = np.linspace(0, 1, 21)


def agreement(weight, truth, curves):
    """Share of the pairs of curves that both weights order alike."""
    ours = np.array([ff.fauc(curve, weight) for curve in curves])
    theirs = np.array([ff.fauc(curve, truth) for curve in curves])
    i, j = np.triu_indices(len(curves), k=1)
    decided = np.abs(theirs[i] - theirs[j]) > 1e-9
    return np.mean(np.sign(ours[i] - ours[j])[decided] == np.sign(theirs[i] - theirs[j])[decided])


def ask(truth, n_questions, seed, sharpness=100.0):
    """Return a questionnaire with noisy answers of somebody whose weight is `truth`, and the number of wrong ones."""
    generator = np.random.default_rng(seed)
    questionnaire = Questionnaire(random_state=seed)
    wrong = 0
    for _ in range(n_questions):
        question = questionnaire.next_question()
        lead = ff.fauc(question.first, truth) - ff.fauc(question.second, truth)
        prefers_first = generator.random() < 1 / (1 + np.exp(-sharpness * lead))
        wrong += prefers_first != (lead > 0)
        questionnaire.answer(question, prefers_first=prefers_first)
    return questionnaire, wrong


@pytest.mark.parametrize("truth", [ff.StepWeight(0.8), ff.PowerWeight(4, 0.6), ff.PowerWeight(2), ff.UniformWeight()])
def test_thirty_noisy_answers_recover_the_ranking(truth):
    curves = list(simple_curves(60, random_state=999).values())
    found, mistakes = [], 0
    for seed in range(2):
        questionnaire, wrong = ask(truth, 30, seed)
        mistakes += wrong
        found.append(agreement(questionnaire.fit().weight, truth, curves))
    assert mistakes > 0
    assert np.mean(found) >= 0.95


def test_chosen_questions_beat_random_ones():
    truth, curves = ff.PowerWeight(4, 0.6), list(simple_curves(60, random_state=999).values())
    chosen = np.mean([agreement(ask(truth, 10, seed)[0].fit().weight, truth, curves) for seed in range(3)])
    at_random = []
    for seed in range(3):
        pool = list(simple_curves(60, random_state=seed).values())
        pairs = np.random.default_rng(seed).integers(0, 60, (10, 2))
        pairs = [(pool[i], pool[j]) for i, j in pairs if i != j]
        ordered = [(a, b) if ff.fauc(a, truth) > ff.fauc(b, truth) else (b, a) for a, b in pairs]
        at_random.append(agreement(elicit_weight(ordered), truth, curves))
    assert chosen > np.mean(at_random)


def test_fit_is_the_optimum_of_an_independent_solver():
    curves = list(simple_curves(24, random_state=3).values())
    pairs = [
        (a, b) if ff.fauc(a, ff.StepWeight(0.8)) > ff.fauc(b, ff.StepWeight(0.8)) else (b, a)
        for a, b in zip(curves[:12], curves[12:], strict=True)
    ]
    pairs[0] = pairs[0][::-1]  # one mistake
    d = differences(pairs, KNOTS)
    q = cp.Variable(20, nonneg=True)
    away = q - 1 / 20
    loss = cp.sum(cp.logistic(-_SCALE * d @ q))
    penalty = _ROUGHNESS * cp.sum_squares(cp.diff(away)) + _RIDGE * cp.sum_squares(away)
    problem = cp.Problem(cp.Minimize(loss + 0.5 * penalty))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solver's own notes
        problem.solve(solver=cp.CLARABEL)
    fit = fit_masses(d, 1.0)
    assert fit.kkt < 1e-8
    np.testing.assert_allclose(fit.masses / _SCALE, q.value, atol=1e-4)


def test_levels_are_means_of_the_curve():
    for curve in (
        SHARP,
        ff.taf_curve([0.5, 0.93], [0.9, 0.6]),
        ff.taf_curve([0.33, 0.77, 1], [0.9, 0.8, 0.5], interpolate=True),
    ):
        expected = [ff.fauc(curve, ff.TabulatedWeight(KNOTS[i : i + 2], [1.0])) for i in range(20)]
        np.testing.assert_allclose(levels_of(curve, KNOTS), expected, atol=1e-12)


def test_weight_integrates_to_one_and_scores_as_masses_do():
    weight = elicit_weight([(FAIR, SHARP)])
    assert weight.cumulative(np.ones(1))[0] == pytest.approx(1.0)
    share = weight.values * np.diff(weight.knots)
    assert ff.fauc(SHARP, weight) == pytest.approx(levels_of(SHARP, weight.knots) @ share)
    assert ff.fauc(FAIR, weight) > ff.fauc(SHARP, weight)


def test_no_preference_is_the_uniform_weight():
    weight = elicit_weight([(FAIR, SHARP), (SHARP, FAIR)])
    assert abs(ff.fauc(FAIR, weight) - ff.fauc(SHARP, weight)) < abs(ff.fauc(FAIR) - ff.fauc(SHARP)) + 1e-9


def test_people_have_one_voice_each():
    answers = {"Ada": [(FAIR, SHARP)] * 5, "Bob": [Choice(SHARP, FAIR)]}
    result = fit_answers(answers)
    mean = (result.people["Ada"].values + result.people["Bob"].values) / 2
    np.testing.assert_allclose(result.weight.values, mean)
    assert result.people["Ada"](0.9) > result.people["Bob"](0.9)
    assert result.consistent == {"Ada": True, "Bob": True}


def test_contradictions_are_named():
    better = ff.taf_curve([1.0], [0.9])
    result = fit_answers({"Eve": [(FAIR, SHARP), (FAIR, better), (FAIR, SHARP)]})
    assert result.contradictions == {"Eve": (1,)}
    assert result.consistency["Eve"] == pytest.approx(2 / 3)
    assert result.consistent == {"Eve": False}


def test_a_requirement_moves_weight_to_its_level():
    weight = elicit_weight([Requirement(0.95, 0.9)])
    meets, fails = ff.taf_curve([0.95, 1.0], [0.9, 0.5]), ff.taf_curve([0.90, 1.0], [1.0, 0.5])
    assert ff.fauc(meets, weight) > ff.fauc(fails, weight)
    assert ff.fauc(meets) < ff.fauc(fails)


def test_questions_do_not_repeat_and_end():
    questionnaire = Questionnaire({"fair": FAIR, "sharp": SHARP, "both": ff.taf_curve([0.7, 1.0], [0.9, 0.7])})
    seen = set()
    while (question := questionnaire.next_question("Ada")) is not None:
        assert question.names not in seen
        seen.add(question.names)
        questionnaire.answer(question, prefers_first=True, person="Ada")
    assert len(seen) == 3
    assert questionnaire.next_question("Bob") is not None
    questionnaire.require(0.9, 0.8, person="Bob")
    assert set(questionnaire.fit().people) == {"Ada", "Bob"}


def test_errors_say_what_to_do():
    with pytest.raises(InvalidInputError, match="at least one answer"):
        elicit_weight([])
    with pytest.raises(InvalidInputError, match="at least one answer of each person"):
        elicit_weight({"Ada": []})
    with pytest.raises(InvalidInputError, match="pairs \\(preferred TAFCurve, rejected TAFCurve\\)"):
        elicit_weight([(0.9, 0.8)])
    with pytest.raises(InvalidInputError, match="smoothness must be in"):
        elicit_weight([(FAIR, SHARP)], smoothness=0)
    with pytest.raises(InvalidInputError, match="ascending levels"):
        elicit_weight([(FAIR, SHARP)], grid=[0.5, 0.2])
    with pytest.raises(InvalidInputError, match="above the floor"):
        Requirement(0.9, 0.4)
    with pytest.raises(InvalidInputError, match="at least two curves"):
        Questionnaire({"fair": FAIR})


@pytest.mark.parametrize("seed", range(12))
def test_fit_meets_its_optimality_conditions_whatever_the_answers(seed):
    generator = np.random.default_rng(seed)
    levels = np.array([levels_of(curve, KNOTS) for curve in simple_curves(40, random_state=seed).values()])
    first, second = generator.integers(0, 40, (2, 20 * (seed + 1)))
    d = levels[first] - levels[second]
    d *= np.sign(d @ np.arange(20))[:, None]
    d[:3] *= -1  # mistakes
    smoothness = [1.0, 1e-3, 100.0][seed % 3]
    q = fit_masses(d, smoothness).masses / _SCALE
    gradient = _RIDGE * (q - 1 / 20)
    for i in range(19):
        gradient[i] -= smoothness * _ROUGHNESS * (q[i + 1] - q[i])
        gradient[i + 1] += smoothness * _ROUGHNESS * (q[i + 1] - q[i])
    for row in _SCALE * d:
        gradient -= row / (1 + np.exp(row @ q))
    assert (q >= 0).all()
    np.testing.assert_allclose(gradient[q > 0], 0.0, atol=1e-8)
    assert (gradient[q == 0] > -1e-8).all()


def test_the_next_question_is_the_one_that_an_answer_says_most_about():
    questionnaire = Questionnaire(simple_curves(12, random_state=5), random_state=0)
    for _ in range(4):
        question = questionnaire.next_question()
        questionnaire.answer(question, prefers_first=question.first(0.9) > question.second(0.9))
    fit = fit_masses(differences(questionnaire.answers["everybody"], KNOTS), 1.0)
    covariance = np.linalg.inv(fit.hessian)
    one = np.ones((20, 1))
    covariance = covariance - covariance @ one @ one.T @ covariance / (one.T @ covariance @ one)
    asked = {frozenset(map(id, (c.preferred, c.rejected))) for c in questionnaire.answers["everybody"]}
    gains = {}
    for i, (name, a) in enumerate(questionnaire.curves.items()):
        for other, b in list(questionnaire.curves.items())[i + 1 :]:
            if frozenset(map(id, (a, b))) not in asked:
                x = levels_of(a, KNOTS) - levels_of(b, KNOTS)
                spread = x @ covariance @ x
                chance = 1 / (1 + np.exp(-(x @ fit.masses) / np.sqrt(1 + np.pi * spread / 8)))
                gains[name, other] = chance * (1 - chance) * spread
    assert questionnaire.next_question().names == max(gains, key=gains.get)
