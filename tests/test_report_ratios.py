"""Ratios of selection rates: intervals, tests and verdicts, against independent computations."""

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, selection_rate
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, chi2, fisher_exact, norm

from fairfrontier.report import Settings, audit, evaluate, summarise
from fairfrontier.report._tables import GROUP_COLUMNS, group_rows, proportion_test, ratio_interval, wilson, worst_ratios
from fairfrontier.report._words import plain

COUNTS = [(36, 40, 16, 80), (3, 30, 9, 31), (0, 20, 5, 20), (12, 12, 7, 9), (500, 1000, 700, 1100), (1, 7, 1, 900)]


def score_by_likelihood(ratio, x1, n1, x2, n2):
    """Return the score statistic with the restricted estimate found where the likelihood's slope is 0."""
    counts = ((x1, 1.0, 0.0), (x2, 1.0, 0.0), (n1 - x1, -ratio, 1.0), (n2 - x2, -1.0, 1.0))

    def slope(p2):
        return sum(count * step / (step * p2 + start) for count, step, start in counts if count)

    edge = min(1.0, 1 / ratio)
    at_edge = (ratio > 1 and x1 == n1) or (ratio <= 1 and x2 == n2)  # nobody is left that the edge would rule out
    p2 = edge if at_edge and slope(edge * (1 - 1e-15)) >= 0 else brentq(slope, 1e-300, edge * (1 - 1e-15), xtol=1e-300)
    p1 = ratio * p2
    terms = [(x, n, p) for x, n, p in ((x1, n1, p1), (x2, n2, p2)) if 0 < p < 1]
    return sum((x - n * p) ** 2 / (n * p * (1 - p)) for x, n, p in terms)


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_ratio_interval_is_where_the_score_test_rejects(counts, confidence):
    x1, n1, x2, n2 = counts
    low, high = ratio_interval(*counts, confidence)
    limit, ratio = chi2.ppf(confidence, 1), (x1 / n1) / (x2 / n2)

    def excess(log_ratio):
        return score_by_likelihood(np.exp(log_ratio), *counts) - limit

    if x1 == 0:
        assert low == 0
    else:
        assert np.log(low) == pytest.approx(brentq(excess, np.log(ratio) - 8, np.log(ratio) - 1e-6), abs=1e-10)
    start = np.log(ratio) if x1 else np.log(1e-3)
    assert np.log(high) == pytest.approx(brentq(excess, start + 1e-6, start + 12), abs=1e-10)


def test_intervals_and_tests_are_those_of_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    rng = np.random.default_rng(0)
    for _ in range(60):
        n1, n2 = rng.integers(30, 1500, 2).tolist()
        # Where a whole group is selected, statsmodels stops short of the lower end.
        x1, x2 = (int(rng.integers(1, n)) for n in (n1, n2))
        expected = proportion.confint_proportions_2indep(
            x1, n1, x2, n2, method="score", compare="ratio", correction=False, alpha=0.1
        )
        # Its restricted estimate is a difference of two large numbers, good to about nine digits.
        np.testing.assert_allclose(ratio_interval(x1, n1, x2, n2, 0.9), expected, rtol=2e-9)
        wanted = proportion.proportion_confint(x1, n1, alpha=0.1, method="wilson")
        np.testing.assert_allclose(wilson(x1, n1, 0.9), wanted, rtol=1e-10)
        pooled = (x1 + x2) / (n1 + n2)
        if min(n1, n2) * min(pooled, 1 - pooled) >= 10:
            _, p = proportion.proportions_ztest([x1, x2], [n1, n2])
            assert proportion_test(x1, n1, x2, n2) == pytest.approx(p, rel=1e-10)


def test_ratio_interval_turns_round_with_the_groups():
    x1, n1, x2, n2 = np.array([c for c in COUNTS if c[0]]).T
    low, high = ratio_interval(x1, n1, x2, n2, 0.9)
    other_low, other_high = ratio_interval(x2, n2, x1, n1, 0.9)
    np.testing.assert_allclose(low, 1 / other_high, rtol=1e-10)
    np.testing.assert_allclose(high, 1 / other_low, rtol=1e-10)
    assert np.isnan(ratio_interval(0, 5, 0, 5, 0.95)).all()
    assert np.isinf(ratio_interval(2, 5, 0, 5, 0.95)[1])


@pytest.mark.parametrize("n", [30, 60, 120])
def test_ratio_intervals_cover(n):
    """Coverage of nominally 95 % intervals by enumeration of all outcomes, without any simulation."""
    for p1, p2 in ((0.3, 0.5), (0.5, 0.5), (0.15, 0.4), (0.7, 0.8)):
        hits = np.arange(n + 1)
        x1, x2 = (grid.ravel() for grid in np.meshgrid(hits, hits, indexing="ij"))
        weight = np.outer(*(_binomial(n, p) for p in (p1, p2))).ravel()
        low, high = ratio_interval(x1, n, x2, n, 0.95)
        covered = weight[(low <= p1 / p2) & (p1 / p2 <= high)].sum() + weight[np.isnan(low)].sum()
        assert 0.94 <= covered <= 0.97, (n, p1, p2, covered)


def _binomial(n, p):
    return binom.pmf(np.arange(n + 1), n, p)


def test_wilson_and_tests_are_those_of_scipy():
    for hits, n in ((0, 7), (3, 10), (250, 1000)):
        expected = binomtest(hits, n).proportion_ci(method="wilson")
        assert wilson(hits, n, 0.95) == pytest.approx((expected.low, expected.high), abs=1e-12)
    x1, n1, x2, n2 = np.array(COUNTS).T
    found = proportion_test(x1, n1, x2, n2)
    for (a, n_a, b, n_b), p in zip(COUNTS, found, strict=True):
        exact = fisher_exact([[a, n_a - a], [b, n_b - b]]).pvalue
        pooled = (a + b) / (n_a + n_b)
        z = (a / n_a - b / n_b) / np.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b))
        few = min(n_a, n_b) * min(pooled, 1 - pooled) < 10
        assert p == pytest.approx(exact if few else 2 * norm.sf(abs(z)), abs=1e-10)


def test_verdicts_need_the_whole_interval():
    rows = np.array([1000.0, 1000.0])
    selected = np.array([[100, 500], [480, 500], [390, 500], [0, 0]], dtype=float)
    found = worst_ratios(selected, rows, np.array([True, True]), 0.95)
    assert found.verdict == ["below", "above", "cannot tell", "nobody selected"]
    assert found.ratio[:3].tolist() == pytest.approx([0.2, 0.96, 0.78])
    for i in range(3):
        assert found.low[i] <= found.ratio[i] <= found.high[i]
    assert worst_ratios(selected, rows, np.array([True, False]), 0.95).verdict[0] == "cannot tell"


def test_many_groups_agree_with_all_pairs():
    rng = np.random.default_rng(0)
    rows = rng.integers(40, 900, 14).astype(float)
    selected = rng.binomial(rows.astype(int), rng.uniform(0.3, 0.7, (20, 14))).astype(float)
    found = worst_ratios(selected, rows, np.ones(14, dtype=bool), 0.95)
    for model in range(20):
        pairs = [(g, h) for g in range(14) for h in range(14) if g != h]
        counts = np.array([(selected[model, g], rows[g], selected[model, h], rows[h]) for g, h in pairs]).T
        low = ratio_interval(*counts, 0.95)[0].min()
        high = ratio_interval(*counts, 1 - 0.05 / 91)[1].min()
        assert found.low[model] == pytest.approx(low, rel=1e-9)
        assert found.high[model] == pytest.approx(min(1.0, high), rel=1e-9)


def data(n=900, seed=1):
    rng = np.random.default_rng(seed)
    race = rng.choice(list("abcdefgh"), n)
    tilt = dict(zip("abcdefgh", np.linspace(-0.45, 0.35, 8), strict=True))
    y = rng.integers(0, 2, n)
    shift = np.array([tilt[r] for r in race])
    scores = {f"m{j}": np.clip(0.5 + shift + 0.1 * y + 0.1 * rng.normal(size=n), 0, 1) for j in range(5)}
    return y, scores, race


def test_group_rows_against_fairlearn():
    y, scores, race = data()
    summary = summarise(evaluate(y, scores, sensitive_features={"race": race}), Settings(source="x", min_group=1))
    frame = MetricFrame(metrics=selection_rate, y_true=y, y_pred=scores["m2"] > 0.5, sensitive_features=race)
    rows = [dict(zip(GROUP_COLUMNS, row, strict=True)) for row in group_rows(summary, [2])]
    assert [row["group"] for row in rows] == list("abcdefgh")
    for row in rows:
        assert row["selection_rate"] == pytest.approx(frame.by_group[row["group"]], abs=1e-12)
        assert row["impact_ratio"] == pytest.approx(frame.by_group[row["group"]] / frame.by_group.max(), abs=1e-12)
        expected = frame.by_group.max() * (race == row["group"]).sum() - row["selected"]
        assert row["shortfall"] == pytest.approx(expected, abs=1e-9)
        assert row["shortfall"] == 0 or row["group"] != row["compared_with"]
    assert summary["attributes"][0]["worst"]["ratio"][2] == pytest.approx(frame.ratio(), abs=1e-12)


def test_headline_is_about_submitted_models():
    """Eight races and five models far below four fifths: nothing may say that the rule is met."""
    y, scores, race = data()
    result = audit(y, scores, sensitive_features={"race": race})
    summary = result.summary
    assert summary["best"] is None
    assert summary["subject"] < summary["n_models"]
    assert set(summary["attributes"][0]["worst"]["verdict"]) == {"below"}
    (rule,) = summary["four_fifths"]
    assert rule["verdict"] == "below"
    assert rule["model"] in scores
    text = " ".join(result.findings)
    assert "5 below" in text
    assert "meets the four-fifths rule" not in text
    assert "None of the 5 models reaches fairness 0.95" in plain(summary["recommendation"])
    page = result.to_html()
    assert page.count('<span class="badge bad">below</span>') == 5
    assert '<span class="badge good">' not in page


def test_audit_of_arrays_is_that_of_the_library(tmp_path):
    pandas = pytest.importorskip("pandas")
    y, scores, race = data()
    result = audit(
        np.where(y == 1, "good", "bad"),
        scores,
        sensitive_features={"race": race},
        positive="bad",
        reference={"race": "h"},
        baseline="m3",
        stack=False,
    )
    assert result.summary["settings"]["positive"] == "bad"
    assert "The model in use, m3, selects" in result.findings[-1]
    models, groups = result.models(), result.groups()
    assert models["model"].tolist() == list(scores)
    expected = [((scores[name] > 0.5) == (y == 0)).mean() for name in scores]
    np.testing.assert_allclose(models["accuracy"], expected)
    assert set(groups["compared_with"]) == {"h"}
    saved = pandas.read_csv(result.save(tmp_path / "new") / "groups.csv")
    pandas.testing.assert_frame_equal(saved, groups, check_dtype=False)
    assert "<table>" in result._repr_html_()
    assert "Worse than chance: 5 of 5 models" in " ".join(result.notes)


@pytest.mark.parametrize(("option", "value"), [("positive", "maybe"), ("baseline", "m9")])
def test_audit_refuses(option, value):
    y, scores, race = data(100)
    with pytest.raises(ValueError, match=option):
        audit(y, scores, sensitive_features=race, **{option: value})


def test_everybody_alike_is_said_once():
    y, sex = np.tile([0, 1], 100), np.repeat(["a", "b"], 100)
    result = audit(y, {"all": np.ones(200)}, sensitive_features=sex, stack=False, min_fairness=0.5)
    text = " ".join(result.findings)
    assert "the same share of every group of sensitive_feature, 100.0 %" in text
    assert "all selects everybody." in result.notes
