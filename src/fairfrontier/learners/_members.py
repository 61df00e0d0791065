"""Models of the zoo that adapt those of other libraries: few rows, any labels, the same result on any machine."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits


class _Neighbors:
    """Neighbours of a row: at most as many as there are rows, and the same ones at any number of threads."""

    n_neighbors: int
    n_samples_fit_: int

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return distances and indices of the nearest rows."""
        wanted = self.n_neighbors if n_neighbors is None else n_neighbors
        # With several threads, which of two rows at the same distance is taken would depend on their timing.
        with threadpool_limits(limits=1):
            nearest: Any = super()
            return nearest.kneighbors(X, min(wanted, self.n_samples_fit_), return_distance)


class NeighborsClassifier(_Neighbors, KNeighborsClassifier):
    """Nearest neighbours that also work on few rows."""


class NeighborsRegressor(_Neighbors, KNeighborsRegressor):
    """Nearest neighbours that also work on few rows."""


class AnyTwoLabels(ClassifierMixin, BaseEstimator):
    """A classifier that only knows 0 and 1, for any two labels.

    Parameters
    ----------
    model : classifier
        For instance XGBoost's.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.model).input_tags
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to 0 and 1, which stand for the labels in sorted order."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.model_ = clone(self.model).fit(X, codes, sample_weight=sample_weight)
        return self

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of X."""
        check_is_fitted(self)
        return int(self.model_.n_features_in_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class probabilities (n, 2)."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable label (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
