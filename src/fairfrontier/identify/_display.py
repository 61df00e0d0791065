"""The picture of the trade-off: TAF curves of one or several families on one axis, with names that cover nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from fairfrontier._extras import require
from fairfrontier._scores import classes_of, classifies, named_models, positive_decisions, positive_scores
from fairfrontier._validation import FloatArray, labels, number, one_of
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.identify._points import CONSTANT, TradeoffPoints, tradeoff_points
from fairfrontier.metrics._accuracy import ACCURACY_MEASURES

# Okabe and Ito's colours, which colour-blind people can tell apart; the dashes tell lines apart in black and white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#6A3D9A", "#4D4D4D")
DASHES = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (1.2, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))

# Grey tones of curves with bands, which are drawn behind all others.
GREYS = ("#7A7A7A", "#B0B0B0")


class BandedCurve(Protocol):
    """A curve with a band, such as an `AchievableFrontier`."""

    grid: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray


# What the legend says of each family: a figure by family, or the function of a curve that computes it.
LegendFigures = Mapping[str, float] | Callable[[TAFCurve], float] | None


class TAFDisplay:
    """TAF curves, the models behind them, and how to draw both.

    Make one with `from_predictions`, `from_points`, `from_estimators` or `from_curves`, not directly.

    Parameters
    ----------
    curves : dict of str to TAFCurve
        A curve for each family, in the order of the legend.
    points : dict of str to TradeoffPoints, optional
        The models of each family, which are drawn as dots.
    scores : dict of str to float, or callable, optional
        FAUC of each family, shown in the legend; or a function of a curve that computes it, such as `fauc`.

    Attributes
    ----------
    curves, points, scores : dict
        As given; `scores` with its values.
    ax_, figure_
        The matplotlib axes and figure, after `plot`.

    Examples
    --------
    >>> import fairfrontier as ff
    >>> display = ff.TAFDisplay.from_curves({"forest": ff.taf_curve([0.8, 1.0], [0.9, 0.6])}, scores=ff.fauc)
    >>> display.curves["forest"](0.9)
    0.6
    >>> round(display.scores["forest"], 3)
    0.84
    """

    def __init__(
        self,
        curves: Mapping[str, TAFCurve],
        *,
        points: Mapping[str, TradeoffPoints] | None = None,
        scores: LegendFigures = None,
    ) -> None:
        self.curves = dict(curves)
        self.points = dict(points or {})
        if callable(scores):
            scores = {family: scores(curve) for family, curve in self.curves.items()}
        self.scores = dict(scores or {})

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, TAFCurve],
        *,
        points: Mapping[str, TradeoffPoints] | None = None,
        scores: LegendFigures = None,
    ) -> "TAFDisplay":
        """Make a display from curves by family; the parameters are those of the class."""
        if not isinstance(curves, Mapping) or not curves:
            raise InvalidInputError(f"curves must be a non-empty dict of name to TAFCurve; got {curves!r}")
        for family, curve in curves.items():
            if not isinstance(curve, TAFCurve):
                raise InvalidInputError(
                    f"curves[{family!r}] must be a TAFCurve; got {type(curve).__name__}: make one with taf_curve"
                )
        for parameter, given in (("points", points), ("scores", scores)):
            for family in given if isinstance(given, Mapping) else ():
                one_of(family, curves, parameter=parameter)
        return cls(curves, points=points, scores=scores)

    @classmethod
    def from_points(
        cls,
        points: Mapping[str, TradeoffPoints] | TradeoffPoints,
        *,
        interpolate: bool | Literal["signed"] = False,
        scores: LegendFigures = None,
    ) -> "TAFDisplay":
        """Make a display from the points of one or several families.

        Parameters
        ----------
        points : TradeoffPoints, or dict of str to TradeoffPoints
            The models, by family.
        interpolate : {False, True, "signed"}
            Step curve, concave hull or signed hull.
        scores : dict of str to float, or callable, optional
            A figure for each family that the legend shows, e.g. ``scores=ff.fauc``.
        """
        families = {"models": points} if isinstance(points, TradeoffPoints) else points
        if not isinstance(families, Mapping) or not families:
            raise InvalidInputError(
                f"points must be TradeoffPoints or a non-empty dict of them by family; got {points!r}"
            )
        curves = {name: family.frontier(interpolate) for name, family in families.items()}
        return cls.from_curves(curves, points=families, scores=scores)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_preds: Any,
        *,
        sensitive_features: Any,
        families: Mapping[str, Sequence[str]] | None = None,
        interpolate: bool | Literal["signed"] = False,
        scores: LegendFigures = None,
        **options: Any,
    ) -> "TAFDisplay":
        """Make a display from labels, predictions and sensitive features.

        Parameters
        ----------
        y_true, y_preds, sensitive_features
            As in `tradeoff_points`.
        families : dict of str to list of str, optional
            Names of the models of each family. Without it the part of a name before a slash is its family, and models
            without one are together.
        interpolate : {False, True, "signed"}
            Step curve, concave hull or signed hull.
        scores : dict of str to float, or callable, optional
            A figure for each family that the legend shows, e.g. ``scores=ff.fauc``.
        **options
            Passed to `tradeoff_points`.
        """
        points = tradeoff_points(y_true, y_preds, sensitive_features=sensitive_features, **options)
        return cls.from_points(_split(points, families), interpolate=interpolate, scores=scores)

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[tuple[str, Any]] | Mapping[str, Any],
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        response_method: str = "auto",
        **options: Any,
    ) -> "TAFDisplay":
        """Make a display from fitted estimators.

        Parameters
        ----------
        estimators : list of (name, fitted estimator), or dict of them by name
            Classifiers with the two classes of `y`, or regressors.
        X : array-like of shape (n, p)
            Features.
        y, sensitive_features
            As in `tradeoff_points`.
        response_method : {"auto", "predict_proba", "predict"}
            What gives the scores. "auto" is `predict_proba` where a classifier has it, otherwise the decisions of
            `predict`. "predict" is always the decisions.
        **options
            Passed to `from_predictions`.
        """
        one_of(response_method, ("auto", "predict_proba", "predict"), parameter="response_method")
        models = named_models(estimators, expected="a non-empty list of (name, fitted estimator) pairs, or a dict")
        classes: tuple[Any, Any] | None = None
        accuracy = options.get("accuracy", "accuracy")
        measure = ACCURACY_MEASURES.get(accuracy) if isinstance(accuracy, str) else None
        if measure is None or not measure.regression:
            y, classes = labels(y)
        predicted = {name: _response(name, model, X, classes, response_method) for name, model in models}
        return cls.from_predictions(y, predicted, sensitive_features=sensitive_features, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        show_models: bool = True,
        name_models: bool = False,
        rule_of_80: bool = True,
        min_fairness: float | None = None,
        title: str | None = None,
        achievable: BandedCurve | Mapping[str, BandedCurve] | None = None,
    ) -> "TAFDisplay":
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.
        show_models : bool
            Draw each model as a dot, the Pareto-optimal ones larger.
        name_models : bool
            Write the names of the Pareto-optimal models next to them, where there is room.
        rule_of_80 : bool
            Mark fairness 0.8 with a line.
        min_fairness : float, optional
            Left end of the axis; None fits it to the models.
        title : str, optional
            The title.
        achievable : AchievableFrontier, or dict of str to AchievableFrontier, optional
            What any rule could reach, with its band, drawn in grey behind the curves; `achievable_frontier` makes it.

        Returns
        -------
        TAFDisplay
            Itself, with `ax_` and `figure_`.
        """
        low = self._left_end() if min_fairness is None else number(min_fairness, parameter="min_fairness", low=0.0)
        if low >= 1.0:
            raise InvalidInputError(f"min_fairness must be below 1; got {min_fairness!r}: the axis ends at 1")
        if ax is None:
            pyplot = require("matplotlib.pyplot", extra="plot", purpose="TAFDisplay.plot")
            _, ax = pyplot.subplots(figsize=(7.2, 4.6), layout="constrained")
        behind = _behind(achievable)
        for index, (name, banded) in enumerate(behind.items()):
            grey = GREYS[index % len(GREYS)]
            ax.fill_between(banded.grid, banded.low, banded.high, color=grey, alpha=0.25, linewidth=0, zorder=1)
            ax.plot(banded.grid, banded.accuracy, color=grey, linewidth=1.6, label=plain(name), zorder=1)
        for index, (family, curve) in enumerate(self.curves.items()):
            color = COLORS[index % len(COLORS)]
            if show_models and family in self.points:
                _draw_models(ax, self.points[family], curve, color)
            ax.plot(
                *_path(curve, low).T,
                color=color,
                linestyle=DASHES[index % len(DASHES)],
                linewidth=2.0,
                label=self._label(family),
                zorder=3,
            )
        if rule_of_80 and low < 0.8:
            ax.axvline(0.8, color="#8A8A8A", linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
            ax.text(0.8, 0.99, " 80 %", color="#6A6A6A", fontsize=8, va="top", transform=ax.get_xaxis_transform())
        self._decorate(ax, low, title, list(behind.values()))
        if name_models:
            self._name_models(ax, low)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _left_end(self) -> float:
        known = [c.fairness[0] for c in self.curves.values()]
        known += [float(np.quantile(p.fairness, 0.02)) for p in self.points.values()]
        return float(np.clip(np.floor((min(known) - 0.02) * 20) / 20, 0.0, 0.95))

    def _label(self, family: str) -> str:
        return plain(family) + (f"  (FAUC {self.scores[family]:.3f})" if family in self.scores else "")

    def _decorate(self, ax: Any, low: float, title: str | None, behind: Sequence[BandedCurve]) -> None:
        paths = [_path(curve, low) for curve in self.curves.values()]
        paths += [np.column_stack([curve.grid, curve.accuracy]) for curve in behind]
        shown = np.concatenate([path[path[:, 0] >= low, 1] for path in paths])
        bottom, top = float(shown.min()), float(shown.max())
        margin = max(0.06 * (top - bottom), 0.004)
        ax.set_xlim(low, 1.0 + 0.012 * (1.0 - low))
        ax.set_ylim(bottom - 2 * margin, top + 1.5 * margin)
        ax.set_xlabel("Fairness  (1 − largest bias)")
        ax.set_ylabel("Accuracy")
        ax.grid(color="#E6E6E6", linewidth=0.7)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        self._add_legend(ax, paths)
        if title:
            ax.set_title(plain(title, 100), loc="left", fontsize=11)

    def _add_legend(self, ax: Any, paths: list[FloatArray]) -> None:
        style = {"fontsize": 9, "frameon": True, "framealpha": 0.85, "edgecolor": "none", "borderaxespad": 0.3}
        size = ax.legend(loc="lower left", **style).get_window_extent()
        frame = ax.get_window_extent()
        dots = [np.column_stack([p.fairness, p.accuracy]) for p in self.points.values()]
        ink = [*dots, np.concatenate([dense(path) for path in paths])]
        ax.legend(loc=emptiest_corner(ax, ink, size.width / frame.width, size.height / frame.height), **style)

    def _name_models(self, ax: Any, low: float) -> None:
        names: dict[str, Name] = {}
        for index, (family, points) in enumerate(self.points.items()):
            curve = self.curves[family]
            for model in curve.support[curve.support < len(points)]:
                name, x, y = points.names[model], float(points.fairness[model]), float(points.accuracy[model])
                if x >= low:  # a model of several families, such as the constant, is named once
                    short = name.removeprefix(f"{family}/")
                    names.setdefault(name, Name(short, x, y, COLORS[index % len(COLORS)]))
        write_names(ax, list(names.values()), [_path(curve, low) for curve in self.curves.values()])


def _behind(achievable: BandedCurve | Mapping[str, BandedCurve] | None) -> dict[str, BandedCurve]:
    """Return the curves with bands by the names that the legend gives them."""
    if achievable is None:
        return {}
    curves = dict(achievable) if isinstance(achievable, Mapping) else {"achievable": achievable}
    for name, curve in curves.items():
        if not all(hasattr(curve, part) for part in ("grid", "accuracy", "low", "high")):
            raise InvalidInputError(
                f"achievable must be an AchievableFrontier or a dict of them; got {type(curve).__name__} for {name!r}: "
                "make one with achievable_frontier"
            )
    return curves


def _path(curve: TAFCurve, low: float) -> FloatArray:
    """Return the corners of a curve from the left end on, shape (q, 2)."""
    f, a = curve.fairness, curve.accuracy
    start = np.array([[min(low, f[0]), a[0]]])
    if curve.linear:
        return np.concatenate([start, np.column_stack([f, a])])
    # A step curve is level up to each knot and then falls to the next accuracy.
    corners = np.column_stack([np.repeat(f, 2)[:-1], np.repeat(a, 2)[1:]])
    return np.concatenate([start, [[f[0], a[0]]], corners[1:]])


def _draw_models(ax: Any, points: TradeoffPoints, curve: TAFCurve, color: str) -> None:
    size = 14.0 if len(points) < 200 else 6.0
    ax.scatter(points.fairness, points.accuracy, s=size, color=color, alpha=0.3, linewidths=0, zorder=2)
    best = curve.support[curve.support < len(points)]
    ax.scatter(
        points.fairness[best], points.accuracy[best], s=30, color=color, edgecolors="white", linewidths=0.8, zorder=4
    )


def _split(points: TradeoffPoints, families: Mapping[str, Sequence[str]] | None) -> dict[str, TradeoffPoints]:
    """Return the points of each family; the constant model belongs to all of them."""
    if families is None:
        grouped: dict[str, list[str]] = {}
        for name in points.names:
            if name != CONSTANT:
                grouped.setdefault(name.partition("/")[0] if "/" in name else "models", []).append(name)
        families = grouped or {"models": [CONSTANT]}
    constant = [CONSTANT] if CONSTANT in points.names else []
    parts = {}
    for family, names in families.items():
        for name in set(names).difference(points.names):
            one_of(name, points.names, parameter=f"families[{family!r}]")
        parts[family] = points.select([name for name in names if name != CONSTANT] + constant)
    return parts


def _response(name: str, model: Any, X: Any, classes: Any, response_method: str) -> FloatArray:
    if response_method == "predict_proba" and not hasattr(model, "predict_proba"):
        raise InvalidInputError(
            f"estimators must have predict_proba with response_method='predict_proba'; {name!r} is a "
            f"{type(model).__name__}, which has none: use 'auto' or 'predict'"
        )
    if response_method == "predict" and classes is not None and classifies(model):
        return positive_decisions(model, X, classes=classes, name=name)
    if response_method != "predict" and classes is None and hasattr(model, "predict_proba"):
        classes = classes_of(model)  # the probabilities of a classifier, measured against a target of numbers
    return positive_scores(model, X, classes=classes, name=name)


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
    """Write each name near its point, where no other name, point or curve is; names without room are left out."""
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
    """Return the corner of the axes in which a box of that size (shares of the axes) covers the fewest points."""
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
