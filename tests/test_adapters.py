"""Adapters of scikit-learn and of our own models: every model inside a fitted object, against predicting by hand."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (importing it is what enables halving)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier import adapters
from fairfrontier.exceptions import GroupError, InvalidInputError

N = 400


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3)) + 0.7 * (sex == "m")[:, None]
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.8, "yes", "no")
    return X, y, sex


X, Y, SEX = rows(0)
X_TEST, Y_TEST, SEX_TEST = rows(1)


@pytest.fixture(scope="module")
def search():
    return GridSearchCV(LogisticRegression(), {"C": [1e-3, 0.1, 10.0]}, cv=KFold(4)).fit(X, Y)


class TestSearch:
    def test_refitted_candidates_are_the_models_fitted_by_hand(self, search):
        found = adapters.predictions(search, X_TEST, train=(X, Y))
        assert list(found) == ["C=0.001", "C=0.1", "C=10.0"]
        for name, C in zip(found, [1e-3, 0.1, 10.0], strict=True):
            by_hand = LogisticRegression(C=C).fit(X, Y)
            assert np.array_equal(found[name], by_hand.predict(X_TEST) == "yes")
        assert len({tuple(column) for column in found.values()}) == 3
        scores = adapters.predictions(search, X_TEST, train=(X, Y), scores=True)
        assert np.array_equal(scores["C=0.1"], LogisticRegression(C=0.1).fit(X, Y).predict_proba(X_TEST)[:, 1])

    def test_out_of_fold_is_cross_val_predict(self, search):
        found = adapters.predictions(search, X, y=Y, train="cv", scores=True)
        for name, C in zip(found, [1e-3, 0.1, 10.0], strict=True):
            expected = cross_val_predict(LogisticRegression(C=C), X, Y, cv=KFold(4), method="predict_proba")[:, 1]
            assert np.array_equal(found[name], expected)

    def test_out_of_fold_accuracy_is_that_of_the_search(self, search):
        points = adapters.points(search, X, Y, sensitive_features=SEX, train="cv")
        # All folds have the same size here, so the mean over folds is the mean over rows.
        np.testing.assert_allclose(points.accuracy[:-1], search.cv_results_["mean_test_score"], atol=1e-12)
        assert points.names == ("C=0.001", "C=0.1", "C=10.0", "constant")

    def test_repeated_folds_are_averaged(self):
        cv = RepeatedKFold(n_splits=4, n_repeats=3, random_state=0)
        search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 6]}, cv=cv).fit(X, Y)
        found = adapters.predictions(search, X, y=Y, train="cv")
        assert set(np.unique(np.round(found["max_depth=6"] * 3, 9))) == {0.0, 1.0, 2.0, 3.0}
        points = adapters.points(search, X, Y, sensitive_features=SEX, train="cv")
        np.testing.assert_allclose(points.accuracy[:-1], search.cv_results_["mean_test_score"], atol=1e-12)

    @pytest.mark.parametrize("cv", [ShuffleSplit(2, random_state=0), TimeSeriesSplit(3)])
    def test_splits_that_leave_rows_out_are_refused(self, cv):
        search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=cv).fit(X, Y)
        with pytest.raises(InvalidInputError, match=r"train='cv' needs splits that hold out every row.*X_train"):
            adapters.predictions(search, X, y=Y, train="cv")

    def test_groups_reach_the_splits(self):
        who = np.repeat(np.arange(N // 10), 10)
        search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(4)).fit(X, Y, groups=who)
        points = adapters.points(search, X, Y, sensitive_features=SEX, train="cv", fit_params={"groups": who})
        np.testing.assert_allclose(points.accuracy[:-1], search.cv_results_["mean_test_score"], atol=1e-12)

    def test_fit_params_are_cut_to_the_rows_of_each_fold(self):
        weight = np.where(SEX == "f", 5.0, 1.0)
        search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=KFold(4)).fit(X, Y, sample_weight=weight)
        found = adapters.predictions(search, X, y=Y, train="cv", fit_params={"sample_weight": weight}, scores=True)
        for train, test in KFold(4).split(X):
            model = LogisticRegression().fit(X[train], Y[train], sample_weight=weight[train])
            assert np.array_equal(found["C=1.0"][test], model.predict_proba(X[test])[:, 1])

    def test_a_search_over_stacks(self):
        with sklearn.config_context(enable_metadata_routing=True):
            stack = ff.FairStacksClassifier([("lr", LogisticRegression())], alpha=1.0, random_state=0)
            search = GridSearchCV(stack, {"tau": [0.0, 1.0]}, cv=3).fit(X, Y, sensitive_features=SEX)
            points = adapters.points(
                search, X, Y, sensitive_features=SEX, train=(X, Y), fit_params={"sensitive_features": SEX}
            )
        assert points.names == ("tau=0.0", "tau=1.0", "constant")
        assert points.fairness[0] > points.fairness[1]

    def test_halving_has_each_candidate_once(self):
        grid = {"max_depth": [1, 2, 3, 4, 5, 6]}
        search = HalvingGridSearchCV(DecisionTreeClassifier(random_state=0), grid, random_state=0, min_resources=60)
        search.fit(X, Y)
        assert len(search.cv_results_["params"]) > 6
        found = adapters.predictions(search, X_TEST, train=(X, Y))
        assert list(found) == [f"max_depth={depth}" for depth in grid["max_depth"]]

    def test_a_randomised_search_over_a_pipeline_on_a_dataframe(self):
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0))
        space = {"randomforestclassifier__max_depth": [1, 3], "standardscaler": [StandardScaler(), "passthrough"]}
        search = RandomizedSearchCV(pipeline, space, n_iter=4, random_state=0, cv=2).fit(frame, Y)
        with parallel_config("threading"):
            found = adapters.predictions(search, frame, y=Y, train="cv", n_jobs=2)
        assert len(found) == 4
        assert all("randomforestclassifier__max_depth=" in name for name in found)
        assert sum("standardscaler=passthrough" in name for name in found) == 2
        alone = adapters.predictions(search, frame, y=Y, train="cv", n_jobs=1)
        assert all(np.array_equal(found[name], alone[name]) for name in found)

    def test_candidates_with_the_same_name_are_numbered(self):
        deep = [DecisionTreeClassifier(max_depth=d, class_weight={"no": 1.0, "yes": 1.0 + d / 100}) for d in (1, 2)]
        pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier())
        search = GridSearchCV(pipeline, {"decisiontreeclassifier": deep}, cv=2).fit(X, Y)
        names = list(adapters.predictions(search, X_TEST, train=(X, Y)))
        assert len(names) == 2
        assert names[1] == names[0] + " (2)"
        assert all(len(name) < 80 for name in names)

    def test_failed_candidates_are_left_out_with_a_warning(self):
        search = GridSearchCV(LogisticRegression(), {"C": [1.0, -1.0]}, cv=2)
        with pytest.warns() as caught:
            search.fit(X, Y)
        assert len(caught) >= 1
        with pytest.warns(UserWarning, match=r"candidate 'C=-1.0' failed in the search and is left out"):
            found = adapters.predictions(search, X_TEST, train=(X, Y))
        assert list(found) == ["C=1.0"]

    @pytest.mark.parametrize(
        ("train", "message"),
        [
            (None, r"train must be given for a search.*train=\(X_train, y_train\).*train='cv'"),
            ((X,), "train must be given for a search"),
            ("kfold", "train must be one of 'cv'"),
            ("cv", "y must be given with train='cv'"),
        ],
    )
    def test_what_a_search_needs(self, search, train, message):
        with pytest.raises(InvalidInputError, match=message):
            adapters.predictions(search, X_TEST, train=train)

    def test_an_unfitted_search_and_one_of_regressors(self):
        search = GridSearchCV(LogisticRegression(), {"C": [1.0]})
        with pytest.raises(InvalidInputError, match="model must be fitted; this GridSearchCV is not: call fit first"):
            adapters.predictions(search, X, train=(X, Y))
        search = GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, X[:, 0])
        with pytest.raises(InvalidInputError, match=r"two classes.*searches over a Ridge, which is not a classifier"):
            adapters.predictions(search, X, train=(X, X[:, 0]))


class TestOwnModels:
    def test_a_stack_has_the_points_of_its_path(self):
        models = [("lr", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
        stack = ff.FairStacksClassifier(models, alpha=1.0, random_state=0).fit(X, Y, sensitive_features=SEX)
        ours = adapters.points(stack, X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        own = stack.points(X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        assert ours.names == own.names
        np.testing.assert_allclose(ours.accuracy, own.accuracy, atol=1e-12)
        np.testing.assert_allclose(ours.bias, own.bias, atol=1e-12)
        piped = make_pipeline(StandardScaler(), stack)
        piped.fit(X, Y, fairstacksclassifier__sensitive_features=SEX)
        scaled = StandardScaler().fit(X).transform(X_TEST)
        direct = piped[-1].points(scaled, Y_TEST, sensitive_features=SEX_TEST)
        through = adapters.points(piped, X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        np.testing.assert_allclose(through.accuracy, direct.accuracy, atol=1e-12)

    def test_an_attribute_aware_stack_sees_the_attribute(self):
        stack = ff.FairStacksClassifier([("lr", LogisticRegression())], alpha=1.0, attribute_aware=True, random_state=0)
        stack.fit(X, Y, sensitive_features=SEX)
        ours = adapters.points(stack, X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        own = stack.points(X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        np.testing.assert_allclose(ours.accuracy, own.accuracy, atol=1e-12)

    def test_a_randomised_family_has_its_expected_decisions(self):
        grid = ff.learners.Reductions(max_iter=5).fit_grid(X, Y, sensitive_features=SEX, values=[0.2, 0.02])
        found = adapters.predictions(grid, X_TEST)
        assert list(found) == list(grid.names)
        assert np.array_equal(np.column_stack(list(found.values())), grid.predict_matrix(X_TEST))
        name, alone = grid.estimators[1]
        assert np.array_equal(adapters.predictions(alone, X_TEST)["Reductions"], found[name])

    def test_families_of_trees_decide(self):
        trees = ff.learners.forest_trees(RandomForestClassifier(3, random_state=0).fit(X, Y))
        both = ff.learners.FamilyUnion(
            (trees, ff.learners.Reductions(max_iter=5).fit_grid(X, Y, sensitive_features=SEX, values=[0.02]))
        )
        found = adapters.predictions(both, X_TEST)
        assert list(found) == list(both.names)
        scores = trees.predict_matrix(X_TEST)
        for j, name in enumerate(trees.names):
            assert np.array_equal(found[name], scores[:, j] > 0.5)
        drawn = found[both.names[-1]]
        assert np.any((drawn > 0) & (drawn < 1))


class TestClassifiers:
    def test_a_plain_classifier_is_one_point(self):
        model = LogisticRegression().fit(X, Y)
        points = adapters.points(model, X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        assert points.names == ("LogisticRegression", "constant")
        decided = model.predict(X_TEST)
        assert points.accuracy[0] == accuracy_score(Y_TEST, decided)
        gap = abs(np.mean(decided[SEX_TEST == "f"] == "yes") - np.mean(decided[SEX_TEST == "m"] == "yes"))
        assert points.fairness[0] == pytest.approx(1 - gap, abs=1e-12)

    def test_a_dict_of_models_makes_families(self, search):
        models = {"search": search, "lr": LogisticRegression().fit(X, Y)}
        points = adapters.points(models, X_TEST, Y_TEST, sensitive_features=SEX_TEST, train=(X, Y))
        assert points.names == ("search/C=0.001", "search/C=0.1", "search/C=10.0", "lr", "constant")
        scores = adapters.predictions(models, X_TEST, train=(X, Y), scores=True)
        stack = ff.FairStacksClassifier("precomputed", alpha=1.0).fit(scores, Y_TEST, sensitive_features=SEX_TEST)
        assert stack.names_ == points.names[:-1]

    def test_weights_measures_and_functions_are_those_of_tradeoff_points(self):
        model, weight = LogisticRegression().fit(X, Y), np.linspace(0.5, 2, N)
        options = {
            "sensitive_features": SEX_TEST,
            "fairness": "equal_opportunity",
            "accuracy": "balanced_accuracy",
            "sample_weight": weight,
            "include_constant": False,
        }
        ours = adapters.points({"m": model}, X_TEST, Y_TEST, **options)
        theirs = ff.tradeoff_points(Y_TEST, {"m": model.predict(X_TEST) == "yes"}, **options)
        assert ours.names == theirs.names
        assert np.array_equal(ours.accuracy, theirs.accuracy)
        assert np.array_equal(ours.bias, theirs.bias)
        called = adapters.points(
            model,
            X_TEST,
            Y_TEST,
            sensitive_features=SEX_TEST,
            fairness=lambda y, p, *, sensitive_features: float(np.mean(p[sensitive_features == "f"])),
        )
        assert called.fairness[0] == pytest.approx(1 - np.mean(model.predict(X_TEST)[SEX_TEST == "f"] == "yes"))

    @pytest.mark.parametrize("classes", [True, False])
    def test_a_model_that_is_no_estimator_of_scikit_learn(self, classes):
        class Plain:
            def fit(self, X, y):
                if classes:
                    self.classes_ = np.unique(y)
                return self

            def predict(self, X):
                positive = (X[:, 0] > 0).astype(int)
                return np.array(["no", "yes"])[positive] if classes else positive

        model = Plain().fit(X, Y)
        points = adapters.points(model, X, Y, sensitive_features=SEX)
        assert points.accuracy[0] == np.mean((X[:, 0] > 0) == (Y == "yes"))
        value = ff.make_fauc_scorer()(model, X, Y, sensitive_features=SEX)
        assert value == ff.fauc(points.frontier())

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (LogisticRegression(), "model must be fitted; this LogisticRegression is not"),
            (make_pipeline(StandardScaler(), ff.FairStacksClassifier()), "this FairStacksClassifier is not"),
            (Ridge().fit(X, X[:, 0]), "two classes; this Ridge is not a classifier"),
            (KMeans(2, n_init=1).fit(X), "two classes; this KMeans is not a classifier"),
            (LogisticRegression().fit(X, np.arange(N) % 3), "this LogisticRegression was fitted to 3"),
            (DummyClassifier().fit(X, np.zeros(N)), "this DummyClassifier was fitted to 1"),
            (LogisticRegression().fit(X, Y == "yes"), r"y must have the classes.*\[False, True\]; got 'no'"),
            ({}, "at least one fitted object; got an empty dict"),
            ("model.pkl", "model must be a fitted object of Fairlearn.*got str"),
            (None, "got NoneType"),
        ],
    )
    def test_what_is_no_fitted_classifier_of_two_classes(self, model, message):
        with pytest.raises(InvalidInputError, match=message):
            adapters.points(model, X, Y, sensitive_features=SEX)

    def test_other_refusals(self):
        model = LogisticRegression().fit(X, Y)
        with pytest.raises(InvalidInputError, match=r"accuracy must be a measure of decisions.*got 'brier'"):
            adapters.points(model, X, Y, sensitive_features=SEX, accuracy="brier")
        with pytest.raises(GroupError, match="at least two groups"):
            adapters.points(model, X, Y, sensitive_features=np.full(N, "f"))
        regressor = ff.FairStacksRegressor("precomputed", alpha=1.0).fit(X, X[:, 0], sensitive_features=SEX)
        with pytest.raises(InvalidInputError, match=re.escape("model.points(X, y, ...)")):
            adapters.predictions(regressor, X)
        grid = {"a/b": model, "a": GridSearchCV(model, {"b": [1]})}
        with pytest.raises(InvalidInputError, match="this GridSearchCV is not"):
            adapters.predictions(grid, X)
        search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=StratifiedKFold(2)).fit(X, Y)
        with pytest.raises(InvalidInputError, match="distinct names; got 'a/max_depth=1' twice"):
            adapters.predictions({"a/max_depth=1": model, "a": search}, X, train=(X, Y))
