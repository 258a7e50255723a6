"""An edge's figures for Prometheus. docs/network.md says what each means; a test compares the two.

Whoever decides and learns keeps plain numbers; they are read here when somebody looks. They are sums over all tasks,
since the start of the process: nothing here tells of one event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import InfoMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from outvote.network.edge import Edge
from outvote.network.metrics_page import counter, gauge, new_registry, one

if TYPE_CHECKING:
    from outvote.network.edge_api import EdgeApi


class EdgeCollector(Collector):
    """What the edge did, what it has, and whether the fleet hears of it."""

    def __init__(self, edge: Edge, served: EdgeApi) -> None:
        self._edge = edge
        self._served = served

    def collect(self) -> Iterable[Metric]:
        edge, served = self._edge, self._served
        yield InfoMetricFamily("outvote_edge", "The name of this edge.", value={"edge": edge.name})
        yield counter("outvote_edge_decisions_total", "Decisions made.", one(served.decisions))
        yield counter(
            "outvote_edge_rewards_total", "Rewards accepted, late and dropped ones included.", one(served.rewards)
        )
        late, dropped = edge.rewards_not_counted
        yield counter("outvote_edge_late_rewards_total", "Rewards of arms that were out.", one(late))
        yield counter(
            "outvote_edge_dropped_rewards_total", "Rewards of batches that were closed or not counted.", one(dropped)
        )
        yield counter(
            "outvote_edge_refused_requests_total",
            "Requests answered with an error, by status.",
            *(({"status": str(status)}, count) for status, count in sorted(served.refused.items())),
        )
        yield counter(
            "outvote_edge_unfinished_requests_total",
            "Connections closed because a request did not come in time.",
            one(served.traffic.unfinished),
        )
        yield counter(
            "outvote_edge_turned_away_connections_total",
            "Connections refused because a limit of the listener was reached.",
            one(served.traffic.turned_away),
        )
        yield from self._store()
        yield from self._link()

    def _store(self) -> Iterable[Metric]:
        edge, tasks = self._edge, self._edge.tasks.values()
        yield gauge("outvote_edge_tasks", "Tasks that this edge hosts.", one(len(tasks)))
        kept = sum(task.kept for task in tasks)
        yield gauge("outvote_edge_messages_kept", "Messages in its store.", one(kept))
        waiting = sum(task.waiting for task in tasks)
        yield gauge("outvote_edge_messages_waiting", "Messages to be sent: the log may lack them.", one(waiting))
        yield SummaryMetricFamily(
            "outvote_edge_save_seconds",
            "Seconds that saving the state took.",
            count_value=edge.saves,
            sum_value=edge.save_seconds,
        )

    def _link(self) -> Iterable[Metric]:
        link = self._edge.link
        yield gauge("outvote_edge_connected", "Whether the engine is connected.", one(self._edge.connected))
        yield counter(
            "outvote_edge_reconnections_total",
            "Times a lost connection came back.",
            one(0 if link is None else link.reconnections),
        )
        expires = None if link is None else link.credential_expires
        yield gauge(
            "outvote_edge_credential_expires_timestamp_seconds",
            "When the edge's credential expires, if it has one.",
            *([] if expires is None else [one(expires)]),
        )
        last = self._edge.last_catch_up
        yield gauge(
            "outvote_edge_last_catch_up_timestamp_seconds",
            "When a server last told what this edge had missed.",
            *([] if last is None else [one(last)]),
        )
        yield counter(
            "outvote_edge_wire_bytes_total",
            "Bytes to and from the engine, headers of TCP and IP included.",
            one(0 if link is None else link.wire_bytes),
        )


def registry_of(edge: Edge, served: EdgeApi) -> CollectorRegistry:
    return new_registry(EdgeCollector(edge, served))
