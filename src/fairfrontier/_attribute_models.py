"""Models of the sensitive attribute: what they learn, their names, and their predictions as columns of a stack.

The most accurate fair decision without the attribute is a threshold on E[y | x] − λ·E[c | x], where c is a contrast.
For demographic parity E[c | x] is linear in the probabilities P(group | x); for a measure that compares groups among
the rows with y = 1 it is linear in P(group, y = 1 | x), because c is zero on all other rows. So the classes that a
model of the attribute learns are the groups, or the groups with the label, and its columns are their probabilities,
without one class whose probability the others determine and the contrasts do not need.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from fairfrontier._columns import frame_columns, is_frame
from fairfrontier._validation import Attribute, FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import named_measure

# Categories of a feature that become columns of their own: the most frequent ones.
_CATEGORIES = 60
# Columns of a sparse matrix that are kept, those with most entries: as a dense matrix the others would fill the memory.
_SPARSE_COLUMNS = 500


@dataclass(frozen=True, eq=False)
class GroupTarget:
    """What one model of an attribute learns."""

    codes: IntArray  # (n,): the class of each row, from 0
    columns: tuple[str, ...]  # A name for each class from 1 on, such as ``"sex=Female | y=1"``; class 0 has no column


def group_targets(
    attributes: Sequence[Attribute], label: NDArray[np.bool_] | None, fairness: str
) -> tuple[GroupTarget, ...]:
    """Return the classes to learn for each attribute, so that their probabilities span the contrasts of a measure."""
    conditions = named_measure(fairness).conditions
    if label is None and conditions != (None,):
        raise InvalidInputError(
            f"y must be given for fairness={fairness!r}, which compares groups among rows of one label; got None"
        )
    return tuple(_target(attribute, label, conditions) for attribute in attributes)


def _target(attribute: Attribute, label: NDArray[np.bool_] | None, conditions: tuple[bool | None, ...]) -> GroupTarget:
    """Return a class for each group, and each label, that are compared; class 0 is every other row."""
    codes = np.zeros(len(attribute.codes), dtype=np.intp)
    columns: list[str] = []
    for condition in conditions:
        rows = np.ones(len(codes), dtype=bool) if condition is None else label == condition
        codes[rows] = 1 + len(columns) + attribute.codes[rows]
        suffix = "" if condition is None else f" | y={int(condition)}"
        columns += [f"{attribute.name}={value}{suffix}" for value in attribute.values]
    if codes.min() > 0:  # no other row is left, and the first class can do without a column
        return GroupTarget(codes - 1, tuple(columns[1:]))
    return GroupTarget(codes, tuple(columns))


def default_learners(random_state: int = 0) -> list[tuple[str, Any]]:
    """Return two unfitted classifiers for models of the attribute, a smooth one and one of trees.

    Both take any table of numbers and categories, missing values included.
    """
    # Not at the top: they take long to import, and a stack of scores makes no models of the attribute.
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    logistic = make_pipeline(TableEncoder(), StandardScaler(), LogisticRegression(max_iter=1000))
    boosting = HistGradientBoostingClassifier(
        learning_rate=0.05, max_leaf_nodes=15, max_iter=100, early_stopping=False, random_state=random_state
    )
    return [("logistic", logistic), ("hist_boosting", make_pipeline(TableEncoder(), boosting))]


@cache
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Return the libraries with threads; to look for them takes longer than a small model does, so it is not repeated.

    Only an import brings a new library: `n_modules` is the number of modules that are imported.
    """
    return ThreadpoolController()


def fit_classifier(learner: Any, X: Any, codes: IntArray, sample_weight: FloatArray | None = None) -> Any:
    """Return a clone of a classifier fitted to classes `codes`."""
    model = clone(learner)
    # The order of a sum depends on the number of threads, and with it the last bits of the model; and for models as
    # small as these, several at a time, threads would mostly wait for one another.
    # These pipelines are our own: weights go to their last step whatever the user's routing of metadata is.
    with _thread_pools(len(sys.modules)).limit(limits=1), config_context(enable_metadata_routing=False):
        if sample_weight is None:
            return model.fit(X, codes)
        last = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
        return model.fit(X, codes, **{f"{last}sample_weight": sample_weight})


def class_probabilities(model: Any, X: Any, n_columns: int) -> FloatArray:
    """Return the probabilities (n, n_columns) of the classes 1, 2, … of a fitted classifier; zero where it saw none."""
    with _thread_pools(len(sys.modules)).limit(limits=1):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
    result = np.zeros((len(found), n_columns))
    known = np.asarray(model.classes_)
    wanted = (known > 0) & (known <= n_columns)
    result[:, known[wanted] - 1] = found[:, wanted]
    return result


class GroupProbability(RegressorMixin, BaseEstimator):
    """One column of a model of the attribute: the probability of one of its classes, as a prediction.

    Parameters
    ----------
    classifier : classifier
        With `predict_proba`.
    column : int
        The class whose probability is predicted.
    """

    def __init__(self, classifier: Any, column: int = 1) -> None:
        self.classifier = classifier
        self.column = column

    @classmethod
    def from_fitted(cls, classifier: Any, column: int) -> "GroupProbability":
        """Return the column of a classifier that is fitted already; it is shared, not copied."""
        made = cls(classifier, column)
        made.classifier_ = classifier
        return made

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to classes 0, 1, … of the rows."""
        self.classifier_ = fit_classifier(self.classifier, X, np.asarray(y), sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the probability (n,) of the class."""
        check_is_fitted(self)
        return class_probabilities(self.classifier_, X, self.column)[:, self.column - 1]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers from any table: missing numbers become the median, categories indicators.

    Users' base models may have their own preparation of X inside; models that are added beside them cannot know it.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians and categories."""
        if issparse(X):
            entries = np.bincount(X.tocoo().col, minlength=X.shape[1])
            self.kept_ = np.sort(np.argsort(-entries, kind="stable")[:_SPARSE_COLUMNS])
            return self
        self.columns_ = [_learn(values) for values in _columns_of(X)]
        return self

    def names(self, X: Any) -> list[str]:
        """Return the names of the columns that `transform` gives, from those of X."""
        if issparse(X):
            return [f"x{j}" for j in self.kept_.tolist()]
        own = frame_columns(X, parameter="X")[1] if is_frame(X) else [f"x{j}" for j in range(len(self.columns_))]
        names: list[str] = []
        for name, learned in zip(own, self.columns_, strict=True):
            names += [f"{name}={category}" for category in learned] if isinstance(learned, list) else [str(name)]
        return names

    def transform(self, X: Any) -> FloatArray:
        """Return X as a matrix of finite numbers, shape (n, q)."""
        check_is_fitted(self)
        if hasattr(self, "kept_"):  # fitted to a sparse matrix
            kept = X.tocsc()[:, self.kept_].toarray() if issparse(X) else np.asarray(X)[:, self.kept_]
            return np.asarray(kept, dtype=np.float64)
        dense = X.toarray() if issparse(X) else X
        if isinstance(dense, np.ndarray) and dense.dtype.kind in "biuf" and not any(map(_is_list, self.columns_)):
            return np.where(np.isfinite(dense), dense, np.asarray(self.columns_, dtype=np.float64))
        parts = [_encode(values, learned) for values, learned in zip(_columns_of(dense), self.columns_, strict=True)]
        return np.column_stack(parts)


def _is_list(learned: float | list[str]) -> bool:
    return isinstance(learned, list)


def _columns_of(X: Any) -> list[NDArray[Any]]:
    if is_frame(X):
        return [np.asarray(values) for values in frame_columns(X, parameter="X")[0]]
    array = np.asarray(X)
    return [array[:, j] for j in range(array.shape[1])]


def _numbers(values: NDArray[Any]) -> FloatArray | None:
    """Return a column as numbers with NaN for what is missing or infinite; None: it holds categories."""
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _learn(values: NDArray[Any]) -> float | list[str]:
    """Return the median of a column of numbers, or the most frequent categories of another."""
    numbers = _numbers(values)
    if numbers is not None:
        return float(np.nanmedian(numbers)) if np.isfinite(numbers).any() else 0.0
    names, counts = np.unique(values.astype(str), return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:_CATEGORIES]
    return [str(name) for name in names[np.sort(frequent)]]


def _encode(values: NDArray[Any], learned: float | list[str]) -> FloatArray:
    if isinstance(learned, list):
        return np.asarray(values.astype(str)[:, None] == np.array(learned), dtype=np.float64)
    numbers = _numbers(values)
    if numbers is None:  # numbers at fit, something else now: as good as missing
        return np.full((len(values), 1), learned)
    return np.where(np.isnan(numbers), learned, numbers)[:, None]
