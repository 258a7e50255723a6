"""The server's metrics for Prometheus. docs/network.md explains each one; a test compares the two.

They are computed at each scrape, except request counts. Labels hold names chosen by operators (tasks, sites) or fixed
values (routes, methods), never text from a request.
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
from outvote.log.site_report import Notice
from outvote.observability.metrics_page import Labels, counter, gauge, one
from outvote.server.admin.views import status
from outvote.server.liveness import EdgeState
from outvote.server.sync_server import SyncServer
from outvote.web.limits import Traffic
from outvote.web.refusals import Refusals

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE")
OTHER: Final = "other"
"""Label of unknown routes and methods: clients could invent any number of them."""
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds. A read takes a few milliseconds; a change takes a disk write, and times out after ten seconds."""

BITS: Final = 8
"""Bits in a byte, the unit of Prometheus: a payload of three bits is .375 bytes."""
GAUGES: Final[tuple[tuple[str, str, Callable[[TaskState], float | None]], ...]] = (
    ("outvote_task_variants", "Variants of the task.", lambda state: len(state.task.arms)),
    ("outvote_task_variants_remaining", "Variants that remain.", lambda state: len(state.announced)),
    ("outvote_task_running", "Whether it runs.", lambda state: status(state) in ("running", "held")),
    ("outvote_task_held", "Whether a decision is held back.", lambda state: status(state) == "held"),
    ("outvote_task_winner_found", "Whether one variant remains.", lambda state: state.winner is not None),
    ("outvote_task_sites", "Sites that have sent something.", lambda state: len({edge for edge, _ in state.highest})),
    ("outvote_task_incarnations", "Lives of those sites' stores.", lambda state: len(state.highest)),
    (
        "outvote_task_bound_bytes",
        "Bound on a task's payload; tasks of Tally have none.",
        lambda state: None if state.ledger.bound is None else state.ledger.bound / BITS,
    ),
    ("outvote_task_created_timestamp_seconds", "When the task was created.", lambda state: state.history.created),
    (
        "outvote_task_last_message_timestamp_seconds",
        "When the log last got a message of the task.",
        lambda state: state.history.last_message,
    ),
)
"""Gauges of each task; None is left out."""


class ServerCollector(Collector):
    """Metrics of the log, the edges, the tasks and the HTTP listener."""

    def __init__(self, server: SyncServer, refusals: Refusals, traffic: Traffic) -> None:
        self._server = server
        self._refusals = refusals
        self._traffic = traffic

    def collect(self) -> Iterable[Metric]:
        yield from self._engine_and_log()
        yield from self._fleet()
        yield from self._tasks()
        yield from self._http()

    def _engine_and_log(self) -> Iterable[Metric]:
        server = self._server
        read, end = server.state.read, max(server.log_end, server.state.read)
        connected, expires = server.log.connected, server.log.figures().credential_expires
        for name, text, value in (
            ("outvote_engine_connected", "Whether the engine is connected.", connected),
            ("outvote_credential_expires_timestamp_seconds", "When the server's credential expires, if any.", expires),
            ("outvote_log_writable", "Whether the engine takes new records.", connected and server.log_writable),
            ("outvote_log_records", "Place in the log of the last record that was read.", read),
            ("outvote_log_last_record", "Place of the last record that is known to be there.", end),
            ("outvote_log_records_behind", "Records that are there and were not read.", end - read),
            ("outvote_event_watchers", "Who is told of changes at /v1/events.", server.monitor.changes.watchers),
        ):
            yield gauge(name, text, *([] if value is None else [one(value)]))
        yield counter("outvote_unknown_records_total", "Records that belong to no task.", one(server.state.unknown))

    def _fleet(self) -> Iterable[Metric]:
        server = self._server
        counts = server.monitor.edge_counts()
        states = [({"state": state}, float(counts[state])) for state in get_args(EdgeState)]
        yield gauge("outvote_sites", "Sites, by whether they give signs of life.", *states)
        several = sum(len(edge.incarnations) > 1 for edge in server.state.edges.values())
        yield gauge("outvote_sites_with_several_lives", "Sites with several incarnations in the log.", one(several))
        yield gauge(
            "outvote_site_last_sign_timestamp_seconds",
            "When this server last heard of the site.",
            *(({"site": edge}, at) for edge, at in server.monitor.liveness.last.items()),
        )

    def _tasks(self) -> Iterable[Metric]:
        tasks = [(_labels(state), state) for state in self._server.state.tasks.values()]
        for name, text, value in GAUGES:
            values = [(labels, value(state)) for labels, state in tasks]
            yield gauge(name, text, *((labels, float(figure)) for labels, figure in values if figure is not None))
        for name, text, kind, unit in (
            ("outvote_task_messages_total", "Messages; one downward for each site.", "messages", 1),
            ("outvote_task_payload_bytes_total", "Payload of messages.", "bits", BITS),
        ):
            counts = [
                ({**labels, "direction": direction}, getattr(state.ledger, f"{direction}_{kind}") / unit)
                for labels, state in tasks
                for direction in ("up", "down")
            ]
            yield counter(name, text, *counts)
        yield counter(
            "outvote_task_refused_total",
            "Records of sites that are no message of the task.",
            *((labels, state.refused) for labels, state in tasks),
        )

        warned = [
            ({**labels, "warning": warning}, sum(warning in report.notices for report in reports))
            for labels, state in tasks
            if (reports := self._server.monitor.reports_of(state.task_id).values())
            for warning in get_args(Notice)
        ]
        yield gauge("outvote_task_sites_warning", "Sites that warn of their rewards, by warning.", *warned)

    def _http(self) -> Iterable[Metric]:
        yield counter(
            "outvote_http_refused_total",
            "Requests turned away at the door, by reason.",
            *(({"reason": reason}, count) for reason, count in sorted(self._refusals.counts.items())),
        )
        unfinished, turned_away = one(self._traffic.unfinished), one(self._traffic.turned_away)
        yield counter("outvote_http_unfinished_requests_total", "Requests not finished in time.", unfinished)
        yield counter("outvote_http_turned_away_connections_total", "Connections beyond a limit.", turned_away)


class CountRequests:
    """Middleware that counts answers and measures the time to their first byte: /v1/events never ends.

    `routes` maps an endpoint to its route pattern.
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
            note(500)  # the status that an outer layer answers with
            raise


def patterns(routes: Iterable[BaseRoute]) -> dict[Any, str]:
    """Return the route label of each endpoint; a mount has one label."""
    labels: dict[Any, str] = {}
    for route in routes:
        if isinstance(route, Route):
            labels[route.endpoint] = route.path
        elif isinstance(route, Mount):
            labels[route.app] = f"{route.path}/…"
    return labels


def _labels(state: TaskState) -> Labels:
    return {"task": state.task.name, "id": state.task_id, "protocol": state.task.protocol}
