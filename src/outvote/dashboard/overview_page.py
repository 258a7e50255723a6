"""The page of all tasks: what runs, what needs somebody's eye, and where each stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from outvote.log.log_state import TaskState
from outvote.presenters.lookup import presenter
from outvote.server.admin.api import Admin
from outvote.server.admin.views import Status, TaskSummary

ORDER: Final[tuple[Status, ...]] = ("killed", "held", "running", "finished", "stopped")
"""What needs an eye first."""
MOST_PIPS: Final = 24
"""Arms that are drawn one by one."""


@dataclass(frozen=True)
class Row:
    """One task. `ahead` is the winner, or the arm with the highest mean where that is known."""

    shown: TaskSummary
    arms: int
    ahead: str | None
    mean: float | None
    pips: tuple[bool, ...]
    silence: str
    """Why nobody is ahead."""


def overview(admin: Admin, asked: Mapping[str, str]) -> dict[str, Any]:
    """All tasks, or those whose name holds what is asked for, and whose status is."""
    listed = admin.tasks()
    tasks = listed.tasks
    query, status = asked.get("q", "").strip(), asked.get("status", "")
    wanted = [
        shown
        for shown in tasks
        if query.lower() in shown.name.lower() and (status not in ORDER or shown.status == status)
    ]
    wanted.sort(key=lambda shown: (ORDER.index(shown.status), -shown.created))
    folded = admin.server.state.tasks
    return {
        "rows": [_row(shown, folded[shown.id]) for shown in wanted],
        "unreadable": listed.unreadable,
        "counts": Counter(shown.status for shown in tasks),
        "sites": admin.server.monitor.edge_counts(),
        "bits": sum(shown.bits.total for shown in tasks),
        "query": query,
        "status": status,
        "total": len(tasks),
    }


def _row(shown: TaskSummary, found: TaskState) -> Row:
    arms = len(found.task.arms)
    left = set(found.announced)
    pips = tuple(arm in left for arm in range(arms)) if arms <= MOST_PIPS else ()
    ahead, mean = shown.winner, None
    present = presenter(found.task.protocol)
    shares = {arm: share for arm in found.announced if (share := present.share(found, arm)) is not None}
    if shares:
        best = max(shares, key=lambda arm: (shares[arm], -arm))
        ahead, mean = found.task.arms[best], shares[best]
    return Row(shown, arms, ahead, mean, pips, present.silence)
