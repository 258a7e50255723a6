"""A log in memory, for tests and simulations: what NATS does for a fleet, in one process and without a socket.

`MemoryEngine` is the log itself. Each edge and server has a `MemoryLog`, its connection. `Wire` says what happens to
messages on the way: subclass it to lose, delay and repeat them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from outvote.log.catch_up import Answer, Question
from outvote.log.log import ConnectionFigures, Record
from outvote.log.records import DOWN

T = TypeVar("T")

PATIENCE: Final = 2.0
"""Seconds that one request may take before it is made again."""
LONGEST_PAUSE: Final = 2.0
"""Seconds between two attempts, at most."""


class Wire:
    """Carries messages between the log and those who use it. This one loses and delays nothing."""

    def copies(self, client: str) -> Sequence[float]:
        """Seconds after which each copy of a message to or from this client arrives; none if it is lost."""
        return (0.0,)

    def takes(self, subject: str) -> bool:
        """Whether the log can store a record now: a disk may be full."""
        return True


class MemoryEngine:
    """The log, and everybody who is connected to it."""

    def __init__(self, wire: Wire | None = None, *, rng: random.Random | None = None) -> None:
        self.records: list[Record] = []
        self.acknowledged: list[Record] = []
        """What somebody was told to be stored."""
        self.wire = wire or Wire()
        self.rng = rng or random.Random()
        self._by_subject: dict[str, Record] = {}
        self._clients: list[MemoryLog] = []

    def connect(self, name: str) -> MemoryLog:
        log = MemoryLog(name, self)
        self._clients.append(log)
        return log

    def leave(self, client: MemoryLog) -> None:
        if client in self._clients:
            self._clients.remove(client)

    def store(self, subject: str, payload: bytes) -> bool | None:
        """Store a record and tell everybody; False if its subject has one, None if nothing can be stored now."""
        if not self.wire.takes(subject):
            return None
        there = self._by_subject.get(subject)
        if there is not None:
            return False
        record = Record(subject, payload, len(self.records) + 1, asyncio.get_running_loop().time())
        self.records.append(record)
        self._by_subject[subject] = record
        for client in self._clients:
            client.on_stored(record)
        return True

    def acknowledge(self, subject: str) -> None:
        self.acknowledged.append(self._by_subject[subject])

    def put(self, edge: str, question: Question, reply: Callable[[Answer | None], None]) -> None:
        """Give a question to one of the servers that answer; nothing comes back where there is none."""
        servers = [client for client in self._clients if client.connected and client.answers]
        for client in servers:
            client.on_question(edge)
        if not servers:
            reply(None)
            return
        self.rng.choice(servers).on_asked(edge, question, reply)


class MemoryLog:
    """The connection of one edge or server."""

    def __init__(self, name: str, engine: MemoryEngine) -> None:
        self.name = name
        self.reconnected = asyncio.Event()
        self.connected = True
        self.answers = False
        self._engine = engine
        self._readers: list[MemoryReader] = []
        self._on_news: Callable[[str, bytes], None] | None = None
        self._reply: Callable[[str, Question], Answer | None] | None = None
        self._on_question: Callable[[str], None] | None = None

    # ---- what happens to the connection

    def cut(self) -> None:
        """Lose the connection; nothing passes until `restore`."""
        self.connected = False

    def restore(self) -> None:
        if not self.connected:
            self.connected = True
            self.reconnected.set()
            for reader in self._readers:
                reader.schedule()

    def crash(self) -> None:
        """Be gone at once. What is on the way to the log still arrives there."""
        self.connected = False
        self._engine.leave(self)

    # ---- what everybody does

    async def open(self) -> None:
        while not self.connected:
            await self.reconnected.wait()

    async def close(self) -> None:
        self.crash()

    def figures(self) -> ConnectionFigures:
        return ConnectionFigures()

    async def append(self, subject: str, payload: bytes) -> bool:
        pause = 0.02
        while (new := await self._request(subject, payload)) is None:
            await asyncio.sleep(pause * self._engine.rng.random())
            pause = min(2 * pause, LONGEST_PAUSE)
        self._engine.acknowledge(subject)
        return new

    async def log_end(self) -> int:
        while not self.connected:
            await asyncio.sleep(0.1)
        return len(self._engine.records)

    # ---- servers

    async def prepare(self) -> None:
        await self.open()

    async def follow(self, on_record: Callable[[Record], None]) -> MemoryReader:
        reader = MemoryReader(self, self._engine, on_record)
        self._readers.append(reader)
        reader.schedule()
        return reader

    async def answer(self, reply: Callable[[str, Question], Answer | None]) -> None:
        self._reply, self.answers = reply, True

    async def overhear(self, on_question: Callable[[str], None]) -> None:
        self._on_question = on_question

    # ---- edges

    async def listen(self, on_news: Callable[[str, bytes], None]) -> None:
        self._on_news = on_news

    async def ask(self, edge: str, question: Question) -> Answer | None:
        waiting: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

        def reply(answer: Answer | None) -> None:
            self._carry(lambda: None if waiting.done() else waiting.set_result(answer))

        self._carry(lambda: self._engine.put(edge, question, reply))
        return await _in_time(waiting)

    # ---- how it works

    def on_stored(self, record: Record) -> None:
        for reader in self._readers:
            reader.schedule()
        if self._on_news is not None and record.subject.startswith(DOWN):
            self._carry(lambda: self._hear(record))

    def on_question(self, edge: str) -> None:
        if self._on_question is not None:
            self._on_question(edge)

    def on_asked(self, edge: str, question: Question, reply: Callable[[Answer | None], None]) -> None:
        if self._reply is not None and (answer := self._reply(edge, question)) is not None:
            reply(answer)

    def _hear(self, record: Record) -> None:
        if self.connected and self._on_news is not None:
            self._on_news(record.subject, record.payload)

    async def _request(self, subject: str, payload: bytes) -> bool | None:
        """Ask once for a record to be stored; None if no answer came."""
        waiting: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()

        def arrive() -> None:
            new = self._engine.store(subject, payload)
            if new is not None:
                self._carry(lambda: None if waiting.done() else waiting.set_result(new))

        self._carry(arrive)
        return await _in_time(waiting)

    def _carry(self, deliver: Callable[[], None]) -> None:
        """Take a message from or to this client, in so many copies as the wire makes of it."""
        if not self.connected:
            return
        loop = asyncio.get_running_loop()
        for delay in self._engine.wire.copies(self.name):
            loop.call_later(delay, deliver)


class MemoryReader:
    """Reads the log for one server."""

    def __init__(self, log: MemoryLog, engine: MemoryEngine, on_record: Callable[[Record], None]) -> None:
        self.read = 0
        self.writable = True
        self._log = log
        self._engine = engine
        self._on_record = on_record
        self._reached = asyncio.Event()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def end(self) -> int:
        return len(self._engine.records)

    @property
    def current(self) -> bool:
        return self.read >= self.end

    async def wait_current(self) -> None:
        while not self.current:
            self._reached.clear()
            await self._reached.wait()

    async def watch(self) -> None:
        await self._failed

    def schedule(self) -> None:
        """Read on in a while, as far as the log reaches now."""
        end = self.end
        loop = asyncio.get_running_loop()
        for delay in self._engine.wire.copies(self._log.name) or (PATIENCE,):  # what is lost is sent again
            loop.call_later(delay, self._read_to, end)

    def _read_to(self, end: int) -> None:
        while self._log.connected and self.read < end:
            self.read += 1
            self._on_record(self._engine.records[self.read - 1])
        if self.current:
            self._reached.set()


async def _in_time(waiting: asyncio.Future[T | None]) -> T | None:
    """What comes within `PATIENCE`; None if nothing does."""

    def give_up() -> None:
        if not waiting.done():
            waiting.set_result(None)

    timer = asyncio.get_running_loop().call_later(PATIENCE, give_up)
    try:
        return await waiting
    finally:
        timer.cancel()
