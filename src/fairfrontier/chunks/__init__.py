"""Rows that are too many for memory: chunks of arrays, files, iterators and Dask collections.

Everything that fairfrontier computes from chunks is a sum over them, so one object, `Chunks`, serves them all.
"""

from fairfrontier._rows import Rows
from fairfrontier.chunks._dask import dask_chunks
from fairfrontier.chunks._files import file_chunks, file_schema
from fairfrontier.chunks._source import Chunks, array_chunks, is_dask, iterable_chunks, whole

__all__ = [
    "Chunks",
    "Rows",
    "array_chunks",
    "dask_chunks",
    "file_chunks",
    "file_schema",
    "is_dask",
    "iterable_chunks",
    "whole",
]
