"""Check and convert features, labels and seeds for the learners."""

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from fairfrontier.exceptions import InvalidInputError


def features(estimator: Any, X: Any, *, dtype: DTypeLike = np.float64, reset: bool = False) -> NDArray[Any]:
    """Return X (n, d) as a C-ordered array checked against `estimator`'s features."""
    checked = validate_data(estimator, as_rows(X), dtype=dtype, order="C", reset=reset)
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
