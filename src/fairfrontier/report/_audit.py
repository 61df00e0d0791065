"""The audit of models: points, intervals, what a fair stack would reach, and the findings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier._extras import require
from fairfrontier._validation import one_of
from fairfrontier.chunks import whole
from fairfrontier.chunks._files import gathered
from fairfrontier.chunks._source import StreamedChunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import CONSTANT, evaluation_rows
from fairfrontier.quantify._weights import StepWeight, Weight
from fairfrontier.report._differences import differences, differences_csv
from fairfrontier.report._evaluate import Evaluation, evaluate_chunks
from fairfrontier.report._html import render_html
from fairfrontier.report._intervals import fauc_bounds
from fairfrontier.report._stack import family_name, trial
from fairfrontier.report._summarise import Settings, summarise
from fairfrontier.report._tables import GROUP_COLUMNS, frontier_csv, group_rows, groups_csv, model_rows, points_csv
from fairfrontier.report._words import level, plain

OUTPUTS = ("report.html", "points.csv", "frontier.csv", "groups.csv", "summary.json")
NO_INTERVAL = "There is no confidence interval of FAUC: resampling needs all rows in memory; these came in chunks."


def summarise_rows(
    chunks: StreamedChunks,
    settings: Settings,
    *,
    stack: bool = True,
    in_memory: bool = False,
    positive: Any = True,
) -> dict[str, Any]:
    """Evaluate models and return all that a report shows.

    Parameters
    ----------
    chunks : StreamedChunks
        Labels, groups and scores.
    settings : Settings
        What was asked.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    in_memory : bool
        Whether the rows are one chunk in memory; else there is no interval.
    positive : object
        The positive label of the rows.
    """
    base = evaluate_chunks(chunks, **settings.measures())
    bounds = bounds_in_memory(chunks, base, settings) if in_memory else None
    tried, note = trial(chunks, base, settings, in_memory=in_memory) if stack else (None, "")
    notes = [text for text in (note, "" if bounds else NO_INTERVAL) if text]
    family = family_name(chunks.names)
    summary = summarise(base, settings.with_notes(*notes), stack=tried, stack_family=family, interval=bounds)
    if settings.baseline is not None and settings.accuracy == "accuracy":
        rows = gathered(chunks) if in_memory else None
        summary["differences"] = differences(chunks, base, settings, positive=positive, rows=rows)
    return summary


def bounds_in_memory(chunks: StreamedChunks, base: Evaluation, settings: Settings) -> tuple[float, float]:
    """Return the confidence interval of FAUC from rows that are in memory."""
    rows, weight, measures = gathered(chunks), settings.weight, settings.measures()
    return fauc_bounds(rows, base, weight=weight, confidence=settings.confidence, measures=measures)


def write_results(summary: dict[str, Any], folder: Path) -> None:
    """Write the report and the tables behind it."""
    texts = {
        "report.html": render_html(summary),
        "points.csv": points_csv(summary),
        "frontier.csv": frontier_csv(summary),
        "groups.csv": summary["groups_csv"] or groups_csv(summary),
    }
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8", errors="replace", newline="")
    if summary["differences"] is not None:
        (folder / "differences.csv").write_text(
            differences_csv(summary["differences"]), encoding="utf-8", errors="replace", newline=""
        )
    (folder / "summary.json").write_text(
        json.dumps(machine_readable(summary), indent=2, allow_nan=False) + "\n", encoding="utf-8"
    )


def machine_readable(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what `summary.json` holds: the findings, as text and as numbers, about the submitted models."""
    inside = ("models", "attributes", "frontier", "groups_csv")
    machine = {key: value for key, value in summary.items() if key not in inside}
    machine |= {key: plain(summary[key]) for key in ("recommendation", "overview", "rule")}
    machine["subject"] = summary["models"]["names"][summary["subject"]]
    machine["models"] = model_rows(summary)
    machine["frontier"] = [
        {key: summary["models"][key][i] for key in ("names", "fairness", "accuracy")}
        for i in summary["frontier"]["step"]
    ]
    return machine


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    summary : dict
        All that the report shows, as `fairfrontier.report.summarise` makes it.
    """

    summary: dict[str, Any]

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings in sentences."""
        return tuple(plain(self.summary[key]) for key in ("recommendation", "overview", "rule") if self.summary[key])

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about how the figures came about, and questions."""
        return tuple(self.summary["notes"])

    def models(self) -> Any:
        """Return one row per submitted model as a pandas dataframe: accuracy, fairness, ratios and verdicts."""
        rows = []
        for row in model_rows(self.summary):
            ratios = row.pop("ratios")
            flat = {f"{key}[{name}]": value for name, found in ratios.items() for key, value in found.items()}
            rows.append(row | flat)
        return _pandas().DataFrame(rows)

    def groups(self) -> Any:
        """Return one row per submitted model and group as a pandas dataframe: counts, rates, impact ratios, tests."""
        if self.summary["regression"]:
            raise InvalidInputError("groups must be of decisions; these models predict numbers: see points.csv")
        rows = group_rows(self.summary, range(self.summary["n_models"]))
        return _pandas().DataFrame(rows, columns=list(GROUP_COLUMNS))

    def to_html(self) -> str:
        """Return the report, one page that needs no other file."""
        return render_html(self.summary)

    def save(self, folder: str | Path) -> Path:
        """Write the report and the tables behind it into a folder, which is made if it is not there."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        write_results(self.summary, target)
        return target

    def __repr__(self) -> str:
        return "\n".join(("AuditResult", *self.findings))

    def _repr_html_(self) -> str:
        attributes = [a for a in self.summary["attributes"] if a["worst"] is not None]
        head = "".join(f"<th>lowest ÷ highest, {escape(a['name'])}</th><th>four fifths</th>" for a in attributes)
        lines = []
        for i in range(self.summary["n_models"]):
            models = self.summary["models"]
            cells = [escape(models["names"][i]), f"{models['accuracy'][i]:.3f}", level(models["fairness"][i])]
            for a in attributes:
                ratio = a["worst"]["ratio"][i]
                cells += ["–" if ratio is None else level(ratio), escape(a["worst"]["verdict"][i])]
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        said = "".join(f"<p>{escape(text)}</p>" for text in self.findings)
        return (
            f"{said}<table><thead><tr><th>model</th><th>accuracy</th><th>fairness</th>{head}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )


def _pandas() -> Any:
    return require("pandas", extra="datasets", purpose="A table of an audit")


def audit(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    positive: Any = None,
    fairness: str = "demographic_parity",
    accuracy: str = "accuracy",
    threshold: float = 0.5,
    sensitive_mode: str = "separate",
    weight: Weight | None = None,
    min_fairness: float = 0.95,
    confidence: float = 0.95,
    min_group: int = 30,
    reference: Mapping[str, str] | None = None,
    baseline: str | None = None,
    stack: bool = True,
    title: str | None = None,
) -> AuditResult:
    """Audit models: the table, the verdicts and the report of the command `fairfrontier audit`.

    Parameters
    ----------
    y_true, y_preds, sensitive_features, fairness, accuracy, threshold, sensitive_mode
        As in `tradeoff_points`; `fairness` and `accuracy` must be names.
    positive : optional
        The positive label; None: the second of the two in sorted order.
    weight : Weight, optional
        How much each level of fairness matters; None: all levels from 0.8 alike.
    min_fairness : float
        The level of fairness that the recommendation is about.
    confidence : float
        Of all intervals.
    min_group : int
        Groups with fewer rows are shown and not judged.
    reference : mapping of str to str, optional
        For an attribute, the group that others are compared with; without: the one with the highest rate.
    baseline : str, optional
        The model in use, which the findings are about.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    title : str, optional
        Of the report.

    Returns
    -------
    AuditResult
        Findings, tables and the report.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 2000)
    >>> y = rng.random(2000) < np.where(sex == "m", 0.6, 0.3)
    >>> scores = {"a": 0.6 * y + 0.2 * (sex == "m") + 0.2 * rng.random(2000), "b": rng.random(2000)}
    >>> result = audit(y, scores, sensitive_features={"sex": sex}, stack=False)
    >>> [row["ratios"]["sex"]["verdict"] for row in machine_readable(result.summary)["models"]]
    ['below', 'above']
    """
    rows = evaluation_rows(
        y_true, y_preds, sensitive_features=sensitive_features, sample_weight=None, fairness=fairness, accuracy=accuracy
    )
    settings = Settings(
        source="arrays",
        label="y_true",
        fairness=fairness,
        accuracy=accuracy,
        threshold=threshold,
        sensitive_mode=sensitive_mode,
        weight=StepWeight(0.8) if weight is None else weight,
        min_fairness=min_fairness,
        confidence=confidence,
        min_group=min_group,
        reference=reference or {},
        baseline=None if baseline is None else one_of(baseline, rows.names, parameter="baseline"),
        title=title or f"Fairness and accuracy of {len(rows.names):,} models",
    )
    if not settings.regression:
        classes = [key[0] for key in dict.fromkeys((key[0],) for key in rows.cells(labelled=True).keys)]
        if positive is not None and positive not in classes:
            raise InvalidInputError(f"positive must be one of {classes}; got {positive!r}")
        settings = replace(settings, positive=str(classes[-1] if positive is None else positive))
        if positive is not None:
            rows = replace(rows, y=np.asarray(rows.y == positive), _cells={})
    if CONSTANT in rows.names:
        raise InvalidInputError(f"y_preds must not name a model {CONSTANT!r}, which the audit adds; rename it")
    label = True if positive is not None or settings.regression else classes[-1]
    return AuditResult(summarise_rows(whole(rows), settings, stack=stack, in_memory=True, positive=label))
