"""nats-py's own client with a credential, which does not come back: for who must not be one of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from helpers.processes import DEADLINE, comes
from outvote.access.engine_access import Access
from outvote.log.records import SYNC


class Guest:
    """A connection, and what the engine objected to."""

    def __init__(self) -> None:
        self.client = Client()
        self.troubles: list[str] = []

    async def note(self, error: Exception) -> None:
        self.troubles.append(str(error))

    async def denied(self, doing: Callable[[], Awaitable[object]]) -> None:
        """Do something, and wait until the engine says that it is not allowed."""
        before = len(self.troubles)
        await doing()
        await self.client.flush()
        await comes(lambda: len(self.troubles) > before, "the engine refuses it")
        assert "permissions violation" in self.troubles[-1].lower(), self.troubles[-1]

    async def silence(self, subject: str, payload: bytes = b"") -> None:
        """A request that nobody may answer, since it does not arrive."""
        try:
            answer = await self.client.request(subject, payload, timeout=0.3)
        except (TimeoutError, NatsError):
            return
        raise AssertionError(f"answered: {answer.data!r}")

    async def ask(self) -> dict[str, Any]:
        """What a server answers to an edge that knows nothing yet."""
        question = b'{"incarnation": "a", "tasks": {}}'
        return dict(json.loads((await self.client.request(f"{SYNC}.mallory", question, timeout=DEADLINE)).data))

    async def ends(self) -> None:
        await comes(lambda: self.client.is_closed, "it is cut off")


@asynccontextmanager
async def guest(url: str, name: str, access: Access) -> AsyncIterator[Guest]:
    """Connected, or an error."""
    opened = Guest()
    client = opened.client
    try:
        await client.connect(
            url,
            user_credentials=str(access.creds),
            tls=access.context(),
            tls_handshake_first=True,
            inbox_prefix=f"_INBOX.{name}",
            error_cb=opened.note,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=5,
        )
    except BaseException:
        await let_go(client)
        raise
    try:
        yield opened
    finally:
        await client.close()
        await let_go(client)


async def let_go(client: Client) -> None:
    """Of a connection that did not come about, or was ended: nats-py may keep its socket."""
    transport: Any = client._transport
    if transport is not None:
        for writer in (transport._io_writer, transport._bare_io_writer):
            if writer is not None:
                writer.transport.abort()
    for _ in range(3):  # what is aborted is closed at a later turn of the loop
        await asyncio.sleep(0)
