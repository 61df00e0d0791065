"""The rows of a question: labels, row sets and weights, checked once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._groups import ProbableGroups
from fairfrontier._rows import NO_SCORES, Rows
from fairfrontier._validation import Attribute, FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import MEASURES, RowSets, build_contrasts, named_measure

# The measure that bounds ratios of rates.
RATIO = "impact_ratio"


# Differences of rates, and the one ratio whose best rule is known.
LIMIT_MEASURES = {RATIO, *(name for name in MEASURES if named_measure(name).comparison == "difference")}


@dataclass(frozen=True, eq=False)
class LimitTask:
    """Labels, row sets and weights.

    Attributes
    ----------
    y : ndarray of shape (n,)
        The labels, 0.0 and 1.0.
    member : ndarray of shape (n, s)
        1.0 where a row belongs to a row set.
    weight : ndarray of shape (n,)
        Weights that add up to one.
    sets : RowSets
        The row sets and how they are compared.
    attributes : tuple of Attribute
        The attributes that the blocks of row sets are of, with the group of each row.
    conditions : tuple of bool or None
        The labels among which groups are compared; None: all rows.
    cell : ndarray of shape (n,)
        A number for each combination of label and groups.
    weighted : bool
        True: the caller gave weights.
    relative : bool
        True: fairness is the smallest ratio of two rates, not 1 − the largest difference.
    """

    y: FloatArray
    member: FloatArray
    weight: FloatArray
    sets: RowSets
    attributes: tuple[Attribute, ...]
    conditions: tuple[bool | None, ...]
    cell: IntArray
    weighted: bool
    relative: bool

    def __len__(self) -> int:
        return len(self.y)

    @property
    def constant(self) -> float:
        """The accuracy of the best constant decision, which is perfectly fair."""
        positive = float(self.weight @ self.y)
        return max(positive, 1.0 - positive)

    def rates(self, decision: FloatArray) -> FloatArray:
        """Return the rate of each rule (n, k) in each row set, shape (k, s)."""
        weighted = self.weight[:, None] * self.member
        return np.asarray(decision.T @ weighted / weighted.sum(axis=0))


def checked_task(y: Any, sensitive_features: Any, fairness: Any, sensitive_mode: str, sample_weight: Any) -> LimitTask:
    """Return the validated rows; the parameters are those of `achievable_frontier`."""
    if not isinstance(fairness, str):
        raise InvalidInputError(
            f"fairness must be one of {sorted(LIMIT_MEASURES)}; got {type(fairness).__name__}: the achievable "
            "frontier needs a measure by name, because it learns who belongs to which row set"
        )
    validate.one_of(fairness, LIMIT_MEASURES, parameter="fairness")
    differences = "demographic_parity" if fairness == RATIO else fairness
    if y is None:
        raise InvalidInputError("y must be given: one label per row; got None")
    if isinstance(sensitive_features, ProbableGroups):
        raise InvalidInputError(
            "sensitive_features must be groups that are known; got ProbableGroups: the achievable frontier learns who "
            "belongs to which group"
        )
    rows = Rows.validated(y, NO_SCORES, sensitive_features, sample_weight=sample_weight, whole=True, target="y")
    _refuse_regression(np.asarray(rows.y))
    cells = rows.cells(labelled=True)
    contrasts = build_contrasts(differences, cells.keys, cells.attributes, sensitive_mode=sensitive_mode)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    in_cell = np.bincount(cells.codes, weights=weight, minlength=cells.n_cells).astype(np.float64)
    contrasts.rates(np.zeros((cells.n_cells, 1)), in_cell)  # raises if a row set is empty
    return LimitTask(
        contrasts.label[cells.codes].astype(np.float64),
        contrasts.membership[:, cells.codes].T.astype(np.float64),
        weight / weight.sum(),
        contrasts.sets,
        tuple(Attribute(a.name, a.codes[cells.codes], a.values) for a in contrasts.attributes),
        MEASURES[differences],
        cells.codes,
        rows.weight is not None,
        fairness == RATIO,
    )


def _refuse_regression(y: NDArray[Any]) -> None:
    classes = validate.known_values(y, parameter="y")[0]
    if len(classes) > 2:
        raise InvalidInputError(
            f"y must have two classes; got {len(classes)}: the best fair rule is known for decisions only, so that "
            "regression has no achievable frontier here. Cut y into two classes"
        )
    if len(classes) < 2:
        raise InvalidInputError(f"y must have two classes; got only {classes[0]!r}: use rows with both")
