"""A progress bar on standard error, where somebody is looking; silent elsewhere, and gone when the work is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN = 0.1


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
        auto_refresh=False,  # no thread of its own: sweeps fork their workers while the bar is shown
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(title, total=trials)
        bar.refresh()
        shown = time.monotonic()

        def advance(done: float) -> None:
            nonlocal shown
            bar.advance(task, done)
            if time.monotonic() - shown > SECONDS_BETWEEN:
                bar.refresh()
                shown = time.monotonic()

        yield advance
