"""Measure how often intervals of FAUC hold the truth under weights that look at the fairest models alone.

    python examples/narrow_weights.py --draws 200 --out FILE

One model whose decisions do not depend on the group, or hardly do, and the constant one: the truth is known exactly.
"""

import argparse
from pathlib import Path

import numpy as np

import fairfrontier as ff

WEIGHTS = {
    "step:0.8": ff.StepWeight(0.8),
    "step:0.9": ff.StepWeight(0.9),
    "step:0.95": ff.StepWeight(0.95),
    "point:0.95": ff.PointWeight(0.95),
}
# Shares of the groups, and by how much the second is selected more often.
POPULATIONS = {
    "4 groups, the smallest 4 %": ((0.37, 0.44, 0.15, 0.04), 0.0),
    "the same, a difference of 0.03": ((0.37, 0.44, 0.15, 0.04), 0.03),
    "2 equal groups": ((0.5, 0.5), 0.0),
    "2 groups, one of 15 %": ((0.85, 0.15), 0.0),
}
N_ROWS, ACCURACY = 1500, 0.73


def draw(shares: tuple[float, ...], gap: float, rng: np.random.Generator) -> tuple:
    """Return labels, groups and decisions."""
    group = rng.choice(len(shares), N_ROWS, p=shares)
    y = rng.integers(0, 2, N_ROWS)
    decision = np.where(rng.random(N_ROWS) < ACCURACY, y, 1 - y)
    more = (group == 1) & (decision == 0) & (rng.random(N_ROWS) < 2 * gap)
    return y, group, np.where(more, 1, decision)


def truth(shares: tuple[float, ...], gap: float, weight: ff.quantify.Weight) -> float:
    """Return FAUC in the population."""
    accuracy = ACCURACY + shares[1] * gap * (1 - 2 * ACCURACY)
    return ff.fauc(ff.taf_curve([1 - gap, 1.0], [accuracy, 0.5]), weight)


def line(population: str, name: str, draws: int) -> str:
    """Return one line of the table."""
    (shares, gap), weight = POPULATIONS[population], WEIGHTS[name]
    expected, alone, against, widths = truth(shares, gap, weight), [], [], []
    for seed in range(draws):
        y, group, decision = draw(shares, gap, np.random.default_rng([seed, 7]))
        options = {"sensitive_features": group, "weight": weight, "n_resamples": 200, "random_state": seed}
        found = ff.fauc_interval(y, {"model": decision}, **options)
        alone.append(found.low <= expected + 1e-12 and expected <= found.high + 1e-12)
        widths.append(found.high - found.low)
        both = ff.compare_fauc(y, {"model": decision}, {"nobody": np.zeros(N_ROWS)}, **options)
        against.append(both.low <= expected - 0.5 + 1e-12 and expected - 0.5 <= both.high + 1e-12)
    shown = f"{100 * np.mean(alone):.1f} % | {100 * np.mean(against):.1f} % | {np.mean(widths):.3f}"
    return f"| {population} | {name} | {expected:.3f} | {shown} |"


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    head = [
        "| population | weight | FAUC | `fauc_interval` | `compare_fauc` | mean width |",
        "|---|---|---|---|---|---|",
    ]
    text = "\n".join(head + [line(p, w, options.draws) for p in POPULATIONS for w in WEIGHTS]) + "\n"
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
