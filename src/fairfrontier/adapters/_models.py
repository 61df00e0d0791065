"""Points and predictions of fitted models of several libraries, which are recognised by their types."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairfrontier.adapters import _libraries, _scikit
from fairfrontier.adapters._libraries import Columns, ModelQuery, is_a, package_of
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness

Reader = Callable[[Any, ModelQuery], Columns]

# Package and class. Types are compared by name, so that no library is imported that the caller does not use.
_READERS: dict[tuple[str, str], Reader] = {
    ("fairlearn", "ExponentiatedGradient"): _libraries.read_exponentiated_gradient,
    ("fairlearn", "GridSearch"): _libraries.read_grid_search,
    ("fairlearn", "ThresholdOptimizer"): _libraries.read_threshold_optimizer,
    ("oxonfair", "FairPredictor"): _libraries.read_fair_predictor,
    ("sklearn", "BaseSearchCV"): _scikit.read_search,
    ("fairfrontier", "BaseFairStacks"): _scikit.read_stack,
    ("fairfrontier", "FairLearner"): _scikit.read_fair_learner,
}


def predictions(
    model: Any,
    X: Any,
    *,
    sensitive_features: Any = None,
    scores: bool = False,
    y: Any = None,
    train: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> Columns:
    """Predict with every model inside a fitted object of Fairlearn, OxonFair, scikit-learn or fairfrontier.

    Parameters
    ----------
    model : fitted object, or dict of them by name
        See the table below. The models of a dict are named ``name/model``, which puts each object in a family of its
        own (``name`` where there is one model only).
    X : array-like of shape (n, p)
        Features, as the model takes them.
    sensitive_features : array-like of shape (n,), dict or dataframe, optional
        The attributes that a model with a threshold for each group was fitted with.
    scores : bool
        False: decisions 0 and 1, or for a randomised model the exact probability of decision 1. Evaluate them with
        ``tradeoff_points(y, …, threshold=None)``. True: scores of the second class where a model has
        probabilities, which a stack can be made of.
    y : array-like of shape (n,), optional
        Labels; needed with ``train="cv"``.
    train : (X_train, y_train) or "cv", optional
        For a search, which keeps no fitted candidates. With rows, each candidate is fitted on them. With "cv", each is
        fitted on the search's own splits of X and y and predicts the rows held out; where a row is held out more than
        once its predictions are averaged. X and y are then the rows that the search was fitted on, and its splits must
        be repeatable (not shuffled, or with a `random_state`).
    fit_params : dict, optional
        Further arguments for `fit` of the candidates, one value per row that they are fitted on, such as
        ``sensitive_features``; ``groups`` goes to the splits.
    n_jobs : int, optional
        Processes for fitting candidates; None: the search's own.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        One column per model, in [0, 1].

    Notes
    -----
    ==============================  ==================================================================================
    object                          its models
    ==============================  ==================================================================================
    `ExponentiatedGradient`         ``mixture``, randomised, and each inner predictor
    `GridSearch` (Fairlearn)        each predictor of the grid
    `ThresholdOptimizer`            one, randomised; needs `sensitive_features`
    `FairPredictor` (OxonFair)      each point of its frontier; needs `sensitive_features` unless it infers them
    `GridSearchCV`, any search      each candidate; needs `train`
    `FairStacksClassifier`          each stack on its path
    families of `learners`          each model
    `Pipeline`                      those of its last step
    any other classifier            itself
    ==============================  ==================================================================================

    To compare other groups than those that choose the thresholds, predict with the one and evaluate with the other:
    ``tradeoff_points(y, predictions(model, X, sensitive_features=race), sensitive_features=sex, threshold=None)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.1, 10.0]}).fit(X, y)
    >>> list(predictions(search, X, y=y, train="cv"))
    ['C=0.1', 'C=10.0']
    >>> columns = predictions({"search": search, "alone": LogisticRegression().fit(X, y)}, X, train=(X, y))
    >>> list(columns), columns["alone"][[0, -1]]
    (['search/C=0.1', 'search/C=10.0', 'alone'], array([0., 1.]))
    """
    return _read(model, ModelQuery(X, y, sensitive_features, scores, train, dict(fit_params or {}), n_jobs))


def points(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    sensitive_mode: str = "separate",
    sample_weight: Any = None,
    include_constant: bool = True,
    train: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> TradeoffPoints:
    """Compute fairness and accuracy of every model inside a fitted object.

    Parameters
    ----------
    model, X, train, fit_params, n_jobs
        As in `predictions`, which has the table of what is read.
    y : array-like of shape (n,)
        Labels of two classes.
    sensitive_features, fairness, accuracy, sensitive_mode, sample_weight, include_constant
        As in `tradeoff_points`. Functions as `fairness` or `accuracy` see decisions and cannot evaluate randomised
        models. Decisions are evaluated, not scores, so ``accuracy="brier"`` is refused.

    Returns
    -------
    TradeoffPoints
        One point per model. A randomised model has its exact expected accuracy and bias, not those of one draw.

    Examples
    --------
    >>> import numpy as np
    >>> from fairlearn.postprocessing import ThresholdOptimizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 400)
    >>> X = rng.normal(size=(400, 2)) + (sex == "m")[:, None]
    >>> y = (X[:, 0] + rng.normal(size=400) > 0.5).astype(int)
    >>> model = LogisticRegression().fit(X, y)
    >>> fair = ThresholdOptimizer(estimator=model, prefit=True).fit(X, y, sensitive_features=sex)
    >>> found = points({"plain": model, "fair": fair}, X, y, sensitive_features=sex)
    >>> found.names
    ('plain', 'fair', 'constant')
    >>> found.fairness.round(2)
    array([0.67, 1.  , 1.  ])
    """
    options = {"sensitive_features": sensitive_features, "train": train, "fit_params": fit_params, "n_jobs": n_jobs}
    columns = predictions(model, X, y=y, **options)
    if isinstance(accuracy, str) and accuracy == "brier":
        raise InvalidInputError(
            "accuracy must be a measure of decisions, such as 'accuracy' or 'balanced_accuracy'; got 'brier': for "
            "scores use tradeoff_points(y, predictions(model, X, scores=True), accuracy='brier', ...)"
        )
    return tradeoff_points(
        y,
        columns,
        sensitive_features=sensitive_features,
        fairness=fairness,
        accuracy=accuracy,
        threshold=_threshold(columns, by_function=callable(fairness) or callable(accuracy)),
        sensitive_mode=sensitive_mode,
        sample_weight=sample_weight,
        include_constant=include_constant,
    )


def _threshold(columns: Columns, *, by_function: bool) -> float | None:
    """Return None if a model is randomised, so that probabilities are taken as they are, and 0.5 otherwise."""
    randomised = next((name for name, values in columns.items() if not np.isin(values, (0.0, 1.0)).all()), None)
    if randomised is not None and by_function:
        raise InvalidInputError(
            f"fairness and accuracy must be names of measures for the randomised model {randomised!r}; got a function, "
            "which sees decisions: use a named measure, or evaluate decisions drawn from the model"
        )
    return None if randomised is not None else 0.5


def _read(model: Any, query: ModelQuery) -> Columns:
    if isinstance(model, Mapping):
        return _read_all(model, query)
    reader = _reader(model)
    if reader is not None:
        return reader(model, query)
    if is_a(model, "sklearn", "Pipeline") and _reader(model[-1]) is not None:
        _scikit.check_fitted(model[-1])
        return _read(model[-1], replace(query, X=model[:-1].transform(query.X)))
    if hasattr(model, "predict_matrix") and hasattr(model, "names"):
        return _scikit.read_family(model, query)
    if hasattr(model, "fit") and hasattr(model, "predict"):
        return _scikit.read_classifier(model, query)
    hint = "; AIF360 datasets are read by read_aif360" if package_of(type(model)) == "aif360" else ""
    raise InvalidInputError(
        "model must be a fitted object of Fairlearn, OxonFair, scikit-learn or fairfrontier, or a dict of them by "
        f"name; got {type(model).__name__}{hint}"
    )


def _read_all(models: Mapping[Any, Any], query: ModelQuery) -> Columns:
    if not models:
        raise InvalidInputError("model must hold at least one fitted object; got an empty dict")
    columns: Columns = {}
    for name, model in models.items():
        found = _read(model, query)
        alone = len(found) == 1
        for inner, values in found.items():
            label = str(name) if alone else f"{name}/{inner}"
            if label in columns:
                raise InvalidInputError(f"model must have distinct names; got {label!r} twice: rename one of them")
            columns[label] = values
    return columns


def _reader(model: Any) -> Reader | None:
    found = (_READERS.get((package_of(kind), kind.__name__)) for kind in type(model).__mro__)
    return next(filter(None, found), None)
