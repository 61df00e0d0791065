"""All that a squared-loss stack needs to know of the data: sums over rows.

The sums are additive, so the same object is filled from an array, from chunks of a file, or from the blocks of a
cluster, and everything after it is the same code. Each fold has its own sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray
from fairfrontier.chunks import Chunks, whole
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.metrics._contrasts import Contrasts, RowSets, build_contrasts
from fairfrontier.metrics._sums import KeyedSums, check_mask_length, keyed_sums, masks_of_chunks

if TYPE_CHECKING:
    from fairfrontier.optimize._cross_validation import Folds

# Elements of a block of predictions that is centred at once: it stays in the processor's cache for the product.
_BLOCK = 2**18
# Relative size of the rounding in a mean.
ROUNDING = 1e-14
_NO_SETS = RowSets((), (), ())
# Different weights up to which they can be counts of rows, and how far from a whole number a rounded multiple may be.
_MOST_COUNTS, _WHOLE = 1000, 1e-6


@dataclass(frozen=True)
class RowWeights:
    """What is known of the weights of rows: how much one row weighs.

    Attributes
    ----------
    total, square : float
        Sums of the weights and of their squares.
    distinct : frozenset of float or None
        The positive weights; None: more than can be counts of rows.
    """

    total: float
    square: float
    distinct: frozenset[float] | None

    @classmethod
    def of_rows(cls, rows: Rows) -> "RowWeights":
        """Return what is known of the weights of some rows."""
        if rows.weight is None:
            return cls(float(len(rows)), float(len(rows)), frozenset([1.0]))
        found = np.unique(rows.weight[rows.weight > 0])
        distinct = frozenset(found.tolist()) if len(found) <= _MOST_COUNTS else None
        return cls(float(rows.weight.sum()), float(rows.weight @ rows.weight), distinct)

    def __add__(self, other: "RowWeights") -> "RowWeights":
        """Return what is known of both parts together."""
        distinct = None if self.distinct is None or other.distinct is None else self.distinct | other.distinct
        if distinct is not None and len(distinct) > _MOST_COUNTS:
            distinct = None
        return RowWeights(self.total + other.total, self.square + other.square, distinct)

    @property
    def of_one_row(self) -> float:
        """Return the weight of one row; it has the scale of the weights, so that ratios to it have none.

        Notes
        -----
        Weights that are whole multiples of the smallest are counts: a weight of 2 is a row that is there twice. Of
        others it is Σw²/Σw, with which the total is Kish's effective number of rows, (Σw)²/Σw².

        Examples
        --------
        >>> counts = RowWeights(8.0, 18.0, frozenset([1.0, 4.0]))
        >>> other = RowWeights(8.0, 18.0, frozenset([1.0, 3.5]))
        >>> counts.of_one_row, other.of_one_row
        (1.0, 2.25)
        """
        return min(self.distinct) if self.distinct and self.are_counts else self.square / self.total

    @property
    def are_counts(self) -> bool:
        """Tell whether the weights are whole multiples of the smallest."""
        if not self.distinct:
            return False
        multiples = np.array(sorted(self.distinct)) / min(self.distinct)
        return bool(np.abs(multiples - multiples.round()).max() < _WHOLE)


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
    set_weight, set_square : ndarray of shape (s,)
        Sums of the weights of each row set, and of their squares.
    set_h : ndarray of shape (s, k)
        Sum of each base model's predictions over each row set.
    sets : RowSets
        The row sets and how they are compared.
    row_weights : RowWeights
        What is known of the weights of single rows.
    """

    weight: float
    mean_h: FloatArray
    mean_y: float
    gram: FloatArray
    cross: FloatArray
    y_square: float
    set_weight: FloatArray
    set_square: FloatArray
    set_h: FloatArray
    sets: RowSets
    row_weights: RowWeights

    @property
    def n_rows(self) -> float:
        """Return the number of rows, with weights the effective one, which does not depend on their scale."""
        return self.weight / self.row_weights.of_one_row

    @property
    def set_rows(self) -> FloatArray:
        """Return the number of rows of each row set, shape (s,), with weights the effective one of its own rows."""
        if self.row_weights.are_counts:
            return self.set_weight / self.row_weights.of_one_row
        return np.asarray(self.set_weight**2 / np.maximum(self.set_square, np.finfo(float).tiny))

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_preds: Any,
        *,
        sensitive_features: Any,
        fairness: Any = "demographic_parity",
        sensitive_mode: str = "separate",
        sample_weight: Any = None,
        regression: bool = False,
    ) -> "StackStatistics":
        """Compute the statistics of predictions in memory.

        Parameters
        ----------
        y_true, y_preds, sensitive_features, sample_weight
            As in `tradeoff_points`.
        fairness, sensitive_mode
            As in `tradeoff_points`; not a function.
        regression : bool
            Whether the target is a number.
        """
        named = isinstance(fairness, str)
        rows = Rows.validated(
            y_true,
            y_preds,
            sensitive_features,
            sample_weight=sample_weight,
            whole=True,
            needs_attributes=named,
        )
        return cls.from_chunks(whole(rows), fairness=fairness, sensitive_mode=sensitive_mode, regression=regression)

    @classmethod
    def from_chunks(
        cls,
        chunks: Chunks,
        *,
        fairness: Any = "demographic_parity",
        sensitive_mode: str = "separate",
        regression: bool = False,
    ) -> "StackStatistics":
        """Compute the statistics in one pass over chunks.

        Parameters
        ----------
        chunks : Chunks
            Labels, scores, groups and weights.
        fairness, sensitive_mode, regression
            As in `from_predictions`.

        Examples
        --------
        >>> from fairfrontier import solve_stack
        >>> from fairfrontier.chunks import array_chunks
        >>> rng = np.random.default_rng(0)
        >>> sex, y = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
        >>> H = np.stack([0.6 * y + 0.2 * sex, 0.5 * y], axis=1) + rng.normal(0, 0.3, (400, 2))
        >>> chunks = array_chunks(y, H, sensitive_features=sex, chunk_rows=100)
        >>> path = solve_stack(StackStatistics.from_chunks(chunks), alpha=1.0, tau=0.01)
        >>> bool(abs(path.score_bias[0]) <= 0.01 + 1e-12)
        True
        """
        options = {"fairness": fairness, "sensitive_mode": sensitive_mode, "regression": regression}
        return cls.total(moments_of_folds(masks_of_chunks(fairness, chunks), **options).parts)

    @classmethod
    def total(cls, parts: Iterable["StackStatistics"]) -> "StackStatistics":
        """Add up the statistics of parts of the rows."""
        some = iter(parts)
        first = next(some, None)
        if first is None:
            raise InvalidInputError("parts must hold at least one part; got none")
        return reduce(lambda a, b: a + b, some, first)

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
            set_square=self.set_square + other.set_square,
            set_h=self.set_h + other.set_h,
            sets=self.sets,
            row_weights=self.row_weights + other.row_weights,
        )

    def contrast_matrix(self) -> FloatArray:
        """Return B = HᵀC, the score bias of each base model on each contrast, shape (k, m)."""
        return np.asarray(self.direction_matrix() @ self.sets.pairs_of_basis().T)

    def direction_matrix(self) -> FloatArray:
        """Return the score bias of each base model in the coordinates of `RowSets.basis`, shape (k, q)."""
        self.sets.check_weights(self.set_weight)
        spread = np.sqrt(np.diag(self.gram) / self.weight)
        return differences((self.set_h / self.set_weight[:, None]).T, self.sets, spread)

    def variance(self, weights: FloatArray) -> FloatArray:
        """Return the variance of the scores of stacks with weights (p, k), shape (p,)."""
        return np.asarray(np.einsum("pk,pk->p", weights @ self.gram, weights) / self.weight)


def differences(means: FloatArray, sets: RowSets, spread: FloatArray) -> FloatArray:
    """Return the differences (k, q) of means (k, s) in `RowSets.basis`; those that are mere rounding are zero.

    Parameters
    ----------
    means : ndarray of shape (k, s)
        Mean prediction of each model in each row set.
    sets : RowSets
        The row sets and how they are compared.
    spread : ndarray of shape (k,)
        Standard deviation of each model's predictions.
    """
    gap = means @ sets.basis().T
    size = np.abs(means).max(axis=1) + spread
    return np.where(np.abs(gap) > ROUNDING * size[:, None], gap, 0.0)


def _check_squares(H: NDArray[Any], square: FloatArray, y_square: float) -> None:
    """Raise if sums of squares of predictions H (n, k) or of the target are too large or too small for a number."""
    if not (np.isfinite(square).all() and np.isfinite(y_square)):
        what = "X" if not np.isfinite(square).all() else "y"
        raise InvalidInputError(
            f"{what} must be small enough for the squares to be added up; got a sum that is infinite: divide it by a "
            "common number"
        )
    lost = np.flatnonzero(square < 1e-290)
    if len(lost) and np.any((spread := np.ptp(H[:, lost], axis=0)) > ROUNDING * np.abs(H[:, lost]).max(axis=0)):
        raise InvalidInputError(
            f"X must have predictions whose squares can be added up; some differ by {spread.max():g} at most: multiply "
            "X by a common number"
        )


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
    def from_rows(cls, rows: Rows, *, regression: bool) -> "KeyedMoments":
        """Compute the moments of some rows.

        Notes
        -----
        Which class is positive only all rows together know. Hᵀy of a class label is a difference of sums over cells, so
        it is not needed here.
        """
        keyed = keyed_sums(rows, labelled=not regression, threshold=None)
        weight, H = float(keyed.sums.weight.sum()), rows.scores
        if weight == 0:
            return cls(None, keyed)
        y = rows.numbers() if regression else np.zeros(len(rows))
        mean_h, mean_y = keyed.sums.outcome.sum(axis=0) / weight, float(np.average(y, weights=rows.weight))
        n_models = H.shape[1]
        # Rows may count in a group by a degree below 0; their sign is then on one side only.
        below = None if rows.weight is None or rows.weight.min(initial=0.0) >= 0 else np.sign(rows.weight)
        gram, cross, y_square = np.zeros((n_models, n_models)), np.zeros(n_models), 0.0
        height = max(_BLOCK // n_models, 2 * n_models)
        for start in range(0, len(y), height):
            part = slice(start, start + height)
            centred, residual = H[part] - mean_h, y[part] - mean_y
            if rows.weight is not None:
                # √weight on both sides keeps the product one of a matrix with itself: BLAS does it in half the time.
                root = np.sqrt(np.abs(rows.weight[part]))
                centred, residual = centred * root[:, None], residual * root
            signed, of_target = centred, residual
            if below is not None:
                signed, of_target = centred * below[part, None], residual * below[part]
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
                gram += centred.T @ signed
                cross += signed.T @ residual
                y_square += float(of_target @ residual)
        _check_squares(H if rows.weight is None else H[rows.weight > 0], np.diag(gram), y_square)
        none = np.zeros(0), np.zeros(0), np.zeros((0, n_models))
        weights = RowWeights.of_rows(rows)
        return cls(StackStatistics(weight, mean_h, mean_y, gram, cross, y_square, *none, _NO_SETS, weights), keyed)

    def __add__(self, other: "KeyedMoments") -> "KeyedMoments":
        """Return the moments of both parts together."""
        keyed = self.keyed + other.keyed
        if self.moments is None or other.moments is None:
            return KeyedMoments(self.moments or other.moments, keyed)
        return KeyedMoments(self.moments + other.moments, keyed)

    def statistics(self, contrasts: Contrasts) -> StackStatistics:
        """Return the statistics with the row sets of `contrasts`, whose cells may be more than these."""
        if self.moments is None:
            raise InvalidInputError("sample_weight must have a positive sum; got only zeros: give some row a weight")
        sums = self.keyed.in_order(contrasts.keys)
        member = contrasts.membership.astype(np.float64)
        position = {key: i for i, key in enumerate(contrasts.keys)}
        square = member[:, [position[key] for key in self.keyed.keys]] @ self.keyed.square
        with_sets = replace(
            self.moments,
            set_weight=member @ sums.weight,
            set_square=square,
            set_h=member @ sums.outcome,
            sets=contrasts.sets,
        )
        if contrasts.classes is None:
            return with_sets
        weight, positive = self.moments.weight, float(sums.weight[contrasts.label].sum())
        return replace(
            with_sets,
            mean_y=positive / weight,
            cross=sums.outcome[contrasts.label].sum(axis=0) - positive * self.moments.mean_h,
            y_square=positive * (weight - positive) / weight,
        )


class _ByFold(dict[int, KeyedMoments]):
    """The moments of each fold; those of two parts of the rows can be added."""

    def __add__(self, other: "_ByFold") -> "_ByFold":
        """Return the moments of both parts together."""
        return _ByFold(self | {fold: self[fold] + part if fold in self else part for fold, part in other.items()})


@dataclass(frozen=True)
class _SumMoments:
    """The function from rows to the moments of their folds (of fold 0 without `folds`); it travels to the workers."""

    regression: bool
    folds: "Folds | None"

    def __call__(self, rows: Rows) -> _ByFold:
        parts = [(0, rows)] if self.folds is None else self.folds.parts(rows)
        return _ByFold({fold: KeyedMoments.from_rows(part, regression=self.regression) for fold, part in parts})


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """What a pass over the rows found.

    Attributes
    ----------
    numbers : tuple of int
        The folds that have rows; 0 alone without folds.
    parts : tuple of StackStatistics
        The moments of each of these folds.
    contrasts : Contrasts
        The measure on the cells of all rows.
    keyed : KeyedSums
        The sums over the cells of all rows, in the order of `contrasts.keys`.
    """

    numbers: tuple[int, ...]
    parts: tuple[StackStatistics, ...]
    contrasts: Contrasts
    keyed: KeyedSums


def moments_of_folds(
    chunks: Chunks, *, fairness: Any, sensitive_mode: str, regression: bool, folds: "Folds | None" = None
) -> FoldMoments:
    """Compute the moments of each fold in one pass.

    Parameters
    ----------
    chunks : Chunks
        The rows; with pairs of masks as `fairness`, they have these as their attributes.
    fairness, sensitive_mode
        As in `tradeoff_points`; not a function.
    regression : bool
        Whether the target is a number.
    folds : Folds, optional
        The folds; None: all rows are one.
    """
    found = chunks.sum(_SumMoments(regression, folds))
    numbers = sorted(found)
    parts = [found[fold] for fold in numbers]
    keyed = reduce(lambda a, b: a + b, (part.keyed for part in parts))
    check_mask_length(fairness, int(keyed.rows.sum()))
    contrasts = build_contrasts(fairness, keyed.keys, keyed.attributes, sensitive_mode=sensitive_mode)
    if folds is not None:
        _check_folds(parts, numbers, contrasts)
    return FoldMoments(tuple(numbers), tuple(part.statistics(contrasts) for part in parts), contrasts, keyed)


def _check_folds(parts: Sequence[KeyedMoments], numbers: Sequence[int], contrasts: Contrasts) -> None:
    """Raise if there is one fold only, or a fold misses a row set."""
    if len(parts) < 2:
        raise InvalidInputError(f"cv must have at least two folds with rows; got {len(parts)}: use more rows or folds")
    for number, part in zip(numbers, parts, strict=True):
        counts = contrasts.membership @ part.keyed.in_order(contrasts.keys).weight
        for name, count in zip(contrasts.sets.names, counts, strict=True):
            if count == 0:
                raise GroupError(
                    f"cv={len(parts)} folds need a row of each group in each fold; the row set {name!r} of "
                    f"sensitive_features has none in fold {number}: use fewer folds, merge small groups, or give alpha "
                    "as a number"
                )


def contrast_matrix(rows: Rows, contrasts: Contrasts) -> FloatArray:
    """Return B = HᵀC of some rows, shape (k, m), without any other moments."""
    sums = keyed_sums(rows, labelled=contrasts.classes is not None, threshold=None).in_order(contrasts.keys)
    rates = contrasts.rates(sums.outcome, sums.weight)
    found = differences(rates, contrasts.sets, rows.scores.std(axis=0))
    return np.asarray(found @ contrasts.sets.pairs_of_basis().T)
