"""Bad files: one clear line, exit code 2, nothing half-written. (Bad options are in `bad_commands.py`.)"""

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairfrontier._cli.output import writing
from fairfrontier.chunks._files import read_table
from fairfrontier.chunks._formats import open_table
from fairfrontier.cli import main
from fairfrontier.search._table import read_columns


def good(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "outcome": np.arange(n) % 2,
            "sex": ["f", "m", "m", "f"] * (n // 4),
            "m_a": rng.random(n),
            "m_b": rng.random(n),
        }
    )


def run(file: Path, out: Path, *options: str) -> int:
    return main(["audit", str(file), "--out", str(out), "--label", "outcome", "--sensitive", "sex", *options])


@pytest.fixture
def refused(tmp_path, capsys):
    """Return a check: the command refuses with one line, which it returns, and writes nothing."""

    def check(file: Path, *options: str) -> str:
        out = tmp_path / "nested" / "out"
        assert run(file, out, *options) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert not (tmp_path / "nested").exists()
        return captured.err

    return check


def written(tmp_path: Path, frame: pd.DataFrame, **options) -> Path:
    path = tmp_path / "p.csv"
    frame.to_csv(path, index=False, **options)
    return path


def test_missing_column_names_the_near_match(tmp_path, refused):
    path = written(tmp_path, good().rename(columns={"outcome": "outcomes"}))
    assert "--label must name a column of p.csv; got 'outcome': did you mean 'outcomes'?" in refused(path)
    path = written(tmp_path, good().rename(columns={"sex": "Sex"}))
    assert "did you mean 'Sex'?" in refused(path)
    path = written(tmp_path, good())
    assert "did you mean 'm_a'?" in refused(path, "--scores", "m_aa")
    assert "--scores 'q_*' must match a column; the others are 'm_a', 'm_b'" in refused(path, "--scores", "q_*")


def test_missing_file_names_the_near_match(tmp_path, refused):
    written(tmp_path, good())
    assert "did you mean" in refused(tmp_path / "q.csv")


def test_empty_file(tmp_path, refused):
    (tmp_path / "p.csv").write_text("")
    assert "p.csv must be a readable CSV file with a header; it is empty" in refused(tmp_path / "p.csv")
    (tmp_path / "p.csv").write_text("outcome,sex,m_a\n")
    assert "a header and no rows" in refused(tmp_path / "p.csv")


@pytest.mark.parametrize(("delimiter", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_delimiter_is_found_and_announced(tmp_path, refused, delimiter, word, capsys):
    path = written(tmp_path, good(), sep=delimiter)
    assert f"looks separated by {word}, not by ','" in refused(path, "--delimiter", ",")
    for out, options in (("a", ()), ("b", ("--delimiter", delimiter))):
        assert run(path, tmp_path / out, "--no-stack", *options) == 0
        assert (f"are separated by {word}" in capsys.readouterr().out) == (not options)
    assert (tmp_path / "a" / "points.csv").read_bytes() == (tmp_path / "b" / "points.csv").read_bytes()


def test_encoding_decimal_comma_and_compression_are_found_and_announced(tmp_path, capsys):
    frame = good().rename(columns={"sex": "sëx", "m_a": "modèle"}).replace({"f": "féminin"})
    options = ["--label", "outcome", "--sensitive", "sëx", "--no-stack"]
    points = []
    for name, encoding, marks in (
        ("utf8.csv", "utf-8", {}),
        ("bom.csv", "utf-8-sig", {}),
        ("latin.csv", "latin-1", {"sep": ";", "decimal": ","}),
        ("wide.csv", "utf-16", {"sep": "\t"}),
        ("packed.csv.gz", "utf-8", {}),
        ("packed.bin", "utf-8", {"compression": "bz2"}),
    ):
        frame.to_csv(tmp_path / name, index=False, encoding=encoding, **marks)
        for chunks in ([], ["--chunk-rows", "7"]):
            out = tmp_path / f"{name}{len(chunks)}"
            assert main(["audit", str(tmp_path / name), "--out", str(out), *options, *chunks]) == 0
            text = " ".join(capsys.readouterr().out.split())
            assert ("is not UTF-8 text; it was read as" in text) == (encoding in ("latin-1", "utf-16"))
            assert ("have a decimal comma" in text) == ("decimal" in marks)
            points.append((out / "points.csv").read_text(encoding="utf-8"))
    assert "modèle" in points[0]
    assert "féminin" in points[0]
    assert set(points) == {points[0]}


def test_label_with_three_values(tmp_path, refused):
    frame = good()
    frame.loc[0, "outcome"] = 2
    assert "--label 'outcome' must have two values; got 3 ('0', '1', '2')" in refused(written(tmp_path, frame))


def test_label_with_one_value_or_a_missing_one(tmp_path, refused):
    frame = good()
    frame["outcome"] = 1
    assert "must have two values; got 1" in refused(written(tmp_path, frame))
    frame = good().astype({"outcome": float})
    frame.loc[4, "outcome"] = np.nan
    assert "--label 'outcome' must have no missing value; row 5 has none" in refused(written(tmp_path, frame))


@pytest.mark.parametrize("missing", [None, "", "  ", "NA"])
def test_attribute_with_a_missing_value(tmp_path, refused, missing):
    frame = good()
    frame.loc[6, "sex"] = missing
    assert "--sensitive 'sex' must have no missing value; row 7 has none" in refused(written(tmp_path, frame))


def test_attribute_with_one_group_or_far_too_many(tmp_path, refused):
    frame = good(80)
    frame["sex"] = "f"
    assert "--sensitive 'sex' must have at least two groups; got only 'f'" in refused(written(tmp_path, frame))
    frame["sex"] = np.arange(80)
    assert "got 80 different values: put the numbers into bands, such as" in refused(written(tmp_path, frame))
    frame["sex"] = [f"g{i}" for i in range(80)]
    assert "got 80 different values: merge small groups" in refused(written(tmp_path, frame))


def test_far_too_many_combinations_of_groups(tmp_path, refused):
    rng = np.random.default_rng(0)
    frame = good(800).assign(sex=rng.integers(0, 9, 800), race=rng.integers(0, 9, 800))
    path = written(tmp_path, frame)
    message = refused(path, "--sensitive", "race", "--sensitive-mode", "intersectional")
    assert "--sensitive-mode intersectional must make at most 50 groups; got 81" in message


def test_scores_as_text(tmp_path, refused):
    frame = good().astype({"m_a": object})
    frame.loc[3, "m_a"] = "high"
    path = written(tmp_path, frame)
    assert "--scores 'm_a' must be numbers; got text such as" in refused(path, "--scores", "m_*")
    frame["m_b"] = "low"
    frame["m_a"] = "high"
    assert "'m_a' holds text; 'm_b' holds text: name the scores" in refused(written(tmp_path, frame))


def test_scores_that_are_missing_or_no_probabilities(tmp_path, refused):
    frame = good()
    frame.loc[9, "m_b"] = np.nan
    assert "scores 'm_b' must have no missing or infinite value; row 10 has one" in refused(written(tmp_path, frame))
    frame = good()
    frame["m_b"] = frame["m_b"] * 7 - 3
    message = refused(written(tmp_path, frame), "--scores", "m_*")
    assert "scores 'm_b' must be in [0, 1]" in message


def test_a_folder(tmp_path, refused):
    assert "is a folder" in refused(tmp_path)


@pytest.mark.parametrize("options", [(), ("--chunk-rows", "20")])
def test_not_a_table(tmp_path, refused, options):
    (tmp_path / "p.parquet").write_bytes(b"PAR1 and then nothing that Parquet knows")
    assert "p.parquet must be a readable Parquet file; it is not" in refused(tmp_path / "p.parquet", *options)
    (tmp_path / "p.csv").write_bytes(b"outcome,sex,m_a\n1,f\n0,m,0.3,9\n")
    assert "p.csv must be a readable CSV file; it is not" in refused(tmp_path / "p.csv", *options)
    (tmp_path / "p.csv").write_bytes(b"PK\x03\x04 is how an archive begins")
    assert "p.csv must be a readable Excel file; it is not" in refused(tmp_path / "p.csv", *options)
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("p.csv", good().to_csv(index=False))
    assert "it is a zip archive: unpack it" in refused(tmp_path / "p.zip", *options)
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(good().to_csv(index=False).encode())[:-20])
    assert "p.csv.gz must be a readable CSV file; it is not" in refused(tmp_path / "p.csv.gz", *options)
    good(400).to_parquet(tmp_path / "p.parquet")
    whole = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(whole[:200] + bytes(1500) + whole[1700:])
    assert "p.parquet must be a readable Parquet file; it is not" in refused(tmp_path / "p.parquet", *options)


@pytest.mark.parametrize("options", [(), ("--chunk-rows", "20")])
def test_columns_of_lists_and_records(tmp_path, refused, options):
    frame = good().assign(lists=[[1, 2]] * 40, record=[{"a": 1}] * 40)
    path = tmp_path / "p.parquet"
    frame.to_parquet(path)
    assert "'lists' of p.parquet must hold one value per row" in refused(path, "--sensitive", "lists", *options)
    assert "--scores 'record' must be numbers" in refused(path, "--scores", "record", *options)


def repacked(path: Path, change) -> Path:
    """Rewrite an Excel file with other entries."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (entries | change(entries["xl/worksheets/sheet1.xml"])).items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda sheet: {"xl/worksheets/sheet1.xml": sheet[: len(sheet) // 2]},
        lambda sheet: {"xl/worksheets/sheet1.xml": sheet.replace(b"<v>", b"<v>&", 1)},
        lambda sheet: {"xl/worksheets/sheet1.xml": sheet.replace(b"<v>0.", b"<v>" + b"9" * 400 + b" ", 1)},
        lambda sheet: {"xl/worksheets/sheet1.xml": sheet.replace(b'r="A2"', b'r="?"', 1)},
        lambda sheet: {"xl/workbook.xml": b"<workbook/>"},
        lambda sheet: {"xl/styles.xml": b"\x00\xff"},
        lambda sheet: {"xl/media/zeros": bytes(2**28)},
    ],
    ids=["half a sheet", "not XML", "a number of 400 digits", "no such cell", "no sheets", "no styles", "a bomb"],
)
def test_a_damaged_excel_file(tmp_path, refused, change):
    pytest.importorskip("openpyxl")
    path = tmp_path / "p.xlsx"
    good().to_excel(path, index=False)
    assert "p.xlsx must be a readable Excel file; it" in refused(repacked(path, change))


def test_an_excel_file_whose_bytes_are_damaged(tmp_path, refused):
    pytest.importorskip("openpyxl")
    path = tmp_path / "p.xlsx"
    good().to_excel(path, index=False)
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("xl/worksheets/sheet1.xml")
    content = bytearray(path.read_bytes())
    at = entry.header_offset + 30 + len(entry.filename)
    content[at : at + 20] = b"\xff" * 20
    path.write_bytes(content)
    assert "p.xlsx must be a readable Excel file; it is not: " in refused(path)


def test_an_attribute_without_any_value(tmp_path, refused):
    path = tmp_path / "p.parquet"
    good().assign(sex=None).to_parquet(path)
    assert "--sensitive 'sex' must have at least two groups; got none" in refused(path, "--missing", "drop")


def test_column_name_twice(tmp_path, refused):
    frame = good()
    frame.columns = ["outcome", "sex", "m_a", "m_a"]
    assert "got 'm_a' twice" in refused(written(tmp_path, frame))


def test_a_model_named_constant(tmp_path, refused):
    assert "--scores must name no column 'constant'" in refused(
        written(tmp_path, good().rename(columns={"m_a": "constant"}))
    )


def test_an_existing_output_is_refused_unless_forced(tmp_path, capsys):
    path, out = written(tmp_path, good()), tmp_path / "out"
    out.mkdir()
    (out / "points.csv").write_text("mine")
    (out / "other.txt").write_text("also mine")
    assert run(path, out) == 2
    error = capsys.readouterr().err
    assert "already has points.csv" in error
    assert len(error.splitlines()) == 1
    assert sorted(p.name for p in out.iterdir()) == ["other.txt", "points.csv"]
    assert (out / "points.csv").read_text() == "mine"
    assert run(path, out, "--force", "--no-stack") == 0
    assert (out / "points.csv").read_text().startswith("model,")
    assert (out / "other.txt").read_text() == "also mine"


def test_output_that_is_a_file_or_inside_one(tmp_path, capsys):
    path = written(tmp_path, good())
    for out in (path, path / "inside" / "it"):
        assert run(path, out) == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert "--out must be a folder" in error


def test_a_link_in_the_output_is_replaced_and_not_followed(tmp_path):
    path, out, elsewhere = written(tmp_path, good()), tmp_path / "out", tmp_path / "elsewhere.csv"
    out.mkdir()
    elsewhere.write_text("not ours")
    (out / "points.csv").symlink_to(elsewhere)
    assert run(path, out) == 2
    assert run(path, out, "--force", "--no-stack") == 0
    assert elsewhere.read_text() == "not ours"
    assert not (out / "points.csv").is_symlink()


def test_nothing_is_left_after_an_error_while_writing(tmp_path):
    out = tmp_path / "new" / "out"

    def fail_half_way() -> None:
        with writing(out, force=False) as folder:
            (folder / "report.html").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail_half_way()
    assert not (tmp_path / "new").exists()


@pytest.fixture
def unprivileged(tmp_path):
    """Be a user without rights on the files of this test: root may read and write everything."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    tmp_path.chmod(0o777)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    yield
    os.seteuid(was)


@pytest.fixture
def locked(tmp_path) -> Path:
    path = written(tmp_path, good())
    path.chmod(0)
    return path


def test_no_permission_to_read(locked, unprivileged, refused):
    assert "Permission denied" in refused(locked)


@pytest.fixture
def closed_folder(tmp_path) -> Path:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    return folder


def test_no_permission_to_write(tmp_path, closed_folder, capsys, request):
    path = written(tmp_path, good())
    path.chmod(0o644)
    request.getfixturevalue("unprivileged")
    for out in (closed_folder, closed_folder / "deeper"):
        assert run(path, out) == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert "--out must be a folder that can be written to" in error
    assert list(closed_folder.iterdir()) == []


def test_a_parquet_file_whose_names_are_no_text(tmp_path, refused):
    path = tmp_path / "p.parquet"
    good().rename(columns={"sex": "the sex of them"}).to_parquet(path)
    path.write_bytes(path.read_bytes().replace(b"the sex", b"th\xe1\xffsex"))
    assert "p.parquet must be a readable Parquet file; it" in refused(path)


def test_a_parquet_file_that_has_fewer_rows_than_it_says(tmp_path, refused):
    path = tmp_path / "p.parquet"
    pd.concat([good()] * 100).iloc[:300].to_parquet(path, index=False)
    content = path.read_bytes()
    at = content.index(b"\x16\xd8\x04", len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    path.write_bytes(content[:at] + b"\x16\xd8\x05" + content[at + 3 :])  # 364 instead of 300, in Thrift's notation
    assert "it says that it has 364 rows, and has 300" in refused(path)


@pytest.mark.parametrize(
    ("first", "word"),
    [
        (b"\xfd7zXZ\x00", "an xz archive: unpack it"),
        (b"ARROW1\x00\x00", "a Feather or Arrow file: write it as Parquet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "a file of an old Excel: save it as .xlsx"),
        (b"%PDF-1.7", "a PDF"),
    ],
)
def test_files_of_other_kinds_are_known_by_their_first_bytes(tmp_path, refused, first, word):
    (tmp_path / "p.csv").write_bytes(first + bytes(range(256)))
    assert word in refused(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("sep=,\n", "", "row 1 has 4 cells and the header 2: delete lines above the header"),
        ("# made by us\n", "", "row 1 has 4 cells and the header 1: delete lines above the header"),
        ("", "1,f\n", "row 41 has 2 cells and the header 4: correct it"),
    ],
)
def test_rows_and_headers_of_different_lengths_are_told_in_our_words(tmp_path, refused, before, after, word):
    (tmp_path / "p.csv").write_text(before + good().to_csv(index=False) + after)
    assert word in refused(tmp_path / "p.csv")


def test_a_file_of_windows_keeps_its_euro_signs_and_dashes(tmp_path, capsys):
    frame = good().assign(sex=lambda f: f["sex"].map({"f": "under 10 \N{EURO SIGN}", "m": "10\N{EN DASH}20"}))
    assert run(written(tmp_path, frame, encoding="cp1252"), tmp_path / "out", "--no-stack") == 0
    groups = pd.read_csv(tmp_path / "out" / "groups.csv")["group"]
    assert set(groups) == {"under 10 \N{EURO SIGN}", "10\N{EN DASH}20"}
    assert "it was read as cp1252" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_text_of_two_or_four_bytes_is_known_without_a_mark(tmp_path, encoding):
    assert run(written(tmp_path, good()), tmp_path / "plain", "--no-stack") == 0
    assert run(written(tmp_path, good(), encoding=encoding), tmp_path / "out", "--no-stack") == 0
    same = [(tmp_path / out / "points.csv").read_text() for out in ("plain", "out")]
    assert same[0] == same[1]


@pytest.mark.parametrize("encoding", ["base64", "rot13", "idna", "undefined", "no-such"])
def test_an_encoding_that_is_not_of_text(tmp_path, refused, encoding):
    assert "encoding must be one of text that Python knows" in refused(
        written(tmp_path, good()), "--encoding", encoding
    )


def test_a_delimiter_that_the_header_does_not_have(tmp_path, refused):
    message = refused(written(tmp_path, good()), "--delimiter", ";")
    assert "p.csv looks separated by commas, not by ';'" in message


def test_decimal_commas_between_commas(tmp_path, refused):
    path = written(tmp_path, good(), decimal=",", quoting=1)
    assert "numbers with a comma, such as '0," in (message := refused(path))
    assert "write a decimal point, and no comma between thousands" in message


def test_a_column_of_the_label_or_a_group_is_no_score(tmp_path, refused):
    message = refused(written(tmp_path, good()), "--scores", "sex")
    assert "--scores must name other columns than --label, --sensitive and --sample-weight; got 'sex'" in message


def test_three_spellings_of_two_labels_are_no_numeric_target(tmp_path, refused):
    frame = good().assign(outcome=lambda f: f["outcome"].map({0: "no", 1: "yes"}))
    frame.loc[1, "outcome"] = "Yes"
    message = refused(written(tmp_path, frame))
    assert "got 3 ('Yes', 'no', 'yes'): write each of them in one way only" in message


@pytest.mark.parametrize(
    ("weight", "word"), [(0.0, "must have a positive sum; got only zeros"), (1e308, "must sum to")]
)
@pytest.mark.parametrize("chunks", [(), ("--chunk-rows", "7")])
def test_weights_that_nothing_can_be_computed_with(tmp_path, refused, weight, word, chunks):
    path = written(tmp_path, good().assign(w=weight))
    message = refused(path, "--scores", "m_*", "--sample-weight", "w", *chunks)
    assert f"--sample-weight {word}" in message


def test_a_column_of_missing_numbers_is_called_empty(tmp_path, capsys):
    good().assign(m_b=pd.array([None] * 40, dtype="Float64")).to_parquet(tmp_path / "p.parquet")
    assert run(tmp_path / "p.parquet", tmp_path / "out", "--no-stack") == 0
    assert "'m_b' (is empty)" in " ".join(capsys.readouterr().out.split())


def test_groups_that_differ_only_in_spelling_are_named(tmp_path, capsys):
    frame = good()
    frame.loc[:9, "sex"] = frame.loc[:9, "sex"].replace({"m": "M "})
    assert run(written(tmp_path, frame), tmp_path / "out", "--no-stack") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "'M ', 'm' of sex are taken as different groups: if they are one, write it in one way only." in shown
    assert run(written(tmp_path, good()), tmp_path / "other", "--no-stack") == 0
    assert "taken as different groups" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_table_of_a_comparison_that_has_a_header_and_no_row(tmp_path, capsys, name):
    path = tmp_path / name
    {".csv": good(0).to_csv, ".parquet": good(0).to_parquet}[path.suffix](path, index=False)
    command = [
        "reproduce",
        "--data",
        str(path),
        "--label",
        "outcome",
        "--sensitive",
        "sex",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main(command) == 2
    assert f"{name} must have at least one column and one row; got none" in capsys.readouterr().err


def test_a_column_that_is_empty_at_the_top_of_a_long_file(tmp_path, monkeypatch):
    monkeypatch.setattr("fairfrontier.chunks._formats._HEAD", 2000)
    frame = good(4000).assign(late=None, word=None, never=None)
    frame.loc[3990, ["late", "word"]] = 0.5, "x"
    columns = read_columns(read_table(open_table(written(tmp_path, frame))))
    assert columns["late"].dtype.kind == "f"
    assert (columns["late"][3990], np.isnan(columns["late"]).sum()) == (0.5, 3999)
    assert columns["word"].tolist() == [None] * 3990 + ["x"] + [None] * 9
    assert np.isnan(columns["never"]).all()


@pytest.mark.parametrize("column", ["m_a", "m_b"])
def test_a_word_far_down_a_column_of_numbers_names_the_column(tmp_path, refused, column, monkeypatch):
    monkeypatch.setattr("fairfrontier.chunks._formats._HEAD", 2000)
    frame = good(4000).astype({column: object})
    frame.loc[3990, column] = "oops"
    message = refused(written(tmp_path, frame))
    assert f"column '{column}' of p.csv must hold numbers or truth values" in message
    assert "got 'oops'" in message
