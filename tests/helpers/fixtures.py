"""What tests of many folders start from."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.processes import Running, Start, commands
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.engine.process import Engine
from outvote.log.memory import MemoryEngine


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands in one folder, and leaves none of them behind."""
    with commands(tmp_path) as begin:
        yield begin


@pytest.fixture
def server(start: Start) -> Running:
    return start("server", "--port", "0", "--engine-port", "0", "--store", "log")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "engine", port=0) as running:
        yield running


@pytest.fixture
def memory() -> MemoryEngine:
    """A log in memory, in place of an engine."""
    return MemoryEngine()


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    """An edge without a network, in this process."""
    with EdgeStore(tmp_path / "edge.db") as store:
        yield Edge("ams", store, clock=time.monotonic, rng=random.Random(1))
