"""What an edge's API is sent and answers: bodies, whole responses, and reading what comes in pieces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec

from outvote.network.problems import BodyTooLarge

LARGEST_BODY: Final = 64 * 1024
"""Bytes. The rest of a larger body is discarded as it comes."""
EXPOSED: Final = '{"arm": "green"}'
EXAMPLE: Final = '{"arm": "green", "ticket": "17", "reward": 1}'

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Decision(msgspec.Struct, frozen=True):
    """The arm to play for one event; its reward should name the ticket."""

    arm: str
    index: int
    ticket: str


class Reward(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What one event earned. An arm is its name, or as a number its index; without a ticket the newest batch is meant
    that waits for a reward of that arm."""

    arm: str | int
    reward: Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
    ticket: (
        Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^(0|[1-9][0-9]{0,15})$"})]  # checked in code: faster
        | Annotated[int, msgspec.Meta(ge=0)]
        | None
    ) = None


class TaskView(msgspec.Struct, frozen=True):
    """One task as this edge knows it. A stopped task goes on answering, with its fallback, and learns nothing."""

    id: str
    name: str
    protocol: str
    arms: tuple[str, ...]
    remaining: tuple[str, ...]
    finished: bool
    winner: str | None
    stopped: bool
    killed: bool
    late_rewards: int
    dropped_rewards: int
    messages_kept: int
    messages_waiting: int


class TaskList(msgspec.Struct, frozen=True):
    """All tasks of this edge, by name."""

    tasks: tuple[TaskView, ...]


class Exposure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An assignment that was made ahead was shown. An arm is its name, or as a number its index."""

    arm: str | int


class Health(msgspec.Struct, frozen=True):
    """An edge without the network is in good health: it goes on deciding and learning."""

    status: str
    edge: str
    connected: bool
    tasks: int


class Answer(NamedTuple):
    """A whole response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


encode: Final = msgspec.json.Encoder().encode
JSON: Final = (b"content-type", b"application/json")


def answer(status: int, content_type: tuple[bytes, bytes], body: bytes) -> Answer:
    return Answer(status, [content_type, (b"content-length", b"%d" % len(body))], body)


def as_json(content: object) -> Answer:
    return answer(200, JSON, encode(content))


async def read_rest(scope: Scope, receive: Receive, message: Message) -> bytes | None:
    """The whole body, of which `message` is the first piece; None if the requester has gone."""
    if message["type"] != "http.request":
        return None
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and int(announced[:20]) > LARGEST_BODY:
            raise _too_large(f"{announced[:20].decode()} bytes")
        pieces = bytearray(body)
        while message.get("more_body", False):
            if len(pieces) > LARGEST_BODY:
                break
            message = await receive()
            if message["type"] != "http.request":
                return None
            pieces += message.get("body", b"")
        body = bytes(pieces)
    if len(body) > LARGEST_BODY:
        raise _too_large("more")
    return body


def _too_large(got: str) -> BodyTooLarge:
    return BodyTooLarge(f"a body must be at most {LARGEST_BODY} bytes, got {got}: a reward is a small object")


async def read_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None if the requester has gone."""
    return await read_rest(scope, receive, await receive())
