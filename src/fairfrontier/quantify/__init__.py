"""Quantify the frontier: weights, FAUC, how sure we are of it, and the weights that people hold."""

from fairfrontier.quantify._bands import TAFBands, taf_bands
from fairfrontier.quantify._composite import composite_fauc
from fairfrontier.quantify._elicitation import (
    Choice,
    Elicitation,
    Question,
    Questionnaire,
    Requirement,
    elicit_weight,
    fit_answers,
)
from fairfrontier.quantify._fauc import (
    PointWeight,
    PowerWeight,
    StepWeight,
    TabulatedWeight,
    UniformWeight,
    Weight,
    fauc,
    fauc_score,
)
from fairfrontier.quantify._honest import honest_curve, honest_taf
from fairfrontier.quantify._inference import FAUCComparison, FAUCInterval, compare_fauc, fauc_interval
from fairfrontier.quantify._sensitivity import FAUCSensitivity, SensitivityDisplay, fauc_sensitivity

__all__ = [
    "Choice",
    "Elicitation",
    "FAUCComparison",
    "FAUCInterval",
    "FAUCSensitivity",
    "PointWeight",
    "PowerWeight",
    "Question",
    "Questionnaire",
    "Requirement",
    "SensitivityDisplay",
    "StepWeight",
    "TAFBands",
    "TabulatedWeight",
    "UniformWeight",
    "Weight",
    "compare_fauc",
    "composite_fauc",
    "elicit_weight",
    "fauc",
    "fauc_interval",
    "fauc_score",
    "fauc_sensitivity",
    "fit_answers",
    "honest_curve",
    "honest_taf",
    "taf_bands",
]
