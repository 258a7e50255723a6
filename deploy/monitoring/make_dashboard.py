"""Writes grafana-dashboard.json, which Grafana 10 or later imports: rows of panels, each with what it shows.

Run it after a change: `python deploy/monitoring/make_dashboard.py`. A test sees that the file is up to date, and that
each metric is one that is served. The standard library only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

FILE: Final = Path(__file__).with_name("grafana-dashboard.json")
WIDTH: Final = 24
"""Columns of Grafana's grid."""
SOURCE: Final = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
TASK: Final = 'task=~"$task"'

Json: TypeAlias = dict[str, Any]


class Panel(NamedTuple):
    """`lines` are pairs of a query and the legend of its lines; `mapped` gives words for 0 and 1."""

    title: str
    says: str
    lines: list[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    mapped: tuple[str, str] | None = None


def of_edges(query: str) -> str:
    """What edges tell of themselves, with their names, for those that are chosen."""
    return f'({query}) * on (job, instance) group_left (site) outvote_edge_info{{site=~"$site"}}'


def rate_of(counter: str, labels: str = "") -> str:
    return f"rate({counter}{labels}[$__rate_interval])"


def at_edges(counter: str, *by: str) -> str:
    """What edges count for each task: a second, with their names."""
    return of_edges(f"sum by ({', '.join(['job', 'instance', 'task', *by])}) ({rate_of(counter, f'{{{TASK}}}')})")


def of_tasks(metric: str, *more: str) -> str:
    return f"max by (task) ({metric}{{{','.join([TASK, *more])}}})"


ROWS: Final[dict[str, list[Panel]]] = {
    "Fleet": [
        Panel(
            "Servers that answer", "Servers that Prometheus reaches.", [('sum(up{job="outvote-server"})', "")],
            kind="stat", width=4,
        ),
        Panel(
            "Sites alive", "Sites with a sign of life within the last 75 seconds, as the servers hear them.",
            [('max(outvote_sites{state="alive"})', "")], kind="stat", width=4,
        ),
        Panel(
            "Sites silent", "Sites that are in the log or were heard before, and give no sign of life.",
            [('max(outvote_sites{state="silent"})', "")], kind="stat", width=4,
        ),
        Panel(
            "Sites missing", "Sites that a task names and nobody has ever heard of.",
            [('max(outvote_sites{state="missing"})', "")], kind="stat", width=4,
        ),
        Panel(
            "Tasks that run", "Tasks that are neither finished nor stopped.",
            [("sum(max by (id) (outvote_task_running))", "")], kind="stat", width=4,
        ),
        Panel(
            "Sites with several lives", "Their stores were lost, copied or restored, or two processes use one name.",
            [("max(outvote_sites_with_several_lives)", "")], kind="stat", width=4,
        ),
        Panel(
            "Sites by state", "All sites that were heard of, are in the log or are named by a task.",
            [("max by (state) (outvote_sites)", "{{state}}")], width=12,
        ),
        Panel(
            "Time since the last sign of life", "By site; each gives one every half minute.",
            [('time() - max by (site) (outvote_site_last_sign_timestamp_seconds{site=~"$site"})', "{{site}}")],
            unit="s", width=12,
        ),
    ],
    "Log and engine": [
        Panel(
            "Engine connected", "Whether each server is connected to the engine.",
            [("outvote_engine_connected", "{{instance}}")], kind="stat", width=6, mapped=("away", "connected"),
        ),
        Panel(
            "Log writable", "Whether the engine takes new records: not after its disk was full.",
            [("outvote_log_writable", "{{instance}}")], kind="stat", width=6, mapped=("no", "yes"),
        ),
        Panel(
            "Records behind", "Records that are in the log and that a server has not read.",
            [("outvote_log_records_behind", "{{instance}}")], width=12,
        ),
        Panel(
            "Records in the log", "How far the log reaches and was read; it grows by one for each message.",
            [("max(outvote_log_last_record)", "written"), ("outvote_log_records", "read by {{instance}}")],
        ),
        Panel(
            "Server restarts", "How often a server was started again; it ends if its own engine dies.",
            [('changes(process_start_time_seconds{job="outvote-server"}[$__range])', "{{instance}}")],
        ),
        Panel(
            "Records that were refused or unknown", "No messages of their task, or of no task at all.",
            [
                (f"max by (task) ({rate_of('outvote_task_refused_total', '{' + TASK + '}')})", "refused: {{task}}"),
                (f"max({rate_of('outvote_unknown_records_total')})", "of no task"),
            ],
            unit="cps",
        ),
    ],
    "Tasks": [
        Panel(
            "Variants that remain", "A task ends when one is left.",
            [(of_tasks("outvote_task_variants_remaining"), "{{task}}")],
        ),
        Panel(
            "State", "1 while a task runs, 2 while its decision is held back because sites differ, 0 at its end.",
            [(f"{of_tasks('outvote_task_running')} + {of_tasks('outvote_task_held')}", "{{task}}")],
        ),
        Panel(
            "Winners found", "Tasks of which one variant remains.",
            [
                (f"sum({of_tasks('outvote_task_winner_found')})", "found"),
                (f"count({of_tasks('outvote_task_variants')})", "tasks"),
            ],
        ),
        Panel(
            "Messages", "Messages a second, up from sites and down to each site.",
            [(f"max by (task, direction) ({rate_of('outvote_task_messages_total', '{' + TASK + '}')})",
              "{{task}} {{direction}}")],
            unit="cps",
        ),
        Panel(
            "Bits since the beginning", "Payload bits of both directions, and the bound that votes have.",
            [
                (
                    "8 * sum by (task) (max by (task, direction) (outvote_task_payload_bytes_total{" + TASK + "}))",
                    "{{task}}",
                ),
                (f"8 * {of_tasks('outvote_task_bound_bytes')}", "{{task}}: bound"),
            ],
            unit="decbits",
        ),
        Panel(
            "Time since the last message", "Of each task that runs.",
            [(f"(time() - {of_tasks('outvote_task_last_message_timestamp_seconds')}) "
              f"and {of_tasks('outvote_task_running')} == 1", "{{task}}")],
            unit="s",
        ),
        Panel(
            "Age", "Since each task was created.",
            [(f"time() - {of_tasks('outvote_task_created_timestamp_seconds')}", "{{task}}")],
            unit="s",
        ),
        Panel(
            "Sites and their lives", "Sites that have sent something, and how many lives their stores had.",
            [
                (of_tasks("outvote_task_sites"), "{{task}}: sites"),
                (of_tasks("outvote_task_incarnations"), "{{task}}: lives"),
            ],
        ),
    ],
    "Edges": [
        Panel(
            "Decisions", "Decisions a second, those that do not count included.",
            [(of_edges(rate_of("outvote_edge_decisions_total")), "{{site}}")], unit="reqps",
        ),
        Panel(
            "Rewards", "Rewards a second that were taken, those that do not count included.",
            [(of_edges(rate_of("outvote_edge_rewards_total")), "{{site}}")], unit="reqps",
        ),
        Panel(
            "Refused requests", "By status; 409 is a reward for a decision that the edge does not know.",
            [(of_edges(rate_of("outvote_edge_refused_requests_total")), "{{site}}: {{status}}")], unit="reqps",
        ),
        Panel(
            "Connected", "Whether the edge is connected to the engine; it serves in either case.",
            [(of_edges("outvote_edge_connected"), "{{site}}")], kind="stat", mapped=("away", "connected"),
        ),
        Panel(
            "Messages that wait", "Not known to be in the log.",
            [(of_edges("outvote_edge_messages_waiting"), "{{site}}")],
        ),
        Panel(
            "Time since it caught up", "Since a server last told the edge what it had missed: every half minute.",
            [(of_edges("time() - outvote_edge_last_catch_up_timestamp_seconds"), "{{site}}")], unit="s",
        ),
        Panel(
            "Reconnections", "How often a lost connection came back.",
            [(of_edges("increase(outvote_edge_reconnections_total[$__range])"), "{{site}}")],
        ),
        Panel(
            "Time to save", "Mean seconds that saving the state takes; decisions wait meanwhile.",
            [(of_edges(f"{rate_of('outvote_edge_save_seconds_sum')} / {rate_of('outvote_edge_save_seconds_count')}"),
              "{{site}}")],
            unit="s",
        ),
        Panel(
            "Bytes on the wire", "To and from the engine, headers of TCP and IP included.",
            [(of_edges(rate_of("outvote_edge_wire_bytes_total")), "{{site}}")], unit="Bps",
        ),
        Panel(
            "Tasks", "Tasks that the edge hosts.", [(of_edges("outvote_edge_tasks"), "{{site}}")],
        ),
        Panel(
            "Messages kept", "In the edge's store, until their task is deleted.",
            [(of_edges("outvote_edge_messages_kept"), "{{site}}")],
        ),
    ],
    "Rewards": [
        Panel(
            "Sites that warn of their rewards", "By warning, as sites report it: docs/network.md says what each means.",
            [(f"max by (task, warning) (outvote_task_sites_warning{{{TASK}}}) > 0", "{{task}}: {{warning}}")], width=24,
        ),
        Panel(
            "Decisions that count", "A second, by task: a finished, stopped or killed task has none.",
            [(at_edges("outvote_edge_task_decisions_total"), "{{site}}: {{task}}")], unit="reqps", width=12,
        ),
        Panel(
            "Decisions with a reward", "A second, by task; a decision that has none counts 0.",
            [(at_edges("outvote_edge_task_rewarded_decisions_total"), "{{site}}: {{task}}")], unit="reqps", width=12,
        ),
        Panel(
            "Rewards that do not count",
            "Late: after the reward window. Unknown: refused, for a decision that the edge does not know. Out: of a "
            "variant that was eliminated meanwhile.",
            [(at_edges("outvote_edge_task_ignored_rewards_total", "reason"), "{{site}}: {{task}} {{reason}}")],
            unit="reqps", width=12,
        ),
        Panel(
            "Decisions that do not count", "Because too many wait for their rewards.",
            [(at_edges("outvote_edge_task_uncounted_decisions_total"), "{{site}}: {{task}}")], unit="reqps", width=12,
        ),
    ],
    "HTTP and processes": [
        Panel(
            "Requests of operators", "A second, by route and status.",
            [(f"sum by (route, status) ({rate_of('outvote_http_requests_total')})", "{{route}} {{status}}")],
            unit="reqps",
        ),
        Panel(
            "Time to answer operators", "95 of 100 answers begin within it.",
            [("histogram_quantile(0.95, sum by (le, route) ("
              f"{rate_of('outvote_http_request_duration_seconds_bucket')}))", "{{route}}")],
            unit="s",
        ),
        Panel(
            "Who watches", "Pages and programs that are told of changes.",
            [("outvote_event_watchers", "{{instance}}")],
        ),
        Panel(
            "Memory", "Resident memory of servers and edges.",
            [('process_resident_memory_bytes{job=~"outvote-.*"}', "{{instance}}")], unit="bytes",
        ),
        Panel(
            "Processor", "Share of one core.",
            [(rate_of("process_cpu_seconds_total", '{job=~"outvote-.*"}'), "{{instance}}")], unit="percentunit",
        ),
        Panel(
            "Versions", "Processes by version.",
            [("count by (version) (outvote_build_info)", "{{version}}")], kind="stat",
        ),
    ],
}  # fmt: skip


def dashboard() -> Json:
    panels: list[Json] = []
    top = 0
    for title, row in ROWS.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top},
                "panels": [],
            }
        )
        top += 1
        left = height = 0
        for panel in row:
            if left + panel.width > WIDTH:
                left, top, height = 0, top + height, 0
            high = 4 if panel.kind == "stat" and panel.width < 8 else 8
            place = {"h": high, "w": panel.width, "x": left, "y": top}
            panels.append(drawn(panel, len(panels) + 1, place))
            left, height = left + panel.width, max(height, high)
        top += height
    return {
        "__inputs": [
            {
                "name": "DS_PROMETHEUS",
                "label": "Prometheus",
                "description": "Where the metrics of servers and edges are.",
                "type": "datasource",
                "pluginId": "prometheus",
                "pluginName": "Prometheus",
            }
        ],
        "__requires": [
            {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"},
            {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
            {"type": "panel", "id": "stat", "name": "Stat", "version": ""},
            {"type": "panel", "id": "timeseries", "name": "Time series", "version": ""},
        ],
        "uid": "outvote-fleet",
        "title": "Outvote",
        "description": "A fleet of Outvote: servers, log, tasks and edges. docs/operations.md says more.",
        "tags": ["outvote"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [variable("task", "outvote_task_variants", "task"), variable("site", "outvote_edge_info", "site")]
        },
        "annotations": {"list": []},
        "panels": panels,
    }


def drawn(panel: Panel, number: int, place: dict[str, int]) -> Json:
    stat = panel.kind == "stat"
    defaults: Json = {"unit": panel.unit, "decimals": 0 if stat else None, "min": 0}
    if panel.mapped is not None:
        words = {str(value): {"index": value, "text": text} for value, text in enumerate(panel.mapped)}
        colours = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
        defaults["mappings"] = [{"type": "value", "options": words}]
        defaults["thresholds"] = {"mode": "absolute", "steps": colours}
    options: Json = (
        {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "textMode": "auto"}
        if stat
        else {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    )
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {k: v for k, v in defaults.items() if v is not None}, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend or "__auto"}
            for index, (query, legend) in enumerate(panel.lines)
        ],
    }


def variable(name: str, metric: str, label: str) -> Json:
    query = f"label_values({metric}, {label})"
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
