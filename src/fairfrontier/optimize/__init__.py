"""Optimize the frontier: stack the models under a bias constraint."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairfrontier.optimize._decision_path import DecisionPath
    from fairfrontier.optimize._fairstacks import FairStacksClassifier, FairStacksRegressor
    from fairfrontier.optimize._mixture import Draw, MixtureReport, RandomizedMixture
    from fairfrontier.optimize._operating_point import Selection
    from fairfrontier.optimize._promise import rows_needed
    from fairfrontier.optimize._ridge_path import FairPath, solve_stack
    from fairfrontier.optimize._statistics import StackStatistics
    from fairfrontier.optimize._theory import (
        Certificate,
        GeneralizationBound,
        ScoreDecisionDiagnostics,
        certify,
        generalization_bound,
        score_decision_diagnostics,
    )
else:
    import importlib

    # Each is imported when it is first used: an audit tries stacks and does not wait for scikit-learn.
    _HOME = {
        "Certificate": "_theory",
        "DecisionPath": "_decision_path",
        "Draw": "_mixture",
        "FairPath": "_ridge_path",
        "FairStacksClassifier": "_fairstacks",
        "FairStacksRegressor": "_fairstacks",
        "GeneralizationBound": "_theory",
        "MixtureReport": "_mixture",
        "RandomizedMixture": "_mixture",
        "ScoreDecisionDiagnostics": "_theory",
        "Selection": "_operating_point",
        "StackStatistics": "_statistics",
        "certify": "_theory",
        "generalization_bound": "_theory",
        "rows_needed": "_promise",
        "score_decision_diagnostics": "_theory",
        "solve_stack": "_ridge_path",
    }

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
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
