"""The rows of the tables: what each method is, where it applies, and how it is valued on one split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark import _peers as peers
from fairfrontier.benchmark._families import FAIR, GROUPS, SHARED, SplitData, family_key
from fairfrontier.benchmark._lottery import spread
from fairfrontier.benchmark._tasks import Task, seed_of
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.optimize import FairStacksClassifier, FairStacksRegressor
from fairfrontier.quantify._weights import StepWeight

WEIGHT = StepWeight(0.8)
# Stacks on the path of our form for each candidate: lots are drawn between neighbours, which should be close.
STACKS_A_CANDIDATE = 3
PAPER_ALPHAS = np.logspace(2.0, 7.0, 20)
MEASURES = {"dp": "demographic_parity", "eo": "equal_opportunity", "multi": "demographic_parity"}


@dataclass(frozen=True, eq=False)
class Valued:
    """A method on one split.

    Attributes
    ----------
    points : TradeoffPoints
        Its candidates on the test rows, the constant model last.
    chosen : TradeoffPoints or None
        The same candidates on the ensemble rows, out of fold where the method was fitted to those; candidates that draw
        lots have biases of their own decisions there (`Lottery.value`).
    exp_mse : TradeoffPoints or None
        Regression: the test points with e to the −MSE as accuracy.
    details : dict
        What is worth knowing about the fit.
    without_lots : TradeoffPoints or None
        Candidates that draw lots: the test points if they did not.
    """

    points: TradeoffPoints
    chosen: TradeoffPoints | None
    exp_mse: TradeoffPoints | None
    details: dict[str, Any]
    without_lots: TradeoffPoints | None = None


@dataclass(frozen=True, eq=False)
class Bench:
    """One task on one split: rows, labels, groups and base predictions for the methods."""

    task: Task
    table: str
    data: SplitData

    @property
    def fairness(self) -> str:
        """Return the fairness measure of the table."""
        return MEASURES[self.table]

    def y(self, part: str) -> FloatArray:
        """Return the target of "ensemble" or "test" rows."""
        return np.asarray(self.data.problem.y[getattr(self.data.rows, part)])

    def groups(self, part: str, attribute: str | None = None) -> NDArray[Any]:
        """Return an attribute, by default the task's, on "ensemble" or "test" rows."""
        values = self.data.problem.attributes[attribute or self.task.attribute]
        return np.asarray(values[getattr(self.data.rows, part)])

    def matrix(self, families: tuple[str, ...], part: str) -> FloatArray:
        """Return the predictions (n, k) of families side by side, float64."""
        parts = [getattr(self._family(name), part) for name in families]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def names(self, families: tuple[str, ...]) -> list[str]:
        """Return the names of the models of families."""
        return [name for family in families for name in self._family(family).names]

    def training(self, families: tuple[str, ...]) -> dict[str, float]:
        """Return the CPU seconds that each family took."""
        keys = {name: family_key(name, self.task.attribute, self.fairness) for name in families}
        return {key: round(self._family(name).seconds, 2) for name, key in keys.items()}

    def value(self, scores: FloatArray, part: str, *, threshold: float | None = 0.5, accuracy: str = "") -> Any:
        """Return the points of candidates with scores (n, p) on the "ensemble" or "test" rows."""
        names = {f"candidate_{j:02d}": column for j, column in enumerate(scores.T)}
        return tradeoff_points(
            self.y(part),
            names,
            sensitive_features={self.task.attribute: self.groups(part)},
            fairness=self.fairness,
            accuracy=accuracy or ("r2" if self.task.regression else "accuracy"),
            threshold=None if self.task.regression else threshold,
        )

    def _family(self, name: str) -> Any:
        return self.data.family(name, self.task.attribute, self.fairness)


@dataclass(frozen=True)
class Method:
    """One row of a table.

    Attributes
    ----------
    key : str
        Its name in records and options.
    title : str
        Its name in tables.
    run : callable
        From a Bench to a Valued.
    families : tuple of str
        The base learners it needs; in a regression task without the fair learners, which only classify.
    paper_row : str or None
        The row of the paper that it is held against.
    aware : bool
        Whether it is given the sensitive attribute at prediction.
    classifies_only : bool
        Whether it does not apply to regression.
    """

    key: str
    title: str
    run: Callable[["Method", Bench], Valued]
    families: tuple[str, ...]
    paper_row: str | None = None
    aware: bool = False
    classifies_only: bool = False

    def applies(self, task: Task) -> bool:
        """Tell whether the method can be used on a task."""
        return not (self.classifies_only and task.regression)

    def needs(self, task: Task) -> tuple[str, ...]:
        """Return the families that the method uses on a task."""
        return tuple(f for f in self.families if not (task.regression and f in FAIR))


def _both(
    bench: Bench, ensemble: FloatArray, test: FloatArray, details: dict[str, Any], threshold: float | None = 0.5
) -> Valued:
    """Value candidates whose scores on both parts are known."""
    exp_mse = bench.value(test, "test", accuracy="exp_mse") if bench.task.regression else None
    chosen = bench.value(ensemble, "ensemble", threshold=threshold)
    return Valued(bench.value(test, "test", threshold=threshold), chosen, exp_mse, details)


def run_forest(method: Method, bench: Bench) -> Valued:
    """Value the forest itself: the average of its trees."""
    ensemble, test = (bench.matrix(method.families, part).mean(axis=1)[:, None] for part in ("ensemble", "test"))
    return _both(bench, ensemble, test, {})


def run_grid(method: Method, bench: Bench) -> Valued:
    """Value a fair learner at every value of its parameter."""
    # Reductions give randomised classifiers: their expected decisions have exact expected accuracy and bias.
    threshold = None if method.families == ("reductions",) else 0.5
    ensemble, test = (bench.matrix(method.families, part) for part in ("ensemble", "test"))
    return _both(bench, ensemble, test, {}, threshold)


def _stack(bench: Bench, names: list[str], options: Mapping[str, Any]) -> Any:
    make = FairStacksRegressor if bench.task.regression else FairStacksClassifier
    seed = seed_of(bench.data.dataset, bench.data.split, "folds")
    common: dict[str, Any] = {"fairness": bench.fairness, "weight": WEIGHT, "n_points": bench.data.settings.values}
    return make(names, cv="precomputed", random_state=seed, **(common | dict(options)))


FORMS: dict[str, dict[str, Any]] = {
    "paper": {"path": "paper", "family_scales": None, "alphas": PAPER_ALPHAS},
    "ours": {"path": "signed", "family_scales": "cv"},
    "aware": {"path": "signed", "family_scales": "cv", "attribute_aware": True},
}


def run_stack(method: Method, bench: Bench) -> Valued:
    """Stack the method's families on the ensemble rows, and value the path on the test rows."""
    form = method.key.rpartition("-")[2]
    families = method.needs(bench.task)
    draws_lots = form != "paper" and not bench.task.regression
    options = FORMS[form] | ({"n_points": STACKS_A_CANDIDATE * bench.data.settings.values} if draws_lots else {})
    model = _stack(bench, bench.names(families), options)
    attribute = {bench.task.attribute: bench.groups("ensemble")}
    model.fit(bench.matrix(families, "ensemble"), bench.y("ensemble"), sensitive_features=attribute)
    paths = {}
    for part in ("ensemble", "test"):
        given = {bench.task.attribute: bench.groups(part)} if method.aware else None
        paths[part] = model.predict_path(bench.matrix(families, part), sensitive_features=given)
    if draws_lots:
        return _value_lottery(bench, model, paths)
    points = bench.value(paths["test"], "test")
    exp_mse = bench.value(paths["test"], "test", accuracy="exp_mse") if bench.task.regression else None
    return Valued(points, replace(model.points_, names=points.names), exp_mse, _stack_details(model))


def _value_lottery(bench: Bench, model: Any, paths: dict[str, FloatArray]) -> Valued:
    """Value candidates with evenly spaced biases on the ensemble rows, by lots between neighbours on the path."""
    decisions = {part: (scores > 0.5).astype(np.float64) for part, scores in paths.items()}
    bias = bench.value(decisions["ensemble"], "ensemble").bias[:-1, 0]
    sizes = np.array(list(model.group_sizes_.values()), dtype=np.float64)
    margin = 2.0 * float(np.sqrt((0.25 / np.sort(sizes)[:2]).sum()))  # two standard errors of a difference of rates
    lottery = spread(bias, bench.data.settings.values, largest=1.0 - WEIGHT.minimum + margin, margin=margin)
    points = bench.value(lottery.decide(decisions["test"]), "test", threshold=None)
    single = bench.value(lottery.without_lots().decide(decisions["test"]), "test", threshold=None)
    decided = bench.value(lottery.decide(decisions["ensemble"]), "ensemble", threshold=None)
    return Valued(points, lottery.value(decided, model.points_), None, _stack_details(model), single)


def _stack_details(model: Any) -> dict[str, Any]:
    tried = {name: round(value, 6) for name, value in model.cv_fauc_.items()}
    return {"alpha": float(model.alpha_), "cv_fauc": tried, "models": len(model.names_)}


def run_constrained(method: Method, bench: Bench) -> Valued:
    """Stack forest trees under constraints on given attributes, whichever attribute is then valued."""
    _, constraint, form = method.key.split("-")
    named = ("gender", "race") if constraint == "both" else (constraint,)
    model = _stack(bench, bench.names(method.families), FORMS[form])
    sensitive = {name: bench.groups("ensemble", name) for name in named}
    model.fit(bench.matrix(method.families, "ensemble"), bench.y("ensemble"), sensitive_features=sensitive)
    points = bench.value(model.predict_path(bench.matrix(method.families, "test")), "test")
    # The stack's own out-of-fold points are about its own constraints, and cannot choose for another attribute.
    own = named == (bench.task.attribute,)
    return Valued(points, replace(model.points_, names=points.names) if own else None, None, _stack_details(model))


def run_peer(method: Method, bench: Bench) -> Valued:
    """Post-process the classifier of the zoo that is most accurate on the ensemble rows."""
    scores = bench.matrix(("zoo",), "ensemble")
    y = bench.y("ensemble")
    best = int(np.argmax(((scores > 0.5) == (y[:, None] > 0.5)).mean(axis=0)))
    ensemble, test = (bench.matrix(("zoo",), part)[:, best] for part in ("ensemble", "test"))
    inferred = method.key == "oxonfair-inferred"
    groups = [bench.matrix((GROUPS,), part)[:, 0] if inferred else bench.groups(part) for part in ("ensemble", "test")]
    fitted_on = peers.Rows(ensemble, y.astype(int), bench.groups("ensemble"), groups[0])
    rival = peers.threshold_optimizer if method.key == "threshold-optimizer" else peers.oxonfair
    decide = rival(fitted_on, bench.fairness, bench.data.settings.values, inferred)
    threshold = None if method.key == "threshold-optimizer" else 0.5
    details = {"classifier": bench.names(("zoo",))[best]}
    return _both(bench, decide(ensemble, groups[0]), decide(test, groups[1]), details, threshold)


SINK = (*SHARED, *FAIR)
_STACKS = (
    ("mp", "FS MP Trees", ("minipatch",)),
    ("rf", "FS RF Trees", ("forest",)),
    ("zoo", "FS Classifiers", ("zoo",)),
    ("sink", "FS Kitchen Sink", SINK),
)
_ROWS = (
    Method("random-forest", "Random Forest", run_forest, ("forest",), "Random Forest"),
    *(
        Method(key, title, run_grid, (key,), title, classifies_only=True)
        for key, title in (
            ("adversarial", "Adversarial Debiasing"),
            ("fagtb", "FAGTB"),
            ("reductions", "Reductions"),
        )
    ),
    Method("oxonfair-inferred", "OxonFair, inferred attribute", run_peer, ("zoo", GROUPS), classifies_only=True),
    *(
        Method(f"{key}-{form}", f"{title} ({form})", run_stack, families, title)
        for form in ("paper", "ours")
        for key, title, families in _STACKS
    ),
    Method("oxonfair", "OxonFair", run_peer, ("zoo",), aware=True, classifies_only=True),
    Method("threshold-optimizer", "ThresholdOptimizer", run_peer, ("zoo",), aware=True, classifies_only=True),
    Method("sink-aware", "FS Kitchen Sink (ours, attribute-aware)", run_stack, SINK, "FS Kitchen Sink", aware=True),
)
_CONSTRAINED = (
    Method("none", "None", run_forest, ("forest",), "None"),
    *(
        Method(f"rf-{key}-{form}", f"{key.title()} ({form})", run_constrained, ("forest",), key.title())
        for form in ("paper", "ours")
        for key in ("gender", "race", "both")
    ),
)
ROWS: dict[str, dict[str, Method]] = {
    "dp": {method.key: method for method in _ROWS},
    "eo": {method.key: method for method in _ROWS},
    "multi": {method.key: method for method in _CONSTRAINED},
}
# The row of each table that the others are held against.
CHAMPIONS = {"dp": "sink-ours", "eo": "sink-ours", "multi": "rf-both-ours"}
