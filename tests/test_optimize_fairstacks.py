"""The estimators: what they predict, how they move along their path, and how they fit into scikit-learn."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fairfrontier import FairStacksClassifier, FairStacksRegressor, StepWeight, fauc, tradeoff_points
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._cross_validation import assign_folds, train_test

from .stacking import measured

N = 400


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(N) < 0.5, "f", "m")
    race = rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    X = rng.normal(0, 1, (N, 4)) + (sex == "m")[:, None] * [0.8, 0.0, 0.3, 0.0]
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 1, N) > 0.4).astype(int)
    return {"X": X, "y": y, "sex": sex, "race": race}


@pytest.fixture(scope="module")
def predictions(rows):
    """Predictions of a few models trained on other rows of the same kind."""
    rng = np.random.default_rng(1)
    columns = [
        1 / (1 + np.exp(-rows["X"] @ rng.normal([0.9, 0.9, 0.1, 0], 0.4) - rng.normal(0, 0.2))) for _ in range(6)
    ]
    return np.stack(columns, axis=1)


MODELS = [
    ("linear/logistic", LogisticRegression()),
    ("linear/svm", LinearSVC()),
    ("bayes", GaussianNB()),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
]


class TestPredictions:
    def test_scores_decisions_and_probabilities_agree(self, rows, predictions):
        model = FairStacksClassifier(alpha=1.0, threshold=0.4).fit(
            predictions, rows["y"], sensitive_features=rows["sex"]
        )
        scores = predictions @ model.weights_ + model.intercept_
        np.testing.assert_allclose(model.decision_function(predictions), scores - 0.4, atol=1e-14)
        np.testing.assert_allclose(model.predict_proba(predictions)[:, 1], np.clip(scores, 0, 1), atol=1e-14)
        np.testing.assert_allclose(model.predict_proba(predictions).sum(axis=1), 1.0)
        assert np.array_equal(model.predict(predictions), (scores > 0.4).astype(int))
        assert model.score(predictions, rows["y"]) == np.mean(model.predict(predictions) == rows["y"])

    def test_path_has_the_biases_it_says(self, rows, predictions):
        model = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        scores = model.predict_path(predictions)
        assert scores.shape == (N, 20)
        gap = scores[rows["sex"] == "f"].mean(axis=0) - scores[rows["sex"] == "m"].mean(axis=0)
        np.testing.assert_allclose(gap, model.path_.score_bias, atol=1e-12)
        np.testing.assert_allclose(gap, model.path_.target, atol=1e-12)
        np.testing.assert_allclose(model.path_.tau, np.abs(gap), atol=1e-12)
        assert model.path_.kkt.max() < 1e-10
        assert model.path_.target[-1] == pytest.approx(-model.path_.target[0])

    def test_strings_as_labels(self, rows, predictions):
        words = np.where(rows["y"] == 1, "yes", "no")
        model = FairStacksClassifier(MODELS, alpha=1.0, random_state=0)
        model.fit(rows["X"], words, sensitive_features=rows["sex"])
        other = clone(model).fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        assert model.classes_.tolist() == ["no", "yes"]
        assert np.array_equal(model.predict(rows["X"]) == "yes", other.predict(rows["X"]) == 1)
        points = model.points(rows["X"], words, sensitive_features=rows["sex"])
        assert np.array_equal(
            points.accuracy, other.points(rows["X"], rows["y"], sensitive_features=rows["sex"]).accuracy
        )

    def test_relabelling_the_groups_only_turns_the_sign(self, rows, predictions):
        one = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        two = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"] == "f")
        np.testing.assert_allclose(one.path_.weights, two.path_.weights, atol=1e-12)
        np.testing.assert_allclose(one.path_.target, -two.path_.target, atol=1e-12)

    def test_order_of_models_and_rows_does_not_matter(self, rows, predictions):
        rng = np.random.default_rng(0)
        i, j = rng.permutation(N), rng.permutation(6)
        one = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        two = FairStacksClassifier(alpha=1.0).fit(predictions[i][:, j], rows["y"][i], sensitive_features=rows["sex"][i])
        np.testing.assert_allclose(two.path_.weights, one.path_.weights[:, j], atol=1e-10)


class TestOperatingPoints:
    def fit(self, rows, predictions, **options):
        options = {"random_state": 0, **options}
        return FairStacksClassifier(**options).fit(predictions, rows["y"], sensitive_features=rows["sex"])

    def test_at_tau_and_at_target(self, rows, predictions):
        model = self.fit(rows, predictions, alpha=1.0)
        gap = predictions[rows["sex"] == "f"].mean(axis=0) - predictions[rows["sex"] == "m"].mean(axis=0)
        b0 = model.path_.target[0]
        for tau in (0.0, 0.01, abs(b0), 5.0):
            assert model.at(tau=tau).weights_ @ gap == pytest.approx(np.sign(b0) * min(tau, abs(b0)), abs=1e-12)
        assert model.at(target=0.123).weights_ @ gap == pytest.approx(0.123)
        np.testing.assert_allclose(model.at(target=model.path_.target[4]).weights_, model.path_.weights[4], atol=1e-12)
        fixed = self.fit(rows, predictions, alpha=1.0, tau=0.01)
        np.testing.assert_allclose(fixed.weights_, model.at(tau=0.01).weights_, atol=1e-14)

    def test_moving_leaves_the_model_where_it_is(self, rows, predictions):
        model = self.fit(rows, predictions, alpha=1.0)
        before = model.weights_.copy()
        other = model.at(tau=0.0)
        assert other is not model
        assert other.path_ is model.path_
        assert np.array_equal(model.weights_, before)
        assert np.array_equal(
            other.predict(predictions),
            clone(model)
            .set_params(tau=0.0)
            .fit(predictions, rows["y"], sensitive_features=rows["sex"])
            .predict(predictions),
        )

    def test_default_point_has_the_best_fauc_with_the_constant(self, rows, predictions):
        model = self.fit(rows, predictions)
        values = []
        for i in range(len(model.path_)):
            curve = model.points_.select([i, len(model.path_)]).frontier()
            values.append(fauc(curve, StepWeight(0.8)))
        best = int(np.argmax(values))
        assert np.array_equal(model.weights_, model.path_.weights[best])

    @pytest.mark.parametrize("path", ["signed", "paper"])
    @pytest.mark.parametrize("weight", [None, 3.0])
    def test_the_tuned_ridge_is_one_of_those_given(self, rows, predictions, path, weight):
        alphas = [0.7, 11.3, 190.1]
        of_rows = {"sensitive_features": rows["sex"], "sample_weight": None if weight is None else np.full(N, weight)}
        model, alone = (
            FairStacksClassifier(path=path, family_scales=None, random_state=0, **ridge)
            for ridge in ({"alphas": alphas}, {"alpha": 1.0})
        )
        model.fit(predictions, rows["y"], **of_rows)
        assert model.alpha_ in alphas
        alone.set_params(alpha=model.alpha_).fit(predictions, rows["y"], **of_rows)
        np.testing.assert_allclose(model.at(tau=0.02).weights_, alone.at(tau=0.02).weights_, rtol=1e-9)

    def test_tuned_points_are_out_of_fold(self, rows, predictions):
        """With noise models the training rows flatter; the cross-validated points do not."""
        rng = np.random.default_rng(0)
        noise = rng.random((N, 150))
        y = rng.integers(0, 2, N)
        model = FairStacksClassifier(alphas=[1e-3], alpha="cv", random_state=0).fit(
            noise, y, sensitive_features=rows["sex"]
        )
        seen = model.points(noise, y, sensitive_features=rows["sex"])
        assert seen.accuracy[0] > 0.75
        assert model.points_.accuracy[0] < 0.6


class TestExactFrontier:
    @pytest.mark.parametrize("path", ["signed", "paper"])
    @pytest.mark.parametrize("attribute", ["sex", "race"])
    def test_it_dominates_the_points_of_the_path(self, rows, predictions, path, attribute):
        model = FairStacksClassifier(path=path, alpha=1.0, n_points=50)
        model.fit(predictions, rows["y"], sensitive_features=rows[attribute])
        exact = model.exact_frontier(predictions, rows["y"], sensitive_features=rows[attribute])
        if path == "signed" or attribute == "sex":  # with several contrasts the paper's path is no line
            points = model.points(predictions, rows["y"], sensitive_features=rows[attribute]).frontier()
            levels = np.concatenate([np.linspace(0, 1, 201), points.fairness, exact.fairness])
            assert np.all(exact(levels) >= points(levels) - 1e-12)
        assert exact.fairness[-1] == 1.0
        states = model.decision_path(predictions, rows["y"], sensitive_features=rows[attribute])
        assert states.position[0] >= (-1.0 if path == "signed" else 0.0) - 1e-12
        assert states.position[-1] <= 1.0

    def test_states_are_stacks(self, rows, predictions):
        model = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        states = model.decision_path(predictions, rows["y"], sensitive_features=rows["sex"])
        b0 = model.path_.target[0]
        for i in range(0, len(states), 25):
            there = model.at(target=states.position[i] * b0)
            assert np.mean(there.predict(predictions) == rows["y"]) == pytest.approx(states.accuracy[i])

    def test_weights_count_as_repetitions(self, rows, predictions):
        model = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        times = np.random.default_rng(0).integers(0, 3, N)
        again = np.repeat(np.arange(N), times)
        one = model.exact_frontier(predictions, rows["y"], sensitive_features=rows["sex"], sample_weight=times)
        two = model.exact_frontier(predictions[again], rows["y"][again], sensitive_features=rows["sex"][again])
        levels = np.linspace(0, 1, 1001)
        np.testing.assert_allclose(one(levels), two(levels), atol=1e-9)


class TestMeasures:
    @pytest.mark.parametrize("fairness", ["demographic_parity", "equal_opportunity", "equalized_odds"])
    @pytest.mark.parametrize("mode", ["separate", "intersectional"])
    def test_no_score_bias_on_any_contrast_at_tau_zero(self, rows, predictions, fairness, mode):
        groups = {"sex": rows["sex"], "race": rows["race"]}
        model = FairStacksClassifier(alpha=0.1, fairness=fairness, sensitive_mode=mode, tau=0.0)
        model.fit(predictions, rows["y"], sensitive_features=groups)
        score = predictions @ model.weights_ + model.intercept_
        conditions = {"demographic_parity": [None], "equal_opportunity": [1], "equalized_odds": [1, 0]}[fairness]
        crossed = np.char.add(rows["sex"], rows["race"])
        for condition in conditions:
            chosen = np.ones(N, dtype=bool) if condition is None else rows["y"] == condition
            for values in [rows["sex"], rows["race"]] if mode == "separate" else [crossed]:
                means = [score[chosen & (values == v)].mean() for v in np.unique(values)]
                assert np.ptp(means) < 1e-9

    def test_tau_bounds_every_contrast(self, rows, predictions):
        model = FairStacksClassifier(alpha=0.1).fit(predictions, rows["y"], sensitive_features=rows["race"])
        assert model.path_.target.shape == (20, 3)
        for tau in (0.003, 0.01):
            there = model.at(tau=tau)
            score = predictions @ there.weights_
            means = [score[rows["race"] == r].mean() for r in "abc"]
            assert np.ptp(means) == pytest.approx(tau, abs=1e-9)

    def test_masks_need_no_attribute(self, rows, predictions):
        young = rows["X"][:, 3] > 0
        model = FairStacksClassifier(fairness=[(young, ~young)], alpha=0.1, tau=0.0).fit(predictions, rows["y"])
        score = predictions @ model.weights_
        assert score[young].mean() == pytest.approx(score[~young].mean(), abs=1e-12)
        half = slice(0, N // 2)
        masks = [(young[half], ~young[half])]
        points = model.points(predictions[half], rows["y"][half], fairness=masks)
        assert len(points) == 21
        assert model.exact_frontier(predictions[half], rows["y"][half], fairness=masks).fairness[-1] == 1.0

    def test_other_measures_can_value_a_stack(self, rows, predictions):
        model = FairStacksClassifier(alpha=0.1).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        found = model.points(predictions, rows["y"], sensitive_features=rows["sex"], fairness="equalized_odds")
        expected = tradeoff_points(
            rows["y"], model.predict_path(predictions), sensitive_features=rows["sex"], fairness="equalized_odds"
        )
        np.testing.assert_allclose(found.fairness, expected.fairness)


class TestAttributeAware:
    def test_it_can_equalise_what_no_blind_stack_can(self, rows, predictions):
        blind = FairStacksClassifier(alpha=1.0, tau=0.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        aware = (
            clone(blind).set_params(attribute_aware=True).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        )
        error = [
            np.mean((m.predict_proba(predictions, sensitive_features=rows["sex"])[:, 1] - rows["y"]) ** 2)
            for m in (blind, aware)
        ]
        assert error[1] < error[0] - 0.001
        assert len(aware.weights_) == 7
        assert aware.scales_[-1] < 0.01
        score = aware.decision_function(predictions, sensitive_features=rows["sex"])
        assert score[rows["sex"] == "f"].mean() == pytest.approx(score[rows["sex"] == "m"].mean(), abs=1e-9)
        assert aware.path_.kkt.max() < 1e-8

    def test_attributes_come_in_any_order_and_form(self, rows, predictions):
        model = FairStacksClassifier(alpha=1.0, attribute_aware=True)
        model.fit(predictions, rows["y"], sensitive_features={"sex": rows["sex"], "race": rows["race"]})
        expected = model.predict_proba(
            predictions, sensitive_features=pd.DataFrame({"sex": rows["sex"], "race": rows["race"]})
        )
        turned = {"race": pl.Series(rows["race"]), "sex": rows["sex"].tolist()}
        np.testing.assert_array_equal(model.predict_proba(predictions, sensitive_features=turned), expected)
        one = model.predict_proba(
            predictions[:1], sensitive_features={"sex": rows["sex"][:1], "race": rows["race"][:1]}
        )
        np.testing.assert_allclose(one, expected[:1], atol=1e-14)

    def test_a_single_attribute_needs_no_name(self, rows, predictions):
        series = pd.Series(rows["sex"], name="sex")
        model = FairStacksClassifier(alpha=1.0, attribute_aware=True).fit(
            predictions, rows["y"], sensitive_features=series
        )
        assert np.array_equal(
            model.predict(predictions, sensitive_features=rows["sex"]),
            model.predict(predictions, sensitive_features=series),
        )
        assert model.at(tau=10.0).score(predictions, rows["y"], sensitive_features=series) > 0.7

    def test_tuning_keeps_the_attribute(self, rows, predictions):
        model = FairStacksClassifier(attribute_aware=True, random_state=0).fit(
            predictions, rows["y"], sensitive_features=rows["race"]
        )
        assert model.weights_.shape == (8,)
        assert np.all(model.scales_[-2:] < 0.01)


class TestBaseModels:
    def test_the_stack_sees_out_of_fold_predictions(self, rows):
        model = FairStacksClassifier(MODELS, alpha=5.0, cv=4, random_state=3, group_models=None)
        model.fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        H = np.empty((N, 4))
        for train, test in train_test(assign_folds(*measured(rows["y"] == 1, rows["sex"]), 4, 3)):
            for j, (_, estimator) in enumerate(MODELS):
                fitted = clone(estimator).fit(rows["X"][train], rows["y"][train])
                method = fitted.decision_function if j == 1 else lambda Z, f=fitted: f.predict_proba(Z)[:, 1]
                H[test, j] = method(rows["X"][test])
        other = FairStacksClassifier(alpha=5.0).fit(H, rows["y"], sensitive_features=rows["sex"])
        np.testing.assert_allclose(model.path_.weights, other.path_.weights, atol=1e-9)
        assert model.names_ == tuple(name for name, _ in MODELS)
        assert [name for name, _ in model.estimators_] == list(model.names_)

    def test_a_model_that_changes_its_features_changes_no_others(self, rows):
        X, scaled = rows["X"] * 5.0, make_pipeline(StandardScaler(copy=False), LogisticRegression())
        model = FairStacksClassifier([("scaled", scaled), ("tree", MODELS[3][1])], alpha=1.0, group_models=None)
        model.fit(X, rows["y"], sensitive_features=rows["sex"])
        np.testing.assert_array_equal(X, rows["X"] * 5.0)
        alone = clone(MODELS[3][1]).fit(X, rows["y"])
        np.testing.assert_array_equal(model.estimators_[1][1].predict_proba(X), alone.predict_proba(X))

    def test_prefit_and_precomputed_are_the_same(self, rows):
        fitted = [(name, clone(m).fit(rows["X"], rows["y"])) for name, m in MODELS if name != "linear/svm"]
        H = np.stack([m.predict_proba(rows["X"])[:, 1] for _, m in fitted], axis=1)
        prefit = FairStacksClassifier(fitted, cv="prefit", random_state=0)
        prefit.fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        names = [name for name, _ in fitted]
        given = FairStacksClassifier(names, cv="precomputed", random_state=0)
        given.fit(H, rows["y"], sensitive_features=rows["sex"])
        assert given.names_ == prefit.names_ == tuple(names)
        np.testing.assert_allclose(given.path_.weights, prefit.path_.weights, atol=1e-12)
        np.testing.assert_allclose(given.predict_path(H), prefit.predict_path(rows["X"]), atol=1e-12)
        assert prefit.estimators_[0][1] is fitted[0][1]

    def test_frozen_models_survive_a_clone(self, rows):
        fitted = [(name, FrozenEstimator(clone(m).fit(rows["X"], rows["y"]))) for name, m in MODELS]
        model = clone(FairStacksClassifier(fitted, cv="prefit", alpha=1.0))
        model.fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        assert model.at(tau=10.0).score(rows["X"], rows["y"]) > 0.7

    def test_regressors_stack_for_classification(self, rows):
        model = FairStacksClassifier([("ridge", Ridge()), ("tree", MODELS[3][1])], alpha=1.0, random_state=0)
        model.fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        assert model.at(tau=10.0).score(rows["X"], rows["y"]) > 0.7

    def test_regression(self, rows):
        target = rows["X"] @ [0.1, 0.1, 0, 0.05] + 0.5
        models = [("linear", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=4, random_state=0))]
        model = FairStacksRegressor(models, tau=0.0, random_state=0, group_models=None)
        model.fit(rows["X"], target, sensitive_features=rows["sex"])
        oof = model.at(target=model.path_.target[0])
        assert oof.score(rows["X"], target) > 0.9
        gap = [abs(np.diff([m.predict(rows["X"])[rows["sex"] == s].mean() for s in "fm"])[0]) for m in (model, oof)]
        assert gap[0] < 0.3 * gap[1]
        points = model.points(rows["X"], target, sensitive_features=rows["sex"])
        assert points.accuracy[0] == pytest.approx(oof.score(rows["X"], target))

    def test_weights_reach_the_base_models(self, rows):
        weight = np.where(rows["y"] == 1, 5.0, 1.0)
        models = [("logistic", LogisticRegression())]
        model = FairStacksClassifier(models, alpha=1.0, random_state=0)
        plain = clone(model).fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        weighted = model.fit(rows["X"], rows["y"], sensitive_features=rows["sex"], sample_weight=weight)
        assert weighted.estimators_[0][1].intercept_[0] > plain.estimators_[0][1].intercept_[0] + 0.5
        assert weighted.predict(rows["X"]).mean() > plain.predict(rows["X"]).mean()

    def test_same_seed_same_stack_and_jobs_do_not_matter(self, rows):
        forest = [("forest", RandomForestClassifier(3, max_depth=3, random_state=0)), *MODELS[:1]]
        fits = [
            FairStacksClassifier(forest, random_state=seed, n_jobs=jobs).fit(
                rows["X"], rows["y"], sensitive_features=rows["sex"]
            )
            for seed, jobs in ((0, 1), (0, 2), (1, 1))
        ]
        assert np.array_equal(fits[0].path_.weights, fits[1].path_.weights)
        assert np.array_equal(fits[0].predict_path(rows["X"]), fits[1].predict_path(rows["X"]))
        assert not np.array_equal(fits[0].path_.weights, fits[2].path_.weights)


class TestInputs:
    def frames(self, predictions):
        columns = {f"m{j}": predictions[:, j] for j in range(6)}
        return [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]

    def test_dataframes_of_predictions(self, rows, predictions):
        expected = FairStacksClassifier(alpha=1.0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        assert expected.names_ == tuple(f"model_{j}" for j in range(6))
        for frame, y, sex in zip(
            self.frames(predictions),
            [pd.Series(rows["y"]), pl.Series(rows["y"]), pa.array(rows["y"])],
            [pd.Series(rows["sex"]), pl.Series(rows["sex"]), pa.chunked_array([rows["sex"].tolist()])],
            strict=True,
        ):
            model = FairStacksClassifier(alpha=1.0).fit(frame, y, sensitive_features=sex)
            assert model.names_ == tuple(f"m{j}" for j in range(6))
            np.testing.assert_allclose(model.path_.weights, expected.path_.weights, atol=1e-12)
            np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(predictions), atol=1e-12)

    def test_dataframes_of_features(self, rows):
        columns = {f"x{j}": rows["X"][:, j] for j in range(4)}
        expected = FairStacksClassifier(MODELS, alpha=1.0, random_state=0)
        expected.fit(rows["X"], rows["y"], sensitive_features=rows["sex"])
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            model = clone(expected).fit(frame, rows["y"], sensitive_features=rows["sex"])
            np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(rows["X"]), atol=1e-10)

    @pytest.mark.parametrize("cv", ["prefit", 3])
    def test_base_models_see_the_names_of_a_pyarrow_table(self, rows, cv):
        columns = {f"x{j}": rows["X"][:, j] for j in range(4)} | {"town": rows["race"]}
        encoder = ColumnTransformer([("numbers", "passthrough", ["x0", "x1"]), ("town", OneHotEncoder(), ["town"])])
        pipeline = make_pipeline(encoder, LogisticRegression())
        y, sex = np.where(rows["y"] == 1, "yes", "no") if cv == "prefit" else rows["y"], rows["sex"]
        scores = []
        for frame in (pd.DataFrame(columns), pa.table({name: values.tolist() for name, values in columns.items()})):
            models = [("lr", clone(pipeline).fit(pd.DataFrame(columns), y))]
            model = FairStacksClassifier(models, cv=cv, alpha=1.0, random_state=0, group_models=False)
            scores.append(model.fit(frame, y, sensitive_features=sex).predict_path(frame))
        np.testing.assert_allclose(*scores, atol=1e-12)

    def test_single_precision_stays_close(self, rows, predictions):
        model = FairStacksClassifier(random_state=0)
        double = clone(model).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        single = clone(model).fit(predictions.astype(np.float32), rows["y"], sensitive_features=rows["sex"])
        np.testing.assert_allclose(single.path_.weights, double.path_.weights, atol=1e-3)

    def test_renamed_or_reordered_columns_are_refused(self, rows, predictions):
        frame = self.frames(predictions)[0]
        model = FairStacksClassifier(alpha=1.0).fit(frame, rows["y"], sensitive_features=rows["sex"])
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[frame.columns[::-1]])


class TestScikitLearn:
    def test_pickle_copy_and_clone(self, rows, predictions):
        model = FairStacksClassifier(random_state=0).fit(predictions, rows["y"], sensitive_features=rows["sex"])
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert np.array_equal(other.predict_path(predictions), model.predict_path(predictions))
            assert np.array_equal(other.at(tau=0.01).weights_, model.at(tau=0.01).weights_)
        fresh = clone(model)
        assert not hasattr(fresh, "path_")
        assert fresh.get_params() == model.get_params()

    def test_metadata_routing(self, rows):
        with sklearn.config_context(enable_metadata_routing=True):
            stack = FairStacksClassifier(MODELS, alpha=1.0, random_state=0).set_fit_request(sample_weight=True)
            groups, weight = rows["sex"], np.ones(N)
            scaler = StandardScaler().set_fit_request(sample_weight=False)
            pipeline = make_pipeline(scaler, stack)
            pipeline.fit(rows["X"], rows["y"], sensitive_features=groups, sample_weight=weight)
            scaled = StandardScaler().fit_transform(rows["X"])
            alone = clone(stack).fit(scaled, rows["y"], sensitive_features=groups, sample_weight=weight)
            assert np.array_equal(pipeline.predict(rows["X"]), alone.predict(scaled))
            plain = FairStacksClassifier(MODELS[2:], alpha=1.0, random_state=0)
            result = cross_validate(
                plain, rows["X"], rows["y"], params={"sensitive_features": groups}, cv=3, return_estimator=True
            )
            for fitted, (train, test), score in zip(
                result["estimator"],
                cross_validate_splits(rows),
                result["test_score"],
                strict=True,
            ):
                again = clone(plain).fit(rows["X"][train], rows["y"][train], sensitive_features=groups[train])
                assert np.array_equal(again.path_.weights, fitted.path_.weights)
                assert score == again.score(rows["X"][test], rows["y"][test])
            search = GridSearchCV(plain, {"tau": [0.0, 0.05, 1.0]}, cv=3)
            search.fit(rows["X"], rows["y"], sensitive_features=groups)
            assert search.best_params_["tau"] in (0.0, 0.05, 1.0)
            assert search.best_estimator_.target_ is not None

    def test_routing_reaches_an_attribute_aware_stack(self, rows, predictions):
        with sklearn.config_context(enable_metadata_routing=True):
            stack = FairStacksClassifier(alpha=1.0, attribute_aware=True)
            stack.set_score_request(sensitive_features=True).set_predict_request(sensitive_features=True)
            result = cross_validate(stack, predictions, rows["y"], params={"sensitive_features": rows["sex"]}, cv=3)
            assert np.all(result["test_score"] > 0.6)
            pipeline = make_pipeline(StandardScaler(), stack).fit(
                predictions, rows["y"], sensitive_features=rows["sex"]
            )
            assert pipeline.predict(predictions, sensitive_features=rows["sex"]).shape == (N,)

    def test_without_routing_the_error_says_how(self, rows):
        with pytest.raises(ValueError, match=r"sensitive_features must be given.*enable_metadata_routing=True"):
            make_pipeline(StandardScaler(), FairStacksClassifier(MODELS)).fit(rows["X"], rows["y"])


def cross_validate_splits(rows):
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(3).split(rows["X"], rows["y"])


def test_a_splitter_is_used_for_base_models_and_tuning(rows):
    model = FairStacksClassifier(MODELS[2:], cv=KFold(4, shuffle=True, random_state=1), alphas=[1.0, 10.0])
    one = model.fit(rows["X"], rows["y"], sensitive_features=rows["sex"]).path_.weights
    two = clone(model).fit(rows["X"], rows["y"], sensitive_features=rows["sex"]).path_.weights
    assert np.array_equal(one, two)


def test_predictions_by_name_are_taken_in_any_order():
    rng = np.random.default_rng(0)
    sex, y = rng.integers(0, 2, 120), rng.integers(0, 2, 120)
    named = {name: np.clip(0.4 * y + 0.2 * sex + rng.normal(0, 0.3, 120), 0, 1) for name in ("a", "b", "c")}
    by_name = FairStacksClassifier("precomputed", random_state=0).fit(named, y, sensitive_features=sex)
    matrix = np.stack(list(named.values()), axis=1)
    by_column = FairStacksClassifier("precomputed", random_state=0).fit(matrix, y, sensitive_features=sex)
    assert by_name.names_ == ("a", "b", "c")
    shuffled = {name: named[name] for name in ("c", "a", "b")}
    np.testing.assert_allclose(by_name.predict_path(shuffled), by_column.predict_path(matrix), atol=1e-12)
    with pytest.raises(InvalidInputError, match="X must hold the predictions of every base model; 'c' is missing"):
        by_name.predict({"a": named["a"], "b": named["b"]})


@pytest.mark.parametrize("kind", [int, bool])
def test_labels_that_lost_their_type_in_a_table_are_scored_as_they_were_fitted(rows, predictions, kind):
    y = rows["y"].astype(kind).astype(object)
    model = FairStacksClassifier(alpha=1.0).fit(predictions, y, sensitive_features=rows["sex"])
    assert model.score(predictions, y) == np.mean(model.predict(predictions) == y)
