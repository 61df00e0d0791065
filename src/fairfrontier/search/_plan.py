"""What a search is given, checked; which rows serve for what; and the plan, hashed before anything is looked at."""

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import column, numeric
from fairfrontier._validation import Attribute, IntArray
from fairfrontier._version import __version__
from fairfrontier._writing import write_atomically
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.search._table import Columns, read_columns

PARTS = ("train", "stack", "calibrate", "report")
# Shares of the rows. The tests on the report rows are what few rows hurt most; models learn from fewer.
SHARES = (0.4, 0.2, 0.15, 0.25)
# With fewer rows the verdict is cross-fitted. A quarter of so many rows shows a margin of 0.005 with probability 80 %,
# where a model that is as accurate as the one in use changes 8 % of the decisions, as boosted trees do on Adult.
CROSS_FIT_BELOW = 80_000
# A cross-fitted search: in each half of the rows models are trained and stacked, and tested on the other half; the rest
# is for calibration.
_HALF_SHARES = (0.275, 0.15)
_CALIBRATION_SHARE = 0.15
# The fewest rows of a group in the smallest part.
_LEAST_ROWS = 10
# Added to a seed, so that the split has random numbers of its own.
_OWN_STREAM = 2_718_281


@dataclass(frozen=True)
class Plan:
    """What a search will do."""

    data: str  # hash of the rows
    # the number of rows of each part; if the search is cross-fitted, nearly all rows are in several parts
    rows: dict[str, int]
    columns: list[str]  # all columns of the table
    groups: dict[str, dict[str, int]]  # the rows of each group of each attribute
    settings: dict[str, Any]  # measure, requirement, margin, confidence, seed, budget
    version: str  # of this package

    @property
    def hash(self) -> str:
        """Return the hash of all that the plan says."""
        return digest(asdict(self))


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan with its hash and the time; a plan that is there already must be the same.

    Raises
    ------
    InvalidInputError
        If the file holds another plan: what was fixed before looking is not changed afterwards.
    """
    content = asdict(plan)
    if path.is_file():
        try:
            before = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        except ValueError:
            before = {}
        if before.get("hash") == plan.hash:
            return
        old, new = ({**one, **one.get("settings", {})} for one in (before, content))
        other = next((name for name in new if name != "settings" and old.get(name) != new[name]), "version")
        raise InvalidInputError(
            f"folder must hold no other plan; {str(path)!r} has another {other}: choose another folder, or start anew "
            "with --force"
        )
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    text = json.dumps({**content, "hash": plan.hash, "created": created}, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, (text + "\n").encode("utf-8", errors="surrogatepass"))


def digest(content: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys.

    Examples
    --------
    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def hash_rows(columns: Columns, others: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of a table's values, in order."""
    total = hashlib.sha256()
    for name, values in {**columns, **others}.items():
        total.update(repr(name).encode("utf-8", errors="surrogatepass"))
        if values.dtype.kind == "O":
            total.update("\x00".join(map(repr, values.tolist())).encode("utf-8", errors="surrogatepass"))
        else:
            total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()


def strata_of(y: NDArray[np.bool_], attributes: Sequence[Attribute]) -> IntArray:
    """Return the combination of label and groups of each row, as codes (n,) from 0."""
    stratum = y.astype(np.intp)
    for attribute in attributes:
        stratum = np.unique(stratum * len(attribute.values) + attribute.codes, return_inverse=True)[1]
    return stratum


def split_rows(
    y: NDArray[np.bool_], attributes: Sequence[Attribute], seed: int, *, cross_fit: bool = False
) -> IntArray:
    """Return the part (an index of `PARTS`) of each row, in the same shares of every combination of label and groups.

    Returns
    -------
    ndarray of shape (1, n), or (2, n) with `cross_fit`
        The parts for each of the models: what the first learns from the second is tested on, and conversely.

    Raises
    ------
    GroupError
        If a group has too few rows for four parts.
    """
    shares = (*_HALF_SHARES, *_HALF_SHARES, _CALIBRATION_SHARE) if cross_fit else SHARES
    for attribute in attributes:
        rows = np.bincount(attribute.codes, minlength=len(attribute.values))
        needed = int(np.ceil(_LEAST_ROWS / min(shares)))
        if rows.min() < needed:
            raise GroupError(
                f"sensitive_features[{attribute.name!r}] must have at least {needed} rows of each group, for training, "
                f"stacking, calibration and the final figures; got {rows.min()} of "
                f"{attribute.values[int(rows.argmin())]!r}: merge small groups, or leave their rows out (--min-group "
                f"{needed})"
            )
    stratum = strata_of(y, attributes)
    # Not the numbers that a simulated table begins with, if it was made with the same seed.
    rng = np.random.default_rng([_OWN_STREAM, seed])
    draw = rng.random(len(y))
    order = np.lexsort((draw, stratum))
    starts = np.searchsorted(stratum[order], np.arange(stratum.max() + 1))
    size = np.bincount(stratum)
    # Rows of a stratum at equal distances from 0 to 1, moved by a random part of a distance: shares come out right on
    # average in the smallest strata, too.
    place = (np.arange(len(y)) - starts[stratum[order]] + rng.random(len(size))[stratum[order]]) / size[stratum[order]]
    parts = np.empty(len(y), dtype=np.intp)
    parts[order] = np.searchsorted(np.cumsum(shares)[:-1], place % 1.0, side="right")
    if not cross_fit:
        return parts[None]
    train, stack, calibrate, report = range(len(PARTS))
    roles = np.array([[train, stack, report, report, calibrate], [report, report, train, stack, calibrate]])
    return np.asarray(roles[:, parts], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """The checked input of a search."""

    columns: Columns  # the typed columns of the table
    y: NDArray[np.bool_]  # (n,): the label; True for the second of `classes`
    classes: tuple[Any, Any]  # the two labels
    attributes: tuple[Attribute, ...]  # the sensitive attributes
    sensitive: dict[str, NDArray[Any]]  # their groups as text
    baseline: NDArray[np.bool_] | None  # (n,): the decisions of the model in use
    # (v, n): the part of each row, an index of `PARTS`, for each of v models: two if the search is cross-fitted
    splits: IntArray
    parts: IntArray  # (n,): the split that is looked at
    plan: Plan = field(repr=False)  # what will be done

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
    """Check the input of a search, split its rows, and write down the plan."""
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
        if decided.all() or not decided.any():
            raise InvalidInputError(
                f"baseline must decide both ways, else no model can be less disparate; got {n_rows:,} "
                f"{'positive' if decided.any() else 'negative'} decisions: if it is scores, set the threshold "
                f"(--threshold, now {threshold:g}) at which the model in use decides"
            )
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
