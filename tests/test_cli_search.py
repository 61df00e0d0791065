"""`fairfrontier search`, `verify` and `apply`: a file in, a certified model and a dossier out, all of it checked."""

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier._cli.console import step_bar
from fairfrontier.cli import main
from fairfrontier.report._dossier import render_dossier
from fairfrontier.report._outputs import _BROWSERS

FILES = ["candidates.csv", "dossier.html", "evidence.npz", "model.skops", "plan.json", "summary.json"]
# Half of the work, where what is looked at is the same with two models.
ONE_MODEL = "--no-cross-fit"


def people(n: int = 1600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    skill, luck = rng.normal(size=(2, n))
    height = 2.0 * (sex == "m") + rng.normal(size=n)
    frame = pd.DataFrame({"person": np.arange(n), "skill": skill, "height": height, "sex": sex})
    frame["<b>town</b>"] = rng.choice(["here", "there"], n)
    frame["repaid"] = np.where(skill + 0.2 * luck > 0, "yes", "no")
    frame["score_now"] = np.round(1 / (1 + np.exp(-skill - height + 1)), 4)
    return frame


def arguments(file, out, *more):
    named = ["--label", "repaid", "--sensitive", "sex", "--baseline", "score_now", "--steps", "3"]
    return ["search", str(file), *named, "--out", str(out), *more]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("search") / "people.csv"
    people().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def found(file, tmp_path_factory):
    out = tmp_path_factory.mktemp("found") / "lda"
    assert main(arguments(file, out, "--min-fairness", "0.8", "--achievable")) == 0
    return out


def test_dossier_says_what_is_attainable(found):
    summary = json.loads((found / "summary.json").read_text())
    limit, delivered = summary["achievable"], summary["delivered"]
    assert limit["have"] == delivered["accuracy"]
    assert 0 <= delivered["fairness"] - limit["min_fairness"] < 0.001
    assert [curve["track"] for curve in limit["curves"]] == ["blind", "aware"]
    page = (found / "dossier.html").read_text()
    assert limit["sentence"] in page
    assert page.count('<path class="limit-band"') == 2


def test_measures_without_an_achievable_frontier_are_refused_at_once(file, tmp_path, capsys):
    options = ("--achievable", "--fairness", "equal_opportunity_ratio")
    assert main(arguments(file, tmp_path / "out", *options)) == 2
    assert "--achievable" in capsys.readouterr().err


def test_files_and_summary(found):
    assert sorted(path.name for path in found.iterdir()) == FILES
    summary = json.loads((found / "summary.json").read_text())
    assert summary["verdict"] == "alternative"
    assert summary["chosen"] == "required"
    assert set(summary["delivered"]) == {"fairness", "ratio", "accuracy"}
    assert summary["promised"] == {"fairness": 0.8, "confidence": 0.95}
    with (found / "candidates.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == summary["n_candidates"]
    chosen = next(row for row in rows if row["name"] == "required")
    assert float(chosen["accuracy"]) == pytest.approx(summary["delivered"]["accuracy"])


@pytest.mark.parametrize(("expected", "words"), [(0.9, "Gains do not shrink yet"), (0.2, "If gains kept shrinking")])
def test_the_dossier_does_not_say_that_gains_shrink_where_they_grow(found, expected, words):
    summary = json.loads((found / "summary.json").read_text())
    summary["sufficiency"] = {"last_gain": 0.1, "expected": expected, "bound": 0.9, "enough": False}
    page = render_dossier(summary)
    assert words in page
    assert ("kept shrinking" in page) == (expected < 0.9)


def test_the_dossier_stands_alone_and_runs_nothing(found):
    page = (found / "dossier.html").read_text()
    assert "&lt;b&gt;town&lt;/b&gt;" in page
    assert "<b>town" not in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    for words in ("fixed before any result", "Whose decisions change", "Was the search sufficient?", "Limits"):
        assert words in page


def test_everything_agrees(found, capsys):
    assert main(["verify", str(found)]) == 0
    assert "Everything agrees" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("summary.json", '"verdict": "alternative"', '"verdict": "none"', "verdict is 'none'"),
        ("plan.json", '"margin": 0.005', '"margin": 0.05', "the plan is not the one that was hashed"),
        ("candidates.csv", "alternative", "not", "verdict of"),
        ("dossier.html", "Limits", "No limits", "dossier.html: the file is not the one that the search wrote"),
    ],
)
def test_what_was_changed_is_found(found, tmp_path, capsys, name, old, new, message):
    for path in found.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    assert main(["verify", str(tmp_path)]) == 2
    assert message in " ".join(capsys.readouterr().out.split())


def leaves(value, path=()):
    """Yield the place of every single value of a JSON document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield path
    for name, one in inside or ():
        yield from leaves(one, (*path, name))


def altered(summary, path):
    """Return a summary with another value at one place."""
    changed = json.loads(json.dumps(summary))
    holder = changed
    for name in path[:-1]:
        holder = holder[name]
    old = holder[path[-1]]
    new = not old if isinstance(old, bool) else old + 1 if isinstance(old, (int, float)) else f"{old}x"
    holder[path[-1]] = new
    return changed


def copied(folder, to):
    shutil.copytree(folder, to)
    return json.loads((to / "summary.json").read_text())


def without_model(folder):
    """Leave no model to load, which would take most of the time; that it cannot be read is then a message more."""
    (folder / "model.skops").write_bytes(b"")


def forge(summary, folder):
    """Write a summary with a digest that fits."""
    content = {name: value for name, value in summary.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    content["digest"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "summary.json").write_text(json.dumps(content))


def test_every_part_of_the_summary_is_protected(found, tmp_path, capsys):
    # Nothing but the digest knows of these.
    names = (
        "stability",
        "checkpoints",
        "proxies",
        "baseline_name",
        "notes",
        "steps",
        "source",
        "seconds",
        "achievable",
    )
    summary = copied(found, tmp_path / "edited")
    without_model(tmp_path / "edited")
    places = {path[0]: path for path in leaves(summary)}
    places |= {"columns": ("columns", 2, "group_auc"), "files": ("files", "dossier.html")}
    for name in (*names, "columns", "files"):
        (tmp_path / "edited" / "summary.json").write_text(json.dumps(altered(summary, places[name])))
        assert main(["verify", str(tmp_path / "edited")]) == 2
        assert "by its digest" in " ".join(capsys.readouterr().out.split()), name
    del summary["files"]
    (tmp_path / "edited" / "summary.json").write_text(json.dumps(summary))
    assert main(["verify", str(tmp_path / "edited")]) == 2
    assert "files does not have the hash of dossier.html" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("settings", "margin"), "settings: margin is 1.005"),
        (("settings", "seed"), "settings: seed is 1"),
        (("requirement", "min_fairness"), "requirement: min_fairness is 1.8"),
        (("requirement", "problem"), "requirement: problem is 'x', but the requirement is kept"),
        (("data",), "data is "),
        (("rows", "train"), "rows: train is "),
        (("groups", "sex", "f"), "groups: sex: f is "),
        (("columns", 0, "name"), "columns are others than those of plan.json"),
        (("columns", 1, "used"), "model.skops: features"),
        (("labels", 1), "model.skops: labels 2 is 'yesx'"),
        (("versions", "fairfrontier"), "versions: fairfrontier is another one than in plan.json"),
    ],
)
def test_what_stands_elsewhere_is_compared_even_if_the_digest_is_made_anew(found, tmp_path, capsys, path, message):
    forge(altered(copied(found, tmp_path / "edited"), path), tmp_path / "edited")
    if not message.startswith("model.skops"):
        without_model(tmp_path / "edited")
    assert main(["verify", str(tmp_path / "edited")]) == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert message in shown
    assert "by its digest" not in shown


def test_the_page_is_made_again_even_if_all_digests_are_made_anew(found, tmp_path, capsys):
    folder = tmp_path / "edited"
    summary = copied(found, folder)
    page = (folder / "dossier.html").read_text().replace("Limits", "No limits", 1)
    (folder / "dossier.html").write_text(page)
    summary["files"]["dossier.html"] = hashlib.sha256(page.encode()).hexdigest()
    forge(summary, folder)
    assert main(["verify", str(folder)]) == 2
    assert "dossier.html: the page is not that of summary.json" in " ".join(capsys.readouterr().out.split())


def test_a_summary_without_a_digest_was_changed_or_is_older(found, tmp_path, capsys):
    summary = copied(found, tmp_path / "old")
    del summary["digest"]
    (tmp_path / "old" / "summary.json").write_text(json.dumps(summary))
    assert main(["verify", str(tmp_path / "old")]) == 2
    assert "either that was removed, or the search predates it" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("text", ['{"verdict": "none", "verdict": "alternative"}', "[]", "{"])
def test_a_summary_that_can_be_read_in_two_ways_is_refused(found, tmp_path, capsys, text):
    copied(found, tmp_path / "odd")
    (tmp_path / "odd" / "summary.json").write_text(text)
    assert main(["verify", str(tmp_path / "odd")]) == 2
    assert "summary.json must be a file of a finished search" in capsys.readouterr().err


def test_a_printed_dossier_of_another_search_is_found(found, tmp_path, capsys):
    copied(found, tmp_path / "more")
    (tmp_path / "more" / "dossier.pdf").write_bytes(b"%PDF-")
    assert main(["verify", str(tmp_path / "more")]) == 2
    assert "dossier.pdf: the search wrote no such file" in " ".join(capsys.readouterr().out.split())


def test_verify_without_a_search(tmp_path, capsys):
    assert main(["verify", str(tmp_path)]) == 2
    assert "plan.json must be a file of a finished search" in capsys.readouterr().err


def test_apply_scores_raw_rows_by_name(file, found, tmp_path, capsys):
    new = people(300, seed=1)
    new[new.columns[::-1]].to_parquet(tmp_path / "new.parquet")
    command = ["apply", str(found / "model.skops"), str(tmp_path / "new.parquet"), "--out", str(tmp_path / "d.csv")]
    assert main([*command, "--keep", "person"]) == 0
    decided = pd.read_csv(tmp_path / "d.csv")
    assert decided["person"].tolist() == new["person"].tolist()
    assert set(decided["decision"]) == {"no", "yes"}
    assert ((decided["score"] > 0.5) == (decided["decision"] == "yes")).all()
    in_pieces = [*command[:-1], str(tmp_path / "pieces.csv"), "--keep", "person", "--chunk-rows", "70"]
    assert main(in_pieces) == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "pieces.csv"), decided, rtol=1e-6)
    new.assign(shoe=1).to_csv(tmp_path / "shoe.csv", index=False)
    assert main([*command[:2], str(tmp_path / "shoe.csv"), "--out", str(tmp_path / "e.csv")]) == 2
    assert "only columns that the search knew; got 'shoe'" in capsys.readouterr().err
    new.drop(columns="skill").to_csv(tmp_path / "less.csv", index=False)
    assert main([*command[:2], str(tmp_path / "less.csv"), "--out", str(tmp_path / "e.csv")]) == 2
    assert "must have the column 'skill'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def of_words(tmp_path_factory):
    """A search among columns of words, some of them rare, and a label of codes; its file and its model."""
    folder = tmp_path_factory.mktemp("words")
    frame, rng = people(), np.random.default_rng(2)
    frame["pets"] = np.where(frame["skill"] + rng.normal(size=len(frame)) > 0, "yes", "no")
    frame["street"] = rng.choice(["elm", "oak"], len(frame))
    frame.loc[[3, 700, 1500], "street"] = ["fir", "ash", "yew"]
    frame["size"] = np.where(np.arange(len(frame)) % 50 == 0, np.nan, rng.normal(size=len(frame)).round(3))
    frame["repaid"] = np.where(frame["repaid"] == "yes", "02", "01")
    frame.to_csv(folder / "words.csv", index=False)
    assert main(arguments(folder / "words.csv", folder / "lda")) == 0
    return folder / "words.csv", folder / "lda" / "model.skops"


def scored(model, file, *options):
    out = file.with_name(f"{file.stem}-scored.csv")
    assert main(["apply", str(model), str(file), "--out", str(out), "--force", *options]) == 0
    return pd.read_csv(out, dtype=str, keep_default_na=False)


def test_apply_is_quiet_about_what_the_search_has_seen(of_words, tmp_path, capsys):
    file, model = of_words
    assert set(scored(model, file)["decision"]) == {"01", "02"}
    assert "Warning" not in capsys.readouterr().out
    pd.read_csv(file, dtype={"repaid": str}).to_parquet(tmp_path / "words.parquet")
    scored(model, tmp_path / "words.parquet")
    assert "Warning" not in capsys.readouterr().out


@pytest.mark.parametrize("chunks", [(), ("--chunk-rows", "70")])
def test_apply_tells_new_categories_and_blanks(of_words, tmp_path, capsys, chunks):
    file, model = of_words
    new = pd.read_csv(file, dtype=str).head(300)
    new["pets"] = new["pets"].where(np.arange(300) < 20, new["pets"].str.title())
    new.loc[[5, 90, 299], "skill"] = ""
    new.loc[7, "street"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    scored(model, tmp_path / "new.csv", *chunks)
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("Warning: ") == 3
    most = new["pets"][20:].value_counts().index[0]
    assert "Warning: pets: a category that the search never saw in 280 rows, such as '" in text
    assert chunks or f"such as {most!r}" in text
    assert "Warning: skill: no value in 3 rows; in the search every row had one" in text
    assert "Warning: street: no value in 1 row; in the search every row had one" in text


def test_models_of_earlier_searches_are_applied_without_a_word(of_words, tmp_path, capsys):
    file, model = of_words
    old = ff.load(model)
    del old._seen  # as in files of before
    ff.save(old, tmp_path / "old.skops")
    new = pd.read_csv(file, dtype=str).assign(pets="Maybe").head(50)
    new.to_csv(tmp_path / "new.csv", index=False)
    found = scored(tmp_path / "old.skops", tmp_path / "new.csv")
    assert "Warning" not in capsys.readouterr().out
    pd.testing.assert_frame_equal(found, scored(model, tmp_path / "new.csv"))


def test_columns_that_are_kept_are_the_same_features(of_words, tmp_path):
    """Kept columns are copied as they stand, and what the model makes of them is not changed by that."""
    file, model = of_words
    new = pd.read_csv(file, dtype=str).head(200)
    new["size"] = new["size"].fillna("NA")
    new["street"] = new["street"].where(np.arange(200) % 9 > 0, "NA")
    new["skill"] = new["skill"].str[:6]
    new.to_csv(tmp_path / "new.csv", index=False)
    expected = scored(model, tmp_path / "new.csv")
    kept = ["size", "skill", "street", "pets"]
    found = scored(model, tmp_path / "new.csv", *(word for name in kept for word in ("--keep", name)))
    pd.testing.assert_frame_equal(found[["score", "decision"]], expected)
    assert found[kept].to_numpy().tolist() == new[kept].to_numpy().tolist()
    comma = new.assign(**{name: new[name].str.replace(".", ",") for name in ("size", "skill", "height", "score_now")})
    comma.to_csv(tmp_path / "comma.csv", index=False, sep=";")
    found = scored(model, tmp_path / "comma.csv", "--keep", "skill")
    pd.testing.assert_frame_equal(found[["score", "decision"]], expected)
    assert found["skill"].tolist() == comma["skill"].tolist()


def test_a_finished_search_is_not_run_again(file, found, capsys):
    assert main(arguments(file, found)) == 2
    assert "already has summary.json" in capsys.readouterr().err


def test_killed_and_resumed_it_is_the_same(file, found, tmp_path):
    out = tmp_path / "killed"
    command = arguments(file, out, "--min-fairness", "0.8")
    for step in ("linear-0.json", "second/linear-0.json"):  # while the first and while the second model is trained
        process = subprocess.Popen(
            [sys.executable, "-m", "fairfrontier.cli", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (out / "steps" / step).exists():
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (out / "summary.json").exists()
    assert main(command) == 0
    assert (out / "candidates.csv").read_bytes() == (found / "candidates.csv").read_bytes()
    one, other = (np.load(folder / "evidence.npz") for folder in (out, found))
    assert all((one[name] == other[name]).all() for name in one.files)


def test_an_interrupted_search_says_how_to_go_on(capsys):
    def interrupted():
        with step_bar() as progress:
            progress("training linear-0", 0.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "Interrupted: the same command goes on with the step that the search was at." in capsys.readouterr().err


def test_a_data_set_with_one_model_and_a_printed_dossier(tmp_path, capsys):
    command = ["search", "--dataset", "compas", "--steps", "3", "--no-cross-fit", "--out", str(tmp_path / "c")]
    if not any(map(shutil.which, _BROWSERS)):
        assert main([*command, "--pdf"]) == 2
        assert "a PDF needs Chromium" in capsys.readouterr().err
        assert main(command) == 0
    else:
        assert main([*command, "--pdf"]) == 0
        assert (tmp_path / "c" / "dossier.pdf").read_bytes().startswith(b"%PDF-")
    plan = json.loads((tmp_path / "c" / "plan.json").read_text())
    assert plan["settings"]["cross_fit"] is False
    assert sum(plan["rows"].values()) == sum(plan["groups"]["gender"].values())
    summary = json.loads((tmp_path / "c" / "summary.json").read_text())
    assert summary["verdict"] in ("alternative", "none", "cannot tell")
    assert summary["baseline_name"].startswith("stack ")
    assert main(["verify", str(tmp_path / "c")]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--time", "soon"], "--time must be like 90s, 10m or 1h"),
        (["--dataset", "adult"], "give one of FILE and --dataset"),
        (["--sensitive", "skill"], "--sensitive 'skill' must be a set of groups"),
        (["--baseline", "height"], "--baseline must be given once"),
        (["--margin", "-1"], "margin must be"),
        (["--drop", "skill", "--keep", "skill"], "drop and keep must name different columns; got 'skill' in both"),
        (["--sensitive", "height:0", "--sensitive", "height:1"], "each column once; got 'height' twice"),
    ],
)
def test_bad_options(file, tmp_path, capsys, options, message):
    assert main(arguments(file, tmp_path / "out", *options)) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_both_requirements_are_named(file, tmp_path, capsys):
    assert main(arguments(file, tmp_path / "out", "--min-fairness", "0.99", "--min-ratio", "0.5", ONE_MODEL)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "the likeliest to be shown to have fairness of at least 0.99 and a ratio of rates of at least 0.5 and to be an "
        "alternative; where none is likely to be both, the most accurate of those that will more likely than not be "
        "shown to have it. What is required cannot be promised"
    ) in shown


def test_a_leak_is_asked_about(file, tmp_path, capsys):
    frame = people()
    frame.assign(paid=frame["repaid"]).to_csv(tmp_path / "leak.csv", index=False)
    assert main(arguments(tmp_path / "leak.csv", tmp_path / "out")) == 2
    assert "column 'paid' reveals the label" in capsys.readouterr().err
    assert main(arguments(tmp_path / "leak.csv", tmp_path / "out", "--drop", "paid", ONE_MODEL)) == 0


def test_each_column_that_matters_has_a_word_on_the_console(file, tmp_path, capsys):
    frame = people()
    frame["<b>town</b>"] = [f"t{i % 500}" for i in range(len(frame))]
    frame.assign(flat=1).to_csv(tmp_path / "many.csv", index=False)
    assert main(arguments(tmp_path / "many.csv", tmp_path / "out", ONE_MODEL)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "flat: constant: the same value in every row" in shown
    assert "Features with many categories: <b>town</b>: 500 categories: the rare ones are taken together." in shown
    assert "All features together predict sex with AUC 0." in shown
    assert "; alone: height 0." in shown


def test_a_baseline_in_words_of_its_own(file, tmp_path, capsys):
    frame = people()
    frame["score_now"] = np.where(frame["score_now"] > 0.5, "approve", "deny")
    frame.to_csv(tmp_path / "words.csv", index=False)
    assert main(arguments(tmp_path / "words.csv", tmp_path / "out")) == 0
    assert "Decision 1 is 'approve' and decision 0 'deny' in 'score_now'." in " ".join(capsys.readouterr().out.split())
    right = (frame["score_now"] == "approve") == (frame["repaid"] == "yes")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["baseline"]["accuracy"] == pytest.approx(right.mean(), abs=0.02)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "score_now",
            ["rot", "grün"],
            "--baseline 'score_now' must be scores in [0, 1], or decisions in the words of the",
        ),
        ("repaid", [0, 1, 2], "must have two values; got 3 ('0', '1', '2'): for a numeric target make a column of two"),
        ("score_now", [0.1, 0.2], "baseline must decide both ways, else no model can be less disparate; got 1,600 neg"),
    ],
)
def test_columns_that_cannot_serve_are_named(tmp_path, capsys, column, values, message):
    frame = people()
    frame[column] = np.resize(np.array(values, dtype=object), len(frame))
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert main(arguments(tmp_path / "other.csv", tmp_path / "out")) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_baseline_about_the_other_label_is_doubted(file, tmp_path, capsys):
    frame = people()
    frame.assign(score_now=1.0 - frame["score_now"]).to_csv(tmp_path / "other.csv", index=False)
    assert main(arguments(tmp_path / "other.csv", tmp_path / "out", ONE_MODEL)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "so that the opposite of its decisions would be more accurate: is it about the positive label?" in shown
    assert "is it about the positive label?" in (tmp_path / "out" / "dossier.html").read_text()


def test_a_small_group_is_left_out_if_asked(file, tmp_path, capsys):
    frame = people()
    frame.loc[:20, "sex"] = "x"
    frame.to_csv(tmp_path / "small.csv", index=False)
    assert main(arguments(tmp_path / "small.csv", tmp_path / "out")) == 2
    assert "got 21 of 'x': merge small groups, or leave their rows out (--min-group 67)" in capsys.readouterr().err
    assert main(arguments(tmp_path / "small.csv", tmp_path / "out", "--min-group", "67")) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The 21 rows of sex=x are left out (--min-group 67)" in shown
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert sum(summary["groups"]["sex"].values()) == len(frame) - 21
    assert "x" not in summary["groups"]["sex"]


def test_none_with_a_requirement_is_about_one_candidate(file, tmp_path, capsys):
    frame = people()
    frame["score_now"] = np.where(frame["repaid"] == "yes", 0.9, 0.1)  # nothing can be as accurate
    frame.to_csv(tmp_path / "perfect.csv", index=False)
    assert main(arguments(tmp_path / "perfect.csv", tmp_path / "out", "--min-ratio", "0.99")) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the candidate that should have a ratio of rates of at least 0.99, required, is not both" in shown
    assert "after it no other one was tested" in shown
    assert main(arguments(tmp_path / "perfect.csv", tmp_path / "free")) == 0
    assert "no candidate of this search is both less disparate" in " ".join(capsys.readouterr().out.split())


def test_missing_values_where_none_may_be(file, tmp_path, capsys):
    frame = people()
    frame.loc[7, "sex"] = None
    frame.to_csv(tmp_path / "missing.csv", index=False)
    assert main(arguments(tmp_path / "missing.csv", tmp_path / "out")) == 2
    assert "row 8 has none" in capsys.readouterr().err
    assert main(arguments(tmp_path / "missing.csv", tmp_path / "out", "--missing", "drop", ONE_MODEL)) == 0
    assert "1 of 1,600 rows were left out" in capsys.readouterr().out


def test_steps_are_named_as_on_the_command_line(file, tmp_path, capsys):
    command = ["search", str(file), "--label", "hired", "--sensitive", "sex", "--out", str(tmp_path / "few")]
    assert main([*command, "--steps", "2"]) == 2
    assert "--steps must be in [3, 1000]; got 2" in " ".join(capsys.readouterr().err.split())
