"""Tasks and sites for people: the tables of `outvote task`. Times are told in the operator's own zone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from outvote.cli.tables import table
from outvote.presenters.durations import since
from outvote.presenters.formats import plural

STATES: Final = {"alive": "green", "awaited": "dim", "silent": "yellow", "missing": "red"}
"""How the states of sites look."""


# ---- times


def when(at: float, now: float) -> str:
    """A moment: local time, and how long ago."""
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S %Z} ({since(now - at)})"


# ---- tasks


def tasks(found: Mapping[str, Any]) -> RenderableType:
    """All tasks, and those that cannot be read."""
    unreadable = [Text(f"{each['id']} cannot be read: {each['why']}") for each in found["unreadable"]]
    if not found["tasks"]:
        return Group("no tasks; outvote task create makes one", *unreadable)
    numbers = ("sites", "messages up", "bits", "bound")
    shown = table("name", "protocol", "status", "left", "winner", *numbers, right=("left", *numbers))
    for each in found["tasks"]:
        bound = each["bits"]["bound"]
        shown.add_row(
            each["name"],
            each["protocol"],
            each["status"],
            str(len(each["remaining"])),
            Text(each["winner"] or ""),
            str(each["site_count"]),
            f"{each['messages']['up']:,}",
            f"{each['bits']['total']:,}",
            "none" if bound is None else f"{bound:,}",
        )
    return Group(shown, *unreadable)


def _count(sites: int | list[str]) -> str:
    return plural(len(sites) if isinstance(sites, list) else sites, "site")


def task(found: Mapping[str, Any]) -> RenderableType:
    """One task, and what happened to it."""
    return Group(picture(found), story(found))


def picture(found: Mapping[str, Any]) -> RenderableType:
    """One task: what it is, its variants, what it has cost."""
    task, bits, messages = found["task"], found["bits"], found["messages"]
    winner = "" if found["winner"] is None else f": {found['winner']} wins"
    head = Text.assemble(
        (found["name"], "bold"),
        f" ({found['id']}), {found['protocol']} on {len(found['variants'])} variants, {_count(task['sites'])}, "
        f"ε {task['epsilon']:g}, δ {task['delta']:g}: ",
        (found["status"] + winner, "bold"),
    )
    lines: list[RenderableType] = [head]
    if found["hold_reason"]:
        lines.append(Text(f"held back: {found['hold_reason']}", style="yellow"))
    lines.append(_variants(found))
    bound = "no bound" if bits["bound"] is None else f"bound {bits['bound']:,}"
    cost = f"bits {bits['up']:,} + {bits['down']:,} = {bits['total']:,}, {bound}"
    refused = f"refused {found['refused']:,}"
    lines.append(Text(f"messages {messages['up']:,} up, {messages['down']:,} down; {cost}; {refused}"))
    sites = ", ".join(
        f"{each['site']} {each['last_sequence']}"
        + (f" ({len(each['incarnations'])} lives: a lost store, or two of one name)" if each["several_lives"] else "")
        for each in found["sites"]
    )
    lines.append(Text(f"sites and their last message: {sites or 'none yet'}"))
    if found["first_counts"]:
        lines.append(Text(found["first_counts"]))
    made = ", ".join(f"{each['site']} {each['decisions']:,} or more" for each in found["rewards"])
    lines.append(Text(f"decisions at sites: {made or 'none has told of 100 yet'}"))
    lines += [Text(warning, style="yellow") for warning in found["warnings"]]
    if found["discounted"]:
        told = ", ".join(f"{each['site']} ({each['messages']:,} messages)" for each in found["discounted"])
        lines.append(Text(f"discounted, what these sent before counts no more: {told}", style="yellow"))
    return Group(*lines)


def _variants(found: Mapping[str, Any]) -> Table:
    """Each variant with what is known of it: counts, votes, or neither."""
    known = found["variants"][0]
    counts = ("successes", "of", "mean between") if "trials" in known else ("votes",) if "votes" in known else ()
    variants = table("variant", *counts, "state", right=counts)
    for each in found["variants"]:
        numbers = []
        if "trials" in each:
            low, high = each["interval"]
            numbers = [f"{each['successes']:,}", f"{each['trials']:,}", f"{low:.3f} and {high:.3f}"]
        elif "votes" in each:
            needed = (f"{votes} of {need}" for votes, need in zip(each["votes"], found["votes_needed"], strict=True))
            numbers = [", ".join(needed)]
        gone = each["eliminated"]
        state = "remains"
        if gone is not None:
            state = f"out after {plural(gone['after_messages'], 'message')}, record {gone['record']:,}"
        variants.add_row(Text(each["variant"]), *numbers, Text(state, style="dim" if gone else "green"))
    return variants


def story(found: Mapping[str, Any]) -> RenderableType:
    """When what happened to a task, and what is expected of it."""
    now = time.time()
    moments = [(found["created"], "created")]
    eliminations: dict[tuple[int, float], list[str]] = {}
    for each in found["variants"]:
        gone = each["eliminated"]
        if gone is not None:
            eliminations.setdefault((gone["number"], gone["at"]), []).append(each["variant"])
    moments += [(at, f"{', '.join(names)} out") for (_, at), names in sorted(eliminations.items())]
    moments += [(each["at"], f"{each['site']} discounted") for each in found["discounted"]]
    if found["stopped_at"] is not None:
        moments.append((found["stopped_at"], "stopped"))
    moments.sort(key=lambda each: each[0])  # a finished task may be stopped; what was stopped loses no arm
    lines = [Text(f"{when(at, now)}: {what}") for at, what in moments]
    if found["expectation"] is not None:
        lines.append(Text(f"expected: {expected(found['expectation'])}"))
    return Group(*lines)


def expected(expectation: Mapping[str, float | None]) -> str:
    """What operators expect, in words."""
    named = {"traffic": "{:,.10g} events a day", "baseline": "baseline {:g}", "difference": "difference {:g}"}
    said = {name: expectation.get(name) for name in named}
    return ", ".join(named[name].format(value) for name, value in said.items() if value is not None) or "nothing"


# ---- sites


def sites(found: Mapping[str, Any]) -> RenderableType:
    """All sites, and how many there are in which state."""
    if not found["sites"]:
        return Text("no sites; outvote edge starts one")
    now = time.time()
    numbers = ("last sign", "messages", "bits")
    shown = table("site", "state", *numbers, "lives", right=numbers)
    for each in found["sites"]:
        heard = [at for at in (each["last_sign"], each["last_message"]) if at is not None]
        shown.add_row(
            Text(each["site"]),
            Text(each["state"], style=STATES.get(each["state"], "")),
            since(now - max(heard)) if heard else "never",
            f"{each['messages']:,}",
            f"{each['bits']:,}",
            "several" if each["several_lives"] else "one" if each["messages"] else "",
        )
    total = len(found["sites"])
    counts = ", ".join(f"{count:,} {state}" for state, count in found["counts"].items() if count)
    return Group(shown, Text(f"{plural(total, 'site')}: {counts}", style="dim"))
