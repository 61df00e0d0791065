"""Fitting a stack to predictions that come in chunks, for the estimators."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import check_random_state

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.chunks._source import Chunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize import _base_models as base
from fairfrontier.optimize._chunked import ChunkedRows
from fairfrontier.optimize._fitting import FittedPath, fit_squared
from fairfrontier.optimize._moments import Folds
from fairfrontier.optimize._settings import families, group_columns, ridge_scales, ridges


class ChunkedFit:
    """The part of a stack that is fitted to chunks."""

    estimators: Any
    fairness: Any
    loss: str
    path: str
    alpha: Any
    alphas: Any
    family_scales: Any
    weight: Any
    cv: Any
    n_points: int
    attribute_aware: bool
    sensitive_mode: str
    threshold: float
    random_state: Any
    _regression: bool
    # What the estimator has besides.
    _check_parameters: Callable[[], None]
    _is_precomputed: Callable[[], bool]
    _validate_target: Callable[[Any], FloatArray]
    _check_weighted_target: Callable[[FloatArray, FloatArray | None], None]
    _keep: Callable[[FittedPath], None]

    def fit_chunks(self, chunks: Chunks) -> Self:
        """Fit the whole path of stacks to predictions that come in chunks and need not fit into memory.

        Parameters
        ----------
        chunks : Chunks
            Target, predictions of the base models, groups and weights: see `fairfrontier.chunks`.

        Returns
        -------
        self
            The fitted stack, equal to that of all rows at once with the same folds.

        Notes
        -----
        A given alpha takes two passes over the rows, tuning takes three. Folds are the chunks' own column of folds, a
        `PredefinedSplit` as `cv`, or drawn from a hash of the row's number and `random_state`.

        Examples
        --------
        >>> from fairfrontier import FairStacksClassifier
        >>> from fairfrontier.chunks import array_chunks
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.integers(0, 2, 400)
        >>> y = (rng.random(400) < 0.3 + 0.3 * sex).astype(int)
        >>> H = np.stack([0.6 * y + 0.2 * sex, 0.5 * y], axis=1) + rng.normal(0, 0.3, (400, 2))
        >>> chunks = array_chunks(y, H, sensitive_features=sex, chunk_rows=100)
        >>> chunked = FairStacksClassifier("precomputed", alpha=1.0).fit_chunks(chunks)
        >>> whole = FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=sex)
        >>> bool(np.allclose(chunked.path_.weights, whole.path_.weights))
        True
        """
        self._check_parameters()
        self._check_chunkable()
        tuned = isinstance(self.alpha, str)
        rows = ChunkedRows(
            chunks,
            fairness=self.fairness,
            sensitive_mode=self.sensitive_mode,
            regression=self._regression,
            threshold=float(self.threshold),
            folds=self._chunk_folds() if tuned else None,
        )
        self._describe(rows)
        fitted = fit_squared(
            rows,
            rows.validation() if tuned else None,
            alphas=ridges(self.alpha, self.alphas, loss=self.loss, regression=self._regression),
            family_of=families(self.names_),
            family_scales=ridge_scales(self.family_scales, self.names_, 0, tuned=tuned),
            kind=self.path,
            n_points=int(self.n_points),
            weight=self.weight,
            group=group_columns(self.names_),
        )
        self._keep(fitted)
        return self

    def _check_chunkable(self) -> None:
        if not self._is_precomputed():
            raise InvalidInputError(
                "estimators must be 'precomputed' (or names, with cv='precomputed') where rows come in chunks: a "
                "chunk holds the predictions of models that are fitted elsewhere"
            )
        if self.loss != "squared":
            raise InvalidInputError(
                f"loss must be 'squared' where rows come in chunks; got {self.loss!r}, which needs all rows at once"
            )
        if self.attribute_aware:
            raise InvalidInputError(
                "attribute_aware must be False where rows come in chunks; add the attribute's indicators to the scores"
            )

    def _chunk_folds(self) -> Folds:
        if isinstance(self.cv, PredefinedSplit):
            given = np.asarray(self.cv.test_fold)
            if given.min() < 0:
                raise InvalidInputError("cv must give each row a fold; got a PredefinedSplit with rows in none (-1)")
            return Folds(0, given=given.astype(np.intp))
        n_folds = 5 if isinstance(self.cv, str) else self.cv
        if isinstance(n_folds, bool) or not isinstance(n_folds, (int, np.integer)) or n_folds < 2:
            raise InvalidInputError(
                f"cv must be at least 2 folds or a PredefinedSplit where rows come in chunks; got {self.cv!r}"
            )
        return Folds(int(n_folds), seed=int(check_random_state(self.random_state).randint(2**31)))

    def _describe(self, rows: ChunkedRows) -> None:
        """Set what a fit tells about the data besides the path."""
        keyed, contrasts = rows.keyed, rows.contrasts
        self.estimators_: list[Any] = []
        self.names_ = base.column_names(self.estimators, rows.chunks.names, len(rows.chunks.names))
        self.n_features_in_ = len(self.names_)
        if not self._regression:
            target = self._validate_target([key[0] for key in keyed.keys])
            self._check_weighted_target(target, keyed.sums.weight)
        of_cell = np.zeros(contrasts.cells.n_cells, dtype=np.intp)
        of_cell[contrasts.cells.codes] = keyed.rows
        self.group_sizes_ = dict(zip(contrasts.sets.names, (contrasts.membership @ of_cell).tolist(), strict=True))
        attributes = validate.attributes(keyed.groups(), len(keyed.keys))
        self._groups_ = [(attribute.name, attribute.values) for attribute in attributes]
