"""The randomised mixture: its draws, their replay, and what it promises."""

import hashlib
import hmac
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import fairfrontier as ff
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.optimize._mixture import Key, RandomizedMixture, encode_id

SECRET = b"0123456789abcdef"
N = 100_000


class Always:
    """A fitted model that always decides the same."""

    def __init__(self, decision):
        self.decision_ = decision

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), self.decision_)


@pytest.fixture(scope="module")
def compas_like():
    generator = np.random.default_rng(0)
    n = 6000
    sex = generator.choice(["f", "m"], n)
    X = np.column_stack([generator.normal(size=(n, 3)), sex == "f"])
    y = (X[:, 0] + 0.8 * X[:, 3] + generator.normal(size=n) > 0.3).astype(int)
    train, test = slice(0, n // 2), slice(n // 2, n)
    models = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0)), ("logistic", LogisticRegression())]
    models += [("blind", LogisticRegression())]
    for name, model in models:
        features = X[train] * np.array([1, 1, 1, 0 if name == "blind" else 1])
        model.fit(features, y[train])
    return models, X[test], y[test], sex[test]


def test_shares_match_probabilities_over_many_ids():
    mixture = RandomizedMixture([("a", Always(0)), ("b", Always(1)), ("c", Always(0))], [0.2, 0.5, 0.3], secret=SECRET)
    share = np.bincount(mixture.draw(range(N)), minlength=3) / N
    np.testing.assert_allclose(share, [0.2, 0.5, 0.3], atol=4 * np.sqrt(0.25 / N))


def test_any_id_replays():
    mixture = RandomizedMixture([("a", Always(0)), ("b", Always(1))], [0.4, 0.6], secret=SECRET)
    ids = [*range(50), *(f"person {i}" for i in range(50)), b"\x00\xff"]
    again = RandomizedMixture([("a", Always(0)), ("b", Always(1))], [0.4, 0.6], secret=SECRET.decode())
    drawn = mixture.draw(ids)
    np.testing.assert_array_equal(again.draw(reversed(ids)), drawn[::-1])
    for one, model in zip(ids, drawn, strict=True):
        replay = mixture.explain(one)
        assert replay.model == ("a", "b")[model]
        assert replay.interval[0] <= replay.number < replay.interval[1]
    np.testing.assert_array_equal(mixture.predict(np.zeros((len(ids), 1)), ids=ids), drawn)


@pytest.mark.parametrize("ids", [["7", "b", "ü"], [7, 8, 9]], ids=["text", "numbers"])
def test_ids_of_any_library_draw_alike(ids):
    mixture = RandomizedMixture([("a", Always(0)), ("b", Always(1))], [0.4, 0.6], secret=SECRET)
    drawn = mixture.draw(ids * 20)
    columns = [np.array(ids * 20), pd.Series(ids * 20), pl.Series(ids * 20), pa.array(ids * 20)]
    columns += [pa.chunked_array([ids * 20]), pd.DataFrame({"id": ids * 20}), pa.table({"id": ids * 20})]
    for column in columns:
        np.testing.assert_array_equal(mixture.draw(column), drawn)


def test_another_secret_gives_independent_draws():
    first, second = (
        RandomizedMixture([("a", Always(0)), ("b", Always(1))], [0.3, 0.7], secret=secret).draw(range(N))
        for secret in (SECRET, SECRET[::-1])
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(N)
    # Neighbouring ids are independent, too.
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 4 / np.sqrt(N)


@pytest.mark.parametrize("secret", [SECRET, b"k" * 64, b"k" * 100])
def test_numbers_are_hmac_sha256(secret):
    messages = [encode_id(one) for one in (7, "7", b"7", "ä", -3, np.int64(7))]
    expected = [int.from_bytes(hmac.new(secret, m, hashlib.sha256).digest()[:8], "big") >> 11 for m in messages]
    np.testing.assert_array_equal(Key(secret).numbers(messages), np.array(expected) / 2**53)
    assert len(set(messages)) == 5  # 7 and np.int64(7) are one id; 7, "7" and b"7" are three


@pytest.mark.parametrize("interpolate", [True, "signed"])
def test_mixture_of_a_curve_has_the_expected_point(compas_like, interpolate):
    models, X, y, sex = compas_like
    scores = {name: model.predict_proba(X)[:, 1] for name, model in models}
    points = ff.tradeoff_points(y, scores, sensitive_features=sex)
    curve = points.frontier(interpolate)
    level = float((curve.fairness[0] + curve.fairness[-1]) / 2)
    constant = int(np.mean(y) > 0.5)
    mixture = RandomizedMixture.from_curve(
        curve, [*models, ("constant", None)], min_fairness=level, secret=SECRET, constants={"constant": constant}
    )
    assert 2 <= len(mixture.names) <= 3
    report = mixture.report(X, y, ids=range(len(y)), sensitive_features=sex)
    assert report.expected_accuracy == pytest.approx(curve(level), abs=1e-9)
    # TAFI averages the fairness; the mixture's own is at least that, and on the signed hull exactly the level.
    assert report.expected_fairness >= level - 1e-9
    if interpolate == "signed":
        assert report.expected_fairness == pytest.approx(level, abs=1e-9)
    assert report.realised_accuracy == pytest.approx(report.expected_accuracy, abs=0.03)
    assert report.realised_fairness == pytest.approx(report.expected_fairness, abs=0.06)
    np.testing.assert_allclose(report.share, report.probability, atol=0.04)


def test_a_step_curve_gives_one_model(compas_like):
    models, X, y, sex = compas_like
    scores = {name: model.predict_proba(X)[:, 1] for name, model in models}
    points = ff.tradeoff_points(y, scores, sensitive_features=sex)
    curve = points.frontier()
    mixture = RandomizedMixture.from_curve(curve, [*models, ("constant", None)], min_fairness=0.0, secret=SECRET)
    assert mixture.names == (points.names[curve.support[0]],)
    best = dict(models)[mixture.names[0]].predict(X)
    np.testing.assert_array_equal(mixture.predict(X, ids=range(len(X))), best)


@pytest.fixture(scope="module")
def mostly_positive():
    """Rows on which decision 1 is the better constant, and a model with a margin in place of probabilities."""
    generator = np.random.default_rng(3)
    n = 2000
    sex = generator.choice(["f", "m"], n)
    X = np.column_stack([generator.normal(size=(n, 2)), 2.0 * (sex == "f")])
    label = X[:, 0] + X[:, 2] + generator.normal(size=n) > 0.4
    return X, label, sex


@pytest.mark.parametrize("classes", [(0, 1), (1, 2), ("no", "yes"), (False, True)])
@pytest.mark.parametrize("interpolate", ["signed", True])
@pytest.mark.parametrize("positive", [True, False])
def test_a_mixture_of_points_delivers_what_they_promise(mostly_positive, classes, interpolate, positive):
    X, label, sex = mostly_positive
    label = label if positive else ~label  # the better constant is decision 1, or decision 0
    y = np.where(label, classes[1], classes[0])
    model = LinearSVC(random_state=0).fit(X, y)
    points = ff.tradeoff_points(y, {"svc": model.predict(X) == classes[1]}, sensitive_features=sex)
    level = float((points.fairness[0] + 1.0) / 2)
    options = {"secret": SECRET, "interpolate": interpolate}
    mixture = RandomizedMixture.from_points(points, [("svc", model)], min_fairness=level, **options)
    assert set(mixture.names) == {"svc", "constant"}
    assert mixture.constants["constant"] == int(label.mean() > 0.5)
    report = mixture.report(X, y, ids=range(len(y)), sensitive_features=sex)
    assert report.expected_accuracy == pytest.approx(points.frontier(interpolate)(level), abs=1e-9)
    assert report.expected_fairness >= level - 1e-9
    predicted = mixture.predict(X, ids=range(len(y)))
    assert set(predicted.tolist()) <= set(classes)
    assert np.mean(predicted == y) == report.realised_accuracy
    # At full fairness the constant is alone, and is the better one.
    alone = RandomizedMixture.from_points(points, {"svc": model}, min_fairness=1.0, **options)
    assert np.mean(alone.predict(X, ids=range(len(y))) == y) == pytest.approx(max(label.mean(), 1 - label.mean()))


def test_a_constant_is_never_guessed(mostly_positive):
    X, label, sex = mostly_positive
    model = LinearSVC(random_state=0).fit(X, label)
    decided = {"svc": model.predict(X)}
    points = ff.tradeoff_points(label, decided, sensitive_features=sex)
    with pytest.raises(InvalidInputError, match=r"must be 0 or 1, .* got None: RandomizedMixture.from_points reads it"):
        RandomizedMixture.from_curve(
            points.frontier(True), [("svc", model), ("constant", None)], min_fairness=1.0, secret=SECRET
        )

    def parity(y_true, y_pred, *, sensitive_features):
        return abs(y_pred[sensitive_features == "f"].mean() - y_pred[sensitive_features == "m"].mean())

    # A function gives a bias and no rates: nothing in these points says what the constant decides.
    by_function = ff.tradeoff_points(label, decided, sensitive_features=sex, fairness=parity)
    with pytest.raises(InvalidInputError, match="must be 0 or 1"):
        RandomizedMixture.from_points(by_function, {"svc": model}, min_fairness=1.0, secret=SECRET)
    mixture = RandomizedMixture.from_points(
        by_function, {"svc": model}, min_fairness=1.0, secret=SECRET, constants={"constant": 1}
    )
    assert mixture.predict(X, ids=range(len(X))).all()


def test_models_of_points_are_found_by_name(compas_like):
    models, X, y, sex = compas_like
    scores = {name: model.predict_proba(X)[:, 1] for name, model in models}
    points = ff.tradeoff_points(y, scores, sensitive_features=sex)
    level = float((points.fairness.min() + 1.0) / 2)
    given, turned = (
        RandomizedMixture.from_points(points, order, min_fairness=level, secret=SECRET)
        for order in (models, models[::-1])
    )
    assert given.names == turned.names
    np.testing.assert_array_equal(given.predict(X, ids=range(len(X))), turned.predict(X, ids=range(len(X))))
    for name, model in given.estimators:
        assert model is dict(models).get(name)
    with pytest.raises(InvalidInputError, match=rf"estimators must hold the model '{given.names[0]}' of the points"):
        RandomizedMixture.from_points(points, {"other": models[0][1]}, min_fairness=level, secret=SECRET)


def test_the_secret_is_never_shown():
    mixture = RandomizedMixture([("a", Always(0)), ("b", Always(1))], [0.4, 0.6], secret="a very secret secret")
    assert "very secret" not in repr(mixture) + str(mixture) + str(vars(mixture))
    assert repr(mixture) == "RandomizedMixture({'a': 0.4, 'b': 0.6}, secret=<hidden>)"


def test_a_pickled_mixture_draws_the_same():
    mixture = RandomizedMixture([("a", Always(0)), ("b", Always(1))], [0.4, 0.6], secret=SECRET)
    copy = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(copy.draw(range(100)), mixture.draw(range(100)))


def test_errors_say_what_to_do():
    models = [("a", Always(0)), ("b", Always(1))]
    with pytest.raises(InvalidInputError, match="at least 16 bytes; got 5: make one with"):
        RandomizedMixture(models, [0.5, 0.5], secret="short")
    with pytest.raises(InvalidInputError, match="secret must be bytes or str; got int"):
        RandomizedMixture(models, [0.5, 0.5], secret=12345678901234567890)
    with pytest.raises(InvalidInputError, match="sum to 1"):
        RandomizedMixture(models, [0.5, 0.6], secret=SECRET)
    with pytest.raises(InvalidInputError, match="one number for each of the 2 estimators"):
        RandomizedMixture(models, [1.0], secret=SECRET)
    with pytest.raises(InvalidInputError, match="must be 0 or 1, the decision of the model that is None"):
        RandomizedMixture([("constant", None)], [1.0], secret=SECRET)
    mixture = RandomizedMixture(models, [0.5, 0.5], secret=SECRET)
    for wrong in (1.5, None, True, ("a", 1)):
        with pytest.raises(InvalidInputError, match="ids must be str, int or bytes"):
            mixture.draw([wrong])
    with pytest.raises(InvalidInputError, match="must have as many rows"):
        mixture.predict(np.zeros((3, 1)), ids=[1, 2])
    curve = ff.taf_curve([0.7, 0.9], [0.9, 0.8], interpolate=True)
    with pytest.raises(InfeasibleError, match=r"min_fairness=0.95 is above the fairness of the fairest mixture, 0.9"):
        RandomizedMixture.from_curve(curve, models, min_fairness=0.95, secret=SECRET)
    with pytest.raises(InvalidInputError, match="every model of the points, at least 2; got 1"):
        RandomizedMixture.from_curve(curve, models[:1], min_fairness=0.9, secret=SECRET)


def test_stacks_that_decide_otherwise_are_refused():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 800)
    y = (rng.random(800) < 0.3 + 0.3 * group).astype(int)
    H = np.clip((0.3 + 0.3 * y + 0.1 * group)[:, None] + rng.normal(0, 0.25, (800, 3)), 0, 1)
    fit = {"X": H, "y": y, "sensitive_features": group}
    low = ff.FairStacksClassifier("precomputed", alpha=1.0, threshold=0.3).fit(**fit)
    with pytest.raises(InvalidInputError, match=r"got 0.5, and 'low' decides at 0.3: pass threshold=0.3"):
        RandomizedMixture({"low": low}, [1.0], secret="sixteen bytes, at least")
    mixture = RandomizedMixture({"low": low}, [1.0], secret="sixteen bytes, at least", threshold=0.3)
    np.testing.assert_array_equal(mixture.predict(H, ids=range(800)), low.predict(H))
    drawn = ff.FairStacksClassifier("precomputed", random_state=0).fit(**fit).select(0.9, randomize=True)
    assert drawn.selection_.kind == "mixture"
    with pytest.raises(InvalidInputError, match="'drawn' is a stack that randomises itself"):
        RandomizedMixture({"drawn": drawn}, [1.0], secret="sixteen bytes, at least")
