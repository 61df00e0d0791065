"""The benchmark's cells: splits, base learners, methods and records."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from fairfrontier.benchmark import TASKS, Cell, Listener, Record, RecordStore, Reproduction, read_collection, reproduce
from fairfrontier.benchmark._families import (
    TINY,
    FamilyPredictions,
    SplitData,
    family_key,
    read_predictions,
    write_predictions,
)
from fairfrontier.benchmark._methods import METHODS
from fairfrontier.benchmark._run import plan_cells, run_cell, unfinished
from fairfrontier.benchmark._tasks import DATASETS, load_problem, seed_of, split_rows
from fairfrontier.exceptions import DataFileError, InvalidInputError

from . import reference

FIGURES = ("fauc", "fauci", "fauc_signed", "fauc_honest", "max_accuracy", "accuracy_95", "accuracy_99")

EO_METHODS = ("fagtb", "oxonfair", "threshold-optimizer", "sink-ours", "sink-aware")


@pytest.fixture(scope="module")
def split():
    """One small split of COMPAS whose base learners all tests share."""
    return SplitData("compas", 0, TINY)


@pytest.fixture(scope="module")
def records(split):
    """Every method of the tables 'dp' and 'multi' on COMPAS race, and one of each kind of the table 'eo'."""
    cells = plan_cells(("dp", "multi"), (0,), tasks=("compas-race",))
    cells += plan_cells(("eo",), (0,), tasks=("compas-race",), methods=EO_METHODS)
    return {(cell.table, cell.method): run_cell(cell, split) for cell in cells}


@pytest.mark.parametrize("dataset", ["compas", "communities", "default"])
def test_splits_are_a_stratified_partition(dataset):
    problem = load_problem(dataset)
    parts = split_rows(problem, dataset, 3)
    rows = np.concatenate([parts.train, parts.ensemble, parts.test])
    assert np.array_equal(np.sort(rows), np.arange(len(problem.y)))
    shares = [len(part) / len(rows) for part in (parts.train, parts.ensemble, parts.test)]
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.001)
    label = problem.y > np.median(problem.y) if problem.regression else problem.y
    for values in problem.attributes.values():
        for group in np.unique(values):
            member = values == group
            whole = member.mean(), label[member].mean()
            for part in (parts.train, parts.ensemble, parts.test):
                own = member[part].mean(), label[part][member[part]].mean()
                np.testing.assert_allclose(own, whole, atol=0.03)


def test_splits_differ_but_each_is_always_the_same():
    problem = load_problem("compas")
    first, again, other = (split_rows(problem, "compas", number) for number in (0, 0, 1))
    assert np.array_equal(first.test, again.test)
    expected = len(first.test) / 4
    assert abs(len(np.intersect1d(first.test, other.test)) - expected) < 0.2 * expected


def test_seeds_are_the_same_in_every_process_and_version():
    # Written down once: another value would change every figure that is published.
    assert seed_of("adult", 0, "forest") == 16004346


def test_fewer_rows_keep_the_groups_in_proportion():
    whole, part = load_problem("compas"), load_problem("compas", 1000)
    assert 700 <= len(part.y) <= 1000
    for name, values in whole.attributes.items():
        for group in np.unique(values):
            assert abs((part.attributes[name] == group).mean() - (values == group).mean()) < 0.01
    assert abs(part.y.mean() - whole.y.mean()) < 0.01


def test_the_order_of_work_is_split_by_split_and_covers_every_table():
    cells = plan_cells(("dp", "eo", "multi"), range(2))
    assert len(set(cells)) == len(cells) == 2 * (7 * 28 + 6 * 28 + 4 * 7)
    assert [cell.split for cell in cells] == sorted(cell.split for cell in cells)
    blind = plan_cells(("dp", "eo", "multi"), range(2), tracks=("in-x", "blind"))
    assert len(set(blind)) == len(blind) == 2 * (2 * (7 * 28 + 6 * 28) + 4 * 7)  # several attributes: the paper's only
    assert len({cell.path for cell in blind}) == len(blind)
    order = [TASKS[cell.task].dataset for cell in cells if cell.split == 0]
    assert list(dict.fromkeys(order)) == list(DATASETS)


def test_every_method_gives_a_record_with_all_figures(records):
    for (table, method), record in records.items():
        assert record.status == "done", record.reason
        for figure in FIGURES:
            value = getattr(record, figure)
            if figure == "fauc_honest" and table == "multi" and "gender" in method:
                assert value is None  # chosen for another attribute
            elif figure != "fauc_honest" or table != "multi":
                assert 0.0 <= value <= 1.0, (method, figure)
        assert record.constant_accuracy - 1e-12 <= record.fauc <= record.max_accuracy + 1e-12
        assert record.fauc <= record.fauci + 1e-12 <= record.fauc_signed + 2e-12
        assert len(record.points["fairness"]) == (2 if METHODS[table][method].key in ("random-forest", "none") else 7)


def test_fauc_of_a_record_is_the_area_under_its_points(records):
    levels = np.linspace(0.8, 1.0, 4001)[1:] - 0.5 * 0.2 / 4000
    for record in records.values():
        fairness, accuracy = record.points["fairness"], record.points["accuracy"]
        area = np.mean([reference.taf(fairness, accuracy, level) for level in levels])
        assert abs(area - record.fauc) < 2e-4
        assert reference.taf(fairness, accuracy, 0.95) == record.accuracy_95
        assert record.max_accuracy == max(accuracy)


def test_random_forest_row_is_scikit_learns_forest(split, records):
    problem, rows = split.problem, split.rows
    seed = seed_of("compas", 0, "forest")
    forest = RandomForestClassifier(TINY.forest_trees, min_samples_leaf=10, random_state=seed)
    forest.fit(problem.X[rows.train], problem.y[rows.train])
    decided = forest.predict(problem.X[rows.test])
    race = problem.attributes["race"][rows.test]
    accuracy = (decided == problem.y[rows.test]).mean()
    bias = abs(decided[race == "White"].mean() - decided[race != "White"].mean())
    points = records["dp", "random-forest"].points
    np.testing.assert_allclose([points["accuracy"][0], points["fairness"][0]], [accuracy, 1 - bias], atol=1e-15)


def test_no_method_looks_at_the_labels_of_the_test_rows(split, records):
    blind = SplitData("compas", 0, TINY)
    y = blind.problem.y.copy()
    y[blind.rows.test] = np.random.default_rng(0).permutation(y[blind.rows.test])
    blind.problem = replace(blind.problem, y=y)
    blind._loaded = dict(split._loaded)  # base learners see only the training rows
    for (table, method), record in records.items():
        other = run_cell(Cell(table, "compas-race", method, 0), blind)
        # Demographic parity does not depend on labels; the constant model, last, is the majority's by definition.
        if table != "eo":
            np.testing.assert_allclose(
                other.points["bias"][:-1], record.points["bias"][:-1], atol=1e-12, err_msg=method
            )
        assert other.chosen == record.chosen
    assert other.points["accuracy"] != record.points["accuracy"]


@pytest.mark.parametrize(
    ("table", "method"),
    [
        *(("dp", method) for method in ("fagtb", "adversarial", "reductions", "mp-ours", "oxonfair")),
        *(("dp", method) for method in ("threshold-optimizer", "sink-ours", "sink-aware")),
        *(("eo", method) for method in EO_METHODS),
    ],
)
def test_running_a_cell_again_gives_the_same_figures(table, method, records):
    again = run_cell(Cell(table, "compas-race", method, 0), SplitData("compas", 0, TINY))
    before = records[table, method]
    for figure in FIGURES:
        assert abs(getattr(again, figure) - getattr(before, figure)) < 1e-6
    assert again.points == before.points


def test_methods_that_only_classify_do_not_apply_to_regression():
    data = SplitData("communities", 0, TINY)
    for method in METHODS["dp"].values():
        if method.classifies_only:
            record = run_cell(Cell("dp", "communities-race", method.key, 0), data)
            assert record.status == "not applicable"
            assert "regression" in record.reason
            assert record.fauc is None
    stack = run_cell(Cell("dp", "communities-race", "sink-paper", 0), data)
    assert stack.status == "done"
    assert set(stack.training) == {"minipatch", "forest", "zoo"}
    assert 0.0 < stack.fauc < stack.fauc_exp_mse < 1.0


def test_a_failure_is_a_record_with_its_reason():
    data = SplitData("compas", 0, replace(TINY, zoo=("no_such_classifier",)))
    record = run_cell(Cell("dp", "compas-race", "zoo-ours", 0), data)
    assert record.status == "failed"
    assert record.reason.startswith("InvalidInputError: estimators must hold at least one")
    assert run_cell(Cell("dp", "compas-race", "random-forest", 0), data).status == "done"


def test_predictions_are_kept_and_made_again_when_damaged(tmp_path):
    told = []
    first = SplitData("compas", 0, TINY, tmp_path, told.append).family("minipatch")
    second = SplitData("compas", 0, TINY, tmp_path, told.append).family("minipatch")
    assert len(told) == 1
    assert first.names == second.names
    assert second.test.dtype == np.float32
    assert np.array_equal(first.ensemble, second.ensemble)
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(path.read_bytes()[:1000])
    assert read_predictions(path) is None
    third = SplitData("compas", 0, TINY, tmp_path, told.append).family("minipatch")
    assert len(told) == 2
    assert np.array_equal(first.test, third.test)
    assert not list(tmp_path.rglob("*.tmp"))


def test_predictions_survive_the_disk(tmp_path):
    made = FamilyPredictions(("a/x", "b/y"), np.eye(2, dtype=np.float32), np.ones((3, 2), dtype=np.float32), 1.5)
    write_predictions(tmp_path / "deep" / "file.npz", made)
    found = read_predictions(tmp_path / "deep" / "file.npz")
    assert (found.names, found.seconds) == (made.names, made.seconds)
    assert np.array_equal(found.ensemble, made.ensemble)
    assert read_predictions(tmp_path / "absent.npz") is None
    with pytest.raises(InvalidInputError, match="name must be one of"):
        family_key("unknown")


def make_record(**changes):
    return Record(**{"table": "dp", "task": "compas-race", "method": "fagtb", "split": 0, "settings": "tiny"} | changes)


def test_records_survive_disk_collection_and_a_later_version(tmp_path):
    store = RecordStore(tmp_path / "cells", tmp_path / "records.jsonl.gz", "tiny")
    one = make_record(status="done", fauc=1 / 3, points={"fairness": [0.1, 1.0]}, details={"alpha": 1e-7})
    two = make_record(status="failed", reason="ValueError: “no”", split=1)
    store.add(one)
    store.add(two)
    assert list(store.load().values()) == [one, two]
    store.collect()
    before = (tmp_path / "records.jsonl.gz").read_bytes()
    store.collect()
    assert (tmp_path / "records.jsonl.gz").read_bytes() == before
    fresh = RecordStore(tmp_path / "elsewhere", tmp_path / "records.jsonl.gz", "tiny")
    assert list(fresh.load().values()) == [one, two]
    newer = replace(two, status="done", reason="", fauc=0.5)
    fresh.add(newer)
    assert fresh.load()[newer.cell] == newer
    assert Record.from_json(one.to_json().replace('"fauc":', '"of_a_later_version":1,"fauc":')) == one


def test_collections_keep_other_settings(tmp_path):
    for name in ("tiny", "quick"):
        store = RecordStore(tmp_path / "cells", tmp_path / "records.jsonl.gz", name)
        store.add(make_record(status="done", settings=name))
        store.collect()
    assert sorted(record.settings for record in read_collection(tmp_path / "records.jsonl.gz")) == ["quick", "tiny"]
    assert len(RecordStore(tmp_path / "none", tmp_path / "records.jsonl.gz", "tiny").load()) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"not gzip",
        gzip.compress(b"not json\n"),
        gzip.compress(b"[]\n"),
        gzip.compress(b"{}\n" * 9)[:-9],
        gzip.compress(b"{}\n" * 9)[:10] + b"\xff" * 20,
    ],
    ids=["not gzip", "not json", "no record", "cut off", "overwritten"],
)
def test_a_damaged_collection_is_an_error_that_says_what_to_do(tmp_path, content):
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="remove it"):
        list(read_collection(path))


@pytest.mark.parametrize("damage", [b"", b'{"table":"dp","ta', b"\xff\xfe", b"[]\n", b"{}\n", b"\0" * 64])
def test_a_damaged_cell_is_made_again(tmp_path, damage):
    request = Reproduction(
        tmp_path, tables=("dp",), tasks=("compas-race",), methods=("random-forest",), settings="tiny"
    )
    (cell,) = replace(request, splits=(0,)).cells()
    store = request.store()
    store.add(make_record(status="done", method="random-forest"))
    (path,) = tmp_path.rglob("*.json")
    path.write_bytes(damage)
    assert store.load() == {}
    assert unfinished([cell], request) == [cell]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables": ("dpp",)}, "tables must be one of"),
        ({"tasks": ("adult",)}, "tasks must be one of"),
        ({"methods": ("sink",)}, "methods must be one of"),
        ({"splits": ()}, "splits must be"),
        ({"splits": (-1,)}, "splits must be"),
        ({"jobs": 0}, "jobs must be"),
        ({"settings": "huge"}, "settings must be one of"),
        ({"tables": ("eo",), "tasks": ("communities-race",)}, "must leave something to do"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_before_any_work(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        Reproduction(Path("never-made"), **changes).cells()


def test_a_failed_cell_is_tried_again_and_a_finished_one_is_not(tmp_path):
    request = Reproduction(tmp_path, tables=("dp",), tasks=("compas-race",), splits=(0,), settings="tiny")
    request = replace(request, methods=("random-forest", "mp-paper"))
    store = request.store()
    points = {"fairness": [0.9, 1.0], "accuracy": [0.6, 0.5]}
    done = make_record(status="done", method="random-forest", fauc=0.123, points=points)
    store.add(done)
    store.add(make_record(status="failed", method="mp-paper", reason="power cut"))
    seen = []
    reproduce(request, Listener(seen.append))
    assert [record.method for record in seen] == ["mp-paper"]
    assert store.load()[done.cell] == done
    reproduce(replace(request, redo=True), Listener(seen.append))
    assert [record.method for record in seen] == ["mp-paper", "random-forest", "mp-paper"]
    assert store.load()[done.cell].fauc > 0.4
