"""Rankings of families over a grid of the paper's weights: does the winner depend on the weight?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfrontier import _validation as validate
from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._display import COLORS
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.quantify._fauc import PowerWeight, fauc

# Areas that differ by at most this are a tie.
_ROUNDING = 1e-12
_TIE_COLOR, _TILE_OPACITY = "#9A9A9A", 0.55


@dataclass(frozen=True, eq=False)
class FAUCSensitivity:
    """FAUC and rank of each family under each weight x^alpha·1{x > beta}.

    Attributes
    ----------
    families : tuple of str, length r
        The families.
    alphas : ndarray of shape (p,)
        The exponents.
    betas : ndarray of shape (q,)
        The least levels of fairness that count.
    scores : ndarray of shape (p, q, r)
        FAUC.
    ranks : ndarray of shape (p, q, r)
        1 for the best; families that tie share the better rank.
    """

    families: tuple[str, ...]
    alphas: FloatArray
    betas: FloatArray
    scores: FloatArray
    ranks: NDArray[np.intp]

    @property
    def winners(self) -> NDArray[np.intp]:
        """The index of the best family under each weight, shape (p, q); of several that tie, the first."""
        return np.asarray(self.scores.argmax(axis=2))

    @property
    def margin(self) -> FloatArray:
        """How far the best family is ahead of the second under each weight, shape (p, q)."""
        if len(self.families) == 1:
            return np.full(self.scores.shape[:2], np.inf)
        top = np.sort(self.scores, axis=2)
        return np.asarray(top[:, :, -1] - top[:, :, -2])

    @property
    def share_first(self) -> dict[str, float]:
        """The share of the weights under which each family is first, alone or with others."""
        return {name: float(np.mean(self.ranks[:, :, j] == 1)) for j, name in enumerate(self.families)}

    @property
    def stable(self) -> bool:
        """True if the whole ranking is the same under every weight."""
        return bool(np.all(self.ranks == self.ranks[:1, :1]))

    def rows(self) -> list[dict[str, Any]]:
        """Return the table, one row for each weight and family, ready for a dataframe or a CSV writer."""
        return [
            {
                "alpha": float(alpha),
                "beta": float(beta),
                "family": name,
                "fauc": float(self.scores[i, j, k]),
                "rank": int(self.ranks[i, j, k]),
            }
            for i, alpha in enumerate(self.alphas)
            for j, beta in enumerate(self.betas)
            for k, name in enumerate(self.families)
        ]


def fauc_sensitivity(
    curves: Mapping[str, TAFCurve], *, alphas: ArrayLike | None = None, betas: ArrayLike | None = None
) -> FAUCSensitivity:
    """Rank families of models under a grid of weights.

    Parameters
    ----------
    curves : dict of str to TAFCurve
        A curve for each family.
    alphas : array-like of shape (p,), optional
        Exponents above −1; None: 0, 1, 2, 4, 8, 16.
    betas : array-like of shape (q,), optional
        Levels in [0, 1); None: 0, 0.1, …, 0.9 and 0.95.

    Returns
    -------
    FAUCSensitivity
        Scores and ranks; `rows` makes a table and `SensitivityDisplay` a picture of them.

    Examples
    --------
    >>> from fairfrontier import taf_curve
    >>> curves = {"sharp": taf_curve([0.6, 1.0], [0.9, 0.5]), "fair": taf_curve([1.0], [0.7])}
    >>> result = fauc_sensitivity(curves, alphas=[0, 4], betas=[0.0, 0.8])
    >>> [[result.families[i] for i in row] for row in result.winners]
    [['sharp', 'fair'], ['fair', 'fair']]
    >>> result.stable
    False
    """
    if not isinstance(curves, Mapping) or not curves:
        raise InvalidInputError(f"curves must be a non-empty dict of name to TAFCurve; got {curves!r}")
    a = _axis(alphas, [0.0, 1.0, 2.0, 4.0, 8.0, 16.0], parameter="alphas")
    b = _axis(betas, [*np.arange(0.0, 0.95, 0.1).round(1), 0.95], parameter="betas")
    scores = np.array(
        [[[fauc(curve, PowerWeight(alpha, beta)) for curve in curves.values()] for beta in b] for alpha in a]
    )
    better = scores[:, :, None, :] > scores[:, :, :, None] + _ROUNDING
    return FAUCSensitivity(tuple(str(name) for name in curves), a, b, scores, 1 + better.sum(axis=3))


def _axis(values: ArrayLike | None, default: list[float], *, parameter: str) -> FloatArray:
    axis = np.asarray(default if values is None else validate.column(values, parameter=parameter), dtype=np.float64)
    validate.finite(axis, parameter=parameter)
    if axis.size == 0 or np.any(np.diff(axis) <= 0):
        raise InvalidInputError(f"{parameter} must be ascending and not empty; got {axis.tolist()}")
    return axis


class SensitivityDisplay:
    """A map of the best family under each weight.

    Parameters
    ----------
    result : FAUCSensitivity
        What to draw.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after `plot`.

    Examples
    --------
    >>> from fairfrontier import taf_curve
    >>> display = SensitivityDisplay.from_curves({"a": taf_curve([1.0], [0.7]), "b": taf_curve([1.0], [0.6])})
    >>> display.result.share_first
    {'a': 1.0, 'b': 0.0}
    """

    def __init__(self, result: FAUCSensitivity) -> None:
        self.result = result

    @classmethod
    def from_curves(
        cls, curves: Mapping[str, TAFCurve], *, alphas: ArrayLike | None = None, betas: ArrayLike | None = None
    ) -> "SensitivityDisplay":
        """Make a display from a curve for each family."""
        return cls(fauc_sensitivity(curves, alphas=alphas, betas=betas))

    def plot(self, ax: Any = None, *, title: str | None = None) -> "SensitivityDisplay":
        """Draw one tile for each weight: its colour is the best family, its text the lead over the second.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.
        title : str, optional
            The title.

        Returns
        -------
        SensitivityDisplay
            Itself, with `ax_` and `figure_`.
        """
        if ax is None:
            pyplot = require("matplotlib.pyplot", extra="plot", purpose="SensitivityDisplay.plot")
            _, ax = pyplot.subplots(figsize=(8.2, 4.4), layout="constrained")
        colors = require("matplotlib.colors", extra="plot", purpose="SensitivityDisplay.plot")
        shades = [*(COLORS[j % len(COLORS)] for j in range(len(self.result.families))), _TIE_COLOR]
        palette = colors.ListedColormap(shades)
        tiles = np.where(self.result.margin > _ROUNDING, self.result.winners, len(self.result.families))
        norm = colors.BoundaryNorm(np.arange(len(shades) + 1) - 0.5, palette.N)
        ax.imshow(tiles, cmap=palette, norm=norm, aspect="auto", origin="lower", alpha=_TILE_OPACITY)
        self._write_margins(ax)
        self._decorate(ax, shades, title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write_margins(self, ax: Any) -> None:
        for (i, j), margin in np.ndenumerate(self.result.margin):
            if np.isfinite(margin):
                text = f"+{margin:.3f}" if margin > _ROUNDING else "tie"
                ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color="#1A1A1A")

    def _decorate(self, ax: Any, shades: list[str], title: str | None) -> None:
        patches = require("matplotlib.patches", extra="plot", purpose="SensitivityDisplay.plot")
        ax.set_xticks(range(len(self.result.betas)), [f"{beta:g}" for beta in self.result.betas])
        ax.set_yticks(range(len(self.result.alphas)), [f"{alpha:g}" for alpha in self.result.alphas])
        ax.set_xlabel("beta: the least fairness that counts")
        ax.set_ylabel("alpha: stress on the fairest models")
        handles = [
            patches.Patch(color=shade, alpha=_TILE_OPACITY, label=f"{name} first: {self.result.share_first[name]:.0%}")
            for name, shade in zip(self.result.families, shades, strict=False)
        ]
        if np.any(self.result.margin <= _ROUNDING):
            handles.append(patches.Patch(color=_TIE_COLOR, alpha=_TILE_OPACITY, label="several first"))
        ax.legend(handles=handles, frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if title:
            ax.set_title(title.replace("$", r"\$"), loc="left", fontsize=11)
