"""What the fair learners share: one knob, its grid, and the classifier interface."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairfrontier._validation import Attribute, attributes, number, one_of, same_order
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.learners._family import Matrix, features, features_and_labels, repeated
from fairfrontier.metrics._contrasts import named_measure


class Core(Protocol):
    """The fitted part of k models that were trained together."""

    def scores(self, X: NDArray[Any]) -> Matrix:
        """Return the scores of class 1 (n, k)."""
        ...

    def take(self, index: int) -> "Core":
        """Return the core of one model alone."""
        ...


@dataclass(frozen=True, eq=False)
class FairProblem:
    """Checked training data: `X` (n, d), `y` in {0, 1} (n,), the attributes, and the measure's conditions.

    `conditions` are the row indices on which the measure compares groups: all rows for demographic parity, the
    rows of a label for equal opportunity, one set per label for equalized odds.
    """

    X: NDArray[Any]
    y: NDArray[np.float64]
    attributes: tuple[Attribute, ...]
    conditions: tuple[NDArray[np.intp], ...]

    def indicators(self) -> NDArray[np.float32]:
        """Return what an adversary predicts (n, q): one column for two groups, one per group for more."""
        columns = []
        for attribute in self.attributes:
            first = 1 if len(attribute.values) == 2 else 0
            columns += [attribute.codes == code for code in range(first, len(attribute.values))]
        return np.column_stack(columns).astype(np.float32)


def balance(share: Any) -> Any:
    """Return 4·share·(1 − share): the variance of a group's indicator, relative to that of two equal groups."""
    return 4.0 * share * (1.0 - share)


@dataclass(frozen=True, eq=False)
class FairGrid:
    """A fair learner fitted at every value of its knob: a model family.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Values of the knob.
    names : tuple of str
        ``learner/knob=value``.
    learner : estimator
        The learner, with the attributes of a fit (`classes_`, `n_features_in_`).
    core : object
        The fitted models.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    learner: "FairLearner" = field(repr=False)
    core: Core = field(repr=False)

    @property
    def is_randomized(self) -> bool:
        """Tell whether the columns are expected decisions; see `ModelFamily`."""
        return self.learner.is_randomized

    @property
    def estimators(self) -> list[tuple[str, Any]]:
        """Return (name, fitted learner) pairs, one per value."""
        return [(name, self._member(j)) for j, name in enumerate(self.names)]

    def _member(self, index: int) -> "FairLearner":
        member: FairLearner = clone(self.learner)
        member.set_params(**{self.learner.knob: float(self.values[index])})
        member._copy_fit(self.learner, self.core.take(index))
        return member

    def predict_matrix(self, X: Any) -> Matrix:
        """Return the scores of class 1 at every value: (n, k)."""
        return self.core.scores(features(self.learner, X, dtype=self.learner.dtype))


class FairLearner(ClassifierMixin, BaseEstimator, ABC):
    """Base of the fair learners.

    A subclass names its knob (the parameter that trades accuracy for fairness) and trains models for any number of its
    values together in `_fit_values`.
    """

    family: ClassVar[str]
    knob: ClassVar[str]
    is_randomized: ClassVar[bool] = False
    dtype: ClassVar[type] = np.float32
    # The ends of the grid in the paper's supplement; None: the paper does not run the method.
    paper_range: ClassVar[tuple[float, float] | None] = None
    fairness: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @abstractmethod
    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> Core:
        """Train one model for each value of the knob."""

    @classmethod
    @abstractmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return a grid of the knob from least to most fair."""

    @classmethod
    def grid_values(cls, grid: str = "ours", count: int = 20) -> NDArray[np.float64]:
        """Return a grid of the knob by its name.

        Parameters
        ----------
        grid : {"ours", "paper"}
            "ours": `default_values`. "paper": the evenly spaced grid of the paper's supplement.
        count : int
            How many values.
        """
        if one_of(grid, ("ours", "paper"), parameter="grid") == "ours":
            return cls.default_values(count)
        if cls.paper_range is None:
            raise InvalidInputError(
                f"grid must be 'ours' for {cls.__name__}, which the paper does not run; got {grid!r}"
            )
        return np.linspace(*cls.paper_range, count)

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:
        """Fit at the value of the knob that the constructor was given.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Training rows.
        y : array-like of shape (n,)
            Labels of two classes.
        sensitive_features : array-like, series, dataframe or dict
            One value per row for each attribute. Not needed at prediction.

        Returns
        -------
        self
        """
        problem = self._problem(X, y, sensitive_features)
        self.core_ = self._fit_values(problem, self._values([getattr(self, self.knob)]))
        return self

    def fit_grid(
        self, X: Any, y: Any, *, sensitive_features: Any, values: ArrayLike | None = None, grid: str = "ours"
    ) -> FairGrid:
        """Fit at many values of the knob together.

        Parameters
        ----------
        X, y, sensitive_features
            As in `fit`.
        values : array-like of shape (k,), default=None
            Distinct values of the knob; None: twenty of `grid`.
        grid : {"ours", "paper"}, default="ours"
            Where no values are given: `default_values()`, from least to most fair, or the grid of the paper's
            supplement.

        Returns
        -------
        FairGrid
            The fitted family; this object itself stays unfitted.
        """
        learner = clone(self)
        knobs = learner._values(self.grid_values(grid) if values is None else values)
        core = learner._fit_values(learner._problem(X, y, sensitive_features), knobs)
        names = tuple(f"{self.family}/{self.knob}={value:.6g}" for value in knobs)
        if repeated(names):
            raise InvalidInputError(f"values must differ in six digits; got {repeated(names)[0]!r} twice")
        return FairGrid(knobs, names, learner, core)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the scores (n, 2) of both classes."""
        check_is_fitted(self, "core_")
        core: Core = self.core_
        score = core.scores(features(self, X, dtype=self.dtype))[:, 0].astype(np.float64)
        return np.column_stack([1.0 - score, score])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class (n,) whose score is above one half."""
        above = self.predict_proba(X)[:, 1] > 0.5
        classes: NDArray[Any] = self.classes_
        return classes[above.astype(np.intp)]

    def _values(self, values: ArrayLike | Sequence[float]) -> NDArray[np.float64]:
        parameter = self.knob if np.size(values) == 1 else "values"
        checked = [number(v, parameter=parameter, low=0.0) for v in np.ravel(np.asarray(values))]
        if not checked:
            raise InvalidInputError(f"values must hold at least one value of {self.knob}; got none")
        if not np.isfinite(checked).all():
            raise InvalidInputError(f"{parameter} must be finite; got {max(checked)!r}")
        return np.asarray(checked, dtype=np.float64)

    def _problem(self, X: Any, y: Any, sensitive_features: Any) -> FairProblem:
        measure = named_measure(self.fairness)
        if measure.against or measure.within:
            raise InvalidInputError(
                "fairness must be a measure's name alone: a learner cannot be told to compare with one group or inside "
                f"strata; got {self.fairness!r}"
            )
        labels = measure.conditions
        same_order(X=X, y=y, sensitive_features=sensitive_features)
        X, y, classes = features_and_labels(self, X, y, dtype=self.dtype)
        self.classes_ = classes
        groups = attributes(sensitive_features, len(X))
        conditions = tuple(np.arange(len(X)) if at is None else np.flatnonzero(y == at) for at in labels)
        for rows, label in zip(conditions, labels, strict=True):
            for attribute in groups:
                _check_groups(attribute, rows, label)
        return FairProblem(X, y, groups, conditions)

    def _copy_fit(self, source: "FairLearner", core: Core) -> None:
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))
        self.core_ = core


def _check_groups(attribute: Attribute, rows: NDArray[np.intp], label: bool | None) -> None:
    counts = np.bincount(attribute.codes[rows], minlength=len(attribute.values))
    if counts.min() == 0:
        group = attribute.values[int(counts.argmin())]
        raise GroupError(
            f"sensitive_features[{attribute.name!r}] must have every group among the rows with y = {int(bool(label))}; "
            f"group {group!r} has none: merge it with another, or use fairness='demographic_parity'"
        )
