"""How much accuracy does each level of fairness cost, and can you get a better deal from the models you have?

Three verbs, as in the paper "To the Fairness Frontier and Beyond" (Little, Weylandt, Allen):

- identify the Pareto frontier of any collection of fitted models: `tradeoff_points`, `taf_curve`, `TAFDisplay`;
- quantify it under your own preferences: `fauc`, `fauc_score`, `composite_fauc` and the weights;
- optimize it by stacking the models under a bias constraint: `FairStacksClassifier`, `FairStacksRegressor`.
"""

from typing import TYPE_CHECKING

from fairfrontier._version import __version__ as __version__

if TYPE_CHECKING:
    # What type checkers and editors read. All that the three verbs export is exported here, too.
    from fairfrontier import adapters as adapters
    from fairfrontier import benchmark as benchmark
    from fairfrontier import chunks as chunks
    from fairfrontier import datasets as datasets
    from fairfrontier import exceptions as exceptions
    from fairfrontier import identify as identify
    from fairfrontier import learners as learners
    from fairfrontier import limit as limit
    from fairfrontier import metrics as metrics
    from fairfrontier import optimize as optimize
    from fairfrontier import quantify as quantify
    from fairfrontier import report as report
    from fairfrontier import search as search
    from fairfrontier._persistence import load as load
    from fairfrontier._persistence import save as save
    from fairfrontier.adapters import make_fauc_scorer as make_fauc_scorer
    from fairfrontier.identify import *  # noqa: F403
    from fairfrontier.limit import *  # noqa: F403
    from fairfrontier.metrics import StratifiedRatio as StratifiedRatio
    from fairfrontier.metrics import expected_payoff as expected_payoff
    from fairfrontier.metrics import mantel_haenszel as mantel_haenszel
    from fairfrontier.metrics import recall_at as recall_at
    from fairfrontier.metrics import row_payoff as row_payoff
    from fairfrontier.metrics import standardized_mean_difference as standardized_mean_difference
    from fairfrontier.metrics import top_share as top_share
    from fairfrontier.optimize import *  # noqa: F403
    from fairfrontier.quantify import *  # noqa: F403
    from fairfrontier.report import AuditResult as AuditResult
    from fairfrontier.report import audit as audit
    from fairfrontier.search import FairSearch as FairSearch
else:
    import importlib

    # The module of each public name. It is imported when the name is first used: `import fairfrontier` and
    # `fairfrontier --help` do not wait for scipy and scikit-learn.
    _HOME = {
        "AchievableFrontier": "limit",
        "AuditResult": "report",
        "Certificate": "optimize._theory",
        "Choice": "quantify",
        "DecisionPath": "identify._decision_path",
        "Draw": "optimize._mixture",
        "Elicitation": "quantify",
        "FAUCComparison": "quantify",
        "FAUCInterval": "quantify",
        "FAUCSensitivity": "quantify",
        "FairPath": "optimize._ridge_path",
        "FairSearch": "search",
        "FairStacksClassifier": "optimize._fairstacks",
        "FairStacksRegressor": "optimize._fairstacks",
        "FairnessBounds": "identify",
        "FrontierGap": "limit",
        "GeneralizationBound": "optimize._theory",
        "LearningCurve": "limit",
        "LearningFrontier": "limit",
        "MixtureReport": "optimize._mixture",
        "PointWeight": "quantify",
        "PowerWeight": "quantify",
        "ProbableGroups": "identify",
        "Projection": "limit",
        "Question": "quantify",
        "Questionnaire": "quantify",
        "RandomizedMixture": "optimize._mixture",
        "Requirement": "quantify",
        "ScoreDecisionDiagnostics": "optimize._theory",
        "Selection": "optimize._selection",
        "SensitivityDisplay": "quantify",
        "StackStatistics": "optimize._statistics",
        "StepWeight": "quantify",
        "StratifiedRatio": "metrics",
        "TAFBands": "quantify",
        "TAFCurve": "identify",
        "TAFDisplay": "identify",
        "TabulatedWeight": "quantify",
        "TradeoffPoints": "identify",
        "UniformWeight": "quantify",
        "Weight": "quantify",
        "achievable_frontier": "limit",
        "audit": "report",
        "certify": "optimize._theory",
        "compare_fauc": "quantify",
        "composite_fauc": "quantify",
        "elicit_weight": "quantify",
        "expected_payoff": "metrics",
        "fairness_bounds": "identify",
        "fauc": "quantify",
        "fauc_interval": "quantify",
        "fauc_score": "quantify",
        "fauc_sensitivity": "quantify",
        "fit_answers": "quantify",
        "frontier_gap": "limit",
        "generalization_bound": "optimize._theory",
        "honest_curve": "quantify",
        "honest_taf": "quantify",
        "learning_frontier": "limit",
        "load": "_persistence",
        "make_fauc_scorer": "adapters",
        "mantel_haenszel": "metrics",
        "points_from_chunks": "identify",
        "recall_at": "metrics",
        "row_payoff": "metrics",
        "rows_needed": "quantify._promise",
        "save": "_persistence",
        "score_decision_diagnostics": "optimize._theory",
        "solve_stack": "optimize._ridge_path",
        "standardized_mean_difference": "metrics",
        "taf_bands": "quantify",
        "taf_curve": "identify",
        "top_share": "metrics",
        "tradeoff_points": "identify",
    }
    _PACKAGES = ("adapters", "chunks", "datasets", "exceptions", "learners")
    # Reached as `fairfrontier.metrics`, but not brought by `from fairfrontier import *`.
    _MORE_PACKAGES = ("benchmark", "identify", "limit", "metrics", "optimize", "quantify", "report", "search")
    __all__ = sorted(("__version__", *_HOME, *_PACKAGES))

    def __getattr__(name):
        if name in (*_PACKAGES, *_MORE_PACKAGES):
            return importlib.import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__, *_MORE_PACKAGES})
