"""
The winner's curse, and an honest curve
=======================================

Take two hundred models that all toss a coin. On 1,000 test rows the luckiest looks well above a coin, and a TAF curve
picks the luckiest at every level. The honest curve chooses the models on one part of the rows and evaluates them on
another, so that luck is not counted.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairfrontier as ff

rng = np.random.default_rng(0)
y, group = rng.random(1000) < 0.5, rng.choice(["a", "b"], 1000)
coins = rng.random((1000, 200))

points = ff.tradeoff_points(y, coins, sensitive_features=group, include_constant=False)
honest = ff.honest_taf(y, coins, sensitive_features=group, random_state=0, include_constant=False)

# %%
# Now models of real but similar skill, and more and more test rows. What the frontier promises on its own rows,
# what the honest curve promises, and what the chosen models really deliver (on 40,000 fresh rows).


def draw(n):
    """Return labels, groups and the scores of sixty models that differ little."""
    generator = np.random.default_rng([n, 7])
    g = generator.integers(0, 2, n)
    label = (generator.random(n) < 0.35 + 0.2 * g).astype(int)
    lean = np.linspace(-0.25, 0.35, 60)
    signal = 0.9 * (label[:, None] - 0.5) + (g[:, None] - 0.5) * lean
    return label, g, 0.5 + signal + generator.normal(0, 0.75, (n, 60))


weight = ff.StepWeight(0.8)
y_new, g_new, s_new = draw(40_000)
fresh = ff.tradeoff_points(y_new, s_new, sensitive_features=g_new)
sizes = [250, 500, 1_000, 2_000, 4_000]
promised, honestly, delivered = [], [], []
for n in sizes:
    results = []
    for repeat in range(6):
        label, g, s = draw(n + repeat)
        chosen = ff.tradeoff_points(label, s, sensitive_features=g).frontier()
        fair = ff.honest_taf(label, s, sensitive_features=g, random_state=repeat)
        kept = fresh.select(chosen.support).frontier()
        results.append([ff.fauc(chosen, weight), ff.fauc(fair, weight), ff.fauc(kept, weight)])
    for target, value in zip((promised, honestly, delivered), np.mean(results, axis=0), strict=True):
        target.append(value)

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
ff.TAFDisplay.from_curves({"the frontier of 200 coins": points.frontier(), "the honest curve": honest}).plot(
    ax=left, min_fairness=0.8, rule_of_80=False, title="Two hundred coins, 1,000 rows"
)
left.axhline(0.5, color="0.4", linestyle=":", linewidth=1.2)
left.text(0.803, 0.502, "a coin", fontsize=8.5, color="0.35")
left.scatter(points.fairness, points.accuracy, s=8, color="#0072B2", alpha=0.3, linewidths=0)
left.set_ylim(0.45, 0.56)
right.plot(sizes, promised, "o-", color="#0072B2", label="promised by the frontier")
right.plot(sizes, honestly, "s-", color="#D55E00", label="promised by the honest curve")
right.plot(sizes, delivered, "^--", color="0.35", label="delivered on new rows")
right.set(xscale="log", xlabel="Test rows", ylabel="FAUC, 80 % step weight")
right.set_xticks(sizes, [f"{n:,}" for n in sizes], minor=False)
right.minorticks_off()
right.set_title("Sixty similar models: the curse fades slowly", loc="left", fontsize=11)
right.legend(frameon=False)
right.grid(color="#E6E6E6", linewidth=0.7)
right.spines[["top", "right"]].set_visible(False)
plt.show()
