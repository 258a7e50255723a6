"""Grids of settings through one executor: resumable, and the same results whoever runs them.

The trials of a setting are cut into chunks, each with seeds of its own, so they may run anywhere in any order. What
is finished is stored, one file for each setting, and not run again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from outvote.core.errors import InvalidSettings
from outvote.files import write_whole
from outvote.simulation import engines
from outvote.simulation.executors import Forks, fork, inherited
from outvote.simulation.keys import NoKey, strangers
from outvote.simulation.results import Result, summarise
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Trial

Submit: TypeAlias = Callable[[int, int, int], "Future[tuple[list[Trial], float]]"]
"""(number of the setting, first trial, last trial + 1) -> their trials, and how long they took."""
CHUNK_SECONDS = 0.15
"""Work that is worth sending to another process."""
MOST_CHUNKS = 64
"""In how many pieces a setting is cut at most: enough for the workers of a small cluster."""


def sweep(
    cells: Sequence[Settings],
    *,
    executor: Executor | Forks | None = None,
    store: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Result]:
    """Run every setting and return their results in the same order; `progress` is told of trials as they are done.

    Without an executor everything runs here, and `progress` hears of parts of trials too. With a `store` (a folder)
    each finished setting is written there, and what is there already is not run again.
    """
    advance = progress or _silent
    names = [None] * len(cells) if store is None else list(map(cell_name, cells))
    found = [None if store is None or name is None else stored(name, store) for name in names]
    for result in found:
        if result is not None:
            advance(result.trials)
    todo = {index: cells[index] for index, result in enumerate(found) if result is None}
    for cell in todo.values():
        engines.warm_up(cell)  # before workers are forked: they then start with the kernels loaded
    for index, result in _run_here(todo, advance) if executor is None else _spread(todo, executor, advance):
        found[index] = result
        if store is not None and names[index] is not None:  # the file appears whole or not at all
            write_whole(store / f"{names[index]}.json", json.dumps(result.to_json(per_trial=True)))
    return [result for result in found if result is not None]


def _run_here(cells: Mapping[int, Settings], advance: Callable[[float], None]) -> Iterator[tuple[int, Result]]:
    for index, cell in cells.items():
        yield index, summarise(cell, *run_chunk(cell, 0, cell.trials, advance))


def _spread(
    cells: Mapping[int, Settings], executor: Executor | Forks, advance: Callable[[float], None]
) -> Iterator[tuple[int, Result]]:
    """Hand out settings, the long ones in chunks of trials, and give them back as they become complete."""
    trials: dict[int, dict[int, list[Trial]]] = {index: {} for index in cells}
    seconds = dict.fromkeys(cells, 0.0)
    # The longest first, so that at the end nobody waits for one that was left over.
    order = sorted(cells, key=lambda index: -engines.estimated_seconds(cells[index]))
    with _submitter(cells, executor) as submit:
        parts = {submit(index, *piece): (index, piece[0]) for index in order for piece in chunks(cells[index])}
        for future in as_completed(parts):
            index, start = parts.pop(future)
            trials[index][start], took = future.result()
            seconds[index] += took
            advance(len(trials[index][start]))
            if sum(map(len, trials[index].values())) == cells[index].trials:
                ordered = [trial for _, piece in sorted(trials.pop(index).items()) for trial in piece]
                yield index, summarise(cells[index], ordered, seconds[index])


@contextmanager
def _submitter(cells: Mapping[int, Settings], executor: Executor | Forks) -> Iterator[Submit]:
    """How chunks are handed out: forked workers inherit the settings, others are sent them."""
    if isinstance(executor, Forks):
        with fork(executor.workers, cells) as pool:
            yield lambda index, start, stop: pool.submit(_run_inherited, index, start, stop)
        return
    for cell in cells.values():
        own = [name for part in cell.parts().values() for name in strangers(part)]
        if own:
            problem = f"has no workers that know {', '.join(own)}, which is your own: use workers of this machine"
            raise InvalidSettings(problem, field="dask", code="conflict")
    yield lambda index, start, stop: executor.submit(run_chunk, cells[index], start, stop)


def _run_inherited(index: int, start: int, stop: int) -> tuple[list[Trial], float]:
    return run_chunk(inherited()[index], start, stop)


def run_chunk(
    cell: Settings, start: int, stop: int, advance: Callable[[float], None] | None = None
) -> tuple[list[Trial], float]:
    """Some trials of a setting, and how long they took. Runs in whatever process the executor has."""
    engines.warm_up(cell)
    report = advance or _silent
    begin = time.perf_counter()
    trials = engines.run_trials(cell, start, stop, lambda draws: report(draws / cell.horizon))
    return trials, time.perf_counter() - begin


def chunks(cell: Settings) -> list[tuple[int, int]]:
    """Trials cut into runs of about equal length, each worth sending; trials that share a stream stay together."""
    together = engines.trials_to_a_stream(cell)
    streams = math.ceil(cell.trials / together)
    worth = math.ceil(engines.estimated_seconds(cell) / CHUNK_SECONDS)
    count = min(streams, worth, MOST_CHUNKS)
    cuts = [min(streams * i // count * together, cell.trials) for i in range(count + 1)]
    return list(itertools.pairwise(cuts))


def cell_name(cell: Settings) -> str | None:
    """The same for the same settings, on every day; None, with a warning, where nobody can tell that they are."""
    try:
        described = cell.describe()
    except NoKey as why:
        warnings.warn(f"the result of {cell.protocol!r} is not stored: {why}, a text that names its code", stacklevel=3)
        return None
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]


def stored(name: str, store: Path) -> Result | None:
    """The result of a setting that was finished before, if it is there and whole."""
    try:
        return Result.from_json(json.loads((store / f"{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _silent(done: float) -> None:
    """Nobody is watching."""
