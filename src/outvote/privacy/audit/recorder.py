"""A recorder between the sites and the engine: it passes everything on, and keeps every byte with its time.

One rule: it changes nothing, and stands where somebody would who reads the network between a site and the centre.
"""

from __future__ import annotations

import asyncio
import time
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

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        """Take no more connections; those that there are end with the edge, the engine or the audit."""
        if self._server is not None:
            self._server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = Conversation()
        self.conversations.append(conversation)
        try:
            engine_reader, engine_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the engine is away, and the edge will try again
            writer.close()
            return
        await asyncio.gather(
            _pass_on(reader, engine_writer, conversation.up),
            _pass_on(engine_reader, writer, conversation.down),
        )


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: list[tuple[float, bytes]]) -> None:
    """Until one end hangs up; then so does the other, and the other way ends with it."""
    try:
        while piece := await reader.read(1 << 16):
            kept.append((time.monotonic(), piece))
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
