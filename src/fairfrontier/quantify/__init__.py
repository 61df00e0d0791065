"""Quantify the frontier: weights, FAUC, FAUCI and composite FAUC."""

from fairfrontier.quantify.composite import composite_fauc
from fairfrontier.quantify.fauc import fauc, fauc_score
from fairfrontier.quantify.weights import (
    PointWeight,
    PowerWeight,
    StepWeight,
    TabulatedWeight,
    UniformWeight,
    Weight,
)

__all__ = [
    "PointWeight",
    "PowerWeight",
    "StepWeight",
    "TabulatedWeight",
    "UniformWeight",
    "Weight",
    "composite_fauc",
    "fauc",
    "fauc_score",
]
