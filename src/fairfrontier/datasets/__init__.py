"""The paper's five data sets, inside the package: no download, no network."""

from fairfrontier.datasets._design import DesignMatrix, design_matrix
from fairfrontier.datasets._loaders import load_adult, load_bank, load_communities, load_compas, load_default
from fairfrontier.datasets._task_summaries import GroupRate, TaskSummary, describe_all

__all__ = [
    "DesignMatrix",
    "GroupRate",
    "TaskSummary",
    "describe_all",
    "design_matrix",
    "load_adult",
    "load_bank",
    "load_communities",
    "load_compas",
    "load_default",
]
