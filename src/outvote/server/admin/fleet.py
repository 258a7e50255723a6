"""The API's answers about the fleet: every site, and whether it is alive."""

from __future__ import annotations

from typing import get_args

import msgspec

from outvote.server.liveness import EdgeState
from outvote.server.sync_server import SyncServer


class FleetSite(msgspec.Struct, frozen=True):
    """One site. `last_sign` is its last sign of life at this server, `last_message` when its last message was stored,
    both in seconds since 1970. `tasks` counts the tasks with its messages. `several_lives`: its store was lost, copied
    or restored, or two processes use one name. `discounted` is the number of its messages that no longer count."""

    site: str
    state: EdgeState
    last_sign: float | None
    last_message: float | None
    tasks: int
    messages: int
    bits: int
    several_lives: bool
    discounted: int

    @property
    def last(self) -> float | None:
        """The later of `last_sign` and `last_message`."""
        return max((at for at in (self.last_sign, self.last_message) if at is not None), default=None)


class SiteList(msgspec.Struct, frozen=True):
    """All sites. A site is silent `silent_after` seconds after its last sign of life. This server has listened since
    `since`, and awaits sites that it has not heard yet for as long."""

    sites: tuple[FleetSite, ...]
    counts: dict[EdgeState, int]
    silent_after: float
    since: float


def site_list(server: SyncServer) -> SiteList:
    sites = tuple(
        FleetSite(
            site=name,
            state=state,
            last_sign=server.monitor.liveness.last.get(name),
            last_message=history.last_message or None,
            tasks=len(history.tasks),
            messages=history.messages,
            bits=history.bits,
            several_lives=len(history.incarnations) > 1,
            discounted=history.discounted,
        )
        for name, state, history in server.monitor.edges()
    )
    counts: dict[EdgeState, int] = {state: sum(site.state == state for site in sites) for state in get_args(EdgeState)}
    return SiteList(sites, counts, server.monitor.liveness.silent_after, server.monitor.liveness.started)
