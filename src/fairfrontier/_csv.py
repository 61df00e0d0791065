"""CSV that a spreadsheet shows and never runs."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

# The first columns of points.csv, and the columns of frontier.csv, wherever they are written.
POINT_COLUMNS = ("model", "family", "fairness", "accuracy", "pareto_optimal")
FRONTIER_COLUMNS = ("curve", "fairness", "accuracy", "model", "family")
# The family of models whose names have no slash.
DEFAULT_FAMILY = "models"
# Spreadsheets take a cell that begins so for a formula. A cell may also begin inside a text, where the reader's
# separator is another than ours: semicolons in half of Europe, tabs, bars.
_FORMULA = re.compile(r"""(^|[,;|\t\r\n"])( *)(?=[=+\-@\t\r\n＝＋－＠])""")
_NEEDS_QUOTES = re.compile(r"""[,;|\t\r\n"]""")


def plain_number(value: float) -> str:
    """Write a number with the shortest digits that give it back, as JavaScript writes it.

    Examples
    --------
    >>> plain_number(1.0), plain_number(0.1), plain_number(2.5e-05), plain_number(1.5e-07)
    ('1', '0.1', '0.000025', '1.5e-7')
    """
    if value == int(value):
        return str(int(value))
    digits, _, exponent = repr(float(value)).partition("e")
    if not exponent:
        return digits
    if abs(value) >= 1e-6:
        return np.format_float_positional(value, trim="-")
    return f"{digits}e{int(exponent)}"


def family_of(model: str) -> str:
    """Return the family of a model: the part of its name before a slash.

    Examples
    --------
    >>> family_of("trees/17"), family_of("logistic")
    ('trees', 'models')
    """
    family, slash, _ = model.partition("/")
    return family if slash else DEFAULT_FAMILY


def safe_text(text: str) -> str:
    """Put an apostrophe before each part of a text that a spreadsheet could take for a formula.

    Examples
    --------
    >>> safe_text("=1+1"), safe_text("a;=1+1"), safe_text("C=0.1, penalty=l2")
    ("'=1+1", "a;'=1+1", 'C=0.1, penalty=l2')
    """
    return _FORMULA.sub(r"\1'\2", text)


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV: text is made safe, numbers are plain, booleans are true and false.

    Examples
    --------
    >>> print(to_csv(["model", "fair"], [["a;b", True], ["@c", 0.5]]), end="")
    model,fair
    "a;b",true
    '@c,0.5
    """
    return "".join(",".join(_cell(value) for value in row) + "\n" for row in (header, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float, np.number)):
        return plain_number(float(value))
    return "" if value is None else _quoted(safe_text(str(value)))


def _quoted(text: str) -> str:
    # The csv module's idea of what needs quotes depends on the version of Python; the page's script must agree.
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
