"""All that a squared-loss stack needs to know of the data: sums over rows.

The sums are additive, so the same object is filled from an array, from chunks of a file, or from the blocks of a
cluster, and everything after it is the same code.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._cells import Cells, cell_sums
from fairfrontier.metrics._contrasts import Contrasts, RowSets
from fairfrontier.optimize._covariance import GroupCovariances

# Elements of a block of predictions that is centred at once: it stays in the processor's cache for the product.
_BLOCK = 2**18
# Relative size of the rounding in a mean.
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class StackStatistics:
    """Moments of the base models' predictions H, the target y and the row sets.

    Attributes
    ----------
    weight : float
        Total weight of the rows (their number without weights).
    mean_h : ndarray of shape (k,)
        Mean prediction of each base model.
    mean_y : float
        Mean target.
    gram : ndarray of shape (k, k)
        HᵀH after centring.
    cross : ndarray of shape (k,)
        Hᵀy after centring.
    y_square : float
        yᵀy after centring.
    set_weight : ndarray of shape (s,)
        Total weight of each row set.
    set_h : ndarray of shape (s, k)
        Sum of each base model's predictions over each row set.
    sets : RowSets
        The row sets and how they are compared.
    groups : GroupCovariances or None
        Covariances of the predictions within each row set, if they were asked for: they are s matrices more.
    """

    weight: float
    mean_h: FloatArray
    mean_y: float
    gram: FloatArray
    cross: FloatArray
    y_square: float
    set_weight: FloatArray
    set_h: FloatArray
    sets: RowSets
    groups: GroupCovariances | None = None

    @classmethod
    def from_arrays(
        cls,
        H: NDArray[np.floating],
        y: FloatArray,
        contrasts: Contrasts,
        sample_weight: FloatArray | None = None,
        *,
        covariances: bool = False,
    ) -> "StackStatistics":
        """Compute the statistics of predictions `H` (n, k) and target `y` (n,), with `covariances` also by group."""
        found = cls.from_cells(H, y, contrasts.cells, contrasts.membership, contrasts.sets, sample_weight)
        if not covariances:
            return found
        return replace(
            found, groups=GroupCovariances.from_cells(H, contrasts.cells, contrasts.membership, sample_weight)
        )

    @classmethod
    def from_cells(
        cls,
        H: NDArray[np.floating],
        y: FloatArray,
        cells: Cells,
        membership: NDArray[np.bool_],
        sets: RowSets,
        sample_weight: FloatArray | None = None,
    ) -> "StackStatistics":
        """Compute the statistics of some rows whose cells are a part of a larger partition."""
        sums = cell_sums(H, cells, threshold=None, weight=sample_weight)
        weight = float(sums.weight.sum())
        mean_h, mean_y = sums.outcome.sum(axis=0) / weight, float(np.average(y, weights=sample_weight))
        n_models = H.shape[1]
        gram, cross, y_square = np.zeros((n_models, n_models)), np.zeros(n_models), 0.0
        height = max(_BLOCK // n_models, 2 * n_models)
        for start in range(0, len(y), height):
            rows = slice(start, start + height)
            centred, residual = H[rows] - mean_h, y[rows] - mean_y
            if sample_weight is not None:
                # √weight on both sides keeps the product one of a matrix with itself: BLAS does it in half the time.
                root = np.sqrt(sample_weight[rows])
                centred, residual = centred * root[:, None], residual * root
            gram += centred.T @ centred
            cross += centred.T @ residual
            y_square += float(residual @ residual)
        member = membership.astype(np.float64)
        return cls(
            weight=weight,
            mean_h=mean_h,
            mean_y=mean_y,
            gram=gram,
            cross=cross,
            y_square=y_square,
            set_weight=member @ sums.weight,
            set_h=member @ sums.outcome,
            sets=sets,
        )

    @classmethod
    def from_chunks(cls, chunks: Iterable["StackStatistics"]) -> "StackStatistics":
        """Add up the statistics of chunks."""
        parts = iter(chunks)
        first = next(parts, None)
        if first is None:
            raise InvalidInputError("chunks must hold at least one part; got none")
        return reduce(lambda a, b: a + b, parts, first)

    def update(
        self, H: NDArray[np.floating], y: FloatArray, contrasts: Contrasts, sample_weight: FloatArray | None = None
    ) -> "StackStatistics":
        """Return the statistics of these rows and further ones, with the same row sets."""
        covariances = self.groups is not None
        return self + StackStatistics.from_arrays(H, y, contrasts, sample_weight, covariances=covariances)

    def __add__(self, other: "StackStatistics") -> "StackStatistics":
        """Return the statistics of both parts together.

        Notes
        -----
        Each part is centred at its own mean; the difference δ of the two means adds (n₁n₂/n)·δδᵀ. No large numbers
        are subtracted from each other.
        """
        if self.sets.names != other.sets.names:
            raise InvalidInputError("statistics can be added only if they have the same row sets in the same order")
        if len(self.mean_h) != len(other.mean_h):
            raise InvalidInputError(
                "statistics can be added only if they are those of the same models; "
                f"got {len(self.mean_h)} and {len(other.mean_h)} models"
            )
        weight = self.weight + other.weight
        step_h, step_y = other.mean_h - self.mean_h, other.mean_y - self.mean_y
        share = self.weight * other.weight / weight
        return StackStatistics(
            weight=weight,
            mean_h=self.mean_h + step_h * (other.weight / weight),
            mean_y=self.mean_y + step_y * (other.weight / weight),
            gram=self.gram + other.gram + share * np.outer(step_h, step_h),
            cross=self.cross + other.cross + share * step_y * step_h,
            y_square=self.y_square + other.y_square + share * step_y**2,
            set_weight=self.set_weight + other.set_weight,
            set_h=self.set_h + other.set_h,
            sets=self.sets,
            groups=None if self.groups is None or other.groups is None else self.groups + other.groups,
        )

    def contrast_matrix(self) -> FloatArray:
        """Return B = HᵀC, the score bias of each base model on each contrast, shape (k, m)."""
        for name, weight in zip(self.sets.names, self.set_weight, strict=True):
            if weight <= 0:
                raise GroupError(
                    f"sensitive_features must leave no group empty; the row set {name!r} has no weight: "
                    "merge small groups or use another fairness measure"
                )
        spread = np.sqrt(np.diag(self.gram) / self.weight)
        return differences((self.set_h / self.set_weight[:, None]).T, self.sets, spread)

    def take(self, models: NDArray[np.intp]) -> "StackStatistics":
        """Return the statistics of some of the base models."""
        return StackStatistics(
            self.weight,
            self.mean_h[models],
            self.mean_y,
            self.gram[np.ix_(models, models)],
            self.cross[models],
            self.y_square,
            self.set_weight,
            self.set_h[:, models],
            self.sets,
            None if self.groups is None else self.groups.take(models),
        )


def differences(means: FloatArray, sets: RowSets, spread: FloatArray) -> FloatArray:
    """Return the differences (k, m) of means (k, s) on each contrast; those that are mere rounding are zero.

    Parameters
    ----------
    means : ndarray of shape (k, s)
        Mean prediction of each model in each row set.
    sets : RowSets
        The row sets and how they are compared.
    spread : ndarray of shape (k,)
        Standard deviation of each model's predictions.
    """
    first, second = sets.pairs().T
    gap = means[:, first] - means[:, second]
    size = np.abs(means).max(axis=1) + spread
    return np.where(np.abs(gap) > ROUNDING * size[:, None], gap, 0.0)
