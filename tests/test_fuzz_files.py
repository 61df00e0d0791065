"""A small run of damaged files, of which ``results/fuzz_files.md`` has the large one."""

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def test_each_damaged_file_is_an_answer_or_one_line(tmp_path):
    command = [sys.executable, "-m", "tools.fuzz_files", "--files", "60", "--seed", "3"]
    records = ["--records", str(tmp_path / "records.jsonl")]
    done = subprocess.run([*command, *records], capture_output=True, text=True, cwd=PROJECT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "**0 broke a rule**" in done.stdout
    counted = [int(n) for n in re.findall(r"^- (?:csv|parquet|xlsx|skops): .*: (\d+)$", done.stdout, re.MULTILINE)]
    assert sum(counted) == 60
    again = subprocess.run([*command, *records], capture_output=True, text=True, cwd=PROJECT, check=False)
    assert again.stdout == done.stdout


def test_the_committed_run_found_nothing():
    text = (PROJECT / "results" / "fuzz_files.md").read_text(encoding="utf-8")
    assert "**0 broke a rule**" in text
