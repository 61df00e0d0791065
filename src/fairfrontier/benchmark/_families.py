"""Base learners of one split: their sizes, and their predictions, kept for every attribute, measure and stack."""

import io
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier._writing import write_atomically
from fairfrontier.benchmark._records import BLIND, IN_X
from fairfrontier.benchmark._tasks import (
    Problem,
    SplitRows,
    UserTable,
    load_problem,
    prepare_table,
    seed_of,
    split_rows,
    subset,
)
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import (
    FAGTB,
    FCSC,
    AdversarialDebiasing,
    FittedModels,
    KernelFair,
    MinipatchTrees,
    MinipatchTreesRegressor,
    ModelFamily,
    Reductions,
    classifier_zoo,
    fit_group_models,
    fit_models,
    forest_trees,
    regressor_zoo,
)

SHARED = ("minipatch", "forest", "zoo")
# The fair learners of the paper are parts of the kitchen sink; the others are rows alone.
FAIR = ("adversarial", "fagtb", "reductions")
RIVALS = ("reductions_boosted", "fcsc", "kernel")
# Models of the attribute for our stacks, and one for methods that infer groups.
ATTRIBUTE, GROUPS = "attribute", "groups"


@dataclass(frozen=True)
class RunSettings:
    """Sizes of a run; records of different settings never mix.

    Attributes
    ----------
    name : str
        The name under which records and predictions are kept.
    minipatch_trees, forest_trees : int
        Trees of the two tree families.
    zoo : tuple of str
        Short names of the classifiers (or regressors) to keep; empty: all of them.
    values : int
        Values of each method's fairness parameter, and stacks on a path.
    epochs, rounds, iterations : int
        Effort of adversarial debiasing, FAGTB and reductions.
    max_rows : int or None
        About how many rows of a data set to use; None: all.
    grid : str
        "ours", or "paper": the fair learners' parameters as in the paper's supplement.
    """

    name: str
    minipatch_trees: int = 1000
    forest_trees: int = 500
    zoo: tuple[str, ...] = ()
    values: int = 20
    epochs: int = 30
    rounds: int = 300
    iterations: int = 50
    max_rows: int | None = None
    grid: str = "ours"


@dataclass(frozen=True, eq=False)
class FamilyPredictions:
    """Predictions of a family for the two parts of a split that it was not trained on."""

    names: tuple[str, ...]  # models, ``family/name``
    # ensemble, test (n, k): scores of class 1; for regression predicted numbers
    ensemble: NDArray[np.float32]
    test: NDArray[np.float32]
    seconds: float  # CPU seconds of training and predicting


class SplitData:
    """One split of one data set, with the predictions of the families on it.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    split : int
        Number of the split.
    settings : RunSettings
        Sizes of the families.
    folder : Path or None
        Where predictions are kept; None: only in memory.
    on_train : callable, optional
        Called with a text before a family is trained.
    table : UserTable, optional
        The user's table that `dataset` names; None: one of the package's data sets.
    """

    def __init__(
        self,
        dataset: str,
        split: int,
        settings: RunSettings,
        folder: Path | None = None,
        on_train: Callable[[str], None] | None = None,
        table: UserTable | None = None,
    ) -> None:
        self.dataset, self.split, self.settings = dataset, split, settings
        self.problem: Problem = (
            load_problem(dataset, settings.max_rows)
            if table is None
            else subset(prepare_table(table).problem, dataset, settings.max_rows)
        )
        self.rows: SplitRows = split_rows(self.problem, dataset, split)
        self._folder = None
        if folder is not None:
            self._folder = folder / settings.name / dataset / f"split_{split:02d}"
        self._on_train = on_train
        self._loaded: dict[str, FamilyPredictions] = {}
        self._last_stack: tuple[str, Any] = ("", None)

    def features(self, attribute: str, track: str = IN_X) -> FloatArray:
        """Return the features (n, d) of a track: on the blind one without those that hold the attribute."""
        return self.problem.X_without[attribute] if track == BLIND else self.problem.X

    def family(self, name: str, attribute: str = "", fairness: str = "", track: str = IN_X) -> FamilyPredictions:
        """Return the predictions of a family; fair learners have one grid for each attribute and measure.

        Parameters
        ----------
        name : str
            One of `SHARED`, `FAIR`, `RIVALS`, "attribute" (models of the attribute) or "groups".
        attribute, fairness : str
            The attribute and the measure that fair learners are trained for.
        track : str
            "in-x" or "blind".
        """
        key = family_key(name, attribute, fairness, track)
        return self.kept(key, lambda: self._train(name, attribute, fairness, track))

    def kept(self, key: str, make: Callable[[], FamilyPredictions]) -> FamilyPredictions:
        """Return the predictions of a key: those in memory or on the disk, or else those that `make` returns."""
        if key not in self._loaded:
            path = None if self._folder is None else self._folder / f"{key}.npz"
            found = None if path is None else read_predictions(path)
            if found is None:
                if self._on_train is not None:
                    self._on_train(f"{self.dataset} split {self.split}: training {key}")
                found = make()
                if path is not None:
                    write_predictions(path, found)
            self._loaded[key] = found
        return self._loaded[key]

    def stack(self, key: str, fit: Callable[[], Any]) -> Any:
        """Return the stack of a key: the last one, which is kept in memory, or what `fit` returns."""
        if self._last_stack[0] != key:
            self._last_stack = (key, fit())
        return self._last_stack[1]

    def _train(self, name: str, attribute: str, fairness: str, track: str) -> FamilyPredictions:
        start = time.process_time()
        y, train = self.problem.y, self.rows.train
        X = self.features(attribute, BLIND if name == GROUPS else track)
        seed = seed_of(self.dataset, self.split, family_key(name, attribute, fairness, track))
        if name in SHARED:
            family = _shared_family(name, X[train], y[train], self.problem.regression, self.settings, seed)
        else:
            group = self.problem.attributes[attribute][train]
            family = _family_of_groups(name, X[train], y[train], {attribute: group}, fairness, self.settings, seed)
        ensemble, test = (
            np.asfortranarray(family.predict_matrix(X[rows]), dtype=np.float32)
            for rows in (self.rows.ensemble, self.rows.test)
        )
        return FamilyPredictions(tuple(family.names), ensemble, test, time.process_time() - start)


def family_key(name: str, attribute: str = "", fairness: str = "", track: str = IN_X) -> str:
    """Return the file name of a family: with the attribute in X the shared ones depend on nothing else.

    Examples
    --------
    >>> family_key("forest", "race", "demographic_parity"), family_key("fagtb", "race", "demographic_parity")
    ('forest', 'fagtb-race-demographic_parity')
    >>> family_key("forest", "race", "demographic_parity", "blind")
    'forest-race-blind'
    """
    end = f"-{BLIND}" if track == BLIND else ""
    if name in SHARED:
        return f"{name}-{attribute}{end}" if end else name
    if name == GROUPS:
        return f"{name}-{attribute}"
    if name in (*FAIR, *RIVALS, ATTRIBUTE):
        return f"{name}-{attribute}-{fairness}{end}"
    raise InvalidInputError(
        f"name must be one of {', '.join((*SHARED, *FAIR, *RIVALS, ATTRIBUTE, GROUPS))}; got {name!r}"
    )


def _family_of_groups(
    name: str, X: FloatArray, y: FloatArray, groups: dict[str, Any], fairness: str, settings: RunSettings, seed: int
) -> ModelFamily:
    """Train a family that knows the groups of the training rows."""
    if name == GROUPS:
        return _group_model(X, next(iter(groups.values())), seed)
    if name == ATTRIBUTE:
        return fit_group_models(X, groups, y=y, fairness=fairness, random_state=seed)
    learner = _fair_learner(name, fairness, settings, seed)
    paper = settings.grid == "paper" and learner.paper_range is not None
    values = learner.grid_values("paper" if paper else "ours", settings.values)
    grid: ModelFamily = learner.fit_grid(X, y.astype(int), sensitive_features=groups, values=values)
    return grid


def _shared_family(
    name: str, X: FloatArray, y: FloatArray, regression: bool, settings: RunSettings, seed: int
) -> ModelFamily:
    target = y if regression else y.astype(int)
    if name == "minipatch":
        trees = MinipatchTreesRegressor if regression else MinipatchTrees
        return trees(settings.minipatch_trees, random_state=seed).fit(X, target)
    if name == "forest":
        return forest_trees(_forest(regression, settings, seed).fit(X, target))
    zoo = regressor_zoo(random_state=seed) if regression else classifier_zoo(random_state=seed)
    kept = [(n, model) for n, model in zoo if not settings.zoo or n.rpartition("/")[2] in settings.zoo]
    return fit_models(kept, X, target)


def _forest(regression: bool, settings: RunSettings, seed: int) -> Any:
    # Leaves of ten rows: trees with pure leaves predict 0 or 1 only, and make worse stacks (cross-validated on the
    # ensemble rows).
    if regression:
        return RandomForestRegressor(settings.forest_trees, min_samples_leaf=3, max_features=0.33, random_state=seed)
    return RandomForestClassifier(settings.forest_trees, min_samples_leaf=10, random_state=seed)


def _fair_learner(name: str, fairness: str, settings: RunSettings, seed: int) -> Any:
    if name == "adversarial":
        return AdversarialDebiasing(fairness=fairness, epochs=settings.epochs, random_state=seed)
    if name == "fagtb":
        return FAGTB(fairness=fairness, n_estimators=settings.rounds, random_state=seed)
    if name == "fcsc":
        boosted = _boosted(seed, n_estimators=settings.rounds, learning_rate=0.05, max_depth=4)
        return FCSC(fairness=fairness, estimator=boosted, random_state=seed)
    if name == "kernel":
        return KernelFair(fairness=fairness, epochs=settings.epochs, random_state=seed)
    if name == "reductions_boosted":
        # Fewer steps: boosted trees respond well to each, and take many times as long as a logistic regression.
        boosted = _boosted(
            seed, n_estimators=40, learning_rate=0.15, max_depth=0, max_leaves=15, grow_policy="lossguide"
        )
        steps = max(settings.iterations // 10, 2)
        return Reductions(fairness=fairness, estimator=boosted, max_iter=steps, random_state=seed)
    return Reductions(fairness=fairness, max_iter=settings.iterations, random_state=seed)


def _boosted(seed: int, **options: Any) -> Any:
    """Return XGBoost's trees: as accurate as scikit-learn's histogram boosting, in a third of the time on one core."""
    xgboost = require("xgboost", extra="benchmark", purpose="A rival on boosted trees")
    # A weight of 5 is that of the 20 rows or more which scikit-learn asks of a leaf.
    fixed = {"tree_method": "hist", "min_child_weight": 5.0, "n_jobs": 1, "random_state": seed}
    return xgboost.XGBClassifier(**fixed, **options)


def _group_model(X: FloatArray, group: Any, seed: int) -> FittedModels:
    """Return a model of the attribute itself, for methods that infer groups: the probability of the second value."""
    # Balanced: without it, a model of a small group would never predict that group.
    model = HistGradientBoostingClassifier(max_iter=100, class_weight="balanced", random_state=seed)
    return fit_models([("groups/hist_boosting", model)], X, group)


def write_predictions(path: Path, predictions: FamilyPredictions) -> None:
    """Write predictions compressed, in one step: a reader sees all of them or none."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        names=np.array(predictions.names, dtype=str),
        ensemble=predictions.ensemble,
        test=predictions.test,
        seconds=np.float64(predictions.seconds),
    )
    write_atomically(path, buffer.getvalue())


def read_predictions(path: Path) -> FamilyPredictions | None:
    """Return stored predictions; None where the file is absent or damaged, so that the family is trained again."""
    try:
        # Opened here, because NumPy leaves a damaged file open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return FamilyPredictions(
                tuple(file["names"].tolist()), file["ensemble"], file["test"], float(file["seconds"])
            )
    except (FileNotFoundError, zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError):
        return None


FULL = RunSettings("full")
PAPER_GRIDS = RunSettings("paper-grids", grid="paper")
_FEW_MODELS = ("logistic", "ridge", "naive_bayes", "tree", "hist_boosting")
QUICK = RunSettings(
    "quick",
    minipatch_trees=100,
    forest_trees=50,
    zoo=_FEW_MODELS,
    values=8,
    epochs=10,
    rounds=40,
    iterations=10,
    max_rows=6000,
)
# For tests: everything runs in seconds.
TINY = RunSettings(
    "tiny",
    minipatch_trees=20,
    forest_trees=10,
    zoo=_FEW_MODELS[:4],
    values=6,
    epochs=2,
    rounds=5,
    iterations=3,
    max_rows=1200,
)
SETTINGS = {settings.name: settings for settings in (FULL, PAPER_GRIDS, QUICK, TINY)}
