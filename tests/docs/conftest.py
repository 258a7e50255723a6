"""The terminals in which guides are followed; nothing that they start, or register, outlives a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.terminals import Terminals
from outvote.core.protocols import REGISTRY
from outvote.simulation.registry import BASELINES


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    protocols, baselines = set(REGISTRY), set(BASELINES)
    yield
    for name in set(REGISTRY) - protocols:
        del REGISTRY[name]
    for name in set(BASELINES) - baselines:
        del BASELINES[name]


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    opened = Terminals(tmp_path)
    yield opened
    opened.kill()
