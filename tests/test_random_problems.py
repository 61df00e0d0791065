"""A small run of the random problems, of which ``results/random_problems.md`` has the large one."""

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def run(*options):
    command = [sys.executable, "-m", "tools.random_problems", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)


def test_two_hundred_problems(tmp_path):
    page = tmp_path / "page.md"
    done = run("--problems", "200", "--seed", "1", "--out", str(page))
    assert done.returncode == 0, page.read_text(encoding="utf-8") if page.exists() else done.stderr
    text = page.read_text(encoding="utf-8")
    assert "**0 crashes, 0 mismatches**" in text
    counts = {
        check: int(n.replace(",", "")) for check, n in re.findall(r"^\| (.+?) \| ([\d,]+) \|", text, re.MULTILINE)
    }
    assert counts["refused where undefined"] == 200
    for check in ("TAF = Definition 2", "signed hull = all pairs", "path = dense solve (with a ridge)"):
        assert counts[check] > 20
    assert counts["decision path = counting (rates)"] > 200


def test_the_committed_run_found_nothing():
    text = (PROJECT / "results" / "random_problems.md").read_text(encoding="utf-8")
    assert "100,000 problems" in text
    assert "**0 crashes, 0 mismatches**" in text
