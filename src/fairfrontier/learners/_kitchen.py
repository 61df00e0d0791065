"""The kitchen sink: every family together."""

from fairfrontier.learners._family import FamilyUnion, ModelFamily


def kitchen_sink(*families: ModelFamily) -> FamilyUnion:
    """Return all given families as one: the paper's kitchen-sink collection.

    Parameters
    ----------
    *families : ModelFamily
        Fitted families: `MinipatchTrees`, `forest_trees(forest)`, `fit_models(classifier_zoo(), X, y)`, and
        the grids of the fair learners (`FAGTB().fit_grid(...)` and so on).

    Returns
    -------
    FamilyUnion
        Names ``family/name`` and one matrix of predictions (n, k), family after family.

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
    """
    return FamilyUnion(tuple(families))
