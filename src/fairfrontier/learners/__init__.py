"""Learners: the model families to stack, and the three fair methods to compare with."""

from fairfrontier.learners._fair import FairGrid
from fairfrontier.learners._family import FamilyUnion, ModelFamily
from fairfrontier.learners._trees import TreeFamily, forest_trees
from fairfrontier.learners.adversarial import AdversarialDebiasing
from fairfrontier.learners.fagtb import FAGTB
from fairfrontier.learners.kitchen import kitchen_sink
from fairfrontier.learners.minipatch import MinipatchTrees, MinipatchTreesRegressor
from fairfrontier.learners.reductions import Reductions
from fairfrontier.learners.zoo import FittedModels, classifier_zoo, fit_models, regressor_zoo

__all__ = [
    "AdversarialDebiasing",
    "FAGTB",
    "FairGrid",
    "FamilyUnion",
    "FittedModels",
    "MinipatchTrees",
    "MinipatchTreesRegressor",
    "ModelFamily",
    "Reductions",
    "TreeFamily",
    "classifier_zoo",
    "fit_models",
    "forest_trees",
    "kitchen_sink",
    "regressor_zoo",
]
