"""
How sure is a curve? Simultaneous bands
=======================================

A TAF curve comes from finitely many rows. A 95 % band holds the whole curve of the population, at all levels of
fairness at once. The same models with 600, 2,400 and 12,000 test rows:
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_adult

data = load_adult()
gender = data.sensitive_features["gender"].to_numpy()
X, X_test, y, y_test, _, gender_test = train_test_split(
    design_matrix(data).values, data.target.to_numpy(), gender, train_size=6_000, test_size=12_000, random_state=0
)
scores = {}
for depth in (2, 3, 5, 7, 9):
    for features in (8, 30, 99):
        model = DecisionTreeClassifier(max_depth=depth, max_features=features, min_samples_leaf=10, random_state=0)
        scores[f"depth {depth}, {features} features"] = model.fit(X, y).predict_proba(X_test)[:, 1]

# %%
# The interval of FAUC is in the titles. It may lie below the plain estimate: that one is too high on average, because
# the best of several noisy models was taken.

figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.2), layout="constrained", sharey=True)
for panel, n in zip(axes, (600, 2_400, 12_000), strict=True):
    part = slice(0, n)
    rows = {name: column[part] for name, column in scores.items()}
    options = {"sensitive_features": gender_test[part], "random_state": 0}
    bands = ff.taf_bands(y_test[part], rows, n_resamples=400, **options)
    interval = ff.fauc_interval(y_test[part], rows, weight=ff.StepWeight(0.8), n_resamples=400, **options)
    panel.fill_between(
        bands.grid, bands.low, bands.high, step="pre", color="#56B4E9", alpha=0.35, linewidth=0, label="95 % band"
    )
    panel.plot(
        bands.grid,
        bands.estimate(bands.grid),
        drawstyle="steps-pre",
        color="#0072B2",
        linewidth=2,
        label="TAF on these rows",
    )
    panel.set(xlim=(0.7, 1.0), ylim=(0.68, 0.9), xlabel="Fairness")
    panel.set_title(
        f"{n:,} rows\nFAUC {interval.estimate:.3f}, 95 % [{interval.low:.3f}, {interval.high:.3f}]", fontsize=10
    )
    panel.grid(color="#E6E6E6", linewidth=0.7)
    panel.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("Accuracy")
axes[0].legend(loc="lower left", frameon=False)
plt.show()

print("mean width of the last band:", np.mean(bands.high - bands.low).round(4))
