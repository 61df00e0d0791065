"""Forests and families among the estimators: they enter model by model, in one estimator on X."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier import FairStacksClassifier, FairStacksRegressor
from fairfrontier._forests import out_of_bag, rows_in_bag, tree_matrix, weighted_trees
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import MinipatchTrees, classifier_zoo, fit_models, forest_trees, kitchen_sink
from fairfrontier.optimize._weighted_models import weighted_models

FOREST = RandomForestClassifier(30, max_depth=4, random_state=0)
LOGISTIC = ("lr", LogisticRegression())


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 300)
    X = rng.normal(size=(300, 4)) + (sex == "m")[:, None] * [0.8, 0.2, 0.0, 0.0]
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=300) > 0.4, "yes", "no")
    return X, y, sex


def fitted(estimators, rows, **options):
    X, y, sex = rows
    options = {"random_state": 0, "group_models": None, "alphas": [1.0, 100.0]} | options
    return FairStacksClassifier(estimators, **options).fit(X, y, sensitive_features=sex)


def scaled(*steps):
    return make_pipeline(StandardScaler(), *steps)


class TestWeightedModels:
    MODELS = (
        LOGISTIC,
        ("boosting", HistGradientBoostingClassifier(max_iter=20)),
        ("scaled_boosting", scaled(HistGradientBoostingClassifier(max_iter=20))),
        ("ada", AdaBoostClassifier(n_estimators=10, random_state=0)),
        ("deeper_ada", AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0)),
        ("kernel", scaled(Nystroem(gamma=0.1, n_components=30, random_state=0), LogisticRegression())),
        ("forest", FOREST),
        ("trees/forest", ExtraTreesClassifier(10, random_state=0)),
        ("mini", MinipatchTrees(20, random_state=0)),
    )

    @pytest.mark.parametrize("labels", [("no", "yes"), (1, 0)])
    @pytest.mark.parametrize("form", ["eighths", "any", "frame"])
    def test_their_sum_is_that_of_the_matrix(self, form, labels, rows):
        _, y, sex = rows
        X = np.random.default_rng(3).normal(size=(900, 4)) + (y == "yes").repeat(3)[:, None]
        X = np.round(8 * X) / 8 if form == "eighths" else X
        X = pd.DataFrame(X, columns=list("abcd")) if form == "frame" else X
        of_rows = {"sensitive_features": np.repeat(sex, 3)}
        names = np.where(np.repeat(y, 3) == "yes", labels[1], labels[0])
        stack = FairStacksClassifier(list(self.MODELS), random_state=0, alphas=[1.0], cv=2).fit(X, names, **of_rows)
        for n in (900, 7):
            expected = stack._matrix(X[:n], None) @ stack.weights_
            # Nyström's features are products with numbers of up to 10⁶, here taken in another order.
            np.testing.assert_allclose(weighted_models(stack)(X[:n]), expected, atol=1e-8)
        known = weighted_models(stack)
        assert weighted_models(stack) is known
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(stack)).predict_proba(X), stack.predict_proba(X))
        stack.weights_ = 2.0 * stack.weights_
        np.testing.assert_allclose(weighted_models(stack)(X), stack._matrix(X, None) @ stack.weights_, atol=1e-8)

    def test_regressors_and_missing_values_too(self, rows):
        X, _, sex = rows
        holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
        boosting = HistGradientBoostingRegressor(max_iter=10)
        for given in (holes, np.round(X)):
            models = [("boosting", boosting), ("forest", RandomForestRegressor(20, random_state=0))]
            stack = FairStacksRegressor(models, random_state=0, alphas=[1.0])
            stack.fit(given, X.sum(axis=1), sensitive_features=sex)
            expected = stack._matrix(given, None) @ stack.weights_
            np.testing.assert_allclose(weighted_models(stack)(given), expected, atol=1e-10)


class TestForests:
    @pytest.mark.parametrize(
        "forest",
        [
            FOREST,
            ExtraTreesClassifier(5, max_depth=3, random_state=0),
            BaggingClassifier(n_estimators=25, max_features=0.5, random_state=0),
            BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=25, random_state=0),
        ],
        ids=lambda forest: type(forest).__name__,
    )
    def test_a_forest_enters_tree_by_tree(self, forest, rows):
        X, _, _ = rows
        model = fitted([LOGISTIC, ("forest", forest)], rows)
        assert model.names_ == ("lr", *(f"forest/{i}" for i in range(forest.n_estimators)))
        assert [name for name, _ in model.estimators_] == ["lr", "forest"]
        trees = dict(model.estimators_)["forest"]
        # The mean of the trees is the forest; the columns of the stack are the trees.
        equal = tree_matrix(trees, X, 1)
        np.testing.assert_allclose(equal.mean(axis=1), trees.predict_proba(X)[:, 1])
        score = dict(model.estimators_)["lr"].predict_proba(X)[:, 1]
        expected = np.column_stack([score, equal]) @ model.weights_ + model.intercept_ - 0.5
        np.testing.assert_allclose(model.decision_function(X), expected)

    @pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
    def test_the_weighted_sum_of_trees_is_that_of_their_matrix(self, kind, form, rows):
        X, y, _ = rows
        some = {"max_features": 0.5, "bootstrap_features": True} if kind is BaggingClassifier else {}
        forest = kind(n_estimators=120, random_state=0, **some).fit(X, y)
        weights = np.random.default_rng(1).normal(size=120)
        weights[::3] = 0.0
        for positive in (0, 1):
            expected = tree_matrix(forest, form(X), positive) @ weights
            found = weighted_trees(forest, form(X), positive, weights)
            np.testing.assert_allclose(found, expected, atol=1e-12)
        # The same to the last bit on any number of threads.
        np.testing.assert_array_equal(found, weighted_trees(forest.set_params(n_jobs=2), form(X), 1, weights))

    def test_the_weighted_sum_of_families_is_that_of_their_matrix(self, rows):
        X, y, _ = rows
        patches = MinipatchTrees(60, max_features=2, random_state=0).fit(X, y)
        zoo = fit_models([("zoo/lr", LogisticRegression())], X, y)
        union = kitchen_sink(patches, zoo, forest_trees(clone(FOREST).fit(X, y)))
        for weights in (np.random.default_rng(2).normal(size=91), np.zeros(91), np.arange(91) == 60):
            found = union.predict_weighted(X, weights.astype(float))
            np.testing.assert_allclose(found, union.predict_matrix(X) @ weights, atol=1e-5)
        np.testing.assert_allclose(
            patches.predict_weighted(X, np.ones(60)), patches.predict_matrix(X).sum(axis=1, dtype=float), atol=1e-12
        )

    def test_a_forest_of_many_trees_that_is_one_model_is_judged_by_trees_that_have_not_seen_a_row(self, rows):
        X, y, _ = rows
        forest = RandomForestClassifier(100, max_depth=4, random_state=0)
        stack = fitted([LOGISTIC, ("trees/forest", forest)], rows)
        grown = clone(forest).set_params(oob_score=True).fit(X, y)
        np.testing.assert_allclose(stack._held_out[0].matrix[:, 1], grown.oob_decision_function_[:, 1])
        np.testing.assert_array_equal(stack.estimators_[1][1].predict_proba(X), grown.predict_proba(X))
        # Whose splits keep some rows together must not judge a model by rows beside those that it was grown on.
        split = KFold(3, shuffle=True, random_state=0)
        for other in ({"cv": split}, {"refit": False}):
            held_out = fitted([LOGISTIC, ("trees/forest", forest)], rows, **other)._held_out[0].matrix[:, 1]
            assert np.abs(held_out - grown.oob_decision_function_[:, 1]).max() > 1e-3

    def test_with_a_slash_in_its_name_it_is_one_model(self, rows):
        assert fitted([LOGISTIC, ("trees/forest", FOREST)], rows).names_ == ("lr", "trees/forest")
        assert fitted([LOGISTIC, ("forest", FOREST)], rows, expand=False).names_ == ("lr", "forest")
        assert len(fitted([LOGISTIC, ("trees/forest", FOREST)], rows, expand=True).names_) == 31
        with pytest.raises(InvalidInputError, match="expand must be 'auto', True or False; got 'yes'"):
            fitted([LOGISTIC], rows, expand="yes")

    @pytest.mark.parametrize("labels", [("no", "yes"), (1, 0)])
    def test_as_one_model_it_is_the_mean_of_its_trees_at_any_order_of_labels(self, labels, rows):
        X, y, sex = rows
        y = np.where(y == "yes", labels[1], labels[0])
        estimators = [LOGISTIC, ("zoo/forest", FOREST), ("zoo/extra", ExtraTreesClassifier(9, random_state=0))]
        model = fitted(estimators, (X, y, sex), expand=False)
        scores = np.column_stack([one.predict_proba(X)[:, 1] for _, one in model.estimators_])
        expected = scores @ model.weights_ + model.intercept_ - 0.5
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-12)

    def test_a_stack_is_fitted_to_what_a_tree_says_of_rows_that_it_has_not_seen(self, rows):
        X, y, _ = rows
        model = fitted([("forest", FOREST)], rows)
        forest = clone(FOREST).fit(X, (y == "yes").astype(int))
        own = dict(model.estimators_)["forest"]
        np.testing.assert_array_equal(own.predict_proba(X), forest.predict_proba(X))
        held_out = model._held_out[0].matrix
        for tree, (sample, member) in enumerate(zip(forest.estimators_samples_, forest.estimators_, strict=True)):
            unseen = np.setdiff1d(np.arange(len(X)), sample)
            np.testing.assert_allclose(held_out[unseen, tree], member.predict_proba(X[unseen])[:, 1], rtol=1e-6)

    @pytest.mark.parametrize(
        "trees", [FOREST, MinipatchTrees(40, max_samples=0.3, max_features=0.5, random_state=0)], ids=["forest", "mini"]
    )
    def test_a_stack_is_judged_by_rows_that_no_tree_has_seen(self, trees, rows):
        """In each fold: trees grown without it, a ridge regression on their unseen rows, decisions on the fold."""
        X, y, sex = rows
        alpha, label = 5.0, (y == "yes").astype(int)
        folds = list(KFold(4, shuffle=True, random_state=0).split(X))
        model = fitted([LOGISTIC, ("trees", trees)], rows, cv=folds, alphas=[alpha], family_scales=None)
        linear = np.empty(len(X))
        for train, test in folds:
            linear[test] = LogisticRegression().fit(X[train], label[train]).predict_proba(X[test])[:, 1]
        decisions = np.empty(len(X))
        for train, test in folds:
            grown = clone(trees).fit(X[train], label[train])
            forest = isinstance(grown, RandomForestClassifier)
            seen = rows_in_bag(grown, len(train)) if forest else grown.rows_seen(len(train))
            predict = partial(tree_matrix, grown, positive=1) if forest else grown.predict_matrix
            H = np.column_stack([linear[train], out_of_bag(predict(X[train]), seen, 1)])
            centred, middle = H - H.mean(axis=0), label[train].mean()
            ridge = alpha * len(train) / len(X) / 2 * np.eye(H.shape[1])  # alpha is that of all rows
            w = np.linalg.solve(centred.T @ centred + ridge, centred.T @ (label[train] - middle))
            new = np.column_stack([linear[test], predict(X[test])])
            decisions[test] = (new - H.mean(axis=0)) @ w + middle > 0.5
        expected = [decisions[sex == group].mean() for group in ("f", "m")]
        np.testing.assert_allclose(model._fitted.sweep.out_of_fold.rates[0], expected, atol=1e-12)
        assert model.points_.accuracy[0] == pytest.approx((decisions == label).mean(), abs=1e-12)

    @pytest.mark.parametrize("unit", [1e-6, 1000.0, None], ids=["small", "large", "sum 1"])
    @pytest.mark.parametrize("counts", [False, True])
    def test_the_unit_of_the_weights_does_not_matter(self, unit, counts, rows):
        """A logistic regression alone is a constant where the weights are small: its penalty is not."""
        X, y, sex = rows
        rng = np.random.default_rng(1)
        weight = rng.integers(0, 4, len(X)) if counts else rng.uniform(0.2, 3.0, len(X)) * (np.arange(len(X)) % 7 > 0)
        models = [LOGISTIC, ("weak", LogisticRegression(C=0.01))]
        options = {"random_state": 0, "n_points": 5, "group_models": None}
        one = FairStacksClassifier(models, **options).fit(X, y, sensitive_features=sex, sample_weight=weight)
        scaled = weight * unit if unit else weight / weight.sum()
        other = FairStacksClassifier(models, **options).fit(X, y, sensitive_features=sex, sample_weight=scaled)
        np.testing.assert_allclose(other.path_.weights, one.path_.weights, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(other.points_.fairness, one.points_.fairness, atol=0.01)

    def test_with_few_trees_folds_take_the_place_of_unseen_rows(self, rows):
        X, _, _ = rows
        model = fitted([("forest", RandomForestClassifier(3, max_depth=2, random_state=0))], rows)
        assert model.names_ == ("forest/0", "forest/1", "forest/2")
        assert out_of_bag(np.zeros((300, 3)), rows_in_bag(dict(model.estimators_)["forest"], len(X))) is None

    def test_a_regression_has_trees_too(self, rows):
        X, _, sex = rows
        models = [("lr", LinearRegression()), ("forest", RandomForestRegressor(25, max_depth=3, random_state=0))]
        model = FairStacksRegressor(models, random_state=0).fit(X, 50 * X[:, 0], sensitive_features=sex)
        assert len(model.names_) == 28
        assert model.points_.accuracy.max() > 0.5

    def test_a_prefit_forest_is_taken_tree_by_tree(self, rows):
        X, y, _ = rows
        model = fitted([("forest", clone(FOREST).fit(X, y))], rows, cv="prefit")
        assert len(model.names_) == 30
        assert model.score(X, y) > 0.7


class TestFamilies:
    def test_minipatches_enter_tree_by_tree(self, rows):
        X, y, _ = rows
        patches = MinipatchTrees(40, max_samples=0.3, max_features=0.5, random_state=0)
        model = fitted([LOGISTIC, ("mini", patches)], rows)
        assert model.names_ == ("lr", *(f"mini/{i}" for i in range(40)))
        own = clone(patches).fit(X, y)
        seen = own.rows_seen(len(X))
        assert seen.sum(axis=0).tolist() == [90] * 40
        held_out = model._held_out[0].matrix[:, 1:]
        np.testing.assert_allclose(held_out[~seen], own.predict_matrix(X)[~seen], rtol=1e-6)

    def test_the_rows_of_a_patch_are_those_that_its_tree_was_grown_on(self, rows):
        """A tree of one row per leaf repeats its own rows, and guesses the others."""
        X, y, _ = rows
        patches = MinipatchTrees(5, max_samples=0.5, max_features=1.0, min_samples_leaf=1, random_state=1).fit(X, y)
        seen = patches.rows_seen(len(X))
        right = (patches.predict_matrix(X) > 0.5) == (y == "yes")[:, None]
        assert right[seen].all()
        assert not right[~seen].all()

    def test_a_list_of_estimators_is_a_family(self, rows):
        zoo = classifier_zoo(xgboost=False)[:3]
        model = fitted([LOGISTIC, ("zoo", zoo)], rows)
        assert model.names_ == ("lr", "zoo/logistic", "zoo/lda", "zoo/naive_bayes")

    def test_a_fitted_collection_is_taken_as_it_is(self, rows):
        X, y, _ = rows
        forest = forest_trees(RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y))
        models = fit_models(classifier_zoo(xgboost=False)[:2], X, y)
        sink = kitchen_sink(forest, models)
        model = fitted(sink, rows, cv="prefit")
        assert model.names_ == sink.names
        np.testing.assert_allclose(
            model.decision_function(X), sink.predict_matrix(X) @ model.weights_ + model.intercept_ - 0.5, atol=1e-6
        )
        assert fitted([("lr", LogisticRegression().fit(X, y)), ("sink", sink)], rows, cv="prefit").names_ == (
            "lr",
            *sink.names,
        )
        with pytest.raises(InvalidInputError, match="'sink' is a fitted FamilyUnion: pass cv='prefit'"):
            fitted([("sink", sink)], rows)

    def test_unfitted_families_make_a_sink_that_a_stack_takes(self, rows):
        sink = kitchen_sink(
            MinipatchTrees(20, max_samples=0.3, random_state=0), FOREST, classifier_zoo(xgboost=False)[:2]
        )
        model = fitted(sink, rows)
        assert [name for name, _ in sink] == ["minipatch", "forest", "classifiers/logistic", "classifiers/lda"]
        assert len(model.names_) == 20 + 30 + 2
        assert {name.partition("/")[0] for name in model.names_} == {"minipatch", "forest", "classifiers"}

    def test_everything_together_is_one_estimator_that_can_be_saved(self, rows, tmp_path):
        X, _, _ = rows
        estimators = [
            ("forest", FOREST),
            ("mini", MinipatchTrees(20, max_samples=0.3, random_state=0)),
            ("zoo", classifier_zoo(xgboost=False)[:2]),
        ]
        model = fitted(estimators, rows, min_fairness=0.9)
        assert model.selection_.asked == 0.9
        for same in (ff.load(ff.save(model, tmp_path / "stack.skops")), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(same.predict_path(X), model.predict_path(X))
            assert not hasattr(same, "_held_out")

    def test_a_model_without_weight_is_not_asked(self, rows):
        X, _, _ = rows
        model = fitted([LOGISTIC, ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))], rows)
        before = model.decision_function(X)
        model.weights_[1] = 0.0
        model.estimators_[1] = ("tree", None)
        assert model.decision_function(X).shape == before.shape


class TestFitting:
    def test_labels_of_any_type_for_models_that_need_numbers(self, rows):
        xgboost = pytest.importorskip("xgboost")
        X, y, _ = rows
        model = fitted([("xgb", xgboost.XGBClassifier(n_estimators=5)), LOGISTIC], rows)
        assert set(model.predict(X)) == {"no", "yes"}
        assert model.score(X, y) > 0.7
        assert dict(model.estimators_)["lr"].classes_.tolist() == [0, 1]

    def test_weights_of_rows_reach_the_last_step_of_a_pipeline(self, rows):
        X, y, sex = rows
        weight = np.random.default_rng(1).random(300)
        pipeline = make_pipeline(StandardScaler(), make_pipeline(LogisticRegression()))
        model = FairStacksClassifier([("lr", pipeline)], group_models=None, alpha=1.0)
        model.fit(X, y, sensitive_features=sex, sample_weight=weight)
        one = (weight @ weight) / weight.sum()
        expected = clone(pipeline).fit(X, y == "yes", pipeline__logisticregression__sample_weight=weight / one)
        np.testing.assert_allclose(model.estimators_[0][1].predict_proba(X), expected.predict_proba(X))

    def test_a_model_that_takes_no_weights_is_named_in_a_warning(self, rows):
        X, y, sex = rows
        model = FairStacksClassifier([LOGISTIC, ("knn", KNeighborsClassifier())], group_models=None, alpha=1.0)
        with pytest.warns(UserWarning, match=r"base models \['knn'\] do not take it"):
            model.fit(X, y, sensitive_features=sex, sample_weight=np.ones(300))

    def test_without_refitting_the_models_of_the_folds_predict_by_their_mean(self, rows):
        X, y, _ = rows
        folds = [(np.arange(300)[i % 3 != np.arange(300) % 3], np.arange(i, 300, 3)) for i in range(3)]
        options = {"cv": folds, "alpha": 1.0, "group_models": "auto"}
        model = fitted([LOGISTIC], rows, refit=False, **options)
        fold_models = [LogisticRegression().fit(X[train], y[train]) for train, _ in folds]
        mean = np.mean([one.predict_proba(X)[:, 1] for one in fold_models], axis=0)
        np.testing.assert_allclose(model._matrix(X, None)[:, 0], mean)
        again = fitted([LOGISTIC], rows, refit=True, **options)
        np.testing.assert_allclose(model.path_.weights, again.path_.weights)
        np.testing.assert_allclose(again._matrix(X, None)[:, 0], LogisticRegression().fit(X, y).predict_proba(X)[:, 1])
        loaded = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))

    def test_added_estimators_leave_the_others_as_they_are(self, rows):
        X, y, sex = rows
        tree = ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))
        model = fitted([LOGISTIC, ("forest", FOREST)], rows)
        larger = model.add_estimators([tree], X, y, sensitive_features=sex)
        assert larger.names_ == (*model.names_, "tree")
        assert dict(larger.estimators_)["forest"] is dict(model.estimators_)["forest"]
        at_once = fitted([LOGISTIC, ("forest", FOREST), tree], rows)
        np.testing.assert_allclose(larger.path_.weights, at_once.path_.weights)
        with pytest.raises(InvalidInputError, match="a copy or a loaded one has no predictions"):
            model.at(tau=0.0).add_estimators([tree], X, y, sensitive_features=sex)
        with pytest.raises(InvalidInputError, match="X must be the 300 rows of the fit; got 10"):
            model.add_estimators([tree], X[:10], y[:10], sensitive_features=sex[:10])

    def test_a_cache_repeats_nothing(self, rows, tmp_path):
        first = fitted([LOGISTIC, ("forest", FOREST)], rows, memory=str(tmp_path))
        stored = sorted(path.name for path in tmp_path.rglob("output.pkl"))
        n_files = len(list(tmp_path.rglob("output.pkl")))
        again = fitted([LOGISTIC, ("forest", FOREST)], rows, memory=str(tmp_path))
        np.testing.assert_array_equal(again.path_.weights, first.path_.weights)
        assert len(list(tmp_path.rglob("output.pkl"))) == n_files == len(stored) > 0
        fitted([LOGISTIC, ("tree", DecisionTreeClassifier(max_depth=2))], rows, memory=str(tmp_path))
        # Six fits of the new tree, none of the old model.
        assert len(list(tmp_path.rglob("output.pkl"))) == n_files + 6


class TestPassthrough:
    def test_features_are_a_family_beside_the_models(self, rows, tmp_path):
        X, y, sex = rows
        table = pd.DataFrame(X, columns=list("abcd")).assign(job=np.where(X[:, 2] > 0, "x", "z"))
        prepared = make_pipeline(make_column_transformer(("passthrough", ["a", "b"])), LogisticRegression())
        model = fitted([("lr", prepared)], (table, y, sex), passthrough=True)
        assert model.names_ == ("lr", *(f"features/{name}" for name in ("a", "b", "c", "d", "job=x", "job=z")))
        values = np.column_stack([X, X[:, 2] > 0, X[:, 2] <= 0]).astype(float)
        score = dict(model.estimators_)["lr"].predict_proba(table)[:, 1]
        H = np.column_stack([score, 0.2 * StandardScaler().fit_transform(values)])
        np.testing.assert_allclose(model.predict_path(table), H @ model.path_.weights.T + model.path_.intercept)
        np.testing.assert_allclose(model.decision_function(table) + 0.5, H @ model.weights_ + model.intercept_)
        ff.save(model, tmp_path / "stack.skops")
        np.testing.assert_array_equal(ff.load(tmp_path / "stack.skops").predict(table), model.predict(table))
        assert clone(model).get_params()["passthrough"] is True

    def test_they_do_not_move_with_the_units_of_a_target(self, rows):
        X, _, sex = rows
        y = X[:, 0] + X[:, 3] + np.random.default_rng(0).normal(size=len(X))
        options = {"passthrough": True, "group_models": None, "random_state": 0}
        one, other = (
            FairStacksRegressor([("lr", LinearRegression())], **options).fit(X, target, sensitive_features=sex)
            for target in (y, 1000.0 * y + 5.0)
        )
        np.testing.assert_allclose(other.predict(X), 1000.0 * one.predict(X) + 5.0, rtol=1e-8, atol=1e-6)

    def test_fitted_models_take_them_and_predictions_have_none(self, rows):
        X, y, sex = rows
        model = fitted([("lr", LogisticRegression().fit(X, y))], rows, cv="prefit", passthrough=True)
        assert model.names_ == ("lr", "features/x0", "features/x1", "features/x2", "features/x3")
        with pytest.raises(InvalidInputError, match="passthrough must be False with precomputed"):
            FairStacksClassifier(passthrough=True).fit(X, y, sensitive_features=sex)
