"""An edge's metrics for Prometheus. docs/network.md explains each; a test compares the two.

The edge keeps plain numbers, which are read here when Prometheus asks. They are running counts: no metric holds an
event. Those with a task in their name go on after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import InfoMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from outvote.core.decisions import Seen
from outvote.edge.site import Edge
from outvote.log.log import ConnectionFigures
from outvote.observability.metrics_page import counter, gauge, one

if TYPE_CHECKING:
    from outvote.edge.api import EdgeApi


class EdgeCollector(Collector):
    """Collects decisions, rewards, messages and the state of the connection."""

    def __init__(self, edge: Edge, served: EdgeApi) -> None:
        self._edge = edge
        self._served = served

    def collect(self) -> Iterable[Metric]:
        edge, served = self._edge, self._served
        figures = ConnectionFigures() if edge.log is None else edge.log.figures()
        yield InfoMetricFamily("outvote_edge", "The name of this edge's site.", value={"site": edge.name})
        for name, says, count in (
            ("outvote_edge_decisions_total", "Decisions made.", served.decisions),
            ("outvote_edge_rewards_total", "Rewards accepted, those that are ignored included.", served.rewards),
            ("outvote_edge_unfinished_requests_total", "Requests not finished in time.", served.traffic.unfinished),
            (
                "outvote_edge_turned_away_connections_total",
                "Connections beyond a limit.",
                served.traffic.turned_away,
            ),
            ("outvote_edge_reconnections_total", "Times a lost connection came back.", figures.reconnections),
            ("outvote_edge_wire_bytes_total", "Bytes to and from the engine, with all headers.", figures.wire_bytes),
        ):
            yield counter(name, says, one(count))
        yield counter(
            "outvote_edge_refused_requests_total",
            "Requests answered with an error, by status.",
            *(({"status": str(status)}, count) for status, count in sorted(served.refused.items())),
        )
        tasks = edge.tasks.values()
        yield counter(
            "outvote_edge_task_decisions_total",
            "Decisions that count, by task.",
            *(({"task": task.task.name}, sum(task.player.decisions.seen.decisions)) for task in tasks),
        )
        yield counter(
            "outvote_edge_task_rewarded_decisions_total",
            "Decisions that have a reward, by task.",
            *(({"task": task.task.name}, sum(task.player.decisions.seen.rewards)) for task in tasks),
        )
        yield counter(
            "outvote_edge_task_ignored_rewards_total",
            "Rewards that do not count, by task, variant and reason: late, unknown (refused), or out (the variant was "
            "eliminated).",
            *(
                ({"task": task.task.name, "variant": variant, "reason": reason}, counts[arm])
                for task in tasks
                for reason, counts in _ignored(task.player.decisions.seen)
                for arm, variant in enumerate(task.task.arms)
            ),
        )
        yield counter(
            "outvote_edge_task_uncounted_decisions_total",
            "Decisions that are not counted because too many wait for rewards, by task.",
            *(({"task": task.task.name}, task.player.decisions.uncounted) for task in tasks),
        )
        expires = figures.credential_expires
        for name, says, value in (
            ("outvote_edge_tasks", "Tasks that this edge hosts.", len(tasks)),
            ("outvote_edge_messages_kept", "Messages in its store.", sum(task.kept for task in tasks)),
            ("outvote_edge_messages_waiting", "Messages still to be sent.", sum(task.waiting for task in tasks)),
            ("outvote_edge_connected", "Whether the engine is connected.", edge.connected),
            ("outvote_edge_credential_expires_timestamp_seconds", "When its credential expires, if any.", expires),
            ("outvote_edge_last_catch_up_timestamp_seconds", "When it last caught up.", edge.last_catch_up),
        ):
            yield gauge(name, says, *([] if value is None else [one(value)]))
        yield SummaryMetricFamily(
            "outvote_edge_save_seconds",
            "Seconds that saving the state took.",
            count_value=edge.saves,
            sum_value=edge.save_seconds,
        )


def _ignored(seen: Seen) -> tuple[tuple[str, list[int]], ...]:
    return ("late", seen.late), ("unknown", seen.refused), ("out", seen.out)
