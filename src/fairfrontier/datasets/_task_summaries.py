"""Summaries of the seven benchmark tasks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfrontier.datasets._design import design_matrix
from fairfrontier.datasets._loaders import load_adult, load_bank, load_communities, load_compas, load_default


@dataclass(frozen=True)
class GroupRate:
    """One group of a task.

    Attributes
    ----------
    name : str
        The group.
    rows : int
        Its number of rows.
    base_rate : float
        The mean of the target in it: the share of positives, or the mean crime rate.
    """

    name: str
    rows: int
    base_rate: float


@dataclass(frozen=True)
class TaskSummary:
    """One task: a data set and a binary sensitive attribute.

    Attributes
    ----------
    task, dataset, attribute : str
        "adult-gender", "adult", "gender".
    kind : str
        "classification" or "regression".
    rows, features, columns : int
        Rows, features, and columns of `design_matrix`.
    base_rate : float
        Mean of the target.
    groups : tuple of GroupRate
        The groups, the one with the lowest base rate first.
    gap : float
        Highest minus lowest base rate.
    paper_rows, paper_columns : int
        What the paper states.
    """

    task: str
    dataset: str
    attribute: str
    kind: str
    rows: int
    features: int
    columns: int
    base_rate: float
    groups: tuple[GroupRate, ...]
    gap: float
    paper_rows: int
    paper_columns: int


_PAPER: tuple[tuple[Callable[..., Any], int, int], ...] = (
    (load_adult, 48_222, 99),
    (load_bank, 44_388, 58),
    (load_compas, 5_278, 13),
    (load_default, 30_000, 23),
    (load_communities, 1_969, 104),
)


def describe_all() -> tuple[TaskSummary, ...]:
    """Summarise the seven tasks of the benchmark; needs no pandas.

    Returns
    -------
    tuple of TaskSummary
        In the paper's order of data sets.

    Examples
    --------
    >>> from fairfrontier.datasets import describe_all
    >>> for task in describe_all():
    ...     print(f"{task.task:17} {task.rows:6} {task.gap:.3f}")
    adult-gender       48842 0.195
    adult-race         48842 0.101
    bank-age           45211 0.062
    compas-gender       5278 0.135
    compas-race         5278 0.132
    default-gender     30000 0.034
    communities-race    1994 0.346
    """
    summaries: list[TaskSummary] = []
    for load, paper_rows, paper_columns in _PAPER:
        bunch = load(as_frame=False)
        columns = design_matrix(bunch).values.shape[1]
        for attribute in bunch.sensitive_sources:
            summaries.append(_summarise(bunch, attribute, columns, paper_rows, paper_columns))
    return tuple(summaries)


def _summarise(bunch: Any, attribute: str, columns: int, paper_rows: int, paper_columns: int) -> TaskSummary:
    labels = bunch.sensitive_features[attribute]
    masks = {str(name): labels == name for name in np.unique(labels)}
    groups = [GroupRate(name, int(mask.sum()), float(bunch.target[mask].mean())) for name, mask in masks.items()]
    groups.sort(key=lambda group: group.base_rate)
    return TaskSummary(
        task=f"{bunch.name}-{attribute}",
        dataset=bunch.name,
        attribute=attribute,
        kind="classification" if bunch.target_names else "regression",
        rows=len(bunch.target),
        features=len(bunch.feature_names),
        columns=columns,
        base_rate=float(bunch.target.mean()),
        groups=tuple(groups),
        gap=groups[-1].base_rate - groups[0].base_rate,
        paper_rows=paper_rows,
        paper_columns=paper_columns,
    )
