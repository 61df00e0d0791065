"""Whole runs of the benchmark: killed and resumed, in several processes, from the command line."""

import contextlib
import csv
import io
import multiprocessing
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fairfrontier import cli
from fairfrontier.benchmark import Listener, Reproduction, read_collection, reproduce
from fairfrontier.exceptions import InvalidInputError

METHODS = ("random-forest", "mp-paper", "rf-paper", "zoo-paper", "mp-ours", "rf-ours", "zoo-ours")
WHAT = {"tables": ("dp", "eo"), "tasks": ("compas-gender",), "methods": METHODS, "splits": (0,), "settings": "tiny"}
SCRIPT = f"""
import sys
from pathlib import Path
from fairfrontier.benchmark import Reproduction, reproduce
reproduce(Reproduction(Path(sys.argv[1]), **{WHAT!r}))
"""


def small(out, **changes):
    return Reproduction(out, **{"tables": ("dp",), "splits": (0,), "settings": "tiny"} | changes)


def cells_on_disk(out):
    return {path: path.stat().st_mtime_ns for path in (out / ".cache" / "cells").rglob("*.json")}


def start(out):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)])


def test_a_killed_run_loses_no_finished_cell_and_ends_in_the_same_tables(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with start(killed) as process:
        deadline = time.monotonic() + 120
        while len(cells_on_disk(killed)) < 3 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    finished = cells_on_disk(killed)
    assert 3 <= len(finished) < 2 * len(METHODS)
    assert not (killed / "tables").exists()
    # What a kill in the middle of a write leaves behind does not disturb.
    (next(iter(finished)).parent / "half.tmp").write_text('{"table": "dp", "ta')
    for out in (killed, whole):
        reproduce(Reproduction(out, **WHAT))
    after = cells_on_disk(killed)
    assert len(after) == 2 * len(METHODS)
    assert {path: after[path] for path in finished} == finished
    for name in ("dp.md", "eo.md", "dp.tex", "eo.tex"):
        assert (killed / "tables" / name).read_text() == (whole / "tables" / name).read_text()


def test_several_processes_give_the_same_figures_and_tell_of_every_record(tmp_path):
    told = {1: [], 2: []}
    for jobs, seen in told.items():
        request = small(
            tmp_path / str(jobs),
            tasks=("compas-gender", "communities-race"),
            methods=("random-forest", "mp-ours", "oxonfair"),
            jobs=jobs,
        )
        reproduce(request, Listener(seen.append))
    figures = [{record.cell: (record.status, record.fauc) for record in seen} for seen in told.values()]
    assert len(figures[0]) == len(told[2]) == 6
    assert figures[0] == figures[1]


def test_a_run_can_go_on_from_the_collection_alone(tmp_path):
    first = small(tmp_path / "first", tasks=("compas-race",), methods=("random-forest", "mp-paper"))
    reproduce(first)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "records.jsonl.gz").write_bytes((first.out / "records.jsonl.gz").read_bytes())
    seen = []
    more = small(copy, tasks=("compas-race",), methods=("random-forest", "mp-paper", "mp-ours"))
    files = reproduce(more, Listener(seen.append))
    assert [record.method for record in seen] == ["mp-ours"]
    assert len(list(read_collection(copy / "records.jsonl.gz"))) == 3
    assert {path.relative_to(copy).as_posix() for path in files} == {
        "records.jsonl.gz",
        "run.md",
        "tables/delivered.md",
        *(f"tables/dp.{suffix}" for suffix in ("md", "csv", "tex")),
        *(f"figures/taf_dp.{suffix}" for suffix in ("png", "pdf")),
    }
    assert all(path.stat().st_size > 300 for path in files)


def test_results_of_other_settings_are_never_replaced(tmp_path, capsys):
    request = small(tmp_path, tasks=("compas-race",), methods=("random-forest",))
    reproduce(replace(request, splits=(0, 1)))
    assert "# Demographic parity (the paper's Table 1), attribute in X\n\nSettings: tiny, 2 splits.\n\n| Method |" in (
        (tmp_path / "tables" / "dp.md").read_text()
    )
    assert "\n- Settings: tiny, 2 splits.\n" in (tmp_path / "run.md").read_text()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInputError, match="choose another folder"):
        reproduce(replace(request, settings="quick"))
    assert cli.main(["reproduce", "--out", str(tmp_path), "--quick"]) == 2
    shown = capsys.readouterr()
    assert "out must be a folder without results of other settings" in shown.err
    assert "has those of tiny, and this run is quick" in shown.err
    assert shown.out == ""
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_command_runs_reports_and_resumes(tmp_path, capsys):
    arguments = ["reproduce", "--out", str(tmp_path), "--quick", "--splits", "1", "--table", "dp,multi"]
    arguments += [
        "--tasks",
        "compas-race",
        "--methods",
        "random-forest,none",
        "--track",
        "in-x",
        "--cache",
        str(tmp_path / "kept"),
    ]
    assert cli.main(arguments) == 0
    first = capsys.readouterr().out
    assert "2 cells, 2 to do" in first
    assert "dp in-x compas-race split 0 random-forest: FAUC 0." in first
    assert "Random Forest" in first
    assert "tables/dp.md" in first
    assert list((tmp_path / "kept" / "predictions").rglob("forest.npz"))
    assert cli.main(arguments) == 0
    assert "2 cells, 0 to do" in capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "tables" / "dp.csv").read_text())))
    assert [(row["method"], row["splits"], row["paper_fauc"]) for row in rows] == [("random-forest", "1", "0.524")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "adult"], "tasks must be one of"),
        (["--methods", "sink"], "methods must be one of"),
        (["--table", "main"], "tables must be one of"),
        (["--splits", "0"], "--splits must be at least 1"),
        (["--jobs", "0"], "jobs must be"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_two(tmp_path, capsys, arguments, message):
    assert cli.main(["reproduce", "--out", str(tmp_path / "out"), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_as_output_folder_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["reproduce", "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a folder" in capsys.readouterr().err


def test_on_a_terminal_the_table_fills_in(tmp_path):
    code = "import sys; from fairfrontier.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["reproduce", "--out", str(tmp_path), "--quick", "--splits", "1", "--table", "dp"]
    arguments += ["--tasks", "compas-race", "--methods", "mp-paper", "--track", "in-x"]
    parent, child = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    shown = []
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=child, stderr=child, env=environment) as run:
        os.close(child)
        # Linux says with an error that the other end of a pseudo-terminal is closed.
        with contextlib.suppress(OSError):
            while chunk := os.read(parent, 65536):
                shown.append(chunk)
        os.close(parent)
    assert run.returncode == 0
    text = b"".join(shown).decode()
    assert "FAUC so far" in text
    assert "1/1" in text
    assert "COMPAS race" in text
    assert "Growing" not in text  # the learners' own bars


def test_interrupting_writes_what_is_finished(tmp_path):
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 2:
            raise KeyboardInterrupt

    request = small(Path(tmp_path), tasks=("compas-race",), methods=METHODS)
    with pytest.raises(KeyboardInterrupt):
        reproduce(request, Listener(stop))
    assert len(list(read_collection(tmp_path / "records.jsonl.gz"))) == 2
    assert "FS MP Trees (paper)" in (tmp_path / "tables" / "dp.md").read_text()


def test_interrupting_several_processes_stops_them_after_the_cell_at_hand(tmp_path):
    finished = []

    def stop(record):
        finished.append(len(cells_on_disk(tmp_path)))
        raise KeyboardInterrupt

    request = small(tmp_path, tables=("dp", "eo"), tasks=("compas-race", "compas-gender"), methods=METHODS, jobs=2)
    request = replace(request, splits=tuple(range(6)))
    with pytest.raises(KeyboardInterrupt):
        reproduce(request, Listener(stop))
    # Each process may finish one cell before and one after it is told.
    assert finished[0] <= len(cells_on_disk(tmp_path)) <= finished[0] + 2 * request.jobs < len(request.cells())


def test_ctrl_c_in_a_terminal_ends_several_processes_without_a_traceback(tmp_path):
    code = SCRIPT.replace("(0,)", "tuple(range(6))").replace("**what", "jobs=2, **what")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 120
        # Cells of two splits: both processes have started.
        while len({path.parent for path in cells_on_disk(tmp_path)}) < 2 and time.monotonic() < deadline:
            time.sleep(0.002)
        finished = len(cells_on_disk(tmp_path))
        os.killpg(process.pid, signal.SIGINT)
        error = process.stderr.read().decode()
    assert finished <= len(cells_on_disk(tmp_path)) <= finished + 4 < 6 * 2 * len(METHODS)
    assert len(list(read_collection(tmp_path / "records.jsonl.gz"))) == len(cells_on_disk(tmp_path))
    assert error.count("Traceback") == 1  # of the script itself, which does not catch the interruption
    assert error.strip().endswith("KeyboardInterrupt")


def test_a_killed_worker_is_one_line_that_says_what_to_do(tmp_path, capsys):
    def kill_one():
        while len(workers := multiprocessing.active_children()) < 2:
            time.sleep(0.1)
        workers[0].kill()

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    arguments = ["reproduce", "--out", str(tmp_path), "--quick", "--table", "dp", "--track", "in-x", "--jobs", "2"]
    assert cli.main([*arguments, "--tasks", "compas-race", "--methods", "random-forest"]) == 2
    killer.join()
    error = capsys.readouterr().err
    assert "a worker process was ended" in error
    assert "use fewer jobs and start again" in error
    assert error.count("\n") == 1
