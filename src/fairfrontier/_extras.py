"""Import optional dependencies, or say which command installs them."""

import importlib
from typing import Any

from fairfrontier.exceptions import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Return the imported `module`; without it, name the extra that brings it.

    Examples
    --------
    >>> require("json", extra="none", purpose="reading JSON").loads("[1]")
    [1]
    >>> require("no_such_module", extra="plot", purpose="Plotting")
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.MissingExtraError: Plotting needs the package 'no_such_module', which is not
    installed: pip install 'fairfrontier[plot]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise MissingExtraError(
            f"{purpose} needs the package {module.split('.')[0]!r}, which is not installed: "
            f"pip install 'fairfrontier[{extra}]'"
        ) from error
