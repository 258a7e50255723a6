"""A proxy between clients and engines that can lose, hold, delay, repeat and exchange what passes, and notes what the
engine has acknowledged. It knows nothing of the package.

Each way from one party to another has a port of its own. *Up* is from who connects, *down* is back. What is held while
a way is cut is passed on when it is healed, as TCP would; or the connections end then.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Final, Literal, NamedTuple

Direction = Literal["up", "down"]
DIRECTIONS: Final[tuple[Direction, Direction]] = ("up", "down")
CHUNK: Final = 64 * 1024
EXCHANGE: Final = 0.05
"""Seconds after which a message that waits for the next one, to go after it, goes by itself."""


class Frame(NamedTuple):
    """One piece of NATS's client protocol."""

    kind: str
    """Its verb: PUB, MSG, PING, …"""
    subject: str
    reply: str
    body: bytes
    """The payload, without headers."""
    raw: bytes

    @property
    def is_message(self) -> bool:
        return self.kind in _WITH_BODY


_WITH_BODY: Final = {"PUB": 1, "HPUB": 1, "MSG": 2, "HMSG": 2}
"""Verbs that a body follows, and how many words come before the reply subject, if there is one."""


class Frames:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._rest += data
        while (frame := self._next()) is not None:
            del self._rest[: len(frame.raw)]
            yield frame

    def _next(self) -> Frame | None:
        end = self._rest.find(b"\r\n")
        if end < 0:
            return None
        verb, *words = self._rest[:end].decode(errors="replace").split(" ") if end < CHUNK else ["?"]
        verb = verb.upper()
        if verb not in _WITH_BODY:
            return Frame(verb, "", "", b"", bytes(self._rest[: end + 2]))
        sizes = 2 if verb.startswith("H") else 1
        size = int(words[-1])
        whole = end + 2 + size + 2
        if len(self._rest) < whole:
            return None
        head = int(words[-2]) if sizes == 2 else 0
        before = _WITH_BODY[verb]
        reply = words[before] if len(words) > before + sizes else ""
        body = bytes(self._rest[end + 2 + head : whole - 2])
        return Frame(verb, words[0], reply, body, bytes(self._rest[:whole]))


class Acknowledged(NamedTuple):
    """The engine has said that this is stored."""

    subject: str
    payload: bytes
    sequence: int
    at: float
    """By the loop's clock."""


@dataclass
class Trouble:
    """What happens in one direction of a way: probabilities are per message, seconds per piece."""

    cut: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    drop: float = 0.0
    repeat: float = 0.0
    exchange: float = 0.0

    @property
    def touches_messages(self) -> bool:
        return bool(self.drop or self.repeat or self.exchange)


@dataclass(eq=False)
class Way:
    """From one party to another, and back."""

    near: str
    far: str
    host: str
    port: int
    """Where the far party listens."""
    speaks_nats: bool
    rng: random.Random
    troubles: dict[Direction, Trouble] = field(default_factory=lambda: {each: Trouble() for each in DIRECTIONS})
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while nothing is cut; replaced when something is."""
    lines: set[Line] = field(default_factory=set)
    touched: int = 0
    """Messages that were dropped, repeated or exchanged."""
    begins: int = 0
    """The port where the near party connects."""

    def cut(self, *directions: Direction) -> None:
        for each in directions:
            self.troubles[each].cut = True
        self.healed.clear()

    def heal(self, *, reset: bool = False) -> None:
        """All is well again; with `reset` the connections that were cut end, and else go on with what was held."""
        for each in DIRECTIONS:
            self.troubles[each] = Trouble()
        self.healed.set()
        if reset:
            self.reset()

    def reset(self) -> None:
        for line in list(self.lines):
            line.break_off()


class Line:
    """One connection."""

    def __init__(self, way: Way, near: asyncio.StreamWriter, acknowledged: list[Acknowledged]) -> None:
        self.way = way
        self._writers = [near]
        self._acknowledged = acknowledged
        self._asked: dict[str, tuple[str, bytes]] = {}
        """By reply subject: what was published and is not acknowledged."""

    def break_off(self) -> None:
        for each in self._writers:
            each.transport.abort()

    async def carry(self, reader: asyncio.StreamReader) -> None:
        near = self._writers[0]
        await self._wait_uncut("up")
        far_reader, far = await asyncio.open_connection(self.way.host, self.way.port)
        self._writers.append(far)
        pumps = [
            asyncio.create_task(self._pump(reader, far, "up")),
            asyncio.create_task(self._pump(far_reader, near, "down")),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in pumps:
                each.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.break_off()

    async def _wait_uncut(self, direction: Direction) -> None:
        while self.way.troubles[direction].cut:
            await self.way.healed.wait()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
        frames = Frames()
        kept: list[bytes] = []  # a message that goes after the next one
        while True:
            if kept:
                try:
                    data = await asyncio.wait_for(reader.read(CHUNK), EXCHANGE)
                except TimeoutError:
                    writer.write(kept.pop())
                    continue
            else:
                data = await reader.read(CHUNK)
            if not data:
                return
            found = list(frames.feed(data)) if self.way.speaks_nats else []
            for frame in found:
                self._note(frame, direction)
            trouble = self.way.troubles[direction]
            if trouble.delay or trouble.jitter:
                await asyncio.sleep(max(0.0, trouble.delay + trouble.jitter * self.way.rng.uniform(-1, 1)))
            await self._wait_uncut(direction)
            if writer.is_closing():  # the other end has given up meanwhile
                return
            if not self.way.speaks_nats:
                writer.write(data)
            else:
                for frame in found:
                    self._pass(frame, writer, self.way.troubles[direction], kept)
            await writer.drain()

    def _pass(self, frame: Frame, writer: asyncio.StreamWriter, trouble: Trouble, kept: list[bytes]) -> None:
        rng = self.way.rng
        if not frame.is_message or not trouble.touches_messages:
            writer.write(frame.raw)
        elif rng.random() < trouble.drop:
            self.way.touched += 1
            return
        elif rng.random() < trouble.repeat:
            self.way.touched += 1
            writer.write(frame.raw * 2)
        elif not kept and rng.random() < trouble.exchange:
            self.way.touched += 1
            kept.append(frame.raw)
            return
        else:
            writer.write(frame.raw)
        if frame.is_message and kept:
            writer.write(kept.pop())

    def _note(self, frame: Frame, direction: Direction) -> None:
        """What the engine says, also if it will not be heard: it has said it."""
        if direction == "up":
            if frame.kind in ("PUB", "HPUB") and frame.reply:
                self._asked[frame.reply] = (frame.subject, frame.body)
        elif frame.is_message and frame.subject in self._asked:
            subject, payload = self._asked[frame.subject]
            with suppress(ValueError, TypeError):
                said = json.loads(frame.body)
                if "error" not in said and isinstance(said.get("seq"), int) and "stream" in said:
                    now = asyncio.get_running_loop().time()
                    self._acknowledged.append(Acknowledged(subject, payload, said["seq"], now))
            del self._asked[frame.subject]


class Proxy:
    """All ways; what the engine has acknowledged on those that speak NATS in plaintext."""

    def __init__(self, rng: random.Random) -> None:
        self.ways: dict[tuple[str, str], Way] = {}
        self.acknowledged: list[Acknowledged] = []
        self._rng = rng
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()

    async def open(
        self, near: str, far: str, *, to: tuple[str, int], speaks_nats: bool, at: tuple[str, int] = ("127.0.0.1", 0)
    ) -> int:
        """A new way to an address; returns the port where it begins, which `at` may choose."""
        way = Way(near, far, *to, speaks_nats=speaks_nats, rng=random.Random(self._rng.random()))
        way.healed.set()

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._carrying.add(task)
            line = Line(way, writer, self.acknowledged)
            way.lines.add(line)
            try:
                with suppress(OSError, asyncio.IncompleteReadError):
                    await line.carry(reader)
            except asyncio.CancelledError:
                pass  # the proxy is being closed: the line ends here
            finally:
                line.break_off()
                way.lines.discard(line)
                self._carrying.discard(task)

        server = await asyncio.start_server(carry, *at)
        self._servers.append(server)
        self.ways[near, far] = way
        way.begins = int(server.sockets[0].getsockname()[1])
        return way.begins

    def between(self, one: str, other: str) -> list[Way]:
        """The ways from either to the other; patterns are as of file names."""
        return [
            way
            for (near, far), way in self.ways.items()
            if (fnmatch(near, one) and fnmatch(far, other)) or (fnmatch(near, other) and fnmatch(far, one))
        ]

    def heal(self, *, reset: bool = False) -> None:
        for way in self.ways.values():
            way.heal(reset=reset)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        carrying = list(self._carrying)
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
