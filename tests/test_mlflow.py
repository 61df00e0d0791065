"""Logging to MLflow, with the real client and a store in a temporary folder."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest

import fairfrontier as ff
from fairfrontier.adapters import log_mlflow
from fairfrontier.exceptions import InvalidInputError, MissingExtraError
from fairfrontier.report import Settings, audit, evaluate, frontier_csv, points_csv, render_html, summarise

RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], 300)
Y = (RNG.random(300) < np.where(SEX == "f", 0.3, 0.5)).astype(int)
SCORES = {
    f"linear/{j}": np.clip(0.3 + 0.4 * Y + 0.06 * j * (SEX == "m") + RNG.normal(0, 0.3, 300), 0, 1) for j in range(4)
}
POINTS = ff.tradeoff_points(Y, SCORES, sensitive_features={"sex": SEX})
STEP = ff.StepWeight(0.8)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow with a store of files: the skinny package has no database, and asks to be told so."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow
    mlflow.set_tracking_uri(before)


def artifact(mlflow, run_id, name):
    return mlflow.artifacts.load_text(f"{mlflow.get_run(run_id).info.artifact_uri}/{name}")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_run_has_points_curve_area_and_settings(mlflow):
    with mlflow.start_run() as run:
        assert log_mlflow(POINTS, weight=STEP, params={"data": "people 2024"}) == run.info.run_id
    data = mlflow.get_run(run.info.run_id).data
    curve = POINTS.frontier()
    assert data.metrics["fairfrontier.fauc"] == ff.fauc(curve, STEP)
    assert data.metrics["fairfrontier.models"] == 5
    assert data.metrics["fairfrontier.pareto_optimal"] == len(curve.support)
    assert data.params == {
        "fairfrontier.weight": "StepWeight(minimum=0.8)",
        "fairfrontier.interpolate": "False",
        "fairfrontier.attributes": "sex",
        "fairfrontier.data": "people 2024",
    }
    points = table(artifact(mlflow, run.info.run_id, "fairfrontier/points.csv"))
    assert [row["model"] for row in points] == list(POINTS.names)
    assert [float(row["fairness"]) for row in points] == POINTS.fairness.tolist()
    assert [float(row["accuracy"]) for row in points] == POINTS.accuracy.tolist()
    assert [i for i, row in enumerate(points) if row["pareto_optimal"] == "true"] == sorted(curve.support)
    rates = [[float(row[f"rate[{name}]"]) for name in POINTS.sets.names] for row in points]
    assert np.array_equal(rates, POINTS.rates)
    frontier = table(artifact(mlflow, run.info.run_id, "fairfrontier/frontier.csv"))
    assert [float(row["fairness"]) for row in frontier] == curve.fairness.tolist()
    assert [row["model"] for row in frontier] == [POINTS.names[i] for i in curve.support]
    # The columns are those of the files of an audit.
    audited = audit(Y, SCORES, sensitive_features=SEX, stack=False)
    assert list(frontier[0]) == frontier_csv(audited.summary).splitlines()[0].split(",")
    assert list(points[0])[:5] == points_csv(audited.summary).splitlines()[0].split(",")[:5]


def test_the_curve_is_a_metric_over_percentages(mlflow):
    with mlflow.start_run() as run:
        log_mlflow(POINTS, interpolate="signed")
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "fairfrontier.taf")
    curve = POINTS.frontier("signed")
    logged = {one.step: one.value for one in history}
    assert sorted(logged) == list(range(101))
    assert all(logged[step] == pytest.approx(float(curve(step / 100)), abs=1e-12) for step in logged)
    frontier = table(artifact(mlflow, run.info.run_id, "fairfrontier/frontier.csv"))
    assert [float(row["accuracy"]) for row in frontier] == curve.accuracy.tolist()


def test_a_stack_brings_its_weights_and_parameters(mlflow):
    stack = ff.FairStacksClassifier("precomputed", alpha=2.0, tau=0.01).fit(SCORES, Y, sensitive_features=SEX)
    points = stack.points(SCORES, Y, sensitive_features=SEX)
    with mlflow.start_run() as run:
        log_mlflow(points, model=stack)
    data = mlflow.get_run(run.info.run_id).data
    assert data.params["fairfrontier.stack.alpha"] == "2.0"
    assert data.params["fairfrontier.stack.tau"] == "0.01"
    assert float(data.params["fairfrontier.stack.alpha_"]) == stack.alpha_
    assert float(data.params["fairfrontier.stack.target_"]) == stack.target_
    weights = table(artifact(mlflow, run.info.run_id, "fairfrontier/weights.csv"))
    assert [row["model"] for row in weights] == ["(constant)", *SCORES]
    assert [float(row["weight"]) for row in weights] == [stack.intercept_, *stack.weights_]
    aware = ff.FairStacksClassifier("precomputed", alpha=2.0, attribute_aware=True)
    aware.fit(SCORES, Y, sensitive_features=SEX)
    with mlflow.start_run() as run:
        log_mlflow(points, model=aware)
    weights = table(artifact(mlflow, run.info.run_id, "fairfrontier/weights.csv"))
    assert [float(row["weight"]) for row in weights] == [aware.intercept_, *aware.weights_]
    assert weights[-1]["model"].startswith("(group ")


def test_the_report_is_logged_as_a_file_or_as_text(mlflow, tmp_path):
    base = evaluate(Y, SCORES, sensitive_features={"sex": SEX})
    page = render_html(summarise(base, Settings(source="test")))
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    with mlflow.start_run() as run:
        log_mlflow(POINTS, report=path, prefix="file")
        log_mlflow(POINTS, report=str(path), prefix="name")
        log_mlflow(POINTS, report=page, prefix="text")
    for prefix in ("file", "name", "text"):
        assert artifact(mlflow, run.info.run_id, f"{prefix}/report.html") == page


def test_a_run_that_is_not_active(mlflow):
    run = mlflow.start_run()
    mlflow.end_run()
    with pytest.raises(InvalidInputError, match=r"run_id must be given where no run is active.*mlflow\.start_run"):
        log_mlflow(POINTS)
    assert log_mlflow(POINTS, run_id=run.info.run_id) == run.info.run_id
    assert "fairfrontier.fauc" in mlflow.get_run(run.info.run_id).data.metrics


def test_long_and_hostile_names(mlflow):
    names = ["=1+1", "a;=cmd|' /C calc'!A0", "../../escape", "x" * 5000]
    points = ff.tradeoff_points(
        Y, dict(zip(names, SCORES.values(), strict=True)), sensitive_features={"=s": SEX, "z" * 900: SEX}
    )
    with mlflow.start_run() as run:
        log_mlflow(points, weight=lambda x: x)
    logged = mlflow.get_run(run.info.run_id)
    assert len(logged.data.params["fairfrontier.attributes"]) == 500
    assert "<lambda>" in logged.data.params["fairfrontier.weight"]
    text = artifact(mlflow, run.info.run_id, "fairfrontier/points.csv")
    assert [row["model"] for row in table(text)] == ["'=1+1", "a;'=cmd|' /C calc'!A0", *names[2:], "constant"]
    files = [one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id, "fairfrontier")]
    assert sorted(files) == ["fairfrontier/frontier.csv", "fairfrontier/points.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": [0.5]}, "points must be TradeoffPoints; got list"),
        ({"prefix": "../up"}, r"prefix must be letters, digits, '_' and '-'; got '\.\./up'"),
        ({"prefix": ""}, "prefix must be letters"),
        ({"report": "absent.html"}, r"report must be the file report.html.*there is no 'absent.html'"),
        ({"model": ff.FairStacksClassifier()}, "model must be a fitted FairStacks"),
        ({"weight": 0.8}, "weight must be None, a Weight or a function"),
        ({"interpolate": "hull"}, "interpolate must be False, True or 'signed'"),
    ],
)
def test_refusals_log_nothing(mlflow, options, message):
    with mlflow.start_run() as run, pytest.raises(InvalidInputError, match=message):
        log_mlflow(**{"points": POINTS, **options})
    logged = mlflow.get_run(run.info.run_id)
    assert not logged.data.metrics
    assert not mlflow.MlflowClient().list_artifacts(run.info.run_id)


def test_without_mlflow_the_error_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"log_mlflow needs.*'mlflow'.*pip install 'fairfrontier\[mlflow\]'"):
        log_mlflow(POINTS)


def test_nothing_of_the_other_libraries_is_loaded_with_the_package():
    others = {"mlflow", "fairlearn", "oxonfair", "aif360"}
    code = f"import sys; from fairfrontier import *; print(*{others} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
