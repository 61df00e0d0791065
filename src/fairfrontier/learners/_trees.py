"""Families of trees: forests tree by tree, and minipatches, whose trees see few rows and columns."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Self

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted

from fairfrontier._columns import is_frame
from fairfrontier._forests import LeafSum, alike, leaf_values, with_values
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._family import (
    Matrix,
    as_rows,
    check_counts,
    count_of,
    features,
    features_and_labels,
    features_and_target,
    numbered,
    seed_sequence,
    track,
)


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
        rows = self.rows_of(X)
        trees = [with_values(one.tree, one.values, one.columns, self.n_features) for one in self.trees]
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
        return self.weighted(weights)(self.rows_of(X))

    def weighted(self, weights: NDArray[np.float64]) -> LeafSum:
        """Return the weighted sum of the trees, ready to be asked for rows of `rows_of`."""
        used = [(self.trees[j], weights[j]) for j in np.flatnonzero(weights).tolist()]
        d = self.n_features
        return LeafSum([with_values(one.tree, one.values * w, one.columns, d) for one, w in used], self.n_jobs)

    def rows_of(self, X: Any) -> NDArray[np.float32]:
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


# A fraction of a small data set would be too few rows to split on.
_LEAST_ROWS = 64
# Trees per task: few enough for the threads to finish together; it does not depend on n_jobs.
_TREES_PER_TASK = 50


class _Minipatch(BaseEstimator):
    """What the classifier and the regressor share."""

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        max_samples: float = 0.1,
        max_features: float = 0.1,
        max_depth: int | None = None,
        min_samples_leaf: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _fitted(self) -> TreeFamily:
        check_is_fitted(self, "family_")
        family: TreeFamily = self.family_
        return family

    @property
    def names(self) -> tuple[str, ...]:
        """Return the trees' names, ``minipatch/tree_000`` and so on."""
        return self._fitted.names

    @property
    def is_randomized(self) -> bool:
        """Return False: every tree is a deterministic model."""
        return False

    @property
    def estimators(self) -> list[tuple[str, Any]]:
        """Return (name, fitted tree) pairs."""
        return self._fitted.estimators

    def predict_matrix(self, X: Any) -> Matrix:
        """Return the prediction of every tree.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n, n_estimators), float32
            Score of class 1, or the predicted value.
        """
        return self._fitted.predict_matrix(features(self, X, dtype=np.float32))

    def predict_weighted(self, X: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum (n,) of the trees' predictions times `weights` (n_estimators,), without their matrix."""
        return self._fitted.predict_weighted(features(self, X, dtype=np.float32), weights)

    def weighted(self, weights: NDArray[np.float64]) -> LeafSum:
        """Return the sum of `predict_weighted`, ready to be asked for rows of `rows_of`."""
        return self._fitted.weighted(weights)

    def rows_of(self, X: Any) -> NDArray[np.float32]:
        """Return X as the trees take it, after a check."""
        return features(self, X, dtype=np.float32)

    def rows_seen(self, n_rows: int) -> NDArray[np.bool_]:
        """Return which of the `n_rows` training rows each tree was grown on, shape (n, n_estimators)."""
        check_is_fitted(self, "family_")
        count = count_of(self.max_samples, n_rows, parameter="max_samples", least=_LEAST_ROWS)
        seeds = np.random.SeedSequence(self.seed_).spawn(len(self.names))
        seen = np.zeros((n_rows, len(seeds)), dtype=bool)
        for tree, seed in enumerate(seeds):
            seen[_patch_rows(np.random.default_rng(seed), n_rows, count), tree] = True
        return seen

    def _grow(self, X: NDArray[np.float32], y: NDArray[np.float64], classes: NDArray[Any] | None) -> TreeFamily:
        check_counts(self, "n_estimators")
        rows = count_of(self.max_samples, len(X), parameter="max_samples", least=_LEAST_ROWS)
        columns = count_of(self.max_features, X.shape[1], parameter="max_features", least=2)
        root = seed_sequence(self.random_state)
        self.seed_ = int(root.entropy)  # type: ignore[arg-type]
        seeds = root.spawn(self.n_estimators)
        tasks = [seeds[i : i + _TREES_PER_TASK] for i in range(0, len(seeds), _TREES_PER_TASK)]
        threads = Parallel(n_jobs=effective_n_jobs(self.n_jobs), prefer="threads", return_as="generator")
        grown = threads(delayed(self._grow_some)(X, y, rows, columns, task) for task in tasks)
        parts = track(grown, total=len(tasks), description="Growing minipatch trees")
        trees = tuple(tree for part in parts for tree in part)
        names = numbered("minipatch", len(trees))
        known = known_features(self)
        return TreeFamily(names, trees, X.shape[1], classes, self.n_jobs, feature_names=known)

    def _grow_some(
        self,
        X: NDArray[np.float32],
        y: NDArray[np.float64],
        rows: int,
        columns: int,
        seeds: list[np.random.SeedSequence],
    ) -> list[PatchTree]:
        trees = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            row = _patch_rows(rng, len(X), rows)
            column = np.sort(rng.choice(X.shape[1], columns, replace=False))
            # On 0/1 labels the squared error is half the Gini index: one kind of tree serves both tasks,
            # and its leaf means are the frequencies of class 1.
            model = DecisionTreeRegressor(
                max_depth=self.max_depth,
                min_samples_leaf=self.min_samples_leaf,
                random_state=int(rng.integers(2**31 - 1)),
            )
            model.fit(X[np.ix_(row, column)], y[row], check_input=False)
            values = model.tree_.value[:, 0, 0].astype(np.float32)
            trees.append(PatchTree(model.tree_, column, values))
        return trees


def _patch_rows(rng: np.random.Generator, n_rows: int, count: int) -> NDArray[np.intp]:
    """Return the rows of a patch: the first numbers that its tree draws."""
    return rng.choice(n_rows, count, replace=False)


class MinipatchTrees(ClassifierMixin, _Minipatch):
    """Classify with many decision trees, each grown on a small random patch of rows and features.

    Parameters
    ----------
    n_estimators : int, default=1000
        Number of trees.
    max_samples : int or float, default=0.1
        Rows of a patch, drawn without replacement: a count, or a fraction (at least 64 rows where there are
        as many).
    max_features : int or float, default=0.1
        Features of a patch: a count, or a fraction (at least two).
    max_depth : int, default=None
        Largest depth of a tree; None: no bound.
    min_samples_leaf : int, default=5
        Fewest patch rows in a leaf.
    n_jobs : int, default=None
        Threads; the result is the same to the last bit with any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed. Every tree has random numbers of its own.

    Attributes
    ----------
    family_ : TreeFamily
        The trees.
    classes_ : ndarray of shape (2,)
        The two classes; scores are those of the second.
    n_features_in_ : int
        Number of features.
    seed_ : int
        What every tree's random numbers come from.

    Notes
    -----
    Yao and Allen (2020) grow each learner on a *minipatch*, a small subset of both rows and features. The
    trees are weak and diverse; FairStacks gives each a weight (`predict_matrix`), while `predict_proba` of this
    estimator is their plain average.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(random_state=0)
    >>> trees = MinipatchTrees(n_estimators=20, random_state=0).fit(X, y)
    >>> trees.predict_matrix(X).shape, trees.names[0]
    ((100, 20), 'minipatch/tree_00')
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Training rows.
        y : array-like of shape (n,)
            Labels of two classes.

        Returns
        -------
        self
        """
        X, y, classes = features_and_labels(self, X, y, dtype=np.float32)
        self.classes_ = classes
        self.family_ = self._grow(X, y, classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the trees' average class probabilities (n, 2)."""
        score = self.predict_matrix(X).mean(axis=1, dtype=np.float64)
        return np.column_stack([1.0 - score, score])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class (n,) whose average probability is above one half."""
        above = self.predict_proba(X)[:, 1] > 0.5
        classes: NDArray[Any] = self.classes_
        return classes[above.astype(np.intp)]


class MinipatchTreesRegressor(RegressorMixin, _Minipatch):
    """Predict a number with many decision trees, each grown on a small random patch of rows and features.

    The twin of `MinipatchTrees`, with the same parameters.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(n_features=5, random_state=0)
    >>> MinipatchTreesRegressor(n_estimators=20, random_state=0).fit(X, y).predict_matrix(X).shape
    (100, 20)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees on rows X (n, d) and the numeric target y (n,)."""
        X, y = features_and_target(self, X, y, dtype=np.float32)
        self.family_ = self._grow(X, y, None)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the trees' average prediction (n,)."""
        return np.asarray(self.predict_matrix(X).mean(axis=1, dtype=np.float64))
