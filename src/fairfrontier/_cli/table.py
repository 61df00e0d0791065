"""From a file to the rows of an audit: open it, look at it once, and prepare its chunks."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.columns import ScoreColumns, check_column, check_numbers, score_columns, shown
from fairfrontier._cli.options import AuditOptions, parse_bands
from fairfrontier._cli.survey import NO_ROW, Survey, Surveyor, as_text, label_text
from fairfrontier._rows import Rows
from fairfrontier.chunks import file_chunks, whole
from fairfrontier.chunks._files import gathered
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.chunks._tables import TableFile, open_table
from fairfrontier.exceptions import GroupError, InvalidInputError

# A column with more values than this is a measurement, such as an age, and not a set of groups.
MAX_GROUPS = 50
# The group of rows that lack a value, where they are one.
UNKNOWN = "(missing)"
# Up to this many scores are kept in double precision; more are kept in single, on their side of the threshold.
MOST_DOUBLE = 2**24
# Scores that are read at once on their way into memory.
_PIECE = 2**20
# Scores that rounding has put a hair outside [0, 1].
SLACK = 1e-6
# What people call the outcome that is wanted, and its opposite.
_POSITIVE = re.compile(
    "true|yes|y|approved?|accepted|accept|hired?|granted|grant|good|admit(ted)?|positive|pass(ed)?|selected|"
    "success|successful|(re)?paid|promoted|eligible|won"
)
_NEGATIVE = re.compile(
    "false|no|n|denied|deny|rejected|reject|refused|not hired|bad|default(ed)?|negative|fail(ed)?|unsuccessful|"
    "charged off|ineligible|lost"
)


@dataclass(frozen=True, eq=False)
class AuditTable:
    """The rows of an audit.

    Attributes
    ----------
    chunks : StreamedChunks
        Labels (True for the positive one, numbers for regression), groups as text, and scores.
    n_rows, n_read : int
        How many rows there are, and how many the file has.
    in_memory : bool
        Whether the rows are one chunk that is in memory.
    labels : (str, str)
        The negative and the positive label as they stand in the file; empty for regression.
    groups : dict of str to list of str
        The groups of each attribute.
    decisions : bool
        Whether all scores are 0 and 1.
    notes : tuple of str
        What was guessed, and what was left out.
    """

    chunks: StreamedChunks
    n_rows: int
    n_read: int
    in_memory: bool
    labels: tuple[str, str]
    groups: dict[str, list[str]]
    decisions: bool
    notes: tuple[str, ...]


def open_audit(options: AuditOptions, progress: Any = None) -> AuditTable:
    """Open the file of an audit, look at its rows once, and prepare them."""
    table = open_file(options.file, delimiter=options.delimiter, encoding=options.encoding)
    if options.label is not None:
        check_column(table, options.label, option="--label")
    bands = _bands(table, options)
    sensitive = tuple(bands)
    if options.label is not None and options.regression:
        check_numbers(table, options.label, option="--label")
    named = [name for name in (*sensitive, options.label) if name is not None]
    columns = score_columns(table, options.scores, set(named))
    raw = file_chunks(
        table,
        label=options.label,
        sensitive=sensitive,
        scores=columns.names,
        # Into memory all at once or, where their number is unknown, in small pieces that take each other's place.
        chunk_rows=options.chunk_rows or table.n_rows or max(1, _PIECE // len(columns.names)),
        text=[name for name in named if not bands.get(name) and not _is_target(name, options)],
        numbers=[name for name in named if bands.get(name) or _is_target(name, options)],
    )
    raw.progress = progress
    if any(bands.values()):
        raw = raw.map(_Banded({name: limits for name, limits in bands.items() if limits}))
    in_memory = options.chunk_rows is None
    if in_memory:
        threshold = None if options.regression else options.decision_threshold
        raw = whole(gathered(raw, n_rows=table.n_rows, threshold=threshold, most_double=MOST_DOUBLE))
    survey = raw.sum(Surveyor(options.label, options.regression))
    _check_survey(survey, options)
    kept, columns = _kept(survey, columns, options)
    labels, guess = ("", ""), ""
    if options.label is not None and not options.regression:
        labels, guess = positive_label(sorted(survey.labels), options.label, options.positive)
    unit = not options.regression and options.label is not None
    clipped = tuple(i for i in kept if unit and (survey.low[i] < 0 or survey.high[i] > 1))
    names = tuple(raw.names[i] for i in kept)
    prepared = _Prepared(labels[1], options.regression, kept, clipped, names, options.missing)
    chunks = raw.map(prepared, names)
    notes = [
        *table.notes,
        *filter(None, [guess]),
        *_column_notes(columns, names),
        *_missing_notes(survey, kept, options),
    ]
    if in_memory:
        chunks = whole(gathered(chunks))
    n_rows = survey.n_rows if options.missing != "drop" else chunks.sum(len)
    if n_rows < survey.n_rows:
        notes.append(f"{survey.n_rows - n_rows:,} of {survey.n_rows:,} rows were left out because they lack a value.")
    groups = {name: sorted(values) for name, values in survey.groups.items()}
    decisions = bool(survey.only_01[list(kept)].all())
    return AuditTable(chunks, n_rows, survey.n_rows, in_memory, labels, groups, decisions, tuple(notes))


def _is_target(name: str, options: AuditOptions) -> bool:
    """Tell whether a column is the label of a regression."""
    return options.regression and name == options.label


def _bands(table: TableFile, options: AuditOptions) -> dict[str, tuple[float, ...]]:
    """Return the sensitive columns, with the limits of those that are put into bands."""
    bands: dict[str, tuple[float, ...]] = {}
    for text in options.sensitive:
        name, limits = (text, ()) if text in table.types else parse_bands(text)
        check_column(table, name, option="--sensitive")
        if name == options.label:
            raise InvalidInputError(f"--sensitive must name other columns than --label; got {name!r} for both")
        if limits:
            check_numbers(table, name, option="--sensitive")
        bands[name] = limits
    return bands


@dataclass(frozen=True)
class _Banded:
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


def _missing_notes(survey: Survey, kept: tuple[int, ...], options: AuditOptions) -> list[str]:
    """Say how many labels and groups are missing, where that is allowed."""
    return [f"{count:,} rows have no {name}." for name, (_, count) in survey.missing.items()]


def open_file(path: Path, *, delimiter: str | None = None, encoding: str | None = None) -> TableFile:
    """Open a file that was named on the command line; it must have rows."""
    if path.is_dir():
        raise InvalidInputError(f"FILE must be a CSV or Parquet file; {str(path)!r} is a folder")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=1)
        hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise InvalidInputError(f"FILE must exist; there is no {str(path)!r}{hint}")
    table = open_table(path, delimiter=delimiter, encoding=encoding)
    if table.n_rows == 0 or (table.head is not None and table.head.num_rows == 0):
        raise InvalidInputError(f"FILE must hold at least one row; {path.name} has a header and no rows")
    return table


def _check_survey(survey: Survey, options: AuditOptions) -> None:
    """Raise for missing labels and groups, for an attribute with one group only, and for far too many."""
    for name, (row, _) in survey.missing.items():
        option = "--label" if name == options.label else "--sensitive"
        if options.missing == "drop" or (options.missing == "group" and name != options.label):
            continue
        raise GroupError(
            f"{option} {name!r} must have no missing value; row {row + 1} has none: pass --missing drop"
            + ("" if name == options.label else ", or --missing group to make them a group of their own")
        )
    for name, groups in survey.groups.items():
        if len(groups) > MAX_GROUPS:
            raise GroupError(
                f"--sensitive {name!r} must have at most {MAX_GROUPS} groups; got {len(groups)} different values: "
                "put them into bands first, such as ages into 'under 40' and '40 or more'"
            )
        if len(groups) < 2:
            raise GroupError(f"--sensitive {name!r} must have at least two groups; got only {next(iter(groups))!r}")
    if options.sensitive_mode == "intersectional" and len(survey.combinations) > MAX_GROUPS:
        raise GroupError(
            f"--sensitive-mode intersectional must make at most {MAX_GROUPS} groups; got {len(survey.combinations)}: "
            "name fewer attributes, or put their values into bands"
        )


def _kept(survey: Survey, columns: ScoreColumns, options: AuditOptions) -> tuple[tuple[int, ...], ScoreColumns]:
    """Return which columns are scores, and refuse those that were named and are not."""
    # Without labels any number is a score, if the user says that it is one.
    unit = not options.regression and (options.label is not None or not columns.named)
    inside = (survey.low >= -SLACK) & (survey.high <= 1 + SLACK)
    left_out = dict(columns.left_out)
    kept = list(range(len(columns.names)))
    if not columns.named:
        copies, fractions = survey.is_copy_of_label(), bool((inside & ~survey.only_01).any())
        reasons = [
            (unit & ~inside, "lies outside [0, 1]"),
            (copies, "agrees with the label in every row"),
            (survey.only_01 & unit & fractions, "holds only 0 and 1 where the other columns hold scores"),
        ]
        for which, reason in reasons:
            left_out.update({columns.names[i]: reason for i in kept if which[i]})
            kept = [i for i in kept if not which[i]]
    if not kept:
        why = "; ".join(f"{name!r} {reason}" for name, reason in list(left_out.items())[:4])
        raise InvalidInputError(f"no column of {options.file.name} can be scores ({why}): name them with --scores")
    for i in kept:
        name = columns.names[i]
        if survey.no_score[i] < NO_ROW and options.missing != "drop":
            raise InvalidInputError(
                f"scores {name!r} must have no missing or infinite value; row {survey.no_score[i] + 1} has one: pass "
                "--missing drop, or leave this model out with --scores"
            )
        if unit and not inside[i]:
            raise InvalidInputError(
                f"scores {name!r} must be in [0, 1]; got {survey.low[i]:g} to {survey.high[i]:g}: turn them into "
                "probabilities first"
            )
    return tuple(kept), replace(columns, left_out=left_out)


def _column_notes(columns: ScoreColumns, names: tuple[str, ...]) -> list[str]:
    """Say which columns were taken as models, and which were not and why."""
    if columns.named:
        return []
    notes = [f"No --scores were named, so these columns were taken as models: {shown(names, 12)}."]
    by_reason: dict[str, list[str]] = {}
    for name, reason in columns.left_out.items():
        by_reason.setdefault(reason, []).append(name)
    if by_reason:
        parts = "; ".join(f"{shown(of_reason)} ({reason})" for reason, of_reason in by_reason.items())
        notes.append(f"Columns that were left out: {parts}. Name a column with --scores to take it all the same.")
    return notes


def positive_label(values: list[str], name: str, positive: str | None) -> tuple[tuple[str, str], str]:
    """Return the negative and the positive value of a label, and how the positive one was found if nobody named it."""
    if len(values) != 2:
        advice = "for a numeric target pass --accuracy r2" if len(values) > 2 else "both must occur"
        raise InvalidInputError(
            f"--label {name!r} must have two values; got {len(values)} ({shown(values, 5)}): {advice}"
        )
    first, second = sorted(values, key=_as_number) if all(map(_is_number, values)) else sorted(values)
    if positive is not None:
        if label_text(positive) not in (first, second):
            raise InvalidInputError(f"--positive must be one of {first!r} and {second!r}; got {positive!r}")
        return ((first, second) if label_text(positive) == second else (second, first)), ""
    if (first, second) in (("0", "1"), ("-1", "1"), ("false", "true")):
        return (first, second), ""
    for one, other in ((first, second), (second, first)):
        words = [text.lower().replace("_", " ") for text in (one, other)]
        bad, good = ([pattern.fullmatch(word) is not None for word in words] for pattern in (_NEGATIVE, _POSITIVE))
        if (bad[0] and not bad[1]) or (good[1] and not good[0]):
            return (one, other), f"The positive label is taken to be {other!r}, by its name."
    return (first, second), (
        f"The positive label is a guess: {second!r}, the second in sorted order. Say which one it is with --positive."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_number(text: str) -> float:
    return float(text)


@dataclass(frozen=True, eq=False)
class _Prepared:
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
            texts, codes = as_text(np.asarray(rows.y), is_label=True)
            y = codes == (texts.index(self.positive) if self.positive in texts else -2)
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
