"""The zoo: a broad list of classifiers and regressors, any such list as one family, and all families together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import ElasticNetCV, HuberRegressor, LogisticRegression, RidgeCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from fairfrontier._extras import require
from fairfrontier._forests import is_forest
from fairfrontier._scores import classes_of, positive_scores
from fairfrontier._validation import column
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._family import FamilyUnion, Matrix, ModelFamily, repeated, seed_sequence, track
from fairfrontier.learners._group_models import fit_group_models
from fairfrontier.learners._trees import MinipatchTrees, MinipatchTreesRegressor

# SciPy's tree of the rows of a fitted model, which finds the same neighbours in a third of the time.
_TREES: WeakKeyDictionary[Any, tuple[Any, KDTree]] = WeakKeyDictionary()


class _Neighbors:
    """Neighbours of a row: at most as many as there are rows, and the same ones at any number of threads."""

    n_neighbors: int
    n_samples_fit_: int
    effective_metric_: str
    _fit_method: str
    _fit_X: Any

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return distances and indices of the nearest rows."""
        wanted = min(self.n_neighbors if n_neighbors is None else n_neighbors, self.n_samples_fit_)
        if X is not None and return_distance and (self._fit_method, self.effective_metric_) == ("kd_tree", "euclidean"):
            found = self._tree_of_rows().query(validate_data(self, X, reset=False, order="C"), np.arange(1, wanted + 1))
            return np.asarray(found[0]), np.asarray(found[1])
        # With several threads, which of two rows at the same distance is taken would depend on their timing.
        with threadpool_limits(limits=1):
            nearest: Any = super()
            return nearest.kneighbors(X, wanted, return_distance)

    def _tree_of_rows(self) -> KDTree:
        rows, tree = _TREES.get(self, (None, None))
        if tree is None or rows is not self._fit_X:
            tree = KDTree(self._fit_X, leafsize=32, balanced_tree=False)
            _TREES[self] = self._fit_X, tree
        return tree


class NeighborsClassifier(_Neighbors, KNeighborsClassifier):
    """Nearest neighbours that also work on few rows."""


class NeighborsRegressor(_Neighbors, KNeighborsRegressor):
    """Nearest neighbours that also work on few rows."""


class Components(TransformerMixin, BaseEstimator):
    """The first principal components: neighbours are found quickly where there are few dimensions.

    Parameters
    ----------
    n_components : int, default=5
        The number of components; all of them where there are fewer features.
    """

    def __init__(self, n_components: int = 5) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions of the largest variance."""
        rows = validate_data(self, X, dtype=np.float64)
        self.mean_ = rows.mean(axis=0)
        _, axes = np.linalg.eigh((rows - self.mean_).T @ (rows - self.mean_))
        self.axes_ = axes[:, ::-1][:, : self.n_components]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the components (n, q)."""
        check_is_fitted(self)
        return np.asarray((validate_data(self, X, dtype=np.float64, reset=False) - self.mean_) @ self.axes_)


class AnyTwoLabels(ClassifierMixin, BaseEstimator):
    """A classifier that only knows 0 and 1, for any two labels.

    Parameters
    ----------
    model : classifier
        For instance XGBoost's.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.model).input_tags
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to 0 and 1, which stand for the labels in sorted order."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.model_ = clone(self.model).fit(X, codes, sample_weight=sample_weight)
        return self

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of X."""
        check_is_fitted(self)
        return int(self.model_.n_features_in_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class probabilities (n, 2)."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable label (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


Estimators = Sequence[tuple[str, Any]]


def _seeds(random_state: Any, count: int) -> list[int]:
    return [int(s) for s in seed_sequence(random_state).generate_state(count) >> 1]


def _scaled(model: Any, *before: Any) -> Any:
    return make_pipeline(StandardScaler(), *before, model)


def classifier_zoo(*, random_state: Any = 0, xgboost: bool = True) -> list[tuple[str, Any]]:
    """Return twelve unfitted classifiers of different kinds, from scikit-learn and XGBoost.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=0
        Seed of the models that use random numbers.
    xgboost : bool, default=True
        Include XGBoost (extra `learners`); False leaves eleven from scikit-learn.

    Returns
    -------
    list of (str, estimator)
        As `StackingClassifier` takes them; names are ``classifiers/…``. Models that need features of
        one scale standardise them. Each uses one thread; `fit_models` fits several at once.

    Examples
    --------
    >>> len(classifier_zoo(xgboost=False))
    11
    """
    s = _seeds(random_state, 8)
    zoo = {
        "logistic": _scaled(LogisticRegression(max_iter=1000)),
        "lda": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "naive_bayes": _scaled(BernoulliNB()),
        "neighbors": _scaled(
            NeighborsClassifier(n_neighbors=40, weights="distance", algorithm="kd_tree"), Components()
        ),
        "kernel_logistic": _scaled(
            LogisticRegression(C=1.0, max_iter=1000),
            Nystroem(gamma=0.01, n_components=200, random_state=s[0]),
        ),
        "neural_net": _scaled(
            MLPClassifier(
                hidden_layer_sizes=(32,),
                alpha=1e-3,
                learning_rate_init=0.005,
                early_stopping=True,
                max_iter=500,
                random_state=s[1],
            )
        ),
        "tree": DecisionTreeClassifier(min_samples_leaf=20, ccp_alpha=1e-4, random_state=s[2]),
        "random_forest": RandomForestClassifier(200, min_samples_leaf=3, random_state=s[3]),
        "extra_trees": ExtraTreesClassifier(200, min_samples_leaf=3, max_features=0.3, random_state=s[4]),
        "adaboost": AdaBoostClassifier(n_estimators=100, random_state=s[5]),
        "hist_boosting": HistGradientBoostingClassifier(
            learning_rate=0.08, max_leaf_nodes=15, max_iter=200, early_stopping=False, random_state=s[6]
        ),
    }
    if xgboost:
        purpose = "The XGBoost member of classifier_zoo (xgboost=False leaves it out)"
        xgb = require("xgboost", extra="learners", purpose=purpose)
        zoo["xgboost"] = AnyTwoLabels(
            xgb.XGBClassifier(
                n_estimators=300,
                max_depth=4,
                learning_rate=0.08,
                subsample=0.8,
                colsample_bytree=0.5,
                n_jobs=1,
                random_state=s[7],
            )
        )
    return [(f"classifiers/{name}", model) for name, model in zoo.items()]


def regressor_zoo(*, random_state: Any = 0, xgboost: bool = True) -> list[tuple[str, Any]]:
    """Return twelve unfitted regressors of different kinds, from scikit-learn and XGBoost.

    The twin of `classifier_zoo`, with the same parameters; names are ``regressors/…``.

    Examples
    --------
    >>> regressor_zoo(xgboost=False)[0][0]
    'regressors/ridge'
    """
    s = _seeds(random_state, 8)
    zoo = {
        "ridge": _scaled(RidgeCV(alphas=np.logspace(-2, 4, 13))),
        "elastic_net": _scaled(ElasticNetCV(l1_ratio=0.9, eps=1e-2, cv=5, max_iter=5000)),
        "huber": _scaled(HuberRegressor(alpha=1.0, max_iter=1000)),
        "neighbors": _scaled(NeighborsRegressor(n_neighbors=20, weights="distance", algorithm="brute")),
        "kernel_ridge": _scaled(
            RidgeCV(alphas=np.logspace(-3, 3, 13)), Nystroem(gamma=0.003, n_components=200, random_state=s[0])
        ),
        "neural_net": _scaled(
            MLPRegressor(
                hidden_layer_sizes=(32,),
                alpha=1e-2,
                learning_rate_init=0.005,
                early_stopping=True,
                max_iter=500,
                random_state=s[1],
            )
        ),
        "tree": DecisionTreeRegressor(min_samples_leaf=20, random_state=s[2]),
        "random_forest": RandomForestRegressor(200, min_samples_leaf=3, max_features=0.33, random_state=s[3]),
        "extra_trees": ExtraTreesRegressor(200, min_samples_leaf=3, max_features=0.33, random_state=s[4]),
        "adaboost": AdaBoostRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=100, random_state=s[5]),
        "hist_boosting": HistGradientBoostingRegressor(
            learning_rate=0.05, max_leaf_nodes=15, max_iter=150, early_stopping=False, random_state=s[6]
        ),
    }
    if xgboost:
        purpose = "The XGBoost member of regressor_zoo (xgboost=False leaves it out)"
        xgb = require("xgboost", extra="learners", purpose=purpose)
        zoo["xgboost"] = xgb.XGBRegressor(
            n_estimators=300,
            max_depth=3,
            learning_rate=0.05,
            subsample=0.8,
            colsample_bytree=0.5,
            n_jobs=1,
            random_state=s[7],
        )
    return [(f"regressors/{name}", model) for name, model in zoo.items()]


@dataclass(frozen=True)
class FittedModels:
    """Fitted estimators as one family; made by `fit_models`.

    Parameters
    ----------
    estimators : list of (str, fitted estimator)
        Names ``family/name`` and models.
    """

    estimators: list[tuple[str, Any]] = field(repr=False)
    is_randomized: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the models' names."""
        return tuple(name for name, _ in self.estimators)

    def predict_matrix(self, X: Any) -> Matrix:
        """Return the score of class 1, or the predicted value, of every model: (n, k), float64."""
        with threadpool_limits(limits=1, user_api="blas"):
            columns = [
                positive_scores(model, X, classes=classes_of(model) if is_classifier(model) else None, name=name)
                for name, model in self.estimators
            ]
        return np.asfortranarray(np.column_stack(columns))


def fit_models(estimators: Estimators, X: Any, y: Any, *, n_jobs: int | None = None) -> FittedModels:
    """Fit clones of named estimators on the same rows and return them as one family.

    Parameters
    ----------
    estimators : list of (str, estimator)
        For instance `classifier_zoo()`. Classifiers must have `predict_proba`; a model whose name has no
        ``/`` is put in the family ``models``.
    X : array-like or dataframe of shape (n, d)
        Training rows.
    y : array-like of shape (n,)
        Labels of two classes, or a numeric target.
    n_jobs : int, default=None
        Processes; the result is the same to the last bit with any number.

    Returns
    -------
    FittedModels
        The fitted models.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> family = fit_models([("logistic", LogisticRegression())], X, y)
    >>> family.names, family.predict_matrix(X).shape
    (('models/logistic',), (100, 1))
    """
    pairs = [(name if "/" in name else f"models/{name}", model) for name, model in estimators]
    if not pairs:
        raise InvalidInputError("estimators must hold at least one (name, estimator) pair; got none")
    twice = repeated([name for name, _ in pairs])
    if twice:
        raise InvalidInputError(f"estimators must have distinct names; got {twice[0]!r} twice: rename one of them")
    for name, model in pairs:
        if is_classifier(model) and not hasattr(model, "predict_proba"):
            raise InvalidInputError(
                f"estimators[{name!r}] must have predict_proba to give scores; {type(model).__name__} has "
                "none: wrap it in CalibratedClassifierCV"
            )
    _check_classes([name for name, model in pairs if is_classifier(model)], y)
    # The largest first would be quicker, but in the given order the progress bar is easier to understand.
    jobs = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_fit_one)(clone(m), X, y) for _, m in pairs)
    fitted = list(track(jobs, total=len(pairs), description="Fitting models"))
    return FittedModels([(name, model) for (name, _), model in zip(pairs, fitted, strict=True)])


def _check_classes(classifiers: list[str], y: Any) -> None:
    classes = np.unique(column(y, parameter="y")) if classifiers else np.empty(2)
    if len(classes) != 2:
        raise InvalidInputError(
            f"y must have two classes for the classifier {classifiers[0]!r}; got {len(classes)}: "
            + ("merge classes, or fit one model per class" if len(classes) > 2 else "fit on rows in which both occur")
        )


def _fit_one(model: Any, X: Any, y: Any) -> Any:
    # The order of a sum in BLAS depends on its number of threads, and with it the last bits of the model.
    with threadpool_limits(limits=1, user_api="blas"):
        return model.fit(X, y)


_FAMILY_NAMES = {MinipatchTrees: "minipatch", MinipatchTreesRegressor: "minipatch"}


def kitchen_sink(
    *families: Any,
    group_models: bool = False,
    X: Any = None,
    sensitive_features: Any = None,
    y: Any = None,
    fairness: str = "demographic_parity",
    sensitive_mode: str = "separate",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Any:
    """Return all given families as one: the paper's kitchen-sink collection.

    Parameters
    ----------
    *families : ModelFamily
        Fitted families: `MinipatchTrees`, `forest_trees(forest)`, `fit_models(classifier_zoo(), X, y)`, and
        the grids of the fair learners (`FAGTB().fit_grid(...)` and so on). Or unfitted ones, for a stack to fit:
        `MinipatchTrees`, forests, and lists of estimators such as `classifier_zoo()`.
    group_models : bool, default=False
        Add models of the sensitive attribute, families ``group/…``, fitted here to `X` and `sensitive_features`.
    X : array-like or dataframe of shape (n, d), optional
        The training rows of the other families, for the models of the attribute.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe, optional
        The attributes of those rows. Not needed at prediction.
    y, fairness, sensitive_mode, n_jobs, random_state
        As in `fit_group_models`: the labels of those rows, and the measure of the stack.

    Returns
    -------
    FamilyUnion
        Names ``family/name`` and one matrix of predictions (n, k), family after family, models of the attribute last.
        Of unfitted families a list of (name, estimator), as `FairStacksClassifier` takes it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fairfrontier.learners import MinipatchTrees, forest_trees
    >>> X, y = make_classification(random_state=0)
    >>> patches = MinipatchTrees(n_estimators=10, random_state=0).fit(X, y)
    >>> forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> sink = kitchen_sink(patches, forest_trees(forest))
    >>> sink.predict_matrix(X).shape, sink.names[-1]
    ((100, 15), 'forest/tree_4')
    >>> sex = X[:, 0] > 0
    >>> sink = kitchen_sink(patches, group_models=True, X=X[:, 1:], sensitive_features={"sex": sex})
    >>> sink.names[-2:]
    ('group/sex=True/logistic', 'group/sex=True/hist_boosting')
    """
    if families and not any(isinstance(family, ModelFamily) for family in families):
        if group_models or X is not None:
            raise InvalidInputError(
                "families must be fitted for group_models=True; got unfitted ones: a stack that fits them adds models "
                "of the attribute by itself"
            )
        return [pair for family in families for pair in _unfitted(family)]
    if not group_models:
        if X is not None or sensitive_features is not None:
            raise InvalidInputError(
                "group_models must be True where X or sensitive_features are given: only models of the attribute are "
                "fitted here"
            )
        return FamilyUnion(tuple(families))
    if X is None or sensitive_features is None:
        raise InvalidInputError(
            "X and sensitive_features must be given with group_models=True, the training rows: "
            "kitchen_sink(..., group_models=True, X=X, sensitive_features=data['sex'])"
        )
    of_groups = fit_group_models(
        X,
        sensitive_features,
        y=y,
        fairness=fairness,
        sensitive_mode=sensitive_mode,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    return FamilyUnion((*families, of_groups))


def _unfitted(family: Any) -> list[tuple[str, Any]]:
    """Return an unfitted family as (name, estimator) pairs."""
    if isinstance(family, list):
        return list(family)
    if hasattr(family, "fit"):
        return [("forest" if is_forest(family) else _FAMILY_NAMES.get(type(family), type(family).__name__), family)]
    raise InvalidInputError(
        f"families must be fitted model families, or unfitted estimators and lists of them; got {type(family).__name__}"
    )
