"""Model families, as the rest of the library uses them: names, and one matrix of predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairfrontier.exceptions import InvalidInputError

Matrix = NDArray[np.floating[Any]]


@runtime_checkable
class ModelFamily(Protocol):
    """Fitted models that predict together.

    `names` (k,) are distinct and have the form ``family/name``; `predict_matrix` gives (n, k): scores of
    class 1 in [0, 1], or predicted numbers for regression. Where `is_randomized` is true the columns are *expected
    decisions* of randomised classifiers: evaluate them as they are (``threshold=None``), because a threshold
    would turn each into another classifier.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Return the models' names, each ``family/name``."""
        ...

    @property
    def is_randomized(self) -> bool:
        """Tell whether the columns are expected decisions of randomised classifiers."""
        ...

    @property
    def estimators(self) -> list[tuple[str, Any]]:
        """Return (name, fitted estimator) pairs, one per column."""
        ...

    def predict_matrix(self, X: Any) -> Matrix:
        """Return the predictions (n, k) for the rows of X (n, d)."""
        ...


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """Return `count` names whose alphabetical order is that of the numbers.

    Examples
    --------
    >>> numbered("forest", 11)[-2:]
    ('forest/tree_09', 'forest/tree_10')
    """
    width = len(str(max(count - 1, 0)))
    return tuple(f"{prefix}/tree_{j:0{width}d}" for j in range(count))


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, each once, in order."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return list(twice)


@dataclass(frozen=True)
class FamilyUnion:
    """Several families side by side: their names and the columns of their matrices in order.

    Parameters
    ----------
    families : tuple of ModelFamily
        The parts; their names are distinct.
    """

    families: tuple[ModelFamily, ...]

    def __post_init__(self) -> None:
        if not self.families:
            raise InvalidInputError("families must hold at least one family; got none: pass fitted families")
        for family in self.families:
            if not isinstance(family, ModelFamily):
                raise InvalidInputError(
                    "families must be fitted model families (with names and predict_matrix); got "
                    f"{type(family).__name__}: wrap estimators with fit_models([(name, estimator)], X, y)"
                )
        twice = repeated(self.names)
        if twice:
            raise InvalidInputError(
                f"families must have distinct model names; got {twice[0]!r} twice ({len(twice)} such names): "
                "give each family its own prefix"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all models, family after family."""
        return tuple(name for family in self.families for name in family.names)

    @property
    def is_randomized(self) -> bool:
        """Tell whether every part is randomised; ask the parts when they differ."""
        return all(family.is_randomized for family in self.families)

    @property
    def estimators(self) -> list[tuple[str, Any]]:
        """Return the (name, fitted estimator) pairs of all parts."""
        return [pair for family in self.families for pair in family.estimators]

    def predict_matrix(self, X: Any) -> Matrix:
        """Return the predictions (n, k) of all parts side by side."""
        parts = [family.predict_matrix(X) for family in self.families]
        total = sum(part.shape[1] for part in parts)
        matrix = np.empty((parts[0].shape[0], total), dtype=np.result_type(*parts), order="F")
        start = 0
        for part in parts:
            matrix[:, start : start + part.shape[1]] = part
            start += part.shape[1]
        return matrix

    def predict_weighted(self, X: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum (n,) of all models' predictions times `weights` (k,)."""
        ends = np.cumsum([len(family.names) for family in self.families])
        parts = list(zip(self.families, np.split(weights, ends[:-1]), strict=True))
        used = [pair for pair in parts if pair[1].any()] or parts[:1]
        return np.asarray(sum(_weighted(family, X, part) for family, part in used))


def _weighted(family: ModelFamily, X: Any, weights: NDArray[np.float64]) -> Any:
    """Return the weighted sum (n,) of the predictions of a family, by its own quicker way if it has one."""
    own = getattr(family, "predict_weighted", None)
    return family.predict_matrix(X) @ weights if own is None else own(X, weights)
