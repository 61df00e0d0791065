"""The steps of a search: each trains one family of models, always the same one for the same seed.

What a step gave is kept in memory or in a folder, so that a killed search goes on where it was.
"""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairfrontier._persistence import load, save
from fairfrontier._validation import FloatArray
from fairfrontier._writing import write_atomically
from fairfrontier.learners import MinipatchTrees, ModelFamily, fit_group_models, fit_models

# Families whose members are models that somebody could deploy alone.
ALONE = ("linear", "boosting", "forest")
# The first steps, one of each family, and what follows them again and again.
_FIRST = ("linear", "boosting", "group", "forest", "minipatch")
_AGAIN = ("boosting", "minipatch", "forest", "kernel")
# Rows that a family learns from at the most: beyond them only the time grows.
_MOST_ROWS = {"linear": 200_000, "kernel": 50_000, "forest": 100_000, "minipatch": 100_000, "group": 200_000}
_PATCH_ROWS, _PATCH_TREES = 2_000, 100
# Seconds per row, encoded column and step, and per step; measured on one core.
_SECONDS = {"linear": 2e-7, "boosting": 1.5e-6, "group": 1.6e-6, "forest": 1.4e-6, "minipatch": 1e-7, "kernel": 4e-7}
_SECONDS_PER_STEP = 0.3


@dataclass(frozen=True)
class Step:
    """One step."""

    name: str  # its name, such as ``boosting-03``
    kind: str  # what it trains
    number: int  # its number among the steps of its kind
    seed: int  # of its random numbers

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return about how long it takes with so many rows and encoded columns."""
        return _SECONDS_PER_STEP + _SECONDS[self.kind] * min(n_rows, _MOST_ROWS.get(self.kind, n_rows)) * n_columns


@dataclass(frozen=True, eq=False)
class Training:
    """What the steps learn from."""

    matrix: FloatArray  # (n, q): encoded features
    y: NDArray[np.bool_]  # (n,): the label
    sensitive: dict[str, NDArray[Any]]  # the attributes
    # fairness, sensitive_mode: the measure
    fairness: str
    sensitive_mode: str
    n_jobs: int | None  # threads of tree families; the result does not depend on them

    def capped(self, kind: str, seed: int) -> "Training":
        """Return the rows for a kind of model: all, or as many as it can use."""
        most = _MOST_ROWS.get(kind, len(self.y))
        if len(self.y) <= most:
            return self
        rows = np.sort(np.random.default_rng(seed).choice(len(self.y), most, replace=False))
        sensitive = {name: values[rows] for name, values in self.sensitive.items()}
        return Training(self.matrix[rows], self.y[rows], sensitive, self.fairness, self.sensitive_mode, self.n_jobs)


def schedule(n_steps: int, seed: int) -> list[Step]:
    """Return the first `n_steps` steps.

    Examples
    --------
    >>> [step.name for step in schedule(7, seed=0)]
    ['linear-0', 'boosting-0', 'group-0', 'forest-0', 'minipatch-0', 'boosting-1', 'minipatch-1']
    """
    kinds = [_FIRST[i] if i < len(_FIRST) else _AGAIN[(i - len(_FIRST)) % len(_AGAIN)] for i in range(n_steps)]
    seeds = np.random.SeedSequence(seed).generate_state(max(n_steps, 1)) >> 1
    numbers = [kinds[:i].count(kind) for i, kind in enumerate(kinds)]
    return [
        Step(f"{kind}-{number}", kind, number, int(one))
        for kind, number, one in zip(kinds, numbers, seeds, strict=True)
    ]


def train(step: Step, training: Training) -> ModelFamily:
    """Return the fitted family of a step."""
    return _TRAINERS[step.kind](step, training.capped(step.kind, step.seed))


def _linear(step: Step, training: Training) -> ModelFamily:
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=500)),
        "sparse": make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500)),
    }
    return _fitted("linear", models, training)


def _kernel(step: Step, training: Training) -> ModelFamily:
    rng = np.random.default_rng(step.seed)
    model = make_pipeline(
        StandardScaler(),
        Nystroem(
            gamma=float(10.0 ** rng.uniform(-2.5, -1.0)) * 10.0 / training.matrix.shape[1],
            n_components=min(150, len(training.y)),
            random_state=step.seed,
        ),
        LogisticRegression(max_iter=500),
    )
    return _fitted("linear", {f"kernel_{step.number}": model}, training)


def _boosting(step: Step, training: Training) -> ModelFamily:
    settings: dict[str, Any] = {"learning_rate": 0.1, "max_leaf_nodes": 15, "max_iter": 150, "min_samples_leaf": 20}
    if step.number > 0:
        rng = np.random.default_rng(step.seed)
        rate = float(10.0 ** rng.uniform(-1.4, -0.7))
        settings = {
            "learning_rate": rate,
            "max_leaf_nodes": int(rng.choice([7, 15, 31])),
            "max_iter": int(np.clip(12.0 / rate, 60, 250)),
            "min_samples_leaf": int(rng.choice([10, 20, 50])),
            "max_features": float(rng.choice([0.3, 0.6, 1.0])),
            "l2_regularization": float(rng.choice([0.0, 1.0, 10.0])),
        }
    model = HistGradientBoostingClassifier(**settings, early_stopping=False, random_state=step.seed)
    return _fitted("boosting", {f"trees_{step.number}": model}, training)


def _forest(step: Step, training: Training) -> ModelFamily:
    kind = RandomForestClassifier if step.number % 2 == 0 else ExtraTreesClassifier
    model = kind(
        60,
        min_samples_leaf=4 + 4 * (step.number // 2),
        max_features=0.3,
        n_jobs=training.n_jobs,
        random_state=step.seed,
    )
    return _fitted("forest", {f"{'random' if step.number % 2 == 0 else 'extra'}_{step.number}": model}, training)


def _minipatch(step: Step, training: Training) -> ModelFamily:
    trees = MinipatchTrees(
        n_estimators=_PATCH_TREES,
        max_samples=min(_PATCH_ROWS, max(2, len(training.y) // 2)),
        max_features=min(10, training.matrix.shape[1]) if training.matrix.shape[1] > 1 else 1.0,
        n_jobs=training.n_jobs,
        random_state=step.seed,
    )
    return trees.fit(training.matrix, training.y)


def _group(step: Step, training: Training) -> ModelFamily:
    return fit_group_models(
        training.matrix,
        training.sensitive,
        y=training.y,
        fairness=training.fairness,
        sensitive_mode=training.sensitive_mode,
        random_state=step.seed,
    )


def _fitted(family: str, models: dict[str, Any], training: Training) -> ModelFamily:
    pairs = [(f"{family}/{name}", model) for name, model in models.items()]
    return fit_models(pairs, training.matrix, training.y)


_TRAINERS: dict[str, Callable[[Step, Training], ModelFamily]] = {
    "linear": _linear,
    "kernel": _kernel,
    "boosting": _boosting,
    "forest": _forest,
    "minipatch": _minipatch,
    "group": _group,
}


def column_names(step: Step, family: ModelFamily) -> tuple[str, ...]:
    """Return the names of a step's models, distinct over all steps: ``family/…``."""
    if step.kind != "minipatch":
        return tuple(family.names)
    return tuple(name.replace("/", f"/{step.number}_") for name in family.names)


def estimate(steps: Sequence[Step], n_rows: int, n_columns: int) -> float:
    """Return about how many seconds the steps take."""
    return sum(step.seconds(n_rows, n_columns) for step in steps)


@dataclass(frozen=True, eq=False)
class StepResult:
    """A finished step."""

    names: tuple[str, ...]  # its models
    scores: NDArray[np.float32]  # (n, k): their scores of the rows that are not training rows
    seconds: float  # how long it took


class StepStore:
    """Finished steps by name.

    Parameters
    ----------
    folder : Path or None
        Where they are kept; None: in memory.
    plan_hash : str
        Records of another plan are not read.
    """

    def __init__(self, folder: Path | None, plan_hash: str) -> None:
        self.folder = folder
        self.plan_hash = plan_hash
        self._results: dict[str, StepResult] = {}
        self._families: dict[str, ModelFamily] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, step: Step) -> StepResult | None:
        """Return a finished step, or None."""
        if step.name not in self._results and self.folder is not None:
            record = self.folder / f"{step.name}.json"
            if record.is_file():
                content: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
                if content["plan"] == self.plan_hash:
                    scores = np.load(self.folder / f"{step.name}.npy", allow_pickle=False)
                    self._results[step.name] = StepResult(tuple(content["names"]), scores, content["seconds"])
        return self._results.get(step.name)

    def seconds(self, step: Step) -> float:
        """Return how long a finished step took; 0 for another."""
        found = self.get(step)
        return 0.0 if found is None else found.seconds

    def put(self, step: Step, family: ModelFamily, result: StepResult) -> None:
        """Keep a step; the record, written last, says that all of it is there."""
        self._results[step.name] = result
        if self.folder is None:
            self._families[step.name] = family
            return
        save(family, self.folder / f"{step.name}.skops")
        content = io.BytesIO()
        np.save(content, result.scores, allow_pickle=False)
        write_atomically(self.folder / f"{step.name}.npy", content.getvalue())
        record = {"plan": self.plan_hash, "names": result.names, "seconds": result.seconds}
        write_atomically(self.folder / f"{step.name}.json", json.dumps(record).encode())

    def family(self, step: Step) -> ModelFamily:
        """Return the fitted models of a step."""
        if step.name not in self._families:
            if self.folder is None:
                raise KeyError(step.name)
            self._families[step.name] = load(self.folder / f"{step.name}.skops")
        return self._families[step.name]
