"""Read a table from the package's archive, and turn it into the `Bunch` that every loader returns."""

import hashlib
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairfrontier._extras import require
from fairfrontier.exceptions import DataFileError, InvalidInputError

AsFrame = bool | Literal["auto"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table."""

    # (n_rows,): int64 or float64 numbers; for a categorical column, int64 positions in `categories`
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None  # the names of the categories; None for a column of numbers

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


def deliver(
    *,
    name: str,
    features: Table,
    target_name: str,
    target: Column,
    target_names: tuple[str, ...],
    attributes: Table,
    sources: dict[str, tuple[str, ...]],
    paper_encoding: str,
    return_X_y: bool,
    as_frame: AsFrame,
    extra: Mapping[str, Table] | None = None,
) -> Any:
    """Return a data set as a Bunch, or as (data, target).

    The target is 0/1 integers with the meanings `target_names`, or floats without any; `attributes` are the sensitive
    features, the paper's binary ones first, and `sources` the features that hold each of these; `paper_encoding` is the
    `encoding` of `design_matrix` that follows the paper, and `extra` are further tables of the Bunch.
    """
    framed = _wants_frame(as_frame)
    convert: Callable[[Table], Any] = _to_frame if framed else _to_dict
    data = convert(features) if framed else _to_matrix(features)
    y: Any = target.values.copy()
    if framed:
        y = _pandas().Series(y, name=target_name)
    if return_X_y:
        return data, y
    return Bunch(
        data=data,
        target=y,
        sensitive_features=convert(attributes),
        frame=data.assign(**{target_name: y}) if framed else None,
        DESCR=_read_bytes(f"{name}.txt", folder="descr").decode("utf-8"),
        name=name,
        feature_names=list(features),
        target_name=target_name,
        target_names=list(target_names),
        categories={k: list(c.categories) for k, c in features.items() if c.categories is not None},
        sensitive_sources=dict(sources),
        paper_encoding=paper_encoding,
        **{key: convert(table) for key, table in (extra or {}).items()},
    )


def _wants_frame(as_frame: AsFrame) -> bool:
    if as_frame == "auto":
        return importlib.util.find_spec("pandas") is not None
    if isinstance(as_frame, bool):
        return as_frame
    raise InvalidInputError(f"as_frame must be True, False or 'auto', got {as_frame!r}")


def _pandas() -> Any:
    return require("pandas", extra="pandas", purpose="Loading a data set with as_frame=True")


def _to_frame(table: Table) -> Any:
    pandas = _pandas()
    return pandas.DataFrame(
        {
            name: column.values
            if column.categories is None
            else pandas.Categorical.from_codes(column.values, categories=list(column.categories))
            for name, column in table.items()
        }
    )


def _to_dict(table: Table) -> dict[str, Any]:
    return {name: column.labels().copy() for name, column in table.items()}


def _to_matrix(table: Table) -> Any:
    return np.column_stack([column.values.astype(np.float64) for column in table.values()])


REBUILD = "python tools/build_datasets.py"
CHECKSUMS = "SHA256SUMS"


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


def _read_bytes(filename: str, folder: str = "data") -> bytes:
    try:
        return resources.files("fairfrontier.datasets").joinpath(folder, filename).read_bytes()
    except OSError as error:
        raise DataFileError(f"cannot read the data file {filename!r} of fairfrontier: {error}. {_advice()}") from error


def _advice() -> str:
    return f"Rebuild it in a copy of the repository with `{REBUILD}`, or reinstall the package."
