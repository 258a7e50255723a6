"""Bodies and responses of an edge's API, and reading a body that arrives in pieces."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from starlette.types import Message, Receive, Scope

from outvote.web.problems import BodyTooLarge, InvalidBody

LARGEST_BODY: Final = 64 * 1024
"""Bytes. The rest of a larger body is discarded as it arrives."""
EXAMPLE: Final = '{"ticket": "mPq2_x7B.17.1.5.1795000000000", "reward": 1}'
TicketText: TypeAlias = Annotated[
    str, msgspec.Meta(extra_json_schema={"maxLength": 64, "pattern": "^[A-Za-z0-9_.-]+$"})
]


class Decision(msgspec.Struct, frozen=True):
    """The variant to show for one event; its reward must name the ticket. The ticket is `uncounted` where the reward is
    ignored: the task is finished, stopped or killed, or too many decisions wait."""

    variant: str
    ticket: TicketText


class Reward(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The reward of one decision, from 0 to 1. It may be sent again: the largest that comes within the reward window
    counts. A variant need not be named; if it is, it must be that of the decision."""

    ticket: TicketText
    """As the decision had it. Checked in `EdgeApi`, which is faster."""
    reward: Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
    variant: str | None = None


class VariantSeen(msgspec.Struct, frozen=True):
    """What this site has seen of one variant."""

    variant: str
    decisions: int
    rewards: int
    """Decisions with a reward."""
    late: int
    """Rewards after their window: ignored."""
    refused: int
    """Rewards for decisions that are not known here."""
    out: int
    """Rewards that came after the variant was out: ignored."""


class TaskView(msgspec.Struct, frozen=True):
    """One task as this edge knows it. A stopped task serves its winner or fallback, and learns nothing."""

    id: str
    name: str
    protocol: str
    variants: tuple[str, ...]
    remaining: tuple[str, ...]
    finished: bool
    winner: str | None
    stopped: bool
    killed: bool
    reward_window: float
    seen: tuple[VariantSeen, ...]
    waiting: int
    """Decisions that have not been counted yet: their reward window, or their group, is still open."""
    uncounted: int
    """Decisions that are not counted, because too many waited."""
    notices: tuple[str, ...]
    """Warnings about rewards."""
    messages_kept: int
    messages_waiting: int


class TaskList(msgspec.Struct, frozen=True):
    """All tasks of this edge, by name."""

    tasks: tuple[TaskView, ...]


class Health(msgspec.Struct, frozen=True):
    """The health of an edge. It is healthy without the network: it keeps deciding and learning."""

    status: str
    site: str
    connected: bool
    tasks: int


class Answer(NamedTuple):
    """A complete response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


encode: Final = msgspec.json.Encoder().encode
JSON: Final = (b"content-type", b"application/json")


def answer(status: int, content_type: tuple[bytes, bytes], body: bytes) -> Answer:
    return Answer(status, [content_type, (b"content-length", b"%d" % len(body))], body)


def as_json(content: object) -> Answer:
    return answer(200, JSON, encode(content))


def invalid_body(error: msgspec.ValidationError, example: str) -> InvalidBody:
    """Name the field and its fault, which the library tells in its message only."""
    problem, _, field = str(error).partition(" - at `$.")
    code = "range" if "out of range" in problem else "type"
    problem = problem.replace("Expected", "must be").replace("Number out", "is a number out")
    for start, fault in (
        ("Object missing required field `", "missing"),
        ("Object contains unknown field `", "unknown"),
    ):
        if problem.startswith(start):
            field, code, problem = problem.removeprefix(start), fault, f"is {fault}"
    field = field.removesuffix("`")[:64]
    problem = problem if field else f"the body {problem}"
    return InvalidBody(f"{problem}; allowed is a body such as {example}", field=field or None, code=code)


async def read_body(scope: Scope, receive: Receive, message: Message | None = None) -> bytes | None:
    """Read the complete body; `message` may be its first piece. Return None if the client has disconnected."""
    body = bytearray()
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    while True:
        message = message or await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY or int(announced[:20]) > LARGEST_BODY:
            raise BodyTooLarge(f"a body must be at most {LARGEST_BODY} bytes, got more: a reward is a small object")
        if not message.get("more_body", False):
            return bytes(body)
        message = None
