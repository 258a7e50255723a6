"""The local HTTP API of an edge, as an ASGI application, and the server that runs it.

A request is answered from memory and never waits for the network. Whatever is refused has changed nothing. Neither a
body nor a header nor an address is ever logged: of an error that nobody foresaw, its type and its place are.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from outvote import __version__
from outvote.core.errors import OutvoteError, UnknownArm
from outvote.core.task import NAME
from outvote.network import edge_metrics, metrics_page, problems
from outvote.network.edge import Edge, UnknownTask
from outvote.network.hosted import HostedTask
from outvote.network.http_server import listen, run_app
from outvote.network.logs import event, place_of
from outvote.network.problems import BodyNotJson, BodyTooLarge, InvalidBody, Problem, UnknownPath, WrongMethod
from outvote.network.records import check_name

HOST: Final = "127.0.0.1"
PORT: Final = 8700
LARGEST_BODY: Final = 64 * 1024
"""Bytes. The rest of a larger body is discarded as it comes."""

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger(__name__)


# ---- what is sent and received


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
    late_rewards: int
    dropped_rewards: int
    messages_kept: int
    messages_waiting: int


class TaskList(msgspec.Struct, frozen=True):
    """All tasks of this edge, by name."""

    tasks: tuple[TaskView, ...]


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


_encode = msgspec.json.Encoder().encode
_decode_reward = msgspec.json.Decoder(Reward).decode
_TASKS = "/v1/tasks/"
_JSON = (b"content-type", b"application/json")
_NO_CONTENT: Final[Message] = {"type": "http.response.start", "status": 204, "headers": []}
_NO_BODY: Final[Message] = {"type": "http.response.body", "body": b""}
_DECIDED: Final[dict[int, Message]] = {}
"""The beginning of the answer to `decide`, by the length of its body."""


def _decided(length: int) -> Message:
    headers = [_JSON, (b"content-length", b"%d" % length)]
    _DECIDED[length] = {"type": "http.response.start", "status": 200, "headers": headers}
    return _DECIDED[length]


def _texts(task: HostedTask) -> list[bytes]:
    """A `Decision` for each arm, but for its ticket."""
    texts = [_encode(Decision(arm, index, "TICKET")) for index, arm in enumerate(task.task.arms)]
    return [text.replace(b"%", b"%%").replace(b'"ticket":"TICKET"', b'"ticket":"%d"') for text in texts]


def make_app(edge: Edge) -> App:
    """The API of an edge; call it in the thread of the edge's store."""
    return EdgeApi(edge)


class EdgeApi:
    """An ASGI application. Routing is written out: a framework's costs more than all the rest of a decision."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._tasks = edge.tasks  # the hot path saves a step
        self._texts: dict[str, list[bytes]] = {}
        """By the id of a task: see `_texts`. Of tasks that are gone they stay: a few hundred bytes each."""
        self.decisions = 0
        self.rewards = 0
        self.refused: Counter[int] = Counter()
        self._registry = edge_metrics.registry_of(edge, self)
        self._pages: dict[str, Callable[[], Answer]] = {
            "/v1/tasks": self._list,
            "/healthz": self._health,
            "/openapi.json": self._describe,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"an edge speaks http, got {scope['type']!r}")
        try:
            path: str = scope["path"]
            name, verb = "", ""
            if path.startswith(_TASKS):
                name, _, verb = path[len(_TASKS) :].partition("/")
            if verb == "decide" and scope["method"] == "POST":
                body = self._decide(name)
                await send(_DECIDED.get(len(body)) or _decided(len(body)))
                await send({"type": "http.response.body", "body": body})
                return
            if verb == "reward" and scope["method"] == "POST":
                message = await receive()
                given: bytes | None = message.get("body", b"")
                if message.get("more_body") or message["type"] != "http.request" or len(given or b"") > LARGEST_BODY:
                    given = await _read_body(scope, receive, message)
                    if given is None:
                        return  # nobody is left to be answered
                self._reward(name, given or b"")
                await send(_NO_CONTENT)
                await send(_NO_BODY)
                return
            answer = self._look_up(scope, name, verb)
        except Exception as error:
            answer = self._refuse(error)
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})

    # ---- the hot path: what can be made once is, and nothing is made that is thrown away

    def _decide(self, name: str) -> bytes:
        """A `Decision`; a body is not needed, and not read."""
        task = self._tasks.get(name)
        if task is None:
            raise self._unknown(name)
        index, ticket = self._edge.decide_in(task)
        self.decisions += 1
        texts = self._texts.get(task.task_id)
        if texts is None:
            texts = self._texts[task.task_id] = _texts(task)
        return texts[index] % ticket

    def _reward(self, name: str, body: bytes) -> None:
        task = self._tasks.get(name)
        if task is None:
            raise self._unknown(name)
        try:
            reward = _decode_reward(body)
        except msgspec.ValidationError as error:
            raise InvalidBody(f"{error}; allowed is a body such as {EXAMPLE}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BodyNotJson(f"the body must be JSON in UTF-8, such as {EXAMPLE}: {error}") from None
        arm, ticket = reward.arm, reward.ticket
        if type(arm) is str:
            index = task.indices.get(arm)
            if index is None:
                raise self._unknown_arm(task, arm)
        else:
            index = cast("int", arm)
        if type(ticket) is str:
            if not (
                ticket.isascii() and ticket.isdigit() and len(ticket) <= 16 and (ticket[0] != "0" or ticket == "0")
            ):
                raise InvalidBody(f"$.ticket must be what decide returned, such as '17'; got {ticket[:64]!r}")
            ticket = int(ticket)
        self._edge.reward_in(task, index, reward.reward, cast("int | None", ticket))
        self.rewards += 1

    def _unknown_arm(self, task: HostedTask, arm: str) -> UnknownArm:
        return UnknownArm(
            f"unknown arm: got {arm[:64]!r}, task {task.task.name!r} has {list(task.task.arms)}; "
            "an arm is named by a string, and its index is a number"
        )

    def _unknown(self, name: str) -> OutvoteError:
        """Why a task was not found: a name that no task can have, or one that none has."""
        check_name("a task's name", name)
        return UnknownTask(f"unknown task: got {name!r}, this edge hosts {sorted(self._tasks) or 'none'}")

    # ---- the rest

    def _look_up(self, scope: Scope, name: str, verb: str) -> Answer:
        method, path = scope["method"], scope["path"]
        if verb in ("decide", "reward"):
            raise WrongMethod(method, ("POST",))
        if path in self._pages:
            page = self._pages[path]
        elif path == "/metrics":
            page = lambda: self._metrics(scope)  # noqa: E731
        elif path.startswith(_TASKS) and "/" not in path[len(_TASKS) :]:
            page = lambda: self._show(name)  # noqa: E731
        else:
            raise UnknownPath(f"nothing is at {path!r}: see /openapi.json for what there is")
        if method not in ("GET", "HEAD"):
            raise WrongMethod(method, ("GET", "HEAD"))
        return page()

    def _list(self) -> Answer:
        return _json(TaskList(tuple(self._view(task) for _, task in sorted(self._tasks.items()))))

    def _show(self, name: str) -> Answer:
        task = self._tasks.get(name)
        if task is None:
            raise self._unknown(name)
        return _json(self._view(task))

    def _view(self, hosted: HostedTask) -> TaskView:
        arms, player = hosted.task.arms, hosted.player
        remaining = tuple(arms[arm] for arm in player.remaining)
        finished = len(remaining) == 1
        return TaskView(
            id=hosted.task_id,
            name=hosted.task.name,
            protocol=hosted.task.protocol,
            arms=arms,
            remaining=remaining,
            finished=finished,
            winner=remaining[0] if finished else None,
            stopped=hosted.stopped,
            late_rewards=hosted.counts.late_rewards,
            dropped_rewards=hosted.counts.dropped_rewards,
            messages_kept=self._edge.store.count(hosted.task_id),
            messages_waiting=hosted.waiting,
        )

    def _health(self) -> Answer:
        return _json(Health("ok", self._edge.name, self._edge.connected, len(self._tasks)))

    def _metrics(self, scope: Scope) -> Answer:
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")
        text, media_type = metrics_page.render(self._registry, accept)
        return _answer(200, (b"content-type", media_type.encode()), text)

    def _describe(self) -> Answer:
        return _json(openapi())

    def _refuse(self, error: Exception) -> Answer:
        problem = problems.problem_of(error)
        self.refused[problem.status] += 1
        if not problems.is_foreseen(error):  # its message may hold what was received: only type and place are told
            event(_log, logging.ERROR, "request_failed", error=type(error).__qualname__, place=place_of(error))
        answer = _answer(problem.status, (b"content-type", problems.CONTENT_TYPE), _encode(problem))
        if isinstance(error, WrongMethod):
            answer.headers.append((b"allow", error.allow.encode()))
        return answer


def _answer(status: int, content_type: tuple[bytes, bytes], body: bytes) -> Answer:
    return Answer(status, [content_type, (b"content-length", b"%d" % len(body))], body)


def _json(content: object) -> Answer:
    return _answer(200, _JSON, _encode(content))


async def _read_body(scope: Scope, receive: Receive, message: Message) -> bytes | None:
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


# ---- what there is, for programs

EXAMPLE: Final = '{"arm": "green", "ticket": "17", "reward": 1}'


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document. Bodies come from the very types that read and write them."""
    types = (Decision, Reward, TaskView, TaskList, Health, Problem)
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")

    def content(kind: str, media: str = "application/json") -> dict[str, Any]:
        return {media: {"schema": {"$ref": f"#/components/schemas/{kind}"}}}

    def refusals(*statuses: str) -> dict[str, Any]:
        media = problems.CONTENT_TYPE.decode()
        return {status: {"description": _REFUSALS[status], "content": content("Problem", media)} for status in statuses}

    def page(summary: str, body: dict[str, Any], *statuses: str) -> dict[str, Any]:
        answers = {"200": {"description": "As asked.", "content": body}} | refusals(*statuses, "500")
        return {"get": {"summary": summary, "responses": answers}}

    text = {"text/plain": {"schema": {"type": "string"}}}
    task = {
        "name": "task",
        "in": "path",
        "required": True,
        "description": "The name of a task.",
        "schema": {"type": "string", "pattern": f"^{NAME.pattern}$"},
    }
    decide = {
        "summary": "An arm for one event. No body is needed, and none is read.",
        "responses": {"200": {"description": "The decision.", "content": content("Decision")}}
        | refusals("404", "422", "500"),
    }
    reward = {
        "summary": "What one event earned. Each decision is rewarded once.",
        "requestBody": {"required": True, "content": content("Reward")},
        "responses": {"204": {"description": "Taken; also where it comes too late to count."}}
        | refusals("400", "404", "409", "413", "422", "500"),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Outvote edge", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": {
            "/v1/tasks": page("All tasks of this edge.", content("TaskList")),
            "/v1/tasks/{task}": {"parameters": [task]} | page("One task.", content("TaskView"), "404", "422"),
            "/v1/tasks/{task}/decide": {"parameters": [task], "post": decide},
            "/v1/tasks/{task}/reward": {"parameters": [task], "post": reward},
            "/healthz": page("Whether this edge works, and whether it is connected.", content("Health")),
            "/metrics": page("Figures in Prometheus' text format, or as OpenMetrics where that is accepted.", text),
            "/openapi.json": page("This document.", {"application/json": {"schema": {"type": "object"}}}),
        },
        "components": {"schemas": components},
    }


_REFUSALS: Final = {
    "400": "The body is not JSON.",
    "404": "The task, or the arm, is not known here.",
    "409": "No decision waits for this reward, or the ticket was not issued for this arm.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "A name, a field or a reward that cannot be.",
    "500": "The edge failed.",
}


# ---- the server


async def serve(
    edge: Edge, host: str = HOST, port: int = PORT, *, bound: Callable[[int], object] | None = None
) -> None:
    """Offer the API until cancelled; port 0 is any free one, and `bound` is told which as soon as it takes connections.

    It runs in the running loop, beside the edge: start the program with `uvloop.run` to have the faster loop.
    """
    listener = listen(host, port)
    if bound is not None:
        bound(listener.getsockname()[1])
    await run_app(make_app(edge), listener)
