"""
A randomised model that can be audited
======================================

A point between two models can be deployed as a random choice between them. ``RandomizedMixture`` draws by a keyed hash
of the record's id: the same person always meets the same model, nobody without the secret can foresee it, and an
auditor who has the secret can replay any single decision.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_compas

data = load_compas()
X, X_test, y, y_test, _, race = train_test_split(
    design_matrix(data).values,
    data.target.to_numpy(),
    data.sensitive_features["race"].to_numpy(),
    test_size=0.5,
    random_state=0,
)
models = [
    ("logistic", make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)),
    ("stump", DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)),
]
scores = {name: model.predict_proba(X_test)[:, 1] for name, model in models}
points = ff.tradeoff_points(y_test, scores, sensitive_features=race)
hull = points.frontier("signed")

# %%
# The mixture for fairness 0.9: its expected value lies on the hull, and what a secret makes of it scatters around.

ids = [f"case {i}" for i in range(len(y_test))]
realised = []
for number in range(60):
    secret = f"a secret of the auditor, number {number}"
    mixture = ff.RandomizedMixture.from_points(points, models, min_fairness=0.9, secret=secret)
    report = mixture.report(X_test, y_test, ids=ids, sensitive_features=race)
    realised.append((report.realised_fairness, report.realised_accuracy))

display = ff.TAFDisplay.from_curves({"one model": points.frontier(), "randomised": hull}, points={"one model": points})
display.plot(name_models=True, title="COMPAS: a randomised model at fairness 0.9", min_fairness=0.7)
display.ax_.scatter(
    *np.array(realised).T, s=12, color="#D55E00", alpha=0.45, linewidths=0, label="what 60 secrets gave"
)
display.ax_.scatter(
    report.expected_fairness,
    report.expected_accuracy,
    s=130,
    marker="*",
    color="#D55E00",
    edgecolors="white",
    zorder=6,
    label="expected",
)
display.ax_.legend(loc="lower left", fontsize=9)
plt.show()

# %%
# Replay one decision:

print(mixture)
print(mixture.explain("case 17"))
