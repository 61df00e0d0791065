"""The repository as people expect it: citation, changelog, templates, the map of the tree, a complete sdist."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairfrontier"
PAGE = "https://github.com/fairfrontier/fairfrontier"
FOLDERS = {"tests/", "tools/", "benchmarks/", "docs/", "examples/", "results/"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def load_yaml(name):
    return yaml.safe_load(read(name))


def releases():
    """Return version and date of the releases in the changelog, the newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", read("CHANGELOG.md"), flags=re.MULTILINE)


def tree_map(text):
    """Return the names directly in the package and the other names that the map of the tree lists."""
    block = re.search(r"## Where things are\n\n((?:    .*\n)+)", text)[1]
    inside, outside = set(), set()
    for line in block.splitlines():
        indent, name = re.match(r"    ( *)(\S+)", line).groups()
        (inside if indent else outside).add(name)
    return inside, outside


def children(folder):
    """Return the modules and packages of a folder as the map writes them."""
    modules = {path.name for path in folder.glob("*.py")}
    return modules | {f"{path.name}/" for path in folder.iterdir() if any(path.glob("*.py"))}


class TestCitation:
    def test_the_paper_is_the_one_that_the_documentation_names(self):
        paper = load_yaml("CITATION.cff")["preferred-citation"]
        authors = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
        about = " ".join(read("docs/project.md").split())
        assert paper["title"] in about
        assert f"{', '.join(authors[:-1])} and {authors[-1]}" in about
        assert paper["identifiers"][0]["value"].removeprefix("arXiv:") == paper["url"].rpartition("/")[2]

    def test_the_software_is_the_last_release(self):
        citation = load_yaml("CITATION.cff")
        assert (citation["version"], str(citation["date-released"])) == releases()[0]
        assert citation["cff-version"] == "1.2.0"
        assert citation["license"] == tomllib.loads(read("pyproject.toml"))["project"]["license"]


def test_rooms_are_few_and_not_too_large():
    assert len([path for path in (PACKAGE / "optimize").glob("*.py") if path.stem != "__init__"]) <= 15
    longest = max(PACKAGE.rglob("*.py"), key=lambda path: len(path.read_text(encoding="utf-8").splitlines()))
    assert len(longest.read_text(encoding="utf-8").splitlines()) <= 700, f"take {longest.name} apart"


def test_releases_have_dates_and_descend():
    found = releases()
    assert ("0.1.0", "2026-11-10") in found
    order = [(tuple(map(int, version.split("."))), date) for version, date in found]
    assert order == sorted(order, reverse=True)
    headings = re.findall(r"^## .*$", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert [heading for heading in headings if "[Unreleased]" not in heading] == [
        f"## [{version}] - {date}" for version, date in found
    ]
    for name in re.findall(r"^## \[(.*?)\]", read("CHANGELOG.md"), flags=re.MULTILINE):
        assert f"\n[{name}]: {PAGE}" in read("CHANGELOG.md")


def test_the_project_has_addresses():
    urls = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    assert {"Homepage", "Source", "Issues", "Changelog"} <= urls.keys()
    assert urls["Paper"] == load_yaml("CITATION.cff")["preferred-citation"]["url"]
    assert all(urls[name].startswith(PAGE) for name in urls.keys() - {"Paper"})
    advisory = f"{PAGE}/security/advisories/new"
    assert advisory in read("SECURITY.md").partition("## Reporting a vulnerability")[2]
    assert load_yaml(".github/ISSUE_TEMPLATE/config.yml")["contact_links"][0]["url"] == advisory


def test_hooks_are_what_make_check_runs():
    (local,) = load_yaml(".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"].removeprefix(".venv/bin/").replace(" --fix", "") for hook in local["hooks"]]
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", read("Makefile"), flags=re.MULTILINE)[1]
    checks = [line.strip().removeprefix("$(BIN)/") for line in recipe.splitlines()]
    assert entries == [check.replace(" --check", "").removesuffix(" .") for check in checks]


def test_the_workflow_runs_the_checks():
    workflow = load_yaml(".github/workflows/ci.yml")
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_issue_forms_ask_for_what_is_needed(name):
    form = load_yaml(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_a_pull_request_is_asked_for_targets_that_exist():
    targets = re.findall(r"`make (\w+)`", read(".github/pull_request_template.md"))
    assert len(targets) >= 3
    for target in targets:
        assert re.search(rf"^{target}:", read("Makefile"), flags=re.MULTILINE)


class TestMapOfTheTree:
    def test_it_is_complete_and_has_nothing_else(self):
        inside, outside = tree_map(read("CONTRIBUTING.md"))
        assert inside == children(PACKAGE)
        assert outside == FOLDERS | {"src/fairfrontier/"}
        assert all((ROOT / name).is_dir() for name in outside)

    def test_a_new_module_would_be_missed(self, tmp_path):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "__init__.py").touch()
        (tmp_path / "_other.py").touch()
        (tmp_path / "__pycache__").mkdir()
        assert children(tmp_path) == {"new/", "_other.py"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The sdist of the working tree, unpacked."""
    home = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = home.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(home, filter="data")
    return home / archive.name.removesuffix(".tar.gz")


@pytest.mark.fresh_env
@pytest.mark.slow
class TestSdist:
    def test_it_has_every_file_that_tests_and_commands_read(self, unpacked):
        for folder in (*sorted(FOLDERS), "src", ".ci", ".github"):
            files = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()}
            built = {"__pycache__", "_build", "generated", "auto_examples", "output"}
            wanted = {path for path in files if not built & set(path.parts) and path.suffix != ".pyc"}
            assert wanted <= {path.relative_to(unpacked) for path in (unpacked / folder).rglob("*")}, folder
        for name in ("CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "constraints.txt", "pyproject.toml"):
            assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()
        assert not (unpacked / ".venv").exists()

    def test_its_tests_run_in_it(self, unpacked):
        tests = ["test_layers.py", "test_readme.py", "test_results.py", "test_repository.py"]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-m",
                "not fresh_env",
                *(f"tests/{name}" for name in tests),
            ],
            cwd=unpacked,
            env=os.environ | {"PYTHONPATH": str(unpacked / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert re.search(r"\d\d passed", done.stdout)
