"""Who does the work: this process, processes beside it, or a Dask cluster; all behind `concurrent.futures`."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from outvote.core.errors import InvalidSettings
from outvote.processes import die_with

DASK_PATIENCE = 5.0
"""Seconds to wait for a scheduler before saying that nobody answers."""


def cores() -> int:
    """How many processes can work at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Forks:
    """So many processes, forked anew for each sweep: they know all that this one knows by then."""

    workers: int


@contextmanager
def open_executor(*, workers: int | None = None, dask: str | None = None) -> Iterator[Executor | Forks | None]:
    """What runs a study: `workers` processes (all cores), or the Dask cluster at an address.

    None stands for this process alone.
    """
    if dask is not None:
        with _dask(dask) as executor:
            yield executor
        return
    if workers is None:
        workers = cores()
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidSettings(f"must be a whole number of at least 1, got {workers!r}", field="workers", code="range")
    yield None if workers == 1 else Forks(workers)


_inherited: Any = None


def inherited() -> Any:
    """What `fork` was told to leave to this worker."""
    return _inherited


@contextmanager
def fork(workers: int, inherit: Any = None) -> Iterator[Executor]:
    """Processes that start with what this one has loaded by then; what they inherit need not be pickled.

    Left by an exception, it stops them where they are.
    """
    context = multiprocessing.get_context("fork")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(os.getpid(), inherit)
    )
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    executor.shutdown()


def _start_worker(parent: int, inherit: Any) -> None:
    global _inherited
    _inherited = inherit
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, who stops its workers
    die_with(parent)()


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    from distributed import Client

    try:
        client = Client(address, timeout=DASK_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidSettings(
            f"must be the address of a Dask scheduler, and none answers at {address!r}: {reason}", field="dask"
        ) from None
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close()
