"""Learners: speed against the reference libraries in one run, and the quality of every grid.

python -m benchmarks --only learners             the ratios (some minutes)
python -m benchmarks.bench_learners --quality    accuracy and fairness of every value, FAUC next to the paper's
                                                 and to the reference libraries' (about an hour)
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from fairfrontier import StepWeight, fauc, tradeoff_points
from fairfrontier.datasets import design_matrix, load_adult, load_compas
from fairfrontier.learners import FAGTB, AdversarialDebiasing, MinipatchTrees, Reductions

from ._common import Row

# The paper's Table 1 (demographic parity, 80 % step weight), mean of ten splits.
PAPER = {
    ("adult-gender", "adversarial"): 0.836,
    ("adult-gender", "fagtb"): 0.830,
    ("adult-gender", "reductions"): 0.797,
    ("compas-race", "adversarial"): 0.629,
    ("compas-race", "fagtb"): 0.641,
    ("compas-race", "reductions"): 0.622,
}
BATCH = 128  # the reference's usual batch


@dataclass(frozen=True)
class Task:
    """Training and valuation rows of one task."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    group: NDArray[Any]
    train: NDArray[np.intp]
    ensemble: NDArray[np.intp]
    test: NDArray[np.intp]

    def fitting(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        """Return X, y and the attribute of the training split."""
        return self.X[self.train], self.y[self.train], self.group[self.train]


def load_task(name: str, seed: int = 0) -> Task:
    """Return a task with the 50/25/25 split of `seed`."""
    bunch: Any
    if name == "adult-gender":
        bunch, attribute = load_adult(), "gender"
    else:
        bunch, attribute = load_compas(features="raw" if name.endswith("raw") else "binary"), "race"
    y = np.asarray(bunch.target)
    train, rest = train_test_split(np.arange(len(y)), train_size=0.5, random_state=seed)
    ensemble, test = train_test_split(rest, train_size=0.5, random_state=seed)
    group = np.asarray(bunch.sensitive_features[attribute]).astype(str)
    return Task(name, design_matrix(bunch).values, y, group, train, ensemble, test)


# ------------------------------------------------------------------------------------------------- the references


def fagtb_on_sklearn_trees(
    X: NDArray[Any], y: NDArray[Any], s: NDArray[Any], weight: float, rounds: int = 300, rate: float = 0.1
) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """Fit the same algorithm as `FAGTB` with one scikit-learn tree a round; return its score function."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    prior = np.log(y.mean() / (1 - y.mean()))
    a, b = 0.0, np.log(s.mean() / (1 - s.mean()))
    margin, trees = np.full(len(y), prior), []
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-margin))
        curvature = np.maximum(p * (1 - p), 1e-3)
        error = 1 / (1 + np.exp(-(a * p + b))) - s
        gradient = (p - y) - weight * error * a * p * (1 - p)
        a, b = a - 0.1 * np.mean(error * p), b - 0.1 * np.mean(error)
        tree = DecisionTreeRegressor(max_depth=3, random_state=0)
        tree.fit(X, -gradient / curvature, sample_weight=curvature, check_input=False)
        margin += rate * tree.tree_.predict(X)[:, 0]
        trees.append(tree.tree_)

    def score(rows: NDArray[Any]) -> NDArray[np.float64]:
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        return 1 / (1 + np.exp(-(prior + rate * sum(t.predict(rows)[:, 0] for t in trees))))

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


def scaled(task: Task) -> NDArray[np.float64]:
    """Return the features standardised on the training split, which Fairlearn leaves to the user."""
    return np.asarray(StandardScaler().fit(task.X[task.train]).transform(task.X))


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
    task = load_task("adult-gender") if task is None else task
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
    Z = scaled(task)[task.train]
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


# ----------------------------------------------------------------------------------------------------- the quality


def quality(name: str, *, seed: int = 0, references: bool = True) -> list[dict[str, Any]]:
    """Print every grid's accuracy and fairness on the test split, and return the FAUC of each method."""
    task = load_task(name, seed)
    X, y, group = task.fitting()
    result = []
    for learner in (AdversarialDebiasing(random_state=0), FAGTB(), Reductions(random_state=0)):
        took, grid = seconds(lambda m=learner: m.set_params(n_jobs=-1).fit_grid(X, y, sensitive_features=group))
        matrix = grid.predict_matrix(task.X[task.test])
        result.append(_valued(task, learner.family, grid.values, matrix, grid.is_randomized, took))
    if references:
        result += [_fairlearn_quality(task), _sklearn_quality(task)]
    return result


def _valued(
    task: Task, method: str, values: NDArray[Any], matrix: NDArray[Any], randomized: bool, took: Timing
) -> dict[str, Any]:
    points = tradeoff_points(
        task.y[task.test],
        matrix,
        sensitive_features=task.group[task.test],
        threshold=None if randomized else 0.5,
    )
    fairness, accuracy = points.fairness[:-1], points.accuracy[:-1]
    order = np.argsort(values)
    trend = spearmanr(values[order], fairness[order]).statistic
    area = fauc(points.frontier(), StepWeight(0.8))
    print(f"\n{task.name} {method}: FAUC {area:.4f}, rank correlation with the knob {trend:+.2f}, {took.wall:.0f} s")
    for value, f, a in zip(values, fairness, accuracy, strict=True):
        print(f"  {value:9.4f}  fairness {f:.4f}  accuracy {a:.4f}")
    return {"task": task.name, "method": method, "fauc": area, "trend": trend, "seconds": took.wall}


def _fairlearn_quality(task: Task) -> dict[str, Any]:
    Z = scaled(task)
    _, y, group = task.fitting()
    values = AdversarialDebiasing.default_values()
    own = AdversarialDebiasing()
    settings = {"epochs": own.epochs, "batch": BATCH, "hidden": own.hidden_units}
    took, columns = seconds(
        lambda: [
            fairlearn_net(Z[task.train], y, group, w, **settings).predict(Z[task.test]).astype(float).ravel()
            for w in values
        ]
    )
    return _valued(task, "fairlearn adversarial", values, np.column_stack(columns), False, took)


def _sklearn_quality(task: Task) -> dict[str, Any]:
    X, y, group = task.fitting()
    s = (group == np.unique(group)[1]).astype(float)
    values = FAGTB.default_values()
    took, columns = seconds(lambda: [fagtb_on_sklearn_trees(X, y, s, w)(task.X[task.test]) for w in values])
    return _valued(task, "fagtb on scikit-learn trees", values, np.column_stack(columns), False, took)


def main() -> None:
    """Print the quality of the tasks that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", action="store_true", required=True)
    parser.add_argument("--tasks", nargs="*", default=["adult-gender", "compas-race", "compas-race-raw"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-references", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.tasks:
        table = quality(name, seed=arguments.seed, references=not arguments.no_references)
        print(f"\n{name}, split {arguments.seed}")
        for row in table:
            theirs = PAPER.get((name.removesuffix("-raw"), row["method"]))
            paper = "      " if theirs is None else f" {theirs:.3f}"
            print(f"  {row['method']:<30} FAUC {row['fauc']:.4f}   the paper's{paper}   trend {row['trend']:+.2f}")


if __name__ == "__main__":
    main()
