"""Write a file whole or not at all, and remove what killed processes left behind."""

import os
import platform
import re
import shutil
import tempfile
from pathlib import Path

# Temporary files have names that say which process made them.
_HOST = re.sub(r"[^A-Za-z0-9]", "", platform.node()) or "host"
_NAME = re.compile(rf"\.fairfrontier-{_HOST}-(\d+)-")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step and onto the disk: after a crash the whole file is there, or no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=scratch_prefix(), suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file can be read by its owner only; a result gets the permissions of the user's other files.
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
