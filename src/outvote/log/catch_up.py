"""Catch-up messages: what an edge asks after it may have missed records, and what a server answers. JSON; pure."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from outvote.core.errors import MalformedMessage
from outvote.log.records import TOKEN
from outvote.log.site_report import SiteReport

SKIP_ELIMINATIONS: Final = 1 << 30
"""Larger than any number of eliminations: the edge wants no updates about this task."""
ASK_EVERY: Final = 30.0
"""Default polling interval of an edge, in seconds. A question is also the heartbeat of the edge."""
LONGEST_PAUSE: Final = 3600.0
"""Longest polling interval that a server may set, in seconds."""

Count = Annotated[int, msgspec.Meta(ge=0, le=10**16)]
TaskId = Annotated[str, msgspec.Meta(pattern=rf"^{TOKEN}\Z")]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A catch-up request: what an edge has applied so far, and how its tasks fare."""

    incarnation: str
    """Incarnation of the edge's store: the answer says which of its messages the log holds."""
    tasks: dict[str, Count]
    """Number of applied eliminations, by task id."""
    reports: dict[TaskId, SiteReport] = {}
    """What the site has seen, by task id, for people."""


class TaskUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state of one task, and the records that the edge lacks."""

    stopped: bool
    highest: Annotated[int, msgspec.Meta(ge=-1, le=10**16)]
    """Highest sequence among this edge's messages in the log; -1 if there are none."""
    count: Count
    """Number of this edge's messages in the log."""
    killed: bool = False
    switches: Count = 0
    """Number of times the kill switch was used."""
    record: dict[str, Any] | None = None
    """The task's record, if it is new to the edge."""
    eliminations: tuple[bytes, ...] = ()
    """Eliminations that the edge lacks, as stored in the log."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A catch-up answer from a server to an edge."""

    read: Count
    """Sequence of the last record that the server has read."""
    tasks: dict[TaskId, TaskUpdate]
    deleted: tuple[TaskId, ...] = ()
    others: tuple[TaskId, ...] = ()
    """Tasks that do not involve this edge; each is listed once."""
    more: bool = False
    """The answer was cut for size: ask again at once."""
    ask_again: Annotated[float, msgspec.Meta(ge=ASK_EVERY, le=LONGEST_PAUSE)] | None = None
    """Polling interval for this edge, in seconds; None means `ASK_EVERY`."""


_question: Final = msgspec.json.Decoder(Question)
_answer: Final = msgspec.json.Decoder(Answer)

encode = msgspec.json.encode
"""Encode a question or an answer for sending."""


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
