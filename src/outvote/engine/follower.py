"""Reads the log: every record once and in order, over any number of lost connections.

It uses nats-py's ordered consumer. After the engine was killed, that can be silent for long. So it is replaced at every
reconnection, at a gap, and whenever the log grows and no record arrives.

An engine whose disk was full still delivers records, but stores none until it is restarted. So writing is checked too.

A cluster node that lost its disk may briefly report an empty log, while it copies the log from the others. So a
cluster's log counts as replaced only if this lasts for some time.
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
"""Seconds between two checks of the end of the log."""
HEARTBEAT: Final = 2.0
"""Seconds without records after which the engine sends a heartbeat."""
ALREADY_THERE: Final = 10077
"""The engine's error code for a second record on a subject. It means success: the first one is stored."""
NOT_THERE: Final = 10071
"""Its error code for a subject whose record has another sequence than expected, or that has none."""
IN_PROCESS: Final = 10164
"""Its error code, in a cluster, for a subject on which another record is just being stored, or claims to be: an edge
can name any subject in a header of its own message."""
CERTAIN: Final = 15.0
"""Seconds that a cluster must report a shorter log than was read, until the log counts as replaced."""
_PAUSE: Final = 0.1


def place(reply: str) -> tuple[int, float]:
    """Parse a record's sequence and storage time from the subject for acknowledgements.

    `Msg.metadata` parses all fields, and takes longer than everything else here.
    """
    tokens = reply.split(".")
    first = 5 if len(tokens) == 9 else 7
    return int(tokens[first]), int(tokens[first + 2]) / 1e9


class LogReplaced(OutvoteError):
    """The log ends before the last record read: it is another log."""


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
        """`doubt` is called when the engine does not answer; it checks the connection."""
        self.read = 0
        """Sequence of the last record read."""
        self.end = 0
        """Sequence of the last record known to be in the log."""
        self.writable = True
        """Whether the last check of writing succeeded."""
        self._stream = stream
        self._name = name
        self._on_record = on_record
        self._doubt = doubt
        self._stored: tuple[str, int] | None = None
        """Subject and sequence of a record in the log."""
        self._again = asyncio.Event()
        self._reached = asyncio.Event()
        """Set when the end of the log was read."""
        self._subscription: JetStreamContext.PushSubscription | None = None
        self._life = 0
        self._short_since: float | None = None
        """Since when the engine reports a shorter log than was read."""
        self._watching: asyncio.Task[None] | None = None

    @property
    def current(self) -> bool:
        """Whether all known records were read, and no new subscription is needed."""
        return self.read >= self.end and not self._again.is_set()

    async def start(self) -> None:
        """Read from the beginning in the background, as soon as the engine answers."""
        self._again.set()
        with suppress(TimeoutError, NatsError, OSError):
            await self._begin()
        self._watching = asyncio.create_task(self._watch())

    async def wait_current(self) -> None:
        """Return once all records known at the last check were read."""
        while not self.current:
            self._reached.clear()
            await self._reached.wait()

    def begin_again(self) -> None:
        """Subscribe again after a reconnection."""
        self._again.set()

    async def watch(self) -> None:
        """Run until reading fails for good, then raise the reason."""
        assert self._watching is not None
        await asyncio.shield(self._watching)

    async def stop(self) -> None:
        self._life += 1
        if self._watching is not None:
            await cancel([self._watching])
        await self._end()

    async def _begin(self) -> None:
        """Subscribe from the record after the last one read."""
        await self._end()
        self._life += 1
        life, first = self._life, True

        async def take(message: Msg) -> None:
            nonlocal first
            sequence, stored = place(message.reply)
            if life != self._life or sequence <= self.read:
                return
            if (
                not first and sequence != self.read + 1
            ):  # a gap; the next subscription skips one that is in the log itself
                self._again.set()
                return
            first = False
            self.read = sequence
            if message.subject.startswith(DOWN):
                self._stored = message.subject, sequence
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
            pending_msgs_limit=-1,  # the engine's flow control is the limit: drop nothing here
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
        read = self.read  # while the request is pending, reading may pass the end that it reports
        info = await self._stream.stream_info(self._name)
        end = info.state.last_seq
        if end >= read:
            self.end, self._short_since = end, None
            return
        now = asyncio.get_running_loop().time()
        if self._short_since is None:
            self._short_since = now
        alone = info.cluster is None or not info.cluster.name
        if alone or now - self._short_since >= CERTAIN:
            raise LogReplaced(
                f"{read} records were read of the log {self._name}, which now ends at {end}: it was "
                "replaced. Start the server again to read the new one, or restore the old one first"
            )

    async def _ask_to_store(self) -> None:
        """Check that the engine can write: send a second record on a subject, which a healthy engine refuses at once.

        An engine that cannot write does not answer. The guard prevents the record from being stored in another log.
        """
        if self._stored is None:
            return
        subject, sequence = self._stored
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
            except (TimeoutError, NatsError, OSError):  # disconnected: a reconnection will follow
                self.writable = False
                await self._doubt()
                await asyncio.sleep(_PAUSE)
