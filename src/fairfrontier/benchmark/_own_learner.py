"""Bring your own learner: any class with `fit` and `predict_proba`, or with `fit_grid`, as a row of the tables."""

import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._task_data import Evaluated, Method, TaskData, evaluate_both
from fairfrontier.benchmark._tasks import seed_of
from fairfrontier.exceptions import InvalidInputError


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
        learner = _checked(_imported(given) if isinstance(given, str) else given, given)
        made[learner.__name__] = Method(
            learner.__name__,
            learner.__name__,
            _Run(learner),
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


def _checked(learner: Any, given: Any) -> Any:
    if not inspect.isclass(learner) or not (hasattr(learner, "fit_grid") or hasattr(learner, "predict_proba")):
        raise InvalidInputError(f"method must be a class with fit and predict_proba, or with fit_grid; got {given!r}")
    return learner


class _Run:
    """From a learner to its candidates on one split."""

    def __init__(self, learner: Any) -> None:
        self._learner = learner

    def __call__(self, method: Method, data: TaskData) -> Evaluated:
        accepted = inspect.signature(self._learner).parameters
        given = {"fairness": data.fairness, "random_state": seed_of(data.split.dataset, data.split.split, method.key)}
        model = self._learner(**{name: value for name, value in given.items() if name in accepted})
        X, y, group = data.X("train"), data.y("train").astype(int), data.groups("train")
        if hasattr(model, "fit_grid"):
            fitted = model.fit_grid(X, y, sensitive_features=group)
        else:
            known = {"sensitive_features": group} if _takes(model.fit, "sensitive_features") else {}
            fitted = model.fit(X, y, **known)
        ensemble, test = (self._scores(fitted, method, data, part) for part in ("ensemble", "test"))
        randomised = bool(getattr(fitted, "is_randomized", getattr(self._learner, "randomized", False)))
        return evaluate_both(data, ensemble, test, {}, None if randomised else 0.5)

    def _scores(self, fitted: Any, method: Method, data: TaskData, part: str) -> FloatArray:
        known = {"sensitive_features": data.groups(part)} if method.aware else {}
        if hasattr(fitted, "predict_matrix"):
            return np.asarray(fitted.predict_matrix(data.X(part), **known), dtype=np.float64)
        return np.asarray(fitted.predict_proba(data.X(part), **known), dtype=np.float64)[:, 1:2]


def _takes(function: Any, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
