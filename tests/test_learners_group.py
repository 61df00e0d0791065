"""Models of the attribute: what they learn, their columns, and the tables they take."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import fairfrontier as ff
from fairfrontier._attribute_models import TableEncoder
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import ModelFamily, classifier_zoo, fit_group_models, fit_models, kitchen_sink


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 600
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 2.0 * (group == "b")
    X[:, 1] += 2.0 * (group == "c")
    X[:, 2] += 1.5 * (sex == "m")
    y = (X[:, 3] + (group == "b") + rng.normal(0, 0.5, n) > 0.3).astype(int)
    return X, y, group, sex


def test_columns_are_the_probabilities_of_the_groups(people):
    X, _, group, _ = people
    family = fit_group_models(X, {"g": group}, learners=[("lr", LogisticRegression())])
    assert family.names == ("group/g=b/lr", "group/g=c/lr")
    assert isinstance(family, ModelFamily)
    alone = LogisticRegression().fit(X, group).predict_proba(X)
    np.testing.assert_allclose(family.predict_matrix(X), alone[:, 1:], atol=1e-10)
    for (_, member), column in zip(family.estimators, family.predict_matrix(X).T, strict=True):
        np.testing.assert_array_equal(member.predict(X), column)


@pytest.mark.parametrize(
    ("fairness", "columns"),
    [
        ("equal_opportunity", ["sex=f | y=1", "sex=m | y=1"]),
        ("predictive_equality", ["sex=f | y=0", "sex=m | y=0"]),
        ("equalized_odds", ["sex=m | y=1", "sex=f | y=0", "sex=m | y=0"]),
    ],
)
def test_measures_of_a_label_need_the_probabilities_of_group_and_label(people, fairness, columns):
    """They span E[c | x] of every contrast of the measure: each is a difference of two of them, scaled."""
    X, y, _, sex = people
    family = fit_group_models(X, {"sex": sex}, y=y, fairness=fairness, learners=[("lr", LogisticRegression())])
    assert family.names == tuple(f"group/{name}/lr" for name in columns)
    alone = LogisticRegression().fit(X, np.char.add(sex, y.astype(str)))
    joint = dict(zip(alone.classes_, alone.predict_proba(X).T, strict=True))
    for name, column in zip(columns, family.predict_matrix(X).T, strict=True):
        assert np.corrcoef(column, joint[name[4] + name[-1]])[0, 1] > 0.95
        rows = (sex == name[4]) & (y == int(name[-1]))
        assert column.mean() == pytest.approx(rows.mean(), abs=0.02)


def test_several_attributes_one_by_one_or_crossed(people):
    X, _, group, sex = people
    both = {"g": group, "sex": sex}
    learners = [("lr", LogisticRegression())]
    separate = fit_group_models(X, both, learners=learners)
    assert separate.names == ("group/g=b/lr", "group/g=c/lr", "group/sex=m/lr")
    crossed = fit_group_models(X, both, learners=learners, sensitive_mode="intersectional")
    assert len(crossed.names) == 5
    assert crossed.names[0] == "group/g & sex=a & m/lr"


def test_kitchen_sink_adds_them_last(people):
    X, y, _, sex = people
    zoo = fit_models([("lr", LogisticRegression())], X, y)
    sink = kitchen_sink(zoo, group_models=True, X=X, sensitive_features={"sex": sex})
    assert sink.names == ("models/lr", "group/sex=m/logistic", "group/sex=m/hist_boosting")
    assert sink.predict_matrix(X[:7]).shape == (7, 3)
    model = ff.FairStacksClassifier(sink.estimators, cv="prefit", random_state=0).fit(X, y, sensitive_features=sex)
    as_matrix = ff.FairStacksClassifier(list(sink.names), cv="precomputed", random_state=0)
    as_matrix.fit(sink.predict_matrix(X), y, sensitive_features=sex)
    np.testing.assert_allclose(model.path_.weights, as_matrix.path_.weights, atol=1e-9)


def test_a_stack_with_them_can_be_saved(people, tmp_path):
    X, y, _, sex = people
    sink = kitchen_sink(
        fit_models(classifier_zoo(xgboost=False)[:1], X, y), group_models=True, X=X, sensitive_features={"sex": sex}
    )
    model = ff.FairStacksClassifier(sink.estimators, cv="prefit", alpha=1.0).fit(X, y, sensitive_features=sex)
    again = ff.load(ff.save(model, tmp_path / "stack.skops"))
    np.testing.assert_array_equal(again.predict_path(X), model.predict_path(X))


def test_the_number_of_processes_does_not_matter(people):
    X, _, group, _ = people
    first, second = (fit_group_models(X, group, n_jobs=jobs).predict_matrix(X) for jobs in (1, 2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_tables_with_categories_and_gaps(people, make):
    X, _, _, sex = people
    columns = {
        "number": X[:, 2].copy(),
        "word": np.where(X[:, 0] > 1, "high", "low").astype(object),
        "flag": sex == "m",
    }
    columns["number"][::7] = np.nan
    table = make(columns)
    family = fit_group_models(table, {"sex": sex})
    matrix = family.predict_matrix(table)
    assert np.isfinite(matrix).all()
    assert np.corrcoef(matrix[:, 0], sex == "m")[0, 1] > 0.95  # the flag tells it


def test_the_encoder_keeps_its_columns_on_other_rows():
    train = pd.DataFrame({"n": [1.0, 3.0, np.nan, 8.0], "c": ["x", "y", None, "x"]})
    encoder = TableEncoder().fit(train)
    np.testing.assert_array_equal(encoder.transform(train)[:, 0], [1.0, 3.0, 3.0, 8.0])
    other = pd.DataFrame({"n": [np.inf, 2.0], "c": ["new", "y"]})
    found = encoder.transform(other)
    assert found.shape == (2, encoder.transform(train).shape[1])
    assert found[0, 0] == 3.0  # infinite is as good as missing
    assert found[0, 1:].sum() == 0.0
    assert found[1, 1:].sum() == 1.0
    sparse = csr_array(np.eye(6)[:, :3])
    np.testing.assert_array_equal(TableEncoder().fit(sparse).transform(sparse), sparse.toarray())
    wide = csr_array((np.ones(1200), (np.arange(1200) % 3, np.arange(1200) % 600)), shape=(3, 600))
    assert TableEncoder().fit(wide).transform(wide).shape == (3, 500)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y, s: fit_group_models(X, s, fairness="equal_opportunity"), "y must be given"),
        (lambda X, y, s: fit_group_models(X, s, y=X[:, 0], fairness="equal_opportunity"), "two classes; got 600"),
        (lambda X, y, s: fit_group_models(X, s, learners=[]), "at least one"),
        (lambda X, y, s: fit_group_models(X, s, learners=[("r", RidgeClassifier())]), "predict_proba"),
        (lambda X, y, s: fit_group_models(X, s[:-1]), "600"),
        (lambda X, y, s: fit_group_models(X, s, fairness="parity"), "fairness must be"),
        (lambda X, y, s: fit_group_models(X, s, sensitive_mode="both"), "sensitive_mode must be"),
        (lambda X, y, s: kitchen_sink(group_models=True, X=X), "sensitive_features must be given"),
        (lambda X, y, s: kitchen_sink(sensitive_features=s), "group_models must be True"),
    ],
)
def test_what_is_wrong_is_said(people, call, message):
    X, y, _, sex = people
    with pytest.raises(InvalidInputError, match=message):
        call(X, y, sex)
