"""From predictions, labels and groups to numbers: one pass over the rows, no loop over models."""

from fairfrontier.metrics._accuracy import ACCURACY_MEASURES, AccuracyMeasure
from fairfrontier.metrics._cells import Cells, CellSums, cell_sums
from fairfrontier.metrics._contrasts import MEASURES, Contrasts, RowSets, build_contrasts

__all__ = [
    "ACCURACY_MEASURES",
    "MEASURES",
    "AccuracyMeasure",
    "CellSums",
    "Cells",
    "Contrasts",
    "RowSets",
    "build_contrasts",
    "cell_sums",
]
