"""Rows in chunks give what all rows at once give, whatever the source, the cuts and the order."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier import points_from_chunks
from fairfrontier.chunks import array_chunks, file_chunks, iterable_chunks
from fairfrontier.exceptions import DataFileError, GroupError, InvalidInputError

MEASURES = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")
ACCURACIES = ("accuracy", "balanced_accuracy", "brier", "r2", "exp_mse")


def people(n=500, k=7, seed=0):
    """Labels, scores in [0, 1] and two attributes, sorted: most chunks have one class and one group only."""
    rng = np.random.default_rng(seed)
    sex, age, y = np.array(["f", "m"])[rng.integers(0, 2, n)], rng.integers(0, 3, n), rng.random(n) < 0.4
    order = np.lexsort((y, sex))
    sex, y = sex[order], y[order]
    scores = np.clip(0.3 * y[:, None] + 0.2 * (sex == "m")[:, None] + rng.random((n, k)) * 0.7, 0, 1)
    return y.astype(int), scores, {"sex": sex, "age": age}, rng.integers(0, 4, n) / 2


def assert_same_points(ours, theirs, tolerance=1e-12):
    assert ours.names == theirs.names
    assert ours.sets.names == theirs.sets.names
    for name in ("fairness", "accuracy", "rates", "bias"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=tolerance)


@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 37, 10_000])
def test_accuracies(accuracy, weighted, chunk_rows):
    y, scores, groups, weight = people()
    weight = weight if weighted else None
    chunks = array_chunks(y, scores, sensitive_features=groups, sample_weight=weight, chunk_rows=chunk_rows)
    ours = points_from_chunks(chunks, accuracy=accuracy)
    assert_same_points(
        ours, ff.tradeoff_points(y, scores, sensitive_features=groups, sample_weight=weight, accuracy=accuracy)
    )


@pytest.mark.parametrize("fairness", MEASURES)
@pytest.mark.parametrize("mode", ["separate", "intersectional"])
@pytest.mark.parametrize("threshold", [0.5, 0.31, None])
def test_measures(fairness, mode, threshold):
    y, scores, groups, _ = people(seed=1)
    options = {"fairness": fairness, "sensitive_mode": mode, "threshold": threshold, "include_constant": False}
    ours = points_from_chunks(array_chunks(y, scores, sensitive_features=groups, chunk_rows=41), **options)
    assert_same_points(ours, ff.tradeoff_points(y, scores, sensitive_features=groups, **options))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_cuts_in_any_order(sizes, random):
    y, scores, groups, _ = people(n=max(sum(sizes), 120))
    ends = np.cumsum([*sizes, max(len(y) - sum(sizes), 0)])
    parts = [
        (y[a:b], scores[a:b], {name: values[a:b] for name, values in groups.items()})
        for a, b in itertools.pairwise([0, *ends])
    ]
    random.shuffle(parts)
    assert_same_points(
        points_from_chunks(iterable_chunks(parts)), ff.tradeoff_points(y, scores, sensitive_features=groups)
    )


def test_text_labels_and_names():
    y, scores, groups, _ = people()
    words = np.where(y == 1, "yes", "no")
    frame = pd.DataFrame(scores, columns=list("abcdefg"))
    parts = [(words[a : a + 90], frame[a : a + 90], groups["sex"][a : a + 90]) for a in range(0, len(y), 90)]
    ours = points_from_chunks(iterable_chunks(parts))
    assert_same_points(ours, ff.tradeoff_points(words, frame, sensitive_features=groups["sex"]))


@pytest.mark.parametrize("n_masked", [589, 599, 601])
def test_masks_of_another_length_are_refused_whatever_the_last_chunk_holds(n_masked):
    y, scores, groups, _ = people(n=600)
    inside = np.resize(groups["sex"] == groups["sex"][0], n_masked)
    chunks = array_chunks(y, scores, sensitive_features=groups, chunk_rows=100)
    with pytest.raises(InvalidInputError, match="must have one boolean per row"):
        points_from_chunks(chunks, fairness=[(inside, ~inside)])


def test_attributes_in_another_order_are_the_same_attributes():
    y, scores, groups, _ = people()
    turned = dict(reversed(groups.items()))
    parts = [
        (y[rows], scores[rows], {name: values[rows] for name, values in of_chunk.items()})
        for rows, of_chunk in ((slice(0, 200), groups), (slice(200, None), turned))
    ]
    assert_same_points(
        points_from_chunks(iterable_chunks(parts)), ff.tradeoff_points(y, scores, sensitive_features=groups)
    )


def test_memmap_is_read_in_chunks(tmp_path):
    y, scores, groups, _ = people(n=3000)
    scores.astype(np.float32).tofile(tmp_path / "scores.bin")
    mapped = np.memmap(tmp_path / "scores.bin", dtype=np.float32, mode="r", shape=scores.shape)
    chunks = array_chunks(y, mapped, sensitive_features=groups, chunk_rows=700)
    assert [len(chunk) for chunk in chunks] == [700, 700, 700, 700, 200]
    assert_same_points(points_from_chunks(chunks), ff.tradeoff_points(y, np.array(mapped), sensitive_features=groups))


@pytest.fixture(params=["parquet", "csv", "one row group", "dictionary"])
def people_file(request, tmp_path):
    y, scores, groups, weight = people(n=2000)
    frame = pd.DataFrame(scores, columns=[f"m_{j}" for j in range(scores.shape[1])])
    frame = frame.assign(y=y, **groups, w=weight)
    if request.param == "csv":
        path = tmp_path / "people.csv"
        frame.to_csv(path, index=False)
    else:
        path = tmp_path / "people.parquet"
        if request.param == "dictionary":
            frame["sex"] = frame["sex"].astype("category")
        frame.to_parquet(path, row_group_size=10_000 if request.param == "one row group" else 300)
    return path, frame


def test_files(people_file):
    path, frame = people_file
    names = [name for name in frame if name.startswith("m_")]
    chunks = file_chunks(path, label="y", sensitive=["sex", "age"], scores=names, sample_weight="w", chunk_rows=170)
    assert max(len(chunk) for chunk in chunks) <= 170
    assert np.array_equal(np.concatenate([chunk.row for chunk in chunks]), np.arange(len(frame)))
    ours = points_from_chunks(chunks)
    groups = {name: frame[name].to_numpy() for name in ("sex", "age")}
    assert_same_points(
        ours, ff.tradeoff_points(frame["y"], frame[names], sensitive_features=groups, sample_weight=frame["w"])
    )


def test_scores_are_all_other_numbers(people_file):
    path, frame = people_file
    chunks = file_chunks(path, label="y", sensitive=["sex", "age"], sample_weight="w")
    assert chunks.names == tuple(name for name in frame if name.startswith("m_"))


def test_progress_ends_at_one(people_file):
    path, _ = people_file
    chunks = file_chunks(path, label="y", sensitive="sex", chunk_rows=100)
    seen = []
    chunks.progress = seen.append
    points_from_chunks(chunks)
    assert len(seen) >= 20
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_whole_numbers_first_and_fractions_later(tmp_path):
    n = 400_000
    with (tmp_path / "late.csv").open("w") as stream:
        stream.write("y,sex,a\n")
        stream.writelines(f"{i % 2},{'fm'[i // 2 % 2]},{0 if i < n - 10 else 0.75}{' ' * 90}\n" for i in range(n))
    chunks = file_chunks(tmp_path / "late.csv", label="y", sensitive="sex")
    assert sum(float(chunk.scores.sum()) for chunk in chunks) == 7.5


@pytest.mark.parametrize("place", [0, 70_000])
def test_a_line_may_be_longer_than_a_block(place, tmp_path):
    n = 80_000
    with (tmp_path / "long.csv").open("w") as stream:
        stream.write("y,sex,note,a\n")
        stream.writelines(f"{i % 2},{'fm'[i % 2]},{'x' * (10**7 if i == place else 60)},{i}\n" for i in range(n))
    chunks = file_chunks(tmp_path / "long.csv", label="y", sensitive="sex", scores=["a"], chunk_rows=999)
    assert np.concatenate([chunk.scores[:, 0] for chunk in chunks]).tolist() == list(range(n))


def test_one_row_without_weight_is_a_chunk():
    y, scores, groups, weight = people()
    weight[:50] = 0.0
    chunks = array_chunks(y, scores, sensitive_features=groups, sample_weight=weight, chunk_rows=50)
    for accuracy in ACCURACIES:
        assert_same_points(
            points_from_chunks(chunks, accuracy=accuracy),
            ff.tradeoff_points(y, scores, sensitive_features=groups, sample_weight=weight, accuracy=accuracy),
        )


def test_map_drops_rows_and_replaces_scores():
    y, scores, groups, _ = people()
    chunks = array_chunks(y, scores, sensitive_features=groups, chunk_rows=64)
    kept = chunks.map(lambda chunk: chunk.take(chunk.row % 3 == 0))
    every_third = {name: values[::3] for name, values in groups.items()}
    assert_same_points(
        points_from_chunks(kept), ff.tradeoff_points(y[::3], scores[::3], sensitive_features=every_third)
    )


def bad(**changes):
    y, scores, groups, _ = people(n=60)
    given = {"y": y, "scores": scores, "sensitive_features": groups} | changes
    return array_chunks(given.pop("y"), given.pop("scores"), chunk_rows=20, **given)


def one_value_wrong(values, row, value, dtype=None):
    changed = np.array(values, dtype=dtype)
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({"y": np.ones(60)}, {}, InvalidInputError, "two classes; got 1"),
        ({"y": np.arange(60)}, {}, InvalidInputError, "two classes; got 60"),
        ({"y": one_value_wrong(np.zeros(60), 45, np.nan)}, {}, InvalidInputError, "y_true.*NaN at row 45"),
        ({"sensitive_features": np.repeat("f", 60)}, {}, GroupError, "at least two groups; got only 'f'"),
        (
            {"sensitive_features": one_value_wrong(np.repeat("f", 60), 33, None, object)},
            {},
            GroupError,
            "missing value; got None at row 33",
        ),
        ({"sample_weight": one_value_wrong(np.ones(60), 41, -1)}, {}, InvalidInputError, "got -1 at row 41"),
        ({"sample_weight": np.ones(59)}, {}, InvalidInputError, "sample_weight must have as many rows"),
        ({"fold": np.full(60, 0.5)}, {}, InvalidInputError, "fold must be integers"),
        ({"scores": np.zeros(60)}, {}, InvalidInputError, r"shape \(rows, models\); got shape \(60,\)"),
        ({"scores": np.full((60, 2), 1.5)}, {"accuracy": "brier"}, InvalidInputError, "clip or calibrate"),
        ({"scores": np.full((60, 2), -0.5)}, {"threshold": None}, InvalidInputError, "threshold=None"),
        ({"names": ("a", "b")}, {}, InvalidInputError, "same 2 models; got 7 columns"),
        ({"names": ("a",) * 7}, {}, InvalidInputError, "distinct names"),
        ({"names": (*"abcdef", "constant")}, {}, InvalidInputError, "must not name a model 'constant'"),
        (
            {},
            {"fairness": [(np.ones(61, bool), np.ones(61, bool))]},
            InvalidInputError,
            "one boolean per row, 60; got 61",
        ),
        ({}, {"accuracy": lambda y, p: 1.0}, InvalidInputError, "got a function"),
        ({}, {"accuracy": "acuracy"}, InvalidInputError, "did you mean 'accuracy'"),
        ({}, {"threshold": 1.5}, InvalidInputError, "threshold must be in"),
        ({}, {"sensitive_mode": "both"}, InvalidInputError, "sensitive_mode must be one of"),
    ],
)
def test_bad_chunks(changes, options, error, message):
    with pytest.raises(error, match=message):
        points_from_chunks(bad(**changes), **options)


def test_a_value_that_is_not_finite_is_named_by_its_row_in_the_whole_table():
    scores = people(n=60)[1]
    with pytest.raises(InvalidInputError, match="got nan in 'model_3' at row 47"):
        points_from_chunks(bad(scores=one_value_wrong(scores, (47, 3), np.nan)))


def test_numbers_as_groups_are_refused_before_memory_is_full():
    y, scores, _, _ = people(n=12_000, k=1)
    with pytest.raises(GroupError, match="at most 10000 combinations"):
        points_from_chunks(array_chunks(y, scores, sensitive_features=np.arange(12_000), chunk_rows=3000))


def test_chunks_that_do_not_belong_together():
    y, scores, groups, _ = people(n=100)
    first = (y, scores, groups)
    with pytest.raises(InvalidInputError, match="same 7 models; got 6"):
        points_from_chunks(iterable_chunks([first, (y, scores[:, 1:], groups)]))
    with pytest.raises(InvalidInputError, match="same sensitive_features"):
        points_from_chunks(iterable_chunks([first, (y, scores, {"sex": groups["sex"]})]))
    with pytest.raises(InvalidInputError, match="at least one part"):
        iterable_chunks([])
    with pytest.raises(InvalidInputError, match="at least one row"):
        points_from_chunks(iterable_chunks([first]).map(lambda chunk: chunk.take(chunk.row < 0)))


def test_bad_files(tmp_path):
    with pytest.raises(DataFileError, match="cannot be opened"):
        file_chunks(tmp_path / "none.parquet", label="y", sensitive="sex")
    table = pa.table({"y": [0, 1], "sex": ["f", "m"], "a": [0.1, 0.2], "word": ["x", "y"]})
    pq.write_table(table, tmp_path / "ok.parquet")
    with pytest.raises(InvalidInputError, match="did you mean 'sex'"):
        file_chunks(tmp_path / "ok.parquet", label="y", sensitive="sec")
    with pytest.raises(InvalidInputError, match="numbers; got 'x' of type"):
        list(file_chunks(tmp_path / "ok.parquet", label="y", sensitive="sex", scores=["word"]))
    with pytest.raises(InvalidInputError, match="got none with numbers"):
        file_chunks(tmp_path / "ok.parquet", label="y", sensitive=["sex", "a"])
    with pytest.raises(InvalidInputError, match="chunk_rows must be at least"):
        file_chunks(tmp_path / "ok.parquet", label="y", sensitive="sex", chunk_rows=0)
    whole = (tmp_path / "ok.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-40])
    with pytest.raises(DataFileError, match="readable Parquet file"):
        file_chunks(tmp_path / "cut.parquet", label="y", sensitive="sex")
    (tmp_path / "words.csv").write_text("y,sex,a\n0,f,0.2\n1,m,high\n")
    with pytest.raises(DataFileError, match=r"column 'a' of words\.csv must hold numbers or truth values; got 'high'"):
        list(file_chunks(tmp_path / "words.csv", label="y", sensitive="sex", scores=["a"]))
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataFileError, match="readable CSV file"):
        file_chunks(tmp_path / "empty.csv", label="y", sensitive="sex")
