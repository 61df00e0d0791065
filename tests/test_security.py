"""Promises of SECURITY.md that no other test keeps: nothing is run, nothing is sent, nothing leaves its folder."""

import ast
import csv
import io
import itertools
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st

import fairfrontier as ff
from fairfrontier._writing import safe_text, to_csv
from fairfrontier.cli import main
from fairfrontier.exceptions import InvalidInputError

ROOT = Path(__file__).parents[1]
NETWORK = {
    "aiohttp",
    "ftplib",
    "http",
    "httpx",
    "requests",
    "smtplib",
    "socket",
    "ssl",
    "telnetlib",
    "urllib",
    "urllib3",
}
FORMULA = "=+-@＝＋－＠"


def predictions_file(path, names=("a", "b"), attribute="sex", groups=("f", "m")):
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    columns = {name: np.clip(0.6 * rng.random(300) + 0.4 * y, 0, 1) for name in names}
    pd.DataFrame({"y": y, attribute: np.array(groups, dtype=object)[group], **columns}).to_parquet(path)
    return path


def cells_that_would_run(text):
    """Return the cells that begin a formula, whatever separator the spreadsheet believes in."""
    cells = [
        cell
        for separator in ",;|\t"
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for cell in row
    ]
    return [cell for cell in cells if cell.strip()[:1] in (*FORMULA,)]


@given(
    st.lists(st.text(alphabet=st.sampled_from([*FORMULA, *",;|\t\r\n \"'ab1"]), max_size=12), min_size=1, max_size=4)
)
def test_no_text_in_a_csv_begins_a_formula_whatever_the_separator(texts):
    written = to_csv(["model", *texts], [["x", *texts], [*texts, "x"]])
    assert cells_that_would_run(written) == []
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows[1] == ["x", *(safe_text(text) for text in texts)]


@pytest.mark.parametrize(
    "text", ["forest", "C=0.1, penalty=l2", "a-b", "x+y", "me@home", "", "naïve; bayes", "5 % off"]
)
def test_harmless_text_is_left_alone(text):
    assert safe_text(text) == text


def test_the_tables_of_a_stack_are_data_for_every_separator(tmp_path):
    names = ("=1+1", " =1", "a;=cmd|' /C calc'!A0", "b\t@c", 'd","=1', "＝1", "ok")
    file = predictions_file(tmp_path / "p.parquet", names=names, attribute="s;=1", groups=("=1;=2", "-x;@y"))
    assert main(["stack", str(file), "--label", "y", "--sensitive", "s;=1", "--out", str(tmp_path / "out")]) == 0
    for table in ("points.csv", "frontier.csv", "weights.csv"):
        text = (tmp_path / "out" / table).read_text(encoding="utf-8")
        # A negative weight is a number in its own cell.
        assert cells_that_would_run(re.sub(r"(?<=,)-[0-9.]+(e-?[0-9]+)?$", "0", text, flags=re.MULTILINE)) == []


def node(module, name, loader, content):
    return {"__module__": module, "__class__": name, "__loader__": loader, "content": content}


def text_node(text):
    return node("builtins", "str", "JsonNode", json.dumps(text)) | {"is_json": True}


def hostile_states(command):
    """Yield what asks skops, in each of its ways, to call something with a shell command."""
    arguments = node("builtins", "tuple", "TupleNode", [text_node(command)])
    for module, name in (("os", "system"), ("posix", "system"), ("subprocess", "getoutput"), ("builtins", "eval")):
        function = node(module, name, "FunctionNode", {"module_path": module, "function": name})
        empty = node("builtins", "dict", "DictNode", {}) | {"key_types": node("builtins", "list", "ListNode", [])}
        contents = (
            arguments,
            {"module_path": module, "function": name},
            {"func": function, "args": arguments, "kwds": empty, "namespace": empty},
            {"func": name, "obj": text_node(command)},
            {"main": empty, "default_factory": function},
        )
        loaders = ("FunctionNode", "PartialNode", "MethodNode", "ConstructorFromReduceNode", "ObjectNode", "TypeNode")
        for loader, content in itertools.product((*loaders, "OperatorFuncNode", "DefaultDictNode"), contents):
            yield node(module, name, loader, content) | {"attrs": arguments, "__reduce__": {"args": arguments}}


def test_no_crafted_model_file_runs_anything(tmp_path):
    canary, path = tmp_path / "ran", tmp_path / "evil.skops"
    refused = set()
    for state in hostile_states(f"touch {canary}"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("schema.json", json.dumps(state | {"protocol": 2, "_skops_version": "0.16.0"}))
        with pytest.raises(InvalidInputError) as caught:
            ff.load(path)
        refused.add("not trusted; nothing was loaded" in str(caught.value))
        assert not canary.exists()
    assert True in refused


def test_a_trusted_package_does_not_let_in_its_members(tmp_path):
    from sklearn.preprocessing import FunctionTransformer

    path = tmp_path / "model.skops"
    skops.io.dump(FunctionTransformer(func=np.fft.fft), path)
    with pytest.raises(InvalidInputError, match=r"asks for the type 'numpy.*fft.*', which is not trusted"):
        ff.load(path, trusted=["numpy.fft"])
    with pytest.raises(InvalidInputError, match="not trusted"):
        ff.load(path, trusted=["numpy"])


def test_source_imports_nothing_that_reaches_a_network():
    for path in (ROOT / "src").rglob("*.py"):
        for step in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in step.names] if isinstance(step, ast.Import) else []
            names += [step.module or ""] if isinstance(step, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & NETWORK, path


def test_the_command_line_opens_no_connection(tmp_path):
    file = predictions_file(tmp_path / "p.parquet")
    code = (
        "import sys\n"
        "def watch(event, arguments):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'urllib.Request'):\n"
        "        print('CONNECTION', event, arguments, flush=True)\n"
        "sys.addaudithook(watch)\n"
        "from fairfrontier.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["audit", str(file), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "FAUC" in done.stdout
    assert "CONNECTION" not in done.stdout


@pytest.mark.parametrize("name", ["../../up", "/etc/passwd", "..\\up", "a/../../b", "~/x", "CON", ".", "report.html"])
def test_names_never_become_paths(tmp_path, name):
    inside = tmp_path / "deep" / "deeper"
    inside.mkdir(parents=True)
    file = predictions_file(inside / "p.parquet", names=(name, "b"), attribute=f"{name} ", groups=(name, f"{name}/x"))
    before = set(tmp_path.rglob("*"))
    out = inside / "out"
    assert main(["audit", str(file), "--label", "y", "--sensitive", f"{name} ", "--out", str(out)]) == 0
    new = set(tmp_path.rglob("*")) - before
    assert new == {
        out,
        *(
            out / one
            for one in ("report.html", "points.csv", "frontier.csv", "groups.csv", "summary.json", "model_card.md")
        ),
    }


def test_a_very_long_name_is_short_in_messages_and_on_the_terminal(tmp_path, capsys):
    long = "N" * 200_000
    file = predictions_file(tmp_path / "p.parquet", names=(long, "b"), groups=("G" * 100_000, "m"))
    assert main(["audit", str(file), "--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "o")]) == 0
    assert len(capsys.readouterr().out) < 5_000
    assert main(["audit", str(file), "--label", long, "--sensitive", "sex", "--out", str(tmp_path / "p")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert len(error) < 2_100


def test_the_document_names_real_tests():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/\w+\.py)::(?:\w+::)?(\w+)`", text)
    assert len(named) >= 15
    for file, name in named:
        assert re.search(rf"def {name}\b", (ROOT / file).read_text(encoding="utf-8")), f"{file} has no {name}"
