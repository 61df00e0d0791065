"""CSV, Parquet and Excel files as chunks: the one way from a file to rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._rows import Rows
from fairfrontier._validation import one_of
from fairfrontier.chunks._formats import BLOCK, SMALL_BLOCK, TableFile, open_stream, open_table
from fairfrontier.chunks._source import StreamedChunks, rows_of_chunk
from fairfrontier.exceptions import DataFileError, FairFrontierError, InvalidInputError

_PURPOSE = "Reading a file in chunks"
# Columns that are read at once where all rows are read at once: few enough for one memory to serve them in turn.
_COLUMNS = 8
# Types of numbers that pyarrow and numpy hold alike.
_PLAIN = {"halffloat", "float", "double", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
# Pyarrow would otherwise fetch the whole file ahead of what is read, and each column of a row group at once.
_STREAMED: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**20}


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are.

    Attributes
    ----------
    label : str or None
        The target; None: there is none.
    sensitive : tuple of str
        The sensitive attributes.
    scores : tuple of str
        The models, one column each.
    sample_weight, fold : str or None
        Weights and folds, if there are any.
    text : tuple of str
        Columns of a CSV file that are text whatever they look like: a column of numbers at the top of a file may have
        words further down.
    numbers : tuple of str
        Columns of a CSV file that are numbers even if the first of them are whole; scores are so anyway.
    decisions : dict of str to (str, str)
        Scores that are words, and the words of decision 0 and decision 1.
    to_single : callable or None
        What turns a column of scores into single precision; None: they keep that of the file.
    verbatim : bool
        Whether words such as NA stay what they are in a CSV file's columns of text.
    """

    label: str | None
    sensitive: tuple[str, ...]
    scores: tuple[str, ...]
    sample_weight: str | None = None
    fold: str | None = None
    text: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    decisions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    to_single: Callable[[NDArray[Any]], NDArray[np.float32]] | None = None
    verbatim: bool = False

    def about_rows(self) -> list[str]:
        """Return the columns that are not scores, each once."""
        named = (self.label, *self.sensitive, self.sample_weight, self.fold)
        return list(dict.fromkeys(name for name in named if name is not None))

    def all(self) -> list[str]:
        """Return every column that is read, once."""
        return list(dict.fromkeys([*self.about_rows(), *self.scores]))

    def rows(self, batch: Any, first_row: int) -> Rows:
        """Return a pyarrow record batch as validated rows."""
        position = {name: i for i, name in enumerate(batch.schema.names)}
        of_numbers = [name for name in self.scores if name not in self.decisions]
        types = [batch.schema.field(position[name]).type for name in of_numbers]
        dtype = _common_type(types) if self.to_single is None else np.float32
        scores = np.empty((len(self.scores), batch.num_rows), dtype=dtype)
        for values, name in zip(scores, self.scores, strict=True):
            column, words = batch.column(position[name]), self.decisions.get(name)
            found = _numbers(column, name) if words is None else _decided(column, name, words, first_row)
            values[:] = found if self.to_single is None else self.to_single(found)

        def read(name: str | None) -> NDArray[Any] | None:
            return None if name is None else column_values(batch.column(position[name]))

        return Rows.validated(
            read(self.label),
            scores.T,
            {name: read(name) for name in self.sensitive} or None,
            needs_attributes=bool(self.sensitive),
            sample_weight=read(self.sample_weight),
            fold=read(self.fold),
            names=self.scores,
            first_row=first_row,
            counted_from=1,
        )


def _common_type(types: Sequence[Any]) -> Any:
    """Return single precision only where every column has it."""
    kinds = {str(one) for one in types}
    return np.float32 if kinds <= {"float", "halffloat", "bool"} else np.float64


def _numbers(column: Any, name: str) -> NDArray[Any]:
    if _is_plain(column):
        return np.from_dlpack(column)
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if arrow.types.is_decimal(column.type) or arrow.types.is_null(column.type):
        column = column.cast(arrow.float64())
    values = _as_numpy(column)
    if values.dtype.kind == "O" and arrow.types.is_boolean(column.type):
        values = _as_numpy(column.cast(arrow.float64()))
    if values.dtype.kind not in "fiub":
        shown = column[0].as_py() if len(column) else None
        raise InvalidInputError(
            f"scores must be columns of numbers; got {shown!r} of type {column.type} in {name!r}: name the columns of "
            "scores"
        )
    return np.asarray(values)


def _decided(column: Any, name: str, words: tuple[str, str], first_row: int) -> NDArray[np.float32]:
    """Return a column of two words as decisions 0 and 1, NaN where there is none."""
    values = column_values(column)
    decided = np.full(len(values), np.nan, dtype=np.float32)
    for decision, word in enumerate(words):
        decided[values == word] = decision
    other = np.flatnonzero(np.isnan(decided) & np.array([value is not None for value in values], dtype=bool))
    if len(other):
        raise InvalidInputError(
            f"scores {name!r} must hold two words, {words[0]!r} and {words[1]!r}; got {values[other[0]]!r} in row "
            f"{first_row + int(other[0]) + 1}: write decisions as 1 and 0"
        )
    return decided


def column_values(column: Any) -> NDArray[Any]:
    """Return a column as numbers, or as objects of which each distinct one exists once; what is missing is None."""
    types = require("pyarrow", extra="cli", purpose=_PURPOSE).types
    numbers = types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)
    if numbers and (types.is_floating(column.type) or not column.null_count):
        return _as_numpy(column)
    encoded = column if types.is_dictionary(column.type) else column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    lookup = np.empty(len(values) + 1, dtype=object)
    lookup[:-1] = [None if isinstance(value, str) and not value.strip() else value for value in values]
    indices = encoded.indices.fill_null(len(values)) if encoded.indices.null_count else encoded.indices
    return np.asarray(lookup[_as_numpy(indices)])


def _as_numpy(column: Any) -> NDArray[Any]:
    return np.from_dlpack(column) if _is_plain(column) else np.asarray(column.to_numpy(zero_copy_only=False))


def _is_plain(column: Any) -> bool:
    """Tell whether a pyarrow array can be taken as it is: pandas, which takes long to load, is then not asked for."""
    return not column.null_count and str(column.type) in _PLAIN


def file_chunks(
    path: str | Path | TableFile,
    *,
    label: str | None,
    sensitive: str | Sequence[str],
    scores: Sequence[str] | None = None,
    sample_weight: str | None = None,
    fold: str | None = None,
    chunk_rows: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    text: Sequence[str] = (),
    numbers: Sequence[str] = (),
    decisions: Mapping[str, tuple[str, str]] | None = None,
    to_single: Callable[[NDArray[Any]], NDArray[np.float32]] | None = None,
    verbatim: bool = False,
) -> StreamedChunks:
    """Read a CSV, Parquet or Excel file in chunks; which of them it is, its first bytes say.

    Parameters
    ----------
    path : str, Path or TableFile
        The file. A CSV file may be compressed (gzip, bz2, zstd); of an Excel file the first sheet is read, all at once.
    label : str or None
        Column of the target; None: there is none.
    sensitive : str or sequence of str
        Columns of the sensitive attributes.
    scores : sequence of str, optional
        Columns of the models' scores; None: all other columns of numbers.
    sample_weight, fold : str, optional
        Columns of weights, and of folds (integers from 0) for tuning.
    chunk_rows : int, optional
        Rows in a chunk; None: about 32 MB of scores in double precision.
    delimiter, encoding : str, optional
        What separates the columns of a CSV file, and how its text is encoded; None: what the file looks like.
    text, numbers : sequence of str
        Columns of a CSV file that are text, or numbers, whatever their first values look like.
    decisions : dict of str to (str, str), optional
        Scores that are words, and the words of decision 0 and decision 1.
    to_single : callable, optional
        What turns a column of scores into single precision; None: they keep that of the file.
    verbatim : bool
        Whether words such as NA stay what they are in a CSV file's columns of text; otherwise they are missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("y,sex,a\\n0,f,0.2\\n1,m,0.9\\n1,f,0.6\\n")
    ...     chunks = file_chunks(path, label="y", sensitive="sex", chunk_rows=2)
    ...     [chunk.scores.ravel().tolist() for chunk in chunks]
    [[0.2, 0.9], [0.6]]
    """
    table = path if isinstance(path, TableFile) else open_table(path, delimiter=delimiter, encoding=encoding)
    asked = Columns(
        label,
        (sensitive,) if isinstance(sensitive, str) else tuple(sensitive),
        tuple(scores or ()),
        sample_weight,
        fold,
        tuple(text),
        tuple(numbers),
        decisions or {},
        to_single,
        verbatim,
    )
    known = _resolved(asked, table)
    step = rows_of_chunk(chunk_rows, len(known.scores))
    return StreamedChunks(known.scores, _reader(table, known, partial(_BATCHES[table.kind], table, known, step)))


def file_schema(path: str | Path, *, delimiter: str | None = None) -> Any:
    """Return the pyarrow schema of a CSV or Parquet file; the types of a CSV file are those of its first 8 MB."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    return arrow.schema(list(open_table(path, delimiter=delimiter).types.items()))


def _parquet_batches(table: TableFile, columns: Columns, step: int) -> Iterator[tuple[Any, float]]:
    """Yield record batches, and the share of the file that is read after each."""
    parquet = require("pyarrow.parquet", extra="cli", purpose=_PURPOSE)
    done = 0
    with parquet.ParquetFile(table.path, **_STREAMED) as source:
        if step >= source.metadata.num_rows:
            yield _ColumnBlocks(source, columns.all()), 1.0
            return
        # In one thread: several fetch and decode far more than is asked for.
        for batch in source.iter_batches(batch_size=step, columns=columns.all(), use_threads=False):
            done += batch.num_rows
            yield batch, done / source.metadata.num_rows


class _ColumnBlocks:
    """All rows of a Parquet file like a record batch, of which only a few columns are in memory at a time.

    Parameters
    ----------
    source : pyarrow.parquet.ParquetFile
        The file.
    names : list of str
        The columns.
    """

    def __init__(self, source: Any, names: list[str]) -> None:
        arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
        every = source.schema_arrow  # made anew each time it is asked for
        self.schema = arrow.schema([every.field(name) for name in names])
        self.num_rows = source.metadata.num_rows
        self._source, self._first = source, -1
        self._block: Any = None

    def column(self, index: int) -> Any:
        """Return a column; those next to it are read along with it."""
        start = index - index % _COLUMNS
        if start != self._first:
            self._block = None  # before the next one is read: two of them are not needed
            self._block = self._source.read(self.schema.names[start : start + _COLUMNS], use_threads=False)
            self._first = start
            if len(self._block) != self.num_rows:
                raise OSError(f"it says that it has {self.num_rows:,} rows, and has {len(self._block):,}")
        return self._block.column(self.schema.names[index]).combine_chunks()


def _csv_batches(table: TableFile, columns: Columns, step: int) -> Iterator[tuple[Any, float]]:
    """Yield record batches, and the share of the file that is read after each."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    csv = require("pyarrow.csv", extra="cli", purpose=_PURPOSE)
    found = table.csv
    if found is None:  # a Parquet file, which `_parquet_batches` reads
        return
    size = max(table.path.stat().st_size, 1)
    types = {name: table.types[name] for name in columns.all()}
    # A column of whole numbers at the top of the file may have fractions further down.
    numbers = [name for name in (*columns.scores, *columns.numbers) if not arrow.types.is_boolean(types[name])]
    words = (*columns.text, *columns.decisions)
    types |= dict.fromkeys(numbers, arrow.float64()) | dict.fromkeys(words, arrow.string())
    converting = found.converting(csv, verbatim=columns.verbatim, column_types=types, include_columns=columns.all())
    n_rows = 0
    for block in (SMALL_BLOCK, BLOCK):
        before = n_rows
        try:
            with (
                open_stream(table.path, found) as (stream, raw),
                csv.open_csv(stream, *found.options(csv, block), converting) as source,
            ):
                for batch in source:
                    for start in range(min(before, batch.num_rows), batch.num_rows, step):
                        part = batch.slice(start, step)
                        n_rows += part.num_rows
                        yield part, min(raw.tell() / size, 1.0)
                    before -= min(before, batch.num_rows)
            return
        except arrow.ArrowInvalid as error:
            if block == BLOCK or "straddling" not in str(error):
                raise
        # A line is longer than a small block: on from there with large ones.


def _excel_batches(table: TableFile, columns: Columns, step: int) -> Iterator[tuple[Any, float]]:
    """Yield record batches of a sheet, which is in memory."""
    sheet, done = table.head.select(columns.all()), 0
    for batch in sheet.to_batches(max_chunksize=step):
        done += batch.num_rows
        yield batch, done / sheet.num_rows


_BATCHES = {"CSV": _csv_batches, "Parquet": _parquet_batches, "Excel": _excel_batches}


def read_batches(
    table: TableFile, *, text: Sequence[str] = (), chunk_rows: int | None = None, verbatim: bool = False
) -> Iterator[Any]:
    """Yield all columns of a file as pyarrow tables of some rows each.

    Parameters
    ----------
    table : TableFile
        The file.
    text : sequence of str
        Columns of a CSV file that are text whatever they look like.
    chunk_rows : int, optional
        Rows at a time, at the most.
    verbatim : bool
        Whether words such as NA stay what they are in a CSV file's columns of text.
    """
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    # A column of whole numbers at the top of the file may have fractions further down.
    whole = tuple(name for name, one in table.types.items() if arrow.types.is_integer(one))
    # One that is empty at the top may have anything further down.
    empty = tuple(name for name, one in table.types.items() if arrow.types.is_null(one))
    every = Columns(None, tuple(table.types), (), text=(*text, *empty), numbers=whole, verbatim=verbatim)
    try:
        for batch, _ in _BATCHES[table.kind](table, every, chunk_rows or 2**16):
            columns = [batch.column(i) for i in range(len(batch.schema))]
            yield arrow.Table.from_arrays(columns, schema=batch.schema)
    except (arrow.ArrowException, OSError, EOFError, UnicodeError) as error:
        raise table.damaged(error) from None


def read_table(table: TableFile, *, text: Sequence[str] = ()) -> Any:
    """Return all rows and columns of a file as one pyarrow table."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    batches = list(read_batches(table, text=text))
    return arrow.concat_tables(batches) if batches else arrow.schema(list(table.types.items())).empty_table()


def _reader(
    table: TableFile, columns: Columns, open_batches: Callable[[], Iterator[tuple[Any, float]]]
) -> Callable[[], Iterator[tuple[Rows, float]]]:
    """Return the function that opens the file anew and yields its chunks."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    before = _state(table.path)

    def open_chunks() -> Iterator[tuple[Rows, float]]:
        first_row = 0
        _check_unchanged(table.path, before)
        batches = open_batches()
        while True:
            try:
                batch, done = next(batches, (None, 1.0))
                rows = None if batch is None else columns.rows(batch, first_row)
            except FairFrontierError:
                raise
            except (arrow.ArrowException, EOFError, OSError, UnicodeError) as error:
                raise table.damaged(error, first_row) from None
            if rows is None:
                break
            yield rows, done
            first_row += len(rows)
        _check_unchanged(table.path, before)

    return open_chunks


def _state(file: Path) -> tuple[int, int]:
    """Return the size and the time of the last change of a file."""
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _check_unchanged(file: Path, before: tuple[int, int]) -> None:
    """Raise if a file is no longer what it was when it was opened: each pass must see the same rows."""
    if _state(file) != before:
        raise DataFileError(
            f"{file.name} must not change while it is read; its size or its time of change is another than at the "
            "start: write to another file, and start again"
        )


def _resolved(columns: Columns, table: TableFile) -> Columns:
    """Return the columns after checking that the file has them; without named scores, all other numbers are scores."""
    for name in columns.all():
        if name not in table.types:
            one_of(name, table.types, parameter=f"the columns of {table.path.name}")
        _check_single_values(name, table)
    if columns.scores:
        return columns
    taken = set(columns.about_rows())
    numbers = tuple(name for name in table.types if name not in taken and is_number(table.types[name]))
    if not numbers:
        raise InvalidInputError(
            f"{table.path.name} must have columns of scores besides {sorted(taken)}; got none with numbers"
        )
    return replace(columns, scores=numbers)


def is_number(dtype: Any) -> bool:
    """Tell whether a pyarrow type is one of numbers; booleans are none."""
    types = require("pyarrow", extra="cli", purpose=_PURPOSE).types
    return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype))


def _check_single_values(name: str, table: TableFile) -> None:
    """Refuse a column of lists, records or raw bytes."""
    types, dtype = require("pyarrow", extra="cli", purpose=_PURPOSE).types, table.types[name]
    if types.is_nested(dtype):
        raise InvalidInputError(
            f"column {name!r} of {table.path.name} must hold one value per row; it holds {str(dtype)[:60]}: write the "
            "values into columns of their own"
        )
    if types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype):
        raise InvalidInputError(f"column {name!r} of {table.path.name} must be text or numbers; it holds raw bytes")
