"""Files that are written whole or not at all, and CSV that a spreadsheet shows and never runs."""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fairfrontier._columns import plain_number

# Temporary files have names that say which process made them.
_HOST = re.sub(r"[^A-Za-z0-9]", "", platform.node()) or "host"
_NAME = re.compile(rf"\.fairfrontier-{_HOST}-(\d+)-")
# The first columns of points.csv, and the columns of frontier.csv, wherever they are written.
POINT_COLUMNS = ("model", "family", "fairness", "accuracy", "pareto_optimal")
FRONTIER_COLUMNS = ("curve", "fairness", "accuracy", "model", "family")
# Spreadsheets take a cell that begins so for a formula. A cell may also begin inside a text, where the reader's
# separator is another than ours: semicolons in half of Europe, tabs, bars.
_FORMULA = re.compile(r"""(^|[,;|\t\r\n"])( *)(?=[=+\-@\t\r\n＝＋－＠])""")
# Numbers as text, which no spreadsheet can run.
_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?")
_NEEDS_QUOTES = re.compile(r"""[,;|\t\r\n"]""")


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file in one step and onto the disk: after a crash the whole file is there, or no file.

    `private`: it has a secret in it, and nobody but its owner may read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=scratch_prefix(), suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file can be read by its owner only; a result gets the permissions of the user's other files.
        if not private:
            os.chmod(scratch, 0o666 & ~_umask())
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def scratch_prefix() -> str:
    """Return the beginning of the names of this process's temporary files."""
    return f".fairfrontier-{_HOST}-{os.getpid()}-"


def remove_abandoned(folder: Path, *, everywhere: bool = False) -> None:
    """Remove temporary files and folders in `folder` whose process, of this host, is no longer alive."""
    if os.name != "posix" or not folder.is_dir():  # elsewhere there is no harmless way to ask for a process
        return
    for path in list(folder.rglob(".fairfrontier-*") if everywhere else folder.glob(".fairfrontier-*")):
        found = _NAME.match(path.name)
        if found is None or _alive(int(found.group(1))):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


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
    return csv_lines((header, *rows))


def csv_lines(rows: Iterable[Sequence[Any]], *, keep_numbers: bool = False) -> str:
    """Return rows as lines of CSV without a header, as `to_csv` writes them."""
    return "".join(",".join(_cell(value, keep_numbers) for value in row) + "\n" for row in rows)


def _cell(value: Any, keep_numbers: bool) -> str:
    if type(value) is float:  # nearly all of them
        return plain_number(value)
    value = value.item() if hasattr(value, "item") else value  # numpy's scalars as Python's own
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return plain_number(value)
    if isinstance(value, str) and keep_numbers and _NUMBER.fullmatch(value):
        return _quoted(value)
    return "" if value is None else _quoted(safe_text(str(value)))


def _quoted(text: str) -> str:
    # The csv module's idea of what needs quotes depends on the version of Python; the page's script must agree.
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
