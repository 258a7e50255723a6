"""A recorder between the sites and the engine: it passes everything on, and keeps every byte with its time.

One rule: it changes nothing, and stands where somebody would who reads the network between a site and the centre.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

UP, DOWN = "up", "down"


@dataclass
class Conversation:
    """One connection: what came when, each way."""

    up: list[tuple[float, bytes]] = field(default_factory=list)
    down: list[tuple[float, bytes]] = field(default_factory=list)

    def said(self, way: str) -> bytes:
        return b"".join(piece for _, piece in (self.up if way == UP else self.down))


class Recorder:
    """Listens at a free port of this machine."""

    def __init__(self, engine: str) -> None:
        """`engine` is the address that it passes everything on to."""
        parts = urlsplit(engine)
        self._host, self._port = str(parts.hostname), int(parts.port or 4222)
        self.conversations: list[Conversation] = []
        self.url = ""
        self._server: asyncio.Server | None = None
        self._talking: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for each in self._talking:
            each.cancel()
        await asyncio.gather(*self._talking, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._talking.add(task)
        conversation = Conversation()
        self.conversations.append(conversation)
        writers = [writer]
        try:
            engine_reader, engine_writer = await asyncio.open_connection(self._host, self._port)
            writers.append(engine_writer)
            ways = [
                asyncio.create_task(_pass_on(reader, engine_writer, conversation.up)),
                asyncio.create_task(_pass_on(engine_reader, writer, conversation.down)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in ways:
                    each.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # the engine is away, and the edge will try again; or the audit ends
        finally:
            for end in writers:
                with suppress(OSError, RuntimeError):
                    end.close()
            if task is not None:
                self._talking.discard(task)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: list[tuple[float, bytes]]) -> None:
    with suppress(OSError):
        while piece := await reader.read(1 << 16):
            kept.append((time.monotonic(), piece))
            writer.write(piece)
            await writer.drain()
