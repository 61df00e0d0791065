"""A report worth sharing: data → dict (`summarise`) → page (`render_html`) and tables (`points_csv`)."""

from fairfrontier.report._audit import AuditResult, audit
from fairfrontier.report._evaluate import Evaluation, GroupCounts, evaluate, evaluate_chunks
from fairfrontier.report._outputs import render_html
from fairfrontier.report._summarise import Settings, summarise
from fairfrontier.report._tables import frontier_csv, groups_csv, points_csv

__all__ = [
    "AuditResult",
    "Evaluation",
    "GroupCounts",
    "Settings",
    "audit",
    "evaluate",
    "evaluate_chunks",
    "frontier_csv",
    "groups_csv",
    "points_csv",
    "render_html",
    "summarise",
]
