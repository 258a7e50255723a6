"""The server's figures for Prometheus. docs/network.md says what each means; a test compares the two.

All of them are read from the server when somebody looks, but requests, which are counted as they are answered. A label
holds what operators chose (tasks, edges) or what is fixed here (routes, methods): never what a requester sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outvote.log.log_state import TaskState
from outvote.observability.metrics_page import Labels, counter, gauge, one
from outvote.server.admin.views import status
from outvote.server.liveness import EdgeState
from outvote.server.sync_server import SyncServer
from outvote.web.limits import Traffic
from outvote.web.refusals import Refusals

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE")
OTHER: Final = "other"
"""For a route that is not there, and a method that nobody uses: requesters can make up any number of them."""
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds. A look takes one or a few milliseconds, a change a write to a disk, and at most ten seconds."""

BITS: Final = 8
"""In a byte, which is the unit by the conventions of Prometheus: a payload of three bits is .375 bytes."""
GAUGES: Final[tuple[tuple[str, str, Callable[[TaskState], float | None]], ...]] = (
    ("outvote_task_arms", "Arms of the task.", lambda found: len(found.task.arms)),
    ("outvote_task_arms_remaining", "Arms that remain.", lambda found: len(found.announced)),
    ("outvote_task_running", "Whether it runs.", lambda found: status(found) in ("running", "held")),
    ("outvote_task_held", "Whether a decision is held back.", lambda found: status(found) == "held"),
    ("outvote_task_winner_found", "Whether one arm remains.", lambda found: found.winner is not None),
    ("outvote_task_edges", "Edges that have sent something.", lambda found: len({edge for edge, _ in found.highest})),
    ("outvote_task_incarnations", "Lives of those edges' stores.", lambda found: len(found.highest)),
    (
        "outvote_task_bound_bytes",
        "Bound on a task's payload; tasks of Tally have none.",
        lambda found: None if found.ledger.bound is None else found.ledger.bound / BITS,
    ),
    ("outvote_task_created_timestamp_seconds", "When the task was created.", lambda found: found.history.created),
    (
        "outvote_task_last_message_timestamp_seconds",
        "When the log last got a message of the task.",
        lambda found: found.history.last_message,
    ),
)
"""One figure for each task; None is left out."""


class ServerCollector(Collector):
    """What the log says, how far it was read, who is alive, who was turned away and who never finished."""

    def __init__(self, server: SyncServer, refusals: Refusals, traffic: Traffic) -> None:
        self._server = server
        self._refusals = refusals
        self._traffic = traffic

    def collect(self) -> Iterable[Metric]:
        yield from self._engine_and_log()
        yield from self._fleet()
        yield from self._tasks()
        yield from self._doors()

    def _engine_and_log(self) -> Iterable[Metric]:
        server = self._server
        read, end = server.state.read, max(server.log_end, server.state.read)
        connected = server.log.connected
        yield gauge("outvote_engine_connected", "Whether the engine is connected.", one(connected))
        expires = server.log.figures().credential_expires
        yield gauge(
            "outvote_credential_expires_timestamp_seconds",
            "When the server's credential expires, if it has one.",
            *([] if expires is None else [one(expires)]),
        )
        yield gauge(
            "outvote_log_writable", "Whether the engine takes new records.", one(connected and server.log_writable)
        )
        yield gauge("outvote_log_records", "Place in the log of the last record that was read.", one(read))
        yield gauge("outvote_log_last_record", "Place of the last record that is known to be there.", one(end))
        yield gauge("outvote_log_records_behind", "Records that are there and were not read.", one(end - read))
        yield counter("outvote_unknown_records_total", "Records that belong to no task.", one(server.state.unknown))
        yield gauge(
            "outvote_event_watchers", "Who is told of changes at /v1/events.", one(server.monitor.changes.watchers)
        )

    def _fleet(self) -> Iterable[Metric]:
        server = self._server
        counts = server.monitor.edge_counts()
        states = [({"state": state}, float(counts[state])) for state in get_args(EdgeState)]
        yield gauge("outvote_edges", "Edges, by whether they give signs of life.", *states)
        several = sum(len(edge.incarnations) > 1 for edge in server.state.edges.values())
        yield gauge("outvote_edges_with_several_lives", "Edges with several incarnations in the log.", one(several))
        yield gauge(
            "outvote_edge_last_sign_timestamp_seconds",
            "When this server last heard of the edge.",
            *(({"edge": edge}, at) for edge, at in server.monitor.liveness.last.items()),
        )

    def _tasks(self) -> Iterable[Metric]:
        tasks = [(_labels(found), found) for found in self._server.state.tasks.values()]
        for name, says, value in GAUGES:
            values = [(labels, value(found)) for labels, found in tasks]
            yield gauge(name, says, *((labels, float(figure)) for labels, figure in values if figure is not None))
        for name, says, kind, unit in (
            ("outvote_task_messages_total", "Messages; one downward for each player.", "messages", 1),
            ("outvote_task_payload_bytes_total", "Payload of messages.", "bits", BITS),
        ):
            counts = [
                ({**labels, "direction": direction}, getattr(found.ledger, f"{direction}_{kind}") / unit)
                for labels, found in tasks
                for direction in ("up", "down")
            ]
            yield counter(name, says, *counts)
        yield counter(
            "outvote_task_refused_total",
            "Records of edges that are no message of the task.",
            *((labels, found.refused) for labels, found in tasks),
        )

    def _doors(self) -> Iterable[Metric]:
        yield counter(
            "outvote_http_refused_total",
            "Requests turned away at the door, by reason.",
            *(({"reason": reason}, count) for reason, count in sorted(self._refusals.counts.items())),
        )
        yield counter(
            "outvote_http_unfinished_requests_total",
            "Connections closed because a request did not come in time.",
            one(self._traffic.unfinished),
        )
        yield counter(
            "outvote_http_turned_away_connections_total",
            "Connections refused because a limit of the listener was reached.",
            one(self._traffic.turned_away),
        )


class CountRequests:
    """Middleware that counts answers, and how long it took until each began: /v1/events goes on for ever.

    `routes` gives the pattern of an endpoint.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, routes: Mapping[Any, str]) -> None:
        self._app = app
        self._routes = routes
        self._total = Counter(
            "outvote_http_requests_total",
            "Requests that were answered.",
            ("route", "method", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "outvote_http_request_duration_seconds",
            "Seconds until an answer began.",
            ("route", "method"),
            buckets=BUCKETS,
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()

        def note(answered: int) -> None:
            route = self._routes.get(scope.get("endpoint"), OTHER)
            method = scope["method"] if scope["method"] in METHODS else OTHER
            self._total.labels(route, method, str(answered)).inc()
            self._seconds.labels(route, method).observe(time.perf_counter() - began)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                note(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except Exception:
            note(500)  # which is what is answered, further out
            raise


def patterns(routes: Iterable[BaseRoute]) -> dict[Any, str]:
    """What a label says of each endpoint; one for all that is mounted at a path."""
    found: dict[Any, str] = {}
    for each in routes:
        if isinstance(each, Route):
            found[each.endpoint] = each.path
        elif isinstance(each, Mount):
            found[each.app] = f"{each.path}/…"
    return found


def _labels(found: TaskState) -> Labels:
    return {"task": found.task.name, "id": found.task_id, "protocol": found.task.protocol}
