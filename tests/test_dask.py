"""Dask collections give what arrays give: on local schedulers, and on a real cluster of two worker processes."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster, get_task_stream
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier import StackStatistics
from fairfrontier.chunks import dask_chunks
from fairfrontier.exceptions import ClusterError, GroupError, InvalidInputError

N, K = 1200, 6


def start_cluster(**options):
    return LocalCluster(**({"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"} | options))


@pytest.fixture(scope="module")
def client():
    with start_cluster(n_workers=2, memory_limit="2GB") as cluster, Client(cluster) as active:
        active.wait_for_workers(2, timeout=120)
        yield active


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    if request.param == "cluster":
        request.getfixturevalue("client")
        yield "cluster"
    else:
        with dask.config.set(scheduler=request.param):
            yield request.param


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((N, K)), columns=[f"m_{j}" for j in range(K)])
    frame["sex"] = np.sort(np.array(["f", "m"])[rng.integers(0, 2, N)])  # whole partitions have one group only
    frame["y"] = (rng.random(N) < np.where(frame["sex"] == "m", 0.6, 0.3)).astype(int)
    frame["w"] = rng.integers(1, 4, N) / 2
    frame["fold"] = rng.integers(0, 5, N)
    names = [f"m_{j}" for j in range(K)]
    frame[names] = np.clip(0.6 * frame[names].to_numpy() + 0.3 * frame[["y"]].to_numpy(), 0, 1)
    return frame


def names_of(frame):
    return [name for name in frame.columns if name.startswith("m_")]


def assert_same_points(ours, theirs):
    assert ours.names == theirs.names
    assert ours.sets.names == theirs.sets.names
    np.testing.assert_allclose(ours.rates, theirs.rates, atol=1e-12)
    np.testing.assert_allclose(ours.accuracy, theirs.accuracy, atol=1e-12)
    np.testing.assert_allclose(ours.fairness, theirs.fairness, atol=1e-12)


def assert_same_stack(ours, theirs):
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-8)
    np.testing.assert_allclose(ours.path_.weights, theirs.path_.weights, atol=1e-8)
    np.testing.assert_allclose(ours.path_.intercept, theirs.path_.intercept, atol=1e-8)
    np.testing.assert_allclose(ours.points_.accuracy, theirs.points_.accuracy, atol=1e-8)
    np.testing.assert_allclose(ours.points_.fairness, theirs.points_.fairness, atol=1e-8)


@pytest.mark.parametrize("accuracy", ["accuracy", "brier", "r2"])
def test_arrays(scheduler, people, accuracy):
    H, y, w = (people[c].to_numpy() for c in (names_of(people), "y", "w"))
    sex = people["sex"].to_numpy().astype(str)
    ours = ff.tradeoff_points(
        da.from_array(y, chunks=500),  # cut elsewhere than the scores
        da.from_array(H, chunks=(170, 2)),
        sensitive_features=da.from_array(sex, chunks=N),
        sample_weight=w,  # in memory
        accuracy=accuracy,
    )
    assert_same_points(ours, ff.tradeoff_points(y, H, sensitive_features=sex, sample_weight=w, accuracy=accuracy))


def test_dataframes(scheduler, people, tmp_path):
    people.to_parquet(tmp_path / "people.parquet", row_group_size=100)
    frame = dd.read_parquet(tmp_path / "people.parquet").repartition(npartitions=7)
    names = names_of(people)
    options = {"weight": ff.StepWeight(0.8), "fairness": "equalized_odds"}
    ours = ff.fauc_score(frame["y"], frame[names], sensitive_features=frame["sex"], **options)
    assert ours == pytest.approx(
        ff.fauc_score(people["y"], people[names], sensitive_features=people["sex"], **options), abs=1e-12
    )
    points = ff.tradeoff_points(frame["y"], frame[names], sensitive_features=frame[["sex", "fold"]])
    assert_same_points(
        points, ff.tradeoff_points(people["y"], people[names], sensitive_features=people[["sex", "fold"]])
    )
    by_name = ff.tradeoff_points(
        frame["y"], {name: frame[name] for name in names}, sensitive_features={"sex": frame["sex"]}
    )
    assert_same_points(by_name, ff.tradeoff_points(people["y"], people[names], sensitive_features=people[["sex"]]))


def test_columns_of_one_file_stay_together(people, tmp_path):
    wide = people.assign(**{f"x_{j}": "a long text that nobody reads" for j in range(40)})
    wide.to_parquet(tmp_path / "wide.parquet", row_group_size=100)
    frame = dd.read_parquet(tmp_path / "wide.parquet", split_row_groups=1)
    assert frame["y"].optimize().npartitions < frame.npartitions  # what would tear them apart
    names = names_of(people)
    assert_same_points(
        ff.tradeoff_points(frame["y"], frame[names], sensitive_features=frame["sex"]),
        ff.tradeoff_points(people["y"], people[names], sensitive_features=people["sex"]),
    )


@pytest.mark.parametrize("kind", [ff.FairStacksClassifier, ff.FairStacksRegressor])
def test_tuned_stacks(client, people, kind):
    H, y, sex = (people[c].to_numpy() for c in (names_of(people), "y", "sex"))
    cv = PredefinedSplit(people["fold"])
    parts = {"sensitive_features": da.from_array(sex.astype(str), chunks=170)}
    ours = kind("precomputed", cv=cv).fit(da.from_array(H, chunks=(170, K)), da.from_array(y, chunks=170), **parts)
    theirs = kind("precomputed", cv=cv).fit(H, y, sensitive_features=sex)
    assert_same_stack(ours, theirs)
    np.testing.assert_allclose(ours.predict(H), theirs.predict(H), atol=1e-8)


def test_stack_of_a_dataframe_with_weights(scheduler, people):
    frame = dd.from_pandas(people, npartitions=5)
    names = names_of(people)
    stack = ff.FairStacksClassifier("precomputed", alpha=2.0, fairness="equal_opportunity")
    ours = stack.fit(frame[names], frame["y"], sensitive_features=frame["sex"], sample_weight=frame["w"])
    assert ours.names_ == tuple(names)
    theirs = ff.FairStacksClassifier("precomputed", alpha=2.0, fairness="equal_opportunity")
    assert_same_stack(
        ours, theirs.fit(people[names], people["y"], sensitive_features=people["sex"], sample_weight=people["w"])
    )


def test_empty_partitions_and_unknown_lengths(people):
    frame = dd.from_pandas(people, npartitions=6)
    kept = frame[frame["fold"] != 3]
    some = people[people["fold"] != 3]
    names = names_of(people)
    nobody = dd.from_pandas(people[:0], npartitions=1)
    both = dd.concat([kept, nobody])
    assert_same_points(
        ff.tradeoff_points(both["y"].values, both[names].values, sensitive_features=both[["sex"]]),
        ff.tradeoff_points(some["y"], some[names].to_numpy(), sensitive_features=some[["sex"]]),
    )


def test_hashed_folds_do_not_depend_on_the_partitions(people):
    H, y, sex = (people[c].to_numpy() for c in (names_of(people), "y", "sex"))
    stacks = [
        ff.FairStacksClassifier("precomputed", random_state=1).fit(
            da.from_array(H, chunks=(rows, K)), y, sensitive_features=sex
        )
        for rows in (130, 700)
    ]
    assert_same_stack(*stacks)


def test_errors_come_back_from_the_workers(client, people):
    frame = dd.from_pandas(people, npartitions=4)
    names = names_of(people)
    with pytest.raises(GroupError, match="missing value"):
        ff.tradeoff_points(frame["y"], frame[names], sensitive_features=frame["sex"].where(frame["fold"] != 2))
    with pytest.raises(InvalidInputError, match="two classes; got 5"):
        ff.tradeoff_points(frame["fold"], frame[names], sensitive_features=frame["sex"])
    H = da.from_array(people[names].to_numpy(), chunks=(300, K))
    with pytest.raises(InvalidInputError, match="got nan in 'model_2' at row 600"):
        ff.tradeoff_points(
            people["y"].to_numpy(),
            da.where((da.arange(N, chunks=300) == 600)[:, None] & (da.arange(K) == 2), np.nan, H),
            sensitive_features=people["sex"].to_numpy(),
        )


def test_collections_that_do_not_fit_together(people):
    frame, other = dd.from_pandas(people, npartitions=4), dd.from_pandas(people, npartitions=3)
    names = names_of(people)
    with pytest.raises(InvalidInputError, match="partitions of the scores, 4; got 3"):
        ff.tradeoff_points(other["y"], frame[names], sensitive_features=frame["sex"])
    with pytest.raises(InvalidInputError, match="lengths are unknown; got Series"):
        ff.tradeoff_points(people["y"], frame[names], sensitive_features=frame["sex"])
    H = da.from_array(people[names].to_numpy(), chunks=(300, K))
    with pytest.raises(InvalidInputError, match="y_true must have as many rows as y_true, 1200; got 1199"):
        ff.tradeoff_points(da.zeros(N - 1), H, sensitive_features=people["sex"].to_numpy())
    with pytest.raises(InvalidInputError, match="at least one model"):
        ff.tradeoff_points(frame["y"], {}, sensitive_features=frame["sex"])
    with pytest.raises(InvalidInputError, match="'precomputed'"):
        ff.FairStacksClassifier([("tree", DecisionTreeClassifier())]).fit(H, people["y"], sensitive_features=H[:, 0])


def test_base_learners_train_on_the_cluster(client, people):
    X, y, sex = people[names_of(people)].to_numpy(), people["y"].to_numpy(), people["sex"].to_numpy()
    models = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
    models.append(("logistic", LogisticRegression()))
    here = ff.FairStacksClassifier(models, random_state=0).fit(X, y, sensitive_features=sex)
    with get_task_stream(client) as tasks, joblib.parallel_config(backend="dask"):
        there = ff.FairStacksClassifier(models, random_state=0, n_jobs=2).fit(X, y, sensitive_features=sex)
    assert_same_stack(there, here)
    assert len({task["worker"] for task in tasks.data}) == 2
    assert len(tasks.data) >= len(models)


def test_a_killed_worker_changes_nothing(people, tmp_path):
    H, y, sex = (people[c].to_numpy() for c in (names_of(people), "y", "sex"))
    rows = 100

    def load(start):
        """Read a partition slowly, and leave a mark for every time it is read."""
        (tmp_path / f"{start}-{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(0.3)
        return H[start : start + rows]

    blocks = [da.from_delayed(dask.delayed(load)(s), (rows, K), float) for s in range(0, N, rows)]
    chunks = dask_chunks(y, da.concatenate(blocks), sensitive_features=sex)
    result = {}
    with start_cluster(n_workers=2, memory_limit="2GB") as cluster, Client(cluster) as active:
        active.wait_for_workers(2, timeout=120)
        workers = list(active.run(os.getpid).values())
        thread = threading.Thread(target=lambda: result.update(found=StackStatistics.from_chunks(chunks)))
        thread.start()
        victim = _wait_for_mark(tmp_path, workers)
        os.kill(victim, signal.SIGKILL)
        thread.join(timeout=120)
    readers = [int(mark.name.split("-")[1]) for mark in tmp_path.iterdir()]
    assert len(readers) > len(blocks), "the worker died before or after the work, not in the middle"
    assert victim in readers
    expected = StackStatistics.from_chunks(dask_chunks(y, da.from_array(H, chunks=(rows, K)), sensitive_features=sex))
    for name in ("weight", "mean_h", "mean_y", "gram", "cross", "set_h"):
        np.testing.assert_allclose(getattr(result["found"], name), getattr(expected, name), atol=1e-10)


def _wait_for_mark(folder, workers):
    """Return a worker that has read a partition and is at its next one."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        readers = [int(mark.name.split("-")[1]) for mark in folder.iterdir()]
        busy = [pid for pid in workers if readers.count(pid) >= 2]
        if busy:
            return busy[0]
        time.sleep(0.01)
    raise TimeoutError("no worker has begun")


def test_a_worker_without_memory_is_a_clear_error(people):
    H, y, sex = (people[c].to_numpy() for c in (names_of(people), "y", "sex"))

    def load():
        """Take more memory than the worker may have, for longer than its nanny looks away."""
        waste = [np.ones(2**24) for _ in range(10)]  # 128 MB each
        time.sleep(5)
        return H[: N // 2] + 0.0 * len(waste)

    blocks = [da.from_delayed(dask.delayed(load)(), (N // 2, K), float), da.from_array(H[N // 2 :], chunks=(600, K))]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        start_cluster(n_workers=1, memory_limit="600MB") as cluster,
        Client(cluster) as active,
    ):
        active.wait_for_workers(1, timeout=120)
        with pytest.raises(ClusterError, match=r"ran out of memory: make the partitions smaller .*KilledWorker"):
            ff.tradeoff_points(y, da.concatenate(blocks), sensitive_features=sex)
