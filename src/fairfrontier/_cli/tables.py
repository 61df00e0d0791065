"""A CSV or Parquet file as columns, or one line that says what is wrong with it."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairfrontier._extras import require
from fairfrontier.chunks import file_schema
from fairfrontier.exceptions import InvalidInputError

_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True, eq=False)
class ColumnFile:
    """An open table.

    Attributes
    ----------
    path : Path
        The file.
    types : dict of str to pyarrow type
        Its columns, in order.
    n_rows : int
        Its number of rows.
    """

    path: Path
    types: dict[str, Any]
    n_rows: int
    _source: Any

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns as a pyarrow table."""
        if hasattr(self._source, "schema_arrow"):  # Parquet reads only what is asked for; CSV is in memory already
            return self._source.read(columns=list(columns), use_threads=True)
        return self._source.select(list(columns))

    def check(self, column: str, *, option: str) -> str:
        """Return `column` if the file has it, else name the nearest one."""
        if column in self.types:
            return column
        near = difflib.get_close_matches(column, self.types, n=1, cutoff=0.5) or [
            name for name in self.types if name.lower() == column.lower()
        ]
        hint = f"did you mean {near[0]!r}?" if near else f"its columns are {shown(list(self.types))}"
        raise InvalidInputError(f"{option} must name a column of {self.path.name}; got {column!r}: {hint}")


def shown(names: Sequence[str], limit: int = 8) -> str:
    """Write a list of names for a message, short enough for one line.

    Examples
    --------
    >>> shown(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(repr(name if len(name) <= 60 else name[:59] + "…") for name in names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"


def open_file(path: Path, *, delimiter: str = ",") -> ColumnFile:
    """Open a CSV or Parquet file; which of the two it is, its first bytes say.

    Raises
    ------
    InvalidInputError
        For a folder, an empty file, a file that cannot be read or parsed, and one with a column name twice.
    """
    with _readable(path).open("rb") as stream:
        magic = stream.read(len(_PARQUET_MAGIC))
    if not magic:
        raise InvalidInputError(f"FILE must hold a table with a header; {path.name} is empty")
    opened = _open_parquet(path) if magic == _PARQUET_MAGIC else _open_csv(path, delimiter)
    if opened.n_rows == 0:
        raise InvalidInputError(f"FILE must hold at least one row; {path.name} has a header and no rows")
    return opened


def open_streamed(path: Path, *, delimiter: str = ",") -> ColumnFile:
    """Open a file that is read in chunks: its types are known, its columns cannot be read whole."""
    readable = _readable(path)
    if readable.stat().st_size == 0:
        raise InvalidInputError(f"FILE must hold a table with a header; {path.name} is empty")
    if len(delimiter) != 1:
        raise InvalidInputError(f"--delimiter must be one character; got {delimiter!r}")
    with readable.open("rb") as stream:
        is_parquet = stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    if not is_parquet:
        _check_delimiter(path, delimiter)
    return ColumnFile(path, _types(file_schema(path, delimiter=delimiter), path), 0, None)


def _readable(path: Path) -> Path:
    if path.is_dir():
        raise InvalidInputError(f"FILE must be a CSV or Parquet file; {str(path)!r} is a folder")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=1)
        hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise InvalidInputError(f"FILE must exist; there is no {str(path)!r}{hint}")
    return path


def _open_parquet(path: Path) -> ColumnFile:
    arrow = require("pyarrow", extra="cli", purpose="Reading a file")
    parquet = require("pyarrow.parquet", extra="cli", purpose="Reading a file")
    try:
        source = parquet.ParquetFile(path)
    except arrow.ArrowException as error:
        raise _unreadable(path, "Parquet", error) from None
    schema = source.schema_arrow
    return ColumnFile(path, _types(schema, path), source.metadata.num_rows, source)


def _open_csv(path: Path, delimiter: str) -> ColumnFile:
    arrow = require("pyarrow", extra="cli", purpose="Reading a file")
    csv = require("pyarrow.csv", extra="cli", purpose="Reading a file")
    if len(delimiter) != 1:
        raise InvalidInputError(f"--delimiter must be one character; got {delimiter!r}")
    _check_delimiter(path, delimiter)
    try:
        table = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )
    except arrow.ArrowException as error:
        raise _unreadable(path, "CSV", error) from None
    return ColumnFile(path, _types(table.schema, path), table.num_rows, table)


def _check_delimiter(path: Path, delimiter: str) -> None:
    """Refuse a header that holds another delimiter and not this one: it was not written with this one."""
    with path.open("rb") as stream:
        header = stream.readline(2**20)
    if delimiter.encode() in header:
        return
    for other, word in {**_OTHER_DELIMITERS, ",": "commas"}.items():
        if other.encode() in header:
            option = "'\\t'" if other == "\t" else repr(other)
            raise InvalidInputError(
                f"{path.name} looks separated by {word}, not by {delimiter!r}: pass --delimiter {option}"
            )


def _types(schema: Any, path: Path) -> dict[str, Any]:
    names = schema.names
    twice = (
        next((name for i, name in enumerate(names) if name in names[:i]), None)
        if len(set(names)) < len(names)
        else None
    )
    if twice is not None:
        raise InvalidInputError(f"{path.name} must have distinct column names; got {twice!r} twice: rename one of them")
    return dict(zip(names, schema.types, strict=True))


def _unreadable(path: Path, kind: str, error: Exception) -> InvalidInputError:
    """Return a one-line error from pyarrow's, which may quote the file at length."""
    reason = " ".join(str(error).split())
    reason = reason if len(reason) <= 200 else reason[:199] + "…"
    return InvalidInputError(f"{path.name} must be a {kind} file; it cannot be read as one: {reason}")
