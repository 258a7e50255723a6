"""A plan in words: what is guaranteed, and what an eavesdropper sees."""

from __future__ import annotations

import math

from outvote.core.task import Task
from outvote.core.votes.schedule import Schedule
from outvote.planner.estimate import Estimate
from outvote.theory import accurate_fleet_error, answer_within, error_when_separated, inaccuracy_limit


def error_bound(task: Task) -> float:
    """What is proved about the probability of a wrong answer (docs/guarantees.md, docs/tally.md)."""
    if task.protocol == "tally":
        return task.delta
    each = (accurate_fleet_error(_inaccuracy(task, schedule), task.players) for schedule in task.schedules())
    return min(math.fsum(each), 1.0)


def _inaccuracy(task: Task, schedule: Schedule) -> float:
    return inaccuracy_limit(len(task.arms), schedule.log_eta)


def guarantee(task: Task, estimate: Estimate | None) -> str:
    """What is promised, and what was seen; and of how many liars it holds."""
    promised = _promised(task, estimate)
    if not task.tolerate:
        return promised
    return f"{promised}; it holds even if {task.tolerate} of {task.players} sites lie"


def _promised(task: Task, estimate: Estimate | None) -> str:
    seen = "" if estimate is None else f"; {_seen(estimate)}"
    if task.protocol == "tally":
        what = "the best arm" if task.epsilon == 0 else f"an arm within {task.epsilon:g} of the best"
        return f"{what} with probability at least {1 - task.delta:g}, whenever you look; proved{seen}"
    what = f"an arm within {task.epsilon:g} of the best"
    proved = error_bound(task)
    if task.quorum == "certified":
        nearer = f"(by the proof even within {answer_within(task.schedules()[0]):.3g})"
        return f"{what} {nearer} with probability at least {1 - task.delta:g}; proved{seen}"
    separated = sum(
        error_when_separated(_inaccuracy(task, schedule), task.players, active)
        for schedule, active in zip(task.schedules(), task.instances, strict=True)
    )
    return (
        f"{what}: the paper says with probability {1 - task.delta:g}, its proof has a gap; proved is "
        f"{_surely(proved)}, and {_surely(min(separated, 1.0))} if no other arm is within "
        f"{task.epsilon / 4:.3g} of the best{seen}"
    )


def adversary_sees(task: Task) -> str:
    """What crosses the network, to who can read it."""
    if task.protocol != "tally":
        times = "" if task.protocol == "dme" else f", in each of {len(task.instances)} instances"
        return (
            f"which variants each site would drop, at most {len(task.arms) - 1} names{times}, and when; no count, no "
            "reward; and which variants are out"
        )
    floor = task.floor
    if task.privacy_budget is not None:
        return (
            f"from each site, how many of {floor} or more events with a variant succeeded, with noise: what one event "
            f"earned changes the probability of all that is seen by a factor of {math.exp(task.privacy_budget):.3g} at "
            "most; and which variants are out"
        )
    return (
        f"from each site, how many of {floor} or more events with a variant succeeded; where none or all did, what "
        "each of them earned; and which variants are out"
    )


def _seen(estimate: Estimate) -> str:
    """What the simulation of this plan says: a share, or if it never happened its upper limit (95 %)."""
    if estimate.wrong:
        return f"simulated: wrong in {estimate.wrong} of {estimate.trials:,} trials"
    return f"simulated: never wrong in {estimate.trials:,} trials (so below {1 - 0.05 ** (1 / estimate.trials):.2g})"


def _surely(error: float) -> str:
    """The probability of the contrary; close to 1 what matters is how close."""
    return f"1 − {error:.1g}" if 0 < error < 0.001 else f"{1 - error:.3g}"
