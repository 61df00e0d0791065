"""What readers of fitted models share: their input, their errors, and how they recognise types."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import GroupError, InvalidInputError

Columns = dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class ModelQuery:
    """The rows to predict, and what else some models need.

    Attributes
    ----------
    X : array-like of shape (n, p)
        Features.
    y : array-like of shape (n,) or None
        Labels, where they are known.
    sensitive_features : array-like, dict or dataframe, or None
        The groups, for models with one threshold per group.
    scores : bool
        True: scores where a model has them. False: decisions, or for a randomised model the probability of decision 1.
    train : (X, y), "cv" or None
        The rows that the candidates of a search are fitted on.
    fit_params : dict
        Further arguments of their `fit`, one value per row.
    n_jobs : int or None
        Processes in which they are fitted.
    """

    X: Any
    y: Any
    sensitive_features: Any
    scores: bool
    train: Any
    fit_params: Mapping[str, Any]
    n_jobs: int | None

    def attribute_columns(self, model: str) -> dict[str, NDArray[Any]]:
        """Return the sensitive attributes, which the model of that name needs."""
        if self.sensitive_features is None:
            raise InvalidInputError(
                f"sensitive_features must be given: a {model} has a threshold for each group; got None"
            )
        return validate.attribute_columns(self.sensitive_features)


def not_fitted(model: Any, how: str = "call fit first") -> InvalidInputError:
    """Return the error for a model that has not been fitted."""
    return InvalidInputError(f"model must be fitted; this {type(model).__name__} is not: {how}")


def not_binary(model: Any, got: str) -> InvalidInputError:
    """Return the error for a model that does not decide between two classes."""
    return InvalidInputError(
        f"model must decide between two classes; this {type(model).__name__} {got}: evaluate one class against the rest"
    )


def known_groups(values: Iterable[Any], known: Iterable[Any], model: str) -> None:
    """Raise if a group has no threshold: its library would silently take that of another group, or decide 0."""
    have = set(known)
    for value in dict.fromkeys(values):
        if value not in have:
            shown = ", ".join(sorted(map(repr, have))[:8])
            raise GroupError(
                f"sensitive_features must hold groups that the {model} was fitted on, {shown}; got {value!r}: drop "
                "these rows, or fit it again with such rows"
            )


def numbered(name: str, count: int) -> list[str]:
    """Return `count` names whose alphabetical order is that of the numbers.

    Examples
    --------
    >>> numbered("predictor", 11)[-2:]
    ['predictor 09', 'predictor 10']
    """
    width = max(2, len(str(count - 1)))
    return [f"{name} {j:0{width}d}" for j in range(count)]


def as_decision(values: Any, model: Any) -> FloatArray:
    """Return predictions as 0 and 1 floats; refuse anything else."""
    found = np.asarray(values)
    if not np.isin(found, (0, 1)).all():
        raise not_binary(model, f"predicts {np.unique(found)[:4].tolist()}")
    return found.astype(np.float64)


def is_a(model: Any, package: str, name: str) -> bool:
    """Tell whether a class of that package and name is among the types of an object, without importing it.

    Examples
    --------
    >>> is_a(np.bool_(True), "numpy", "generic"), is_a(True, "numpy", "generic")
    (True, False)
    """
    return any(package_of(kind) == package and kind.__name__ == name for kind in type(model).__mro__)


def package_of(kind: type) -> str:
    """Return the name of the package that a class comes from."""
    return kind.__module__.partition(".")[0]
