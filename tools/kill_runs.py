"""Kill commands at random moments: nothing finished is lost, nothing half is left, no process lives on.

python -m tools.kill_runs --kills 200 --out results/kill_runs.md
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

# Seconds within which every process of a killed command must be gone.
_GONE = 10.0
COMMANDS = ("audit", "stack", "reproduce")


def table(path: Path) -> None:
    """Write a table of predictions."""
    rng = np.random.default_rng(0)
    sex, y = rng.choice(["f", "m"], 3000), rng.integers(0, 2, 3000)
    scores = {f"m{j}": 0.3 * y + 0.2 * (sex == "m") + 0.5 * rng.random(3000) for j in range(5)}
    pd.DataFrame({"y": y, "sex": sex, **scores}).to_csv(path, index=False)


def arguments(command: str, file: Path, out: Path) -> list[str]:
    """Return the command line."""
    call = [sys.executable, "-m", "fairfrontier.cli", command]
    if command == "reproduce":
        chosen = ["--quick", "--table", "dp", "--tasks", "compas-race", "--methods", "random-forest"]
        return [*call, *chosen, "--splits", "2", "--jobs", "2", "--out", str(out)]
    return [*call, str(file), "--label", "y", "--sensitive", "sex", "--out", str(out), "--force"]


def processes_of(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, _, _, of_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(of_session) == session and state != "Z":
                found.append(int(folder.name))
    return found


def content(out: Path) -> dict[str, bytes]:
    """Return the finished files of a folder: records of cells, or the results of a command."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.name.startswith(".fairfrontier-")
    }


def kill_once(command: str, file: Path, out: Path, delay: float) -> list[str]:
    """Start a command, kill its first process after some seconds, and return what is wrong then."""
    before = content(out) if out.exists() else {}
    with subprocess.Popen(
        arguments(command, file, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    wrong, end = [], time.monotonic() + _GONE
    while (left := processes_of(process.pid)) and time.monotonic() < end:
        time.sleep(0.1)
    if left:
        wrong.append(f"{len(left)} processes alive after {_GONE:g} s")
        for one in left:
            os.kill(one, signal.SIGKILL)
    after = content(out) if out.exists() else {}
    if lost := set(before) - set(after):
        wrong.append(f"lost {sorted(lost)[:3]}")
    for name, found in after.items():
        if name.endswith(".json"):
            try:
                json.loads(found)
            except ValueError:
                wrong.append(f"{name} is half a file")
        if not found:
            wrong.append(f"{name} is empty")
    return wrong


def main() -> int:
    """Run as the command line says; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.kill_runs", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments")
    parser.add_argument("--longest", type=float, default=20.0, help="latest moment of a kill, in seconds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further kill after that long")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    rng, counts, wrong = np.random.default_rng(options.seed), Counter[str](), []
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        table(folder / "rows.csv")
        for index in range(options.kills):
            if time.monotonic() > end:
                break
            command = COMMANDS[index % len(COMMANDS)]
            delay = float(rng.uniform(0.1, options.longest))
            counts[command] += 1
            found = kill_once(command, folder / "rows.csv", folder / command, delay)
            wrong += [f"kill {index} of {command} after {delay:.1f} s: {what}" for what in found]
        # A last run that nobody kills finishes, and clears away what the others left.
        for command in (one for one in COMMANDS[:2] if counts[one]):
            code = subprocess.run(
                arguments(command, folder / "rows.csv", folder / command), capture_output=True
            ).returncode
            left = list((folder / command).rglob(".fairfrontier-*"))
            wrong += [f"{command} at last: code {code}, {len(left)} files left"] if code or left else []
    lines = [
        "# Killed commands",
        "",
        f"{sum(counts.values())} kills at random moments, seed {options.seed}, in the first",
    ]
    lines += [f"{options.longest:g} seconds of `audit`, `stack` and `reproduce --jobs 2`: **{len(wrong)} were wrong**."]
    lines += [
        "Right is: no process alive 10 s later, no finished file lost, none half or empty, and the next run clears"
    ]
    lines += ["away what is left.", "", *(f"- {one}: {count} kills" for one, count in sorted(counts.items()))]
    lines += [*(f"- {what}" for what in wrong), ""]
    page = "\n".join(lines)
    if options.out is None:
        sys.stdout.write(page)
    else:
        options.out.write_text(page, encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
