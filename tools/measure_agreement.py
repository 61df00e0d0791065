"""Compare every measure with an independent implementation on random cases with ties, weights and 2 to 8 groups.

python tools/measure_agreement.py [cases] [first seed]

The references are exact fractions over pairs of groups, scikit-learn, SciPy, statsmodels and, since it takes 50 ms a
call, Fairlearn in every tenth case. Every case is also seen with its rows in another order and its groups renamed, and
in chunks; every fiftieth as Dask arrays.
"""

import sys
import warnings
from collections import Counter
from fractions import Fraction
from itertools import combinations

import dask.array as da
import numpy as np
from fairlearn import metrics as fairlearn_metrics
from scipy.stats import ks_2samp
from sklearn import metrics as sklearn_metrics
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.weightstats import DescrStatsW

import fairfrontier as ff
from fairfrontier.chunks import array_chunks

# The labels on which a measure conditions, and how two rates are compared.
CONDITIONS = {
    "demographic_parity": (None,),
    "equal_opportunity": (1,),
    "true_positive_rate_parity": (1,),
    "predictive_equality": (0,),
    "false_positive_rate_parity": (0,),
    "equalized_odds": (1, 0),
    "impact_ratio": (None,),
    "demographic_parity_ratio": (None,),
    "equal_opportunity_ratio": (1,),
    "predictive_equality_ratio": (0,),
    "equalized_odds_ratio": (1, 0),
    "odds_ratio": (None,),
}
FAIRLEARN = {
    "demographic_parity": fairlearn_metrics.demographic_parity_difference,
    "equal_opportunity": fairlearn_metrics.equal_opportunity_difference,
    "equalized_odds": fairlearn_metrics.equalized_odds_difference,
    "impact_ratio": fairlearn_metrics.demographic_parity_ratio,
    "equal_opportunity_ratio": fairlearn_metrics.equal_opportunity_ratio,
    "equalized_odds_ratio": fairlearn_metrics.equalized_odds_ratio,
}
# Every so many cases the slow ones.
FAIRLEARN_EVERY, DASK_EVERY = 10, 50
CLOSE = 1e-10


class Case:
    """Labels, scores with many ties, groups, strata and weights; every group has both labels."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.seed, n, groups = seed, int(rng.integers(10, 200)), int(rng.integers(2, 9))
        every = np.arange(2 * groups)
        self.group = np.concatenate([every // 2, rng.integers(0, groups, n)])
        self.y = np.concatenate([every % 2, rng.integers(0, 2, n)])
        self.n = len(self.y)
        self.scores = np.clip(rng.integers(0, 6, (self.n, 3)) / 5 + rng.choice([0, -0.4, 0.4], 3), 0, 1)
        self.job = np.where(np.arange(self.n) < 2 * groups, "x", rng.choice(list("xyz"), self.n))
        weighted = rng.random() < 0.7
        self.weight = rng.integers(1, 4, self.n).astype(float) if weighted else np.ones(self.n)
        self.decided = (self.scores > 0.5).astype(int)

    def points(self, **options):
        options = {"sensitive_features": self.group, "sample_weight": self.weight, "include_constant": False} | options
        return ff.tradeoff_points(options.pop("y", self.y), options.pop("scores", self.scores), **options)


def rate(case, decided, rows):
    """Return the exact weighted share of rows that are selected; weights are whole numbers."""
    weight = case.weight[rows].astype(int)
    return Fraction(int(weight[decided[rows] == 1].sum()), int(weight.sum()))


def bias(measure, one, other):
    """Return 1 − fairness of two rates."""
    low, high = sorted([one, other])
    if not measure.endswith("ratio"):
        return high - low
    if measure == "odds_ratio":
        low, high = low * (1 - high), high * (1 - low)
    return Fraction(0) if one == other else 1 - low / high


def expected_fairness(case, measure, decided, pairs=None, strata=None):
    """Return the fairness of one model by a loop over conditions, strata and pairs of groups."""
    worst = Fraction(0)
    for condition in CONDITIONS[measure]:
        kept = np.ones(case.n, bool) if condition is None else case.y == condition
        for stratum in [None] if strata is None else np.unique(strata):
            inside = kept if stratum is None else kept & (strata == stratum)
            there = [g for g in np.unique(case.group) if (inside & (case.group == g)).any()]
            rates = {g: rate(case, decided, inside & (case.group == g)) for g in there}
            for one, other in combinations(there, 2):
                if pairs is None or pairs in (one, other):
                    worst = max(worst, bias(measure, rates[one], rates[other]))
    return float(1 - worst)


def fairness_measures(case, check):
    """Compare the fairness of every measure: plain, against a group, within strata; rows in another order; chunks."""
    order, names = case.rng.permutation(case.n), case.rng.permutation([f"group {c}" for c in "hgfedcba"])
    chunks = array_chunks(
        case.y, case.scores, sensitive_features=case.group, sample_weight=case.weight, chunk_rows=case.n // 3 + 1
    )
    first = int(case.rng.choice(np.unique(case.group)))
    both = {"group": case.group, "job": case.job}
    for measure in CONDITIONS:
        found = case.points(fairness=measure).fairness
        for kind, fairness, options in (
            ("plain", measure, {}),
            ("against a group", f"{measure} against {first}", {"pairs": first}),
            ("within strata", f"{measure} within job", {"strata": case.job}),
        ):
            given = {"sensitive_features": both} if kind == "within strata" else {}
            values = found if kind == "plain" else case.points(fairness=fairness, **given).fairness
            for value, decided in zip(values, case.decided.T, strict=True):
                check(f"{kind}, fractions", value, expected_fairness(case, measure, decided, **options))
        renamed = {"sensitive_features": names[case.group][order], "sample_weight": case.weight[order]}
        other = case.points(y=case.y[order], scores=case.scores[order], fairness=measure, **renamed)
        check("other names and order of rows", other.fairness, found)
        check("chunks", ff.points_from_chunks(chunks, fairness=measure).fairness[:-1], found)
        if case.seed % DASK_EVERY == 0:
            lazy = [da.from_array(a, chunks=(case.n // 2 + 1, *a.shape[1:])) for a in (case.scores, case.group)]
            weight, y = (da.from_array(a, chunks=case.n // 2 + 1) for a in (case.weight, case.y))
            options = {"sensitive_features": lazy[1], "sample_weight": weight, "y": y, "scores": lazy[0]}
            check("Dask", case.points(fairness=measure, **options).fairness, found)
        if case.seed % FAIRLEARN_EVERY == 0 and measure in FAIRLEARN:
            against_fairlearn(case, check, measure, found)


def against_fairlearn(case, check, measure, found):
    """Compare a measure of the first model with Fairlearn's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where nobody is selected Fairlearn divides 0 by 0
        theirs = FAIRLEARN[measure](
            case.y, case.decided[:, 0], sensitive_features=case.group, sample_weight=case.weight
        )
    if np.isfinite(theirs):
        check("Fairlearn", found[0], theirs if measure.endswith("ratio") else 1 - theirs)


def payoffs(case):
    """Return a payoff for each label and decision, and the measure and its values by a plain sum."""
    tn, fp, fn, tp = case.rng.normal(size=4)
    measure = ff.expected_payoff(true_positive=tp, false_positive=fp, false_negative=fn, true_negative=tn)
    table = np.array([[tn, fp], [fn, tp]])
    best, worst = table.max(axis=1)[case.y] @ case.weight, table.min(axis=1)[case.y] @ case.weight
    return measure, [(table[case.y, d] @ case.weight - worst) / (best - worst) for d in case.decided.T]


def greedy_top(case, scores, share):
    """Return the probability with which each row is selected, score by score from the highest."""
    room, selected = share * case.weight.sum(), np.zeros(case.n)
    for value in sorted(set(scores), reverse=True):
        at = scores == value
        part = min(1.0, room / case.weight[at].sum())
        selected[at], room = part, room - part * case.weight[at].sum()
    return selected


def weighted_ks(case, scores):
    """Return the largest difference of the two distribution functions at any score."""
    return max(
        abs(
            np.average(scores[case.y == 1] <= cut, weights=case.weight[case.y == 1])
            - np.average(scores[case.y == 0] <= cut, weights=case.weight[case.y == 0])
        )
        for cut in set(scores)
    )


def accuracy_measures(case, check):
    """Compare every accuracy measure with scikit-learn, SciPy or a sum."""
    weighted = {"sample_weight": case.weight}
    plain = {
        "accuracy": (sklearn_metrics.accuracy_score, case.decided),
        "balanced_accuracy": (sklearn_metrics.balanced_accuracy_score, case.decided),
        "f1": (lambda y, d, **w: sklearn_metrics.f1_score(y, d, zero_division=0, **w), case.decided),
        "auc": (sklearn_metrics.roc_auc_score, case.scores),
        "brier": (lambda y, s, **w: 1 - sklearn_metrics.brier_score_loss(y, s, **w), case.scores),
        "ks": (lambda y, s, **w: weighted_ks(case, s), case.scores),
    }
    for name, (function, given) in plain.items():
        expected = [function(case.y, column, **weighted) for column in given.T]
        check(f"{name}", case.points(accuracy=name).accuracy, expected)
    if (case.weight == 1).all():
        expected = [ks_2samp(s[case.y == 1], s[case.y == 0]).statistic for s in case.scores.T]
        check("ks, SciPy", case.points(accuracy="ks").accuracy, expected)
    measure, expected = payoffs(case)
    check("expected_payoff", case.points(accuracy=measure).accuracy, expected)
    gain = case.rng.normal(size=case.n)
    perfect, worst = ((case.weight * gain)[sign * gain > 0].sum() for sign in (1, -1))
    expected = [((case.weight * gain)[d == 1].sum() - worst) / (perfect - worst) for d in case.decided.T]
    check("row_payoff", case.points(accuracy=ff.row_payoff(gain)).accuracy, expected)
    share = float(case.rng.choice([0.05, 0.2, 0.5, 0.81]))
    chosen = [greedy_top(case, s, share) for s in case.scores.T]
    check("top_share", list(ff.top_share(case.scores, share, **weighted).values()), chosen)
    positive = case.y == 1
    expected = [np.average(c[positive], weights=case.weight[positive]) for c in chosen]
    check("recall_at", case.points(accuracy=ff.recall_at(share)).accuracy, expected)


def regressions(case, check):
    """Compare the measures of regression, in standard deviations and in units of the target."""
    y, mean = case.rng.normal(size=case.n) + case.group, {}
    scores = y[:, None] + case.rng.normal(size=(case.n, 3))
    r2 = [max(0.0, sklearn_metrics.r2_score(y, s, sample_weight=case.weight)) for s in scores.T]
    mse = [sklearn_metrics.mean_squared_error(y, s, sample_weight=case.weight) for s in scores.T]
    for g in np.unique(case.group):
        mean[g] = np.average(scores[case.group == g], axis=0, weights=case.weight[case.group == g])
    apart = np.ptp(list(mean.values()), axis=0)
    deviation = DescrStatsW(y, weights=case.weight, ddof=0).std
    for fairness, unit in (("demographic_parity", deviation), ("mean_difference", 1.0)):
        points = case.points(y=y, scores=scores, fairness=fairness, accuracy="r2")
        check(f"regression, {fairness}", points.fairness, np.clip(1 - apart / unit, 0, 1))
        check("r2", points.accuracy, r2)
    check("exp_mse", case.points(y=y, scores=scores, accuracy="exp_mse").accuracy, np.exp(-np.array(mse)))


def associations(case, check):
    """Compare standardised mean differences and Mantel–Haenszel estimates with statsmodels."""
    scores, groups = case.scores[:, 0] + case.rng.normal(size=case.n), np.unique(case.group)
    found = ff.standardized_mean_difference(
        {"m": scores}, sensitive_features=case.group, reference=0, sample_weight=case.weight
    )["m"]
    spread = DescrStatsW(scores, weights=case.weight, ddof=0).std
    means = {g: DescrStatsW(scores[case.group == g], weights=case.weight[case.group == g]).mean for g in groups}
    check("SMD", [found[str(g)] for g in groups[1:]], [(means[g] - means[0]) / spread for g in groups[1:]])
    found = ff.mantel_haenszel(
        {"m": case.scores[:, 0]}, sensitive_features=case.group, control_features=case.job, reference=0
    )["m"]
    for g in groups[1:]:
        tables = [
            [[((case.group == a) & (case.job == j) & (case.decided[:, 0] == d)).sum() for d in (1, 0)] for a in (g, 0)]
            for j in "xyz"
        ]
        both = np.array([t for t in tables if np.sum(t, axis=1).min() > 0], dtype=float)
        one = found[str(g)]
        a, b, c, d = both[:, 0, 0], both[:, 0, 1], both[:, 1, 0], both[:, 1, 1]
        if not ((a * d).sum() and (b * c).sum()) or both.sum(axis=(1, 2)).min() < 2:
            continue  # statsmodels divides by 0
        theirs = StratifiedTable(both.transpose(1, 2, 0))
        check("Mantel–Haenszel odds ratio", one.odds_ratio, theirs.oddsratio_pooled)
        check("Mantel–Haenszel risk ratio", one.risk_ratio, theirs.riskratio_pooled)
        check("Mantel–Haenszel interval", [one.low, one.high], theirs.oddsratio_pooled_confint())
        check("Mantel–Haenszel test", one.p_value, theirs.test_null_odds(correction=False).pvalue)


def classes(case, check):
    """Compare decisions between three classes, each against the rest."""
    y = np.where(np.arange(case.n) < 3, np.arange(case.n) % 3, case.rng.integers(0, 3, case.n))
    decided = np.where(case.rng.random((case.n, 3)) < 0.6, y[:, None], case.rng.integers(0, 3, (case.n, 3)))
    for measure in ("demographic_parity", "impact_ratio"):
        points = case.points(y=y, scores=decided, fairness=measure)
        for j, column in enumerate(decided.T):
            expected = [expected_fairness(case, measure, column == value) for value in range(3)]
            check(f"three classes, {measure}", points.fairness[j], min(expected))
            check("three classes, accuracy", points.accuracy[j], np.average(column == y, weights=case.weight))


def compare(seeds):
    """Return the number of comparisons by what was compared; raise at the first that disagrees."""
    counts = Counter()
    for seed in seeds:

        def check(what, found, expected, seed=seed):
            np.testing.assert_allclose(
                found, expected, rtol=CLOSE, atol=CLOSE, err_msg=f"{what}, seed {seed}", equal_nan=False
            )
            counts[what] += np.size(found)

        case = Case(seed)
        for part in (fairness_measures, accuracy_measures, regressions, associations, classes):
            part(case, check)
    return counts


if __name__ == "__main__":
    n_cases, start = int((sys.argv[1:] or [3000])[0]), int((sys.argv[2:] or [0])[0])
    counted = compare(range(start, start + n_cases))
    for what, count in counted.items():
        print(f"| {what} | {count:,} |")
    print(f"{n_cases:,} cases, {sum(counted.values()):,} comparisons, all within {CLOSE:g}")
