"""Compare the paper's path with the signed one, and one ridge for all models with family scales.

    python examples/compare_paths.py --task compas-race --splits 5
    python examples/compare_paths.py --task adult-gender --splits 5 --markdown results/paths.md

Half of the rows train forest trees, minipatch trees and a zoo of classifiers, a quarter fits the stacks, and a quarter
evaluates them: FAUC with the 80 % step weight and 20 stacks per path. Nothing is tuned on the last quarter.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import fairfrontier as ff
from fairfrontier import datasets
from fairfrontier.learners import MinipatchTrees, classifier_zoo, forest_trees, kitchen_sink
from fairfrontier.learners._zoo import fit_models

WEIGHT = ff.StepWeight(0.8)
FORMS = {
    "paper path, one ridge": {"path": "paper", "family_scales": None},
    "signed path, one ridge": {"path": "signed", "family_scales": None},
    "signed path, family scales": {"path": "signed", "family_scales": "cv"},
}


def base_models(X, y, *, n_trees, seed):
    """Return the fitted families and all of them together."""
    forest = RandomForestClassifier(max(n_trees // 5, 2), random_state=seed).fit(X, y)
    families = {
        "forest trees": forest_trees(forest),
        "minipatch trees": MinipatchTrees(n_estimators=n_trees, random_state=seed).fit(X, y),
        "classifiers": fit_models(classifier_zoo(random_state=seed), X, y),
    }
    return {**families, "kitchen sink": kitchen_sink(*families.values())}


def one_split(task, *, n_trees, seed):
    """Return FAUC of each (collection, form) on the test part of one split."""
    name, attribute = task.split("-")
    bunch = getattr(datasets, f"load_{name}")()
    X, y = datasets.design_matrix(bunch).values, np.asarray(bunch.target)
    group = np.asarray(bunch.sensitive_features[attribute])
    rows = np.arange(len(y))
    strata = [f"{label}{member}" for label, member in zip(y, group, strict=True)]
    train, rest = train_test_split(rows, test_size=0.5, random_state=seed, stratify=strata)
    stack, test = train_test_split(rest, test_size=0.5, random_state=seed, stratify=[strata[i] for i in rest])
    result = {}
    for collection, family in base_models(X[train], y[train], n_trees=n_trees, seed=seed).items():
        H = {part: family.predict_matrix(X[part_rows]) for part, part_rows in (("fit", stack), ("test", test))}
        for form, options in FORMS.items():
            model = ff.FairStacksClassifier(list(family.names), cv="precomputed", random_state=seed, **options)
            model.fit(H["fit"], y[stack], sensitive_features=group[stack])
            points = model.points(H["test"], y[test], sensitive_features=group[test])
            result[collection, form] = ff.fauc(points.frontier(), WEIGHT)
    return result


def table(task, results):
    """Return a Markdown table of means and standard errors, and the kitchen sink's lead over its best part."""
    lines = [f"### {task}, {len(results)} splits", "", "| models | " + " | ".join(FORMS) + " |", "|---" * 4 + "|"]
    means = {}
    for collection in dict.fromkeys(key[0] for key in results[0]):
        cells = []
        for form in FORMS:
            values = np.array([result[collection, form] for result in results])
            means[collection, form] = values.mean()
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            cells.append(f"{values.mean():.4f} ({error:.4f})")
        lines.append(f"| {collection} | " + " | ".join(cells) + " |")
    ours = "signed path, family scales"
    best = max((c for c, _ in means if c != "kitchen sink"), key=lambda c: means[c, ours])
    lead = means["kitchen sink", ours] - means[best, ours]
    lines += ["", f"Kitchen sink minus its best part ({best}), signed path with family scales: {lead:+.4f}.", ""]
    return "\n".join(lines)


def main(arguments=None):
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="compas-race", help="data set and attribute, e.g. adult-gender")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--trees", type=int, default=1000, help="minipatch trees; the forest has a fifth of them")
    parser.add_argument("--markdown", type=Path, help="append the table to this file")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", category=ff.exceptions.ConvergenceWarning)
    results = [one_split(options.task, n_trees=options.trees, seed=seed) for seed in range(options.splits)]
    text = table(options.task, results)
    print(text)
    if options.markdown:
        with options.markdown.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
