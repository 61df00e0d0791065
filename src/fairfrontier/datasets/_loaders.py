"""The loaders: Adult, Bank marketing, COMPAS, Default of credit-card clients, Communities and Crime."""

from typing import Any, Literal

import numpy as np

from fairfrontier._validation import one_of
from fairfrontier.datasets._bunch import AsFrame, Column, Table, binary_column, deliver, read_table
from fairfrontier.exceptions import InvalidInputError


def load_adult(*, return_X_y: bool = False, as_frame: AsFrame = "auto") -> Any:
    """Load the Adult income data: 48,842 people of the 1994 US census survey, 13 features.

    The target is 1 for an income above 50,000 dollars. The sensitive features are `gender` (Female, Male),
    `race` (Non-white, White) and `race_original` with its five values.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        True: pandas frames with typed columns. False: numpy only; `data` is a float64 array in which a
        categorical column holds positions in ``categories[column]``, and `sensitive_features` is a dict of 1-D
        arrays. "auto": True where pandas is installed.

    Returns
    -------
    Bunch or (data, target)
        With `data` of shape (48842, 13), `target` of shape (48842,), `sensitive_features`, `frame` (data and
        target in one frame; None with ``as_frame=False``), `DESCR`, `name`, `feature_names`, `target_name`,
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
    white = table["race"].equals("White")
    return deliver(
        name="adult",
        features=table,
        target_name="income_over_50k",
        target=Column(income.equals(">50K").astype(np.int64)),
        target_names=("<=50K", ">50K"),
        attributes={
            "gender": table["sex"],
            "race": binary_column(white, "Non-white", "White"),
            "race_original": table["race"],
        },
        sources={"gender": ("sex",), "race": ("race",)},
        paper_encoding="dummy",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_bank(*, return_X_y: bool = False, as_frame: AsFrame = "auto") -> Any:
    """Load the Bank marketing data: 45,211 clients of a Portuguese bank, 16 features.

    The target is 1 if the client subscribed to a term deposit. The sensitive features are `age` (whether
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
    return deliver(
        name="bank",
        features=table,
        target_name="deposit",
        target=Column(deposit.equals("yes").astype(np.int64)),
        target_names=("no", "yes"),
        attributes={
            "age": binary_column((years >= 33) & (years <= 63), "under 33 or over 63", "33 to 63"),
            "age_original": table["age"],
            "marital": table["marital"],
        },
        sources={"age": ("age",)},
        paper_encoding="onehot",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_compas(
    *,
    races: Literal["two", "all"] = "two",
    features: Literal["binary", "raw"] = "binary",
    return_X_y: bool = False,
    as_frame: AsFrame = "auto",
) -> Any:
    """Load the COMPAS recidivism data: 5,278 defendants of Broward County, Florida, 13 binary features.

    The target is 1 if the person was charged with a new crime within two years. The sensitive features are
    `gender` (Female, Male), `race` (Non-white, White), `race_original` and `age_group`. Names, dates and case
    numbers are not in the data.

    Parameters
    ----------
    races : {"two", "all"}, default="two"
        "two": the 5,278 African-American and Caucasian defendants, as in the paper. "all": all 6,172.
    features : {"binary", "raw"}, default="binary"
        "binary": 13 columns of 0 and 1. "raw": the 9 columns that they are made of.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        As in `load_adult`.

    Returns
    -------
    Bunch or (data, target)
        As in `load_adult`, and `scores`: COMPAS's own `decile_score` and `score_text`. They are what an audit
        of COMPAS looks at, and not features.

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
    one_of(races, ("two", "all"), parameter="races")
    one_of(features, ("binary", "raw"), parameter="features")
    table = read_table("compas")
    if races == "two":
        both = table["race"].equals("African-American") | table["race"].equals("Caucasian")
        table = {name: column.rows(both) for name, column in table.items()}
    target = table.pop("two_year_recid")
    scores = {name: table.pop(name) for name in ("decile_score", "score_text")}
    white = table["race"].equals("Caucasian")
    return deliver(
        name="compas",
        features=_binary_features(table) if features == "binary" else table,
        target_name="two_year_recid",
        target=target,
        target_names=("no new charge", "new charge"),
        attributes={
            "gender": table["sex"],
            "race": binary_column(white, "Non-white", "White"),
            "race_original": table["race"],
            "age_group": table["age_cat"],
        },
        sources={"gender": ("male",), "race": ("white",)}
        if features == "binary"
        else {"gender": ("sex",), "race": ("race",)},
        paper_encoding="onehot",
        extra={"scores": scores},
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _binary_features(table: Table) -> Table:
    priors = table["priors_count"].values
    flags = {
        "male": table["sex"].equals("Male"),
        "white": table["race"].equals("Caucasian"),
        "age_under_25": table["age_cat"].equals("Less than 25"),
        "age_25_to_45": table["age_cat"].equals("25 - 45"),
        "age_over_45": table["age_cat"].equals("Greater than 45"),
        "priors_0": priors == 0,
        "priors_1_to_3": (priors >= 1) & (priors <= 3),
        "priors_over_3": priors > 3,
        "any_juvenile_felony": table["juv_fel_count"].values > 0,
        "any_juvenile_misdemeanor": table["juv_misd_count"].values > 0,
        "any_juvenile_other": table["juv_other_count"].values > 0,
        "charge_felony": table["c_charge_degree"].equals("F"),
        "charge_misdemeanor": table["c_charge_degree"].equals("M"),
    }
    return {name: Column(flag.astype(np.int64)) for name, flag in flags.items()}


def load_default(*, return_X_y: bool = False, as_frame: AsFrame = "auto") -> Any:
    """Load the Default data: 30,000 credit-card clients of a bank in Taiwan, 23 features.

    The target is 1 if the client defaulted on the next month's payment. The sensitive features are `gender`
    (Male, Female), `age_original` in years, `education` and `marriage`.

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
    return deliver(
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
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_communities(
    *,
    white_cut: float = 0.5,
    missing: Literal["impute", "keep"] = "impute",
    return_X_y: bool = False,
    as_frame: AsFrame = "auto",
) -> Any:
    """Load the Communities and Crime data: 1,994 US communities, 100 features, a regression target.

    The target is the violent-crime rate per head, scaled to [0, 1]. The sensitive features are `race` (whether
    the community is majority white) and the four race shares in their normalised form.

    Parameters
    ----------
    white_cut : float in [0, 1], default=0.5
        A community is "majority white" if its normalised share ``racePctWhite`` is above this cut. The scale is
        not a percentage: 0.5 is about 67 % white, and 0.235 about 50 % (see `DESCR`).
    missing : {"impute", "keep"}, default="impute"
        The single missing value, in ``OtherPerCap``: "impute" fills in the median of the column, "keep" leaves NaN.
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
    one_of(missing, ("impute", "keep"), parameter="missing")
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
    return deliver(
        name="communities",
        features=table,
        target_name="ViolentCrimesPerPop",
        target=target,
        target_names=(),
        attributes={
            "race": binary_column(majority, "Not majority white", "Majority white"),
            **{share: table[share] for share in shares},
        },
        sources={"race": shares},
        paper_encoding="onehot",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _impute(column: Column) -> Column:
    absent = np.isnan(column.values)
    return Column(np.where(absent, np.nanmedian(column.values), column.values)) if absent.any() else column
