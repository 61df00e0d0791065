"""Read damaged files, and count what comes of them."""

import contextlib
import io
import resource
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tools.fuzz_files.damage import NAMES, damages, sound_files

import fairfrontier as ff
from fairfrontier.cli import main

# What a file may take.
SECONDS, BYTES = 2.0, 2**30


def read(name: str, path: Path, out: Path, chunked: bool) -> tuple[int, str]:
    """Read a file as its name says; return 0 or 2 as the command line does, and what it said."""
    if name == "skops":
        try:
            ff.load(path)
        except ff.exceptions.FairFrontierError as error:
            return 2, str(error)
        return 0, ""
    options = ["--label", "y", "--sensitive", "sex", "--no-stack", "--out", str(out), "--force"]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(["audit", str(path), *options, *(["--chunk-rows", "30"] if chunked else [])])
    return code, said.getvalue()


def run_part(seed: int, first: int, last: int) -> dict[str, Any]:
    """Return the counts of the files from `first` to `last`; what breaks a rule is named."""
    counts, faults, slowest = Counter[str](), [], 0.0
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text)
        sound = sound_files(folder)
        for index in range(first, last):
            rng = np.random.default_rng([seed, index])
            name = NAMES[int(rng.integers(len(NAMES)))][1]
            ways = damages(name)
            content = sound[name]
            for _ in range(int(rng.integers(1, 3))):
                content = ways[int(rng.integers(len(ways)))](content, rng) or b" "
            path = folder / f"damaged.{name}"
            path.write_bytes(content)
            start = time.process_time()
            try:
                code, said = read(name, path, folder / "out", bool(rng.random() < 0.3))
            except BaseException as error:  # also what would end the process
                faults.append([index, f"{name}: {type(error).__name__}: {error}"[:300]])
                continue
            seconds = time.process_time() - start
            slowest = max(slowest, seconds)
            lines = len([line for line in said.splitlines() if "Warning" not in line])
            counts[f"{name}: {'read' if code == 0 else 'refused in one line'}"] += 1
            if code not in (0, 2) or (code == 2 and name != "skops" and lines != 1) or seconds > SECONDS:
                faults.append([index, f"{name}: code {code}, {lines} lines, {seconds:.1f} s: {said}"[:300]])
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if largest > BYTES:
        faults.append([first, f"{largest / 2**20:.0f} MB in the files {first} to {last - 1}"])
    found = {"counts": counts, "faults": faults, "slowest": slowest, "bytes": largest}
    return {"seed": seed, "first": first, "n": last - first, **found}
