"""What a row's features say of its label and of its row sets: cross-fitted, calibrated probabilities."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fairfrontier import _validation as validate
from fairfrontier._attribute_models import TableEncoder, class_probabilities, fit_classifier
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.limit._task import LimitTask

# Logarithms of probabilities are taken inside these limits.
_SMALLEST = 1e-4
# Categories of one column that boosted trees take, with room for one more.
_MOST_CATEGORIES = 200


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Probabilities given what a rule may look at.

    Attributes
    ----------
    label : ndarray of shape (n,)
        P(y = 1).
    sets : ndarray of shape (n, s)
        P(the row belongs to the row set): P(group), or P(group and label) where groups are compared among the rows of
        one label.
    """

    label: FloatArray
    sets: FloatArray

    @property
    def gain(self) -> FloatArray:
        """What the decision 1 adds to the expected accuracy of each row."""
        return 2.0 * self.label - 1.0

    def load(self, weight: FloatArray) -> FloatArray:
        """Return what the decision 1 adds to each expected rate, shape (n, s)."""
        return np.asarray(self.sets / (weight @ self.sets))


def default_ensemble(random_state: int, fewest_rows: int, Z: FloatArray) -> list[Any]:
    """Return the unfitted members of the ensemble: linear, boosted trees, random trees, and a smooth kernel.

    Together they come near the truth where it is smooth, where it jumps, and where it is a table; which of them is
    right for the data is decided by the stack that combines them. The kernel has no more centres than `fewest_rows`,
    the smallest number of rows that a member is fitted to. Trees see a column of codes in place of the indicators of
    the features `Z`: a category is one split away, and there are far fewer columns to search.
    """
    bundles = exclusive_columns(Z)
    single = Z.shape[1] - sum(map(len, bundles))
    codes = FunctionTransformer(_coded, kw_args={"bundles": bundles})
    boosting = HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_leaf_nodes=15,
        max_iter=70,
        early_stopping=False,
        categorical_features=list(range(single, single + len(bundles))),
        random_state=random_state,
    )
    return [
        make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky")),
        make_pipeline(codes, boosting),
        make_pipeline(
            codes, ExtraTreesClassifier(25, min_samples_leaf=8, max_features="sqrt", random_state=random_state)
        ),
        make_pipeline(
            StandardScaler(),
            Nystroem(n_components=max(1, min(150, fewest_rows // 2)), random_state=random_state),
            LogisticRegression(solver="newton-cholesky"),
        ),
    ]


def exclusive_columns(Z: FloatArray) -> list[IntArray]:
    """Return runs of indicator columns of which no row has two: mostly, each is the categories of one feature."""
    binary = np.flatnonzero(((Z == 0.0) | (Z == 1.0)).all(axis=0))
    together = Z[:, binary].T @ Z[:, binary] > 0.0
    runs: list[list[int]] = []
    for j in range(len(binary)):
        if runs and len(runs[-1]) < _MOST_CATEGORIES and not together[j, runs[-1]].any():
            runs[-1].append(j)
        else:
            runs.append([j])
    return [binary[run] for run in runs if len(run) > 1]


def _coded(Z: FloatArray, bundles: list[IntArray]) -> FloatArray:
    """Return the columns outside bundles, and behind them one column per bundle: the number of its indicator, or 0."""
    single = np.ones(Z.shape[1], dtype=bool)
    if bundles:
        single[np.concatenate(bundles)] = False
    return np.column_stack([Z[:, single], *(Z[:, run] @ np.arange(1.0, len(run) + 1.0) for run in bundles)])


def checked_learners(estimator: Any, random_state: int, task: LimitTask, share: float, Z: FloatArray) -> list[Any]:
    """Return the members of the ensemble: the default ones, one classifier, or a list of them.

    `share` is that of the rows in the smallest set that members are fitted to; `Z` are the features.
    """
    if estimator is None:
        rarer = int(np.bincount(task.y.astype(np.intp)).min())
        return default_ensemble(random_state, int(share * rarer), Z)
    learners = list(estimator) if isinstance(estimator, (list, tuple)) else [estimator]
    for learner in learners:
        if not (hasattr(learner, "fit") and hasattr(learner, "predict_proba")):
            raise InvalidInputError(
                f"estimator must be a classifier with predict_proba, or a list of them; got {learner!r}"
            )
    if not learners:
        raise InvalidInputError("estimator must hold at least one classifier; got an empty list")
    return learners


def checked_probabilities(probabilities: Any, task: LimitTask) -> Posteriors:
    """Return the probabilities that a caller knows, a pair of P(y = 1) and P(row set)."""
    if not isinstance(probabilities, (tuple, list)) or len(probabilities) != 2:
        raise InvalidInputError(
            "probabilities must be a pair: P(y = 1) of each row, and P(row set) with a column for each of "
            f"{list(task.sets.names)}; got {type(probabilities).__name__}"
        )
    label = validate.column(probabilities[0], parameter="probabilities[0]").astype(np.float64)
    sets = np.asarray(probabilities[1], dtype=np.float64)
    if label.shape != (len(task),) or sets.shape != (len(task), task.member.shape[1]):
        raise InvalidInputError(
            f"probabilities must have the shapes ({len(task)},) and {(len(task), task.member.shape[1])}, a column for "
            f"each of {list(task.sets.names)}; got {label.shape} and {sets.shape}"
        )
    for position, values in enumerate((label, sets)):
        if not (values.min() >= 0.0 and values.max() <= 1.0):
            raise InvalidInputError(
                f"probabilities[{position}] must be in [0, 1]; got {values.min()} to {values.max()}"
            )
    return Posteriors(label, sets)


def feature_matrix(X: Any, task: LimitTask, track: str) -> FloatArray:
    """Return the features as numbers; for the aware track the indicators of the groups stand behind them."""
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2:
        raise InvalidInputError(f"X must be a table of shape (n, p); got shape {tuple(shape)}")
    validate.same_length(len(task), "y", X=shape[0])
    parts = [TableEncoder().fit(X).transform(X)]
    if track == "aware":
        parts += [np.eye(len(a.values))[a.codes] for a in task.attributes]
    return np.column_stack(parts)


def stratified_folds(
    cell: IntArray, cv: Any, generator: np.random.Generator, within: NDArray[np.bool_] | None = None
) -> IntArray:
    """Return the fold of each row; every fold has its share of each cell and, in it, of the rows `within` marks."""
    count = validate.whole_number(cv, parameter="cv", low=2, advice=": use 5")
    smallest = np.bincount(cell).min()
    if smallest < 2:
        raise GroupError(
            "sensitive_features must leave at least two rows with each label in each group; got "
            f"{smallest}: merge small groups, or drop them"
        )
    fold = np.empty(len(cell), dtype=np.intp)
    keys = (cell,) if within is None else (within, cell)
    fold[np.lexsort((generator.random(len(cell)), *keys))] = np.arange(len(cell)) % count
    return fold


def cross_fitted(
    Z: FloatArray,
    task: LimitTask,
    track: str,
    fold: IntArray,
    learners: list[Any],
    *,
    n_jobs: Any = None,
    rows: Any = None,
) -> Posteriors:
    """Return posteriors of each row from models that were fitted without its fold.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        The features, from `feature_matrix`.
    task : LimitTask
        Labels and groups.
    track : {"blind", "aware"}
        Whether the groups are known.
    fold : ndarray of shape (n,)
        The fold of each row.
    learners : list of classifier
        The members of the ensemble.
    n_jobs : int, optional
        Jobs.
    rows : ndarray of shape (n,), bool, optional
        The rows that models may be fitted to; None: all.
    """
    usable = np.ones(len(task), dtype=bool) if rows is None else rows
    weight = task.weight * len(task) if task.weighted else None
    fit = partial(_class_probabilities, Z, weight, fold, learners, n_jobs)
    label = fit(task.y.astype(np.intp), 2, usable)[:, 1]
    columns = []
    for condition in task.conditions:
        chance = np.ones(len(task)) if condition is None else label if condition else 1.0 - label
        among = usable if condition is None else usable & (task.y == condition)
        for attribute in task.attributes:
            groups = len(attribute.values)
            known = np.eye(groups)[attribute.codes] if track == "aware" else fit(attribute.codes, groups, among)
            columns.append(chance[:, None] * known)
    return Posteriors(label, np.hstack(columns))


def _class_probabilities(
    Z: FloatArray,
    weight: FloatArray | None,
    fold: IntArray,
    learners: list[Any],
    n_jobs: Any,
    codes: IntArray,
    n_classes: int,
    among: NDArray[np.bool_],
) -> FloatArray:
    """Return P(class) of all rows, shape (n, n_classes), learned from the rows `among` outside the row's fold."""
    parts = [(among & (fold != number), fold == number) for number in np.unique(fold)]
    # The last of the default ensemble take long: with them first, no processor waits at the end.
    found = Parallel(n_jobs=n_jobs)(
        delayed(_member)(learner, Z, codes, weight, train, test, n_classes)
        for learner in reversed(learners)
        for train, test in parts
    )
    odds, result = np.empty((len(codes), len(learners) * (n_classes - 1))), np.zeros((len(codes), n_classes))
    for i, (_, test) in enumerate(parts):
        odds[test] = np.hstack(found[i :: len(parts)][::-1])
    # The members' combination, calibrated on the other folds: a logistic regression on their log-odds.
    for train, test in parts:
        of_train = None if weight is None else weight[train]
        model = fit_classifier(LogisticRegression(max_iter=1000), odds[train], codes[train], of_train)
        result[test, 1:] = class_probabilities(model, odds[test], n_classes - 1)
    result[:, 0] = np.clip(1.0 - result[:, 1:].sum(axis=1), 0.0, 1.0)
    return result


def _member(
    learner: Any,
    Z: FloatArray,
    codes: IntArray,
    weight: FloatArray | None,
    train: NDArray[np.bool_],
    test: NDArray[np.bool_],
    n_classes: int,
) -> FloatArray:
    """Return the log-odds of the classes 1, 2, … against class 0, of one member for one fold."""
    model = fit_classifier(learner, Z[train], codes[train], None if weight is None else weight[train])
    later = class_probabilities(model, Z[test], n_classes - 1)
    first = np.maximum(1.0 - later.sum(axis=1, keepdims=True), _SMALLEST)
    return np.asarray(np.log(np.maximum(later, _SMALLEST) / first))
