"""One record per cell, written to disk as soon as the cell is done."""

import contextlib
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fairfrontier._writing import write_atomically
from fairfrontier.exceptions import DataFileError

# Tracks: what the features of the models hold of the attribute. A method that is given the attribute at prediction is
# "aware" on either.
IN_X, BLIND = "in-x", "blind"
TRACKS = {IN_X: "attribute in X", BLIND: "blind"}
DONE, FAILED, NOT_APPLICABLE = "done", "failed", "not applicable"
# What reading raises where a file holds no record: no UTF-8, no JSON, other fields, no fields.
_NO_RECORD = (ValueError, TypeError, AttributeError)


@dataclass(frozen=True, order=True)
class Cell:
    """One method on one task and one split, in one table.

    Attributes
    ----------
    table : str
        "dp", "eo" or "multi".
    task, method : str
        Names of the task and the method.
    split : int
        Number of the split, from 0.
    track : str
        "in-x": the features contain the attribute, as in the paper; "blind": its columns are removed.
    """

    table: str
    task: str
    method: str
    split: int
    track: str = IN_X

    @property
    def path(self) -> str:
        """Return the cell's file, relative to the folder of a run."""
        folder = "" if self.track == IN_X else f"{self.track}/"
        return f"{folder}{self.table}/{self.task}/split_{self.split:02d}/{self.method}.json"


@dataclass(frozen=True)
class Record:
    """The result of a cell.

    Attributes
    ----------
    table, task, method, split
        The cell.
    settings : str
        Name of the settings of the run.
    status : str
        "done", "failed" or "not applicable".
    reason : str
        Why it is not "done".
    fauc, fauci, fauc_signed : float or None
        Area under TAF, under TAFI and under the signed hull, on the test rows.
    fauc_honest : float or None
        FAUC of the frontier that is chosen on the ensemble rows and evaluated on the test rows.
    fauc_single : float or None
        For candidates that randomise: FAUC if each were its more probable stack alone.
    fauc_exp_mse : float or None
        Regression: FAUC with e to the −MSE as accuracy.
    max_accuracy, accuracy_95, accuracy_99 : float or None
        The largest accuracy, and those at fairness 0.95 and 0.99 on the test rows.
    constant_accuracy : float or None
        Accuracy of the constant model on the test rows.
    points, chosen : dict of str to list
        Fairness, accuracy and signed bias of the candidates on the test and on the ensemble rows, the constant model
        last. Records of version 0.1 have six digits, later ones all digits.
    seconds : float
        CPU seconds of the cell, without training base learners.
    training : dict of str to float
        CPU seconds of each family of base learners that it uses; families are shared by cells.
    details, versions : dict
        Facts about the fit, and versions of the software.
    track : str
        "in-x" or "blind"; records of version 0.1 are "in-x".
    delivered : dict of str to list
        The largest absolute bias and the accuracy on the test rows at each asked level (`Delivery`). Records of version
        0.1 have none; it follows from their points.
    """

    table: str
    task: str
    method: str
    split: int
    settings: str
    status: str
    reason: str = ""
    fauc: float | None = None
    fauci: float | None = None
    fauc_signed: float | None = None
    fauc_honest: float | None = None
    fauc_single: float | None = None
    fauc_exp_mse: float | None = None
    max_accuracy: float | None = None
    accuracy_95: float | None = None
    accuracy_99: float | None = None
    constant_accuracy: float | None = None
    points: dict[str, list[float]] = field(default_factory=dict)
    chosen: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    training: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    track: str = IN_X
    delivered: dict[str, list[float]] = field(default_factory=dict)

    @property
    def cell(self) -> Cell:
        """Return the cell that the record is about."""
        return Cell(self.table, self.task, self.method, self.split, self.track)

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Return the record of one line of JSON; fields that this version does not know are dropped."""
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in json.loads(text).items() if key in known})


class RecordStore:
    """The records of a run: one file per cell, and one compressed file with all of them.

    Parameters
    ----------
    cells : Path
        Folder of the cells' files, each written as soon as the cell is done.
    collection : Path
        The file ``records.jsonl.gz`` with all of them. A cell in it is not run again.
    settings : str
        Records of other settings are neither read nor changed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = RecordStore(folder / "cells", folder / "records.jsonl.gz", "tiny")
    >>> store.add(Record("dp", "compas-race", "fagtb", 0, "tiny", "done", fauc=0.6))
    >>> store.collect()
    >>> [record.fauc for record in RecordStore(folder / "empty", folder / "records.jsonl.gz", "tiny").load().values()]
    [0.6]
    """

    def __init__(self, cells: Path, collection: Path, settings: str) -> None:
        self._cells = cells / settings
        self.collection = collection
        self._settings = settings

    def add(self, record: Record) -> None:
        """Keep a record; it replaces an earlier one of the same cell."""
        write_atomically(self._cells / record.cell.path, (record.to_json() + "\n").encode())

    def get(self, cell: Cell) -> Record:
        """Return the record in the cell's own file."""
        return Record.from_json((self._cells / cell.path).read_text(encoding="utf-8"))

    def stamp(self, cell: Cell) -> int:
        """Return when the cell's own file was written; 0: never."""
        path = self._cells / cell.path
        return path.stat().st_mtime_ns if path.exists() else 0

    def load(self) -> dict[Cell, Record]:
        """Return all records. The file of a cell is newer than the collection; a damaged one is ignored."""
        found = {record.cell: record for record in self._collected() if record.settings == self._settings}
        if self._cells.is_dir():
            for path in sorted(self._cells.rglob("*.json")):
                with contextlib.suppress(*_NO_RECORD):
                    record = Record.from_json(path.read_text(encoding="utf-8"))
                    found[record.cell] = record
        return dict(sorted(found.items()))

    def others(self) -> list[str]:
        """Return the names of the other settings that the collection has records of."""
        return sorted({record.settings for record in self._collected()} - {self._settings})

    def collect(self) -> None:
        """Write the collection: the same records give the same bytes."""
        others = [record for record in self._collected() if record.settings != self._settings]
        write_collection(self.collection, [*others, *self.load().values()])

    def _collected(self) -> Iterator[Record]:
        return read_collection(self.collection) if self.collection.is_file() else iter(())


def write_collection(path: Path, records: Iterable[Record]) -> None:
    """Write records as compressed JSON lines, without a time stamp."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0, filename="") as file:
        for record in records:
            file.write((record.to_json() + "\n").encode())
    write_atomically(path, buffer.getvalue())


def read_collection(path: Path) -> Iterator[Record]:
    """Yield the records of a collection.

    Raises
    ------
    DataFileError
        If the file is damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from [Record.from_json(line) for line in file]
    except (gzip.BadGzipFile, EOFError, zlib.error, *_NO_RECORD) as error:
        raise DataFileError(
            f"{path.name} must be a collection of records; it is damaged ({error}): remove it, and reproduce writes it "
            "again from the cells"
        ) from error
