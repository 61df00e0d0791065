"""
Score bias and decision bias along the path
===========================================

FairStacks limits the bias of the *score*, because that is linear. What people feel is the bias of the *decision*, after
the threshold. Both fall together, but they do not reach zero together: a score without bias may still decide unfairly.
The paper's path ends there. The signed path goes on, over-corrects the score, and finds the fairest decisions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_adult
from fairfrontier.learners import forest_trees

data = load_adult()
X, y, gender = design_matrix(data).values, data.target.to_numpy(), data.sensitive_features["gender"].to_numpy()
X, X_test, y, y_test, gender, gender_test = train_test_split(
    X, y, gender, train_size=10_000, test_size=12_000, random_state=0, stratify=gender
)
X_base, X_fit, y_base, y_fit, _, gender_fit = train_test_split(X, y, gender, test_size=0.5, random_state=0)
trees = forest_trees(RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(X_base, y_base))
H_fit, H_test = trees.predict_matrix(X_fit), trees.predict_matrix(X_test)
stack = ff.FairStacksClassifier("precomputed", random_state=0).fit(H_fit, y_fit, sensitive_features=gender_fit)

# %%
# ``at(target=…)`` moves to any position of the path; position 1 is unconstrained, 0 has no score bias.

positions = np.linspace(1.0, -1.6, 105)
unconstrained = stack.path_.target[0]
scores = np.stack([stack.at(target=s * unconstrained).decision_function(H_test) for s in positions], axis=1)
women, men = gender_test == "Female", gender_test == "Male"
score_bias = scores[men].mean(axis=0) - scores[women].mean(axis=0)
decision_bias = (scores[men] > 0).mean(axis=0) - (scores[women] > 0).mean(axis=0)
accuracy = ((scores > 0) == y_test[:, None]).mean(axis=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
paper, beyond = positions >= 0, positions <= 0
for axes, value in ((left, decision_bias), (right, accuracy)):
    axes.plot(score_bias[paper], value[paper], color="#0072B2", linewidth=2.4, label="the paper's path")
    axes.plot(
        score_bias[beyond],
        value[beyond],
        color="#D55E00",
        linewidth=2.4,
        linestyle=(0, (5, 1.5)),
        label="the signed path goes on",
    )
    axes.axvline(0, color="0.7", linewidth=1)
    axes.set_xlabel("Score bias on new rows  (men − women)")
    axes.grid(color="#EBEBEB", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.invert_xaxis()
fairest = int(np.abs(decision_bias).argmin())
zero = int(np.abs(positions).argmin())
left.axhline(0, color="0.7", linewidth=1)
left.scatter(score_bias[[zero, fairest]], decision_bias[[zero, fairest]], s=50, color=["#0072B2", "#D55E00"], zorder=4)
left.annotate(
    "no score bias,\nbut biased decisions",
    (score_bias[zero], decision_bias[zero]),
    xytext=(8, 12),
    textcoords="offset points",
    fontsize=9,
)
left.annotate(
    "fairest decisions",
    (score_bias[fairest], decision_bias[fairest]),
    xytext=(-8, 10),
    textcoords="offset points",
    ha="left",
    fontsize=9,
)
left.set_ylabel("Decision bias on new rows")
left.set_title("Decision bias follows score bias …", loc="left", fontsize=11)
left.legend(frameon=False, loc="lower left")
right.scatter(score_bias[[zero, fairest]], accuracy[[zero, fairest]], s=50, color=["#0072B2", "#D55E00"], zorder=4)
right.set_ylabel("Accuracy on new rows")
right.set_title("… and this is what it costs", loc="left", fontsize=11)
plt.show()
