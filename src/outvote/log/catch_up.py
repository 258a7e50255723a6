"""What an edge asks when it may have missed something, and what a server answers: JSON of closed shapes. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from outvote.core.errors import MalformedMessage
from outvote.log.records import TOKEN

SKIP_ELIMINATIONS: Final = 1 << 30
"""More eliminations than a task can have: the edge wants to hear nothing of this task."""
ASK_EVERY: Final = 30.0
"""Seconds within which an edge asks again, where no server tells otherwise. A question is also its sign of life."""
LONGEST_PAUSE: Final = 3600.0
"""Seconds that a server can tell an edge to wait, at most."""

Count = Annotated[int, msgspec.Meta(ge=0, le=10**16)]
TaskId = Annotated[str, msgspec.Meta(pattern=rf"^{TOKEN}\Z")]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an edge knows."""

    incarnation: str
    """Of its store: the answer tells how much of it the log has."""
    tasks: dict[str, Count]
    """By id, how many eliminations of each task it has applied."""


class TaskUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a server knows of one task, beyond what the edge does."""

    stopped: bool
    highest: Annotated[int, msgspec.Meta(ge=-1, le=10**16)]
    """The highest sequence of this edge's messages in the log; -1 if there is none."""
    count: Count
    """How many of them are there."""
    killed: bool = False
    switches: Count = 0
    """How often the kill switch was used."""
    record: dict[str, Any] | None = None
    """The task, if it is new to the edge."""
    eliminations: tuple[bytes, ...] = ()
    """Those that the edge lacks, as they are in the log."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a server tells an edge."""

    read: Count
    """How far the server has read the log."""
    tasks: dict[TaskId, TaskUpdate]
    deleted: tuple[TaskId, ...] = ()
    others: tuple[TaskId, ...] = ()
    """Tasks that are not for this edge, told once."""
    more: bool = False
    """Ask again at once: this was not all."""
    ask_again: Annotated[float, msgspec.Meta(ge=ASK_EVERY, le=LONGEST_PAUSE)] | None = None
    """Seconds after which the edge shall ask again, where that is not `ASK_EVERY`."""


_question: Final = msgspec.json.Decoder(Question)
_answer: Final = msgspec.json.Decoder(Answer)

encode = msgspec.json.encode
"""A question or an answer as it is sent."""


def read_question(payload: bytes) -> Question:
    try:
        return _question.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"this is no question of an edge: {error}") from None


def read_answer(payload: bytes) -> Answer:
    try:
        return _answer.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"this is no answer of a server: {error}; is the server of another version?") from None
