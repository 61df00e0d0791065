"""
Weights: which levels of fairness count
=======================================

FAUC is the average height of the curve, weighted by how much each level of fairness matters to you. The weight is your
statement of preference, and it can change who wins: a sharp family and a fair family under five weights.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairfrontier as ff

sharp = ff.taf_curve([0.62, 0.74, 0.83, 0.9, 1.0], [0.91, 0.88, 0.83, 0.74, 0.6])
fair = ff.taf_curve([0.8, 0.92, 0.97, 1.0], [0.845, 0.83, 0.8, 0.6])
weights = {
    "uniform": ff.UniformWeight(),
    "80 % step": ff.StepWeight(0.8),
    "power 8": ff.PowerWeight(8),
    "power 2 above 0.6": ff.PowerWeight(2, 0.6),
    "table": ff.TabulatedWeight([0, 0.7, 0.85, 0.95, 1], [0, 0.2, 1.0, 0.5, 0.1]),
}

# %%
# Above, the two curves. Below, each weight, and the FAUC of both families under it.

grid = np.linspace(0, 1, 1001)
figure, panels = plt.subplot_mosaic(
    [["curves"] * 5, list(weights)], figsize=(11.5, 6.2), layout="constrained", height_ratios=[3, 2]
)
ff.TAFDisplay.from_curves({"sharp": sharp, "fair": fair}).plot(
    ax=panels["curves"], min_fairness=0.5, title="Two families"
)
for name, weight in weights.items():
    axes, density = panels[name], weight(grid)
    axes.fill_between(grid, density / density.max(), color="#8FB8DE", alpha=0.7, linewidth=0)
    result = ff.fauc(sharp, weight), ff.fauc(fair, weight)
    winner = "sharp" if result[0] > result[1] else "fair"
    axes.set_title(f"{name}\nsharp {result[0]:.3f}   fair {result[1]:.3f}", fontsize=9.5)
    axes.text(
        0.04,
        0.86,
        f"{winner} wins",
        transform=axes.transAxes,
        fontsize=9,
        color="#0072B2" if winner == "sharp" else "#D55E00",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1.25), yticks=[], xlabel="Fairness")
    axes.spines[["top", "right", "left"]].set_visible(False)
plt.show()
