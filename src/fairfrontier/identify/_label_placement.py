"""Put text into a picture where it covers nothing: names next to points, a legend in the emptiest corner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fairfrontier._validation import FloatArray

_LONGEST_NAME = 28
# Corners of the axes as (x, y) of a legend's box, in the order in which they are preferred.
_CORNERS = {"lower left": (0.0, 0.0), "upper right": (1.0, 1.0), "lower right": (1.0, 0.0), "upper left": (0.0, 1.0)}


@dataclass(frozen=True)
class Name:
    """A name to be written next to the point (`x`, `y`)."""

    text: str
    x: float
    y: float
    color: str


def plain(text: str, longest: int = 60) -> str:
    """Return text that matplotlib shows as it is: dollar signs do not start a formula, and long names are cut.

    Examples
    --------
    >>> print(plain("cost in $", longest=8))
    cost in…
    """
    text = " ".join(text.split())
    text = text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
    # Matplotlib leaves labels that begin with an underscore out of a legend.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def write_names(ax: Any, names: Sequence[Name], curves: Sequence[FloatArray]) -> None:
    """Write each name near its point, where no other name, point or curve is; names without room are left out.

    Parameters
    ----------
    ax : matplotlib axes
        Axes with their final limits.
    names : sequence of Name
        The names, the most important first.
    curves : sequence of ndarray of shape (q, 2)
        Corners of the curves that names should not cover.
    """
    ax.figure.canvas.figure.draw_without_rendering()  # the size of the axes is known only after the layout
    frame = ax.get_window_extent()
    taken = [np.array(legend.get_window_extent().extents)] if (legend := ax.get_legend()) else []
    ink = [ax.transData.transform(dense(curve)) for curve in curves]
    ink.append(ax.transData.transform([(name.x, name.y) for name in names]).reshape(-1, 2))
    obstacles, scale = np.concatenate(ink), ax.figure.dpi / 72.0
    for name in names:
        text = ax.annotate(
            plain(name.text, _LONGEST_NAME),
            (name.x, name.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=8,
            color=name.color,
            zorder=5,
        )
        box = text.get_window_extent()
        for dx, dy in _offsets(box.width / scale, box.height / scale):
            moved = np.array([box.x0 + dx * scale, box.y0 + dy * scale, box.x1 + dx * scale, box.y1 + dy * scale])
            if _inside(moved, frame) and not _covers(moved, taken, obstacles):
                text.set_position((dx, dy))
                taken.append(moved)
                break
        else:
            text.remove()


def _offsets(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Yield offsets, in points, of a text's lower left corner from its point: near ones first."""
    for distance in (5.0, 11.0, 18.0):
        near = distance * 0.7
        yield near, near
        yield -near - width, -near - height
        yield near, -near - height
        yield -near - width, near
        yield distance, -height / 2
        yield -distance - width, -height / 2
        yield -width / 2, distance
        yield -width / 2, -distance - height


def _inside(box: FloatArray, frame: Any) -> bool:
    return bool(box[0] >= frame.x0 and box[1] >= frame.y0 and box[2] <= frame.x1 and box[3] <= frame.y1)


def _covers(box: FloatArray, taken: Sequence[FloatArray], obstacles: FloatArray) -> bool:
    overlaps = any(b[0] < box[2] and box[0] < b[2] and b[1] < box[3] and box[1] < b[3] for b in taken)
    return overlaps or bool(np.any(np.all((obstacles >= box[:2]) & (obstacles <= box[2:]), axis=1)))


def dense(curve: FloatArray) -> FloatArray:
    """Return the curve with further points in between, so that texts avoid its lines and not only its corners."""
    share = np.linspace(0.0, 1.0, 40)[:, None]
    return np.concatenate([curve, *(a + share * (b - a) for a, b in pairwise(curve))])


def emptiest_corner(ax: Any, points: Sequence[FloatArray], width: float, height: float) -> str:
    """Return the corner of the axes in which a box of that size (shares of the axes) covers the fewest points.

    Parameters
    ----------
    ax : matplotlib axes
        Axes with their final limits.
    points : sequence of ndarray of shape (n, 2)
        Points that the box should not cover; the last array counts more than all others.
    width, height : float
        Size of the box as shares of the axes.
    """
    to_axes = (ax.transData + ax.transAxes.inverted()).transform
    counts = {}
    for corner, (x, y) in _CORNERS.items():
        low = np.array([x * (1 - width), y * (1 - height)])
        high = low + np.array([width, height])
        shares = [
            float(np.mean(np.all((p >= low) & (p <= high), axis=1)))
            for p in (to_axes(group) for group in points)
            if len(p)
        ]
        counts[corner] = sum(shares[:-1]) + 100.0 * shares[-1]
    return min(counts, key=lambda corner: counts[corner])
