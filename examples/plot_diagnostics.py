"""
May I trust score fairness? Diagnostics of Theorem 3
====================================================

Theorem 3 of the paper says when limiting score bias limits decision bias: the spread of the scores in two groups must
be in balance with the curvature of the decision rule. ``score_decision_diagnostics`` measures both sides along the path
and lists every step where decision bias grew although score bias fell. With equal spread the two ratios meet at score
bias zero, and decisions are nearly fair there. With unequal spread they do not meet there: decision bias still falls
with score bias at every step, but where the score has no bias the decisions have one.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairfrontier as ff


def rows(spread, seed, n=6_000):
    """Return predictions of twelve models, labels and groups; `spread` is group 1's noise relative to group 0's."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.3 + 0.25 * group).astype(int)
    noise = np.where(group == 1, spread, 1.0)[:, None] * rng.normal(0, 0.25, (n, 12))
    lean = np.linspace(-0.05, 0.3, 12)
    return 0.35 + 0.3 * y[:, None] + lean * group[:, None] + noise, y, group


figure, axes = plt.subplots(2, 2, figsize=(11.5, 6.6), layout="constrained", sharex="col")
for column, (spread, title) in enumerate([(1.0, "groups with equal spread"), (4.0, "one group four times as noisy")]):
    H, y, group = rows(spread, seed=0)
    stack = ff.FairStacksClassifier("precomputed", n_points=40, alpha=10.0).fit(H, y, sensitive_features=group)
    H_new, y_new, group_new = rows(spread, seed=1)
    result = ff.score_decision_diagnostics(stack, H_new, y_new, sensitive_features=group_new)
    upper, lower = axes[:, column]
    upper.axhline(0, color="0.75", linewidth=1)
    upper.plot(result.score_bias, result.decision_bias, "o-", color="#0072B2", markersize=4, linewidth=1.4)
    bad = result.violations
    upper.plot(
        result.score_bias[bad],
        result.decision_bias[bad],
        "o",
        color="#D55E00",
        markersize=8,
        fillstyle="none",
        markeredgewidth=1.8,
    )
    ascending = np.argsort(result.score_bias)
    left_over = np.interp(0.0, result.score_bias[ascending], result.decision_bias[ascending])
    upper.plot(0.0, left_over, "*", color="#D55E00", markersize=14)
    upper.annotate(
        f"no score bias:\ndecision bias {left_over:+.2f}",
        (0.0, left_over),
        xytext=(12, -26),
        textcoords="offset points",
        fontsize=9,
    )
    upper.set_title(f"{title}: {len(bad)} violations", loc="left", fontsize=11)
    lower.axvline(0.0, color="0.75", linewidth=1)
    lower.semilogy(result.score_bias, result.covariance_ratio, color="#009E73", linewidth=2, label="covariance ratio")
    kept = result.curvature_ratio > 0
    lower.semilogy(result.score_bias[kept], result.curvature_ratio[kept], ".", color="#CC79A7", label="curvature ratio")
    lower.set_xlabel("Score bias on new rows")
    for panel in (upper, lower):
        panel.grid(color="#EBEBEB", linewidth=0.7)
        panel.spines[["top", "right"]].set_visible(False)
axes[0, 0].set_ylabel("Decision bias")
axes[1, 0].set_ylabel("Ratio between groups")
axes[1, 0].legend(frameon=False)
plt.show()

# %%
# Where the ratios part, look at decisions, not at scores: `FairStacksClassifier.points` and ``exact_frontier`` do.
