"""The command line: run a command of `fairfrontier._cli.app`, and turn whatever goes wrong into one line.

Exit code 0: done. Exit code 2: bad input, with one line on the standard error that says what to change. Exit code 1: a
defect of fairfrontier, in one line; with --debug its traceback. Exit code 130: interrupted.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from fairfrontier._cli.output import printable, remember_arguments
from fairfrontier._extras import require
from fairfrontier.exceptions import FairFrontierError, InvalidInputError

DEFECT = 1
BAD_INPUT = 2
INTERRUPTED = 130
_DEBUG = "--debug"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Examples
    --------
    >>> main(["datasets", "--colour"])
    2
    """
    # Read when numpy is loaded: looking for huge pages takes the system longer than filling small ones.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = _DEBUG in given
    remember_arguments(given)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            return _run([word for word in given if word != _DEBUG])
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:  # the one place where anything unexpected becomes one line
            if debug:
                traceback.print_exc()
            return _explain(error)


def _run(arguments: list[str]) -> int:
    typer = require("typer", extra="cli", purpose="The command line")
    command = _command()
    _refuse_repeated(command, arguments)
    if "--out=" in arguments or ("--out", "") in pairwise(arguments):
        raise InvalidInputError("--out must name a folder or file; got an empty text")
    usage_error = typer.BadParameter.__base__  # of all usage errors; its home differs between versions of typer
    try:
        code = command.main(args=arguments, prog_name="fairfrontier", standalone_mode=False)
    except usage_error as error:
        raise InvalidInputError(error.format_message()) from None
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


@cache
def _command() -> Any:
    """Return the commands with their options; to look them up takes longer than many a command does."""
    from fairfrontier._cli.app import app  # here, so that a missing extra is one line and not a traceback

    return require("typer", extra="cli", purpose="The command line").main.get_command(app)


def _refuse_repeated(command: Any, arguments: list[str]) -> None:
    """Refuse an option that takes one value and is given twice: nobody can mean both."""
    chosen = next((getattr(command, "commands", {}).get(word) for word in arguments if not word.startswith("-")), None)
    for option in getattr(chosen, "params", ()):
        if getattr(option, "multiple", True) or not option.opts[0].startswith("--"):
            continue
        times = sum(word == name or word.startswith(f"{name}=") for name in option.opts for word in arguments)
        if times > 1 and not getattr(option, "is_flag", False):
            raise InvalidInputError(f"{option.opts[0]} must be given once; got it {times} times")


def _explain(error: Exception) -> int:
    """Say in one line what went wrong, and return the exit code."""
    if isinstance(error, FairFrontierError):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, OSError):
        where = f" {error.filename!r}" if error.filename else ""
        return _say(f"cannot use{where}: {error.strerror or error}", BAD_INPUT)
    if isinstance(error, MemoryError):
        return _say("this needs more memory than the machine has: take fewer models or rows at a time", BAD_INPUT)
    return _say(
        f"a defect of fairfrontier: {type(error).__name__}: {error}; please report it, with what --debug shows", DEFECT
    )


def _say(message: str, code: int) -> int:
    print(f"fairfrontier: {printable(' '.join(message.split()), 2000)}", file=sys.stderr)
    return code


def _show_warning(message: Warning | str, category: Any, filename: str, lineno: int, *_: Any, **__: Any) -> None:
    print(f"fairfrontier: note: {printable(' '.join(str(message).split()), 2000)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
