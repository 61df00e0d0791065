"""Open a CSV, Parquet or Excel file: which of them it is, its columns, and how its text is to be read."""

import codecs
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fairfrontier._extras import require
from fairfrontier.exceptions import DataFileError

_PURPOSE = "Reading a file"
# First bytes of the files that people hand in.
_PARQUET_MAGIC = b"PAR1"
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_ARCHIVE_MAGIC = b"PK\x03\x04"
_OTHERS = {
    b"\xfd7zX": "an xz archive: unpack it",
    b"ARRO": "a Feather or Arrow file: write it as Parquet",
    b"\xd0\xcf\x11\xe0": "a file of an old Excel: save it as .xlsx or as CSV",
    b"%PDF": "a PDF: export its table as CSV",
}
# Bytes of a CSV file that are parsed at once: no line may be longer.
BLOCK = 2**25
# Where lines are shorter, the types of the columns are those of so many of its first bytes, and so many are parsed at
# once after that: small blocks, which stay in the processor's cache, take half of the time.
_HEAD, SMALL_BLOCK = 2**23, 2**22
# Bytes that are looked at to find out the encoding, and the delimiter and the decimal point.
_ENCODING_SAMPLE, _FORMAT_SAMPLE = 2**26, 2**20
_UTF16_SAMPLE = 200
_WINDOWS_ONLY, _NOT_WINDOWS = re.compile(rb"[\x80-\x9f]"), re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAMPLE_LINES = 5000
# What pyarrow says of a row that has more or fewer cells than the header; it counts the header.
_UNEVEN = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
# And of a cell that is not what the cells above are.
_UNCONVERTED = re.compile(r"In CSV column #(\d+): .*conversion error to \w+: invalid value '(.*)'")
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.I)
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.I)
# Words of CSV files that stand for nothing, beside the empty cell.
NOTHING = frozenset(
    {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
)
# Bytes that an Excel file may unpack to, and how many times its own size where that is more: sheets shrink to a tenth.
_UNPACKED, _RATIO = 2**27, 100


@dataclass(frozen=True)
class CsvFormat:
    """How the text of a CSV file is to be read."""

    delimiter: str = ","
    encoding: str = "utf8"
    decimal_point: str = "."
    compression: str | None = None

    def options(self, csv: Any, block: int = BLOCK) -> tuple[Any, Any]:
        """Return pyarrow's options for reading and parsing."""
        parsing = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        return csv.ReadOptions(block_size=block, encoding=self.encoding), parsing

    def converting(self, csv: Any, *, verbatim: bool = False, **options: Any) -> Any:
        """Return pyarrow's options for converting text into values.

        Words such as NA are missing, in columns of text as well unless these are taken as they stand (`verbatim`).
        """
        return csv.ConvertOptions(
            null_values=["", *sorted(NOTHING)],
            strings_can_be_null=not verbatim,
            decimal_point=self.decimal_point,
            **options,
        )


@dataclass(frozen=True, eq=False)
class TableFile:
    """A file whose columns are known.

    Attributes
    ----------
    path : Path
        The file.
    types : dict of str to pyarrow type
        Its columns, in order.
    kind : str
        "CSV", "Parquet" or "Excel".
    csv : CsvFormat or None
        How to read the text of a CSV file.
    head : pyarrow table or None
        The first block of a CSV file, with the types that its text suggests; all rows of an Excel file.
    n_rows : int or None
        Its number of rows, where it says so.
    notes : tuple of str
        What was guessed about it.
    """

    path: Path
    types: dict[str, Any]
    kind: str
    csv: CsvFormat | None
    head: Any
    n_rows: int | None
    notes: tuple[str, ...] = ()

    def damaged(self, error: Exception, after_row: int | None = None) -> DataFileError:
        """Return a one-line error from pyarrow's."""
        found = _UNCONVERTED.search(" ".join(str(error).split())) if self.kind == "CSV" else None
        if found is not None:
            name, after = list(self.types)[int(found[1])], f" after row {after_row}" if after_row else ""
            return DataFileError(
                f"column {name!r} of {self.path.name} must hold numbers or truth values; "
                f"got {found[2][:40]!r}{after}: correct the file"
            )
        return _damaged(self.path, self.kind, error, after_row)


def open_table(path: str | Path, *, delimiter: str | None = None, encoding: str | None = None) -> TableFile:
    """Open a CSV, Parquet or Excel file; which of them it is, its first bytes say.

    Parameters
    ----------
    path : str or Path
        The file; a CSV file may be compressed (gzip, bz2, zstd).
    delimiter : str, optional
        What separates the columns of a CSV file; None: what its first lines look like.
    encoding : str, optional
        Of a CSV file; None: UTF-8 or UTF-16 where it is that, else Windows-1252 or Latin-1.

    Raises
    ------
    DataFileError
        For a file that cannot be opened or parsed, and for one with a column name twice.
    """
    file = Path(path)
    if delimiter is not None and len(delimiter) != 1:
        raise DataFileError(f"delimiter must be one character; got {delimiter!r}")
    try:
        with file.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise DataFileError(
            f"{str(file)!r} must be a CSV, Parquet or Excel file; it cannot be opened: {error.strerror}"
        ) from None
    if magic == _PARQUET_MAGIC:
        return _open_parquet(file)
    if not magic:
        raise DataFileError(f"{file.name} must be a readable CSV file with a header; it is empty")
    if magic == _ARCHIVE_MAGIC:
        return _open_excel(file)
    if magic in _OTHERS:
        raise DataFileError(f"{file.name} must be a CSV, Parquet or Excel file; it is {_OTHERS[magic]}")
    return _open_csv(file, delimiter, encoding, magic)


def _open_parquet(file: Path) -> TableFile:
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    parquet = require("pyarrow.parquet", extra="cli", purpose=_PURPOSE)
    try:
        with parquet.ParquetFile(file) as source:
            schema, n_rows = source.schema_arrow, source.metadata.num_rows
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise _damaged(file, "Parquet", error) from None
    return TableFile(file, _types(schema, file), "Parquet", None, None, n_rows)


def _open_excel(file: Path) -> TableFile:
    """Read the first sheet of an Excel file: a header, then one row per person."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    try:
        with zipfile.ZipFile(file) as archive:
            is_excel = "xl/workbook.xml" in archive.namelist()
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise _damaged(file, "Excel", error) from None
    if not is_excel:
        raise DataFileError(f"{file.name} must be a CSV, Parquet or Excel file; it is a zip archive: unpack it")
    if unpacked > max(_UNPACKED, _RATIO * file.stat().st_size):
        raise DataFileError(f"{file.name} must be a readable Excel file; it would unpack to {unpacked:,} bytes")
    openpyxl = require("openpyxl", extra="excel", purpose="Reading an Excel file")
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        # Sheets end with rows that were written once and emptied since.
        rows = [row for row in book.worksheets[0].iter_rows(values_only=True) if any(one is not None for one in row)]
        sheets = list(book.sheetnames)
        book.close()
        header = ["" if name is None else str(name) for name in rows[0]] if rows else []
        columns = [_cells_as_column(values) for values in zip(*rows[1:], strict=True)] or [[] for _ in header]
        table = arrow.Table.from_arrays([arrow.array(values) for values in columns], names=header)
    except Exception as error:  # of a damaged sheet openpyxl raises whatever its parsers and constructors do
        raise _damaged(file, "Excel", error) from None
    if not rows:
        raise DataFileError(f"{file.name} must be a readable Excel file with a header; its first sheet is empty")
    notes = () if len(sheets) == 1 else (f"Of {file.name} the first sheet was read, {sheets[0]!r}.",)
    return TableFile(file, _types(table.schema, file), "Excel", None, table, table.num_rows, notes)


def _cells_as_column(values: Sequence[Any]) -> list[Any]:
    """Return the cells of a sheet's column as values of one type: numbers, truth values, or else text."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known):
        return list(values)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        whole = all(isinstance(value, int) for value in known)
        return list(values) if whole else [None if value is None else float(value) for value in values]
    return [None if value is None else str(value) for value in values]


def _open_csv(file: Path, delimiter: str | None, encoding: str | None, magic: bytes) -> TableFile:
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    compression = next((name for first, name in _COMPRESSED.items() if magic.startswith(first)), None)
    try:
        found, notes = _guessed(file, delimiter, encoding, compression)
    except DataFileError:
        raise
    except (OSError, EOFError) as error:
        raise _damaged(file, "CSV", error) from None
    try:
        rows = _first_rows(file, found)
    except (arrow.ArrowException, OSError, EOFError, UnicodeError) as error:
        raise _damaged(file, "CSV", error) from None
    return TableFile(file, _types(rows.schema, file), "CSV", found, rows, None, notes)


def _first_rows(file: Path, found: CsvFormat) -> Any:
    """Return the first block of a CSV file as a pyarrow table."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    csv = require("pyarrow.csv", extra="cli", purpose=_PURPOSE)
    for block in (_HEAD, BLOCK):
        reading, parsing = found.options(csv, block)
        reading.use_threads = False  # they would parse further blocks, which nobody asks for
        try:
            with (
                open_stream(file, found) as (stream, _),
                csv.open_csv(stream, reading, parsing, found.converting(csv)) as source,
            ):
                head = next(iter(source), None)
                return arrow.Table.from_batches([] if head is None else [head], source.schema)
        except arrow.ArrowInvalid as error:
            if block == BLOCK or "straddling" not in str(error):
                raise
    return None


def distinct_texts(table: TableFile, name: str) -> list[str]:
    """Return the different texts of a column: of a CSV file, those of its first block."""
    column = table.head.column(name) if table.head is not None else None
    if column is None:
        parquet = require("pyarrow.parquet", extra="cli", purpose=_PURPOSE)
        with parquet.ParquetFile(table.path) as source:
            column = source.read([name]).column(name)
    return [str(value) for value in column.unique().to_pylist() if value is not None]


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
        Rows at a time; None: as they come.
    verbatim : bool
        Whether words such as NA stay what they are in a CSV file's columns of text.
    """
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    csv = require("pyarrow.csv", extra="cli", purpose=_PURPOSE)
    parquet = require("pyarrow.parquet", extra="cli", purpose=_PURPOSE)
    try:
        if table.kind == "Excel":
            yield from (table.head.slice(start, chunk_rows) for start in range(0, len(table.head), chunk_rows or 2**16))
            return
        if table.csv is None:
            with parquet.ParquetFile(table.path) as source:
                for batch in source.iter_batches(batch_size=chunk_rows or 2**16):
                    yield arrow.Table.from_batches([batch])
            return
        # A column of whole numbers at the top of the file may have fractions further down.
        whole = [name for name, one in table.types.items() if arrow.types.is_integer(one)]
        types = table.types | dict.fromkeys(whole, arrow.float64()) | dict.fromkeys(text, arrow.string())
        converting = table.csv.converting(csv, verbatim=verbatim, column_types=types)
        with (
            open_stream(table.path, table.csv) as (stream, _),
            csv.open_csv(stream, *table.csv.options(csv), converting) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, chunk_rows or max(batch.num_rows, 1)):
                    yield arrow.Table.from_batches([batch.slice(start, chunk_rows)])
    except (arrow.ArrowException, OSError, EOFError, UnicodeError) as error:
        raise table.damaged(error) from None


def read_table(table: TableFile, *, text: Sequence[str] = ()) -> Any:
    """Return all rows and columns of a file as one pyarrow table."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    return arrow.concat_tables(list(read_batches(table, text=text)))


@contextmanager
def open_stream(file: Path, format: CsvFormat) -> Iterator[tuple[Any, Any]]:
    """Open the bytes of a CSV file; give the stream to read, and the file, whose position shows the progress."""
    arrow = require("pyarrow", extra="cli", purpose=_PURPOSE)
    with file.open("rb") as raw:
        if format.compression is None:
            yield raw, raw
            return
        with arrow.input_stream(raw, compression=format.compression) as stream:
            yield stream, raw


def _guessed(
    file: Path, delimiter: str | None, encoding: str | None, compression: str | None
) -> tuple[CsvFormat, tuple[str, ...]]:
    """Return how to read the text of a CSV file, and what of it was guessed."""
    notes = []
    with open_stream(file, CsvFormat(compression=compression)) as (stream, _):
        sample = stream.read(_ENCODING_SAMPLE)
    if encoding is None:
        encoding = _encoding(sample)
        if encoding != "utf8":
            notes.append(f"{file.name} is not UTF-8 text; it was read as {encoding}.")
    try:
        str(memoryview(b"    "), encoding, "replace")
    except (LookupError, UnicodeError, AttributeError):  # not text, or not made for parts of a file
        raise DataFileError(f"encoding must be one of text that Python knows; got {encoding!r}: try latin1") from None
    lines = sample[:_FORMAT_SAMPLE].decode(encoding, errors="replace").lstrip("\ufeff").splitlines()[:_SAMPLE_LINES]
    header = lines[0] if lines else ""
    if delimiter is None:
        delimiter = _delimiter(header)
        if delimiter != ",":
            notes.append(f"The columns of {file.name} are separated by {_DELIMITERS[delimiter]}.")
    elif delimiter not in header and (found := _delimiter(header)) in header:
        raise DataFileError(
            f"{file.name} looks separated by {_DELIMITERS[found]}, not by {delimiter!r}: pass {found!r} or none"
        )
    decimal_point = _decimal_point(lines[1:], delimiter)
    if decimal_point != ".":
        notes.append(f"Numbers in {file.name} have a decimal comma.")
    return CsvFormat(delimiter, encoding, decimal_point, compression), tuple(notes)


def _encoding(sample: bytes) -> str:
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf32"
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf16"
    first = sample[:_UTF16_SAMPLE]
    if first.count(0) > len(first) // 4:  # half of the bytes of plain text in UTF-16 without a mark
        return "utf-16-be" if first[::2].count(0) > first[1::2].count(0) else "utf-16-le"
    try:
        # Not final: the sample may end inside a character.
        codecs.getincrementaldecoder("utf8")().decode(sample, final=False)
    except UnicodeDecodeError:
        # Where Latin-1 has control characters, Windows has the euro sign, dashes and quotation marks.
        return "cp1252" if _WINDOWS_ONLY.search(sample) and not _NOT_WINDOWS.search(sample) else "latin1"
    return "utf8"


def _delimiter(header: str) -> str:
    """Return the character that separates most columns of a header, the comma if there is none.

    Examples
    --------
    >>> _delimiter('y;sex;"a,b,c,d"')
    ';'
    """
    unquoted = re.sub(r'"[^"]*"', "", header)
    return max(_DELIMITERS, key=lambda one: (unquoted.count(one), one == ","))


def _decimal_point(lines: list[str], delimiter: str) -> str:
    """Return the comma if more columns of these lines have numbers with one than with a point.

    Examples
    --------
    >>> _decimal_point(["0,7;0,9;10.1", "1;0,8;11.2"], ";")
    ','
    """
    if delimiter == ",":
        return "."
    columns = list(zip_longest(*(line.split(delimiter) for line in lines), fillvalue=""))
    with_comma, with_point = (
        sum(any(one.fullmatch(cell.strip(' "')) for cell in column) for column in columns)
        for one in (_WITH_COMMA, _WITH_POINT)
    )
    return "," if with_comma > with_point else "."


def _types(schema: Any, file: Path) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for name, dtype in zip(schema.names, schema.types, strict=True):
        if name in types:
            advice = (
                "rename one of them" if name else "columns without a name are often trailing separators: delete them"
            )
            raise DataFileError(f"{file.name} must have distinct column names; got {name!r} twice: {advice}")
        types[name] = dtype
    return types


def _damaged(file: Path, kind: str, error: Exception, after_row: int | None = None) -> DataFileError:
    """Return a one-line error from pyarrow's, which may quote the file at length."""
    reason = " ".join(str(error).split()) or type(error).__name__
    uneven = _UNEVEN.search(reason) if kind == "CSV" else None
    if uneven is not None:
        row, columns, got = (int(number) for number in uneven.groups())
        advice = (
            "delete lines above the header, or name the --delimiter"
            if columns == 1 or row == 2
            else "correct it, and put text that holds the delimiter into quotes"
        )
        reason = f"row {row - 1} has {got} cell{'' if got == 1 else 's'} and the header {columns}: {advice}"
    elif "Empty CSV file" in reason:
        reason = "it has no header with columns"
    reason = reason if len(reason) <= 200 else reason[:199] + "…"
    after = "" if not after_row else f" after row {after_row}"
    return DataFileError(f"{file.name} must be a readable {kind} file; it is not{after}: {reason}")
