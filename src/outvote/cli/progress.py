"""A progress bar on standard error, where somebody is looking; silent elsewhere, and gone when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


@contextmanager
def trials_bar(title: str, trials: int) -> Iterator[Callable[[float], None]]:
    """Yields a function to call with the trials, or parts of one, done since it was last called."""
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
        task = bar.add_task(title, total=trials)
        yield lambda done: bar.advance(task, done)
