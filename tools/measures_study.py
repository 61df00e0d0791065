"""Measure what ratios and probable groups deliver; the figures of results/measures.md.

python tools/measures_study.py bounds|stacks|ratios [splits] [data sets]
"""

import sys

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff

# Data set, attribute, and the areas under the curve of the probabilities of groups.
TASKS = {"adult": "gender", "compas": "race", "default": "gender", "bank": "age"}
AREAS = (0.7, 0.8, 0.9, 0.95)
# Rows of the fit and of the test.
FIT, TEST = 6000, 6000


def base_models():
    """Return quick models of different kinds."""
    boosting = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=0)
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "boosting": boosting,
        "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
        "bayes": make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-2)),
    }


def load(name):
    """Return features without the attribute, labels and groups."""
    bunch = getattr(ff.datasets, f"load_{name}")()
    group = np.asarray(bunch.sensitive_features[TASKS[name]].astype(str))
    X = np.asarray(ff.datasets.design_matrix(bunch, drop_sensitive=True).values, dtype=np.float64)
    return X, np.asarray(bunch.target).astype(int), group


def split(X, y, group, seed):
    """Return features, labels and groups of the rows of the fit and of the test."""
    order = np.random.default_rng(seed).permutation(len(y))
    fitted = min(FIT, len(y) // 2)
    return [(X[part], y[part], group[part]) for part in (order[:fitted], order[fitted : fitted + TEST])]


def stack(fairness="demographic_parity"):
    """Return an unfitted stack; it adds models of the attribute itself."""
    return ff.FairStacksClassifier(list(base_models().items()), fairness=fairness, cv=3, random_state=0)


def probabilities(group, area, rng):
    """Return exact probabilities (n, 2) of the groups given a signal of a given area under the curve."""
    second = group == np.unique(group)[1]
    apart, share = np.sqrt(2.0) * norm.ppf(area), second.mean()
    signal = rng.normal(apart * second)
    odds = share / (1.0 - share) * np.exp(apart * signal - apart**2 / 2.0)
    p = odds / (1.0 + odds)
    return np.column_stack([1.0 - p, p])


def bounds(draws):
    """Print how often the bounds hold the fairness of four models on Adult."""
    (X, y, group), (X_test, y_test, group_test) = split(*load("adult"), 0)
    H = np.column_stack([model.fit(X, y).predict_proba(X_test)[:, 1] for model in base_models().values()])
    y, group = y_test, group_test
    for area in AREAS:
        rng = np.random.default_rng(0)
        held, width, errors = [], [], {"weighted": [], "thresholded": []}
        for _ in range(draws // len(AREAS)):
            rows = rng.choice(len(y), 2000, replace=False)
            groups = ff.ProbableGroups(probabilities(group[rows], area, rng))
            true = ff.tradeoff_points(y[rows], H[rows], sensitive_features=group[rows], include_constant=False).fairness
            found = ff.fairness_bounds(y[rows], H[rows], sensitive_features=groups)
            held.append((found.low <= true) & (true <= found.high))
            width.append(found.high - found.low)
            for name, kept in errors.items():
                kept.append(getattr(found, name) - true)
        shown = ", ".join(f"{name} {np.mean(kept):+.3f}" for name, kept in errors.items())
        print(f"AUC {area}: held {np.mean(held):.1%}, width {np.mean(width):.3f}; error of the estimators: {shown}")


def stacks(splits):
    """Print the fairness gained by stacks that know the groups, and by stacks that know probabilities."""
    data = load("adult")
    for area in AREAS:
        gains = []
        for seed in range(splits):
            (X, y, group), (X_test, y_test, group_test) = split(*data, seed)
            p, delivered = probabilities(group, area, np.random.default_rng(seed)), []
            named = {"groups": np.unique(group), "name": "group"}
            probable = [ff.ProbableGroups(p, independent_given=given, **named) for given in ("probabilities", "group")]
            for given in ({"group": group}, *probable):
                model = stack().fit(X, y, sensitive_features=given)
                points = model.points(X_test, y_test, sensitive_features={"group": group_test})
                chosen = model.select(0.98).predict(X_test)
                test = ff.tradeoff_points(y_test, chosen, sensitive_features=group_test, include_constant=False)
                delivered.append((test.fairness[0] - points.fairness[0], test.accuracy[0]))
            gains.append(delivered)
        known, *others = np.mean(gains, axis=0)
        print(f"AUC {area}: gain with groups {known[0]:.3f} (accuracy {known[1]:.3f})", end="")
        for name, one in zip(("weighted", "restored"), others, strict=True):
            print(f"; {name} {one[0]:.3f} ({one[1]:.3f}), {one[0] / known[0]:.0%}", end="")
        print(flush=True)


def ratios(splits, names):
    """Print what is delivered where a ratio of .8, and where a fairness of .95, is asked for."""
    for name in names:
        data, found = load(name), {}
        for seed in range(splits):
            (X, y, group), (X_test, y_test, group_test) = split(*data, seed)
            for measure, asked in (("impact_ratio", 0.8), ("demographic_parity", 0.95)):
                model = stack(measure).fit(X, y, sensitive_features=group)
                for kind, more in (("plain", {}), ("randomised", {"randomize": True})):
                    chosen = model.select(asked, **more)
                    mixed = chosen.selection_.kind == "mixture"
                    accepted = chosen.predict_proba(X_test)[:, 1] if mixed else chosen.predict(X_test)
                    one = delivered(accepted, y_test, group_test, measure)
                    found.setdefault((measure, asked, kind), []).append(one)
        for (measure, asked, kind), rows in found.items():
            values, right, errors = np.transpose(rows)
            print(f"| {name} | {measure} | {kind} | {asked} | {np.median(values):.3f} | {values.min():.3f} ", end="")
            print(f"| {(values < asked).sum()} of {splits} | {np.median(errors):.3f} ", end="")
            print(f"| {(values < asked - 2 * errors).sum()} of {splits} | {right.mean():.3f} |", flush=True)


def delivered(accepted, y, group, measure):
    """Return expected fairness and accuracy of decisions that are 1 with given probabilities, and fairness's error."""
    by_group = [accepted[group == one] for one in np.unique(group)]
    rates = np.array([rows.mean() for rows in by_group])
    variances = np.array([rows.var() / len(rows) for rows in by_group])
    low, high = rates.argmin(), rates.argmax()
    if measure == "impact_ratio":
        fairness = rates[low] / rates[high] if rates[high] else 1.0
        apart = [low, high]
        error = fairness * np.sqrt((variances[apart] / np.maximum(rates[apart], 1e-12) ** 2).sum())
    else:
        fairness, error = 1.0 - (rates[high] - rates[low]), np.sqrt(variances[low] + variances[high])
    return fairness, np.where(y == 1, accepted, 1.0 - accepted).mean(), error


if __name__ == "__main__":
    what, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    if what == "ratios":
        ratios(count, sys.argv[3:] or list(TASKS))
    else:
        {"bounds": bounds, "stacks": stacks}[what](count)
