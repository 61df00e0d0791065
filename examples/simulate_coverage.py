"""Check by simulation that the intervals and bands cover what they promise, and how large the winner's curse is.

Rows are drawn from a known distribution: features are Gaussian given label and group, models are noisy linear
thresholds of them, so that every model's fairness and accuracy in the (infinite) population are closed formulas of the
normal distribution. Each draw of a finite test set gives intervals, bands and honest curves, which are then held
against the population. Every test set comes from a population of its own. With --records a run that was stopped goes
on where it was.

    python examples/simulate_coverage.py --records coverage_kinds.jsonl --out results/coverage.md
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

import fairfrontier as ff
from fairfrontier.identify._points import points_from_rates
from fairfrontier.quantify._bands import taf_bands
from fairfrontier.quantify._honest import honest_taf
from fairfrontier.quantify._inference import compare_fauc, fauc_interval

SHARE_OF_GROUP = 0.4
POSITIVE_RATE = np.array([0.35, 0.20])
N_FEATURES = 6
WEIGHT = ff.StepWeight(0.8)


@dataclass(frozen=True, eq=False)
class Models:
    """Linear thresholds: 1 where x·slope + group·lift > cut, flipped with probability `noise`; arrays over k models."""

    slope: np.ndarray
    lift: np.ndarray
    cut: np.ndarray
    noise: np.ndarray

    def __len__(self):
        return len(self.cut)


class Population:
    """Rows (y, group, decisions of the models) from a distribution with known rates."""

    def __init__(self, kind: str, n_models: int, seed: int | Sequence[int] = 0) -> None:
        generator = np.random.default_rng(seed)
        direction = generator.normal(size=N_FEATURES)
        direction /= np.linalg.norm(direction)
        gap = generator.normal(size=N_FEATURES)
        gap *= 0.5 / np.linalg.norm(gap)
        label, group = np.meshgrid([-1.0, 1.0], [1.0, -1.0], indexing="ij")
        self.centre = label[:, :, None] * direction + group[:, :, None] * gap
        self.models = KINDS[kind](n_models, direction, gap, generator)

    def rates(self) -> np.ndarray:
        """Return the rate of decision 1 given label and group, shape (2, 2, k)."""
        m = self.models
        score = self.centre @ m.slope.T + np.arange(2)[None, :, None] * m.lift - m.cut
        plain = norm.cdf(score / np.linalg.norm(m.slope, axis=1))
        return plain * (1 - m.noise) + (1 - plain) * m.noise

    def points(self, names, sets) -> ff.TradeoffPoints:
        """Return the population's points of the models and the constant one, for demographic parity."""
        share = np.array([1 - SHARE_OF_GROUP, SHARE_OF_GROUP])
        cell = np.stack([share * (1 - POSITIVE_RATE), share * POSITIVE_RATE])  # (label, group)
        rates = self.rates()
        by_group = np.einsum("lg,lgk->kg", cell / share, rates)
        accuracy = np.einsum("g,gk->k", cell[1], rates[1]) + np.einsum("g,gk->k", cell[0], 1 - rates[0])
        positive = cell[1].sum()
        by_group = np.vstack([by_group, np.full((1, 2), float(positive > 0.5))])
        return points_from_rates(by_group, sets, np.append(accuracy, max(positive, 1 - positive)), names)

    def draw(self, n_rows: int, generator: np.random.Generator):
        """Return labels, groups and decisions (n, k) of a test set."""
        m = self.models
        group = (generator.random(n_rows) < SHARE_OF_GROUP).astype(int)
        label = (generator.random(n_rows) < POSITIVE_RATE[group]).astype(int)
        x = (self.centre[label, group] + generator.normal(size=(n_rows, N_FEATURES))).astype(np.float32)
        decisions = x @ m.slope.T.astype(np.float32) + np.outer(group, m.lift).astype(np.float32) > m.cut
        if m.noise.any():
            decisions ^= generator.random(decisions.shape, dtype=np.float32) < m.noise
        return label, group, decisions


def _few(k, direction, gap, generator):
    tilt = np.linspace(0.0, 1.5, k)[:, None] * 0.5 * (direction @ gap) / (gap @ gap)
    return Models(direction - tilt * gap, np.linspace(0.0, 1.2, k), np.full(k, 0.45), np.zeros(k))


def _close(k, direction, gap, generator):
    slope = direction + 0.15 * generator.normal(size=(k, N_FEATURES))
    return Models(slope, generator.uniform(0, 1.6, k), 0.5 + 0.15 * generator.normal(size=k), np.zeros(k))


def _wild(k, direction, gap, generator):
    slope = direction + 0.6 * generator.normal(size=(k, N_FEATURES))
    cut = 0.5 + 0.4 * generator.normal(size=k)
    return Models(slope, generator.uniform(0, 1.6, k), cut, generator.uniform(0, 0.15, k))


def _level(k, direction, gap, generator):
    return Models(np.repeat(direction[None], k, axis=0), np.full(k, 0.8), np.full(k, 0.5), np.full(k, 0.1))


KINDS = {"few": _few, "close": _close, "wild": _wild, "level": _level}
SIZES = {"few": 8, "close": 100, "wild": 200, "level": 100}
# Kind, models, rows, resamples. With more than 200 resamples the models are screened.
SCENARIOS = [(kind, k, n, 200) for kind, k in SIZES.items() for n in (1000, 12000)]
SCENARIOS += [("close", 500, 1000, 400), ("wild", 500, 1000, 400)]
# Where the winner's curse is small, the ratio of two biases needs more draws.
EXTRA = {("few", 1000): 2500, ("few", 12000): 3500, ("close", 12000): 1000}
# Families of uneven size are compared in small test sets only, to save time.
UNEVEN_ROWS = 1000
# Populations of the committed page; the methods were developed on others.
SEED = 2027


@dataclass(frozen=True)
class Coverage:
    """What a scenario measured; shares in [0, 1], biases in units of FAUC; `_error`: standard errors."""

    kind: str
    n_models: int
    n_rows: int
    n_resamples: int
    draws: int
    interval: float
    percentile: float
    comparison: float
    uneven: float
    bands: float
    curse_draws: int
    naive_bias: float
    naive_error: float
    honest_bias: float
    honest_error: float
    ratio: float
    ratio_error: float
    naive_against_best: float
    honest_against_best: float
    spread: float


def simulate(
    kind: str, n_models: int, n_rows: int, draws: int, n_resamples: int = 400, seed: int = SEED, extra: int = 0
) -> Coverage:
    """Draw test sets and hold every method against the population; `extra` draws are for the honest curve alone."""
    generator = np.random.default_rng([seed, n_models, n_rows])
    covered, curse = [], []
    for index in range(draws + extra):
        population = Population(kind, n_models, [seed, n_models, n_rows, index])
        y, group, decisions = population.draw(n_rows, generator)
        points = ff.tradeoff_points(y, decisions, sensitive_features=group)
        truth = population.points(points.names, points.sets)
        if index < draws:
            covered.append(_covered(y, group, decisions, truth, n_resamples, generator))
        curse.append(_curse(y, group, decisions, points, truth, generator))
    biases = np.array(curse)
    naive, honest, naive_best, honest_best = biases.mean(axis=0)
    ratio = honest / naive
    errors = biases.std(axis=0, ddof=1) / np.sqrt(len(biases))
    ratio_error = np.std(biases[:, 1] - ratio * biases[:, 0], ddof=1) / np.sqrt(len(biases)) / abs(naive)
    return Coverage(
        kind,
        n_models,
        n_rows,
        n_resamples,
        draws,
        *np.mean(covered, axis=0).tolist(),
        len(biases),
        *(naive, errors[0], honest, errors[1], ratio, ratio_error, naive_best, honest_best),
        biases[:, 2].std(ddof=1),
    )


def _covered(y, group, decisions, truth, n_resamples, generator) -> list[float]:
    """Tell which of the intervals and bands of one test set hold the truth."""
    data = {"sensitive_features": group, "n_resamples": n_resamples, "random_state": generator}
    best = ff.fauc(truth.frontier(), WEIGHT)
    interval = fauc_interval(y, decisions, weight=WEIGHT, **data)

    def compared(first: int) -> bool:
        comparison = compare_fauc(y, decisions[:, :first], decisions[:, first:], weight=WEIGHT, **data)
        return comparison.low <= _difference(truth, first) <= comparison.high

    k = decisions.shape[1]
    return [
        interval.low <= best <= interval.high,
        bool(np.quantile(interval.samples, 0.025) <= best <= np.quantile(interval.samples, 0.975)),
        compared(k // 2),
        compared(max(1, k // 8)) if len(y) <= UNEVEN_ROWS else np.nan,
        _holds(taf_bands(y, decisions, **data), truth.frontier()),
    ]


def _curse(y, group, decisions, points, truth, generator) -> list[float]:
    """Return what the naive and the honest curve of one test set promise beyond what they are held against."""
    honest = ff.fauc(honest_taf(y, decisions, sensitive_features=group, random_state=generator), WEIGHT)
    part = generator.permutation(len(y))[: len(y) * 4 // 5]
    chosen = ff.tradeoff_points(y[part], decisions[part], sensitive_features=group[part]).frontier()
    delivered = ff.fauc(truth.select(chosen.support).frontier(), WEIGHT)
    best = ff.fauc(truth.frontier(), WEIGHT)
    naive = ff.fauc(points.frontier(), WEIGHT)
    return [ff.fauc(chosen, WEIGHT) - delivered, honest - delivered, naive - best, honest - best]


def _difference(truth: ff.TradeoffPoints, half: int) -> float:
    k = len(truth) - 1
    families = (np.r_[0:half, k], np.r_[half:k, k])
    first, second = (ff.fauc(truth.select(family).frontier(), WEIGHT) for family in families)
    return first - second


def _holds(bands, truth: ff.TAFCurve) -> bool:
    """Tell whether a band holds a step curve everywhere: at every knot and just to its right."""
    knots = np.concatenate([bands.lower.fairness, bands.upper.fairness, truth.fairness])
    levels = np.clip(np.concatenate([knots, knots + 1e-9]), 0.0, 1.0)
    value = truth(levels)
    return bool(np.all((bands.lower(levels) <= value + 1e-12) & (value <= bands.upper(levels) + 1e-12)))


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def report(results: list[Coverage]) -> str:
    """Return the results as a page."""
    coverage = [
        f"| {r.kind} | {r.n_models} | {r.n_rows:,} | {r.n_resamples} | {r.draws} | {100 * r.interval:.1f} | "
        f"{100 * r.comparison:.1f} | {_percent(r.uneven)} | {100 * r.bands:.1f} | {100 * r.percentile:.1f} |"
        for r in results
    ]
    curse = [
        f"| {r.kind} | {r.n_models} | {r.n_rows:,} | {r.curse_draws:,} | {r.naive_bias:+.5f} ± {r.naive_error:.5f} | "
        f"{r.honest_bias:+.5f} ± {r.honest_error:.5f} | {r.ratio:+.2f} ± {r.ratio_error:.2f} | "
        f"{r.naive_against_best:+.4f} | {r.honest_against_best:+.4f} | {r.spread:.4f} |"
        for r in results
    ]
    return PAGE.format(coverage="\n".join(coverage), curse="\n".join(curse))


PAGE = """# Coverage by simulation

Written by `examples/simulate_coverage.py`: nominal level 95 %, demographic parity, 80 % step weight. The rows come from
known distributions, a new one for every test set, and the truth is the population's, in closed form. The methods were
chosen among many variants by simulations of these kinds on other populations: no figure of this table had a part in
it. The term for kinks in `fauc_interval` was added later, because of populations like those of the last section. It
makes intervals longer at both ends.

- `few`: 8 models far apart.
- `close`: models near the best one, which differ in their treatment of the groups.
- `wild`: models of very different quality, with noise of their own.
- `level`: all models equally good, the hardest case for a maximum.

## Coverage (%)

| models | k | rows | resamples | draws | `fauc_interval` | `compare_fauc` | uneven | `taf_bands` | percentile |
|---|---|---|---|---|---|---|---|---|---|
{coverage}

With 500 draws a coverage of 95 % has a standard error of 1.0. `compare_fauc` compares the first half of the models with
the second, and, as two families need not be alike, the first eighth with the rest (uneven; in small test sets only).
`taf_bands` must cover at all levels of fairness at once, and is on the safe side. The last column is the plain
percentile interval of the resamples of `fauc_interval`, for comparison only. With more than 200 resamples the models
are screened by the first 100: the last two lines.

## The winner's curse

`naive − delivery`: how much more FAUC a frontier, chosen and evaluated on the same rows (four fifths of the test set),
promises on average than the chosen models deliver in the population. `honest − delivery`: the same for `honest_taf`,
which chooses on four fifths and evaluates on the last fifth. The ratio compares the two; ± is one standard error, and
where the curse is small there are more draws. Where the curse is smaller still, as with few models and many rows, even
these do not tell the ratio.

`naive − best` and `honest − best` compare with the best models of the population, which no finite test set can find;
here `naive` is the FAUC of all rows, and sd its standard deviation over test sets.

| models | k | rows | draws | naive − delivery | honest − delivery | ratio | naive − best | honest − best | sd |
|---|---|---|---|---|---|---|---|---|---|
{curse}

The yardstick matters. Delivery is the area under the TAF that the chosen models have in the population: what their
owner can get who knows them well. One who uses each model at the level for which it was chosen gets less, and
`honest_taf` does not say how much. In the populations of the development, delivery in that sense was lower by 0.0046
(`few`, 1,000 rows, 2,000 draws) and 0.0018 (`close`, 12,000 rows, 1,200 draws), and held against it the honest curve is
off by about two thirds and a little more than half of what the naive one is. Another yardstick is the delivery of
models chosen on all rows. An earlier version of this page used it, and found a ratio of 0.34 for `close` with 12,000
rows; the yardstick was changed after that figure was seen.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--no-extra", action="store_true", help="no more draws for small winner's curses")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--scenarios", nargs="*", help="such as few-8-1000; default: all")
    parser.add_argument("--records", type=Path, help="JSON lines; scenarios that are in it are not run again")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = arguments.records.read_text().splitlines() if arguments.records and arguments.records.exists() else []
    done = {(r.kind, r.n_models, r.n_rows): r for r in (Coverage(**json.loads(line)) for line in lines)}
    results = []
    for kind, k, n, n_resamples in SCENARIOS:
        if arguments.scenarios and f"{kind}-{k}-{n}" not in arguments.scenarios:
            continue
        if (kind, k, n) in done:
            results.append(done[kind, k, n])
            continue
        start = time.perf_counter()
        extra = 0 if arguments.no_extra or k != SIZES[kind] else EXTRA.get((kind, n), 0)
        results.append(simulate(kind, k, n, arguments.draws, n_resamples, arguments.seed, extra))
        print(results[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        if arguments.records:
            with arguments.records.open("a") as file:
                file.write(json.dumps(asdict(results[-1])) + "\n")
    page = report(results)
    print(page)
    if arguments.out:
        # The other simulation has a section of its own on the page.
        old = arguments.out.read_text(encoding="utf-8") if arguments.out.exists() else ""
        _, heading, section = old.partition("## Populations drawn at random")
        arguments.out.write_text(f"{page}\n{heading}{section}" if heading else page, encoding="utf-8")


if __name__ == "__main__":
    main()
