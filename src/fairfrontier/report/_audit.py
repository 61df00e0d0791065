"""The audit of models: points, intervals, what a fair stack would reach, and the findings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fairfrontier import _validation as validate
from fairfrontier._extras import require
from fairfrontier._rows import Rows
from fairfrontier._validation import number, one_of
from fairfrontier.chunks import whole
from fairfrontier.chunks._source import StreamedChunks, gathered
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.identify._frontier import taf_curve
from fairfrontier.identify._points import CONSTANT
from fairfrontier.metrics._accuracy import AccuracyMeasure
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.metrics._sums import named_accuracy
from fairfrontier.quantify._fauc import StepWeight, Weight
from fairfrontier.report._evaluate import (
    check_reference,
    differences,
    evaluate_chunks,
    fauc_bounds,
    pooled_strata,
)
from fairfrontier.report._outputs import model_card, page, write_results
from fairfrontier.report._prepare import (
    MISSING,
    NO_ROW,
    Survey,
    label_text,
    on_one_scale,
    ordered_labels,
    prepare_rows,
    survey_rows,
    threshold_words,
)
from fairfrontier.report._stack import trial
from fairfrontier.report._summarise import Settings, default_title, family_name, summarise
from fairfrontier.report._tables import (
    LL144_COLUMNS,
    Table,
    all_tables,
    differences_table,
    groups_table,
    models_table,
    points_table,
    strata_table,
)
from fairfrontier.report._without_labels import summarise_selections
from fairfrontier.report._words import Achievable, achievable_summary, findings, level

# Models that a notebook shows.
_SHOWN_MODELS = 50
NO_INTERVAL = "There is no confidence interval of FAUC: resampling needs all rows in memory; these came in chunks."


def summarise_rows(chunks: StreamedChunks, settings: Settings, *, stack: bool = True) -> dict[str, Any]:
    """Evaluate models and return all that a report shows."""
    base = evaluate_chunks(chunks, **settings.measures())
    check_reference(settings.reference, base.groups)
    bounds = fauc_bounds(chunks, base, settings)
    tried, note = trial(chunks, base, settings) if stack else (None, "")
    notes = [text for text in (note, "" if bounds else NO_INTERVAL) if text]
    family = family_name(chunks.names)
    summary = summarise(base, settings.with_notes(*notes), stack=tried, stack_family=family, interval=bounds)
    if settings.baseline is not None and settings.accuracy == "accuracy":
        summary["differences"] = differences(chunks, base, settings)
    if chunks.in_memory:
        summary["strata"] = pooled_strata(gathered(chunks), settings)
    return summary


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
        limit = self.summary.get("achievable")
        return (*findings(self.summary), *([limit["sentence"]] if limit else []))

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about how the figures came about, and questions."""
        return tuple(self.summary["notes"])

    def models(self) -> Any:
        """Return one row per submitted model as a pandas dataframe: accuracy, fairness, ratios and verdicts."""
        return _frame(models_table(self.summary))

    def groups(self) -> Any:
        """Return one row per submitted model and group as a pandas dataframe: counts, rates, impact ratios, tests."""
        return _frame(groups_table(self.summary))

    def points(self) -> Any:
        """Return one row per model, the constant and the fair stack among them, as a pandas dataframe."""
        return _frame(points_table(self._with("labelled")))

    def differences(self) -> Any:
        """Return one row per model that is not in use, as a pandas dataframe: what it would change."""
        return _frame(differences_table(self._with("differences")["differences"]))

    def strata(self) -> Any:
        """Return one row per submitted model and group as a pandas dataframe: compared within strata and pooled."""
        return _frame(strata_table(self._with("strata")["strata"]))

    def ll144(self) -> Any:
        """Return the table of New York City's Local Law 144 as a pandas dataframe; for audits without labels."""
        return _frame(Table(LL144_COLUMNS, self._with("ll144")["ll144"]))

    @property
    def tables(self) -> dict[str, Any]:
        """All tables that this audit has, by name, as pandas dataframes."""
        return {name: _frame(table) for name, table in all_tables(self.summary).items()}

    def _with(self, key: str) -> dict[str, Any]:
        """Return the summary if it has a part, else say what gives it one."""
        if self.summary.get(key):
            return self.summary
        needs = {
            "labelled": "y_true",
            "differences": "y_true, baseline and accuracy='accuracy'",
            "strata": "y_true, a fairness of all rows such as 'impact_ratio within job' and no sample_weight",
            "ll144": "y_true=None and no sample_weight",
        }
        raise InvalidInputError(f"this table needs an audit with {needs[key]}: call audit again")

    def to_html(self) -> str:
        """Return the report, one page that needs no other file."""
        return page(self.summary)

    def model_card(self) -> str:
        """Return a model card in Markdown of the model that the findings are about."""
        return model_card(self.summary)

    def save(self, folder: str | Path, *, xlsx: bool = False, pdf: bool = False) -> Path:
        """Write the report and the tables behind it into a folder, which is made if it is not there.

        Parameters
        ----------
        folder : str or Path
            Where to.
        xlsx : bool
            Also write one workbook with all tables (needs openpyxl).
        pdf : bool
            Also print the report with the Chromium that is installed.
        """
        target = Path(folder)
        if target.exists() and not target.is_dir():
            raise InvalidInputError(f"folder must be a folder; {str(target)!r} is a file: choose another name")
        target.mkdir(parents=True, exist_ok=True)
        write_results(self.summary, target, xlsx=xlsx, pdf=pdf)
        return target

    def __repr__(self) -> str:
        return "\n".join(("AuditResult", *self.findings))

    def _repr_html_(self) -> str:
        header, rows = models_table(self.summary)
        head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in header)
        lines = ["".join(f"<td>{escape(_shown(value))}</td>" for value in row) for row in rows[:_SHOWN_MODELS]]
        more = f"<p>… and {len(rows) - _SHOWN_MODELS:,} more</p>" if len(rows) > _SHOWN_MODELS else ""
        said = "".join(f"<p>{escape(text)}</p>" for text in self.findings)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return level(value) if isinstance(value, float) else str(value)


def _frame(table: Table) -> Any:
    pandas = require("pandas", extra="pandas", purpose="A table of an audit")
    frame = pandas.DataFrame(table.rows, columns=list(table.header))
    return frame.astype(dict.fromkeys(frame.columns[frame.isna().all()], float))  # what is not known is NaN


def audit(
    y_true: Any,
    y_preds: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    positive: Any = None,
    fairness: str = "demographic_parity",
    accuracy: "str | AccuracyMeasure" = "accuracy",
    threshold: float | Sequence[float] | Mapping[str, float | Sequence[float]] | None = None,
    sensitive_mode: str = "separate",
    weight: Weight | None = None,
    min_fairness: float = 0.95,
    confidence: float = 0.95,
    min_group: int = 30,
    min_share: float = 0.0,
    reference: Mapping[str, str] | None = None,
    baseline: str | None = None,
    missing: str = "error",
    stack: bool = True,
    achievable: "Achievable | None" = None,
    title: str | None = None,
) -> AuditResult:
    """Audit models: the tables, the verdicts and the report of the command `fairfrontier audit`.

    Parameters
    ----------
    y_true : array-like of shape (n,), or None
        Labels. None: only whom the models select is looked at.
    y_preds, sensitive_features, sample_weight, fairness, accuracy, sensitive_mode
        As in `tradeoff_points`; `fairness` must be a name, and `accuracy` a name, `recall_at` or `expected_payoff`.
    positive : optional
        The positive label; None: the one whose name says so, such as "hired" or "yes", else the second of the two in
        sorted order. What was guessed is said in the notes.
    threshold : float, sequence of float, or mapping of model to these, optional
        A score above it selects. With several, each model is audited at each of them; models that a mapping does not
        name have the default. None: 0.5; without labels the median of a model's scores, unless they are all 0 and 1.
    weight : Weight, optional
        How much each level of fairness matters; None: all levels from 0.8 alike.
    min_fairness : float
        The level of fairness that the recommendation is about.
    confidence : float
        Of all intervals.
    min_group, min_share : int, float
        Groups with fewer rows, or a smaller share of all rows, are shown and not judged.
    reference : mapping of str to str, optional
        For an attribute, the group that others are compared with; without: the one with the highest rate. Where groups
        are intersections it is written like ``{"race & sex": "White & Male"}``.
    baseline : str, optional
        The model in use, which the findings are about.
    missing : {"error", "drop", "group"}
        What to do with rows that lack a label, a group or a score: "group" makes those without a group one of their
        own, and refuses the others.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    achievable : AchievableFrontier, or dict of "blind" and "aware" to AchievableFrontier, optional
        What any rule could reach with the features behind the models, from `achievable_frontier`: the report draws it
        behind them and says how far they are from it.
    title : str, optional
        Of the report.

    Returns
    -------
    AuditResult
        Findings, tables and the report.

    Notes
    -----
    With sample weights all rates are weighted, and intervals and tests take each group for Kish's effective number of
    rows, (Σw)² ÷ Σw².

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 2000)
    >>> y = rng.random(2000) < np.where(sex == "m", 0.6, 0.3)
    >>> scores = {"a": 0.6 * y + 0.2 * (sex == "m") + 0.2 * rng.random(2000), "b": rng.random(2000)}
    >>> result = audit(y, scores, sensitive_features={"sex": sex}, stack=False)
    >>> result.summary["attributes"][0]["worst"]["verdict"]
    ['below', 'above']
    """
    rows = Rows.validated(y_true, y_preds, sensitive_features, sample_weight=sample_weight, whole=True)
    labelled = y_true is not None
    named_measure(fairness)  # raises if there is none of that name
    accuracy = _name_of(accuracy)
    if achievable is not None and (not labelled or accuracy != "accuracy"):
        raise InvalidInputError("achievable must be None without labels, and with another accuracy than 'accuracy'")
    if not labelled and (fairness, accuracy) != ("demographic_parity", "accuracy"):
        raise InvalidInputError("y_true must be given for another fairness or accuracy than the default; got None")
    if not labelled and positive is not None:
        raise InvalidInputError(f"positive must be None where y_true is; got {positive!r}")
    _check_groups(rows)
    settings = Settings(
        source="arrays",
        label="y_true",
        fairness=fairness,
        accuracy=accuracy,
        sensitive_mode=one_of(sensitive_mode, ("separate", "intersectional"), parameter="sensitive_mode"),
        weight=StepWeight(0.8) if weight is None else weight,
        min_fairness=number(min_fairness, parameter="min_fairness", low=0.0, high=1.0),
        confidence=number(confidence, parameter="confidence", low=0.0, high=1.0, strict=True),
        reference=reference or {},
        sample_weight=None if sample_weight is None else "sample_weight",
        title=title or default_title(len(rows.names), labelled=labelled),
    )
    if labelled and CONSTANT in rows.names:
        raise InvalidInputError(f"y_preds must not name a model {CONSTANT!r}, which the audit adds; rename it")
    survey = survey_rows(rows, label="y_true" if labelled else None, regression=settings.regression)
    prepared, word, guess = _prepared(
        rows, survey, settings, labelled, positive, one_of(missing, MISSING, parameter="missing")
    )
    limits = _limits(threshold, prepared, survey, labelled)
    unit = (np.zeros_like(survey.low), np.ones_like(survey.high)) if settings.regression else (survey.low, survey.high)
    chunks, limit = on_one_scale(whole(prepared), limits, unit if labelled else None, accuracy=accuracy)
    n_left_out = len(rows) - len(prepared)
    were = "1 row was" if n_left_out == 1 else f"{n_left_out:,} rows were"
    left_out = (
        f"{were} left out because {'it lacks' if n_left_out == 1 else 'they lack'} a value." if n_left_out else ""
    )
    settings = replace(
        settings,
        positive=word,
        threshold=limit,
        rule=threshold_words(limits),
        min_group=max(
            validate.whole_number(min_group, parameter="min_group", low=0),
            math.ceil(number(min_share, parameter="min_share", low=0.0, high=1.0) * len(prepared)),
        ),
        baseline=None if baseline is None else one_of(baseline, chunks.names, parameter="baseline"),
        notes=tuple(filter(None, (guess, left_out))),
    )
    if not labelled:
        return AuditResult(summarise_selections(chunks, settings))
    summary = summarise_rows(whole(gathered(chunks)), settings, stack=stack)
    if achievable is not None:
        models, submitted = summary["models"], summary["n_models"] + 1  # the constant decision is there for everybody
        have = taf_curve(models["fairness"][:submitted], models["accuracy"][:submitted])(min_fairness)
        summary["achievable"] = achievable_summary(achievable, float(have), min_fairness, fairness=fairness)
    return AuditResult(summary)


def _name_of(accuracy: Any) -> str:
    """Return the name of an accuracy measure, which the report shows."""
    if isinstance(accuracy, AccuracyMeasure) and accuracy.amounts is not None:
        raise InvalidInputError(
            "accuracy must be no row_payoff(...) in an audit, which shows measures by their names; tradeoff_points "
            "evaluates models by amounts per row"
        )
    if callable(accuracy):
        raise InvalidInputError(
            "accuracy must be a measure's name in an audit; got a function: tradeoff_points takes it"
        )
    return named_accuracy(accuracy).name


def _check_groups(rows: Rows) -> None:
    """Raise for attributes that are measurements, before they become text."""
    for name, values in rows.sensitive.items():
        groups = validate.distinct(values, parameter=f"sensitive_features[{name!r}]")[0]
        validate.check_no_measurement([group for group in groups if not validate.is_missing(group)], name)


def _prepared(
    rows: Rows, survey: Survey, settings: Settings, labelled: bool, positive: Any, missing: str
) -> tuple[Rows, str, str]:
    """Return rows with boolean labels and groups as text, without those that lack a value.

    Also the positive label, and how it was found if nobody named it.
    """
    for name, (row, _) in survey.missing.items():
        if missing == "drop" or (missing == "group" and name in rows.sensitive):
            continue
        which, more = ("y_true", "") if name not in rows.sensitive else (f"sensitive_features[{name!r}]", " or 'group'")
        raise GroupError(f"{which} must have no missing value; row {row} has none: pass missing='drop'{more}")
    for name, row in zip(rows.names, survey.no_score, strict=True):
        if row < NO_ROW and missing != "drop":
            raise InvalidInputError(
                f"y_preds[{name!r}] must have no NaN or inf; row {row} has one: pass missing='drop', or leave it out"
            )
    word, guess, labels = "", "", list(survey.labels)
    if labelled and not settings.regression:
        if len(labels) != 2:
            raise InvalidInputError(f"y_true must have two classes; got {len(labels)}: {labels[:5]}")
        (_, word), guess = ordered_labels(labels, option="positive")
        if positive is not None:
            word, guess = label_text(positive), ""
        if word not in labels:
            raise InvalidInputError(f"positive must be one of {labels}; got {positive!r}")
    every = tuple(range(len(rows.names)))
    prepared = prepare_rows(
        rows, positive=word, regression=settings.regression, kept=every, names=rows.names, missing=missing
    )
    return prepared, word, guess


def _limits(threshold: Any, rows: Rows, survey: Survey, labelled: bool) -> dict[str, tuple[float, ...]]:
    """Return the thresholds of every model."""
    of_model = threshold if isinstance(threshold, Mapping) else {}
    for name in of_model:
        one_of(name, rows.names, parameter="threshold")
    rest = None if isinstance(threshold, Mapping) else threshold
    result = {}
    for i, name in enumerate(rows.names):
        given = of_model.get(name, rest)
        if given is None:
            median = not labelled and not survey.only_01[i]
            given = float(np.median(rows.scores[:, i])) if median else 0.5
        numbers = [given] if np.isscalar(given) else list(given)
        result[name] = tuple(number(value, parameter="threshold") for value in numbers)
    return result
