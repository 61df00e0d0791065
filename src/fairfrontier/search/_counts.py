"""Decisions of a baseline and of candidates, counted in the cells of label and groups that a measure compares."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray
from fairfrontier.metrics._contrasts import RowSets, build_contrasts


@dataclass(frozen=True, eq=False)
class Counts:
    """Decisions of a baseline and of k candidates on some rows, counted in c cells of label and groups.

    Attributes
    ----------
    sets : RowSets
        The s row sets that the measure compares.
    membership : ndarray of shape (s, c), bool
        The cells of each row set.
    label : ndarray of shape (c,), bool
        The cells of the positive label.
    rows, base : ndarray of shape (c,)
        Rows, and those that the baseline decides positively.
    chosen, both : ndarray of shape (c, k)
        Rows that each candidate decides positively, and those that the baseline does, too.
    """

    sets: RowSets
    membership: NDArray[np.bool_]
    label: NDArray[np.bool_]
    rows: FloatArray
    base: FloatArray
    chosen: FloatArray
    both: FloatArray

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())

    def of(self, candidates: Any) -> "Counts":
        """Return the counts of some of the candidates."""
        chosen, both = self.chosen[:, candidates], self.both[:, candidates]
        return Counts(self.sets, self.membership, self.label, self.rows, self.base, chosen, both)

    def rates(self) -> FloatArray:
        """Return the rate of positive decisions of each candidate in each row set, shape (k, s)."""
        return np.asarray((self.membership @ self.chosen / self.sizes()[:, None]).T)

    def base_rates(self) -> FloatArray:
        """Return the baseline's rates, shape (s,)."""
        return np.asarray(self.membership @ self.base / self.sizes())

    def accuracy(self) -> FloatArray:
        """Return the accuracy of each candidate, shape (k,)."""
        right = np.where(self.label[:, None], self.chosen, self.rows[:, None] - self.chosen)
        return np.asarray(right.sum(axis=0) / self.rows.sum())

    def base_accuracy(self) -> float:
        """Return the accuracy of the baseline."""
        return float(np.where(self.label, self.base, self.rows - self.base).sum() / self.rows.sum())

    def sizes(self) -> FloatArray:
        """Return the rows of each row set, shape (s,)."""
        return np.asarray(self.membership @ self.rows, dtype=np.float64)


def count(
    y: NDArray[np.bool_],
    sensitive: dict[str, NDArray[Any]],
    baseline: NDArray[np.bool_],
    decisions: NDArray[np.bool_],
    *,
    fairness: str,
    sensitive_mode: str = "separate",
) -> Counts:
    """Count decisions (n,) of a baseline and (n, k) of candidates in the cells of a measure.

    Examples
    --------
    >>> y, sex = np.array([True, False, True, False]), np.array(["f", "f", "m", "m"])
    >>> counts = count(y, {"sex": sex}, y, np.stack([y, ~y], axis=1), fairness="demographic_parity")
    >>> counts.accuracy(), counts.rates().tolist()
    (array([1., 0.]), [[0.5, 0.5], [0.5, 0.5]])
    """
    rows = Rows(y, decisions, sensitive, tuple(map(str, range(decisions.shape[1]))), np.arange(len(y)))
    cells = rows.cells(labelled=True)
    contrasts = build_contrasts(fairness, cells.keys, cells.attributes, sensitive_mode=sensitive_mode)
    n_cells = len(cells.keys)
    one_hot = cells.codes == np.arange(n_cells)[:, None]
    return Counts(
        contrasts.sets,
        contrasts.membership,
        contrasts.label,
        one_hot.sum(axis=1).astype(np.float64),
        (one_hot & baseline).sum(axis=1).astype(np.float64),
        one_hot.astype(np.float64) @ decisions,
        (one_hot & baseline).astype(np.float64) @ decisions,
    )
