"""Models of the sensitive attribute as a family: with them a stack knows the groups without being told them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import _num_samples as number_of_rows

from fairfrontier._attribute_models import (
    GroupProbability,
    class_probabilities,
    default_learners,
    fit_classifier,
    group_targets,
)
from fairfrontier._groups import GROUP
from fairfrontier._validation import attributes, column, one_of, same_length, same_order
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._family import Matrix, as_rows, seed_sequence
from fairfrontier.metrics._contrasts import intersection, named_measure


@dataclass(frozen=True)
class GroupModels:
    """Fitted models of the attribute as one family; made by `fit_group_models`.

    Parameters
    ----------
    models : tuple of (str, fitted classifier, tuple of str)
        Each learner's name, its classifier, and the names of the classes that are its columns.
    """

    models: tuple[tuple[str, Any, tuple[str, ...]], ...] = field(repr=False)
    is_randomized: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns' names, ``group/attribute=value/learner``."""
        return tuple(f"{GROUP}/{name}/{learner}" for learner, _, columns in self.models for name in columns)

    @property
    def estimators(self) -> list[tuple[str, Any]]:
        """Return (name, fitted estimator) pairs, one per column: its `predict` is a probability."""
        members = [
            GroupProbability.from_fitted(model, j + 1) for _, model, columns in self.models for j in range(len(columns))
        ]
        return list(zip(self.names, members, strict=True))

    def predict_matrix(self, X: Any) -> Matrix:
        """Return the probabilities of groups (n, k), float64; the attribute is not needed."""
        rows = as_rows(X)
        parts = [class_probabilities(model, rows, len(columns)) for _, model, columns in self.models]
        return np.asfortranarray(np.column_stack(parts))


def fit_group_models(
    X: Any,
    sensitive_features: Any,
    *,
    y: Any = None,
    fairness: str = "demographic_parity",
    sensitive_mode: str = "separate",
    learners: Sequence[tuple[str, Any]] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> GroupModels:
    """Fit classifiers of the sensitive attribute and return them as a family ``group/…``.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        Training rows, with the features that are there at prediction: without the attribute, if it will not be known.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
        The attributes of the training rows, with any number of groups. Not needed at prediction.
    y : array-like of shape (n,), optional
        Labels of two classes; needed by measures that compare groups among rows of one label.
    fairness : str, default="demographic_parity"
        The measure of the stack. Demographic parity needs the probability of each group but the first; equal
        opportunity needs that of each group *and* y = 1, predictive equality that of each group and y = 0, and
        equalized odds both.
    sensitive_mode : {"separate", "intersectional"}, default="separate"
        Models of each attribute, or of their cross product.
    learners : list of (str, classifier), optional
        Unfitted classifiers with `predict_proba`; None: a logistic regression and boosted trees.
    n_jobs : int, default=None
        Processes; the result does not depend on it, to the bit.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the default learners.

    Returns
    -------
    GroupModels
        Names ``group/attribute=value/learner`` and one matrix of probabilities (n, k).

    Notes
    -----
    The most accurate fair decision without the attribute is a threshold on E[y | x] − λ·E[c | x] for a contrast c.
    Models of y span E[c | x] badly, models of the group span it. `FairStacksClassifier` and `FairStacksRegressor`
    shrink their debiasing directions towards base models with such names.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 200)
    >>> X = rng.normal(size=(200, 3)) + (sex == "m")[:, None]
    >>> family = fit_group_models(X, {"sex": sex})
    >>> family.names
    ('group/sex=m/logistic', 'group/sex=m/hist_boosting')
    >>> bool(np.corrcoef(family.predict_matrix(X)[:, 0], sex == "m")[0, 1] > 0.5)
    True
    """
    one_of(sensitive_mode, ("separate", "intersectional"), parameter="sensitive_mode")
    same_order(X=X, y=y, sensitive_features=sensitive_features)
    rows = as_rows(X)
    given = attributes(sensitive_features, number_of_rows(rows))
    if sensitive_mode == "intersectional" and len(given) > 1:
        given = (intersection(given),)
    label = None if y is None or not named_measure(fairness).needs_labels else _labels(y, number_of_rows(rows))
    targets = group_targets(given, label, fairness)
    seed = int(seed_sequence(random_state).generate_state(1)[0] >> 1)
    pairs = _checked(default_learners(seed) if learners is None else learners)
    jobs = [(name, learner, target) for target in targets for name, learner in pairs]
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(fit_classifier)(learner, rows, target.codes) for _, learner, target in jobs
    )
    columns = ((name, model, target.columns) for (name, _, target), model in zip(jobs, fitted, strict=True))
    return GroupModels(tuple(columns))


def _labels(y: Any, n_rows: int) -> Any:
    values = column(y, parameter="y")
    same_length(n_rows, y=len(values))
    classes = np.unique(values)
    if len(classes) != 2:
        raise InvalidInputError(f"y must have two classes; got {len(classes)}: a measure of one label needs a label")
    return values == classes[1]


def _checked(learners: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    pairs = list(learners)
    if not pairs:
        raise InvalidInputError("learners must hold at least one (name, classifier) pair; got none")
    for name, learner in pairs:
        if not hasattr(learner, "predict_proba"):
            raise InvalidInputError(
                f"learners[{name!r}] must have predict_proba to give probabilities of groups; {type(learner).__name__} "
                "has none: wrap it in CalibratedClassifierCV"
            )
    return pairs
