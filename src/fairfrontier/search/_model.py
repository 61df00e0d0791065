"""The model that a search hands over: raw rows in, decisions out, without the attribute."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import ModelFamily
from fairfrontier.search._encoding import TableEncoding
from fairfrontier.search._table import Columns, read_columns


class SearchModel(ClassifierMixin, BaseEstimator):
    """A linear combination of fitted models with the encoding of their features; made by `FairSearch`.

    Parameters
    ----------
    encoding : TableEncoding
        From the columns of a table to numbers.
    families : list of ModelFamily
        The fitted base models.
    names : tuple of str
        Their columns, family after family.
    weights : ndarray of shape (k,)
        Weight of each.
    intercept : float
        Of the score.
    threshold : float
        A score above it is the second class.
    classes : ndarray of shape (2,)
        The two classes.
    others : tuple of str
        Columns that were in the table and are no features; they may be there and are not looked at.
    importance : dict of str to float
        Share of decisions that change when a column's values are shuffled.
    """

    def __init__(
        self,
        encoding: TableEncoding,
        families: Sequence[ModelFamily],
        names: tuple[str, ...],
        weights: FloatArray,
        intercept: float,
        threshold: float,
        classes: NDArray[Any],
        others: tuple[str, ...] = (),
        importance: dict[str, float] | None = None,
    ) -> None:
        self.encoding = encoding
        self.families = families
        self.names = names
        self.weights = weights
        self.intercept = intercept
        self.threshold = threshold
        self.classes = classes
        self.others = others
        self.importance = importance

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the two classes; the second is positive."""
        return np.asarray(self.classes)

    @property
    def columns(self) -> list[str]:
        """Return the columns that a table must have."""
        return self.encoding.names

    @property
    def family_weights(self) -> dict[str, float]:
        """Return the sum of absolute weights of each family, as shares of all."""
        sums: dict[str, float] = {}
        for name, weight in zip(self.names, np.abs(self.weights), strict=True):
            family = name.split("/")[0]
            sums[family] = sums.get(family, 0.0) + float(weight)
        total = sum(sums.values()) or 1.0
        return {family: weight / total for family, weight in sums.items()}

    def check_columns(self, given: Collection[str], *, allowed: Collection[str] = ()) -> None:
        """Refuse a table that lacks a feature, or has a column that the search never saw.

        Parameters
        ----------
        given : collection of str
            The columns of the table.
        allowed : collection of str
            Further columns that may be there.
        """
        absent = [name for name in self.columns if name not in given]
        if absent:
            raise InvalidInputError(
                f"X must have the column {absent[0]!r}, which the model uses"
                + (f" ({len(absent)} such columns are missing)" if len(absent) > 1 else "")
            )
        unknown = [name for name in given if name not in {*self.columns, *self.others, *allowed}]
        if unknown:
            raise InvalidInputError(
                f"X must have only columns that the search knew; got {unknown[0]!r}"
                + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else "")
                + ": leave it out"
            )

    def _encoded(self, X: Any) -> FloatArray:
        columns: Columns = read_columns(X)
        self.check_columns(columns)
        return self.encoding.transform({name: columns[name] for name in self.columns})

    def base_scores(self, matrix: FloatArray) -> FloatArray:
        """Return the scores (n, k) of the base models for encoded rows."""
        # In single precision, as they were when the stack was fitted.
        parts = [np.asarray(family.predict_matrix(matrix), dtype=np.float32) for family in self.families]
        return np.column_stack(parts).astype(np.float64)

    def scores(self, X: Any) -> FloatArray:
        """Return the score (n,) of each row; above the threshold is the second class."""
        return self._combined(self.base_scores(self._encoded(X)))

    def _combined(self, base: FloatArray) -> FloatArray:
        # Not a matrix product, whose last bits depend on how many rows come together.
        return np.asarray(np.einsum("ij,j->i", base, self.weights) + self.intercept)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score minus the threshold, shape (n,)."""
        return self.scores(X) - self.threshold

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the score clipped to [0, 1] as the probability of the second class, shape (n, 2)."""
        positive = np.clip(self.scores(X), 0.0, 1.0)
        return np.stack([1.0 - positive, positive], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the decisions (n,) in the words of the labels."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(np.intp)])

    def explain(self, X: Any) -> dict[str, FloatArray]:
        """Return what each family adds to the score of each row, compared with the mean of the given rows.

        Returns
        -------
        dict of str to ndarray of shape (n,)
            The families' contributions; with the mean score they add up to `scores`.
        """
        base = self.base_scores(self._encoded(X))
        parts = (base - base.mean(axis=0)) * self.weights
        family = np.array([name.split("/")[0] for name in self.names])
        return {str(one): parts[:, family == one].sum(axis=1) for one in dict.fromkeys(family.tolist())}


def importance_of(model: SearchModel, matrix: FloatArray, *, random_state: int) -> dict[str, float]:
    """Return the share of decisions that change when one column of the table is shuffled, for each column.

    Parameters
    ----------
    model : SearchModel
        The model.
    matrix : ndarray of shape (n, q)
        Encoded rows.
    random_state : int
        Seed of the shuffling.
    """
    rng = np.random.default_rng(random_state)
    before = model._combined(model.base_scores(matrix)) > model.threshold
    found = {}
    for name, block in model.encoding.blocks.items():
        shuffled = matrix.copy()
        shuffled[:, block] = matrix[rng.permutation(len(matrix)), block]
        after = model._combined(model.base_scores(shuffled)) > model.threshold
        found[name] = float(np.mean(after != before))
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
