"""
What theory promises, and what a test set tells
===============================================

The paper's out-of-sample theorem bounds how far accuracy and bias of a stack can be off their training values, for any
stack and any distribution. Such a bound is wide: it needs a million rows where a held-out test set needs thousands.
``generalization_bound`` says so in words, and ``certify`` gives the bound that a test set supports.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairfrontier as ff

sizes = np.unique(np.logspace(2.5, 8, 60).astype(int))
figure, axes = plt.subplots(figsize=(8.2, 4.8), layout="constrained")
for n_models, color in ((10, "#0072B2"), (100, "#009E73"), (1_000, "#CC79A7")):
    slack = [ff.generalization_bound(int(n), int(n), n_models=n_models).bias for n in sizes]
    axes.loglog(sizes, slack, color=color, linewidth=2.2, label=f"theorem, {n_models:,} base models")
# Hoeffding's inequality for two groups of n rows each, as `certify` uses it.
axes.loglog(
    sizes,
    2 * np.sqrt(np.log(4 / 0.05) / (2 * sizes)),
    color="#D55E00",
    linewidth=2.2,
    linestyle=(0, (5, 1.5)),
    label="unseen rows (certify)",
)
axes.axhspan(1, 10, color="0.92", zorder=0)
axes.text(8e5, 4.5, "says nothing: a bias is at most 1", fontsize=9, color="0.35")
axes.set(
    xlabel="Rows of the smaller group",
    ylabel="Slack for the bias, 95 % confidence",
    ylim=(3e-4, 10),
    xlim=(sizes[0], sizes[-1]),
)
axes.set_title("How many rows until a bound is useful?", loc="left", fontsize=11)
axes.legend(frameon=False, fontsize=9, loc="lower left")
axes.grid(color="#EBEBEB", linewidth=0.7)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# In words:

print(ff.generalization_bound(12_000, 8_000, n_models=100))
