"""What the classifier and the regressor of FairStacks share: the base models, the path, and its evaluation."""

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples as number_of_rows
from sklearn.utils.validation import check_is_fitted, validate_data

from fairfrontier import _validation as validate
from fairfrontier._columns import library_of, same_table
from fairfrontier._groups import GROUP, ProbableGroups
from fairfrontier._notebook import stack_html
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks, dask_chunks, is_dask, whole
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import taf_curve
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.metrics._contrasts import Contrasts, attributes_of, build_contrasts, named_function, row_masks
from fairfrontier.metrics._sums import KeyedSums, keyed_sums, masks_of_chunks
from fairfrontier.optimize import _base_models as base
from fairfrontier.optimize import _stack_input as given
from fairfrontier.optimize._cross_validation import FoldColumns, Folds, StackRows, assign_folds, chunk_folds
from fairfrontier.optimize._fitting import InUnits, OperatingPoint, StackPath, explained_by, fit_path
from fairfrontier.optimize._losses import LOSSES
from fairfrontier.optimize._mixture import TwoStacks
from fairfrontier.optimize._selection import Selection, checked_confidence, checked_limits, select
from fairfrontier.optimize._weighted_models import weighted_models
from fairfrontier.quantify._fauc import StepWeight

DEFAULT_WEIGHT = StepWeight(0.8)
# A loss of accuracy for which it pays to look for a better direction of debiasing.
_MUCH = 0.01


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
    accuracy: Any = None
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
        estimators: Any = given.PRECOMPUTED,
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
        accuracy: Any = None,
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
        self.accuracy = accuracy

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
        # What `add_estimators` and `at` start from is as large as the data: it is not copied, sent or saved.
        return {name: value for name, value in super().__getstate__().items() if name not in ("_held_out", "_within")}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        fitted = self.__dict__.get("_fitted")
        # In files of earlier versions the parameter alone says to which tau the stack at tau belongs.
        if fitted is not None and fitted.at_tau is not None and fitted.tau is None:
            self._fitted = replace(fitted, tau=self.tau)

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
            Non-negative weights, for the base models and the stack. Whole multiples of the smallest count rows; others
            have no unit.

        Returns
        -------
        self
            The fitted stack.
        """
        if is_dask(X, y, sensitive_features, sample_weight):
            parts = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            return self.fit_chunks(dask_chunks(y, X, **parts))
        given.check_parameters(self)
        self._library = library_of(X, sensitive_features, y)
        # Base models and folds take the most probable group of a row, the stack its probabilities.
        groups, certain = sensitive_features, sensitive_features
        if isinstance(groups, ProbableGroups):
            validate.same_order(X=X, y=y, sensitive_features=groups)
            certain = {groups.name: groups.likely()}
        rows = given.fit_rows(self, X, y, certain, sample_weight)
        probable = given.probable_groups(groups, self._loss_name, self.loss, rows.weight)
        attributes = rows.sensitive
        if self.attribute_aware or not isinstance(self._measure, str):
            self._groups_ = given.groups_of(rows)
        if not isinstance(self._measure, str):
            rows = rows.with_masks(row_masks(self._measure, len(rows)))
        contrasts = self._describe(keyed_sums(rows, labelled=not self._regression, threshold=None))
        codes = rows.cells(labelled=not self._regression).codes
        H, folds, own = self._fit_base(X, rows, contrasts, probable)
        if self.attribute_aware:
            H = np.column_stack([H, given.indicators(attributes, self._groups_, len(H))])
        if isinstance(self.alpha, str) and folds is None:
            folds = assign_folds(codes, contrasts, self.cv, self.random_state)
        rows = replace(rows, scores=H, names=self._column_names(), fold=folds)
        sizes = None
        if probable is not None:
            plain, rows = rows, rows.spread(probable)
            sizes = given.effective_sizes(self, plain, rows)
        self._fit_path(whole(rows), rows, Folds() if isinstance(self.alpha, str) else None, own, sizes)
        return self

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
        given.check_parameters(self)
        given.check_chunkable(self)
        self.estimators_: list[tuple[str, Any]] = []
        self.names_ = given.column_names(self.estimators, chunks.names)
        self.n_features_in_ = len(self.names_)
        self._has_names = not isinstance(self.estimators, str) or chunks.names != given.numbered(len(chunks.names))
        folds = chunk_folds(self.cv, self.random_state) if isinstance(self.alpha, str) else None
        self._fit_path(masks_of_chunks(self._measure, chunks), None, folds)
        return self

    def _describe(self, keyed: KeyedSums) -> Contrasts:
        """Set what a fit tells about its rows (classes and groups), and return their contrasts."""
        options: dict[str, Any] = {"sensitive_mode": self.sensitive_mode}
        measure = named_function(self.fairness, len(keyed.attributes), self.sensitive_mode)
        contrasts = build_contrasts(measure, keyed.keys, keyed.attributes, **options)
        if isinstance(measure, str) and not self.attribute_aware:
            attributes = attributes_of(keyed.keys, keyed.attributes)
            self._groups_ = [(attribute.name, attribute.values) for attribute in attributes]
        if contrasts.classes is not None:
            self._keep_classes(contrasts, keyed)
        return contrasts

    def _fit_base(
        self, X: Any, rows: Rows, contrasts: Contrasts, probable: ProbableGroups | None
    ) -> tuple[NDArray[np.floating[Any]], IntArray | None, FoldColumns | None]:
        """Return the predictions that the stack is fitted to, the folds and their own columns; set names and models."""
        fitted = isinstance(self.cv, str)
        if fitted:
            validate.one_of(self.cv, (given.PREFIT, given.PRECOMPUTED), parameter="cv")
        if given.is_precomputed(self):
            if self.passthrough:
                raise InvalidInputError("passthrough must be False with precomputed predictions: there are no features")
            if self.group_models is True:
                raise InvalidInputError(
                    "group_models must be 'auto', False or None with precomputed predictions: there are no features to "
                    "fit models of the attribute to; got True: add the predictions of one as a column 'group/…'"
                )
            self.estimators_ = []
            return given.precomputed_columns(self, X, fitting=True), None, None
        validate_data(self, X, skip_check_array=True)
        X = base.as_rows(X)
        models = given.check_estimators(self.estimators, fitted=fitted)
        given.check_estimator_names(models, self)
        features = (given.FEATURES,) if self.passthrough else ()
        self._expanded, self._encoded = (*base.expanded_names(models, self.expand), *features), not fitted
        known = self.__dict__.pop("_known", None)
        if known is not None:
            _check_same_rows(known, X, rows)
        found, folds = base.fit_columns(
            self, models, X, rows, contrasts, probable, None if known is None else known[:2]
        )
        if not fitted:
            self._held_out = found, folds, X, rows
        self.estimators_, self.names_ = found.estimators, found.names
        return found.matrix, folds, found.own

    def _fit_path(
        self,
        chunks: Chunks,
        rows: Rows | None,
        folds: Folds | None,
        own: FoldColumns | None = None,
        sizes: dict[str, int] | None = None,
    ) -> None:
        """Fit the path to rows in chunks, which may be all in memory (`rows`), and go to the operating point.

        `sizes` are those of the row sets where rows count by degrees.
        """
        measure = {"fairness": self._measure, "sensitive_mode": self.sensitive_mode}
        units = InUnits.of(chunks, len(self.names_), **measure) if self._regression else None
        if units is not None:
            rows = None if rows is None else units(rows)
            chunks = chunks.map(units) if rows is None else whole(rows)
            own = None if own is None else own.in_units(units.of_column)
        options: dict[str, Any] = {"regression": self._regression, "threshold": float(self.threshold)}
        options["accuracy"] = given.accuracy_of(self)
        data = StackRows(chunks, folds=folds, own=own, **options, **measure)
        if rows is None:
            self._describe(data.moments.keyed)
        self.group_sizes_ = sizes or data.group_sizes()
        fitted = fit_path(self, data, rows)
        fitted = fitted if units is None else units.undo(fitted)
        path = replace(fitted.path, names=self._column_names(), library=self._library)
        self._within = fitted.within
        self._fitted = replace(fitted, path=path, points=replace(fitted.points, library=self._library), within=None)
        self.path_, self.alpha_, self.scales_ = path, fitted.alpha, fitted.scale
        self.points_, self.cv_fauc_ = self._fitted.points, fitted.tried
        self._operate(self._stack_path().initial(self.weight, self.tau))
        if self.min_fairness is not None:
            chosen = self.select(self.min_fairness, confidence=self.confidence, randomize=self.randomize)
            self.__dict__.update(chosen.__dict__)

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
        estimators = given.check_estimators(estimators)
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
        `tau` is exact with every loss, `target` with the squared one. Other losses have no closed form: Eq. 3 is solved
        anew for each `tau` with the rows of the fit, which the stack keeps in memory. A copy (`copy.deepcopy`, another
        process) or a loaded stack does not have them: it knows the `tau` of the constructor, and raises an error for
        others that constrain it. At a `target` between two points of the path the stack is their mixture, which has the
        score bias asked for and is nearly optimal.
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
            Least ratio of the lowest to the highest rate of positive decisions, in [0, 1]; for demographic parity.
        max_accuracy_loss : float, optional
            Largest loss of accuracy against the unconstrained stack. Alone, it asks for the fairest place within it.
        min_rate : float, optional
            Least rate of positive decisions in every row set (for equal opportunity and equalized odds: true positive
            rate), so that fairness is not had by levelling down. As estimated; a confidence does not promise it.
            Alone, it asks for the most accurate such place.
        confidence : float, optional
            Promise what is asked for with this confidence, in (0, 1). None: delivered in half of the cases, see Notes.
        calibration : (X, y, sensitive_features), optional
            Rows that nothing was fitted to, for a promise that is valid whatever their number; y may be None for
            demographic parity. They count alike: let them be a sample of the people whom the promise is about, even
            if the fit was weighted. Without them the promise rests on out-of-fold decisions, which a given `alpha` does
            not have, and is approximate.
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
        asked = {"min_fairness": min_fairness, "min_ratio": min_ratio, "max_accuracy_loss": max_accuracy_loss}
        limits = checked_limits(self, randomize=randomize, min_rate=min_rate, **asked)
        sure = checked_confidence(self, confidence, calibration)
        options: dict[str, Any] = {"confidence": sure, "randomize": randomize, "secret": secret}
        point = select(self._stack_path(), limits, self.group_sizes_, **options)
        found = cast(Selection, point.selection)
        if found.given_up > _MUCH and self._lacks_attribute_models():
            how = (
                "add the predictions of one as a column 'group/…'"
                if given.is_precomputed(self)
                else "group_models=True"
            )
            advice = (
                f"no model of the attribute is in the stack; with one, fairness often costs much less accuracy: {how}"
            )
            point = replace(point, selection=replace(found, notes=(*found.notes, advice)))
        return self._moved(point)

    def _lacks_attribute_models(self) -> bool:
        """Tell whether models of the attribute could join the stack and do not."""
        able = isinstance(self._measure, str) and self._loss_name == "squared" and self.path == "signed"
        return able and not self.attribute_aware and not any(name.startswith(f"{GROUP}/") for name in self.names_)

    @property
    def _measure(self) -> Any:
        return named_function(self.fairness)

    @property
    def _loss_name(self) -> str:
        return given.named_loss(self.loss, regression=self._regression)[0]

    def _stack_path(self) -> StackPath:
        exact = getattr(self, "_within", None)  # absent in copies and in loaded stacks
        return StackPath(self._fitted, self._loss_name, float(self.threshold), self._regression, exact)

    def _operate(self, point: OperatingPoint) -> None:
        """Go to an operating point."""
        self.weights_, self.intercept_, self.target_ = point.weights, point.intercept, point.target
        self.mixture_, self.selection_ = point.mixture, point.selection

    def _moved(self, point: OperatingPoint) -> Self:
        """Return a copy at an operating point."""
        other = copy.copy(self)
        other._within = getattr(self, "_within", None)
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
        return given.indicators(given.check_groups_given(sensitive_features), self._groups_, n_rows)

    def _matrix(self, X: Any, sensitive_features: Any) -> NDArray[np.floating[Any]]:
        """Return the predictions of the base models, and the attribute's indicators where the stack has them."""
        check_is_fitted(self, "path_")
        if given.is_precomputed(self):
            H = given.precomputed_columns(self, X, fitting=False)
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
        return (*self.names_, *(given.indicator_names(self._groups_) if self.attribute_aware else ()))

    def predict_path(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the scores of every stack on the path, shape (n, n_points)."""
        H = self._matrix(X, sensitive_features)
        return LOSSES[self._loss_name].link(H @ self.path_.weights.T + self.path_.intercept)

    def _scores(self, X: Any, sensitive_features: Any) -> FloatArray:
        check_is_fitted(self, "path_")
        if given.is_precomputed(self):
            return self._scores_of(self._matrix(X, sensitive_features))
        k = len(self.names_)
        total = weighted_models(self)(self._feature_rows(X), self.n_jobs)
        if self.attribute_aware:
            total = total + self._indicators(X, sensitive_features, len(total)) @ self.weights_[k:]
        return LOSSES[self._loss_name].link(total + self.intercept_)

    def _scores_of(self, H: NDArray[Any]) -> FloatArray:
        """Return the scores at the operating point from the predictions of the base models."""
        return LOSSES[self._loss_name].link(H @ self.weights_ + self.intercept_)

    def points(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        fairness: Any = None,
        accuracy: Any = None,
    ) -> TradeoffPoints:
        """Return fairness and accuracy of every stack on the path on given rows, the constant model last.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            Rows that the stack may or may not have seen.
        fairness : str, masks or callable, optional
            Another measure than the one of the fit.
        accuracy : str, measure or callable, optional
            Another accuracy than the one of the fit: any that `tradeoff_points` takes.
        """
        validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        probable = isinstance(sensitive_features, ProbableGroups)
        if sensitive_features is not None and not probable:
            sensitive_features = validate.attribute_columns(sensitive_features)
        scores = self.predict_path(X, sensitive_features=None if probable else sensitive_features)
        names = [f"stack {index:02d}" for index in range(scores.shape[1])]
        target = self._target(y)
        points = tradeoff_points(
            target,
            dict(zip(names, scores.T, strict=True)),
            sensitive_features=sensitive_features,
            fairness=given.measure_of(self, fairness),
            accuracy=given.accuracy_of(self) if accuracy is None else accuracy,
            threshold=self.threshold,
            sensitive_mode=self.sensitive_mode,
            sample_weight=sample_weight,
        )
        residual = self._fitted.residual
        if residual is None or accuracy is not None:
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


def _check_same_rows(known: tuple[Any, IntArray, Any, Rows], X: Any, rows: Rows) -> None:
    """Raise unless rows are those of an earlier fit: predictions are kept for these, one by one."""
    features, before = known[2:]
    pairs = {"X": (features, X), "y": (before.y, rows.y)}
    pairs |= {
        f"sensitive_features[{name!r}]": (before.sensitive.get(name), one) for name, one in rows.sensitive.items()
    }
    if before.weight is not None or rows.weight is not None:
        pairs |= {"sample_weight": (before.weight, rows.weight)}
    for parameter, (first, second) in pairs.items():
        if (first is None) != (second is None) or not same_table(first, second):
            raise InvalidInputError(
                f"{parameter} must be that of the fit, row by row; got other values or another order, and the "
                "predictions of the models that are there belong to those rows: fit anew"
            )
