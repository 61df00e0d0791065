"""Accuracy as ranks, payoffs and F-scores; scores between groups; strata: against scikit-learn, SciPy and R."""

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from sklearn import metrics as sklearn_metrics
from typer.testing import CliRunner

import fairfrontier as ff
from fairfrontier._cli.app import app
from fairfrontier.chunks import array_chunks
from fairfrontier.exceptions import GroupError, InvalidInputError

PAYOFFS = ("true_positive", "false_positive", "false_negative", "true_negative")
LOANS = ff.expected_payoff(true_positive=1.0, false_positive=-2.0)


def problem(seed, n=None):
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(20, 200))
    y = np.concatenate([[0, 1, 0, 1], rng.integers(0, 2, n)])
    group = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, n)])
    scores = np.clip(rng.integers(0, 8, (n + 4, 3)) / 7 + 0.1 * y[:, None], 0, 1)
    return y, group, scores, rng.integers(1, 4, n + 4).astype(float)


def accuracies(accuracy, y, scores, group, weight=None, **options):
    points = ff.tradeoff_points(
        y, scores, sensitive_features=group, accuracy=accuracy, sample_weight=weight, include_constant=False, **options
    )
    return points.accuracy


def test_auc_and_f1_are_those_of_scikit_learn():
    for seed in range(100):
        y, group, scores, weight = problem(seed)
        for given in (None, weight):
            auc = [sklearn_metrics.roc_auc_score(y, s, sample_weight=given) for s in scores.T]
            np.testing.assert_allclose(accuracies("auc", y, scores, group, given), auc, atol=1e-12)
            f1 = [sklearn_metrics.f1_score(y, s > 0.5, sample_weight=given, zero_division=0) for s in scores.T]
            np.testing.assert_allclose(accuracies("f1", y, scores, group, given), f1, atol=1e-12)


def test_ks_is_that_of_scipy():
    for seed in range(50):
        y, group, scores, _ = problem(seed)
        expected = [ks_2samp(s[y == 1], s[y == 0]).statistic for s in scores.T]
        np.testing.assert_allclose(accuracies("ks", y, scores, group), expected, atol=1e-12)


def test_recall_at_a_rate_is_recall_of_the_top():
    for seed in range(50):
        y, group, scores, weight = problem(seed)
        for rate in (0.1, 0.37, 0.8):
            found = accuracies(ff.recall_at(rate), y, scores, group, weight)
            chosen = ff.top_share(scores, rate, sample_weight=weight)
            expected = [np.average(chosen[name][y == 1], weights=weight[y == 1]) for name in chosen]
            np.testing.assert_allclose(found, expected, atol=1e-12)
            for decided in chosen.values():
                assert np.average(decided, weights=weight) == pytest.approx(rate)
                assert len(np.unique(decided[(decided > 0) & (decided < 1)])) <= 1


def test_the_top_is_that_of_a_sorted_list():
    for seed in range(60):
        _, _, scores, weight = problem(seed)
        weight = np.where(np.random.default_rng(seed).random(len(weight)) < 0.2, 0.0, weight)
        for weights in (None, weight):
            w = np.ones(len(scores)) if weights is None else weights
            for rate in (0.0, 0.2, 0.5, 1.0):
                for j, chosen in enumerate(ff.top_share(scores, rate, sample_weight=weights).values()):
                    left, expected = rate * w.sum(), np.zeros(len(scores))
                    for value in sorted(set(scores[:, j]), reverse=True):
                        rows = (scores[:, j] == value) & (w > 0)
                        if rows.any():
                            expected[rows] = min(1.0, left / w[rows].sum())
                            left = max(0.0, left - w[rows].sum())
                    np.testing.assert_allclose(chosen[w > 0], expected[w > 0], atol=1e-9)


@pytest.mark.parametrize("kind", [np.bool_, np.int64, np.float16, np.longdouble])
def test_the_top_takes_numbers_of_every_type(kind):
    scores = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=kind)
    found = ff.top_share(scores, 0.5)
    assert [chosen.tolist() for chosen in found.values()] == [[1, 0, 1, 0], [0, 1, 1, 0]]


def test_the_top_is_exact_for_many_rows_few_values_and_every_layout():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, rate = int(rng.choice([1, 2, 3, 255, 256, 257, 900])), float(rng.choice([0.0, 0.2, 1 / 3, 0.5, 1.0]))
        continuous, few = rng.normal(size=n), rng.integers(0, 3, n) / 2
        columns = {"any": continuous, "few": few, "constant": np.full(n, 0.3), "zeros": -few * (few < 1)}
        together = np.stack(list(columns.values()), axis=1)
        before = together.copy()
        given = [columns, together.T.copy().T, {name: together[:, j] for j, name in enumerate(columns)}]
        given += [{name: pd.Series(values, dtype="float32") for name, values in columns.items()}]
        for scores in [together, *given]:
            for chosen, values in zip(ff.top_share(scores, rate).values(), columns.values(), strict=True):
                exact = values.astype(np.float32).astype(float) if scores is given[-1] else values
                expected, left = np.zeros(n), rate * n
                for value in np.unique(exact)[::-1]:
                    tied = exact == value
                    expected[tied] = np.clip(left / tied.sum(), 0.0, 1.0)
                    left -= tied.sum()
                np.testing.assert_allclose(chosen, expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(together, before)


def test_payoffs_against_a_sum():
    for seed in range(50):
        y, group, scores, weight = problem(seed)
        rng = np.random.default_rng(seed)
        tp, fp, fn, tn = rng.normal(size=4)
        measure = ff.expected_payoff(true_positive=tp, false_positive=fp, false_negative=fn, true_negative=tn)
        table = np.array([[tn, fp], [fn, tp]])
        best = table.max(axis=1)[y] @ weight
        worst = table.min(axis=1)[y] @ weight
        decided = (scores > 0.5).astype(int)
        expected = [(table[y, d] @ weight - worst) / (best - worst) for d in decided.T]
        np.testing.assert_allclose(accuracies(measure, y, scores, group, weight), expected, atol=1e-12)
        gain = rng.normal(size=len(y))
        most = np.maximum(weight * gain, 0).sum()
        least = np.minimum(weight * gain, 0).sum()
        expected = ((weight * gain) @ decided - least) / (most - least)
        np.testing.assert_allclose(accuracies(ff.row_payoff(gain), y, scores, group, weight), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("accuracy", "value"),
    [("auc", 0.5), ("ks", 0.0), ("f1", 2 * 0.25 / 1.25), (ff.recall_at(0.2), 0.2), ("accuracy", 0.75)],
)
def test_the_best_constant_model_is_best_by_the_measure(accuracy, value):
    y, group = np.tile([0, 0, 0, 1], 10), np.repeat(["a", "b"], 20)
    points = ff.tradeoff_points(y, np.linspace(0, 1, 40), sensitive_features=group, accuracy=accuracy)
    assert points.accuracy[-1] == pytest.approx(value)
    assert points.fairness[-1] == 1.0


def test_payoffs_may_depend_on_the_decision_for_one_label_only():
    y, group = np.array([0, 0, 1, 1]), list("abab")
    measure = ff.expected_payoff(true_positive=1.0, false_negative=1.0, false_positive=-1.0)
    assert accuracies(measure, y, [1.0, 0.0, 0.0, 1.0], group).tolist() == [0.5]


def test_payoffs_prefer_the_better_constant():
    y, group = np.tile([0, 0, 0, 1], 10), np.repeat(["a", "b"], 20)
    measure = ff.expected_payoff(true_positive=5.0, false_positive=-1.0)
    points = ff.tradeoff_points(y, np.linspace(0, 1, 40), sensitive_features=group, accuracy=measure)
    assert points.rates[-1].tolist() == [1.0, 1.0]
    assert points.accuracy[-1] == pytest.approx(5 / 8)


@pytest.mark.parametrize("accuracy", ["auc", "ks", "f1", ff.recall_at(0.3), LOANS])
def test_intervals_take_them(accuracy):
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    scores = np.clip(0.4 * y[:, None] + 0.6 * rng.random((300, 3)), 0, 1)
    options = {"sensitive_features": group, "accuracy": accuracy}
    interval = ff.fauc_interval(y, scores, n_resamples=60, random_state=0, **options)
    assert interval.estimate == pytest.approx(ff.fauc_score(y, scores, **options))
    assert interval.low < interval.corrected < interval.high
    assert interval.samples.std() > 0


def test_amounts_stay_with_their_rows_in_resamples():
    rng = np.random.default_rng(0)
    y, group, gain = rng.integers(0, 2, 300), rng.integers(0, 3, 300), rng.normal(size=300)
    perfect = (gain > 0).astype(float)
    options = {"sensitive_features": group, "accuracy": ff.row_payoff(gain), "include_constant": False}
    bands = ff.taf_bands(y, perfect, n_resamples=60, random_state=0, **options)
    assert bands.estimate.accuracy[0] == pytest.approx(1.0)
    assert bands.low[0] == pytest.approx(1.0)


def test_chunks_say_what_they_cannot_do_and_do_the_rest():
    y, group, scores, _ = problem(1, n=100)
    chunks = array_chunks(y, scores, sensitive_features=group, chunk_rows=30)
    with pytest.raises(InvalidInputError, match="all rows at once"):
        ff.points_from_chunks(chunks, accuracy="auc")
    for accuracy in ("f1", ff.expected_payoff(false_positive=-2.0, false_negative=-1.0)):
        points = ff.points_from_chunks(chunks, accuracy=accuracy)
        np.testing.assert_allclose(points.accuracy[:-1], accuracies(accuracy, y, scores, group))


def test_amounts_per_row_are_summed_in_chunks_and_in_dask():
    y, group, scores, weight = problem(1, n=100)
    amounts = np.random.default_rng(1).normal(size=len(y))
    gain = ff.row_payoff(amounts)
    known = {"sensitive_features": group, "sample_weight": weight}
    whole = ff.tradeoff_points(y, scores, accuracy=gain, **known)
    decided = scores > 0.5
    best = weight @ np.maximum(amounts, 0)
    worst = weight @ np.minimum(amounts, 0)
    np.testing.assert_allclose(whole.accuracy[:-1], ((weight * amounts) @ decided - worst) / (best - worst))
    assert whole.accuracy[-1] == pytest.approx(max(-worst, best) / (best - worst))
    chunks = array_chunks(y, scores, chunk_rows=30, **known)
    np.testing.assert_allclose(ff.points_from_chunks(chunks, accuracy=gain).accuracy, whole.accuracy, atol=1e-12)
    lazy = [da.from_array(part, chunks=(30, *part.shape[1:])) for part in (y, scores, group, weight)]
    points = ff.tradeoff_points(lazy[0], lazy[1], sensitive_features=lazy[2], sample_weight=lazy[3], accuracy=gain)
    np.testing.assert_allclose(points.accuracy, whole.accuracy, atol=1e-12)
    np.testing.assert_allclose(points.fairness, whole.fairness, atol=1e-12)
    for wrong in (amounts[:-1], np.append(amounts, 1.0)):
        with pytest.raises(InvalidInputError, match="one amount per row"):
            ff.points_from_chunks(chunks, accuracy=ff.row_payoff(wrong))


def test_amounts_with_many_cells_are_those_of_few():
    rng = np.random.default_rng(0)
    y, group, gain = np.tile([0, 1], 400), np.arange(800) // 10, rng.normal(size=800)
    scores = rng.random((800, 3))
    many = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=ff.row_payoff(gain))
    few = ff.tradeoff_points(y, scores, sensitive_features=group % 2, accuracy=ff.row_payoff(gain))
    np.testing.assert_allclose(many.accuracy, few.accuracy, atol=1e-12)


def test_amounts_of_a_chunk_without_weight_are_not_there():
    y, group, scores, weight = problem(1, n=100)
    weight[30:60] = 0.0
    gain = ff.row_payoff(np.random.default_rng(1).normal(size=len(y)))
    known = {"sensitive_features": group, "sample_weight": weight}
    whole = ff.tradeoff_points(y, scores, accuracy=gain, **known)
    points = ff.points_from_chunks(array_chunks(y, scores, chunk_rows=30, **known), accuracy=gain)
    np.testing.assert_allclose(points.accuracy, whole.accuracy, atol=1e-12)
    np.testing.assert_allclose(points.fairness, whole.fairness, atol=1e-12)


def test_amounts_of_rows_without_weight_are_not_there():
    options = {"sensitive_features": list("aabb"), "accuracy": ff.row_payoff([0.0, 0.0, 3.0, 0.0])}
    with pytest.raises(InvalidInputError, match="among the rows with weight"):
        ff.tradeoff_points([0, 1, 0, 1], [0, 1, 1, 0], sample_weight=[1, 1, 0, 1], **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ff.expected_payoff(), "make a difference"),
        (lambda: ff.recall_at(0.0), "selection_rate"),
        (lambda: ff.row_payoff([0, 0]), "only zeros"),
        (lambda: accuracies(ff.row_payoff([1.0, 2.0]), [0, 1, 1], [0, 1, 1], list("aab")), "one amount per row"),
        (lambda: ff.top_share({"a": [0.1, np.nan]}, 0.5), "no NaN or inf; got nan of model 'a' at row 1"),
        (lambda: ff.top_share({"a": [0.0] * 300 + [np.inf]}, 0.5), "no NaN or inf; got inf of model 'a' at row 300"),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_standardized_mean_differences_against_plain_means():
    for seed in range(30):
        _, _, scores, weight = problem(seed)
        group = np.random.default_rng(seed).choice(["x", "y", "z"], len(scores))
        group[:3] = ["x", "y", "z"]
        found = ff.standardized_mean_difference(
            {"m": scores[:, 0]}, sensitive_features=group, reference="y", sample_weight=weight
        )
        mean = {g: np.average(scores[group == g, 0], weights=weight[group == g]) for g in "xyz"}
        centre = np.average(scores[:, 0], weights=weight)
        deviation = np.sqrt(np.average((scores[:, 0] - centre) ** 2, weights=weight))
        assert found["m"] == pytest.approx({g: (mean[g] - mean["y"]) / deviation for g in "xz"})


# Admissions to Berkeley in 1973 (R's UCBAdmissions): admitted and rejected men, admitted and rejected women.
BERKELEY = [
    (512, 313, 89, 19),
    (353, 207, 17, 8),
    (120, 205, 202, 391),
    (138, 279, 131, 244),
    (53, 138, 94, 299),
    (22, 351, 24, 317),
]


def test_strata_give_what_r_gives_for_berkeley():
    decided, sex, department = [], [], []
    for i, counts in enumerate(BERKELEY):
        for j, count in enumerate(counts):
            decided += [1 - j % 2] * count
            sex += [["m", "f"][j // 2]] * count
            department += [i] * count
    options = {"sensitive_features": sex, "control_features": department, "reference": "f"}
    found = ff.mantel_haenszel({"admitted": decided}, **options)["admitted"]["m"]
    # mantelhaen.test(UCBAdmissions, correct = FALSE)
    assert found.odds_ratio == pytest.approx(0.9046968, abs=1e-7)
    assert (found.low, found.high) == pytest.approx((0.7719074, 1.0603298), abs=1e-6)
    assert found.p_value == pytest.approx(0.2169, abs=1e-4)
    assert found.n_strata == 6
    # Without strata men seem to be favoured.
    options["control_features"] = np.zeros(len(sex))
    plain = ff.mantel_haenszel({"admitted": decided}, **options)["admitted"]["m"]
    assert plain.odds_ratio == pytest.approx(1198 * 1278 / (1493 * 557))
    rates = 1198 / 2691, 557 / 1835
    assert plain.risk_ratio == pytest.approx(rates[0] / rates[1])
    assert plain.risk_difference == pytest.approx(rates[0] - rates[1])
    # A score on the threshold is decision 0, as everywhere.
    on_threshold = ff.mantel_haenszel({"admitted": 0.5 + 0.2 * np.array(decided)}, **options)["admitted"]["m"]
    assert on_threshold.odds_ratio == plain.odds_ratio


def test_strata_without_both_groups_are_an_error():
    with pytest.raises(GroupError, match="both groups"):
        ff.mantel_haenszel([1, 0, 1, 0], sensitive_features=list("aabb"), control_features=list("xxyy"))


def rows_of_a_stack(n=1200):
    rng = np.random.default_rng(0)
    group, z = rng.choice(["a", "b"], n), rng.normal(size=(n, 3))
    y = (z.sum(axis=1) + 0.8 * (group == "a") + rng.normal(size=n) > 1.8).astype(int)
    H = np.stack([1 / (1 + np.exp(1.5 - z @ rng.random(3) - 0.8 * (group == "a"))) for _ in range(4)], axis=1)
    return H, y, group


class TestStacks:
    @pytest.mark.parametrize("accuracy", ["balanced_accuracy", "f1", LOANS, ff.expected_payoff(true_positive=9.0)])
    def test_they_are_tuned_and_selected_by_it(self, accuracy):
        H, y, group = rows_of_a_stack()
        options = {"alpha": 1.0, "random_state": 0}
        model = ff.FairStacksClassifier("precomputed", accuracy=accuracy, **options).fit(H, y, sensitive_features=group)
        points = ff.tradeoff_points(y, model.predict_path(H), sensitive_features=group, accuracy=accuracy)
        np.testing.assert_allclose(model.points(H, y, sensitive_features=group).accuracy, points.accuracy, atol=1e-12)
        np.testing.assert_allclose(model.points_.accuracy[-1], points.accuracy[-1], atol=1e-9)
        chosen = model.select(max_accuracy_loss=0.02)
        by_accuracy = ff.FairStacksClassifier("precomputed", **options).fit(H, y, sensitive_features=group)
        assert chosen.selection_.accuracy != pytest.approx(
            by_accuracy.select(max_accuracy_loss=0.02).selection_.accuracy, abs=1e-3
        )
        delivered = ff.tradeoff_points(y, chosen.predict(H), sensitive_features=group, accuracy=accuracy)
        assert delivered.accuracy[0] == pytest.approx(chosen.selection_.accuracy, abs=0.06)

    def test_the_constant_model_is_the_one_that_pays(self):
        H, y, group = rows_of_a_stack()
        everybody = ff.expected_payoff(true_positive=9.0, false_positive=-0.01)
        model = ff.FairStacksClassifier("precomputed", alpha=1.0, accuracy=everybody)
        chosen = model.fit(H, y, sensitive_features=group).select(0.999)
        assert y.mean() < 0.5
        assert chosen.selection_.kind == "constant"
        assert chosen.predict(H).all()

    def test_a_floor_that_only_the_constant_model_has_is_said(self):
        H, y, group = rows_of_a_stack()
        model = ff.FairStacksClassifier("precomputed", fairness="equal_opportunity", alpha=1.0)
        model.fit(1 - H, 1 - y, sensitive_features=group)  # the constant model accepts everybody
        chosen = model.select(min_rate=0.9999).selection_
        assert chosen.kind == "constant"
        assert any("leaves no stack" in note and "lower the threshold" in note for note in chosen.notes)
        with_stack = model.select(min_rate=0.6).selection_  # alone, it asks for the most accurate, not the fairest
        assert with_stack.kind == "stack"
        assert not any("min_rate" in note for note in with_stack.notes)

    def test_others_evaluate_and_do_not_tune(self):
        H, y, group = rows_of_a_stack()
        for accuracy in ("auc", "brier", ff.recall_at(0.2), "r2", lambda y_true, y_pred: 1.0):
            with pytest.raises(InvalidInputError, match="accuracy must be"):
                ff.FairStacksClassifier("precomputed", accuracy=accuracy).fit(H, y, sensitive_features=group)
        model = ff.FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=group)
        found = model.points(H, y, sensitive_features=group, accuracy="auc").accuracy[0]
        assert found == pytest.approx(sklearn_metrics.roc_auc_score(y, model.predict_path(H)[:, 0]))


class TestNamesWithNumbers:
    def test_they_are_the_measures_of_the_functions(self):
        y, group, scores, _ = problem(3, n=200)
        for text, measure in (
            ("recall_at:0.2", ff.recall_at(0.2)),
            ("payoff:1:-2", LOANS),
            ("payoff:1:-2:0.5:3", ff.expected_payoff(**dict(zip(PAYOFFS, (1, -2, 0.5, 3), strict=True)))),
        ):
            by_name = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=text).accuracy
            np.testing.assert_array_equal(
                by_name, ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=measure).accuracy
            )
            again = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=measure.name).accuracy
            np.testing.assert_array_equal(again, by_name)

    @pytest.mark.parametrize("text", ["recall_at:x", "payoff:1", "profit:1:2", "recall_at:0.1:0.2"])
    def test_errors_show_how_they_are_written(self, text):
        with pytest.raises(InvalidInputError, match=r"accuracy with numbers must be like 'recall_at:0.2'"):
            accuracies(text, [0, 1, 1], [0, 1, 1], list("aab"))

    def test_an_audit_takes_names_and_functions_and_says_what_it_cannot_show(self):
        y, group, scores, _ = problem(3, n=200)
        known = {"sensitive_features": group, "stack": False}
        for measure in (LOANS, "payoff:1:-2", ff.recall_at(0.2)):
            result = ff.audit(y, scores, accuracy=measure, **known)
            points = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=measure, include_constant=False)
            np.testing.assert_allclose(result.models()["accuracy"].sort_index(), points.accuracy)
            assert "of the possible payoff" in str(result) or "recall at 0.2 selected" in str(result)
        with pytest.raises(InvalidInputError, match="row_payoff"):
            ff.audit(y, scores, accuracy=ff.row_payoff(np.ones(len(y))), **known)
        with pytest.raises(InvalidInputError, match="got a function"):
            ff.audit(y, scores, accuracy=lambda y_true, y_pred: 1.0, **known)

    def test_the_command_line_takes_them(self, tmp_path):
        y, group, scores, _ = problem(3, n=200)
        table = pd.DataFrame(scores, columns=["m_a", "m_b", "m_c"][: scores.shape[1]]).assign(y=y, g=group)
        table.to_csv(tmp_path / "t.csv", index=False)
        out = tmp_path / "out"
        words = [tmp_path / "t.csv", "--label", "y", "--sensitive", "g", "--scores", "m_*", "--out", out, "--no-stack"]
        done = CliRunner().invoke(app, ["audit", *map(str, words), "--accuracy", "payoff:1:-2"])
        assert done.exit_code == 0, done.output
        found = pd.read_csv(out / "points.csv").set_index("model")["accuracy"]
        expected = ff.tradeoff_points(y, scores, sensitive_features=group, accuracy=LOANS)
        np.testing.assert_allclose(found[table.columns[:-2]], expected.accuracy[:-1], atol=1e-9)

    def test_measures_can_be_kept_in_files(self, tmp_path):
        y, group, scores, _ = problem(3, n=200)
        gain = np.random.default_rng(0).normal(size=len(y))
        for measure in (LOANS, ff.recall_at(1 / 3), ff.row_payoff(gain)):
            again = pickle.loads(pickle.dumps(measure))
            assert again.name == measure.name
            np.testing.assert_array_equal(accuracies(again, y, scores, group), accuracies(measure, y, scores, group))
        H, y, group = rows_of_a_stack(400)
        model = ff.FairStacksClassifier("precomputed", alpha=1.0, accuracy=LOANS).fit(H, y, sensitive_features=group)
        ff.save(model, tmp_path / "m.skops")
        loaded = ff.load(tmp_path / "m.skops")
        both = [one.points(H, y, sensitive_features=group).accuracy for one in (loaded, model)]
        np.testing.assert_array_equal(*both)
        assert loaded.select(0.9).selection_.accuracy == model.select(0.9).selection_.accuracy
