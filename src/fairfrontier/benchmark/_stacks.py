"""The rows of FairStacks: the published form, ours, and the score of ours without any constraint."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._families import ATTRIBUTE, FAIR, SHARED, FamilyPredictions, family_key
from fairfrontier.benchmark._task_data import FAUC_WEIGHT, Evaluated, Method, TaskData
from fairfrontier.benchmark._tasks import seed_of
from fairfrontier.identify._points import TradeoffPoints, points_from_rates
from fairfrontier.optimize import FairStacksClassifier, FairStacksRegressor


def evenly_spaced_candidates(bias: FloatArray, n_candidates: int, *, largest: float, margin: float) -> FloatArray:
    """Return candidates that randomise between neighbours on a path: the probability (c, p) of each stack in each.

    Their biases are evenly spaced along the path, whose stacks have signed biases (p,), the unconstrained first. From
    an absolute bias of `largest` on, the weight of the FAUC is 0. The candidates go beyond bias 0 by `margin`: the bias
    on other rows differs.

    Examples
    --------
    >>> bias = np.array([0.4, 0.2, -0.2, -0.5])
    >>> evenly_spaced_candidates(bias, 3, largest=0.2, margin=0.1).round(2)
    array([[0. , 1. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 1. , 0. ]])
    """
    towards_first = bias * (np.sign(bias[0]) or 1.0)
    fairest = int(np.argmin(np.abs(bias)))
    too_large = np.flatnonzero(towards_first[: fairest + 1] >= largest)
    beyond = np.flatnonzero(towards_first[fairest:] <= -margin)
    start = int(too_large[-1]) if len(too_large) else 0
    stop = fairest + int(beyond[0]) if len(beyond) else len(bias) - 1
    travelled = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(bias[start : stop + 1])))])
    probability = np.zeros((n_candidates, len(bias)))
    for row, at in zip(probability, np.linspace(0.0, travelled[-1], n_candidates), strict=True):
        # Of stacks with the same bias the first is the least constrained, and so the most accurate.
        after = int(np.searchsorted(travelled, at))
        if after == 0 or travelled[after] == at:
            row[start + after] = 1.0
        else:
            share = (at - travelled[after - 1]) / (travelled[after] - travelled[after - 1])
            row[start + after - 1 : start + after + 1] = 1.0 - share, share
    return probability


def points_when_choosing(
    probability: FloatArray, decided: TradeoffPoints, out_of_fold: TradeoffPoints
) -> TradeoffPoints:
    """Return the points of candidates on the rows that they were fitted to, the constant model last.

    Biases are those of their own expected decisions (`decided`): few numbers were fitted for them, and the stacks of
    other folds jump elsewhere. Accuracies are those of the path out of fold: the others would be too good.
    """
    accuracy = np.append(probability @ out_of_fold.accuracy[:-1], out_of_fold.accuracy[-1])
    return points_from_rates(decided.rates, decided.sets, accuracy, decided.names)


# Stacks on the path of our form, per candidate: candidates randomise between neighbours, which should be close.
STACKS_PER_CANDIDATE = 3
PAPER_ALPHAS = np.logspace(2.0, 7.0, 20)
FORMS: dict[str, dict[str, Any]] = {
    "paper": {"path": "paper", "family_scales": None, "alphas": PAPER_ALPHAS},
    "ours": {"path": "signed", "family_scales": "cv"},
    "aware": {"path": "signed", "family_scales": "cv", "attribute_aware": True},
}
SINK = (*SHARED, *FAIR)
OUR_SINK = "sink-ours"
STACKED = "stacked"
_FOLDS = 5


def _stack(data: TaskData, names: list[str], options: Mapping[str, Any]) -> Any:
    make = FairStacksRegressor if data.task.regression else FairStacksClassifier
    seed = seed_of(data.split.dataset, data.split.split, "folds")
    common: dict[str, Any] = {"fairness": data.fairness, "weight": FAUC_WEIGHT, "n_points": data.split.settings.values}
    return make(names, cv="precomputed", random_state=seed, **(common | dict(options)))


def run_fairstacks(method: Method, data: TaskData) -> Evaluated:
    """Stack the method's families on the ensemble rows, and evaluate the path on the test rows."""
    form = method.key.rpartition("-")[2]
    families = method.needs(data.task)
    model = _sink(data) if method.key == OUR_SINK else _fitted(families, data, form)
    paths = {}
    for part in ("ensemble", "test"):
        given = {data.task.attribute: data.groups(part)} if method.aware else None
        paths[part] = model.predict_path(data.matrix(families, part), sensitive_features=given)
    if _randomises(data, form):
        return _randomised_path(data, model, paths)
    exp_mse = data.points(paths["test"], "test", accuracy="exp_mse") if data.task.regression else None
    return Evaluated(data.points(paths["test"], "test"), model.points_, exp_mse, _stack_details(model))


def _randomises(data: TaskData, form: str) -> bool:
    return form != "paper" and not data.task.regression and data.n_groups == 2


def _fitted(families: tuple[str, ...], data: TaskData, form: str) -> Any:
    """Return the stack of families on the ensemble rows; candidates that randomise stand on a path of more stacks."""
    more = {"n_points": STACKS_PER_CANDIDATE * data.split.settings.values} if _randomises(data, form) else {}
    model = _stack(data, data.names(families), FORMS[form] | more)
    attribute = {data.task.attribute: data.groups("ensemble")}
    return model.fit(data.matrix(families, "ensemble"), data.y("ensemble"), sensitive_features=attribute)


def _sink(data: TaskData) -> Any:
    """Return our kitchen sink, which is a row and has the score of others: fitted once for a task, table and track."""
    families = tuple(f for f in (*SINK, ATTRIBUTE) if not (data.task.regression and f in FAIR))
    key = f"{data.task.name}-{data.fairness}-{data.track}"
    return data.split.stack(key, lambda: _fitted(families, data, "ours"))


def _randomised_path(data: TaskData, model: Any, paths: dict[str, FloatArray]) -> Evaluated:
    """Evaluate candidates with evenly spaced biases on the ensemble rows, randomised between neighbours on the path."""
    decisions = {part: (scores > 0.5).astype(np.float64) for part, scores in paths.items()}
    bias = data.points(decisions["ensemble"], "ensemble").bias[:-1, 0]
    sizes = np.array(list(model.group_sizes_.values()), dtype=np.float64)
    margin = 2.0 * float(np.sqrt((0.25 / np.sort(sizes)[:2]).sum()))  # two standard errors of a difference of rates
    largest = 1.0 - FAUC_WEIGHT.minimum + margin
    probability = evenly_spaced_candidates(bias, data.split.settings.values, largest=largest, margin=margin)
    # Of each candidate the more probable stack.
    single = np.eye(probability.shape[1])[np.argmax(probability, axis=1)]
    decided, tested, alone = (
        data.points(decisions[part] @ kind.T, part, threshold=None)
        for kind, part in ((probability, "ensemble"), (probability, "test"), (single, "test"))
    )
    chosen = points_when_choosing(probability, decided, model.points_)
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


def stacked_scores(data: TaskData) -> FamilyPredictions:
    """Return the score of our kitchen sink without a constraint, for methods that post-process one score.

    Its ridges are those of the tuned stack. On the ensemble rows, which it is fitted to, it is predicted out of fold.
    """
    families = (*SINK, ATTRIBUTE)
    key = f"{STACKED}-" + family_key(ATTRIBUTE, data.task.attribute, data.fairness, data.track)

    def make() -> FamilyPredictions:
        model = _sink(data)
        H, y = data.matrix(families, "ensemble"), data.y("ensemble")
        used = np.isfinite(model.scales_)
        penalty = model.alpha_ / 2.0 * model.scales_[used] ** 2
        fold = np.random.default_rng(seed_of(key, data.split.split)).permutation(len(y)) % _FOLDS
        inside = np.empty((len(y), 1), dtype=np.float32)
        for number in range(_FOLDS):
            out = fold == number
            inside[out, 0] = _ridge(H[~out][:, used], y[~out], penalty, H[out][:, used])
        outside = _ridge(H[:, used], y, penalty, data.matrix(families, "test")[:, used])
        return FamilyPredictions((f"{STACKED}/sink",), inside, outside[:, None].astype(np.float32), 0.0)

    return data.split.kept(key, make)


def _ridge(H: FloatArray, y: FloatArray, penalty: FloatArray, new: FloatArray) -> FloatArray:
    """Return the predictions for new rows of a ridge regression whose constant is not penalised."""
    mean, level = H.mean(axis=0), y.mean()
    centred = H - mean
    gram = centred.T @ centred
    gram[np.diag_indices_from(gram)] += penalty
    return np.asarray(level + (new - mean) @ np.linalg.solve(gram, centred.T @ (y - level)))
