"""Progress of long fits: a bar on a terminal, nothing elsewhere."""

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
_silent = ContextVar("_silent", default=False)


@contextmanager
def silence() -> Iterator[None]:
    """Show no bars inside this context: for callers with a display of their own.

    Examples
    --------
    >>> with silence():
    ...     list(track([1, 2], total=2, description="Fitting"))
    [1, 2]
    """
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def track(items: Iterable[T], *, total: int, description: str) -> Iterator[T]:
    """Yield from `items`; show a bar if standard error is a terminal, rich is installed and no `silence` is in effect.

    Examples
    --------
    >>> list(track([1, 2], total=2, description="Fitting"))
    [1, 2]
    """
    if _silent.get() or not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    console = Console(stderr=True)
    yield from rich_track(items, total=total, description=description, console=console, transient=True)
