"""A finished search as plain data, and the check that all of its files say the same."""

import csv
import hashlib
import importlib.metadata
import json
import math
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairfrontier._persistence import load
from fairfrontier._version import __version__
from fairfrontier.exceptions import DataFileError, FairFrontierError
from fairfrontier.search._evidence import Evidence, SearchVerdict, changes
from fairfrontier.search._fair_search import FairSearch
from fairfrontier.search._model import SearchModel
from fairfrontier.search._plan import digest
from fairfrontier.search._training import ENOUGH

# Features that give the attribute away more than this are named.
_PROXY_AUC = 0.6
_MOST_PROXIES = 10


def summarise_search(search: FairSearch) -> dict[str, Any]:
    """Return all that a search found as JSON values: what the dossier shows and `verify` computes again."""
    about = search.requirement_
    found: dict[str, Any] = {
        **figures(search.evidence_, search.evidence_.verdict()),
        "requirement": {
            "min_fairness": about.min_fairness,
            "min_ratio": about.min_ratio,
            "confidence": about.confidence,
            "problem": about.problem,
            "kind": None if about.selection is None else about.selection.kind,
            "procedure": None if about.selection is None else about.selection.procedure,
        },
        "baseline_name": search.baseline_name_,
        "settings": search.plan_.settings,
        "plan": search.plan_.hash,
        "data": search.plan_.data,
        "rows": search.plan_.rows,
        "groups": search.plan_.groups,
        "columns": [asdict(report) for report in search.columns_],
        "proxies": {
            "together": search.proxies_,
            "alone": [
                {"column": report.name, "auc": report.group_auc}
                for report in sorted(search.columns_, key=lambda one: -one.group_auc)
                if report.used and report.group_auc > _PROXY_AUC
            ][:_MOST_PROXIES],
        },
        "checkpoints": [asdict(one) for one in search.checkpoints_],
        "sufficiency": None if search.sufficiency_ is None else asdict(search.sufficiency_),
        "enough": ENOUGH,
        "stopped": search.stopped_,
        "steps": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in search.steps_],
        "stability": search.stability_,
        "family_weights": search.model_.family_weights,
        "importance": search.model_.importance,
        "versions": _versions(),
    }
    plain: dict[str, Any] = _plain(found)
    return plain


def figures(evidence: Evidence, verdict: SearchVerdict) -> dict[str, Any]:
    """Return every figure that follows from the saved decisions."""
    chosen = verdict.candidates[verdict.chosen]
    found: dict[str, Any] = _plain(
        {
            "verdict": verdict.verdict,
            "chosen": chosen.name,
            "delivered": {name: getattr(chosen, name) for name in ("fairness", "ratio", "accuracy")},
            "baseline": verdict.baseline,
            "promised": verdict.promised,
            "pair": list(verdict.pair),
            "n_candidates": len(verdict.candidates),
            "candidates": [asdict(one) for one in verdict.candidates],
            "changes": changes(
                evidence.y["report"],
                evidence.sensitive["report"],
                evidence.baseline["report"],
                evidence.decisions["report"][:, verdict.chosen],
            ),
        }
    )
    return found


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: no NaN, no tuples."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "scikit-learn", "narwhals")
    found = {package: importlib.metadata.version(package) for package in packages}
    return {"fairfrontier": __version__, "python": platform.python_version(), **found}


# What a finished search has written beside summary.json, and what it writes if it is asked to.
FILES = ("candidates.csv", "dossier.html", "evidence.npz", "model.skops", "plan.json")
PDF = "dossier.pdf"
# Of figures that are written and computed again by the same formulas.
_TOLERANCE = 1e-9
# What stands in the plan, and in the summary as well.
_PLANNED = ("data", "rows", "groups", "settings")
# What the decisions were evaluated with, and what is required; the plan has it, too.
_EVALUATED = ("fairness", "sensitive_mode", "margin", "confidence", "min_fairness", "min_ratio")


def verify_search(folder: Path) -> tuple[list[str], int]:
    """Return what does not agree in the folder of a finished search, and how many figures were compared.

    What follows from the saved decisions is computed again; what also stands in the plan or in the model is compared
    with it; everything else must be what the search wrote, by its digest. A digest shows later changes: whoever writes
    everything anew, the digests included, is not found out.

    Parameters
    ----------
    folder : Path
        With plan.json, evidence.npz, summary.json, candidates.csv, dossier.html and model.skops.

    Raises
    ------
    DataFileError
        If one of the files is not there or cannot be read.
    """
    plan, summary = _json(folder / "plan.json"), _json(folder / "summary.json")
    evidence = Evidence.load(folder / "evidence.npz")
    problems = _plan_problems(plan, summary, evidence)
    again = figures(evidence, evidence.verdict())
    again |= {name: plan.get(name) for name in _PLANNED}
    differences, compared = _differences(again, {name: summary.get(name) for name in again}, "summary.json")
    problems += differences
    problems += _requirement_problems(summary, evidence.settings, promised=again["promised"] is not None)
    problems += _table_problems(folder / "candidates.csv", again["candidates"])
    problems += _model_problems(folder / "model.skops", summary)
    problems += _file_problems(folder, summary)
    problems += _digest_problems(summary)
    return problems, compared + len(again["candidates"])


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sealed(summary: dict[str, Any], folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """Return a summary with the hashes of the other files and the digest of all that it says."""
    content = {**summary, "files": {name: file_hash(folder / name) for name in names}}
    return {**content, "digest": digest(content)}


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"), object_pairs_hook=_distinct)
        if not isinstance(found, dict):
            raise ValueError("it is no table of names and values")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataFileError(f"{path.name} must be a file of a finished search; it cannot be read: {reason}") from None
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; of a name that stands there twice people see the first and programs the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs in it twice")
    return found


def _plan_problems(plan: dict[str, Any], summary: dict[str, Any], evidence: Evidence) -> list[str]:
    found = _digest({name: value for name, value in plan.items() if name not in ("hash", "created")})
    problems = []
    if plan.get("hash") != found:
        problems.append("plan.json: the plan is not the one that was hashed")
    if summary.get("plan") != found:
        problems.append("summary.json: the search followed another plan than plan.json")
    if evidence.plan != found:
        problems.append("evidence.npz: the decisions were made under another plan than plan.json")
    settings, rows = _part(plan, "settings"), _part(plan, "rows")
    for name in _EVALUATED:
        if evidence.settings.get(name) != settings.get(name):
            problems.append(
                f"evidence.npz: {name} is {evidence.settings.get(name)!r}, in the plan {settings.get(name)!r}"
            )
    for part in ("calibrate", "report"):
        if len(evidence.y[part]) != rows.get(part):
            problems.append(f"evidence.npz: {len(evidence.y[part]):,} rows to {part}, in the plan {rows.get(part)!r}")
    columns = summary.get("columns")
    listed = [_part({"": one}, "").get("name") for one in columns] if isinstance(columns, list) else None
    if listed != plan.get("columns"):
        problems.append("summary.json: columns are others than those of plan.json")
    if _part(summary, "versions").get("fairfrontier") != plan.get("version"):
        problems.append("summary.json: versions: fairfrontier is another one than in plan.json")
    return problems


def _part(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table inside a table; where there is none, an empty one."""
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _requirement_problems(summary: dict[str, Any], settings: dict[str, Any], *, promised: bool) -> list[str]:
    """Compare what is said about the requirement with what was required, and whether it was kept."""
    written = _part(summary, "requirement")
    again = {name: settings.get(name) for name in ("min_fairness", "min_ratio", "confidence")}
    problems, _ = _differences(again, {name: written.get(name) for name in again}, "summary.json: requirement")
    asked = settings.get("min_fairness") is not None or settings.get("min_ratio") is not None
    if bool(written.get("problem")) != (asked and not promised):
        word = "is not kept" if asked and not promised else "is kept" if asked else "was never made"
        problems.append(f"summary.json: requirement: problem is {written.get('problem')!r}, but the requirement {word}")
    return problems


def _digest(content: Any) -> str:
    """Return the digest of a JSON value; of one that our files cannot hold, such as NaN, none."""
    try:
        return digest(content)
    except ValueError:
        return ""


def _digest_problems(summary: dict[str, Any]) -> list[str]:
    if "digest" not in summary:
        why = "either that was removed, or the search predates it and must be run again to be verified"
        return [f"summary.json: it has no digest of its content: {why}"]
    if summary["digest"] == _digest({name: value for name, value in summary.items() if name != "digest"}):
        return []
    return ["summary.json: its content is not the one that the search wrote, by its digest"]


def _differences(again: Any, written: Any, where: str) -> tuple[list[str], int]:
    """Return where two JSON values differ, and how many single values were compared."""
    if isinstance(again, dict) and isinstance(written, dict):
        names = dict.fromkeys((*again, *written))
        pairs = [(f"{where}: {name}", again.get(name), written.get(name)) for name in names]
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
            reader = csv.DictReader(stream)
            rows, header = list(reader), list(reader.fieldnames or ())
    except OSError as error:
        raise DataFileError(f"{path.name} must be a file of a finished search: {error.strerror}") from None
    if candidates and header != list(candidates[0]):
        return ["candidates.csv: the columns are not those that a search writes"]
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
    written = _part(summary, "files")
    problems = [f"summary.json: files does not have the hash of {name}" for name in FILES if name not in written]
    if (folder / PDF).exists() and PDF not in written:
        problems.append(f"{PDF}: the search wrote no such file")
    for name, expected in written.items():
        path = folder / Path(name).name
        if not path.is_file():
            problems.append(f"{name}: the file is not there")
        elif file_hash(path) != expected:
            problems.append(f"{name}: the file is not the one that the search wrote")
    return problems


def _model_problems(path: Path, summary: dict[str, Any]) -> list[str]:
    try:
        model = load(path)
    except FairFrontierError as error:
        return [f"model.skops: {error}"]
    if not isinstance(model, SearchModel):
        return [f"model.skops: holds a {type(model).__name__}"]
    columns = summary.get("columns")
    used = [_part({"": one}, "") for one in columns] if isinstance(columns, list) else []
    written = {
        "family_weights": summary.get("family_weights"),
        "importance": summary.get("importance"),
        "labels": summary.get("labels"),
        "threshold": _part(summary, "settings").get("threshold"),
        "features": sorted(str(one.get("name")) for one in used if one.get("used")),
    }
    again = {
        "family_weights": model.family_weights,
        "importance": model.importance,
        "labels": [str(label) for label in model.classes_.tolist()],
        "threshold": float(model.threshold),
        "features": sorted(model.columns),
    }
    return _differences(again, written, "model.skops")[0]
