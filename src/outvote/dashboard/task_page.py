"""The page of one task: everything an experimenter decides from, put together for its template."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from outvote.dashboard import charts, words
from outvote.dashboard.fleet_page import by_trouble
from outvote.dashboard.forecast import Ask, forecast
from outvote.log.log_state import TaskState
from outvote.server.admin.api import Admin
from outvote.server.admin.fleet import FleetEdge, edge_list
from outvote.server.admin.views import ArmView, LiftView, TaskDescription

MOST_EDGES: Final = 12
"""Edges that are listed; the page of the fleet has all."""


@dataclass(frozen=True)
class Event:
    """Something that happened to the task."""

    at: float
    what: str


def task_page(admin: Admin, found: TaskState, ask: Ask) -> dict[str, Any]:
    """What the template shows, by name."""
    shown = admin.describe_task(found)
    now = admin.server.clock()
    edges = _edges(admin, found)
    bound, bound_is = words.bits_bound(found)
    discounted = frozenset(each.edge for each in shown.discounted)
    lifts = sorted(shown.lifts, key=lambda each: each.difference)
    return {
        "shown": shown,
        "tally": shown.protocol == "tally",
        "headline": words.headline(shown),
        "disagreement": words.disagreement(shown),
        "arms": _ordered(shown),
        "lifts": lifts,
        "figures": _figures(shown, lifts, now),
        "events": _events(shown),
        "forecast": forecast(shown, ask, now) if shown.status == "running" else None,
        "bound": bound,
        "bound_is": bound_is,
        "eavesdropped": words.eavesdropped(found, shown.edge_count),
        "edges": sorted(edges, key=lambda edge: (edge.edge not in discounted, by_trouble(edge)))[:MOST_EDGES],
        "edge_counts": Counter(edge.state for edge in edges),
        "edges_total": len(edges),
        "discounted": discounted,
        "details": _details(shown),
    }


def _ordered(shown: TaskDescription) -> list[ArmView]:
    """Those that are out last, the latest of them first; the others of Tally the best first, of votes as they are."""

    def place(arm: ArmView) -> tuple[float, float, int]:
        mean = arm.mean if isinstance(arm.mean, float) else 0.0
        if arm.eliminated is not None:
            return 1, -arm.eliminated.number, arm.index
        return 0, -mean, arm.index

    return sorted(shown.arms, key=place)


def _figures(shown: TaskDescription, lifts: list[LiftView], now: float) -> dict[str, str]:
    """By name, as the page's script reads them."""
    figures: dict[str, Any] = {}
    if shown.protocol != "tally":
        figures["votes"] = charts.votes(shown)
    elif shown.messages.up:
        figures["means"] = charts.means(shown)
        if lifts:
            figures["lifts"] = charts.lifts(shown, lifts)
    figures["timeline"] = charts.timeline(shown, now)
    return {name: json.dumps(figure, separators=(",", ":")) for name, figure in figures.items()}


def _events(shown: TaskDescription) -> list[Event]:
    events = [Event(shown.created, "created")]
    for arm in shown.arms:
        if arm.eliminated is not None:
            after = f"after {arm.eliminated.after_messages:,} messages"
            events.append(Event(arm.eliminated.at, f"{arm.arm} is out, {after}"))
    events += [Event(each.at, words.discounted(each.edge, each.messages)) for each in shown.discounted]
    if shown.stopped_at is not None:
        events.append(Event(shown.stopped_at, "stopped"))
    events.sort(key=lambda event: event.at)
    if shown.winner is not None:
        last = max(arm.eliminated.at for arm in shown.arms if arm.eliminated is not None)
        place = max(number for number, event in enumerate(events) if event.at == last)
        events.insert(place + 1, Event(last, f"{shown.winner} wins"))
    return events


def _edges(admin: Admin, found: TaskState) -> list[FleetEdge]:
    """Those whom the task names; else all of the fleet."""
    listed = edge_list(admin.server).edges
    names = set(found.task.player_names)
    return [edge for edge in listed if edge.edge in names] if names else list(listed)


def _details(shown: TaskDescription) -> dict[str, str]:
    """What the task was created with, in the order of its record; what is not set is not shown."""
    task = shown.task
    told: dict[str, object] = {
        "Protocol": task.protocol if task.protocol == "tally" else f"{task.protocol}, {task.quorum} quorum",
        "Sites": f"{task.players:,}",
        "δ, error allowed": f"{task.delta:g}",
        "ε, good enough": f"{task.epsilon:g}" + (" (the very best)" if task.epsilon == 0 else ""),
        "Active players": f"{task.active_players:g}" if task.protocol == "dme" else None,
        "Instances": ", ".join(f"{each:g}" for each in task.instances) if task.protocol == "edme" else None,
        "Floor": None if task.floor is None else f"{task.floor} events",
        "Privacy budget": None if task.privacy_budget is None else f"{task.privacy_budget:g}",
        "Sites that may lie": task.tolerate or None,
        "Reward window": None if task.reward_window is None else f"{task.reward_window:g} s",
        "Fallback": task.fallback,
        "Code of arms": task.code,
        "Id": shown.id,
    }
    return {key: str(value) for key, value in told.items() if value is not None}
