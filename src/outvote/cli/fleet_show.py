"""A fleet for people: the tables of `outvote fleet list`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def day(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def show(found: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(f"{found['name']}: engines {', '.join(found['engines'])}; server {found['server']}", soft_wrap=True)
    table = _table("edge", "state", "until", "HTTPS at")
    for each in [*found["edges"], found["servers"] | {"name": "(servers)"}]:
        more = f", and {each['older']} older" if each["older"] else ""
        table.add_row(Text(each["name"]), _state(each["state"], more), day(each["expires"]), Text(each["https"] or ""))
    console.print(table)
    table = _table("token", "role", "state", "until", "of")
    for each in found["tokens"]:
        end = day(each["expires"])
        table.add_row(Text(each["name"]), each["role"], _state(each["state"]), end, Text(each["of"]))
    console.print(table)
    table = _table("certificate", "state", "until")
    for each in found["certificates"]:
        table.add_row(Text(each["file"]), _state(each["state"]), day(each["expires"]))
    console.print(table)
    if not found["told"]:
        console.print(
            "the engine is not known to have been told of all revocations: run `outvote fleet push`", style="red"
        )


def _state(state: str, more: str = "") -> Text:
    colour = {"valid": "green", "revoked": "dim", "expired": "red"}.get(state, "yellow")
    return Text(state + more, style=colour)


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header)
    return table
