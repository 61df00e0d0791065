"""The sizes of a run: families, grids, rows."""

from dataclasses import dataclass


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
