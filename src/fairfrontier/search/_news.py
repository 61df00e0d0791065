"""What the rows of a new table have that those of the search had not: categories, and blanks."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfrontier.search._table import CATEGORY, Columns, kind_of, missing_in

# Categories of a column that are remembered; with more than this, new ones are nothing new.
_MOST_SEEN = 10_000


@dataclass(frozen=True, eq=False)
class News:
    """What is new in some rows; that of two parts can be added.

    Attributes
    ----------
    categories : dict of str to (int, str)
        For each column with categories that the search never saw, the rows that have one, and an example.
    blanks : dict of str to int
        For each column in which the search had a value in every row, the rows without one.
    """

    categories: dict[str, tuple[int, str]]
    blanks: dict[str, int]

    def __add__(self, other: "News") -> "News":
        """Return what is new in both parts together."""
        categories = dict(other.categories)
        for name, (rows, example) in self.categories.items():
            categories[name] = rows + other.categories.get(name, (0, ""))[0], example
        names = dict.fromkeys((*self.blanks, *other.blanks))
        return News(categories, {name: self.blanks.get(name, 0) + other.blanks.get(name, 0) for name in names})

    def words(self) -> Iterator[str]:
        """Yield one line for each column that has something new."""
        for name, (rows, example) in self.categories.items():
            yield f"{name}: a category that the search never saw in {_rows(rows)}, such as {example[:40]!r}"
        for name, rows in self.blanks.items():
            yield f"{name}: no value in {_rows(rows)}; in the search every row had one"


def seen_in(columns: Columns) -> dict[str, dict[str, Any]]:
    """Return what a table has, for a model file: per column hashes of its categories, and whether values are missing.

    Hashes, because rare categories may be as telling as names; None where there are too many.
    """
    seen: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        missing = missing_in(values)
        levels: set[str] = set(values[~missing].tolist()) if kind_of(values) == CATEGORY else set()
        hashes = "".join(sorted(map(_hash, levels))) if len(levels) <= _MOST_SEEN else None
        seen[name] = {"hashes": hashes, "missing": bool(missing.any())}
    return seen


def news_of(columns: Columns, kinds: dict[str, str], seen: dict[str, dict[str, Any]]) -> News:
    """Return what is new in a table.

    Parameters
    ----------
    columns : dict of str to ndarray
        Typed columns, of the kinds that they had in the search.
    kinds : dict of str to str
        These kinds.
    seen : dict
        What `seen_in` said of the table of the search.
    """
    categories: dict[str, tuple[int, str]] = {}
    blanks: dict[str, int] = {}
    for name, values in columns.items():
        if name not in seen:
            continue
        missing = missing_in(values)
        if missing.any() and not seen[name]["missing"]:
            blanks[name] = int(missing.sum())
        hashes = seen[name]["hashes"]
        if kinds[name] != CATEGORY or hashes is None or missing.all():
            continue
        known = {hashes[start : start + 8] for start in range(0, len(hashes), 8)}
        found, counts = np.unique(values[~missing].astype(str), return_counts=True)
        new = [i for i, level in enumerate(found.tolist()) if _hash(level) not in known]
        if new:
            categories[name] = int(counts[new].sum()), str(found[new[int(np.argmax(counts[new]))]])
    return News(categories, blanks)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _hash(level: str) -> str:
    return f"{zlib.crc32(level.encode('utf8', 'surrogatepass')):08x}"
