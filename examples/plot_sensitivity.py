"""
Does the winner depend on the weight?
=====================================

Before you report that one family of models is best, see whether it is best for everybody. Three families are fitted on
COMPAS and ranked under a grid of weights: x to the power alpha above beta, and 0 up to it. Each tile shows the best
family under one weight and how far it is ahead of the second.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairfrontier as ff
from fairfrontier.datasets import load_compas

families = {
    "logistic": [
        make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2000)) for c in (1e-4, 1e-3, 1e-2, 1)
    ],
    "forest": [RandomForestClassifier(50, max_depth=d, random_state=0) for d in (2, 4, 8, 16)],
    "naive Bayes": [make_pipeline(StandardScaler(), GaussianNB(var_smoothing=s)) for s in (1e-9, 0.1, 1.0, 10.0)],
}

data = load_compas()
race = data.sensitive_features["race"]
X, X_test, y, y_test, _, race_test = train_test_split(data.data, data.target, race, test_size=0.4, random_state=0)
curves = {}
for family, models in families.items():
    scores = {f"{family}/{i}": model.fit(X, y).predict_proba(X_test)[:, 1] for i, model in enumerate(models)}
    curves[family] = ff.tradeoff_points(y_test, scores, sensitive_features=race_test).frontier()

# %%
# The map, and the share of weights under which each family leads.

display = ff.SensitivityDisplay.from_curves(curves).plot(title="Best family on COMPAS, by race")
plt.show()

for family, share in display.result.share_first.items():
    print(f"{family} is first under {share:.0%} of the weights")

# %%
# A lead of .003 on 2,112 rows is within the noise: `fairfrontier.compare_fauc` says how sure a difference is.
