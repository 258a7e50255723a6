"""For all tests: the same examples in every run, Ctrl-C for the commands that are started, and no idle core."""

from __future__ import annotations

import contextlib
import os
import signal

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")  # on every machine, however slow it is; OUTVOTE_FUZZ asks for new examples

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; children would inherit it
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int | None:
    """Two processes more than there are cores: nearly a third of a test's time passes while it waits for others."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # somebody has said how many
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 2
