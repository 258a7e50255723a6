"""Who does the work: this process, processes beside it, or a Dask cluster; all behind `concurrent.futures`."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

from outvote.core.errors import InvalidTask
from outvote.processes import die_with

DASK_PATIENCE = 5.0
"""Seconds to wait for a scheduler before saying that nobody answers."""


def cores() -> int:
    """How many processes can work at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def open_executor(*, workers: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """An executor for the time of a study: `workers` processes (all cores), or the Dask cluster at an address.

    None stands for this process alone. Left by an exception, it stops its workers where they are.
    """
    if dask is not None:
        with _dask(dask) as executor:
            yield executor
        return
    if workers is None:
        workers = cores()
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidTask(f"workers must be a whole number of at least 1, got {workers!r}")
    if workers == 1:
        yield None
        return
    with fork(workers) as executor:
        yield executor


@contextmanager
def fork(workers: int) -> Iterator[Executor]:
    """Processes that start as they are needed with what this one has loaded by then."""
    context = multiprocessing.get_context("fork")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(os.getpid(),))
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    executor.shutdown()


def _start_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, who stops its workers
    die_with(parent)()


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    from distributed import Client

    try:
        client = Client(address, timeout=DASK_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidTask(f"no Dask scheduler answers at {address!r}: {reason}") from None
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close()
