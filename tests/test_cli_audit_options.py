"""Jobs of an auditor: bands, missing values, references, the model in use, positive labels, the trail; and the walk."""

import hashlib
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier.chunks import Rows
from fairfrontier.cli import main


def people(n=900, seed=0):
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["f", "m"], n), rng.integers(18, 70, n)
    y = (rng.normal(size=n) + 0.6 * (sex == "m") > 0.2).astype(int)
    frame = pd.DataFrame({"y": y, "sex": sex, "age": age})
    for j in range(3):
        frame[f"m_{j}"] = np.clip(0.5 * y + 0.1 * j * (sex == "m") + 0.5 * rng.random(n), 0, 1)
    return frame


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function that audits a frame and gives the exit code, the output and the summary."""

    def audit(frame, *options, name="p.csv", sensitive=("sex",), label="y"):
        path, out = tmp_path / name, tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        frame.to_csv(path, index=False)
        chosen = [word for one in sensitive for word in ("--sensitive", one)]
        code = main(["audit", str(path), "--label", label, *chosen, "--out", str(out), "--no-stack", *options])
        shown = capsys.readouterr()
        summary = json.loads((out / "summary.json").read_text()) if code == 0 else None
        return code, " ".join((shown.out + shown.err).split()), summary, out

    return audit


def test_ages_are_put_into_bands(run):
    frame = people()
    for limits, groups in (
        ("40", ["under 40", "40 or more"]),
        ("30,45,60", ["under 30", "30 to under 45", "45 to under 60", "60 or more"]),
    ):
        code, _, _, out = run(frame, sensitive=(f"age:{limits}",))
        assert code == 0
        band = pd.cut(frame["age"], [-1, *map(float, limits.split(",")), 999], right=False, labels=groups).astype(str)
        expected = ff.tradeoff_points(frame["y"], frame[["m_0"]], sensitive_features={"age": band})
        points = pd.read_csv(out / "points.csv")
        assert points["fairness"][0] == pytest.approx(expected.fairness[0], abs=1e-12)
        table = pd.read_csv(out / "groups.csv")
        assert dict(zip(table["group"], table["rows"], strict=True)) == band.value_counts().to_dict()
    assert "must have ascending limits" in run(frame, sensitive=("age:40,20",))[1]


def test_missing_values(run):
    frame = people().astype({"y": object, "m_1": object})
    frame.loc[[3, 7], "sex"], frame.loc[11, "y"], frame.loc[[20, 21, 22], "m_1"] = None, None, None
    assert "--label 'y' must have no missing value; row 12 has none" in run(frame)[1]
    code, text, summary, out = run(frame, "--missing", "drop", "--scores", "m_*")
    assert code == 0
    assert "6 of 900 rows were left out because they lack a value" in text
    assert "2 rows have no sex." in text
    assert "3 rows have no score of m_1." in text
    assert (summary["trail"]["rows_read"], summary["trail"]["rows_left_out"], summary["n_rows"]) == (900, 6, 894)
    kept = frame.dropna()
    expected = ff.tradeoff_points(
        kept["y"].astype(int), kept[["m_0"]], sensitive_features=kept["sex"], include_constant=False
    )
    assert pd.read_csv(out / "points.csv")["accuracy"][0] == pytest.approx(expected.accuracy[0], abs=1e-12)
    whole = people()
    whole.loc[[3, 7], "sex"] = None
    code, text, _, out = run(whole, "--missing", "group", "--chunk-rows", "100")
    assert code == 0
    assert "2 rows have no sex" in text
    assert set(pd.read_csv(out / "groups.csv")["group"]) == {"f", "m", "(missing)"}
    assert "--missing must be one of" in run(frame, "--missing", "ignore")[1]


def test_reference_and_model_in_use(run):
    frame = people()
    code, text, summary, out = run(frame, "--reference", "sex=f", "--baseline", "m_2")
    assert code == 0
    assert "The model in use, m_2, selects" in text
    assert summary["subject"] == "m_2"
    changes = pd.read_csv(out / "differences.csv").set_index("model")
    right = {name: (frame[name] > 0.5) == (frame["y"] == 1) for name in ("m_0", "m_2")}
    paired = right["m_0"].astype(int) - right["m_2"].astype(int)
    assert changes.loc["m_0", "accuracy_difference"] == pytest.approx(paired.mean(), abs=1e-12)
    half = 1.959963984540054 * paired.std(ddof=0) / len(frame) ** 0.5
    assert changes.loc["m_0", "accuracy_low"] == pytest.approx(paired.mean() - half, abs=1e-12)
    assert changes.loc["m_0", "accuracy_high"] == pytest.approx(paired.mean() + half, abs=1e-12)
    to_no = (frame["m_2"] > 0.5) & (frame["m_0"] <= 0.5)
    assert changes.loc["m_0", "to_no"] == to_no.sum()
    assert changes.loc["m_0", "to_no[sex=m]"] == (to_no & (frame["sex"] == "m")).sum()
    gaps = ff.tradeoff_points(frame["y"], frame[["m_0", "m_2"]], sensitive_features=frame["sex"]).fairness
    assert changes.loc["m_0", "fairness_difference"] == pytest.approx(gaps[0] - gaps[1], abs=1e-12)
    assert changes.loc["m_0", "fairness_low"] < gaps[0] - gaps[1] < changes.loc["m_0", "fairness_high"]
    chunked = pd.read_csv(run(frame, "--baseline", "m_2", "--chunk-rows", "77")[3] / "differences.csv")
    assert chunked["accuracy_low"].tolist() == pytest.approx(changes["accuracy_low"].tolist(), abs=1e-12)
    assert chunked["fairness_low"].isna().all()
    table = pd.read_csv(out / "groups.csv")
    assert set(table["compared_with"]) == {"f"}
    rates = frame.assign(d=frame["m_2"] > 0.5).groupby("sex")["d"].mean()
    ratio = table[(table["model"] == "m_2") & (table["group"] == "m")]["impact_ratio"].iloc[0]
    assert ratio == pytest.approx(rates["m"] / rates["f"], abs=1e-12)
    for options, message in (
        (("--reference", "sex=x"), "--reference sex= must be one of 'f', 'm'"),
        (("--reference", "sex"), "must be like sex=Male"),
        (("--baseline", "m_9"), "--baseline must be one of"),
        (("--confidence", "0.9", "--confidence", "0.8"), "--confidence must be given once; got it 2 times"),
        (("--chunk-rows", str(10**30)), "--chunk-rows must be in"),
    ):
        code, text, _, _ = run(frame, *options)
        assert code == 2
        assert message in text


@pytest.mark.parametrize(
    ("words", "positive", "announced"),
    [
        (("rejected", "approved"), "approved", "is taken to be 'approved', by its name"),
        (("Not hired", "Hired"), "Hired", "is taken to be 'Hired', by its name"),
        (("charged_off", "fine"), "fine", "is taken to be 'fine', by its name"),
        (("nein", "ja"), "ja", "is taken to be 'ja', by its name"),
        (("Non", "Oui"), "Oui", "is taken to be 'Oui', by its name"),
        (("1", "2"), "2", "is a guess: '2', the second in sorted order"),
        (("0", "1"), "1", ""),
    ],
)
def test_positive_label_is_guessed_by_its_name_and_announced(run, words, positive, announced):
    frame = people()
    frame["y"] = np.where(frame["y"] == 1, words[1], words[0])
    code, text, summary, _ = run(frame)
    assert code == 0
    assert summary["settings"]["positive"] == positive
    assert f"The positive label is {positive};" in text
    assert announced in text
    assert ("is a guess" in text or "by its name" in text) == bool(announced)
    result = ff.audit(frame["y"], frame[["m_0"]], sensitive_features=frame["sex"], stack=False)
    assert result.summary["settings"]["positive"] == positive
    assert (announced in " ".join(result.notes), bool(result.notes)) == (True, bool(announced))


@pytest.mark.parametrize("scores", [(), ("--scores", "m_*")])
def test_a_numeric_label_is_named_before_the_scores_are(run, scores):
    frame = people()
    frame["y"] = 1000.0 + np.arange(len(frame)) / 8
    for name in ("m_0", "m_1", "m_2"):
        frame[name] *= 5000.0
    code, text, _, _ = run(frame, *scores)
    assert code == 2
    assert "--label 'y' must have two values" in text
    assert "for a numeric target pass --accuracy r2" in text


def test_models_that_are_worse_than_chance_are_asked_about(run):
    frame = people()
    frame["y"] = np.where(frame["y"] == 1, "igen", "nem")  # sorted: nem is positive
    code, text, _, _ = run(frame)
    assert code == 0
    assert "Worse than chance: 3 of 3 models" in text
    assert "Is 'nem' really the positive value?" in text
    frame = people().assign(m_0=lambda f: 1 - f["m_0"])
    assert "1 of 3 models select rows with the positive label (1) less often than the others: m_0." in run(frame)[1]


def test_weight_that_was_elicited(run, tmp_path):
    frame = people()
    weight = ff.TabulatedWeight([0.0, 0.5, 0.9, 1.0], [0.0, 1.0, 3.0])
    (tmp_path / "weight.json").write_text(json.dumps({"knots": [0.0, 0.5, 0.9, 1.0], "values": [0.0, 1.0, 3.0]}))
    code, _, summary, _ = run(frame, "--weight", str(tmp_path / "weight.json"))
    assert code == 0
    points = ff.tradeoff_points(frame["y"], frame[["m_0", "m_1", "m_2"]], sensitive_features=frame["sex"])
    assert summary["fauc"]["estimate"] == pytest.approx(ff.fauc(points.frontier(), weight), abs=1e-12)
    (tmp_path / "bad.json").write_text("[]")
    assert "--weight must be" in run(frame, "--weight", str(tmp_path / "bad.json"))[1]


def test_trail(run):
    code, _, summary, out = run(people(), name="my people.csv")
    assert code == 0
    trail = summary["trail"]
    assert trail["sha256"] == hashlib.sha256((out.parent / "my people.csv").read_bytes()).hexdigest()
    assert trail["command"].startswith("fairfrontier audit ")
    assert "'" in trail["command"]  # quoted, so that it can be run again
    assert trail["versions"]["fairfrontier"] == ff.__version__
    assert trail["sha256"] in (out / "report.html").read_text()


@pytest.fixture
def rates(tmp_path, capsys):
    """Return a function that audits a frame without labels."""

    def audit(frame, *options, sensitive=("sex",)):
        path, out = tmp_path / "p.csv", tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        frame.to_csv(path, index=False)
        chosen = [word for one in sensitive for word in ("--sensitive", one)]
        code = main(["audit", str(path), *chosen, "--out", str(out), *options])
        shown = capsys.readouterr()
        return code, " ".join((shown.out + shown.err).split()), out

    return audit


def test_scores_without_labels_have_a_scoring_rate(rates):
    frame = people().drop(columns="y")
    frame["points"] = frame["m_0"] * 1000 - 200
    for options, limit in (((), None), (("--threshold", "300"), 300.0)):
        code, text, out = rates(frame, "--scores", "points", *options)
        assert code == 0
        limit = frame["points"].median() if limit is None else limit
        expected = (frame["points"] > limit).groupby(frame["sex"]).mean()
        table = pd.read_csv(out / "groups.csv").set_index("group")
        np.testing.assert_allclose(table["selection_rate"], expected[table.index], atol=1e-12)
        ratio = expected.min() / expected.max()
        assert table["impact_ratio"].min() == pytest.approx(ratio, abs=1e-12)
        assert f"{ratio:.3f}" in text
        assert sorted(p.name for p in out.iterdir()) == ["groups.csv", "model_card.md", "report.html", "summary.json"]
        assert "There are no labels" in (out / "report.html").read_text()
    code, text, _ = rates(frame, "--scores", "points", "--chunk-rows", "100")
    assert code == 2
    assert "the median needs all scores in memory" in text
    whole, chunks = (
        rates(frame, "--scores", "m_*", "--threshold", "0.4", *more)[2] for more in ((), ("--chunk-rows", "99"))
    )
    assert (whole / "groups.csv").read_bytes() == (chunks / "groups.csv").read_bytes()
    for options, message in (
        (("--accuracy", "brier"), "--accuracy needs --label"),
        (("--positive", "1"), "--positive needs --label"),
        (("--fairness", "equalized_odds"), "needs --label"),
        (("--format", "pdf"), "--format must be one of"),
        (("--format", "ll144", "--label", "sex"), "is for audits without --label"),
    ):
        code, text, _ = rates(frame, *options)
        assert code == 2
        assert message in text


# The worked example of the rules of New York City's Local Law 144: applicants, selected, impact ratio.
EXAMPLE = {
    "Hispanic or Latino": (408, 204, 0.97),
    "White": (797, 412, 1.00),
    "Black or African American": (390, 170, 0.84),
    "Native Hawaiian or Pacific Islander": (119, 52, 0.85),
    "Asian": (616, 302, 0.95),
    "Native American or Alaska Native": (41, 18, 0.85),
    "Two or More Races": (213, 96, 0.87),
}


def test_table_of_local_law_144(rates):
    parts = [
        pd.DataFrame({"race": name, "decision": np.arange(n) < selected}) for name, (n, selected, _) in EXAMPLE.items()
    ]
    frame = pd.concat(parts, ignore_index=True).astype({"decision": int})
    frame["sex"] = np.where(np.arange(len(frame)) % 2, "Male", "Female")
    code, _, out = rates(frame, "--scores", "decision", "--format", "ll144", sensitive=("sex", "race"))
    assert code == 0
    table = pd.read_csv(out / "ll144.csv")
    race = table[table["categories"] == "race"].set_index("category")
    for name, (n, selected, ratio) in EXAMPLE.items():
        assert race.loc[name, "applicants"] == n
        assert race.loc[name, "selected"] == selected
        assert round(race.loc[name, "impact_ratio"], 2) == ratio
    assert race[race["remark"].notna()].index.tolist() == ["Native American or Alaska Native"]
    both = table[~table["categories"].isin(["sex", "race"])]
    assert len(both) == 14
    assert both["applicants"].sum() == len(frame)
    assert not {"pass", "fail", "below"} & set((out / "ll144.csv").read_text().replace(",", " ").split())


def test_a_defect_is_one_line_and_shows_its_trace_on_demand(monkeypatch, tmp_path, capsys):
    people().to_csv(tmp_path / "p.csv", index=False)
    monkeypatch.setattr("fairfrontier._cli.table.positive_label", lambda *_, **__: 1 / 0)
    words = ["audit", str(tmp_path / "p.csv"), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "out")]
    assert main(words) == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "a defect of fairfrontier: ZeroDivisionError" in error
    assert "--debug" in error
    assert main([*words, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_every_row_is_validated_once(monkeypatch, tmp_path):
    people(3000).to_csv(tmp_path / "p.csv", index=False)
    seen = []
    original = Rows.validated.__func__

    def counted(cls, *arguments, **options):
        rows = original(cls, *arguments, **options)
        seen.append(len(rows))
        return rows

    monkeypatch.setattr(Rows, "validated", classmethod(counted))
    words = ["audit", str(tmp_path / "p.csv"), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert sum(seen) == 3000


def test_the_walk_of_an_audit_is_short(tmp_path):
    """Count the modules that a walk passes: measured in a process of its own, after everything is imported."""
    people().to_csv(tmp_path / "p.csv", index=False)
    script = """
import sys
from fairfrontier.cli import main
words = sys.argv[1:]
assert main(words) == 0
seen = set()
def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("fairfrontier") and frame.f_code.co_name != "<module>":
        seen.add(name)
sys.setprofile(note)
assert main(words) == 0
sys.setprofile(None)
print(sorted(seen), file=sys.stderr)
print(len(seen))
"""
    words = ["audit", str(tmp_path / "p.csv"), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "o")]
    counts = []
    for more in (["--force", "--no-stack"], ["--force"]):
        done = subprocess.run([sys.executable, "-c", script, *words, *more], capture_output=True, text=True, check=True)
        counts.append(int(done.stdout.split()[-1]))
    assert counts[0] <= 30
    assert counts[1] <= 37


@pytest.mark.parametrize("measure", ["impact_ratio", "equalized_odds"])
def test_groups_are_compared_within_the_values_of_another_attribute(run, measure):
    frame, fairness = people(), f"{measure} within job"
    frame["job"] = np.where(frame["age"] % 3 == 0, "nurse", "driver")
    models = frame[["m_0", "m_1", "m_2"]]
    code, _, summary, out = run(frame, "--fairness", fairness, "--scores", "m_*", sensitive=("sex", "job"))
    sensitive = frame[["sex", "job"]]
    expected = ff.tradeoff_points(frame["y"], models, sensitive_features=sensitive, fairness=fairness).fairness
    assert code == 0
    assert pd.read_csv(out / "points.csv")["fairness"].tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert set(pd.read_csv(out / "groups.csv")["attribute"]) == {"sex"}
    assert summary["settings"]["sensitive"] == ["sex"]
    result = ff.audit(frame["y"], models, sensitive_features=sensitive, fairness=fairness)
    assert result.points()["fairness"][: len(expected)].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_reference_of_intersections_is_one_of_them(run):
    frame = people()
    sensitive, mode = ("sex", "age:40"), ("--sensitive-mode", "intersectional")
    code, _, _, out = run(frame, *mode, "--reference", "sex & age=f & under 40", sensitive=sensitive)
    assert code == 0
    assert set(pd.read_csv(out / "groups.csv")["compared_with"]) == {"f & under 40"}
    for group, message in (
        ("sex=f", "an attribute whose groups are compared, 'sex & age'; got 'sex': write"),
        ("sex & age=f", "reference sex & age= must be one of 'f & 40 or more', 'f & under 40'"),
    ):
        code, text, _, _ = run(frame, *mode, "--reference", group, sensitive=sensitive)
        assert (code, message in text) == (2, True)
    for labels in (frame["y"], None):
        with pytest.raises(ff.exceptions.InvalidInputError, match="reference must name an attribute"):
            ff.audit(labels, frame[["m_0"]], sensitive_features=frame[["sex"]], reference={"gender": "f"})


def test_findings_name_the_measure_of_accuracy(run):
    frame = people()
    same = frame[["y", "sex"]].assign(m=0.2)
    for measure, word in (("auc", "AUC"), ("f1", "F1"), ("balanced_accuracy", "balanced accuracy")):
        _, text, summary, _ = run(frame, "--accuracy", measure, "--scores", "m_*", "--min-fairness", "1")
        assert f", {word} " in summary["recommendation"]
        assert f"for everyone would have {word} 0." in summary["recommendation"]
        assert summary["rule"].startswith(f"The model with the highest {word}, ")
        assert f"fairness {word} lowest" in text
        _, _, summary, out = run(same, "--accuracy", measure, "--scores", "m")
        assert f"Its {word} is not above that of the same decision for everyone" in summary["recommendation"]
        assert f"<em>{word[:1].upper()}{word[1:]}</em> says how well" in (out / "report.html").read_text()


def test_advice_can_be_followed(run):
    frame = people()
    frame["pct"] = 100 * frame["m_0"]
    text = run(frame, "--scores", "pct")[1]
    advised = text.split("such as --threshold ")[1].split()[0]
    middle = (frame["pct"].min() + frame["pct"].max()) / 2
    assert float(advised.removeprefix("pct=")) == pytest.approx(middle, rel=1e-4)
    code, text, _, _ = run(frame, "--scores", "pct", "--threshold", advised)
    assert (code, "selects nobody" in text) == (0, False)
    frame["area"] = np.where(frame.index < 8, "c", np.where(frame.index % 2, "a", "b"))
    mode = ("--scores", "m_*", "--sensitive-mode", "intersectional", "--stack")
    code, text, _, _ = run(frame, *mode, sensitive=("sex", "area"))
    assert code == 0
    assert "A fair stack could not be fitted" in text
    assert "merge small groups." in text
    assert "fewer folds" not in text


def test_footnote_holds_for_attributes_with_and_without_a_reference(run):
    frame = people()
    options = {"sensitive": ("sex", "age:40")}
    said = "where one was named, else the one with the highest rate)"
    for reference in ((), ("--reference", "sex=f")):
        page = (run(frame, *reference, **options)[3] / "report.html").read_text()
        assert ("the reference group" in page, said in page) == (bool(reference),) * 2
        assert "the one with the highest rate)" in page


def test_the_reference_group_is_named_once(run):
    text = run(people(), "--fairness", "impact_ratio against f")[1]
    assert "(impact ratio), against f." in text


@pytest.mark.parametrize(("weight", "shown"), [(-1.0, "non-negative; got -1"), (np.nan, "finite; got nan")])
def test_rows_of_a_file_are_counted_from_one(run, weight, shown):
    frame = people().assign(w=1.5)
    frame.loc[[8, 11], "w"] = weight
    for chunks in ((), ("--chunk-rows", "5")):
        code, text, _, _ = run(frame, "--sample-weight", "w", "--scores", "m_*", *chunks)
        assert (code, re.search(rf"sample_weight must be {shown} at row 9\b", text) is not None) == (2, True)


def test_a_copy_of_the_label_is_no_model_whatever_is_blank(run):
    frame = people()
    copies = frame.assign(outcome=frame["y"].astype(float), turned=1.0 - frame["y"], smoker=(frame["age"] > 40) * 1.0)
    copies.loc[[3, 700], "outcome"] = np.nan
    copies.loc[5, ["turned", "smoker"]] = np.nan
    for chunk in ((), ("--chunk-rows", "100")):
        code, text, _, out = run(copies, "--missing", "drop", *chunk)
        assert code == 0
        models = pd.read_csv(out / "points.csv")["model"].tolist()
        assert models[:3] == ["m_0", "m_1", "m_2"]
        assert not {"outcome", "turned", "smoker"} & set(models)
        assert "agrees with the label" in text


class TestDecimalCommas:
    def write(self, path, frame):
        frame.to_csv(path, sep=";", decimal=",", index=False)

    def audit(self, path, *options):
        return main(["audit", str(path), "--label", "y", "--sensitive", "sex", "--no-stack", *options])

    def test_whole_numbers_at_the_top_do_not_hide_them(self, tmp_path):
        frame = people()
        frame.loc[:200, ["m_0", "m_1", "m_2"]] = frame.loc[:200, ["m_0", "m_1", "m_2"]].round()
        self.write(tmp_path / "p.csv", frame)
        assert self.audit(tmp_path / "p.csv", "--out", str(tmp_path / "out")) == 0
        points = pd.read_csv(tmp_path / "out" / "points.csv")
        assert points["model"].tolist()[:3] == ["m_0", "m_1", "m_2"]
        expected = ff.tradeoff_points(frame["y"], frame[["m_0"]], sensitive_features=frame["sex"])
        assert points["fairness"][0] == pytest.approx(expected.fairness[0], abs=1e-12)

    def test_a_column_with_points_beside_them_is_asked_about(self, tmp_path, capsys):
        self.write(tmp_path / "p.csv", people().assign(icd=["10.1", "11.2", "12.5"] * 300))
        assert self.audit(tmp_path / "p.csv", "--out", str(tmp_path / "out")) == 2
        assert "column 'icd' of p.csv holds numbers with a decimal point, such as '10.1'" in capsys.readouterr().err
        assert self.audit(tmp_path / "p.csv", "--scores", "m_*", "--out", str(tmp_path / "out")) == 0
        assert self.audit(tmp_path / "p.csv", "--scores", "icd", "--out", str(tmp_path / "no")) == 2
        assert "--scores 'icd' must be numbers; got numbers with a decimal point" in capsys.readouterr().err
