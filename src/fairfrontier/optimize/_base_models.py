"""The base models of a stack: fitting them, and their predictions as one matrix.

To unfitted estimators a stack adds models of the attribute by itself. They are fitted in the same folds as the base
models, to the sensitive attribute (for measures of one label, to group and label), and join the stack as columns
``group/…``. At prediction they need the features only.

A forest or a family enters model by model. Where its models leave rows out (bootstrap samples, minipatches) the stack
is fitted to what each model says of rows that it has not seen, and it is this very model that predicts. How good such a
stack is, others tell, whose forests were grown without a fold. A random forest of many trees that is one column is
grown once too: its held-out prediction of a row is the mean of the trees that have not seen it.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils.validation import _num_samples as number_of_rows
from sklearn.utils.validation import check_memory, has_fit_parameter

from fairfrontier._attribute_models import (
    GroupProbability,
    GroupTarget,
    TableEncoder,
    class_probabilities,
    default_learners,
    fit_classifier,
    group_targets,
)
from fairfrontier._columns import is_frame
from fairfrontier._forests import (
    is_forest,
    is_plain_forest,
    out_of_bag,
    rows_in_bag,
    tree_matrix,
)
from fairfrontier._groups import GROUP, ProbableGroups
from fairfrontier._rows import Rows
from fairfrontier._scores import check_own_classes, positive_scores
from fairfrontier._validation import FloatArray, IntArray, check_finite
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import Contrasts, build_contrasts
from fairfrontier.optimize._cross_validation import FoldColumns, assign_folds, check_classes, train_test
from fairfrontier.optimize._stack_input import AUTO, FEATURES, is_family, wants_group_models
from fairfrontier.optimize._statistics import RowWeights

# The standard deviation of columns of X in a stack: that of scores.
_SPREAD = 0.2
# About a third of the trees have not seen a row; from this many trees on they predict nearly as well as all.
_MANY_TREES = 100
# Rows whose predictions by all trees are in memory at a time.
_ROWS_AT_ONCE = 50_000


def expanded_names(models: Sequence[tuple[str, Any]], expand: Any) -> tuple[str, ...]:
    """Return the names of the estimators that enter a stack model by model.

    Parameters
    ----------
    models : list of (str, estimator)
        The estimators.
    expand : "auto" or bool
        "auto": forests and families whose name has no slash (one with a slash is a model of a family already); True:
        all forests and families; False: collections only, which have no prediction of their own.
    """
    if not (isinstance(expand, bool | np.bool_) or (isinstance(expand, str) and expand == AUTO)):
        raise InvalidInputError(f"expand must be 'auto', True or False; got {expand!r}")
    many = [(name, model) for name, model in models if is_family(model) or is_forest(model)]
    if isinstance(expand, str):
        return tuple(name for name, model in many if "/" not in name or not hasattr(model, "predict"))
    return tuple(name for name, model in many if expand or not hasattr(model, "predict"))


def member_names(name: str, model: Any) -> tuple[str, ...]:
    """Return the names of the models of a fitted forest or family: ``name/i``, or those that a collection has."""
    if is_family(model) and not hasattr(model, "fit"):
        return tuple(model.names)
    return tuple(f"{name}/{i}" for i in range(len(model.estimators_ if is_forest(model) else model.names)))


def as_rows(X: Any) -> Any:
    """Return X in a form whose rows can be taken and that scikit-learn's models know, with the names of its columns."""
    if sparse.issparse(X):
        return X.tocsr()
    if nw.dependencies.is_pyarrow_table(X):
        return X.to_pandas() if find_spec("pandas") else nw.from_native(X, eager_only=True).to_numpy()
    X = X if is_frame(X) or isinstance(X, list) else np.asarray(X)
    if getattr(X, "ndim", 2) != 2:
        raise InvalidInputError(
            f"X must be 2-D, one row per person; got an array of shape {X.shape}. Reshape your data: X.reshape(1, -1) "
            "is one row, X.reshape(-1, 1) one feature"
        )
    return X


def predict_matrix(
    models: Sequence[tuple[str, Any]],
    X: Any,
    *,
    classes: NDArray[Any] | None,
    expanded: Collection[str] = (),
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the predictions of fitted models as one matrix (n, k).

    Parameters
    ----------
    models : list of (str, fitted estimator)
        The models; one of the attribute predicts a number.
    X : array-like of shape (n, p)
        Features.
    classes : ndarray of shape (2,) or None
        The classes that they were fitted to; None: regression.
    expanded : collection of str
        The names of those that give a column for each of their own models.
    n_jobs : int, optional
        Threads.
    """
    blocks = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(columns_of)(model, X, classes, name, name in expanded) for name, model in models
    )
    matrix = np.hstack(list(blocks))
    check_finite(matrix, column_names(models, expanded))
    return matrix


def column_names(models: Sequence[tuple[str, Any]], expanded: Collection[str]) -> list[str]:
    """Return the names of the columns of fitted models."""
    names: list[str] = []
    for name, model in models:
        one = model.models[0] if isinstance(model, FoldModels) else model
        names += member_names(name, one) if name in expanded else (name,)
    return names


def columns_of(model: Any, X: Any, classes: NDArray[Any] | None, name: str, expand: bool) -> FloatArray:
    """Return the columns (n, q) that a fitted model, forest or family is in a stack."""
    if isinstance(model, FoldModels):
        return np.asarray(np.mean([columns_of(one, X, classes, name, expand) for one in model.models], axis=0))
    if expand:
        positive = None if classes is None else check_own_classes(model, classes, name)
        if is_forest(model):
            return tree_matrix(model, X, positive)
        matrix = np.asarray(model.predict_matrix(X), dtype=np.float64)
        return 1.0 - matrix if positive == 0 else matrix
    labels = None if name.startswith(f"{GROUP}/") else classes
    return positive_scores(model, X, classes=labels, name=name, for_stack=True)[:, None]


class FoldModels(BaseEstimator):
    """The models of all folds, which predict by their mean: what a stack that does not refit is made of.

    Parameters
    ----------
    models : list of fitted estimators
        One per fold.
    """

    def __init__(self, models: list[Any]) -> None:
        self.models = models

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the classes of the models, of which a fold may miss some."""
        return np.unique(np.concatenate([model.classes_ for model in self.models]))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the mean probability of each class, shape (n, classes)."""
        classes = self.classes_
        parts = np.zeros((len(self.models), number_of_rows(X), len(classes)))
        for part, model in zip(parts, self.models, strict=True):
            part[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
        return np.asarray(parts.mean(axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class, or the mean of the predicted numbers, shape (n,)."""
        if hasattr(self.models[0], "predict_proba"):
            return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
        return np.asarray(np.mean([model.predict(X) for model in self.models], axis=0))


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """Columns of X as members of a stack: numbers standardised, categories as indicators; missing is the median.

    Attributes
    ----------
    encoder, scaler : fitted transformers
        From X to numbers, and to their standard deviations.
    names : tuple of str, length q
        ``features/column``, or ``features/column=category``.
    """

    encoder: Any
    scaler: Any
    names: tuple[str, ...]

    def predict_matrix(self, X: Any) -> FloatArray:
        """Return the columns, shape (n, q)."""
        return np.asarray(self.scaler.transform(self.encoder.transform(X)) * _SPREAD)


def fit_features(X: Any, sample_weight: FloatArray | None) -> "BaseFit":
    """Return the columns of X as a fitted family; it knows nothing of the target, so that it needs no folds."""
    encoder = TableEncoder().fit(X)
    scaler = StandardScaler().fit(encoder.transform(X), sample_weight=sample_weight)
    names = tuple(f"{FEATURES}/{name}" for name in encoder.names(X))
    family = FeatureColumns(encoder, scaler, names)
    return BaseFit([(FEATURES, family)], names, family.predict_matrix(X))


@dataclass(frozen=True, eq=False)
class BaseFit:
    """Fitted base models and what a stack is fitted to.

    Attributes
    ----------
    estimators : list of (str, fitted estimator)
        The models.
    names : tuple of str, length k
        The columns of the stack.
    matrix : ndarray of shape (n, k)
        Predictions for each row by models that have not seen it.
    own : FoldColumns or None
        The columns that are others in each fold.
    """

    estimators: list[tuple[str, Any]]
    names: tuple[str, ...]
    matrix: FloatArray
    own: FoldColumns | None = None

    @classmethod
    def joined(cls, parts: Sequence["BaseFit"]) -> "BaseFit":
        """Return the columns of all parts side by side."""
        first = np.cumsum([0, *(len(part.names) for part in parts)])
        own = [part.own.moved(by) for part, by in zip(parts, first, strict=False) if part.own is not None]
        return cls(
            [pair for part in parts for pair in part.estimators],
            tuple(name for part in parts for name in part.names),
            np.column_stack([part.matrix for part in parts]),
            FoldColumns.joined(own) if own else None,
        )


@dataclass(frozen=True, eq=False)
class BaseModel:
    """An unfitted base model, and all that it is fitted to: what travels to a worker process."""

    name: str
    model: Any
    X: Any
    y: NDArray[Any]
    sample_weight: FloatArray | None
    classes: NDArray[Any] | None
    expand: bool

    def fitted(self, train: IntArray) -> Any:
        """Return the model fitted to some of the rows."""
        parameter = None if self.sample_weight is None else _weight_parameter(self.model)
        weights = {parameter: self.sample_weight[train]} if parameter and self.sample_weight is not None else {}
        X = rows_of(self.X, train)  # of all rows too: a model may change in place what it is given
        # Weights go to the last step of a pipeline whatever the user's routing of metadata is.
        with config_context(enable_metadata_routing=False) if "__" in (parameter or "") else nullcontext():
            try:
                return clone(self.model).fit(X, self.y[train], **weights)
            except Exception as error:
                # The error is the model's own; of ten models it must say whose.
                error.add_note(
                    f"The base model {self.name!r} of the stack was fitted with X, y and sample_weight alone."
                )
                raise

    def columns(self, fitted: Any, rows: IntArray, *, expand: bool) -> FloatArray:
        """Return the columns (r, q) that the fitted model, or if `expand` its members, are for some of the rows."""
        return columns_of(fitted, rows_of(self.X, rows), self.classes, self.name, expand)


@dataclass(frozen=True, eq=False)
class FitOptions:
    """How base models are fitted; the attributes are those of the stack."""

    classes: NDArray[Any] | None
    expanded: tuple[str, ...] = ()
    sample_weight: FloatArray | None = None
    refit: bool = True
    tuned: bool = True
    memory: Any = None
    verbose: int = 0
    n_jobs: int | None = None
    # Whether the stack made the folds itself: only then may out-of-bag predictions take the place of held-out ones.
    own_folds: bool = False

    def model(self, name: str, model: Any, X: Any, y: NDArray[Any]) -> BaseModel:
        """Return a base model that is fitted so."""
        return BaseModel(name, model, X, y, self.sample_weight, self.classes, name in self.expanded)

    def run(self, function: Callable[..., Any], jobs: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return the results of a function, from the cache where it has them."""
        cached = function if self.memory is None else check_memory(self.memory).cache(function)
        return list(Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(delayed(cached)(*job) for job in jobs))

    def in_folds(
        self, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], folds: IntArray
    ) -> list[tuple[Any, FloatArray]]:
        """Return the model that each job keeps, and its predictions (n, q) of each row by models without its fold.

        `function` takes a job, (train rows, test rows) and whether its model is kept, and returns that and predictions.
        """
        splits, everything = list(train_test(folds)), (np.arange(len(folds)), np.empty(0, dtype=np.intp))
        tasks = [(*job, split, not self.refit) for job in jobs for split in splits]
        if self.refit:
            tasks += [(*job, everything, True) for job in jobs]
        done = self.run(function, tasks)
        result = []
        for j in range(len(jobs)):
            of_folds = done[j * len(splits) : (j + 1) * len(splits)]
            matrix = np.empty((len(folds), of_folds[0][1].shape[1]))
            for (_, test), (_, block) in zip(splits, of_folds, strict=True):
                matrix[test] = block
            last = len(splits) * len(jobs) + j
            result.append((done[last][0] if self.refit else FoldModels([model for model, _ in of_folds]), matrix))
        return result


def fit_columns(
    stack: Any,
    models: Sequence[tuple[str, Any]],
    X: Any,
    rows: Rows,
    contrasts: Contrasts,
    probable: ProbableGroups | None,
    known: tuple[BaseFit, IntArray] | None,
) -> tuple[BaseFit, IntArray | None]:
    """Fit the models, and what joins them in the stack, and return all columns and the fold of each row.

    Parameters
    ----------
    stack : BaseFairStacks
        The estimator, whose parameters say how.
    models : list of (str, estimator)
        Unfitted; fitted where the stack's `cv` says so, and then there are folds only for models of the attribute.
    X, rows
        The features, and the rows without scores.
    contrasts
        The measure on the cells of the rows.
    probable : ProbableGroups or None
        The groups, where they are only probable.
    known : (BaseFit, ndarray of shape (n,)) or None
        What an earlier fit to the same rows found, which is not fitted again, and its folds.
    """
    codes, fitted = rows.cells(labelled=not stack._regression).codes, isinstance(stack.cv, str)
    options = FitOptions(
        # A penalty inside a base model is meant for rows that count 1: weights that sum to 1 would leave a constant.
        sample_weight=None if rows.weight is None else rows.weight / RowWeights.of_rows(rows).of_one_row,
        refit=bool(stack.refit),
        tuned=isinstance(stack.alpha, str),
        memory=stack.memory,
        verbose=int(stack.verbose),
        own_folds=isinstance(stack.cv, int | np.integer),
        **stack._base_options(),
    )
    folds = None if known is None else known[1]
    if fitted:
        names = tuple(column_names(models, stack._expanded))
        found = [BaseFit(list(models), names, predict_matrix(models, X, **stack._base_options()))]
        # Only if asked for: with fitted models the caller expects as many columns as models.
        join = stack.group_models is True and wants_group_models(stack, names)
    else:
        folds = assign_folds(codes, contrasts, stack.cv, stack.random_state) if folds is None else folds
        check_classes(folds, codes, contrasts)
        target = np.asarray(rows.y) if stack._regression else contrasts.label[codes].astype(np.intp)
        new = [pair for pair in models if known is None or pair[0] not in dict(known[0].estimators)]
        found = [fit_base_models(new, X, target, folds, options)] if new else []
        if known is not None:
            return BaseFit.joined([known[0], *found]), folds
        join = wants_group_models(stack, found[0].names)
    if join:
        folds = assign_folds(codes, contrasts, stack.cv, stack.random_state) if folds is None else folds
        if probable is not None and probable.is_partition:
            spread = replace(rows, weight=options.sample_weight).spread(probable.assuming("probabilities"))
            found.append(fit_probable_columns(X, spread, folds, options, stack._measure))
        else:
            found.append(fit_group_columns(X, codes, contrasts, folds, options, fairness=stack._measure))
    if stack.passthrough:
        found.append(fit_features(X, rows.weight))
    return BaseFit.joined(found), folds


def fit_base_models(
    models: Sequence[tuple[str, Any]], X: Any, y: NDArray[Any], folds: IntArray, options: FitOptions
) -> BaseFit:
    """Fit all models in the same folds and to all rows.

    Parameters
    ----------
    models : list of (str, estimator)
        Unfitted.
    X, y
        The rows.
    folds : ndarray of shape (n,)
        The fold of each row.
    options : FitOptions
        How.

    Notes
    -----
    A forest or family with out-of-bag rows is stacked as it was grown on all rows; those grown without a fold serve to
    judge such a stack. A forest of many trees that is one model needs no folds.
    """
    _warn_without_weights(models, options.sample_weight)
    without_fold = [train for train, _ in train_test(folds)] if options.tuned else []
    found = _grown(models, X, y, [np.arange(len(y)), *without_fold], options)
    rest = [options.model(name, model, X, y) for name, model in models if name not in found]
    done = options.in_folds(_fit_fold, [(one,) for one in rest], folds)
    for one, (kept, matrix) in zip(rest, done, strict=True):
        found[one.name] = _base_fit(one.name, kept, matrix, options.expanded)
    return BaseFit.joined([found[name] for name, _ in models])


def _base_fit(
    name: str, model: Any, matrix: FloatArray, expanded: Collection[str], blocks: Sequence[FloatArray] = ()
) -> BaseFit:
    """Return one fitted model with its columns, after a check; `blocks` are those that are others in each fold."""
    names = tuple(column_names([(name, model)], expanded))
    check_finite(matrix, names)
    own = FoldColumns(np.arange(len(names)), tuple(block.astype(np.float32) for block in blocks)) if blocks else None
    return BaseFit([(name, model)], names, matrix, own)


def _grown(
    models: Sequence[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    parts: Sequence[IntArray],
    options: FitOptions,
) -> dict[str, BaseFit]:
    """Return the forests and families with out-of-bag rows, grown on the first of some parts of the rows, all of them.

    Those grown on the other parts, which lack a fold each, only predict.
    """
    given = [options.model(name, model, X, y) for name, model in models]
    found = _grown_whole(given, options)
    once = [one for one in given if one.expand and _may_leave_rows_out(one.model)]
    done = iter(options.run(_grow, [(one, train) for one in once for train in parts]))
    for one in once:
        (model, matrix), *others = [next(done) for _ in parts]
        blocks = [block for _, block in others]
        # Where too few trees have not seen a row, the folds are used instead.
        if all(block is not None for block in (matrix, *blocks)):
            found[one.name] = _base_fit(one.name, model, matrix, options.expanded, blocks)
    return found


def _grown_whole(models: Sequence[BaseModel], options: FitOptions) -> dict[str, BaseFit]:
    """Return the forests that are one model of the stack, where trees that have not seen a row can stand in for folds.

    They are grown once, on all rows, and need no fold.
    """
    if not (options.own_folds and options.refit):
        return {}
    jobs = [
        (one,)
        for one in models
        if not one.expand
        and not one.name.startswith(f"{GROUP}/")
        and is_plain_forest(one.model)
        and _may_leave_rows_out(one.model)
        and one.model.get_params()["n_estimators"] >= _MANY_TREES
    ]
    done = zip(jobs, options.run(_grow_whole, jobs), strict=True)
    return {one.name: _base_fit(one.name, model, column, ()) for (one,), (model, column) in done if column is not None}


def _grow_whole(one: BaseModel) -> tuple[Any, FloatArray | None]:
    """Return a forest, and its prediction (n, 1) for each row by the trees that have not seen it."""
    every = np.arange(len(one.y))
    fitted = one.fitted(every)
    seen, column = rows_in_bag(fitted, len(every)), np.empty((len(every), 1))
    for first in range(0, len(every), _ROWS_AT_ONCE):
        rows = every[first : first + _ROWS_AT_ONCE]
        block = out_of_bag(one.columns(fitted, rows, expand=True), seen[rows], _MANY_TREES // 5)
        if block is None:
            return fitted, None
        column[rows, 0] = block.mean(axis=1)
    return fitted, column


def _may_leave_rows_out(model: Any) -> bool:
    """Tell whether the models of a forest or family leave rows out, for which they can then be judged."""
    if is_forest(model):
        return bool(model.get_params().get("bootstrap"))
    return hasattr(model, "rows_seen")


def _grow(one: BaseModel, train: IntArray) -> tuple[Any, FloatArray | None]:
    """Return a forest or family, if it is grown on all rows, and predictions by members that have not seen the row."""
    fitted = one.fitted(train)
    matrix = columns_of(fitted, one.X, one.classes, one.name, True)
    seen = np.zeros(matrix.shape, dtype=bool)
    seen[train] = rows_in_bag(fitted, len(train)) if is_forest(fitted) else fitted.rows_seen(len(train))
    if len(train) == len(one.y):
        return fitted, out_of_bag(matrix, seen)
    # Without a fold some more rows may be seen by nearly all trees.
    return None, out_of_bag(matrix, seen, 1)


def _fit_fold(one: BaseModel, split: tuple[IntArray, IntArray], keep: bool) -> tuple[Any, FloatArray]:
    """Return a model fitted to some rows, if it is to be kept, and its predictions for the others."""
    train, test = split
    fitted = one.fitted(train)
    block = one.columns(fitted, test, expand=one.expand) if len(test) else np.empty((0, 0))
    return fitted if keep else None, block


def _warn_without_weights(models: Sequence[tuple[str, Any]], sample_weight: FloatArray | None) -> None:
    """Warn of models that cannot be told the weights of rows; the stack itself is weighted."""
    if sample_weight is None:
        return
    without = [name for name, model in models if _weight_parameter(model) is None]
    if without:
        warnings.warn(
            f"sample_weight was given, but the base models {without} do not take it and are fitted without; the stack "
            "itself is weighted",
            UserWarning,
            stacklevel=6,
        )


def _weight_parameter(model: Any) -> str | None:
    """Return the name by which `fit` of a model, or of the last step of a pipeline, takes weights of rows."""
    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    if not isinstance(model, Pipeline):
        return None
    name, last = model.steps[-1]
    inner = _weight_parameter(last)
    return None if inner is None else f"{name}__{inner}"


def fit_group_columns(
    X: Any, codes: IntArray, contrasts: Contrasts, folds: IntArray, options: FitOptions, *, fairness: str, seed: int = 0
) -> BaseFit:
    """Fit models of the attribute in the folds of the base models, and to all rows.

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n, d)
        The features, as the base models get them.
    codes : ndarray of shape (n,)
        The cell of each row.
    contrasts : Contrasts
        Groups and labels of the cells.
    folds : ndarray of shape (n,)
        The fold of each row.
    options : FitOptions
        How base models are fitted.
    fairness : str
        The stack's measure, which says what the models must predict.
    seed : int
        Of the learners.

    Returns
    -------
    BaseFit
        One model per column, ``group/attribute=value/learner``, whose `predict` gives the probability.
    """
    # By size: what the learners make of the groups must not depend on their names.
    attributes = [replace(attribute, codes=attribute.codes[codes]).by_size() for attribute in contrasts.attributes]
    targets = group_targets(attributes, contrasts.label[codes], fairness)
    pairs = [(name, learner, target) for target in targets for name, learner in default_learners(seed)]
    done = options.in_folds(
        _fit_group_fold, [(learner, X, target, options.sample_weight) for _, learner, target in pairs], folds
    )
    estimators = [
        (f"{GROUP}/{column}/{name}", GroupProbability.from_fitted(kept, j))
        for (name, _, target), (kept, _) in zip(pairs, done, strict=True)
        for j, column in enumerate(target.columns, start=1)
    ]
    return BaseFit(estimators, tuple(name for name, _ in estimators), np.column_stack([matrix for _, matrix in done]))


def fit_probable_columns(X: Any, spread: Rows, folds: IntArray, options: FitOptions, fairness: str) -> BaseFit:
    """Fit models of groups that are only probable: every row once per group, weighted by its probability.

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n, d)
        The features.
    spread : Rows
        Rows (q,) of one attribute, with the probabilities as weights.
    folds : ndarray of shape (n,)
        The fold of each row of X.
    options, fairness
        As in `fit_group_columns`.

    Notes
    -----
    Of probabilities that depend on the features through the group alone, the models' mean is affine in the probability
    of the group given the features: the direction is the same. Models of the most probable group would hardly know of
    a group that is seldom the more probable one.
    """
    cells = spread.cells(labelled=spread.y is not None)
    contrasts = build_contrasts(fairness, cells.keys, cells.attributes)
    weighted = replace(options, sample_weight=spread.weight)
    of_row = (rows_of(X, spread.row), cells.codes, contrasts, folds[spread.row])
    found = fit_group_columns(*of_row, weighted, fairness=fairness)
    first = np.unique(spread.row, return_index=True)[1]
    return replace(found, matrix=found.matrix[first])


def _fit_group_fold(
    learner: Any, X: Any, target: GroupTarget, sample_weight: Any, split: tuple[IntArray, IntArray], keep: bool
) -> tuple[Any, FloatArray]:
    """Return a model of the attribute fitted to some rows, if it is to be kept, and its predictions for the others."""
    train, test = split
    weight = None if sample_weight is None else sample_weight[train]
    model = fit_classifier(learner, rows_of(X, train), target.codes[train], weight)
    columns = len(target.columns)
    block = class_probabilities(model, rows_of(X, test), columns) if len(test) else np.empty((0, columns))
    return model if keep else None, block
