"""The benchmarks fit together: every module gives rows, and the page shows all of them."""

import dataclasses
import importlib
import json
import typing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def root_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def names():
    return sorted(path.stem for path in (ROOT / "benchmarks").glob("bench_*.py"))


@pytest.mark.parametrize("name", names())
def test_every_module_yields_rows(name):
    module = importlib.import_module(f"benchmarks.{name}")
    row = importlib.import_module("benchmarks._common").Row
    assert typing.get_type_hints(module.rows)["return"] == Iterator[row]


def test_the_hours_of_table_1_are_those_of_its_records(capsys, tmp_path):
    main = importlib.import_module("benchmarks.__main__").main
    page = tmp_path / "page.md"
    status = main(["--only", "reproduce", "--json", str(tmp_path / "rows.json"), "--markdown", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "| the paper's whole Table 1, 10 splits |" in text
    assert ("| yes |" in text) == (status == 0)
    assert "cells" in text.split("## What was measured")[1]


def test_rows_of_learners_are_twenty_times_one_fit():
    module = importlib.import_module("benchmarks.bench_learners")
    timing = module.Timing
    row = module._row(
        5.0, work="w", against="a", ours=[timing(2.0, 4.0)], theirs=[timing(1.0, 2.0), timing(3.0, 2.0)], note="n"
    )
    assert (row.ratio, row.met) == (20.0, True)
    assert "by processor time 10.0 ×" in row.detail


def test_the_largest_fall_of_a_knob_is_from_a_peak_to_a_later_value():
    fall = importlib.import_module("benchmarks.learner_quality").largest_fall
    # Means .5, .8, .7, .9, .75: the largest fall is .15, from the fourth value to the fifth.
    rows = np.array([[0.5, 0.8, 0.7, 0.9, 0.70], [0.5, 0.8, 0.7, 0.9, 0.80]])
    assert fall(rows) == ".150 (.050)"
    assert fall(np.sort(rows, axis=1)) == "none"


def test_references_of_other_values_are_fitted_again(tmp_path):
    module = importlib.import_module("benchmarks.learner_quality")
    name, path = "FAGTB on scikit-learn trees", tmp_path / "learners.jsonl"
    now = module._values("fagtb")
    kept = [module.Curve("compas-race", name, s, v, 0.6, [0.9], [0.6]) for s, v in [(0, now), (1, [*now[:-1], 99.0])]]
    path.write_text("".join(json.dumps(dataclasses.asdict(curve)) + "\n" for curve in kept))
    assert module.reference_curves(path) == kept[:1]
    assert module.reference_curves(tmp_path / "none") == []
