"""What the parameters of a stack mean: ridges to try, ridge scales, and columns for the sensitive attributes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._attribute_models import GROUP
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._ridge_path import LARGEST
from fairfrontier.optimize._tuning import FREE

# A group's values in each attribute, in the order of the columns.
Groups = Sequence[tuple[str, tuple[Any, ...]]]


def ridges(alpha: Any, alphas: Any, *, loss: str, regression: bool) -> FloatArray:
    """Return the ridges to try, ascending: one if `alpha` is a number."""
    if not isinstance(alpha, str):
        return np.array([validate.number(alpha, parameter="alpha", low=0.0, high=LARGEST)])
    validate.one_of(alpha, ("cv",), parameter="alpha")
    if alphas is not None:
        grid = np.sort(np.asarray(validate.column(alphas, parameter="alphas"), dtype=np.float64))
        if len(grid) == 0 or not np.all(np.isfinite(grid)) or grid[0] < 0 or grid[-1] > LARGEST:
            raise InvalidInputError(
                f"alphas must be at least one number, none negative or above {LARGEST:g}; got {alphas!r}"
            )
        return grid
    if loss != "squared":  # every ridge costs a path of solutions in every fold
        return np.logspace(0.0, 4.0, 5)
    return np.logspace(0.0, 5.0, 20) if regression else np.logspace(0.0, 7.0, 22)


def family_names(names: Sequence[str]) -> list[str]:
    """Return the family of each model: its name up to the first slash; models without one are together, in ''."""
    return [name.partition("/")[0] if "/" in name else "" for name in names]


def families(names: Sequence[str], n_free: int = 0) -> IntArray:
    """Return the number of each model's family, and −1 for `n_free` further columns.

    Examples
    --------
    >>> families(["forest/1", "forest/2", "logistic", "svm"], n_free=1)
    array([ 0,  0,  1,  1, -1])
    """
    keys = family_names(names)
    index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([index[key] for key in keys] + [-1] * n_free, dtype=np.intp)


def group_columns(names: Sequence[str], n_free: int = 0) -> IntArray | None:
    """Return the number of what each model of the attribute predicts, −1 for every other model; None: there are none.

    A model of the attribute is named ``group/what/learner``; learners of the same thing have the same number. With
    `n_free` further columns, which hold the attribute itself, its models have nothing to add: None as well.

    Examples
    --------
    >>> group_columns(["forest/1", "group/sex=m/logistic", "group/sex=m/trees", "group/age=old/trees"])
    array([-1,  0,  0,  1])
    """
    keys = [name.rpartition("/")[0] if name.count("/") > 1 else name for name in names]
    index: dict[str, int] = {}
    for key, family in zip(keys, family_names(names), strict=True):
        if family == GROUP:
            index.setdefault(key, len(index))
    if not index or n_free:
        return None
    return np.array([index.get(key, -1) for key in keys], dtype=np.intp)


def ridge_scales(family_scales: Any, names: Sequence[str], n_free: int, *, tuned: bool) -> Any:
    """Return D for the models and `n_free` columns that are hardly shrunk, or "cv" where it is to be tuned."""
    k = len(names)
    if isinstance(family_scales, str):
        validate.one_of(family_scales, ("cv",), parameter="family_scales")
        if tuned:
            return "cv"
    expected = f"'cv', None, a dict of family to scale, or {k} positive numbers"
    if isinstance(family_scales, dict):
        keys = family_names(names)
        for family in family_scales:
            validate.one_of(family, set(keys), parameter="family_scales")
        given = np.array([family_scales.get(key, 1.0) for key in keys], dtype=np.float64)
    elif family_scales is None or isinstance(family_scales, str):
        given = np.ones(k)
    else:
        given = np.asarray(family_scales, dtype=np.float64)
    if given.shape != (k,) or not np.all((given > 0) & np.isfinite(given)):
        raise InvalidInputError(f"family_scales must be {expected}; got {family_scales!r}")
    return np.concatenate([given, np.full(n_free, FREE)])


def check_groups_given(sensitive_features: Any) -> dict[str, NDArray[Any]]:
    """Return the attributes at prediction, which an attribute-aware stack cannot do without."""
    if sensitive_features is None:
        raise InvalidInputError(
            "sensitive_features must be given at prediction: attribute_aware=True made it a part of the stack"
        )
    return validate.attribute_columns(sensitive_features)


def indicator_names(groups: Groups) -> list[str]:
    """Return a name for each column of `indicators`."""
    return [f"{name}={value}" for name, values in groups for value in values[1:]]


def indicators(columns: Mapping[str, NDArray[Any]], groups: Groups, n_rows: int) -> FloatArray:
    """Return indicator columns of the attributes, all groups but the first of each, shape (n_rows, Σ(g − 1)).

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        The attributes of rows to predict.
    groups : sequence of (name, groups)
        The attributes at fit.
    n_rows : int
        Rows to predict.
    """
    if len(groups) == 1 and len(columns) == 1:  # one attribute needs no name
        columns = {groups[0][0]: next(iter(columns.values()))}
    if set(columns) != {name for name, _ in groups}:
        raise InvalidInputError(
            f"sensitive_features must be {[name for name, _ in groups]}, as in fit; got {list(columns)}"
        )
    result = []
    for name, values in groups:
        validate.same_length(n_rows, **{f"sensitive_features[{name!r}]": len(columns[name])})
        codes = {group: code for code, group in enumerate(values)}
        code_of = np.array([codes.get(value, -1) for value in columns[name].tolist()], dtype=np.intp)
        if np.any(code_of < 0):
            unknown = columns[name][np.flatnonzero(code_of < 0)[0]]
            raise InvalidInputError(
                f"sensitive_features[{name!r}] must be one of {list(values)}, as in fit; got {unknown!s}: "
                "an attribute-aware stack knows no other group"
            )
        result += [(code_of == code).astype(np.float64) for code in range(1, len(values))]
    return np.stack(result, axis=1)
