"""How much accuracy does each level of fairness cost, and can you get a better deal from the models you have?

Three verbs, as in the paper "To the Fairness Frontier and Beyond" (Little, Weylandt, Allen):

- identify the Pareto frontier of any collection of fitted models: `tradeoff_points`, `taf_curve`, `TAFDisplay`;
- quantify it under your own preferences: `fauc`, `fauc_score`, `composite_fauc` and the weights;
- optimize it by stacking the models under a bias constraint: `FairStacksClassifier`, `FairStacksRegressor`.
"""

from fairfrontier._version import __version__
from fairfrontier.identify import TAFCurve, TAFDisplay, TradeoffPoints, taf_curve, tradeoff_points
from fairfrontier.optimize import (
    FairPath,
    FairStacksClassifier,
    FairStacksRegressor,
    StackStatistics,
    certify,
    generalization_bound,
    score_decision_diagnostics,
)
from fairfrontier.persistence import load, save
from fairfrontier.quantify import (
    PointWeight,
    PowerWeight,
    StepWeight,
    TabulatedWeight,
    UniformWeight,
    Weight,
    composite_fauc,
    fauc,
    fauc_score,
)

__all__ = [
    "FairPath",
    "FairStacksClassifier",
    "FairStacksRegressor",
    "PointWeight",
    "PowerWeight",
    "StackStatistics",
    "StepWeight",
    "TAFCurve",
    "TAFDisplay",
    "TabulatedWeight",
    "TradeoffPoints",
    "UniformWeight",
    "Weight",
    "__version__",
    "certify",
    "composite_fauc",
    "fauc",
    "fauc_score",
    "generalization_bound",
    "load",
    "save",
    "score_decision_diagnostics",
    "taf_curve",
    "tradeoff_points",
]
