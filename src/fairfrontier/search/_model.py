"""The model that a search hands over: raw rows in, decisions out, without the attribute."""

import zlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import ModelFamily
from fairfrontier.search._table import Columns, News, TableEncoding, as_kind, news_of, read_columns

# Salts that are tried.
_N_SALTS = 256


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
    partner : SearchModel, optional
        The second model of a cross-fitted search. Each row is scored by one of the two, by a hash of its features, so
        that equal rows are decided equally: half of the rows by each, as in the test.
    """

    # Of the hash, by `balanced_salt`; files of earlier versions do not say.
    _salt: int = 0
    # What the table of the search had, by `seen_in`; files of earlier versions do not say.
    _seen: dict[str, dict[str, Any]] | None = None

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
        partner: "SearchModel | None" = None,
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
        self.partner = partner

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the two classes; the second is positive."""
        return np.asarray(self.classes)

    @property
    def columns(self) -> list[str]:
        """Return the columns that a table must have."""
        return list(dict.fromkeys(name for model in self._models for name in model.encoding.names))

    @property
    def _models(self) -> list["SearchModel"]:
        return [self] if self.partner is None else [self, self.partner]

    @property
    def family_weights(self) -> dict[str, float]:
        """Return the sum of absolute weights of each family, as shares of all."""
        sums: dict[str, float] = {}
        for model in self._models:
            total = float(np.abs(model.weights).sum()) or 1.0
            for name, weight in zip(model.names, np.abs(model.weights), strict=True):
                family = name.split("/")[0]
                sums[family] = sums.get(family, 0.0) + float(weight) / total / len(self._models)
        return sums

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
        known = {*self.columns, *self.others, *allowed}
        # pandas writes the index of a table into Parquet files under such a name.
        unknown = [name for name in given if name not in known and not name.startswith("__index_level_")]
        if unknown:
            raise InvalidInputError(
                f"X must have only columns that the search knew; got {unknown[0]!r}"
                + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else "")
                + ": leave it out"
            )

    @property
    def categories(self) -> set[str]:
        """Return the columns that hold categories, whose text is never read as numbers."""
        return set().union(*(model.encoding.categories for model in self._models))

    def _encoded(self, X: Any, first_row: int = 0) -> list[FloatArray]:
        """Return the encoded rows for each of the models; errors count rows from `first_row`."""
        columns: Columns = read_columns(X, categories=self.categories)
        self.check_columns(columns)
        return [
            model.encoding.transform({name: columns[name] for name in model.encoding.names}, first_row)
            for model in self._models
        ]

    def news(self, X: Any) -> News:
        """Return the categories and the blanks of a table that the search had not in these columns."""
        if self._seen is None:
            return News({}, {})
        columns = read_columns(X, categories=self.categories)
        codes = {code.name: code for model in self._models for code in model.encoding.codes_}
        typed = {name: as_kind(columns[name], code.kind, name=name, levels=code.levels) for name, code in codes.items()}
        return news_of(typed, {name: code.kind for name, code in codes.items()}, self._seen)

    def base_scores(self, matrix: FloatArray) -> FloatArray:
        """Return the scores (n, k) of the base models for encoded rows."""
        # In single precision, as they were when the stack was fitted.
        parts = [np.asarray(family.predict_matrix(matrix), dtype=np.float32) for family in self.families]
        return np.column_stack(parts).astype(np.float64)

    def scores(self, X: Any, *, first_row: int = 0) -> FloatArray:
        """Return the score (n,) of each row, above the threshold the second class; errors count from `first_row`."""
        matrices = self._encoded(X, first_row)
        found = [
            model._combined(model.base_scores(matrix)) for model, matrix in zip(self._models, matrices, strict=True)
        ]
        return found[0] if self.partner is None else np.where(of_partner(matrices[0], self._salt), found[1], found[0])

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
            The families' contributions; with the mean score they add up to `scores`. If there are two models, ``model``
            is the difference of their intercepts.
        """
        matrices = self._encoded(X)
        second = np.zeros(len(matrices[0]), dtype=bool) if self.partner is None else of_partner(matrices[0], self._salt)
        found: dict[str, FloatArray] = {}
        for model, matrix, mine in zip(self._models, matrices, (~second, second), strict=False):
            parts = model.base_scores(matrix) * model.weights
            family = np.array([name.split("/")[0] for name in model.names])
            added = {str(one): parts[:, family == one].sum(axis=1) for one in dict.fromkeys(family.tolist())}
            if self.partner is not None:
                added["model"] = np.full(len(matrix), model.intercept)
            for one, values in added.items():
                found[one] = found.get(one, np.zeros(len(matrix))) + np.where(mine, values, 0.0)
        return {one: values - values.mean() for one, values in found.items()}


def of_partner(matrix: FloatArray, salt: int = 0) -> NDArray[np.bool_]:
    """Return which encoded rows (n, q) the second of two models decides: about half, by a hash of the row.

    Examples
    --------
    >>> rows = np.repeat(np.arange(1000.0)[:, None], 2, axis=0)
    >>> found = of_partner(rows)
    >>> bool((found[::2] == found[1::2]).all()), bool(450 < found[::2].sum() < 550)
    (True, True)
    """
    return _halved(_checksums(matrix), salt)


def _checksums(matrix: FloatArray) -> NDArray[np.uint64]:
    rows = np.ascontiguousarray(matrix + 0.0, dtype="<f8")  # no -0.0, and the same bytes on every machine
    return np.fromiter((zlib.crc32(row.tobytes()) for row in rows), dtype=np.uint64, count=len(rows))


def _halved(checksums: NDArray[np.uint64], salt: int) -> NDArray[np.bool_]:
    """Return one bit of each checksum (n,); with a salt, of its product with a number of the salt's own."""
    if salt == 0:
        return np.asarray(checksums >> np.uint64(16) & np.uint64(1), dtype=bool)
    factor = np.random.SeedSequence(salt).generate_state(1)[0] | 1
    return np.asarray(checksums * np.uint64(factor) >> np.uint64(31) & np.uint64(1), dtype=bool)


def balanced_salt(matrix: FloatArray, difference: FloatArray, row_sets: Sequence[NDArray[np.bool_]]) -> int:
    """Return the salt with which two models together have most nearly the rates of their mean, in each row set.

    Where many rows are equal, each model decides few kinds of rows, and another half than was tested.

    Parameters
    ----------
    matrix : ndarray of shape (n, q)
        Encoded rows.
    difference : ndarray of shape (n,)
        The second model's decision minus the first's.
    row_sets : sequence of boolean arrays (n,)
        Each with one row at least.
    """
    checksums = _checksums(matrix)
    means = np.stack([mask * difference / mask.sum() for mask in row_sets])
    off = [np.abs(means @ (_halved(checksums, salt) - 0.5)).max() for salt in range(_N_SALTS)]
    return int(np.argmin(off))


def importance_of(model: SearchModel, matrix: FloatArray, *, random_state: int) -> dict[str, float]:
    """Return the share of decisions that change when one column of the table is shuffled, for each column."""
    rng = np.random.default_rng(random_state)
    before = model._combined(model.base_scores(matrix)) > model.threshold
    found = {}
    for name, block in model.encoding.blocks.items():
        shuffled = matrix.copy()
        shuffled[:, block] = matrix[rng.permutation(len(matrix)), block]
        after = model._combined(model.base_scores(shuffled)) > model.threshold
        found[name] = float(np.mean(after != before))
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
