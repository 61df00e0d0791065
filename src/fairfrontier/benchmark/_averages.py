"""From records to figures: means and standard errors over splits, bounds, and paired comparisons."""

import csv
import importlib.resources
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from fairfrontier._validation import FloatArray
from fairfrontier.benchmark._delivered import Delivery, delivered_frontier, delivery_of
from fairfrontier.benchmark._methods import CHAMPIONS, METHODS
from fairfrontier.benchmark._records import DONE, FAILED, IN_X, NOT_APPLICABLE, Record
from fairfrontier.benchmark._run import tasks_of_table
from fairfrontier.benchmark._task_data import Method

# The delivered figures are not fields of a record: they are about all splits together.
DELIVERED, MISS_SHARE, MISS_SIZE = "delivered", "miss_share", "miss_size"
# All figures, and what pages call them.
FIGURES = {
    DELIVERED: "Delivered FAUC: every operating point chosen without test rows",
    MISS_SHARE: "Share of asked levels below 1 that were missed",
    MISS_SIZE: "Mean size of a miss",
    "fauc": "FAUC",
    "fauci": "FAUCI",
    "fauc_signed": "Area under the signed hull",
    "fauc_honest": "Honest FAUC: frontier chosen on the ensemble split, evaluated on the test split",
    "fauc_single": "FAUC of our stacks without randomising: each candidate one stack alone",
    "fauc_exp_mse": "FAUC with exp(−MSE) as accuracy",
    "max_accuracy": "Largest accuracy",
    "accuracy_95": "Accuracy at fairness 0.95",
    "accuracy_99": "Accuracy at fairness 0.99",
    "constant_accuracy": "Accuracy of the constant model",
    "seconds": "CPU seconds without training",
}


@dataclass(frozen=True)
class Estimate:
    """A mean over splits and its standard error (NaN with one split)."""

    mean: float
    error: float
    count: int


def estimate(values: FloatArray) -> Estimate | None:
    """Return the mean and standard error of values over splits; None without any.

    Examples
    --------
    >>> estimate(np.array([0.8, 0.9]))
    Estimate(mean=0.85..., error=0.04..., count=2)
    """
    if len(values) == 0:
        return None
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return Estimate(float(np.mean(values)), error, len(values))


@dataclass(frozen=True)
class Entry:
    """One method on one task: its records, one per split."""

    method: Method
    task: str
    records: tuple[Record, ...]

    @property
    def done(self) -> tuple[Record, ...]:
        """Return the records that have figures."""
        return tuple(record for record in self.records if record.status == DONE)

    @property
    def failed(self) -> tuple[Record, ...]:
        """Return the records of failures."""
        return tuple(record for record in self.records if record.status == FAILED)

    @property
    def applies(self) -> bool:
        """Tell whether the method can be used on the task."""
        return not any(record.status == NOT_APPLICABLE for record in self.records)

    @cached_property
    def deliveries(self) -> dict[int, Delivery]:
        """Return what the method delivered in each split in which something could be chosen."""
        return {record.split: one for record in self.done if (one := delivery_of(record)) is not None}

    @cached_property
    def _delivered_parts(self) -> dict[int, float]:
        return _jackknife_parts(self.deliveries)

    def by_split(self, figure: str = "fauc") -> dict[int, float]:
        """Return a figure of each split that has it.

        The delivered FAUC is that of the mean curve. Its parts here are the jackknife's: their mean is the figure, and
        their standard error, and that of paired differences, is the jackknife's.
        """
        if figure == DELIVERED:
            return self._delivered_parts
        if figure in (MISS_SHARE, MISS_SIZE):
            return {split: float(getattr(delivered_frontier([one]), figure)) for split, one in self.deliveries.items()}
        values = {record.split: getattr(record, figure) for record in self.done}
        return {split: float(value) for split, value in values.items() if value is not None}

    def estimate(self, figure: str = "fauc") -> Estimate | None:
        """Return the mean and standard error of a figure over splits."""
        return estimate(np.array(list(self.by_split(figure).values())))


def _jackknife_parts(found: Mapping[int, Delivery]) -> dict[int, float]:
    """Return numbers, one per split, whose mean is the delivered FAUC and whose standard error is the jackknife's."""
    if len(found) < 2:
        return {split: delivered_frontier([one]).fauc() for split, one in found.items()}
    whole = delivered_frontier(list(found.values())).fauc()
    without = np.array(
        [delivered_frontier([one for other, one in found.items() if other != split]).fauc() for split in found]
    )
    parts = whole + (len(found) - 1) * (without.mean() - without)
    return dict(zip(found, parts.tolist(), strict=True))


def _on_common_splits(first: Entry, second: Entry, figure: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return a figure of two entries on the splits that both have."""
    if figure == DELIVERED:
        both = first.deliveries.keys() & second.deliveries.keys()
        # The jackknife's parts depend on which splits there are.
        ours, theirs = (_jackknife_parts({split: one.deliveries[split] for split in both}) for one in (first, second))
        return ours, theirs
    ours, theirs = first.by_split(figure), second.by_split(figure)
    both = ours.keys() & theirs.keys()
    return {split: ours[split] for split in both}, {split: theirs[split] for split in both}


@dataclass(frozen=True)
class PairedDifference:
    """Our method minus a rival, paired over the splits that both have."""

    task: str
    rival: Method
    difference: Estimate
    wins: int


@dataclass(frozen=True)
class TableSummary:
    """All entries of one table.

    Attributes
    ----------
    table : str
        "dp", "eo" or "multi".
    tasks : tuple of str
        Its columns that have records.
    methods : tuple of Method
        Its rows that have records: first those that are not given the attribute at prediction.
    entries : dict
        From (method key, task) to the Entry.
    track : str
        "in-x" or "blind".
    """

    table: str
    tasks: tuple[str, ...]
    methods: tuple[Method, ...]
    entries: Mapping[tuple[str, str], Entry]
    track: str = IN_X

    @property
    def name(self) -> str:
        """Return the name of the table's files."""
        return self.table if self.track == IN_X else f"{self.table}_{self.track}"

    def entry(self, method: Method, task: str) -> Entry:
        """Return one method on one task."""
        return self.entries.get((method.key, task), Entry(method, task, ()))

    def splits(self, task: str, figure: str = "fauc") -> int:
        """Return the largest number of splits that a method has on a task."""
        return max((len(self.entry(method, task).by_split(figure)) for method in self.methods), default=0)

    def best(self, task: str, *, aware: bool, figure: str = "fauc") -> str | None:
        """Return the key of the best method of one kind on a task, among those with the most splits."""
        means: dict[str, float] = {}
        most = self.splits(task, figure)
        for method in self.methods:
            found = self.entry(method, task).estimate(figure)
            # Splits differ more than methods do, so means over different splits cannot be compared.
            if method.aware == aware and found is not None and found.count == most:
                means[method.key] = found.mean
        return max(means, key=lambda key: means[key]) if means else None

    def bound(self, task: str, figure: str) -> float | None:
        """Return, averaged over splits, the largest value of a figure among all methods.

        No FAUC can be above that of "max_accuracy", and none below that of "constant_accuracy".
        """
        largest: dict[int, float] = {}
        for method in self.methods:
            for split, value in self.entry(method, task).by_split(figure).items():
                largest[split] = max(value, largest.get(split, 0.0))
        return float(np.mean(list(largest.values()))) if largest else None

    def comparisons(self, figure: str = "fauc") -> list[PairedDifference]:
        """Return the paired differences of the table's champion and each rival on each task."""
        found = []
        champion = CHAMPIONS[self.table]
        for task in self.tasks:
            first = self.entry(METHODS[self.table][champion], task)
            for rival in self.methods:
                ours, theirs = _on_common_splits(first, self.entry(rival, task), figure)
                both = sorted(ours)
                differences = np.array([ours[split] - theirs[split] for split in both])
                measured = estimate(differences)
                if rival.key != champion and measured is not None:
                    found.append(PairedDifference(task, rival, measured, int((differences > 0).sum())))
        return found


def summarise_table(
    records: Iterable[Record], table: str, track: str = IN_X, own: Mapping[str, Method] | None = None
) -> TableSummary:
    """Return the entries of one table and track from the records of all.

    Parameters
    ----------
    records : iterable of Record
        The records.
    table, track : str
        Which of them.
    own : dict of str to Method, optional
        Methods beside those of the tables.
    """
    known = METHODS[table] | dict(own or {})
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.table == table and record.track == track and record.method in known:
            grouped.setdefault((record.method, record.task), []).append(record)
    found_tasks = {task for _, task in grouped}
    tasks = [task for task in tasks_of_table(table) if task in found_tasks]
    tasks += sorted(found_tasks - set(tasks))
    methods = [method for key, method in known.items() if any(key == m for m, _ in grouped)]
    entries = {
        (key, task): Entry(known[key], task, tuple(sorted(found, key=lambda record: record.split)))
        for (key, task), found in grouped.items()
    }
    return TableSummary(table, tuple(tasks), tuple(sorted(methods, key=lambda method: method.aware)), entries, track)


@cache
def paper_figures() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return the paper's FAUC and standard error by (table, row, task).

    Examples
    --------
    >>> paper_figures()["dp", "FS Kitchen Sink", "adult-gender"]
    (0.866, 0.001)
    """
    source = importlib.resources.files("fairfrontier.benchmark") / "paper_tables.csv"
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return {(row["table"], row["method"], row["task"]): (float(row["fauc"]), float(row["se"])) for row in rows}


def cpu_seconds(records: Iterable[Record]) -> tuple[float, float]:
    """Return the CPU seconds of training, each family once, and of everything else."""
    training: dict[tuple[str, int, str], float] = {}
    rest = 0.0
    for record in records:
        rest += record.seconds
        for family, seconds in record.training.items():
            training[record.task.partition("-")[0], record.split, family] = seconds
    return sum(training.values()), rest
