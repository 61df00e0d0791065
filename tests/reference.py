"""The paper's definitions, word by word and slowly: what the library is compared with.

Nothing here imports fairfrontier. Every function is a loop that a reader can hold against the paper's text.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import linprog


def taf(fairness, accuracy, level):
    """Definition 2: the maximum of the accuracy over the models whose fairness is at least `level`; 0 over none."""
    best = 0.0
    for f, a in zip(fairness, accuracy, strict=True):
        if f >= level and a > best:
            best = a
    return best


def pareto_optimal(fairness, accuracy):
    """Definition 1: the models for which no other is at least as good in both respects and better in one."""
    models = range(len(fairness))
    return [
        h
        for h in models
        if not any(
            accuracy[g] >= accuracy[h]
            and fairness[g] >= fairness[h]
            and (accuracy[g] > accuracy[h] or fairness[g] > fairness[h])
            for g in models
        )
    ]


def algorithm_1(fairness, accuracy):
    """Algorithm 1: the ordered set H*, from the fairest model on."""
    ranked = sorted(range(len(fairness)), key=lambda h: -fairness[h])  # Python's sort is stable
    chosen = [ranked[0]]
    for h in ranked[1:]:
        if accuracy[h] > max(accuracy[g] for g in chosen):
            if fairness[h] == fairness[chosen[-1]]:
                chosen.pop()
            chosen.append(h)
    return chosen


def fauc_by_sum(fairness, accuracy):
    """Definition 3 with w = 1: the right-handed Riemann sum over the levels at which TAF may change."""
    total, previous = 0.0, 0.0
    for level in [*sorted(set(fairness)), 1.0]:
        total += taf(fairness, accuracy, level) * (level - previous)
        previous = level
    return total


def hull_value(points, x):
    """Upper boundary of the convex hull of planar points at `x`, from all pairs of points."""
    values = [y for px, y in points if px == x]
    for (x1, y1), (x2, y2) in combinations(points, 2):
        if x1 > x2:
            x1, y1, x2, y2 = x2, y2, x1, y1
        if x1 < x < x2:
            share = (x - x1) / (x2 - x1)
            values.append((1 - share) * y1 + share * y2)
    return max(values)


def tafi(fairness, accuracy, level):
    """Theorem 2, first equality: upper boundary of conv(TAF), where TAF has a value at all."""
    if level > max(fairness):
        return 0.0
    corners = [(0.0, max(accuracy)), *zip(fairness, accuracy, strict=True)]
    return hull_value(corners, level)


def best_mixture(bias, accuracy, level):
    """Best accuracy of Σ pᵢhᵢ with |Σ pᵢ·bias| ≤ 1 − level on each contrast: one linear program; None if infeasible."""
    k, m = bias.shape
    result = linprog(
        -np.asarray(accuracy),
        A_ub=np.vstack([bias.T, -bias.T]),
        b_ub=np.full(2 * m, 1.0 - level),
        A_eq=np.ones((1, k)),
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * k,
        method="highs",
    )
    return None if result.status == 2 else -result.fun


def rate(decisions, rows, weight):
    """Weighted mean of the decisions over `rows`, in a loop."""
    total = sum(weight[i] for i in rows)
    return sum(weight[i] * decisions[i] for i in rows) / total


def gap(y, decisions, group, labels, weight):
    """Largest difference between two groups' rates among rows whose label is in `labels`."""
    rates = [
        rate(decisions, [i for i in range(len(y)) if group[i] == g and y[i] in labels], weight) for g in set(group)
    ]
    return max(rates) - min(rates)


def bias_of(measure, y, decisions, group, weight=None):
    """Bias of a named measure."""
    weight = [1.0] * len(y) if weight is None else weight
    conditions = {
        "demographic_parity": [(0, 1)],
        "equal_opportunity": [(1,)],
        "predictive_equality": [(0,)],
        "equalized_odds": [(1,), (0,)],
    }[measure]
    return max(gap(y, decisions, group, labels, weight) for labels in conditions)


def composite(levels, accuracy, cumulative):
    """Volume under TAF(f₁…fₘ), cell by cell of the grid that the models' own levels make.

    `levels` is (k, m), and `cumulative` one function a level, the normalised integral of its weight.
    """
    k, m = levels.shape
    axes = [sorted({0.0, 1.0, *levels[:, j]}) for j in range(m)]
    total = 0.0
    for corner in np.ndindex(*(len(axis) - 1 for axis in axes)):
        upper = [axes[j][i + 1] for j, i in enumerate(corner)]
        lower = [axes[j][i] for j, i in enumerate(corner)]
        best = max((accuracy[h] for h in range(k) if all(levels[h, j] >= upper[j] for j in range(m))), default=0.0)
        total += best * np.prod([cumulative[j](upper[j]) - cumulative[j](lower[j]) for j in range(m)])
    return total
