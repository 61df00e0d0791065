"""One search from its checked input to the model: once, or cross-fitted with two models that test each other's rows."""

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier.search._conclusion import Conclusion, conclude, make_model, merge
from fairfrontier.search._model import SearchModel, of_partner
from fairfrontier.search._plan import PARTS
from fairfrontier.search._problem import SearchProblem
from fairfrontier.search._requirement import SearchRequirement
from fairfrontier.search._steps import StepStore, schedule
from fairfrontier.search._training import TRAINING_SHARE, Features, Trained, encode, take_steps

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class Run:
    """The training of one model: its rows, features, steps, and where they are kept."""

    problem: SearchProblem
    features: Features
    trained: Trained
    store: StepStore


def train_runs(
    problem: SearchProblem,
    used: dict[str, NDArray[Any]],
    stacking: dict[str, Any],
    *,
    n_steps: int,
    seconds: float | None,
    n_jobs: int | None,
    folder: Path | None,
    say: Progress,
) -> list[Run]:
    """Train the models of a search: one, or two that learn from different halves of the rows.

    Parameters
    ----------
    problem : SearchProblem
        The rows.
    used : dict of str to ndarray
        The features.
    stacking : dict
        Settings of the stacks.
    n_steps : int
        The most steps of each.
    seconds : float, optional
        That are left; None: no limit.
    n_jobs : int, optional
        Threads.
    folder : Path, optional
        For the steps.
    say : callable
        Is told what is done, and which share is.
    """
    views, begun = problem.views(), clock.monotonic()
    steps: Sequence[Any] = schedule(n_steps, int(stacking["random_state"]))
    runs: list[Run] = []
    for i, view in enumerate(views):
        features = encode(
            view, used, fairness=stacking["fairness"], sensitive_mode=stacking["sensitive_mode"], n_jobs=n_jobs
        )
        kept = None if folder is None else folder / "steps" / ("" if i == 0 else "second")
        store = StepStore(kept, problem.plan.hash)
        # The second takes the steps of the first, whatever its own frontier says: candidates must have counterparts.
        budget = None
        if seconds is not None and i == 0:
            budget = (TRAINING_SHARE * seconds - (clock.monotonic() - begun)) / len(views)
        trained = take_steps(
            steps,
            view,
            features,
            store,
            stacking,
            budget=budget,
            may_stop=i == 0,
            say=_naming(say, i, len(views)),
            times=len(views) - i,
        )
        steps = trained.done
        runs.append(Run(view, features, trained, store))
    return runs


def _naming(say: Progress, number: int, of: int) -> Progress:
    """Return a progress display that says which of the models is meant."""

    def named(what: str, share: float) -> None:
        about_all = what.startswith("up to ")
        if about_all and number > 0:
            return
        say(what if of == 1 or about_all else f"{what} (model {number + 1} of {of})", (number + share) / of)

    return named


def conclude_runs(
    runs: Sequence[Run], asked: SearchRequirement, stacking: dict[str, Any], *, margin: float
) -> Conclusion:
    """Choose and test the candidates of one run, or of two together."""
    if len(runs) == 1:
        return conclude(runs[0].problem, runs[0].trained, asked, stacking, margin=margin)
    found = [conclude(run.problem, run.trained, asked, stacking, margin=margin) for run in runs]
    parts = runs[0].problem.parts
    calibrate = parts[parts != PARTS.index("train")] == PARTS.index("calibrate")
    return merge(found, of_partner(runs[0].features.others[calibrate]))


def model_of(
    runs: Sequence[Run], found: Conclusion, chosen: str, classes: NDArray[Any], threshold: float
) -> SearchModel:
    """Return the chosen candidate as a model of raw rows."""
    combinations = found.counterparts or (found.combinations,)
    models = [
        make_model(run.problem, run.features, one, chosen, run.trained, run.store, classes, threshold)
        for run, one in zip(runs, combinations, strict=True)
    ]
    first = models[0]
    if len(models) == 2:
        first.partner = models[1]
        weights = [one.importance or {} for one in models]
        names = dict.fromkeys(name for one in weights for name in one)
        mean = {name: float(np.mean([one.get(name, 0.0) for one in weights])) for name in names}
        first.importance = dict(sorted(mean.items(), key=lambda pair: -pair[1]))
    return first
