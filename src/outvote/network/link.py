"""The one connection to the engine: the stream, storing a record once, following the log, live news and catch-up.

Only this module, its parts `follower` and `wire`, and `engine` know NATS.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import DiscardPolicy, RePublish, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from outvote.core.errors import OutvoteError
from outvote.network.follower import ALREADY_THERE, Follower, Read
from outvote.network.logs import event
from outvote.network.records import DOWN, LIVE, SYNC, UP
from outvote.network.wire import WireBytes

STREAM = "OUTVOTE"
PATIENCE = 2.0
"""Seconds that one request may take before it is made again."""

_log = logging.getLogger(__name__)


class LinkError(OutvoteError):
    """The engine cannot be reached, or is not set up as it must be."""


def stream_config(replicas: int = 1) -> StreamConfig:
    """One message per subject for ever; a second is refused; what goes down is published again to who listens."""
    return StreamConfig(
        name=STREAM,
        subjects=[f"{UP}.>", f"{DOWN}.>"],
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        discard_new_per_subject=True,
        max_msg_size=64 * 1024,
        republish=RePublish(src=f"{DOWN}.>", dest=f"{LIVE}.>"),
    )


MUST_AGREE = (
    "subjects", "storage", "num_replicas", "max_msgs_per_subject", "discard", "discard_new_per_subject", "republish",
)  # fmt: skip
"""What a stream that is there already must have in common with what we would create."""


class Link:
    """A connection that comes back by itself."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream = client.jetstream(timeout=PATIENCE)
        self.reconnected = asyncio.Event()
        """Set at every reconnection: whoever cares clears it."""
        self.reconnections = 0
        self._followers: list[Follower] = []
        self._wire = WireBytes()
        self._closing = False

    @classmethod
    async def connect(cls, url: str, *, name: str, patience: float | None = None) -> Link:
        """Connect; without `patience`, in seconds, try for ever."""
        made: list[Link] = []
        told = False

        async def lost() -> None:
            if made and not made[0]._closing:
                event(_log, logging.WARNING, "engine_disconnected")

        async def again() -> None:
            event(_log, logging.INFO, "engine_reconnected")
            for link in made:
                link.reconnections += 1
                link.reconnected.set()
                for follower in link._followers:
                    follower.begin_again()

        async def quiet(error: Exception) -> None:
            """Errors of single requests are raised there; the rest heals by itself. Before the first connection there
            is one for every attempt."""
            nonlocal told
            if patience is None and not made and not told:
                told = True
                event(_log, logging.WARNING, "engine_unreachable", error=type(error).__qualname__)

        connecting = nats.connect(
            url,
            name=name,
            inbox_prefix=f"_INBOX.{name}",
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.25,
            ping_interval=10,
            connect_timeout=2,
            error_cb=quiet,
            disconnected_cb=lost,
            reconnected_cb=again,
        )
        try:
            made.append(cls(await asyncio.wait_for(connecting, patience)))
        except (NatsError, OSError, TimeoutError) as error:
            why = str(error) or f"nothing within {patience:g} s"
            raise LinkError(f"no NATS answers at {url}: {why}; start one, or name another") from None
        event(_log, logging.INFO, "engine_connected")
        return made[0]

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        return bool(self._client.is_connected)

    @property
    def wire_bytes(self) -> int:
        """Bytes that have really crossed the network, both ways; call it now and then: see `WireBytes`."""
        return self._wire.count(self._client)

    async def close(self) -> None:
        self._closing = True
        for follower in self._followers:
            await follower.stop()
        with suppress(OSError):  # a connection that is lost already cannot be closed in order
            await self._client.close()

    async def ensure_stream(self, *, replicas: int = 1, deadline: float = 30.0) -> None:
        """Create the stream, or check that the one that is there is as it must be."""
        wanted = stream_config(replicas)
        until = asyncio.get_running_loop().time() + deadline
        while True:
            try:
                found = (await self._stream.stream_info(STREAM)).config
                break
            except NotFoundError:
                try:
                    await self._stream.add_stream(wanted)
                    return
                except APIError as error:  # a cluster without a leader yet, or another server was first
                    if asyncio.get_running_loop().time() > until:
                        raise LinkError(f"the stream {STREAM} cannot be created: {error.description}") from None
            except (TimeoutError, NatsError) as error:
                if asyncio.get_running_loop().time() > until:
                    raise LinkError(f"JetStream does not answer: {error}; is it enabled?") from None
            await asyncio.sleep(0.1)
        differing = [
            f"{name} is {getattr(found, name)!r}, needed is {getattr(wanted, name)!r}"
            for name in MUST_AGREE
            if getattr(found, name) != getattr(wanted, name)
        ]
        if differing:
            raise LinkError(f"the stream {STREAM} is not ours to use: {'; '.join(differing)}. Use another engine")

    async def store(self, subject: str, payload: bytes) -> bool:
        """Store a record once; returns whether it is new. Tries until the engine has answered."""
        pause = 0.02
        while True:
            try:
                await self._stream.publish(subject, payload, timeout=PATIENCE, stream=STREAM)
                return True
            except APIError as error:
                if error.err_code == ALREADY_THERE:
                    return False
            except (TimeoutError, NatsError):
                pass  # not connected now, or no answer: it may or may not be stored, so again
            await asyncio.sleep(pause * random.random())
            pause = min(2 * pause, 2.0)

    async def stored(self, subject: str) -> bytes | None:
        """What is stored on a subject."""
        try:
            message = await self._stream.get_last_msg(STREAM, subject)
        except NotFoundError:
            return None
        return message.data or b""

    async def last_sequence(self) -> int:
        return (await self._stream.stream_info(STREAM)).state.last_seq

    async def follow(self, read: Read, *, start: int = 1) -> Follower:
        """Give every record of the log to `read`, in order, from a sequence on; goes on in the background."""
        follower = Follower(self._stream, STREAM, read)
        await follower.start(start)
        self._followers.append(follower)
        return follower

    async def listen(self, hear: Callable[[str, bytes], None]) -> None:
        """Live news: what goes down, as it is stored. What is missed is missed: catch up."""

        async def take(message: Msg) -> None:
            hear(message.subject, message.data)

        await self._client.subscribe(f"{LIVE}.>", cb=take)
        await self._client.flush()

    async def overhear(self, heard: Callable[[str], None]) -> None:
        """Who catches up, whichever server answers: the signs of life of all edges."""

        async def take(message: Msg) -> None:
            heard(message.subject.rpartition(".")[2])

        await self._client.subscribe(f"{SYNC}.*", cb=take)
        await self._client.flush()

    async def ask(self, edge: str, question: dict[str, Any]) -> dict[str, Any] | None:
        """Catch up: ask any server; None if none answers in time."""
        try:
            answer = await self._client.request(f"{SYNC}.{edge}", json.dumps(question).encode(), timeout=PATIENCE)
        except (TimeoutError, NatsError):
            return None
        try:
            found = json.loads(answer.data)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    async def answer(self, reply: Callable[[str, dict[str, Any]], dict[str, Any] | None]) -> None:
        """Be one of the servers that answer those who catch up; None is no answer."""

        async def take(message: Msg) -> None:
            edge = message.subject.rpartition(".")[2]
            try:
                question = json.loads(message.data)
            except ValueError:
                return
            answer = reply(edge, question) if isinstance(question, dict) else None
            if answer is not None:
                await message.respond(json.dumps(answer).encode())

        await self._client.subscribe(f"{SYNC}.*", queue="servers", cb=take)
        await self._client.flush()
