"""Adapters of Fairlearn, OxonFair and AIF360, each against what the real library says of itself."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from aif360.datasets import BinaryLabelDataset, StructuredDataset
from aif360.metrics import ClassificationMetric
from fairlearn.metrics import demographic_parity_difference
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    ExponentiatedGradient,
    GridSearch,
    SquareLoss,
)
from oxonfair import FairPredictor, group_metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairfrontier import adapters, tradeoff_points
from fairfrontier.exceptions import GroupError, InvalidInputError

N = 600


def rows(seed):
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], N), rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(N, 3)) + 0.8 * (sex == "m")[:, None]
    y = (X[:, 0] + X[:, 1] + rng.normal(size=N) > 0.8).astype(int)
    return X, y, sex, race


X, Y, SEX, RACE = rows(0)
X_TEST, Y_TEST, SEX_TEST, RACE_TEST = rows(1)


def quietly(fit, *args, **keywords):
    """Fit with Fairlearn, whose own use of pandas is deprecated by pandas 3."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting (a value on a Series via|an item of incompatible dtype)")
        return fit(*args, **keywords)


@pytest.fixture(scope="module")
def gradient():
    model = ExponentiatedGradient(LogisticRegression(), DemographicParity(difference_bound=0.02), max_iter=12)
    return quietly(model.fit, X, Y, sensitive_features=SEX)


@pytest.fixture(scope="module")
def logistic():
    return LogisticRegression().fit(X, Y)


class TestExponentiatedGradient:
    def test_every_inner_predictor_and_the_mixture(self, gradient):
        found = adapters.predictions(gradient, X_TEST)
        assert list(found) == ["mixture", *(f"predictor {j:02d}" for j in range(len(gradient.predictors_)))]
        np.testing.assert_allclose(found["mixture"], gradient._pmf_predict(X_TEST)[:, 1], atol=1e-12)
        for j, predictor in enumerate(gradient.predictors_):
            assert np.array_equal(found[f"predictor {j:02d}"], predictor.predict(X_TEST))
        scores = adapters.predictions(gradient, X_TEST, scores=True)
        assert np.array_equal(scores["predictor 00"], gradient.predictors_[0].predict_proba(X_TEST)[:, 1])

    def test_the_mixture_is_valued_by_its_expectation(self, gradient):
        points = adapters.points(gradient, X_TEST, Y_TEST, sensitive_features=SEX_TEST)
        draws = np.stack([gradient.predict(X_TEST, random_state=seed) for seed in range(300)])
        accuracy = (draws == Y_TEST).mean(axis=1)
        assert points.accuracy[0] == pytest.approx(accuracy.mean(), abs=4 * accuracy.std() / np.sqrt(300) + 1e-9)
        gap = draws[:, SEX_TEST == "f"].mean(axis=1) - draws[:, SEX_TEST == "m"].mean(axis=1)
        assert points.bias[0, 0] == pytest.approx(gap.mean(), abs=4 * gap.std() / np.sqrt(300) + 1e-9)
        # What a random mixture promises is the average of what its parts do.
        chance = np.asarray(gradient.weights_.sort_index())
        assert points.accuracy[0] == pytest.approx(chance @ points.accuracy[1:-1], abs=1e-12)
        np.testing.assert_allclose(points.bias[0], chance @ points.bias[1:-1], atol=1e-12)
        assert points.fairness[0] > points.fairness[1]

    def test_inside_a_pipeline(self):
        model = ExponentiatedGradient(LogisticRegression(), EqualizedOdds(), max_iter=6)
        pipeline = make_pipeline(StandardScaler(), model)
        quietly(pipeline.fit, X, Y, exponentiatedgradient__sensitive_features=SEX)
        found = adapters.predictions(pipeline, X_TEST)
        expected = pipeline[-1]._pmf_predict(pipeline[0].transform(X_TEST))[:, 1]
        np.testing.assert_allclose(found["mixture"], expected, atol=1e-12)

    def test_a_function_cannot_value_a_lottery(self, gradient):
        with pytest.raises(InvalidInputError, match="names of measures for the randomised model 'mixture'"):
            adapters.points(
                gradient, X_TEST, Y_TEST, sensitive_features=SEX_TEST, fairness=demographic_parity_difference
            )

    def test_not_fitted_and_for_regression(self):
        with pytest.raises(InvalidInputError, match="this ExponentiatedGradient is not: call fit first"):
            adapters.predictions(ExponentiatedGradient(LogisticRegression(), DemographicParity()), X)
        loss = BoundedGroupLoss(SquareLoss(-5, 5), upper_bound=10.0)
        model = quietly(
            ExponentiatedGradient(LinearRegression(), loss, max_iter=3).fit, X, Y.astype(float), sensitive_features=SEX
        )
        with pytest.raises(InvalidInputError, match="fitted under BoundedGroupLoss, which is for regression"):
            adapters.predictions(model, X)


class TestGridSearch:
    def test_every_predictor_of_the_grid(self):
        model = GridSearch(LogisticRegression(), DemographicParity(), grid_size=7)
        quietly(model.fit, X, Y, sensitive_features=SEX)
        points = adapters.points(model, X_TEST, Y_TEST, sensitive_features=SEX_TEST, include_constant=False)
        assert len(points) == 7
        for j, predictor in enumerate(model.predictors_):
            decided = predictor.predict(X_TEST)
            assert points.accuracy[j] == pytest.approx(np.mean(decided == Y_TEST), abs=1e-12)
            bias = demographic_parity_difference(Y_TEST, decided, sensitive_features=SEX_TEST)
            assert points.fairness[j] == pytest.approx(1 - bias, abs=1e-12)
        # They decide, so a function can evaluate them too.
        called = adapters.points(
            model,
            X_TEST,
            Y_TEST,
            sensitive_features=SEX_TEST,
            fairness=demographic_parity_difference,
            include_constant=False,
        )
        np.testing.assert_allclose(called.fairness, points.fairness, atol=1e-12)

    def test_not_fitted(self):
        with pytest.raises(InvalidInputError, match="this GridSearch is not: call fit first"):
            adapters.predictions(GridSearch(LogisticRegression(), DemographicParity()), X)


class TestThresholdOptimizer:
    @pytest.mark.parametrize("constraints", ["demographic_parity", "equalized_odds"])
    def test_expected_decisions_against_draws(self, logistic, constraints):
        model = ThresholdOptimizer(estimator=logistic, prefit=True, constraints=constraints)
        model.fit(X, Y, sensitive_features=RACE)
        chance = adapters.predictions(model, X_TEST, sensitive_features=RACE_TEST)["ThresholdOptimizer"]
        draws = np.mean(
            [model.predict(X_TEST, sensitive_features=RACE_TEST, random_state=seed) for seed in range(200)], axis=0
        )
        assert np.any((chance > 0) & (chance < 1))
        assert np.all(np.abs(draws - chance) <= 4 * np.sqrt(chance * (1 - chance) / 200) + 0.03)
        assert np.array_equal(draws[np.isin(chance, (0, 1))], chance[np.isin(chance, (0, 1))])
        points = adapters.points(model, X_TEST, Y_TEST, sensitive_features=RACE_TEST)
        expected = np.mean(np.where(Y_TEST == 1, chance, 1 - chance))
        assert points.accuracy[0] == pytest.approx(expected, abs=1e-12)

    def test_on_its_own_rows_it_keeps_its_constraint(self, logistic):
        model = ThresholdOptimizer(estimator=logistic, prefit=True).fit(X, Y, sensitive_features=SEX)
        points = adapters.points({"plain": logistic, "fair": model}, X, Y, sensitive_features=SEX)
        assert points.names == ("plain", "fair", "constant")
        assert points.fairness[0] < 0.7
        assert points.fairness[1] > 0.999

    @pytest.mark.parametrize("wrap", [dict, pd.DataFrame, pl.DataFrame])
    def test_several_attributes_in_any_form(self, logistic, wrap):
        both = pd.DataFrame({"sex": SEX, "race": RACE})
        model = ThresholdOptimizer(estimator=logistic, prefit=True).fit(X, Y, sensitive_features=both)
        given = wrap({"sex": SEX_TEST, "race": RACE_TEST})
        chance = adapters.predictions(model, X_TEST, sensitive_features=given)["ThresholdOptimizer"]
        theirs = model._pmf_predict(X_TEST, sensitive_features=pd.DataFrame({"sex": SEX_TEST, "race": RACE_TEST}))[:, 1]
        assert np.array_equal(chance, theirs)

    def test_groups_of_other_types(self, logistic):
        numbers, flags = (SEX == "m").astype(int), SEX == "m"
        for groups, new in ((numbers, (SEX_TEST == "m").astype(int)), (flags, SEX_TEST == "m")):
            model = ThresholdOptimizer(estimator=logistic, prefit=True).fit(X, Y, sensitive_features=groups)
            chance = adapters.predictions(model, X_TEST, sensitive_features=new)["ThresholdOptimizer"]
            assert np.array_equal(chance, model._pmf_predict(X_TEST, sensitive_features=new)[:, 1])
            assert chance.max() > 0

    def test_a_group_without_a_threshold_is_refused(self, logistic):
        model = ThresholdOptimizer(estimator=logistic, prefit=True).fit(X, Y, sensitive_features=SEX)
        new = np.where(np.arange(N) == 7, "x", SEX_TEST)
        with pytest.raises(GroupError, match="groups that the ThresholdOptimizer was fitted on, 'f', 'm'; got 'x'"):
            adapters.predictions(model, X_TEST, sensitive_features=new)
        with pytest.raises(InvalidInputError, match="sensitive_features must be given: a ThresholdOptimizer"):
            adapters.predictions(model, X_TEST)
        with pytest.raises(InvalidInputError, match="this ThresholdOptimizer is not: call fit first"):
            adapters.predictions(ThresholdOptimizer(estimator=logistic), X, sensitive_features=SEX)

    def test_thresholds_of_one_attribute_valued_on_another(self, logistic):
        model = ThresholdOptimizer(estimator=logistic, prefit=True).fit(X, Y, sensitive_features=RACE)
        found = adapters.predictions(model, X_TEST, sensitive_features=RACE_TEST)
        points = tradeoff_points(Y_TEST, found, sensitive_features=SEX_TEST, threshold=None)
        chance = found["ThresholdOptimizer"]
        gap = chance[SEX_TEST == "f"].mean() - chance[SEX_TEST == "m"].mean()
        assert points.bias[0, 0] == pytest.approx(gap, abs=1e-12)


def fair_predictor(groups=SEX, **options):
    data = {"data": X, "target": Y, "groups": groups}
    model = FairPredictor(LogisticRegression().fit(X, Y), data, **options)
    model.fit(group_metrics.accuracy, group_metrics.demographic_parity, 0.05)
    return model


class TestOxonFair:
    @pytest.mark.parametrize("use_fast", [True, False])
    @pytest.mark.parametrize(("groups", "new"), [(SEX, SEX_TEST), (RACE, RACE_TEST)])
    def test_the_frontier_has_the_figures_that_oxonfair_gives_it(self, use_fast, groups, new):
        model = fair_predictor(groups, use_fast=use_fast)
        before = model.offset.copy()
        points = adapters.points(model, X_TEST, Y_TEST, sensitive_features=new, include_constant=False)
        assert np.array_equal(model.offset, before)
        data = {"data": X_TEST, "target": Y_TEST, "groups": new}
        decided = []
        for j in range(model.frontier[1].shape[-1]):
            model.set_threshold(model.frontier[1][..., j])
            decided.append(np.asarray(model.predict(data)))
        assert len(points) == len(decided) >= 5
        np.testing.assert_allclose(points.accuracy, (np.stack(decided) == Y_TEST).mean(axis=1), atol=1e-12)
        rates = np.stack([[d[new == g].mean() for g in np.unique(new)] for d in decided])
        np.testing.assert_allclose(points.fairness, 1 - np.ptp(rates, axis=1), atol=1e-12)

    def test_the_frontier_on_its_own_rows_is_the_one_it_kept(self):
        model = fair_predictor()
        points = adapters.points(model, X, Y, sensitive_features=SEX, include_constant=False)
        accuracy, gap = np.asarray(model.frontier[0])
        np.testing.assert_allclose(points.accuracy, accuracy, atol=1e-9)
        np.testing.assert_allclose(1 - points.fairness, gap, atol=1e-9)

    def test_predictors_that_infer_the_group_need_none(self):
        guess = LogisticRegression().fit(X, SEX)
        model = FairPredictor(
            LogisticRegression().fit(X, Y),
            {"data": X, "target": Y, "groups": SEX},
            inferred_groups=guess.predict_proba,
            threshold=0,
        )
        model.fit(group_metrics.accuracy, group_metrics.demographic_parity, 0.05)
        found = adapters.predictions(model, X_TEST)
        at = next(j for j in range(len(found)) if np.array_equal(model.frontier[1][:, j], model.offset))
        decided = model.predict({"data": X_TEST, "target": Y_TEST})
        assert np.array_equal(found[f"frontier {at:02d}"], decided)

    def test_groups_that_are_a_column_of_the_data(self):
        frame, new = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(X_TEST, columns=list("abc"))
        frame["sex"], new["sex"] = SEX, SEX_TEST
        inner = LogisticRegression().fit(X, Y)

        def probability(data):
            return inner.predict_proba(data[["a", "b", "c"]].to_numpy())

        model = FairPredictor(probability, {"data": frame, "target": Y}, groups="sex")
        model.fit(group_metrics.accuracy, group_metrics.demographic_parity, 0.05)
        by_column = adapters.predictions(model, new)
        given = adapters.predictions(model, new, sensitive_features=SEX_TEST)
        assert all(np.array_equal(by_column[name], given[name]) for name in by_column)
        assert np.array_equal(next(iter(by_column.values())).shape, (N,))

    def test_without_groups_there_is_one_threshold(self):
        model = FairPredictor(LogisticRegression().fit(X, Y), {"data": X, "target": Y}, groups=False)
        model.fit(group_metrics.accuracy, group_metrics.recall, 0.9)
        found = adapters.predictions(model, X_TEST)
        order = np.argsort(LogisticRegression().fit(X, Y).predict_proba(X_TEST)[:, 1])
        for decided in found.values():
            assert np.all(np.diff(decided[order]) >= 0)

    def test_refusals(self):
        model = fair_predictor()
        with pytest.raises(InvalidInputError, match="sensitive_features must be given: a FairPredictor"):
            adapters.predictions(model, X_TEST)
        with pytest.raises(GroupError, match="groups that the FairPredictor was fitted on, 'f', 'm'; got 'x'"):
            adapters.predictions(model, X_TEST, sensitive_features=np.full(N, "x"))
        both = {"sex": SEX_TEST, "race": RACE_TEST}
        with pytest.raises(InvalidInputError, match="the one attribute that the FairPredictor was fitted with; got 2"):
            adapters.predictions(model, X_TEST, sensitive_features=both)
        bare = FairPredictor(LogisticRegression().fit(X, Y), {"data": X, "target": Y, "groups": SEX})
        with pytest.raises(InvalidInputError, match=r"this FairPredictor is not: call fit\(objective"):
            adapters.predictions(bare, X_TEST, sensitive_features=SEX_TEST)
        with pytest.raises(InvalidInputError, match="model must have add_noise=False"):
            adapters.predictions(fair_predictor(add_noise=0.01), X_TEST, sensitive_features=SEX_TEST)


def dataset(y, sex, race, weight, *, favorable=1.0, kind=BinaryLabelDataset):
    frame = pd.DataFrame({"sex": sex == "m", "race": pd.Categorical(race).codes, "y": y, "w": weight}, dtype=float)
    options = {"favorable_label": favorable, "unfavorable_label": 1.0 - favorable} if kind is BinaryLabelDataset else {}
    return kind(
        df=frame,
        label_names=["y"],
        protected_attribute_names=["sex", "race"],
        instance_weights_name="w",
        **options,
    )


@pytest.fixture(scope="module")
def pair(logistic):
    weight = np.random.default_rng(2).uniform(0.5, 2.0, N)
    true = dataset(Y_TEST, SEX_TEST, RACE_TEST, weight)
    predicted = true.copy()
    predicted.labels = logistic.predict(X_TEST).astype(float)[:, None]
    predicted.scores = logistic.predict_proba(X_TEST)[:, 1:]
    return true, predicted


class TestAIF360:
    def test_points_are_those_of_the_classification_metric(self, pair):
        true, predicted = pair
        data = adapters.read_aif360(true, {"lr": predicted})
        metric = ClassificationMetric(true, predicted, unprivileged_groups=[{"sex": 0}], privileged_groups=[{"sex": 1}])
        for fairness, theirs in {
            "demographic_parity": metric.statistical_parity_difference(),
            "equal_opportunity": metric.equal_opportunity_difference(),
            "predictive_equality": metric.false_positive_rate_difference(),
        }.items():
            points = data.points(
                sensitive_features={"sex": data.sensitive_features["sex"]}, fairness=fairness, include_constant=False
            )
            assert points.names == ("lr",)
            assert points.accuracy[0] == pytest.approx(metric.accuracy(), abs=1e-12)
            assert points.bias[0, 0] == pytest.approx(theirs, abs=1e-12)

    def test_all_attributes_and_the_privileged_values(self, pair):
        true, predicted = pair
        both = adapters.read_aif360(true, predicted).points()
        assert both.names == ("model", "constant")
        assert set(both.attribute_fairness) == {"sex", "race"}
        data = adapters.read_aif360(true, predicted, privileged=True)
        metric = ClassificationMetric(
            true,
            predicted,
            unprivileged_groups=[{"race": 0}, {"race": 1}],
            privileged_groups=[{"race": 2}],
        )
        assert set(data.sensitive_features["race"]) == {"privileged", "unprivileged"}
        points = data.points(sensitive_features=data.sensitive_features["race"])
        assert -points.bias[0, 0] == pytest.approx(metric.statistical_parity_difference(), abs=1e-12)

    def test_scores_can_be_thresholded_and_stacked(self, pair, logistic):
        true, predicted = pair
        data = adapters.read_aif360(true, predicted, scores=True)
        assert np.array_equal(data.y_preds["model"], logistic.predict_proba(X_TEST)[:, 1])
        by_label = adapters.read_aif360(true, predicted).points()
        np.testing.assert_allclose(data.points().accuracy, by_label.accuracy, atol=1e-12)
        assert data.points(threshold=0.7).accuracy[0] != by_label.accuracy[0]

    def test_the_favourable_label_may_be_the_smaller(self, pair):
        true, predicted = pair
        flipped = dataset(1 - Y_TEST, SEX_TEST, RACE_TEST, true.instance_weights, favorable=0.0)
        guess = flipped.copy()
        guess.labels = 1 - predicted.labels
        points, expected = (adapters.read_aif360(*two).points() for two in ((flipped, guess), (true, predicted)))
        assert np.array_equal(points.accuracy, expected.accuracy)
        assert np.array_equal(points.bias, expected.bias)

    def test_refusals(self, pair):
        true, predicted = pair
        with pytest.raises(InvalidInputError, match=r"true must be an AIF360 BinaryLabelDataset.*got DataFrame"):
            adapters.read_aif360(pd.DataFrame(), predicted)
        several = dataset(Y_TEST + (RACE_TEST == "a"), SEX_TEST, RACE_TEST, 1.0, kind=StructuredDataset)
        with pytest.raises(InvalidInputError, match="two labels; got StructuredDataset"):
            adapters.read_aif360(true, {"m": several})
        with pytest.raises(InvalidInputError, match="at least one data set; got an empty dict"):
            adapters.read_aif360(true, {})
        with pytest.raises(InvalidInputError, match=r"predicted\['model'\] must hold the instances of true"):
            adapters.read_aif360(true, predicted.subset(range(10, 20)))
        opposite = dataset(Y_TEST, SEX_TEST, RACE_TEST, 1.0, favorable=0.0)
        with pytest.raises(InvalidInputError, match=r"must have the favourable label of true, 1\.0; got 0\.0"):
            adapters.read_aif360(true, opposite)
        moved = predicted.copy()
        moved.protected_attributes = moved.protected_attributes[::-1]
        with pytest.raises(InvalidInputError, match="must have the protected attributes of true"):
            adapters.read_aif360(true, moved)
        with pytest.raises(InvalidInputError, match="AIF360 datasets are read by read_aif360"):
            adapters.points(predicted, X, Y, sensitive_features=SEX)


class Mine(ClassifierMixin, BaseEstimator):
    """A classifier of a library that nobody has heard of."""

    def fit(self, X, y):
        self.classes_, self.mean_ = np.unique(y), X.mean(axis=0)
        return self

    def predict(self, X):
        return self.classes_[(self.mean_ < X).all(axis=1).astype(int)]


def test_everything_in_one_frontier(gradient, logistic):
    fair = ThresholdOptimizer(estimator=logistic, prefit=True).fit(X, Y, sensitive_features=SEX)
    models = {"gradient": gradient, "thresholds": fair, "oxonfair": fair_predictor(), "mine": Mine().fit(X, Y)}
    points = adapters.points(models, X_TEST, Y_TEST, sensitive_features=SEX_TEST)
    families = {name.partition("/")[0] for name in points.names}
    assert families == {*models, "constant"}
    for name, model in models.items():
        alone = adapters.points(model, X_TEST, Y_TEST, sensitive_features=SEX_TEST, include_constant=False)
        here = points.select([i for i, n in enumerate(points.names) if n.partition("/")[0] == name])
        np.testing.assert_allclose(here.accuracy, alone.accuracy, atol=1e-12)
        np.testing.assert_allclose(here.bias, alone.bias, atol=1e-12)
