"""The demo for people: a picture that moves while it runs, and the story at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from outvote.cli import tables
from outvote.demo.story import Story
from outvote.presenters.lookup import presenter

WIDTH = 30
"""Characters of a bar."""


@contextmanager
def live(*, quiet: bool) -> Iterator[Callable[[Story], None]]:
    """Yields what draws the story: in place on a terminal; elsewhere two lines say that it has begun, and where."""
    console = Console(stderr=quiet, highlight=False)
    if not console.is_terminal:
        said: list[str] = []

        def once(story: Story) -> None:
            for line in (_beginning(story), _where(story)):
                if not quiet and line and line not in said:
                    console.print(line)
                    said.append(line)

        yield once
        return
    with Live(console=console, refresh_per_second=8, transient=True) as screen:
        yield lambda story: screen.update(picture(story))


def _beginning(story: Story) -> str:
    task = story.setting.task
    return f"starting an engine, a server and {task.players} edges; {len(task.arms)} variants, {task.protocol}…"


def _where(story: Story) -> str:
    return f"watch it in a browser: {story.page}" if story.page else ""


def picture(story: Story) -> RenderableType:
    """The fleet at this moment."""
    if not story.shown:
        return Text(f"{_beginning(story)}\n{_where(story)}")
    sites = Text("sites   ")
    for name, there in story.edges.items():
        sites.append("● " if there else "✗ ", style="green" if there else "bold red")
        sites.append(f"{name}  ", style="" if there else "red")
    counts = (
        f"{story.events:,} events; {story.messages['up']:,} messages up, {story.messages['down']:,} down; "
        f"{story.bits['total']:,} bits; {story.wire_bytes:,} bytes on the wire"
    )
    lines: list[RenderableType] = [Text(counts, style="bold"), _variants(story.shown), sites, Text(_where(story))]
    if story.winner is not None:
        lines.append(Text(f"✓ {story.winner} wins", style="bold green"))
    return Group(*lines)


def _variants(shown: dict[str, Any]) -> Table:
    """Each variant with a bar: how often it succeeded in what was pooled, or how many votes it has of those needed."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    has_votes = bool(shown["votes_needed"])
    for header in ("variant", "votes to drop it" if has_votes else "pooled success rate", "", ""):
        table.add_column(header, no_wrap=True)
    for each in shown["variants"]:
        if has_votes:
            share, votes, needed = max(
                (votes / need, votes, need) for votes, need in zip(each["votes"], shown["votes_needed"], strict=True)
            )
            said = f"{votes} of {needed}"
        else:
            share = each["successes"] / max(each["trials"], 1)
            said = f"{each['successes']:,} of {each['trials']:,}"
        gone = each["eliminated"] is not None
        full = round(WIDTH * min(max(share, 0), 1))
        bar = Text("█" * full + "░" * (WIDTH - full), style="dim" if gone else "magenta" if has_votes else "cyan")
        table.add_row(
            Text(each["variant"], style="dim strike" if gone else "bold"),
            bar,
            Text(said, style="dim" if gone else ""),
            Text("✗ out", style="red") if gone else Text(""),
        )
    return table


def show(story: Story) -> None:
    """The story."""
    console = tables.console()
    task, bits, messages = story.setting.task, story.bits, story.messages
    present = presenter(task.protocol)
    console.print(
        f"[bold]{task.players} sites, {len(task.arms)} variants.[/bold] Each site is a process that serves its own "
        f"users over HTTP and keeps what they do to itself.\nWhen it has learnt enough it sends a few bits to the "
        f"server: {present.says}.\n"
    )
    table = tables.table("after events", "what the fleet decided", "left", right=("after events",))
    left = len(task.arms)
    for each in story.eliminations:
        left -= 1
        table.add_row(f"{each.after_events:,}", f"[red]✗[/red] {each.variant} is out", "■" * left)
    table.add_row(f"{story.events:,}", f"[green]✓ {story.winner} wins[/green]", "")
    console.print(table)
    truth = ", ".join(
        f"[bold]{arm} {mean:.0%}[/bold]" if arm == story.setting.best else f"{arm} {mean:.0%}"
        for arm, mean in zip(task.arms, story.setting.means, strict=True)
    )
    console.print(f"\nWhat nobody knew: the true success rates are {truth}.")
    console.print(
        f"What crossed the network: {messages['up']:,} {present.messages} up and {messages['down']:,} notices down, "
        f"{bits['up']:,} + {bits['down']:,} = {bits['total']:,} bits; {present.bound_is} {story.bound:,}.\n"
        f"On the wire, with all that TCP, NATS and the sites' signs of life add: {story.wire_bytes:,} bytes."
    )
    console.print(f"All that ever left a site: {present.left_a_site(task)}")
    console.print(f"What stayed at the sites: all {story.events:,} events.")
    console.print(
        f"[dim]{task.protocol}, seed {story.setting.seed}: decided in {story.seconds:.1f} s by "
        f"{task.players + 2} processes[/dim]"
    )
