"""Model families: what a tree of a family predicts, and that the matrix is those predictions side by side."""

import os
import pickle
import pty
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from fairfrontier import FairStacksClassifier
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import (
    FittedModels,
    MinipatchTrees,
    MinipatchTreesRegressor,
    ModelFamily,
    classifier_zoo,
    fit_models,
    forest_trees,
    kitchen_sink,
    regressor_zoo,
)
from fairfrontier.learners._zoo import Components, NeighborsClassifier

Arrays = tuple[NDArray[Any], NDArray[Any]]


@pytest.fixture(scope="module")
def classification() -> Arrays:
    return make_classification(400, 12, n_informative=6, random_state=0)


@pytest.fixture(scope="module")
def regression() -> Arrays:
    return make_regression(300, 8, noise=5.0, random_state=0)


# ---------------------------------------------------------------------------------------------- minipatch trees


def test_minipatch_matrix_is_its_trees_side_by_side(classification: Arrays) -> None:
    X, y = classification
    trees = MinipatchTrees(n_estimators=30, random_state=1).fit(X, y)
    matrix = trees.predict_matrix(X)
    singles = [model.predict_proba(X)[:, 1] for _, model in trees.estimators]
    np.testing.assert_array_equal(matrix, np.column_stack(singles).astype(np.float32))
    np.testing.assert_allclose(trees.predict_proba(X)[:, 1], matrix.mean(axis=1), rtol=1e-5)
    assert trees.names == tuple(name for name, _ in trees.estimators)
    assert isinstance(trees, ModelFamily)


def test_each_tree_sees_only_its_patch(classification: Arrays) -> None:
    X, y = classification
    trees = MinipatchTrees(n_estimators=25, max_samples=100, max_features=3, random_state=0).fit(X, y)
    assert {len(t.columns) for t in trees.family_.trees} == {3}
    assert {int(t.tree.n_node_samples[0]) for t in trees.family_.trees} == {100}
    before = trees.predict_matrix(X)
    for j, tree in enumerate(trees.family_.trees):
        scrambled = np.random.default_rng(j).normal(size=X.shape)
        scrambled[:, tree.columns] = X[:, tree.columns]
        np.testing.assert_array_equal(trees.predict_matrix(scrambled)[:, j], before[:, j])
    assert len({tuple(t.columns) for t in trees.family_.trees}) > 10


def test_minipatch_tree_is_a_gini_tree_on_its_patch() -> None:
    # On all rows and features a tree must be what scikit-learn's classification tree is, up to ties.
    X, y = make_classification(200, 5, n_redundant=0, random_state=3)
    trees = MinipatchTrees(n_estimators=2, max_samples=1.0, max_features=1.0, max_depth=3, random_state=0).fit(X, y)
    reference = DecisionTreeClassifier(max_depth=3, min_samples_leaf=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(trees.predict_matrix(X)[:, 0], reference.predict_proba(X)[:, 1], atol=1e-6)


@pytest.mark.parametrize("kind", [MinipatchTrees, MinipatchTreesRegressor])
def test_minipatch_is_reproducible_to_the_bit_at_any_n_jobs(kind: Any, classification: Arrays) -> None:
    X, y = classification
    one, two = (kind(n_estimators=120, n_jobs=n, random_state=7).fit(X, y).predict_matrix(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    other = kind(n_estimators=120, random_state=8).fit(X, y).predict_matrix(X)
    assert not np.array_equal(one, other)


def test_random_state_may_be_a_generator_or_a_random_state(classification: Arrays) -> None:
    X, y = classification
    for make in (np.random.default_rng, np.random.RandomState):
        first, second = (MinipatchTrees(10, random_state=make(5)).fit(X, y).predict_matrix(X) for _ in range(2))
        np.testing.assert_array_equal(first, second)
    fresh = [MinipatchTrees(10, random_state=None).fit(X, y).predict_matrix(X) for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_minipatch_learns_and_averages_better_than_its_trees(classification: Arrays) -> None:
    X, y = classification
    trees = MinipatchTrees(n_estimators=200, random_state=0).fit(X[:300], y[:300])
    single = ((trees.predict_matrix(X[300:]) > 0.5) == y[300:, None]).mean()
    assert trees.score(X[300:], y[300:]) > single + 0.05


def test_regression_trees_predict_values(regression: Arrays) -> None:
    X, y = regression
    trees = MinipatchTreesRegressor(n_estimators=60, max_samples=0.5, max_features=0.75, random_state=0).fit(X, y)
    np.testing.assert_allclose(trees.predict(X), trees.predict_matrix(X).mean(axis=1), rtol=1e-4)
    name, model = trees.estimators[3]
    assert name == "minipatch/tree_03"
    assert is_regressor(model)
    np.testing.assert_allclose(model.predict(X), trees.predict_matrix(X)[:, 3], rtol=1e-6)
    assert trees.score(X, y) > 0.5


def test_dataframes_of_every_library_give_the_same_trees(classification: Arrays) -> None:
    X, y = classification
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    expected = MinipatchTrees(10, random_state=0).fit(X, y).predict_matrix(X)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_array_equal(MinipatchTrees(10, random_state=0).fit(frame, y).predict_matrix(frame), expected)


def test_string_labels_are_sorted_and_the_second_is_scored(classification: Arrays) -> None:
    X, y = classification
    named = np.array(["no", "yes"])[y]
    trees = MinipatchTrees(50, random_state=0).fit(X, named)
    assert list(trees.classes_) == ["no", "yes"]
    assert set(trees.predict(X)) == {"no", "yes"}
    assert trees.predict_proba(X)[y == 1, 1].mean() > trees.predict_proba(X)[y == 0, 1].mean() + 0.1
    model = trees.estimators[0][1]
    assert set(model.predict(X)) <= {"no", "yes"}
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an int of at least 1; got 0"),
        ({"max_samples": 1.5}, r"max_samples must be a count \(int ≥ 1\) or a fraction in \(0, 1\]; got 1.5"),
        ({"max_features": 0}, "max_features must be a count"),
        ({"random_state": -1}, "random_state must be non-negative; got -1"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str, classification: Arrays) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MinipatchTrees(**settings).fit(*classification)


def test_labels_of_one_or_three_classes_are_refused(classification: Arrays) -> None:
    X, y = classification
    with pytest.raises(InvalidInputError, match="got only one class"):
        MinipatchTrees(5).fit(X, np.zeros(len(y)))
    with pytest.raises(InvalidInputError, match="got 3: merge classes"):
        MinipatchTrees(5).fit(X, np.arange(len(y)) % 3)
    with pytest.raises(NotFittedError):
        MinipatchTrees(5).predict_matrix(X)


# ------------------------------------------------------------------------------------------------------ forests


@pytest.mark.parametrize("forest", [RandomForestClassifier, ExtraTreesClassifier])
def test_forest_trees_are_the_forest(forest: Any, classification: Arrays) -> None:
    X, y = classification
    fitted = forest(n_estimators=12, random_state=0).fit(X, np.array(["a", "b"])[y])
    family = forest_trees(fitted, n_jobs=2)
    matrix = family.predict_matrix(X)
    expected = np.column_stack([t.predict_proba(X)[:, 1] for t in fitted.estimators_])
    np.testing.assert_allclose(matrix, expected, atol=1e-7)
    np.testing.assert_allclose(matrix.mean(axis=1), fitted.predict_proba(X)[:, 1], atol=1e-6)
    assert family.names[11] == "forest/tree_11"
    assert not family.is_randomized


def test_forest_trees_of_a_regression_forest(regression: Arrays) -> None:
    X, y = regression
    forest = RandomForestRegressor(n_estimators=7, random_state=0).fit(X, y)
    matrix = forest_trees(forest, name="rf").predict_matrix(X)
    np.testing.assert_allclose(matrix, np.column_stack([t.predict(X) for t in forest.estimators_]), rtol=1e-6)


def test_forest_trees_of_a_bag_use_each_tree_s_own_features(classification: Arrays) -> None:
    X, y = classification
    bag = BaggingClassifier(DecisionTreeClassifier(), 9, max_features=0.4, max_samples=0.2, random_state=0).fit(X, y)
    expected = [t.predict_proba(X[:, c])[:, 1] for t, c in zip(bag.estimators_, bag.estimators_features_, strict=True)]
    np.testing.assert_allclose(forest_trees(bag).predict_matrix(X), np.column_stack(expected), atol=1e-7)


class _OnlyItsSample(DecisionTreeClassifier):
    """A tree that takes no sample weights: a bag then hands it the drawn rows alone."""

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(X, y)


def test_a_bagged_tree_that_saw_one_class_predicts_that_class() -> None:
    X = np.arange(40.0)[:, None]
    y = (np.arange(40) > 37).astype(int)
    bag = BaggingClassifier(_OnlyItsSample(), 30, max_samples=2, random_state=0).fit(X, y)
    lonely = [j for j, t in enumerate(bag.estimators_) if len(t.classes_) == 1]
    assert lonely
    matrix = forest_trees(bag).predict_matrix(X)
    for j in lonely:
        assert set(matrix[:, j]) == {float(bag.estimators_[j].classes_[0])}


def test_forest_trees_refuses_what_is_no_forest(classification: Arrays) -> None:
    X, y = classification
    with pytest.raises(InvalidInputError, match="got LogisticRegression without estimators_"):
        forest_trees(LogisticRegression().fit(X, y))
    with pytest.raises(InvalidInputError, match="forest must hold decision trees; got a Ridge"):
        forest_trees(BaggingRegressor(Ridge(), 3).fit(X, y))
    with pytest.raises(InvalidInputError, match="two classes; got 3"):
        forest_trees(RandomForestClassifier(3).fit(X, np.arange(len(y)) % 3))
    forest = RandomForestClassifier(3).fit(X, y)
    with pytest.raises(InvalidInputError, match="X must have 12 features, as the trees were grown on; got 4"):
        forest_trees(forest).predict_matrix(X[:, :4])
    with pytest.raises(NotFittedError):
        forest_trees(RandomForestClassifier())


def grown_trees(kind: str, X: pd.DataFrame, y: NDArray[Any]) -> Any:
    if kind == "minipatch":
        return MinipatchTrees(n_estimators=5, random_state=0).fit(X, y)
    return forest_trees(RandomForestClassifier(5, random_state=0).fit(X, y))


@pytest.mark.parametrize("kind", ["forest", "minipatch"])
def test_trees_refuse_columns_in_another_order(kind: str, classification: Arrays) -> None:
    X, y = classification
    frame = pd.DataFrame(X, columns=[f"x{j:02d}" for j in range(X.shape[1])])
    family = grown_trees(kind, frame, y)
    one = family.estimators[0][1]
    np.testing.assert_array_equal(family.predict_matrix(frame), family.predict_matrix(pl.from_pandas(frame)))
    with pytest.raises(InvalidInputError, match="got 'x11' in place of 'x00'"):
        one.predict_proba(frame[frame.columns[::-1]])
    with pytest.raises(InvalidInputError, match="got None in place of 'x11'"):
        one.predict_proba(frame[frame.columns[:-1]])
    with pytest.raises(ValueError, match=r"x11|feature names"):
        family.predict_matrix(frame[frame.columns[::-1]])


def test_trees_of_a_forest_that_takes_missing_values_take_them(classification: Arrays) -> None:
    X, y = classification
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    average = forest_trees(forest).predict_matrix(X).mean(axis=1)
    np.testing.assert_allclose(average, forest.predict_proba(X)[:, 1], atol=1e-6)
    whole = MinipatchTrees(n_estimators=3, random_state=0).fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="NaN"):
        whole.predict_matrix(X)


# ---------------------------------------------------------------------------------------------------------- zoo


def test_zoos_are_broad_unfitted_and_named() -> None:
    classifiers, regressors = classifier_zoo(), regressor_zoo()
    for zoo, family, kind in ((classifiers, "classifiers", is_classifier), (regressors, "regressors", is_regressor)):
        names = [name for name, _ in zoo]
        assert len(set(names)) == 12
        assert all(name.startswith(f"{family}/") for name in names)
        assert all(kind(model) for _, model in zoo)
        assert len({type(model[-1] if hasattr(model, "steps") else model) for _, model in zoo}) >= 11
    assert {name for name, _ in classifiers} - {name for name, _ in classifier_zoo(xgboost=False)} == {
        "classifiers/xgboost"
    }


def test_every_classifier_of_the_zoo_learns() -> None:
    X, y = make_classification(400, 8, n_informative=4, n_clusters_per_class=1, class_sep=1.5, random_state=0)
    family = fit_models(classifier_zoo(), X[:300], y[:300])
    scores = family.predict_matrix(X[300:])
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0
    accuracy = ((scores > 0.5) == y[300:, None]).mean(axis=0)
    assert {n: a for n, a in zip(family.names, accuracy, strict=True) if a < 0.7} == {}
    assert isinstance(family, ModelFamily)


@pytest.mark.parametrize("labels", [("no", "yes"), (-1, 1), (False, True)])
def test_the_zoo_takes_any_two_labels(labels: tuple[Any, Any]) -> None:
    X, y = make_classification(120, 5, random_state=0)
    some = [pair for pair in classifier_zoo() if pair[0].split("/")[1] in {"lda", "neighbors", "xgboost"}]
    expected = fit_models(some, X, y)
    family = fit_models(some, X, np.array(labels)[y])
    np.testing.assert_array_equal(family.predict_matrix(X), expected.predict_matrix(X))
    decided = dict(family.estimators)["classifiers/xgboost"].predict(X)
    np.testing.assert_array_equal(
        decided, np.array(labels)[dict(expected.estimators)["classifiers/xgboost"].predict(X)]
    )
    sex = np.where(X[:, 0] > 0, "f", "m")
    stack = FairStacksClassifier(some, cv=2, alpha=1.0).fit(X, np.array(labels)[y], sensitive_features=sex)
    assert set(stack.predict(X)) == set(labels)


@pytest.mark.parametrize("rows", [16, 30])
def test_the_neighbours_of_few_rows_are_all_rows(rows: int) -> None:
    X, y = make_classification(rows, 4, random_state=0)
    for zoo in (classifier_zoo(), regressor_zoo()):
        some = [pair for pair in zoo if pair[0].endswith("/neighbors")]
        values = fit_models(some, X, y).predict_matrix(X + 0.1)
        assert values.min() >= 0.0
        assert values.max() <= 1.0


@pytest.mark.parametrize("n_features", [2, 5, 9])
def test_components_are_those_of_scikit_learn(n_features: int) -> None:
    X = np.random.default_rng(0).normal(size=(80, n_features)) * np.arange(1, n_features + 1)
    ours, theirs = Components().fit_transform(X), PCA(min(5, n_features)).fit_transform(X)
    assert np.abs(ours) == pytest.approx(np.abs(theirs), abs=1e-9)


@pytest.mark.parametrize("weights", ["distance", "uniform"])
def test_neighbours_are_those_of_scikit_learn(weights: str) -> None:
    X, y = make_classification(400, 5, random_state=0)
    options: dict[str, Any] = {"n_neighbors": 12, "weights": weights, "algorithm": "kd_tree"}
    ours, theirs = NeighborsClassifier(**options).fit(X, y), KNeighborsClassifier(**options).fit(X, y)
    new = np.vstack([X[:50], X[:50] + 0.1])  # rows of the training set, at distance zero, and others
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-12)
    for found, expected in zip(ours.kneighbors(new, 3), theirs.kneighbors(new, 3), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    again = ours.fit(-X, y)
    np.testing.assert_allclose(again.predict_proba(new), theirs.fit(-X, y).predict_proba(new), atol=1e-12)


def test_neighbours_at_the_same_distance_are_the_same_at_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(2, size=(3000, 4)).astype(float), rng.integers(2, size=3000)
    family = fit_models([pair for pair in classifier_zoo() if pair[0].endswith("/neighbors")], X, y)
    matrices = []
    for threads in (1, 2, 4):
        with threadpool_limits(limits=threads):
            matrices.append(family.predict_matrix(X))
    np.testing.assert_array_equal(matrices[0], matrices[1])
    np.testing.assert_array_equal(matrices[0], matrices[2])


@pytest.mark.parametrize(("classes", "hint"), [(1, "both occur"), (3, "merge classes")])
def test_fit_models_wants_two_classes_for_classifiers(classes: int, hint: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.arange(30) % classes
    with pytest.raises(InvalidInputError, match=f"'models/tree'; got {classes}: .*{hint}"):
        fit_models([("ridge", Ridge()), ("tree", DecisionTreeClassifier())], X, y)
    assert fit_models([("ridge", Ridge())], X, y).predict_matrix(X).shape == (30, 1)


def test_every_regressor_of_the_zoo_learns() -> None:
    X, y = make_regression(300, 8, n_informative=4, noise=5.0, random_state=1)
    y = (y - y.mean()) / y.std()
    values = fit_models(regressor_zoo(), X[:200], y[:200]).predict_matrix(X[200:])
    error = ((values - y[200:, None]) ** 2).mean(axis=0)
    assert (error < 0.9 * y[200:].var()).all()


def test_fit_models_is_the_same_in_processes(classification: Arrays) -> None:
    X, y = classification
    some = [pair for pair in classifier_zoo(random_state=3) if pair[0].split("/")[1] in {"logistic", "tree", "xgboost"}]
    one, two = (fit_models(some, X, y, n_jobs=n).predict_matrix(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(fit_models(classifier_zoo(random_state=4)[-1:], X, y).predict_matrix(X)[:, 0], one[:, -1])


def test_fit_models_leaves_the_given_estimators_unfitted(classification: Arrays) -> None:
    X, y = classification
    model = LogisticRegression()
    family = fit_models([("logistic", model)], X, y)
    assert family.names == ("models/logistic",)
    assert not hasattr(model, "coef_")
    np.testing.assert_array_equal(family.predict_matrix(X)[:, 0], clone(model).fit(X, y).predict_proba(X)[:, 1])


def test_fit_models_says_what_is_wrong(classification: Arrays) -> None:
    X, y = classification
    with pytest.raises(InvalidInputError, match="must hold at least one"):
        fit_models([], X, y)
    with pytest.raises(InvalidInputError, match="got 'models/a' twice"):
        fit_models([("a", LogisticRegression()), ("models/a", LogisticRegression())], X, y)
    with pytest.raises(InvalidInputError, match="RidgeClassifier has none: wrap it in CalibratedClassifierCV"):
        fit_models([("ridge", RidgeClassifier())], X, y)


# ------------------------------------------------------------------------------------------------- kitchen sink


def test_kitchen_sink_is_its_families_side_by_side(classification: Arrays) -> None:
    X, y = classification
    parts: list[Any] = [
        MinipatchTrees(10, random_state=0).fit(X, y),
        forest_trees(RandomForestClassifier(5, random_state=0).fit(X, y)),
        fit_models(classifier_zoo()[:2], X, y),
    ]
    sink = kitchen_sink(*parts)
    np.testing.assert_array_equal(sink.predict_matrix(X), np.column_stack([part.predict_matrix(X) for part in parts]))
    assert sink.names == sum((part.names for part in parts), ())
    assert [name for name, _ in sink.estimators] == list(sink.names)
    assert {name.split("/")[0] for name in sink.names} == {"minipatch", "forest", "classifiers"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(sink)).predict_matrix(X), sink.predict_matrix(X))


def test_kitchen_sink_refuses_twins_and_strangers(classification: Arrays) -> None:
    X, y = classification
    family = fit_models([("a", LogisticRegression())], X, y)
    with pytest.raises(InvalidInputError, match="got 'models/a' twice"):
        kitchen_sink(family, family)
    with pytest.raises(InvalidInputError, match="got none"):
        kitchen_sink()
    with pytest.raises(InvalidInputError, match="got LogisticRegression: wrap estimators with fit_models"):
        kitchen_sink(family, LogisticRegression())
    with pytest.raises(InvalidInputError, match="must be fitted for group_models=True"):
        kitchen_sink(LogisticRegression(), group_models=True, X=X, sensitive_features=y)
    assert isinstance(kitchen_sink(FittedModels(family.estimators)), ModelFamily)


# -------------------------------------------------------------------------------------------- imports, progress


def _python(code: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **settings)


_WITHOUT_EXTRAS = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "xgboost", "fairlearn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
import numpy as np
from fairfrontier.exceptions import MissingExtraError
from fairfrontier.learners import FAGTB, AdversarialDebiasing, Reductions, classifier_zoo, regressor_zoo

X, y, s = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2, np.arange(40) // 2 % 2
for learner in (FAGTB(), AdversarialDebiasing(), Reductions()):
    try:
        learner.fit(X, y, sensitive_features=s)
    except MissingExtraError as error:
        print(error)
for zoo in (classifier_zoo, regressor_zoo):
    try:
        zoo()
    except MissingExtraError as error:
        print(error)
"""


def test_importing_the_learners_imports_no_extra() -> None:
    code = "import sys; from fairfrontier import *; print(sorted({'torch', 'xgboost', 'fairlearn'} & set(sys.modules)))"
    assert _python(code).stdout.strip() == "[]"


def test_a_missing_extra_is_an_error_that_says_what_to_install() -> None:
    messages = _python(_WITHOUT_EXTRAS).stdout.splitlines()
    wanted = [
        ("xgboost", "learners"),
        ("torch", "adversarial"),
        ("fairlearn", "learners"),
        *[("xgboost", "learners")] * 2,
    ]
    assert len(messages) == len(wanted)
    for message, (package, extra) in zip(messages, wanted, strict=True):
        assert f"needs the package '{package}'" in message
        assert f"pip install 'fairfrontier[{extra}]'" in message


_FIT = (
    "import numpy as np\n"
    "from fairfrontier.learners import MinipatchTrees\n"
    "X = np.random.default_rng(0).normal(size=(500, 4)); MinipatchTrees(200).fit(X, X[:, 0] > 0)"
)


def test_progress_shows_on_a_terminal_only() -> None:
    silent = _python(_FIT)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    reader, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.run([sys.executable, "-c", _FIT], stderr=terminal, check=False, env=environment)
    os.close(terminal)
    shown = os.read(reader, 65536).decode()
    os.close(reader)
    assert process.returncode == 0
    assert "Growing minipatch trees" in shown
