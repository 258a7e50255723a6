"""For all tests: which of them are quick, the same examples in every run, Ctrl-C for commands, and no idle core.

`make test` runs what has no marker, `make test-all` the rest. Markers follow from where a test is and what it starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

TESTS: Final = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")  # on every machine, however slow it is; OUTVOTE_FUZZ asks for new examples

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; children would inherit it
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGINT, signal.default_int_handler)


FOLDERS: Final = {
    "attacks": "network",
    "browser": "browser",
    "deploy": "deploy",
    "faults": "faults",
    "openfeature": "openfeature",
    "statistical": "statistical",
}
"""Folders all of whose tests have a marker."""
PROCESSES: Final = frozenset({"start", "server", "secured", "servers", "lasting", "pages", "engines", "place"})
"""Fixtures that start real commands, or engines: their tests are of the network."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDERS:
            item.add_marker(FOLDERS[folder])
        elif PROCESSES & set(getattr(item, "fixturenames", ())):
            item.add_marker("network")


def pytest_xdist_auto_num_workers() -> int | None:
    """Two processes more than there are cores: nearly a third of a test's time passes while it waits for others."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # somebody has said how many
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 2
