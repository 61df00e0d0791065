"""Validated rows: what every computation of the library starts from.

Raw input is checked once, at the door of a public function, and becomes `Rows`: labels, scores, groups, weights and
folds of a whole table, or of one chunk of it. What comes after trusts its arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import factorize, numeric
from fairfrontier._groups import ProbableGroups
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError

# With more combinations of label and groups than this, an attribute is a number or a name and not a set of groups.
MOST_CELLS = 10_000

Key = tuple[Any, ...]
# In place of scores, where there are no models yet.
NO_SCORES = object()


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows partitioned by label and sensitive attributes.

    A *cell* is a set of rows that agree in everything a measure looks at. Cells know their values, so that the cells of
    two parts of a table can be put together although neither part knows what the other has.
    """

    codes: IntArray  # (n,): the cell of each row
    # the label (None where rows are not told apart by label) and the group in each attribute, for each cell
    keys: tuple[Key, ...]
    attributes: tuple[str, ...]  # the sensitive attributes, in the order of the groups

    @property
    def n_cells(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Rows:
    """Validated rows of a table.

    Attributes
    ----------
    y : ndarray of shape (n,) or None
        The target, as it stands in the table: two classes of any type, or numbers. None: there are no labels.
    scores : ndarray of shape (n, k)
        Predictions of `k` models.
    sensitive : dict of str to ndarray of shape (n,)
        The sensitive attributes, by name.
    names : tuple of str, length k
        The models.
    row : ndarray of shape (n,)
        The number of each row in the whole table, from 0.
    weight : ndarray of shape (n,) or None
        Sample weights.
    fold : ndarray of shape (n,) or None
        The fold of each row.
    """

    y: NDArray[Any] | None
    scores: NDArray[Any]
    sensitive: Mapping[str, NDArray[Any]]
    names: tuple[str, ...]
    row: IntArray
    weight: FloatArray | None = None
    fold: IntArray | None = None
    _cells: dict[bool, Cells] = field(default_factory=dict, repr=False)

    @classmethod
    def validated(
        cls,
        y: Any,
        scores: Any,
        sensitive_features: Any,
        *,
        sample_weight: Any = None,
        fold: Any = None,
        names: tuple[str, ...] | None = None,
        first_row: int = 0,
        counted_from: int = 0,
        whole: bool = False,
        needs_attributes: bool = True,
        spread: bool = True,
        target: str = "y_true",
    ) -> "Rows":
        """Check what a caller gave for some rows.

        Parameters
        ----------
        y, scores, sensitive_features, sample_weight, fold
            Raw input: `y_true`, `y_preds`, `sensitive_features` and `sample_weight` of `tradeoff_points`, and folds.
            With `NO_SCORES` there are no models yet; scores may be validated already.
        names : tuple of str, optional
            The models that the scores must be of: matched by name where the scores have names, else by position.
        first_row : int
            The number of the first row in the whole table.
        counted_from : int
            The number that errors give the first row of the table: 1 for files.
        whole : bool
            True: these are all rows, so that weights must not all be zero and scores may be the classes of `y`.
        needs_attributes : bool
            False: `sensitive_features` may be None.
        spread : bool
            False: a row that may be in several groups is there once, without an attribute.
        target : str
            What the caller calls `y`.
        """
        groups = sensitive_features if isinstance(sensitive_features, ProbableGroups) else None
        parts = {"sensitive_features": sensitive_features, "sample_weight": sample_weight, "fold": fold}
        validate.same_order(**{target: y, "y_preds": scores, **parts})
        values = None if y is None else validate.column(y, parameter=target)
        if scores is NO_SCORES:
            predictions = validate.Predictions(np.empty((0 if values is None else len(values), 0)), ())
        elif isinstance(scores, validate.Predictions):
            predictions = scores.aligned(names, first_row)
        else:
            predictions = validate.predictions(scores, classes_of=values if whole else None).aligned(names, first_row)
        n_rows = len(predictions.matrix)
        if values is not None:
            validate.same_length(len(values), target, y_preds=n_rows)
        if whole and n_rows == 0:
            raise InvalidInputError(f"{target} must have at least one row; got none")
        attributes: dict[str, NDArray[Any]] = {}
        if groups is None and (sensitive_features is not None or needs_attributes):
            attributes = validate.attribute_columns(sensitive_features)
        reference = target if values is not None else "y_preds"
        number = counted_from + first_row
        if groups is not None:
            validate.same_length(n_rows, reference, sensitive_features=len(groups))
        for name, column in attributes.items():
            validate.same_length(n_rows, reference, **{f"sensitive_features[{name!r}]": len(column)})
        rows = cls(
            values,
            predictions.matrix,
            attributes,
            predictions.names,
            np.arange(first_row, first_row + n_rows),
            validate.sample_weights(sample_weight, n_rows, first_row=number, whole=whole),
            None if fold is None else _folds(fold, n_rows, number),
        )
        return rows if groups is None or not spread else rows.spread(groups)

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: IntArray | NDArray[np.bool_]) -> "Rows":
        """Return some of the rows, by index or mask."""
        cells = {labelled: replace(cells, codes=cells.codes[rows]) for labelled, cells in self._cells.items()}
        return Rows(
            y=None if self.y is None else self.y[rows],
            scores=self.scores[rows],
            sensitive={name: values[rows] for name, values in self.sensitive.items()},
            names=self.names,
            row=self.row[rows],
            weight=None if self.weight is None else self.weight[rows],
            fold=None if self.fold is None else self.fold[rows],
            _cells=cells,
        )

    def spread(self, groups: ProbableGroups) -> "Rows":
        """Return each row once per group that it may be in, weighted by the probability; it keeps its number."""
        index, group, share = groups.spread(self.weight)
        several = replace(self.take(index), sensitive={groups.name: group}, _cells={})
        return replace(several, weight=share if several.weight is None else several.weight * share)

    def with_scores(self, scores: NDArray[Any], names: tuple[str, ...]) -> "Rows":
        """Return the same rows with the scores of other models."""
        return replace(self, scores=scores, names=names)

    def with_masks(self, masks: Mapping[str, NDArray[np.bool_]]) -> "Rows":
        """Return the same rows with boolean masks of the whole table as their attributes."""
        return replace(self, sensitive={name: mask[self.row] for name, mask in masks.items()}, _cells={})

    def cells(self, *, labelled: bool) -> Cells:
        """Return the partition of the rows by groups and, if `labelled`, by label; it is made once."""
        if labelled not in self._cells:
            self._cells[labelled] = self._partition(labelled)
        return self._cells[labelled]

    def _partition(self, labelled: bool) -> Cells:
        code, keys = np.zeros(len(self), dtype=np.intp), [(None,)]
        if labelled:
            values, code = validate.known_values(np.asarray(self.y), parameter="y_true", rows=self.row)
            keys = [(value,) for value in values]
        for name, column in self.sensitive.items():
            about: dict[str, Any] = {"parameter": f"sensitive_features[{name!r}]", "error": GroupError}
            values, of_row = validate.known_values(column, rows=self.row, **about)
            # Numbered anew after each attribute, so that the product of many groups cannot overflow.
            found, code = factorize(code * len(values) + of_row)
            keys = [(*keys[pair // len(values)], values[pair % len(values)]) for pair in found.tolist()]
            if len(keys) > MOST_CELLS:
                raise too_many_cells(len(keys))
        return Cells(code, tuple(keys), tuple(self.sensitive))

    def numbers(self) -> FloatArray:
        """Return a regression target as finite floats."""
        values = numeric(np.asarray(self.y), parameter="y_true").astype(np.float64, copy=False)
        self.refuse_infinite(values, parameter="y_true")
        return values

    def refuse_infinite(self, values: NDArray[Any], *, parameter: str) -> None:
        """Raise if a value is NaN or infinite, and say in which row of the whole table."""
        validate.finite(values, parameter=parameter, names=self.names, rows=self.row)


def too_many_cells(n_cells: int) -> GroupError:
    """Return the error for an attribute that is no set of groups."""
    return GroupError(
        f"y_true and sensitive_features must have at most {MOST_CELLS} combinations of values; got {n_cells} and more: "
        "is one of them a number or a name, and not a group? Cut it into classes first, or take a number as it is with "
        "ProbableGroups.from_numbers"
    )


def _folds(fold: Any, n_rows: int, first_row: int) -> IntArray:
    values = validate.column(fold, parameter="fold")
    validate.same_length(n_rows, "y_preds", fold=len(values))
    if values.dtype.kind not in "iu" or (values.size and values.min() < 0):
        raise InvalidInputError(
            f"fold must be integers from 0, one per row; got type {values.dtype} with {values[:1].tolist()} at row "
            f"{first_row}"
        )
    return values.astype(np.intp, copy=False)
