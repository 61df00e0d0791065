"""From predictions, labels and groups to numbers: one pass over the rows, no loop over models."""

from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, expected_payoff, recall_at, row_payoff
from fairfrontier.metrics._association import (
    StratifiedRatio,
    mantel_haenszel,
    standardized_mean_difference,
    top_share,
)
from fairfrontier.metrics._contrasts import MEASURES

__all__ = [
    "ACCURACY_MEASURES",
    "MEASURES",
    "StratifiedRatio",
    "expected_payoff",
    "mantel_haenszel",
    "recall_at",
    "row_payoff",
    "standardized_mean_difference",
    "top_share",
]
