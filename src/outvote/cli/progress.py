"""A progress bar on standard error, where somebody is looking; silent elsewhere, and gone when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


@contextmanager
def draws_bar(title: str, draws: int) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the draws made since it was last called."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(title, total=draws)
        yield lambda made: bar.advance(task, made)
