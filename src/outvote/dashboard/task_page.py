"""The page of one task: everything an experimenter decides from, put together for its template."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from outvote.dashboard import charts, words
from outvote.dashboard.fleet_page import by_trouble
from outvote.dashboard.forecast import Ask, forecast
from outvote.log.log_state import TaskState
from outvote.presenters import task_fields
from outvote.presenters.formats import count, plural
from outvote.presenters.lookup import presenter
from outvote.server.admin.api import Admin
from outvote.server.admin.fleet import FleetSite, site_list
from outvote.server.admin.views import TaskDescription, VariantView

MOST_SITES: Final = 12
"""Sites that are listed; the page of the fleet has all."""


def task_page(admin: Admin, found: TaskState, ask: Ask) -> dict[str, Any]:
    """What the template shows, by name."""
    shown = admin.describe_task(found)
    now = admin.server.clock()
    sites = _sites(admin, found)
    present = presenter(shown.protocol)
    bound, bound_is = present.bits_bound(found)
    discounted = frozenset(each.site for each in shown.discounted)
    lifts = sorted(shown.lifts, key=lambda each: each.difference)
    return {
        "shown": shown,
        "variants_part": present.variants_part,
        "headline": words.headline(shown),
        "disagreement": words.disagreement(shown),
        "variants": _ordered(shown),
        "lifts": lifts,
        "figures": {name: charts.FIGURES[name](shown) for name in present.figures},
        "timeline": charts.timeline(shown, now),
        "events": _events(shown),
        "forecast": forecast(shown, ask, now) if shown.status == "running" else None,
        "bound": bound,
        "bound_is": bound_is,
        "eavesdropped": words.eavesdropped(found, shown.site_count),
        "sites": sorted(sites, key=lambda site: (site.site not in discounted, by_trouble(site)))[:MOST_SITES],
        "site_counts": Counter(site.state for site in sites),
        "sites_total": len(sites),
        "decisions": {each.site: f"{count(each.decisions)}+" for each in shown.rewards},
        "discounted": discounted,
        "details": {**task_fields.details(shown.task), "Id": shown.id},
    }


def _ordered(shown: TaskDescription) -> list[VariantView]:
    """Those that are out last, the latest of them first; the others best first where that is known."""

    def place(arm: VariantView) -> tuple[float, float, int]:
        mean = arm.mean if isinstance(arm.mean, float) else 0.0
        if arm.eliminated is not None:
            return 1, -arm.eliminated.number, arm.index
        return 0, -mean, arm.index

    return sorted(shown.variants, key=place)


def _events(shown: TaskDescription) -> list[tuple[float, str]]:
    """What happened to the task, and when."""
    events = [(shown.created, "created")]
    for arm in shown.variants:
        if arm.eliminated is not None:
            after = f"after {plural(arm.eliminated.after_messages, 'message')}"
            events.append((arm.eliminated.at, f"{arm.variant} is out, {after}"))
    events += [(each.at, words.discounted(each.site, each.messages)) for each in shown.discounted]
    if shown.stopped_at is not None:
        events.append((shown.stopped_at, "stopped"))
    events.sort(key=lambda event: event[0])
    if shown.winner is not None:
        last = max(arm.eliminated.at for arm in shown.variants if arm.eliminated is not None)
        place = max(number for number, (at, _) in enumerate(events) if at == last)
        events.insert(place + 1, (last, f"{shown.winner} wins"))
    return events


def _sites(admin: Admin, found: TaskState) -> list[FleetSite]:
    """Those whom the task names; else all of the fleet."""
    listed = site_list(admin.server).sites
    names = set(found.task.player_names)
    return [site for site in listed if site.site in names] if names else list(listed)
