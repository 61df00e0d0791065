"""Optimize the frontier: stack the models under a bias constraint."""

from fairfrontier.optimize.decisions import DecisionPath
from fairfrontier.optimize.fairstacks import FairStacksClassifier, FairStacksRegressor
from fairfrontier.optimize.path import FairPath, solve_stack
from fairfrontier.optimize.statistics import StackStatistics

__all__ = [
    "DecisionPath",
    "FairPath",
    "FairStacksClassifier",
    "FairStacksRegressor",
    "StackStatistics",
    "solve_stack",
]
