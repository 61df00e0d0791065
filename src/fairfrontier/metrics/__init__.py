"""From predictions, labels and groups to numbers: one pass over the rows, no loop over models."""

from fairfrontier.metrics._accuracy import ACCURACY_MEASURES
from fairfrontier.metrics._contrasts import MEASURES

__all__ = ["ACCURACY_MEASURES", "MEASURES"]
