"""Running several coroutines at once, and cancelling tasks reliably."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def run_until_first_exit(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until the first one ends or fails. Then cancel the others, and raise its error if it failed."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks that need no clean-up, and wait until they have ended. In Python 3.11 and in nats-py, a cancellation
    can be lost while a connection is made: so it is repeated."""
    running = [task for task in tasks if not task.done()]
    while running:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=0.5)
        running = [task for task in running if not task.done()]
