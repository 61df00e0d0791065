"""Coverage of the intervals of an audit: of a ratio of two selection rates, and of the worst ratio of several groups.

    python examples/ratio_coverage.py --out results/ratio_coverage.md

Of two groups all outcomes are enumerated, so that the coverage is exact; of several groups it is simulated.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import binom, norm

from fairfrontier.report._tables import ratio_interval, worst_ratios

SIZES = ((30, 30), (30, 100), (30, 1000), (60, 60), (100, 100), (100, 1000), (250, 250))
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FEW = (0.02, 0.05)
SMALLER = range(30, 61)
POPULATIONS = {
    "2 groups, equal rates": (0.4, 0.4),
    "2 groups, four fifths": (0.4, 0.5),
    "4 groups, equal rates": (0.4, 0.4, 0.4, 0.4),
    "4 groups, one lower": (0.5, 0.5, 0.5, 0.3),
    "8 groups, all different": (0.3, 0.33, 0.36, 0.39, 0.42, 0.45, 0.48, 0.51),
}
HEAD = """# Coverage of the intervals of an audit

    python examples/ratio_coverage.py --out results/ratio_coverage.md

Koopman's score interval of the ratio of two selection rates, nominally 95 %. All outcomes are enumerated, so that these
figures are exact. Rates {} to {}: all {} pairs; rare: pairs of the rates {} and {}.

| rows of the groups | mean | lowest | highest | within 94 to 97 % | rare: mean | rare: lowest |
|---|---|---|---|---|---|---|
"""
WORST = """
With 30 rows against 1,000 the coverage lies between 93.9 and 97.4 %: a share of 30 rows has 31 possible values, and the
coverage jumps with them from one pair of rates to the next. Gart and Nam correct the score test for its skewness. With
all, some or none of that correction, for every size of the smaller group from 30 to 60 rows against 1,000:

| part of the correction | lowest | highest | pairs outside of 94 to 97 % |
|---|---|---|---|
{}

No part keeps every pair inside: six tenths do with 30 rows, where they were tried first, and fail with 31, 32, 33 and
39. Without the correction the fewest pairs are outside, so it is not used.

The worst ratio of all pairs of groups, lowest ÷ highest, which are themselves found from the data: its interval must
hold the true worst ratio in at least 95 % of the cases. {:,} simulated files each; a verdict is wrong if it says
above where the truth is below four fifths, or below where it is not.

| population | rows of each group | coverage | wrong verdicts |
|---|---|---|---|
"""


def coverage(n1, n2, rates):
    """Return the coverage at every pair of rates, by enumeration of all outcomes."""
    x1, x2 = (grid.ravel() for grid in np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1), indexing="ij"))
    low, high = ratio_interval(x1, n1, x2, n2, 0.95)
    found = []
    for p1, p2 in product(rates, rates):
        weight = np.outer(binom.pmf(np.arange(n1 + 1), n1, p1), binom.pmf(np.arange(n2 + 1), n2, p2)).ravel()
        # Where nobody is selected there is no interval, and nothing is claimed.
        covered = np.isnan(low) | ((low <= p1 / p2) & (p1 / p2 <= high))
        found.append(weight[covered].sum())
    return np.array(found)


def corrected_coverage(n1, n2, parts):
    """Return the coverage at every pair of rates, shape (parts, pairs), with parts of Gart and Nam's correction.

    The score test is made at the true ratio; where nobody is selected nothing is claimed.
    """
    z = norm.ppf(0.975)
    found = []
    for rate, other in product(RATES, RATES):
        x1, x2 = np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1), indexing="ij")
        weight = np.outer(binom.pmf(np.arange(n1 + 1), n1, rate), binom.pmf(np.arange(n2 + 1), n2, other))
        likely = weight.sum(axis=0) > 1e-12
        x1, x2, weight, ratio = x1[:, likely], x2[:, likely], weight[:, likely], rate / other
        b = ratio * (n1 + x2) + x1 + n2
        p1 = 2 * ratio * (x1 + x2) / (b + np.sqrt(np.maximum(b * b - 4 * ratio * (n1 + n2) * (x1 + x2), 0.0)))
        p2 = p1 / ratio
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [(x - n * p) ** 2 / (n * p * (1 - p)) for x, n, p in ((x1, n1, p1), (x2, n2, p2))]
            score = np.sqrt(sum(np.nan_to_num(term) for term in terms)) * np.sign(x1 / n1 - ratio * x2 / n2)
            spread = (1 - p1) / (n1 * p1) + (1 - p2) / (n2 * p2)
            third = (1 - p1) * (1 - 2 * p1) / (n1 * p1) ** 2 - (1 - p2) * (1 - 2 * p2) / (n2 * p2) ** 2
            shift = np.nan_to_num(third / spread**1.5) * (z * z - 1) / 6
        found.append([weight[(np.abs(score - part * shift) <= z) | (x1 + x2 == 0)].sum() for part in parts])
    return np.array(found).T


def correction_lines(parts, sizes, other):
    """Return the lines of the table of corrections."""
    found = np.concatenate([corrected_coverage(n, other, parts) for n in sizes], axis=1)
    return [
        f"| {part:g} | {100 * one.min():.1f} % | {100 * one.max():.1f} % | "
        f"{np.count_nonzero((one < 0.94) | (one > 0.97))} of {len(one):,} |"
        for part, one in zip(parts, found, strict=True)
    ]


def worst_coverage(rates, n, repetitions, generator):
    """Return how often the interval of the worst ratio holds the true one, and the share of wrong verdicts."""
    selected = generator.binomial(n, rates, size=(repetitions, len(rates))).astype(float)
    rows = np.full(len(rates), float(n))
    found = worst_ratios(selected, rows, np.ones(len(rates), dtype=bool), 0.95)
    truth = min(rates) / max(rates)
    wrong = [v == ("above" if truth < 0.8 else "below") for v in found.verdict]
    return np.mean((found.low <= truth) & (truth <= found.high)), np.mean(wrong)


def main():
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--largest", type=int, default=1000, help="rows of the largest group that is enumerated")
    parser.add_argument("--repetitions", type=int, default=4000, help="simulated files of each population")
    asked = parser.parse_args()
    lines = HEAD.format(RATES[0], RATES[-1], len(RATES) ** 2, *FEW).splitlines()
    for n1, n2 in (sizes for sizes in SIZES if max(sizes) <= asked.largest):
        usual, rare = coverage(n1, n2, RATES), coverage(n1, n2, FEW)
        inside = np.mean((usual >= 0.94) & (usual <= 0.97))
        shown = [f"{100 * v:.1f} %" for v in (usual.mean(), usual.min(), usual.max(), inside, rare.mean(), rare.min())]
        lines.append(f"| {n1}, {n2} | " + " | ".join(shown) + " |")
    corrections = correction_lines((0.0, 0.5, 0.6, 1.0), SMALLER, min(asked.largest, 1000))
    lines += WORST.format("\n".join(corrections), asked.repetitions).splitlines()
    generator = np.random.default_rng(0)
    for (name, rates), n in product(POPULATIONS.items(), (30, 100, 400)):
        covered, wrong = worst_coverage(rates, n, asked.repetitions, generator)
        lines.append(f"| {name} | {n} | {100 * covered:.1f} % | {100 * wrong:.1f} % |")
    asked.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
