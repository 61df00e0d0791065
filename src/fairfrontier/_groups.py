"""Groups that are missing, only probable, or a number: membership by degrees."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import as_array, frame_columns, is_frame, is_missing, numeric
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError, InvalidInputError

# Family of the models of the attribute: a base model whose name begins with ``group/`` is one.
GROUP = "group"
# A group of this name takes part in accuracy and in no comparison.
NOT_COMPARED = "(not compared)"
# Probabilities of a row may miss 1 by this much: they were rounded.
_ROUNDING = 1e-3
# Above this condition number probabilities cannot be told from a constant.
_NO_INFORMATION = 1e3


class ProbableGroups:
    """Groups by degrees, in place of ``sensitive_features``.

    A row counts in each group by degrees. It goes wherever sensitive features go: points, FAUC, intervals and stacks.

    Parameters
    ----------
    probabilities : array-like of shape (n, g), or dataframe
        The probability of each group for each row; rows sum to 1.
    groups : sequence of str, optional
        Names of the groups; None: those of the dataframe's columns, or 0, 1, …
    name : str
        Name of the attribute.
    independent_given : {"probabilities", "group"} or None
        What the data cannot tell and must be assumed. "probabilities": among rows with the same probabilities decisions
        do not depend on the group; each row then counts in each group by its probability (the weighted estimator).
        "group": inside a group decisions do not depend on the probabilities, as where they come from a surname that no
        model has seen; the differences that the weighted estimator dilutes are then restored. None: the weighted
        estimator for what is measured; a stack, for which a difference that is understated is one that stays, assumes
        "group" where the probabilities tell enough. Without any difference both agree.

    Notes
    -----
    Where decisions depend on the group beyond its probabilities, weighting understates the difference, and taking the
    most probable group (`likely`) may understate or exaggerate it (Chen et al. 2019). What the probabilities alone can
    tell, without either assumption, is `fairness_bounds`.

    Given the group, the weighted rates are M times the true ones, with M = E[p pᵀ] / E[p] (each row of the matrix
    divided by the share of its group), for probabilities that are calibrated; the degrees are those of M⁻¹ times the
    weighted rates. They sum to 1 in each row and may be negative. The less the probabilities tell, the more is M⁻¹ a
    magnifier of noise, and a rate may leave [0, 1]. M is that of all rows: rates among the rows of one label are
    restored where the label, too, does not depend on the probabilities inside a group, and so not by probabilities that
    know the label.

    Examples
    --------
    >>> from fairfrontier import tradeoff_points
    >>> groups = ProbableGroups([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.0, 1.0]], groups=["f", "m"], name="sex")
    >>> points = tradeoff_points([1, 0, 1, 0], {"a": [0.9, 0.1, 0.8, 0.2]}, sensitive_features=groups)
    >>> points.rates[0].round(3)
    array([0.875, 0.25 ])
    """

    def __init__(
        self,
        probabilities: Any,
        *,
        groups: Sequence[Any] | None = None,
        name: str = "group",
        independent_given: str | None = None,
    ) -> None:
        self.row_index = getattr(probabilities, "index", None) if is_frame(probabilities) else None
        if is_frame(probabilities):
            columns, names = frame_columns(probabilities, parameter="probabilities")
            matrix = np.column_stack(columns)
            groups = names if groups is None else groups
        else:
            matrix = as_array(probabilities, parameter="probabilities")
        if matrix.ndim != 2 or matrix.shape[1] < 2:
            raise InvalidInputError(
                f"probabilities must have one column per group, two at least; got shape {matrix.shape}: for two groups "
                "give np.column_stack([1 - p, p])"
            )
        matrix = numeric(matrix, parameter="probabilities").astype(np.float64)
        validate.finite(matrix, parameter="probabilities")
        total = matrix.sum(axis=1)
        if matrix.min(initial=0.0) < 0 or np.abs(total - 1.0).max(initial=0.0) > _ROUNDING:
            wrong = int(np.argmax(np.maximum(np.abs(total - 1.0), -matrix.min(axis=1))))
            raise InvalidInputError(
                f"probabilities must be at least 0 and sum to 1 in each row; got {matrix[wrong].tolist()} in row "
                f"{wrong}"
            )
        self.probabilities = matrix / total[:, None]
        self.groups = tuple(range(matrix.shape[1]) if groups is None else map(str, groups))
        if len(self.groups) != matrix.shape[1] or len(set(self.groups)) < len(self.groups):
            raise InvalidInputError(
                f"groups must name the {matrix.shape[1]} columns, each once; got {list(self.groups)}"
            )
        self.name = str(name)
        if independent_given is not None:
            validate.one_of(independent_given, ("probabilities", "group"), parameter="independent_given")
        self.independent_given = independent_given

    @classmethod
    def from_numbers(cls, values: Any, *, name: str = "attribute", sample_weight: Any = None) -> "ProbableGroups":
        """Return a numeric attribute, such as age, without cutting it into classes.

        Parameters
        ----------
        values : array-like of shape (n,)
            The numbers.
        name : str
            Name of the attribute.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Notes
        -----
        A row above the mean counts as "above" in proportion to its distance from the mean, a row below as "below". The
        difference of the two rates is 2·cov(decision, attribute) / E|attribute − mean|: the covariance, linear in the
        scores, so that a stack can be constrained by it. Of an attribute with two values it is the plain difference of
        rates. A decision that rises and falls again with the attribute can have a covariance of 0.

        Examples
        --------
        >>> from fairfrontier import tradeoff_points
        >>> age, decided = [20, 30, 40, 70], [0, 0, 1, 1]
        >>> groups = ProbableGroups.from_numbers(age, name="age")
        >>> points = tradeoff_points([0, 1, 0, 1], {"a": decided}, sensitive_features=groups)
        >>> bool(np.isclose(1 - points.fairness[0], 2 * np.cov(decided, age, ddof=0)[0, 1] / 15, atol=1e-3))
        True
        """
        numbers = numeric(validate.column(values, parameter="values"), parameter="values").astype(np.float64)
        validate.finite(numbers, parameter="values")
        away = numbers - np.average(numbers, weights=validate.sample_weights(sample_weight, len(numbers)))
        if not np.abs(away).max(initial=0.0) > 0:
            raise GroupError(f"values must differ for {name!r} to have groups; got one value only")
        degree = np.abs(away) / np.abs(away).max()
        below, above = np.where(away < 0, degree, 0.0), np.where(away > 0, degree, 0.0)
        columns = np.column_stack([above, below, 1.0 - above - below])
        return cls(columns, groups=("above the mean", "below the mean", NOT_COMPARED), name=name)

    @classmethod
    def from_labels(
        cls, values: Any, *, missing: str = "group", name: str = "group", sample_weight: Any = None
    ) -> "ProbableGroups":
        """Return groups of which some are missing, under a stated policy.

        Parameters
        ----------
        values : array-like of shape (n,)
            The groups; None and NaN are missing.
        missing : {"group", "ignore", "share"}
            "group": those rows are a group of their own, "missing". "ignore": they count for accuracy and in no group.
            "share": they count in each group by its share among the known rows, as if missing by chance.
        name : str
            Name of the attribute.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the shares.

        Examples
        --------
        >>> ProbableGroups.from_labels(["f", None, "m", "f"], missing="share").probabilities[1].round(3)
        array([0.667, 0.333])
        """
        validate.one_of(missing, ("group", "ignore", "share"), parameter="missing")
        column = validate.column(values, parameter="values")
        found, codes = validate.distinct(column, parameter="values")
        gone = np.array([is_missing(value) for value in found])
        absent = gone[codes]
        known = [value for value, lost in zip(found, gone, strict=True) if not lost]
        validate.check_groups(known, name)
        hard = np.stack([codes == i for i in np.flatnonzero(~gone)], axis=1).astype(np.float64)
        if missing == "share":
            weight = validate.sample_weights(sample_weight, len(hard))
            hard[absent] = np.average(hard[~absent], axis=0, weights=None if weight is None else weight[~absent])
            return cls(hard, groups=known, name=name)
        extra = "missing" if missing == "group" else NOT_COMPARED
        if not absent.any():
            return cls(hard, groups=known, name=name)
        return cls(np.column_stack([hard, absent]), groups=[*known, extra], name=name)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        shares = self.probabilities.mean(axis=0)
        shown = ", ".join(f"{group} {share:.3f}" for group, share in zip(self.groups, shares, strict=True))
        return f"ProbableGroups({self.name!r}, {len(self)} rows: {shown})"

    @property
    def compared(self) -> IntArray:
        """Columns of the groups that are compared."""
        return np.array([i for i, group in enumerate(self.groups) if group != NOT_COMPARED], dtype=np.intp)

    def degrees(self, weight: FloatArray | None = None) -> FloatArray:
        """Return the degree to which each row, of a weight (n,), counts in each group, shape (n, g); rows sum to 1."""
        p: FloatArray = self.probabilities
        if self.independent_given != "group":
            return p
        mixed, share = self._mixed_rates(weight), np.average(p, axis=0, weights=weight)
        if np.linalg.cond(mixed) > _NO_INFORMATION:
            raise GroupError(
                f"probabilities of {self.name!r} tell too little of the groups to assume independent_given='group'; "
                "they are nearly the same for every row: use 'probabilities', or fairness_bounds"
            )
        return np.asarray(p / share @ np.linalg.inv(mixed).T * share)

    def _mixed_rates(self, weight: FloatArray | None) -> FloatArray:
        """Return M (g, g), by which the weighted rates are mixtures of the true ones, given the group."""
        p: FloatArray = self.probabilities
        of_row = np.ones(len(p)) if weight is None else weight
        share = np.maximum(of_row @ p, np.finfo(np.float64).tiny)
        return np.asarray((p.T * of_row) @ p / share[:, None])

    @property
    def is_partition(self) -> bool:
        """Whether every row is in one of the groups that are compared, with some probability."""
        return len(self.compared) == len(self.groups)

    def assuming(self, independent_given: str) -> "ProbableGroups":
        """Return the same probabilities under an assumption."""
        result = copy.copy(self)
        result.independent_given = independent_given
        return result

    def for_stack(self, weight: FloatArray | None) -> "ProbableGroups":
        """Return the groups as a stack takes them: where nothing was assumed, differences are not understated."""
        if self.independent_given is not None or not self.is_partition:
            return self
        if np.linalg.cond(self._mixed_rates(weight)) > _NO_INFORMATION:
            return self
        return self.assuming("group")

    def likely(self) -> NDArray[Any]:
        """Return the most probable group of each row, shape (n,): for the threshold estimator."""
        best = self.compared[self.probabilities[:, self.compared].argmax(axis=1)]
        return np.asarray(np.array(self.groups, dtype=object)[best].astype(str))

    def spread(self, weight: FloatArray | None = None) -> tuple[IntArray, NDArray[Any], FloatArray]:
        """Return each row once per group that it may be in: the row, the group and the degree, shape (q,) each."""
        degrees = self.degrees(weight)
        row, group = np.nonzero(degrees)
        return row, np.array(self.groups, dtype=object)[group].astype(str), degrees[row, group]
