"""The verdict for people who are no engineers: what was looked at, what was found, and what can be learnt."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.presenters.durations import span
from outvote.privacy.audit.families import family
from outvote.privacy.audit.judge import Verdict
from outvote.privacy.audit.markers import FORMS
from outvote.privacy.audit.times import FALSE_ALARM, longest_delay


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what was looked at in a line each, and whether all was well."""

    title: str
    lines: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    """Findings that belong here."""


def headline(verdict: Verdict) -> str:
    if verdict.passed:
        return "PASSED: nothing was found that should not be there."
    many = len(verdict.findings)
    return f"FAILED: {many} finding{'s' if many > 1 else ''}. Something left a site, or was kept, that should not."


def sections(verdict: Verdict) -> list[Section]:
    seen, accounts, times = verdict.seen, verdict.accounts, verdict.times
    task, people, searched = seen.setting.task, seen.people, seen.searched.amounts
    budget = "" if task.privacy_budget is None else f" with a privacy budget of {task.privacy_budget:g}"
    return [
        Section(
            "What was done",
            (
                f"A fleet of {task.players} sites, a server and an engine was started on this machine, as real "
                f"processes, with a task of protocol {task.protocol}{budget}.",
                f"Made-up users sent {people.requests:,} requests: {people.count:,} events, and {people.refused} "
                f"requests that were wrong on purpose. {seen.markers.made:,} secret markers were in their "
                "headers, cookies, addresses, bodies and user keys.",
                f"The task ran to its end: “{seen.shown['winner']}” is left. Between the sites and the engine stood "
                "a recorder that kept every byte, as somebody could who reads the network.",
            ),
        ),
        Section(
            "Is anything of a user's request kept or sent?",
            (
                *(
                    f"{kind}: {amount['things']:,} searched, {amount['bytes']:,} bytes."
                    for kind, amount in sorted(searched.items())
                ),
                f"Markers were looked for {', '.join(FORMS)}.",
            ),
            ("marker",),
        ),
        Section(
            "Is everything explained that the sites sent?",
            (
                "; ".join(f"{count:,} {kind}" for kind, count in sorted(verdict.frames.items())) + ".",
                f"Each word of each was compared with a closed list of what a site may say. What nobody can check by "
                f"looking: {verdict.free_bits:,} random bits, {verdict.free_bits // 16:,} times 16, with which the "
                "library names the place of an answer.",
            ),
            ("frame", "account"),
        ),
        Section(
            "Is every bit of the messages accounted for?",
            (
                f"{accounts.messages:,} messages, {accounts.payload_bytes:,} bytes = {8 * accounts.payload_bytes:,} "
                f"bits: {accounts.bits:,} of message, as the server's ledger has it too, and {accounts.marks:,} that "
                "mark the end of a byte.",
                f"{accounts.compared:,} messages were computed again from the events that the audit knows"
                + (": their number." if task.privacy_budget is not None else ", and are the same."),
            ),
            ("payload",),
        ),
        Section(
            "Does a message speak of enough events?",
            (_floor(verdict),),
            ("floor",),
        ),
        Section("Do the times of messages tell the times of events?", _times(verdict), ("time",)),
        Section(
            "Is every field known that was stored or logged?",
            (
                f"{verdict.fields['columns']} columns and {verdict.fields['values_in_stores']:,} values in the stores "
                f"of the sites, and {verdict.fields['log_lines']:,} lines of logs, against the tables of privacy.md.",
            ),
            ("field", "log"),
        ),
        Section("What somebody learns who reads the network", tuple(_learnt(verdict))),
        Section(
            "What this does not show",
            (
                "It is one run of this version, with made-up users. It cannot show that nobody who changes the program "
                "makes it talk. What can be inferred from honest messages is in adversary.md.",
                f"By chance alone one audit in {1 / (FALSE_ALARM * max(len(times.p_values), 1)):,.0f} at most finds "
                "fault with times that are as they should be.",
            ),
        ),
    ]


def _floor(verdict: Verdict) -> str:
    task, least = verdict.seen.setting.task, verdict.accounts.least_events
    if least is None:
        return "No message was sent."
    return family(task.protocol).floor(task, least)


def _times(verdict: Verdict) -> tuple[str, ...]:
    times, task = verdict.times, verdict.seen.setting.task
    if not times.delays:
        return ("No message could be compared with the events that completed it.",)
    mean = sum(times.delays) / len(times.delays)
    window, delay = span(task.reward_window), longest_delay(task)
    return (
        f"{len(times.delays):,} messages left {min(times.delays):.2f} to {max(times.delays):.2f} s after their last "
        f"event, on average {mean:.2f} s. The window of {window}, a random delay of up to {delay:g} s and the edge's "
        f"irregular ticks should make it {times.expected_mean or 0:.2f} s.",
        "None may be sooner, or more regular, than that: "
        + "; ".join(f"{name}? p = {value:.3f}" for name, value in times.p_values.items())
        + f" (a finding at {FALSE_ALARM:g} or less).",
    )


def _learnt(verdict: Verdict) -> list[str]:
    task, accounts = verdict.seen.setting.task, verdict.accounts
    told = [f"The names of the {task.players} sites and of the task, the number of each message, and its time."]
    told += family(task.protocol).learnt(task, accounts)
    least, most = task.reward_window, task.reward_window + longest_delay(task)
    told.append(f"That the last event of a group was {least:g} to about {most:g} s before its message.")
    told.append("About how many events a site has had (100, 1,000, …), and warnings about its rewards.")
    told.append("No event, no user, nothing of a request." if verdict.passed else "And what was found above.")
    return told


def in_text(verdict: Verdict) -> str:
    """For the screen."""
    lines = [headline(verdict), ""]
    for section in sections(verdict):
        mine = [each for each in verdict.findings if each.kind in section.kinds]
        mark = "" if not section.kinds else "  ✗" if mine else "  ✓"
        lines += [section.title + mark, *(f"  {line}" for line in section.lines)]
        lines += [f"  ✗ {each.where}: {each.what}" for each in mine]
        lines.append("")
    task = verdict.seen.setting.task
    lines.append(f"{task.protocol}, seed {verdict.seen.setting.seed}, {verdict.seen.seconds:.1f} s")
    return "\n".join(lines)
