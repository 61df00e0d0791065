"""The five data sets as their loaders return them: counts, types, groups, encodings."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from fairfrontier import datasets
from fairfrontier.exceptions import InvalidInputError

LOADERS = {
    "adult": datasets.load_adult,
    "bank": datasets.load_bank,
    "compas": datasets.load_compas,
    "default": datasets.load_default,
    "communities": datasets.load_communities,
}
every_loader = pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS.keys())


@pytest.fixture(scope="module")
def summaries():
    return datasets.describe_all()


@pytest.mark.parametrize(
    ("name", "rows", "numbers", "categories", "mean"),
    [
        ("adult", 48_842, 5, 8, 0.2393),
        ("bank", 45_211, 7, 9, 0.1170),
        ("compas", 5_278, 13, 0, 0.4704),
        ("default", 30_000, 20, 3, 0.2212),
        ("communities", 1_994, 100, 0, 0.2380),
    ],
)
def test_rows_types_and_mean_of_target(name, rows, numbers, categories, mean):
    bunch = LOADERS[name]()
    kinds = [dtype.kind if isinstance(dtype, np.dtype) else dtype.name for dtype in bunch.data.dtypes]
    assert bunch.data.shape == (rows, numbers + categories)
    assert kinds.count("category") == categories
    assert kinds.count("f" if name == "communities" else "i") == numbers
    assert bunch.target.dtype == (np.float64 if name == "communities" else np.int64)
    assert round(bunch.target.mean(), 4) == mean
    assert bunch.data.isna().sum().sum() == 0
    assert bunch.sensitive_features.isna().sum().sum() == 0
    if name != "communities":
        assert set(bunch.target) == {0, 1}


@pytest.mark.parametrize(
    ("task", "groups", "paper"),
    [
        ("adult-gender", {"Female": (16_192, 0.1093), "Male": (32_650, 0.3038)}, (48_222, 99)),
        ("adult-race", {"Non-white": (7_080, 0.1525), "White": (41_762, 0.2540)}, (48_222, 99)),
        ("bank-age", {"33 to 63": (33_216, 0.1006), "under 33 or over 63": (11_995, 0.1624)}, (44_388, 58)),
        ("compas-gender", {"Female": (1_031, 0.3618), "Male": (4_247, 0.4968)}, (5_278, 13)),
        ("compas-race", {"White": (2_103, 0.3909), "Non-white": (3_175, 0.5231)}, (5_278, 13)),
        ("default-gender", {"Female": (18_112, 0.2078), "Male": (11_888, 0.2417)}, (30_000, 23)),
        (
            "communities-race",
            {"Majority white": (1_672, 0.1821), "Not majority white": (322, 0.5280)},
            (1_969, 104),
        ),
    ],
)
def test_base_rates_per_group(task, groups, paper, summaries):
    summary = {row.task: row for row in summaries}[task]
    assert {group.name: (group.rows, round(group.base_rate, 4)) for group in summary.groups} == groups
    rates = [rate for _, rate in groups.values()]
    assert summary.gap == pytest.approx(max(rates) - min(rates), abs=1e-4)
    assert (summary.paper_rows, summary.paper_columns) == paper
    dataset, attribute = task.split("-")
    framed = LOADERS[dataset]()
    rows = framed.sensitive_features[attribute].value_counts()
    assert dict(rows) == {name: count for name, (count, _) in groups.items()}


def test_describe_all_has_the_seven_tasks_with_rows_and_columns(summaries):
    found = {row.task: (row.kind, row.rows, row.features, row.columns) for row in summaries}
    assert found == {
        "adult-gender": ("classification", 48_842, 13, 99),
        "adult-race": ("classification", 48_842, 13, 99),
        "bank-age": ("classification", 45_211, 16, 51),
        "compas-gender": ("classification", 5_278, 13, 13),
        "compas-race": ("classification", 5_278, 13, 13),
        "default-gender": ("classification", 30_000, 23, 33),
        "communities-race": ("regression", 1_994, 100, 100),
    }


@pytest.mark.parametrize("name", LOADERS)
def test_description_names_source_licence_limits_and_the_papers_figures(name, summaries):
    text = LOADERS[name](as_frame=False).DESCR
    for heading in ("Source", "Licence", "Preparation", "Against the paper", "Known limits"):
        assert heading in text
    stated = {row.dataset: row for row in summaries}[name]
    assert f"{stated.paper_rows:,}" in text
    assert f"{stated.paper_columns}" in text
    assert f"{stated.rows:,}" in text


def test_adult_keeps_unknown_values_as_a_category_and_has_no_census_weight():
    data = datasets.load_adult().data
    unknown = {name: int((data[name] == "?").sum()) for name in data if (data[name] == "?").any()}
    assert unknown == {"workclass": 2_799, "occupation": 2_809, "native_country": 857}
    assert int((data == "?").any(axis=1).sum()) == 3_620
    assert "fnlwgt" not in data


def test_adult_race_joins_all_values_but_white():
    sensitive = datasets.load_adult().sensitive_features
    assert sensitive.race_original.nunique() == 5
    np.testing.assert_array_equal(sensitive.race == "White", sensitive.race_original == "White")


def test_bank_unknowns_and_age_with_both_ends_included():
    bank = datasets.load_bank()
    unknown = {name: int((bank.data[name] == "unknown").sum()) for name in ("job", "education", "contact", "poutcome")}
    assert unknown == {"job": 288, "education": 1_857, "contact": 13_020, "poutcome": 36_959}
    np.testing.assert_array_equal(bank.sensitive_features.age == "33 to 63", bank.data.age.between(33, 63))
    assert list(bank.data.month.cat.categories)[:3] == ["jan", "feb", "mar"]


def test_compas_binary_features_partition_age_priors_and_charge():
    data = datasets.load_compas(races="all").data
    assert set(np.unique(data)) == {0, 1}
    for prefix, members in (("age_", 3), ("priors_", 3), ("charge_", 2)):
        block = data.filter(like=prefix)
        assert block.shape[1] == members
        assert (block.sum(axis=1) == 1).all()


def test_compas_with_all_races_and_raw_columns():
    compas = datasets.load_compas(races="all", features="raw")
    assert compas.data.shape == (6_172, 9)
    assert round(compas.target.mean(), 4) == 0.4551
    assert dict(compas.sensitive_features.race_original.value_counts()) == {
        "African-American": 3_175,
        "Caucasian": 2_103,
        "Hispanic": 509,
        "Other": 343,
        "Asian": 31,
        "Native American": 11,
    }
    binary = datasets.load_compas(races="all")
    np.testing.assert_array_equal(binary.data.priors_over_3, compas.data.priors_count > 3)
    np.testing.assert_array_equal(binary.data.white, compas.sensitive_features.race == "White")
    assert set(compas.scores.decile_score) == set(range(1, 11))
    assert not {"decile_score", "score_text"} & set(compas.data)


def test_compas_of_two_races_has_no_empty_category():
    compas = datasets.load_compas(features="raw")
    assert list(compas.data.race.cat.categories) == ["African-American", "Caucasian"]
    assert list(compas.sensitive_features.race_original.cat.categories) == ["African-American", "Caucasian"]


def test_default_shows_the_codes_that_nobody_explains():
    data = datasets.load_default().data
    assert {name: int((name == data.EDUCATION).sum()) for name in ("code 0", "code 5", "code 6")} == {
        "code 0": 14,
        "code 5": 280,
        "code 6": 51,
    }
    assert int((data.MARRIAGE == "code 0").sum()) == 54
    assert "ID" not in data


def test_communities_missing_value_is_imputed_or_kept():
    kept = datasets.load_communities(missing="keep").data
    filled = datasets.load_communities().data
    assert dict(kept.isna().sum()[kept.isna().any()]) == {"OtherPerCap": 1}
    row = kept.OtherPerCap.isna()
    assert filled.OtherPerCap[row].item() == kept.OtherPerCap.median() == 0.25
    pd.testing.assert_frame_equal(filled[~row], kept[~row])
    assert not {"state", "county", "community", "communityname", "fold"} & set(kept)
    assert not [name for name in kept if name.startswith("LemasSw")]


def test_communities_cut_is_strict_and_can_be_moved():
    default = datasets.load_communities()
    np.testing.assert_array_equal(default.sensitive_features.race == "Majority white", default.data.racePctWhite > 0.5)
    literal = datasets.load_communities(white_cut=0.235).sensitive_features.race
    assert dict(literal.value_counts()) == {"Majority white": 1_890, "Not majority white": 104}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.load_communities(white_cut=1.0), "white_cut must leave communities on both sides"),
        (lambda: datasets.load_communities(missing="drop"), "missing must be one of 'impute', 'keep'; got 'drop'"),
        (lambda: datasets.load_compas(races="three"), "races must be one of 'all', 'two'; got 'three'"),
        (lambda: datasets.load_compas(features="all"), "features must be one of 'binary', 'raw'; got 'all'"),
        (lambda: datasets.load_bank(as_frame="yes"), "as_frame must be True, False or 'auto', got 'yes'"),
    ],
)
def test_unknown_options_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


@every_loader
def test_frame_joins_data_and_target_and_return_X_y_gives_the_pair(load):
    bunch = load(as_frame=True)
    X, y = load(return_X_y=True, as_frame=True)
    assert X.equals(bunch.data)
    assert y.equals(bunch.target)
    assert y.name == bunch.target_name
    assert bunch.frame.drop(columns=bunch.target_name).equals(bunch.data)
    assert bunch.frame[bunch.target_name].equals(bunch.target)
    assert bunch.feature_names == list(bunch.data)


@every_loader
def test_numpy_form_holds_the_same_values_as_the_frame(load):
    framed, plain = load(as_frame=True), load(as_frame=False)
    assert plain.frame is None
    assert plain.data.dtype == np.float64
    np.testing.assert_array_equal(plain.target, framed.target)
    for j, name in enumerate(plain.feature_names):
        column = plain.data[:, j]
        if name in plain.categories:
            column = np.array(plain.categories[name])[column.astype(int)]
        np.testing.assert_array_equal(column, framed.data[name].to_numpy())
    for name in framed.sensitive_features:
        np.testing.assert_array_equal(plain.sensitive_features[name], framed.sensitive_features[name].to_numpy())


@every_loader
@pytest.mark.parametrize("as_frame", [True, False])
def test_what_a_caller_changes_is_not_seen_by_the_next(load, as_frame):
    first = load(as_frame=as_frame)
    first.target[:] = -1
    first.feature_names.append("extra")
    first.categories.clear()
    first.sensitive_sources.clear()
    for name in list(first.sensitive_features):
        first.sensitive_features[name] = 0
    second = load(as_frame=as_frame)
    assert second.target.min() == 0
    assert "extra" not in second.feature_names
    assert second.sensitive_sources
    assert len(np.unique(second.sensitive_features[next(iter(second.sensitive_sources))])) == 2


@pytest.mark.parametrize(
    ("name", "auto", "onehot", "dummy", "ordinal", "without_sensitive"),
    [
        ("adult", 99, 107, 99, 13, 94),
        ("bank", 51, 51, 42, 16, 50),
        ("compas", 13, 13, 13, 13, 11),
        ("default", 33, 33, 30, 23, 31),
        ("communities", 100, 100, 100, 100, 96),
    ],
)
def test_columns_of_the_design_matrix(name, auto, onehot, dummy, ordinal, without_sensitive):
    bunch = LOADERS[name]()
    widths = [
        datasets.design_matrix(bunch, encoding=encoding).values.shape[1]
        for encoding in ("auto", "onehot", "dummy", "ordinal")
    ]
    assert widths == [auto, onehot, dummy, ordinal]
    assert datasets.design_matrix(bunch, drop_sensitive=True).values.shape[1] == without_sensitive


@pytest.mark.parametrize("encoding", ["onehot", "dummy", "ordinal"])
@every_loader
def test_design_matrix_is_the_same_from_frame_numpy_and_polars(load, encoding):
    framed = load(as_frame=True)
    expected = datasets.design_matrix(framed, encoding=encoding)
    plain = datasets.design_matrix(load(as_frame=False), encoding=encoding)
    assert plain.names == expected.names
    np.testing.assert_array_equal(plain.values, expected.values)
    columns = {
        name: pl.Series(values.astype(str).tolist(), dtype=pl.Enum(values.cat.categories.tolist()))
        if name in framed.categories
        else values.to_numpy()
        for name, values in framed.data.items()
    }
    polars = datasets.design_matrix(pl.DataFrame(columns), encoding=encoding)
    assert polars.names == expected.names
    np.testing.assert_array_equal(polars.values, expected.values)


def test_design_matrix_agrees_with_scikit_learn():
    bunch = datasets.load_default()
    design = datasets.design_matrix(bunch, encoding="onehot")
    categories = [list(bunch.data[name].cat.categories) for name in bunch.categories]
    encoder = OneHotEncoder(categories=categories, sparse_output=False)
    expected = encoder.fit_transform(bunch.data[list(bunch.categories)])
    indicators = [i for i, name in enumerate(design.names) if "=" in name]
    np.testing.assert_array_equal(design.values[:, indicators], expected)
    numbers = [name for name in design.names if "=" not in name]
    plain = [i for i, name in enumerate(design.names) if "=" not in name]
    np.testing.assert_array_equal(design.values[:, plain], bunch.data[numbers])


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans(), st.integers(-5, 5)), min_size=1, max_size=12
    ),
    dummy=st.booleans(),
)
def test_design_matrix_of_a_plain_frame_agrees_with_pandas(rows, dummy):
    frame = pd.DataFrame(rows, columns=["letter", "flag", "number"])
    design = datasets.design_matrix(frame, encoding="dummy" if dummy else "onehot")
    expected = pd.get_dummies(frame, columns=["letter"], prefix_sep="=", drop_first=dummy, dtype=float)
    assert sorted(design.names) == sorted(expected.columns)
    np.testing.assert_array_equal(design.values, expected[list(design.names)].to_numpy(dtype=float))


def test_drop_sensitive_takes_one_name_or_several():
    adult = datasets.load_adult()
    names = datasets.design_matrix(adult, drop_sensitive="gender").names
    assert not [name for name in names if name.startswith("sex=")]
    assert [name for name in names if name.startswith("race=")]
    both = datasets.design_matrix(adult, drop_sensitive=["gender", "race"])
    assert both.names == datasets.design_matrix(adult, drop_sensitive=True).names


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([1, 2], {}, "data must be a Bunch of fairfrontier.datasets or a dataframe, got list"),
        (pd.DataFrame({"a": [1]}), {"encoding": "binary"}, "encoding must be one of .* got 'binary'"),
        (pd.DataFrame({"a": [1]}), {"drop_sensitive": True}, "drop_sensitive needs data to be a Bunch"),
        (pd.DataFrame({"a": ["x", None]}), {}, "column 'a' of data must have no missing category, got 1"),
        (pd.DataFrame(), {}, "at least one feature"),
    ],
)
def test_design_matrix_refuses(data, options, message):
    with pytest.raises(InvalidInputError, match=message):
        datasets.design_matrix(data, **options)


def test_drop_sensitive_names_the_attributes_it_knows():
    with pytest.raises(InvalidInputError, match=r"attributes of 'bank' \(age\), got 'gender'"):
        datasets.design_matrix(datasets.load_bank(as_frame=False), drop_sensitive="gender")


def test_design_matrices_can_be_compared() -> None:
    first, second = (datasets.design_matrix(datasets.load_compas()) for _ in range(2))
    # Equal is the same object; the values of two are compared as arrays.
    assert first != second
    assert [first, second].index(second) == 1
    np.testing.assert_array_equal(first.values, second.values)
