"""The command `apply`: score the rows of a new file with a saved stack, by the names of its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.options import MOST_ROWS, check_column, check_numbers, is_text, shown
from fairfrontier._cli.table import SLACK, open_file
from fairfrontier._columns import finite, is_missing
from fairfrontier._extras import require
from fairfrontier._persistence import load
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, number
from fairfrontier._writing import csv_lines
from fairfrontier.chunks import file_chunks
from fairfrontier.chunks._files import is_number, read_batches
from fairfrontier.chunks._formats import NOTHING, TableFile
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.report._prepare import UNKNOWN, as_text, in_bands, label_text
from fairfrontier.report._tables import proportion_test
from fairfrontier.search import FairSearch, SearchModel
from fairfrontier.search._table import News, read_columns

# Rates that differ by this much, and not by chance, have moved.
_MOVED, _LEVEL = 0.05, 0.01
# Rows that the model of a search scores at once.
_RAW_ROWS = 20_000
# The columns of the file that is written, beside those that are kept.
_WRITTEN = ("score", "decision")


# Of each attribute and group: selected rows, or for predicted numbers their sum, and rows.
GroupCounts = dict[str, dict[str, tuple[float, int]]]


def add_groups(counts: GroupCounts, rows: Rows, selected: NDArray[Any]) -> None:
    """Add the selected rows of each group, or its predicted numbers, to what was counted before."""
    for name, values in rows.sensitive.items():
        texts, codes = as_text(values)
        if (codes < 0).any():  # rows without a group are counted, too
            codes = np.where(codes < 0, len(texts), codes)
            texts = [*texts, UNKNOWN]
        of_name, total = counts.setdefault(name, {}), np.bincount(codes, minlength=len(texts))
        chosen = np.bincount(codes, weights=selected, minlength=len(texts))
        for text, more, n_rows in zip(texts, chosen.tolist(), total.tolist(), strict=True):
            before = of_name.get(text, (0.0, 0))
            of_name[text] = before[0] + more, before[1] + n_rows


@dataclass(frozen=True, eq=False)
class Applied:
    """What `apply` did."""

    n_rows: int
    counts: GroupCounts  # of the groups in this file
    warnings: tuple[str, ...]
    regression: bool = False  # whether the model predicts numbers, and decides nothing


def run_apply(
    model_file: Path, file: Path, out: Path, *, keep: tuple[str, ...] = (), chunk_rows: int | None = None
) -> Applied:
    """Score a file and write score and decision of every row, in the order of the file."""
    if chunk_rows is not None:
        number(chunk_rows, parameter="--chunk-rows", low=1, high=MOST_ROWS)
    model = _loaded(model_file)
    model = getattr(model, "model_", model) if isinstance(model, FairSearch) else model
    table = open_file(file)
    kept = _checked_names(table, keep, _WRITTEN if hasattr(model, "classes_") else _WRITTEN[:1])
    if isinstance(model, SearchModel):
        return _apply_search(model, table, out, kept, chunk_rows)
    if not hasattr(model, "path_") or not hasattr(model, "names_"):
        raise InvalidInputError(
            f"MODEL must be a fitted stack or search; {model_file.name} holds a {type(model).__name__}"
        )
    reading, regression = _Reading.of(model, table, kept), not hasattr(model, "classes_")
    labels, total = _labels(model), 0
    counts: GroupCounts = {}
    with out.open("w", encoding="utf-8", newline="", errors="replace") as stream:
        stream.write(csv_lines([[*kept, *_WRITTEN[: 1 if regression else 2]]]))
        for rows in reading.chunks(chunk_rows):
            finite(rows.scores, parameter="FILE", names=rows.names, rows=rows.row + 1)  # a file's rows count from 1
            if hasattr(model, "_labels_"):  # the command `stack` fits to such scores alone
                _check_unit(rows)
            H = rows.scores.astype(np.float64)
            columns, selected = _decided(model, H, labels)
            stream.write(csv_lines(zip(*reading.copied(rows), *columns, strict=True), keep_numbers=True))
            add_groups(counts, reading.of_groups(rows), selected)
            total += len(rows)
    return Applied(total, counts, _moved(counts, getattr(model, "group_rates_", {})), regression)


def _decided(model: Any, H: FloatArray, labels: Any) -> tuple[list[Any], NDArray[Any]]:
    """Return the columns to write for scores of models (n, k), and who is selected, or the predicted numbers."""
    scores: FloatArray = model._scores_of(H)
    if labels is None:
        return [scores], scores
    # Of a model that randomises the score is the probability of the decision that is drawn.
    shown = np.clip(scores, 0.0, 1.0) if model.mixture_ is None else model._accepted(H)
    selected = np.asarray(model._drawn(H))
    return [shown, np.asarray(labels, dtype=object)[selected.astype(np.intp)]], selected


def _loaded(model_file: Path) -> Any:
    """Load what `stack` or `search` wrote; errors name the argument."""
    try:
        return load(model_file)
    except InvalidInputError as error:
        ours = str(error).replace("path must be a file written by save", "MODEL must be what `stack` or `search` wrote")
        raise InvalidInputError(ours) from None


def _checked_names(table: TableFile, keep: tuple[str, ...], written: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns to copy, each once; refuse those that are not there or have a name of ours."""
    for name in keep:
        check_column(table, name, option="--keep")
        if name in written:
            raise InvalidInputError(
                f"--keep must name other columns than {' and '.join(written)}, which are written beside them; got "
                f"{name!r}: rename the column of {table.path.name}"
            )
    return tuple(dict.fromkeys(keep))


def _apply_search(
    model: SearchModel, table: TableFile, out: Path, keep: tuple[str, ...], chunk_rows: int | None
) -> Applied:
    """Score the raw rows of a file with the model of a search; its columns are found by name."""
    model.check_columns(list(table.types), allowed=keep)
    text = tuple({*keep, *model.categories})
    total, news = 0, News({}, {})
    with out.open("w", encoding="utf-8", newline="", errors="replace") as stream:
        stream.write(csv_lines([[*keep, *_WRITTEN]]))
        for batch in read_batches(table, chunk_rows=chunk_rows or _RAW_ROWS, text=text, verbatim=True):
            features = _as_features(batch, table, model, keep)
            columns = read_columns(features.select(model.columns), categories=model.categories)
            scores = model.scores(columns, first_row=total + 1)  # a file's rows count from 1
            decided = model.classes_[(scores > model.threshold).astype(np.intp)]
            copied: list[Any] = [batch.column(name).to_pylist() for name in keep]
            stream.write(csv_lines(zip(*copied, np.clip(scores, 0.0, 1.0), decided, strict=True), keep_numbers=True))
            total, news = total + len(scores), news + model.news(columns)
    return Applied(total, {}, tuple(news.words()))


def _as_features(batch: Any, table: TableFile, model: SearchModel, keep: tuple[str, ...]) -> Any:
    """Return a batch whose kept columns, read as they stand, have the type that they would have otherwise."""
    if table.csv is None:
        return batch
    arrow = require("pyarrow", extra="cli", purpose="apply")
    compute = require("pyarrow.compute", extra="cli", purpose="apply")
    for name in set(keep) & set(model.columns) - model.categories:
        dtype = arrow.float64() if is_number(table.types[name]) else table.types[name]
        column = batch.column(name)
        nothing = compute.is_in(column, value_set=arrow.array(["", *NOTHING]))
        values = compute.if_else(nothing, arrow.scalar(None, arrow.string()), column)
        if table.csv.decimal_point != "." and is_number(table.types[name]):
            values = compute.replace_substring(values, table.csv.decimal_point, ".")
        try:
            values = values.cast(dtype)
        except arrow.ArrowInvalid:  # a word among numbers, which the model will name
            values = column
        batch = batch.set_column(batch.schema.get_field_index(name), name, values)
    return batch


@dataclass(frozen=True, eq=False)
class _Reading:
    """How a stack reads a file: as `stack` has read the one that it was fitted to."""

    table: TableFile  # the file
    scores: tuple[str, ...]  # the columns of the stack's models
    keep: tuple[str, ...]  # the columns to copy
    groups: tuple[str, ...]  # the sensitive attributes that the file has
    bands: dict[str, tuple[float, ...]]  # the limits of those that are put into bands
    decisions: dict[str, tuple[str, str]]  # the scores that are words, and the words of decision 0 and decision 1

    @classmethod
    def of(cls, model: Any, table: TableFile, keep: tuple[str, ...]) -> "_Reading":
        """Return how a model reads a file, of which it checks the columns."""
        decisions = {}
        _check_there(table, model.names_)
        for name in model.names_:
            words = getattr(model, "_decisions_", {}).get(name)  # of an older file there are none
            if words is not None and is_text(table.types[name]):
                decisions[name] = tuple(words)
            else:
                check_numbers(table, name, option="FILE")
        groups = tuple(name for name, _ in getattr(model, "_groups_", []) if name in table.types)
        bands = {name: tuple(getattr(model, "_bands_", {}).get(name, ())) for name in groups}
        for name, limits in bands.items():
            if limits:
                check_numbers(table, name, option="FILE")
        limits_of = {name: limits for name, limits in bands.items() if limits}
        return cls(table, tuple(model.names_), keep, groups, limits_of, decisions)

    def chunks(self, chunk_rows: int | None) -> StreamedChunks:
        """Return the rows of the file, with groups and kept columns as attributes."""
        others = tuple(name for name in dict.fromkeys((*self.groups, *self.keep)) if name not in self.scores)
        return file_chunks(
            self.table,
            label=None,
            sensitive=others,
            scores=self.scores,
            chunk_rows=chunk_rows,
            text=[name for name in others if name not in self.bands],
            numbers=list(self.bands),
            decisions=self.decisions,
            verbatim=True,
        )

    def copied(self, rows: Rows) -> list[Any]:
        """Return the kept columns of some rows."""
        columns: list[Any] = []
        for name in self.keep:
            if name in self.decisions:
                decided = rows.scores[:, self.scores.index(name)].astype(np.intp)
                columns.append(np.array(self.decisions[name], dtype=object)[decided])
            elif name in self.scores:
                columns.append(rows.scores[:, self.scores.index(name)])
            else:
                values = rows.sensitive[name]
                columns.append([None if is_missing(value) else value for value in values.tolist()])
        return columns

    def of_groups(self, rows: Rows) -> Rows:
        """Return rows with their groups as they were at fitting."""
        found: dict[str, NDArray[Any]] = {}
        for name in self.groups:
            values = rows.sensitive[name]
            if name in self.bands:
                values = in_bands(values, self.bands[name])
            elif self.table.kind == "CSV":  # read as it stands, for it may be a kept column
                values = np.array([None if value in NOTHING else value for value in values.tolist()], dtype=object)
            found[name] = values
        return Rows(None, rows.scores, found, rows.names, rows.row)


def _check_there(table: TableFile, names: Sequence[str]) -> None:
    """Raise for columns of the stack's models that a file does not have, and name them."""
    missing = [name for name in names if name not in table.types]
    if missing:
        raise InvalidInputError(
            f"FILE must have a column for each model of the stack; {table.path.name} has no {shown(missing)}: its "
            f"columns are {shown(list(table.types))}"
        )


def _check_unit(rows: Rows) -> None:
    """Refuse scores outside [0, 1], as `stack` does: they are not what the stack was fitted to."""
    low, high = rows.scores.min(axis=0), rows.scores.max(axis=0)
    for name, least, most in zip(rows.names, low.tolist(), high.tolist(), strict=True):
        if least < -SLACK or most > 1 + SLACK:
            raise InvalidInputError(
                f"FILE must have scores in [0, 1], as the stack was fitted to; got {least:g} to {most:g} in {name!r}: "
                "turn them into probabilities first"
            )


def _labels(model: Any) -> Any:
    """Return the two labels as they stood in the file that the stack was fitted to; None: it predicts numbers."""
    classes, own = getattr(model, "classes_", None), getattr(model, "_labels_", None)
    if classes is None or own is None:  # an older file, or a stack of Python
        return classes
    # After another fit in Python they would be those of the first.
    return own if [label_text(one) for one in own] == [label_text(one) for one in classes] else classes


def _moved(counts: GroupCounts, at_fitting: dict[str, dict[str, list[int]]]) -> tuple[str, ...]:
    """Return a warning for every group whose rate is another than where the stack was evaluated."""
    warnings = []
    for name, groups in counts.items():
        for group, (selected, rows) in groups.items():
            before = at_fitting.get(name, {}).get(group)
            if before is None:
                if name in at_fitting:
                    warnings.append(f"{name}={group} ({rows:,} rows) was not there when the stack was fitted")
                continue
            then, now = before[0] / before[1], selected / rows
            if abs(then - now) > _MOVED and proportion_test(selected, rows, *before) < _LEVEL:
                warnings.append(f"{name}={group}: {100 * now:.1f} % are selected, {100 * then:.1f} % at fitting")
    return tuple(warnings)
