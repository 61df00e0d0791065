"""A stacking problem from arrays, and the library's objects made of it."""

from dataclasses import dataclass, replace

import numpy as np

from fairfrontier._rows import Rows
from fairfrontier.chunks import whole
from fairfrontier.metrics._contrasts import build_contrasts
from fairfrontier.optimize._cross_validation import CrossValidation, Folds, StackRows
from fairfrontier.optimize._losses import ConstrainedProblem
from fairfrontier.optimize._statistics import KeyedMoments, contrast_matrix


def measured(label, group, fairness="demographic_parity"):
    """Return the cell of each row and the contrasts of a measure; `label` None: regression."""
    y = np.zeros(len(group)) if label is None else np.asarray(label).astype(int)
    cells = Rows.validated(y, np.zeros((len(y), 1)), group).cells(labelled=label is not None)
    return cells.codes, build_contrasts(fairness, cells.keys, cells.attributes)


@dataclass(frozen=True, eq=False)
class Stacking:
    """Predictions `H`, target `y`, groups and weights; the row sets are those of the rows that it was made with."""

    H: np.ndarray
    y: np.ndarray
    group: np.ndarray
    fairness: str = "demographic_parity"
    weight: np.ndarray | None = None
    regression: bool = False
    contrasts: object = None

    def __post_init__(self):
        if self.contrasts is None:
            cells = self.as_rows().cells(labelled=not self.regression)
            object.__setattr__(self, "contrasts", build_contrasts(self.fairness, cells.keys, cells.attributes))

    def as_rows(self, folds=None):
        y = self.y if self.regression else self.y.astype(int)
        return Rows.validated(y, self.H, self.group, sample_weight=self.weight, fold=folds)

    @property
    def codes(self):
        position = {key: i for i, key in enumerate(self.contrasts.keys)}
        cells = self.as_rows().cells(labelled=not self.regression)
        return np.array([position[key] for key in cells.keys])[cells.codes]

    def rows(self, index):
        weight = None if self.weight is None else self.weight[index]
        return replace(self, H=self.H[index], y=self.y[index], group=self.group[index], weight=weight)

    def statistics(self):
        return KeyedMoments.from_rows(self.as_rows(), regression=self.regression).statistics(self.contrasts)

    def contrast_matrix(self):
        return contrast_matrix(self.as_rows(), self.contrasts)

    def stack_rows(self, folds=None):
        options = {"fairness": self.fairness, "regression": self.regression}
        return StackRows(whole(self.as_rows(folds)), folds=None if folds is None else Folds(), **options)

    def cross_validation(self, folds):
        return CrossValidation(self.stack_rows(folds))

    def points(self, scores):
        names = tuple(f"stack_{j}" for j in range(scores.shape[1]))
        return self.stack_rows().evaluate(whole(self.as_rows().with_scores(scores, names)))

    def constrained(self, alpha, scale):
        return ConstrainedProblem(self.H, self.y, self.weight, self.contrast_matrix(), alpha=alpha, scale=scale)
