"""Covariances of the base models' predictions within each row set: sums over rows, like all else."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.metrics._cells import Cells


@dataclass(frozen=True, eq=False)
class GroupCovariances:
    """Moments of the predictions within each row set.

    With them the variance of any stack's scores in any group is known without the rows: Theorem 3 asks for their ratio.

    Attributes
    ----------
    weight : ndarray of shape (s,)
        Total weight of each row set.
    mean : ndarray of shape (s, k)
        Mean prediction of each base model in each row set.
    scatter : ndarray of shape (s, k, k)
        HᵀH of each row set after centring at its own mean.
    """

    weight: FloatArray
    mean: FloatArray
    scatter: FloatArray

    @classmethod
    def from_cells(
        cls,
        H: NDArray[np.floating],
        cells: Cells,
        membership: NDArray[np.bool_],
        sample_weight: FloatArray | None = None,
    ) -> "GroupCovariances":
        """Compute the moments of predictions `H` (n, k) in row sets that are unions of cells."""
        n_sets, n_models = len(membership), H.shape[1]
        result = cls(np.zeros(n_sets), np.zeros((n_sets, n_models)), np.zeros((n_sets, n_models, n_models)))
        for s, of_set in enumerate(membership):
            rows = of_set[cells.codes]
            weight = rows.sum() * 1.0 if sample_weight is None else float(sample_weight[rows].sum())
            if weight <= 0:  # a chunk may miss a group
                continue
            given = None if sample_weight is None else sample_weight[rows]
            result.weight[s] = weight
            result.mean[s] = np.average(H[rows], axis=0, weights=given)
            centred = H[rows] - result.mean[s]
            if given is not None:
                centred = centred * np.sqrt(given)[:, None]
            result.scatter[s] = centred.T @ centred
        return result

    def __add__(self, other: "GroupCovariances") -> "GroupCovariances":
        """Return the moments of both parts together; the difference of the means adds its outer product."""
        weight = self.weight + other.weight
        part = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        step = other.mean - self.mean
        outer = step[:, :, None] * step[:, None, :]
        scatter = self.scatter + other.scatter + (self.weight * part)[:, None, None] * outer
        return GroupCovariances(weight, self.mean + part[:, None] * step, scatter)

    def take(self, models: NDArray[np.intp]) -> "GroupCovariances":
        """Return the moments of some of the base models."""
        return GroupCovariances(self.weight, self.mean[:, models], self.scatter[:, models][:, :, models])

    def variance(self, weights: FloatArray) -> FloatArray:
        """Return the variance of the scores of stacks (p, k) in each row set, shape (p, s); NaN in an empty one."""
        square: FloatArray = np.einsum("pk,skl,pl->ps", weights, self.scatter, weights, optimize=True)
        unknown = np.full_like(square, np.nan)
        return np.asarray(np.divide(square, self.weight, out=unknown, where=self.weight > 0))
