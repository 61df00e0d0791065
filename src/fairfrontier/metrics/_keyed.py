"""Sums over cells whose groups are not known beforehand, for rows that come in chunks.

A chunk may lack a group or a class, and no chunk knows what the others have. Its cells therefore carry their values,
label and groups, with them; sums of two chunks are added cell by cell, and the contrasts are built once, at the end,
from the cells that occurred.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfrontier import _validation as validate
from fairfrontier._columns import factorize, factorize_objects, is_missing
from fairfrontier._validation import Attribute, FloatArray, IntArray
from fairfrontier.chunks._rows import Chunk
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._cells import Cells, CellSums, cell_sums
from fairfrontier.metrics._contrasts import Contrasts, build_contrasts

# With more cells than this the groups are no groups but, say, the numbers of the rows.
MOST_CELLS = 10_000

Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class KeyedSums:
    """Sums over cells that know their label and groups; those of two parts of the rows can be added.

    Attributes
    ----------
    keys : tuple of tuple
        The label (None for regression) and the groups of each cell.
    attributes : tuple of str
        The sensitive attributes, in the order of the groups.
    sums : CellSums
        Sums over the rows of each cell, in the order of `keys`.
    rows : ndarray of shape (c,)
        The number of rows of each cell.
    """

    keys: tuple[Key, ...]
    attributes: tuple[str, ...]
    sums: CellSums
    rows: IntArray

    def __add__(self, other: "KeyedSums") -> "KeyedSums":
        """Return the sums of both parts together."""
        if set(self.attributes) != set(other.attributes):
            raise InvalidInputError(
                f"every chunk must have the same sensitive_features; got {list(self.attributes)} and "
                f"{list(other.attributes)}"
            )
        if self.attributes != other.attributes:
            order = [0, *(1 + other.attributes.index(name) for name in self.attributes)]
            keys = tuple(tuple(key[i] for i in order) for key in other.keys)
            return self + KeyedSums(keys, self.attributes, other.sums, other.rows)
        keys = tuple(dict.fromkeys((*self.keys, *other.keys)))
        _check_number(len(keys))
        position = {key: i for i, key in enumerate(keys)}
        rows = np.zeros(len(keys), dtype=np.intp)
        for part in (self, other):
            rows[[position[key] for key in part.keys]] += part.rows
        return KeyedSums(keys, self.attributes, _added(self, other, position), rows)

    def contrasts(self, fairness: Any, sensitive_mode: str) -> Contrasts:
        """Return the contrasts on the cells that occurred: each cell stands for its rows.

        Raises
        ------
        InvalidInputError
            For labels that are not two classes, and for a `fairness` that is not a measure's name.
        GroupError
            For an attribute with one group only.
        """
        if not isinstance(fairness, str):
            raise InvalidInputError(
                "fairness must be a measure's name where rows come in chunks; masks and functions need all rows at "
                "once: give the masks as columns of sensitive_features"
            )
        label = None if self.keys[0][0] is None else validate.labels([key[0] for key in self.keys])[0]
        attributes = validate.attributes(self.groups(), len(self.keys))
        return build_contrasts(fairness, label=label, attributes=attributes, sensitive_mode=sensitive_mode)

    def groups(self) -> dict[str, list[Any]]:
        """Return the group of each cell in each attribute."""
        return {name: [key[1 + i] for key in self.keys] for i, name in enumerate(self.attributes)}

    def in_order(self, contrasts: Contrasts, all_keys: Sequence[Key]) -> CellSums:
        """Return the sums in the order of the cells of `contrasts`, which were built from `all_keys`."""
        cell_of = dict(zip(all_keys, contrasts.cells.codes.tolist(), strict=True))
        index = [cell_of[key] for key in self.keys]
        weight = np.zeros(contrasts.cells.n_cells)
        outcome = np.zeros((contrasts.cells.n_cells, self.sums.outcome.shape[1]))
        weight[index], outcome[index] = self.sums.weight, self.sums.outcome
        return CellSums(weight, outcome, self.sums.squared_error, self.sums.y_sum, self.sums.y_square_sum)


def _added(first: KeyedSums, second: KeyedSums, position: Mapping[Key, int]) -> CellSums:
    a, b = first.sums, second.sums
    if a.outcome.shape[1] != b.outcome.shape[1]:
        raise InvalidInputError(
            f"every chunk must have the scores of the same models; got {a.outcome.shape[1]} and {b.outcome.shape[1]}"
        )
    weight, outcome = np.zeros(len(position)), np.zeros((len(position), a.outcome.shape[1]))
    for part in (first, second):
        index = [position[key] for key in part.keys]
        weight[index] += part.sums.weight
        outcome[index] += part.sums.outcome
    if a.squared_error is None or b.squared_error is None:
        return CellSums(weight, outcome)
    n_a, n_b = float(a.weight.sum()), float(b.weight.sum())
    spread = a.y_square_sum + b.y_square_sum
    if n_a > 0 and n_b > 0:
        spread += (b.y_sum / n_b - a.y_sum / n_a) ** 2 * n_a * n_b / (n_a + n_b)
    return CellSums(weight, outcome, a.squared_error + b.squared_error, a.y_sum + b.y_sum, spread)


@dataclass(frozen=True, eq=False)
class KeyedCells:
    """The cells of a chunk: `cells` for sums over them, `keys` for what they are."""

    cells: Cells
    keys: tuple[Key, ...]
    attributes: tuple[str, ...]

    @classmethod
    def from_chunk(cls, chunk: Chunk, *, regression: bool) -> "KeyedCells":
        """Partition the rows of a chunk by label (not for regression) and groups."""
        groups = [_attribute(chunk, name, values) for name, values in chunk.sensitive.items()]
        if not groups:
            raise InvalidInputError("sensitive_features must hold at least one attribute; got none")
        label = Attribute("y_true", np.zeros(len(chunk), dtype=np.intp), (None,))
        if not regression:
            label = _attribute(chunk, "y_true", chunk.y, kind="y_true")
        cells = Cells.from_rows(None, [label, *groups])
        _check_number(cells.n_cells)
        values = [attribute.values for attribute in cells.attributes]
        keys = tuple(tuple(v[code] for v, code in zip(values, codes, strict=True)) for codes in cells.groups)
        return cls(cells, keys, tuple(attribute.name for attribute in groups))

    def sums(
        self,
        chunk: Chunk,
        scores: Any,
        *,
        threshold: float | None,
        y: FloatArray | None = None,
    ) -> KeyedSums:
        """Sum decisions, or scores without a threshold, of the chunk's rows; `y` asks for squared errors too."""
        rows = np.bincount(self.cells.codes, minlength=self.cells.n_cells)
        if chunk.weight is not None and not chunk.weight.any():  # a mean over no weight is undefined, a sum is zero
            n_models = scores.shape[1]
            nothing = CellSums(
                np.zeros(len(rows)), np.zeros((len(rows), n_models)), None if y is None else np.zeros(n_models)
            )
            return KeyedSums(self.keys, self.attributes, nothing, rows)
        sums = cell_sums(scores, self.cells, threshold=threshold, weight=chunk.weight, y=y)
        return KeyedSums(self.keys, self.attributes, sums, rows)


def _attribute(chunk: Chunk, name: str, values: Any, *, kind: str = "sensitive_features") -> Attribute:
    """Return the groups of a chunk, of which there may be one only."""
    parameter = kind if kind == name else f"{kind}[{name!r}]"
    if values.dtype.kind in "biufmMUS":
        distinct, codes = factorize(values)
        groups: list[Any] = distinct.tolist()
    else:
        groups, codes = factorize_objects(values, parameter=parameter)
    for code, group in enumerate(groups):
        if is_missing(group):
            error = GroupError if kind == "sensitive_features" else InvalidInputError
            row = chunk.row[int((codes == code).argmax())]
            raise error(f"{parameter} must have no missing value; got {group!r} at row {row}: drop these rows first")
    return Attribute(name, codes, tuple(groups))


def _check_number(n_cells: int) -> None:
    if n_cells > MOST_CELLS:
        raise GroupError(
            f"y_true and sensitive_features must have at most {MOST_CELLS} combinations of values; got {n_cells} and "
            "more: is one of them a number or a name, and not a group? Cut it into classes first"
        )
