"""Identify the frontier: the points of the models, the TAF curve and its hulls, and their picture."""

from fairfrontier._groups import ProbableGroups
from fairfrontier.identify._bounds import FairnessBounds, fairness_bounds
from fairfrontier.identify._display import TAFDisplay
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.identify._points import TradeoffPoints, points_from_chunks, tradeoff_points

__all__ = [
    "FairnessBounds",
    "ProbableGroups",
    "TAFCurve",
    "TAFDisplay",
    "TradeoffPoints",
    "fairness_bounds",
    "points_from_chunks",
    "taf_curve",
    "tradeoff_points",
]
