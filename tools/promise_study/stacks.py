"""FairStacks as the study asks it: plain, randomised, and with a promise."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import FairStacksClassifier
from fairfrontier._rows import Rows
from fairfrontier.exceptions import InfeasibleError
from fairfrontier.metrics._contrasts import build_contrasts
from fairfrontier.quantify._promise import promise_advice, promised_candidates

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
# The share of the rows that a guarantee with rows of its own is calibrated on. Of .3, .5, .7 and .85, tried with 30
# draws each on Adult (gender, 2,000 and 5,000 rows), .5 and .7 could promise most often, with no difference between
# the two beyond noise; .6 is their middle, and was not tried itself.
CALIBRATION_SHARE = 0.6
# Stacks that are looked at between two neighbours on a path, to find the best in hindsight.
_BETWEEN = 5
_NEW_SIGNATURE = "confidence" in inspect.signature(FairStacksClassifier.select).parameters
# What records depend on besides their cell: those of other settings must not be counted together.
SETTINGS = {
    "calibration_share": CALIBRATION_SHARE,
    "confidence": CONFIDENCE,
    "select": "with a confidence" if _NEW_SIGNATURE else "without a confidence",
}


# The four-fifths rule as a request; every other request is a number, the least fairness.
LEAST_RATIO = 0.8
RATIO = f"ratio {LEAST_RATIO:g}"
Asked = float | str

# Ways that are asked in some draws only, to save time.
SELDOM = ("FairStacks guaranteed, randomised", "FairStacks cross-fitted, randomised")


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows that a method is given, and the measure that it is asked for."""

    H: Floats
    y: NDArray[np.int64]
    group: NDArray[np.str_]
    measure: str

    def rows(self, which: NDArray) -> "Draw":
        """Return some of the rows."""
        return Draw(self.H[which], self.y[which], self.group[which], self.measure)


# From the base models' scores (n, k) and the groups (n,) to the probabilities (n,) of a positive decision.
Decide = Callable[[Floats, NDArray[np.str_]], Floats]
# From a request to a decision.
Method = Callable[[Asked], Decide]


def fitted(draw: Draw) -> FairStacksClassifier:
    """Return a stack fitted to the rows of a draw."""
    model = FairStacksClassifier("precomputed", fairness=draw.measure, random_state=0)
    return model.fit(draw.H, draw.y, sensitive_features=draw.group)


def limits(asked: Asked) -> dict[str, float]:
    """Return a request as what `select` takes."""
    return {"min_ratio": LEAST_RATIO} if asked == RATIO else {"min_fairness": float(asked)}


def methods(draw: Draw, model: FairStacksClassifier, seed: int) -> dict[str, Method]:
    """Return the ways to ask a stack, by name; `model` is fitted to all rows of the draw.

    Where `select` takes no confidence yet, the guarantee is put together from its parts, and the rest is left out.
    """
    of_all: dict[str, Method] = {"FairStacks": lambda asked: _decide(model.select(**limits(asked)))}
    calibrating = np.zeros(len(draw.y), dtype=bool)
    some = np.random.default_rng(seed).permutation(len(draw.y))[: int(CALIBRATION_SHARE * len(draw.y))]
    calibrating[some] = True
    rest, own = draw.rows(~calibrating), draw.rows(calibrating)
    part: list[FairStacksClassifier] = []

    def fitted_to_part() -> FairStacksClassifier:
        if not part:
            part.append(fitted(rest))
        return part[0]

    if not _NEW_SIGNATURE:
        return of_all | {"FairStacks guaranteed": lambda asked: _guaranteed(fitted_to_part(), own, asked)}

    def ask(source: Callable[[], FairStacksClassifier], **options: Any) -> Method:
        return lambda asked: _decide(source().select(**limits(asked), **options))

    promise = {"confidence": CONFIDENCE, "calibration": (own.H, own.y, own.group)}
    return of_all | {
        "FairStacks randomised": ask(lambda: model, randomize=True),
        "FairStacks guaranteed": ask(fitted_to_part, **promise),
        "FairStacks guaranteed, randomised": ask(fitted_to_part, **promise, randomize=True),
        "FairStacks cross-fitted": ask(lambda: model, confidence=CONFIDENCE),
        "FairStacks cross-fitted, randomised": ask(lambda: model, confidence=CONFIDENCE, randomize=True),
    }


def along_the_path(model: FairStacksClassifier, H: Floats) -> Floats:
    """Return the decisions (n, c) of the stacks on a path and of many between them."""
    stacks = np.column_stack([model.path_.weights, model.path_.intercept])
    places = np.linspace(0.0, len(stacks) - 1.0, _BETWEEN * (len(stacks) - 1) + 1)
    # Between two targets the weights are linear in the target, so that these are the exact stacks there.
    between = np.column_stack([np.interp(places, np.arange(len(stacks)), column) for column in stacks.T])
    return (H @ between[:, :-1].T + between[:, -1] > model.threshold).astype(np.float64)


def _decide(model: FairStacksClassifier) -> Decide:
    def decide(H: Floats, group: NDArray[np.str_]) -> Floats:
        if getattr(model, "mixture_", None) is not None:
            return model.predict_proba(H)[:, 1]
        return np.asarray(model.decision_function(H) > 0, dtype=np.float64)

    return decide


def _guaranteed(model: FairStacksClassifier, own: Draw, asked: float) -> Decide:
    """Return the most accurate stack of a path that is promised on rows of its own."""
    cells = Rows.validated(own.y == 1, own.H, own.group).cells(labelled=True)
    contrasts = build_contrasts(own.measure, cells.keys, cells.attributes)
    member = contrasts.membership[:, cells.codes].astype(np.float64)
    decisions = own.H @ model.path_.weights.T + model.path_.intercept > model.threshold
    positives, sizes = (member @ decisions).T, member.sum(axis=1)
    fairness, accuracy = model.points_.fairness[:-1], model.points_.accuracy[:-1]
    order = np.arange(int(np.argmax(fairness)), -1, -1)
    found = promised_candidates(
        positives, sizes, contrasts.sets, min_fairness=asked, confidence=CONFIDENCE, order=order
    )
    if not found.any():
        options = {"min_fairness": asked, "confidence": CONFIDENCE}
        raise InfeasibleError(promise_advice(positives[order[0]], sizes, contrasts.sets, len(own.y), **options))
    best = int(np.argmax(np.where(found, accuracy, -1.0)))
    weights, intercept = model.path_.weights[best], model.path_.intercept[best]
    return lambda H, group: (H @ weights + intercept > model.threshold).astype(np.float64)
