"""Models of the attribute that a stack adds by itself to unfitted estimators.

They are fitted in the same folds as the base models, to the sensitive attribute (for measures of one label, to group
and label), and join the stack as columns ``group/…``. At prediction they need the features only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import _safe_indexing as rows_of

from fairfrontier._attribute_models import (
    GROUP,
    GroupProbability,
    GroupTarget,
    class_probabilities,
    default_learners,
    fit_classifier,
    group_targets,
)
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import MEASURES, Contrasts
from fairfrontier.optimize._folds import train_test

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """Columns of a stack that models of the attribute make.

    Attributes
    ----------
    estimators : list of (str, fitted estimator)
        One per column, ``group/attribute=value/learner``, fitted to all rows; `predict` gives the probability.
    out_of_fold : ndarray of shape (n, q)
        Probabilities for each row by models that have not seen it.
    """

    estimators: list[tuple[str, Any]]
    out_of_fold: FloatArray


def wants_group_models(group_models: Any, names: Sequence[str], *, fairness: Any, loss: str, path: str) -> bool:
    """Tell whether a stack of unfitted estimators adds models of the attribute.

    Parameters
    ----------
    group_models : "auto", bool or None
        The stack's parameter. "auto" adds them where they steer the debiasing directions: squared loss, signed path, a
        measure by name, and no model of the attribute among the estimators.
    names : sequence of str
        Names of the estimators.
    fairness, loss, path
        The stack's parameters.
    """
    if group_models is None or group_models is False:
        return False
    if group_models is not True and not (isinstance(group_models, str) and group_models == AUTO):
        raise InvalidInputError(f"group_models must be 'auto', True, False or None; got {group_models!r}")
    if not isinstance(fairness, str) or fairness not in MEASURES:
        if group_models is True:
            raise InvalidInputError(
                "group_models=True needs fairness to be the name of a measure; got custom masks: pass 'auto' or False"
            )
        return False
    given = any(name.startswith(f"{GROUP}/") for name in names)
    return group_models is True or (loss == "squared" and path == "signed" and not given)


def fit_group_columns(
    X: Any,
    codes: IntArray,
    contrasts: Contrasts,
    folds: IntArray,
    *,
    fairness: str,
    sample_weight: FloatArray | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> GroupColumns:
    """Fit models of the attribute in the folds of the base models, and to all rows.

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n, d)
        The features, as the base models get them.
    codes : ndarray of shape (n,)
        The cell of each row.
    contrasts : Contrasts
        Groups and labels of the cells.
    folds : ndarray of shape (n,)
        The fold of each row.
    fairness : str
        The stack's measure, which says what the models must predict.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows.
    n_jobs : int, optional
        Processes.
    seed : int
        Of the learners.
    """
    attributes = [replace(attribute, codes=attribute.codes[codes]) for attribute in contrasts.attributes]
    targets = group_targets(attributes, contrasts.label[codes], fairness)
    pairs = [(name, learner, target) for target in targets for name, learner in default_learners(seed)]
    splits = list(train_test(folds))
    jobs = [(learner, target, split) for _, learner, target in pairs for split in splits]
    held_out = iter(
        Parallel(n_jobs=n_jobs)(
            delayed(_predict_held_out)(learner, X, target, split, sample_weight) for learner, target, split in jobs
        )
    )
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(fit_classifier)(learner, X, target.codes, sample_weight) for _, learner, target in pairs
    )
    columns: list[FloatArray] = []
    estimators: list[tuple[str, Any]] = []
    for (name, _, target), model in zip(pairs, fitted, strict=True):
        block = np.empty((len(folds), len(target.columns)))
        for _, test in splits:
            block[test] = next(held_out)
        columns.append(block)
        members = [GroupProbability.from_fitted(model, j + 1) for j in range(len(target.columns))]
        estimators += [(f"{GROUP}/{of}/{name}", member) for of, member in zip(target.columns, members, strict=True)]
    return GroupColumns(estimators, np.column_stack(columns))


def _predict_held_out(
    learner: Any,
    X: Any,
    target: GroupTarget,
    split: tuple[IntArray, IntArray],
    sample_weight: FloatArray | None,
) -> FloatArray:
    train, test = split
    weight = None if sample_weight is None else sample_weight[train]
    model = fit_classifier(learner, rows_of(X, train), target.codes[train], weight)
    return class_probabilities(model, rows_of(X, test), len(target.columns))
