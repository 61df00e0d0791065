"""From rows as they stand in a table to the rows of an audit: a first look at all of them, then one step.

The look (`Survey`) finds labels, groups and the range of every column of scores; the steps put numbers into bands, drop
or keep what is missing, and put scores on one scale where models have thresholds of their own.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import factorize, plain_number
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.exceptions import GroupError, InvalidInputError

# With more values than this there is no need to count further.
_MOST_VALUES = 10_000
# Scores that are looked at together: they stay in the processor's cache.
_BLOCK = 2**16
# The number of a row that is not there.
NO_ROW = np.iinfo(np.int64).max
# The group of rows that lack a value, where they are one.
UNKNOWN = "(missing)"
# What to do with rows that lack a label, a group or a score.
MISSING = ("error", "drop", "group")
# A whole number, all of whose digits count.
_WHOLE = re.compile("[-+]?[0-9]{1,300}")
# What people call the outcome that is wanted, and its opposite.
_POSITIVE = re.compile(
    "true|yes|y|approved?|accepted|accept|hired?|granted|grant|good|admit(ted)?|positive|pass(ed)?|selected|select|"
    "success|successful|(re)?paid|promoted|eligible|won|invited?|advanced?|offer(ed)?|"
    "ja|oui|sí|sì|sim|vrai|wahr"
)
_NEGATIVE = re.compile(
    "false|no|n|denied|deny|rejected|reject|refused?|declined?|not (hired|selected|approved|admitted)|bad|default(ed)?|"
    "negative|fail(ed)?|unsuccessful|charged off|ineligible|lost|"
    "nein|nee|nej|nei|non|não|faux|falsch"
)


@dataclass(frozen=True, eq=False)
class Survey:
    """What a file holds; the surveys of two parts can be added."""

    n_rows: int  # how many rows
    weight: float  # the sum of their weights
    labels: dict[str, int]  # the values of a class label, as `label_text` writes them, and how many rows have each
    written: dict[str, str]  # the same values as they stand in the file
    groups: dict[str, dict[str, int]]  # the same for each sensitive attribute
    combinations: set[tuple[str, ...]]  # the combinations of groups
    # the first row without a value, and how many there are, for each column of labels or groups that has one
    missing: dict[str, tuple[int, int]]
    # low, high (k,): the smallest and the largest finite value of each column of scores
    low: FloatArray
    high: FloatArray
    no_score: NDArray[np.int64]  # (k,): the first row in which a column has no finite value; very large: there is none
    n_no_score: NDArray[np.int64]  # (k,): in how many rows it has none
    only_01: NDArray[np.bool_]  # (k,): whether a column has no other finite values than 0 and 1
    # zeros, ones (k,): for each label, the number of zeros and of ones in the columns that have no other values than
    # these
    zeros: dict[str, FloatArray]
    ones: dict[str, FloatArray]

    def __add__(self, other: "Survey") -> "Survey":
        """Return the survey of both parts together."""
        return Survey(
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            _added(self.labels, other.labels),
            {key: _plainest(self.written.get(key), other.written.get(key)) for key in (*self.written, *other.written)},
            {name: _added(groups, other.groups[name]) for name, groups in self.groups.items()},
            self.combinations | other.combinations,
            _earliest(self.missing, other.missing),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.minimum(self.no_score, other.no_score),
            self.n_no_score + other.n_no_score,
            self.only_01 & other.only_01,
            _added(self.zeros, other.zeros),
            _added(self.ones, other.ones),
        )

    def is_copy_of_label(self) -> NDArray[np.bool_]:
        """Return which columns are 1 in all rows with one label and 0 in all others, as far as they have values."""
        if len(self.labels) != 2:
            return np.zeros(len(self.low), dtype=bool)
        a, b = self.labels
        same = (self.ones[a] + self.zeros[b] == 0) & (self.zeros[a] * self.ones[b] > 0)
        turned = (self.zeros[a] + self.ones[b] == 0) & (self.ones[a] * self.zeros[b] > 0)
        return np.asarray(self.only_01 & (same | turned))


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
        raise GroupError(
            f"labels and sensitive attributes must be classes; got more than {_MOST_VALUES} values: put them into bands"
        )
    return both


@dataclass(frozen=True)
class Surveyor:
    """The function from rows as they stand in the file to their survey."""

    label: str | None
    regression: bool

    def __call__(self, rows: Rows) -> Survey:
        missing: dict[str, tuple[int, int]] = {}
        labels, of_label = {}, np.zeros(len(rows), dtype=np.intp)
        written: dict[str, str] = {}
        if self.label is not None and self.regression:
            unknown = np.flatnonzero(~np.isfinite(np.asarray(rows.y, dtype=np.float64)))
            if len(unknown):
                missing[self.label] = int(rows.row[unknown[0]]), len(unknown)
        elif self.label is not None:
            written, of_label = as_labels(np.asarray(rows.y))
            labels = _counted(list(written), of_label, rows, missing, self.label)
        groups: dict[str, dict[str, int]] = {}
        combined, names = np.zeros(len(rows), dtype=np.intp), [()]
        for name, values in rows.sensitive.items():
            texts, of_row = as_text(values)
            groups[name] = _counted(texts, of_row, rows, missing, name)
            found, combined = factorize(combined * (len(texts) + 1) + of_row + 1)
            pairs = [divmod(pair, len(texts) + 1) for pair in found.tolist()]
            names = [(*names[first], ["", *texts][second]) for first, second in pairs]
        zeros, ones = ({label: np.zeros(rows.scores.shape[1]) for label in labels} for _ in range(2))
        ranges = _ranges(rows, list(labels), of_label, zeros, ones)
        with np.errstate(over="ignore"):
            weight = float(len(rows) if rows.weight is None else rows.weight.sum())
        return Survey(len(rows), weight, labels, written, groups, set(names), missing, *ranges, zeros, ones)


def as_text(values: NDArray[Any]) -> tuple[list[str], IntArray]:
    """Return the distinct values of a column as text, and each row's index among them, -1 where it has none."""
    written, codes = _distinct_texts(values, str)
    return list(written), codes


def as_labels(values: NDArray[Any]) -> tuple[dict[str, str], IntArray]:
    """Return the distinct labels as `label_text` writes them and as they stand in the file, and each row's index."""
    return _distinct_texts(values, label_text)


def _distinct_texts(values: NDArray[Any], key: Callable[[Any], str]) -> tuple[dict[str, str], IntArray]:
    distinct, codes = validate.distinct(values, parameter="column")
    written: dict[str, str] = {}
    places: dict[str, int] = {}
    index = np.full(len(distinct), -1, dtype=np.intp)
    for code, value in enumerate(distinct):
        if not validate.is_missing(value):
            text = key(value)
            index[code] = places.setdefault(text, len(places))
            written[text] = _plainest(written.get(text), _own_text(value))
    return written, index[codes]


def _plainest(first: str | None, second: str | None) -> str:
    """Return the shorter of two ways to write a label, whichever rows came first."""
    return min((text for text in (first, second) if text is not None), key=lambda text: (len(text), text))


def _own_text(value: Any) -> str:
    """Write a value as it stands in the file; numbers and truth values of a Parquet file as CSV would have them."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return plain_number(float(value))
    return str(value).strip()


def label_text(value: Any) -> str:
    """Write a label value so that 1, 1.0, "1" and "01" are one, and True and "true" too; no digit is lost.

    Examples
    --------
    >>> [label_text(value) for value in (1.0, "01", "True", 1234567, "12345678901234567890", "2.50", "yes")]
    ['1', '1', 'true', '1234567', '12345678901234567890', '2.5', 'yes']
    """
    text = _own_text(value)
    if text.lower() in ("true", "false"):
        return text.lower()
    if _WHOLE.fullmatch(text):
        return str(int(text))
    return plain_number(float(text)) if _is_number(text) and math.isfinite(float(text)) else text


def ordered_labels(
    values: Sequence[str], *, option: str, written: Mapping[str, str] | None = None
) -> tuple[tuple[str, str], str]:
    """Return two labels, the negative one first, and how the positive one was found; empty: it is plain.

    Examples
    --------
    >>> ordered_labels(["hired", "rejected"], option="positive")
    (('rejected', 'hired'), "The positive label is taken to be 'hired', by its name.")
    """
    first, second = sorted(values, key=float) if all(map(_is_number, values)) else sorted(values)
    if (first, second) in (("0", "1"), ("-1", "1"), ("false", "true")):
        return (first, second), ""
    own = {} if written is None else written
    known = in_known_order(first, second)
    if known is not None:
        return known, f"The positive label is taken to be {own.get(known[1], known[1])!r}, by its name."
    return (first, second), (
        f"The positive label is a guess: {own.get(second, second)!r}, the second in sorted order. Say which one "
        f"it is with {option}."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def in_known_order(first: str, second: str) -> tuple[str, str] | None:
    """Return two words, the negative one first, if one of them is known; else None.

    Examples
    --------
    >>> in_known_order("approve", "deny"), in_known_order("red", "blue")
    (('deny', 'approve'), None)
    """
    for one, other in ((first, second), (second, first)):
        words = [text.lower().replace("_", " ") for text in (one, other)]
        bad, good = ([pattern.fullmatch(word) is not None for word in words] for pattern in (_NEGATIVE, _POSITIVE))
        if (bad[0] and not bad[1]) or (good[1] and not good[0]):
            return one, other
    return None


def _counted(
    texts: list[str], codes: IntArray, rows: Rows, missing: dict[str, tuple[int, int]], name: str
) -> dict[str, int]:
    """Return how many rows have each value, and note the first that has none."""
    counts = np.bincount(codes + 1, minlength=len(texts) + 1).tolist()
    if counts[0]:
        missing[name] = int(rows.row[int(np.argmax(codes < 0))]), counts[0]
    return dict(zip(texts, counts[1:], strict=True))


def _ranges(
    rows: Rows, labels: list[str], of_label: IntArray, zeros: dict[str, FloatArray], ones: dict[str, FloatArray]
) -> tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return range, first row without a score, number of these rows, and whether it is 0 and 1, of each column."""
    n_rows, n_models = rows.scores.shape
    low, high = np.empty(n_models), np.empty(n_models)
    no_score, only_01 = np.full(n_models, NO_ROW), np.zeros(n_models, dtype=bool)
    n_no_score = np.zeros(n_models, dtype=np.int64)
    width = max(1, _BLOCK // n_rows)
    for start in range(0, n_models, width):
        part = slice(start, start + width)
        low[part], high[part] = rows.scores[:, part].min(axis=0), rows.scores[:, part].max(axis=0)
    for j in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high))):
        finite = np.isfinite(rows.scores[:, j])
        no_score[j], n_no_score[j] = rows.row[int(np.argmin(finite))], np.count_nonzero(~finite)
        known = rows.scores[finite, j]
        low[j], high[j] = (known.min(), known.max()) if len(known) else (np.inf, -np.inf)
    only_01[low > high] = True  # of no values, none is another
    for j in np.flatnonzero(np.isin(low, (0.0, 1.0)) & np.isin(high, (0.0, 1.0))):
        is_zero, is_one = rows.scores[:, j] == 0, rows.scores[:, j] == 1
        only_01[j] = bool((is_zero | is_one | ~np.isfinite(rows.scores[:, j])).all())
        for code, label in enumerate(labels):
            zeros[label][j] = np.count_nonzero(is_zero & (of_label == code))
            ones[label][j] = np.count_nonzero(is_one & (of_label == code))
    return low, high, no_score, n_no_score, only_01


@dataclass(frozen=True)
class Banded:
    """The step that puts numbers, such as ages, into bands."""

    limits: Mapping[str, tuple[float, ...]]

    def __call__(self, rows: Rows) -> Rows:
        sensitive = dict(rows.sensitive)
        for name, limits in self.limits.items():
            sensitive[name] = in_bands(sensitive[name], limits)
        return replace(rows, sensitive=sensitive)


def in_bands(column: NDArray[Any], limits: tuple[float, ...]) -> NDArray[Any]:
    """Return numbers, such as ages, as the names of their bands; None for what is missing."""
    values = np.array([np.nan if v is None else v for v in column], dtype=np.float64)
    texts = np.array([*band_names(limits), None], dtype=object)
    band = np.where(np.isnan(values), len(limits) + 1, np.searchsorted(limits, values, side="right"))
    return np.asarray(texts[band])


def band_names(limits: tuple[float, ...]) -> list[str]:
    """Return names for the bands between limits.

    Examples
    --------
    >>> band_names((18.0, 40.0))
    ['under 18', '18 to under 40', '40 or more']
    """
    between = [f"{low:g} to under {high:g}" for low, high in pairwise(limits)]
    return [f"under {limits[0]:g}", *between, f"{limits[-1]:g} or more"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """The step from rows as they stand in the file to labels, groups as text and checked scores."""

    positive: str
    regression: bool
    kept: tuple[int, ...]
    clipped: tuple[int, ...]
    names: tuple[str, ...]
    missing: str

    def __call__(self, rows: Rows) -> Rows:
        known = np.ones(len(rows), dtype=bool)
        y: NDArray[Any] | None = None
        if rows.y is not None and self.regression:
            y = np.asarray(rows.y, dtype=np.float64)
            known &= np.isfinite(y)
        elif rows.y is not None:
            written, codes = as_labels(np.asarray(rows.y))
            y = codes == (list(written).index(self.positive) if self.positive in written else -2)
            known &= codes >= 0
        sensitive = {}
        for name, values in rows.sensitive.items():
            texts, codes = as_text(values)
            sensitive[name] = np.array([*texts, UNKNOWN], dtype=object)[codes]
            known &= (codes >= 0) | (self.missing == "group")
        scores = rows.scores
        if self.clipped:  # rounding has put a score a hair outside; the survey has refused all others
            scores = scores.copy(order="A")
            scores[:, list(self.clipped)] = np.clip(scores[:, list(self.clipped)], 0.0, 1.0)
        if len(self.kept) < scores.shape[1]:
            scores = scores[:, list(self.kept)]
        if self.missing == "drop":
            known &= np.isfinite(scores).all(axis=1)
        prepared = replace(rows, y=y, sensitive=sensitive, scores=scores, names=self.names)
        return prepared if known.all() else prepared.take(np.flatnonzero(known))


@dataclass(frozen=True, eq=False)
class AtThresholds:
    """The step that gives every model its own threshold, and a model with several thresholds a column for each."""

    columns: IntArray  # (q,): the column of scores that each new column is made of
    limits: FloatArray  # (q,): the threshold of each
    # (q,): scores become 0.5 + (score − threshold)·scale, which lies in [0, 1] and is above 0.5 exactly where the score
    # is above its threshold; None: decisions 0 and 1
    scale: FloatArray | None
    names: tuple[str, ...]  # the new columns

    def __call__(self, rows: Rows) -> Rows:
        scores = rows.scores[:, self.columns]
        above = scores > self.limits
        if self.scale is None:
            return rows.with_scores(above.astype(np.float32), self.names)
        new = np.clip(0.5 + (scores - self.limits) * self.scale, 0.0, 1.0)
        # Rounding must not turn a decision.
        return rows.with_scores(
            np.where(above, np.maximum(new, np.nextafter(0.5, 1.0)), np.minimum(new, 0.5)), self.names
        )


def at_thresholds(
    names: Sequence[str],
    thresholds: Mapping[str, Sequence[float]],
    ranges: tuple[FloatArray, FloatArray] | None,
) -> AtThresholds:
    """Return the step for the thresholds of every model."""
    pairs = [(i, float(limit)) for i, name in enumerate(names) for limit in thresholds[name]]
    columns, limits = np.array([i for i, _ in pairs]), np.array([limit for _, limit in pairs])
    new = [names[i] if len(thresholds[names[i]]) == 1 else f"{names[i]} > {limit:g}" for i, limit in pairs]
    if ranges is None:
        return AtThresholds(columns, limits, None, tuple(new))
    farthest = np.maximum(limits - ranges[0][columns], ranges[1][columns] - limits)
    return AtThresholds(columns, limits, 0.5 / np.where(farthest > 0, farthest, 1.0), tuple(new))


def on_one_scale(
    chunks: StreamedChunks,
    thresholds: Mapping[str, Sequence[float]],
    ranges: tuple[FloatArray, FloatArray] | None,
    *,
    accuracy: str = "accuracy",
) -> tuple[StreamedChunks, float]:
    """Return chunks whose scores have one threshold in common, and that threshold."""
    values = {tuple(limits) for limits in thresholds.values()}
    if ranges is not None:
        _check_reached([thresholds[name] for name in chunks.names], *ranges)
    if ranges is not None and len(values) == 1 and ranges[0].min() >= 0 and ranges[1].max() <= 1:
        (limits,) = values
        if len(limits) == 1 and 0 <= limits[0] <= 1:
            return chunks, limits[0]
    if accuracy == "brier":
        raise InvalidInputError(
            "accuracy brier reads scores as probabilities: it needs scores in [0, 1] and one threshold for all models"
        )
    step = at_thresholds(chunks.names, thresholds, ranges)
    return chunks.map(step, step.names), 0.5


def _check_reached(thresholds: Sequence[Sequence[float]], low: FloatArray, high: FloatArray) -> None:
    """Raise if a threshold is so far off that it cannot have been meant for these scores."""
    for limit in sorted({limit for limits in thresholds for limit in limits}):
        models = [i for i, limits in enumerate(thresholds) if limit in limits]
        lowest, highest = min(0.0, low[models].min()), max(1.0, high[models].max())
        if not lowest <= limit <= highest:
            raise InvalidInputError(
                f"threshold must be in [{lowest:g}, {highest:g}], the range of the scores; got {limit:g}: everybody "
                "would be decided alike"
            )


def threshold_words(thresholds: Mapping[str, Sequence[float]]) -> str:
    """Return in words what makes a decision of a score.

    Examples
    --------
    >>> threshold_words({"a": [0.5], "b": [0.5]}), threshold_words({"a": [600.0], "b": [0.3, 0.5]})
    ('a score above 0.5', 'a score above the threshold (a: 600; b: 0.3, 0.5)')
    """
    values = {tuple(limits) for limits in thresholds.values()}
    if len(values) == 1:
        (limits,) = values
        return "a score above " + (
            f"{limits[0]:g}" if len(limits) == 1 else "each of " + ", ".join(f"{v:g}" for v in limits)
        )
    shown = [f"{name}: {', '.join(f'{v:g}' for v in limits)}" for name, limits in list(thresholds.items())[:12]]
    more = "; …" if len(thresholds) > 12 else ""
    return f"a score above the threshold ({'; '.join(shown)}{more})"
