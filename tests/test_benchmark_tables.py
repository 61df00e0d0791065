"""Tables and figures from records with known figures."""

import csv
import io

import numpy as np
import pytest

from fairfrontier.benchmark import Record, summarise_table
from fairfrontier.benchmark._averages import cpu_seconds, paper_figures
from fairfrontier.benchmark._methods import METHODS
from fairfrontier.benchmark._paper_tables import (
    STYLES,
    comparison_markdown,
    draw,
    latex,
    markdown,
    mean_curve,
    notes,
    save_figures,
    short,
    table_csv,
)


def record(method, split, fauc, *, task="default-gender", best=0.82, **changes):
    given = {
        "table": "dp",
        "task": task,
        "method": method,
        "split": split,
        "settings": "tiny",
        "status": "done",
        "fauc": fauc,
        "fauc_honest": None if fauc is None else fauc - 0.01,
        "max_accuracy": best,
        "constant_accuracy": 0.779,
        "points": {"fairness": [0.9, 1.0], "accuracy": [best, 0.779], "bias": [0.1, 0.0]},
    }
    return Record(**given | changes)


@pytest.fixture
def summary():
    records = [
        record("sink-ours", 0, 0.810),
        record("sink-ours", 1, 0.820),
        record("mp-ours", 0, 0.812),
        record("mp-ours", 1, 0.814),
        record("fagtb", 0, 0.800),
        record("fagtb", 1, None, status="failed", reason="ValueError: no such group"),
        record("random-forest", 0, 0.8),
        record("threshold-optimizer", 0, 0.818, best=0.825),
        record("threshold-optimizer", 1, 0.819, best=0.821),
        record("fagtb", 0, None, task="communities-race", status="not applicable", reason="only classifies"),
        record("mp-ours", 0, 0.3, task="communities-race", constant_accuracy=0.0, best=0.6),
    ]
    return summarise_table(records, "dp")


def test_a_cell_has_mean_error_paper_and_marks(summary):
    lines = {line.split("|")[1].strip(): line for line in markdown(summary).splitlines()}
    # Mean .815; standard error: standard deviation .00707 over the root of 2.
    assert "| **.815 (.005)** [.933†] |" in lines["FS Kitchen Sink (ours)"]
    assert "| .813 (.001) [.856†] |" in lines["FS MP Trees (ours)"]
    assert "| **.819 (.001)** |" in lines["ThresholdOptimizer §"]
    assert "| .800 [.850†], 1 split, 1 failed | – |" in lines["FAGTB"]
    assert "| .779 | .000 |" in lines["Constant model"]
    # The largest accuracy of each split, averaged: (.825 + .821) / 2.
    assert "| .823 | .600 |" in lines["Best accuracy of any candidate"]


def test_a_mean_over_fewer_splits_is_marked_and_never_bold():
    both = [record("mp-ours", 0, 0.80), record("mp-ours", 1, 0.81)]
    lucky = record("fagtb", 0, 0.90)
    text = markdown(summarise_table([*both, lucky], "dp"))
    assert "| FAGTB | .900 [.850†], 1 split |" in text
    assert "| FS MP Trees (ours) | **.805 (.005)** [.856†] |" in text


def test_rows_without_the_attribute_come_first(summary):
    order = [method.aware for method in summary.methods]
    assert order == sorted(order)
    assert order[-1]


def test_notes_say_what_failed_and_what_cannot_be_reached(summary):
    text = notes(summary)
    assert "FAGTB on Default gender, split 1: ValueError: no such group" in text
    assert "above the best accuracy here: Default gender (.823): " in text
    assert "FS Kitchen Sink .933" in text
    assert "Adversarial Debiasing .778" not in text  # no such row here


def test_figures_below_the_constant_model_are_marked():
    found = summarise_table([record("reductions", 0, 0.8)], "dp")
    assert "[.778‡]" in markdown(found)
    assert "below the constant model's accuracy here: Default gender (.779): Reductions .778" in notes(found)


def test_comparisons_are_paired_over_common_splits(summary):
    found = {(one.rival.key, one.task): one for one in summary.comparisons()}
    patches = found["mp-ours", "default-gender"]
    np.testing.assert_allclose(patches.difference.mean, np.mean([-0.002, 0.006]))
    np.testing.assert_allclose(patches.difference.error, np.std([-0.002, 0.006], ddof=1) / np.sqrt(2))
    assert (patches.wins, patches.difference.count) == (1, 2)
    assert found["fagtb", "default-gender"].difference.count == 1
    assert ("mp-ours", "communities-race") not in found
    assert "| FS MP Trees (ours) | .002 (.004); 1/2 |  |" in comparison_markdown(summary)


def test_several_attributes_compare_the_doubly_constrained_stack_with_the_others():
    named = {"table": "multi", "task": "compas-gender"}
    faucs = {"rf-both-ours": 0.64, "rf-gender-ours": 0.65, "rf-race-ours": 0.60}
    summary = summarise_table([record(method, 0, fauc, **named) for method, fauc in faucs.items()], "multi")
    found = {one.rival.key: one.difference.mean for one in summary.comparisons()}
    assert found == {"rf-gender-ours": pytest.approx(-0.01), "rf-race-ours": pytest.approx(0.04)}


def test_csv_has_every_figure(summary):
    rows = {(row["method"], row["task"]): row for row in csv.DictReader(io.StringIO(table_csv(summary)))}
    ours = rows["sink-ours", "default-gender"]
    assert (ours["fauc"], ours["fauc_honest"], ours["paper_fauc"]) == ("0.815000", "0.805000", "0.933")
    assert (ours["splits"], ours["failed"], ours["aware"]) == ("2", "0", "0")
    assert rows["fagtb", "default-gender"]["failed"] == "1"
    assert rows["fagtb", "communities-race"]["applies"] == "0"
    assert rows["threshold-optimizer", "default-gender"]["aware"] == "1"
    assert rows["sink-ours", "communities-race"]["fauc"] == ""


def test_latex_is_a_whole_table_without_bare_symbols(summary):
    text = latex(summary)
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {2}
    assert r"\textbf{.815 (.005)} [.933$^\dagger$]" in text
    assert not set("†‡§–%@") & set(text)
    assert text.count(r"\midrule") == 3


def test_the_papers_figures_are_complete():
    found = paper_figures()
    # Table 1 without the three fair classifiers on Communities, Table A1, Table A2.
    assert len(found) == (8 * 7 - 3) + 8 * 6 + 4 * 4
    rows = {(table, row) for table, row, _ in found}
    for table, methods in METHODS.items():
        for method in methods.values():
            assert method.paper_row is None or (table, method.paper_row) in rows


def test_training_that_cells_share_is_counted_once():
    records = [
        record("mp-ours", 0, 0.8, seconds=1.0, training={"minipatch": 10.0}),
        record("mp-paper", 0, 0.8, seconds=2.0, training={"minipatch": 10.0}),
        record("mp-paper", 1, 0.8, seconds=2.0, training={"minipatch": 10.0}),
    ]
    assert cpu_seconds(records) == (20.0, 5.0)


@pytest.mark.parametrize(("value", "text"), [(0.8634, ".863"), (0.9996, "1.000"), (-0.05, "-.050"), (0.0, ".000")])
def test_figures_have_three_digits(value, text):
    assert short(value) == text


def test_curves_are_averaged_over_splits(summary):
    entry = summary.entry(METHODS["dp"]["threshold-optimizer"], "default-gender")
    np.testing.assert_allclose(mean_curve(entry, np.array([0.85, 0.95])), [0.823, 0.779])


def test_a_figure_has_a_panel_a_task_and_one_style_a_method(summary, tmp_path):
    figure = draw(summary)
    panels = [ax for ax in figure.axes if ax.get_title()]
    assert [ax.get_title() for ax in panels] == ["Default gender", "Communities race"]
    assert [len(ax.lines) for ax in panels] == [5, 1]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "ThresholdOptimizer (needs attribute)" in labels
    patches = [line for ax in panels for line in ax.lines if line.get_color() == STYLES["mp-ours"][0]]
    assert len(patches) == 2
    assert panels[1].get_ylabel() == "best R²"
    first = [path.read_bytes() for path in save_figures([summary], tmp_path)]
    assert first[0].startswith(b"\x89PNG")
    assert first == [path.read_bytes() for path in save_figures([summary], tmp_path)]


def test_no_two_methods_of_a_table_look_alike():
    for methods in METHODS.values():
        styles = [STYLES[key][:2] for key in methods if key in STYLES]
        assert len(set(map(str, styles))) == len(styles) >= 7
