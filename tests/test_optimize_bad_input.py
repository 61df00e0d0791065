"""Everything that a stack refuses, and what it says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from fairfrontier import FairStacksClassifier, FairStacksRegressor, achievable_frontier
from fairfrontier.exceptions import InfeasibleError, InvalidInputError

from .bad_stacks import MODELS, SEX, H, N, Y, fit, rare, with_nan

# What scikit-learn says, in its own words, because its checks ask for them.
ROWS = [
    ("continuous y", {"y": np.linspace(0, 1, N)}, ValueError, "Unknown label type: continuous"),
    ("flat X", {"X": H[:, 0]}, ValueError, "Reshape your data"),
    ("text", {"X": np.full((N, 2), "a")}, ValueError, "could not convert string to float|must be numbers"),
]


@pytest.mark.parametrize(("changes", "error", "message"), [case[1:] for case in ROWS], ids=[case[0] for case in ROWS])
def test_rows(changes, error, message):
    with pytest.raises(error, match=message):
        fit(**changes)


def test_base_models_that_do_not_fit():
    other = [("a", LogisticRegression().fit(H, np.where(Y == 1, "yes", "no")))]
    with pytest.raises(InvalidInputError, match=r"classes of y, \[0, 1\]; 'a' was fitted to \['no', 'yes'\]"):
        fit({"estimators": other, "cv": "prefit"})
    three = [("a", LogisticRegression().fit(H, np.arange(N) % 3))]
    with pytest.raises(InvalidInputError, match=r"'a' was fitted to \[0, 1, 2\]"):
        fit({"estimators": three, "cv": "prefit"})
    with pytest.raises(NotFittedError, match="LogisticRegression instance is not fitted"):
        fit({"estimators": MODELS, "cv": "prefit"})
    for name in ("a__b", "alpha"):
        with pytest.raises(
            InvalidInputError, match=rf"names without '__' and other than the parameters .* got '{name}'"
        ):
            fit({"estimators": [(name, KNeighborsClassifier())]})
    lonely = np.zeros(N, dtype=int)
    lonely[0] = 1
    with pytest.raises(InvalidInputError, match=r"each class in at least two folds; the second .* has 1 row\(s\)"):
        fit({"estimators": MODELS}, y=lonely)


def test_a_rare_group_is_fine_where_nothing_is_tuned():
    assert fit({"alpha": 1.0}, sensitive_features=rare(1)).path_.kkt.max() < 1e-8
    assert fit({"cv": 3}, sensitive_features=rare(3)).alpha_ > 0


class TestPrediction:
    def test_before_fit(self):
        for call in (lambda m: m.predict(H), lambda m: m.at(tau=0.1), lambda m: m.select(min_fairness=0.9)):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                call(FairStacksClassifier())

    def test_other_columns(self):
        model = fit({"alpha": 1.0})
        with pytest.raises(ValueError, match="X has 2 features, but FairStacksClassifier is expecting 3 features"):
            model.predict(H[:, :2])
        with pytest.raises(InvalidInputError, match="no NaN or inf; got nan of model 'model_1' at row 3"):
            model.predict(with_nan())

    def test_operating_points(self):
        model = fit({"alpha": 1.0})
        with pytest.raises(InvalidInputError, match="exactly one of tau and target; got tau=None, target=None"):
            model.at()
        with pytest.raises(InvalidInputError, match="exactly one of tau and target"):
            model.at(tau=0.1, target=0.1)
        with pytest.raises(InvalidInputError, match=r"tau must be at least 0; got -1; the smallest feasible tau is 0"):
            model.at(tau=-1)
        with pytest.raises(
            InvalidInputError, match=r"target must be 1 finite number\(s\), one per contrast; got \[0.1, 0.2\]"
        ):
            model.at(target=[0.1, 0.2])
        with pytest.raises(InvalidInputError, match=r"min_fairness must be in \[0, 1\]; got 1.2"):
            model.select(min_fairness=1.2)

    def test_a_target_that_no_stack_has(self):
        unbiased = H.copy()
        for s in "fm":
            unbiased[s == SEX] -= unbiased[s == SEX].mean(axis=0)
        model = fit({"alpha": 1.0}, X=unbiased)
        assert np.abs(model.at(tau=0.0).weights_).max() > 0.01
        with pytest.raises(InfeasibleError, match="must be a score bias that some stack of these models has"):
            model.at(target=0.2)

    def test_attribute_aware(self):
        groups = {"sex": SEX, "race": np.repeat(["a", "b"], N // 2)}
        one = fit({"alpha": 1.0, "attribute_aware": True})
        two = fit({"alpha": 1.0, "attribute_aware": True}, sensitive_features=groups)
        with pytest.raises(InvalidInputError, match="sensitive_features must be given at prediction"):
            one.predict(H)
        with pytest.raises(
            InvalidInputError, match=r"must be one of \['f', 'm'\], as in fit; got x: an attribute-aware"
        ):
            one.predict(H[:1], sensitive_features=["x"])
        with pytest.raises(InvalidInputError, match=r"sensitive_features.* 40; got 1"):
            one.predict(H, sensitive_features=["f"])
        with pytest.raises(InvalidInputError, match=r"must be \['sex', 'race'\], as in fit; got \['sex'\]"):
            two.predict(H, sensitive_features={"sex": SEX})
        with pytest.raises(InvalidInputError, match=r"must be \['sex', 'race'\], as in fit; got \['gender', 'race'\]"):
            two.predict(H, sensitive_features=pd.DataFrame({"gender": SEX, "race": groups["race"]}))

    def test_other_classes_on_other_rows(self):
        model = fit({"alpha": 1.0})
        with pytest.raises(InvalidInputError, match=r"y must have the classes of the fit, \[0, 1\]; got"):
            model.points(H, Y + 1, sensitive_features=SEX)
        with pytest.raises(InvalidInputError, match=r"y must have the classes of the fit, \[0, 1\]; got"):
            model.exact_frontier(H, np.where(Y == 1, "yes", "no"), sensitive_features=SEX)


class TestRegression:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"loss": "log"}, "loss must be one of 'huber', 'quantile', 'squared'; got 'log'"),
            ({"loss": ("squared", 2.0)}, "loss='squared' has no parameter"),
            ({"loss": ("quantile", 1.0)}, "the parameter of loss='quantile' must be"),
            ({"loss": ("huber", -1.0)}, "the parameter of loss='huber' must be"),
            ({"fairness": "equal_opportunity"}, "fairness='equal_opportunity' conditions on a two-class label"),
        ],
    )
    def test_parameter(self, options, message):
        with pytest.raises(InvalidInputError, match=message):
            FairStacksRegressor(**options).fit(H, H[:, 0], sensitive_features=SEX)

    def test_target(self):
        with pytest.raises(InvalidInputError, match="y_true must be numbers; got 'a'"):
            FairStacksRegressor().fit(H, ["a", "b"] * (N // 2), sensitive_features=SEX)
        with pytest.raises(InvalidInputError, match="y_true must be finite; got nan at row 0"):
            FairStacksRegressor().fit(H, [np.nan, *H[1:, 0]], sensitive_features=SEX)
        with pytest.raises(InvalidInputError, match="accuracy='r2' is undefined: y_true has one value only"):
            FairStacksRegressor().fit(H, np.full(N, 0.3), sensitive_features=SEX)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT])
def test_a_missing_label_among_text(missing):
    words = np.where(Y == 1, "yes", "no").astype(object)
    words[3] = missing
    shown = {"nan": "NaN"}.get(str(missing), repr(missing))
    with pytest.raises(InvalidInputError, match=f"y must have no missing value; got {shown} at row 3: drop these rows"):
        FairStacksClassifier().fit(H, words, sensitive_features=SEX)
    with pytest.raises(InvalidInputError, match="y must have no missing value"):
        achievable_frontier(H, words, sensitive_features=SEX)


def test_the_error_of_a_base_model_says_whose_it_is():
    models = [("good", LogisticRegression()), ("bad", KNeighborsClassifier(n_neighbors=0))]
    with pytest.raises(ValueError, match="n_neighbors") as raised:
        FairStacksClassifier(models).fit(H, Y, sensitive_features=SEX)
    assert any("base model 'bad'" in note for note in raised.value.__notes__)


def test_features_in_place_of_predictions_get_a_word():
    rng = np.random.default_rng(0)
    X, sex = rng.normal(40.0, 10.0, (60, 2)), np.arange(60) % 2
    y = np.arange(60) // 2 % 2
    with pytest.warns(UserWarning, match="2 of 2 lie mostly outside.*'model_0' goes from.*give estimators to fit"):
        FairStacksClassifier(alpha=1.0).fit(X, y, sensitive_features=sex)
    with pytest.warns(UserWarning, match="'age' goes from"):
        FairStacksClassifier(alpha=1.0).fit({"p": rng.random(60), "age": X[:, 0]}, y, sensitive_features=sex)
    # Scores with some noise, and margins that have names, are predictions.
    FairStacksClassifier(alpha=1.0).fit(rng.normal(0.5, 0.5, (60, 2)), y, sensitive_features=sex)
    FairStacksClassifier(["svm", "lr"], cv="precomputed", alpha=1.0).fit(X, y, sensitive_features=sex)
