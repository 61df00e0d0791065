"""Compute every figure of a search again, from its saved decisions, and say what does not agree."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

from fairfrontier._persistence import load
from fairfrontier.exceptions import DataFileError, FairFrontierError
from fairfrontier.search._evidence import Evidence
from fairfrontier.search._model import SearchModel
from fairfrontier.search._plan import digest
from fairfrontier.search._summary import figures

# Of figures that are written and computed again by the same formulas.
_TOLERANCE = 1e-9


def verify_search(folder: Path) -> tuple[list[str], int]:
    """Return what does not agree in the folder of a finished search, and how many figures were compared.

    Parameters
    ----------
    folder : Path
        With plan.json, evidence.npz, summary.json, candidates.csv and model.skops.

    Raises
    ------
    DataFileError
        If one of the files is not there or cannot be read.
    """
    plan, summary = _json(folder / "plan.json"), _json(folder / "summary.json")
    evidence = Evidence.load(folder / "evidence.npz")
    problems = _plan_problems(plan, summary, evidence)
    again = figures(evidence, evidence.verdict())
    differences, compared = _differences(again, {name: summary.get(name) for name in again}, "summary.json")
    problems += differences
    problems += _table_problems(folder / "candidates.csv", again["candidates"])
    problems += _file_problems(folder, summary)
    problems += _model_problems(folder / "model.skops", summary)
    return problems, compared + len(again["candidates"])


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataFileError(f"{path.name} must be a file of a finished search; it cannot be read: {reason}") from None


def _plan_problems(plan: dict[str, Any], summary: dict[str, Any], evidence: Evidence) -> list[str]:
    content = {name: value for name, value in plan.items() if name not in ("hash", "created")}
    found = digest(content)
    problems = []
    if plan.get("hash") != found:
        problems.append("plan.json: the plan is not the one that was hashed")
    if summary.get("plan") != found:
        problems.append("summary.json: the search followed another plan than plan.json")
    if evidence.plan != found:
        problems.append("evidence.npz: the decisions were made under another plan than plan.json")
    for name in ("fairness", "sensitive_mode", "margin", "confidence", "min_fairness", "min_ratio"):
        if evidence.settings[name] != plan["settings"].get(name):
            problems.append(f"evidence.npz: {name} is {evidence.settings[name]!r}, the plan says otherwise")
    for part in ("calibrate", "report"):
        if len(evidence.y[part]) != plan["rows"].get(part):
            problems.append(f"evidence.npz: {len(evidence.y[part]):,} rows to {part}, the plan says otherwise")
    return problems


def _differences(again: Any, written: Any, where: str) -> tuple[list[str], int]:
    """Return where two JSON values differ, and how many single values were compared."""
    if isinstance(again, dict) and isinstance(written, dict):
        pairs = [(f"{where}: {name}", value, written.get(name)) for name, value in again.items()]
    elif isinstance(again, list) and isinstance(written, list) and len(again) == len(written):
        pairs = [(f"{where} {i + 1}", one, other) for i, (one, other) in enumerate(zip(again, written, strict=True))]
    else:
        numbers = isinstance(again, float) and isinstance(written, (int, float)) and not isinstance(written, bool)
        same = abs(again - written) <= _TOLERANCE if numbers else again == written
        return ([] if same else [f"{where} is {written!r}, computed again it is {again!r}"]), 1
    found, compared = [], 0
    for name, one, other in pairs:
        problems, count = _differences(one, other, name)
        found += problems
        compared += count
    return found, compared


def _table_problems(path: Path, candidates: list[dict[str, Any]]) -> list[str]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except OSError as error:
        raise DataFileError(f"{path.name} must be a file of a finished search: {error.strerror}") from None
    if len(rows) != len(candidates):
        return [f"candidates.csv: {len(rows)} candidates, there are {len(candidates)}"]
    problems = []
    for row, candidate in zip(rows, candidates, strict=True):
        for name, value in candidate.items():
            text = row.get(name, "")
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            try:
                same = abs(float(text) - value) <= _TOLERANCE if number else text == ("" if value is None else value)
            except ValueError:
                same = False
            if not same:
                problems.append(f"candidates.csv: {name} of {candidate['name']} is {text!r}, computed again {value!r}")
    return problems


def _file_problems(folder: Path, summary: dict[str, Any]) -> list[str]:
    problems = []
    for name, written in summary.get("files", {}).items():
        path = folder / Path(name).name
        if not path.is_file():
            problems.append(f"{name}: the file is not there")
        elif file_hash(path) != written:
            problems.append(f"{name}: the file is not the one that the search wrote")
    return problems


def _model_problems(path: Path, summary: dict[str, Any]) -> list[str]:
    try:
        model = load(path)
    except FairFrontierError as error:
        return [f"model.skops: {error}"]
    if not isinstance(model, SearchModel):
        return [f"model.skops: holds a {type(model).__name__}"]
    written = {"family_weights": summary.get("family_weights"), "importance": summary.get("importance")}
    problems, _ = _differences({name: getattr(model, name) for name in written}, written, "model.skops")
    return problems
