"""A small run of the random problems, of which ``results/random_problems.md`` has the large one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT))

from tools.random_problems import dresses  # noqa: E402
from tools.random_problems.tally import Tally  # noqa: E402


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


@pytest.mark.filterwarnings("error")
@settings(max_examples=25, deadline=None)
@example(seed=2026, tenth=316, stacked=True)  # the unconstrained stack has no bias: names of groups decided where to go
@example(seed=2026, tenth=439, stacked=True)  # half of the labels of a fold are 1: the mean is the threshold
@example(seed=2027, tenth=2310, stacked=True)  # one model and three groups: rounding chose the way to fair decisions
@example(seed=2060, tenth=1755, stacked=True)  # half a row: rounding decided whether a promise could be made
@example(seed=2060, tenth=4585, stacked=True)  # places of equal accuracy: the last digit chose among them
@example(seed=2060, tenth=5655, stacked=True)  # tests begin at the fairest place, and two were as fair
@example(seed=2060, tenth=7257, stacked=True)  # bonuses that move nothing grew until the path was one point
@example(seed=2060, tenth=8095, stacked=True)  # two groups are alike out of fold, and differ in the stack of all rows
@example(seed=2060, tenth=9830, stacked=True)  # smoothed rates left [0, 1], and had no error
@given(seed=st.integers(0, 2**31), tenth=st.integers(0, 10**6), stacked=st.booleans())
def test_a_problem_is_the_same_in_every_dress(seed, tenth, stacked):
    """In memory, in chunks, from Dask, permuted, renamed and rescaled: one answer, that of the reference."""
    tally = Tally()
    dresses.check(seed, 10 * tenth + (0 if stacked else 1), tally)
    assert {check: line.largest for check, line in tally.lines.items() if line.mismatches} == {}


def test_a_run_goes_on_where_it_stopped(tmp_path):
    records = tmp_path / "records.jsonl"
    for problems in ("50", "100"):
        done = run("--problems", problems, "--part", "50", "--records", str(records))
        assert done.returncode == 0, done.stderr
        assert f"{problems} problems" in done.stdout
    assert len(records.read_text().splitlines()) == 2
    before = records.read_bytes()
    records.write_bytes(before + b'{"seed": 0, "first": 100, "li')
    rest = run("--problems", "100", "--part", "50", "--records", str(records), "--seconds", "0")
    assert rest.stdout == done.stdout


def test_the_committed_run_found_nothing():
    text = (PROJECT / "results" / "random_problems.md").read_text(encoding="utf-8")
    assert "100,000 problems" in text
    assert "**0 crashes, 0 mismatches**" in text
