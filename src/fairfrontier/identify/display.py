"""The picture of the trade-off: TAF curves of one or several families on one axis."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fairfrontier._extras import require
from fairfrontier._validation import one_of
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify.frontier import TAFCurve
from fairfrontier.identify.points import CONSTANT, TradeoffPoints, tradeoff_points

# Okabe and Ito's colours, told apart by colour-blind people; with the dashes also in black and white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#6A3D9A", "#4D4D4D")
DASHES = (
    "-",
    "--",
    "-.",
    (0, (1, 1.2)),
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (7, 2)),
    (0, (3, 1, 1, 1)),
    (0, (2, 2)),
)


class TAFDisplay:
    """TAF curves, the models behind them, and how to draw both.

    Make one with `from_predictions`, `from_estimators` or `from_curves`, not directly.

    Parameters
    ----------
    curves : dict of str to TAFCurve
        A curve for each family, in the order of the legend.
    points : dict of str to TradeoffPoints, optional
        The models of each family, drawn as dots.
    scores : dict of str to float, optional
        FAUC of each family, shown in the legend.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after `plot`.

    Examples
    --------
    >>> from fairfrontier import TAFDisplay, taf_curve
    >>> display = TAFDisplay.from_curves({"forest": taf_curve([0.8, 1.0], [0.9, 0.6])})
    >>> display.curves["forest"](0.9)
    0.6
    """

    def __init__(
        self,
        curves: Mapping[str, TAFCurve],
        *,
        points: Mapping[str, TradeoffPoints] | None = None,
        scores: Mapping[str, float] | None = None,
    ) -> None:
        self.curves = dict(curves)
        self.points = dict(points or {})
        self.scores = dict(scores or {})

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, TAFCurve],
        *,
        points: Mapping[str, TradeoffPoints] | None = None,
        scores: Mapping[str, float] | None = None,
    ) -> "TAFDisplay":
        """Make a display from curves that are there already, by family."""
        if not isinstance(curves, Mapping) or not curves:
            raise InvalidInputError(f"curves must be a non-empty dict of name to TAFCurve; got {curves!r}")
        return cls(curves, points=points, scores=scores)

    @classmethod
    def from_points(
        cls,
        points: Mapping[str, TradeoffPoints] | TradeoffPoints,
        *,
        interpolate: bool | Literal["signed"] = False,
        scores: Mapping[str, float] | None = None,
    ) -> "TAFDisplay":
        """Make a display from the points of one or several families."""
        families = {"models": points} if isinstance(points, TradeoffPoints) else dict(points)
        curves = {name: family.frontier(interpolate) for name, family in families.items()}
        return cls(curves, points=families, scores=scores)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_preds: Any,
        *,
        sensitive_features: Any,
        families: Mapping[str, Sequence[str]] | None = None,
        interpolate: bool | Literal["signed"] = False,
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
        **options
            Passed to `tradeoff_points`.
        """
        points = tradeoff_points(y_true, y_preds, sensitive_features=sensitive_features, **options)
        return cls.from_points(_split(points, families), interpolate=interpolate)

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[tuple[str, Any]],
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
        estimators : list of (name, fitted estimator)
            Classifiers with two classes, or regressors.
        X : array-like of shape (n, p)
            Features.
        y, sensitive_features
            As in `tradeoff_points`.
        response_method : {"auto", "predict_proba", "predict"}
            What gives the scores; "auto" is `predict_proba` where there is one.
        **options
            Passed to `from_predictions`.
        """
        one_of(response_method, ("auto", "predict_proba", "predict"), parameter="response_method")
        predicted = {name: _scores(model, X, response_method) for name, model in estimators}
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
    ) -> "TAFDisplay":
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.
        show_models : bool
            Draw each model as a dot, the Pareto-optimal ones larger.
        name_models : bool
            Write the names of the Pareto-optimal models next to them.
        rule_of_80 : bool
            Mark fairness 0.8 with a line.
        min_fairness : float, optional
            Left end of the axis; None fits it to the models.
        title : str, optional
            The title.

        Returns
        -------
        TAFDisplay
            Itself, with `ax_` and `figure_`.
        """
        if ax is None:
            pyplot = require("matplotlib.pyplot", extra="plot", purpose="TAFDisplay.plot")
            _, ax = pyplot.subplots(figsize=(7.2, 4.6), layout="constrained")
        low = self._left_end() if min_fairness is None else min_fairness
        for index, (family, curve) in enumerate(self.curves.items()):
            color = COLORS[index % len(COLORS)]
            if show_models and family in self.points:
                self._draw_models(ax, family, color, low)
            self._draw_curve(ax, family, curve, low, color, DASHES[index % len(DASHES)])
            if name_models and family in self.points:
                _name_models(ax, self.points[family], curve, color, low)
        if rule_of_80 and low < 0.8:
            ax.axvline(0.8, color="#8A8A8A", linewidth=0.9, linestyle=(0, (2, 3)), zorder=0)
            ax.text(0.8, 0.015, " 80 % line", color="#6A6A6A", fontsize=8, transform=ax.get_xaxis_transform())
        self._decorate(ax, low, title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _left_end(self) -> float:
        known = [c.fairness[0] for c in self.curves.values()]
        known += [float(np.quantile(p.fairness, 0.02)) for p in self.points.values()]
        return float(np.clip(np.floor((min(known) - 0.02) * 20) / 20, 0.0, 0.95))

    def _draw_curve(self, ax: Any, family: str, curve: TAFCurve, low: float, color: str, dash: Any) -> None:
        f = np.concatenate([[min(low, curve.fairness[0])], curve.fairness])
        a = np.concatenate([[curve.accuracy[0]], curve.accuracy])
        label = family if family not in self.scores else f"{family}  (FAUC {self.scores[family]:.3f})"
        draw_style = "default" if curve.linear else "steps-pre"
        ax.plot(
            f,
            a,
            color=color,
            linestyle=dash,
            linewidth=2.0,
            drawstyle=draw_style,
            label=_plain(label),
            zorder=3,
        )

    def _draw_models(self, ax: Any, family: str, color: str, low: float) -> None:
        points = self.points[family]
        seen = points.fairness >= low
        size = 14.0 if len(points) < 200 else 6.0
        ax.scatter(
            points.fairness[seen],
            points.accuracy[seen],
            s=size,
            color=color,
            alpha=0.30,
            linewidths=0,
            zorder=2,
        )
        best = self.curves[family].support
        best = best[(best < len(points)) & (points.fairness[np.minimum(best, len(points) - 1)] >= low)]
        ax.scatter(
            points.fairness[best],
            points.accuracy[best],
            s=30,
            color=color,
            edgecolors="white",
            linewidths=0.8,
            zorder=4,
        )

    def _decorate(self, ax: Any, low: float, title: str | None) -> None:
        ax.set_xlim(low, 1.0 + 0.01 * (1.0 - low))
        shown = [c.accuracy for c in self.curves.values()]
        bottom, top = min(a.min() for a in shown), max(a.max() for a in shown)
        margin = max(0.08 * (top - bottom), 0.004)
        ax.set_ylim(bottom - 2 * margin, top + margin)
        ax.set_xlabel("Fairness  (1 − largest bias)")
        ax.set_ylabel("Accuracy")
        ax.grid(color="#E6E6E6", linewidth=0.7)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.legend(frameon=False, fontsize=9, loc="lower left")
        if title:
            ax.set_title(_plain(title), loc="left", fontsize=11)


def _split(points: TradeoffPoints, families: Mapping[str, Sequence[str]] | None) -> dict[str, TradeoffPoints]:
    """Return the points of each family; the constant model belongs to all of them."""
    if families is None:
        grouped: dict[str, list[str]] = {}
        for name in points.names:
            if name != CONSTANT:
                grouped.setdefault(name.partition("/")[0] if "/" in name else "models", []).append(name)
        families = grouped or {"models": [CONSTANT]}
    constant = [CONSTANT] if CONSTANT in points.names else []
    return {
        family: points.select([name for name in names if name != CONSTANT] + constant)
        for family, names in families.items()
    }


def _scores(model: Any, X: Any, response_method: str) -> Any:
    if response_method == "predict" or (response_method == "auto" and not hasattr(model, "predict_proba")):
        return model.predict(X)
    return model.predict_proba(X)[:, 1]


def _name_models(ax: Any, points: TradeoffPoints, curve: TAFCurve, color: str, low: float) -> None:
    for model in curve.support:
        if points.fairness[model] >= low:
            name = points.names[model]
            ax.annotate(
                _plain(name if len(name) <= 28 else name[:27] + "…"),
                (points.fairness[model], points.accuracy[model]),
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=8,
                color=color,
            )


def _plain(text: str) -> str:
    """Return text that matplotlib shows as it is: names are not mathematics."""
    return text.replace("$", r"\$")
