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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path
from typing import Any

from outvote.files import write_whole
from outvote.simulation import engines
from outvote.simulation.results import Result, summarise
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Trial

CHUNK_SECONDS = 0.15
"""Work that is worth sending to another process."""
MOST_CHUNKS = 64
"""In how many pieces a setting is cut at most: enough for the workers of a small cluster."""


def sweep(
    cells: Sequence[Settings],
    *,
    executor: Executor | None = None,
    store: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Result]:
    """Run every setting and return their results in the same order; `progress` is told of trials as they are done.

    Without an executor everything runs here, and `progress` hears of parts of trials too. With a `store` (a folder)
    each finished setting is written there, and what is there already is not run again.
    """
    advance = progress or _silent
    found = [stored(cell, store) for cell in cells]
    for result in found:
        if result is not None:
            advance(result.trials)
    todo = [index for index, result in enumerate(found) if result is None]
    for index in todo:
        engines.warm_up(cells[index])  # before workers are forked: they then start with the kernels loaded
    if executor is None:
        for index in todo:
            cell = cells[index]
            found[index] = run_cell(cell, advance)
            keep(cell, found[index], store)
    else:
        for index, result in _spread([(index, cells[index]) for index in todo], executor, advance):
            found[index] = result
            keep(cells[index], result, store)
    return [result for result in found if result is not None]


def _spread(
    cells: Sequence[tuple[int, Settings]], executor: Executor, advance: Callable[[float], None]
) -> Iterator[tuple[int, Result]]:
    """Hand out settings, the long ones in chunks of trials, and give them back as they become complete."""
    whole: dict[Future[Any], int] = {}
    parts: dict[Future[Any], tuple[int, Settings, int]] = {}
    # The longest first, so that at the end nobody waits for one that was left over.
    for index, cell in sorted(cells, key=lambda each: -engines.estimated_seconds(each[1])):
        pieces = chunks(cell)
        if len(pieces) == 1:
            whole[executor.submit(run_cell, cell)] = index
        else:
            for start, stop in pieces:
                parts[executor.submit(run_chunk, cell, start, stop)] = (index, cell, start)
    trials: dict[int, dict[int, list[Trial]]] = {index: {} for index, _ in cells}
    seconds = {index: 0.0 for index, _ in cells}
    for future in as_completed([*whole, *parts]):
        if future in whole:
            result: Result = future.result()
            advance(result.trials)
            yield whole.pop(future), result
            continue
        index, cell, start = parts.pop(future)
        trials[index][start], took = future.result()
        seconds[index] += took
        advance(len(trials[index][start]))
        if sum(map(len, trials[index].values())) == cell.trials:
            ordered = [trial for _, piece in sorted(trials.pop(index).items()) for trial in piece]
            yield index, summarise(cell, ordered, seconds[index])


def run_cell(cell: Settings, advance: Callable[[float], None] | None = None) -> Result:
    """A whole setting. Its result is much smaller than its trials, which need not be sent."""
    return summarise(cell, *run_chunk(cell, 0, cell.trials, advance))


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


def cell_name(cell: Settings) -> str:
    """The same for the same settings, in every process and on every day."""
    return hashlib.sha256(json.dumps(cell.describe(), sort_keys=True).encode()).hexdigest()[:20]


def stored(cell: Settings, store: Path | None) -> Result | None:
    """The result of a setting that was finished before, if it is there and whole."""
    if store is None:
        return None
    try:
        return Result.from_json(json.loads((store / f"{cell_name(cell)}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(cell: Settings, result: Result | None, store: Path | None) -> None:
    """Write a finished setting; the file appears whole or not at all."""
    if store is None or result is None:
        return
    write_whole(store / f"{cell_name(cell)}.json", json.dumps(result.to_json(per_trial=True)))


def _silent(done: float) -> None:
    """Nobody is watching."""
