"""The command `apply`: score the rows of a new file with a saved stack, by the names of its columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.options import MOST_ROWS, check_column, check_numbers
from fairfrontier._cli.table import open_file
from fairfrontier._columns import finite
from fairfrontier._persistence import load
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, number
from fairfrontier._writing import to_csv
from fairfrontier.chunks import file_chunks
from fairfrontier.chunks._formats import TableFile, read_batches
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.report._intervals import proportion_test
from fairfrontier.report._prepare import as_text
from fairfrontier.search import SearchModel

# Rates that differ by this much, and not by chance, have moved.
_MOVED, _LEVEL = 0.05, 0.01
# Rows that the model of a search scores at once.
_RAW_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class GroupRates:
    """Selected rows and rows of each group of each attribute; those of two parts can be added.

    Of predicted numbers it is their sum instead of selected rows.
    """

    counts: dict[str, dict[str, tuple[float, int]]]

    def __add__(self, other: "GroupRates") -> "GroupRates":
        """Return the counts of both parts together."""
        both: dict[str, dict[str, tuple[float, int]]] = {name: dict(groups) for name, groups in self.counts.items()}
        for name, groups in other.counts.items():
            for group, (selected, rows) in groups.items():
                mine = both.setdefault(name, {}).get(group, (0, 0))
                both[name][group] = mine[0] + selected, mine[1] + rows
        return GroupRates(both)


def count_groups(rows: Rows, selected: NDArray[Any]) -> GroupRates:
    """Count the selected rows of each group, or add up its predicted numbers."""
    counts: dict[str, dict[str, tuple[float, int]]] = {}
    for name, values in rows.sensitive.items():
        texts, codes = as_text(values)
        total = np.bincount(codes[codes >= 0], minlength=len(texts))
        chosen = np.bincount(codes[codes >= 0], weights=selected[codes >= 0], minlength=len(texts))
        counts[name] = {text: (float(chosen[i]), int(total[i])) for i, text in enumerate(texts)}
    return GroupRates(counts)


@dataclass(frozen=True, eq=False)
class Applied:
    """What `apply` did: the number of rows, the counts of groups in this file, and warnings.

    `regression` says that the model predicts numbers, and decides nothing.
    """

    n_rows: int
    rates: GroupRates
    warnings: tuple[str, ...]
    regression: bool = False


def run_apply(
    model_file: Path, file: Path, out: Path, *, keep: tuple[str, ...] = (), chunk_rows: int | None = None
) -> Applied:
    """Score a file and write score and decision of every row, in the order of the file.

    Parameters
    ----------
    model_file : Path
        A stack that `fairfrontier stack` or `save` wrote.
    file : Path
        CSV or Parquet file with the columns that the stack was fitted to, in any order.
    out : Path
        The CSV file to write.
    keep : tuple of str
        Columns of the file that are copied beside the score, such as an identifier.
    chunk_rows : int, optional
        Rows that are scored at once.
    """
    if chunk_rows is not None:
        number(chunk_rows, parameter="--chunk-rows", low=1, high=MOST_ROWS)
    model = load(model_file)
    if isinstance(model, SearchModel):
        return _apply_search(model, file, out, keep, chunk_rows)
    if not hasattr(model, "path_") or not hasattr(model, "names_"):
        raise InvalidInputError(f"MODEL must be a fitted stack; {model_file.name} holds a {type(model).__name__}")
    table = open_file(file)
    for name in model.names_:
        check_column(table, name, option="MODEL")
        check_numbers(table, name, option="MODEL")
    for name in keep:
        check_column(table, name, option="--keep")
    chunks = _chunks(table, model, keep, chunk_rows)
    total, rates = 0, GroupRates({})
    with out.open("w", encoding="utf-8", newline="", errors="replace") as stream:
        for text, rows, found in _scored(chunks, model, keep):
            stream.write(text)
            total, rates = total + rows, rates + found
    moved = _moved(rates, getattr(model, "group_rates_", {}))
    return Applied(total, rates, moved, regression=not hasattr(model, "classes_"))


def _apply_search(model: SearchModel, file: Path, out: Path, keep: tuple[str, ...], chunk_rows: int | None) -> Applied:
    """Score the raw rows of a file with the model of a search; its columns are found by name."""
    table = open_file(file)
    for name in keep:
        check_column(table, name, option="--keep")
    model.check_columns(list(table.types), allowed=keep)
    total = 0
    with out.open("w", encoding="utf-8", newline="", errors="replace") as stream:
        text = tuple({*keep, *model.categories})
        for position, batch in enumerate(read_batches(table, chunk_rows=chunk_rows or _RAW_ROWS, text=text)):
            scores = model.scores(batch.select(model.columns), first_row=total + 1)  # a file's rows count from 1
            decided = model.classes_[(scores > model.threshold).astype(np.intp)]
            columns: list[Any] = [batch.column(name).to_pylist() for name in keep]
            lines = to_csv([*keep, "score", "decision"], zip(*columns, np.clip(scores, 0.0, 1.0), decided, strict=True))
            stream.write(lines if position == 0 else lines.partition("\n")[2])
            total += len(scores)
    return Applied(total, GroupRates({}), ())


def _chunks(table: TableFile, model: Any, keep: tuple[str, ...], chunk_rows: int | None) -> StreamedChunks:
    known = [name for name, _ in getattr(model, "_groups_", []) if name in table.types]
    others = tuple(dict.fromkeys((*known, *keep)))
    return file_chunks(table, label=None, sensitive=others, scores=model.names_, chunk_rows=chunk_rows, text=others)


def _scored(chunks: StreamedChunks, model: Any, keep: tuple[str, ...]) -> Iterator[tuple[str, int, GroupRates]]:
    """Yield the lines of each chunk, its number of rows, and the counts of its groups."""
    classes = getattr(model, "classes_", None)
    known = {name for name, _ in getattr(model, "_groups_", [])}
    header = [*keep, "score"] + ([] if classes is None else ["decision"])
    for position, rows in enumerate(chunks):
        finite(rows.scores, parameter="FILE", names=rows.names, rows=rows.row + 1)  # a file's rows count from 1
        H = rows.scores.astype(np.float64)
        scores: FloatArray = model._scores_of(H)
        columns: list[Any] = [rows.sensitive[name] for name in keep]
        selected: NDArray[Any] = scores
        if classes is None:
            columns.append(scores)
        else:
            # Of a model that randomises the score is the probability of the decision that is drawn.
            columns.append(np.clip(scores, 0.0, 1.0) if model.mixture_ is None else model._accepted(H))
            selected = model._drawn(H)
            columns.append(np.asarray(classes, dtype=object)[selected.astype(np.intp)])
        lines = to_csv(header, zip(*columns, strict=True))
        of_groups = {name: values for name, values in rows.sensitive.items() if name in known}
        found = count_groups(Rows(None, rows.scores, of_groups, rows.names, rows.row), selected)
        yield (lines if position == 0 else lines.partition("\n")[2]), len(rows), found


def _moved(rates: GroupRates, at_fitting: dict[str, dict[str, list[int]]]) -> tuple[str, ...]:
    """Return a warning for every group whose rate is another than where the stack was evaluated."""
    warnings = []
    for name, groups in rates.counts.items():
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
