"""From a file to the rows of an audit: open it, look at it once, and prepare its chunks."""

import difflib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.columns import ScoreColumns, check_column, check_numbers, score_columns, shown
from fairfrontier._cli.options import AuditOptions
from fairfrontier._cli.survey import NO_ROW, Survey, Surveyor, as_text, label_text
from fairfrontier._rows import Rows
from fairfrontier.chunks import file_chunks, whole
from fairfrontier.chunks._files import gathered
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.chunks._tables import TableFile, open_table
from fairfrontier.exceptions import GroupError, InvalidInputError

# A column with more values than this is a measurement, such as an age, and not a set of groups.
MAX_GROUPS = 50
# Up to this many scores are kept in double precision; more are kept in single, on their side of the threshold.
MOST_DOUBLE = 2**24
# Scores that are read at once on their way into memory.
_PIECE = 2**20
# Scores that rounding has put a hair outside [0, 1].
SLACK = 1e-6
# What people call the outcome that is wanted, and its opposite.
_POSITIVE = set(["true", "yes", "y", "approved", "approve", "accepted", "accept", "hired", "hire", "granted", "grant", "good", "admitted", "admit", "positive", "pass", "passed", "selected", "success", "successful", "paid", "repaid", "promoted", "eligible", "won"])  # fmt: skip
_NEGATIVE = set(["false", "no", "n", "denied", "deny", "rejected", "reject", "refused", "not_hired", "bad", "default", "defaulted", "negative", "fail", "failed", "unsuccessful", "charged_off", "ineligible", "lost"])  # fmt: skip


@dataclass(frozen=True, eq=False)
class AuditTable:
    """The rows of an audit.

    Attributes
    ----------
    chunks : StreamedChunks
        Labels (True for the positive one, numbers for regression), groups as text, and scores.
    n_rows : int
        How many rows.
    in_memory : bool
        Whether the rows are one chunk that is in memory.
    labels : (str, str)
        The negative and the positive label as they stand in the file; empty for regression.
    notes : tuple of str
        What was guessed, and what was left out.
    """

    chunks: StreamedChunks
    n_rows: int
    in_memory: bool
    labels: tuple[str, str]
    notes: tuple[str, ...]


def open_audit(options: AuditOptions, progress: Any = None) -> AuditTable:
    """Open the file of an audit, look at its rows once, and prepare them."""
    table = _opened(options)
    check_column(table, options.label, option="--label")
    sensitive = tuple(dict.fromkeys(options.sensitive))
    for name in sensitive:
        check_column(table, name, option="--sensitive")
        if name == options.label:
            raise InvalidInputError(f"--sensitive must name other columns than --label; got {name!r} for both")
    if options.regression:
        check_numbers(table, options.label, option="--label")
    columns = score_columns(table, options.scores, {options.label, *sensitive})
    raw = file_chunks(
        table,
        label=options.label,
        sensitive=sensitive,
        scores=columns.names,
        # Into memory all at once or, where their number is unknown, in small pieces that take each other's place.
        chunk_rows=options.chunk_rows or table.n_rows or max(1, _PIECE // len(columns.names)),
        text=sensitive if options.regression else (*sensitive, options.label),
        numbers=(options.label,) if options.regression else (),
    )
    raw.progress = progress
    in_memory = options.chunk_rows is None
    if in_memory:
        threshold = None if options.regression else options.threshold
        raw = whole(gathered(raw, n_rows=table.n_rows, threshold=threshold, most_double=MOST_DOUBLE))
    survey = raw.sum(Surveyor(options.label, options.regression))
    _check_survey(survey, options)
    kept, columns = _kept(survey, columns, options)
    labels, guess = ("", ""), ""
    if not options.regression:
        labels, guess = positive_label(sorted(survey.labels), options.label, options.positive)
    clipped = tuple(i for i in kept if not options.regression and (survey.low[i] < 0 or survey.high[i] > 1))
    names = tuple(raw.names[i] for i in kept)
    chunks = raw.map(_Prepared(labels[1], options.regression, kept, clipped, names), names)
    notes = (*table.notes, *filter(None, [guess]), *_column_notes(columns, names))
    if in_memory:
        chunks = whole(gathered(chunks))
    return AuditTable(chunks, survey.n_rows, in_memory, labels, notes)


def _opened(options: AuditOptions) -> TableFile:
    path: Path = options.file
    if path.is_dir():
        raise InvalidInputError(f"FILE must be a CSV or Parquet file; {str(path)!r} is a folder")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=1)
        hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise InvalidInputError(f"FILE must exist; there is no {str(path)!r}{hint}")
    table = open_table(path, delimiter=options.delimiter)
    if table.n_rows == 0 or (table.head is not None and table.head.num_rows == 0):
        raise InvalidInputError(f"FILE must hold at least one row; {path.name} has a header and no rows")
    return table


def _check_survey(survey: Survey, options: AuditOptions) -> None:
    """Raise for missing labels and groups, for an attribute with one group only, and for far too many."""
    for name, row in survey.missing.items():
        option = "--label" if name == options.label else "--sensitive"
        raise GroupError(
            f"{option} {name!r} must have no missing value; row {row + 1} has none: drop these rows"
            + ("" if name == options.label else ", or make 'unknown' a value of its own")
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
    unit = not options.regression
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
        if survey.no_score[i] < NO_ROW:
            raise InvalidInputError(
                f"scores {name!r} must have no missing or infinite value; row {survey.no_score[i] + 1} has one: drop "
                "these rows, or leave this model out with --scores"
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
        words = one.lower().replace(" ", "_"), other.lower().replace(" ", "_")
        if (words[0] in _NEGATIVE and words[1] not in _NEGATIVE) or (
            words[1] in _POSITIVE and words[0] not in _POSITIVE
        ):
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

    def __call__(self, rows: Rows) -> Rows:
        if self.regression:
            y: NDArray[Any] = rows.numbers()
        else:
            texts, codes = as_text(np.asarray(rows.y), is_label=True)
            y = codes == (texts.index(self.positive) if self.positive in texts else -2)
        sensitive = {}
        for name, values in rows.sensitive.items():
            texts, codes = as_text(values)
            sensitive[name] = np.array(texts, dtype=object)[codes]
        scores = rows.scores
        if self.clipped:  # rounding has put a score a hair outside; the survey has refused all others
            scores = scores.copy(order="A")
            scores[:, list(self.clipped)] = np.clip(scores[:, list(self.clipped)], 0.0, 1.0)
        if len(self.kept) < scores.shape[1]:
            scores = scores[:, list(self.kept)]
        return replace(rows, y=y, sensitive=sensitive, scores=scores, names=self.names)
