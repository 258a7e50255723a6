"""A log in memory, for tests and simulations: it replaces NATS in one process, without sockets.

`MemoryEngine` is the log itself. Each edge and server connects with a `MemoryLog`. Subclass `Wire` to lose, delay and
repeat messages.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from outvote.log.catch_up import Answer, Question
from outvote.log.log import ConnectionFigures, Record
from outvote.log.records import DOWN

T = TypeVar("T")

PATIENCE: Final = 2.0
"""Timeout of one request, in seconds, before it is retried."""
LONGEST_PAUSE: Final = 2.0
"""Longest pause between two retries, in seconds."""


class Wire:
    """The network between the log and its clients. This one loses and delays nothing."""

    def copies(self, client: str) -> Sequence[float]:
        """Return the delay in seconds of each copy of a message to or from this client; none if it is lost."""
        return (0.0,)

    def takes(self, subject: str) -> bool:
        """Whether the log can store a record now; a disk may be full."""
        return True


class MemoryEngine:
    """The log and its connected clients."""

    def __init__(self, wire: Wire | None = None, *, rng: random.Random | None = None) -> None:
        self.records: list[Record] = []
        self.by_subject: dict[str, Record] = {}
        self.acknowledged: list[Record] = []
        """Records whose append was acknowledged to a client."""
        self.wire = wire or Wire()
        self.rng = rng or random.Random()
        self.clients: dict[MemoryLog, None] = {}

    def connect(self, name: str) -> MemoryLog:
        log = MemoryLog(name, self)
        self.clients[log] = None
        return log

    def store(self, subject: str, payload: bytes, reply: Callable[[bool], None]) -> None:
        """Store a record and notify all clients, unless its subject has one; no reply while nothing can be stored."""
        if not self.wire.takes(subject):
            return
        new = subject not in self.by_subject
        if new:
            record = Record(subject, payload, len(self.records) + 1, asyncio.get_running_loop().time())
            self.records.append(record)
            self.by_subject[subject] = record
            for client in self.clients:
                client.on_stored(record)
        reply(new)

    def ask(self, edge: str, question: Question, reply: Callable[[Answer | None], None]) -> None:
        """Pass a question to a random answering server; the reply is None if there is none."""
        servers = [client for client in self.clients if client.connected and client.on_asked is not None]
        for client in servers:
            client.on_question(edge, question)
        chosen = self.rng.choice(servers).on_asked if servers else None
        answer = None if chosen is None else chosen(edge, question)
        if chosen is None or answer is not None:
            reply(answer)


class MemoryLog:
    """The connection of one edge or server. It is also the server's `Reader`."""

    def __init__(self, name: str, engine: MemoryEngine) -> None:
        self.name = name
        self.reconnected = asyncio.Event()
        self.connected = True
        self.writable = True
        self.read = 0
        """Number of records passed to `on_record`."""
        self.on_asked: Callable[[str, Question], Answer | None] | None = None
        self.on_question: Callable[[str, Question], None] = lambda edge, question: None
        self._on_record: Callable[[Record], None] | None = None
        self._on_news: Callable[[str, bytes], None] | None = None
        self._engine = engine
        self._reached = asyncio.Event()

    # ---- faults of the connection

    def cut(self) -> None:
        """Lose the connection until `restore`."""
        self.connected = False

    def restore(self) -> None:
        if not self.connected:
            self.connected = True
            self.reconnected.set()
            self._schedule()

    def crash(self) -> None:
        """Disconnect at once. Messages already sent to the log still arrive."""
        self.connected = False
        self._engine.clients.pop(self, None)

    # ---- edges and servers

    async def open(self) -> None:
        while not self.connected:
            await self.reconnected.wait()

    async def close(self) -> None:
        self.crash()

    def figures(self) -> ConnectionFigures:
        return ConnectionFigures()

    async def append(self, subject: str, payload: bytes) -> bool:
        store: Callable[[Callable[[bool], None]], None] = partial(self._engine.store, subject, payload)
        pause = 0.02
        while (new := await self._request(store)) is None:
            await asyncio.sleep(pause * self._engine.rng.random())
            pause = min(2 * pause, LONGEST_PAUSE)
        self._engine.acknowledged.append(self._engine.by_subject[subject])
        return new

    # ---- servers

    async def prepare(self) -> None:
        await self.open()

    async def log_end(self) -> int:
        while not self.connected:
            await asyncio.sleep(0.1)
        return self.end

    async def follow(self, on_record: Callable[[Record], None]) -> MemoryLog:
        self._on_record = on_record
        self._schedule()
        return self

    async def answer(self, reply: Callable[[str, Question], Answer | None]) -> None:
        self.on_asked = reply

    async def overhear(self, on_question: Callable[[str, Question], None]) -> None:
        self.on_question = on_question

    # ---- edges

    async def listen(self, on_news: Callable[[str, bytes], None]) -> None:
        self._on_news = on_news

    async def ask(self, edge: str, question: Question) -> Answer | None:
        return await self._request(partial(self._engine.ask, edge, question))

    # ---- reading

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
        await asyncio.get_running_loop().create_future()

    def _schedule(self) -> None:
        """Schedule reading up to the current end of the log."""
        if self._on_record is not None:
            for delay in self._engine.wire.copies(self.name) or (PATIENCE,):  # a lost delivery is retried
                asyncio.get_running_loop().call_later(delay, self._read_to, self.end)

    def _read_to(self, end: int) -> None:
        while self.connected and self.read < end and self._on_record is not None:
            self.read += 1
            self._on_record(self._engine.records[self.read - 1])
        if self.current:
            self._reached.set()

    # ---- internals

    def on_stored(self, record: Record) -> None:
        self._schedule()
        if self._on_news is not None and record.subject.startswith(DOWN):
            self._carry(self._hear, record)

    def _hear(self, record: Record) -> None:
        if self.connected and self._on_news is not None:
            self._on_news(record.subject, record.payload)

    async def _request(self, serve: Callable[[Callable[[T], None]], None]) -> T | None:
        """Ask the engine once; None on timeout."""
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def arrive(reply: T) -> None:
            if not waiting.done():
                waiting.set_result(reply)

        self._carry(serve, partial(self._carry, arrive))
        await asyncio.wait([waiting], timeout=PATIENCE)
        return waiting.result() if waiting.done() else None

    def _carry(self, deliver: Callable[..., None], *arguments: object) -> None:
        """Deliver a message from or to this client, in as many copies as the wire makes."""
        if self.connected:
            for delay in self._engine.wire.copies(self.name):
                asyncio.get_running_loop().call_later(delay, deliver, *arguments)
