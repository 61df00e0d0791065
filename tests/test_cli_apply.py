"""`fairfrontier apply`: a new file is read as the one that the model was fitted to, and answered in its own words."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairfrontier as ff
from fairfrontier.cli import main

MODELS = ["m_0", "m_1", "m_2"]


def people(n: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    merit = rng.normal(size=n) + 0.8 * (sex == "m")
    frame = pd.DataFrame({"y": (merit + rng.normal(size=n) > 0.4).astype(int), "sex": sex})
    for j, name in enumerate(MODELS):
        margin = merit - 0.5 * j * (sex == "m") + rng.normal(scale=0.8, size=n) - 0.4 + j / 4
        frame[name] = (1 / (1 + np.exp(-margin))).round(4)
    return frame


def written(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)
    return path


def stack(file: Path, *options: str, sensitive: str = "sex") -> Path:
    out = file.with_suffix("")
    command = ["stack", str(file), "--label", "y", "--sensitive", sensitive, "--min-fairness", "0.9"]
    assert main([*command, "--scores", "m_*", "--out", str(out), *options]) == 0
    return out / "model.skops"


def applied(model: Path, file: Path, *options: str) -> list[dict[str, str]]:
    out = file.with_name(f"{file.stem}-scored.csv")
    assert main(["apply", str(model), str(file), "--out", str(out), "--force", *options]) == 0
    with out.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    return stack(written(tmp_path_factory.mktemp("stack") / "people.csv", people()))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (("5", "1000001"), "csv"),
        (("01", "02"), "csv"),
        (("False", "True"), "csv"),
        (("-1", "+1"), "csv"),
        (("1234567", "1234568"), "csv"),
        (("9007199254740992", "9007199254740993"), "csv"),
        (("0.1234567", "0.1234568"), "csv"),
        ((5, 1000001), "parquet"),
        ((9007199254740992, 9007199254740993), "parquet"),
    ],
)
def test_decisions_are_in_the_labels_of_the_file(tmp_path, capsys, labels, kind):
    frame = people()
    plain = stack(written(tmp_path / "plain.csv", frame))
    expected = [labels[int(row["decision"])] for row in applied(plain, tmp_path / "plain.csv")]
    frame["y"] = np.array(labels, dtype=object)[frame["y"]]
    file = written(tmp_path / f"named.{kind}", frame if kind == "csv" else frame.astype({"y": "int64"}))
    capsys.readouterr()
    model = stack(file, "--positive", str(labels[1]))
    assert f"The positive label is {labels[1]};" in capsys.readouterr().out
    assert [row["decision"] for row in applied(model, file)] == [str(label) for label in expected]


def test_python_has_numbers_and_truth_values_for_labels_that_read_so(tmp_path):
    frame = people()
    frame["y"] = np.where(frame["y"] == 1, "02", "01")
    assert ff.load(stack(written(tmp_path / "codes.csv", frame))).classes_.tolist() == [1, 2]
    frame["y"] = frame["y"] == "02"
    assert ff.load(stack(written(tmp_path / "truth.csv", frame))).classes_.tolist() == [False, True]


def test_three_labels_that_agree_in_six_digits_are_three(tmp_path, capsys):
    frame = people()
    frame["y"] = np.array([7, 1234567, 1234568])[np.arange(len(frame)) % 3]
    command = ["audit", str(written(tmp_path / "p.csv", frame)), "--label", "y", "--sensitive", "sex"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "must have two values; got 3 ('1234567', '1234568', '7')" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("chunks", [(), ("--chunk-rows", "100")])
def test_numbers_are_put_into_the_bands_of_the_stack(tmp_path, capsys, chunks):
    frame = people().assign(age=np.random.default_rng(1).integers(16, 90, 600))
    file = written(tmp_path / "ages.csv", frame)
    model = stack(file, sensitive="age:30,60")
    capsys.readouterr()
    rows = applied(model, file, "--keep", "age", *chunks)
    text = capsys.readouterr().out
    assert "Warning" not in text
    selected = pd.Series([row["decision"] == "1" for row in rows])
    for name, inside in (
        ("under 30", frame["age"] < 30),
        ("30 to under 60", frame["age"].between(30, 59)),
        ("60 or more", frame["age"] >= 60),
    ):
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert line[len(name) :].split()[:2] == [str(inside.sum()), str((selected & inside).sum())]
    assert [row["age"] for row in rows] == frame["age"].astype(str).tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_decisions_in_words_are_read_as_stack_read_them(tmp_path, kind):
    frame = people()
    frame["m_2"] = (frame["m_2"] > 0.5).astype(int)
    file = written(tmp_path / f"numbers.{kind}", frame)
    words = written(tmp_path / f"words.{kind}", frame.assign(m_2=np.where(frame["m_2"] == 1, "admit", "reject")))
    expected = applied(stack(file), file)
    model = stack(words)
    found = applied(model, words, "--keep", "m_2", "--keep", "m_0")
    assert [(row["score"], row["decision"]) for row in found] == [(row["score"], row["decision"]) for row in expected]
    assert [row["m_2"] for row in found] == np.where(frame["m_2"] == 1, "admit", "reject").tolist()
    assert [float(row["m_0"]) for row in found] == frame["m_0"].tolist()
    assert applied(model, file) == expected  # decisions 0 and 1 mean the same


def test_a_line_break_in_the_name_of_a_kept_column_adds_no_row(fitted, tmp_path):
    frame = people(seed=1).assign(**{"person\nid": np.arange(600)})
    rows = applied(fitted, written(tmp_path / "new.csv", frame), "--keep", "person\nid", "--chunk-rows", "100")
    assert [row["person\nid"] for row in rows] == [str(i) for i in range(600)]


@pytest.mark.parametrize("name", ["score", "decision"])
def test_kept_columns_have_other_names_than_what_is_written(fitted, tmp_path, capsys, name):
    file = written(tmp_path / "new.csv", people(seed=1).assign(**{name: 1}))
    assert main(["apply", str(fitted), str(file), "--keep", name, "--out", str(tmp_path / "o.csv")]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "--keep must name other columns than score and decision" in text
    assert f"got '{name}'" in text
    assert not (tmp_path / "o.csv").exists()


def test_a_column_that_is_kept_twice_is_written_once(fitted, tmp_path):
    applied(fitted, written(tmp_path / "new.csv", people(seed=1)), "--keep", "sex", "--keep", "sex")
    assert (tmp_path / "new-scored.csv").read_text().startswith("sex,score,decision\n")


@pytest.mark.parametrize("chunks", [(), ("--chunk-rows", "100")])
def test_kept_text_stays_what_it_is(fitted, tmp_path, chunks):
    texts = ["NA", "null", "007", "-5", "", "nan"]
    frame = people(seed=1).assign(code=[texts[i % 6] for i in range(600)])
    rows = applied(fitted, written(tmp_path / "new.csv", frame), "--keep", "code", *chunks)
    assert [row["code"] for row in rows] == frame["code"].tolist()


def test_na_in_csv_is_no_group_and_in_parquet_it_is_one(fitted, tmp_path, capsys):
    """The rule of docs/cli.md: CSV has no other word for what is missing."""
    frame = people()
    frame.loc[::3, "sex"] = "NA"
    for kind, is_group in (("csv", False), ("parquet", True)):
        file = written(tmp_path / f"na.{kind}", frame)
        capsys.readouterr()
        rows = applied(fitted, file, "--keep", "sex")
        assert ("sex=NA (200 rows) was not there" in capsys.readouterr().out) == is_group
        assert [row["sex"] for row in rows] == frame["sex"].tolist()
        command = ["audit", str(file), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path / kind)]
        assert main(command) == (0 if is_group else 2)
        assert ("a word such as NA counts as missing" in " ".join(capsys.readouterr().err.split())) != is_group


@pytest.mark.parametrize("target", ["new.csv", "model.skops", "sub/../new.csv"])
def test_no_input_of_apply_is_replaced(fitted, tmp_path, capsys, target):
    (tmp_path / "sub").mkdir()
    file, model = written(tmp_path / "new.csv", people(seed=1)), shutil.copy(fitted, tmp_path / "model.skops")
    before = file.read_bytes(), model.read_bytes()
    assert main(["apply", str(model), str(file), "--out", str(tmp_path / target), "--force"]) == 2
    assert "--out must not replace a file that is read" in " ".join(capsys.readouterr().err.split())
    assert (file.read_bytes(), model.read_bytes()) == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("audit", "points.csv"),
        ("stack", "weights.csv"),
        ("search", "candidates.csv"),
        ("search", "steps/people.csv"),
    ],
)
def test_no_input_of_other_commands_is_replaced(tmp_path, capsys, command, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    file = written(tmp_path / name, people())
    before = file.read_bytes()
    assert main([command, str(file), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path), "--force"]) == 2
    assert "--out must not replace a file that is read" in " ".join(capsys.readouterr().err.split())
    assert file.read_bytes() == before


def test_stacks_of_earlier_versions_are_applied(tmp_path):
    saved = Path(__file__).parent / "saved" / "stack-0.1.0.skops"
    old = ff.load(saved)
    frame = pd.DataFrame({name: np.linspace(0.05, 0.95, 30) for name in old.names_}).assign(person="NA")
    rows = applied(saved, written(tmp_path / "new.csv", frame), "--keep", "person")
    expected = old._scores_of(frame[list(old.names_)].to_numpy()) > old.threshold
    assert [row["decision"] for row in rows] == [str(old.classes_[int(yes)]) for yes in expected]
    assert {row["person"] for row in rows} == {"NA"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"m_1": lambda f: 100 * f["m_1"]}, "FILE must have scores in [0, 1], as the stack was fitted to; got "),
        ({"m_1": lambda f: f["m_1"].astype(object).where(f.index > 0, "n.a.")}, "FILE 'm_1' must be numbers; got text"),
        ({"m_1": lambda f: f["m_1"].where(f.index > 0)}, "FILE must be finite; got nan in 'm_1' at row 1"),
    ],
)
def test_scores_that_the_stack_was_not_fitted_to_are_refused(fitted, tmp_path, capsys, change, word):
    file = written(tmp_path / "new.csv", people(80, seed=4).assign(**change))
    assert main(["apply", str(fitted), str(file), "--out", str(tmp_path / "out.csv")]) == 2
    assert word in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_columns_that_are_missing_are_all_named(fitted, tmp_path, capsys):
    file = written(tmp_path / "new.csv", people(80).drop(columns=["m_0", "m_2"]))
    assert main(["apply", str(fitted), str(file), "--out", str(tmp_path / "out.csv")]) == 2
    assert "new.csv has no 'm_0', 'm_2': its columns are 'y', 'sex', 'm_1'" in capsys.readouterr().err


def test_what_is_no_model_is_named_as_the_argument(fitted, tmp_path, capsys):
    file = written(tmp_path / "new.csv", people(80))
    (tmp_path / "cut.skops").write_bytes(fitted.read_bytes()[:1000])
    for model in (file, tmp_path / "cut.skops", tmp_path / "none.skops"):
        assert main(["apply", str(model), str(file), "--out", str(tmp_path / "out.csv")]) == 2
        assert "MODEL must be what `stack` or `search` wrote" in capsys.readouterr().err


def test_a_search_that_was_not_fitted_is_refused(tmp_path, capsys):
    file = written(tmp_path / "new.csv", people(80))
    model = ff.save(ff.FairSearch(), tmp_path / "search.skops")
    assert main(["apply", str(model), str(file), "--out", str(tmp_path / "out.csv")]) == 2
    assert "MODEL must be a fitted stack or search; search.skops holds a FairSearch" in capsys.readouterr().err


def test_rows_without_a_group_are_counted(tmp_path, capsys):
    frame = people()
    frame.loc[::4, "sex"] = None
    model = stack(written(tmp_path / "people.csv", frame), "--missing", "group")
    capsys.readouterr()
    applied(model, written(tmp_path / "new.csv", frame))
    shown = capsys.readouterr().out
    assert next(line for line in shown.splitlines() if line.startswith("(missing)")).split()[1] == "150"
    assert "was not there" not in shown
