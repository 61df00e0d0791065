"""The rows of plug-in rules: LinearPost and FPIR, blind and aware, on scores that all post-processing methods share."""

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._families import ATTRIBUTE
from fairfrontier.benchmark._peers import Score, evaluate_asked, score_to_process, tolerances_of
from fairfrontier.benchmark._task_data import Evaluated, Method, TaskData
from fairfrontier.learners._plug_in import direction_of, plug_in_rule, true_contrast


def run_plug_in(method: Method, data: TaskData) -> Evaluated:
    """Threshold one score minus a multiple of what models of the group say, as LinearPost or as FPIR."""
    score = score_to_process(method, data)
    members = _compared_rows(data)
    shares = (float(members[0].mean()), float(members[1].mean()))
    details = {"classifier": score.name}
    if method.aware:
        probabilities = {part: _known(data, score, part) for part in ("ensemble", "test")}
    else:
        column, details["group_model"] = _best_group_model(data, members)
        probabilities = {part: _modelled(data, column, part) for part in ("ensemble", "test")}
    directions = {part: direction_of(*both, shares) for part, both in probabilities.items()}
    gain = 2.0 * score.ensemble - 1.0
    own = directions["ensemble"] / len(gain)
    contrast = true_contrast(*members) if method.key.startswith("fpir") else own
    rules = [plug_in_rule(gain, directions["ensemble"], contrast, float(t)) for t in tolerances_of(data)]
    decided = [
        np.column_stack([rule.probability(2.0 * of_label - 1.0, directions[part]) for rule in rules])
        for part, of_label in (("ensemble", score.ensemble), ("test", score.test))
    ]
    return evaluate_asked(data, decided[0], decided[1], details, None)


def _compared_rows(data: TaskData) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which ensemble rows of each group the measure compares."""
    group, label = data.groups("ensemble"), data.y("ensemble") > 0.5
    compared = label if data.fairness == "equal_opportunity" else np.ones_like(label)
    first, second = (compared & (group == value) for value in np.unique(group))
    return first, second


def _known(data: TaskData, score: Score, part: str) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of both groups (and y = 1) where the group is known."""
    of_label = getattr(score, part) if data.fairness == "equal_opportunity" else 1.0
    group = data.groups(part)
    first, second = (np.asarray((group == value) * of_label, dtype=np.float64) for value in np.unique(group))
    return first, second


def _columns_of_models(data: TaskData) -> dict[str, list[int]]:
    """Return the columns of each model of the attribute, by the learner's name."""
    columns: dict[str, list[int]] = {}
    for j, name in enumerate(data.names((ATTRIBUTE,))):
        columns.setdefault(name.rpartition("/")[2], []).append(j)
    return columns


def _best_group_model(data: TaskData, members: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> tuple[list[int], str]:
    """Return the model of the attribute with the smallest squared error on the ensemble rows."""
    matrix = data.matrix((ATTRIBUTE,), "ensemble")
    truth = np.column_stack(members)
    errors = {
        learner: float(((matrix[:, columns] - truth[:, 2 - len(columns) :]) ** 2).mean())
        for learner, columns in _columns_of_models(data).items()
    }
    best = min(errors, key=lambda learner: errors[learner])
    return _columns_of_models(data)[best], best


def _modelled(data: TaskData, columns: list[int], part: str) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of both groups (and y = 1) from a model of the attribute."""
    found = data.matrix((ATTRIBUTE,), part)[:, columns]
    return (1.0 - found[:, 0], found[:, 0]) if len(columns) == 1 else (found[:, 0], found[:, 1])
