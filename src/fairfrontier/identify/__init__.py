"""Identify the frontier: the points of the models, the TAF curve and its hulls, and their picture."""

from fairfrontier.identify._display import TAFDisplay
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points

__all__ = ["TAFCurve", "TAFDisplay", "TradeoffPoints", "taf_curve", "tradeoff_points"]
