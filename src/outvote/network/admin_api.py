"""The server's HTTP API for operators: tasks are created, looked at, stopped and deleted here.

It keeps nothing: every answer is read from the fold, every change is a record in the log.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from outvote.core.codes import Codebook
from outvote.core.errors import InvalidTask, OutvoteError
from outvote.core.ledger import bits_bound
from outvote.core.tally_server import TallyServer
from outvote.core.task import Task
from outvote.core.votes import VoteServer
from outvote.network.fold import Fold, FoldedTask
from outvote.network.link import Link
from outvote.network.problems import Problem
from outvote.network.records import DownSubject, task_record
from outvote.network.server import NameTaken, SyncServer

LARGEST_BODY = 64 * 1024
"""Bytes of a request, and of a task's record: the engine stores no larger one."""
MOST_ARMS = 10_000
"""Where arms or instances are given by their number: more would not fit in a record."""
LONGEST_DETAIL = 2_000
"""Characters of a detail: what differs from a task may be much."""
PATIENCE = 10.0
"""Seconds in which the engine must have stored a change."""
REQUIRED = ("arms", "players", "epsilon", "delta")
OPTIONAL = (
    "name", "protocol", "active_players", "instances", "quorum", "code", "code_weights", "floor", "privacy_budget",
    "reward_window", "fallback", "rules",
)  # fmt: skip

Json: TypeAlias = dict[str, Any]


class Moment(NamedTuple):
    """When an elimination was stored, in terms of the log."""

    record: int
    """Its place in the log."""
    messages: int
    """How many messages of the task were in the log before it."""


@dataclass
class DatedFold(Fold):
    """A fold that notes when each elimination came."""

    moments: dict[str, list[Moment]] = field(default_factory=dict)

    def apply(self, subject: str, payload: bytes, sequence: int) -> FoldedTask | None:
        task = super().apply(subject, payload, sequence)
        if task is not None:
            moments = self.moments.setdefault(task.task_id, [])
            if len(moments) < len(task.eliminations):
                moments.append(Moment(sequence, task.ledger.up_messages))
        return task


class OperatedServer(SyncServer):
    """A server with what its operators ask for."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self.link = link
        self.dated = DatedFold()
        self.fold = self.dated


class Refused(OutvoteError):
    """A request that is refused; `kind` is for programs."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        detail = detail if len(detail) <= LONGEST_DETAIL else detail[:LONGEST_DETAIL] + "…"
        self.problem = Problem(f"urn:outvote:problem:{kind}", kind.replace("-", " ").capitalize(), status, detail)


class Admin:
    """What operators can do."""

    def __init__(self, server: OperatedServer, *, bit_budget: int | None = None) -> None:
        self.server = server
        self.bit_budget = bit_budget
        self._creating = asyncio.Lock()
        """One creation at a time: each looks at the names and the bits that are taken."""

    # ---- changes

    async def create(self, request: Request) -> Response:
        task = read_task(await _body(request))
        async with self._creating:
            try:
                self.server.check_free(task)
                self._check_budget(task)
                task_id = await self._stored(self.server.create(task))
            except NameTaken as error:
                raise Refused(409, "name-taken", str(error)) from None
        return answer({"id": task_id, "name": task.name}, status=201, headers={"Location": f"/v1/tasks/{task_id}"})

    async def stop(self, request: Request) -> Response:
        found = self._find(request)
        await self._stored(self.server.stop_task(found.task_id))
        return answer({"id": found.task_id, "name": found.task.name, "status": "stopped"})

    async def delete(self, request: Request) -> Response:
        found = self._find(request)
        await self._stored(self.server.delete_task(found.task_id))
        return Response(status_code=204)

    # ---- what there is

    async def list(self, request: Request) -> Response:
        tasks = [summary(found) for found in self.server.fold.tasks.values()]
        return answer({"tasks": tasks, "bits": self.bits()})

    async def show(self, request: Request) -> Response:
        found = self._find(request)
        return answer(description(found, self.server.dated.moments.get(found.task_id, [])))

    async def health(self, request: Request) -> Response:
        connected, ready = self.server.link.connected, self.server.ready
        well = connected and ready
        told = {"status": "ok" if well else "unavailable", "engine_connected": connected, "log_read": ready}
        return answer({**told, "records": self.server.fold.read}, status=200 if well else 503)

    async def metrics(self, request: Request) -> Response:
        return Response(self.prometheus(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def bits(self) -> Json:
        """What all running tasks may still send, as one bound; those of Tally have none, and are named."""
        running = [found for found in self.server.fold.tasks.values() if found.running]
        return {
            "may_still_send": sum(may_still_send(found) for found in running if found.ledger.bound is not None),
            "without_bound": [found.task.name for found in running if found.ledger.bound is None],
            "budget": self.bit_budget,
        }

    def prometheus(self) -> str:
        """All of it in Prometheus's text format; names of tasks need no escaping."""
        fold, bits = self.server.fold, self.bits()
        lines = _Lines()
        lines.gauge("outvote_engine_connected", "Whether the engine is connected.", int(self.server.link.connected))
        lines.gauge("outvote_log_records", "Place in the log of the last record that was read.", fold.read)
        lines.counter("outvote_unknown_records", "Records that belong to no task.", fold.unknown)
        lines.gauge(
            "outvote_bits_may_still_send", "Most bits that running votes may still cost.", bits["may_still_send"]
        )
        lines.gauge("outvote_tasks_without_bound", "Running tasks of Tally.", len(bits["without_bound"]))
        if self.bit_budget is not None:
            lines.gauge("outvote_bit_budget", "Most bits that running tasks may still send.", self.bit_budget)
        tasks = list(fold.tasks.values())
        for name, text, value in GAUGES:
            lines.gauge(name, text, {_labels(found): value(found) for found in tasks})
        bounds = {_labels(found): found.ledger.bound for found in tasks if found.ledger.bound is not None}
        lines.gauge("outvote_task_bits_bound", "Bound on a task's bits; tasks of Tally have none.", bounds)
        for name, text, directions in (
            ("outvote_task_messages", "Messages; one downward for each player.", ("up_messages", "down_messages")),
            ("outvote_task_bits", "Payload bits of messages.", ("up_bits", "down_bits")),
        ):
            values = {
                _labels(found, direction=each.partition("_")[0]): getattr(found.ledger, each)
                for found in tasks
                for each in directions
            }
            lines.counter(name, text, values)
        refused = {_labels(found): found.refused for found in tasks}
        lines.counter("outvote_task_refused", "Records of edges that are no message of the task.", refused)
        return lines.text

    # ---- how it works

    def _find(self, request: Request) -> FoldedTask:
        """By id, else by name."""
        asked: str = request.path_params["task"]
        tasks = self.server.fold.tasks
        if asked in tasks:
            return tasks[asked]
        named = self.server.fold.named(asked)
        if named is None:
            there = sorted(found.task.name for found in tasks.values())
            raise Refused(404, "unknown-task", f"unknown task: got {asked!r}, there are {there or 'none'}")
        return named

    def _check_budget(self, task: Task) -> None:
        if self.bit_budget is None:
            return
        kind = "bit-budget"
        if task.protocol == "tally":
            raise Refused(
                409,
                kind,
                f"the bits of 'tally' have no bound before it ends, and this server has a budget of "
                f"{self.bit_budget:,} bits: use 'dme' or 'edme', or a server without --bit-budget",
            )
        taken, wanted = self.bits()["may_still_send"], most_bits(task)
        if taken + wanted > self.bit_budget:
            raise Refused(
                409,
                kind,
                f"the task may send {wanted:,} bits and those that run {taken:,} more, together over the budget of "
                f"{self.bit_budget:,}: stop a task, ask for fewer arms, players or instances, or raise --bit-budget",
            )

    async def _stored(self, change: Awaitable[Any]) -> Any:
        """A change, once it was read back from the log."""
        try:
            return await asyncio.wait_for(change, PATIENCE)
        except TimeoutError:
            raise Refused(
                503,
                "engine-unreachable",
                f"not confirmed within {PATIENCE:g} s: it may be stored or not. Look at the tasks before you try again",
            ) from None
        except NameTaken:
            raise
        except InvalidTask as error:  # somebody else was faster
            raise Refused(409, "tasks-changed", str(error)) from None


def make_app(server: OperatedServer, *, bit_budget: int | None = None) -> Starlette:
    """The application; `bit_budget` is the most bits that all running tasks together may still send."""
    admin = Admin(server, bit_budget=bit_budget)
    return Starlette(
        routes=[
            Route("/v1/tasks", admin.create, methods=["POST"]),
            Route("/v1/tasks", admin.list, methods=["GET"]),
            Route("/v1/tasks/{task}", admin.show, methods=["GET"]),
            Route("/v1/tasks/{task}", admin.delete, methods=["DELETE"]),
            Route("/v1/tasks/{task}/stop", admin.stop, methods=["POST"]),
            Route("/healthz", admin.health, methods=["GET"]),
            Route("/metrics", admin.metrics, methods=["GET"]),
        ],
        exception_handlers={Refused: _on_refused, HTTPException: _on_http, Exception: _on_error},
    )


# ---- tasks


def read_task(body: bytes) -> Task:
    """A task from a request: Task's own arguments, or a whole record as `GET` gives it."""
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "not-json", f"a task must be a JSON object: {error}") from None
    if not isinstance(asked, Mapping):
        raise Refused(400, "not-json", f"a task must be a JSON object, got a {type(asked).__name__}")
    try:
        for name in ("arms", "instances"):
            if isinstance(asked.get(name), int) and asked[name] > MOST_ARMS:
                raise InvalidTask(f"{name} must be at most {MOST_ARMS:,} in a network")
        task = Task.from_json(asked) if set(asked) == set(Task.__dataclass_fields__) else Task(**_arguments(asked))
        size = len(task_record(task))
        if size > LARGEST_BODY:
            raise InvalidTask(f"a task's record may have {LARGEST_BODY:,} bytes, this has {size:,}: use shorter names")
    except InvalidTask as error:
        raise Refused(422, "invalid-task", str(error)) from None
    return task


def _arguments(asked: Mapping[str, Any]) -> Json:
    allowed = (*REQUIRED, *OPTIONAL)
    unknown = [name for name in asked if name not in allowed]
    if unknown:
        raise InvalidTask(f"unknown field {unknown[0]!r}: a task has {', '.join(allowed)}")
    missing = [name for name in REQUIRED if name not in asked]
    if missing:
        raise InvalidTask(f"a task needs {', '.join(REQUIRED)}; missing: {', '.join(missing)}")
    return dict(asked)


def most_bits(task: Task) -> int:
    """What a task of votes can cost: the bound of Lemma 2 or Theorem 4, or more where its codes can.

    The theorem leaves out the bits that name the instance, and the longest of Huffman's words are longer than ⌈log₂K⌉.
    """
    book = Codebook(task)
    longest = max(len(word) for word in book.arm_words)
    votes = task.players * (len(task.arms) - 1)
    up = votes * len(task.instances) * (longest + book.instance_bits)
    return max(bits_bound(task), up + votes * longest)


def may_still_send(found: FoldedTask) -> int:
    return max(most_bits(found.task) - found.ledger.total_bits, 0)


def status(found: FoldedTask) -> str:
    """`running`, `held`, `finished` or `stopped`."""
    server = found.server
    if found.winner is not None:
        return "finished"
    if isinstance(server, VoteServer) and server.finished and found.proposal() is None:  # Remark 1: several may remain
        return "finished"
    if found.stopped:
        return "stopped"
    return "held" if isinstance(server, TallyServer) and server.held else "running"


def summary(found: FoldedTask) -> Json:
    """A task in a list."""
    task, ledger, winner = found.task, found.ledger, found.winner
    return {
        "id": found.task_id,
        "name": task.name,
        "protocol": task.protocol,
        "status": status(found),
        "winner": None if winner is None else task.arms[winner],
        "remaining": [task.arms[arm] for arm in found.announced],
        "stopped": found.stopped,
        "held": isinstance(found.server, TallyServer) and found.server.held,
        "hold_reason": found.server.hold_reason if isinstance(found.server, TallyServer) else None,
        "messages": {"up": ledger.up_messages, "down": ledger.down_messages},
        "bits": {
            "up": ledger.up_bits,
            "down": ledger.down_bits,
            "total": ledger.total_bits,
            "bound": ledger.bound,
            "most": None if ledger.bound is None else most_bits(task),
            "instance": ledger.instance_bits,
        },
        "refused": found.refused,
        "edge_count": len({edge for edge, _ in found.highest}),
    }


def description(found: FoldedTask, moments: list[Moment]) -> Json:
    """All about one task."""
    task, server = found.task, found.server
    numbers = {arm: number for number, each in enumerate(found.eliminations) for arm in each.arms}
    arms: list[Json] = []
    for index, name in enumerate(task.arms):
        told: Json = {"arm": name, "index": index, "state": "eliminated" if index in numbers else "remaining"}
        told["eliminated"] = None if index not in numbers else _elimination(found, numbers[index], moments)
        if isinstance(server, TallyServer):
            told["trials"], told["successes"] = server.trials(index), server.successes(index)
            told["interval"] = list(server.interval(index))
        elif isinstance(server, VoteServer):
            told["votes"] = [server.votes(index, instance) for instance in range(len(task.instances))]
        arms.append(told)
    edges = [
        {"edge": edge, "incarnation": incarnation, "last_sequence": last}
        for (edge, incarnation), last in sorted(found.highest.items())
    ]
    return {
        **summary(found),
        "arms": arms,
        "votes_needed": [active / 2 for active in task.instances],
        "edges": edges,
        "task": task.to_json(),
    }


def _elimination(found: FoldedTask, number: int, moments: list[Moment]) -> Json:
    told: Json = {"number": number, "subject": str(DownSubject(found.task_id, "elim", number))}
    return {**told, "record": moments[number].record, "after_messages": moments[number].messages}


# ---- HTTP


def answer(body: Json, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json", headers=headers)


async def _body(request: Request) -> bytes:
    """At most so many bytes are read."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                raise Refused(413, "body-too-large", f"a request may have {LARGEST_BODY:,} bytes, this has more")
    except ClientDisconnect:
        raise Refused(400, "not-whole", "the request ended before its body") from None
    return bytes(body)


def _refuse(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(problem)
    return Response(body, status_code=problem.status, media_type="application/problem+json", headers=headers)


async def _on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _refuse(error.problem)


async def _on_http(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path!r} is not possible: there are /v1/tasks, /healthz and /metrics"
    return _refuse(Problem("about:blank", error.detail, error.status_code, detail), error.headers)


async def _on_error(request: Request, error: Exception) -> Response:
    """The rest; its trace goes to standard error."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return _refuse(
        Problem("about:blank", status.phrase, status, "the server failed at this request: its log says where")
    )


# ---- Prometheus

GAUGES: tuple[tuple[str, str, Callable[[FoldedTask], int]], ...] = (
    ("outvote_task_arms", "Arms of the task.", lambda found: len(found.task.arms)),
    ("outvote_task_arms_remaining", "Arms that remain.", lambda found: len(found.announced)),
    ("outvote_task_running", "Whether it runs.", lambda found: int(status(found) in ("running", "held"))),
    ("outvote_task_held", "Whether a decision is held back.", lambda found: int(status(found) == "held")),
    ("outvote_task_edges", "Edges that have sent something.", lambda found: len({edge for edge, _ in found.highest})),
)


class _Lines:
    def __init__(self) -> None:
        self.text = ""

    def gauge(self, name: str, text: str, value: int | dict[str, int]) -> None:
        self._add(name, "gauge", text, value)

    def counter(self, name: str, text: str, value: int | dict[str, int]) -> None:
        self._add(f"{name}_total", "counter", text, value)

    def _add(self, name: str, kind: str, text: str, value: int | dict[str, int]) -> None:
        self.text += f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        for labels, number in (value if isinstance(value, dict) else {"": value}).items():
            self.text += f"{name}{labels} {number}\n"


def _labels(found: FoldedTask, **more: str) -> str:
    labels = {"task": found.task.name, "id": found.task_id, "protocol": found.task.protocol, **more}
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
