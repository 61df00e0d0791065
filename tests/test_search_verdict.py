"""The verdict of a search: counts, paired tests, the order of tests, and how often it certifies what is none."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tools import search_study

from fairfrontier.search._candidates import SearchRequirement, likeliest
from fairfrontier.search._evidence import search_verdict
from fairfrontier.search._training import Checkpoint, sufficiency
from fairfrontier.search._verdict import (
    BaselineComparison,
    compare,
    count,
    examine,
    largest_pair,
    mean_counts,
    primary,
    sequence,
    verdicts,
)


def rows(n=3000, k=4, groups=2, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    y = rng.random(n) < 0.3 + 0.1 * group
    baseline = rng.random(n) < 0.2 + 0.3 * y + 0.1 * group
    decisions = np.where(rng.random((n, k)) < 0.15, rng.random((n, k)) < 0.4, baseline[:, None])
    sensitive = {"sex": np.array([f"g{one}" for one in group], dtype=object)}
    return y, sensitive, baseline, decisions


def gap_difference(base, decided, masks, pair, other):
    """The difference of two gaps and its variance, row by row: the obvious way."""
    psi = np.zeros(len(base))
    for sign, mask in ((1, masks[pair[0]]), (-1, masks[pair[1]])):
        psi[mask] += sign * (base[mask] - base[mask].mean()) / mask.sum()
    for sign, mask in ((-1, masks[other[0]]), (1, masks[other[1]])):
        psi[mask] += sign * (decided[mask] - decided[mask].mean()) / mask.sum()
    gap = base[masks[pair[0]]].mean() - base[masks[pair[1]]].mean()
    gap -= decided[masks[other[0]]].mean() - decided[masks[other[1]]].mean()
    return gap, (psi**2).sum() + sum(1.0 / masks[i].sum() ** 2 for i in {*pair, *other})


class TestComparison:
    @pytest.mark.parametrize("groups", [2, 3])
    def test_it_is_that_of_the_rows(self, groups):
        y, sensitive, baseline, decisions = rows(groups=groups)
        counts = count(y, sensitive, baseline, decisions, fairness="demographic_parity")
        pair = largest_pair(counts)
        found = compare(counts, pair)
        difference = (decisions == y[:, None]).astype(float) - (baseline == y)[:, None]
        np.testing.assert_allclose(found.accuracy, difference.mean(axis=0))
        variance = ((difference**2).sum(axis=0) + 1) / len(y) - difference.mean(axis=0) ** 2
        np.testing.assert_allclose(found.accuracy_error, np.sqrt(variance / len(y)))
        masks = [sensitive["sex"] == f"g{one}" for one in range(groups)]
        ways = [way for i, j in counts.sets.pairs() for way in ((i, j), (j, i))]
        for position, way in enumerate(ways):
            for k in range(decisions.shape[1]):
                gap, variance = gap_difference(baseline.astype(float), decisions[:, k].astype(float), masks, pair, way)
                assert found.gains[position, k] == pytest.approx(gap)
                assert found.gain_errors[position, k] == pytest.approx(np.sqrt(variance))

    def test_attributes_that_overlap(self):
        y, sensitive, baseline, decisions = rows(k=2)
        rng = np.random.default_rng(1)
        sensitive["race"] = rng.choice(["x", "y", "z"], len(y)).astype(object)
        counts = count(y, sensitive, baseline, decisions, fairness="demographic_parity")
        masks = [sensitive[name.split("=")[0]] == name.split("=")[1] for name in counts.sets.names]
        pair = largest_pair(counts)
        found = compare(counts, pair)
        ways = [way for i, j in counts.sets.pairs() for way in ((i, j), (j, i))]
        for position, way in enumerate(ways):
            gap, variance = gap_difference(baseline.astype(float), decisions[:, 1].astype(float), masks, pair, way)
            assert found.gains[position, 1] == pytest.approx(gap)
            assert found.gain_errors[position, 1] == pytest.approx(np.sqrt(variance))

    def test_quotients_are_compared_on_the_scale_of_logarithms(self):
        y, sensitive, baseline, decisions = rows()
        counts = count(y, sensitive, baseline, decisions, fairness="impact_ratio")
        found = compare(counts, largest_pair(counts))
        masks = [sensitive["sex"] == "g0", sensitive["sex"] == "g1"]

        def log_quotient(decided, masks):
            return np.log(decided[masks[0]].mean() / decided[masks[1]].mean())

        before = abs(log_quotient(baseline, masks))
        expected = [before - abs(log_quotient(one, masks)) for one in decisions.T]
        np.testing.assert_allclose(found.gain, expected)
        rng, draws = np.random.default_rng(0), []
        in_order = np.arange(len(y)) < masks[0].sum()
        for _ in range(400):  # a bootstrap of the rows inside each group
            again = np.concatenate([rng.choice(np.flatnonzero(mask), mask.sum()) for mask in masks])
            parts = [log_quotient(one[again], [in_order, ~in_order]) for one in (baseline, decisions[:, 0])]
            draws.append(parts[0] - parts[1])
        assert found.gain_errors[np.argmin(found.gains[:, 0]), 0] == pytest.approx(np.std(draws), rel=0.15)

    def test_equal_opportunity_compares_rows_of_one_label(self):
        y, sensitive, baseline, decisions = rows()
        counts = count(y, sensitive, baseline, decisions, fairness="equal_opportunity")
        women = sensitive["sex"] == "g0"
        expected = [baseline[y & women].mean(), baseline[y & ~women].mean()]
        np.testing.assert_allclose(counts.base_rates(), expected)

    def test_the_baseline_itself_is_never_less_disparate(self):
        y, sensitive, baseline, _ = rows()
        counts = count(y, sensitive, baseline, baseline[:, None], fairness="demographic_parity")
        found = compare(counts, largest_pair(counts))
        assert found.gain[0] == pytest.approx(0.0)
        assert found.p_values(0.005)[0] >= 0.5


def comparison(accuracy, gain, error=0.01, n_rows=1000):
    accuracy, gain = np.asarray(accuracy, dtype=float), np.asarray(gain, dtype=float)
    errors = np.full(len(accuracy), error)
    both, none = np.stack([errors, errors]), np.zeros((2, len(accuracy)))
    changed = n_rows * (n_rows * error**2 + accuracy**2)
    return BaselineComparison(accuracy, errors, np.stack([gain, gain + 1.0]), both, none, none, changed, n_rows)


class TestSequence:
    def test_tests_end_with_the_first_failure(self):
        found = comparison([0.0, 0.0, 0.0], [0.1, 0.0, 0.1])
        assert verdicts(found, np.array([0, 1, 2]), 0.05, 0.05) == ["alternative", "cannot tell", "cannot tell"]
        assert verdicts(found, np.array([2, 0, 1]), 0.05, 0.05) == ["alternative", "cannot tell", "alternative"]

    def test_what_is_too_inaccurate_or_more_disparate_is_none(self):
        found = comparison([-0.2, 0.0], [0.1, -0.2])
        assert verdicts(found, np.array([0, 1]), 0.005, 0.05) == ["not", "not"]

    def test_the_choice_comes_first_unless_it_will_fail(self):
        found = comparison([0.0, 0.1, -0.2], [0.05, 0.2, 0.2])
        assert sequence(found, 0.05, 0.05, 1000, 0).tolist() == [0, 1, 2]
        assert sequence(found, 0.05, 0.05, 1000, 2).tolist() == [1, 0, 2]

    def test_the_largest_gain_that_will_probably_pass_is_chosen(self):
        assert primary(comparison([0.1, 0.1, -0.2], [0.05, 0.2, 0.9]), 0.05, 0.05, 1000) == 1
        assert primary(comparison([-0.2, -0.1], [0.2, 0.2]), 0.05, 0.05, 1000) == 1

    def test_rows_needed_give_the_power(self):
        found = comparison([0.0, -0.2], [0.01, 0.1], n_rows=1000)
        needed, none = found.rows_needed(0.05, 0.05)
        assert none is None
        assert found.power(0.05, 0.05, needed)[0] == pytest.approx(0.8, abs=0.01)


class TestSearchVerdict:
    def test_a_required_candidate_alone_can_be_the_alternative(self):
        y, sensitive, _, _ = rows(n=20_000)
        rng = np.random.default_rng(2)
        men = sensitive["sex"] == "g1"
        baseline = y ^ (rng.random(len(y)) < 0.1) | (men & (rng.random(len(y)) < 0.3))
        better, random = y.copy(), rng.random(len(y)) < 0.5
        counts = count(y, sensitive, baseline, np.stack([better, random], axis=1), fairness="demographic_parity")
        options = {"margin": 0.005, "confidence": 0.95}
        found = search_verdict(["better", "random"], counts, counts, **options)
        assert (found.verdict, found.chosen) == ("alternative", 0)
        assert [one.verdict for one in found.candidates] == ["alternative", "not"]
        assert search_verdict(["better", "random"], counts, counts, required=1, **options).verdict == "none"
        assert (
            search_verdict(["better", "random"], counts, counts, required=0, min_fairness=0.9999, **options).verdict
            == "cannot tell"
        )
        assert found.baseline["accuracy"] == pytest.approx(np.mean(baseline == y))
        assert found.candidates[0].fairness == pytest.approx(1 - abs(y[men].mean() - y[~men].mean()))


class TestRequired:
    def test_a_required_candidate_is_tested_first_however_unlikely_it_looks(self):
        y, sensitive, baseline, decisions = rows(k=6)
        counts = count(y, sensitive, baseline, decisions, fairness="demographic_parity")
        for required in range(6):
            found = examine(counts, counts, margin=0.005, confidence=0.95, required=required)
            assert found.order[0] == required
            assert sorted(found.order) == list(range(6))

    def test_the_likeliest_to_keep_the_promise_and_the_margin_is_chosen(self):
        y, sensitive, _, _ = rows(n=4000)
        rng, men = np.random.default_rng(3), sensitive["sex"] == "g1"
        baseline = y | (men & (rng.random(len(y)) < 0.3))
        unfair = y | (men & (rng.random(len(y)) < 0.2))
        fair = y ^ (rng.random(len(y)) < 0.01)
        useless = rng.random(len(y)) < 0.5
        decisions = np.stack([unfair, fair, useless], axis=1)
        counts = count(y, sensitive, baseline, decisions, fairness="demographic_parity")
        asked = SearchRequirement(0.85, None, 0.95)
        assert likeliest(counts, asked, margin=0.005, n_report=4000) == 1

    def test_without_hope_for_an_alternative_the_promise_costs_no_more_accuracy_than_it_must(self):
        y, sensitive, _, _ = rows(n=4000)
        rng, men = np.random.default_rng(3), sensitive["sex"] == "g1"
        # All of them are far less accurate than the baseline; the ratios are about 0.75, 0.9 and 1.
        noise = rng.random(len(y))
        decisions = np.stack(
            [
                (rng.random(len(y)) < 0.4 + much * men) ^ (y & (noise < more))
                for much, more in ((0.13, 0.0), (0.04, 0.0))
            ]
            + [rng.random(len(y)) < 0.4],
            axis=1,
        )
        decisions[:, 1] |= y & (noise < 0.3)
        decisions[:, 0] |= y & (noise < 0.6)
        counts = count(y, sensitive, y, decisions, fairness="demographic_parity")
        ratio = counts.rates().min(axis=1) / counts.rates().max(axis=1)
        accuracy = counts.accuracy()
        assert ratio[0] < 0.8 < ratio[1] < ratio[2], ratio
        assert accuracy[0] > accuracy[1] > accuracy[2], accuracy
        asked = SearchRequirement(None, 0.8, 0.95)
        assert likeliest(counts, asked, margin=0.005, n_report=20_000) == 1

    def test_two_models_that_decide_half_of_the_rows_each(self):
        y, sensitive, baseline, decisions = rows(n=40_000, k=3)
        found = [
            count(y, sensitive, baseline, one, fairness="demographic_parity") for one in (decisions, decisions[:, ::-1])
        ]
        mean = mean_counts(found)
        np.testing.assert_allclose(mean.rates(), (found[0].rates() + found[1].rates()) / 2)
        np.testing.assert_allclose(mean.accuracy(), (found[0].accuracy() + found[1].accuracy()) / 2)
        of_second = np.random.default_rng(5).permutation(len(y)) % 2 == 1
        drawn = np.where(of_second[:, None], decisions[:, ::-1], decisions)
        halves = count(y, sensitive, baseline, drawn, fairness="demographic_parity")
        np.testing.assert_allclose(halves.rates(), mean.rates(), atol=0.02)


class TestStudy:
    """The tool behind the figures in results/search.md, on few simulated searches."""

    @pytest.mark.parametrize("n_candidates", [1, 30, 300])
    @pytest.mark.parametrize("null", ["accuracy", "fairness", "both"])
    def test_what_is_none_is_seldom_certified(self, n_candidates, null):
        share = search_study.certified(null, n_candidates=n_candidates, n_searches=300, n_rows=10_000, seed=1)
        assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)

    @pytest.mark.parametrize("population", search_study.POPULATIONS)
    @pytest.mark.parametrize("null", ["accuracy", "fairness"])
    def test_each_claim_has_its_level_where_few_decisions_change(self, null, population):
        world = search_study.World(*search_study.WORLDS[null], search_study.POPULATIONS[population], changed=0.0)
        # Of 20,000 draws; without the correction for skewness 5.5 % to 6.6 % of such cases passed.
        assert search_study.level(world, n_rows=9_000, draws=20_000) <= 0.0515

    def test_an_alternative_is_found_with_ten_thousand_rows_in_all(self):
        world = search_study.World(0.0, 0.03, changed=0.03)
        assert search_study.certified(world, n_candidates=10, n_searches=200, n_rows=10_000, seed=1) >= 0.75

    def test_models_that_test_each_other_have_the_level(self):
        shares = search_study.cross_fitted("regressions", n_rows=600, n_searches=20)
        assert max(shares) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 20)

    def test_the_population_is_what_people_are_drawn_from(self):
        model = LogisticRegression().fit(*search_study._people(300, np.random.default_rng(1))[:2])
        x, y, group = search_study._people(400_000, np.random.default_rng(2))
        options = {"fairness": "demographic_parity"}
        drawn = count(y, {"sex": group}, search_study._in_use(x), model.predict(x)[:, None], **options)
        exact = search_study._population_counts(model)
        np.testing.assert_allclose(exact.rows / 1e6, drawn.rows / 4e5, atol=0.004)
        found, true = (compare(counts, (1, 0)) for counts in (drawn, exact))
        np.testing.assert_allclose(true.accuracy, found.accuracy, atol=4 * found.accuracy_error.max())
        np.testing.assert_allclose(true.gains, found.gains, atol=4 * found.gain_errors.max())

    def test_searches_that_are_recorded_are_not_made_again(self, tmp_path):
        records = tmp_path / "searches.jsonl"
        options = {"n_rows": 400, "records": records}
        first = search_study.cross_fitted("regressions", n_searches=3, **options)
        kept = records.read_text()
        assert search_study.cross_fitted("regressions", n_searches=3, **options) == first
        assert records.read_text() == kept
        search_study.cross_fitted("regressions", n_searches=4, **options)
        assert records.read_text().startswith(kept)
        assert len(records.read_text().splitlines()) == 4

    @pytest.mark.parametrize(("name", "changed"), [("accuracy", 0.05), ("fairness", 0.03), ("better", 0.06)])
    def test_the_worlds_are_what_they_say(self, name, changed):
        world = search_study.World(*search_study.WORLDS[name], changed=changed)
        assert world.truth() == pytest.approx((*search_study.WORLDS[name], changed))
        counts = world.draw(400_000, 2, np.random.default_rng(0))
        found = compare(counts, (1, 0))
        np.testing.assert_allclose(found.accuracy, world.accuracy, atol=5 * found.accuracy_error.max())
        np.testing.assert_allclose(found.gain, world.gain, atol=5 * found.gain_errors.max())
        np.testing.assert_allclose(found.changed / counts.n_rows, changed, atol=0.003)


class TestScore:
    @pytest.mark.parametrize(
        ("right", "wrong", "n", "margin"), [(12, 20, 1000, 0.02), (3, 3, 400, 0.0), (0, 0, 500, 0.01)]
    )
    def test_the_error_is_that_of_the_likelihood_on_the_boundary(self, right, wrong, n, margin):
        """The share that turns wrong, found by a grid of the likelihood under the condition right − wrong = −margin."""
        place = np.arange(n)
        y = place % 3 == 0
        baseline, decided = y ^ (place < right), y ^ ((place >= right) & (place < right + wrong))
        sensitive = {"sex": np.where(place % 2, "f", "m").astype(object)}
        found = compare(count(y, sensitive, baseline, decided[:, None], fairness="demographic_parity"), (0, 1))
        q = np.linspace(margin, 0.2, 400_001)[1:]  # of turning wrong; turning right: q - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(k == 0, 0.0, k * np.log(p)) for k, p in ((right, q - margin), (wrong, q))]
            likelihood = sum(terms) + (n - right - wrong) * np.log1p(margin - 2 * q)
        best = q[np.nanargmax(likelihood)]
        above, error = found._utility(margin)
        assert above[0] == pytest.approx(right - wrong + n * margin)
        assert error[0] == pytest.approx(np.sqrt(max(n * (2 * best - margin - margin**2), 1.0)), rel=2e-3)

    def test_skewness_is_that_of_the_rows(self):
        y, sensitive, baseline, decisions = rows()
        counts = count(y, sensitive, baseline, decisions, fairness="demographic_parity")
        pair = largest_pair(counts)
        masks = [sensitive["sex"] == f"g{one}" for one in range(2)]
        psi = np.zeros(len(y))
        for sign, mask in ((1, masks[pair[0]]), (-1, masks[pair[1]])):
            change = baseline[mask].astype(float) - decisions[mask, 0]
            psi[mask] = sign * (change - change.mean()) / mask.sum()
        found = compare(counts, pair)
        same = int(pair != (0, 1))  # the candidate's gap in the direction of the baseline's
        assert found.gain_skews[same, 0] == pytest.approx((psi**3).sum() / found.gain_errors[same, 0] ** 3)


class TestSufficiency:
    def test_few_checkpoints_say_nothing(self):
        assert sufficiency([Checkpoint(2, 3, 0.8), Checkpoint(3, 4, 0.8)]) is None

    def test_two_small_gains_are_enough(self):
        grown = [Checkpoint(i, i, area) for i, area in enumerate([0.8, 0.85, 0.8502, 0.85])]
        assert sufficiency(grown).enough
        assert not sufficiency(grown[:3]).enough

    def test_gains_that_halve_sum_to_the_last(self):
        found = sufficiency([Checkpoint(i, i, 0.9 - 0.1 * 0.5**i) for i in range(6)])
        assert found.expected == pytest.approx(found.last_gain)
        assert found.bound >= found.expected
