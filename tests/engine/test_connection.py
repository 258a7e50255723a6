"""A connection with a credential: it is let in, comes back when the credential is renewed, and says what is wrong."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from helpers.bare_clients import let_go
from helpers.processes import DEADLINE, comes
from outvote.access.engine_access import Access
from outvote.access.kits import read_server_kit
from outvote.core.errors import InvalidConfiguration
from outvote.engine import connection
from outvote.engine.connection import EngineUnreachable
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.engine.wire_bytes import WireBytes
from outvote.files import write_private
from outvote.fleet.addresses import Address
from outvote.fleet.claims import creds, user_claims
from outvote.fleet.keys import new_key, read_key
from outvote.fleet.making import Plan, make_fleet
from outvote.fleet.permissions import edge_permissions
from outvote.log.records import UpSubject

LOCAL = Address("127.0.0.1", 4322)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connection") / "fleet"
    make_fleet(folder, Plan([LOCAL], Address("127.0.0.1", 8600)), now=time.time())
    return folder


@pytest.fixture(scope="module")
def secured(folder: Path) -> Iterator[Engine]:
    kit = read_server_kit(folder / "server")
    with Engine(folder.parent / "engine", port=0, kit=kit.engine) as running:
        access = Access(kit.creds, kit.ca)

        async def make_stream() -> None:
            async with await NatsLog.connect(running.url, name="server", access=access) as link:
                await link.prepare()

        asyncio.run(make_stream())
        yield running


def credential(folder: Path, name: str, path: Path, *, lasts: float = 3600) -> Access:
    account = read_key(folder / "keys" / "account.seed", "account")
    user, now = new_key("user"), time.time()
    claims = user_claims(account, user.public, name=name, may=edge_permissions(name), now=now, expires=now + lasts)
    write_private(path, creds(claims, user).encode())
    return Access(path, folder / "ca.pem")


def test_an_expired_credential_that_is_renewed_goes_on(
    secured: Engine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CREDENTIAL_LOOK", 0.05)
    path = tmp_path / "edge.creds"
    access = credential(folder, "paris", path, lasts=4)

    async def run() -> None:
        async with await NatsLog.connect(secured.url, name="paris", access=access) as link:
            assert await link.append(str(UpSubject("paris", "shop-1", "renewed", 0)), b"\xc0")
            await comes(lambda: not link.connected, "the engine has ended the connection")
            credential(folder, "paris", path)
            await comes(lambda: link.connected, "it is let in again")
            subject = str(UpSubject("paris", "shop-1", "renewed", 1))
            await link.append(subject, b"\xc0")  # the look at the file may come now, connect anew, and lose an answer
        kit = read_server_kit(folder / "server")
        async with await NatsLog.connect(secured.url, name="server", access=Access(kit.creds, kit.ca)) as server:
            assert await server.stored(subject) == b"\xc0"

    asyncio.run(run())


def test_a_credential_is_changed_before_it_expires(
    secured: Engine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored meanwhile arrives: nobody notices."""
    monkeypatch.setattr(connection, "CREDENTIAL_LOOK", 0.05)
    path = tmp_path / "edge.creds"
    access = credential(folder, "paris", path)

    async def run() -> None:
        async with await NatsLog.connect(secured.url, name="paris", access=access) as link:
            credential(folder, "paris", path)
            sequence = 0
            while not link.figures().reconnections:  # an answer may be lost: then it is there when it is stored again
                await link.append(str(UpSubject("paris", "shop-1", "changed", sequence)), b"\xc0")
                sequence += 1
            path.write_text("half a copy")  # is not taken, and what was good stays good
            assert await link.append(str(UpSubject("paris", "shop-1", "changed", sequence)), b"\xc0")

    asyncio.run(run())


def test_a_credential_of_another_fleet_is_refused(secured: Engine, folder: Path, tmp_path: Path) -> None:
    make_fleet(tmp_path / "other", Plan([LOCAL], Address("127.0.0.1", 8600)), now=time.time())
    stranger = credential(tmp_path / "other", "paris", tmp_path / "edge.creds")
    access = Access(stranger.creds, folder / "ca.pem")
    with pytest.raises(EngineUnreachable, match=r"does not let 'paris' in.*fleet list"):
        asyncio.run(NatsLog.connect(secured.url, name="paris", access=access, patience=2.5))


def test_what_the_engine_forbids_is_counted(secured: Engine, folder: Path, tmp_path: Path) -> None:
    """The credential of lima in the hands of paris: it can listen, and is not heard."""
    access = credential(folder, "lima", tmp_path / "edge.creds")

    async def run() -> None:
        async with await NatsLog.connect(secured.url, name="lima", access=access) as link:
            storing = asyncio.create_task(link.append(str(UpSubject("paris", "shop-1", "life", 9)), b"\xc0"))
            await comes(lambda: link.figures().forbidden > 0, "the engine has said no")
            storing.cancel()
            await asyncio.gather(storing, return_exceptions=True)

    asyncio.run(run())


def test_what_is_settled_was_sent_before_the_engine_was_asked_whether_it_has_it(engine: Engine) -> None:
    """nats-py writes a ping at once, and what was subscribed to a moment later: the ping's answer would say nothing."""

    async def run() -> list[bytes]:
        client = connection.Connection()
        await client.open(engine.url, name="server", patience=10, access=None, again=lambda: None)
        sent = Written(client._transport)
        client._transport = sent  # type: ignore[assignment]
        await client.subscribe("anything")
        await client.settle()
        await client.end()
        return sent.lines

    lines = [each.split(b" ")[0].strip() for each in asyncio.run(run())]
    assert lines.index(b"SUB") < lines.index(b"PING")


def test_it_ends_in_order_while_somebody_who_waited_for_its_end_was_cancelled(engine: Engine) -> None:
    """As a reconnection is that is under way. Whoever is cancelled himself is told so."""

    async def run() -> None:
        client = connection.Connection()
        await client.open(engine.url, name="server", patience=10, access=None, again=lambda: None)
        assert client._transport is not None
        waiting = asyncio.create_task(client._transport.wait_closed())  # type: ignore[no-untyped-call]
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await client.end()
        assert client.is_closed

        second = connection.Connection()
        await second.open(engine.url, name="server", patience=10, access=None, again=lambda: None)
        ending = asyncio.create_task(second.end())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await let_go(second)

    asyncio.run(run())


def test_a_connection_does_not_come_about_for_ever_though_its_cancellation_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[bool] = []

    async def hold_on(*_: object) -> None:
        while len(lost) < 2:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                lost.append(True)
        await asyncio.sleep(3600)

    monkeypatch.setattr(connection.Connection, "_connect_to_server", hold_on)

    async def run() -> None:
        with pytest.raises(EngineUnreachable, match=r"nothing within 0\.1 s"):
            await NatsLog.connect("nats://127.0.0.1:9", name="paris", patience=0.1)
        lost.clear()
        connecting = asyncio.create_task(NatsLog.connect("nats://127.0.0.1:9", name="paris"))
        await asyncio.sleep(0.05)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert len(lost) == 2

    asyncio.run(asyncio.wait_for(run(), DEADLINE))


def test_bytes_of_a_connection_that_is_just_closed_are_not_counted_and_nobody_minds(engine: Engine) -> None:
    """uvloop's socket of it has a negative file descriptor, for a moment in which the client calls itself connected."""

    async def run() -> None:
        client, bytes_of = connection.Connection(), WireBytes()
        await client.open(engine.url, name="ams", patience=10, access=None, again=lambda: None)
        before = bytes_of.count(client)
        assert before > 100
        client._let_go()
        await asyncio.sleep(0)
        assert bytes_of.count(client) == before
        await client.end()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


class Written:
    """A transport, and what was written to it, in its order."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)
        self._transport.write(line)

    def writelines(self, lines: list[bytes]) -> None:
        self.lines += lines
        self._transport.writelines(lines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN NATS USER JWT-----\na.b.c\n", "\xff"], ids=ascii)
def test_a_file_that_is_no_credential(tmp_path: Path, content: str) -> None:
    path = tmp_path / "edge.creds"
    path.write_text(content)
    with pytest.raises(InvalidConfiguration, match="is not a NATS credential"):
        Access(path, tmp_path / "ca.pem").credential()


def test_what_a_credential_says(folder: Path, tmp_path: Path) -> None:
    found = credential(folder, "paris", tmp_path / "edge.creds").credential()
    assert found.name == "paris"
    assert found.expires == pytest.approx(time.time() + 3600, abs=60)


def test_a_ca_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(json.dumps({}))
    with pytest.raises(InvalidConfiguration, match="is not a CA certificate"):
        Access(tmp_path / "edge.creds", tmp_path / "ca.pem").context()
