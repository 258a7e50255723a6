"""The OpenFeature Remote Evaluation Protocol: a task is a flag.

One evaluation is one decision. A bulk evaluation serves variants of all tasks that are not counted: nobody tells which
of them were shown. The context of an evaluation is validated but not used: no decision depends on a user.
"""

from __future__ import annotations

import random
import re
import zlib
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from outvote.core.decisions import Ticket
from outvote.core.errors import one_of
from outvote.edge.bodies import JSON, Answer, answer, encode
from outvote.edge.hosted_task import HostedTask
from outvote.edge.site import Edge
from outvote.web.problems import CONTENT_TYPE, Problem

FLAGS: Final = "/ofrep/v1/evaluate/flags"
BOOLEANS: Final = {"true": True, "false": False}
"""A task with these two variants is a boolean flag."""
LONGEST_TAG: Final = 8 * 1024
"""Bytes, for about 700 tasks: a client sends its tag back in the head of a request, which is limited. An edge with more
tasks sends no tag."""
MOST_TAGS: Final = 16
"""Tags of one request that are compared: each costs as much as an evaluation."""
_TAGS: Final = re.compile(r'"([^"]*)"')
_KEPT: Final = re.compile(r"([0-9a-f]{8})[PTI]([0-9]{1,8})(?:\.|$)")

Reason: TypeAlias = Literal["SPLIT", "STATIC", "DISABLED"]
ErrorCode: TypeAlias = Literal["FLAG_NOT_FOUND", "PARSE_ERROR", "INVALID_CONTEXT", "GENERAL"]


class Evaluation(msgspec.Struct, frozen=True):
    """One flag. Its metadata hold the `ticket` that its reward must name; `uncounted` if the reward is ignored."""

    key: str
    reason: Reason
    variant: str
    value: str | bool
    metadata: dict[str, str]


class Evaluations(msgspec.Struct, frozen=True):
    """All flags of this edge."""

    flags: tuple[Evaluation, ...]


class EvaluationFailed(msgspec.Struct, frozen=True, rename="camel"):
    """Why there is no evaluation, as the protocol defines it."""

    error_code: ErrorCode
    error_details: str
    key: str | UnsetType = UNSET


class Request(msgspec.Struct, frozen=True):
    """The body of a request. The context must be an object."""

    context: dict[str, Any] | UnsetType = UNSET


_decode = msgspec.json.Decoder(Request).decode


class Ofrep:
    """Answers OFREP requests for one edge."""

    def __init__(self, edge: Edge, rng: random.Random | None = None) -> None:
        """`rng` draws assignments (default: the system's generator)."""
        self._edge = edge
        self._tasks = edge.tasks
        self._rng = rng or random.SystemRandom()

    def answer(self, method: str, path: str, known: str, body: bytes) -> Answer:
        """Answer any request under `/ofrep/`; `known` is its `If-None-Match`."""
        key = path[len(FLAGS) + 1 :] if path.startswith(f"{FLAGS}/") else None
        if path != FLAGS and not key:
            return failed(404, "GENERAL", f"nothing is at {path!r}: flags are evaluated at {FLAGS} and {FLAGS}/KEY")
        if method != "POST":
            refusal = failed(405, "GENERAL", f"method {method} is not possible here, allowed is POST")
            refusal.headers.append((b"allow", b"POST"))
            return refusal
        fault = _fault(body, key)
        if fault is not None:
            return fault
        return self._all(known) if key is None else self._one(key)

    def _one(self, key: str) -> Answer:
        task = self._tasks.get(key)
        if task is None:
            names = one_of(sorted(self._tasks)) or "none"
            return failed(404, "FLAG_NOT_FOUND", f"unknown task: got {key[:64]!r}, this edge hosts {names}", key)
        return answer(200, JSON, encode(_evaluation(task, self._edge.decide(task))))

    def _all(self, known: str) -> Answer:
        """Assign a variant of every task. A client keeps its variant of a task while that task exists and the variant
        remains, whatever happens to other tasks. Its tag holds its variants, so that nothing is stored here."""
        if known.strip() == "*":  # RFC 9110: any answer that the client has will do
            return Answer(304, [], b"")
        tasks = [task for _, task in sorted(self._tasks.items())]
        tags = _TAGS.findall(known)[:MOST_TAGS]
        for tag in tags:
            if tag == _tag(tasks, self._assign(tasks, tag)):
                return Answer(304, [(b"etag", f'"{tag}"'.encode("latin-1"))], b"")
        arms = self._assign(tasks, ".".join(reversed(tags)))  # of several variants of a task, that of the first tag
        flags = tuple(_evaluation(task, Ticket.uncounted(arm)) for task, arm in zip(tasks, arms, strict=True))
        response = answer(200, JSON, encode(Evaluations(flags)))
        tag = _tag(tasks, arms)
        if len(tag) <= LONGEST_TAG:
            response.headers.append((b"etag", f'"{tag}"'.encode()))
        return response

    def _assign(self, tasks: list[HostedTask], tag: str) -> list[int]:
        """Return the arm of each task: that of the tag where it remains, else one drawn at random."""
        kept = {key: int(arm) for key, arm in _KEPT.findall(tag)}
        return [self._assigned(task, kept.get(_key(task))) for task in tasks]

    def _assigned(self, task: HostedTask, kept: int | None) -> int:
        if task.stopped or task.killed:
            return task.served
        remaining = task.player.remaining
        return kept if kept is not None and kept in remaining else self._rng.choice(remaining)


def failed(status: int, code: ErrorCode, details: str, key: str | UnsetType = UNSET) -> Answer:
    """Return an error in the protocol's format."""
    return answer(status, JSON, encode(EvaluationFailed(code, details, key)))


def refused(path: str, problem: Problem) -> Answer:
    """Return a problem; under `/ofrep/`, an error in that protocol's format."""
    if path.startswith("/ofrep/"):
        return failed(problem.status, "GENERAL", problem.detail)
    return answer(problem.status, (b"content-type", CONTENT_TYPE), encode(problem))


def _fault(body: bytes, key: str | None) -> Answer | None:
    """Validate the body of a request. Return an error answer or None. A missing body is valid."""
    flag = UNSET if key is None else key
    try:
        if body:
            _decode(body)
    except msgspec.ValidationError as error:
        return failed(400, "INVALID_CONTEXT", f'{error}; allowed is a body such as {{"context": {{}}}}', flag)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return failed(400, "PARSE_ERROR", f"the body must be JSON in UTF-8: {error}", flag)
    return None


def _evaluation(task: HostedTask, ticket: Ticket) -> Evaluation:
    names = task.task.arms
    variant = names[ticket.arm]
    value = BOOLEANS[variant] if set(names) == set(BOOLEANS) else variant
    return Evaluation(task.task.name, _reason(task), variant, value, {"ticket": str(ticket)})


def _reason(task: HostedTask) -> Reason:
    if task.stopped:
        return "STATIC"
    if task.killed:
        return "DISABLED"
    return "SPLIT" if len(task.player.remaining) > 1 else "STATIC"


def _tag(tasks: list[HostedTask], arms: list[int]) -> str:
    """The ETag of a bulk evaluation: the key, the reason and the arm of each task."""
    return ".".join(  # P, T or I: two reasons share their first letter
        f"{_key(task)}{_reason(task)[1]}{arm}" for task, arm in zip(tasks, arms, strict=True)
    )


def _key(task: HostedTask) -> str:
    return f"{zlib.crc32(task.task_id.encode()):08x}"
