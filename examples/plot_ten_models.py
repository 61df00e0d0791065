"""
Ten models and their frontier
=============================

A data scientist has ten candidate models. Which of them are worth discussing? Those of the TAF curve: at each level of
fairness it shows the best accuracy among the models that are at least as fair. The other models are beaten by one that
is fairer *and* more accurate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_adult

# %%
# Adult: does a person earn more than 50,000 dollars a year? The sensitive attribute is gender.

data = load_adult()
X, _, y, _, gender, _ = train_test_split(
    design_matrix(data).values, data.target, data.sensitive_features["gender"], train_size=12_000, random_state=0
)
X, X_test, y, y_test, _, gender_test = train_test_split(X, y, gender, test_size=0.5, random_state=0)

models = {
    "boosting": GradientBoostingClassifier(n_estimators=80, max_features=20, random_state=0),
    "shallow boosting": GradientBoostingClassifier(n_estimators=15, max_depth=2, max_features=20, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "strict logistic": make_pipeline(StandardScaler(), LogisticRegression(C=1e-4, max_iter=500)),
    "forest": RandomForestClassifier(60, min_samples_leaf=5, random_state=0),
    "flat forest": RandomForestClassifier(60, max_depth=4, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "stump": DecisionTreeClassifier(max_depth=2, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(25)),
    "naive Bayes": BernoulliNB(),
}
scores = {name: model.fit(X, y).predict_proba(X_test)[:, 1] for name, model in models.items()}

# %%
# One call values all of them. The constant model is added: it is perfectly fair, and what a frontier falls back to.

points = ff.tradeoff_points(y_test, scores, sensitive_features=gender_test)
curve = points.frontier()
for model in curve.support:
    print(f"{points.names[model]:>17}: fairness {points.fairness[model]:.3f}, accuracy {points.accuracy[model]:.3f}")

# %%
# Large dots make the curve, small ones do not.

display = ff.TAFDisplay.from_points({"ten models": points}, scores=lambda c: ff.fauc(c, ff.StepWeight(0.8)))
display.plot(name_models=True, title="Adult: what does fairness between genders cost?", min_fairness=0.6)
beaten = np.setdiff1d(np.arange(len(points)), curve.support)
for model in beaten:
    place = (points.fairness[model], points.accuracy[model])
    display.ax_.annotate(
        points.names[model], place, xytext=(-6, -3), textcoords="offset points", ha="right", fontsize=8, color="0.45"
    )
plt.show()
