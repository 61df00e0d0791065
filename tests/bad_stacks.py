"""Bad input of stacks, mixtures, intervals and what else is fitted to rows or reads them."""

from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier import FairStacksClassifier
from fairfrontier.chunks import array_chunks, file_chunks, iterable_chunks
from fairfrontier.exceptions import DataFileError, GroupError, InfeasibleError, InvalidInputError

from .bad_inputs import CURVE, GOOD, NAN, Bad

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
    ({"alphas": []}, r"alphas must be at least one number, none negative or above .*; got \[\]"),
    ({"alphas": [1.0, -2.0]}, r"alphas must be at least one number, none negative or above .*; got \[1.0, -2.0\]"),
    ({"alphas": [1.0, np.nan]}, "alphas must be at least one number, none negative or above .*"),
    ({"tau": -0.1}, r"tau must be at least 0; got -0.1; the smallest feasible tau is 0, a score without bias"),
    ({"tau": "0.1"}, "tau must be a number; got '0.1'"),
    ({"threshold": 1.5}, r"threshold must be in \[0, 1\]; got 1.5"),
    ({"n_points": 0}, r"n_points must be in \[1, 10000\]; got 0"),
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
    (
        {"estimators": LogisticRegression()},
        r"estimators must be a non-empty list .* got LogisticRegression\(\): give it a name, .*LogisticRegression",
    ),
    ({"estimators": None}, "estimators must be a non-empty list .* got None"),
    ({"estimators": dict(MODELS)}, r"estimators must be .* got a dict: pass list\(estimators.items\(\)\)"),
    ({"estimators": None, "cv": "precomputed"}, "estimators must be 'precomputed' or the names .* got None"),
    ({"estimators": [("a", 3)]}, "estimators must have predict; 'a' is 3"),
    ({"estimators": MODELS + MODELS[:1]}, "estimators must have distinct names; got 'a' more than once"),
    (
        {"estimators": ["a", "b"], "cv": "precomputed"},
        "X must have one column for each of the 2 names in estimators; got 3",
    ),
]


ROWS = [
    (
        "no attribute",
        {"sensitive_features": None},
        InvalidInputError,
        r"sensitive_features must be given, one value per row",
    ),
    ("a column's name", {"sensitive_features": "sex"}, InvalidInputError, r"pass the column itself, data\['sex'\]"),
    ("short attribute", {"sensitive_features": SEX[:-1]}, InvalidInputError, r"sensitive_features.* 40; got 39"),
    ("one group", {"sensitive_features": ["f"] * N}, GroupError, "must have at least two groups; got only 'f'"),
    ("missing group", {"sensitive_features": [None, *SEX[1:]]}, GroupError, "must have no missing value"),
    ("short y", {"y": Y[:-1]}, InvalidInputError, "must have as many rows as y, 39; got 40"),
    ("no y", {"y": None}, InvalidInputError, "requires y to be passed, but the target y is None"),
    ("one class", {"y": np.ones(N)}, InvalidInputError, r"^y must have two classes; got 1 \(1.0\)"),
    ("three classes", {"y": np.arange(N) % 3}, InvalidInputError, "Only binary classification is supported"),
    ("y with NaN", {"y": np.where(Y == 1, np.nan, 0.0)}, InvalidInputError, "y must be finite"),
    (
        "one row",
        {"X": H[:1], "y": Y[:1], "sensitive_features": SEX[:1]},
        InvalidInputError,
        "at least 2 rows; got n_samples=1",
    ),
    ("NaN", {"X": with_nan()}, InvalidInputError, "no NaN or inf; got nan of model 'model_1' at row 3"),
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

STACK_CASES = [
    Bad(f"{', '.join(options)} ({i})", partial(fit, options), says) for i, (options, says) in enumerate(PARAMETERS)
] + [Bad(name, partial(fit, **changes), says, error) for name, changes, error, says in ROWS]


def on_rows(function, **options):
    """Return a call of a function of labels, predictions and groups with some bad option."""
    return lambda: function(Y, H, sensitive_features=SEX, **options)


RESAMPLING_CASES = [
    Bad(
        "interval with no confidence",
        on_rows(ff.fauc_interval, confidence=0.0),
        r"confidence must be in \(0, 1\); got 0.0",
    ),
    Bad(
        "interval with a confidence of text",
        on_rows(ff.fauc_interval, confidence="95%"),
        r"confidence must be a number; got '95%'",
    ),
    Bad(
        "interval with NaN resamples",
        on_rows(ff.fauc_interval, n_resamples=NAN),
        r"n_resamples must be a whole number; got nan: use 1000",
    ),
    Bad(
        "interval with an unknown curve",
        on_rows(ff.fauc_interval, interpolate="sign"),
        r"interpolate must be False, True or 'signed'; got 'sign'",
    ),
    Bad(
        "interval under no weight",
        on_rows(ff.fauc_interval, weight=lambda x: 0.0),
        r"weight must have a positive integral over \[0, 1\]; got 0",
    ),
    Bad(
        "interval of a function's accuracy",
        on_rows(ff.fauc_interval, accuracy=lambda y, p: 0.5),
        r"accuracy must be a measure's name for resampling.* got a function",
    ),
    Bad(
        "comparison with an unknown method",
        lambda: ff.compare_fauc(Y, H, H, sensitive_features=SEX, method="jackknife"),
        r"method must be one of 'bayesian', 'multinomial'; got 'jackknife'",
    ),
    Bad(
        "comparison with no model",
        lambda: ff.compare_fauc(Y, H, {}, sensitive_features=SEX),
        r"y_preds must hold at least one model; got none",
    ),
    Bad(
        "bands at NaN",
        on_rows(ff.taf_bands, grid=[0.5, NAN]),
        r"grid must hold levels of fairness in \[0, 1\]; got \[nan\]",
    ),
    Bad("bands without a level", on_rows(ff.taf_bands, grid=[]), r"grid must hold levels of fairness in \[0, 1\]"),
    Bad(
        "interval with part of a resample",
        on_rows(ff.fauc_interval, n_resamples=60.7),
        r"n_resamples must be a whole number; got 60.7: use 1000",
    ),
    Bad(
        "interval of no curve", on_rows(ff.fauc_interval, interpolate=2), r"interpolate must be False, True or 'signed'"
    ),
    Bad(
        "score of no curve",
        on_rows(ff.fauc_score, interpolate=2),
        r"interpolate must be False, True or 'signed'; got 2",
    ),
    Bad("bands of no curve", on_rows(ff.taf_bands, interpolate=2), r"interpolate must be False or True; got 2"),
    Bad("honest curve of part of a split", on_rows(ff.honest_taf, n_splits=2.9), r"n_splits must be a whole number"),
    Bad("honest curve of True repeats", on_rows(ff.honest_taf, n_repeats=True), r"n_repeats must be a whole number"),
    Bad("honest curve of one part", on_rows(ff.honest_taf, n_splits=1), r"n_splits must be in \[2, 40\]; got 1"),
    Bad("honest curve never", on_rows(ff.honest_taf, n_repeats=0), "n_repeats must be at least 1; got 0"),
    Bad(
        "honest curve of small groups",
        lambda: ff.honest_taf(Y, H, sensitive_features=rare(3), n_splits=4),
        r"n_splits=4 leaves a part without any row of the row set 'sensitive_feature=x'",
        GroupError,
    ),
    Bad(
        "interval of another length",
        lambda: ff.fauc_interval(Y, H[:-1], sensitive_features=SEX),
        r"y_preds must have as",
    ),
]

SECRET = "a secret of many bytes"
NOBODY = [("first", None), ("second", None), ("constant", None)]

OTHER_CASES = [
    Bad(
        "mixture with NaN",
        lambda: ff.RandomizedMixture(NOBODY[:1], [NAN], secret=SECRET, constants={"first": 0}),
        r"probabilities must be finite; got nan",
    ),
    Bad(
        "mixture below zero",
        lambda: ff.RandomizedMixture(NOBODY[:2], [1.5, -0.5], secret=SECRET, constants={"first": 0, "second": 1}),
        r"probabilities must be non-negative and sum to 1; got \[1.5, -0.5\]",
    ),
    Bad(
        "mixture with a threshold of text",
        lambda: ff.RandomizedMixture(NOBODY[:1], [1.0], secret=SECRET, constants={"first": 0}, threshold="0.5"),
        r"threshold must be a number; got '0.5'",
    ),
    Bad(
        "mixture fairer than fair",
        lambda: ff.RandomizedMixture.from_curve(CURVE, NOBODY, min_fairness=1.5, secret=SECRET),
        r"min_fairness must be in \[0, 1\]; got 1.5",
    ),
    Bad(
        "mixture fairer than its models",
        lambda: ff.RandomizedMixture.from_curve(
            GOOD.select(["first"]).frontier(), NOBODY, min_fairness=0.99, secret=SECRET
        ),
        r"min_fairness=0.99 is above the fairness of the fairest mixture",
        InfeasibleError,
    ),
    Bad(
        "fairness that costs more than it may",
        lambda: fit({"alpha": 1.0, "n_points": 1}, X=(SEX == "f")[:, None], y=SEX).select(0.9, max_accuracy_loss=0.1),
        r"max_accuracy_loss=0.1 leaves a fairness of at most 0.0.*; ask for less fairness or allow a larger loss",
        InfeasibleError,
    ),
    Bad(
        "stack at no point",
        lambda: fit({"alpha": 1.0}).at(target=NAN),
        r"target must be 1 finite number\(s\), one per contrast; got nan",
    ),
    Bad("bound without rows", lambda: ff.generalization_bound(0, 10, n_models=2), r"n1 must be"),
    Bad(
        "certificate without confidence",
        lambda: ff.certify(fit({"alpha": 1.0}), H, Y, sensitive_features=SEX, confidence=1.0),
        r"confidence must be in \(0, 1\); got 1.0",
    ),
    Bad("weight from no answer", lambda: ff.elicit_weight([]), r"choices must hold at least one answer"),
    Bad("sensitivity of nothing", lambda: ff.fauc_sensitivity({}), r"curves must be a non-empty dict"),
    Bad(
        "chunks of two lengths",
        lambda: ff.points_from_chunks(array_chunks(Y, H[:-1], sensitive_features=SEX)),
        r"y_preds must have as many rows as y_true|scores must have as many rows",
    ),
    Bad(
        "chunks with a function",
        lambda: ff.points_from_chunks(array_chunks(Y, H, sensitive_features=SEX), accuracy=lambda y, p: 1.0),
        r"accuracy must be one of .* where rows come in chunks; got a function",
    ),
    Bad(
        "no chunk", lambda: ff.points_from_chunks(iterable_chunks([])), r"chunks must hold at least one part; got none"
    ),
    Bad(
        "a file that is not there",
        lambda: ff.points_from_chunks(file_chunks(Path("no such file.csv"), label="y", sensitive="sex")),
        r"no such file.csv",
        DataFileError,
    ),
    Bad(
        "a saved model that is not there",
        lambda: ff.load("no such model.skops"),
        r"path must be a file written by save",
    ),
]
