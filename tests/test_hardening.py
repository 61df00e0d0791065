"""Crashes, hangs and leaks: each case was one."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fairfrontier as ff
from fairfrontier._cli.output import writing
from fairfrontier._writing import remove_abandoned, scratch_prefix
from fairfrontier.chunks import array_chunks
from fairfrontier.exceptions import ClusterError, InvalidInputError

# A process starts two workers as `reproduce --jobs 2` does, tells their numbers and waits.
PARENT = """
import multiprocessing, ctypes, os, time
from concurrent.futures import ProcessPoolExecutor
from fairfrontier._processes import prepare
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(2, context, initializer=prepare, initargs=(context.RawValue(ctypes.c_bool, False),))
    jobs = [pool.submit(time.sleep, 600) for _ in range(2)]
    while not all(job.running() for job in jobs):
        time.sleep(0.05)
    pool.submit(os.getpid)
    print(*pool._processes, flush=True)
    time.sleep(600)
"""


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert len(workers) == 2
        assert all(alive(worker) for worker in workers)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(worker) for worker in workers)


def test_workers_know_of_their_parents_end_before_they_import_anything():
    code = "import sys, fairfrontier._processes; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(os.name != "posix", reason="asks for processes")
def test_files_of_killed_runs_are_removed_and_those_of_others_kept(tmp_path):
    mine, theirs = scratch_prefix(), scratch_prefix().replace(str(os.getpid()), str(dead_process()))
    (tmp_path / "inside").mkdir()
    left = [tmp_path / f"{theirs}a", tmp_path / "inside" / f"{theirs}b.tmp"]
    (tmp_path / f"{theirs}folder").mkdir()
    (tmp_path / f"{theirs}folder" / "file").write_text("")
    kept = [tmp_path / f"{mine}a", tmp_path / ".fairfrontier-elsewhere-1-a", tmp_path / "results.csv"]
    for path in (*left, *kept):
        path.write_text("")
    remove_abandoned(tmp_path)
    assert left[1].exists()
    remove_abandoned(tmp_path, everywhere=True)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)
    remove_abandoned(tmp_path / "absent")


class TestTwoRunsIntoOneFolder:
    def test_the_first_to_finish_has_it(self, tmp_path):
        out = tmp_path / "new"

        def both():
            with writing(out, force=False) as first:
                (first / "points.csv").write_text("late")
                with writing(out, force=False) as second:
                    (second / "points.csv").write_text("early")

        with pytest.raises(InvalidInputError, match="from another run"):
            both()
        assert [path.name for path in out.iterdir()] == ["points.csv"]
        assert (out / "points.csv").read_text() == "early"

    def test_force_replaces(self, tmp_path):
        for text in ("old", "new"):
            with writing(tmp_path, force=True) as scratch:
                (scratch / "points.csv").write_text(text)
        assert (tmp_path / "points.csv").read_text() == "new"


def rows(n=200):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, n), rng.random((n, 3)), rng.integers(0, 2, n)


class TestFiles:
    def mixture(self):
        return ff.RandomizedMixture(
            [("no", None), ("yes", None)], [0.3, 0.7], secret=b"s" * 32, constants={"no": 0, "yes": 1}
        )

    @pytest.mark.parametrize("wrapped", [lambda one: one, lambda one: [one], lambda one: {"of": {"deep": (one,)}}])
    def test_a_secret_is_private_wherever_it_is(self, wrapped, tmp_path):
        assert ff.save(wrapped(self.mixture()), tmp_path / "m.skops").stat().st_mode & 0o077 == 0

    def test_a_weight_without_a_name_is_refused_at_once(self, tmp_path):
        y, H, group = rows()
        model = ff.FairStacksClassifier(alpha=1.0, weight=lambda f: f).fit(H, y, sensitive_features=group)
        with pytest.raises(InvalidInputError, match=r"types that load trusts; got .*<lambda>"):
            ff.save(model, tmp_path / "m.skops")
        assert not list(tmp_path.iterdir())

    def edited(self, path, name, edit):
        with zipfile.ZipFile(path) as old:
            entries = {one: old.read(one) for one in old.namelist()}
        entries[name] = json.dumps(edit(json.loads(entries[name]))).encode()
        with zipfile.ZipFile(path, "w") as new:
            for one, content in entries.items():
                new.writestr(one, content)
        return path

    @pytest.mark.parametrize("version", ["99.0", "0.99.1"])
    def test_a_file_of_a_later_version_is_refused(self, version, tmp_path):
        path = ff.save(ff.StepWeight(0.8), tmp_path / "m.skops")
        assert ff.load(path) == ff.StepWeight(0.8)
        self.edited(path, "fairfrontier.json", lambda about: about | {"version": version})
        with pytest.raises(InvalidInputError, match=f"written by fairfrontier {version}, and this is"):
            ff.load(path)

    def test_a_file_without_a_sensible_version_is_refused(self, tmp_path):
        path = self.edited(ff.save([1], tmp_path / "m.skops"), "fairfrontier.json", lambda about: {})
        with pytest.raises(InvalidInputError, match="cannot be read as one"):
            ff.load(path)

    def test_compressed_bytes_that_are_damaged(self, tmp_path):
        path = ff.save([1], tmp_path / "m.skops")
        with zipfile.ZipFile(path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in entries.items():
                archive.writestr(name, content)
            entry = archive.getinfo("schema.json")
        content = bytearray(path.read_bytes())
        at = entry.header_offset + 30 + len(entry.filename)
        content[at : at + 10] = b"\xff" * 10
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match="cannot be read as one"):
            ff.load(path)

    def test_deep_nesting_is_refused_before_anything_is_built(self, tmp_path):
        def deep(schema):
            for _ in range(310):
                schema = {"content": schema}
            return schema

        path = self.edited(ff.save([1], tmp_path / "m.skops"), "schema.json", deep)
        with pytest.raises(InvalidInputError, match="nested more than 300 deep"):
            ff.load(path)


class TestCluster:
    def collections(self, n=400):
        da = pytest.importorskip("dask.array")
        y, H, group = rows(n)
        return [da.from_array(value, chunks=(100, *value.shape[1:])) for value in (y, H, group)]

    @pytest.fixture
    def cluster(self):
        dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
        with (
            dask.config.set({"fairfrontier.workers-timeout": 0.5}),
            distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
            distributed.Client(cluster),
        ):
            yield cluster

    def test_without_workers_it_is_one_error_that_says_what_to_do(self, cluster):
        y, H, group = self.collections()
        with pytest.raises(ClusterError, match=r"no worker for 0\.5 seconds.*connect a Client.*scheduler='threads'"):
            ff.tradeoff_points(y, H, sensitive_features=group)

    def test_a_cluster_that_is_closed_meanwhile(self, cluster):
        import dask

        y, H, group = self.collections()
        with dask.config.set({"fairfrontier.workers-timeout": 30}):
            closing = threading.Timer(0.3, cluster.close)
            closing.start()
            with pytest.raises(ClusterError, match="cannot finish the work"):
                ff.tradeoff_points(y, H, sensitive_features=group)
            closing.join()


class TestCryptic:
    @pytest.mark.parametrize("options", [{}, {"alpha": 1.0}, {"alpha": 1.0, "loss": "log", "n_points": 2}])
    @pytest.mark.parametrize("factor", [1e160, 1e300, 1e-160])
    def test_scores_whose_squares_are_no_numbers(self, factor, options):
        y, H, group = rows()
        with pytest.raises(InvalidInputError, match=r"X must .* squares .*: (divide it|multiply X) by a common number"):
            ff.FairStacksClassifier(**options).fit(H * factor, y, sensitive_features=group)

    def test_models_that_are_constant_are_no_such_case(self):
        y, H, group = rows()
        H[:, 0], H[:, 1] = 0.0, 0.3
        assert np.isfinite(ff.FairStacksClassifier().fit(H, y, sensitive_features=group).weights_).all()

    def test_rows_without_weight_are_no_such_case(self):
        y, H, group = rows()
        weight = np.zeros(200)
        weight[:60] = 1.0
        chunks = array_chunks(y, H, sensitive_features=group, sample_weight=weight, chunk_rows=59)
        model = ff.FairStacksClassifier(alpha=1.0).fit_chunks(chunks)
        again = ff.FairStacksClassifier(alpha=1.0).fit(H[:60], y[:60], sensitive_features=group[:60])
        np.testing.assert_allclose(model.weights_, again.weights_)

    @pytest.mark.parametrize("chunk_rows", [70.7, 0, "many"])
    def test_parts_of_rows_are_not_cut_off(self, chunk_rows):
        y, H, group = rows()
        with pytest.raises(InvalidInputError, match="chunk_rows must be"):
            array_chunks(y, H, sensitive_features=group, chunk_rows=chunk_rows)

    def test_parts_of_batches_are_not_cut_off(self):
        y, H, group = rows()
        model = ff.learners.AdversarialDebiasing(batch_size=32.5)
        with pytest.raises(InvalidInputError, match="batch_size must be a whole number"):
            model.fit(H, y, sensitive_features=group)


def test_every_promise_names_a_test_that_exists():
    project = Path(__file__).parents[1]
    page = (project / "docs" / "promises.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/\w+\.py)::(?:\w+::)?(\w+)`", page)
    assert len(named) > 20
    for file, name in named:
        assert f"def {name}(" in (project / file).read_text(encoding="utf-8"), (file, name)
    for line in page.splitlines():
        if line.startswith("| ") and not line.startswith("| promise"):
            assert "`tests/" in line, line


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_a_killed_command_leaves_nothing():
    """One of the kills that ``tools/kill_runs.py`` makes by the hundred."""
    command = [sys.executable, "-m", "tools.kill_runs", "--kills", "1", "--longest", "1.5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "**0 were wrong**" in done.stdout
    assert "- audit: 1 kills" in done.stdout
