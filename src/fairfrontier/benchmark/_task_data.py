"""One method on one task and split: what it may see, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._families import FAIR, SplitData, family_key
from fairfrontier.benchmark._records import IN_X
from fairfrontier.benchmark._tasks import Task
from fairfrontier.identify._points import TradeoffPoints, tradeoff_points
from fairfrontier.metrics._contrasts import MEAN_DIFFERENCE
from fairfrontier.quantify._fauc import StepWeight

FAUC_WEIGHT = StepWeight(0.8)
MEASURES = {"dp": "demographic_parity", "eo": "equal_opportunity", "multi": "demographic_parity"}
# The third kind beside the two tracks: a method that is given the attribute at prediction.
AWARE = "aware"


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A method on one split.

    Attributes
    ----------
    points : TradeoffPoints
        Its candidates on the test rows, the constant model last.
    chosen : TradeoffPoints or None
        The same candidates on the ensemble rows, out of fold where the method was fitted to those. The biases of
        candidates that randomise are of their own decisions there.
    exp_mse : TradeoffPoints or None
        Regression: the test points with e to the −MSE as accuracy.
    details : dict
        Facts about the fit.
    without_randomising : TradeoffPoints or None
        For candidates that randomise: the test points of the more probable stack of each.
    asked : TradeoffPoints or None
        For a method that takes a tolerance: its decisions on the test rows when it is asked for each of `LEVELS`, the
        constant model last. None: its operating points are chosen among the candidates on the ensemble rows.
    """

    points: TradeoffPoints
    chosen: TradeoffPoints | None
    exp_mse: TradeoffPoints | None
    details: dict[str, Any]
    without_randomising: TradeoffPoints | None = None
    asked: TradeoffPoints | None = None


@dataclass(frozen=True, eq=False)
class TaskData:
    """One task on one split: rows, labels, groups and base predictions for the methods."""

    task: Task
    table: str
    split: SplitData
    track: str = IN_X

    @property
    def fairness(self) -> str:
        """Return the fairness measure of the table; that of a regression is in the units of its target, from 0 to 1."""
        return MEAN_DIFFERENCE if self.task.regression else MEASURES[self.table]

    def X(self, part: str) -> FloatArray:
        """Return the features of the track on "train", "ensemble" or "test" rows."""
        rows = getattr(self.split.rows, part)
        return np.asarray(self.split.features(self.task.attribute, self.track)[rows])

    @property
    def n_groups(self) -> int:
        """Return the number of groups of the attribute."""
        return len(np.unique(self.split.problem.attributes[self.task.attribute]))

    def y(self, part: str) -> FloatArray:
        """Return the target of "train", "ensemble" or "test" rows."""
        return np.asarray(self.split.problem.y[getattr(self.split.rows, part)])

    def groups(self, part: str, attribute: str | None = None) -> NDArray[Any]:
        """Return an attribute, by default the task's, on "train", "ensemble" or "test" rows."""
        values = self.split.problem.attributes[attribute or self.task.attribute]
        return np.asarray(values[getattr(self.split.rows, part)])

    def matrix(self, families: tuple[str, ...], part: str) -> FloatArray:
        """Return the predictions (n, k) of families side by side, float64."""
        parts = [getattr(self._family(name), part) for name in families]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def names(self, families: tuple[str, ...]) -> list[str]:
        """Return the names of the models of families."""
        return [name for family in families for name in self._family(family).names]

    def training(self, families: tuple[str, ...]) -> dict[str, float]:
        """Return the CPU seconds that each family took."""
        keys = {name: family_key(name, self.task.attribute, self.fairness, self.track) for name in families}
        return {key: round(self._family(name).seconds, 2) for name, key in keys.items()}

    def points(
        self, scores: FloatArray, part: str, *, threshold: float | None = 0.5, accuracy: str = ""
    ) -> TradeoffPoints:
        """Return the points of candidates with scores (n, p) on the "ensemble" or "test" rows."""
        return tradeoff_points(
            self.y(part),
            {f"candidate_{j:02d}": column for j, column in enumerate(scores.T)},
            sensitive_features={self.task.attribute: self.groups(part)},
            fairness=self.fairness,
            accuracy=accuracy or ("r2" if self.task.regression else "accuracy"),
            threshold=None if self.task.regression else threshold,
        )

    def _family(self, name: str) -> Any:
        return self.split.family(name, self.task.attribute, self.fairness, self.track)


@dataclass(frozen=True)
class Method:
    """One row of a table.

    Attributes
    ----------
    key : str
        Its name in records and options.
    title : str
        Its name in tables.
    run : callable
        From the method and a TaskData to an Evaluated.
    families : tuple of str
        The base learners it needs; in a regression task without the fair learners, which only classify.
    paper_row : str or None
        The row of the paper that it is compared with.
    aware : bool
        Whether it is given the sensitive attribute at prediction.
    classifies_only : bool
        Whether it does not apply to regression.
    two_groups : bool
        Whether it compares two groups only.
    """

    key: str
    title: str
    run: Callable[["Method", TaskData], Evaluated]
    families: tuple[str, ...]
    paper_row: str | None = None
    aware: bool = False
    classifies_only: bool = False
    two_groups: bool = False

    def kind(self, track: str) -> str:
        """Return what the method knows of the attribute at prediction: "aware", or that of the track."""
        return AWARE if self.aware else track

    def unfit(self, task: Task, n_groups: int = 2) -> str:
        """Return why the method cannot be used on a task; empty where it can."""
        if self.classifies_only and task.regression:
            return f"{self.title} only classifies, and {task.name} is a regression task"
        if self.two_groups and n_groups > 2:
            return f"{self.title} compares two groups, and {task.name} has {n_groups}"
        return ""

    def needs(self, task: Task) -> tuple[str, ...]:
        """Return the families that the method uses on a task."""
        return tuple(f for f in self.families if not (task.regression and f in FAIR))


def evaluate_both(
    data: TaskData, ensemble: FloatArray, test: FloatArray, details: dict[str, Any], threshold: float | None = 0.5
) -> Evaluated:
    """Evaluate candidates whose scores on both parts are known."""
    exp_mse = data.points(test, "test", accuracy="exp_mse") if data.task.regression else None
    chosen = data.points(ensemble, "ensemble", threshold=threshold)
    return Evaluated(data.points(test, "test", threshold=threshold), chosen, exp_mse, details)
