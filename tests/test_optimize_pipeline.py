"""The stack as a step among scikit-learn's: nested parameters, pipelines, searches, routing, frames, notebooks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier import FairStacksClassifier
from fairfrontier.exceptions import InvalidInputError

MODELS = [("lr", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
QUICK = {"alpha": 1.0, "group_models": None, "random_state": 0, "n_points": 5}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 240)
    X = rng.normal(size=(240, 3)) + (sex == "m")[:, None] * [0.8, 0.0, 0.0]
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=240) > 0.4).astype(int), sex


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


class TestNestedParameters:
    def test_parameters_of_the_estimators_are_those_of_the_stack(self):
        stack = FairStacksClassifier([*MODELS, ("pipe", make_pipeline(StandardScaler(), LogisticRegression()))])
        assert stack.get_params()["lr__C"] == 1.0
        assert stack.get_params()["tree"] is MODELS[1][1]
        assert set(stack.get_params(deep=False)) == set(FairStacksClassifier().get_params())
        copy = clone(stack).set_params(lr__C=0.5, pipe__logisticregression__C=7.0, alpha=3.0)
        assert copy.get_params()["lr__C"] == 0.5
        assert copy.get_params()["pipe__logisticregression__C"] == 7.0
        assert (copy.alpha, stack.get_params()["lr__C"]) == (3.0, 1.0)
        with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
            stack.set_params(nothing=1)
        with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
            stack.set_params(lr__nothing=1)

    def test_an_estimator_can_be_replaced_or_dropped(self, rows):
        X, y, sex = rows
        stack = FairStacksClassifier(list(MODELS), **QUICK).set_params(lr="drop")
        assert stack.fit(X, y, sensitive_features=sex).names_ == ("tree",)
        stack.set_params(lr=DecisionTreeClassifier(max_depth=1), lr__max_depth=2)
        assert stack.get_params()["lr__max_depth"] == 2
        assert stack.fit(X, y, sensitive_features=sex).names_ == ("lr", "tree")

    def test_stacks_without_estimators_have_none(self):
        assert FairStacksClassifier().get_params()["estimators"] == "precomputed"
        assert FairStacksClassifier(["a", "b"], cv="precomputed").set_params(tau=0.1).tau == 0.1

    @pytest.mark.parametrize(
        "given", [LogisticRegression(), {"lr": LogisticRegression()}, [LogisticRegression()], None]
    )
    def test_what_is_no_list_of_pairs_is_left_to_fit(self, given, rows):
        X, y, sex = rows
        stack = clone(FairStacksClassifier(given)).set_params(alpha=1.0)
        assert "FairStacksClassifier" in repr(stack)
        with pytest.raises(ff.exceptions.InvalidInputError, match="estimators must be"):
            stack.fit(X, y, sensitive_features=sex)


class TestRouting:
    def test_a_search_over_nested_parameters(self, rows, routing):
        X, y, sex = rows
        search = GridSearchCV(
            make_pipeline(StandardScaler(), FairStacksClassifier(MODELS, min_fairness=0.8, **QUICK)),
            {"fairstacksclassifier__lr__C": [0.01, 1.0], "fairstacksclassifier__tree__max_depth": [1, 3]},
            cv=2,
            error_score="raise",
        )
        search.fit(X, y, sensitive_features=sex)
        assert set(search.best_params_) == {"fairstacksclassifier__lr__C", "fairstacksclassifier__tree__max_depth"}
        chosen = search.best_estimator_[-1].get_params()
        assert chosen["lr__C"] == search.best_params_["fairstacksclassifier__lr__C"]
        assert search.best_estimator_[-1].selection_.asked == 0.8
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_an_attribute_aware_stack_asks_for_the_attribute_everywhere(self, rows, routing):
        X, y, sex = rows
        stack = FairStacksClassifier(MODELS, attribute_aware=True, **QUICK)
        pipeline = make_pipeline(StandardScaler(), stack).fit(X, y, sensitive_features=sex)
        own = pipeline[-1]
        scaled = pipeline[:-1].transform(X)
        for method in ("predict", "predict_proba", "decision_function"):
            np.testing.assert_array_equal(
                getattr(pipeline, method)(X, sensitive_features=sex),
                getattr(own, method)(scaled, sensitive_features=sex),
            )
        assert pipeline.score(X, y, sensitive_features=sex) == own.score(scaled, y, sensitive_features=sex)

    @pytest.mark.skipif(sklearn.__version__.startswith("1.6."), reason="it does not route to a model's own score")
    def test_it_is_cross_validated_without_setting_requests(self, rows, routing):
        X, y, sex = rows
        stack = FairStacksClassifier(MODELS, attribute_aware=True, **QUICK)
        scores = cross_val_score(stack, X, y, cv=2, params={"sensitive_features": sex}, error_score="raise")
        assert ((scores > 0.5) & (scores <= 1)).all()
        found = cross_validate(
            make_pipeline(StandardScaler(), stack), X, y, cv=2, params={"sensitive_features": sex}, error_score="raise"
        )
        assert (found["test_score"] > 0.5).all()

    def test_what_is_set_by_hand_is_kept(self, routing):
        stack = FairStacksClassifier(MODELS, attribute_aware=True).set_fit_request(sample_weight=True)
        requests = stack.get_metadata_routing()
        assert requests.predict.requests["sensitive_features"] is True
        assert requests.fit.requests == {"sensitive_features": True, "sample_weight": True}
        stack.set_predict_request(sensitive_features=False)
        assert stack.get_metadata_routing().predict.requests["sensitive_features"] is False
        plain = FairStacksClassifier(MODELS).get_metadata_routing()
        assert plain.predict.requests["sensitive_features"] is False

    def test_without_routing_a_pipeline_passes_it_on(self, rows):
        X, y, sex = rows
        stack = FairStacksClassifier(MODELS, attribute_aware=True, **QUICK)
        pipeline = make_pipeline(StandardScaler(), stack).fit(X, y, fairstacksclassifier__sensitive_features=sex)
        assert pipeline.predict(X, sensitive_features=sex).shape == (240,)


class TestFrames:
    @pytest.mark.parametrize(
        ("make", "kind"),
        [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table), (dict, pd.DataFrame)],
    )
    def test_results_are_frames_of_the_library_that_came_in(self, make, kind, rows):
        X, y, sex = rows
        scores = make({"a": X[:, 0], "b": 0.5 + X[:, 1] / 10})
        points = ff.tradeoff_points(y, scores, sensitive_features=sex)
        frame, curve = points.to_frame(), points.frontier().to_frame()
        stack = FairStacksClassifier(alpha=1.0, n_points=5).fit(scores, y, sensitive_features=sex)
        path = stack.path_.to_frame()
        for one in (frame, curve, path, stack.points_.to_frame()):
            assert isinstance(one, kind)

    def test_their_columns(self, rows):
        X, y, sex = rows
        points = ff.tradeoff_points(y, {"a": X[:, 0], "b": X[:, 1]}, sensitive_features={"sex": sex})
        frame = points.to_frame()
        assert list(frame) == ["model", "fairness", "accuracy", "pareto_optimal", "rate[sex=f]", "rate[sex=m]"]
        assert frame["model"].tolist() == ["a", "b", "constant"]
        np.testing.assert_array_equal(frame["accuracy"], points.accuracy)
        np.testing.assert_array_equal(frame["rate[sex=m]"] - frame["rate[sex=f]"], -points.bias[:, 0])
        assert np.flatnonzero(frame["pareto_optimal"]).tolist() == sorted(points.frontier().support)
        curve = points.frontier()
        assert curve.to_frame()["model"].tolist() == curve.support.tolist()
        assert list(points.frontier("signed").to_frame()) == ["fairness", "accuracy"]

    def test_a_path_of_several_contrasts(self, rows):
        X, y, _ = rows
        race = np.array(["a", "b", "c"])[np.arange(240) % 3]
        stack = FairStacksClassifier(MODELS, **QUICK).fit(X, y, sensitive_features=race)
        frame = stack.path_.to_frame()
        assert {"tau", "intercept", "kkt", "weight[lr]", "weight[tree]", "target[0]"} <= set(frame)
        np.testing.assert_array_equal(frame["weight[tree]"], stack.path_.weights[:, 1])


def test_a_notebook_shows_the_frontier_with_the_chosen_point(rows):
    X, y, sex = rows
    stack = FairStacksClassifier(MODELS, **QUICK)
    assert "operating point" not in stack._repr_html_()
    stack.fit(X, y, sensitive_features=sex)
    assert stack._repr_html_().count("<circle") == 1
    chosen = stack.select(min_fairness=0.9)
    assert f"accuracy {chosen.selection_.accuracy:.3f}" in chosen._repr_html_()


@pytest.fixture(scope="module")
def small_stack():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    group = rng.integers(0, 2, 300)
    y = (X["a"] + rng.normal(size=300) > 0).astype(int).to_numpy()
    stack = ff.FairStacksClassifier([("line", LogisticRegression())], random_state=0)
    return stack.fit(X, y, sensitive_features=group), X, y, group


class TestAddedToOtherRows:
    def test_equal_rows_in_another_object_are_welcome(self, small_stack):
        stack, X, y, group = small_stack
        more = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
        one = stack.add_estimators(more, X, y, sensitive_features=group)
        other = stack.add_estimators(more, X.copy(), y.tolist(), sensitive_features=group.copy())
        np.testing.assert_array_equal(one.path_.weights, other.path_.weights)

    @pytest.mark.parametrize("wrong", ["X", "y", "sensitive_features", "sample_weight"])
    def test_other_rows_are_refused(self, small_stack, wrong):
        stack, X, y, group = small_stack
        given = {"X": X, "y": y, "sensitive_features": group}
        others = {
            "X": X.iloc[::-1],
            "y": 1 - y,
            "sensitive_features": 1 - group,
            "sample_weight": np.arange(1.0, 301.0),
        }
        given[wrong] = others[wrong]
        with pytest.raises(InvalidInputError, match=f"{wrong}.* must be that of the fit, row by row"):
            stack.add_estimators([("tree", DecisionTreeClassifier(max_depth=2))], **given)
