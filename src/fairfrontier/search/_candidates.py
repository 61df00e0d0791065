"""The end of a search: the candidates, which of them meets what is required, the evidence, and the model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InfeasibleError
from fairfrontier.optimize import FairStacksClassifier, Selection
from fairfrontier.search._evidence import Evidence
from fairfrontier.search._model import SearchModel, balanced_salt, importance_of
from fairfrontier.search._plan import PARTS
from fairfrontier.search._steps import ALONE
from fairfrontier.search._training import EvaluationRows, Run, Trained, fit_stack
from fairfrontier.search._verdict import Counts, compare, count, largest_pair, mean_counts

# Rows on which the importance of columns is judged, and halves of the stacking rows that are stacked again.
_IMPORTANCE_ROWS, _N_HALVES = 1_000, 3
# The name of the candidate that is to meet what is required.
REQUIRED = "required"


@dataclass(frozen=True, eq=False)
class Combinations:
    """Candidates as combinations of the same k base models."""

    names: tuple[str, ...]  # one per candidate
    # weights (c, k), intercept (c,): what a candidate's score is made of
    weights: FloatArray
    intercept: FloatArray
    # (c, 2): fairness and accuracy to expect, by cross-validation in the stacking rows; NaN for single models
    expected: FloatArray

    def of(self, kept: NDArray[np.bool_]) -> "Combinations":
        """Return some of the candidates."""
        names = tuple(name for name, keeps in zip(self.names, kept.tolist(), strict=True) if keeps)
        return Combinations(names, self.weights[kept], self.intercept[kept], self.expected[kept])

    def decisions(self, scores: FloatArray, threshold: float) -> NDArray[np.bool_]:
        """Return the decisions (n, c) from the base models' scores (n, k)."""
        return np.asarray(scores @ self.weights.T + self.intercept > threshold)


def combine(stack: FairStacksClassifier, names: Sequence[str]) -> Combinations:
    """Return the single models that could be deployed, and the stacks of the path from the least to the most fair."""
    alone = [j for j, name in enumerate(names) if name.split("/")[0] in ALONE]
    singles = np.zeros((len(alone), len(names)))
    singles[np.arange(len(alone)), alone] = 1.0
    n_stacks = len(stack.path_.weights)
    expected = np.stack([stack.points_.fairness[:n_stacks], stack.points_.accuracy[:n_stacks]], axis=1)
    return Combinations(
        (*(names[j] for j in alone), *(f"stack {i:02d}" for i in range(n_stacks))),
        np.vstack([singles, stack.path_.weights]),
        np.append(np.zeros(len(alone)), stack.path_.intercept),
        np.vstack([np.full((len(alone), 2), np.nan), expected]),
    )


def with_required(combinations: Combinations, chosen: FairStacksClassifier | None) -> Combinations:
    """Return the candidates with the required stack as the last."""
    if chosen is None or chosen.selection_ is None:
        return combinations
    found = chosen.selection_
    return Combinations(
        (*combinations.names, REQUIRED),
        np.vstack([combinations.weights, chosen.weights_]),
        np.append(combinations.intercept, chosen.intercept_),
        np.vstack([combinations.expected, [found.estimated, found.accuracy]]),
    )


# How much fairer than required the stacks are that are considered, as shares of the way to perfect fairness.
_CUSHIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65)


# Where the promise and the verdict are together less probable than this, no alternative is to be hoped for.
_HOPE = 0.05
# A promise is to be more likely shown than not, or nearly as likely as any can be: more would cost accuracy.
_LIKELY, _NEARLY = 0.5, 0.9


@dataclass(frozen=True, eq=False)
class SearchRequirement:
    """What a user requires, and what became of it."""

    # min_fairness, min_ratio, confidence: what was asked for
    min_fairness: float | None
    min_ratio: float | None
    confidence: float
    selection: Selection | None = None  # what `select` found; None: nothing was asked for
    problem: str = ""  # why no model meets it; empty if one may

    @property
    def asked(self) -> bool:
        return self.min_fairness is not None or self.min_ratio is not None

    def with_cushion(self, share: float) -> dict[str, Any]:
        """Return what to ask `select` for: so much of the way from what is required to perfect fairness."""
        asked = {"min_fairness": self.min_fairness, "min_ratio": self.min_ratio}
        return {name: None if one is None else one + share * (1.0 - one) for name, one in asked.items()}


def meeting(
    stack: FairStacksClassifier, requirement: SearchRequirement
) -> tuple[SearchRequirement, list[FairStacksClassifier]]:
    """Return stacks that probably meet a requirement: the most accurate ones, just so and by growing cushions."""
    if not requirement.asked:
        return requirement, []
    constant, found, problem = None, [], ""
    for share in _CUSHIONS:
        try:
            one = stack.select(**requirement.with_cushion(share))
        except InfeasibleError as error:
            problem = problem or str(error)
            continue
        if one.selection_ is not None and one.selection_.kind != "constant":
            found.append(one)
        elif constant is None:
            constant = one
    if found:
        return requirement, found
    if constant is None:
        return replace(requirement, problem=problem), []
    return replace(requirement, problem="only the same decision for everyone is fair enough."), [constant]


def likeliest(counts: Counts, requirement: SearchRequirement, *, margin: float, n_report: int) -> int:
    """Return which candidate is the likeliest to be shown to meet a requirement and to be an alternative.

    Where no alternative is to be hoped for: the most accurate one that is more likely shown to meet the requirement
    than not.
    """
    level = 1.0 - requirement.confidence
    promise = _promise_probability(counts, requirement, n_report)
    both = promise * compare(counts, largest_pair(counts)).foreseen(margin, level, n_report)
    if both.max() >= _HOPE:
        return int(np.argmax(both))
    enough = promise >= min(_LIKELY, _NEARLY * promise.max())
    return int(np.argmax(np.where(enough, counts.accuracy(), -np.inf)))


def _promise_probability(counts: Counts, requirement: SearchRequirement, n_report: int) -> FloatArray:
    """Return about how probable (k,) it is that other rows show what is required, given these rows."""
    # A pair of rates p, q keeps a ratio c if q - c p is positive, and a fairness f if q - p + 1 - f is.
    asked = []
    if requirement.min_ratio is not None:
        asked.append((requirement.min_ratio, 0.0))
    if requirement.min_fairness is not None:
        difference = counts.sets.compares_differences
        asked.append((1.0, 1.0 - requirement.min_fairness) if difference else (requirement.min_fairness, 0.0))
    rates, sizes = counts.rates(), counts.sizes()
    softened = (rates * sizes + 1.0) / (sizes + 2.0)
    variances = softened * (1.0 - softened) / sizes
    found, share = np.ones(len(rates)), counts.n_rows / n_report
    for slope, slack in asked:
        for i, j in (way for pair in counts.sets.pairs() for way in (pair, pair[::-1])):
            room = rates[:, j] - slope * rates[:, i] + slack
            variance = variances[:, j] + slope**2 * variances[:, i]
            hurdle = ndtri(requirement.confidence) * np.sqrt(share * variance)
            found = np.minimum(found, ndtr((room - hurdle) / np.sqrt((1.0 + share) * variance)))
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What a search concludes."""

    combinations: Combinations  # the candidates, and the baseline where it is one of the stacks
    evidence: Evidence  # the decisions that the verdicts rest on
    requirement: SearchRequirement  # what became of what was asked for
    baseline_name: str  # "baseline", or the stack that takes its place
    counterparts: tuple[Combinations, ...] = ()  # of a cross-fitted search, the candidates of each of its models


def conclude(
    run: Run,
    requirement: SearchRequirement,
    required: FairStacksClassifier | None,
    stacking: dict[str, Any],
    *,
    margin: float,
) -> Conclusion:
    """Make the candidates, and gather their decisions on the calibration and the report rows."""
    problem, trained = run.problem, run.trained
    parts = {part: trained.parts[part] for part in ("calibrate", "report")}
    if required is not None:
        requirement = replace(requirement, selection=required.selection_)
    combinations = with_required(combine(trained.stack, trained.names), required)
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
            "confidence": requirement.confidence,
            "min_fairness": requirement.min_fairness,
            "min_ratio": requirement.min_ratio,
            "required": names.index(REQUIRED) if REQUIRED in names else None,
            "possible": not requirement.problem,
            "report_share": problem.plan.rows["report"] / len(problem.y),
        },
    )
    return Conclusion(combinations, evidence, requirement, baseline_name)


def choose_together(
    offered: Sequence[Sequence[FairStacksClassifier]],
    runs: Sequence[Run],
    asked: SearchRequirement,
    stacking: dict[str, Any],
    *,
    margin: float,
) -> list[FairStacksClassifier | None]:
    """Return one of the stacks of each run: those that will probably be shown to do, together, all that is asked.

    Of two runs each decides half of the rows, so that their rates and accuracies are averaged: decisions that jump from
    one stack of a run to the next leave places between them.
    """
    if not all(offered):
        return [stacks[0] if stacks else None for stacks in offered]
    counted = [_counted(stacks, run, stacking) for stacks, run in zip(offered, runs, strict=True)]
    places = np.array(list(product(*(range(len(stacks)) for stacks in offered))))
    together = mean_counts([counts.of(of_run) for counts, of_run in zip(counted, places.T, strict=True)])
    best = places[likeliest(together, asked, margin=margin, n_report=runs[0].problem.plan.rows["report"])]
    return [stacks[place] for stacks, place in zip(offered, best.tolist(), strict=True)]


def _counted(stacks: Sequence[FairStacksClassifier], run: Run, stacking: dict[str, Any]) -> Counts:
    """Count the decisions of stacks on the calibration rows; without a baseline the first stands for it."""
    rows, problem = run.trained.parts["calibrate"], run.problem
    decided = np.stack([rows.scores @ one.weights_ + one.intercept_ > stacking["threshold"] for one in stacks], axis=1)
    baseline = decided[:, 0] if problem.baseline is None else problem.baseline[problem.rows("calibrate")]
    options = {name: stacking[name] for name in ("fairness", "sensitive_mode")}
    return count(rows.y, rows.sensitive, baseline, decided, **options)


def merge(found: Sequence[Conclusion], of_second: NDArray[np.bool_]) -> Conclusion:
    """Return what two cross-fitted searches conclude together, about a rule that uses each of the models half the time.

    Each was tested on the rows that the other learned from. The calibration rows are the same for both; `of_second`
    (n,) tells which of them the second model decides.
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


def _one_model(run: Run, combinations: Combinations, chosen: str) -> SearchModel:
    """Return the chosen candidate as a model of raw rows, with the base models that have a weight in it."""
    problem, features, trained = run.problem, run.features, run.trained
    place = combinations.names.index(chosen)
    weights, start = combinations.weights[place], 0
    families, kept, names = [], [], []
    for step in trained.done:
        family = run.store.family(step)
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
        float(problem.plan.settings["threshold"]),
        np.array(problem.classes),
        tuple(dict.fromkeys(others)),
    )
    seed = int(problem.plan.settings["seed"])
    some = np.sort(np.random.default_rng(seed).permutation(len(features.others))[:_IMPORTANCE_ROWS])
    model.importance = importance_of(model, features.others[some], random_state=seed)
    return model


def conclude_runs(
    runs: Sequence[Run], asked: SearchRequirement, stacking: dict[str, Any], *, margin: float
) -> Conclusion:
    """Choose the candidates of one run, or of two together, and gather their decisions."""
    offered = [meeting(run.trained.stack, asked) for run in runs]
    required = choose_together([stacks for _, stacks in offered], runs, asked, stacking, margin=margin)
    found = [
        conclude(run, requirement, one, stacking, margin=margin)
        for run, (requirement, _), one in zip(runs, offered, required, strict=True)
    ]
    if len(found) == 1:
        return found[0]
    n_calibrate = runs[0].problem.plan.rows["calibrate"]
    return merge(found, np.random.default_rng(stacking["random_state"]).permutation(n_calibrate) % 2 == 1)


def model_of(runs: Sequence[Run], found: Conclusion, chosen: str) -> SearchModel:
    """Return the chosen candidate as a model of raw rows: one, or two that each decide half of the rows."""
    combinations = found.counterparts or (found.combinations,)
    models = [_one_model(run, one, chosen) for run, one in zip(runs, combinations, strict=True)]
    first = models[0]
    if len(models) == 2:
        first.partner = models[1]
        first._salt = _salt(runs, combinations, chosen)
        weights = [one.importance or {} for one in models]
        names = dict.fromkeys(name for one in weights for name in one)
        mean = {name: float(np.mean([one.get(name, 0.0) for one in weights])) for name in names}
        first.importance = dict(sorted(mean.items(), key=lambda pair: -pair[1]))
    return first


def _salt(runs: Sequence[Run], combinations: Sequence[Combinations], chosen: str) -> int:
    """Return the salt of two models, from the rows that neither of them was trained on."""
    problem = runs[0].problem
    decided = np.full((2, len(problem.y)), np.nan)
    for run, one, values in zip(runs, combinations, decided, strict=True):
        place = [name == chosen for name in one.names]
        for part, rows in run.trained.parts.items():
            values[run.problem.rows(part)] = one.of(np.array(place)).decisions(
                rows.scores, float(problem.plan.settings["threshold"])
            )[:, 0]
    known = ~np.isnan(decided).any(axis=0)
    matrix = runs[0].features.others[known[problem.parts != PARTS.index("train")]]
    groups = [
        attribute.codes[known] == code for attribute in problem.attributes for code in range(len(attribute.values))
    ]
    row_sets = [group & (problem.y[known] == label) for group in groups for label in (False, True)]
    return balanced_salt(matrix, np.diff(decided[:, known], axis=0)[0], [one for one in row_sets if one.any()])
