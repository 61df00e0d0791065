"""The rows of the tables, and a user's own learner as one more row."""

import importlib
import inspect
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._families import ATTRIBUTE, GROUPS
from fairfrontier.benchmark._post_processing import run_peer, run_plug_in
from fairfrontier.benchmark._stacks import OUR_SINK, SINK, run_constrained, run_fairstacks
from fairfrontier.benchmark._task_data import Evaluated, Method, TaskData, evaluate_both
from fairfrontier.benchmark._tasks import seed_of
from fairfrontier.exceptions import InvalidInputError


def run_forest(method: Method, data: TaskData) -> Evaluated:
    """Evaluate the forest itself: the average of its trees."""
    ensemble, test = (data.matrix(method.families, part).mean(axis=1)[:, None] for part in ("ensemble", "test"))
    return evaluate_both(data, ensemble, test, {})


def run_grid(method: Method, data: TaskData) -> Evaluated:
    """Evaluate a fair learner at every value of its parameter."""
    # Reductions give randomised classifiers: their expected decisions have exact expected accuracy and bias.
    threshold = None if method.key.startswith("reductions") else 0.5
    ensemble, test = (data.matrix(method.families, part) for part in ("ensemble", "test"))
    return evaluate_both(data, ensemble, test, {}, threshold)


_STACKS = (
    ("mp", "FS MP Trees", ("minipatch",)),
    ("rf", "FS RF Trees", ("forest",)),
    ("zoo", "FS Classifiers", ("zoo",)),
    ("sink", "FS Kitchen Sink", SINK),
)
_LEARNERS = (
    ("adversarial", "Adversarial Debiasing", "Adversarial Debiasing"),
    ("fagtb", "FAGTB", "FAGTB"),
    ("reductions", "Reductions", "Reductions"),
    ("reductions_boosted", "Reductions, boosted trees", None),
    ("fcsc", "FCSC, boosted trees", None),
    ("kernel", "KDE-regularised network", None),
)
# Post-processing: key, title, families beside the score, whether it is given the attribute.
_POST = (
    ("oxonfair-inferred", "OxonFair, inferred attribute", (GROUPS,), False, run_peer),
    ("linear-post", "LinearPost", (ATTRIBUTE,), False, run_plug_in),
    ("fpir", "FPIR", (ATTRIBUTE,), False, run_plug_in),
    ("oxonfair", "OxonFair", (), True, run_peer),
    ("threshold-optimizer", "ThresholdOptimizer", (), True, run_peer),
    ("linear-post-aware", "LinearPost or FPIR, aware", (), True, run_plug_in),
)
# Methods that fit thresholds of groups with other libraries take any number of groups.
_ANY_GROUPS = ("oxonfair", "threshold-optimizer")
_ROWS = (
    Method("random-forest", "Random Forest", run_forest, ("forest",), "Random Forest"),
    *(
        Method(key, title, run_grid, (key,), row, classifies_only=True, two_groups=key == "fcsc")
        for key, title, row in _LEARNERS
    ),
    *(
        Method(
            key + end,
            title + of,
            run,
            (*base, *families),
            aware=aware,
            classifies_only=True,
            two_groups=key not in _ANY_GROUPS,
        )
        for end, of, base in (("", "", ("zoo",)), ("-sink", " on our sink", (*SINK, ATTRIBUTE)))
        for key, title, families, aware, run in _POST
    ),
    *(
        Method(
            f"{key}-{form}",
            f"{title} ({form})",
            run_fairstacks,
            families if form == "paper" else (*families, ATTRIBUTE),
            title,
        )
        for form in ("paper", "ours")
        for key, title, families in _STACKS
    ),
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
CHAMPIONS = {"dp": OUR_SINK, "eo": OUR_SINK, "multi": "rf-both-ours"}


def own_methods(learners: Sequence[Any]) -> dict[str, Method]:
    """Return a row for each learner, by its key, the name of its class.

    Parameters
    ----------
    learners : sequence of class or str
        The classes, or ``module:Class``; modules are also looked for in the current folder.

    Notes
    -----
    The class is made without arguments, or with `fairness` ("demographic_parity" or "equal_opportunity") and
    `random_state` where it has such parameters. It is fitted to the training rows, with ``sensitive_features``:

    - ``fit_grid(X, y, *, sensitive_features)`` returns an object whose ``predict_matrix(X)`` has one column of scores
      for each value of its parameter;
    - otherwise ``fit(X, y, sensitive_features=…)``, or ``fit(X, y)`` if it takes no such parameter, and
      ``predict_proba(X)``: one candidate.

    `randomized = True` on the class: scores are probabilities of decision 1, not thresholded. `aware = True`: at
    prediction ``sensitive_features`` is given as well.

    Examples
    --------
    >>> own_methods(["sklearn.linear_model:LogisticRegression"])["LogisticRegression"].aware
    False
    """
    made: dict[str, Method] = {}
    for given in learners:
        learner = _imported(given) if isinstance(given, str) else given
        if not inspect.isclass(learner) or not (hasattr(learner, "fit_grid") or hasattr(learner, "predict_proba")):
            raise InvalidInputError(
                f"method must be a class with fit and predict_proba, or with fit_grid; got {given!r}"
            )
        made[learner.__name__] = Method(
            learner.__name__,
            learner.__name__,
            partial(_run_own, learner),
            (),
            aware=bool(getattr(learner, "aware", False)),
            classifies_only=True,
        )
    return made


def _imported(text: str) -> Any:
    module_name, _, name = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"method must be module:Class, a class that can be imported; got {text!r} ({error})"
        ) from error


def _run_own(learner: Any, method: Method, data: TaskData) -> Evaluated:
    """Evaluate the candidates of a user's learner on one split."""
    accepted = inspect.signature(learner).parameters
    given = {"fairness": data.fairness, "random_state": seed_of(data.split.dataset, data.split.split, method.key)}
    model = learner(**{name: value for name, value in given.items() if name in accepted})
    X, y, group = data.X("train"), data.y("train").astype(int), data.groups("train")
    if hasattr(model, "fit_grid"):
        fitted = model.fit_grid(X, y, sensitive_features=group)
    else:
        known = {"sensitive_features": group} if _takes(model.fit, "sensitive_features") else {}
        fitted = model.fit(X, y, **known)

    def scores(part: str) -> FloatArray:
        known = {"sensitive_features": data.groups(part)} if method.aware else {}
        if hasattr(fitted, "predict_matrix"):
            return np.asarray(fitted.predict_matrix(data.X(part), **known), dtype=np.float64)
        return np.asarray(fitted.predict_proba(data.X(part), **known), dtype=np.float64)[:, 1:2]

    randomised = bool(getattr(fitted, "is_randomized", getattr(learner, "randomized", False)))
    return evaluate_both(data, scores("ensemble"), scores("test"), {}, None if randomised else 0.5)


def _takes(function: Any, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
