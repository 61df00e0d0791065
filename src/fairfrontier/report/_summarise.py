"""From evaluated models to a dict of plain numbers and text: all that the page and the terminal show."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairfrontier._columns import family_of
from fairfrontier._version import __version__
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._frontier import taf_curve
from fairfrontier.identify._points import CONSTANT, TradeoffPoints
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.metrics._sums import named_accuracy
from fairfrontier.quantify._fauc import PointWeight, PowerWeight, StepWeight, UniformWeight, Weight, fauc
from fairfrontier.report._evaluate import Evaluation, GroupCounts, reference_notes
from fairfrontier.report._tables import or_none, proportion_test, whole_numbers, worst_ratios
from fairfrontier.report._words import overview, recommendation, rule_sentence, words

# More families than this are not told apart by colour; the smallest are put together.
MAX_FAMILIES = 10
OTHER_FAMILY = "other families"
STACK_FAMILY = "fair stack"


@dataclass(frozen=True)
class Settings:
    """What was asked.

    Attributes
    ----------
    source : str
        Where the predictions come from, such as the file's name.
    label, positive : str
        The label's column and its positive value.
    fairness, accuracy, sensitive_mode, threshold
        As in `tradeoff_points`.
    weight : Weight
        How much each level of fairness matters.
    min_fairness : float
        The level of fairness that the recommendation is about.
    confidence : float
        Of every interval.
    title : str
        The page's title.
    notes : tuple of str
        Remarks about how the figures came about.
    min_group : int
        Groups with fewer rows are shown and not judged.
    reference : mapping of str to str
        For an attribute, the group that the others are compared with; without: the group with the highest rate.
    baseline : str, optional
        The model that is in use, which the findings are about.
    rule : str
        What makes a decision of a score, in words; empty: a score above the threshold.
    sample_weight : str, optional
        What the rows are weighted by.
    """

    source: str
    label: str = "y"
    positive: str = "1"
    fairness: str = "demographic_parity"
    accuracy: str = "accuracy"
    sensitive_mode: str = "separate"
    threshold: float = 0.5
    weight: Weight = field(default_factory=UniformWeight)
    min_fairness: float = 0.95
    confidence: float = 0.95
    title: str = "Fairness and accuracy"
    notes: tuple[str, ...] = ()
    min_group: int = 30
    reference: Mapping[str, str] = field(default_factory=dict)
    baseline: str | None = None
    rule: str = ""
    sample_weight: str | None = None

    @property
    def regression(self) -> bool:
        """Whether the label is a number."""
        return named_accuracy(self.accuracy).regression

    def measures(self) -> dict[str, Any]:
        """Return the options that `tradeoff_points` and all that evaluates models have in common."""
        return {
            "fairness": self.fairness,
            "accuracy": self.accuracy,
            "threshold": self.threshold,
            "sensitive_mode": self.sensitive_mode,
            "min_group": self.min_group,
        }

    def with_notes(self, *notes: str) -> "Settings":
        """Return the same settings with further notes before the others."""
        return replace(self, notes=(*notes, *self.notes))


def default_title(n_models: int, *, labelled: bool) -> str:
    """Return the title of a report that was given none."""
    what = "Fairness and accuracy" if labelled else "Selection rates"
    return f"{what} of {n_models:,} model{'' if n_models == 1 else 's'}"


def summarise(
    base: Evaluation,
    settings: Settings,
    *,
    stack: Evaluation | None = None,
    stack_family: str = STACK_FAMILY,
    interval: tuple[float, float] | None = None,
    created: datetime.datetime | None = None,
) -> dict[str, Any]:
    """Summarise evaluated models as a dict that JSON can hold.

    Parameters
    ----------
    base : Evaluation
        The models, the constant one last.
    settings : Settings
        What was asked.
    stack : Evaluation, optional
        Operating points of a fair stack, evaluated on the same rows, without a constant model.
    stack_family : str
        The name of their family.
    interval : (low, high), optional
        Confidence interval of the base models' FAUC.
    created : datetime, optional
        The report's date; None: now.

    Returns
    -------
    dict
        The keys are those that the page's script reads; `models` and `attributes` hold one entry per model.

    Examples
    --------
    >>> from fairfrontier.report import evaluate
    >>> y, sex = [1, 0, 1, 0], ["f", "f", "m", "m"]
    >>> base = evaluate(y, {"a": [0.9, 0.6, 0.8, 0.1]}, sensitive_features=sex)
    >>> summary = summarise(base, Settings(source="example"))
    >>> summary["models"]["names"], summary["frontier"]["step"], summary["fauc"]["estimate"]
    (['a', 'constant'], [0, 1], 0.625)
    """
    points = base.points
    if points.names[-1] != CONSTANT:
        raise InvalidInputError("base must have the constant model as its last one: pass include_constant=True")
    groups = base.groups
    if stack is not None:
        points = join_points(points, stack.points)
        groups = tuple(a.append(b) for a, b in zip(groups, stack.groups, strict=True))
    families, of_model = _families(points.names, len(base.points), stack_family)
    summary: dict[str, Any] = {
        "generator": f"fairfrontier {__version__}",
        "created": (created or datetime.datetime.now(datetime.UTC)).strftime("%Y-%m-%d"),
        "title": settings.title,
        "source": settings.source,
        "settings": _settings(settings, points) | {"unit": base.unit},
        "labelled": True,
        "regression": settings.regression,
        "words": words(settings.accuracy),
        "notes": list(settings.notes),
        "trail": None,
        "differences": None,
        "strata": None,
        "achievable": None,
        "n_rows": base.n_rows,
        "n_models": len(base.points) - 1,
        "families": families,
        "constant": len(base.points) - 1,
        "models": {
            "names": list(points.names),
            "family": of_model,
            "fairness": points.fairness.tolist(),
            "accuracy": points.accuracy.tolist(),
        },
        "attributes": [
            attribute_summary(
                counts, points.attribute_fairness[counts.attribute].tolist(), len(base.points) - 1, settings
            )
            for counts in groups
        ],
        "frontier": {
            "step": taf_curve(points.fairness, points.accuracy).support.tolist(),
            "hull": points.frontier(points.sets.compares_differences).support.tolist(),
            "base": taf_curve(base.points.fairness, base.points.accuracy).support.tolist(),
        },
        # Of a ratio it is none: between two models the page must draw no line.
        "mixtures_average": points.sets.compares_differences,
        "fauc": _fauc(base.points, settings, interval),
        "stack_fauc": None if stack is None else fauc(points.frontier(), settings.weight),
    }
    # Findings are about the models that were handed in; the constant and the stack are no candidates.
    submitted = range(len(base.points) - 1)
    summary["best"] = best_at(summary["models"], submitted, settings.min_fairness)
    summary["best_stack"] = best_at(summary["models"], range(len(base.points), len(points)), settings.min_fairness)
    summary["subject"] = _subject(summary, settings)
    summary["four_fifths"] = [] if summary["regression"] else four_fifths(summary, summary["subject"])
    summary["notes"] += [] if summary["regression"] else doubts(base, groups, settings)
    summary["notes"] += reference_notes(settings.reference, base.groups, settings.min_group)
    summary["recommendation"] = recommendation(summary)
    summary["overview"] = overview(summary)
    summary["rule"] = rule_sentence(summary)
    return summary


def four_fifths(summary: dict[str, Any], model: int) -> list[dict[str, Any]]:
    """Return, for each attribute, the lowest and the highest selection rate of a submitted model and their ratio.

    The ratio is None where the model selects nobody: 0/0 is neither fair nor unfair.
    """
    result = []
    for attribute in summary["attributes"]:
        width = len(attribute["groups"])
        ends = {}
        for end in ("lowest", "highest"):
            g = attribute["worst"][end][model]
            selected = attribute["true_selected"][model * width + g] + attribute["false_selected"][model * width + g]
            group = attribute["groups"][g]
            ends[end] = {"group": group["name"], "rate": selected / group["rows"], "rows": group["count"]}
        worst = attribute["worst"]
        result.append(
            {
                "attribute": attribute["name"],
                "model": summary["models"]["names"][model],
                "low": ends["lowest"],
                "high": ends["highest"],
                "ratio": worst["ratio"][model],
                "interval": [worst["low"][model], worst["high"][model]],
                "difference": ends["highest"]["rate"] - ends["lowest"]["rate"],
                "verdict": worst["verdict"][model],
            }
        )
    return result


def doubts(base: Evaluation, groups: tuple[GroupCounts, ...], settings: Settings) -> list[str]:
    """Return questions about models that are worse than chance or decide for everybody alike, and on small groups."""
    notes = []
    counts = groups[0]
    n_models = len(base.points) - 1
    scale = counts.scale
    positives, negatives = counts.positives @ scale, (counts.rows - counts.positives) @ scale
    hits, alarms = counts.true_selected[:n_models] @ scale, counts.false_selected[:n_models] @ scale
    worse = (hits * negatives < alarms * positives) & (proportion_test(hits, positives, alarms, negatives) < 0.001)
    inverted = [base.points.names[i] for i in np.flatnonzero(worse)]
    if inverted:
        named = f"{', '.join(inverted[:3])}{', …' if len(inverted) > 3 else ''}"
        many = 2 * len(inverted) >= n_models
        asked = f"Is {settings.positive!r} really the positive value?" if many else "Do their scores run the wrong way?"
        notes.append(
            f"Worse than chance: {len(inverted)} of {n_models} models select rows with the positive label "
            f"({settings.positive}) less often than the others: {named}. {asked}"
        )
    shares = counts.selected.sum(axis=1) / counts.rows.sum()
    names = [*base.points.names, *(f"point {i + 1} of the fair stack" for i in range(len(shares) - len(base.points)))]
    for what, alike in (("everybody", shares > 1 - 1e-9), ("nobody", shares < 1e-9)):
        which = [names[i] for i in range(len(shares)) if alike[i] and i != n_models]
        if which:
            notes.append(
                f"{', '.join(which[:3])}{', …' if len(which) > 3 else ''} select{'s' * (len(which) == 1)} {what}."
            )
    for one in groups:
        small = [
            f"{name} ({rows:,})" for name, rows, ok in zip(one.groups, one.count, one.judged, strict=True) if not ok
        ]
        if small and one.judged.sum() >= 2:
            notes.append(
                f"Groups of {one.attribute} with fewer than {settings.min_group} rows are shown and not judged: "
                f"{', '.join(small[:8])}{', …' if len(small) > 8 else ''}."
            )
        elif small:
            notes.append(
                f"{one.attribute} has fewer than two groups with {settings.min_group} rows or more, so that there is "
                "no verdict; fairness compares all of its groups."
            )
    return notes


def describe_weight(weight: Weight) -> dict[str, Any]:
    """Return a weight's text form and, where it is of the power family, its alpha and beta."""
    if isinstance(weight, UniformWeight):
        return {"text": "uniform", "alpha": 0.0, "beta": 0.0}
    if isinstance(weight, StepWeight):
        return {"text": f"step:{weight.minimum:g}", "alpha": 0.0, "beta": float(weight.minimum)}
    if isinstance(weight, PowerWeight):
        text = f"power:{weight.alpha:g}:{weight.beta:g}"
        return {"text": text, "alpha": float(weight.alpha), "beta": float(weight.beta)}
    text = f"point:{weight.fairness:g}" if isinstance(weight, PointWeight) else type(weight).__name__
    return {"text": text, "alpha": None, "beta": None}


def _settings(settings: Settings, points: TradeoffPoints) -> dict[str, Any]:
    return {
        "label": settings.label,
        "positive": settings.positive,
        "fairness": settings.fairness,
        "conditions": [None if c is None else int(c) for c in named_measure(settings.fairness).conditions],
        "accuracy": settings.accuracy,
        "sensitive": list(dict.fromkeys(points.sets.attributes)),
        "sensitive_mode": settings.sensitive_mode,
        "threshold": settings.threshold,
        "weight": describe_weight(settings.weight),
        "min_fairness": settings.min_fairness,
        "confidence": settings.confidence,
        "min_group": settings.min_group,
        "reference": dict(settings.reference),
        "baseline": settings.baseline,
        "rule": settings.rule or f"a score above {settings.threshold:g}",
        "sample_weight": settings.sample_weight,
    }


def join_points(base: TradeoffPoints, stack: TradeoffPoints) -> TradeoffPoints:
    """Return the points of both, which must compare the same row sets."""
    return TradeoffPoints(
        np.concatenate([base.fairness, stack.fairness]),
        np.concatenate([base.accuracy, stack.accuracy]),
        base.names + stack.names,
        np.concatenate([base.rates, stack.rates]),
        base.sets,
    )


def _families(names: tuple[str, ...], n_base: int, stack_family: str) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the families and each model's index among them: by the name's part before a slash."""
    of_base = [family_of(name) for name in names[: n_base - 1]]
    sizes = {family: of_base.count(family) for family in dict.fromkeys(of_base)}
    if len(sizes) > MAX_FAMILIES:
        kept = set(sorted(sizes, key=lambda family: -sizes[family])[: MAX_FAMILIES - 1])
        of_base = [family if family in kept else OTHER_FAMILY for family in of_base]
    titles = list(dict.fromkeys(of_base))
    position = {family: i for i, family in enumerate(titles)}
    families = [{"name": family, "kind": "base"} for family in titles]
    of_model = [position[family] for family in of_base]
    families.append({"name": CONSTANT, "kind": "constant"})
    of_model.append(len(families) - 1)
    if len(names) > n_base:
        families.append({"name": stack_family, "kind": "stack"})
        of_model += [len(families) - 1] * (len(names) - n_base)
    return families, of_model


def attribute_summary(counts: GroupCounts, fairness: list[float], n_models: int, settings: Settings) -> dict[str, Any]:
    """Return the groups of one attribute, what every model does to them, and the worst ratio of submitted models."""
    scale = counts.scale  # with weights, of as many rows as they are worth
    worst: dict[str, Any] | None = None
    if not settings.regression:
        selected = counts.selected[:n_models] * scale
        found = worst_ratios(selected, counts.rows * scale, counts.judged, settings.confidence)
        worst = {name: or_none(getattr(found, name)) for name in ("lowest", "highest", "ratio", "low", "high")}
        worst["verdict"] = found.verdict
    columns = counts.count, whole_numbers(counts.rows), whole_numbers(counts.positives), scale
    return {
        "name": counts.attribute,
        "fairness": fairness,
        "groups": [
            {"name": name, "count": n, "rows": rows, "positives": positives, "scale": worth, "judged": bool(judged)}
            for name, judged, n, rows, positives, worth in zip(
                counts.groups, counts.judged, *(values.tolist() for values in columns), strict=True
            )
        ],
        "true_selected": whole_numbers(counts.true_selected.ravel()).tolist(),
        "false_selected": whole_numbers(counts.false_selected.ravel()).tolist(),
        "worst": worst,
    }


def _fauc(points: TradeoffPoints, settings: Settings, interval: tuple[float, float] | None) -> dict[str, Any]:
    return {
        "estimate": fauc(points.frontier(), settings.weight),
        "hull": fauc(points.frontier(points.sets.comparison != "odds"), settings.weight),
        "low": None if interval is None else float(interval[0]),
        "high": None if interval is None else float(interval[1]),
    }


def _subject(summary: dict[str, Any], settings: Settings) -> int:
    """Return the model that the findings are about: the one in use, the best at the asked level, the most accurate."""
    if settings.baseline is not None:
        return int(summary["models"]["names"].index(settings.baseline))
    if summary["best"] is not None:
        return int(summary["best"]["model"])
    return int(np.argmax(summary["models"]["accuracy"][: summary["n_models"]]))


def family_name(names: Sequence[str]) -> str:
    """Return a name for the stack's family that no model's name begins with."""
    family = STACK_FAMILY
    while any(name.startswith(f"{family}/") for name in names):
        family += "*"
    return family


def best_at(models: dict[str, Any], candidates: range, min_fairness: float) -> dict[str, Any] | None:
    """Return the most accurate of the candidates that are fair enough; of equals the fairest, then the first."""
    fair = [i for i in candidates if models["fairness"][i] >= min_fairness]
    if not fair:
        return None
    best = max(fair, key=lambda i: (models["accuracy"][i], models["fairness"][i], -i))
    return {
        "model": best,
        "name": models["names"][best],
        "accuracy": models["accuracy"][best],
        "fairness": models["fairness"][best],
    }
