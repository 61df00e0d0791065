"""Fairness as a set of contrasts (Definition 4 of the paper).

A *contrast* is a pair of row sets (G1, G2): the vector c with 1/|G1| on G1 and −1/|G2| on G2, so that cᵀs is a score
bias and cᵀŷ a decision bias. A measure is a list of *blocks* of row sets; inside a block each set is compared with each
other, so that the bias of a block is the largest rate minus the smallest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from fairfrontier._groups import NOT_COMPARED
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

# Demographic parity in the units of a regression target itself; of decisions the two are the same.
MEAN_DIFFERENCE = "mean_difference"
_ALL, _POSITIVE, _NEGATIVE = (None,), (True,), (False,)
# Every measure: the labels on which it conditions (None is every row), and how rates are compared (`COMPARISONS`).
_MEASURES: dict[str, tuple[tuple[bool | None, ...], str]] = {
    "demographic_parity": (_ALL, "difference"),
    MEAN_DIFFERENCE: (_ALL, "difference"),
    "equal_opportunity": (_POSITIVE, "difference"),
    "true_positive_rate_parity": (_POSITIVE, "difference"),
    "predictive_equality": (_NEGATIVE, "difference"),
    "false_positive_rate_parity": (_NEGATIVE, "difference"),
    "equalized_odds": (_POSITIVE + _NEGATIVE, "difference"),
    "impact_ratio": (_ALL, "ratio"),
    "demographic_parity_ratio": (_ALL, "ratio"),
    "equal_opportunity_ratio": (_POSITIVE, "ratio"),
    "predictive_equality_ratio": (_NEGATIVE, "ratio"),
    "equalized_odds_ratio": (_POSITIVE + _NEGATIVE, "ratio"),
    "odds_ratio": (_ALL, "odds"),
}
MEASURES: dict[str, tuple[bool | None, ...]] = {name: conditions for name, (conditions, _) in _MEASURES.items()}

# What Fairlearn's functions compare, and the measures that their differences and their ratios are.
_OF_FAIRLEARN = {
    "demographic_parity": ("demographic_parity", "impact_ratio"),
    "selection_rate": ("demographic_parity", "impact_ratio"),
    "equal_opportunity": ("equal_opportunity", "equal_opportunity_ratio"),
    "true_positive_rate": ("equal_opportunity", "equal_opportunity_ratio"),
    "false_positive_rate": ("predictive_equality", "predictive_equality_ratio"),
    "equalized_odds": ("equalized_odds", "equalized_odds_ratio"),
}

# Up to this many (row set, cell) pairs a dense product is faster than a sparse one.
_DENSE_MEMBERSHIP = 2**14
# A block of three sets has three pairs; with more sets there are more pairs than sets.
_FEW_PAIRS = 3

_Blocks = tuple[tuple[int, ...], ...]

# What may follow a measure's name: the group that others are compared with, and the attribute whose values are strata.
_AGAINST, _WITHIN = " against ", " within "

Fairness = str | Callable[..., float] | Sequence[tuple[Any, Any]]


def _difference(low: FloatArray, high: FloatArray) -> FloatArray:
    return np.asarray(high - low)


def _ratio(low: FloatArray, high: FloatArray) -> FloatArray:
    # Nobody selected in either set: both are treated alike. A share cannot be negative; an extrapolated one may be.
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    quotient = np.divide(low, high, out=np.full(np.shape(low), 2.0), where=high > 0)
    return 1.0 - np.where(low == high, 1.0, np.minimum(quotient, 2.0))


def _odds(low: FloatArray, high: FloatArray) -> FloatArray:
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    return np.where(low == high, 0.0, _ratio(low * (1.0 - high), high * (1.0 - low)))


def _log(rates: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(rates, 0.0))


@dataclass(frozen=True)
class RateComparison:
    """How two rates are compared.

    Attributes
    ----------
    bias : callable
        ``(low, high) -> bias``: 0 where the rates are equal, 1 − fairness; negative where they are the other way round.
    link : callable
        A function of the rates whose differences are what is compared.
    multiplied : bool
        True: fairness is e to the minus difference of links, and so moves in proportion to itself.
    """

    bias: Callable[[FloatArray, FloatArray], FloatArray]
    link: Callable[[FloatArray], FloatArray]
    multiplied: bool


COMPARISONS = {
    "difference": RateComparison(_difference, np.asarray, multiplied=False),
    "ratio": RateComparison(_ratio, _log, multiplied=True),
    "odds": RateComparison(_odds, lambda rates: _log(rates) - _log(1.0 - rates), multiplied=True),
}


@dataclass(frozen=True)
class Measure:
    """A measure by name.

    Attributes
    ----------
    conditions : tuple
        The labels on which it conditions; None is every row.
    comparison : str
        A key of `COMPARISONS`.
    against : tuple of str
        The reference group of each attribute, as text; empty: every group is compared with every other.
    within : str or None
        The attribute whose values are strata: groups are compared inside each of them only.
    """

    conditions: tuple[bool | None, ...]
    comparison: str
    against: tuple[str, ...] = ()
    within: str | None = None

    @property
    def needs_labels(self) -> bool:
        return self.conditions != _ALL


def named_measure(fairness: str, *, parameter: str = "fairness") -> Measure:
    """Return the measure of a name, such as ``"impact_ratio against White"`` or ``"demographic_parity within job"``.

    Examples
    --------
    >>> named_measure("impact_ratio against White within job")
    Measure(conditions=(None,), comparison='ratio', against=('White',), within='job')
    """
    rest, _, within = str(fairness).partition(_WITHIN)
    name, _, against = rest.partition(_AGAINST)
    conditions, comparison = _MEASURES[one_of(name, _MEASURES, parameter=parameter)]
    groups = tuple(part.strip() for part in against.split(",") if part.strip())
    return Measure(conditions, comparison, groups, within.strip() or None)


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
    comparison : str
        How two rates are compared: a key of `COMPARISONS`.
    reference : tuple of int
        The set of each block with which the others are compared; empty: each with each.
    """

    names: tuple[str, ...]
    blocks: tuple[tuple[int, ...], ...]
    attributes: tuple[str, ...]
    comparison: str = "difference"
    reference: tuple[int, ...] = ()

    @property
    def n_contrasts(self) -> int:
        sizes = map(len, self.blocks)
        return sum(size - 1 if self.reference else size * (size - 1) // 2 for size in sizes)

    def check_weights(self, totals: FloatArray) -> None:
        """Raise if a set has no weight, from the total weight of each (s,)."""
        for name, total in zip(self.names, totals, strict=True):
            if total <= 0:
                raise GroupError(
                    f"sensitive_features must leave no group empty; the row set {name!r} has total weight {total:g}, "
                    "so its rate is undefined: merge small groups, drop them, or use another fairness measure"
                )

    @property
    def compares_differences(self) -> bool:
        """True: the bias is linear in the rates, up to its sign."""
        return self.comparison == "difference"

    def pairs(self) -> IntArray:
        """Return the contrasts as pairs of sets, shape (m, 2): the first set minus the second."""
        return np.concatenate(_pairs_by_block(self.blocks, self.reference))

    def contrast_names(self) -> tuple[str, ...]:
        """Return a name for each contrast, in the order of `pairs`."""
        return tuple(f"{self.names[i]} − {self.names[j]}" for i, j in self.pairs())

    def basis(self) -> FloatArray:
        """Return coordinates (q, s) of the differences between rates, of which there are fewer than pairs.

        Notes
        -----
        A block of up to three sets, or one that has a reference, has its pairs as coordinates. Any other block of g
        sets has √g times the rate of each set minus the mean of all: g coordinates instead of g(g − 1)/2, with the same
        sum of squares. What is made of lengths and angles is then the same as with pairs.
        """
        return _coordinates(len(self.names), self.blocks, self.reference)[0]

    def pairs_of_basis(self) -> csr_array:
        """Return the matrix (m, q) from coordinates of `basis` to the differences of pairs; its transpose goes back."""
        return _coordinates(len(self.names), self.blocks, self.reference)[1]

    def largest_gap(self, rates: FloatArray) -> FloatArray:
        """Return the bias over all contrasts from rates (k, s) or (b, s, k), without forming the pairs."""
        return np.asarray(np.max(list(self.block_gaps(rates)), axis=0))

    def fairness(self, rates: FloatArray) -> FloatArray:
        """Return 1 − the largest bias, in [0, 1], from rates (k, s) or (b, s, k)."""
        return np.clip(1.0 - self.largest_gap(rates), 0.0, 1.0)

    def block_fairness(self, rates: FloatArray) -> FloatArray:
        """Return 1 − the largest bias inside each block, (b, blocks, k), from rates (b, s, k)."""
        return np.clip(1.0 - np.stack(list(self.block_gaps(rates)), axis=1), 0.0, 1.0)

    def block_gaps(self, rates: FloatArray, comparison: str | None = None) -> Iterable[FloatArray]:
        """Yield the largest bias inside each block from rates (k, s) or (b, s, k), the sets along axis 1."""
        bias = COMPARISONS[comparison or self.comparison].bias
        for i, block in enumerate(self.blocks):
            if self.reference:
                first = rates[:, self.reference[i]][:, None]
                others = rates[:, [s for s in block if s != self.reference[i]]]
                yield bias(np.minimum(others, first), np.maximum(others, first)).max(axis=1)
            elif len(block) == 2:
                first, second = rates[:, block[0]], rates[:, block[1]]
                yield bias(np.minimum(first, second), np.maximum(first, second))
            else:
                of_block = rates[:, list(block)]
                yield bias(of_block.min(axis=1), of_block.max(axis=1))

    def extreme_pairs(self, rates: FloatArray) -> Iterable[tuple[IntArray, IntArray]]:
        """Yield the sets (k,) with the lower and the higher rate of the worst pair of each block, from rates (k, s)."""
        bias, every = COMPARISONS[self.comparison].bias, np.arange(len(rates))
        for i, block in enumerate(self.blocks):
            sets = np.asarray(block)
            low, high = sets[rates[:, sets].argmin(axis=1)], sets[rates[:, sets].argmax(axis=1)]
            if self.reference:
                first = np.full(len(rates), self.reference[i])
                down, up = (bias(rates[every, a], rates[every, b]) for a, b in ((low, first), (first, high)))
                low, high = np.where(down >= up, low, first), np.where(down >= up, first, high)
            yield low, high

    def movement(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return by how much the fairness of each block can have moved, (b, blocks, k), whatever the sign.

        The rates are (1, s, k) before and (b, s, k) after.

        Notes
        -----
        A maximum over contrasts moves by no more than the largest move of a contrast. Ratios are differences of
        logarithms: there the move is in proportion to the fairness.
        """
        compare = COMPARISONS[self.comparison]
        with np.errstate(invalid="ignore"):
            change = compare.link(after) - compare.link(before)
        # Of a rate that is 0 before and after nothing has moved.
        change = np.where(np.isnan(change), 0.0, np.clip(change, -1e3, 1e3))
        moved = np.stack(list(self.block_gaps(change, "difference")), axis=1)
        return np.asarray(np.minimum(self.block_fairness(before) * moved, 1.0) if compare.multiplied else moved)


def _pairs_by_block(blocks: _Blocks, reference: tuple[int, ...]) -> list[IntArray]:
    if reference:
        both = zip(blocks, reference, strict=True)
        return [np.array([(s, first) for s in block if s != first], dtype=np.intp) for block, first in both]
    return [np.asarray(block, dtype=np.intp)[np.stack(np.triu_indices(len(block), k=1), axis=1)] for block in blocks]


# A fit asks for these small matrices dozens of times.
@lru_cache(maxsize=8)
def _coordinates(n_sets: int, blocks: _Blocks, reference: tuple[int, ...]) -> tuple[FloatArray, csr_array]:
    """Return the coordinates (q, s) of `RowSets.basis`, and the matrix (m, q) from these to the pairs."""
    basis, to_pairs = [], []
    for block, pairs in zip(blocks, _pairs_by_block(blocks, reference), strict=True):
        size, both = len(block), np.concatenate([np.ones(len(pairs)), -np.ones(len(pairs))])
        number = np.tile(np.arange(len(pairs)), 2)
        of_pairs = csr_array((both, (number, pairs.T.ravel())), shape=(len(pairs), n_sets))
        if reference or len(pairs) <= _FEW_PAIRS:
            basis.append(of_pairs.toarray())
            to_pairs.append(csr_array(np.eye(len(pairs))))
        else:
            basis.append(np.zeros((size, n_sets)))
            basis[-1][:, list(block)] = np.sqrt(size) * (np.eye(size) - 1.0 / size)
            to_pairs.append(csr_array(of_pairs[:, list(block)] / np.sqrt(size)))
    stacked = np.vstack(basis)
    stacked.flags.writeable = False  # all callers have the same array
    return stacked, csr_array(block_diag(to_pairs, format="csr"))


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
    in_target_units : bool
        Whether differences of predicted numbers are taken as they are; else in standard deviations of the target.
    """

    sets: RowSets
    membership: NDArray[np.bool_]
    keys: tuple[Key, ...]
    label: NDArray[np.bool_]
    classes: tuple[Any, Any] | None
    attributes: tuple[Attribute, ...]
    in_target_units: bool = False

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
        self.sets.check_weights(totals)
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
        A measure's name (see `named_measure`); or pairs of masks, which are then the attributes of the cells (see
        `row_masks`).
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
    measure = named_measure(fairness)
    if classes is None and measure.needs_labels:
        raise InvalidInputError(
            f"fairness={fairness!r} conditions on a two-class label, which a regression target is not; "
            "use 'demographic_parity' or custom masks"
        )
    if not groups:
        raise InvalidInputError("sensitive_features must be given: one value per row, e.g. data['sex']; got None")
    for attribute in groups:
        check_groups(attribute.values, attribute.name)
    stratum, groups = _stratum(measure, groups)
    if sensitive_mode == "intersectional" and len(groups) > 1:
        groups = (intersection(groups),)
    sets, membership = _named_sets(measure, label, groups, stratum)
    attributes_there = groups if stratum is None else (*groups, stratum)
    in_units = fairness == MEAN_DIFFERENCE
    return Contrasts(sets, membership, tuple(keys), label, classes, attributes_there, in_units)


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


def _stratum(measure: Measure, groups: tuple[Attribute, ...]) -> tuple[Attribute | None, tuple[Attribute, ...]]:
    """Return the attribute whose values are strata, if the measure has one, and the others."""
    if measure.within is None:
        return None, groups
    names = [attribute.name for attribute in groups]
    stratum = groups[names.index(one_of(measure.within, names, parameter=f"fairness, after {_WITHIN.strip()!r},"))]
    rest = tuple(attribute for attribute in groups if attribute is not stratum)
    if not rest:
        raise InvalidInputError(
            f"sensitive_features must have an attribute to compare within {measure.within!r}; got that one alone"
        )
    return stratum, rest


def _named_sets(
    measure: Measure, label: NDArray[np.bool_], attributes: Sequence[Attribute], stratum: Attribute | None
) -> tuple[RowSets, NDArray[np.bool_]]:
    names: list[str] = []
    blocks: list[tuple[int, ...]] = []
    rows: list[NDArray[np.bool_]] = []
    of_block: list[str] = []
    reference: list[int] = []
    firsts = _references(measure, attributes)
    for suffix, allowed in _parts(measure, label, stratum):
        for attribute, first in zip(attributes, firsts, strict=True):
            inside = [allowed & (attribute.codes == code) for code in range(len(attribute.values))]
            # Inside a stratum a group that is not there has nobody to compare with; without strata it is an error.
            present = [
                code
                for code, cells in enumerate(inside)
                if (stratum is None or cells.any()) and attribute.values[code] != NOT_COMPARED
            ]
            if len(present) < 2 or (first is not None and first not in present):
                continue
            start = len(names)
            blocks.append(tuple(range(start, start + len(present))))
            of_block.append(attribute.name)
            reference += [] if first is None else [start + present.index(first)]
            names += [f"{attribute.name}={attribute.values[code]}{suffix}" for code in present]
            rows += [inside[code] for code in present]
    if not blocks:
        raise GroupError(
            f"sensitive_features must have two groups in some stratum of {measure.within!r}; got one group in each: "
            "nothing can be compared within them"
        )
    sets = RowSets(tuple(names), tuple(blocks), tuple(of_block), measure.comparison, tuple(reference))
    return sets, np.stack(rows)


def _parts(
    measure: Measure, label: NDArray[np.bool_], stratum: Attribute | None
) -> Iterable[tuple[str, NDArray[np.bool_]]]:
    """Yield the end of the names and the cells of each part of the rows inside which groups are compared."""
    for condition in measure.conditions:
        suffix = "" if condition is None else f" | y={int(condition)}"
        allowed = np.ones(len(label), dtype=bool) if condition is None else label == condition
        if stratum is None:
            yield suffix, allowed
            continue
        for code, value in enumerate(stratum.values):
            yield f"{suffix} | {stratum.name}={value}", allowed & (stratum.codes == code)


def _references(measure: Measure, attributes: Sequence[Attribute]) -> list[int | None]:
    """Return the code of the reference group of each attribute; None: there is no reference group."""
    if not measure.against:
        return [None] * len(attributes)
    result: list[int | None] = []
    for attribute in attributes:
        groups = [str(value) for value in attribute.values]
        found = [groups.index(group) for group in measure.against if group in groups]
        if len(found) != 1:
            raise GroupError(
                f"fairness, after {_AGAINST.strip()!r}, must name one group of each attribute; got "
                f"{', '.join(measure.against)!r} where {attribute.name!r} has {', '.join(groups[:8])!r}"
            )
        result.append(found[0])
    return result


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


def of_fairlearn(function: Any) -> tuple[str, str]:
    """Return what a function of Fairlearn compares, and how: "difference", "ratio" or else; ("", "") for others."""
    function = getattr(function, "func", function)  # of a partial
    if not str(getattr(function, "__module__", "")).startswith("fairlearn."):
        return "", ""
    compared, _, how = str(getattr(function, "__name__", "")).rpartition("_")
    derived = getattr(function, "_metric_fn", None)  # of `make_derived_metric`
    return (compared, how) if derived is None else (getattr(derived, "__name__", ""), function._transform)


def named_function(fairness: Any, n_attributes: int = 1, sensitive_mode: str = "separate") -> Any:
    """Return the name of the measure that a function of Fairlearn is, where functions are not taken; else `fairness`.

    Parameters
    ----------
    fairness : str, masks or callable
        The caller's parameter.
    n_attributes, sensitive_mode
        The sensitive attributes: of several, Fairlearn compares the cross product.
    """
    if not callable(fairness) or hasattr(fairness, "keywords"):  # a partial may be another measure
        return fairness
    compared, how = of_fairlearn(fairness)
    if compared not in _OF_FAIRLEARN or how not in ("difference", "ratio"):
        return fairness
    if n_attributes > 1 and sensitive_mode == "separate":
        raise InvalidInputError(
            "sensitive_mode must be 'intersectional' with several attributes and a function of Fairlearn, which "
            "compares their cross product; got 'separate'"
        )
    return _OF_FAIRLEARN[compared][how == "ratio"]


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
