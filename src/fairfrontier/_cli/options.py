"""Option values that are more than a word or a number."""

from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._weights import PointWeight, PowerWeight, StepWeight, UniformWeight, Weight

_FORMS = "'uniform', 'step:0.8', 'power:2:0.8' or 'point:0.9'"


def parse_weight(text: str) -> Weight:
    """Return the weight that a text names.

    Examples
    --------
    >>> parse_weight("step:0.8"), parse_weight("power:2:0.5")
    (StepWeight(minimum=0.8), PowerWeight(alpha=2.0, beta=0.5))
    >>> parse_weight("steep:0.8")
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.InvalidInputError: --weight must be 'uniform', 'step:0.8', 'power:2:0.8' or 'point:0.9';
    got 'steep:0.8'
    """
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


def parse_delimiter(text: str) -> str:
    """Return the character that a text names; a tab may be written with a backslash."""
    return {"\\t": "\t", "tab": "\t"}.get(text, text)
