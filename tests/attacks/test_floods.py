"""Clients that want a listener's memory, with and without a token, over HTTP and HTTPS: it stays within bounds.

Memory is the process's own, as Linux counts it. How long others have to wait meanwhile is measured by `make hostile`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop

from attacks.conftest import Attack as Row
from attacks.secured import Secured
from benchmarks.hostile.attackers import CLIENTS, Attack, attacking, attacks, request
from benchmarks.hostile.memory import cpu_seconds, peak_mib, resident_mib, sleeps, start_peak
from benchmarks.network.processes import allow_connections
from helpers.processes import DEADLINE, commands
from helpers.secured_edge import secured_edge
from outvote.web.limits import UNFINISHED

MOST_MIB = 60
"""That a process may grow by while it is attacked."""
KEPT_MIB = 30
"""That it may have kept some time afterwards."""
ENOUGH = 0.6
"""Seconds of its CPU that a process spends on an attack, unless it has nothing more to do before: uvicorn as it comes
(benchmarks/hostile/plain.py) grows by 87 MiB in half a second of them."""
LOOKS = 3
"""Looks in a row at which it sleeps: then it has nothing to do."""
IDLE = 5_000
"""Connections that do nothing; over TLS a limit of 2,000 holds."""
TARGETS = ("server over HTTPS", "site over HTTPS", "server", "site")


@dataclass
class Target:
    """A process that listens, and what somebody needs who may use it."""

    pid: int
    port: int
    posts_to: str
    context: ssl.SSLContext | None = None
    token: str | None = None

    async def is_served(self) -> None:
        """Somebody who behaves is answered, however long it takes."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            try:
                if b" 200 OK" in await asyncio.wait_for(self._ask(), DEADLINE):
                    return
            except OSError:
                pass
        raise AssertionError("nobody else was served")

    async def _ask(self) -> bytes:
        name = None if self.context is None else "127.0.0.1"
        connection = asyncio.open_connection("127.0.0.1", self.port, ssl=self.context, server_hostname=name)
        reader, writer = await connection
        try:
            writer.write(request("/healthz", "Connection: close") + b"\r\n")
            return await reader.read()
        finally:
            writer.close()


@pytest.fixture(scope="module", name="secured")
def own_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Not the one of the other attacks: their tests count lines of its log."""
    fleet = Secured(tmp_path_factory.mktemp("flooded"))
    yield fleet
    fleet.close()


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    kind: str = request.param
    if kind == "server over HTTPS":
        secured: Secured = request.getfixturevalue("secured")
        pid = secured.server.process.pid
        yield Target(pid, int(secured.server.port("server")), "/v1/tasks", secured.trust())
    elif kind == "site over HTTPS":
        with secured_edge(tmp_path) as edge:
            context = ssl.create_default_context(cafile=str(edge.ca))
            port, token = int(edge.running.port("edge")), edge.holders.secrets["shop"]
            yield Target(edge.running.process.pid, port, "/v1/tasks/shop/reward", context, token)
    else:
        with commands(tmp_path) as start:
            if kind == "server":
                running = start("server", "--port", "0", "--engine-port", "0")
                yield Target(running.process.pid, int(running.port("server")), "/v1/tasks")
            else:
                running = start("edge", "ams", "--nats", "nats://127.0.0.1:1", "--port", "0")
                yield Target(running.process.pid, int(running.port("edge")), "/v1/tasks/shop/reward")


def run(scenario: Any) -> None:
    allow_connections(IDLE)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario)


async def suffer(target: Target, attack: Attack, *, enough: float = ENOUGH, clients: int | None = None) -> float:
    """How many megabytes the process grew by at most; somebody else was served meanwhile."""
    before = resident_mib(target.pid)
    start_peak(target.pid)
    begun = cpu_seconds(target.pid)
    async with attacking(target.port, attack, context=target.context, clients=clients):
        asleep = 0
        while asleep < LOOKS and cpu_seconds(target.pid) < begun + enough:
            await target.is_served()  # so it has read what came before
            await asyncio.sleep(0.1)
            asleep = asleep + 1 if sleeps(target.pid) else 0
        await target.is_served()
    return peak_mib(target.pid) - before


def test_clients_that_want_memory(target: Target) -> None:
    """Every attack, one after the other; 120 clients at a time, as each of them is then most costly.

    Over HTTPS those at the server have no token, and those at a site have one: both have the same guard."""

    async def scenario() -> None:
        await suffer(target, Attack("ordinary requests", b""), enough=0, clients=CLIENTS)  # what is loaded only once
        rest = resident_mib(target.pid)
        grown = {}
        for attack in attacks("/openapi.json", target.posts_to):
            made = attack if target.token is None else attack.with_token(target.token)
            grown[attack.name] = await suffer(target, made, clients=CLIENTS)
        assert {name: round(each) for name, each in grown.items() if each > MOST_MIB} == {}
        await given_back(target, rest)

    run(scenario())


@pytest.mark.parametrize("target", ["server over HTTPS", "site"], indirect=True)
def test_many_connections_that_do_nothing(target: Target) -> None:
    """All listeners count their connections in the same way: one with TLS and one without are enough."""

    async def scenario() -> None:
        rest = resident_mib(target.pid)
        over_tls = target.context is not None
        idle = Attack("idle connections", b"")
        grown = await suffer(target, idle, enough=0, clients=2_500 if over_tls else IDLE)
        assert grown < (180 if over_tls else 80)  # the limit of connections bounds it: 2,000 over TLS, 10,000 without
        await given_back(target, rest)

    run(scenario())


async def given_back(target: Target, rest: float) -> None:
    """Some time after the last connection has gone."""
    deadline = time.monotonic() + DEADLINE
    while (kept := resident_mib(target.pid) - rest) > KEPT_MIB:
        assert time.monotonic() < deadline, f"{kept:.0f} MiB were not given back"
        await asyncio.sleep(UNFINISHED / 10)


def test_a_flood_changes_nothing(secured: Secured, attack: Row) -> None:
    """The row of the table; the bounds are what the tests above hold."""

    async def scenario() -> None:
        port = int(secured.server.port("server"))
        target = Target(secured.server.process.pid, port, "/v1/tasks", secured.trust())
        pipelined, *_ = attacks("/openapi.json", target.posts_to)
        assert await suffer(target, pipelined) < MOST_MIB

    run(scenario())
    attack.refused(
        "send requests without reading answers, endless heads, thousands of fields; keep thousands of connections",
        by="anybody who reaches the server, or a program beside a site",
        happened=f"one request at a time is read; memory grows by less than {MOST_MIB} MB, and others are served",
        logged="`requests_unfinished`, `connections_turned_away`, at most one line a minute",
    )
