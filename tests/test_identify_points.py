"""tradeoff_points: every kind of input, every option, one answer."""

from datetime import date
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier.chunks import array_chunks

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

N, K = 60, 3
RNG = np.random.default_rng(42)
Y = RNG.integers(0, 2, N)
GROUP = RNG.integers(0, 3, N)
# Multiples of 1/8 are exact in every floating-point type.
SCORES = RNG.integers(0, 9, (N, K)) / 8
TEXT = np.array(["north", "south", "west"])[GROUP]
NAMES = ("first", "second", "third")


def expected(**options):
    return ff.tradeoff_points(Y, dict(zip(NAMES, SCORES.T, strict=True)), sensitive_features=GROUP, **options)


def assert_same(points, reference=None, names=None):
    reference = expected() if reference is None else reference
    np.testing.assert_allclose(points.fairness, reference.fairness, atol=1e-15)
    np.testing.assert_allclose(points.accuracy, reference.accuracy, atol=1e-15)
    np.testing.assert_allclose(points.bias, reference.bias, atol=1e-15)
    assert points.names == (reference.names if names is None else names)


FRAME = pd.DataFrame(SCORES, columns=NAMES)
SHUFFLED = FRAME.set_axis(RNG.permutation(N))
PREDICTIONS = {
    "dict of lists": {name: column.tolist() for name, column in zip(NAMES, SCORES.T, strict=True)},
    "dict of float16": {name: FRAME[name].to_numpy(np.float16) for name in NAMES},
    "dict of columns (n, 1)": {name: SCORES[:, [j]] for j, name in enumerate(NAMES)},
    "dict of several kinds": {
        "first": FRAME["first"],
        "second": pl.Series(FRAME["second"].to_numpy()),
        "third": pa.chunked_array([FRAME["third"].to_numpy()[:20], FRAME["third"].to_numpy()[20:]]),
    },
    "dict of decimals": {name: [Decimal(v) for v in column] for name, column in zip(NAMES, SCORES.T, strict=True)},
    "dict of pyarrow arrays": {name: pa.array(column) for name, column in zip(NAMES, SCORES.T, strict=True)},
    "pandas": FRAME,
    "pandas with a shuffled index": SHUFFLED,
    "pandas with nullable numbers": FRAME.astype("Float64"),
    "pandas of float32": FRAME.astype(np.float32),
    "pandas with arrow numbers": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(SCORES, schema=list(NAMES)),
    "pyarrow": pa.table(dict(zip(NAMES, SCORES.T, strict=True))),
}
ARRAYS = {
    "C order": SCORES,
    "F order": np.asfortranarray(SCORES),
    "strided": np.repeat(SCORES, 2, axis=1)[:, ::2],
    "reversed twice": SCORES[::-1].copy()[::-1],
    "float16": SCORES.astype(np.float16),
    "float32": SCORES.astype(np.float32),
    "big-endian": SCORES.astype(">f8"),
    "long double": SCORES.astype(np.longdouble),
    "objects": SCORES.astype(object),
    "list of lists": SCORES.tolist(),
    "list of tuples": [tuple(row) for row in SCORES.tolist()],
    "read only": np.lib.stride_tricks.as_strided(SCORES, writeable=False),
}


class TestPredictions:
    @pytest.mark.parametrize("kind", PREDICTIONS)
    def test_with_names(self, kind):
        assert_same(ff.tradeoff_points(Y, PREDICTIONS[kind], sensitive_features=GROUP))

    @pytest.mark.parametrize("kind", ARRAYS)
    def test_without_names(self, kind):
        names = ("model_0", "model_1", "model_2", "constant")
        assert_same(ff.tradeoff_points(Y, ARRAYS[kind], sensitive_features=GROUP), names=names)

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, "boolean", "Int64"])
    def test_decisions_of_any_type(self, dtype):
        decisions = pd.DataFrame(SCORES > 0.5, columns=NAMES).astype(dtype)
        assert_same(ff.tradeoff_points(Y, decisions, sensitive_features=GROUP))
        assert_same(
            ff.tradeoff_points(Y, {name: decisions[name].to_numpy() for name in NAMES}, sensitive_features=GROUP)
        )

    @pytest.mark.parametrize(
        "one", [SCORES[:, 0], SCORES[:, 0].tolist(), FRAME["first"], pl.Series(SCORES[:, 0]), SCORES[:, [0]]]
    )
    def test_one_model(self, one):
        points = ff.tradeoff_points(Y, one, sensitive_features=GROUP)
        name = "first" if isinstance(one, pd.Series) else "model_0"
        assert points.names == (name, "constant")
        assert points.fairness[0] == expected().fairness[0]

    def test_names_that_are_no_text(self):
        assert ff.tradeoff_points(Y, {1: SCORES[:, 0]}, sensitive_features=GROUP).names == ("1", "constant")
        assert ff.tradeoff_points(Y, pd.DataFrame(SCORES), sensitive_features=GROUP).names[:3] == ("0", "1", "2")

    def test_input_is_not_changed(self):
        copy = SCORES.copy()
        ff.tradeoff_points(Y, SCORES, sensitive_features=GROUP, accuracy="brier", sample_weight=np.ones(N))
        np.testing.assert_array_equal(copy, SCORES)


LABELS = {
    "list": Y.tolist(),
    "booleans": Y == 1,
    "floats": Y.astype(float),
    "text": np.where(Y == 1, "yes", "no"),
    "objects": np.where(Y == 1, "yes", "no").astype(object),
    "bytes": np.where(Y == 1, b"yes", b"no"),
    "minus one and one": np.where(Y == 1, 1, -1),
    "column (n, 1)": Y[:, None],
    "pandas text": pd.Series(np.where(Y == 1, "yes", "no")),
    "pandas categories": pd.Series(np.where(Y == 1, "yes", "no")).astype("category"),
    "pandas nullable": pd.Series(Y).astype("Int64"),
    "pandas nullable booleans": pd.Series(Y == 1).astype("boolean"),
    "pandas frame": pd.DataFrame({"y": Y}),
    "pandas with a shuffled index": pd.Series(Y, index=N + RNG.permutation(N)),
    "polars": pl.Series(Y),
    "polars text": pl.Series(np.where(Y == 1, "yes", "no")),
    "pyarrow": pa.chunked_array([Y]),
    "tuples": [("b", 1) if v else ("a", 2) for v in Y],
    "dates": np.where(Y == 1, np.datetime64("2020-01-02"), np.datetime64("2020-01-01")),
}


class Region(Enum):
    NORTH = 0
    SOUTH = 1
    WEST = 2


GROUPS = {
    "list": GROUP.tolist(),
    "text": TEXT,
    "list of text": TEXT.tolist(),
    "objects": TEXT.astype(object),
    "bytes": TEXT.astype("S"),
    "floats": GROUP / 7,
    "large numbers": GROUP.astype(np.int64) * 2**61 - 2**61,
    "unsigned": GROUP.astype(np.uint64) * 2**62,
    "tuples": [("region", int(g)) for g in GROUP],
    "tuples of several lengths": [("region",) * (int(g) + 1) for g in GROUP],
    "several types": [(0, "one", 2.5)[g] for g in GROUP],
    "enumeration": [list(Region)[g] for g in GROUP],
    "frozen sets": [frozenset({int(g)}) for g in GROUP],
    "dates": [date(2020, 1, 1 + int(g)) for g in GROUP],
    "numpy dates": np.datetime64("2020-01-01") + GROUP,
    "column (n, 1)": GROUP[:, None],
    "dict": {"region": TEXT},
    "pandas": pd.Series(TEXT, name="region"),
    "pandas objects": pd.Series(TEXT.astype(object)),
    "pandas categories": pd.Series(pd.Categorical(TEXT, categories=["west", "south", "north", "unused"])),
    "pandas nullable": pd.Series(GROUP).astype("Int32"),
    "pandas arrow text": pd.Series(TEXT).astype("string[pyarrow]"),
    "pandas with a shuffled index": pd.Series(TEXT, index=N + RNG.permutation(N)),
    "pandas frame": pd.DataFrame({"region": TEXT}),
    "polars": pl.Series("region", TEXT),
    "polars categories": pl.Series("region", TEXT).cast(pl.Categorical),
    "polars enum": pl.Series("region", TEXT).cast(pl.Enum(["north", "south", "west"])),
    "polars frame": pl.DataFrame({"region": TEXT}),
    "pyarrow": pa.chunked_array([pa.array(TEXT)]),
    "pyarrow dictionary": pa.chunked_array([pa.array(TEXT).dictionary_encode()]),
    "pyarrow table": pa.table({"region": TEXT}),
}
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    GROUPS["variable-width text"] = TEXT.astype(np.dtypes.StringDType())


class TestLabelsAndGroups:
    @pytest.mark.parametrize("kind", LABELS)
    def test_labels_of_any_kind(self, kind):
        assert_same(ff.tradeoff_points(LABELS[kind], FRAME, sensitive_features=GROUP))

    @pytest.mark.parametrize("kind", GROUPS)
    def test_groups_of_any_kind(self, kind):
        points = ff.tradeoff_points(Y, FRAME, sensitive_features=GROUPS[kind])
        np.testing.assert_allclose(points.fairness, expected().fairness, atol=1e-15)
        np.testing.assert_allclose(np.sort(points.rates), np.sort(expected().rates), atol=1e-15)

    def test_one_and_the_text_one_are_two_groups(self):
        mixed = [(1, "1", "a")[g] for g in GROUP]
        np.testing.assert_allclose(
            ff.tradeoff_points(Y, FRAME, sensitive_features=mixed).fairness, expected().fairness, atol=1e-15
        )

    @pytest.mark.parametrize("make", [np.column_stack, pd.DataFrame, pl.DataFrame, pa.table, dict])
    def test_several_attributes(self, make):
        columns = {"region": TEXT, "half": np.where(np.arange(N) < 30, "old", "young")}
        given_ = make(list(columns.values())) if make is np.column_stack else make(columns)
        points = ff.tradeoff_points(Y, FRAME, sensitive_features=given_)
        named = ff.tradeoff_points(Y, FRAME, sensitive_features=columns)
        np.testing.assert_array_equal(points.rates, named.rates)
        if make is not np.column_stack:
            assert points.sets.attributes == ("region", "half")

    def test_a_list_of_rows_with_several_types(self):
        rows = [[t, int(g)] for t, g in zip(TEXT, GROUP, strict=True)]
        points = ff.tradeoff_points(Y, FRAME, sensitive_features=rows)
        assert points.sets.attributes == ("sensitive_feature_0", "sensitive_feature_1")
        np.testing.assert_allclose(points.fairness, expected().fairness, atol=1e-15)

    @given(st.permutations(range(3)), st.randoms(use_true_random=False))
    def test_relabelling_and_order_of_rows_change_nothing(self, relabel, random):
        rows = list(range(N))
        random.shuffle(rows)
        for fairness in ("demographic_parity", "equalized_odds"):
            points = ff.tradeoff_points(
                Y[rows], SCORES[rows], sensitive_features=np.array(relabel)[GROUP][rows], fairness=fairness
            )
            np.testing.assert_array_equal(points.fairness, expected(fairness=fairness).fairness)
            np.testing.assert_array_equal(points.accuracy, expected(fairness=fairness).accuracy)

    def test_exchanged_classes_exchange_the_measures(self):
        other = ff.tradeoff_points(1 - Y, 1 - SCORES, sensitive_features=GROUP, threshold=0.45)
        np.testing.assert_allclose(other.fairness, expected().fairness, atol=1e-12)
        np.testing.assert_allclose(other.accuracy, expected().accuracy, atol=1e-12)

    def test_one_row_a_group(self):
        points = ff.tradeoff_points([0, 1, 1], [0.2, 0.9, 0.4], sensitive_features=["a", "b", "c"])
        np.testing.assert_array_equal(points.rates[0], [0.0, 1.0, 0.0])
        assert points.fairness.tolist() == [0.0, 1.0]


class TestWeights:
    def test_ones_change_nothing_and_scale_does_not_matter(self):
        for weight in (np.ones(N), np.full(N, 1e-9), [7] * N, pd.Series(np.ones(N)), np.ones(N, dtype=bool)):
            points = ff.tradeoff_points(Y, FRAME, sensitive_features=GROUP, sample_weight=weight)
            np.testing.assert_allclose(points.fairness, expected().fairness, atol=1e-12)
            np.testing.assert_allclose(points.accuracy, expected().accuracy, atol=1e-12)

    @pytest.mark.parametrize("accuracy", ["accuracy", "balanced_accuracy", "brier"])
    def test_whole_weights_are_repeated_rows_and_zero_drops_them(self, accuracy):
        weight = RNG.integers(0, 4, N)
        rows = np.repeat(np.arange(N), weight)
        options = {"fairness": "equalized_odds", "accuracy": accuracy}
        weighted = ff.tradeoff_points(Y, SCORES, sensitive_features=GROUP, sample_weight=weight, **options)
        repeated = ff.tradeoff_points(Y[rows], SCORES[rows], sensitive_features=GROUP[rows], **options)
        np.testing.assert_allclose(weighted.bias, repeated.bias, atol=1e-12)
        np.testing.assert_allclose(weighted.accuracy, repeated.accuracy, atol=1e-12)


class TestThreshold:
    def test_above_is_strict(self):
        points = ff.tradeoff_points(
            [0, 1, 0, 1], [0.5, 0.5, 0.6, 0.6], sensitive_features=[0, 0, 1, 1], include_constant=False
        )
        np.testing.assert_array_equal(points.rates, [[0.0, 1.0]])

    @pytest.mark.parametrize("threshold", [0.0, 0.25, 1.0])
    def test_other_thresholds(self, threshold):
        points = ff.tradeoff_points(Y, FRAME, sensitive_features=GROUP, threshold=threshold)
        decided = threshold < SCORES
        np.testing.assert_allclose(points.accuracy[:3], (decided == (Y == 1)[:, None]).mean(axis=0))

    def test_none_is_what_random_decisions_give_on_average(self):
        points = ff.tradeoff_points(Y, FRAME, sensitive_features=GROUP, threshold=None)
        rng = np.random.default_rng(0)
        draws = rng.random((20_000, N)) < SCORES[:, 0]
        assert points.accuracy[0] == pytest.approx((draws == Y).mean(), abs=0.005)
        rates = [draws[:, g == GROUP].mean() for g in range(3)]
        np.testing.assert_allclose(points.rates[0], rates, atol=0.01)

    def test_none_with_decisions_is_the_same_as_a_threshold(self):
        decisions = (SCORES > 0.5).astype(int)
        assert_same(
            ff.tradeoff_points(Y, decisions, sensitive_features=GROUP, threshold=None),
            names=("model_0", "model_1", "model_2", "constant"),
        )

    def test_scores_may_be_anything_with_a_threshold(self):
        points = ff.tradeoff_points(Y, (SCORES - 0.5) * 1e300, sensitive_features=GROUP, threshold=0.0)
        np.testing.assert_array_equal(points.fairness, expected().fairness)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_huge_but_finite_scores_are_taken(self, dtype):
        scores = np.full((N, K), np.finfo(dtype).max) * (SCORES > 0.5)
        points = ff.tradeoff_points(Y, scores.astype(dtype), sensitive_features=GROUP)
        np.testing.assert_array_equal(points.fairness, expected().fairness)


class TestRegression:
    def test_parity_of_scores(self):
        y = np.array([1.0, 2.0, 3.0, 4.0])
        scores = [1.0, 2.0, 2.2, 2.4]
        points = ff.tradeoff_points(y, scores, sensitive_features=list("aabb"), accuracy="r2")
        assert points.fairness[0] == pytest.approx(1 - 0.8 / y.std())
        assert points.bias[0, 0] == pytest.approx(-0.8 / y.std())
        raw = ff.tradeoff_points(y, scores, sensitive_features=list("aabb"), fairness="mean_difference", accuracy="r2")
        assert raw.fairness[0] == pytest.approx(1 - 0.8)

    def test_the_unit_is_the_weighted_deviation_of_the_target(self):
        y, weight = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 3.0, 2.0, 1.0])
        scores = np.array([1.0, 2.0, 2.2, 2.4])
        points = ff.tradeoff_points(y, scores, sensitive_features=list("aabb"), accuracy="r2", sample_weight=weight)
        deviation = np.sqrt(np.cov(y, aweights=weight, ddof=0))
        gap = np.average(scores[:2], weights=weight[:2]) - np.average(scores[2:], weights=weight[2:])
        assert points.bias[0, 0] == pytest.approx(gap / deviation)

    @pytest.mark.parametrize("accuracy", ["r2", "exp_mse"])
    def test_fairness_does_not_depend_on_units(self, accuracy):
        rng = np.random.default_rng(0)
        y, scores, group = rng.random(50), rng.random((50, 4)), rng.choice(list("abc"), 50)
        one, other = (
            ff.tradeoff_points(a * y + b, a * scores + b, sensitive_features=group, accuracy=accuracy)
            for a, b in ((1.0, 0.0), (-1000.0, 7.0))
        )
        np.testing.assert_allclose(one.fairness, other.fairness, atol=1e-9)
        np.testing.assert_allclose(one.bias, -other.bias, atol=1e-9)

    def test_intervals_are_in_the_same_unit(self):
        rng = np.random.default_rng(0)
        group = rng.integers(0, 2, 200)
        y = rng.random(200) + 0.1 * group
        found = [
            ff.fauc_interval(
                a * y, {"m": a * (y + 0.05)}, sensitive_features=group, accuracy="r2", n_resamples=50, random_state=0
            )
            for a in (1.0, 300.0)
        ]
        assert found[0].low == pytest.approx(found[1].low, abs=1e-9)
        assert found[0].high == pytest.approx(found[1].high, abs=1e-9)

    @pytest.mark.parametrize("value", [0.0, 2.0])
    def test_a_target_of_one_value_has_no_unit(self, value):
        with pytest.raises(
            ff.exceptions.InvalidInputError, match="y_true must have at least two values: fairness of a regression"
        ):
            ff.tradeoff_points([value] * 4, [1.0] * 4, sensitive_features=list("aabb"), accuracy="exp_mse")

    @pytest.mark.parametrize("value", [0.0, 2.0])
    def test_a_target_of_one_value_has_no_r2(self, value):
        options = {"sensitive_features": list("aabb"), "fairness": "mean_difference", "accuracy": "r2"}
        with pytest.raises(ff.exceptions.InvalidInputError, match="one value only; use 'exp_mse'"):
            ff.tradeoff_points([value] * 4, [1.0, 2.0, 3.0, 4.0], **options)

    def test_a_small_spread_around_a_large_mean_has_an_r2(self):
        y = 1.0 + 1e-8 * np.array([0.0, 1.0, 2.0, 3.0])
        points = ff.tradeoff_points(y, y, sensitive_features=list("aabb"), accuracy="r2")
        assert points.accuracy[0] == 1.0

    def test_chunks_of_any_spread_give_the_same(self):
        rng = np.random.default_rng(0)
        y, group = np.repeat([3.0, 5.0, 5.0], 20) + rng.random(60), rng.choice(["a", "b"], 60)
        scores = y[:, None] + rng.normal(0, 0.3, (60, 2))
        whole = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy="r2")
        chunks = array_chunks(y, scores, sensitive_features=group, chunk_rows=20)
        np.testing.assert_allclose(ff.points_from_chunks(chunks, accuracy="r2").accuracy, whole.accuracy, atol=1e-12)

    def test_the_constant_model_predicts_the_weighted_mean(self):
        y, weight = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 3.0, 2.0, 1.0])
        options = {"sensitive_features": list("aabb"), "fairness": "mean_difference", "accuracy": "r2"}
        points = ff.tradeoff_points(y, y, sample_weight=weight, **options)
        np.testing.assert_allclose(points.rates[-1], np.average(y, weights=weight), rtol=1e-14)

    def test_a_gap_above_one_has_fairness_zero(self):
        y = np.array([1.0, 2.0, 3.0, 4.0])
        points = ff.tradeoff_points(y, y, sensitive_features=list("aabb"), accuracy="exp_mse")
        assert points.bias[0, 0] == pytest.approx(-2.0 / y.std())
        assert points.fairness[0] == 0.0
        assert points.accuracy[0] == 1.0

    def test_worse_than_the_mean_has_accuracy_zero(self):
        points = ff.tradeoff_points([1.0, 2.0, 3.0], [9.0, 9.0, 9.0], sensitive_features=list("aab"), accuracy="r2")
        assert points.accuracy.tolist() == [0.0, 0.0]


class TestConstant:
    @pytest.mark.parametrize(
        ("accuracy", "value"), [("accuracy", 0.75), ("balanced_accuracy", 0.5), ("brier", 1 - 0.1875)]
    )
    def test_two_classes(self, accuracy, value):
        for y in ([0, 1, 1, 1], [1, 0, 0, 0]):
            points = ff.tradeoff_points(y, [0, 1, 0, 1], sensitive_features=list("aabb"), accuracy=accuracy)
            assert points.names[-1] == "constant"
            assert points.accuracy[-1] == pytest.approx(value)
            assert points.fairness[-1] == 1.0

    def test_a_function_chooses_its_best_constant(self):
        def recall(y_true, y_pred):
            return float(y_pred[y_true == 1].mean())

        points = ff.tradeoff_points([0, 0, 0, 1], [0, 1, 0, 1], sensitive_features=list("aabb"), accuracy=recall)
        assert points.accuracy[-1] == 1.0
        assert points.rates[-1].tolist() == [1.0, 1.0]

    @given(st.lists(st.floats(0, 9, width=32), min_size=6, max_size=30), st.booleans())
    def test_always_exactly_fair(self, y, weighted):
        """Quotients of sums are rounded, but the constant must reach fairness 1, where TAF would fall to 0."""
        if max(y) - min(y) < 1e-3:
            return
        weight = np.linspace(0.1, 1.7, len(y)) if weighted else None
        group = np.arange(len(y)) % 3
        points = ff.tradeoff_points(y, y, sensitive_features=group, accuracy="exp_mse", sample_weight=weight)
        assert points.fairness[-1] == 1.0
        assert points.frontier()(1.0) > 0.0

    def test_without(self):
        points = ff.tradeoff_points(Y, FRAME, sensitive_features=GROUP, include_constant=False)
        assert points.names == NAMES
        np.testing.assert_array_equal(points.accuracy, expected().accuracy[:-1])

    def test_a_model_of_that_name_without_ours(self):
        points = ff.tradeoff_points(Y, {"constant": SCORES[:, 0]}, sensitive_features=GROUP, include_constant=False)
        assert points.names == ("constant",)


class TestTradeoffPoints:
    def test_select(self):
        points = expected()
        for chosen in (["third", "first"], [2, 0], np.array([2, 0])):
            part = points.select(chosen)
            assert part.names == ("third", "first")
            np.testing.assert_array_equal(part.bias, points.bias[[2, 0]])
        assert points.select(np.array([False, True, False, True])).names == ("second", "constant")

    def test_length_and_text(self):
        points = ff.tradeoff_points([0, 1], {"a": [0, 1]}, sensitive_features=["x", "y"])
        assert len(points) == 2
        assert repr(points) == (
            "TradeoffPoints(2 models; most accurate 'a': accuracy 1.0000, fairness 0.0000; "
            "fairest 'constant': accuracy 0.5000, fairness 1.0000)"
        )

    @pytest.mark.parametrize("interpolate", [False, True, "signed"])
    def test_support_indexes_the_names(self, interpolate):
        points = expected()
        curve = points.frontier(interpolate)
        assert set(curve.support) <= set(range(len(points)))
        if interpolate is False:
            np.testing.assert_array_equal(points.fairness[curve.support], curve.fairness)
            np.testing.assert_array_equal(points.accuracy[curve.support], curve.accuracy)


def test_a_function_as_accuracy_without_the_constant():
    y, scores = np.array([0, 1, 1, 0, 1, 0]), np.array([0.2, 0.9, 0.4, 0.6, 0.8, 0.1])
    points = ff.tradeoff_points(
        y, scores, sensitive_features=list("aabbab"), accuracy=lambda y, h: np.mean(y == h), include_constant=False
    )
    assert points.accuracy.tolist() == [pytest.approx(4 / 6)]


def test_columns_of_one_array_are_the_same_as_copies_and_stay_as_they_are():
    rng = np.random.default_rng(0)
    y, weight = rng.integers(0, 2, 400), rng.random(400)
    rows = rng.random((5, 400))
    columns = np.asfortranarray(rows).T
    given = [dict(enumerate(rows)), dict(enumerate(columns.T)), dict(enumerate(rows[::-1][::-1]))]
    odd = dict(enumerate(rows)) | {2: rows[2, ::-1][::-1].copy(), 3: rows[3].astype(np.float32).astype(float)}
    before = rows.copy()
    for groups in (2, 60):  # with many cells sums are made in another way
        group = np.arange(400) % groups
        for threshold in (None, 0.5):
            options = {"sensitive_features": group, "sample_weight": weight, "threshold": threshold}
            expected = ff.tradeoff_points(y, {j: row.copy() for j, row in enumerate(rows)}, **options)
            for one in given:
                found = ff.tradeoff_points(y, one, **options)
                np.testing.assert_allclose(found.rates, expected.rates, atol=1e-14)
                assert found.names == expected.names
            copied = ff.tradeoff_points(y, {j: odd[j].copy() for j in odd}, **options)
            np.testing.assert_allclose(ff.tradeoff_points(y, odd, **options).rates, copied.rates, atol=1e-14)
    np.testing.assert_array_equal(rows, before)
    # In another order, or with a model twice, columns are not the array itself.
    order = [1, 0, 2, 2, 3]
    turned = {name: rows[j] for name, j in zip("abcde", order, strict=True)}
    options = {"sensitive_features": group, "include_constant": False}
    accuracy = ff.tradeoff_points(y, rows.T, **options).accuracy
    np.testing.assert_array_equal(ff.tradeoff_points(y, turned, **options).accuracy, accuracy[order])
