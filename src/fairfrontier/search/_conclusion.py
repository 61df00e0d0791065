"""The end of a search: candidates, the evidence about them, and the model that is handed over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier.exceptions import InfeasibleError
from fairfrontier.optimize import FairStacksClassifier
from fairfrontier.search._counts import count
from fairfrontier.search._evidence import Evidence
from fairfrontier.search._model import SearchModel, importance_of
from fairfrontier.search._problem import SearchProblem
from fairfrontier.search._requirement import SearchRequirement, likeliest, meeting
from fairfrontier.search._stacking import (
    REQUIRED,
    Combinations,
    EvaluationRows,
    combine,
    fit_stack,
    with_required,
)
from fairfrontier.search._steps import StepStore
from fairfrontier.search._training import Features, Trained

# Rows on which the importance of columns is judged, and halves of the stacking rows that are stacked again.
_IMPORTANCE_ROWS, _N_HALVES = 1_000, 3


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What a search concludes.

    Attributes
    ----------
    combinations : Combinations
        The candidates, and the baseline where it is one of the stacks.
    evidence : Evidence
        The decisions that the verdicts rest on.
    requirement : SearchRequirement
        What became of what was asked for.
    baseline_name : str
        "baseline", or the stack that takes its place.
    counterparts : tuple of Combinations
        Of a cross-fitted search, the candidates of each of its models.
    """

    combinations: Combinations
    evidence: Evidence
    requirement: SearchRequirement
    baseline_name: str
    counterparts: tuple[Combinations, ...] = ()


def conclude(
    problem: SearchProblem, trained: Trained, asked: SearchRequirement, stacking: dict[str, Any], *, margin: float
) -> Conclusion:
    """Make the candidates, choose, and gather the decisions on the calibration and the report rows.

    Parameters
    ----------
    problem, trained : SearchProblem, Trained
        The rows, and the models with the path of fair stacks.
    asked : SearchRequirement
        What is required.
    stacking : dict
        Settings of the stacks.
    margin : float
        Of accuracy.
    """
    requirement, stacks = meeting(trained.stack, asked)
    parts = {part: trained.parts[part] for part in ("calibrate", "report")}
    if len(stacks) > 1:
        stacks = [stacks[_likeliest(stacks, problem, parts["calibrate"], asked, stacking, margin)]]
    if stacks:
        requirement = replace(requirement, selection=stacks[0].selection_)
    combinations = with_required(combine(trained.stack, trained.names), stacks[0] if stacks else None)
    # A model that decides alike for everyone is no alternative to one that decides.
    selected = combinations.decisions(parts["calibrate"].scores, stacking["threshold"]).mean(axis=0)
    wanted = np.array([name == REQUIRED for name in combinations.names]) | ((selected > 0.0) & (selected < 1.0))
    if wanted.any():
        combinations = combinations.of(wanted)
    decided = {part: combinations.decisions(rows.scores, stacking["threshold"]) for part, rows in parts.items()}
    names, baseline_name = list(combinations.names), "baseline"
    if problem.baseline is not None:
        baselines = {part: problem.baseline[problem.rows(part)] for part in parts}
    else:  # the most accurate stack, by cross-validation in the stacking rows
        of_path = [i for i, name in enumerate(names) if name != REQUIRED]
        best = of_path[int(np.nanargmax(combinations.expected[of_path, 1]))]
        baseline_name = names.pop(best)
        baselines = {part: values[:, best] for part, values in decided.items()}
        decided = {part: np.delete(values, best, axis=1) for part, values in decided.items()}
    evidence = Evidence(
        plan=problem.plan.hash,
        names=tuple(names),
        y={part: rows.y for part, rows in parts.items()},
        sensitive={part: rows.sensitive for part, rows in parts.items()},
        baseline=baselines,
        decisions=decided,
        settings={
            "fairness": stacking["fairness"],
            "sensitive_mode": stacking["sensitive_mode"],
            "margin": margin,
            "confidence": asked.confidence,
            "min_fairness": asked.min_fairness,
            "min_ratio": asked.min_ratio,
            "required": names.index(REQUIRED) if REQUIRED in names else None,
            "possible": not requirement.problem,
            "report_share": problem.plan.rows["report"] / len(problem.y),
        },
    )
    return Conclusion(combinations, evidence, requirement, baseline_name)


def _likeliest(
    stacks: Sequence[FairStacksClassifier],
    problem: SearchProblem,
    rows: EvaluationRows,
    asked: SearchRequirement,
    stacking: dict[str, Any],
    margin: float,
) -> int:
    """Return which of the stacks will probably be shown to do all that is asked (without a baseline: by the first)."""
    decided = np.stack([rows.scores @ one.weights_ + one.intercept_ > stacking["threshold"] for one in stacks], axis=1)
    baseline = decided[:, 0] if problem.baseline is None else problem.baseline[problem.rows("calibrate")]
    options = {name: stacking[name] for name in ("fairness", "sensitive_mode")}
    counts = count(rows.y, rows.sensitive, baseline, decided, **options)
    return likeliest(counts, asked, margin=margin, n_report=problem.plan.rows["report"])


def merge(found: Sequence[Conclusion], of_second: NDArray[np.bool_]) -> Conclusion:
    """Return what two cross-fitted searches conclude together: about a rule that uses each of the models half the time.

    Parameters
    ----------
    found : sequence of Conclusion
        One per model, each tested on the rows that the other learned from.
    of_second : ndarray of shape (n,), bool
        Which of the calibration rows, the same ones for both, the second model decides.
    """
    one, other = found
    names = tuple(name for name in one.evidence.names if name in other.evidence.names)
    requirement = one.requirement if one.requirement.problem else other.requirement
    if requirement.problem and not (one.requirement.problem and other.requirement.problem):
        requirement = replace(requirement, problem=f"for one of the two models: {requirement.problem}")

    def joined(of: Callable[[Conclusion], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        (first, second) = (of(each) for each in found)
        mine = of_second.reshape(-1, *[1] * (first["calibrate"].ndim - 1))
        return {
            "calibrate": np.where(mine, second["calibrate"], first["calibrate"]),
            "report": np.concatenate([first["report"], second["report"]]),
        }

    def decisions(each: Conclusion) -> dict[str, NDArray[Any]]:
        kept = [each.evidence.names.index(name) for name in names]
        return {part: values[:, kept] for part, values in each.evidence.decisions.items()}

    def groups(name: str) -> dict[str, NDArray[Any]]:
        return joined(lambda each: {part: of[name] for part, of in each.evidence.sensitive.items()})

    attributes = {name: groups(name) for name in one.evidence.sensitive["report"]}
    evidence = Evidence(
        plan=one.evidence.plan,
        names=names,
        y=joined(lambda each: each.evidence.y),
        sensitive={part: {name: of[part] for name, of in attributes.items()} for part in ("calibrate", "report")},
        baseline=joined(lambda each: each.evidence.baseline),
        decisions=joined(decisions),
        settings={
            **one.evidence.settings,
            "required": names.index(REQUIRED) if REQUIRED in names else None,
            "possible": not requirement.problem,
        },
    )
    both = (one.combinations, other.combinations)
    return Conclusion(one.combinations, evidence, requirement, one.baseline_name, both)


def stability(trained: Trained, level: float, stacking: dict[str, Any]) -> list[dict[str, float]]:
    """Return fairness and accuracy, on the calibration rows, of stacks of halves of the stacking rows.

    Each is the most accurate one with the expected fairness `level`, that of the choice.
    """
    if not np.isfinite(level):
        return []
    rows, others = trained.parts["stack"], trained.parts["calibrate"]
    rng, found = np.random.default_rng(stacking["random_state"]), []
    for _ in range(_N_HALVES):
        half = np.sort(rng.permutation(len(rows.y))[: len(rows.y) // 2])
        sensitive = {name: values[half] for name, values in rows.sensitive.items()}
        stack = fit_stack(EvaluationRows(rows.scores[half], rows.y[half], sensitive), trained.names, stacking)
        try:
            stack = stack.select(min_fairness=level)
        except InfeasibleError:
            continue
        decided = others.scores @ stack.weights_ + stack.intercept_ > stacking["threshold"]
        options = {name: stacking[name] for name in ("fairness", "sensitive_mode")}
        counts = count(others.y, others.sensitive, decided, decided[:, None], **options)
        fair = float(counts.sets.fairness(counts.rates())[0])
        found.append({"fairness": fair, "accuracy": float(counts.accuracy()[0])})
    return found


def make_model(
    problem: SearchProblem,
    features: Features,
    combinations: Combinations,
    chosen: str,
    trained: Trained,
    store: StepStore,
    classes: NDArray[Any],
    threshold: float,
) -> SearchModel:
    """Return the chosen candidate as a model of raw rows, with the base models that have a weight in it."""
    place = combinations.names.index(chosen)
    weights, start = combinations.weights[place], 0
    families, kept, names = [], [], []
    for step in trained.done:
        family = store.family(step)
        block = slice(start, start + len(family.names))
        start = block.stop
        # The first family stays in any case: also the constant decision is then a model like all others.
        if step is trained.done[0] or np.any(weights[block] != 0.0):
            families.append(family)
            kept.append(weights[block])
            names += list(trained.names[block])
    others = [name for name in (*problem.columns, *problem.sensitive) if name not in features.encoding.names]
    model = SearchModel(
        features.encoding,
        families,
        tuple(names),
        np.concatenate(kept),
        float(combinations.intercept[place]),
        threshold,
        classes,
        tuple(dict.fromkeys(others)),
    )
    seed = int(problem.plan.settings["seed"])
    some = np.sort(np.random.default_rng(seed).permutation(len(features.others))[:_IMPORTANCE_ROWS])
    model.importance = importance_of(model, features.others[some], random_state=seed)
    return model
