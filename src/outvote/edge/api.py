"""The local HTTP API of an edge, as an ASGI application, and the server that runs it.

A request is answered from memory and never waits for the network. A refused request changes nothing but counts of
refusals. Bodies, headers and addresses are never logged. Of an unexpected error, only its type and its place in the
code are logged.
"""

from __future__ import annotations

import functools
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outvote.access.kits import Certificate
from outvote.access.tls import server_context
from outvote.access.tokens import TokenBook
from outvote.core.decisions import Ticket
from outvote.core.errors import InvalidTicket, UnknownArm, UnknownDecision
from outvote.edge.bodies import (
    EXAMPLE,
    JSON,
    LARGEST_BODY,
    Answer,
    Decision,
    Health,
    Reward,
    TaskList,
    TaskView,
    VariantSeen,
    answer,
    as_json,
    encode,
    invalid_body,
    read_body,
)
from outvote.edge.cors import Cors
from outvote.edge.guard import EdgeGuard
from outvote.edge.hosted_task import HostedTask
from outvote.edge.metrics import EdgeCollector
from outvote.edge.ofrep import FLAGS, Ofrep, refused
from outvote.edge.openapi import openapi
from outvote.edge.site import Edge
from outvote.observability.logs import event, place_of
from outvote.observability.metrics_page import new_registry, render
from outvote.observability.once_per_minute import OncePerMinute
from outvote.presenters import site_words
from outvote.web import problems
from outvote.web.exposure import own_hosts
from outvote.web.limits import Traffic, Watch
from outvote.web.listener import listen, run_app
from outvote.web.problems import BodyNotJson, UnknownPath, WrongMethod

Body = TypeVar("Body")

_log = logging.getLogger(__name__)


_decode_reward = msgspec.json.Decoder(Reward).decode
_TASKS = "/v1/tasks/"
_PAGES = ("/v1/tasks", "/healthz", "/metrics", "/openapi.json")
_NO_CONTENT: Final[Message] = {"type": "http.response.start", "status": 204, "headers": []}
_NO_BODY: Final[Message] = {"type": "http.response.body", "body": b""}
_NOT_HERE: Final = (
    "this edge knows no decision with this ticket, so the reward is not counted. Send it to the edge that decided, "
    "for the same task; behind a balancer, route both to one edge. If this edge has crashed since, the decision is lost"
)


@functools.cache
def _decided(length: int) -> Message:
    """The start of the response to `decide`, by the length of its body."""
    headers = [JSON, (b"content-length", b"%d" % length)]
    return {"type": "http.response.start", "status": 200, "headers": headers}


@functools.cache
def _document() -> Answer:
    """The OpenAPI document, encoded once: building it costs as much as a hundred decisions."""
    return as_json(openapi())


def _read(decode: Callable[[bytes], Body], body: bytes, example: str) -> Body:
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise invalid_body(error, example) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyNotJson(f"the body must be JSON in UTF-8, such as {example}: {error}") from None


def _header(scope: Scope, name: bytes) -> str:
    return b",".join(value for field, value in scope["headers"] if field == name).decode("latin-1")


def make_app(
    edge: Edge,
    *,
    origins: Sequence[str] = (),
    tokens: TokenBook | None = None,
    hosts: Collection[str] | None = None,
    traffic: Traffic | None = None,
) -> ASGIApp:
    """Return the API of an edge, for pages of `origins`; call it in the thread of the edge's store.

    With `tokens`, requests need one; with `hosts`, their `Host` header must be one of them. Metrics show `traffic`.
    """
    api = EdgeApi(edge, traffic)
    app = EdgeGuard(api, api.refused, tokens=tokens, hosts=hosts, origins=origins)
    return Cors(app, origins) if origins else app


class EdgeApi:
    """An ASGI application. It routes by hand: a framework's routing would cost more than the rest of a decision."""

    def __init__(self, edge: Edge, traffic: Traffic | None = None) -> None:
        self._edge = edge
        self._tasks = edge.tasks  # one lookup less on the hot path
        self.decisions = 0
        self.rewards = 0
        self.refused: Counter[int] = Counter()
        self.traffic = traffic or Traffic()
        self._failures = OncePerMinute[str]()
        self._ofrep_api = Ofrep(edge)
        self._registry = new_registry(EdgeCollector(edge, self))

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
                await send(_decided(len(body)))
                await send({"type": "http.response.body", "body": body})
                return
            if verb == "reward" and scope["method"] == "POST":
                message = await receive()
                given: bytes | None = message.get("body", b"")
                if message.get("more_body") or message["type"] != "http.request" or len(given or b"") > LARGEST_BODY:
                    given = await read_body(scope, receive, message)
                    if given is None:
                        return  # the client has disconnected
                self._reward(name, given or b"")
                await send(_NO_CONTENT)
                await send(_NO_BODY)
                return
            if path.startswith("/ofrep/"):
                given = await read_body(scope, receive)
                if given is None:
                    return
                response = self._ofrep(scope, given)
            else:
                response = self._look_up(scope, name, verb)
        except Exception as error:
            response = self._refuse(error, scope["path"])
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})

    # ---- the hot path: prepare responses once, create no temporary objects

    def _decide(self, name: str) -> bytes:
        """Return an encoded `Decision`. The body of the request is not read."""
        task = self._edge.find(name)
        ticket = self._edge.decide(task)
        self.decisions += 1
        return encode(Decision(task.task.arms[ticket.arm], str(ticket)))

    def _reward(self, name: str, body: bytes) -> None:
        task = self._edge.find(name)
        given = _read(_decode_reward, body, EXAMPLE)
        ticket = Ticket.parse(given.ticket)
        if given.variant is not None:
            self._check_variant(task, ticket, given.variant)
        try:
            self._edge.reward(task, ticket, given.reward)
        except UnknownDecision:
            raise UnknownDecision(_NOT_HERE) from None
        self.rewards += 1

    def _check_variant(self, task: HostedTask, ticket: Ticket | None, variant: str) -> None:
        index = task.indices.get(variant)
        if index is None:
            names = list(task.task.arms)
            raise UnknownArm(f"unknown variant: got {variant[:64]!r}, task {task.task.name!r} has {names}")
        if ticket is not None and ticket.arm != index:
            raise InvalidTicket(f"is not of a decision for variant {variant!r}: leave out the variant, or send both")

    # ---- OpenFeature

    def _ofrep(self, scope: Scope, body: bytes) -> Answer:
        known = _header(scope, b"if-none-match")
        response = self._ofrep_api.answer(scope["method"], scope["path"], known, body)
        if response.status >= 400:
            self.refused[response.status] += 1
        elif scope["path"] != FLAGS:  # bulk assignments are not counted
            self.decisions += 1
        return response

    # ---- the rest

    def _look_up(self, scope: Scope, name: str, verb: str) -> Answer:
        method, path = scope["method"], scope["path"]
        if verb in ("decide", "reward"):
            raise WrongMethod(method, ("POST",))
        if path not in _PAGES and path != _TASKS + name:
            raise UnknownPath(f"nothing is at {path!r}: see /openapi.json for what there is")
        if method not in ("GET", "HEAD"):
            raise WrongMethod(method, ("GET", "HEAD"))
        match path:
            case "/v1/tasks":
                return as_json(TaskList(tuple(self._view(task) for _, task in sorted(self._tasks.items()))))
            case "/healthz":
                return as_json(Health("ok", self._edge.name, self._edge.connected, len(self._tasks)))
            case "/metrics":
                return self._metrics(scope)
            case "/openapi.json":
                return _document()
        return as_json(self._view(self._edge.find(name)))

    def _view(self, hosted: HostedTask) -> TaskView:
        arms, player, decisions = hosted.task.arms, hosted.player, hosted.player.decisions
        seen, report = decisions.seen, hosted.report(self._edge.now())
        remaining = tuple(arms[arm] for arm in player.remaining)
        finished = len(remaining) == 1
        return TaskView(
            id=hosted.task_id,
            name=hosted.task.name,
            protocol=hosted.task.protocol,
            variants=arms,
            remaining=remaining,
            finished=finished,
            winner=remaining[0] if finished else None,
            stopped=hosted.stopped,
            killed=hosted.killed,
            reward_window=hosted.task.reward_window,
            seen=tuple(
                VariantSeen(*row)
                for row in zip(arms, seen.decisions, seen.rewards, seen.late, seen.refused, seen.out, strict=True)
            ),
            waiting=decisions.open_decisions,
            uncounted=decisions.uncounted,
            notices=() if report is None else tuple(site_words.notices(report)),
            messages_kept=hosted.kept,
            messages_waiting=hosted.waiting,
        )

    def _metrics(self, scope: Scope) -> Answer:
        text, media_type = render(self._registry, _header(scope, b"accept"))
        return answer(200, (b"content-type", media_type.encode()), text)

    def _refuse(self, error: Exception, path: str) -> Answer:
        problem = problems.problem_of(error)
        self.refused[problem.status] += 1
        if problem.status == 500:
            name = type(error).__qualname__  # its message may contain data of the request
            if count := self._failures.note(name, time.monotonic()):
                event(_log, logging.ERROR, "request_failed", error=name, place=place_of(error), count=count)
        refusal = refused(path, problem)
        if isinstance(error, WrongMethod):
            refusal.headers.append((b"allow", error.allow.encode()))
        return refusal


# ---- the server


async def serve(
    edge: Edge,
    host: str,
    port: int,
    *,
    bound: Callable[[int], object] | None = None,
    origins: Sequence[str] = (),
    tokens: TokenBook | None = None,
    certificate: Certificate | None = None,
) -> None:
    """Serve the API until cancelled. Port 0 chooses a free port; `bound` is called with it once it accepts connections.

    Pages of `origins` may use it. With `tokens`, every path but `/healthz` needs one. Without them, on a loopback
    address, the `Host` header must name this machine. With a certificate it speaks HTTPS.

    It runs in the running loop, beside the edge: start the program with `uvloop.run` for the faster loop.
    """
    if certificate is not None:
        server_context(certificate)  # detect an unusable certificate before reporting readiness
    listener = listen(host, port)
    if bound is not None:
        bound(listener.getsockname()[1])
    traffic = Traffic()
    hosts = None if tokens is not None else own_hosts(host)
    app = make_app(edge, origins=origins, tokens=tokens, hosts=hosts, traffic=traffic)
    await run_app(app, listener, certificate=certificate, watch=Watch(traffic))
