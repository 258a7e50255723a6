"""A task in sentences: where it stands, and what an eavesdropper has seen so far. Pure."""

from __future__ import annotations

import math

from msgspec import UNSET

from outvote.core.ledger import tally_bits_bound
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.dashboard.formats import count, listed, percent, plural, points
from outvote.log.log_state import TaskState
from outvote.server.admin.views import TaskDescription, most_bits

STATES = {
    "alive": "heard of lately",
    "awaited": "not heard yet by this server, which has not listened for long",
    "silent": "known, and not heard of for more than a minute",
    "missing": "named by a task, and never heard of",
}
"""What is meant by the state of an edge."""


STRANGE = 5.0
"""Standard deviations of disagreement between sites that somebody should hear of, though nothing is held back yet."""


def headline(shown: TaskDescription) -> str:
    """Where a task stands, in one or two sentences."""
    left = f"{len(shown.remaining)} of {plural(len(shown.arms), 'variant')} remain"
    if shown.status == "finished":
        if shown.winner is None:
            return f"Finished: {listed(list(shown.remaining))} remain, and nobody would drop one more."
        return f"{shown.winner} wins: {_promise(shown.task)}.{_margin(shown)}"
    if shown.status == "stopped":
        served = shown.task.fallback or shown.remaining[0]
        return f"Stopped, without a winner. Edges serve {served}; {left}."
    if shown.status == "held":
        return f"Held back: the sites do not see the same. {left}."
    if shown.messages.up == 0:
        return f"Waiting for the first message of an edge; {left}."
    if shown.protocol != "tally":
        return f"{left}. Votes do not tell which of them is ahead."
    if shown.leader is None:
        return f"{left}."
    leading = next(arm for arm in shown.arms if arm.arm == shown.leader)
    mean = None if leading.mean is UNSET else leading.mean
    return f"{shown.leader} leads with {percent(mean)}.{_margin(shown)} {left}."


def _promise(task: Task) -> str:
    """What is guaranteed of a winner (docs/guarantees.md, docs/tally.md)."""
    good = "it is the best" if task.epsilon == 0 else f"it is within {task.epsilon:g} of the best"
    if task.protocol != "tally" and task.quorum == "paper":
        return f"{good}, by the paper with probability {1 - task.delta:g}, though its proof has a gap"
    return f"{good}, with probability {1 - task.delta:g} at least"


def _margin(shown: TaskDescription) -> str:
    """By how much the leader is ahead of the next; that a winner is ahead is known already."""
    if not shown.lifts:
        return ""
    nearest = min(shown.lifts, key=lambda each: each.difference)
    low, high = nearest.difference_interval
    size = points(nearest.difference)
    if shown.winner is not None:
        return f" It seems better than {nearest.rival}, the next, by {size} points, and by {points(high)} at most."
    return f" It is ahead of {nearest.rival}, the next, by {size} points ({points(low)} to {points(high)})."


def disagreement(shown: TaskDescription) -> str | None:
    """That the sites do not see the same, while no decision is due; what is held back says so itself."""
    if shown.disagreement is None or shown.disagreement < STRANGE or shown.status != "running":
        return None
    held = "" if shown.task.tolerate else " A decision that was due now would be held back."
    return (
        f"The sites' results differ by {shown.disagreement:.1f} standard deviations more than chance allows: a variant "
        f"may not be worth the same at every site.{held}"
    )


def discounted(edge: str, messages: int) -> str:
    """That an edge was discounted, among what happened."""
    count_no_more = "counts no more" if messages == 1 else "count no more"
    return f"{edge} was discounted: {plural(messages, 'message')} of it {count_no_more}"


def eavesdropped(found: TaskState, sites: int) -> list[str]:
    """What who reads the whole network knows by now, sentence by sentence."""
    task, messages = found.task, found.ledger.up_messages
    if not messages:
        return ["Nothing but the description of the task: no edge has sent a message yet."]
    told = [
        f"{plural(messages, 'message')} of {plural(sites, 'site')}, {count(found.ledger.up_bits)} bits in all, with "
        "the name of the site and the time at which each was sent: a timer's, not that of an event."
    ]
    told += _of_tallies(found, found.server) if isinstance(found.server, TallyServer) else _of_votes(found)
    gone = [task.arms[arm] for each in found.eliminations for arm in each.arms]
    told.append(
        f"That {listed(gone)} {'is' if len(gone) == 1 else 'are'} out." if gone else "That no variant is out yet."
    )
    return told


def _of_tallies(found: TaskState, server: TallyServer) -> list[str]:
    task = server.task
    floor, budget = task.tally_sizes[0], task.privacy_budget
    said = [
        f"Each says how many of {floor} or more events with one variant succeeded"
        + ("." if budget is None else ", with noise."),
    ]
    if budget is not None:
        factor = math.exp(budget)
        said.append(
            f"What any one event earned has changed the probability of all this by a factor of {factor:.3g} at most."
        )
        return said
    unanimous = server.unanimous + found.discounted_unanimous  # what counts no more was seen all the same
    said.append(
        f"In {plural(unanimous, 'message')} of them none or all succeeded: so of those events it is known what each "
        "earned, though not whose they were or when they happened."
        if unanimous
        else "In none of them did all or none succeed: of no event is it known what it earned."
    )
    return said


def _of_votes(found: TaskState) -> list[str]:
    instances = len(found.task.instances)
    which = "" if instances == 1 else f" in one of {instances} instances"
    return [
        f"Each says that one site would drop one variant{which}. No count, no reward and no mean was sent: of no "
        "single event is it known what it earned."
    ]


def bits_bound(found: TaskState) -> tuple[int, str]:
    """What the bits are to be held against, and why."""
    bound = found.ledger.bound
    if bound is not None:
        which = "Lemma 2" if found.task.protocol == "dme" else "Theorem 4"
        most = most_bits(found.task)
        if most > bound:
            why = f"the most that the whole task can cost, which is more than the paper's bound of {count(bound)}"
            return most, f"{why} ({which})"
        return bound, f"the paper's bound for the whole task ({which})"
    assert isinstance(found.server, TallyServer)
    events = sum(found.server.trials(arm) for arm in range(len(found.task.arms))) + found.discounted_events
    return tally_bits_bound(found.task, events), f"the most that the {count(events)} events reported so far can cost"
