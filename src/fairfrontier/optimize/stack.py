"""What the stacking classifier and regressor share: base models, the path, and its value."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify.points import TradeoffPoints, contrasts_for_fit, tradeoff_points
from fairfrontier.metrics.contrasts import Contrasts
from fairfrontier.optimize import base
from fairfrontier.optimize.data import StackData
from fairfrontier.optimize.fitting import LINKS, PAPER_ALPHAS, fit_iterative, fit_squared
from fairfrontier.optimize.folds import assign_folds
from fairfrontier.optimize.operating import OperatingPoint
from fairfrontier.optimize.tuning import FREE
from fairfrontier.quantify.weights import StepWeight, as_weight

DEFAULT_WEIGHT = StepWeight(0.8)


class BaseFairStacks(OperatingPoint, BaseEstimator):
    """What the classifier and the regressor share."""

    _regression = False

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

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the base models where they are not fitted, and the whole path of stacks.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features; with precomputed predictions the matrix H (n, k) or a dataframe of it.
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
        self._check_parameters()
        if not self._is_precomputed():
            validate_data(self, X, skip_check_array=True)
        target = self._validate_target(y)
        if sensitive_features is None:
            raise InvalidInputError(
                "sensitive_features must be given to fit, one value a row: fit(X, y, sensitive_features=data['sex']); "
                "inside a Pipeline or a search, set_fit_request(sensitive_features=True) routes it"
            )
        weight = validate.sample_weights(sample_weight, len(target))
        contrasts = contrasts_for_fit(
            self.fairness,
            label=None if self._regression else target > 0.5,
            sensitive_features=sensitive_features,
            n_rows=len(target),
            sensitive_mode=self.sensitive_mode,
        )
        self._attributes_ = [(a.name, a.values) for a in validate.attributes(sensitive_features, len(target))]
        rows = np.bincount(contrasts.cells.codes, minlength=contrasts.cells.n_cells)
        self.group_sizes_ = dict(zip(contrasts.sets.names, (contrasts.membership @ rows).tolist(), strict=True))
        H = self._fit_base(X, y, contrasts, weight)
        H = self._with_attributes(H, sensitive_features)
        data = StackData(H, target, contrasts, None if self._regression else float(self.threshold), weight)
        self._fit_path(data)
        return self

    def _check_parameters(self) -> None:
        validate.one_of(self.loss, LINKS, parameter="loss")
        validate.one_of(self.path, ("signed", "paper"), parameter="path")
        if self._regression and self.loss != "squared":
            raise InvalidInputError(f"loss must be 'squared' for regression; got {self.loss!r}")
        if callable(self.fairness):
            raise InvalidInputError(
                "fairness must be a measure's name or pairs of masks, which are linear in the scores; a function can "
                "value a stack (points, tradeoff_points) but not constrain it"
            )
        validate.number(self.threshold, parameter="threshold", low=0.0, high=1.0)
        validate.number(self.n_points, parameter="n_points", low=1)
        if self.tau is not None:
            advice = "; the smallest feasible tau is 0, a score without bias"
            validate.number(self.tau, parameter="tau", low=0.0, advice=advice)
        if isinstance(self.alpha, str):
            validate.one_of(self.alpha, ("cv",), parameter="alpha")
        else:
            validate.number(self.alpha, parameter="alpha", low=0.0)
        as_weight(self.weight)

    def _is_precomputed(self) -> bool:
        asked = isinstance(self.estimators, str) and self.estimators == base.PRECOMPUTED
        return asked or (isinstance(self.cv, str) and self.cv == base.PRECOMPUTED)

    def _n_folds(self) -> Any:
        return 5 if isinstance(self.cv, str) else self.cv

    def _fit_base(self, X: Any, y: Any, contrasts: Contrasts, weight: FloatArray | None) -> FloatArray:
        """Return the predictions that the stack is fitted to, and set the names and fitted base models."""
        self._folds_: IntArray | None = None
        if self._is_precomputed():
            return self._precomputed(X, fitting=True)
        models = base.check_estimators(self.estimators)
        self.names_ = tuple(name for name, _ in models)
        if isinstance(self.cv, str):
            validate.one_of(self.cv, (base.PREFIT, base.PRECOMPUTED), parameter="cv")
            self.estimators_ = models
            return base.predict_matrix(models, X, classes=self._base_classes(), n_jobs=self.n_jobs)
        base.check_sample_weight(models, weight)
        self._folds_ = assign_folds(contrasts, self.cv, self.random_state)
        values = validate.column(y, parameter="y")
        options: dict[str, Any] = {"sample_weight": weight, "n_jobs": self.n_jobs}
        H = base.out_of_fold_matrix(models, X, values, self._folds_, classes=self._base_classes(), **options)
        self.estimators_ = base.fit_models(models, X, values, **options)
        return H

    def _precomputed(self, X: Any, *, fitting: bool) -> FloatArray:
        validate_data(self, X, skip_check_array=True, reset=fitting)
        preds = validate.predictions(X)
        validate.finite(preds.matrix, parameter="X", names=preds.names)
        if fitting:
            given = self.estimators if not isinstance(self.estimators, str) else None
            self.names_ = preds.names if given is None else tuple(str(name) for name in given)
            self.estimators_ = []
            if len(self.names_) != preds.matrix.shape[1]:
                raise InvalidInputError(
                    f"X must have one column for each of the {len(self.names_)} names in estimators; "
                    f"got {preds.matrix.shape[1]}"
                )
        return np.asarray(preds.matrix, dtype=np.float64)

    def _with_attributes(self, H: FloatArray, sensitive_features: Any) -> FloatArray:
        """Append the indicators of the sensitive attributes where the stack may use them."""
        if not self.attribute_aware:
            return H
        if sensitive_features is None:
            raise InvalidInputError(
                "sensitive_features must be given at prediction: attribute_aware=True made the attribute a part of the "
                "stack"
            )
        known = dict(self._attributes_)
        columns = []
        for name, values in validate.attribute_columns(sensitive_features).items():
            groups = known.get(name)
            if groups is None:
                raise InvalidInputError(f"sensitive_features must be {sorted(known)}, as in fit; got {name!r}")
            codes = {group: code for code, group in enumerate(groups)}
            try:
                code_of = np.array([codes[value] for value in values.tolist()])
            except KeyError as error:
                raise InvalidInputError(
                    f"sensitive_features[{name!r}] must be one of {list(groups)}, as in fit; got {error.args[0]!r}"
                ) from None
            validate.same_length(len(H), **{f"sensitive_features[{name!r}]": len(values)})
            columns += [(code_of == code).astype(np.float64) for code in range(1, len(groups))]
        return np.column_stack([H, *columns])

    def _fit_path(self, data: StackData) -> None:
        k, aware = len(self.names_), data.H.shape[1] - len(self.names_)
        family_of = np.concatenate([base.families(self.names_), np.full(aware, -1, dtype=np.intp)])
        alphas = self._alphas()
        scales = self._scales(k, aware, family_of)
        tuned = isinstance(self.alpha, str) or isinstance(scales, str)
        folds = self._folds_
        if tuned and folds is None:
            folds = assign_folds(data.contrasts, self._n_folds(), self.random_state)
        common: dict[str, Any] = {
            "alphas": alphas,
            "kind": self.path,
            "n_points": int(self.n_points),
            "weight": self.weight,
        }
        if self.loss == "squared":
            fitted = fit_squared(data, folds if tuned else None, family_of=family_of, family_scales=scales, **common)
        else:
            flat = np.where(family_of < 0, FREE, 1.0) if isinstance(scales, str) else scales
            use = folds if isinstance(self.alpha, str) else None
            fitted = fit_iterative(data, use, loss=self.loss, scale=flat, **common)
        self.path_, self.alpha_, self.scales_ = fitted.path, fitted.alpha, fitted.scale
        self.points_, self.cv_fauc_ = fitted.points, fitted.tried
        self._fitted = fitted
        if self.tau is None:
            self._operate(self._best_position())
        else:
            self._operate_at(self._target_for_tau(float(self.tau)))

    def _alphas(self) -> FloatArray:
        if not isinstance(self.alpha, str):
            return np.array([float(self.alpha)])
        if self.alphas is None:
            return PAPER_ALPHAS / 100.0 if self._regression else np.logspace(0.0, 7.0, 22)
        grid = np.sort(validate.column(self.alphas, parameter="alphas").astype(np.float64))
        if len(grid) == 0 or not np.all(np.isfinite(grid)) or grid[0] < 0:
            raise InvalidInputError(f"alphas must be non-negative numbers; got {grid.tolist()[:5]}")
        return grid

    def _scales(self, k: int, aware: int, family_of: IntArray) -> Any:
        if isinstance(self.family_scales, str):
            validate.one_of(self.family_scales, ("cv",), parameter="family_scales")
            several = int(family_of.max()) > 0 and self.loss == "squared" and isinstance(self.alpha, str)
            return "cv" if several or isinstance(self.alpha, str) else np.where(family_of < 0, FREE, 1.0)
        given = np.ones(k) if self.family_scales is None else np.asarray(self.family_scales, dtype=np.float64)
        if isinstance(self.family_scales, dict):
            keys = [name.rpartition("/")[0] for name in self.names_]
            given = np.array([float(self.family_scales.get(key, 1.0)) for key in keys])
        if given.shape != (k,) or not np.all(given > 0):
            raise InvalidInputError(
                f"family_scales must be 'cv', None, a dict of family to scale, or {k} positive numbers; "
                f"got {self.family_scales!r}"
            )
        return np.concatenate([given, np.full(aware, FREE)])

    def _matrix(self, X: Any, sensitive_features: Any) -> FloatArray:
        check_is_fitted(self, "path_")
        if self._is_precomputed():
            H = self._precomputed(X, fitting=False)
        else:
            validate_data(self, X, skip_check_array=True, reset=False)
            H = base.predict_matrix(self.estimators_, X, classes=self._base_classes(), n_jobs=self.n_jobs)
        return self._with_attributes(H, sensitive_features)

    def predict_path(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the scores of every stack on the path, shape (n, n_points)."""
        H = self._matrix(X, sensitive_features)
        return LINKS[self.loss](H @ self.path_.weights.T + self.path_.intercept)

    def _scores(self, X: Any, sensitive_features: Any) -> FloatArray:
        return LINKS[self.loss](self._matrix(X, sensitive_features) @ self.weights_ + self.intercept_)

    def points(
        self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: Any = None, fairness: Any = None
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
            y,
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
        return validate.target(y)
