"""Fairness as a set of contrasts (Definition 4 of the paper).

A *contrast* is a pair of row sets (G1, G2): the vector c with 1/|G1| on G1 and −1/|G2| on G2, so that cᵀs is a score
bias and cᵀŷ a decision bias. A measure is a list of *blocks* of row sets; inside a block each set is compared with each
other, so that the bias of a block is the largest rate minus the smallest.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fairfrontier._validation import Attribute, FloatArray, IntArray, column, one_of
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._cells import Cells

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
    cells : Cells
        The partition of the rows.
    """

    sets: RowSets
    membership: NDArray[np.bool_]
    cells: Cells

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
    *,
    label: NDArray[np.bool_] | None,
    attributes: Sequence[Attribute],
    sensitive_mode: str = "separate",
    n_rows: int | None = None,
) -> Contrasts:
    """Return the contrasts of a named measure, or of custom pairs of boolean masks.

    Parameters
    ----------
    fairness : str or list of (mask, mask)
        A key of `MEASURES`, or pairs of boolean masks of length n.
    label : ndarray of shape (n,) or None
        True for the positive class; None for regression.
    attributes : sequence of Attribute
        The sensitive attributes (ignored for custom masks).
    sensitive_mode : {"separate", "intersectional"}
        Each attribute on its own, or their cross product.
    n_rows : int, optional
        The length that custom masks must have; None: that of the labels or attributes, if there are any.
    """
    one_of(sensitive_mode, ("separate", "intersectional"), parameter="sensitive_mode")
    if not isinstance(fairness, str):
        known = [label] if label is not None else [attribute.codes for attribute in attributes]
        return _custom(fairness, label, len(known[0]) if n_rows is None and known else n_rows)
    conditions = MEASURES[one_of(fairness, MEASURES, parameter="fairness")]
    if label is None and conditions != (None,):
        raise InvalidInputError(
            f"fairness={fairness!r} conditions on a two-class label, which a regression target is not; "
            "use 'demographic_parity' or custom masks"
        )
    if sensitive_mode == "intersectional" and len(attributes) > 1:
        attributes = (intersection(attributes),)
    cells = Cells.from_rows(label, attributes)
    return _named(conditions, cells)


def _named(conditions: Iterable[bool | None], cells: Cells) -> Contrasts:
    names: list[str] = []
    blocks: list[tuple[int, ...]] = []
    rows: list[NDArray[np.bool_]] = []
    of_block: list[str] = []
    for condition in conditions:
        suffix = "" if condition is None else f" | y={int(condition)}"
        allowed = np.ones(cells.n_cells, dtype=bool) if condition is None else cells.label == condition
        for position, attribute in enumerate(cells.attributes):
            blocks.append(tuple(range(len(names), len(names) + len(attribute.values))))
            of_block.append(attribute.name)
            for code, value in enumerate(attribute.values):
                names.append(f"{attribute.name}={value}{suffix}")
                rows.append(allowed & (cells.groups[:, position] == code))
    return Contrasts(RowSets(tuple(names), tuple(blocks), tuple(of_block)), np.stack(rows), cells)


def intersection(attributes: Sequence[Attribute]) -> Attribute:
    """Return the cross product of attributes; combinations that no row has are no groups."""
    cells = Cells.from_rows(None, attributes)
    values = tuple(
        " & ".join(str(a.values[code]) for a, code in zip(attributes, codes, strict=True)) for codes in cells.groups
    )
    return Attribute(" & ".join(a.name for a in attributes), cells.codes, values)


def _custom(pairs: Any, label: NDArray[np.bool_] | None, n_rows: int | None) -> Contrasts:
    masks = _masks(pairs)
    length = len(next(iter(masks.values()))) if n_rows is None else n_rows
    for name, mask in masks.items():
        if len(mask) != length:
            raise InvalidInputError(
                f"{name} must have one boolean a row, {length}; got {len(mask)}: mask the rows of y"
            )
        if not mask.any():
            raise GroupError(
                f"{name} must select at least one row; got a mask that is False everywhere: its rate would be undefined"
            )
    names = tuple(f"contrast {j // 2} G{j % 2 + 1}" for j in range(len(masks)))
    as_attributes = [
        Attribute(name, mask.astype(np.intp), (False, True)) for name, mask in zip(names, masks.values(), strict=True)
    ]
    cells = Cells.from_rows(label, as_attributes)
    blocks = tuple((j, j + 1) for j in range(0, len(masks), 2))
    sets = RowSets(names, blocks, tuple(f"contrast {j}" for j in range(len(blocks))))
    return Contrasts(sets, cells.groups.T.astype(bool), cells)


def _masks(pairs: Any) -> dict[str, NDArray[np.bool_]]:
    """Return the masks of all pairs by the name that an error gives them."""
    expected = "a measure's name, a callable, or a list of pairs (mask, mask) of boolean arrays"
    if not isinstance(pairs, Sequence) or len(pairs) == 0:
        raise InvalidInputError(f"fairness must be {expected}; got {pairs!r}")
    masks = {}
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidInputError(
                f"fairness must be {expected}; got {type(pair).__name__} as fairness[{i}], not a pair"
            )
        for j, mask in enumerate(pair):
            name = f"fairness[{i}][{j}]"
            masks[name] = column(mask, parameter=name)
            if masks[name].dtype.kind != "b":
                raise InvalidInputError(f"{name} must be booleans, one a row; got dtype {masks[name].dtype}")
    return masks
