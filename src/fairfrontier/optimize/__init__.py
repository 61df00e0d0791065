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
    import sys

    # Each is imported when it is first used, and the package knows from where: an audit tries stacks and does not wait
    # for scikit-learn.
    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(sys.modules["fairfrontier"], name)

    def __dir__():
        return sorted({*globals(), *__all__})


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
