"""Many decision trees as one family: their predictions are one matrix."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted

from fairfrontier._columns import is_frame
from fairfrontier._forests import alike, leaf_values, over_all_columns, sum_of_leaves
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._family import Matrix, numbered
from fairfrontier.learners._inputs import as_rows


@dataclass(frozen=True, eq=False)
class PatchTree:
    """One grown tree: scikit-learn's node arrays, the feature columns it saw and a value for every node.

    `columns` is None for a tree that saw all features.
    """

    tree: Any
    columns: NDArray[np.intp] | None
    values: NDArray[np.float32] = field(repr=False)


@dataclass(frozen=True, eq=False)
class TreeFamily:
    """Fitted trees as separate models; see `forest_trees` and `MinipatchTrees`.

    Parameters
    ----------
    names : tuple of str
        One name per tree, ``family/name``.
    trees : tuple of PatchTree
        The trees.
    n_features : int
        Number of features d of X.
    classes : array of shape (2,) or None
        The two classes; None for regression.
    n_jobs : int or None
        Threads at prediction; the result does not depend on it.
    feature_names : tuple of str or None
        The columns that the trees were grown on, in order; None where they had no names.
    allow_nan : bool
        Whether the trees were grown so that they take missing values.
    """

    names: tuple[str, ...]
    trees: tuple[PatchTree, ...] = field(repr=False)
    n_features: int
    classes: NDArray[Any] | None = None
    n_jobs: int | None = None
    is_randomized: bool = False
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    allow_nan: bool = False

    @property
    def estimators(self) -> list[tuple[str, Any]]:
        """Return each tree as a fitted classifier or regressor of its own, with its name."""
        kind = TreeRegressor if self.classes is None else TreeClassifier
        return [
            (name, kind(replace(self, names=(name,), trees=(tree,), n_jobs=None)))
            for name, tree in zip(self.names, self.trees, strict=True)
        ]

    def predict_matrix(self, X: Any) -> Matrix:
        """Return every tree's score of class 1, or predicted value: (n, k), float32, Fortran order."""
        rows = self._rows(X)
        trees = self._over_all_columns(range(len(self.trees)))
        order = alike(trees, rows)
        rows = rows[order]
        matrix = np.empty((len(rows), len(self.trees)), dtype=np.float32, order="F")

        def fill(indices: NDArray[np.intp]) -> None:
            for j in indices:
                matrix[order, j] = self.trees[j].values[trees[j].apply(rows)]

        chunks = np.array_split(np.arange(len(self.trees)), effective_n_jobs(self.n_jobs))
        Parallel(n_jobs=len(chunks), prefer="threads", require="sharedmem")(delayed(fill)(c) for c in chunks)
        return matrix

    def predict_weighted(self, X: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum (n,) of the trees' predictions, without their matrix."""
        rows = self._rows(X)
        used = np.flatnonzero(weights).tolist()
        tables = [self.trees[j].values * weights[j] for j in used]
        return sum_of_leaves(self._over_all_columns(used), tables, rows, self.n_jobs)

    def _over_all_columns(self, indices: Iterable[int]) -> list[Any]:
        return [over_all_columns(self.trees[j].tree, self.trees[j].columns, self.n_features) for j in indices]

    def _rows(self, X: Any) -> NDArray[np.float32]:
        """Return X as the trees take it, after a check."""
        self._check_names(X)
        finite: Any = "allow-nan" if self.allow_nan else True
        rows: NDArray[np.float32] = check_array(as_rows(X), dtype=np.float32, order="C", ensure_all_finite=finite)
        if rows.shape[1] != self.n_features:
            raise InvalidInputError(
                f"X must have {self.n_features} features, as the trees were grown on; got {rows.shape[1]}"
            )
        return rows

    def _check_names(self, X: Any) -> None:
        if self.feature_names is None or not is_frame(X):
            return
        given = nw.from_native(X, eager_only=True).columns
        for known, name in zip_longest(self.feature_names, given):
            if name != known:
                raise InvalidInputError(
                    f"X must have the columns that the trees were grown on, in their order; got {name!r} in "
                    f"place of {known!r}: pass X[list(family.feature_names)]"
                )


class _TreeModel(BaseEstimator):
    """One tree of a family as a fitted estimator."""

    def __init__(self, family: TreeFamily) -> None:
        self.family = family

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> "_TreeModel":
        """Return self: the tree was grown with its family."""
        return self

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of X."""
        return self.family.n_features

    def _values(self, X: Any) -> NDArray[np.float64]:
        return self.family.predict_matrix(X)[:, 0].astype(np.float64)


class TreeClassifier(ClassifierMixin, _TreeModel):
    """One fitted classification tree of a family."""

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the two classes."""
        classes = self.family.classes
        return np.array([0, 1]) if classes is None else classes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class frequencies (n, 2) of each row's leaf."""
        score = self._values(X)
        return np.column_stack([1.0 - score, score])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class (n,) whose frequency is above one half."""
        return self.classes_[(self._values(X) > 0.5).astype(np.intp)]


class TreeRegressor(RegressorMixin, _TreeModel):
    """One fitted regression tree of a family."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the mean (n,) of each row's leaf."""
        return self._values(X)


def forest_trees(forest: Any, *, name: str = "forest", n_jobs: int | None = None) -> TreeFamily:
    """Return the trees of a fitted forest as separate models.

    Parameters
    ----------
    forest : fitted estimator
        A `RandomForestClassifier` or `ExtraTreesClassifier` of two classes, their regressors, or a
        `BaggingClassifier` or `BaggingRegressor` of decision trees.
    name : str, default="forest"
        Family name, the first part of every model's name.
    n_jobs : int, default=None
        Threads at prediction.

    Returns
    -------
    TreeFamily
        `predict_matrix(X)` gives (n, k): the score of class 1, or the predicted value, of each tree.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> trees = forest_trees(forest)
    >>> trees.names[0], trees.predict_matrix(X).shape
    ('forest/tree_0', (100, 5))
    """
    check_is_fitted(forest)
    if not hasattr(forest, "estimators_"):
        raise InvalidInputError(
            f"forest must be a fitted forest or bag of trees; got {type(forest).__name__} without estimators_"
        )
    classes = None
    if is_classifier(forest):
        classes = np.asarray(forest.classes_)
        if len(classes) != 2:
            raise InvalidInputError(f"forest must be of two classes; got {len(classes)}: fit it on a binary label")
    trees = tuple(_patch_trees(forest, classes is not None))
    return TreeFamily(
        numbered(name, len(trees)),
        trees,
        int(forest.n_features_in_),
        classes,
        n_jobs,
        feature_names=known_features(forest),
        allow_nan=bool(get_tags(forest).input_tags.allow_nan),
    )


def known_features(estimator: Any) -> tuple[str, ...] | None:
    """Return the names of the features that an estimator was fitted on, if they had names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names.tolist())


def _patch_trees(forest: Any, classify: bool) -> Iterator[PatchTree]:
    every = np.arange(forest.n_features_in_)
    columns = getattr(forest, "estimators_features_", [every] * len(forest.estimators_))
    some_see_a_part = any(not np.array_equal(c, every) for c in columns)
    for model, seen in zip(forest.estimators_, columns, strict=True):
        if not hasattr(model, "tree_"):
            raise InvalidInputError(f"forest must hold decision trees; got a {type(model).__name__} in it")
        values = leaf_values(model, 1 if classify else None)
        yield PatchTree(
            model.tree_, np.asarray(seen, dtype=np.intp) if some_see_a_part else None, values.astype(np.float32)
        )
