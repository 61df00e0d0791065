"""Populations from which rows are drawn, and the base models that are fixed before any draw."""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fairfrontier import datasets

# The attribute that the models see or not, and the one that is judged: Adult's race has two values or five.
ATTRIBUTES = {
    "adult-gender": ("adult", "gender", "gender"),
    "adult-race": ("adult", "race", "race_original"),
    "bank-age": ("bank", "age", "age"),
    "default-gender": ("default", "gender", "gender"),
    "compas-gender": ("compas", "gender", "gender"),
    "compas-race": ("compas", "race", "race"),
}
# Simulated populations: the shares of their groups.
SIMULATED = {"simulated-2": [0.35, 0.65], "simulated-5": [0.45, 0.25, 0.15, 0.1, 0.05]}
NAMES = (*ATTRIBUTES, *SIMULATED)
TRACKS = ("in X", "blind")
_TRAINING_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Population:
    """All rows that a draw can take, as the fixed base models see them.

    Attributes
    ----------
    H : ndarray of shape (n, k)
        Scores of the base models.
    y, group : ndarray of shape (n,)
        Labels 0 and 1, and the group as text.
    """

    H: NDArray[np.float64]
    y: NDArray[np.int64]
    group: NDArray[np.str_]


def seed_of(*parts: object) -> int:
    """Return a seed that depends on the parts alone."""
    return zlib.crc32("/".join(map(str, parts)).encode())


def population(name: str, track: str, cache: Path) -> Population:
    """Return the rows of a data set that no base model was trained on.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    track : {"in X", "blind"}
        Whether the attribute is among the features of the base models.
    cache : Path
        A folder that keeps the scores, so that the models are trained once.
    """
    file = cache / f"{name}-{track.replace(' ', '-')}.npz"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **(_simulated if name in SIMULATED else _computed)(name, track))
    with np.load(file) as stored:
        return Population(stored["H"], stored["y"], stored["group"])


def _computed(name: str, track: str) -> dict[str, NDArray]:
    data, source, judged = ATTRIBUTES[name]
    bunch = getattr(datasets, f"load_{data}")()
    X = datasets.design_matrix(bunch, drop_sensitive=source if track == "blind" else False).values
    y = np.asarray(bunch.target, dtype=np.int64)
    group = np.asarray(bunch.sensitive_features[judged], dtype=str)
    train = np.random.default_rng(seed_of(name)).random(len(y)) < _TRAINING_SHARE
    scores = [model.fit(X[train], y[train]).predict_proba(X[~train])[:, 1] for model in _models()]
    # Models of the attribute: what the features tell about it is what has to be undone.
    for model in (_logistic(1.0), HistGradientBoostingClassifier(max_iter=60, random_state=0)):
        scores += list(model.fit(X[train], group[train]).predict_proba(X[~train]).T[1:])
    return {"H": np.stack(scores, axis=1), "y": y[~train], "group": group[~train]}


def _simulated(name: str, track: str) -> dict[str, NDArray]:
    """Return scores of eight linear models of features that differ between the groups."""
    rng, n = np.random.default_rng(seed_of(name)), 40_000
    share = np.array(SIMULATED[name])
    group = rng.choice(len(share), n, p=share)
    shift = rng.normal(0.0, 0.6, (len(share), 5))
    X = rng.normal(size=(n, 5)) + shift[group]
    own = rng.normal(0.0, 0.5, len(share))[group]  # what the label owes to the group itself
    y = X @ [1.0, 0.8, 0.5, 0.0, 0.0] + own + rng.normal(0.0, 1.5, n) > 0.5
    slopes = rng.normal([1.0, 0.8, 0.5, 0.0, 0.0], 0.5, (8, 5))
    scores = X @ slopes.T + (own[:, None] if track == "in X" else 0.0) - 0.5
    return {"H": 1.0 / (1.0 + np.exp(-scores)), "y": y.astype(np.int64), "group": group.astype(str)}


def _models() -> list[ClassifierMixin]:
    return [
        _logistic(1.0),
        _logistic(0.01),
        GaussianNB(var_smoothing=1e-2),
        DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0),
        RandomForestClassifier(60, min_samples_leaf=8, random_state=0),
        ExtraTreesClassifier(60, min_samples_leaf=8, random_state=0),
        HistGradientBoostingClassifier(max_iter=80, random_state=0),
    ]


def _logistic(C: float) -> ClassifierMixin:
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500))
