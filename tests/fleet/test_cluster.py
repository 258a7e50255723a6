"""Three engines of one's own, from their kits: they find each other over TLS, and keep the log three times."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from nats.errors import Error as NatsError

from faults.cluster import free_pairs
from helpers.bare_clients import guest
from outvote.access.engine_access import Access
from outvote.engine.nats_log import STREAM, NatsLog
from outvote.engine.process import find_binary
from outvote.fleet import members
from outvote.fleet.addresses import Address
from outvote.fleet.folder import Fleet, FleetError
from outvote.fleet.kit_files import CLUSTER_OFFSET
from outvote.fleet.making import Plan, make_fleet
from outvote.fleet.push import push
from outvote.log.records import DOWN, UP
from outvote.processes import die_with


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Three engines on one machine; each keeps its files in its kit."""
    ports = free_pairs(3, CLUSTER_OFFSET)
    store = str(tmp_path / "store")
    plan = Plan([Address("localhost", port) for port in ports], Address("localhost", 8600), store=store)
    make_fleet(tmp_path / "fleet", plan, now=time.time())
    fleet = Fleet(tmp_path / "fleet")
    for kit in fleet.look().engine_kits:
        conf = fleet.folder / kit / "nats.conf"
        conf.write_text(conf.read_text().replace(store, f"{store}-{kit}"))
    return fleet


def test_the_configuration_of_each_is_good(fleet: Fleet) -> None:
    for kit in fleet.look().engine_kits:
        done = subprocess.run(
            [find_binary().path, "-t", "--config", "nats.conf"],
            cwd=fleet.folder / kit,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        text = (fleet.folder / kit / "nats.conf").read_text()
        assert 'sync_interval: "always"' in text
        assert "verify: true" in text


@pytest.fixture
def engines(fleet: Fleet, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as stack:
        started = []
        for kit in fleet.look().engine_kits:
            log = stack.enter_context((tmp_path / f"{kit}.log").open("wb"))
            process = subprocess.Popen(
                [find_binary().path, "--config", "nats.conf"],
                cwd=fleet.folder / kit,
                stdout=log,
                stderr=log,
                preexec_fn=die_with(os.getpid()),
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            started.append(process)
        yield started


def test_they_form_a_cluster_that_keeps_the_log_three_times_and_is_told_of_revocations(
    fleet: Fleet, engines: list[subprocess.Popen[bytes]]
) -> None:
    members.add_edges(fleet, ["paris"])
    server = Access(fleet.folder / "server/server.creds", fleet.folder / "ca.pem")
    paris = Access(fleet.folder / "edges/paris/edge.creds", fleet.folder / "ca.pem")
    urls = fleet.look().nats

    async def run() -> None:
        async with await NatsLog.connect(",".join(urls), name="server", patience=20, access=server) as link:
            await link.prepare()
            assert (await link._stream.stream_info(STREAM)).config.num_replicas == 3
            for number, url in enumerate(urls):  # whichever it is connected to
                async with await NatsLog.connect(url, name="paris", patience=20, access=paris) as edge:
                    await asyncio.wait_for(edge.append(f"{UP}.paris.shop.life.{number}", b"x"), 20)
            await link.append(f"{DOWN}.shop.task", b"{}")
            assert await link.log_end() == len(urls) + 1
        members.revoke_edge(fleet, "paris")
        told = await asyncio.to_thread(push, fleet)
        assert told == [f"fleet-engine-{number}" for number in (1, 2, 3)]
        for url in urls:
            with pytest.raises((NatsError, OSError, EOFError)):
                async with guest(url, "paris", paris):
                    pass
        engines[0].kill()
        engines[0].wait()
        with pytest.raises(FleetError, match=r"2 of 3 engines have confirmed \(fleet-engine-2, fleet-engine-3\)"):
            await asyncio.to_thread(push, fleet, patience=4)

    asyncio.run(run())
