"""A stack of rows in chunks is the stack of all rows at once, tuned or not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, PredefinedSplit

from fairfrontier import FairStacksClassifier, FairStacksRegressor, StackStatistics
from fairfrontier.chunks import array_chunks, file_chunks, iterable_chunks
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.optimize._cross_validation import hashed_folds

NAMES = tuple(f"{'forest' if j < 8 else 'zoo'}/{j}" for j in range(12))


def stacking_problem(n=1500, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    y = (rng.random(n) < 0.25 + 0.4 * group / n_groups).astype(int)
    H = 0.4 * y[:, None] + 0.15 * group[:, None] + rng.normal(0, 0.3, (n, len(NAMES)))
    return y, H, group, rng.integers(0, 5, n), rng.integers(0, 4, n) / 2


def assert_same_stack(ours, theirs):
    assert ours.names_ == theirs.names_
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-8)
    assert ours.group_sizes_ == theirs.group_sizes_
    np.testing.assert_allclose(ours.scales_, theirs.scales_, rtol=1e-8)
    for name in ("target", "tau", "score_bias", "weights", "intercept"):
        np.testing.assert_allclose(getattr(ours.path_, name), getattr(theirs.path_, name), atol=1e-8, err_msg=name)
    for name in ("fairness", "accuracy", "rates"):
        np.testing.assert_allclose(getattr(ours.points_, name), getattr(theirs.points_, name), atol=1e-8, err_msg=name)
    assert ours.cv_fauc_.keys() == theirs.cv_fauc_.keys()
    np.testing.assert_allclose(list(ours.cv_fauc_.values()), list(theirs.cv_fauc_.values()), atol=1e-8)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=1e-8)
    assert ours.path_.kkt.max() < 1e-8


@pytest.mark.parametrize("kind", [FairStacksClassifier, FairStacksRegressor])
@pytest.mark.parametrize("path", ["signed", "paper"])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_tuned_path(kind, path, n_groups):
    y, H, group, fold, _ = stacking_problem(n_groups=n_groups)
    frame = pd.DataFrame(H, columns=list(NAMES))
    options = {"path": path, "cv": PredefinedSplit(fold)}
    whole = kind("precomputed", **options).fit(frame, y, sensitive_features={"g": group})
    chunks = array_chunks(y, H, sensitive_features={"g": group}, names=NAMES, chunk_rows=217)
    assert_same_stack(kind("precomputed", **options).fit_chunks(chunks), whole)


@pytest.mark.parametrize("fairness", ["equal_opportunity", "equalized_odds"])
def test_tuned_path_with_weights(fairness):
    y, H, group, fold, weight = stacking_problem(seed=1)
    weight[:250] = 0.0  # the first chunk counts for nothing
    whole = FairStacksClassifier("precomputed", fairness=fairness, cv=PredefinedSplit(fold))
    whole.fit(pd.DataFrame(H, columns=list(NAMES)), y, sensitive_features={"g": group}, sample_weight=weight)
    chunks = array_chunks(
        y, H, sensitive_features={"g": group}, sample_weight=weight, names=NAMES, fold=fold, chunk_rows=250
    )
    ours = FairStacksClassifier("precomputed", fairness=fairness, cv=5).fit_chunks(chunks)  # the chunks' own folds
    assert_same_stack(ours, whole)


@pytest.mark.parametrize("kind", [FairStacksClassifier, FairStacksRegressor])
def test_given_ridge_and_tau(kind):
    y, H, group, _, weight = stacking_problem(seed=2)
    options = {"alpha": 3.0, "tau": 0.02, "family_scales": None}
    whole = kind("precomputed", **options).fit(H, y, sensitive_features={"g": group}, sample_weight=weight)
    parts = [
        (y[a : a + 400], H[a : a + 400], {"g": group[a : a + 400]}, weight[a : a + 400]) for a in range(0, len(y), 400)
    ]
    ours = kind("precomputed", **options).fit_chunks(iterable_chunks(parts))
    assert_same_stack(ours, whole)
    np.testing.assert_allclose(ours.predict(H), whole.predict(H), atol=1e-9)


def test_hashed_folds_are_the_same_however_the_rows_are_cut(tmp_path):
    y, H, group, _, _ = stacking_problem()
    pd.DataFrame(H, columns=list(NAMES)).assign(y=y, g=group).to_parquet(tmp_path / "h.parquet", row_group_size=333)
    stacks = [
        FairStacksClassifier("precomputed", random_state=7).fit_chunks(
            file_chunks(tmp_path / "h.parquet", label="y", sensitive="g", chunk_rows=rows)
        )
        for rows in (100, 1500)
    ]
    assert_same_stack(*stacks)
    seed = int(np.random.RandomState(7).randint(2**31))
    folds = PredefinedSplit(hashed_folds(np.arange(len(y)), 5, seed))
    whole = FairStacksClassifier("precomputed", cv=folds)
    assert_same_stack(stacks[0], whole.fit(pd.DataFrame(H, columns=list(NAMES)), y, sensitive_features={"g": group}))


def test_hashed_folds_are_even_and_differ_by_seed():
    rows = np.arange(100_000)
    first, second = hashed_folds(rows, 5, 0), hashed_folds(rows, 5, 1)
    for folds in (first, second, hashed_folds(rows + 2**40, 5, 0)):
        # Five standard deviations of a binomial count.
        assert np.abs(np.bincount(folds) - 20_000).max() < 5 * np.sqrt(100_000 * 0.2 * 0.8)
    joint = np.bincount(5 * first + second)
    assert np.abs(joint - 4000).max() < 5 * np.sqrt(4000)


def test_text_classes():
    y, H, group, _, _ = stacking_problem()
    words = np.where(y == 1, "yes", "no")
    ours = FairStacksClassifier("precomputed", alpha=1.0).fit_chunks(
        array_chunks(words, H, sensitive_features=group, chunk_rows=90)
    )
    assert ours.classes_.tolist() == ["no", "yes"]
    whole = FairStacksClassifier("precomputed", alpha=1.0).fit(H, words, sensitive_features=group)
    assert_same_stack(ours, whole)
    assert (ours.predict(H) == whole.predict(H)).all()


def test_statistics_are_those_of_all_rows_even_far_from_zero():
    y, H, group, _, weight = stacking_problem()
    H = H + 1e6  # sums of squares would lose all digits
    options = {"fairness": "equal_opportunity", "sample_weight": weight}
    whole = StackStatistics.from_predictions(y, H, sensitive_features=group, **options)
    chunks = array_chunks(y, H, sensitive_features=group, sample_weight=weight, chunk_rows=100)
    ours = StackStatistics.from_chunks(chunks, fairness="equal_opportunity")
    for name in ("weight", "mean_h", "mean_y", "set_weight", "set_h", "y_square"):
        np.testing.assert_allclose(getattr(ours, name), getattr(whole, name), rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(ours.gram, whole.gram, atol=1e-6 * np.abs(whole.gram).max())
    np.testing.assert_allclose(ours.contrast_matrix(), whole.contrast_matrix(), atol=1e-8)


def test_an_iterator_is_enough_for_one_pass_and_too_little_for_tuning():
    y, H, group, _, _ = stacking_problem()
    parts = [(y[a : a + 500], H[a : a + 500], group[a : a + 500]) for a in range(0, 1500, 500)]
    whole = StackStatistics.from_chunks(iterable_chunks(parts))
    np.testing.assert_allclose(StackStatistics.from_chunks(iterable_chunks(iter(parts))).gram, whole.gram)
    with pytest.raises(InvalidInputError, match="more than once"):
        FairStacksClassifier("precomputed").fit_chunks(iterable_chunks(iter(parts)))
    tuned = FairStacksClassifier("precomputed").fit_chunks(iterable_chunks(lambda: iter(parts)))
    assert len(tuned.path_) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "log"}, "loss must be 'squared' where rows come in chunks; got 'log'"),
        ({"attribute_aware": True}, "attribute_aware must be False"),
        ({"estimators": [("a", None)]}, "estimators must be 'precomputed'"),
        ({"cv": KFold(3)}, "at least 2 folds or a PredefinedSplit"),
        ({"cv": 1}, "at least 2 folds"),
        ({"cv": PredefinedSplit([-1, 0, 1])}, "rows in none"),
        ({"cv": PredefinedSplit([0, 1])}, "folds for 2 rows, and row 299"),
        ({"cv": PredefinedSplit(np.zeros(1500, int))}, "at least two folds with rows; got 1"),
        ({"fairness": [(np.ones(1600, bool), np.ones(1600, bool))]}, "one boolean per row, 1500; got 1600"),
    ],
)
def test_what_chunks_cannot_do(options, message):
    y, H, group, _, _ = stacking_problem()
    stack = FairStacksClassifier(**({"estimators": "precomputed"} | options))
    with pytest.raises(InvalidInputError, match=message):
        stack.fit_chunks(array_chunks(y, H, sensitive_features=group, chunk_rows=300))


def test_a_fold_without_a_group_and_a_class_without_weight():
    y, H, group, fold, _ = stacking_problem()
    with pytest.raises(GroupError, match="'g=1' of sensitive_features has none in fold 3"):
        FairStacksClassifier("precomputed").fit_chunks(
            array_chunks(y, H, sensitive_features={"g": np.where(fold == 3, 0, group)}, fold=fold)
        )
    with pytest.raises(InvalidInputError, match="leave each class some weight"):
        FairStacksClassifier("precomputed", alpha=1.0).fit_chunks(
            array_chunks(y, H, sensitive_features=group, sample_weight=1.0 - y)
        )
    with pytest.raises(InvalidInputError, match="positive sum"):
        FairStacksClassifier("precomputed", alpha=1.0).fit_chunks(
            array_chunks(y, H, sensitive_features=group, sample_weight=np.zeros(len(y)))
        )
    H[700, 5] = np.inf
    with pytest.raises(InvalidInputError, match="got inf in 'model_5' at row 700"):
        FairStacksClassifier("precomputed").fit_chunks(array_chunks(y, H, sensitive_features=group, chunk_rows=99))
