"""The gap between a model and the possible, taken apart step by step."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, Predictions
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.limit._achievable import fair_program, learn
from fairfrontier.limit._posteriors import stratified_folds
from fairfrontier.limit._program import FairRule
from fairfrontier.limit._rule_values import Values, best_rule, rule_values, short
from fairfrontier.limit._task import LimitTask, checked_task
from fairfrontier.metrics._sums import checked_threshold
from fairfrontier.optimize import FairStacksClassifier

RUNGS = ("your model", "your frontier", "your stack", "achievable blind", "achievable aware", "unconstrained")
STEPS = ("choice", "models", "method", "blindness", "fairness", "data")
_WORDS = {
    "choice": "by the choice: another of your models, or a mixture of them",
    "models": "by using your models without stacking them",
    "method": "by your models and stack, compared with what the features allow",
    "blindness": "by not knowing the sensitive attribute",
    "fairness": "by the demand for fairness itself",
    "data": "by the data: nothing that the ensemble found in these features predicts it",
}


@dataclass(frozen=True, eq=False, repr=False)
class FrontierGap:
    """The way from a model to a perfect one, at one level of fairness.

    Attributes
    ----------
    min_fairness : float
        The level of fairness.
    rungs : tuple of str, length 6
        Your model, your frontier, your stack, achievable blind, achievable aware, unconstrained.
    accuracy, low, high : ndarray of shape (6,)
        The accuracy of each, with its interval.
    steps : tuple of str, length 6
        What accuracy is lost by: choice, models, method, blindness, fairness, data.
    loss, loss_low, loss_high : ndarray of shape (6,)
        The loss in each step, with its interval; the losses add up to 1 − the accuracy of your model.
    fairness : str
        The measure.
    confidence : float
        Coverage of each interval.
    """

    min_fairness: float
    rungs: tuple[str, ...]
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    steps: tuple[str, ...]
    loss: FloatArray
    loss_low: FloatArray
    loss_high: FloatArray
    fairness: str
    confidence: float

    def sentence(self) -> str:
        """Return the result in one sentence."""
        model, blind = self.accuracy[0], self.accuracy[3]
        return (
            f"At fairness {short(self.min_fairness, 2)} you have {short(model)}; {short(blind)} is attainable with "
            f"these features; knowing the attribute would add {short(self.loss[3])}."
        )

    def __str__(self) -> str:
        lines = [self.sentence(), f"Lost on the way to 1 ({self.confidence:.0%} intervals):"]
        for step, loss, low, high in zip(self.steps, self.loss, self.loss_low, self.loss_high, strict=True):
            lines.append(f"  {short(loss):>6}  [{short(low):>6}, {short(high):>6}]  {_WORDS[step]}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        parts = ", ".join(f"{step} {loss:.4f}" for step, loss in zip(self.steps, self.loss, strict=True))
        return f"FrontierGap(fairness {self.min_fairness:g}: accuracy {self.accuracy[0]:.4f}; lost by {parts})"


def frontier_gap(
    X: Any,
    y: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    model: str | None = None,
    min_fairness: float = 0.95,
    fairness: str = "demographic_parity",
    stack: Any = "auto",
    threshold: float = 0.5,
    confidence: float = 0.95,
    estimator: Any = None,
    cv: int = 5,
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> FrontierGap:
    """Take apart what separates a model from the possible, at one level of fairness.

    Parameters
    ----------
    X, y, sensitive_features
        As in `achievable_frontier`; X without the sensitive attribute.
    y_preds : dict, 2-D array-like of shape (n, k) or dataframe
        Scores of your models for these rows, which they must not have been fitted to.
    model : str, optional
        The model in use, one of `y_preds`; None: the one that is best at this level.
    min_fairness : float
        The level of fairness. A model that is less fair is mixed with the best constant decision until it is as fair.
    fairness : str
        As in `achievable_frontier`.
    stack : "auto", None, or scores of shape (n, m)
        Scores of stacks of your models, such as `FairStacksClassifier.predict_path` of rows that the stack was not
        fitted to. "auto": a FairStacks path, cross-fitted here on `y_preds`. None: no stack.
    threshold : float
        A score strictly above it is decision 1.
    confidence : float
        Coverage of each interval.
    estimator, cv, sensitive_mode, sample_weight, n_jobs, random_state
        As in `achievable_frontier`.

    Returns
    -------
    FrontierGap
        Printed, it is a sentence and a table.

    Notes
    -----
    All six accuracies are those of rules with |bias| ≤ 1 − `min_fairness` on the same rows, and each difference has the
    interval of its own influence function: what is common to two rules cancels. Frontiers are those of randomised
    mixtures, chosen on the rows that they are measured on, which flatters them where the models are many and the rows
    few; so a loss may be negative within its error. Intervals are for sampling; `achievable_frontier` says what else is
    uncertain.

    Examples
    --------
    >>> import numpy as np, fairfrontier as ff
    >>> rng = np.random.default_rng(0)
    >>> sex, x = rng.integers(0, 2, 600), rng.normal(size=(600, 2))
    >>> x[:, 0] += sex
    >>> y = rng.random(600) < 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> gap = ff.frontier_gap(x, y, {"mine": 0.5 + 0.1 * x[:, 0]}, sensitive_features=sex, cv=2)
    >>> bool(np.isclose(gap.loss.sum(), 1 - gap.accuracy[0]))
    True
    """
    level = validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
    confidence = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
    cut = checked_threshold(threshold)
    if cut is None:
        raise InvalidInputError("threshold must be a number in [0, 1]; got None: scores are compared with it")
    validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight, y_preds=y_preds)
    task = checked_task(y, sensitive_features, fairness, sensitive_mode, sample_weight)
    scores = _checked_scores(y_preds, y, task)
    generator = np.random.default_rng(random_state)
    own = (scores.matrix > cut).astype(np.float64)
    stacked = _stack_decisions(stack, scores, task, fairness, cut, cv, generator)
    options: dict[str, Any] = {"estimator": estimator, "cv": cv, "generator": generator, "n_jobs": n_jobs}
    blind, aware = (learn(X, task, track, halves=False, **options)[0] for track in ("blind", "aware"))
    possible = [*fair_program(task, blind).path([level]), *fair_program(task, aware).path([level, 0.0])]
    mine = [_chosen(task, own, scores.names, model, level), best_rule(task, own, level)]
    rules = [*mine, best_rule(task, np.hstack([own, stacked]), level), *possible]
    return _gap(rule_values(task, rules), level, fairness, confidence)


def _gap(values: Values, level: float, fairness: str, confidence: float) -> FrontierGap:
    """Return the losses between consecutive rungs, the last of them to a perfect rule."""
    z = float(ndtri(0.5 + confidence / 2.0))
    accuracy = values.estimate
    loss = np.diff(np.append(accuracy, 1.0))
    influence = np.diff(np.column_stack([values.influence, np.zeros(len(values.influence))]), axis=1)
    error = z * np.sqrt((values.influence**2).sum(axis=0))
    loss_error = z * np.sqrt((influence**2).sum(axis=0))
    return FrontierGap(
        level,
        RUNGS,
        accuracy,
        np.maximum(accuracy - error, 0.0),
        np.minimum(accuracy + error, 1.0),
        STEPS,
        loss,
        loss - loss_error,
        loss + loss_error,
        fairness,
        confidence,
    )


def _checked_scores(y_preds: Any, y: Any, task: LimitTask) -> Predictions:
    found = validate.predictions(y_preds, classes_of=validate.column(y, parameter="y"))
    validate.same_length(len(task), "y", y_preds=len(found.matrix))
    validate.finite(found.matrix, parameter="y_preds", names=found.names)
    return found


def _chosen(task: LimitTask, own: FloatArray, names: tuple[str, ...], model: str | None, level: float) -> FairRule:
    """Return the rule of the model in use, mixed with a constant decision where it is not fair enough."""
    if model is not None:
        return best_rule(task, own[:, [names.index(validate.one_of(model, names, parameter="model"))]], level)
    rules = [best_rule(task, own[:, [j]], level) for j in range(own.shape[1])]
    return rules[int(np.argmax(rule_values(task, rules).estimate))]


def _stack_decisions(
    stack: Any,
    scores: Predictions,
    task: LimitTask,
    fairness: str,
    threshold: float,
    cv: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the decisions of stacks, shape (n, m); m = 0 without any."""
    if stack is None:
        return np.zeros((len(task), 0))
    if not isinstance(stack, str):
        found = validate.predictions(stack)
        validate.same_length(len(task), "y", stack=len(found.matrix))
        validate.finite(found.matrix, parameter="stack", names=found.names)
        return (found.matrix > threshold).astype(np.float64)
    validate.one_of(stack, ("auto",), parameter="stack")
    fold = stratified_folds(task.cell, cv, generator)
    y, weight = task.y.astype(np.intp), task.weight * len(task) if task.weighted else None
    # Of a path any point may be taken: that of differences serves ratios too.
    measure, parts = "demographic_parity" if task.relative else fairness, []
    for number in np.unique(fold):
        train, test = fold != number, fold == number
        stack = FairStacksClassifier("precomputed", fairness=measure, threshold=threshold, random_state=0)
        stack.fit(
            scores.matrix[train],
            y[train],
            sensitive_features={a.name: a.codes[train] for a in task.attributes},
            sample_weight=None if weight is None else weight[train],
        )
        parts.append((test, stack.predict_path(scores.matrix[test])))
    decisions = np.zeros((len(task), parts[0][1].shape[1]))
    for test, of_test in parts:
        decisions[test] = of_test > threshold
    return decisions
