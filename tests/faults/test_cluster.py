"""The link on a cluster of three: the log is there three times, also if nodes are away when it is made."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest

from faults.cluster import Cluster
from faults.kits import Kits
from helpers.audit import log_at
from helpers.processes import OUTVOTE, comes, until
from outvote.engine.connection import EngineUnreachable
from outvote.engine.nats_log import STREAM, NatsLog

PATIENCE = 40.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "engines", 3) as running:
        yield running


async def connected(cluster: Cluster) -> NatsLog:
    return await NatsLog.connect(cluster.urls, name="server", patience=PATIENCE)


async def copies(link: NatsLog) -> int:
    return (await link._stream.stream_info(STREAM)).config.num_replicas or 0


def test_the_log_is_kept_three_times_and_a_node_that_lost_its_disk_copies_it(cluster: Cluster) -> None:
    async def run() -> None:
        async with await connected(cluster) as link:
            await link.prepare()
            await link.prepare()  # the one that is there is as it must be
            assert await copies(link) == 3
            for number in range(5):
                await link.append(f"outvote.up.e1.t.life.{number}", b"%d" % number)
            [lost, _] = [node for name, node in cluster.nodes.items() if name != cluster.leader()]
            lost.kill()
            lost.wipe()
            await asyncio.wait_for(link.append("outvote.up.e1.t.life.5", b"5"), PATIENCE)
            lost.start()
            await asyncio.to_thread(cluster.wait_ready)
            assert not await link.append("outvote.up.e1.t.life.0", b"other")
            await comes(lambda: lost.page("jsz").get("messages") == 6, "it has all")
        log = await log_at(cluster.urls)
        assert [(each.sequence, each.payload) for each in log] == [(n + 1, b"%d" % n) for n in range(6)]

    asyncio.run(run())


def test_the_log_is_not_made_while_a_node_is_away_and_is_as_soon_as_it_is_back(cluster: Cluster) -> None:
    """With fewer copies it would not survive what a cluster is there for."""

    async def run() -> None:
        async with await connected(cluster) as link:
            await link.prepare()
            await link._stream.delete_stream(STREAM)
            cluster.nodes["n3"].kill()
            with suppress(
                EngineUnreachable
            ):  # NATS notices after some seconds that a node is away, and takes it meanwhile
                await link.prepare(deadline=0.5)
            cluster.nodes["n3"].start()
            await link.prepare()
            assert await copies(link) == 3
            await link.append("outvote.up.e1.t.life.0", b"0")
            assert await link.stored("outvote.up.e1.t.life.0") == b"0"

    asyncio.run(run())


def test_a_server_waits_for_a_cluster_that_has_no_majority_now(cluster: Cluster) -> None:
    async def run() -> None:
        async with await connected(cluster) as link:
            await link.prepare()
            away = [name for name in ("n1", "n2", "n3") if name != cluster.leader()]
            for name in away:
                cluster.nodes[name].signal(signal.SIGSTOP)
            making = asyncio.create_task(link.prepare())
            storing = asyncio.create_task(link.append("outvote.up.e1.t.life.0", b""))
            done, _ = await asyncio.wait([storing], timeout=1.0)
            assert not done
            for name in away:
                cluster.nodes[name].signal(signal.SIGCONT)
            await making
            await asyncio.wait_for(storing, PATIENCE)

    asyncio.run(run())


def test_a_node_that_lost_its_disk_and_has_an_old_kit_hears_from_the_others_who_was_revoked(tmp_path: Path) -> None:
    kits = Kits(tmp_path, 3, ["paris", "tokyo"])
    cluster = kits.cluster()
    kits.lead(cluster, {(near, far): cluster.nodes[far].route_port for near, far in permutations(cluster.nodes, 2)})

    def claims(node: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (cluster.nodes[node].store / "accounts").glob("*.jwt")}

    with cluster:
        before = claims("n1")
        revoke = [*OUTVOTE, "fleet", "revoke", "paris", "--folder", str(kits.folder)]
        subprocess.run(revoke, check=True, capture_output=True, timeout=PATIENCE)
        known = claims("n1")
        assert known != before
        lost = cluster.nodes["n2"]
        lost.kill()
        lost.wipe()
        lost.start()
        until(lambda: claims("n2") == known, "the node knows it again", within=PATIENCE)
