"""From an error to what HTTP says about it: a status, and a body of application/problem+json (RFC 9457).

The one table of statuses is here. A detail is the error's own message, which says what was received, what is allowed
and what to do; an error that nobody foresaw is answered without one word of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from outvote.core.errors import (
    InvalidReward,
    InvalidTask,
    NoOutstandingDecision,
    OutvoteError,
    UnknownArm,
    UnknownTask,
    UnknownTicket,
)

CONTENT_TYPE: Final = b"application/problem+json"
LONGEST_DETAIL: Final = 500
"""Characters of a detail: what was received may be long, and is not sent back whole."""


class Problem(msgspec.Struct, frozen=True):
    """The body of a refusal. `type` is what a program should look at: it tells apart what shares a status."""

    type: str
    title: str
    status: int
    detail: str


class BodyNotJson(OutvoteError, ValueError):
    """The bytes of a body are no JSON at all."""


class InvalidBody(OutvoteError, ValueError):
    """JSON, but not with the fields and types that the request must have."""


class BodyTooLarge(OutvoteError, ValueError):
    """A body that is not read to its end."""


class UnknownPath(OutvoteError, LookupError):
    """Nothing is there."""


class WrongMethod(OutvoteError):
    """Something is there, but not for this method."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        self.allow = ", ".join(allowed)
        super().__init__(f"method {method} is not possible here, allowed is {self.allow}")


_TABLE: Final[Sequence[tuple[type[OutvoteError], HTTPStatus, str]]] = (
    (UnknownTask, HTTPStatus.NOT_FOUND, "unknown-task"),
    (UnknownArm, HTTPStatus.NOT_FOUND, "unknown-arm"),
    (NoOutstandingDecision, HTTPStatus.CONFLICT, "no-outstanding-decision"),
    # Not 422: the request is sound, and the same one is right where the player has issued that ticket for that arm.
    # An application meets it when an edge has crashed and forgotten the decisions of its last second.
    (UnknownTicket, HTTPStatus.CONFLICT, "unknown-ticket"),
    (InvalidReward, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-reward"),
    (InvalidTask, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-name"),  # the only part of a task that a path can hold
    (InvalidBody, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-body"),
    (BodyNotJson, HTTPStatus.BAD_REQUEST, "not-json"),
    (BodyTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large"),
    (UnknownPath, HTTPStatus.NOT_FOUND, ""),
    (WrongMethod, HTTPStatus.METHOD_NOT_ALLOWED, ""),
)


def problem(kind: str, status: int, detail: str, longest: int = LONGEST_DETAIL) -> Problem:
    """A problem of this kind. A detail may hold what was received: it is cut after `longest` characters."""
    detail = detail if len(detail) <= longest else detail[:longest] + "…"
    if not kind:  # nothing is to be said beyond the status, and then its title is the status's own phrase
        return Problem("about:blank", HTTPStatus(status).phrase, status, detail)
    return Problem(f"urn:outvote:problem:{kind}", kind.replace("-", " ").capitalize(), status, detail)


def problem_of(error: Exception) -> Problem:
    """What to answer. An error without an entry is a 500, and says nothing of what happened inside."""
    for kind, status, name in _TABLE:
        if isinstance(error, kind):
            return problem(name, status.value, str(error))
    return problem("", 500, "the edge failed at this request: its log says where")
