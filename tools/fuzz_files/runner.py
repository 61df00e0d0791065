"""Read damaged files, each in a fork of a process that has imported everything, and count what comes of them."""

import contextlib
import io
import json
import os
import signal
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tools.fuzz_files.damage import NAMES, damages, sound_files

import fairfrontier as ff
from fairfrontier.cli import main

# What a file may take; the library's own imports are in these bytes.
SECONDS, BYTES = 2.0, 2**30
# After so many seconds a file that is still being read is given up: it waits for something that never comes.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Outcome:
    """What came of a file: an exit code (negative: the signal that ended its reader), words, CPU seconds and bytes."""

    code: int
    said: str
    seconds: float
    bytes: int


def read(name: str, path: Path, out: Path, options: list[str]) -> tuple[int, str]:
    """Read a file as its name says; return 0 or 2 as the command line does, and what it said."""
    if name == "skops":
        try:
            ff.load(path)
        except ff.exceptions.FairFrontierError as error:
            return 2, str(error)
        return 0, ""
    said = io.StringIO()
    columns = ["--label", "y", "--sensitive", "sex", "--no-stack", "--out", str(out), "--force"]
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(["audit", str(path), *columns, *options])
    return code, said.getvalue()


def read_in_fork(name: str, path: Path, out: Path, options: list[str]) -> Outcome:
    """Read a file in a process of its own, whose memory and time are those of this file."""
    answer = path.with_name("answer.json")
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code, said = read(name, path, out, options)
            answer.write_text(json.dumps(said), encoding="utf-8")
        except BaseException as error:  # also what would end the process
            answer.write_text(json.dumps(f"{type(error).__name__}: {error}"), encoding="utf-8")
            code = 70
        finally:
            os._exit(code)
    end = time.monotonic() + _PATIENCE
    while not (waited := os.wait4(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    _, status, used = waited
    said = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else "nothing"
    return Outcome(os.waitstatus_to_exitcode(status), said, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def chosen_options(rng: np.random.Generator) -> list[str]:
    """Return options that lead further into a table: its rows in chunks, without incomplete ones, its models named."""
    chunks = ["--chunk-rows", "30"] if rng.random() < 0.3 else []
    missing = ["--missing", "drop"] if rng.random() < 0.4 else []
    return [*chunks, *missing, *(["--scores", "a,b"] if rng.random() < 0.3 else [])]


def damaged(sound: dict[str, bytes], rng: np.random.Generator) -> tuple[str, bytes]:
    """Return the kind of a file and its damaged content."""
    name = NAMES[int(rng.integers(len(NAMES)))][1]
    ways, content = damages(name), sound[name]
    for _ in range(int(rng.integers(1, 3))):
        content = ways[int(rng.integers(len(ways)))](content, rng) or b" "
    return name, content


def fault_of(name: str, found: Outcome) -> str:
    """Return which rule a file broke, or nothing."""
    lines = len([line for line in found.said.splitlines() if "Warning" not in line])
    wordy = found.code == 2 and name != "skops" and lines != 1
    if found.code in (0, 2) and not wordy and found.seconds <= SECONDS and found.bytes <= BYTES:
        return ""
    used = f"{found.seconds:.1f} s, {found.bytes / 2**20:.0f} MB"
    return f"{name}: code {found.code}, {lines} lines, {used}: {found.said}"[:300]


def run_part(seed: int, first: int, last: int) -> dict[str, Any]:
    """Return the counts of the files from `first` to `last`; what breaks a rule is named."""
    counts, faults, slowest, largest = Counter[str](), [], 0.0, 0
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text)
        sound = sound_files(folder)
        for stem, name in NAMES:  # what is imported on the way is imported for all
            if read(name, folder / f"{stem}.{name}", folder / "out", []) != (0, ""):
                raise RuntimeError(f"the sound {name} file must be read without a word")
        for index in range(first, last):
            rng = np.random.default_rng([seed, index])
            name, content = damaged(sound, rng)
            path = folder / f"damaged.{name}"
            path.write_bytes(content)
            found = read_in_fork(name, path, folder / "out", chosen_options(rng))
            slowest, largest = max(slowest, found.seconds), max(largest, found.bytes)
            if fault := fault_of(name, found):
                faults.append([index, fault])
            else:
                counts[f"{name}: {'read' if found.code == 0 else 'refused in one line'}"] += 1
    found_all = {"counts": counts, "faults": faults, "slowest": slowest, "bytes": largest}
    return {"seed": seed, "first": first, "n": last - first, **found_all}
