"""Maps errors to HTTP responses: a status, and a body of application/problem+json (RFC 9457).

The only table of statuses is here. The detail is the error's message, which says what was received, what is allowed and
what to do. The message of an unexpected error is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from outvote.core.errors import (
    InvalidInput,
    InvalidReward,
    InvalidTicket,
    OutvoteError,
    UnknownArm,
    UnknownDecision,
    UnknownTask,
)

CONTENT_TYPE: Final = b"application/problem+json"
LONGEST_DETAIL: Final = 500
"""Maximum characters of a detail: it may quote the request, which may be long."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a refusal. Programs should look at `type`: it distinguishes problems with the same status. Where one
    field of the request is at fault, `field` names it and `code` says what is wrong: missing, unknown, type, range,
    choice, duplicate, conflict or invalid."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    code: str | None = None


class BodyNotJson(OutvoteError, ValueError):
    """The body is not JSON."""


class InvalidBody(InvalidInput):
    """The body is JSON, but with wrong fields or types."""


class BodyTooLarge(OutvoteError, ValueError):
    """The body is larger than allowed; the rest is not read."""


class UnknownPath(OutvoteError, LookupError):
    """The path does not exist."""


class WrongMethod(OutvoteError):
    """The path exists, but not for this method."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        self.allow = ", ".join(allowed)
        super().__init__(f"method {method} is not possible here, allowed is {self.allow}")


_TABLE: Final[Sequence[tuple[type[OutvoteError], HTTPStatus, str]]] = (
    (UnknownTask, HTTPStatus.NOT_FOUND, "unknown-task"),
    (UnknownArm, HTTPStatus.NOT_FOUND, "unknown-variant"),
    # Not 422: the request is valid, and would succeed at the edge that decided, unless a crash lost the decision.
    (UnknownDecision, HTTPStatus.CONFLICT, "unknown-decision"),
    (InvalidTicket, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-ticket"),
    (InvalidReward, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-reward"),
    (InvalidBody, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-body"),
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-name"),  # a path contains no other part of a task
    (BodyNotJson, HTTPStatus.BAD_REQUEST, "not-json"),
    (BodyTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large"),
    (UnknownPath, HTTPStatus.NOT_FOUND, ""),
    (WrongMethod, HTTPStatus.METHOD_NOT_ALLOWED, ""),
)

_AT: Final[Mapping[type[OutvoteError], tuple[str, str]]] = {
    UnknownArm: ("variant", "unknown"),
    InvalidReward: ("reward", "range"),
    InvalidTicket: ("ticket", "invalid"),
    UnknownDecision: ("ticket", "unknown"),
}
"""Field and code of errors of the core, which knows no requests."""


def problem(kind: str, status: int, detail: object, longest: int = LONGEST_DETAIL) -> Problem:
    """Return a problem of this kind. The detail is a text, or an error, which may name a field. It may quote the
    request: it is cut after `longest` characters."""
    text = str(detail)
    wrong = detail if isinstance(detail, InvalidInput) and detail.field is not None else None
    field, code = (None, None) if wrong is None else (wrong.field, wrong.code)
    text = text if len(text) <= longest else text[:longest] + "…"
    if not kind:  # RFC 9457: without a type of its own, the title is the phrase of the status
        return Problem("about:blank", HTTPStatus(status).phrase, status, text, field, code)
    return Problem(f"urn:outvote:problem:{kind}", kind.replace("-", " ").capitalize(), status, text, field, code)


def problem_of(error: Exception) -> Problem:
    """Return the problem of an error. One without an entry is a 500, and reveals nothing internal."""
    for kind, status, name in _TABLE:
        if isinstance(error, kind):
            found = problem(name, status.value, error)
            if kind not in _AT:
                return found
            field, code = _AT[kind]
            return msgspec.structs.replace(found, field=field, code=code)
    return problem("", 500, "the edge failed at this request: its log says where")
