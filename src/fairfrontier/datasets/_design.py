"""One-hot design matrices of the data sets, in the paper's dimensions where its text allows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairfrontier._validation import one_of
from fairfrontier.datasets._bunch import Column, Table
from fairfrontier.exceptions import InvalidInputError

ENCODINGS = ("auto", "onehot", "dummy", "ordinal")


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """A numeric matrix and the names of its columns.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns), float64
        The matrix.
    names : tuple of str
        One name per column; ``feature=category`` for an indicator.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]


def design_matrix(
    data: Any,
    *,
    encoding: Literal["auto", "onehot", "dummy", "ordinal"] = "auto",
    drop_sensitive: bool | str | Sequence[str] = False,
) -> DesignMatrix:
    """Encode categorical features as indicators and leave numbers as they are.

    Parameters
    ----------
    data : Bunch or dataframe of shape (n_rows, n_features)
        What a loader returned (with or without frames), or a dataframe of pandas, polars or pyarrow whose
        columns are numbers, booleans, strings or categories.
    encoding : {"auto", "onehot", "dummy", "ordinal"}, default="auto"
        "onehot": one indicator per category. "dummy": the same without the first category of each feature.
        "ordinal": one column of positions per feature. "auto": what follows the paper for a Bunch (see
        Notes), "onehot" for a dataframe.
    drop_sensitive : bool, str or sequence of str, default=False
        False keeps every feature, the protected ones included, as the paper's models do. True leaves out the
        features that hold the binary sensitive attributes; a name such as "gender", or a list of names, leaves
        out those attributes only. Needs a Bunch.

    Returns
    -------
    DesignMatrix
        With `values` of shape (n_rows, p) and `names`.

    Raises
    ------
    InvalidInputError
        If `encoding` or `drop_sensitive` is unknown, `data` is of another type, or a column has missing
        categories.

    Notes
    -----
    The number of columns p with ``encoding="auto"``, and the paper's:

    ============ ====== =========== =======================================================================
    data set     p      the paper's why they differ
    ============ ====== =========== =======================================================================
    Adult        99     99          "dummy": 5 numbers, 102 categories of 8 features ("?" is one), minus 8
    Bank         51     58          7 numbers and 44 categories of 9 features; no reading of the text that we
                                    tried gives 58 ("dummy" gives 42)
    COMPAS       13     13          13 features of 0 and 1; the paper does not list its own
    Default      33     23          20 numbers and 13 categories of 3 features; 23 is the number before the
                                    one-hot encoding that the text describes ("ordinal" gives it)
    Communities  100    104         the four numeric identifiers (state, county, community, fold) would make
                                    it 104; they are not features
    ============ ====== =========== =======================================================================

    Examples
    --------
    >>> from fairfrontier.datasets import design_matrix, load_adult
    >>> adult = load_adult()
    >>> design_matrix(adult).values.shape
    (48842, 99)
    >>> design_matrix(adult, encoding="onehot", drop_sensitive="gender").values.shape
    (48842, 105)
    """
    one_of(encoding, ENCODINGS, parameter="encoding")
    is_bunch = isinstance(data, Bunch)
    table = _table_of_bunch(data) if is_bunch else _table_of_frame(data)
    for feature in _sensitive_columns(data, drop_sensitive):
        table.pop(feature, None)
    if encoding == "auto":
        encoding = data.paper_encoding if is_bunch else "onehot"
    blocks: list[NDArray[np.float64]] = []
    names: list[str] = []
    for name, column in table.items():
        block, labels = _encode(name, column, encoding)
        blocks.append(block)
        names += labels
    if not blocks:
        raise InvalidInputError("data must have at least one feature left to encode, got none")
    return DesignMatrix(np.concatenate(blocks, axis=1), tuple(names))


def _encode(name: str, column: Column, encoding: str) -> tuple[NDArray[np.float64], list[str]]:
    if column.categories is None or encoding == "ordinal":
        return column.values.astype(np.float64)[:, None], [name]
    start = 1 if encoding == "dummy" else 0
    labels = [f"{name}={category}" for category in column.categories[start:]]
    positions = np.arange(start, len(column.categories))
    return (column.values[:, None] == positions).astype(np.float64), labels


def _table_of_bunch(bunch: Bunch) -> Table:
    if not isinstance(bunch.data, np.ndarray):
        return _table_of_frame(bunch.data)
    return {
        name: Column(values.astype(np.int64), tuple(bunch.categories[name]))
        if name in bunch.categories
        else Column(values)
        for name, values in zip(bunch.feature_names, bunch.data.T, strict=True)
    }


def _table_of_frame(data: Any) -> Table:
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError as error:
        raise InvalidInputError(
            f"data must be a Bunch of fairfrontier.datasets or a dataframe, got {type(data).__name__}"
        ) from error
    return {name: _column_of_series(frame[name]) for name in frame.columns}


def _column_of_series(series: Any) -> Column:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return Column(series.to_numpy().astype(np.float64))
    if series.null_count():
        raise InvalidInputError(
            f"column {series.name!r} of data must have no missing category, got {series.null_count()}: "
            "give them a category of their own"
        )
    if series.dtype in (nw.Categorical, nw.Enum):
        categories = tuple(str(label) for label in series.cat.get_categories().to_list())
    else:
        categories = tuple(sorted({str(label) for label in series.unique().to_list()}))
    position = {label: i for i, label in enumerate(categories)}
    return Column(np.array([position[str(label)] for label in series.to_list()], dtype=np.int64), categories)


def _sensitive_columns(data: Any, drop: bool | str | Sequence[str]) -> Iterable[str]:
    if drop is False:
        return []
    if not isinstance(data, Bunch):
        raise InvalidInputError("drop_sensitive needs data to be a Bunch of fairfrontier.datasets")
    sources: Mapping[str, tuple[str, ...]] = data.sensitive_sources
    wanted = list(sources) if drop is True else [drop] if isinstance(drop, str) else list(drop)
    unknown = [name for name in wanted if name not in sources]
    if unknown:
        raise InvalidInputError(
            f"drop_sensitive must name attributes of {data.name!r} ({', '.join(sources)}), "
            f"got {', '.join(map(repr, unknown))}"
        )
    return [feature for name in wanted for feature in sources[name]]
