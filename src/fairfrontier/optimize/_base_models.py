"""The base models of a stack: fitting them, and their predictions as one matrix.

To unfitted estimators a stack adds models of the attribute by itself. They are fitted in the same folds as the base
models, to the sensitive attribute (for measures of one label, to group and label), and join the stack as columns
``group/…``. At prediction they need the features only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils.validation import has_fit_parameter

from fairfrontier._attribute_models import (
    GROUP,
    GroupProbability,
    GroupTarget,
    class_probabilities,
    default_learners,
    fit_classifier,
    group_targets,
)
from fairfrontier._columns import is_frame
from fairfrontier._scores import check_finite, named_models, positive_scores
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import Contrasts
from fairfrontier.optimize._statistics import train_test

PRECOMPUTED = "precomputed"
PREFIT = "prefit"


def check_estimators(estimators: Any) -> list[tuple[str, Any]]:
    """Return the (name, estimator) pairs of a stack after checking them."""
    expected = "a non-empty list of (name, estimator) pairs, or 'precomputed'"
    if isinstance(estimators, Mapping):
        raise InvalidInputError(f"estimators must be {expected}; got a dict: pass list(estimators.items())")
    models = named_models(estimators, expected=expected)
    for name, model in models:
        if not hasattr(model, "predict"):
            raise InvalidInputError(f"estimators must have predict; {name!r} is {model!r}")
    return models


def as_rows(X: Any) -> Any:
    """Return X in a form whose rows can be taken and that scikit-learn's models know."""
    if sparse.issparse(X):
        return X.tocsr()
    if nw.dependencies.is_pyarrow_table(X):
        return nw.from_native(X, eager_only=True).to_numpy()
    if not (is_frame(X) or isinstance(X, list)):
        X = np.asarray(X)
    if getattr(X, "ndim", 2) != 2:
        raise InvalidInputError(
            f"X must be 2-D, one row per person; got an array of shape {X.shape}. Reshape your data: X.reshape(1, -1) "
            "is one row, X.reshape(-1, 1) one feature"
        )
    return X


def numbered(k: int) -> tuple[str, ...]:
    """Return names for `k` models that have none."""
    return tuple(f"model_{j}" for j in range(k))


def column_names(estimators: Any, names: Sequence[str] | None, k: int) -> tuple[str, ...]:
    """Return names of `k` columns of predictions: as given, else those of the dataframe, else numbered."""
    if isinstance(estimators, str):
        return tuple(names) if names is not None else numbered(k)
    if not isinstance(estimators, Iterable):
        raise InvalidInputError(
            f"estimators must be 'precomputed' or the names of the columns of X; got {estimators!r}"
        )
    given = tuple(str(one[0] if isinstance(one, (tuple, list)) else one) for one in estimators)
    if len(given) != k:
        raise InvalidInputError(f"X must have one column for each of the {len(given)} names in estimators; got {k}")
    return given


def check_names(names: Sequence[str], expected: Sequence[str]) -> None:
    """Raise if predictions are not those of the base models, by name."""
    missing = [name for name in expected if name not in set(names)]
    if missing:
        raise InvalidInputError(f"X must hold the predictions of every base model; {missing[0]!r} is missing")
    unknown = [name for name in names if name not in set(expected)]
    if unknown:
        raise InvalidInputError(f"X must hold the predictions of the base models alone; {unknown[0]!r} is none of them")


def predict_matrix(
    models: Sequence[tuple[str, Any]], X: Any, *, classes: NDArray[Any] | None, n_jobs: int | None = None
) -> FloatArray:
    """Return the predictions of fitted models as one matrix (n, k); a model of the attribute predicts a number."""
    columns = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(positive_scores)(
            model, X, classes=None if name.startswith(f"{GROUP}/") else classes, name=name, for_stack=True
        )
        for name, model in models
    )
    matrix = np.stack(columns, axis=1)
    check_finite(matrix, [name for name, _ in models])
    return matrix


def fit_models(
    models: Sequence[tuple[str, Any]], X: Any, y: NDArray[Any], *, sample_weight: Any, n_jobs: int | None
) -> list[tuple[str, Any]]:
    """Return clones of the models fitted to all rows."""
    fitted = Parallel(n_jobs=n_jobs)(delayed(_fit_one)(model, X, y, sample_weight) for _, model in models)
    return [(name, model) for (name, _), model in zip(models, fitted, strict=True)]


def out_of_fold_matrix(
    models: Sequence[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    folds: IntArray,
    *,
    classes: NDArray[Any] | None,
    sample_weight: Any,
    n_jobs: int | None,
) -> FloatArray:
    """Return predictions (n, k), each made by a model that has not seen the row; all models see the same folds."""
    splits = list(train_test(folds))
    jobs = [(j, name, model, split) for j, (name, model) in enumerate(models) for split in splits]
    columns = Parallel(n_jobs=n_jobs)(
        delayed(_fit_predict)(model, X, y, sample_weight, split, classes, name) for _, name, model, split in jobs
    )
    matrix = np.empty((len(y), len(models)))
    for (j, _, _, (_, test)), column in zip(jobs, columns, strict=True):
        matrix[test, j] = column
    check_finite(matrix, [name for name, _ in models])
    return matrix


def check_sample_weight(models: Sequence[tuple[str, Any]], sample_weight: FloatArray | None) -> None:
    """Raise if weights of rows are given and a base model does not take them."""
    if sample_weight is None:
        return
    for name, model in models:
        if not has_fit_parameter(model, "sample_weight"):
            raise InvalidInputError(
                f"sample_weight was given, but the base model {name!r} ({type(model).__name__}) does not take it: "
                "fit it beforehand and pass cv='prefit'"
            )


def _fit_one(model: Any, X: Any, y: NDArray[Any], sample_weight: Any) -> Any:
    if sample_weight is None:
        return clone(model).fit(X, y)
    return clone(model).fit(X, y, sample_weight=sample_weight)


def _fit_predict(
    model: Any,
    X: Any,
    y: NDArray[Any],
    sample_weight: Any,
    split: tuple[IntArray, IntArray],
    classes: NDArray[Any] | None,
    name: str,
) -> FloatArray:
    train, test = split
    of_train = None if sample_weight is None else sample_weight[train]
    fitted = _fit_one(model, rows_of(X, train), y[train], of_train)
    return positive_scores(fitted, rows_of(X, test), classes=classes, name=name, for_stack=True)


AUTO = "auto"


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """Columns of a stack that models of the attribute make.

    Attributes
    ----------
    estimators : list of (str, fitted estimator)
        One per column, ``group/attribute=value/learner``, fitted to all rows; `predict` gives the probability.
    out_of_fold : ndarray of shape (n, q)
        Probabilities for each row by models that have not seen it.
    """

    estimators: list[tuple[str, Any]]
    out_of_fold: FloatArray


def wants_group_models(group_models: Any, names: Sequence[str], *, fairness: Any, loss: str, path: str) -> bool:
    """Tell whether a stack of unfitted estimators adds models of the attribute.

    Parameters
    ----------
    group_models : "auto", bool or None
        The stack's parameter. "auto" adds them where they steer the debiasing directions: squared loss, signed path, a
        measure by name, and no model of the attribute among the estimators.
    names : sequence of str
        Names of the estimators.
    fairness, loss, path
        The stack's parameters.
    """
    if group_models is None or group_models is False:
        return False
    if group_models is not True and not (isinstance(group_models, str) and group_models == AUTO):
        raise InvalidInputError(f"group_models must be 'auto', True, False or None; got {group_models!r}")
    if not isinstance(fairness, str):
        if group_models is True:
            raise InvalidInputError(
                "group_models=True needs fairness to be the name of a measure; got custom masks: pass 'auto' or False"
            )
        return False
    given = any(name.startswith(f"{GROUP}/") for name in names)
    return group_models is True or (loss == "squared" and path == "signed" and not given)


def fit_group_columns(
    X: Any,
    codes: IntArray,
    contrasts: Contrasts,
    folds: IntArray,
    *,
    fairness: str,
    sample_weight: FloatArray | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> GroupColumns:
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
    fairness : str
        The stack's measure, which says what the models must predict.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows.
    n_jobs : int, optional
        Processes.
    seed : int
        Of the learners.
    """
    # By size: what the learners make of the groups must not depend on their names.
    attributes = [replace(attribute, codes=attribute.codes[codes]).by_size() for attribute in contrasts.attributes]
    targets = group_targets(attributes, contrasts.label[codes], fairness)
    pairs = [(name, learner, target) for target in targets for name, learner in default_learners(seed)]
    splits = list(train_test(folds))
    jobs = [(learner, target, split) for _, learner, target in pairs for split in splits]
    held_out = iter(
        Parallel(n_jobs=n_jobs)(
            delayed(_predict_held_out)(learner, X, target, split, sample_weight) for learner, target, split in jobs
        )
    )
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(fit_classifier)(learner, X, target.codes, sample_weight) for _, learner, target in pairs
    )
    columns: list[FloatArray] = []
    estimators: list[tuple[str, Any]] = []
    for (name, _, target), model in zip(pairs, fitted, strict=True):
        block = np.empty((len(folds), len(target.columns)))
        for _, test in splits:
            block[test] = next(held_out)
        columns.append(block)
        members = [GroupProbability.from_fitted(model, j + 1) for j in range(len(target.columns))]
        estimators += [(f"{GROUP}/{of}/{name}", member) for of, member in zip(target.columns, members, strict=True)]
    return GroupColumns(estimators, np.column_stack(columns))


def _predict_held_out(
    learner: Any,
    X: Any,
    target: GroupTarget,
    split: tuple[IntArray, IntArray],
    sample_weight: FloatArray | None,
) -> FloatArray:
    train, test = split
    weight = None if sample_weight is None else sample_weight[train]
    model = fit_classifier(learner, rows_of(X, train), target.codes[train], weight)
    return class_probabilities(model, rows_of(X, test), len(target.columns))
