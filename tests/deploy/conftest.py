"""What several files of this folder start from."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from network.conftest import start
from network.processes import free_port
from outvote.fleet.addresses import Address
from outvote.fleet.folder import Fleet
from outvote.fleet.making import Plan, make_fleet
from outvote.fleet.members import add_edges

__all__ = ["start"]

IN_KUBERNETES = [f"engine-{number}.engine.outvote.svc.cluster.local" for number in (1, 2, 3)]


@pytest.fixture
def small_fleet(tmp_path: Path) -> Fleet:
    """On this machine: one engine, one edge."""
    plan = Plan([Address("localhost", free_port())], Address("localhost", free_port()))
    return with_paris(tmp_path / "fleet", plan)


@pytest.fixture(scope="session")
def large_fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Three engines and their servers where deploy/kubernetes puts them, and one edge."""
    plan = Plan([Address(host, 4322) for host in IN_KUBERNETES], Address("server.outvote.svc.cluster.local", 8600))
    return with_paris(tmp_path_factory.mktemp("large") / "fleet", plan)


def with_paris(folder: Path, plan: Plan) -> Fleet:
    make_fleet(folder, plan, now=time.time())
    fleet = Fleet(folder)
    add_edges(fleet, ["paris"])
    return fleet
