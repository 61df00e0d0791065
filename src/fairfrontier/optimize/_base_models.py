"""The base models of a stack: fitting them, and their predictions as one matrix."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils.validation import has_fit_parameter

from fairfrontier._attribute_models import GROUP
from fairfrontier._columns import is_frame
from fairfrontier._scores import check_finite, named_models, positive_scores
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._folds import train_test

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
