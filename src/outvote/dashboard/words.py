"""A task in sentences: where it stands, and what an eavesdropper has seen so far. Pure."""

from __future__ import annotations

from msgspec import UNSET

from outvote.log.log_state import TaskState
from outvote.presenters.formats import count, listed, percent, plural, points
from outvote.presenters.lookup import presenter
from outvote.server.admin.views import TaskDescription

STATES = {
    "alive": "heard of lately",
    "awaited": "not heard yet by this server, which has not listened for long",
    "silent": "known, and not heard of for more than a minute",
    "missing": "named by a task, and never heard of",
}
"""What is meant by the state of a site."""
STRANGE = 5.0
"""Standard deviations of disagreement between sites that somebody should hear of, though nothing is held back yet."""


def headline(shown: TaskDescription) -> str:
    """Where a task stands, in one or two sentences."""
    left = f"{len(shown.remaining)} of {plural(len(shown.variants), 'variant')} remain"
    if shown.status == "finished":
        if shown.winner is None:
            return f"Finished: {listed(list(shown.remaining))} remain, and nobody would drop one more."
        return f"{shown.winner} wins: {presenter(shown.protocol).promise(shown.task)}.{_margin(shown)}"
    if shown.status == "stopped":
        served = shown.task.fallback or shown.remaining[0]
        return f"Stopped, without a winner. Sites serve {served}; {left}."
    if shown.status == "killed":
        served = shown.task.fallback or shown.remaining[0]
        return f"Killed: sites serve {served} and learn nothing, until the task is revived. {left}."
    if shown.status == "held":
        return f"Held back: the sites do not see the same. {left}."
    if shown.messages.up == 0:
        return f"No site has sent anything yet; {left}. {shown.first_counts}"
    if shown.leader is None:
        silence = presenter(shown.protocol).silence
        return f"{left}. {silence.capitalize()} which of them is ahead." if silence else f"{left}."
    leading = next(each for each in shown.variants if each.variant == shown.leader)
    mean = None if leading.mean is UNSET else leading.mean
    if mean == 0:
        return f"No success was reported yet; {left}."
    return f"{shown.leader} leads with {percent(mean)}.{_margin(shown)} {left}."


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


def discounted(site: str, messages: int) -> str:
    """That a site was discounted, among what happened."""
    count_no_more = "counts no more" if messages == 1 else "count no more"
    return f"{site} was discounted: {plural(messages, 'message')} of it {count_no_more}"


def eavesdropped(found: TaskState, sites: int) -> list[str]:
    """What who reads the whole network knows by now, sentence by sentence."""
    task, messages = found.task, found.ledger.up_messages
    if not messages:
        return ["Nothing but the description of the task: no site has sent a message yet."]
    told = [
        f"{plural(messages, 'message')} of {plural(sites, 'site')}, {count(found.ledger.up_bits)} bits in all, with "
        "the name of the site and the time at which each was sent: a timer's, not that of an event."
    ]
    told += presenter(task.protocol).eavesdropped(found)
    gone = [task.arms[arm] for each in found.eliminations for arm in each.arms]
    told.append(
        f"That {listed(gone)} {'is' if len(gone) == 1 else 'are'} out." if gone else "That no variant is out yet."
    )
    return told
