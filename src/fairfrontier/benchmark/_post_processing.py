"""Methods that post-process one score: OxonFair, Fairlearn's ThresholdOptimizer, and the plug-in rules of ours.

Each adapter of another library is fitted on the ensemble rows at given tolerances of the bias, and returns a function
from scores and groups to decisions (n, p), one column per tolerance.
"""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.benchmark._delivered import LEVELS
from fairfrontier.benchmark._families import ATTRIBUTE, GROUPS
from fairfrontier.benchmark._stacks import stacked_scores
from fairfrontier.benchmark._task_data import Evaluated, Method, TaskData, evaluate_both
from fairfrontier.learners._plug_in import direction_of, plug_in_rule, true_contrast

Decide = Callable[[FloatArray, NDArray[Any]], FloatArray]
_LARGEST_TOLERANCE = 0.2  # above, the weight of the FAUC is 0
_CERTAIN = 2.0 / 3.0  # OxonFair's default


@dataclass(frozen=True, eq=False)
class RivalRows:
    """The rows that a method of another library is fitted on."""

    # score, label, group (n,): scores of the classifier, labels 0 and 1, and the sensitive attribute
    score: FloatArray
    label: IntArray
    group: NDArray[Any]
    # (n,): what will be known of the attribute at prediction: itself, or the probability of its second value
    seen: NDArray[Any]


class _ScoreAsFeature(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only feature is its own score."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> "_ScoreAsFeature":
        """Return the classifier as it is: there is nothing to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the scores (n, 2) of both classes."""
        score = np.asarray(X, dtype=np.float64)[:, 0]
        return np.column_stack([1.0 - score, score])


def threshold_optimizer(rows: RivalRows, fairness: str, tolerances: FloatArray, inferred: bool = False) -> Decide:
    """Fit Fairlearn's ThresholdOptimizer at a grid of tolerances (p,).

    Returns a function from scores and groups (n,) to *probabilities* (n, p) of decision 1: the method randomises. It
    needs the attribute itself, never an inferred one.
    """
    post = require("fairlearn.postprocessing", extra="learners", purpose="ThresholdOptimizer")
    constraint = "true_positive_rate_parity" if fairness == "equal_opportunity" else fairness
    fitted = []
    for tolerance in tolerances:
        model = post.ThresholdOptimizer(
            estimator=_ScoreAsFeature(),
            constraints=constraint,
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
            tol=float(tolerance) or None,
        )
        fitted.append(model.fit(rows.score[:, None], rows.label, sensitive_features=rows.group))

    def decide(score: FloatArray, group: NDArray[Any]) -> FloatArray:
        columns = [model._pmf_predict(score[:, None], sensitive_features=group)[:, 1] for model in fitted]
        return np.column_stack(columns)

    return decide


def oxonfair(rows: RivalRows, fairness: str, tolerances: FloatArray, inferred: bool = False) -> Decide:
    """Fit OxonFair's thresholds at a grid of tolerances (p,).

    Returns a function from scores and groups (n,), or with `inferred` the probabilities of groups, to decisions (n, p).
    """
    package = require("oxonfair", extra="benchmark", purpose="The OxonFair row of the benchmark")
    metrics = package.group_metrics
    constraint = metrics.equal_opportunity if fairness == "equal_opportunity" else metrics.demographic_parity
    data = {"data": _columns(rows.score, rows.seen, inferred), "target": rows.label, "groups": rows.group}
    options = {"inferred_groups": _groups_of, "threshold": _certainty(rows.seen)} if inferred else {}
    model = package.FairPredictor(_scores_of, data, **options)
    offsets = []
    # OxonFair prints a line wherever no threshold meets a tolerance and it takes the nearest.
    with contextlib.redirect_stdout(io.StringIO()):
        for j, tolerance in enumerate(tolerances):
            model.fit(metrics.accuracy, constraint, float(tolerance), recompute=j == 0)
            offsets.append(np.array(model.offset))

    def decide(score: FloatArray, group: NDArray[Any]) -> FloatArray:
        new = {"data": _columns(score, group, inferred), "groups": group, "target": np.zeros(len(score), dtype=int)}
        columns = []
        for offset in offsets:
            model.offset = offset
            columns.append(np.asarray(model.predict(new), dtype=np.float64))
        return np.column_stack(columns)

    return decide


def _certainty(probability: FloatArray) -> float:
    """Return OxonFair's threshold of certainty about a group.

    Its default makes three groups: the two, and the uncertain. Where one of them is empty OxonFair stops with an error,
    and 0 makes two groups: each row belongs to its more probable one.
    """
    certain = np.maximum(probability, 1.0 - probability) >= _CERTAIN
    three = [~certain, certain & (probability > 0.5), certain & (probability <= 0.5)]
    return _CERTAIN if all(part.any() for part in three) else 0.0


def _columns(score: FloatArray, seen: NDArray[Any], inferred: bool) -> FloatArray:
    both = np.column_stack([1.0 - score, score])
    return np.column_stack([both, 1.0 - seen, seen]) if inferred else both


def _scores_of(data: FloatArray) -> FloatArray:
    return data[:, :2].copy()


def _groups_of(data: FloatArray) -> FloatArray:
    return data[:, 2:]


def score_to_process(method: Method, data: TaskData) -> tuple[dict[str, FloatArray], str]:
    """Return the scores (n,) that a method post-processes on the "ensemble" and "test" rows, and their name.

    They are those of our unconstrained kitchen sink, or of the most accurate single classifier.
    """
    if method.key.endswith("-sink"):
        found = stacked_scores(data)
        parts = {"ensemble": found.ensemble.astype(np.float64), "test": found.test.astype(np.float64)}
        # A ridge shrinks scores towards the base rate; plug-in rules take them for probabilities.
        scale = LogisticRegression(C=1e3).fit(parts["ensemble"], data.y("ensemble") > 0.5)
        return {part: scale.predict_proba(scores)[:, 1] for part, scores in parts.items()}, "sink"
    of_zoo = {part: data.matrix(("zoo",), part) for part in ("ensemble", "test")}
    best = int(np.argmax(((of_zoo["ensemble"] > 0.5) == (data.y("ensemble")[:, None] > 0.5)).mean(axis=0)))
    return {part: scores[:, best] for part, scores in of_zoo.items()}, data.names(("zoo",))[best]


def tolerances_of(data: TaskData) -> FloatArray:
    """Return the tolerances of the candidates, and after them those of the asked levels."""
    return np.concatenate([np.linspace(0.0, _LARGEST_TOLERANCE, data.split.settings.values), 1.0 - LEVELS])


def evaluate_asked(
    data: TaskData, ensemble: FloatArray, test: FloatArray, details: dict[str, Any], threshold: float | None
) -> Evaluated:
    """Evaluate decisions at `tolerances_of`: candidates first, then what was asked for in advance."""
    count = data.split.settings.values
    found = evaluate_both(data, ensemble[:, :count], test[:, :count], details, threshold)
    return replace(found, asked=data.points(test[:, count:], "test", threshold=threshold))


def run_peer(method: Method, data: TaskData) -> Evaluated:
    """Post-process one score with a method of another library."""
    score, name = score_to_process(method, data)
    inferred = method.key.startswith("oxonfair-inferred")
    randomises = method.key.startswith("threshold-optimizer")
    groups = [data.matrix((GROUPS,), part)[:, 0] if inferred else data.groups(part) for part in ("ensemble", "test")]
    fitted_on = RivalRows(score["ensemble"], data.y("ensemble").astype(int), data.groups("ensemble"), groups[0])
    rival = threshold_optimizer if randomises else oxonfair
    decide = rival(fitted_on, data.fairness, tolerances_of(data), inferred)
    decided = decide(score["ensemble"], groups[0]), decide(score["test"], groups[1])
    return evaluate_asked(data, *decided, {"classifier": name}, None if randomises else 0.5)


def run_plug_in(method: Method, data: TaskData) -> Evaluated:
    """Threshold one score minus a multiple of what models of the group say, as LinearPost or as FPIR."""
    score, name = score_to_process(method, data)
    members = _compared_rows(data)
    shares = (float(members[0].mean()), float(members[1].mean()))
    details = {"classifier": name}
    if method.aware:
        probabilities = {part: _known(data, score[part], part) for part in ("ensemble", "test")}
    else:
        column, details["group_model"] = _best_group_model(data, members)
        probabilities = {part: _modelled(data, column, part) for part in ("ensemble", "test")}
    directions = {part: direction_of(*both, shares) for part, both in probabilities.items()}
    gain = 2.0 * score["ensemble"] - 1.0
    own = directions["ensemble"] / len(gain)
    contrast = true_contrast(*members) if method.key.startswith("fpir") else own
    rules = [plug_in_rule(gain, directions["ensemble"], contrast, float(t)) for t in tolerances_of(data)]
    decided = [
        np.column_stack([rule.probability(2.0 * of_label - 1.0, directions[part]) for rule in rules])
        for part, of_label in score.items()
    ]
    return evaluate_asked(data, decided[0], decided[1], details, None)


def _compared_rows(data: TaskData) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which ensemble rows of each group the measure compares."""
    group, label = data.groups("ensemble"), data.y("ensemble") > 0.5
    compared = label if data.fairness == "equal_opportunity" else np.ones_like(label)
    first, second = (compared & (group == value) for value in np.unique(group))
    return first, second


def _known(data: TaskData, score: FloatArray, part: str) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of both groups (and y = 1) where the group is known."""
    of_label = score if data.fairness == "equal_opportunity" else 1.0
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
