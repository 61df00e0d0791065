"""The tools that a user would take instead, asked for the same fairness.

ThresholdOptimizer, OxonFair and error-parity post-process the score of the unconstrained stack of the same rows, and
see the group at prediction. ExponentiatedGradient fits logistic regressions to the base models' scores, and does not.
"""

import contextlib
import io
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from tools.promise_study.stacks import Decide, Draw, Floats, Method

_WORKER = Path(__file__).with_name("error_parity_worker.py")
Score = Callable[[Floats], Floats]


class _Scores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only feature is its own score."""

    classes_ = np.array([0, 1])

    def fit(self, X: Floats, y: NDArray) -> "_Scores":
        """Return the classifier as it is: there is nothing to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Floats) -> Floats:
        """Return the scores (n, 2) of both classes."""
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def methods(draw: Draw, score: Score, error_parity: str | None = None, *, slow: bool = True) -> dict[str, Method]:
    """Return the rivals by name.

    Parameters
    ----------
    draw : Draw
        The rows that each of them is given.
    score : callable
        The unconstrained stack: from the base models' scores (n, k) to one score (n,) in [0, 1].
    error_parity : str, optional
        A Python interpreter that has error-parity, which needs other versions of its dependencies than the rest.
    slow : bool, default=True
        Whether ExponentiatedGradient is among them.
    """
    found: dict[str, Method] = {
        "ThresholdOptimizer": lambda asked: _threshold_optimizer(draw, score, asked),
    }
    if len(np.unique(draw.group)) == 2:  # with five groups its grid of thresholds takes a minute
        found["OxonFair"] = lambda asked: _oxonfair(draw, score, asked)
    if slow:
        found["ExponentiatedGradient"] = lambda asked: _exponentiated_gradient(draw, asked)
    if error_parity is not None:
        found["error-parity"] = lambda asked: _error_parity(draw, score, asked, error_parity)
    return found


def _threshold_optimizer(draw: Draw, score: Score, asked: float) -> Decide:
    from fairlearn.postprocessing import ThresholdOptimizer

    model = ThresholdOptimizer(
        estimator=_Scores(),
        constraints="demographic_parity" if draw.measure == "demographic_parity" else "true_positive_rate_parity",
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
        tol=1.0 - asked,
    )
    model.fit(score(draw.H)[:, None], draw.y, sensitive_features=draw.group)
    return lambda H, group: model._pmf_predict(score(H)[:, None], sensitive_features=group)[:, 1]


def _exponentiated_gradient(draw: Draw, asked: float) -> Decide:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient, TruePositiveRateParity

    moment = DemographicParity if draw.measure == "demographic_parity" else TruePositiveRateParity
    # Its bound is on the distance of a group from all rows; two groups can be twice as far apart.
    model = ExponentiatedGradient(
        LogisticRegression(max_iter=200), moment(difference_bound=(1.0 - asked) / 2.0), eps=(1.0 - asked) / 2.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(draw.H, draw.y, sensitive_features=draw.group)
    return lambda H, group: model._pmf_predict(H)[:, 1]


def _oxonfair(draw: Draw, score: Score, asked: float) -> Decide:
    import oxonfair

    metrics = oxonfair.group_metrics
    constraint = metrics.demographic_parity if draw.measure == "demographic_parity" else metrics.equal_opportunity

    def columns(H: Floats, group: NDArray, y: NDArray) -> dict[str, NDArray]:
        s = score(H)
        return {"data": np.column_stack([1.0 - s, s]), "groups": group, "target": y}

    model = oxonfair.FairPredictor(lambda data: data.copy(), columns(draw.H, draw.group, draw.y))
    # OxonFair reports on the standard output where no threshold meets the request and it takes the nearest.
    with contextlib.redirect_stdout(io.StringIO()):
        model.fit(metrics.accuracy, constraint, 1.0 - asked)

    def decide(H: Floats, group: NDArray) -> Floats:
        return np.asarray(model.predict(columns(H, group, np.zeros(len(group), dtype=int))), dtype=np.float64)

    return decide


def _error_parity(draw: Draw, score: Score, asked: float, interpreter: str) -> Decide:
    groups = np.unique(draw.group)

    def decide(H: Floats, group: NDArray) -> Floats:
        with tempfile.TemporaryDirectory() as folder:
            given, decided = Path(folder) / "given.npz", Path(folder) / "decided.npy"
            np.savez(
                given,
                score=score(draw.H),
                y=draw.y,
                group=np.searchsorted(groups, draw.group),
                new_score=score(H),
                new_group=np.searchsorted(groups, group),
                asked=asked,
                parity=draw.measure == "demographic_parity",
            )
            _ask(_worker(interpreter), given, decided)
            return np.load(decided)

    return decide


@lru_cache(maxsize=1)
def _worker(interpreter: str) -> subprocess.Popen[str]:
    """Return a process of another environment that answers requests; to start one takes longer than to answer."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([interpreter, str(_WORKER)], text=True, env=environment, **pipes)


def _ask(worker: subprocess.Popen[str], given: Path, decided: Path) -> None:
    worker.stdin.write(f"{given}\t{decided}\n")
    worker.stdin.flush()
    for line in worker.stdout:
        # The library may print as well.
        if line.startswith("answer: "):
            if line != "answer: done\n":
                raise RuntimeError(line.strip())
            return
    raise RuntimeError("error-parity's process ended")
