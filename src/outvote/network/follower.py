"""Reading the one log: every record once, in order, through any number of lost connections.

nats-py's ordered consumer does the reading. After the engine was killed it can be silent for long, so it is watched:
it is made anew at every reconnection, at a gap, and whenever the log grows and nothing of it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy

from outvote.core.errors import OutvoteError

Read = Callable[[str, bytes, int], Awaitable[None]]
"""(subject, payload, sequence in the stream)."""

LOOK_EVERY: Final = 2.0
"""Seconds between two looks at how far the log reaches."""
HEARTBEAT: Final = 2.0
"""Seconds of silence after which the engine says that there is nothing to say."""
_PAUSE: Final = 0.1


class LogReplaced(OutvoteError):
    """The log ends before what was read of it: it is another log."""


class Follower:
    """One reader of the log."""

    def __init__(self, stream: JetStreamContext, name: str, read: Read) -> None:
        self.read = 0
        """The sequence of the last record that was read."""
        self.end = 0
        """How far the log is known to reach."""
        self._stream = stream
        self._name = name
        self._give = read
        self._again = asyncio.Event()
        self._subscription: JetStreamContext.PushSubscription | None = None
        self._life = 0
        self._watching: asyncio.Task[None] | None = None

    @property
    def current(self) -> bool:
        """Whether all was read that is known to be there, and nothing stands in the way of more."""
        return self.read >= self.end and not self._again.is_set()

    async def start(self, start: int = 1) -> None:
        """Read from a sequence on, in the background."""
        self.read = start - 1
        await self._begin()
        self._watching = asyncio.create_task(self._watch())

    def begin_again(self) -> None:
        """The connection was lost and has come back."""
        self._again.set()

    async def watch(self) -> None:
        """Until reading is over for good: raises why."""
        assert self._watching is not None
        await asyncio.shield(self._watching)

    async def stop(self) -> None:
        self._life += 1
        if self._watching is not None:
            while not self._watching.done():  # a cancellation can be lost in Python 3.11's wait_for
                self._watching.cancel()
                await asyncio.wait([self._watching], timeout=0.5)
        await self._end()

    async def _begin(self) -> None:
        """Read on after the last record that was read."""
        await self._end()
        self._life += 1
        life, first = self._life, True

        async def take(message: Msg) -> None:
            nonlocal first
            sequence = message.metadata.sequence.stream
            if life != self._life or sequence <= self.read:
                return
            if not first and sequence != self.read + 1:  # a gap; one that is in the log itself is passed the next time
                self._again.set()
                return
            first = False
            self.read = sequence
            await self._give(message.subject, message.data, sequence)

        await self._look()
        self._subscription = await self._stream.subscribe(
            "outvote.>",
            stream=self._name,
            ordered_consumer=True,
            idle_heartbeat=HEARTBEAT,
            config=ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self.read + 1),
            cb=take,
            pending_msgs_limit=-1,  # the engine's flow control is the limit: nothing is dropped here
            pending_bytes_limit=-1,
        )
        self._again.clear()

    async def _end(self) -> None:
        if self._subscription is not None:
            with suppress(NatsError, OSError):
                await self._subscription.unsubscribe()
            self._subscription = None

    async def _look(self) -> None:
        self.end = (await self._stream.stream_info(self._name)).state.last_seq
        if self.end < self.read:
            raise LogReplaced(
                f"{self.read} records were read of the log {self._name}, which now ends at {self.end}: it was "
                "replaced. Start the server again to read the new one, or restore the old one first"
            )

    async def _watch(self) -> None:
        before = self.read
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), LOOK_EVERY)
            try:
                if not self._again.is_set():
                    await self._look()
                    if self.read < self.end and self.read == before:
                        self._again.set()
                    before = self.read
                if self._again.is_set():
                    await self._begin()
            except (TimeoutError, NatsError, OSError):  # not connected now: there will be a reconnection
                await asyncio.sleep(_PAUSE)
