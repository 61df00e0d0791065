"""What was asked on the command line, and option values that are more than a word or a number."""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fairfrontier._validation import number, one_of
from fairfrontier.exceptions import FairFrontierError, InvalidInputError
from fairfrontier.metrics import ACCURACY_MEASURES
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.quantify._weights import PointWeight, PowerWeight, StepWeight, TabulatedWeight, UniformWeight, Weight
from fairfrontier.report._prepare import MISSING

_FORMS = "'uniform', 'step:0.8', 'power:2:0.8', 'point:0.9' or a file that `elicit` wrote"
# The largest numbers that fit into the machine's integers.
MOST_ROWS, LARGEST_SEED = 2**62, 2**32 - 1


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

    def check(self) -> Weight:
        """Return the weight; raise for a value that no option may have, before the file is read."""
        named_measure(self.fairness, parameter="--fairness")
        one_of(self.accuracy, ACCURACY_MEASURES, parameter="--accuracy")
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
        return ACCURACY_MEASURES[self.accuracy].regression


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
            f"--weight must be {_FORMS}; {str(path)!r} is none: {type(error).__name__}: {error}"
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
