"""An auditor's daily jobs: weights, thresholds, words, Excel, PDF, a model card, small groups, no labels at all."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, selection_rate
from scipy.optimize import brentq
from scipy.stats import chi2
from sklearn.metrics import accuracy_score

import fairfrontier as ff
from fairfrontier.cli import main
from fairfrontier.exceptions import InvalidInputError

openpyxl = pytest.importorskip("openpyxl")


def people(n=1500, seed=3):
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n, p=[0.6, 0.38, 0.02])
    y = (rng.normal(size=n) + 0.5 * (sex == "m") > 0.2).astype(int)
    frame = pd.DataFrame({"y": y, "sex": sex, "race": race, "w": rng.uniform(0.2, 3, n)})
    for j in range(3):
        frame[f"m_{j}"] = np.clip(0.4 * y + 0.1 * j * (sex == "m") + 0.6 * rng.random(n), 0, 1)
    return frame


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function that audits a file or frame and gives the exit code, the output, the summary and the folder."""

    def audit(frame, *options, name="p.csv", sensitive=("sex",), label="y"):
        path, out = tmp_path / name, tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        {".csv": frame.to_csv, ".xlsx": frame.to_excel, ".parquet": frame.to_parquet}[path.suffix](path, index=False)
        chosen = [word for one in sensitive for word in ("--sensitive", one)]
        chosen += ["--label", label, "--no-stack"] if label else []
        code = main(["audit", str(path), *chosen, "--out", str(out), *options])
        shown = capsys.readouterr()
        summary = json.loads((out / "summary.json").read_text()) if code == 0 else None
        return code, " ".join((shown.out + shown.err).split()), summary, out

    return audit


def koopman_end(x1, n1, x2, n2, start, stop):
    """Return an end of the score interval of a ratio, by a constrained likelihood that is written out plainly."""

    def excess(theta):
        a, b, c = theta * (n1 + n2), theta * (n1 + x2) + x1 + n2, x1 + x2
        p2 = (b - np.sqrt(b * b - 4 * a * c)) / (2 * a)
        p1 = theta * p2
        score = (x1 - n1 * p1) ** 2 / (n1 * p1 * (1 - p1)) + (x2 - n2 * p2) ** 2 / (n2 * p2 * (1 - p2))
        return score - chi2.ppf(0.95, 1)

    return brentq(excess, start, stop, xtol=1e-14, rtol=1e-14)


def test_sample_weights(run):
    frame = people()
    code, _, summary, out = run(frame, "--sample-weight", "w", "--scores", "m_*", "--baseline", "m_0")
    assert code == 0
    table = pd.read_csv(out / "groups.csv")
    row = table[(table["model"] == "m_1") & (table["group"] == "f")].iloc[0]
    decided = (frame["m_1"] > 0.5).astype(int)
    rates = MetricFrame(
        metrics=selection_rate, y_true=frame["y"], y_pred=decided, sensitive_features=frame["sex"],
        sample_params={"sample_weight": frame["w"]},
    )  # fmt: skip
    assert row["selection_rate"] == pytest.approx(rates.by_group["f"], abs=1e-10)
    assert row["impact_ratio"] == pytest.approx(rates.by_group["f"] / rates.by_group["m"], abs=1e-10)
    assert row["rows"] == (frame["sex"] == "f").sum()
    worth = {g: w.sum() ** 2 / (w**2).sum() for g, w in frame.groupby("sex")["w"]}
    counts = [rates.by_group["f"] * worth["f"], worth["f"], rates.by_group["m"] * worth["m"], worth["m"]]
    assert row["impact_ratio_low"] == pytest.approx(koopman_end(*counts, 0.2, row["impact_ratio"] - 1e-6), abs=1e-10)
    assert row["impact_ratio_high"] == pytest.approx(koopman_end(*counts, row["impact_ratio"] + 1e-6, 1.2), abs=1e-9)
    expected = accuracy_score(frame["y"], decided, sample_weight=frame["w"])
    assert summary["models"][1]["accuracy"] == pytest.approx(expected, abs=1e-12)
    changed = pd.read_csv(out / "differences.csv").set_index("model").loc["m_1"]
    d = ((frame["m_1"] > 0.5) == frame["y"]).astype(int) - ((frame["m_0"] > 0.5) == frame["y"]).astype(int)
    mean = np.average(d, weights=frame["w"])
    error = np.sqrt((frame["w"] ** 2 * (d - mean) ** 2).sum()) / frame["w"].sum()
    assert changed["accuracy_difference"] == pytest.approx(mean, abs=1e-12)
    assert changed["accuracy_high"] == pytest.approx(mean + 1.959963984540054 * error, abs=1e-12)
    scores = frame[["m_0", "m_1", "m_2"]]
    result = ff.audit(frame["y"], scores, sensitive_features=frame[["sex"]], sample_weight=frame["w"], stack=False)
    # Selected over rows would not be the rate: the page shows the weights between them.
    assert '>Weight</th><th scope="col" class="number">Selected<' in result.to_html()
    assert ">Weight</th>" not in ff.audit(None, scores, sensitive_features=frame[["sex"]]).to_html()
    pd.testing.assert_frame_equal(result.groups(), table, check_dtype=False, atol=1e-12)
    assert list(result.tables) == ["models", "groups", "points", "frontier"]
    pd.testing.assert_frame_equal(result.tables["groups"], result.groups())
    chunked = pd.read_csv(
        run(frame, "--sample-weight", "w", "--scores", "m_*", "--chunk-rows", "100")[3] / "groups.csv"
    )
    pd.testing.assert_frame_equal(chunked, table, rtol=1e-9)
    ones = pd.read_csv(run(frame.assign(w=1), "--sample-weight", "w", "--scores", "m_*")[3] / "groups.csv")
    pd.testing.assert_frame_equal(ones, pd.read_csv(run(frame, "--scores", "m_*")[3] / "groups.csv"))
    assert run(frame.assign(w=-1), "--sample-weight", "w")[0] == 2


def test_thresholds_of_models_and_several(run):
    frame = people()
    frame["points"] = (300 + 550 * frame["m_2"]).round()
    options = ("--scores", "m_0", "--scores", "m_1", "--scores", "points", "--threshold", "0.4", "--threshold", "0.6")
    code, text, summary, out = run(frame, *options, "--threshold", "points=575", "--baseline", "m_0 > 0.4")
    assert code == 0
    assert "a score above the threshold (m_0: 0.4, 0.6; m_1: 0.4, 0.6; points: 575) selects" in text
    decided = {f"{m} > {t}": frame[m] > t for m in ("m_0", "m_1") for t in (0.4, 0.6)}
    decided["points"] = frame["points"] > 575
    assert [row["model"] for row in summary["models"]] == list(decided)
    table = pd.read_csv(out / "groups.csv").set_index(["model", "group"])
    for row in summary["models"]:
        assert row["accuracy"] == pytest.approx((decided[row["model"]] == frame["y"]).mean(), abs=1e-12)
        for sex in "fm":
            expected = decided[row["model"]][frame["sex"] == sex].sum()
            assert table.loc[(row["model"], sex), "selected"] == expected
    limits = {"m_0": [0.4, 0.6], "m_1": (0.4, 0.6), "points": 575}
    scores = frame[["m_0", "m_1", "points"]]
    result = ff.audit(frame["y"], scores, sensitive_features=frame[["sex"]], threshold=limits, stack=False)
    pd.testing.assert_frame_equal(result.groups().set_index(["model", "group"]), table, check_dtype=False)
    for options, message in (
        (("--scores", "points"), "or say what selects, such as --threshold points="),
        (("--threshold", "m_9=1"), "--threshold must be one of"),
        (("--threshold", "high"), "--threshold must be a number"),
        (("--threshold", "m_0=0.3", "--accuracy", "brier", "--scores", "m_*"), "reads scores as probabilities"),
    ):
        code, text, _, _ = run(frame, *options)
        assert (code, message in text) == (2, True), text


def test_scores_on_a_threshold_are_not_selected():
    """The scale that scores of other thresholds are put on must not turn a decision, however near it is."""
    near = 600 + np.array([-1e-13, 0.0, 1e-13, 1e-9]) * 1e3
    scores = np.tile(np.concatenate([near, [300, 850]]), 20)
    y, sex = np.tile([0, 1, 1], 40), np.tile(["f", "m"], 60)
    result = ff.audit(y, {"s": scores}, sensitive_features={"sex": sex}, threshold=600, stack=False)
    assert result.groups()["selected"].sum() == (scores > 600).sum()


def test_decisions_in_words(run):
    frame = people()
    words = frame[["y", "sex"]].assign(a=np.where(frame["m_0"] > 0.5, "approve", "deny"))
    words["y"] = np.where(frame["y"] == 1, "repaid", "default")
    expected = (words["a"] == "approve").groupby(words["sex"]).mean()
    for name in ("p.csv", "p.parquet", "p.xlsx"):
        code, text, summary, out = run(words, "--scores", "a", name=name)
        assert code == 0, text
        assert "Decision 1 is 'approve' and decision 0 'deny' in 'a'" in text
        assert summary["settings"]["positive"] == "repaid"
        table = pd.read_csv(out / "groups.csv").set_index("group")
        np.testing.assert_allclose(table["selection_rate"], expected[table.index], atol=1e-12)
        assert summary["models"][0]["accuracy"] == pytest.approx((frame["y"] == (frame["m_0"] > 0.5)).mean())
    code, _, _, out = run(words, "--scores", "a", label=None)
    assert pd.read_csv(out / "groups.csv")["selected"].sum() == (words["a"] == "approve").sum()
    odd = words.replace({"a": {"approve": "red", "deny": "blue"}})
    assert "neither is known to select" in run(odd, "--scores", "a")[1]
    labelled = odd.assign(y=np.where(frame["y"] == 1, "red", "blue"))
    assert run(labelled, "--scores", "a", "--positive", "red")[0] == 0
    assert "must be numbers; got text" in run(odd.assign(a=frame["race"]), "--scores", "a")[1]


def test_excel_in_and_out(run):
    frame = people().drop(columns="w")
    expected = run(frame)
    assert run(frame, name="p.xlsx")[2]["models"] == expected[2]["models"]
    chunked = run(frame, "--chunk-rows", "77", name="p.xlsx")[3]
    assert (chunked / "groups.csv").read_bytes() == (expected[3] / "groups.csv").read_bytes()
    code, _, summary, out = run(frame.rename(columns={"m_0": "=SUM(A1)"}), "--xlsx")
    assert code == 0
    sheets = pd.read_excel(out / "audit.xlsx", sheet_name=None)
    assert list(sheets) == ["about", "models", "groups", "points", "frontier"]
    pd.testing.assert_frame_equal(
        sheets["groups"].drop(columns="model"), pd.read_csv(out / "groups.csv").drop(columns="model"), rtol=1e-12
    )
    cells = [row[0] for row in openpyxl.load_workbook(out / "audit.xlsx")["models"].iter_rows()]
    assert [cell.data_type for cell in cells if cell.value == "=SUM(A1)"] == ["s"]
    assert summary["trail"]["sha256"] in sheets["about"].to_string()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="a PDF needs Chromium")
def test_pdf(run):
    code, _, _, out = run(people(), "--pdf")
    assert code == 0
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_no_browser_is_one_line(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, text, _, out = run(people(), "--pdf")
    assert code == 2
    assert "a PDF needs Chromium or Chrome" in text
    assert not out.exists()


def test_model_card(run):
    frame = people().rename(columns={"m_1": "m|<b>"})
    card = (run(frame, "--baseline", "m|<b>")[3] / "model_card.md").read_text()
    sections = [line[3:] for line in card.splitlines() if line.startswith("## ")]
    assert sections == [
        "Model details", "Intended use", "Factors", "Metrics", "Evaluation data", "Training data",
        "Quantitative analyses", "Ethical considerations", "Caveats and recommendations",
    ]  # fmt: skip
    assert card.startswith("# Model card: m\\|\\<b\\>\n")
    rate = (frame["m|<b>"] > 0.5)[frame["sex"] == "f"].mean()
    assert f"| sex | f | {(frame['sex'] == 'f').sum():,} | {100 * rate:.1f} % |" in card


def test_names_in_a_model_card_cannot_steer_a_terminal_or_become_markup(run):
    name, job = "m\x1b[31m\u202e", "j_<b>"
    frame = people().rename(columns={"m_1": name, "race": job})
    options = ("--baseline", name, "--fairness", f"impact_ratio within {job}")
    card = (run(frame, *options, sensitive=("sex", job))[3] / "model_card.md").read_text()
    assert card.startswith("# Model card: m\ufffd\\[31m\ufffd\n")
    assert not {"\x1b", "\u202e"} & set(card)
    assert "fairness: impact ratio within j \\<b\\>." in card


def test_least_share_of_a_group(run):
    frame = people()
    code, text, _, out = run(frame, "--min-group", "1", "--min-share", "0.05", sensitive=("race",))
    assert code == 0
    assert "are shown and not judged: c (" in text
    judged = pd.read_csv(out / "groups.csv").groupby("group")["judged"].first()
    assert judged.to_dict() == {"a": True, "b": True, "c": False}
    result = ff.audit(
        frame["y"], frame[["m_0"]], sensitive_features=frame[["race"]], min_group=1, min_share=0.05, stack=False
    )
    assert result.groups()["judged"].tolist() == [True, True, False]


def test_audit_of_arrays_without_labels(run, tmp_path):
    frame = people()
    scores, groups = frame[["m_0", "m_1"]], frame[["sex", "race"]]
    result = ff.audit(None, scores, sensitive_features=groups, threshold=0.4, baseline="m_1")
    out = run(frame, "--scores", "m_0", "--scores", "m_1", "--threshold", "0.4", "--format", "ll144",
              sensitive=("sex", "race"), label=None)[3]  # fmt: skip
    pd.testing.assert_frame_equal(result.groups(), pd.read_csv(out / "groups.csv"), check_dtype=False)
    assert result.groups()[["positives", "true_positive_rate", "false_positive_rate"]].isna().all(axis=None)
    law = pd.read_csv(out / "ll144.csv", keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(result.ll144(), law.fillna({"remark": ""}), check_dtype=False)
    written = json.loads((out / "summary.json").read_text())["models"]
    assert result.models()["verdict[sex]"].tolist() == [row["ratios"]["sex"]["verdict"] for row in written]
    saved = result.save(tmp_path / "saved", xlsx=True)
    names = ["audit.xlsx", "groups.csv", "model_card.md", "report.html", "summary.json"]
    assert sorted(path.name for path in saved.iterdir()) == names
    assert "There are no labels" in result.to_html()
    assert "<table>" in result._repr_html_()
    median = ff.audit(None, scores, sensitive_features=groups)
    expected = (frame["m_0"] > frame["m_0"].median()).groupby(frame["sex"]).mean()
    np.testing.assert_allclose(median.groups()["selection_rate"][:2], expected, atol=1e-12)
    for wrong in ({"accuracy": "brier"}, {"fairness": "equalized_odds"}):
        with pytest.raises(InvalidInputError, match="y_true must be given"):
            ff.audit(None, scores, sensitive_features=groups, **wrong)
    with pytest.raises(InvalidInputError, match="needs an audit with y_true"):
        result.points()


def test_missing_values_of_arrays():
    frame = people().astype({"sex": object})
    frame.loc[[4, 9], "sex"], frame.loc[20, "m_0"] = None, np.nan
    options = {"sensitive_features": frame[["sex"]], "stack": False}
    with pytest.raises(InvalidInputError, match=r"sensitive_features\['sex'\] must have no missing value; row 4"):
        ff.audit(frame["y"], frame[["m_1"]], **options)
    with pytest.raises(InvalidInputError, match=r"y_preds\['m_0'\] must have no NaN or inf; row 20"):
        ff.audit(frame["y"], frame[["m_0"]], missing="group", **options)
    dropped = ff.audit(frame["y"], frame[["m_0"]], missing="drop", **options)
    assert dropped.summary["n_rows"] == len(frame) - 3
    assert "3 rows were left out because they lack a value." in dropped.notes
    grouped = ff.audit(frame["y"], frame[["m_1"]], missing="group", **options)
    assert dict(zip(grouped.groups()["group"], grouped.groups()["rows"], strict=True))["(missing)"] == 2


def test_unknown_categories_are_counted_and_have_no_ratio(run):
    frame = people()[["sex", "race", "m_0"]].astype({"sex": object})
    frame.loc[:39, "sex"] = None
    frame["m_0"] = frame["m_0"].where(frame["sex"].notna(), 1.0)  # the highest rate, which must not be compared with
    options = ("--format", "ll144", "--missing", "group", "--scores", "m_0", "--threshold", "0.5")
    code, _, _, out = run(frame, *options, sensitive=("sex", "race"), label=None)
    assert code == 0
    table = pd.read_csv(out / "ll144.csv", na_values=[""])
    sex = table[table["categories"] == "sex"].set_index("category")
    assert sex.loc["(missing)", "applicants"] == 40
    assert np.isnan(sex.loc["(missing)", "impact_ratio"])
    assert sex["impact_ratio"].max() == 1.0


def test_ratio_to_the_highest_beside_a_reference(run):
    frame = people()
    out = run(frame, "--reference", "race=b", "--scores", "m_0", sensitive=("race",))[3]
    table = pd.read_csv(out / "groups.csv").set_index("group")
    rates = (frame["m_0"] > 0.5).groupby(frame["race"]).mean()
    np.testing.assert_allclose(table["impact_ratio"], rates[table.index] / rates["b"], atol=1e-12)
    judged = rates[table.index[table["judged"]]]
    np.testing.assert_allclose(table["ratio_to_highest"], rates[table.index] / judged.max(), atol=1e-12)


def test_regression_has_a_unit_and_its_own_words(run):
    """Label and predictions × 100 say the same; the words are R² and prediction."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 800)
    y = rng.normal(3, 2, 800) + (sex == "m")
    frame = pd.DataFrame({"y": y, "sex": sex, "a": y + rng.normal(0, 1, 800), "b": y.mean() + 0.4 * (y - y.mean())})
    options = ("--accuracy", "r2", "--scores", "a", "--scores", "b")
    code, text, summary, out = run(frame, *options)
    assert code == 0
    large = frame.assign(y=100 * y, a=100 * frame["a"], b=100 * frame["b"])
    again = run(large, *options)[2]
    for one, other in zip(summary["models"], again["models"], strict=True):
        gap = abs(frame[one["model"]][sex == "m"].mean() - frame[one["model"]][sex == "f"].mean())
        assert one["fairness"] == pytest.approx(1 - gap / y.std(), abs=1e-12)
        assert other["fairness"] == pytest.approx(one["fairness"], abs=1e-9)
        assert other["accuracy"] == pytest.approx(one["accuracy"], abs=1e-9)
    assert f"in standard deviations of the label ({y.std():.4g})" in text
    assert "The same prediction for everyone would have R²" in text
    for word in ("accuracy", "decision"):
        assert word not in text.replace("--accuracy", "")
    page = (out / "report.html").read_text()
    shown = page[: page.index('<script type="application/json"')]
    shown = shown[shown.index("<body>") :]
    assert "Mean prediction" in shown
    assert "the same decision" not in shown
    plain = run(frame, *options, "--fairness", "mean_difference")
    gap = abs(frame["b"][sex == "m"].mean() - frame["b"][sex == "f"].mean())
    assert plain[2]["models"][1]["fairness"] == pytest.approx(1 - gap, abs=1e-12)
    assert "in the units of the label" in plain[1]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"min_fairness": 95}, r"min_fairness must be in \[0, 1\]; got 95"),
        ({"confidence": 95}, r"confidence must be in \(0, 1\); got 95"),
        ({"min_group": -1}, "min_group must be at least 0; got -1"),
        ({"min_group": 2.5}, "min_group must be a whole number; got 2.5"),
        ({"min_share": 2}, r"min_share must be in \[0, 1\]; got 2"),
        ({"y_true": None, "positive": 1}, "positive must be None where y_true is; got 1"),
        ({"sensitive_features": "dirichlet"}, "of probabilities of groups make ProbableGroups"),
    ],
)
def test_what_an_audit_of_arrays_refuses(options, word):
    frame = people(300)
    given = {"y_true": frame["y"], "sensitive_features": frame["sex"]} | options
    if isinstance(given["sensitive_features"], str):
        given["sensitive_features"] = np.random.default_rng(0).dirichlet([1, 1], 300)
    with pytest.raises(InvalidInputError, match=word):
        ff.audit(given.pop("y_true"), frame[["m_0"]], stack=False, **given)


def test_an_audit_is_not_saved_onto_a_file(tmp_path):
    frame = people(300)
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"folder must be a folder; .* is a file"):
        ff.audit(frame["y"], frame[["m_0"]], sensitive_features=frame["sex"], stack=False).save(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"
