"""What a search is given, checked: the table, the label, the groups, the baseline, and the rows of each part."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import column, numeric
from fairfrontier._validation import Attribute, IntArray
from fairfrontier._version import __version__
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.search._plan import PARTS, Plan, hash_rows, split_rows
from fairfrontier.search._table import Columns, read_columns


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """The checked input of a search.

    Attributes
    ----------
    columns : dict of str to ndarray
        The typed columns of the table.
    y : ndarray of shape (n,), bool
        The label; True for the second of `classes`.
    classes : tuple
        The two labels.
    attributes : tuple of Attribute
        The sensitive attributes.
    sensitive : dict of str to ndarray of str
        Their groups as text.
    baseline : ndarray of shape (n,), bool, or None
        The decisions of the model in use.
    splits : ndarray of shape (v, n)
        The part of each row, an index of `PARTS`, for each of v models: two if the search is cross-fitted.
    parts : ndarray of shape (n,)
        The split that is looked at.
    plan : Plan
        What will be done.
    """

    columns: Columns
    y: NDArray[np.bool_]
    classes: tuple[Any, Any]
    attributes: tuple[Attribute, ...]
    sensitive: dict[str, NDArray[Any]]
    baseline: NDArray[np.bool_] | None
    splits: IntArray
    parts: IntArray
    plan: Plan = field(repr=False)

    def views(self) -> list["SearchProblem"]:
        """Return the problem of each model."""
        return [replace(self, parts=parts) for parts in self.splits]

    def rows(self, part: str) -> IntArray:
        """Return the rows of a part."""
        return np.flatnonzero(self.parts == PARTS.index(part))

    def groups_of(self, rows: IntArray) -> dict[str, NDArray[Any]]:
        """Return the groups of some rows."""
        return {name: values[rows] for name, values in self.sensitive.items()}


def prepare(
    X: Any, y: Any, sensitive_features: Any, baseline: Any, settings: dict[str, Any], *, threshold: float
) -> SearchProblem:
    """Check the input of a search, split its rows, and write down the plan.

    Parameters
    ----------
    X, y, sensitive_features, baseline
        As in `FairSearch.fit`.
    settings : dict
        What the plan says about the search; its seed splits the rows.
    threshold : float
        A baseline's score above it is a positive decision.
    """
    if sensitive_features is None:
        raise InvalidInputError(
            "sensitive_features must be given, one value per row: fit(X, y, sensitive_features=data['sex'])"
        )
    validate.same_order(X=X, y=y, sensitive_features=sensitive_features, baseline=baseline)
    columns = read_columns(X)
    n_rows = len(next(iter(columns.values())))
    for name, values in columns.items():
        validate.same_length(n_rows, "X", **{f"X[{name!r}]": len(values)})
    label, classes = validate.labels(y)
    validate.same_length(n_rows, "X", y=len(label))
    attributes = validate.attributes(sensitive_features, n_rows)
    for attribute in attributes:
        validate.check_groups(attribute.values, attribute.name)
    sensitive = {
        attribute.name: np.array([str(value) for value in attribute.values], dtype=object)[attribute.codes]
        for attribute in attributes
    }
    decided = None if baseline is None else baseline_decisions(baseline, classes, threshold)
    if decided is not None:
        validate.same_length(n_rows, "X", baseline=len(decided))
    splits = split_rows(label, attributes, int(settings["seed"]), cross_fit=settings["cross_fit"])
    others = {"y": label, **sensitive} | ({} if decided is None else {"baseline": decided})
    plan = Plan(
        data=hash_rows(columns, {f"({name})": values for name, values in others.items()}),
        rows={part: int((splits == i).any(axis=0).sum()) for i, part in enumerate(PARTS)},
        columns=list(columns),
        groups={
            name: {str(group): int((values == group).sum()) for group in sorted(set(values.tolist()))}
            for name, values in sensitive.items()
        },
        settings=settings,
        version=__version__,
    )
    return SearchProblem(columns, label, classes, attributes, sensitive, decided, splits, splits[0], plan)


def baseline_decisions(baseline: Any, classes: tuple[Any, Any], threshold: float) -> NDArray[np.bool_]:
    """Return the decisions of a baseline that is given as scores in [0, 1], or as decisions in the words of the label.

    Examples
    --------
    >>> baseline_decisions([0.2, 0.7], (0, 1), 0.5), baseline_decisions(["yes", "no"], ("no", "yes"), 0.5)
    (array([False,  True]), array([ True, False]))
    """
    values = column(baseline, parameter="baseline")
    if values.dtype.kind in "OUSb" and {str(value) for value in values.tolist()} <= {str(one) for one in classes}:
        return np.array([str(value) == str(classes[1]) for value in values.tolist()], dtype=bool)
    numbers = numeric(values, parameter="baseline").astype(np.float64)
    # 0 and 1 are decisions and scores alike; other numbers that are the label's words are decisions.
    if not isinstance(classes[0], str) and set(classes) != {0, 1} and set(numbers.tolist()) <= set(classes):
        return np.asarray(numbers == classes[1])
    validate.finite(numbers, parameter="baseline")
    if len(numbers) and (numbers.min() < 0.0 or numbers.max() > 1.0):
        raise InvalidInputError(
            f"baseline must be scores in [0, 1], or decisions in the words of the label; got {numbers.min():g} to "
            f"{numbers.max():g}: rescale it, or give decisions"
        )
    return numbers > threshold
