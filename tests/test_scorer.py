"""FAUC as a scorer: in cross-validation and searches, with and without metadata routing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError

N = 450
RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], N)
X = RNG.normal(size=(N, 3)) + 0.3 * (SEX == "m")[:, None]
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0.4).astype(int)
STEP = ff.StepWeight(0.8)
MODELS = [("lr", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=4, random_state=0))]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("interpolate", [False, True, "signed"])
@pytest.mark.parametrize("weight", [None, STEP, ff.PointWeight(0.9)])
def test_an_ordinary_classifier_is_its_one_point_and_the_constant(weight, interpolate):
    model = LogisticRegression().fit(X, Y)
    value = ff.make_fauc_scorer(weight=weight, interpolate=interpolate)(model, X, Y, sensitive_features=SEX)
    decisions = {"model": model.predict(X)}
    assert value == ff.fauc_score(Y, decisions, sensitive_features=SEX, weight=weight, interpolate=interpolate)
    points = ff.tradeoff_points(Y, decisions, sensitive_features=SEX)
    if weight is None and not interpolate:
        (fairness, one), (accuracy, best) = points.fairness, points.accuracy
        assert one == 1.0
        assert value == pytest.approx(fairness * accuracy + (1 - fairness) * best, abs=1e-12)


def test_a_stack_is_its_whole_path():
    stack = ff.FairStacksClassifier(MODELS, alpha=1.0, random_state=0).fit(X, Y, sensitive_features=SEX)
    for fairness in ("demographic_parity", "equal_opportunity"):
        points = stack.points(X, Y, sensitive_features=SEX, fairness=fairness)
        value = ff.make_fauc_scorer(weight=STEP, fairness=fairness)(stack, X, Y, sensitive_features=SEX)
        assert value == pytest.approx(ff.fauc(points.frontier(), STEP), abs=1e-12)
    # A path has more to offer than any single point of it.
    single = max(ff.fauc(points.select([i, len(points) - 1]).frontier(), STEP) for i in range(len(points) - 1))
    assert value > single


def test_cross_validate_routes_the_attribute_to_the_scorer(routing):
    scorer = ff.make_fauc_scorer(weight=STEP)
    result = cross_validate(
        LogisticRegression(),
        X,
        Y,
        scoring={"fauc": scorer, "accuracy": "accuracy"},
        params={"sensitive_features": SEX},
        cv=3,
        return_estimator=True,
    )
    for (_, test), model, value in zip(
        StratifiedKFold(3).split(X, Y), result["estimator"], result["test_fauc"], strict=True
    ):
        expected = ff.fauc_score(Y[test], model.predict(X[test]), sensitive_features=SEX[test], weight=STEP)
        assert value == expected
    assert result["test_accuracy"].shape == (3,)
    alone = cross_val_score(LogisticRegression(), X, Y, scoring=scorer, params={"sensitive_features": SEX}, cv=3)
    assert np.array_equal(alone, result["test_fauc"])


def test_a_search_over_stacks_chooses_by_fauc(routing):
    stack = ff.FairStacksClassifier(MODELS, random_state=0, cv=3)
    scorer = ff.make_fauc_scorer(weight=STEP)
    search = GridSearchCV(stack, {"alpha": [1.0, 1e7]}, scoring=scorer, cv=2).fit(X, Y, sensitive_features=SEX)
    values = search.cv_results_["mean_test_score"]
    for alpha, mean in zip([1.0, 1e7], values, strict=True):
        by_hand = [
            ff.fauc(
                stack.set_params(alpha=alpha)
                .fit(X[train], Y[train], sensitive_features=SEX[train])
                .points(X[test], Y[test], sensitive_features=SEX[test])
                .frontier(),
                STEP,
            )
            for train, test in StratifiedKFold(2).split(X, Y)
        ]
        assert mean == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert search.best_params_["alpha"] == [1.0, 1e7][int(np.argmax(values))]
    assert search.score(X, Y, sensitive_features=SEX) == scorer(search.best_estimator_, X, Y, sensitive_features=SEX)


def test_a_pipeline_is_valued_by_the_path_of_its_last_step(routing):
    pipeline = make_pipeline(StandardScaler(), ff.FairStacksClassifier(MODELS, alpha=1.0, random_state=0, cv=3))
    result = cross_validate(
        pipeline,
        X,
        Y,
        scoring=ff.make_fauc_scorer(weight=STEP),
        params={"sensitive_features": SEX},
        cv=2,
        return_estimator=True,
    )
    for (_, test), model, value in zip(
        StratifiedKFold(2).split(X, Y), result["estimator"], result["test_score"], strict=True
    ):
        points = model[-1].points(model[:-1].transform(X[test]), Y[test], sensitive_features=SEX[test])
        assert value == pytest.approx(ff.fauc(points.frontier(), STEP), abs=1e-12)


def test_sample_weights_are_routed_where_asked_for(routing):
    weight = np.where(SEX == "f", 4.0, 1.0)
    scorer = ff.make_fauc_scorer(weight=STEP)
    params = {"sensitive_features": SEX, "sample_weight": weight}
    model = LogisticRegression().set_fit_request(sample_weight=False)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_val_score(model, X, Y, scoring=scorer, params=params, cv=2)
    assert scorer.set_score_request(sample_weight=True) is scorer
    values = cross_val_score(model, X, Y, scoring=scorer, params=params, cv=2)
    expected = [
        ff.fauc_score(
            Y[test],
            LogisticRegression().fit(X[train], Y[train]).predict(X[test]),
            sensitive_features=SEX[test],
            sample_weight=weight[test],
            weight=STEP,
        )
        for train, test in StratifiedKFold(2).split(X, Y)
    ]
    assert values == pytest.approx(expected, abs=1e-12)
    aliased = ff.make_fauc_scorer(weight=STEP).set_score_request(sensitive_features="groups")
    renamed = cross_val_score(LogisticRegression(), X, Y, scoring=aliased, params={"groups": SEX}, cv=2)
    plain = cross_val_score(
        LogisticRegression(), X, Y, scoring=ff.make_fauc_scorer(weight=STEP), params={"sensitive_features": SEX}, cv=2
    )
    assert np.array_equal(renamed, plain)


@pytest.mark.parametrize("columns", ["sex", ["sex", "old"]])
def test_columns_of_a_dataframe_need_no_routing(columns):
    frame = pd.DataFrame(X, columns=list("abc")).assign(sex=SEX, old=X[:, 2] > 0.5)
    model = make_pipeline(
        sklearn.compose.make_column_transformer((StandardScaler(), ["a", "b", "c"])), LogisticRegression()
    )
    scorer = ff.make_fauc_scorer(weight=STEP, columns=columns, sensitive_mode="intersectional")
    search = RandomizedSearchCV(
        model, {"logisticregression__C": [0.01, 1.0]}, n_iter=2, scoring=scorer, cv=2, random_state=0
    ).fit(frame, Y)
    best = search.best_estimator_
    value = ff.fauc_score(
        Y, best.predict(frame), sensitive_features=frame[columns], weight=STEP, sensitive_mode="intersectional"
    )
    assert search.score(frame, Y) == value
    with pytest.raises(InvalidInputError, match="columns must name columns of X, a dataframe; got 'race'"):
        ff.make_fauc_scorer(columns="race")(best, frame, Y)
    with pytest.raises(InvalidInputError, match="columns must name columns of X"):
        scorer(LogisticRegression().fit(X, Y), X, Y)


def test_models_of_other_libraries():
    model = LogisticRegression().fit(X, Y)
    fair = ThresholdOptimizer(estimator=model, prefit=True).fit(X, Y, sensitive_features=SEX)
    scorer = ff.make_fauc_scorer(weight=STEP)
    value = scorer(fair, X, Y, sensitive_features=SEX)
    chance = fair._pmf_predict(X, sensitive_features=SEX)[:, 1]
    assert value == ff.fauc_score(Y, chance, sensitive_features=SEX, weight=STEP, threshold=None)
    assert value > scorer(model, X, Y, sensitive_features=SEX)


def test_regressors_are_valued_by_r2():
    target = X[:, 0] + 0.3 * X[:, 1]
    linear = LinearRegression().fit(X[:, 1:], target)
    scorer = ff.make_fauc_scorer()
    value = scorer(linear, X[:, 1:], target, sensitive_features=SEX)
    assert value == ff.fauc_score(target, linear.predict(X[:, 1:]), sensitive_features=SEX, accuracy="r2")
    stack = ff.FairStacksRegressor([("lr", LinearRegression())], alpha=1.0, random_state=0)
    stack.fit(X, target, sensitive_features=SEX)
    points = stack.points(X, target, sensitive_features=SEX)
    assert scorer(stack, X, target, sensitive_features=SEX) == pytest.approx(ff.fauc(points.frontier()), abs=1e-12)


def test_a_scorer_is_pickled_shown_and_taken_by_scikit_learn():
    scorer = ff.make_fauc_scorer(weight=STEP, interpolate="signed")
    assert get_scorer(scorer) is scorer
    same = pickle.loads(pickle.dumps(scorer))
    model = LogisticRegression().fit(X, Y)
    assert same(model, X, Y, sensitive_features=SEX) == scorer(model, X, Y, sensitive_features=SEX)
    assert repr(same) == repr(scorer) != repr(ff.make_fauc_scorer())
    assert "StepWeight(minimum=0.8)" in repr(scorer)


def test_refusals():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"sensitive_features must reach the scorer.*enable_metadata_routing"):
        ff.make_fauc_scorer()(model, X, Y)
    with pytest.raises(InvalidInputError, match="weight must be None, a Weight or a function"):
        ff.make_fauc_scorer(weight=0.8)
    with pytest.raises(GroupError, match="at least two groups"):
        ff.make_fauc_scorer()(model, X, Y, sensitive_features=np.full(N, "f"))
    with pytest.raises(InvalidInputError, match="interpolate must be False, True or 'signed'"):
        ff.make_fauc_scorer(interpolate="linear")(model, X, Y, sensitive_features=SEX)
