"""Two tracks, a user's table and a user's learner: the same comparison on any features and with any method."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairfrontier import cli
from fairfrontier.benchmark import (
    METHODS,
    Cell,
    Record,
    Reproduction,
    SplitData,
    UserTable,
    delivered_frontier,
    delivery_of,
    own_methods,
    read_collection,
    reproduce,
    run_cell,
    summarise_table,
)
from fairfrontier.benchmark._families import TINY
from fairfrontier.benchmark._paper_tables import delivered_page
from fairfrontier.benchmark._tasks import prepare_table
from fairfrontier.exceptions import GroupError, InvalidInputError

BLIND_METHODS = ("adversarial", "linear-post", "fpir-sink", "zoo-ours", "sink-ours", "threshold-optimizer")


def people(n=1200, seed=0):
    """A table with every kind of column that files have."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    income = rng.normal(30, 8, n) + 6 * (sex == "m")
    return pd.DataFrame(
        {
            "person_id": np.arange(n) + 1000,
            "name": [f"person {j}" for j in rng.permutation(n)],
            "sex": sex,
            "title": np.where(sex == "f", "Ms", "Mr"),
            "income": np.where(rng.random(n) < 0.1, np.nan, income),
            "job": rng.choice(["clerk", "cook", None], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "country": "here",
            "hired": np.where(income + rng.normal(0, 6, n) > 33, "yes", "no"),
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    return UserTable(path, "hired", "sex", "yes")


# ------------------------------------------------------------------------------------------------------- tracks


@pytest.fixture(scope="module")
def compas():
    return SplitData("compas", 0, TINY)


def test_blind_features_do_not_hold_the_attribute(compas):
    """Swapping the attribute in X changes no prediction of a blind cell, and changes those with the attribute in X."""
    swapped = SplitData("compas", 0, TINY)
    problem = swapped.problem
    found = [j for j in range(problem.X.shape[1]) if len(np.unique(problem.X[:, j])) == 2]
    race = problem.attributes["race"]
    held = [j for j in found if abs(np.corrcoef(problem.X[:, j], race == "White")[0, 1]) > 0.999]
    assert held
    X = problem.X.copy()
    X[:, held] = 1.0 - X[:, held]
    test = swapped.rows.test
    mixed = problem.X.copy()
    mixed[test] = X[test]
    swapped.problem = replace(problem, X=mixed)
    for track, same in (("blind", True), ("in-x", False)):
        cell = Cell("dp", "compas-race", "zoo-ours", 0, track)
        assert (run_cell(cell, swapped).points == run_cell(cell, compas).points) is same


@pytest.mark.parametrize("method", BLIND_METHODS)
@pytest.mark.parametrize("table", ["dp", "eo"])
def test_methods_run_blind_and_record_what_they_deliver(compas, method, table):
    record = run_cell(Cell(table, "compas-race", method, 0, "blind"), compas)
    assert (record.status, record.track) == ("done", "blind"), record.reason
    assert Record.from_json(record.to_json()) == record
    frontier = delivered_frontier([delivery_of(record)])
    assert len(frontier.asked) == 21
    assert record.constant_accuracy - 1e-12 <= frontier.fauc() <= record.max_accuracy + 1e-12


def test_records_of_version_0_1_are_in_x_and_deliver_what_follows_from_their_points(compas):
    record = run_cell(Cell("dp", "compas-race", "zoo-ours", 0), compas)
    old = replace(record, delivered={})
    assert old.track == "in-x"
    for name in ("bias", "accuracy"):
        np.testing.assert_allclose(getattr(delivery_of(old), name), getattr(delivery_of(record), name), atol=1e-9)
    assert delivery_of(replace(old, chosen={})) is None


def test_delivered_figures_of_known_methods_and_their_errors_are_the_jackknifes():
    """A method that is exactly as fair as asked in every split, with accuracies that differ by split."""
    levels = np.linspace(0.8, 1.0, 21)

    def record(method, split, accuracy, slip=0.0):
        given = {"bias": (1.0 - levels + slip).tolist(), "accuracy": [accuracy] * 21}
        points = {"fairness": [1.0], "accuracy": [0.5], "bias": [0.0]}
        common = {"table": "dp", "task": "compas-race", "settings": "tiny", "status": "done", "track": "blind"}
        return Record(method=method, split=split, delivered=given, points=points, **common)

    ours = [record("sink-ours", split, accuracy) for split, accuracy in enumerate((0.70, 0.72, 0.77))]
    late = [record("fpir", split, accuracy, slip=0.04) for split, accuracy in enumerate((0.70, 0.72, 0.77))]
    summary = summarise_table([*ours, *late], "dp", "blind")
    first, second = (summary.entry(METHODS["dp"][key], "compas-race") for key in ("sink-ours", "fpir"))
    found = first.estimate("delivered")
    assert found.mean == pytest.approx(0.73)
    # For a mean the jackknife's error is the usual one.
    assert found.error == pytest.approx(np.std([0.70, 0.72, 0.77], ddof=1) / np.sqrt(3))
    # Four hundredths less fair than asked: the last fifth of the levels is the constant's.
    assert second.estimate("delivered").mean == pytest.approx(0.8 * 0.73 + 0.2 * 0.5)
    assert (first.estimate("miss_share").mean, second.estimate("miss_share").mean) == (0.0, 1.0)
    assert second.estimate("miss_size").mean == pytest.approx(0.04)
    (paired,) = summary.comparisons("delivered")
    assert paired.difference.mean == pytest.approx(0.2 * 0.23)
    assert paired.difference.error == pytest.approx(0.2 * found.error)
    # Paired over the splits that both have: without the last of the rival, the same differences.
    (fewer,) = summarise_table([*ours, *late[:2]], "dp", "blind").comparisons("delivered")
    assert (fewer.difference.mean, fewer.difference.count) == (pytest.approx(0.2 * (0.71 - 0.5)), 2)
    page = delivered_page([summary])
    assert "| FS Kitchen Sink (ours) | **.730 (.021)** |" in page
    assert "blind" in page


# ------------------------------------------------------------------------------------------------- a user's table


@pytest.mark.parametrize("suffix", ["csv", "parquet", "xlsx"])
def test_a_users_table_becomes_numbers(tmp_path, suffix):
    path = tmp_path / f"people.{suffix}"
    frame = people()
    {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[suffix](path, index=False)
    prepared = prepare_table(UserTable(path, "hired", "sex", "yes"))
    problem, notes = prepared.problem, " ".join(prepared.notes)
    assert np.isfinite(problem.X).all()
    # income and its indicator, job (two and the missing), since (day, month, weekday); in X also two of sex
    assert problem.X_without["sex"].shape == (1200, 8)
    assert problem.X.shape == (1200, 10)
    np.testing.assert_array_equal(problem.y, frame["hired"] == "yes")
    np.testing.assert_array_equal(problem.attributes["sex"], frame["sex"])
    assert "person_id was left out: an identifier" in notes
    assert "name was left out: an identifier" in notes
    assert "country was left out: constant" in notes
    assert "title was left out: a copy of the sensitive attribute" in notes


def test_rows_without_label_or_attribute_are_left_out_and_said(tmp_path):
    frame = people()
    frame.loc[:9, "sex"] = None
    frame.to_csv(tmp_path / "people.csv", index=False)
    prepared = prepare_table(UserTable(tmp_path / "people.csv", "hired", "sex", "yes"))
    assert len(prepared.problem.y) == 1190
    assert "10 rows without label or attribute were left out." in prepared.notes


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"label": "hire"}, InvalidInputError, "label must be a column"),
        ({"sensitive": "hired"}, InvalidInputError, "must be different columns"),
        ({"label": "job", "positive": "boss"}, InvalidInputError, "positive must be one of"),
        ({"label": "since"}, InvalidInputError, "must have two values"),
        ({"sensitive": "since"}, GroupError, "must have 2 to 10 groups"),
        ({"sensitive": "country"}, GroupError, "must have 2 to 10 groups"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(table, changes, error, message):
    with pytest.raises(error, match=message):
        prepare_table(replace(table, **changes))


def test_a_column_that_gives_the_label_away_is_refused_unless_it_is_dropped(table):
    frame = people().assign(salary=lambda frame: (frame["hired"] == "yes") * 100.0)
    frame.to_csv(table.path, index=False)
    with pytest.raises(InvalidInputError, match="'salary' reveals the label"):
        prepare_table(table)
    kept = prepare_table(replace(table, drop=("salary",)))
    assert kept.problem.X_without["sex"].shape == (1200, 8)
    assert "salary was left out as asked." in kept.notes
    with_salary = replace(table, keep=("salary",))
    assert prepare_table(with_salary).problem.X_without["sex"].shape == (1200, 9)
    assert with_salary.identity() != table.identity()


def test_a_column_that_nearly_is_the_attribute_stays_and_is_asked_about(table):
    frame = people()
    other = np.arange(len(frame)) % 40 == 0
    values = sorted(frame["sex"].unique())
    first = (frame["sex"] == values[0]) ^ other
    frame.assign(club=np.where(first, "north", "south")).to_csv(table.path, index=False)
    notes = prepare_table(table).notes
    assert sum(note.startswith("club tells the sensitive attribute very well alone (AUC 0.97") for note in notes) == 1


def test_a_small_group_is_refused(tmp_path):
    frame = people()
    frame.loc[:20, "sex"] = "x"
    frame.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(GroupError, match="merge it with another"):
        prepare_table(UserTable(tmp_path / "people.csv", "hired", "sex"))


def test_more_than_two_groups_are_compared_by_all_methods_that_can(tmp_path):
    frame = people(2000)
    frame["sex"] = np.random.default_rng(1).choice(["a", "b", "c"], 2000)
    frame.drop(columns="title").to_csv(tmp_path / "people.csv", index=False)
    table = UserTable(tmp_path / "people.csv", "hired", "sex", "yes")
    split = SplitData("people", 0, TINY, table=table)
    for method in ("sink-ours", "threshold-optimizer", "reductions", "kernel"):
        record = run_cell(Cell("dp", "people-sex", method, 0, "blind"), split)
        assert record.status == "done", record.reason
        assert len(record.delivered["bias"]) == 21
    refused = run_cell(Cell("dp", "people-sex", "linear-post", 0, "blind"), split)
    assert refused.status == "not applicable"
    assert "compares two groups, and people-sex has 3" in refused.reason


def test_the_command_compares_on_a_users_table_and_resumes(table, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["reproduce", "--data", str(table.path), "--label", "hired", "--sensitive", "sex"]
    arguments += ["--track", "blind", "--out", str(out), "--quick", "--splits", "1", "--table", "dp"]
    arguments += ["--methods", "random-forest,fpir"]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "The positive label is taken to be 'yes', by its name." in shown
    assert "person_id was left out" in shown
    assert "2 cells, 2 to do" in shown
    assert "Delivered FAUC so far" in shown
    assert {record.track for record in read_collection(out / "records.jsonl.gz")} == {"blind"}
    assert "people sex" in (out / "tables" / "delivered.md").read_text()
    assert "the paper's Table" not in shown + (out / "tables" / "dp_blind.md").read_text()
    assert (out / "tables" / "dp_blind.csv").is_file()
    assert cli.main(arguments) == 0
    assert "2 cells, 0 to do" in capsys.readouterr().out
    people(seed=1).to_csv(table.path, index=False)
    assert cli.main(arguments) == 2
    assert "results of other data" in capsys.readouterr().err


def test_data_without_its_columns_is_refused(table, tmp_path, capsys):
    assert cli.main(["reproduce", "--data", str(table.path), "--label", "hired", "--out", str(tmp_path / "o")]) == 2
    assert "--sensitive must be given with --data" in capsys.readouterr().err
    for option in ("--label", "--sensitive", "--positive", "--drop", "--keep"):
        assert cli.main(["reproduce", option, "default", "--quick", "--out", str(tmp_path / "paper")]) == 2
        assert f"{option} needs --data, the file that it is about" in capsys.readouterr().err
    assert not (tmp_path / "paper").exists()


# ----------------------------------------------------------------------------------------------- a user's learner

LEARNERS = """
import numpy as np


class Plain:
    def fit(self, X, y):
        self.rate_ = y.mean()
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


class Grid:
    def __init__(self, fairness="", random_state=None):
        assert fairness == "demographic_parity"
        assert random_state is not None

    def fit_grid(self, X, y, *, sensitive_features):
        assert len(np.unique(sensitive_features)) == 2
        return self

    def predict_matrix(self, X):
        return np.column_stack([X[:, 0], np.zeros(len(X))])


class Told(Plain):
    aware = True

    def predict_proba(self, X, sensitive_features):
        score = np.where(sensitive_features == "White", 0.9, 0.1)
        return np.column_stack([1 - score, score])
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_learners.py").write_text(LEARNERS)
    monkeypatch.chdir(tmp_path)
    yield "my_learners"
    sys.modules.pop("my_learners", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def test_own_learners_are_rows_beside_ours_with_paired_differences(module, tmp_path):
    own = tuple(f"{module}:{name}" for name in ("Plain", "Grid", "Told"))
    request = Reproduction(
        tmp_path / "out",
        tables=("dp",),
        tasks=("compas-race",),
        methods=("sink-ours", "random-forest"),
        splits=(0, 1),
        settings="tiny",
        tracks=("blind",),
        own=own,
    )
    reproduce(request)
    records = {(r.method, r.split): r for r in read_collection(tmp_path / "out" / "records.jsonl.gz")}
    assert {record.status for record in records.values()} == {"done"}, records
    assert len(records["Plain", 0].points["accuracy"]) == 2  # and the constant
    assert len(records["Grid", 0].points["accuracy"]) == 3
    assert records["Told", 0].points["bias"][0] == pytest.approx(-1.0)  # all of one group, none of the other
    page = (tmp_path / "out" / "tables" / "delivered.md").read_text()
    table, paired = page.split("### FS Kitchen Sink (ours) minus each rival")
    assert "| Grid | " in table
    assert "| Told § | " in table
    assert "| Grid | " in paired
    split = SplitData("compas", 0, TINY)
    again = run_cell(Cell("dp", "compas-race", "Grid", 0, "blind"), split, own_methods(own))
    assert again.points == records["Grid", 0].points


def test_the_command_takes_a_learner_and_both_tracks_by_default(module, tmp_path, capsys):
    arguments = ["reproduce", "--method", f"{module}:Plain", "--methods", "Plain", "--tasks", "compas-race"]
    arguments += ["--table", "dp", "--quick", "--splits", "1", "--out", str(tmp_path / "out")]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "2 cells, 2 to do" in shown
    assert "dp blind compas-race split 0 Plain: FAUC 0." in shown
    assert "dp in-x compas-race split 0 Plain: FAUC 0." in shown
    assert cli.main([*arguments[:1], "--method", "nowhere:Plain", *arguments[3:]]) == 2
    assert "method must be module:Class" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["no_such_module:A", "my_learners", "my_learners:None_", "my_learners:np", "json:JSONDecoder"]
)
def test_a_learner_that_cannot_be_used_is_refused(module, text):
    with pytest.raises(InvalidInputError, match="method must be"):
        own_methods([text])
