"""The command `audit`: read a file, evaluate its models, and say what somebody needs to repeat it."""

import datetime
import hashlib
import importlib.metadata
import math
import platform
import shlex
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from fairfrontier._cli.options import AuditOptions
from fairfrontier._cli.output import command_line
from fairfrontier._cli.table import AuditTable, open_audit
from fairfrontier._validation import one_of
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._fauc import Weight
from fairfrontier.report import Settings
from fairfrontier.report._audit import summarise_rows
from fairfrontier.report._summarise import default_title
from fairfrontier.report._without_labels import summarise_selections


def run_audit(options: AuditOptions, *, stack: bool = True, progress: Any = None) -> dict[str, Any]:
    """Return the summary of a file of predictions; without labels, of whom they select.

    Parameters
    ----------
    options : AuditOptions
        What to read and how to evaluate it.
    stack : bool
        Also say what a fair stack of the models would reach, by cross-fitting.
    progress : callable, optional
        Is told how much of a pass over the file is done.
    """
    weight = options.check()
    if options.label is None and options.accuracy != "accuracy":
        raise InvalidInputError("--accuracy must not be given without --label: there is nothing to be right about")
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
    for text in options.reference:
        attribute, group = _reference(text, table, options.sensitive_mode)
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
