"""Forests as collections of trees: the prediction of every tree, their weighted sum, and which rows each has seen."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from fairfrontier._columns import FloatArray

# A row that fewer trees than these have not seen has no prediction of the others.
_LEAST_UNSEEN = 3
# Trees whose leaves say which rows are alike.
_TREES_THAT_SORT = 3
# Trees that one thread sums up at a time: their sum must not depend on the number of threads.
_TREES_PER_TASK = 50


def is_forest(model: Any) -> bool:
    """Tell whether a model is scikit-learn's random forest, its extremely random kind, or a bag of decision trees."""
    # Not at the top: a stack of scores, such as that of an audit, has no use for scikit-learn's ensembles.
    from sklearn.ensemble._bagging import BaseBagging
    from sklearn.ensemble._forest import ForestClassifier, ForestRegressor
    from sklearn.tree import BaseDecisionTree

    if isinstance(model, BaseBagging):
        return model.estimator is None or isinstance(model.estimator, BaseDecisionTree)
    return isinstance(model, ForestClassifier | ForestRegressor)


def is_plain_forest(model: Any) -> bool:
    """Tell whether the prediction of a model is the mean of its trees': a forest of scikit-learn's own."""
    return is_forest(model) and hasattr(model, "apply") and type(model).__module__.startswith("sklearn.")


def leaf_values(tree: Any, positive: int | None) -> FloatArray:
    """Return the value of every node: the frequency of the class at position `positive`; None: the mean."""
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
        rows = _rows(forest, X)
        seen = zip(forest.estimators_, forest.estimators_features_, strict=True)
        leaves = np.stack([tree.apply(rows[:, columns]) for tree, columns in seen], axis=1)
    tables = [leaf_values(tree, positive) for tree in forest.estimators_]
    first = np.cumsum([0, *(len(table) for table in tables[:-1])])
    return np.asarray(np.concatenate(tables)[leaves + first])


def weighted_trees(forest: Any, X: Any, positive: int | None, weights: FloatArray) -> FloatArray:
    """Return the weighted sum (n,) of the predictions of a fitted forest's trees, without their matrix.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> forest = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])
    >>> bool(np.allclose(weighted_trees(forest, X, None, np.full(5, 0.2)), forest.predict(X)))
    True
    """
    rows = _rows(forest, X)
    if sparse.issparse(rows):
        return np.asarray(tree_matrix(forest, X, positive) @ weights)
    used = np.flatnonzero(weights)
    of_tree = getattr(forest, "estimators_features_", [None] * len(weights))
    trees = [over_all_columns(forest.estimators_[j].tree_, of_tree[j], rows.shape[1]) for j in used]
    tables = [leaf_values(forest.estimators_[j], positive) * weights[j] for j in used]
    return sum_of_leaves(trees, tables, rows, forest.n_jobs)


def sum_of_leaves(
    trees: Sequence[Any], tables: Sequence[FloatArray], rows: NDArray[np.float32], n_jobs: int | None
) -> FloatArray:
    """Return the sum (n,) over trees of the value of each row's leaf."""
    order = alike(trees, rows)
    rows = rows[order]

    def part(first: int) -> FloatArray:
        total = np.zeros(len(rows))
        end = first + _TREES_PER_TASK
        for tree, table in zip(trees[first:end], tables[first:end], strict=True):
            total += table.take(tree.apply(rows))
        return total

    tasks = range(0, len(trees), _TREES_PER_TASK)
    parts = Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(delayed(part)(first) for first in tasks)
    found = np.zeros(len(rows))
    found[order] = sum(parts)
    return found


def alike(trees: Sequence[Any], rows: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return an order of the rows in which neighbours take like ways through trees.

    Notes
    -----
    A processor guesses the way at a node from what the rows before have done: sorted by the leaves of a few trees,
    rows pass the others in two thirds of the time.
    """
    if not trees:
        return np.arange(len(rows))
    return np.asarray(np.lexsort([tree.apply(rows) for tree in trees[:_TREES_THAT_SORT]]))


def over_all_columns(tree: Any, columns: NDArray[np.intp] | None, n_features: int) -> Any:
    """Return a tree that saw some columns as one of all columns: no copy of its columns is then needed to ask it."""
    if columns is None:
        return tree
    state = dict(tree.__getstate__())
    state["nodes"] = state["nodes"].copy()
    feature = state["nodes"]["feature"]
    inner = feature >= 0
    feature[inner] = np.asarray(columns)[feature[inner]]
    wide = type(tree)(n_features, np.asarray(tree.n_classes, dtype=np.intp), tree.n_outputs)
    wide.__setstate__(state)
    return wide


def _rows(forest: Any, X: Any) -> Any:
    """Return X as the trees of a fitted forest take it: float32, in C order or sparse."""
    if hasattr(forest, "_validate_X_predict"):
        return forest._validate_X_predict(X)
    options: dict[str, Any] = {"dtype": np.float32, "order": "C", "accept_sparse": "csr", "ensure_all_finite": False}
    return validate_data(forest, X, reset=False, **options)


def rows_in_bag(forest: Any, n_rows: int) -> NDArray[np.bool_]:
    """Return which rows each tree was grown on, shape (n, trees)."""
    seen = np.zeros((n_rows, len(forest.estimators_)), dtype=bool)
    for tree, rows in enumerate(forest.estimators_samples_):
        seen[rows, tree] = True
    return seen


def out_of_bag(matrix: NDArray[Any], seen: NDArray[np.bool_], least: int = _LEAST_UNSEEN) -> FloatArray | None:
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
    if count.min() < least:
        return None
    mean = np.einsum("ij,ij->i", matrix.astype(np.float64), unseen) / count
    return np.where(seen, mean[:, None], matrix)
