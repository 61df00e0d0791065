"""One table in every form in which users have tables: dtypes, layouts, indices and libraries."""

import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse


def _strided(values):
    wide = np.full((2 * len(values), *values.shape[1:]), 77, dtype=values.dtype)
    wide[::2] = values
    return wide[::2]


def _read_only(values):
    result = values.copy()
    result.flags.writeable = False
    return result


def _memmap(values):
    with tempfile.NamedTemporaryFile() as file:  # the mapping outlives the name
        mapped = np.memmap(file.name, dtype=values.dtype, mode="w+", shape=values.shape)
        mapped[:] = values
        return mapped


def _index(values, index):
    return pd.DataFrame(values, index=index(len(values)), columns=[f"m{j}" for j in range(values.shape[1])])


def _shuffled(n):
    # Labels of their own: the same labels in another order are refused (test_silent_errors.py).
    return n + np.random.default_rng(0).permutation(n)


def _two_levels(n):
    return pd.MultiIndex.from_arrays([np.arange(n) % 3, np.arange(n)])


def _frame(values):
    return _index(values, range)


# Forms of a matrix of numbers that half precision can hold: each must be taken as the same numbers.
MATRICES = {
    "half": lambda H: H.astype(np.float16),
    "single": lambda H: H.astype(np.float32),
    "double": lambda H: H,
    "extended": lambda H: H.astype(np.longdouble),
    "big endian": lambda H: H.astype(">f8"),
    "objects": lambda H: H.astype(object),
    "list": lambda H: H.tolist(),
    "list of rows": list,
    "columns first": np.asfortranarray,
    "every second row": _strided,
    "every second column": lambda H: _strided(H.T).T,
    "backwards": lambda H: H[::-1].copy()[::-1],
    "read only": _read_only,
    "memory map": _memmap,
    "masked array without a mask": np.ma.asarray,
    "dict": lambda H: {f"m{j}": H[:, j] for j in range(H.shape[1])},
    "dict of lists": lambda H: {f"m{j}": H[:, j].tolist() for j in range(H.shape[1])},
    "dict of several dtypes": lambda H: {
        f"m{j}": H[:, j].astype((np.float16, np.float32, np.float64)[j % 3]) for j in range(H.shape[1])
    },
    "pandas": _frame,
    "pandas with a shuffled index": lambda H: _index(H, _shuffled),
    "pandas with a repeated index": lambda H: _index(H, lambda n: np.zeros(n, dtype=int)),
    "pandas with an index of two levels": lambda H: _index(H, _two_levels),
    "pandas with numbered columns": pd.DataFrame,
    "pandas nullable": lambda H: _frame(H).astype("Float64"),
    "pandas arrow": lambda H: _frame(H).astype("float64[pyarrow]"),
    "pandas sparse": lambda H: _frame(H).astype(pd.SparseDtype("float64", 0.0)),
    "pandas objects": lambda H: _frame(H).astype(object),
    "polars": lambda H: pl.DataFrame(H, schema=[f"m{j}" for j in range(H.shape[1])]),
    "polars single": lambda H: pl.DataFrame(H, schema=[f"m{j}" for j in range(H.shape[1])]).cast(pl.Float32),
    "pyarrow": lambda H: pa.table({f"m{j}": H[:, j] for j in range(H.shape[1])}),
    "pyarrow in chunks": lambda H: pa.table(
        {f"m{j}": pa.chunked_array([H[:1, j], H[1:, j]]) for j in range(H.shape[1])}
    ),
}
SPARSE = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "dok": sparse.dok_matrix,
    "lil": sparse.lil_array,
}

_TEXT = np.array(["no", "yes"])

# Forms of a column of zeros and ones, in which the second value stays the larger one.
LABELS = {
    "bool": lambda y: y == 1,
    "int8": lambda y: y.astype(np.int8),
    "uint64": lambda y: y.astype(np.uint64),
    "half": lambda y: y.astype(np.float16),
    "extended": lambda y: y.astype(np.longdouble),
    "list": lambda y: y.tolist(),
    "text": lambda y: _TEXT[y],
    "text as objects": lambda y: _TEXT[y].astype(object),
    "every second": _strided,
    "read only": _read_only,
    "memory map": _memmap,
    "dates": lambda y: np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")[y],
    "pandas with a shuffled index": lambda y: pd.Series(y, index=_shuffled(len(y))),
    "pandas with a repeated index": lambda y: pd.Series(y, index=np.zeros(len(y), dtype=int)),
    "pandas nullable": lambda y: pd.Series(y, dtype="Int8"),
    "pandas nullable bool": lambda y: pd.Series(y == 1, dtype="boolean"),
    "pandas categories": lambda y: pd.Series(_TEXT[y]).astype("category"),
    "pandas arrow text": lambda y: pd.Series(_TEXT[y], dtype="string[pyarrow]"),
    "polars bool": lambda y: pl.Series(y == 1),
    "polars categories": lambda y: pl.Series(_TEXT[y].tolist()).cast(pl.Categorical),
    "polars enum": lambda y: pl.Series(_TEXT[y].tolist()).cast(pl.Enum(["no", "yes"])),
    "pyarrow": lambda y: pa.chunked_array([y]),
    "pyarrow bool": lambda y: pa.chunked_array([y == 1]),
    "pyarrow dictionary": lambda y: pa.chunked_array([pa.array(_TEXT[y]).dictionary_encode()]),
}

# Forms of a column of small whole numbers.
WEIGHTS = {
    "int": lambda w: w,
    "half": lambda w: w.astype(np.float16),
    "single": lambda w: w.astype(np.float32),
    "uint8": lambda w: w.astype(np.uint8),
    "list": lambda w: w.tolist(),
    "column": lambda w: w[:, None],
    "every second": _strided,
    "read only": _read_only,
    "pandas with a shuffled index": lambda w: pd.Series(w, index=_shuffled(len(w))),
    "pandas nullable": lambda w: pd.Series(w, dtype="UInt8"),
    "polars": lambda w: pl.Series(w),
    "pyarrow": lambda w: pa.chunked_array([w]),
}
