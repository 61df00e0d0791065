"""A stack of a forest, minipatches and a zoo of classifiers, fitted and asked as one estimator."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from fairfrontier import FairStacksClassifier
from fairfrontier.datasets import load_adult
from fairfrontier.datasets._design import design_matrix
from fairfrontier.learners import MinipatchTrees, classifier_zoo

from ._common import Row, race

N_ROWS, N_NEW = 4_000, 10_000
N_FOLDS = 5


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    X, y, gender = _adult(N_ROWS + N_NEW)
    X, X_new, y, gender = X[:N_ROWS], X[N_ROWS:], y[:N_ROWS], gender[:N_ROWS]
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
    patches = MinipatchTrees(500, random_state=0)
    zoo = classifier_zoo()
    stack = FairStacksClassifier([("forest", forest), ("mini", patches), ("zoo", zoo)], cv=N_FOLDS, random_state=0)

    def folds() -> None:
        for model in (forest, patches, *(model for _, model in zoo)):
            cross_val_predict(model, X, y, cv=N_FOLDS, method="predict_proba")

    theirs = _seconds(folds)
    ours = _seconds(lambda: stack.fit(X, y, sensitive_features=gender))
    yield Row.at_most(
        1.3,
        work=f"fit a stack of 200 trees, 500 minipatches and 12 classifiers; {N_ROWS:,} rows of Adult",
        against="the same models by cross_val_predict with 5 folds",
        ours=ours,
        theirs=theirs,
        note="one run; ours fits every model to all rows too, and models of the attribute",
    )
    yield from _predictions(stack, X_new)
    trees = FairStacksClassifier([("forest", forest), ("mini", patches)], group_models=None, random_state=0)
    trees.fit(X, y, sensitive_features=gender)
    own = dict(trees.estimators_)
    times = race({"stack": lambda: trees.predict(X_new), "forest": lambda: own["forest"].predict(X_new)}, repeats=5)
    yield Row.at_most(
        2.0,
        work=f"predict {N_NEW:,} rows with a stack of the 200 trees and 500 minipatches alone",
        against="the forest alone",
        ours=times["stack"],
        theirs=times["forest"],
    )


def _predictions(stack: FairStacksClassifier, X_new: Any) -> Iterator[Row]:
    """Yield what a prediction of the whole stack costs, against its forest and against its models one by one."""
    own = dict(stack.estimators_)
    others = [model for name, model in own.items() if name not in ("forest", "mini")]
    rivals: dict[str, Callable[[], Any]] = {
        "stack": lambda: stack.predict(X_new),
        "forest": lambda: own["forest"].predict(X_new),
        "others": lambda: [model.predict(X_new) for model in others],
        "models": lambda: [model.predict(X_new) for model in own.values()],
    }
    times = race(rivals, repeats=3)
    plain = times["others"] / times["forest"]
    for limit, against, rival, note in (
        (2.0, "the forest alone", "forest", f"the classifiers' own predict takes {plain:.1f} × the forest's time"),
        (1.3, "predict of each of its models", "models", ""),
    ):
        work = f"predict {N_NEW:,} rows with that stack"
        yield Row.at_most(limit, work=work, against=against, ours=times["stack"], theirs=times[rival], note=note)


def _adult(n_rows: int) -> tuple[Any, Any, Any]:
    data = load_adult()
    chosen = np.random.default_rng(0).permutation(len(data.target))[:n_rows]
    X = design_matrix(data).values[chosen]
    return X, data.target.to_numpy()[chosen], data.sensitive_features["gender"].to_numpy()[chosen]


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
