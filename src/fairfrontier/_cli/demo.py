"""The main job on an embedded data set: models, their frontier, a fair stack beyond it, a picture and a report."""

from dataclasses import dataclass
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
from fairfrontier.datasets import design_matrix, load_adult
from fairfrontier.identify._display import TAFDisplay
from fairfrontier.identify._points import CONSTANT
from fairfrontier.learners import MinipatchTrees, fit_models, kitchen_sink
from fairfrontier.optimize._fairstacks import FairStacksClassifier
from fairfrontier.quantify._fauc import StepWeight, fauc
from fairfrontier.quantify._inference import fauc_interval
from fairfrontier.report import Evaluation, Settings, evaluate, summarise
from fairfrontier.report._outputs import output_names
from fairfrontier.report._stack import path_names
from fairfrontier.report._summarise import STACK_FAMILY as FAMILY
from fairfrontier.report._summarise import join_points

DEMO_OUTPUTS = (*output_names(), "taf.png")
WEIGHT = StepWeight(0.8)
N_TREES = 200


@dataclass(frozen=True, eq=False)
class Split:
    """Adult in three parts: one to train models, one to fit the stack, one to evaluate both."""

    X: NDArray[Any]
    y: NDArray[Any]
    gender: NDArray[Any]
    train: NDArray[np.intp]
    ensemble: NDArray[np.intp]
    test: NDArray[np.intp]


def split_adult() -> Split:
    """Return Adult split 50/25/25."""
    bunch = load_adult(as_frame=False)
    order = np.random.default_rng(0).permutation(len(bunch.target))
    train, ensemble, test = np.split(order, [len(order) // 2, 3 * len(order) // 4])
    return Split(design_matrix(bunch).values, bunch.target, bunch.sensitive_features["gender"], train, ensemble, test)


def fit_family(split: Split) -> Any:
    """Return five classifiers and many small trees, fitted on the training part."""
    models = [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
        ("naive bayes", BernoulliNB()),
        ("tree", DecisionTreeClassifier(min_samples_leaf=20, ccp_alpha=1e-4, random_state=0)),
        ("forest", RandomForestClassifier(100, min_samples_leaf=3, random_state=0)),
        ("boosting", HistGradientBoostingClassifier(max_leaf_nodes=15, max_iter=100, random_state=0)),
    ]
    X, y = split.X[split.train], split.y[split.train]
    return kitchen_sink(fit_models(models, X, y), MinipatchTrees(n_estimators=N_TREES, random_state=0).fit(X, y))


@dataclass(frozen=True, eq=False)
class DemoResult:
    """The summary, and the base models and the stack on the test part."""

    summary: dict[str, Any]
    base: Evaluation
    stack: Evaluation


def run_demo() -> DemoResult:
    """Train models, fit a fair stack of them, and evaluate both on rows that neither has seen."""
    with threadpool_limits(limits=1):  # small models and products: threads would mostly wait for one another
        return _run_demo()


def _run_demo() -> DemoResult:
    split = split_adult()
    family = fit_family(split)
    y, gender = split.y[split.test], {"gender": split.gender[split.test]}
    scores = family.predict_matrix(split.X[split.test])
    base = evaluate(y, scores, sensitive_features=gender, names=family.names)
    stack = fit_demo_stack(split, family, scores)
    interval = fauc_interval(y, scores, sensitive_features=gender, weight=WEIGHT, n_resamples=200, random_state=0)
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
    return DemoResult(summary, base, stack)


def fit_demo_stack(split: Split, family: Any, scores: NDArray[Any]) -> Evaluation:
    """Return a fair stack's path, fitted on the ensemble part, on the test part."""
    model = FairStacksClassifier(list(family.names), cv="precomputed", weight=WEIGHT, random_state=0)
    gender = {"gender": split.gender[split.ensemble]}
    model.fit(family.predict_matrix(split.X[split.ensemble]), split.y[split.ensemble], sensitive_features=gender)
    return evaluate(
        split.y[split.test],
        np.clip(model.predict_path(scores), 0.0, 1.0),
        sensitive_features={"gender": split.gender[split.test]},
        names=path_names(family.names, model.path_),
        include_constant=False,
    )


def save_picture(result: DemoResult, path: Path) -> None:
    """Draw the TAF curves of the base models and of the stack."""
    pyplot = require("matplotlib.pyplot", extra="plot", purpose="The picture of the demo")
    constant = result.base.points.select([CONSTANT])
    families = {"base models": result.base.points, FAMILY: join_points(constant, result.stack.points)}
    scores = {name: fauc(points.frontier(), WEIGHT) for name, points in families.items()}
    with pyplot.rc_context({"backend": "agg"}):
        display = TAFDisplay.from_points(families, scores=scores)
        display.plot(title="Adult: fairness between genders (demographic parity) and accuracy", min_fairness=0.7)
        display.figure_.savefig(path, dpi=160)
        pyplot.close(display.figure_)
