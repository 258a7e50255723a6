"""The bare handler on uvicorn as it comes, as a program: what our own listener is compared with. Tells its port."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import uvicorn
import uvloop

from benchmarks.network.processes import say_json
from benchmarks.network.served import bare


async def serve() -> None:
    config = uvicorn.Config(bare, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        say_json({"port": listener.getsockname()[1]})
        await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        uvloop.run(serve())
