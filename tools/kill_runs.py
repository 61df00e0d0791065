"""Kill commands at random moments: nothing finished is lost, nothing half is left, no process lives on.

python -m tools.kill_runs --kills 200 --records results/kill_runs.jsonl --out results/kill_runs.md
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Seconds within which every process of a killed command must be gone.
_GONE = 10.0
COMMANDS = ("audit", "stack", "search", "reproduce")
# These go on where they were stopped; once they have finished they begin anew in an empty folder.
_GO_ON = ("search", "reproduce")


def table(path: Path) -> None:
    """Write a table of predictions, which are features for a search."""
    rng = np.random.default_rng(0)
    sex, y = rng.choice(["f", "m"], 3000), rng.integers(0, 2, 3000)
    scores = {f"m{j}": 0.3 * y + 0.2 * (sex == "m") + 0.5 * rng.random(3000) for j in range(5)}
    pd.DataFrame({"y": y, "sex": sex, **scores}).to_csv(path, index=False)


def arguments(command: str, file: Path, out: Path) -> list[str]:
    """Return the command line."""
    call = [sys.executable, "-m", "fairfrontier.cli", command, "--out", str(out)]
    if command == "reproduce":
        chosen = ["--quick", "--table", "dp", "--tasks", "compas-race", "--methods", "random-forest"]
        return [*call, *chosen, "--splits", "2", "--jobs", "2"]
    more = ["--steps", "3", "--jobs", "2"] if command == "search" else ["--force"]
    return [*call, str(file), "--label", "y", "--sensitive", "sex", *more]


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
        if path.is_file() and not any(part.startswith(".fairfrontier-") for part in path.parts)
    }


def kill_once(command: str, file: Path, out: Path, delay: float) -> tuple[bool, list[str]]:
    """Start a command and kill its first process after some seconds; return whether it was, and what is wrong then."""
    before = content(out) if out.exists() else {}
    with subprocess.Popen(
        arguments(command, file, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            killed, wrong = False, [f"code {code}"] if (code := process.wait(timeout=delay)) else []
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            killed, wrong = True, []
    end = time.monotonic() + _GONE
    while (left := processes_of(process.pid)) and time.monotonic() < end:
        time.sleep(0.1)
    if left:
        wrong.append(f"{len(left)} processes alive after {_GONE:g} s")
        for one in left:
            os.kill(one, signal.SIGKILL)
    after = content(out) if out.exists() else {}
    return killed, wrong + faults(before, after)


def faults(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Return which files were lost, are empty, or are half a file."""
    # A search whose summary is written is finished, and clears its steps away.
    done = "summary.json" in after
    lost = {name for name in before.keys() - after.keys() if not (done and name.startswith("steps/"))}
    wrong = [f"lost {sorted(lost)[:3]}"] if lost else []
    for name, found in after.items():
        if name.endswith(".json"):
            try:
                json.loads(found)
            except ValueError:
                wrong.append(f"{name} is half a file")
        if not found:
            wrong.append(f"{name} is empty")
    return wrong


def run(folder: Path, options: argparse.Namespace, kept: list[dict[str, Any]]) -> None:
    """Kill as often as asked, write a record of each kill, and finish each command at last."""
    table(folder / "rows.csv")
    end, index = time.monotonic() + options.seconds, sum(one["seconds"] > 0 for one in kept)
    while index < options.kills and time.monotonic() < end:
        command = COMMANDS[index % len(COMMANDS)]
        delay = float(np.random.default_rng([options.seed, index]).uniform(0.1, options.longest))
        killed = False
        if command == "search" and (folder / command / "summary.json").exists():
            # It had just finished when it was killed, and would refuse to begin again.
            shutil.rmtree(folder / command)
        while not killed:
            killed, wrong = kill_once(command, folder / "rows.csv", folder / command, delay)
            if not killed:  # it had ended before: that is no kill
                delay /= 2.0
                if command in _GO_ON:
                    shutil.rmtree(folder / command, ignore_errors=True)
            if killed or wrong:
                kept.append({"seed": options.seed, "command": command, "seconds": delay, "wrong": wrong})
                write(options.records, kept[-1])
        index += 1
    if index >= options.kills:
        for command in COMMANDS[:index]:
            wrong = finish(command, folder)
            kept += [{"seed": options.seed, "command": command, "seconds": 0.0, "wrong": wrong}] if wrong else []


def finish(command: str, folder: Path) -> list[str]:
    """Run a command that nobody kills: it ends well, clears away what the others left, and has what a first run has."""
    out, fresh = folder / command, folder / f"{command}-fresh"
    codes = [subprocess.run(arguments(command, folder / "rows.csv", one), capture_output=True) for one in (out, fresh)]
    wrong = [f"at last: code {one.returncode}: {one.stderr.decode()[-200:]}" for one in codes if one.returncode]
    left = [str(path.relative_to(out)) for path in out.rglob(".fairfrontier-*")]
    wrong += [f"at last: {left[:3]} left"] if left else []
    if set(content(out)) != set(content(fresh)):
        wrong.append(f"at last: other files than a first run, {sorted(set(content(out)) ^ set(content(fresh)))[:5]}")
    return wrong + faults({}, content(out))


def write(records: Path | None, one: dict[str, Any]) -> None:
    """Keep what came of a kill."""
    if records is not None:
        with records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")


def page(kept: list[dict[str, Any]], seed: int, wanted: int) -> str:
    """Return the results as Markdown."""
    wrong = [f"{one['command']} after {one['seconds']:.1f} s: {what}" for one in kept for what in one["wrong"]]
    kills = [one for one in kept if one["seconds"]]
    longest = max((one["seconds"] for one in kills), default=0.0)
    counts = Counter(one["command"] for one in kills)
    lines = [
        "# Killed commands",
        "",
        f"{len(kills)} kills at random moments of the first {longest:.0f} seconds (seed {seed}) of `audit`, `stack`,",
        f"`search` and `reproduce --jobs 2`: **{len(wrong)} were wrong**.",
        "Right is: no process alive 10 s later, no finished file lost, none half or empty.",
        "After them a run that nobody killed ended well, cleared away what was left, and had the files of a new run."
        if len(kills) >= wanted
        else f"The other {wanted - len(kills)} of {wanted}, and the runs that nobody kills after them, are to be made.",
        "",
        *(f"- {command}: {count} kills" for command, count in sorted(counts.items())),
        *(f"- {what}" for what in wrong),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run as the command line says; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.kill_runs", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments")
    parser.add_argument("--longest", type=float, default=15.0, help="latest moment of a kill, in seconds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further kill after that long")
    parser.add_argument("--folder", type=Path, help="where to run, if the kills are made in several parts")
    parser.add_argument("--records", type=Path, help="keep each kill here, and do not repeat it")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    known = options.records.read_text(encoding="utf-8") if options.records and options.records.exists() else ""
    kept = [one for one in map(json.loads, known.splitlines()) if one["seed"] == options.seed]
    with tempfile.TemporaryDirectory() as text:
        if options.folder is not None:
            options.folder.mkdir(exist_ok=True)
        run(options.folder or Path(text), options, kept)
    if options.out is None:
        sys.stdout.write(page(kept, options.seed, options.kills))
    else:
        options.out.write_text(page(kept, options.seed, options.kills), encoding="utf-8")
    return int(any(one["wrong"] for one in kept))


if __name__ == "__main__":
    sys.exit(main())
