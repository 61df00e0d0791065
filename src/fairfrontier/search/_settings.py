"""The parameters of a search, checked before anything is read."""

from typing import Any

from fairfrontier import _validation as validate
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.search._plan import CROSS_FIT_BELOW
from fairfrontier.search._training import LEAST_STEPS


def checked_settings(params: dict[str, Any], n_rows: int) -> dict[str, Any]:
    """Return what the plan says about a search.

    Parameters
    ----------
    params : dict
        The parameters of `FairSearch`.
    n_rows : int
        Rows of the table.
    """
    if named_measure(params["fairness"]).comparison not in ("difference", "ratio"):
        raise InvalidInputError(f"fairness must compare rates by differences or quotients; got {params['fairness']!r}")
    validate.one_of(params["sensitive_mode"], ("separate", "intersectional"), parameter="sensitive_mode")
    validate.number(params["margin"], parameter="margin", low=0.0, high=1.0)
    validate.number(params["confidence"], parameter="confidence", low=0.5, high=1.0, strict=True)
    validate.number(params["threshold"], parameter="threshold", low=0.0, high=1.0)
    validate.whole_number(params["max_steps"], parameter="max_steps", low=LEAST_STEPS, high=1000)
    validate.whole_number(params["random_state"], parameter="random_state", low=0, high=2**32 - 1)
    if not isinstance(params["cross_fit"], bool):
        validate.one_of(params["cross_fit"], ("auto",), parameter="cross_fit")
    for name in ("min_fairness", "min_ratio"):
        if params[name] is not None:
            validate.number(params[name], parameter=name, low=0.0, high=1.0)
    if params["min_ratio"] is not None and params["fairness"] not in ("demographic_parity", "impact_ratio"):
        raise InvalidInputError(f"min_ratio is for fairness='demographic_parity'; got {params['fairness']!r}")
    if params["time"] is not None:
        validate.number(params["time"], parameter="time", low=0.0, strict=True)
    names = ("fairness", "min_fairness", "min_ratio", "margin", "confidence", "max_steps", "time")
    return {
        **{name: params[name] for name in (*names, "sensitive_mode", "use_sensitive", "threshold")},
        "cross_fit": bool(n_rows < CROSS_FIT_BELOW if params["cross_fit"] == "auto" else params["cross_fit"]),
        "drop": list(params["drop"]),
        "keep": list(params["keep"]),
        "seed": int(params["random_state"]),
    }
