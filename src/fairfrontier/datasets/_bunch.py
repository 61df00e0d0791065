"""Turn a table of columns into the `Bunch` that every loader returns."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from fairfrontier._extras import require
from fairfrontier.datasets._archive import Column, Table
from fairfrontier.exceptions import InvalidInputError

AsFrame = bool | Literal["auto"]


@dataclass(frozen=True)
class Recipe:
    """How a table becomes a data set.

    Attributes
    ----------
    name : str
        Name of the data set, as in the tasks ``<name>-<attribute>``.
    features : Table
        The columns to learn from.
    target_name : str
        Name of the target.
    target : Column
        The target: 0/1 integers, or floats for regression.
    target_names : tuple of str
        Meaning of target 0 and target 1; empty for regression.
    attributes : Table
        The sensitive features: the paper's binary ones first.
    sources : dict of str to tuple of str
        For each binary attribute, the features that hold it.
    paper_encoding : str
        The `encoding` of `design_matrix` that follows the paper.
    descr : str
        The description.
    extra : dict of str to Table
        Further tables of the Bunch.
    """

    name: str
    features: Table
    target_name: str
    target: Column
    target_names: tuple[str, ...]
    attributes: Table
    sources: dict[str, tuple[str, ...]]
    paper_encoding: str
    descr: str
    extra: dict[str, Table] = field(default_factory=dict)


def deliver(recipe: Recipe, *, return_X_y: bool, as_frame: AsFrame) -> Any:
    """Return the data set as a Bunch, or as (data, target)."""
    framed = _wants_frame(as_frame)
    convert: Callable[[Table], Any] = _to_frame if framed else _to_dict
    data = convert(recipe.features) if framed else _to_matrix(recipe.features)
    target: Any = recipe.target.values.copy()
    if framed:
        target = _pandas().Series(target, name=recipe.target_name)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        sensitive_features=convert(recipe.attributes),
        frame=data.assign(**{recipe.target_name: target}) if framed else None,
        DESCR=recipe.descr,
        name=recipe.name,
        feature_names=list(recipe.features),
        target_name=recipe.target_name,
        target_names=list(recipe.target_names),
        categories={k: list(c.categories) for k, c in recipe.features.items() if c.categories is not None},
        sensitive_sources=dict(recipe.sources),
        paper_encoding=recipe.paper_encoding,
        **{name: convert(table) for name, table in recipe.extra.items()},
    )


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the allowed ones."""
    if value not in allowed:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _wants_frame(as_frame: AsFrame) -> bool:
    if as_frame == "auto":
        return importlib.util.find_spec("pandas") is not None
    if isinstance(as_frame, bool):
        return as_frame
    raise InvalidInputError(f"as_frame must be True, False or 'auto', got {as_frame!r}")


def _pandas() -> Any:
    return require("pandas", extra="pandas", purpose="Loading a data set with as_frame=True")


def _to_frame(table: Table) -> Any:
    pandas = _pandas()
    return pandas.DataFrame(
        {
            name: column.values
            if column.categories is None
            else pandas.Categorical.from_codes(column.values, categories=list(column.categories))
            for name, column in table.items()
        }
    )


def _to_dict(table: Table) -> dict[str, Any]:
    return {name: column.labels().copy() for name, column in table.items()}


def _to_matrix(table: Table) -> Any:
    return np.column_stack([column.values.astype(np.float64) for column in table.values()])
