"""What a search keeps of each step, in memory or in a folder, so that a killed search goes on where it was."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._persistence import load, save
from fairfrontier._writing import write_atomically
from fairfrontier.learners import ModelFamily
from fairfrontier.search._steps import Step


@dataclass(frozen=True, eq=False)
class StepResult:
    """A finished step.

    Attributes
    ----------
    names : tuple of str
        Its models.
    scores : ndarray of shape (n, k), float32
        Their scores of the rows that are not training rows.
    seconds : float
        How long it took.
    """

    names: tuple[str, ...]
    scores: NDArray[np.float32]
    seconds: float


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
