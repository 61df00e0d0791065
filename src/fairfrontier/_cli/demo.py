"""The main job on an embedded data set: models, their frontier, a fair stack beyond it, a picture and a report."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier.datasets import design_matrix, load_adult
from fairfrontier.identify._display import TAFDisplay
from fairfrontier.identify._points import CONSTANT, TradeoffPoints
from fairfrontier.learners import MinipatchTrees, fit_models, kitchen_sink
from fairfrontier.optimize._fairstacks import FairStacksClassifier
from fairfrontier.quantify._fauc import StepWeight, fauc
from fairfrontier.quantify._inference import fauc_interval
from fairfrontier.report import Settings, evaluate, summarise
from fairfrontier.report._outputs import output_names
from fairfrontier.report._stack import path_names
from fairfrontier.report._summarise import STACK_FAMILY as FAMILY
from fairfrontier.report._summarise import join_points

DEMO_OUTPUTS = (*output_names(), "taf.png")
WEIGHT = StepWeight(0.8)
N_TREES = 200


def run_demo() -> tuple[dict[str, Any], dict[str, TradeoffPoints]]:
    """Train models, fit a fair stack of them, and evaluate both on rows that neither has seen.

    Returns
    -------
    summary, points : dict
        What the report shows; the points of base models and stack, each with the constant model.
    """
    with threadpool_limits(limits=1):  # small models and products: threads would mostly wait for one another
        return _run_demo()


def _run_demo() -> tuple[dict[str, Any], dict[str, TradeoffPoints]]:
    bunch = load_adult(as_frame=False)
    X, y, gender = design_matrix(bunch).values, bunch.target, bunch.sensitive_features["gender"]
    order = np.random.default_rng(0).permutation(len(y))
    train, ensemble, test = np.split(order, [len(order) // 2, 3 * len(order) // 4])
    family = _fit_family(X[train], y[train])
    scores = family.predict_matrix(X[test])
    rest: dict[str, Any] = {"sensitive_features": {"gender": gender[test]}}
    model = FairStacksClassifier(list(family.names), cv="precomputed", weight=WEIGHT, random_state=0)
    model.fit(family.predict_matrix(X[ensemble]), y[ensemble], sensitive_features={"gender": gender[ensemble]})
    base = evaluate(y[test], scores, names=family.names, **rest)
    names, path = path_names(family.names, model.path_), np.clip(model.predict_path(scores), 0.0, 1.0)
    stack = evaluate(y[test], path, names=names, include_constant=False, **rest)
    interval = fauc_interval(y[test], scores, weight=WEIGHT, n_resamples=200, random_state=0, **rest)
    settings = Settings(
        source="Adult (UCI), embedded",
        label="income",
        positive="above 50,000",
        weight=WEIGHT,
        title="Adult income: fairness between genders, and what it costs",
        notes=(
            "Models trained on half of the rows, the stack fitted on a quarter, all evaluated on the last quarter.",
        ),
    )
    summary = summarise(base, settings, stack=stack, stack_family=FAMILY, interval=(interval.low, interval.high))
    with_constant = join_points(base.points.select([CONSTANT]), stack.points)
    return summary, {"base models": base.points, FAMILY: with_constant}


def _fit_family(X: FloatArray, y: NDArray[Any]) -> Any:
    """Return five classifiers and many small trees, fitted."""
    models = [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
        ("naive bayes", BernoulliNB()),
        ("tree", DecisionTreeClassifier(min_samples_leaf=20, ccp_alpha=1e-4, random_state=0)),
        ("forest", RandomForestClassifier(100, min_samples_leaf=3, random_state=0)),
        ("boosting", HistGradientBoostingClassifier(max_leaf_nodes=15, max_iter=100, random_state=0)),
    ]
    return kitchen_sink(fit_models(models, X, y), MinipatchTrees(n_estimators=N_TREES, random_state=0).fit(X, y))


def save_picture(families: dict[str, TradeoffPoints], path: Path) -> None:
    """Draw the TAF curves of the base models and of the stack."""
    pyplot = require("matplotlib.pyplot", extra="plot", purpose="The picture of the demo")
    scores = {name: fauc(points.frontier(), WEIGHT) for name, points in families.items()}
    with pyplot.rc_context({"backend": "agg"}):
        display = TAFDisplay.from_points(families, scores=scores)
        display.plot(title="Adult: fairness between genders (demographic parity) and accuracy", min_fairness=0.7)
        display.figure_.savefig(path, dpi=160)
        pyplot.close(display.figure_)
