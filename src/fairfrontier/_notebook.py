"""Small pieces of HTML for notebooks: a curve as a drawing, models as a table.

They know arrays and names only, so that every layer may use them. All text is escaped; colours follow the notebook's.
"""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from fairfrontier._validation import FloatArray, IntArray

_WIDTH, _HEIGHT, _MARGIN = 320.0, 180.0, 34.0
_ROWS = 8
_NAME = 60
_BLUE, _ORANGE = "#0072B2", "#D55E00"


def points_html(names: Sequence[str], fairness: FloatArray, accuracy: FloatArray, support: IntArray) -> str:
    """Return models as a drawing of their frontier beside a table of the Pareto-optimal ones.

    Examples
    --------
    >>> import numpy as np
    >>> html = points_html(["<b>"], np.array([0.9]), np.array([0.8]), np.array([0]))
    >>> "&lt;b&gt;" in html, "<b>" in html
    (True, False)
    """
    shown = _spread(len(support))
    rows = [(names[i], _level(fairness[i]), f"{accuracy[i]:.3f}") for i in support[shown]]
    table = _table(("model", "fairness", "accuracy"), rows)
    title = f"TradeoffPoints: {_count(len(names), 'model')}, {len(support)} Pareto-optimal"
    if len(shown) < len(support):
        title += f" ({len(shown)} shown)"
    drawing = _drawing(fairness[support], accuracy[support], linear=False, dots=(fairness, accuracy))
    return _box(title, drawing, table)


def curve_html(fairness: FloatArray, accuracy: FloatArray, *, linear: bool) -> str:
    """Return a TAF curve as a drawing beside a table of its knots.

    Examples
    --------
    >>> import numpy as np
    >>> "<svg" in curve_html(np.array([0.8, 1.0]), np.array([0.9, 0.6]), linear=True)
    True
    """
    shown = _spread(len(fairness))
    rows = [(_level(fairness[i]), f"{accuracy[i]:.3f}") for i in shown]
    kind = "linear (mixtures)" if linear else "steps"
    title = f"TAFCurve: {_count(len(fairness), 'knot')}, {kind}"
    return _box(title, _drawing(fairness, accuracy, linear=linear), _table(("fairness at least", "accuracy"), rows))


def stack_html(
    title: str,
    names: Sequence[str],
    weights: FloatArray,
    fairness: FloatArray,
    accuracy: FloatArray,
    support: IntArray,
    *,
    chosen: tuple[float, float] | None = None,
) -> str:
    """Return a fitted stack as a drawing of its path and operating point beside a table of its largest weights.

    Examples
    --------
    >>> import numpy as np
    >>> one, two = np.array([0.9]), np.array([0.7, -0.2])
    >>> "-0.200" in stack_html("FairStacks", ["a", "b"], two, one, one, np.array([0]), chosen=(0.9, 0.9))
    True
    """
    largest = np.argsort(-np.abs(weights), kind="stable")[:_ROWS]
    rows = [(names[i], f"{weights[i]:+.3f}") for i in largest]
    if len(largest) < len(names):
        rows.append((f"and {len(names) - len(largest):,} more", ""))
    dots = (fairness, accuracy)
    drawing = _drawing(fairness[support], accuracy[support], linear=False, dots=dots, chosen=chosen)
    if chosen is not None:
        title += f": operates at fairness {_level(chosen[0])}, accuracy {chosen[1]:.3f}"
    return _box(title, drawing, _table(("base model", "weight"), rows))


def _spread(count: int) -> IntArray:
    """Return at most `_ROWS` positions, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(_ROWS, count)).round().astype(np.intp))


def _level(value: float) -> str:
    # Rounded down, so that a level of fairness is never overstated.
    return f"{np.floor(value * 1000 + 1e-9) / 1000:.3f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        styles = ["text-align:left"] + ["text-align:right"] * (len(cells) - 1)
        parts = (f'<{tag} style="{s}">{escape(_short(c))}</{tag}>' for c, s in zip(cells, styles, strict=True))
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"


def _box(title: str, drawing: str, table: str) -> str:
    return (
        f"<div><p><strong>{escape(title)}</strong></p>"
        f'<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start">{drawing}{table}</div></div>'
    )


def _drawing(
    fairness: FloatArray,
    accuracy: FloatArray,
    *,
    linear: bool,
    dots: tuple[FloatArray, FloatArray] | None = None,
    chosen: tuple[float, float] | None = None,
) -> str:
    """Return the curve as SVG, with models as dots: one path, whatever their number; the chosen one has a ring."""
    shown = [float(fairness[0])] if chosen is None else [float(fairness[0]), chosen[0]]
    low = max(0.0, min(min(shown) - 0.05, 0.95))
    heights = accuracy if chosen is None else np.append(accuracy, chosen[1])
    bottom, top = float(heights.min()), float(heights.max())
    span = max(top - bottom, 0.02)
    bottom, top = bottom - 0.15 * span, top + 0.1 * span

    def x(f: float) -> float:
        return _MARGIN + (f - low) / (1.0 - low) * (_WIDTH - 1.3 * _MARGIN)

    def y(a: float) -> float:
        return (_HEIGHT - _MARGIN / 1.4) - (a - bottom) / (top - bottom) * (_HEIGHT - 1.1 * _MARGIN)

    moves = [f"M{x(low):.1f},{y(accuracy[0]):.1f}"]
    for f, a in zip(fairness, accuracy, strict=True):
        moves.append(f"L{x(f):.1f},{y(a):.1f}" if linear else f"V{y(a):.1f}H{x(f):.1f}")
    inside = [] if dots is None else [(f, a) for f, a in zip(*dots, strict=True) if f >= low and a >= bottom]
    models = "".join(f"M{x(f):.1f},{y(a):.1f}h0" for f, a in inside)
    axis = f"M{x(low):.1f},{y(bottom):.1f}H{x(1.0):.1f}"
    labels = (
        _label(x(low), _HEIGHT - 6, "start", f"fairness {low:.2f}"),
        _label(x(1.0), _HEIGHT - 6, "end", "1"),
        _label(_MARGIN - 4, y(accuracy.max()) + 4, "end", f"{accuracy.max():.2f}"),
        _label(_MARGIN - 4, y(accuracy.min()) + 4, "end", f"{accuracy.min():.2f}"),
    )
    stroke = f'fill="none" stroke="{_BLUE}"'
    ring = ""
    if chosen is not None:
        ring = (
            f'<circle cx="{x(chosen[0]):.1f}" cy="{y(chosen[1]):.1f}" r="6" fill="none" stroke="{_ORANGE}" '
            'stroke-width="3"><title>operating point</title></circle>'
        )
    return (
        f'<svg width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}" role="img" aria-label="accuracy against fairness">'
        f'<path d="{axis}" stroke="currentColor" opacity="0.4"/>'
        f'<path d="{models}" {stroke} stroke-width="5" stroke-linecap="round" opacity="0.35"/>'
        f'<path d="{"".join(moves)}" {stroke} stroke-width="2"/>{ring}{"".join(labels)}</svg>'
    )


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="10" fill="currentColor" opacity="0.7">'
        f"{escape(text)}</text>"
    )
