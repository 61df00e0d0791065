"""Optimize the frontier: stack the models under a bias constraint."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairfrontier.identify._decision_path import DecisionPath
    from fairfrontier.optimize._fairstacks import FairStacksClassifier, FairStacksRegressor
    from fairfrontier.optimize._mixture import Draw, MixtureReport, RandomizedMixture
    from fairfrontier.optimize._ridge_path import FairPath, solve_stack
    from fairfrontier.optimize._selection import Selection
    from fairfrontier.optimize._statistics import StackStatistics
    from fairfrontier.optimize._theory import (
        Certificate,
        GeneralizationBound,
        ScoreDecisionDiagnostics,
        certify,
        generalization_bound,
        score_decision_diagnostics,
    )
    from fairfrontier.quantify._promise import rows_needed
else:
    import importlib

    # Each is imported when it is first used: an audit tries stacks and does not wait for scikit-learn.
    _HOME = {
        "Certificate": "optimize._theory",
        "DecisionPath": "identify._decision_path",
        "Draw": "optimize._mixture",
        "FairPath": "optimize._ridge_path",
        "FairStacksClassifier": "optimize._fairstacks",
        "FairStacksRegressor": "optimize._fairstacks",
        "GeneralizationBound": "optimize._theory",
        "MixtureReport": "optimize._mixture",
        "RandomizedMixture": "optimize._mixture",
        "ScoreDecisionDiagnostics": "optimize._theory",
        "Selection": "optimize._selection",
        "StackStatistics": "optimize._statistics",
        "certify": "optimize._theory",
        "generalization_bound": "optimize._theory",
        "rows_needed": "quantify._promise",
        "score_decision_diagnostics": "optimize._theory",
        "solve_stack": "optimize._ridge_path",
    }

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"fairfrontier.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_HOME})


__all__ = [
    "Certificate",
    "DecisionPath",
    "Draw",
    "FairPath",
    "FairStacksClassifier",
    "FairStacksRegressor",
    "GeneralizationBound",
    "MixtureReport",
    "RandomizedMixture",
    "ScoreDecisionDiagnostics",
    "Selection",
    "StackStatistics",
    "certify",
    "generalization_bound",
    "rows_needed",
    "score_decision_diagnostics",
    "solve_stack",
]
