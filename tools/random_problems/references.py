"""The slow and obvious way to every figure. Nothing here imports fairfrontier."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise, product

import numpy as np
from scipy.optimize import linprog
from tools.random_problems.problems import Problem

CONDITIONS = {
    "demographic_parity": [None],
    "mean_difference": [None],
    "equal_opportunity": [1],
    "predictive_equality": [0],
    "equalized_odds": [1, 0],
}
# Gauss and Legendre's nodes on [0, 1]: exact for polynomials up to degree 9.
_NODES, _SHARES = np.polynomial.legendre.leggauss(5)
NODES, SHARES = (_NODES + 1.0) / 2.0, _SHARES / 2.0


class Undefined(Exception):
    """A row set, or all of the rows, has no weight, or the labels say nothing: there is no right answer."""


@lru_cache(maxsize=1)
def row_sets(problem: Problem) -> list[list[np.ndarray]]:
    """Return the row sets as lists of row numbers, in blocks whose sets are compared with one another."""
    n = len(problem.y)
    if problem.fairness == "masks":
        return [[np.flatnonzero(first), np.flatnonzero(second)] for first, second in problem.masks]
    columns = [problem.groups[name] for name in problem.groups]
    if problem.mode == "intersectional" and len(columns) > 1:
        columns = [np.array([" & ".join(values) for values in zip(*columns, strict=True)])]
    blocks = []
    for condition in CONDITIONS[problem.fairness]:
        for column in columns:
            rows = [i for i in range(n) if condition is None or problem.y[i] == condition]
            value = column.tolist()
            blocks.append([np.array([i for i in rows if value[i] == g], dtype=int) for g in sorted(set(value))])
    return blocks


def rates(problem: Problem, outcome: np.ndarray) -> list[np.ndarray]:
    """Return the weighted mean outcome (n, k) over each row set, for each block an array (sets, k)."""
    weight, result = problem.row_weight, []
    for block in row_sets(problem):
        for rows in block:
            if weight[rows].sum() <= 0:
                raise Undefined("a row set without weight")
        result.append(np.array([weight[rows] @ outcome[rows] / weight[rows].sum() for rows in block]))
    return result


def check_defined(problem: Problem) -> None:
    """Raise for problems that have no answer."""
    # Masks say who is compared; the groups are then not looked at.
    if problem.fairness != "masks" and any(len(set(column)) < 2 for column in problem.groups.values()):
        raise Undefined("one group")
    counted = problem.y[problem.row_weight > 0]
    if len(counted) == 0:
        raise Undefined("no weight")
    if not problem.regression and len(set(problem.y)) < 2:
        raise Undefined("one class")
    if problem.accuracy in ("balanced_accuracy", "r2") and len(set(counted)) < 2:
        raise Undefined("one class or value that counts")


def outcomes(problem: Problem) -> np.ndarray:
    """Return decisions, or scores where there is no threshold, as double precision."""
    if problem.regression or problem.threshold is None:
        return problem.scores.astype(np.float64)
    return np.array([[float(float(s) > problem.threshold) for s in row] for row in problem.scores])


def accuracy(problem: Problem, outcome: np.ndarray, score: np.ndarray) -> float:
    """Return the accuracy of one model's outcomes (n,) and scores (n,)."""
    y, w = problem.y, problem.row_weight / problem.row_weight.sum()
    right = np.where(y == 1, outcome, 1.0 - outcome)
    if problem.accuracy == "accuracy":
        return float(w @ right)
    if problem.accuracy == "balanced_accuracy":
        return float(np.mean([w[y == c] @ right[y == c] / w[y == c].sum() for c in (0, 1)]))
    error = float(w @ (score - y) ** 2)
    if problem.accuracy == "brier":
        return 1.0 - error
    if problem.accuracy == "exp_mse":
        return float(np.exp(-error))
    return float(np.clip(1.0 - error / (w @ (y - w @ y) ** 2), 0.0, 1.0))


def constant_accuracy(problem: Problem) -> float:
    """Return the accuracy of the best constant model."""
    y, w = problem.y, problem.row_weight / problem.row_weight.sum()
    mean = float(w @ y)
    if problem.regression:
        return accuracy(problem, np.full(len(y), mean), np.full(len(y), mean))
    decision = np.full(len(y), float(w[y == 1].sum() > w[y == 0].sum()))
    return accuracy(problem, decision, np.full(len(y), mean))


@dataclass(frozen=True, eq=False)
class Points:
    """Rates of each block (sets, k), biases on all pairs (k, m), fairness (k,) and accuracy (k,) of the models."""

    rates: list[np.ndarray]
    bias: np.ndarray
    fairness: np.ndarray
    accuracy: np.ndarray


def points(problem: Problem) -> Points:
    """Return the points of the models, or raise `Undefined`."""
    check_defined(problem)
    outcome = outcomes(problem)
    of_blocks = rates(problem, outcome)
    bias = np.array([block[i] - block[j] for block in of_blocks for i, j in combinations(range(len(block)), 2)]).T
    scores = problem.scores.astype(np.float64)
    values = [accuracy(problem, outcome[:, j], scores[:, j]) for j in range(outcome.shape[1])]
    return Points(of_blocks, bias, np.clip(1.0 - np.abs(bias).max(axis=1), 0.0, 1.0), np.array(values))


def taf(fairness: np.ndarray, values: np.ndarray, level: float) -> float:
    """Definition 2 of the paper: the best accuracy of the models that are fair enough, 0 if there is none."""
    return max((float(a) for f, a in zip(fairness, values, strict=True) if f >= level), default=0.0)


def algorithm_1(fairness: np.ndarray, values: np.ndarray) -> list[int]:
    """Algorithm 1 of the paper, ascending in fairness."""
    ranked = sorted(range(len(fairness)), key=lambda h: -fairness[h])
    chosen = [ranked[0]]
    for h in ranked[1:]:
        if values[h] > max(values[g] for g in chosen):
            if fairness[h] == fairness[chosen[-1]]:
                chosen.pop()
            chosen.append(h)
    return chosen[::-1]


def upper_hull(x: np.ndarray, y: np.ndarray, at: float) -> float:
    """Return the upper boundary of the convex hull of planar points at `at`, from all pairs; −∞ outside of it."""
    best = max((float(b) for a, b in zip(x, y, strict=True) if a == at), default=-np.inf)
    for i, j in combinations(range(len(x)), 2):
        low, high = (i, j) if x[i] < x[j] else (j, i)
        if x[low] < at < x[high]:
            share = (at - x[low]) / (x[high] - x[low])
            best = max(best, float((1 - share) * y[low] + share * y[high]))
    return best


def tafi(fairness: np.ndarray, values: np.ndarray, level: float) -> float:
    """Theorem 2: the upper boundary of conv(TAF); 0 to the right of the fairest model."""
    if level > fairness.max():
        return 0.0
    return upper_hull(np.append(fairness, 0.0), np.append(values, values.max()), level)


def signed_one(bias: np.ndarray, values: np.ndarray, level: float) -> float:
    """Return the best accuracy of a mixture with |bias| ≤ 1 − level for one contrast, from all pairs; 0 if none."""
    bound = 1.0 - level
    inside = [float(a) for b, a in zip(bias, values, strict=True) if abs(b) <= bound]
    return max([*inside, upper_hull(bias, values, bound), upper_hull(bias, values, -bound), 0.0])


def signed_many(bias: np.ndarray, values: np.ndarray, level: float) -> float:
    """Return the same for several contrasts (k, m), from a linear program."""
    k, m = bias.shape
    result = linprog(
        -values,
        A_ub=np.vstack([bias.T, -bias.T]),
        b_ub=np.full(2 * m, 1.0 - level),
        A_eq=np.ones((1, k)),
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * k,
        method="highs",
    )
    return 0.0 if result.status == 2 else -float(result.fun)


def area(curve: Callable[[float], float], weight: Callable[[float], float], breaks: np.ndarray) -> float:
    """Return ∫ curve·weight / ∫ weight over [0, 1] by quadrature between breaks."""
    levels = np.unique(np.concatenate([[0.0, 1.0], breaks]))
    above = below = 0.0
    for left, right in pairwise(levels):
        for node, share in zip(NODES, SHARES, strict=True):
            x = left + (right - left) * node
            mass = (right - left) * share * weight(x)
            above, below = above + mass * curve(x), below + mass
    return above / below


def volume(levels: np.ndarray, values: np.ndarray) -> float:
    """Return the volume under TAF(f₁, f₂), cell by cell of the grid of the models' own levels (k, 2)."""
    axes = [np.unique(np.concatenate([[0.0, 1.0], column])) for column in levels.T]
    total = 0.0
    for i, j in product(range(1, len(axes[0])), range(1, len(axes[1]))):
        fair = (levels[:, 0] >= axes[0][i]) & (levels[:, 1] >= axes[1][j])
        cell = (axes[0][i] - axes[0][i - 1]) * (axes[1][j] - axes[1][j - 1])
        total += cell * (float(values[fair].max()) if fair.any() else 0.0)
    return total


@dataclass(frozen=True, eq=False)
class Stack:
    """The stacking problem with the constant as a column of its own: no centring, no decomposition."""

    design: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    ridge: np.ndarray
    bias: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> "Stack":
        """Return the problem's rows, ridge and score biases (k, m)."""
        H = problem.scores.astype(np.float64)
        blocks = rates(problem, H)
        bias = np.array([b[i] - b[j] for b in blocks for i, j in combinations(range(len(b)), 2)]).T
        # Equal means differ in the last digit; to constrain that digit would cost everything else.
        bias = np.where(np.abs(bias) > 1e-14 * np.abs(np.vstack(blocks)).max(axis=0)[:, None], bias, 0.0)
        design = np.column_stack([H, np.ones(len(H))])
        ridge = np.append(np.full(H.shape[1], problem.alpha / 2.0), 0.0)
        return cls(design, problem.y.astype(np.float64), problem.row_weight, ridge, bias)

    def solve(self, contrasts: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return coefficients (k + 1,) that minimise the objective with score bias `target` on some contrasts.

        One coefficient vector that has the bias, and least squares over everything that does not change it.
        """
        X = np.vstack([np.sqrt(self.weight)[:, None] * self.design, np.diag(np.sqrt(self.ridge))])
        goal = np.append(np.sqrt(self.weight) * self.y, np.zeros(len(self.ridge)))
        B = np.vstack([self.bias[:, contrasts], np.zeros((1, len(contrasts)))])
        left, values, right = np.linalg.svd(B)
        # Contrasts that depend on each other do so to the digits of their scores, which may be single.
        rank = int((values > 1e-7 * values.max(initial=0.0)).sum())
        start = left[:, :rank] @ ((right[:rank] @ target) / values[:rank])
        free = left[:, rank:]
        return start + free @ np.linalg.lstsq(X @ free, goal - X @ start, rcond=1e-12)[0]

    def objective(self, coefficients: np.ndarray) -> float:
        """Return Σ weight·(y − η)² + (α/2)·‖w‖²."""
        residual = self.y - self.design @ coefficients
        return float(self.weight @ residual**2 + self.ridge @ coefficients**2)

    def nearly_collinear(self) -> bool:
        """Tell models that are collinear in single precision and not in double: without a ridge both are right."""
        centred = self.design[:, :-1] - np.average(self.design[:, :-1], axis=0, weights=self.weight)
        values = np.linalg.svd(np.sqrt(self.weight)[:, None] * centred, compute_uv=False)
        ratio = values / max(float(values.max(initial=0.0)), 1e-300)
        return bool(np.any((ratio > 1e-13) & (ratio < 1e-4)))

    def best_in_box(self, tau: float) -> float:
        """Return the least objective with all score biases in [−τ, τ]: every choice of contrasts at their bound."""
        m, best = self.bias.shape[1], np.inf
        for pattern in product((0, 1, -1), repeat=m):
            at_bound = np.flatnonzero(pattern)
            w = self.solve(at_bound, tau * np.array(pattern, dtype=float)[at_bound])
            found = self.bias.T @ w[:-1]
            if np.all(np.abs(found) <= tau * (1.0 + 1e-7) + 1e-14) and self.objective(w) < best:
                best = self.objective(w)
        return best


def probable_rates(decided: np.ndarray, p: np.ndarray, weight: np.ndarray, given: str) -> np.ndarray:
    """Return the rates (k, g) of groups that are only probable; given the group, the mixing is undone."""
    counted = weight[:, None] * p
    total, mixed, sums = counted.sum(axis=0), counted.T @ p, decided.T.astype(np.float64) @ counted
    rates = sums / total
    return rates if given == "probabilities" else np.linalg.solve(mixed / total[:, None], rates.T).T
