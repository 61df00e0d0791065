"""The kitchen sink: every family together."""

from typing import Any

from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._family import FamilyUnion, ModelFamily
from fairfrontier.learners._group import fit_group_models


def kitchen_sink(
    *families: ModelFamily,
    group_models: bool = False,
    X: Any = None,
    sensitive_features: Any = None,
    y: Any = None,
    fairness: str = "demographic_parity",
    sensitive_mode: str = "separate",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> FamilyUnion:
    """Return all given families as one: the paper's kitchen-sink collection.

    Parameters
    ----------
    *families : ModelFamily
        Fitted families: `MinipatchTrees`, `forest_trees(forest)`, `fit_models(classifier_zoo(), X, y)`, and
        the grids of the fair learners (`FAGTB().fit_grid(...)` and so on).
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
