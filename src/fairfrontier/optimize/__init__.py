"""Optimize the frontier: stack the models under a bias constraint."""

from fairfrontier.optimize.decisions import DecisionPath
from fairfrontier.optimize.fairstacks import FairStacksClassifier, FairStacksRegressor
from fairfrontier.optimize.mixture import RandomizedMixture
from fairfrontier.optimize.path import FairPath
from fairfrontier.optimize.solve import solve_stack
from fairfrontier.optimize.statistics import StackStatistics
from fairfrontier.optimize.theory import certify, generalization_bound, score_decision_diagnostics

__all__ = [
    "DecisionPath",
    "FairPath",
    "FairStacksClassifier",
    "FairStacksRegressor",
    "RandomizedMixture",
    "StackStatistics",
    "certify",
    "generalization_bound",
    "score_decision_diagnostics",
    "solve_stack",
]
