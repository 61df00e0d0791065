"""A fitted search as plain data, for the dossier and for machines."""

import importlib.metadata
import math
import platform
from dataclasses import asdict
from typing import Any

from fairfrontier._version import __version__
from fairfrontier.search._evidence import Evidence
from fairfrontier.search._fair_search import FairSearch
from fairfrontier.search._result import SearchVerdict, changes
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
