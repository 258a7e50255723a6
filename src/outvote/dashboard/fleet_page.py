"""The page of the fleet: every site, those in trouble first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outvote.dashboard.words import STATES
from outvote.server.admin.fleet import FleetSite, site_list
from outvote.server.liveness import EdgeState
from outvote.server.sync_server import SyncServer

TROUBLE: Final[tuple[EdgeState, ...]] = ("silent", "missing", "awaited", "alive")
PAGE: Final = 100
"""Sites in a table."""
MOST_DOTS: Final = 5_000
"""Sites in one state that are drawn as dots."""


def fleet(server: SyncServer, asked: Mapping[str, str]) -> dict[str, Any]:
    """`dots` are all sites by state, those in trouble first; `rows` are those of this page."""
    listed = site_list(server)
    query, state = asked.get("q", "").strip(), asked.get("state", "")
    wanted = [
        site
        for site in listed.sites
        if query.lower() in site.site.lower() and (state not in TROUBLE or site.state == state)
    ]
    wanted.sort(key=by_trouble)
    pages = max(-(-len(wanted) // PAGE), 1)
    number = asked.get("page", "1")
    page = min(max(int(number), 1), pages) if number.isascii() and number.isdigit() and len(number) < 9 else 1
    return {
        "fleet": listed,
        "dots": {state: "■" * min(listed.counts[state], MOST_DOTS) for state in TROUBLE},
        "rows": wanted[(page - 1) * PAGE : page * PAGE],
        "meanings": STATES,
        "query": query,
        "state": state,
        "page": page,
        "pages": pages,
        "found": len(wanted),
    }


def by_trouble(site: FleetSite) -> tuple[int, bool, str]:
    return TROUBLE.index(site.state), not site.several_lives, site.site
