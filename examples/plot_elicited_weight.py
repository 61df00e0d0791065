"""
A weight from answers
=====================

Few people can write down a weight function, but most can say which of two curves they prefer. FAUC is linear in the
weight, so such answers determine it by a convex fit. Here somebody whose true preference is known answers questions,
and the fit finds the preference out. The questions are chosen one by one, the most telling pair first.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairfrontier as ff

# %%
# The person cares about fairness above 0.7, the more the fairer. They do not know this formula; they only compare.

truth = ff.PowerWeight(6, 0.7)
questionnaire = ff.Questionnaire(random_state=1)
found = {}
for answers in range(1, 31):
    question = questionnaire.next_question()
    prefers_first = ff.fauc(question.first, truth) > ff.fauc(question.second, truth)
    questionnaire.answer(question, prefers_first=prefers_first)
    if answers in (5, 15, 30):
        found[answers] = questionnaire.fit()

# %%
# Left: the last question. Right: what five, fifteen and thirty answers say about the weight.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
ff.TAFDisplay.from_curves({"first": question.first, "second": question.second}).plot(
    ax=left, min_fairness=0.3, rule_of_80=False, title="Which of these do you prefer?"
)
grid = np.linspace(0, 1, 401)
right.plot(
    grid, truth(grid) / truth.cumulative(np.ones(1)), color="0.25", linewidth=2.4, label="the person's own weight"
)
for (answers, fit), color in zip(found.items(), ("#9BC4E2", "#56A0D3", "#0072B2"), strict=True):
    right.plot(grid, fit.weight(grid), color=color, linewidth=1.8, label=f"after {answers} answers")
right.set(xlabel="Fairness", ylabel="Weight", xlim=(0, 1), ylim=(0, None))
right.set_title("The weight behind the answers", loc="left", fontsize=11)
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How far can it be trusted? A weight that contradicts the person's own answers would say so.

print("answers that the weight reproduces:", found[30].consistency)
