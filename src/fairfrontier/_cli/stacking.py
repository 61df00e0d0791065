"""Fair stacks of the models in a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._cli.read import AuditData
from fairfrontier._cli.request import Request
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import contrasts_for_fit
from fairfrontier.metrics import ACCURACY_MEASURES
from fairfrontier.optimize._fairstacks import FairStacksClassifier, FairStacksRegressor
from fairfrontier.optimize._folds import assign_folds
from fairfrontier.optimize._ridge_path import FairPath
from fairfrontier.quantify._weights import PointWeight, Weight
from fairfrontier.report import Evaluation, evaluate

FAMILY = "fair stack"
# With fewer rows, halves of them say little about a stack.
MIN_ROWS = 200
# Models and scores that a trial stack is fitted to, at the most: more hardly change what it can reach.
MAX_MODELS = 500
_TRIAL = 2**23
# With more models than this a trial tunes one ridge for all families.
_MANY = 100
# Scores that are converted to double precision at once.
_BLOCK = 2**24
POINTS = 20
# The rows are dealt into this many parts, of which some are held out.
PARTS = 10


@dataclass(frozen=True)
class Operating:
    """Where on the path to stop: at a largest score bias `tau`, at a least fairness, or at neither (best FAUC)."""

    tau: float | None = None
    min_fairness: float | None = None


def new_stack(request: Request, weight: Weight, names: Sequence[str], **options: Any) -> Any:
    """Return an unfitted stack of precomputed scores."""
    regression = ACCURACY_MEASURES[request.accuracy].regression
    kind = FairStacksRegressor if regression else FairStacksClassifier
    return kind(
        list(names),
        fairness=request.fairness,
        # A point weight values one level only, and on 20 points says too little to tune by.
        weight=weight if not isinstance(weight, PointWeight) else None,
        cv="precomputed",
        sensitive_mode=request.sensitive_mode,
        threshold=request.threshold,
        random_state=0,
        **options,
    )


def split_rows(request: Request, data: AuditData, n_parts: int, seed: int = 0) -> IntArray:
    """Return a part number for each row, stratified by label and groups."""
    regression = ACCURACY_MEASURES[request.accuracy].regression
    contrasts = contrasts_for_fit(
        request.fairness,
        label=None if regression else data.y,
        sensitive_features=data.sensitive,
        n_rows=len(data.y),
        sensitive_mode=request.sensitive_mode,
    )
    return assign_folds(contrasts, n_parts, seed)


def rows_of(data: AuditData, rows: IntArray) -> tuple[Any, NDArray[Any], dict[str, NDArray[Any]]]:
    """Return scores, labels and groups of some rows."""
    return data.scores[rows], data.y[rows], {name: values[rows] for name, values in data.sensitive.items()}


def trial(request: Request, data: AuditData, base: Evaluation, weight: Weight) -> tuple[Evaluation | None, str]:
    """Say what a fair stack of the models would reach, by cross-fitting in two halves.

    Each half is scored by a stack that was fitted on (a part of) the other, so that every row counts and none is used
    twice.

    Returns
    -------
    Evaluation or None
        The points of the path on all rows; None where no stack can be fitted.
    str
        How it came about, or why it did not.
    """
    if len(data.y) < MIN_ROWS:
        return None, f"No fair stack was tried: it takes {MIN_ROWS} rows to fit and value one; here are {len(data.y)}."
    models = _spread(base.points.accuracy[:-1])
    try:
        scores = _cross_fitted(request, data, weight, models)
    except InvalidInputError as error:
        return None, f"A fair stack could not be fitted: {error}."
    note = "The fair stack is cross-fitted: each half of the rows is scored by a stack fitted on the other half."
    if len(models) < len(data.names):
        note += f" It is made of {len(models)} of the {len(data.names):,} models; with `stack` it uses all."
    names = [f"{family_name(data.names)}/{i + 1:02d}" for i in range(scores.shape[1])]
    return _valued(request, data, scores, names), note


def _spread(accuracy: FloatArray) -> IntArray:
    """Return all models, or of many some good and some diverse ones: half the best, half evenly spaced."""
    if len(accuracy) <= MAX_MODELS:
        return np.arange(len(accuracy))
    order = np.argsort(-accuracy, kind="stable")
    best, rest = order[: MAX_MODELS // 2], order[MAX_MODELS // 2 :]
    spaced = rest[np.linspace(0, len(rest) - 1, MAX_MODELS - len(best)).astype(np.intp)]
    return np.sort(np.concatenate([best, spaced]))


def _cross_fitted(request: Request, data: AuditData, weight: Weight, models: IntArray) -> NDArray[Any]:
    """Return the path's scores of every row, by a stack that has not seen the row, shape (n, POINTS)."""
    halves = split_rows(request, data, 2)
    scores = np.empty((len(data.y), POINTS))
    names = [data.names[i] for i in models]
    for half in (0, 1):
        fit_rows = np.flatnonzero(halves == half)[: max(MIN_ROWS // 2, _TRIAL // len(models))]
        groups = {name: values[fit_rows] for name, values in data.sensitive.items()}
        scales = "cv" if len(models) <= _MANY else None
        stack = new_stack(request, weight, names, n_points=POINTS, family_scales=scales)
        stack.fit(data.scores[np.ix_(fit_rows, models)], data.y[fit_rows], sensitive_features=groups)
        _score_rows(stack, data.scores, np.flatnonzero(halves != half), models, scores)
    return scores


def _score_rows(stack: Any, matrix: NDArray[Any], rows: IntArray, models: IntArray, scores: NDArray[Any]) -> None:
    """Fill in the path's scores of some rows, in blocks: the whole matrix in double precision may not fit."""
    size = max(1, _BLOCK // len(models))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        scores[block] = stack.predict_path(matrix[np.ix_(block, models)])


def _valued(request: Request, data: AuditData, scores: NDArray[Any], names: Sequence[str]) -> Evaluation:
    regression = ACCURACY_MEASURES[request.accuracy].regression
    return evaluate(
        data.y,
        scores if regression else np.clip(scores, 0.0, 1.0),
        sensitive_features=data.sensitive,
        names=names,
        include_constant=False,
        **request.measures(),
    )


def family_name(names: Sequence[str]) -> str:
    """Return a name for the stack's family that no model's name begins with."""
    family = FAMILY
    while any(name.startswith(f"{family}/") for name in names):
        family += "*"
    return family


def path_names(names: Sequence[str], path: FairPath) -> list[str]:
    """Return names for the points of a path, none of which is a model's name, with the score bias of each.

    With one contrast the bias has a sign: beyond zero the score is over-corrected, where the fairest decisions are.
    """
    bias = [f"{t:+.3f}" for t in path.target] if path.target.ndim == 1 else [f"up to {tau:.3f}" for tau in path.tau]
    return [f"{family_name(names)}/{i + 1:02d}, score bias {one}" for i, one in enumerate(bias)]


@dataclass(frozen=True, eq=False)
class FittedStack:
    """A stack fitted on one part of a file and valued on the rest.

    Attributes
    ----------
    model : FairStacksClassifier or FairStacksRegressor
        At the chosen operating point.
    held_out : AuditData
        The rows that it has not seen.
    base, stack : Evaluation
        The models, and the operating point followed by the path, on these rows.
    n_fit : int
        Rows that it was fitted to.
    """

    model: Any
    held_out: AuditData
    base: Evaluation
    stack: Evaluation
    n_fit: int


def fit_stack(
    request: Request, data: AuditData, weight: Weight, operating: Operating, *, test_size: float, seed: int
) -> FittedStack:
    """Fit a stack on one part of the rows and value it on the rest, `test_size` of them to the nearest tenth."""
    is_test = split_rows(request, data, PARTS, seed) < held_out_parts(test_size)
    H, y, groups = rows_of(data, np.flatnonzero(~is_test))
    model = operate(new_stack(request, weight, data.names).fit(H, y, sensitive_features=groups), operating)
    n_fit = len(y)
    H, y, groups = rows_of(data, np.flatnonzero(is_test))
    held_out = AuditData(y, data.positive, groups, H, data.names, data.left_out)
    base = evaluate(y, H, sensitive_features=groups, names=data.names, **request.measures())
    scores = np.empty((len(y), len(model.path_)))
    _score_rows(model, H, np.arange(len(y)), np.arange(H.shape[1]), scores)
    chosen = H.astype(np.float64) @ model.weights_ + model.intercept_
    names = [f"{family_name(data.names)}/chosen", *path_names(data.names, model.path_)]
    stack = _valued(request, held_out, np.column_stack([chosen, scores]), names)
    return FittedStack(model, held_out, base, stack, n_fit)


def held_out_parts(test_size: float) -> int:
    """Return how many of the parts are held out."""
    return int(np.clip(round(test_size * PARTS), 1, PARTS - 1))


def operate(model: Any, operating: Operating) -> Any:
    if operating.tau is not None:
        return model.at(tau=operating.tau)
    if operating.min_fairness is not None:
        return model.select(min_fairness=operating.min_fairness)
    return model
