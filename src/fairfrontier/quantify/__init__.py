"""Quantify the frontier: weights, FAUC, how sure we are of it, and the weights that people hold."""

from fairfrontier.quantify.bands import TAFBands, taf_bands
from fairfrontier.quantify.composite import composite_fauc
from fairfrontier.quantify.elicitation import Choice, Elicitation, Requirement, elicit_weight, fit_answers
from fairfrontier.quantify.fauc import fauc, fauc_score
from fairfrontier.quantify.honest import honest_taf
from fairfrontier.quantify.inference import FAUCComparison, FAUCInterval, compare_fauc, fauc_interval
from fairfrontier.quantify.questions import Questionnaire
from fairfrontier.quantify.sensitivity import FAUCSensitivity, SensitivityDisplay, fauc_sensitivity
from fairfrontier.quantify.weights import (
    PointWeight,
    PowerWeight,
    StepWeight,
    TabulatedWeight,
    UniformWeight,
    Weight,
)

__all__ = [
    "Choice",
    "Elicitation",
    "FAUCComparison",
    "FAUCInterval",
    "FAUCSensitivity",
    "PointWeight",
    "PowerWeight",
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
    "honest_taf",
    "taf_bands",
]
