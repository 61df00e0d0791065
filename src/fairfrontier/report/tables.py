"""The tables behind a report, as CSV that a spreadsheet shows and never runs."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

# Spreadsheets take a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain_number(value: float) -> str:
    """Write a number with the shortest digits that give it back, as JavaScript writes it.

    The page's download and our file are then the same bytes.

    Examples
    --------
    >>> plain_number(1.0), plain_number(0.1), plain_number(2.5e-05), plain_number(1.5e-07)
    ('1', '0.1', '0.000025', '1.5e-7')
    """
    if value == int(value):
        return str(int(value))
    if abs(value) >= 1e-6:
        return np.format_float_positional(value, trim="-")
    digits, _, exponent = repr(float(value)).partition("e")
    return f"{digits}e{int(exponent)}"


def safe_text(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    Examples
    --------
    >>> safe_text("=1+1"), safe_text("forest")
    ("'=1+1", 'forest')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV: text is made safe, numbers are plain, booleans are true and false."""
    return "".join(",".join(_cell(value) for value in row) + "\n" for row in (header, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float, np.number)):
        return plain_number(float(value))
    return "" if value is None else _quoted(safe_text(str(value)))


def _quoted(text: str) -> str:
    # The csv module's idea of what needs quotes depends on the version of Python; the page's script must agree.
    needs_quotes = any(character in text for character in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def points_csv(summary: dict[str, Any]) -> str:
    """Return one line a model: family, fairness, accuracy, whether it is Pareto-optimal, and its group rates."""
    models, attributes = summary["models"], summary["attributes"]
    optimal = set(summary["frontier"]["step"])
    header = ["model", "family", "fairness", "accuracy", "pareto_optimal"]
    header += [f"fairness[{a['name']}]" for a in attributes]
    for attribute in attributes:
        for group in attribute["groups"]:
            header += [f"{rate}[{attribute['name']}={group['name']}]" for rate in _rate_names(summary)]
    rows = []
    for i, name in enumerate(models["names"]):
        family = summary["families"][models["family"][i]]["name"]
        row: list[Any] = [name, family, models["fairness"][i], models["accuracy"][i], i in optimal]
        row += [attribute["fairness"][i] for attribute in attributes]
        for attribute in attributes:
            row += _rates(summary, attribute, i)
        rows.append(row)
    return to_csv(header, rows)


def frontier_csv(summary: dict[str, Any]) -> str:
    """Return the knots of the TAF curve ("step") and of its concave hull ("hull"), in ascending fairness."""
    models = summary["models"]
    rows = [
        [
            curve,
            models["fairness"][i],
            models["accuracy"][i],
            models["names"][i],
            summary["families"][models["family"][i]]["name"],
        ]
        for curve in ("step", "hull")
        for i in summary["frontier"][curve]
    ]
    return to_csv(["curve", "fairness", "accuracy", "model", "family"], rows)


def _rate_names(summary: dict[str, Any]) -> tuple[str, ...]:
    if summary["regression"]:
        return ("mean_score",)
    return ("selection_rate", "true_positive_rate", "false_positive_rate")


def _rates(summary: dict[str, Any], attribute: dict[str, Any], model: int) -> list[float | None]:
    width = len(attribute["groups"])
    rates: list[float | None] = []
    for g, group in enumerate(attribute["groups"]):
        true_selected = attribute["true_selected"][model * width + g]
        false_selected = attribute["false_selected"][model * width + g]
        rates.append((true_selected + false_selected) / group["rows"])
        if not summary["regression"]:
            negatives = group["rows"] - group["positives"]
            rates.append(true_selected / group["positives"] if group["positives"] else None)
            rates.append(false_selected / negatives if negatives else None)
    return rates
