"""Reading the one log: every record once, in order, through any number of lost connections.

nats-py's ordered consumer does the reading. After the engine was killed it can be silent for long, so it is watched:
it is made anew at every reconnection, at a gap, and whenever the log grows and nothing of it comes.

An engine whose disk was full goes on giving records and takes no more, until it is started again: that is watched too.

A node of a cluster that lost its disk may for a moment tell of an empty log, while it copies it from the others. So a
cluster is believed that its log was replaced only if it says so for some time.
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
from nats.js.errors import APIError

from outvote.concurrency import cancel
from outvote.core.errors import OutvoteError
from outvote.log.log import Record
from outvote.log.records import DOWN

LOOK_EVERY: Final = 2.0
"""Seconds between two looks at how far the log reaches."""
HEARTBEAT: Final = 2.0
"""Seconds of silence after which the engine says that there is nothing to say."""
ALREADY_THERE: Final = 10077
"""The engine's code for a second message on a subject. It means success: subjects are unique per incarnation."""
NOT_THERE: Final = 10071
"""Its code for a subject that holds another record than was said, or none."""
IN_PROCESS: Final = 10164
"""Its code, in a cluster, for a subject of which something else is just being stored, or is only said to be: an edge
can name any subject in a header of its own message."""
CERTAIN: Final = 15.0
"""Seconds after which a cluster is believed that its log ends before what was read of it."""
_PAUSE: Final = 0.1


def place(reply: str) -> tuple[int, float]:
    """The sequence in the stream, and when it was stored, from the subject for acknowledgements.

    `Msg.metadata` reads all of it, and takes longer than all the rest.
    """
    tokens = reply.split(".")
    first = 5 if len(tokens) == 9 else 7
    return int(tokens[first]), int(tokens[first + 2]) / 1e9


class LogReplaced(OutvoteError):
    """The log ends before what was read of it: it is another log."""


class Follower:
    """One reader of the log."""

    def __init__(
        self,
        stream: JetStreamContext,
        name: str,
        on_record: Callable[[Record], None],
        *,
        doubt: Callable[[], Awaitable[None]],
    ) -> None:
        """`doubt` is called when the engine does not answer: is the connection alive?"""
        self.read = 0
        """The sequence of the last record that was read."""
        self.end = 0
        """How far the log is known to reach."""
        self.writable = True
        """Whether the engine took what it was asked to store, when it was last asked."""
        self._stream = stream
        self._name = name
        self._on_record = on_record
        self._doubt = doubt
        self._there: tuple[str, int] | None = None
        """A record that is in the log, and its sequence."""
        self._again = asyncio.Event()
        self._reached = asyncio.Event()
        """Set at the end of the log."""
        self._subscription: JetStreamContext.PushSubscription | None = None
        self._life = 0
        self._short_since: float | None = None
        """Since when the log is said to end before what was read."""
        self._watching: asyncio.Task[None] | None = None

    @property
    def current(self) -> bool:
        """Whether all was read that is known to be there, and nothing stands in the way of more."""
        return self.read >= self.end and not self._again.is_set()

    async def start(self) -> None:
        """Read from the beginning, in the background; if the engine does not answer now, once it does."""
        self._again.set()
        with suppress(TimeoutError, NatsError, OSError):
            await self._begin()
        self._watching = asyncio.create_task(self._watch())

    async def wait_current(self) -> None:
        """Until everything was read that was there at the last look."""
        while not self.current:
            self._reached.clear()
            await self._reached.wait()

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
            await cancel([self._watching])
        await self._end()

    async def _begin(self) -> None:
        """Read on after the last record that was read."""
        await self._end()
        self._life += 1
        life, first = self._life, True

        async def take(message: Msg) -> None:
            nonlocal first
            sequence, stored = place(message.reply)
            if life != self._life or sequence <= self.read:
                return
            if not first and sequence != self.read + 1:  # a gap; one that is in the log itself is passed the next time
                self._again.set()
                return
            first = False
            self.read = sequence
            if message.subject.startswith(DOWN):
                self._there = message.subject, sequence
            self._on_record(Record(message.subject, message.data, sequence, stored))
            if sequence >= self.end:
                self._reached.set()

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
        self._reached.set()

    async def _end(self) -> None:
        if self._subscription is not None:
            with suppress(NatsError, OSError):
                await self._subscription.unsubscribe()
            self._subscription = None

    async def _look(self) -> None:
        read = self.read  # while the answer is on its way, more may be read than it tells of
        found = await self._stream.stream_info(self._name)
        end = found.state.last_seq
        if end >= read:
            self.end, self._short_since = end, None
            return
        now = asyncio.get_running_loop().time()
        if self._short_since is None:
            self._short_since = now
        alone = found.cluster is None or not found.cluster.name
        if alone or now - self._short_since >= CERTAIN:
            raise LogReplaced(
                f"{read} records were read of the log {self._name}, which now ends at {end}: it was "
                "replaced. Start the server again to read the new one, or restore the old one first"
            )

    async def _ask_to_store(self) -> None:
        """Ask for what an engine in order refuses at once: a second record where there is one.

        One that cannot write does not answer. Were the log another one, the guard would keep it from being stored.
        """
        if self._there is None:
            return
        subject, sequence = self._there
        guard = {"Nats-Expected-Last-Subject-Sequence": str(sequence)}
        try:
            await self._stream.publish(subject, b"", stream=self._name, headers=guard)
        except APIError as error:
            if error.err_code not in (ALREADY_THERE, NOT_THERE, IN_PROCESS):
                raise

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
                await self._ask_to_store()
                self.writable = True
            except (TimeoutError, NatsError, OSError):  # not connected now: there will be a reconnection
                self.writable = False
                await self._doubt()
                await asyncio.sleep(_PAUSE)
