"""Several things that run side by side until one of them ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*works: Coroutine[Any, Any, None]) -> None:
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
