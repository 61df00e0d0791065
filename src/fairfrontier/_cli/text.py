"""Text from files, made harmless for a terminal."""

import re
import unicodedata

# Characters that change the direction of the text around them.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def printable(text: str, limit: int = 48) -> str:
    """Return text that cannot steer a terminal, shortened.

    Examples
    --------
    >>> printable("a\\x1b[31mb")
    'a�[31mb'
    """
    plain = "".join("�" if unicodedata.category(c) in ("Cc", "Cs") else c for c in _BIDI.sub("�", text))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
