"""The moments of a stack from chunks whose groups are not known beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairfrontier._validation import IntArray
from fairfrontier.chunks._rows import Chunk
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._cells import CellSums
from fairfrontier.metrics._contrasts import Contrasts, RowSets
from fairfrontier.metrics._keyed import Key, KeyedCells, KeyedSums
from fairfrontier.optimize._statistics import StackStatistics

_NO_SETS = RowSets((), (), ())


@dataclass(frozen=True, eq=False)
class KeyedMoments:
    """Moments of predictions and target, and sums over cells that know their label and groups.

    Attributes
    ----------
    moments : StackStatistics or None
        The moments without row sets, and without the target where it is a class; None: no row has weight.
    keyed : KeyedSums
        The sums of the predictions over cells.
    """

    moments: StackStatistics | None
    keyed: KeyedSums

    @classmethod
    def from_chunk(cls, chunk: Chunk, *, regression: bool) -> "KeyedMoments":
        """Compute the moments of a chunk.

        Notes
        -----
        Which class is positive only all chunks together know. Hᵀy of a class label is a difference of sums over cells,
        so it is not needed here.
        """
        chunk.refuse_infinite(chunk.scores, parameter="X")
        cells = KeyedCells.from_chunk(chunk, regression=regression)
        if chunk.weight is not None and not chunk.weight.any():
            return cls(None, cells.sums(chunk, chunk.scores, threshold=None))
        found = StackStatistics.from_cells(
            chunk.scores,
            chunk.numbers() if regression else np.zeros(len(chunk)),
            cells.cells,
            np.eye(cells.cells.n_cells, dtype=bool),  # each cell is a row set of its own
            _NO_SETS,
            chunk.weight,
        )
        rows = np.bincount(cells.cells.codes, minlength=cells.cells.n_cells)
        keyed = KeyedSums(cells.keys, cells.attributes, CellSums(found.set_weight, found.set_h), rows)
        nothing = np.zeros(0), np.zeros((0, len(found.mean_h)))
        return cls(replace(found, set_weight=nothing[0], set_h=nothing[1]), keyed)

    def __add__(self, other: "KeyedMoments") -> "KeyedMoments":
        """Return the moments of both parts together."""
        keyed = self.keyed + other.keyed
        if self.moments is None or other.moments is None:
            return KeyedMoments(self.moments or other.moments, keyed)
        return KeyedMoments(self.moments + other.moments, keyed)

    def statistics(self, contrasts: Contrasts, all_keys: Sequence[Key]) -> StackStatistics:
        """Return the statistics with the row sets of `contrasts`, which were built from `all_keys`."""
        if self.moments is None:
            raise InvalidInputError("sample_weight must have a positive sum; got only zeros: give some row a weight")
        sums = self.keyed.in_order(contrasts, all_keys)
        member = contrasts.membership.astype(np.float64)
        with_sets = replace(
            self.moments, set_weight=member @ sums.weight, set_h=member @ sums.outcome, sets=contrasts.sets
        )
        if all_keys[0][0] is None:
            return with_sets
        label = contrasts.cells.label
        weight, positive = self.moments.weight, float(sums.weight[label].sum())
        return replace(
            with_sets,
            mean_y=positive / weight,
            cross=sums.outcome[label].sum(axis=0) - positive * self.moments.mean_h,
            y_square=positive * (weight - positive) / weight,
        )


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """The moments of each fold; those of two parts of the rows can be added."""

    parts: dict[int, KeyedMoments]

    def __add__(self, other: "FoldMoments") -> "FoldMoments":
        """Return the moments of both parts together."""
        parts = dict(self.parts)
        for fold, part in other.parts.items():
            parts[fold] = parts[fold] + part if fold in parts else part
        return FoldMoments(parts)


@dataclass(frozen=True)
class Folds:
    """Which fold each row of a chunk is in: its own column, given numbers, or a hash of the row's number.

    Attributes
    ----------
    n_folds : int
        How many folds the hash has.
    seed : int
        Of the hash.
    given : ndarray of shape (n,) or None
        The fold of each row of the whole table.
    """

    n_folds: int
    seed: int = 0
    given: IntArray | None = None

    def of_chunk(self, chunk: Chunk) -> IntArray:
        """Return the fold of each row of a chunk."""
        if self.given is not None:
            if len(chunk) and chunk.row.max() >= len(self.given):
                raise InvalidInputError(
                    f"cv must give a fold for every row; got folds for {len(self.given)} rows, and row "
                    f"{chunk.row.max()} in the chunks"
                )
            return self.given[chunk.row]
        if chunk.fold is not None:
            return chunk.fold
        return hashed_folds(chunk.row, self.n_folds, self.seed)


def hashed_folds(row: IntArray, n_folds: int, seed: int = 0) -> IntArray:
    """Return a fold for each row number: at random, and the same however the rows are cut into chunks.

    Notes
    -----
    The finalizer of SplitMix64: every bit of the row number moves every bit of the hash.

    Examples
    --------
    >>> np.bincount(hashed_folds(np.arange(100_000), 5)) // 1000
    array([20, 20, 20, 19, 19])
    """
    with np.errstate(over="ignore"):
        x = row.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x % np.uint64(n_folds)).astype(np.intp)


@dataclass(frozen=True)
class ChunkMoments:
    """The function from a chunk to the moments of its folds (of fold 0 without `folds`); it travels to the workers."""

    regression: bool
    folds: Folds | None = None

    def __call__(self, chunk: Chunk) -> FoldMoments:
        if self.folds is None:
            return FoldMoments({0: KeyedMoments.from_chunk(chunk, regression=self.regression)})
        fold = self.folds.of_chunk(chunk)
        parts = ((int(f), chunk.take(np.flatnonzero(fold == f))) for f in np.unique(fold))
        return FoldMoments({f: KeyedMoments.from_chunk(part, regression=self.regression) for f, part in parts})
