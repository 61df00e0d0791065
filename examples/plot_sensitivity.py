"""Does the best family of models depend on how much fairness matters?

Three families are fitted on the COMPAS data and ranked under a grid of weights x^alpha·1{x > beta}. The picture shows
the best family under each weight and how far it is ahead.

    python examples/plot_sensitivity.py --out sensitivity.png
"""

import argparse
from pathlib import Path

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairfrontier as ff
from fairfrontier.datasets import load_compas
from fairfrontier.quantify.sensitivity import SensitivityDisplay, fauc_sensitivity

FAMILIES = {
    "logistic": [
        make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2000)) for c in (1e-4, 1e-3, 1e-2, 1)
    ],
    "forest": [RandomForestClassifier(50, max_depth=d, random_state=0) for d in (2, 4, 8, 16)],
    "naive Bayes": [make_pipeline(StandardScaler(), GaussianNB(var_smoothing=s)) for s in (1e-9, 0.1, 1.0, 10.0)],
}


def family_curves() -> dict[str, ff.TAFCurve]:
    """Fit the families and return their TAF curves on held-out rows."""
    data = load_compas()
    race = data.sensitive_features["race"]
    X, X_test, y, y_test, _, race_test = train_test_split(data.data, data.target, race, test_size=0.4, random_state=0)
    curves = {}
    for family, models in FAMILIES.items():
        scores = {f"{family}/{i}": model.fit(X, y).predict_proba(X_test)[:, 1] for i, model in enumerate(models)}
        curves[family] = ff.tradeoff_points(y_test, scores, sensitive_features=race_test).frontier()
    return curves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("sensitivity.png"))
    arguments = parser.parse_args()
    result = fauc_sensitivity(family_curves())
    print(f"{'alpha':>6} {'beta':>5}  " + "  ".join(f"{name:>12}" for name in result.families))
    for i, alpha in enumerate(result.alphas):
        for j, beta in enumerate(result.betas):
            cells = (f"{result.scores[i, j, k]:.4f} ({result.ranks[i, j, k]})" for k in range(len(result.families)))
            print(f"{alpha:6g} {beta:5g}  " + "  ".join(f"{cell:>12}" for cell in cells))
    for family, share in result.share_first.items():
        print(f"{family} is first under {share:.0%} of the weights")
    display = SensitivityDisplay(result).plot(title="Best family on COMPAS, by race")
    display.figure_.savefig(arguments.out, dpi=150)


if __name__ == "__main__":
    main()
