"""The benchmarks fit together: every module gives rows, and the page shows all of them."""

import importlib
import typing
from collections.abc import Iterator
from pathlib import Path

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
