"""FairStacks: stack models under a constraint on their score bias (Definition 5).

Classifier and regressor share their base: the base models, the path, and its evaluation.
"""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _num_samples as number_of_rows
from sklearn.utils.validation import check_is_fitted, validate_data

from fairfrontier import _validation as validate
from fairfrontier._columns import is_frame, library_of
from fairfrontier._groups import ProbableGroups
from fairfrontier._notebook import stack_html
from fairfrontier._rows import NO_SCORES, Rows
from fairfrontier._scores import positive_labels
from fairfrontier._validation import FloatArray, IntArray, check_finite
from fairfrontier.chunks import Chunks, dask_chunks, is_dask, whole
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.metrics._contrasts import Contrasts, attributes_of, build_contrasts, row_masks
from fairfrontier.metrics._evaluation import masks_of_chunks
from fairfrontier.metrics._sums import KeyedSums, keyed_sums
from fairfrontier.optimize import _base_models as base
from fairfrontier.optimize._base_models import fit_group_columns, fit_probable_columns, wants_group_models
from fairfrontier.optimize._cross_validation import StackRows
from fairfrontier.optimize._decision_path import DecisionPath, decision_path
from fairfrontier.optimize._fitting import (
    FEATURES,
    InUnits,
    RidgeUnits,
    check_groups_given,
    explained_by,
    fit_iterative,
    fit_stacks,
    indicator_names,
    indicators,
    ridge_scales,
    ridges,
)
from fairfrontier.optimize._folds import Folds, assign_folds, check_classes, chunk_folds
from fairfrontier.optimize._losses import LOSSES, named_loss
from fairfrontier.optimize._mixture import TwoStacks
from fairfrontier.optimize._operating_point import OperatingPoint, Selection, StackPath
from fairfrontier.optimize._ridge_path import TAU_ADVICE
from fairfrontier.optimize._selection import CalibrationRows, Confidence, calibration_parts, checked_limits, select
from fairfrontier.quantify._weights import StepWeight, as_weight

DEFAULT_WEIGHT = StepWeight(0.8)
# More stacks than this are no path but a mistake, and would not fit into memory.
_MOST_POINTS = 10_000


class BaseFairStacks(BaseEstimator):
    """What the classifier and the regressor share."""

    _regression = False
    # What a stack that 0.1.0 saved does not have.
    _has_names = True
    min_fairness: float | None = None
    confidence: float | None = None
    randomize = False
    group_models: Any = "auto"
    expand: Any = "auto"
    refit = True
    memory: Any = None
    verbose = 0
    passthrough = False
    # Estimators that give a column for each of their own models, and whether labels were 0 and 1 to them.
    _expanded: tuple[str, ...] = ()
    _encoded = False
    # The dataframe library of results.
    _library = "pandas"
    # None: the operating point was not selected, and does not randomise.
    selection_: Selection | None = None
    mixture_: TwoStacks | None = None
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
        loss: Any = "squared",
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
        min_fairness: float | None = None,
        confidence: float | None = None,
        randomize: bool = False,
        group_models: Any = "auto",
        expand: Any = "auto",
        refit: bool = True,
        memory: Any = None,
        verbose: int = 0,
        passthrough: bool = False,
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
        self.min_fairness = min_fairness
        self.confidence = confidence
        self.randomize = randomize
        self.group_models = group_models
        self.expand = expand
        self.refit = refit
        self.memory = memory
        self.verbose = verbose
        self.passthrough = passthrough

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the estimators as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if not deep:
            return params
        for name, model in self._named_estimators():
            params.setdefault(name, model)
            if hasattr(model, "get_params") and not isinstance(model, type):
                params.update({f"{name}__{key}": value for key, value in model.get_params(deep=True).items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a name of the estimators replaces that estimator, ``name__parameter`` sets one of its own."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        own = self.get_params(deep=False)
        given = dict(self._named_estimators())
        replaced = {name: params.pop(name) for name in list(params) if name in given and name not in own}
        if replaced:
            self.estimators = [(name, replaced.get(name, model)) for name, model in given.items()]
        super().set_params(**params)
        return self

    def _named_estimators(self) -> list[tuple[str, Any]]:
        """Return the estimators that have names, whatever else is among them: `fit` complains."""
        if not isinstance(self.estimators, (list, tuple)):
            return []
        pairs = [one for one in self.estimators if isinstance(one, (list, tuple)) and len(one) == 2]
        return [(name, model) for name, model in pairs if isinstance(name, str)]

    def _get_metadata_request(self) -> Any:
        """Return what metadata the methods want: an attribute-aware stack wants the attribute everywhere."""
        requests = super()._get_metadata_request()
        if self.attribute_aware and not hasattr(self, "_metadata_request"):
            for method in ("predict", "predict_proba", "decision_function", "score"):
                if "sensitive_features" in getattr(requests, method).requests:
                    getattr(requests, method).add_request(param="sensitive_features", alias=True)
        return requests

    def __getstate__(self) -> Any:
        # What `add_estimators` starts from is as large as the data: it is not copied, sent or saved.
        return {name: value for name, value in super().__getstate__().items() if name != "_held_out"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimators, (list, tuple)):  # anything else is refused by fit
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
        self._library = library_of(X, sensitive_features, y)
        # Base models and folds take the most probable group of a row, the stack its probabilities.
        probable = self._probable(sensitive_features)
        certain = sensitive_features if probable is None else {probable.name: probable.likely()}
        rows = self._fit_rows(X, y, certain, sample_weight)
        attributes = rows.sensitive
        if not isinstance(self.fairness, str):
            self._groups_ = _groups(rows)
            rows = rows.with_masks(row_masks(self.fairness, len(rows)))
        contrasts = self._describe(keyed_sums(rows, labelled=not self._regression, threshold=None))
        codes = rows.cells(labelled=not self._regression).codes
        H, folds = self._fit_base(X, rows, codes, contrasts, probable)
        names = self.names_
        if self.attribute_aware:
            if isinstance(self.fairness, str):
                self._groups_ = _groups(rows)
            H = np.column_stack([H, indicators(attributes, self._groups_, len(H))])
            names = (*names, *indicator_names(self._groups_))
        if isinstance(self.alpha, str) and folds is None:
            folds = assign_folds(codes, contrasts, 5 if isinstance(self.cv, str) else self.cv, self.random_state)
        rows = replace(rows, scores=H, names=names, fold=folds)
        if probable is not None:
            rows = rows.spread(probable)
            self.group_sizes_ = self._effective_sizes(rows)
        units = self._units(whole(rows))
        rows = rows if units is None else units(rows)
        data = self._stack_rows(whole(rows), Folds() if isinstance(self.alpha, str) else None)
        self._fit_path(data, rows, units)
        return self

    def _units(self, chunks: Chunks) -> InUnits | None:
        """Return the step that makes a regression independent of the units of its target; None: there is none."""
        if not self._regression:
            return None
        return InUnits.of(chunks, len(self.names_), fairness=self.fairness, sensitive_mode=self.sensitive_mode)

    def _fit_rows(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Rows:
        """Return the validated rows of a fit, without scores."""
        if y is None:
            raise InvalidInputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if getattr(y, "ndim", 1) == 2:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: its only column is taken",
                DataConversionWarning,
                stacklevel=3,
            )
        n_rows = number_of_rows(next(iter(X.values()), []) if validate.by_name(X) else X)
        if n_rows == 1:
            raise InvalidInputError("X must have at least 2 rows; got n_samples=1: no two groups are in one row")
        validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        if sensitive_features is None and (isinstance(self.fairness, str) or self.attribute_aware):
            raise InvalidInputError(
                "sensitive_features must be given, one value per row: fit(X, y, sensitive_features=data['sex']); "
                "with sklearn.set_config(enable_metadata_routing=True) a Pipeline or a search passes it on"
            )
        options: dict[str, Any] = {"sample_weight": sample_weight, "whole": True, "needs_attributes": False}
        rows = Rows.validated(y, NO_SCORES, sensitive_features, target="y", **options)
        validate.same_length(len(rows), "y", X=n_rows)
        return replace(rows, y=self._fit_target(np.asarray(rows.y)))

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
        A given alpha takes two passes over the rows, tuning takes three, and a regression one more. Folds are the
        chunks' own column of folds, a `PredefinedSplit` as `cv`, or drawn from a hash of the row's
        number and `random_state`.

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
        masked = masks_of_chunks(self.fairness, chunks)
        tuned = isinstance(self.alpha, str)
        self.estimators_: list[tuple[str, Any]] = []
        self.names_ = base.column_names(self.estimators, chunks.names, len(chunks.names))
        self.n_features_in_ = len(self.names_)
        unnamed = chunks.names == base.numbered(len(chunks.names)) and isinstance(self.estimators, str)
        self._has_names = not unnamed
        units = self._units(masked)
        masked = masked if units is None else masked.map(units)
        data = self._stack_rows(masked, chunk_folds(self.cv, self.random_state) if tuned else None)
        self._describe(data.moments.keyed)
        self._fit_path(data, None, units)
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

    def _stack_rows(self, chunks: Chunks, folds: Folds | None) -> StackRows:
        return StackRows(
            chunks,
            fairness=self.fairness,
            sensitive_mode=self.sensitive_mode,
            regression=self._regression,
            threshold=float(self.threshold),
            folds=folds,
        )

    def _describe(self, keyed: KeyedSums) -> Contrasts:
        """Set what a fit tells about its rows (classes, groups and their sizes), and return their contrasts."""
        options: dict[str, Any] = {"sensitive_mode": self.sensitive_mode}
        contrasts = build_contrasts(self.fairness, keyed.keys, keyed.attributes, **options)
        sizes = (contrasts.membership @ keyed.rows).tolist()
        self.group_sizes_ = dict(zip(contrasts.sets.names, sizes, strict=True))
        if isinstance(self.fairness, str):
            attributes = attributes_of(keyed.keys, keyed.attributes)
            self._groups_ = [(attribute.name, attribute.values) for attribute in attributes]
        if contrasts.classes is not None:
            self._keep_classes(contrasts, keyed)
        return contrasts

    def _check_parameters(self) -> None:
        loss, _ = named_loss(self.loss, regression=self._regression)
        validate.one_of(self.path, ("signed", "paper"), parameter="path")
        if callable(self.fairness):
            raise InvalidInputError(
                "fairness must be a measure's name or pairs of masks, which are linear in the scores; got a function, "
                "which can evaluate a stack (points, tradeoff_points) but not constrain it"
            )
        validate.number(self.threshold, parameter="threshold", low=0.0, high=1.0)
        if validate.number(self.n_points, parameter="n_points", low=1, high=_MOST_POINTS) != int(self.n_points):
            raise InvalidInputError(f"n_points must be a whole number; got {self.n_points!r}")
        if self.tau is not None:
            validate.number(self.tau, parameter="tau", low=0.0, advice=TAU_ADVICE)
        ridges(self.alpha, self.alphas, loss=loss, regression=self._regression)
        as_weight(self.weight)
        if self.min_fairness is None and (self.confidence is not None or self.randomize):
            raise InvalidInputError("min_fairness must be given with confidence or randomize, which are about it")
        if self.min_fairness is not None and self.tau is not None:
            raise InvalidInputError("give one of tau and min_fairness: both choose the operating point")

    def _evaluation_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, fairness: Any
    ) -> tuple[Rows, IntArray, Contrasts]:
        """Return rows to evaluate the stack on, with its base models' predictions, their cells and the measure."""
        measure = self._measure(fairness)
        named = isinstance(measure, str)
        validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        if sensitive_features is not None:
            sensitive_features = validate.attribute_columns(sensitive_features)
        options: dict[str, Any] = {"sample_weight": sample_weight, "whole": True, "needs_attributes": named}
        rows = Rows.validated(self._target(y), self._matrix(X, sensitive_features), sensitive_features, **options)
        if not named:
            rows = rows.with_masks(row_masks(measure, len(rows)))
        cells = rows.cells(labelled=not self._regression)
        contrasts = build_contrasts(measure, cells.keys, cells.attributes, sensitive_mode=self.sensitive_mode)
        return rows, cells.codes, contrasts

    def _measure(self, fairness: Any) -> Any:
        """Return the measure to evaluate by: another than that of the fit, or that of the fit if it has a name."""
        if fairness is None and not isinstance(self.fairness, str):
            raise InvalidInputError(
                "fairness must be given: the stack was fitted with masks of its own rows, which say nothing about "
                "others; pass masks of these rows, or a measure's name"
            )
        return self.fairness if fairness is None else fairness

    def _is_precomputed(self) -> bool:
        asked = isinstance(self.estimators, str) and self.estimators == base.PRECOMPUTED
        return asked or (isinstance(self.cv, str) and self.cv == base.PRECOMPUTED)

    def _probable(self, sensitive_features: Any) -> ProbableGroups | None:
        """Return groups that are only probable as the stack takes them; None: the groups are certain."""
        if not isinstance(sensitive_features, ProbableGroups):
            return None
        if self._loss_name in ("squared", "log"):
            return sensitive_features.for_stack()
        if sensitive_features.independent_given == "group":
            raise InvalidInputError(
                f"loss={self.loss!r} takes no degrees below 0, which independent_given='group' has: use "
                "loss='squared', or independent_given='probabilities'"
            )
        return sensitive_features

    def _effective_sizes(self, rows: Rows) -> dict[str, int]:
        """Return how many certain rows would tell as much about each row set as rows that count by degrees (Kish)."""
        cells = rows.cells(labelled=not self._regression)
        options: dict[str, Any] = {"sensitive_mode": self.sensitive_mode}
        contrasts = build_contrasts(self.fairness, cells.keys, cells.attributes, **options)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        total, square = (contrasts.membership @ np.bincount(cells.codes, w) for w in (weight, weight**2))
        sizes = np.maximum(np.rint(total**2 / square), 1.0).astype(int)
        return dict(zip(contrasts.sets.names, sizes.tolist(), strict=True))

    def _fit_base(
        self, X: Any, rows: Rows, codes: IntArray, contrasts: Contrasts, probable: ProbableGroups | None
    ) -> tuple[NDArray[np.floating[Any]], IntArray | None]:
        """Return the predictions that the stack is fitted to and their folds, and set names and fitted models."""
        if isinstance(self.cv, str):
            validate.one_of(self.cv, (base.PREFIT, base.PRECOMPUTED), parameter="cv")
        if self._is_precomputed():
            if self.passthrough:
                raise InvalidInputError("passthrough must be False with precomputed predictions: there are no features")
            self.estimators_ = []
            return self._precomputed(X, fitting=True), None
        validate_data(self, X, skip_check_array=True)
        X = base.as_rows(X)
        models = base.check_estimators(self.estimators, fitted=isinstance(self.cv, str))
        self._check_names(models)
        self._expanded = base.expanded_names(models, self.expand)
        if self.passthrough:
            self._expanded = (*self._expanded, FEATURES)
        self._encoded = not isinstance(self.cv, str)
        if isinstance(self.cv, str):
            models = [*models, *(base.fit_features(X, rows.weight).estimators if self.passthrough else [])]
            self.estimators_ = models
            many = {name: base.member_names(name, model) for name, model in models if name in self._expanded}
            self.names_ = tuple(one for name, _ in models for one in many.get(name, (name,)))
            return base.predict_matrix(models, X, **self._base_options()), None
        known = self.__dict__.pop("_known", None)
        folds = assign_folds(codes, contrasts, self.cv, self.random_state) if known is None else known[1]
        check_classes(folds, codes, contrasts)
        options = self._fit_options(rows.weight)
        target = np.asarray(rows.y) if self._regression else contrasts.label[codes].astype(np.intp)
        new = models if known is None else [pair for pair in models if pair[0] not in dict(known[0].estimators)]
        found = base.fit_base_models(new, X, target, folds, options) if new else None
        if known is not None:
            found = known[0] if found is None else known[0] + found
        elif found is not None and self._adds_group_models(found.names):
            if probable is not None and probable.is_partition:
                found += fit_probable_columns(
                    X, rows.spread(probable.assuming("probabilities")), folds, options, self.fairness
                )
            else:
                found += fit_group_columns(X, codes, contrasts, folds, options, fairness=self.fairness)
        assert found is not None  # there is at least one estimator
        if self.passthrough and known is None:
            found += base.fit_features(X, rows.weight)
        self._held_out = found, folds
        self.estimators_, self.names_ = found.estimators, found.names
        return found.matrix, folds

    def _fit_options(self, sample_weight: FloatArray | None) -> base.FitOptions:
        return base.FitOptions(
            classes=self._base_classes(),
            expanded=self._expanded,
            sample_weight=sample_weight,
            refit=bool(self.refit),
            memory=self.memory,
            verbose=int(self.verbose),
            n_jobs=self.n_jobs,
        )

    def _check_names(self, models: Sequence[tuple[str, Any]]) -> None:
        """Raise if the name of an estimator would be taken for a parameter."""
        own = self.get_params(deep=False)
        for name, _ in models:
            if name in own or "__" in name:
                raise InvalidInputError(
                    f"estimators must have names without '__' and other than the parameters of {type(self).__name__}; "
                    f"got {name!r}: rename it"
                )

    def add_estimators(
        self, estimators: Any, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Return this stack with further base models, of which only these are fitted.

        Parameters
        ----------
        estimators : list of (name, estimator)
            Unfitted models with new names.
        X, y, sensitive_features, sample_weight
            The rows of the first fit, in their order.

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A stack of all models, in the same folds; this one stays as it is.

        Notes
        -----
        The predictions of the models that are there are kept in memory with the stack, not in copies and files of it;
        with `memory` any later fit finds them again.
        """
        check_is_fitted(self, "path_")
        known = getattr(self, "_held_out", None)
        if known is None:
            raise InvalidInputError(
                "add_estimators needs a stack of unfitted estimators as fit left it; a copy or a loaded one has no "
                "predictions of its rows: fit with memory='a folder' and fit again"
            )
        if len(known[1]) != number_of_rows(X):
            raise InvalidInputError(f"X must be the {len(known[1])} rows of the fit; got {number_of_rows(X)}")
        other = clone(self).set_params(estimators=[*self.estimators, *estimators])
        other._known = known
        other.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return cast(Self, other)

    def _adds_group_models(self, names: Sequence[str]) -> bool:
        """Tell whether models of the attribute join the stack; one that is given the attribute needs none."""
        options = {"fairness": self.fairness, "loss": self._loss_name, "path": self.path}
        return not self.attribute_aware and wants_group_models(self.group_models, names, **options)

    def _precomputed(self, X: Any, *, fitting: bool) -> NDArray[np.floating[Any]]:
        """Return precomputed predictions; where they have names, the names decide which column is which model."""
        validate.refuse_masked(X, parameter="X")
        named = validate.by_name(X) or is_frame(X)
        if named:
            preds = validate.predictions(X)
            # Where a dataframe was fitted, scikit-learn refuses another order of its columns; a dict has no order.
            by_column = is_frame(X) and (fitting or hasattr(self, "feature_names_in_"))
            if not fitting and not by_column and self._has_names:
                base.check_names(preds.names, self.names_)
            validate_data(self, X if by_column else preds.matrix, skip_check_array=True, reset=fitting)
        else:
            options: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": False}
            matrix = validate_data(self, X, reset=fitting, **options)
            preds = validate.Predictions(matrix, base.numbered(matrix.shape[1]), named=False)
        if fitting:
            self.names_ = base.column_names(self.estimators, preds.names, preds.matrix.shape[1])
            self._has_names = named or not isinstance(self.estimators, str)
        elif not self._has_names:
            preds = replace(preds, named=False)
        H = preds.aligned(self.names_).matrix
        check_finite(H, self.names_)
        if fitting and not self._regression and isinstance(self.estimators, str):
            base.warn_of_features(H, self.names_)
        return np.asarray(H)

    def _fit_path(self, data: StackRows, rows: Rows | None, units: InUnits | None) -> None:
        """Fit the path to the rows, which are all in memory (`rows`) or in chunks."""
        loss, parameter = named_loss(self.loss, regression=self._regression)
        points = {"n_points": int(self.n_points), "weight": self.weight}
        if rows is None or loss == "squared":
            options = {name: getattr(self, name) for name in ("alpha", "alphas", "family_scales", "path")}
            fitted = fit_stacks(data, self.names_, **options, **points)
        else:
            n_models = len(self.names_)
            by_default = isinstance(self.alpha, str) and self.alphas is None
            of_ridge = RidgeUnits.of(data.statistics(), n_models) if by_default else RidgeUnits()
            n_free = len(data.names) - n_models
            scales = ridge_scales(self.family_scales, self.names_, n_free, tuned=False, free=of_ridge.free)
            grid = ridges(self.alpha, self.alphas, loss=loss, regression=self._regression, unit=of_ridge.ridge)
            of_loss = {"loss": loss, "parameter": parameter, "scale": scales, "tau": self.tau}
            fitted = fit_iterative(data, rows, alphas=grid, kind=self.path, **of_loss, **points)
        fitted = fitted if units is None else units.undo(fitted)
        path = replace(fitted.path, names=self._column_names(), library=self._library)
        fitted = replace(fitted, path=path, points=replace(fitted.points, library=self._library))
        self._fitted = fitted
        self.path_, self.alpha_, self.scales_ = fitted.path, fitted.alpha, fitted.scale
        self.points_, self.cv_fauc_ = fitted.points, fitted.tried
        self._operate(self._stack_path().initial(self.weight))
        if self.min_fairness is not None:
            chosen = self.select(self.min_fairness, confidence=self.confidence, randomize=self.randomize)
            self.__dict__.update(chosen.__dict__)

    def at(self, *, tau: float | None = None, target: Any = None) -> Self:
        """Return this model at another operating point.

        Parameters
        ----------
        tau : float, optional
            Largest absolute score bias (the constrained form, Eq. 3).
        target : float or array-like of shape (m,), optional
            Score bias exactly t; may have the other sign than the unconstrained stack's.

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A fitted copy; the path is shared.

        Notes
        -----
        Exact with the squared loss. Other losses have no closed form, and a fitted stack keeps no rows: between
        two points of the path the stack is their mixture, which has the score bias asked for and is nearly optimal.
        With several contrasts `tau` is then met by scaling all of b₀, which is feasible and not the optimum of Eq. 3;
        the `tau` of the constructor is solved exactly.
        """
        check_is_fitted(self, "path_")
        return self._moved(self._stack_path().at(tau=tau, target=target))

    def select(
        self,
        min_fairness: float | None = None,
        *,
        min_ratio: float | None = None,
        max_accuracy_loss: float | None = None,
        min_rate: float | None = None,
        confidence: float | None = None,
        calibration: Any = None,
        randomize: bool = False,
        secret: bytes | str | None = None,
    ) -> Self:
        """Return this model at the most accurate place of its path that is fair enough.

        Parameters
        ----------
        min_fairness : float, optional
            Least fairness, in [0, 1].
        min_ratio : float, optional
            Least quotient of the lowest and the highest rate of positive decisions, in [0, 1]; for demographic parity.
        max_accuracy_loss : float, optional
            Largest loss of accuracy against the unconstrained stack. Alone, it asks for the fairest place within it.
        min_rate : float, optional
            Least rate of positive decisions in every row set (for equal opportunity: true positive rate), so that
            fairness is not had by levelling down. As estimated; a confidence does not promise it. Alone, it asks for
            the fairest such place.
        confidence : float, optional
            Promise what is asked for with this confidence, in (0, 1). None: delivered in half of the cases, see Notes.
        calibration : (X, y, sensitive_features), optional
            Rows that nothing was fitted to, for a promise that is valid whatever their number; y may be None for
            demographic parity. Without them the promise rests on out-of-fold decisions, and is approximate.
        randomize : bool, default=False
            Let one of two stacks, or a stack or the constant model, decide on each record, drawn by its id: any
            fairness in between can be had. `predict_proba` then returns probabilities of acceptance.
        secret : bytes or str, optional
            The key of the draws, at least 16 bytes; None: a random one.

        Returns
        -------
        FairStacksClassifier or FairStacksRegressor
            A fitted copy; `selection_` says what was asked, estimated, promised and given up, each group's rate before
            and after, and prints.

        Raises
        ------
        InfeasibleError
            If requests contradict each other, or nothing can be promised; it says what can.

        Notes
        -----
        The signed bias of the out-of-fold decisions is smoothed along the path, on which it is nearly monotone, and
        what is compared with the request is the median of the bias that new rows will show, given the standard errors
        of all rates: the largest of several noisy gaps is larger than the largest gap. Where the stack of all rows
        decides otherwise than those of the folds, beyond the error, both must be fair enough. A place between two
        points of the path has its own exact stack. Where no stack is fair enough, or none more accurate than the
        constant model, that is the answer, and `selection_` says so.
        """
        check_is_fitted(self, "path_")
        options: dict[str, Any] = {"fairness": self.fairness, "regression": self._regression, "randomize": randomize}
        limits = checked_limits(min_fairness, min_ratio, max_accuracy_loss, min_rate, **options)
        sure = self._confidence(confidence, calibration)
        options = {"confidence": sure, "randomize": randomize, "secret": secret}
        return self._moved(select(self._stack_path(), limits, self.group_sizes_, **options))

    def _confidence(self, confidence: Any, calibration: Any) -> Confidence | None:
        """Return with which confidence to promise and on which rows; None: nothing is promised."""
        if confidence is None:
            if calibration is not None:
                raise InvalidInputError("calibration needs a confidence: select(..., confidence=0.95, calibration=...)")
            return None
        level = validate.number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True)
        if self._regression:
            raise InvalidInputError("confidence is for decisions; a regression has none: ask for min_fairness alone")
        disjoint = isinstance(self.fairness, str)
        if calibration is None:
            return Confidence(level, None, disjoint)
        X, y, sensitive = calibration_parts(calibration, self.fairness)
        H, labels = self._matrix(X, sensitive), None if y is None else self._target(y)
        rows = Rows.validated(labels, H, sensitive, whole=True, target="y")
        options = {"fairness": self.fairness, "sensitive_mode": self.sensitive_mode}
        return Confidence(level, CalibrationRows.of(rows, self.group_sizes_, **options), disjoint)

    @property
    def _loss_name(self) -> str:
        return named_loss(self.loss, regression=self._regression)[0]

    def _stack_path(self) -> StackPath:
        return StackPath(self._fitted, self._loss_name, float(self.threshold), self._regression, self.tau)

    def _operate(self, point: OperatingPoint) -> None:
        """Go to an operating point."""
        self.weights_, self.intercept_, self.target_ = point.weights, point.intercept, point.target
        self.mixture_, self.selection_ = point.mixture, point.selection

    def _moved(self, point: OperatingPoint) -> Self:
        """Return a copy at an operating point."""
        other = copy.copy(self)
        other._operate(point)
        return other

    def _base_options(self) -> dict[str, Any]:
        return {"classes": self._base_classes(), "expanded": self._expanded, "n_jobs": self.n_jobs}

    def _feature_rows(self, X: Any) -> Any:
        """Return features, after a check, as the base models take them."""
        rows = base.as_rows(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return rows

    def _indicators(self, X: Any, sensitive_features: Any, n_rows: int) -> FloatArray:
        """Return the indicators of the attribute (n, q) that an attribute-aware stack has beside its models."""
        validate.same_order(X=X, sensitive_features=sensitive_features)
        return indicators(check_groups_given(sensitive_features), self._groups_, n_rows)

    def _matrix(self, X: Any, sensitive_features: Any) -> NDArray[np.floating[Any]]:
        """Return the predictions of the base models, and the attribute's indicators where the stack has them."""
        check_is_fitted(self, "path_")
        if self._is_precomputed():
            H = self._precomputed(X, fitting=False)
        else:
            H = base.predict_matrix(self.estimators_, self._feature_rows(X), **self._base_options())
        return np.column_stack([H, self._indicators(X, sensitive_features, len(H))]) if self.attribute_aware else H

    def _repr_html_(self) -> str:
        if not hasattr(self, "path_"):
            return str(super()._repr_html_())
        fairness, accuracy = self.points_.fairness[:-1], self.points_.accuracy[:-1]
        support = taf_curve(fairness, accuracy).support
        nearest = int(np.argmin(np.abs(self.path_.target - self.target_).reshape(len(self.path_), -1).max(axis=1)))
        chosen = (float(fairness[nearest]), float(accuracy[nearest]))
        if self.selection_ is not None:
            chosen = (self.selection_.estimated, self.selection_.accuracy)
        return stack_html(
            type(self).__name__, self._column_names(), self.weights_, fairness, accuracy, support, chosen=chosen
        )

    def _column_names(self) -> tuple[str, ...]:
        """Return the names of the columns of `weights_`: base models, and indicators of the attribute."""
        return (*self.names_, *(indicator_names(self._groups_) if self.attribute_aware else ()))

    def predict_path(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the scores of every stack on the path, shape (n, n_points)."""
        return self._path_scores(self._matrix(X, sensitive_features))

    def _path_scores(self, H: NDArray[Any]) -> FloatArray:
        """Return the scores of every stack on the path from the predictions of the base models."""
        return LOSSES[self._loss_name].link(H @ self.path_.weights.T + self.path_.intercept)

    def _scores(self, X: Any, sensitive_features: Any) -> FloatArray:
        check_is_fitted(self, "path_")
        if self._is_precomputed():
            return self._scores_of(self._matrix(X, sensitive_features))
        k = len(self.names_)
        rows, weights = self._feature_rows(X), np.asarray(self.weights_[:k])
        total = base.weighted_sum(self.estimators_, rows, weights, **self._base_options())
        if self.attribute_aware:
            total = total + self._indicators(X, sensitive_features, len(total)) @ self.weights_[k:]
        return LOSSES[self._loss_name].link(total + self.intercept_)

    def _scores_of(self, H: NDArray[Any]) -> FloatArray:
        """Return the scores at the operating point from the predictions of the base models."""
        return LOSSES[self._loss_name].link(H @ self.weights_ + self.intercept_)

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
        validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        if sensitive_features is not None:
            sensitive_features = validate.attribute_columns(sensitive_features)
        scores = self.predict_path(X, sensitive_features=sensitive_features)
        names = [f"stack {index:02d}" for index in range(scores.shape[1])]
        target = self._target(y)
        points = tradeoff_points(
            target,
            dict(zip(names, scores.T, strict=True)),
            sensitive_features=sensitive_features,
            fairness=self._measure(fairness),
            accuracy="r2" if self._regression else "accuracy",
            threshold=self.threshold,
            sensitive_mode=self.sensitive_mode,
            sample_weight=sample_weight,
        )
        residual = self._fitted.residual
        if residual is None:
            return points
        weight = validate.sample_weights(sample_weight, len(scores))
        return explained_by(residual, points, np.asarray(target, dtype=np.float64), scores, weight)

    def _base_classes(self) -> NDArray[Any] | None:
        return None

    def _fit_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the target of a fit."""
        return self._target(y)

    def _target(self, y: Any) -> NDArray[Any]:
        """Return the target of rows to evaluate the stack on."""
        values = validate.column(y, parameter="y")
        if values.dtype.kind == "c":
            raise InvalidInputError("Complex data not supported: y must be real numbers")
        return validate.target(values)

    def _keep_classes(self, contrasts: Contrasts, keyed: KeyedSums) -> None:
        """Keep the two classes of a classifier, after a check that each has weight."""


def _groups(rows: Rows) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the groups of each attribute of rows, the largest first."""
    cells = rows.cells(labelled=False)
    found = attributes_of(cells.keys, cells.attributes)
    of_rows = [replace(attribute, codes=attribute.codes[cells.codes]).by_size() for attribute in found]
    return [(attribute.name, attribute.values) for attribute in of_rows]


class FairStacksClassifier(ClassifierMixin, BaseFairStacks):
    """Classify with the best linear combination of models under a bias constraint.

    The whole path, from the most accurate stack over the fairest to one that over-corrects, comes from one
    factorisation; `at` and `select` move along it without fitting again.

    Parameters
    ----------
    estimators : list of (name, estimator), or "precomputed"
        The base models. A name such as ``"forest/3"`` puts a model in a family. With "precomputed", X is the matrix of
        their predictions. Classifiers are fitted to 0 and 1, the classes in sorted order, whatever the labels are.
    fairness : str or list of (mask, mask)
        The measure; see `tradeoff_points`.
    loss : {"squared", "log", "hinge"}
        The loss; only "squared" has a closed form. With "log" the score whose bias is constrained is the linear
        predictor, with "hinge" the margin.
    path : {"signed", "paper"}
        "signed" goes from the unconstrained score bias through zero to the other sign, where the fairest *decisions*
        often are. "paper" is the published method.
    tau : float, optional
        Largest absolute score bias of the operating point; None chooses the point with the best cross-validated FAUC.
    alpha : float or "cv"
        The ridge: (alpha/2)·‖Dw‖² beside a sum over rows.
    alphas : array-like, optional
        What "cv" tries; None: 22 log-spaced values from 10⁻² to 10⁵ times the total weight times the mean square of the
        centred predictions, so that the scales of weights and scores do not matter (20 up to 10^3.5 for regression; 5
        up to 10² for losses without a closed form, where each costs a path of solutions a fold).
    family_scales : "cv", None, dict of family to scale, or array-like of shape (k,)
        D. "cv" tries a common scale and, with several families, the scales of the largest evidence, and gives the
        debiasing directions of the signed path a ridge of their own; where alpha is a number or the loss is not
        squared, nothing is tried and the scale is common. None: one ridge for everything.
        A base model named ``group/what/learner`` is a model of the attribute (`learners.fit_group_models`): the
        directions of the signed path shrink towards its contrast.
    weight : Weight or callable
        Weight of the FAUC that is tuned.
    cv : int, splitter, list of (train, test), "prefit" or "precomputed"
        Folds for the base models' out-of-fold predictions and for tuning, stratified by label and group. "prefit" takes
        fitted estimators, "precomputed" predictions; both tune with 5 folds.
    n_points : int
        Stacks on the path.
    attribute_aware : bool
        Let the stack use the sensitive attribute itself, which must then be given at prediction. That is disparate
        treatment, in many places unlawful; hence opt-in.
    sensitive_mode : {"separate", "intersectional"}
        With several attributes.
    threshold : float
        A score strictly above it is the positive class.
    n_jobs : int, optional
        Jobs for fitting and predicting base models.
    random_state : int, RandomState or None
        Seed of the folds.
    min_fairness : float, optional
        The operating point is the one that `select` finds for this fairness; `selection_` says what it found.
    confidence : float, optional
        As in `select`: the fairness is promised with this confidence.
    randomize : bool
        As in `select`: the operating point may randomise between neighbours.
    group_models : "auto", bool or None
        Whether models of the attribute, fitted to it in the same folds from the same features, join unfitted estimators
        (``group/…`` in `names_`): the direction in which scores are debiased is then the better. "auto": with the
        squared loss, the signed path and a measure by name, unless there is such a model among the estimators. They
        need no attribute at prediction.
    expand : "auto" or bool
        Whether a forest or a family (`MinipatchTrees`) among the estimators enters model by model, as ``name/i``.
        "auto": where its name has no slash; one with a slash is a model of a family already. A list of estimators, such
        as `classifier_zoo`, is a family of its own; fitted families (`kitchen_sink`) are taken with ``cv="prefit"``.
        Models that leave rows out (bootstrap samples, minipatches) are fitted once, and judged by these rows.
    refit : bool
        Whether unfitted estimators are fitted again to all rows. False: the mean of the models of the folds predicts,
        the very models that the stack was fitted to, at several times the cost of a prediction.
    memory : str or joblib.Memory, optional
        Where fitted base models are cached, so that a later fit repeats nothing.
    verbose : int
        Progress of the base models, as in joblib.
    passthrough : bool
        Whether the columns of X, too, enter the stack, as in `StackingClassifier`: as ``features/column``, a family of
        its own, numbers standardised and categories as indicators.

    Attributes
    ----------
    path_ : FairPath
        The stacks: targets, score biases, weights, constants, KKT residuals.
    weights_, intercept_, target_
        The operating point.
    alpha_ : float
        The ridge in use.
    scales_ : ndarray of shape (k,)
        D in use; infinite for models of a family that was left out.
    points_ : TradeoffPoints
        Cross-validated value of each stack on the path (on the training rows if nothing was tuned).
    cv_fauc_ : dict
        Cross-validated FAUC of each choice of family scales.
    classes_ : ndarray of shape (2,)
        The classes; the second is positive.
    estimators_ : list of (name, fitted estimator)
        The base models.
    names_ : tuple of str
        Names of the base models, the columns of `weights_`: an expanded forest has one for each tree.
    group_sizes_ : dict of str to int
        Training rows in each row set of the measure; of groups that are only probable, how many certain rows would tell
        as much.

    Notes
    -----
    See `fairfrontier.optimize._ridge_path` for the algebra. The constant model is in the stack and carries no penalty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 400)
    >>> y = (rng.random(400) < 0.3 + 0.3 * sex).astype(int)
    >>> H = np.clip(np.stack([0.6 * y + 0.2 * sex, 0.5 * y], axis=1) + rng.normal(0, 0.3, (400, 2)), 0, 1)
    >>> model = FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=sex)
    >>> bool(abs(model.at(tau=0.0).weights_ @ (H[sex == 0].mean(0) - H[sex == 1].mean(0))) < 1e-12)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _fit_target(self, y: NDArray[Any]) -> NDArray[Any]:
        if y.dtype.kind == "f":
            validate.finite(y, parameter="y")
        if y.dtype.kind == "O" and all(isinstance(value, (int, np.integer, bool, np.bool_)) for value in y.tolist()):
            y = y.astype(np.intp)  # numbers that lost their type in a dataframe of several
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multiclass":
            raise InvalidInputError(
                f"Only binary classification is supported. The type of the target is {kind}: merge classes, or fit one "
                "stack per class"
            )
        return y

    def _keep_classes(self, contrasts: Contrasts, keyed: KeyedSums) -> None:
        self.classes_ = np.array(contrasts.classes)
        for label, name in zip((False, True), self.classes_, strict=True):
            if keyed.sums.weight[contrasts.label == label].sum() == 0:
                raise InvalidInputError(
                    f"sample_weight must leave each class some weight; class {name!r} has none: give it rows that count"
                )

    def _target(self, y: Any) -> NDArray[Any]:
        """Return y as booleans, True for the second class of the fit."""
        return positive_labels(y, self.classes_)

    def _base_classes(self) -> NDArray[Any] | None:
        return np.array([0, 1]) if self._encoded else self.classes_

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the score minus the threshold, shape (n,): above 0 is the second class.

        Of a model that randomises: the probability of the second class minus one half.
        """
        if self.mixture_ is not None:
            return self.predict_proba(X, sensitive_features=sensitive_features)[:, 1] - 0.5
        return self._scores(X, sensitive_features) - self.threshold

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the score clipped to [0, 1] as the probability of the second class, shape (n, 2).

        Of a model that randomises: the exact probability with which it decides for the second class.
        """
        if self.mixture_ is not None:
            positive = self.mixture_.accepted(
                self._matrix(X, sensitive_features), LOSSES[self._loss_name].threshold(self.threshold)
            )
        else:
            positive = np.clip(self._scores(X, sensitive_features), 0.0, 1.0)
        return np.stack([1.0 - positive, positive], axis=1)

    def predict(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> NDArray[Any]:
        """Return the predicted classes, shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to predict.
        sensitive_features : array-like, dict or dataframe, optional
            Needed by an attribute-aware stack only.
        ids : iterable of n ids, optional
            The records' ids (str, int or bytes), by which a model that randomises draws; without them rows with the
            same base predictions have the same draw.
        """
        if self.mixture_ is not None:
            H = self._matrix(X, sensitive_features)
            drawn = self.mixture_.decide(H, LOSSES[self._loss_name].threshold(self.threshold), ids)
            return np.asarray(self.classes_[drawn.astype(np.intp)])
        positive = self.decision_function(X, sensitive_features=sensitive_features) > 0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy at the operating point.

        Parameters
        ----------
        X, y, sample_weight
            The rows.
        sensitive_features : array-like, dict or dataframe, optional
            Needed by an attribute-aware stack only.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def decision_path(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, fairness: Any = None
    ) -> DecisionPath:
        """Return the decisions at every position of the path, not only at its points.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            Rows that the stack may or may not have seen.
        fairness : str or masks, optional
            Another measure than the one of the fit; needed where that was masks of other rows.

        Returns
        -------
        DecisionPath
            Positions s are shares of the unconstrained score bias: from 1 to 0 on the paper's path, and on to −1 or
            beyond on the signed one. With several contrasts the signed path is a line of its own, from the
            unconstrained stack at 1 to its end at 0; the paper's path is no line, and this is the line s·b₀.
        """
        check_is_fitted(self, "path_")
        solution = self._fitted.solution
        if solution is None:
            raise InvalidInputError(f"loss must be 'squared': scores are affine along its path only; got {self.loss!r}")
        rows, codes, contrasts = self._evaluation_rows(X, y, sensitive_features, sample_weight, fairness)
        shares = self._fitted.positions[np.isfinite(self._fitted.positions)]
        own = self.path == "signed" and len(solution.b0) > 1 and not len(shares)
        end = solution.coordinates(self.path_.target[-1:])[0] if own else np.zeros_like(solution.b0)
        weights, constants = solution.stacks(np.stack([end, solution.b0]))
        at_zero, at_one = (rows.scores @ weights.T + constants).T
        low = 0.0 if own or self.path == "paper" else float(shares.min(initial=-1.0))
        return decision_path(
            at_zero,
            at_one - at_zero,
            codes,
            contrasts,
            low=low,
            high=float(shares.max(initial=1.0)),
            threshold=float(self.threshold),
            sample_weight=rows.weight,
        )

    def exact_frontier(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, fairness: Any = None
    ) -> TAFCurve:
        """Return the TAF curve of the whole continuum of stacks and the constant model.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight, fairness
            As in `decision_path`.

        Returns
        -------
        TAFCurve
            `support` holds indices into the states of `decision_path`; the one past the last is the constant model.
        """
        path = self.decision_path(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight, fairness=fairness
        )
        bias = path.sets.largest_gap(path.rates)
        return taf_curve(
            np.append(np.clip(1.0 - bias, 0.0, 1.0), 1.0),
            np.append(np.clip(path.accuracy, 0.0, 1.0), path.constant_accuracy),
        )


class FairStacksRegressor(RegressorMixin, BaseFairStacks):
    """Predict a number with the best linear combination of models under a bias constraint.

    The twin of `FairStacksClassifier`, with the same parameters and attributes; fairness is demographic parity (or
    custom masks) of the predictions, accuracy is R² clipped to [0, 1].

    `loss` may also be "huber" (robust against outliers) or "quantile" (the median, or another quantile), or these with
    their parameter: ``("huber", 1.5)``, from how many standard deviations of the target a residual counts linearly
    (1 by default), and ``("quantile", 0.9)``. Both are quadratic programs (extra `hinge`). Accuracy is then the share
    of the best constant's loss that the stack avoids, in [0, 1], as R² is for the squared loss; `score` stays R².

    Differences between groups, and so fairness, `tau` and the targets of the path, are in standard deviations of the
    target: nothing depends on its units, and predictions follow y → a·y + b. With ``fairness="mean_difference"`` they
    are in the units of the target itself, as in 0.1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, y = rng.integers(0, 2, 200), rng.random(200)
    >>> H = np.stack([y + 0.2 * group, y - 0.1 * group], axis=1) + rng.normal(0, 0.1, (200, 2))
    >>> model = FairStacksRegressor("precomputed", alpha=0.1, tau=0.0).fit(H, y, sensitive_features=group)
    >>> predicted = model.predict(H)
    >>> bool(abs(predicted[group == 0].mean() - predicted[group == 1].mean()) < 1e-12)
    True
    """

    _regression = True

    def predict(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the predictions, shape (n,)."""
        return self._scores(X, sensitive_features)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the R² at the operating point.

        Parameters
        ----------
        X, y, sample_weight
            The rows.
        sensitive_features : array-like, dict or dataframe, optional
            Needed by an attribute-aware stack only.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))
