"""The command line: run a command of `fairfrontier._cli.app` and turn errors into one line.

Exit code 0: done. Exit code 2: bad input, with one line on the standard error that says what to change.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from fairfrontier._cli.text import printable
from fairfrontier._extras import require
from fairfrontier.exceptions import FairFrontierError

BAD_INPUT = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; None: those of the process.

    Examples
    --------
    >>> main(["datasets", "--colour"])
    2
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            return _run(None if arguments is None else list(arguments))
        except FairFrontierError as error:
            return _refuse(str(error))
        except OSError as error:
            where = f" {error.filename!r}" if error.filename else ""
            return _refuse(f"cannot use{where}: {error.strerror or error}")
        except MemoryError:
            return _refuse("this needs more memory than the machine has: take fewer models or rows at a time")
        except KeyboardInterrupt:
            return INTERRUPTED


def _run(arguments: list[str] | None) -> int:
    typer = require("typer", extra="cli", purpose="The command line")
    from fairfrontier._cli.app import app  # here, so that a missing extra is one line and not a traceback

    usage_error = typer.BadParameter.__base__  # of all usage errors; its home differs between versions of typer
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="fairfrontier", standalone_mode=False)
    except usage_error as error:
        return _refuse(error.format_message())
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _refuse(message: str) -> int:
    print(f"fairfrontier: {printable(' '.join(message.split()), 2000)}", file=sys.stderr)
    return BAD_INPUT


def _show_warning(message: Warning | str, category: Any, filename: str, lineno: int, *_: Any, **__: Any) -> None:
    print(f"fairfrontier: note: {printable(' '.join(str(message).split()), 2000)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
