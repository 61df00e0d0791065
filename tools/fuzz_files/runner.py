"""Read damaged files in forks of a process that has imported everything, and count what comes of them."""

import contextlib
import io
import json
import os
import signal
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tools.fuzz_files.damage import NAMES, bomb, damages, sound_files

import fairfrontier as ff
from fairfrontier.cli import main

# What a file may take; the library's own imports are in these bytes.
SECONDS, BYTES = 2.0, 2**30
# After so many seconds a file that is still being read is given up: it waits for something that never comes.
_PATIENCE = 60


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


class Reader:
    """A process that has imported everything and has the sound files; it forks to read damaged ones."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        warnings.simplefilter("ignore")
        self.sound = sound_files(folder)
        bomb()
        for stem, name in NAMES:  # what is imported on the way is imported for all
            if read(name, folder / f"{stem}.{name}", folder / "out", []) != (0, ""):
                raise RuntimeError(f"the sound {name} file must be read without a word")

    def part(self, first: int, last: int) -> dict[str, Any]:
        """Return the counts of the files from `first` to `last`; what breaks a rule is named."""
        found, used, status = self._forked(first, last)
        if status:  # one of them ended the process: find out which
            alone = [(index, *self._forked(index, index + 1)) for index in range(first, last)]
            found = [one for _, ones, _, _ in alone for one in ones]
            dead = [[index, f"its reader ended with {ended}"] for index, _, _, ended in alone if ended]
            used = max(one for _, _, one, _ in alone)
        else:
            dead = []
        faults = dead + [[one["index"], one["fault"]] for one in found if one["fault"]]
        if used > BYTES:
            faults.append([first, f"{used / 2**20:.0f} MB in the files {first} to {last - 1}"])
        counts = Counter(one["kind"] for one in found if not one["fault"])
        slowest = max((one["seconds"] for one in found), default=0.0)
        part = {"counts": counts, "faults": faults, "slowest": slowest, "bytes": used}
        return {"seed": self.seed, "first": first, "n": last - first, **part}

    def _forked(self, first: int, last: int) -> tuple[list[dict[str, Any]], int, int]:
        """Read files in a fork; return what came of each, the most bytes in use, and how the fork ended."""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                answer.write_text(json.dumps([self._one(index) for index in range(first, last)]), encoding="utf-8")
                code = 0
            finally:
                os._exit(code)
        _, status, used = os.wait4(child, 0)
        found = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() and not status else []
        return found, used.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)

    def _one(self, index: int) -> dict[str, Any]:
        """Read one damaged file."""
        rng = np.random.default_rng([self.seed, index])
        name, content = damaged(self.sound, rng)
        path = self.folder / f"damaged.{name}"
        path.write_bytes(content)
        signal.alarm(_PATIENCE)  # ends the process, whatever it waits for
        start = time.process_time()
        try:
            code, said = read(name, path, self.folder / "out", chosen_options(rng))
        except BaseException as error:  # also what would end the process
            code, said = 70, f"{type(error).__name__}: {error}"
        seconds = time.process_time() - start
        signal.alarm(0)
        lines = len([line for line in said.splitlines() if "Warning" not in line])
        fault = ""
        if code not in (0, 2) or (code == 2 and name != "skops" and lines != 1) or seconds > SECONDS:
            fault = f"{name}: code {code}, {lines} lines, {seconds:.1f} s: {said}"[:300]
        kind = f"{name}: {'read' if code == 0 else 'refused in one line'}"
        return {"index": index, "kind": kind, "seconds": seconds, "fault": fault}
