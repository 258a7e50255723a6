"""The log on NATS JetStream: create the stream, append records, follow the log, listen to news, and catch up."""

from __future__ import annotations

import asyncio
import functools
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import DiscardPolicy, RePublish, StorageType, StreamConfig, StreamInfo
from nats.js.errors import APIError, NotFoundError

from outvote.access.engine_access import Access
from outvote.core.errors import MalformedMessage
from outvote.engine.connection import Connection, EngineUnreachable
from outvote.engine.follower import ALREADY_THERE, Follower
from outvote.engine.wire_bytes import WireBytes
from outvote.log.catch_up import Answer, Question, encode, read_answer, read_question
from outvote.log.log import ConnectionFigures, Record
from outvote.log.records import DOWN, LIVE, SYNC, UP
from outvote.observability.logs import event

STREAM = "OUTVOTE"
PATIENCE = 2.0
"""Timeout of one request, in seconds, before it is retried."""

REPLICAS: Final = 3
_NO_CLUSTER: Final = 10074  # the engine's error code for several replicas on a single node

_log = logging.getLogger(__name__)


def stream_config(replicas: int = 1) -> StreamConfig:
    """Return the stream's settings: one record per subject for ever, and records for edges are republished as news."""
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
        deny_delete=True,  # not even a server can delete a record
        deny_purge=True,
    )


MUST_AGREE = ("subjects", "storage", "max_msgs_per_subject", "discard", "discard_new_per_subject", "republish")
"""Settings that an existing stream must share with ours."""


class NatsLog:
    """The `Log` on NATS JetStream. It reconnects by itself."""

    def __init__(self, urls: str, *, name: str, patience: float | None = None, access: Access | None = None) -> None:
        """`urls` are separated by commas. `open` times out after `patience` seconds; None retries for ever."""
        self._client = Connection()
        self._open = functools.partial(
            self._client.open, urls, name=name, patience=patience, access=access, again=self._again
        )
        self._stream = self._client.jetstream(timeout=PATIENCE)
        self.reconnected = asyncio.Event()
        """Set after every reconnection; the waiter clears it."""
        self._reconnections = 0
        self._followers: list[Follower] = []
        self._wire = WireBytes()

    @classmethod
    async def connect(
        cls, urls: str, *, name: str, patience: float | None = None, access: Access | None = None
    ) -> NatsLog:
        """Connect to one of these addresses; see `__init__`."""
        log = cls(urls, name=name, patience=patience, access=access)
        await log.open()
        return log

    async def open(self) -> None:
        await self._open()

    def _again(self) -> None:
        self._reconnections += 1
        self.reconnected.set()
        for follower in self._followers:
            follower.begin_again()

    async def __aenter__(self) -> NatsLog:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        return bool(self._client.is_connected)

    def figures(self) -> ConnectionFigures:
        return ConnectionFigures(
            reconnections=self._reconnections,
            forbidden=self._client.forbidden,
            credential_expires=self._client.credential_expires,
            wire_bytes=self._wire.count(self._client),
        )

    async def close(self) -> None:
        for follower in self._followers:
            await follower.stop()
        with suppress(OSError, RuntimeError):  # a lost connection cannot be closed cleanly; uvloop raises RuntimeError
            await self._client.end()

    async def prepare(self, *, deadline: float = 30.0) -> None:
        """Create the stream, with three replicas in a cluster; or check the settings of the existing one."""
        wanted = stream_config(REPLICAS)
        until = asyncio.get_running_loop().time() + deadline
        while True:
            try:
                info = await self._find_stream(wanted)
                break
            except (TimeoutError, NatsError) as error:  # no leader in the cluster, or another server was first
                if isinstance(error, APIError) and error.err_code == _NO_CLUSTER:
                    wanted = stream_config(1)
                elif asyncio.get_running_loop().time() > until:
                    raise EngineUnreachable(
                        f"the stream {STREAM} cannot be created: {error}; is JetStream enabled, and do all nodes run?"
                    ) from None
            await asyncio.sleep(0.1)
        existing = info.config
        replicas = existing.num_replicas or 1
        if info.cluster is not None and info.cluster.name and replicas < REPLICAS:
            event(_log, logging.WARNING, "log_not_replicated", replicas=replicas, do="nats stream edit --replicas 3")
        differing = [
            f"{name} is {getattr(existing, name)!r}, needed is {getattr(wanted, name)!r}"
            for name in MUST_AGREE
            if getattr(existing, name) != getattr(wanted, name)
        ]
        if differing:
            raise EngineUnreachable(
                f"the stream {STREAM} is not ours to use: {'; '.join(differing)}. Use another engine"
            )

    async def _find_stream(self, wanted: StreamConfig) -> StreamInfo:
        """Return the existing stream, or create it."""
        try:
            return await self._stream.stream_info(STREAM)
        except NotFoundError:
            return await self._stream.add_stream(wanted)

    async def append(self, subject: str, payload: bytes) -> bool:
        pause = 0.02
        while True:
            try:
                await self._stream.publish(subject, payload, timeout=PATIENCE, stream=STREAM)
                return True
            except APIError as error:
                if error.err_code == ALREADY_THERE:
                    return False
            except (TimeoutError, NatsError):  # disconnected or no answer: it may or may not be stored, so retry
                await self._client.check()
            await asyncio.sleep(pause * random.random())
            pause = min(2 * pause, 2.0)

    async def stored(self, subject: str) -> bytes | None:
        """Return the record stored on a subject, if any."""
        try:
            message = await self._stream.get_last_msg(STREAM, subject)
        except NotFoundError:
            return None
        return message.data or b""

    async def log_end(self) -> int:
        while True:
            try:
                return (await self._stream.stream_info(STREAM)).state.last_seq
            except (TimeoutError, NatsError):  # disconnected, or no leader in the cluster
                await self._client.check()
            await asyncio.sleep(0.1)

    async def follow(self, on_record: Callable[[Record], None]) -> Follower:
        follower = Follower(self._stream, STREAM, on_record, doubt=self._client.check)
        await follower.start()
        self._followers.append(follower)
        return follower

    async def listen(self, on_news: Callable[[str, bytes], None]) -> None:
        """Accept only messages that the engine marks as copies of records. Clients may not publish news, but they can
        have an answer or an acknowledgement sent to any subject, including those of news."""

        async def take(message: Msg) -> None:
            headers = message.headers or {}
            copy_of = headers.get("Nats-Stream"), headers.get("Nats-Subject")
            if copy_of == (STREAM, DOWN + message.subject[len(LIVE) :]):
                on_news(message.subject, message.data)
            else:
                self._client.note_false_news()

        await self._client.subscribe(f"{LIVE}.>", cb=take)
        await self._client.settle()

    async def overhear(self, on_question: Callable[[str, Question], None]) -> None:
        async def take(message: Msg) -> None:
            with suppress(MalformedMessage):  # what cannot be read is no sign of life
                on_question(message.subject.rpartition(".")[2], read_question(message.data))

        await self._client.subscribe(f"{SYNC}.*", cb=take)
        await self._client.settle()

    async def ask(self, edge: str, question: Question) -> Answer | None:
        try:
            answer = await self._client.request(f"{SYNC}.{edge}", encode(question), timeout=PATIENCE)
        except (TimeoutError, NatsError):
            return None
        return read_answer(answer.data)

    async def answer(self, reply: Callable[[str, Question], Answer | None]) -> None:
        """Answer without headers. The asker chooses the subject of the answer, which may be one of news, and nats-py's
        `respond` would echo the question's headers, among them those that mark a copy of a record.
        """

        async def take(message: Msg) -> None:
            try:
                question = read_question(message.data)
            except MalformedMessage:
                return
            answer = reply(message.subject.rpartition(".")[2], question)
            if answer is not None and message.reply:
                await self._client.publish(message.reply, encode(answer))

        await self._client.subscribe(f"{SYNC}.*", queue="servers", cb=take)
        await self._client.settle()
