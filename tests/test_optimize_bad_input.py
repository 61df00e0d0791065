"""Everything that a stack refuses, and what it says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from fairfrontier import FairStacksClassifier, FairStacksRegressor
from fairfrontier.exceptions import GroupError, InfeasibleError, InvalidInputError

RNG = np.random.default_rng(0)
N = 40
SEX = np.array(["f", "m"] * (N // 2))
Y = np.array([0, 1, 1, 0] * (N // 4))
H = np.clip(0.5 * Y[:, None] + RNG.random((N, 3)) * 0.5, 0, 1)
MODELS = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2))]


def fit(options=(), X=H, y=Y, sensitive_features=SEX, sample_weight=None):
    return FairStacksClassifier(**dict(options)).fit(
        X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
    )


def with_nan():
    broken = H.copy()
    broken[3, 1] = np.nan
    return broken


def rare(n):
    groups = np.array(["f"] * N, dtype=object)
    groups[:n] = "x"
    return groups


PARAMETERS = [
    (
        {"loss": "squared_error"},
        "loss must be one of 'hinge', 'log', 'squared'; got 'squared_error'; did you mean 'squared'",
    ),
    ({"path": "sign"}, "path must be one of 'paper', 'signed'; got 'sign'; did you mean 'signed'"),
    ({"alpha": "auto"}, "alpha must be one of 'cv'; got 'auto'"),
    ({"alpha": -1.0}, r"alpha must be in \[0, 1e\+100\]; got -1.0"),
    ({"alpha": np.inf}, r"alpha must be in \[0, 1e\+100\]; got inf"),
    ({"alpha": np.nan}, r"alpha must be in .* got nan"),
    ({"alpha": None}, "alpha must be a number; got None"),
    ({"alphas": []}, r"alphas must be at least one non-negative finite number; got \[\]"),
    ({"alphas": [1.0, -2.0]}, r"alphas must be at least one non-negative finite number; got \[1.0, -2.0\]"),
    ({"alphas": [1.0, np.nan]}, "alphas must be at least one non-negative finite number"),
    ({"tau": -0.1}, r"tau must be in \[0, inf\]; got -0.1; the smallest feasible tau is 0, a score without bias"),
    ({"tau": "0.1"}, "tau must be a number; got '0.1'"),
    ({"threshold": 1.5}, r"threshold must be in \[0, 1\]; got 1.5"),
    ({"n_points": 0}, r"n_points must be in \[1, inf\]; got 0"),
    ({"n_points": 2.5}, "n_points must be a whole number; got 2.5"),
    ({"weight": 0.8}, "weight must be None, a Weight or a function of fairness; got 0.8"),
    ({"fairness": "parity"}, "fairness must be one of 'demographic_parity'.*; got 'parity'"),
    (
        {"fairness": lambda y, p, *, sensitive_features: 0.0},
        "fairness must be a measure's name or pairs of masks.*got a f",
    ),
    ({"sensitive_mode": "joint"}, "sensitive_mode must be one of 'intersectional', 'separate'; got 'joint'"),
    ({"family_scales": "auto"}, "family_scales must be one of 'cv'; got 'auto'"),
    ({"family_scales": {"trees": 2.0}}, "family_scales must be one of ''; got 'trees'"),
    (
        {"family_scales": [1.0, 2.0]},
        "family_scales must be 'cv', None, a dict of family to scale, or 3 positive numbers",
    ),
    ({"family_scales": [1.0, 0.0, 1.0]}, r"family_scales must be .* 3 positive numbers; got \[1.0, 0.0, 1.0\]"),
    ({"family_scales": [1.0, np.inf, 1.0]}, "family_scales must be .* 3 positive numbers"),
    ({"cv": 1}, "cv must be at least 2 folds, a splitter, 'prefit' or 'precomputed'; got 1"),
    ({"cv": "loo"}, "cv must be one of 'precomputed', 'prefit'; got 'loo'"),
    ({"cv": 41}, "cv must not be larger than the number of rows; got cv=41 for 40 rows"),
    (
        {"estimators": "precomputed "},
        "estimators must be a non-empty list of .name, estimator. pairs, or 'precomputed'",
    ),
    ({"estimators": []}, "estimators must be a non-empty list"),
    (
        {"estimators": [LogisticRegression()]},
        "estimators must be a non-empty list .* got the element LogisticRegression",
    ),
    ({"estimators": [("a", 3)]}, "estimators must have predict; 'a' is 3"),
    ({"estimators": MODELS + MODELS[:1]}, "estimators must have distinct names; got 'a' more than once"),
    (
        {"estimators": ["a", "b"], "cv": "precomputed"},
        "X must have one column for each of the 2 names in estimators; got 3",
    ),
]


@pytest.mark.parametrize(("options", "message"), PARAMETERS)
def test_parameter(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(options)


ROWS = [
    (
        "no attribute",
        {"sensitive_features": None},
        InvalidInputError,
        r"sensitive_features must be given, one value a row",
    ),
    ("short attribute", {"sensitive_features": SEX[:-1]}, InvalidInputError, r"sensitive_features.* 40; got 39"),
    ("one group", {"sensitive_features": ["f"] * N}, GroupError, "must have at least two groups; got only 'f'"),
    ("missing group", {"sensitive_features": [None, *SEX[1:]]}, GroupError, "must have no missing value"),
    ("short y", {"y": Y[:-1]}, InvalidInputError, "X must have as many rows as y_true, 39; got 40"),
    ("no y", {"y": None}, InvalidInputError, "requires y to be passed, but the target y is None"),
    ("one class", {"y": np.ones(N)}, InvalidInputError, "must have two classes; got 1"),
    ("three classes", {"y": np.arange(N) % 3}, InvalidInputError, "Only binary classification is supported"),
    ("continuous y", {"y": np.linspace(0, 1, N)}, ValueError, "Unknown label type: continuous"),
    ("y with NaN", {"y": np.where(Y == 1, np.nan, 0.0)}, InvalidInputError, "y must be finite"),
    (
        "one row",
        {"X": H[:1], "y": Y[:1], "sensitive_features": SEX[:1]},
        InvalidInputError,
        "at least 2 rows; got n_samples=1",
    ),
    ("NaN", {"X": with_nan()}, InvalidInputError, "no NaN or inf; got nan of model 'model_1' at row 3"),
    ("flat X", {"X": H[:, 0]}, ValueError, "Reshape your data"),
    ("text", {"X": np.full((N, 2), "a")}, ValueError, "could not convert string to float|must be numbers"),
    ("negative weight", {"sample_weight": -np.ones(N)}, InvalidInputError, "sample_weight must be non-negative"),
    ("no weight at all", {"sample_weight": np.zeros(N)}, InvalidInputError, "sample_weight must have a positive sum"),
    (
        "weightless class",
        {"sample_weight": Y.astype(float)},
        InvalidInputError,
        "each class some weight; class .*0.* has none",
    ),
    ("weightless group", {"sample_weight": (SEX == "f").astype(float)}, GroupError, "row set 'sensitive_feature=m'"),
    (
        "rare group",
        {"sensitive_features": rare(3)},
        GroupError,
        r"cv=5 folds .* 'sensitive_feature=x' .* has 3 row\(s\) in all",
    ),
    (
        "empty cell",
        {"sensitive_features": np.where(Y == 1, "f", SEX), "options": {"fairness": "equal_opportunity"}},
        GroupError,
        "leave no group empty|none in fold|must leave",
    ),
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
    with pytest.raises(
        InvalidInputError, match=r"sample_weight was given, but the base model 'knn' .* does not take it"
    ):
        fit({"estimators": [("knn", KNeighborsClassifier())]}, sample_weight=np.ones(N))
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
        with pytest.raises(
            InvalidInputError, match=r"tau must be in \[0, inf\]; got -1; the smallest feasible tau is 0"
        ):
            model.at(tau=-1)
        with pytest.raises(
            InvalidInputError, match=r"target must be 1 finite number\(s\), one a contrast; got \[0.1, 0.2\]"
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
            ({"loss": "log"}, "loss must be 'squared' for regression; got 'log'"),
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
