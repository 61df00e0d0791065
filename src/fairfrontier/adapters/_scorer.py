"""FAUC as a scikit-learn scorer, for `cross_validate` and every search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from sklearn.utils.metadata_routing import UNCHANGED, MetadataRequest

from fairfrontier._columns import is_frame
from fairfrontier._scores import positive_scores, regresses
from fairfrontier.adapters._libraries import is_a
from fairfrontier.adapters._models import points
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.metrics._accuracy import Accuracy
from fairfrontier.metrics._contrasts import Fairness
from fairfrontier.quantify._fauc import Weight, as_weight, fauc


@dataclass(eq=False, repr=False, kw_only=True)
class FAUCScorer:
    """A scorer ``(estimator, X, y, *, sensitive_features) -> FAUC``; make one with `make_fauc_scorer`."""

    weight: Weight | Callable[[float], float] | None
    interpolate: bool | Literal["signed"]
    fairness: Fairness
    accuracy: Accuracy | None
    sensitive_mode: str
    columns: str | Sequence[str] | None

    def __post_init__(self) -> None:
        as_weight(self.weight)
        self._request: dict[str, bool | str | None] = {
            "sensitive_features": self.columns is None,
            "sample_weight": None,
        }

    def __repr__(self) -> str:
        return f"make_fauc_scorer(weight={self.weight!r}, interpolate={self.interpolate!r}, fairness={self.fairness!r})"

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the FAUC of a fitted estimator on given rows.

        Parameters
        ----------
        estimator : fitted estimator
            The estimator to evaluate.
        X, y
            Rows that it has not been fitted on.
        sensitive_features : array-like, dict or dataframe
            The sensitive attributes, unless they are columns of X.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        """
        groups = self._groups(X, sensitive_features)
        regression = regresses(estimator)
        compute = _regression_points if regression else points
        found = compute(
            estimator,
            X,
            y,
            sensitive_features=groups,
            fairness=self.fairness,
            accuracy=self.accuracy or ("r2" if regression else "accuracy"),
            sensitive_mode=self.sensitive_mode,
            sample_weight=sample_weight,
        )
        return fauc(found.frontier(self.interpolate), self.weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer asks of scikit-learn's metadata routing."""
        routing = MetadataRequest(owner=self)
        for name, alias in self._request.items():
            routing.score.add_request(param=name, alias=alias)
        return routing

    def set_score_request(
        self, *, sensitive_features: bool | str | None = UNCHANGED, sample_weight: bool | str | None = UNCHANGED
    ) -> Self:
        """Set what scikit-learn's metadata routing passes to this scorer, as for any estimator.

        Parameters
        ----------
        sensitive_features, sample_weight : True, False, None or str
            True: passed. False: not passed. None: an error if it is given. A name: passed under that name. By default
            `sensitive_features` is passed (unless it is columns of X) and `sample_weight` is an error if given.
        """
        for name, alias in {"sensitive_features": sensitive_features, "sample_weight": sample_weight}.items():
            if alias is not UNCHANGED:
                self._request[name] = alias
        return self

    def _groups(self, X: Any, sensitive_features: Any) -> Any:
        if sensitive_features is not None:
            return sensitive_features
        if self.columns is None:
            raise InvalidInputError(
                "sensitive_features must reach the scorer: pass params={'sensitive_features': ...} (a search's fit "
                "takes it directly) under sklearn.set_config(enable_metadata_routing=True), or name columns of X: "
                "make_fauc_scorer(columns='sex')"
            )
        names = [self.columns] if isinstance(self.columns, str) else list(self.columns)
        known = [str(name) for name in getattr(X, "columns", [])] if is_frame(X) else []
        for name in names:
            if name not in known:
                raise InvalidInputError(f"columns must name columns of X, a dataframe; got {name!r}: X has {known[:8]}")
        return X[names]


def make_fauc_scorer(
    *,
    weight: Weight | Callable[[float], float] | None = None,
    interpolate: bool | Literal["signed"] = False,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy | None = None,
    sensitive_mode: str = "separate",
    columns: str | Sequence[str] | None = None,
) -> FAUCScorer:
    """Make a scikit-learn scorer of FAUC.

    Parameters
    ----------
    weight : Weight or callable, optional
        How much each level of fairness matters; None: all equally.
    interpolate : {False, True, "signed"}
        FAUC, FAUCI, or the area under the signed hull.
    fairness, sensitive_mode
        As in `tradeoff_points`.
    accuracy : str or callable, optional
        As in `tradeoff_points`; None: accuracy, or R² of a regressor.
    columns : str or list of str, optional
        Columns of X that are the sensitive attributes. None: they come as ``sensitive_features`` by metadata routing.

    Returns
    -------
    FAUCScorer
        For ``scoring=`` of `cross_validate`, `GridSearchCV` and the like.

    Notes
    -----
    The value is the FAUC of *all* models inside the estimator together with the constant model: the whole path of a
    `FairStacksClassifier`, each predictor of a Fairlearn reduction, the one decision rule of an ordinary classifier
    (see `fairfrontier.adapters.predictions`). An ordinary classifier is evaluated by what its `predict` decides, not
    by all thresholds of its scores: a scorer says what one gets by deploying the estimator as it is.

    The constant model is the best one for the scored rows, so no FAUC is below that of the constant model alone.

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from fairfrontier import StepWeight, make_fauc_scorer
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 300)
    >>> X = rng.normal(size=(300, 2)) + 0.2 * (sex == "m")[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=300) > 1).astype(int)
    >>> scorer = make_fauc_scorer(weight=StepWeight(0.8))
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     result = cross_validate(
    ...         LogisticRegression(), X, y, scoring=scorer, cv=3, params={"sensitive_features": sex}
    ...     )
    >>> result["test_score"].round(3)
    array([0.811, 0.772, 0.793])
    """
    return FAUCScorer(
        weight=weight,
        interpolate=interpolate,
        fairness=fairness,
        accuracy=accuracy,
        sensitive_mode=sensitive_mode,
        columns=columns,
    )


def _regression_points(estimator: Any, X: Any, y: Any, *, sensitive_features: Any, **options: Any) -> TradeoffPoints:
    """Return the points of a regressor, or of every stack on the path of a FairStacksRegressor."""
    model = estimator
    if is_a(model, "sklearn", "Pipeline") and is_a(model[-1], "fairfrontier", "BaseFairStacks"):
        model, X = model[-1], model[:-1].transform(X)
    if is_a(model, "fairfrontier", "BaseFairStacks"):
        groups = {"sensitive_features": sensitive_features} if model.attribute_aware else {}
        predicted = model.predict_path(X, **groups)
    else:
        predicted = positive_scores(model, X, classes=None, name=type(model).__name__)
    return tradeoff_points(y, predicted, sensitive_features=sensitive_features, **options)
