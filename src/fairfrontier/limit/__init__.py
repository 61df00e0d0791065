"""How far from the possible: the achievable frontier, the gap to it taken apart, and how it grows with rows."""

from fairfrontier.limit._achievable import AchievableFrontier, achievable_frontier
from fairfrontier.limit._gap import FrontierGap, frontier_gap
from fairfrontier.limit._learning import LearningCurve, LearningFrontier, Projection, learning_frontier

__all__ = [
    "AchievableFrontier",
    "FrontierGap",
    "LearningCurve",
    "LearningFrontier",
    "Projection",
    "achievable_frontier",
    "frontier_gap",
    "learning_frontier",
]
