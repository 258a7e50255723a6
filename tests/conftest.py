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

from helpers.fixtures import edge, engine, memory, server, start

__all__ = ["edge", "engine", "memory", "server", "start"]

TESTS: Final = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")  # on every machine, however slow it is

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; children would inherit it
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGINT, signal.default_int_handler)


PLACES: Final[dict[str, str | None]] = {
    "agreement/test_blocks_law.py": "statistical",
    "agreement/test_jump_law.py": "statistical",
    "agreement/test_tally_law.py": "statistical",
    "attacks": "network",
    "browser": "browser",
    "dashboard/test_planning.py": "statistical",
    "deploy": "deploy",
    "docs/test_blocks.py": "network",
    "docs/test_gallery.py": "statistical",
    "docs/test_guides.py": "network",
    "docs/test_tutorial.py": "network",
    "faults": "faults",
    "faults/test_simulated.py": None,
    "fuzz/test_http.py": "network",
    "whole/test_demo.py": "network",
    "openfeature": "openfeature",
    "paper": "statistical",
    "privacy/test_audit.py": "network",
    "statistical": "statistical",
}
"""Folders and files all of whose tests have a marker; None is a file of such a folder that is quick."""
PROCESSES: Final = frozenset({"start", "server", "secured", "servers", "lasting", "pages", "engines", "place"})
"""Fixtures that start real commands, or engines: their tests are of the network."""
QUICK: Final = "test_every_protocol_ends_with_the_best_variant_and_accounts_for_its_bits[tally-arguments0]"
"""One real demo belongs to the quick tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(TESTS)
        marker = PLACES.get(path.as_posix(), PLACES.get(path.parts[0]))
        if marker is None and PROCESSES & set(getattr(item, "fixturenames", ())):
            marker = "network"
        if marker is not None and item.name != QUICK:
            item.add_marker(marker)


def pytest_xdist_auto_num_workers() -> int | None:
    """Two processes more than there are cores: nearly a third of a test's time passes while it waits for others."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # somebody has said how many
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 2
