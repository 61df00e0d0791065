"""The commands `audit` and `stack`: from options to a summary and files."""

import datetime
import hashlib
import importlib.metadata
import math
import platform
import shlex
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairfrontier._cli.options import AuditOptions, check_seed
from fairfrontier._cli.output import command_line
from fairfrontier._cli.table import AuditTable, open_audit
from fairfrontier._persistence import save
from fairfrontier._validation import number, one_of
from fairfrontier._writing import to_csv
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._fauc import Weight
from fairfrontier.report import Settings, summarise
from fairfrontier.report._audit import NO_INTERVAL, bounds_in_memory, summarise_rows
from fairfrontier.report._outputs import output_names, write_results
from fairfrontier.report._prepare import label_text
from fairfrontier.report._stack import FittedStack, fit_on_part
from fairfrontier.report._summarise import default_title, family_name
from fairfrontier.report._without_labels import summarise_selections
from fairfrontier.report._words import Piece, accuracy, best_model, figure, level, text


def run_audit(options: AuditOptions, *, stack: bool = True, progress: Any = None) -> dict[str, Any]:
    """Return the summary of a file of predictions; without labels, of whom they select."""
    weight = options.check()
    if options.label is None and options.accuracy != "accuracy":
        raise InvalidInputError("--accuracy needs --label: without labels no decision is right or wrong")
    if options.label is None and options.positive is not None:
        raise InvalidInputError("--positive needs --label: without labels there is no positive one")
    if options.label is None and options.fairness != "demographic_parity":
        raise InvalidInputError(f"--fairness {options.fairness} needs --label; without it there is demographic_parity")
    with threadpool_limits(limits=1):  # many small products: threads would mostly wait for one another
        table = open_audit(options, progress)
        settings = settings_of(options, table, weight)
        if options.label is None:
            summary = summarise_selections(table.chunks, settings)
        else:
            summary = summarise_rows(table.chunks, settings, stack=stack, in_memory=table.in_memory)
    summary["trail"] = trail(options.file, table)
    return summary


def trail(file: Path, table: AuditTable) -> dict[str, Any]:
    """Return what somebody needs to repeat an audit: command, file, rows and versions."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    versions = {"python": platform.python_version()}
    for package in ("fairfrontier", "numpy", "scipy", "scikit-learn", "pyarrow"):
        versions[package] = importlib.metadata.version(package)
    return {
        "command": shlex.join(["fairfrontier", *command_line()]),
        "file": file.name,
        "sha256": digest.hexdigest(),
        "rows_read": table.n_read,
        "rows_left_out": table.n_read - table.n_rows,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }


def settings_of(options: AuditOptions, table: AuditTable, weight: Weight) -> Settings:
    """Return what was asked, for the summary."""
    return Settings(
        source=options.file.name,
        label=options.label or "",
        positive=table.labels[1],
        fairness=options.fairness,
        accuracy=options.accuracy,
        sensitive_mode=options.sensitive_mode,
        threshold=table.threshold,
        rule=table.rule,
        sample_weight=options.sample_weight,
        weight=weight,
        min_fairness=options.min_fairness,
        confidence=options.confidence,
        min_group=max(options.min_group, math.ceil(options.min_share * table.n_rows)),
        reference=_references(options, table),
        baseline=_baseline(options.baseline, table),
        title=options.title or default_title(len(table.chunks.names), labelled=options.label is not None),
        notes=table.notes,
    )


def _references(options: AuditOptions, table: AuditTable) -> dict[str, str]:
    """Return the reference group of each attribute that has one."""
    found: dict[str, str] = {}
    for given in options.reference:
        attribute, group = _reference(given, table, options.sensitive_mode)
        if attribute in found:
            raise InvalidInputError(
                f"--reference must name one group of {attribute!r}; got {found[attribute]!r} and {group!r}"
            )
        found[attribute] = group
    return found


def _reference(text: str, table: AuditTable, sensitive_mode: str) -> tuple[str, str]:
    """Return an attribute and its reference group from a text such as ``sex=Male``; of intersections unchecked."""
    attribute, equals, group = text.partition("=")
    if not equals:
        raise InvalidInputError(f"--reference must be like sex=Male: attribute and group; got {text!r}")
    if sensitive_mode == "intersectional":  # which of them there are, the evaluated rows say
        return attribute, group
    one_of(attribute, table.groups, parameter="--reference")
    return attribute, one_of(group, table.groups[attribute], parameter=f"--reference {attribute}=")


def _baseline(name: str | None, table: AuditTable) -> str | None:
    if name is None:
        return None
    if name in table.left_out:
        raise InvalidInputError(
            f"--baseline {name!r} was left out of the models because it {table.left_out[name]}: name it, and all other "
            "models, with --scores"
        )
    return one_of(name, table.chunks.names, parameter="--baseline")


# What the summary says of a selection, beside what was delivered.
_SELECTED = ("asked", "estimated", "promised", "confidence", "procedure", "given_up")
# A smaller difference of two levels of fairness is not seen in three digits.
_SHOWN = 5e-4
STACK_OUTPUTS = (*output_names(), "weights.csv", "model.skops")


def run_stack(
    options: AuditOptions,
    *,
    tau: float | None = None,
    min_fairness: float | None = None,
    confidence: float | None = None,
    test_size: float = 0.5,
    seed: int = 0,
    progress: Any = None,
) -> tuple[dict[str, Any], FittedStack]:
    """Return the summary of a stack on rows that it has not seen, and the stack."""
    weight = options.check()
    number(test_size, parameter="--test-size", low=0.0, high=1.0, strict=True)
    check_seed(seed)
    if tau is not None:
        number(tau, parameter="--tau", low=0.0)
        if min_fairness is not None:
            raise InvalidInputError("--tau and --min-fairness both choose the operating point: give one of them")
    with threadpool_limits(limits=1):
        table = open_audit(options, progress)
        if table.rescaled:
            raise InvalidInputError("--scores of a stack must be in [0, 1]: turn them into probabilities first")
        settings = settings_of(options, table, weight)
        fitted = fit_on_part(
            table.chunks,
            settings,
            tau=tau,
            min_fairness=min_fairness,
            confidence=confidence if min_fairness is not None else None,
            test_size=test_size,
            seed=seed,
            n_rows=table.n_rows,
            in_memory=table.in_memory,
        )
        if not options.regression:  # predictions in the words of the file
            fitted.model.classes_ = np.array([_value(text) for text in table.labels])
            fitted.model.group_rates_ = _chosen_rates(fitted)
            fitted.model._labels_ = list(table.labels)
        # What `apply` needs to read another file as this one was read.
        fitted.model._bands_ = {name: list(limits) for name, limits in table.bands.items()}
        fitted.model._decisions_ = {name: list(words) for name, words in table.decisions.items()}
        bounds = bounds_in_memory(fitted.held_out, fitted.base, settings) if table.in_memory else None
    summary = _stack_summary(fitted, settings, _choice(tau, min_fairness), bounds)
    summary["trail"] = trail(options.file, table)
    return summary, fitted


def _chosen_rates(fitted: FittedStack) -> dict[str, dict[str, list[int]]]:
    """Return how many of how many rows of each group the chosen stack selects, where it was evaluated."""
    return {
        counts.attribute: {
            group: [int(counts.selected[0, g]), int(counts.rows[g])] for g, group in enumerate(counts.groups)
        }
        for counts in fitted.stack.groups
    }


def _value(text: str) -> str | bool | float:
    """Return a label as people mean it: a number or a truth value where it reads like one."""
    plain = label_text(text)
    if plain in ("true", "false"):
        return plain == "true"
    try:
        value = float(plain)
    except ValueError:
        return text
    if not value.is_integer():
        return value
    return int(plain) if abs(value) < 2**53 else text


def _choice(tau: float | None, min_fairness: float | None) -> str:
    if tau is not None:
        return f"largest score bias {tau:g}"
    if min_fairness is not None:
        return f"fairness {min_fairness:g} was asked for"
    return "the best FAUC in cross-validation"


def _stack_summary(
    fitted: FittedStack, settings: Settings, choice: str, bounds: tuple[float, float] | None
) -> dict[str, Any]:
    """Return the summary of a stack on rows that it has not seen."""
    shown = f", and its fairness was tested on {fitted.n_calibration:,} more" if fitted.n_calibration else ""
    note = (
        f"The stack was fitted on {fitted.n_fit:,} rows{shown}; all figures are for the other "
        f"{fitted.base.n_rows:,}. Its operating point was chosen without them: {choice}."
    )
    summary = summarise(
        fitted.base,
        settings.with_notes(note, *([] if bounds else [NO_INTERVAL])),
        stack=fitted.stack,
        stack_family=family_name(fitted.held_out.names),
        interval=bounds,
    )
    summary["operating"] = _operating(summary, fitted)
    summary["recommendation"] = [*_stack_words(summary), *best_model(summary)]
    return summary


def _operating(summary: dict[str, Any], fitted: FittedStack) -> dict[str, Any]:
    i = len(fitted.base.points)
    chosen = fitted.model.selection_
    selected = {} if chosen is None else {name: getattr(chosen, name) for name in _SELECTED}
    return selected | {
        "name": summary["models"]["names"][i],
        "fairness": summary["models"]["fairness"][i],
        "accuracy": summary["models"]["accuracy"][i],
        "alpha": float(fitted.model.alpha_),
        "rows_fitted": fitted.n_fit,
        "rows_calibrated": fitted.n_calibration,
    }


def _stack_words(summary: dict[str, Any]) -> list[Piece]:
    operating = summary["operating"]
    return [
        text(f"The fair stack has {summary['words']['accuracy']} "),
        figure(accuracy(operating["accuracy"])),
        text(" at fairness "),
        figure(level(operating["fairness"])),
        text(f" on {summary['n_rows']:,} rows that it has not seen. "),
        *_selection_words(operating),
    ]


def _selection_words(operating: dict[str, Any]) -> list[Piece]:
    """Return asked, promised and delivered side by side."""
    if operating.get("asked") is None:
        return []
    if operating["promised"] is None:
        known = [text(", estimated "), figure(level(operating["estimated"]))]
    else:
        sure = f" with confidence {operating['confidence']:g} on {operating['rows_calibrated']:,} rows"
        known = [text(", promised "), figure(level(operating["promised"])), text(sure)]
    asked, delivered = figure(level(operating["asked"])), figure(level(operating["fairness"]))
    unmet = operating["promised"] is None and operating["estimated"] < operating["asked"] - _SHOWN
    more = (
        "The request was not met: these rows cannot show that much, and this stack seems the fairest. " if unmet else ""
    )
    return [text("Fairness: asked "), asked, *known, text(", delivered "), delivered, text(f". {more}")]


def write_stack(summary: dict[str, Any], fitted: FittedStack, folder: Path) -> None:
    """Write the report, the tables, the weights and the model."""
    write_results(summary, folder)
    rows = [["(constant)", fitted.model.intercept_], *zip(fitted.model.names_, fitted.model.weights_, strict=True)]
    (folder / "weights.csv").write_text(
        to_csv(["model", "weight"], rows), encoding="utf-8", errors="replace", newline=""
    )
    save(fitted.model, folder / "model.skops")
