"""Folds: which fold each row is in, such that every fold holds every group and every label."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairfrontier._rows import Rows
from fairfrontier._validation import IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._contrasts import Contrasts


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each row is in: its own, given numbers, or a hash of the row's number.

    Attributes
    ----------
    n_folds : int
        How many folds the hash has.
    seed : int
        Of the hash.
    given : ndarray of shape (n,) or None
        The fold of each row of the whole table.
    """

    n_folds: int = 0
    seed: int = 0
    given: IntArray | None = None

    def of_rows(self, rows: Rows) -> IntArray:
        """Return the fold of each of some rows."""
        if self.given is not None:
            if len(rows) and rows.row.max() >= len(self.given):
                raise InvalidInputError(
                    f"cv must give a fold for every row; got folds for {len(self.given)} rows, and row "
                    f"{rows.row.max()} in the chunks"
                )
            return self.given[rows.row]
        if rows.fold is not None:
            return rows.fold
        return hashed_folds(rows.row, self.n_folds, self.seed)

    def parts(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield each fold that some rows are in, with its rows."""
        fold = self.of_rows(rows)
        return ((int(number), rows.take(np.flatnonzero(fold == number))) for number in np.unique(fold))


def chunk_folds(cv: Any, random_state: Any) -> Folds:
    """Return the folds of rows that come in chunks."""
    from sklearn.utils import check_random_state

    if hasattr(cv, "test_fold"):  # a PredefinedSplit
        given = np.asarray(cv.test_fold)
        if given.min() < 0:
            raise InvalidInputError("cv must give each row a fold; got a PredefinedSplit with rows in none (-1)")
        return Folds(given=given.astype(np.intp))
    n_folds = 5 if isinstance(cv, str) else cv
    if isinstance(n_folds, bool) or not isinstance(n_folds, (int, np.integer)) or n_folds < 2:
        raise InvalidInputError(
            f"cv must be at least 2 folds or a PredefinedSplit where rows come in chunks; got {cv!r}"
        )
    return Folds(int(n_folds), seed=int(check_random_state(random_state).randint(2**31)))


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


def assign_folds(codes: IntArray, contrasts: Contrasts, cv: Any, random_state: Any = None) -> IntArray:
    """Return the fold of each row of a table in memory.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The cell of each row.
    contrasts : Contrasts
        The measure on these cells.
    cv : int, splitter or list of (train, test)
        A number of folds, or splits that have each row exactly once as test row.
    random_state : int, RandomState or None
        Seed of the shuffling inside the cells.

    Returns
    -------
    ndarray of shape (n,)
        Fold numbers from 0.

    Notes
    -----
    Rows are ordered by group, by label and at random inside, and dealt out in turn: with one attribute, a row set with
    at least as many rows as there are folds is then in every fold. With several, rows are moved where that is not yet
    so. Groups are ordered by their size and by their first row, so that their names do not matter.
    """
    from sklearn.utils import check_random_state

    n_rows = len(codes)
    if hasattr(cv, "split"):
        folds = _from_splits(cv.split(np.zeros((n_rows, 1)), codes), n_rows, type(cv).__name__)
    elif isinstance(cv, (list, tuple)):
        folds = _from_splits(cv, n_rows, "the list")
    else:
        n_folds = _number_of_folds(cv, n_rows)
        noise = check_random_state(random_state).random_sample(n_rows)
        groups = [replace(one, codes=one.codes[codes]).by_size().codes for one in contrasts.attributes]
        keys = (noise, contrasts.label[codes], *groups)
        folds = np.empty(n_rows, dtype=np.intp)
        folds[np.lexsort(keys)] = np.arange(n_rows) % n_folds
        _fill_gaps(folds, codes, contrasts, n_folds)
    _check_groups(folds, codes, contrasts)
    return folds


def _count(folds: IntArray, codes: IntArray, contrasts: Contrasts, n_folds: int) -> IntArray:
    """Return the number of rows of each row set in each fold, shape (folds, s)."""
    n_cells = contrasts.n_cells
    of_cell = np.bincount(folds * n_cells + codes, minlength=n_folds * n_cells)
    return np.asarray(of_cell.reshape(n_folds, n_cells) @ contrasts.membership.T.astype(np.intp))


def _fill_gaps(folds: IntArray, codes: IntArray, contrasts: Contrasts, n_folds: int) -> None:
    """Move single rows into folds that miss a row set, from folds that can spare them."""
    counts = _count(folds, codes, contrasts, n_folds)
    first = [int(np.argmax(member[codes])) for member in contrasts.membership]
    for s in np.lexsort((first, counts.sum(axis=0))):
        for fold in np.flatnonzero(counts[:, s] == 0):
            for row in np.flatnonzero(contrasts.membership[s, codes]):
                of_row = contrasts.membership[:, codes[row]]
                if np.all(counts[folds[row], of_row] > 1):
                    counts[folds[row], of_row] -= 1
                    counts[fold, of_row] += 1
                    folds[row] = fold
                    break


def _number_of_folds(cv: Any, n_rows: int) -> int:
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or cv < 2:
        raise InvalidInputError(f"cv must be at least 2 folds, a splitter, 'prefit' or 'precomputed'; got {cv!r}")
    if n_rows < cv:
        raise InvalidInputError(f"cv must not be larger than the number of rows; got cv={cv} for {n_rows} rows")
    return int(cv)


def _from_splits(splits: Iterable[tuple[IntArray, IntArray]], n_rows: int, given: str) -> IntArray:
    folds = np.full(n_rows, -1, dtype=np.intp)
    for fold, (_, test) in enumerate(splits):
        if np.any(folds[test] >= 0):
            raise InvalidInputError(f"cv must give each row once as test row; {given} gives some twice: use a KFold")
        folds[test] = fold
    if np.any(folds < 0):
        raise InvalidInputError(f"cv must give each row once as test row; {given} leaves some out: use a KFold")
    return folds


def _check_groups(folds: IntArray, codes: IntArray, contrasts: Contrasts) -> None:
    """Raise if a fold misses a row set, and name the set."""
    n_folds = int(folds.max()) + 1
    counts = _count(folds, codes, contrasts, n_folds)
    for s, name in enumerate(contrasts.sets.names):
        missing = np.flatnonzero(counts[:, s] == 0)
        if len(missing):
            raise GroupError(
                f"cv={n_folds} folds need a row of each group in each fold; the row set {name!r} of sensitive_features "
                f"has {counts[:, s].sum()} row(s) in all and none in fold {missing[0]}: use fewer folds, merge small "
                "groups, or give predictions ('precomputed' or 'prefit') and alpha as a number"
            )


def check_classes(folds: IntArray, codes: IntArray, contrasts: Contrasts) -> None:
    """Raise if a class occurs in one fold only: a model could not learn it from the others."""
    label = contrasts.label[codes]
    for value in np.unique(label):
        if len(np.unique(folds[label == value])) < 2:
            raise InvalidInputError(
                f"y must have each class in at least two folds; the {'second' if value else 'first'} of the sorted "
                f"classes has {(label == value).sum()} row(s): use more rows of it"
            )


def train_test(folds: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (train rows, test rows) of each fold."""
    for fold in range(int(folds.max()) + 1):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
