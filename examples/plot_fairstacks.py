"""
FairStacks against its members
==============================

Stacking takes the models that you have and finds the best linear combination under a limit on the bias of its score.
The stack's whole path, from most accurate to fairest and beyond, comes from one factorisation. The base models of the
frontier are those that were best where the stack was fitted: both curves are evaluated on rows that neither has seen.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_adult
from fairfrontier.learners import fit_models, forest_trees, kitchen_sink

# %%
# Adult, gender. 6,000 rows train the base models, 6,000 fit the stack, 12,000 value both.

data = load_adult()
X, y, gender = design_matrix(data).values, data.target.to_numpy(), data.sensitive_features["gender"].to_numpy()
X, X_test, y, y_test, gender, gender_test = train_test_split(
    X, y, gender, train_size=12_000, test_size=12_000, random_state=0, stratify=gender
)
X_base, X_fit, y_base, y_fit, _, gender_fit = train_test_split(X, y, gender, test_size=0.5, random_state=0)

forest = RandomForestClassifier(80, min_samples_leaf=5, random_state=0).fit(X_base, y_base)
classifiers = [
    ("classifiers/logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
    ("classifiers/boosting", GradientBoostingClassifier(n_estimators=80, max_features=20, random_state=0)),
]
family = kitchen_sink(forest_trees(forest), fit_models(classifiers, X_base, y_base))
H_fit = dict(zip(family.names, family.predict_matrix(X_fit).T, strict=True))
H_test = dict(zip(family.names, family.predict_matrix(X_test).T, strict=True))

# %%
# The stack takes predictions (``"precomputed"``), unfitted estimators, or fitted ones (``cv="prefit"``).

stack = ff.FairStacksClassifier("precomputed", random_state=0).fit(H_fit, y_fit, sensitive_features=gender_fit)
best = ff.tradeoff_points(y_fit, H_fit, sensitive_features=gender_fit).frontier().support
members = ff.tradeoff_points(y_test, H_test, sensitive_features=gender_test)

weight = ff.StepWeight(0.8)
display = ff.TAFDisplay.from_points(
    {
        f"the best of {len(family.names)} base models": members.select(best),
        "their fair stack": stack.points(H_test, y_test, sensitive_features=gender_test),
    },
    scores=lambda curve: ff.fauc(curve, weight),
)
display.plot(title="Adult: base models and their fair stack, on new rows", min_fairness=0.75)
display.ax_.scatter(members.fairness, members.accuracy, s=7, color="#0072B2", alpha=0.35, linewidths=0, zorder=1)
plt.show()

# %%
# Choose an operating point without fitting again:

fair = stack.select(min_fairness=0.95)
print(f"accuracy {fair.score(H_test, y_test):.3f}, ridge {stack.alpha_:.3g}, {len(stack.path_)} stacks on the path")
