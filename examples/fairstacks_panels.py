"""Draw what stacking gains, and how decision fairness follows score fairness: the paper's Figure 1, panels C and D.

    python examples/fairstacks_panels.py                    # examples/output/fairstacks_panels.png
    python examples/fairstacks_panels.py --out panels.png
    python examples/fairstacks_panels.py --small            # few trees and simple classifiers, in seconds

COMPAS, race, demographic parity. Half of the rows train the base models (the trees of a forest and a few classifiers),
a quarter fits the stack and a quarter, seen by neither, is drawn.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairfrontier as ff
from fairfrontier.datasets import design_matrix, load_compas
from fairfrontier.learners import forest_trees, kitchen_sink
from fairfrontier.learners._zoo import fit_models

WEIGHT = ff.StepWeight(0.8)
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6A6A6A"
# Positions along the signed path at which panel D looks.
POSITIONS = np.linspace(1.0, -1.5, 101)


def split(seed):
    """Return features, labels and groups of the three parts of COMPAS."""
    bunch = load_compas()
    X, y = design_matrix(bunch).values, np.asarray(bunch.target)
    race = np.asarray(bunch.sensitive_features["race"])
    strata = [f"{label}{group}" for label, group in zip(y, race, strict=True)]
    rows = np.arange(len(y))
    train, rest = train_test_split(rows, test_size=0.5, random_state=seed, stratify=strata)
    fit, test = train_test_split(rest, test_size=0.5, random_state=seed, stratify=[strata[i] for i in rest])
    return [(X[part], y[part], race[part]) for part in (train, fit, test)]


def base_models(X, y, *, small, seed):
    """Return the trees of a forest and a few classifiers as one family of models."""
    forest = RandomForestClassifier(20 if small else 200, min_samples_leaf=5, random_state=seed).fit(X, y)
    classifiers = [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))),
        ("naive Bayes", GaussianNB()),
    ]
    if not small:
        classifiers.append(("boosting", GradientBoostingClassifier(random_state=seed)))
    return kitchen_sink(forest_trees(forest), fit_models(classifiers, X, y))


def panel_c(ax, model, family, fitted_on, new):
    """Draw the frontier of the base models and that of their stack, both on new rows.

    The best of hundreds of models on the very rows that are drawn would be the luckiest one. So the base models of the
    frontier are chosen where the stack was fitted.
    """
    (H_fit, y_fit, race_fit), (H, y, race) = fitted_on, new
    chosen = ff.tradeoff_points(y_fit, named(family, H_fit), sensitive_features=race_fit).frontier().support
    members = ff.tradeoff_points(y, named(family, H), sensitive_features=race)
    display = ff.TAFDisplay.from_points(
        {
            f"base models ({len(family.names)}, the best chosen)": members.select(chosen),
            "their fair stack": model.points(H, y, sensitive_features=race),
        },
        scores=lambda curve: ff.fauc(curve, WEIGHT),
    )
    display.plot(ax=ax, title="(C) Base models and their fair stack")
    ax.scatter(members.fairness, members.accuracy, s=5, color=BLUE, alpha=0.3, linewidths=0, zorder=1)


def named(family, H):
    """Return a matrix of predictions as a dict by name."""
    return dict(zip(family.names, H.T, strict=True))


def panel_d(ax, model, H, y, race):
    """Draw score and decision bias along the signed path."""
    groups = np.unique(race)
    unconstrained = model.path_.target[0]
    scores = np.stack([model.at(target=s * unconstrained).decision_function(H) for s in POSITIONS], axis=1)
    first, second = race == groups[0], race == groups[1]
    decided = scores > 0
    score_bias = scores[first].mean(axis=0) - scores[second].mean(axis=0)
    decision_bias = decided[first].mean(axis=0) - decided[second].mean(axis=0)
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
    paper = POSITIONS >= 0
    ax.plot(
        score_bias[paper],
        decision_bias[paper],
        color=BLUE,
        linewidth=2.2,
        label="the paper's path ends without score bias",
    )
    ax.plot(
        score_bias[~paper],
        decision_bias[~paper],
        color=ORANGE,
        linewidth=2.2,
        linestyle=(0, (5, 1.5)),
        label="the signed path goes on",
    )
    marks = {"unconstrained": 0, "no score bias in training": int(np.argmin(np.abs(POSITIONS)))}
    marks["fairest decisions"] = int(np.argmin(np.abs(decision_bias)))
    for i in marks.values():
        ax.scatter(
            score_bias[i], decision_bias[i], s=42, color=BLUE if paper[i] else ORANGE, edgecolors="white", zorder=4
        )
    return marks, score_bias, decision_bias, groups


def label_panel_d(ax, marks, score_bias, decision_bias, groups):
    """Write names, axes and the legend of panel D."""
    for name, i in marks.items():  # the curve rises: above on its left and below on its right there is room
        side = -1 if i == 0 else 1
        ax.annotate(
            name,
            (score_bias[i], decision_bias[i]),
            xytext=(side * 8, 8 if side < 0 else -16),
            textcoords="offset points",
            ha="right" if side < 0 else "left",
            fontsize=9,
        )
    difference = f"{groups[0]} minus {groups[1]}"
    ax.set_xlabel(f"Score bias on new rows  ({difference})")
    ax.set_ylabel(f"Decision bias on new rows  ({difference})")
    ax.set_title("(D) Decision bias along the path of score bias", loc="left", fontsize=11)
    ax.legend(loc="best", fontsize=9, frameon=False)
    ax.grid(color="#E6E6E6", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def main(arguments=None):
    """Fit, draw and save; return the path of the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "output" / "fairstacks_panels.png")
    parser.add_argument("--small", action="store_true", help="few and simple base models")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    (X, y, _), (X_fit, y_fit, race_fit), (X_test, y_test, race_test) = split(options.seed)
    family = base_models(X, y, small=options.small, seed=options.seed)
    model = ff.FairStacksClassifier(list(family.names), cv="precomputed", random_state=options.seed)
    H_fit, H = family.predict_matrix(X_fit), family.predict_matrix(X_test)
    model.fit(H_fit, y_fit, sensitive_features=race_fit)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12.5, 5.2), layout="constrained")
    panel_c(left, model, family, (H_fit, y_fit, race_fit), (H, y_test, race_test))
    label_panel_d(right, *panel_d(right, model, H, y_test, race_test))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=150)
    pyplot.close(figure)
    print(f"{options.out}: {len(family.names)} base models, {len(y_test):,} new rows")
    return options.out


if __name__ == "__main__":
    main()
