"""For all tests: Ctrl-C must reach the commands that are started, whoever started the tests."""

from __future__ import annotations

import contextlib
import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; children would inherit it
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGINT, signal.default_int_handler)
