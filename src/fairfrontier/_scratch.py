"""Temporary files whose names say which process made them, so that those of killed runs can be removed."""

import os
import platform
import re
import shutil
from pathlib import Path

_HOST = re.sub(r"[^A-Za-z0-9]", "", platform.node()) or "host"
_NAME = re.compile(rf"\.fairfrontier-{_HOST}-(\d+)-")


def scratch_prefix() -> str:
    """Return the beginning of the names of this process's temporary files."""
    return f".fairfrontier-{_HOST}-{os.getpid()}-"


def remove_abandoned(folder: Path, *, everywhere: bool = False) -> None:
    """Remove temporary files and folders in `folder` whose process, of this host, is no longer alive.

    Parameters
    ----------
    folder : Path
        Where to look; it need not exist.
    everywhere : bool
        Also in the folders inside.
    """
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
