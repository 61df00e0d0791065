"""Import optional dependencies, or say which command installs them."""

import importlib
import importlib.util
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
        raise _missing(module, extra, purpose) from error


def check_installed(*packages: str, extra: str, purpose: str) -> None:
    """Raise for the first package that is not installed, before any work is done; nothing is imported.

    Examples
    --------
    >>> check_installed("json", "no_such_package", extra="cli", purpose="audit")
    Traceback (most recent call last):
    ...
    fairfrontier.exceptions.MissingExtraError: audit needs the package 'no_such_package', which is not installed:
    pip install 'fairfrontier[cli]'
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise _missing(package, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> MissingExtraError:
    return MissingExtraError(
        f"{purpose} needs the package {module.split('.')[0]!r}, which is not installed: "
        f"pip install 'fairfrontier[{extra}]'"
    )
