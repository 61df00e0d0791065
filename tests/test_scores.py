"""From a fitted model to its score of the positive class: one rule for displays, mixtures, adapters and stacks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import fairfrontier as ff
from fairfrontier._scores import positive_decisions, positive_labels, positive_scores
from fairfrontier.adapters import points, predictions
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import fit_models

N = 600
SECRET = "a secret of sixteen"
LABELS = {
    "0/1": (0, 1),
    "1/2": (1, 2),
    "-1/1": (-1, 1),
    "text": ("no", "yes"),
    "bool": (False, True),
    "float": (0.0, 1.0),
}
KINDS = {"margin": LinearSVC, "probability": LogisticRegression}


class Reversed(ClassifierMixin, BaseEstimator):
    """A classifier whose classes stand in descending order, as some libraries have them."""

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, ::-1]

    def predict(self, X):
        return self.model_.predict(X)


class ReversedMargin(Reversed):
    """The same with a margin in place of probabilities: above 0 is the second of the descending classes."""

    predict_proba = property()

    def decision_function(self, X):
        return -self.model_.decision_function(X)


class Broken(ClassifierMixin, BaseEstimator):
    """A classifier that has no number for one row."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        scores = np.full((len(X), 2), 0.5)
        scores[3] = np.nan
        return scores

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    sex = rng.choice(["f", "m"], N)
    X = np.column_stack([rng.normal(size=(N, 2)), 0.5 * (sex == "m")])
    return X, X[:, 0] + X[:, 2] + rng.normal(size=N) > -0.6, sex


def true_point(decided, label, sex):
    """Return accuracy and fairness, word by word."""
    gap = decided[sex == "f"].mean() - decided[sex == "m"].mean()
    return np.mean(decided == label), 1.0 - abs(gap)


@pytest.fixture(params=LABELS, scope="module")
def classes(request):
    return LABELS[request.param]


@pytest.fixture(params=KINDS, scope="module")
def fitted(request, rows, classes):
    X, label, _ = rows
    y = np.where(label, classes[1], classes[0])
    return KINDS[request.param]().fit(X, y), y


class TestEveryUseDecidesAsPredict:
    def test_scores(self, fitted, rows, classes):
        model, _ = fitted
        decided = model.predict(rows[0]) == classes[1]
        np.testing.assert_array_equal(positive_scores(model, rows[0], classes=classes, name="m") > 0.5, decided)
        np.testing.assert_array_equal(positive_decisions(model, rows[0], classes=classes, name="m"), decided)

    @pytest.mark.parametrize("response_method", ["auto", "predict"])
    def test_display(self, fitted, rows, classes, response_method):
        (model, y), (X, label, sex) = fitted, rows
        display = ff.TAFDisplay.from_estimators(
            {"one": model}, X, y, sensitive_features=sex, response_method=response_method
        )
        shown = display.points["models"]
        expected = true_point(model.predict(X) == classes[1], label, sex)
        np.testing.assert_allclose([shown.accuracy[0], shown.fairness[0]], expected, atol=1e-12)

    def test_mixture(self, fitted, rows, classes):
        (model, y), (X, label, sex) = fitted, rows
        mixture = ff.RandomizedMixture({"one": model}, [1.0], secret=SECRET)
        np.testing.assert_array_equal(mixture.predict(X, ids=range(N)), model.predict(X))
        report = mixture.report(X, y, ids=range(N), sensitive_features=sex)
        expected = true_point(model.predict(X) == classes[1], label, sex)
        np.testing.assert_allclose([report.realised_accuracy, report.realised_fairness], expected, atol=1e-12)

    def test_adapters(self, fitted, rows, classes):
        (model, y), (X, label, sex) = fitted, rows
        found = points(model, X, y, sensitive_features=sex)
        expected = true_point(model.predict(X) == classes[1], label, sex)
        np.testing.assert_allclose([found.accuracy[0], found.fairness[0]], expected, atol=1e-12)
        (scores,) = predictions(model, X, scores=True).values()
        np.testing.assert_array_equal(scores > 0.5, model.predict(X) == classes[1])

    def test_stack(self, fitted, rows):
        (model, y), (X, _, sex) = fitted, rows
        stack = ff.FairStacksClassifier([("one", model)], cv="prefit", alpha=1e-6, tau=1.0)
        stack.fit(X, y, sensitive_features=sex)
        # One column without a constraint: the stack is a rising line in it, whatever the labels are called.
        assert stack.weights_[0] > 0
        assert set(stack.predict(X)) == set(y)


class TestOrderOfClasses:
    @pytest.mark.parametrize("kind", [Reversed, ReversedMargin])
    def test_classes_are_found_by_name_and_not_by_position(self, rows, kind):
        X, label, sex = rows
        y = np.where(label, "yes", "no")
        model, plain = kind().fit(X, y), LogisticRegression().fit(X, y)
        decided = plain.predict(X) == "yes"
        np.testing.assert_array_equal(positive_scores(model, X, classes=("no", "yes"), name="m") > 0.5, decided)
        column = positive_scores(model, X, classes=("no", "yes"), name="m", for_stack=True)
        expected = plain.predict_proba(X)[:, 1] if kind is Reversed else plain.decision_function(X)
        np.testing.assert_allclose(column, expected)
        mixture = ff.RandomizedMixture([("m", model)], [1.0], secret=SECRET)
        np.testing.assert_array_equal(mixture.predict(X, ids=range(N)), plain.predict(X))
        np.testing.assert_array_equal(predictions(model, X)[kind.__name__], decided)
        assert points(model, X, y, sensitive_features=sex).accuracy[0] == np.mean(decided == label)

    def test_a_stack_takes_margins_as_they_are(self, rows):
        X, label, _ = rows
        model = LinearSVC().fit(X, label)
        column = positive_scores(model, X, classes=(False, True), name="m", for_stack=True)
        np.testing.assert_array_equal(column, model.decision_function(X))


class TestModelsThatAreNoClassifiers:
    def test_numbers_are_scores_of_0_and_1_only(self, rows):
        X, label, sex = rows
        model = LinearRegression().fit(X, label)
        found = positive_scores(model, X, classes=(0, 1), name="line")
        np.testing.assert_array_equal(found, model.predict(X))
        display = ff.TAFDisplay.from_estimators([("line", model)], X, label, sensitive_features=sex)
        assert display.points["models"].accuracy[0] == np.mean((model.predict(X) > 0.5) == label)
        with pytest.raises(InvalidInputError, match=r"the model 'line' must predict the classes of y, \[1, 2\]; got"):
            positive_scores(model, X, classes=(1, 2), name="line")

    def test_regression_is_the_prediction(self, rows):
        X = rows[0]
        model = LinearRegression().fit(X, X[:, 0])
        np.testing.assert_array_equal(positive_scores(model, X, classes=None, name="m"), model.predict(X))


class TestErrors:
    def test_other_classes(self, rows):
        X, label, sex = rows
        model = LogisticRegression().fit(X, np.where(label, "yes", "no"))
        message = r"classes of y, \[False, True\]; 'm' was fitted to \['no', 'yes'\]"
        with pytest.raises(InvalidInputError, match=message):
            ff.TAFDisplay.from_estimators([("m", model)], X, label, sensitive_features=sex)
        numbers = LogisticRegression().fit(X, label.astype(int))
        with pytest.raises(InvalidInputError, match=r"classes of y, \['no', 'yes'\]; 'n' was fitted to \[0, 1\]"):
            ff.RandomizedMixture([("m", model), ("n", numbers)], [0.5, 0.5], secret=SECRET)
        mixture = ff.RandomizedMixture([("m", model)], [1.0], secret=SECRET)
        with pytest.raises(InvalidInputError, match=r"y must have the classes of the models, \['no', 'yes'\]; got"):
            mixture.report(X, label, ids=range(N), sensitive_features=sex)

    def test_three_classes(self, rows):
        X = rows[0]
        model = LogisticRegression().fit(X, np.arange(N) % 3)
        with pytest.raises(InvalidInputError, match=r"'m' was fitted to \[0, 1, 2\]"):
            positive_scores(model, X, classes=(0, 1), name="m")

    def test_a_nan_names_its_model(self, rows):
        X, label, sex = rows
        y = label.astype(int)
        message = "no NaN or inf; got nan of model 'broken' at row 3"
        with pytest.raises(InvalidInputError, match=message):
            ff.TAFDisplay.from_estimators({"broken": Broken()}, X, y, sensitive_features=sex)
        with pytest.raises(InvalidInputError, match=message):
            ff.RandomizedMixture([("broken", Broken())], [1.0], secret=SECRET).predict(X, ids=range(N))
        with pytest.raises(InvalidInputError, match=message):
            ff.FairStacksClassifier([("broken", Broken())], cv="prefit").fit(X, y, sensitive_features=sex)
        with pytest.raises(InvalidInputError, match="no NaN or inf; got nan of model 'models/broken' at row 3"):
            fit_models([("broken", Broken())], X, y).predict_matrix(X)
        with pytest.raises(InvalidInputError, match="no NaN or inf; got nan of model 'Broken' at row 3"):
            predictions(Broken(), X, scores=True)

    def test_probabilities_that_were_asked_for(self, rows):
        X, label, sex = rows
        with pytest.raises(InvalidInputError, match="'m' is a LinearSVC, which has none: use 'auto' or 'predict'"):
            ff.TAFDisplay.from_estimators(
                [("m", LinearSVC().fit(X, label))], X, label, sensitive_features=sex, response_method="predict_proba"
            )

    @pytest.mark.parametrize("wrong", [LogisticRegression(), None, [], [LogisticRegression()], {1: 2}, "models"])
    def test_what_is_no_list_of_models(self, rows, wrong):
        X, label, sex = rows
        with pytest.raises(InvalidInputError, match="estimators must be a non-empty list of"):
            ff.TAFDisplay.from_estimators(wrong, X, label, sensitive_features=sex)
        with pytest.raises(InvalidInputError, match="estimators must be a non-empty list of"):
            ff.RandomizedMixture(wrong, [1.0], secret=SECRET)


class TestLabels:
    def test_they_become_booleans(self):
        for y in (["a", "b", "b"], pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "b"], dtype="category")):
            np.testing.assert_array_equal(positive_labels(y, np.array(["a", "b"])), [False, True, True])
        np.testing.assert_array_equal(positive_labels([True, True], (0, 1)), [True, True])

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (["yes", "no"], r"y must have the classes of the fit, \[0, 1\]; got 'no'"),
            ([0, 1, 2], r"classes of the fit, \[0, 1\]; got 2"),
            ([0.0, np.nan], "y must be finite"),
            ([0, None], "y must have no missing value; got None"),
            (pd.array([0, pd.NA], dtype="Int64"), "y must have no missing value|y must be finite"),
            ([], "at least one row"),
            (None, "y must be 1-D; got None"),
        ],
    )
    def test_what_is_no_label(self, y, message):
        with pytest.raises(InvalidInputError, match=message):
            positive_labels(y, (0, 1))
