"""What people are told of decisions and rewards at sites, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from outvote.core.task import Task
from outvote.log.site_report import Notice, SiteReport
from outvote.presenters.durations import duration, span
from outvote.presenters.formats import count, listed

DAY: Final = 86_400.0
NOTICES: Final[dict[Notice, str]] = {
    "no_rewards": "no decision has got a reward, so each counts 0. Check that the application sends rewards, with the "
    "ticket of their decision, to the edge that decided.",
    "only_successes": "every reward so far is a success. That is right if the application reports successes only: "
    "decisions without a reward count 0. Otherwise check what it reports.",
    "late_rewards": "one reward in 20 or more comes after the reward window and is ignored. If they matter, start "
    "again with a longer window.",
    "refused_rewards": "one reward in 20 or more is for a decision that the edge does not know. Send each reward to "
    "the edge that decided; after a crash some are lost.",
    "no_memory": "some decisions are not counted, because too many wait for their rewards. Choose a shorter reward "
    "window, or run more edges.",
}


def notices(report: SiteReport) -> Iterable[str]:
    """The warnings of a report, a sentence or two each."""
    return (NOTICES[notice] for notice in report.notices)


def first_counts(task: Task, traffic: float | None = None) -> str:
    """When the first message of a site can come. `traffic` is in decisions a day over all sites."""
    window = span(task.reward_window)
    if task.entry.first_message is None:
        return f"A site sends its first message {window} (the reward window) after its first group of decisions."
    decisions = task.entry.first_message(task)
    said = f"A site sends its first message after about {count(decisions)} decisions and the reward window of {window}"
    if traffic is None:
        return f"{said}."
    a_day = traffic / task.players
    days = decisions / a_day + task.reward_window / DAY
    return f"{said}: with {count(a_day)} decisions a day at each site, that takes {duration(days)}."


def at_sites(reports: Mapping[str, SiteReport]) -> list[str]:
    """The warnings of all sites together, a sentence each, with the names of the sites."""
    by_notice: dict[Notice, list[str]] = {}
    for site, report in reports.items():
        for notice in dict.fromkeys(report.notices):
            by_notice.setdefault(notice, []).append(site)
    return [f"{listed(sites)}: {NOTICES[notice]}" for notice, sites in by_notice.items()]
