"""Default: who fails to pay the next credit-card bill."""

from typing import Any

from fairfrontier.datasets._archive import read_table
from fairfrontier.datasets._bunch import AsFrame, Recipe, deliver

DESCR = """\
Default of credit-card clients
==============================
Task        Does a client default on the next month's payment? 1: yes (22.12 %), 0: no.
Size        30,000 clients, 23 features: 20 whole numbers, 3 categories (SEX, EDUCATION, MARRIAGE).
Sensitive   gender (Female 18,112, Male 11,888); age_original in years; education; marriage.
Source      UCI Machine Learning Repository, "Default of Credit Card Clients", donated by I-C. Yeh; a bank in Taiwan,
            April to September 2005. Described in I-C. Yeh and C. Lien (2009), The comparisons of data mining
            techniques for the predictive accuracy of probability of default of credit card clients, Expert Systems
            with Applications 36.
Licence     CC BY 4.0.

Preparation
-----------
- `ID` is left out; the column names of the source are kept (there is a PAY_0 and no PAY_1).
- The codes of SEX, EDUCATION and MARRIAGE are named. Codes that the source does not explain stay visible:
  EDUCATION "code 0" (14), "code 5" (280), "code 6" (51), MARRIAGE "code 0" (54).
- No value is missing.

Against the paper
-----------------
Rows agree: 30,000. So do the 23 features before encoding. The paper also says that categories were one-hot encoded:
that makes 33 columns, and 23 is then the number before it.

Known limits
------------
- PAY_0 to PAY_6 take the values -2 and 0, which the source does not explain.
- 35 rows repeat an earlier one.
- One bank during a crisis of consumer credit: base rates do not carry over.
"""


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
        descr=DESCR,
    )
    return deliver(recipe, return_X_y=return_X_y, as_frame=as_frame)
