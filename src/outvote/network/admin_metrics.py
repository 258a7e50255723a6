"""The server's figures in Prometheus's text format. docs/network.md says what each means; a test compares the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from outvote.network.admin_views import BitBudget, status
from outvote.network.fold import Fold, FoldedTask

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGES: tuple[tuple[str, str, Callable[[FoldedTask], int]], ...] = (
    ("outvote_task_arms", "Arms of the task.", lambda found: len(found.task.arms)),
    ("outvote_task_arms_remaining", "Arms that remain.", lambda found: len(found.announced)),
    ("outvote_task_running", "Whether it runs.", lambda found: int(status(found) in ("running", "held"))),
    ("outvote_task_held", "Whether a decision is held back.", lambda found: int(status(found) == "held")),
    ("outvote_task_edges", "Edges that have sent something.", lambda found: len({edge for edge, _ in found.highest})),
    ("outvote_task_incarnations", "Lives of those edges' stores.", lambda found: len(found.highest)),
)
"""One figure for each task."""


def prometheus(fold: Fold, bits: BitBudget, *, connected: bool) -> str:
    """All of it; names of tasks need no escaping."""
    lines = _Lines()
    lines.gauge("outvote_engine_connected", "Whether the engine is connected.", int(connected))
    lines.gauge("outvote_log_records", "Place in the log of the last record that was read.", fold.read)
    lines.counter("outvote_unknown_records", "Records that belong to no task.", fold.unknown)
    lines.gauge("outvote_bits_may_still_send", "Most bits that running votes may still cost.", bits.may_still_send)
    lines.gauge("outvote_tasks_without_bound", "Running tasks of Tally.", len(bits.without_bound))
    if bits.budget is not None:
        lines.gauge("outvote_bit_budget", "Most bits that running tasks may still send.", bits.budget)
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


class _Lines:
    def __init__(self) -> None:
        self.text = ""

    def gauge(self, name: str, text: str, value: int | Mapping[str, int]) -> None:
        self._add(name, "gauge", text, value)

    def counter(self, name: str, text: str, value: int | Mapping[str, int]) -> None:
        self._add(f"{name}_total", "counter", text, value)

    def _add(self, name: str, kind: str, text: str, value: int | Mapping[str, int]) -> None:
        self.text += f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        for labels, number in (value if isinstance(value, Mapping) else {"": value}).items():
            self.text += f"{name}{labels} {number}\n"


def _labels(found: FoldedTask, **more: str) -> str:
    labels = {"task": found.task.name, "id": found.task_id, "protocol": found.task.protocol, **more}
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
