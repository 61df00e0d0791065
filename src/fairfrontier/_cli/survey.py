"""A first look at a file that is read in chunks: its labels, groups, and the range of every column of scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.read import SLACK
from fairfrontier._columns import factorize_objects
from fairfrontier._validation import FloatArray
from fairfrontier.chunks import Chunk
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._keyed import KeyedCells, KeyedSums

_COMPLETE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Survey:
    """What a file holds; the surveys of two parts can be added.

    Attributes
    ----------
    cells : KeyedSums
        The combinations of label and groups.
    low, high : ndarray of shape (k,)
        The smallest and the largest finite value of each column of scores.
    missing : ndarray of shape (k,)
        The first row in which a column has no finite value; very large: there is none.
    """

    cells: KeyedSums
    low: FloatArray
    high: FloatArray
    missing: NDArray[np.int64]

    def __add__(self, other: "Survey") -> "Survey":
        """Return the survey of both parts together."""
        return Survey(
            self.cells + other.cells,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.minimum(self.missing, other.missing),
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.cells.rows.sum())

    def labels(self) -> list[Any]:
        """Return the values of the label, sorted."""
        return _sorted([key[0] for key in self.cells.keys])

    def groups(self) -> dict[str, list[Any]]:
        """Return the groups of each attribute, sorted."""
        return {name: _sorted(values) for name, values in self.cells.groups().items()}

    def scores(self, names: tuple[str, ...], *, unit: bool, named: bool, source: str) -> NDArray[np.intp]:
        """Return which columns are scores, and refuse those that were named and are not.

        Parameters
        ----------
        names : tuple of str
            The columns.
        unit : bool
            Whether scores must be in [0, 1].
        named : bool
            Whether the columns were named; others may be something else, such as ages.
        source : str
            The file's name.
        """
        inside = (self.low >= -SLACK) & (self.high <= 1 + SLACK)
        keep = np.flatnonzero(inside) if unit and not named else np.arange(len(names))
        if len(keep) == 0:
            raise InvalidInputError(f"no numeric column of {source} lies in [0, 1]: name the scores with --scores")
        for i in keep:
            if self.missing[i] < _COMPLETE:
                raise InvalidInputError(
                    f"scores {names[i]!r} must have no missing or infinite value; row {self.missing[i] + 1} has one: "
                    "drop these rows, or leave this model out with --scores"
                )
            if unit and not inside[i]:
                raise InvalidInputError(
                    f"scores {names[i]!r} must be in [0, 1]; got {self.low[i]:g} to {self.high[i]:g}: turn them into "
                    "probabilities first"
                )
        return keep


def _sorted(values: list[Any]) -> list[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return factorize_objects(column, parameter="column")[0]


@dataclass(frozen=True)
class Surveyor:
    """The function from a chunk to its survey."""

    regression: bool

    def __call__(self, chunk: Chunk) -> Survey:
        cells = KeyedCells.from_chunk(chunk, regression=self.regression)
        finite = np.isfinite(chunk.scores)
        known = np.where(finite, chunk.scores, np.nan)
        missing = np.where(finite.all(axis=0), _COMPLETE, chunk.row[np.argmin(finite, axis=0)])
        return Survey(
            cells.sums(chunk, np.zeros((len(chunk), 1)), threshold=None),
            np.fmin.reduce(known, axis=0, initial=np.inf),
            np.fmax.reduce(known, axis=0, initial=-np.inf),
            missing,
        )
