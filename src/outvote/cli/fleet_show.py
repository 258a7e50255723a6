"""A fleet for people: the tables of `outvote fleet list`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from outvote.cli.tables import console, table


def day(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def show(found: dict[str, Any]) -> None:
    out = console()
    out.print(f"{found['name']}: engines {', '.join(found['engines'])}; server {found['server']}", soft_wrap=True)
    shown = table("edge", "state", "until", "HTTPS at")
    for each in [*found["edges"], found["servers"] | {"name": "(servers)"}]:
        more = f", and {each['older']} older" if each["older"] else ""
        shown.add_row(Text(each["name"]), _state(each["state"], more), day(each["expires"]), Text(each["https"] or ""))
    out.print(shown)
    shown = table("token", "role", "state", "until", "of")
    for each in found["tokens"]:
        end = day(each["expires"])
        shown.add_row(Text(each["name"]), each["role"], _state(each["state"]), end, Text(each["of"]))
    out.print(shown)
    shown = table("certificate", "state", "until")
    for each in found["certificates"]:
        shown.add_row(Text(each["file"]), _state(each["state"]), day(each["expires"]))
    out.print(shown)
    if not found["told"]:
        out.print("the engine is not known to have been told of all revocations: run `outvote fleet push`", style="red")


def _state(state: str, more: str = "") -> Text:
    colour = {"valid": "green", "revoked": "dim", "expired": "red"}.get(state, "yellow")
    return Text(state + more, style=colour)
