"""
Several attributes at once
==========================

A model can be fair between genders and unfair between races. With several sensitive attributes fairness is that of the
worst one (``sensitive_mode="separate"``), or of all combinations of groups (``"intersectional"``, which is stricter).
The composite FAUC is one number for all attributes: the volume under the TAF *surface*.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_compas
from fairfrontier.learners import forest_trees

data = load_compas()
people = data.sensitive_features[["gender", "race"]]
X, X_test, y, y_test, _, people_test = train_test_split(
    design_matrix(data).values, data.target, people, test_size=0.5, random_state=0
)
trees = forest_trees(RandomForestClassifier(150, min_samples_leaf=15, max_features=4, random_state=0).fit(X, y))
scores = dict(zip(trees.names, trees.predict_matrix(X_test).T, strict=True))

# %%
# Each tree has a fairness for each attribute. The diagonal shows where they agree; few trees lie on it.

separate = ff.tradeoff_points(y_test, scores, sensitive_features=people_test)
crossed = ff.tradeoff_points(y_test, scores, sensitive_features=people_test, sensitive_mode="intersectional")
by_attribute = separate.attribute_fairness

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
shown = left.scatter(by_attribute["gender"], by_attribute["race"], c=separate.accuracy, s=28, cmap="viridis")
low = min(by_attribute["gender"].min(), by_attribute["race"].min()) - 0.02
left.plot([low, 1], [low, 1], color="0.7", linewidth=1, zorder=0)
left.set(xlim=(low, 1.01), ylim=(low, 1.01), xlabel="Fairness between genders", ylabel="Fairness between races")
left.set_title("Trees of a forest on COMPAS", loc="left", fontsize=11)
figure.colorbar(shown, ax=left, label="Accuracy", shrink=0.85)

one = {name: ff.taf_curve(level, separate.accuracy) for name, level in by_attribute.items()}
ff.TAFDisplay.from_curves(
    {
        "gender alone": one["gender"],
        "race alone": one["race"],
        "the worse of both": separate.frontier(),
        "all four combinations": crossed.frontier(),
    }
).plot(ax=right, title="The more that must be fair, the more it costs")
plt.show()

# %%
# The volume under the surface, each attribute with its own weight:

both = ff.composite_fauc(by_attribute, separate.accuracy, weights=[ff.StepWeight(0.8), ff.StepWeight(0.8)])
alone = {name: ff.fauc(curve, ff.StepWeight(0.8)) for name, curve in one.items()}
print("FAUC", {name: round(value, 3) for name, value in alone.items()}, "composite", round(both, 3))
print(
    "largest fairness gap between the attributes:", np.abs(by_attribute["gender"] - by_attribute["race"]).max().round(3)
)
