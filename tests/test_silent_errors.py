"""What was once wrong without a word: each is now an error, or does not depend on what it must not depend on."""

import functools

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier.chunks import array_chunks, file_chunks, iterable_chunks
from fairfrontier.exceptions import DataFileError, InvalidInputError


def people(seed=0, n=400, k=4, groups=("f", "m")):
    rng = np.random.default_rng(seed)
    sex = rng.choice(list(groups), n)
    y = (rng.random(n) < 0.3 + 0.3 * (sex == groups[0])).astype(int)
    H = np.clip(0.5 * y[:, None] + 0.2 * (sex == groups[0])[:, None] + rng.normal(0, 0.3, (n, k)), 0, 1)
    return y, H, sex


def named(H):
    return {f"m{j}": column for j, column in enumerate(H.T)}


class TestManyCells:
    """More than 48 combinations of label and group, some of them missing in a part of the rows."""

    def problem(self):
        rng = np.random.default_rng(3)
        group = np.concatenate([np.repeat(np.arange(30), 12), rng.integers(0, 30, 240)])
        y = rng.integers(0, 2, 600)
        y[:360:12], y[1:360:12] = 0, 1
        H = np.clip(0.4 * y[:, None] + 0.01 * group[:, None] + rng.normal(0.2, 0.2, (600, 3)), 0, 1)
        return y, H, group

    def test_chunks_give_what_memory_gives(self):
        y, H, group = self.problem()
        folds = np.arange(600) % 3
        options = {"random_state": 0, "family_scales": None}
        whole = ff.FairStacksClassifier(cv=[(folds != f, np.flatnonzero(folds == f)) for f in range(3)], **options)
        whole.fit(H, y, sensitive_features=group)
        chunks = array_chunks(y, H, sensitive_features=group, fold=folds, chunk_rows=47)
        parts = ff.FairStacksClassifier(cv=3, **options).fit_chunks(chunks)
        np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-10)
        np.testing.assert_allclose(parts.points_.fairness, whole.points_.fairness, atol=1e-12)

    def test_out_of_fold_rates_are_those_of_a_loop(self):
        y, H, group = self.problem()
        points = ff.points_from_chunks(array_chunks(y, H, sensitive_features=group, chunk_rows=50))
        for j in range(3):
            rates = [np.mean(H[group == g, j] > 0.5) for g in range(30)]
            assert points.fairness[j] == pytest.approx(1 - (max(rates) - min(rates)), abs=1e-12)


class TestChunksByName:
    def parts(self, second):
        y, H, sex = people()
        return [(y[:200], named(H[:200]), sex[:200]), (y[200:], second(named(H[200:])), sex[200:])]

    def test_columns_in_another_order_are_put_in_order(self):
        expected = ff.points_from_chunks(iterable_chunks(self.parts(lambda columns: columns)))
        found = ff.points_from_chunks(iterable_chunks(self.parts(lambda columns: dict(reversed(columns.items())))))
        np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-15)

    def test_columns_of_other_names_are_refused(self):
        other = self.parts(lambda columns: {name.replace("m3", "n3"): values for name, values in columns.items()})
        with pytest.raises(InvalidInputError, match=r"'m3' is missing .*, and 'n3' is there instead"):
            ff.points_from_chunks(iterable_chunks(other))

    def test_a_function_that_returns_an_exhausted_iterator_is_refused(self):
        same = iter(self.parts(lambda columns: columns))
        chunks = iterable_chunks(lambda: same)
        assert len(ff.points_from_chunks(chunks)) == 5
        with pytest.raises(InvalidInputError, match="exhausted"):
            ff.points_from_chunks(chunks)

    def test_a_file_that_changes_between_passes_is_noticed(self, tmp_path):
        y, H, sex = people()
        frame = pd.DataFrame(named(H)).assign(y=y, sex=sex)
        frame.to_csv(tmp_path / "people.csv", index=False)
        chunks = file_chunks(tmp_path / "people.csv", label="y", sensitive="sex", chunk_rows=100)
        ff.points_from_chunks(chunks)
        frame.iloc[::-1].assign(m0=0.123456).to_csv(tmp_path / "people.csv", index=False)
        with pytest.raises(DataFileError, match=r"people.csv must not change while it is read"):
            ff.points_from_chunks(chunks)


class TestNamesAtPrediction:
    def test_a_dataframe_in_another_order_after_a_dict(self):
        y, H, sex = people()
        model = ff.FairStacksClassifier(alpha=1.0).fit(named(H), y, sensitive_features=sex)
        turned = pd.DataFrame(named(H))[["m2", "m0", "m3", "m1"]]
        assert (model.predict(turned) == model.predict(named(H))).all()

    def test_numbered_columns(self):
        y, H, sex = people()
        frame = pd.DataFrame(H)
        model = ff.FairStacksClassifier(alpha=1.0).fit(frame, y, sensitive_features=sex)
        assert (model.predict(frame[[2, 0, 3, 1]]) == model.predict(frame)).all()
        by_key = ff.FairStacksClassifier(alpha=1.0).fit(dict(enumerate(H.T)), y, sensitive_features=sex)
        assert (by_key.predict(dict(reversed(list(enumerate(H.T))))) == model.predict(frame)).all()

    def test_unknown_names_are_refused(self):
        y, H, sex = people()
        model = ff.FairStacksClassifier(alpha=1.0).fit(named(H), y, sensitive_features=sex)
        with pytest.raises(InvalidInputError, match="every base model; 'm0' is missing"):
            model.predict({"x": H[:, 0], "m1": H[:, 1], "m2": H[:, 2], "m3": H[:, 3]})
        with pytest.raises(InvalidInputError, match="base models alone; 'x' is none of them"):
            model.predict(named(H) | {"x": H[:, 0]})


class TestIndexes:
    def test_the_same_labels_in_another_order_are_refused(self):
        y, H, sex = people()
        series = pd.Series(sex)
        for call in (
            lambda order: ff.tradeoff_points(pd.Series(y), H, sensitive_features=series.iloc[order]),
            lambda order: ff.fauc_interval(pd.Series(y), H, sensitive_features=series.iloc[order], n_resamples=50),
            lambda order: ff.FairStacksClassifier(alpha=1.0).fit(
                pd.DataFrame(named(H)), pd.Series(y), sensitive_features=series.iloc[order]
            ),
        ):
            call(np.arange(400))
            with pytest.raises(InvalidInputError, match="same index labels in another order"):
                call(np.random.default_rng(0).permutation(400))

    def test_other_labels_mean_the_position(self):
        y, H, sex = people()
        moved = pd.Series(sex, index=np.arange(400) + 1000)
        found = ff.tradeoff_points(pd.Series(y), H, sensitive_features=moved)
        assert found.fairness.tolist() == ff.tradeoff_points(y, H, sensitive_features=sex).fairness.tolist()


def test_masked_values_are_refused_everywhere():
    y, H, sex = people()
    masked = np.ma.masked_greater(H, 0.9)
    model = ff.FairStacksClassifier(alpha=1.0).fit(H, y, sensitive_features=sex)
    for call in (
        lambda: ff.tradeoff_points(y, masked, sensitive_features=sex),
        lambda: ff.FairStacksClassifier(alpha=1.0).fit(masked, y, sensitive_features=sex),
        lambda: model.predict(masked),
        lambda: array_chunks(y, masked, sensitive_features=sex),
    ):
        with pytest.raises(InvalidInputError, match="must have no masked value"):
            call()


def test_a_score_is_decided_alike_beside_a_column_of_another_precision():
    scores = np.array([0.3, 0.30000001, 0.29999999, 0.6, 0.1, 0.3], dtype=np.float32)
    y, sex = [1, 0, 1, 1, 0, 0], list("fmfmfm")
    alone = ff.tradeoff_points(y, {"a": scores}, sensitive_features=sex, threshold=0.3)
    beside = ff.tradeoff_points(y, {"a": scores, "b": scores.astype(np.float64)}, sensitive_features=sex, threshold=0.3)
    assert alone.rates[0].tolist() == beside.rates[0].tolist() == beside.rates[1].tolist()
    assert alone.accuracy[0] == beside.accuracy[0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_function_gets_the_decisions_of_the_named_measures(dtype):
    scores = np.array([0.3, 0.30000001, 0.29999999, 0.6, 0.1, 0.3], dtype=dtype)
    y, options = [1, 0, 1, 1, 0, 0], {"sensitive_features": list("fmfmfm"), "threshold": 0.3}
    named = ff.tradeoff_points(y, scores, **options)
    called = ff.tradeoff_points(y, scores, accuracy=lambda y, decided: float((y == decided).mean()), **options)
    assert called.accuracy.tolist() == named.accuracy.tolist()


def test_masks_of_a_fit_do_not_evaluate_other_rows():
    y, H, sex = people()
    model = ff.FairStacksClassifier(alpha=1.0, fairness=[(sex == "f", sex == "m")]).fit(H, y)
    for method in (model.points, model.decision_path, model.exact_frontier):
        with pytest.raises(InvalidInputError, match="fitted with masks of its own rows"):
            method(H[::-1], y[::-1])
    turned = model.points(H[::-1], y[::-1], fairness=[(sex[::-1] == "f", sex[::-1] == "m")])
    same = model.points(H, y, fairness=[(sex == "f", sex == "m")])
    np.testing.assert_allclose(turned.fairness, same.fairness, atol=1e-12)


@pytest.mark.parametrize("classes", [("no", "yes"), (1, 2), (3, 7)])
def test_decisions_in_the_words_of_the_labels(classes):
    y, H, sex = people()
    labels, decided = np.array(classes)[y], np.array(classes)[(H[:, 0] > 0.5).astype(int)]
    found = ff.tradeoff_points(labels, {"s": decided}, sensitive_features=sex)
    expected = ff.tradeoff_points(y, {"s": H[:, 0]}, sensitive_features=sex)
    assert found.accuracy.tolist() == expected.accuracy.tolist()
    assert found.fairness.tolist() == expected.fairness.tolist()


@pytest.mark.parametrize("function", [ff.fauc_interval, ff.taf_bands, ff.honest_taf])
def test_masks_without_attributes_in_resampling(function):
    y, H, sex = people()
    masks = [(sex == "f", sex == "m")]
    options = {"random_state": 0} if function is ff.honest_taf else {"random_state": 0, "n_resamples": 60}
    found = function(y, H, sensitive_features=None, fairness=masks, **options)
    with_attribute = function(y, H, sensitive_features=sex, fairness=masks, **options)
    for one in ("low", "high", "fairness", "accuracy"):
        if hasattr(found, one):
            np.testing.assert_allclose(getattr(found, one), getattr(with_attribute, one), atol=1e-12)


def test_weights_of_the_operating_point_are_not_a_view_of_the_path():
    y, H, sex = people()
    model = ff.FairStacksClassifier(alpha=1.0).fit(H, y, sensitive_features=sex)
    before = model.path_.weights.copy()
    model.weights_[:] = 7.0
    assert (model.path_.weights == before).all()


def test_an_attribute_aware_stack_has_a_picture():
    y, H, sex = people()
    model = ff.FairStacksClassifier(alpha=1.0, attribute_aware=True).fit(H, y, sensitive_features={"sex": sex})
    smaller = "f" if np.mean(sex == "f") < 0.5 else "m"  # the larger group is the baseline
    assert f"sex={smaller}" in model._repr_html_()


@pytest.mark.parametrize("moved", ["X", "y", "sensitive_features"])
@pytest.mark.parametrize("call", ["points", "exact_frontier", "certify", "score_decision_diagnostics", "calibration"])
def test_rows_in_another_order_are_refused_wherever_a_stack_is_evaluated(call, moved):
    generator = np.random.default_rng(0)
    rows = {"X": pd.DataFrame(generator.random((300, 2)), columns=["a", "b"])}
    rows["y"] = pd.Series((rows["X"]["a"] + 0.3 * generator.normal(size=300) > 0.5).astype(int))
    rows["sensitive_features"] = pd.Series(np.where(generator.random(300) < 0.4, "f", "m"))
    model = ff.FairStacksClassifier("precomputed").fit(**rows)
    rows[moved] = rows[moved].iloc[generator.permutation(300)]
    calls = {
        "points": model.points,
        "exact_frontier": model.exact_frontier,
        "certify": functools.partial(ff.certify, model),
        "score_decision_diagnostics": functools.partial(ff.score_decision_diagnostics, model),
        "calibration": lambda **rows: model.select(0.5, confidence=0.5, calibration=tuple(rows.values())),
    }
    with pytest.raises(InvalidInputError, match="order"):
        calls[call](**rows)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    return X, pd.Series(rng.integers(0, 2, 120)), pd.Series(rng.choice(["f", "m"], 120))


class TestOrderElsewhere:
    """Whatever puts rows together by position refuses an index that says otherwise."""

    @pytest.mark.parametrize("moved", ["y", "sensitive_features"])
    def test_achievable_frontier_and_its_kin(self, rows, moved):
        X, y, sex = rows
        given = {"y": y, "sensitive_features": sex}
        given[moved] = given[moved].iloc[::-1]
        for call in (ff.achievable_frontier, ff.learning_frontier):
            with pytest.raises(InvalidInputError, match="rows in one order"):
                call(X, given["y"], sensitive_features=given["sensitive_features"])
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.frontier_gap(X, given["y"], {"m": X["a"]}, sensitive_features=given["sensitive_features"])

    def test_learners(self, rows):
        X, y, sex = rows
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.learners.KernelFair().fit(X, y.iloc[::-1], sensitive_features=sex)
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.learners.fit_group_models(X, sensitive_features=sex.iloc[::-1])
