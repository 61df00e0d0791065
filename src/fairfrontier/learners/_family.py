"""What all families of models share: their interface, checked inputs, seeds, and progress."""

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import narwhals as nw
import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

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
    return [name for name, times in Counter(names).items() if times > 1]


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


def features(estimator: Any, X: Any, *, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return X (n, d) as a C-ordered array checked against `estimator`'s features."""
    checked = validate_data(estimator, as_rows(X), dtype=dtype, order="C", reset=False)
    return np.asarray(checked)


def features_and_labels(
    estimator: Any, X: Any, y: Any, *, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Return X (n, d), y as 0.0/1.0 (n,) and the two classes in sorted order."""
    X, y = validate_data(estimator, as_rows(X), y, dtype=dtype, order="C")
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    classes, codes = np.unique(y, return_inverse=True)
    if kind != "binary" or len(classes) > 2:
        raise InvalidInputError(
            f"Only binary classification is supported. The type of the target is {kind}: y must have two "
            f"classes; got {len(classes)}: merge classes, or fit one model per class"
        )
    if len(classes) < 2:
        raise InvalidInputError(
            f"y must have two classes; got only one class, {classes[0]!r}: fit on rows in which both occur"
        )
    return X, codes.astype(np.float64), classes


def features_and_target(
    estimator: Any, X: Any, y: Any, *, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return X (n, d) and a numeric target y (n,)."""
    X, y = validate_data(estimator, as_rows(X), y, dtype=dtype, order="C", y_numeric=True)
    return X, np.asarray(y, dtype=np.float64)


def as_rows(X: Any) -> Any:
    """Return pyarrow tables as arrays; scikit-learn takes the other dataframes as they are."""
    return nw.from_native(X, eager_only=True).to_numpy() if nw.dependencies.is_pyarrow_table(X) else X


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return the root of all seeds of one fit: from an int, a RandomState, a Generator or fresh entropy.

    Examples
    --------
    >>> seed_sequence(3).generate_state(1) == seed_sequence(3).generate_state(1)
    array([ True])
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise InvalidInputError(f"random_state must be non-negative; got {random_state}")
        return np.random.SeedSequence(int(random_state))
    return np.random.SeedSequence(int(check_random_state(random_state).randint(2**31 - 1)))


def check_counts(estimator: Any, *parameters: str) -> None:
    """Raise if one of the estimator's parameters is no int of at least 1."""
    for name in parameters:
        value = getattr(estimator, name)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise InvalidInputError(f"{name} must be an int of at least 1; got {value!r}")


def count_of(value: Any, total: int, *, parameter: str, least: int = 1) -> int:
    """Return how many of `total` things an int (count) or a float (fraction) asks for, at least `least`.

    Examples
    --------
    >>> count_of(0.25, 40, parameter="max_features"), count_of(7, 5, parameter="max_features")
    (10, 5)
    """
    least = min(least, total)
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)) and value >= 1:
        return min(int(value), total)
    if isinstance(value, (float, np.floating)) and 0.0 < value <= 1.0:
        return max(least, int(np.ceil(value * total)))
    raise InvalidInputError(f"{parameter} must be a count (int ≥ 1) or a fraction in (0, 1]; got {value!r}")


T = TypeVar("T")
_silent = ContextVar("_silent", default=False)


@contextmanager
def silence() -> Iterator[None]:
    """Show no bars inside this context: for callers with a display of their own.

    Examples
    --------
    >>> with silence():
    ...     list(track([1, 2], total=2, description="Fitting"))
    [1, 2]
    """
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def track(items: Iterable[T], *, total: int, description: str) -> Iterator[T]:
    """Yield from `items`; show a bar if standard error is a terminal, rich is installed and no `silence` is in effect.

    Examples
    --------
    >>> list(track([1, 2], total=2, description="Fitting"))
    [1, 2]
    """
    if _silent.get() or not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    console = Console(stderr=True)
    yield from rich_track(items, total=total, description=description, console=console, transient=True)
