"""The documentation runs, names what exists, and leaves no public name out."""

import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fairfrontier

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text(encoding="utf-8")]


def load_page_code():
    """Return the module of the documentation that runs its pages."""
    spec = importlib.util.spec_from_file_location("page_code", DOCS / "_ext" / "page_code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page_code = load_page_code()


def assert_same_output(printed, shown):
    """Compare words and whole numbers exactly, decimals nearly: models differ between versions of scikit-learn."""
    decimal = re.compile(r"[+-]?\d*\.\d+|[+-]?\d+\.\d*")
    assert decimal.sub("#", printed).split() == decimal.sub("#", shown).split(), printed
    values = [[float(number) for number in decimal.findall(text)] for text in (printed, shown)]
    assert values[0] == pytest.approx(values[1], abs=0.05, rel=0.05), printed


# Fairlearn sets values in ways that pandas will forbid; what it does to its own data is not ours to change.
@pytest.mark.filterwarnings("ignore:Setting an? (value|item) ")
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path):
    for printed, shown in page_code.run(page, tmp_path):
        if shown is not None:
            assert_same_output(printed, shown)


def test_pages_with_code_are_found():
    assert {"tutorial", "identify", "quantify", "optimize", "inference"} <= {page.stem for page in WITH_CODE}
    assert sum(page.read_text(encoding="utf-8").count("```output\n") for page in WITH_CODE) > 30


def public_modules():
    """Return the package and the modules directly in it that say what is public."""
    names = [info.name for info in pkgutil.iter_modules(fairfrontier.__path__) if not info.name.startswith("_")]
    modules = [importlib.import_module(f"fairfrontier.{name}") for name in names if name != "cli"]
    return [fairfrontier, *(module for module in modules if hasattr(module, "__all__"))]


def documented():
    """Return the full names in the summaries of the reference, and its text."""
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    module, names, inside = "", [], False
    for line in text.splitlines():
        if found := re.match(r"\.\. module:: (\S+)", line):
            module = found[1]
        inside = line.startswith(".. autosummary::") or (inside and (not line or line.startswith("   ")))
        if inside and re.fullmatch(r"   [\w.]+", line):
            names.append(f"{module}.{line.strip()}")
    return names, text


def resolve(name):
    """Return the object of a full name."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], start=1):
        if not hasattr(value, part):
            importlib.import_module(".".join(parts[: i + 1]))
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module):
    names, text = documented()
    shown = [resolve(name) for name in names]
    for name in module.__all__:
        value = getattr(module, name)
        in_words = f"``{name}``" in text or f"{module.__name__}.{name}" in text
        assert any(value is one for one in shown) or in_words, (
            f"{module.__name__}.{name} is missing in docs/api/index.rst"
        )


def test_every_name_of_the_reference_exists():
    names, _ = documented()
    assert len(names) == len(set(names)) > 90
    for name in names:
        assert resolve(name) is not None


def test_every_object_that_pages_link_to_exists():
    role = re.compile(r"\{(?:func|class|meth|mod|attr|obj)\}`(?:[^`<]*<)?~?([\w.]+)>?`")
    found = {name for page in PAGES for name in role.findall(page.read_text(encoding="utf-8"))}
    assert len(found) > 40
    for name in found:
        assert resolve(name) is not None


def test_every_page_is_in_the_navigation():
    listed = {"index"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            entries = [line.strip() for line in tree.splitlines() if line.strip() and not line.startswith(":")]
            listed.update(entry.partition("<")[2].rstrip(">") or entry for entry in entries)
    assert {page.stem for page in PAGES} <= listed


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            if target.startswith("auto_examples/"):
                (name,) = re.findall(r"plot_[a-z_]*[a-z]", target)
                assert (ROOT / "examples" / f"{name}.py").is_file(), f"{page.name}: {target}"
            else:
                assert (DOCS / target).exists(), f"{page.name}: {target}"


def simulated(heading):
    """Return the rows of a table of the coverage simulation, as text."""
    text = (ROOT / "results" / "coverage.md").read_text(encoding="utf-8").partition(f"## {heading}")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_figures_of_the_page_on_inference_are_those_of_the_simulation():
    page = " ".join((DOCS / "inference.md").read_text(encoding="utf-8").split())
    coverage, curse = simulated("Coverage (%)"), simulated("The winner's curse")
    intervals, compared, bands = ([float(row[column]) for row in coverage] for column in (5, 6, 8))
    apart, level = ([float(row[9]) for row in coverage if (row[0] == "level") is bad] for bad in (False, True))
    honest = max(abs(float(row[5].split("±")[0])) for row in curse)
    told_apart = [row for row in curse if float(row[4].split("±")[0]) > 0.0003]
    ratio = max(abs(float(row[6].split("±")[0])) for row in told_apart)
    assert len(told_apart) == len(curse) - 1  # the page speaks of one setting in which nothing can be told
    promised = {tuple(row[:3]): f"{float(row[4].split('±')[0]):.3f}".lstrip("0") for row in curse}
    large = [promised[kind, k, "12,000"] for kind, k in (("wild", "200"), ("close", "100"), ("level", "100"))]
    for stated in (
        f"{min(intervals):.1f} to {max(intervals):.1f} %",
        f"`compare_fauc` in {min(compared):.1f} to {max(compared):.1f} %",
        f"{min(apart):.0f} to {max(apart):.0f} % of the draws where models differ",
        f"{min(level):.0f} to {max(level):.0f} % where all are equally good",
        f"{min(bands):.1f} %",
        f"on average {promised['wild', '200', '1,000']} more FAUC",
        f"{promised['close', '100', '1,000']} when 100 models are close",
        f"{promised['level', '100', '1,000']} when 100 are equally good",
        f"it is {large[0]}, {large[1]} and {large[2]}",
        f"off by {honest:.4f}".replace("0.", "."),
        f"at most {ratio:.0%}".replace("%", " %"),
    ):
        assert stated in page, f"results/coverage.md says {stated!r}, docs/inference.md does not"


def test_a_page_takes_results_as_they_come(tmp_path):
    """Links to files without a page, what is not there yet, and formulas: no warning, no network."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "README.md").write_text(
        "# Run\n\n[raw](raw.jsonl) ![no](no.png) [out](https://example.org)\n"
    )
    pages = tmp_path / "docs"
    pages.mkdir()
    extension = f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
    settings = 'extensions = ["myst_parser", "mathml", "included_results"]\nhtml_math_renderer = "mathml"\n'
    (pages / "conf.py").write_text(extension + settings + 'myst_enable_extensions = ["dollarmath"]\n')
    includes = "".join(f"```{{include}} ../results/{name}\n```\n\n" for name in ("README.md", "later.md"))
    (pages / "index.md").write_text(includes + "![later](../results/later.png)\n\n$$\nw(t) = w_0\n$$ (closed)\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(pages), str(tmp_path / "out")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    shown = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<math" in shown
    assert "(1)" in shown
    assert "later.md</span></code> is not there yet" in shown
    assert not re.search(r"<(script|link)[^>]+https?:", shown)


def command_options():
    """Return the options of each command."""
    from typer.main import get_command

    from fairfrontier._cli.app import app

    return {
        name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in get_command(app).commands.items()
    }


def test_every_option_of_the_command_line_is_in_its_page():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    commands = command_options()
    assert len(commands) >= 6
    assert "--tau" in commands["stack"]
    for command, options in commands.items():
        assert f"\n## {command}\n" in page
        for option in options:
            assert not option.startswith("--") or f"`{option}`" in page, f"{command} {option} is missing in docs/cli.md"


def test_every_command_and_option_that_pages_show_exists():
    commands = command_options()
    fences = [fence for page in PAGES for fence in page_code.FENCE.findall(page.read_text(encoding="utf-8"))]
    shell = "\n".join(code for language, code in fences if language == "bash")
    calls = re.findall(r"^fairfrontier (\w+)(.*)$", shell, flags=re.MULTILINE)
    assert len(calls) >= 8
    for command, rest in calls:
        assert set(re.findall(r"--[a-z][a-z-]+", rest.partition("#")[0])) <= commands[command] | {"--help"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dropped", "attribute", "n_fit"), [("bank", "age", "age", 800), ("compas", "male", "gender", 2400)]
)
def test_the_page_from_a_table_to_a_model_runs_on_other_data(
    name, dropped, attribute, n_fit, tmp_path, monkeypatch, capsys
):
    """A new user changes the table, the columns to leave out, the attribute, and what few rows can promise."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "pipeline.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.split("## Searches")[0], flags=re.DOTALL))
    changes = {
        "load_adult": f"load_{name}",
        '["sex", "relationship"]': f'["{dropped}"]',
        'sensitive_features["gender"]': f'sensitive_features["{attribute}"]',
        "(0.95, 0.95)": "(0.85, 0.95)",
        "4000": str(2 * n_fit),
        "2000": str(n_fit),
    }
    for old, new in changes.items():
        assert old in code
        code = code.replace(old, new)
    found = {}
    exec(compile(code, "pipeline.md", "exec"), found)
    printed = capsys.readouterr().out
    assert "base models: logistic forest/0" in printed
    assert "True" in printed.splitlines()  # the loaded model decides as the saved one
    stack = found["model"][-1]
    free = stack.at(target=stack.path_.target[0]).predict(found["model"][:-1].transform(found["X_new"]))
    decided = {"selected": found["in_service"].predict(found["X_new"]), "free": free}
    points = fairfrontier.tradeoff_points(found["y_new"], decided, sensitive_features=found["gender_new"])
    sizes = found["gender_new"].value_counts()[[name.split("=")[-1] for name in points.sets.names]].to_numpy()
    error = np.sqrt((points.rates[0] * (1 - points.rates[0]) / sizes).sum())
    # The rows fitted to and the new ones have this error each.
    assert points.fairness[0] >= 0.95 - 2 * np.sqrt(2) * error
    assert points.fairness[0] >= points.fairness[1]
    assert points.accuracy[0] >= points.accuracy[-1] - 0.02
