"""Worker processes that end with the process that started them, or when it wants no more of them.

A worker reads this module first. It imports nothing that takes time, so that a worker knows of its parent's end while
it is still importing everything else.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
from typing import Any

# In a worker process: True after the main process wants no further work.
_stop = ctypes.c_bool(False)


def prepare(stop: ctypes.c_bool) -> None:
    """Start a worker process; `stop` is what the main process says to all of them."""
    global _stop
    _stop = stop
    # Ctrl-C reaches workers too. They end at once and without a traceback; what is finished is on disk.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def wanted() -> bool:
    """Tell in a worker whether the main process wants further work."""
    return not _stop.value


def _end_with(parent: Any) -> None:
    """End this process when its parent is gone: nobody would tell it that there is no more work."""
    parent.join()
    os._exit(1)
