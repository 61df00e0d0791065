"""Forests as collections of trees: the prediction of every tree, their weighted sum, and which rows each has seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
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
# Rows that stay in a processor's cache while they pass trees.
_ROWS_PER_TASK = 2000


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
        rows = forest_rows(forest, X)
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
    rows = forest_rows(forest, X)
    if sparse.issparse(rows):
        return np.asarray(tree_matrix(forest, X, positive) @ weights)
    return forest_sum(forest, positive, weights)(rows)


def forest_sum(forest: Any, positive: int | None, weights: FloatArray) -> "LeafSum":
    """Return the weighted sum of a fitted forest's trees, ready to be asked for any rows."""
    used = np.flatnonzero(weights)
    of_tree = getattr(forest, "estimators_features_", [None] * len(weights))
    d = int(forest.n_features_in_)
    tables = [leaf_values(forest.estimators_[j], positive) * weights[j] for j in used]
    trees = [forest.estimators_[j].tree_ for j in used]
    made = [with_values(tree, table, of_tree[j], d) for tree, table, j in zip(trees, tables, used, strict=True)]
    return LeafSum(made, forest.n_jobs)


@dataclass(frozen=True, eq=False)
class _Holder:
    """A tree where scikit-learn's boosting looks for it."""

    tree_: Any


class LeafSum:
    """The sum over trees of the value of each row's leaf.

    Parameters
    ----------
    trees : list of scikit-learn's Tree
        With one value per node, as of `with_values`.
    n_jobs : int or None
        Threads; the sum does not depend on it, to the bit.
    """

    def __init__(self, trees: Sequence[Any], n_jobs: int | None = None) -> None:
        self.trees = list(trees)
        self.n_jobs = n_jobs
        # A column of objects, as scikit-learn's boosting keeps its trees.
        self._held = np.empty((len(self.trees), 1), dtype=object)
        for j, tree in enumerate(self.trees):
            self._held[j, 0] = _Holder(tree)

    def __call__(self, rows: NDArray[np.float32], *, sort: bool = True) -> FloatArray:
        """Return the sum (n,) for rows; `sort`: unless similar rows are neighbours already."""
        rows = np.ascontiguousarray(rows)
        if not sort:
            return self._sum(rows)
        order = alike(self.trees, rows)
        found = np.empty(len(rows))
        found[order] = self._sum(rows[order])
        return found

    def _sum(self, rows: NDArray[np.float32]) -> FloatArray:
        from sklearn.ensemble._gradient_boosting import predict_stages

        tasks = range(0, len(self.trees), _TREES_PER_TASK)
        # What takes a tree's way and adds its value in one loop knows no missing values, and holds up other threads.
        if effective_n_jobs(self.n_jobs) == 1 and not np.isnan(rows.sum()):
            found = np.zeros((len(rows), 1))
            for start in range(0, len(rows), _ROWS_PER_TASK):
                some, of_some = rows[start : start + _ROWS_PER_TASK], found[start : start + _ROWS_PER_TASK]
                for first in tasks:
                    total = np.zeros((len(some), 1))
                    predict_stages(self._held[first : first + _TREES_PER_TASK], some, 1.0, total)
                    of_some += total
            return found[:, 0]

        def part(first: int) -> FloatArray:
            total = np.zeros(len(rows))
            for tree in self.trees[first : first + _TREES_PER_TASK]:
                total += tree.value[:, 0, 0].take(tree.apply(rows))
            return total

        parts = Parallel(n_jobs=self.n_jobs, prefer="threads", require="sharedmem")(delayed(part)(j) for j in tasks)
        return np.asarray(sum(parts, np.zeros(len(rows))))


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


def with_values(tree: Any, values: NDArray[Any], columns: NDArray[np.intp] | None, n_features: int) -> Any:
    """Return a tree with other values of its nodes, and as one of all columns if it saw some of them only."""
    state = dict(tree.__getstate__())
    if columns is not None:
        state["nodes"] = state["nodes"].copy()
        feature = state["nodes"]["feature"]
        inner = feature >= 0
        feature[inner] = np.asarray(columns)[feature[inner]]
    return _tree_of(state["nodes"], values, n_features, state["max_depth"])


def tree_of_nodes(nodes: NDArray[Any], n_features: int) -> Any:
    """Return scikit-learn's histogram-boosted tree as one that takes rows as a forest's trees do."""
    from sklearn.tree._tree import NODE_DTYPE

    made = np.zeros(len(nodes), dtype=NODE_DTYPE)
    leaf = nodes["is_leaf"].astype(bool)
    for own, theirs, at_leaf in (
        ("left_child", "left", -1),
        ("right_child", "right", -1),
        ("feature", "feature_idx", -2),
        ("threshold", "num_threshold", -2.0),
    ):
        made[own] = np.where(leaf, at_leaf, nodes[theirs].astype(made[own].dtype))
    return _tree_of(made, nodes["value"], n_features, int(nodes["depth"].max()))


def _tree_of(nodes: NDArray[Any], values: NDArray[Any], n_features: int, max_depth: int) -> Any:
    from sklearn.tree._tree import Tree

    made = Tree(n_features, np.ones(1, dtype=np.intp), 1)
    of_nodes = np.array(values, dtype=np.float64).reshape(-1, 1, 1)
    made.__setstate__({"max_depth": max_depth, "node_count": len(nodes), "nodes": nodes, "values": of_nodes})
    return made


def forest_rows(forest: Any, X: Any) -> Any:
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
