"""The rows of the tables: what each method is, where it applies, and how it is evaluated on one split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark import _peers as peers
from fairfrontier.benchmark._families import FAIR, GROUPS, SHARED, SplitData, family_key
from fairfrontier.benchmark._randomise import evenly_spaced_candidates
from fairfrontier.benchmark._tasks import Task, seed_of
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.metrics._contrasts import MEAN_DIFFERENCE
from fairfrontier.optimize import FairStacksClassifier, FairStacksRegressor
from fairfrontier.quantify._weights import StepWeight

FAUC_WEIGHT = StepWeight(0.8)
# Stacks on the path of our form, per candidate: candidates randomise between neighbours, which should be close.
STACKS_PER_CANDIDATE = 3
PAPER_ALPHAS = np.logspace(2.0, 7.0, 20)
MEASURES = {"dp": "demographic_parity", "eo": "equal_opportunity", "multi": "demographic_parity"}


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A method on one split.

    Attributes
    ----------
    points : TradeoffPoints
        Its candidates on the test rows, the constant model last.
    chosen : TradeoffPoints or None
        The same candidates on the ensemble rows, out of fold where the method was fitted to those. The biases of
        candidates that randomise are of their own decisions there (`RandomisedCandidates.points_when_choosing`).
    exp_mse : TradeoffPoints or None
        Regression: the test points with e to the −MSE as accuracy.
    details : dict
        Facts about the fit.
    without_randomising : TradeoffPoints or None
        For candidates that randomise: the test points of the more probable stack of each.
    """

    points: TradeoffPoints
    chosen: TradeoffPoints | None
    exp_mse: TradeoffPoints | None
    details: dict[str, Any]
    without_randomising: TradeoffPoints | None = None


@dataclass(frozen=True, eq=False)
class TaskData:
    """One task on one split: rows, labels, groups and base predictions for the methods."""

    task: Task
    table: str
    split: SplitData

    @property
    def fairness(self) -> str:
        """Return the fairness measure of the table; that of a regression is in the units of its target, from 0 to 1."""
        return MEAN_DIFFERENCE if self.task.regression else MEASURES[self.table]

    def y(self, part: str) -> FloatArray:
        """Return the target of "ensemble" or "test" rows."""
        return np.asarray(self.split.problem.y[getattr(self.split.rows, part)])

    def groups(self, part: str, attribute: str | None = None) -> NDArray[Any]:
        """Return an attribute, by default the task's, on "ensemble" or "test" rows."""
        values = self.split.problem.attributes[attribute or self.task.attribute]
        return np.asarray(values[getattr(self.split.rows, part)])

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

    def points(
        self, scores: FloatArray, part: str, *, threshold: float | None = 0.5, accuracy: str = ""
    ) -> TradeoffPoints:
        """Return the points of candidates with scores (n, p) on the "ensemble" or "test" rows."""
        return tradeoff_points(
            self.y(part),
            {f"candidate_{j:02d}": column for j, column in enumerate(scores.T)},
            sensitive_features={self.task.attribute: self.groups(part)},
            fairness=self.fairness,
            accuracy=accuracy or ("r2" if self.task.regression else "accuracy"),
            threshold=None if self.task.regression else threshold,
        )

    def _family(self, name: str) -> Any:
        return self.split.family(name, self.task.attribute, self.fairness)


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
        From the method and a TaskData to an Evaluated.
    families : tuple of str
        The base learners it needs; in a regression task without the fair learners, which only classify.
    paper_row : str or None
        The row of the paper that it is compared with.
    aware : bool
        Whether it is given the sensitive attribute at prediction.
    classifies_only : bool
        Whether it does not apply to regression.
    """

    key: str
    title: str
    run: Callable[["Method", TaskData], Evaluated]
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
    data: TaskData, ensemble: FloatArray, test: FloatArray, details: dict[str, Any], threshold: float | None = 0.5
) -> Evaluated:
    """Evaluate candidates whose scores on both parts are known."""
    exp_mse = data.points(test, "test", accuracy="exp_mse") if data.task.regression else None
    chosen = data.points(ensemble, "ensemble", threshold=threshold)
    return Evaluated(data.points(test, "test", threshold=threshold), chosen, exp_mse, details)


def run_forest(method: Method, data: TaskData) -> Evaluated:
    """Evaluate the forest itself: the average of its trees."""
    ensemble, test = (data.matrix(method.families, part).mean(axis=1)[:, None] for part in ("ensemble", "test"))
    return _both(data, ensemble, test, {})


def run_grid(method: Method, data: TaskData) -> Evaluated:
    """Evaluate a fair learner at every value of its parameter."""
    # Reductions give randomised classifiers: their expected decisions have exact expected accuracy and bias.
    threshold = None if method.families == ("reductions",) else 0.5
    ensemble, test = (data.matrix(method.families, part) for part in ("ensemble", "test"))
    return _both(data, ensemble, test, {}, threshold)


def _stack(data: TaskData, names: list[str], options: Mapping[str, Any]) -> Any:
    make = FairStacksRegressor if data.task.regression else FairStacksClassifier
    seed = seed_of(data.split.dataset, data.split.split, "folds")
    common: dict[str, Any] = {"fairness": data.fairness, "weight": FAUC_WEIGHT, "n_points": data.split.settings.values}
    return make(names, cv="precomputed", random_state=seed, **(common | dict(options)))


FORMS: dict[str, dict[str, Any]] = {
    "paper": {"path": "paper", "family_scales": None, "alphas": PAPER_ALPHAS},
    "ours": {"path": "signed", "family_scales": "cv"},
    "aware": {"path": "signed", "family_scales": "cv", "attribute_aware": True},
}


def run_fairstacks(method: Method, data: TaskData) -> Evaluated:
    """Stack the method's families on the ensemble rows, and evaluate the path on the test rows."""
    form = method.key.rpartition("-")[2]
    families = method.needs(data.task)
    randomises = form != "paper" and not data.task.regression
    options = FORMS[form] | ({"n_points": STACKS_PER_CANDIDATE * data.split.settings.values} if randomises else {})
    model = _stack(data, data.names(families), options)
    attribute = {data.task.attribute: data.groups("ensemble")}
    model.fit(data.matrix(families, "ensemble"), data.y("ensemble"), sensitive_features=attribute)
    paths = {}
    for part in ("ensemble", "test"):
        given = {data.task.attribute: data.groups(part)} if method.aware else None
        paths[part] = model.predict_path(data.matrix(families, part), sensitive_features=given)
    if randomises:
        return _randomised_path(data, model, paths)
    exp_mse = data.points(paths["test"], "test", accuracy="exp_mse") if data.task.regression else None
    return Evaluated(data.points(paths["test"], "test"), model.points_, exp_mse, _stack_details(model))


def _randomised_path(data: TaskData, model: Any, paths: dict[str, FloatArray]) -> Evaluated:
    """Evaluate candidates with evenly spaced biases on the ensemble rows, randomised between neighbours on the path."""
    decisions = {part: (scores > 0.5).astype(np.float64) for part, scores in paths.items()}
    bias = data.points(decisions["ensemble"], "ensemble").bias[:-1, 0]
    sizes = np.array(list(model.group_sizes_.values()), dtype=np.float64)
    margin = 2.0 * float(np.sqrt((0.25 / np.sort(sizes)[:2]).sum()))  # two standard errors of a difference of rates
    largest = 1.0 - FAUC_WEIGHT.minimum + margin
    candidates = evenly_spaced_candidates(bias, data.split.settings.values, largest=largest, margin=margin)
    decided, tested, alone = (
        data.points(kind.expected_decisions(decisions[part]), part, threshold=None)
        for kind, part in (
            (candidates, "ensemble"),
            (candidates, "test"),
            (candidates.without_randomising(), "test"),
        )
    )
    chosen = candidates.points_when_choosing(decided, model.points_)
    return Evaluated(tested, chosen, None, _stack_details(model), alone)


def _stack_details(model: Any) -> dict[str, Any]:
    tried = {name: round(value, 6) for name, value in model.cv_fauc_.items()}
    return {"alpha": float(model.alpha_), "cv_fauc": tried, "models": len(model.names_)}


def run_constrained(method: Method, data: TaskData) -> Evaluated:
    """Stack forest trees under constraints on given attributes, whichever attribute is then evaluated."""
    _, constraint, form = method.key.split("-")
    named = ("gender", "race") if constraint == "both" else (constraint,)
    model = _stack(data, data.names(method.families), FORMS[form])
    sensitive = {name: data.groups("ensemble", name) for name in named}
    model.fit(data.matrix(method.families, "ensemble"), data.y("ensemble"), sensitive_features=sensitive)
    points = data.points(model.predict_path(data.matrix(method.families, "test")), "test")
    # The stack's own out-of-fold points are about its own constraints, and cannot choose for another attribute.
    own = named == (data.task.attribute,)
    return Evaluated(points, model.points_ if own else None, None, _stack_details(model))


def run_peer(method: Method, data: TaskData) -> Evaluated:
    """Post-process the classifier of the zoo that is most accurate on the ensemble rows."""
    scores_of_zoo = data.matrix(("zoo",), "ensemble")
    y = data.y("ensemble")
    best = int(np.argmax(((scores_of_zoo > 0.5) == (y[:, None] > 0.5)).mean(axis=0)))
    ensemble, test = (data.matrix(("zoo",), part)[:, best] for part in ("ensemble", "test"))
    inferred = method.key == "oxonfair-inferred"
    groups = [data.matrix((GROUPS,), part)[:, 0] if inferred else data.groups(part) for part in ("ensemble", "test")]
    fitted_on = peers.RivalRows(ensemble, y.astype(int), data.groups("ensemble"), groups[0])
    rival = peers.threshold_optimizer if method.key == "threshold-optimizer" else peers.oxonfair
    decide = rival(fitted_on, data.fairness, data.split.settings.values, inferred)
    threshold = None if method.key == "threshold-optimizer" else 0.5
    details = {"classifier": data.names(("zoo",))[best]}
    return _both(data, decide(ensemble, groups[0]), decide(test, groups[1]), details, threshold)


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
        Method(f"{key}-{form}", f"{title} ({form})", run_fairstacks, families, title)
        for form in ("paper", "ours")
        for key, title, families in _STACKS
    ),
    Method("oxonfair", "OxonFair", run_peer, ("zoo",), aware=True, classifies_only=True),
    Method("threshold-optimizer", "ThresholdOptimizer", run_peer, ("zoo",), aware=True, classifies_only=True),
    Method(
        "sink-aware", "FS Kitchen Sink (ours, attribute-aware)", run_fairstacks, SINK, "FS Kitchen Sink", aware=True
    ),
)
_CONSTRAINED = (
    Method("none", "None", run_forest, ("forest",), "None"),
    *(
        Method(f"rf-{key}-{form}", f"{key.title()} ({form})", run_constrained, ("forest",), key.title())
        for form in ("paper", "ours")
        for key in ("gender", "race", "both")
    ),
)
METHODS: dict[str, dict[str, Method]] = {
    "dp": {method.key: method for method in _ROWS},
    "eo": {method.key: method for method in _ROWS},
    "multi": {method.key: method for method in _CONSTRAINED},
}
# The row of each table that the others are compared with.
CHAMPIONS = {"dp": "sink-ours", "eo": "sink-ours", "multi": "rf-both-ours"}
