"""The paper's five data sets, inside the package: no download, no network."""

from fairfrontier.datasets._adult import load_adult
from fairfrontier.datasets._bank import load_bank
from fairfrontier.datasets._communities import load_communities
from fairfrontier.datasets._compas import load_compas
from fairfrontier.datasets._default import load_default
from fairfrontier.datasets._design import DesignMatrix, design_matrix
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
