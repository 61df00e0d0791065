"""CSV and Parquet files in batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._rows import Rows
from fairfrontier._validation import one_of
from fairfrontier.chunks._source import StreamedChunks, rows_of_chunk
from fairfrontier.exceptions import DataFileError, InvalidInputError

_PURPOSE = "Reading a file in chunks"
_PARQUET_MAGIC = b"PAR1"
# Pyarrow would otherwise fetch the whole file ahead of what is read, and each column of a row group at once.
_STREAMED: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**20}
# Bytes of a CSV file that are parsed at once.
_BLOCK = 2**25


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are.

    Attributes
    ----------
    label : str
        The target.
    sensitive : tuple of str
        The sensitive attributes.
    scores : tuple of str
        One column a model.
    sample_weight, fold : str or None
        Weights and folds, if there are any.
    """

    label: str
    sensitive: tuple[str, ...]
    scores: tuple[str, ...]
    sample_weight: str | None = None
    fold: str | None = None

    def all(self) -> list[str]:
        """Return every column that is read, once."""
        optional = [name for name in (self.sample_weight, self.fold) if name is not None]
        return list(dict.fromkeys([self.label, *self.sensitive, *optional, *self.scores]))

    def rows(self, batch: Any, first_row: int) -> Rows:
        """Return a pyarrow record batch as validated rows."""
        scores = np.empty((len(self.scores), batch.num_rows), dtype=_common_type(batch, self.scores))
        for values, name in zip(scores, self.scores, strict=True):
            values[:] = _numbers(batch.column(name), name)
        return Rows.validated(
            _values(batch.column(self.label)),
            scores.T,
            {name: _values(batch.column(name)) for name in self.sensitive},
            sample_weight=None if self.sample_weight is None else _values(batch.column(self.sample_weight)),
            fold=None if self.fold is None else _values(batch.column(self.fold)),
            names=self.scores,
            first_row=first_row,
        )


def _common_type(batch: Any, names: Sequence[str]) -> Any:
    """Return single precision only where every column has it."""
    single = all(str(batch.column(name).type) in ("float", "halffloat", "bool") for name in names)
    return np.float32 if single else np.float64


def _numbers(column: Any, name: str) -> NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "fiub":
        shown = column[0].as_py() if len(column) else None
        raise InvalidInputError(
            f"scores must be columns of numbers; got {shown!r} of type {column.type} in {name!r}: name the columns of "
            "scores"
        )
    return np.asarray(values)


def _values(column: Any) -> NDArray[Any]:
    if str(column.type).startswith("dictionary"):
        column = column.dictionary_decode()
    if column.null_count or str(column.type) not in ("string", "large_string"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    # One object a distinct text, not one a row: telling them apart is then a comparison of addresses.
    encoded = column.dictionary_encode()
    return np.asarray(np.array(encoded.dictionary.to_pylist(), dtype=object)[encoded.indices.to_numpy()])


def file_chunks(
    path: str | Path,
    *,
    label: str,
    sensitive: str | Sequence[str],
    scores: Sequence[str] | None = None,
    sample_weight: str | None = None,
    fold: str | None = None,
    chunk_rows: int | None = None,
    delimiter: str = ",",
) -> StreamedChunks:
    """Read a CSV or Parquet file in chunks; which of the two it is, its first bytes say.

    Parameters
    ----------
    path : str or Path
        The file.
    label : str
        Column of the target.
    sensitive : str or sequence of str
        Columns of the sensitive attributes.
    scores : sequence of str, optional
        Columns of the models' scores; None: all other columns of numbers.
    sample_weight, fold : str, optional
        Columns of weights, and of folds (integers from 0) for tuning.
    chunk_rows : int, optional
        Rows in a chunk; None: about 32 MB of scores in double precision.
    delimiter : str
        What separates the columns of a CSV file.

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
    asked = Columns(
        label,
        (sensitive,) if isinstance(sensitive, str) else tuple(sensitive),
        tuple(scores or ()),
        sample_weight,
        fold,
    )
    file, schema = Path(path), file_schema(path, delimiter=delimiter)
    known = _resolved(asked, schema, file)
    step = rows_of_chunk(chunk_rows, len(known.scores))
    if _is_parquet(file):
        return StreamedChunks(
            known.scores, _reader(file, "Parquet", known, lambda: _parquet_batches(file, known, step))
        )
    open_batches = partial(_csv_batches, file, known, step, schema=schema, delimiter=delimiter)
    return StreamedChunks(known.scores, _reader(file, "CSV", known, open_batches))


def file_schema(path: str | Path, *, delimiter: str = ",") -> Any:
    """Return the pyarrow schema of a CSV or Parquet file; the types of a CSV file are those of its first 32 MB."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    file, kind = Path(path), "CSV"
    try:
        if _is_parquet(file):
            kind = "Parquet"
            with require("pyarrow.parquet", extra="cli", purpose=_PURPOSE).ParquetFile(file) as source:
                return source.schema_arrow
        csv = require("pyarrow.csv", extra="cli", purpose=_PURPOSE)
        with csv.open_csv(file, *_csv_options(csv, delimiter), csv.ConvertOptions(strings_can_be_null=True)) as source:
            return source.schema
    except arrow.ArrowException as error:
        raise _damaged(file, kind, error) from None


def _is_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise DataFileError(
            f"{str(file)!r} must be a CSV or Parquet file; it cannot be opened: {error.strerror}"
        ) from None


def _parquet_batches(file: Path, columns: Columns, step: int) -> Iterator[tuple[Any, float]]:
    """Yield record batches, and the share of the file that is read after each."""
    parquet = require("pyarrow.parquet", extra="cli", purpose=_PURPOSE)
    done = 0
    with parquet.ParquetFile(file, **_STREAMED) as source:
        for batch in source.iter_batches(batch_size=step, columns=columns.all()):
            done += batch.num_rows
            yield batch, done / source.metadata.num_rows


def _csv_batches(
    file: Path, columns: Columns, step: int, *, schema: Any, delimiter: str
) -> Iterator[tuple[Any, float]]:
    """Yield record batches, and the share of the file that is read after each."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    csv = require("pyarrow.csv", extra="cli", purpose=_PURPOSE)
    size = max(file.stat().st_size, 1)
    # A column of whole numbers at the top of the file may have fractions further down.
    types = {name: schema.field(name).type for name in columns.all()} | dict.fromkeys(columns.scores, arrow.float64())
    converting = csv.ConvertOptions(column_types=types, include_columns=columns.all(), strings_can_be_null=True)
    with file.open("rb") as stream, csv.open_csv(stream, *_csv_options(csv, delimiter), converting) as source:
        for batch in source:
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step), min(stream.tell() / size, 1.0)


def _csv_options(csv: Any, delimiter: str) -> tuple[Any, Any]:
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    return csv.ReadOptions(block_size=_BLOCK), parsing


def _reader(
    file: Path, kind: str, columns: Columns, open_batches: Callable[[], Iterator[tuple[Any, float]]]
) -> Callable[[], Iterator[tuple[Rows, float]]]:
    """Return the function that opens the file anew and yields its chunks."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    before = _state(file)

    def open_chunks() -> Iterator[tuple[Rows, float]]:
        first_row = 0
        _check_unchanged(file, before)
        try:
            for batch, done in open_batches():
                yield columns.rows(batch, first_row), done
                first_row += batch.num_rows
            _check_unchanged(file, before)
        except arrow.ArrowException as error:
            raise _damaged(file, kind, error, first_row) from None

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


def _resolved(columns: Columns, schema: Any, file: Path) -> Columns:
    """Return the columns after checking that the file has them; without named scores, all other numbers are scores."""
    optional = [name for name in (columns.sample_weight, columns.fold) if name is not None]
    for name in (columns.label, *columns.sensitive, *optional, *columns.scores):
        one_of(name, schema.names, parameter=f"the columns of {file.name}")
    if columns.scores:
        return columns
    types = require("pyarrow", extra="cli", purpose=_PURPOSE).types
    taken = {columns.label, *columns.sensitive, *optional}
    numbers = tuple(
        field.name
        for field in schema
        if field.name not in taken and (types.is_floating(field.type) or types.is_integer(field.type))
    )
    if not numbers:
        raise InvalidInputError(
            f"{file.name} must have columns of scores besides {sorted(taken)}; got none with numbers"
        )
    return Columns(columns.label, columns.sensitive, numbers, columns.sample_weight, columns.fold)


def _damaged(file: Path, kind: str, error: Exception, row: int | None = None) -> DataFileError:
    """Return a one-line error from pyarrow's, which may quote the file at length."""
    reason = " ".join(str(error).split())
    reason = reason if len(reason) <= 200 else reason[:199] + "…"
    after = "" if row is None else f" after row {row}"
    return DataFileError(f"{file.name} must be a readable {kind} file; it is not{after}: {reason}")
