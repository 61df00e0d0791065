"""Which columns of a file are scores of models, and why the others are not."""

import difflib
import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairfrontier._extras import require
from fairfrontier.chunks._files import is_number
from fairfrontier.chunks._formats import TableFile, distinct_texts
from fairfrontier.exceptions import InvalidInputError

# A text column with at least this share of numbers was meant to be one of numbers.
_NEARLY = 0.8
# What people call the outcome that is wanted, and its opposite.
_POSITIVE = re.compile(
    "true|yes|y|approved?|accepted|accept|hired?|granted|grant|good|admit(ted)?|positive|pass(ed)?|selected|select|"
    "success|successful|(re)?paid|promoted|eligible|won|invited?|advanced?|offer(ed)?"
)
_NEGATIVE = re.compile(
    "false|no|n|denied|deny|rejected|reject|refused?|declined?|not (hired|selected|approved|admitted)|bad|default(ed)?|"
    "negative|fail(ed)?|unsuccessful|charged off|ineligible|lost"
)
# Names of columns that hold no scores: identifiers, weights, folds, and personal attributes.
_NO_SCORES = (
    (re.compile(r"(^|[_\W])(id|ids|uid|key|index|row|unnamed|nr)($|[_\W\d])|_id$|^id", re.I), "an identifier"),
    (re.compile(r"weight|(^|[_\W])wt?($|[_\W])|sampl|propensity", re.I), "a sampling weight"),
    (re.compile(r"(^|[_\W])(fold|split|partition)($|[_\W\d])", re.I), "a fold"),
    (
        re.compile(
            r"(^|[_\W])(age|sex|gender|race|ethnic\w*|female|male|woman|man|married|disab\w*|over|under|minority|"
            r"white|black|asian|hispanic|latino|religion|foreign\w*)($|[_\W\d])|(over|under|above|below)_?\d+",
            re.I,
        ),
        "an attribute of persons",
    ),
)


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that may be scores.

    Attributes
    ----------
    names : tuple of str
        The columns.
    named : bool
        Whether the user named them; others may turn out to be something else.
    left_out : dict of str to str
        Columns that were not taken, and why.
    decisions : dict of str to (str, str)
        Columns of two words, and those of decision 0 and decision 1.
    """

    names: tuple[str, ...]
    named: bool
    left_out: dict[str, str]
    decisions: dict[str, tuple[str, str]] = field(default_factory=dict)


def check_column(table: TableFile, column: str, *, option: str) -> str:
    """Return `column` if the file has it, else name the nearest one."""
    if column in table.types:
        return column
    near = difflib.get_close_matches(column, table.types, n=1, cutoff=0.5) or [
        name for name in table.types if name.lower() == column.lower()
    ]
    hint = f"did you mean {near[0]!r}?" if near else f"its columns are {shown(list(table.types))}"
    raise InvalidInputError(f"{option} must name a column of {table.path.name}; got {column!r}: {hint}")


def shown(names: Sequence[str], limit: int = 8) -> str:
    """Write a list of names for a message, short enough for one line.

    Examples
    --------
    >>> shown(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(repr(name if len(name) <= 60 else name[:59] + "…") for name in names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"


def score_columns(
    table: TableFile, patterns: Sequence[str], taken: set[str], *, positive: str | None = None
) -> ScoreColumns:
    """Return the columns of scores: those that were named, or all numbers that are not plainly something else.

    Parameters
    ----------
    table : TableFile
        The file.
    patterns : sequence of str
        Names or patterns of columns; empty: all numeric columns that are nothing else.
    taken : set of str
        Columns that have another purpose.
    positive : str, optional
        The positive label, which decisions may be written as.
    """
    others = [name for name in table.types if name not in taken]
    if patterns:
        named = _matching(table, patterns, others)
        texts = [name for name in named if _is_text(table.types[name])]
        decisions = {name: words for name in texts if (words := _decision_words(table, name, positive)) is not None}
        for name in named:
            if name not in decisions:
                check_numbers(table, name, option="--scores")
        return ScoreColumns(named, True, {}, decisions)
    numeric, left_out = [], {}
    for name in others:
        reason = _no_numbers(table, name) or _no_scores(name)
        if reason:
            left_out[name] = reason
        else:
            numeric.append(name)
    if not numeric:
        reasons = "; ".join(f"{name!r} {reason}" for name, reason in list(left_out.items())[:4])
        raise InvalidInputError(
            f"{table.path.name} must have numeric columns of scores besides the others"
            + (f": {reasons}: name the scores with --scores" if reasons else "")
        )
    return ScoreColumns(tuple(numeric), False, left_out)


def _matching(table: TableFile, patterns: Sequence[str], others: list[str]) -> tuple[str, ...]:
    chosen: dict[str, None] = {}
    available = set(others)
    for pattern in patterns:
        matches = [pattern] if pattern in available else fnmatch.filter(others, pattern)
        if not matches:
            if not any(character in pattern for character in "*?["):
                check_column(table, pattern, option="--scores")
            raise InvalidInputError(f"--scores {pattern!r} must match a column; the others are {shown(others)}")
        chosen.update(dict.fromkeys(matches))
    return tuple(chosen)


def _is_text(dtype: Any) -> bool:
    types = require("pyarrow", extra="cli", purpose="Reading a file").types
    value = dtype.value_type if types.is_dictionary(dtype) else dtype
    return bool(types.is_string(value) or types.is_large_string(value))


def _decision_words(table: TableFile, name: str, positive: str | None) -> tuple[str, str] | None:
    """Return the words of decision 0 and decision 1 of a column of two words; None: it has more, or numbers."""
    words = sorted(word for word in distinct_texts(table, name) if word.strip())
    if len(words) != 2 or any(map(is_numeric, words)):
        return None
    if positive in words:
        return (words[0], words[1]) if words[1] == positive else (words[1], words[0])
    known = in_known_order(words[0], words[1])
    if known is None:
        raise InvalidInputError(
            f"--scores {name!r} holds {words[0]!r} and {words[1]!r}, and neither is known to select: write decisions "
            "as 1 and 0, or name the one that selects with --positive"
        )
    return known


def in_known_order(first: str, second: str) -> tuple[str, str] | None:
    """Return two words, the negative one first, if one of them is known; else None.

    Examples
    --------
    >>> in_known_order("approve", "deny"), in_known_order("red", "blue")
    (('deny', 'approve'), None)
    """
    for one, other in ((first, second), (second, first)):
        words = [text.lower().replace("_", " ") for text in (one, other)]
        bad, good = ([pattern.fullmatch(word) is not None for word in words] for pattern in (_NEGATIVE, _POSITIVE))
        if (bad[0] and not bad[1]) or (good[1] and not good[0]):
            return one, other
    return None


def check_numbers(table: TableFile, name: str, *, option: str) -> None:
    """Refuse text where an option names a column of numbers."""
    types, dtype = require("pyarrow", extra="cli", purpose="Reading a file").types, table.types[name]
    if is_number(dtype) or types.is_boolean(dtype) or types.is_null(dtype):
        return
    example = _first_word(table, name)
    such = "" if example is None else f" such as {example[1][:40]!r} in row {example[0]}"
    raise InvalidInputError(f"{option} {name!r} must be numbers; got text{such}: mend the file or name another column")


def _no_numbers(table: TableFile, name: str) -> str:
    """Return why a column cannot be scores; raise if it is numbers but for a few words."""
    types, dtype = require("pyarrow", extra="cli", purpose="Reading a file").types, table.types[name]
    if is_number(dtype):
        return ""
    if types.is_boolean(dtype):
        return "holds true and false"
    if types.is_null(dtype):
        return "is empty"
    if not (types.is_string(dtype) or types.is_large_string(dtype)):
        return f"holds {str(dtype)[:40]}"
    example = _first_word(table, name)
    if example is not None and example[2] >= _NEARLY:
        row, word, _ = example
        raise InvalidInputError(
            f"column {name!r} of {table.path.name} is numbers but for words such as {word[:40]!r} in row {row}: are "
            "they scores? Mend the file, or say with --scores which columns are scores"
        )
    return "holds text"


def _first_word(table: TableFile, name: str) -> tuple[int, str, float] | None:
    """Return the first row of a text column that is no number, its text, and the share of numbers in the column."""
    if table.head is None:
        return None
    values = [(i + 1, text) for i, text in enumerate(table.head.column(name).to_pylist()) if text is not None]
    words = [(row, str(text)) for row, text in values if not is_numeric(text)]
    if not words:
        return None
    return *words[0], 1.0 - len(words) / len(values)


def is_numeric(text: Any) -> bool:
    """Tell whether a text reads as a number, with a decimal point or comma."""
    try:
        float(str(text).replace(",", "."))
    except ValueError:
        return False
    return True


def _no_scores(name: str) -> str:
    """Return what a column seems to be, by its name, if that is not scores."""
    for pattern, what in _NO_SCORES:
        if pattern.search(name):
            return f"looks like {what}"
    return ""
