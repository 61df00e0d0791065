"""What may come in, and how we say no.

Every public function passes its input through here once, most of them by way of `fairfrontier._rows`; the code behind
it then trusts its arrays.
"""

import difflib
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from fairfrontier._columns import FloatArray as FloatArray
from fairfrontier._columns import IntArray as IntArray
from fairfrontier._columns import (
    as_array,
    described,
    factorize,
    factorize_objects,
    frame_columns,
    is_frame,
    is_series,
    numeric,
    unique_names,
)
from fairfrontier._columns import column as column
from fairfrontier._columns import finite as finite
from fairfrontier._columns import is_missing as is_missing
from fairfrontier._columns import refuse_masked as refuse_masked
from fairfrontier._columns import same_order as same_order
from fairfrontier.exceptions import GroupError, InvalidInputError

# An error lists this many options and no more.
_SHOWN_OPTIONS = 12
# Largest sum of weights, and the reciprocal of the smallest: squares of both are still numbers.
_LARGEST_WEIGHT = 1e100
# An attribute of more different numbers than the first may be a number, like an age in years, and no set of groups;
# with more than the second, and fractions, it is one.
_MOST_CODES, _MOST_NUMBERS = 30, 200


@dataclass(frozen=True, eq=False)
class Predictions:
    """Scores of `k` models for `n` rows: `matrix` (n, k), `names` (k,), and whether the names are the caller's."""

    matrix: NDArray[Any]
    names: tuple[str, ...]
    named: bool = True

    def aligned(self, names: tuple[str, ...] | None, first_row: int = 0) -> "Predictions":
        """Return the scores of the models `names` in that order: by name where the scores have names, else by position.

        Parameters
        ----------
        names : tuple of str or None
            The models of the whole table; None: those that are here.
        first_row : int
            The number of the first row, for the error.
        """
        if names is None or (self.named and self.names == names):
            return self
        where = f"in the chunk that begins at row {first_row}" if first_row else "here"
        if len(names) != len(self.names):
            raise InvalidInputError(
                f"every chunk must have the scores of the same {len(names)} models; got {len(self.names)} columns "
                f"{where}"
            )
        if not self.named:
            return Predictions(self.matrix, names)
        missing = [name for name in names if name not in set(self.names)]
        if missing:
            other = next(name for name in self.names if name not in set(names))
            raise InvalidInputError(
                f"every chunk must have the scores of the same models; {missing[0]!r} is missing {where}, and "
                f"{other!r} is there instead: name the columns alike in every chunk"
            )
        position = {name: i for i, name in enumerate(self.names)}
        return Predictions(self.matrix[:, [position[name] for name in names]], names)


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute: `codes` (n,) index into `values`, the groups in sorted order."""

    name: str
    codes: IntArray
    values: tuple[Any, ...]

    def by_size(self) -> "Attribute":
        """Return the same with larger groups first, of equals the one whose first row is first: names do not matter.

        Examples
        --------
        >>> Attribute("sex", np.array([1, 0, 1]), ("f", "m")).by_size()
        Attribute(name='sex', codes=array([0, 1, 0]), values=('m', 'f'))
        """
        size = np.bincount(self.codes, minlength=len(self.values))
        first = np.full(len(size), len(self.codes))
        np.minimum.at(first, self.codes, np.arange(len(self.codes)))
        order = np.lexsort((first, -size))
        rank = np.argsort(order)
        return Attribute(self.name, rank[self.codes], tuple(self.values[i] for i in order))


def one_of(value: str, options: Iterable[str], *, parameter: str) -> str:
    """Return `value` if it is one of `options`, else name the nearest option.

    Examples
    --------
    >>> one_of("sets", ["steps", "linear"], parameter="kind")
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.InvalidInputError: kind must be one of 'linear', 'steps'; got 'sets'; did you mean 'steps'?
    """
    options = sorted(options)
    if isinstance(value, str) and value in options:
        return value
    near = difflib.get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, options[:_SHOWN_OPTIONS]))
    more = f", … ({len(options)} in all)" if len(options) > _SHOWN_OPTIONS else ""
    raise InvalidInputError(f"{parameter} must be one of {shown}{more}; got {value!r}{hint}")


def number(
    value: Any,
    *,
    parameter: str,
    low: float = -np.inf,
    high: float = np.inf,
    strict: bool = False,
    advice: str = "",
) -> float:
    """Return `value` as a float inside [low, high] (inside (low, high) when `strict`)."""
    try:
        result = np.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        result = np.nan
    if np.isnan(result) and not isinstance(value, float):
        raise InvalidInputError(f"{parameter} must be a number; got {value!r}{advice}") from None
    inside = low < result < high if strict else low <= result <= high
    if not inside:
        raise InvalidInputError(f"{parameter} must be {_within(low, high, strict)}; got {value!r}{advice}")
    return result


def _within(low: float, high: float, strict: bool = False) -> str:
    """Say where a number must be, without a limit that is infinite."""
    if strict or high < np.inf:
        left, right = "()" if strict else "[]"
        return f"in {left}{low:g}, {high:g}{right}"
    return "a number" if low == -np.inf else f"at least {low:g}"


def whole_number(value: Any, *, parameter: str, low: float = -np.inf, high: float = np.inf, advice: str = "") -> int:
    """Return `value` as an int inside [low, high]; 60.0 is a whole number, 60.7 and True are not.

    Examples
    --------
    >>> whole_number(60.7, parameter="n_resamples", low=50)
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.InvalidInputError: n_resamples must be a whole number; got 60.7
    """
    whole = None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        whole = int(value)
    elif not isinstance(value, (bool, np.bool_)):
        try:
            whole = operator.index(value)
        except TypeError:
            whole = None
    if whole is None:
        raise InvalidInputError(f"{parameter} must be a whole number; got {value!r}{advice}")
    if not low <= whole <= high:
        raise InvalidInputError(f"{parameter} must be {_within(low, high)}; got {value!r}{advice}")
    return whole


def interpolation(value: Any, *, signed: bool = True, advice: str = "") -> bool | Literal["signed"]:
    """Return the parameter `interpolate` if it is a bool or, where `signed` says so, the word "signed".

    Examples
    --------
    >>> interpolation(2)
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.InvalidInputError: interpolate must be False, True or 'signed'; got 2
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if signed and isinstance(value, str) and value == "signed":
        return "signed"
    allowed = "False, True or 'signed'" if signed else "False or True"
    raise InvalidInputError(f"interpolate must be {allowed}; got {value!r}{advice}")


def fairness_levels(grid: ArrayLike) -> FloatArray:
    """Return levels of fairness from a parameter `grid`."""
    levels = numeric(column(grid, parameter="grid"), parameter="grid").astype(np.float64)
    wrong = levels[~((levels >= 0.0) & (levels <= 1.0))]
    if levels.size == 0 or wrong.size:
        raise InvalidInputError(f"grid must hold levels of fairness in [0, 1]; got {wrong.tolist()[:5]}")
    return levels


def same_length(n_rows: int, reference: str = "y_true", /, **others: int) -> None:
    """Check that every named length equals `n_rows`, that of `reference`."""
    for name, length in others.items():
        if length != n_rows:
            raise InvalidInputError(
                f"{name} must have as many rows as {reference}, {n_rows}; got {length}: pass rows that belong together"
            )


def by_name(values: Any) -> bool:
    """Tell columns by name from everything else: some sparse matrices are mappings too."""
    return isinstance(values, Mapping) and not issparse(values)


def named_columns(values: Any, *, parameter: str) -> tuple[list[NDArray[Any]], tuple[str, ...]] | None:
    """Return the columns of a dict or a dataframe, and their names; None: it is neither."""
    if is_frame(values):
        return frame_columns(values, parameter=parameter)
    if not by_name(values):
        return None
    names = tuple(str(name) for name in values)
    unique_names(names, parameter=parameter)
    return [column(one, parameter=f"{parameter}[{name!r}]") for name, one in values.items()], names


def predictions(y_preds: Any, *, classes_of: NDArray[Any] | None = None) -> Predictions:
    """Return predictions from a dict, a 2-D or 1-D array, or a dataframe of any library.

    Parameters
    ----------
    y_preds : dict, dataframe or array-like
        Scores of models.
    classes_of : ndarray of shape (n,), optional
        The labels: a column that holds their two classes, such as "no" and "yes" or 1 and 2, is taken as decisions.
    """
    found = named_columns(y_preds, parameter="y_preds")
    if found is None:
        return _predictions_from_array(y_preds, classes_of)
    columns, names = found
    if not columns:
        raise _no_model()
    lengths = {name: len(values) for name, values in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        odd = next(name for name, length in lengths.items() if length != len(columns[0]))
        raise InvalidInputError(
            f"y_preds must have equally long columns; got {len(columns[0])} rows in {names[0]!r} and {lengths[odd]} in "
            f"{odd!r}: predict the same rows with every model"
        )
    numbers = [
        numeric(_decisions(values, classes_of), parameter=f"y_preds[{name!r}]")
        for name, values in zip(names, columns, strict=True)
    ]
    dtype = np.result_type(np.float32, *numbers)
    matrix = _side_by_side(numbers, dtype)
    if matrix is None:
        matrix = np.empty((len(numbers[0]), len(numbers)), dtype=dtype, order="F")
        for j, values in enumerate(numbers):
            matrix[:, j] = values
    return Predictions(matrix, names)


def _side_by_side(columns: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return columns of one array (n, k), or rows of one (k, n), as (n, k): a copy takes longer than measures do."""
    base = columns[0].base
    if not isinstance(base, np.ndarray) or base.ndim != 2 or base.dtype != dtype:
        return None
    for matrix in (base, base.T):
        there = matrix.shape == (len(columns[0]), len(columns)) and all(
            values.base is base and values.dtype == dtype and _same_place(values, matrix[:, j])
            for j, values in enumerate(columns)
        )
        if there:
            return matrix
    return None


def _same_place(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Tell whether two arrays of one type are the same numbers in memory."""
    place = first.__array_interface__["data"][0] == second.__array_interface__["data"][0]
    return place and first.strides == second.strides and first.shape == second.shape


def _predictions_from_array(y_preds: Any, classes_of: NDArray[Any] | None) -> Predictions:
    name = str(getattr(y_preds, "name", None) or "") if is_series(y_preds) else ""
    if is_series(y_preds):
        y_preds = column(y_preds, parameter="y_preds")
    matrix = as_array(y_preds, parameter="y_preds", tuples_are_labels=False)
    if matrix.ndim == 1 and len(matrix):
        matrix = matrix[:, None]
    if 0 in matrix.shape[1:] or matrix.shape == (0,):
        raise _no_model()
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"y_preds must be a dict, a dataframe or a 2-D array; got {described(y_preds, matrix)}: "
            "give one column per model"
        )
    names = (name,) if name else tuple(f"model_{j}" for j in range(matrix.shape[1]))
    return Predictions(numeric(_decisions(matrix, classes_of), parameter="y_preds"), names, bool(name))


def _decisions(values: NDArray[Any], classes_of: NDArray[Any] | None) -> NDArray[Any]:
    """Return 0 and 1 for values that are the classes of the labels, where these are not 0 and 1 themselves."""
    if classes_of is None or values.dtype.kind == "f" or classes_of.dtype.kind in "bf":
        return values
    kinds = ("iu", "iu") if values.dtype.kind in "iu" else ("OUS", "OUS")
    if values.dtype.kind not in kinds[0] or classes_of.dtype.kind not in kinds[1]:
        return values
    classes = distinct(classes_of, parameter="y_true")[0]
    if len(classes) != 2 or classes == [0, 1] or not np.isin(values, np.array(classes, dtype=values.dtype)).all():
        return values
    return np.asarray(values == classes[1]).astype(np.uint8)


def check_finite(matrix: NDArray[Any], names: Sequence[str]) -> None:
    """Raise if a prediction in a matrix (n, k) is not a finite number, and name its model."""
    if np.isfinite(matrix).all():
        return
    row, model = np.argwhere(~np.isfinite(matrix))[0]
    raise InvalidInputError(
        f"predictions must have no NaN or inf; got {matrix[row, model]} of model {names[model]!r} at row {row}: "
        "drop these rows or impute them"
    )


def _no_model() -> InvalidInputError:
    return InvalidInputError("y_preds must hold at least one model; got none: give one column of scores per model")


def two_classes(classes: Sequence[Any], *, parameter: str = "y_true") -> tuple[Any, Any]:
    """Return the two classes of a label from its sorted distinct values, the positive one last."""
    if len(classes) == 2:
        return classes[0], classes[1]
    shown = ", ".join(map(repr, classes[:5])) + (", …" if len(classes) > 5 else "")
    advice = (
        "for regression use accuracy='r2' or 'exp_mse'"
        if len(classes) > 2
        else "both classes must occur: use more rows"
    )
    raise InvalidInputError(f"{parameter} must have two classes; got {len(classes)} ({shown}): {advice}")


def labels(y_true: Any) -> tuple[NDArray[np.bool_], tuple[Any, Any]]:
    """Return y as booleans (True: the second class in sorted order) and the two classes."""
    classes, codes = known_values(column(y_true, parameter="y_true"), parameter="y_true")
    return np.asarray(codes == 1), two_classes(classes)


def known_values(
    values: NDArray[Any],
    *,
    parameter: str,
    rows: IntArray | None = None,
    error: type[InvalidInputError] = InvalidInputError,
) -> tuple[list[Any], IntArray]:
    """Return the distinct values of a column, sorted, and each row's index among them; none may be missing.

    `rows` (n,) are the numbers of the rows in the whole table; a `GroupError` says what to do with unknown groups.
    """
    found, codes = distinct(values, parameter=parameter)
    for code, value in enumerate(found):
        if is_missing(value):
            row, shown = int((codes == code).argmax()), "NaN" if isinstance(value, float) else repr(value)
            advice = "drop these rows" + (", or make 'unknown' a group of its own" if error is GroupError else "")
            number = row if rows is None else int(rows[row])
            raise error(f"{parameter} must have no missing value; got {shown} at row {number}: {advice}")
    return found, codes


def distinct(values: NDArray[Any], *, parameter: str) -> tuple[list[Any], IntArray]:
    """Return the distinct values of a column, sorted where they can be, and each row's index among them."""
    if values.dtype.kind in "biufmMUS":
        found, codes = factorize(values)
        return found.tolist(), codes
    return factorize_objects(values, parameter=parameter)


def target(y_true: Any) -> FloatArray:
    """Return a regression target as floats."""
    values = numeric(column(y_true, parameter="y_true"), parameter="y_true").astype(np.float64, copy=False)
    if values.size == 0:
        raise InvalidInputError("y_true must have at least one row; got none")
    finite(values, parameter="y_true")
    return values


def sample_weights(sample_weight: Any, n_rows: int, *, first_row: int = 0, whole: bool = True) -> FloatArray | None:
    """Return non-negative finite weights, or None.

    Parameters
    ----------
    sample_weight : array-like of shape (n,) or None
        The weights.
    n_rows : int
        How many there must be.
    first_row : int
        The number of the first row in the whole table.
    whole : bool
        True: these are the weights of all rows, and must have a positive sum.
    """
    if sample_weight is None:
        return None
    weights = numeric(column(sample_weight, parameter="sample_weight"), parameter="sample_weight")
    weights = weights.astype(np.float64, copy=False)
    same_length(n_rows, sample_weight=len(weights))
    finite(weights, parameter="sample_weight", rows=np.arange(first_row, first_row + n_rows))
    if weights.min(initial=0.0) < 0:
        raise InvalidInputError(
            f"sample_weight must be non-negative; got {weights.min():g} at row {first_row + weights.argmin()}: "
            "give 0 to rows that must not count"
        )
    if not whole:
        return weights
    with np.errstate(over="ignore"):
        total_weight(float(weights.sum()), parameter="sample_weight")
    return weights


def total_weight(total: float, *, parameter: str) -> None:
    """Raise if the weights of all rows are zero, or too large or too small to compute with."""
    if total == 0:
        raise InvalidInputError(f"{parameter} must have a positive sum; got only zeros: give some row a weight")
    if not 1.0 / _LARGEST_WEIGHT <= total <= _LARGEST_WEIGHT:
        raise InvalidInputError(
            f"{parameter} must sum to {1.0 / _LARGEST_WEIGHT:g} at least and {_LARGEST_WEIGHT:g} at most; got "
            f"{total:g}: divide all weights by a common number"
        )


def attributes(sensitive_features: Any, n_rows: int) -> tuple[Attribute, ...]:
    """Return each sensitive attribute as integer codes with its sorted groups."""
    columns = attribute_columns(sensitive_features)
    for name, values in columns.items():
        same_length(n_rows, **{f"sensitive_features[{name!r}]": len(values)})
    return tuple(_attribute(name, values) for name, values in columns.items())


class AttributeColumns(dict[str, NDArray[Any]]):
    """Sensitive attributes by name that are validated; the door lets them pass."""


def attribute_columns(sensitive_features: Any) -> AttributeColumns:
    """Return the sensitive attributes by name; there must be at least one."""
    if isinstance(sensitive_features, AttributeColumns):
        return sensitive_features
    if sensitive_features is None:
        raise InvalidInputError("sensitive_features must be given: one value per row, e.g. data['sex']; got None")
    columns = AttributeColumns(_attribute_columns(sensitive_features))
    if not columns:
        raise InvalidInputError(
            "sensitive_features must hold at least one attribute; got none: give one value per row, e.g. data['sex']"
        )
    return columns


def _attribute_columns(sensitive_features: Any) -> dict[str, NDArray[Any]]:
    found = named_columns(sensitive_features, parameter="sensitive_features")
    if found is not None:
        return dict(zip(found[1], found[0], strict=True))
    if is_series(sensitive_features):
        name = getattr(sensitive_features, "name", None)
        return {str(name or "sensitive_feature"): column(sensitive_features, parameter="sensitive_features")}
    if isinstance(sensitive_features, str):
        raise InvalidInputError(
            f"sensitive_features must hold one value per row; got {sensitive_features!r}: if that is the name of a "
            f"column, pass the column itself, data[{sensitive_features!r}]"
        )
    array = as_array(sensitive_features, parameter="sensitive_features")
    if array.ndim == 2 and array.shape[1] != 1:
        return {f"sensitive_feature_{j}": array[:, j] for j in range(array.shape[1])}
    # What is no array at all is described as it came.
    return {"sensitive_feature": column(array if array.ndim else sensitive_features, parameter="sensitive_features")}


def _attribute(name: str, values: NDArray[Any]) -> Attribute:
    groups, codes = known_values(values, parameter=f"sensitive_features[{name!r}]", error=GroupError)
    check_groups(groups, name)
    return Attribute(name, codes, tuple(groups))


def check_groups(groups: Sequence[Any], name: str) -> None:
    """Raise if an attribute has one group only, or is a number and no set of groups."""
    check_no_measurement(groups, name)
    if len(groups) < 2:
        shown = repr(groups[0]) if groups else "no row at all"
        raise GroupError(
            f"sensitive_features[{name!r}] must have at least two groups; got only {shown}: "
            "fairness compares groups, so use rows in which more than one occurs"
        )


def check_no_measurement(groups: Sequence[Any], name: str) -> None:
    """Raise if an attribute is a number with fractions and no set of groups; warn of many whole numbers."""
    numbers = (int, float, np.integer, np.floating)
    if len(groups) > _MOST_CODES and all(isinstance(group, numbers) for group in groups):
        advice = (
            f"sensitive_features[{name!r}] has {len(groups)} different numbers, and as groups each would be compared "
            "with each: cut it into classes (np.digitize), give ProbableGroups.from_numbers(values) to measure its "
            "covariance with the decisions, or make it text if they are groups after all"
        )
        fractions = any(isinstance(group, float) and not group.is_integer() for group in groups)
        if fractions and len(groups) > _MOST_NUMBERS:
            shares = all(0.0 <= group <= 1.0 for group in groups)
            raise GroupError(advice + ("; of probabilities of groups make ProbableGroups(matrix)" if shares else ""))
        # Whole numbers may be codes of groups, and a few fractions grades.
        warnings.warn(advice, UserWarning, stacklevel=2)


def unit_interval_pairs(
    fairness: ArrayLike, accuracy: ArrayLike, *, parameter: str = "fairness"
) -> tuple[FloatArray, FloatArray]:
    """Return two equally long 1-D float arrays inside [0, 1]; `parameter` is the name of the first."""
    f, a = _unit_interval(fairness, parameter=parameter), _unit_interval(accuracy, parameter="accuracy")
    if len(f) != len(a):
        raise InvalidInputError(
            f"{parameter} and accuracy must be equally long; got {len(f)} and {len(a)} values: give one of each "
            "per model"
        )
    return f, a


def _unit_interval(values: ArrayLike, *, parameter: str) -> FloatArray:
    array = numeric(column(values, parameter=parameter), parameter=parameter).astype(np.float64, copy=False)
    if array.size == 0:
        raise InvalidInputError(f"{parameter} must hold at least one model; got none: give one value per model")
    low, high = array.min(), array.max()
    if low >= 0.0 and high <= 1.0:
        return array
    finite(array, parameter=parameter)
    if low < -1e-9 or high > 1 + 1e-9:
        raise InvalidInputError(
            f"{parameter} must be in [0, 1]; got values from {low:g} to {high:g}: rescale the measure so that 1 is best"
        )
    return np.clip(array, 0.0, 1.0)  # rounding of a measure that is 0 or 1
