"""What the stacking classifier and regressor share: base models, the path, and its value."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples as number_of_rows
from sklearn.utils.validation import check_is_fitted, validate_data

from fairfrontier import _validation as validate
from fairfrontier._columns import is_frame
from fairfrontier._html import stack_html
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import dask_chunks, is_dask
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import taf_curve
from fairfrontier.identify._points import TradeoffPoints, contrasts_for_fit, tradeoff_points
from fairfrontier.metrics._contrasts import Contrasts
from fairfrontier.optimize import _base_models as base
from fairfrontier.optimize._chunked_fit import ChunkedFit
from fairfrontier.optimize._cross_validation import RowsValidation
from fairfrontier.optimize._data import StackData
from fairfrontier.optimize._fitting import LINKS, fit_iterative, fit_squared
from fairfrontier.optimize._folds import assign_folds, check_classes
from fairfrontier.optimize._ridge_path import TAU_ADVICE
from fairfrontier.optimize._selection import OperatingPoint
from fairfrontier.optimize._settings import families, group_columns, indicators, ridge_scales, ridges
from fairfrontier.quantify._weights import StepWeight, as_weight

DEFAULT_WEIGHT = StepWeight(0.8)


class BaseFairStacks(ChunkedFit, OperatingPoint, BaseEstimator):
    """What the classifier and the regressor share."""

    _regression = False
    # Defaults of metadata routing: fit cannot do without the attribute, the others seldom need it.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": False}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": False}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"sensitive_features": False}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": False}

    def __init__(
        self,
        estimators: Any = base.PRECOMPUTED,
        *,
        fairness: Any = "demographic_parity",
        loss: str = "squared",
        path: str = "signed",
        tau: float | None = None,
        alpha: float | str = "cv",
        alphas: Any = None,
        family_scales: Any = "cv",
        weight: Any = DEFAULT_WEIGHT,
        cv: Any = 5,
        n_points: int = 20,
        attribute_aware: bool = False,
        sensitive_mode: str = "separate",
        threshold: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.fairness = fairness
        self.loss = loss
        self.path = path
        self.tau = tau
        self.alpha = alpha
        self.alphas = alphas
        self.family_scales = family_scales
        self.weight = weight
        self.cv = cv
        self.n_points = n_points
        self.attribute_aware = attribute_aware
        self.sensitive_mode = sensitive_mode
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not isinstance(self.estimators, str):
            models = [pair[1] for pair in self.estimators if isinstance(pair, (tuple, list)) and len(pair) == 2]
            inputs = [get_tags(model).input_tags for model in models if isinstance(model, BaseEstimator)]
            tags.input_tags.sparse = bool(inputs) and all(one.sparse for one in inputs)
            tags.input_tags.allow_nan = bool(inputs) and all(one.allow_nan for one in inputs)
        return tags

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the base models where they are not fitted, and the whole path of stacks.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features; with precomputed predictions the matrix H (n, k), a dataframe or a dict of it. With precomputed
            predictions X, y and the rest may be Dask collections: see `fit_chunks`.
        y : array-like of shape (n,)
            The target.
        sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
            The sensitive attributes. Needed here; at prediction only by an attribute-aware stack.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights, for the base models and the stack.

        Returns
        -------
        self
            The fitted stack.
        """
        if is_dask(X, y, sensitive_features, sample_weight):
            parts = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            return self.fit_chunks(dask_chunks(y, X, **parts))
        self._check_parameters()
        if y is None:
            raise InvalidInputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if getattr(y, "ndim", 1) == 2:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: its only column is taken",
                DataConversionWarning,
                stacklevel=2,
            )
        n_rows = number_of_rows(next(iter(X.values()), []) if _by_name(X) else X)
        if n_rows == 1:
            raise InvalidInputError("X must have at least 2 rows; got n_samples=1: no two groups are in one row")
        target = self._validate_target(y)
        validate.same_length(len(target), X=n_rows)
        weight = validate.sample_weights(sample_weight, len(target))
        self._check_weighted_target(target, weight)
        contrasts = self._contrasts(target, sensitive_features)
        rows = np.bincount(contrasts.cells.codes, minlength=contrasts.cells.n_cells)
        self.group_sizes_ = dict(zip(contrasts.sets.names, (contrasts.membership @ rows).tolist(), strict=True))
        given = () if sensitive_features is None else validate.attributes(sensitive_features, len(target))
        self._groups_ = [(attribute.name, attribute.values) for attribute in given]
        H, folds = self._fit_base(X, y, contrasts, weight)
        if self.attribute_aware:
            H = np.column_stack([H, indicators(sensitive_features, self._groups_, len(H))])
        data = StackData(H, target, contrasts, None if self._regression else float(self.threshold), weight)
        self._fit_path(data, folds)
        return self

    def _check_parameters(self) -> None:
        validate.one_of(self.loss, LINKS, parameter="loss")
        validate.one_of(self.path, ("signed", "paper"), parameter="path")
        if self._regression and self.loss != "squared":
            raise InvalidInputError(f"loss must be 'squared' for regression; got {self.loss!r}")
        if callable(self.fairness):
            raise InvalidInputError(
                "fairness must be a measure's name or pairs of masks, which are linear in the scores; got a function, "
                "which can value a stack (points, tradeoff_points) but not constrain it"
            )
        validate.number(self.threshold, parameter="threshold", low=0.0, high=1.0)
        if validate.number(self.n_points, parameter="n_points", low=1) != int(self.n_points):
            raise InvalidInputError(f"n_points must be a whole number; got {self.n_points!r}")
        if self.tau is not None:
            validate.number(self.tau, parameter="tau", low=0.0, advice=TAU_ADVICE)
        ridges(self.alpha, self.alphas, loss=self.loss, regression=self._regression)
        as_weight(self.weight)

    def _contrasts(self, target: FloatArray, sensitive_features: Any, fairness: Any = None) -> Contrasts:
        measure = self.fairness if fairness is None else fairness
        if sensitive_features is None and (isinstance(measure, str) or self.attribute_aware):
            raise InvalidInputError(
                "sensitive_features must be given, one value a row: fit(X, y, sensitive_features=data['sex']); "
                "with sklearn.set_config(enable_metadata_routing=True) a Pipeline or a search passes it on"
            )
        return contrasts_for_fit(
            measure,
            label=None if self._regression else target > 0.5,
            sensitive_features=sensitive_features,
            n_rows=len(target),
            sensitive_mode=self.sensitive_mode,
        )

    def _is_precomputed(self) -> bool:
        asked = isinstance(self.estimators, str) and self.estimators == base.PRECOMPUTED
        return asked or (isinstance(self.cv, str) and self.cv == base.PRECOMPUTED)

    def _fit_base(
        self, X: Any, y: Any, contrasts: Contrasts, weight: FloatArray | None
    ) -> tuple[NDArray[np.floating[Any]], IntArray | None]:
        """Return the predictions that the stack is fitted to and their folds, and set names and fitted models."""
        if isinstance(self.cv, str):
            validate.one_of(self.cv, (base.PREFIT, base.PRECOMPUTED), parameter="cv")
        if self._is_precomputed():
            self.estimators_ = []
            return self._precomputed(X, fitting=True), None
        validate_data(self, X, skip_check_array=True)
        X = base.as_rows(X)
        models = base.check_estimators(self.estimators)
        self.names_ = tuple(name for name, _ in models)
        if isinstance(self.cv, str):
            self.estimators_ = models
            return base.predict_matrix(models, X, classes=self._base_classes(), n_jobs=self.n_jobs), None
        base.check_sample_weight(models, weight)
        folds = assign_folds(contrasts, self.cv, self.random_state)
        check_classes(folds, contrasts)
        values = validate.column(y, parameter="y")
        options: dict[str, Any] = {"sample_weight": weight, "n_jobs": self.n_jobs}
        H = base.out_of_fold_matrix(models, X, values, folds, classes=self._base_classes(), **options)
        self.estimators_ = base.fit_models(models, X, values, **options)
        return H, folds

    def _precomputed(self, X: Any, *, fitting: bool) -> NDArray[np.floating[Any]]:
        names = None
        if is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=fitting)
            preds = validate.predictions(X)
            H, names = preds.matrix, preds.names
        else:
            if _by_name(X):
                X, names = self._from_dict(X, fitting=fitting)
            H = validate_data(self, X, dtype=(np.float64, np.float32), ensure_all_finite=False, reset=fitting)
        if fitting:
            self.names_ = base.column_names(self.estimators, names, H.shape[1])
        base.check_finite(H, self.names_)
        return np.asarray(H)

    def _from_dict(self, X: Mapping[str, Any], *, fitting: bool) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Return predictions by name as a matrix, in the order of the fit."""
        if not fitting:
            missing = [name for name in self.names_ if name not in X]
            if missing:
                raise InvalidInputError(f"X must hold the predictions of every base model; {missing[0]!r} is missing")
            X = {name: X[name] for name in self.names_}
        preds = validate.predictions(X)
        return preds.matrix, preds.names

    def _fit_path(self, data: StackData, folds: IntArray | None) -> None:
        tuned, n_free = isinstance(self.alpha, str), data.H.shape[1] - len(self.names_)
        squared = self.loss == "squared"
        scales = ridge_scales(self.family_scales, self.names_, n_free, tuned=tuned and squared)
        if tuned and folds is None:
            folds = assign_folds(data.contrasts, 5 if isinstance(self.cv, str) else self.cv, self.random_state)
        common: dict[str, Any] = {
            "alphas": ridges(self.alpha, self.alphas, loss=self.loss, regression=self._regression),
            "kind": self.path,
            "n_points": int(self.n_points),
            "weight": self.weight,
        }
        used = folds if tuned else None
        if squared:
            family_of = families(self.names_, n_free)
            validation = None if used is None else RowsValidation(data, used)
            group = group_columns(self.names_, n_free)
            fitted = fit_squared(data, validation, family_of=family_of, family_scales=scales, group=group, **common)
        else:
            fitted = fit_iterative(data, used, loss=self.loss, scale=scales, tau=self.tau, **common)
        self._keep(fitted)

    def _matrix(self, X: Any, sensitive_features: Any) -> NDArray[np.floating[Any]]:
        check_is_fitted(self, "path_")
        if self._is_precomputed():
            H = self._precomputed(X, fitting=False)
        else:
            rows = base.as_rows(X)
            validate_data(self, X, skip_check_array=True, reset=False)
            H = base.predict_matrix(self.estimators_, rows, classes=self._base_classes(), n_jobs=self.n_jobs)
        if not self.attribute_aware:
            return H
        return np.column_stack([H, indicators(sensitive_features, self._groups_, len(H))])

    def _repr_html_(self) -> str:
        if not hasattr(self, "path_"):
            return str(super()._repr_html_())
        fairness, accuracy = self.points_.fairness[:-1], self.points_.accuracy[:-1]
        support = taf_curve(fairness, accuracy).support
        return stack_html(type(self).__name__, self.names_, self.weights_, fairness, accuracy, support)

    def predict_path(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the scores of every stack on the path, shape (n, n_points)."""
        H = self._matrix(X, sensitive_features)
        return LINKS[self.loss](H @ self.path_.weights.T + self.path_.intercept)

    def _scores(self, X: Any, sensitive_features: Any) -> FloatArray:
        return LINKS[self.loss](self._matrix(X, sensitive_features) @ self.weights_ + self.intercept_)

    def points(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, fairness: Any = None
    ) -> TradeoffPoints:
        """Return fairness and accuracy of every stack on the path on given rows, the constant model last.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            Rows that the stack may or may not have seen.
        fairness : str, masks or callable, optional
            Another measure than the one of the fit.
        """
        scores = self.predict_path(X, sensitive_features=sensitive_features)
        names = [f"stack {index:02d}" for index in range(scores.shape[1])]
        return tradeoff_points(
            self._target(y),
            dict(zip(names, scores.T, strict=True)),
            sensitive_features=sensitive_features,
            fairness=self.fairness if fairness is None else fairness,
            accuracy="r2" if self._regression else "accuracy",
            threshold=self.threshold,
            sensitive_mode=self.sensitive_mode,
            sample_weight=sample_weight,
        )

    def _base_classes(self) -> NDArray[Any] | None:
        return None

    def _validate_target(self, y: Any) -> FloatArray:
        return self._target(y)

    def _target(self, y: Any) -> NDArray[Any]:
        values = validate.column(y, parameter="y")
        if values.dtype.kind == "c":
            raise InvalidInputError("Complex data not supported: y must be real numbers")
        return validate.target(values)

    def _check_weighted_target(self, target: FloatArray, weight: FloatArray | None) -> None:
        """Raise if rows that count do not tell what is to be told."""


def _by_name(X: Any) -> bool:
    """Tell predictions by name from everything else: some sparse matrices are mappings too."""
    return isinstance(X, Mapping) and not issparse(X)
