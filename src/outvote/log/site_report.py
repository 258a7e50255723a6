"""What a site tells of its rewards beside its messages, so that people can see what is wrong: orders of magnitude and
warnings, never a count. It goes with the question of catch-up. Pure.

One rule: nothing is told of fewer than 100 decisions.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from outvote.core.decisions import Decisions

Notice: TypeAlias = Literal["no_rewards", "only_successes", "late_rewards", "refused_rewards", "no_memory"]
Level: TypeAlias = Literal[100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]
LEAST: Final = 100
"""Decisions, or rewards, before anything is said of them."""
NOTABLE: Final = 20
"""One late or refused reward in so many is worth a warning."""


class SiteReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a site has seen of one task."""

    decisions: Level
    """It has made at least so many."""
    notices: Annotated[tuple[Notice, ...], msgspec.Meta(max_length=5)] = ()


def report_of(decisions: Decisions, *, window_passed: bool) -> SiteReport | None:
    """What a site tells; None while there is too little. `window_passed`: rewards of the first decisions had time."""
    seen = decisions.seen
    made, rewards, late = sum(seen.decisions) + decisions.uncounted, sum(seen.rewards), sum(seen.late)
    if made < LEAST:
        return None
    level = max(level for level in get_args(Level) if level <= made)
    refused = sum(seen.refused)
    conditions: dict[Notice, bool] = {
        "no_rewards": window_passed and not rewards,
        "only_successes": rewards >= LEAST and rewards == sum(seen.successes),
        "late_rewards": late > 0 and late * NOTABLE >= rewards + late,
        "refused_rewards": refused > 0 and refused * NOTABLE >= rewards + refused,
        "no_memory": decisions.uncounted > 0,
    }
    return SiteReport(level, tuple(notice for notice, holds in conditions.items() if holds))


def without_rewards(report: SiteReport) -> SiteReport:
    """A report that depends on no reward, for tasks with a privacy budget."""
    return SiteReport(report.decisions, tuple(notice for notice in report.notices if notice == "no_memory"))
