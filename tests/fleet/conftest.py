"""What several files of this folder start from: a fleet in a folder, and its engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.places import Place
from helpers.fixtures import start
from helpers.processes import free_port
from outvote.fleet.addresses import Address
from outvote.fleet.folder import Fleet
from outvote.fleet.making import Plan, make_fleet

__all__ = ["start"]


def new_fleet(folder: Path, name: str = "outvote-fleet", *, disk: int | None = None) -> Fleet:
    plan = Plan([Address("localhost", free_port())], Address("localhost", 8600), disk=disk)
    make_fleet(folder / name, plan, now=time.time())
    return Fleet(folder / name)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """One that was just made."""
    return new_fleet(tmp_path)


@pytest.fixture
def place(tmp_path: Path, fleet: Fleet) -> Iterator[Place]:
    """The fleet with its engine."""
    with Place(tmp_path, fleet) as running:
        yield running
