"""The committed results: every figure follows from its record, and a cell that is run again gives it again."""

import csv
import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from fairfrontier import StepWeight, fauc, taf_curve
from fairfrontier.benchmark._families import FULL, SplitData
from fairfrontier.benchmark._paper_tables import short
from fairfrontier.benchmark._records import DONE, Record, read_collection
from fairfrontier.benchmark._run import honest_fauc, run_cell

RESULTS = Path(__file__).parents[1] / "results"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [record for record in read_collection(RESULTS / "records.jsonl.gz") if record.status == DONE]


def test_the_figures_of_every_record_follow_from_its_points(records: list[Record]) -> None:
    assert len(records) > 500
    wrong = []
    for record in records:
        curve = taf_curve(record.points["fairness"], record.points["accuracy"])
        expected = {"fauc": fauc(curve, StepWeight(0.8)), "max_accuracy": max(record.points["accuracy"])}
        if record.chosen:
            expected["fauc_honest"] = honest_fauc(record.chosen, record.points)
        # The points are kept with six digits.
        wrong += [(record.cell, name) for name, v in expected.items() if abs(getattr(record, name) - v) > 2e-6]
    assert wrong == []


def test_a_cell_that_is_run_again_gives_its_record_again(records: list[Record]) -> None:
    cells = [("dp", "compas-race", "random-forest"), ("eo", "compas-gender", "random-forest")]
    data = SplitData("compas", 0, FULL)
    for cell in cells:
        (kept,) = [r for r in records if (r.table, r.task, r.method, r.track) == (*cell, "in-x") and r.split == 0]
        again = run_cell(kept.cell, data)
        assert list(rerun.differences(kept, again)) == []
        for name in ("fauc", "fauc_honest", "accuracy_99"):
            other = replace(again, **{name: getattr(again, name) + 2e-9})
            assert any(line.startswith(name) for line in rerun.differences(kept, other))
        moved = replace(again, points=again.points | {"accuracy": [a + 3e-6 for a in again.points["accuracy"]]})
        assert any("accuracy of points differs" in line for line in rerun.differences(kept, moved))


def load_rerun():
    """Return the tool that runs recorded cells again."""
    spec = importlib.util.spec_from_file_location("rerun_cells", RESULTS.parent / "tools" / "rerun_cells.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rerun = load_rerun()


def test_a_sample_of_cells_is_the_same_for_the_same_seed(records: list[Record]) -> None:
    chosen = rerun.choose(records, 30, ("compas", "communities"), 0, 0)
    assert len(chosen) == len({record.cell for record in chosen}) == 30
    assert {record.task.partition("-")[0] for record in chosen} == {"compas", "communities"}
    assert [r.cell for r in rerun.choose(records, 30, ("compas", "communities"), 0, 0)] == [r.cell for r in chosen]
    assert [r.cell for r in rerun.choose(records, 30, ("compas", "communities"), 0, 1)] != [r.cell for r in chosen]


README_ROWS = {
    "adversarial debiasing": "adversarial",
    "FAGTB": "fagtb",
    "reductions": "reductions",
    "ThresholdOptimizer, given the attribute": "threshold-optimizer",
    "OxonFair, given the attribute": "oxonfair",
    "FairStacks, the paper's path and ridge": "sink-paper",
    "FairStacks, ours": "sink-ours",
}


def test_the_readme_has_the_figures_of_the_table() -> None:
    with (RESULTS / "tables" / "dp.csv").open(encoding="utf-8") as file:
        found = {(row["method"], row["task"]): row["fauc"] for row in csv.DictReader(file)}
    tasks = list(dict.fromkeys(task for _, task in found))
    lines = (RESULTS.parent / "README.md").read_text(encoding="utf-8").replace("*", "").splitlines()
    table = {
        cells[0]: cells[1:] for line in lines if len(cells := [c.strip() for c in line.strip("| ").split("|")]) == 8
    }
    for label, method in README_ROWS.items():
        figures = [found[method, task] for task in tasks]
        assert table[label] == [short(float(figure)) if figure else "–" for figure in figures]
