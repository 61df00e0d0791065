"""Larger problems in other dress: containers, names, orders, scales and chunks that must not matter.

Each problem is computed once from plain arrays and held against the reference; then its rows come in other containers,
in another order, with other names of groups and labels, with other scales of weights and scores, in chunks cut anywhere
and from Dask; a row of weight 2 comes twice. All must give the same points, the same tuned stacks, and the same answers
to requests for fairness.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.model_selection import PredefinedSplit
from tools.random_problems import references as ref
from tools.random_problems.problems import Problem
from tools.random_problems.tally import Tally

import fairfrontier as ff
from fairfrontier.chunks import array_chunks, dask_chunks, iterable_chunks
from fairfrontier.exceptions import GroupError, InfeasibleError, InvalidInputError

MEASURES = ("demographic_parity", "demographic_parity", "equal_opportunity", "equalized_odds")
_REQUESTS: tuple[dict[str, Any], ...] = (
    {"min_fairness": 0.9},
    {"min_fairness": 0.9, "randomize": True},
    {"min_fairness": 0.6, "confidence": 0.8},
)
_KINDS = ("stack", "constant", "mixture")
_LETTERS = np.array([f"{letter}{number}" for letter in "zaqxsw" for number in range(12)])


@dataclass(frozen=True, eq=False)
class Dressed:
    """The rows of a problem in some dress, as `tradeoff_points` and `fit` take them."""

    y: Any
    scores: Any
    groups: Any
    weight: Any
    fold: np.ndarray
    threshold: float


def wide_problem(seed: int, index: int) -> tuple[Problem, np.ndarray]:
    """Return problem number `index` of a seed, with 2 to 60 groups, and a fold of each row."""
    rng = np.random.default_rng([seed, index, 1])
    size = int(rng.choice([2, 2, 3, 5, 12, 30, 60]))
    n, k = int(rng.integers(40, 200)) + 6 * size, int(rng.integers(1, 6))
    group = rng.choice(size, n, p=rng.dirichlet(np.full(size, 8.0)))
    y = (rng.random(n) < 0.25 + 0.5 * rng.random(size)[group]).astype(np.int64)
    scores = 0.5 * y[:, None] + 0.3 * rng.random(size)[group][:, None] + rng.normal(0, 0.3, (n, k))
    dtype = np.float32 if rng.random() < 0.2 else np.float64
    groups = {"group": _LETTERS[rng.permutation(len(_LETTERS))[:size]][group]}
    if rng.random() < 0.25:
        groups["other"] = rng.integers(0, 3, n)
    weight = (None, rng.integers(0, 4, n).astype(np.float64), rng.exponential(size=n))[int(rng.choice([0, 0, 1, 2]))]
    problem = Problem(
        y=y,
        scores=scores.astype(dtype),
        groups=groups,
        weight=weight,
        fairness=str(rng.choice(MEASURES)),
        masks=[],
        accuracy="accuracy",
        threshold=0.5,
        mode="separate",
        alpha=1.0,
    )
    folds = rng.integers(0, 3, n) if rng.random() < 0.1 else (np.argsort(rng.random(n)) % 3)
    return problem, folds


def plain(problem: Problem, fold: np.ndarray) -> Dressed:
    """Return the rows as arrays."""
    return Dressed(problem.y, problem.scores, problem.groups, problem.weight, fold, 0.5)


def _taken(rows: Dressed, order: np.ndarray) -> Dressed:
    weight = None if rows.weight is None else rows.weight[order]
    groups = {name: values[order] for name, values in rows.groups.items()}
    return replace(
        rows, y=rows.y[order], scores=rows.scores[order], groups=groups, weight=weight, fold=rows.fold[order]
    )


def _renamed(rows: Dressed, rng: np.random.Generator) -> Dressed:
    groups = {}
    for name, values in rows.groups.items():
        found, code = np.unique(values, return_inverse=True)
        other = rng.permutation(len(found)) if rng.random() < 0.5 else rng.permutation(_LETTERS)[: len(found)]
        groups[name] = other[code]
    labels = [("no", "yes"), (-1, 1), (False, True), (3.0, 7.0)][int(rng.integers(4))]
    return replace(rows, y=np.array(labels)[rows.y], groups=groups)


def _contained(rows: Dressed, kind: str, rng: np.random.Generator) -> Dressed:
    names = [f"m{j}" for j in range(rows.scores.shape[1])]
    columns = dict(zip(names, rows.scores.T, strict=True))
    if kind == "pandas":
        index = pd.Index(rng.permutation(len(rows.y)) * 3)
        weight = None if rows.weight is None else pd.Series(rows.weight, index=index)
        groups = pd.DataFrame(rows.groups, index=index).astype("category")
        scores = pd.DataFrame(columns, index=index)
        return replace(rows, y=pd.Series(rows.y, index=index), scores=scores, groups=groups, weight=weight)
    if kind == "polars":
        weight = None if rows.weight is None else pl.Series(rows.weight)
        return replace(
            rows, y=pl.Series(rows.y), scores=pl.DataFrame(columns), groups=pl.DataFrame(rows.groups), weight=weight
        )
    if kind == "pyarrow":
        groups = pa.table({name: pa.array(values) for name, values in rows.groups.items()})
        return replace(rows, y=pa.array(rows.y), scores=pa.table(columns), groups=groups)
    wide = np.repeat(rows.scores, 2, axis=1)[:, ::2]
    return replace(rows, y=rows.y.tolist(), scores=wide, groups={k: v.tolist() for k, v in rows.groups.items()})


def dresses(rows: Dressed, rng: np.random.Generator) -> Iterator[tuple[str, Dressed, np.ndarray]]:
    """Yield a name, the rows in that dress, and the place of each of the first rows among them."""
    same = np.arange(len(rows.y))
    kind = str(rng.choice(["pandas", "polars", "pyarrow", "lists"]))
    yield f"in {kind}", _contained(rows, kind, rng), same
    order = rng.permutation(len(rows.y))
    yield "permuted", _taken(rows, order), np.argsort(order)
    yield "renamed", _renamed(rows, rng), same
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    yield "weights rescaled", replace(rows, weight=10.0 ** rng.uniform(-6, 6) * weight), same
    if rows.weight is not None and (weight == weight.round()).all() and weight[weight > 0].min() == 1:
        times = weight.astype(int)
        again = np.repeat(same, times)
        first = np.where(times > 0, np.cumsum(times) - times, -1)
        yield "rows repeated", replace(_taken(rows, again), weight=None), first
    # A power of two keeps every digit, so that a score at the threshold stays there.
    factor = 2.0 ** -float(rng.integers(1, 12))
    yield "scores rescaled", replace(rows, scores=rows.scores * factor, threshold=0.5 * factor), same


def chunked(rows: Dressed, rng: np.random.Generator) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a name and a function that returns the rows in chunks."""
    options: dict[str, Any] = {"sensitive_features": rows.groups, "sample_weight": rows.weight}
    step = int(rng.integers(1, len(rows.y) + 5))
    yield "array chunks", lambda: array_chunks(rows.y, rows.scores, chunk_rows=step, **options)
    cuts = np.sort(rng.integers(0, len(rows.y) + 1, int(rng.integers(0, 6))))
    parts = [_taken(rows, part) for part in np.split(np.arange(len(rows.y)), cuts) if len(part)]
    given = [(p.y, p.scores, p.groups, *(() if p.weight is None else (p.weight,))) for p in parts]
    yield "chunks cut anywhere", lambda: iterable_chunks(given)
    if rng.random() < 0.1:
        import dask.array as da

        blocks = tuple(np.diff([0, *cuts, len(rows.y)]).tolist())
        H = da.from_array(rows.scores, chunks=(blocks, rows.scores.shape[1]))
        yield "Dask", lambda: dask_chunks(rows.y, H, **options)


def check(seed: int, index: int, tally: Tally) -> None:
    """Compare the points and the tuned stacks of a problem in all its dresses."""
    problem, fold = wide_problem(seed, index)
    rows, rng = plain(problem, fold), np.random.default_rng([seed, index, 2])
    points = _points(problem, rows)
    try:
        expected = ref.points(problem)
    except ref.Undefined:
        expected = None
    tally.demand("wide: refused where undefined", (points is None) == (expected is None))
    if points is None or expected is None:
        tally.refused["wide: undefined"] += 1
        return
    tally.compare("wide: fairness = loop", points.fairness[:-1], expected.fairness, tolerance=1e-12)
    tally.compare("wide: accuracy = loop", points.accuracy[:-1], expected.accuracy, tolerance=1e-12)
    stack = _stack(problem, rows) if index % 10 == 0 else None
    scores = None if stack is None else stack.predict_path(problem.scores)
    answers = None if stack is None or index % 50 else _answers(stack)
    for name, other, place in dresses(rows, rng):
        _same_points(name, points, _points(problem, other), tally)
        if scores is not None:
            found = _stack(problem, other)
            tally.demand(f"stack {name}: fitted too", found is not None)
            if found is not None:
                # Rows that do not count need not come.
                here = place >= 0
                again = found.predict_path(other.scores)[place[here]]
                tally.compare(f"stack {name}", again, scores[here], tolerance=1e-6)
                if answers is not None:
                    tally.compare(f"answers {name}", _answers(found), answers, tolerance=1e-6)
    for name, chunks in chunked(rows, rng):
        _same_points(name, points, ff.points_from_chunks(chunks(), fairness=problem.fairness), tally)
        if scores is not None:
            found = _model(problem, rows).fit_chunks(chunks())
            tally.compare(f"stack {name}", found.predict_path(problem.scores), scores, tolerance=1e-6)
            if answers is not None:
                tally.compare(f"answers {name}", _answers(found), answers, tolerance=1e-6)
    _probable(problem, rng, tally)


def _probable(problem: Problem, rng: np.random.Generator, tally: Tally) -> None:
    """Points of groups that are only probable are those of a loop, and those of repeated rows."""
    p = rng.dirichlet(np.full(int(rng.integers(2, 4)), rng.choice([0.3, 1.0])), len(problem.y))
    given = str(rng.choice(["probabilities", "group"]))
    weight = problem.row_weight
    options: dict[str, Any] = {"fairness": "demographic_parity", "include_constant": False}
    groups = ff.ProbableGroups(p, independent_given=given)
    points = ff.tradeoff_points(
        problem.y, problem.scores, sensitive_features=groups, sample_weight=problem.weight, **options
    )
    rates = ref.probable_rates(problem.scores > 0.5, p, weight, given)
    size = max(1.0, float(np.abs(rates).max()))
    tally.compare(f"probable groups ({given}) = loop", points.rates, rates, tolerance=1e-9, scale=size)
    if (weight == weight.round()).all():
        again = np.repeat(np.arange(len(weight)), weight.astype(int))
        groups = ff.ProbableGroups(p[again], independent_given=given)
        found = ff.tradeoff_points(problem.y[again], problem.scores[again], sensitive_features=groups, **options)
        tally.compare("probable groups, rows repeated", found.rates, points.rates, tolerance=1e-9, scale=size)


def _points(problem: Problem, rows: Dressed) -> ff.TradeoffPoints | None:
    try:
        return ff.tradeoff_points(
            rows.y,
            rows.scores,
            sensitive_features=rows.groups,
            sample_weight=rows.weight,
            fairness=problem.fairness,
            threshold=rows.threshold,
        )
    except (GroupError, InvalidInputError):
        return None


def _same_points(name: str, points: ff.TradeoffPoints, found: ff.TradeoffPoints | None, tally: Tally) -> None:
    if found is None:
        tally.demand(f"points {name}", False)
        return
    for what in ("fairness", "accuracy"):
        tally.compare(f"points {name}: {what}", getattr(found, what), getattr(points, what), tolerance=1e-12)


def _model(problem: Problem, rows: Dressed) -> ff.FairStacksClassifier:
    return ff.FairStacksClassifier(fairness=problem.fairness, cv=PredefinedSplit(rows.fold), n_points=4)


def _answers(model: ff.FairStacksClassifier) -> list[float]:
    """Return what a stack answers to requests for fairness, and how many rows it counts, as numbers."""
    found: list[float] = []
    for options in _REQUESTS:
        try:
            chosen = model.select(**options).selection_
            found += [chosen.estimated, chosen.accuracy, chosen.ratio, _KINDS.index(chosen.kind)]
        except InfeasibleError:
            found += [-1.0] * 4
    return [*found, *sorted(model.group_sizes_.values())]


def _stack(problem: Problem, rows: Dressed) -> ff.FairStacksClassifier | None:
    """Return a tuned stack; None where a fold lacks a group."""
    try:
        model = _model(problem, rows)
        return model.fit(rows.scores, rows.y, sensitive_features=rows.groups, sample_weight=rows.weight)
    except GroupError:
        return None
