"""Learners: the model families to stack, models of the attribute, and the fair methods to compare with."""

from fairfrontier.learners._adversarial import AdversarialDebiasing
from fairfrontier.learners._fagtb import FAGTB
from fairfrontier.learners._fair_learner import FairGrid
from fairfrontier.learners._family import FamilyUnion, ModelFamily
from fairfrontier.learners._group_models import GroupModels, fit_group_models
from fairfrontier.learners._kernel_fair import KernelFair
from fairfrontier.learners._plug_in import FCSC, FPIR, LinearPost
from fairfrontier.learners._reductions import Reductions
from fairfrontier.learners._trees import MinipatchTrees, MinipatchTreesRegressor, TreeFamily, forest_trees
from fairfrontier.learners._zoo import FittedModels, classifier_zoo, fit_models, kitchen_sink, regressor_zoo

__all__ = [
    "AdversarialDebiasing",
    "FAGTB",
    "FCSC",
    "FPIR",
    "FairGrid",
    "FamilyUnion",
    "FittedModels",
    "GroupModels",
    "KernelFair",
    "LinearPost",
    "MinipatchTrees",
    "MinipatchTreesRegressor",
    "ModelFamily",
    "Reductions",
    "TreeFamily",
    "classifier_zoo",
    "fit_group_models",
    "fit_models",
    "forest_trees",
    "kitchen_sink",
    "regressor_zoo",
]
