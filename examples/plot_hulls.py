"""
What randomising buys: TAFI and the signed hull
===============================================

Whoever may decide by lot, model A for some people and model B for the others, reaches points between the models. TAFI
joins the models of the frontier by straight lines. But two models that favour *different* groups cancel each other's
bias, so that mixing them can be fairer than both. The signed hull counts that in; it is never below TAFI.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairfrontier as ff

# %%
# Rows with a known story: eight models of similar skill which lean to one group or to the other.

rng = np.random.default_rng(3)
n = 8_000
group = rng.integers(0, 2, n)
y = (rng.random(n) < 0.45).astype(int)
scores = {}
for i, lean in enumerate((-0.34, -0.27, -0.2, -0.11, 0.16, 0.24, 0.33, 0.4)):
    skill = 0.62 - 1.1 * abs(abs(lean) - 0.3)
    scores[f"model {i + 1}"] = 0.5 + skill * (y - 0.5) + lean * (group - 0.5) + rng.normal(0, 0.28, n)
points = ff.tradeoff_points(y, scores, sensitive_features=group)

# %%
# On the left, the plane in which mixtures live: a mixture's bias and accuracy are averages. On the right, the three
# curves over fairness, which is 1 minus the absolute bias: the plane folded at zero.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
bias = points.bias[:, 0]
left.axvline(0, color="0.7", linewidth=1)
left.scatter(bias, points.accuracy, s=45, c=np.where(bias < 0, "#D55E00", "#0072B2"), zorder=3)
signed = points.frontier("signed")
mixed = signed.mixture @ np.column_stack([bias[signed.support], points.accuracy[signed.support]])
left.plot(*mixed.T, color="#009E73", linewidth=2.2, label="best mixtures")
partner = signed.support[signed.mixture[-1] > 0][np.argmin(bias[signed.support[signed.mixture[-1] > 0]])]
beyond = np.array([mixed[-1], (bias[partner], points.accuracy[partner])])
left.plot(*beyond.T, color="#009E73", linewidth=1.2, linestyle=":")
left.scatter(*mixed[-1], s=90, marker="*", color="#009E73", zorder=4)
left.annotate("perfectly fair\nby lot", mixed[-1], xytext=(-8, -62), textcoords="offset points", ha="right", fontsize=9)
left.set(xlabel="Signed bias  (favours one group … the other)", ylabel="Accuracy", title="Models and their mixtures")
left.legend(frameon=False, loc="lower left")

display = ff.TAFDisplay.from_curves(
    {
        "TAF: one model": points.frontier(),
        "TAFI: mixtures, as in the paper": points.frontier(True),
        "signed hull: all mixtures": signed,
    },
    scores=ff.fauc,
)
display.plot(ax=right, title="The same models as curves", min_fairness=0.6, rule_of_80=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A point of a hull can be deployed: see `fairfrontier.RandomizedMixture` and its picture.

print(
    f"at fairness 0.99: TAF {points.frontier()(0.99):.3f}, TAFI {points.frontier(True)(0.99):.3f}, "
    f"signed {signed(0.99):.3f}"
)
