"""`FairSearch`: typed columns, what may be a feature, the plan, steps, resuming, and the model that comes out."""

import copy
import datetime
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import eye_array
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairfrontier as ff
from fairfrontier.cli import main
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.search._model import balanced_salt, of_partner
from fairfrontier.search._plan import PARTS, SHARES, baseline_decisions, digest, split_rows
from fairfrontier.search._screening import screen, spread
from fairfrontier.search._steps import schedule
from fairfrontier.search._table import MOST_LEVELS, TableEncoding, read_columns

QUICK = {"max_steps": 3, "random_state": 0}


def people(n: int = 1600, seed: int = 0) -> pd.DataFrame:
    """A table in which the model in use looks at height, which is no merit."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    skill, luck = rng.normal(size=(2, n))
    height = 2.0 * (sex == "m") + rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "skill": np.where(rng.random(n) < 0.05, np.nan, skill),
            "height": height,
            "town": rng.choice(["here", "there", None], n, p=[0.5, 0.4, 0.1]),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "sex": sex,
        }
    )
    frame["repaid"] = np.where(skill + 0.2 * luck > 0, "yes", "no")
    frame["score_now"] = 1 / (1 + np.exp(-skill - height + 1))
    return frame


def fitted(frame: pd.DataFrame, **options) -> ff.FairSearch:
    search = ff.FairSearch(**{**QUICK, **options})
    features = frame.drop(columns=["repaid", "score_now"], errors="ignore")
    return search.fit(features, frame["repaid"], sensitive_features=frame[["sex"]], baseline=frame.get("score_now"))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="module")
def search(frame) -> ff.FairSearch:
    return fitted(frame)


class TestColumns:
    def test_any_library_gives_the_same(self, frame):
        features = frame.drop(columns="repaid")
        one, other = read_columns(features), read_columns(pl.from_pandas(features))
        assert list(one) == list(other)
        for name in one:
            assert one[name].dtype.kind == other[name].dtype.kind
            equal = one[name] == other[name]
            assert np.all(equal | (one[name] != one[name]))

    def test_objects_are_what_all_of_them_are(self):
        columns = read_columns(
            {
                "numbers": np.array([1, 2.5, None], dtype=object),
                "dates": ["2020-01-31", None, "2021-12-01 10:00"],
                "no_dates": ["2020-01-31", "2020-02-31", "2021-12-01"],
                "text": ["1", "two", ""],
                "bools": [True, False, True],
            }
        )
        assert {name: values.dtype.kind for name, values in columns.items()} == {
            "numbers": "f",
            "dates": "M",
            "no_dates": "O",
            "text": "O",
            "bools": "f",
        }
        assert columns["text"].tolist() == ["1", "two", None]

    def test_amounts_that_are_written_as_text_are_numbers_and_codes_are_not(self):
        columns = read_columns(
            {
                "income": np.array(["1,234", "56", "n/a"], dtype=object),
                "years": np.array(["3.5", None, "-2"], dtype=object),
                "zip": np.array(["01234", "10115", "n/a"], dtype=object),
                "code": np.array(["1", "2", "3"], dtype=object),
            }
        )
        np.testing.assert_array_equal(columns["income"], [1234.0, 56.0, np.nan])
        np.testing.assert_array_equal(columns["years"], [3.5, np.nan, -2.0])
        assert columns["zip"].tolist() == ["01234", "10115", None]
        assert columns["code"].tolist() == ["1", "2", "3"]

    @pytest.mark.parametrize(
        ("texts", "numbers"),
        [
            (["$1,234.50", "$7", None], [1234.5, 7.0, np.nan]),
            (["-$5.00", "$3.25"], [-5.0, 3.25]),
            (["9,465 USD", "80 USD"], [9465.0, 80.0]),
            (["EUR 10", "EUR 12.5"], [10.0, 12.5]),
            (["1.373,70", "248,24", "12"], [1373.7, 248.24, 12.0]),
            (["1.373,70 €", "0,5 €"], [1373.7, 0.5]),
            (["12 %", "3.5%"], [12.0, 3.5]),
            (["(1,234.50)", "12", "(5)"], [-1234.5, 12.0, -5.0]),
            (["($1,234)", "$5"], [-1234.0, 5.0]),
        ],
    )
    def test_amounts_with_units_and_decimal_commas_are_numbers(self, texts, numbers):
        values = np.array(texts, dtype=object)
        found = read_columns({"amount": values})["amount"]
        np.testing.assert_array_equal(found, numbers)
        encoding = TableEncoding().fit(read_columns({"amount": values}))
        known = [one for one in texts if one is not None]
        for text, number in zip(known, numbers, strict=False):  # one row alone means what it meant among others
            assert encoding.transform(read_columns({"amount": [text]}, categories=encoding.categories))[0, 0] == number

    @pytest.mark.parametrize(
        "texts",
        [["$5", "€5"], ["1.5", "2,5"], ["USD12X", "USD3"], ["DEU123", "DEU124"], ["$01", "$2"], ["(-5)", "5.5"]],
    )
    def test_text_with_several_meanings_stays_text(self, texts):
        assert read_columns({"code": np.array(texts, dtype=object)})["code"].tolist() == texts

    def test_dates_whose_order_is_certain_are_dates(self):
        columns = read_columns(
            {
                "german": np.array(["31.12.2024", "1.2.2023", None], dtype=object),
                "slashes": np.array(["2024/12/31", "2023/02/01", "2020/01/01"], dtype=object),
                "either": np.array(["01/02/2024", "03/04/2024", "05/06/2024"], dtype=object),
                "none": np.array(["31.02.2024", "1.2.2023", "1.3.2023"], dtype=object),
            }
        )
        assert [columns[name].dtype.kind for name in columns] == ["M", "M", "O", "O"]
        assert columns["german"].astype(str).tolist() == ["2024-12-31T00:00:00", "2023-02-01T00:00:00", "NaT"]
        assert columns["slashes"].astype(str)[:2].tolist() == ["2024-12-31T00:00:00", "2023-02-01T00:00:00"]

    def test_long_text_is_no_amount(self):
        nested = "(" * 5000 + "5" + ")" * 5000
        texts = [nested, "$1" + " " * 100_000 + "x", "(5)"]
        assert read_columns({"text": np.array(texts, dtype=object)})["text"].tolist() == texts

    def test_months_are_dates(self):
        texts = {
            "short": ["Dec-2015", "Apr-1999"],
            "iso": ["2015-12", "1999-04"],
            "day": ["1 December 2015", "1-apr-1999"],
            "english": ["December 1, 2015", "Apr. 1, 1999"],
        }
        for values in read_columns({name: np.array(one, dtype=object) for name, one in texts.items()}).values():
            assert values.astype("datetime64[D]").astype(str).tolist() == ["2015-12-01", "1999-04-01"]
        codes = np.array(["1234-05", "1234-06"], dtype=object), np.array(["Mayor 1999", "Apr-15"], dtype=object)
        assert all(read_columns({"code": one})["code"].dtype.kind == "O" for one in codes)

    def test_numbers_that_no_learner_can_square(self):
        columns = read_columns({"big": np.array([1e300, -1e308, 3.0, 1e-300])})
        found = TableEncoding().fit(columns).transform(columns)
        np.testing.assert_array_equal(found[:, 0], [1e30, -1e30, 3.0, 1e-300])
        text = read_columns({"big": np.array(["1e999", "5.0"], dtype=object)})
        np.testing.assert_array_equal(text["big"], [np.nan, 5.0])

    def test_dates_that_stay_text_are_named(self, frame):
        rng = np.random.default_rng(5)
        days = np.array(
            [f"{1 + i % 12:02d}/{1 + i // 12 % 28:02d}/20{10 + i // 336}" for i in range(400)], dtype=object
        )
        often = np.array([f"{1 + i % 9:02d}/{1 + i % 9:02d}/20{10 + i % 11}" for i in range(400)], dtype=object)
        attributes = ff._validation.attributes({"sex": frame["sex"][:400].to_numpy()}, 400)
        columns = {"once": days, "often": often, "skill": frame["height"][:400].to_numpy()}
        reports = screen(columns, rng.random(400) < 0.5, attributes, np.arange(400))
        assert not reports[0].used
        assert "an identifier" in reports[0].reason
        assert reports[1].used
        for report in reports[:2]:
            assert "is a date, write it like 2024-12-31" in report.reason

    def test_numbers_that_stay_text_are_named(self, frame):
        rng = np.random.default_rng(5)
        prices = np.array([f"{one:.2f} €".replace(".", ",") for one in rng.integers(0, 90, 400) / 8], dtype=object)
        attributes = ff._validation.attributes({"sex": frame["sex"][:400].to_numpy()}, 400)
        columns = {"price": prices, "skill": frame["height"][:400].to_numpy()}
        reports = screen(columns, rng.random(400) < 0.5, attributes, np.arange(400), keep=())
        assert "is a number, write it like 1234.5" in reports[0].reason

    @pytest.mark.parametrize("written", ["Rs {:,}", "{}k", "US$ {:,}.00"])
    def test_amounts_in_other_units_are_asked_about(self, frame, written):
        rng = np.random.default_rng(5)
        amounts = np.array([written.format(one) for one in rng.integers(1000, 1100, 400)], dtype=object)
        attributes = ff._validation.attributes({"sex": frame["sex"][:400].to_numpy()}, 400)
        report, _ = screen(
            {"amount": amounts, "skill": rng.random(400)}, rng.random(400) < 0.5, attributes, np.arange(400)
        )
        assert "is a number, write it like 1234.5" in report.reason

    def test_encoding_by_hand(self):
        table = read_columns(
            {
                "a": [1.0, np.nan, 3.0, 5.0, 3.0],
                "c": np.array(["x", "y", "x", "y", None], dtype=object),
                "d": [datetime.date(2024, 2, 5)] * 5,
            }
        )
        encoding = TableEncoding().fit(table)
        matrix = encoding.transform(table)
        expected = [[1, 0, 1, 0, 0], [3, 1, 0, 1, 0], [3, 0, 1, 0, 0], [5, 0, 0, 1, 0], [3, 0, 0, 0, 1]]
        np.testing.assert_array_equal(matrix[:, :5], expected)
        assert matrix[0, 5:].tolist() == [19758.0, 1.0, 0.0]  # days since 1970, February, Monday
        unseen = read_columns({"a": [2.0], "c": ["never"], "d": ["2024-02-06"]})
        assert encoding.transform(unseen)[0, :5].tolist() == [2, 0, 0, 0, 0]

    def test_text_where_numbers_were_is_refused_with_its_row(self):
        encoding = TableEncoding().fit(read_columns({"a": [1.0, 2.0]}))
        with pytest.raises(InvalidInputError, match=r"column 'a' must hold numbers.*'old' in row 0"):
            encoding.transform(read_columns({"a": ["old", "young"]}))

    def test_the_row_of_what_is_wrong_is_named(self):
        encoding = TableEncoding().fit(read_columns({"a": [1.0, 2.0]}))
        with pytest.raises(InvalidInputError, match=r"got 'old' in row 12"):
            encoding.transform(read_columns({"a": ["54", "31", "old"]}), first_row=10)

    def test_what_a_category_is_does_not_depend_on_other_rows(self):
        words = {
            "code": np.array(["01", "02", "2A"] * 10, dtype=object),
            "smoker": np.array(["true", "false", "unknown"] * 10, dtype=object),
            "grade": np.array(["1.0", "2.0", "absent"] * 10, dtype=object),
            "day": np.array(["2020-01-31", "2020-02-28", "never"] * 10, dtype=object),
        }
        encoding = TableEncoding().fit(read_columns(words))
        assert encoding.categories == set(words)
        whole = encoding.transform(read_columns(words))
        some = np.arange(30) % 3 < 2  # without the words, all else looks like numbers and dates
        part = read_columns({name: values[some] for name, values in words.items()}, categories=encoding.categories)
        np.testing.assert_array_equal(encoding.transform(part), whole[some])
        typed = pd.DataFrame({name: values[some] for name, values in words.items()})
        typed["code"], typed["grade"] = typed["code"].astype(int), typed["grade"].astype(float)
        typed["smoker"] = typed["smoker"] == "true"
        again = read_columns(typed, categories=encoding.categories)
        np.testing.assert_array_equal(encoding.transform(again), whole[some])


class TestScreening:
    def test_the_attribute_is_not_kept_by_the_way(self, frame):
        X, y = frame.drop(columns="repaid"), frame["repaid"]
        with pytest.raises(InvalidInputError, match=r"keep must not name a sensitive attribute; got 'sex'.*use_sens"):
            ff.FairSearch(max_steps=3, keep=["sex"]).fit(X, y, sensitive_features={"sex": frame["sex"]})

    def test_a_word_about_each_column(self, frame):
        rng = np.random.default_rng(0)
        n = len(frame)
        frame = frame.assign(
            person_id=np.arange(n) + 1000,
            name=[f"person {i}" for i in rng.permutation(n)],
            constant="same",
            empty=None,
            zip=[f"z{i % 500}" for i in range(n)],
            gender=np.where(frame["sex"] == "f", "woman", "man"),
            maiden_name=np.where(frame["sex"] == "f", "given", None),
        )
        search = fitted(frame)
        reasons = {report.name: (report.used, report.reason) for report in search.columns_}
        for name, word in {
            "person_id": "identifier",
            "name": "identifier",
            "constant": "constant",
            "empty": "constant",
            "sex": "the sensitive attribute",
            "gender": "a copy of the sensitive attribute",
            "maiden_name": "a copy of the sensitive attribute",
        }.items():
            assert reasons[name][0] is False
            assert word in reasons[name][1]
        assert reasons["zip"] == (True, "500 categories: the rare ones are taken together")
        assert search.model_.encoding.blocks["zip"].stop - search.model_.encoding.blocks["zip"].start <= MOST_LEVELS + 1
        proxies = {report.name: report.group_auc for report in search.columns_}
        assert proxies["height"] > 0.85
        assert proxies["skill"] == pytest.approx(0.5, abs=0.06)
        assert 0.8 < search.proxies_["sex"] < 1.0

    @pytest.mark.parametrize("kind", ["copy", "other words", "nearly", "blank for one side"])
    def test_a_column_that_is_the_label_is_refused(self, frame, kind):
        y = frame["repaid"] == "yes"
        leak = {"copy": y.astype(int), "other words": np.where(y, "good", "bad"), "nearly": y + 0.01 * frame["height"]}
        leak["blank for one side"] = np.where(y, None, "closed")
        with_leak = frame.assign(leak=leak[kind])
        with pytest.raises(InvalidInputError, match=r"column 'leak' reveals the label .*--drop 'leak'.*--keep 'leak'"):
            fitted(with_leak)

    def test_a_column_that_settles_some_labels_is_asked_about(self, frame):
        rng, y = np.random.default_rng(3), (frame["repaid"] == "yes").to_numpy()
        written = np.where(rng.random(len(y)) < 0.7, "ok", np.where(y, "strong", "no show")).astype(object)
        paid = np.where(y | (rng.random(len(y)) < 0.8), rng.normal(size=len(y)), np.nan)
        town = rng.choice(["here", "there", "elsewhere"], len(y), p=[0.9, 0.05, 0.05])
        attributes = ff._validation.attributes(frame[["sex"]], len(y))
        columns = read_columns(
            {"feedback": written, "paid": paid, "flag": y & (rng.random(len(y)) < 0.3), "town": town}
        )
        late = ~y & (rng.random(len(y)) < 0.3)
        columns["recovered"] = np.where(late, rng.gamma(2.0, size=len(y)), np.nan)
        columns["fee"] = np.where(late, rng.gamma(2.0, size=len(y)), 0.0)
        columns["gain"] = np.where(rng.random(len(y)) < 0.3, rng.gamma(2.0, size=len(y)), 0.0)
        reports = {report.name: report for report in screen(columns, y, attributes, np.arange(len(y)))}
        assert all(report.used for report in reports.values())
        assert "(such as all with a value)" in reports["recovered"].reason
        assert "(such as all with another value than 0.0)" in reports["fee"].reason
        assert not reports["gain"].reason
        assert re.match(r"settles the label in \d\d % of the rows \(such as all with '", reports["feedback"].reason)
        assert "% of the rows (such as all with no value): is it known before the outcome?" in reports["paid"].reason
        assert "(such as all with '1.0')" in reports["flag"].reason
        assert not reports["town"].reason

    @pytest.mark.parametrize("order", ["by label", "by group", "in pairs"])
    def test_the_order_of_the_rows_hides_nothing(self, order):
        rng, n = np.random.default_rng(0), 30_000
        y, man = rng.random(n) < 0.1, np.arange(n) % 2 == 0
        rows = {"by label": np.argsort(y, kind="stable"), "by group": np.argsort(man, kind="stable")}
        rows["in pairs"] = np.arange(n)
        at = rows[order]
        columns = {"near": y + 1.0 * rng.normal(size=n), "height": man + rng.normal(size=n)}
        attributes = ff._validation.attributes({"sex": man[at]}, n)
        near, height = screen({name: one[at] for name, one in columns.items()}, y[at], attributes, np.arange(n))
        assert [near.label_auc, height.group_auc] == pytest.approx([0.76, 0.76], abs=0.02)
        with pytest.raises(InvalidInputError, match="column 'leak' reveals the label"):
            screen({"leak": y[at] * 1.0}, y[at], attributes, np.arange(n))

    def test_rare_groups_are_looked_at_wherever_they_are(self):
        strata = np.repeat([0, 1, 2], [100_000, 60, 20])
        found = spread(strata, 1000)
        assert len(set(found.tolist())) == 1000
        assert (np.bincount(strata[found])[1:] >= [50, 20]).all()
        assert len(set(spread(strata[-100:], 1000).tolist())) == 100

    def test_a_table_sorted_by_group_is_searched(self, frame, monkeypatch):
        monkeypatch.setattr("fairfrontier.search._fair_search.PROXY_ROWS", 300)  # as with many more rows
        assert 0.8 < fitted(frame.sort_values("sex")).proxies_["sex"] < 1.0

    def test_all_columns_that_are_the_label_are_named_at_once(self, frame):
        y = frame["repaid"] == "yes"
        leaks = frame.assign(closed=np.where(y, None, "2020-01-31"), recovered=np.where(y, 0.0, 5.0 + frame["height"]))
        named = r"'closed' \(AUC 1.000\), 'recovered' \(AUC .*--drop 'closed' --drop 'recovered'"
        with pytest.raises(InvalidInputError, match=named):
            fitted(leaks)

    @pytest.mark.parametrize("said", ["drop", "keep"])
    def test_the_user_decides_about_it(self, frame, said):
        columns = read_columns({"leak": frame["repaid"], "skill": frame["skill"]})
        y, attributes = (frame["repaid"] == "yes").to_numpy(), ff._validation.attributes(frame[["sex"]], len(frame))
        reports = screen(columns, y, attributes, np.arange(len(y)), **{said: ("leak",)})
        assert {report.name: report.used for report in reports} == {"leak": said == "keep", "skill": True}

    def test_hostile_names_and_the_attribute_if_asked(self, frame):
        names = {"skill": "<script>alert(1)</script>", "height": "=1+1", "town": "../../etc", "since": 'a,b\n"c"'}
        search = fitted(frame.rename(columns=names))
        assert set(search.model_.columns) == set(names.values())
        assert "sex" in fitted(frame[["skill", "sex", "repaid"]], use_sensitive=True).model_.columns

    def test_no_column_is_left(self, frame):
        with pytest.raises(InvalidInputError, match="at least one column that may be a feature"):
            fitted(frame[["sex", "repaid", "score_now"]])


class TestPlan:
    def test_parts_have_their_shares_in_every_group(self):
        rng = np.random.default_rng(0)
        y, group = rng.random(8000) < 0.2, rng.choice(["a", "b", "c"], 8000, p=[0.7, 0.2, 0.1])
        attributes = ff._validation.attributes({"group": group}, 8000)
        parts = split_rows(y, attributes, seed=3)[0]
        for one in "abc":
            for label in (False, True):
                inside = parts[(group == one) & (y == label)]
                share = np.bincount(inside, minlength=len(PARTS)) / len(inside)
                np.testing.assert_allclose(share, SHARES, atol=1.5 / len(inside) + 1e-9)
        assert (split_rows(y, attributes, seed=3) == parts).all()
        assert (split_rows(y, attributes, seed=4) != parts).any()

    def test_cross_fitted_nothing_is_tested_on_what_it_learned_from(self):
        rng = np.random.default_rng(1)
        y, group = rng.random(4000) < 0.3, rng.choice(["a", "b"], 4000)
        attributes = ff._validation.attributes({"group": group}, 4000)
        first, second = split_rows(y, attributes, seed=0, cross_fit=True)
        train, stack, calibrate, report = range(len(PARTS))
        assert ((first == calibrate) == (second == calibrate)).all()
        assert (np.isin(first, [train, stack]) == (second == report)).all()
        assert (np.isin(second, [train, stack]) == (first == report)).all()
        for parts in (first, second):
            np.testing.assert_allclose(np.bincount(parts) / 4000, [0.275, 0.15, 0.15, 0.425], atol=0.002)

    def test_a_group_of_few_rows_is_named(self, frame):
        small = pd.concat([frame, frame.head(5).assign(sex="x")])
        with pytest.raises(GroupError, match=r"sensitive_features\['sex'\] must have at least 67 rows.* 5 of 'x'"):
            fitted(small)

    def test_it_is_written_first_and_not_changed(self, frame, tmp_path):
        fitted(frame, folder=tmp_path)
        plan = json.loads((tmp_path / "plan.json").read_text())
        content = {name: value for name, value in plan.items() if name not in ("hash", "created")}
        assert plan["hash"] == digest(content)
        assert plan["settings"]["margin"] == 0.005
        assert plan["rows"]["calibrate"] + plan["rows"]["report"] == len(frame)
        assert plan["rows"]["train"] + plan["rows"]["stack"] == plan["rows"]["report"]
        with pytest.raises(InvalidInputError, match="has another margin"):
            fitted(frame, folder=tmp_path, margin=0.02)

    def test_steps_are_the_same_for_a_seed_and_a_longer_search_begins_alike(self):
        assert schedule(9, 1) == schedule(13, 1)[:9]
        assert schedule(9, 1) != schedule(9, 2)


class TestSearch:
    def test_it_finds_the_alternative(self, frame, search):
        assert search.verdict_ == "alternative"
        assert set(search.delivered_) == {"fairness", "ratio", "accuracy"}
        in_use = (frame["score_now"] > 0.5) == (frame["repaid"] == "yes")
        assert search.delivered_.accuracy > in_use.mean()
        rates = (frame["score_now"] > 0.5).groupby(frame["sex"]).mean()
        assert search.delivered_.fairness > 1 - abs(rates["f"] - rates["m"]) + 0.1
        assert len(search.candidates_) == len(search.to_frame()) > 20
        assert list(search.classes_) == ["no", "yes"]

    @pytest.mark.parametrize("cross_fit", [False, True])
    def test_delivered_figures_are_those_of_the_model_on_the_report_rows(self, frame, cross_fit):
        search, tested, decided = fitted(frame, cross_fit=cross_fit), [], []
        models = [clone_alone(search.model_), search.model_.partner][: 1 + cross_fit]
        for parts, model in zip(search_parts(frame, search), models, strict=True):
            tested.append(frame[parts == PARTS.index("report")])
            decided.append(model.predict(tested[-1][search.model_.columns]) == "yes")
        rows, decided = pd.concat(tested), np.concatenate(decided)
        assert search.delivered_.accuracy == pytest.approx(np.mean(decided == (rows["repaid"] == "yes")))
        rates = pd.Series(decided, rows.index).groupby(rows["sex"]).mean()
        assert search.delivered_.fairness == pytest.approx(1 - abs(rates["f"] - rates["m"]))
        assert search.delivered_.ratio == pytest.approx(rates.min() / rates.max())

    def test_no_alternative_to_a_perfect_baseline(self, frame):
        perfect = fitted(frame.assign(score_now=(frame["repaid"] == "yes").astype(float)))
        assert perfect.verdict_ in ("none", "cannot tell")
        assert not any(one.verdict == "alternative" for one in perfect.candidates_)

    def test_without_a_baseline_it_is_the_most_accurate_stack(self, frame):
        alone = fitted(frame.drop(columns="score_now"))
        assert alone.baseline_name_.startswith("stack ")
        assert alone.baseline_name_ not in [one.name for one in alone.candidates_]

    def test_what_is_required_is_promised_or_said(self, frame):
        found = fitted(frame, min_fairness=0.8)
        assert found.chosen_.name == "required"
        assert found.promised_ == {"fairness": 0.8, "confidence": 0.95}
        assert found.delivered_.fairness > 0.75
        too_much = fitted(frame, min_fairness=0.999)
        assert too_much.promised_ is None
        assert too_much.verdict_ != "alternative"
        assert "promise" in too_much.requirement_.problem

    def test_same_seed_same_result(self, frame, search):
        again = fitted(frame)
        assert again.candidates_ == search.candidates_
        features = frame[search.model_.columns]
        np.testing.assert_array_equal(again.scores(features), search.scores(features))

    @pytest.mark.parametrize("at", ["group-0 (model 1", "group-0 (model 2"])
    def test_a_stopped_search_goes_on(self, frame, search, tmp_path, at):
        seen = []

        def stop(what, share):
            seen.append(what)
            if what.startswith(f"training {at}"):
                raise RuntimeError("killed")

        with pytest.raises(RuntimeError, match="killed"):
            fitted(frame, folder=tmp_path, progress=stop)
        kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "steps").rglob("*.json")}
        assert "boosting-0.json" in [path.name for path in kept]
        resumed = fitted(frame, folder=tmp_path)
        for path, changed in kept.items():
            assert path.stat().st_mtime_ns == changed
        assert resumed.candidates_ == search.candidates_
        features = frame[search.model_.columns]
        np.testing.assert_array_equal(resumed.scores(features), search.scores(features))

    def test_time_and_an_interrupt_end_it_with_what_it_has(self, frame):
        said = []
        short = fitted(frame, max_steps=9, time=0.5, progress=lambda what, share: said.append(what))
        assert re.fullmatch(r"up to 9 steps, about \d+ seconds; the time ends it after about [01]", said[1])
        assert short.stopped_ == "the time is over"
        assert len(short.steps_) == 6

        def interrupt(what, share):
            if what.startswith("training forest"):
                raise KeyboardInterrupt

        stopped = fitted(frame, max_steps=9, progress=interrupt)
        assert stopped.stopped_ == "interrupted"
        assert stopped.candidates_ == short.candidates_


def search_parts(frame, search):
    attributes = ff._validation.attributes(frame[["sex"]], len(frame))
    cross_fit = search.plan_.settings["cross_fit"]
    return split_rows((frame["repaid"] == "yes").to_numpy(), attributes, search.random_state, cross_fit=cross_fit)


def clone_alone(model):
    """The first of the two models, alone."""
    alone = copy.copy(model)
    alone.partner = None
    return alone


class TestModel:
    def test_of_two_models_each_decides_half_of_the_rows_and_equal_rows_alike(self, frame, search):
        features = frame[search.model_.columns]
        scores = search.scores(features)
        one, other = clone_alone(search.model_).scores(features), search.model_.partner.scores(features)
        of_first = scores == one
        np.testing.assert_array_equal(scores[~of_first], other[~of_first])
        assert 0.45 < of_first.mean() < 0.55
        np.testing.assert_array_equal(search.scores(features[::-1])[::-1], scores)

    def test_saved_and_loaded_it_scores_raw_rows(self, frame, search, tmp_path):
        model = ff.load(ff.save(search.model_, tmp_path / "model.skops"))
        features = frame.drop(columns=["repaid", "score_now", "sex"])
        np.testing.assert_array_equal(model.scores(features), search.scores(features))
        shuffled = features[features.columns[::-1]]
        np.testing.assert_array_equal(model.scores(shuffled), search.scores(features))

    def test_saved_and_loaded_a_search_knows_what_it_found(self, frame, search, tmp_path):
        loaded = ff.load(ff.save(search, tmp_path / "search.skops"))
        assert (loaded.verdict_, loaded.delivered_, loaded.candidates_) == (
            search.verdict_,
            search.delivered_,
            search.candidates_,
        )
        assert loaded.evidence_.verdict().candidates == search.candidates_
        features = frame.drop(columns=["repaid", "score_now", "sex"])
        np.testing.assert_array_equal(loaded.predict(features), search.predict(features))
        features.to_csv(tmp_path / "new.csv", index=False)
        outs = [tmp_path / "of_search.csv", tmp_path / "of_model.csv"]
        for one, out in zip((search, search.model_), outs, strict=True):
            path = ff.save(one, tmp_path / "either.skops")
            assert main(["apply", str(path), str(tmp_path / "new.csv"), "--out", str(out)]) == 0
        assert outs[0].read_bytes() == outs[1].read_bytes()

    def test_columns_are_checked_by_name(self, frame, search):
        features = frame[search.model_.columns]
        with pytest.raises(InvalidInputError, match="must have the column 'skill', which the model uses"):
            search.predict(features.drop(columns="skill"))
        with pytest.raises(InvalidInputError, match="only columns that the search knew; got 'shoe'"):
            search.predict(features.assign(shoe=1))
        assert len(search.predict(features.assign(sex="f"))) == len(frame)

    def test_it_explains_itself(self, frame, search):
        features = frame[search.model_.columns]
        parts, scores = search.model_.explain(features), search.scores(features)
        np.testing.assert_allclose(sum(parts.values()) + scores.mean(), scores)
        assert sum(search.model_.family_weights.values()) == pytest.approx(1.0)
        importance = search.model_.importance
        assert max(importance, key=importance.get) == "skill"
        assert set(importance) == set(search.model_.columns)


class TestScikitLearn:
    def test_parameters_and_clone(self):
        search = ff.FairSearch(margin=0.01, drop=("a",))
        assert clone(search).get_params() == search.get_params()
        assert search.set_params(margin=0.02).margin == 0.02

    def test_not_fitted(self):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            ff.FairSearch().predict([[1.0]])

    def test_metadata_is_routed(self, frame):
        features, y = frame[["skill", "height"]], frame["repaid"]
        with sklearn.config_context(enable_metadata_routing=True):
            model = make_pipeline(FunctionTransformer(), ff.FairSearch(**QUICK))
            params = {"sensitive_features": frame["sex"].to_numpy()}
            scores = cross_val_score(model, features, y, cv=2, params=params)
        assert scores.min() > 0.7

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"margin": -1}, "margin"),
            ({"confidence": 1.5}, "confidence"),
            ({"max_steps": 1}, "max_steps"),
            ({"fairness": "luck"}, "fairness"),
            ({"min_ratio": 0.8, "fairness": "equal_opportunity"}, "min_ratio"),
            ({"drop": ("shoe",)}, "drop must name columns of X; got 'shoe'"),
        ],
    )
    def test_bad_options(self, frame, options, message):
        with pytest.raises(InvalidInputError, match=message):
            fitted(frame, **options)

    @pytest.mark.parametrize(("score", "word"), [(0.2, "negative"), (1, "positive")])
    def test_a_baseline_that_decides_alike_for_everyone(self, frame, score, word):
        wanted = rf"baseline must decide both ways.*got 1,600 {word} decisions.*--threshold, now 0.5"
        with pytest.raises(InvalidInputError, match=wanted):
            fitted(frame.assign(score_now=score))

    def test_bad_input(self, frame):
        with pytest.raises(InvalidInputError, match="sensitive_features must be given"):
            ff.FairSearch().fit(frame[["skill"]], frame["repaid"])
        with pytest.raises(InvalidInputError, match=r"baseline must be scores in \[0, 1\]"):
            fitted(frame.assign(score_now=frame["height"] * 10))
        with pytest.raises(InvalidInputError, match="sparse"):
            ff.FairSearch().fit(eye_array(10), np.arange(10) % 2, sensitive_features=np.arange(10) % 2)


class TestInputsOfASearch:
    @pytest.mark.parametrize("moved", ["y", "sensitive_features", "baseline"])
    def test_the_same_index_in_another_order_is_refused(self, frame, moved):
        given = {"y": frame["repaid"], "sensitive_features": frame["sex"], "baseline": frame["repaid"]}
        given[moved] = given[moved].iloc[::-1]
        with pytest.raises(InvalidInputError, match="rows in one order"):
            ff.FairSearch(max_steps=3).fit(frame[["skill", "height"]], **given)

    @pytest.mark.parametrize("classes", [("no", "yes"), (1, 2), (-1, 1), (0, 1), (False, True)])
    def test_decisions_in_the_words_of_the_label(self, classes):
        decided = np.array([False, True, True, False])
        given = np.array(classes)[decided.astype(int)]
        np.testing.assert_array_equal(baseline_decisions(given, classes, 0.5), decided)
        with pytest.raises(InvalidInputError, match="baseline must be"):
            baseline_decisions([0.2, 7.0], classes, 0.5)


class TestHalves:
    """Two models decide half of the rows each, by a hash of the features."""

    def test_where_many_rows_are_equal_the_halves_are_those_that_were_tested(self):
        rng = np.random.default_rng(0)
        kinds = rng.integers(0, 2, (24, 6)).astype(float)
        of_kind, women = rng.integers(0, 24, 3000), rng.random(3000) < 0.5
        matrix = kinds[of_kind]
        difference = (rng.integers(-1, 2, 24))[of_kind].astype(float)
        row_sets = [women, ~women]

        def off(salt):
            second = of_partner(matrix, salt) - 0.5
            return max(abs((second * difference)[mask].mean()) for mask in row_sets)

        salt = balanced_salt(matrix, difference, row_sets)
        assert off(salt) < 0.01 < off(0)
        equal = of_partner(matrix, salt)
        assert all(len(set(equal[of_kind == kind].tolist())) <= 1 for kind in range(24))

    def test_the_model_on_discrete_features_decides_as_often_as_was_tested(self, tmp_path):
        rng = np.random.default_rng(4)
        n = 3000
        sex = rng.choice(["f", "m"], n)
        table = {f"b{j}": (rng.random(n) < 0.3 + 0.3 * (sex == "m") * (j < 2)).astype(float) for j in range(5)}
        chance = 1 / (1 + np.exp(-sum(table.values()) + 1.8))
        y = rng.random(n) < chance
        search = ff.FairSearch(max_steps=3, min_ratio=0.8).fit(table, y, sensitive_features={"sex": sex})
        path = tmp_path / "model.skops"
        ff.save(search.model_, path)
        loaded = ff.load(path)
        np.testing.assert_array_equal(loaded.predict(table), search.predict(table))
        decided = search.predict(table)
        rates = {one: np.mean(decided[sex == one]) for one in ("f", "m")}
        tested = search.evidence_.decisions["report"][
            :, [one.name for one in search.candidates_].index(search.chosen_.name)
        ]
        groups = search.evidence_.sensitive["report"]["sex"]
        for one, rate in rates.items():
            assert abs(rate - tested[groups == one].mean()) < 0.03
