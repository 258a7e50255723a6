"""nats-py's own client with a credential, which does not come back: for who must not be one of ours."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client


@asynccontextmanager
async def bare_client(
    url: str, *, name: str, creds: str, context: ssl.SSLContext, note: Callable[[Exception], Awaitable[None]]
) -> AsyncIterator[Client]:
    """Connected, or an error; `note` is told what the engine refuses."""
    client = Client()
    try:
        await client.connect(
            url,
            user_credentials=creds,
            tls=context,
            tls_handshake_first=True,
            inbox_prefix=f"_INBOX.{name}",
            error_cb=note,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=5,
        )
    except BaseException:
        await let_go(client)
        raise
    try:
        yield client
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
