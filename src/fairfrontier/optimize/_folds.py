"""Folds that hold every group: stratified by label and sensitive attributes."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairfrontier._validation import IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._contrasts import Contrasts


def assign_folds(contrasts: Contrasts, cv: Any, random_state: Any = None) -> IntArray:
    """Return the fold of each row.

    Parameters
    ----------
    contrasts : Contrasts
        Cells and row sets of the rows.
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
    so.
    """
    cells = contrasts.cells
    n_rows = len(cells.codes)
    if hasattr(cv, "split"):
        folds = _from_splits(cv.split(np.zeros((n_rows, 1)), cells.codes), n_rows, type(cv).__name__)
    elif isinstance(cv, (list, tuple)):
        folds = _from_splits(cv, n_rows, "the list")
    else:
        n_folds = _number_of_folds(cv, n_rows)
        noise = check_random_state(random_state).random_sample(n_rows)
        keys = (noise, cells.label[cells.codes], *(cells.groups[cells.codes, a] for a in range(cells.groups.shape[1])))
        folds = np.empty(n_rows, dtype=np.intp)
        folds[np.lexsort(keys)] = np.arange(n_rows) % n_folds
        _fill_gaps(folds, contrasts, n_folds)
    _check_groups(folds, contrasts)
    return folds


def _count(folds: IntArray, contrasts: Contrasts, n_folds: int) -> IntArray:
    """Return the number of rows of each row set in each fold, shape (folds, s)."""
    n_cells = contrasts.cells.n_cells
    of_cell = np.bincount(folds * n_cells + contrasts.cells.codes, minlength=n_folds * n_cells)
    return np.asarray(of_cell.reshape(n_folds, n_cells) @ contrasts.membership.T.astype(np.intp))


def _fill_gaps(folds: IntArray, contrasts: Contrasts, n_folds: int) -> None:
    """Move single rows into folds that miss a row set, from folds that can spare them."""
    counts = _count(folds, contrasts, n_folds)
    for s in np.argsort(counts.sum(axis=0), kind="stable"):
        for fold in np.flatnonzero(counts[:, s] == 0):
            for row in np.flatnonzero(contrasts.membership[s, contrasts.cells.codes]):
                of_row = contrasts.membership[:, contrasts.cells.codes[row]]
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


def _check_groups(folds: IntArray, contrasts: Contrasts) -> None:
    """Raise if a fold misses a row set, and name the set."""
    n_folds = int(folds.max()) + 1
    counts = _count(folds, contrasts, n_folds)
    for s, name in enumerate(contrasts.sets.names):
        missing = np.flatnonzero(counts[:, s] == 0)
        if len(missing):
            raise GroupError(
                f"cv={n_folds} folds need a row of each group in each fold; the row set {name!r} of sensitive_features "
                f"has {counts[:, s].sum()} row(s) in all and none in fold {missing[0]}: use fewer folds, merge small "
                "groups, or give predictions ('precomputed' or 'prefit') and alpha as a number"
            )


def check_classes(folds: IntArray, contrasts: Contrasts) -> None:
    """Raise if a class occurs in one fold only: a model could not learn it from the others."""
    label = contrasts.cells.label[contrasts.cells.codes]
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
