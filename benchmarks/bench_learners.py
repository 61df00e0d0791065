"""Learners: speed against the reference libraries in one run; their quality is in ``learner_quality``."""

import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from fairfrontier.benchmark._tasks import load_problem, split_rows
from fairfrontier.learners import FAGTB, AdversarialDebiasing, MinipatchTrees

from ._common import Row

BATCH = 128  # the reference's usual batch


@dataclass(frozen=True)
class Task:
    """A data set with the rows that learners train on and those that they predict."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    group: NDArray[Any]
    train: NDArray[np.intp]
    ensemble: NDArray[np.intp]

    def fitting(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        """Return X, y and the attribute of the training rows."""
        return self.X[self.train], self.y[self.train], self.group[self.train]


def load_task() -> Task:
    """Return Adult with gender and its first split."""
    problem = load_problem("adult")
    split = split_rows(problem, "adult", 0)
    return Task(problem.X, problem.y.astype(np.int64), problem.attributes["gender"], split.train, split.ensemble)


# ------------------------------------------------------------------------------------------------- the references


def fagtb_on_sklearn_trees(
    X: NDArray[Any],
    y: NDArray[Any],
    s: NDArray[Any],
    weight: float,
    rounds: int = 300,
    rate: float = 0.1,
    step: float = 0.03,
) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """Fit the same algorithm as `FAGTB` with one scikit-learn tree a round; return its score function."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    prior = np.log(y.mean() / (1 - y.mean()))
    a, b = 0.0, np.log(s.mean() / (1 - s.mean()))
    step = step / (4 * s.mean() * (1 - s.mean()))
    margin, trees = np.full(len(y), prior), []
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-margin))
        curvature = np.maximum(p * (1 - p), 1e-3)
        error = 1 / (1 + np.exp(-(a * p + b))) - s
        gradient = (p - y) - weight * error * a * p * (1 - p)
        a, b = a - step * np.mean(error * p), b - step * np.mean(error)
        tree = DecisionTreeRegressor(max_depth=3, random_state=0)
        tree.fit(X, -gradient / curvature, sample_weight=curvature, check_input=False)
        margin += rate * tree.tree_.predict(X)[:, 0]
        trees.append(tree.tree_)

    def score(rows: NDArray[Any]) -> NDArray[np.float64]:
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        return 1 / (1 + np.exp(-(prior + rate * sum(t.predict(rows)[:, 0] for t in trees))))

    return score


def aif360_net(
    X: NDArray[Any], y: NDArray[Any], s: NDArray[Any], weight: float
) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]]:
    """Fit AIF360's adversarial debiasing with its own settings; return its score function of X and the attribute."""
    import pandas as pd
    import tensorflow.compat.v1 as tf
    from aif360.algorithms.inprocessing import AdversarialDebiasing as AIF360Debiasing
    from aif360.datasets import BinaryLabelDataset

    def dataset(X: NDArray[Any], s: NDArray[Any], y: NDArray[Any]) -> Any:
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(s=s, y=y)
        return BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["s"])

    tf.disable_eager_execution()
    tf.reset_default_graph()
    session = tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    model = AIF360Debiasing([{"s": 0}], [{"s": 1}], "net", session, seed=0, adversary_loss_weight=weight)
    with redirect_stdout(io.StringIO()):
        model.fit(dataset(X, s, y))

    def score(rows: NDArray[Any], s: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(model.predict(dataset(rows, s, np.arange(len(rows)) % 2)).scores).ravel()

    return score


def fairlearn_net(
    X: NDArray[Any], y: NDArray[Any], group: NDArray[Any], weight: float, *, epochs: int, batch: int, hidden: int
) -> Any:
    """Fit Fairlearn's adversarial classifier with the network that `AdversarialDebiasing` has."""
    from fairlearn.adversarial import AdversarialFairnessClassifier

    model = AdversarialFairnessClassifier(
        backend="torch",
        predictor_model=[hidden, "relu"],
        adversary_model=[],
        alpha=weight,
        epochs=epochs,
        batch_size=batch,
        learning_rate=0.001,
        constraints="demographic_parity",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, sensitive_features=group)


def standardised(X: NDArray[np.float64], train: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the features standardised on the training rows, which Fairlearn leaves to the user."""
    return np.asarray(StandardScaler().fit(X[train]).transform(X))


# ------------------------------------------------------------------------------------------------------ the ratios


@dataclass(frozen=True)
class Timing:
    """Wall and processor seconds of one call; the second hardly notices what else the machine does."""

    wall: float
    processor: float


def seconds(work: Callable[[], Any]) -> tuple[Timing, Any]:
    """Return the time of one call and its result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return Timing(time.perf_counter() - wall, time.process_time() - processor), result


def rows(task: Task | None = None) -> Iterator[Row]:
    """Measure the ratios of the design on Adult: our 20 values against 20 times one fit of the reference."""
    task = load_task() if task is None else task
    yield from _adversarial_rows(task)
    yield from _fagtb_rows(task)
    yield from _minipatch_rows(task)


def _row(factor: float, *, work: str, against: str, ours: list[Timing], theirs: list[Timing], note: str) -> Row:
    """Return the row of 20 values at once against 20 times one fit of the reference."""
    wall, processor = (
        [float(np.median([getattr(timing, kind) for timing in timings])) for timings in (ours, theirs)]
        for kind in ("wall", "processor")
    )
    note = f"by processor time {20 * processor[1] / processor[0]:.1f} ×; {note}"
    return Row.at_least(factor, work=work, against=against, ours=wall[0], theirs=20 * wall[1], note=note)


def _adversarial_rows(task: Task) -> Iterator[Row]:
    X, y, group = task.fitting()
    Z = standardised(task.X, task.train)[task.train]
    learner = AdversarialDebiasing(n_jobs=-1, random_state=0)
    settings = {"epochs": learner.epochs, "hidden": learner.hidden_units}
    ours, same_batch, theirs = [], [], []
    for weight in (0.0, 1.0):  # in turn: all meet the same noise
        theirs.append(seconds(lambda w=weight: fairlearn_net(Z, y, group, w, batch=BATCH, **settings))[0])
        for batch, times in (("auto", ours), (BATCH, same_batch)):
            learner.set_params(batch_size=batch)
            times.append(seconds(lambda: learner.fit_grid(X, y, sensitive_features=group))[0])
    against = f"20 × Fairlearn's adversarial fit, same net and epochs, batch {BATCH}"
    detail = f"{learner.hidden_units} hidden units, {learner.epochs} epochs, {len(y)} rows"
    for factor, batch, timings in ((5.0, 512, ours), (1.0, BATCH, same_batch)):
        work = f"adversarial debiasing, 20 values, batch {batch}"
        yield _row(factor, work=work, against=against, ours=timings, theirs=theirs, note=detail)


def _fagtb_rows(task: Task) -> Iterator[Row]:
    X, y, group = task.fitting()
    s = (group == np.unique(group)[1]).astype(float)
    ours, theirs = [], []
    for weight in (0.0, 2.0):
        theirs.append(seconds(lambda w=weight: fagtb_on_sklearn_trees(X, y, s, w))[0])
        ours.append(seconds(lambda: FAGTB(n_jobs=-1).fit_grid(X, y, sensitive_features=group))[0])
    against, detail = "20 × the same algorithm on scikit-learn trees", f"300 rounds of depth 3, {len(y)} rows"
    yield _row(8.0, work="FAGTB, 20 values", against=against, ours=ours, theirs=theirs, note=detail)


def _minipatch_rows(task: Task) -> Iterator[Row]:
    X, y, _ = task.fitting()
    fit, trees = seconds(lambda: MinipatchTrees(n_jobs=-1, random_state=0).fit(X, y))
    rows_to_predict = task.X[task.ensemble]
    ours = seconds(lambda: trees.predict_matrix(rows_to_predict))[0]
    some = trees.estimators[:50]
    theirs = seconds(lambda: np.column_stack([model.predict_proba(rows_to_predict)[:, 1] for _, model in some]))[0]
    detail = f"fit of 1000 trees on {len(y)} rows {fit.wall:.1f} s; matrix of {len(rows_to_predict)} rows × 1000"
    against = "1000 calls of predict_proba"
    yield _row(1.0, work="minipatch predictions", against=against, ours=[ours], theirs=[theirs], note=detail)
