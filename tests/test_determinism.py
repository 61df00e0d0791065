"""The same input gives the same output, to the bit: whatever the jobs, the threads, the hash seed and the order."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import fairfrontier as ff
from fairfrontier.learners import MinipatchTrees

RNG = np.random.default_rng(0)
N = 3000
SEX = np.where(RNG.random(N) < 0.4, "f", "m")
Y = (RNG.random(N) < 0.3 + 0.3 * (SEX == "m")).astype(int)
X = RNG.normal(size=(N, 6)) + 0.7 * Y[:, None] + 0.4 * (SEX == "m")[:, None]
H = np.clip(0.5 + 0.2 * X + RNG.normal(0, 0.1, X.shape), 0, 1)
MODELS = [
    ("linear/a", LogisticRegression()),
    ("linear/b", LogisticRegression(C=0.01)),
    ("trees/a", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ("trees/b", DecisionTreeClassifier(max_features=2, random_state=1)),
]


def assert_identical(first, second):
    """Check arrays for equal bits: neither rounding nor the sign of a zero may differ."""
    for a, b in zip(first, second, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def of_stack(model, rows):
    return model.path_.weights, model.path_.intercept, model.weights_, model.predict_path(rows), model.points_.accuracy


def of_points(points):
    curves = [points.frontier(kind) for kind in (False, True, "signed")]
    areas = [ff.fauc(curve, ff.StepWeight(0.8)) for curve in curves]
    return points.fairness, points.accuracy, points.bias, areas, *(curve.accuracy for curve in curves)


def test_jobs_do_not_change_a_stack():
    # joblib gives the processes of two jobs one thread each; one job has as many as BLAS likes.
    with threadpool_limits(1):
        one, two = (
            ff.FairStacksClassifier(MODELS, n_jobs=jobs, cv=3, random_state=0).fit(X, Y, sensitive_features=SEX)
            for jobs in (1, 2)
        )
        assert_identical(of_stack(one, X), of_stack(two, X))


def test_jobs_do_not_change_minipatch_trees():
    one, two = (MinipatchTrees(n_estimators=60, n_jobs=jobs, random_state=0).fit(X, Y) for jobs in (1, 2))
    assert_identical([one.predict_proba(X)], [two.predict_proba(X)])


def test_threads_of_blas_do_not_change_counts():
    """Decisions are counted, and counts are whole numbers, in whatever order they are added."""
    scores = RNG.random((N, 300))

    def figures():
        points = ff.tradeoff_points(Y, scores, sensitive_features=SEX, fairness="equalized_odds")
        options = {"sensitive_features": SEX, "random_state": 0}
        return (
            *of_points(points),
            ff.fauc_interval(Y, scores, n_resamples=100, **options).samples,
            ff.honest_taf(Y, scores, n_repeats=1, **options).accuracy,
            ff.taf_bands(Y, scores[:, :20], n_resamples=100, **options).low,
        )

    with threadpool_limits(1):
        one = figures()
    with threadpool_limits(2):
        assert_identical(one, figures())


def test_threads_of_blas_change_a_stack_by_rounding_at_most():
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fits.append(of_stack(ff.FairStacksClassifier(random_state=0).fit(H, Y, sensitive_features=SEX), H))
    for one, two in zip(*fits, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "log", "hinge"])
def test_fitting_again_changes_nothing(loss):
    model = ff.FairStacksClassifier(loss=loss, alpha=1.0 if loss != "squared" else "cv", n_points=4, random_state=0)
    rows = slice(0, 400)
    first = of_stack(model.fit(H[rows], Y[rows], sensitive_features=SEX[rows]), H)
    assert_identical(first, of_stack(model.fit(H[rows], Y[rows], sensitive_features=SEX[rows]), H))


def test_resampling_again_changes_nothing():
    options = {"sensitive_features": SEX, "n_resamples": 80, "random_state": 5}
    for function in (ff.fauc_interval, ff.taf_bands):
        first, second = (function(Y, H, **options) for _ in range(2))
        assert_identical([first.low, first.high], [second.low, second.high])
    first, second = (ff.compare_fauc(Y, H[:, :3], H[:, 3:], **options) for _ in range(2))
    assert_identical([first.samples, first.p_value], [second.samples, second.p_value])


SCRIPT = """
import hashlib
import numpy as np
import fairfrontier as ff

rng = np.random.default_rng(3)
n = 300
groups = {"sex": rng.choice(["f", "m"], n), "race": rng.choice(["a", "b", "c"], n)}
y = np.where(rng.random(n) < 0.4, "yes", "no")
scores = {name: rng.random(n) for name in ("trees/a", "trees/b", "linear/a", "boosted/a", "boosted/b")}
digest = hashlib.sha256()
for measure in ("demographic_parity", "equalized_odds"):
    points = ff.tradeoff_points(y, scores, sensitive_features=groups, fairness=measure)
    for kind in (False, True, "signed"):
        curve = points.frontier(kind)
        digest.update(curve.fairness.tobytes() + curve.accuracy.tobytes() + curve.support.tobytes())
    digest.update(repr((points.names, points.contrasts)).encode())
model = ff.FairStacksClassifier(cv=3, random_state=0).fit(scores, y, sensitive_features=groups)
digest.update(model.path_.weights.tobytes() + model.scales_.tobytes() + repr(model.cv_fauc_).encode())
digest.update(ff.honest_taf(y, scores, sensitive_features=groups, random_state=0).accuracy.tobytes())
digest.update(ff.fauc_interval(y, scores, sensitive_features=groups, n_resamples=60, random_state=0).samples.tobytes())
nobody = [("no", None), ("yes", None)]
mixture = ff.RandomizedMixture(nobody, [0.3, 0.7], secret="x" * 16, constants={"no": 0, "yes": 1})
digest.update(mixture.draw(["ann", 7, b"eve"]).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_the_hash_seed_changes_nothing():
    """Sets and hashes of text come in another order in every process; no figure may depend on it."""
    shown = set()
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        shown.add(done.stdout)
    assert len(shown) == 1


BY_NAME = dict(zip(("a/1", "b/1", "a/2", "c", "d", "b/2"), H.T, strict=True))
TURNED = dict(reversed(list(BY_NAME.items())))


class TestOrder:
    def test_of_models(self):
        first = ff.tradeoff_points(Y, BY_NAME, sensitive_features=SEX)
        second = ff.tradeoff_points(Y, TURNED, sensitive_features=SEX).select(first.names)
        assert_identical(of_points(first)[:3], of_points(second)[:3])
        for kind in (False, True, "signed"):
            areas = [ff.fauc(points.frontier(kind)) for points in (first, second)]
            assert areas[0] == areas[1]

    def test_of_attributes(self):
        groups = {"sex": SEX, "race": RNG.integers(0, 3, N)}
        first = ff.tradeoff_points(Y, H, sensitive_features=groups)
        second = ff.tradeoff_points(Y, H, sensitive_features=dict(reversed(groups.items())))
        assert_identical([first.fairness, first.accuracy], [second.fairness, second.accuracy])

    def test_of_rows(self):
        order = RNG.permutation(N)
        first = ff.tradeoff_points(Y, H, sensitive_features=SEX)
        second = ff.tradeoff_points(Y[order], H[order], sensitive_features=SEX[order])
        assert_identical(of_points(first), of_points(second))

    def test_of_models_at_prediction(self):
        model = ff.FairStacksClassifier(alpha=1.0).fit(BY_NAME, Y, sensitive_features=SEX)
        assert_identical([model.predict_path(BY_NAME)], [model.predict_path(TURNED)])


CALLS = {
    "predict": lambda model, rows: model.predict(rows),
    "predict_proba": lambda model, rows: model.predict_proba(rows),
    "predict_path": lambda model, rows: model.predict_path(rows),
    "at": lambda model, rows: model.at(tau=0.01).predict_proba(rows),
    "target": lambda model, rows: model.at(target=-0.02).decision_function(rows),
    "select": lambda model, rows: model.select(min_fairness=0.5).predict_proba(rows),
    "points": lambda model, rows: model.points(rows, Y, sensitive_features=SEX).accuracy,
    "exact_frontier": lambda model, rows: model.exact_frontier(rows, Y, sensitive_features=SEX).accuracy,
}


@pytest.mark.parametrize("kind", ["precomputed", "base models"])
def test_eight_threads_share_a_fitted_model(kind):
    """Each thread asks for everything in another order; all start together, and nobody sees another's answer."""
    rows = H if kind == "precomputed" else X
    model = ff.FairStacksClassifier("precomputed" if kind == "precomputed" else MODELS, alpha=1.0, random_state=0)
    model.fit(rows, Y, sensitive_features=SEX)
    weights = model.weights_.copy()
    with threadpool_limits(1):
        expected = {name: call(model, rows) for name, call in CALLS.items()}
        start = Barrier(8)

        def work(thread):
            names = np.random.default_rng(thread).permutation(list(CALLS))
            start.wait()
            return [(name, CALLS[name](model, rows)) for name in names]

        with ThreadPoolExecutor(8) as pool:
            for answers in pool.map(work, range(8)):
                for name, found in answers:
                    assert_identical([found], [expected[name]])
    assert_identical([model.weights_], [weights])
