"""From a file to the rows of an audit: open it, look at it once, and prepare its chunks."""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.options import (
    AuditOptions,
    ScoreColumns,
    check_column,
    check_numbers,
    check_once,
    is_numeric,
    parse_bands,
    parse_thresholds,
    score_columns,
    shown,
)
from fairfrontier._validation import one_of, total_weight
from fairfrontier.chunks import file_chunks, whole
from fairfrontier.chunks._formats import TableFile, open_table
from fairfrontier.chunks._source import StreamedChunks, gathered, single_precision
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._points import CONSTANT
from fairfrontier.report._prepare import (
    NO_ROW,
    Banded,
    Prepared,
    Survey,
    Surveyor,
    label_text,
    on_one_scale,
    ordered_labels,
    threshold_words,
)

# A column with more values than this is a measurement, such as an age, and not a set of groups.
MAX_GROUPS = 50
# Up to this many scores are kept in double precision; more are kept in single, on their side of the threshold.
MOST_DOUBLE = 2**24
# Scores that are read at once on their way into memory.
_PIECE = 2**20
# Models whose missing scores are counted one by one.
_MOST_NOTES = 12
# Groups of similar names that are named.
_MOST_ALIKE = 4
# Why a column of numbers was not taken as scores by itself.
_OUTSIDE = "lies outside [0, 1]"
# Scores that rounding has put a hair outside [0, 1].
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class AuditTable:
    """The rows of an audit."""

    chunks: StreamedChunks  # labels (True for the positive one, numbers for regression), groups as text, and scores
    # n_rows, n_read: how many rows there are, and how many the file has
    n_rows: int
    n_read: int
    in_memory: bool  # whether the rows are one chunk that is in memory
    labels: tuple[str, str]  # the negative and the positive label as they stand in the file; empty for regression
    bands: dict[str, tuple[float, ...]]  # the limits of the attributes that were put into bands
    # the scores that are words in the file, and the words of decision 0 and decision 1
    decisions: dict[str, tuple[str, str]]
    groups: dict[str, list[str]]  # the groups of each attribute
    threshold: float  # what the scores are compared with
    rule: str  # what makes a decision of a score, in words
    rescaled: bool  # whether the scores are others than in the file, because models have thresholds of their own
    notes: tuple[str, ...]  # what was guessed, and what was left out
    left_out: dict[str, str]  # columns that were not taken as scores, and why


def open_audit(options: AuditOptions, progress: Any = None) -> AuditTable:
    """Open the file of an audit, look at its rows once, and prepare them."""
    table = open_file(options.file, delimiter=options.delimiter, encoding=options.encoding)
    in_memory = options.chunk_rows is None
    common = _common_threshold(options)
    most_double = MOST_DOUBLE if in_memory and (common is not None or options.regression) else None
    raw, columns, bands = _raw_rows(table, options, most_double, partial(single_precision, threshold=common))
    raw.progress = progress
    if in_memory:
        raw = whole(gathered(raw, n_rows=table.n_rows, threshold=common, most_double=most_double))
    survey = raw.sum(Surveyor(options.label, options.regression))
    _check_survey(survey, options, table.kind)
    labels, guess = ("", ""), ""
    if options.label is not None and not options.regression:
        labels, guess = positive_label(survey.written, options.label, options.positive)
    kept, columns = _kept(survey, columns, options)
    unit = not options.regression and options.label is not None
    low, high = survey.low[list(kept)], survey.high[list(kept)]
    hair = unit & ((low < 0) | (high > 1)) & (low >= -SLACK) & (high <= 1 + SLACK)
    names = tuple(raw.names[i] for i in kept)
    clipped = tuple(np.array(kept)[hair].tolist())
    chunks = raw.map(Prepared(labels[1], options.regression, kept, clipped, names, options.missing), names)
    notes = [*table.notes, *filter(None, [guess]), *_column_notes(columns, names)]
    if options.sample_weight and any(fnmatch(options.sample_weight, pattern) for pattern in options.scores):
        notes.append(
            f"{options.sample_weight!r} is the sample weight and therefore no model, though --scores matches it."
        )
    notes += [f"{_rows_have(count)} no {name}." for name, (_, count) in survey.missing.items()]
    notes += [
        f"{_rows_have(count)} no score of {name}."
        for name, count in zip(names, survey.n_no_score[list(kept)].tolist(), strict=True)
        if count
    ][:_MOST_NOTES]
    lacking = sum(count for _, count in survey.missing.values()) + survey.n_no_score[list(kept)].sum()
    if options.missing == "drop" and lacking >= survey.n_rows and not any(len(rows) for rows in chunks):
        raise InvalidInputError(
            f"--missing drop must leave a row; every row of {options.file.name} lacks a label, a group or a score: "
            "leave models out with --scores"
        )
    if in_memory:
        chunks = whole(gathered(chunks))
    n_rows = survey.n_rows if options.missing != "drop" else chunks.sum(len)
    if n_rows < survey.n_rows:
        notes.append(f"{survey.n_rows - n_rows:,} of {survey.n_rows:,} rows were left out because they lack a value.")
    groups = {name: sorted(values) for name, values in survey.groups.items()}
    notes += _alike(groups)
    scaled, threshold, rule = chunks, 0.5, ""
    if not options.regression:
        limits, rule = _limits(options, chunks, survey.only_01[list(kept)], in_memory)
        ranges = (np.where(hair, 0.0, low), np.where(hair, 1.0, high)) if options.label is not None else None
        scaled, threshold = on_one_scale(chunks, limits, ranges, accuracy=options.accuracy)
    rescaled = scaled is not chunks
    if rescaled and in_memory:
        scaled = whole(gathered(scaled))
    return AuditTable(
        scaled,
        n_rows,
        survey.n_rows,
        in_memory,
        (survey.written.get(labels[0], ""), survey.written.get(labels[1], "")),
        bands,
        {name: words for name, words in columns.decisions.items() if name in names},
        groups,
        threshold,
        rule,
        rescaled,
        tuple(notes),
        columns.left_out,
    )


def _rows_have(count: int) -> str:
    return "1 row has" if count == 1 else f"{count:,} rows have"


def _alike(groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Name groups that people would write as one, such as 'Male' and 'male '."""
    notes = []
    for name, values in groups.items():
        written: dict[str, list[str]] = {}
        for value in values:
            written.setdefault(label_text(" ".join(value.split())).casefold(), []).append(value)
        notes += [
            f"{shown(several)} of {name} are taken as different groups: if they are one, write it in one way only."
            for several in written.values()
            if len(several) > 1
        ][:_MOST_ALIKE]
    return notes


def _common_threshold(options: AuditOptions) -> float | None:
    """Return the threshold of all models; None where they have several, or for regression."""
    general, of_model = parse_thresholds(options.threshold)
    return None if options.regression or len(general) > 1 or of_model else (general or (0.5,))[0]


def _raw_rows(
    table: TableFile, options: AuditOptions, most_double: int | None, to_single: Any
) -> tuple[StreamedChunks, ScoreColumns, dict[str, tuple[float, ...]]]:
    """Return the rows as they stand in the file, numbers put into bands, which columns may be scores, and the bands."""
    for name, option in ((options.label, "--label"), (options.sample_weight, "--sample-weight")):
        if name is not None:
            check_column(table, name, option=option)
    bands = sensitive_bands(table, options.sensitive)
    if options.label in bands:
        raise InvalidInputError(f"--sensitive must name other columns than --label; got {options.label!r} for both")
    numbers = [name for name, limits in bands.items() if limits]
    if options.sample_weight is not None:
        check_numbers(table, options.sample_weight, option="--sample-weight")
        numbers.append(options.sample_weight)
    if options.label is not None and options.regression:
        check_numbers(table, options.label, option="--label")
        numbers.append(options.label)
    if options.sample_weight is not None and options.sample_weight in (options.label, *bands):
        raise InvalidInputError(
            f"--sample-weight must name another column than --label and --sensitive; got {options.sample_weight!r}"
        )
    named = [name for name in (*bands, options.label, options.sample_weight) if name is not None]
    columns = score_columns(table, options.scores, set(named), positive=options.positive)
    # A matrix in double precision that is given up at once would take as long to fill as the file to read.
    single = most_double is not None and (table.n_rows or 0) * len(columns.names) > most_double
    raw = file_chunks(
        table,
        label=options.label,
        sensitive=tuple(bands),
        scores=columns.names,
        sample_weight=options.sample_weight,
        # Into memory all at once or, where their number is unknown, in small pieces that take each other's place.
        chunk_rows=options.chunk_rows or table.n_rows or max(1, _PIECE // len(columns.names)),
        text=[name for name in named if name not in numbers],
        numbers=numbers,
        decisions=columns.decisions,
        to_single=to_single if single else None,
    )
    limits = {name: limits for name, limits in bands.items() if limits}
    return (raw.map(Banded(limits)) if limits else raw), columns, limits


def _limits(
    options: AuditOptions, chunks: StreamedChunks, only_01: NDArray[np.bool_], in_memory: bool
) -> tuple[dict[str, tuple[float, ...]], str]:
    """Return the thresholds of every model, and what they make of scores, in words."""
    general, of_model = parse_thresholds(options.threshold)
    for name in of_model:
        one_of(name, chunks.names, parameter="--threshold")
    if options.label is not None or general:
        limits = {name: of_model.get(name, general or (0.5,)) for name in chunks.names}
        return limits, threshold_words(limits)
    rest = [name for name, binary in zip(chunks.names, only_01, strict=True) if not binary and name not in of_model]
    if rest and not in_memory:
        raise InvalidInputError("--threshold must be given with --chunk-rows: the median needs all scores in memory")
    limits = {name: of_model.get(name, (0.5,)) for name in chunks.names}
    if not rest:
        return limits, "decision 1" if not of_model else threshold_words(limits)
    scores = gathered(chunks).scores
    limits |= {name: (float(np.median(scores[:, chunks.names.index(name)])),) for name in rest}
    words = "a score above the median of all rows (the scoring rate)"
    binary = [name for name in chunks.names if name not in rest and name not in of_model]
    if binary:
        words = f"decision 1 of {shown(binary)}, which {'hold' if len(binary) > 1 else 'holds'} 0 and 1; else {words}"
    return limits, words if not of_model else threshold_words(limits)


def sensitive_bands(table: TableFile, sensitive: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return the sensitive columns, with the limits of those that are put into bands."""
    bands: dict[str, tuple[float, ...]] = {}
    for text in sensitive:
        name, limits = (text, ()) if text in table.types else parse_bands(text)
        check_column(table, name, option="--sensitive")
        if limits:
            check_numbers(table, name, option="--sensitive")
        check_once(name, bands)
        bands[name] = limits
    return bands


def open_file(path: Path, *, delimiter: str | None = None, encoding: str | None = None) -> TableFile:
    """Open a file that was named on the command line; it must have rows."""
    if path.is_dir():
        raise InvalidInputError(f"FILE must be a CSV, Parquet or Excel file; {str(path)!r} is a folder")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=1)
        hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise InvalidInputError(f"FILE must exist; there is no {str(path)!r}{hint}")
    table = open_table(path, delimiter=delimiter, encoding=encoding)
    if table.n_rows == 0 or (table.head is not None and table.head.num_rows == 0):
        raise InvalidInputError(f"FILE must hold at least one row; {path.name} has a header and no rows")
    return table


def _check_survey(survey: Survey, options: AuditOptions, kind: str) -> None:
    """Raise for missing labels and groups, for an attribute with one group only or far too many, and for weights."""
    total_weight(survey.weight, parameter="--sample-weight")
    for name, (row, _) in survey.missing.items():
        option = "--label" if name == options.label else "--sensitive"
        if options.missing == "drop" or (options.missing == "group" and name != options.label):
            continue
        words = " (in CSV a word such as NA counts as missing)" if kind == "CSV" else ""
        raise GroupError(
            f"{option} {name!r} must have no missing value; row {row + 1} has none{words}: pass --missing drop"
            + ("" if name == options.label else ", or --missing group to make them a group of their own")
        )
    for name, groups in survey.groups.items():
        if len(groups) > MAX_GROUPS:
            advice = (
                f"put the numbers into bands, such as --sensitive {shlex.quote(f'{name}:20,40,60')}"
                if all(map(is_numeric, groups))
                else "merge small groups in the file"
            )
            raise GroupError(
                f"--sensitive {name!r} must have at most {MAX_GROUPS} groups; got {len(groups)} different values: "
                f"{advice}"
            )
        if len(groups) < 2:
            got = f"only {next(iter(groups))!r}" if groups else "none"
            raise GroupError(f"--sensitive {name!r} must have at least two groups; got {got}")
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
            (survey.n_no_score == survey.n_rows, "is empty"),
            (unit & ~inside, _OUTSIDE),
            (copies, "agrees with the label in every row"),
            (survey.only_01 & unit & fractions, "holds only 0 and 1 where the other columns hold scores"),
        ]
        for which, reason in reasons:
            left_out.update({columns.names[i]: reason for i in kept if which[i]})
            kept = [i for i in kept if not which[i]]
    if not kept:
        why = "; ".join(f"{name!r} {reason}" for name, reason in list(left_out.items())[:4])
        raise InvalidInputError(f"no column of {options.file.name} can be scores ({why}): name them with --scores")
    if options.label is not None and CONSTANT in (columns.names[i] for i in kept):
        raise InvalidInputError(
            f"--scores must name no column {CONSTANT!r}, which is what reports call the same decision for everyone: "
            "rename the column, or leave it out"
        )
    general, of_model = parse_thresholds(options.threshold)
    beyond = [name for name, reason in left_out.items() if reason == _OUTSIDE]
    for limit in general:
        if beyond and unit and not 0.0 <= limit <= 1.0:
            raise InvalidInputError(
                f"--threshold {limit:g} is beyond the scores of the columns that were taken as models; left out were "
                f"those that are beyond [0, 1], {shown(beyond)}: name the models with --scores"
            )
    for i in kept:
        name = columns.names[i]
        if survey.n_no_score[i] == survey.n_rows:
            raise InvalidInputError(
                f"scores {name!r} must be numbers; got none in any row: leave this model out with --scores"
            )
        if survey.no_score[i] < NO_ROW and options.missing != "drop":
            raise InvalidInputError(
                f"scores {name!r} must have no missing or infinite value; row {survey.no_score[i] + 1} has one: pass "
                "--missing drop, or leave this model out with --scores"
            )
        middle = (survey.low[i] + survey.high[i]) / 2
        if unit and not inside[i] and not (general or name in of_model):
            raise InvalidInputError(
                f"scores {name!r} must be in [0, 1]; got {survey.low[i]:g} to {survey.high[i]:g}: turn them into "
                f"probabilities first, or say what selects, such as --threshold {name}={middle:g}"
            )
    return tuple(kept), replace(columns, left_out=left_out)


def _column_notes(columns: ScoreColumns, names: tuple[str, ...]) -> list[str]:
    """Say which columns were taken as models, and which were not and why; and what words were read as decisions."""
    if columns.named:
        words = {
            words: [name for name in columns.decisions if columns.decisions[name] == words]
            for words in columns.decisions.values()
        }
        return [f"Decision 1 is {yes!r} and decision 0 {no!r} in {shown(names)}." for (no, yes), names in words.items()]
    notes = [f"No --scores were named, so these columns were taken as models: {shown(names, 12)}."]
    by_reason: dict[str, list[str]] = {}
    for name, reason in columns.left_out.items():
        by_reason.setdefault(reason, []).append(name)
    if by_reason:
        parts = "; ".join(f"{shown(of_reason)} ({reason})" for reason, of_reason in by_reason.items())
        notes.append(
            f"Columns that were left out: {parts}. If one of them holds scores, name all models with --scores."
        )
    return notes


def positive_label(written: Mapping[str, str], name: str, positive: str | None) -> tuple[tuple[str, str], str]:
    """Return the negative and the positive label, and how the positive one was found if nobody named it."""
    values = sorted(written.values())
    if len(values) != 2:
        advice = (
            "both must occur"
            if len(values) < 2
            else "for a numeric target pass --accuracy r2"
            if all(map(is_numeric, values))
            else "write each of them in one way only, or leave other rows out"
        )
        raise InvalidInputError(
            f"--label {name!r} must have two values; got {len(values)} ({shown(values, 5)}): {advice}"
        )
    labels, guess = ordered_labels(list(written), option="--positive", written=written)
    if positive is None:
        return labels, guess
    if label_text(positive) not in labels:
        raise InvalidInputError(f"--positive must be one of {values[0]!r} and {values[1]!r}; got {positive!r}")
    return (labels if label_text(positive) == labels[1] else labels[::-1]), ""
