"""The weighted sum of its base models that a stack predicts with: ready to be asked, at less than their matrix."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _num_samples as number_of_rows

from fairfrontier._forests import LeafSum, alike, forest_rows, forest_sum, is_forest, is_plain_forest, weighted_trees
from fairfrontier._groups import GROUP
from fairfrontier._quick_scores import quick_scores
from fairfrontier._scores import check_own_classes
from fairfrontier._validation import FloatArray, check_finite
from fairfrontier.optimize._base_models import FoldModels, column_names, columns_of

# The weighted sum of a model's columns (n,) for rows X; `sort`: unless rows that are alike are neighbours already.
Part = Callable[[Any, bool], FloatArray]
# Fewer rows are not worth sorting.
_LEAST_SORTED = 500


class WeightedModels:
    """The weighted sum of the predictions of fitted models.

    Parameters
    ----------
    models : list of (str, fitted estimator)
        The models; one without any weight is not asked.
    weights : ndarray of shape (k,)
        The weight of each of their columns.
    classes : ndarray of shape (2,) or None
        The classes that they were fitted to; None: regression.
    expanded : collection of str
        The names of those that give a column for each of their own models.
    """

    def __init__(
        self,
        models: Sequence[tuple[str, Any]],
        weights: FloatArray,
        *,
        classes: NDArray[Any] | None,
        expanded: Collection[str] = (),
    ) -> None:
        self.models = list(models)
        self.weights = weights.copy()
        widths = [len(column_names([pair], expanded)) for pair in models]
        of_models = np.split(self.weights, np.cumsum(widths)[:-1])
        self._parts = [
            _part(model, part, classes, name, name in expanded)
            for (name, model), part in zip(models, of_models, strict=True)
            if part.any()
        ]

    def __call__(self, X: Any, n_jobs: int | None = None) -> FloatArray:
        """Return the sum (n,) for rows X."""
        order = self._order(X)
        rows = X if order is None else X[order]
        run = Parallel(n_jobs=n_jobs, prefer="threads")
        found = np.asarray(
            sum(run(delayed(part)(rows, order is None) for part in self._parts), np.zeros(number_of_rows(X)))
        )
        if order is None:
            return found
        result = np.empty(len(found))
        result[order] = found
        return result

    def _order(self, X: Any) -> NDArray[np.intp] | None:
        """Return an order in which rows that are alike are neighbours, once for all models; None: no tree tells."""
        trees = next((part.leaves.trees for part in self._parts if isinstance(part, _Trees)), [])
        numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and len(X) >= _LEAST_SORTED
        return alike(trees, X.astype(np.float32)) if numbers and trees else None


# Of each stack that has predicted: to make its sum anew for every prediction would take half as long as to ask it.
_READY: WeakKeyDictionary[Any, WeightedModels] = WeakKeyDictionary()


def weighted_models(stack: Any) -> WeightedModels:
    """Return the sum at a fitted stack's operating point; it is made once."""
    weights = np.asarray(stack.weights_[: len(stack.names_)])
    known = _READY.get(stack)
    if known is None or known.models != stack.estimators_ or not np.array_equal(known.weights, weights):
        options = {key: value for key, value in stack._base_options().items() if key != "n_jobs"}
        known = _READY[stack] = WeightedModels(stack.estimators_, weights, **options)
    return known


@dataclass(frozen=True, eq=False)
class _Trees:
    """The part of a forest or of a family of trees."""

    rows_of: Callable[[Any], Any]
    leaves: LeafSum
    of_sparse: Callable[[Any], FloatArray]
    sign: float = 1.0
    first: float = 0.0

    def __call__(self, X: Any, sort: bool) -> FloatArray:
        if sparse.issparse(X):
            return self.of_sparse(X)
        return self.first + self.sign * self.leaves(self.rows_of(X), sort=sort)


def _part(model: Any, weights: FloatArray, classes: NDArray[Any] | None, name: str, expand: bool) -> Part:
    """Return the weighted sum of the columns of a fitted model, forest or family."""
    if isinstance(model, FoldModels):
        of_folds = [_part(one, weights, classes, name, expand) for one in model.models]
        return lambda X, sort: np.asarray(np.mean([part(X, sort) for part in of_folds], axis=0))
    of_group = name.startswith(f"{GROUP}/")
    if expand or (is_plain_forest(model) and not of_group):
        positive = None if classes is None else check_own_classes(model, classes, name)
        if is_forest(model):
            n_trees = len(model.estimators_)
            of_trees = weights if expand else np.full(n_trees, weights[0] / n_trees)
            leaves = forest_sum(model, positive, of_trees)
            return _Trees(
                lambda X: forest_rows(model, X), leaves, lambda X: weighted_trees(model, X, positive, of_trees)
            )
        if hasattr(model, "predict_weighted"):
            return _family(model, weights, positive == 0)

    def own(X: Any) -> FloatArray:
        block = columns_of(model, X, classes, name, expand)
        check_finite(block, column_names([(name, model)], (name,) if expand else ()))
        return np.asarray(block @ weights)

    quick = None if expand or not (of_group or classes is None or hasattr(model, "classes_")) else quick_scores(model)
    if quick is None:
        return lambda X, sort: own(X)
    second = of_group or classes is None or check_own_classes(model, classes, name) == 1

    def scored(X: Any, sort: bool) -> FloatArray:
        found = quick(X, sort)
        if found is None:
            return own(X)
        return np.asarray(weights[0] * (found if second else 1.0 - found))

    return scored


def _family(model: Any, weights: FloatArray, turned: bool) -> Part:
    """Return the weighted sum of the models of a family; `turned`: their scores are those of the other class."""
    total = float(weights.sum())
    if hasattr(model, "weighted"):
        sign, first = (-1.0, total) if turned else (1.0, 0.0)
        return _Trees(model.rows_of, model.weighted(weights), lambda X: model.predict_weighted(X, weights), sign, first)

    def part(X: Any, sort: bool) -> FloatArray:
        found = model.predict_weighted(X, weights)
        return np.asarray(total - found if turned else found)

    return part
