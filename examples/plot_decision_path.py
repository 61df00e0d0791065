"""
Every stack of the path, not twenty of them
===========================================

With the squared loss the scores are affine along the path, so each row changes its decision at most once. Sorting these
changes gives accuracy and fairness at *every* position: the frontier of a continuum of stacks, for the price of a sort.
A grid of twenty stacks misses what lies between its points.
"""

import time

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_adult
from fairfrontier.learners import forest_trees

data = load_adult()
X, y, gender = design_matrix(data).values, data.target.to_numpy(), data.sensitive_features["gender"].to_numpy()
X, X_test, y, y_test, gender, gender_test = train_test_split(
    X, y, gender, train_size=8_000, test_size=4_000, random_state=0, stratify=gender
)
X_base, X_fit, y_base, y_fit, _, gender_fit = train_test_split(X, y, gender, test_size=0.5, random_state=0)
trees = forest_trees(RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(X_base, y_base))
H_fit, H_test = trees.predict_matrix(X_fit), trees.predict_matrix(X_test)
stack = ff.FairStacksClassifier("precomputed", random_state=0).fit(H_fit, y_fit, sensitive_features=gender_fit)

# %%
# The decision path has one state for each set of decisions that occurs.

start = time.perf_counter()
path = stack.decision_path(H_test, y_test, sensitive_features=gender_test)
elapsed = time.perf_counter() - start
states = path.points()
grid = stack.points(H_test, y_test, sensitive_features=gender_test)
exact = stack.exact_frontier(H_test, y_test, sensitive_features=gender_test)

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
left.plot(path.position, states.accuracy, color="#0072B2", linewidth=1, label="accuracy")
left.plot(path.position, states.fairness, color="#D55E00", linewidth=1, label="fairness")
marks = stack.path_.target / stack.path_.target[0]
left.plot(marks, grid.accuracy[:-1], "o", color="#0072B2", markersize=4)
left.plot(marks, grid.fairness[:-1], "o", color="#D55E00", markersize=4)
left.set(xlabel="Position on the path  (1: unconstrained, 0: no score bias)", xlim=(1.02, path.position[0]))
left.set_title(
    f"{len(path):,} states in {1000 * elapsed:.0f} ms; dots: the twenty of the grid", loc="left", fontsize=11
)
left.legend(frameon=False, loc="center left")
left.spines[["top", "right"]].set_visible(False)
left.grid(color="#EBEBEB", linewidth=0.7)
ff.TAFDisplay.from_curves(
    {"all stacks of the path": exact, "twenty of them": grid.frontier()},
    scores=lambda c: ff.fauc(c, ff.StepWeight(0.8)),
).plot(ax=right, min_fairness=0.75, title="The frontier of the continuum")
plt.show()
