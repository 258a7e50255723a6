"""An event loop with a clock of its own: nothing waits, the clock jumps to whatever comes next.

What happens depends on the program and its random numbers only, so a run can be repeated to the byte.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

PROCESS: contextvars.ContextVar[dict[asyncio.Task[Any], None]] = contextvars.ContextVar("PROCESS")
"""The tasks of the simulated process whose code runs now."""


SINCE_1970: Final = 1_750_000_000.0
"""What wall clocks ought to show when a run begins."""
OFF: Final = (0.0, 5.0, 5 * 3600.0)
"""Seconds by which one may be wrong at most."""


class Standstill(RuntimeError):
    """Nothing will ever happen again."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Uses three private parts of `BaseEventLoop`: `_selector`, `_process_events` and `_write_to_self`."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Jump to the next timer instead of waiting for it."""
        if timeout is None:
            raise Standstill("no timer is set and nothing is ready: somebody waits for ever")
        self._now += timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class Clocks:
    """Of a machine since it was started: one begins anywhere and goes right, one is wrong otherwise at each look."""

    def __init__(self, time: Callable[[], float], rng: random.Random) -> None:
        self._time = time
        self._rng = rng
        self._origin = rng.uniform(0.0, 1e6)
        self._started: float | None = None

    def steady(self) -> float:
        return self._time() + self._origin

    def wall(self) -> float:
        off = self._rng.choice(OFF)
        shown = SINCE_1970 + self._time() + self._rng.uniform(-off, off)
        if self._started is None:
            self._started = shown - self.steady()
        return shown

    def now(self) -> int:
        """What an edge must go by: the first look at the wall, then the steady one; in milliseconds."""
        return int((self.steady() + (self._started or 0.0)) * 1000)


def _make_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Note each task with the process that began it."""
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    process = PROCESS.get(None)
    if process is not None:
        process[task] = None  # a set would have them in another order in every run
        task.add_done_callback(lambda done: process.pop(done, None))
    return task


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time until the work is done; whatever still runs then is cancelled."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(_end_others())
        loop.close()


async def _end_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
