"""Several things that run side by side: until one of them ends, and how they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def run_until_first_exit(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until one has ended, or failed, and end the others; raises what it was."""
    doing = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in doing:
            each.cancel()
        await asyncio.wait(doing)


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """End tasks that have nothing to put in order. In Python 3.11, and in nats-py, a cancellation can be lost while a
    connection is made: so they are told again until they have ended."""
    running = [each for each in tasks if not each.done()]
    while running:
        for each in running:
            each.cancel()
        await asyncio.wait(running, timeout=0.5)
        running = [each for each in running if not each.done()]
