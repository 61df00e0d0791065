"""What was asked on the command line: values of options, and which columns of a file are scores of models."""

import difflib
import fnmatch
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from fairfrontier._extras import require
from fairfrontier._validation import number, one_of
from fairfrontier.chunks._files import is_number
from fairfrontier.chunks._formats import TableFile, distinct_texts
from fairfrontier.exceptions import FairFrontierError, InvalidInputError
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.metrics._sums import named_accuracy
from fairfrontier.quantify._fauc import PointWeight, PowerWeight, StepWeight, TabulatedWeight, UniformWeight, Weight
from fairfrontier.report._prepare import MISSING, in_known_order

_FORMS = "'uniform', 'step:0.8', 'power:2:0.8', 'point:0.9' or a file that `elicit` wrote"
# The largest numbers that fit into the machine's integers.
MOST_ROWS, LARGEST_SEED = 2**62, 2**32 - 1
# A text column with at least this share of numbers was meant to be one of numbers.
_NEARLY = 0.8
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
class AuditOptions:
    """The options of `audit` and `stack`, as they were given; `check` says whether they make sense."""

    file: Path
    label: str | None
    sensitive: tuple[str, ...]
    scores: tuple[str, ...] = ()
    positive: str | None = None
    fairness: str = "demographic_parity"
    accuracy: str = "accuracy"
    weight: str = "step:0.8"
    threshold: tuple[str, ...] = ()
    confidence: float = 0.95
    sensitive_mode: str = "separate"
    min_fairness: float = 0.95
    delimiter: str | None = None
    title: str | None = None
    chunk_rows: int | None = None
    missing: str = "error"
    min_group: int = 30
    min_share: float = 0.0
    sample_weight: str | None = None
    reference: tuple[str, ...] = ()
    baseline: str | None = None
    encoding: str | None = None

    @classmethod
    def given(cls, words: Mapping[str, Any], **changed: Any) -> "AuditOptions":
        """Return the options among the parameters of a command, by their names, with some changed."""
        found = {option.name: words[option.name] for option in fields(cls)} | changed
        several = {name: tuple(found[name] or ()) for name in ("sensitive", "scores", "threshold", "reference")}
        return cls(**found | several | {"delimiter": parse_delimiter(found["delimiter"])})

    def check(self) -> Weight:
        """Return the weight; raise for a value that no option may have, before the file is read."""
        named_measure(self.fairness, parameter="--fairness")
        named_accuracy(self.accuracy, parameter="--accuracy")
        one_of(self.sensitive_mode, ("separate", "intersectional"), parameter="--sensitive-mode")
        parse_thresholds(self.threshold)
        number(self.min_fairness, parameter="--min-fairness", low=0.0, high=1.0)
        number(self.confidence, parameter="--confidence", low=0.0, high=1.0, strict=True)
        one_of(self.missing, MISSING, parameter="--missing")
        number(self.min_group, parameter="--min-group", low=0, high=MOST_ROWS)
        number(self.min_share, parameter="--min-share", low=0.0, high=1.0)
        if self.chunk_rows is not None:
            number(self.chunk_rows, parameter="--chunk-rows", low=1, high=MOST_ROWS)
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InvalidInputError(f"--delimiter must be one character; got {self.delimiter!r}")
        return parse_weight(self.weight)

    @property
    def regression(self) -> bool:
        """Whether the label is a number."""
        return named_accuracy(self.accuracy).regression


def check_form(form: str, *, label: str | None, sample_weight: str | None) -> bool:
    """Tell whether the table of Local Law 144 is asked for, of a file that can give it."""
    if one_of(form, ("report", "ll144"), parameter="--format") == "report":
        return False
    if label is not None:
        raise InvalidInputError("--format ll144 is for audits without --label")
    if sample_weight is not None:
        raise InvalidInputError("--format ll144 counts applicants: leave out --sample-weight")
    return True


def check_seed(seed: int) -> int:
    """Return a seed that every generator takes."""
    number(seed, parameter="--seed", low=0, high=LARGEST_SEED)
    return seed


def parse_weight(text: str) -> Weight:
    """Return the weight that a text names.

    Examples
    --------
    >>> parse_weight("step:0.8"), parse_weight("power:2:0.5")
    (StepWeight(minimum=0.8), PowerWeight(alpha=2.0, beta=0.5))
    >>> parse_weight("steep:0.8")
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.InvalidInputError: --weight must be 'uniform', 'step:0.8', 'power:2:0.8', 'point:0.9' or a
    file that `elicit` wrote; got 'steep:0.8'
    """
    if text.strip().lower().endswith(".json"):
        return _read_weight(Path(text.strip()))
    kind, *parameters = text.strip().split(":")
    makers: dict[tuple[str, int], type[Weight]] = {
        ("uniform", 0): UniformWeight,
        ("step", 1): StepWeight,
        ("power", 1): PowerWeight,
        ("power", 2): PowerWeight,
        ("point", 1): PointWeight,
    }
    maker = makers.get((kind, len(parameters)))
    try:
        numbers = [float(parameter) for parameter in parameters]
    except ValueError:
        maker = None
    if maker is None:
        raise InvalidInputError(f"--weight must be {_FORMS}; got {text!r}")
    try:
        return maker(*numbers)
    except InvalidInputError as error:
        raise InvalidInputError(f"--weight {text}: {error}") from None


def _read_weight(path: Path) -> Weight:
    """Return the weight of a file that `elicit` wrote: knots and the values between them."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return TabulatedWeight(content["knots"], content["values"])
    except OSError as error:
        raise InvalidInputError(f"--weight must be {_FORMS}; {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, FairFrontierError) as error:
        raise InvalidInputError(
            f"--weight must be {_FORMS}; {str(path)!r} is not one: {type(error).__name__}: {error}"
        ) from None


def parse_thresholds(texts: tuple[str, ...]) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """Return the thresholds of all models, and those of single ones, from texts such as ``0.4`` and ``score=600``.

    Examples
    --------
    >>> parse_thresholds(("0.4", "0.6", "score=600"))
    ((0.4, 0.6), {'score': (600.0,)})
    """
    general: tuple[float, ...] = ()
    of_model: dict[str, tuple[float, ...]] = {}
    for text in texts:
        model, equals, limit = text.rpartition("=")
        try:
            value = float(limit)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value in (of_model.get(model, ()) if equals else general):
            raise InvalidInputError(
                "--threshold must be a number, such as 0.5, or one of a model, such as score=600, each once; got "
                f"{text!r}"
            )
        if equals:
            of_model[model] = (*of_model.get(model, ()), value)
        else:
            general += (value,)
    return general, of_model


def parse_delimiter(text: str | None) -> str | None:
    """Return the character that a text names; a tab may be written with a backslash."""
    return text if text is None else {"\\t": "\t", "tab": "\t"}.get(text, text)


def parse_bands(text: str) -> tuple[str, tuple[float, ...]]:
    """Return a column and the limits of its bands from a text such as ``age:18,30,45``; without limits it has none.

    Examples
    --------
    >>> parse_bands("age:18,30"), parse_bands("sex"), parse_bands("a:b")
    (('age', (18.0, 30.0)), ('sex', ()), ('a:b', ()))
    """
    name, colon, limits = text.rpartition(":")
    try:
        numbers = tuple(float(part) for part in limits.split(",")) if colon else ()
    except ValueError:
        return text, ()
    if not numbers:
        return text, ()
    if any(not low < high for low, high in pairwise(numbers)):
        raise InvalidInputError(f"--sensitive {text!r} must have ascending limits; got {limits}")
    return name, numbers


def check_once(name: str, named: Collection[str]) -> None:
    """Refuse an attribute that was named already: nobody can mean two sets of bands."""
    if name in named:
        raise InvalidInputError(
            f"--sensitive must name each column once; got {name!r} twice: give all limits of its bands at once, as in "
            "age:30,45,60"
        )


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that may be scores."""

    names: tuple[str, ...]  # the columns
    named: bool  # whether the user named them; others may turn out to be something else
    left_out: dict[str, str]  # columns that were not taken, and why
    # columns of two words, and those of decision 0 and decision 1
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
    """Return the columns of scores: those that were named, or all numbers that are not plainly something else."""
    others = [name for name in table.types if name not in taken]
    if patterns:
        named = _matching(table, patterns, others)
        texts = [name for name in named if is_text(table.types[name])]
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
            f"{table.path.name} must have numeric columns of scores; no other column can be one"
            + (f": {reasons}: name the scores with --scores" if reasons else "")
        )
    return ScoreColumns(tuple(numeric), False, left_out)


def _matching(table: TableFile, patterns: Sequence[str], others: list[str]) -> tuple[str, ...]:
    chosen: dict[str, None] = {}
    available = set(others)
    for pattern in patterns:
        matches = [pattern] if pattern in available else fnmatch.filter(others, pattern)
        if not matches:
            if pattern in table.types:
                raise InvalidInputError(
                    "--scores must name other columns than --label, --sensitive and --sample-weight; got "
                    f"{pattern!r}: name columns of scores"
                )
            if not any(character in pattern for character in "*?["):
                check_column(table, pattern, option="--scores")
            raise InvalidInputError(f"--scores {pattern!r} must match a column; the others are {shown(others)}")
        chosen.update(dict.fromkeys(matches))
    return tuple(chosen)


def is_text(dtype: Any) -> bool:
    """Tell whether a pyarrow type is one of text."""
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


def check_numbers(table: TableFile, name: str, *, option: str) -> None:
    """Refuse text where an option names a column of numbers."""
    types, dtype = require("pyarrow", extra="cli", purpose="Reading a file").types, table.types[name]
    if is_number(dtype) or types.is_boolean(dtype) or types.is_null(dtype):
        return
    example = _first_word(table, name)
    other = _other_decimals(table, name) if example is None else None
    if other is not None:
        raise InvalidInputError(f"{option} {name!r} must be numbers; got {other}")
    such = "" if example is None else f" such as {example[1][:40]!r} in row {example[0]}"
    advice = "correct the file or name another column" if option.startswith("--") else "correct the file"
    raise InvalidInputError(f"{option} {name!r} must be numbers; got text{such}: {advice}")


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
            f"column {name!r} of {table.path.name} holds numbers and also words, such as {word[:40]!r} in row {row}: "
            "leave cells without a number empty, or name the columns of scores with --scores"
        )
    other = _other_decimals(table, name) if example is None else None
    if other is not None:
        raise InvalidInputError(
            f"column {name!r} of {table.path.name} holds {other}; or say with --scores which columns are scores"
        )
    return "holds text"


def _other_decimals(table: TableFile, name: str) -> str | None:
    """Return a word about a text column, all of it numbers, whose decimal sign is not that of the file; else None."""
    texts = [] if table.head is None else [text for text in table.head.column(name).to_pylist() if text]
    if table.csv is None or not texts:
        return None
    sign, mine, others = (",", "comma", "point") if table.csv.decimal_point == "." else (".", "point", "comma")
    example = next((str(text) for text in texts if sign in str(text)), None)
    if example is None:
        return None
    where, advice = f"where other numbers of the file have a {others}", "write all of them the same way"
    if table.csv.delimiter == ",":  # decimal commas, or those between thousands
        return f"numbers with a comma, such as {example[:40]!r}: write a decimal point, and no comma between thousands"
    return f"numbers with a decimal {mine}, such as {example[:40]!r}, {where}: {advice}"


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
