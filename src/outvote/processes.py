"""Processes of this machine: a child that ends with its parent, and a file that one process alone may hold.

Needs the standard library only, so that every package may use it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # of Linux's prctl
_POLL = 0.01


def die_with(parent: int) -> Callable[[], None]:
    """What a child calls to be killed when the thread that started it ends; `parent` is the process of that thread.

    For `preexec_fn` of `subprocess.Popen`, or at the start of a forked process. It runs between fork and exec in a
    process with threads: what it needs is loaded before, and it does little. Only Linux can do this; elsewhere a child
    may outlive a parent that was killed.
    """
    if not sys.platform.startswith("linux"):
        return lambda: None
    prctl = ctypes.PyDLL(None).prctl  # PyDLL: without letting go of the interpreter's lock
    kill_signal = int(signal.SIGKILL)

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, kill_signal)
        if os.getppid() != parent:  # it died before the call
            os.kill(os.getpid(), kill_signal)

    return tie


def lock(file: int, *, seconds: float = 0.0) -> bool:
    """Hold an open file, given by its descriptor, for this process alone; wait at most `seconds` for another holder.

    Returns whether it is held now. It is held until the descriptor is closed here and in every child that inherited it.
    Raises `OSError` where files cannot be locked.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL)
        else:
            return True
