"""Grids of settings: the same results whoever runs them, stored as they are finished, and not run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from outvote import simulate
from outvote.simulation import sweep as module
from outvote.simulation.engines import trials_to_a_stream
from outvote.simulation.executors import open_executor
from outvote.simulation.results import Result
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.sweep import chunks, sweep


def cells() -> list[Settings]:
    options = {"means": (0.9, 0.5, 0.1), "players": 3, "epsilon": 0.9, "delta": 0.5, "horizon": 4_000, "grid": 5}
    return [
        read_settings(protocol=protocol, engine=engine, trials=trials, **options)  # type: ignore[arg-type]
        for protocol, engine, trials in (
            ("dme", "core", 3), ("dme", "fast", 250), ("edme", "fast", 21), ("me-local", "auto", 1),
            ("ucb-unlimited", "auto", 9),
        )
    ]  # fmt: skip


def comparable(results: list[Result]) -> list[dict[str, object]]:
    return [{**result.to_json(per_trial=True), "seconds": 0} for result in results]


@pytest.fixture(scope="module")
def alone() -> list[dict[str, object]]:
    return comparable(sweep(cells()))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_do_not_depend_on_the_number_of_workers(
    workers: int, alone: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_SECONDS", 1e-6)  # as many chunks as there can be
    assert [len(chunks(cell)) for cell in cells()] == [3, 2, 1, 1, 1]
    with open_executor(workers=workers) as executor:
        assert comparable(sweep(cells(), executor=executor)) == alone


def test_trials_do_not_depend_on_how_many_there_are(alone: list[dict[str, object]]) -> None:
    longer = simulate(
        means=(0.9, 0.5, 0.1), players=3, epsilon=0.9, delta=0.5, horizon=4_000, grid=5, engine="fast", trials=450
    )
    assert longer.per_trial.regret[:250] == alone[1]["per_trial"]["regret"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("engine", "players", "streams"), [("core", 64, 1), ("fast", 64, 78), ("fast", 2_000, 2), ("fast", 6_000, 1)]
)
@pytest.mark.parametrize("trials", [1, 2, 7, 8, 9, 1_000])
def test_chunks_cover_all_trials_once_and_cut_no_stream(trials: int, engine: str, players: int, streams: int) -> None:
    cell = read_settings(trials=trials, engine=engine, players=players)
    assert trials_to_a_stream(cell) == streams
    assert [trial for start, stop in chunks(cell) for trial in range(start, stop)] == list(range(trials))
    assert all(start % streams == 0 for start, _ in chunks(cell))
    if trials == 1_000 or (engine == "core" and trials > 1):
        assert len(chunks(cell)) > 1


def test_what_is_stored_is_not_run_again(
    tmp_path: Path, alone: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sweep(cells(), store=tmp_path)
    assert len(list(tmp_path.iterdir())) == len(cells())
    monkeypatch.setattr(module, "run_chunk", None)  # whoever runs anything now fails
    again = sweep(cells(), store=tmp_path)
    assert again == first
    assert comparable(again) == alone


def test_a_damaged_cell_is_run_again(tmp_path: Path, alone: list[dict[str, object]]) -> None:
    sweep(cells(), store=tmp_path)
    for index, path in enumerate(sorted(tmp_path.iterdir())):
        text = path.read_text()
        path.write_text(text[: len(text) // 2] if index % 2 else "{}")
    assert comparable(sweep(cells(), store=tmp_path)) == alone


def test_progress_counts_trials() -> None:
    told: list[float] = []
    sweep(cells(), progress=told.append)
    assert sum(told) == pytest.approx(sum(cell.trials for cell in cells()))
