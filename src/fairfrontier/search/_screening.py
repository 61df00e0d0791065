"""Which columns may be features: identifiers, constants, copies of the label and of the attribute are named."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from fairfrontier._validation import Attribute, FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.search._plan import strata_of
from fairfrontier.search._table import CATEGORY, DATE, Columns, day_numbers, kind_of, missing_in

# A column that alone predicts the label so well is the label in other words; one above the second is worth a question.
LEAK_AUC, SUSPICIOUS_AUC = 0.99, 0.95
# A column that alone gives the attribute away so well is the attribute in other words.
COPY_AUC = 0.995
# Rows that are looked at to judge a column, and all features together.
_ROWS, PROXY_ROWS = 10_000, 20_000
_BINS = 64
# Rows of each combination of label and groups that are looked at in any case.
_OF_EACH = 50
# Text that looks like a number, perhaps with a unit; where most values do, a word is said about it.
_NUMBER_LIKE = re.compile(
    r"[-+(]?([A-Za-z]{1,3}([.\s]|(?=\$)))?\s*[$€£¥₹]?\s*\d[\d.,'\s]*([$€£¥₹%]|k|m|mn|bn)?\)?", re.IGNORECASE
)
_DATE_LIKE = re.compile(
    r"\d{1,4}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}([ T]\d{1,2}:.*)?|[A-Za-z]{3,9}[-/. ]'?\d{2}|\d{1,2}/\d{4}"
)
_MOSTLY = 0.8
# The reason of a column that the user named.
AS_ASKED = "left out as asked"
# How reasons begin that ask about a column which is a feature.
TELLS_THE_GROUP = "tells the sensitive attribute "
DOUBTS = ("read as ", "predicts the label ", "settles the label ", TELLS_THE_GROUP)
# How the reason ends of a category with very many values.
RARE = "the rare ones are taken together"
# Values whose rows all have the same label, and would by chance only so seldom, in so many of the rows: what was
# written down after the outcome often looks like that, and may be far from predicting every label.
_BY_CHANCE, _PURE_ROWS, _FEW_VALUES = 1e-6, 0.05, 20
# The share of the rows in which a number is the usual one, such as an amount of 0.
_USUAL = 0.2
_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|uid|uuid|guid|key|index|row|unnamed|nr|number)($|[_\W\d])|_id$", re.I)


@dataclass(frozen=True)
class ColumnReport:
    """What is known about one column."""

    # name, kind: the column, and what it holds: numbers, categories or dates
    name: str
    kind: str
    used: bool  # whether it is a feature
    reason: str  # why it is none, or what there is to know about it
    # n_missing, n_distinct: rows without a value, and distinct values
    n_missing: int
    n_distinct: int
    label_auc: float  # how well it alone predicts the label on other rows: 0.5 not at all, 1 perfectly
    group_auc: float  # how well it alone predicts the sensitive attributes: the largest over groups


def screen(
    columns: Columns,
    y: NDArray[np.bool_],
    attributes: Sequence[Attribute],
    train: IntArray,
    *,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    use_sensitive: bool = False,
) -> tuple[ColumnReport, ...]:
    """Return a report on each column; refuse one that is the label in other words.

    Only the rows `train` are looked at together with their labels and groups.
    """
    for option, names in (("drop", drop), ("keep", keep)):
        unknown = [name for name in names if name not in columns]
        if unknown:
            raise InvalidInputError(f"{option} must name columns of X; got {unknown[0]!r}, which is not one")
    sensitive = {attribute.name for attribute in attributes}
    kept = next((name for name in keep if name in sensitive and not use_sensitive), None)
    if kept is not None:
        raise InvalidInputError(
            f"keep must not name a sensitive attribute; got {kept!r}: its column is no feature unless "
            "use_sensitive=True (--use-sensitive) says so"
        )
    some = train[spread(strata_of(y, attributes)[train], _ROWS)]
    halves = np.arange(len(some)) % 2 == 0
    groups = [attribute.codes[some] == code for attribute in attributes for code in range(len(attribute.values))]
    reports, leaks = [], {}
    for name, values in columns.items():
        codes = _binned(values[some])
        label_auc = _single_auc(codes, y[some], halves)
        group_auc = max((_single_auc(codes, group, halves) for group in groups), default=0.5)
        n_missing, n_distinct = int(missing_in(values).sum()), _n_distinct(values)
        known = len(values) - n_missing
        used, reason = True, ""
        if name in drop:
            used, reason = False, AS_ASKED
        elif n_distinct + (n_missing > 0) <= 1:
            used, reason = False, "constant: the same value in every row"
        elif name in keep:
            reason = "kept as asked"
        elif name in sensitive:
            used, reason = use_sensitive, "the sensitive attribute"
        elif _is_identifier(name, values, n_distinct, known):
            used, reason = False, "an identifier: (nearly) every row has a value of its own" + _unread(values, some)
        elif label_auc >= LEAK_AUC:
            leaks[name] = label_auc
        elif group_auc >= COPY_AUC:
            used, reason = False, f"a copy of the sensitive attribute (AUC {group_auc:.3f})"
        elif label_auc >= SUSPICIOUS_AUC:
            reason = f"predicts the label very well alone (AUC {label_auc:.3f}): is it known before the outcome?"
        elif pure := _pure_words(values[some], codes, y[some]):
            reason = pure
        elif group_auc >= SUSPICIOUS_AUC:
            reason = f"{TELLS_THE_GROUP}very well alone (AUC {group_auc:.3f}): is it meant to be a feature?"
        elif kind_of(values) == CATEGORY and n_distinct > _BINS:
            unread = _unread(values, some)
            rare = f"{n_distinct:,} categories: {RARE}"
            reason = f"read as {n_distinct:,} categories{unread}" if unread else rare
        reports.append(ColumnReport(name, kind_of(values), used, reason, n_missing, n_distinct, label_auc, group_auc))
    if leaks:
        raise InvalidInputError(_leak_words(leaks))
    if not any(report.used for report in reports):
        reasons = "; ".join(f"{report.name!r}: {report.reason}" for report in reports[:5])
        raise InvalidInputError(f"X must have at least one column that may be a feature; got {reasons}")
    return tuple(reports)


def spread(strata: IntArray, most: int) -> IntArray:
    """Return the places of at most `most` rows, in random order: some of each stratum, wherever it stands."""
    draw = np.random.default_rng(0).permutation(len(strata))
    order = np.lexsort((draw, strata))
    rank = np.empty(len(strata), dtype=np.intp)
    rank[order] = np.arange(len(strata)) - np.searchsorted(strata[order], strata[order])
    return np.lexsort((draw, rank >= _OF_EACH))[:most]


def _leak_words(leaks: dict[str, float]) -> str:
    """Return what is wrong with columns that are the label in other words, and what to do about all of them."""
    named = ", ".join(f"{name!r} (AUC {auc:.3f})" for name, auc in leaks.items())
    drop, keep = (" ".join(f"--{option} {name!r}" for name in leaks) for option in ("drop", "keep"))
    if len(leaks) == 1:
        (name, auc), *_ = leaks.items()
        return (
            f"column {name!r} reveals the label (alone it predicts the label with AUC {auc:.3f}): is it known "
            f"before the outcome is? If not, leave it out (drop, {drop}); if so, say so (keep, {keep})"
        )
    return (
        f"columns reveal the label, each of them alone: {named}. Are they known before the outcome is? Leave out "
        f"those that are not (drop, {drop}); say so of those that are (keep, {keep})"
    )


def _pure_words(values: NDArray[Any], codes: IntArray, y: NDArray[np.bool_]) -> str:
    """Return a question about a column some of whose values, or whose blanks, always go with the same label."""
    words: dict[int, str] = {}
    if kind_of(values) != CATEGORY and _n_distinct(values) > _FEW_VALUES:
        codes, words = _written_down(values)
    rows, hits = np.bincount(codes), np.bincount(codes[y], minlength=int(codes.max()) + 1)
    share = np.clip(y.mean(), 1e-9, 1.0 - 1e-9)
    sure = np.log(_BY_CHANCE)
    pure = ((hits == rows) & (rows * np.log(share) < sure)) | ((hits == 0) & (rows * np.log(1.0 - share) < sure))
    settled = float(rows[pure].sum() / len(codes))
    if settled < _PURE_ROWS:
        return ""
    code = int(np.argmax(np.where(pure, rows, 0)))
    example = int(np.flatnonzero(codes == code)[0])
    value = "no value" if missing_in(values)[example] else words.get(code, repr(str(values[example])[:20]))
    return (
        f"settles the label in {100 * settled:.0f} % of the rows (such as all with {value}): is it known before the "
        "outcome?"
    )


def _written_down(values: NDArray[Any]) -> tuple[IntArray, dict[int, str]]:
    """Return codes of a column of many numbers or dates, and words for them: nothing, the usual value, another one.

    What is written down after the outcome is often there, or not zero, in the rows of one label alone.
    """
    missing = missing_in(values)
    found, counts = np.unique(values[~missing], return_counts=True)
    usual = found[np.argmax(counts)] if counts.max() >= _USUAL * len(values) else None
    codes = np.where(missing, 0, np.where(values == usual, 1, 2)) if usual is not None else np.where(missing, 0, 2)
    return codes.astype(np.intp), {1: str(usual), 2: "a value" if usual is None else f"another value than {usual}"}


def _unread(values: NDArray[Any], some: IntArray) -> str:
    """Return a word about text most of which may be numbers or dates that we cannot read."""
    texts = [value for value in values[some].tolist() if value] if kind_of(values) == CATEGORY else []
    for pattern, what in (
        (_DATE_LIKE, "a date, write it like 2024-12-31"),
        (_NUMBER_LIKE, "a number, write it like 1234.5"),
    ):
        like = [value for value in texts if pattern.fullmatch(value)]
        if len(like) > _MOSTLY * len(texts):
            return f"; if {like[0][:20]!r} is {what}"
    return ""


def joint_auc(matrix: FloatArray, attribute: Attribute, *, random_state: int) -> float:
    """Return how well all features together predict an attribute on other rows: the mean AUC of its groups."""
    model: Any = HistGradientBoostingClassifier(
        max_iter=40, learning_rate=0.2, max_leaf_nodes=15, early_stopping=False, random_state=random_state
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=random_state)
    scores = cross_val_predict(model, matrix, attribute.codes, cv=folds, method="predict_proba")
    areas = [roc_auc_score(attribute.codes == code, scores[:, code]) for code in range(len(attribute.values))]
    return float(np.mean(areas))


def _n_distinct(values: NDArray[Any]) -> int:
    known = values[~missing_in(values)]
    return len(set(known.tolist())) if known.dtype.kind == "O" else len(np.unique(known))


def _is_identifier(name: str, values: NDArray[Any], n_distinct: int, known: int) -> bool:
    """Tell whether a column numbers or names the rows."""
    if known < 20 or n_distinct < 0.95 * known:
        return False
    kind = kind_of(values)
    if kind == CATEGORY:
        return True
    if kind == DATE:
        return False
    numbers = values[~np.isnan(values)]
    whole = bool((numbers == np.floor(numbers)).all())
    consecutive = whole and numbers.max() - numbers.min() < 1.05 * known
    return n_distinct == known and (consecutive or (whole and _IDENTIFIER.search(name) is not None))


def _binned(values: NDArray[Any]) -> IntArray:
    """Return a column as codes: its categories, or bins of equal size; what is missing is a code of its own."""
    missing = missing_in(values)
    if kind_of(values) == CATEGORY:
        codes = np.unique(np.where(missing, "", values).astype(str), return_inverse=True)[1]
        return np.where(missing, len(values), codes).astype(np.intp)
    numbers = day_numbers(values) if kind_of(values) == DATE else values
    distinct = np.unique(numbers[~missing])
    if len(distinct) > _BINS:
        distinct = np.unique(np.quantile(numbers[~missing], np.linspace(0.0, 1.0, _BINS + 1)[1:]))
    return np.where(missing, len(distinct) + 1, np.searchsorted(distinct, numbers)).astype(np.intp)


def _single_auc(codes: IntArray, target: NDArray[np.bool_], halves: NDArray[np.bool_]) -> float:
    """Return the AUC of each code's share of the target, learned on one half of the rows and tried on the other."""
    areas = []
    for fit in (halves, ~halves):
        test = ~fit
        if target[test].all() or not target[test].any():
            return 0.5
        size = int(codes.max(initial=0)) + 1
        rows, hits = np.bincount(codes[fit], minlength=size), np.bincount(codes[fit & target], minlength=size)
        share = (hits + target[fit].mean()) / (rows + 1.0)
        areas.append(roc_auc_score(target[test], share[codes[test]]))
    return float(np.mean(areas))
