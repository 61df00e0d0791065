"""Write results into a folder, all of them or none, and text from files to a terminal, made harmless."""

import os
import re
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fairfrontier.exceptions import InvalidInputError

# Characters that change the direction of the text around them.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def check_output(folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, a folder that cannot take the files or already has them.

    Raises
    ------
    InvalidInputError
        If `folder` is a file or inside one, cannot be written to, or has one of the files and `force` is False.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--out must be a folder; {str(folder)!r} is a file")
    present = [name for name in names if os.path.lexists(folder / name)]
    if present and not force:
        raise InvalidInputError(
            f"--out {str(folder)!r} already has {', '.join(present)}: choose another folder, or pass --force to "
            "replace them"
        )
    folders = [name for name in present if (folder / name).is_dir() and not (folder / name).is_symlink()]
    if folders:
        raise InvalidInputError(f"--out {str(folder)!r} has a folder named {folders[0]}: choose another folder")
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not nearest.is_dir():
        raise InvalidInputError(f"--out must be a folder; {str(nearest)!r} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise InvalidInputError(f"--out must be a folder that can be written to; {str(nearest)!r} cannot")


def check_inputs(folder: Path, names: Sequence[str], *inputs: Path | None) -> None:
    """Refuse to write results over a file that is read, whatever `--force` says."""
    targets = {(folder / name).resolve(): name for name in names}
    for file in inputs:
        if file is None:
            continue
        for path in (file.resolve(), *file.resolve().parents):
            if path in targets:
                what = "is" if path == file.resolve() else "holds"
                raise InvalidInputError(
                    f"--out must not replace a file that is read, not even with --force; "
                    f"{str(folder / targets[path])!r} {what} {str(file)!r}: choose another name or folder"
                )


@contextmanager
def writing(folder: Path, *, force: bool, remove: Sequence[str] = ()) -> Iterator[Path]:
    """Give a temporary folder inside `folder`; its files move into `folder` when the block ends without an error.

    Each file appears whole: a rename is one step. After an error nothing is left behind. Without `force` no file is
    replaced: of two runs into one folder the first to finish has it, and the other is told. Files to `remove` are those
    of an earlier run that would stand beside the new ones.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]  # the innermost first
    folder.mkdir(parents=True, exist_ok=True)
    from fairfrontier._writing import remove_abandoned, scratch_prefix  # not at load: `--help` needs no numpy

    remove_abandoned(folder)
    scratch = Path(tempfile.mkdtemp(prefix=scratch_prefix(), dir=folder))
    try:
        yield scratch
        for file in sorted(scratch.iterdir()):
            if force:
                os.replace(file, folder / file.name)
            else:
                _move_new(file, folder)
        for name in remove:
            (folder / name).unlink(missing_ok=True)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        for path in created:
            # Another run may have put its files there.
            with suppress(OSError):
                path.rmdir()
        raise
    shutil.rmtree(scratch)


def _move_new(file: Path, folder: Path) -> None:
    """Move a file into a folder that has none of its name; a link, unlike a rename, replaces nothing."""
    target = folder / file.name
    try:
        os.link(file, target)
    except FileExistsError:
        raise InvalidInputError(
            f"--out {str(folder)!r} got its {file.name} from another run while this one was at work, and nothing was "
            "written: choose another folder, or pass --force to replace them"
        ) from None
    except OSError:  # a file system without links
        os.replace(file, target)


def printable(text: str, limit: int = 48) -> str:
    """Return text that cannot steer a terminal, shortened.

    Examples
    --------
    >>> printable("a\\x1b[31mb")
    'a�[31mb'
    """
    plain = "".join("�" if unicodedata.category(c) in ("Cc", "Cs") else c for c in _BIDI.sub("�", text))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


# The arguments of the command that runs, for the record.
_arguments: list[str] = []


def remember_arguments(arguments: Sequence[str]) -> None:
    """Keep the arguments of the command that runs."""
    _arguments[:] = arguments


def command_line() -> list[str]:
    """Return the arguments of the command that runs."""
    return list(_arguments or sys.argv[1:])
