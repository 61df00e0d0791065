"""The kitchen sink: every family together."""

from typing import Any

from fairfrontier._forests import is_forest
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._family import FamilyUnion, ModelFamily
from fairfrontier.learners._group_models import fit_group_models
from fairfrontier.learners._minipatch import MinipatchTrees, MinipatchTreesRegressor

_FAMILY_NAMES = {MinipatchTrees: "minipatch", MinipatchTreesRegressor: "minipatch"}


def kitchen_sink(
    *families: Any,
    group_models: bool = False,
    X: Any = None,
    sensitive_features: Any = None,
    y: Any = None,
    fairness: str = "demographic_parity",
    sensitive_mode: str = "separate",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Any:
    """Return all given families as one: the paper's kitchen-sink collection.

    Parameters
    ----------
    *families : ModelFamily
        Fitted families: `MinipatchTrees`, `forest_trees(forest)`, `fit_models(classifier_zoo(), X, y)`, and
        the grids of the fair learners (`FAGTB().fit_grid(...)` and so on). Or unfitted ones, for a stack to fit:
        `MinipatchTrees`, forests, and lists of estimators such as `classifier_zoo()`.
    group_models : bool, default=False
        Add models of the sensitive attribute, families ``group/…``, fitted here to `X` and `sensitive_features`.
    X : array-like or dataframe of shape (n, d), optional
        The training rows of the other families, for the models of the attribute.
    sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe, optional
        The attributes of those rows. Not needed at prediction.
    y, fairness, sensitive_mode, n_jobs, random_state
        As in `fit_group_models`: the labels of those rows, and the measure of the stack.

    Returns
    -------
    FamilyUnion
        Names ``family/name`` and one matrix of predictions (n, k), family after family, models of the attribute last.
        Of unfitted families a list of (name, estimator), as `FairStacksClassifier` takes it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fairfrontier.learners import MinipatchTrees, forest_trees
    >>> X, y = make_classification(random_state=0)
    >>> patches = MinipatchTrees(n_estimators=10, random_state=0).fit(X, y)
    >>> forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> sink = kitchen_sink(patches, forest_trees(forest))
    >>> sink.predict_matrix(X).shape, sink.names[-1]
    ((100, 15), 'forest/tree_4')
    >>> sex = X[:, 0] > 0
    >>> sink = kitchen_sink(patches, group_models=True, X=X[:, 1:], sensitive_features={"sex": sex})
    >>> sink.names[-2:]
    ('group/sex=True/logistic', 'group/sex=True/hist_boosting')
    """
    if families and not any(isinstance(family, ModelFamily) for family in families):
        if group_models or X is not None:
            raise InvalidInputError(
                "families must be fitted for group_models=True; got unfitted ones: a stack that fits them adds models "
                "of the attribute by itself"
            )
        return [pair for family in families for pair in _unfitted(family)]
    if not group_models:
        if X is not None or sensitive_features is not None:
            raise InvalidInputError(
                "group_models must be True where X or sensitive_features are given: only models of the attribute are "
                "fitted here"
            )
        return FamilyUnion(tuple(families))
    if X is None or sensitive_features is None:
        raise InvalidInputError(
            "X and sensitive_features must be given with group_models=True, the training rows: "
            "kitchen_sink(..., group_models=True, X=X, sensitive_features=data['sex'])"
        )
    of_groups = fit_group_models(
        X,
        sensitive_features,
        y=y,
        fairness=fairness,
        sensitive_mode=sensitive_mode,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    return FamilyUnion((*families, of_groups))


def _unfitted(family: Any) -> list[tuple[str, Any]]:
    """Return an unfitted family as (name, estimator) pairs."""
    if isinstance(family, list):
        return list(family)
    if hasattr(family, "fit"):
        return [("forest" if is_forest(family) else _FAMILY_NAMES.get(type(family), type(family).__name__), family)]
    raise InvalidInputError(
        f"families must be fitted model families, or unfitted estimators and lists of them; got {type(family).__name__}"
    )
