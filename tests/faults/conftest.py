"""What the files of this folder start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.nursery import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as ready:
        yield ready
