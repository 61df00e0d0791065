"""Read the data files that ship with the package, and notice when one is damaged.

A file ``<name>.npz`` is a zip archive of ``schema.json`` (the columns in order, each with a name and a kind)
and one integer array per column, ``000.npy``, ``001.npy`` and so on. The kinds are ``integer`` (as it is),
``category`` (positions in a list of names) and ``hundredths`` (0..100 for 0.00..1.00, one value standing for a
missing number).
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier.exceptions import DataFileError

REBUILD = "python tools/build_datasets.py"
CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        int64 or float64 numbers; for a categorical column, int64 positions in `categories`.
    categories : tuple of str or None
        The names of the categories; None for a column of numbers.
    """

    values: NDArray[Any]
    categories: tuple[str, ...] | None = None

    def rows(self, keep: NDArray[np.bool_]) -> "Column":
        """Return the column at the rows to keep, without categories that no longer occur."""
        values = self.values[keep]
        if self.categories is None:
            return Column(values)
        used, codes = np.unique(values, return_inverse=True)
        return Column(codes.astype(np.int64), tuple(self.categories[i] for i in used))

    def equals(self, label: str) -> NDArray[np.bool_]:
        """Return where a categorical column has the category `label`."""
        flags: NDArray[np.bool_] = self.labels() == label
        return flags

    def labels(self) -> NDArray[Any]:
        """Return the names of the categories row by row, or the numbers of a numeric column."""
        if self.categories is None:
            return self.values
        labels: NDArray[Any] = np.asarray(self.categories)[self.values]
        return labels


Table = dict[str, Column]


def binary_column(flag: NDArray[np.bool_], no: str, yes: str) -> Column:
    """Return a categorical column with the category `no` where the flag is False and `yes` where it is True."""
    return Column(flag.astype(np.int64), (no, yes))


def read_table(name: str) -> Table:
    """Return the columns of the data set `name`, in order, after checking the file's sha256.

    Raises
    ------
    DataFileError
        If the file or its checksum is absent, or the file is not the one that was shipped.
    """
    filename = f"{name}.npz"
    content = _read_bytes(filename)
    expected = _expected_sha256(filename)
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise DataFileError(
            f"the data file {filename!r} of fairfrontier is damaged: its sha256 is {found}, "
            f"it must be {expected}. {_advice()}"
        )
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read("schema.json"))
        return {entry["name"]: _column(entry, archive.read(f"{i:03d}.npy")) for i, entry in enumerate(schema)}


def _column(entry: Mapping[str, Any], content: bytes) -> Column:
    stored = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if entry["kind"] == "category":
        return Column(stored.astype(np.int64), tuple(entry["categories"]))
    if entry["kind"] == "hundredths":
        return Column(np.where(stored == entry["missing"], np.nan, stored / 100))
    return Column(stored.astype(np.int64))


def _expected_sha256(filename: str) -> str:
    lines = _read_bytes(CHECKSUMS).decode("ascii", errors="replace").splitlines()
    sums = {line[66:]: line[:64] for line in lines}
    if filename not in sums:
        raise DataFileError(f"the file {CHECKSUMS!r} of fairfrontier has no line for {filename!r}. {_advice()}")
    return sums[filename]


def _read_bytes(filename: str) -> bytes:
    try:
        return resources.files("fairfrontier.datasets").joinpath("data", filename).read_bytes()
    except OSError as error:
        raise DataFileError(f"cannot read the data file {filename!r} of fairfrontier: {error}. {_advice()}") from error


def _advice() -> str:
    return f"Rebuild it in a copy of the repository with `{REBUILD}`, or reinstall the package."
