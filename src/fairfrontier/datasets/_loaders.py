"""The five loaders: which columns are features, which are sensitive, and what the target is."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier.datasets import _descr
from fairfrontier.datasets._bunch import AsFrame, Recipe, deliver
from fairfrontier.datasets._files import Column, Table, read_table
from fairfrontier.exceptions import InvalidInputError


def load_adult(*, return_X_y: bool = False, as_frame: AsFrame = "auto") -> Any:
    """Load the Adult income data: 48,842 people of the 1994 US census survey, 13 features.

    The target is 1 for an income above 50,000 dollars. The sensitive features are `gender` (Female, Male), `race`
    (Non-white, White) and `race_original` with its five values.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        True: pandas frames with typed columns. False: numpy only; `data` is a float64 array in which a categorical
        column holds positions in ``categories[column]``, and `sensitive_features` is a dict of 1-D arrays.
        "auto": True where pandas is installed.

    Returns
    -------
    Bunch or (data, target)
        With `data` of shape (48842, 13), `target` of shape (48842,), `sensitive_features`, `frame` (data and target
        in one frame; None with ``as_frame=False``), `DESCR`, `name`, `feature_names`, `target_name`,
        `target_names`, `categories`, `sensitive_sources` (attribute to the features that hold it) and
        `paper_encoding` (see `design_matrix`).

    Raises
    ------
    DataFileError
        If the data file is absent or damaged.

    Examples
    --------
    >>> from fairfrontier.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.data.shape, round(float(adult.target.mean()), 4)
    ((48842, 13), 0.2393)
    >>> list(adult.sensitive_features)
    ['gender', 'race', 'race_original']
    """
    table = read_table("adult")
    income = table.pop("income")
    white = _is(table["race"], "White")
    recipe = Recipe(
        name="adult",
        features=table,
        target_name="income_over_50k",
        target=Column(_is(income, ">50K").astype(np.int64)),
        target_names=("<=50K", ">50K"),
        attributes={
            "gender": table["sex"],
            "race": _binary(white, "Non-white", "White"),
            "race_original": table["race"],
        },
        sources={"gender": ("sex",), "race": ("race",)},
        paper_encoding="dummy",
        descr=_descr.ADULT,
    )
    return deliver(recipe, return_X_y=return_X_y, as_frame=as_frame)


def load_bank(*, return_X_y: bool = False, as_frame: AsFrame = "auto") -> Any:
    """Load the Bank marketing data: 45,211 clients of a Portuguese bank, 16 features.

    The target is 1 if the client subscribed a term deposit. The sensitive features are `age` (whether
    33 <= age <= 63), `age_original` in years, and `marital`.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        As in `load_adult`.

    Returns
    -------
    Bunch or (data, target)
        As in `load_adult`, with `data` of shape (45211, 16).

    Raises
    ------
    DataFileError
        If the data file is absent or damaged.

    Examples
    --------
    >>> from fairfrontier.datasets import load_bank
    >>> X, y = load_bank(return_X_y=True)
    >>> X.shape, round(float(y.mean()), 4)
    ((45211, 16), 0.117)
    """
    table = read_table("bank")
    deposit = table.pop("deposit")
    years = table["age"].values
    recipe = Recipe(
        name="bank",
        features=table,
        target_name="deposit",
        target=Column(_is(deposit, "yes").astype(np.int64)),
        target_names=("no", "yes"),
        attributes={
            "age": _binary((years >= 33) & (years <= 63), "under 33 or over 63", "33 to 63"),
            "age_original": table["age"],
            "marital": table["marital"],
        },
        sources={"age": ("age",)},
        paper_encoding="onehot",
        descr=_descr.BANK,
    )
    return deliver(recipe, return_X_y=return_X_y, as_frame=as_frame)


def load_compas(
    *,
    races: Literal["two", "all"] = "two",
    features: Literal["binary", "raw"] = "binary",
    return_X_y: bool = False,
    as_frame: AsFrame = "auto",
) -> Any:
    """Load the COMPAS recidivism data: 5,278 defendants of Broward County, Florida, 13 binary features.

    The target is 1 if the person was charged with a new crime within two years. The sensitive features are `gender`
    (Female, Male), `race` (Non-white, White), `race_original` and `age_group`. Names, dates and case numbers are not
    in the data.

    Parameters
    ----------
    races : {"two", "all"}, default="two"
        "two": the 5,278 African-American and Caucasian defendants, as in the paper. "all": all 6,172 of six races.
    features : {"binary", "raw"}, default="binary"
        "binary": 13 columns of 0 and 1. "raw": the 9 columns that they are made of.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        As in `load_adult`.

    Returns
    -------
    Bunch or (data, target)
        As in `load_adult`, and `scores`: COMPAS's own `decile_score` and `score_text`. They are what an audit of
        COMPAS looks at, and not features.

    Raises
    ------
    DataFileError
        If the data file is absent or damaged.
    InvalidInputError
        If `races` or `features` has another value.

    Examples
    --------
    >>> from fairfrontier.datasets import load_compas
    >>> load_compas().data.shape, load_compas(races="all", features="raw").data.shape
    ((5278, 13), (6172, 9))
    """
    _one_of("races", races, ("two", "all"))
    _one_of("features", features, ("binary", "raw"))
    table = read_table("compas")
    if races == "two":
        both = _is(table["race"], "African-American") | _is(table["race"], "Caucasian")
        table = {name: column.rows(both) for name, column in table.items()}
    target = table.pop("two_year_recid")
    scores = {name: table.pop(name) for name in ("decile_score", "score_text")}
    white = _is(table["race"], "Caucasian")
    recipe = Recipe(
        name="compas",
        features=_compas_binary(table) if features == "binary" else table,
        target_name="two_year_recid",
        target=target,
        target_names=("no new charge", "new charge"),
        attributes={
            "gender": table["sex"],
            "race": _binary(white, "Non-white", "White"),
            "race_original": table["race"],
            "age_group": table["age_cat"],
        },
        sources={"gender": ("male",), "race": ("white",)}
        if features == "binary"
        else {"gender": ("sex",), "race": ("race",)},
        paper_encoding="onehot",
        descr=_descr.COMPAS,
        extra={"scores": scores},
    )
    return deliver(recipe, return_X_y=return_X_y, as_frame=as_frame)


def load_default(*, return_X_y: bool = False, as_frame: AsFrame = "auto") -> Any:
    """Load the Default data: 30,000 credit-card clients of a bank in Taiwan, 23 features.

    The target is 1 if the client defaulted on the next month's payment. The sensitive features are `gender` (Male,
    Female), `age_original` in years, `education` and `marriage`.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        As in `load_adult`.

    Returns
    -------
    Bunch or (data, target)
        As in `load_adult`, with `data` of shape (30000, 23).

    Raises
    ------
    DataFileError
        If the data file is absent or damaged.

    Examples
    --------
    >>> from fairfrontier.datasets import load_default
    >>> X, y = load_default(return_X_y=True)
    >>> X.shape, round(float(y.mean()), 4)
    ((30000, 23), 0.2212)
    """
    table = read_table("default")
    target = table.pop("default_next_month")
    recipe = Recipe(
        name="default",
        features=table,
        target_name="default_next_month",
        target=target,
        target_names=("paid", "default"),
        attributes={
            "gender": table["SEX"],
            "age_original": table["AGE"],
            "education": table["EDUCATION"],
            "marriage": table["MARRIAGE"],
        },
        sources={"gender": ("SEX",)},
        paper_encoding="onehot",
        descr=_descr.DEFAULT,
    )
    return deliver(recipe, return_X_y=return_X_y, as_frame=as_frame)


def load_communities(
    *,
    white_cut: float = 0.5,
    missing: Literal["impute", "keep"] = "impute",
    return_X_y: bool = False,
    as_frame: AsFrame = "auto",
) -> Any:
    """Load the Communities and Crime data: 1,994 US communities, 100 features, a regression target.

    The target is the violent-crime rate per head, scaled to [0, 1]. The sensitive features are `race` (whether the
    community is majority white) and the four race shares in their normalised form.

    Parameters
    ----------
    white_cut : float in [0, 1], default=0.5
        A community is "majority white" if its normalised share ``racePctWhite`` is above this cut. The normalised
        scale is not a percentage: see `DESCR`.
    missing : {"impute", "keep"}, default="impute"
        The single missing value, in ``OtherPerCap``: "impute" puts the median of the column, "keep" leaves NaN.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        As in `load_adult`.

    Returns
    -------
    Bunch or (data, target)
        As in `load_adult`, with `data` of shape (1994, 100) and a float `target`.

    Raises
    ------
    DataFileError
        If the data file is absent or damaged.
    InvalidInputError
        If `white_cut` leaves a group empty or `missing` has another value.

    Examples
    --------
    >>> from fairfrontier.datasets import load_communities
    >>> communities = load_communities()
    >>> communities.data.shape, round(float(communities.target.mean()), 4)
    ((1994, 100), 0.238)
    """
    _one_of("missing", missing, ("impute", "keep"))
    table = read_table("communities")
    target = table.pop("ViolentCrimesPerPop")
    majority = table["racePctWhite"].values > white_cut
    if majority.all() or not majority.any():
        raise InvalidInputError(
            f"white_cut must leave communities on both sides of racePctWhite, got {white_cut!r}: try 0.5"
        )
    if missing == "impute":
        table = {name: _impute(column) for name, column in table.items()}
    shares = ("racePctWhite", "racepctblack", "racePctAsian", "racePctHisp")
    recipe = Recipe(
        name="communities",
        features=table,
        target_name="ViolentCrimesPerPop",
        target=target,
        target_names=(),
        attributes={
            "race": _binary(majority, "Not majority white", "Majority white"),
            **{share: table[share] for share in shares},
        },
        sources={"race": shares},
        paper_encoding="onehot",
        descr=_descr.COMMUNITIES,
    )
    return deliver(recipe, return_X_y=return_X_y, as_frame=as_frame)


def _compas_binary(table: Table) -> Table:
    priors = table["priors_count"].values
    flags = {
        "male": _is(table["sex"], "Male"),
        "white": _is(table["race"], "Caucasian"),
        "age_under_25": _is(table["age_cat"], "Less than 25"),
        "age_25_to_45": _is(table["age_cat"], "25 - 45"),
        "age_over_45": _is(table["age_cat"], "Greater than 45"),
        "priors_0": priors == 0,
        "priors_1_to_3": (priors >= 1) & (priors <= 3),
        "priors_over_3": priors > 3,
        "any_juvenile_felony": table["juv_fel_count"].values > 0,
        "any_juvenile_misdemeanor": table["juv_misd_count"].values > 0,
        "any_juvenile_other": table["juv_other_count"].values > 0,
        "charge_felony": _is(table["c_charge_degree"], "F"),
        "charge_misdemeanor": _is(table["c_charge_degree"], "M"),
    }
    return {name: Column(flag.astype(np.int64)) for name, flag in flags.items()}


def _is(column: Column, label: str) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = column.labels() == label
    return flags


def _binary(flag: NDArray[np.bool_], no: str, yes: str) -> Column:
    return Column(flag.astype(np.int64), (no, yes))


def _impute(column: Column) -> Column:
    absent = np.isnan(column.values)
    return Column(np.where(absent, np.nanmedian(column.values), column.values)) if absent.any() else column


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
