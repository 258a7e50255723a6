"""The proxy does what it says: it must not be the proxy's fault if nothing goes wrong."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator

import pytest

from faults.proxy import Frame, Frames, Proxy, Trouble, Way
from helpers.processes import DEADLINE, comes
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.log import Record

PIECES = [
    b'INFO {"server_id": "x"}\r\n',
    b"PUB outvote.up.e1.t.life.0 _INBOX.e1.1 3\r\na\r\n\r\n",
    b"PING\r\n",
    b"HPUB s r 12 14\r\nNATS/1.0\r\n\r\nok\r\n",
    b"MSG _INBOX.e1.1 7 2\r\n{}\r\n",
    b"HMSG a.b 7 reply 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    b"+OK\r\n",
]
READ = [
    Frame("INFO", "", "", b"", PIECES[0]),
    Frame("PUB", "outvote.up.e1.t.life.0", "_INBOX.e1.1", b"a\r\n", PIECES[1]),
    Frame("PING", "", "", b"", PIECES[2]),
    Frame("HPUB", "s", "r", b"ok", PIECES[3]),
    Frame("MSG", "_INBOX.e1.1", "", b"{}", PIECES[4]),
    Frame("HMSG", "a.b", "reply", b"", PIECES[5]),
    Frame("+OK", "", "", b"", PIECES[6]),
]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_frames_are_found_however_the_bytes_are_cut(size: int) -> None:
    stream, frames = b"".join(PIECES), Frames()
    found = [frame for at in range(0, len(stream), size) for frame in frames.feed(stream[at : at + size])]
    assert found == READ
    assert b"".join(frame.raw for frame in found) == stream


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine(tmp_path_factory.mktemp("engine"), port=0) as running:
        yield running


def through(engine: Engine, do: Callable[[Proxy, Way, NatsLog], Awaitable[None]]) -> None:
    """A link that leads through a proxy, with the log made."""

    async def run() -> None:
        proxy = Proxy(random.Random(1))
        there = ("127.0.0.1", int(engine.url.rpartition(":")[2]))
        port = await proxy.open("e1", "n1", to=there, speaks_nats=True)
        try:
            async with await NatsLog.connect(f"nats://127.0.0.1:{port}", name="e1", patience=10) as link:
                await link.prepare()
                await asyncio.wait_for(do(proxy, proxy.ways["e1", "n1"], link), 2 * DEADLINE)
        finally:
            await proxy.close()

    asyncio.run(run())


def test_what_the_engine_acknowledged_is_noted_with_its_place_and_a_refusal_is_not(engine: Engine) -> None:
    async def do(proxy: Proxy, way: Way, link: NatsLog) -> None:
        assert await link.append("outvote.up.e1.t.life.0", b"x")
        assert not await link.append("outvote.up.e1.t.life.0", b"y")
        assert [each[:3] for each in proxy.acknowledged] == [("outvote.up.e1.t.life.0", b"x", 1)]

    through(engine, do)


def test_a_way_that_is_cut_up_stores_nothing_and_what_was_held_comes_when_it_is_healed(engine: Engine) -> None:
    async def do(proxy: Proxy, way: Way, link: NatsLog) -> None:
        way.cut("up")
        storing = asyncio.create_task(link.append("outvote.up.e1.t.life.0", b"x"))
        done, _ = await asyncio.wait([storing], timeout=0.3)
        assert not done
        assert proxy.acknowledged == []
        way.heal()
        assert await storing
        assert await link.log_end() == 1

    through(engine, do)


def test_a_way_that_is_cut_down_stores_what_is_not_acknowledged_and_it_is_stored_once(engine: Engine) -> None:
    async def do(proxy: Proxy, way: Way, link: NatsLog) -> None:
        way.cut("down")
        storing = asyncio.create_task(link.append("outvote.up.e1.t.life.0", b"x"))
        await comes(lambda: bool(proxy.acknowledged), "the engine has said it, and nobody hears it")
        assert not storing.done()
        way.heal(reset=True)
        assert not await storing  # it was there already
        assert await link.log_end() == 1

    through(engine, do)


@pytest.mark.parametrize(
    "trouble", [Trouble(drop=0.5), Trouble(repeat=0.7), Trouble(exchange=0.7), Trouble(delay=0.01, jitter=0.01)]
)
def test_what_is_dropped_repeated_exchanged_or_late_is_stored_once_all_the_same(
    engine: Engine, trouble: Trouble
) -> None:
    async def do(proxy: Proxy, way: Way, link: NatsLog) -> None:
        way.troubles = {"up": trouble, "down": Trouble()}
        stored = await asyncio.gather(*(link.append(f"outvote.up.e1.t.life.{n}", b"%d" % n) for n in range(4)))
        way.heal()
        assert await link.log_end() == 4
        assert all(stored) or trouble.repeat  # the answer to the second may come first
        assert (way.touched > 0) == trouble.touches_messages
        assert {each.subject for each in proxy.acknowledged} == {f"outvote.up.e1.t.life.{n}" for n in range(4)}

    through(engine, do)


def test_a_link_notices_soon_that_a_connection_is_dead_which_nobody_has_ended(engine: Engine) -> None:
    """NATS's own pings would take half a minute."""

    async def do(proxy: Proxy, way: Way, link: NatsLog) -> None:
        old = set(way.lines)
        way.cut("up", "down")
        storing = asyncio.create_task(link.append("outvote.up.e1.t.life.0", b"x"))
        await comes(lambda: bool(way.lines - old), "it tries to connect anew", within=15)
        way.heal()
        await storing
        assert await link.log_end() == 1

    through(engine, do)


def test_a_server_that_starts_while_the_engine_does_not_answer_reads_all_once_it_does(engine: Engine) -> None:
    found: list[Record] = []

    async def do(proxy: Proxy, way: Way, link: NatsLog) -> None:
        assert await link.append("outvote.up.e1.t.life.0", b"x")
        way.troubles["up"] = Trouble(drop=1.0)
        follower = await link.follow(found.append)
        assert (found, follower.current) == ([], False)
        way.heal()
        await follower.wait_current()
        await comes(lambda: [each.sequence for each in found] == [1], "it is read")

    through(engine, do)
