"""Decisions between more than two classes: one class against the rest, for every class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import as_array, frame_columns, is_frame
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.metrics._contrasts import RowSets


def class_decisions(y_true: Any, y_preds: Any) -> tuple[list[Any], IntArray, dict[str, IntArray]] | None:
    """Return the classes, the label and the decisions of each model as their numbers; None: no case of several classes.

    It is one if the labels have more than two classes and every prediction is one of them.
    """
    classes, codes = validate.distinct(validate.column(y_true, parameter="y_true"), parameter="y_true")
    if len(classes) < 3 or any(validate.is_missing(value) for value in classes):
        return None
    number = {value: i for i, value in enumerate(classes)}
    decided = {}
    for name, column in _columns(y_preds).items():
        found, of_row = validate.distinct(column, parameter=f"y_preds[{name!r}]")
        if len(column) != len(codes) or not all(value in number for value in found):
            return None
        decided[name] = np.array([number[value] for value in found], dtype=np.intp)[of_row]
    return classes, codes, decided


def _columns(y_preds: Any) -> dict[str, NDArray[Any]]:
    if validate.by_name(y_preds):
        return {str(name): validate.column(values, parameter="y_preds") for name, values in y_preds.items()}
    if is_frame(y_preds):
        columns, names = frame_columns(y_preds, parameter="y_preds")
        return dict(zip(names, columns, strict=True))
    matrix = as_array(y_preds, parameter="y_preds", tuples_are_labels=False)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    return {f"model_{j}": matrix[:, j] for j in range(matrix.shape[1])}


def joined(parts: list[tuple[Any, FloatArray, RowSets]]) -> tuple[FloatArray, RowSets]:
    """Return the rates (k, s) and the row sets of all classes together; groups are compared class by class."""
    names: list[str] = []
    blocks: list[tuple[int, ...]] = []
    attributes: list[str] = []
    reference: list[int] = []
    for value, _, sets in parts:
        start = len(names)
        names += [f"{name} | decided {value}" for name in sets.names]
        blocks += [tuple(start + s for s in block) for block in sets.blocks]
        attributes += sets.attributes
        reference += [start + s for s in sets.reference]
    comparison = parts[0][2].comparison
    rates = np.hstack([part[1] for part in parts])
    return rates, RowSets(tuple(names), tuple(blocks), tuple(attributes), comparison, tuple(reference))
