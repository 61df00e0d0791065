"""Fairness as a set of contrasts (Definition 4 of the paper).

A *contrast* is a pair of row sets (G1, G2): the vector c with 1/|G1| on G1 and −1/|G2| on G2, so that cᵀs is a score
bias and cᵀŷ a decision bias. A measure is a list of *blocks* of row sets; inside a block each set is compared with each
other, so that the bias of a block is the largest rate minus the smallest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from fairfrontier._rows import Key
from fairfrontier._validation import (
    Attribute,
    FloatArray,
    IntArray,
    check_groups,
    column,
    distinct,
    one_of,
    two_classes,
)
from fairfrontier.exceptions import GroupError, InvalidInputError

# The labels on which each measure conditions: None is every row.
MEASURES: dict[str, tuple[bool | None, ...]] = {
    "demographic_parity": (None,),
    "equal_opportunity": (True,),
    "true_positive_rate_parity": (True,),
    "predictive_equality": (False,),
    "false_positive_rate_parity": (False,),
    "equalized_odds": (True, False),
}

# Up to this many (row set, cell) pairs a dense product is faster than a sparse one.
_DENSE_MEMBERSHIP = 2**14

# Up to this many sets a block has no more pairs than sets.
_FEW_SETS = 3

Fairness = str | Callable[..., float] | Sequence[tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class RowSets:
    """The row sets of a measure and how they are compared.

    Attributes
    ----------
    names : tuple of str, length s
        A name for each row set, such as ``"sex=Female | y=1"``.
    blocks : tuple of tuple of int
        Sets that are compared with one another; two sets make one contrast, g sets make g(g − 1)/2.
    attributes : tuple of str
        The sensitive attribute that each block belongs to.
    """

    names: tuple[str, ...]
    blocks: tuple[tuple[int, ...], ...]
    attributes: tuple[str, ...]

    @property
    def n_contrasts(self) -> int:
        return sum(len(block) * (len(block) - 1) // 2 for block in self.blocks)

    def pairs(self) -> IntArray:
        """Return the contrasts as pairs of sets, shape (m, 2): the first set minus the second."""
        parts = [np.asarray(block)[np.stack(np.triu_indices(len(block), k=1), axis=1)] for block in self.blocks]
        return np.concatenate(parts).astype(np.intp, copy=False)

    def contrast_names(self) -> tuple[str, ...]:
        """Return a name for each contrast, in the order of `pairs`."""
        return tuple(f"{self.names[i]} − {self.names[j]}" for i, j in self.pairs())

    def basis(self) -> FloatArray:
        """Return coordinates (q, s) of the differences between rates, of which there are fewer than pairs.

        Notes
        -----
        A block of up to three sets has its pairs as coordinates. A larger block of g sets has √g times the rate of each
        set minus the mean of all: g coordinates instead of g(g − 1)/2, with the same sum of squares. What is made of
        lengths and angles is then the same as with pairs.
        """
        parts = [self._block_basis(block)[0] for block in self.blocks]
        return np.vstack(parts)

    def pairs_of_basis(self) -> csr_array:
        """Return the matrix (m, q) from coordinates of `basis` to the differences of pairs; its transpose goes back."""
        return csr_array(block_diag([self._block_basis(block)[1] for block in self.blocks], format="csr"))

    def _block_basis(self, block: tuple[int, ...]) -> tuple[FloatArray, csr_array]:
        size = len(block)
        first, second = np.triu_indices(size, k=1)
        number = np.arange(len(first))
        entries = np.repeat([1.0, -1.0], len(first))
        columns = np.concatenate([first, second])
        of_pairs = csr_array((entries, (np.tile(number, 2), columns)), shape=(len(first), size))
        coordinates = np.zeros((len(first) if size <= _FEW_SETS else size, len(self.names)))
        if size <= _FEW_SETS:
            coordinates[:, list(block)] = of_pairs.toarray()
            return coordinates, csr_array(np.eye(len(first)))
        coordinates[:, list(block)] = np.sqrt(size) * (np.eye(size) - 1.0 / size)
        return coordinates, of_pairs / np.sqrt(size)

    def largest_gap(self, rates: FloatArray) -> FloatArray:
        """Return the bias max |cᵀ·| over all contrasts from rates (k, s), without forming the pairs."""
        return np.asarray(np.max(list(self.block_gaps(rates)), axis=0))

    def block_gaps(self, rates: FloatArray) -> Iterable[FloatArray]:
        """Yield the largest difference inside each block, shape (k,)."""
        for block in self.blocks:
            of_block = rates[:, list(block)]
            yield of_block.max(axis=1) - of_block.min(axis=1)


@dataclass(frozen=True, eq=False)
class Contrasts:
    """A measure on given cells: row sets, and which cells belong to each.

    Attributes
    ----------
    sets : RowSets
        The row sets and their comparison.
    membership : ndarray of shape (s, c)
        True where a cell's rows belong to a set.
    keys : tuple of tuple, length c
        The label and the groups of each cell.
    label : ndarray of shape (c,)
        True for the cells of the positive class; all False where rows are not told apart by label.
    classes : tuple or None
        The two classes of the label, the positive one last; None: no label.
    attributes : tuple of Attribute
        The sensitive attributes, with the group of each cell as their `codes`.
    """

    sets: RowSets
    membership: NDArray[np.bool_]
    keys: tuple[Key, ...]
    label: NDArray[np.bool_]
    classes: tuple[Any, Any] | None
    attributes: tuple[Attribute, ...]

    @property
    def n_cells(self) -> int:
        return len(self.keys)

    def rates(self, outcome: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the mean outcome of each model in each set, shape (k, s).

        Parameters
        ----------
        outcome : ndarray of shape (c, k)
            Sums over cells.
        weight : ndarray of shape (c,)
            Total weights of the cells.
        """
        totals = self.membership @ weight
        for name, total in zip(self.sets.names, totals, strict=True):
            if total <= 0:
                raise GroupError(
                    f"sensitive_features must leave no group empty; the row set {name!r} has total weight {total:g}, "
                    "so its rate is undefined: merge small groups, drop them, or use another fairness measure"
                )
        # With thousands of groups nearly all of the membership is zero; a dense product would take most of the time.
        dense = self.membership.size <= _DENSE_MEMBERSHIP
        member = self.membership.astype(np.float64) if dense else csr_array(self.membership, dtype=np.float64)
        return np.asarray((member @ outcome / totals[:, None]).T)


def build_contrasts(
    fairness: str | Sequence[tuple[Any, Any]],
    keys: Sequence[Key],
    attributes: Sequence[str],
    *,
    sensitive_mode: str = "separate",
) -> Contrasts:
    """Return the contrasts of a measure on cells.

    Parameters
    ----------
    fairness : str or list of (mask, mask)
        A key of `MEASURES`; or pairs of masks, which are then the attributes of the cells (see `row_masks`).
    keys : sequence of tuple, length c
        The label (None: no label) and the groups of each cell.
    attributes : sequence of str
        The sensitive attributes.
    sensitive_mode : {"separate", "intersectional"}
        Each attribute on its own, or their cross product.
    """
    one_of(sensitive_mode, ("separate", "intersectional"), parameter="sensitive_mode")
    label, classes = np.zeros(len(keys), dtype=bool), None
    if keys[0][0] is not None:
        found, codes = _column(keys, 0, "y_true")
        classes = two_classes(found)
        label = codes == 1
    groups = attributes_of(keys, attributes)
    if not isinstance(fairness, str):
        return Contrasts(*_mask_sets(groups), tuple(keys), label, classes, groups)
    conditions = MEASURES[one_of(fairness, MEASURES, parameter="fairness")]
    if classes is None and conditions != (None,):
        raise InvalidInputError(
            f"fairness={fairness!r} conditions on a two-class label, which a regression target is not; "
            "use 'demographic_parity' or custom masks"
        )
    if not groups:
        raise InvalidInputError("sensitive_features must be given: one value per row, e.g. data['sex']; got None")
    for attribute in groups:
        check_groups(attribute.values, attribute.name)
    if sensitive_mode == "intersectional" and len(groups) > 1:
        groups = (intersection(groups),)
    return Contrasts(*_named_sets(conditions, label, groups), tuple(keys), label, classes, groups)


def attributes_of(keys: Sequence[Key], names: Sequence[str]) -> tuple[Attribute, ...]:
    """Return the attributes of cells, with the group of each cell as their codes."""
    found = [_column(keys, 1 + i, name) for i, name in enumerate(names)]
    return tuple(Attribute(name, codes, values) for name, (values, codes) in zip(names, found, strict=True))


def _column(keys: Sequence[Key], position: int, name: str) -> tuple[tuple[Any, ...], IntArray]:
    """Return the distinct values at a position of the keys, sorted, and each key's index among them."""
    values = np.empty(len(keys), dtype=object)
    values[:] = [key[position] for key in keys]
    found, codes = distinct(values, parameter=name)
    return tuple(found), codes


def _named_sets(
    conditions: Iterable[bool | None], label: NDArray[np.bool_], attributes: Sequence[Attribute]
) -> tuple[RowSets, NDArray[np.bool_]]:
    names: list[str] = []
    blocks: list[tuple[int, ...]] = []
    rows: list[NDArray[np.bool_]] = []
    of_block: list[str] = []
    for condition in conditions:
        suffix = "" if condition is None else f" | y={int(condition)}"
        allowed = np.ones(len(label), dtype=bool) if condition is None else label == condition
        for attribute in attributes:
            blocks.append(tuple(range(len(names), len(names) + len(attribute.values))))
            of_block.append(attribute.name)
            for code, value in enumerate(attribute.values):
                names.append(f"{attribute.name}={value}{suffix}")
                rows.append(allowed & (attribute.codes == code))
    return RowSets(tuple(names), tuple(blocks), tuple(of_block)), np.stack(rows)


def intersection(attributes: Sequence[Attribute]) -> Attribute:
    """Return the cross product of attributes; combinations that no row has are no groups."""
    combined = np.stack([attribute.codes for attribute in attributes], axis=1)
    found, codes = np.unique(combined, axis=0, return_inverse=True)
    values = tuple(
        " & ".join(str(a.values[code]) for a, code in zip(attributes, combination, strict=True))
        for combination in found
    )
    return Attribute(" & ".join(a.name for a in attributes), np.ravel(codes), values)


def _mask_sets(attributes: Sequence[Attribute]) -> tuple[RowSets, NDArray[np.bool_]]:
    """Return each mask as a row set, the two of a pair as a block."""
    names = tuple(attribute.name for attribute in attributes)
    blocks = tuple((j, j + 1) for j in range(0, len(names), 2))
    inside = [np.array(attribute.values, dtype=bool)[attribute.codes] for attribute in attributes]
    return RowSets(names, blocks, tuple(f"contrast {j}" for j in range(len(blocks)))), np.stack(inside)


def row_masks(pairs: Any, n_rows: int | None = None) -> Mapping[str, NDArray[np.bool_]]:
    """Return the masks of custom contrasts by the names of their row sets.

    Parameters
    ----------
    pairs : list of (mask, mask)
        Boolean masks, one value per row of the whole table.
    n_rows : int, optional
        Their length, where it is known.
    """
    expected = "a measure's name, a callable, or a list of pairs (mask, mask) of boolean arrays"
    if not isinstance(pairs, Sequence) or len(pairs) == 0:
        raise InvalidInputError(f"fairness must be {expected}; got {pairs!r}")
    masks: dict[str, NDArray[np.bool_]] = {}
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidInputError(
                f"fairness must be {expected}; got {type(pair).__name__} as fairness[{i}], not a pair"
            )
        for j, mask in enumerate(pair):
            masks[f"contrast {i} G{j + 1}"] = _mask(mask, f"fairness[{i}][{j}]", n_rows)
            n_rows = len(masks[f"contrast {i} G{j + 1}"])
    return masks


def _mask(mask: Any, name: str, n_rows: int | None) -> NDArray[np.bool_]:
    values = column(mask, parameter=name)
    if values.dtype.kind != "b":
        raise InvalidInputError(f"{name} must be booleans, one per row; got dtype {values.dtype}")
    if n_rows is not None and len(values) != n_rows:
        raise InvalidInputError(
            f"{name} must have one boolean per row, {n_rows}; got {len(values)}: mask the rows of y"
        )
    if not values.any():
        raise GroupError(
            f"{name} must select at least one row; got a mask that is False everywhere: its rate would be undefined"
        )
    return values
