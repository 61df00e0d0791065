"""A first look at all rows of a file: its labels, its groups, and the range of every column of scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import factorize
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import GroupError

# With more values than this there is no need to count further.
_MOST_VALUES = 10_000
# Scores that are looked at together: they stay in the processor's cache.
_BLOCK = 2**16
# The number of a row that is not there.
NO_ROW = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Survey:
    """What a file holds; the surveys of two parts can be added.

    Attributes
    ----------
    n_rows : int
        How many rows.
    labels : dict of str to int
        The values of a class label, as text, and how many rows have each.
    groups : dict of str to dict of str to int
        The same for each sensitive attribute.
    combinations : set of tuple of str
        The combinations of groups.
    missing : dict of str to (int, int)
        The first row without a value, and how many there are, for each column of labels or groups that has one.
    low, high : ndarray of shape (k,)
        The smallest and the largest finite value of each column of scores.
    no_score : ndarray of shape (k,)
        The first row in which a column has no finite value; very large: there is none.
    only_01 : ndarray of shape (k,)
        Whether a column has no other values than 0 and 1.
    ones : dict of str to ndarray of shape (k,)
        For each label, the number of ones in the columns that have no other values than 0 and 1.
    """

    n_rows: int
    labels: dict[str, int]
    groups: dict[str, dict[str, int]]
    combinations: set[tuple[str, ...]]
    missing: dict[str, tuple[int, int]]
    low: FloatArray
    high: FloatArray
    no_score: NDArray[np.int64]
    only_01: NDArray[np.bool_]
    ones: dict[str, FloatArray]

    def __add__(self, other: "Survey") -> "Survey":
        """Return the survey of both parts together."""
        return Survey(
            self.n_rows + other.n_rows,
            _added(self.labels, other.labels),
            {name: _added(groups, other.groups[name]) for name, groups in self.groups.items()},
            self.combinations | other.combinations,
            _earliest(self.missing, other.missing),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.minimum(self.no_score, other.no_score),
            self.only_01 & other.only_01,
            _added(self.ones, other.ones),
        )

    def is_copy_of_label(self) -> NDArray[np.bool_]:
        """Return which columns are 1 in all rows with one label and 0 in all others."""
        if len(self.labels) != 2:
            return np.zeros(len(self.low), dtype=bool)
        all_or_none = [(self.ones[label] == 0, self.ones[label] == rows) for label, rows in self.labels.items()]
        (none_a, all_a), (none_b, all_b) = all_or_none
        return np.asarray(self.only_01 & ((none_a & all_b) | (all_a & none_b)))


def _earliest(first: dict[str, tuple[int, int]], second: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return the first row without a value and the number of such rows, of two parts together."""
    both = dict(second)
    for name, (row, count) in first.items():
        other = second.get(name, (row, 0))
        both[name] = min(row, other[0]), count + other[1]
    return both


def _added(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    both = {key: first.get(key, 0) + second.get(key, 0) for key in (*first, *second)}
    if len(both) > _MOST_VALUES:
        raise GroupError(f"--sensitive and --label must name columns of classes; got more than {_MOST_VALUES} values")
    return both


@dataclass(frozen=True)
class Surveyor:
    """The function from rows as they stand in the file to their survey."""

    label: str | None
    regression: bool

    def __call__(self, rows: Rows) -> Survey:
        missing: dict[str, tuple[int, int]] = {}
        labels, of_label = {}, np.zeros(len(rows), dtype=np.intp)
        if self.label is None:
            pass
        elif self.regression:
            unknown = np.flatnonzero(~np.isfinite(np.asarray(rows.y, dtype=np.float64)))
            if len(unknown):
                missing[self.label] = int(rows.row[unknown[0]]), len(unknown)
        else:
            texts, of_label = as_text(np.asarray(rows.y), is_label=True)
            labels = _counted(texts, of_label, rows, missing, self.label)
        groups: dict[str, dict[str, int]] = {}
        combined, names = np.zeros(len(rows), dtype=np.intp), [()]
        for name, values in rows.sensitive.items():
            texts, of_row = as_text(values)
            groups[name] = _counted(texts, of_row, rows, missing, name)
            found, combined = factorize(combined * (len(texts) + 1) + of_row + 1)
            pairs = [divmod(pair, len(texts) + 1) for pair in found.tolist()]
            names = [(*names[first], ["", *texts][second]) for first, second in pairs]
        ones = dict.fromkeys(labels, np.zeros(rows.scores.shape[1]))
        ranges = _ranges(rows, list(labels), of_label, ones)
        return Survey(len(rows), labels, groups, set(names), missing, *ranges, ones)


def as_text(values: NDArray[Any], *, is_label: bool = False) -> tuple[list[str], IntArray]:
    """Return the distinct values of a column as text, and each row's index among them, -1 where it has none."""
    distinct, codes = validate.distinct(values, parameter="column")
    texts: dict[str, int] = {}
    index = np.empty(len(distinct), dtype=np.intp)
    for code, value in enumerate(distinct):
        missing = validate.is_missing(value)
        text = "" if missing else label_text(value) if is_label else str(value)
        index[code] = -1 if missing else texts.setdefault(text, len(texts))
    return list(texts), index[codes]


def label_text(value: Any) -> str:
    """Write a label value so that 1, 1.0 and "1" are one, and True and "true" too."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _counted(
    texts: list[str], codes: IntArray, rows: Rows, missing: dict[str, tuple[int, int]], name: str
) -> dict[str, int]:
    """Return how many rows have each value, and note the first that has none."""
    counts = np.bincount(codes + 1, minlength=len(texts) + 1).tolist()
    if counts[0]:
        missing[name] = int(rows.row[int(np.argmax(codes < 0))]), counts[0]
    return dict(zip(texts, counts[1:], strict=True))


def _ranges(
    rows: Rows, labels: list[str], of_label: IntArray, ones: dict[str, FloatArray]
) -> tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.bool_]]:
    """Return the range of each column of scores, its first row without one, and whether it is all 0 and 1."""
    n_rows, n_models = rows.scores.shape
    low, high = np.empty(n_models), np.empty(n_models)
    no_score, only_01 = np.full(n_models, NO_ROW), np.zeros(n_models, dtype=bool)
    width = max(1, _BLOCK // n_rows)
    for start in range(0, n_models, width):
        part = slice(start, start + width)
        low[part], high[part] = rows.scores[:, part].min(axis=0), rows.scores[:, part].max(axis=0)
    for j in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high))):
        finite = np.isfinite(rows.scores[:, j])
        no_score[j] = rows.row[int(np.argmin(finite))]
        known = rows.scores[finite, j]
        low[j], high[j] = (known.min(), known.max()) if len(known) else (np.inf, -np.inf)
    for j in np.flatnonzero(np.isin(low, (0.0, 1.0)) & np.isin(high, (0.0, 1.0)) & (no_score == NO_ROW)):
        is_one = rows.scores[:, j] == 1
        only_01[j] = bool((is_one | (rows.scores[:, j] == 0)).all())
        for code, label in enumerate(labels):
            counted = ones[label].copy()
            counted[j] = np.count_nonzero(is_one & (of_label == code))
            ones[label] = counted
    return low, high, no_score, only_01
