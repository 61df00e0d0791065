"""Stacks against dense solves and brute evaluation."""

from itertools import pairwise
from typing import Any

import numpy as np
from tools.random_problems import references as ref
from tools.random_problems.problems import Problem
from tools.random_problems.tally import Tally

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError

# Without a ridge the stack may be determined by differences in the last digits.
RIDGE, NO_RIDGE = ("with a ridge", 1e-8), ("without", 1e-5)


def check(problem: Problem, index: int, tally: Tally) -> None:
    """Fit a stack of the problem's models, and compare its path, its operating points and its decisions."""
    model = _fit(problem, tally, alpha=problem.alpha)
    if model is None:
        return
    stack = ref.Stack.of(problem)
    kind = RIDGE if problem.alpha > 0 else NO_RIDGE
    if problem.alpha == 0 and stack.nearly_collinear():
        tally.refused["left out: no ridge, and models that are collinear but for single precision"] += 1
    else:
        tally.compare("KKT residual of the path", model.path_.kkt.max(), 0.0, tolerance=1e-7)
        _path(problem, model, stack, kind, tally)
        if stack.bias.shape[1] <= 3:
            _box(model, stack, kind, np.random.default_rng(index), tally)
    if not problem.regression:
        _decisions(problem, model, tally)
    if index % 100 == 50:
        _tuned(problem, tally)
    if index % 100 in (25, 75):
        _other_loss(problem, "log" if index % 100 == 25 else "hinge", tally)


def _fit(problem: Problem, tally: Tally, **options: Any) -> Any:
    """Return a fitted stack; None where the problem has none, which must be refused."""
    kind = ff.FairStacksRegressor if problem.regression else ff.FairStacksClassifier
    threshold = 0.5 if problem.threshold is None else problem.threshold
    given = problem.options()
    model = kind(
        "precomputed",
        fairness=given["fairness"],
        sensitive_mode=problem.mode,
        threshold=threshold,
        n_points=5,
        random_state=0,
        **options,
    )
    counts = len(set(problem.y[problem.row_weight > 0])) > 1
    try:
        fitted = model.fit(problem.scores, problem.y, sensitive_features=problem.groups, sample_weight=problem.weight)
    except (GroupError, InvalidInputError):
        tally.demand("stack refused where undefined", not counts)
        return None
    tally.demand("stack refused where undefined", counts)
    return fitted


def _path(problem: Problem, model: Any, stack: ref.Stack, kind: tuple[str, float], tally: Tally) -> None:
    """The scores of every stack on the path, on rows that count, are those of a dense solve at the same bias."""
    every = np.arange(stack.bias.shape[1])
    free = stack.solve(every[:0], np.zeros(0))
    b0 = stack.bias.T @ free[:-1]
    counted = stack.weight > 0
    target = np.atleast_2d(model.path_.target.T).T
    # With one contrast the path is known beforehand; with several it begins at the unconstrained stack.
    wanted = np.linspace(1, -1, 5)[:, None] * b0 if len(every) == 1 else np.vstack([b0, target[1:]])
    scores = model.predict_path(problem.scores)[counted]
    expected = np.stack([stack.design @ stack.solve(every, one) for one in wanted], axis=1)[counted]
    size = max(1.0, float(np.abs(expected).max()))
    tally.compare(f"path = dense solve ({kind[0]})", scores, expected, tolerance=kind[1], scale=size)
    reached = stack.bias.T @ model.path_.weights.T
    tally.compare(f"score bias = target ({kind[0]})", reached.T, target, tolerance=kind[1], scale=size)


def _box(model: Any, stack: ref.Stack, kind: tuple[str, float], rng: np.random.Generator, tally: Tally) -> None:
    """The constrained form has the least objective of all stacks with biases in the box."""
    tau = float(rng.random() * np.abs(model.path_.target[0]).max())
    there = model.at(tau=tau)
    found = np.append(there.weights_, there.intercept_)
    size = max(1.0, float(stack.weight @ stack.y**2))
    excess = stack.objective(found) - stack.best_in_box(tau)
    tally.compare(f"constrained form = best active set ({kind[0]})", excess, 0.0, tolerance=kind[1], scale=size)
    outside = max(float(np.abs(stack.bias.T @ there.weights_).max()) - tau, 0.0)
    tally.compare(f"constrained form in its box ({kind[0]})", outside, 0.0, tolerance=kind[1])


def _decisions(problem: Problem, model: Any, tally: Tally) -> None:
    """Every state of the exact path is what counting says at its position, and no state is missing."""
    rows = {
        "sensitive_features": problem.groups,
        "sample_weight": problem.weight,
        "fairness": problem.options()["fairness"],
    }
    states = model.decision_path(problem.scores, problem.y, **rows)
    target = np.atleast_2d(model.path_.target.T).T
    # With several contrasts the path is a line of its own, from the unconstrained stack at 1 to its end at 0.
    share = target @ target[0] / max(float(target[0] @ target[0]), 1e-300)
    off = float(np.abs(target - share[:, None] * target[0]).max()) > 1e-8 * max(float(np.abs(target).max()), 1e-300)
    own = target.shape[1] > 1 and model.path == "signed" and off
    ends_at = target[-1] if own else np.zeros_like(target[0])
    zero, one = (model.at(target=there).decision_function(problem.scores) for there in (ends_at, target[0]))
    slope = one - zero
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -zero / slope
    near = 1e-9 * max(1.0, float(np.abs(zero).max()), float(np.abs(slope).max()))
    for i, position in enumerate(states.position):
        score = zero + position * slope
        if np.abs(score).min() < near:  # at a crossing rounding decides
            continue
        decided = (score > 0).astype(np.float64)
        counted = ref.rates(problem, decided[:, None])
        weight = problem.row_weight / problem.row_weight.sum()
        right = float(weight @ np.where(problem.y == 1, decided, 1.0 - decided))
        tally.compare("decision path = counting (accuracy)", states.accuracy[i], right, tolerance=1e-11)
        found, expected = np.sort(states.rates[i]), np.sort(np.vstack(counted)[:, 0])
        tally.compare("decision path = counting (rates)", found, expected, tolerance=1e-11)
    # A path may go further than the mirrored bias, or start with more bias than the unconstrained stack.
    low, high = (0.0, 1.0) if own else (min(float(share.min()), -1.0), max(float(share.max()), 1.0))
    inside = crossing[np.isfinite(crossing) & (crossing > low) & (crossing < high) & (np.abs(slope) > near)]
    ends = np.unique(np.concatenate([[low, high], inside]))
    for left, right in pairwise(ends):
        if right - left > 1e-6:
            there = (states.position >= left - 1e-12) & (states.position <= right + 1e-12)
            tally.demand("a state between any two crossings", bool(there.any()))
    _exact_frontier(problem, model, states, rows, tally)


def _exact_frontier(problem: Problem, model: Any, states: Any, rows: dict[str, Any], tally: Tally) -> None:
    exact = model.exact_frontier(problem.scores, problem.y, **rows)
    points = states.points()
    share = float(np.average(problem.y, weights=problem.weight))
    fairness = np.append(points.fairness, 1.0)
    values = np.append(points.accuracy, max(share, 1.0 - share))
    levels = np.linspace(0.0, 1.0, 7)
    expected = [ref.taf(fairness, values, level) for level in levels]
    tally.compare("exact frontier = TAF of its states", exact(levels), expected, tolerance=1e-12)


def _tuned(problem: Problem, tally: Tally) -> None:
    """A tuned stack is certified too; with too few rows of a group for folds it must say so."""
    kind = ff.FairStacksRegressor if problem.regression else ff.FairStacksClassifier
    model = kind("precomputed", fairness=problem.options()["fairness"], cv=2, random_state=0, n_points=5)
    try:
        model.fit(problem.scores, problem.y, sensitive_features=problem.groups)
    except GroupError:
        tally.refused["tuned stack: a group too small for folds"] += 1
        return
    tally.compare("KKT residual of a tuned path", model.path_.kkt.max(), 0.0, tolerance=1e-7)
    tally.demand("tuned points are finite", bool(np.isfinite(model.points_.accuracy).all()))


def _other_loss(problem: Problem, loss: str, tally: Tally) -> None:
    """A path of another loss meets its optimality conditions and its targets."""
    if problem.regression:
        return
    size = max(1.0, float(np.abs(problem.scores).max()))  # solvers work to absolute tolerances
    model = ff.FairStacksClassifier(
        "precomputed", fairness=problem.options()["fairness"], alpha=max(problem.alpha, 1.0), loss=loss, n_points=3
    )
    model.fit(problem.scores / size, problem.y, sensitive_features=problem.groups, sample_weight=problem.weight)
    tally.compare(f"KKT residual of loss={loss}", model.path_.kkt.max(), 0.0, tolerance=1e-5)
    tally.compare(f"score bias of loss={loss}", model.path_.score_bias, model.path_.target, tolerance=1e-6)
