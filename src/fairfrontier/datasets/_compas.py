"""COMPAS recidivism: who is charged again within two years."""

from typing import Any, Literal

import numpy as np

from fairfrontier.datasets._bunch import (
    AsFrame,
    Column,
    Table,
    binary_column,
    check_choice,
    deliver,
    read_table,
)

DESCR = """\
COMPAS recidivism
=================
Task        Is a defendant charged with a new crime within two years? 1: yes (47.04 %), 0: no.
Size        5,278 defendants, 13 features of 0 and 1. With races="all": 6,172 (45.51 %). With features="raw": 9 columns.
Sensitive   gender (Female 1,031, Male 4,247); race (Non-white 3,175, White 2,103); race_original; age_group, three
            values. With races="all": six races, and race joins the five that are not "Caucasian".
Source      ProPublica (2016), Machine Bias, by J. Angwin, J. Larson, S. Mattu and L. Kirchner: public records of
            Broward County, Florida, screened in 2013 and 2014 (compas-scores-two-years).
Licence     Published by ProPublica from public records with its analysis; no licence comes with the file.

Preparation
-----------
- ProPublica's filter: charge within 30 days of the screening, recidivism known, no ordinary traffic offence, a score
  present: 6,172 of 7,214 rows. Of these, 5,278 are African-American or Caucasian.
- Names, dates (birth, screening, offence, jail), case numbers and charge texts are not in the data.
- The 13 features: male; white; age under 25, 25 to 45, over 45; no prior offence, 1 to 3, more than 3; any juvenile
  felony, any juvenile misdemeanor, any other juvenile offence; the charge a felony, the charge a misdemeanor.
- features="raw": sex, age in years, age_cat, race, three juvenile counts, priors_count, c_charge_degree.
- `scores` holds COMPAS's own decile_score (1 to 10) and score_text; they are not features.
- No value is missing.

Against the paper
-----------------
Rows agree: 5,278. The paper has 13 binary features and does not list them. Ours are the ten that are usual in the
literature for these 5,278 rows (sex, race, three groups of age and of priors, two degrees of charge) and one for
each juvenile count. The paper calls race "white or non-white"; in its 5,278 rows, non-white means African-American.

Known limits
------------
- M. Bao and others (2021), It's COMPASlicated: an arrest or a charge is not a crime, and policing differs between
  groups, so the target itself is biased; the data do not support claims about criminal justice in the real world.
- Race is what the county had on record. The 13 features repeat themselves: 4,948 rows equal an earlier one.
- The people are real. Do not try to find out who they are.
"""


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
    check_choice("races", races, ("two", "all"))
    check_choice("features", features, ("binary", "raw"))
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
        descr=DESCR,
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
