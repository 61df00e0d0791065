"""How much accuracy does each level of fairness cost, and can you get a better deal from the models you have?

Three verbs, as in the paper "To the Fairness Frontier and Beyond" (Little, Weylandt, Allen):

- identify the Pareto frontier of any collection of fitted models: `tradeoff_points`, `taf_curve`, `TAFDisplay`;
- quantify it under your own preferences: `fauc`, `fauc_score`, `composite_fauc` and the weights;
- optimize it by stacking the models under a bias constraint: `FairStacksClassifier`, `FairStacksRegressor`.
"""

from fairfrontier import adapters, chunks, datasets, exceptions, learners
from fairfrontier._version import __version__
from fairfrontier.adapters import make_fauc_scorer
from fairfrontier.identify import (
    TAFCurve,
    TAFDisplay,
    TradeoffPoints,
    taf_curve,
    tradeoff_points,
)
from fairfrontier.identify.chunked import points_from_chunks
from fairfrontier.optimize import (
    FairPath,
    FairStacksClassifier,
    FairStacksRegressor,
    RandomizedMixture,
    StackStatistics,
    certify,
    generalization_bound,
    score_decision_diagnostics,
)
from fairfrontier.persistence import (
    load,
    save,
)
from fairfrontier.quantify import (
    Choice,
    Elicitation,
    FAUCComparison,
    FAUCInterval,
    FAUCSensitivity,
    PointWeight,
    PowerWeight,
    Questionnaire,
    Requirement,
    SensitivityDisplay,
    StepWeight,
    TabulatedWeight,
    TAFBands,
    UniformWeight,
    Weight,
    compare_fauc,
    composite_fauc,
    elicit_weight,
    fauc,
    fauc_interval,
    fauc_score,
    fauc_sensitivity,
    fit_answers,
    honest_taf,
    taf_bands,
)

__all__ = [
    "Choice",
    "Elicitation",
    "FAUCComparison",
    "FAUCInterval",
    "FAUCSensitivity",
    "FairPath",
    "FairStacksClassifier",
    "FairStacksRegressor",
    "PointWeight",
    "PowerWeight",
    "Questionnaire",
    "RandomizedMixture",
    "Requirement",
    "SensitivityDisplay",
    "StackStatistics",
    "StepWeight",
    "TAFBands",
    "TAFCurve",
    "TAFDisplay",
    "TabulatedWeight",
    "TradeoffPoints",
    "UniformWeight",
    "Weight",
    "__version__",
    "adapters",
    "certify",
    "chunks",
    "compare_fauc",
    "composite_fauc",
    "datasets",
    "elicit_weight",
    "exceptions",
    "fauc",
    "fauc_interval",
    "fauc_score",
    "fauc_sensitivity",
    "fit_answers",
    "generalization_bound",
    "honest_taf",
    "learners",
    "load",
    "make_fauc_scorer",
    "points_from_chunks",
    "save",
    "score_decision_diagnostics",
    "taf_bands",
    "taf_curve",
    "tradeoff_points",
]
