"""The terminals in which guides are followed; nothing that they start outlives a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.terminals import Terminals


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    opened = Terminals(tmp_path)
    yield opened
    opened.kill()
