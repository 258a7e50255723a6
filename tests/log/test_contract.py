"""What every log promises to edges and servers: the one on NATS, and the one in memory."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from helpers.processes import comes
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.catch_up import Answer, Question, TaskUpdate
from outvote.log.log import Log, Record
from outvote.log.memory import MemoryEngine
from outvote.log.site_report import SiteReport

QUESTION = Question("0" * 16, {"shop-1": 2}, {"shop-1": SiteReport(1_000, ("no_rewards",))})
ANSWER = Answer(read=7, tasks={"shop-1": TaskUpdate(stopped=False, highest=3, count=4, eliminations=(b"\x01\xff",))})
Connect = Callable[[str], Awaitable[Log]]


class Contract(ABC):
    """Each test is given a way to connect to one log, which is empty."""

    @abstractmethod
    def run(self, work: Callable[[Connect], Coroutine[Any, Any, None]], tmp_path: Path) -> None:
        """Do the work on a log of the kind that is tested."""

    def test_a_subject_holds_the_first_record_for_ever(self, tmp_path: Path) -> None:
        async def work(connect: Connect) -> None:
            one, other = await connect("server"), await connect("server")
            await one.prepare()
            assert await one.append("outvote.down.shop-1.stop", b"first")
            assert not await other.append("outvote.down.shop-1.stop", b"second")
            assert not await one.append("outvote.down.shop-1.stop", b"first")
            assert await one.log_end() == 1
            read: list[Record] = []
            await other.follow(read.append)
            await comes(lambda: len(read) == 1, "the record is read")
            assert (read[0].subject, read[0].payload, read[0].sequence) == ("outvote.down.shop-1.stop", b"first", 1)

        self.run(work, tmp_path)

    def test_a_reader_gets_old_and_new_records_once_and_in_order(self, tmp_path: Path) -> None:
        async def work(connect: Connect) -> None:
            log = await connect("server")
            await log.prepare()
            for number in range(20):
                await log.append(f"outvote.up.ams.shop-1.{'0' * 16}.{number}", bytes([number]))
            read: list[Record] = []
            reader = await log.follow(read.append)
            await reader.wait_current()
            assert [record.payload[0] for record in read] == list(range(20))
            for number in range(20, 40):
                await log.append(f"outvote.up.ams.shop-1.{'0' * 16}.{number}", bytes([number]))
            await comes(lambda: len(read) == 40, "the new records are read")
            assert [record.sequence for record in read] == list(range(1, 41))
            assert [record.payload[0] for record in read] == list(range(40))
            assert all(before.stored <= after.stored for before, after in itertools.pairwise(read))
            assert reader.current
            assert reader.writable

        self.run(work, tmp_path)

    def test_edges_hear_what_goes_down_and_nothing_of_each_other(self, tmp_path: Path) -> None:
        async def work(connect: Connect) -> None:
            server, edge = await connect("server"), await connect("ams")
            await server.prepare()
            heard: list[tuple[str, bytes]] = []
            await edge.listen(lambda subject, payload: heard.append((subject.split(".", 2)[2], payload)))
            await server.append(f"outvote.up.paris.shop-1.{'0' * 16}.0", b"secret")
            await server.append("outvote.down.shop-1.elim.0", b"news")
            await comes(lambda: bool(heard), "news are heard")
            assert heard == [("shop-1.elim.0", b"news")]

        self.run(work, tmp_path)

    def test_one_server_answers_and_all_hear_who_asked_what(self, tmp_path: Path) -> None:
        async def work(connect: Connect) -> None:
            servers, edge = [await connect("server"), await connect("server")], await connect("ams")
            await servers[0].prepare()
            asked: list[tuple[str, Question]] = []
            heard: list[tuple[str, Question]] = []

            def reply(name: str, question: Question) -> Answer:
                asked.append((name, question))
                return ANSWER

            for server in servers:
                await server.answer(reply)
                await server.overhear(lambda name, question: heard.append((name, question)))
            assert await edge.ask("ams", QUESTION) == ANSWER
            assert asked == [("ams", QUESTION)]
            await comes(lambda: len(heard) == 2, "both have heard it")
            assert heard == [("ams", QUESTION)] * 2

        self.run(work, tmp_path)

    def test_without_a_server_that_answers_there_is_none(self, tmp_path: Path) -> None:
        async def work(connect: Connect) -> None:
            server, edge = await connect("server"), await connect("ams")
            await server.prepare()
            assert await edge.ask("ams", QUESTION) is None
            await server.answer(lambda name, question: None)
            assert await edge.ask("ams", QUESTION) is None

        self.run(work, tmp_path)

    def test_whoever_has_closed_is_not_connected_and_is_told_nothing(self, tmp_path: Path) -> None:
        async def work(connect: Connect) -> None:
            server, edge = await connect("server"), await connect("ams")
            await server.prepare()
            heard: list[str] = []
            await edge.listen(lambda subject, payload: heard.append(subject))
            assert edge.connected
            await edge.close()
            assert not edge.connected
            await server.append("outvote.down.shop-1.elim.0", b"news")
            assert await server.log_end() == 1
            assert heard == []

        self.run(work, tmp_path)


class TestMemory(Contract):
    def run(self, work: Callable[[Connect], Coroutine[Any, Any, None]], tmp_path: Path) -> None:
        engine = MemoryEngine()

        async def connect(name: str) -> Log:
            return engine.connect(name)

        asyncio.run(work(connect))


class TestNats(Contract):
    def run(self, work: Callable[[Connect], Coroutine[Any, Any, None]], tmp_path: Path) -> None:
        async def on(engine: Engine) -> None:
            opened: list[NatsLog] = []

            async def connect(name: str) -> Log:
                opened.append(await NatsLog.connect(engine.url, name=name, patience=30.0))
                return opened[-1]

            try:
                await work(connect)
            finally:
                for log in opened:
                    await log.close()

        with Engine(tmp_path / "engine", port=0) as engine:
            asyncio.run(on(engine))
