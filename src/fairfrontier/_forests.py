"""Forests as collections of trees: the prediction of every tree, and which rows each has seen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from fairfrontier._columns import FloatArray

# A row that fewer trees than these have not seen has no prediction of the others.
_LEAST_UNSEEN = 3


def is_forest(model: Any) -> bool:
    """Tell whether a model is scikit-learn's random forest, its extremely random kind, or a bag of decision trees."""
    # Not at the top: a stack of scores, such as that of an audit, has no use for scikit-learn's ensembles.
    from sklearn.ensemble._bagging import BaseBagging
    from sklearn.ensemble._forest import ForestClassifier, ForestRegressor
    from sklearn.tree import BaseDecisionTree

    if isinstance(model, BaseBagging):
        return model.estimator is None or isinstance(model.estimator, BaseDecisionTree)
    return isinstance(model, ForestClassifier | ForestRegressor)


def leaf_values(tree: Any, positive: int | None) -> FloatArray:
    """Return the value of every node: the frequency of the class at position `positive`; None: the mean.

    Parameters
    ----------
    tree : fitted decision tree
        Of a forest or a bag.
    positive : {0, 1} or None
        The position of the positive class among the forest's two.
    """
    value = np.asarray(tree.tree_.value)[:, 0, :]
    if positive is None:
        return np.asarray(value[:, 0], dtype=np.float64)
    if value.shape[1] == 2:
        return np.asarray(value[:, positive] / value.sum(axis=1), dtype=np.float64)
    # A bagged tree whose sample had one class only knows that class, coded 0 or 1.
    return np.full(len(value), float(tree.classes_[0] == positive))


def tree_matrix(forest: Any, X: Any, positive: int | None) -> FloatArray:
    """Return the prediction of every tree of a fitted forest, shape (n, trees): one lookup in all leaves.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> forest = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])
    >>> bool(np.allclose(tree_matrix(forest, X, None).mean(axis=1), forest.predict(X)))
    True
    """
    if hasattr(forest, "apply"):
        leaves = forest.apply(X)
    else:
        options: dict[str, Any] = {"dtype": np.float32, "accept_sparse": "csr", "ensure_all_finite": False}
        rows = validate_data(forest, X, reset=False, **options)
        seen = zip(forest.estimators_, forest.estimators_features_, strict=True)
        leaves = np.stack([tree.apply(rows[:, columns]) for tree, columns in seen], axis=1)
    tables = [leaf_values(tree, positive) for tree in forest.estimators_]
    first = np.cumsum([0, *(len(table) for table in tables[:-1])])
    return np.asarray(np.concatenate(tables)[leaves + first])


def rows_in_bag(forest: Any, n_rows: int) -> NDArray[np.bool_]:
    """Return which rows each tree was grown on, shape (n, trees)."""
    seen = np.zeros((n_rows, len(forest.estimators_)), dtype=bool)
    for tree, rows in enumerate(forest.estimators_samples_):
        seen[rows, tree] = True
    return seen


def out_of_bag(matrix: NDArray[Any], seen: NDArray[np.bool_]) -> FloatArray | None:
    """Return predictions (n, k) as of trees that have not seen the row; None: some rows were seen by nearly all.

    Notes
    -----
    Where a tree was grown on a row, the mean of those that were not takes its place. What tells one tree from another
    then comes from unseen rows alone, and for all trees from the same share of them.

    Examples
    --------
    >>> seen = np.array([[True, False, False, False], [False, False, False, True]])
    >>> out_of_bag(np.array([[9.0, 1.0, 2.0, 3.0], [1.0, 1.0, 4.0, 9.0]]), seen)
    array([[2., 1., 2., 3.],
           [1., 1., 4., 2.]])
    """
    unseen = ~seen
    count = unseen.sum(axis=1)
    if count.min() < _LEAST_UNSEEN:
        return None
    mean = np.einsum("ij,ij->i", matrix.astype(np.float64), unseen) / count
    return np.where(seen, mean[:, None], matrix)
